//! `in_unit(t)`: a date or a timestamp as one of a finer unit, to be compared with such. What lies
//! beyond the range of that unit is its end, so that it is still before or behind all others.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type, TimeUnit};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::calls::HostCall;

/// A date or timestamp as a timestamp of a type, which has the same zone.
pub(crate) fn in_unit(time: Expr, to: DataType) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::from(InUnit { to, signature }).call(vec![time])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct InUnit {
    to: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for InUnit {
    fn name(&self) -> &str {
        "in_unit"
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args[0].schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = args.arg_fields[0].is_nullable();
        Ok(Arc::new(Field::new(self.name(), self.to.clone(), nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let call = HostCall::of(&args)?;
        let DataType::Timestamp(unit, _) = &self.to else {
            return internal_err!("{} is no timestamp", self.to);
        };
        let length = match call.arrays[0].data_type() {
            DataType::Date32 => 86_400 * per_second(unit),
            DataType::Timestamp(from, _) => per_second(unit) / per_second(from),
            other => return internal_err!("{} of {other}", self.name()),
        };
        let days: ArrayRef = match call.arrays[0].data_type() {
            DataType::Date32 => cast(&call.arrays[0], &DataType::Int32)?,
            _ => call.arrays[0].clone(),
        };
        let ticks = cast(&days, &DataType::Int64)?;
        // The product saturates.
        let ticks: PrimitiveArray<Int64Type> =
            ticks.as_primitive::<Int64Type>().unary(|ticks| ticks.saturating_mul(length));
        call.yields(cast(&(Arc::new(ticks) as ArrayRef), &self.to)?)
    }
}

fn per_second(unit: &TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}
