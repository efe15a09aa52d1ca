//! Each window function's value for a row, in generated code.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, ExprSchemable};

use super::arguments::{
    COUNT, Feed, FeedReduction, UP_TO_ROW, feed_of, fold_of, is_never_empty, low_feed_of, part_of,
};
use super::places::holds_row;
use super::{Arguments, OPERATOR, WindowRows};
use crate::codegen::regroup::ColumnOf;
use crate::codegen::row_number::as_type;
use crate::codegen::window::arguments::FeedKind;
use crate::codegen::window::functions::RankFunction;
use crate::codegen::window::places::RowPlaces;
use crate::codegen::window::results::{average, extremum, null_of_none, sum, variance};
use crate::codegen::{AggregateCall, AggregateKind, Emitter, Generator, Value, short_sql};
use crate::column::Repr;
use crate::error::{Error, Result};
use crate::plan::{Frame, VarianceDivisor, WindowCall, WindowKind};
use warpframe_device::Buffer;
use warpframe_device::ops::window::{Fold, Reduction};

/// What results are made from.
pub(super) struct Results<'a> {
    pub(super) sorted: &'a WindowRows,
    pub(super) arguments: &'a Arguments,
    pub(super) feeds: &'a [Feed],
    pub(super) parts: &'a [FeedReduction],
    pub(super) places: RowPlaces<'a>,
}

impl<'a> Results<'a> {
    pub(super) fn value(
        &mut self,
        call: &WindowCall,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Result<Value> {
        let ranking = match &call.function {
            WindowKind::RowNumber => RankFunction::RowNumber,
            WindowKind::Rank => RankFunction::Rank,
            WindowKind::DenseRank => RankFunction::DenseRank,
            WindowKind::PercentRank => RankFunction::PercentRank,
            WindowKind::CumeDist => RankFunction::CumeDist,
            WindowKind::Tile(tiles) => RankFunction::Tile(*tiles),
            WindowKind::Shift { arg, rows, default, skip_nulls } => {
                let counts = (*skip_nulls && *rows != 0).then(|| self.running_counts(call));
                let row = self.places.shifted(*rows, counts.flatten(), generator, out);
                return row.value(self.column(arg), default, &call.dtype, generator, out);
            }
            WindowKind::Place { arg, at, skip_nulls } => {
                let counts = skip_nulls.then(|| self.running_counts(call)).flatten();
                let edges = self.sorted.edges(&call.frame);
                let row = self.places.placed(edges, *at, counts, generator, out);
                let default = &ScalarValue::Null;
                return row.value(self.column(arg), default, &call.dtype, generator, out);
            }
            WindowKind::Aggregate(aggregate) => {
                return self.aggregate(call, aggregate, generator, out);
            }
            WindowKind::Variance { of, root, .. } => {
                return Ok(self.variance(call, *of, *root, generator, out));
            }
            WindowKind::Bits { .. } => return self.bits(call, generator, out),
            WindowKind::Regrouped(_) => {
                return Err(Error::internal(format!(
                    "{OPERATOR}: of rows in an order, by one kernel"
                )));
            }
        };
        Ok(self.places.ranking(ranking, &call.dtype, generator, out))
    }

    /// How many rows up to each have an argument for the call; `None` where all do.
    fn running_counts(&self, call: &WindowCall) -> Option<&'a Buffer> {
        let feed = feed_of(self.feeds, call)?;
        self.feeds[feed].valid.as_ref()?;
        Some(part_of(self.parts, feed, COUNT, &UP_TO_ROW).results)
    }

    /// The column of an argument.
    fn column(&self, arg: &Expr) -> ColumnOf<'a> {
        let at = self.arguments.exprs.iter().position(|known| known == arg);
        let at = at.expect("arguments_in_place made all that are looked up");
        ColumnOf { relation: &self.arguments.relation, at }
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
            return Ok(count.with_type(&dtype).with_range(range));
        }
        let feeds = self.feeds;
        let at = feed_of(feeds, call)
            .ok_or_else(|| Error::internal(format!("{OPERATOR}: an aggregate of nothing")))?;
        let fold = fold_of(call, &feeds[at])
            .ok_or_else(|| Error::internal(format!("{OPERATOR}: an aggregate of another type")))?;
        let reduced = self.of_any(at, fold, call, &count, generator, out);
        if let (FeedKind::Extremum(_, _, encoding), Some(arg)) = (&feeds[at].kind, &aggregate.arg) {
            return Ok(extremum(encoding, reduced, self.column(arg), dtype, generator, out));
        }
        let low = low_feed_of(feeds, call).map(|low| {
            let words = Fold::Reduce(Reduction::SumI128);
            self.reduced(low, words, &call.frame, generator, out)
        });
        let first_site = out.sites();
        let is_sum = aggregate.kind == AggregateKind::Sum;
        let value = match is_sum {
            true => sum(reduced, low, dtype, out),
            false => {
                let arg = aggregate.arg.as_ref();
                let arg = arg.map(|arg| arg.get_type(&*self.sorted.schema)).transpose()?;
                let scale = match arg {
                    Some(DataType::Decimal128(_, scale)) => Some(scale),
                    _ => None,
                };
                average((reduced, low), &count, self.sorted.rows(), scale, dtype, out)
            }
        };
        out.name_sites(first_site, || {
            let function = if is_sum { "sum" } else { "avg" };
            let arg = aggregate.arg.as_ref().map_or_else(String::new, short_sql);
            format!("{function}({arg}) OVER (…)")
        });
        Ok(value)
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
        let squares = self.reduced(at, Fold::Deviations, &call.frame, generator, out);
        let spent = match of {
            VarianceDivisor::Population => 0,
            VarianceDivisor::Sample => 1,
        };
        variance(&squares, &count, spent, root, &call.dtype, out)
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
        let reduced = self.of_any(at, fold, call, &count, generator, out);
        Ok(as_type(&reduced, &call.dtype, repr, out))
    }

    /// How many rows of the frame count (`i64`).
    fn count(
        &mut self,
        call: &WindowCall,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Value {
        if let Some(feed) = feed_of(self.feeds, call)
            && self.feeds[feed].valid.is_some()
        {
            return self.reduced(feed, COUNT, &call.frame, generator, out);
        }
        let edges = self.sorted.edges(&call.frame);
        self.places.count(edges, holds_row(&call.frame), generator, out)
    }

    /// A reduction over the row's frame; null where no row counts.
    fn of_any(
        &mut self,
        feed: usize,
        fold: Fold,
        call: &WindowCall,
        count: &Value,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Value {
        let reduced = self.reduced(feed, fold, &call.frame, generator, out);
        match is_never_empty(&self.feeds[feed], &call.frame) {
            true => reduced,
            false => null_of_none(reduced, count, out),
        }
    }

    /// A reduction over the row's frame; 0 where that is empty.
    fn reduced(
        &mut self,
        feed: usize,
        fold: Fold,
        frame: &Frame,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Value {
        let part = part_of(self.parts, feed, fold, frame);
        self.places.reduced(part, self.sorted.edges(frame), generator, out)
    }
}
