//! From the stages of a plan to operators of DataFusion.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::stage::{StageContext, StageParts, lexical, stage_of};
use super::stage_inputs::{Partitions, partitions_of};
use crate::error::{Error, Result};
use crate::plan::{InputRole, Stage, StageInput, StageRows};

/// The operators of a stage and of those that it takes rows from. `tables` has the scans of the
/// plan's tables, by number: what each yields of a table, and of which columns.
///
/// # Errors
/// Of DataFusion.
pub(crate) fn stage_plan(
    stage: &Stage,
    tables: &[(Arc<dyn ExecutionPlan>, Vec<usize>)],
    context: &StageContext,
    is_stock: bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let (mut inputs, mut plans) = (vec![], vec![]);
    for input in &stage.inputs {
        let (plan, columns) = match &input.rows {
            StageRows::Table(number) => {
                let (scanned, columns) = tables
                    .get(*number)
                    .ok_or_else(|| Error::internal(format!("no table has number {number}")))?;
                let scanned = partitions_of(scanned, Partitions::All)?;
                let parted = match input.role {
                    InputRole::Part => {
                        let config = context.state.config();
                        scanned.repartitioned(config.target_partitions(), config.options())?
                    }
                    _ => None,
                };
                (parted.unwrap_or(scanned), columns.clone())
            }
            StageRows::Stage(below) => {
                let plan = stage_plan(below, tables, context, is_stock)?;
                let columns = (0..plan.schema().fields().len()).collect();
                (plan, columns)
            }
        };
        inputs.push((input.role.clone(), columns));
        plans.push(plan);
    }
    if let ([StageInput { rows: StageRows::Stage(_), role }], [input]) =
        (stage.inputs.as_slice(), plans.as_slice())
        && let Some(columns) = stage.handed_on()
        && let Some(rows) = handed_on(&stage.fragment, &columns, role, input)?
    {
        return Ok(rows);
    }
    let seed = RandomState::new().hash_one(());
    let parts = StageParts { fragment: stage.fragment.clone(), inputs, is_stock, seed };
    stage_of(parts, plans, Some(context.clone()))
}

/// The rows of another stage by DataFusion's operators, for a fragment that only hands on these
/// columns of theirs: they would go to the device and come back. `None` where they are parted anew.
fn handed_on(
    fragment: &LogicalPlan,
    columns: &[usize],
    role: &InputRole,
    input: &Arc<dyn ExecutionPlan>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let is_parted = input.output_partitioning().partition_count() > 1;
    let rows: Arc<dyn ExecutionPlan> = match role {
        InputRole::Part => input.clone(),
        InputRole::Whole if is_parted => Arc::new(CoalescePartitionsExec::new(input.clone())),
        InputRole::InOrder(order) if is_parted => match lexical(order, &input.schema()) {
            Some(order) => Arc::new(SortPreservingMergeExec::new(order, input.clone())),
            None => return Ok(None),
        },
        InputRole::Whole | InputRole::InOrder(_) => input.clone(),
        InputRole::ByKeys(_) | InputRole::ByCuts(_) | InputRole::First => return Ok(None),
    };
    let found = input.schema();
    let exprs = columns.iter().zip(fragment.schema().fields()).map(|(at, field)| {
        let expr: Arc<dyn PhysicalExpr> = Arc::new(Column::new(found.field(*at).name(), *at));
        ProjectionExpr { expr, alias: field.name().clone() }
    });
    Ok(Some(Arc::new(ProjectionExec::try_new(exprs, rows)?)))
}
