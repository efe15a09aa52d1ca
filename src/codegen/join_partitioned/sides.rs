//! A side of a partitioned join: into how many partitions it is cut, and the kernels that do so.

use datafusion::logical_expr::Expr;

use super::OPERATOR;
use crate::codegen::control::Control;
use crate::codegen::effort::{Effort, items_for};
use crate::codegen::emit::Emitter;
use crate::codegen::flow::Flow;
use crate::codegen::generator::{Generator, Pass};
use crate::codegen::kernel::most_shared;
use crate::codegen::keys::KeyLayout;
use crate::codegen::prepared::PreparedKernel;
use crate::codegen::radix_partition::{
    MOST_PARTS, PartitionedRecords, RadixPartition, RadixPartitionNames, RowCode,
    SHARED_ON_SIMULATOR,
};
use crate::codegen::record::Record;
use crate::codegen::statements::Code;
use crate::codegen::value::Value;
use crate::error::Result;
use warpframe_device::Device;

/// Build rows of a partition that are aimed at.
const PART_ROWS: u64 = 12_000;
/// Slots for each build row.
const ROOM: f64 = 2.0;
/// Share of the slots that may be taken.
const MOST_LOAD: f64 = 0.85;
/// `JOIN_PARTITIONED_MOST` of `kernels/join_partitioned.cuh`.
const MOST_ROWS: u64 = 65_535;

/// How many partitions there are, and the hash table of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PartitionLayout {
    pub(super) dense: bool,
    pub(super) parts: u64,
    /// Slots of a partition's table; of dense keys a power of two.
    pub(super) slots: u64,
}

impl PartitionLayout {
    /// `None` where a partition's table would not fit.
    pub(super) fn of(device: &Device, rows: u64, domain: Option<u64>) -> Option<PartitionLayout> {
        let shared = device.of_kind(most_shared(device), SHARED_ON_SIMULATOR);
        let most = shared / 4;
        if let Some(domain) = domain {
            let slots = 1 << most.min(MOST_ROWS).ilog2();
            let parts = domain.div_ceil(slots).max(2);
            if parts <= MOST_PARTS {
                return Some(PartitionLayout { dense: true, parts, slots });
            }
        }
        let each = PART_ROWS.min((most as f64 / ROOM) as u64);
        let parts = rows.div_ceil(each).next_power_of_two().clamp(2, MOST_PARTS);
        let mean = rows.div_ceil(parts) as f64;
        let slots = ((mean * ROOM) as u64 + 64).min(most);
        let fits = mean * 1.05 <= slots as f64 * MOST_LOAD && mean * 1.05 < MOST_ROWS as f64;
        fits.then_some(PartitionLayout { dense: false, parts, slots })
    }

    pub(super) fn part(self) -> (usize, u32) {
        if self.dense { (0, self.slots.ilog2()) } else { (1, 32 - self.parts.ilog2()) }
    }

    /// Records of a partition that its table holds.
    pub(super) fn most(self) -> u64 {
        if self.dense { MOST_ROWS } else { ((self.slots as f64 * MOST_LOAD) as u64).min(MOST_ROWS) }
    }
}

/// The kernels that partition a side, before they ran.
pub(super) struct SidePipeline {
    pub(super) partition: RadixPartition,
    pub(super) names: RadixPartitionNames,
    pub(super) prepared: PreparedKernel,
    pub(super) pointer: String,
    pub(super) head: String,
    pub(super) statements: Code,
    pub(super) key: String,
    pub(super) secret: String,
    /// The columns that travel, by their place in the result.
    pub(super) values: Vec<(usize, Value)>,
    pub(super) expected: u64,
}

impl SidePipeline {
    /// `None`: something of a row has no fixed width, or all together is too wide. `sites`: those
    /// of the other side.
    #[expect(clippy::too_many_arguments, reason = "what both sides share, and what each has")]
    pub(super) fn of(
        device: &Device,
        stem: &'static str,
        (flow, keys): (&Flow, &[Expr]),
        layout: &KeyLayout,
        cut: PartitionLayout,
        wanted: &[(usize, usize)],
        control: &Control,
        sites: usize,
    ) -> Result<Option<SidePipeline>> {
        let rows = flow.source.rows();
        let mut generator = Generator::new(flow);
        let mut out = Emitter::behind_sites("v", sites);
        generator.stages(Pass::Decide, &mut out)?;
        let keys =
            keys.iter().map(|key| generator.expr(key, &mut out)).collect::<Result<Vec<_>>>()?;
        let key = generator.key(layout, &keys, &mut out);
        let mut record = Record::keyed(cut.dense);
        let mut values = vec![];
        for (column, at) in wanted {
            let value = generator.column(*column, &mut out)?;
            if !record.takes(&value) {
                return Ok(None);
            }
            if let Some(valid) = &value.valid {
                record.takes_flag(valid);
            }
            values.push((*at, value));
        }
        if !record.fits() || generator.makes_text() {
            return Ok(None);
        }
        let secret = generator.params.word("u64", layout.secret);
        let pointer = generator.params.pointer("u64", &control.0, 0);
        let row_count = generator.params.word("u64", rows);
        let head = Control::head(&pointer, &row_count);
        let partition = RadixPartition { stem, record, parts: cut.parts, part: cut.part(), rows };
        let names = partition.declare(&mut generator.params);
        let prepared = generator.finish(device, &pointer, &[&out])?;
        let statements = out.take();
        Ok(Some(SidePipeline {
            partition,
            names,
            prepared,
            pointer,
            head,
            statements,
            key,
            secret,
            values,
            expected: flow.expected_rows(),
        }))
    }

    pub(super) fn partition(
        &mut self,
        device: &Device,
        sampled: bool,
    ) -> Result<PartitionedRecords> {
        let prologue = std::mem::take(&mut self.prepared.prologue);
        let rows = RowCode {
            control: &self.pointer,
            head: &self.head,
            prologue: &prologue,
            statements: &self.statements,
            key: &self.key,
            secret: &self.secret,
            items: items_for(self.prepared.eager_bytes, Effort::of(&self.statements)),
        };
        let step = if sampled { self.partition.first_step() } else { 1 };
        let records =
            self.partition.run(device, OPERATOR, &mut self.prepared, &self.names, &rows, step);
        self.prepared.prologue = prologue;
        records
    }
}
