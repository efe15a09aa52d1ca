//! The sinks that aggregate: which accumulators a query's aggregates need, and the three kernels that fill them.
//!
//! - no keys: every thread accumulates in registers, blocks combine in a fixed order, the last block combines the blocks;
//! - few groups: cells of 32-bit limbs in shared memory, a copy for each lane where they fit, flushed into global slots;
//! - otherwise: atomics on global slots, which a dense key numbers or a hash table finds.
//!
//! Grouped sums of floats are exact integers in units of a power of two (so their order does not matter); a kernel that
//! would have to drop bits says so ([`Retry::INEXACT`]) and the executor sums in a fixed order instead.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

use super::arena::Arena;
use super::emit::Emitter;
use super::flow::{Flow, Source};
use super::generator::{Generator, Pass};
use super::groups::{Accumulator, GroupKeys, GroupOutput, GroupSlots, Occupancy, OutputKind};
use super::kernel::{Control, Generated, Retry, THREADS, items_for, striding_blocks};
use super::keys::{KeyLayout, NullKeys};
use super::materialize::{Codes, materialize, striding_body};
use super::value::{Value, widen};
use crate::column::Repr;
use crate::device::{Buffer, Device};
use crate::error::Result;

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
    /// Seed of hashed keys.
    pub(crate) seed: u64,
    /// Whether the slot of each row is wanted, see [`Partial::row_slots`].
    pub(crate) row_slots: bool,
}

/// An accumulator and what goes into it.
struct Feed {
    accumulator: Accumulator,
    /// The argument; none for a count of rows.
    value: Option<Value>,
    /// C++ condition that the row counts.
    valid: Option<String>,
    /// Sort key by which the executor finds this accumulator's rows (`Row`), or the order in which it sums (`Float`).
    identity: String,
    /// Position of the call's argument among the calls, for the executor.
    call: usize,
    greatest: bool,
}

/// An accumulator that no atomic can fill: the executor sorts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrderedFeed {
    /// Position among the accumulators.
    pub(crate) accumulator: usize,
    /// The aggregate call whose argument it takes.
    pub(crate) call: usize,
    /// For picks: the greatest value, not the least.
    pub(crate) greatest: bool,
}

/// Slots, and what the executor still has to do for them.
pub(crate) struct Partial {
    pub(crate) slots: GroupSlots,
    pub(crate) ordered: Vec<OrderedFeed>,
    /// Slot (`u32`) of each input row, where `ordered` is not empty or they were asked for; all ones where the row has
    /// none.
    pub(crate) row_slots: Option<Arc<Buffer>>,
    /// The group's key is a hash, which `verify` has to confirm against the first row of each slot.
    pub(crate) hashed: Option<KeyLayout>,
}

/// Result of [`aggregate`].
pub(crate) enum Attempt {
    Done(Box<Partial>),
    NeedsColumns,
    /// A float sum lost bits: again with [`FloatSums::Ordered`].
    Inexact,
}

/// Most bytes of shared memory for cells.
const CELL_BYTES: u64 = 48 << 10;
/// A dense domain up to this indexes slots directly whatever the number of rows.
const SMALL_DOMAIN: u64 = 1 << 16;
/// Capacity of the first hash table tried.
const FIRST_CAPACITY: u64 = 1 << 20;

struct Shape {
    layout: KeyLayout,
    feeds: Vec<Feed>,
    outputs: Vec<GroupOutput>,
}

/// Rows from which on it pays to look at a sample before hashing them.
const SAMPLED_FROM: u64 = 1 << 18;
/// Rows in a sample.
const SAMPLE: u64 = 1 << 16;
/// Groups in the sample up to which all groups are listed first, so that their sums fit shared memory.
const FEW: u64 = 2048;

/// What is known of the groups before they are aggregated through a hash table.
struct Expected {
    capacity: u64,
    /// Bytes for characters of strings that are made.
    arena: u64,
    /// A sample was looked at, or cannot be.
    sampled: bool,
    listed: Option<Listed>,
}

/// All groups, numbered.
struct Listed {
    table: Arc<Buffer>,
    mask: u64,
    /// Number (`u32`) of the group in each slot of the table.
    numbers: Arc<Buffer>,
    /// Key (`u64`) of each group.
    keys: Arc<Buffer>,
    count: u64,
}

/// Result of one attempt; `WantsSample` comes before anything ran.
enum Tried {
    Attempt(Attempt, Option<Retry>),
    WantsSample,
    /// The strings that were made took this many bytes, more than there were.
    ArenaFull(u64),
}

/// Aggregates the flow by `groups`.
pub(crate) fn aggregate(
    device: &Device,
    flow: &Flow,
    groups: &[Expr],
    calls: &[AggregateCall],
    manner: Manner,
) -> Result<Attempt> {
    let arena = Arena::guess(flow.source.rows());
    let mut expected = Expected { capacity: FIRST_CAPACITY, arena, sampled: calls.is_empty(), listed: None };
    loop {
        match attempt(device, flow, groups, calls, manner, &expected)? {
            Tried::WantsSample => expected = sample(device, flow, groups, manner.seed)?,
            Tried::ArenaFull(asked) => expected.arena = Arena::larger(expected.arena, asked),
            Tried::Attempt(_, Some(retry)) if retry.has(Retry::TABLE_FULL) => expected.capacity *= 16,
            Tried::Attempt(_, Some(retry)) if retry.has(Retry::INEXACT) => return Ok(Attempt::Inexact),
            Tried::Attempt(attempt, _) => return Ok(attempt),
        }
    }
}

