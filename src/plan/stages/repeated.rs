//! Parts of a plan that stand in it several times.

use std::cell::RefCell;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::LogicalPlan;

use super::FragmentRows;
use crate::error::Result;
use crate::plan::tables::Reads;
use crate::plan::volatile::is_repeatable;

/// Parts of a plan that stand in it several times, and whose rows are more than a table's: they are
/// computed once.
#[derive(Default)]
pub(super) struct Repeated<'a>(Vec<RepeatedPart<'a>>);

pub(super) struct RepeatedPart<'a> {
    plan: &'a LogicalPlan,
    reads: Reads,
    /// Once they were asked for.
    pub(super) rows: RefCell<Option<FragmentRows>>,
}

impl<'a> Repeated<'a> {
    pub(super) fn of(plan: &'a LogicalPlan) -> Result<Repeated<'a>> {
        let (mut seen, mut repeated) = (Vec::<(&LogicalPlan, Reads)>::new(), vec![]);
        plan.apply(|node| {
            if !Repeated::counts(node) {
                return Ok(TreeNodeRecursion::Continue);
            }
            let reads = Reads::of(node);
            let known = seen.iter().any(|(plan, known)| *known == reads && *plan == node);
            if known && is_repeatable(node) {
                repeated.push(RepeatedPart { plan: node, reads, rows: RefCell::default() });
                return Ok(TreeNodeRecursion::Jump);
            }
            seen.push((node, reads));
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(Repeated(repeated))
    }

    fn counts(node: &LogicalPlan) -> bool {
        matches!(
            node,
            LogicalPlan::Aggregate(_)
                | LogicalPlan::Distinct(_)
                | LogicalPlan::Join(_)
                | LogicalPlan::Window(_)
        )
    }

    pub(super) fn part(&self, plan: &LogicalPlan) -> Option<&RepeatedPart<'a>> {
        if self.0.is_empty() || !Repeated::counts(plan) {
            return None;
        }
        let reads = Reads::of(plan);
        self.0.iter().find(|part| part.reads == reads && part.plan == plan)
    }
}
