//! The sink for many groups: rows are spread over partitions by key first, so that the accumulators of a partition fit
//! shared memory, where adding costs no trip to memory.
//!
//! ```text
//!   sample    counts some rows by partition, for how much room each needs
//!   spread    writes each row's record (key, arguments) to its partition; computes keys first and arguments once all are
//!             counted, because registers do not hold the records of a tile
//!   collect   reads records partition by partition into cells, and those into the slots
//! ```
//!
//! A dense key's high bits are its partition, its low bits the cell; other keys are mixed, their high bits choose the
//! partition, and a hash table in shared memory finds the cell. A partition with far more records than others, as skewed
//! keys make it, is collected by several blocks, which then add to the same slots.

use std::sync::Arc;

use super::cells::{Cells, Flush, Table, hash_slots, hashed_update};
use super::feeds::Feed;
use super::record::Record;
use super::{Hoisted, Kernel, most_shared};
use crate::codegen::generator::Prepared;
use crate::codegen::kernel::{Control, Generated, Retry, THREADS};
use crate::codegen::params::{Later, Params};
use crate::device::{Buffer, Device, DeviceKind};
use crate::error::Result;
use crate::ops::partition::Partitions;

const OPERATOR: &str = "aggregate";
/// More partitions make the runs that a tile writes too short.
const MOST_PARTS: u64 = 4096;
/// Cells of a hash table in use: few, while that costs no more partitions than there are multiprocessors; else most.
const LOW_LOAD: f64 = 0.2;
const HIGH_LOAD: f64 = 0.75;
/// A partition of so many times the mean is collected by several blocks.
const SKEWED: u64 = 4;
/// Items of records for each multiprocessor.
const ITEMS_PER_PROCESSOR: u64 = 4;
/// Rows for each that a sample looks at.
const STEPS: [u64; 3] = [32, 8, 1];
/// Rows of a partition that a sample should see.
const SEEN: u64 = 256;
/// Groups from which on DISTINCT does.
const DISTINCT_FROM: u64 = 2_000_000;
/// Rows from which on partitions pay.
const FROM: u64 = 1 << 22;
/// The same on the simulator, whose tests are small, as are its partitions.
const FROM_ON_SIMULATOR: u64 = 1 << 11;
const SHARED_ON_SIMULATOR: u64 = 8 << 10;

/// What the groups' keys are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Domain {
    /// Numbers below this.
    Dense(u64),
    /// Anything; there are about so many.
    Any(u64),
}

/// How an aggregation is partitioned.
pub(super) struct Plan {
    record: Record,
    cells: Cells,
    domain: Domain,
    /// Slots of a partition, a power of two.
    slots: u64,
    parts: u64,
    rows: u64,
    /// Most records that a block collects.
    most: u64,
}

/// The parameters of the kernels, some of which are set between them.
pub(super) struct Names {
    histogram: (String, Later),
    step: (String, Later),
    begins: (String, Later),
    cursors: (String, Later),
    records: (String, Later),
    items: (String, Later),
    parts: String,
    most: String,
    /// Of keys that are not dense: slots that blocks take for partitions that are theirs alone, and the capacity, less one,
    /// of the hash table behind them, for the others.
    listed: String,
    mask: String,
    /// Slots taken.
    used: (String, Arc<Buffer>),
}

