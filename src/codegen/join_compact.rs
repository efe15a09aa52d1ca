//! Pipelines of inner joins, whose rows probably all come out: one kernel writes columns as long as
//! the source and the mask of the rows that come out; where some do not, a second kernel compacts
//! the columns.
//!
//! ```text
//!   probe     a b c d        build column of its match   7 . 9 9        mask  1 0 1 1
//! ```
//!
//! Where the mask has every row, the columns are the result, and columns that are only passed on
//! stay where they are.

use super::arena::Arena;
use super::control::Control;
use super::emit::Emitter;
use super::filter_mask::{FilterMask, KeptRows};
use super::flow::Flow;
use super::generator::{Generator, Pass};
use super::outputs::{Codes, OutputColumn, OutputPlace, allocate, finish, place, store};
use super::prepared::PreparedKernel;
use super::value::Value;
use crate::column::Column;
use crate::device::Device;
use crate::error::Result;

/// The columns of a pipeline before the rows that do not come out are removed.
pub(crate) struct Uncompacted {
    /// Each value in the place of its row; nothing is in the places of rows that do not come out.
    pub(crate) columns: Vec<Column>,
    pub(crate) kept_rows: KeptRows,
    /// How many rows come out.
    pub(crate) kept: u64,
}

/// A kernel that writes or reads the mask, before its body is known.
struct CompactKernel {
    places: Vec<OutputPlace>,
    /// Statements that store a row's values at `at`.
    stores: String,
    control: Control,
    head: String,
    mask: FilterMask,
    prepared: PreparedKernel,
}

impl CompactKernel {
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
        let mask = FilterMask::declare(&mut generator);
        let prepared = generator.finish(device, &pointer, &[out])?;
        Ok(CompactKernel { places, stores, control, head, mask, prepared })
    }

    fn columns(&mut self, device: &Device, operator: &'static str, rows: u64) -> Result<Vec<OutputColumn>> {
        let CompactKernel { places, prepared, .. } = self;
        places.iter().map(|place| allocate(device, operator, place, Codes::Keep, rows, prepared)).collect()
    }
}

/// Runs the flow to columns as long as its source, and to the mask of the rows that come out.
pub(crate) fn materialize_uncompacted(
    device: &Device,
    operator: &'static str,
    flow: &Flow,
    outputs: impl FnOnce(&mut Generator<'_>, &mut Emitter) -> Result<Vec<Value>>,
) -> Result<Uncompacted> {
    let rows = flow.source.rows();
    let mut generator = Generator::new(flow);
    let mut out = Emitter::new("v");
    generator.stages(Pass::Decide, &mut out)?;
    let values = outputs(&mut generator, &mut out)?;
    let mut parts = CompactKernel::new(device, generator, values, rows, &out)?;
    let columns = parts.columns(device, operator, rows)?;
    let CompactKernel { stores, control, head, mask, mut prepared, .. } = parts;
    let decide = format!("{}const u64 at = row;\n{stores}", out.take());
    let mut arena = Arena::guess(rows);
    loop {
        prepared.set_arena(device, operator, arena)?;
        let kept_rows = mask.run(device, operator, &mut prepared, &head, &decide, rows)?;
        let asked = if prepared.arena.is_some() { control.characters()? } else { 0 };
        if asked > arena {
            prepared.undo(&control)?;
            arena = Arena::larger(arena, asked);
            continue;
        }
        if prepared.may_fail {
            control.read(&prepared.sites)?;
        }
        let kept = kept_rows.kept(flow.expected_rows())?;
        // Not `kept`: values lie where their rows do.
        let (_, columns) = finish(device, operator, columns, rows, rows, &prepared)?;
        return Ok(Uncompacted { columns, kept_rows, kept });
    }
}

/// The rows of a relation that the mask keeps, as columns.
pub(crate) fn compact(
    device: &Device,
    operator: &'static str,
    flow: &Flow,
    kept_rows: &KeptRows,
    kept: u64,
) -> Result<Vec<Column>> {
    let rows = flow.source.rows();
    let mut generator = Generator::new(flow);
    let mut out = Emitter::new("v");
    generator.close_eager();
    generator.stages(Pass::Carried, &mut out)?;
    let width = flow.schema().fields().len();
    let values = (0..width).map(|at| generator.column(at, &mut out)).collect::<Result<Vec<_>>>()?;
    let mut parts = CompactKernel::new(device, generator, values, rows, &out)?;
    let columns = parts.columns(device, operator, kept)?;
    let CompactKernel { places, stores, head, mask, mut prepared, control } = parts;
    if kept > 0 {
        let write = format!("{}{stores}", out.take());
        mask.write(device, &mut prepared, kept_rows, &head, (&write, places.len()), (rows, kept))?;
        if prepared.may_fail {
            control.read(&prepared.sites)?;
        }
    }
    Ok(finish(device, operator, columns, kept, kept, &prepared)?.1)
}
