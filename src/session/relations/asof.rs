//! `a ASOF [LEFT] JOIN b ON a.k = b.k AND a.t >= b.t`: each row with the one of the other table
//! that is nearest in one direction, by the verb `join_asof`.
//!
//! One condition compares (`>=`, `>`, `<=`, `<`), the others are equalities; of `USING (k, t)` the
//! last column is compared by `>=`. A row whose key is NULL has no partner.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr as Sql, Ident, JoinConstraint, JoinOperator, Spanned, TableWithJoins,
};
use datafusion::sql::sqlparser::tokenizer::Location;

use super::{Numbered, outside, plan_of, positional, refused};
use crate::frame::expr::{col, lit};
use crate::frame::verbs::{AsofOptions, AsofStrategy};
use crate::query::Core;
use crate::session::syntax::{ASOF, ASOF_LEFT, POSITIONAL, is_mark};

/// Whether these tables are an ASOF join of two.
pub(super) fn is_one(table: &TableWithJoins) -> bool {
    matches!(&table.joins[..], [join] if matches!(join.join_operator, JoinOperator::AsOf { .. }))
}

/// What a condition says: the two sides, and how they compare.
struct AsofKeys {
    by: Vec<(Expr, Expr)>,
    ordered: Option<(Expr, Expr, BinaryOperator)>,
    /// Columns of the right that are the left's, too.
    merged: Vec<usize>,
}

pub(super) fn planned(
    core: &Arc<Core>,
    table: TableWithJoins,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let place = table.joins[0].relation.span().start;
    let TableWithJoins { relation, mut joins } = table;
    let Some(join) = joins.pop() else { return context.plan(relation) };
    let JoinOperator::AsOf { match_condition, constraint } = join.join_operator else {
        return refused("an ASOF join has a condition", place);
    };
    let is = |kind: &str| matches!(&match_condition, Sql::Identifier(of) if is_mark(of, kind));
    if is(POSITIONAL) {
        if constraint != JoinConstraint::None {
            return refused("a POSITIONAL JOIN has no ON and no USING", place);
        }
        let (left, right) = (context.plan(relation)?, context.plan(join.relation)?);
        return positional::planned(core, left, right);
    }
    if !is(ASOF) && !is(ASOF_LEFT) {
        let message = format!("MATCH_CONDITION ({match_condition}): write the comparison in ON");
        return refused(message, place);
    }
    let is_left = is(ASOF_LEFT);
    let (left, right) = (context.plan(relation)?, context.plan(join.relation)?);
    let AsofKeys { by, ordered, merged } = keys(&left, &right, constraint, place, context)?;
    let Some((left_key, right_key, operator)) = ordered else {
        return refused("an ASOF join compares one pair of columns by >=, >, <= or <", place);
    };
    let mut of_left = vec![(left_key, "lt".to_string())];
    let mut of_right =
        vec![(right_key, "rt".to_string()), (Expr::from(lit(true)), "matched".to_string())];
    let mut names = vec![];
    for (at, (left_expr, right_expr)) in by.into_iter().enumerate() {
        // Both sides of a union have one type, and here one name.
        of_left.push((left_expr, format!("k{at}")));
        of_right.push((right_expr, format!("k{at}")));
        names.push(format!("k{at}"));
    }
    let left = Numbered::of(core, left, "l", of_left)?;
    let right = Numbered::of(core, right, "r", of_right)?;
    let mut of_right = right.frame.clone();
    for name in &names {
        of_right = of_right.filter(col(name).is_not_null()).map_err(outside)?;
    }
    let strategy = match operator {
        BinaryOperator::GtEq | BinaryOperator::Gt => AsofStrategy::Backward,
        _ => AsofStrategy::Forward,
    };
    let exact = matches!(operator, BinaryOperator::GtEq | BinaryOperator::LtEq);
    let options = AsofOptions { strategy, by: names, exact, ..AsofOptions::default() };
    let joined = left.frame.join_asof(&of_right, "lt", "rt", &options).map_err(outside)?;
    let joined = match is_left {
        true => joined,
        false => joined.filter(col("matched").is_not_null()).map_err(outside)?,
    };
    let mut columns = left.named("l", &[]);
    columns.extend(right.named("r", &merged));
    plan_of(&joined, columns)
}

