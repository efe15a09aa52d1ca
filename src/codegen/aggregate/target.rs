//! What an attempt to aggregate needs, and the memory of its result.

use std::sync::Arc;

use datafusion::logical_expr::Expr;

use super::expected::Expected;
use super::inputs::AggregateShape;
use super::partitioned::PartitionedNames;
use super::sink::Sink;
use super::{AggregateCall, Manner, OrderedInput, registers};
use crate::codegen::flow::Flow;
use crate::codegen::generator::Generator;
use crate::codegen::groups::{Accumulator, Occupancy};
use crate::error::Result;
use warpframe_device::{Buffer, Device};

/// Names this work in errors about device memory.
pub(super) const OPERATOR: &str = "aggregate";
/// `HASH_PROBES` of the kernels: how far from its place a key may lie in a hash table that counts
/// as full beyond.
const PROBES: u64 = 1024;
/// What is to be aggregated, and how.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) device: &'a Device,
    pub(super) flow: &'a Flow,
    pub(super) groups: &'a [Expr],
    pub(super) calls: &'a [AggregateCall],
    pub(super) manner: Manner,
    pub(super) expected: &'a Expected,
}

/// What follows from the keys and the calls.
pub(super) struct Needs {
    /// Inputs that no atomic takes.
    pub(super) ordered: Vec<OrderedInput>,
    /// Whether inputs pick rows.
    pub(super) picks: bool,
    /// Whether the slot of each row is kept.
    pub(super) by_rows: bool,
    /// Whether equal keys are equal groups.
    pub(super) exact: bool,
    /// Whether rows lie as they are in columns.
    pub(super) in_place: bool,
    /// The number of slots, where keys number them.
    pub(super) direct: Option<u64>,
    /// Whether rows come in the order of the first key.
    pub(super) in_order: bool,
}

/// Memory of the result, and the names of its parameters.
pub(super) struct Target {
    pub(super) slots: u64,
    pub(super) slot_count: String,
    pub(super) accumulators: Vec<(Accumulator, Arc<Buffer>)>,
    pub(super) pointers: Vec<String>,
    pub(super) exponents: Vec<String>,
    /// Where groups are found: by bytes, or by keys.
    pub(super) occupancy: Occupancy,
    pub(super) found: String,
    pub(super) mask: String,
    pub(super) secret: String,
    pub(super) probes: String,
    /// Buffers that another attempt needs as they were, and the byte that filled them.
    pub(super) fresh: Vec<(Arc<Buffer>, u8)>,
    pub(super) besides: Besides,
}

/// Memory that some sinks need besides, with its names.
pub(super) struct Besides {
    /// The slot of each row.
    pub(super) row_slots: Option<(String, Arc<Buffer>)>,
    /// A row of each slot.
    pub(super) first_rows: Option<(String, Arc<Buffer>)>,
    /// Partial results of each block.
    pub(super) partials: Option<(String, Arc<Buffer>)>,
    pub(super) partitions: Option<PartitionedNames>,
}

impl Request<'_> {
    /// Takes the memory of the result, and declares it.
    pub(super) fn target(
        &self,
        generator: &mut Generator<'_>,
        shape: &AggregateShape,
        sink: &Sink,
        needs: &Needs,
    ) -> Result<Target> {
        let (device, rows) = (self.device, self.flow.source.rows());
        let slots = match (sink, needs.direct) {
            (_, Some(domain)) => domain,
            (Sink::Partitioned(plan), None) => plan.slots(),
            (_, None) => self.expected.capacity(rows) + 1,
        };
        let mut fresh = vec![];
        let mut filled = |bytes: usize, byte: u8| -> Result<Arc<Buffer>> {
            let buffer = Arc::new(device.alloc_filled(OPERATOR, bytes, byte)?);
            fresh.push((buffer.clone(), byte));
            Ok(buffer)
        };
        let (mut accumulators, mut pointers) = (vec![], vec![]);
        for input in &shape.inputs {
            let bytes = slots as usize * input.accumulator.words() * 8;
            let buffer = match sink {
                // The last block writes them, whatever there was.
                Sink::Registers => Arc::new(device.alloc(OPERATOR, bytes)?),
                _ => filled(bytes, input.accumulator.initial_byte())?,
            };
            pointers.push(generator.params.pointer("u64", &buffer, 0));
            accumulators.push((input.accumulator.clone(), buffer));
        }
        let occupancy = match (sink, needs.direct) {
            (Sink::Registers, _) => Occupancy::All,
            (_, Some(_)) if self.groups.is_empty() => Occupancy::All,
            (_, Some(domain)) => Occupancy::Seen(filled(domain as usize, 0)?),
            (_, None) => Occupancy::Hashed(filled(slots as usize * 8, 0xFF)?),
        };
        let params = &mut generator.params;
        let found = match &occupancy {
            Occupancy::All => String::new(),
            Occupancy::Seen(seen) => params.pointer("u8", seen, 0),
            Occupancy::Hashed(table) => params.pointer("u64", table, 0),
        };
        let mask = params.word("u64", slots.saturating_sub(2));
        let (secret, probes) = match occupancy {
            Occupancy::Hashed(_) => {
                let probes = if self.expected.patient() { slots } else { PROBES };
                (params.word("u64", shape.layout.secret), params.word("u64", probes))
            }
            _ => ("0ull".to_string(), String::new()),
        };
        let slot_count = params.word("u64", slots);
        let exponent = |accumulator: &Accumulator| match accumulator {
            Accumulator::Fixed { exponent, .. } => params.word("i64", i64::from(*exponent)),
            _ => String::new(),
        };
        let exponents = shape.inputs.iter().map(|f| &f.accumulator).map(exponent).collect();

        let besides = self.besides(generator, shape, sink, needs, slots)?;
        Ok(Target {
            slots,
            slot_count,
            accumulators,
            pointers,
            exponents,
            occupancy,
            found,
            mask,
            secret,
            probes,
            fresh,
            besides,
        })
    }

    /// What a sink declares besides.
    fn besides(
        &self,
        generator: &mut Generator<'_>,
        shape: &AggregateShape,
        sink: &Sink,
        needs: &Needs,
        slots: u64,
    ) -> Result<Besides> {
        let device = self.device;
        let mut of_rows = |wanted: bool, entries: u64| -> Result<Option<(String, Arc<Buffer>)>> {
            if !wanted || !matches!(sink, Sink::Atomics) {
                return Ok(None);
            }
            let buffer = Arc::new(device.alloc_filled(OPERATOR, entries as usize * 4, 0xFF)?);
            Ok(Some((generator.params.pointer("u32", &buffer, 0), buffer)))
        };
        let row_slots = of_rows(needs.by_rows, self.flow.source.rows())?;
        let first_rows = of_rows(!needs.exact, slots)?;
        let words: usize = shape.inputs.iter().map(|input| input.accumulator.words()).sum();
        let partials = match sink {
            Sink::Registers => {
                let words = words.max(1) * registers::most_blocks(device) as usize;
                let buffer = Arc::new(device.alloc(OPERATOR, words * 8)?);
                Some((generator.params.pointer("u64", &buffer, 0), buffer))
            }
            _ => None,
        };
        let partitions = match sink {
            Sink::Partitioned(plan) => Some(plan.declare(device, &mut generator.params)?),
            _ => None,
        };
        Ok(Besides { row_slots, first_rows, partials, partitions })
    }
}
