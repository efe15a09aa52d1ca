//! The C++ around what a user wrote.
//!
//! ```text
//!   namespace wf {
//!   inline __device__ f64 user_5f…(f64 e1, bool e1_is_null) { WF_USER_CALL
//!   #line 1 "user_5f…"                       from here on the compiler counts the user's lines
//!   … body …
//!   }
//!   #line 1 "generated"
//!   }
//! ```
//!
//! The symbol is a hash of all of it. So a kernel's text that names it says what it computes, and
//! is found compiled when the same function comes again, whatever it is called then.

use std::fmt::Write;

use datafusion::arrow::datatypes::DataType;
use sha2::{Digest, Sha256};

use super::diagnosis::in_users_words;
use crate::column::Repr;
use crate::error::{Error, Result};
use warpframe_device::{Device, KernelSource};

/// C++ that a user wrote, with what is around it.
#[derive(Debug)]
pub(crate) struct Definition {
    name: String,
    symbol: String,
    text: String,
    pub(super) bodies: Vec<Body>,
    /// What calls all of it, for a check.
    calls: String,
}

/// A text of the user's.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    pub(crate) text: String,
    /// Line and column of its begin in the SQL text, if it comes from one.
    pub(crate) place: Option<(u64, u64)>,
}

impl Body {
    pub(crate) fn new(text: impl Into<String>, place: Option<(u64, u64)>) -> Body {
        Body { text: text.into(), place }
    }
}

/// A function around a body: what stands before its name and behind it, up to the brace.
#[derive(Debug)]
pub(super) struct FramedBody<'a> {
    pub(super) before: &'a str,
    /// With the parentheses.
    pub(super) parameters: &'a str,
    pub(super) body: &'a Body,
}

/// What stands for the symbol in a [`FramedBody`], and in the text around it.
pub(super) const SYMBOL: &str = "WF_USER_SYMBOL";

/// In the simulator each turn of a loop is counted (`kernels/user.cuh`). Neither form changes what
/// an `else` belongs to.
const COUNTED: &str = "#ifdef WF_SIM\n\
    #define for(...) for (__VA_ARGS__) if (!::wf::user_turn()) break; else\n\
    #define while(...) while ((__VA_ARGS__) && ::wf::user_turn())\n\
    #endif\n";

impl Definition {
    /// Functions of these frames: the first is called by the symbol, the others by the symbol and
    /// `_1`, `_2` and so on. `ahead` stands in front of them, `behind` behind; `calls` are
    /// statements that call all of it.
    pub(super) fn new(
        name: &str,
        ahead: &str,
        frames: &[FramedBody<'_>],
        behind: &str,
        calls: &str,
    ) -> Definition {
        let mut text = format!("namespace wf {{\n{ahead}\n");
        for (at, FramedBody { before, parameters, body }) in frames.iter().enumerate() {
            let function = numbered(SYMBOL, at);
            let _ =
                writeln!(text, "inline __device__ {before} {function}{parameters} {{ WF_USER_CALL");
            text.push_str(COUNTED);
            // The brace is the user's last line's: there the compiler says that nothing is
            // returned.
            let _ = write!(text, "#line 1 \"{function}\"\n{}\n}}\n", body.text);
            text.push_str("#undef for\n#undef while\n#line 1 \"generated\"\n");
        }
        let _ = writeln!(text, "{behind}\n}}");
        let hash = Sha256::digest(&text);
        let mut symbol = String::from("user_");
        hash[..12].iter().for_each(|byte| {
            let _ = write!(symbol, "{byte:02x}");
        });
        let bodies = frames.iter().map(|frame| frame.body.clone()).collect();
        let (text, calls) = (text.replace(SYMBOL, &symbol), calls.replace(SYMBOL, &symbol));
        Definition { name: name.into(), symbol, text, bodies, calls }
    }

    /// What the user calls it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What the statements of kernels name.
    pub(crate) fn symbol(&self) -> &str {
        &self.symbol
    }

    /// What stands in front of a kernel that names it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The name of the function around a body.
    pub(super) fn function(&self, body: usize) -> String {
        numbered(&self.symbol, body)
    }

    /// Has a device's compiler look at it.
    ///
    /// # Errors
    /// [`crate::ErrorKind::UserCode`].
    pub(crate) fn check(self: &std::sync::Arc<Self>, device: &Device) -> Result<()> {
        let Definition { symbol, text, calls, .. } = &**self;
        let source = format!(
            "#include \"prelude.cuh\"\n#include \"arith.cuh\"\n#include \"decimal.cuh\"\n#include \"time.cuh\"\n\
             #include \"pipeline.cuh\"\n#include \"user.cuh\"\n\
             #ifndef WF_SIM\n\
             // A function that does not return what it says.\n\
             #pragma nv_diag_error 940\n\
             #endif\n\
             {text}using namespace wf;\n\
             struct {symbol}_params {{ u64* out; }};\n\
             WF_KERNEL(check_{symbol}, {symbol}_params) {{\n{calls}\n}}\n"
        );
        let checked = device.check(&KernelSource::new(format!("function {}", self.name), source));
        checked.map_err(|error| in_users_words(error.into(), std::slice::from_ref(self)))
    }
}

fn numbered(symbol: &str, at: usize) -> String {
    if at == 0 { symbol.into() } else { format!("{symbol}_{at}") }
}

/// How a body has values of a type.
///
/// # Errors
/// [`crate::ErrorKind::Unsupported`] of types that are not handed to it.
pub(super) fn ctype(dtype: &DataType) -> Result<&'static str> {
    match Repr::of(dtype) {
        Some(Repr::Bool) => Ok("bool"),
        Some(Repr::View) => Ok("text"),
        Some(repr) if !matches!(repr, Repr::List | Repr::Struct) => Ok(repr.device_type()),
        _ => Err(Error::unsupported(
            format!("{dtype} in a user's function"),
            "its body has no such type",
        )),
    }
}

/// Whether a text is a name of C++'s that may stand in a signature.
pub(super) fn is_identifier(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether a body mentions a name.
pub(super) fn mentions(body: &str, name: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    body.match_indices(name).any(|(at, _)| {
        !is_part(body[..at].chars().next_back()) && !is_part(body[at + name.len()..].chars().next())
    })
}
