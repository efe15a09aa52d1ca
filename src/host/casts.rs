//! Casts that Arrow does otherwise than the device: of decimals to the nearest floats, of floats to
//! the decimals that their digits say, of both to the nearest integers, of milliseconds to the day
//! that they lie in, of texts to times (`text_casts.rs`), lists and structs (`nested_texts.rs`), of
//! texts to bytes and back (`bytes.rs`), of lists to texts, in which nulls are shown, of times and
//! intervals to texts (`time_texts.rs`), of local times to instants (`zones.rs`), and to lists of
//! what is none.
//!
//! Arrow divides a decimal's digits, rounded to a float, by a power of ten, rounded to a float, and
//! so rounds up to three times (arrow-cast 59.3,
//! <https://github.com/apache/arrow-rs/issues/10508>); the other way it rounds a product, which has
//! digits of its own from 2^53 on: 1e15 as decimal(38, 10) ended in .0905969664. Here a float is
//! what its text says.
//!
//! A `Date64` before 1970 that is no midnight Arrow makes the next day (`Date64` to `Date32` in
//! `cast/mod.rs`), while of a timestamp at the same time it makes the day itself.

mod bytes;
mod nested_texts;
mod text_casts;

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, FixedSizeListArray, GenericListArray,
    OffsetSizeTrait, PrimitiveArray, StringViewArray, StructArray, new_null_array,
};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options, nullif};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DecimalType, FieldRef, Float16Type, Float32Type, Float64Type, Int64Type, TimeUnit, i256,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::format::DEFAULT_CAST_OPTIONS;
use datafusion::common::internal_err;
use datafusion::error::Result;
use half::f16;

pub(super) use self::text_casts::{is_read, whole_minutes};
pub(crate) use self::text_casts::{plain_moment, with_units};
use super::time_texts::{TIME_TEXTS, is_of_time, value_texts};
use super::zones;

/// Whether a cast is one of those, in lists and structs too.
pub(super) fn differs(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    match (from, to) {
        (List(a), List(b))
        | (LargeList(a), LargeList(b))
        | (FixedSizeList(a, _), FixedSizeList(b, _)) => differs(a.data_type(), b.data_type()),
        (Struct(a), Struct(b)) if same_names(a, b) => {
            a.iter().zip(b).any(|(a, b)| differs(a.data_type(), b.data_type()))
        }
        (Date64, Date32) => true,
        (Float64, Float32 | Float16) | (Float32, Float16) => true,
        (from, to) if ticks_in(from, to).is_some() => true,
        (from, to) => {
            from.is_decimal() && (to.is_floating() || to.is_integer())
                || from.is_floating() && (to.is_decimal() || to.is_integer())
                || text_casts::reads(from, to)
                || nested_texts::wraps(from, to)
                || bytes::shows(from, to)
                || from.is_list() && to.is_string()
                || is_of_time(from) && to.is_string()
                || zones::shows(from, to)
        }
    }
}

/// Whether constants may be cast to a type otherwise than Arrow does it.
pub(super) fn of_constants(to: &DataType) -> bool {
    to.is_integer() || to.is_string()
}

fn same_names(a: &[FieldRef], b: &[FieldRef]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.name() == b.name())
}

