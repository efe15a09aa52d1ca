//! The types that the columns of a plan's rows have. DataFusion's planner (55.2) tells those of a
//! union's first query, and of a CASE's first result, before its rules make types agree.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::NullEquality;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder, Operator, cast};

use super::{Core, shared};
use crate::error::Result;

impl Core {
    /// The columns that a plan yields.
    pub(crate) fn agreed_schema(&self, plan: &LogicalPlan) -> Result<SchemaRef> {
        let own = plan.schema().as_arrow();
        if !may_agree(plan)? {
            return Ok(Arc::new(own.clone()));
        }
        let state = self.state();
        let analyzed = self.analyzed(&state, &*shared::written_out(plan)?)?;
        let mut types = own.fields().iter().zip(analyzed.schema().fields());
        // Some follow from constants that are not folded yet, such as that of `round(m, 1)`.
        let agreed = match types.all(|(own, agreed)| own.data_type() == agreed.data_type()) {
            true => analyzed,
            false => self.optimized(&state, shared::written_out(&analyzed)?.into_owned())?,
        };
        let fields = own.fields().iter().zip(agreed.schema().fields());
        let fields = fields.map(|(field, agreed)| {
            Arc::new(field.as_ref().clone().with_data_type(agreed.data_type().clone()))
        });
        Ok(Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), own.metadata().clone())))
    }

    /// The plan, whose columns have the types that they yield.
    pub(crate) fn with_agreed_types(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let agreed = self.agreed_schema(&plan)?;
        let own = plan.schema().clone();
        let columns = || own.columns().into_iter().zip(own.fields()).zip(agreed.fields());
        if columns().all(|((_, own), agreed)| own.data_type() == agreed.data_type()) {
            return Ok(plan);
        }
        let columns = columns().map(|((column, own), agreed)| {
            let (relation, name) = (column.relation.clone(), column.name.clone());
            match own.data_type() == agreed.data_type() {
                true => Expr::Column(column),
                false => cast(Expr::Column(column), agreed.data_type().clone())
                    .alias_qualified(relation, name),
            }
        });
        let columns: Vec<Expr> = columns.collect();
        Ok(LogicalPlanBuilder::from(plan).project(columns)?.build()?)
    }
}

/// Whether a plan has something whose type may be another one than the planner tells: most have
/// not, and need no rules.
fn may_agree(plan: &LogicalPlan) -> PlanResult<bool> {
    let is_such = |expr: &Expr| {
        matches!(
            expr,
            Expr::Case(_)
                | Expr::ScalarFunction(_)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::BinaryExpr(BinaryExpr { op: Operator::Minus, .. })
        )
    };
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= match node {
            LogicalPlan::Union(_) => true,
            LogicalPlan::Join(join) => join.null_equality == NullEquality::NullEqualsNull,
            _ => false,
        };
        if !found {
            node.apply_expressions(|expr| {
                found |= expr.exists(|expr| Ok(is_such(expr)))?;
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })?;
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}
