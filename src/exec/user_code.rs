//! Users' functions for the CPU engine, which the simulator runs, a batch at a time; and the folds
//! of users' aggregates for both.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, new_empty_array};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, ScalarUDF};

use super::run::{anonymous, column_named};
use crate::codegen::{Codes, Emitter, Flow, FlowSource, Generator, Value, materialize, widen};
use crate::column::{Column, Relation, Repr, value_type};
use crate::error::{Error, ErrorKind, Result};
use crate::user_code::{UserAggregate, UserFunction};
use warpframe_device::ops::scan::exclusive_scan_u32;
use warpframe_device::{Buffer, Device, MemoryLimit, SimOptions};

const OPERATOR: &str = "a user's function";

/// The simulator that computes users' functions where the CPU engine asks for them; one in a
/// process.
///
/// # Errors
/// [`ErrorKind::DeviceUnavailable`] where there is no C++ compiler.
pub(crate) fn host_device(function: &str) -> Result<&'static Device> {
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

/// Rows that are to be folded.
pub(super) struct FoldedRows<'a> {
    pub(super) relation: &'a Relation,
    /// The first of the columns that are the arguments, none of which is null in any row.
    pub(super) first: usize,
    /// Numbers of rows (`u32`); `None` where they are taken as they lie.
    pub(super) order: Option<&'a Arc<Buffer>>,
}

/// Rows, or states of rows, that a thread folds one after the other.
const EACH: u64 = 32;

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
        let bounds = |generator: &mut Generator<'_>| match &begins {
            Some(begins) => generator.params.borrowed("const u64", begins),
            None => generator.params.borrowed("const u32", offsets),
        };
        let (_, counts) = materialize(device, operator, &each, Codes::Keep, |generator, out| {
            let bounds = bounds(generator);
            let length = format!("(u64)({bounds}[row + 1] - {bounds}[row])");
            let count = out.let_("u32", format_args!("(u32)(({length} + {}) / {EACH})", EACH - 1));
            Ok(vec![Value::new(DataType::UInt32, Repr::U32, count, None)])
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
        let columns =
            of_chunks(device, operator, user, (rows, &states), chunks, |generator, out| {
                let (bounds, begins) =
                    (bounds(generator), generator.params.borrowed("const u64", &next));
                let runs = generator.params.word("u64", runs);
                let (run, beyond) = (out.fresh(), out.fresh());
                // The last run that begins at this chunk or before it.
                out.line(format_args!("u64 {run} = 0;"));
                out.line(format_args!("u64 {beyond} = {runs};"));
                out.line(format_args!(
                    "while ({beyond} - {run} > 1) {{ const u64 middle = ({run} + {beyond}) / 2; \
                 if ({begins}[middle] <= row) {run} = middle; else {beyond} = middle; }}"
                ));
                ChunkOfRun {
                    number: out.let_("u64", format_args!("row - {begins}[{run}]")),
                    begin: out.let_("u64", format_args!("{bounds}[{run}]")),
                    end: out.let_("u64", format_args!("{bounds}[{run} + 1]")),
                }
            })?;
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
        let columns =
            of_chunks(device, operator, user, (rows, &states), chunks, |generator, _| {
                let end = generator.params.word("u64", length);
                ChunkOfRun { number: "row".into(), begin: "0".into(), end }
            })?;
        if chunks == 1 {
            return Ok(columns);
        }
        states = Some(Relation::dense(chunks, columns)?);
        length = chunks;
    }
}

/// One of a run's chunks of [`EACH`] rows, as code.
struct ChunkOfRun {
    number: String,
    /// Where the run begins and ends.
    begin: String,
    end: String,
}