/// Counts the groups of the first rows. Few: lists all groups, by a pass over the keys. Else a table for as many groups as
/// would show as many in a sample.
fn sample(device: &Device, flow: &Flow, groups: &[Expr], seed: u64) -> Result<Expected> {
    let arena = Arena::guess(flow.source.rows());
    let mut expected = Expected { capacity: FIRST_CAPACITY, arena, sampled: true, listed: None };
    let (Source::Relation(relation), rows) = (&flow.source, flow.source.rows()) else { return Ok(expected) };
    let first = Flow { source: Source::Relation(relation.slice(0, Some(SAMPLE))), ..flow.clone() };
    let Some(found) = list(device, &first, groups, seed, 2 * SAMPLE)? else { return Ok(expected) };
    if found.count <= FEW {
        expected.listed = list(device, flow, groups, seed, 8 * FEW)?.filter(|all| all.count <= 2 * FEW);
    } else {
        let groups = groups_behind(found.count, SAMPLE).min(rows);
        expected.capacity = (2 * groups).next_power_of_two().max(FIRST_CAPACITY);
    }
    Ok(expected)
}

/// How many equally frequent groups show `seen` of them in `sample` rows: the solution of seen = g·(1 − e^(−sample/g)),
/// and somewhat more. A skewed choice has more groups than that; its table is found too full and made anew.
fn groups_behind(seen: u64, sample: u64) -> u64 {
    let (seen, sample) = (seen as f64, sample as f64);
    let shows = |groups: f64| groups * (1.0 - (-sample / groups).exp());
    // Nearly all distinct: a sample says no more than that there are many.
    let (mut low, mut high) = (seen, sample * 1e5);
    for _ in 0..64 {
        let middle = (low * high).sqrt();
        if shows(middle) < seen { low = middle } else { high = middle }
    }
    (high * 1.1) as u64
}

