//! The physical plan: what the executor runs, the rehearsal compiles and EXPLAIN prints.
//!
//! ```text
//!   SELECT d, sum(x) FROM t JOIN u ON t.k = u.k WHERE u.y > 1 GROUP BY d ORDER BY d
//!
//!   pipeline 0   scan u, filter u.y > 1                       hands its rows to the join
//!   pipeline 1   scan t, join with pipeline 0, project d, x   ends in an aggregation
//!   pipeline 2   the groups of pipeline 1                     ends in a sort; it yields the result
//! ```
//!
//! A pipeline brings rows from its input through its stages to its sink. Its stages run in one
//! kernel with its sink, where the executor can arrange that. Pipelines form a directed acyclic
//! graph: each reads those before it, and one that stands in the query several times runs once.
//!
//! The plan says what is to be done. Strategies that depend on row counts stay with the executor:
//! which side of a join is built, by partitions or not, how rows are grouped and sorted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::logical_expr::expr::GroupingSet;
use datafusion::logical_expr::{Expr, Join, SortExpr, TableScan, Unnest, Values};

use super::aggregates::DeviceAggregate;
use super::window::WindowCall;

/// What runs on the device from end to end.
#[derive(Debug)]
pub(crate) struct PhysicalPlan {
    /// Each reads only pipelines before it. The last yields the result.
    pub(super) pipelines: Vec<Pipeline>,
    /// The schema of the result, whose columns have the names that the query gives them.
    pub(super) schema: DFSchemaRef,
    /// Trees of inner joins that run in another order than the query's.
    pub(super) reordered: usize,
    /// Somebody ran it.
    pub(super) ran: AtomicBool,
}

impl PhysicalPlan {
    /// A plan without pipelines.
    pub(crate) fn none() -> PhysicalPlan {
        let schema = Arc::new(DFSchema::empty());
        PhysicalPlan { pipelines: vec![], schema, reordered: 0, ran: true.into() }
    }

    /// A pipeline by its number.
    pub(crate) fn pipeline(&self, number: usize) -> &Pipeline {
        &self.pipelines[number]
    }

    /// The number of the pipeline that yields the result.
    pub(crate) fn last(&self) -> usize {
        self.pipelines.len() - 1
    }

    pub(crate) fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    /// Whether this is asked for the first time: then its kernels may have to be compiled.
    pub(crate) fn is_new(&self) -> bool {
        !self.ran.swap(true, Relaxed)
    }
}

/// Rows from an input through stages to a sink.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) input: PipelineInput,
    pub(crate) stages: Vec<PipelineStage>,
    pub(crate) sink: PipelineSink,
    /// How many pipelines, unions and joins read it: once for each.
    pub(crate) readers: usize,
    /// Rows that are expected to come out of its sink, where EXPLAIN asked.
    pub(super) rows: Option<f64>,
    /// How its input, a table, and its sink would be divided, where EXPLAIN asked.
    pub(super) input_division: Option<String>,
    pub(super) sink_division: Option<String>,
}

/// Where the rows of a pipeline come from.
#[derive(Debug)]
pub(crate) enum PipelineInput {
    /// A table. Its columns, and the filters that come first, are the scan's.
    Scan(Box<TableScan>),
    /// What the sink of another pipeline yields.
    Pipeline(usize),
    /// The rows of several pipelines, one after another.
    Union(Vec<usize>, DFSchemaRef),
    Values(Values),
    /// No rows, or one row without columns.
    Empty {
        one_row: bool,
        schema: DFSchemaRef,
    },
}

/// What happens to rows on their way.
#[derive(Debug)]
pub(crate) enum PipelineStage {
    /// Keeps the rows for which it is true.
    Filter(Expr),
    /// Replaces the columns by expressions over them.
    Project(Vec<Expr>, DFSchemaRef),
    /// Gives the columns other names.
    Rename(DFSchemaRef),
    Join(Box<PipelineJoin>),
}

/// A join of the rows so far, its left side, with those of another pipeline.
#[derive(Debug)]
pub(crate) struct PipelineJoin {
    /// Its inputs are the pipelines'.
    pub(crate) join: Join,
    /// The pipeline of the right side.
    pub(crate) right: usize,
    /// All expressions that read its columns, where that is known.
    pub(crate) readers: Option<Vec<Expr>>,
    /// Rows that are expected to come out, and how it would be divided, where EXPLAIN asked.
    pub(super) rows: Option<f64>,
    pub(super) division: Option<String>,
}

/// What needs all rows of a pipeline.
#[derive(Debug)]
pub(crate) enum PipelineSink {
    /// Nothing: who reads the pipeline goes on with its rows.
    Rows,
    Aggregate(Box<Aggregation>),
    Distinct,
    Sort {
        keys: Vec<SortExpr>,
        fetch: Option<usize>,
    },
    Limit {
        skip: u64,
        fetch: Option<u64>,
    },
    /// Windows over windows, the lowest first.
    Windows(Vec<WindowCalls>),
    Unnest(Unnest),
}

/// Groups, and aggregates of each.
#[derive(Debug)]
pub(crate) struct Aggregation {
    pub(crate) keys: GroupKeys,
    pub(crate) calls: Vec<DeviceAggregate>,
    pub(crate) schema: DFSchemaRef,
}

/// What the rows of a group have in common.
#[derive(Debug)]
pub(crate) enum GroupKeys {
    Exprs(Vec<Expr>),
    /// Rows are grouped by each of these.
    Sets(GroupingSet),
}

impl Aggregation {
    pub(super) fn new(keys: GroupKeys, calls: Vec<DeviceAggregate>, schema: DFSchemaRef) -> Self {
        Aggregation { keys, calls, schema }
    }
}

/// Window calls over one input.
#[derive(Debug)]
pub(crate) struct WindowCalls {
    pub(crate) calls: Vec<WindowCall>,
    /// The columns of the input, then those of the calls.
    pub(crate) schema: DFSchemaRef,
}
