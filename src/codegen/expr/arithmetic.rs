//! Integer, decimal and float arithmetic.
//!
//! What does not fit the type of the result fails: integers beyond their width, decimals beyond 38
//! digits; so does division by zero. Each step first computes the interval its result lies in:
//! where that fits the type nothing can fail, and the narrowest of 32, 64 and 128 bits is used.

use super::*;
use crate::codegen::device_function::{
    DeviceFunction, FDIV, MUL_OVERFLOWS, QUOTIENT, QUOTIENT_OVERFLOWS, REMAINDER,
    REMAINDER_OVERFLOWS,
};

/// A step of exact integer arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArithmeticStep {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

/// The narrowest representation for arithmetic that holds all of `bounds`.
fn narrowest(bounds: &[(i128, i128)]) -> Repr {
    use crate::codegen::value::repr_bounds;
    let fits = |repr| bounds.iter().all(|b| within(*b, repr_bounds(repr)));
    if fits(Repr::I32) {
        Repr::I32
    } else if fits(Repr::I64) {
        Repr::I64
    } else {
        Repr::I128
    }
}

/// Bounds of the exact result, or `None` where they exceed `i128`.
fn interval(
    step: ArithmeticStep,
    (al, ah): (i128, i128),
    (bl, bh): (i128, i128),
) -> Option<(i128, i128)> {
    Some(match step {
        ArithmeticStep::Add => (al.checked_add(bl)?, ah.checked_add(bh)?),
        ArithmeticStep::Sub => (al.checked_sub(bh)?, ah.checked_sub(bl)?),
        ArithmeticStep::Mul => {
            let corners = [
                al.checked_mul(bl)?,
                al.checked_mul(bh)?,
                ah.checked_mul(bl)?,
                ah.checked_mul(bh)?,
            ];
            (*corners.iter().min()?, *corners.iter().max()?)
        }
        ArithmeticStep::Div => {
            // Quotients are no greater than the dividend; −1 turns the least into one beyond the
            // greatest.
            let negated = al.checked_neg()?.max(ah.checked_neg()?);
            let negatable = bl <= -1;
            let positive = bh >= 1;
            if !negatable && al >= 0 {
                // Dividing by at least `bl ≥ 1` shrinks further.
                (al / bh.max(1), ah / bl.max(1))
            } else {
                let low = if positive { al.min(0) } else { 0 };
                let low = if negatable { low.min(ah.checked_neg()?) } else { low };
                let high = if positive { ah.max(0) } else { 0 };
                let high = if negatable { high.max(negated) } else { high };
                (low.min(0), high.max(0))
            }
        }
        ArithmeticStep::Rem => {
            let most = bl.checked_neg()?.max(bh).max(bl).max(1) - 1;
            (if al < 0 { al.max(-most) } else { 0 }, if ah > 0 { ah.min(most) } else { 0 })
        }
    })
}

impl ArithmeticStep {
    /// The function of `arith.cuh` that wraps.
    fn wrapping(self) -> DeviceFunction {
        match self {
            ArithmeticStep::Add => "wrap_add".into(),
            ArithmeticStep::Sub => "wrap_sub".into(),
            ArithmeticStep::Mul => "wrap_mul".into(),
            ArithmeticStep::Div => QUOTIENT,
            ArithmeticStep::Rem => REMAINDER,
        }
    }

    /// The function of `decimal.cuh` that tells whether 128 bits overflow.
    fn checked(self) -> DeviceFunction {
        match self {
            ArithmeticStep::Add => "add_overflows".into(),
            ArithmeticStep::Sub => "sub_overflows".into(),
            ArithmeticStep::Mul => MUL_OVERFLOWS,
            ArithmeticStep::Div => QUOTIENT_OVERFLOWS,
            ArithmeticStep::Rem => REMAINDER_OVERFLOWS,
        }
    }

