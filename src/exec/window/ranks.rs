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

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;

use super::frames::Frames;
use super::{OPERATOR, positions};
use crate::codegen::{
    Codes, Direction, Emitter, Flow, Generator, NullsPlace, Value, emit_words, for_each,
    materialize,
};
use crate::column::{Column, Relation, Repr};
use crate::error::{Error, Result};
use crate::exec::aggregate::slot_bits;
use crate::exec::regroup::Middle;
use crate::exec::run::Runner;
use crate::plan::RegroupedCall;
use warpframe_device::Buffer;
use warpframe_device::ops::scan::exclusive_scan_u32_narrow;
use warpframe_device::ops::sort::{SortWord, argsort};

/// Names in a kernel that takes all frames down one level.
struct WaveletLevel {
    /// How many zeros there are before each place (`const u32*`), and of all rows.
    zeros: String,
    all: String,
    /// Which bit.
    bit: String,
}

impl WaveletLevel {
    /// Moves the frame `low..high` (names of variables) to its ones or to its zeros.
    fn descend(&self, [low, high]: [&str; 2], ones: &str) -> String {
        let WaveletLevel { zeros, all, .. } = self;
        format!(
            "{low} = {ones} ? {all} + {low} - {zeros}[{low}] : {zeros}[{low}];\n\
             {high} = {ones} ? {all} + {high} - {zeros}[{high}] : {zeros}[{high}];"
        )
    }
}

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
        // Of each frame twice, for the two places: what is left of it, the place in that, and the
        // rank as far as it is known.
        let states = self.device.alloc(OPERATOR, frames.count as usize * 8 * 4)?;
        for_each(&self.device, &positions(frames.count)?, &[], |generator, out| {
            let [low, high] = frames.places(generator, out);
            let count = out.let_("u32", format_args!("maximum({high} - {low}, 1u)"));
            let between = middle.places(&count, generator, out);
            for (place, at) in [(&between.low, 0), (&between.high, 1)] {
                let fields = [low.as_str(), &high, place, "0"];
                write_state(&states, frames.count, 4 * at, &fields, generator, out);
            }
            Ok(())
        })?;
        self.each_bit(ranks, rows, rows - 1, frames.count, |level, generator, out| {
            for at in [0, 4] {
                let [low, high, place, rank] =
                    read_state(&states, frames.count, at, generator, out);
                let WaveletLevel { zeros, bit, .. } = level;
                let few = out.let_("u32", format_args!("{zeros}[{high}] - {zeros}[{low}]"));
                let ones = out.let_("bool", format_args!("{place} >= {few}"));
                out.line(level.descend([&low, &high], &ones));
                out.line(format_args!(
                    "if ({ones}) {{\n{place} -= {few};\n{rank} |= 1u << {bit};\n}}"
                ));
                write_state(
                    &states,
                    frames.count,
                    at,
                    &[&low, &high, &place, &rank],
                    generator,
                    out,
                );
            }
        })?;
        let values = Relation::dense(rows, vec![argument])?;
        self.each_frame(frames, |generator, out, [low, high]| {
            let present = out.let_("bool", format_args!("{low} < {high}"));
            let count = out.let_("u32", format_args!("maximum({high} - {low}, 1u)"));
            let between = middle.places(&count, generator, out);
            let order = generator.params.borrowed("const u32", &order);
            let [below, above] = [0, 4].map(|at| {
                let [_, _, _, rank] = read_state(&states, frames.count, at, generator, out);
                let row = out.let_("u32", format_args!("{present} ? {order}[{rank}] : 0u"));
                generator.load_if(&values, 0, &row, Some(present.clone()), false, out)
            });
            Ok(between.value(&call.dtype, &below, &above, out))
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
        let states = self.device.alloc(OPERATOR, frames.count as usize * 4 * 4)?;
        for_each(&self.device, &positions(frames.count)?, &[], |generator, out| {
            let [low, high] = frames.places(generator, out);
            let bound = out.let_("u32", format_args!("{low} + 1"));
            write_state(&states, frames.count, 0, &[&low, &high, &bound, "0"], generator, out);
            Ok(())
        })?;
        let count_first = |level: &WaveletLevel,
                           generator: &mut Generator<'_>,
                           out: &mut Emitter| {
            let [low, high, bound, less] = read_state(&states, frames.count, 0, generator, out);
            let WaveletLevel { zeros, bit, .. } = level;
            let ones = out.let_("bool", format_args!("({bound} >> {bit} & 1) != 0"));
            out.line(format_args!("if ({ones}) {less} += {zeros}[{high}] - {zeros}[{low}];"));
            out.line(level.descend([&low, &high], &ones));
            write_state(&states, frames.count, 0, &[&low, &high, &bound, &less], generator, out);
        };
        if rows > 0 {
            self.each_bit(self.last_places(flow, call)?, rows, rows, frames.count, count_first)?;
        }
        let each = positions(frames.count)?;
        let (_, mut columns) =
            materialize(&self.device, OPERATOR, &each, Codes::Keep, |generator, out| {
                let [_, _, _, less] = read_state(&states, frames.count, 0, generator, out);
                let repr = Repr::of(&call.dtype)
                    .ok_or_else(|| Error::internal(format!("{OPERATOR}: counts of such a type")))?;
                let count = out.let_(repr.device_type(), format!("({}){less}", repr.device_type()));
                Ok(vec![
                    Value::new(call.dtype.clone(), repr, count, None)
                        .with_range(Some((0, i128::from(rows)))),
                ])
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
                let key = Value { valid: None, ..value.clone() };
                let words = emit_words(
                    &[(key, Direction::Ascending, NullsPlace::Last)],
                    &mut generator.params,
                    out,
                )?;
                bits = words.iter().map(|word| word.bits).collect();
                Ok(std::iter::once(value)
                    .chain(words.into_iter().map(|word| Value::word(word.name)))
                    .collect())
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
            let order = generator.params.borrowed("const u32", &order);
            let ranks = generator.params.borrowed("u32", &ranks);
            out.line(format_args!("{ranks}[{order}[row]] = (u32)row;"));
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
            |generator, out| {
                let group_of = generator.params.pointer("const u32", group_of, 0);
                Ok(vec![Value::word(out.let_("u64", format_args!("(u64){group_of}[row]")))])
            },
        )?;
        let word = SortWord { keys: &words[0].data, bits: slot_bits(groups.slots.slots) };
        let order = argsort(&self.device, &[word], rows)?;
        let last = self.device.alloc(OPERATOR, rows as usize * 4)?;
        for_each(&self.device, &positions(rows)?, &[], |generator, out| {
            let order = generator.params.borrowed("const u32", &order);
            let group_of = generator.params.pointer("const u32", group_of, 0);
            let last = generator.params.borrowed("u32", &last);
            let own = out.let_("u32", format_args!("{order}[row]"));
            let other = out.let_("u32", format_args!("{order}[row == 0 ? 0 : row - 1]"));
            let again = format!("row != 0 && {group_of}[{own}] == {group_of}[{other}]");
            out.line(format_args!("{last}[{own}] = {again} ? {other} + 1 : 0;"));
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
        step: impl Fn(&WaveletLevel, &mut Generator<'_>, &mut Emitter),
    ) -> Result<()> {
        for bit in (0..u64::BITS - most.leading_zeros()).rev() {
            let (_, zeros) = materialize(
                &self.device,
                OPERATOR,
                &positions(rows)?,
                Codes::Keep,
                |generator, out| {
                    let numbers = generator.params.borrowed("const u32", &numbers);
                    let bit = generator.params.word("u64", u64::from(bit));
                    let zero = out.let_("u32", format_args!("({numbers}[row] >> {bit} & 1) ^ 1"));
                    Ok(vec![Value::new(DataType::UInt32, Repr::U32, zero, None)])
                },
            )?;
            let zeros = Arc::new(exclusive_scan_u32_narrow(&self.device, &zeros[0].data, rows)?);
            let level = |generator: &mut Generator<'_>, out: &mut Emitter| {
                let zeros = generator.params.pointer("const u32", &zeros, 0);
                let count = generator.params.word("u64", rows);
                let all = out.let_("u32", format_args!("{zeros}[{count}]"));
                WaveletLevel { zeros, all, bit: generator.params.word("u64", u64::from(bit)) }
            };
            for_each(&self.device, &positions(frames)?, &[], |generator, out| {
                step(&level(generator, out), generator, out);
                Ok(())
            })?;
            if bit == 0 {
                break;
            }
            let parted = self.device.alloc(OPERATOR, rows as usize * 4)?;
            for_each(&self.device, &positions(rows)?, &[], |generator, out| {
                let WaveletLevel { zeros, all, bit } = level(generator, out);
                let numbers = generator.params.borrowed("const u32", &numbers);
                let parted = generator.params.borrowed("u32", &parted);
                let number = out.let_("u32", format_args!("{numbers}[row]"));
                let before = out.let_("u32", format_args!("{zeros}[row]"));
                let ones = format!("({number} >> {bit} & 1) != 0");
                out.line(format_args!(
                    "{parted}[{ones} ? {all} + (u32)row - {before} : {before}] = {number};"
                ));
                Ok(())
            })?;
            numbers = parted;
        }
        Ok(())
    }
}

/// Four fields of each frame's state, from field `at` on, as variables.
fn read_state(
    states: &Buffer,
    frames: u64,
    at: u64,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> [String; 4] {
    let pointer = generator.params.borrowed("u32", states);
    let frames = generator.params.word("u64", frames);
    std::array::from_fn(|field| {
        let name = out.fresh();
        out.line(format_args!("u32 {name} = {pointer}[{} * {frames} + row];", at + field as u64));
        name
    })
}

fn write_state(
    states: &Buffer,
    frames: u64,
    at: u64,
    fields: &[&str; 4],
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) {
    let pointer = generator.params.borrowed("u32", states);
    let frames = generator.params.word("u64", frames);
    for (field, value) in fields.iter().enumerate() {
        out.line(format_args!("{pointer}[{} * {frames} + row] = {value};", at + field as u64));
    }
}
