//! How a plan is divided that does not fit into device memory: a value, which follows from the
//! plan, from what is known of its tables, and from the memory that there is.
//!
//! [`decide`] makes it before anything runs. The divider (`exec/divide.rs`) carries it out, and
//! EXPLAIN prints it. Where rows turn out to be more than was expected, the divider makes parts
//! smaller; where no side of a join fits, it goes on with [`DividedJoin::otherwise`].

use std::collections::HashMap;
use std::fmt;

use datafusion::common::JoinType;
use datafusion::logical_expr::{Aggregate, Expr, Join, LogicalPlan, Sort, TableScan, Window};

use super::budget::Budget;
use super::estimate::estimate;
use super::partial::{PartialAggregate, by_distinct_values};
use super::ranks::by_ranks;
use super::tables::PlanTable;
use super::two_steps::TwoSteps;
use crate::column::row_bytes;
use crate::error::{Error, Result};

/// Parts where nobody knows how many rows there are.
const UNKNOWN_PARTS: u32 = 16;
/// Fewest and most parts that rows are parted into at once.
const LEAST_PARTS: u64 = 2;
const MOST_PARTS: u64 = 256;
/// Parts of partial results that are too many to be merged at once.
pub(crate) const PARTIAL_PARTS: u32 = 32;

/// The division of a plan.
#[derive(Debug, Clone)]
pub(crate) struct Division {
    pub(crate) root: DividedOperator,
    /// The seed of the hashes by which rows are parted: all who run parts of the plan share it.
    pub(crate) seed: u64,
}

/// The division of an operator, and of those that it takes rows from.
#[derive(Debug, Clone)]
pub(crate) struct DividedOperator {
    pub(crate) way: Way,
    inputs: Vec<DividedOperator>,
}

/// How an operator is divided.
#[derive(Debug, Clone)]
pub(crate) enum Way {
    /// It takes rows one by one: it is a part of the plan that runs over each part of its input.
    RowByRow,
    /// A table's rows come in chunks.
    Chunks {
        /// What its columns take, where that is known.
        bytes: Option<u64>,
        chunk: u64,
    },
    /// Partial results of each part are merged.
    TwoSteps {
        steps: TwoSteps,
        /// They are expected to be so many that they are parted by a hash of their keys.
        parted: bool,
        /// What the merged results are expected to take.
        bytes: Option<u64>,
    },
    /// An aggregation over distinct values is two aggregations, which are divided instead.
    DistinctFirst(Box<(LogicalPlan, DividedOperator)>),
    /// It takes all rows of equal keys at once: they are parted by a hash of these.
    ByKeys {
        keys: Vec<Expr>,
        parts: u32,
    },
    /// It takes all rows at once.
    AllRows(AllRows),
    /// A window whose rows are sorted, and go by in that order.
    InOrder,
    Join(DividedJoin),
    /// Rows are parted by ranges of the key.
    Ranges {
        /// How many are expected; fewer than two where one will do.
        expected: Option<u64>,
    },
    /// The first rows, of which no more are asked for.
    First,
}

/// What becomes of an operator that takes all rows at once, where they do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllRows {
    /// There is no other way.
    Alone,
    /// Windows over rows that are sorted, and go by in that order.
    OrInOrder,
    /// The rows that decide are found by their ranks.
    OrByRanks,
}

/// How a join is divided.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DividedJoin {
    /// Sides that may stand whole beside each part of the other, the first one first, as far as
    /// they fit.
    pub(crate) sides: Vec<JoinSide>,
    /// Bytes of both sides, where they are known.
    pub(crate) bytes: (Option<u64>, Option<u64>),
    /// The one of these that is expected to fit.
    likely: Option<JoinSide>,
    /// Where none fits.
    pub(crate) otherwise: JoinWay,
}

/// A side of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinSide {
    Left,
    Right,
}

/// How a join is divided of which neither side fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinWay {
    /// Both sides are parted by a hash of their keys.
    Hash { parts: u32 },
    /// Chunks of one side meet the other block by block.
    Blocks,
    /// NOT IN (…): an anti join, once it is known that the list has no null.
    NotIn { parts: u32 },
    /// There is none.
    Refused,
}

/// Whoever knows what divisions follow from.
pub(crate) trait Divides {
    /// How a plan would be divided, whose joins are in order.
    ///
    /// # Errors
    /// Of the plan.
    fn division(&self, plan: &LogicalPlan) -> Result<Division>;
}

