//! The sink without keys: every thread accumulates in registers, blocks combine in a fixed order,
//! and the last block combines the blocks.

use super::best_row;
use super::inputs::argument;
use super::kernel::AggregateKernel;
use super::sink::MOST_ITEMS;
use crate::codegen::emit::push_number;
use crate::codegen::groups::Accumulator;
use crate::codegen::kernel::THREADS;
use crate::codegen::materialize::striding_body;
use crate::codegen::statements::Code;
use warpframe_device::Device;

/// Most blocks of a multiprocessor that sum up in registers.
const BLOCKS: u64 = 8;

/// The kernel. `partials` has room for every block's accumulators; a thread sees at most
/// `per_thread` rows.
pub(super) fn body(kernel: &AggregateKernel<'_>, partials: &str, per_thread: u64) -> Code {
    let mut declare = String::with_capacity(256);
    let mut publish = String::with_capacity(1024);
    let mut combine = String::with_capacity(1024);
    // Statements before each tile, where rows are picked, and how many accumulators pick one.
    let (mut learn, mut picks) = (Code::default(), 0);
    let mut update = kernel.rows.statements.clone();
    let mut word = 0;
    for (i, input) in kernel.inputs.iter().enumerate() {
        let (_, argument) = argument(input, "");
        let narrow = input.value.as_ref().is_some_and(|v| {
            let (low, high) = v.bounds();
            let most = low.unsigned_abs().max(high.unsigned_abs());
            most.checked_mul(u128::from(per_thread)).is_some_and(|m| m < 1 << 63)
        });
        let (local, ctype, initial, op): (_, _, _, String) = match input.accumulator {
            Accumulator::Count => ("u64", "u64", "0", "Add()".into()),
            Accumulator::Sum64 => ("i64", "i64", "0", "Add()".into()),
            Accumulator::Sum128 if narrow => ("i64", "i128", "0", "Add()".into()),
            Accumulator::Sum128 => ("i128", "i128", "0", "Add()".into()),
            Accumulator::Float => ("f64", "f64", "0.0", "Add()".into()),
            Accumulator::Least => ("u64", "u64", "~0ull", "Least()".into()),
            Accumulator::Row => ("u64", "u64", "~0ull", best_row::best_row(i)),
            _ => ("u64", "u64", "0", "Greatest()".into()),
        };
        let acc = numbered("acc", i);
        let words = input.accumulator.words();
        let offset = [&numbered("partials + ", word), " * (u64)gridDim.x + "].concat();
        let width = numbered(" * ", words);
        let target = &kernel.accumulators[i];
        push(&mut declare, &[local, " ", &acc, " = ", initial, ";\n"]);
        let where_valid = input.valid.as_ref().map(|valid| format!("if ({valid}) "));
        let where_valid = where_valid.unwrap_or_default();
        match input.accumulator {
            Accumulator::Least | Accumulator::Greatest => {
                let sign = if input.accumulator == Accumulator::Least { " < " } else { " > " };
                update.line(format_args!(
                    "{where_valid}{{ const u64 x = {argument}; if (x{sign}{acc}) {acc} = x; }}"
                ));
            }
            Accumulator::Row => {
                update.line(format_args!("{where_valid}{acc} = {op}({acc}, {argument});"));
                learn.raw(&best_row::learn(i, &acc, picks));
                picks += 1;
            }
            _ => update.line(format_args!("{where_valid}{acc} += ({local})({argument});")),
        }
        // Each comparison of rows is a type of its own. All reduce in one array.
        let reduce = match input.accumulator {
            Accumulator::Row => "block_reduce_in<THREADS, u64>(best_rows, ".into(),
            _ => ["block_reduce<THREADS, ", ctype, ">("].concat(),
        };
        push(
            &mut publish,
            &["{ const ", ctype, " total = ", &reduce, "(", ctype, ")", &acc, ", ", &op],
        );
        push(
            &mut publish,
            &[
                ");\nif (threadIdx.x == 0) store_words(",
                &offset,
                "blockIdx.x",
                &width,
                ", total); }\n",
            ],
        );
        push(&mut combine, &["{ ", ctype, " part = (", ctype, ")", initial, ";\n"]);
        push(
            &mut combine,
            &["for (u64 b = threadIdx.x; b < gridDim.x; b += THREADS)\npart = ", &op, "(part, "],
        );
        push(&mut combine, &["load_words<", ctype, ">(", &offset, "b", &width, "));\n"]);
        push(&mut combine, &["const ", ctype, " total = ", &reduce, "part, ", &op, ");\n"]);
        push(&mut combine, &["if (threadIdx.x == 0) store_words(", target, ", total); }\n"]);
        word += words;
    }
    if picks > 0 {
        declare.push_str("WF_SHARED_ARRAY(u64, best_rows, THREADS);\n");
        declare.push_str(&best_row::known_rows(picks));
    }
    learn.append(kernel.rows.prologue);
    let mut code = Code::default();
    code.line(format_args!("u64* const partials = {partials};"));
    code.append(kernel.comparisons);
    code.raw(&declare);
    code.append(&striding_body(kernel.rows.head, kernel.rows.items, &learn, &update));
    code.raw(&publish);
    code.line(format_args!("if (last_block({} + 2)) {{\n{combine}}}", kernel.rows.control));
    code
}

fn numbered(text: &str, number: usize) -> String {
    let mut name = String::with_capacity(text.len() + 4);
    name.push_str(text);
    push_number(&mut name, number);
    name
}

fn push(text: &mut String, pieces: &[&str]) {
    pieces.iter().for_each(|piece| text.push_str(piece));
}

/// Most blocks of [`THREADS`] that sum up in registers. Of floats, whose order counts, there are so
/// many whatever number runs at once, which follows from how a kernel was compiled.
pub(super) fn most_blocks(device: &Device) -> u64 {
    u64::from(device.properties().multiprocessors) * BLOCKS
}

/// Most rows that a thread of a block of [`THREADS`] sees. There is a block for each multiprocessor
/// at least, and they take the tiles, of up to `MOST_ITEMS` rows a thread, in turn.
pub(super) fn rows_per_thread(rows: u64, device: &Device) -> u64 {
    rows / (u64::from(device.properties().multiprocessors) * u64::from(THREADS))
        + 2 * u64::from(MOST_ITEMS)
}
