//! Values of rows in an order: medians, percentiles, the first, the last and those between. Calls
//! over the same rows in the same order share one sort.

use datafusion::common::DFSchemaRef;
use datafusion::logical_expr::{Expr, SortExpr};

use super::{BySlot, Grouped};
use crate::codegen::regroup::{ColumnOf, SlotRun};
use crate::codegen::{Emitter, Generator, Middle, Value};
use crate::column::Relation;
use crate::error::Result;
use crate::exec::run::{Runner, column_named};
use crate::exec::sort::order_key;
use crate::exec::sort_bytes::OrderKey;
use crate::plan::{RegroupedCall, RegroupedKind};

/// Which rows of each slot are sorted, and by what.
#[derive(Debug, PartialEq)]
pub(super) struct SortedBy {
    pub(super) conditions: Vec<Expr>,
    pub(super) order: Vec<SortExpr>,
}

impl SortedBy {
    /// What the call needs, if it is one that picks rows or lists them.
    pub(super) fn of(rows: &Grouped, call: &RegroupedCall) -> Option<SortedBy> {
        let arg = call.args.first()?;
        let (skip_nulls, order) = match call.kind {
            RegroupedKind::Median | RegroupedKind::Percentile(_) => {
                (true, vec![arg.clone().sort(true, false)])
            }
            RegroupedKind::Nth { skip_nulls, .. }
            | RegroupedKind::Place { skip_nulls, .. }
            | RegroupedKind::Collect { skip_nulls } => (skip_nulls, call.order.clone()),
            _ => return None,
        };
        let known = if skip_nulls { rows.unless_null(arg) } else { None };
        Some(SortedBy { conditions: call.filter.iter().cloned().chain(known).collect(), order })
    }
}

/// Rows, and what to sort them by within their slot.
pub(super) struct OrderedRows {
    pub(super) relation: Relation,
    pub(super) order: Vec<OrderKey>,
    pub(super) schema: DFSchemaRef,
    /// The relation's column of each argument.
    pub(super) arguments: Vec<usize>,
}

impl Runner {
    /// The value of each call for each slot.
    pub(super) fn picked(
        &self,
        rows: &Grouped,
        calls: &[&RegroupedCall],
        by: &SortedBy,
    ) -> Result<BySlot> {
        let args = calls.iter().map(|call| &call.args[0]);
        let OrderedRows { relation, schema, order, arguments } =
            self.in_order(rows, by.conditions.iter().cloned(), args, &by.order)?;
        let runs = self.sorted_runs(rows, &relation, &schema, &order)?;
        self.of_runs(rows, &runs, |run, generator, out| {
            let value = |(call, at): (&&RegroupedCall, usize)| {
                picked(call, run, ColumnOf { relation: &relation, at }, generator, out)
            };
            Ok(calls.iter().zip(arguments).map(value).collect())
        })
    }

    /// The rows that all conditions let pass, with the arguments and what to sort them by.
    pub(super) fn in_order<'a>(
        &self,
        rows: &Grouped,
        conditions: impl IntoIterator<Item = Expr>,
        args: impl IntoIterator<Item = &'a Expr>,
        order: &'a [SortExpr],
    ) -> Result<OrderedRows> {
        let mut columns: Vec<Expr> = vec![];
        let mut place = |expr: &Expr| {
            columns.iter().position(|column| column == expr).unwrap_or_else(|| {
                columns.push(expr.clone());
                columns.len() - 1
            })
        };
        let arguments = args.into_iter().map(|arg| usize::from(rows.keyed) + place(arg)).collect();
        let order = (order.iter())
            .map(|key| {
                let (expr, direction, nulls) = order_key(key);
                (column_named(format!("x{}", place(&expr))), direction, nulls)
            })
            .collect();
        let (relation, schema) = self.slots_and(rows, conditions, &columns)?;
        Ok(OrderedRows { relation, schema, order, arguments })
    }
}

/// The call's value of a run, of a column's values.
fn picked(
    call: &RegroupedCall,
    run: &SlotRun,
    column: ColumnOf<'_>,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Value {
    let middle = match call.kind {
        RegroupedKind::Nth { place, .. } => return run.nth(column, place, generator, out),
        RegroupedKind::Place { last, .. } => {
            return run.nth(column, if last { -1 } else { 1 }, generator, out);
        }
        RegroupedKind::Percentile(share) => Middle::Percentile(f64::from_bits(share)),
        _ => Middle::Median,
    };
    run.middle(column, middle, &call.dtype, generator, out)
}