/// What a division follows from, beside the plan.
pub(crate) trait DivisionFacts {
    /// The tables that placeholders stand for.
    fn tables(&self) -> &[PlanTable];
    fn budget(&self) -> &Budget;
    /// The seed of the hashes by which rows are parted.
    fn seed(&self) -> u64;
    /// Bytes that the columns of a scan take, where that is known.
    fn scan_bytes(&self, scan: &TableScan) -> Option<u64>;
    /// Whether a window's calls can be learned of rows that go by in order.
    fn goes_in_order(&self, window: &Window) -> bool;
    /// Windows take their rows in order, without a try whether partitions fit.
    fn windows_in_order(&self) -> bool;
}

/// How a plan is divided.
///
/// # Errors
/// Of the plan.
pub(crate) fn decide(plan: &LogicalPlan, facts: &dyn DivisionFacts) -> Result<Division> {
    Ok(Division { root: of_operator(plan, facts)?, seed: facts.seed() })
}

fn of_operator(plan: &LogicalPlan, facts: &dyn DivisionFacts) -> Result<DividedOperator> {
    let inputs = plan.inputs();
    let inputs =
        inputs.into_iter().map(|input| of_operator(input, facts)).collect::<Result<_>>()?;
    let way = match plan {
        LogicalPlan::TableScan(scan) => {
            Way::Chunks { bytes: facts.scan_bytes(scan), chunk: facts.budget().chunk.max(1) }
        }
        LogicalPlan::Join(join) => Way::Join(DividedJoin::of(join, facts)),
        LogicalPlan::Aggregate(aggregate) => of_aggregate(plan, aggregate, facts)?,
        LogicalPlan::Distinct(_) => in_two_steps(plan, TwoSteps::Distinct, facts),
        LogicalPlan::Sort(sort) => of_sort(plan, sort, facts),
        LogicalPlan::Window(window) => of_window(window, facts),
        LogicalPlan::Limit(_) => Way::First,
        _ => Way::RowByRow,
    };
    Ok(DividedOperator { way, inputs })
}

impl Division {
    /// How each operator of the plan that this is of is divided; see [`Way::text`].
    pub(super) fn texts(&self, plan: &LogicalPlan) -> DivisionTexts {
        let mut texts = HashMap::new();
        self.root.collect(plan, &mut texts);
        DivisionTexts(texts)
    }
}

impl DividedOperator {
    /// The division of an input of the operator.
    ///
    /// # Errors
    /// `Internal` where there is no such input.
    pub(crate) fn input(&self, number: usize) -> Result<&DividedOperator> {
        let input = self.inputs.get(number);
        input.ok_or_else(|| Error::internal("a division of another plan"))
    }

    fn collect(&self, plan: &LogicalPlan, texts: &mut HashMap<usize, String>) {
        if let Some(text) = self.way.text() {
            texts.insert(address(plan), text);
        }
        for (input, division) in plan.inputs().into_iter().zip(&self.inputs) {
            division.collect(input, texts);
        }
    }
}

/// How operators of a plan are divided, in words.
#[derive(Debug)]
pub(super) struct DivisionTexts(HashMap<usize, String>);

impl DivisionTexts {
    /// How an operator of the plan is divided, where there is something to say.
    pub(super) fn of(&self, operator: &LogicalPlan) -> Option<String> {
        self.0.get(&address(operator)).cloned()
    }
}

/// What tells the operators of one plan apart: each has its place in memory.
fn address(plan: &LogicalPlan) -> usize {
    std::ptr::from_ref(plan).addr()
}

/// Bytes that the rows of a plan are expected to take on the device.
fn expected_bytes(plan: &LogicalPlan, facts: &dyn DivisionFacts) -> Option<u64> {
    let rows = estimate(plan, facts.tables())?.rows;
    Some((rows * row_bytes(plan.schema().as_arrow()) as f64) as u64)
}

fn in_two_steps(plan: &LogicalPlan, steps: TwoSteps, facts: &dyn DivisionFacts) -> Way {
    let has_keys = steps.has_keys();
    let is_large = |bytes: u64| bytes > facts.budget().stored;
    let bytes = expected_bytes(plan, facts);
    let parted = has_keys && bytes.is_some_and(is_large);
    Way::TwoSteps { steps, parted, bytes }
}

