//! `bit_xor` over frames that lose rows (DataFusion 55.2, not reported): of a frame that holds no
//! value any more it is 0, for the accumulator that takes rows back does not count them. It has
//! to be NULL. The function here counts them.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::bit_and_or_xor::bit_xor_udaf;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ReversedUDAF, Signature, Volatility,
};

/// The function in place of `bit_xor` over the frames of a window.
pub(super) fn of_frames(func: &AggregateUDF) -> Option<Arc<AggregateUDF>> {
    let signature = Signature::any(1, Volatility::Immutable);
    (func.name() == "bit_xor").then(|| Arc::new(AggregateUDF::from(CountedXor { signature })))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CountedXor {
    signature: Signature,
}

impl AggregateUDFImpl for CountedXor {
    fn name(&self) -> &str {
        "bit_xor"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let empty = ScalarValue::try_from(args.return_field.data_type())?;
        Ok(Box::new(Counted { xor: bit_xor_udaf().accumulator(args)?, values: 0, empty }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

#[derive(Debug)]
struct Counted {
    xor: Box<dyn Accumulator>,
    /// The number of values in the frame, nulls aside.
    values: usize,
    empty: ScalarValue,
}

impl Accumulator for Counted {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values += values[0].len() - values[0].logical_null_count();
        self.xor.update_batch(values)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values -= values[0].len() - values[0].logical_null_count();
        self.xor.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.xor.supports_retract_batch()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.xor.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.xor.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match self.values {
            0 => Ok(self.empty.clone()),
            _ => self.xor.evaluate(),
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.xor.size()
    }
}
