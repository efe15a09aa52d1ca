//! Frames as rows of their own: which rows share one, what the rows of one are.

use datafusion::arrow::datatypes::DataType;

use super::super::emit::Emitter;
use super::super::generator::Generator;
use super::super::span::{Span, search};
use super::super::value::{Value, widen};
use crate::column::Repr;
use warpframe_device::Buffer;

/// Notes the row's frame in two arrays (`u32`).
pub(crate) fn note_span(
    span: &Span,
    ends: [&Buffer; 2],
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) {
    for (buffer, name) in ends.into_iter().zip([&span.begin, &span.end]) {
        let target = generator.params.borrowed("u32", buffer);
        out.line(format_args!("{target}[row] = {name};"));
    }
}

/// 1 for a row whose frame is another than that of the row before it, else 0.
pub(crate) fn begins_frame(
    ends: [&Buffer; 2],
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Value {
    let [low, high] = ends.map(|places| generator.params.borrowed("const u32", places));
    let before = out.let_("u64", "row == 0 ? 0 : row - 1");
    let other = format!("{low}[row] != {low}[{before}] || {high}[row] != {high}[{before}]");
    Value::number(out.let_("u32", format_args!("row == 0 || {other} ? 1u : 0u")))
}

/// Notes the number of the row's frame in `of_row` (`u32`), and where the frame begins and ends, as
/// the rows have it (`of_rows`), in arrays of frames. `numbers` (`u64`): frames before each row.
pub(crate) fn note_frame(
    numbers: &Buffer,
    of_row: &Buffer,
    of_rows: [&Buffer; 2],
    of_frames: [&Buffer; 2],
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) {
    let numbers = generator.params.borrowed("const u64", numbers);
    let number = out.let_("u64", format_args!("{numbers}[row + 1] - 1"));
    let of_row = generator.params.borrowed("u32", of_row);
    out.line(format_args!("{of_row}[row] = (u32){number};"));
    // All rows of a frame write the same.
    for (from, to) in of_rows.into_iter().zip(of_frames) {
        let from = generator.params.borrowed("const u32", from);
        let to = generator.params.borrowed("u32", to);
        out.line(format_args!("if ({numbers}[row] == {number}) {to}[{number}] = {from}[row];"));
    }
}

/// Brings a frame's places through an array of new ones, and an empty frame to 0 and 0.
pub(crate) fn restate_frame(
    ends: [&Buffer; 2],
    places: Option<&Buffer>,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) {
    let places = places.map(|places| generator.params.borrowed("const u32", places));
    let names = ends.map(|buffer| generator.params.borrowed("u32", buffer));
    let [low, high] = names.each_ref().map(|name| {
        let place = out.let_("u32", format_args!("{name}[row]"));
        match &places {
            Some(places) => out.let_("u32", format_args!("{places}[{place}]")),
            None => place,
        }
    });
    out.line(format_args!("{}[row] = {low} < {high} ? {low} : 0;", names[0]));
    out.line(format_args!("{}[row] = {low} < {high} ? {high} : 0;", names[1]));
}

/// Slice `row` begins with the first of `frames` frames before which there are `row × most` pairs or
/// more: that frame, and how many pairs are before it. `offsets` (`u64`): pairs before each frame.
pub(crate) fn frame_slice(
    offsets: &Buffer,
    most: u64,
    frames: u64,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> [Value; 2] {
    let offsets = generator.params.borrowed("const u64", offsets);
    let most = generator.params.word("u64", most);
    let end = generator.params.word("u64", frames);
    let first = search("u64", &offsets, ["0", &end], &format!("row * {most}"), out);
    let before = out.let_("u64", format_args!("{offsets}[{first}]"));
    [first, before].map(Value::word)
}

/// How many rows the frame has that is `row` behind the `first`.
pub(crate) fn frame_length(
    [low, high]: [&Buffer; 2],
    first: u64,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Value {
    let first = generator.params.word("u64", first);
    let [low, high] = [low, high].map(|ends| generator.params.borrowed("const u32", ends));
    Value::number(out.let_("u32", format_args!("{high}[{first} + row] - {low}[{first} + row]")))
}

/// The row that a pair of a frame and one of its rows has. `frame_of` (`u32`): the frame of each
/// pair, counted from `first` on; `offsets` (`u64`): pairs before each of these frames; `low`
/// (`u32`): where all frames begin.
pub(crate) fn frame_row(
    frame_of: &Buffer,
    offsets: &Buffer,
    low: &Buffer,
    first: u64,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Value {
    let frame_of = generator.params.borrowed("const u32", frame_of);
    let offsets = generator.params.borrowed("const u64", offsets);
    let low = generator.params.borrowed("const u32", low);
    let first = generator.params.word("u64", first);
    let frame = out.let_("u32", format_args!("{frame_of}[row]"));
    let place = format!("{low}[{first} + {frame}] + (u32)(row - {offsets}[{frame}])");
    Value::number(out.let_("u32", place))
}

/// A point of two coordinates, as [`Fold::Products`](warpframe_device::ops::window::Fold) takes it;
/// null where the filter does not hold, or one of them is unknown.
pub(crate) fn point(x: &Value, y: &Value, filter: Option<&Value>, out: &mut Emitter) -> Value {
    let known = [x.valid.clone(), y.valid.clone(), filter.map(Value::truth)];
    let valid = known.into_iter().flatten().reduce(|one, other| format!("{one} && {other}"));
    let valid = valid.map(|valid| out.let_("bool", valid));
    // In memory the lower word, the first coordinate, comes first.
    let point = format!("(i128)make_u128(bits((f64){}), bits((f64){}))", y.code, x.code);
    Value::new(DataType::Decimal128(38, 0), Repr::I128, out.let_("i128", point), valid)
}

/// What [`Fold::Products`](warpframe_device::ops::window::Fold) yielded for the row: `count`
/// numbers.
pub(crate) fn products_of_row(
    products: &Buffer,
    count: usize,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Vec<Value> {
    let products = generator.params.borrowed("const f64", products);
    let product = |at| {
        let code = out.let_("f64", format_args!("{products}[row * {count} + {at}]"));
        Value::new(DataType::Float64, Repr::F64, code, None)
    };
    (0..count).map(product).collect()
}

/// A key, in the type in which its distance from others is computed.
pub(crate) fn key_with_distance(
    value: Value,
    dtype: &DataType,
    repr: Repr,
    out: &mut Emitter,
) -> Value {
    let code = out.let_(repr.device_type(), widen(&value, repr));
    Value::new(dtype.clone(), repr, code, value.valid)
}
