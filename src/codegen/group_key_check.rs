//! Checks groups found by the hash of their keys: every row's keys must equal those of its group's
//! first row. If two keys share a hash, the aggregation runs again with another secret.
//!
//! Keys are not stored beside the slots, as to publish a key of several words takes a lock, or a
//! second word for each probe. The check costs only the queries whose keys do not fit 64 bits.

use super::aggregate::Partial;
use super::control::{Control, Retry};
use super::device_function::HASH_FIND;
use super::effort::{Effort, items_for};
use super::emit::Emitter;
use super::flow::{Flow, FlowSource};
use super::generator::{Generator, Pass};
use super::groups::{GroupKeyStorage, Occupancy};
use super::kernel::{Generated, THREADS};
use super::keys::emit_same;
use super::materialize::striding_body;
use crate::error::Result;
use warpframe_device::Device;

/// Whether two different keys share a group; then the aggregation has to be repeated with another
/// seed.
///
/// Always false where keys are packed exactly. Waits for the device where they are not.
pub(crate) fn group_keys_collide(device: &Device, flow: &Flow, partial: &Partial) -> Result<bool> {
    let (Some(layout), rows) = (&partial.hashed, flow.source.rows()) else { return Ok(false) };
    let (GroupKeyStorage::Row(relation, columns, first), Occupancy::Hashed(table)) =
        (&partial.slots.keys, &partial.slots.occupancy)
    else {
        return Ok(false);
    };
    let FlowSource::Relation(_) = &flow.source else { return Ok(false) };
    if rows == 0 {
        return Ok(false);
    }
    let mut generator = Generator::new(flow);
    let mut out = Emitter::new("v");
    generator.stages(Pass::Decide, &mut out)?;
    let mine: Vec<_> =
        columns.iter().map(|at| generator.load(relation, *at, "row", true, &mut out)).collect();
    let (key, _) = layout.emit(&mine, &mut generator.params, &mut out);
    let table = generator.params.pointer("const u64", table, 0);
    let mask = generator.params.word("u64", partial.slots.slots - 2);
    let first = generator.params.pointer("const u32", first, 0);
    let secret = generator.params.word("u64", layout.secret);
    let find = out.calls(HASH_FIND);
    let slot = out.let_("u64", format_args!("{find}({table}, {mask}, {key}, {secret})"));
    let row = out.let_("u32", format_args!("{first}[{slot}]"));
    let mut same = vec![];
    for (value, at) in mine.iter().zip(columns) {
        let other = generator.load(relation, *at, &row, false, &mut out);
        same.push(emit_same(value, &other, &mut out));
    }
    let control = Control::new(device)?;
    let pointer = generator.params.pointer("u64", &control.0, 0);
    out.line(format_args!(
        "if (!({})) atomicOr((u32*)({pointer} + 1), {}u);",
        same.join(" && "),
        Retry::COLLISION
    ));
    let row_count = generator.params.word("u64", rows);
    let prepared = generator.finish(device, &pointer, &[&out])?;
    let statements = out.take();
    let items = items_for(prepared.eager_bytes, Effort::of(&statements));
    let head = format!("const u64 rows = {row_count};\n");
    let body = striding_body(&head, items, &prepared.prologue, &statements);
    let tiles = rows.div_ceil(u64::from(items * THREADS));
    Generated::new(device, "group_key_check", &prepared, &body)?.fill(device, tiles, 0)?;
    Ok(control.read(&prepared.sites)?.0.has(Retry::COLLISION))
}
