//! Mathematical functions. Those of floats that are not exactly rounded may differ from the host in
//! the last places.

use super::arithmetic::wide;
use super::*;
use crate::codegen::device_function::{FDIV, FLOOR_QUOTIENT, POW, ROUNDED_QUOTIENT};

impl Compiler<'_> {
    /// `function(x)` of a float.
    pub(super) fn float_function(
        &mut self,
        function: &str,
        argument: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let value = self.value(argument)?;
        if !is_float(&value.dtype) || value.dtype != *dtype {
            return Err(not_yet(format!("{function} of {}", value.dtype)));
        }
        if function == "sqrt" && value.magnitude != Some(0.0) {
            let negative = format!("{} < 0", value.code);
            self.fail_if(&value.valid, &negative, Failure::Domain);
        }
        // DataFusion's trunc alone turns −0.0 into 0.0.
        let rvalue = match function {
            "trunc" => format!("{0} == 0 ? 0 : trunc({0})", value.code),
            _ => format!("{function}({})", value.code),
        };
        let mut result = self.result(dtype.clone(), value.repr, rvalue, value.valid);
        result.magnitude = match function {
            "floor" | "ceil" | "round" | "trunc" | "fabs" => value.magnitude.map(|m| m + 1.0),
            "sin" | "cos" => value.magnitude.map(|_| 1.0),
            "sqrt" => value.magnitude.map(|m| m.sqrt() + 1.0),
            _ => None,
        };
        Ok(result)
    }

    /// `function(x, y)` of floats of one type.
    pub(super) fn float_function_of_two(
        &mut self,
        function: &str,
        left: &Expr,
        right: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let (a, b) = (self.value(left)?, self.value(right)?);
        if !is_float(dtype) || a.dtype != *dtype || b.dtype != *dtype {
            return Err(not_yet(format!("{function} of {} and {}", a.dtype, b.dtype)));
        }
        let valid = both(&a.valid, &b.valid, self.out);
        if function == POW.name {
            self.out.calls(POW);
            let pole = format!("({} == 0 && {} < 0)", a.code, b.code);
            self.fail_if(&valid, &pole, Failure::Domain);
        }
        Ok(self.result(dtype.clone(), a.repr, format!("{function}({}, {})", a.code, b.code), valid))
    }

    /// `x` to the power of `y`. A square is a product and a reciprocal a quotient, which are exactly
    /// rounded and many times as fast as `pow`. A reciprocal of 0 fails, as it does there.
    pub(super) fn power(&mut self, x: &Expr, y: &Expr, dtype: &DataType) -> Result<Value> {
        let exponent = match as_literal(y) {
            Some(ScalarValue::Float64(Some(exponent))) => Some(*exponent),
            Some(ScalarValue::Float32(Some(exponent))) => Some(f64::from(*exponent)),
            _ => None,
        };
        let is_exact = exponent.is_some_and(|exponent| matches!(exponent, 2.0 | -1.0));
        if !is_exact || !is_float(dtype) {
            return self.float_function_of_two(POW.name, x, y, dtype);
        }
        let value = self.value(x)?;
        if value.dtype != *dtype {
            return Err(not_yet(format!("power of {}", value.dtype)));
        }
        let code = match exponent {
            Some(2.0) => format!("fmul({0}, {0})", value.code),
            _ => {
                let pole = format!("({} == 0)", value.code);
                self.fail_if(&value.valid, &pole, Failure::Domain);
                let divided = self.out.calls(FDIV);
                format!("{divided}(({})1, {})", value.repr.device_type(), value.code)
            }
        };
        Ok(self.result(dtype.clone(), value.repr, code, value.valid))
    }

    /// `x` times (or over) a constant of the float type.
    pub(super) fn float_scaled(
        &mut self,
        argument: &Expr,
        factor: f64,
        dtype: &DataType,
    ) -> Result<Value> {
        let value = self.value(argument)?;
        if !is_float(dtype) || value.dtype != *dtype {
            return Err(not_yet(format!("a function of {}", value.dtype)));
        }
        let factor = if *dtype == DataType::Float32 {
            format!("float_of_bits({}u)", (factor as f32).to_bits())
        } else {
            format!("double_of_bits({}ull)", factor.to_bits())
        };
        Ok(self.result(
            dtype.clone(),
            value.repr,
            format!("fmul({}, {factor})", value.code),
            value.valid,
        ))
    }

    /// A test of a float: `isnan`, `iszero`.
    pub(super) fn float_test(&mut self, argument: &Expr, test: &str) -> Result<Value> {
        let value = self.value(argument)?;
        if !is_float(&value.dtype) {
            return Err(not_yet(format!("a test of {}", value.dtype)));
        }
        let test = test.replace('x', &value.code);
        Ok(self.result(DataType::Boolean, Repr::Bool, test, value.valid))
    }

    pub(super) fn absolute(&mut self, argument: &Expr, dtype: &DataType) -> Result<Value> {
        let value = self.value(argument)?;
        if is_float(&value.dtype) {
            let mut result = self.result(
                dtype.clone(),
                value.repr,
                format!("fabs({})", value.code),
                value.valid.clone(),
            );
            result.magnitude = value.magnitude;
            return Ok(result);
        }
        if !value.repr.is_integer() || value.dtype != *dtype {
            return Err(not_yet(format!("abs of {}", value.dtype)));
        }
        let (low, high) = value.bounds();
        if low >= 0 {
            return Ok(value);
        }
        let ctype = value.repr.device_type();
        let limits = type_bounds(dtype);
        if dtype.is_integer() && low == limits.0 {
            let least = format!("{} == ({ctype}){}", value.code, literal::baked_i128(low));
            self.fail_if(&value.valid, &least, Failure::Overflow);
        }
        let rvalue = format!("{0} < 0 ? wrap_sub<{ctype}>(0, {0}) : {0}", value.code);
        let high = high.max(low.checked_neg().unwrap_or(i128::MAX)).min(limits.1);
        Ok(self.result(dtype.clone(), value.repr, rvalue, value.valid).with_range(Some((0, high))))
    }

    /// `round(x[, places])`.
    pub(super) fn rounded(&mut self, arguments: &[Expr], dtype: &DataType) -> Result<Value> {
        let places = match arguments.get(1) {
            None => 0,
            Some(places) => match as_literal(places).and_then(literal::integer) {
                Some(places) => {
                    i32::try_from(places).map_err(|_| not_yet("round to that many places"))?
                }
                None => return Err(not_yet("round to a computed number of places")),
            },
        };
        let value_type = arguments[0].get_type(self.schema)?;
        match (&value_type, dtype) {
            (DataType::Float32 | DataType::Float64, _) if places == 0 => {
                self.float_function("round", &arguments[0], dtype)
            }
            (DataType::Float32 | DataType::Float64, _) if places > MOST_PLACES => {
                self.value(&arguments[0])
            }
            (DataType::Float32 | DataType::Float64, _) if places < -MOST_PLACES => {
                let value = self.value(&arguments[0])?;
                // NaN of what is not finite.
                let rvalue = format!("{0} - {0}", value.code);
                Ok(self.result(dtype.clone(), value.repr, rvalue, value.valid))
            }
            (DataType::Float32 | DataType::Float64, _) => {
                let value = self.value(&arguments[0])?;
                let factor = 10f64.powi(places);
                let factor = if value.repr == Repr::F32 {
                    format!("float_of_bits({}u)", (factor as f32).to_bits())
                } else {
                    format!("double_of_bits({}ull)", factor.to_bits())
                };
                let product = format!("fmul({}, {factor})", value.code);
                let rvalue = format!("{}(round({product}), {factor})", self.out.calls(FDIV));
                Ok(self.result(dtype.clone(), value.repr, rvalue, value.valid))
            }
            (integer, _) if integer.is_integer() && integer == dtype && places >= 0 => {
                self.value(&arguments[0])
            }
            (DataType::Decimal128(_, scale), DataType::Decimal128(_, result))
                if places >= 0 && *scale >= 0 =>
            {
                let value = self.value(&arguments[0])?;
                let drop = i32::from(*scale) - places;
                if drop <= 0 {
                    return Ok(Value {
                        range: Some(value.bounds()),
                        dtype: dtype.clone(),
                        ..value
                    });
                }
                if i32::from(*result) != places {
                    return Err(not_yet(format!("round of {value_type} to {dtype}")));
                }
                let rounded = self.rounded_quotient(&value, drop.unsigned_abs())?;
                Ok(Value { dtype: dtype.clone(), ..rounded })
            }
            _ => Err(not_yet(format!("round of {value_type} to {places} places"))),
        }
    }

    /// Divided by `10^digits`, halves away from zero; exact type.
    pub(super) fn rounded_quotient(&mut self, value: &Value, digits: u32) -> Result<Value> {
        let Some(factor) = 10i128.checked_pow(digits) else {
            return Err(Error::unsupported(format!("a factor of 10^{digits}"), "exceeds 128 bits"));
        };
        let (low, high) = value.bounds();
        let range = (low / factor - 1, high / factor + 1);
        let factor = literal::baked(factor, wide());
        let repr = common_repr(&[value, &factor]);
        let ctype = repr.device_type();
        let quotient = self.out.calls(ROUNDED_QUOTIENT);
        let rvalue =
            format!("{quotient}<{ctype}>(({ctype}){}, ({ctype}){})", value.code, factor.code);
        Ok(self.result(wide(), repr, rvalue, value.valid.clone()).with_range(Some(range)))
    }

    /// `floor(x)` and `ceil(x)`. Of a decimal the result has its digits, and none behind the point.
    pub(super) fn whole(
        &mut self,
        function: &str,
        argument: &Expr,
        dtype: &DataType,
    ) -> Result<Value> {
        let value_type = argument.get_type(self.schema)?;
        let DataType::Decimal128(_, scale) = value_type else {
            return self.float_function(function, argument, dtype);
        };
        let value = self.value(argument)?;
        if scale <= 0 && value_type == *dtype {
            return Ok(value);
        }
        let factor = u32::try_from(scale).ok().and_then(|scale| 10i128.checked_pow(scale));
        let Some(factor) = factor.filter(|_| matches!(dtype, DataType::Decimal128(_, 0))) else {
            return Err(not_yet(format!("{function} of {value_type}")));
        };
        let above =
            |digits: i128| digits.div_euclid(factor) + i128::from(digits.rem_euclid(factor) != 0);
        // ceil(x) = −floor(−x).
        let (low, high) = value.bounds();
        let constant = literal::baked(factor, wide());
        let repr = common_repr(&[&value, &constant]);
        let (ctype, code) = (repr.device_type(), &value.code);
        let floor = self.out.calls(FLOOR_QUOTIENT);
        let quotient = |of: String| format!("{floor}<{ctype}>({of}, ({ctype}){})", constant.code);
        let (rvalue, range) = match function {
            "floor" => (
                quotient(format!("({ctype}){code}")),
                (low.div_euclid(factor), high.div_euclid(factor)),
            ),
            _ => (
                format!("-{}", quotient(format!("wrap_sub<{ctype}>(0, ({ctype}){code})"))),
                (above(low), above(high)),
            ),
        };
        let result = self.result(dtype.clone(), repr, rvalue, value.valid);
        Ok(result.with_range(Some(range)))
    }

    /// −1, 0 or 1; NaN for NaN.
    pub(super) fn signum(&mut self, argument: &Expr, dtype: &DataType) -> Result<Value> {
        let value = self.value(argument)?;
        if !is_float(dtype) || value.dtype != *dtype {
            return Err(not_yet(format!("signum of {}", value.dtype)));
        }
        let ctype = value.repr.device_type();
        let x = &value.code;
        let rvalue =
            format!("{x} == 0 ? ({ctype})0 : {x} > 0 ? ({ctype})1 : {x} < 0 ? ({ctype})-1 : {x}");
        let mut result = self.result(dtype.clone(), value.repr, rvalue, value.valid);
        result.magnitude = value.magnitude.map(|_| 1.0);
        Ok(result)
    }

    /// A float as an integer in the order of its bits; `zeros`: those of zeros are equal.
    pub(super) fn total_order(
        &mut self,
        float: &Expr,
        dtype: &DataType,
        zeros: bool,
    ) -> Result<Value> {
        let value = self.value(float)?;
        let x = &value.code;
        let (repr, integer, unsigned, last) = match value.dtype {
            DataType::Float64 => (Repr::I64, "i64", "u64", 63),
            DataType::Float32 => (Repr::I32, "i32", "u32", 31),
            _ => return Err(not_yet(format!("the order of {}", value.dtype))),
        };
        let bits = format!("{integer}(bits({x}))");
        let order = format!("{bits} ^ {integer}({unsigned}({bits} >> {last}) >> 1)");
        let rvalue = if zeros { format!("{x} == 0 ? {integer}(0) : ({order})") } else { order };
        Ok(self.result(dtype.clone(), repr, rvalue, value.valid))
    }

    /// A decimal's digits as one with other places.
    pub(super) fn digits(&mut self, decimal: &Expr, dtype: &DataType) -> Result<Value> {
        let value = self.value(decimal)?;
        match value.dtype {
            DataType::Decimal128(..) => Ok(Value { dtype: dtype.clone(), ..value }),
            _ => Err(not_yet(format!("the digits of {}", value.dtype))),
        }
    }

    /// The float of such an integer.
    pub(super) fn of_total_order(&mut self, integer: &Expr, dtype: &DataType) -> Result<Value> {
        let value = self.value(integer)?;
        let x = &value.code;
        let (repr, rvalue) = match value.dtype {
            DataType::Int64 => {
                (Repr::F64, format!("double_of_bits(u64({x} ^ i64(u64({x} >> 63) >> 1)))"))
            }
            DataType::Int32 => {
                (Repr::F32, format!("float_of_bits(u32({x} ^ i32(u32({x} >> 31) >> 1)))"))
            }
            _ => return Err(not_yet(format!("a float of {}", value.dtype))),
        };
        Ok(self.result(dtype.clone(), repr, rvalue, value.valid))
    }

    /// The greatest or least argument that is not null.
    pub(super) fn extreme(
        &mut self,
        op: Operator,
        arguments: &[Expr],
        dtype: &DataType,
    ) -> Result<Value> {
        let mut best: Option<Value> = None;
        for argument in arguments {
            let value = self.value(argument)?;
            let Some(current) = best else {
                best = Some(value);
                continue;
            };
            let ahead = self.compare_with(op, &current, &value, compare::ZeroSigns::Apart)?;
            // The current one stays where it is ahead or equal, and where the other is null.
            let stays =
                format!("{} && (!{} || {})", current.validity(), value.validity(), ahead.code);
            let stays = self.out.let_("bool", stays);
            let valid = match (&current.valid, &value.valid) {
                (Some(v), Some(w)) => Some(self.out.let_("bool", format_args!("{v} || {w}"))),
                _ => None,
            };
            let begin = self.out.place();
            let other = self.chosen_if(None, value, dtype)?;
            let current = self.chosen_if(Some(&stays), current, dtype)?;
            let mut chosen = self.choose(begin, &[other, current], dtype)?;
            chosen.valid = valid;
            best = Some(chosen);
        }
        best.ok_or_else(|| not_yet("an empty list of arguments"))
    }
}

/// Places to which a float is rounded at most: beyond them, its digits times a power of ten may be
/// no float.
const MOST_PLACES: i32 = crate::host::MOST_PLACES as i32;
