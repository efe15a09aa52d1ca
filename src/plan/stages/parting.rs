//! What is known of which task has which rows: rows of equal values in some columns are of one task.
//!
//! ```text
//!   lineitem, cut at keys 100, 200         task 0: l_orderkey < 100, task 1: < 200, task 2: the rest
//!     filter, projection                   keep it, as long as the column is there
//!     join with orders, cut alike          no row moves: equal keys are of one task
//!     aggregate by l_orderkey, o_orderdate no partial results: a group is of one task
//! ```
//!
//! Tables have it that are cut at the same keys, and rows that were exchanged. Where one side of a
//! join has it, rows of the other side alone move.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, JoinType, ScalarValue};
use datafusion::logical_expr::{Expr, ExprSchemable, Join, LogicalPlan, lit, when};

use super::{FragmentRows, InputRole};
use crate::error::{Error, Result};
use crate::plan::division::JoinSide;
use crate::plan::walk::place_of;

/// Keys at which rows are cut, ascending: task `i` has those from the `i`-th one on, up to the next.
/// The first task has those below the first key, and those without a key.
pub(crate) type Cuts = Arc<[i128]>;

/// How a table lies: cut at these values of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableCuts {
    pub(crate) column: usize,
    pub(crate) cuts: Cuts,
}

/// Columns whose values tell the task of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Parting {
    /// By the cut that the column's value lies in.
    Cut { column: usize, cuts: Cuts },
    /// By a hash of the columns, in this order.
    Hash { columns: Vec<usize> },
}

impl Parting {
    pub(super) fn columns(&self) -> &[usize] {
        match self {
            Parting::Cut { column, .. } => std::slice::from_ref(column),
            Parting::Hash { columns } => columns,
        }
    }

    /// By other columns, which have equal values; `None` where one has no such column.
    pub(super) fn by(&self, other: impl Fn(usize) -> Option<usize>) -> Option<Parting> {
        Some(match self {
            Parting::Cut { column, cuts } => {
                Parting::Cut { column: other(*column)?, cuts: cuts.clone() }
            }
            Parting::Hash { columns } => Parting::Hash {
                columns: columns.iter().map(|at| other(*at)).collect::<Option<_>>()?,
            },
        })
    }
}

/// The place of a column of its input among those that an operator yields.
fn handed_on(operator: &LogicalPlan, column: usize) -> Option<usize> {
    let place = |exprs: &[Expr], input: &DFSchema| {
        let is_it = |expr: &Expr| place_of(expr, input) == Some(column);
        exprs.iter().position(is_it)
    };
    match operator {
        LogicalPlan::Projection(project) => place(&project.expr, project.input.schema()),
        LogicalPlan::Aggregate(aggregate) => place(&aggregate.group_expr, aggregate.input.schema()),
        LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Distinct(_) => Some(column),
        _ => None,
    }
}

/// Partings of an operator's rows, by those of its input's.
pub(super) fn through(operator: &LogicalPlan, partings: &[Parting]) -> Vec<Parting> {
    let of = |parting: &Parting| parting.by(|column| handed_on(operator, column));
    partings.iter().filter_map(of).collect()
}

/// Those of several inputs that all of them have.
pub(super) fn common(all: &[FragmentRows]) -> Vec<Parting> {
    let Some((first, more)) = all.split_first() else { return vec![] };
    let in_all = |parting: &&Parting| more.iter().all(|rows| rows.partings.contains(parting));
    first.partings.iter().filter(in_all).cloned().collect()
}

/// Whether rows of equal keys are of one task.
pub(super) fn are_together(rows: &FragmentRows, keys: &[Expr]) -> bool {
    let schema = rows.plan.schema();
    let keys: Vec<usize> = keys.iter().filter_map(|key| place_of(key, schema)).collect();
    let within = |parting: &Parting| parting.columns().iter().all(|at| keys.contains(at));
    rows.partings.iter().any(within)
}

/// Keys of both sides of a join that are columns of equal types, by their places.
fn column_pairs(join: &Join) -> Vec<(usize, usize)> {
    let (left, right) = (join.left.schema(), join.right.schema());
    let pair = |(of_left, of_right): &(Expr, Expr)| {
        let places = (place_of(of_left, left)?, place_of(of_right, right)?);
        (of_left.get_type(left).ok()? == of_right.get_type(right).ok()?).then_some(places)
    };
    join.on.iter().filter_map(pair).collect()
}

/// For each column of a side, that of the other side which it equals.
fn counterpart(pairs: &[(usize, usize)], of: JoinSide) -> impl Fn(usize) -> Option<usize> {
    move |column| {
        let pair = pairs.iter().find(|pair| of.of(**pair) == column);
        pair.map(|pair| of.other().of(*pair))
    }
}

