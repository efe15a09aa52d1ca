//! Accumulators in shared memory: cells of 32-bit limbs (only 32-bit integer atomics are native
//! there) and of 64-bit extrema. A block fills its cells and then adds them to the slots in global
//! memory.
//!
//! ```text
//!   keys of a hash table   u64 × (slots + 1)
//!   extrema, each          u64 × stride
//!   limbs, each            u32 × stride
//!   occupied               1 bit a cell
//!
//!   stride = slots × copies             the cell of a slot: slot × copies + lane % copies
//! ```
//!
//! Copies keep lanes that hold the same group from waiting for each other.

use super::inputs::{AggregateInput, magnitude_bits};
use super::kernel::{AggregateKernel, Hoisted};
use crate::codegen::control::Retry;
use crate::codegen::groups::Accumulator;
use crate::codegen::materialize::striding_body;
use crate::codegen::radix_partition::RowCode;
use crate::codegen::statements::Code;
use crate::column::Repr;

/// What an accumulator keeps in shared memory for a group.
#[derive(Debug, Clone, Copy)]
enum Cell {
    /// A sum of this many 32-bit limbs.
    Limbs(u32),
    /// 64 order-preserving bits.
    Extremum,
}

/// How the kernel knows which cells hold a group.
#[derive(Debug, Clone, Copy)]
enum Presence {
    /// The slot has a key.
    Key,
    /// These limbs count all rows.
    Count(u32),
    /// A bit says so.
    Bit,
}

/// The cells of a block.
#[derive(Debug, Clone)]
pub(super) struct Cells {
    cells: Vec<Cell>,
    presence: Presence,
}

/// Where a slot's cells go in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flush {
    /// To slots that other blocks add to as well.
    Add,
    /// To slots that are this block's own.
    Store,
}

impl Cells {
    /// Cells for sums of at most `rows` rows. `hashed`: keys are found by a hash table in front of
    /// the cells.
    pub(super) fn of(inputs: &[AggregateInput], rows: u64, hashed: bool) -> Self {
        let cells: Vec<Cell> = inputs.iter().map(|input| cell_of(input, rows)).collect();
        let mut limbs = 0;
        let mut counts = None;
        for (input, cell) in inputs.iter().zip(&cells) {
            if let Cell::Limbs(own) = cell {
                if input.accumulator == Accumulator::Count && input.valid.is_none() && *own == 1 {
                    counts = Some(limbs);
                }
                limbs += own;
            }
        }
        let presence = match (hashed, counts) {
            (true, _) => Presence::Key,
            (false, Some(limb)) => Presence::Count(limb),
            (false, None) => Presence::Bit,
        };
        Cells { cells, presence }
    }

    fn extrema(&self) -> u64 {
        self.cells.iter().filter(|cell| matches!(cell, Cell::Extremum)).count() as u64
    }

    fn limbs(&self) -> u64 {
        self.cells
            .iter()
            .map(|cell| if let Cell::Limbs(limbs) = cell { u64::from(*limbs) } else { 0 })
            .sum()
    }

    fn hashed(&self) -> bool {
        matches!(self.presence, Presence::Key)
    }

    /// Bytes of shared memory.
    pub(super) fn bytes(&self, slots: u64, copies: u64) -> u64 {
        let stride = (slots + u64::from(self.hashed())).saturating_mul(copies);
        let keys = if self.hashed() { (slots + 1) * 8 } else { 0 };
        let bits = if matches!(self.presence, Presence::Bit) { stride.div_ceil(32) * 4 } else { 0 };
        stride.saturating_mul(self.extrema() * 8 + self.limbs() * 4) + keys + bits
    }

    /// Most slots, a power of two, that fit so many bytes; 0 where none do.
    pub(super) fn most_slots(&self, bytes: u64) -> u64 {
        (0..24)
            .map(|bits| 1 << bits)
            .take_while(|slots| self.bytes(*slots, 1) <= bytes)
            .last()
            .unwrap_or(0)
    }

