//! The functions that plans for the CPU engine are given.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, GenericListArray, OffsetSizeTrait, UInt64Array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::{exec_err, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::casts::cast_exactly;
use super::casts::whole_minutes;
use super::floats::{FloatForm, float_type, formed, formed_scalar, order_type, ordered, unordered};
use super::lists::Lists;

/// What a function does with its one argument.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum HostOperation {
    /// Floats within it in a form.
    Formed(FloatForm),
    /// A float as an integer of its order.
    Order,
    /// And back.
    OfOrder,
    /// A number of characters: none where it is negative, an error where it is more than a string
    /// has.
    Length,
    /// Lists, and those within, of which the null ones have no elements.
    EmptyNulls,
    /// Where a list's first null is, from 1 on.
    FirstNull,
    /// Texts of timestamps with their seconds.
    WholeMinutes,
    /// A cast that Arrow does otherwise; to null where there is no such value, or an error.
    Cast { to: FieldRef, or_null: bool },
}

impl HostOperation {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            HostOperation::Formed(FloatForm::OneNan) => "one_nan",
            HostOperation::Formed(FloatForm::Equal) => "one_float",
            HostOperation::Order => "float_order",
            HostOperation::OfOrder => "float_of_order",
            HostOperation::Length => "text_length",
            HostOperation::EmptyNulls => "empty_nulls",
            HostOperation::FirstNull => "first_null",
            HostOperation::WholeMinutes => "whole_minutes",
            HostOperation::Cast { .. } => "exact_cast",
        }
    }

    /// The function of an expression.
    pub(crate) fn of(self, argument: Expr) -> Expr {
        static SHARED: LazyLock<[Arc<ScalarUDF>; 4]> = LazyLock::new(|| {
            [
                HostOperation::Formed(FloatForm::OneNan),
                HostOperation::Formed(FloatForm::Equal),
                HostOperation::Order,
                HostOperation::OfOrder,
            ]
            .map(HostFunction::shared)
        });
        let shared = match &self {
            HostOperation::Formed(FloatForm::OneNan) => Some(0),
            HostOperation::Formed(FloatForm::Equal) => Some(1),
            HostOperation::Order => Some(2),
            HostOperation::OfOrder => Some(3),
            HostOperation::Length
            | HostOperation::EmptyNulls
            | HostOperation::FirstNull
            | HostOperation::WholeMinutes
            | HostOperation::Cast { .. } => None,
        };
        let function = shared.map_or_else(|| HostFunction::shared(self), |at| SHARED[at].clone());
        function.call(vec![argument])
    }

    /// What a function does, if it is one of these.
    pub(crate) fn from(function: &ScalarUDF) -> Option<&HostOperation> {
        function.inner().downcast_ref::<HostFunction>().map(|function| &function.work)
    }
}

/// One of the functions. It bears the name of its argument, so that columns keep theirs.
#[derive(Debug, PartialEq, Eq, Hash)]
struct HostFunction {
    work: HostOperation,
    signature: Signature,
}

impl HostFunction {
    fn shared(work: HostOperation) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(HostFunction {
            work,
            signature: Signature::any(1, Volatility::Immutable),
        }))
    }
}

