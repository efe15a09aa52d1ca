//! Correlated scalar subqueries that need not have one row by their form, and those that compare
//! rows outside by anything but equality. DataFusion (55.2) refuses them.
//!
//! ```text
//!   (SELECT m.name FROM emp m WHERE m.id = e.mgr)
//!
//!   one_row_value(found, rows)
//!     Left Join: e.mgr = key
//!       TableScan: e
//!       Aggregate: key: first_value(m.name) AS found, count(*) AS rows
//!         Projection: m.id AS key, m.name
//!           TableScan: m
//! ```
//!
//! That there is more than one row is an error where the expression is computed, above the join: a
//! key that no row outside has may have any number. `ORDER BY … LIMIT 1` is `first_value` in that
//! order, of any number of rows. What is no equality of rows outside with those within goes the way
//! of `numbered.rs`.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::array_agg::array_agg;
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::functions_nested::expr_fn::array_element;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{
    BinaryExpr, Distinct, Expr, ExprFunctionExt, ExprSchemable, Filter, LogicalPlan,
    LogicalPlanBuilder, Operator, SortExpr, Subquery, lit,
};
use datafusion::optimizer::decorrelate::PullUpCorrelatedExpr;

use super::super::correlation::{self, bounds, is_correlated};
use super::numbered::NumberedRows;
use super::{NameGenerator, has_subquery};
use crate::error::Error;
use crate::plan::{can_fail, into_operands, is_volatile, one_row_value};

/// Whether such a subquery is made a join here, and not by DataFusion.
pub(in crate::session::rules) fn is_lookup(subquery: &Subquery) -> bool {
    let plan = subquery.subquery.as_ref();
    is_correlated(plan) && !(is_aggregate(plan) && is_pulled_up(plan))
}

/// Whether a part of the expression is such a subquery.
pub(super) fn has_lookup(expr: &Expr) -> bool {
    // Nothing fails here.
    let is_it = |expr: &Expr| matches!(expr, Expr::ScalarSubquery(subquery) if is_lookup(subquery));
    expr.exists(|expr| Ok(is_it(expr))).unwrap_or(false)
}

/// Whether a scalar subquery is an aggregation of all its rows, or one that a condition drops.
fn is_aggregate(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(node) => is_aggregate(&node.input),
        LogicalPlan::SubqueryAlias(node) => is_aggregate(&node.input),
        LogicalPlan::Filter(node) => is_aggregate(&node.input),
        LogicalPlan::Aggregate(node) => node.group_expr.is_empty(),
        _ => false,
    }
}

/// Whether DataFusion makes a join of the conditions that name rows outside, and a right one.
pub(super) fn is_pulled_up(plan: &LogicalPlan) -> bool {
    let stays = |node: &LogicalPlan| {
        Ok(match node {
            LogicalPlan::Distinct(Distinct::On(_)) => is_correlated(node),
            // What can fail keeps its place (`guards.rs`).
            LogicalPlan::Filter(filter) => split_conjunction(&filter.predicate)
                .into_iter()
                .any(|part| part.contains_outer() && can_fail(part, filter.input.schema())),
            _ => false,
        })
    };
    if correlation::check(plan).is_err() || plan.exists(stays).unwrap_or(true) {
        return false;
    }
    let mut pull_up = PullUpCorrelatedExpr::new().with_need_handle_count_bug(true);
    plan.clone().rewrite(&mut pull_up).is_ok() && pull_up.can_pull_up
}

