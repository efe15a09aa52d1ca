//! Each window function's value for a row, in generated code.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, ExprSchemable};

use super::arguments::{
    COUNT, ExtremumEncoding, Feed, FeedKind, FeedReduction, FrameStrategy, UP_TO_ROW, feed_of,
    fold_of, is_never_empty, low_feed_of, part_of,
};
use super::places::{RowPositions, holds_row};
use super::{Arguments, OPERATOR, WindowRows};
use crate::codegen::{
    AggregateCall, AggregateKind, DecimalSum, Emitter, Generator, Value, dictionary_value,
    short_sql, widen,
};
use crate::column::Repr;
use crate::error::{Error, Result};
use crate::plan::{Bound, Frame, VarianceDivisor, WindowCall, WindowKind};
use warpframe_device::Buffer;
use warpframe_device::ops::window::{Fold, Reduction};

/// What results are made from.
pub(super) struct Results<'a> {
    pub(super) sorted: &'a WindowRows,
    pub(super) arguments: &'a Arguments,
    pub(super) feeds: &'a [Feed],
    pub(super) parts: &'a [FeedReduction],
    pub(super) places: RowPositions<'a>,
}

/// A position, and the condition that there is such a row.
struct RowPosition {
    at: String,
    exists: String,
}

impl Results<'_> {
    pub(super) fn value(
        &mut self,
        call: &WindowCall,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Result<Value> {
        let rows = i128::from(self.sorted.rows());
        let (begin, end) = (self.places.begin.clone(), self.places.end.clone());
        let number = |code: String, out: &mut Emitter| {
            let code = out.let_("u32", code);
            Value::new(call.dtype.clone(), Repr::U32, code, None).with_range(Some((0, rows)))
        };
        let share = |code: String, out: &mut Emitter| {
            Value::new(call.dtype.clone(), Repr::F64, out.let_("f64", code), None)
        };
        Ok(match &call.function {
            WindowKind::RowNumber => number(format!("(u32)row - {begin} + 1"), out),
            WindowKind::Rank => {
                let [first, _] = self.places.peer_group(generator, out);
                number(format!("{first} - {begin} + 1"), out)
            }
            WindowKind::DenseRank => {
                let groups = self.places.groups_before(generator, out);
                number(format!("{groups} + 1"), out)
            }
            WindowKind::PercentRank => {
                let [first, _] = self.places.peer_group(generator, out);
                let others = format!("maximum({end} - {begin} - 1, 1u)");
                share(format!("fdiv((f64)({first} - {begin}), (f64){others})"), out)
            }
            WindowKind::CumeDist => {
                let [_, last] = self.places.peer_group(generator, out);
                share(format!("fdiv((f64)({last} - {begin}), (f64)({end} - {begin}))"), out)
            }
            WindowKind::Tile(tiles) => {
                // The first tiles have a row more than the others, as many as are left over.
                let tiles = generator.params.word("u64", *tiles);
                let row = out.let_("u64", format_args!("row - {begin}"));
                let least = out.let_("u64", format_args!("({end} - {begin}) / {tiles}"));
                let over = out.let_("u64", format_args!("({end} - {begin}) % {tiles}"));
                let larger = out.let_("u64", format_args!("{over} * ({least} + 1)"));
                number(
                    format!(
                        "(u32)({row} < {larger} ? {row} / ({least} + 1) + 1 : \
                         {over} + ({row} - {larger}) / maximum({least}, 1ull) + 1)"
                    ),
                    out,
                )
            }
            WindowKind::Shift { arg, rows, default, skip_nulls } => {
                let place = self.shifted(call, *rows, *skip_nulls, generator, out);
                self.looked_up(arg, place, default, &call.dtype, generator, out)?
            }
            WindowKind::Place { arg, at, skip_nulls } => {
                let place = self.placed(call, *at, *skip_nulls, generator, out);
                self.looked_up(arg, place, &ScalarValue::Null, &call.dtype, generator, out)?
            }
            WindowKind::Aggregate(aggregate) => self.aggregate(call, aggregate, generator, out)?,
            WindowKind::Variance { of, root, .. } => {
                self.variance(call, *of, *root, generator, out)
            }
            WindowKind::Bits { .. } => self.bits(call, generator, out)?,
            WindowKind::Regrouped(_) => {
                return Err(Error::internal(format!(
                    "{OPERATOR}: of rows in an order, by one kernel"
                )));
            }
        })
    }

    /// The position so many rows, or valid rows, before the row.
    fn shifted(
        &mut self,
        call: &WindowCall,
        rows: i64,
        skip_nulls: bool,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> RowPosition {
        let (begin, end) = (self.places.begin.clone(), self.places.end.clone());
        let by = generator.params.word("i64", rows);
        let counts =
            if skip_nulls && rows != 0 { self.running_counts(call, generator) } else { None };
        let Some(counts) = counts else {
            let at = out.let_("i64", format_args!("(i64)row - {by}"));
            let exists =
                out.let_("bool", format_args!("{at} >= (i64){begin} && {at} < (i64){end}"));
            return RowPosition { at, exists };
        };
        // The number, among the valid rows of the partition, of the one that is looked for.
        let number = if rows > 0 {
            out.let_("i64", format_args!("(row > {begin} ? {counts}[row - 1] : 0) - {by} + 1"))
        } else {
            out.let_("i64", format_args!("{counts}[row] - {by}"))
        };
        let exists =
            out.let_("bool", format_args!("{number} >= 1 && {number} <= {counts}[{end} - 1]"));
        RowPosition { at: search(&counts, [&begin, &end], &number, out), exists }
    }

    /// The position of the frame's row, or valid row, at a place.
    fn placed(
        &mut self,
        call: &WindowCall,
        place: i64,
        skip_nulls: bool,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> RowPosition {
        let begin = self.places.begin.clone();
        let [low, high] = self.places.frame(&call.frame, generator, out);
        let place_word = generator.params.word("i64", place);
        let counts = if skip_nulls { self.running_counts(call, generator) } else { None };
        let Some(counts) = counts else {
            let from = if place > 0 { format!("(i64){low} - 1") } else { format!("(i64){high}") };
            let at = out.let_("i64", format_args!("{from} + {place_word}"));
            let some = if place == 0 { "false" } else { "true" };
            let exists = out
                .let_("bool", format_args!("{some} && {at} >= (i64){low} && {at} < (i64){high}"));
            return RowPosition { at, exists };
        };
        let before = out.let_("i64", format_args!("{low} > {begin} ? {counts}[{low} - 1] : 0"));
        let all = out.let_("i64", format_args!("{low} < {high} ? {counts}[{high} - 1] : {before}"));
        let number = if place > 0 {
            format!("{before} + {place_word}")
        } else {
            format!("{all} + 1 + {place_word}")
        };
        let number = out.let_("i64", number);
        let exists = out.let_("bool", format_args!("{number} > {before} && {number} <= {all}"));
        RowPosition { at: search(&counts, [&low, &high], &number, out), exists }
    }

    /// The array that counts the valid rows of the call's argument up to each row; none where all
    /// are valid.
    fn running_counts(&self, call: &WindowCall, generator: &mut Generator<'_>) -> Option<String> {
        let feed = feed_of(self.feeds, call)?;
        self.feeds[feed].valid.as_ref()?;
        let (_, counts) = part_of(self.parts, feed, COUNT, &UP_TO_ROW);
        Some(generator.params.borrowed("const i64", counts))
    }

    /// The argument's value at a place; a default where there is no such row.
    fn looked_up(
        &mut self,
        arg: &Expr,
        place: RowPosition,
        default: &ScalarValue,
        dtype: &DataType,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Result<Value> {
        let RowPosition { at, exists } = place;
        let at = out.let_("u32", format_args!("{exists} ? (u32){at} : (u32)row"));
        let mut value = self.argument_at(arg, &at, generator, out);
        value.dtype = dtype.clone();
        if default.is_null() {
            value.valid = Some(match &value.valid {
                Some(valid) => out.let_("bool", format_args!("{exists} && {valid}")),
                None => exists,
            });
            return Ok(value);
        }
        let default = generator.expr(&Expr::Literal(default.clone(), None), out)?;
        let repr =
            Repr::of(dtype).ok_or_else(|| Error::internal(format!("{OPERATOR}: of {dtype}")))?;
        let ctype = if repr == Repr::Bool { "bool" } else { repr.device_type() };
        let code = out.let_(
            ctype,
            format_args!("{exists} ? {} : {}", widen(&value, repr), widen(&default, repr)),
        );
        let valid = value
            .valid
            .as_ref()
            .map(|valid| out.let_("bool", format_args!("!{exists} || {valid}")));
        let mut either = Value::new(dtype.clone(), repr, code, valid);
        let bounds = [&value, &default].map(Value::bounds);
        if repr.is_integer() {
            either.range = Some((bounds[0].0.min(bounds[1].0), bounds[0].1.max(bounds[1].1)));
        }
        either.magnitude = value.magnitude.zip(default.magnitude).map(|(a, b)| a.max(b));
        either.longest = value.longest.zip(default.longest).map(|(a, b)| a.max(b));
        Ok(either)
    }

    fn argument_at(
        &self,
        arg: &Expr,
        at: &str,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Value {
        let column = self.arguments.exprs.iter().position(|known| known == arg);
        let column = column.expect("arguments_in_place made all that are looked up");
        generator.load(&self.arguments.relation, column, at, false, out)
    }

    fn aggregate(
        &mut self,
        call: &WindowCall,
        aggregate: &AggregateCall,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Result<Value> {
        let dtype = call.dtype.clone();
        let count = self.count(call, generator, out);
        if aggregate.kind == AggregateKind::Count {
            let range = Some((0, i128::from(self.sorted.rows())));
            return Ok(Value::new(dtype, Repr::I64, count, None).with_range(range));
        }
        let feeds = self.feeds;
        let at = feed_of(feeds, call)
            .ok_or_else(|| Error::internal(format!("{OPERATOR}: an aggregate of nothing")))?;
        let feed = &feeds[at];
        let fold = fold_of(call, feed)
            .ok_or_else(|| Error::internal(format!("{OPERATOR}: an aggregate of another type")))?;
        let (ctype, repr) = result_type(fold);
        let reduced = self.reduced(at, fold, &call.frame, ctype, generator, out);
        let valid = (!is_never_empty(feed, &call.frame))
            .then(|| out.let_("bool", format_args!("{count} != 0")));
        if let FeedKind::Extremum(_, _, origin) = &feed.kind {
            return Ok(self.extremum(aggregate, origin, &reduced, valid, dtype, generator, out));
        }
        let first_site = out.sites();
        let name = || {
            let function = if aggregate.kind == AggregateKind::Sum { "sum" } else { "avg" };
            let arg = aggregate.arg.as_ref().map_or_else(String::new, short_sql);
            format!("{function}({arg}) OVER (…)")
        };
        let sum = match (low_feed_of(feeds, call), repr) {
            (Some(low), _) => {
                let words = Fold::Reduce(Reduction::SumI128);
                let low = self.reduced(low, words, &call.frame, "i128", generator, out);
                DecimalSum::Words { high: reduced.clone(), low }
            }
            (None, Repr::I64) => DecimalSum::I64(reduced.clone()),
            (None, _) => DecimalSum::I128(reduced.clone()),
        };
        if let (AggregateKind::Sum, DecimalSum::Words { .. }) = (aggregate.kind, &sum) {
            let value = sum.emit(dtype, valid, out);
            out.name_sites(first_site, name);
            return Ok(value);
        }
        if aggregate.kind == AggregateKind::Sum {
            if dtype.is_integer() {
                let value = sum.emit_integer(dtype, valid, out);
                out.name_sites(first_site, name);
                return Ok(value);
            }
            return Ok(Value::new(dtype, repr, reduced, valid));
        }
        let arg =
            aggregate.arg.as_ref().map(|arg| arg.get_type(&*self.sorted.schema)).transpose()?;
        Ok(match (&dtype, arg) {
            (DataType::Decimal128(_, scale), Some(DataType::Decimal128(_, of))) => {
                let power = (scale - of).max(0) as u32;
                let code = sum.emit_average(&count, self.sorted.rows(), power, out);
                out.name_sites(first_site, name);
                Value::new(dtype, Repr::I128, code, valid)
            }
            _ => Value::new(
                dtype,
                Repr::F64,
                out.let_("f64", format_args!("{reduced} / (f64){count}")),
                valid,
            ),
        })
    }

    /// From a least or greatest number back to the argument's value.
    #[expect(clippy::too_many_arguments, reason = "the private end of aggregate")]
    fn extremum(
        &mut self,
        aggregate: &AggregateCall,
        origin: &ExtremumEncoding,
        reduced: &str,
        valid: Option<String>,
        dtype: DataType,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Value {
        match origin {
            ExtremumEncoding::Number { repr, range, magnitude } => {
                let code = match repr {
                    Repr::Bool => out.let_("bool", format_args!("{reduced} != 0")),
                    repr => {
                        out.let_(repr.device_type(), format!("({}){reduced}", repr.device_type()))
                    }
                };
                let mut value = Value::new(dtype, *repr, code, valid).with_range(*range);
                value.magnitude = *magnitude;
                value
            }
            ExtremumEncoding::Code(dictionary) => {
                // The code of no value is none.
                let code = out.let_(
                    "u32",
                    format_args!("{} ? (u32){reduced} : 0u", valid.as_deref().unwrap_or("true")),
                );
                dictionary_value(dtype, dictionary, code, valid, &mut generator.params)
            }
            ExtremumEncoding::Place(order) => {
                let order = generator.params.borrowed("const u32", order);
                let some = valid.as_deref().unwrap_or("true");
                let at = out.let_("u32", format_args!("{some} ? {order}[{reduced}] : (u32)row"));
                let arg = aggregate.arg.as_ref().expect("an extremum has an argument");
                let mut value = self.argument_at(arg, &at, generator, out);
                value.dtype = dtype;
                value.valid = valid;
                value
            }
        }
    }

    fn variance(
        &mut self,
        call: &WindowCall,
        of: VarianceDivisor,
        root: bool,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Value {
        let count = self.count(call, generator, out);
        let at = feed_of(self.feeds, call).expect("feeds() made one for each variance");
        let squares = self.reduced(at, Fold::Deviations, &call.frame, "f64", generator, out);
        let (least, divisor) = match of {
            VarianceDivisor::Population => (1, format!("(f64){count}")),
            VarianceDivisor::Sample => (2, format!("(f64)({count} - 1)")),
        };
        let valid = out.let_("bool", format_args!("{count} >= {least}"));
        let share = format!("fdiv({squares}, {divisor})");
        let code = out.let_("f64", if root { format!("sqrt({share})") } else { share });
        Value::new(call.dtype.clone(), Repr::F64, code, Some(valid))
    }

    fn bits(
        &mut self,
        call: &WindowCall,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Result<Value> {
        let feeds = self.feeds;
        let at = feed_of(feeds, call)
            .ok_or_else(|| Error::internal(format!("{OPERATOR}: bits of nothing")))?;
        let fold = fold_of(call, &feeds[at])
            .ok_or_else(|| Error::internal(format!("{OPERATOR}: bits of another type")))?;
        let repr = Repr::of(&call.dtype)
            .ok_or_else(|| Error::internal(format!("{OPERATOR}: bits of {}", call.dtype)))?;
        let count = self.count(call, generator, out);
        let reduced = self.reduced(at, fold, &call.frame, "u64", generator, out);
        let valid = (!is_never_empty(&feeds[at], &call.frame))
            .then(|| out.let_("bool", format_args!("{count} != 0")));
        let code = out.let_(repr.device_type(), format!("({}){reduced}", repr.device_type()));
        Ok(Value::new(call.dtype.clone(), repr, code, valid))
    }

    /// How many rows of the frame count (`i64`).
    fn count(
        &mut self,
        call: &WindowCall,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> String {
        if let Some(feed) = feed_of(self.feeds, call)
            && self.feeds[feed].valid.is_some()
        {
            return self.reduced(feed, COUNT, &call.frame, "i64", generator, out);
        }
        let [low, high] = self.places.frame(&call.frame, generator, out);
        if holds_row(&call.frame) {
            return out.let_("i64", format_args!("(i64)({high} - {low})"));
        }
        out.let_("i64", format_args!("{low} < {high} ? (i64)({high} - {low}) : 0"))
    }

    /// A reduction over the row's frame; 0 where that is empty.
    fn reduced(
        &mut self,
        feed: usize,
        fold: Fold,
        frame: &Frame,
        ctype: &'static str,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> String {
        let (way, results): (FrameStrategy, &Buffer) = part_of(self.parts, feed, fold, frame);
        let results = generator.params.borrowed(pointer_to(ctype), results);
        let [low, high] = self.places.frame(frame, generator, out);
        let begin = &self.places.begin;
        let code = match way {
            FrameStrategy::AtEnd => format!("{results}[{high} - 1]"),
            FrameStrategy::AtStart => format!("{results}[{low}]"),
            FrameStrategy::OfFrame(_) => format!("{results}[row]"),
            FrameStrategy::Difference if fold == Fold::Reduce(Reduction::XorU64) => {
                format!("({results}[{high} - 1] ^ ({low} > {begin} ? {results}[{low} - 1] : 0ull))")
            }
            FrameStrategy::Difference => {
                format!(
                    "wrap_sub<{ctype}>({results}[{high} - 1], {low} > {begin} ? {results}[{low} - 1] : ({ctype})0)"
                )
            }
        };
        match frame {
            Frame { start: Bound::Unbounded, end: Bound::Unbounded } => out.let_(ctype, code),
            _ => out.let_(ctype, format_args!("{low} < {high} ? {code} : ({ctype})0")),
        }
    }
}

/// The position, among those of a frame, of the valid row of a number that the partition's rows up
/// to each position count. Somewhere in the frame, or at its end, where there is none.
fn search(counts: &str, [low, high]: [&str; 2], number: &str, out: &mut Emitter) -> String {
    let (first, last) = (out.fresh(), out.fresh());
    out.line(format_args!("u32 {first} = {low}, {last} = {high};"));
    out.line(format_args!(
        "while ({first} < {last}) {{\nconst u32 middle = {first} + ({last} - {first}) / 2;\n\
         if ({counts}[middle] < {number}) {first} = middle + 1; else {last} = middle;\n}}"
    ));
    first
}

/// The type of a reduction's results.
fn result_type(fold: Fold) -> (&'static str, Repr) {
    let repr = match fold {
        Fold::Deviations
        | Fold::Products
        | Fold::Reduce(Reduction::SumF64 | Reduction::MinF64 | Reduction::MaxF64) => Repr::F64,
        Fold::Reduce(
            Reduction::MinU64
            | Reduction::MaxU64
            | Reduction::AndU64
            | Reduction::OrU64
            | Reduction::XorU64,
        ) => Repr::U64,
        Fold::Reduce(
            Reduction::SumI64 | Reduction::MinI64 | Reduction::MaxI64 | Reduction::Count,
        ) => Repr::I64,
        Fold::Reduce(
            Reduction::SumI64Wide | Reduction::SumI128 | Reduction::MinI128 | Reduction::MaxI128,
        ) => Repr::I128,
    };
    (repr.device_type(), repr)
}

fn pointer_to(ctype: &str) -> &'static str {
    match ctype {
        "f64" => "const f64",
        "u64" => "const u64",
        "i128" => "const i128",
        _ => "const i64",
    }
}
