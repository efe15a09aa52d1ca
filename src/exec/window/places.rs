//! Where a row's partition, peers and frame begin and end, as names in generated code.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, ExprSchemable};

use super::{OPERATOR, WindowRows, positions};
use crate::codegen::{Codes, Emitter, Generator, Value, materialize, repr_bounds, widen};
use crate::column::Repr;
use crate::error::{Error, Result};
use crate::exec::run::Runner;
use crate::plan::{Bound, Frame, RangeOffset, WindowCall, WindowKeys};
use warpframe_device::Buffer;
use warpframe_device::ops::window::{Distance, RangeBound, RangeKeys, range_bound};

/// Names of positions (`u32`) of the row that a kernel looks at; its own is `row`.
pub(super) struct RowPositions<'a> {
    sorted: &'a WindowRows,
    /// First of the partition, and the one after its last.
    pub(super) begin: String,
    pub(super) end: String,
    peers: Option<Peers>,
    frames: Vec<(Frame, [String; 2])>,
}

#[derive(Clone)]
enum Peers {
    /// All rows.
    All,
    Groups {
        /// Array of the numbers of peers.
        number_of: String,
        offsets: String,
        /// The row's.
        number: String,
    },
}

impl<'a> RowPositions<'a> {
    /// Of rows whose bounds are made, unless all are peers.
    pub(super) fn new(
        sorted: &'a WindowRows,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> RowPositions<'a> {
        let (begin, end) = match sorted.bounds.get() {
            Some(bounds) if !sorted.all_peers => {
                let partition_of = generator.params.borrowed("const u32", &bounds.partition_of);
                let partitions = generator.params.borrowed("const u32", &bounds.partitions);
                let partition = out.let_("u32", format_args!("{partition_of}[row]"));
                let begin = out.let_("u32", format_args!("{partitions}[{partition}]"));
                (begin, out.let_("u32", format_args!("{partitions}[{partition} + 1]")))
            }
            _ => {
                let rows = generator.params.word("u64", sorted.rows());
                ("0u".to_string(), out.let_("u32", format_args!("(u32){rows}")))
            }
        };
        RowPositions { sorted, begin, end, peers: None, frames: vec![] }
    }

    fn peers(&mut self, generator: &mut Generator<'_>, out: &mut Emitter) -> Peers {
        let sorted = self.sorted;
        let made = self.peers.get_or_insert_with(|| match sorted.bounds.get() {
            Some(bounds) if !sorted.all_peers => {
                let number_of = generator.params.borrowed("const u32", &bounds.peers_of);
                let offsets = generator.params.borrowed("const u32", &bounds.peers);
                let number = out.let_("u32", format_args!("{number_of}[row]"));
                Peers::Groups { number_of, offsets, number }
            }
            _ => Peers::All,
        });
        made.clone()
    }

    /// First of the row's peers, and the one after their last.
    pub(super) fn peer_group(
        &mut self,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> [String; 2] {
        self.frame(&Frame { start: Bound::Groups(0), end: Bound::Groups(0) }, generator, out)
    }

    /// How many groups of peers of the partition come before the row's.
    pub(super) fn groups_before(
        &mut self,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> String {
        match self.peers(generator, out) {
            Peers::All => "0u".to_string(),
            Peers::Groups { number_of, number, .. } => {
                out.let_("u32", format_args!("{number} - {number_of}[{}]", self.begin))
            }
        }
    }

    /// First position of the row's frame, and the one after its last. An empty frame may end before
    /// it begins.
    pub(super) fn frame(
        &mut self,
        frame: &Frame,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> [String; 2] {
        if let Some((_, names)) = self.frames.iter().find(|(known, _)| known == frame) {
            return names.clone();
        }
        let names = [(frame.start, true), (frame.end, false)].map(|(bound, start)| {
            let code = self.bound(bound, start, generator, out);
            out.let_("u32", code)
        });
        self.frames.push((*frame, names.clone()));
        names
    }

    fn bound(
        &mut self,
        bound: Bound,
        start: bool,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> String {
        let (begin, end) = (self.begin.clone(), self.end.clone());
        // The end is one beyond the last.
        let beyond = i64::from(!start);
        match bound {
            Bound::Unbounded => {
                if start {
                    begin
                } else {
                    end
                }
            }
            Bound::Rows(rows) => {
                let rows = generator.params.word("i64", rows + beyond);
                format!("(u32)minimum(maximum((i64)row + {rows}, (i64){begin}), (i64){end})")
            }
            Bound::Groups(groups) => {
                let Peers::Groups { number_of, offsets, number } = self.peers(generator, out)
                else {
                    // The rows' only group begins at the first and ends at the last row.
                    return if groups + beyond <= 0 { begin } else { end };
                };
                if groups == 0 {
                    return format!("{offsets}[{number} + {beyond}]");
                }
                // The number of the group that begins where the frame does, or after it; there is
                // one more than groups.
                let groups = generator.params.word("i64", groups + beyond);
                let first = out.let_("i64", format_args!("(i64){number_of}[{begin}]"));
                let last = out.let_("i64", format_args!("(i64){number_of}[{end} - 1] + 1"));
                let group = format!("minimum(maximum((i64){number} + {groups}, {first}), {last})");
                format!("{offsets}[{group}]")
            }
            Bound::Value { .. } => {
                let known = self
                    .sorted
                    .ranges
                    .iter()
                    .find(|(known, of_start, _)| *known == bound && *of_start == start);
                let (_, _, buffer) = known.expect("value_bounds made all that frames have");
                format!("{}[row]", generator.params.borrowed("const u32", buffer))
            }
        }
    }
}

/// Whether every row lies in its own frame.
pub(super) fn holds_row(frame: &Frame) -> bool {
    let start = match frame.start {
        Bound::Unbounded => true,
        Bound::Rows(by) | Bound::Groups(by) => by <= 0,
        Bound::Value { preceding, .. } => preceding,
    };
    let end = match frame.end {
        Bound::Unbounded => true,
        Bound::Rows(by) | Bound::Groups(by) => by >= 0,
        Bound::Value { preceding, .. } => !preceding,
    };
    start && end
}

impl Runner {
    /// The bounds at a distance of values that the calls' frames have.
    pub(super) fn value_bounds(
        &self,
        sorted: &WindowRows,
        keys: &WindowKeys,
        calls: &[&WindowCall],
    ) -> Result<Vec<(Bound, bool, Buffer)>> {
        let mut wanted: Vec<(Bound, bool)> = vec![];
        for call in calls {
            for (bound, start) in [(call.frame.start, true), (call.frame.end, false)] {
                if matches!(bound, Bound::Value { .. }) && !wanted.contains(&(bound, start)) {
                    wanted.push((bound, start));
                }
            }
        }
        let [key] = keys.order.as_slice() else { return Ok(vec![]) };
        if wanted.is_empty() {
            return Ok(vec![]);
        }
        let dtype = key.expr.get_type(&*sorted.schema)?;
        let repr = Repr::of(&dtype)
            .ok_or_else(|| Error::internal(format!("{OPERATOR}: by distances of {dtype}")))?;
        let (kind, held, logical) = match repr {
            Repr::F32 => (RangeKeys::F32, Repr::F32, DataType::Float32),
            Repr::F64 => (RangeKeys::F64, Repr::F64, DataType::Float64),
            Repr::U64 | Repr::I128 => (RangeKeys::I128, Repr::I128, DataType::Decimal128(38, 0)),
            _ => (RangeKeys::I64, Repr::I64, DataType::Int64),
        };
        // The keys, then the values at bounds that have no fixed distance.
        let targets: Vec<_> = wanted.iter().map(|(bound, _)| bound.target(keys)).collect();
        let exprs: Vec<&Expr> =
            std::iter::once(&key.expr).chain(targets.iter().flatten()).collect();
        let (_, columns) =
            materialize(&self.device, OPERATOR, &sorted.flow(), Codes::Keep, |generator, out| {
                let values = exprs.iter().map(|expr| {
                    let value = generator.expr(expr, out)?;
                    let code = out.let_(held.device_type(), widen(&value, held));
                    Ok(Value::new(logical.clone(), held, code, value.valid))
                });
                values.collect()
            })?;
        let mut columns = columns.into_iter();
        let bounds = self.bounds_of(sorted)?;
        let column =
            columns.next().ok_or_else(|| Error::internal(format!("{OPERATOR}: by no key")))?;
        let mut found = vec![];
        for ((bound, start), target) in wanted.into_iter().zip(&targets) {
            let Bound::Value { preceding, step } = bound else { continue };
            let target = target.as_ref().and_then(|_| columns.next());
            let step = match step {
                RangeOffset::Float(step) if repr == Repr::F32 => {
                    i128::from((step as f32).to_bits())
                }
                RangeOffset::Float(step) => i128::from(step.to_bits()),
                RangeOffset::Integer(step) => step,
                RangeOffset::Interval(_) => 0,
            };
            let distance = match &target {
                Some(target) => Distance::Targets(&target.data),
                None => Distance::Step { step, limits: repr_bounds(repr) },
            };
            let range = RangeBound {
                keys: kind,
                start,
                preceding,
                descending: !key.asc,
                nulls_first: key.nulls_first,
                distance,
            };
            let valid = column.validity.as_deref();
            found.push((
                bound,
                start,
                range_bound(&self.device, &range, &column.data, valid, bounds)?,
            ));
        }
        Ok(found)
    }

    /// Each row's frame, as positions `low` and `high` (`u32`).
    pub(super) fn frame_buffers(&self, sorted: &WindowRows, frame: &Frame) -> Result<[Buffer; 2]> {
        let low = self.device.alloc(OPERATOR, sorted.rows() as usize * 4)?;
        let high = self.device.alloc(OPERATOR, sorted.rows() as usize * 4)?;
        materialize(
            &self.device,
            OPERATOR,
            &positions(sorted.rows())?,
            Codes::Keep,
            |generator, out| {
                let mut places = RowPositions::new(sorted, generator, out);
                let names = places.frame(frame, generator, out);
                for (buffer, name) in [(&low, &names[0]), (&high, &names[1])] {
                    let target = generator.params.borrowed("u32", buffer);
                    out.line(format_args!("{target}[row] = {name};"));
                }
                Ok(vec![])
            },
        )?;
        Ok([low, high])
    }
}