/// The states of chunks of rows, or of states where there are some. `chunk` says which chunk a
/// thread has.
fn of_chunks(
    device: &Device,
    operator: &'static str,
    user: &UserAggregate,
    (rows, states): (&FoldedRows<'_>, &Option<Relation>),
    chunks: u64,
    chunk: impl Fn(&mut Generator<'_>, &mut Emitter) -> ChunkOfRun,
) -> Result<Vec<Column>> {
    let flow = Flow::new(FlowSource::Relation(Relation::dense(chunks, vec![])?), anonymous(&[])?);
    let (_, columns) = materialize(device, operator, &flow, Codes::Keep, |generator, out| {
        let chunk = chunk(generator, out);
        let places = places_of(&chunk, user.is_ordered(), out);
        fold(user, (rows, states.as_ref()), &places, generator, out)
    })?;
    Ok(columns)
}

/// The places of a chunk's rows, as code: from `from` on, every `step`-th before `to`.
struct Places {
    from: String,
    to: String,
    step: String,
}

/// The rows of a chunk. Ordered aggregates take neighbours. Others take rows that are [`EACH`]
/// apart, so that the threads of a warp read neighbours at the same time. At a run's end the
/// distance is the number of chunks that are left.
///
/// ```text
///   rows of a run   0 1 2 3 4 5 6      EACH = 2
///   ordered         0 0 1 1 2 2 3
///   otherwise       0 1 0 1 2 3 2
/// ```
fn places_of(chunk: &ChunkOfRun, ordered: bool, out: &mut Emitter) -> Places {
    let ChunkOfRun { number, begin, end } = chunk;
    if ordered {
        let from = out.let_("u64", format_args!("{begin} + {number} * {EACH}"));
        let to = out.let_("u64", format_args!("minimum({from} + {EACH}, (u64){end})"));
        return Places { from, to, step: "1".into() };
    }
    let tile = EACH * EACH;
    let base = out.let_("u64", format_args!("{begin} + {number} / {EACH} * {tile}"));
    let to = out.let_("u64", format_args!("minimum({base} + {tile}, (u64){end})"));
    let step = out.let_("u64", format_args!("({to} - {base} + {}) / {EACH}", EACH - 1));
    let from = out.let_("u64", format_args!("{base} + {number} % {EACH}"));
    Places { from, to, step }
}

/// Folds the rows, or the states where there are some, of these places: the fields.
fn fold(
    user: &UserAggregate,
    (rows, states): (&FoldedRows<'_>, Option<&Relation>),
    Places { from, to, step }: &Places,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Result<Vec<Value>> {
    let symbol = user.definition().symbol();
    generator.params.define(user.definition());
    let (whole, at) = (out.fresh(), out.fresh());
    out.line(format_args!("{symbol}_state {whole};"));
    out.line(format_args!("for (u64 {at} = {from}; {at} < {to}; {at} += {step}) {{"));
    let one = out.fresh();
    out.line(format_args!("{symbol}_state {one};"));
    match states {
        Some(states) => state_at(user, states, &at, &one, generator, out)?,
        None => {
            let row = match rows.order {
                Some(order) => {
                    let order = generator.params.borrowed("const u32", order);
                    out.let_("u32", format_args!("{order}[{at}]"))
                }
                None => at.clone(),
            };
            let mut arguments = String::new();
            for (number, (_, dtype)) in user.inputs().iter().enumerate() {
                let value = generator.load(rows.relation, rows.first + number, &row, false, out);
                let repr = Repr::of(dtype).filter(|_| value.dtype == *value_type(dtype));
                let argument = match repr {
                    Some(Repr::View) => format!("text{{{}}}", value.code),
                    Some(Repr::Bool) => format!("(bool){}", value.code),
                    Some(repr) => widen(&value, repr),
                    None => {
                        return Err(Error::unsupported(
                            format!("{} as {dtype}", value.dtype),
                            "is another type",
                        ));
                    }
                };
                arguments.push_str(", ");
                arguments.push_str(&argument);
            }
            out.line(format_args!("{symbol}({one});"));
            out.line(format_args!("{symbol}_1({one}{arguments});"));
        }
    }
    out.line(format_args!("if ({at} == {from}) {whole} = {one}; else {symbol}_2({whole}, {one});"));
    out.line("}");
    let field = |(name, dtype): &(String, DataType)| {
        let repr = Repr::of(dtype).ok_or_else(|| Error::internal(format!("{dtype} in a state")))?;
        let ctype = if repr == Repr::Bool { "bool" } else { repr.device_type() };
        let code = out.let_(ctype, format_args!("{whole}.{name}"));
        Ok(Value::new(dtype.clone(), repr, code, None))
    };
    user.fields().iter().map(field).collect()
}

/// Fills the fields of a state, `one`, from columns.
fn state_at(
    user: &UserAggregate,
    states: &Relation,
    at: &str,
    one: &str,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Result<()> {
    for (number, (name, _)) in user.fields().iter().enumerate() {
        let value = generator.load(states, number, at, false, out);
        out.line(format_args!("{one}.{name} = {};", value.code));
    }
    Ok(())
}

/// The value of the state that the columns have in the row.
pub(super) fn value_of_state(
    user: &UserAggregate,
    states: &Relation,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Result<Value> {
    let symbol = user.definition().symbol();
    generator.params.define(user.definition());
    let state = out.fresh();
    out.line(format_args!("{symbol}_state {state};"));
    state_at(user, states, "row", &state, generator, out)?;
    let output = user.output();
    let repr =
        Repr::of(output).ok_or_else(|| Error::internal(format!("{output} of an aggregate")))?;
    let ctype = if repr == Repr::Bool { "bool" } else { repr.device_type() };
    if !user.yields_null() {
        let code = out.let_(ctype, format_args!("{symbol}_3({state})"));
        return Ok(Value::new(output.clone(), repr, code, None));
    }
    let null = out.fresh();
    out.line(format_args!("bool {null} = false;"));
    let code = out.let_(ctype, format_args!("{symbol}_3({state}, {null})"));
    let valid = out.let_("bool", format_args!("!{null}"));
    Ok(Value::new(output.clone(), repr, code, Some(valid)))
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
