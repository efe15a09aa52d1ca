//! Rows that stand one after the other, in generated code: frames, partitions, runs of one slot.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;

use super::emit::Emitter;
use super::generator::Generator;
use super::value::Value;
use crate::column::{Column, Repr};
use warpframe_device::Buffer;

/// Places (`u32`) from one up to another.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(super) begin: String,
    pub(super) end: String,
}

impl Span {
    /// The row's, whose ends two arrays have (`u32`).
    pub(crate) fn of_row(
        ends: [&Buffer; 2],
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Span {
        let [begin, end] = ends.map(|places| {
            let places = generator.params.borrowed("const u32", places);
            out.let_("u32", format_args!("{places}[row]"))
        });
        Span { begin, end }
    }

    /// The value where there are places, else null.
    pub(crate) fn unless_empty(&self, value: Value, out: &mut Emitter) -> Value {
        let valid = out.let_("bool", format_args!("{} < {}", self.begin, self.end));
        Value { valid: Some(valid), ..value }
    }

    /// The rows as a list of a child's elements. `slots`: the addresses of what these lie in.
    pub(crate) fn list(
        &self,
        child: &Column,
        slots: &Arc<Buffer>,
        dtype: &DataType,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Value {
        let Span { begin, end } = self;
        let place = generator.params.pointer("const u64", slots, 0);
        generator.point_into(&child.behind_lists(slots.clone()));
        let view = out.let_("view", format_args!("view{{{end} - {begin}, {begin}, (u64){place}}}"));
        let mut list = Value::new(dtype.clone(), Repr::List, view, None);
        list.longest = child.longest_inside();
        list
    }
}

/// The first place of a span at which an ascending array has `number` or more; the end if there is
/// none.
pub(super) fn search(
    ctype: &str,
    array: &str,
    [low, high]: [&str; 2],
    number: &str,
    out: &mut Emitter,
) -> String {
    let (first, last) = (out.fresh(), out.fresh());
    out.variable(ctype, &first, low);
    out.variable(ctype, &last, high);
    out.divides(1);
    out.line(format_args!(
        "while ({first} < {last}) {{\nconst {ctype} middle = {first} + ({last} - {first}) / 2;\n\
         if ({array}[middle] < {number}) {first} = middle + 1; else {last} = middle;\n}}"
    ));
    first
}
