//! What every kernel that aggregates is made of, in C++: the rows, their arguments, and the
//! statements that end it early.

use super::inputs::{AggregateInput, argument};
use crate::codegen::control::Retry;
use crate::codegen::groups::Accumulator;
use crate::codegen::radix_partition::RowCode;
use crate::codegen::statements::Code;

/// What every kernel that aggregates is made of, in C++.
#[derive(Clone, Copy)]
pub(super) struct AggregateKernel<'a> {
    pub(super) inputs: &'a [AggregateInput],
    /// Names of each accumulator's array and exponent.
    pub(super) accumulators: &'a [String],
    pub(super) exponents: &'a [String],
    /// Definitions of the comparisons of rows that inputs need (`best_row.rs`).
    pub(super) comparisons: &'a Code,
    pub(super) rows: RowCode<'a>,
}

impl AggregateKernel<'_> {
    /// Statement that notes why the result does not count.
    pub(super) fn flag(&self, condition: &str, bit: u32) -> String {
        self.rows.flag(condition, bit)
    }

    /// Statement that leaves the loop over tiles once a table is full: the result is void, and
    /// every further row would probe in vain.
    pub(super) fn give_up(&self) -> String {
        format!("if (__any_sync(FULL_WARP, {})) break;\n", self.is_full())
    }

    /// Statement that leaves the loop over tiles once a table is full. It looks in one of eight
    /// turns, behind the first.
    pub(super) fn give_up_in_turn(&self, turn: &str) -> String {
        format!("if (({turn} & 7) == 1) {{ {} }}\n", self.give_up())
    }

    /// Statement that leaves the kernel then: a block whose table is full would not find room in
    /// others either.
    pub(super) fn leave(&self) -> String {
        format!("if ({}) return;\n", self.is_full())
    }

    fn is_full(&self) -> String {
        format!("(load_relaxed((u32*)({} + 1)) & {}u) != 0", self.rows.control, Retry::TABLE_FULL)
    }
}

/// Arguments computed before a row's accumulators are touched: `x0`, `x1`, … and whether they
/// count: `counts0`, `counts1`, ….
pub(super) struct Hoisted {
    pub(super) declare: Code,
    pub(super) assign: Code,
}

impl Hoisted {
    pub(super) fn of(kernel: &AggregateKernel<'_>) -> Self {
        let (mut declare, mut assign) = (Code::default(), Code::default());
        for (i, input) in kernel.inputs.iter().enumerate() {
            if input.accumulator == Accumulator::Float {
                continue;
            }
            let (ctype, argument) = argument(input, &kernel.exponents[i]);
            if input.accumulator != Accumulator::Count {
                declare.variable(ctype, &format!("x{i}"), "0");
                match &input.valid {
                    Some(valid) => {
                        assign.line(format_args!("if ({valid}) x{i} = {argument};"));
                    }
                    None => assign.line(format_args!("x{i} = {argument};")),
                }
            }
            if let Some(valid) = &input.valid {
                declare.variable("bool", &format!("counts{i}"), "false");
                assign.line(format_args!("counts{i} = {valid};"));
            }
        }
        Hoisted { declare, assign }
    }

    /// The argument of input `i`.
    pub(super) fn argument(&self, i: usize, input: &AggregateInput) -> String {
        if input.accumulator == Accumulator::Count { "1ull".into() } else { format!("x{i}") }
    }

    /// A step of input `i`, where it counts.
    pub(super) fn guarded(&self, i: usize, input: &AggregateInput, step: &str) -> String {
        if input.valid.is_some() { format!("if (counts{i}) {step}") } else { step.to_string() }
    }
}
