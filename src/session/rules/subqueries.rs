//! Subqueries in expressions, and LATERAL ones in FROM, become joins before DataFusion's rules run.
//!
//! Those rules (55.2, `ScalarSubqueryToJoin`, `DecorrelatePredicateSubquery`,
//! `DecorrelateLateralJoin`) pull the conditions that name rows around a subquery up through it.
//! What has another meaning below such a condition than above it came out wrong, without an error
//! (<https://github.com/apache/datafusion/issues/24960> and 25519), as did columns of one name, and
//! HAVING. Nothing is left to them but what names no rows around it: scalar subqueries, which are
//! values, and `x [NOT] IN (SELECT …)` as a condition of WHERE.
//!
//! ```text
//!   Sort: (SELECT max(a) FROM v) + b       Projection: t.a, t.b
//!     TableScan: t                           Sort: value_1 + b
//!                                              Projection: t.a, t.b, (SELECT …) AS value_1
//!                                                TableScan: t
//!
//!   Projection: t.a, EXISTS (…)              Projection: t.a, q_1.mark
//!     TableScan: t                             LeftMark Join: …
//!                                                TableScan: t
//!                                                Subquery
//! ```
//!
//! A subquery that is rows of a plan behind conditions is a side of a join as it is (`side.rs`): of
//! a semi or anti join where it is a condition of WHERE, of a mark join elsewhere. The others are
//! dependent joins (`dependent.rs`).
//!
//! A subquery whose column has the name of one beside it gets another: DataFusion takes the sums of
//! `sum(b) / (SELECT sum(b) FROM t)` for one.

mod below;
mod dependent;
mod names;
mod side;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, EmptyRelation, Expr, Filter, GroupingSet, Join, LogicalPlan,
    LogicalPlanBuilder, Operator, Projection, Sort, Subquery, SubqueryAlias, Union, Values, Window,
    binary_expr, lit, not,
};
use datafusion::optimizer::AnalyzerRule;

use self::below::{Below, Lifts, Member, side};
use self::names::{construct, free_of, has_subquery, is_correlated, is_lateral, subquery_of};
use self::side::RowsWanted;
use super::guards::has_failing_subquery;
use super::{any_node, holds_subquery};
use crate::error::Error;
use crate::plan::{
    FreshNames, UnknownAs, can_fail, into_operands, is_volatile, with_nulls_of_inputs,
};

/// Runs behind the coercion of types.
#[derive(Debug)]
pub(super) struct LiftSubqueries;

impl AnalyzerRule for LiftSubqueries {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let concerned = |node: &LogicalPlan| {
            Ok(matches!(node, LogicalPlan::Subquery(_))
                || holds_subquery(node)?
                || node.contains_outer_reference())
        };
        if !any_node(&plan, concerned)? {
            return Ok(plan);
        }
        let mut generator = FreshNames::of(&plan)?;
        let plan = plan.transform_down_with_subqueries(|node| lifted(node, &mut generator))?.data;
        match generator.is_unused() {
            true => Ok(plan),
            // DataFusion takes the value of a subquery to be null where the column is, but so it is
            // where there is no row.
            false => Ok(plan.transform_up_with_subqueries(with_nulls_of_inputs)?.data),
        }
    }

    fn name(&self) -> &str {
        "lift_subqueries"
    }
}

