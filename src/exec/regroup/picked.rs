//! Values of rows in an order: medians, percentiles, the first, the last and those between. Calls
//! over the same rows in the same order share one sort.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchemaRef;
use datafusion::logical_expr::{Expr, SortExpr};

use super::middle::Middle;
use super::{BySlot, Grouped};
use crate::codegen::{Emitter, Generator, Value};
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
        self.of_runs(rows, &runs, |generator, out, order, [begin, end]| {
            let run = |at| SlotRun { relation: &relation, at, order, begin, end };
            Ok(calls
                .iter()
                .zip(arguments)
                .map(|(call, at)| run(at).value(call, generator, out))
                .collect())
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

/// The rows of a slot in order, by the names of that order and of where they begin and end in it.
struct SlotRun<'a> {
    relation: &'a Relation,
    /// The argument's column.
    at: usize,
    order: &'a str,
    begin: &'a str,
    end: &'a str,
}

impl SlotRun<'_> {
    fn value(
        &self,
        call: &RegroupedCall,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Value {
        match call.kind {
            RegroupedKind::Percentile(share) => {
                self.middle(Middle::Percentile(f64::from_bits(share)), &call.dtype, generator, out)
            }
            RegroupedKind::Nth { place, .. } => self.nth(place, generator, out),
            RegroupedKind::Place { last: false, .. } => self.nth(1, generator, out),
            RegroupedKind::Place { last: true, .. } => self.nth(-1, generator, out),
            _ => self.middle(Middle::Median, &call.dtype, generator, out),
        }
    }

    fn middle(
        &self,
        middle: Middle,
        dtype: &DataType,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Value {
        let SlotRun { begin, end, .. } = self;
        let count = out.let_("u32", format_args!("{end} - {begin}"));
        let between = middle.places(&count, generator, out);
        let [below, above] = [&between.low, &between.high]
            .map(|place| self.load(&format!("{begin} + {place}"), generator, out));
        between.value(dtype, &below, &above, out)
    }

    /// The value of the row `place` from the first (1) or the last (−1).
    fn nth(&self, place: i64, generator: &mut Generator<'_>, out: &mut Emitter) -> Value {
        let SlotRun { begin, end, .. } = self;
        let steps = generator.params.word("u64", place.unsigned_abs());
        let inside = out.let_("bool", format_args!("{steps} <= (u64)({end} - {begin})"));
        // Where there is no such row any will do: nobody looks at it.
        let at_row = if place > 0 {
            format!("{begin} + (u32){steps} - 1")
        } else {
            format!("{end} - (u32){steps}")
        };
        let mut value = self.load(&format!("{inside} ? {at_row} : {begin}"), generator, out);
        value.valid = Some(match &value.valid {
            Some(valid) => out.let_("bool", format_args!("{inside} && {valid}")),
            None => inside,
        });
        value
    }

    /// What the row at a place of the order has.
    fn load(&self, place: &str, generator: &mut Generator<'_>, out: &mut Emitter) -> Value {
        let row = out.let_("u32", format_args!("{}[{place}]", self.order));
        generator.load(self.relation, self.at, &row, false, out)
    }
}
