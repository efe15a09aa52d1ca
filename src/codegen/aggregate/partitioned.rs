//! The sink for many groups: rows are partitioned by key first, so that the accumulators of a
//! partition fit shared memory, where adding costs no trip to memory.
//!
//! `radix_partition.rs` writes each row's record (key, arguments) to its partition; what is here
//! collects records partition by partition into cells, and those into the slots. A dense key's high
//! bits are its partition, its low bits the cell; other keys are mixed, their high bits choose the
//! partition, and a hash table in shared memory finds the cell. A partition with far more records
//! than others, as skewed keys make it, is collected by several blocks, which then add to the same
//! slots.

use std::sync::Arc;

use super::cells::{Cells, Flush, KeyForm, KeyTable, Probes, hash_slots, hashed_update};
use super::inputs::AggregateInput;
use super::kernel::{AggregateKernel, Hoisted};
use crate::codegen::control::{Control, Retry};
use crate::codegen::device_function::KernelHeader;
use crate::codegen::kernel::{Generated, most_shared};
use crate::codegen::params::{Later, Params};
use crate::codegen::prepared::PreparedKernel;
use crate::codegen::radix_partition::{
    MOST_PARTS, RadixPartition, RadixPartitionNames, SHARED_ON_SIMULATOR, pays_from,
};
use crate::codegen::record::Record;
use crate::codegen::statements::Code;
use crate::error::Result;
use warpframe_device::{Buffer, Device};

const OPERATOR: &str = "aggregate";
/// Cells of a hash table in use: few, while that costs no more partitions than there are
/// multiprocessors; else most.
const LOW_LOAD: f64 = 0.2;
const HIGH_LOAD: f64 = 0.75;
/// A partition of so many times the mean is collected by several blocks, unless all are small. With
/// four, one key of nine rows of ten took a sum of 1M scattered groups 1.5 times as long as equally
/// frequent keys.
const SKEWED: u64 = 2;
/// Items of records for each multiprocessor.
const ITEMS_PER_PROCESSOR: u64 = 4;
/// Groups from which on DISTINCT does.
const DISTINCT_FROM: u64 = 2_000_000;

/// What the groups' keys are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Domain {
    /// Numbers below this.
    Dense(u64),
    /// Anything; there are about so many.
    Any(u64),
}

/// How an aggregation is partitioned.
pub(super) struct GroupPartitioning {
    partition: RadixPartition,
    cells: Cells,
    domain: Domain,
    /// Slots of a partition, a power of two.
    slots: u64,
    /// Most records that a block collects.
    most: u64,
}

/// The parameters of the kernels, some of which are set between them.
pub(super) struct PartitionedNames {
    partition: RadixPartitionNames,
    items: (String, Later),
    most: String,
    /// Of keys that are not dense: slots that blocks take for partitions that are theirs alone, and
    /// the capacity, less one, of the hash table behind them, for the others.
    listed: String,
    mask: String,
    /// Slots taken.
    used: (String, Arc<Buffer>),
}

