//! Medians, percentiles and numbers of distinct values of all frames at once: a descent through the
//! bits of numbers of rows.
//!
//! Which is the value in a place of a frame's sorted values? Every row has the rank of its value. A
//! level looks at one bit of the ranks, the highest first: where the frame has more zeros than the
//! place is far, it lies among those, else among the ones. Then rows are parted by the bit, zeros
//! first, and a frame remains rows that stand together:
//!
//! ```text
//!   ranks   2 0 3 1 4        frame 0..4, place 2 (from 0)
//!   bit 2   0 0 0 0 1        4 zeros in the frame: zeros, 0..4
//!   bit 1   1 0 1 0 | 0      2 zeros in it: ones, place 0   parted  0 1 4 2 3   the frame is 3..5
//!   bit 0   0 1 0 | 0 1      1 zero in it: zeros             the rank is 010
//! ```
//!
//! Which of a frame's rows are the first of their value in it? Those whose value stood last at a
//! place before the frame. The same descent counts them: numbers less than a bound. (The structure
//! is a wavelet matrix: Claude, Navarro and Ordóñez, "The wavelet matrix", 2015; here of one level
//! at a time.)
//!
//! Each level reads the rows' numbers twice and each frame's state once, whatever the frames'
//! lengths.

use super::frames::Frames;
use super::{OPERATOR, positions};
use crate::codegen::regroup::ColumnOf;
use crate::codegen::row_number::{as_type, note_place, word_of_row};
use crate::codegen::window::ranks::{FrameStates, WaveletBit, is_zero_bit, note_last_place};
use crate::codegen::{
    Codes, Direction, Emitter, Flow, Generator, Middle, NullsPlace, Span, emit_words, for_each,
    materialize,
};
use crate::column::{Column, Relation, Repr};
use crate::error::{Error, Result};
use crate::exec::aggregate::slot_bits;
use crate::exec::run::Runner;
use crate::plan::RegroupedCall;
use warpframe_device::Buffer;
use warpframe_device::ops::scan::exclusive_scan_u32_narrow;
use warpframe_device::ops::sort::{SortWord, argsort};

impl Runner {
    /// The value in the middle of each frame's, null of no rows. The flow's rows are in place, and
    /// no argument is null.
    pub(super) fn middles_of_frames(
        &self,
        flow: &Flow,
        frames: &Frames,
        call: &RegroupedCall,
        middle: Middle,
    ) -> Result<Column> {
        let rows = flow.source.rows();
        if rows == 0 {
            return self.of_pairs(flow, frames, call);
        }
        let (argument, order, ranks) = self.ranked(flow, call)?;
        // Of each frame twice, for the two places.
        let fields = self.device.alloc(OPERATOR, frames.count as usize * 8 * 4)?;
        let states = FrameStates { fields: &fields, frames: frames.count };
        for_each(&self.device, &positions(frames.count)?, &[], |generator, out| {
            let frame = Span::of_row(frames.ends(), generator, out);
            states.begin_middle(&frame, middle, generator, out);
            Ok(())
        })?;
        self.each_bit(ranks, rows, rows - 1, frames.count, |bit, generator, out| {
            states.descend(bit, generator, out);
        })?;
        let values = Relation::dense(rows, vec![argument])?;
        let ranked = (&order, ColumnOf { relation: &values, at: 0 });
        self.each_frame(frames, |frame, generator, out| {
            Ok(states.middle(frame, middle, ranked, &call.dtype, generator, out))
        })
    }

    /// How many distinct values each frame has. The flow's rows are in place, and no argument is
    /// null.
    pub(super) fn distinct_of_frames(
        &self,
        flow: &Flow,
        frames: &Frames,
        call: &RegroupedCall,
    ) -> Result<Column> {
        let rows = flow.source.rows();
        let fields = self.device.alloc(OPERATOR, frames.count as usize * 4 * 4)?;
        let states = FrameStates { fields: &fields, frames: frames.count };
        for_each(&self.device, &positions(frames.count)?, &[], |generator, out| {
            let frame = Span::of_row(frames.ends(), generator, out);
            states.begin_count(&frame, generator, out);
            Ok(())
        })?;
        if rows > 0 {
            let last = self.last_places(flow, call)?;
            self.each_bit(last, rows, rows, frames.count, |bit, generator, out| {
                states.count_less(bit, generator, out);
            })?;
        }
        let each = positions(frames.count)?;
        let (_, mut columns) =
            materialize(&self.device, OPERATOR, &each, Codes::Keep, |generator, out| {
                let less = states.counted(generator, out);
                let repr = Repr::of(&call.dtype)
                    .ok_or_else(|| Error::internal(format!("{OPERATOR}: counts of such a type")))?;
                let count = as_type(&less, &call.dtype, repr, out);
                Ok(vec![count.with_range(Some((0, i128::from(rows))))])
            })?;
        Ok(columns.remove(0))
    }

