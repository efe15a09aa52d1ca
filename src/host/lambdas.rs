//! Functions of lists that take a lambda: DataFusion's by their names in DuckDB and Spark, too, and
//! `array_reduce`, which DataFusion (55.2) has not.
//!
//! `array_reduce(list, (accumulator, element) -> …[, initial])` goes through a list from its first
//! element on. The accumulator begins as the initial value, which may stand before the lambda, too;
//! where there is none it begins as the first element, of which an empty list has none, and that is
//! an error. Numbers of several types are all of the widest of them; what the lambda makes is cast
//! to the accumulator's type. As in DuckDB.
//!
//! Here the lists of a batch are gone through together, the longest first, so that those that still
//! have an element are a run of rows:
//!
//! ```text
//!   [1 2 3]    1 │ +2 │ +3          each column is a call of the lambda, over the rows
//!   [4 5]      4 │ +5               that have so many elements
//!   [6]        6
//! ```

use std::cmp::Reverse;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, UInt64Array, new_null_array};
use datafusion::arrow::compute::{can_cast_types, concat, take, take_arrays};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::functions_nested::array_any_match::array_any_match_higher_order_function;
use datafusion::functions_nested::array_filter::array_filter_higher_order_function;
use datafusion::functions_nested::array_transform::array_transform_higher_order_function;
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;
use datafusion::logical_expr::{
    ColumnarValue, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs, HigherOrderSignature,
    HigherOrderUDF, HigherOrderUDFImpl, LambdaArgument, LambdaParametersProgress, ValueOrLambda,
    Volatility,
};

use super::casts::cast_exactly;
use super::lists::{Lists, plain_list};

/// The functions of this module.
pub(crate) fn functions() -> Vec<Arc<HigherOrderUDF>> {
    let named = |function: Arc<HigherOrderUDF>, names: &[&'static str]| {
        Arc::new(function.as_ref().clone().with_aliases(names.iter().copied()))
    };
    vec![
        named(
            array_transform_higher_order_function(),
            &["list_apply", "array_apply", "apply", "transform"],
        ),
        named(array_filter_higher_order_function(), &["filter"]),
        named(array_any_match_higher_order_function(), &["exists"]),
        array_reduce(),
    ]
}

/// `array_reduce`.
pub(crate) fn array_reduce() -> Arc<HigherOrderUDF> {
    static SHARED: LazyLock<Arc<HigherOrderUDF>> = LazyLock::new(|| {
        Arc::new(HigherOrderUDF::new_from_impl(ArrayReduce {
            signature: HigherOrderSignature::user_defined(Volatility::Immutable),
            aliases: vec!["list_reduce".into(), "reduce".into()],
        }))
    });
    SHARED.clone()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ArrayReduce {
    signature: HigherOrderSignature,
    aliases: Vec<String>,
}

/// The arguments of a call: a list, a lambda, and an initial value before or behind that.
struct ReduceArguments<'a, V, L> {
    list: &'a V,
    lambda: &'a L,
    initial: Option<&'a V>,
}

impl<'a, V, L> ReduceArguments<'a, V, L> {
    fn of(arguments: &'a [ValueOrLambda<V, L>]) -> Result<Self> {
        use ValueOrLambda::{Lambda, Value};
        match arguments {
            [Value(list), Lambda(lambda)] => Ok(ReduceArguments { list, lambda, initial: None }),
            [Value(list), Lambda(lambda), Value(initial)]
            | [Value(list), Value(initial), Lambda(lambda)] => {
                Ok(ReduceArguments { list, lambda, initial: Some(initial) })
            }
            _ => {
                plan_err!(
                    "array_reduce takes a list, a lambda of an accumulator and an element, and an initial value"
                )
            }
        }
    }
}

/// The elements of a list type.
fn item(list: &DataType) -> Result<&FieldRef> {
    match list {
        DataType::List(item) | DataType::LargeList(item) => Ok(item),
        other => plan_err!("array_reduce takes a list, not {other}"),
    }
}

/// The type of an accumulator that begins as one and meets another.
fn joint(item: &DataType, initial: &DataType) -> Option<DataType> {
    let number = |dtype: &DataType| dtype.is_numeric() || dtype.is_null();
    match number(item) && number(initial) && item != initial {
        true => type_union_resolution(&[item.clone(), initial.clone()]),
        false => None,
    }
}