/// Lists the flow's groups, unless they do not fit a table of this capacity.
fn list(device: &Device, flow: &Flow, groups: &[Expr], seed: u64, capacity: u64) -> Result<Option<Listed>> {
    let expected = Expected { capacity, arena: Arena::guess(flow.source.rows()), sampled: true, listed: None };
    let manner = Manner { floats: FloatSums::Fixed, seed, row_slots: false };
    let Tried::Attempt(Attempt::Done(partial), retry) = attempt(device, flow, groups, &[], manner, &expected)? else {
        return Ok(None);
    };
    if retry.is_some_and(|retry| retry.has(Retry::TABLE_FULL)) {
        return Ok(None);
    }
    let slots = Arc::new(partial.slots);
    let GroupKeys::Table(_, table) = &slots.keys else { return Ok(None) };
    let numbers = Arc::new(device.alloc("aggregate", slots.slots as usize * 4)?);
    let none = Arc::new(datafusion::common::DFSchema::empty());
    let over_slots = Flow::new(Source::Groups(slots.clone()), none);
    let (count, keys) = materialize(device, "aggregate", &over_slots, Codes::Keep, |generator, out| {
        let numbers = generator.params.pointer("u32", &numbers, 0);
        out.line(format!("{numbers}[row] = (u32)at;"));
        Ok(vec![Value::word(slots.emit_table_key(table, &mut generator.params, out))])
    })?;
    let keys = keys[0].data.clone();
    Ok(Some(Listed { table: table.clone(), mask: slots.slots - 2, numbers, keys, count }))
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
    let Manner { floats, seed, row_slots: wanted } = manner;
    let rows = flow.source.rows();
    let mut generator = Generator::new(flow);
    let mut out = Emitter::new("v");
    generator.stages(Pass::Decide, &mut out)?;
    let keys = groups.iter().map(|g| generator.expr(g, &mut out)).collect::<Result<Vec<_>>>()?;
    let mut layout = KeyLayout::of(&keys, NullKeys::Equal, true);
    layout.seed = layout.seed.wrapping_add(seed);
    let shape = shape(&mut generator, calls, layout, floats, groups.is_empty(), rows, &mut out)?;

    // Floats in registers are summed in a fixed order anyway; where one accumulator needs an order of rows, so do they.
    let picks = shape.feeds.iter().any(|f| f.accumulator == Accumulator::Row);
    let sums = picks || !groups.is_empty();
    let ordered: Vec<_> = (shape.feeds.iter().enumerate())
        .filter(|(_, f)| f.accumulator == Accumulator::Row || sums && f.accumulator == Accumulator::Float)
        .map(|(at, f)| OrderedFeed { accumulator: at, call: f.call, greatest: f.greatest })
        .collect();
    let by_rows = wanted || !ordered.is_empty();
    let exact = shape.layout.is_exact();
    let in_place = is_in_place(flow);
    let plain_keys = in_place && groups.iter().all(|g| plain_column(flow, g).is_some());
    let plain_feeds = in_place
        && ordered.iter().all(|o| {
            let call = &calls[o.call];
            call.filter.is_none() && call.arg.as_ref().is_some_and(|arg| plain_column(flow, arg).is_some())
        });
    if (!exact && !plain_keys) || (!ordered.is_empty() && !plain_feeds) {
        return Ok(Tried::Attempt(Attempt::NeedsColumns, None));
    }

    let (key, _) = shape.layout.emit(&keys, &mut generator.params, &mut out);
    let control = Control::new(device)?;
    let pointer = generator.params.pointer("u64", &control.0, 0);
    let row_count = generator.params.word("u64", rows);
    let head = format!("u32* const status = (u32*){pointer};\nconst u64 rows = {row_count};\n");

    // Ungrouped: registers. (An ordered accumulator needs slots of rows, so the general way serves it.)
    let in_registers = groups.is_empty() && !by_rows;
    let direct = shape.layout.dense_domain(SMALL_DOMAIN.max(rows.saturating_mul(4)).min(1 << 28));
    let hashed = direct.is_none() && exact && !by_rows;
    // Of rows that are mostly dropped a sample says little, and listing would cost a second pass over all of them.
    let samplable = matches!(flow.source, Source::Relation(_)) && rows >= SAMPLED_FROM && !flow.drops_rows();
    if hashed && samplable && !expected.sampled {
        return Ok(Tried::WantsSample);
    }
    let listed = expected.listed.as_ref().filter(|_| hashed);
    let capacity = expected.capacity;
    let slots = match (direct, listed) {
        (Some(domain), _) => domain,
        (None, Some(listed)) => listed.count.max(1),
        (None, None) => {
            let needed = rows.saturating_mul(2).max(16).next_power_of_two();
            capacity.min(needed) + 1
        }
    };
    let mut accumulators = vec![];
    let mut pointers = vec![];
    for feed in &shape.feeds {
        let bytes = slots as usize * feed.accumulator.words() * 8;
        let buffer = Arc::new(device.alloc_filled(OPERATOR, bytes, feed.accumulator.initial_byte())?);
        pointers.push(generator.params.pointer("u64", &buffer, 0));
        accumulators.push((feed.accumulator.clone(), buffer));
    }

    let mut row_slots = None;
    let mut first_rows = None;
    let mut occupancy = Occupancy::All;
    let (body, shared) = if in_registers {
        (Body::Registers, 0)
    } else {
        let slot = match (direct, listed) {
            (Some(domain), _) => {
                if !groups.is_empty() {
                    let seen = Arc::new(device.alloc_zeroed(OPERATOR, domain as usize)?);
                    generator.params.pointer("u8", &seen, 0);
                    occupancy = Occupancy::Seen(seen);
                }
                format!("slot = {key};\n")
            }
            (None, Some(listed)) => {
                occupancy = Occupancy::Seen(Arc::new(device.alloc_zeroed(OPERATOR, slots as usize)?));
                let table = generator.params.pointer("const u64", &listed.table, 0);
                let numbers = generator.params.pointer("const u32", &listed.numbers, 0);
                let mask = generator.params.word("u64", listed.mask);
                format!("slot = {numbers}[hash_find({table}, {mask}, {key})];\n")
            }
            (None, None) => {
                let table = Arc::new(device.alloc_filled(OPERATOR, slots as usize * 8, 0xFF)?);
                let name = generator.params.pointer("u64", &table, 0);
                let mask = generator.params.word("u64", slots - 2);
                occupancy = Occupancy::Hashed(table);
                format!(
                    "slot = hash_insert({name}, {mask}, {key});\n\
                     if (slot == HASH_NONE) atomicOr((u32*)({pointer} + 1), {}u);\n",
                    Retry::TABLE_FULL
                )
            }
        };
        if by_rows {
            let buffer = Arc::new(device.alloc_filled(OPERATOR, rows as usize * 4, 0xFF)?);
            generator.params.pointer("u32", &buffer, 0);
            row_slots = Some(buffer);
        }
        if !exact {
            let buffer = Arc::new(device.alloc_filled(OPERATOR, slots as usize * 4, 0xFF)?);
            generator.params.pointer("u32", &buffer, 0);
            first_rows = Some(buffer);
        }
        let limbs = limbs_of(&shape.feeds, rows, device);
        let cell_bytes = slots.saturating_mul(limbs.iter().map(|l| l.bytes()).sum::<u64>() + 4);
        let fits = (direct.is_some() || listed.is_some())
            && row_slots.is_none()
            && cell_bytes <= CELL_BYTES
            && !groups.is_empty();
        if fits {
            let copies = (CELL_BYTES / cell_bytes).clamp(1, 32).next_power_of_two();
            let copies = if copies * cell_bytes > CELL_BYTES { copies / 2 } else { copies }.min(32);
            (Body::Cells { slot, limbs, copies }, (cell_bytes * copies) as u32)
        } else {
            (Body::Atomics { slot }, 0)
        }
    };

    let seen = match &occupancy {
        Occupancy::Seen(buffer) => Some(generator.params.pointer("u8", buffer, 0)),
        _ => None,
    };
    let row_slots_name = row_slots.as_ref().map(|b| generator.params.pointer("u32", b, 0));
    let first_rows_name = first_rows.as_ref().map(|b| generator.params.pointer("u32", b, 0));
    let partials = match body {
        Body::Registers => {
            let words: usize = shape.feeds.iter().map(|f| f.accumulator.words()).sum();
            let blocks = u64::from(device.properties().multiprocessors) * 8;
            let buffer = Arc::new(device.alloc(OPERATOR, words.max(1) * blocks as usize * 8)?);
            Some(generator.params.pointer("u64", &buffer, 0))
        }
        _ => None,
    };
    let slot_count = generator.params.word("u64", slots);
    let exponents: Vec<_> = (shape.feeds.iter())
        .map(|f| match f.accumulator {
            Accumulator::Fixed { exponent } => generator.params.word("i64", i64::from(exponent)),
            _ => String::new(),
        })
        .collect();
    let mut prepared = generator.finish(device, &pointer)?;
    prepared.set_arena(device, OPERATOR, expected.arena)?;
    let items = items_for(prepared.eager_bytes);
    let statements = out.take();
    let names = Names { control: &pointer, accumulators: &pointers, exponents: &exponents, slots: &slot_count };
    let (stem, text) = match &body {
        Body::Registers => {
            let partials = partials.as_deref().unwrap_or_default();
            let per_thread = rows_per_thread(rows, device);
            (
                "reduce",
                registers_body(
                    &shape.feeds,
                    &names,
                    &head,
                    items,
                    &prepared.prologue,
                    &statements,
                    partials,
                    per_thread,
                ),
            )
        }
        Body::Cells { slot, limbs, copies } => {
            let seen = seen.as_deref().unwrap_or_default();
            let cells = Cells { limbs, copies: *copies, seen };
            (
                "group_cells",
                cells_body(&shape.feeds, &names, &cells, &head, items, &prepared.prologue, &statements, slot),
            )
        }
        Body::Atomics { slot } => {
            let extra = Extra {
                seen: seen.as_deref(),
                row_slots: row_slots_name.as_deref(),
                first_rows: first_rows_name.as_deref(),
            };
            let stem = if direct.is_some() || listed.is_some() { "group_direct" } else { "group_hash" };
            (stem, atomics_body(&shape.feeds, &names, &extra, &head, items, &prepared.prologue, &statements, slot))
        }
    };
    let mut retry = None;
    if rows > 0 || in_registers {
        let tiles = rows.div_ceil(u64::from(items * THREADS));
        Generated::new(device, stem, &prepared, &text)?.launch(device, striding_blocks(device, tiles), shared)?;
        if prepared.arena.is_some() {
            let asked = control.characters()?;
            if asked > expected.arena {
                return Ok(Tried::ArenaFull(asked));
            }
        }
        let fixed = shape.feeds.iter().any(|f| matches!(f.accumulator, Accumulator::Fixed { .. }));
        if text.contains("fail(") || direct.is_none() || fixed {
            retry = Some(control.read()?.0);
        }
    }
    let hashed = (!exact).then(|| shape.layout.clone());
    let keys = match (first_rows, &occupancy, &flow.source) {
        (Some(first), _, Source::Relation(relation)) => {
            let columns = groups.iter().map(|g| plain_column(flow, g).unwrap_or_default()).collect();
            GroupKeys::Row(relation.clone(), columns, first)
        }
        (_, Occupancy::Hashed(table), _) => GroupKeys::Table(shape.layout, table.clone()),
        (_, Occupancy::Seen(_), _) if let Some(listed) = listed => GroupKeys::Listed(shape.layout, listed.keys.clone()),
        _ => GroupKeys::Slot(shape.layout),
    };
    let slots = GroupSlots { slots, occupancy, keys, accumulators, outputs: shape.outputs, rows };
    Ok(Tried::Attempt(Attempt::Done(Box::new(Partial { slots, ordered, row_slots, hashed })), retry))
}

