//! What EXPLAIN says of a plan on several devices: its stages, and which rows move between them.

use datafusion::logical_expr::LogicalPlan;

use crate::plan::foresight::OnDevices;
use crate::plan::stages::{InputRole, Stage, StageInput, StageRows};
use crate::plan::tables::placeholder_number;

/// A plan on several devices.
pub(in crate::plan) enum ExplainedDevices {
    /// The first of so many runs it alone.
    One { devices: usize, why: String },
    Several {
        devices: usize,
        /// The last one first.
        stages: Vec<ExplainedStage>,
    },
}

/// A stage of a plan.
pub(in crate::plan) struct ExplainedStage {
    /// Stages whose rows it reads have lesser ones.
    pub(in crate::plan) number: usize,
    /// Whether each device runs it; otherwise the first one.
    pub(in crate::plan) each: bool,
    /// From the last one to those that read rows.
    pub(in crate::plan) operators: Vec<String>,
    /// What it reads, and which rows of it.
    pub(in crate::plan) inputs: Vec<String>,
}

impl ExplainedDevices {
    pub(super) fn of(on: OnDevices) -> ExplainedDevices {
        match on {
            OnDevices::One { devices, why } => ExplainedDevices::One { devices, why },
            OnDevices::Several { devices, stage, lie } => {
                let mut stages = vec![];
                collect(&stage, &lie, &mut stages, &mut vec![]);
                stages.reverse();
                ExplainedDevices::Several { devices, stages }
            }
        }
    }

    /// What stands above the stages.
    pub(super) fn head(&self) -> String {
        match self {
            ExplainedDevices::One { devices, why } => {
                format!("on device 0 of {devices} alone: {why}")
            }
            ExplainedDevices::Several { devices, stages } => match stages.len() {
                1 => format!("on {devices} devices, in 1 stage"),
                count => format!("on {devices} devices, in {count} stages"),
            },
        }
    }

    pub(super) fn stages(&self) -> &[ExplainedStage] {
        match self {
            ExplainedDevices::One { .. } => &[],
            ExplainedDevices::Several { stages, .. } => stages,
        }
    }
}

impl ExplainedStage {
    pub(super) fn text(&self) -> String {
        let place = if self.each { "on each device" } else { "on device 0" };
        match self.operators.is_empty() {
            true => format!("stage {}, {place}", self.number),
            false => format!("stage {}, {place}: {}", self.number, self.operators.join(" <- ")),
        }
    }
}

/// The stages below and the stage itself, whose number it yields.
fn collect(
    stage: &Stage,
    lie: &[String],
    stages: &mut Vec<ExplainedStage>,
    known: &mut Vec<(*const Stage, usize)>,
) -> usize {
    // One whose rows several stages read stands there once.
    if let Some((_, number)) = known.iter().find(|(of, _)| std::ptr::eq(*of, stage)) {
        return *number;
    }
    let mut inputs = vec![];
    for (at, input) in stage.inputs.iter().enumerate() {
        inputs.push(match &input.rows {
            StageRows::Table(number) => {
                let name = name_of(&stage.fragment, at).unwrap_or_else(|| "a table".into());
                let lie = lie.get(*number).map_or("", String::as_str);
                of_table(&name, lie, &input.role)
            }
            StageRows::Stage(below) => {
                let number = collect(below, lie, stages, known);
                of_stage(number, below, input)
            }
        });
    }
    let mut operators = vec![];
    collect_operators(&stage.fragment, &mut operators);
    let number = stages.len();
    let each = stage.inputs.iter().any(|input| input.role.is_parted());
    stages.push(ExplainedStage { number, each, operators, inputs });
    known.push((stage, number));
    number
}

fn of_table(name: &str, lie: &str, role: &InputRole) -> String {
    match role {
        InputRole::Part => format!("its part of {name}, {lie}"),
        _ if lie.starts_with("kept") => format!("all of {name}, {lie}"),
        _ => format!("all of {name}"),
    }
}

fn of_stage(number: usize, below: &Stage, input: &StageInput) -> String {
    let fields = below.fragment.schema().fields();
    let name = |at: &usize| fields.get(*at).map_or("a key", |field| field.name().as_str());
    let names = |columns: &[usize]| columns.iter().map(name).collect::<Vec<_>>().join(", ");
    match &input.role {
        InputRole::ByKeys(columns) => {
            format!("rows of stage {number}, exchanged by a hash of {}", names(columns))
        }
        InputRole::ByCuts(of) => {
            let cuts: Vec<String> = of.cuts.iter().map(i128::to_string).collect();
            let (name, cuts) = (name(&of.column), cuts.join(", "));
            format!("rows of stage {number}, exchanged by where {name} lies: cut at {cuts}")
        }
        InputRole::Part => format!("rows of stage {number}, each device its own"),
        InputRole::First => format!("all rows of stage {number}, on device 0"),
        InputRole::Whole | InputRole::InOrder(_) => format!("all rows of stage {number}"),
    }
}

/// The name of a table that a fragment reads.
fn name_of(fragment: &LogicalPlan, input: usize) -> Option<String> {
    match fragment {
        LogicalPlan::TableScan(scan) => (placeholder_number(&scan.source) == Some(input))
            .then(|| scan.table_name.table().to_string()),
        plan => plan.inputs().into_iter().find_map(|below| name_of(below, input)),
    }
}

/// The operators of a fragment; what reads its inputs aside.
fn collect_operators(plan: &LogicalPlan, operators: &mut Vec<String>) {
    let reads = match plan {
        LogicalPlan::TableScan(_) => true,
        LogicalPlan::Projection(project) => {
            matches!(project.input.as_ref(), LogicalPlan::TableScan(scan)
                if scan.table_name.table() == crate::plan::stages::STAGE)
        }
        _ => false,
    };
    if !reads {
        operators.push(plan.display().to_string());
    }
    plan.inputs().into_iter().for_each(|input| collect_operators(input, operators));
}
