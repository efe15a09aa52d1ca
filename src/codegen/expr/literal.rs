//! Literals: values go through kernel parameters, so that other constants need no other kernel.

use super::*;
use crate::column::{decimal_bound, interval};

/// The value of an integer-like literal in its representation: integers, decimals, dates, times,
/// intervals.
pub(super) fn integer(literal: &ScalarValue) -> Option<i128> {
    use ScalarValue::*;
    Some(match literal {
        Int8(Some(v)) => (*v).into(),
        Int16(Some(v)) => (*v).into(),
        Int32(Some(v)) | Date32(Some(v)) | Time32Second(Some(v)) | Time32Millisecond(Some(v)) => {
            (*v).into()
        }
        IntervalYearMonth(Some(v)) => (*v).into(),
        IntervalDayTime(Some(v)) => interval::packed_day_time(*v).into(),
        IntervalMonthDayNano(Some(v)) => interval::packed_month_day_nano(*v),
        Int64(Some(v)) => (*v).into(),
        UInt8(Some(v)) => (*v).into(),
        UInt16(Some(v)) => (*v).into(),
        UInt32(Some(v)) => (*v).into(),
        UInt64(Some(v)) => (*v).into(),
        Decimal128(Some(v), _, _) => *v,
        TimestampSecond(Some(v), _)
        | TimestampMillisecond(Some(v), _)
        | TimestampMicrosecond(Some(v), _)
        | TimestampNanosecond(Some(v), _)
        | Date64(Some(v))
        | Time64Microsecond(Some(v))
        | Time64Nanosecond(Some(v))
        | DurationSecond(Some(v))
        | DurationMillisecond(Some(v))
        | DurationMicrosecond(Some(v))
        | DurationNanosecond(Some(v)) => (*v).into(),
        _ => return None,
    })
}

/// The text of a string literal.
pub(super) fn text(literal: &ScalarValue) -> Option<&str> {
    match literal {
        ScalarValue::Dictionary(_, value) => text(value),
        other => other.try_as_str().flatten(),
    }
}

/// An `i128` in device code, baked in.
pub(super) fn baked_i128(value: i128) -> String {
    match i64::try_from(value) {
        Ok(small) => baked_i64(small),
        Err(_) => format!("make_i128({}ull, {}ull)", (value >> 64) as u64, value as u64),
    }
}

/// An `i64` in device code, baked in.
pub(super) fn baked_i64(value: i64) -> String {
    // The most negative number has no literal of its own.
    if value == i64::MIN {
        "((i64)0x8000000000000000ull)".into()
    } else {
        format!("((i64){value}ll)")
    }
}

/// An integer constant baked in, as a value of the narrowest representation for arithmetic.
pub(super) fn baked(value: i128, dtype: DataType) -> Value {
    let (repr, code) = match (i32::try_from(value), i64::try_from(value)) {
        (Ok(small), _) => (Repr::I32, format!("((i32){small})")),
        (_, Ok(medium)) => (Repr::I64, baked_i64(medium)),
        _ => (Repr::I128, baked_i128(value)),
    };
    // `i32::MIN` as `(i32)-2147483648` is a cast of a 64-bit literal: well defined.
    Value::new(dtype, repr, code, None).with_range(Some((value, value)))
}

impl Compiler<'_> {
    pub(super) fn literal(&mut self, literal: &ScalarValue) -> Result<Value> {
        if let ScalarValue::Dictionary(_, value) = literal
            && coded_numbers(&literal.data_type()).is_some()
        {
            return self.literal(value);
        }
        let dtype = literal.data_type();
        if literal.is_null() {
            return self.null(&dtype);
        }
        if let Some(value) = integer(literal) {
            // A program may make any scalar; expressions reckon with the digits of the type.
            if decimal_bound(&dtype)
                .is_some_and(|bound| value.unsigned_abs() > bound.unsigned_abs())
            {
                let account = format!("unscaled value {value} is outside {dtype}");
                return Err(Error::arithmetic(crate::error::Fault::Overflow, account));
            }
            return Ok(self.integer_parameter(value, dtype));
        }
        let repr = repr_of(&dtype)?;
        Ok(match literal {
            ScalarValue::Boolean(Some(value)) => Value::new(dtype, repr, value.to_string(), None),
            ScalarValue::Float32(Some(value)) => {
                let bits = self.inputs.parameter(value.to_bits().into());
                let mut result =
                    self.result(dtype, repr, format!("float_of_bits((u32){bits})"), None);
                result.magnitude = value.is_finite().then(|| f64::from(value.abs()));
                result
            }
            ScalarValue::Float64(Some(value)) => {
                let bits = self.inputs.parameter(value.to_bits());
                let mut result = self.result(dtype, repr, format!("double_of_bits({bits})"), None);
                result.magnitude = value.is_finite().then(|| value.abs());
                result
            }
            ScalarValue::Binary(Some(bytes))
            | ScalarValue::LargeBinary(Some(bytes))
            | ScalarValue::BinaryView(Some(bytes))
            | ScalarValue::FixedSizeBinary(_, Some(bytes)) => {
                let view = self.inputs.octets(bytes);
                let mut result = self.result(dtype, repr, view, None);
                result.longest = u32::try_from(bytes.len()).ok();
                result
            }
            ScalarValue::List(_) | ScalarValue::LargeList(_) | ScalarValue::FixedSizeList(_) => {
                let code = self.inputs.list(&literal.to_array()?);
                self.result(dtype, repr, code, None)
            }
            ScalarValue::Struct(array) => {
                let field =
                    |column: &ArrayRef| self.literal(&ScalarValue::try_from_array(column, 0)?);
                Value::of_fields(
                    dtype,
                    array.columns().iter().map(field).collect::<Result<_>>()?,
                    None,
                )
            }
            other => match text(other) {
                Some(text) => {
                    let view = self.inputs.string(text);
                    let mut result = self.result(dtype, repr, view, None);
                    result.longest = u32::try_from(text.len()).ok();
                    result
                }
                None => return Err(not_yet(format!("literal {other}"))),
            },
        })
    }

    /// A null of a type; an untyped one poses as a boolean.
    pub(super) fn null(&mut self, dtype: &DataType) -> Result<Value> {
        Value::null(dtype).ok_or_else(|| not_yet(format!("type {dtype}")))
    }

    /// An integer constant as a kernel parameter.
    pub(super) fn integer_parameter(&mut self, value: i128, dtype: DataType) -> Value {
        let low = self.inputs.parameter(value as u64);
        let (repr, code) = if i32::try_from(value).is_ok() {
            (Repr::I32, format!("((i32){low})"))
        } else if i64::try_from(value).is_ok() {
            (Repr::I64, format!("((i64){low})"))
        } else if dtype == DataType::UInt64 {
            (Repr::U64, format!("({low})"))
        } else {
            let high = self.inputs.parameter((value >> 64) as u64);
            (Repr::I128, format!("make_i128({high}, {low})"))
        };
        Value::new(dtype, repr, code, None).with_range(Some((value, value)))
    }
}
