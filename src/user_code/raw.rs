//! Whole kernels that users write, as other programs compile them, too.
//!
//! ```text
//!   source, name ──▶ tokens ──▶ signature: what the arguments are checked against
//!                      │
//!                      ├──▶ a GPU compiles the source as it is
//!                      └──▶ the simulator compiles it with pointers that are checked (`rewrite.rs`)
//! ```

mod rewrite;
mod tokens;

use datafusion::arrow::datatypes::DataType;
use sha2::{Digest, Sha256};

use self::rewrite::{Rewritten, rewritten};
use self::tokens::{SourceToken, tokens};
use super::diagnosis::in_kernels_words;
use super::scalar::least_and_greatest;
use crate::column::Repr;
use crate::error::{Error, ErrorKind, Result};
use warpframe_device::{Device, KernelSource};

/// A kernel's source, and how it is called.
#[derive(Debug)]
pub(crate) struct KernelText {
    name: String,
    source: String,
    /// What compilers call the source.
    marker: String,
    parameters: Vec<Parameter>,
    /// For the simulator.
    rewritten: Option<Rewritten>,
}

/// A parameter of a kernel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    /// Its type as it is written; of a pointer that of what it leads to.
    pub(crate) written: String,
    /// The type that is written, where it is an arithmetic type of C++.
    pub(crate) ctype: Option<CType>,
    pub(crate) kind: ParameterKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterKind {
    Value,
    Pointer,
    PointerToConst,
}

/// An arithmetic type of C++.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CType {
    pub(crate) bytes: u8,
    pub(crate) class: CClass,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CClass {
    Bool,
    Signed,
    Unsigned,
    Float,
}

impl CType {
    /// The type that keywords say, in any order.
    fn of(words: &[&str]) -> Option<CType> {
        let count = |word: &str| words.iter().filter(|other| **other == word).count();
        let known = [
            "unsigned", "signed", "char", "short", "int", "long", "float", "double", "bool",
            "size_t", "__int128",
        ];
        if words.is_empty() || !words.iter().all(|word| known.contains(word)) {
            return None;
        }
        let integer = if count("unsigned") > 0 { CClass::Unsigned } else { CClass::Signed };
        let (bytes, class) = match words {
            _ if count("float") > 0 => (4, CClass::Float),
            _ if count("double") > 0 => (8, CClass::Float),
            _ if count("bool") > 0 => (1, CClass::Bool),
            _ if count("size_t") > 0 => (8, CClass::Unsigned),
            _ if count("__int128") > 0 => (16, integer),
            _ if count("char") > 0 => (1, integer),
            _ if count("short") > 0 => (2, integer),
            _ if count("long") > 0 => (8, integer),
            _ => (4, integer),
        };
        Some(CType { bytes, class })
    }

    fn of_repr(repr: Repr) -> Option<CType> {
        let class = match repr {
            Repr::Bool => CClass::Bool,
            Repr::I8 | Repr::I16 | Repr::I32 | Repr::I64 | Repr::I128 => CClass::Signed,
            Repr::U8 | Repr::U16 | Repr::U32 | Repr::U64 => CClass::Unsigned,
            Repr::F32 | Repr::F64 => CClass::Float,
            Repr::View | Repr::List | Repr::Struct => return None,
        };
        Some(CType { bytes: repr.width() as u8, class })
    }
}

/// What a kernel does with a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnUse {
    Read,
    Written,
}

