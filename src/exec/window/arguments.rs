//! What aggregates over frames reduce, and the reductions that their results are put together from.

use std::sync::Arc;

use datafusion::logical_expr::Expr;

use super::places::holds_row;
use super::{OPERATOR, WindowRows, positions};
use crate::codegen::row_number::note_place;
use crate::codegen::window::arguments::{
    ExtremumEncoding, FeedColumns, FeedKind, Purpose, emit_feed,
};
use crate::codegen::window::results::{FrameReduction, FrameStrategy};
use crate::codegen::{AggregateKind, Codes, materialize};
use crate::column::{Column, Repr};
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

/// A reduction of a feed for each row.
pub(super) struct FeedReduction {
    feed: usize,
    fold: Fold,
    toward: Option<Toward>,
    frame: Frame,
    results: Buffer,
}

/// How a reduction over frames comes about.
fn way_of(frame: &Frame, fold: Fold) -> FrameStrategy {
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
        _ => FrameStrategy::OfFrame,
    }
}

/// The direction of the running reduction that is looked at; `None` where frames are by themselves.
fn toward(way: FrameStrategy) -> Option<Toward> {
    match way {
        FrameStrategy::AtEnd | FrameStrategy::Difference => Some(Toward::Last),
        FrameStrategy::AtStart => Some(Toward::First),
        FrameStrategy::OfFrame => None,
    }
}

impl FeedReduction {
    /// Whether its results are those of another.
    fn is(&self, feed: usize, fold: Fold, frame: &Frame) -> bool {
        let toward = toward(way_of(frame, fold));
        let same = self.toward == toward && (toward.is_some() || self.frame == *frame);
        self.feed == feed && self.fold == fold && same
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

/// The reduction of a feed over frames.
pub(super) fn part_of<'a>(
    parts: &'a [FeedReduction],
    feed: usize,
    fold: Fold,
    frame: &Frame,
) -> FrameReduction<'a> {
    let found = parts.iter().find(|part| part.is(feed, fold, frame));
    let results = &found.expect("parts() made all that results look at").results;
    FrameReduction { fold, way: way_of(frame, fold), results }
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
                    let ArgumentUse { arg, filter, purpose } = wanted;
                    let (arg, filter) = (arg.as_ref(), filter.as_ref());
                    let (shape, made) =
                        emit_feed(*purpose, arg, filter, sorted.rows(), generator, out)?;
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
            note_place(&order, &ranks, Repr::U64, generator, out);
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
                if parts.iter().any(|part| part.is(at, fold, &frame)) {
                    continue;
                }
                let toward = toward(way_of(&frame, fold));
                let (values, valid) = (&*feed.values, feed.valid.as_deref());
                let results = match toward {
                    None => {
                        if !frames.iter().any(|(known, _)| *known == frame) {
                            frames.push((frame, self.frame_buffers(sorted, &frame)?));
                        }
                        let (_, [low, high]) =
                            frames.iter().find(|(known, _)| *known == frame).expect("made above");
                        over_frames(&self.device, fold, values, valid, [low, high], sorted.rows())?
                    }
                    Some(toward) => {
                        running(&self.device, fold, toward, values, valid, self.bounds_of(sorted)?)?
                    }
                };
                parts.push(FeedReduction { feed: at, fold, toward, frame, results });
            }
        }
        Ok(parts)
    }
}

/// Whether a reduction of the feed over the frame has a value at every row.
pub(super) fn is_never_empty(feed: &Feed, frame: &Frame) -> bool {
    feed.valid.is_none() && holds_row(frame)
}
