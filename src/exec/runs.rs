//! GROUP BY one column that is known to ascend: its runs of equal keys are the groups.
//!
//! The groups come out in the order of their keys, so that an ORDER BY behind finds nothing to do.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

use super::run::{Runner, anonymous};
use crate::codegen::{AggregateCall, AggregateKind, Codes, Emitter, Flow, Generator, Source, Value, materialize};
use crate::column::{Column, Encoding, Relation, Repr, Stats};
use crate::device::Buffer;
use crate::error::Result;
use crate::ops::segment::{Reduction, Segments, runs, segmented_reduce};

/// Values that the keys may take, up to which groups are sums in shared memory, or slots that the caches hold: those read
/// every value once, runs read the keys apart from the values.
const SMALL_DOMAIN: i128 = 1 << 16;

/// An aggregate of one run, from its length and a reduction.
enum RunAggregate {
    Rows,
    Reduced(usize),
    /// A sum over the run's length.
    Mean(usize),
}

impl Runner {
    /// Groups the flow's rows by runs, where the key allows and every aggregate is of floats without nulls.
    pub(super) fn grouped_by_runs(
        &self,
        flow: &Flow,
        groups: &[Expr],
        calls: &[AggregateCall],
    ) -> Result<Option<Relation>> {
        let rows = flow.source.rows();
        let [group] = groups else { return Ok(None) };
        let Some(key) = column_in_place(flow, group).filter(|key| rows > 0 && has_runs(key)) else { return Ok(None) };
        let mut reduced = vec![];
        let aggregates = calls.iter().map(|call| aggregate(flow, call, &mut reduced)).collect::<Option<Vec<_>>>();
        let Some(aggregates) = aggregates else { return Ok(None) };

        let width = key.width();
        let segments = runs(&self.device, key.data.slice(key.offset * width), width, rows)?;
        let results = (reduced.iter())
            .map(|(kind, column)| {
                let values = column.data.slice(column.offset * column.width());
                segmented_reduce(&self.device, *kind, values, None, None, &segments)
            })
            .collect::<Result<Vec<_>>>()?;

        let of_runs = Flow::new(Source::Relation(Relation::dense(segments.count, vec![])), anonymous(&[])?);
        let (count, mut columns) = materialize(&self.device, "aggregate", &of_runs, Codes::Keep, |generator, out| {
            let mut values = vec![first_of_run(&key, &segments, generator, out)];
            for aggregate in &aggregates {
                values.push(value(aggregate, &results, &segments, generator, out));
            }
            Ok(values)
        })?;
        columns[0].stats = Stats { ascending: true, unique: true, ..columns[0].stats };
        Ok(Some(Relation::dense(count, columns)))
    }
}

/// The column that an expression is, if it lies in place, plainly and without nulls, with a value for each of the flow's rows.
fn column_in_place(flow: &Flow, expr: &Expr) -> Option<Column> {
    let name = match expr {
        Expr::Alias(alias) => return column_in_place(flow, &alias.expr),
        Expr::Column(name) => name,
        _ => return None,
    };
    let Source::Relation(relation) = &flow.source else { return None };
    let (index, column) = Generator::origin(flow, flow.schema().index_of_column(name).ok()?)?;
    let plain = matches!(column.encoding, Encoding::Plain) && column.validity.is_none();
    (plain && relation.indices[index].is_none() && !flow.drops_rows()).then_some(column)
}

fn has_runs(key: &Column) -> bool {
    let wide = key.stats.range.is_some_and(|(least, greatest)| greatest - least >= SMALL_DOMAIN);
    key.stats.ascending && wide && matches!(key.repr(), Repr::I32 | Repr::U32 | Repr::I64 | Repr::U64)
}

/// The aggregate, and in `reduced` the reduction that it needs; `None` for one that runs do not have.
fn aggregate(flow: &Flow, call: &AggregateCall, reduced: &mut Vec<(Reduction, Column)>) -> Option<RunAggregate> {
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
    Some(if call.kind == AggregateKind::Average { RunAggregate::Mean(at) } else { RunAggregate::Reduced(at) })
}

/// The key of a run.
fn first_of_run(key: &Column, segments: &Segments, generator: &mut Generator<'_>, out: &mut Emitter) -> Value {
    let ctype = key.repr().device_type();
    let offsets = generator.params.borrowed("const u32", &segments.offsets);
    let bytes = generator.params.pointer("const u8", &key.data, key.offset * key.width());
    let code = out.let_(ctype, format_args!("((const {ctype}*){bytes})[{offsets}[row]]"));
    Value::new(key.dtype.clone(), key.repr(), code, None).with_range(key.stats.range)
}

fn value(
    aggregate: &RunAggregate,
    results: &[Buffer],
    segments: &Segments,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Value {
    let offsets = generator.params.borrowed("const u32", &segments.offsets);
    let rows = format!("({offsets}[row + 1] - {offsets}[row])");
    let mut result = |at: usize| format!("{}[row]", generator.params.borrowed("const f64", &results[at]));
    let float = |code: String, out: &mut Emitter| Value::new(DataType::Float64, Repr::F64, out.let_("f64", code), None);
    match aggregate {
        RunAggregate::Rows => {
            let code = out.let_("i64", format_args!("(i64){rows}"));
            Value::new(DataType::Int64, Repr::I64, code, None).with_range(Some((1, i128::from(segments.rows))))
        }
        RunAggregate::Reduced(at) => float(result(*at), out),
        RunAggregate::Mean(at) => {
            let sum = result(*at);
            float(format!("{sum} / (f64){rows}"), out)
        }
    }
}
