//! `t, unnest(t.l)`, `t CROSS JOIN unnest(t.l)` and `t JOIN unnest(t.l) ON …`: each row of `t` once
//! for each element of its list. DataFusion's planner (55.2) plans a join that no engine runs. A
//! LEFT JOIN keeps the rows without elements: their lists have a null.
//!
//! ```text
//!   FROM l, unnest(l.s) AS e(v)    ─▶    FROM (SELECT l.*, unnest(l.s) AS v FROM l)
//! ```

use std::sync::Arc;

use datafusion::arrow::array::{LargeListArray, ListArray, new_null_array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Column, DFSchema, ScalarValue, TableReference, UnnestOptions};
use datafusion::error::Result;
use datafusion::functions::expr_fn::coalesce;
use datafusion::functions_nested::expr_fn::array_empty as empty;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast, lit, when,
};
use datafusion::sql::sqlparser::ast::{
    Expr as Sql, FunctionArg, FunctionArgExpr, Join, JoinConstraint, JoinOperator, Spanned,
    TableFactor, TableWithJoins, Value,
};

use super::{nested, refused};
use crate::session::outside_subqueries::any_outside;

/// Whether these tables are such a join of two, as `nest_joins` makes them.
pub(super) fn is_one(table: &TableWithJoins) -> bool {
    matches!(&table.joins[..], [join] if is_join(join))
}

/// Whether a join is with the elements of lists.
pub(super) fn is_join(join: &Join) -> bool {
    !join.global && is_of_columns(&join.relation)
}

/// How many columns of elements a join yields, if it is one with the elements of lists.
pub(in crate::session) fn elements(join: &Join) -> Option<usize> {
    match &join.relation {
        TableFactor::UNNEST { array_exprs, .. } if is_join(join) => Some(array_exprs.len()),
        _ => None,
    }
}

fn is_name(expr: &Sql) -> bool {
    matches!(expr, Sql::Identifier(_) | Sql::CompoundIdentifier(_))
}

/// Whether a table is an UNNEST of columns.
fn is_of_columns(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::UNNEST { array_exprs, with_offset, with_ordinality, .. } => {
            !with_offset && !with_ordinality && any_outside(array_exprs, is_name)
        }
        _ => false,
    }
}

/// Turns `t, unnest(t.l)` into `t CROSS JOIN unnest(t.l)`.
pub(super) fn join(from: &mut Vec<TableWithJoins>) {
    let joins = from.iter_mut().flat_map(|table| &mut table.joins);
    joins.for_each(|join| without_word(&mut join.relation));
    from.iter_mut().for_each(|table| without_word(&mut table.relation));
    while let Some(at) =
        from.iter().skip(1).position(|table| is_of_columns(&table.relation)).map(|at| at + 1)
    {
        let TableWithJoins { relation, joins } = from.remove(at);
        let mut before = from.drain(..at);
        let Some(mut all) = before.next() else { return };
        let cross = |relation| Join {
            relation,
            global: false,
            join_operator: JoinOperator::CrossJoin(JoinConstraint::None),
        };
        all.joins.extend(before.map(|table| cross(nested(table.relation, table.joins))));
        all.joins.push(cross(relation));
        all.joins.extend(joins);
        from.insert(0, all);
    }
}

/// Drops LATERAL before UNNEST, where it changes nothing.
fn without_word(factor: &mut TableFactor) {
    let TableFactor::Function { lateral: true, name, args, with_ordinality: false, alias } = factor
    else {
        return;
    };
    if !name.to_string().eq_ignore_ascii_case("unnest") {
        return;
    }
    let exprs = args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    if let Some(array_exprs) = exprs.collect() {
        *factor = TableFactor::UNNEST {
            alias: alias.take(),
            array_exprs,
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: false,
        };
    }
}

