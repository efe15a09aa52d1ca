//! Correlated subqueries, which DataFusion makes joins of: in forms of which that can be done.
//!
//! It pulls the condition that names rows outside up through the subquery, to make it the join's
//! (55.2, `PullUpCorrelatedExpr`). What has another meaning below that condition than above it came
//! out wrong, without an error (<https://github.com/apache/datafusion/issues/24960> and 25519):
//!
//! ```text
//!   EXISTS (SELECT count(*) FROM n WHERE n.o = o.id)       without GROUP BY there is one row
//!   EXISTS (SELECT 1 FROM n WHERE n.o = o.id OFFSET 1)     the limit was dropped
//!   x IN (SELECT row_number() OVER () FROM n WHERE …)      windows were those of all rows
//!   EXISTS (… LEFT JOIN (SELECT … WHERE n.o = o.id) …)     unmatched rows were lost
//! ```
//!
//! The first two are rewritten here; what cannot be is refused, by name.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{
    Distinct, Expr, FetchType, Filter, Limit, LogicalPlan, LogicalPlanBuilder, Operator, SkipType,
    Subquery, binary_expr, lit, when,
};

use super::membership::{Member, only_column};
use crate::error::Error;

/// Whether a subquery names columns of rows outside.
pub(super) fn is_correlated(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let walked = plan.apply(|node| {
        // What a LATERAL one names are columns beside it.
        if matches!(node, LogicalPlan::Subquery(_)) {
            return Ok(TreeNodeRecursion::Jump);
        }
        found |= node.contains_outer_reference();
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found || walked.is_err()
}

/// Whether the subquery has a row.
pub(super) fn exists(subquery: Subquery) -> Result<Expr> {
    match is_correlated(&subquery.subquery) {
        true => has_row(&subquery.subquery.clone(), &subquery),
        false => Ok(Expr::Exists(Exists::new(subquery, false))),
    }
}

fn has_row(plan: &Arc<LogicalPlan>, of: &Subquery) -> Result<Expr> {
    match plan.as_ref() {
        // Neither adds rows nor drops all of them.
        LogicalPlan::Projection(node) => has_row(&node.input, of),
        LogicalPlan::SubqueryAlias(node) => has_row(&node.input, of),
        LogicalPlan::Window(node) => has_row(&node.input, of),
        LogicalPlan::Distinct(Distinct::All(input)) => has_row(input, of),
        LogicalPlan::Distinct(Distinct::On(node)) => has_row(&node.input, of),
        LogicalPlan::Sort(node) if node.fetch.is_none() => has_row(&node.input, of),
        LogicalPlan::Aggregate(node) if node.group_expr.is_empty() => Ok(lit(true)),
        LogicalPlan::Aggregate(node) if !has_grouping_sets(&node.group_expr) => {
            has_row(&node.input, of)
        }
        LogicalPlan::Union(node) => {
            let parts = node.inputs.iter().map(|input| has_row(input, of));
            Ok(parts
                .reduce(|all, one| Ok(all?.or(one?)))
                .transpose()?
                .unwrap_or_else(|| lit(false)))
        }
        LogicalPlan::Filter(node) if has_one_row(&node.input) => {
            Ok(truth(&node.input, &node.predicate, of)?)
        }
        LogicalPlan::Limit(limit) => match bounds(limit)? {
            Some((_, Some(0))) => Ok(lit(false)),
            Some((0, _)) => has_row(&limit.input, of),
            Some(_) if has_one_row(&limit.input) => Ok(lit(false)),
            Some((skip, _)) => {
                let rows = LogicalPlanBuilder::from(limit.input.as_ref().clone());
                let rows = rows
                    .aggregate(Vec::<Expr>::new(), [count(lit(1i64)).alias("rows")])?
                    .build()?;
                Ok(scalar(rows, of)?.gt(lit(i64::try_from(skip).unwrap_or(i64::MAX))))
            }
            None => Err(unsupported("LIMIT or OFFSET by an expression")),
        },
        LogicalPlan::EmptyRelation(node) => Ok(lit(node.produce_one_row)),
        LogicalPlan::Values(_) => Ok(lit(true)),
        _ => {
            check_exists(plan)?;
            Ok(Expr::Exists(Exists::new(ready(subquery(plan.clone(), of))?, false)))
        }
    }
}

/// A correlated `x = ANY q` (or of another operator, not negated) by simpler ones; `None` where it
/// is one.
pub(super) fn parts(member: &Member) -> Result<Option<Expr>> {
    let of = &member.subquery;
    let within = |plan: &Arc<LogicalPlan>| {
        let (value, subquery) = (Box::new(member.value.clone()), subquery(plan.clone(), of));
        match member.operator {
            Operator::Eq => Expr::InSubquery(InSubquery::new(value, subquery, false)),
            operator => Expr::SetComparison(SetComparison::new(
                value,
                subquery,
                operator,
                SetQuantifier::Any,
            )),
        }
    };
    let compared = |plan: LogicalPlan| {
        Ok::<_, DataFusionError>(binary_expr(
            member.value.clone(),
            member.operator,
            scalar(plan, of)?,
        ))
    };
    let plan = &of.subquery;
    Ok(match plan.as_ref() {
        LogicalPlan::Distinct(Distinct::All(input)) => Some(within(input)),
        LogicalPlan::Sort(node) if node.fetch.is_none() => Some(within(&node.input)),
        LogicalPlan::Union(node) => {
            let named =
                |input: &Arc<LogicalPlan>| Ok(within(&Arc::new(renamed(input.as_ref().clone())?)));
            let parts = node.inputs.iter().map(named).collect::<Result<Vec<_>>>()?;
            parts.into_iter().reduce(Expr::or)
        }
        LogicalPlan::Limit(limit) => match bounds(limit)? {
            Some((_, Some(0))) => Some(lit(false)),
            Some((skip, _)) if has_one_row(&limit.input) => {
                Some(if skip > 0 { lit(false) } else { within(&limit.input) })
            }
            _ => None,
        },
        _ if has_one_row(plan) => Some(compared(plan.as_ref().clone())?),
        _ => match filter_of_one_row(plan) {
            None => None,
            Some(filter) => {
                let kept = truth(&filter.input, &filter.predicate, of)?;
                let all = plan.as_ref().clone().transform_down(|node| match node {
                    LogicalPlan::Filter(filter) => {
                        let input = Arc::unwrap_or_clone(filter.input);
                        Ok(Transformed::new(input, true, TreeNodeRecursion::Stop))
                    }
                    node => Ok(Transformed::no(node)),
                })?;
                Some(when(kept, compared(all.data)?).otherwise(lit(false))?)
            }
        },
    })
}

/// Whether a predicate is true of a plan's one row.
fn truth(row: &Arc<LogicalPlan>, predicate: &Expr, of: &Subquery) -> Result<Expr> {
    let kept = LogicalPlanBuilder::from(row.as_ref().clone())
        .project([predicate.clone().alias("kept")])?;
    Ok(Expr::IsTrue(Box::new(scalar(kept.build()?, of)?)))
}

/// The value of a plan's one row. Names of tables within are made names of columns: DataFusion
/// loses its mark of rows without a match behind one ("No field named __always_true").
fn scalar(plan: LogicalPlan, of: &Subquery) -> Result<Expr> {
    let plan = plan.transform_down(|node| match node {
        LogicalPlan::SubqueryAlias(alias) if has_one_row(&alias.input) => {
            let columns = alias.input.schema().columns().into_iter().zip(alias.schema.iter());
            let columns = columns.map(|(column, (qualifier, field))| {
                Expr::Column(column).alias_qualified(qualifier.cloned(), field.name())
            });
            let columns = columns.collect::<Vec<_>>();
            let projection =
                LogicalPlanBuilder::from(Arc::unwrap_or_clone(alias.input)).project(columns)?;
            Ok(Transformed::yes(projection.build()?))
        }
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) => Ok(Transformed::no(node)),
        other => Ok(Transformed::new(other, false, TreeNodeRecursion::Jump)),
    })?;
    Ok(Expr::ScalarSubquery(ready(subquery(Arc::new(plan.data), of))?))
}

/// A query of one column under a name of its own: a column outside its list that the condition
/// needs is added to that, where it may be called the same.
fn renamed(plan: LogicalPlan) -> Result<LogicalPlan> {
    const NAME: &str = "the only column";
    match plan {
        LogicalPlan::Projection(node) if node.expr.len() == 1 => {
            let before = only_column(&node.input);
            let input = renamed(Arc::unwrap_or_clone(node.input))?;
            let after = only_column(&input);
            let value = node.expr[0].clone().unalias().transform_up(|expr| {
                let is_it = before != after && expr == before;
                Ok(if is_it { Transformed::yes(after.clone()) } else { Transformed::no(expr) })
            })?;
            LogicalPlanBuilder::from(input).project([value.data.alias(NAME)])?.build()
        }
        other => Ok(other),
    }
}

/// Of a plan that has one row, or none where a filter drops it: that filter.
fn filter_of_one_row(plan: &LogicalPlan) -> Option<&Filter> {
    match plan {
        LogicalPlan::Projection(node) => filter_of_one_row(&node.input),
        LogicalPlan::SubqueryAlias(node) => filter_of_one_row(&node.input),
        LogicalPlan::Filter(node) if has_one_row(&node.input) => Some(node),
        _ => None,
    }
}

/// Whether there is one row, whatever the tables hold: an aggregate without groups.
fn has_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(node) => node.group_expr.is_empty(),
        LogicalPlan::Projection(node) => has_one_row(&node.input),
        LogicalPlan::SubqueryAlias(node) => has_one_row(&node.input),
        _ => false,
    }
}