impl ScalarUDFImpl for HostFunction {
    fn name(&self) -> &str {
        self.work.name()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args[0].schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let [argument] = types else {
            return internal_err!("{} of {} arguments", self.name(), types.len());
        };
        let (result, wanted) = match &self.work {
            HostOperation::Formed(_)
            | HostOperation::Length
            | HostOperation::EmptyNulls
            | HostOperation::WholeMinutes => (Some(argument.clone()), "a value"),
            HostOperation::FirstNull => (Some(DataType::UInt64), "a list"),
            HostOperation::Order => (order_type(argument), "a float"),
            HostOperation::OfOrder => (float_type(argument), "an integer"),
            HostOperation::Cast { to, .. } => (Some(to.data_type().clone()), "a value"),
        };
        match result {
            Some(result) => Ok(result),
            None => internal_err!("{} needs {wanted}, not {argument}", self.name()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let argument = &args.arg_fields[0];
        let dtype = self.return_type(&[argument.data_type().clone()])?;
        let field = argument.as_ref().clone().with_data_type(dtype);
        Ok(Arc::new(match &self.work {
            // As casts do.
            HostOperation::Cast { to, or_null } => {
                let nullable = argument.is_nullable() || *or_null;
                field.with_nullable(nullable).with_metadata(to.metadata().clone())
            }
            HostOperation::FirstNull => field.with_nullable(true),
            _ => field,
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = args.args.as_slice() else {
            return exec_err!("{} needs one argument", self.name());
        };
        if let (HostOperation::Formed(form), ColumnarValue::Scalar(value)) = (&self.work, argument)
        {
            return Ok(ColumnarValue::Scalar(
                formed_scalar(value, *form).unwrap_or_else(|| value.clone()),
            ));
        }
        let array = match argument {
            ColumnarValue::Array(array) => array.clone(),
            ColumnarValue::Scalar(value) => value.to_array()?,
        };
        let done = self.of(&array)?;
        Ok(match argument {
            ColumnarValue::Array(_) => ColumnarValue::Array(done),
            ColumnarValue::Scalar(_) => {
                ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&done, 0)?)
            }
        })
    }
}

impl HostFunction {
    fn of(&self, array: &ArrayRef) -> Result<ArrayRef> {
        match &self.work {
            HostOperation::Formed(form) => {
                Ok(formed(array, *form).unwrap_or_else(|| array.clone()))
            }
            HostOperation::Order => ordered(array),
            HostOperation::OfOrder => unordered(array),
            HostOperation::Length => lengths(array),
            HostOperation::EmptyNulls => without_hidden(array),
            HostOperation::FirstNull => first_nulls(array),
            HostOperation::WholeMinutes => whole_minutes(array),
            HostOperation::Cast { to, or_null } => cast_exactly(array, to.data_type(), *or_null),
        }
    }
}

/// The array itself where no list that is null has elements, as those have that were made of lists
/// of fixed size. Lists within lists, too.
fn without_hidden(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::List(item) => without_hidden_elements::<i32>(array, item),
        DataType::LargeList(item) => without_hidden_elements::<i64>(array, item),
        _ => Ok(array.clone()),
    }
}

fn without_hidden_elements<O: OffsetSizeTrait>(
    array: &ArrayRef,
    item: &FieldRef,
) -> Result<ArrayRef> {
    let lists: &GenericListArray<O> = array.as_list();
    let length = |at: usize| if lists.is_null(at) { 0 } else { lists.value_length(at).as_usize() };
    let inner = without_hidden(lists.values())?;
    if (0..lists.len()).all(|at| length(at) == lists.value_length(at).as_usize()) {
        if Arc::ptr_eq(&inner, lists.values()) {
            return Ok(array.clone());
        }
        let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
        return Ok(Arc::new(GenericListArray::<O>::try_new(item.clone(), offsets, inner, nulls)?));
    }
    let begins = lists.value_offsets();
    let shown =
        (0..lists.len()).flat_map(|at| (0..length(at)).map(move |k| begins[at].as_usize() + k));
    let shown = UInt64Array::from_iter_values(shown.map(|at| at as u64));
    let values = take(&inner, &shown, None)?;
    let offsets = OffsetBuffer::from_lengths((0..lists.len()).map(length));
    Ok(Arc::new(GenericListArray::<O>::try_new(
        item.clone(),
        offsets,
        values,
        lists.nulls().cloned(),
    )?))
}

/// The place of each list's first null, from 1 on; null where there is none.
fn first_nulls(array: &ArrayRef) -> Result<ArrayRef> {
    let lists = Lists::of("array_position", array)?;
    let place = |row: usize| {
        let begin = lists.begin(row);
        let null = (0..lists.length(row)).find(|at| lists.values().is_null(begin + at))?;
        Some(null as u64 + 1)
    };
    Ok(Arc::new((0..lists.rows()).map(place).collect::<UInt64Array>()))
}

/// Most characters that are asked for: strings have no more than 2 GiB.
const LONGEST: i64 = i32::MAX as i64;

fn lengths(array: &ArrayRef) -> Result<ArrayRef> {
    let Some(lengths) = array.as_primitive_opt::<Int64Type>() else { return Ok(array.clone()) };
    if let Some(length) = lengths.iter().flatten().find(|length| *length > LONGEST) {
        return exec_err!(
            "requested length {length} too large, maximum allowed length is {LONGEST}"
        );
    }
    Ok(Arc::new(lengths.unary::<_, Int64Type>(|length| length.clamp(0, LONGEST))))
}