    /// Most copies, a power of two up to a warp's lanes, of so many slots that fit so many bytes.
    pub(super) fn most_copies(&self, slots: u64, bytes: u64) -> u64 {
        (0..6)
            .map(|bits| 1 << bits)
            .take_while(|copies| self.bytes(slots, *copies) <= bytes)
            .last()
            .unwrap_or(1)
    }

    /// Declares the cells, and empties them.
    pub(super) fn declare(&self, kernel: &AggregateKernel<'_>, slots: &str, copies: u64) -> String {
        let (extrema, limbs) = (self.extrema(), self.limbs());
        let extra = u32::from(self.hashed());
        let mut text = format!(
            "WF_DYNAMIC_SHARED(dynamic);\nconstexpr u32 COPIES = {copies};\n\
             const u32 slots = (u32){slots};\nconst u32 stride = (slots + {extra}) * COPIES;\n\
             u64* const shared_keys = (u64*)dynamic;\n\
             u64* const extrema = shared_keys + {};\n\
             u32* const cells = (u32*)(extrema + {extrema} * stride);\n",
            if self.hashed() { "slots + 1" } else { "0" },
        );
        let mut fill = |from: &str, count: String, value: &str| {
            text.push_str(&format!(
                "for (u32 i = threadIdx.x; i < {count}; i += THREADS) {from}[i] = {value};\n"
            ));
        };
        if self.hashed() {
            fill("shared_keys", "slots + 1".into(), "HASH_EMPTY");
        }
        let mut at = 0;
        for (input, cell) in kernel.inputs.iter().zip(&self.cells) {
            if let Cell::Extremum = cell {
                fill(&format!("(extrema + {at} * stride)"), "stride".into(), empty(input));
                at += 1;
            }
        }
        let bits =
            if matches!(self.presence, Presence::Bit) { " + (stride + 31) / 32" } else { "" };
        fill("cells", format!("stride * {limbs}{bits}"), "0");
        text.push_str("__syncthreads();  // cells are fresh\n");
        text
    }

    /// Adds a row to `cell`; `value` and `guarded` say how its arguments are called, and where they
    /// count.
    pub(super) fn update(
        &self,
        kernel: &AggregateKernel<'_>,
        value: impl Fn(usize, &AggregateInput) -> String,
        guarded: impl Fn(usize, &AggregateInput, &str) -> String,
        out: &mut Code,
    ) {
        if let Presence::Bit = self.presence {
            out.line(format_args!(
                "{{ u32* const bits = cells + {} * stride + cell / 32;\n\
                 if ((*bits >> cell % 32 & 1) == 0) atomicOr(bits, 1u << cell % 32); }}",
                self.limbs()
            ));
        }
        let (mut limb, mut extremum) = (0, 0);
        for (i, (input, cell)) in kernel.inputs.iter().zip(&self.cells).enumerate() {
            let value = value(i, input);
            let step = match cell {
                Cell::Extremum => {
                    extremum += 1;
                    format!(
                        "{}(extrema + {} * stride + cell, (u64)({value}));",
                        function(input),
                        extremum - 1
                    )
                }
                Cell::Limbs(limbs) => {
                    limb += limbs;
                    let place = format!("cells + {} * stride + cell", limb - limbs);
                    match input.accumulator {
                        Accumulator::Count if *limbs == 1 => format!("atomicAdd({place}, 1u);"),
                        _ => format!("cell_add<{limbs}>({place}, stride, (i128)({value}));"),
                    }
                }
            };
            out.line(guarded(i, input, &step));
        }
    }

    /// C++ condition that `slot` holds a group.
    pub(super) fn present(&self) -> String {
        match self.presence {
            Presence::Key => "shared_keys[slot] != HASH_EMPTY".into(),
            Presence::Count(limb) => {
                format!("cells_any<COPIES>(cells + {limb} * stride + slot * COPIES)")
            }
            Presence::Bit => {
                format!("cells_any_bit<COPIES>(cells + {} * stride, slot * COPIES)", self.limbs())
            }
        }
    }

