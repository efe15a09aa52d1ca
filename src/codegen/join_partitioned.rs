//! The partitioned hash join, for inner joins of two large sides. Rows of both sides are
//! partitioned by key, with every column that the result wants. A block then joins one partition by
//! a hash table in shared memory, so that no row costs a random access to global memory.
//!
//! ```text
//!   build   partitioned by key (radix_partition.rs)    7 | 3 9 | …
//!   probe   partitioned by key                         7 7 | 9 | …
//!   join    a hash table of a partition's build records in shared memory; its probe records look
//!           up theirs; a tile writes its result rows together (kernels/join_partitioned.cuh)
//! ```
//!
//! The first attempt assumes that no key has two build rows. If a key has, the partitions are
//! joined again, and every probe record counts its matches before it writes them. The order of the
//! result is not determined.
//!
//! It pays where the table of a join would not fit the second-level cache. Only the columns that
//! are read above the join travel in the records. Strings that are not codes do not travel. Joins
//! that need them, and joins whose keys ascend or repeat too often, use a table
//! (`kernels/src/ops/join.rs`).

mod sides;

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

use super::control::{Control, Retry};
use super::device_function::KernelHeader;
use super::emit::Emitter;
use super::flow::Flow;
use super::kernel::Generated;
use super::keys::KeyLayout;
use super::outputs::{Codes, OutputPlace, allocate, finish, place, store};
use super::params::Params;
use super::prepared::PreparedKernel;
use super::radix_partition::PartitionedRecords;
use super::sites::Sites;
use super::statements::Code;
use crate::column::Column;
use crate::error::{Error, Result};
use sides::{PartitionLayout, SidePipeline};
use warpframe_device::Device;

const OPERATOR: &str = "join";
const THREADS: u32 = 1024;
const THREADS_ON_SIMULATOR: u32 = 128;
/// A partition of so many times the mean of probe records is shared by several blocks.
const SKEWED: u64 = 2;

/// Where a column of the result comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnOrigin {
    Build(usize),
    Probe(usize),
    /// The key's field of this number.
    Key(usize),
    /// Nobody reads it.
    Nowhere,
}

/// An inner join: the pipeline and keys of each side, and the columns of the result.
pub(crate) struct PartitionedJoin<'a> {
    pub(crate) build: (&'a Flow, &'a [Expr]),
    pub(crate) probe: (&'a Flow, &'a [Expr]),
    pub(crate) layout: &'a KeyLayout,
    /// The number of keys where they number slots themselves.
    pub(crate) domain: Option<u64>,
    pub(crate) columns: &'a [(ColumnOrigin, DataType)],
}

/// Joins. `None`: another strategy has to be taken, because rows are too wide, keys repeat too
/// often, or memory does not suffice.
pub(crate) fn join_partitioned(
    device: &Device,
    join: &PartitionedJoin<'_>,
) -> Result<Option<(u64, Vec<Option<Column>>)>> {
    match attempts(device, join) {
        Err(error) if error.is_out_of_device_memory() => Ok(None),
        done => done,
    }
}

fn attempts(
    device: &Device,
    join: &PartitionedJoin<'_>,
) -> Result<Option<(u64, Vec<Option<Column>>)>> {
    let mut domain = join.domain;
    let mut sampled = true;
    loop {
        let control = Control::new(device)?;
        let Some(cut) = PartitionLayout::of(device, join.build.0.expected_rows(), domain) else {
            return Ok(None);
        };
        let wanted = |of: fn(ColumnOrigin) -> Option<usize>| -> Vec<(usize, usize)> {
            let columns = join.columns.iter().enumerate();
            columns.filter_map(|(at, (from, _))| of(*from).map(|column| (column, at))).collect()
        };
        let of_build =
            wanted(|from| if let ColumnOrigin::Build(column) = from { Some(column) } else { None });
        let of_probe =
            wanted(|from| if let ColumnOrigin::Probe(column) = from { Some(column) } else { None });
        let layout = join.layout;
        let build = SidePipeline::of(
            device,
            "join_partitioned_build",
            join.build,
            layout,
            cut,
            &of_build,
            &control,
            0,
        )?;
        let Some(mut build) = build else { return Ok(None) };
        // Both sides report failures in the same words, which are read once.
        let sites = build.prepared.sites.len();
        let probe = SidePipeline::of(
            device,
            "join_partitioned_probe",
            join.probe,
            layout,
            cut,
            &of_probe,
            &control,
            sites,
        )?;
        let Some(mut probe) = probe else { return Ok(None) };
        let mut sites = std::mem::take(&mut build.prepared.sites);
        sites.append(std::mem::take(&mut probe.prepared.sites));
        let records = SideRecords {
            build: build.partition(device, sampled)?,
            probe: probe.partition(device, sampled)?,
        };
        let sides = PartitionedSides {
            device,
            join,
            cut,
            build: &build,
            probe: &probe,
            records,
            control: &control,
            sites: &sites,
        };
        match sides.run()? {
            JoinOutcome::Done(rows, columns) => return Ok(Some((rows, columns))),
            JoinOutcome::Again(retry) if retry.has(Retry::PARTITION_FULL) && sampled => {
                sampled = false
            }
            JoinOutcome::Again(retry) if retry.has(Retry::PARTITION_FULL) => {
                return Err(Error::internal(format!(
                    "{OPERATOR}: a histogram does not agree with its rows"
                )));
            }
            // A table that keys number has one slot a key.
            JoinOutcome::Again(retry) if retry.has(Retry::REPEATED) && cut.dense => domain = None,
            JoinOutcome::Again(_) => return Ok(None),
        }
    }
}

