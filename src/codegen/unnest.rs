//! UNNEST: how many rows a row becomes, and what they have.

use super::element::element_at;
use super::emit::Emitter;
use super::generator::Generator;
use super::value::Value;
use crate::error::Result;
use warpframe_device::Buffer;

/// Which lists have a row though they have no elements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PreservedLists {
    pub(crate) null: bool,
    pub(crate) empty: bool,
}

/// How many rows a row becomes whose lists, in these columns, are taken apart together.
pub(crate) fn unnested_rows(
    lists: &[usize],
    preserved: PreservedLists,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Result<Value> {
    let mut most = "0u".to_string();
    for at in lists {
        let list = generator.column(*at, out)?;
        let null = u32::from(preserved.null);
        let mut length = format!("({} ? {}.length : {null}u)", list.validity(), list.code);
        if preserved.empty {
            length = format!("maximum<u32>({length}, 1u)");
        }
        most = out.let_("u32", format_args!("maximum<u32>({most}, {length})"));
    }
    Ok(Value::number(most))
}

/// The elements that a row has of those lists. `row_of` (`u32`): the row that it comes from;
/// `offsets` (`u64`): how many come from those before.
pub(crate) fn unnested_elements(
    lists: &[usize],
    row_of: &Buffer,
    offsets: &Buffer,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Result<Vec<Value>> {
    let row_of = generator.params.borrowed("const u32", row_of);
    let offsets = generator.params.borrowed("const u64", offsets);
    let place = out.let_("u32", format_args!("(u32)(row - {offsets}[{row_of}[row]])"));
    lists.iter().map(|at| element_at(&generator.column(*at, out)?, &place, out)).collect()
}

/// The row that a row comes from where each becomes `length` rows, and its place among these.
pub(crate) fn row_and_place(
    length: u64,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Vec<Value> {
    let length = generator.params.word("u64", length);
    out.divides(2);
    let row = out.let_("u32", format_args!("(u32)(row / {length})"));
    let place = out.let_("u32", format_args!("(u32)(row % {length})"));
    vec![Value::number(row), Value::number(place)]
}
