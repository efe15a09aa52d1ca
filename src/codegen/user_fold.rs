//! Folds of users' aggregates: each thread folds some rows, or states of rows, of one run.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;

use super::emit::Emitter;
use super::generator::Generator;
use super::value::{Value, widen};
use crate::column::{Relation, Repr, value_type};
use crate::error::{Error, Result};
use crate::user_code::UserAggregate;
use warpframe_device::Buffer;

/// Rows that are to be folded.
pub(crate) struct FoldedRows<'a> {
    pub(crate) relation: &'a Relation,
    /// The first of the columns that are the arguments, none of which is null in any row.
    pub(crate) first: usize,
    /// Numbers of rows (`u32`); `None` where they are taken as they lie.
    pub(crate) order: Option<&'a Arc<Buffer>>,
}

/// Rows, or states of rows, that a thread folds one after the other: a chunk of a run.
pub(crate) const EACH: u64 = 32;

/// Where the runs begin, and the last one ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RunOffsets<'a> {
    /// Of rows (`u32`).
    Rows(&'a Buffer),
    /// Of states of rows (`u64`).
    States(&'a Buffer),
}

impl RunOffsets<'_> {
    fn array(self, generator: &mut Generator<'_>) -> String {
        match self {
            RunOffsets::Rows(offsets) => generator.params.borrowed("const u32", offsets),
            RunOffsets::States(offsets) => generator.params.borrowed("const u64", offsets),
        }
    }

    /// How many chunks the run has.
    pub(crate) fn chunks(self, generator: &mut Generator<'_>, out: &mut Emitter) -> Value {
        let bounds = self.array(generator);
        let length = format!("(u64)({bounds}[row + 1] - {bounds}[row])");
        out.divides(1);
        let count = format!("(u32)(({length} + {}) / {EACH})", EACH - 1);
        Value::number(out.let_("u32", count))
    }
}

/// Which chunks threads have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Chunks<'a> {
    /// Those of so many runs. `begins` (`u64`): chunks before each.
    OfRuns { offsets: RunOffsets<'a>, begins: &'a Buffer, runs: u64 },
    /// Those of one run, which has so many rows.
    OfOne(u64),
}

impl Chunks<'_> {
    /// The number of the thread's chunk in its run, and where that begins and ends.
    fn own(self, generator: &mut Generator<'_>, out: &mut Emitter) -> [String; 3] {
        let (offsets, begins, runs) = match self {
            Chunks::OfRuns { offsets, begins, runs } => (offsets, begins, runs),
            Chunks::OfOne(rows) => {
                let end = generator.params.word("u64", rows);
                return ["row".into(), "0".into(), end];
            }
        };
        let (bounds, begins) =
            (offsets.array(generator), generator.params.borrowed("const u64", begins));
        let runs = generator.params.word("u64", runs);
        let (run, beyond) = (out.fresh(), out.fresh());
        // The last run that begins at this chunk or before it.
        out.variable("u64", &run, "0");
        out.variable("u64", &beyond, &runs);
        out.divides(1);
        out.line(format_args!(
            "while ({beyond} - {run} > 1) {{ const u64 middle = ({run} + {beyond}) / 2; \
             if ({begins}[middle] <= row) {run} = middle; else {beyond} = middle; }}"
        ));
        let number = out.let_("u64", format_args!("row - {begins}[{run}]"));
        let begin = out.let_("u64", format_args!("{bounds}[{run}]"));
        [number, begin, out.let_("u64", format_args!("{bounds}[{run} + 1]"))]
    }
}

/// The fields of the state of a chunk of rows, or of states where there are some.
pub(crate) fn fold(
    user: &UserAggregate,
    (rows, states): (&FoldedRows<'_>, Option<&Relation>),
    chunks: Chunks<'_>,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Result<Vec<Value>> {
    let chunk = chunks.own(generator, out);
    let Places { from, to, step } = places_of(chunk, user.is_ordered(), out);
    let symbol = user.definition().symbol();
    out.defines(user.definition());
    let (whole, at) = (out.fresh(), out.fresh());
    let state = format!("{symbol}_state");
    out.unset(&state, &whole);
    out.repeat(format_args!("for (u64 {at} = {from}; {at} < {to}; {at} += {step})"));
    let one = out.fresh();
    out.unset(&state, &one);
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
    out.close("}");
    let field = |(name, dtype): &(String, DataType)| {
        let repr = Repr::of(dtype).ok_or_else(|| Error::internal(format!("{dtype} in a state")))?;
        let ctype = if repr == Repr::Bool { "bool" } else { repr.device_type() };
        let code = out.let_(ctype, format_args!("{whole}.{name}"));
        Ok(Value::new(dtype.clone(), repr, code, None))
    };
    user.fields().iter().map(field).collect()
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
fn places_of([number, begin, end]: [String; 3], ordered: bool, out: &mut Emitter) -> Places {
    if ordered {
        let from = out.let_("u64", format_args!("{begin} + {number} * {EACH}"));
        let to = out.let_("u64", format_args!("minimum({from} + {EACH}, (u64){end})"));
        return Places { from, to, step: "1".into() };
    }
    let tile = EACH * EACH;
    out.divides(3);
    let base = out.let_("u64", format_args!("{begin} + {number} / {EACH} * {tile}"));
    let to = out.let_("u64", format_args!("minimum({base} + {tile}, (u64){end})"));
    let step = out.let_("u64", format_args!("({to} - {base} + {}) / {EACH}", EACH - 1));
    let from = out.let_("u64", format_args!("{base} + {number} % {EACH}"));
    Places { from, to, step }
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
pub(crate) fn value_of_state(
    user: &UserAggregate,
    states: &Relation,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Result<Value> {
    let symbol = user.definition().symbol();
    out.defines(user.definition());
    let state = out.fresh();
    out.unset(&format!("{symbol}_state"), &state);
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
    out.variable("bool", &null, "false");
    let code = out.let_(ctype, format_args!("{symbol}_3({state}, {null})"));
    let valid = out.let_("bool", format_args!("!{null}"));
    Ok(Value::new(output.clone(), repr, code, Some(valid)))
}
