//! `min` and `max` of lists and structs.
//!
//! DataFusion's accumulators (55.2, `ScalarValue::partial_cmp`) fail on lists and structs within
//! them, and take a struct with a null for neither greater nor less. These compare as ORDER BY does, with nulls within as the greatest.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, make_comparator};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};

/// The function in place of `min` or `max` of a type, if there is one.
pub(super) fn of_nested(name: &str, dtype: &DataType) -> Option<Arc<AggregateUDF>> {
    let wanted = match name {
        "min" => Ordering::Less,
        "max" => Ordering::Greater,
        _ => return None,
    };
    let signature = Signature::any(1, Volatility::Immutable);
    let is_nested = matches!(
        dtype,
        DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(..)
            | DataType::Struct(_)
    );
    is_nested.then(|| Arc::new(AggregateUDF::from(NestedExtreme { wanted, signature })))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NestedExtreme {
    /// How the value compares to others.
    wanted: Ordering,
    signature: Signature,
}

impl AggregateUDFImpl for NestedExtreme {
    fn name(&self) -> &str {
        if self.wanted == Ordering::Less { "min" } else { "max" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [dtype] => Ok(dtype.clone()),
            _ => plan_err!("{} takes one value", self.name()),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let best = ScalarValue::try_from(args.return_field.data_type())?;
        Ok(Box::new(Best { wanted: self.wanted, best }))
    }
}

/// The extreme so far, null at first.
#[derive(Debug)]
struct Best {
    wanted: Ordering,
    best: ScalarValue,
}

impl Accumulator for Best {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return Ok(()) };
        let nulls_last = SortOptions { descending: false, nulls_first: false };
        let within = make_comparator(values, values, nulls_last)?;
        let rows = (0..values.len()).filter(|row| values.is_valid(*row));
        let is_ahead = |row, other| within(row, other) == self.wanted;
        let Some(row) = rows.reduce(|best, row| if is_ahead(row, best) { row } else { best })
        else {
            return Ok(());
        };
        let so_far = self.best.to_array()?;
        let ahead = so_far.is_null(0)
            || make_comparator(values, &so_far, nulls_last)?(row, 0) == self.wanted;
        if ahead {
            self.best = ScalarValue::try_from_array(values, row)?.compacted();
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.best.clone()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.best.clone())
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.best.size() - size_of::<ScalarValue>()
    }
}
