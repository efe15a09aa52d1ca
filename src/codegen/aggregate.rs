//! The sinks that aggregate. Which one, the keys decide (their range, or how many groups a sample
//! shows):
//!
//! | groups | sink | |
//! |---|---|---|
//! | no keys | registers, combined in a fixed order | `registers.rs` |
//! | few | cells in shared memory, numbered by the key or by a hash table there | `cells.rs` |
//! | many, of many rows | rows are partitioned by key, then cells | `partitioned.rs` |
//! | else | atomics on slots in global memory, likewise | `atomics.rs` |
//!
//! Sums of floats give the same bits for the same input, plan and device:
//!
//! - Grouped sums are exact integers in units of a power of two, so their order does not matter. A
//!   kernel that would have to drop bits says so ([`Retry::INEXACT`]), and the executor sums in a
//!   fixed order instead.
//! - Ungrouped sums combine in a fixed order, by a number of blocks that does not depend on how
//!   many run at once. Other kernels have as many blocks as run at once, and no bit of their
//!   results depends on that number.
//!
//! The minimum and the maximum of strings and wide decimals are kept as row numbers. The kernel
//! compares the values where the column holds them (`best_row.rs`).
//!
//! An attempt may fail because its table is full or two keys share a hash. Each further attempt has
//! a new secret, and there are few. The last has more slots than rows and no limit of probes.

mod atomics;
mod best_row;
mod cells;
mod expected;
mod inputs;
mod kernel;
mod partitioned;
mod registers;
mod replay;
mod sink;

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

use super::arena::Arena;
use super::control::{Control, Retry};
use super::effort::Effort;
use super::emit::Emitter;
use super::flow::{Flow, FlowSource};
use super::generator::{Generator, Pass};
use super::groups::{Accumulator, GroupKeyStorage, GroupSlots, Occupancy};
use super::kernel::{Generated, THREADS};
use super::keys::{KeyLayout, NullKeys};
use super::radix_partition::RowCode;
use crate::column::Relation;
use crate::error::Result;
use cells::Probes;
use expected::{Expected, MOST_TRIES};
use inputs::shape;
use kernel::AggregateKernel;
use partitioned::GroupTarget;
pub(crate) use replay::Replay;
use replay::{Fresh, Made};
use sink::{Sink, cell_threads};
use warpframe_device::{Buffer, Device, LaunchBounds};

/// An aggregate function over a pipeline's rows.
#[derive(Debug, Clone)]
pub(crate) struct AggregateCall {
    pub(crate) kind: AggregateKind,
    /// The argument; `None` for `count(*)`.
    pub(crate) arg: Option<Expr>,
    /// FILTER (WHERE …).
    pub(crate) filter: Option<Expr>,
    /// Type of the result.
    pub(crate) dtype: DataType,
}

/// Which function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AggregateKind {
    Count,
    Sum,
    Min,
    Max,
    Average,
}

/// How sums of floats by group are to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FloatSums {
    /// In fixed point where bounds are known.
    Fixed,
    /// Never in fixed point: it lost bits.
    Ordered,
}

/// How an aggregation is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) floats: FloatSums,
    /// How often hashed keys collided.
    pub(crate) collisions: u64,
    /// Whether the slot of each row is wanted, see [`Partial::row_slots`].
    pub(crate) row_slots: bool,
}

/// An accumulator that no atomic can fill: the executor sorts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrderedInput {
    /// Position among the accumulators.
    pub(crate) accumulator: usize,
    /// The aggregate call whose argument it takes.
    pub(crate) call: usize,
}

/// Slots, and what the executor still has to do for them.
pub(crate) struct Partial {
    pub(crate) slots: GroupSlots,
    pub(crate) ordered: Vec<OrderedInput>,
    /// Slot (`u32`) of each input row, where `ordered` is not empty or they were asked for; all
    /// ones where the row has none.
    pub(crate) row_slots: Option<Arc<Buffer>>,
    /// The group's key is a hash, which `verify` has to confirm against the first row of each slot.
    pub(crate) hashed: Option<KeyLayout>,
    /// How to make the same again, where that takes no more than a launch.
    pub(crate) replay: Option<Replay>,
}

