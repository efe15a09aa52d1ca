//! What plans are given that are to mean what they mean to Arrow, where this engine means something
//! else: floats as integers in Arrow's order, and decimals without their point.
//!
//! Arrow's kernels sort floats in the order of all their bits (IEEE 754-2019, 5.10, `totalOrder`):
//! −0.0 is less than 0.0, and NaN differ by sign and payload. When it compares them, zeros are equal.
//! To this engine zeros are equal and so are all NaN.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
};
use datafusion::common::{ScalarValue, exec_err, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast,
    lit,
};

use super::calls::HostCall;

/// What is done with a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ArrowForm {
    /// A float as an integer of as many bits, as it is sorted.
    Sorted,
    /// A float as an integer of as many bits, as it is compared.
    Compared,
    /// The float that is such an integer.
    Back,
    /// A decimal's digits, without a point.
    Digits,
    /// A float as a whole number, halves away from zero.
    Rounded,
    /// Digits with the point of a decimal of another type, which a second argument has.
    Point,
}

impl ArrowForm {
    /// The name of the function, as `codegen/expr/functions/numbers.rs` has it.
    fn name(self) -> &'static str {
        match self {
            ArrowForm::Sorted => "arrow_sorted",
            ArrowForm::Compared => "arrow_compared",
            ArrowForm::Back => "arrow_back",
            ArrowForm::Digits => "arrow_digits",
            ArrowForm::Rounded => "arrow_rounded",
            ArrowForm::Point => "arrow_point",
        }
    }

    fn all() -> [ArrowForm; 6] {
        use ArrowForm::*;
        [Sorted, Compared, Back, Digits, Rounded, Point]
    }

    fn shared(self) -> &'static Arc<ScalarUDF> {
        static SHARED: LazyLock<[Arc<ScalarUDF>; 6]> =
            LazyLock::new(|| ArrowForm::all().map(FormFunction::shared));
        &SHARED[self as usize]
    }

    /// A float as a decimal, as Arrow casts it: it is multiplied, and rounded.
    ///
    /// # Errors
    /// Of a type that is no decimal's.
    pub(crate) fn decimal(float: Expr, precision: u8, scale: i8) -> Result<Expr> {
        let whole = ArrowForm::Rounded.of(float * lit(10f64.powi(i32::from(scale))));
        let digits = cast(whole, DataType::Decimal128(precision, 0));
        let typed = ScalarValue::try_from(&DataType::Decimal128(precision, scale))?;
        Ok(ArrowForm::Point.shared().call(vec![digits, Expr::Literal(typed, None)]))
    }

    /// The function of an expression.
    pub(crate) fn of(self, number: Expr) -> Expr {
        self.shared().call(vec![number])
    }
}

/// The function of a name, if it is one of these.
#[cfg(feature = "proto")]
pub(crate) fn named_function(name: &str) -> Option<Arc<ScalarUDF>> {
    let form = ArrowForm::all().into_iter().find(|form| form.name() == name);
    form.map(FormFunction::shared)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FormFunction {
    form: ArrowForm,
    signature: Signature,
}

impl FormFunction {
    fn shared(form: ArrowForm) -> Arc<ScalarUDF> {
        let count = if form == ArrowForm::Point { 2 } else { 1 };
        let signature = Signature::any(count, Volatility::Immutable);
        Arc::new(ScalarUDF::from(FormFunction { form, signature }))
    }
}

/// Negative floats are ordered backwards by their bits.
fn ordered(bits: i64) -> i64 {
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

fn ordered_short(bits: i32) -> i32 {
    bits ^ ((bits >> 31) as u32 >> 1) as i32
}

impl ScalarUDFImpl for FormFunction {
    fn name(&self) -> &str {
        self.form.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        use ArrowForm::{Back, Compared, Digits, Point, Rounded, Sorted};
        match (self.form, types) {
            (Sorted | Compared, [DataType::Float64]) => Ok(DataType::Int64),
            (Sorted | Compared, [DataType::Float32]) => Ok(DataType::Int32),
            (Back, [DataType::Int64]) => Ok(DataType::Float64),
            (Back, [DataType::Int32]) => Ok(DataType::Float32),
            (Digits, [DataType::Decimal128(precision, _)]) => {
                Ok(DataType::Decimal128(*precision, 0))
            }
            (Rounded, [DataType::Float64]) => Ok(DataType::Float64),
            (Point, [DataType::Decimal128(_, 0), typed @ DataType::Decimal128(..)]) => {
                Ok(typed.clone())
            }
            _ => internal_err!("{} of {types:?}", self.name()),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let call = HostCall::of(&args)?;
        let array = &call.arrays[0];
        // −0.0 + 0.0 is 0.0; a NaN stays as it is.
        let zeros = self.form == ArrowForm::Compared;
        let found: ArrayRef = match array.data_type() {
            DataType::Float64 if self.form == ArrowForm::Rounded => {
                let found: PrimitiveArray<Float64Type> =
                    array.as_primitive::<Float64Type>().unary(f64::round);
                Arc::new(found)
            }
            DataType::Float64 => {
                let zero = |float: f64| if zeros && float == 0.0 { 0.0 } else { float };
                let of = |float: f64| ordered(zero(float).to_bits() as i64);
                let found: PrimitiveArray<Int64Type> =
                    array.as_primitive::<Float64Type>().unary(of);
                Arc::new(found)
            }
            DataType::Float32 => {
                let zero = |float: f32| if zeros && float == 0.0 { 0.0 } else { float };
                let of = |float: f32| ordered_short(zero(float).to_bits() as i32);
                let found: PrimitiveArray<Int32Type> =
                    array.as_primitive::<Float32Type>().unary(of);
                Arc::new(found)
            }
            DataType::Int64 => {
                let of = |bits: i64| f64::from_bits(ordered(bits) as u64);
                let found: PrimitiveArray<Float64Type> =
                    array.as_primitive::<Int64Type>().unary(of);
                Arc::new(found)
            }
            DataType::Int32 => {
                let of = |bits: i32| f32::from_bits(ordered_short(bits) as u32);
                let found: PrimitiveArray<Float32Type> =
                    array.as_primitive::<Int32Type>().unary(of);
                Arc::new(found)
            }
            DataType::Decimal128(precision, _) => {
                let (precision, scale) = match call.arrays.get(1).map(|typed| typed.data_type()) {
                    Some(DataType::Decimal128(precision, scale)) => (*precision, *scale),
                    _ => (*precision, 0),
                };
                let decimals = array.as_primitive::<Decimal128Type>().clone();
                Arc::new(decimals.with_precision_and_scale(precision, scale)?)
            }
            other => return exec_err!("{} of {other}", self.name()),
        };
        call.yields(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_the_order_of_the_floats_and_lead_back() {
        let floats = [f64::NEG_INFINITY, -2.5, -f64::MIN_POSITIVE, -0.0, 0.0, 1e-300, 7.0];
        let above = [f64::INFINITY, f64::NAN];
        let all: Vec<f64> = std::iter::once(-f64::NAN).chain(floats).chain(above).collect();
        let integers: Vec<i64> = all.iter().map(|of| ordered(of.to_bits() as i64)).collect();
        assert!(integers.is_sorted_by(|a, b| a < b), "{integers:?}");
        for (float, integer) in all.iter().zip(integers) {
            assert_eq!(ordered(integer) as u64, float.to_bits());
        }
        for float in [-1.5f32, -0.0, 0.0, f32::NAN] {
            let integer = ordered_short(float.to_bits() as i32);
            assert_eq!(ordered_short(integer) as u32, float.to_bits());
        }
    }
}
