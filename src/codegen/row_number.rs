//! Numbers of rows and of slots, in generated code.

use datafusion::arrow::datatypes::DataType;

use super::emit::Emitter;
use super::generator::Generator;
use super::value::Value;
use crate::column::{NO_ROW, Repr};
use warpframe_device::Buffer;

/// The row's own number; from `down_from` down, where that is given.
pub(crate) fn row_number(
    down_from: Option<u64>,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Value {
    let number = match down_from {
        Some(last) => format!("(u32)({} - row)", generator.params.word("u64", last)),
        None => "(u32)row".to_string(),
    };
    Value::number(out.let_("u32", number))
}

/// A value that is known to be the number of a row; of a null the number that no row has.
pub(crate) fn as_row_number(value: &Value, out: &mut Emitter) -> Value {
    let code = match &value.valid {
        Some(valid) => format!("{valid} ? (u32){} : {NO_ROW}", value.code),
        None => format!("(u32){}", value.code),
    };
    Value::number(out.let_("u32", code))
}

/// What an array of numbers (`u32`) has for the row.
pub(crate) fn number_of_row(
    numbers: &Buffer,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Value {
    let numbers = generator.params.borrowed("const u32", numbers);
    Value::number(out.let_("u32", format_args!("{numbers}[row]")))
}

/// Likewise, as a word to sort by.
pub(crate) fn word_of_row(
    numbers: &Buffer,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Value {
    let numbers = generator.params.borrowed("const u32", numbers);
    Value::word(out.let_("u64", format_args!("(u64){numbers}[row]")))
}

/// Notes for each row of an order (`u32`) its place there, in `places`, an array of `repr`.
pub(crate) fn note_place(
    order: &Buffer,
    places: &Buffer,
    repr: Repr,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) {
    let order = generator.params.borrowed("const u32", order);
    let ctype = repr.device_type();
    let places = generator.params.borrowed(ctype, places);
    let row = if repr == Repr::U64 { "row" } else { "(u32)row" };
    out.line(format_args!("{places}[{order}[row]] = {row};"));
}

/// 1 for a row of which the condition is true, else 0.
pub(crate) fn counted_once(condition: &Value, out: &mut Emitter) -> Value {
    Value::number(out.let_("u32", format_args!("{} ? 1u : 0u", condition.truth())))
}

/// An integer as a word of its bits, which has those of its sign above.
pub(crate) fn bits_of(value: &Value, out: &mut Emitter) -> Value {
    let signed = if value.dtype.is_signed_integer() { "i64" } else { "u64" };
    Value::word(out.let_("u64", format_args!("(u64)({signed}){}", value.code)))
}

/// A number as one of another type that holds it.
pub(crate) fn as_type(value: &Value, dtype: &DataType, repr: Repr, out: &mut Emitter) -> Value {
    let ctype = repr.device_type();
    let code = out.let_(ctype, format_args!("({ctype}){}", value.code));
    Value::new(dtype.clone(), repr, code, value.valid.clone())
}