enum Body {
    Registers,
    Cells { slot: String, limbs: Vec<Cell>, copies: u64 },
    Atomics { slot: String },
}

struct Names<'a> {
    control: &'a str,
    accumulators: &'a [String],
    exponents: &'a [String],
    slots: &'a str,
}

struct Cells<'a> {
    limbs: &'a [Cell],
    copies: u64,
    seen: &'a str,
}

struct Extra<'a> {
    seen: Option<&'a str>,
    row_slots: Option<&'a str>,
    first_rows: Option<&'a str>,
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
    flow.steps.is_empty() && matches!(&flow.source, Source::Relation(relation) if relation.is_dense())
}

/// Decides which accumulators the calls need, sharing equal ones, and how results come of them.
fn shape(
    generator: &mut Generator<'_>,
    calls: &[AggregateCall],
    layout: KeyLayout,
    floats: FloatSums,
    ungrouped: bool,
    rows: u64,
    out: &mut Emitter,
) -> Result<Shape> {
    let mut feeds: Vec<Feed> = vec![];
    let mut outputs = vec![];
    for (position, call) in calls.iter().enumerate() {
        let value = call.arg.as_ref().map(|arg| generator.expr(arg, out)).transpose()?;
        let filter = call.filter.as_ref().map(|f| generator.expr(f, out)).transpose()?.map(|f| f.truth());
        let valid = match (value.as_ref().and_then(|v| v.valid.clone()), filter) {
            (None, None) => None,
            (Some(one), None) | (None, Some(one)) => Some(one),
            (Some(a), Some(b)) => Some(out.let_("bool", format!("{a} && {b}"))),
        };
        let mut feed = |accumulator: Accumulator, value: Option<&Value>, greatest: bool| {
            let code = value.map_or(String::new(), |v| match (&v.dictionary, &accumulator) {
                (Some(d), Accumulator::Least | Accumulator::Greatest) => d.code.clone(),
                _ => v.code.clone(),
            });
            let identity = format!("{accumulator:?} {code} {valid:?} {greatest}");
            feeds.iter().position(|f| f.identity == identity).unwrap_or_else(|| {
                let (value, valid) = (value.cloned(), valid.clone());
                feeds.push(Feed { accumulator, value, valid, identity, call: position, greatest });
                feeds.len() - 1
            })
        };
        let counted = if valid.is_some() || ungrouped { Some(feed(Accumulator::Count, None, false)) } else { None };
        let (value, count) = match (call.kind, &value) {
            (AggregateKind::Count, _) | (_, None) => {
                let at = counted.unwrap_or_else(|| feed(Accumulator::Count, None, false));
                (OutputKind::Plain(at), None)
            }
            (AggregateKind::Sum, Some(value)) => {
                let accumulator = sum_accumulator(value, &call.dtype, floats, ungrouped, rows);
                (OutputKind::Plain(feed(accumulator, Some(value), false)), counted)
            }
            (AggregateKind::Average, Some(value)) => {
                let accumulator = sum_accumulator(value, &call.dtype, floats, ungrouped, rows);
                let sum = feed(accumulator, Some(value), false);
                let count = counted.unwrap_or_else(|| feed(Accumulator::Count, None, false));
                let kind = match (&call.dtype, &value.dtype) {
                    (DataType::Decimal128(_, scale), DataType::Decimal128(_, of)) => {
                        OutputKind::DecimalAverage(sum, count, (scale - of).max(0) as u32)
                    }
                    _ => OutputKind::FloatAverage(sum, count),
                };
                (kind, Some(count))
            }
            (AggregateKind::Min | AggregateKind::Max, Some(value)) => {
                let greatest = call.kind == AggregateKind::Max;
                let bits = if greatest { Accumulator::Greatest } else { Accumulator::Least };
                let (low, high) = value.bounds();
                let narrow = i64::try_from(low).is_ok() && i64::try_from(high).is_ok();
                match (&value.dictionary, value.repr) {
                    (Some(input), _) => {
                        let at = feed(bits, Some(value), greatest);
                        (OutputKind::Unordered(at, Repr::U64, Some(input.dictionary.clone())), counted)
                    }
                    (None, Repr::I128) if narrow => {
                        (OutputKind::Unordered(feed(bits, Some(value), greatest), Repr::I64, None), counted)
                    }
                    (None, Repr::I128 | Repr::View) => {
                        let column = call.arg.as_ref().and_then(|arg| plain_column(generator.flow(), arg));
                        let relation = match &generator.flow().source {
                            Source::Relation(relation) => relation.clone(),
                            Source::Groups(_) => crate::column::Relation::dense(0, vec![]),
                        };
                        let at = feed(Accumulator::Row, Some(value), greatest);
                        (OutputKind::Pick(at, relation, column.unwrap_or_default()), None)
                    }
                    (None, repr) => (OutputKind::Unordered(feed(bits, Some(value), greatest), repr, None), counted),
                }
            }
        };
        outputs.push(GroupOutput { dtype: call.dtype.clone(), value, count });
    }
    Ok(Shape { layout, feeds, outputs })
}

