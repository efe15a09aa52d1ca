//! Expressions of constants: whether they fail is found by computing them.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::Schema;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, Volatility};
use datafusion::physical_expr::create_physical_expr;

use crate::host::host_expr;
use crate::user_code;

/// What an expression looks at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Looks {
    /// At constants alone.
    Constants,
    /// At the time of the query, too, which is a constant while it runs.
    Time,
    /// At rows, or at chance.
    Rows,
}

/// Whether an expression is one of constants, and has a value. Rules compute most of these, but
/// later.
pub(super) fn is_computable(expr: &Expr) -> bool {
    match looks(expr) {
        Looks::Constants => computes(expr),
        // What may leave the calendar is not a few days from now.
        Looks::Time => true,
        Looks::Rows => false,
    }
}

fn looks(expr: &Expr) -> Looks {
    let mut looks = Looks::Constants;
    // Nothing fails here.
    let _ = expr.apply(|node| {
        match node {
            Expr::Literal(_, _)
            | Expr::Alias(_)
            | Expr::BinaryExpr(_)
            | Expr::Not(_)
            | Expr::Negative(_) => {}
            Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::Between(_)
            | Expr::InList(_)
            | Expr::Like(_) => {}
            Expr::Cast(_) | Expr::TryCast(_) | Expr::Case(_) => {}
            // The host would have to compile it first.
            node if user_code::is_called_by(node) => looks = Looks::Rows,
            Expr::ScalarFunction(call) => match call.func.signature().volatility {
                Volatility::Immutable => {}
                Volatility::Stable => looks = Looks::Time,
                Volatility::Volatile => looks = Looks::Rows,
            },
            _ => looks = Looks::Rows,
        }
        Ok(if looks == Looks::Rows { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    looks
}

fn computes(expr: &Expr) -> bool {
    static ROW: LazyLock<Option<RecordBatch>> = LazyLock::new(|| {
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).ok()
    });
    let context = PhysicalPlanningContext::default();
    let schema = DFSchema::empty();
    let physical = host_expr(expr.clone(), &schema)
        .and_then(|expr| create_physical_expr(&expr, &schema, &ExecutionProps::new(), &context));
    match (physical, &*ROW) {
        (Ok(physical), Some(row)) => physical.evaluate(row).is_ok(),
        _ => false,
    }
}
