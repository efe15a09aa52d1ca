//! A pipeline before it becomes code: where rows come from, and what happens to each on the way to the sink.

use std::sync::Arc;

use datafusion::common::DFSchemaRef;
use datafusion::logical_expr::Expr;

use super::groups::GroupSlots;
use super::keys::KeyLayout;
use crate::column::Relation;
use crate::ops::join::JoinTable;

/// Where a pipeline's rows come from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// Columns in device memory, perhaps seen through row numbers.
    Relation(Relation),
    /// The occupied slots of an aggregation; its columns are group keys, then aggregates.
    Groups(Arc<GroupSlots>),
}

impl Source {
    /// Rows to look at: an upper bound of the rows that come out.
    pub(crate) fn rows(&self) -> u64 {
        match self {
            Source::Relation(relation) => relation.rows,
            Source::Groups(groups) => groups.slots,
        }
    }

    /// Whether only some of these rows count.
    fn is_sparse(&self) -> bool {
        match self {
            Source::Relation(_) => false,
            Source::Groups(groups) => groups.is_sparse(),
        }
    }
}

/// One fused stage.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Keeps the rows for which the predicate (over the schema so far) is true.
    Filter(Expr),
    /// Replaces the columns by expressions over the schema so far.
    Project(Vec<Expr>),
    /// Looks each row up in a hash table; rows without a match end here. The build columns come in front of the
    /// columns so far or behind them.
    Probe(Arc<Probe>),
}

/// A lookup in a finished join table.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) table: JoinTable,
    /// Rows that the table's entries number.
    pub(crate) build: Relation,
    pub(crate) layout: KeyLayout,
    /// Key expressions over the schema before the probe.
    pub(crate) keys: Vec<Expr>,
    pub(crate) place: BuildSide,
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
    pub(crate) source: Source,
    /// The schema of the source's columns.
    pub(crate) source_schema: DFSchemaRef,
    /// Stages in order, each with the schema after it.
    pub(crate) steps: Vec<(Step, DFSchemaRef)>,
    /// Estimate of the rows that come out.
    pub(crate) estimate: f64,
}

impl Flow {
    pub(crate) fn new(source: Source, schema: DFSchemaRef) -> Self {
        let estimate = source.rows() as f64;
        Flow { source, source_schema: schema, steps: vec![], estimate }
    }

    /// The schema of what comes out.
    pub(crate) fn schema(&self) -> &DFSchemaRef {
        self.steps.last().map_or(&self.source_schema, |(_, schema)| schema)
    }

    /// Whether rows may get lost between source and sink.
    pub(crate) fn drops_rows(&self) -> bool {
        self.source.is_sparse() || self.steps.iter().any(|(step, _)| !matches!(step, Step::Project(_)))
    }

    /// Appends a filter.
    pub(crate) fn filter(mut self, predicate: Expr) -> Self {
        let schema = self.schema().clone();
        self.estimate *= 0.25;
        self.steps.push((Step::Filter(predicate), schema));
        self
    }

    /// Appends a projection.
    pub(crate) fn project(mut self, exprs: Vec<Expr>, schema: DFSchemaRef) -> Self {
        self.steps.push((Step::Project(exprs), schema));
        self
    }

    /// Appends a lookup.
    pub(crate) fn probe(mut self, probe: Probe, schema: DFSchemaRef) -> Self {
        self.steps.push((Step::Probe(Arc::new(probe)), schema));
        self
    }

    /// The same rows under other names.
    pub(crate) fn renamed(mut self, schema: DFSchemaRef) -> Self {
        match self.steps.last_mut() {
            Some((_, last)) => *last = schema,
            None => self.source_schema = schema,
        }
        self
    }
}
