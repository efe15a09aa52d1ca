//! Pipelines of inner joins, whose rows probably all come out: columns as long as the source, and marks of the rows that do.
//!
//! ```text
//!   probe     a b c d        build column of its match   7 . 9 9        marks  1 0 1 1
//! ```
//!
//! Where every row is marked that is the result, and the columns that are only passed on stay where they are. Otherwise the
//! marked rows are written together by a second kernel.

use super::arena::Arena;
use super::emit::Emitter;
use super::flow::Flow;
use super::generator::{Generator, Pass, Prepared};
use super::kernel::Control;
use super::marks::{Marked, Marks};
use super::materialize::Codes;
use super::outputs::{Output, Place, allocate, finish, place, store};
use super::value::Value;
use crate::column::Column;
use crate::device::Device;
use crate::error::Result;

/// What a pipeline yields of all its rows.
pub(crate) struct Matches {
    /// Each value in the place of its row; nothing is in the places of rows that do not come out.
    pub(crate) columns: Vec<Column>,
    pub(crate) marked: Marked,
    /// How many rows come out.
    pub(crate) kept: u64,
}

/// A kernel that marks or is told by marks, before its body is known.
struct Parts {
    places: Vec<Place>,
    /// Statements that store a row's values at `at`.
    stores: String,
    control: Control,
    head: String,
    marks: Marks,
    prepared: Prepared,
}

impl Parts {
    fn new(
        device: &Device,
        mut generator: Generator<'_>,
        values: Vec<Value>,
        rows: u64,
        out: &Emitter,
    ) -> Result<Self> {
        let places: Vec<_> = values.into_iter().map(|value| place(value, Codes::Keep, &mut generator.params)).collect();
        let stores = places.iter().map(store).collect();
        let control = Control::new(device)?;
        let pointer = generator.params.pointer("u64", &control.0, 0);
        let row_count = generator.params.word("u64", rows);
        let head = Control::head(&pointer, &row_count);
        let marks = Marks::declare(&mut generator);
        let prepared = generator.finish(device, &pointer, &[out])?;
        Ok(Parts { places, stores, control, head, marks, prepared })
    }

    fn columns(&mut self, device: &Device, operator: &'static str, rows: u64) -> Result<Vec<Output>> {
        let Parts { places, prepared, .. } = self;
        places.iter().map(|place| allocate(device, operator, place, Codes::Keep, rows, prepared)).collect()
    }
}

/// Runs the flow to columns as long as its source, and marks the rows that come out.
pub(crate) fn materialize_matches(
    device: &Device,
    operator: &'static str,
    flow: &Flow,
    outputs: impl FnOnce(&mut Generator<'_>, &mut Emitter) -> Result<Vec<Value>>,
) -> Result<Matches> {
    let rows = flow.source.rows();
    let mut generator = Generator::new(flow);
    let mut out = Emitter::new("v");
    generator.stages(Pass::Decide, &mut out)?;
    let values = outputs(&mut generator, &mut out)?;
    let mut parts = Parts::new(device, generator, values, rows, &out)?;
    let columns = parts.columns(device, operator, rows)?;
    let Parts { stores, control, head, marks, mut prepared, .. } = parts;
    let decide = format!("{}const u64 at = row;\n{stores}", out.take());
    let mut arena = Arena::guess(rows);
    loop {
        prepared.set_arena(device, operator, arena)?;
        let marked = marks.run(device, operator, &mut prepared, &head, &decide, rows)?;
        let asked = if prepared.arena.is_some() { control.characters()? } else { 0 };
        if asked > arena {
            prepared.undo(&control)?;
            arena = Arena::larger(arena, asked);
            continue;
        }
        if prepared.may_fail {
            control.read(&prepared.sites)?;
        }
        let kept = marked.kept(flow.expected_rows())?;
        // Not `kept`: values lie where their rows do.
        let (_, columns) = finish(device, operator, columns, rows, rows, &prepared)?;
        return Ok(Matches { columns, marked, kept });
    }
}

/// The marked rows of a relation, as columns.
pub(crate) fn materialize_marked(
    device: &Device,
    operator: &'static str,
    flow: &Flow,
    marked: &Marked,
    kept: u64,
) -> Result<Vec<Column>> {
    let rows = flow.source.rows();
    let mut generator = Generator::new(flow);
    let mut out = Emitter::new("v");
    generator.close_eager();
    generator.stages(Pass::Carried, &mut out)?;
    let width = flow.schema().fields().len();
    let values = (0..width).map(|at| generator.column(at, &mut out)).collect::<Result<Vec<_>>>()?;
    let mut parts = Parts::new(device, generator, values, rows, &out)?;
    let columns = parts.columns(device, operator, kept)?;
    let Parts { places, stores, head, marks, mut prepared, control } = parts;
    if kept > 0 {
        let write = format!("{}{stores}", out.take());
        marks.write(device, &mut prepared, marked, &head, (&write, places.len()), (rows, kept))?;
        if prepared.may_fail {
            control.read(&prepared.sites)?;
        }
    }
    Ok(finish(device, operator, columns, kept, kept, &prepared)?.1)
}
