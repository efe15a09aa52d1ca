//! The sink for any number of groups: atomics on slots in global memory, which the key itself or a
//! hash table numbers.

use super::best_row::ahead;
use super::kernel::{AggregateKernel, Hoisted};
use crate::codegen::control::Retry;
use crate::codegen::groups::Accumulator;

/// Arrays by slot or by row that the kernel fills besides the accumulators.
pub(super) struct Extra<'a> {
    /// Not zero for slots that hold a group.
    pub(super) seen: Option<&'a str>,
    pub(super) row_slots: Option<&'a str>,
    /// Of each slot.
    pub(super) first_rows: Option<&'a str>,
}

/// The kernel; the statements `slot` store a row's slot to a variable of that name. Values are
/// computed first, then the warp meets again, then all atomics follow: lanes leave a probe loop at
/// different times.
pub(super) fn body(kernel: &AggregateKernel<'_>, extra: &Extra<'_>, slot: &str) -> String {
    let hoisted = Hoisted::of(kernel);
    let Hoisted { declare, assign, .. } = &hoisted;
    let mut update = String::new();
    for (i, input) in kernel.inputs.iter().enumerate() {
        let target = &kernel.accumulators[i];
        let value = hoisted.argument(i, input);
        let step = match input.accumulator {
            Accumulator::Float => continue,
            Accumulator::Count => format!("atomicAdd({target} + slot, 1ull);"),
            Accumulator::Sum64 => format!("atomicAdd({target} + slot, (u64){value});"),
            Accumulator::Sum128 | Accumulator::Fixed { .. } => {
                format!("atomic_add_i128({target} + 2 * slot, {value});")
            }
            Accumulator::Least => format!("atomic_min({target} + slot, {value});"),
            Accumulator::Greatest => format!("atomic_max({target} + slot, {value});"),
            Accumulator::Row => format!("best_row_put({target} + slot, {value}, {});", ahead(i)),
        };
        update.push_str(&hoisted.guarded(i, input, &step));
    }
    if let Some(seen) = extra.seen {
        update.push_str(&format!("if ({seen}[slot] == 0) {seen}[slot] = 1;\n"));
    }
    if let Some(row_slots) = extra.row_slots {
        update.push_str(&format!("{row_slots}[row] = (u32)slot;\n"));
    }
    if let Some(first) = extra.first_rows {
        update.push_str(&format!(
            "if ((u32)row < {first}[slot]) atomicMin({first} + slot, (u32)row);\n"
        ));
    }
    // Once the table is full the result is void, and every further row would probe in vain.
    let flag = format!("load_relaxed((u32*)({} + 1))", kernel.rows.control);
    let give_up =
        format!("if (__any_sync(FULL_WARP, ({flag} & {}u) != 0)) break;\n", Retry::TABLE_FULL);
    format!(
        "constexpr int ITEMS = {items};\n{head}{comparisons}\
         const u64 tiles = (rows + (u64)ITEMS * THREADS - 1) / ((u64)ITEMS * THREADS);\n\
         for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {{\n\
         #define ROW(k) (tile * ((u64)ITEMS * THREADS) + (u64)(k) * THREADS + threadIdx.x)\n\
         {prologue}{give_up}\
         #pragma unroll\n\
         for (int k = 0; k < ITEMS; ++k) {{\nconst u64 row = ROW(k);\nu64 slot = HASH_NONE;\nbool lost = false;\n{declare}\
         if (row < rows) do {{\n{statements}{assign}{slot}}} while (0);\n\
         __syncwarp(FULL_WARP);\n\
         if (slot != HASH_NONE) {{\n{update}}}\n\
         if (lost) atomicOr((u32*)({control} + 1), {inexact}u);\n}}\n}}\n",
        control = kernel.rows.control,
        items = kernel.rows.items,
        head = kernel.rows.head,
        comparisons = kernel.comparisons,
        prologue = kernel.rows.prologue,
        statements = kernel.rows.statements,
        inexact = Retry::INEXACT,
    )
}
