//! EXPLAIN: what runs where, in which pipelines, and why not on the device. One line an operator,
//! from the result down.

use std::fmt::Display;

use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan, SortExpr, TableScan};

use super::cut::{Cut, Root};
use super::node::DeviceNode;
use super::physical::{GroupKeys, PhysicalPlan, PipelineInput, PipelineJoin, PipelineSink, PipelineStage};
use super::pipelines::Planning;
use super::prepared::DevicePlan;
use super::tables::{PlanTable, identity, table_source};
use crate::error::Result;
use crate::io::OfSession;

/// What is expected of plans that may not fit into device memory.
pub(crate) trait Foresight {
    /// Why a plan would be divided; `None` where it is expected to run whole.
    ///
    /// # Errors
    /// Of its tables.
    fn why_divided(&self, plan: &DevicePlan) -> Result<Option<String>>;

    /// How an operator of such a plan would be; `None` where there is nothing to say.
    fn how_divided(&self, operator: &LogicalPlan) -> Option<String>;
}

/// The lines of a plan. `tables` are those that its placeholders stand for.
///
/// # Errors
/// Of the plan; of its tables.
pub(crate) fn explain(
    cut: &Cut,
    tables: &[PlanTable],
    order_joins: bool,
    state: &dyn Session,
    foresight: &dyn Foresight,
) -> Result<String> {
    let how = Planning { tables, order_joins, estimates: true, foresight: None };
    let mut text = PlanText { lines: vec![], reordered: 0, how, state, foresight };
    match &cut.root {
        Root::Device(plan) => text.device(plan, 0)?,
        Root::Cpu(plan) => text.cpu(plan, &mut cut.left.iter().map(|of| of.why.as_str()), 0)?,
    }
    if text.reordered > 0 {
        let order = "joins   in the order of estimated rows, not the query's (SET join_order = off keeps that)";
        text.lines.push(order.into());
    }
    Ok(text.lines.join("\n"))
}

/// Begins the lines on what would be divided.
const WOULD_BE_DIVIDED: &str = "would be divided: ";

struct PlanText<'a> {
    lines: Vec<String>,
    /// Trees of joins that have another order than the query's.
    reordered: usize,
    how: Planning<'a>,
    state: &'a dyn Session,
    foresight: &'a dyn Foresight,
}

impl PlanText<'_> {
    fn line(&mut self, place: &str, depth: usize, text: impl Display) {
        self.lines.push(format!("{place:8}{}{text}", "  ".repeat(depth)));
    }

    fn cpu<'a>(&mut self, plan: &LogicalPlan, reasons: &mut impl Iterator<Item = &'a str>, depth: usize) -> Result<()> {
        if let LogicalPlan::Extension(extension) = plan
            && let Some(node) = DeviceNode::of(extension)
        {
            return self.device(node.plan(), depth);
        }
        let why = reasons.next().unwrap_or_default();
        let files = match plan {
            LogicalPlan::TableScan(scan) => {
                files(scan, self.how.tables, self.state, std::slice::from_ref(&scan.filters))?
            }
            _ => None,
        };
        let why = [Some(why.into()), files].into_iter().flatten().collect::<Vec<String>>().join("; ");
        self.line("cpu", depth, format_args!("{}    ({why})", plan.display()));
        plan.inputs().into_iter().try_for_each(|input| self.cpu(input, reasons, depth + 1))
    }

    fn device(&mut self, plan: &DevicePlan, depth: usize) -> Result<()> {
        let why = self.foresight.why_divided(plan)?;
        let foresight = why.as_ref().map(|_| self.foresight);
        if let Some(why) = why {
            self.line("device", depth, format_args!("{WOULD_BE_DIVIDED}{why}"));
        }
        let divided = |operator: LogicalPlan| foresight.and_then(|foresight| foresight.how_divided(&operator));
        let filters = plan.scan_filters();
        let scans: Vec<(usize, &Vec<Expr>)> = plan.scans().into_iter().map(identity).zip(&filters).collect();
        let plan = PhysicalPlan::of(plan.logical(), Planning { foresight, ..self.how })?;
        self.reordered += plan.reordered;
        for (number, pipeline) in plan.pipelines.iter().enumerate().rev() {
            self.line("device", depth, format_args!("pipeline {number}{}", rows(pipeline.rows)));
            if let Some(sink) = of_sink(&pipeline.sink) {
                self.line("device", depth + 1, sink);
                self.division(depth + 2, pipeline.division.clone());
            }
            for stage in pipeline.stages.iter().rev() {
                if let Some(line) = of_stage(stage) {
                    self.line("device", depth + 1, line);
                }
                if let PipelineStage::Join(step) = stage {
                    self.division(depth + 2, divided(LogicalPlan::Join(step.join.clone())));
                }
            }
            let files = match &pipeline.input {
                PipelineInput::Scan(scan) => {
                    // Of one table the files are read that any of its scans wants.
                    let same = scans.iter().filter(|(of, _)| *of == identity(scan));
                    let filters: Vec<Vec<Expr>> = same.map(|(_, filters)| (*filters).clone()).collect();
                    files(scan, self.how.tables, self.state, &filters)?
                }
                _ => None,
            };
            let files = files.map_or(String::new(), |files| format!("    ({files})"));
            self.line("device", depth + 1, format_args!("{}{files}", of_input(&pipeline.input)));
            if let PipelineInput::Scan(scan) = &pipeline.input {
                self.division(depth + 2, divided(LogicalPlan::TableScan(scan.as_ref().clone())));
            }
        }
        Ok(())
    }

    fn division(&mut self, depth: usize, how: Option<String>) {
        if let Some(how) = how {
            self.line("device", depth, format_args!("{WOULD_BE_DIVIDED}{how}"));
        }
    }
}

