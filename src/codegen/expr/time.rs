//! Dates and timestamps: parts, truncation, intervals, differences.
//!
//! The calendar is computed on days: a timestamp without a zone, or in UTC, is split into its day
//! and the ticks since midnight. Parts of days outside of Arrow's calendar (`calendar.rs`) are
//! null; sums outside of it are errors.

use datafusion::arrow::datatypes::TimeUnit;
use datafusion::common::ScalarValue::{IntervalDayTime, IntervalMonthDayNano, IntervalYearMonth};

use super::arithmetic::{ArithmeticStep, wide};
use super::calendar::{CALENDAR, NANOS_PER_DAY, is_utc, outside_calendar, per_second};
use super::fit::OnError;
use super::interval_parts::INTERVAL;
use super::zone::InstantFor;
use super::*;
use crate::codegen::device_function::{
    DAY_OF, DeviceFunction, FDIV, FLOOR_REMAINDER, KernelHeader, MONTH_OF, QUARTER_OF, YEAR_OF,
};

/// A constant interval, sign included.
pub(super) struct Interval {
    pub(super) months: i128,
    days: i128,
    nanos: i128,
}

impl Interval {
    pub(super) fn of(literal: &ScalarValue, sign: i128) -> Option<Interval> {
        let (months, days, nanos) = match literal {
            IntervalYearMonth(Some(months)) => (i128::from(*months), 0, 0),
            IntervalDayTime(Some(v)) => {
                (0, i128::from(v.days), i128::from(v.milliseconds) * 1_000_000)
            }
            IntervalMonthDayNano(Some(v)) => {
                (i128::from(v.months), i128::from(v.days), i128::from(v.nanoseconds))
            }
            _ => return None,
        };
        Some(Interval { months: sign * months, days: sign * days, nanos: sign * nanos })
    }

    /// Nanoseconds of days and their parts.
    pub(super) fn total_nanos(&self) -> i128 {
        self.days * NANOS_PER_DAY + self.nanos
    }
}