impl Plan {
    /// `None` where another way is better, or the only one.
    pub(super) fn of(device: &Device, feeds: &[Feed], domain: Domain, rows: u64, estimate: f64) -> Option<Plan> {
        let simulated = device.kind() == DeviceKind::Sim;
        let from = from(simulated);
        if rows < from || estimate < from as f64 || rows >= u64::from(u32::MAX) {
            return None;
        }
        let processors = u64::from(device.properties().multiprocessors);
        let shared = match simulated {
            true => SHARED_ON_SIMULATOR,
            false => most_shared(device),
        };
        let dense = matches!(domain, Domain::Dense(_));
        let record = Record::of(feeds, dense)?;
        let plan = |cells: Cells, slots: u64, parts: u64, most: u64| {
            let parts = parts.max(2);
            (slots >= 32 && parts <= MOST_PARTS).then_some(Plan { record, cells, domain, slots, parts, rows, most })
        };
        match domain {
            Domain::Dense(domain) => {
                let cells = Cells::of(feeds, rows, false);
                let slots = cells.most_slots(shared);
                let parts = domain.div_ceil(slots.max(1)).max(2);
                // Where partitions are few, as many items as keep all multiprocessors busy to the end.
                let each = (ITEMS_PER_PROCESSOR * processors / parts).max(1);
                let slack = if each > 1 { 1.02 } else { 2.0 };
                plan(cells, slots, parts, (rows as f64 / (parts * each) as f64 * slack) as u64 + 1)
            }
            // A table of keys alone is found in the caches for long.
            Domain::Any(groups) if feeds.is_empty() && groups < DISTINCT_FROM && !simulated => None,
            Domain::Any(groups) => {
                let cells = Cells::of(feeds, rows, true);
                let slots = cells.most_slots(shared);
                let parts_at = |load: f64| ((groups as f64 / (slots as f64 * load)) as u64 + 1).next_power_of_two();
                let few = 1 << processors.ilog2();
                let parts = if parts_at(LOW_LOAD) <= few { few } else { parts_at(HIGH_LOAD).max(few) };
                plan(cells, slots, parts, (SKEWED * rows / parts).max(1))
            }
        }
    }

    /// Slots in global memory.
    pub(super) fn slots(&self) -> u64 {
        match self.domain {
            Domain::Dense(domain) => domain,
            Domain::Any(_) => self.listed() + self.shared() + 1,
        }
    }

    fn listed(&self) -> u64 {
        match self.domain {
            Domain::Dense(_) => 0,
            Domain::Any(groups) => groups + groups / 4 + 1024,
        }
    }

    fn shared(&self) -> u64 {
        (self.parts / SKEWED * self.slots).next_power_of_two().max(1024)
    }

    /// Declares the kernels' parameters.
    pub(super) fn declare(&self, device: &Device, params: &mut Params) -> Result<Names> {
        let used = Arc::new(device.alloc_zeroed(OPERATOR, 8)?);
        Ok(Names {
            histogram: params.later("u32*"),
            step: params.later("u64"),
            begins: params.later("const u64*"),
            cursors: params.later("u64*"),
            records: params.later_of("u32*", self.record.words as u64 * 4),
            items: params.later("const u32*"),
            parts: params.word("u64", self.parts),
            most: params.word("u64", self.most),
            listed: params.word("u64", self.listed()),
            mask: params.word("u64", self.shared() - 1),
            used: (params.pointer("u64", &used, 0), used),
        })
    }

    /// C++ expression of the partition of the record at `from`.
    fn part(&self) -> (usize, u32) {
        match self.domain {
            Domain::Dense(_) => (0, self.slots.ilog2()),
            Domain::Any(_) => (1, 32 - self.parts.ilog2()),
        }
    }

