//! The sinks that aggregate. Which one, the keys decide (their range, or how many groups a sample
//! shows):
//!
//! | groups | sink | |
//! |---|---|---|
//! | no keys | registers, combined in a fixed order | `registers.rs` |
//! | few | cells in shared memory, numbered by the key or by a hash table there | `cells.rs` |
//! | many, of many rows | rows are partitioned by key, then cells | `partitioned.rs` |
//! | else, or numbered by keys that come in order | atomics on slots in global memory, likewise | `atomics.rs` |
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
mod attempt;
mod best_row;
mod cells;
mod expected;
mod inputs;
mod kernel;
mod partitioned;
mod registers;
mod sample;
mod sink;
mod target;

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

use super::arena::Arena;
use super::control::Retry;
use super::emit::Emitter;
use super::flow::{Flow, FlowSource};
use super::generator::{Generator, Pass};
use super::groups::GroupSlots;
use super::keys::{KeyLayout, NullKeys};
use crate::column::Relation;
use crate::error::Result;
use attempt::Tried;
use expected::Expected;
use target::Request;
use warpframe_device::{Buffer, Device};

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
}

/// Result of [`aggregate`].
pub(crate) enum Attempt {
    Done(Box<Partial>),
    NeedsColumns,
    /// A float sum lost bits: again with [`FloatSums::Ordered`].
    Inexact,
}

/// A dense domain up to this indexes slots directly whatever the number of rows.
const SMALL_DOMAIN: u64 = 1 << 16;
/// A larger one has at most so many slots for a row of the source, and so many in all: slots that
/// rows meet in any order are read and written at random.
const SLOTS_OF_ROW: u64 = 4;
const MOST_SLOTS: u64 = 1 << 28;
/// Slots that rows meet in order are at most one for a row, and so many in all.
const MOST_SLOTS_IN_ORDER: u64 = 1 << 31;

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
        let request = Request { device, flow, groups, calls, manner, expected: &expected };
        match request.attempt()? {
            Tried::WantsSample => {
                expected = sample::learn(device, flow, groups, manner.collisions)?
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

/// Whether rows come in the order of the first key: those of a group stand near each other, and so
/// do slots that keys number.
fn in_key_order(flow: &Flow, groups: &[Expr]) -> bool {
    groups.first().is_some_and(|first| flow.is_in_order_of(first))
}

/// The number of slots, where the key of a row numbers its slot, in whatever order rows come.
fn direct_domain(layout: &KeyLayout, flow: &Flow) -> Option<u64> {
    let in_any_order = flow.source.rows().saturating_mul(SLOTS_OF_ROW).min(MOST_SLOTS);
    layout.dense_domain(SMALL_DOMAIN.max(in_any_order))
}

/// As [`direct_domain`], or more slots, of rows that come in the order of the first key.
fn direct_domain_in_order(layout: &KeyLayout, flow: &Flow, groups: &[Expr]) -> Option<u64> {
    let in_order = || layout.dense_domain(flow.source.rows().min(MOST_SLOTS_IN_ORDER));
    direct_domain(layout, flow).or_else(|| in_key_order(flow, groups).then(in_order).flatten())
}

/// The number of slots, where [`aggregate`] numbers them by the keys themselves
/// (`GroupKeyStorage::Slot`) in whatever order rows come.
pub(crate) fn slots_by_keys(device: &Device, flow: &Flow, groups: &[Expr]) -> Result<Option<u64>> {
    let (mut generator, mut out) = (Generator::new(flow), Emitter::default());
    generator.stages(Pass::Decide, &mut out)?;
    let keys = groups.iter().map(|g| generator.expr(g, &mut out)).collect::<Result<Vec<_>>>()?;
    let layout = KeyLayout::of(&keys, NullKeys::Equal, true, device.secret(0));
    Ok(direct_domain(&layout, flow))
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
