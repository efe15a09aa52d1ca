//! Volatile functions are called once for a row. Rules and kernels write expressions out twice
//! (`x BETWEEN a AND b` as two comparisons, CASE with a base as one for each WHEN, a CASE of
//! conditions as AND and OR), so that a call may not stand in what they are.
//!
//! In aggregations, sorts and windows, whose kernels compute an expression twice, a call becomes a
//! column of a projection below.
//!
//! ```text
//!   Sort: random()      Projection: x
//!     Scan: x             Sort: __drawn_1
//!                           Projection: x, random() AS __drawn_1
//!                             Scan: x
//! ```
//!
//! In other operators, whose rules put projections together, it stands beside the expression, which
//! has a name for it (`host/once_a_row.rs`). So do columns in which such a call is computed below: rules
//! may put it in their place.
//!
//! ```text
//!   Filter: random() BETWEEN a AND b     Filter: drawn_once(random(), (v) -> v BETWEEN a AND b)
//!   Projection: CASE r WHEN …            Projection: drawn_once(r, (v) -> CASE v WHEN …)
//!     Projection: random() AS r            Projection: random() AS r
//! ```
//!
//! A call in a lambda is made for each element, so that the function that takes the lambda is what
//! stands beside, or becomes the column.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{HigherOrderFunction, Lambda, LambdaVariable};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, Join, JoinType, LogicalPlan, Operator, Projection,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::prelude::col;

use super::any_node;
use crate::host::once_a_row::{DRAWN_ALIKE, DRAWN_ONCE, drawn_once, name_of_value};
use crate::plan::{FreshNames, conjunction, into_operands, is_volatile_call};

#[derive(Debug)]
pub(super) struct VolatileOnce;

impl AnalyzerRule for VolatileOnce {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !any_node(&plan, node_draws)? {
            return Ok(plan);
        }
        let mut names = FreshNames::of(&plan)?;
        let plan = plan.transform_up_with_subqueries(|node| match &node {
            LogicalPlan::Aggregate(_) | LogicalPlan::Sort(_) | LogicalPlan::Window(_)
                if node_draws(&node)? =>
            {
                Ok(Transformed::yes(computed_below(node, &mut names)?))
            }
            LogicalPlan::Join(join) if has_drawing_filter(join) => match node {
                LogicalPlan::Join(join) => beside(filtered_above(join)?, &mut names),
                other => Ok(Transformed::no(other)),
            },
            LogicalPlan::Aggregate(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Values(_) => beside(node, &mut names),
            _ => Ok(Transformed::no(node)),
        });
        plan.map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "volatile_functions_once"
    }
}

/// Whether the node is a call of a volatile function, be it one of the CPU engine alone.
fn is_call(expr: &Expr) -> bool {
    is_volatile_call(expr) || expr.is_volatile_node()
}

/// Whether a part of the expression is such a call.
fn draws(expr: &Expr) -> bool {
    // Nothing fails here.
    expr.exists(|part| Ok(is_call(part))).unwrap_or(false)
}

