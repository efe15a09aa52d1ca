//! One attempt to aggregate: what is decided before memory is taken, the memory, the kernel, and what
//! its control words say.

use std::sync::Arc;

use datafusion::logical_expr::Expr;

use super::cells::{self, Probes};
use super::expected::{self, MOST_TRIES};
use super::inputs::{AggregateShape, shape};
use super::kernel::AggregateKernel;
use super::partitioned::GroupTarget;
use super::sink::{self, Sink, cell_threads};
use super::target::{Needs, OPERATOR, Request, Target};
use super::{
    Attempt, OrderedInput, Partial, atomics, best_row, direct_domain, direct_domain_in_order,
    in_key_order, is_in_place, plain_column, registers,
};
use crate::codegen::control::{Control, Retry};
use crate::codegen::effort::Effort;
use crate::codegen::emit::Emitter;
use crate::codegen::flow::FlowSource;
use crate::codegen::generator::{Generator, Pass};
use crate::codegen::groups::{Accumulator, GroupKeyStorage, GroupSlots, Occupancy};
use crate::codegen::kernel::{Generated, THREADS};
use crate::codegen::keys::{KeyLayout, NullKeys};
use crate::codegen::prepared::PreparedKernel;
use crate::codegen::radix_partition::RowCode;
use crate::codegen::statements::Code;
use crate::error::Result;
use warpframe_device::{Buffer, LaunchBounds};

/// Result of one attempt; `WantsSample` comes before anything ran.
pub(super) enum Tried {
    Attempt(Attempt, Option<Retry>),
    WantsSample,
    /// Nothing ran: the guess would choose no hash cells. Retry without it.
    GuessIsNoUse,
    /// The strings that were made took this many bytes, more than there were.
    ArenaFull(u64),
    /// Memory does not suffice for records of all rows, or for a table as large as estimated.
    NoRoom,
}

/// What became of a kernel.
enum Launched {
    /// Its result counts, unless this is a reason why it does not.
    Counts(Option<Retry>),
    Again(Tried),
}

/// Words by which a kernel says what became of it.
struct ControlWords {
    control: Control,
    pointer: String,
    head: String,
}

/// A kernel's code but for its sink.
struct RowStatements {
    prologue: Code,
    statements: Code,
    comparisons: Code,
    key: String,
    items: u32,
    /// Columns are loaded late.
    late: bool,
}

