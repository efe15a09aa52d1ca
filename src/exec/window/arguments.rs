//! What aggregates over frames reduce, and the reductions that their results are put together from.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

use super::places::holds_row;
use super::{OPERATOR, WindowRows, positions};
use crate::codegen::{
    AggregateKind, Codes, DecimalSum, Direction, Emitter, Generator, NullsPlace, Value, emit_words,
    materialize, widen,
};
use crate::column::{Column, Dictionary, Repr};
use crate::error::Result;
use crate::exec::run::Runner;
use crate::plan::{BitwiseOperation, Bound, Frame, WindowCall, WindowKind};
use warpframe_device::Buffer;
use warpframe_device::ops::sort::{SortWord, argsort};
use warpframe_device::ops::window::{Fold, Reduction, Toward, over_frames, running};

/// An argument in the order of the sorted rows, in a type that a reduction takes; null where the
/// call's filter does not hold.
pub(super) struct Feed {
    wanted: ArgumentUse,
    values: Arc<Buffer>,
    pub(super) valid: Option<Arc<Buffer>>,
    pub(super) kind: FeedKind,
}

/// Which argument, and what for.
#[derive(Debug, Clone, PartialEq)]
struct ArgumentUse {
    arg: Option<Expr>,
    filter: Option<Expr>,
    purpose: Purpose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To be counted.
    Presence,
    Sum,
    /// The low words of a sum.
    LowWords,
    Extremum,
    Variance,
    Bits,
}

/// What a feed's values are.
pub(super) enum FeedKind {
    /// Nothing that is looked at.
    Presence,
    /// Summed thus.
    Sum(Reduction),
    /// The low words of decimals whose high words the feed before has (`kernels/decimal.cuh`).
    LowWords,
    /// Floats.
    Real,
    /// Words of bits.
    Bits,
    /// Reduced thus to the least and the greatest, whose value is then found thus.
    Extremum(Reduction, Reduction, ExtremumEncoding),
}

/// From the extremum of a feed back to a value of the argument.
pub(super) enum ExtremumEncoding {
    /// The number itself: its representation, and what is known of it.
    Number { repr: Repr, range: Option<(i128, i128)>, magnitude: Option<f64> },
    /// It is a code.
    Code(Arc<Dictionary>),
    /// It is a place in the order of values: the positions in that order.
    Place(Buffer),
}

/// A reduction of a feed for each row.
pub(super) struct FeedReduction {
    feed: usize,
    fold: Fold,
    way: FrameStrategy,
    pub(super) results: Buffer,
}

/// How reductions over frames come about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum FrameStrategy {
    /// The running reduction at the frame's end.
    AtEnd,
    /// The difference of running sums at the frame's ends.
    Difference,
    /// The running reduction from the partition's end, at the frame's start.
    AtStart,
    /// Of each frame by itself.
    OfFrame(Frame),
}

impl FrameStrategy {
    fn of(frame: &Frame, fold: Fold) -> FrameStrategy {
        // Wrapping sums are exact, and what is added bit by bit is taken away so; of floats a
        // difference would lose what a large value hid, and infinities.
        let exact = matches!(
            fold,
            Fold::Reduce(
                Reduction::SumI64
                    | Reduction::SumI64Wide
                    | Reduction::SumI128
                    | Reduction::XorU64
                    | Reduction::Count
            )
        );
        match (frame.start, frame.end) {
            (Bound::Unbounded, _) => FrameStrategy::AtEnd,
            _ if exact => FrameStrategy::Difference,
            (_, Bound::Unbounded) => FrameStrategy::AtStart,
            _ => FrameStrategy::OfFrame(*frame),
        }
    }

    /// The direction of the running reduction that is looked at.
    fn toward(self) -> Option<Toward> {
        match self {
            FrameStrategy::AtEnd | FrameStrategy::Difference => Some(Toward::Last),
            FrameStrategy::AtStart => Some(Toward::First),
            FrameStrategy::OfFrame(_) => None,
        }
    }