impl KernelText {
    /// The kernel of a name in a source.
    ///
    /// # Errors
    /// There is none; parameters that a launch cannot give; shared memory that the simulator cannot
    /// have.
    pub(crate) fn of(device: &Device, source: &str, name: &str) -> Result<KernelText> {
        let found = tokens(source);
        let (parameters, open) = signature(source, &found, name)?;
        let marker: String =
            Sha256::digest(source)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        // The simulator checks pointers, and gives blocks their shared memory.
        let rewritten = match device.of_kind(false, true) {
            true => Some(rewritten(source, &found, open).map_err(|why| wrong(name, why))?),
            false => None,
        };
        let (name, source, marker) = (name.into(), source.into(), format!("kernel_{marker}"));
        Ok(KernelText { name, source, marker, parameters, rewritten })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// What the device compiles, and its entry point.
    pub(crate) fn compiled(&self) -> (KernelSource, String) {
        let KernelText { name, marker, .. } = self;
        // The name of the unit is told by the line.
        let plain = format!("#line 1 \"{marker}\"\n{}\n", self.source);
        let Some(Rewritten { text, .. }) = &self.rewritten else {
            return (KernelSource::new(format!("user_{name}"), plain), name.clone());
        };
        let mut arguments = vec![];
        let mut word = 0;
        for Parameter { name, kind, .. } in &self.parameters {
            match kind {
                ParameterKind::Value => arguments.push(format!("raw_number{{w + {word}}}")),
                _ => arguments.push(format!("raw_memory{{w + {word}, \"argument {name}\"}}")),
            }
            word += if *kind == ParameterKind::Value { 1 } else { 2 };
        }
        let (entry, words, arguments) =
            (format!("wf_raw_{name}"), SHAPE_WORDS + word, arguments.join(", "));
        // What a GPU compiles comes along: CI compiles for GPUs the texts that tests used in the
        // simulator.
        let text = format!(
            "#ifndef WF_SIM\n{plain}#else\n#include \"raw.cuh\"\n#line 1 \"{marker}\"\n{text}\n#line 1 \"generated\"\n\
             #undef for\n#undef while\n#undef reinterpret_cast\n\
             namespace wf {{\nextern \"C\" {{\n\
             WF_SIM_EXPORT extern const ::wf_sim_facts wf_sim_facts_{entry};\n\
             const ::wf_sim_facts wf_sim_facts_{entry} = {{{words}, {}}};\n\
             WF_SIM_EXPORT void {entry}(const void* words) {{\n\
             raw_words = static_cast<const u64*>(words);\nraw_turns = 0;\n\
             const u64* const w = raw_words + {SHAPE_WORDS};\n::{name}({arguments});\n}}\n}}\n}}\n#endif\n",
            Device::MOST_THREADS,
        );
        (KernelSource::new(format!("user_{name}"), text), entry)
    }

    /// The error in the user's lines, where a compiler or the simulator says that they are wrong.
    pub(crate) fn in_users_words(&self, error: Error) -> Error {
        let column = |line, column| match &self.rewritten {
            Some(rewritten) => rewritten.column_of_source(&self.source, line, column),
            None => column,
        };
        in_kernels_words(error, &self.name, &self.marker, &self.source, column)
    }

    /// Refuses a column of a type that does not lie in memory as the parameter says.
    pub(crate) fn check_column(&self, at: usize, dtype: &DataType, used: ColumnUse) -> Result<()> {
        let parameter = &self.parameters[at];
        let Parameter { name, written, ctype, kind } = parameter;
        let of = |why: String| self.wrong_argument(at, why);
        if *kind == ParameterKind::Value {
            return Err(of(format!("the kernel takes a {written}, not a column")));
        }
        let repr = Repr::of(dtype).filter(|_| !matches!(dtype, DataType::Interval(_)));
        let Some(has) = repr.and_then(CType::of_repr) else {
            return Err(of(format!(
                "a column of {dtype}: kernels take columns of values of one width"
            )));
        };
        match (used, kind) {
            (ColumnUse::Read, ParameterKind::Pointer) => {
                return Err(of(format!(
                    "its column is read: the parameter is to be `const {written}* {name}`"
                )));
            }
            (ColumnUse::Written, ParameterKind::PointerToConst) => {
                return Err(of(format!(
                    "its column is written, and the parameter is a `const {written}*`"
                )));
            }
            _ => {}
        }
        if used == ColumnUse::Written && least_and_greatest(dtype).is_some() {
            return Err(of(format!(
                "a column of {dtype} is not written: nobody would notice a value outside of it"
            )));
        }
        let Some(takes) = *ctype else { return Ok(()) };
        let is_float = |ctype: CType| ctype.class == CClass::Float;
        // A written bool is 0 or 1 only by its type in C++.
        let bools =
            has.class == CClass::Bool && used == ColumnUse::Written && takes.class != CClass::Bool;
        if takes.bytes != has.bytes || is_float(takes) != is_float(has) || bools {
            return Err(of(format!(
                "the column has values of {dtype}, the kernel takes `{written}*`"
            )));
        }
        Ok(())
    }

    /// The error that an argument is not what its parameter takes.
    pub(crate) fn wrong_argument(&self, at: usize, why: String) -> Error {
        let name = &self.parameters[at].name;
        wrong(&self.name, format!("argument {name:?} (number {}): {why}", at + 1))
    }
}

/// Words of a launch in front of the arguments; see `kernels/raw.cuh`.
const SHAPE_WORDS: usize = 7;

/// The error that something is wrong about a kernel.
pub(crate) fn wrong(kernel: &str, why: impl std::fmt::Display) -> Error {
    ErrorKind::Plan { message: format!("kernel {kernel}: {why}"), location: None }.into()
}

/// The parameters of a kernel, and the number of the token that opens their list.
fn signature(source: &str, tokens: &[SourceToken], name: &str) -> Result<(Vec<Parameter>, usize)> {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.text(source) == text);
    // Whether each open brace is that of `extern "C"`.
    let mut braces = vec![];
    for at in 0..tokens.len() {
        match tokens[at].text(source) {
            "{" => braces.push(at >= 2 && is(at - 1, "\"C\"") && is(at - 2, "extern")),
            "}" => drop(braces.pop()),
            "__global__" => {
                let Some(open) = list_of(source, tokens, at, name) else { continue };
                let linked = at >= 2 && is(at - 1, "\"C\"") && is(at - 2, "extern");
                if !linked && !braces.contains(&true) {
                    let why = format!(
                        "declare it `extern \"C\" __global__ void {name}(…)`, so that it keeps its name"
                    );
                    return Err(wrong(name, why));
                }
                return Ok((parameters(source, tokens, open, name)?, open));
            }
            _ => {}
        }
    }
    Err(wrong(name, format!("the source has no `extern \"C\" __global__ void {name}(…)`")))
}

