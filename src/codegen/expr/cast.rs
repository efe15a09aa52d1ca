//! CAST and TRY_CAST, as Arrow's cast kernel converts.
//!
//! A cast between integer-like types changes no bits: it asks whether the bounds fit, and only
//! where they may not is a test emitted. `widen` at the sink picks the final width.

use datafusion::arrow::datatypes::{IntervalUnit, TimeUnit};

use super::arithmetic::{ArithmeticStep, wide};
use super::calendar::{is_utc, per_second};
use super::fit::OnError;
use super::zone::InstantFor;
use super::*;
use crate::codegen::device_function::{FDIV, KernelHeader};
use warpframe_device::ops::powers;

impl Compiler<'_> {
    pub(super) fn cast(
        &mut self,
        value: Value,
        target: &DataType,
        on_error: OnError,
    ) -> Result<Value> {
        let target = value_type(target);
        let from = value.dtype.clone();
        if from == *target {
            return Ok(value);
        }
        if from.is_null() {
            return self.null(target);
        }
        match value.repr {
            Repr::List => return self.cast_list(value, target, on_error),
            Repr::Struct => return self.cast_fields(value, target, on_error),
            _ => {}
        }
        if self.context.target.is_some() {
            // A step of a cast, of which the row tells what that began with.
            return self.cast_plain(value, target, on_error);
        }
        let first = self.operands.len();
        self.operands.extend(value.operand(None));
        let context = ErrorContext { first, keeps: false, target: Some(target.clone()) };
        let outer = std::mem::replace(&mut self.context, context);
        let result = self.cast_plain(value, target, on_error);
        self.operands.truncate(first);
        self.context = outer;
        result
    }

    /// Casts a value that is neither list nor struct.
    fn cast_plain(&mut self, value: Value, target: &DataType, on_error: OnError) -> Result<Value> {
        use DataType::*;
        let from = value.dtype.clone();
        if from == *target {
            return Ok(value);
        }
        if is_string(&from) && is_string(target) || is_bytes(&from) && is_bytes(target) {
            return Ok(Value { dtype: target.clone(), ..value });
        }
        if is_bytes(target) && is_string(&from) {
            return self.same_bytes(value, target, "parse_as_bytes");
        }
        if is_string(target) && is_bytes(&from) {
            return self.same_bytes(value, target, "parse_as_shown");
        }
        if is_string(target) {
            return self.formatted(value, target);
        }
        if is_string(&from) {
            return self.parsed(value, target, on_error);
        }
        match (&from, target) {
            (Boolean, to) if to.is_integer() => {
                let mut result = self.result(
                    to.clone(),
                    Repr::I32,
                    format!("(i32)(bool){}", value.code),
                    value.valid,
                );
                result.range = Some((0, 1));
                Ok(result)
            }
            (Boolean, to) if is_float(to) => {
                let repr = repr_of(to)?;
                let rvalue = format!("({})(bool){}", repr.device_type(), value.code);
                let mut result = self.result(to.clone(), repr, rvalue, value.valid);
                result.magnitude = Some(1.0);
                Ok(result)
            }
            (from, Boolean) if from.is_integer() || is_float(from) => {
                Ok(self.result(Boolean, Repr::Bool, format!("{} != 0", value.code), value.valid))
            }
            (from, to) if from.is_integer() && to.is_integer() => {
                self.fit(value, to, type_bounds(to), on_error)
            }
            (from, to) if from.is_integer() && is_float(to) => {
                let (low, high) = value.bounds();
                let magnitude = low.unsigned_abs().max(high.unsigned_abs()) as f64 * (1.0 + 1e-6);
                let repr = repr_of(to)?;
                let rvalue = format!("({}){}", repr.device_type(), value.code);
                let mut result = self.result(to.clone(), repr, rvalue, value.valid);
                result.magnitude = Some(magnitude);
                Ok(result)
            }
            (Float32 | Float64, to) if is_float(to) => {
                let repr = repr_of(to)?;
                let rvalue = format!("({}){}", repr.device_type(), value.code);
                let mut result = self.result(to.clone(), repr, rvalue, value.valid.clone());
                let limit = if *to == Float32 { f64::from(f32::MAX) } else { f64::MAX };
                if *to == Float32 && value.magnitude.is_none_or(|most| most >= limit) {
                    // Finite, but not as the narrow float: what is not finite minus itself is NaN.
                    let outside =
                        format!("({0} - {0} == 0 && {1} - {1} != 0)", value.code, result.code);
                    result.valid = self.outcome(&value.valid, &outside, on_error);
                }
                result.magnitude = value.magnitude.map(|m| m * (1.0 + 1e-6)).filter(|m| *m < limit);
                Ok(result)
            }
            (Float32 | Float64, to) if to.is_integer() => {
                self.float_to_integer(value, to, on_error)
            }
            (from, Decimal128(precision, scale)) if from.is_integer() => {
                self.integer_to_decimal(value, *precision, *scale, on_error)
            }
            (Float32 | Float64, Decimal128(precision, scale)) => {
                self.float_to_decimal(value, *precision, *scale, on_error)
            }
            (Decimal128(p1, s1), Decimal128(p2, s2)) => {
                self.rescale(value, (*p1, *s1), (*p2, *s2), on_error)
            }
            (Decimal128(_, scale), to) if is_float(to) => self.decimal_to_float(value, *scale, to),
            (Decimal128(_, 0), to) if to.is_integer() => {
                let value = Value { range: Some(value.bounds()), dtype: wide(), ..value };
                self.fit(value, to, type_bounds(to), on_error)
            }
            (Decimal128(_, scale), to) if to.is_integer() && *scale > 0 => {
                let whole = self.rounded_quotient(&value, scale.unsigned_abs().into())?;
                self.fit(whole, to, type_bounds(to), on_error)
            }
            (Date32, Int32) | (Int32, Date32) => Ok(Value { dtype: target.clone(), ..value }),
            // Counts in the width that they have.
            (Time32(_), Int32) | (Int32, Time32(_)) => Ok(Value { dtype: target.clone(), ..value }),
            (Time64(_) | Duration(_), Int64) | (Int64, Time64(_) | Duration(_)) => {
                Ok(Value { dtype: target.clone(), ..value })
            }
            (Time32(from) | Time64(from), Time32(to) | Time64(to))
            | (Duration(from), Duration(to)) => {
                self.between_units(value, *from, *to, target, on_error)
            }
            (Duration(unit), Interval(IntervalUnit::MonthDayNano)) => {
                let nanos = self.between_units(
                    value,
                    *unit,
                    TimeUnit::Nanosecond,
                    &Duration(TimeUnit::Nanosecond),
                    on_error,
                )?;
                self.out.needs(KernelHeader::Interval);
                let rvalue = format!("interval_packed(0, 0, (i64){})", nanos.code);
                Ok(self.result(target.clone(), Repr::I128, rvalue, nanos.valid))
            }
            (Timestamp(_, Some(zone)), Time32(_) | Time64(_) | Date32) if !is_utc(zone) => {
                let local = self.local_time(value)?;
                self.cast(local, target, on_error)
            }
            (Timestamp(unit, _), Time32(to) | Time64(to)) => {
                let clock = self.clock(&value, *unit)?;
                self.between_units(clock, *unit, *to, target, on_error)
            }
            (Date32, Date64) => {
                let product =
                    self.exact(ArithmeticStep::Mul, &value, &literal::baked(86_400_000, wide()))?;
                Ok(Value { dtype: Date64, ..product })
            }
            (Date64, Date32) => {
                let days = self.floor_days(&value, TimeUnit::Millisecond);
                self.fit(days, &Date32, type_bounds(&Date32), on_error)
            }
            (Date32, Int64) => Ok(Value { range: Some(value.bounds()), dtype: Int64, ..value }),
            (Int64, Date32) => self.fit(value, target, type_bounds(target), on_error),
            (Timestamp(_, _), to) if to.is_integer() => {
                let value = Value { range: Some(value.bounds()), dtype: Int64, ..value };
                self.cast(value, to, on_error)
            }
            (from, Timestamp(_, _)) if from.is_integer() => {
                let value = self.cast(value, &Int64, on_error)?;
                Ok(Value { dtype: target.clone(), ..value })
            }
            (Timestamp(from_unit, from_zone), Timestamp(to_unit, to_zone)) => {
                if from_zone.is_none() && to_zone.as_deref().is_some_and(|zone| !is_utc(zone)) {
                    let local = self.cast(value, &Timestamp(*to_unit, None), on_error)?;
                    return self.instant(local, target, InstantFor::Cast(on_error));
                }
                let (from, to) = (per_second(from_unit), per_second(to_unit));
                let mut result = if from > to {
                    let divisor = literal::baked(i128::from(from / to), wide());
                    self.integer(ArithmeticStep::Div, &value, &divisor, &wide())?
                } else {
                    let factor = literal::baked(i128::from(to / from), wide());
                    let product = self.exact(ArithmeticStep::Mul, &value, &factor)?;
                    self.fit(product, target, type_bounds(target), on_error)?
                };
                result.dtype = target.clone();
                Ok(result)
            }
            (Date32, Timestamp(unit, zone)) if zone.as_deref().is_none_or(is_utc) => {
                let factor = literal::baked(i128::from(per_second(unit) * 86_400), wide());
                let product = self.exact(ArithmeticStep::Mul, &value, &factor)?;
                self.fit(product, target, type_bounds(target), on_error)
            }
            (Date32, Timestamp(unit, Some(_))) => {
                let midnight = self.cast(value, &Timestamp(*unit, None), on_error)?;
                self.instant(midnight, target, InstantFor::Cast(on_error))
            }
            (Timestamp(unit, _), Date32) => {
                let (days, valid) = (self.floor_days(&value, *unit), value.valid.clone());
                // The calendar ends before 32 bits of days do; such a value fails even under
                // TRY_CAST.
                self.within_calendar(&days, &valid);
                Ok(Value { dtype: Date32, ..days })
            }
            (from, to) => Err(not_yet(format!("a cast from {from} to {to}"))),
        }
    }

    /// Ticks of another length: finer ones exactly, coarser ones cut off.
    fn between_units(
        &mut self,
        value: Value,
        from: TimeUnit,
        to: TimeUnit,
        target: &DataType,
        on_error: OnError,
    ) -> Result<Value> {
        let (from, to) = (per_second(&from), per_second(&to));
        let value = Value { range: Some(value.bounds()), dtype: wide(), ..value };
        let scaled = if from > to {
            self.exact(ArithmeticStep::Div, &value, &literal::baked(i128::from(from / to), wide()))?
        } else {
            self.exact(ArithmeticStep::Mul, &value, &literal::baked(i128::from(to / from), wide()))?
        };
        self.fit(scaled, target, type_bounds(target), on_error)
    }

    /// A step whose exact result fits 128 bits for all operands of at most 64.
    fn exact(&mut self, step: ArithmeticStep, a: &Value, b: &Value) -> Result<Value> {
        self.integer(step, a, b, &wide())
    }

    /// The nearest integer, the even one of two; NaN and what lies outside of the type are errors.
    fn float_to_integer(
        &mut self,
        value: Value,
        to: &DataType,
        on_error: OnError,
    ) -> Result<Value> {
        let repr = repr_of(to)?;
        let (low, high) = type_bounds(to);
        let float = value.repr.device_type();
        let nearest = if value.repr == Repr::F32 { "rintf" } else { "rint" };
        let whole = self.out.let_(float, format_args!("{nearest}({})", value.code));
        // Both ends are powers of two (or zero) and so exact in either float type.
        let inside = format!(
            "({whole} >= ({float}){:?} && {whole} < ({float}){:?})",
            low as f64,
            (high + 1) as f64
        );
        let inside = self.out.let_("bool", inside);
        let valid = self.outcome(&value.valid, &format!("!{inside}"), on_error);
        let rvalue = format!("{inside} ? ({0}){whole} : ({0})0", repr.device_type());
        let mut result = self.result(to.clone(), repr, rvalue, valid);
        if let Some(bound) = value.magnitude.filter(|m| *m < 1e18) {
            let bound = bound as i128 + 1;
            result.range = Some((low.max(-bound), high.min(bound)));
        }
        Ok(result)
    }

    fn integer_to_decimal(
        &mut self,
        value: Value,
        precision: u8,
        scale: i8,
        on_error: OnError,
    ) -> Result<Value> {
        let to = DataType::Decimal128(precision, scale);
        if scale < 0 {
            return Err(not_yet(format!("a cast to {to}")));
        }
        let limits = precision_bounds(precision);
        // Tested before it is scaled: TRY_CAST turns what does not fit into null, overflow of 128
        // bits included.
        let Some(factor) = 10i128.checked_pow(u32::from(scale.unsigned_abs())) else {
            return Err(Error::unsupported(format!("a cast to {to}"), "exceeds 128 bits"));
        };
        let unscaled = (limits.0 / factor, limits.1 / factor);
        let value = Value { range: Some(value.bounds()), dtype: wide(), ..value };
        let value = self.fit(value, &wide(), unscaled, on_error)?;
        let value = self.scale_up(&value, u32::from(scale.unsigned_abs()))?;
        Ok(Value { dtype: to, ..value })
    }

    /// The nearest float. Where digits and power of ten are exact floats, their quotient is, by one
    /// instruction.
    fn decimal_to_float(&mut self, value: Value, scale: i8, to: &DataType) -> Result<Value> {
        let (low, high) = value.bounds();
        let most = low.unsigned_abs().max(high.unsigned_abs());
        let power = 10f64.powi(i32::from(scale).abs());
        let repr = repr_of(to)?;
        let narrow = repr == Repr::F32;
        // Of digits that an `f32` holds, too, the quotient of doubles may be rounded again.
        let (digits, places) = if narrow { (1 << 24, 10) } else { (1 << 53, EXACT_POWERS) };
        let exact = most < digits && scale.unsigned_abs() <= places;
        let ctype = repr.device_type();
        let ten = format!("double_of_bits({}ull)", power.to_bits());
        let rvalue = match (exact, u32::try_from(scale).ok().filter(|scale| *scale <= MOST_PLACES))
        {
            (true, Some(_)) => {
                format!("({ctype}){}((f64){}, {ten})", self.out.calls(FDIV), value.code)
            }
            (true, None) => format!("fmul(({ctype}){}, ({ctype}){ten})", value.code),
            (false, Some(scale)) => {
                let five = power_of_five(scale);
                let more = if narrow { String::new() } else { format!(", {ten}") };
                format!("decimal_to_{ctype}((i128){}, {five}, {scale}u{more})", value.code)
            }
            (false, None) => return Err(not_yet(format!("a cast from {} to {to}", value.dtype))),
        };
        let mut result = self.result(to.clone(), repr, rvalue, value.valid);
        let magnitude = if scale < 0 { most as f64 * power } else { most as f64 / power };
        result.magnitude = Some(magnitude * (1.0 + 1e-6)).filter(|m| *m < f64::from(f32::MAX));
        Ok(result)
    }

    /// The float's digits, halves away from zero.
    fn float_to_decimal(
        &mut self,
        value: Value,
        precision: u8,
        scale: i8,
        on_error: OnError,
    ) -> Result<Value> {
        let to = DataType::Decimal128(precision, scale);
        let Some(places) = u32::try_from(scale).ok().filter(|places| *places <= MOST_PLACES) else {
            return Err(not_yet(format!("a cast to {to}")));
        };
        let power = 10f64.powi(i32::from(scale));
        let outside = self.out.fresh();
        self.out.unset("bool", &outside);
        let table = self.inputs.constant(powers::for_format());
        self.out.needs(KernelHeader::Format);
        let digits = self.out.let_(
            "i128",
            format_args!(
                "decimal_of_f64((f64){}, {places}u, double_of_bits({}ull), (const u64*)({table}), &{outside})",
                value.code,
                power.to_bits()
            ),
        );
        let (low, high) = precision_bounds(precision);
        let (low, high) = (literal::baked_i128(low), literal::baked_i128(high));
        let inside = format!("!{outside} && {digits} >= (i128){low} && {digits} <= (i128){high}");
        let inside = self.out.let_("bool", inside);
        let valid = self.outcome(&value.valid, &format!("!{inside}"), on_error);
        let repr = repr_of(&to)?;
        let rvalue = format!("{inside} ? ({0}){digits} : ({0})0", repr.device_type());
        let mut result =
            self.result(to, repr, rvalue, valid).with_range(Some(precision_bounds(precision)));
        if let Some(bound) = value.magnitude.map(|m| m * power).filter(|m| *m < 1e36) {
            let bound = (bound * (1.0 + 1e-6)) as i128 + 1;
            let (low, high) = result.bounds();
            result.range = Some((low.max(-bound), high.min(bound)));
        }
        Ok(result)
    }

    /// Between scales: up exactly, down with halves away from zero; then the precision is tested.
    fn rescale(
        &mut self,
        value: Value,
        from: (u8, i8),
        to: (u8, i8),
        on_error: OnError,
    ) -> Result<Value> {
        let target = DataType::Decimal128(to.0, to.1);
        let limits = precision_bounds(to.0);
        let scale = i32::from(to.1) - i32::from(from.1);
        if scale.unsigned_abs() > 38 {
            return Err(not_yet(format!("a cast from {} to {target}", value.dtype)));
        }
        let factor = 10i128.pow(scale.unsigned_abs());
        if scale >= 0 {
            if scale == 0 && from.0 <= to.0 {
                return Ok(Value { range: Some(value.bounds()), dtype: target, ..value });
            }
            let value = Value { range: Some(value.bounds()), dtype: wide(), ..value };
            let value =
                self.fit(value, &wide(), (limits.0 / factor, limits.1 / factor), on_error)?;
            let value = self.scale_up(&value, scale.unsigned_abs())?;
            return Ok(Value { dtype: target, ..value });
        }
        let result = self.rounded_quotient(&value, scale.unsigned_abs())?;
        let result = self.fit(result, &wide(), limits, on_error)?;
        Ok(Value { dtype: target, ..result })
    }
}

/// Most places behind the point of a decimal of 128 bits, and those of which the power of ten is an
/// exact double.
const MOST_PLACES: u32 = 38;
const EXACT_POWERS: u8 = 22;

/// 5 to a power of at most [`MOST_PLACES`], in device code.
fn power_of_five(power: u32) -> String {
    let five = 5u128.pow(power);
    format!("make_u128({}ull, {}ull)", five >> 64, five as u64)
}

/// Whether values are bytes that need be no characters.
pub(super) fn is_bytes(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// Bounds of a decimal precision.
pub(super) fn precision_bounds(precision: u8) -> (i128, i128) {
    let bound = 10i128.pow(u32::from(precision.min(38))) - 1;
    (-bound, bound)
}