struct SideRecords {
    build: PartitionedRecords,
    probe: PartitionedRecords,
}

enum JoinOutcome {
    Done(u64, Vec<Option<Column>>),
    Again(Retry),
}

/// Both sides, partitioned.
struct PartitionedSides<'a> {
    device: &'a Device,
    join: &'a PartitionedJoin<'a>,
    cut: PartitionLayout,
    build: &'a SidePipeline,
    probe: &'a SidePipeline,
    records: SideRecords,
    control: &'a Control,
    sites: &'a Sites,
}

impl PartitionedSides<'_> {
    fn run(&self) -> Result<JoinOutcome> {
        // Without repeated keys no more rows come out than go in.
        let mut capacity = self.probe.partition.rows;
        let mut repeated = false;
        loop {
            let (retry, rows, columns) = self.attempt(capacity, repeated)?;
            if retry.has(Retry::PARTITION_FULL) || retry.has(Retry::TABLE_FULL) {
                return Ok(JoinOutcome::Again(retry));
            }
            if retry.has(Retry::REPEATED) && !repeated {
                if self.cut.dense {
                    return Ok(JoinOutcome::Again(retry));
                }
                repeated = true;
            } else if rows > capacity {
                capacity = rows;
            } else {
                return Ok(JoinOutcome::Done(rows, columns));
            }
            self.control.reset()?;
        }
    }

    /// The result, if no more rows come out than `capacity`.
    fn attempt(&self, capacity: u64, repeated: bool) -> Result<(Retry, u64, Vec<Option<Column>>)> {
        let device = self.device;
        let processors = u64::from(device.properties().multiprocessors);
        let most = (SKEWED * self.probe.partition.rows / self.cut.parts)
            .max(self.probe.partition.rows / (4 * processors))
            .max(1);
        let items = self.records.probe.partitions.items(device, most)?;
        let mut params = Params::default();
        let names = JoinNames::declare(&mut params, self, &items, capacity, most);
        let mut out = Emitter::new("m");
        let mut write = Code::default();
        self.build.partition.record.emit_load("build", "b", &mut write);
        self.probe.partition.record.emit_load("record[k]", "c", &mut write);
        let mut places: Vec<Option<OutputPlace>> = vec![];
        for (at, (from, _)) in self.join.columns.iter().enumerate() {
            let of_side = |side: &SidePipeline, prefix: &str| {
                let (_, value) = side
                    .values
                    .iter()
                    .find(|(column, _)| *column == at)
                    .expect("every wanted column travels");
                let mut loaded = side.partition.record.loaded(value, prefix);
                loaded.valid = value
                    .valid
                    .as_ref()
                    .map(|valid| side.partition.record.loaded_flag(valid, prefix));
                loaded
            };
            let value = match from {
                ColumnOrigin::Build(_) => of_side(self.build, "b"),
                ColumnOrigin::Probe(_) => of_side(self.probe, "c"),
                ColumnOrigin::Key(field) => {
                    self.join.layout.emit_decode("key", *field, &mut params, &mut out)
                }
                ColumnOrigin::Nowhere => {
                    places.push(None);
                    continue;
                }
            };
            places.push(Some(place(value, Codes::Keep, &mut params)));
        }
        let decoded = out.take();
        let key = self.key_of_record(&mut params);
        if !decoded.is_empty() {
            write.constant("u64", "key", key);
        }
        write.append(&decoded);
        places.iter().flatten().for_each(|place| store(place, &mut write));
        let mut prepared = PreparedKernel {
            params,
            prologue: Code::default(),
            rows: self.probe.partition.rows,
            eager_bytes: 0,
            late: false,
            characters: vec![],
            may_fail: false,
            sites: Sites::default(),
            arena: None,
            made: None,
            touched: vec![],
        };
        let mut outputs = vec![];
        for place in places.iter().flatten() {
            outputs.push(allocate(device, OPERATOR, place, Codes::Keep, capacity, &mut prepared)?);
        }
        let threads = device.of_kind(THREADS, THREADS_ON_SIMULATOR);
        let text = self.text(&names, &write, repeated);
        let stem = if repeated { "join_partitioned_all" } else { "join_partitioned" };
        let kernel = Generated::with_threads(device, stem, &prepared, &text, threads)?;
        kernel.fill(
            device,
            self.records.probe.partitions.most_items(most),
            self.cut.slots as u32 * 4,
        )?;
        let (retry, rows) = self.control.read(self.sites)?;
        let rows = if device.rehearses() { self.probe.expected } else { rows };
        let (_, columns) =
            finish(device, OPERATOR, outputs, rows.min(capacity), capacity, &prepared)?;
        let mut made = columns.into_iter();
        let columns = places.iter().map(|place| place.as_ref().and_then(|_| made.next())).collect();
        Ok((retry, rows, columns))
    }

    fn key_of_record(&self, params: &mut Params) -> String {
        if self.cut.dense {
            return "record[k][0]".into();
        }
        let secret = params.word("u64", self.join.layout.secret);
        format!("hash_unmix((u64)record[k][1] << 32 | record[k][0], {secret})")
    }

    fn text(&self, names: &JoinNames, write: &Code, repeated: bool) -> Code {
        let control = &names.control;
        let flag = |condition: &str, bit: u32| {
            format!("if ({condition}) atomicOr((u32*)({control} + 1), {bit}u);")
        };
        let [declare, find, begin, end] = of_matches(repeated);
        let mut code = Code::default();
        code.needs(KernelHeader::Partition);
        code.needs(KernelHeader::JoinPartitioned);
        code.line(format_args!(
            "constexpr u32 BUILD = {build}, PROBE = {probe};\nconstexpr int ITEMS = {ahead};\nconstexpr bool DENSE = {dense};\n\
             const u32 PARTS = (u32){parts};\nconst u64 capacity = {capacity};\n\
             u64* const cursor = {control} + 3;\n\
             WF_DYNAMIC_SHARED(dynamic);\n{declare}\
             bool full = false;\nu32 saw = 0;\nu32 held = PARTITION_NONE;\n\
             const u32 items = {items}[PARTS];\n\
             for (u32 item = blockIdx.x; item < items; item += gridDim.x) {{\n\
             const u32 part = partition_of_item({items}, PARTS, item);\n\
             const u64 from = {build_begins}[part];\n\
             const u64 n = partition_end({build_begins}, {build_cursors}, part) - from;\n\
             const PartitionTable table = {{(u32*)dynamic, (u32){slots}, {build_records} + from * BUILD}};\n\
             if (n > {most_rows}) {{\nfull = true;\ncontinue;\n}}\n\
             if (part != held) {{\n\
             __syncthreads();  // all are done with the table before\n\
             for (u32 i = threadIdx.x; i < table.count; i += THREADS) table.slots[i] = 0;\n\
             __syncthreads();  // slots are empty\n\
             saw |= join_partitioned_build<THREADS, BUILD, DENSE>(table, (u32)n);\n\
             __syncthreads();  // the table is there\n\
             held = part;\n}}\n\
             const u64 first = {probe_begins}[part] + (u64)(item - {items}[part]) * {most};\n\
             const u64 end = minimum(first + {most}, partition_end({probe_begins}, {probe_cursors}, part));\n\
             for (u64 base = first; base < end; base += (u64)THREADS * ITEMS) {{\n\
             u32 record[ITEMS][PROBE];\nu32 wanted = 0;\n\
             #pragma unroll\n\
             for (int k = 0; k < ITEMS; ++k) {{\nconst u64 at = base + k * THREADS + threadIdx.x;\nrecord[k][0] = 0;\n\
             if (at < end) {{\npartition_load<PROBE>(record[k], {probe_records} + at * PROBE);\nwanted |= 1u << k;\n}}\n}}\n\
             {find}{begin}",
            build = self.build.partition.record.words,
            probe = self.probe.partition.record.words,
            ahead = ahead(self.probe.partition.record.words),
            dense = self.cut.dense,
            parts = names.parts,
            capacity = names.capacity,
            items = names.items,
            build_begins = names.build.begins,
            build_cursors = names.build.cursors,
            build_records = names.build.records,
            probe_begins = names.probe.begins,
            probe_cursors = names.probe.cursors,
            probe_records = names.probe.records,
            slots = names.slots,
            most_rows = names.most_rows,
            most = names.most,
        ));
        code.append(write);
        code.line(end);
        code.line("}\n}");
        code.line(flag("full || (saw & JOIN_PARTITIONED_TOO_MANY) != 0", Retry::TABLE_FULL));
        code.line(flag("(saw & JOIN_PARTITIONED_REPEATED) != 0", Retry::REPEATED));
        code
    }
}