/// The cast; what has no value of the type becomes null, or is an error.
pub(crate) fn cast_exactly(array: &ArrayRef, to: &DataType, or_null: bool) -> Result<ArrayRef> {
    use DataType::*;
    if !differs(array.data_type(), to) {
        let options = CastOptions { safe: or_null, ..DEFAULT_CAST_OPTIONS };
        return Ok(cast_with_options(array, to, &options)?);
    }
    Ok(match (array.data_type(), to) {
        (List(_), List(item)) => cast_lists::<i32>(array, item, or_null)?,
        (LargeList(_), LargeList(item)) => cast_lists::<i64>(array, item, or_null)?,
        (FixedSizeList(_, size), FixedSizeList(item, _)) => {
            let lists = array.as_fixed_size_list();
            let values = cast_exactly(lists.values(), item.data_type(), or_null)?;
            Arc::new(FixedSizeListArray::try_new(
                item.clone(),
                *size,
                values,
                lists.nulls().cloned(),
            )?)
        }
        (Struct(_), Struct(fields)) => {
            let structs = array.as_struct();
            let columns = structs.columns().iter().zip(fields);
            let columns =
                columns.map(|(column, field)| cast_exactly(column, field.data_type(), or_null));
            Arc::new(StructArray::try_new(
                fields.clone(),
                columns.collect::<Result<_>>()?,
                structs.nulls().cloned(),
            )?)
        }
        (from, to) if ticks_in(from, to).is_some() => to_finer(array, to, or_null)?,
        (from, Float32 | Float16) if from.is_floating() => to_narrow_floats(array, to, or_null)?,
        (from, to) if to.is_integer() && (from.is_decimal() || from.is_floating()) => {
            to_integers(array, to, or_null)?
        }
        (Decimal32(_, scale), _) => to_floats::<Decimal32Type>(array, *scale, to, |v| v.into()),
        (Decimal64(_, scale), _) => to_floats::<Decimal64Type>(array, *scale, to, |v| v.into()),
        (Decimal128(_, scale), _) => {
            to_floats::<Decimal128Type>(array, *scale, to, DecimalDigits::Few)
        }
        (Decimal256(_, scale), _) => to_floats::<Decimal256Type>(array, *scale, to, |v| {
            v.to_i128().map_or(DecimalDigits::Many(v), DecimalDigits::Few)
        }),
        (Date64, Date32) => to_days(array, or_null)?,
        (from, to) if text_casts::reads(from, to) => text_casts::read(array, to, or_null)?,
        (from, to) if nested_texts::wraps(from, to) => {
            match or_null || array.null_count() == array.len() {
                true => new_null_array(to, array.len()),
                false => return Err(nested_texts::no_list(from, to).into()),
            }
        }
        // A null within is no empty text.
        (from, to) if from.is_list() && to.is_string() => {
            let format_options = DEFAULT_CAST_OPTIONS
                .format_options
                .with_null("NULL")
                .with_formatter_factory(Some(&TIME_TEXTS));
            cast_with_options(array, to, &CastOptions { safe: or_null, format_options })?
        }
        (from, to) if is_of_time(from) && to.is_string() => {
            let texts = value_texts(array, &DEFAULT_CAST_OPTIONS.format_options)?;
            // What no calendar has is an error there, and no text.
            let text = |row| match texts.value(row).try_to_string() {
                _ if array.is_null(row) => Ok(None),
                Err(_) if or_null => Ok(None),
                text => text.map(Some),
            };
            let texts: StringViewArray = (0..array.len()).map(text).collect::<Result<_, _>>()?;
            cast(&(Arc::new(texts) as ArrayRef), to)?
        }
        (from, to) if bytes::shows(from, to) => bytes::shown(array, to)?,
        (from, to) if zones::shows(from, to) => zones::instants(array, to, or_null)?,
        _ => to_decimals(array, to, or_null)?,
    })
}

/// How many ticks of a finer unit a day or a tick has, where a time of one type is cast to another
/// by that alone.
fn ticks_in(from: &DataType, to: &DataType) -> Option<i64> {
    let per_second = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000i64,
    };
    match (from, to) {
        (DataType::Date32, DataType::Timestamp(unit, None)) => Some(86_400 * per_second(unit)),
        (DataType::Timestamp(from, zone), DataType::Timestamp(to, own)) if zone == own => {
            Some(per_second(to) / per_second(from)).filter(|ticks| *ticks > 1)
        }
        _ => None,
    }
}

/// Times of a finer unit. What lies beyond it DataFusion (55.2) has as an error under TRY_CAST, too
/// (<https://github.com/apache/datafusion/issues/22896>).
fn to_finer(array: &ArrayRef, to: &DataType, or_null: bool) -> Result<ArrayRef> {
    let Some(length) = ticks_in(array.data_type(), to) else {
        return internal_err!("{} is no finer than {}", to, array.data_type());
    };
    let counts = match array.data_type() {
        DataType::Date32 => cast(&cast(array, &DataType::Int32)?, &DataType::Int64)?,
        _ => cast(array, &DataType::Int64)?,
    };
    let counts = counts.as_primitive::<Int64Type>();
    let ticks = match or_null {
        true => counts.unary_opt::<_, Int64Type>(|count| count.checked_mul(length)),
        false => counts.try_unary::<_, Int64Type, _>(|count| {
            let text = || format!("Can't cast value {count} of {} to type {to}", array.data_type());
            count.checked_mul(length).ok_or_else(|| ArrowError::CastError(text()))
        })?,
    };
    Ok(cast(&(Arc::new(ticks) as ArrayRef), to)?)
}

