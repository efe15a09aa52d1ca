//! The sink for any number of groups: atomics on slots in global memory, which the key itself or a
//! hash table numbers.

use super::best_row::ahead;
use super::kernel::{AggregateKernel, Hoisted};
use crate::codegen::control::Retry;
use crate::codegen::groups::Accumulator;
use crate::codegen::radix_partition::RowCode;
use crate::codegen::statements::Code;

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
pub(super) fn body(kernel: &AggregateKernel<'_>, extra: &Extra<'_>, slot: &str) -> Code {
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
        update.push('\n');
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
    let RowCode { control, items, head, .. } = kernel.rows;
    let mut code = Code::default();
    code.line(format_args!("constexpr int ITEMS = {items};"));
    code.raw(head);
    code.append(kernel.comparisons);
    code.line(
        "const u64 tiles = (rows + (u64)ITEMS * THREADS - 1) / ((u64)ITEMS * THREADS);\n\
         for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {\n\
         #define ROW(k) (tile * ((u64)ITEMS * THREADS) + (u64)(k) * THREADS + threadIdx.x)",
    );
    code.append(kernel.rows.prologue);
    code.raw(&give_up);
    code.line(
        "#pragma unroll\n\
         for (int k = 0; k < ITEMS; ++k) {\nconst u64 row = ROW(k);\nu64 slot = HASH_NONE;\nbool lost = false;",
    );
    code.append(declare);
    code.scope("if (row < rows) ");
    code.append(kernel.rows.statements);
    code.append(assign);
    code.raw(slot);
    code.close("} while (0);");
    code.line(format_args!(
        "__syncwarp(FULL_WARP);\n\
         if (slot != HASH_NONE) {{\n{update}}}\n\
         if (lost) atomicOr((u32*)({control} + 1), {inexact}u);\n}}\n}}",
        inexact = Retry::INEXACT,
    ));
    code
}