    /// Runs the three kernels. `key` is a C++ expression of a row's key. Yields why the result does not count, if it does
    /// not.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn run(
        &self,
        device: &Device,
        prepared: &mut Prepared,
        names: &Names,
        kernel: &Kernel<'_>,
        control: &Control,
        key: &str,
        target: &Target<'_>,
    ) -> Result<Retry> {
        let sampled = STEPS.into_iter().find(|step| self.rows / (step * self.parts) >= SEEN).unwrap_or(1);
        let mut step = sampled;
        loop {
            self.spread(device, prepared, names, kernel, key, step, target)?;
            let (retry, _) = control.read()?;
            if !retry.has(Retry::PARTITION_FULL) {
                return Ok(retry);
            }
            // The sample misled.
            if step == 1 {
                return Err(crate::error::Error::unsupported(OPERATOR, "a histogram does not agree with its rows"));
            }
            control.reset()?;
            names.used.1.fill(0)?;
            target.fresh.iter().try_for_each(|(buffer, byte)| buffer.fill(*byte))?;
            step = 1;
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn spread(
        &self,
        device: &Device,
        prepared: &mut Prepared,
        names: &Names,
        kernel: &Kernel<'_>,
        key: &str,
        step: u64,
        target: &Target<'_>,
    ) -> Result<()> {
        let parts = self.parts as u32;
        let histogram = device.alloc_zeroed(OPERATOR, parts as usize * 4)?;
        let set = &mut prepared.params;
        set.set(names.histogram.1, &histogram);
        set.set(names.step.1, step);
        for later in [&names.begins, &names.cursors, &names.records, &names.items] {
            set.set(later.1, 0u64);
        }
        let text = self.sample_text(kernel, names, key);
        let tiles = self.rows.div_ceil(step).div_ceil(u64::from(kernel.items * THREADS));
        prepared.rows = self.rows.div_ceil(step);
        let sample = Generated::new(device, "group_sample", prepared, &text)?;
        prepared.rows = self.rows;
        sample.fill(device, tiles, parts * 4)?;

        let partitions = Partitions::new(device, &histogram, parts, self.rows, step)?;
        let bytes = self.record.words * 4;
        let records = device.alloc(OPERATOR, partitions.capacity as usize * bytes)?;
        prepared.params.set(names.begins.1, &partitions.begins);
        prepared.params.set(names.cursors.1, &partitions.cursors);
        prepared.params.set(names.records.1, &records);
        let (threads, items) = self.tile(device);
        let turn = turn_of(prepared.eager_bytes + 4 * self.record.key).min(items);
        let text = self.spread_text(kernel, names, key, items, turn);
        let tiles = self.rows.div_ceil(u64::from(items * threads));
        let spread = Generated::with_threads(device, "group_spread", prepared, &text, threads)?;
        let shared = items * threads * bytes as u32 + parts * 12;
        spread.fill(device, tiles, shared)?;

        let items = partitions.items(device, self.most)?;
        prepared.params.set(names.items.1, &items);
        let text = self.collect_text(kernel, names, target);
        let threads = if self.slots >= 1024 { 1024 } else { 256 };
        let collect = Generated::with_threads(device, "group_collect", prepared, &text, threads)?;
        collect.launch(device, partitions.most_items(self.most) as u32, self.cells.bytes(self.slots, 1) as u32)
    }

    /// Threads of a block that spreads, and rows of each: as many as shared memory holds.
    fn tile(&self, device: &Device) -> (u32, u32) {
        let most = most_shared(device);
        let fits = |threads: u32, items: u32| {
            u64::from(items * threads) * self.record.words as u64 * 4 + self.parts * 12 <= most
        };
        let mut tiles = [(1024, 8), (1024, 4), (1024, 2), (512, 2), (256, 2)].into_iter();
        tiles.find(|&(threads, items)| fits(threads, items)).unwrap_or((256, 1))
    }

    fn sample_text(&self, kernel: &Kernel<'_>, names: &Names, key: &str) -> String {
        let (word, shift) = self.part();
        let key = match self.record.key {
            1 => format!("const u32 part = (u32){key} >> {shift};\n"),
            _ => format!("const u32 part = (u32)(hash_mix({key}) >> {}) >> {shift};\n", 32 * word),
        };
        format!(
            "constexpr int ITEMS = {items};\nconst u32 PARTS = (u32){parts};\n{head}\
             WF_DYNAMIC_SHARED(dynamic);\nu32* const counts = (u32*)dynamic;\n\
             for (u32 i = threadIdx.x; i < PARTS; i += THREADS) counts[i] = 0;\n\
             __syncthreads();  // counts are fresh\n\
             const u32 step = (u32){step};\nconst u64 sampled = (rows + step - 1) / step;\n\
             const u64 tiles = (sampled + (u64)ITEMS * THREADS - 1) / ((u64)ITEMS * THREADS);\n\
             for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {{\n\
             #define ROW(k) partition_sampled(tile * ((u64)ITEMS * THREADS) + (u64)(k) * THREADS + threadIdx.x, step)\n\
             {prologue}\
             #pragma unroll\n\
             for (int k = 0; k < ITEMS; ++k) {{\nconst u64 row = ROW(k);\n\
             if (row < rows) do {{\n{statements}{key}atomicAdd(counts + part, 1u);\n}} while (0);\n}}\n}}\n\
             __syncthreads();  // all are counted\n\
             for (u32 i = threadIdx.x; i < PARTS; i += THREADS) if (counts[i] != 0) atomicAdd({histogram} + i, counts[i]);\n",
            items = kernel.items,
            parts = names.parts,
            head = kernel.head,
            step = names.step.0,
            prologue = kernel.prologue,
            statements = kernel.statements,
            histogram = names.histogram.0,
        )
    }

    fn spread_text(&self, kernel: &Kernel<'_>, names: &Names, key: &str, items: u32, turn: u32) -> String {
        let (word, shift) = self.part();
        format!(
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
             for (int turn = 0; turn < ROWS; turn += ITEMS) {{\n{prologue}\
             #pragma unroll\n\
             for (int k = 0; k < ITEMS; ++k) {{\nconst u64 row = ROW(k);\nplace[turn + k] = PARTITION_NONE;\n\
             if (row < rows) do {{\n{statements}{key}\
             const u32 part = keys[turn + k][{word}] >> {shift};\n\
             place[turn + k] = part << 16 | atomicAdd(counts + part, 1u);\n}} while (0);\n}}\n}}\n\
             __syncthreads();  // all are counted\n\
             const u32 total = partition_reserve<THREADS>(counts, bases, PARTS, {cursors}, {begins}, full);\n\
             #pragma unroll\n\
             for (int turn = 0; turn < ROWS; turn += ITEMS) {{\n{prologue}\
             #pragma unroll\n\
             for (int k = 0; k < ITEMS; ++k) {{\nconst u64 row = ROW(k);\nconst u32 own = place[turn + k];\n\
             if (own != PARTITION_NONE) do {{\n{statements}u32 record[WORDS];\n\
             for (u32 w = 0; w < KEY; ++w) record[w] = keys[turn + k][w];\n{values}\
             partition_copy<WORDS>(staged + (counts[own >> 16] + (own & 0xFFFFu)) * WORDS, record);\n\
             }} while (0);\n}}\n}}\n\
             __syncthreads();  // records lie by partition\n\
             partition_write<THREADS, WORDS, {word}>(staged, total, bases, {shift}, {records});\n}}\n{flag}\n",
            parts = names.parts,
            words = self.record.words,
            head = kernel.head,
            prologue = kernel.prologue,
            statements = kernel.statements,
            key = self.record.emit_key(key, "keys[turn + k]"),
            values = self.record.emit_values("record"),
            key_words = self.record.key,
            cursors = names.cursors.0,
            begins = names.begins.0,
            records = names.records.0,
            flag = kernel.flag("full", Retry::PARTITION_FULL),
        )
    }

    fn collect_text(&self, kernel: &Kernel<'_>, names: &Names, target: &Target<'_>) -> String {
        let (load, feeds) = self.record.emit_load("record[j]", kernel.feeds);
        let kernel = &Kernel { feeds: &feeds, ..*kernel };
        let hoisted = Hoisted::of(kernel);
        let slots = match self.domain {
            Domain::Dense(_) => "#pragma unroll\nfor (int j = 0; j < AHEAD; ++j) \
                 slot_of[j] = (wanted >> j & 1) != 0 ? record[j][0] & (slots - 1) : CELL_NONE;\n"
                .to_string(),
            Domain::Any(_) => format!(
                "u64 mixed[AHEAD];\n#pragma unroll\n\
                 for (int j = 0; j < AHEAD; ++j) mixed[j] = (u64)record[j][0] | (u64)record[j][1] << 32;\n{}",
                hash_slots(kernel, "AHEAD")
            ),
        };
        let (store, add) = (self.cells.flush(kernel, Flush::Store), self.cells.flush(kernel, Flush::Add));
        let present = self.cells.present();
        let found = target.found;
        let flush = match self.domain {
            Domain::Dense(_) => format!(
                "for (u32 slot = threadIdx.x; slot < slots; slot += THREADS) if ({present}) {{\n\
                 const u64 to = (u64)part * slots + slot;\n{found}[to] = 1;\n\
                 if (alone) {{\n{store}}} else {{\n{add}}}\n}}\n"
            ),
            Domain::Any(_) => {
                let (listed, used) = (&names.listed, &names.used.0);
                let insert = Table { keys: found, first: listed, mask: &names.mask }.insert(kernel);
                format!(
                    "u32 own = 0;\n\
                     if (alone) for (u32 slot = threadIdx.x; slot < slots; slot += THREADS) own += {present} ? 1 : 0;\n\
                     WF_SHARED(u64, list);\nu32 total;\nconst u32 before = block_scan<THREADS, u32>(own, total);\n\
                     if (threadIdx.x == 0) list = total != 0 ? atomicAdd({used}, (u64)total) : 0;\n\
                     __syncthreads();  // the place in the list is there\n\
                     if (list + total > {listed}) {{ {full} return; }}\n\
                     u64 place = list + before;\n\
                     for (u32 slot = threadIdx.x; slot <= slots; slot += THREADS) if ({present}) {{\n\
                     if (alone && slot < slots) {{\nconst u64 to = place++;\n{found}[to] = shared_keys[slot];\n{store}continue;\n}}\n\
                     {insert}{add}}}\n",
                    full = kernel.flag("threadIdx.x == 0", Retry::TABLE_FULL),
                )
            }
        };
        format!(
            "const u32 PARTS = (u32){parts};\nconstexpr u32 WORDS = {words};\nconstexpr int AHEAD = {ahead};\n{head}\
             const u32 item = blockIdx.x;\nif (item >= {items}[PARTS]) return;\n\
             const u32 part = partition_of_item({items}, PARTS, item);\n\
             const bool alone = {items}[part + 1] - {items}[part] == 1;\n\
             const u64 first = {begins}[part] + (u64)(item - {items}[part]) * {most};\n\
             const u64 end = minimum(first + {most}, {cursors}[part]);\n\
             {declare}\
             for (u64 base = first; base < end; base += (u64)THREADS * AHEAD) {{\n\
             u32 record[AHEAD][WORDS];\nu32 slot_of[AHEAD];\nu32 wanted = 0;\n\
             #pragma unroll\n\
             for (int j = 0; j < AHEAD; ++j) {{\nconst u64 at = base + j * THREADS + threadIdx.x;\n\
             if (at < end) {{\npartition_load<WORDS>(record[j], {records} + at * WORDS);\nwanted |= 1u << j;\n}}\n}}\n\
             {give_up}\
             {slots}\
             #pragma unroll\n\
             for (int j = 0; j < AHEAD; ++j) {{\nconst u32 slot = slot_of[j];\nbool lost = false;\n\
             if (slot != CELL_NONE) {{\n{hoists}{load}{assign}{update}}}\n{lost}\n}}\n}}\n\
             __syncthreads();  // all records are in\n{flush}",
            parts = names.parts,
            words = self.record.words,
            give_up = match self.domain {
                Domain::Dense(_) => String::new(),
                Domain::Any(_) => kernel.give_up(),
            },
            ahead = if self.record.words <= 4 { 4 } else { 2 },
            head = kernel.head,
            items = names.items.0,
            begins = names.begins.0,
            cursors = names.cursors.0,
            records = names.records.0,
            most = names.most,
            declare = self.cells.declare(kernel, &self.slots.to_string(), 1),
            hoists = hoisted.declare,
            assign = hoisted.assign,
            update = hashed_update(kernel, &self.cells, &hoisted),
            lost = kernel.flag("lost", Retry::INEXACT),
        )
    }
}

/// Rows of which a block that spreads loads everything at once: registers hold no more, `held` bytes being those of a row's
/// columns and key.
fn turn_of(held: usize) -> u32 {
    match held {
        ..=20 => 8,
        21..=32 => 4,
        _ => 1,
    }
}

/// Where groups end up.
pub(super) struct Target<'a> {
    /// Names the bytes that say which slots of a dense domain hold a group, or the keys of others.
    pub(super) found: &'a str,
    /// Buffers that another attempt needs as they were, and the byte that filled them.
    pub(super) fresh: &'a [(Arc<Buffer>, u8)],
}

/// Rows from which on partitions pay; `WARPFRAME_PARTITION_ROWS` says otherwise, for tests.
pub(super) fn from(simulated: bool) -> u64 {
    static ASKED: std::sync::OnceLock<Option<u64>> = std::sync::OnceLock::new();
    let asked = ASKED.get_or_init(|| std::env::var("WARPFRAME_PARTITION_ROWS").ok()?.parse().ok());
    asked.unwrap_or(if simulated { FROM_ON_SIMULATOR } else { FROM })
}