pub(super) fn planned(
    table: TableWithJoins,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let place = table.joins[0].relation.span().start;
    let TableWithJoins { relation, mut joins } = table;
    let Some(Join {
        relation: TableFactor::UNNEST { alias, array_exprs, .. }, join_operator, ..
    }) = joins.pop()
    else {
        return refused("expected UNNEST", place);
    };
    let keeps_all = matches!(&join_operator, JoinOperator::Left(_) | JoinOperator::LeftOuter(_));
    let condition = match join_operator {
        JoinOperator::CrossJoin(JoinConstraint::None) => None,
        JoinOperator::Join(JoinConstraint::On(condition))
        | JoinOperator::Inner(JoinConstraint::On(condition)) => Some(condition),
        JoinOperator::Left(JoinConstraint::On(condition))
        | JoinOperator::LeftOuter(JoinConstraint::On(condition)) => {
            if !is_true(&condition) {
                return refused(
                    "LEFT JOIN of UNNEST takes ON true; \
                     unnest(list_filter(l, x -> …)) has a condition",
                    place,
                );
            }
            None
        }
        _ => {
            return refused(
                "UNNEST of a table's columns is joined by a comma, CROSS JOIN, JOIN … ON \
                 or LEFT JOIN … ON true",
                place,
            );
        }
    };
    let left = context.plan(relation)?;
    let (called, names) = match alias {
        Some(alias) => {
            let columns = alias.columns.into_iter().map(|column| column.name);
            let names: Vec<String> = columns.map(|name| context.normalize_ident(name)).collect();
            (context.normalize_ident(alias.name), names)
        }
        None => ("unnest".to_string(), vec![]),
    };
    let names = match (names.is_empty(), array_exprs.len()) {
        // Of one column, the table's name is that of the column, too.
        (true, 1) => vec![called.clone()],
        (true, number) => (1..=number).map(|at| format!("{called}{at}")).collect(),
        (false, number) if number == names.len() => names,
        (false, number) => {
            return refused(
                format!("UNNEST: {} names of columns for {number} lists", names.len()),
                place,
            );
        }
    };
    let own = left.schema().columns();
    let mut columns: Vec<Expr> = own.iter().cloned().map(Expr::Column).collect();
    let mut exprs = vec![];
    for expr in array_exprs {
        exprs.push(context.sql_to_expr(expr, left.schema())?);
    }
    if keeps_all {
        exprs = with_an_element(exprs, left.schema())?;
    }
    let mut lists = vec![];
    for (at, expr) in exprs.into_iter().enumerate() {
        let list = format!("list {at} of unnest");
        columns.push(expr.alias(&list));
        lists.push(Column::from_name(list));
    }
    let options = UnnestOptions::new().with_preserve_nulls(false);
    let plan = LogicalPlanBuilder::from(left)
        .project(columns)?
        .unnest_columns_with_options(lists.clone(), options)?;
    let elements = lists.into_iter().zip(names).map(|(list, name)| {
        Expr::Column(list).alias_qualified(Some(TableReference::bare(called.as_str())), name)
    });
    let plan =
        plan.project(own.into_iter().map(Expr::Column).chain(elements).collect::<Vec<_>>())?;
    let Some(condition) = condition else { return plan.build() };
    let condition = context.sql_to_expr(condition, plan.schema())?;
    plan.filter(condition)?.build()
}

fn is_true(condition: &Sql) -> bool {
    match condition {
        Sql::Nested(inner) => is_true(inner),
        Sql::Value(value) => value.value == Value::Boolean(true),
        _ => false,
    }
}

/// Whether none of the lists has an element.
pub(in crate::session) fn all_empty(lists: &[Expr]) -> Expr {
    let is_empty = |list: &Expr| coalesce(vec![empty(list.clone()), lit(true)]);
    lists.iter().map(is_empty).reduce(Expr::and).unwrap_or_else(|| lit(true))
}

/// Lists that are unnested together, of which the first has a null where none has an element.
pub(in crate::session) fn with_an_element(
    mut lists: Vec<Expr>,
    schema: &DFSchema,
) -> Result<Vec<Expr>> {
    let all_empty = all_empty(&lists);
    if let Some(first) = lists.first_mut()
        && let (dtype, Some(of_null)) = list_of_null(&first.get_type(schema)?)
    {
        *first = when(all_empty, lit(of_null)).otherwise(cast(first.clone(), dtype))?;
    }
    Ok(lists)
}

/// A type that has lists of one null, and such a list; none where the type is no list's, which is
/// said elsewhere.
fn list_of_null(dtype: &DataType) -> (DataType, Option<ScalarValue>) {
    let of = |field: &FieldRef| Arc::new(field.as_ref().clone().with_nullable(true));
    let null = |field: &FieldRef| new_null_array(field.data_type(), 1);
    match dtype {
        DataType::List(field) | DataType::FixedSizeList(field, _) => {
            let (offsets, field) = (OffsetBuffer::from_lengths([1]), of(field));
            let list = ListArray::new(field.clone(), offsets, null(&field), None);
            (DataType::List(field), Some(ScalarValue::List(Arc::new(list))))
        }
        DataType::LargeList(field) => {
            let (offsets, field) = (OffsetBuffer::from_lengths([1]), of(field));
            let list = LargeListArray::new(field.clone(), offsets, null(&field), None);
            (DataType::LargeList(field), Some(ScalarValue::LargeList(Arc::new(list))))
        }
        other => (other.clone(), None),
    }
}
