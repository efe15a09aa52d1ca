//! What calls of the host's scalar functions have in common.

use datafusion::arrow::array::ArrayRef;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

/// A call's arguments as arrays of as many rows as it has. A call of constants alone has one row,
/// and yields a constant.
pub(super) struct HostCall {
    pub(super) arrays: Vec<ArrayRef>,
    pub(super) rows: usize,
    is_constant: bool,
}

impl HostCall {
    pub(super) fn of(args: &ScalarFunctionArgs) -> Result<HostCall> {
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        Ok(HostCall { arrays, rows, is_constant })
    }

    /// What the call yields, of a value for each of its rows.
    pub(super) fn yields(&self, found: ArrayRef) -> Result<ColumnarValue> {
        match self.is_constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)),
            false => Ok(ColumnarValue::Array(found)),
        }
    }
}