/// Whether rows of both sides that a join puts together are of one task already.
pub(super) fn are_alike(join: &Join, left: &FragmentRows, right: &FragmentRows) -> bool {
    let pairs = column_pairs(join);
    let partings = left.partings.iter();
    let mut on_right = partings.filter_map(|own| own.by(counterpart(&pairs, JoinSide::Left)));
    on_right.any(|parting| right.partings.contains(&parting))
}

/// How rows of the other side lie once they are where this side has their keys; `None` where this
/// side's rows do not tell.
pub(super) fn followers(join: &Join, side: JoinSide, rows: &FragmentRows) -> Option<Parting> {
    let pairs = column_pairs(join);
    let others = counterpart(&pairs, side);
    rows.partings.iter().find_map(|own| own.by(&others))
}

/// Rows that move to where a parting has them.
pub(super) fn moved(rows: FragmentRows, parting: Parting) -> Result<FragmentRows> {
    let role = match &parting {
        Parting::Cut { column, cuts } => {
            InputRole::ByCuts(TableCuts { column: *column, cuts: cuts.clone() })
        }
        Parting::Hash { columns } => InputRole::ByKeys(columns.clone()),
    };
    let mut moved = rows.ended(role)?;
    moved.partings = vec![parting];
    Ok(moved)
}

/// Partings of the rows that a join yields. `sides` are those whose rows tasks have parts of.
pub(super) fn of_join(
    join: &Join,
    sides: &[JoinSide],
    rows: (&FragmentRows, &FragmentRows),
) -> Vec<Parting> {
    use JoinType::*;
    let pairs = column_pairs(join);
    let kept: &[JoinSide] = match join.join_type {
        Inner => &[JoinSide::Left, JoinSide::Right],
        // Rows of the other side's columns are null in any task.
        Left | LeftSemi | LeftAnti | LeftMark => &[JoinSide::Left],
        Right | RightSemi | RightAnti | RightMark => &[JoinSide::Right],
        Full => &[],
    };
    let width = match join.join_type {
        Inner | Right => join.left.schema().fields().len(),
        _ => 0,
    };
    let place = |side: JoinSide| {
        move |column: usize| Some(if side == JoinSide::Right { column + width } else { column })
    };
    let mut partings = vec![];
    for side in kept.iter().filter(|side| sides.contains(side)) {
        for own in &side.of(rows).partings {
            partings.extend(own.by(place(*side)));
            if join.join_type == Inner {
                let equal = own.by(counterpart(&pairs, *side));
                partings.extend(equal.and_then(|equal| equal.by(place(side.other()))));
            }
        }
    }
    let mut different: Vec<Parting> = vec![];
    for parting in partings {
        if !different.contains(&parting) {
            different.push(parting);
        }
    }
    different
}

/// Whether values of a type may be cut at integers: those that are integers on the device.
pub(crate) fn may_be_cut(dtype: &DataType) -> bool {
    cut_value(dtype, 0).is_some()
}

fn cut_value(dtype: &DataType, value: i128) -> Option<ScalarValue> {
    Some(match dtype {
        DataType::Int8 => ScalarValue::Int8(Some(value.try_into().ok()?)),
        DataType::Int16 => ScalarValue::Int16(Some(value.try_into().ok()?)),
        DataType::Int32 => ScalarValue::Int32(Some(value.try_into().ok()?)),
        DataType::Int64 => ScalarValue::Int64(Some(value.try_into().ok()?)),
        DataType::Date32 => ScalarValue::Date32(Some(value.try_into().ok()?)),
        DataType::Decimal128(precision, scale) => {
            ScalarValue::Decimal128(Some(value), *precision, *scale)
        }
        _ => return None,
    })
}

/// The number of the task that a key's row is of.
///
/// # Errors
/// `Internal` of keys that are not cut at integers.
pub(crate) fn task_by_cuts(key: &Expr, schema: &DFSchema, cuts: &[i128]) -> Result<Expr> {
    let dtype = key.get_type(schema)?;
    let mut number = when(key.clone().is_null(), lit(0u32));
    for (task, cut) in cuts.iter().enumerate() {
        let cut = cut_value(&dtype, *cut);
        let cut = cut.ok_or_else(|| Error::internal(format!("keys of type {dtype} are cut")))?;
        number = number.when(key.clone().lt(Expr::Literal(cut, None)), lit(task as u32));
    }
    Ok(number.otherwise(lit(cuts.len() as u32))?)
}
