//! Aggregates of runs of rows that stand one after the other. `offsets` (`u32`) says where run `i`
//! begins, and at `i + 1` where it ends.

use datafusion::arrow::datatypes::DataType;

use super::emit::Emitter;
use super::generator::Generator;
use super::value::Value;
use crate::column::Repr;
use warpframe_device::Buffer;

fn length(offsets: &Buffer, generator: &mut Generator<'_>) -> String {
    let offsets = generator.params.borrowed("const u32", offsets);
    format!("({offsets}[row + 1] - {offsets}[row])")
}

/// How many rows the run has, of `rows` in all.
pub(crate) fn rows_of_run(
    offsets: &Buffer,
    rows: u64,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Value {
    let length = length(offsets, generator);
    let code = out.let_("i64", format_args!("(i64){length}"));
    let range = Some((1, i128::from(rows)));
    Value::new(DataType::Int64, Repr::I64, code, None).with_range(range)
}

/// The mean of a run whose sum `sums` have (`f64`).
pub(crate) fn mean_of_run(
    offsets: &Buffer,
    sums: &Buffer,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Value {
    let length = length(offsets, generator);
    let sums = generator.params.borrowed("const f64", sums);
    out.divides(1);
    let code = out.let_("f64", format_args!("{sums}[row] / (f64){length}"));
    Value::new(DataType::Float64, Repr::F64, code, None)
}

/// Puts the sum of a run of rows of one slot into the slot's accumulator. The run is of an `order`
/// of rows (`u32`), whose slots are `u64`; sums are bits (`u64`).
pub(crate) fn note_sum_of_slot(
    [offsets, order, slots, sums]: [&Buffer; 4],
    accumulators: &Buffer,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) {
    let offsets = generator.params.borrowed("const u32", offsets);
    let order = generator.params.borrowed("const u32", order);
    let [slots, sums] = [slots, sums].map(|words| generator.params.borrowed("const u64", words));
    let target = generator.params.borrowed("u64", accumulators);
    out.line(format_args!("{target}[{slots}[{order}[{offsets}[row]]]] = {sums}[row];"));
}