    fn same_results(self, other: FrameStrategy) -> bool {
        match (self.toward(), other.toward()) {
            (None, None) => self == other,
            (one, other) => one == other,
        }
    }
}

fn wanted(call: &WindowCall) -> Option<ArgumentUse> {
    Some(match &call.function {
        WindowKind::Aggregate(call) => {
            let purpose = match call.kind {
                AggregateKind::Count => Purpose::Presence,
                AggregateKind::Sum | AggregateKind::Average => Purpose::Sum,
                AggregateKind::Min | AggregateKind::Max => Purpose::Extremum,
            };
            if purpose == Purpose::Presence && call.arg.is_none() && call.filter.is_none() {
                return None;
            }
            ArgumentUse { arg: call.arg.clone(), filter: call.filter.clone(), purpose }
        }
        WindowKind::Variance { arg, filter, .. } => ArgumentUse {
            arg: Some(arg.clone()),
            filter: filter.clone(),
            purpose: Purpose::Variance,
        },
        WindowKind::Bits { arg, filter, .. } => {
            ArgumentUse { arg: Some(arg.clone()), filter: filter.clone(), purpose: Purpose::Bits }
        }
        WindowKind::Shift { arg, skip_nulls: true, .. }
        | WindowKind::Place { arg, skip_nulls: true, .. } => {
            ArgumentUse { arg: Some(arg.clone()), filter: None, purpose: Purpose::Presence }
        }
        _ => return None,
    })
}

/// The call's feed: for what is only counted, any of the same argument.
pub(super) fn feed_of(feeds: &[Feed], call: &WindowCall) -> Option<usize> {
    let wanted = wanted(call)?;
    feeds.iter().position(|feed| {
        let same = feed.wanted.arg == wanted.arg && feed.wanted.filter == wanted.filter;
        same && (wanted.purpose == Purpose::Presence || feed.wanted.purpose == wanted.purpose)
    })
}

/// The feed of the low words, of a call that sums decimals by words.
pub(super) fn low_feed_of(feeds: &[Feed], call: &WindowCall) -> Option<usize> {
    let wanted = ArgumentUse {
        purpose: Purpose::LowWords,
        ..wanted(call).filter(|of| of.purpose == Purpose::Sum)?
    };
    feeds.iter().position(|feed| feed.wanted == wanted)
}

/// The reduction that the call asks for, its count aside.
pub(super) fn fold_of(call: &WindowCall, feed: &Feed) -> Option<Fold> {
    match (&call.function, &feed.kind) {
        (WindowKind::Aggregate(call), FeedKind::Extremum(least, greatest, _)) => match call.kind {
            AggregateKind::Min => Some(Fold::Reduce(*least)),
            AggregateKind::Max => Some(Fold::Reduce(*greatest)),
            _ => None,
        },
        (WindowKind::Aggregate(call), FeedKind::Sum(sum)) if call.kind != AggregateKind::Count => {
            Some(Fold::Reduce(*sum))
        }
        (WindowKind::Aggregate(_), FeedKind::LowWords) => Some(Fold::Reduce(Reduction::SumI128)),
        (WindowKind::Variance { .. }, _) => Some(Fold::Deviations),
        (WindowKind::Bits { bits, .. }, _) => Some(Fold::Reduce(match bits {
            BitwiseOperation::And => Reduction::AndU64,
            BitwiseOperation::Or => Reduction::OrU64,
            BitwiseOperation::Xor => Reduction::XorU64,
        })),
        _ => None,
    }
}

pub(super) const COUNT: Fold = Fold::Reduce(Reduction::Count);

/// How the reduction of a feed over frames comes about, and its results.
pub(super) fn part_of<'a>(
    parts: &'a [FeedReduction],
    feed: usize,
    fold: Fold,
    frame: &Frame,
) -> (FrameStrategy, &'a Buffer) {
    let way = FrameStrategy::of(frame, fold);
    let found = parts
        .iter()
        .find(|part| part.feed == feed && part.fold == fold && part.way.same_results(way));
    (way, &found.expect("parts() made all that results look at").results)
}

