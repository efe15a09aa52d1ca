//! EXPLAIN: what runs where, in which pipelines, and why not on the device. How that is shown is in
//! `explain/shown.rs`.

mod cluster;
mod devices;
mod shown;

use std::fmt::Display;

use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan, SortExpr, TableScan};

use self::devices::ExplainedDevices;
use super::cut::{Cut, Root};
use super::device_plan::DevicePlan;
use super::division::Divides;
use super::foresight::{Foresight, Placed};
use super::node::DeviceNode;
use super::physical::{
    GroupKeys, PhysicalPlan, PipelineInput, PipelineJoin, PipelineSink, PipelineStage,
};
use super::pipelines::Planning;
use super::tables::{PlanTable, identity, table_source};
use crate::error::Result;
use crate::io::OfSession;

/// Where operators run that neither a device nor a cluster does.
const CPU: &str = "cpu";

/// A plan, and what is known of it before it runs.
pub(crate) struct Explained {
    pub(super) root: ExplainedPart,
    /// Whether joins have another order than the query's.
    pub(super) reordered: bool,
}

/// A part of a plan that runs in one place.
pub(super) enum ExplainedPart {
    Cpu(ExplainedCpu),
    Device(ExplainedDevice),
}

/// An operator of DataFusion's.
pub(super) struct ExplainedCpu {
    /// Where it runs.
    pub(super) place: &'static str,
    pub(super) text: String,
    /// Why it is there and not on the device, and how many files it reads.
    pub(super) why: Option<String>,
    pub(super) inputs: Vec<ExplainedPart>,
}

pub(super) struct ExplainedDevice {
    /// What several devices do.
    pub(super) devices: Option<ExplainedDevices>,
    /// Why the plan would be divided.
    pub(super) divided: Option<String>,
    /// The last, whose rows are the result, comes first.
    pub(super) pipelines: Vec<ExplainedPipeline>,
}

pub(super) struct ExplainedPipeline {
    pub(super) number: usize,
    pub(super) rows: Option<f64>,
    /// From the sink to the input.
    pub(super) operators: Vec<ExplainedOperator>,
}

#[derive(Default)]
pub(super) struct ExplainedOperator {
    pub(super) text: String,
    pub(super) rows: Option<f64>,
    pub(super) files: Option<String>,
    /// How it would be divided.
    pub(super) divided: Option<String>,
    /// Pipelines whose rows it reads.
    pub(super) reads: Vec<usize>,
}

/// What is known of a plan. `tables` are those that its placeholders stand for.
///
/// # Errors
/// Of the plan; of its tables.
pub(crate) fn explain(
    cut: &Cut,
    tables: &[PlanTable],
    order_joins: bool,
    state: &dyn Session,
    foresight: &dyn Foresight,
) -> Result<Explained> {
    let how = Planning { tables, order_joins, estimates: true, foresight: None };
    let mut explainer = Explainer { reordered: 0, how, state, foresight };
    let root = match &cut.root {
        Root::Device(plan) => explainer.part(plan)?,
        Root::Cpu(plan) => explainer.cpu(plan, &mut cut.left.iter().map(|of| of.why.as_str()))?,
    };
    Ok(Explained { root, reordered: explainer.reordered > 0 })
}

/// What is known of a plan that the CPU runs because there is no device.
///
/// # Errors
/// Of its tables.
pub(crate) fn explain_on_cpu(plan: &LogicalPlan, state: &dyn Session) -> Result<Explained> {
    fn of(plan: &LogicalPlan, state: &dyn Session) -> Result<ExplainedPart> {
        let why = match plan {
            LogicalPlan::TableScan(scan) => {
                files(scan, &[], state, std::slice::from_ref(&scan.filters))?
            }
            _ => None,
        };
        let inputs =
            plan.inputs().into_iter().map(|input| of(input, state)).collect::<Result<_>>()?;
        let text = plan.display().to_string();
        Ok(ExplainedPart::Cpu(ExplainedCpu { place: CPU, text, why, inputs }))
    }
    Ok(Explained { root: of(plan, state)?, reordered: false })
}

struct Explainer<'a> {
    /// Trees of joins that have another order than the query's.
    reordered: usize,
    how: Planning<'a>,
    state: &'a dyn Session,
    foresight: &'a dyn Foresight,
}

