//! `ORDER BY ALL`.

use datafusion::sql::sqlparser::ast::{
    Expr, OrderByExpr, OrderByKind, Query, SelectItem, SetExpr, Value,
};

use super::columns::needs;

/// `ORDER BY ALL` is by the number of each column, where the list says how many there are. The
/// planner takes columns of tables only.
pub(in crate::session::rules) fn order_by_all(query: &mut Query) {
    let Some(order) = &mut query.order_by else { return };
    let (OrderByKind::All(options), SetExpr::Select(select)) = (&order.kind, query.body.as_ref())
    else {
        return;
    };
    let is_one = |item: &SelectItem| {
        matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
    };
    // One that stands for several is written out first.
    if !select.projection.iter().all(is_one) || needs(select) {
        return;
    }
    let by = |number: usize| OrderByExpr {
        expr: Expr::value(Value::Number((number + 1).to_string(), false)),
        options: *options,
        with_fill: None,
    };
    order.kind = OrderByKind::Expressions((0..select.projection.len()).map(by).collect());
}