/// The frame in which nulls are counted that a function skips.
pub(super) const UP_TO_ROW: Frame = Frame { start: Bound::Unbounded, end: Bound::Rows(0) };

impl Runner {
    /// The arguments of all calls that reduce, made by one kernel.
    pub(super) fn feeds(&self, sorted: &WindowRows, calls: &[&WindowCall]) -> Result<Vec<Feed>> {
        let mut all: Vec<ArgumentUse> = vec![];
        let by_presence = |wanted: &ArgumentUse| wanted.purpose == Purpose::Presence;
        let (counted, others): (Vec<_>, Vec<_>) =
            calls.iter().filter_map(|call| wanted(call)).partition(|wanted| by_presence(wanted));
        for one in others.into_iter().chain(counted) {
            let same = |known: &ArgumentUse| {
                known == &one
                    || by_presence(&one) && known.arg == one.arg && known.filter == one.filter
            };
            if !all.iter().any(same) {
                all.push(one);
            }
        }
        if all.is_empty() {
            return Ok(vec![]);
        }
        let mut shapes = vec![];
        let (_, columns) =
            materialize(&self.device, OPERATOR, &sorted.flow(), Codes::Keep, |generator, out| {
                let mut values = vec![];
                for wanted in &all {
                    let (value, valid) = argument(wanted, generator, out)?;
                    let (shape, made) =
                        shaped(wanted.purpose, value, valid, sorted.rows(), generator, out)?;
                    shapes.push(shape);
                    values.extend(made);
                }
                Ok(values)
            })?;
        let mut columns = columns.into_iter();
        let mut feeds = vec![];
        for (wanted, shape) in all.into_iter().zip(shapes) {
            let first = columns.next().expect("a column for each feed");
            let mut low_words = None;
            let (values, kind) = match shape {
                FeedColumns::Values(kind) => (first.data, kind),
                FeedColumns::Split => {
                    let low = columns.next().expect("a column of low words");
                    let wanted = ArgumentUse { purpose: Purpose::LowWords, ..wanted.clone() };
                    low_words = Some(Feed {
                        wanted,
                        values: low.data,
                        valid: low.validity,
                        kind: FeedKind::LowWords,
                    });
                    (first.data, FeedKind::Sum(Reduction::SumI64Wide))
                }
                FeedColumns::Words(bits) => {
                    let words: Vec<Column> = columns.by_ref().take(bits.len()).collect();
                    let (ranks, order) = self.ranks(&words, &bits, sorted.rows())?;
                    (
                        ranks,
                        FeedKind::Extremum(
                            Reduction::MinU64,
                            Reduction::MaxU64,
                            ExtremumEncoding::Place(order),
                        ),
                    )
                }
            };
            feeds.push(Feed { wanted, values, valid: first.validity, kind });
            feeds.extend(low_words);
        }
        Ok(feeds)
    }

    /// Each position's place in the order of its words (`u64`), and the positions in that order.
    fn ranks(&self, words: &[Column], bits: &[u32], rows: u64) -> Result<(Arc<Buffer>, Buffer)> {
        let words: Vec<_> = words
            .iter()
            .zip(bits)
            .map(|(column, bits)| SortWord { keys: &column.data, bits: *bits })
            .collect();
        let order = argsort(&self.device, &words, rows)?;
        let ranks = Arc::new(self.device.alloc(OPERATOR, rows as usize * 8)?);
        materialize(&self.device, OPERATOR, &positions(rows)?, Codes::Keep, |generator, out| {
            let order = generator.params.borrowed("const u32", &order);
            let ranks = generator.params.pointer("u64", &ranks, 0);
            out.line(format_args!("{ranks}[{order}[row]] = row;"));
            Ok(vec![])
        })?;
        Ok((ranks, order))
    }