fn of_aggregate(
    plan: &LogicalPlan,
    aggregate: &Aggregate,
    facts: &dyn DivisionFacts,
) -> Result<Way> {
    if let Some(partial) = PartialAggregate::of(aggregate) {
        return Ok(in_two_steps(plan, TwoSteps::Aggregate(Box::new(partial)), facts));
    }
    if let Some(plan) = by_distinct_values(aggregate)? {
        let division = of_operator(&plan, facts)?;
        return Ok(Way::DistinctFirst(Box::new((plan, division))));
    }
    Ok(match aggregate.group_expr.as_slice() {
        [] if by_ranks(aggregate)?.is_some() => Way::AllRows(AllRows::OrByRanks),
        [] | [Expr::GroupingSet(_)] => Way::AllRows(AllRows::Alone),
        keys => by_keys(&aggregate.input, keys.to_vec(), facts),
    })
}

fn of_window(window: &Window, facts: &dyn DivisionFacts) -> Way {
    if facts.windows_in_order() {
        return Way::InOrder;
    }
    let keys = common_partition(&window.window_expr);
    match keys.is_empty() {
        true if facts.goes_in_order(window) => Way::AllRows(AllRows::OrInOrder),
        true => Way::AllRows(AllRows::Alone),
        false => by_keys(&window.input, keys, facts),
    }
}

fn by_keys(input: &LogicalPlan, keys: Vec<Expr>, facts: &dyn DivisionFacts) -> Way {
    Way::ByKeys { keys, parts: parts_of(facts.budget(), expected_bytes(input, facts)) }
}

fn of_sort(plan: &LogicalPlan, sort: &Sort, facts: &dyn DivisionFacts) -> Way {
    let each = row_bytes(sort.input.schema().as_arrow());
    if let Some(fetch) = sort.fetch
        && fetch as u64 * each <= facts.budget().stored
    {
        return in_two_steps(plan, TwoSteps::Top { keys: sort.expr.clone(), fetch }, facts);
    }
    let bytes = expected_bytes(&sort.input, facts);
    Way::Ranges { expected: bytes.map(|bytes| ranges_of(facts.budget(), bytes)) }
}

/// Into how many ranges rows of so many bytes are parted for a sort.
pub(crate) fn ranges_of(budget: &Budget, bytes: u64) -> u64 {
    bytes / budget.part.max(1) * 2
}

/// Into how many parts rows of so many bytes are parted.
pub(crate) fn parts_of(budget: &Budget, bytes: Option<u64>) -> u32 {
    match bytes {
        Some(bytes) => (bytes / budget.part.max(1) + 1)
            .next_power_of_two()
            .clamp(LEAST_PARTS, MOST_PARTS) as u32,
        None => UNKNOWN_PARTS,
    }
}

impl DividedJoin {
    fn of(join: &Join, facts: &dyn DivisionFacts) -> DividedJoin {
        let budget = facts.budget();
        let bytes = (expected_bytes(&join.left, facts), expected_bytes(&join.right, facts));
        // The side that is expected to be smaller first.
        let mut sides = vec![JoinSide::Left, JoinSide::Right];
        if bytes.1.unwrap_or(0) <= bytes.0.unwrap_or(u64::MAX) {
            sides.reverse();
        }
        // Nobody knows better where the rows are unknown; what is far too large is not tried.
        let of = |side: JoinSide| side.of(bytes);
        let hopeless = |side| of(side).is_some_and(|bytes| bytes / 4 > budget.side);
        sides.retain(|side| {
            side.other().goes_by(join.join_type) && (join.on.is_empty() || !hopeless(*side))
        });
        let fits = |side: &&JoinSide| {
            let input = if **side == JoinSide::Left { &join.left } else { &join.right };
            let rows = estimate(input, facts.tables()).map(|of| of.rows);
            rows.is_some_and(|rows| rows <= budget.side_rows(join) as f64)
                && of(**side).is_some_and(|bytes| bytes <= budget.side)
        };
        let likely = sides.iter().find(fits).copied();
        let parts = parts_of(budget, bytes.0.zip(bytes.1).map(|(left, right)| left + right));
        let otherwise = match (join.on.is_empty(), join.null_aware) {
            (_, true) if join.filter.is_none() => JoinWay::NotIn { parts },
            (false, false) => JoinWay::Hash { parts },
            (true, false) if join.join_type == JoinType::Inner => JoinWay::Blocks,
            _ => JoinWay::Refused,
        };
        DividedJoin { sides, bytes, likely, otherwise }
    }
}