impl GroupPartitioning {
    /// `None` where another way is better, or the only one.
    pub(super) fn of(
        device: &Device,
        inputs: &[AggregateInput],
        domain: Domain,
        rows: u64,
        estimate: f64,
    ) -> Option<GroupPartitioning> {
        let from = pays_from(device);
        if rows < from || estimate < from as f64 || rows >= u64::from(u32::MAX) {
            return None;
        }
        let processors = u64::from(device.properties().multiprocessors);
        let shared = device.of_kind(most_shared(device), SHARED_ON_SIMULATOR);
        let distinct_from = device.of_kind(DISTINCT_FROM, 0);
        let dense = matches!(domain, Domain::Dense(_));
        let record = record(inputs, dense)?;
        let plan = |cells: Cells, slots: u64, parts: u64, most: u64| {
            let parts = parts.max(2);
            let part = if dense { (0, slots.max(1).ilog2()) } else { (1, 32 - parts.ilog2()) };
            let partition = RadixPartition { stem: "group", record, parts, part, rows };
            (slots >= 32 && parts <= MOST_PARTS).then_some(GroupPartitioning {
                partition,
                cells,
                domain,
                slots,
                most,
            })
        };
        match domain {
            Domain::Dense(domain) => {
                let cells = Cells::of(inputs, rows, false);
                let slots = cells.most_slots(shared);
                let parts = domain.div_ceil(slots.max(1)).max(2);
                // Where partitions are few, as many items as keep all multiprocessors busy to the
                // end.
                let each = (ITEMS_PER_PROCESSOR * processors / parts).max(1);
                let slack = if each > 1 { 1.02 } else { 2.0 };
                plan(cells, slots, parts, (rows as f64 / (parts * each) as f64 * slack) as u64 + 1)
            }
            // A table of keys alone is found in the caches for long.
            Domain::Any(groups) if inputs.is_empty() && groups < distinct_from => None,
            Domain::Any(groups) => {
                let cells = Cells::of(inputs, rows, true);
                let slots = cells.most_slots(shared);
                let parts_at = |load: f64| {
                    ((groups as f64 / (slots as f64 * load)) as u64 + 1).next_power_of_two()
                };
                let few = 1 << processors.ilog2();
                let parts =
                    if parts_at(LOW_LOAD) <= few { few } else { parts_at(HIGH_LOAD).max(few) };
                // No block has more than half of a multiprocessor's share.
                plan(
                    cells,
                    slots,
                    parts,
                    (SKEWED * rows / parts).max(rows / (2 * processors)).max(1),
                )
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
        let split = (self.partition.rows / self.most).min(self.partition.parts);
        (split * self.slots).next_power_of_two().max(1024)
    }

    /// Declares the kernels' parameters.
    pub(super) fn declare(&self, device: &Device, params: &mut Params) -> Result<PartitionedNames> {
        let used = Arc::new(device.alloc_zeroed(OPERATOR, 8)?);
        Ok(PartitionedNames {
            partition: self.partition.declare(params),
            items: params.later("const u32*"),
            most: params.word("u64", self.most),
            listed: params.word("u64", self.listed()),
            mask: params.word("u64", self.shared() - 1),
            used: (params.pointer("u64", &used, 0), used),
        })
    }

    /// Runs the three kernels. Yields why the result does not count, if it does
    /// not.
    pub(super) fn run(
        &self,
        device: &Device,
        prepared: &mut PreparedKernel,
        names: &PartitionedNames,
        kernel: &AggregateKernel<'_>,
        control: &Control,
        target: &GroupTarget<'_>,
    ) -> Result<Retry> {
        let mut step = self.partition.first_step();
        loop {
            self.attempt(device, prepared, names, kernel, step, target)?;
            let (retry, _) = control.read(&prepared.sites)?;
            if !retry.has(Retry::PARTITION_FULL) {
                return Ok(retry);
            }
            // The sample misled.
            if step == 1 {
                return Err(crate::error::Error::internal(format!(
                    "{OPERATOR}: a histogram does not agree with its rows"
                )));
            }
            control.reset()?;
            names.used.1.fill(0)?;
            target.fresh.iter().try_for_each(|(buffer, byte)| buffer.fill(*byte))?;
            step = 1;
        }
    }

    fn attempt(
        &self,
        device: &Device,
        prepared: &mut PreparedKernel,
        names: &PartitionedNames,
        kernel: &AggregateKernel<'_>,
        step: u64,
        target: &GroupTarget<'_>,
    ) -> Result<()> {
        prepared.params.set(names.items.1, 0u64);
        let records =
            self.partition.run(device, OPERATOR, prepared, &names.partition, &kernel.rows, step)?;
        let items = records.partitions.items(device, self.most)?;
        prepared.params.set(names.items.1, &items);
        let text = self.collect_text(kernel, names, target);
        let threads = if self.slots >= 1024 { 1024 } else { 256 };
        let collect = Generated::with_threads(device, "group_collect", prepared, &text, threads)?;
        let most_items = records.partitions.most_items(self.most) as u32;
        collect.launch(device, most_items, self.cells.bytes(self.slots, 1) as u32)
    }

    fn collect_text(
        &self,
        kernel: &AggregateKernel<'_>,
        names: &PartitionedNames,
        target: &GroupTarget<'_>,
    ) -> Code {
        let record = &self.partition.record;
        let inputs = loaded(record, kernel.inputs);
        let kernel = &AggregateKernel { inputs: &inputs, ..*kernel };
        let hoisted = Hoisted::of(kernel);
        let slots = match self.domain {
            Domain::Dense(_) => "#pragma unroll\nfor (int j = 0; j < AHEAD; ++j) \
                 slot_of[j] = (wanted >> j & 1) != 0 ? record[j][0] & (slots - 1) : CELL_NONE;\n"
                .to_string(),
            Domain::Any(_) => format!(
                "u64 mixed[AHEAD];\n#pragma unroll\n\
                 for (int j = 0; j < AHEAD; ++j) mixed[j] = (u64)record[j][0] | (u64)record[j][1] << 32;\n{}",
                hash_slots(kernel, "AHEAD", "mixed", KeyForm::Mixed, Probes::Many)
            ),
        };
        let mut code = Code::default();
        code.needs(KernelHeader::Partition);
        code.line(format_args!(
            "const u32 PARTS = (u32){parts};\nconstexpr u32 WORDS = {words};\nconstexpr int AHEAD = {ahead};\n{head}\
             const u32 item = blockIdx.x;\nif (item >= {items}[PARTS]) return;\n\
             const u32 part = partition_of_item({items}, PARTS, item);\n\
             const bool alone = {items}[part + 1] - {items}[part] == 1;\n\
             const u64 first = {begins}[part] + (u64)(item - {items}[part]) * {most};\n\
             const u64 end = minimum(first + {most}, partition_end({begins}, {cursors}, part));\n\
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
             if (slot != CELL_NONE) {{",
            parts = names.partition.parts,
            words = record.words,
            give_up = match self.domain {
                Domain::Dense(_) => String::new(),
                Domain::Any(_) => kernel.give_up(),
            },
            ahead = if record.words <= 4 { 4 } else { 2 },
            head = kernel.rows.head,
            items = names.items.0,
            begins = names.partition.begins.0,
            cursors = names.partition.cursors.0,
            records = names.partition.records.0,
            most = names.most,
            declare = self.cells.declare(kernel, &self.slots.to_string(), 1),
        ));
        code.append(&hoisted.declare);
        record.emit_load("record[j]", "carried", &mut code);
        code.append(&hoisted.assign);
        hashed_update(kernel, &self.cells, &hoisted, &mut code);
        let lost = kernel.flag("lost", Retry::INEXACT);
        code.line(format_args!("}}\n{lost}\n}}\n}}\n__syncthreads();  // all records are in"));
        code.raw(&self.flush_text(kernel, names, target));
        code
    }

    /// Moves the groups of a partition to where groups end up.
    fn flush_text(
        &self,
        kernel: &AggregateKernel<'_>,
        names: &PartitionedNames,
        target: &GroupTarget<'_>,
    ) -> String {
        let (store, add) =
            (self.cells.flush(kernel, Flush::Store), self.cells.flush(kernel, Flush::Add));
        let present = self.cells.present();
        let found = target.found;
        match self.domain {
            Domain::Dense(_) => format!(
                "for (u32 slot = threadIdx.x; slot < slots; slot += THREADS) if ({present}) {{\n\
                 const u64 to = (u64)part * slots + slot;\n{found}[to] = 1;\n\
                 if (alone) {{\n{store}}} else {{\n{add}}}\n}}\n"
            ),
            Domain::Any(_) => {
                let (listed, used) = (&names.listed, &names.used.0);
                let insert = KeyTable { keys: found, first: listed, mask: &names.mask }
                    .insert(kernel, KeyForm::Mixed);
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
        }
    }
}

/// Where groups end up.
pub(super) struct GroupTarget<'a> {
    /// Names the bytes that say which slots of a dense domain hold a group, or the keys of others.
    pub(super) found: &'a str,
    /// Buffers that another attempt needs as they were, and the byte that filled them.
    pub(super) fresh: &'a [(Arc<Buffer>, u8)],
}

/// What travels of a row: `None` where it would be too wide, or a value has no fixed width.
fn record(inputs: &[AggregateInput], dense: bool) -> Option<Record> {
    let mut record = Record::keyed(dense);
    for input in inputs {
        if input.value.as_ref().is_some_and(|value| !record.takes(value)) {
            return None;
        }
        if let Some(valid) = &input.valid {
            record.takes_flag(valid);
        }
    }
    record.fits().then_some(record)
}

/// The inputs, of a record's values.
fn loaded(record: &Record, inputs: &[AggregateInput]) -> Vec<AggregateInput> {
    let loaded = |input: &AggregateInput| AggregateInput {
        value: input.value.as_ref().map(|value| record.loaded(value, "carried")),
        valid: input.valid.as_ref().map(|valid| record.loaded_flag(valid, "carried")),
        ..input.clone()
    };
    inputs.iter().map(loaded).collect()
}
