//! The radix partition of a pipeline's rows: each row becomes a record, and bits of its key choose
//! the record's partition, so that a partition's state fits shared memory.
//!
//! ```text
//!   sample    counts some rows by partition: the histogram by which each partition gets memory
//!   scatter   writes each row's record to its partition; computes keys first, and the other values
//!             once all are counted, because registers do not hold the records of a tile
//! ```
//!
//! A dense key's high bits are its partition; other keys are mixed, and the high bits of that are.

use super::control::Retry;
use super::device_function::KernelHeader;
use super::kernel::{Generated, THREADS, most_shared};
use super::params::{Later, Params};
use super::prepared::PreparedKernel;
use super::record::Record;
use super::statements::Code;
use crate::error::Result;
use warpframe_device::ops::partition::Partitions;
use warpframe_device::{Buffer, Device};

/// More partitions make the runs that a tile writes too short.
pub(super) const MOST_PARTS: u64 = 4096;
/// Rows for each that a sample looks at.
const STEPS: [u64; 3] = [32, 8, 1];
/// Rows of a partition that a sample should see.
const SEEN: u64 = 256;
/// What conditions on a row take beside its values, in bytes of registers.
const CONDITIONS: usize = 8;
/// Words of a record from which on it is wide.
const WIDE_WORDS: usize = 8;
/// Rows from which on partitions pay.
const FROM: u64 = 1 << 22;
/// Rows from which on partitions pay on the simulator, whose tests are small, as are its
/// partitions.
const FROM_ON_SIMULATOR: u64 = 1 << 11;
/// Shared memory of a partition on the simulator.
pub(super) const SHARED_ON_SIMULATOR: u64 = 8 << 10;

/// How rows become records, and records partitions.
pub(super) struct RadixPartition {
    /// What the kernels' names begin with.
    pub(super) stem: &'static str,
    pub(super) record: Record,
    pub(super) parts: u64,
    /// Word of a record that tells its partition, and how far it is to be shifted.
    pub(super) part: (usize, u32),
    /// Rows of the pipeline's source.
    pub(super) rows: u64,
}

/// Names of the kernels' parameters, some of which are set between the kernels.
pub(super) struct RadixPartitionNames {
    pub(super) histogram: (String, Later),
    pub(super) step: (String, Later),
    pub(super) begins: (String, Later),
    pub(super) cursors: (String, Later),
    pub(super) records: (String, Later),
    pub(super) parts: String,
}

/// The C++ of a pipeline's rows.
#[derive(Clone, Copy)]
pub(super) struct RowCode<'a> {
    /// Name of the control words.
    pub(super) control: &'a str,
    /// Declarations, loads ahead of a thread's rows, and what is done for a row; it breaks where
    /// the row goes.
    pub(super) head: &'a str,
    pub(super) prologue: &'a Code,
    pub(super) statements: &'a Code,
    /// A row's key, behind the statements, and what mixes it.
    pub(super) key: &'a str,
    pub(super) secret: &'a str,
    /// Rows of a thread per tile.
    pub(super) items: u32,
}

impl RowCode<'_> {
    /// Statement that notes why the result does not count.
    pub(super) fn flag(&self, condition: &str, bit: u32) -> String {
        format!("if ({condition}) atomicOr((u32*)({} + 1), {bit}u);", self.control)
    }
}

/// Records by partition.
pub(super) struct PartitionedRecords {
    pub(super) partitions: Partitions,
    pub(super) buffer: Buffer,
}

impl RadixPartition {
    /// Declares the kernels' parameters.
    pub(super) fn declare(&self, params: &mut Params) -> RadixPartitionNames {
        RadixPartitionNames {
            histogram: params.later("u32*"),
            step: params.later("u64"),
            begins: params.later("const u64*"),
            cursors: params.later("u64*"),
            records: params.later_of("u32*", self.record.words as u64 * 4),
            parts: params.word("u64", self.parts),
        }
    }

    /// Of how many rows one is counted at first. A sample may mislead: [`Retry::PARTITION_FULL`]
    /// says so, and a step of 1 counts all.
    pub(super) fn first_step(&self) -> u64 {
        STEPS.into_iter().find(|step| self.rows / (step * self.parts) >= SEEN).unwrap_or(1)
    }

