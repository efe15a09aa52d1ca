//! Which expressions mean something else to DataFusion than to this engine.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, Operator};

use super::expressions::Host;

/// Whether the engine's answer of an expression is another one than DataFusion's own, but for which
/// floats are equal, and for integers that overflow, which are an error here. Functions are taken
/// to be DataFusion's.
///
/// # Errors
/// Of types that do not fit together.
pub(crate) fn differs_from_stock(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    let host = Host { schema, folding: false };
    expr.exists(|expr| {
        Ok(match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
                Operator::Plus | Operator::Minus => {
                    host.is_moved(left, right) || host.is_moved(right, left)
                }
                _ => host.is_nested(left) || host.is_nested(right),
            },
            Expr::Between(Between { expr, .. }) => host.is_nested(expr),
            Expr::InList(list) => host.is_nested(&list.expr),
            Expr::Case(case) => case.expr.as_ref().is_some_and(|base| host.is_nested(base)),
            Expr::Cast(cast) => {
                let to = cast.field.data_type();
                // `ArrowForm` has ways.
                let is_way = matches!(
                    (cast.expr.get_type(schema)?, to),
                    (DataType::Decimal128(_, 1..=22), DataType::Float64)
                        | (DataType::Float64, DataType::Decimal128(_, 0..=22))
                );
                !is_way && host.differs(&cast.expr, to)
            }
            Expr::TryCast(cast) => host.differs(&cast.expr, cast.field.data_type()),
            Expr::ScalarFunction(call) => {
                let compares = ["nullif", "greatest", "least"].contains(&call.name());
                compares && call.args.iter().any(|arg| host.holds_floats(arg))
                    || host.changed(expr.clone())? != *expr
            }
            Expr::HigherOrderFunction(_) => true,
            Expr::AggregateFunction(call) => {
                call.params.args.iter().any(|arg| {
                    call.params.distinct && host.holds_floats(arg) || host.is_nested(arg)
                })
            }
            _ => false,
        })
    })
}
