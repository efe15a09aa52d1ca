//! The sink that writes a pipeline's rows to new columns, in their order.
//!
//! | rows are dropped by | kernels |
//! |---|---|
//! | nothing | one: row `i` goes to place `i` |
//! | filters and semi joins alone | two: a mask of rows that stay; those rows (`filter_mask.rs`) |
//! | inner joins alone | one for all rows, and a mask (`uncompacted.rs`) |
//! | anything else, as lookups behind filters | one, by decoupled look-back |
//!
//! The last is one kernel because a second would have to repeat the lookups: each tile decides
//! which of its rows stay, learns where they go, and writes them.

use std::sync::Arc;

use super::arena::Arena;
use super::control::Control;
use super::effort::{Effort, items_for};
use super::emit::Emitter;
use super::filter_mask::FilterMask;
use super::flow::Flow;
use super::generator::{Generator, Pass};
use super::kernel::{Generated, THREADS};
use super::outputs::{Codes, allocate, finish, place, store};
use super::statements::Code;
use super::value::Value;
use crate::column::Column;
use crate::error::{Error, Result};
use warpframe_device::{Buffer, Device};

/// Rows of each thread of the compacting kernel. Every tile takes a ticket and looks back, so more
/// rows mean fewer tiles to wait for. Long statements get fewer rows, as each row has its own copy
/// of them.
fn compact_items(effort: Effort) -> u32 {
    const LONG: Effort = Effort::characters(4000);
    if effort > LONG { 2 } else { 4 }
}