/// An error for a subquery that no rule has made a join of.
///
/// # Errors
/// `Unsupported`, with what the subquery is called and where it stands.
pub(in crate::session) fn refuse_what_is_left(plan: &LogicalPlan) -> crate::error::Result<()> {
    let mut left = None;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            let stays = expr.exists(|expr| match expr {
                Expr::ScalarSubquery(subquery) => is_correlated(&subquery.subquery),
                Expr::OuterReferenceColumn(..) => Ok(true),
                other => Ok(subquery_of(other).is_some()),
            })?;
            if stays {
                left = Some((construct(expr), node.display().to_string()));
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    match left {
        Some((what, place)) => {
            let why = "no join can be made of it there";
            Err(Error::unsupported(format!("{what} in {place}"), why))
        }
        None => Ok(()),
    }
}

fn lifted(node: LogicalPlan, generator: &mut FreshNames) -> Result<Transformed<LogicalPlan>> {
    // What is LATERAL shows in the names.
    let changed = node.inputs().into_iter().any(is_wrapped);
    let node = if changed { node.map_children(bare)?.data } else { node };
    if let LogicalPlan::Join(join) = &node
        && is_lateral(join)?
    {
        return lateral(join, generator).map(Transformed::yes);
    }
    if !holds_subquery(&node)? {
        return Ok(Transformed::new_transformed(node, changed));
    }
    let columns = node.schema().columns();
    match node {
        LogicalPlan::Filter(filter) => self::filter(filter, generator).map(Transformed::yes),
        LogicalPlan::Projection(project) => projection(project, generator).map(Transformed::yes),
        LogicalPlan::Aggregate(aggregate) => {
            self::aggregate(aggregate, generator).map(Transformed::yes)
        }
        LogicalPlan::Window(window) => self::window(window, generator).map(Transformed::yes),
        LogicalPlan::Sort(sort) => {
            let sort = with_columns_of_keys(sort)?;
            self::sort(sort, columns, generator).map(Transformed::yes)
        }
        LogicalPlan::Distinct(Distinct::On(on)) => distinct_on(on, generator).map(Transformed::yes),
        LogicalPlan::Join(join) => self::join(join, generator).map(Transformed::yes),
        LogicalPlan::Values(values) => match rows_of_values(&values)? {
            LogicalPlan::Projection(row) => projection(row, generator).map(Transformed::yes),
            rows => Ok(Transformed::yes(rows)),
        },
        other => Ok(Transformed::new_transformed(other, changed)),
    }
}

fn is_wrapped(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Subquery(_) => true,
        LogicalPlan::SubqueryAlias(alias) => matches!(*alias.input, LogicalPlan::Subquery(_)),
        _ => false,
    }
}

fn bare(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    Ok(match plan {
        LogicalPlan::Subquery(subquery) => {
            Transformed::yes(Arc::unwrap_or_clone(subquery.subquery))
        }
        LogicalPlan::SubqueryAlias(alias) => match alias.input.as_ref() {
            LogicalPlan::Subquery(subquery) => {
                let alias = SubqueryAlias::try_new(subquery.subquery.clone(), alias.alias)?;
                Transformed::yes(LogicalPlan::SubqueryAlias(alias))
            }
            _ => Transformed::no(LogicalPlan::SubqueryAlias(alias)),
        },
        other => Transformed::no(other),
    })
}

fn lateral(join: &Join, generator: &mut FreshNames) -> Result<LogicalPlan> {
    match join.join_type {
        JoinType::Inner | JoinType::Left => dependent::rows(join, generator),
        kind => {
            let what = format!("{} in a {kind} join", dependent::LATERAL);
            Err(Error::unsupported(what, "it has rows for each row of the other side").into())
        }
    }
}

/// The conditions with subqueries become joins, in their order; the others stand below and above.
fn filter(filter: Filter, generator: &mut FreshNames) -> Result<LogicalPlan> {
    let columns = filter.input.schema().columns();
    let schema = filter.input.schema().clone();
    // Rows that other conditions drop ask for nothing.
    let (mut first, mut later) = (vec![], vec![]);
    for condition in into_operands(filter.predicate, Operator::And) {
        let is_free = later.is_empty() || !can_fail(&condition, &schema);
        match is_free && !has_subquery(&condition) && !is_volatile(&condition) {
            true => first.push(condition),
            false => later.push(condition),
        }
    }
    if later.iter().map(stays).collect::<Result<Vec<_>>>()?.iter().all(|stays| *stays) {
        let all = conjunction(first.into_iter().chain(later)).unwrap_or_else(|| lit(true));
        let all = renamed(all, &schema, generator)?;
        return Ok(LogicalPlan::Filter(Filter::try_new(all, filter.input)?));
    }
    let filtered = |plan: LogicalPlan, conditions: &mut Vec<Expr>| {
        Ok::<_, datafusion::error::DataFusionError>(match conjunction(conditions.drain(..)) {
            Some(all) => LogicalPlan::Filter(Filter::try_new(all, Arc::new(plan))?),
            None => plan,
        })
    };
    let mut plan = filtered(Arc::unwrap_or_clone(filter.input), &mut first)?;
    let mut kept = vec![];
    for condition in later {
        if stays(&condition)? {
            kept.push(renamed(condition, plan.schema(), generator)?);
            continue;
        }
        // Its join stands behind what may guard it.
        if has_failing_subquery(&condition)? {
            plan = filtered(plan, &mut kept)?;
        }
        let (joined, condition) = conjunct(plan, condition, generator)?;
        plan = joined;
        if let Some(condition) = condition {
            kept.push(renamed(condition, plan.schema(), generator)?);
        }
    }
    only(filtered(plan, &mut kept)?, columns)
}