impl Explainer<'_> {
    fn cpu<'a>(
        &mut self,
        plan: &LogicalPlan,
        reasons: &mut impl Iterator<Item = &'a str>,
    ) -> Result<ExplainedPart> {
        if let LogicalPlan::Extension(extension) = plan
            && let Some(node) = DeviceNode::of(extension)
        {
            return self.part(node.plan());
        }
        let why = reasons.next().unwrap_or_default();
        let files = match plan {
            LogicalPlan::TableScan(scan) => {
                files(scan, self.how.tables, self.state, std::slice::from_ref(&scan.filters))?
            }
            _ => None,
        };
        let why =
            [Some(why.into()), files].into_iter().flatten().collect::<Vec<String>>().join("; ");
        let inputs = plan
            .inputs()
            .into_iter()
            .map(|input| self.cpu(input, reasons))
            .collect::<Result<_>>()?;
        Ok(ExplainedPart::Cpu(ExplainedCpu {
            place: CPU,
            text: plan.display().to_string(),
            why: Some(why),
            inputs,
        }))
    }

    /// A part for a device, where it runs.
    fn part(&mut self, plan: &DevicePlan) -> Result<ExplainedPart> {
        match self.foresight.placed(plan) {
            None => Ok(ExplainedPart::Device(self.device(plan)?)),
            Some(Placed::OnCluster(operator)) => Ok(cluster::operators(operator)),
            Some(Placed::Here(why)) => self.here(plan.logical(), Some(why)),
        }
    }

    /// A part of a plan for a cluster that runs in this process.
    fn here(&self, plan: &LogicalPlan, why: Option<&str>) -> Result<ExplainedPart> {
        let inputs = plan.inputs().into_iter().map(|input| self.here(input, None));
        let inputs = inputs.collect::<Result<_>>()?;
        let why = why.map(|why| format!("not on the cluster: {why}"));
        let text = plan.display().to_string();
        Ok(ExplainedPart::Cpu(ExplainedCpu { place: CPU, text, why, inputs }))
    }

    fn device(&mut self, plan: &DevicePlan) -> Result<ExplainedDevice> {
        let devices = self.foresight.on_devices(plan)?.map(ExplainedDevices::of);
        let why = self.foresight.why_divided(plan)?;
        let foresight = why.as_ref().map(|_| self.foresight as &dyn Divides);
        let filters = plan.scan_filters();
        let scans: Vec<(usize, &Vec<Expr>)> =
            plan.scans().into_iter().map(identity).zip(&filters).collect();
        let plan = PhysicalPlan::of(plan.logical(), Planning { foresight, ..self.how })?;
        self.reordered += plan.reordered;
        let mut pipelines = vec![];
        for (number, pipeline) in plan.pipelines.iter().enumerate().rev() {
            let mut operators = vec![];
            if let Some(text) = of_sink(&pipeline.sink) {
                let divided = pipeline.sink_division.clone();
                operators.push(ExplainedOperator { text, divided, ..ExplainedOperator::default() });
            }
            for stage in pipeline.stages.iter().rev() {
                let Some(text) = of_stage(stage) else { continue };
                let mut operator = ExplainedOperator { text, ..ExplainedOperator::default() };
                if let PipelineStage::Join(step) = stage {
                    operator.rows = step.rows;
                    operator.divided = step.division.clone();
                    operator.reads = vec![step.right];
                }
                operators.push(operator);
            }
            let mut input = ExplainedOperator {
                text: of_input(&pipeline.input),
                divided: pipeline.input_division.clone(),
                ..ExplainedOperator::default()
            };
            match &pipeline.input {
                PipelineInput::Scan(scan) => {
                    // Of one table the files are read that any of its scans wants.
                    let same = scans.iter().filter(|(of, _)| *of == identity(scan));
                    let filters: Vec<Vec<Expr>> =
                        same.map(|(_, filters)| (*filters).clone()).collect();
                    input.files = files(scan, self.how.tables, self.state, &filters)?;
                }
                PipelineInput::Pipeline(number) => input.reads = vec![*number],
                PipelineInput::Union(parts, _) => input.reads = parts.to_vec(),
                PipelineInput::Values(_) | PipelineInput::Empty { .. } => {}
            }
            operators.push(input);
            pipelines.push(ExplainedPipeline { number, rows: pipeline.rows, operators });
        }
        Ok(ExplainedDevice { devices, divided: why, pipelines })
    }
}

/// How many files of its table a scan reads, where these are several.
fn files(
    scan: &TableScan,
    tables: &[PlanTable],
    state: &dyn Session,
    filters: &[Vec<Expr>],
) -> Result<Option<String>> {
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

fn list<T: Display>(of: impl IntoIterator<Item = T>) -> String {
    of.into_iter().map(|one| one.to_string()).collect::<Vec<_>>().join(", ")
}

fn of_sink(sink: &PipelineSink) -> Option<String> {
    Some(match sink {
        PipelineSink::Rows => return None,
        PipelineSink::Aggregate(aggregation) => {
            let width = aggregation.schema.fields().len() - aggregation.calls.len();
            let calls =
                list(aggregation.schema.fields().iter().skip(width).map(|field| field.name()));
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
        PipelineStage::Join(step) => of_join(step),
    })
}

fn of_join(step: &PipelineJoin) -> String {
    format!("{} with pipeline {}", LogicalPlan::Join(step.join.clone()).display(), step.right)
}

/// What a pipeline's sink is called in notes on a run: the pipeline, and the sink's line.
pub(crate) fn sink_name(number: usize, sink: &PipelineSink) -> String {
    format!("pipeline {number}: {}", of_sink(sink).unwrap_or_default())
}

/// What a join in a pipeline is called in notes on a run: the pipeline, and the join's line.
pub(crate) fn join_name(number: usize, join: &PipelineJoin) -> String {
    format!("pipeline {number}: {}", of_join(join))
}

fn of_input(input: &PipelineInput) -> String {
    match input {
        PipelineInput::Scan(scan) => of_scan(scan),
        PipelineInput::Pipeline(number) => format!("rows of pipeline {number}"),
        PipelineInput::Union(parts, _) => format!("Union: rows of pipelines {}", list(parts)),
        PipelineInput::Values(values) => format!("Values: {} rows", values.values.len()),
        PipelineInput::Empty { one_row, .. } => {
            format!("EmptyRelation: rows={}", usize::from(*one_row))
        }
    }
}

/// Its filters are the first stages of the pipeline.
fn of_scan(scan: &TableScan) -> String {
    let fetch = scan.fetch.map_or(String::new(), |fetch| format!(", first {fetch} rows"));
    let columns = list(scan.projected_schema.fields().iter().map(|field| field.name()));
    format!("TableScan: {} projection=[{columns}]{fetch}", scan.table_name)
}
