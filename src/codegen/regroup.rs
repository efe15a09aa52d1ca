//! Aggregates that need the rows of a group more than once, or in an order: what is computed of the
//! run of rows that a slot has in an order, and of the slots' numbers.

mod strings;

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;

use super::emit::Emitter;
use super::generator::Generator;
use super::middle::Middle;
use super::row_number::as_type;
use super::span::Span;
use super::value::{Value, both, repr_of};
use crate::column::{Column, Relation, Repr};
use crate::error::Result;
pub(crate) use strings::Strings;
use warpframe_device::Buffer;

/// The run of rows of one slot that a kernel looks at.
pub(crate) struct SlotRun {
    order: String,
    pub(crate) span: Span,
}

/// A column of a relation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnOf<'a> {
    pub(crate) relation: &'a Relation,
    pub(crate) at: usize,
}

impl ColumnOf<'_> {
    /// What it has for the row.
    pub(crate) fn of_row(&self, generator: &mut Generator<'_>, out: &mut Emitter) -> Value {
        self.load("row", generator, out)
    }

    pub(super) fn load(
        &self,
        row: &str,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Value {
        generator.load(self.relation, self.at, row, false, out)
    }
}

impl SlotRun {
    /// Run `row` of an order of rows (`u32`). `offsets` (`u32`): where the runs begin, and the last
    /// one ends.
    pub(crate) fn of_row(
        offsets: &Buffer,
        order: &Buffer,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> SlotRun {
        let offsets = generator.params.borrowed("const u32", offsets);
        let order = generator.params.borrowed("const u32", order);
        let begin = out.let_("u32", format_args!("{offsets}[row]"));
        let end = out.let_("u32", format_args!("{offsets}[row + 1]"));
        SlotRun { order, span: Span { begin, end } }
    }

    /// The slot, where each row has it in an array of `u64`.
    pub(crate) fn slot(
        &self,
        slots: &Buffer,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Value {
        let slots = generator.params.borrowed("const u64", slots);
        let place = &self.span.begin;
        Value::number(out.let_("u32", format_args!("(u32){slots}[{}[{place}]]", self.order)))
    }

    /// The value in the middle of a column's.
    pub(crate) fn middle(
        &self,
        column: ColumnOf<'_>,
        middle: Middle,
        dtype: &DataType,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Value {
        let Span { begin, end } = &self.span;
        let count = out.let_("u32", format_args!("{end} - {begin}"));
        let between = middle.places(&count, generator, out);
        let [below, above] = [&between.low, &between.high]
            .map(|place| self.load(column, &format!("{begin} + {place}"), generator, out));
        between.value(dtype, &below, &above, out)
    }

    /// The value of the row `place` from the first (1) or the last (−1).
    pub(crate) fn nth(
        &self,
        column: ColumnOf<'_>,
        place: i64,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Value {
        let Span { begin, end } = &self.span;
        let steps = generator.params.word("u64", place.unsigned_abs());
        let inside = out.let_("bool", format_args!("{steps} <= (u64)({end} - {begin})"));
        // Where there is no such row any will do: nobody looks at it.
        let at_row = if place > 0 {
            format!("{begin} + (u32){steps} - 1")
        } else {
            format!("{end} - (u32){steps}")
        };
        let place = format!("{inside} ? {at_row} : {begin}");
        let value = self.load(column, &place, generator, out);
        Value { valid: both(&Some(inside), &value.valid, out), ..value }
    }

    /// What the row at a place of the order has.
    fn load(
        &self,
        column: ColumnOf<'_>,
        place: &str,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Value {
        let row = out.let_("u32", format_args!("{}[{place}]", self.order));
        column.load(&row, generator, out)
    }
}

/// The row's slot: its first column, where there are keys, else 0.
fn own_slot(keyed: bool, generator: &mut Generator<'_>, out: &mut Emitter) -> Result<String> {
    if keyed { Ok(generator.column(0, out)?.code) } else { Ok("0".into()) }
}

/// The row's slot as a word to sort by.
pub(crate) fn slot_word(
    keyed: bool,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Result<Value> {
    let slot = own_slot(keyed, generator, out)?;
    Ok(Value::word(out.let_("u64", format_args!("(u64){slot}"))))
}

/// Notes in `numbers` (`u64`) that the row is that of its slot.
pub(crate) fn note_row_of_slot(
    keyed: bool,
    numbers: &Buffer,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Result<()> {
    let slot = own_slot(keyed, generator, out)?;
    let numbers = generator.params.borrowed("u64", numbers);
    out.line(format_args!("{numbers}[{slot}] = row;"));
    Ok(())
}

/// The number of a row (`u64`) that `numbers` have for a slot.
pub(crate) fn number_of_slot(
    numbers: &Buffer,
    slot: &Value,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Value {
    let numbers = generator.params.borrowed("const u64", numbers);
    Value::number(out.let_("u32", format_args!("(u32){numbers}[{}]", slot.code)))
}

/// A column's value in the row whose number (`u64`) a slot has, null where that is all ones. The
/// slot is the row's in `slots` (`u32`), or the row itself.
pub(crate) fn value_of_slot(
    column: ColumnOf<'_>,
    slots: Option<&Buffer>,
    numbers: &Buffer,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Value {
    let slot = slots.map(|slots| format!("{}[row]", generator.params.borrowed("const u32", slots)));
    let slot = slot.unwrap_or_else(|| "row".into());
    let numbers = generator.params.borrowed("const u64", numbers);
    let number = out.let_("u64", format_args!("{numbers}[{slot}]"));
    let present = out.let_("bool", format_args!("{number} != ~0ull"));
    generator.load_if(column.relation, column.at, &number, Some(present), false, out)
}

/// What the row has among results of 64 bits, as an integer of a type.
pub(crate) fn bits_of_row(
    results: &Buffer,
    dtype: &DataType,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Result<Value> {
    let results = generator.params.borrowed("const u64", results);
    Ok(as_type(&Value::word(format!("{results}[row]")), dtype, repr_of(dtype)?, out))
}

/// Notes what the row has of a bin: its columns are the slot, where there are keys, the bin, and
/// the value. `child` has `bins` values of each slot, counts or weights.
pub(crate) fn note_bin(
    keyed: bool,
    child: &Buffer,
    bins: u64,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Result<()> {
    let slot = own_slot(keyed, generator, out)?;
    let first = usize::from(keyed);
    let (bin, value) = (generator.column(first, out)?.code, generator.column(first + 1, out)?);
    let repr = if value.repr == Repr::F64 { Repr::F64 } else { Repr::I64 };
    let target = generator.params.borrowed(repr.device_type(), child);
    let bins = generator.params.word("u64", bins);
    out.line(format_args!("{target}[(u64){slot} * {bins} + (u64){bin}] = {};", value.code));
    Ok(())
}

/// The bins of the slot that the row is, as a list of a child's elements, which lie where `slots`
/// says; before it the slot, where there are keys.
pub(crate) fn list_of_bins(
    keyed: bool,
    (child, slots): (&Column, &Arc<Buffer>),
    bins: u64,
    dtype: &DataType,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Vec<Value> {
    generator.point_into(&child.behind_lists(slots.clone()));
    let slots = generator.params.pointer("const u64", slots, 0);
    let bins = generator.params.word("u64", bins);
    let view = format!("view{{(u32){bins}, (u32)((u64)row * {bins}), (u64){slots}}}");
    let mut list = Value::new(dtype.clone(), Repr::List, out.let_("view", view), None);
    list.longest = Some(0);
    keyed.then(|| Value::number("((u32)row)")).into_iter().chain([list]).collect()
}