impl JoinSide {
    pub(crate) fn other(self) -> JoinSide {
        match self {
            JoinSide::Left => JoinSide::Right,
            JoinSide::Right => JoinSide::Left,
        }
    }

    pub(crate) fn of<T>(self, (left, right): (T, T)) -> T {
        match self {
            JoinSide::Left => left,
            JoinSide::Right => right,
        }
    }

    /// Whether this side's rows may come in chunks, beside all of the other.
    pub(crate) fn goes_by(self, of: JoinType) -> bool {
        use JoinType::*;
        match self {
            JoinSide::Left => matches!(of, Inner | Left | LeftSemi | LeftAnti | LeftMark),
            JoinSide::Right => matches!(of, Inner | Right | RightSemi | RightAnti | RightMark),
        }
    }
}

impl fmt::Display for JoinSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JoinSide::Left => "left",
            JoinSide::Right => "right",
        })
    }
}

/// The expressions by which all window calls partition their rows.
fn common_partition(calls: &[Expr]) -> Vec<Expr> {
    let of = |call: &Expr| match call.clone().unalias() {
        Expr::WindowFunction(call) => call.params.partition_by.clone(),
        _ => vec![],
    };
    let Some((first, more)) = calls.split_first() else { return vec![] };
    let in_all = |key: &Expr| more.iter().all(|call| of(call).contains(key));
    of(first).into_iter().filter(in_all).collect()
}

impl Way {
    /// The way in words; `None` where there is nothing to say.
    pub(crate) fn text(&self) -> Option<String> {
        Some(match self {
            Way::Chunks { bytes: Some(bytes), chunk } if bytes > chunk => {
                let chunks = bytes.div_ceil(*chunk);
                format!("chunk by chunk, some {chunks} of about {}", ByteCount(*chunk))
            }
            Way::TwoSteps { steps: TwoSteps::Top { .. }, .. } => {
                "the first rows of each chunk, then of these".into()
            }
            Way::TwoSteps { parted: true, .. } => {
                format!("partial results are parted into {PARTIAL_PARTS} parts")
            }
            Way::TwoSteps { .. } => "partial results of chunks are merged".into(),
            Way::DistinctFirst(_) => {
                "by distinct values first, of which partial results of chunks are merged".into()
            }
            Way::ByKeys { parts, .. } => {
                format!("rows are parted by a hash of their keys, into some {parts} parts")
            }
            Way::AllRows(AllRows::OrByRanks) => {
                "rows are numbered in the order of their values, where they do not fit".into()
            }
            Way::AllRows(AllRows::OrInOrder) | Way::InOrder => {
                "rows are sorted, and go by in that order".into()
            }
            Way::Ranges { expected: Some(ranges @ 2..) } => {
                format!("rows are parted by ranges of the key, some {ranges} of them")
            }
            Way::Join(join) => return join.text(),
            Way::RowByRow
            | Way::First
            | Way::Chunks { .. }
            | Way::Ranges { .. }
            | Way::AllRows(AllRows::Alone) => return None,
        })
    }
}

impl DividedJoin {
    fn text(&self) -> Option<String> {
        if let Some(side) = self.likely {
            let bytes = ByteCount(side.of(self.bytes).unwrap_or_default());
            return Some(format!(
                "its {side} side, about {bytes}, stands beside each part of the other"
            ));
        }
        match self.otherwise {
            JoinWay::Hash { parts } | JoinWay::NotIn { parts } => Some(format!(
                "both sides are parted by a hash of their keys, into some {parts} parts"
            )),
            JoinWay::Blocks => Some("the sides meet block by block".into()),
            JoinWay::Refused => None,
        }
    }
}

/// A number of bytes as a reader wants it.
pub(crate) struct ByteCount(pub(crate) u64);

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..10_000 => write!(f, "{} bytes", self.0),
            10_000..10_000_000 => write!(f, "{} KB", self.0 / 1000),
            _ => write!(f, "{} MB", self.0 / 1_000_000),
        }
    }
}
