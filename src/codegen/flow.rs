//! A pipeline before it becomes code: where rows come from, and what happens to each on the way to
//! the sink.

mod origin;

use std::sync::Arc;

use datafusion::common::{Column as Name, DFSchemaRef};
use datafusion::logical_expr::Expr;

use super::groups::GroupSlots;
use super::keys::KeyLayout;
use super::selectivity::selectivity;
use crate::column::{EqualSteps, Facts, Relation};
pub(crate) use origin::SideColumn;
use warpframe_device::Buffer;
use warpframe_device::ops::join::JoinTable;

/// Where a pipeline's rows come from.
#[derive(Debug, Clone)]
pub(crate) enum FlowSource {
    /// Columns in device memory, perhaps seen through row numbers.
    Relation(Relation),
    /// The occupied slots of an aggregation; its columns are group keys, then aggregates.
    Groups(Arc<GroupSlots>),
    /// A column of integers that kernels compute and no memory holds.
    EqualSteps(EqualSteps),
}

impl FlowSource {
    /// Rows of the source: an upper bound of the rows that come out.
    pub(crate) fn rows(&self) -> u64 {
        match self {
            FlowSource::Relation(relation) => relation.rows,
            FlowSource::Groups(groups) => groups.slots,
            FlowSource::EqualSteps(steps) => steps.rows,
        }
    }

    /// The first of its rows; `None` of slots, which have no order.
    pub(crate) fn first(&self, rows: u64) -> Option<FlowSource> {
        match self {
            FlowSource::Relation(relation) => {
                Some(FlowSource::Relation(relation.slice(0, Some(rows))))
            }
            FlowSource::EqualSteps(steps) => {
                Some(FlowSource::EqualSteps(steps.slice(0..rows.min(steps.rows))))
            }
            FlowSource::Groups(_) => None,
        }
    }

    /// Whether some of these rows hold nothing: slots without a group.
    fn is_sparse(&self) -> bool {
        match self {
            FlowSource::Relation(_) | FlowSource::EqualSteps(_) => false,
            FlowSource::Groups(groups) => groups.is_sparse(),
        }
    }
}

/// One fused stage.
#[derive(Debug, Clone)]
pub(crate) enum FlowStage {
    /// Keeps the rows for which the predicate (over the schema so far) is true.
    Filter(Expr),
    /// Replaces the columns by expressions over the schema so far.
    Project(Vec<Expr>),
    /// Compares each row with the build side of a join. [`Keep`] says which rows go on.
    Probe(Arc<Probe>),
}

impl FlowStage {
    /// Whether the step may drop rows.
    fn drops_rows(&self) -> bool {
        match self {
            FlowStage::Filter(_) => true,
            FlowStage::Project(_) => false,
            FlowStage::Probe(probe) => !probe.keeps_all(),
        }
    }
}

/// The build side of a join, ready to be compared with rows.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) candidates: Candidates,
    /// The rows that the candidates number. Its columns may be missing if only existence counts.
    pub(crate) build: Relation,
    pub(crate) place: BuildSide,
    pub(crate) keep: Keep,
    /// The conditions of a match besides equal keys.
    pub(crate) residual: Option<Residual>,
    /// Every row is known to have a match.
    pub(crate) total: bool,
    /// For each column of the build side, the position of the key that it is, if it is one. The
    /// probe's key is then used in its place, and the column is never read.
    pub(crate) keys_of: Vec<Option<usize>>,
}

/// Which build rows may match a row.
#[derive(Debug)]
pub(crate) enum Candidates {
    /// The rows with the same key. Key expressions are over the schema before the probe.
    Keyed { table: Box<JoinTable>, layout: KeyLayout, keys: Vec<Expr>, records: Option<Records> },
    /// Any row with the same key, if only existence counts. `seen` has a byte for each key of the
    /// layout.
    Seen { seen: Arc<Buffer>, domain: u64, layout: KeyLayout, keys: Vec<Expr> },
    /// All build rows.
    Every,
}

/// Columns of a build side that lie side by side, row by row.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    /// Bytes from one row to the next, a multiple of each column's width.
    pub(crate) bytes: usize,
    /// For each column of the build side, whether the records hold it.
    pub(crate) held: Vec<bool>,
}

/// Conditions of a join over the columns of both sides, left before right.
#[derive(Debug, Clone)]
pub(crate) struct Residual {
    pub(crate) conjuncts: Vec<Expr>,
    pub(crate) schema: DFSchemaRef,
}

/// Which rows go on after a probe, and with what.
#[derive(Debug, Clone)]
pub(crate) enum Keep {
    /// Rows with a match, of which there is at most one, with the match's columns.
    Matched,
    /// All rows, with the columns of the match, of which there is at most one. The columns are null
    /// if there is none.
    All,
    /// Rows with a match, without its columns.
    Semi,
    /// Rows without a match.
    Anti,
    /// Rows for which SQL's `NOT IN` is true. If there is any build row, no key may be null.
    NotIn {
        /// A word that is not zero if a build key is null. `None` if no build key can be null.
        null_seen: Option<Arc<Buffer>>,
    },
    /// All rows, with one more column behind the others that says whether there is a match.
    Mark,
}

/// Keys often leave out most numbers of their range. One number in this many is assumed to occur.
const SPARSE: f64 = 4.0;