/// OFFSET and LIMIT; `None` where they are not numbers.
pub(super) fn bounds(limit: &Limit) -> Result<Option<(usize, Option<usize>)>> {
    Ok(match (limit.get_skip_type()?, limit.get_fetch_type()?) {
        (SkipType::Literal(skip), FetchType::Literal(fetch)) => Some((skip, fetch)),
        _ => None,
    })
}

pub(super) fn has_grouping_sets(keys: &[Expr]) -> bool {
    keys.iter().any(|key| matches!(key, Expr::GroupingSet(_)))
}

fn subquery(plan: Arc<LogicalPlan>, of: &Subquery) -> Subquery {
    Subquery {
        outer_ref_columns: plan.all_out_ref_exprs(),
        subquery: plan,
        spans: of.spans.clone(),
    }
}

/// A subquery that may become a join.
pub(super) fn ready(subquery: Subquery) -> Result<Subquery> {
    if !is_correlated(&subquery.subquery) {
        return Ok(subquery);
    }
    check(&subquery.subquery)?;
    let plan = told_apart(separated(Arc::unwrap_or_clone(subquery.subquery))?)?;
    Ok(Subquery {
        outer_ref_columns: plan.all_out_ref_exprs(),
        subquery: Arc::new(plan),
        ..subquery
    })
}

