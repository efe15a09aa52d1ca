//! GROUP BY one column that is known to ascend: its runs of equal keys are the groups.
//!
//! The groups come out in the order of their keys, so that an ORDER BY behind finds nothing to do.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

use super::run::{Runner, anonymous};
use crate::codegen::runs::{mean_of_run, rows_of_run};
use crate::codegen::{AggregateCall, AggregateKind, Codes, Flow, FlowSource, materialize};
use crate::column::{Column, Relation, Repr, Stats};
use crate::error::Result;
use warpframe_device::Buffer;
use warpframe_device::ops::segment::{Reduction, Segments, runs, segmented_reduce};

/// Values that the keys may take, up to which groups are sums in shared memory, or slots that the
/// caches hold: those read every value once, runs read the keys apart from the values.
const SMALL_DOMAIN: i128 = 1 << 16;

/// An aggregate of one run: a reduction by its place among the wanted, the run's length, or a sum
/// over it.
#[derive(Clone, Copy)]
enum RunAggregate {
    Reduced(usize),
    Rows,
    Mean(usize),
}

impl Runner {
    /// Groups the flow's rows by runs, where the key allows and every aggregate is of floats
    /// without nulls.
    pub(super) fn grouped_by_runs(
        &self,
        flow: &Flow,
        groups: &[Expr],
        calls: &[AggregateCall],
    ) -> Result<Option<Relation>> {
        let rows = flow.source.rows();
        let [group] = groups else { return Ok(None) };
        let Some(key) = column_in_place(flow, group).filter(|key| rows > 0 && has_runs(key)) else {
            return Ok(None);
        };
        let mut reduced = vec![];
        let aggregates = calls
            .iter()
            .map(|call| aggregate(flow, call, &mut reduced))
            .collect::<Option<Vec<_>>>();
        let Some(aggregates) = aggregates else { return Ok(None) };

        let width = key.width();
        let (segments, keys) = runs(&self.device, key.data.slice(key.offset * width), width, rows)?;
        let results = (reduced.iter())
            .map(|(kind, column)| {
                let values = column.data.slice(column.offset * column.width());
                segmented_reduce(&self.device, *kind, values, None, None, &segments).map(Arc::new)
            })
            .collect::<Result<Vec<_>, _>>()?;

        let count = segments.count as usize;
        let stats =
            Stats { range: key.stats.range, ascending: true, unique: true, ..Stats::default() };
        let mut columns =
            vec![Column { stats, ..Column::plain(key.dtype.clone(), count, Arc::new(keys), None) }];
        let mut of_lengths = self.of_lengths(&aggregates, &results, &segments)?.into_iter();
        columns.extend(aggregates.iter().filter_map(|aggregate| match aggregate {
            RunAggregate::Reduced(at) => {
                Some(Column::plain(DataType::Float64, count, results[*at].clone(), None))
            }
            RunAggregate::Rows | RunAggregate::Mean(_) => of_lengths.next(),
        }));
        Ok(Some(Relation::dense(segments.count, columns)?))
    }

    /// The numbers of rows and the means among the aggregates, one after the other.
    fn of_lengths(
        &self,
        aggregates: &[RunAggregate],
        results: &[Arc<Buffer>],
        segments: &Segments,
    ) -> Result<Vec<Column>> {
        if aggregates.iter().all(|aggregate| matches!(aggregate, RunAggregate::Reduced(_))) {
            return Ok(vec![]);
        }
        let of_runs = Flow::new(
            FlowSource::Relation(Relation::dense(segments.count, vec![])?),
            anonymous(&[])?,
        );
        let (_, columns) =
            materialize(&self.device, "aggregate", &of_runs, Codes::Keep, |generator, out| {
                let offsets = &segments.offsets;
                let value = |aggregate: &RunAggregate| match *aggregate {
                    RunAggregate::Reduced(_) => None,
                    RunAggregate::Rows => Some(rows_of_run(offsets, segments.rows, generator, out)),
                    RunAggregate::Mean(at) => {
                        Some(mean_of_run(offsets, &results[at], generator, out))
                    }
                };
                Ok(aggregates.iter().filter_map(value).collect())
            })?;
        Ok(columns)
    }
}

/// The column that an expression is, if it lies in place, plainly and without nulls, with a value
/// for each of the flow's rows.
fn column_in_place(flow: &Flow, expr: &Expr) -> Option<Column> {
    let name = match expr {
        Expr::Alias(alias) => return column_in_place(flow, &alias.expr),
        Expr::Column(name) => name,
        _ => return None,
    };
    let FlowSource::Relation(relation) = &flow.source else { return None };
    let (index, column) = flow.origin(flow.schema().index_of_column(name).ok()?)?;
    let plain = column.is_plain() && column.validity.is_none();
    (plain && relation.indices[index].is_none() && !flow.drops_rows()).then_some(column)
}

fn has_runs(key: &Column) -> bool {
    let wide = key
        .stats
        .range
        .is_some_and(|(least, greatest)| greatest.saturating_sub(least) >= SMALL_DOMAIN);
    key.stats.ascending
        && wide
        && matches!(key.repr(), Repr::I32 | Repr::U32 | Repr::I64 | Repr::U64)
}

/// The aggregate, and in `reduced` the reduction that it needs; `None` for one that runs do not
/// have.
fn aggregate(
    flow: &Flow,
    call: &AggregateCall,
    reduced: &mut Vec<(Reduction, Column)>,
) -> Option<RunAggregate> {
    if call.filter.is_some() {
        return None;
    }
    let column = match (&call.arg, call.kind) {
        (None, AggregateKind::Count) => return Some(RunAggregate::Rows),
        (Some(arg), _) => column_in_place(flow, arg)?,
        (None, _) => return None,
    };
    let kind = match call.kind {
        AggregateKind::Count => return Some(RunAggregate::Rows),
        AggregateKind::Sum | AggregateKind::Average => Reduction::SumF64,
        AggregateKind::Min => Reduction::MinF64,
        AggregateKind::Max => Reduction::MaxF64,
    };
    if column.repr() != Repr::F64 || call.dtype != DataType::Float64 {
        return None;
    }
    let same = |(other, of): &(Reduction, Column)| {
        *other == kind && (of.data.address(), of.offset) == (column.data.address(), column.offset)
    };
    let at = reduced.iter().position(same).unwrap_or_else(|| {
        reduced.push((kind, column));
        reduced.len() - 1
    });
    Some(if call.kind == AggregateKind::Average {
        RunAggregate::Mean(at)
    } else {
        RunAggregate::Reduced(at)
    })
}