/// Result of [`aggregate`].
pub(crate) enum Attempt {
    Done(Box<Partial>),
    NeedsColumns,
    /// A float sum lost bits: again with [`FloatSums::Ordered`].
    Inexact,
}

/// `HASH_PROBES` of the kernels: how far from its place a key may lie in a hash table that counts
/// as full beyond.
const PROBES: u64 = 1024;
/// A dense domain up to this indexes slots directly whatever the number of rows.
const SMALL_DOMAIN: u64 = 1 << 16;

/// Result of one attempt; `WantsSample` comes before anything ran.
enum Tried {
    Attempt(Attempt, Option<Retry>),
    WantsSample,
    /// Nothing ran: the guess would choose no hash cells. Retry without it.
    GuessIsNoUse,
    /// The strings that were made took this many bytes, more than there were.
    ArenaFull(u64),
    /// Memory does not suffice for records of all rows.
    NoRoom,
}

/// Aggregates the flow by `groups`.
pub(crate) fn aggregate(
    device: &Device,
    flow: &Flow,
    groups: &[Expr],
    calls: &[AggregateCall],
    manner: Manner,
) -> Result<Attempt> {
    let mut expected = Expected::nothing(flow);
    loop {
        match attempt(device, flow, groups, calls, manner, &expected)? {
            Tried::WantsSample => {
                expected = expected::learn(device, flow, groups, manner.collisions)?
            }
            Tried::GuessIsNoUse => expected.wrong(),
            Tried::NoRoom => expected.frugal = true,
            Tried::ArenaFull(asked) => expected.arena = Arena::larger(expected.arena, asked),
            Tried::Attempt(_, Some(retry)) if retry.has(Retry::TABLE_FULL) => expected.too_few(),
            Tried::Attempt(_, Some(retry)) if retry.has(Retry::INEXACT) => {
                return Ok(Attempt::Inexact);
            }
            Tried::Attempt(attempt, _) => return Ok(attempt),
        }
    }
}

