//! `percentile_cont` on the CPU engine, between two values exactly.
//!
//! DataFusion's (55.2) rounds the way between the two values down to a millionth. What it keeps of
//! each group is a list of the values; here the result is computed from that list.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray, RecordBatch,
};
use datafusion::arrow::datatypes::{
    ArrowNativeTypeOp, DataType, FieldRef, Float16Type, Float32Type, Float64Type, Schema,
};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::functions_aggregate::percentile_cont::PercentileCont;
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs,
};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, EmitTo, GroupsAccumulator,
    Signature,
};

/// The function, to be registered in place of DataFusion's.
pub(crate) fn percentile_cont() -> Arc<AggregateUDF> {
    static SHARED: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
        Arc::new(AggregateUDF::from(ExactPercentile { inner: PercentileCont::new() }))
    });
    SHARED.clone()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ExactPercentile {
    inner: PercentileCont,
}

impl AggregateUDFImpl for ExactPercentile {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if args.expr_fields[0].data_type().is_null() {
            return self.inner.accumulator(args);
        }
        // The inner one says what is wrong with a share.
        let inner = self.inner.accumulator(args.clone())?;
        let (share, distinct) = (share_of(&args)?, args.is_distinct);
        Ok(Box::new(ExactAccumulator { inner, share, distinct }))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let inner = self.inner.create_groups_accumulator(args.clone())?;
        let share = share_of(&args)?;
        Ok(Box::new(ExactGroups { inner, share }))
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.inner.simplify()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.inner.supports_within_group_clause()
    }
}

/// The share of the way from the least value to the greatest.
fn share_of(args: &AccumulatorArgs) -> Result<f64> {
    let constant = args.exprs[1].evaluate(&RecordBatch::new_empty(Schema::empty().into()))?;
    let ColumnarValue::Scalar(share) = constant else {
        return internal_err!("the share of a percentile is no constant");
    };
    let ScalarValue::Float64(Some(share)) = share.cast_to(&DataType::Float64)? else {
        return internal_err!("the share of a percentile is {share}");
    };
    let descends = args.order_bys.first().is_some_and(|key| key.options.descending);
    Ok(if descends { 1.0 - share } else { share })
}

/// DataFusion's accumulator of one group, but for its result.
#[derive(Debug)]
struct ExactAccumulator {
    inner: Box<dyn Accumulator>,
    share: f64,
    distinct: bool,
}

impl Accumulator for ExactAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let state = self.inner.state()?;
        let [list] = state.as_slice() else { return internal_err!("a percentile has one list") };
        let list = list.to_array()?;
        let found = ScalarValue::try_from_array(&of_lists(&list, self.share)?, 0)?;
        // A window asks again after its frame has moved. The state of values that are not distinct
        // took them out of the inner accumulator, so they are put back.
        if !self.distinct {
            self.inner.merge_batch(&[list])?;
        }
        Ok(found)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }
}

/// DataFusion's accumulator of many groups, but for its results.
struct ExactGroups {
    inner: Box<dyn GroupsAccumulator>,
    share: f64,
}

impl GroupsAccumulator for ExactGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.inner.update_batch(values, groups, filter, count)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.inner.merge_batch(values, groups, count)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(values, filter)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        match self.inner.state(emit)?.as_slice() {
            [lists] => of_lists(lists, self.share),
            _ => internal_err!("a percentile has one list"),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }
}

/// The percentile of each list of floats.
fn of_lists(lists: &ArrayRef, share: f64) -> Result<ArrayRef> {
    let lists = lists.as_list::<i32>();
    let each = lists.iter();
    Ok(match lists.value_type() {
        DataType::Float16 => Arc::new(percentiles::<Float16Type>(each, share)),
        DataType::Float32 => Arc::new(percentiles::<Float32Type>(each, share)),
        DataType::Float64 => Arc::new(percentiles::<Float64Type>(each, share)),
        other => return internal_err!("a percentile of {other}"),
    })
}

fn percentiles<T>(lists: impl Iterator<Item = Option<ArrayRef>>, share: f64) -> PrimitiveArray<T>
where
    T: ArrowPrimitiveType,
    T::Native: Interpolated,
{
    lists
        .map(|list| {
            let list = list?;
            let mut values: Vec<T::Native> = list.as_primitive::<T>().iter().flatten().collect();
            let last = values.len().checked_sub(1)?;
            let place = share * last as f64;
            let (low, high) = (place.floor() as usize, (place.ceil() as usize).min(last));
            let (_, below, above) = values.select_nth_unstable_by(low, |a, b| a.compare(*b));
            let below = *below;
            if low == high {
                return Some(below);
            }
            let above = above
                .iter()
                .copied()
                .reduce(|least, value| if value.compare(least).is_lt() { value } else { least })?;
            Some(below.towards(above, place - place.floor()))
        })
        .collect()
}

/// A float between two, as kernels compute it.
trait Interpolated: ArrowNativeTypeOp {
    fn towards(self, above: Self, share: f64) -> Self;
}

macro_rules! between {
    ($($native:ty: $to:expr, $from:expr;)*) => {
        $(impl Interpolated for $native {
            fn towards(self, above: Self, share: f64) -> Self {
                let (to, from): (fn($native) -> f64, fn(f64) -> $native) = ($to, $from);
                let below = to(self);
                from(below + (to(above) - below) * share)
            }
        })*
    };
}

between! {
    half::f16: half::f16::to_f64, half::f16::from_f64;
    f32: f64::from, |value| value as f32;
    f64: |value| value, |value| value;
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Array, Float64Array, ListArray};

    use super::*;

    #[test]
    fn the_way_between_two_values_is_not_rounded() -> Result<()> {
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>([
            Some(vec![Some(3.0), Some(0.0), Some(1e9)]),
            Some(vec![Some(7.0)]),
            Some(vec![]),
            None,
            Some(vec![Some(f64::NAN), Some(1.0), Some(2.0)]),
        ]));
        let found = of_lists(&lists, 0.75)?;
        let found: &Float64Array = found.as_primitive();
        assert_eq!(found.value(0), 3.0 + (1e9 - 3.0) * 0.5);
        assert_eq!(found.value(1), 7.0);
        assert!(found.is_null(2) && found.is_null(3));
        assert!(found.value(4).is_nan());
        let third = of_lists(&lists, 1.0 / 3.0)?;
        let place = 2.0 / 3.0;
        assert_eq!(third.as_primitive::<Float64Type>().value(0), 3.0 * place);
        Ok(())
    }
}
