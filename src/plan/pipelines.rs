//! From a supported logical plan to pipelines.

use std::sync::Arc;

use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, FetchType, Join, LogicalPlan, SkipType, Window,
};

use super::aggregates::device_aggregate;
use super::division::{Divides, DivisionTexts};
use super::estimate::estimate;
use super::join_order::order_joins;
use super::physical::{
    Aggregation, GroupKeys, PhysicalPlan, Pipeline, PipelineInput, PipelineJoin, PipelineSink,
    PipelineStage, WindowCalls,
};
use super::tables::{PlanTable, Reads, is_foreign};
use super::volatile::is_repeatable;
use super::window::device_window;
use crate::error::{Error, Result};

/// How pipelines are made of a plan.
#[derive(Clone, Copy)]
pub(crate) struct Planning<'a> {
    /// The tables that placeholders stand for.
    pub(crate) tables: &'a [PlanTable],
    /// Inner joins run in the order of estimated rows, not the query's.
    pub(crate) order_joins: bool,
    /// Pipelines and joins say how many rows are expected of them.
    pub(crate) estimates: bool,
    /// Of a plan that would be divided: operators say how they would be.
    pub(crate) foresight: Option<&'a dyn Divides>,
}

impl PhysicalPlan {
    /// The pipelines of a logical plan whose operators are all supported.
    ///
    /// # Errors
    /// `Unsupported` or `Internal` for an operator that `plan/support.rs` would have refused.
    pub(crate) fn of(plan: &LogicalPlan, how: Planning<'_>) -> Result<PhysicalPlan> {
        let ordered = match how.order_joins {
            true => Some(order_joins(plan.clone(), how.tables)?),
            false => None,
        };
        let reordered = ordered.as_ref().map_or(0, |ordered| ordered.changed);
        let ordered = ordered.as_ref().map_or(plan, |ordered| &ordered.plan);
        let division = how.foresight.map(|foresight| foresight.division(ordered)).transpose()?;
        let division = division.map(|division| division.texts(ordered));
        let mut builder = Builder { how, division, pipelines: vec![], known: vec![] };
        let last = builder.finished(ordered)?;
        builder.pipelines[last].readers = 1;
        let pipelines = builder.pipelines;
        Ok(PhysicalPlan { pipelines, schema: plan.schema().clone(), reordered, ran: false.into() })
    }
}

/// A pipeline that has no sink yet.
struct Open {
    input: PipelineInput,
    /// How its input would be divided.
    division: Option<String>,
    stages: Vec<PipelineStage>,
}

impl Open {
    fn of(input: PipelineInput) -> Open {
        Open { input, division: None, stages: vec![] }
    }

    fn then(mut self, stage: PipelineStage) -> Open {
        self.stages.push(stage);
        self
    }
}

struct Builder<'a> {
    how: Planning<'a>,
    division: Option<DivisionTexts>,
    pipelines: Vec<Pipeline>,
    /// Finished pipelines by what they compute.
    known: Vec<KnownPipeline<'a>>,
}

/// A subtree, and the pipeline that computes it.
struct KnownPipeline<'a> {
    reads: Reads,
    plan: &'a LogicalPlan,
    pipeline: usize,
}