impl Request<'_> {
    pub(super) fn attempt(&self) -> Result<Tried> {
        let Request { device, flow, groups, calls, manner, expected } = *self;
        let rows = flow.source.rows();
        let mut generator = Generator::new(flow);
        let mut out = Emitter::new("v");
        generator.stages(Pass::Decide, &mut out)?;
        let keys = groups.iter().map(|g| generator.expr(g, &mut out));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let secret = device.secret(manner.collisions * MOST_TRIES + expected.tries);
        let layout = KeyLayout::of(&keys, NullKeys::Equal, true, secret);
        let ungrouped = groups.is_empty();
        let shape = shape(&mut generator, calls, layout, manner.floats, ungrouped, rows, &mut out)?;
        let Some(shape) = shape else {
            return Ok(Tried::Attempt(Attempt::NeedsColumns, None));
        };
        let needs = self.needs(&shape);
        if self.needs_columns(&needs) {
            return Ok(Tried::Attempt(Attempt::NeedsColumns, None));
        }
        let comparisons = self.comparisons(&mut generator, &shape);
        let (key, _) = shape.layout.emit(&keys, &mut generator.params, &mut out);
        let words = self.control(&mut generator)?;
        if self.wants_sample(&needs) {
            return Ok(Tried::WantsSample);
        }
        let sink = self.sink(&needs, &shape, &generator);
        if expected.guessed && !matches!(sink, Sink::HashCells { .. }) {
            return Ok(Tried::GuessIsNoUse);
        }
        let target = match self.target(&mut generator, &shape, &sink, &needs) {
            Err(error) if error.is_out_of_device_memory() && self.is_generous(&needs, &shape) => {
                return Ok(Tried::NoRoom);
            }
            target => target?,
        };

        let mut prepared = generator.finish(device, &words.pointer, &[&out])?;
        prepared.set_arena(device, OPERATOR, expected.arena)?;
        let prologue = std::mem::take(&mut prepared.prologue);
        let statements = out.take();
        let count = shape.inputs.iter().map(|input| input.accumulator.words()).sum();
        let late = sink::is_late(&prepared, count, [&statements, &prologue]);
        let effort = Effort::of(&statements) + Effort::of(&comparisons);
        let items = sink.items(shape.inputs.len(), &prepared, effort, late);
        let code = RowStatements { prologue, statements, comparisons, key, items, late };
        let launched =
            self.launched(&mut prepared, &code, &shape, &sink, &target, &needs, &words)?;
        match launched {
            Launched::Counts(retry) => Ok(self.done(shape, &sink, target, needs, retry)),
            Launched::Again(tried) => Ok(tried),
        }
    }

    fn needs(&self, shape: &AggregateShape) -> Needs {
        // Floats in registers are summed in a fixed order anyway.
        let ordered: Vec<_> = (shape.inputs.iter().enumerate())
            .filter(|(_, f)| !self.groups.is_empty() && f.accumulator == Accumulator::Float)
            .map(|(at, f)| OrderedInput { accumulator: at, call: f.call })
            .collect();
        Needs {
            by_rows: self.manner.row_slots || !ordered.is_empty(),
            ordered,
            picks: shape.inputs.iter().any(|f| f.accumulator == Accumulator::Row),
            exact: shape.layout.is_exact(),
            in_place: is_in_place(self.flow),
            direct: match self.expected.frugal {
                true => direct_domain(&shape.layout, self.flow),
                false => direct_domain_in_order(&shape.layout, self.flow, self.groups),
            },
            in_order: in_key_order(self.flow, self.groups),
        }
    }

    /// Whether a table is as large as it is because of estimates, or of the rows' order, alone.
    fn is_generous(&self, needs: &Needs, shape: &AggregateShape) -> bool {
        let by_order = needs.direct.is_some() && direct_domain(&shape.layout, self.flow).is_none();
        self.expected.is_generous() || by_order && !self.expected.frugal
    }

    /// Whether keys or arguments are looked at again where they lie, and are no columns.
    fn needs_columns(&self, needs: &Needs) -> bool {
        let is_plain = |expr: &Expr| needs.in_place && plain_column(self.flow, expr).is_some();
        let plain_keys = self.groups.iter().all(is_plain) && needs.in_place;
        let plain_feeds = needs.ordered.iter().all(|input| {
            let call = &self.calls[input.call];
            call.filter.is_none() && call.arg.as_ref().is_some_and(is_plain)
        });
        !needs.exact && !plain_keys || !(needs.ordered.is_empty() || needs.in_place && plain_feeds)
    }

    /// Definitions of the comparisons of rows that inputs need.
    fn comparisons(&self, generator: &mut Generator<'_>, shape: &AggregateShape) -> Code {
        let picked = shape.inputs.iter().enumerate();
        let mut code = Code::default();
        for (at, input) in picked.filter(|(_, input)| input.accumulator == Accumulator::Row) {
            let arg = self.calls[input.call].arg.as_ref();
            let comparison = arg.and_then(|arg| best_row::comparison(generator, at, input, arg));
            comparison.iter().for_each(|comparison| code.append(comparison));
        }
        code
    }

    fn control(&self, generator: &mut Generator<'_>) -> Result<ControlWords> {
        let control = Control::new(self.device)?;
        let pointer = generator.params.pointer("u64", &control.0, 0);
        let row_count = generator.params.word("u64", self.flow.source.rows());
        let head = Control::head(&pointer, &row_count);
        Ok(ControlWords { control, pointer, head })
    }

    fn wants_sample(&self, needs: &Needs) -> bool {
        needs.direct.is_none()
            && needs.exact
            && !needs.by_rows
            && !needs.picks
            && !self.expected.sampled
            && expected::samplable(self.device, self.flow)
    }

    fn sink(&self, needs: &Needs, shape: &AggregateShape, generator: &Generator<'_>) -> Sink {
        if self.groups.is_empty() && !needs.by_rows {
            Sink::Registers
        } else if needs.by_rows || needs.picks || !needs.exact {
            Sink::Atomics
        } else {
            let (inputs, text) = (&shape.inputs, generator.makes_text());
            let Needs { direct, in_order, .. } = *needs;
            Sink::of(self.device, self.flow, inputs, direct, in_order, self.expected, text)
        }
    }

    /// Runs the kernel of the sink.
    #[allow(clippy::too_many_arguments)]
    fn launched(
        &self,
        prepared: &mut PreparedKernel,
        code: &RowStatements,
        shape: &AggregateShape,
        sink: &Sink,
        target: &Target,
        needs: &Needs,
        words: &ControlWords,
    ) -> Result<Launched> {
        let Request { device, flow, expected, .. } = *self;
        // Without accumulators a kernel over rows in place has no effect: it is not launched.
        let in_vain = match sink {
            Sink::Registers => shape.inputs.is_empty() && needs.in_place,
            _ => flow.source.rows() == 0,
        };
        if in_vain {
            return Ok(Launched::Counts(None));
        }
        let kernel = AggregateKernel {
            inputs: &shape.inputs,
            accumulators: &target.pointers,
            exponents: &target.exponents,
            comparisons: &code.comparisons,
            rows: RowCode {
                control: &words.pointer,
                head: &words.head,
                prologue: &code.prologue,
                statements: &code.statements,
                key: &code.key,
                secret: &target.secret,
                items: code.items,
            },
        };
        if let (Sink::Partitioned(plan), Some(names)) = (sink, &target.besides.partitions) {
            let of_groups = GroupTarget { found: &target.found, fresh: &target.fresh };
            return match plan.run(device, prepared, names, &kernel, &words.control, &of_groups) {
                Err(error) if error.is_out_of_device_memory() => Ok(Launched::Again(Tried::NoRoom)),
                done => Ok(Launched::Counts(Some(done?))),
            };
        }
        self.launch(prepared, &kernel, sink, target, needs, code.late)?;
        if prepared.arena.is_some() {
            let asked = words.control.characters()?;
            if asked > expected.arena {
                return Ok(Launched::Again(Tried::ArenaFull(asked)));
            }
        }
        let lossy = (shape.inputs.iter())
            .any(|f| matches!(f.accumulator, Accumulator::Fixed { exact: false, .. }));
        let hashed = matches!(target.occupancy, Occupancy::Hashed(_));
        let reports = prepared.may_fail || hashed || lossy;
        let retry = reports.then(|| words.control.read(&prepared.sites)).transpose()?;
        Ok(Launched::Counts(retry.map(|(retry, _)| retry)))
    }

    /// Submits the kernel of a sink that is one launch.
    fn launch(
        &self,
        prepared: &PreparedKernel,
        kernel: &AggregateKernel<'_>,
        sink: &Sink,
        target: &Target,
        needs: &Needs,
        late: bool,
    ) -> Result<()> {
        let (device, rows) = (self.device, self.flow.source.rows());
        let items = kernel.rows.items;
        let launch = |stem: &str, text: Code, threads: u32, shared: u64| -> Result<()> {
            let tiles = rows.div_ceil(u64::from(items * threads));
            Generated::with_threads(device, stem, prepared, &text, threads)?.fill(
                device,
                tiles,
                shared as u32,
            )
        };
        let (key, found) = (kernel.rows.key, &target.found);
        let threads = cell_threads(kernel.inputs.len());
        match sink {
            Sink::Registers => self.in_registers(prepared, kernel, target, late),
            Sink::Cells { cells, copies } => {
                let text =
                    cells::direct_body(kernel, cells, &target.slot_count, *copies, key, found);
                launch("group_cells", text, threads, cells.bytes(target.slots, *copies))
            }
            Sink::HashCells { cells, slots, copies } => {
                let table = cells::KeyTable { keys: found, first: "0", mask: &target.mask };
                let probes = if self.expected.guessed { Probes::Few } else { Probes::Many };
                let text = cells::hash_body(kernel, cells, *slots, *copies, key, &table, probes);
                launch("group_hash_cells", text, threads, cells.bytes(*slots, *copies))
            }
            _ => {
                let Target { mask, secret, probes, besides, .. } = target;
                let slot = match &target.occupancy {
                    Occupancy::Hashed(_) => format!(
                        "slot = hash_slot({found}, {mask}, {key}, {secret}, {probes});\n{}\n",
                        kernel.flag("slot == HASH_NONE", Retry::TABLE_FULL)
                    ),
                    _ => format!("slot = {key};\n"),
                };
                let name = |named: &'_ Option<(String, Arc<Buffer>)>| -> Option<String> {
                    named.as_ref().map(|(name, _)| name.clone())
                };
                let (row_slots, first_rows) = (name(&besides.row_slots), name(&besides.first_rows));
                let extra = atomics::Extra {
                    runs: needs.in_order,
                    seen: matches!(target.occupancy, Occupancy::Seen(_)).then_some(found),
                    row_slots: row_slots.as_deref(),
                    first_rows: first_rows.as_deref(),
                };
                let stem = if needs.direct.is_some() { "group_direct" } else { "group_hash" };
                launch(stem, atomics::body(kernel, &extra, &slot), THREADS, 0)
            }
        }
    }

    /// Submits the kernel that has no keys.
    fn in_registers(
        &self,
        prepared: &PreparedKernel,
        kernel: &AggregateKernel<'_>,
        target: &Target,
        late: bool,
    ) -> Result<()> {
        let (device, rows) = (self.device, self.flow.source.rows());
        let (name, _) = target.besides.partials.as_ref().expect("made for this sink");
        let text = registers::body(kernel, name, registers::rows_per_thread(rows, device));
        let tiles = rows.div_ceil(u64::from(kernel.rows.items * THREADS));
        let blocks = if late { sink::LATE_BLOCKS } else { 1 };
        let bounds = LaunchBounds { threads: THREADS, blocks };
        let reduce = Generated::with_bounds(device, "reduce", prepared, &text, bounds)?;
        // Floats are added in an order that does not depend on how the kernel was compiled.
        match kernel.inputs.iter().any(|input| input.accumulator == Accumulator::Float) {
            true => {
                let blocks = tiles.clamp(1, registers::most_blocks(device)) as u32;
                reduce.launch(device, blocks, 0)
            }
            false => reduce.fill(device, tiles, 0),
        }
    }

    fn done(
        &self,
        shape: AggregateShape,
        sink: &Sink,
        target: Target,
        needs: Needs,
        retry: Option<Retry>,
    ) -> Tried {
        let Target { slots, occupancy, accumulators, besides, .. } = target;
        let hashed = (!needs.exact).then(|| shape.layout.clone());
        let mixed = matches!(sink, Sink::HashCells { .. } | Sink::Partitioned(_));
        let keys = match (besides.first_rows, &occupancy, &self.flow.source) {
            (Some((_, first)), _, FlowSource::Relation(relation)) => {
                let column = |group| plain_column(self.flow, group).unwrap_or_default();
                let columns = self.groups.iter().map(column).collect();
                GroupKeyStorage::Row(relation.clone(), columns, first)
            }
            (_, Occupancy::Hashed(table), _) if mixed => {
                GroupKeyStorage::Mixed(shape.layout, table.clone())
            }
            (_, Occupancy::Hashed(table), _) => GroupKeyStorage::Table(shape.layout, table.clone()),
            _ => GroupKeyStorage::Slot(shape.layout),
        };
        let rows = self.flow.source.rows();
        let slots =
            GroupSlots { slots, occupancy, keys, accumulators, outputs: shape.outputs, rows };
        let row_slots = besides.row_slots.map(|(_, buffer)| buffer);
        let partial = Partial { slots, ordered: needs.ordered, row_slots, hashed };
        Tried::Attempt(Attempt::Done(Box::new(partial)), retry)
    }
}
