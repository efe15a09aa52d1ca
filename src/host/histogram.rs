//! `histogram(x, low, high, count[, weight])`: an aggregate that yields a list of how many values
//! lie in each of `count` bins of one width (`plan/bins.rs`), or of what they weigh. A value
//! without a weight is in no bin. A group without values has bins of zeros.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, ListArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, TypeSignature, Volatility,
};
use datafusion::physical_expr::expressions::Literal;

use super::bins::HistogramBins;

const NAME: &str = "histogram";

pub(crate) fn histogram() -> AggregateUDF {
    use DataType::{Float64, Int64};
    let counted = TypeSignature::Exact(vec![Float64, Float64, Float64, Int64]);
    let weighed = TypeSignature::Exact(vec![Float64, Float64, Float64, Int64, Float64]);
    let signature = Signature::one_of(vec![counted, weighed], Volatility::Immutable);
    AggregateUDF::from(Histogram { signature })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Histogram {
    signature: Signature,
}

impl AggregateUDFImpl for Histogram {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types.len() {
            4 => Ok(DataType::new_list(DataType::Int64, true)),
            5 => Ok(DataType::new_list(DataType::Float64, true)),
            given => {
                plan_err!(
                    "{NAME} takes a value, two bounds, a number of bins, and a weight, not {given} arguments"
                )
            }
        }
    }

    fn is_nullable(&self) -> bool {
        false
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let constant = |at: usize| {
            args.exprs.get(at)?.downcast_ref::<Literal>().map(|literal| literal.value())
        };
        match HistogramBins::of_constants([constant(1), constant(2), constant(3)]) {
            Ok(bins) => {
                let count = bins.count() as usize;
                let (counts, weights) = match args.exprs.len() {
                    4 => (vec![0; count], None),
                    _ => (vec![], Some(vec![0.0; count])),
                };
                Ok(Box::new(Counts { bins, counts, weights }))
            }
            Err(why) => exec_err!("{why}"),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let dtype = args.return_field.data_type().clone();
        Ok(vec![Arc::new(Field::new(format!("{}[bins]", args.name), dtype, true))])
    }
}

/// What lies in the bins so far.
#[derive(Debug)]
struct Counts {
    bins: HistogramBins,
    /// Empty where weights are summed.
    counts: Vec<i64>,
    weights: Option<Vec<f64>>,
}

impl Counts {
    fn list(&self) -> Result<ScalarValue> {
        let (values, dtype): (ArrayRef, _) = match &self.weights {
            Some(weights) => (Arc::new(Float64Array::from(weights.clone())), DataType::Float64),
            None => (Arc::new(Int64Array::from(self.counts.clone())), DataType::Int64),
        };
        let offsets = OffsetBuffer::from_lengths([values.len()]);
        let list = ListArray::try_new(
            Arc::new(Field::new_list_field(dtype, true)),
            offsets,
            values,
            None,
        )?;
        Ok(ScalarValue::List(Arc::new(list)))
    }
}

impl Accumulator for Counts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let x = values[0].as_primitive::<Float64Type>();
        let weight = values.get(4).map(|weight| weight.as_primitive::<Float64Type>());
        for row in 0..x.len() {
            let Some(bin) = x.is_valid(row).then(|| self.bins.place(x.value(row))).flatten() else {
                continue;
            };
            match (&mut self.weights, weight) {
                (Some(weights), Some(weight)) if weight.is_valid(row) => {
                    weights[bin] += weight.value(row)
                }
                (Some(_), _) => {}
                (None, _) => self.counts[bin] += 1,
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states[0].as_list::<i32>().iter().flatten() {
            match &mut self.weights {
                Some(weights) => {
                    let others = list.as_primitive::<Float64Type>().values();
                    weights.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
                }
                None => {
                    let others = list.as_primitive::<Int64Type>().values();
                    self.counts.iter_mut().zip(others).for_each(|(count, other)| *count += other);
                }
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.list()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.list()
    }

    fn size(&self) -> usize {
        let weights = self.weights.as_ref().map_or(0, Vec::capacity);
        size_of_val(self) + (self.counts.capacity() + weights) * size_of::<f64>()
    }
}