fn node_draws(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    node.apply_expressions(|expr| {
        found = draws(expr);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// The number by which a value is one with others of it.
fn number_of(expr: &Expr) -> Option<(&ScalarValue, &Expr)> {
    let Expr::ScalarFunction(call) = expr else { return None };
    match call.args.as_slice() {
        [Expr::Literal(number, _), value] if call.name() == DRAWN_ALIKE => Some((number, value)),
        _ => None,
    }
}

/// What is computed once for a row, and has a name instead.
struct DrawnValues<'a> {
    names: &'a mut FreshNames,
    /// Columns that a call is computed in, below.
    columns: &'a HashSet<Column>,
    values: Vec<DrawnValue>,
}

struct DrawnValue {
    name: String,
    value: Expr,
    number: Option<ScalarValue>,
}

impl<'a> DrawnValues<'a> {
    fn new(names: &'a mut FreshNames, columns: &'a HashSet<Column>) -> Self {
        DrawnValues { names, columns, values: vec![] }
    }

    /// Whether the expression is what has a name: a call, a function whose lambda makes one (which
    /// sees parameters that there are nowhere else), or a column.
    fn is_source(&self, expr: &Expr) -> bool {
        match expr {
            Expr::HigherOrderFunction(call) if call.name() == DRAWN_ONCE => true,
            Expr::HigherOrderFunction(call) => {
                call.args.iter().any(|arg| matches!(arg, Expr::Lambda(_)) && draws(arg))
            }
            Expr::Column(column) => self.columns.contains(column),
            other => is_call(other),
        }
    }

    fn has_source(&self, expr: &Expr) -> bool {
        // Nothing fails here.
        expr.exists(|part| Ok(self.is_source(part))).unwrap_or(false)
    }

    /// Whether rules may write a source in the expression out twice.
    fn may_be_copied(&self, expr: &Expr) -> bool {
        match expr {
            source if self.is_source(source) => number_of(source).is_some(),
            Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => self.has_source(expr),
            Expr::Alias(_)
            | Expr::BinaryExpr(_)
            | Expr::Cast(_)
            | Expr::TryCast(_)
            | Expr::Not(_)
            | Expr::Negative(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::IsTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotTrue(_)
            | Expr::IsNotFalse(_)
            | Expr::IsNotUnknown(_) => {
                let mut copied = false;
                // Nothing fails here.
                let _ = expr.apply_children(|child| {
                    copied |= self.may_be_copied(child);
                    Ok(TreeNodeRecursion::Continue)
                });
                copied
            }
            other => self.has_source(other),
        }
    }

    /// The name of a value, which is another for each value but those of one number, and columns.
    fn name(&mut self, expr: Expr, schema: &DFSchema) -> Result<String> {
        let (number, value) = match number_of(&expr) {
            Some((number, value)) => (Some(number.clone()), value.clone()),
            None => (None, expr),
        };
        let known = self.values.iter().find(|known| match (&number, &value) {
            (Some(number), _) => known.number.as_ref() == Some(number),
            (None, Expr::Column(_)) => known.value == value,
            _ => false,
        });
        if let Some(known) = known {
            return Ok(known.name.clone());
        }
        let name = self.names.name("drawn");
        let value = rewritten(value, schema, self.names, self.columns)?.data;
        self.values.push(DrawnValue { name: name.clone(), value, number });
        Ok(name)
    }
}

/// The expression, in which no source can be written out twice.
fn rewritten(
    expr: Expr,
    schema: &DFSchema,
    names: &mut FreshNames,
    columns: &HashSet<Column>,
) -> Result<Transformed<Expr>> {
    match expr {
        // Conditions that are asked for one by one, and what is of several rows.
        Expr::BinaryExpr(BinaryExpr { op: Operator::And, .. })
        | Expr::Alias(_)
        | Expr::AggregateFunction(_)
        | Expr::WindowFunction(_)
        | Expr::GroupingSet(_) => {
            return expr.map_children(|child| rewritten(child, schema, names, columns));
        }
        _ => {}
    }
    let mut drawn = DrawnValues::new(names, columns);
    if drawn.is_source(&expr) && number_of(&expr).is_none() {
        // The bodies of lambdas, which are computed for each element.
        return expr.map_children(|child| match child {
            Expr::Lambda(lambda) => Ok(rewritten(*lambda.body, schema, names, columns)?
                .update_data(|body| Expr::Lambda(Lambda::new(lambda.params, body)))),
            other => Ok(Transformed::no(other)),
        });
    }
    if !drawn.may_be_copied(&expr) {
        return Ok(Transformed::no(expr));
    }
    let nullable = expr.nullable(schema)?;
    let body = expr.transform_down(|expr| {
        // Joins are made of subqueries and of what they see around them: they are no part of a
        // lambda.
        let is_outside = matches!(
            expr,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
        );
        if !is_outside && !drawn.is_source(&expr) {
            return Ok(Transformed::no(expr));
        }
        let field = expr.to_field(schema)?.1;
        let name = drawn.name(expr, schema)?;
        let field = name_of_value(&name, field.data_type());
        let variable = LambdaVariable::new(name, Some(field));
        Ok(Transformed::new(Expr::LambdaVariable(variable), true, TreeNodeRecursion::Jump))
    })?;
    let (params, mut args): (Vec<String>, Vec<Expr>) =
        drawn.values.into_iter().map(|drawn| (drawn.name, drawn.value)).unzip();
    args.push(Expr::Lambda(Lambda::new(params, body.data)));
    let call = HigherOrderFunction::new(drawn_once(nullable), args);
    Ok(Transformed::yes(Expr::HigherOrderFunction(call)))
}

/// The operator, in whose expressions no source can be written out twice.
fn beside(node: LogicalPlan, names: &mut FreshNames) -> Result<Transformed<LogicalPlan>> {
    let mut columns = HashSet::new();
    for input in node.inputs() {
        columns.extend(drawn_columns(input)?);
    }
    let schema = merge_schema(&node.inputs());
    let preserver = NamePreserver::new(&node);
    let has_names = !matches!(node, LogicalPlan::Sort(_));
    let made = node.map_expressions(|expr| {
        let name = preserver.save(&expr);
        let expr = rewritten(expr, &schema, names, &columns)?;
        Ok(expr.update_data(|expr| if has_names { name.restore(expr) } else { expr }))
    })?;
    match made.transformed {
        true => made.map_data(LogicalPlan::recompute_schema),
        false => Ok(made),
    }
}

/// Whether rows of a join are left out by a condition that calls a volatile function.
fn has_drawing_filter(join: &Join) -> bool {
    join.join_type == JoinType::Inner && join.filter.as_ref().is_some_and(draws)
}

/// The join without its conditions that call volatile functions, and a filter above it that has
/// these.
fn filtered_above(join: Join) -> Result<LogicalPlan> {
    let conditions = join.filter.map(|filter| into_operands(filter, Operator::And));
    let (above, within): (Vec<Expr>, Vec<Expr>) =
        conditions.unwrap_or_default().into_iter().partition(draws);
    let join = LogicalPlan::Join(Join { filter: conjunction(within), ..join });
    match conjunction(above) {
        Some(above) => Ok(LogicalPlan::Filter(Filter::try_new(above, Arc::new(join))?)),
        None => Ok(join),
    }
}

/// The columns of a plan that a rule could put a call in the place of.
fn drawn_columns(plan: &LogicalPlan) -> Result<HashSet<Column>> {
    let own = plan.schema().columns();
    let among = |inputs: &[&LogicalPlan]| -> Result<Vec<bool>> {
        let mut drawn = vec![false; own.len()];
        for input in inputs {
            let (columns, below) = (input.schema().columns(), drawn_columns(input)?);
            for (is_drawn, column) in drawn.iter_mut().zip(columns) {
                *is_drawn |= below.contains(&column);
            }
        }
        Ok(drawn)
    };
    let drawn = match plan {
        LogicalPlan::Projection(project) => {
            let (mut names, below) = (FreshNames::default(), drawn_columns(&project.input)?);
            let drawn = DrawnValues::new(&mut names, &below);
            project.expr.iter().map(|expr| drawn.has_source(expr)).collect()
        }
        LogicalPlan::SubqueryAlias(_) | LogicalPlan::Union(_) => among(&plan.inputs())?,
        // Nothing is put in the place of what an aggregation yields.
        LogicalPlan::Aggregate(_) | LogicalPlan::TableScan(_) | LogicalPlan::Values(_) => {
            return Ok(HashSet::new());
        }
        other => {
            let mut below = HashSet::new();
            for input in other.inputs() {
                below.extend(drawn_columns(input)?);
            }
            own.iter().map(|column| below.contains(column)).collect()
        }
    };
    Ok(own.into_iter().zip(drawn).filter(|(_, drawn)| *drawn).map(|(column, _)| column).collect())
}

/// The operator over a projection that makes the calls.
fn computed_below(node: LogicalPlan, names: &mut FreshNames) -> Result<LogicalPlan> {
    let input = node.inputs()[0].clone();
    let mut below: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let preserver = NamePreserver::new(&node);
    let has_names = !matches!(node, LogicalPlan::Sort(_));
    let columns = HashSet::new();
    let mut drawn = DrawnValues::new(names, &columns);
    let mut exprs = vec![];
    for expr in node.expressions() {
        let name = preserver.save(&expr);
        let moved = expr.transform_down(|expr| match drawn.is_source(&expr) {
            true => {
                let column = col(drawn.name(expr, input.schema())?);
                Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
            }
            false => Ok(Transformed::no(expr)),
        })?;
        exprs.push(if has_names { name.restore(moved.data) } else { moved.data });
    }
    below.extend(drawn.values.into_iter().map(|drawn| drawn.value.alias(drawn.name)));
    let input = LogicalPlan::Projection(Projection::try_new(below, Arc::new(input))?);
    // A rule may make columns of keys and arguments, and put the calls in the place of others.
    let made = drawn_columns(&input)?;
    let exprs = exprs.into_iter().map(|expr| {
        let name = preserver.save(&expr);
        let expr = rewritten(expr, input.schema(), names, &made)?.data;
        Ok(if has_names { name.restore(expr) } else { expr })
    });
    let exprs = exprs.collect::<Result<Vec<_>>>()?;
    let columns = node.schema().columns().into_iter().map(Expr::Column).collect();
    let is_aggregate = matches!(node, LogicalPlan::Aggregate(_));
    let node = node.with_new_exprs(exprs, vec![input])?;
    match is_aggregate {
        true => Ok(node),
        // They have the columns of their input.
        false => Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(node))?)),
    }
}