    /// Moves the cells of `slot` to the accumulators' slot `to`.
    pub(super) fn flush(&self, kernel: &AggregateKernel<'_>, how: Flush) -> String {
        let mut text = String::new();
        let (mut limb, mut extremum) = (0, 0);
        for (i, (input, cell)) in kernel.inputs.iter().zip(&self.cells).enumerate() {
            let target = &kernel.accumulators[i];
            match cell {
                Cell::Extremum => {
                    let (better, empty) = (
                        if input.accumulator == Accumulator::Least { "<" } else { ">" },
                        empty(input),
                    );
                    let put = match how {
                        Flush::Add => format!("{}({target} + to, best);", function(input)),
                        Flush::Store => format!("{target}[to] = best;"),
                    };
                    text.push_str(&format!(
                        "{{ u64 best = {empty};\n#pragma unroll 8\nfor (u32 c = 0; c < COPIES; ++c) {{ const u64 x = extrema[{extremum} * stride + slot * COPIES + c];\n\
                         if (x {better} best) best = x; }}\n{put} }}\n"
                    ));
                    extremum += 1;
                }
                Cell::Limbs(limbs) => {
                    let put = match (input.accumulator.words(), how) {
                        (1, Flush::Add) => {
                            format!("if (sum != 0) atomicAdd({target} + to, (u64)sum);")
                        }
                        (1, Flush::Store) => format!("{target}[to] = (u64)sum;"),
                        (_, Flush::Add) => format!("atomic_add_i128({target} + 2 * to, sum);"),
                        (_, Flush::Store) => format!("store_words({target} + 2 * to, sum);"),
                    };
                    let read = match input.accumulator {
                        Accumulator::Count => {
                            format!("(i128)(u64)(u{0})cell_read<{limbs}>", 32 * limbs)
                        }
                        _ => format!("cell_read<{limbs}>"),
                    };
                    text.push_str(&format!(
                        "{{ i128 sum = 0;\n#pragma unroll 8\nfor (u32 c = 0; c < COPIES; ++c) sum += {read}(cells + {limb} * stride + slot * COPIES + c, stride);\n{put} }}\n"
                    ));
                    limb += limbs;
                }
            }
        }
        text
    }
}

/// The cell of an accumulator that sums at most `rows` rows.
fn cell_of(input: &AggregateInput, rows: u64) -> Cell {
    let rows_bits = 64 - rows.max(1).leading_zeros();
    let limbs = |bits: u32| Cell::Limbs((bits + rows_bits + 1).div_ceil(32).clamp(1, 4));
    match (&input.accumulator, &input.value) {
        (Accumulator::Least | Accumulator::Greatest, _) => Cell::Extremum,
        (Accumulator::Sum64 | Accumulator::Sum128, Some(value)) => {
            let (low, high) = value.bounds();
            limbs(128 - low.unsigned_abs().max(high.unsigned_abs()).leading_zeros())
        }
        (Accumulator::Count, _) => Cell::Limbs(rows_bits.div_ceil(32).max(1)),
        (Accumulator::Fixed { exponent, exact: true }, Some(value)) => {
            match (value.repr, value.magnitude) {
                (Repr::F32 | Repr::F64, Some(bound)) => {
                    limbs((magnitude_bits(bound) - exponent).max(1) as u32)
                }
                (Repr::F32 | Repr::F64, None) => Cell::Limbs(4),
                _ => {
                    let (low, high) = value.bounds();
                    limbs(128 - low.unsigned_abs().max(high.unsigned_abs()).leading_zeros())
                }
            }
        }
        _ => Cell::Limbs(4),
    }
}

/// What an extremum begins with.
fn empty(input: &AggregateInput) -> &'static str {
    if input.accumulator == Accumulator::Least { "~0ull" } else { "0ull" }
}

fn function(input: &AggregateInput) -> &'static str {
    if input.accumulator == Accumulator::Least { "atomic_min" } else { "atomic_max" }
}