/// What is declared before the loop over partitions; how a tile's rows get their places; what opens
/// a match, whose columns are written behind, and what closes it.
fn of_matches(repeated: bool) -> [&'static str; 4] {
    match repeated {
        false => [
            "u32 turn = 0;\n",
            "u32 found[ITEMS];\n\
                 join_partitioned_find<ITEMS, BUILD, PROBE, DENSE>(table, record, wanted, found);\n\
                 u32 rank[ITEMS];\n\
                 const u64 start = join_partitioned_places<THREADS, ITEMS>(found, cursor, turn++, rank);\n",
            "#pragma unroll\n\
                 for (int k = 0; k < ITEMS; ++k) {\nconst u64 at = start + rank[k];\n\
                 if (found[k] != 0 && at < capacity) {\n\
                 const u32* const build = table.records + (u64)(found[k] - 1) * BUILD;",
            "}\n}",
        ],
        true => [
            "WF_SHARED(u64, begin);\n",
            "u32 own = 0;\n\
                 #pragma unroll\n\
                 for (int k = 0; k < ITEMS; ++k) if ((wanted >> k & 1) != 0) {\n\
                 u32 slot = join_partitioned_first(table, record[k][0]);\n\
                 while (join_partitioned_walk<BUILD>(table, slot, record[k]) != 0) {\n++own;\nslot = join_partitioned_next(table, slot);\n}\n}\n\
                 __syncwarp(FULL_WARP);\n\
                 u32 kept;\n\
                 const u32 before = block_scan<THREADS, u32>(own, kept);\n\
                 if (threadIdx.x == 0) begin = kept != 0 ? atomicAdd(cursor, (u64)kept) : 0;\n\
                 __syncthreads();  // where the tile's rows go is there\n\
                 const u64 start = begin;\n",
            "u64 at = start + before;\n\
                 #pragma unroll\n\
                 for (int k = 0; k < ITEMS; ++k) if ((wanted >> k & 1) != 0) {\n\
                 u32 slot = join_partitioned_first(table, record[k][0]);\n\
                 u32 found = join_partitioned_walk<BUILD>(table, slot, record[k]);\n\
                 while (found != 0) {\n\
                 if (at < capacity) {\n\
                 const u32* const build = table.records + (u64)((found & 0xFFFFu) - 1) * BUILD;",
            "}\n\
                 ++at;\nslot = join_partitioned_next(table, slot);\nfound = join_partitioned_walk<BUILD>(table, slot, record[k]);\n}\n}",
        ],
    }
}

