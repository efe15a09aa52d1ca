//! Users' functions for the CPU engine, which the simulator runs, a batch at a time; and the folds
//! of users' aggregates for both.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, new_empty_array};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, ScalarUDF};

use super::run::{anonymous, column_named};
use crate::codegen::user_fold::{Chunks, EACH, FoldedRows, RunOffsets, fold, value_of_state};
use crate::codegen::{Codes, Flow, FlowSource, materialize};
use crate::column::{Column, Relation};
use crate::error::{Error, ErrorKind, Result};
use crate::user_code::{Definition, UserAggregate, UserFunction};
use warpframe_device::ops::scan::exclusive_scan_u32;
use warpframe_device::{Buffer, Device, MemoryLimit, SimOptions};

const OPERATOR: &str = "a user's function";

/// The simulator that computes users' functions where the CPU engine asks for them; one in a
/// process.
///
/// # Errors
/// [`ErrorKind::DeviceUnavailable`] where there is no C++ compiler.
fn host_device(function: &str) -> Result<&'static Device> {
    static DEVICE: LazyLock<warpframe_device::Result<Device>> =
        LazyLock::new(|| Device::sim(SimOptions::default(), MemoryLimit::default()));
    DEVICE.as_ref().map_err(|error| match error.kind() {
        warpframe_device::ErrorKind::DeviceUnavailable { why, .. } => ErrorKind::DeviceUnavailable {
            device: "cpu".into(),
            why: format!("function {function} has no closure for the CPU engine, and nothing compiles it here: {why}"),
        }
        .into(),
        _ => Error::internal(format!("function {function}: {error}")),
    })
}

/// Has what will run a function look at its code: the device, or where there is none the host's
/// compiler, unless a closure does its work.
///
/// # Errors
/// `UserCode` of what does not compile; of a host without a compiler.
pub(crate) fn checked(
    device: Option<&Device>,
    definition: &Arc<Definition>,
    has_closure: bool,
) -> Result<()> {
    match device {
        Some(device) => definition.check(device),
        None if has_closure => Ok(()),
        None => definition.check(host_device(definition.name())?),
    }
}

/// What a function makes of arrays of so many rows, whose types are those of its arguments.
pub(crate) fn compiled_on_host(
    function: &UserFunction,
    arrays: &[ArrayRef],
    rows: usize,
) -> Result<ArrayRef> {
    if rows == 0 {
        return Ok(new_empty_array(function.output()));
    }
    let device = host_device(function.name())?;
    let types: Vec<DataType> = function.inputs().iter().map(|(_, dtype)| dtype.clone()).collect();
    let column = |(array, dtype): (&ArrayRef, &DataType)| {
        Column::from_arrays(device, dtype, std::slice::from_ref(array))
    };
    let columns = arrays.iter().zip(&types).map(column);
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let arguments = (0..columns.len()).map(|at| column_named(format!("c{at}"))).collect();
    let flow =
        Flow::new(FlowSource::Relation(Relation::dense(rows as u64, columns)?), anonymous(&types)?);
    let call: Expr = Arc::new(ScalarUDF::from(function.clone())).call(arguments);
    let (_, columns) = materialize(device, OPERATOR, &flow, Codes::Keep, |generator, out| {
        Ok(vec![generator.expr(&call, out)?])
    })?;
    let made = columns.iter().map(|column| column.to_arrays(rows)).collect::<Result<Vec<_>>>()?;
    let made = made.into_iter().flatten().next().filter(|made| made.len() == rows);
    made.ok_or_else(|| Error::internal(format!("{OPERATOR} made no values")))
}

