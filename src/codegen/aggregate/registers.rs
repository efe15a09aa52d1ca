//! The sink without keys: every thread accumulates in registers, blocks combine in a fixed order, and the last block
//! combines the blocks.

use super::Kernel;
use super::feeds::argument;
use crate::codegen::groups::Accumulator;
use crate::codegen::materialize::striding_body;

/// The kernel. `partials` has room for every block's accumulators; a thread sees at most `per_thread` rows.
pub(super) fn body(kernel: &Kernel<'_>, partials: &str, per_thread: u64) -> String {
    let mut declare = String::new();
    let mut update = String::new();
    let mut publish = String::new();
    let mut combine = String::new();
    let mut word = 0;
    for (i, feed) in kernel.feeds.iter().enumerate() {
        let (_, argument) = argument(feed, "");
        let narrow = feed.value.as_ref().is_some_and(|v| {
            let (low, high) = v.bounds();
            let most = low.unsigned_abs().max(high.unsigned_abs());
            most.checked_mul(u128::from(per_thread)).is_some_and(|m| m < 1 << 63)
        });
        let (local, ctype, initial, op) = match feed.accumulator {
            Accumulator::Count => ("u64", "u64", "0", "Add"),
            Accumulator::Sum64 => ("i64", "i64", "0", "Add"),
            Accumulator::Sum128 if narrow => ("i64", "i128", "0", "Add"),
            Accumulator::Sum128 => ("i128", "i128", "0", "Add"),
            Accumulator::Float => ("f64", "f64", "0.0", "Add"),
            Accumulator::Least => ("u64", "u64", "~0ull", "Least"),
            _ => ("u64", "u64", "0", "Greatest"),
        };
        declare.push_str(&format!("{local} acc{i} = {initial};\n"));
        let step = match op {
            "Add" => format!("acc{i} += ({local})({argument});"),
            "Least" => format!("{{ const u64 x = {argument}; if (x < acc{i}) acc{i} = x; }}"),
            _ => format!("{{ const u64 x = {argument}; if (x > acc{i}) acc{i} = x; }}"),
        };
        match &feed.valid {
            Some(valid) => update.push_str(&format!("if ({valid}) {step}\n")),
            None => update.push_str(&format!("{step}\n")),
        }
        let words = feed.accumulator.words();
        let target = &kernel.accumulators[i];
        publish.push_str(&format!(
            "{{ const {ctype} total = block_reduce<THREADS, {ctype}>(({ctype})acc{i}, {op}());\n\
             if (threadIdx.x == 0) store_words(partials + {word} * (u64)gridDim.x + blockIdx.x * {words}, total); }}\n"
        ));
        combine.push_str(&format!(
            "{{ {ctype} part = ({ctype}){initial};\n\
             for (u64 b = threadIdx.x; b < gridDim.x; b += THREADS)\n\
             part = {op}()(part, load_words<{ctype}>(partials + {word} * (u64)gridDim.x + b * {words}));\n\
             const {ctype} total = block_reduce<THREADS, {ctype}>(part, {op}());\n\
             if (threadIdx.x == 0) store_words({target}, total); }}\n"
        ));
        word += words;
    }
    let loop_ = striding_body(
        kernel.rows.head,
        kernel.rows.items,
        kernel.rows.prologue,
        &format!("{}{update}", kernel.rows.statements),
    );
    format!(
        "u64* const partials = {partials};\n{declare}{loop_}{publish}if (last_block({} + 2)) {{\n{combine}}}\n",
        kernel.rows.control
    )
}
