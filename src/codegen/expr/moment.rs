//! Functions that make dates and timestamps: `date_bin`, `make_date`, `to_timestamp` and its like
//! (`kernels/interval.cuh`).

use datafusion::arrow::datatypes::TimeUnit;

use super::arithmetic::{ArithmeticStep, wide};
use super::calendar::{NANOS_PER_DAY, per_second};
use super::fit::OnError;
use super::time::Interval;
use super::*;
use crate::codegen::device_function::KernelHeader;
use crate::host::checked::MOST_SECONDS;

impl Compiler<'_> {
    /// `date_bin(stride, timestamp[, origin])`; what has no bin in the type is null.
    pub(super) fn binned(&mut self, arguments: &[Expr], dtype: &DataType) -> Result<Value> {
        let stride = as_literal(&arguments[0]).and_then(|stride| Interval::of(stride, 1));
        let origin = match arguments.get(2).map(as_literal) {
            None => Some(0),
            Some(Some(ScalarValue::TimestampNanosecond(Some(origin), _))) => Some(*origin),
            Some(Some(ScalarValue::Time64Nanosecond(Some(origin)))) => Some(*origin),
            Some(Some(ScalarValue::Time64Microsecond(Some(origin)))) => origin.checked_mul(1_000),
            Some(Some(ScalarValue::Time32Millisecond(Some(origin)))) => {
                Some(i64::from(*origin) * 1_000_000)
            }
            Some(Some(ScalarValue::Time32Second(Some(origin)))) => {
                Some(i64::from(*origin) * 1_000_000_000)
            }
            Some(_) => None,
        };
        let (Some(stride), Some(origin)) = (stride, origin) else {
            return Err(not_yet("date_bin with a stride or an origin that is no constant"));
        };
        let value = self.value(&arguments[1])?;
        let scale = match &value.dtype {
            DataType::Timestamp(unit, _) if value.dtype == *dtype => {
                1_000_000_000 / per_second(unit)
            }
            DataType::Time32(unit) | DataType::Time64(unit) if value.dtype == *dtype => {
                1_000_000_000 / per_second(unit)
            }
            other => return Err(not_yet(format!("date_bin of {other}"))),
        };
        let of_time = !matches!(value.dtype, DataType::Timestamp(_, _));
        if of_time && (stride.months != 0 || stride.total_nanos() >= NANOS_PER_DAY) {
            return Err(not_yet("date_bin of a time by a day or more"));
        }
        let (function, length) = match (stride.months, stride.total_nanos()) {
            (0, nanos) => ("interval_bin", nanos),
            (months, 0) => ("interval_bin_months", months),
            _ => return Err(not_yet("date_bin by months and days")),
        };
        let Some(length) = i64::try_from(length).ok().filter(|length| *length > 0) else {
            return Err(not_yet("date_bin by such a stride"));
        };
        let name = self.out.fresh();
        self.out.unset("i64", &name);
        let (length, origin) =
            (self.inputs.parameter(length as u64), self.inputs.parameter(origin as u64));
        // Times go round the day in nanoseconds.
        let (ticks, bin_scale) = match of_time {
            true => (format!("wrap_mul<i64>((i64){}, {scale}ll)", value.code), 1),
            false => (format!("(i64){}", value.code), scale),
        };
        self.out.needs(KernelHeader::Interval);
        let call =
            format!("{function}({ticks}, {bin_scale}, (i64){length}, (i64){origin}, &{name})");
        let found = self.out.let_("bool", call);
        let valid = both(&value.valid, &Some(found), self.out);
        if of_time {
            let repr = repr_of(dtype)?;
            self.out.divides(2);
            let ticks = format!("({})({name} % {NANOS_PER_DAY}ll / {scale}ll)", repr.device_type());
            return Ok(self.result(dtype.clone(), repr, ticks, valid));
        }
        Ok(Value::new(dtype.clone(), Repr::I64, name, valid))
    }

    /// `make_date(year, month, day)`.
    pub(super) fn date_of(
        &mut self,
        year: &Expr,
        month: &Expr,
        day: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let (year, month, day) = (self.value(year)?, self.value(month)?, self.value(day)?);
        if [&year.dtype, &month.dtype, &day.dtype] != [&DataType::Int32; 3]
            || *dtype != DataType::Date32
        {
            return Err(not_yet(format!(
                "make_date of {}, {}, {}",
                year.dtype, month.dtype, day.dtype
            )));
        }
        let valid = both(&year.valid, &month.valid, self.out);
        let valid = both(&valid, &day.valid, self.out);
        let name = self.out.fresh();
        self.out.unset("i32", &name);
        self.out.needs(KernelHeader::Interval);
        let call = format!(
            "interval_date((i32){}, (i32){}, (i32){}, &{name})",
            year.code, month.code, day.code
        );
        let made = self.out.let_("bool", call);
        self.fail_if(&valid, &format!("!{made}"), Failure::Domain);
        Ok(Value::new(DataType::Date32, Repr::I32, name, valid))
    }

    /// `to_timestamp(value)` and `to_timestamp_seconds(value)` and so on: numbers are seconds, or
    /// ticks of `unit`.
    pub(super) fn timestamp_from(
        &mut self,
        name: &str,
        value: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let DataType::Timestamp(unit, None) = dtype else {
            return Err(not_yet(format!("{name} as {dtype}")));
        };
        let value = self.value(value)?;
        let seconds = DataType::Timestamp(TimeUnit::Second, None);
        match &value.dtype {
            from if is_string(from) => {
                // All are read as nanoseconds first, and cut off. An offset counts.
                let instant = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
                let nanos = self.cast(value, &instant, OnError::Fail)?;
                let nanos =
                    Value { dtype: DataType::Timestamp(TimeUnit::Nanosecond, None), ..nanos };
                self.cast(nanos, dtype, OnError::Fail)
                    .map(|value| Value { dtype: DataType::Timestamp(*unit, None), ..value })
            }
            from if from.is_integer() && name == "to_timestamp" => {
                let value = self.cast(value, &seconds, OnError::Fail)?;
                self.cast(value, dtype, OnError::Fail)
            }
            from if from.is_integer() || matches!(from, DataType::Timestamp(_, None)) => {
                self.cast(value, dtype, OnError::Fail)
            }
            from if is_float(from) && name == "to_timestamp" => {
                let outside = format!("!(fabs((f64){}) < {MOST_SECONDS:?})", value.code);
                self.fail_if(&value.valid, &outside, Failure::Domain);
                self.out.needs(KernelHeader::Interval);
                let rvalue = format!("interval_ticks(fmul((f64){}, 1000000000.0))", value.code);
                Ok(self.result(dtype.clone(), Repr::I64, rvalue, value.valid))
            }
            from => Err(not_yet(format!("{name} of {from}"))),
        }
    }

    /// `to_unixtime(value)`: whole seconds.
    pub(super) fn unix_time_from(&mut self, value: &Expr) -> Result<Value> {
        let value_type = value.get_type(self.schema)?;
        let seconds = DataType::Timestamp(TimeUnit::Second, None);
        let value = match value_type {
            from if is_string(&from) => {
                self.timestamp_from("to_timestamp_seconds", value, &seconds)?
            }
            DataType::Timestamp(_, None) | DataType::Date32 => {
                let value = self.value(value)?;
                self.cast(value, &seconds, OnError::Fail)?
            }
            from if from.is_integer() => self.value(value)?,
            from if is_float(&from) => {
                let value = self.value(value)?;
                self.cut_off(value)
            }
            from => return Err(not_yet(format!("to_unixtime of {from}"))),
        };
        self.cast(value, &DataType::Int64, OnError::Fail)
    }

    /// A float without what is behind the point: these functions do not round.
    fn cut_off(&mut self, value: Value) -> Value {
        let function = if value.repr == Repr::F32 { "truncf" } else { "trunc" };
        let rvalue = format!("{function}({})", value.code);
        let cut = self.result(value.dtype.clone(), value.repr, rvalue, value.valid);
        Value { magnitude: value.magnitude, ..cut }
    }

    /// `to_date(value)`; what is behind the point is cut off.
    pub(super) fn date_from(&mut self, value: &Expr) -> Result<Value> {
        let value = self.value(value)?;
        let between = match &value.dtype {
            DataType::Int8
            | DataType::Int16
            | DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32
            | DataType::UInt64 => DataType::Int32,
            from if is_float(from) || from.is_decimal() => DataType::Int64,
            from => from.clone(),
        };
        let value = match value.dtype {
            DataType::Float32 | DataType::Float64 => self.cut_off(value),
            DataType::Decimal128(_, scale) if scale > 0 => {
                let factor = literal::baked(10i128.pow(u32::from(scale.unsigned_abs())), wide());
                self.integer(ArithmeticStep::Div, &value, &factor, &wide())?
            }
            _ => value,
        };
        let value = self.cast(value, &between, OnError::Fail)?;
        self.cast(value, &DataType::Date32, OnError::Fail)
    }
}
