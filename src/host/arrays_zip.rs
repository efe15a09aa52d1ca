//! `arrays_zip(list, …[, truncate])`, or `list_zip`: structs of the elements that stand in one
//! place, with nulls where a list is shorter than the longest; or, with a last argument that is
//! true, as many as the shortest has. A null list has no elements; where all are null, so is the
//! result.
//!
//! DataFusion's (55.2), in whose place it is, knows no last argument. The fields are named as
//! there: `1`, `2`, ….

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, ListArray, StructArray, UInt64Array, new_null_array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Result, exec_err, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::lists::{Lists, plain_list};

const NAME: &str = "arrays_zip";

pub(crate) fn arrays_zip() -> Arc<ScalarUDF> {
    static SHARED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        Arc::new(ScalarUDF::from(ArraysZip {
            signature: Signature::user_defined(Volatility::Immutable),
            aliases: vec!["list_zip".into(), "array_zip".into()],
        }))
    });
    SHARED.clone()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ArraysZip {
    signature: Signature,
    aliases: Vec<String>,
}

/// The lists of a call, without the last argument where that is no list.
fn lists(types: &[DataType]) -> &[DataType] {
    match types.split_last() {
        Some((DataType::Boolean, lists)) => lists,
        _ => types,
    }
}

impl ScalarUDFImpl for ArraysZip {
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
        let given = lists(types);
        if given.is_empty() {
            return plan_err!("{NAME} takes lists, and at last whether to end with the shortest");
        }
        let mut coerced = vec![];
        for list in given {
            match plain_list(list) {
                Some(list) => coerced.push(list),
                None if list.is_null() => coerced.push(DataType::Null),
                None => return plan_err!("{NAME} takes lists, not {list}"),
            }
        }
        coerced.extend(types[given.len()..].iter().cloned());
        Ok(coerced)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let field = |(at, list): (usize, &DataType)| {
            let item = match list {
                DataType::List(item) | DataType::LargeList(item) => item.data_type().clone(),
                _ => DataType::Null,
            };
            Field::new((at + 1).to_string(), item, true)
        };
        let fields: Fields = lists(types).iter().enumerate().map(field).collect();
        Ok(DataType::List(Arc::new(Field::new_list_field(DataType::Struct(fields), true))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let DataType::List(item) = args.return_field.data_type() else {
            return internal_err!("{NAME} returns a list");
        };
        let DataType::Struct(fields) = item.data_type() else {
            return internal_err!("{NAME} returns structs");
        };
        let rows = args.number_rows;
        let truncate = match args.args.get(fields.len()) {
            Some(truncate) => Some(truncate.to_array(rows)?),
            None => None,
        };
        let truncates = |row: usize| {
            truncate.as_ref().is_some_and(|truncate: &ArrayRef| {
                truncate.is_valid(row) && truncate.as_boolean().value(row)
            })
        };
        // Of no type: all of them are null.
        let mut lists = vec![];
        for argument in &args.args[..fields.len()] {
            let array = argument.to_array(rows)?;
            lists.push(if array.data_type().is_null() {
                None
            } else {
                Some(Lists::of(NAME, &array)?)
            });
        }
        let length = |list: &Option<Lists>, row| list.as_ref().map_or(0, |list| list.length(row));
        let mut places: Vec<Vec<Option<u64>>> = vec![vec![]; lists.len()];
        let (mut ends, mut valid, mut end) = (vec![0i32], vec![], 0);
        for row in 0..rows {
            let lengths = lists.iter().map(|list| length(list, row));
            let count = if truncates(row) { lengths.min() } else { lengths.max() }.unwrap_or(0);
            for (list, places) in lists.iter().zip(&mut places) {
                let begin = list.as_ref().map_or(0, |list| list.begin(row));
                let here = length(list, row);
                places.extend((0..count).map(|at| (at < here).then_some((begin + at) as u64)));
            }
            end += count;
            match i32::try_from(end) {
                Ok(end) => ends.push(end),
                Err(_) => return exec_err!("{NAME}: more than {} elements", i32::MAX),
            }
            valid.push(lists.iter().flatten().any(|list| !list.is_null(row)));
        }
        let columns =
            lists.iter().zip(places).zip(fields).map(|((list, places), field)| match list {
                Some(list) => Ok(take(list.values(), &UInt64Array::from(places), None)?),
                None => Ok(new_null_array(field.data_type(), places.len())),
            });
        let structs = StructArray::try_new(fields.clone(), columns.collect::<Result<_>>()?, None)?;
        let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
        let nulls = NullBuffer::from(valid);
        Ok(ColumnarValue::Array(Arc::new(ListArray::try_new(
            item.clone(),
            offsets,
            Arc::new(structs),
            Some(nulls),
        )?)))
    }
}
