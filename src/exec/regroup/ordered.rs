//! Aggregates that read a group's rows in an order: percentiles, the value in some place, strings one after the other.

use datafusion::common::DFSchemaRef;
use datafusion::logical_expr::{Expr, SortExpr, lit};
use datafusion::prelude::col;

use super::{BySlot, Grouped};
use crate::codegen::{Direction, Emitter, NullsPlace, Value};
use crate::column::{Relation, Repr};
use crate::error::Result;
use crate::exec::run::Runner;
use crate::exec::sort::order_key;
use crate::exec::sort_bytes::OrderKey;
use crate::plan::RegroupedCall;

/// Parts of the distance of two values that a percentile may lie at between them, as DataFusion has it.
const PARTS: f64 = 1_000_000.0;

impl Runner {
    /// The value at a share of the way through each slot's rows sorted by value, or between two.
    pub(super) fn percentile(&self, rows: &Grouped, call: &RegroupedCall, share: f64) -> Result<BySlot> {
        let arg = &call.args[0];
        let (relation, schema) = self.slots_and(rows, call, arg.clone().is_not_null(), std::slice::from_ref(arg))?;
        let at = usize::from(rows.keyed);
        let order = [(col("x0"), Direction::Ascending, NullsPlace::Last)];
        self.runs(rows, &relation, &schema, &order, |generator, out, order, [begin, end]| {
            let share = generator.params.word("u64", share.to_bits());
            let place = out.let_("f64", format!("fmul(double_of_bits({share}), (f64)({end} - {begin} - 1))"));
            let low = out.let_("u32", format!("{order}[{begin} + (u32)floor({place})]"));
            let high = out.let_("u32", format!("{order}[{begin} + (u32)ceil({place})]"));
            let below = generator.load(&relation, at, &low, false, out);
            let above = generator.load(&relation, at, &high, false, out);
            let ctype = below.repr.device_type();
            let (a, b) = (&below.code, &above.code);
            let weight = format!("fdiv((f64)(u64)fmul(fsub({place}, floor({place})), {PARTS:?}), {PARTS:?})");
            let weight = out.let_("f64", weight);
            let between = format!("fadd((f64){a}, fmul(fsub((f64){b}, (f64){a}), {weight}))");
            let code = out.let_(ctype, format!("{low} == {high} || {weight} == 0 ? {a} : ({ctype}){between}"));
            let mut value = Value::new(call.dtype.clone(), below.repr, code, None);
            value.range = below.range;
            value
        })
    }

    /// The value of the row `place` from the first (1) or the last (−1) of each slot, in the order asked for.
    pub(super) fn nth(&self, rows: &Grouped, call: &RegroupedCall, place: i64, skip_nulls: bool) -> Result<BySlot> {
        let arg = &call.args[0];
        let keep = if skip_nulls { arg.clone().is_not_null() } else { lit(true) };
        let Ordered { relation, schema, order } = self.in_order(rows, call, keep)?;
        let at = usize::from(rows.keyed);
        self.runs(rows, &relation, &schema, &order, |generator, out, order, [begin, end]| {
            let steps = generator.params.word("u64", place.unsigned_abs());
            let inside = out.let_("bool", format!("{steps} <= (u64)({end} - {begin})"));
            // Where there is no such row any will do: nobody looks at it.
            let at_row =
                if place > 0 { format!("{begin} + (u32){steps} - 1") } else { format!("{end} - (u32){steps}") };
            let row = out.let_("u32", format!("{order}[{inside} ? {at_row} : {begin}]"));
            let mut value = generator.load(&relation, at, &row, false, out);
            value.valid = Some(match &value.valid {
                Some(valid) => out.let_("bool", format!("{inside} && {valid}")),
                None => inside,
            });
            value
        })
    }

    /// The strings of each slot one after the other, in the order asked for, with `between` between them.
    pub(super) fn joined_strings(&self, rows: &Grouped, call: &RegroupedCall, between: &Expr) -> Result<BySlot> {
        let Ordered { relation, schema, order } = self.in_order(rows, call, call.args[0].clone().is_not_null())?;
        let at = usize::from(rows.keyed);
        let mut failed = None;
        let joined = self.runs(rows, &relation, &schema, &order, |generator, out, order, [begin, end]| {
            let between = generator.expr(between, out).map(|value| out.let_("view", value.code));
            let between = between.unwrap_or_else(|error| {
                failed = Some(error);
                "view{0, 0, 0}".into()
            });
            generator.make_text();
            let length = out.fresh();
            out.line(format!("u64 {length} = (u64)({end} - {begin} - 1) * {between}.length;"));
            let mut each = |out: &mut Emitter, body: &dyn Fn(&str) -> String| {
                out.line(format!("for (u32 i = {begin}; i < {end}; i++) {{"));
                let row = out.let_("u32", format!("{order}[i]"));
                let value = generator.load(&relation, at, &row, false, out);
                let text = out.let_("view", value.code);
                out.line(body(&text));
                out.line("}");
            };
            each(out, &|text| format!("{length} += {text}.length;"));
            let whole = out.fresh();
            out.line(format!("text_writer {whole}(arena, {length});"));
            each(out, &|text| {
                format!(
                    "if (i != {begin}) {whole}.put({between}, 0, {between}.length);\n{whole}.put({text}, 0, {text}.length);"
                )
            });
            Value::new(call.dtype.clone(), Repr::View, format!("{whole}.out"), None)
        });
        match failed {
            Some(error) => Err(error),
            None => joined,
        }
    }

    /// Rows that `keep` lets pass, with the call's argument as `x0`, and what to sort them by.
    pub(super) fn in_order(&self, rows: &Grouped, call: &RegroupedCall, keep: Expr) -> Result<Ordered> {
        let mut columns = vec![call.args[0].clone()];
        columns.extend(call.order.iter().map(|key| key.expr.clone()));
        let (relation, schema) = self.slots_and(rows, call, keep, &columns)?;
        let order = call.order.iter().enumerate().map(|(at, key)| sort_key(at, key)).collect();
        Ok(Ordered { relation, schema, order })
    }
}

/// Rows, and what to sort them by within their slot.
pub(super) struct Ordered {
    pub(super) relation: Relation,
    pub(super) schema: DFSchemaRef,
    pub(super) order: Vec<OrderKey>,
}

/// The key that the column behind the argument's holds.
fn sort_key(at: usize, key: &SortExpr) -> OrderKey {
    let (_, direction, nulls) = order_key(key);
    (col(format!("x{}", at + 1)), direction, nulls)
}