/// The narrowest accumulator that sums `rows` such values.
fn sum_accumulator(value: &Value, result: &DataType, floats: FloatSums, ungrouped: bool, rows: u64) -> Accumulator {
    if matches!(value.repr, Repr::F32 | Repr::F64) || result.is_floating() {
        if ungrouped {
            return Accumulator::Float;
        }
        let magnitude = match value.repr {
            Repr::F32 | Repr::F64 => value.magnitude,
            _ => {
                let (low, high) = value.bounds();
                Some(low.unsigned_abs().max(high.unsigned_abs()) as f64)
            }
        };
        return match (floats, magnitude) {
            (FloatSums::Fixed, Some(bound)) if bound.is_finite() => {
                // Below 2^(exponent of the bound + 1), times fewer than 2^(bits of rows) rows, below 2^126 units.
                let top = if bound > 0.0 { bound.log2().floor() as i32 + 2 } else { -1000 };
                let bits = 64 - rows.max(1).leading_zeros() as i32;
                Accumulator::Fixed { exponent: (top + bits - 126).clamp(-1074, 900) }
            }
            _ => Accumulator::Float,
        };
    }
    let (low, high) = value.bounds();
    let most = low.unsigned_abs().max(high.unsigned_abs());
    let fits = most.checked_mul(u128::from(rows.max(1))).is_some_and(|sum| sum < 1 << 63);
    match result {
        DataType::Decimal128(_, _) if !fits => Accumulator::Sum128,
        _ => Accumulator::Sum64,
    }
}

