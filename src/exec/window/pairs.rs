//! An aggregate of each frame by itself: pairs of a frame and a place in it are written, as by a
//! join that expands, and aggregated by frame, as groups are.
//!
//! ```text
//!   frames   low 0 0 1   high 2 2 3      pairs   frame  0 0 1 1 2 2
//!                                                place  0 1 0 1 1 2
//! ```
//!
//! There may be far more pairs than rows. They are made and aggregated slice by slice, some frames
//! at a time.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::DFSchema;

use super::frames::Frames;
use super::{OPERATOR, positions};
use crate::codegen::window::frames::{frame_length, frame_row, frame_slice};
use crate::codegen::{Codes, Flow, FlowSource, materialize};
use crate::column::{Column, Index, Relation, Stats};
use crate::error::{Error, Result};
use crate::exec::run::{Runner, u32_column};
use crate::plan::RegroupedCall;
use warpframe_device::Buffer;
use warpframe_device::ops::join::expand;
use warpframe_device::ops::scan::exclusive_scan_u32;

/// Pairs beyond which a query is left to the CPU: minutes of a device.
const MOST_PAIRS: u64 = 1 << 34;
/// Pairs of a slice, at most, and on the simulator, where slices are to be seen in tests.
const SLICE_PAIRS: u64 = 1 << 26;
const SLICE_PAIRS_ON_SIMULATOR: u64 = 1 << 12;
/// Bytes that a pair takes while it is aggregated, roughly: keys and values, those sorted or in a
/// table, and row numbers.
const PAIR_BYTES: u64 = 96;

/// Frames from `first` up to `end`, of so many pairs.
struct FrameSlice {
    first: u64,
    end: u64,
    pairs: u64,
}

impl Runner {
    /// The aggregate of each frame, null of no rows.
    pub(super) fn of_pairs(
        &self,
        flow: &Flow,
        frames: &Frames,
        call: &RegroupedCall,
    ) -> Result<Column> {
        let slices = self.slices(frames)?;
        let codes = if slices.len() > 1 { Codes::Decode } else { Codes::Keep };
        let pieces = (slices.iter())
            .map(|slice| {
                self.of_each_slot(
                    self.frame_rows(flow, frames, slice)?,
                    slice.end - slice.first,
                    call,
                    codes,
                )
            })
            .collect::<Result<Vec<_>>>()?;
        match <[Column; 1]>::try_from(pieces) {
            Ok([column]) => Ok(column),
            Err(pieces) => Column::concatenated(
                &self.device,
                &call.dtype,
                &pieces.iter().collect::<Vec<_>>(),
                frames.count as usize,
            ),
        }
    }

    /// How many pairs there are up to each frame (`u64 × (count + 1)`), and altogether.
    pub(super) fn counted(&self, frames: &Frames) -> Result<(Buffer, u64)> {
        let lengths = self.lengths(frames, 0, frames.count)?;
        let offsets = exclusive_scan_u32(&self.device, &lengths, frames.count)?;
        let total = offsets.read_word_or(frames.count as usize * 8, frames.count)?;
        if total > MOST_PAIRS {
            let why = format!(
                "they have {total} rows together, and an aggregate that takes each by itself stops at 2^34"
            );
            return Err(Error::unsupported(format!("{} frames of a window", frames.count), why));
        }
        Ok((offsets, total))
    }

    /// Puts the frames into slices.
    fn slices(&self, frames: &Frames) -> Result<Vec<FrameSlice>> {
        let (offsets, total) = self.counted(frames)?;
        let most = self.slice_pairs();
        if total <= most || self.device.rehearses() {
            return Ok(vec![FrameSlice { first: 0, end: frames.count, pairs: total }]);
        }
        // Slice `i` begins with the first frame before which there are `i × most` pairs or more.
        let count = total.div_ceil(most);
        let (_, begins) = materialize(
            &self.device,
            OPERATOR,
            &positions(count)?,
            Codes::Keep,
            |generator, out| Ok(frame_slice(&offsets, most, frames.count, generator, out).into()),
        )?;
        let mut words = begins.iter().map(|column| column.data.read_words(0, count as usize));
        let (Some(first), Some(before)) = (words.next().transpose()?, words.next().transpose()?)
        else {
            return Err(Error::internal(format!("{OPERATOR}: no slices were found")));
        };
        let mut begins: Vec<_> = first.into_iter().zip(before).collect();
        begins.push((frames.count, total));
        let slices = begins.windows(2).map(|pair| FrameSlice {
            first: pair[0].0,
            end: pair[1].0,
            pairs: pair[1].1 - pair[0].1,
        });
        // A frame of more pairs than a slice leaves the slices behind it without any.
        Ok(slices.filter(|slice| slice.end > slice.first).collect())
    }

    fn slice_pairs(&self) -> u64 {
        let most = self.device.of_kind(SLICE_PAIRS, SLICE_PAIRS_ON_SIMULATOR);
        let memory = self.device.memory();
        let in_the_way = memory.used.saturating_sub(memory.evictable);
        most.min(memory.limit.saturating_sub(in_the_way) / PAIR_BYTES).max(1)
    }

    /// Lengths of the frames (`u32`) from one up to another.
    fn lengths(&self, frames: &Frames, first: u64, end: u64) -> Result<Arc<Buffer>> {
        let (_, lengths) = materialize(
            &self.device,
            OPERATOR,
            &positions(end - first)?,
            Codes::Keep,
            |generator, out| Ok(vec![frame_length(frames.ends(), first, generator, out)]),
        )?;
        Ok(lengths[0].data.clone())
    }

    /// The flow's rows in the frames of a slice, and as column `slot` which frame of the slice it
    /// is.
    fn frame_rows(&self, flow: &Flow, frames: &Frames, slice: &FrameSlice) -> Result<Flow> {
        let FlowSource::Relation(relation) = &flow.source else {
            return Err(Error::internal(format!("{OPERATOR}: rows that are not in place")));
        };
        if slice.pairs >= u64::from(u32::MAX) {
            return Err(Error::unsupported(
                format!("frames of {} rows", slice.pairs),
                "row numbers have 32 bits",
            ));
        }
        let count = slice.end - slice.first;
        let offsets = exclusive_scan_u32(
            &self.device,
            &*self.lengths(frames, slice.first, slice.end)?,
            count,
        )?;
        let frame_of = Arc::new(expand(&self.device, &offsets, count, slice.pairs)?);
        let rows = positions(slice.pairs)?;
        let (_, places) =
            materialize(&self.device, OPERATOR, &rows, Codes::Keep, |generator, out| {
                let [low, _] = frames.ends();
                Ok(vec![frame_row(&frame_of, &offsets, low, slice.first, generator, out)])
            })?;
        let mut slot = u32_column(frame_of, 0, slice.pairs);
        slot.stats =
            Stats { range: Some((0, i128::from(count) - 1)), ascending: true, ..Stats::default() };
        let index = Index::of_rows(places[0].data.clone());
        let mut columns: Vec<_> =
            relation.columns.iter().map(|(_, column)| (0, column.clone())).collect();
        columns.push((1, slot));
        let fields = flow.schema().fields().iter().cloned();
        let fields = fields.chain([Arc::new(Field::new("slot", DataType::UInt32, true))]).collect();
        let schema = Arc::new(DFSchema::from_unqualified_fields(fields, Default::default())?);
        let relation = Relation { rows: slice.pairs, indices: vec![Some(index), None], columns };
        Ok(Flow::new(FlowSource::Relation(relation), schema))
    }
}
