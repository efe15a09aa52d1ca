//! Subqueries whose rows equalities alone select, which are told apart by what they equal.

use std::collections::HashMap;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, JoinType, NullEquality, TableReference};
use datafusion::error::Result;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, lit,
    when,
};

use super::super::names::{free_of, has_subquery, inside, is_correlated, is_lateral, moved};
use super::super::side::SubquerySide;
use super::super::tools::{bounds, columns, has_grouping_sets, named};
use super::Dependent;
use crate::plan::{FreshNames, can_fail, into_operands, is_volatile};

/// What selects the rows of a subquery for a row around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Selected {
    ByKeys,
    /// Equalities up to an aggregate of all rows, at which the rows around it come in.
    ByKeysOfAggregate,
    Otherwise,
}

/// How the rows of a subquery are selected.
///
/// By keys they are computed for keys that no row around it has, too: nothing up to the aggregate
/// may fail. They are computed once for equal rows around it: nothing may be drawn.
pub(super) fn selected(plan: &LogicalPlan, outer: &DFSchema) -> Result<Selected> {
    use Selected::{ByKeys, ByKeysOfAggregate, Otherwise};
    if !is_correlated(plan)? {
        return Ok(ByKeys);
    }
    let below = match plan {
        LogicalPlan::Join(join) => {
            let sides = [is_correlated(&join.left)?, is_correlated(&join.right)?];
            let side = match (sides, join.join_type) {
                ([true, false], JoinType::Inner | JoinType::Left) => &join.left,
                ([false, true], JoinType::Inner) if !is_lateral(join)? => &join.right,
                _ => return Ok(Otherwise),
            };
            if join.null_equality != NullEquality::NullEqualsNothing {
                return Ok(Otherwise);
            }
            selected(side, outer)?
        }
        LogicalPlan::Filter(_)
        | LogicalPlan::Projection(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Subquery(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Unnest(_) => selected(plan.inputs()[0], outer)?,
        _ => return Ok(Otherwise),
    };
    if below != ByKeys {
        return Ok(below);
    }
    let schema = datafusion::logical_expr::utils::merge_schema(&plan.inputs());
    let plain = |expr: &Expr| -> Result<bool> {
        Ok(free_of(expr, &schema)?.is_empty() && !can_fail(expr, &schema) && !is_volatile(expr))
    };
    if let LogicalPlan::Filter(filter) = plan {
        for condition in into_operands(filter.predicate.clone(), Operator::And) {
            if !plain(&condition)? && key(&condition, &schema, outer)?.is_none() {
                return Ok(Otherwise);
            }
        }
        return Ok(ByKeys);
    }
    let mut exprs = plan.expressions();
    if let LogicalPlan::Aggregate(node) = plan {
        exprs = node.group_expr.clone();
        // Whether the function fails makes no difference: groups that nobody asks for are small.
        for call in &node.aggr_expr {
            let Expr::AggregateFunction(call) = call.clone().unalias() else {
                return Ok(Otherwise);
            };
            exprs.extend(call.params.args);
            exprs.extend(call.params.filter.map(|filter| *filter));
            exprs.extend(call.params.order_by.into_iter().map(|key| key.expr));
        }
    }
    for expr in &exprs {
        let window = matches!(plan, LogicalPlan::Window(_));
        let fails = match expr.clone().unalias() {
            Expr::WindowFunction(call) if window => {
                let params = &call.params;
                let keys = params.order_by.iter().map(|key| &key.expr);
                let parts = params.args.iter().chain(&params.partition_by).chain(keys);
                parts.chain(params.filter.as_deref()).any(|part| can_fail(part, &schema))
            }
            other => can_fail(&other, &schema),
        };
        if fails || is_volatile(expr) || !free_of(expr, &schema)?.is_empty() {
            return Ok(Otherwise);
        }
    }
    Ok(match plan {
        LogicalPlan::Sort(sort) if sort.fetch.is_some() => Otherwise,
        LogicalPlan::Limit(limit) if bounds(limit)?.is_none() => Otherwise,
        LogicalPlan::Aggregate(node) if has_grouping_sets(&node.group_expr) => Otherwise,
        LogicalPlan::Aggregate(node) if node.group_expr.is_empty() => {
            match has_known_values(node) {
                true => ByKeysOfAggregate,
                false => Otherwise,
            }
        }
        _ => ByKeys,
    })
}

/// Whether it is known what the aggregates yield of no rows.
fn has_known_values(node: &Aggregate) -> bool {
    node.aggr_expr.iter().all(|expr| match expr.clone().unalias() {
        Expr::AggregateFunction(call) => {
            matches!(call.func.name(), "count" | "sum" | "avg" | "min" | "max")
        }
        _ => false,
    })
}

/// The names of columns beside which those around the subquery stand on the way.
pub(super) fn names_on_the_way(
    plan: &LogicalPlan,
    outer: &DFSchema,
    names: &mut HashMap<String, Vec<Option<TableReference>>>,
) -> Result<()> {
    for (table, field) in plan.schema().iter() {
        names.entry(field.name().clone()).or_default().push(table.cloned());
    }
    if let LogicalPlan::Aggregate(node) = plan
        && node.group_expr.is_empty()
        && selected(plan, outer)? == Selected::ByKeysOfAggregate
        && selected(&node.input, outer)? == Selected::ByKeys
    {
        return Ok(());
    }
    plan.inputs().into_iter().try_for_each(|input| names_on_the_way(input, outer, names))
}

/// Whether the rows around a subquery have one row each, and no number is asked for.
pub(super) fn is_one_row(plan: &LogicalPlan, selected: Selected) -> bool {
    match plan {
        LogicalPlan::Projection(node) => is_one_row(&node.input, selected),
        LogicalPlan::SubqueryAlias(node) => is_one_row(&node.input, selected),
        LogicalPlan::Subquery(node) => is_one_row(&node.subquery, selected),
        LogicalPlan::Filter(node) => is_one_row(&node.input, selected),
        LogicalPlan::Sort(node) => node.fetch.is_none() && is_one_row(&node.input, selected),
        LogicalPlan::Limit(node) => is_one_row(&node.input, selected),
        LogicalPlan::EmptyRelation(node) => node.produce_one_row && node.schema.fields().is_empty(),
        LogicalPlan::Aggregate(node) => {
            node.group_expr.is_empty()
                && selected == Selected::ByKeysOfAggregate
                && !has_whole_aggregate(&node.input)
        }
        _ => false,
    }
}

fn has_whole_aggregate(plan: &LogicalPlan) -> bool {
    let is_it = |node: &LogicalPlan| match node {
        LogicalPlan::Aggregate(node) => node.group_expr.is_empty(),
        _ => false,
    };
    plan.exists(|node| Ok(is_it(node))).unwrap_or(true)
}

/// What an equality compares: rows within, and rows outside. Floats are no keys: groups may tell
/// -0.0 from 0.0, which are equal.
pub(super) fn key(
    condition: &Expr,
    inner: &DFSchema,
    outer: &DFSchema,
) -> Result<Option<(Expr, Expr)>> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else {
        return Ok(None);
    };
    let (within, outside) = match left.contains_outer() {
        true => (right, left),
        false => (left, right),
    };
    let dtype = within.get_type(inner)?;
    if dtype.is_floating() || dtype.is_nested() || dtype == DataType::Null {
        return Ok(None);
    }
    let plain = within.any_column_refs()
        && !outside.any_column_refs()
        && outside.contains_outer()
        && free_of(within, inner)?.is_empty()
        && !can_fail(within, inner);
    let whole = |side: &Expr| has_subquery(side) || is_volatile(side);
    if !plain || whole(within) || whole(outside) {
        return Ok(None);
    }
    let outside = inside(*outside.clone())?;
    // What can fail of rows around it is computed behind other conditions.
    let fails = !outside.column_refs().into_iter().all(|column| outer.has_column(column))
        || can_fail(&outside, outer);
    Ok((!fails).then_some((*within.clone(), outside)))
}

impl Dependent<'_> {
    /// The subquery as a side of a join on its keys; `None` where these do not select its rows.
    pub(in crate::session::rules::subqueries) fn side(
        outside: &LogicalPlan,
        subquery: &LogicalPlan,
        called: &'static str,
        generator: &mut FreshNames,
    ) -> Result<Option<SubquerySide>> {
        if selected(subquery, outside.schema())? != Selected::ByKeys || !is_correlated(subquery)? {
            return Ok(None);
        }
        let (mut of, subquery) = Dependent::new(outside.clone(), subquery, called, generator)?;
        of.keys = Some(vec![]);
        let plan = of.of(&subquery)?;
        let names: Vec<_> = columns(&subquery).iter().map(|_| of.generator.name("inner")).collect();
        let own = columns(&subquery).into_iter().zip(&names).map(|(own, name)| own.alias(name));
        let plan = of.projected(plan, lit(true), own.collect())?;
        let keys = of.keys.take().unwrap_or_default();
        let conditions = keys.into_iter().map(|(key, equal)| Ok(of.around(equal)?.eq(named(&key))));
        let conditions = conditions.collect::<Result<_>>()?;
        let values = names.iter().map(|name| named(name)).collect();
        Ok(Some(SubquerySide { plan, conditions, values, single: of.single }))
    }

    /// An expression over names on the way, over rows around it as they are.
    fn around(&self, expr: Expr) -> Result<Expr> {
        let own = self.outer.columns();
        moved(expr, &|column| Some(own[self.names.iter().position(|name| name == column)?].clone()))
    }

    /// The schema of the rows around it, under their names on the way.
    pub(super) fn schema_on_the_way(&self) -> Result<DFSchema> {
        let fields = self.outer.fields().iter().zip(&self.names).map(|(field, name)| {
            let field = field.as_ref().clone().with_name(&name.name);
            (name.relation.clone(), std::sync::Arc::new(field))
        });
        DFSchema::new_with_metadata(fields.collect(), HashMap::new())
    }

    /// The aggregate of all rows for each key, beside the rows around it.
    pub(super) fn aggregate_of_keys(
        &mut self,
        node: &Aggregate,
        input: LogicalPlan,
    ) -> Result<LogicalPlan> {
        let names: Vec<_> = node.aggr_expr.iter().map(|_| self.generator.name("value")).collect();
        let (input, calls) =
            self.computed(input, node.aggr_expr.clone(), crate::plan::UnknownAs::Itself)?;
        let calls = calls.into_iter().zip(&names).map(|(call, name)| call.unalias().alias(name));
        let keys = self.by();
        let right = LogicalPlanBuilder::from(input).aggregate(keys.clone(), calls)?.build()?;
        let on = self.keys.take().unwrap_or_default();
        let on = on.into_iter().map(|(key, equal)| equal.eq(named(&key)));
        let on = self.gate.clone().into_iter().chain(on).collect::<Vec<_>>();
        let rows = self.rows()?;
        let plan = LogicalPlanBuilder::from(rows).join_on(right, JoinType::Left, on)?.build()?;
        (self.single, self.mixed, self.nulls) = (true, self.gate.is_some(), false);
        let mut own = vec![];
        for ((name, call), (table, field)) in
            names.iter().zip(&node.aggr_expr).zip(node.schema.iter())
        {
            let mut value = named(name);
            if let Expr::AggregateFunction(call) = call.clone().unalias() {
                let of_no_rows = call.func.default_value(field.data_type())?;
                if !of_no_rows.is_null() {
                    value = when(keys[0].clone().is_null(), lit(of_no_rows)).otherwise(value)?;
                }
            }
            own.push(value.alias_qualified(table.cloned(), field.name()));
        }
        self.projected(plan, self.asked()?, own)
    }
}