fn keys(
    left: &LogicalPlan,
    right: &LogicalPlan,
    constraint: JoinConstraint,
    place: Location,
    context: &mut dyn RelationPlannerContext,
) -> Result<AsofKeys> {
    let mut keys = AsofKeys { by: vec![], ordered: None, merged: vec![] };
    match constraint {
        JoinConstraint::On(condition) => {
            let mut parts = vec![];
            conjuncts(condition, &mut parts);
            for part in parts {
                let at = part.span().start;
                let Sql::BinaryOp { left: one, op, right: other } = part else {
                    return refused(
                        "conditions of an ASOF join are comparisons of both tables' columns",
                        at,
                    );
                };
                let (one, other, op) = sides(left, right, (*one, *other, op), at, context)?;
                match op {
                    BinaryOperator::Eq => keys.by.push((one, other)),
                    BinaryOperator::Gt
                    | BinaryOperator::GtEq
                    | BinaryOperator::Lt
                    | BinaryOperator::LtEq
                        if keys.ordered.is_none() =>
                    {
                        keys.ordered = Some((one, other, op));
                    }
                    _ => {
                        return refused(
                            "an ASOF join compares one pair by >=, >, <= or <, others by =",
                            at,
                        );
                    }
                }
            }
        }
        JoinConstraint::Using(columns) => {
            let last = columns.len();
            for (number, name) in columns.into_iter().enumerate() {
                let Some(ident) = name.0.first().and_then(|part| part.as_ident()).cloned() else {
                    return refused("USING takes columns", place);
                };
                let of = |plan: &LogicalPlan,
                          context: &mut dyn RelationPlannerContext,
                          ident: &Ident| {
                    context.sql_to_expr(Sql::Identifier(ident.clone()), plan.schema())
                };
                let pair = (of(left, context, &ident)?, of(right, context, &ident)?);
                let own = context.normalize_ident(ident);
                keys.merged
                    .extend(right.schema().fields().iter().position(|field| *field.name() == own));
                match number + 1 == last {
                    true => keys.ordered = Some((pair.0, pair.1, BinaryOperator::GtEq)),
                    false => keys.by.push(pair),
                }
            }
        }
        _ => return refused("an ASOF join has a condition by ON or USING", place),
    }
    // Of equal types, so that the sides of a pair are compared as they are elsewhere.
    for (one, other) in keys.by.iter_mut() {
        let (left_type, right_type) =
            (one.get_type(left.schema())?, other.get_type(right.schema())?);
        if left_type != right_type {
            let common = datafusion::logical_expr::type_coercion::binary::comparison_coercion(
                &left_type,
                &right_type,
            );
            let Some(common) = common else {
                return refused(format!("{left_type} and {right_type} cannot be compared"), place);
            };
            *one = one.clone().cast_to(&common, left.schema())?;
            *other = other.clone().cast_to(&common, right.schema())?;
        }
    }
    Ok(keys)
}

/// A comparison with the left table's side first.
fn sides(
    left: &LogicalPlan,
    right: &LogicalPlan,
    (one, other, op): (Sql, Sql, BinaryOperator),
    at: Location,
    context: &mut dyn RelationPlannerContext,
) -> Result<(Expr, Expr, BinaryOperator)> {
    let own = context.sql_to_expr(one.clone(), left.schema());
    if let (Ok(own), Ok(others)) = (&own, context.sql_to_expr(other.clone(), right.schema())) {
        return Ok((own.clone(), others, op));
    }
    let turned = match op {
        BinaryOperator::Gt => BinaryOperator::Lt,
        BinaryOperator::GtEq => BinaryOperator::LtEq,
        BinaryOperator::Lt => BinaryOperator::Gt,
        BinaryOperator::LtEq => BinaryOperator::GtEq,
        other => other,
    };
    match (context.sql_to_expr(other, left.schema()), context.sql_to_expr(one, right.schema())) {
        (Ok(own), Ok(others)) => Ok((own, others, turned)),
        // Neither way: what is unknown says more.
        (_, Err(error)) if own.is_err() => Err(error),
        _ => refused("a condition of an ASOF join compares a side of each table", at),
    }
}

fn conjuncts(condition: Sql, parts: &mut Vec<Sql>) {
    match condition {
        Sql::BinaryOp { left, op: BinaryOperator::And, right } => {
            conjuncts(*left, parts);
            conjuncts(*right, parts);
        }
        Sql::Nested(inner) => conjuncts(*inner, parts),
        other => parts.push(other),
    }
}