    /// Runs the two kernels, which count every `step`th row and scatter all.
    pub(super) fn run(
        &self,
        device: &Device,
        operator: &'static str,
        prepared: &mut PreparedKernel,
        names: &RadixPartitionNames,
        rows: &RowCode<'_>,
        step: u64,
    ) -> Result<PartitionedRecords> {
        let parts = self.parts as u32;
        let histogram = device.alloc_zeroed(operator, parts as usize * 4)?;
        let set = &mut prepared.params;
        set.set(names.histogram.1, &histogram);
        set.set(names.step.1, step);
        for later in [&names.begins, &names.cursors, &names.records] {
            set.set(later.1, 0u64);
        }
        let text = self.sample_text(rows, names);
        let tiles = self.rows.div_ceil(step).div_ceil(u64::from(rows.items * THREADS));
        prepared.rows = self.rows.div_ceil(step);
        let sample = Generated::new(device, &format!("{}_sample", self.stem), prepared, &text)?;
        prepared.rows = self.rows;
        sample.fill(device, tiles, parts * 4)?;

        let partitions = Partitions::new(device, &histogram, parts, self.rows, step)?;
        let bytes = self.record.words * 4;
        let records = device.alloc(operator, partitions.capacity as usize * bytes)?;
        prepared.params.set(names.begins.1, &partitions.begins);
        prepared.params.set(names.cursors.1, &partitions.cursors);
        prepared.params.set(names.records.1, &records);
        let (threads, items) = self.tile(device);
        let conditional = if rows.statements.leaves() { CONDITIONS } else { 0 };
        let turn = turn_of(prepared.eager_bytes + 4 * self.record.key + conditional).min(items);
        let text = self.scatter_text(rows, names, items, turn);
        let tiles = self.rows.div_ceil(u64::from(items * threads));
        let scatter = Generated::with_threads(
            device,
            &format!("{}_scatter", self.stem),
            prepared,
            &text,
            threads,
        )?;
        let shared = items * threads * bytes as u32 + parts * 12;
        scatter.fill(device, tiles, shared)?;
        Ok(PartitionedRecords { partitions, buffer: records })
    }

    /// Threads of a block that scatters, and rows of each: as many as shared memory holds.
    fn tile(&self, device: &Device) -> (u32, u32) {
        let most = most_shared(device);
        let fits = |threads: u32, items: u32| {
            u64::from(items * threads) * self.record.words as u64 * 4 + self.parts * 12 <= most
        };
        // Registers of a thread of the largest blocks do not hold what wide records are made of.
        let most_threads = if self.record.words < WIDE_WORDS { 1024 } else { 512 };
        let tiles = [(1024, 8), (1024, 4), (1024, 2), (512, 8), (512, 4), (512, 2), (256, 2)];
        let mut tiles = tiles.into_iter().filter(|(threads, _)| *threads <= most_threads);
        tiles.find(|&(threads, items)| fits(threads, items)).unwrap_or((256, 1))
    }

    fn sample_text(&self, rows: &RowCode<'_>, names: &RadixPartitionNames) -> Code {
        let key = rows.key;
        let (word, shift) = self.part;
        let part = match self.record.key {
            1 => format!("(u32){key} >> {shift}"),
            _ => format!(
                "(u32)(hash_mix({key}, {secret}) >> {}) >> {shift}",
                32 * word,
                secret = rows.secret,
            ),
        };
        let mut code = Code::default();
        code.needs(KernelHeader::Partition);
        code.line(format_args!(
            "constexpr int ITEMS = {items};\nconst u32 PARTS = (u32){parts};\n{head}\
             WF_DYNAMIC_SHARED(dynamic);\nu32* const counts = (u32*)dynamic;\n\
             for (u32 i = threadIdx.x; i < PARTS; i += THREADS) counts[i] = 0;\n\
             __syncthreads();  // counts are fresh\n\
             const u32 step = (u32){step};\nconst u64 sampled = (rows + step - 1) / step;\n\
             const u64 tiles = (sampled + (u64)ITEMS * THREADS - 1) / ((u64)ITEMS * THREADS);\n\
             for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {{\n\
             #define ROW(k) partition_sampled(tile * ((u64)ITEMS * THREADS) + (u64)(k) * THREADS + threadIdx.x, step)",
            items = rows.items,
            parts = names.parts,
            head = rows.head,
            step = names.step.0,
        ));
        code.append(rows.prologue);
        code.line("#pragma unroll\nfor (int k = 0; k < ITEMS; ++k) {\nconst u64 row = ROW(k);");
        code.scope("if (row < rows) ");
        code.append(rows.statements);
        code.constant("u32", "part", part);
        code.line("atomicAdd(counts + part, 1u);");
        code.close("} while (0);\n}\n}");
        code.line(format_args!(
            "__syncthreads();  // all are counted\n\
             for (u32 i = threadIdx.x; i < PARTS; i += THREADS) if (counts[i] != 0) atomicAdd({histogram} + i, counts[i]);",
            histogram = names.histogram.0,
        ));
        code
    }

