//! Aggregates and window functions in the expressions of verbs.
//!
//! ```text
//!   select(sum(x) - min(x))            an aggregate of all rows, and a projection of its results
//!   with_columns(x - avg(x))           avg(x) OVER ()
//!   with_columns(lag(x) OVER (k))      row numbers; lag(x) OVER (PARTITION BY k ORDER BY number);
//!                                      the rows sorted by number again
//!   select(sum(lag(x)) OVER ())        lag(x) first, as a column
//! ```
//!
//! SQL promises no order of rows; frames keep theirs. Windows without keys do not move rows, and
//! those with keys have them in the order of the keys.

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::find_window_exprs;
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, WindowFrame, WindowFrameUnits, WindowFunctionDefinition,
};

use super::builder::builder;
use crate::error::Result;

/// The plan of expressions over a plan's rows: one row, where all are of aggregates, else their
/// order stays.
pub(super) fn select(input: &LogicalPlan, exprs: Vec<Expr>) -> Result<LogicalPlan> {
    let mut found = Calls::default();
    exprs.iter().try_for_each(|expr| found.look_at(expr))?;
    match found {
        Calls { aggregates: false, windows: false, .. } => {
            Ok(builder(input).select(exprs)?.into_unoptimized_plan())
        }
        Calls { aggregates: true, windows: false, columns: false } => {
            aggregate(input, vec![], exprs)
        }
        Calls { aggregates: true, .. } => windowed(input, over_all_rows(exprs)?),
        _ => windowed(input, exprs),
    }
}

/// The plan of expressions with window functions over a plan's rows, which may come in another
/// order. Rows that a window's keys do not tell apart are seen in the order of the input.
pub(super) fn select_in_any_order(input: &LogicalPlan, exprs: Vec<Expr>) -> Result<LogicalPlan> {
    match over_numbered(input, exprs)? {
        Windowed::InOrder(plan) => Ok(plan),
        Windowed::Numbered { plan, row } => without(&plan, &row),
    }
}

/// The plan of the rows for which a condition is true.
pub(super) fn filter(input: &LogicalPlan, predicate: Expr) -> Result<LogicalPlan> {
    let mut found = Calls::default();
    found.look_at(&predicate)?;
    if !found.aggregates && !found.windows {
        return Ok(builder(input).filter(predicate)?.into_unoptimized_plan());
    }
    let name = unused(input, &[], "predicate");
    let mut exprs = all_columns(input);
    exprs.push(over_all_rows(vec![predicate])?.remove(0).alias(&name));
    let known = builder(&windowed(input, exprs)?).filter(column(&name))?.into_unoptimized_plan();
    without(&known, &name)
}

/// The plan of a row for each group: the keys, and expressions of aggregates.
pub(super) fn aggregate(
    input: &LogicalPlan,
    keys: Vec<Expr>,
    exprs: Vec<Expr>,
) -> Result<LogicalPlan> {
    let (input, exprs) = nested_first(input, exprs)?;
    let is_plain = |expr: &Expr| matches!(bare(expr), Expr::AggregateFunction(_));
    if exprs.iter().all(is_plain) {
        return Ok(builder(&input).aggregate(keys, exprs)?.into_unoptimized_plan());
    }
    let mut aggregates = vec![];
    for expr in &exprs {
        outermost(expr, &mut aggregates)?;
    }
    let grouped =
        builder(&input).aggregate(keys.clone(), aggregates.clone())?.into_unoptimized_plan();
    let computed: Vec<Expr> = keys.iter().map(|key| bare(key).clone()).chain(aggregates).collect();
    let mut output: Vec<Expr> = all_columns(&grouped).into_iter().take(keys.len()).collect();
    let (names, columns) = (NamePreserver::new_for_projection(), grouped.schema().columns());
    for expr in exprs {
        let name = names.save(&expr);
        let over_groups = expr.transform_down(|node| {
            Ok(match computed.iter().position(|known| *known == node) {
                Some(at) => Transformed::new(
                    Expr::Column(columns[at].clone()),
                    true,
                    TreeNodeRecursion::Jump,
                ),
                None => Transformed::no(node),
            })
        })?;
        output.push(name.restore(over_groups.data));
    }
    Ok(builder(&grouped).select(output)?.into_unoptimized_plan())
}