/// Columns of rows around it that a subquery names.
pub(super) fn names_outside(plan: &LogicalPlan) -> Result<Vec<Column>> {
    let mut names = vec![];
    plan.apply(|node| {
        // What a LATERAL one names are columns beside it.
        if matches!(node, LogicalPlan::Subquery(_)) {
            return Ok(TreeNodeRecursion::Jump);
        }
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::OuterReferenceColumn(_, column) = expr {
                    names.push(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(names)
}

/// Columns of rows around them that the subqueries of an expression name.
pub(super) fn names_of_subqueries(expr: &Expr) -> Result<Vec<Column>> {
    let mut names = vec![];
    expr.apply(|expr| {
        let subquery = match expr {
            Expr::ScalarSubquery(subquery) => subquery,
            Expr::Exists(exists) => &exists.subquery,
            Expr::InSubquery(member) => &member.subquery,
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        names.extend(names_outside(&subquery.subquery)?);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(names)
}

/// That a subquery names a column that the rows around it do not have.
pub(super) fn out_of_reach(column: &Column, called: &str) -> DataFusionError {
    let what = format!("{} in {called}", column.flat_name());
    Error::unsupported(what, "it may only name columns of the query right around it").into()
}

/// The plan with columns more, and the subquery's value over those.
pub(super) fn found(
    plan: LogicalPlan,
    subquery: &Subquery,
    generator: &mut NameGenerator,
) -> Result<(LogicalPlan, Expr)> {
    // An error tells this name.
    let mut name = Column::from(subquery.subquery.schema().qualified_field(0)).flat_name();
    if plan.schema().fields().iter().any(|field| *field.name() == name) {
        name = generator.name("found");
    }
    match KeyedRows::of(&subquery.subquery, plan.schema())? {
        Some(rows) => rows.value(plan, name, generator),
        None => NumberedRows::new(plan, "a correlated scalar subquery", generator)?
            .value(&subquery.subquery, name),
    }
}

/// A subquery's rows that equalities with rows outside select: what is above their conditions,
/// in terms of the columns below.
pub(super) struct KeyedRows {
    values: Vec<Expr>,
    order: Vec<SortExpr>,
    /// OFFSET and LIMIT.
    pub(super) limit: Option<(usize, Option<usize>)>,
    /// Within, and outside.
    keys: Vec<(Expr, Expr)>,
    input: LogicalPlan,
}

impl KeyedRows {
    /// `None` where the subquery is more than that.
    pub(super) fn of(plan: &LogicalPlan, outer: &DFSchema) -> Result<Option<Self>> {
        let mut values: Vec<_> = plan.schema().columns().into_iter().map(Expr::Column).collect();
        let (mut order, mut limit, mut conditions) = (Vec::<SortExpr>::new(), None, vec![]);
        let mut node = plan;
        loop {
            let (below, exprs): (_, Vec<Expr>) = match node {
                LogicalPlan::Projection(project)
                    if !project.expr.iter().any(|expr| has_subquery(expr) || is_volatile(expr)) =>
                {
                    (&project.input, project.expr.iter().cloned().map(Expr::unalias).collect())
                }
                LogicalPlan::SubqueryAlias(alias) => {
                    let columns = alias.input.schema().columns();
                    (&alias.input, columns.into_iter().map(Expr::Column).collect())
                }
                LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
                    if limit.is_some() && order.is_empty() {
                        order = sort.expr.clone();
                    }
                    node = &sort.input;
                    continue;
                }
                LogicalPlan::Limit(node_limit) if limit.is_none() && conditions.is_empty() => {
                    limit = bounds(node_limit)?;
                    if limit.is_none() {
                        return Ok(None);
                    }
                    node = &node_limit.input;
                    continue;
                }
                LogicalPlan::Filter(filter) if !has_subquery(&filter.predicate) => {
                    conditions.extend(into_operands(filter.predicate.clone(), Operator::And));
                    node = &filter.input;
                    continue;
                }
                _ => break,
            };
            let schema = node.schema();
            let over_below = |expr: Expr| -> Result<Expr> {
                let expr = expr.transform_down(|expr| match &expr {
                    Expr::Column(column) => {
                        let below = exprs[schema.index_of_column(column)?].clone();
                        Ok(Transformed::new(below, true, TreeNodeRecursion::Jump))
                    }
                    _ => Ok(Transformed::no(expr)),
                })?;
                Ok(expr.data)
            };
            values = values.into_iter().map(over_below).collect::<Result<_>>()?;
            conditions = conditions.into_iter().map(over_below).collect::<Result<_>>()?;
            for key in &mut order {
                key.expr = over_below(key.expr.clone())?;
            }
            node = below;
        }
        let mut all = values.iter().chain(order.iter().map(|key| &key.expr));
        if is_correlated(node) || all.any(Expr::contains_outer) {
            return Ok(None);
        }
        let (mut keys, mut own) = (vec![], vec![]);
        for condition in conditions {
            if !condition.contains_outer() {
                own.push(condition);
                continue;
            }
            match key(condition, node.schema(), outer)? {
                Some(key) => keys.push(key),
                None => return Ok(None),
            }
        }
        if keys.is_empty() {
            return Ok(None);
        }
        let input = match conjunction(own) {
            Some(own) => LogicalPlan::Filter(Filter::try_new(own, node.clone().into())?),
            None => node.clone(),
        };
        Ok(Some(KeyedRows { values, order, limit, keys, input }))
    }

    /// These rows with columns for the keys, the values and the order.
    pub(super) fn named(self, generator: &mut NameGenerator) -> Result<NamedRows> {
        let mut exprs = vec![];
        let mut column = |expr: Expr, what: &str| {
            let name = generator.name(what);
            exprs.push(expr.alias(&name));
            Expr::Column(Column::new_unqualified(name))
        };
        let mut keys = vec![];
        for (within, outside) in self.keys {
            keys.push((column(within, "key"), outside));
        }
        let values: Vec<_> = self.values.into_iter().map(|value| column(value, "value")).collect();
        let mut order = self.order;
        for key in &mut order {
            key.expr = column(std::mem::take(&mut key.expr), "order");
        }
        let plan = LogicalPlanBuilder::from(self.input).project(exprs)?.build()?;
        Ok(NamedRows { plan, keys, values, order })
    }

    /// `found`: what the value's column shall be called.
    fn value(
        self,
        outer: LogicalPlan,
        found: String,
        generator: &mut NameGenerator,
    ) -> Result<(LogicalPlan, Expr)> {
        let (skip, fetch) = self.limit.unwrap_or((0, None));
        if fetch == Some(0) {
            let dtype = self.values[0].get_type(self.input.schema())?;
            return Ok((outer, lit(ScalarValue::try_from(&dtype)?)));
        }
        let rows = self.named(generator)?;
        let value = rows.values[0].clone();
        let number = generator.name("rows");
        let column = |name: &str| Expr::Column(Column::new_unqualified(name));
        let mut calls = vec![match skip {
            0 => first_value(value, rows.order).alias(&found),
            _ => array_agg(value).order_by(rows.order).build()?.alias(&found),
        }];
        let place = i64::try_from(skip).unwrap_or(i64::MAX);
        let mut value = match skip {
            0 => column(&found),
            _ => array_element(column(&found), lit(place.saturating_add(1))),
        };
        if fetch != Some(1) {
            calls.push(count(lit(1i64)).alias(&number));
            let number = if skip == 0 { column(&number) } else { column(&number) - lit(place) };
            value = one_row_value(value, number);
        }
        let by = rows.keys.iter().map(|(within, _)| within.clone());
        let right = LogicalPlanBuilder::from(rows.plan).aggregate(by, calls)?.build()?;
        let on = rows.keys.into_iter().map(|(within, outside)| outside.eq(within));
        let plan = LogicalPlanBuilder::from(outer).join_on(right, JoinType::Left, on)?.build()?;
        Ok((plan, value))
    }
}

pub(super) struct NamedRows {
    pub(super) plan: LogicalPlan,
    pub(super) keys: Vec<(Expr, Expr)>,
    pub(super) values: Vec<Expr>,
    pub(super) order: Vec<SortExpr>,
}

/// What an equality compares: rows within, and rows outside. Floats are no keys: groups may tell
/// -0.0 from 0.0, which are equal.
fn key(condition: Expr, inner: &DFSchema, outer: &DFSchema) -> Result<Option<(Expr, Expr)>> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else {
        return Ok(None);
    };
    let (within, outside) = match left.contains_outer() {
        true => (right, left),
        false => (left, right),
    };
    let dtype = within.get_type(inner)?;
    let floating = dtype.is_floating() || dtype.is_nested() || dtype == DataType::Null;
    let plain = !within.contains_outer() && within.any_column_refs() && !outside.any_column_refs();
    if floating || !plain || is_volatile(&within) || is_volatile(&outside) {
        return Ok(None);
    }
    let mut known = true;
    let outside = outside.transform_up(|expr| match expr {
        Expr::OuterReferenceColumn(_, column) => {
            known &= outer.has_column(&column);
            Ok(Transformed::yes(Expr::Column(column)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(known.then_some((*within, outside.data)))
}
