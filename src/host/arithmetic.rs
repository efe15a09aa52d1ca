//! Sums, differences, products and quotients whose results are values of their types, on the CPU
//! engine: what does not fit is an error, as on the device.
//!
//! DataFusion (55.2) lets integers wrap (<https://github.com/apache/datafusion/issues/3520>), and
//! looks for an overflow of decimals at 128 bits, where their types end at 38 digits:
//! `9.5::DECIMAL(38, 37) + 1` was printed as 1.05.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Datum};
use datafusion::arrow::compute::kernels::numeric::{add, div, mul, rem, sub};
use datafusion::arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, Field,
    FieldRef,
};
use datafusion::common::{ScalarValue, exec_err, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};

/// An operator, as a function of its sides.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ExactStep {
    op: Operator,
    signature: Signature,
}

/// Whether DataFusion may take what does not fit the result for its value.
pub(super) fn overflows(op: Operator, left: &DataType, right: &DataType) -> bool {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    match op {
        Plus | Minus | Multiply if left.is_integer() && right.is_integer() => true,
        Plus | Minus | Multiply | Divide | Modulo if left.is_decimal() && right.is_decimal() => {
            let result = BinaryTypeCoercer::new(left, &op, right).get_result_type();
            result.is_ok_and(|result| is_longest(&result))
        }
        _ => false,
    }
}

/// Whether a decimal type has as many digits as any of its width: others are made so that results
/// fit.
fn is_longest(dtype: &DataType) -> bool {
    match dtype {
        DataType::Decimal32(precision, _) => *precision == Decimal32Type::MAX_PRECISION,
        DataType::Decimal64(precision, _) => *precision == Decimal64Type::MAX_PRECISION,
        DataType::Decimal128(precision, _) => *precision == Decimal128Type::MAX_PRECISION,
        DataType::Decimal256(precision, _) => *precision == Decimal256Type::MAX_PRECISION,
        _ => false,
    }
}

/// `left op right`.
pub(super) fn exact(left: Expr, op: Operator, right: Expr) -> Expr {
    let signature = Signature::any(2, Volatility::Immutable);
    ScalarUDF::from(ExactStep { op, signature }).call(vec![left, right])
}

/// `-value` of a signed integer: its difference to zero.
pub(super) fn negated(value: Expr, dtype: &DataType) -> Result<Expr> {
    let zero = ScalarValue::new_zero(dtype)?;
    Ok(exact(Expr::Literal(zero, None), Operator::Minus, value))
}

/// The operator that a function is, if it is one.
pub(super) fn plain(call: ScalarFunction) -> Result<BinaryExpr, ScalarFunction> {
    let Some(ExactStep { op, .. }) = call.func.inner().downcast_ref() else { return Err(call) };
    let op = *op;
    match <[Expr; 2]>::try_from(call.args) {
        Ok([left, right]) => Ok(BinaryExpr::new(Box::new(left), op, Box::new(right))),
        Err(args) => Err(ScalarFunction { func: call.func, args }),
    }
}

impl ScalarUDFImpl for ExactStep {
    fn name(&self) -> &str {
        match self.op {
            Operator::Plus => "exact_sum",
            Operator::Minus => "exact_difference",
            Operator::Multiply => "exact_product",
            Operator::Divide => "exact_quotient",
            _ => "exact_remainder",
        }
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [left, right] = args else { return internal_err!("{} takes two values", self.name()) };
        Ok(format!("{} {} {}", left.schema_name(), self.op, right.schema_name()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [left, right] => BinaryTypeCoercer::new(left, &self.op, right).get_result_type(),
            _ => internal_err!("{} takes two values", self.name()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<_> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return exec_err!("{} takes two values", self.name());
        };
        let datum = |value: &ColumnarValue| -> Result<Box<dyn Datum>> {
            Ok(match value {
                ColumnarValue::Array(array) => Box::new(array.clone()),
                ColumnarValue::Scalar(scalar) => Box::new(scalar.to_scalar()?),
            })
        };
        let (a, b) = (datum(left)?, datum(right)?);
        let (a, b) = (a.as_ref(), b.as_ref());
        let found = match self.op {
            Operator::Plus => add(a, b),
            Operator::Minus => sub(a, b),
            Operator::Multiply => mul(a, b),
            Operator::Divide => div(a, b),
            Operator::Modulo => rem(a, b),
            other => return internal_err!("{other} is no step of arithmetic"),
        }?;
        digits_fit(&found)?;
        Ok(match (left, right) {
            (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)) => {
                ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)
            }
            _ => ColumnarValue::Array(found),
        })
    }
}

fn digits_fit(found: &ArrayRef) -> Result<()> {
    match found.data_type() {
        DataType::Decimal32(precision, _) => {
            found.as_primitive::<Decimal32Type>().validate_decimal_precision(*precision)?
        }
        DataType::Decimal64(precision, _) => {
            found.as_primitive::<Decimal64Type>().validate_decimal_precision(*precision)?
        }
        DataType::Decimal128(precision, _) => {
            found.as_primitive::<Decimal128Type>().validate_decimal_precision(*precision)?
        }
        DataType::Decimal256(precision, _) => {
            found.as_primitive::<Decimal256Type>().validate_decimal_precision(*precision)?
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Int64Array;
    use datafusion::arrow::compute::kernels::numeric::add_wrapping;
    use datafusion::arrow::datatypes::Int64Type;

    use super::*;

    /// Why there is this function. Once DataFusion says what does not fit, it can go.
    #[test]
    fn arrow_still_takes_what_does_not_fit_for_a_value() -> Result<()> {
        let most = Int64Array::from(vec![i64::MAX]);
        assert_eq!(add_wrapping(&most, &most)?.as_primitive::<Int64Type>().value(0), -2);
        let digits = ScalarValue::Decimal128(Some(6 * 10i128.pow(37)), 38, 0).to_array()?;
        assert!(digits_fit(&digits).is_ok());
        assert!(digits_fit(&add(&digits, &digits)?).is_err());
        Ok(())
    }
}