/// An aggregate as a window of all rows.
pub(crate) fn over_all(call: AggregateFunction) -> WindowFunction {
    let params = call.params;
    WindowFunction {
        fun: WindowFunctionDefinition::AggregateUDF(call.func),
        params: WindowFunctionParams {
            args: params.args,
            partition_by: vec![],
            order_by: params.order_by,
            window_frame: WindowFrame::new(None),
            filter: params.filter,
            null_treatment: params.null_treatment,
            distinct: params.distinct,
        },
    }
}

/// With aggregates as windows of all rows.
pub(super) fn over_all_rows(exprs: Vec<Expr>) -> Result<Vec<Expr>> {
    let names = NamePreserver::new_for_projection();
    let one = |expr: Expr| {
        let name = names.save(&expr);
        let changed = expr.transform_down(|node| {
            Ok(match node {
                Expr::WindowFunction(_) => Transformed::new(node, false, TreeNodeRecursion::Jump),
                Expr::AggregateFunction(call) => {
                    Transformed::yes(Expr::WindowFunction(Box::new(over_all(call))))
                }
                other => Transformed::no(other),
            })
        })?;
        Ok(if changed.transformed { name.restore(changed.data) } else { changed.data })
    };
    exprs.into_iter().map(one).collect()
}

/// Which calls expressions have, and whether they have columns outside of aggregates.
#[derive(Default)]
struct Calls {
    aggregates: bool,
    windows: bool,
    columns: bool,
}

impl Calls {
    fn look_at(&mut self, expr: &Expr) -> Result<()> {
        expr.apply(|node| {
            Ok(match node {
                Expr::WindowFunction(_) => {
                    self.windows = true;
                    TreeNodeRecursion::Jump
                }
                Expr::AggregateFunction(_) => {
                    self.aggregates = true;
                    TreeNodeRecursion::Jump
                }
                Expr::Column(_) => {
                    self.columns = true;
                    TreeNodeRecursion::Continue
                }
                _ => TreeNodeRecursion::Continue,
            })
        })?;
        Ok(())
    }
}

/// Expressions with window functions; the order of rows stays.
fn windowed(input: &LogicalPlan, exprs: Vec<Expr>) -> Result<LogicalPlan> {
    match over_numbered(input, exprs)? {
        Windowed::InOrder(plan) => Ok(plan),
        Windowed::Numbered { plan, row } => {
            let sorted = builder(&plan).sort(vec![column(&row).sort(true, false)])?;
            without(&sorted.into_unoptimized_plan(), &row)
        }
    }
}

/// Window functions over a plan's rows.
enum Windowed {
    InOrder(LogicalPlan),
    /// In the order of a window's keys, with the rows' numbers in the column `row`.
    Numbered {
        plan: LogicalPlan,
        row: String,
    },
}

fn over_numbered(input: &LogicalPlan, exprs: Vec<Expr>) -> Result<Windowed> {
    let (input, exprs) = nested_first(input, exprs)?;
    let windows = find_window_exprs(&exprs);
    let has_keys = |window: &Expr| match window {
        Expr::WindowFunction(call) => {
            !call.params.partition_by.is_empty() || !call.params.order_by.is_empty()
        }
        _ => false,
    };
    if !windows.iter().any(has_keys) {
        return Ok(Windowed::InOrder(builder(&input).select(exprs)?.into_unoptimized_plan()));
    }
    let row = unused(&input, &exprs, "row");
    let mut numbered = all_columns(&input);
    numbered.push(row_number().alias(&row));
    let numbered = builder(&input).select(numbered)?.into_unoptimized_plan();
    let names = NamePreserver::new_for_projection();
    let in_order = |expr: Expr| {
        let name = names.save(&expr);
        let changed = expr.transform_up(|node| {
            Ok(match node {
                Expr::WindowFunction(mut call) if depends_on_order(&call) => {
                    call.params.order_by.push(column(&row).sort(true, false));
                    Transformed::yes(Expr::WindowFunction(call))
                }
                other => Transformed::no(other),
            })
        })?;
        Ok(if changed.transformed { name.restore(changed.data) } else { changed.data })
    };
    let mut exprs = exprs.into_iter().map(in_order).collect::<Result<Vec<_>>>()?;
    exprs.push(column(&row));
    let plan = builder(&numbered).select(exprs)?.into_unoptimized_plan();
    Ok(Windowed::Numbered { plan, row })
}