fn rows_per_thread(rows: u64, device: &Device) -> u64 {
    // A block takes every gridDim-th tile; tiles hold at most 8 × THREADS rows.
    let tiles = rows.div_ceil(u64::from(THREADS)).max(1);
    let blocks = u64::from(striding_blocks(device, tiles));
    tiles.div_ceil(blocks) + 8
}

/// What an accumulator keeps in shared memory for a group.
#[derive(Debug, Clone, Copy)]
enum Cell {
    /// A sum of this many 32-bit limbs.
    Limbs(u32),
    /// 64 order-preserving bits.
    Extremum,
}

impl Cell {
    fn bytes(self) -> u64 {
        match self {
            Cell::Limbs(limbs) => 4 * u64::from(limbs),
            Cell::Extremum => 8,
        }
    }
}

/// The cell of each accumulator. A block's share of the rows bounds its sums.
fn limbs_of(feeds: &[Feed], rows: u64, device: &Device) -> Vec<Cell> {
    let block_rows = rows_per_thread(rows, device).saturating_mul(u64::from(THREADS)).max(1);
    (feeds.iter())
        .map(|feed| match (&feed.accumulator, &feed.value) {
            (Accumulator::Least | Accumulator::Greatest, _) => Cell::Extremum,
            (Accumulator::Sum64 | Accumulator::Sum128, Some(value)) => {
                let (low, high) = value.bounds();
                let most = low.unsigned_abs().max(high.unsigned_abs());
                let bits = 128 - most.leading_zeros() + (64 - block_rows.leading_zeros()) + 1;
                Cell::Limbs(bits.div_ceil(32).clamp(1, 4))
            }
            (Accumulator::Count, _) => Cell::Limbs(2),
            _ => Cell::Limbs(4),
        })
        .collect()
}

/// The argument as a signed wide integer, a float, or ordered bits, as its accumulator wants it.
fn argument(feed: &Feed, exponent: &str) -> (&'static str, String) {
    let Some(value) = &feed.value else { return ("u64", "1ull".into()) };
    match &feed.accumulator {
        Accumulator::Count => ("u64", "1ull".into()),
        Accumulator::Sum64 => ("i64", format!("(i64){}", value.code)),
        Accumulator::Sum128 => ("i128", widen(value, Repr::I128)),
        Accumulator::Fixed { .. } => ("i128", format!("fixed_of_f64((f64){}, {exponent}, lost)", value.code)),
        Accumulator::Float => ("f64", format!("(f64){}", value.code)),
        Accumulator::Least | Accumulator::Greatest => ("u64", ordered_bits(value)),
        Accumulator::Row => ("u64", "row".into()),
    }
}

fn ordered_bits(value: &Value) -> String {
    if let Some(input) = &value.dictionary {
        return format!("(u64){}", input.code);
    }
    match value.repr {
        Repr::F64 => format!("order_f64({})", value.code),
        Repr::F32 => format!("(u64)order_f32({})", value.code),
        Repr::U64 => format!("(u64){}", value.code),
        Repr::Bool => format!("order_i64((i64)({} != 0))", value.code),
        _ => format!("order_i64((i64){})", value.code),
    }
}