    fn scatter_text(
        &self,
        rows: &RowCode<'_>,
        names: &RadixPartitionNames,
        items: u32,
        turn: u32,
    ) -> Code {
        let (word, shift) = self.part;
        let mut code = Code::default();
        code.needs(KernelHeader::Partition);
        code.line(format_args!(
            "constexpr int ROWS = {items};\nconst u32 PARTS = (u32){parts};\nconstexpr u32 WORDS = {words};\n\
             constexpr u32 KEY = {key_words};\n{head}\
             WF_DYNAMIC_SHARED(dynamic);\n\
             u32* const staged = (u32*)dynamic;\n\
             u64* const bases = (u64*)(staged + ROWS * THREADS * WORDS);\n\
             u32* const counts = (u32*)(bases + PARTS);\n\
             bool full = false;\n\
             const u64 tiles = (rows + (u64)ROWS * THREADS - 1) / ((u64)ROWS * THREADS);\n\
             for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {{\n\
             for (u32 i = threadIdx.x; i < PARTS; i += THREADS) counts[i] = 0;\n\
             __syncthreads();  // counts are fresh\n\
             // A few rows at a time: registers do not hold what all of a thread's rows load.\n\
             constexpr int ITEMS = {turn};\n\
             #define ROW(k) (tile * ((u64)ROWS * THREADS) + (u64)(turn + (k)) * THREADS + threadIdx.x)\n\
             u32 keys[ROWS][KEY];\nu32 place[ROWS];\n\
             #pragma unroll\n\
             for (int turn = 0; turn < ROWS; turn += ITEMS) {{",
            parts = names.parts,
            words = self.record.words,
            head = rows.head,
            key_words = self.record.key,
        ));
        code.append(rows.prologue);
        code.line(
            "#pragma unroll\n\
             for (int k = 0; k < ITEMS; ++k) {\nconst u64 row = ROW(k);\nplace[turn + k] = PARTITION_NONE;",
        );
        code.scope("if (row < rows) ");
        code.append(rows.statements);
        self.record.emit_key(rows.key, rows.secret, "keys[turn + k]", &mut code);
        code.constant("u32", "part", format_args!("keys[turn + k][{word}] >> {shift}"));
        code.line("place[turn + k] = part << 16 | atomicAdd(counts + part, 1u);");
        code.close("} while (0);\n}\n}");
        code.line(format_args!(
            "__syncthreads();  // all are counted\n\
             const u32 total = partition_reserve<THREADS>(counts, bases, PARTS, {cursors}, {begins}, full);\n\
             #pragma unroll\n\
             for (int turn = 0; turn < ROWS; turn += ITEMS) {{",
            cursors = names.cursors.0,
            begins = names.begins.0,
        ));
        code.append(rows.prologue);
        code.line(
            "#pragma unroll\n\
             for (int k = 0; k < ITEMS; ++k) {\nconst u64 row = ROW(k);\nconst u32 own = place[turn + k];",
        );
        code.scope("if (own != PARTITION_NONE) ");
        code.append(rows.statements);
        code.object("u32", "record", "[WORDS]");
        code.line("for (u32 w = 0; w < KEY; ++w) record[w] = keys[turn + k][w];");
        self.record.emit_values("record", &mut code);
        code.line(
            "partition_copy<WORDS>(staged + (counts[own >> 16] + (own & 0xFFFFu)) * WORDS, record);",
        );
        code.close("} while (0);\n}\n}");
        code.line(format_args!(
            "__syncthreads();  // records lie by partition\n\
             partition_write<THREADS, WORDS, {word}>(staged, total, bases, {shift}, {records});\n}}\n{flag}",
            records = names.records.0,
            flag = rows.flag("full", Retry::PARTITION_FULL),
        ));
        code
    }
}

/// Rows of which a block that scatters loads everything at once: registers hold no more, `held`
/// bytes being those of a row's columns and key.
fn turn_of(held: usize) -> u32 {
    match held {
        ..=20 => 8,
        21..=32 => 4,
        _ => 1,
    }
}

/// Rows from which on partitions pay.
pub(crate) fn pays_from(device: &Device) -> u64 {
    device.partition_rows().unwrap_or_else(|| device.of_kind(FROM, FROM_ON_SIMULATOR))
}
