//! What a row's place in its partition says, and what other rows of it have.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;

use super::super::emit::Emitter;
use super::super::generator::Generator;
use super::super::regroup::ColumnOf;
use super::super::span::{Span, search};
use super::super::value::{Value, both, repr_of, widen};
use super::places::{FrameEdge, RowPlaces};
use crate::codegen::device_function::FDIV;
use crate::column::Repr;
use crate::error::Result;
use warpframe_device::Buffer;

/// What says where a row stands among those of its partition.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RankFunction {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    /// Which of so many tiles.
    Tile(u64),
}

impl RowPlaces<'_> {
    /// The row's place, by one of the functions that say it.
    pub(crate) fn ranking(
        &mut self,
        ranking: RankFunction,
        dtype: &DataType,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Value {
        let Span { begin, end } = self.partition.clone();
        let (repr, code) = match ranking {
            RankFunction::RowNumber => (Repr::U32, format!("(u32)row - {begin} + 1")),
            RankFunction::Rank => {
                let first = self.peer_group(generator, out).begin;
                (Repr::U32, format!("{first} - {begin} + 1"))
            }
            RankFunction::DenseRank => {
                let groups = self.groups_before(generator, out);
                (Repr::U32, format!("{groups} + 1"))
            }
            RankFunction::PercentRank => {
                let first = self.peer_group(generator, out).begin;
                let others = format!("maximum({end} - {begin} - 1, 1u)");
                let divided = out.calls(FDIV);
                (Repr::F64, format!("{divided}((f64)({first} - {begin}), (f64){others})"))
            }
            RankFunction::CumeDist => {
                let last = self.peer_group(generator, out).end;
                let divided = out.calls(FDIV);
                (Repr::F64, format!("{divided}((f64)({last} - {begin}), (f64)({end} - {begin}))"))
            }
            RankFunction::Tile(tiles) => {
                // The first tiles have a row more than the others, as many as are left over.
                let tiles = generator.params.word("u64", tiles);
                let row = out.let_("u64", format_args!("row - {begin}"));
                out.divides(4);
                let least = out.let_("u64", format_args!("({end} - {begin}) / {tiles}"));
                let over = out.let_("u64", format_args!("({end} - {begin}) % {tiles}"));
                let larger = out.let_("u64", format_args!("{over} * ({least} + 1)"));
                let number = format!(
                    "(u32)({row} < {larger} ? {row} / ({least} + 1) + 1 : \
                     {over} + ({row} - {larger}) / maximum({least}, 1ull) + 1)"
                );
                (Repr::U32, number)
            }
        };
        let value = Value::new(dtype.clone(), repr, out.let_(repr.device_type(), code), None);
        value.with_range((repr == Repr::U32).then(|| (0, i128::from(self.rows))))
    }

    /// The row so many rows, or valid rows, before the row. `counts`: how many rows up to each are
    /// valid (`i64`), where only these count.
    pub(crate) fn shifted(
        &self,
        rows: i64,
        counts: Option<&Buffer>,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> SoughtRow {
        let Span { begin, end } = &self.partition;
        let by = generator.params.word("i64", rows);
        let counts = counts.map(|counts| generator.params.borrowed("const i64", counts));
        let Some(counts) = counts else {
            let at = out.let_("i64", format_args!("(i64)row - {by}"));
            let exists =
                out.let_("bool", format_args!("{at} >= (i64){begin} && {at} < (i64){end}"));
            return SoughtRow { at, exists };
        };
        // The number, among the valid rows of the partition, of the one that is looked for.
        let number = if rows > 0 {
            out.let_("i64", format_args!("(row > {begin} ? {counts}[row - 1] : 0) - {by} + 1"))
        } else {
            out.let_("i64", format_args!("{counts}[row] - {by}"))
        };
        let exists =
            out.let_("bool", format_args!("{number} >= 1 && {number} <= {counts}[{end} - 1]"));
        SoughtRow { at: search("u32", &counts, [begin, end], &number, out), exists }
    }

    /// The row, or valid row, at a place of the frame. `counts`: as above.
    pub(crate) fn placed(
        &mut self,
        edges: [FrameEdge; 2],
        place: i64,
        counts: Option<&Buffer>,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> SoughtRow {
        let Span { begin: low, end: high } = self.frame(edges, generator, out);
        let begin = &self.partition.begin;
        let place_word = generator.params.word("i64", place);
        let counts = counts.map(|counts| generator.params.borrowed("const i64", counts));
        let Some(counts) = counts else {
            let from = if place > 0 { format!("(i64){low} - 1") } else { format!("(i64){high}") };
            let at = out.let_("i64", format_args!("{from} + {place_word}"));
            let some = if place == 0 { "false" } else { "true" };
            let exists = out
                .let_("bool", format_args!("{some} && {at} >= (i64){low} && {at} < (i64){high}"));
            return SoughtRow { at, exists };
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
        SoughtRow { at: search("u32", &counts, [&low, &high], &number, out), exists }
    }
}

/// A row that need not exist.
pub(crate) struct SoughtRow {
    /// Its place, and the condition that there is such a row.
    at: String,
    exists: String,
}

impl SoughtRow {
    /// What a column has there, as a type; a default where there is no such row.
    pub(crate) fn value(
        self,
        column: ColumnOf<'_>,
        default: &ScalarValue,
        dtype: &DataType,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Result<Value> {
        let SoughtRow { at, exists } = self;
        let at = out.let_("u32", format_args!("{exists} ? (u32){at} : (u32)row"));
        let mut value = column.load(&at, generator, out);
        value.dtype = dtype.clone();
        if default.is_null() {
            value.valid = both(&Some(exists), &value.valid, out);
            return Ok(value);
        }
        let default = generator.expr(&Expr::Literal(default.clone(), None), out)?;
        let repr = repr_of(dtype)?;
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
}