/// Kernel without keys: registers, then blocks, then the last block over all blocks.
#[allow(clippy::too_many_arguments)]
fn registers_body(
    feeds: &[Feed],
    names: &Names<'_>,
    head: &str,
    items: u32,
    prologue: &str,
    statements: &str,
    partials: &str,
    per_thread: u64,
) -> String {
    let mut declare = String::new();
    let mut update = String::new();
    let mut publish = String::new();
    let mut combine = String::new();
    let mut word = 0;
    for (i, feed) in feeds.iter().enumerate() {
        let (_, argument) = argument(feed, "");
        let narrow = feed.value.as_ref().is_some_and(|v| {
            let (low, high) = v.bounds();
            let most = low.unsigned_abs().max(high.unsigned_abs());
            most.checked_mul(u128::from(per_thread)).is_some_and(|m| m < 1 << 63)
        });
        let (local, ctype, initial, op) = match feed.accumulator {
            Accumulator::Count => ("u64", "u64", "0", "Add"),
            Accumulator::Sum64 => ("i64", "i64", "0", "Add"),
            Accumulator::Sum128 if narrow => ("i64", "i128", "0", "Add"),
            Accumulator::Sum128 => ("i128", "i128", "0", "Add"),
            Accumulator::Float => ("f64", "f64", "0.0", "Add"),
            Accumulator::Least => ("u64", "u64", "~0ull", "Least"),
            _ => ("u64", "u64", "0", "Greatest"),
        };
        declare.push_str(&format!("{local} acc{i} = {initial};\n"));
        let step = match op {
            "Add" => format!("acc{i} += ({local})({argument});"),
            "Least" => format!("{{ const u64 x = {argument}; if (x < acc{i}) acc{i} = x; }}"),
            _ => format!("{{ const u64 x = {argument}; if (x > acc{i}) acc{i} = x; }}"),
        };
        match &feed.valid {
            Some(valid) => update.push_str(&format!("if ({valid}) {step}\n")),
            None => update.push_str(&format!("{step}\n")),
        }
        let words = feed.accumulator.words();
        let target = &names.accumulators[i];
        publish.push_str(&format!(
            "{{ const {ctype} total = block_reduce<THREADS, {ctype}>(({ctype})acc{i}, {op}());\n\
             if (threadIdx.x == 0) store_words(partials + {word} * (u64)gridDim.x + blockIdx.x * {words}, total); }}\n"
        ));
        combine.push_str(&format!(
            "{{ {ctype} part = ({ctype}){initial};\n\
             for (u64 b = threadIdx.x; b < gridDim.x; b += THREADS)\n\
             part = {op}()(part, load_words<{ctype}>(partials + {word} * (u64)gridDim.x + b * {words}));\n\
             const {ctype} total = block_reduce<THREADS, {ctype}>(part, {op}());\n\
             if (threadIdx.x == 0) store_words({target}, total); }}\n"
        ));
        word += words;
    }
    let loop_ = striding_body(head, items, prologue, &format!("{statements}{update}"));
    format!(
        "u64* const partials = {partials};\n{declare}{loop_}{publish}if (last_block({} + 2)) {{\n{combine}}}\n",
        names.control
    )
}

/// Kernel for few groups: cells in shared memory, extrema (64 bits) in front of limbs (32 bits).
#[allow(clippy::too_many_arguments)]
fn cells_body(
    feeds: &[Feed],
    names: &Names<'_>,
    cells: &Cells<'_>,
    head: &str,
    items: u32,
    prologue: &str,
    statements: &str,
    slot: &str,
) -> String {
    let copies = cells.copies;
    let mut update = String::from("cells[cell] = 1;\n");
    let mut flush = String::new();
    let mut clear = String::new();
    let (mut limb, mut extremum) = (1, 0);
    for (i, (feed, shape)) in feeds.iter().zip(cells.limbs).enumerate() {
        let (_, argument) = argument(feed, &names.exponents[i]);
        let target = &names.accumulators[i];
        let step = match shape {
            Cell::Extremum => {
                let (function, empty) = match feed.accumulator {
                    Accumulator::Least => ("atomic_min", "~0ull"),
                    _ => ("atomic_max", "0ull"),
                };
                clear.push_str(&format!(
                    "for (u64 i = threadIdx.x; i < stride; i += THREADS) extrema[{extremum} * stride + i] = {empty};\n"
                ));
                let better = if function == "atomic_min" { "<" } else { ">" };
                flush.push_str(&format!(
                    "{{ u64 best = {empty};\nfor (u64 c = 0; c < COPIES; ++c) {{ const u64 x = extrema[{extremum} * stride + slot * COPIES + c];\n\
                     if (x {better} best) best = x; }}\n{function}({target} + slot, best); }}\n"
                ));
                extremum += 1;
                format!("{function}(extrema + {} * stride + cell, (u64)({argument}));", extremum - 1)
            }
            Cell::Limbs(limbs) => {
                let add = match feed.accumulator.words() {
                    1 => format!("if (sum != 0) atomicAdd({target} + slot, (u64)sum);"),
                    _ => format!("atomic_add_i128({target} + 2 * slot, sum);"),
                };
                let read = match feed.accumulator {
                    Accumulator::Count => format!("(i128)(u64)cell_read<{limbs}>"),
                    _ => format!("cell_read<{limbs}>"),
                };
                flush.push_str(&format!(
                    "{{ i128 sum = 0;\nfor (u64 c = 0; c < COPIES; ++c) sum += {read}(cells + {limb} * stride + slot * COPIES + c, stride);\n{add} }}\n"
                ));
                let add = format!("cell_add<{limbs}>(cells + {limb} * stride + cell, stride, (i128)({argument}));");
                limb += limbs;
                match feed.accumulator {
                    Accumulator::Fixed { .. } => format!(
                        "bool lost = false; {add} if (lost) atomicOr((u32*)({} + 1), {}u);",
                        names.control,
                        Retry::INEXACT
                    ),
                    _ => add,
                }
            }
        };
        match &feed.valid {
            Some(valid) => update.push_str(&format!("if ({valid}) {{ {step} }}\n")),
            None => update.push_str(&format!("{{ {step} }}\n")),
        }
    }
    let statements =
        format!("{statements}u64 slot;\n{slot}const u64 cell = slot * COPIES + threadIdx.x % COPIES;\n{update}");
    let loop_ = striding_body(head, items, prologue, &statements);
    format!(
        "WF_DYNAMIC_SHARED(dynamic);\nconstexpr u64 COPIES = {copies};\n\
         const u64 slots = {slots};\nconst u64 stride = slots * COPIES;\n\
         u64* const extrema = (u64*)dynamic;\nu32* const cells = (u32*)(extrema + {extremum} * stride);\n\
         {clear}for (u64 i = threadIdx.x; i < stride * {limb}; i += THREADS) cells[i] = 0;\n\
         __syncthreads();  // cells are fresh\n\
         {loop_}\
         __syncthreads();  // all rows are in\n\
         for (u64 slot = threadIdx.x; slot < slots; slot += THREADS) {{\n\
         u32 any = 0;\nfor (u64 c = 0; c < COPIES; ++c) any |= cells[slot * COPIES + c];\n\
         if (any != 0) {{\n{seen}[slot] = 1;\n{flush}}}\n}}\n",
        slots = names.slots,
        seen = cells.seen,
    )
}

