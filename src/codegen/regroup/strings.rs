//! `string_agg`: the strings of each group one after the other.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

use super::super::emit::Emitter;
use super::super::generator::Generator;
use super::super::span::Span;
use super::super::value::Value;
use super::{ColumnOf, SlotRun};
use crate::column::Repr;
use crate::error::Result;

/// A column of strings, to be put one after the other.
pub(crate) struct Strings<'a> {
    pub(crate) column: ColumnOf<'a>,
    /// What stands between them, a constant.
    pub(crate) between: &'a Expr,
    pub(crate) dtype: &'a DataType,
}

impl Strings<'_> {
    /// Those of the rows of a run.
    pub(crate) fn of_run(
        &self,
        run: &SlotRun,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Result<Value> {
        self.joined(&run.span, |place| format!("{}[{place}]", run.order), generator, out)
    }

    /// Those of the rows of a span.
    pub(crate) fn of_span(
        &self,
        span: &Span,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Result<Value> {
        self.joined(span, str::to_string, generator, out)
    }

    /// Those of the places of a span, which are rows as `row_at` says. Of no place it is empty.
    fn joined(
        &self,
        Span { begin, end }: &Span,
        row_at: impl Fn(&str) -> String,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Result<Value> {
        let between = generator.expr(self.between, out)?;
        let between = out.let_("view", between.code);
        generator.make_text();
        let length = out.fresh();
        let between_all = format!("(u64)({end} - {begin} - 1) * {between}.length");
        out.variable("u64", &length, format_args!("{begin} < {end} ? {between_all} : 0"));
        let mut each = |out: &mut Emitter, body: &dyn Fn(&str) -> String| {
            out.repeat(format_args!("for (u32 i = {begin}; i < {end}; i++)"));
            let row = out.let_("u32", row_at("i"));
            let value = self.column.load(&row, generator, out);
            let text = out.let_("view", value.code);
            out.line(body(&text));
            out.close("}");
        };
        each(out, &|text| format!("{length} += {text}.length;"));
        let whole = out.fresh();
        out.object("text_writer", &whole, format_args!("(arena, {length})"));
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
