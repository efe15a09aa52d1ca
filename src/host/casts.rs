//! Casts between decimals and floats that yield the value nearest to the exact one.
//!
//! Arrow divides a decimal's digits, rounded to a float, by a power of ten, rounded to a float, and so rounds up to three times
//! (arrow-cast 59.3, <https://github.com/apache/arrow-rs/issues/10508>); the other way it rounds a product before it rounds to digits.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, FixedSizeListArray, GenericListArray, OffsetSizeTrait,
    PrimitiveArray, StructArray,
};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, FieldRef, Float16Type,
    Float32Type, Float64Type, i256,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::format::DEFAULT_CAST_OPTIONS;
use datafusion::error::Result;
use half::f16;

/// Whether a cast has a decimal made a float, or a float made a decimal, in lists and structs too.
pub(super) fn rounds(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    match (from, to) {
        (List(a), List(b)) | (LargeList(a), LargeList(b)) | (FixedSizeList(a, _), FixedSizeList(b, _)) => {
            rounds(a.data_type(), b.data_type())
        }
        (Struct(a), Struct(b)) if same_names(a, b) => {
            a.iter().zip(b).any(|(a, b)| rounds(a.data_type(), b.data_type()))
        }
        (from, to) => from.is_decimal() && to.is_floating() || from.is_floating() && to.is_decimal(),
    }
}

fn same_names(a: &[FieldRef], b: &[FieldRef]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.name() == b.name())
}

/// The cast; what has no value of the type becomes null, or is an error.
pub(super) fn cast_exactly(array: &ArrayRef, to: &DataType, or_null: bool) -> Result<ArrayRef> {
    use DataType::*;
    if !rounds(array.data_type(), to) {
        let options = CastOptions { safe: or_null, ..DEFAULT_CAST_OPTIONS };
        return Ok(cast_with_options(array, to, &options)?);
    }
    Ok(match (array.data_type(), to) {
        (List(_), List(item)) => cast_lists::<i32>(array, item, or_null)?,
        (LargeList(_), LargeList(item)) => cast_lists::<i64>(array, item, or_null)?,
        (FixedSizeList(_, size), FixedSizeList(item, _)) => {
            let lists = array.as_fixed_size_list();
            let values = cast_exactly(lists.values(), item.data_type(), or_null)?;
            Arc::new(FixedSizeListArray::try_new(item.clone(), *size, values, lists.nulls().cloned())?)
        }
        (Struct(_), Struct(fields)) => {
            let structs = array.as_struct();
            let columns = structs.columns().iter().zip(fields);
            let columns = columns.map(|(column, field)| cast_exactly(column, field.data_type(), or_null));
            Arc::new(StructArray::try_new(fields.clone(), columns.collect::<Result<_>>()?, structs.nulls().cloned())?)
        }
        (Decimal32(_, scale), _) => to_floats::<Decimal32Type>(array, *scale, to, |v| v.into()),
        (Decimal64(_, scale), _) => to_floats::<Decimal64Type>(array, *scale, to, |v| v.into()),
        (Decimal128(_, scale), _) => to_floats::<Decimal128Type>(array, *scale, to, Digits::Few),
        (Decimal256(_, scale), _) => {
            to_floats::<Decimal256Type>(array, *scale, to, |v| v.to_i128().map_or(Digits::Many(v), Digits::Few))
        }
        (Float16, _) => to_decimals(array.as_primitive::<Float16Type>(), f16::to_f64, to, or_null)?,
        (Float32, _) => to_decimals(array.as_primitive::<Float32Type>(), f64::from, to, or_null)?,
        _ => to_decimals(array.as_primitive::<Float64Type>(), |value| value, to, or_null)?,
    })
}

fn cast_lists<O: OffsetSizeTrait>(array: &ArrayRef, item: &FieldRef, or_null: bool) -> Result<ArrayRef> {
    let lists: &GenericListArray<O> = array.as_list();
    let values = cast_exactly(lists.values(), item.data_type(), or_null)?;
    let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
    Ok(Arc::new(GenericListArray::<O>::try_new(item.clone(), offsets, values, nulls)?))
}

