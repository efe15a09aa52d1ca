//! The parameters of a generated kernel: one 8-byte word each, declared and filled in step.

use std::sync::Arc;

use super::device_function::KernelHeaders;
use super::emit::push_number;
use warpframe_device::{Argument, Buffer};

/// Words of a kernel's parameter structure, in order.
#[derive(Debug)]
pub(crate) struct Params {
    declarations: String,
    words: Vec<Option<Argument>>,
    /// Bytes of an element behind each pointer; of a number 0.
    strides: Vec<u64>,
    keep: Vec<Arc<Buffer>>,
    /// Names by address and type; few enough to look through.
    pointers: Vec<((u64, &'static str), String)>,
    /// Device code that their types are of.
    headers: KernelHeaders,
}

/// A parameter whose value is known only after generation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Later(usize);

/// None yet, with room for those of most kernels.
impl Default for Params {
    fn default() -> Self {
        Params {
            declarations: String::with_capacity(1024),
            words: Vec::with_capacity(24),
            strides: Vec::with_capacity(24),
            keep: Vec::with_capacity(16),
            pointers: Vec::with_capacity(16),
            headers: KernelHeaders::default(),
        }
    }
}

impl Params {
    /// A pointer to byte `offset` of `buffer`; asking again gives the same parameter.
    pub(super) fn pointer(
        &mut self,
        ctype: &'static str,
        buffer: &Arc<Buffer>,
        offset: usize,
    ) -> String {
        let key = (buffer.slice(offset).address(), ctype);
        if let Some((_, known)) = self.pointers.iter().find(|(of, _)| *of == key) {
            return known.clone();
        }
        let name = self.declare(ctype, "*", Some(buffer.slice(offset).into()));
        self.keep.push(buffer.clone());
        self.pointers.push((key, name.clone()));
        name
    }

    /// A pointer to a buffer that the caller keeps alive until the kernel is submitted.
    pub(super) fn borrowed(&mut self, ctype: &'static str, buffer: &Buffer) -> String {
        let key = (buffer.address(), ctype);
        if let Some((_, known)) = self.pointers.iter().find(|(of, _)| *of == key) {
            return known.clone();
        }
        let name = self.declare(ctype, "*", Some(buffer.into()));
        self.pointers.push((key, name.clone()));
        name
    }

    /// A number.
    pub(super) fn word(&mut self, ctype: &str, value: impl Into<Argument>) -> String {
        self.declare(ctype, "", Some(value.into()))
    }

    /// A word to be set by [`Params::set`] before the launch.
    pub(super) fn later(&mut self, ctype: &str) -> (String, Later) {
        let name = self.declare(ctype, "", None);
        (name, Later(self.words.len() - 1))
    }

    /// A pointer to be set by [`Params::set`] before the launch, to elements that take `stride`
    /// bytes a row.
    pub(super) fn later_of(&mut self, ctype: &str, stride: u64) -> (String, Later) {
        let (name, later) = self.later(ctype);
        self.strides[later.0] = stride;
        (name, later)
    }

    /// Fills a word declared by [`Params::later`].
    pub(crate) fn set(&mut self, at: Later, value: impl Into<Argument>) {
        self.words[at.0] = Some(value.into());
    }

    /// Keeps a buffer alive until the kernel is submitted.
    pub(crate) fn keep(&mut self, buffer: &Arc<Buffer>) {
        self.keep.push(buffer.clone());
    }

    pub(super) fn headers(&self) -> KernelHeaders {
        self.headers
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.words.len()
    }

    /// Fields of the parameter structure.
    pub(crate) fn declarations(&self) -> &str {
        &self.declarations
    }

    /// Which parameters a text names, by position.
    pub(crate) fn named_in(&self, text: &str) -> Arc<[bool]> {
        let mut named = vec![false; self.words.len()];
        for part in text.split("p.k").skip(1) {
            let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            if let Some(named) = part[..digits].parse().ok().and_then(|at: usize| named.get_mut(at))
            {
                *named = true;
            }
        }
        named.into()
    }

    /// The words, all of them set, for a kernel that names these parameters and looks at so many
    /// rows. It moves what the pointers that it names lead to, an element a row at most.
    pub(crate) fn arguments(&self, named: &[bool], rows: u64) -> Vec<Argument> {
        let moved = |at: usize| if named[at] { rows.saturating_mul(self.strides[at]) } else { 0 };
        let word = |(at, word): (usize, &Option<Argument>)| {
            word.expect("every parameter is set before the launch").moving_at_most(moved(at))
        };
        self.words.iter().enumerate().map(word).collect()
    }

    /// `star`: behind the type, of a pointer.
    fn declare(&mut self, ctype: &str, star: &str, value: Option<Argument>) -> String {
        let mut name = String::with_capacity(8);
        name.push_str("p.k");
        push_number(&mut name, self.words.len());
        for piece in ["    ", ctype, star, " ", &name[2..], ";\n"] {
            self.declarations.push_str(piece);
        }
        self.headers.add_of_type(ctype);
        self.words.push(value);
        self.strides.push(match (ctype.strip_suffix('*'), star) {
            (Some(element), _) => stride_of(element),
            (None, "") => 0,
            (None, _) => stride_of(ctype),
        });
        name
    }
}

/// Bytes of an element of this type.
fn stride_of(element: &str) -> u64 {
    match element.strip_prefix("const ").unwrap_or(element) {
        "bool8" | "u8" | "i8" => 1,
        "u16" | "i16" => 2,
        "u32" | "i32" | "f32" => 4,
        "i128" | "u128" | "view" => 16,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_follow_the_type() {
        let mut params = Params::default();
        for ctype in ["const bool8*", "u16*", "const u32*", "f64*", "const view*", "i128*", "u64"] {
            params.later(ctype);
        }
        params.declare("const u32", "*", None);
        assert_eq!(params.strides, [1, 2, 4, 8, 16, 16, 0, 4]);
        assert!(
            params.declarations().ends_with("    u64 k6;\n    const u32* k7;\n"),
            "{}",
            params.declarations()
        );
    }
}