/// Whether rows that its keys do not tell apart matter to a window function by their order.
pub(super) fn depends_on_order(call: &WindowFunction) -> bool {
    match &call.fun {
        WindowFunctionDefinition::WindowUDF(function) => {
            matches!(
                function.name(),
                "row_number"
                    | "lag"
                    | "lead"
                    | "ntile"
                    | "first_value"
                    | "last_value"
                    | "nth_value"
            )
        }
        WindowFunctionDefinition::AggregateUDF(function) => {
            let frame = &call.params.window_frame;
            let whole = frame.start_bound.is_unbounded() && frame.end_bound.is_unbounded();
            frame.units == WindowFrameUnits::Rows && !whole
                || matches!(
                    function.name(),
                    "array_agg" | "string_agg" | "first_value" | "last_value" | "nth_value"
                )
        }
    }
}

/// A plan that has the calls within the arguments of others as columns, and the expressions over
/// it.
fn nested_first(input: &LogicalPlan, exprs: Vec<Expr>) -> Result<(LogicalPlan, Vec<Expr>)> {
    let mut calls = vec![];
    for expr in &exprs {
        outermost(expr, &mut calls)?;
    }
    let mut nested = vec![];
    for call in &calls {
        call.apply_children(|child| {
            outermost(child, &mut nested)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    if nested.is_empty() {
        return Ok((input.clone(), exprs));
    }
    let (mut columns, mut computed) = (all_columns(input), vec![]);
    let over_all = over_all_rows(nested.clone())?;
    for (at, call) in over_all.into_iter().enumerate() {
        let name = unused(input, &exprs, &format!("call {at}"));
        columns.push(call.alias(&name));
        computed.push(name);
    }
    let known = windowed(input, columns)?;
    let names = NamePreserver::new_for_projection();
    let replaced = |expr: Expr| {
        let name = names.save(&expr);
        let changed = expr.transform_down(|node| {
            Ok(match nested.iter().position(|call| *call == node) {
                Some(at) => Transformed::new(column(&computed[at]), true, TreeNodeRecursion::Jump),
                None => Transformed::no(node),
            })
        })?;
        Ok(if changed.transformed { name.restore(changed.data) } else { changed.data })
    };
    let exprs = exprs.into_iter().map(replaced).collect::<Result<_>>()?;
    Ok((known, exprs))
}

/// Adds the calls of an expression that are not within others.
fn outermost(expr: &Expr, calls: &mut Vec<Expr>) -> datafusion::error::Result<()> {
    expr.apply(|node| {
        Ok(match node {
            Expr::WindowFunction(_) | Expr::AggregateFunction(_) => {
                if !calls.contains(node) {
                    calls.push(node.clone());
                }
                TreeNodeRecursion::Jump
            }
            _ => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(())
}

fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => bare(&alias.expr),
        other => other,
    }
}

fn column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

fn all_columns(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().iter().map(Expr::from).collect()
}

/// The plan's rows without a column.
fn without(plan: &LogicalPlan, name: &str) -> Result<LogicalPlan> {
    let others = plan.schema().iter().filter(|(_, field)| field.name() != name).map(Expr::from);
    Ok(LogicalPlanBuilder::from(plan.clone()).project(others.collect::<Vec<_>>())?.build()?)
}

/// A name that neither a column nor a result has.
fn unused(plan: &LogicalPlan, exprs: &[Expr], stem: &str) -> String {
    let is_taken = |name: &str| {
        plan.schema().fields().iter().any(|field| field.name() == name)
            || exprs.iter().any(|expr| expr.qualified_name().1 == name)
    };
    let mut name = stem.to_string();
    while is_taken(&name) {
        name.push('_');
    }
    name
}
