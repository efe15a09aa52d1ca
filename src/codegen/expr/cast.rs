//! CAST and TRY_CAST, as Arrow's cast kernel converts.

use super::*;

/// What becomes of a value that the target type cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnError {
    Fail,
    Null,
}

impl Compiler<'_> {
    pub(super) fn cast(&mut self, value: Value, target: &DataType, _on_error: OnError) -> Result<Value> {
        Err(not_yet(format!("a cast from {} to {target}", value.dtype)))
    }
}
