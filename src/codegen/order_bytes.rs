//! Sort keys of any number of parts: lists, and what holds lists, become bytes that order as they
//! do (`kernels/order_bytes.cuh`).
//!
//! What comes of it is a string, whose length the host has to measure before the words of a sort
//! can be made of it. Lists order element by element, and then the shorter comes first.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, ExprSchemable};

use super::device_function::{KernelHeader, SORT_F32, SORT_F64};
use super::element::element_of;
use super::emit::Emitter;
use super::flow::Flow;
use super::generator::{Generator, Pass};
use super::order::{Direction, LONGEST_SORTED, NullsPlace};
use super::value::Value;
use crate::column::Repr;
use crate::error::Result;

/// What has to happen to a key before words of a sort can be made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Preparation {
    /// It is a string of which nobody knows how long it may be.
    Measure,
    /// It has lists, or such strings, somewhere: it becomes bytes, which are measured.
    Bytes,
}

/// How a key of the flow's rows has to be prepared, if it has to.
pub(crate) fn preparation(key: &Expr, flow: &Flow) -> Result<Option<Preparation>> {
    let dtype = key.get_type(&**flow.schema())?;
    if Repr::of(&dtype).is_some_and(|repr| !repr.points() && repr != Repr::Struct) {
        return Ok(None);
    }
    // What is known of a value its code knows, which costs the host little.
    let (mut generator, mut out) = (Generator::new(flow), Emitter::new("m"));
    generator.stages(Pass::Decide, &mut out)?;
    let value = generator.expr(key, &mut out)?;
    Ok(match value.repr {
        Repr::View => is_unmeasured(&value).then_some(Preparation::Measure),
        _ => is_unmeasured(&value).then_some(Preparation::Bytes),
    })
}

fn is_unmeasured(value: &Value) -> bool {
    match value.repr {
        Repr::List => true,
        Repr::Struct => value.fields.iter().any(is_unmeasured),
        Repr::View => {
            value.dictionary.is_none()
                && value.longest.is_none_or(|longest| longest > LONGEST_SORTED)
        }
        _ => false,
    }
}

/// The bytes of a value, null where it is, for a sort in this direction: all bits flipped where
/// that descends, so that nulls within the value come where `nulls` says.
pub(crate) fn emit_order_bytes(
    value: &Value,
    direction: Direction,
    nulls: NullsPlace,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Value {
    generator.make_text();
    let (writer, pass) = (out.fresh(), out.fresh());
    let first = (nulls == NullsPlace::First) != (direction == Direction::Descending);
    out.needs(KernelHeader::OrderBytes);
    out.object("order_writer", &writer, "(arena)");
    out.count_up(&pass, 0, format_args!("2"));
    out.branch(value.validity());
    let bytes = Bytes { writer: &writer, null: if first { 1 } else { 3 } };
    bytes.of(value, out);
    out.close("}");
    out.line(format_args!("if ({pass} == 0) {writer}.begin(arena);"));
    out.close("}");
    Value::new(DataType::Binary, Repr::View, format!("{writer}.text.out"), value.valid.clone())
}

/// How many bytes a string has, none of a null.
pub(crate) fn length_of(bytes: &Value, out: &mut Emitter) -> Value {
    let length = format!("{} ? (u64){}.length : 0ull", bytes.validity(), bytes.code);
    Value::word(out.let_("u64", length))
}

struct Bytes<'a> {
    writer: &'a str,
    /// What stands for a null part.
    null: u8,
}

impl Bytes<'_> {
    /// Of a value that is not null.
    fn of(&self, value: &Value, out: &mut Emitter) {
        let (writer, code) = (self.writer, &value.code);
        let width = value.repr.width();
        match value.repr {
            Repr::Struct => value.fields.iter().for_each(|field| self.of_part(field, out)),
            Repr::List => {
                let (list, place) = (out.let_("view", value.stored()), out.fresh());
                out.count_up(&place, 0, format_args!("{list}.length"));
                if let Some(element) = element_of(value, &list, &place, out) {
                    self.of_part(&element, out);
                }
                out.close("}");
                out.line(format_args!("{writer}.put(0);"));
            }
            Repr::View => out.line(format_args!("{writer}.string({code});")),
            Repr::F64 | Repr::F32 => {
                let sort = out.calls(if width == 8 { SORT_F64 } else { SORT_F32 });
                out.line(format_args!("{writer}.word({sort}({code}), {width});"));
            }
            Repr::Bool => out.line(format_args!("{writer}.put({code} ? 1 : 0);")),
            Repr::I128 => {
                out.line(format_args!(
                    "{writer}.word((u64)((u128){code} >> 64) ^ (1ull << 63), 8);"
                ));
                out.line(format_args!("{writer}.word((u64)(u128){code}, 8);"));
            }
            Repr::U8 | Repr::U16 | Repr::U32 | Repr::U64 => {
                out.line(format_args!("{writer}.word((u64){code}, {width});"))
            }
            Repr::I8 | Repr::I16 | Repr::I32 | Repr::I64 => {
                let sign = 8 * width - 1;
                out.line(format_args!(
                    "{writer}.word((u64)(i64){code} ^ (1ull << {sign}), {width});"
                ));
            }
        }
    }

    fn of_part(&self, value: &Value, out: &mut Emitter) {
        out.branch(value.validity());
        out.line(format_args!("{}.put(2);", self.writer));
        self.of(value, out);
        out.close(format_args!("}} else {}.put({});", self.writer, self.null));
    }
}