/// Whether DataFusion computes the subqueries of a condition.
fn stays(condition: &Expr) -> Result<bool> {
    match condition {
        Expr::Not(condition) => stays(condition),
        // A value without a column is no key of a join: nulls were lost, and matches
        // (<https://github.com/apache/datafusion/issues/25340>).
        Expr::InSubquery(InSubquery { expr, subquery, .. }) => Ok(!has_subquery(expr)
            && !is_correlated(&subquery.subquery)?
            && !expr.column_refs().is_empty()),
        other => Ok(!other.exists(|expr| match expr {
            Expr::ScalarSubquery(subquery) => is_correlated(&subquery.subquery),
            other => Ok(subquery_of(other).is_some()),
        })?),
    }
}

/// The rows that a condition with subqueries selects, as far as a semi or anti join can do that,
/// and what is left of it.
fn conjunct(
    plan: LogicalPlan,
    condition: Expr,
    generator: &mut FreshNames,
) -> Result<(LogicalPlan, Option<Expr>)> {
    let kind = |negated: bool| if negated { JoinType::LeftAnti } else { JoinType::LeftSemi };
    match condition {
        Expr::Not(operand) => match *operand {
            Expr::Not(operand) => conjunct(plan, *operand, generator),
            Expr::Exists(exists) => {
                let exists = Exists { negated: !exists.negated, ..exists };
                conjunct(plan, Expr::Exists(exists), generator)
            }
            Expr::InSubquery(member) => {
                let member = InSubquery { negated: !member.negated, ..member };
                conjunct(plan, Expr::InSubquery(member), generator)
            }
            other => embedded(plan, not(other), generator),
        },
        Expr::Exists(Exists { ref subquery, negated }) => {
            match side(&plan, &subquery.subquery, RowsWanted::Existence, generator)? {
                Some(side) => {
                    let name = generator.name("exists");
                    Ok((side.found(plan, kind(negated), None, &name)?, None))
                }
                None => embedded(plan, condition, generator),
            }
        }
        Expr::InSubquery(_) | Expr::SetComparison(_) => {
            let member = match condition.clone() {
                Expr::InSubquery(member) => Member::of_in(member),
                Expr::SetComparison(comparison) => Member::of_comparison(comparison)?,
                other => return embedded(plan, other, generator),
            };
            let mut below = Below::new(plan, generator);
            let value = below.compared(member.value)?;
            let plan = below.plan()?;
            let found = match is_volatile(&value) {
                true => None,
                false => side(&plan, &member.subquery.subquery, RowsWanted::Members, generator)?,
            };
            let Some(found) = found else { return embedded(plan, condition, generator) };
            let mut test = binary_expr(value.clone(), member.operator, found.values[0].clone());
            if member.negated && found.can_be_null(&value, plan.schema())? {
                test = Expr::IsNotFalse(Box::new(test));
            }
            let name = generator.name("exists");
            Ok((found.found(plan, kind(member.negated), Some(test), &name)?, None))
        }
        other => embedded(plan, other, generator),
    }
}

fn embedded(
    plan: LogicalPlan,
    condition: Expr,
    generator: &mut FreshNames,
) -> Result<(LogicalPlan, Option<Expr>)> {
    let mut below = Below::lifting(Lifts::AllButValues, plan, generator);
    let condition = below.lifted(condition, UnknownAs::False)?;
    Ok((below.plan()?, Some(condition)))
}