    /// The call's argument in place, its rows in the order of its values, and each row's rank in it
    /// (`u32`).
    fn ranked(&self, flow: &Flow, call: &RegroupedCall) -> Result<(Column, Buffer, Buffer)> {
        let mut bits = vec![];
        let (rows, mut columns) =
            materialize(&self.device, OPERATOR, flow, Codes::Keep, |generator, out| {
                let value = generator.expr(&call.args[0], out)?;
                let key = value.clone().known();
                let key = [(key, Direction::Ascending, NullsPlace::Last)];
                let key = emit_words(&key, &mut generator.params, out)?;
                bits = key.bits;
                Ok([vec![value], key.words].concat())
            })?;
        let argument = columns.remove(0);
        let words: Vec<_> = columns
            .iter()
            .zip(&bits)
            .map(|(column, bits)| SortWord { keys: &column.data, bits: *bits })
            .collect();
        let order = argsort(&self.device, &words, rows)?;
        let ranks = self.device.alloc(OPERATOR, rows as usize * 4)?;
        for_each(&self.device, &positions(rows)?, &[], |generator, out| {
            note_place(&order, &ranks, Repr::U32, generator, out);
            Ok(())
        })?;
        Ok((argument, order, ranks))
    }

    /// For each row the place behind the last one before it that has its value, 0 where there is
    /// none (`u32`).
    fn last_places(&self, flow: &Flow, call: &RegroupedCall) -> Result<Buffer> {
        let rows = flow.source.rows();
        let groups = self.slots(flow.clone(), &call.args, &[], true)?;
        let Some(group_of) = &groups.row_slots else {
            return Err(Error::internal(format!("{OPERATOR}: groups whose rows do not know them")));
        };
        let (_, words) = materialize(
            &self.device,
            OPERATOR,
            &positions(rows)?,
            Codes::Keep,
            |generator, out| Ok(vec![word_of_row(group_of, generator, out)]),
        )?;
        let word = SortWord { keys: &words[0].data, bits: slot_bits(groups.slots.slots) };
        let order = argsort(&self.device, &[word], rows)?;
        let last = self.device.alloc(OPERATOR, rows as usize * 4)?;
        for_each(&self.device, &positions(rows)?, &[], |generator, out| {
            note_last_place(&order, group_of, &last, generator, out);
            Ok(())
        })?;
        Ok(last)
    }

    /// Takes `frames` frames down the bits of numbers (`u32 × rows`) of which `most` is the
    /// greatest.
    fn each_bit(
        &self,
        mut numbers: Buffer,
        rows: u64,
        most: u64,
        frames: u64,
        step: impl Fn(WaveletBit<'_>, &mut Generator<'_>, &mut Emitter),
    ) -> Result<()> {
        for bit in (0..u64::BITS - most.leading_zeros()).rev() {
            let (_, zeros) = materialize(
                &self.device,
                OPERATOR,
                &positions(rows)?,
                Codes::Keep,
                |generator, out| Ok(vec![is_zero_bit(&numbers, bit, generator, out)]),
            )?;
            let zeros = exclusive_scan_u32_narrow(&self.device, &zeros[0].data, rows)?;
            let level = WaveletBit { bit, rows, zeros: &zeros };
            for_each(&self.device, &positions(frames)?, &[], |generator, out| {
                step(level, generator, out);
                Ok(())
            })?;
            if bit == 0 {
                break;
            }
            let parted = self.device.alloc(OPERATOR, rows as usize * 4)?;
            for_each(&self.device, &positions(rows)?, &[], |generator, out| {
                level.part(&numbers, &parted, generator, out);
                Ok(())
            })?;
            numbers = parted;
        }
        Ok(())
    }
}
