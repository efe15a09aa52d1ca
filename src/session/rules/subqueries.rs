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

mod conditions;
mod dependent;
mod joins;
mod names;
mod side;
mod tools;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, EmptyRelation, Expr, Join, LogicalPlan, LogicalPlanBuilder,
    Projection, Sort, Subquery, Union, Values, Window,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;

use self::dependent::{Below, Lifts};
use self::names::{construct, free_of, is_correlated, is_lateral, subquery_of};
use super::{any_node, holds_subquery};
use crate::error::Error;
use crate::plan::{FreshNames, UnknownAs, with_nulls_of_inputs};

/// Runs behind the coercion of types.
#[derive(Debug)]
pub(super) struct LiftSubqueries;

impl AnalyzerRule for LiftSubqueries {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
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
        if generator.is_unused() {
            return Ok(plan);
        }
        // DataFusion takes the value of a subquery to be null where the column is, but so it is
        // where there is no row.
        let plan = plan.transform_up_with_subqueries(with_nulls_of_inputs)?.data;
        // Coercion may have changed the types of a union's columns after subqueries named them.
        match any_node(&plan, |node| Ok(matches!(node, LogicalPlan::Union(_))))? {
            true => TypeCoercion::new().analyze(plan, config),
            false => Ok(plan),
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
        LogicalPlan::Filter(filter) => conditions::filter(filter, generator).map(Transformed::yes),
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
        LogicalPlan::Join(join) => joins::join(join, generator).map(Transformed::yes),
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
    match plan {
        LogicalPlan::Subquery(node) => Ok(Transformed::yes(Arc::unwrap_or_clone(node.subquery))),
        LogicalPlan::SubqueryAlias(_) if is_wrapped(&plan) => plan.map_children(bare),
        other => Ok(Transformed::no(other)),
    }
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
    let exprs =
        project.expr.into_iter().map(|expr| below.listed(expr)).collect::<Result<Vec<_>>>()?;
    let input = below.plan()?;
    let exprs = exprs.into_iter().map(|expr| {
        let name = names.save(&expr);
        Ok(name.restore(renamed(expr, input.schema(), generator)?))
    });
    let exprs = exprs.collect::<Result<Vec<_>>>()?;
    Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?))
}

fn aggregate(aggregate: Aggregate, generator: &mut FreshNames) -> Result<LogicalPlan> {
    let mut below = Below::new(Arc::unwrap_or_clone(aggregate.input), generator);
    let mut listed = |expr: Expr| match expr {
        Expr::GroupingSet(_) => {
            Ok(expr.map_children(|key| Ok(Transformed::yes(below.listed(key)?)))?.data)
        }
        other => below.listed(other),
    };
    let group_expr = aggregate.group_expr.into_iter().map(&mut listed).collect::<Result<_>>()?;
    let aggr_expr = aggregate.aggr_expr.into_iter().map(listed).collect::<Result<_>>()?;
    let input = Arc::new(below.plan()?);
    Ok(LogicalPlan::Aggregate(Aggregate::try_new(input, group_expr, aggr_expr)?))
}

fn window(window: Window, generator: &mut FreshNames) -> Result<LogicalPlan> {
    let columns = window.schema.columns();
    let mut below = Below::new(Arc::unwrap_or_clone(window.input), generator);
    let exprs = window.window_expr.into_iter().map(|expr| below.listed(expr));
    let exprs = exprs.collect::<Result<Vec<_>>>()?;
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
    let mut below = Below::new(Arc::unwrap_or_clone(on.input), generator);
    let on_expr = on.on_expr.into_iter().map(|expr| below.lifted(expr, UnknownAs::Itself));
    let on_expr = on_expr.collect::<Result<_>>()?;
    let select_expr = on.select_expr.into_iter().map(|expr| below.listed(expr));
    let select_expr = select_expr.collect::<Result<_>>()?;
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
