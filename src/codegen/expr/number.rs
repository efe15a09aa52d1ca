//! Functions of numbers beyond the four operations (`kernels/math.cuh`).

use super::*;
use crate::codegen::device_function::{FDIV, KernelHeader, REMAINDER};

impl Compiler<'_> {
    /// `gcd(a, b)` and `lcm(a, b)` of integers.
    pub(super) fn common_divisor(
        &mut self,
        function: &str,
        a: &Expr,
        b: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let (a, b) = (self.value(a)?, self.value(b)?);
        if [&a.dtype, &b.dtype, dtype] != [&DataType::Int64; 3] {
            return Err(not_yet(format!("{function} of {} and {}", a.dtype, b.dtype)));
        }
        let valid = both(&a.valid, &b.valid, self.out);
        let name = self.out.fresh();
        self.out.unset("i64", &name);
        self.out.needs(KernelHeader::Math);
        let call = format!("math_{function}_overflows((i64){}, (i64){}, &{name})", a.code, b.code);
        let overflows = self.out.let_("bool", call);
        self.fail_if(&valid, &overflows, Failure::Overflow);
        Ok(Value::new(DataType::Int64, Repr::I64, name, valid)
            .with_range(Some((0, i64::MAX.into()))))
    }

    /// `factorial(n)`.
    pub(super) fn factorial(&mut self, n: &Expr, dtype: &DataType) -> Result<Value> {
        let n = self.value(n)?;
        if n.dtype != DataType::Int64 || *dtype != DataType::Int64 {
            return Err(not_yet(format!("factorial of {}", n.dtype)));
        }
        let outside = format!("({0} < 0 || {0} > MOST_FACTORIAL)", n.code);
        self.fail_if(&n.valid, &outside, Failure::Overflow);
        self.out.needs(KernelHeader::Math);
        let rvalue = format!("math_factorial((i64){})", n.code);
        Ok(self.result(dtype.clone(), Repr::I64, rvalue, n.valid))
    }

    /// `bit_count(integer)`: of a negative one, of the bits that its type has.
    pub(super) fn bit_count(&mut self, value: &Expr, dtype: &DataType) -> Result<Value> {
        let value = self.value(value)?;
        let Some(bytes) = value.dtype.primitive_width().filter(|_| value.dtype.is_integer()) else {
            return Err(not_yet(format!("bit_count of {}", value.dtype)));
        };
        let ones = u64::MAX >> (64 - 8 * bytes);
        let rvalue = format!("__popcll((u64)(i64){} & {ones}ull)", value.code);
        let count = self.result(dtype.clone(), repr_of(dtype)?, rvalue, value.valid);
        Ok(count.with_range(Some((0, 64))))
    }

    /// `log(x)`, to the base 10, and `log(base, x)`.
    pub(super) fn logarithm(
        &mut self,
        base: Option<&Expr>,
        x: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let x = self.value(x)?;
        let base = match base {
            Some(base) => self.value(base)?,
            None => self.literal(&ScalarValue::new_ten(&x.dtype)?)?,
        };
        if !is_float(&x.dtype)
            || x.dtype != *dtype
            || !(is_float(&base.dtype) || base.dtype.is_integer())
        {
            return Err(not_yet(format!("log of {} to the base {}", x.dtype, base.dtype)));
        }
        let valid = both(&x.valid, &base.valid, self.out);
        let (divided, ctype) = (self.out.calls(FDIV), x.repr.device_type());
        let rvalue = format!("{divided}(log({}), log(({ctype}){}))", x.code, base.code);
        Ok(self.result(dtype.clone(), x.repr, rvalue, valid))
    }

    /// `cot(x)`.
    pub(super) fn cotangent(&mut self, x: &Expr, dtype: &DataType) -> Result<Value> {
        let tangent = self.float_function("tan", x, dtype)?;
        let (ctype, divided) = (tangent.repr.device_type(), self.out.calls(FDIV));
        Ok(self.result(
            dtype.clone(),
            tangent.repr,
            format!("{divided}(({ctype})1, {})", tangent.code),
            tangent.valid,
        ))
    }

    /// `nanvl(x, y)`: `y` where `x` is NaN.
    pub(super) fn unless_nan(&mut self, x: &Expr, y: &Expr, dtype: &DataType) -> Result<Value> {
        let (x, y) = (self.value(x)?, self.value(y)?);
        if !is_float(dtype) || x.dtype != *dtype || y.dtype != *dtype {
            return Err(not_yet(format!("nanvl of {} and {}", x.dtype, y.dtype)));
        }
        let valid = match (&x.valid, &y.valid) {
            (None, None) => None,
            (x_valid, None) => x_valid.clone(),
            (_, Some(y_valid)) => {
                let valid = format!("{} && ({1} == {1} || {y_valid})", x.validity(), x.code);
                Some(self.out.let_("bool", valid))
            }
        };
        Ok(self.result(
            dtype.clone(),
            x.repr,
            format!("{0} == {0} ? {0} : {1}", x.code, y.code),
            valid,
        ))
    }

    /// `trunc(x[, places])`.
    pub(super) fn truncated(&mut self, arguments: &[Expr], dtype: &DataType) -> Result<Value> {
        let value_type = arguments[0].get_type(self.schema)?;
        let places =
            match arguments.get(1).map(|places| as_literal(places).and_then(literal::integer)) {
                None => 0,
                Some(Some(places)) if places.abs() < 400 => places as i32,
                Some(_) => return Err(not_yet("trunc to a computed number of places")),
            };
        if value_type != *dtype {
            return Err(not_yet(format!("trunc of {value_type}")));
        }
        match value_type {
            DataType::Float32 | DataType::Float64 if arguments.len() == 1 => {
                self.float_function("trunc", &arguments[0], dtype)
            }
            DataType::Float32 | DataType::Float64 => {
                let value = self.value(&arguments[0])?;
                let (factor, truncate) = match value.repr {
                    Repr::F32 => {
                        (format!("float_of_bits({}u)", 10f32.powi(places).to_bits()), "truncf")
                    }
                    _ => (format!("double_of_bits({}ull)", 10f64.powi(places).to_bits()), "trunc"),
                };
                let product = format!("fmul({}, {factor})", value.code);
                let divided = self.out.calls(FDIV);
                let rvalue = format!("{divided}({truncate}({product}), {factor})");
                Ok(self.result(dtype.clone(), value.repr, rvalue, value.valid))
            }
            DataType::Decimal128(_, scale) => {
                let value = self.value(&arguments[0])?;
                let digits = i32::from(scale) - places;
                if digits <= 0 {
                    return Ok(value);
                }
                let Some(factor) =
                    u32::try_from(digits).ok().filter(|d| *d < 38).map(|d| 10i128.pow(d))
                else {
                    let zero = literal::baked(0, dtype.clone());
                    return Ok(Value { valid: value.valid, ..zero });
                };
                let (low, high) = value.bounds();
                let factor = literal::baked(factor, arithmetic::wide());
                let repr = common_repr(&[&value, &factor]);
                let ctype = repr.device_type();
                let remainder = self.out.calls(REMAINDER);
                let rvalue = format!(
                    "wrap_sub<{ctype}>(({ctype}){0}, {remainder}<{ctype}>(({ctype}){0}, ({ctype}){1}))",
                    value.code, factor.code
                );
                let range = Some((low.min(0), high.max(0)));
                Ok(self.result(dtype.clone(), repr, rvalue, value.valid).with_range(range))
            }
            other => Err(not_yet(format!("trunc of {other}"))),
        }
    }
}
