//! DataFusion's rule that simplifies expressions (55.2), kept from what it makes wrong.
//!
//! | what it does | where that is wrong | apache/datafusion |
//! |---|---|---|
//! | `CAST(m AS int) = 1` becomes `m = 1.00` | the cast loses digits, range or order | #23095, #24702 |
//! | lists of IN and NOT IN are united and intersected | lists with columns or NULL, and a tested NULL | #24258 |
//! | `-(x & y)` becomes `-x \| -y`, `-x & x` becomes 0 | minus is no bitwise NOT | #24665 |
//! | `x ^ y ^ x` becomes `y` | `x` is NULL | #24246 |
//! | `s ~ '.*'` becomes `s IS NOT NULL` | `s` is NULL | #24379 |
//! | `s ~ 'a\\b'` becomes `s LIKE '%a\b%'` | in LIKE, the backslash escapes | |
//! | `log(x, x)` becomes 1, `power(b, log(b, y))` becomes `y` | a logarithm that is NaN | |
//! | `x = 0.0 AND x <> -0.0` becomes `x = 0.0` | zeros are equal | |
//! | `e * 0` becomes 0, `e = e` true, `e IS NULL` false | a row fails in `e`, or the type is another | |
//! | `t = TIMESTAMP '… 00:00:00.0000005'` is cut to the unit of `t` | digits are lost | |
//!
//! While the rule runs, such parts stand behind a veil: a call of a function that it does not know,
//! which yields its argument. The rule works on both sides of a veil, and computes constants through
//! it. Functions that it would write out are kept by another, which computes as they do. What
//! depends on a constant that is not computed yet is veiled, and the rule runs once more.

mod hider;

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::OptimizerConfig;

use self::hider::Hider;
use super::LogicalRule;
use crate::plan::schema_beneath;

/// The rule that simplifies expressions, which does not see all of them.
pub(super) fn rewrite(
    rule: &LogicalRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let (once, waits) = run(rule, plan, config)?;
    match waits {
        false => Ok(once),
        true => once.transform_data(|plan| Ok(run(rule, plan, config)?.0)),
    }
}

/// Runs the rule on an operator; and whether something waited for a constant that may be
/// computed now.
fn run(
    rule: &LogicalRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<(Transformed<LogicalPlan>, bool)> {
    if !concerns(&plan)? {
        return Ok((rule.rewrite(plan, config)?, false));
    }
    let schema = schema_beneath(&plan)?;
    let mut hider = Hider::new(&schema);
    let is_aggregate = matches!(plan, LogicalPlan::Aggregate(_));
    let names = NamePreserver::new(&plan);
    let mut hide = |expr: Expr| {
        let name = hider::may_be_rewritten(&expr).then(|| names.save(&expr));
        let hidden = hider.hidden(expr)?;
        Ok(match name {
            Some(name) => hidden.update_data(|expr| name.restore(expr)),
            None => hidden,
        })
    };
    let veiled = plan.map_expressions(|expr| match expr {
        Expr::GroupingSet(_) => expr.map_children(&mut hide),
        other => hide(other),
    })?;
    if !veiled.transformed {
        return Ok((rule.rewrite(veiled.data, config)?, false));
    }
    let done = rule.rewrite(veiled.data, config)?;
    let plan = lifted(done.data)?;
    let plan = match &plan {
        // The rule may put a projection above an aggregate.
        LogicalPlan::Projection(_) if is_aggregate => {
            plan.map_children(|child| Ok(Transformed::yes(lifted(child)?)))?.data
        }
        _ => plan,
    };
    let changed = done.transformed || hider.changed;
    Ok((Transformed::new_transformed(plan, changed), hider.waits))
}

/// Whether an operator has expressions of which anything could be simplified.
fn concerns(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_expressions(|expr| {
        found = hider::concerns(expr);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// The operator without veils.
fn lifted(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(plan.map_expressions(unveiled)?.data)
}

/// The expression without veils.
fn unveiled(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| match expr {
        Expr::ScalarFunction(mut call) => Ok(match Veil::of(&call) {
            Some(Veil::Kept(function)) => {
                let func = function.clone();
                Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args: call.args }))
            }
            Some(_) => Transformed::yes(call.args.swap_remove(0)),
            None => Transformed::no(Expr::ScalarFunction(call)),
        }),
        other => Ok(Transformed::no(other)),
    })
}

/// What stands before an expression.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Veil {
    /// Over its argument, from which it is told apart; equal ones are equal.
    Sheer,
    /// Unlike every other one of an expression.
    Own(usize),
    /// Over what is taken to be nullable.
    Nullable,
    /// Constants are not computed through it.
    Dense,
    /// No veil but a function, which is computed and not written out otherwise.
    Kept(Arc<ScalarUDF>),
}

impl Veil {
    fn over(self, expr: Expr) -> Expr {
        self.call(vec![expr])
    }

    fn call(self, args: Vec<Expr>) -> Expr {
        let signature = match &self {
            Veil::Kept(function) => function.signature().clone(),
            Veil::Dense => Signature::any(1, Volatility::Volatile),
            _ => Signature::any(1, Volatility::Immutable),
        };
        let func = Arc::new(ScalarUDF::from(VeilFunction { veil: self, signature }));
        Expr::ScalarFunction(ScalarFunction { func, args })
    }

    fn of(call: &ScalarFunction) -> Option<&Veil> {
        Some(&call.func.inner().downcast_ref::<VeilFunction>()?.veil)
    }
}

/// A veil as a function. Its calls bear the names of what they stand before, so that columns keep
/// theirs.
#[derive(Debug, PartialEq, Eq, Hash)]
struct VeilFunction {
    veil: Veil,
    signature: Signature,
}

impl ScalarUDFImpl for VeilFunction {
    fn name(&self) -> &str {
        match &self.veil {
            Veil::Kept(function) => function.name(),
            _ => "veil",
        }
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match &self.veil {
            Veil::Kept(function) => function.schema_name(args),
            _ => Ok(args[0].schema_name().to_string()),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match (&self.veil, types) {
            (Veil::Kept(function), _) => function.return_type(types),
            (_, [argument]) => Ok(argument.clone()),
            _ => internal_err!("a veil over {} arguments", types.len()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        match (&self.veil, args.arg_fields) {
            (Veil::Kept(function), _) => function.return_field_from_args(args),
            (Veil::Nullable, [field]) => Ok(Arc::new(field.as_ref().clone().with_nullable(true))),
            (_, [field]) => Ok(field.clone()),
            (_, fields) => internal_err!("a veil over {} arguments", fields.len()),
        }
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match &self.veil {
            Veil::Kept(function) => function.invoke_with_args(args),
            _ => Ok(args.args.swap_remove(0)),
        }
    }
}