    /// Everything that results look up.
    pub(super) fn parts(
        &self,
        sorted: &WindowRows,
        calls: &[&WindowCall],
        feeds: &[Feed],
    ) -> Result<Vec<FeedReduction>> {
        let mut parts: Vec<FeedReduction> = vec![];
        let mut frames: Vec<(Frame, [Buffer; 2])> = vec![];
        for call in calls {
            let Some(at) = feed_of(feeds, call) else { continue };
            let feed = &feeds[at];
            let reduces = matches!(
                call.function,
                WindowKind::Aggregate(_) | WindowKind::Variance { .. } | WindowKind::Bits { .. }
            );
            let counted = if reduces { call.frame } else { UP_TO_ROW };
            let count = feed.valid.as_ref().map(|_| (COUNT, counted));
            let reduction =
                |at: usize| fold_of(call, &feeds[at]).map(|fold| (at, fold, call.frame));
            let low = low_feed_of(feeds, call).and_then(reduction);
            let count = count.map(|(fold, frame)| (at, fold, frame));
            for (at, fold, frame) in count.into_iter().chain(reduction(at)).chain(low) {
                let feed = &feeds[at];
                let way = FrameStrategy::of(&frame, fold);
                if parts
                    .iter()
                    .any(|part| part.feed == at && part.fold == fold && part.way.same_results(way))
                {
                    continue;
                }
                let (values, valid) = (&*feed.values, feed.valid.as_deref());
                let results = match (way, way.toward()) {
                    (FrameStrategy::OfFrame(frame), _) => {
                        if !frames.iter().any(|(known, _)| *known == frame) {
                            frames.push((frame, self.frame_buffers(sorted, &frame)?));
                        }
                        let (_, [low, high]) =
                            frames.iter().find(|(known, _)| *known == frame).expect("made above");
                        over_frames(&self.device, fold, values, valid, [low, high], sorted.rows())?
                    }
                    (_, toward) => {
                        let toward = toward.expect("of all but single frames");
                        running(&self.device, fold, toward, values, valid, self.bounds_of(sorted)?)?
                    }
                };
                parts.push(FeedReduction { feed: at, fold, way, results });
            }
        }
        Ok(parts)
    }
}

/// A feed's columns before the kernel ran.
enum FeedColumns {
    Values(FeedKind),
    /// High and low words of decimals.
    Split,
    /// A column of which only the validity counts, then words of sort bits, of so many bits.
    Words(Vec<u32>),
}

