//! Sort keys of any number of parts: lists, and what holds lists, become bytes that order as they do (`kernels/order_bytes.cuh`).
//!
//! What comes of it is a string, whose length the host has to measure before the words of a sort can be made of it. Lists
//! order element by element, and then the shorter comes first.

use datafusion::arrow::datatypes::DataType;

use super::emit::Emitter;
use super::expr::element_of;
use super::generator::Generator;
use super::order::{Direction, NullsPlace};
use super::value::Value;
use crate::column::{Repr, item_of};

/// Whether a sort by values of a type needs their bytes: they have a list somewhere.
pub(crate) fn needs_bytes(dtype: &DataType) -> bool {
    match dtype {
        DataType::Struct(fields) => fields.iter().any(|field| needs_bytes(field.data_type())),
        other => item_of(other).is_some(),
    }
}

/// The bytes of a value, null where it is, for a sort in this direction: all bits flipped where that descends, so that nulls
/// within the value come where `nulls` says.
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
    out.line(format!("order_writer {writer}(arena);\nfor (u32 {pass} = 0; {pass} < 2; {pass}++) {{"));
    out.line(format!("if ({}) {{", value.validity()));
    let bytes = Bytes { writer: &writer, null: if first { 1 } else { 3 } };
    bytes.of(value, out);
    out.line(format!("}}\nif ({pass} == 0) {writer}.begin(arena);\n}}"));
    Value::new(DataType::Binary, Repr::View, format!("{writer}.text.out"), value.valid.clone())
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
                out.line(format!("for (u32 {place} = 0; {place} < {list}.length; {place}++) {{"));
                if let Some(element) = element_of(value, &list, &place, out) {
                    self.of_part(&element, out);
                }
                out.line(format!("}}\n{writer}.put(0);"));
            }
            Repr::View => out.line(format!("{writer}.string({code});")),
            Repr::F64 => out.line(format!("{writer}.word(sort_f64({code}), 8);")),
            Repr::F32 => out.line(format!("{writer}.word(sort_f32({code}), 4);")),
            Repr::Bool => out.line(format!("{writer}.put({code} ? 1 : 0);")),
            Repr::I128 => {
                out.line(format!("{writer}.word((u64)((u128){code} >> 64) ^ (1ull << 63), 8);"));
                out.line(format!("{writer}.word((u64)(u128){code}, 8);"));
            }
            Repr::U8 | Repr::U16 | Repr::U32 | Repr::U64 => out.line(format!("{writer}.word((u64){code}, {width});")),
            Repr::I8 | Repr::I16 | Repr::I32 | Repr::I64 => {
                let sign = 8 * width - 1;
                out.line(format!("{writer}.word((u64)(i64){code} ^ (1ull << {sign}), {width});"));
            }
        }
    }

    fn of_part(&self, value: &Value, out: &mut Emitter) {
        out.line(format!("if ({}) {{\n{}.put(2);", value.validity(), self.writer));
        self.of(value, out);
        out.line(format!("}} else {}.put({});", self.writer, self.null));
    }
}
