//! The parameters of a generated kernel: one 8-byte word each, declared and filled in step.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use crate::device::{Argument, Buffer};

/// Words of a kernel's parameter structure, in order.
#[derive(Debug, Default)]
pub(crate) struct Params {
    declarations: String,
    words: Vec<Option<Argument>>,
    keep: Vec<Arc<Buffer>>,
    pointers: HashMap<(u64, &'static str), String>,
}

/// A parameter whose value is known only after generation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Later(usize);

impl Params {
    /// A pointer to byte `offset` of `buffer`; asking again gives the same parameter.
    pub(crate) fn pointer(&mut self, ctype: &'static str, buffer: &Arc<Buffer>, offset: usize) -> String {
        let key = (buffer.slice(offset).address(), ctype);
        if let Some(known) = self.pointers.get(&key) {
            return known.clone();
        }
        let name = self.declare(&format!("{ctype}*"), Some(buffer.slice(offset).into()));
        self.keep.push(buffer.clone());
        self.pointers.insert(key, name.clone());
        name
    }

    /// A pointer to a buffer that the caller keeps alive until the kernel is submitted.
    pub(crate) fn borrowed(&mut self, ctype: &'static str, buffer: &Buffer) -> String {
        let key = (buffer.address(), ctype);
        if let Some(known) = self.pointers.get(&key) {
            return known.clone();
        }
        let name = self.declare(&format!("{ctype}*"), Some(buffer.into()));
        self.pointers.insert(key, name.clone());
        name
    }

    /// A number.
    pub(crate) fn word(&mut self, ctype: &str, value: impl Into<Argument>) -> String {
        self.declare(ctype, Some(value.into()))
    }

    /// A word to be set by [`Params::set`] before the launch.
    pub(crate) fn later(&mut self, ctype: &str) -> (String, Later) {
        let name = self.declare(ctype, None);
        (name, Later(self.words.len() - 1))
    }

    /// Fills a word declared by [`Params::later`].
    pub(crate) fn set(&mut self, at: Later, value: impl Into<Argument>) {
        self.words[at.0] = Some(value.into());
    }

    /// Keeps a buffer alive until the kernel is submitted.
    pub(crate) fn keep(&mut self, buffer: &Arc<Buffer>) {
        self.keep.push(buffer.clone());
    }

    /// Fields of the parameter structure.
    pub(crate) fn declarations(&self) -> &str {
        &self.declarations
    }

    /// The words, all of them set.
    pub(crate) fn arguments(&self) -> Vec<Argument> {
        self.words.iter().map(|w| w.expect("every parameter is set before the launch")).collect()
    }

    fn declare(&mut self, ctype: &str, value: Option<Argument>) -> String {
        let name = format!("k{}", self.words.len());
        let _ = writeln!(self.declarations, "    {ctype} {name};");
        self.words.push(value);
        format!("p.{name}")
    }
}