impl<'a> Builder<'a> {
    /// The pipeline that yields the plan's rows.
    fn open(&mut self, plan: &'a LogicalPlan) -> Result<Open> {
        Ok(match plan {
            LogicalPlan::TableScan(scan) => {
                let mut open = Open::of(PipelineInput::Scan(Box::new(scan.clone())));
                open.division = self.divided(plan);
                // Another provider has applied its filters, or they stand above the scan, too.
                match is_foreign(scan) {
                    true => open,
                    false => scan.filters.iter().fold(open, |open, filter| {
                        open.then(PipelineStage::Filter(filter.clone()))
                    }),
                }
            }
            LogicalPlan::SubqueryAlias(alias) => {
                self.open(&alias.input)?.then(PipelineStage::Rename(alias.schema.clone()))
            }
            LogicalPlan::Projection(project) => {
                let open = match project.input.as_ref() {
                    LogicalPlan::Join(join) => {
                        self.join(&project.input, join, Some(&project.expr))?
                    }
                    input => self.open(input)?,
                };
                open.then(PipelineStage::Project(project.expr.clone(), project.schema.clone()))
            }
            LogicalPlan::Filter(filter) => {
                self.open(&filter.input)?.then(PipelineStage::Filter(filter.predicate.clone()))
            }
            LogicalPlan::Join(join) => self.join(plan, join, None)?,
            LogicalPlan::Union(union) => {
                let part = |input: &'a Arc<LogicalPlan>| {
                    let part = self.finished(input)?;
                    self.pipelines[part].readers += 1;
                    Ok(part)
                };
                let parts = union.inputs.iter().map(part).collect::<Result<_>>()?;
                Open::of(PipelineInput::Union(parts, union.schema.clone()))
            }
            LogicalPlan::Values(values) => Open::of(PipelineInput::Values(values.clone())),
            LogicalPlan::EmptyRelation(empty) => Open::of(PipelineInput::Empty {
                one_row: empty.produce_one_row,
                schema: empty.schema.clone(),
            }),
            plan => {
                let number = self.finished(plan)?;
                self.pipelines[number].readers += 1;
                Open::of(PipelineInput::Pipeline(number))
            }
        })
    }

    fn join(
        &mut self,
        plan: &'a LogicalPlan,
        join: &'a Join,
        readers: Option<&[Expr]>,
    ) -> Result<Open> {
        let left = self.open(&join.left)?;
        let right = self.finished(&join.right)?;
        self.pipelines[right].readers += 1;
        let (readers, rows) = (readers.map(<[Expr]>::to_vec), self.rows(plan));
        let division = self.divided(plan);
        Ok(left.then(PipelineStage::Join(Box::new(PipelineJoin {
            join: join.clone(),
            right,
            readers,
            rows,
            division,
        }))))
    }

    /// The number of a pipeline that yields the plan's rows.
    fn finished(&mut self, plan: &'a LogicalPlan) -> Result<usize> {
        let reads = Reads::of(plan);
        if let Some(known) =
            self.known.iter().find(|known| known.reads == reads && known.plan == plan)
            && is_repeatable(plan)
        {
            return Ok(known.pipeline);
        }
        let (input, sink) = sink(plan)?;
        let Open { input, division: input_division, stages } = self.open(input)?;
        let rows = self.rows(plan);
        let sink_division = match sink {
            // Its operators have lines of their own.
            PipelineSink::Rows => None,
            _ => self.divided(plan),
        };
        let readers = 0;
        let pipeline =
            Pipeline { input, stages, sink, readers, rows, input_division, sink_division };
        self.pipelines.push(pipeline);
        let number = self.pipelines.len() - 1;
        self.known.push(KnownPipeline { reads, plan, pipeline: number });
        Ok(number)
    }

    /// How an operator would be divided, if that is asked for.
    fn divided(&self, operator: &LogicalPlan) -> Option<String> {
        self.division.as_ref()?.of(operator)
    }

    /// Rows that are expected of a plan, if that is asked for.
    fn rows(&self, plan: &LogicalPlan) -> Option<f64> {
        self.how.estimates.then(|| Some(estimate(plan, self.how.tables)?.rows)).flatten()
    }
}

/// The sink that the operator is, if it is one, and the plan that leads to it.
fn sink(plan: &LogicalPlan) -> Result<(&LogicalPlan, PipelineSink)> {
    Ok(match plan {
        LogicalPlan::Aggregate(aggregate) => {
            (&aggregate.input, PipelineSink::Aggregate(Box::new(aggregation(aggregate)?)))
        }
        LogicalPlan::Distinct(Distinct::All(input)) => (input, PipelineSink::Distinct),
        LogicalPlan::Sort(sort) => {
            (&sort.input, PipelineSink::Sort { keys: sort.expr.clone(), fetch: sort.fetch })
        }
        LogicalPlan::Limit(limit) => match (limit.get_skip_type()?, limit.get_fetch_type()?) {
            (SkipType::Literal(skip), FetchType::Literal(fetch)) => (
                &limit.input,
                PipelineSink::Limit { skip: skip as u64, fetch: fetch.map(|fetch| fetch as u64) },
            ),
            _ => return Err(Error::unsupported("LIMIT", "its count is not a constant")),
        },
        LogicalPlan::Window(window) => windows(window)?,
        LogicalPlan::Unnest(unnest) => (&unnest.input, PipelineSink::Unnest(unnest.clone())),
        LogicalPlan::TableScan(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Join(_)
        | LogicalPlan::Union(_)
        | LogicalPlan::Values(_)
        | LogicalPlan::EmptyRelation(_) => (plan, PipelineSink::Rows),
        other => {
            return Err(Error::internal(format!("{} has no device operator", other.display())));
        }
    })
}

fn aggregation(aggregate: &Aggregate) -> Result<Aggregation> {
    let of = |expr: &Expr| {
        device_aggregate(expr, aggregate.input.schema())
            .map_err(|why| Error::unsupported(expr.to_string(), why))
    };
    let calls = aggregate.aggr_expr.iter().map(of).collect::<Result<_>>()?;
    let keys = match aggregate.group_expr.as_slice() {
        [Expr::GroupingSet(sets)] => GroupKeys::Sets(sets.clone()),
        exprs => GroupKeys::Exprs(exprs.to_vec()),
    };
    Ok(Aggregation::new(keys, calls, aggregate.schema.clone()))
}

/// Windows over windows are one sink: the rows may be sorted already.
fn windows(window: &Window) -> Result<(&LogicalPlan, PipelineSink)> {
    let mut chain = vec![window];
    while let LogicalPlan::Window(below) = &*chain[chain.len() - 1].input {
        chain.push(below);
    }
    let input = &*chain[chain.len() - 1].input;
    let calls = |window: &Window| {
        let of = |expr: &Expr| {
            device_window(expr, window.input.schema())
                .map_err(|why| Error::unsupported(expr.to_string(), why))
        };
        let calls = window.window_expr.iter().map(of).collect::<Result<_>>()?;
        Ok(WindowCalls { calls, schema: window.schema.clone() })
    };
    Ok((input, PipelineSink::Windows(chain.into_iter().rev().map(calls).collect::<Result<_>>()?)))
}