/// Runs the flow into new columns, one for each value of `outputs`, and counts the rows that come
/// out.
pub(crate) fn materialize(
    device: &Device,
    operator: &'static str,
    flow: &Flow,
    codes: Codes,
    outputs: impl FnOnce(&mut Generator<'_>, &mut Emitter) -> Result<Vec<Value>>,
) -> Result<(u64, Vec<Column>)> {
    let rows = flow.source.rows();
    let mut generator = Generator::new(flow);
    let compacting = flow.drops_rows();
    let mut decide = Emitter::new("a");
    let mut write;
    if compacting {
        generator.stages(Pass::DecideAndCarry, &mut decide)?;
        write = Emitter::behind("b", &decide);
        generator.close_eager();
        if flow.only_filters() {
            generator.begin_another_kernel();
        }
        generator.stages(Pass::Carried, &mut write)?;
    } else {
        write = Emitter::new("b");
        generator.stages(Pass::Decide, &mut write)?;
    }
    let values = outputs(&mut generator, &mut write)?;
    let places: Vec<_> =
        values.into_iter().map(|value| place(value, codes, &mut generator.params)).collect();
    let mut stores = Code::default();
    places.iter().for_each(|place| store(place, &mut stores));
    let control = Control::new(device)?;
    let pointer = generator.params.pointer("u64", &control.0, 0);
    let row_count = generator.params.word("u64", rows);
    let (state, state_later) = generator.params.later("u64*");
    let mask = (compacting && flow.only_filters() && !generator.makes_text())
        .then(|| FilterMask::declare(&mut generator));
    let (deciding_fails, writing_fails) = (decide.may_fail(), write.may_fail());
    let mut prepared = generator.finish(device, &pointer, &[&decide, &write])?;
    if let (Some(mask), true) = (mask, rows > 0) {
        prepared.params.set(state_later, 0u64);
        let head = Control::head(&pointer, &row_count);
        let mut write = write.take();
        write.append(&stores);
        // The outputs are not allocated yet. The kernel that writes the mask does not use them.
        places.iter().for_each(|place| place.leave_out(&mut prepared));
        let decide = decide.take();
        let kept_rows = mask.run(device, operator, &mut prepared, &head, &decide, rows)?;
        let kept = kept_rows.kept(flow.expected_rows())?;
        if deciding_fails {
            control.read(&prepared.sites)?;
        }
        let mut columns = vec![];
        for place in &places {
            columns.push(allocate(device, operator, place, codes, kept, &mut prepared)?);
        }
        if kept > 0 {
            mask.write(device, &mut prepared, &kept_rows, &head, (&write, places.len()), kept)?;
            if writing_fails {
                control.read(&prepared.sites)?;
            }
        }
        return finish(device, operator, columns, kept, kept, &prepared);
    }

    let mut columns = vec![];
    for place in &places {
        columns.push(allocate(device, operator, place, codes, rows, &mut prepared)?);
    }
    if rows > 0 {
        let head = Control::head(&pointer, &row_count);
        let (decide, mut write) = (decide.take(), write.take());
        let effort = Effort::of(&decide) + Effort::of(&write);
        if !compacting {
            write.place_of_row();
        }
        write.append(&stores);
        let mut arena = Arena::guess(rows);
        loop {
            prepared.set_arena(device, operator, arena)?;
            let (tiles, body) = if compacting {
                let stored = Effort::characters(stores.text().len());
                let items = compact_items(effort + stored);
                let tiles = rows.div_ceil(u64::from(items * THREADS));
                let states = Arc::new(device.alloc_zeroed(operator, tiles as usize * 8)?);
                prepared.params.set(state_later, &*states);
                prepared.params.keep(&states);
                let (head, control, state) = (&*head, &*pointer, &*state);
                let (prologue, decide, write) = (&prepared.prologue, &decide, &write);
                let kernel = CompactingKernel { head, control, state, prologue, decide, write };
                (tiles, kernel.body(items))
            } else {
                prepared.params.set(state_later, 0u64);
                let items = items_for(prepared.eager_bytes, Effort::of(&write));
                let tiles = rows.div_ceil(u64::from(items * THREADS));
                (tiles, striding_body(&head, items, &prepared.prologue, &write))
            };
            let stem = if compacting { "compact" } else { "project" };
            let kernel = Generated::new(device, stem, &prepared, &body)?;
            if compacting {
                let blocks = u32::try_from(tiles)
                    .map_err(|_| Error::unsupported(operator, "more than 2^32 tiles"))?;
                kernel.launch(device, blocks, 0)?;
            } else {
                kernel.fill(device, tiles, 0)?;
            }
            let asked = if prepared.arena.is_some() { control.characters()? } else { 0 };
            if asked <= arena {
                break;
            }
            prepared.undo(&control)?;
            arena = Arena::larger(arena, asked);
        }
        if compacting || prepared.may_fail {
            let (_, kept) = control.read(&prepared.sites)?;
            let kept = if device.rehearses() { flow.expected_rows() } else { kept };
            if compacting {
                return finish(device, operator, columns, kept, rows, &prepared);
            }
        }
    }
    let kept = if rows == 0 { 0 } else { rows };
    finish(device, operator, columns, kept, rows, &prepared)
}

/// Runs statements for every row that comes out of the flow, in any order. They store into
/// `targets`, which are zero before, and are zeroed again before the kernel is repeated.
pub(crate) fn for_each(
    device: &Device,
    flow: &Flow,
    targets: &[&Arc<Buffer>],
    body: impl FnOnce(&mut Generator<'_>, &mut Emitter) -> Result<()>,
) -> Result<()> {
    let rows = flow.source.rows();
    if rows == 0 {
        return Ok(());
    }
    let mut generator = Generator::new(flow);
    targets.iter().for_each(|target| generator.touch(target));
    let mut out = Emitter::new("v");
    generator.stages(Pass::Decide, &mut out)?;
    body(&mut generator, &mut out)?;
    let control = Control::new(device)?;
    let pointer = generator.params.pointer("u64", &control.0, 0);
    let row_count = generator.params.word("u64", rows);
    let mut prepared = generator.finish(device, &pointer, &[&out])?;
    let head = Control::head(&pointer, &row_count);
    let statements = out.take();
    let items = items_for(prepared.eager_bytes, Effort::of(&statements));
    let text = striding_body(&head, items, &prepared.prologue, &statements);
    let tiles = rows.div_ceil(u64::from(items * THREADS));
    let mut arena = Arena::guess(rows);
    loop {
        prepared.set_arena(device, "join", arena)?;
        Generated::new(device, "each", &prepared, &text)?.fill(device, tiles, 0)?;
        let asked = if prepared.arena.is_some() { control.characters()? } else { 0 };
        if asked <= arena {
            break;
        }
        prepared.undo(&control)?;
        arena = Arena::larger(arena, asked);
    }
    if prepared.may_fail {
        control.read(&prepared.sites)?;
    }
    Ok(())
}

/// The loop of a kernel whose blocks stride over the tiles of a row range; `body` handles one
/// `row`.
pub(crate) fn striding_body(head: &str, items: u32, prologue: &Code, body: &Code) -> Code {
    let mut code =
        Code::with_capacity(512 + head.len() + prologue.text().len() + body.text().len());
    code.line(format_args!("constexpr int ITEMS = {items};"));
    code.raw(head);
    code.line(
        "const u64 tiles = (rows + (u64)ITEMS * THREADS - 1) / ((u64)ITEMS * THREADS);\n\
         for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {\n\
         #define ROW(k) (tile * ((u64)ITEMS * THREADS) + (u64)(k) * THREADS + threadIdx.x)",
    );
    code.append(prologue);
    code.line("#pragma unroll\nfor (int k = 0; k < ITEMS; ++k) {\nconst u64 row = ROW(k);");
    code.scope("if (row < rows) ");
    code.append(body);
    code.close("} while (0);\n}\n}");
    code
}

/// A kernel that decides about rows, ranks those that stay by decoupled look-back, and writes them.
struct CompactingKernel<'a> {
    head: &'a str,
    /// C++ names of the first control word and of the look-back's words, one for each tile.
    control: &'a str,
    state: &'a str,
    prologue: &'a Code,
    /// Statements that break for rows that go.
    decide: &'a Code,
    /// Statements that compute the values of a row that stays, and store them at `at`.
    write: &'a Code,
}

impl CompactingKernel<'_> {
    /// The kernel's body for `items` rows of each thread.
    fn body(&self, items: u32) -> Code {
        let CompactingKernel { head, control, state, prologue, decide, write } = self;
        let mut code = Code::default();
        code.line(format_args!(
            "constexpr int ITEMS = {items};\n{head}\
             const u64 tile = compact_ticket({control} + 2);\n\
             #define ROW(k) (tile * ((u64)ITEMS * THREADS) + (u64)(k) * THREADS + threadIdx.x)"
        ));
        code.append(prologue);
        code.line(
            "u32 keep = 0;\n#pragma unroll\n\
             for (int k = 0; k < ITEMS; ++k) {\nconst u64 row = ROW(k);",
        );
        code.scope("if (row < rows) ");
        code.append(decide);
        code.line("keep |= 1u << k;");
        code.close("} while (0);\n}");
        code.line(format_args!(
            "__syncwarp(FULL_WARP);\n\
             u32 rank[ITEMS];\n\
             const u32 kept = tile_ranks<THREADS, ITEMS>(keep, rank);\n\
             const u64 start = compact_tile_start({state}, tile, kept);\n\
             if (tile == gridDim.x - 1 && threadIdx.x == 0) {control}[3] = start + kept;\n\
             #pragma unroll\n\
             for (int k = 0; k < ITEMS; ++k) {{"
        ));
        code.scope("if (keep >> k & 1) ");
        code.constant("u64", "row", "ROW(k)");
        code.constant("u64", "at", "start + rank[k]");
        code.append(write);
        code.close("} while (0);\n}");
        code
    }
}
