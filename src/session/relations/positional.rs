//! `a POSITIONAL JOIN b`: the rows of two tables side by side, the first with the first, by the verb
//! `concat`. Behind the shorter table's rows its columns are NULL.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;

use super::{Numbered, outside, plan_of};
use crate::frame::LazyFrame;
use crate::frame::verbs::Concat;
use crate::query::Core;

pub(super) fn planned(
    core: &Arc<Core>,
    left: LogicalPlan,
    right: LogicalPlan,
) -> Result<LogicalPlan> {
    let left = Numbered::of(core, left, "l", vec![])?;
    let right = Numbered::of(core, right, "r", vec![])?;
    let beside = LazyFrame::concat([&left.frame, &right.frame], Concat::Horizontal);
    let columns = [left.named("l", &[]), right.named("r", &[])].concat();
    plan_of(&beside.map_err(outside)?, columns)
}