/// Floats that have fewer digits; what is finite is no infinity then.
fn to_narrow_floats(array: &ArrayRef, to: &DataType, or_null: bool) -> Result<ArrayRef> {
    let narrow = cast(array, to)?;
    let (given, found) = (cast(array, &DataType::Float64)?, cast(&narrow, &DataType::Float64)?);
    let (given, found) = (given.as_primitive::<Float64Type>(), found.as_primitive::<Float64Type>());
    let is_outside = |at: usize| {
        given.is_valid(at) && given.value(at).is_finite() && !found.value(at).is_finite()
    };
    match (0..given.len()).find(|at| is_outside(*at)) {
        None => Ok(narrow),
        Some(at) if !or_null => {
            let text = format!("Can't cast value {:?} to type {to}", given.value(at));
            Err(ArrowError::CastError(text).into())
        }
        Some(_) => Ok(nullif(&narrow, &(0..given.len()).map(|at| Some(is_outside(at))).collect())?),
    }
}

/// The nearest integers: of two, for a float the even one, and for a decimal the one away from
/// zero, as in PostgreSQL and DuckDB. Arrow cuts off what is behind the point.
fn to_integers(array: &ArrayRef, to: &DataType, or_null: bool) -> Result<ArrayRef> {
    use DataType::*;
    let options = CastOptions { safe: or_null, ..DEFAULT_CAST_OPTIONS };
    let whole: ArrayRef = match array.data_type() {
        Float16 => Arc::new(
            array
                .as_primitive::<Float16Type>()
                .unary::<_, Float32Type>(|value| value.to_f32().round_ties_even()),
        ),
        Float32 => Arc::new(
            array.as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::round_ties_even),
        ),
        Float64 => Arc::new(
            array.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::round_ties_even),
        ),
        Decimal256(_, _) => cast_with_options(array, &Decimal256(76, 0), &options)?,
        _ => cast_with_options(array, &Decimal128(38, 0), &options)?,
    };
    Ok(cast_with_options(&whole, to, &options)?)
}

const MILLISECONDS_A_DAY: i64 = 86_400_000;

fn to_days(array: &ArrayRef, or_null: bool) -> Result<ArrayRef> {
    let milliseconds = array.as_primitive::<Date64Type>();
    let day = |value: i64| i32::try_from(value.div_euclid(MILLISECONDS_A_DAY));
    if or_null {
        return Ok(Arc::new(milliseconds.unary_opt::<_, Date32Type>(|value| day(value).ok())));
    }
    let days = milliseconds.try_unary::<_, Date32Type, _>(|value| {
        let text = || format!("Can't cast value {value} to type {}", DataType::Date32);
        day(value).map_err(|_| ArrowError::CastError(text()))
    });
    Ok(Arc::new(days?))
}

fn cast_lists<O: OffsetSizeTrait>(
    array: &ArrayRef,
    item: &FieldRef,
    or_null: bool,
) -> Result<ArrayRef> {
    let lists: &GenericListArray<O> = array.as_list();
    let values = cast_exactly(lists.values(), item.data_type(), or_null)?;
    let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
    Ok(Arc::new(GenericListArray::<O>::try_new(item.clone(), offsets, values, nulls)?))
}

/// The digits of a decimal.
#[derive(Debug, Clone, Copy)]
enum DecimalDigits {
    Few(i128),
    Many(i256),
}

impl From<i32> for DecimalDigits {
    fn from(value: i32) -> Self {
        DecimalDigits::Few(value.into())
    }
}

impl From<i64> for DecimalDigits {
    fn from(value: i64) -> Self {
        DecimalDigits::Few(value.into())
    }
}

fn to_floats<D: ArrowPrimitiveType>(
    array: &ArrayRef,
    scale: i8,
    to: &DataType,
    digits: impl Fn(D::Native) -> DecimalDigits,
) -> ArrayRef {
    let decimals = array.as_primitive::<D>();
    match to {
        DataType::Float16 => {
            // A float has bits to spare for a second rounding, if the first one does not hide that
            // it was one.
            let half = |value| f16::from_f32(odd_f32_of(digits(value), scale));
            Arc::new(decimals.unary::<_, Float16Type>(half))
        }
        DataType::Float32 => {
            Arc::new(decimals.unary::<_, Float32Type>(|value| f32_of(digits(value), scale)))
        }
        _ => Arc::new(decimals.unary::<_, Float64Type>(|value| f64_of(digits(value), scale))),
    }
}

