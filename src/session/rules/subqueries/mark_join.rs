//! EXISTS and IN as mark joins: the join adds a boolean column that says whether a row has a match.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, JoinType, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::utils::{conjunction, expr_to_columns};
use datafusion::logical_expr::{
    Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Subquery, lit, when,
};
use datafusion::optimizer::decorrelate::PullUpCorrelatedExpr;

use super::NameGenerator;
use crate::error::Error;

/// A plan with a column more, where one was needed, and the expression that says it.
type Marked = (Option<LogicalPlan>, Expr);

/// What the subqueries of an expression are called in SQL.
pub(super) fn construct(expr: &Expr) -> &'static str {
    let has = |test: fn(&Expr) -> bool| expr.exists(|node| Ok(test(node))).unwrap_or(false);
    if has(|node| matches!(node, Expr::InSubquery(_))) {
        "IN (SELECT …)"
    } else if has(|node| matches!(node, Expr::Exists(_))) {
        "EXISTS (SELECT …)"
    } else if has(|node| matches!(node, Expr::SetComparison(_))) {
        "a comparison with ANY or ALL (SELECT …)"
    } else {
        "a correlated scalar subquery"
    }
}

fn refused(what: &str, clause: &str) -> DataFusionError {
    let why = "its subquery looks at outer columns in a way that is no condition of a join";
    Error::unsupported(format!("{what} in {clause}"), why).into()
}

/// Whether a plan has one row, whatever it reads: an aggregate of all rows.
pub(super) fn is_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(project) => is_one_row(&project.input),
        LogicalPlan::SubqueryAlias(alias) => is_one_row(&alias.input),
        LogicalPlan::Sort(sort) => sort.fetch.is_none() && is_one_row(&sort.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    }
}

/// Whether the subquery has a row for a row of the plan.
pub(super) fn exists(
    plan: &LogicalPlan,
    subquery: &Subquery,
    clause: &str,
    generator: &mut NameGenerator,
) -> Result<Marked> {
    if is_one_row(&subquery.subquery) {
        return Ok((None, lit(true)));
    }
    match mark(plan, &subquery.subquery, None, generator)? {
        Some((plan, mark)) => Ok((Some(plan), mark)),
        None => Err(refused("EXISTS (SELECT …)", clause)),
    }
}

/// Whether the subquery has the member.
pub(super) fn is_in(
    plan: &LogicalPlan,
    subquery: &Subquery,
    member: &Expr,
    clause: &str,
    generator: &mut NameGenerator,
) -> Result<Marked> {
    match mark(plan, &subquery.subquery, Some(member), generator)? {
        Some((plan, mark)) => Ok((Some(plan), mark)),
        None => Err(refused("IN (SELECT …)", clause)),
    }
}

/// Whether it is unknown that the subquery has a member that was not found: the subquery has a
/// null, or the member is null and the subquery has a row. `None` where neither can be.
pub(super) fn unknown(
    plan: &LogicalPlan,
    subquery: &Subquery,
    member: &Expr,
    clause: &str,
    generator: &mut NameGenerator,
) -> Result<Option<(LogicalPlan, Expr)>> {
    let (qualifier, field) = subquery.subquery.schema().qualified_field(0);
    let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
    let (nulls, null_member) =
        (field.is_nullable(), member.nullable(plan.schema()).unwrap_or(true));
    if !nulls && !null_member {
        return Ok(None);
    }
    if subquery.outer_ref_columns.is_empty() {
        // Two numbers of all its rows, beside each row.
        let (rows, values) = (generator.name("rows"), generator.name("values"));
        let counts = [count(lit(1i64)).alias(&rows), count(column).alias(&values)];
        let counts = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone())
            .aggregate(Vec::<Expr>::new(), counts)?;
        let plan = LogicalPlanBuilder::from(plan.clone()).cross_join(counts.build()?)?.build()?;
        let of = |name: String| Expr::Column(Column::new_unqualified(name));
        let null = of(values).lt(of(rows.clone()));
        let beside = member.clone().is_null().and(of(rows).gt(lit(0i64)));
        return Ok(Some((plan, null.or(beside))));
    }
    let null = Filter::try_new(column.is_null(), subquery.subquery.clone())?;
    let null = Subquery { subquery: Arc::new(LogicalPlan::Filter(null)), ..subquery.clone() };
    let (found, null) = exists(plan, &null, clause, generator)?;
    let plan = found.unwrap_or_else(|| plan.clone());
    if !null_member {
        return Ok(Some((plan, null)));
    }
    let (found, any) = exists(&plan, subquery, clause, generator)?;
    Ok(Some((found.unwrap_or(plan), null.or(member.clone().is_null().and(any)))))
}

/// Whether it was found, as far as that is known.
pub(super) fn known(found: Expr, unknown: Expr) -> Result<Expr> {
    when(found, lit(true)).when(unknown, lit(ScalarValue::Boolean(None))).otherwise(lit(false))
}

/// The mark join with the subquery; `None` where it looks at outer columns in a way that is no
/// condition of a join.
fn mark(
    plan: &LogicalPlan,
    subquery: &LogicalPlan,
    member: Option<&Expr>,
    generator: &mut NameGenerator,
) -> Result<Option<(LogicalPlan, Expr)>> {
    let alias = generator.name("exists");
    let (qualifier, field) = subquery.schema().qualified_field(0);
    let column = Column::new(qualifier.cloned(), field.name());
    let equal = member.map(|member| member.clone().eq(Expr::Column(column.clone())));
    let mut pull_up = PullUpCorrelatedExpr::new()
        .with_in_predicate_opt(equal)
        .with_exists_sub_query(member.is_none());
    let pulled = subquery.clone().rewrite(&mut pull_up)?.data;
    if !pull_up.can_pull_up {
        return Ok(None);
    }
    let correlated: BTreeSet<Column> =
        pull_up.correlated_subquery_cols_map.values().flatten().cloned().collect();
    let right = LogicalPlanBuilder::from(pulled).alias(alias.as_str())?.build()?;
    let outside = |expr: Expr| {
        expr.transform_up(|expr| match expr {
            Expr::Column(column) if correlated.contains(&column) => {
                Ok(Transformed::yes(Expr::Column(Column::new(Some(alias.as_str()), column.name))))
            }
            other => Ok(Transformed::no(other)),
        })
    };
    let conditions = pull_up.join_filters.into_iter().map(|filter| Ok(outside(filter)?.data));
    let mut conditions = conditions.collect::<Result<Vec<_>>>()?;
    if let Some(member) = member {
        let column = Expr::Column(Column::new(Some(alias.as_str()), column.name));
        conditions.insert(0, member.clone().eq(column));
    }
    let condition = conjunction(conditions).unwrap_or_else(|| lit(true));
    let mut needed = std::collections::HashSet::new();
    expr_to_columns(&condition, &mut needed)?;
    let needed = right.schema().columns().into_iter().filter(|column| needed.contains(column));
    let needed: Vec<_> = needed.map(Expr::Column).collect();
    let right = match needed.is_empty() {
        true => right,
        false => LogicalPlanBuilder::from(right).project(needed)?.build()?,
    };
    let joined = LogicalPlanBuilder::from(plan.clone())
        .join_on(right, JoinType::LeftMark, [condition])?
        .build()?;
    Ok(Some((joined, Expr::Column(Column::new(Some(alias.as_str()), "mark")))))
}