/// The state of each run of rows, as columns of its fields. Run `s` stands at
/// `offsets[s]..offsets[s + 1]` (`u32`) of the order; none is empty.
///
/// ```text
///   rows     a a a a a │ b b │ c      EACH = 2
///   states   aa  aa  a │ bb  │ c      map, combine
///   states   aaaa    a │ bb  │ c      combine
///   states   aaaaa     │ bb  │ c
/// ```
///
/// What is combined with what depends on the rows' places in their run alone.
pub(super) fn folded(
    device: &Device,
    operator: &'static str,
    user: &UserAggregate,
    rows: &FoldedRows<'_>,
    offsets: &Buffer,
    runs: u64,
) -> Result<Vec<Column>> {
    let mut states: Option<Relation> = None;
    let mut begins: Option<Buffer> = None;
    loop {
        // Chunks of each run, and where those of a run begin.
        let each = Flow::new(FlowSource::Relation(Relation::dense(runs, vec![])?), anonymous(&[])?);
        let offsets = match &begins {
            Some(begins) => RunOffsets::States(begins),
            None => RunOffsets::Rows(offsets),
        };
        let (_, counts) = materialize(device, operator, &each, Codes::Keep, |generator, out| {
            Ok(vec![offsets.chunks(generator, out)])
        })?;
        let Some(counts) = counts.first().filter(|_| runs > 0) else {
            // Columns of no states.
            return user
                .fields()
                .iter()
                .map(|(_, dtype)| Column::from_arrays(device, dtype, &[]))
                .collect();
        };
        let next = exclusive_scan_u32(device, &counts.data, runs)?;
        let chunks = next.read_word_or(runs as usize * 8, runs)?;
        let own = Chunks::OfRuns { offsets, begins: &next, runs };
        let columns = of_chunks(device, operator, user, (rows, &states), chunks, own)?;
        if chunks == runs {
            return Ok(columns);
        }
        states = Some(Relation::dense(chunks, columns)?);
        begins = Some(next);
    }
}

/// As [`folded`], of one run: all rows as they lie, of which there is at least one.
fn folded_to_one_state(
    device: &Device,
    operator: &'static str,
    user: &UserAggregate,
    rows: &FoldedRows<'_>,
) -> Result<Vec<Column>> {
    let mut states: Option<Relation> = None;
    let mut length = rows.relation.rows;
    loop {
        let chunks = length.div_ceil(EACH);
        let own = Chunks::OfOne(length);
        let columns = of_chunks(device, operator, user, (rows, &states), chunks, own)?;
        if chunks == 1 {
            return Ok(columns);
        }
        states = Some(Relation::dense(chunks, columns)?);
        length = chunks;
    }
}

/// The states of so many chunks of rows, or of states where there are some.
fn of_chunks(
    device: &Device,
    operator: &'static str,
    user: &UserAggregate,
    (rows, states): (&FoldedRows<'_>, &Option<Relation>),
    count: u64,
    chunks: Chunks<'_>,
) -> Result<Vec<Column>> {
    let flow = Flow::new(FlowSource::Relation(Relation::dense(count, vec![])?), anonymous(&[])?);
    let (_, columns) = materialize(device, operator, &flow, Codes::Keep, |generator, out| {
        fold(user, (rows, states.as_ref()), chunks, generator, out)
    })?;
    Ok(columns)
}

/// The value of all rows of a relation as they lie, of which there is at least one. The first
/// columns are the arguments; none is null in any row.
pub(super) fn folded_to_one(
    device: &Device,
    operator: &'static str,
    user: &UserAggregate,
    relation: &Relation,
) -> Result<Column> {
    let input = FoldedRows { relation, first: 0, order: None };
    let states = Relation::dense(1, folded_to_one_state(device, operator, user, &input)?)?;
    let flow = Flow::new(FlowSource::Relation(Relation::dense(1, vec![])?), anonymous(&[])?);
    let (_, columns) = materialize(device, operator, &flow, Codes::Keep, |generator, out| {
        Ok(vec![value_of_state(user, &states, generator, out)?])
    })?;
    columns.into_iter().next().ok_or_else(|| Error::internal(format!("{operator} made no value")))
}

/// An aggregate of arrays without nulls, of at least one row: an array of one value.
pub(crate) fn aggregated_on_host(
    user: &UserAggregate,
    arrays: &[ArrayRef],
    rows: usize,
) -> Result<ArrayRef> {
    let device = host_device(user.definition().name())?;
    let column = |(array, (_, dtype)): (&ArrayRef, &(String, DataType))| {
        Column::from_arrays(device, dtype, std::slice::from_ref(array))
    };
    let columns = arrays.iter().zip(user.inputs()).map(column).collect::<Result<Vec<_>>>()?;
    let value = folded_to_one(device, OPERATOR, user, &Relation::dense(rows as u64, columns)?)?;
    let made = value.to_arrays(1)?.into_iter().next();
    made.ok_or_else(|| Error::internal(format!("{OPERATOR} made no value")))
}
