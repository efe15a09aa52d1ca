//! `list_combinations(list, n)`: all lists of `n` elements of a list, in the order of their places.
//! Null where the list is; empty where it has too few.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ListArray, UInt64Array};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::lists::{Lists, plain_list};

/// Most elements of a combination.
pub(crate) const MOST_OF: usize = 4;

const NAME: &str = "list_combinations";

pub(crate) fn list_combinations() -> Arc<ScalarUDF> {
    static SHARED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        Arc::new(ScalarUDF::from(ListCombinations {
            signature: Signature::user_defined(Volatility::Immutable),
            aliases: vec!["array_combinations".into()],
        }))
    });
    SHARED.clone()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ListCombinations {
    signature: Signature,
    aliases: Vec<String>,
}

/// How many elements a combination has.
fn size(value: Option<&ScalarValue>) -> Result<usize> {
    let Some(ScalarValue::Int64(Some(size))) = value else {
        return plan_err!(
            "{NAME} takes a list, and a constant number of elements from 1 to {MOST_OF}"
        );
    };
    match usize::try_from(*size) {
        Ok(size) if (1..=MOST_OF).contains(&size) => Ok(size),
        _ => plan_err!("{NAME} of {size} elements each: they are 1 to {MOST_OF}"),
    }
}

impl ScalarUDFImpl for ListCombinations {
    fn name(&self) -> &str {
        NAME
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [list, size] if size.is_integer() => match plain_list(list) {
                Some(list) => Ok(vec![list, DataType::Int64]),
                None => plan_err!("{NAME} takes a list, not {list}"),
            },
            _ => plan_err!(
                "{NAME} takes a list, and a constant number of elements from 1 to {MOST_OF}"
            ),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("{NAME} tells the field it returns")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        size(args.scalar_arguments.get(1).copied().flatten())?;
        let item = match args.arg_fields[0].data_type() {
            DataType::List(item) | DataType::LargeList(item) => item.clone(),
            other => return plan_err!("{NAME} takes a list, not {other}"),
        };
        let inner = DataType::List(item);
        let outer = DataType::List(Arc::new(Field::new_list_field(inner, true)));
        Ok(Arc::new(Field::new(NAME, outer, args.arg_fields[0].is_nullable())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [list, ColumnarValue::Scalar(number)] = args.args.as_slice() else {
            return exec_err!("{NAME} takes a list and a constant");
        };
        let size = size(Some(number))?;
        let DataType::List(inner) = args.return_field.data_type() else {
            return internal_err!("{NAME} returns a list");
        };
        let DataType::List(item) = inner.data_type() else {
            return internal_err!("{NAME} returns lists");
        };
        let lists = Lists::of(NAME, &list.to_array(args.number_rows)?)?;
        let (mut places, mut ends) = (vec![], vec![0i32]);
        for row in 0..lists.rows() {
            combine(lists.begin(row), lists.length(row), size, &mut places);
            match i32::try_from(places.len()) {
                Ok(end) => ends.push(end / size as i32),
                Err(_) => return exec_err!("{NAME}: more than {} elements", i32::MAX),
            }
        }
        let elements = take(lists.values(), &UInt64Array::from(places), None)?;
        let inner_offsets =
            OffsetBuffer::from_lengths(std::iter::repeat_n(size, elements.len() / size));
        let inner_lists = ListArray::try_new(item.clone(), inner_offsets, elements, None)?;
        let nulls: NullBuffer = (0..lists.rows()).map(|row| !lists.is_null(row)).collect();
        let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
        Ok(ColumnarValue::Array(Arc::new(ListArray::try_new(
            inner.clone(),
            offsets,
            Arc::new(inner_lists),
            Some(nulls),
        )?)))
    }
}

/// Appends the places of all combinations of `length` elements from `begin` on.
fn combine(begin: usize, length: usize, size: usize, places: &mut Vec<u64>) {
    if length < size {
        return;
    }
    let mut chosen: Vec<usize> = (0..size).collect();
    loop {
        places.extend(chosen.iter().map(|at| (begin + at) as u64));
        // The last that can go on does, and those behind it follow.
        let Some(at) = (0..size).rev().find(|at| chosen[*at] < length - size + at) else { return };
        chosen[at] += 1;
        for next in at + 1..size {
            chosen[next] = chosen[next - 1] + 1;
        }
    }
}
