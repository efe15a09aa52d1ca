//! Joins of frames: as SQL's, with names made plain.
//!
//! DataFusion tells equal names of two inputs apart by the table they come from. Frames have no
//! tables, so that the right side's names are made different before the join, and the keys that
//! both sides share become one after it.

use datafusion::common::{Column, NullEquality, ScalarValue};
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder};
use datafusion::prelude::coalesce;

use crate::error::{Error, ErrorKind, Result};

/// Columns that are equal in pairs.
pub(super) struct JoinKeys<'a> {
    pub(super) left: &'a [String],
    pub(super) right: &'a [String],
    pub(super) nulls_equal: bool,
}

/// The plan of a join, see [`crate::frame::AnyFrame::join`].
pub(super) fn plan(
    left: &LogicalPlan,
    right: &LogicalPlan,
    kind: JoinType,
    on: &JoinKeys<'_>,
    suffix: &str,
) -> Result<LogicalPlan> {
    let (left_on, right_on) = (on.left, on.right);
    if left_on.is_empty() || left_on.len() != right_on.len() {
        return Err(Error::unsupported(
            format!(
                "a join on {} columns of the left and {} of the right",
                left_on.len(),
                right_on.len()
            ),
            "both lists name the same number of columns, at least one",
        ));
    }
    let (left_names, right_names) = (names(left), names(right));
    known(left_on, &left_names)?;
    known(right_on, &right_names)?;

    let inside = inside(&left_names, &right_names, suffix);
    let renamed = |name: &String| {
        let index = right_names.iter().position(|n| n == name);
        index.map_or_else(|| name.clone(), |index| inside[index].clone())
    };
    let left_keys: Vec<Column> = left_on.iter().map(Column::new_unqualified).collect();
    let right_keys: Vec<Column> =
        right_on.iter().map(|name| Column::new_unqualified(renamed(name))).collect();
    let nulls =
        if on.nulls_equal { NullEquality::NullEqualsNull } else { NullEquality::NullEqualsNothing };
    let joined = LogicalPlanBuilder::from(plain(left, &left_names)?)
        .join_detailed(plain(right, &inside)?, kind, (left_keys, right_keys), None, nulls)?
        .build()?;

    // A key of one name on both sides.
    let shared = |name: &String| left_on.iter().zip(right_on).any(|(l, r)| l == r && l == name);
    let column = |name: String| Expr::Column(Column::new_unqualified(name));
    let output: Vec<Expr> = match kind {
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
            let of_left = left_names.iter().map(|name| match kind {
                JoinType::Right if shared(name) => column(renamed(name)).alias(name),
                JoinType::Full if shared(name) => {
                    coalesce(vec![column(name.clone()), column(renamed(name))]).alias(name)
                }
                _ => column(name.clone()),
            });
            let of_right =
                right_names.iter().filter(|name| !shared(name)).map(|name| column(renamed(name)));
            of_left.chain(of_right).collect()
        }
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
            right_names.iter().map(|name| column(renamed(name)).alias(name)).collect()
        }
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
            left_names.iter().cloned().map(column).collect()
        }
    };
    Ok(LogicalPlanBuilder::from(joined).project(output)?.build()?)
}

/// The plan of a join on any condition, see [`crate::frame::AnyFrame::join_where`].
pub(super) fn plan_where(
    left: &LogicalPlan,
    right: &LogicalPlan,
    kind: JoinType,
    on: Expr,
    suffix: &str,
) -> Result<LogicalPlan> {
    let (left_names, right_names) = (names(left), names(right));
    let inside = inside(&left_names, &right_names, suffix);
    let column = |name: &String| Expr::Column(Column::new_unqualified(name));
    let (left, right) =
        (LogicalPlanBuilder::from(plain(left, &left_names)?), plain(right, &inside)?);
    let joined = match (kind, on.as_literal()) {
        (JoinType::Inner, Some(ScalarValue::Boolean(Some(true)))) => left.cross_join(right)?,
        _ => left.join_on(right, kind, [on])?,
    };
    let output: Vec<Expr> = match kind {
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => right_names
            .iter()
            .zip(&inside)
            .map(|(name, inside)| column(inside).alias(name))
            .collect(),
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
            left_names.iter().map(column).collect()
        }
        _ => left_names.iter().chain(&inside).map(column).collect(),
    };
    Ok(joined.project(output)?.build()?)
}

/// The right side's names, other than those of the left.
fn inside(left: &[String], right: &[String], suffix: &str) -> Vec<String> {
    let other =
        |name: &String| if left.contains(name) { format!("{name}{suffix}") } else { name.clone() };
    right.iter().map(other).collect()
}

fn names(plan: &LogicalPlan) -> Vec<String> {
    plan.schema().fields().iter().map(|field| field.name().clone()).collect()
}

/// The plan's columns under these names, without their tables' names.
fn plain(plan: &LogicalPlan, names: &[String]) -> Result<LogicalPlan> {
    let columns = plan
        .schema()
        .columns()
        .into_iter()
        .zip(names)
        .map(|(column, name)| Expr::Column(column).alias(name));
    Ok(LogicalPlanBuilder::from(plan.clone()).project(columns.collect::<Vec<_>>())?.build()?)
}

fn known(on: &[String], names: &[String]) -> Result<()> {
    match on.iter().find(|name| !names.contains(name)) {
        Some(name) => {
            Err(ErrorKind::ColumnNotFound { name: name.clone(), known: names.to_vec() }.into())
        }
        None => Ok(()),
    }
}