    /// The function of `arith.cuh` that tells whether at most 64 bits overflow; none of a division,
    /// where only the least value by −1 can.
    fn checked_narrow(self) -> Option<DeviceFunction> {
        match self {
            ArithmeticStep::Add => Some("add_exceeds".into()),
            ArithmeticStep::Sub => Some("sub_exceeds".into()),
            ArithmeticStep::Mul => Some("mul_exceeds".into()),
            ArithmeticStep::Div | ArithmeticStep::Rem => None,
        }
    }
}

impl Compiler<'_> {
    /// `expr` is `left op right`.
    pub(super) fn arithmetic(
        &mut self,
        expr: &Expr,
        op: Operator,
        left: &Expr,
        right: &Expr,
    ) -> Result<Value> {
        let (left_type, right_type) = (self.type_of(left)?, self.type_of(right)?);
        // DataFusion would find the same, by trying the operation on arrays.
        let dtype =
            &match left_type == right_type && (left_type.is_integer() || left_type.is_floating()) {
                true => left_type.clone(),
                false => self.type_of(expr)?,
            };
        if let Some(value) =
            self.temporal_arithmetic(op, left, &left_type, right, &right_type, dtype)?
        {
            return Ok(value);
        }
        if left_type != right_type
            && !matches!(
                (&left_type, &right_type),
                (DataType::Decimal128(_, _), DataType::Decimal128(_, _))
            )
        {
            return Err(not_yet(format!("{left_type} {op} {right_type}")));
        }
        let a = self.value(left)?;
        // A divisor known at compile time is baked in: the compiler turns the division into a
        // multiplication.
        let b = match (op, as_literal(right).and_then(literal::integer)) {
            (Operator::Divide | Operator::Modulo, Some(value)) => {
                literal::baked(value, right_type.clone())
            }
            _ => self.value(right)?,
        };
        match dtype {
            DataType::Decimal128(_, _) => self.decimal(op, &a, &b, dtype),
            other if other.is_integer() => {
                let step = step_of(op)?;
                self.integer(step, &a, &b, other)
            }
            other if is_float(other) => self.float(op, &a, &b, other),
            other => Err(not_yet(format!("arithmetic on {other}"))),
        }
    }

    /// One exact step, whose result has type `dtype`: an integer type, or one of 128 bits, of which
    /// any digits are taken.
    pub(super) fn integer(
        &mut self,
        step: ArithmeticStep,
        a: &Value,
        b: &Value,
        dtype: &DataType,
    ) -> Result<Value> {
        let valid = both(&a.valid, &b.valid, self.out);
        let (ab, bb) = (a.bounds(), b.bounds());
        if matches!(step, ArithmeticStep::Div | ArithmeticStep::Rem) && within((0, 0), bb) {
            let zero = format!("{} == 0", b.code);
            self.fail_if(&valid, &zero, Failure::DivideByZero);
        }
        let limits = type_bounds(dtype);
        let exact = interval(step, ab, bb);
        if let Some(range) = exact.filter(|range| within(*range, limits)) {
            let repr = narrowest(&[ab, bb, range]);
            let ctype = repr.device_type();
            let function = self.out.calls(step.wrapping());
            let rvalue = format!("{function}<{ctype}>({}, {})", a.code, b.code);
            return Ok(self.result(dtype.clone(), repr, rvalue, valid).with_range(Some(range)));
        }
        let repr = repr_of(dtype)?;
        let ctype = repr.device_type();
        let operands = format!("({ctype}){}, ({ctype}){}", a.code, b.code);
        let checked = match repr {
            Repr::I128 => Some(step.checked()),
            _ => step.checked_narrow(),
        };
        let Some(checked) = checked else {
            if step == ArithmeticStep::Div {
                let low = literal::baked_i128(limits.0);
                let condition = format!("({} == {low} && {} == -1)", a.code, b.code);
                self.fail_if(&valid, &condition, Failure::Overflow);
            }
            let rvalue = format!("{}<{ctype}>({operands})", self.out.calls(step.wrapping()));
            return Ok(self.result(dtype.clone(), repr, rvalue, valid));
        };
        let (name, checked) = (self.out.fresh(), self.out.calls(checked));
        self.out.unset(ctype, &name);
        let flag = self.out.let_("bool", format_args!("{checked}({operands}, &{name})"));
        self.fail_if(&valid, &flag, Failure::Overflow);
        let range = exact.map(|(low, high)| (low.max(limits.0), high.min(limits.1)));
        Ok(Value::new(dtype.clone(), repr, name, valid).with_range(range))
    }

    /// `value × 10^digits` within 128 bits.
    pub(super) fn scale_up(&mut self, value: &Value, digits: u32) -> Result<Value> {
        if digits == 0 {
            return Ok(value.clone());
        }
        let Some(factor) = 10i128.checked_pow(digits) else {
            return Err(Error::unsupported(
                format!("a factor of 10^{digits} between decimal scales"),
                "exceeds 128 bits",
            ));
        };
        let factor = literal::baked(factor, wide());
        self.integer(ArithmeticStep::Mul, value, &factor, &wide())
    }

    fn decimal(&mut self, op: Operator, a: &Value, b: &Value, dtype: &DataType) -> Result<Value> {
        let scale = |dtype: &DataType| match dtype {
            DataType::Decimal128(_, scale) => Ok(i32::from(*scale)),
            other => Err(not_yet(format!("decimal arithmetic with {other}"))),
        };
        let (s1, s2, result) = (scale(&a.dtype)?, scale(&b.dtype)?, scale(dtype)?);
        let common = s1.max(s2);
        let expected = match op {
            Operator::Plus | Operator::Minus | Operator::Modulo => common,
            Operator::Multiply => s1 + s2,
            _ => (s1 + 4).min(38),
        };
        if expected != result {
            return Err(Error::unsupported(
                format!("{} {op} {}", a.dtype, b.dtype),
                "has no exact result type",
            ));
        }
        let (up1, up2) = match op {
            Operator::Multiply => (0, 0),
            Operator::Divide => {
                let shift = result - s1 + s2;
                (shift.max(0), (-shift).max(0))
            }
            _ => (common - s1, common - s2),
        };
        // Scaling fails only where there is a result at all.
        let valid = both(&a.valid, &b.valid, self.out);
        let (a, b) = (Value { valid: valid.clone(), ..a.clone() }, Value { valid, ..b.clone() });
        let a = self.scale_up(&a, up1.unsigned_abs())?;
        let b = self.scale_up(&b, up2.unsigned_abs())?;
        let value = self.integer(step_of(op)?, &a, &b, &wide())?;
        self.of_digits(value, dtype)
    }

    /// An exact result as a decimal; fails where it has more than the 38 digits of any. Types of
    /// fewer digits are made so that results fit.
    fn of_digits(&mut self, value: Value, dtype: &DataType) -> Result<Value> {
        let most = 10i128.pow(38) - 1;
        let least = -most;
        let (low, high) = value.bounds();
        if !within((low, high), (least, most)) {
            let [least, most] = [least, most].map(literal::baked_i128);
            let outside = format!("({0} < {least} || {0} > {most})", value.code);
            self.fail_if(&value.valid, &outside, Failure::Overflow);
        }
        let range = Some((low.max(least), high.min(most)));
        Ok(Value { dtype: dtype.clone(), range, ..value })
    }

    pub(super) fn float(
        &mut self,
        op: Operator,
        a: &Value,
        b: &Value,
        dtype: &DataType,
    ) -> Result<Value> {
        let valid = both(&a.valid, &b.valid, self.out);
        let name = match op {
            Operator::Plus => "fadd".into(),
            Operator::Minus => "fsub".into(),
            Operator::Multiply => "fmul".into(),
            Operator::Divide => FDIV,
            _ => "frem".into(),
        };
        let name = self.out.calls(name);
        let magnitude = a.magnitude.zip(b.magnitude).and_then(|(x, y)| match op {
            Operator::Plus | Operator::Minus => Some(x + y),
            Operator::Multiply => Some(x * y),
            _ => None,
        });
        // Rounding may lift a result above the bound by a unit in the last place; and narrow floats
        // may overflow.
        let limit = if *dtype == DataType::Float32 { f64::from(f32::MAX) } else { f64::MAX };
        let magnitude = magnitude.map(|m| m * (1.0 + 1e-6)).filter(|m| *m < limit);
        let repr = repr_of(dtype)?;
        let mut value =
            self.result(dtype.clone(), repr, format!("{name}({}, {})", a.code, b.code), valid);
        value.magnitude = magnitude;
        // What is rounded away lies above the bits of an exact result, or below the least float
        // there is.
        let least = if *dtype == DataType::Float32 { -149 } else { -1074 };
        value.unit = a.unit.zip(b.unit).and_then(|(x, y)| match op {
            Operator::Plus | Operator::Minus => Some(x.min(y)),
            Operator::Multiply => Some((x + y).max(least)),
            _ => None,
        });
        Ok(value)
    }

    pub(super) fn bitwise(&mut self, op: Operator, a: &Value, b: &Value) -> Result<Value> {
        if !a.dtype.is_integer() || a.dtype != b.dtype {
            return Err(not_yet(format!("{} {op} {}", a.dtype, b.dtype)));
        }
        let sign = match op {
            Operator::BitwiseAnd => "&",
            Operator::BitwiseOr => "|",
            Operator::BitwiseShiftLeft | Operator::BitwiseShiftRight => {
                return self.shift(op, a, b);
            }
            _ => "^",
        };
        let valid = both(&a.valid, &b.valid, self.out);
        let repr = repr_of(&a.dtype)?;
        let ctype = repr.device_type();
        let rvalue = format!("({ctype})(({ctype}){} {sign} ({ctype}){})", a.code, b.code);
        Ok(self.result(a.dtype.clone(), repr, rvalue, valid))
    }

    /// Shifts by the count modulo the type's width; to the right, the sign stays.
    fn shift(&mut self, op: Operator, a: &Value, b: &Value) -> Result<Value> {
        let valid = both(&a.valid, &b.valid, self.out);
        let repr = repr_of(&a.dtype)?;
        let ctype = repr.device_type();
        let count = format!("((u32){} & {}u)", b.code, repr.width() * 8 - 1);
        let rvalue = match op {
            Operator::BitwiseShiftLeft => format!("({ctype})((u64){} << {count})", a.code),
            _ => format!("({ctype})(({ctype}){} >> {count})", a.code),
        };
        Ok(self.result(a.dtype.clone(), repr, rvalue, valid))
    }

    /// Unary minus.
    pub(super) fn negative(&mut self, inner: &Expr) -> Result<Value> {
        if let Some(value) = as_literal(inner).filter(|v| !v.is_null())
            && let Ok(negated) = value.arithmetic_negate()
        {
            return self.literal(&negated);
        }
        let value = self.value(inner)?;
        if is_float(&value.dtype) {
            let mut result = self.result(
                value.dtype.clone(),
                value.repr,
                format!("-{}", value.code),
                value.valid.clone(),
            );
            result.magnitude = value.magnitude;
            result.unit = value.unit;
            return Ok(result);
        }
        let dtype = match &value.dtype {
            DataType::Decimal128(_, _) => wide(),
            other if other.is_signed_integer() => other.clone(),
            other => return Err(not_yet(format!("negation of {other}"))),
        };
        let zero = literal::baked(0, dtype.clone());
        let negated = self.integer(ArithmeticStep::Sub, &zero, &value, &dtype)?;
        Ok(Value { dtype: value.dtype, ..negated })
    }
}

/// Exact integers of 128 bits, for steps between types.
pub(super) fn wide() -> DataType {
    DataType::Decimal128(38, 0)
}

fn step_of(op: Operator) -> Result<ArithmeticStep> {
    Ok(match op {
        Operator::Plus => ArithmeticStep::Add,
        Operator::Minus => ArithmeticStep::Sub,
        Operator::Multiply => ArithmeticStep::Mul,
        Operator::Divide => ArithmeticStep::Div,
        Operator::Modulo => ArithmeticStep::Rem,
        other => return Err(not_yet(format!("operator {other}"))),
    })
}