impl HigherOrderUDFImpl for ArrayReduce {
    fn name(&self) -> &str {
        "array_reduce"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &HigherOrderSignature {
        &self.signature
    }

    fn coerce_value_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let (list, initial) = match types {
            [list] => (list, None),
            [list, initial] => (list, Some(initial)),
            _ => return plan_err!("array_reduce takes a list, a lambda and an initial value"),
        };
        let Some(list) = plain_list(list) else {
            return plan_err!("array_reduce takes a list, not {list}");
        };
        let Some(initial) = initial else { return Ok(vec![list]) };
        let Some(dtype) = joint(item(&list)?.data_type(), initial) else {
            return Ok(vec![list, initial.clone()]);
        };
        let wide = Arc::new(item(&list)?.as_ref().clone().with_data_type(dtype.clone()));
        Ok(match list {
            DataType::LargeList(_) => vec![DataType::LargeList(wide), dtype],
            _ => vec![DataType::List(wide), dtype],
        })
    }

    fn lambda_parameters(
        &self,
        _: usize,
        fields: &[ValueOrLambda<FieldRef, Option<FieldRef>>],
    ) -> Result<LambdaParametersProgress> {
        let ReduceArguments { list, initial, .. } = ReduceArguments::of(fields)?;
        let item = item(list.data_type())?;
        let dtype = initial.map_or(item.data_type(), |initial| initial.data_type());
        let accumulator = Arc::new(Field::new("accumulator", dtype.clone(), true));
        Ok(LambdaParametersProgress::Complete(vec![vec![accumulator, item.clone()]]))
    }

    fn return_field_from_args(&self, args: HigherOrderReturnFieldArgs) -> Result<FieldRef> {
        let ReduceArguments { list, lambda, initial } = ReduceArguments::of(args.arg_fields)?;
        let dtype = match initial {
            Some(initial) => initial.data_type(),
            None => item(list.data_type())?.data_type(),
        };
        if !can_cast_types(lambda.data_type(), dtype) {
            let made = lambda.data_type();
            return plan_err!(
                "array_reduce has an accumulator of type {dtype}, and its lambda makes {made}"
            );
        }
        Ok(Arc::new(Field::new("", dtype.clone(), true)))
    }

    fn invoke_with_args(&self, args: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        let ReduceArguments { list, lambda, initial } = ReduceArguments::of(&args.args)?;
        let list = list.to_array(args.number_rows)?;
        let initial = initial.map(|initial| initial.to_array(args.number_rows)).transpose()?;
        Ok(ColumnarValue::Array(reduced(
            &Lists::of(self.name(), &list)?,
            lambda,
            initial,
            args.return_type(),
        )?))
    }
}

fn reduced(
    lists: &Lists,
    lambda: &LambdaArgument,
    initial: Option<ArrayRef>,
    to: &DataType,
) -> Result<ArrayRef> {
    let mut order: Vec<usize> = (0..lists.rows()).filter(|row| !lists.is_null(*row)).collect();
    order.sort_by_key(|row| Reverse(lists.length(*row)));
    let Some(shortest) = order.last() else { return Ok(new_null_array(to, lists.rows())) };
    if initial.is_none() && lists.length(*shortest) == 0 {
        return exec_err!("array_reduce of an empty list, without an initial value");
    }
    let places = |of: &[usize]| UInt64Array::from_iter_values(of.iter().map(|row| *row as u64));
    let elements = |of: &[usize], at: usize| {
        let places = of.iter().map(|row| (lists.begin(*row) + at) as u64);
        take(lists.values(), &UInt64Array::from_iter_values(places), None)
    };
    let (first, begin) = match initial {
        Some(initial) => (0, take(&initial, &places(&order), None)?),
        None => (1, elements(&order, 0)?),
    };
    let mut accumulator = cast_exactly(&begin, to, false)?;
    let (mut done, mut active) = (vec![], order.len());
    for at in first.. {
        let still = order[..active].partition_point(|row| lists.length(*row) > at);
        done.push(accumulator.slice(still, active - still));
        accumulator = accumulator.slice(0, still);
        active = still;
        if active == 0 {
            break;
        }
        let (rows, element) = (places(&order[..active]), elements(&order[..active], at)?);
        let parameters: [&dyn Fn() -> Result<ArrayRef>; 2] =
            [&|| Ok(accumulator.clone()), &|| Ok(element.clone())];
        let made =
            lambda.evaluate(&parameters, |captured| Ok(take_arrays(captured, &rows, None)?))?;
        accumulator = cast_exactly(&made.into_array(active)?, to, false)?;
    }
    done.reverse();
    let done = concat(&done.iter().map(AsRef::as_ref).collect::<Vec<_>>())?;
    let mut place_of = vec![None; lists.rows()];
    for (place, row) in order.iter().enumerate() {
        place_of[*row] = Some(place as u64);
    }
    Ok(take(&done, &UInt64Array::from(place_of), None)?)
}
