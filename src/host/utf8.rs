//! Texts as their bytes, and back. A cast reads and writes escapes (`casts/bytes.rs`).
//!
//! ```text
//!   encode('é')           the bytes c3 a9            decode(encode('é'))     'é'
//!   encode('é', 'hex')    encode(encode('é'), 'hex') = 'c3a9'
//! ```

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::format::DEFAULT_CAST_OPTIONS;
use datafusion::common::{Result, internal_err};
use datafusion::functions::expr_fn;
use datafusion::logical_expr::Expr;

use super::calls::{HostCall, host_function};

/// As Arrow casts.
fn cast_in_utf8(call: &HostCall, to: &DataType) -> Result<ArrayRef> {
    let [values] = call.arrays.as_slice() else {
        return internal_err!("{} values to cast to {to}", call.arrays.len());
    };
    let options = CastOptions { safe: false, ..DEFAULT_CAST_OPTIONS };
    Ok(cast_with_options(values, to, &options)?)
}

/// The bytes of a text in UTF-8.
pub(super) fn bytes_of(text: Expr) -> Expr {
    let of = |call: &HostCall| cast_in_utf8(call, &DataType::Binary);
    let function = host_function("utf8_bytes", &[DataType::Utf8], &DataType::Binary, of);
    function.call(vec![text])
}

fn text_of(bytes: Expr) -> Expr {
    let of = |call: &HostCall| cast_in_utf8(call, &DataType::Utf8);
    let function = host_function("utf8_text", &[DataType::Binary], &DataType::Utf8, of);
    function.call(vec![bytes])
}

/// The bytes of a text, or the text that bytes have in an encoding.
pub(crate) fn encode(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    Ok(match (args, types) {
        ([text], [dtype]) if dtype.is_string() || dtype.is_null() => Some(bytes_of(text.clone())),
        ([_, to], [dtype, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8]) => {
            as_bytes(&args[0], dtype).map(|bytes| expr_fn::encode(bytes, to.clone()))
        }
        _ => None,
    })
}

/// The text whose bytes these are in UTF-8, or the bytes that a text has in an encoding.
pub(crate) fn decode(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    Ok(match (args, types) {
        ([bytes], [dtype]) if is_bytes(dtype) || dtype.is_null() => Some(text_of(bytes.clone())),
        ([_, from], [dtype, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8]) => {
            as_bytes(&args[0], dtype).map(|bytes| expr_fn::decode(bytes, from.clone()))
        }
        _ => None,
    })
}

fn is_bytes(dtype: &DataType) -> bool {
    dtype.is_binary() || matches!(dtype, DataType::FixedSizeBinary(_))
}

fn as_bytes(value: &Expr, dtype: &DataType) -> Option<Expr> {
    match dtype {
        text if text.is_string() || text.is_null() => Some(bytes_of(value.clone())),
        bytes if is_bytes(bytes) => Some(value.clone()),
        _ => None,
    }
}
