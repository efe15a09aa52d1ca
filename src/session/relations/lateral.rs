//! `t, unnest(t.l)`, `t CROSS JOIN unnest(t.l)` and `t JOIN unnest(t.l) ON …`: each row of `t` once
//! for each element of its list. DataFusion's planner (55.2) plans a join that no engine runs.
//!
//! ```text
//!   FROM l, unnest(l.s) AS e(v)    ─▶    FROM (SELECT l.*, unnest(l.s) AS v FROM l)
//! ```

use std::ops::ControlFlow;

use datafusion::common::{Column, TableReference, UnnestOptions};
use datafusion::error::Result;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{
    Expr as Sql, FunctionArg, FunctionArgExpr, Join, JoinConstraint, JoinOperator, Query, Spanned,
    TableFactor, TableWithJoins, Visit, Visitor,
};

use super::{nested, refused};

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

/// Whether a table is an UNNEST of columns.
fn is_of_columns(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::UNNEST { array_exprs, with_offset, with_ordinality, .. } => {
            !with_offset
                && !with_ordinality
                && Visit::visit(array_exprs, &mut ColumnNames { depth: 0 }).is_break()
        }
        _ => false,
    }
}

/// Stops at the first name of a column outside of subqueries.
struct ColumnNames {
    depth: usize,
}

impl Visitor for ColumnNames {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Sql) -> ControlFlow<()> {
        match expr {
            Sql::Identifier(_) | Sql::CompoundIdentifier(_) if self.depth == 0 => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
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
    let condition = match join_operator {
        JoinOperator::CrossJoin(JoinConstraint::None) => None,
        JoinOperator::Join(JoinConstraint::On(condition))
        | JoinOperator::Inner(JoinConstraint::On(condition)) => Some(condition),
        _ => {
            return refused(
                "UNNEST of a table's columns is joined by a comma, CROSS JOIN or JOIN … ON",
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
    let mut lists = vec![];
    for (at, expr) in array_exprs.into_iter().enumerate() {
        let list = format!("list {at} of unnest");
        columns.push(context.sql_to_expr(expr, left.schema())?.alias(&list));
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