/// Kernel for many groups: atomics on global slots. Values are computed first, then the warp meets again, then all
/// atomics follow: lanes leave a probe loop at different times.
#[allow(clippy::too_many_arguments)]
fn atomics_body(
    feeds: &[Feed],
    names: &Names<'_>,
    extra: &Extra<'_>,
    head: &str,
    items: u32,
    prologue: &str,
    statements: &str,
    slot: &str,
) -> String {
    let mut declare = String::new();
    let mut assign = String::new();
    let mut update = String::new();
    for (i, feed) in feeds.iter().enumerate() {
        if matches!(feed.accumulator, Accumulator::Row) || matches!(feed.accumulator, Accumulator::Float) {
            continue;
        }
        let (ctype, argument) = argument(feed, &names.exponents[i]);
        let target = &names.accumulators[i];
        let step = match feed.accumulator {
            Accumulator::Count => format!("atomicAdd({target} + slot, 1ull);"),
            Accumulator::Sum64 => format!("atomicAdd({target} + slot, (u64)x{i});"),
            Accumulator::Sum128 | Accumulator::Fixed { .. } => format!("atomic_add_i128({target} + 2 * slot, x{i});"),
            Accumulator::Least => format!("atomic_min({target} + slot, x{i});"),
            _ => format!("atomic_max({target} + slot, x{i});"),
        };
        if !matches!(feed.accumulator, Accumulator::Count) {
            declare.push_str(&format!("{ctype} x{i} = 0;\n"));
            assign.push_str(&match &feed.valid {
                Some(valid) => format!("if ({valid}) x{i} = {argument};\n"),
                None => format!("x{i} = {argument};\n"),
            });
        }
        match &feed.valid {
            Some(valid) => {
                declare.push_str(&format!("bool f{i} = false;\n"));
                assign.push_str(&format!("f{i} = {valid};\n"));
                update.push_str(&format!("if (f{i}) {step}\n"));
            }
            None => update.push_str(&format!("{step}\n")),
        }
    }
    if let Some(seen) = extra.seen {
        update.push_str(&format!("if ({seen}[slot] == 0) {seen}[slot] = 1;\n"));
    }
    if let Some(row_slots) = extra.row_slots {
        update.push_str(&format!("{row_slots}[row] = (u32)slot;\n"));
    }
    if let Some(first) = extra.first_rows {
        update.push_str(&format!("if ((u32)row < {first}[slot]) atomicMin({first} + slot, (u32)row);\n"));
    }
    // Once the table is full the result is void, and every further row would probe in vain.
    let flag = format!("load_relaxed((u32*)({} + 1))", names.control);
    let give_up = format!("if (__any_sync(FULL_WARP, ({flag} & {}u) != 0)) break;\n", Retry::TABLE_FULL);
    format!(
        "constexpr int ITEMS = {items};\n{head}\
         const u64 tiles = (rows + (u64)ITEMS * THREADS - 1) / ((u64)ITEMS * THREADS);\n\
         for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {{\n\
         #define ROW(k) (tile * ((u64)ITEMS * THREADS) + (u64)(k) * THREADS + threadIdx.x)\n\
         {give_up}{prologue}\
         #pragma unroll\n\
         for (int k = 0; k < ITEMS; ++k) {{\nconst u64 row = ROW(k);\nu64 slot = HASH_NONE;\nbool lost = false;\n{declare}\
         if (row < rows) do {{\n{statements}{assign}{slot}}} while (0);\n\
         __syncwarp(FULL_WARP);\n\
         if (slot != HASH_NONE) {{\n{update}}}\n\
         if (lost) atomicOr((u32*)({control} + 1), {inexact}u);\n}}\n}}\n",
        control = names.control,
        inexact = Retry::INEXACT,
    )
}