fn attempt(
    device: &Device,
    flow: &Flow,
    groups: &[Expr],
    calls: &[AggregateCall],
    manner: Manner,
    expected: &Expected,
) -> Result<Tried> {
    const OPERATOR: &str = "aggregate";
    let Manner { floats, collisions, row_slots: wanted } = manner;
    let rows = flow.source.rows();
    let mut generator = Generator::new(flow);
    let mut out = Emitter::new("v");
    generator.stages(Pass::Decide, &mut out)?;
    let keys = groups.iter().map(|g| generator.expr(g, &mut out)).collect::<Result<Vec<_>>>()?;
    let secret = device.secret(collisions * MOST_TRIES + expected.tries);
    let layout = KeyLayout::of(&keys, NullKeys::Equal, true, secret);
    let shape = shape(&mut generator, calls, layout, floats, groups.is_empty(), rows, &mut out)?;
    let Some(shape) = shape else {
        return Ok(Tried::Attempt(Attempt::NeedsColumns, None));
    };

    // Floats in registers are summed in a fixed order anyway.
    let ordered: Vec<_> = (shape.inputs.iter().enumerate())
        .filter(|(_, f)| !groups.is_empty() && f.accumulator == Accumulator::Float)
        .map(|(at, f)| OrderedInput { accumulator: at, call: f.call })
        .collect();
    let picks = shape.inputs.iter().any(|f| f.accumulator == Accumulator::Row);
    let by_rows = wanted || !ordered.is_empty();
    let exact = shape.layout.is_exact();
    let in_place = is_in_place(flow);
    let plain_keys = in_place && groups.iter().all(|g| plain_column(flow, g).is_some());
    let plain_feeds = in_place
        && ordered.iter().all(|o| {
            let call = &calls[o.call];
            call.filter.is_none()
                && call.arg.as_ref().is_some_and(|arg| plain_column(flow, arg).is_some())
        });
    if (!exact && !plain_keys) || (!ordered.is_empty() && !plain_feeds) {
        return Ok(Tried::Attempt(Attempt::NeedsColumns, None));
    }
    let comparisons: String = (shape.inputs.iter().enumerate())
        .filter(|(_, input)| input.accumulator == Accumulator::Row)
        .filter_map(|(at, input)| {
            let arg = calls[input.call].arg.as_ref()?;
            best_row::comparison(&mut generator, at, input, arg)
        })
        .collect();

    let (key, _) = shape.layout.emit(&keys, &mut generator.params, &mut out);
    let control = Control::new(device)?;
    let pointer = generator.params.pointer("u64", &control.0, 0);
    let row_count = generator.params.word("u64", rows);
    let head = Control::head(&pointer, &row_count);

    let direct = direct_domain(&shape.layout, rows);
    if direct.is_none()
        && exact
        && !by_rows
        && !picks
        && expected::samplable(device, flow)
        && !expected.sampled
    {
        return Ok(Tried::WantsSample);
    }
    let sink = if groups.is_empty() && !by_rows {
        Sink::Registers
    } else if by_rows || picks || !exact {
        Sink::Atomics
    } else {
        Sink::of(device, flow, &shape.inputs, direct, expected, generator.makes_text())
    };
    if expected.guessed && !matches!(sink, Sink::HashCells { .. }) {
        return Ok(Tried::GuessIsNoUse);
    }
    let slots = match (&sink, direct) {
        (_, Some(domain)) => domain,
        (Sink::Partitioned(plan), None) => plan.slots(),
        (_, None) => expected.capacity(rows) + 1,
    };

    let mut fresh = vec![];
    let mut filled = |bytes: usize, byte: u8| -> Result<Arc<Buffer>> {
        let buffer = Arc::new(device.alloc_filled(OPERATOR, bytes, byte)?);
        fresh.push((buffer.clone(), byte));
        Ok(buffer)
    };
    let mut accumulators = vec![];
    let mut pointers = vec![];
    for input in &shape.inputs {
        let bytes = slots as usize * input.accumulator.words() * 8;
        let buffer = match sink {
            // The last block writes them, whatever there was.
            Sink::Registers => Arc::new(device.alloc(OPERATOR, bytes)?),
            _ => filled(bytes, input.accumulator.initial_byte())?,
        };
        pointers.push(generator.params.pointer("u64", &buffer, 0));
        accumulators.push((input.accumulator.clone(), buffer));
    }
    // Where groups are found: by bytes, or by keys.
    let occupancy = match (&sink, direct) {
        (Sink::Registers, _) => Occupancy::All,
        (_, Some(_)) if groups.is_empty() => Occupancy::All,
        (_, Some(domain)) => Occupancy::Seen(filled(domain as usize, 0)?),
        (_, None) => Occupancy::Hashed(filled(slots as usize * 8, 0xFF)?),
    };
    let found = match &occupancy {
        Occupancy::All => String::new(),
        Occupancy::Seen(seen) => generator.params.pointer("u8", seen, 0),
        Occupancy::Hashed(table) => generator.params.pointer("u64", table, 0),
    };
    let mask = generator.params.word("u64", slots.saturating_sub(2));
    let (secret, probes) = match occupancy {
        Occupancy::Hashed(_) => {
            let probes = if expected.patient() { slots } else { PROBES };
            (
                generator.params.word("u64", shape.layout.secret),
                generator.params.word("u64", probes),
            )
        }
        _ => ("0ull".to_string(), String::new()),
    };
    let slot_count = generator.params.word("u64", slots);
    let exponents: Vec<_> = (shape.inputs.iter())
        .map(|f| match f.accumulator {
            Accumulator::Fixed { exponent, .. } => {
                generator.params.word("i64", i64::from(exponent))
            }
            _ => String::new(),
        })
        .collect();

    // What each sink declares besides.
    let (mut row_slots, mut first_rows) = (None, None);
    let (mut row_slots_name, mut first_rows_name) = (None, None);
    if let Sink::Atomics = sink {
        if by_rows {
            let buffer = Arc::new(device.alloc_filled(OPERATOR, rows as usize * 4, 0xFF)?);
            row_slots_name = Some(generator.params.pointer("u32", &buffer, 0));
            row_slots = Some(buffer);
        }
        if !exact {
            let buffer = Arc::new(device.alloc_filled(OPERATOR, slots as usize * 4, 0xFF)?);
            first_rows_name = Some(generator.params.pointer("u32", &buffer, 0));
            first_rows = Some(buffer);
        }
    }
    let words: usize = shape.inputs.iter().map(|input| input.accumulator.words()).sum();
    let partials = match sink {
        Sink::Registers => {
            let buffer = Arc::new(
                device
                    .alloc(OPERATOR, words.max(1) * registers::most_blocks(device) as usize * 8)?,
            );
            Some((generator.params.pointer("u64", &buffer, 0), buffer))
        }
        _ => None,
    };
    let partitions = match &sink {
        Sink::Partitioned(plan) => Some(plan.declare(device, &mut generator.params)?),
        _ => None,
    };

    let mut prepared = generator.finish(device, &pointer, &[&out])?;
    prepared.set_arena(device, OPERATOR, expected.arena)?;
    let prologue = std::mem::take(&mut prepared.prologue);
    let statements = out.take();
    let late = sink::is_late(&prepared, words, [&statements, &prologue]);
    let effort = Effort::of(&statements) + Effort::of(&comparisons);
    let items = sink.items(shape.inputs.len(), &prepared, effort, late);
    let kernel = AggregateKernel {
        inputs: &shape.inputs,
        accumulators: &pointers,
        exponents: &exponents,
        comparisons: &comparisons,
        rows: RowCode {
            control: &pointer,
            head: &head,
            prologue: &prologue,
            statements: &statements,
            key: &key,
            secret: &secret,
            items,
        },
    };
    let (mut retry, mut replay) = (None, None);
    // Without accumulators a kernel over rows in place has no effect: it is not launched.
    let in_vain = match sink {
        Sink::Registers => shape.inputs.is_empty() && in_place,
        _ => rows == 0,
    };
    if !in_vain {
        if let (Sink::Partitioned(plan), Some(names)) = (&sink, &partitions) {
            let target = GroupTarget { found: &found, fresh: &fresh };
            match plan.run(device, &mut prepared, names, &kernel, &control, &target) {
                Err(error) if error.is_out_of_device_memory() => {
                    return Ok(Tried::NoRoom);
                }
                done => retry = Some(done?),
            }
        } else {
            let lossy = (shape.inputs.iter())
                .any(|f| matches!(f.accumulator, Accumulator::Fixed { exact: false, .. }));
            let ordered = shape.inputs.iter().any(|input| input.accumulator == Accumulator::Float);
            let launch = |stem: &str, text: String, threads: u32, shared: u64| -> Result<()> {
                let tiles = rows.div_ceil(u64::from(items * threads));
                Generated::with_threads(device, stem, &prepared, &text, threads)?.fill(
                    device,
                    tiles,
                    shared as u32,
                )
            };
            match &sink {
                Sink::Registers => {
                    let (name, partials) = partials.as_ref().expect("made for this sink");
                    let text =
                        registers::body(&kernel, name, registers::rows_per_thread(rows, device));
                    let tiles = rows.div_ceil(u64::from(items * THREADS));
                    let bounds = LaunchBounds {
                        threads: THREADS,
                        blocks: if late { sink::LATE_BLOCKS } else { 1 },
                    };
                    let made = Made {
                        kernel: Generated::with_bounds(device, "reduce", &prepared, &text, bounds)?,
                        tiles,
                        blocks: ordered
                            .then(|| tiles.clamp(1, registers::most_blocks(device)) as u32),
                        partial_bytes: partials.len(),
                        slots,
                        accumulators: shape
                            .inputs
                            .iter()
                            .map(|input| input.accumulator.clone())
                            .collect(),
                        layout: shape.layout.clone(),
                        outputs: shape.outputs.clone(),
                    };
                    made.launch(device, &made.kernel)?;
                    // The outputs of picks hold the columns. A replay must not keep memory.
                    if !prepared.may_fail && !lossy && !picks && rows > 0 && !device.rehearses() {
                        let fresh = Fresh {
                            control: (&pointer, &control.0),
                            partials: (name, partials),
                            accumulators: pointers
                                .iter()
                                .map(String::as_str)
                                .zip(accumulators.iter().map(|(_, b)| b))
                                .collect(),
                        };
                        replay = Replay::of(flow, &prepared.params, made, &fresh);
                    }
                }
                Sink::Cells { cells, copies } => {
                    let text =
                        cells::direct_body(&kernel, cells, &slot_count, *copies, &key, &found);
                    launch(
                        "group_cells",
                        text,
                        cell_threads(shape.inputs.len()),
                        cells.bytes(slots, *copies),
                    )?
                }
                Sink::HashCells { cells, slots, copies } => {
                    let table = cells::KeyTable { keys: &found, first: "0", mask: &mask };
                    let probes = if expected.guessed { Probes::Few } else { Probes::Many };
                    let text =
                        cells::hash_body(&kernel, cells, *slots, *copies, &key, &table, probes);
                    launch(
                        "group_hash_cells",
                        text,
                        cell_threads(shape.inputs.len()),
                        cells.bytes(*slots, *copies),
                    )?
                }
                _ => {
                    let slot = match &occupancy {
                        Occupancy::Hashed(_) => format!(
                            "slot = hash_slot({found}, {mask}, {key}, {secret}, {probes});\n{}\n",
                            kernel.flag("slot == HASH_NONE", Retry::TABLE_FULL)
                        ),
                        _ => format!("slot = {key};\n"),
                    };
                    let extra = atomics::Extra {
                        seen: matches!(occupancy, Occupancy::Seen(_)).then_some(&found),
                        row_slots: row_slots_name.as_deref(),
                        first_rows: first_rows_name.as_deref(),
                    };
                    let stem = if direct.is_some() { "group_direct" } else { "group_hash" };
                    launch(stem, atomics::body(&kernel, &extra, &slot), THREADS, 0)?
                }
            }
            if prepared.arena.is_some() {
                let asked = control.characters()?;
                if asked > expected.arena {
                    return Ok(Tried::ArenaFull(asked));
                }
            }
            if prepared.may_fail || matches!(occupancy, Occupancy::Hashed(_)) || lossy {
                retry = Some(control.read(&prepared.sites)?.0);
            }
        }
    }
    let hashed = (!exact).then(|| shape.layout.clone());
    let mixed = matches!(sink, Sink::HashCells { .. } | Sink::Partitioned(_));
    let keys = match (first_rows, &occupancy, &flow.source) {
        (Some(first), _, FlowSource::Relation(relation)) => {
            let columns =
                groups.iter().map(|g| plain_column(flow, g).unwrap_or_default()).collect();
            GroupKeyStorage::Row(relation.clone(), columns, first)
        }
        (_, Occupancy::Hashed(table), _) if mixed => {
            GroupKeyStorage::Mixed(shape.layout, table.clone())
        }
        (_, Occupancy::Hashed(table), _) => GroupKeyStorage::Table(shape.layout, table.clone()),
        _ => GroupKeyStorage::Slot(shape.layout),
    };
    let slots = GroupSlots { slots, occupancy, keys, accumulators, outputs: shape.outputs, rows };
    Ok(Tried::Attempt(
        Attempt::Done(Box::new(Partial { slots, ordered, row_slots, hashed, replay })),
        retry,
    ))
}

