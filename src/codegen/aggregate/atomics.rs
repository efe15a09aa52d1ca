//! The sink for any number of groups: atomics on slots in global memory, which the key itself or a
//! hash table numbers.

use super::best_row::ahead;
use super::inputs::AggregateInput;
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
    /// Rows of a slot stand together: lanes combine theirs, so that one of them adds.
    pub(super) runs: bool,
}

/// The kernel; the statements `slot` store a row's slot to a variable of that name. Values are
/// computed first, then the warp meets again, then all atomics follow: lanes leave a probe loop at
/// different times.
pub(super) fn body(kernel: &AggregateKernel<'_>, extra: &Extra<'_>, slot: &str) -> Code {
    let hoisted = Hoisted::of(kernel);
    let Hoisted { declare, assign, .. } = &hoisted;
    let Updates { of_warp, of_row } = updates(kernel, extra, &hoisted);
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
         {of_warp}\
         if (slot != HASH_NONE) {{\n{of_row}}}\n\
         if (lost) atomicOr((u32*)({control} + 1), {inexact}u);\n}}\n}}",
        inexact = Retry::INEXACT,
    ));
    code
}

/// What accumulates rows whose slots are known.
struct Updates {
    /// Statements of the whole warp.
    of_warp: String,
    /// Of a row that has a slot.
    of_row: String,
}

fn updates(kernel: &AggregateKernel<'_>, extra: &Extra<'_>, hoisted: &Hoisted) -> Updates {
    // What the first row of a run does.
    let mut of_run = String::new();
    let (mut of_warp, mut of_row) = (String::new(), String::new());
    for (i, input) in kernel.inputs.iter().enumerate() {
        let target = &kernel.accumulators[i];
        let run = if extra.runs { run_of(i, input) } else { None };
        let value = match &run {
            Some(_) => format!("run{i}"),
            None => hoisted.argument(i, input),
        };
        let step = match input.accumulator {
            Accumulator::Float => continue,
            Accumulator::Count => format!("atomicAdd({target} + slot, {value});"),
            Accumulator::Sum64 => format!("atomicAdd({target} + slot, (u64){value});"),
            Accumulator::Sum128 | Accumulator::Fixed { .. } => {
                format!("atomic_add_i128({target} + 2 * slot, {value});")
            }
            Accumulator::Least => format!("atomic_min({target} + slot, {value});"),
            Accumulator::Greatest => format!("atomic_max({target} + slot, {value});"),
            Accumulator::Row => format!("best_row_put({target} + slot, {value}, {});", ahead(i)),
        };
        match run {
            Some(run) => {
                of_warp.push_str(&run);
                of_run.push_str(&format!("{step}\n"));
            }
            None => of_row.push_str(&format!("{}\n", hoisted.guarded(i, input, &step))),
        }
    }
    if let Some(seen) = extra.seen {
        of_run.push_str(&format!("if ({seen}[slot] == 0) {seen}[slot] = 1;\n"));
    }
    if extra.runs {
        let head = "bool first;\nconst u32 behind = run_ahead(slot, first);\n";
        of_warp.insert_str(0, head);
        of_run = format!("if (first) {{\n{of_run}}}\n");
    }
    of_row.insert_str(0, &of_run);
    if let Some(row_slots) = extra.row_slots {
        of_row.push_str(&format!("{row_slots}[row] = (u32)slot;\n"));
    }
    if let Some(first) = extra.first_rows {
        of_row.push_str(&format!(
            "if ((u32)row < {first}[slot]) atomicMin({first} + slot, (u32)row);\n"
        ));
    }
    Updates { of_warp, of_row }
}

/// Declares what input `i` adds up to from a lane to the end of its run; `None` where lanes cannot
/// combine it.
fn run_of(i: usize, input: &AggregateInput) -> Option<String> {
    let or_nothing = |value: &str, nothing: &str| match &input.valid {
        Some(_) => format!("(counts{i} ? {value} : {nothing})"),
        None => value.to_string(),
    };
    let (ctype, function, value) = match input.accumulator {
        Accumulator::Count => ("u64", "run_sum", or_nothing("1ull", "0ull")),
        Accumulator::Sum64 => ("u64", "run_sum", format!("(u64)x{i}")),
        Accumulator::Sum128 | Accumulator::Fixed { .. } => ("i128", "run_sum", format!("x{i}")),
        Accumulator::Least => ("u64", "run_least", or_nothing(&format!("x{i}"), "~0ull")),
        Accumulator::Greatest => ("u64", "run_greatest", or_nothing(&format!("x{i}"), "0ull")),
        Accumulator::Float | Accumulator::Row => return None,
    };
    Some(format!("const {ctype} run{i} = {function}({value}, behind);\n"))
}