/// The digits of a decimal.
#[derive(Debug, Clone, Copy)]
enum Digits {
    Few(i128),
    Many(i256),
}

impl From<i32> for Digits {
    fn from(value: i32) -> Self {
        Digits::Few(value.into())
    }
}

impl From<i64> for Digits {
    fn from(value: i64) -> Self {
        Digits::Few(value.into())
    }
}

fn to_floats<D: ArrowPrimitiveType>(
    array: &ArrayRef,
    scale: i8,
    to: &DataType,
    digits: impl Fn(D::Native) -> Digits,
) -> ArrayRef {
    let decimals = array.as_primitive::<D>();
    match to {
        DataType::Float16 => {
            // A float has bits to spare for a second rounding, if the first one does not hide that it was one.
            let half = |value| f16::from_f32(odd_f32_of(digits(value), scale));
            Arc::new(decimals.unary::<_, Float16Type>(half))
        }
        DataType::Float32 => Arc::new(decimals.unary::<_, Float32Type>(|value| f32_of(digits(value), scale))),
        _ => Arc::new(decimals.unary::<_, Float64Type>(|value| f64_of(digits(value), scale))),
    }
}

/// The double nearest to `digits` over ten to the `scale`.
fn f64_of(digits: Digits, scale: i8) -> f64 {
    // Both are exact, so that the one division rounds.
    if let (Digits::Few(value), 0..=22) = (digits, scale)
        && value.unsigned_abs() < 1 << 53
    {
        return value as f64 / POWERS[scale as usize];
    }
    text_of(digits, scale).parse().unwrap_or(f64::NAN)
}

fn f32_of(digits: Digits, scale: i8) -> f32 {
    if let (Digits::Few(value), 0..=10) = (digits, scale)
        && value.unsigned_abs() < 1 << 24
    {
        return value as f32 / POWERS[scale as usize] as f32;
    }
    text_of(digits, scale).parse().unwrap_or(f32::NAN)
}

