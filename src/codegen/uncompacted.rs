//! Pipelines whose rows are compacted by hand-written kernels, if at all: one kernel writes what is
//! computed, as columns as long as the source, and the mask of the rows that come out.
//!
//! ```text
//!   probe     a b c d        build column of its match   7 . 9 9        mask  1 0 1 1
//! ```
//!
//! Of filters that pass on columns as they are, nothing is computed but the mask. The rows of inner
//! joins probably all come out. Where the mask has every row, the columns are the result, and
//! columns that are only passed on stay where they are.

use super::arena::Arena;
use super::control::Control;
use super::emit::Emitter;
use super::filter_mask::FilterMask;
use super::flow::Flow;
use super::generator::{Generator, Pass};
use super::outputs::{Codes, allocate, finish, place, store};
use super::value::Value;
use crate::column::Column;
use crate::error::Result;
use warpframe_device::Device;
use warpframe_device::ops::gather_columns::KeptRows;

/// The columns of a pipeline before the rows that do not come out are removed.
pub(crate) struct Uncompacted {
    /// Each value in the place of its row; nothing is in the places of rows that do not come out.
    pub(crate) columns: Vec<Column>,
    pub(crate) kept_rows: KeptRows,
    /// How many rows come out.
    pub(crate) kept: u64,
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
    let places: Vec<_> =
        values.into_iter().map(|value| place(value, Codes::Keep, &mut generator.params)).collect();
    let control = Control::new(device)?;
    let pointer = generator.params.pointer("u64", &control.0, 0);
    let row_count = generator.params.word("u64", rows);
    let head = Control::head(&pointer, &row_count);
    let mask = FilterMask::declare(&mut generator);
    let mut prepared = generator.finish(device, &pointer, &[&out])?;
    let columns = places
        .iter()
        .map(|place| allocate(device, operator, place, Codes::Keep, rows, &mut prepared));
    let columns = columns.collect::<Result<_>>()?;
    let mut decide = out.take();
    if !places.is_empty() {
        decide.place_of_row();
        places.iter().for_each(|place| store(place, &mut decide));
    }
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
