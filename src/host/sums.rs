//! `sum` of 64-bit integers. A result that does not fit 64 bits is an error; DataFusion's `sum`
//! (55.2) wraps in silence. The function here adds the integers as decimals of 38 digits, which
//! hold the sum of 10¹⁸ of them, and casts the result back.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray, new_null_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Cast, EmitTo, Expr, ExprSchemable,
    GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};

const WIDE: DataType = DataType::Decimal128(38, 0);

/// The function in place of `sum` of such an argument, if there is one.
pub(super) fn of_integers(
    func: &AggregateUDF,
    arg: &Expr,
    schema: &DFSchema,
) -> Option<Arc<AggregateUDF>> {
    // A sum of narrower integers takes more rows than there are to leave 64 bits.
    let is_narrow = |cast: &Cast| {
        let from = cast.expr.get_type(schema);
        from.is_ok_and(|from| from.is_integer() && from.primitive_width() < Some(8))
    };
    match arg {
        Expr::Cast(cast) if is_narrow(cast) => return None,
        _ => {}
    }
    let dtype = arg.get_type(schema).ok()?;
    let taken = func.name() == "sum" && matches!(dtype, DataType::Int64 | DataType::UInt64);
    let signature = Signature::any(1, Volatility::Immutable);
    taken.then(|| Arc::new(AggregateUDF::from(ExactSum { signature })))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ExactSum {
    signature: Signature,
}

fn wide(field: &FieldRef) -> FieldRef {
    Arc::new(Field::new(field.name(), WIDE, true))
}

/// Makes an accumulator with decimals as the types of its argument and its result.
fn of_wide<T>(args: AccumulatorArgs, make: impl FnOnce(AccumulatorArgs) -> Result<T>) -> Result<T> {
    let fields: Vec<_> = args.expr_fields.iter().map(wide).collect();
    make(AccumulatorArgs { return_field: wide(&args.return_field), expr_fields: &fields, ..args })
}

impl AggregateUDFImpl for ExactSum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let dtype = args.return_field.data_type().clone();
        let sum = of_wide(args, |args| sum_udaf().accumulator(args))?;
        Ok(Box::new(Narrowed { sum, dtype }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let dtype = args.return_field.data_type().clone();
        // DataFusion has none of distinct decimals.
        if args.is_distinct {
            let sum = Box::<DistinctSum>::default();
            return Ok(Box::new(Narrowed { sum, dtype }));
        }
        let sum = of_wide(args, |args| sum_udaf().create_sliding_accumulator(args))?;
        Ok(Box::new(Narrowed { sum, dtype }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let fields: Vec<_> = args.input_fields.iter().map(wide).collect();
        sum_udaf().state_fields(StateFieldsArgs {
            input_fields: &fields,
            return_field: wide(&args.return_field),
            ..args
        })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let dtype = args.return_field.data_type().clone();
        let sum = of_wide(args, |args| sum_udaf().create_groups_accumulator(args))?;
        Ok(Box::new(NarrowedGroups { sum, dtype }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// Sums of decimals as integers of this type.
fn narrowed(sums: &ArrayRef, dtype: &DataType) -> Result<ArrayRef> {
    if sums.is_empty() || sums.null_count() == sums.len() {
        return Ok(new_null_array(dtype, sums.len()));
    }
    // The cast makes null of a value that the type does not hold.
    let narrow = cast(sums, dtype)?;
    match narrow.null_count() == sums.null_count() {
        true => Ok(narrow),
        false => {
            let message = format!("a sum has more than the 64 bits of {dtype}");
            Err(ArrowError::ArithmeticOverflow(message).into())
        }
    }
}

fn widened(values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    values.iter().map(|values| Ok(cast(values, &WIDE)?)).collect()
}

#[derive(Debug)]
struct Narrowed {
    sum: Box<dyn Accumulator>,
    dtype: DataType,
}

impl Accumulator for Narrowed {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sum.update_batch(&widened(values)?)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sum.retract_batch(&widened(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.sum.supports_retract_batch()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.sum.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.sum.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.sum.evaluate()?.to_array()?;
        ScalarValue::try_from_array(&narrowed(&sum, &self.dtype)?, 0)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.sum.size()
    }
}

/// The sum of the distinct values of a frame.
#[derive(Debug, Default)]
struct DistinctSum {
    /// How often the frame holds each value.
    counts: HashMap<i128, usize>,
    sum: i128,
}

impl Accumulator for DistinctSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_primitive::<Decimal128Type>().iter().flatten() {
            let count = self.counts.entry(value).or_default();
            if *count == 0 {
                self.sum += value;
            }
            *count += 1;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_primitive::<Decimal128Type>().iter().flatten() {
            if let Entry::Occupied(mut held) = self.counts.entry(value) {
                *held.get_mut() -= 1;
                if *held.get() == 0 {
                    held.remove();
                    self.sum -= value;
                }
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        internal_err!("frames are summed in one piece")
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("frames are summed in one piece")
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = (!self.counts.is_empty()).then_some(self.sum);
        Ok(ScalarValue::Decimal128(sum, 38, 0))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.counts.capacity() * size_of::<(i128, usize)>()
    }
}

struct NarrowedGroups {
    sum: Box<dyn GroupsAccumulator>,
    dtype: DataType,
}

impl GroupsAccumulator for NarrowedGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.sum.update_batch(&widened(values)?, groups, filter, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        narrowed(&self.sum.evaluate(emit_to)?, &self.dtype)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.sum.state(emit_to)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.sum.merge_batch(states, groups, total)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.sum.convert_to_state(&widened(values)?, filter)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.sum.size()
    }
}
