//! Plans for DataFusion's CPU engine, whose AND and OR compute both sides for all rows of a batch.
//!
//! ```text
//!   x <> 0 AND 10 / x > 1        where null and false are the same:
//!                                CASE WHEN x <> 0 IS NOT TRUE THEN false ELSE 10 / x > 1 END
//!
//!   sum(10 / x) FILTER (WHERE x <> 0)
//!                                sum(CASE WHEN x <> 0 THEN 10 / x END) FILTER (WHERE x <> 0)
//! ```
//!
//! CASE computes a branch for the rows that take it, AND does not
//! (<https://github.com/apache/datafusion/issues/8927>). Only expressions with operands that can
//! fail are changed. Conditions that can fail are made volatile, too, so that the rules over
//! physical plans leave them where they are.
//!
//! Null is where it gets long: for AND to be false it is enough that one operand is, whatever comes
//! before. So an expression of which not only the truth counts is asked twice, whether it is true
//! and then whether it is false.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Case, Expr, Filter, Join, LogicalPlan, Operator, binary_expr, lit, not,
    when,
};

use crate::plan::{UnknownAs, can_fail, has_failing, in_place, into_operands};

/// The plan with conditions that the CPU engine evaluates in their order, and no further than it
/// has to.
pub(crate) fn evaluated_in_order(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(plan.transform_up_with_subqueries(node)?.data)
}

fn node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Filter(filter) => {
            let orders = Orders { schema: filter.input.schema() };
            if !has_failing(&filter.predicate, orders.schema) {
                return Ok(Transformed::no(LogicalPlan::Filter(filter)));
            }
            let predicate = orders.ordered(filter.predicate.clone(), UnknownAs::False)?;
            let predicate = if can_fail(&filter.predicate, orders.schema) {
                in_place(predicate)
            } else {
                predicate
            };
            Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)))
        }
        LogicalPlan::Join(join) => join_node(join),
        LogicalPlan::TableScan(_) | LogicalPlan::Extension(_) => Ok(Transformed::no(node)),
        node => {
            let schema = merge_schema(&node.inputs());
            let orders = Orders { schema: &schema };
            let names = NamePreserver::new(&node);
            let rows =
                !matches!(node, LogicalPlan::Aggregate(Aggregate { .. }) | LogicalPlan::Window(_));
            let changed = node.map_expressions(|expr| {
                if !has_failing(&expr, &schema) {
                    return Ok(Transformed::no(expr));
                }
                let name = names.save(&expr);
                let expr = if rows { expr } else { filtered_arguments(expr, &schema)? };
                Ok(Transformed::yes(name.restore(orders.ordered(expr, UnknownAs::Itself)?)))
            })?;
            match changed.transformed {
                true => changed.map_data(LogicalPlan::recompute_schema),
                false => Ok(changed),
            }
        }
    }
}

