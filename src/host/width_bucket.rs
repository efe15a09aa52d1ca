//! `width_bucket(x, low, high, count)` of standard SQL: the number of the bucket that a value falls
//! into, of so many of equal width between two bounds. 0 is before the first, `count + 1` behind
//! the last. Bounds may descend. `kernels/math.cuh` has the same.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, Int64Array};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::{Result, exec_err, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::calls::HostCall;

pub(crate) fn width_bucket_udf() -> ScalarUDF {
    let mut types = vec![DataType::Float64; 3];
    types.push(DataType::Int64);
    ScalarUDF::from(WidthBucket { signature: Signature::exact(types, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WidthBucket {
    signature: Signature,
}

impl ScalarUDFImpl for WidthBucket {
    fn name(&self) -> &str {
        "width_bucket"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let call = HostCall::of(&args)?;
        let [values, lows, highs, counts] = call.arrays.as_slice() else {
            return internal_err!("width_bucket of {} arguments", call.arrays.len());
        };
        let float = |array: &Arc<dyn Array>, row| array.as_primitive::<Float64Type>().value(row);
        let bucket = |row: usize| -> Result<Option<i64>> {
            if call.arrays.iter().any(|array| array.is_null(row)) {
                return Ok(None);
            }
            let (low, high) = (float(lows, row), float(highs, row));
            let count = counts.as_primitive::<Int64Type>().value(row);
            if count < 1
                || count == i64::MAX
                || low == high
                || !low.is_finite()
                || !high.is_finite()
            {
                return exec_err!(
                    "width_bucket: {count} buckets between {low} and {high}, where there is to be one at least, \
                     between two finite bounds that differ"
                );
            }
            match float(values, row) {
                value if value.is_nan() => exec_err!("width_bucket of NaN"),
                value => Ok(Some(number(value, low, high, count))),
            }
        };
        let found = (0..call.rows).map(bucket).collect::<Result<Int64Array>>()?;
        call.yields(Arc::new(found))
    }
}

fn number(value: f64, low: f64, high: f64, count: i64) -> i64 {
    let (before, behind) =
        if low < high { (value < low, value >= high) } else { (value > low, value <= high) };
    if before {
        0
    } else if behind {
        count + 1
    } else {
        // Rounding may lead to the upper bound.
        (((value - low) / (high - low) * count as f64) as i64).min(count - 1) + 1
    }
}
