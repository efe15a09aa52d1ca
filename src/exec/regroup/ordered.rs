//! Aggregates that read a group's rows in an order: the value in some place, strings one after the
//! other.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchemaRef;
use datafusion::logical_expr::{Expr, SortExpr, lit};
use datafusion::prelude::col;

use super::{BySlot, Grouped};
use crate::codegen::{Emitter, Generator, Value};
use crate::column::{Relation, Repr};
use crate::error::Result;
use crate::exec::run::Runner;
use crate::exec::sort::order_key;
use crate::exec::sort_bytes::OrderKey;
use crate::plan::RegroupedCall;

impl Runner {
    /// The value of the row `place` from the first (1) or the last (−1) of each slot, in the order
    /// asked for.
    pub(super) fn nth(&self, rows: &Grouped, call: &RegroupedCall, place: i64, skip_nulls: bool) -> Result<BySlot> {
        let arg = &call.args[0];
        let keep = if skip_nulls { arg.clone().is_not_null() } else { lit(true) };
        let OrderedRows { relation, schema, order } = self.in_order(rows, call, keep)?;
        let at = usize::from(rows.keyed);
        self.runs(rows, &relation, &schema, &order, |generator, out, order, [begin, end]| {
            let steps = generator.params.word("u64", place.unsigned_abs());
            let inside = out.let_("bool", format_args!("{steps} <= (u64)({end} - {begin})"));
            // Where there is no such row any will do: nobody looks at it.
            let at_row =
                if place > 0 { format!("{begin} + (u32){steps} - 1") } else { format!("{end} - (u32){steps}") };
            let row = out.let_("u32", format_args!("{order}[{inside} ? {at_row} : {begin}]"));
            let mut value = generator.load(&relation, at, &row, false, out);
            value.valid = Some(match &value.valid {
                Some(valid) => out.let_("bool", format_args!("{inside} && {valid}")),
                None => inside,
            });
            value
        })
    }

    /// The strings of each slot one after the other, in the order asked for, with `between` between
    /// them.
    pub(super) fn joined_strings(&self, rows: &Grouped, call: &RegroupedCall, between: &Expr) -> Result<BySlot> {
        let OrderedRows { relation, schema, order } = self.in_order(rows, call, call.args[0].clone().is_not_null())?;
        let strings = Strings { relation: &relation, at: usize::from(rows.keyed), between, dtype: &call.dtype };
        let mut failed = None;
        let joined = self.runs(rows, &relation, &schema, &order, |generator, out, order, run| {
            strings.joined(run, |place| format!("{order}[{place}]"), generator, out).unwrap_or_else(|error| {
                failed = Some(error);
                Value::new(call.dtype.clone(), Repr::View, "view{0, 0, 0}", None)
            })
        });
        match failed {
            Some(error) => Err(error),
            None => joined,
        }
    }

    /// Rows that `keep` lets pass, with the call's argument as `x0`, and what to sort them by.
    pub(super) fn in_order(&self, rows: &Grouped, call: &RegroupedCall, keep: Expr) -> Result<OrderedRows> {
        let mut columns = vec![call.args[0].clone()];
        columns.extend(call.order.iter().map(|key| key.expr.clone()));
        let (relation, schema) = self.slots_and(rows, call, keep, &columns)?;
        let order = call.order.iter().enumerate().map(|(at, key)| sort_key(at, key)).collect();
        Ok(OrderedRows { relation, schema, order })
    }
}

/// Rows, and what to sort them by within their slot.
pub(super) struct OrderedRows {
    pub(super) relation: Relation,
    pub(super) schema: DFSchemaRef,
    pub(super) order: Vec<OrderKey>,
}

/// A column of strings, to be put one after the other.
pub(in crate::exec) struct Strings<'a> {
    pub(in crate::exec) relation: &'a Relation,
    /// Where the column is in the relation.
    pub(in crate::exec) at: usize,
    /// What stands between them, a constant.
    pub(in crate::exec) between: &'a Expr,
    pub(in crate::exec) dtype: &'a DataType,
}

impl Strings<'_> {
    /// Those of the places from `begin` up to `end` (names of `u32`), which are rows as `row_at`
    /// says. Of no place it is empty.
    pub(in crate::exec) fn joined(
        &self,
        [begin, end]: [&str; 2],
        row_at: impl Fn(&str) -> String,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Result<Value> {
        let between = generator.expr(self.between, out)?;
        let between = out.let_("view", between.code);
        generator.make_text();
        let length = out.fresh();
        out.line(format_args!("u64 {length} = {begin} < {end} ? (u64)({end} - {begin} - 1) * {between}.length : 0;"));
        let mut each = |out: &mut Emitter, body: &dyn Fn(&str) -> String| {
            out.line(format_args!("for (u32 i = {begin}; i < {end}; i++) {{"));
            let row = out.let_("u32", row_at("i"));
            let value = generator.load(self.relation, self.at, &row, false, out);
            let text = out.let_("view", value.code);
            out.line(body(&text));
            out.line("}");
        };
        each(out, &|text| format!("{length} += {text}.length;"));
        let whole = out.fresh();
        out.line(format_args!("text_writer {whole}(arena, {length});"));
        each(out, &|text| {
            format!(
                "if (i != {begin}) {whole}.put({between}, 0, {between}.length);\n{whole}.put({text}, 0, {text}.length);"
            )
        });
        let made = format!("{whole}.out");
        out.fail_if_too_long(&made, "string_agg(…)");
        Ok(Value::new(self.dtype.clone(), Repr::View, made, None))
    }
}

/// The key that the column behind the argument's holds.
fn sort_key(at: usize, key: &SortExpr) -> OrderKey {
    let (_, direction, nulls) = order_key(key);
    (col(format!("x{}", at + 1)), direction, nulls)
}