/// The double nearest to `digits` over ten to the `scale`.
fn f64_of(digits: DecimalDigits, scale: i8) -> f64 {
    // Both are exact, so that the one division rounds.
    if let (DecimalDigits::Few(value), 0..=22) = (digits, scale)
        && value.unsigned_abs() < 1 << 53
    {
        return value as f64 / POWERS[scale as usize];
    }
    text_of(digits, scale).parse().unwrap_or(f64::NAN)
}

fn f32_of(digits: DecimalDigits, scale: i8) -> f32 {
    if let (DecimalDigits::Few(value), 0..=10) = (digits, scale)
        && value.unsigned_abs() < 1 << 24
    {
        return value as f32 / POWERS[scale as usize] as f32;
    }
    text_of(digits, scale).parse().unwrap_or(f32::NAN)
}

/// A float that is exact, or next to the value and odd: to round it to half the bits is to round
/// the value.
fn odd_f32_of(digits: DecimalDigits, scale: i8) -> f32 {
    let near = f32_of(digits, scale);
    let exact = f64_of(digits, scale);
    match (f64::from(near) == exact, near.to_bits() & 1) {
        (true, _) | (_, 1) => near,
        _ if near.is_infinite() => near,
        _ => {
            let away = (f64::from(near).abs() < exact.abs()) as i32 * 2 - 1;
            f32::from_bits(near.to_bits().wrapping_add_signed(away))
        }
    }
}

fn text_of(digits: DecimalDigits, scale: i8) -> String {
    let exponent = -i32::from(scale);
    match digits {
        DecimalDigits::Few(value) => format!("{value}e{exponent}"),
        DecimalDigits::Many(value) => format!("{value}e{exponent}"),
    }
}

/// Powers of ten that are exact doubles.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

fn to_decimals(floats: &ArrayRef, to: &DataType, or_null: bool) -> Result<ArrayRef> {
    let doubles = cast(floats, &DataType::Float64)?;
    match to {
        DataType::Decimal32(precision, scale) => {
            let native = |value: i256| value.to_i128().and_then(|value| i32::try_from(value).ok());
            decimals::<Decimal32Type>(&doubles, native, (*precision, *scale), or_null)
        }
        DataType::Decimal64(precision, scale) => {
            let native = |value: i256| value.to_i128().and_then(|value| i64::try_from(value).ok());
            decimals::<Decimal64Type>(&doubles, native, (*precision, *scale), or_null)
        }
        DataType::Decimal128(precision, scale) => decimals::<Decimal128Type>(
            &doubles,
            |value| value.to_i128(),
            (*precision, *scale),
            or_null,
        ),
        DataType::Decimal256(precision, scale) => {
            decimals::<Decimal256Type>(&doubles, Some, (*precision, *scale), or_null)
        }
        other => Ok(cast_with_options(
            floats,
            other,
            &CastOptions { safe: or_null, ..DEFAULT_CAST_OPTIONS },
        )?),
    }
}

fn decimals<D: DecimalType>(
    array: &ArrayRef,
    native: impl Fn(i256) -> Option<D::Native>,
    (precision, scale): (u8, i8),
    or_null: bool,
) -> Result<ArrayRef> {
    let doubles = array.as_primitive::<Float64Type>();
    // What arithmetic does not tell, the texts do: few rows ask for them.
    let mut texts: Option<ArrayRef> = None;
    let mut values: Vec<Option<D::Native>> = Vec::with_capacity(doubles.len());
    for (row, value) in doubles.iter().enumerate() {
        let Some(value) = value else {
            values.push(None);
            continue;
        };
        let digits = match near(value, scale) {
            Some(digits) => Some(i256::from_i128(digits.into())),
            None => {
                if texts.is_none() {
                    texts = Some(cast(array, &DataType::Utf8)?);
                }
                texts
                    .as_ref()
                    .and_then(|texts| digits_of(texts.as_string::<i32>().value(row), scale))
            }
        };
        let decimal = digits
            .and_then(&native)
            .filter(|value| D::is_valid_decimal_precision(*value, precision));
        if decimal.is_none() && !or_null {
            let to = format!("{}({precision}, {scale})", D::PREFIX);
            return Err(ArrowError::CastError(format!(
                "Cannot cast to {to}. Overflowing on {value:?}"
            ))
            .into());
        }
        values.push(decimal);
    }
    Ok(Arc::new(PrimitiveArray::<D>::from_iter(values).with_precision_and_scale(precision, scale)?))
}