/// The argument's value, and the condition that it counts.
fn argument(
    wanted: &ArgumentUse,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Result<(Option<Value>, Option<String>)> {
    let value = wanted.arg.as_ref().map(|arg| generator.expr(arg, out)).transpose()?;
    let filter = wanted.filter.as_ref().map(|filter| generator.expr(filter, out)).transpose()?;
    let valid = match (
        value.as_ref().and_then(|value| value.valid.clone()),
        filter.map(|filter| filter.truth()),
    ) {
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => Some(one),
        (Some(one), Some(other)) => Some(out.let_("bool", format_args!("{one} && {other}"))),
    };
    Ok((value, valid))
}

/// The value in a type that its reduction takes.
fn shaped(
    purpose: Purpose,
    value: Option<Value>,
    valid: Option<String>,
    rows: u64,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Result<(FeedColumns, Vec<Value>)> {
    let presence = Value::new(DataType::Boolean, Repr::Bool, "true", valid.clone());
    let Some(value) = value.filter(|_| purpose != Purpose::Presence) else {
        return Ok((FeedColumns::Values(FeedKind::Presence), vec![presence]));
    };
    let real = || {
        Value::new(DataType::Float64, Repr::F64, format!("((f64){})", value.code), valid.clone())
    };
    let word = |code: String| Value::new(DataType::Int64, Repr::I64, code, valid.clone());
    let wide = || {
        Value::new(
            DataType::Decimal128(38, 0),
            Repr::I128,
            widen(&value, Repr::I128),
            valid.clone(),
        )
    };
    let (low, high) = value.bounds();
    let narrow = i64::try_from(low).is_ok() && i64::try_from(high).is_ok();
    let is_float = matches!(value.repr, Repr::F32 | Repr::F64);
    let (kind, made) = match purpose {
        Purpose::Variance => (FeedKind::Real, real()),
        Purpose::Bits => {
            let signed = if value.dtype.is_signed_integer() { "i64" } else { "u64" };
            let bits = out.let_("u64", format_args!("(u64)({signed}){}", value.code));
            (FeedKind::Bits, Value::new(DataType::UInt64, Repr::U64, bits, valid.clone()))
        }
        Purpose::Sum if is_float => (FeedKind::Sum(Reduction::SumF64), real()),
        Purpose::Sum | Purpose::LowWords => {
            if matches!(value.dtype, DataType::Decimal128(_, _))
                && DecimalSum::may_overflow((low, high), rows)
            {
                let [high, low] =
                    DecimalSum::words_of(&Value { valid: valid.clone(), ..value.clone() }, out);
                let code = format!("((i128){})", low.code);
                let low = Value::new(DataType::Decimal128(38, 0), Repr::I128, code, valid);
                return Ok((FeedColumns::Split, vec![high, low]));
            }
            let most = low.unsigned_abs().max(high.unsigned_abs());
            let fits = most.checked_mul(u128::from(rows)).is_some_and(|sum| sum < 1 << 63);
            match value.dtype {
                _ if !fits && !narrow => (FeedKind::Sum(Reduction::SumI128), wide()),
                _ if !fits => {
                    (FeedKind::Sum(Reduction::SumI64Wide), word(format!("((i64){})", value.code)))
                }
                _ => (FeedKind::Sum(Reduction::SumI64), word(format!("((i64){})", value.code))),
            }
        }
        Purpose::Presence | Purpose::Extremum => {
            let origin = |repr| ExtremumEncoding::Number {
                repr,
                range: value.range,
                magnitude: value.magnitude,
            };
            match (&value.dictionary, value.repr) {
                (Some(input), _) => {
                    let origin = ExtremumEncoding::Code(input.dictionary.clone());
                    let code = Value::new(
                        DataType::UInt64,
                        Repr::U64,
                        format!("((u64){})", input.code),
                        valid,
                    );
                    (FeedKind::Extremum(Reduction::MinU64, Reduction::MaxU64, origin), code)
                }
                (None, Repr::View) => {
                    let counted = Value { valid, ..value.clone() };
                    let key = [(counted, Direction::Ascending, NullsPlace::Last)];
                    let words = emit_words(&key, &mut generator.params, out)?;
                    let bits = words.iter().map(|word| word.bits).collect();
                    let made = words.into_iter().map(|word| Value::word(word.name));
                    return Ok((
                        FeedColumns::Words(bits),
                        std::iter::once(presence).chain(made).collect(),
                    ));
                }
                (None, Repr::F32 | Repr::F64) => (
                    FeedKind::Extremum(Reduction::MinF64, Reduction::MaxF64, origin(value.repr)),
                    real(),
                ),
                (None, repr) if narrow => {
                    let repr = if repr == Repr::I128 { Repr::I64 } else { repr };
                    let made = word(format!("((i64){})", value.code));
                    (FeedKind::Extremum(Reduction::MinI64, Reduction::MaxI64, origin(repr)), made)
                }
                (None, Repr::U64) => {
                    let made = Value::new(DataType::UInt64, Repr::U64, value.code.clone(), valid);
                    (
                        FeedKind::Extremum(Reduction::MinU64, Reduction::MaxU64, origin(Repr::U64)),
                        made,
                    )
                }
                (None, _) => (
                    FeedKind::Extremum(Reduction::MinI128, Reduction::MaxI128, origin(Repr::I128)),
                    wide(),
                ),
            }
        }
    };
    Ok((FeedColumns::Values(kind), vec![made]))
}

/// Whether a reduction of the feed over the frame has a value at every row.
pub(super) fn is_never_empty(feed: &Feed, frame: &Frame) -> bool {
    feed.valid.is_none() && holds_row(frame)
}
