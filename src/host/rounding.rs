//! `ceil` and `floor` whose decimals hold their results.
//!
//! DataFusion's (55.2) yield a decimal of the same type, so that `ceil` of 99.9 as a decimal(3, 1)
//! fails. Here, as in DuckDB, it has as many digits, and none behind the point: 100 as a decimal(3,
//! 0). Of other types the functions are DataFusion's.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, ArrowNativeTypeOp, AsArray, PrimitiveArray};
use datafusion::arrow::datatypes::{
    ArrowNativeType, DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DecimalType,
};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

pub(crate) fn ceil() -> Arc<ScalarUDF> {
    static SHARED: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Whole::shared(Side::Above, datafusion::functions::math::ceil()));
    SHARED.clone()
}

pub(crate) fn floor() -> Arc<ScalarUDF> {
    static SHARED: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Whole::shared(Side::Below, datafusion::functions::math::floor()));
    SHARED.clone()
}

pub(crate) fn ceil_of(number: Expr) -> Expr {
    ceil().call(vec![number])
}

pub(crate) fn floor_of(number: Expr) -> Expr {
    floor().call(vec![number])
}

/// On which side of a number the whole one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Side {
    Above,
    Below,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Whole {
    side: Side,
    inner: Arc<ScalarUDF>,
}

impl Whole {
    fn shared(side: Side, inner: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Whole { side, inner }))
    }

    /// The whole numbers of decimals, in the type that holds them.
    fn of<D: DecimalType>(&self, array: &ArrayRef, precision: u8, scale: i8) -> Result<ArrayRef> {
        let zero = D::Native::ZERO;
        let factor = D::Native::usize_as(10).pow_wrapping(u32::from(scale.unsigned_abs()));
        let whole = |value: D::Native| {
            let (quotient, rest) = (value.div_wrapping(factor), value.mod_wrapping(factor));
            match self.side {
                Side::Above if rest.is_gt(zero) => quotient.add_wrapping(D::Native::ONE),
                Side::Below if rest.is_lt(zero) => quotient.sub_wrapping(D::Native::ONE),
                _ => quotient,
            }
        };
        let whole: PrimitiveArray<D> = array.as_primitive::<D>().unary(whole);
        Ok(Arc::new(whole.with_precision_and_scale(precision, 0)?))
    }
}

/// What a decimal becomes, where it has digits behind the point.
fn held(dtype: &DataType) -> Option<DataType> {
    Some(match dtype {
        DataType::Decimal32(precision, 1..) => DataType::Decimal32(*precision, 0),
        DataType::Decimal64(precision, 1..) => DataType::Decimal64(*precision, 0),
        DataType::Decimal128(precision, 1..) => DataType::Decimal128(*precision, 0),
        DataType::Decimal256(precision, 1..) => DataType::Decimal256(*precision, 0),
        _ => return None,
    })
}

impl ScalarUDFImpl for Whole {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types.first().and_then(held) {
            Some(dtype) => Ok(dtype),
            None => self.inner.return_type(types),
        }
    }

    fn is_strict(&self) -> bool {
        self.inner.is_strict()
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(input)
    }

    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        match held(&inputs[0].data_type()) {
            Some(dtype) => Interval::make_unbounded(&dtype),
            None => self.inner.evaluate_bounds(inputs),
        }
    }

    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        match literal {
            // Its bounds would have another type than the argument.
            Expr::Literal(value, _) if value.data_type().is_decimal() => Ok(PreimageResult::None),
            _ => self.inner.preimage(args, literal, info),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = args.args.as_slice() else { return self.inner.invoke_with_args(args) };
        let dtype = argument.data_type();
        if held(&dtype).is_none() {
            return self.inner.invoke_with_args(args);
        }
        // A constant has its value in batches without rows, too.
        let array = match argument {
            ColumnarValue::Scalar(value) => value.to_array()?,
            ColumnarValue::Array(values) => values.clone(),
        };
        let whole = match dtype {
            DataType::Decimal32(p, s) => self.of::<Decimal32Type>(&array, p, s)?,
            DataType::Decimal64(p, s) => self.of::<Decimal64Type>(&array, p, s)?,
            DataType::Decimal128(p, s) => self.of::<Decimal128Type>(&array, p, s)?,
            DataType::Decimal256(p, s) => self.of::<Decimal256Type>(&array, p, s)?,
            _ => return self.inner.invoke_with_args(args),
        };
        Ok(match argument {
            ColumnarValue::Scalar(_) => {
                ColumnarValue::Scalar(ScalarValue::try_from_array(&whole, 0)?)
            }
            ColumnarValue::Array(_) => ColumnarValue::Array(whole),
        })
    }
}
