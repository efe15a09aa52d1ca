//! Code generation: DataFusion expressions become statements of a kernel's per-row body.

mod emit;
pub(crate) mod expr;
mod value;

pub(crate) use emit::{Emitter, Failure};
pub(crate) use expr::{compile, unsupported};
pub(crate) use value::{DictionaryInput, Inputs, Value, widen};