/// Keys and the condition of a join. The engine computes what of the condition is about one side
/// below the join: columns that are in their places keep it from that.
fn join_node(join: Join) -> Result<Transformed<LogicalPlan>> {
    let schema = merge_schema(&[&join.left, &join.right]);
    let orders = Orders { schema: &schema };
    let concerns = |expr: &Expr| has_failing(expr, &schema);
    if !join.filter.iter().any(concerns)
        && !join.on.iter().any(|(left, right)| concerns(left) || concerns(right))
    {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let key = |key: Expr| orders.ordered(key, UnknownAs::Itself);
    let on = join.on.iter().map(|(left, right)| Ok((key(left.clone())?, key(right.clone())?)));
    let on = on.collect::<Result<Vec<_>>>()?;
    let filter = match join.filter.clone() {
        Some(filter) if concerns(&filter) => {
            let filter = orders.ordered(filter, UnknownAs::False)?;
            let placed = filter.transform_up(|expr| match expr {
                column @ Expr::Column(_) => Ok(Transformed::yes(in_place(column))),
                other => Ok(Transformed::no(other)),
            })?;
            Some(placed.data)
        }
        filter => filter,
    };
    Ok(Transformed::yes(LogicalPlan::Join(Join { on, filter, ..join })))
}

/// An aggregate's arguments, null on the rows that its FILTER leaves out.
fn filtered_arguments(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let guarded = |argument: Expr, filter: &Expr| match can_fail(&argument, schema) {
        true => when(filter.clone(), argument).end(),
        false => Ok(argument),
    };
    let changed = expr.transform_up(|expr| {
        Ok(match expr {
            Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
                if let Some(filter) = &params.filter {
                    params.args = params
                        .args
                        .into_iter()
                        .map(|of| guarded(of, filter))
                        .collect::<Result<_>>()?;
                    for sort in &mut params.order_by {
                        sort.expr = guarded(sort.expr.clone(), filter)?;
                    }
                }
                Transformed::yes(Expr::AggregateFunction(AggregateFunction { func, params }))
            }
            Expr::WindowFunction(mut call) => {
                let WindowFunction { params, .. } = call.as_mut();
                if let Some(filter) = &params.filter {
                    let args = std::mem::take(&mut params.args);
                    params.args =
                        args.into_iter().map(|of| guarded(of, filter)).collect::<Result<_>>()?;
                }
                Transformed::yes(Expr::WindowFunction(call))
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(changed.data)
}

struct Orders<'s> {
    schema: &'s DFSchema,
}

impl Orders<'_> {
    fn ordered(&self, expr: Expr, unknown: UnknownAs) -> Result<Expr> {
        if !has_failing(&expr, self.schema) {
            return Ok(expr);
        }
        Ok(match expr {
            Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
                self.chain(expr, op, unknown)?
            }
            Expr::Not(inner) => not(self.ordered(*inner, unknown.negated())?),
            Expr::IsTrue(inner) => Expr::IsTrue(Box::new(self.ordered(*inner, UnknownAs::False)?)),
            Expr::IsNotTrue(inner) => {
                Expr::IsNotTrue(Box::new(self.ordered(*inner, UnknownAs::False)?))
            }
            Expr::IsFalse(inner) => Expr::IsFalse(Box::new(self.ordered(*inner, UnknownAs::True)?)),
            Expr::IsNotFalse(inner) => {
                Expr::IsNotFalse(Box::new(self.ordered(*inner, UnknownAs::True)?))
            }
            Expr::Case(case) if case.expr.is_none() => {
                let value = |expr: Box<Expr>| {
                    Ok::<_, datafusion::error::DataFusionError>(Box::new(
                        self.ordered(*expr, unknown)?,
                    ))
                };
                let mut when_then_expr = vec![];
                for (when, then) in case.when_then_expr {
                    when_then_expr
                        .push((Box::new(self.ordered(*when, UnknownAs::False)?), value(then)?));
                }
                Expr::Case(Case {
                    expr: None,
                    when_then_expr,
                    else_expr: case.else_expr.map(value).transpose()?,
                })
            }
            other => {
                other
                    .map_children(|child| {
                        Ok(Transformed::yes(self.ordered(child, UnknownAs::Itself)?))
                    })?
                    .data
            }
        })
    }

    fn chain(&self, expr: Expr, op: Operator, unknown: UnknownAs) -> Result<Expr> {
        let operands = into_operands(expr, op);
        if !operands.iter().skip(1).any(|operand| has_failing(operand, self.schema)) {
            let operands = operands.into_iter().map(|operand| self.ordered(operand, unknown));
            return joined(operands.collect::<Result<Vec<_>>>()?, op);
        }
        if unknown == UnknownAs::Itself {
            let is_true = self.grouped(operands.clone(), op, UnknownAs::False)?;
            let is_false = not(self.grouped(operands, op, UnknownAs::True)?);
            return when(is_true, lit(true)).when(is_false, lit(false)).end();
        }
        self.grouped(operands, op, unknown)
    }

    /// What can fail begins a group, which is looked at where none before decides; those that
    /// cannot fail go with it.
    fn grouped(&self, operands: Vec<Expr>, op: Operator, unknown: UnknownAs) -> Result<Expr> {
        let mut groups: Vec<Vec<Expr>> = vec![];
        for operand in operands {
            let fails = has_failing(&operand, self.schema);
            let operand = self.ordered(operand, unknown)?;
            match groups.last_mut() {
                Some(group) if !fails => group.push(operand),
                _ => groups.push(vec![operand]),
            }
        }
        let last = joined(groups.pop().unwrap_or_default(), op)?;
        let mut when_then_expr = vec![];
        for group in groups {
            let group = Box::new(joined(group, op)?);
            let decides = match (op, unknown) {
                (Operator::And, UnknownAs::False) => Expr::IsNotTrue(group),
                (Operator::And, _) => Expr::IsFalse(group),
                (_, UnknownAs::False) => Expr::IsTrue(group),
                _ => Expr::IsNotFalse(group),
            };
            when_then_expr.push((Box::new(decides), Box::new(lit(op != Operator::And))));
        }
        Ok(Expr::Case(Case { expr: None, when_then_expr, else_expr: Some(Box::new(last)) }))
    }
}

fn joined(operands: Vec<Expr>, op: Operator) -> Result<Expr> {
    let joined = operands.into_iter().reduce(|left, right| binary_expr(left, op, right));
    Ok(joined.unwrap_or_else(|| lit(ScalarValue::Boolean(Some(op == Operator::And)))))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{AsArray, BooleanArray, Int64Array, RecordBatch};
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::logical_expr::execution_props::ExecutionProps;
    use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
    use datafusion::physical_expr::create_physical_expr;
    use datafusion::prelude::col;

    use super::*;

    fn batch() -> RecordBatch {
        let schema = Schema::new(vec![
            Field::new("x", DataType::Int64, true),
            Field::new("b", DataType::Boolean, true),
        ]);
        let x = Int64Array::from(vec![
            Some(0),
            Some(1),
            Some(5),
            Some(20),
            None,
            Some(0),
            Some(5),
            Some(20),
        ]);
        let b = BooleanArray::from(vec![
            None,
            None,
            None,
            Some(true),
            Some(true),
            Some(false),
            Some(true),
            Some(false),
        ]);
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(x), Arc::new(b)])
            .expect("columns of one length")
    }

    fn computed(expr: &Expr) -> Result<Vec<Option<bool>>> {
        let batch = batch();
        let schema = DFSchema::try_from(batch.schema())?;
        let expr = Orders { schema: &schema }.ordered(expr.clone(), UnknownAs::Itself)?;
        let context = PhysicalPlanningContext::default();
        let physical = create_physical_expr(&expr, &schema, &ExecutionProps::new(), &context)?;
        let values = physical.evaluate(&batch)?.into_array(batch.num_rows())?;
        Ok(values.as_boolean().iter().collect())
    }

    fn quotient() -> Expr {
        (lit(10i64) / col("x")).gt(lit(1i64))
    }

    #[test]
    fn what_a_guard_leaves_out_is_not_computed() -> Result<()> {
        let (t, f) = (Some(true), Some(false));
        let nonzero = || col("x").not_eq(lit(0i64));
        assert_eq!(computed(&nonzero().and(quotient()))?, [f, t, t, f, None, f, t, f]);
        assert_eq!(computed(&col("x").eq(lit(0i64)).or(quotient()))?, [t, t, t, f, None, t, t, f]);
        assert_eq!(computed(&not(nonzero().and(quotient())))?, [t, f, f, t, None, t, f, t]);
        assert_eq!(
            computed(&col("b").and(nonzero()).and(quotient()))?,
            [f, None, None, f, None, f, t, f]
        );
        assert_eq!(computed(&nonzero().and(col("b").or(quotient())))?, [f, t, t, t, None, f, t, f]);
        assert_eq!(computed(&nonzero().and(quotient()).is_null())?, [f, f, f, f, t, f, f, f]);
        assert!(computed(&quotient().and(nonzero())).is_err());
        Ok(())
    }

    /// Null says nothing of AND as long as another operand may be false.
    #[test]
    fn an_operand_behind_null_is_computed() -> Result<()> {
        assert!(computed(&col("b").and(quotient())).is_err());
        let unknown = lit(ScalarValue::Boolean(None));
        let guarded = when(col("x").not_eq(lit(0i64)), quotient()).end()?;
        assert_eq!(
            computed(&unknown.and(guarded))?,
            [None, None, None, Some(false), None, None, None, Some(false)]
        );
        Ok(())
    }

    /// DataFusion's AND: once this passes without the rewrite, the rewrite can go.
    #[test]
    fn datafusion_still_computes_both_sides() -> Result<()> {
        let batch = batch();
        let schema = DFSchema::try_from(batch.schema())?;
        let expr = col("x").not_eq(lit(0i64)).and(quotient());
        let context = PhysicalPlanningContext::default();
        let physical = create_physical_expr(&expr, &schema, &ExecutionProps::new(), &context)?;
        assert!(physical.evaluate(&batch).is_err());
        Ok(())
    }
}
