//! The task of a row, as DataFusion's exchanges number it.

use datafusion::arrow::datatypes::DataType;

use super::device_function::{
    EXCHANGE_BYTES, EXCHANGE_COMBINED, EXCHANGE_NUMBER, EXCHANGE_TEXT, EXCHANGE_VIEW,
};
use super::emit::Emitter;
use super::params::Params;
use super::value::Value;

/// How DataFusion hashes the values of a type.
#[derive(Debug, Clone, Copy)]
enum Hashed {
    /// As a number of so many bits without a sign.
    Number(u8),
    Flag,
    Text,
    Bytes,
    View,
}

fn hashed(dtype: &DataType) -> Option<Hashed> {
    Some(match dtype {
        DataType::Boolean => Hashed::Flag,
        DataType::Utf8 | DataType::LargeUtf8 => Hashed::Text,
        DataType::Binary | DataType::LargeBinary => Hashed::Bytes,
        DataType::Utf8View | DataType::BinaryView => Hashed::View,
        DataType::Int8 | DataType::UInt8 => Hashed::Number(8),
        DataType::Int16 | DataType::UInt16 => Hashed::Number(16),
        DataType::Int32
        | DataType::UInt32
        | DataType::Date32
        | DataType::Time32(_)
        | DataType::Decimal32(..) => Hashed::Number(32),
        DataType::Int64
        | DataType::UInt64
        | DataType::Date64
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_)
        | DataType::Decimal64(..) => Hashed::Number(64),
        DataType::Decimal128(..) => Hashed::Number(128),
        _ => return None,
    })
}

/// Whether [`emit_task`] takes keys of an Arrow type.
pub(crate) fn has_task(dtype: &DataType) -> bool {
    hashed(dtype).is_some()
}

/// Emits the number of the task, of `tasks`, that DataFusion's exchanges give rows of these keys,
/// each with the type that its column has on the host (`kernels/exchange.cuh`). `None` where a type
/// has no such hash.
pub(crate) fn emit_task(
    keys: &[(Value, DataType)],
    tasks: u32,
    params: &mut Params,
    out: &mut Emitter,
) -> Option<Value> {
    let tasks = params.word("u64", u64::from(tasks));
    let mut before: Option<String> = None;
    for (key, dtype) in keys {
        let (behind, code) = (before.as_deref().unwrap_or("0ull"), &key.code);
        let number = |low: String, high: String, behind: &str, out: &mut Emitter| {
            format!("{}({behind}, {low}, {high})", out.calls(EXCHANGE_NUMBER))
        };
        // Of these, DataFusion combines the hash of one column with that of the columns before.
        let is_combined = matches!(hashed(dtype)?, Hashed::Flag | Hashed::Text | Hashed::Bytes);
        let alone = match hashed(dtype)? {
            Hashed::Number(128) => {
                let whole = out.let_("u128", format_args!("(u128)(i128)({code})"));
                let (low, high) = (format!("low_word({whole})"), format!("high_word({whole})"));
                number(low, high, behind, out)
            }
            Hashed::Number(bits) => {
                number(format!("(u64)(u{bits})({code})"), "0ull".into(), behind, out)
            }
            Hashed::View => format!("{}({behind}, {code})", out.calls(EXCHANGE_VIEW)),
            Hashed::Flag => number(format!("(u64)({code} ? 1 : 0)"), "0ull".into(), "0ull", out),
            Hashed::Text => format!("{}({code})", out.calls(EXCHANGE_TEXT)),
            Hashed::Bytes => format!("{}({code})", out.calls(EXCHANGE_BYTES)),
        };
        let hash = match is_combined && before.is_some() {
            true => format!("{}({behind}, {alone})", out.calls(EXCHANGE_COMBINED)),
            false => alone,
        };
        let hash = match &key.valid {
            Some(valid) => format!("{valid} ? {hash} : {behind}"),
            None => hash,
        };
        before = Some(out.let_("u64", hash));
    }
    let hash = before.unwrap_or_else(|| "0ull".into());
    Some(Value::number(out.let_("u32", format_args!("(u32)({hash} % {tasks})"))))
}