/// The kernel for keys that number slots: `key` is a C++ expression of a number below `slots`.
pub(super) fn direct_body(
    kernel: &AggregateKernel<'_>,
    cells: &Cells,
    slots: &str,
    copies: u64,
    key: &str,
    seen: &str,
) -> Code {
    let mut statements = kernel.rows.statements.clone();
    let cell = format!("(u32){key} * COPIES + threadIdx.x % COPIES");
    statements.constant("u32", "cell", cell);
    cells.update(
        kernel,
        |i, input| super::inputs::argument(input, &kernel.exponents[i]).1,
        |_, input, step| {
            let step = match input.accumulator {
                Accumulator::Fixed { exact: false, .. } => {
                    format!("bool lost = false; {step} {}", kernel.flag("lost", Retry::INEXACT))
                }
                _ => step.to_string(),
            };
            match &input.valid {
                Some(valid) => format!("if ({valid}) {{ {step} }}"),
                None => format!("{{ {step} }}"),
            }
        },
        &mut statements,
    );
    let RowCode { head, items, prologue, .. } = kernel.rows;
    let mut code = Code::default();
    code.raw(&cells.declare(kernel, slots, copies));
    code.append(&striding_body(head, items, prologue, &statements));
    code.line(format_args!(
        "__syncthreads();  // all rows are in\n\
         for (u32 slot = threadIdx.x; slot < slots; slot += THREADS) {{\n\
         const u64 to = slot;\nif ({}) {{\n{seen}[to] = 1;\n{}}}\n}}",
        cells.present(),
        cells.flush(kernel, Flush::Add),
    ));
    code
}

/// The kernel for few groups of any keys: each block finds them by a hash table of its own, and in
/// the end adds them to the one in global memory. `key` is a C++ expression. A thread finds the
/// slots of all its rows at once, and then computes its rows' arguments: before, registers would
/// have to hold them. Where the number of groups is a guess, the block looks at a row of each
/// thread before (1M rows of 100,000 groups: that it is wrong took 0.046 ms to see by the table's
/// getting full).
pub(super) fn hash_body(
    kernel: &AggregateKernel<'_>,
    cells: &Cells,
    slots: u64,
    copies: u64,
    key: &str,
    table: &KeyTable<'_>,
    probes: Probes,
) -> Code {
    let hoisted = Hoisted::of(kernel);
    let crowded = match probes {
        Probes::Many => String::new(),
        Probes::Few => format!(
            "if (tile == blockIdx.x && cells_crowded<THREADS>(shared_keys, slots, own_keys[0], (wanted & 1) != 0, {})) {{\n\
             wanted = 0;\n{}\n}}\n",
            kernel.rows.secret,
            kernel.flag("threadIdx.x == 0", Retry::TABLE_FULL)
        ),
    };
    let mut code = Code::default();
    code.line(format_args!(
        "constexpr int ITEMS = {};\n{}{}\
         const u64 tiles = (rows + (u64)ITEMS * THREADS - 1) / ((u64)ITEMS * THREADS);\n\
         u32 turn = 0;\n\
         for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {{\n\
         #define ROW(k) (tile * ((u64)ITEMS * THREADS) + (u64)(k) * THREADS + threadIdx.x)",
        kernel.rows.items,
        kernel.rows.head,
        cells.declare(kernel, &slots.to_string(), copies),
    ));
    code.append(kernel.rows.prologue);
    code.line(format_args!(
        "{give_up}\
         u64 own_keys[ITEMS];\nu32 slot_of[ITEMS];\nu32 wanted = 0;\n\
         #pragma unroll\n\
         for (int k = 0; k < ITEMS; ++k) {{\nconst u64 row = ROW(k);\nown_keys[k] = 0;",
        // Behind the loads, so that the flag comes with them.
        give_up = kernel.give_up_in_turn("turn++"),
    ));
    code.scope("if (row < rows) ");
    code.append(kernel.rows.statements);
    code.line(format_args!("own_keys[k] = {key};"));
    code.line("wanted |= 1u << k;");
    code.close("} while (0);\n}");
    code.line(format_args!(
        "{crowded}{slots}\
         #pragma unroll\n\
         for (int k = 0; k < ITEMS; ++k) {{\nconst u64 row = ROW(k);\nconst u32 slot = slot_of[k];\nbool lost = false;",
        slots = hash_slots(kernel, "ITEMS", "own_keys", KeyForm::Plain, probes),
    ));
    code.scope("if (slot != CELL_NONE) ");
    code.append(&hoisted.declare);
    code.append(kernel.rows.statements);
    code.append(&hoisted.assign);
    hashed_update(kernel, cells, &hoisted, &mut code);
    let lost = kernel.flag("lost", Retry::INEXACT);
    code.close(format_args!("}} while (0);\n{lost}\n}}\n}}"));
    code.line(format_args!(
        "__syncthreads();  // all rows are in\n\
         {}\
         for (u32 slot = threadIdx.x; slot <= slots; slot += THREADS) if ({}) {{\n{}{}}}",
        kernel.leave(),
        cells.present(),
        table.insert(kernel, KeyForm::Plain),
        cells.flush(kernel, Flush::Add),
    ));
    code
}