/// Scalar subqueries whose column has the name of one of the input's, which is of no table, with
/// another name.
fn renamed(expr: Expr, input: &DFSchema, generator: &mut FreshNames) -> Result<Expr> {
    let renamed = expr.transform_up(|expr| match expr {
        Expr::ScalarSubquery(subquery) => {
            let name = subquery.subquery.schema().field(0).name();
            match input.iter().any(|(table, field)| table.is_none() && field.name() == name) {
                true => Ok(Transformed::yes(Expr::ScalarSubquery(named_value(
                    subquery,
                    generator.name("value"),
                )?))),
                false => Ok(Transformed::no(Expr::ScalarSubquery(subquery))),
            }
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(renamed.data)
}

/// The subquery with a name for its column.
fn named_value(subquery: Subquery, name: String) -> Result<Subquery> {
    let column =
        Expr::Column(Column::from(subquery.subquery.schema().qualified_field(0))).alias(name);
    let plan =
        LogicalPlanBuilder::from(subquery.subquery.as_ref().clone()).project([column])?.build()?;
    Ok(Subquery { subquery: Arc::new(plan), ..subquery })
}

fn projection(project: Projection, generator: &mut FreshNames) -> Result<LogicalPlan> {
    let names = NamePreserver::new_for_projection();
    let input = Arc::unwrap_or_clone(project.input);
    let mut below = Below::lifting(Lifts::AllButValues, input, generator);
    let mut exprs = vec![];
    for expr in project.expr {
        let name = names.save(&expr);
        exprs.push(name.restore(below.lifted(expr, UnknownAs::Itself)?));
    }
    let input = below.plan()?;
    let exprs = exprs.into_iter().map(|expr| {
        let name = names.save(&expr);
        Ok(name.restore(renamed(expr, input.schema(), generator)?))
    });
    let exprs = exprs.collect::<Result<Vec<_>>>()?;
    Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?))
}

fn aggregate(aggregate: Aggregate, generator: &mut FreshNames) -> Result<LogicalPlan> {
    let names = NamePreserver::new_for_projection();
    let mut below = Below::new(Arc::unwrap_or_clone(aggregate.input), generator);
    let mut keep = |expr: Expr| -> Result<Expr> {
        let name = names.save(&expr);
        Ok(name.restore(below.lifted(expr, UnknownAs::Itself)?))
    };
    let mut group_expr = vec![];
    for expr in aggregate.group_expr {
        let mut all =
            |exprs: Vec<Expr>| exprs.into_iter().map(&mut keep).collect::<Result<Vec<_>>>();
        group_expr.push(match expr {
            Expr::GroupingSet(GroupingSet::Rollup(exprs)) => {
                Expr::GroupingSet(GroupingSet::Rollup(all(exprs)?))
            }
            Expr::GroupingSet(GroupingSet::Cube(exprs)) => {
                Expr::GroupingSet(GroupingSet::Cube(all(exprs)?))
            }
            Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => {
                let sets = sets.into_iter().map(all).collect::<Result<_>>()?;
                Expr::GroupingSet(GroupingSet::GroupingSets(sets))
            }
            other => keep(other)?,
        });
    }
    let aggr_expr = aggregate.aggr_expr.into_iter().map(&mut keep).collect::<Result<_>>()?;
    let input = Arc::new(below.plan()?);
    Ok(LogicalPlan::Aggregate(Aggregate::try_new(input, group_expr, aggr_expr)?))
}

fn window(window: Window, generator: &mut FreshNames) -> Result<LogicalPlan> {
    let columns = window.schema.columns();
    let names = NamePreserver::new_for_projection();
    let mut below = Below::new(Arc::unwrap_or_clone(window.input), generator);
    let mut exprs = vec![];
    for expr in window.window_expr {
        let name = names.save(&expr);
        exprs.push(name.restore(below.lifted(expr, UnknownAs::Itself)?));
    }
    let input = below.plan()?;
    let mut keys = vec![];
    let exprs = exprs
        .into_iter()
        .map(|expr| keys_apart(expr, &mut keys, generator))
        .collect::<Result<Vec<_>>>()?;
    let columns_and_keys = input.schema().columns().into_iter().map(Expr::Column).chain(keys);
    let input = LogicalPlanBuilder::from(input).project(columns_and_keys)?.build()?;
    only(LogicalPlan::Window(Window::try_new(exprs, Arc::new(input))?), columns)
}

/// The window function over keys that are columns; those that are not become columns below. The CPU
/// engine does not take the order of rows for the one that a computed key with a subquery asks for.
fn keys_apart(expr: Expr, keys: &mut Vec<Expr>, generator: &mut FreshNames) -> Result<Expr> {
    let mut column = |key: &mut Expr| {
        if !matches!(key, Expr::Column(_) | Expr::Literal(..)) {
            let name = generator.name("key");
            keys.push(std::mem::take(key).alias(&name));
            *key = Expr::Column(Column::new_unqualified(name));
        }
    };
    let apart = expr.transform_up(|expr| match expr {
        Expr::WindowFunction(mut call) => {
            call.params.partition_by.iter_mut().for_each(&mut column);
            call.params.order_by.iter_mut().for_each(|key| column(&mut key.expr));
            Ok(Transformed::yes(Expr::WindowFunction(call)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(apart.data)
}

/// A sort of rows that have the columns that subqueries in its keys name, where the select list has
/// not.
fn with_columns_of_keys(sort: Sort) -> Result<Sort> {
    let mut missing = vec![];
    for key in &sort.expr {
        missing.extend(free_of(&key.expr, DFSchema::empty_ref())?);
    }
    missing.retain(|column| !sort.input.schema().has_column(column));
    missing.sort();
    missing.dedup();
    let LogicalPlan::Projection(project) = sort.input.as_ref() else { return Ok(sort) };
    if missing.is_empty() || !missing.iter().all(|column| project.input.schema().has_column(column))
    {
        return Ok(sort);
    }
    let mut exprs = project.expr.clone();
    exprs.extend(missing.into_iter().map(Expr::Column));
    let input = LogicalPlan::Projection(Projection::try_new(exprs, project.input.clone())?);
    Ok(Sort { input: Arc::new(input), ..sort })
}

/// `columns`: those that it shall have.
fn sort(sort: Sort, columns: Vec<Column>, generator: &mut FreshNames) -> Result<LogicalPlan> {
    let mut below = Below::new(Arc::unwrap_or_clone(sort.input), generator);
    let mut keys = sort.expr;
    for key in &mut keys {
        key.expr = below.lifted(key.expr.clone(), UnknownAs::Itself)?;
    }
    let plan =
        LogicalPlan::Sort(Sort { expr: keys, input: Arc::new(below.plan()?), fetch: sort.fetch });
    only(plan, columns)
}

fn distinct_on(on: DistinctOn, generator: &mut FreshNames) -> Result<LogicalPlan> {
    let names = NamePreserver::new_for_projection();
    let mut below = Below::new(Arc::unwrap_or_clone(on.input), generator);
    let on_expr = on
        .on_expr
        .into_iter()
        .map(|expr| below.lifted(expr, UnknownAs::Itself))
        .collect::<Result<_>>()?;
    let mut select_expr = vec![];
    for expr in on.select_expr {
        let name = names.save(&expr);
        select_expr.push(name.restore(below.lifted(expr, UnknownAs::Itself)?));
    }
    let mut sort_expr = on.sort_expr;
    for key in sort_expr.iter_mut().flatten() {
        key.expr = below.lifted(key.expr.clone(), UnknownAs::Itself)?;
    }
    let input = Arc::new(below.plan()?);
    Ok(LogicalPlan::Distinct(Distinct::On(DistinctOn::try_new(
        on_expr,
        select_expr,
        sort_expr,
        input,
    )?)))
}

/// Conditions with subqueries: those of one side are lifted below it; of an inner join the others,
/// and EXISTS and IN, which make joins there, are conditions above it; a left or right join becomes
/// a dependent join with the side that is not preserved.
fn join(join: Join, generator: &mut FreshNames) -> Result<LogicalPlan> {
    use JoinType::{Inner, Left, Right};
    let columns = join.schema.columns();
    let inner = join.join_type == Inner;
    let Some(filter) = join.filter.clone() else { return Ok(LogicalPlan::Join(join)) };
    let (left_schema, right_schema) = (join.left.schema(), join.right.schema());
    let (mut kept, mut above, mut of_left, mut of_right) = (vec![], vec![], vec![], vec![]);
    for condition in into_operands(filter, Operator::And) {
        if !has_subquery(&condition) {
            kept.push(condition);
            continue;
        }
        let looked_at = looked_at(&condition)?;
        let of = |schema: &DFSchema| looked_at.iter().all(|column| schema.has_column(column));
        let scalar = !condition.exists(|expr| {
            Ok(!matches!(expr, Expr::ScalarSubquery(_)) && subquery_of(expr).is_some())
        })?;
        if of(left_schema) && (scalar || !inner) {
            of_left.push(condition);
        } else if of(right_schema) && (scalar || !inner) {
            of_right.push(condition);
        } else if inner {
            above.push(condition);
        } else if matches!(join.join_type, Left | Right) {
            return both_sides(join, generator);
        } else {
            let what = format!("{} in ON of a {} join", construct(&condition), join.join_type);
            return Err(Error::unsupported(what, "it looks at columns of both sides").into());
        }
    }
    let mut lifted = |side: Arc<LogicalPlan>, conditions: Vec<Expr>| -> Result<LogicalPlan> {
        let mut below = Below::new(Arc::unwrap_or_clone(side), generator);
        for condition in conditions {
            kept.push(below.lifted(condition, UnknownAs::False)?);
        }
        below.plan()
    };
    let (left, right) = (lifted(join.left, of_left)?, lifted(join.right, of_right)?);
    let joined = LogicalPlan::Join(Join::try_new(
        Arc::new(left),
        Arc::new(right),
        join.on,
        conjunction(kept),
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?);
    let plan = match conjunction(above) {
        Some(predicate) => self::filter(Filter::try_new(predicate, Arc::new(joined))?, generator)?,
        None => joined,
    };
    only(plan, columns)
}

/// A left or right join with conditions that look at both sides: for each row of the preserved one
/// the rows of the other.
fn both_sides(join: Join, generator: &mut FreshNames) -> Result<LogicalPlan> {
    if join.join_type == JoinType::Left {
        return dependent::rows(&join, generator);
    }
    let columns = join.schema.columns().into_iter().map(Expr::Column).collect::<Vec<_>>();
    let on = join.on.into_iter().map(|(left, right)| (right, left)).collect();
    let swapped = Join::try_new(
        join.right,
        join.left,
        on,
        join.filter,
        JoinType::Left,
        join.join_constraint,
        join.null_equality,
        false,
    )?;
    let plan = dependent::rows(&swapped, generator)?;
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// Columns that the subqueries of a condition look at, and what they are compared with.
fn looked_at(condition: &Expr) -> Result<Vec<Column>> {
    let mut columns = free_of(condition, DFSchema::empty_ref())?;
    condition.apply(|expr| {
        let member = match expr {
            Expr::InSubquery(member) => &member.expr,
            Expr::SetComparison(comparison) => &comparison.expr,
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        columns.extend(member.column_refs().into_iter().cloned());
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(columns)
}

/// The rows of VALUES as select lists of no table, in which subqueries may stand.
fn rows_of_values(values: &Values) -> Result<LogicalPlan> {
    let mut rows = vec![];
    for row in &values.values {
        let of_no_table = LogicalPlan::EmptyRelation(EmptyRelation {
            produce_one_row: true,
            schema: Arc::new(DFSchema::empty()),
        });
        let exprs = row.iter().zip(values.schema.iter()).map(|(value, (qualifier, field))| {
            value.clone().unalias().alias_qualified(qualifier.cloned(), field.name())
        });
        let row = Projection::try_new(exprs.collect(), Arc::new(of_no_table))?;
        rows.push(Arc::new(LogicalPlan::Projection(row)));
    }
    Ok(match rows.len() {
        1 => Arc::unwrap_or_clone(rows.remove(0)),
        _ => LogicalPlan::Union(Union { inputs: rows, schema: values.schema.clone() }),
    })
}

/// These columns of a plan, if it has more.
fn only(plan: LogicalPlan, columns: Vec<Column>) -> Result<LogicalPlan> {
    if plan.schema().fields().len() == columns.len() {
        return Ok(plan);
    }
    let columns = columns.into_iter().map(Expr::Column).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}
