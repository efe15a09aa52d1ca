//! Between which numbers integers lie by their types and constants: what that keeps within the
//! type of a result does not fail.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

use crate::column::integer_bounds;

/// Operators within one another that are looked at.
const DEPTH: usize = 8;

/// Whether the exact result of an operator on integers has a place in their type, whatever rows
/// hold.
pub(super) fn fit(node: &Expr, dtype: &DataType, schema: &DFSchema) -> bool {
    let (Some((low, high)), Some((least, most))) =
        (of_operator(node, schema, DEPTH), integer_bounds(dtype))
    else {
        return false;
    };
    least <= low && high <= most
}

fn of_operator(node: &Expr, schema: &DFSchema, depth: usize) -> Option<(i128, i128)> {
    let depth = depth.checked_sub(1)?;
    match node {
        Expr::Negative(inner) => {
            let (low, high) = of_value(inner, schema, depth)?;
            Some((-high, -low))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (al, ah) = of_value(left, schema, depth)?;
            let (bl, bh) = of_value(right, schema, depth)?;
            Some(match op {
                Operator::Plus => (al + bl, ah + bh),
                Operator::Minus => (al - bh, ah - bl),
                Operator::Multiply => {
                    let corners = [(al, bl), (al, bh), (ah, bl), (ah, bh)];
                    let products = corners.map(|(a, b)| a.checked_mul(b));
                    (products.into_iter().min()??, products.into_iter().max()??)
                }
                _ => return None,
            })
        }
        _ => None,
    }
}

/// The bounds of an integer that is there: those of its type at most.
fn of_value(expr: &Expr, schema: &DFSchema, depth: usize) -> Option<(i128, i128)> {
    let known = match expr {
        Expr::Alias(alias) => return of_value(&alias.expr, schema, depth),
        Expr::Literal(value, _) => integer(value).map(|value| (value, value)),
        Expr::Cast(cast) if cast.field.data_type().is_integer() => {
            of_value(&cast.expr, schema, depth.checked_sub(1)?)
        }
        operator => of_operator(operator, schema, depth),
    };
    let (least, most) = integer_bounds(&expr.get_type(schema).ok()?)?;
    let (low, high) = known.unwrap_or((least, most));
    Some((low.max(least), high.min(most)))
}

fn integer(value: &ScalarValue) -> Option<i128> {
    match value.cast_to(&DataType::Decimal128(38, 0)) {
        Ok(ScalarValue::Decimal128(integer, _, _)) if value.data_type().is_integer() => integer,
        _ => None,
    }
}
