//! Which casts can fail.

use datafusion::arrow::datatypes::{DataType, TimeUnit};

/// Whether some value of a type has no place in another.
pub(crate) fn cast_fails(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    let (from, to) = (plain(from), plain(to));
    let text = |dtype: &DataType| matches!(dtype, Utf8 | LargeUtf8 | Utf8View);
    let bytes = |dtype: &DataType| matches!(dtype, Binary | LargeBinary | BinaryView);
    match (from, to) {
        (from, to) if from == to => false,
        (Null, _) => false,
        (from, to) if text(from) => !text(to),
        (from, to) if bytes(from) => !bytes(to) && !text(to),
        (Boolean, to) => !(to.is_integer() || to.is_floating() || text(to)),
        (from, Boolean) => !(from.is_integer() || from.is_floating()),
        (from, to) if text(to) => !(from.is_integer() || from.is_floating() || from.is_decimal()),
        (from, to) if from.is_integer() && to.is_integer() => !holds_integers(from, to),
        (from, to) if from.is_integer() && to.is_floating() => false,
        (from, Decimal128(precision, scale)) if from.is_integer() => {
            digits(from) + i16::from(*scale).max(0) > i16::from(*precision)
        }
        (Float32, Float64) | (Float64, Float32) | (Float16, Float32 | Float64) => false,
        (Decimal128(_, _), Float32 | Float64) => false,
        (Decimal128(p, s), Decimal128(to_p, to_s)) => {
            !(s <= to_s && i16::from(*p) - i16::from(*s) <= i16::from(*to_p) - i16::from(*to_s))
        }
        (Int32, Date32) | (Date32, Int32 | Int64) => false,
        (Int64, Timestamp(_, None)) | (Timestamp(_, _), Int64) => false,
        (Timestamp(_, None), Date32) => false,
        (Date32, Timestamp(unit, None)) => {
            matches!(unit, TimeUnit::Microsecond | TimeUnit::Nanosecond)
        }
        // To a coarser unit, or the same.
        (Timestamp(from, zone), Timestamp(to, to_zone)) => {
            per_second(from) < per_second(to) || zone != to_zone
        }
        _ => true,
    }
}

/// Whether a cast has a value for each value, another one for each other one, and in their order: a
/// comparison may then be of what is cast. Instants in a finer unit count, which may have none for
/// the farthest.
pub(crate) fn cast_keeps(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    match (plain(from), plain(to)) {
        (from, to) if from == to => true,
        (Timestamp(from, zone), Timestamp(to, to_zone)) => {
            per_second(from) <= per_second(to) && zone.is_some() == to_zone.is_some()
        }
        (Date32, Date64 | Int32 | Int64) | (Int32, Date32) => true,
        (FixedSizeBinary(_), Binary | LargeBinary | BinaryView) => true,
        (from, to) => {
            let text = |dtype: &DataType| matches!(dtype, Utf8 | LargeUtf8 | Utf8View);
            // Texts of integers are not in the order of these, but differ as they do.
            let known = from.is_integer() && (to.is_integer() || to.is_decimal() || text(to))
                || from.is_decimal() && to.is_decimal()
                || text(from) && text(to);
            known && !cast_fails(from, to)
        }
    }
}

/// Whether DataFusion (55.2) takes such a cast off what is compared with a constant although it does
/// not keep all values apart (<https://github.com/apache/datafusion/issues/23095>).
pub(crate) fn cast_is_wrongly_dropped(from: &DataType, to: &DataType) -> bool {
    let number = |dtype: &DataType| dtype.is_integer() || dtype.is_decimal();
    let instant = |dtype: &DataType| matches!(dtype, DataType::Timestamp(_, _));
    let (inner, outer) = (plain(from), plain(to));
    (number(inner) && number(outer) || instant(inner) && instant(outer)) && !cast_keeps(from, to)
}

/// The type of values, where a dictionary wraps them.
fn plain(dtype: &DataType) -> &DataType {
    match dtype {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

fn holds_integers(from: &DataType, to: &DataType) -> bool {
    let (narrow, wide) = (from.primitive_width(), to.primitive_width());
    match (from.is_signed_integer(), to.is_signed_integer()) {
        (true, false) => false,
        (false, true) => narrow < wide,
        _ => narrow <= wide,
    }
}

/// Decimal digits of the largest value.
fn digits(integer: &DataType) -> i16 {
    match integer.primitive_width() {
        Some(1) => 3,
        Some(2) => 5,
        Some(4) => 10,
        _ if integer.is_unsigned_integer() => 20,
        _ => 19,
    }
}

fn per_second(unit: &TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}
