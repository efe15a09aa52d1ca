//! Intervals: sums, products, parts and what they are compared by (`kernels/interval.cuh`).

use datafusion::arrow::datatypes::IntervalUnit;

use super::calendar::per_second;
use super::*;
use crate::codegen::device_function::{INTERVAL_OF, KernelHeader};
use crate::host::{IntervalPart, part_of};

/// The type of all intervals in SQL.
pub(super) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

impl Compiler<'_> {
    /// The sum of two intervals, or the difference, part by part.
    pub(super) fn interval_sum(
        &mut self,
        left: &Expr,
        right: &Expr,
        sign: i32,
        dtype: &DataType,
    ) -> Result<Value> {
        let (a, b) = (self.value(left)?, self.value(right)?);
        if [&a.dtype, &b.dtype, dtype] != [&INTERVAL; 3] {
            return Err(not_yet(format!("arithmetic of {} and {}", a.dtype, b.dtype)));
        }
        let valid = both(&a.valid, &b.valid, self.out);
        self.out.needs(KernelHeader::Interval);
        let call = format!("interval_sum((i128){}, (i128){}, {sign}", a.code, b.code);
        self.by_interval(call, dtype, Repr::I128, valid)
    }

    /// `interval_times(interval, number)`.
    pub(super) fn interval_times(
        &mut self,
        interval: &Expr,
        factor: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let (by, factor) = (self.value(interval)?, self.value(factor)?);
        let cast = match (by.dtype == *dtype, &factor.dtype) {
            (true, DataType::Int64) => "i64",
            (true, DataType::Float64) => "f64",
            _ => return Err(not_yet(format!("{} times {}", by.dtype, factor.dtype))),
        };
        let valid = both(&by.valid, &factor.valid, self.out);
        self.out.needs(KernelHeader::Interval);
        let call = format!("interval_times((i128){}, ({cast}){}", by.code, factor.code);
        self.by_interval(call, dtype, Repr::I128, valid)
    }

    /// `justified(interval or duration)`.
    pub(super) fn justified(&mut self, interval: &Expr, dtype: &DataType) -> Result<Value> {
        let value = self.value(interval)?;
        let packed = match &value.dtype {
            DataType::Interval(IntervalUnit::MonthDayNano) => format!("(i128){}", value.code),
            DataType::Duration(unit) => {
                let parts =
                    format!("interval_of_ticks((i64){}, {}ll)", value.code, per_second(unit));
                let of = self.out.let_("interval", parts);
                format!("interval_packed(0, {of}.days, {of}.nanos)")
            }
            other => return Err(not_yet(format!("the length of {other}"))),
        };
        self.out.needs(KernelHeader::Interval);
        let rvalue = format!("interval_justified({packed})");
        Ok(self.result(dtype.clone(), Repr::I128, rvalue, value.valid))
    }

    /// A part of an interval or of a duration.
    pub(super) fn interval_part(
        &mut self,
        function: &datafusion::logical_expr::ScalarUDF,
        of: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let value = self.value(of)?;
        let parts = match &value.dtype {
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                format!("{}((i128){})", self.out.calls(INTERVAL_OF), value.code)
            }
            DataType::Duration(unit) => {
                format!("interval_of_ticks((i64){}, {}ll)", value.code, per_second(unit))
            }
            other => return Err(not_yet(format!("a part of {other}"))),
        };
        let Some(part) = part_of(function) else {
            return Err(not_yet("a part of an interval"));
        };
        self.out.needs(KernelHeader::Interval);
        let of = self.out.let_("interval", parts);
        use IntervalPart::*;
        self.out.divides(match part {
            Epoch | Day => 0,
            Quarter | Minute | Second | Millisecond | Microsecond => 2,
            _ => 1,
        });
        let part = match part {
            Millennium => format!("{of}.months / 12000"),
            Century => format!("{of}.months / 1200"),
            Decade => format!("{of}.months / 120"),
            Year => format!("{of}.months / 12"),
            Quarter => format!("{of}.months % 12 / 3 + 1"),
            Month => format!("{of}.months % 12"),
            Day => format!("{of}.days"),
            Hour => format!("{of}.nanos / 3600000000000ll"),
            Minute => format!("{of}.nanos % 3600000000000ll / 60000000000ll"),
            Second => format!("{of}.nanos % 60000000000ll / 1000000000ll"),
            Millisecond => format!("{of}.nanos % 60000000000ll / 1000000ll"),
            Microsecond => format!("{of}.nanos % 60000000000ll / 1000ll"),
            Nanosecond => format!("{of}.nanos % 60000000000ll"),
            Epoch => {
                let rvalue = format!("interval_epoch({of})");
                return Ok(self.result(dtype.clone(), Repr::F64, rvalue, value.valid));
            }
        };
        let repr = repr_of(dtype)?;
        let rvalue = format!("({})({part})", repr.device_type());
        Ok(self.result(dtype.clone(), repr, rvalue, value.valid))
    }

    /// `in_unit(date or timestamp)`.
    pub(super) fn in_unit(&mut self, time: &Expr, dtype: &DataType) -> Result<Value> {
        let value = self.value(time)?;
        let length = match (&value.dtype, dtype) {
            (DataType::Date32, DataType::Timestamp(to, _)) => 86_400 * per_second(to),
            (DataType::Timestamp(from, _), DataType::Timestamp(to, _)) => {
                per_second(to) / per_second(from)
            }
            (other, _) => return Err(not_yet(format!("{other} in another unit"))),
        };
        let (low, high) = value.bounds();
        let (least, most) = type_bounds(dtype);
        let within = |bound: i128| (bound * i128::from(length)).clamp(least, most);
        self.out.needs(KernelHeader::Interval);
        let rvalue = format!("interval_in_unit((i64){}, {length}ll)", value.code);
        let result = self.result(dtype.clone(), Repr::I64, rvalue, value.valid);
        Ok(result.with_range(Some((within(low), within(high)))))
    }
}
