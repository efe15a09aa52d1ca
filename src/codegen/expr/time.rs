//! Dates and timestamps: parts, intervals, differences.

use super::*;

impl Compiler<'_> {
    /// Arithmetic where a side is a date or timestamp, or `None`.
    pub(super) fn temporal_arithmetic(
        &mut self,
        op: Operator,
        _left: &Expr,
        left_type: &DataType,
        _right: &Expr,
        right_type: &DataType,
        _dtype: &DataType,
    ) -> Result<Option<Value>> {
        if left_type.is_temporal() || right_type.is_temporal() {
            return Err(not_yet(format!("{left_type} {op} {right_type}")));
        }
        Ok(None)
    }
}