/// The token that opens a kernel's parameters, behind its `__global__`.
fn list_of(source: &str, tokens: &[SourceToken], global: usize, name: &str) -> Option<usize> {
    let mut depth = 0;
    for at in global + 1..tokens.len() {
        match tokens[at].text(source) {
            "(" => depth += 1,
            ")" => depth -= 1,
            "{" | ";" => return None,
            text if text == name && depth == 0 => {
                return tokens.get(at + 1).filter(|next| next.text(source) == "(").map(|_| at + 1);
            }
            _ => {}
        }
    }
    None
}

fn parameters(
    source: &str,
    tokens: &[SourceToken],
    open: usize,
    kernel: &str,
) -> Result<Vec<Parameter>> {
    let mut lists: Vec<Vec<&str>> = vec![vec![]];
    let mut depth = 0;
    for token in &tokens[open + 1..] {
        let text = token.text(source);
        match text {
            ")" if depth == 0 => break,
            "," if depth == 0 => {
                lists.push(vec![]);
                continue;
            }
            "(" | "[" | "<" => depth += 1,
            ")" | "]" | ">" => depth -= 1,
            _ => {}
        }
        lists.last_mut().expect("it begins with one").push(text);
    }
    if matches!(lists[..], [ref only] if only.is_empty() || only[..] == ["void"]) {
        return Ok(vec![]);
    }
    let parameter = |(at, words): (usize, &Vec<&str>)| {
        let is_word =
            |text: &&&str| text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let refused =
            |why: &str| wrong(kernel, format!("parameter {} ({}): {why}", at + 1, words.join(" ")));
        let end = words.iter().position(|word| *word == "[").unwrap_or(words.len());
        let Some(name) = words[..end].last().filter(|word| is_word(word) && end > 1) else {
            return Err(refused("it has no name"));
        };
        let stars = words[..end].iter().filter(|word| **word == "*").count();
        let pointers = stars + usize::from(end < words.len());
        if pointers > 1 || words.contains(&"&") || words.contains(&"...") {
            return Err(refused("kernels take pointers to values, and numbers"));
        }
        let before = words[..end - 1].iter().position(|word| *word == "*").unwrap_or(end - 1);
        let is_const = words[..before].contains(&"const");
        let plain =
            |word: &&&str| !["const", "volatile", "__restrict__", "__restrict"].contains(*word);
        let of: Vec<&str> = words[..before].iter().filter(plain).copied().collect();
        let kind = match pointers {
            0 => ParameterKind::Value,
            _ if is_const => ParameterKind::PointerToConst,
            _ => ParameterKind::Pointer,
        };
        Ok(Parameter { name: (*name).into(), written: of.join(" "), ctype: CType::of(&of), kind })
    };
    lists.iter().enumerate().map(parameter).collect()
}

#[cfg(test)]
mod tests;
