//! `string_agg`: the strings of each group one after the other.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

use super::picked::OrderedRows;
use super::{BySlot, Grouped};
use crate::codegen::{Emitter, Generator, Value};
use crate::column::{Relation, Repr};
use crate::error::Result;
use crate::exec::run::Runner;
use crate::plan::RegroupedCall;

impl Runner {
    /// The strings of each slot one after the other, in the order asked for, with `between` between
    /// them.
    pub(super) fn joined_strings(
        &self,
        rows: &Grouped,
        call: &RegroupedCall,
        between: &Expr,
    ) -> Result<BySlot> {
        let arg = &call.args[0];
        let conditions = call.filter.iter().cloned().chain(rows.unless_null(arg));
        let OrderedRows { relation, schema, order, arguments } =
            self.in_order(rows, conditions, [arg], &call.order)?;
        let runs = self.sorted_runs(rows, &relation, &schema, &order)?;
        let strings =
            Strings { relation: &relation, at: arguments[0], between, dtype: &call.dtype };
        self.of_runs(rows, &runs, |generator, out, order, run| {
            Ok(vec![strings.joined(run, |place| format!("{order}[{place}]"), generator, out)?])
        })
    }
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
        out.line(format_args!(
            "u64 {length} = {begin} < {end} ? (u64)({end} - {begin} - 1) * {between}.length : 0;"
        ));
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
