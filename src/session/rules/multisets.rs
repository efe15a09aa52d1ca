//! `INTERSECT ALL` and `EXCEPT ALL`, which count rows.
//!
//! DataFusion (55.2, `LogicalPlanBuilder::intersect_or_except`) makes a semi or anti join of them,
//! so that a row stays as often as it is on the left if it is on the right at all, or not at all
//! (<https://github.com/apache/datafusion/issues/12955> and 12956). Here both sides are counted
//! together:
//!
//! ```text
//!   left  1 1 2 3   1: 2 on the left, 1 on the right   INTERSECT ALL   least(2, 1) times
//!   right 1 2 2     2: 1, 2    3: 1, 0                 EXCEPT ALL      2 − 1 times, if above 0
//! ```
//!
//! Rows are equal as groups are: nulls to nulls, NaN to NaN, −0.0 to 0.0.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::{count, sum};
use datafusion::functions_nested::range::range;
use datafusion::logical_expr::logical_plan::Join;
use datafusion::logical_expr::{
    Distinct, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast, lit, when,
};

use super::set_types;

/// Whether an operator stands for one of them.
pub(super) fn concerns(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Join(join) if counts(join))
}

/// A plan as the SQL planner made it, in which these operators count.
pub(super) fn counted(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Join(join) if counts(&join) => Ok(Transformed::yes(of_join(join)?)),
        node => Ok(Transformed::no(node)),
    })?;
    // Above, types and nullability may be other ones.
    match plan.transformed {
        true => Ok(plan
            .data
            .transform_up_with_subqueries(|node| Ok(Transformed::yes(node.recompute_schema()?)))?
            .data),
        false => Ok(plan.data),
    }
}

/// Whether a join stands for one of them. The planner gives no other join this equality of nulls.
/// If rows on the left are distinct, the join is right, and nothing else is left where ALL is not
/// said.
fn counts(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && join.on.len() == join.left.schema().fields().len()
        && !is_distinct(&join.left)
}

fn is_distinct(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Distinct(Distinct::All(_)) => true,
        LogicalPlan::SubqueryAlias(alias) => is_distinct(&alias.input),
        LogicalPlan::Join(join) => {
            matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
                && is_distinct(&join.left)
        }
        _ => false,
    }
}

fn of_join(join: Join) -> Result<LogicalPlan> {
    let join = set_types::of_join(join)?.data;
    let name = |at: usize| format!("column {at}");
    let named = |name: &str| Expr::Column(Column::new_unqualified(name));
    let (on_left, rows, times) = ("on the left", "rows", "times");
    let side = |plan: &Arc<LogicalPlan>, left: i64| {
        let columns = plan.schema().columns().into_iter().enumerate();
        let columns = columns.map(|(at, column)| Expr::Column(column).alias(name(at)));
        let columns = columns.chain([lit(left).alias(on_left)]).collect::<Vec<_>>();
        LogicalPlanBuilder::from(plan.as_ref().clone()).project(columns)
    };
    let keys = || (0..join.on.len()).map(|at| named(&name(at))).collect::<Vec<_>>();
    let both = side(&join.left, 1)?.union(side(&join.right, 0)?.build()?)?;
    let groups =
        both.aggregate(keys(), [sum(named(on_left)).alias(on_left), count(lit(1i64)).alias(rows)])?;
    let on_right = || named(rows) - named(on_left);
    let number = match join.join_type {
        JoinType::LeftSemi => {
            when(named(on_left).lt(on_right()), named(on_left)).otherwise(on_right())?
        }
        _ => named(on_left) - on_right(),
    };
    let repeated = groups
        .project(keys().into_iter().chain([number.alias(times)]))?
        .filter(named(times).gt(lit(0i64)))?
        .project(keys().into_iter().chain([range_to(named(times)).alias(times)]))?
        .unnest_column(times)?;
    let schema = repeated.schema().clone();
    let columns = join.schema.iter().enumerate().map(|(at, (qualifier, field))| {
        let key = named(&name(at));
        // Of the left side's type, as ever.
        let same =
            key.get_type(&schema)? == *field.data_type() || *field.data_type() == DataType::Null;
        let key = if same { key } else { cast(key, field.data_type().clone()) };
        Ok(key.alias_qualified(qualifier.cloned(), field.name()))
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    repeated.project(columns)?.build()
}

/// A list of so many elements.
fn range_to(number: Expr) -> Expr {
    range(lit(0i64), number, lit(1i64))
}