/// A float that is exact, or next to the value and odd: to round it to half the bits is to round the value.
fn odd_f32_of(digits: Digits, scale: i8) -> f32 {
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

fn text_of(digits: Digits, scale: i8) -> String {
    let exponent = -i32::from(scale);
    match digits {
        Digits::Few(value) => format!("{value}e{exponent}"),
        Digits::Many(value) => format!("{value}e{exponent}"),
    }
}

/// Powers of ten that are exact doubles.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

fn to_decimals<F: ArrowPrimitiveType>(
    floats: &PrimitiveArray<F>,
    double: impl Fn(F::Native) -> f64,
    to: &DataType,
    or_null: bool,
) -> Result<ArrayRef> {
    match to {
        DataType::Decimal32(precision, scale) => {
            let native = |value: i256| value.to_i128().and_then(|value| i32::try_from(value).ok());
            decimals::<F, Decimal32Type>(floats, double, native, (*precision, *scale), or_null)
        }
        DataType::Decimal64(precision, scale) => {
            let native = |value: i256| value.to_i128().and_then(|value| i64::try_from(value).ok());
            decimals::<F, Decimal64Type>(floats, double, native, (*precision, *scale), or_null)
        }
        DataType::Decimal256(precision, scale) => {
            decimals::<F, Decimal256Type>(floats, double, Some, (*precision, *scale), or_null)
        }
        DataType::Decimal128(precision, scale) => {
            decimals::<F, Decimal128Type>(floats, double, |value| value.to_i128(), (*precision, *scale), or_null)
        }
        other => Ok(cast_with_options(floats, other, &CastOptions { safe: or_null, ..DEFAULT_CAST_OPTIONS })?),
    }
}

fn decimals<F, D>(
    floats: &PrimitiveArray<F>,
    double: impl Fn(F::Native) -> f64,
    native: impl Fn(i256) -> Option<D::Native>,
    (precision, scale): (u8, i8),
    or_null: bool,
) -> Result<ArrayRef>
where
    F: ArrowPrimitiveType,
    D: DecimalType,
{
    let digits = |value: F::Native| digits_of(double(value), scale).and_then(&native);
    let fits = |value: &D::Native| D::is_valid_decimal_precision(*value, precision);
    let decimals: PrimitiveArray<D> = match or_null {
        true => floats.unary_opt(|value| digits(value).filter(fits)),
        false => floats.try_unary(|value| {
            digits(value).filter(fits).ok_or_else(|| {
                ArrowError::CastError(format!(
                    "Cannot cast to {}({precision}, {scale}). Overflowing on {:?}",
                    D::PREFIX,
                    value
                ))
            })
        })?,
    };
    Ok(Arc::new(decimals.with_precision_and_scale(precision, scale)?))
}

/// `value` times ten to the `scale`, rounded to an integer, halves away from zero; `None` of what is no number, or too great.
fn digits_of(value: f64, scale: i8) -> Option<i256> {
    if !value.is_finite() {
        return None;
    }
    if let 0..=22 = scale {
        let power = POWERS[scale as usize];
        let product = value * power;
        if product.abs() < (1u64 << 52) as f64 {
            let rounded = product.round();
            // A product that was rounded up to a half is less than one.
            let lifted = (product - product.trunc()).abs() == 0.5 && value.mul_add(power, -product) * product < 0.0;
            let digits = if lifted { product.trunc() } else { rounded };
            return Some(i256::from_i128(digits as i128));
        }
    }
    // So little is less than a half; what is not has less than 400 digits behind the point.
    if value.abs() < 1e-130 {
        return Some(i256::ZERO);
    }
    rounded_text(&format!("{:.500}", value.abs()), scale).map(|digits| if value < 0.0 { -digits } else { digits })
}

/// The same of the exact digits of a number.
fn rounded_text(text: &str, scale: i8) -> Option<i256> {
    let (whole, fraction) = text.split_once('.')?;
    let place = whole.len() as i64 + i64::from(scale);
    if place < 0 {
        return Some(i256::ZERO);
    }
    let mut digits = whole.bytes().chain(fraction.bytes()).chain(std::iter::repeat(b'0'));
    let mut number = i256::ZERO;
    for digit in digits.by_ref().take(place as usize) {
        number = number.checked_mul(i256::from_i128(10))?.checked_add(i256::from_i128((digit - b'0').into()))?;
    }
    let up = digits.next().is_some_and(|digit| digit >= b'5');
    if up { number.checked_add(i256::ONE) } else { Some(number) }
}

#[cfg(test)]
mod tests {
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
            assert_eq!(f64_of(Digits::Few(digits), scale), text.parse::<f64>().expect("a number"), "{text}");
            assert_eq!(f32_of(Digits::Few(digits), scale), text.parse::<f32>().expect("a number"), "{text}");
        }
        // A unit in the last place off where digits are rounded first.
        assert_eq!(f64_of(Digits::Few(9_007_199_254_740_993), 1), 900719925474099.3);
    }

    #[test]
    fn floats_become_the_nearest_decimals_halves_away_from_zero() {
        let cases: [(f64, i8, i128); 12] = [
            (2.675, 2, 267), // 2.67499…
            (-2.675, 2, -267),
            (0.125, 2, 13),
            (-0.125, 2, -13),
            (2.5, 0, 3),
            (1e15, 10, 10i128.pow(25)),
            (1e22, 15, 10i128.pow(37)),
            (0.1, 30, 100_000_000_000_000_005_551_115_123_126),
            (150.0, -2, 2),
            (149.0, -2, 1),
            (f64::MIN_POSITIVE, 38, 0),
            (4503599627370495.5, 0, 4503599627370496),
        ];
        for (value, scale, digits) in cases {
            assert_eq!(digits_of(value, scale), Some(i256::from_i128(digits)), "{value} to {scale} places");
        }
        assert_eq!(digits_of(f64::NAN, 2), None);
        assert_eq!(digits_of(f64::NEG_INFINITY, 2), None);
        assert_eq!(digits_of(1e300, 2), None);
    }
}
