//! Subqueries where DataFusion's rules do not look for them.
//!
//! Its rules (55.2, `ScalarSubqueryToJoin`, `DecorrelatePredicateSubquery`) make joins of scalar
//! subqueries in filters and in select lists, and of EXISTS and IN in filters. Elsewhere subqueries
//! stay in their expressions, where the device does not run them, the CPU engine only some
//! (<https://github.com/apache/datafusion/issues/23022>), and one in the order of a window
//! fails. So they are lifted below the operator first:
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
//! A subquery whose column has the name of one beside it gets another: DataFusion takes the sums of
//! `sum(b) / (SELECT sum(b) FROM t)` for one.

mod below;
mod lateral;
mod lookup;
mod mark_join;
mod numbered;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, merge_schema};
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, Filter, GroupingSet, Join, LogicalPlan,
    LogicalPlanBuilder, Operator, Projection, Sort, Subquery, Window, lit,
};
use datafusion::optimizer::AnalyzerRule;

use self::below::{Below, Lifts};
pub(super) use self::lateral::{concerns as is_lateral, unwrapped};
pub(super) use self::lookup::is_lookup;
use self::lookup::{names_of_subqueries, out_of_reach};
use super::{any_node, holds_subquery};
use crate::error::Error;
use crate::plan::{
    FreshNames as NameGenerator, UnknownAs, can_fail, into_operands, is_volatile,
    with_nulls_of_inputs,
};

/// Runs behind the coercion of types.
#[derive(Debug)]
pub(super) struct LiftSubqueries;

impl AnalyzerRule for LiftSubqueries {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let concerned = |node: &LogicalPlan| {
            Ok(matches!(node, LogicalPlan::Subquery(_)) || holds_subquery(node)?)
        };
        if !any_node(&plan, concerned)? {
            return Ok(plan);
        }
        let mut generator = NameGenerator::of(&plan)?;
        let plan = plan.transform_up_with_subqueries(|node| lifted(node, &mut generator))?.data;
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
        if is_lateral(node) && left.is_none() {
            left = Some((lateral::CALLED, "FROM".into()));
        }
        node.apply_expressions(|expr| {
            let stays = expr.exists(|node| {
                Ok(match node {
                    Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) => true,
                    Expr::ScalarSubquery(subquery) => !subquery.outer_ref_columns.is_empty(),
                    _ => false,
                })
            })?;
            if stays {
                left = Some((mark_join::construct(expr), node.display().to_string()));
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    match left {
        Some((what, place)) => {
            let why = "its subquery looks at columns outside of it in a way that is no equality of a join";
            Err(Error::unsupported(format!("{what} in {place}"), why))
        }
        None => Ok(()),
    }
}

fn is_subquery(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_))
}

fn has_subquery(expr: &Expr) -> bool {
    // Nothing fails here.
    expr.exists(|node| Ok(is_subquery(node))).unwrap_or(false)
}

fn lifted(node: LogicalPlan, generator: &mut NameGenerator) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Join(join) = node {
        let columns = join.schema.columns();
        let node = only(lateral::join(join, generator)?, columns)?;
        return match has_subqueries(&node)? {
            true => lifted_out(node, generator),
            false => Ok(Transformed::yes(node)),
        };
    }
    match has_subqueries(&node)? {
        true => lifted_out(node, generator),
        false => Ok(Transformed::no(node)),
    }
}