impl Compiler<'_> {
    /// Arithmetic where a side is a date or timestamp, or `None`.
    pub(super) fn temporal_arithmetic(
        &mut self,
        op: Operator,
        left: &Expr,
        left_type: &DataType,
        right: &Expr,
        right_type: &DataType,
        dtype: &DataType,
    ) -> Result<Option<Value>> {
        use DataType::{Date32, Duration, Int64, Interval as IntervalType, Timestamp};
        if !left_type.is_temporal() && !right_type.is_temporal() {
            return Ok(None);
        }
        let refuse = || not_yet(format!("{left_type} {op} {right_type}"));
        let (point, interval, sign) = match (op, left_type, right_type) {
            (Operator::Minus, Date32, Date32) if *dtype == Int64 => {
                let (a, b) = (self.value(left)?, self.value(right)?);
                return self.integer(ArithmeticStep::Sub, &a, &b, &Int64).map(Some);
            }
            (Operator::Minus, Timestamp(from, _), Timestamp(to, _)) if from == to => {
                return self.ticks(ArithmeticStep::Sub, left, right, dtype).map(Some);
            }
            (
                Operator::Plus | Operator::Minus,
                Duration(from) | Timestamp(from, _),
                Duration(to),
            ) if from == to => {
                let step =
                    if op == Operator::Plus { ArithmeticStep::Add } else { ArithmeticStep::Sub };
                return self.ticks(step, left, right, dtype).map(Some);
            }
            (Operator::Plus, Duration(from), Timestamp(to, _)) if from == to => {
                return self.ticks(ArithmeticStep::Add, left, right, dtype).map(Some);
            }
            (Operator::Plus | Operator::Minus, IntervalType(_), IntervalType(_)) => {
                let sign = if op == Operator::Plus { 1 } else { -1 };
                return self.interval_sum(left, right, sign, dtype).map(Some);
            }
            (Operator::Plus, Date32 | Timestamp(_, _), IntervalType(_)) => (left, right, 1),
            (Operator::Minus, Date32 | Timestamp(_, _), IntervalType(_)) => (left, right, -1),
            (Operator::Plus, IntervalType(_), Date32 | Timestamp(_, _)) => (right, left, 1),
            _ => return Err(refuse()),
        };
        let Some(literal) = as_literal(interval) else {
            return self.moved(point, interval, sign as i32, dtype).map(Some);
        };
        if literal.is_null() {
            return self.null(dtype).map(Some);
        }
        let Some(interval) = Interval::of(literal, sign) else { return Err(refuse()) };
        let point = self.value(point)?;
        if point.dtype != *dtype {
            return Err(refuse());
        }
        match dtype {
            Date32 => {
                // Whole days of the nanoseconds count.
                let days = self.shifted_days(
                    &point,
                    interval.months,
                    interval.days + interval.nanos / NANOS_PER_DAY,
                )?;
                self.fit(days, &Date32, type_bounds(&Date32), OnError::Fail).map(Some)
            }
            Timestamp(unit, zone) if zone.as_deref().is_none_or(is_utc) => {
                let per_day = i128::from(per_second(unit)) * 86_400;
                let tick = NANOS_PER_DAY / per_day;
                let shift = interval.days * per_day + interval.nanos.div_euclid(tick);
                // Nanoseconds end long before the calendar.
                let limits = in_calendar(*unit, dtype);
                let point = self.fit(point, dtype, limits, OnError::Fail)?;
                let moved = if interval.months == 0 {
                    point.clone()
                } else {
                    let days = self.floor_days(&point, *unit);
                    let ticks = self.ticks_of_day(&point, &days, per_day)?;
                    let days = self.shifted_days(&days, interval.months, 0)?;
                    let midnight = self.step(ArithmeticStep::Mul, &days, per_day)?;
                    self.integer(ArithmeticStep::Add, &midnight, &ticks, &wide())?
                };
                let sum = self.step(ArithmeticStep::Add, &moved, shift)?;
                let sum = Value { dtype: wide(), ..sum };
                self.fit(sum, dtype, limits, OnError::Fail).map(Some)
            }
            Timestamp(unit, Some(_)) => {
                let months = self.moved_by_clock(point, *unit, dtype, interval.months, 0)?;
                let days = self.moved_by_clock(months, *unit, dtype, 0, interval.days)?;
                let tick = 1_000_000_000 / i128::from(per_second(unit));
                let sum = self.step(ArithmeticStep::Add, &days, interval.nanos.div_euclid(tick))?;
                self.fit(Value { dtype: wide(), ..sum }, dtype, type_bounds(dtype), OnError::Fail)
                    .map(Some)
            }
            _ => Err(refuse()),
        }
    }

    /// An instant moved by months or days on the calendar of its zone, to the time of day that it
    /// has there.
    fn moved_by_clock(
        &mut self,
        point: Value,
        unit: TimeUnit,
        dtype: &DataType,
        months: i128,
        days: i128,
    ) -> Result<Value> {
        if months == 0 && days == 0 {
            return Ok(point);
        }
        let per_day = i128::from(per_second(&unit)) * 86_400;
        let from = point.code.clone();
        let local = self.local_time(point)?;
        let date = self.floor_days(&local, unit);
        let ticks = self.ticks_of_day(&local, &date, per_day)?;
        let date = self.shifted_days(&date, months, days)?;
        let midnight = self.step(ArithmeticStep::Mul, &date, per_day)?;
        let moved = self.integer(ArithmeticStep::Add, &midnight, &ticks, &wide())?;
        let moved = self.fit(
            Value { dtype: wide(), ..moved },
            &DataType::Timestamp(unit, None),
            type_bounds(dtype),
            OnError::Fail,
        )?;
        self.instant(moved, dtype, InstantFor::MovedFrom(from))
    }

    /// Counts of ticks added or subtracted: what does not fit fails.
    fn ticks(
        &mut self,
        step: ArithmeticStep,
        left: &Expr,
        right: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let (a, b) = (self.value(left)?, self.value(right)?);
        repr_of(dtype)?;
        let valid = both(&a.valid, &b.valid, self.out);
        let (a, b) = (Value { valid: valid.clone(), ..a }, Value { valid, ..b });
        let exact = self.integer(step, &a, &b, &wide())?;
        let limits = type_bounds(dtype);
        if within(exact.bounds(), limits) {
            return Ok(Value { dtype: dtype.clone(), range: Some(exact.bounds()), ..exact });
        }
        let outside = format!(
            "({0} < (i128){1} || {0} > (i128){2})",
            exact.code,
            literal::baked_i128(limits.0),
            literal::baked_i128(limits.1)
        );
        self.fail_if(&exact.valid, &outside, Failure::Overflow);
        Ok(self.result(dtype.clone(), Repr::I64, format!("(i64){}", exact.code), exact.valid))
    }

    /// A date or timestamp moved by a computed interval.
    fn moved(&mut self, point: &Expr, by: &Expr, sign: i32, dtype: &DataType) -> Result<Value> {
        let (point, by) = (self.value(point)?, self.value(by)?);
        if by.dtype != INTERVAL || point.dtype != *dtype {
            return Err(not_yet(format!("arithmetic of {} and {}", point.dtype, by.dtype)));
        }
        let valid = both(&point.valid, &by.valid, self.out);
        self.out.needs(KernelHeader::Interval);
        match dtype {
            DataType::Date32 => {
                let call = format!("interval_moves_date({}, (i128){}, {sign}", point.code, by.code);
                self.by_interval(call, dtype, Repr::I32, valid)
            }
            DataType::Timestamp(unit, zone) if zone.as_deref().is_none_or(is_utc) => {
                let unit = per_second(unit);
                let call = format!(
                    "interval_moves_timestamp((i64){}, {unit}, (i128){}, {sign}",
                    point.code, by.code
                );
                self.by_interval(call, dtype, Repr::I64, valid)
            }
            other => Err(not_yet(format!("{other} and a computed interval"))),
        }
    }

    /// The result of a function that says whether there is one; where there is none the row fails.
    pub(super) fn by_interval(
        &mut self,
        call: String,
        dtype: &DataType,
        repr: Repr,
        valid: Option<String>,
    ) -> Result<Value> {
        let name = self.out.fresh();
        self.out.unset(repr.device_type(), &name);
        let made = self.out.let_("bool", format_args!("{call}, &{name})"));
        self.fail_if(&valid, &format!("!{made}"), Failure::Overflow);
        Ok(Value::new(dtype.clone(), repr, name, valid))
    }

    /// An exact step with a constant, which is baked in.
    fn step(&mut self, step: ArithmeticStep, value: &Value, constant: i128) -> Result<Value> {
        self.integer(step, value, &literal::baked(constant, wide()), &wide())
    }

    /// Days moved by months (to the month's last day at most), then by days.
    fn shifted_days(&mut self, days: &Value, months: i128, shift: i128) -> Result<Value> {
        let mut days = Value { dtype: wide(), range: Some(days.bounds()), ..days.clone() };
        if months != 0 {
            self.within_calendar(&days, &days.valid.clone());
            let (low, high) = days.bounds();
            let months_code = self.inputs.parameter(months as u64);
            let rvalue = format!("add_months((i32){}, (i32){months_code})", days.code);
            let mut moved = self.result(wide(), Repr::I32, rvalue, days.valid.clone());
            // A month is 31 days at most; within the calendar nothing leaves 32 bits.
            let most = months.abs() * 31;
            moved.range = Some((low.max(CALENDAR.0) - most, high.min(CALENDAR.1) + most));
            days = moved;
        }
        if shift != 0 {
            let amount = self.integer_parameter(shift, wide());
            days = self.integer(ArithmeticStep::Add, &days, &amount, &wide())?;
        }
        if months != 0 || shift != 0 {
            self.within_calendar(&days, &days.valid.clone());
        }
        Ok(days)
    }

    /// Ticks since midnight of a timestamp.
    pub(super) fn clock(&mut self, value: &Value, unit: TimeUnit) -> Result<Value> {
        let days = self.floor_days(value, unit);
        self.ticks_of_day(value, &days, i128::from(per_second(&unit)) * 86_400)
    }

    /// Ticks since midnight.
    fn ticks_of_day(&mut self, value: &Value, days: &Value, per_day: i128) -> Result<Value> {
        let rvalue = format!(
            "wrap_sub<i64>((i64){}, wrap_mul<i64>((i64){}, {per_day}ll))",
            value.code, days.code
        );
        Ok(self
            .result(wide(), Repr::I64, rvalue, value.valid.clone())
            .with_range(Some((0, per_day - 1))))
    }

    /// `date_part('part', date or timestamp)`.
    pub(super) fn date_part(
        &mut self,
        part: &Expr,
        value: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let Some(part) = as_literal(part).and_then(literal::text) else {
            return Err(not_yet("date_part of a computed part"));
        };
        let part = part.trim_matches(['\'', '"']).to_lowercase();
        let value = self.value(value)?;
        let unit = match &value.dtype {
            DataType::Date32 => None,
            DataType::Timestamp(unit, _) => Some(*unit),
            other => return Err(not_yet(format!("date_part of {other}"))),
        };
        if part == "epoch" {
            return self.epoch(&value, unit, dtype);
        }
        let value = self.local_time(value)?;
        let calendar: Option<(DeviceFunction, _)> = match part.as_str() {
            "year" | "years" | "y" | "yr" | "yrs" => Some((YEAR_OF, CALENDAR_YEARS)),
            "isoyear" => Some(("iso_year".into(), CALENDAR_YEARS)),
            "quarter" | "qtr" => Some((QUARTER_OF, (1, 4))),
            "month" | "months" | "mon" | "mons" => Some((MONTH_OF, (1, 12))),
            "week" | "weeks" | "w" => Some(("iso_week".into(), (1, 53))),
            "day" | "days" | "d" => Some((DAY_OF, (1, 31))),
            "doy" => Some(("day_of_year".into(), (1, 366))),
            "dow" => Some(("weekday_from_sunday".into(), (0, 6))),
            "isodow" => Some(("iso_weekday".into(), (1, 7))),
            _ => None,
        };
        let days = match unit {
            Some(unit) => self.floor_days(&value, unit),
            None => Value { dtype: wide(), range: Some(value.bounds()), ..value.clone() },
        };
        let valid = match outside_calendar(&days).filter(|_| calendar.is_some() || unit.is_some()) {
            None => days.valid.clone(),
            Some(outside) => {
                let valid = format!("{} && !{outside}", days.validity());
                Some(self.out.let_("bool", valid))
            }
        };
        if let Some((function, range)) = calendar {
            let rvalue = format!("{}((i32){})", self.out.calls(function), days.code);
            return Ok(self
                .result(dtype.clone(), Repr::I32, rvalue, valid)
                .with_range(Some(range)));
        }
        // Ticks of the day in `divisor` parts, of which `modulus` make the next greater part;
        // `scale` for the finer.
        let nanos =
            unit.map_or(NANOS_PER_DAY, |unit| 1_000_000_000 / i128::from(per_second(&unit)));
        let (divisor, modulus): (i128, i128) = match part.as_str() {
            "hour" | "hours" | "h" | "hr" | "hrs" => (3_600_000_000_000, 24),
            "minute" | "minutes" | "m" | "min" | "mins" => (60_000_000_000, 60),
            "second" | "seconds" | "s" | "sec" | "secs" => (1_000_000_000, 60),
            "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => (1_000_000, 60_000),
            "microsecond" | "microseconds" | "us" | "usec" | "usecs" => (1_000, 60_000_000),
            "nanosecond" | "nanoseconds" => (1, 60_000_000_000),
            _ => return Err(not_yet(format!("date_part '{part}'"))),
        };
        let Some(unit) = unit else {
            let zero = literal::baked(0, dtype.clone());
            return Ok(Value { valid, ..zero });
        };
        let per_day = i128::from(per_second(&unit)) * 86_400;
        let ticks = self.ticks_of_day(&value, &days, per_day)?;
        // A tick is `nanos` long; a part is `divisor` long.
        let count = if divisor >= nanos {
            self.step(ArithmeticStep::Div, &ticks, divisor / nanos)?
        } else {
            self.step(ArithmeticStep::Mul, &ticks, nanos / divisor)?
        };
        let result = self.step(ArithmeticStep::Rem, &count, modulus)?;
        Ok(Value { dtype: dtype.clone(), valid, ..result })
    }

    fn epoch(&mut self, value: &Value, unit: Option<TimeUnit>, dtype: &DataType) -> Result<Value> {
        let seconds = match unit {
            None => format!("fmul((f64){}, 86400.0)", value.code),
            Some(TimeUnit::Second) => format!("(f64){}", value.code),
            Some(unit) => {
                let (divided, ticks) = (self.out.calls(FDIV), per_second(&unit) as f64);
                format!("{divided}((f64){}, {ticks:?})", value.code)
            }
        };
        let mut result = self.result(dtype.clone(), Repr::F64, seconds, value.valid.clone());
        result.magnitude = Some(1e19);
        Ok(result)
    }

    /// `date_trunc('part', timestamp)`.
    pub(super) fn date_trunc(
        &mut self,
        part: &Expr,
        value: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let Some(part) = as_literal(part).and_then(literal::text) else {
            return Err(not_yet("date_trunc to a computed part"));
        };
        let part = part.to_lowercase();
        let value = self.value(value)?;
        let (unit, zone) = match &value.dtype {
            DataType::Timestamp(unit, zone) if value.dtype == *dtype => (*unit, zone.clone()),
            other => return Err(not_yet(format!("date_trunc of {other}"))),
        };
        if zone.is_some() && years_of(&part).is_some() {
            return Err(not_yet(format!("date_trunc to '{part}' by the clocks of a zone")));
        }
        // Hours, too, begin at other moments than in UTC.
        if zone.is_some()
            && !["microsecond", "millisecond", "second", "minute"].contains(&part.as_str())
        {
            let limits = through_nanos(unit);
            let value = self.fit(value, dtype, limits, OnError::Fail)?;
            let local = self.local_time(value.clone())?;
            let local_type = local.dtype.clone();
            let cut = self.truncated_to(&part, local, unit, &local_type, limits)?;
            return self.truncated_instant(&value, cut);
        }
        let limits = match zone {
            Some(_) => through_nanos(unit),
            None => in_calendar(unit, dtype),
        };
        self.truncated_to(&part, value, unit, dtype, limits)
    }

    /// A timestamp cut down to a part, as if it had no zone; to one of the calendar within limits.
    fn truncated_to(
        &mut self,
        part: &str,
        value: Value,
        unit: TimeUnit,
        dtype: &DataType,
        limits: (i128, i128),
    ) -> Result<Value> {
        let per_second = i128::from(per_second(&unit));
        let ticks = match part {
            "microsecond" => Some(per_second / 1_000_000),
            "millisecond" => Some(per_second / 1_000),
            "second" => Some(per_second),
            "minute" => Some(60 * per_second),
            "hour" => Some(3_600 * per_second),
            "day" => Some(86_400 * per_second),
            _ => None,
        };
        if let Some(ticks) = ticks {
            if ticks <= 1 {
                return Ok(value);
            }
            let (low, high) = value.bounds();
            let range = ((low - low.rem_euclid(ticks)).max(type_bounds(dtype).0), high);
            let remainder = self.out.calls(FLOOR_REMAINDER);
            let rvalue = format!(
                "wrap_sub<i64>((i64){0}, {remainder}<i64>((i64){0}, {ticks}ll))",
                value.code
            );
            return Ok(self
                .result(dtype.clone(), Repr::I64, rvalue, value.valid.clone())
                .with_range(Some(range)));
        }
        let years = years_of(part);
        let more = years.map_or(String::new(), |years| format!(", {years}"));
        let function = match part {
            "week" => "start_of_week",
            "month" => "start_of_month",
            "quarter" => "start_of_quarter",
            "year" => "start_of_year",
            _ if years.is_some() => "start_of_years",
            _ => return Err(not_yet(format!("date_trunc to '{part}'"))),
        };
        let value = self.fit(value, dtype, limits, OnError::Fail)?;
        let days = self.floor_days(&value, unit);
        let (low, high) = days.bounds();
        let rvalue = format!("{function}((i32){}{more})", days.code);
        let start = self.result(wide(), Repr::I32, rvalue, days.valid.clone());
        // Years before the first are cut down towards it.
        let most = 366 * i128::from(years.unwrap_or(1));
        let start = start.with_range(Some((low - most, high + most)));
        let ticks = self.step(ArithmeticStep::Mul, &start, 86_400 * per_second)?;
        self.fit(ticks, dtype, limits, OnError::Fail)
    }
}

/// The years that a unit of several has.
fn years_of(part: &str) -> Option<i32> {
    match part {
        "decade" => Some(10),
        "century" => Some(100),
        "millennium" => Some(1_000),
        _ => None,
    }
}

/// The ticks that the calendar and the type both hold.
fn in_calendar(unit: TimeUnit, dtype: &DataType) -> (i128, i128) {
    let per_day = i128::from(per_second(&unit)) * 86_400;
    let (low, high) = type_bounds(dtype);
    (low.max(CALENDAR.0 * per_day), high.min((CALENDAR.1 + 1) * per_day - 1))
}

/// What DataFusion truncates by the clocks of zones: it goes through nanoseconds, which end some
/// centuries from now.
fn through_nanos(unit: TimeUnit) -> (i128, i128) {
    let nanos = 1_000_000_000 / i128::from(per_second(&unit));
    (i128::from(i64::MIN) / nanos, i128::from(i64::MAX) / nanos)
}

const CALENDAR_YEARS: (i128, i128) = (-262_144, 262_143);