/// Probe records that a thread looks up together, as far as registers hold them. (Of 16 bytes 4:
/// with 2 it took 1.68 instead of 1.40 ms, with 8 it took 2.22.)
fn ahead(words: usize) -> u32 {
    match words {
        ..=4 => 4,
        5..=8 => 2,
        _ => 1,
    }
}

/// How the join's kernel calls a side's records.
struct RecordNames {
    begins: String,
    cursors: String,
    records: String,
}

/// How the join's kernel calls its parameters.
struct JoinNames {
    control: String,
    items: String,
    parts: String,
    slots: String,
    most: String,
    most_rows: String,
    capacity: String,
    build: RecordNames,
    probe: RecordNames,
}

impl JoinNames {
    fn declare(
        params: &mut Params,
        of: &PartitionedSides<'_>,
        items: &warpframe_device::Buffer,
        capacity: u64,
        most: u64,
    ) -> JoinNames {
        let mut side = |records: &PartitionedRecords, words: usize| {
            let (buffer, later) = params.later_of("const u32*", words as u64 * 4);
            params.set(later, &records.buffer);
            RecordNames {
                begins: params.borrowed("const u64", &records.partitions.begins),
                cursors: params.borrowed("const u64", &records.partitions.cursors),
                records: buffer,
            }
        };
        let build = side(&of.records.build, of.build.partition.record.words);
        let probe = side(&of.records.probe, of.probe.partition.record.words);
        JoinNames {
            control: params.pointer("u64", &Arc::clone(&of.control.0), 0),
            items: params.borrowed("const u32", items),
            parts: params.word("u64", of.cut.parts),
            slots: params.word("u64", of.cut.slots),
            most: params.word("u64", most),
            most_rows: params.word("u64", of.cut.most()),
            capacity: params.word("u64", capacity),
            build,
            probe,
        }
    }
}