/// The digits of a small product of the value and ten to the `scale`. It is off by less than 2^−11,
/// so that it rounds as the value's digits do if it is not that near to a half.
fn near(value: f64, scale: i8) -> Option<i64> {
    let product = value * POWERS.get(usize::try_from(scale).ok()?)?;
    let plain =
        product.abs() < (1u64 << 40) as f64 && (product.fract().abs() - 0.5).abs() > 1.0 / 2048.0;
    plain.then(|| product.round() as i64)
}

/// The number that a float's text is, times ten to the `scale`, halves away from zero; `None` of
/// what is no number, or too great. So 2.675 to two places is 2.68, whose double is a little less.
fn digits_of(text: &str, scale: i8) -> Option<i256> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let kept = whole.len() as i64 + exponent.parse::<i64>().ok()? + i64::from(scale);
    let number =
        rounded(whole.bytes().chain(fraction.bytes()).chain(std::iter::repeat(b'0')), kept)?;
    Some(if negative { -number } else { number })
}

/// The number of the first digits, rounded by the one behind.
fn rounded(mut digits: impl Iterator<Item = u8>, kept: i64) -> Option<i256> {
    let mut number = i256::ZERO;
    if kept < 0 {
        return Some(number);
    }
    for digit in digits.by_ref().take(kept as usize) {
        number = number
            .checked_mul(i256::from_i128(10))?
            .checked_add(i256::from_i128((digit - b'0').into()))?;
    }
    let up = digits.next().is_some_and(|digit| digit >= b'5');
    if up { number.checked_add(i256::ONE) } else { Some(number) }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Float64Array;

    use super::*;

    /// Numbers of every length, from a fixed seed.
    fn numbers() -> impl Iterator<Item = u128> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        std::iter::repeat_with(move || {
            let (high, low, drop) = (next(), next(), next() % 127);
            (u128::from(high) << 64 | u128::from(low)) >> 1 >> drop
        })
    }

    #[test]
    fn decimals_become_the_nearest_floats() {
        for (at, number) in numbers().take(20_000).enumerate() {
            let digits = (number % 10u128.pow(38)) as i128 * if at % 2 == 0 { 1 } else { -1 };
            let scale = (at % 45) as i8 - 5;
            let text = format!("{digits}e{}", -i32::from(scale));
            assert_eq!(
                f64_of(DecimalDigits::Few(digits), scale),
                text.parse::<f64>().expect("a number"),
                "{text}"
            );
            assert_eq!(
                f32_of(DecimalDigits::Few(digits), scale),
                text.parse::<f32>().expect("a number"),
                "{text}"
            );
        }
        // A unit in the last place off where digits are rounded first.
        assert_eq!(f64_of(DecimalDigits::Few(9_007_199_254_740_993), 1), 900719925474099.3);
    }

    #[test]
    fn floats_become_the_decimals_that_their_digits_say() {
        let cases: [(f64, i8, i128); 14] = [
            (2.675, 2, 268),
            (-1.005, 2, -101),
            (0.125, 2, 13),
            (-0.125, 2, -13),
            (2.5, 0, 3),
            (123456.7, 15, 1_234_567 * 10i128.pow(14)),
            (1e15, 10, 10i128.pow(25)),
            (1e22, 15, 10i128.pow(37)),
            (0.1, 30, 10i128.pow(29)),
            (150.0, -2, 2),
            (149.0, -2, 1),
            (f64::MIN_POSITIVE, 38, 0),
            (5e-39, 38, 1),
            (4503599627370495.5, 0, 4503599627370496),
        ];
        for (value, scale, digits) in cases {
            let doubles: ArrayRef = Arc::new(Float64Array::from(vec![value]));
            let decimals =
                cast_exactly(&doubles, &DataType::Decimal128(38, scale), false).expect("it fits");
            assert_eq!(
                decimals.as_primitive::<Decimal128Type>().value(0),
                digits,
                "{value} to {scale} places"
            );
        }
        for value in [f64::NAN, f64::NEG_INFINITY, 1e300] {
            let doubles: ArrayRef = Arc::new(Float64Array::from(vec![value]));
            assert!(cast_exactly(&doubles, &DataType::Decimal128(38, 2), false).is_err());
            assert_eq!(
                cast_exactly(&doubles, &DataType::Decimal128(38, 2), true)
                    .expect("null")
                    .null_count(),
                1
            );
        }
    }
}
