//! Maps of what is counted, and of what lists hold.
//!
//! ```text
//!   map_from_entries([{'k': 'a', 'v': 1}])    MAP {'a': 1}
//!   "counts of"([1, 2, 2])                    MAP {1: 1, 2: 2}
//! ```
//!
//! The first is a user's; `histogram(x)` is written out as the second, of the values in order
//! (`session/rules/ranked.rs`).

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, MapArray, StructArray, UInt64Array, make_comparator,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{SortOptions, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{Result, ScalarValue, exec_err, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::calls::HostCall;
use super::lists::Lists;

/// The name of the function that counts.
pub(crate) const COUNTS_OF: &str = "counts of";

pub(crate) fn map_from_entries() -> Arc<ScalarUDF> {
    MapFunction::of(Made::Entries)
}

pub(crate) fn counts_of() -> Arc<ScalarUDF> {
    MapFunction::of(Made::Counts)
}

/// What a map is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Made {
    /// A list of structs of a key and a value.
    Entries,
    /// A list in order: each value, and how often it is there.
    Counts,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct MapFunction {
    made: Made,
    signature: Signature,
}

impl MapFunction {
    fn of(made: Made) -> Arc<ScalarUDF> {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(MapFunction { made, signature }))
    }

    /// The types of keys and values.
    fn types(&self, list: &DataType) -> Result<[DataType; 2]> {
        let item = match list {
            DataType::List(item) | DataType::LargeList(item) => item.data_type(),
            DataType::Null => &DataType::Null,
            other => return plan_err!("{} takes a list, not {other}", self.name()),
        };
        match (self.made, item) {
            (Made::Counts, item) => Ok([item.clone(), DataType::UInt64]),
            (Made::Entries, DataType::Null) => Ok([DataType::Null, DataType::Null]),
            (Made::Entries, DataType::Struct(fields)) if fields.len() == 2 => {
                Ok([fields[0].data_type().clone(), fields[1].data_type().clone()])
            }
            _ => plan_err!("map_from_entries takes a list of structs of a key and a value"),
        }
    }
}

/// The entries of maps of these types.
fn entries_of([key, value]: [DataType; 2]) -> FieldRef {
    let fields = [Field::new("key", key, false), Field::new("value", value, true)];
    Arc::new(Field::new("entries", DataType::Struct(Fields::from_iter(fields)), false))
}

impl ScalarUDFImpl for MapFunction {
    fn name(&self) -> &str {
        match self.made {
            Made::Entries => "map_from_entries",
            Made::Counts => COUNTS_OF,
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [DataType::FixedSizeList(item, _)] => Ok(vec![DataType::List(item.clone())]),
            [list] => Ok(vec![list.clone()]),
            _ => plan_err!("{} takes a list", self.name()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [list] => Ok(DataType::Map(entries_of(self.types(list)?), false)),
            _ => plan_err!("{} takes a list", self.name()),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let call = HostCall::of(&args)?;
        let [list] = call.arrays.as_slice() else {
            return internal_err!("{} of {} arguments", self.name(), call.arrays.len());
        };
        let entries = entries_of(self.types(list.data_type())?);
        let lists = match list.data_type() {
            DataType::Null => {
                let null = ScalarValue::try_from(&DataType::Map(entries, false))?;
                return Ok(ColumnarValue::Scalar(null));
            }
            _ => Lists::of(self.name(), list)?,
        };
        let (keys, values, lengths) = match self.made {
            Made::Entries => entries_in(&lists)?,
            Made::Counts => counts_in(&lists)?,
        };
        let DataType::Struct(fields) = entries.data_type() else {
            return internal_err!("{} has no entries", self.name());
        };
        let pairs = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
        let nulls: NullBuffer = (0..call.rows).map(|row| !lists.is_null(row)).collect();
        let offsets = OffsetBuffer::from_lengths(lengths);
        call.yields(Arc::new(MapArray::try_new(entries, offsets, pairs, Some(nulls), false)?))
    }
}

/// Keys, values and how many each list has.
type Entries = (ArrayRef, ArrayRef, Vec<usize>);

fn entries_in(lists: &Lists) -> Result<Entries> {
    let mut rows = vec![];
    let lengths: Vec<usize> = (0..lists.rows()).map(|row| lists.length(row)).collect();
    for row in 0..lists.rows() {
        rows.extend((lists.begin(row)..lists.begin(row) + lists.length(row)).map(|at| at as u64));
    }
    let rows = UInt64Array::from(rows);
    let pairs = take(lists.values(), &rows, None)?;
    if pairs.data_type().is_null() {
        match pairs.is_empty() {
            true => return Ok((pairs.clone(), pairs, lengths)),
            false => return exec_err!("map_from_entries: a key is NULL"),
        }
    }
    let pairs = pairs.as_struct();
    let (keys, values) = (pairs.column(0).clone(), pairs.column(1).clone());
    if pairs.null_count() > 0 || keys.logical_null_count() > 0 {
        return exec_err!("map_from_entries: a key is NULL");
    }
    let order = make_comparator(&keys, &keys, SortOptions::default())?;
    let mut begin = 0;
    for length in &lengths {
        let mut places: Vec<usize> = (begin..begin + length).collect();
        places.sort_unstable_by(|a, b| order(*a, *b));
        if let Some(pair) = places.windows(2).find(|pair| order(pair[0], pair[1]).is_eq()) {
            let key = ScalarValue::try_from_array(&keys, pair[0])?;
            return exec_err!("map_from_entries: the key {key} is there twice");
        }
        begin += length;
    }
    Ok((keys, values, lengths))
}

/// Of lists in order, without nulls.
fn counts_in(lists: &Lists) -> Result<Entries> {
    let values = lists.values();
    let order = make_comparator(values, values, SortOptions::default())?;
    let (mut firsts, mut counts, mut lengths) = (vec![], vec![], vec![]);
    for row in 0..lists.rows() {
        let before = firsts.len();
        let begin = lists.begin(row);
        for at in begin..begin + lists.length(row) {
            match counts.last_mut() {
                Some(count) if at > begin && order(at - 1, at).is_eq() => *count += 1,
                _ => {
                    firsts.push(at as u64);
                    counts.push(1u64);
                }
            }
        }
        lengths.push(firsts.len() - before);
    }
    let keys = take(values, &UInt64Array::from(firsts), None)?;
    Ok((keys, Arc::new(UInt64Array::from(counts)), lengths))
}