/// How many files of its table a scan reads, where these are several.
fn files(scan: &TableScan, tables: &[PlanTable], state: &dyn Session, filters: &[Vec<Expr>]) -> Result<Option<String>> {
    let Ok(provider) = source_as_provider(table_source(scan, tables)) else { return Ok(None) };
    match OfSession::of(provider.as_ref()) {
        Some(OfSession::Source(table)) => table.files_read(state, filters),
        _ => Ok(None),
    }
}

/// Of a plan that the CPU engine runs: a line for each of its scans that reads several files.
pub(crate) fn files_of(plan: &LogicalPlan, state: &dyn Session) -> Result<Vec<String>> {
    let mut lines = vec![];
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(files) = files(scan, &[], state, std::slice::from_ref(&scan.filters))?
        {
            lines.push(format!("TableScan: {} reads {files}", scan.table_name));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(lines)
}

fn rows(expected: Option<f64>) -> String {
    expected.map_or(String::new(), |rows| format!("    (about {rows:.0} rows)"))
}

fn list<T: Display>(of: impl IntoIterator<Item = T>) -> String {
    of.into_iter().map(|one| one.to_string()).collect::<Vec<_>>().join(", ")
}

fn of_sink(sink: &PipelineSink) -> Option<String> {
    Some(match sink {
        PipelineSink::Rows => return None,
        PipelineSink::Aggregate(aggregation) => {
            let width = aggregation.schema.fields().len() - aggregation.calls.len();
            let calls = list(aggregation.schema.fields().iter().skip(width).map(|field| field.name()));
            let keys = match &aggregation.keys {
                GroupKeys::Exprs(exprs) => list(exprs),
                GroupKeys::Sets(sets) => Expr::GroupingSet(sets.clone()).to_string(),
            };
            format!("Aggregate: groupBy=[{keys}], aggr=[{calls}]")
        }
        PipelineSink::Distinct => "Distinct".into(),
        PipelineSink::Sort { keys, fetch } => {
            let first = fetch.map_or(String::new(), |fetch| format!(", first {fetch} rows"));
            format!("Sort: {}{first}", list::<&SortExpr>(keys))
        }
        PipelineSink::Limit { skip, fetch } => {
            let fetch = fetch.map_or("all".into(), |fetch| fetch.to_string());
            format!("Limit: skip={skip}, fetch={fetch}")
        }
        PipelineSink::Windows(windows) => {
            let last = windows.last().map(|window| window.schema.fields().iter());
            let calls: usize = windows.iter().map(|window| window.calls.len()).sum();
            let names = last.map_or(String::new(), |fields| {
                let width = fields.len() - calls;
                list(fields.skip(width).map(|field| field.name()))
            });
            format!("Window: {names}")
        }
        PipelineSink::Unnest(unnest) => LogicalPlan::Unnest(unnest.clone()).display().to_string(),
    })
}

fn of_stage(stage: &PipelineStage) -> Option<String> {
    Some(match stage {
        PipelineStage::Filter(predicate) => format!("Filter: {predicate}"),
        PipelineStage::Project(exprs, _) => format!("Projection: {}", list(exprs)),
        PipelineStage::Rename(_) => return None,
        PipelineStage::Join(step) => format!("{}{}", of_join(step), rows(step.rows)),
    })
}

fn of_join(step: &PipelineJoin) -> String {
    format!("{} with pipeline {}", LogicalPlan::Join(step.join.clone()).display(), step.right)
}

/// What a pipeline's sink is called in notes on a run: the pipeline, and the sink's line.
pub(crate) fn sink_name(number: usize, sink: &PipelineSink) -> String {
    format!("pipeline {number}: {}", of_sink(sink).unwrap_or_default())
}

/// The same of a join in the pipeline.
pub(crate) fn join_name(number: usize, join: &PipelineJoin) -> String {
    format!("pipeline {number}: {}", of_join(join))
}

fn of_input(input: &PipelineInput) -> String {
    match input {
        PipelineInput::Scan(scan) => of_scan(scan),
        PipelineInput::Pipeline(number) => format!("rows of pipeline {number}"),
        PipelineInput::Union(parts, _) => format!("Union: rows of pipelines {}", list(parts)),
        PipelineInput::Values(values) => format!("Values: {} rows", values.values.len()),
        PipelineInput::Empty { one_row, .. } => format!("EmptyRelation: rows={}", usize::from(*one_row)),
    }
}

/// Its filters are the first stages of the pipeline.
fn of_scan(scan: &TableScan) -> String {
    let fetch = scan.fetch.map_or(String::new(), |fetch| format!(", first {fetch} rows"));
    let columns = list(scan.projected_schema.fields().iter().map(|field| field.name()));
    format!("TableScan: {} projection=[{columns}]{fetch}", scan.table_name)
}