/// The plan, in which columns that a condition with rows outside needs have names of their own, and
/// come out at the top. Of the tables within only their columns' names are left of them in the join
/// (`replace_qualified_name`), so that one was taken for another; and what is added to a projection
/// for the condition's sake was not to be found above a join or a table's alias.
fn told_apart(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut needed: Vec<Column> = vec![];
    plan.apply(|node| {
        if let LogicalPlan::Filter(filter) = node {
            let conditions = split_conjunction(&filter.predicate)
                .into_iter()
                .filter(|part| part.contains_outer());
            for column in conditions.flat_map(|part| part.column_refs()) {
                if !needed.contains(column) {
                    needed.push(column.clone());
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let shown = plan.schema().columns();
    let clashes = |column: &Column| {
        needed
            .iter()
            .chain(&shown)
            .any(|other| other.name == column.name && other.relation != column.relation)
    };
    let deep = plan.exists(|node| {
        let hides = matches!(node, LogicalPlan::SubqueryAlias(_) | LogicalPlan::Join(_));
        Ok(hides && node.inputs().into_iter().any(is_correlated))
    })?;
    if !deep && !needed.iter().any(clashes) {
        return Ok(plan);
    }
    let mut number = 0;
    let plan = plan.transform_up(|node| {
        let filter = match node {
            LogicalPlan::Filter(filter) => filter,
            LogicalPlan::Projection(projection) => {
                let (input, mut exprs) = (Arc::unwrap_or_clone(projection.input), projection.expr);
                let added = input
                    .schema()
                    .columns()
                    .into_iter()
                    .filter(|column| column.name.starts_with(NEEDED));
                let added = added
                    .map(Expr::Column)
                    .filter(|column| !exprs.contains(column))
                    .collect::<Vec<_>>();
                exprs.extend(added);
                return Ok(Transformed::yes(
                    LogicalPlanBuilder::from(input).project(exprs)?.build()?,
                ));
            }
            // Columns were added below.
            node => return Ok(Transformed::yes(node.recompute_schema()?)),
        };
        let mut names: Vec<(Column, String)> = vec![];
        let mut parts = vec![];
        for part in split_conjunction(&filter.predicate) {
            if !part.contains_outer() {
                parts.push(part.clone());
                continue;
            }
            let renamed = part.clone().transform_up(|expr| {
                let Expr::Column(column) = expr else { return Ok(Transformed::no(expr)) };
                let known =
                    names.iter().find(|(of, _)| *of == column).map(|(_, name)| name.clone());
                let name = known.unwrap_or_else(|| {
                    number += 1;
                    names.push((column, format!("{NEEDED}{number}")));
                    format!("{NEEDED}{number}")
                });
                Ok(Transformed::yes(Expr::Column(Column::new_unqualified(name))))
            })?;
            parts.push(renamed.data);
        }
        let Some(predicate) = conjunction(parts).filter(|_| !names.is_empty()) else {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        };
        let columns = filter.input.schema().columns().into_iter().map(Expr::Column);
        let added = names.into_iter().map(|(column, name)| Expr::Column(column).alias(name));
        let input = LogicalPlanBuilder::from(Arc::unwrap_or_clone(filter.input))
            .project(columns.chain(added))?;
        Ok(Transformed::yes(input.filter(predicate)?.build()?))
    })?;
    match plan.data.schema().fields().len() == shown.len() {
        true => Ok(plan.data),
        false => LogicalPlanBuilder::from(plan.data)
            .project(shown.into_iter().map(Expr::Column))?
            .build(),
    }
}

/// Before the numbers of columns that a condition with rows outside needs.
const NEEDED: &str = "correlated column ";

/// The plan, in which something stands between a condition that names rows outside and another
/// below it: of both DataFusion notes the columns that they need by the plan beneath, and of one
/// plan only the last ones.
fn separated(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up(|node| match node {
        LogicalPlan::Filter(filter)
            if filter.predicate.contains_outer()
                && matches!(
                    *filter.input,
                    LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_)
                )
                && is_correlated(&filter.input) =>
        {
            let columns =
                filter.input.schema().columns().into_iter().map(Expr::Column).collect::<Vec<_>>();
            let input =
                LogicalPlanBuilder::from(Arc::unwrap_or_clone(filter.input)).project(columns)?;
            Ok(Transformed::yes(input.filter(filter.predicate)?.build()?))
        }
        node => Ok(Transformed::no(node)),
    })?;
    Ok(plan.data)
}

/// Refuses a correlated subquery of EXISTS that would come out wrong.
pub(super) fn check_exists(plan: &LogicalPlan) -> Result<()> {
    if !is_correlated(plan) {
        return Ok(());
    }
    plan.apply(|node| match node {
        LogicalPlan::Subquery(_) => Ok(TreeNodeRecursion::Jump),
        LogicalPlan::Limit(limit) if is_correlated(&limit.input) => {
            Err(unsupported("LIMIT or OFFSET"))
        }
        _ => Ok(TreeNodeRecursion::Continue),
    })?;
    check(plan)
}

/// Refuses a correlated subquery that would come out wrong: as a value, of IN, or of EXISTS.
pub(super) fn check(plan: &LogicalPlan) -> Result<()> {
    if !is_correlated(plan) {
        return Ok(());
    }
    check_below(plan, true)
}

/// `top`: nothing but what keeps the one row of an aggregate stands above.
fn check_below(plan: &LogicalPlan, top: bool) -> Result<()> {
    let correlated = |inputs: &[&Arc<LogicalPlan>]| inputs.iter().any(|input| is_correlated(input));
    let top = match plan {
        LogicalPlan::Subquery(_) => return Ok(()),
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Filter(_) => top,
        LogicalPlan::Sort(_) | LogicalPlan::Limit(_) => top,
        LogicalPlan::Window(node) if correlated(&[&node.input]) => {
            return Err(unsupported("a window function"));
        }
        LogicalPlan::Aggregate(node) if correlated(&[&node.input]) => {
            if has_grouping_sets(&node.group_expr) {
                return Err(unsupported("GROUPING SETS, ROLLUP or CUBE"));
            }
            if node.group_expr.is_empty() && !top {
                return Err(unsupported("an aggregate without GROUP BY within a larger query"));
            }
            false
        }
        LogicalPlan::RecursiveQuery(_) if is_correlated(plan) => {
            return Err(unsupported("WITH RECURSIVE"));
        }
        LogicalPlan::Join(join) => {
            use JoinType::*;
            let refused: &[&Arc<LogicalPlan>] = match join.join_type {
                Inner => &[],
                Left | LeftSemi | LeftAnti | LeftMark => &[&join.right],
                Right | RightSemi | RightAnti | RightMark => &[&join.left],
                Full => &[&join.left, &join.right],
            };
            if correlated(refused) {
                return Err(unsupported("a side of an outer join, or of a semi or anti join,"));
            }
            false
        }
        _ => false,
    };
    plan.inputs().into_iter().try_for_each(|input| check_below(input, top))
}

fn unsupported(what: &str) -> DataFusionError {
    let what = format!("{what} over rows that a condition of a correlated subquery selects");
    Error::unsupported(what, "the subquery cannot be made a join").into()
}
