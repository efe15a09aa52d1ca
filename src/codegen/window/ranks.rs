//! The descent of all frames through the bits of numbers of rows (`exec/window/ranks.rs`).

use datafusion::arrow::datatypes::DataType;

use super::super::emit::Emitter;
use super::super::generator::Generator;
use super::super::middle::Middle;
use super::super::regroup::ColumnOf;
use super::super::span::Span;
use super::super::value::Value;
use warpframe_device::Buffer;

/// A bit of the numbers of `rows` rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaveletBit<'a> {
    pub(crate) bit: u32,
    pub(crate) rows: u64,
    /// How many zeros there are before each place, and of all rows (`u32 × (rows + 1)`).
    pub(crate) zeros: &'a Buffer,
}

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

impl WaveletBit<'_> {
    fn level(self, generator: &mut Generator<'_>, out: &mut Emitter) -> WaveletLevel {
        let zeros = generator.params.borrowed("const u32", self.zeros);
        let count = generator.params.word("u64", self.rows);
        let all = out.let_("u32", format_args!("{zeros}[{count}]"));
        WaveletLevel { zeros, all, bit: generator.params.word("u64", u64::from(self.bit)) }
    }

    /// Parts numbers (`u32`) by the bit, zeros first.
    pub(crate) fn part(
        self,
        numbers: &Buffer,
        parted: &Buffer,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) {
        let WaveletLevel { zeros, all, bit } = self.level(generator, out);
        let numbers = generator.params.borrowed("const u32", numbers);
        let parted = generator.params.borrowed("u32", parted);
        let number = out.let_("u32", format_args!("{numbers}[row]"));
        let before = out.let_("u32", format_args!("{zeros}[row]"));
        let ones = format!("({number} >> {bit} & 1) != 0");
        out.line(format_args!(
            "{parted}[{ones} ? {all} + (u32)row - {before} : {before}] = {number};"
        ));
    }
}

/// 1 where a bit of the row's number (`u32`) is 0, else 0.
pub(crate) fn is_zero_bit(
    numbers: &Buffer,
    bit: u32,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Value {
    let numbers = generator.params.borrowed("const u32", numbers);
    let bit = generator.params.word("u64", u64::from(bit));
    Value::number(out.let_("u32", format_args!("({numbers}[row] >> {bit} & 1) ^ 1")))
}

/// What all frames are at in their descent: four fields (`u32`) of each, or twice four. Each field
/// stands as an array of frames.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameStates<'a> {
    pub(crate) fields: &'a Buffer,
    pub(crate) frames: u64,
}

impl FrameStates<'_> {
    /// Sets out for the two places in the middle of a frame: of each what is left of the frame, the
    /// place in that, and the rank as far as it is known.
    pub(crate) fn begin_middle(
        self,
        span: &Span,
        middle: Middle,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) {
        let between = middle.within(span, generator, out);
        for (place, at) in [(&between.low, 0), (&between.high, 4)] {
            self.write(at, [&span.begin, &span.end, place, "0"], generator, out);
        }
    }

    /// Goes down a bit to both places.
    pub(crate) fn descend(
        self,
        bit: WaveletBit<'_>,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) {
        let level = bit.level(generator, out);
        let WaveletLevel { zeros, bit, .. } = &level;
        for at in [0, 4] {
            let [low, high, place, rank] = self.read(at, generator, out);
            let few = out.let_("u32", format_args!("{zeros}[{high}] - {zeros}[{low}]"));
            let ones = out.let_("bool", format_args!("{place} >= {few}"));
            out.line(level.descend([&low, &high], &ones));
            out.line(format_args!("if ({ones}) {{\n{place} -= {few};\n{rank} |= 1u << {bit};\n}}"));
            self.write(at, [&low, &high, &place, &rank], generator, out);
        }
    }

    /// The value in the middle, at the end of the descent. `order` (`u32`): the rows of a column in
    /// the order of their ranks.
    pub(crate) fn middle(
        self,
        span: &Span,
        middle: Middle,
        (order, column): (&Buffer, ColumnOf<'_>),
        dtype: &DataType,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Value {
        let present = out.let_("bool", format_args!("{} < {}", span.begin, span.end));
        let between = middle.within(span, generator, out);
        let order = generator.params.borrowed("const u32", order);
        let ColumnOf { relation, at: column } = column;
        let [below, above] = [0, 4].map(|at| {
            let [_, _, _, rank] = self.read(at, generator, out);
            let row = out.let_("u32", format_args!("{present} ? {order}[{rank}] : 0u"));
            generator.load_if(relation, column, &row, Some(present.clone()), false, out)
        });
        between.value(dtype, &below, &above, out)
    }

    /// Sets out to count the numbers in a frame that are not above where it begins.
    pub(crate) fn begin_count(self, span: &Span, generator: &mut Generator<'_>, out: &mut Emitter) {
        let bound = out.let_("u32", format_args!("{} + 1", span.begin));
        self.write(0, [&span.begin, &span.end, &bound, "0"], generator, out);
    }

    /// Goes down a bit, and counts those that are less by it.
    pub(crate) fn count_less(
        self,
        bit: WaveletBit<'_>,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) {
        let level = bit.level(generator, out);
        let [low, high, bound, less] = self.read(0, generator, out);
        let WaveletLevel { zeros, bit, .. } = &level;
        let ones = out.let_("bool", format_args!("({bound} >> {bit} & 1) != 0"));
        out.line(format_args!("if ({ones}) {less} += {zeros}[{high}] - {zeros}[{low}];"));
        out.line(level.descend([&low, &high], &ones));
        self.write(0, [&low, &high, &bound, &less], generator, out);
    }

    /// How many were counted.
    pub(crate) fn counted(self, generator: &mut Generator<'_>, out: &mut Emitter) -> Value {
        let [_, _, _, less] = self.read(0, generator, out);
        Value::number(less)
    }

    /// Four fields of the frame, from field `at` on, as variables.
    fn read(self, at: u64, generator: &mut Generator<'_>, out: &mut Emitter) -> [String; 4] {
        let pointer = generator.params.borrowed("u32", self.fields);
        let frames = generator.params.word("u64", self.frames);
        std::array::from_fn(|field| {
            let name = out.fresh();
            let field = at + field as u64;
            out.variable("u32", &name, format_args!("{pointer}[{field} * {frames} + row]"));
            name
        })
    }

    fn write(self, at: u64, fields: [&str; 4], generator: &mut Generator<'_>, out: &mut Emitter) {
        let pointer = generator.params.borrowed("u32", self.fields);
        let frames = generator.params.word("u64", self.frames);
        for (field, value) in (at..).zip(fields) {
            out.line(format_args!("{pointer}[{field} * {frames} + row] = {value};"));
        }
    }
}

/// Notes in `last`, for the row at a place of an order, the place behind the one before it if that
/// has its group, else 0. All are arrays of `u32`.
pub(crate) fn note_last_place(
    order: &Buffer,
    group_of: &Buffer,
    last: &Buffer,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) {
    let order = generator.params.borrowed("const u32", order);
    let group_of = generator.params.borrowed("const u32", group_of);
    let last = generator.params.borrowed("u32", last);
    let own = out.let_("u32", format_args!("{order}[row]"));
    let other = out.let_("u32", format_args!("{order}[row == 0 ? 0 : row - 1]"));
    let again = format!("row != 0 && {group_of}[{own}] == {group_of}[{other}]");
    out.line(format_args!("{last}[{own}] = {again} ? {other} + 1 : 0;"));
}