/// How far from its place a key is looked for before the table counts as full.
#[derive(Debug, Clone, Copy)]
pub(super) enum Probes {
    /// As far as it may lie: the table was made for the keys there are.
    Many,
    /// Not far: how many keys there are is a guess.
    Few,
}

/// What the keys of a table in shared memory are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyForm {
    /// As they are.
    Plain,
    /// Mixed, so that every bit depends on all.
    Mixed,
}

/// Finds the slots `slot_of` of the `count` keys in `keys` whose bits are set in `wanted`.
pub(super) fn hash_slots(
    kernel: &AggregateKernel<'_>,
    count: &str,
    keys: &str,
    are: KeyForm,
    probes: Probes,
) -> String {
    let are = if are == KeyForm::Plain { "CELL_PLAIN" } else { "CELL_MIXED" };
    let probes = match probes {
        Probes::Many => "",
        Probes::Few => ", CELL_PROBES_GUESSED",
    };
    format!(
        "if (!cell_slots<{count}, {are}{probes}>(shared_keys, slots - 1, {keys}, wanted, slot_of, {})) {{ {} }}\n\
         __syncwarp(FULL_WARP);\n",
        kernel.rows.secret,
        kernel.flag("true", Retry::TABLE_FULL)
    )
}

/// Adds a row whose `slot` is known.
pub(super) fn hashed_update(
    kernel: &AggregateKernel<'_>,
    cells: &Cells,
    hoisted: &Hoisted,
    out: &mut Code,
) {
    out.constant("u32", "cell", "slot * COPIES + threadIdx.x % COPIES");
    cells.update(
        kernel,
        |i, input| hoisted.argument(i, input),
        |i, input, step| hoisted.guarded(i, input, step),
        out,
    );
}

/// A hash table of mixed keys in global memory.
pub(super) struct KeyTable<'a> {
    pub(super) keys: &'a str,
    /// C++ expression of its first slot.
    pub(super) first: &'a str,
    /// C++ expression of capacity − 1.
    pub(super) mask: &'a str,
}

impl KeyTable<'_> {
    /// Finds the table's slot `to` for the key in `slot`, or continues with the next.
    pub(super) fn insert(&self, kernel: &AggregateKernel<'_>, are: KeyForm) -> String {
        let KeyTable { keys, first, mask } = self;
        let key = "slot < slots ? shared_keys[slot] : HASH_EMPTY";
        let mixed = match are {
            KeyForm::Plain => format!("hash_mix({key}, {})", kernel.rows.secret),
            KeyForm::Mixed => key.to_string(),
        };
        format!(
            "const u64 mixed = {mixed};\n\
             const u64 found = hash_insert<1, true>({keys} + {first}, {mask}, mixed);\n\
             if (found == HASH_NONE) {{ {} continue; }}\nconst u64 to = {first} + found;\n",
            kernel.flag("true", Retry::TABLE_FULL)
        )
    }
}