impl Probe {
    /// Estimate of the share of rows that go on.
    fn selectivity(&self) -> f64 {
        match (&self.keep, &self.candidates) {
            (Keep::All | Keep::Mark, _) => 1.0,
            // A range is that of the whole column, so that rows which were filtered out of the
            // build side lower the share.
            (Keep::Matched, Candidates::Keyed { layout, .. }) => layout
                .domain
                .map_or(1.0, |domain| (SPARSE * self.build.rows as f64 / domain as f64).min(1.0)),
            (Keep::Matched, _) => 1.0,
            (Keep::Semi | Keep::Anti | Keep::NotIn { .. }, _) => 0.5,
        }
    }

    /// Whether every row goes on.
    pub(crate) fn keeps_all(&self) -> bool {
        match self.keep {
            Keep::All | Keep::Mark => true,
            Keep::Matched => self.total,
            Keep::Semi | Keep::Anti | Keep::NotIn { .. } => false,
        }
    }

    /// The probe's key that equals the build side's column, if the column is one of the keys.
    pub(crate) fn key_of(&self, column: usize) -> Option<&Expr> {
        match &self.candidates {
            Candidates::Keyed { keys, .. } => {
                self.keys_of.get(column).copied().flatten().map(|key| &keys[key])
            }
            _ => None,
        }
    }

    /// Whether no row has two candidates.
    pub(crate) fn at_most_one(&self) -> bool {
        match &self.candidates {
            Candidates::Keyed { table, .. } => table.unique,
            Candidates::Seen { .. } => false,
            Candidates::Every => self.build.rows <= 1,
        }
    }
}

/// Where a join puts its build columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuildSide {
    /// Before the probe's columns.
    Left,
    /// After them.
    Right,
}

/// A pipeline without its sink.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    pub(crate) source: FlowSource,
    /// The schema of the source's columns.
    pub(crate) source_schema: DFSchemaRef,
    /// Stages in order, each with the schema after it.
    pub(crate) steps: Vec<(FlowStage, DFSchemaRef)>,
    /// Estimate of the rows that come out.
    pub(crate) estimate: f64,
}

impl Flow {
    pub(crate) fn new(source: FlowSource, schema: DFSchemaRef) -> Self {
        let estimate = match &source {
            FlowSource::Relation(relation) => relation.rows,
            // A hash table has more slots than groups.
            FlowSource::Groups(groups) => groups.slots.min(groups.rows),
            FlowSource::EqualSteps(steps) => steps.rows,
        } as f64;
        Flow { source, source_schema: schema, steps: vec![], estimate }
    }

    /// The schema of what comes out.
    pub(crate) fn schema(&self) -> &DFSchemaRef {
        self.steps.last().map_or(&self.source_schema, |(_, schema)| schema)
    }

    /// Whether rows may get lost between source and sink.
    pub(crate) fn drops_rows(&self) -> bool {
        self.source.is_sparse() || self.steps.iter().any(|(step, _)| step.drops_rows())
    }

    /// Whether the flow has a relation as its source and, for a row that is kept, computes from the
    /// source's columns alone. Then a second kernel can compute the kept rows without repeating a
    /// lookup.
    pub(crate) fn only_filters(&self) -> bool {
        matches!(self.source, FlowSource::Relation(_))
            && self.steps.iter().all(|(step, _)| match step {
                FlowStage::Filter(_) | FlowStage::Project(_) => true,
                FlowStage::Probe(probe) => {
                    matches!(probe.keep, Keep::Semi | Keep::Anti | Keep::NotIn { .. })
                }
            })
    }

    /// Whether the flow has a relation as its source and drops rows only where an inner join finds
    /// no match. Then it may well drop none.
    pub(crate) fn only_inner_joins(&self) -> bool {
        matches!(self.source, FlowSource::Relation(_))
            && self.drops_rows()
            && self.steps.iter().all(|(step, _)| match step {
                FlowStage::Filter(_) => false,
                FlowStage::Project(_) => true,
                FlowStage::Probe(probe) => {
                    matches!(probe.keep, Keep::Matched | Keep::All | Keep::Mark)
                }
            })
    }

    /// Estimate of the rows that come out, between 1 (0 of an empty source) and the rows of the
    /// source.
    pub(crate) fn expected_rows(&self) -> u64 {
        let rows = self.source.rows();
        (self.estimate as u64).clamp(rows.min(1), rows)
    }

    /// Appends a filter.
    pub(crate) fn filter(mut self, predicate: Expr) -> Self {
        let schema = self.schema().clone();
        let facts = |name: &Name| {
            let (_, column) = self.origin(schema.index_of_column(name).ok()?)?;
            Some(Facts::of(&column))
        };
        self.estimate *= selectivity(&predicate, &facts);
        self.steps.push((FlowStage::Filter(predicate), schema));
        self
    }

    /// Appends a projection.
    pub(crate) fn project(mut self, exprs: Vec<Expr>, schema: DFSchemaRef) -> Self {
        self.steps.push((FlowStage::Project(exprs), schema));
        self
    }

    /// Appends a comparison with the build side of a join.
    pub(crate) fn probe(mut self, probe: Probe, schema: DFSchemaRef) -> Self {
        self.estimate *= probe.selectivity();
        self.steps.push((FlowStage::Probe(Arc::new(probe)), schema));
        self
    }

    /// Renames the columns to those of `schema`.
    pub(crate) fn renamed(mut self, schema: DFSchemaRef) -> Self {
        match self.steps.last_mut() {
            Some((_, last)) => *last = schema,
            None => self.source_schema = schema,
        }
        self
    }
}