/// The number of slots, where the key of a row numbers its slot.
fn direct_domain(layout: &KeyLayout, rows: u64) -> Option<u64> {
    layout.dense_domain(SMALL_DOMAIN.max(rows.saturating_mul(4)).min(1 << 28))
}

/// The number of slots, where [`aggregate`] numbers them by the keys themselves
/// ([`GroupKeyStorage::Slot`]).
pub(crate) fn slots_by_keys(device: &Device, flow: &Flow, groups: &[Expr]) -> Result<Option<u64>> {
    let (mut generator, mut out) = (Generator::new(flow), Emitter::default());
    generator.stages(Pass::Decide, &mut out)?;
    let keys = groups.iter().map(|g| generator.expr(g, &mut out)).collect::<Result<Vec<_>>>()?;
    let layout = KeyLayout::of(&keys, NullKeys::Equal, true, device.secret(0));
    Ok(direct_domain(&layout, flow.source.rows()))
}

/// The column of the flow's source that an expression is, in a flow without stages.
pub(crate) fn plain_column(flow: &Flow, expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Column(name) => flow.source_schema.index_of_column(name).ok(),
        Expr::Alias(alias) => plain_column(flow, &alias.expr),
        _ => None,
    }
}

/// Whether the flow is nothing but a relation in place.
fn is_in_place(flow: &Flow) -> bool {
    flow.steps.is_empty()
        && matches!(&flow.source, FlowSource::Relation(relation) if Relation::is_dense(relation))
}