fn has_subqueries(node: &LogicalPlan) -> Result<bool> {
    let mut concerned = false;
    node.apply_expressions(|expr| {
        concerned |= has_subquery(expr);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(concerned)
}

fn lifted_out(
    node: LogicalPlan,
    generator: &mut NameGenerator,
) -> Result<Transformed<LogicalPlan>> {
    let columns = node.schema().columns();
    let node = match node {
        LogicalPlan::Sort(sort) => LogicalPlan::Sort(with_columns_of_keys(sort)?),
        other => other,
    };
    let inputs = merge_schema(&node.inputs());
    node.apply_expressions(|expr| {
        match names_of_subqueries(expr)?.iter().find(|column| !inputs.has_column(column)) {
            Some(column) => Err(out_of_reach(column, mark_join::construct(expr))),
            None => Ok(TreeNodeRecursion::Continue),
        }
    })?;
    match node {
        LogicalPlan::Filter(filter) => self::filter(filter, generator).map(Transformed::yes),
        LogicalPlan::Projection(project) => projection(project, generator).map(Transformed::yes),
        LogicalPlan::Aggregate(aggregate) => {
            self::aggregate(aggregate, generator).map(Transformed::yes)
        }
        LogicalPlan::Window(window) => self::window(window, generator).map(Transformed::yes),
        LogicalPlan::Sort(sort) => self::sort(sort, columns, generator).map(Transformed::yes),
        LogicalPlan::Distinct(Distinct::On(on)) => distinct_on(on, generator).map(Transformed::yes),
        LogicalPlan::Join(join) => self::join(join, generator).map(Transformed::yes),
        other => Ok(Transformed::no(other)),
    }
}

/// Of a condition only scalar subqueries that need not have one row: DataFusion makes joins of the
/// others.
fn filter(filter: Filter, generator: &mut NameGenerator) -> Result<LogicalPlan> {
    let columns = filter.input.schema().columns();
    let mut input = filter.input;
    let mut predicate = filter.predicate;
    if lookup::has_lookup(&predicate) {
        // Rows that other conditions drop look for nothing.
        let schema = input.schema().clone();
        let (mut first, mut later) = (vec![], vec![]);
        for condition in into_operands(predicate, Operator::And) {
            let is_free = later.is_empty() || !can_fail(&condition, &schema);
            match is_free && !has_subquery(&condition) && !is_volatile(&condition) {
                true => first.push(condition),
                false => later.push(condition),
            }
        }
        if let Some(first) = conjunction(first) {
            input = Arc::new(LogicalPlan::Filter(Filter::try_new(first, input)?));
        }
        let mut below =
            Below::lifting(Lifts::Lookups, Arc::unwrap_or_clone(input), "WHERE", generator);
        let later = later.into_iter().map(|condition| below.lifted(condition, UnknownAs::False));
        let later = later.collect::<Result<Vec<_>>>()?;
        predicate = conjunction(later).unwrap_or_else(|| lit(true));
        input = Arc::new(below.plan()?);
    }
    let predicate = renamed(predicate, input.schema(), generator)?;
    only(LogicalPlan::Filter(Filter::try_new(predicate, input)?), columns)
}

/// Scalar subqueries whose column has the name of one of the input's, which is of no table, with
/// another name.
fn renamed(expr: Expr, input: &DFSchema, generator: &mut NameGenerator) -> Result<Expr> {
    let renamed = expr.transform_up(|expr| match expr {
        Expr::ScalarSubquery(subquery) => {
            let name = subquery.subquery.schema().field(0).name();
            match input.iter().any(|(table, field)| table.is_none() && field.name() == name) {
                true => Ok(Transformed::yes(Expr::ScalarSubquery(named(
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
fn named(subquery: Subquery, name: String) -> Result<Subquery> {
    let column =
        Expr::Column(Column::from(subquery.subquery.schema().qualified_field(0))).alias(name);
    let plan =
        LogicalPlanBuilder::from(subquery.subquery.as_ref().clone()).project([column])?.build()?;
    Ok(Subquery { subquery: Arc::new(plan), ..subquery })
}

/// Of the select list EXISTS and IN, and scalar subqueries that need not have one row: DataFusion
/// makes joins of the others.
fn projection(project: Projection, generator: &mut NameGenerator) -> Result<LogicalPlan> {
    let node = LogicalPlan::Projection(project.clone());
    let names = NamePreserver::new(&node);
    let mut below = Below::lifting(
        Lifts::AllButAggregates,
        Arc::unwrap_or_clone(project.input),
        "the select list",
        generator,
    );
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

fn aggregate(aggregate: Aggregate, generator: &mut NameGenerator) -> Result<LogicalPlan> {
    let names = NamePreserver::new_for_projection();
    let mut below =
        Below::new(Arc::unwrap_or_clone(aggregate.input), "GROUP BY or an aggregate", generator);
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

fn window(window: Window, generator: &mut NameGenerator) -> Result<LogicalPlan> {
    let columns = window.schema.columns();
    let names = NamePreserver::new_for_projection();
    let mut below = Below::new(Arc::unwrap_or_clone(window.input), "a window", generator);
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
fn keys_apart(expr: Expr, keys: &mut Vec<Expr>, generator: &mut NameGenerator) -> Result<Expr> {
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
        missing.extend(names_of_subqueries(&key.expr)?);
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
fn sort(sort: Sort, columns: Vec<Column>, generator: &mut NameGenerator) -> Result<LogicalPlan> {
    let mut below = Below::new(Arc::unwrap_or_clone(sort.input), "ORDER BY", generator);
    let mut keys = sort.expr;
    for key in &mut keys {
        key.expr = below.lifted(key.expr.clone(), UnknownAs::Itself)?;
    }
    let plan =
        LogicalPlan::Sort(Sort { expr: keys, input: Arc::new(below.plan()?), fetch: sort.fetch });
    only(plan, columns)
}

fn distinct_on(on: DistinctOn, generator: &mut NameGenerator) -> Result<LogicalPlan> {
    let names = NamePreserver::new_for_projection();
    let mut below = Below::new(Arc::unwrap_or_clone(on.input), "DISTINCT ON", generator);
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
/// and EXISTS and IN, which make joins there, are conditions above it.
fn join(join: Join, generator: &mut NameGenerator) -> Result<LogicalPlan> {
    let columns = join.schema.columns();
    let inner = join.join_type == JoinType::Inner;
    let Some(filter) = join.filter.clone() else { return Ok(LogicalPlan::Join(join)) };
    let mut left = Below::new(Arc::unwrap_or_clone(join.left), "ON", generator);
    let (mut kept, mut above, mut of_right) = (vec![], vec![], vec![]);
    let right_schema = join.right.schema().clone();
    for condition in into_operands(filter, Operator::And) {
        if !has_subquery(&condition) {
            kept.push(condition);
            continue;
        }
        let looked_at = looked_at(&condition)?;
        let of = |schema: &DFSchema| looked_at.iter().all(|column| schema.has_column(column));
        let scalar =
            !condition.exists(|node| Ok(matches!(node, Expr::Exists(_) | Expr::InSubquery(_))))?;
        if of(left.schema()) && (scalar || !inner) {
            kept.push(left.lifted(condition, UnknownAs::False)?);
        } else if of(&right_schema) && (scalar || !inner) {
            of_right.push(condition);
        } else if inner {
            above.push(condition);
        } else {
            let what = format!("{} in ON of an outer join", mark_join::construct(&condition));
            return Err(Error::unsupported(what, "it looks at columns of both sides").into());
        }
    }
    let left = left.plan()?;
    let mut right = Below::new(Arc::unwrap_or_clone(join.right), "ON", generator);
    for condition in of_right {
        kept.push(right.lifted(condition, UnknownAs::False)?);
    }
    let joined = Join::try_new(
        Arc::new(left),
        Arc::new(right.plan()?),
        join.on,
        conjunction(kept),
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    let plan = match conjunction(above) {
        Some(predicate) => {
            let joined = LogicalPlan::Join(joined);
            let predicate = renamed(predicate, joined.schema(), generator)?;
            LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(joined))?)
        }
        None => LogicalPlan::Join(joined),
    };
    only(plan, columns)
}

/// Columns that the subqueries of a condition look at, and what they are compared with.
fn looked_at(condition: &Expr) -> Result<Vec<Column>> {
    let mut columns = vec![];
    let mut add = |subquery: &Subquery| {
        columns.extend(subquery.outer_ref_columns.iter().filter_map(|expr| match expr {
            Expr::OuterReferenceColumn(_, column) => Some(column.clone()),
            _ => None,
        }));
    };
    let mut members = vec![];
    condition.apply(|node| {
        match node {
            Expr::ScalarSubquery(subquery) => add(subquery),
            Expr::Exists(exists) => add(&exists.subquery),
            Expr::InSubquery(member) => {
                add(&member.subquery);
                members.extend(member.expr.column_refs().into_iter().cloned());
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    columns.extend(members);
    Ok(columns)
}

/// These columns of a plan, if it has more.
fn only(plan: LogicalPlan, columns: Vec<Column>) -> Result<LogicalPlan> {
    if plan.schema().fields().len() == columns.len() {
        return Ok(plan);
    }
    let columns = columns.into_iter().map(Expr::Column).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}
