//! ORDER BY: a column as it is or words of sort bits, radix sort, and the columns in the new order.
//!
//! A table of the key alone, or of the key and one other column of 4 or 8 bytes, is sorted whole.
//! Otherwise row numbers are, and the columns behind them are fetched by the pipeline that reads
//! them.

use std::sync::Arc;

use datafusion::logical_expr::{Expr, SortExpr};

use super::run::Runner;
use super::sort_bytes::OrderKey;
use crate::codegen::{Direction, Flow, FlowSource, NullsPlace, emit_words};
use crate::column::{Column, Index, Relation, Repr, Stats};
use crate::error::{Error, Result};
use crate::plan::{PipelineSink, sink_name};
use warpframe_device::Buffer;
use warpframe_device::ops::sort::{
    KeyKind, SortKey, SortWord, argsort, argsort_key, sort_pairs, sort_values,
};
use warpframe_device::ops::top::{top_k, top_values};

/// Sort keys as words, most significant first: a column of words, and how many bits of each are
/// significant.
struct Words {
    columns: Vec<Column>,
    bits: Vec<u32>,
}

impl Words {
    fn words(&self) -> Vec<SortWord<'_>> {
        self.columns
            .iter()
            .zip(&self.bits)
            .map(|(column, bits)| SortWord { keys: &column.data, bits: *bits })
            .collect()
    }
}

impl Runner {
    pub(super) fn sort(&self, flow: Flow, keys: &[SortExpr], fetch: Option<usize>) -> Result<Flow> {
        let fetch = fetch.map(|fetch| fetch as u64);
        let keys = leading_keys(&flow, keys)?.keys;
        if keys.is_empty() {
            let relation = self.relation("sort", &flow)?.slice(0, fetch);
            return Ok(Flow::new(FlowSource::Relation(relation), flow.schema().clone()));
        }
        if is_reverse(&flow, keys)? {
            let relation = self.reversed(self.relation("sort", &flow)?, fetch)?;
            return Ok(Flow::new(FlowSource::Relation(relation), flow.schema().clone()));
        }
        if let Some(index) = permuted_key(&flow, keys)? {
            let relation = self.back_in_place(self.relation("sort", &flow)?, &index)?;
            let relation = relation.slice(0, fetch);
            return Ok(Flow::new(FlowSource::Relation(relation), flow.schema().clone()));
        }
        if let Some((at, descending)) = bare_key(&flow, keys) {
            let relation = self.relation("sort", &flow)?;
            let relation = self.sorted_by_column(relation, at, descending, fetch)?;
            return Ok(Flow::new(FlowSource::Relation(relation), flow.schema().clone()));
        }
        let (relation, words) = self.sort_words(&flow, keys)?;
        let (rows, schema) = (relation.rows, flow.schema().clone());
        let words = words.words();
        let fetch = fetch.filter(|fetch| *fetch < rows);
        let Some((first, more)) = words.split_first().filter(|_| rows > 0) else {
            return Ok(Flow::new(FlowSource::Relation(relation.slice(0, fetch)), schema));
        };
        let relation = match fetch {
            Some(fetch) => {
                let numbers = top_k(&self.device, &(*first).into(), more, rows, fetch)?;
                self.reindexed(relation, fetch, Arc::new(numbers))?
            }
            None => {
                let order = argsort(&self.device, &words, rows)?;
                self.reordered(relation, Arc::new(order))?
            }
        };
        Ok(Flow::new(FlowSource::Relation(relation), schema))
    }

    /// The rows from the last one on.
    fn reversed(&self, relation: Relation, fetch: Option<u64>) -> Result<Relation> {
        let rows = relation.rows;
        let wanted = fetch.map_or(rows, |fetch| fetch.min(rows));
        if wanted == 0 {
            return Ok(relation.slice(0, Some(0)));
        }
        let numbers = self.row_numbers("sort", wanted, Some(rows - 1))?;
        self.reindexed(relation, wanted, numbers)
    }

    /// The numbers of the rows of the input of the sort that the plan ends in, in its order, and
    /// how many they are.
    pub(super) fn order(&self) -> Result<(Buffer, u64)> {
        let last = self.plan.last();
        let sink @ PipelineSink::Sort { keys, .. } = &self.plan.pipeline(last).sink else {
            return Err(Error::internal("a plan without a sort has no order"));
        };
        let flow = self.before_sink(last)?;
        let keys = match leading_keys(&flow, keys)?.keys {
            [] => keys,
            leading => leading,
        };
        let _operator = self.device.operator(|| sink_name(last, sink));
        if let Some((at, descending)) = bare_key(&flow, keys) {
            let Relation { rows, columns, .. } = self.relation("sort", &flow)?;
            let key = sort_key(&columns[at].1, descending).ok_or_else(not_in_place)?;
            return Ok((argsort_key(&self.device, &key, rows)?, rows));
        }
        let (Relation { rows, .. }, words) = self.sort_words(&flow, keys)?;
        Ok((argsort(&self.device, &words.words(), rows)?, rows))
    }

    /// The flow's columns, and its sort keys as words of order-preserving bits.
    fn sort_words(&self, flow: &Flow, keys: &[SortExpr]) -> Result<(Relation, Words)> {
        let width = flow.schema().fields().len();
        let (flow, keys) = self.sortable("sort", flow, keys.iter().map(order_key).collect())?;
        let mut bits = vec![];
        let (mut relation, columns) = self.relation_with("sort", &flow, |generator, out| {
            let keys = (keys.iter())
                .map(|(key, direction, nulls)| Ok((generator.expr(key, out)?, *direction, *nulls)))
                .collect::<Result<Vec<_>>>()?;
            let key = emit_words(&keys, &mut generator.params, out)?;
            bits = key.bits;
            Ok(key.words)
        })?;
        relation.columns.truncate(width);
        Ok((relation, Words { columns, bits }))
    }

    /// The relation in the order of its column `at`, which lies in place.
    fn sorted_by_column(
        &self,
        relation: Relation,
        at: usize,
        descending: bool,
        fetch: Option<u64>,
    ) -> Result<Relation> {
        let rows = relation.rows;
        let fetch = fetch.filter(|fetch| *fetch < rows);
        if rows == 0 || fetch == Some(0) {
            return Ok(relation.slice(0, fetch));
        }
        let column = &relation.columns[at].1;
        let key = sort_key(column, descending).ok_or_else(not_in_place)?;
        if let Some(fetch) = fetch {
            if relation.columns.len() == 1
                && let Some(values) = top_values(&self.device, &key, rows, fetch)?
            {
                let first = Column { len: fetch as usize, ..in_order(column, values, !descending) };
                return Relation::dense(fetch, vec![first]);
            }
            let numbers = top_k(&self.device, &key, &[], rows, fetch)?;
            return self.reindexed(relation, fetch, Arc::new(numbers));
        }
        if relation.columns.len() == 1 {
            let sorted = sort_values(&self.device, &key, rows)?;
            return Relation::dense(rows, vec![in_order(column, sorted, !descending)]);
        }
        if let [_, _] = &relation.columns[..]
            && let (None, other) =
                (&relation.indices[relation.columns[1 - at].0], &relation.columns[1 - at].1)
            && other.validity.is_none()
            && matches!(other.width(), 4 | 8)
        {
            let payload = other.data.slice(other.offset * other.width());
            let (keys, values) = sort_pairs(&self.device, &key, payload, other.width(), rows)?;
            let mut columns =
                vec![in_order(column, keys, !descending), in_order(other, values, false)];
            if at == 1 {
                columns.swap(0, 1);
            }
            return Relation::dense(rows, columns);
        }
        let numbers = argsort_key(&self.device, &key, rows)?;
        self.reordered(relation, Arc::new(numbers))
    }
}

pub(super) fn order_key(key: &SortExpr) -> OrderKey {
    let direction = if key.asc { Direction::Ascending } else { Direction::Descending };
    let nulls = if key.nulls_first { NullsPlace::First } else { NullsPlace::Last };
    (key.expr.clone(), direction, nulls)
}

/// Whether the wanted order is that of the rows from the last one on: the only key descends, and
/// the rows ascend by it as they lie. Equal values must not change places, so it has none.
fn is_reverse(flow: &Flow, keys: &[SortExpr]) -> Result<bool> {
    let [key @ SortExpr { asc: false, .. }] = keys else { return Ok(false) };
    let fits = flow.source.rows() < u64::from(u32::MAX);
    Ok(fits && ascending_key(flow, key)?.is_some_and(|stats| stats.unique))
}

/// The permutation through which the only key is seen, if the key's column ascends in memory. To
/// sort by it is to undo the permutation. The column must be unique: a stable sort would leave equal
/// values in the permutation's order.
fn permuted_key(flow: &Flow, keys: &[SortExpr]) -> Result<Option<Index>> {
    let [SortExpr { expr: Expr::Column(name), asc: true, .. }] = keys else { return Ok(None) };
    let FlowSource::Relation(relation) = &flow.source else { return Ok(None) };
    if flow.drops_rows() {
        return Ok(None);
    }
    let Some((index, column)) = flow.origin(flow.schema().index_of_column(name)?) else {
        return Ok(None);
    };
    let Some(index) = &relation.indices[index] else { return Ok(None) };
    let undoes = index.permutation
        && column.stats.ascending
        && column.stats.unique
        && column.len as u64 == relation.rows;
    Ok(undoes.then(|| index.clone()))
}

/// Sort keys that a stable sort has to look at.
pub(super) struct LeadingKeys<'a> {
    pub(super) keys: &'a [SortExpr],
    /// A key that is left out tells all rows apart.
    pub(super) apart: bool,
}

/// The keys without the last ones by which the rows ascend as they lie: a stable sort by those
/// before them keeps that order. No stage of a pipeline changes it.
pub(super) fn leading_keys<'a>(flow: &Flow, keys: &'a [SortExpr]) -> Result<LeadingKeys<'a>> {
    let mut leading = LeadingKeys { keys, apart: false };
    while let [rest @ .., last] = leading.keys
        && last.asc
        && let Some(stats) = ascending_key(flow, last)?
    {
        leading = LeadingKeys { keys: rest, apart: leading.apart || stats.unique };
    }
    Ok(leading)
}

/// Statistics of the column that a key is, where the flow's rows lie in the order of its values.
fn ascending_key(flow: &Flow, key: &SortExpr) -> Result<Option<Stats>> {
    let Expr::Column(name) = &key.expr else { return Ok(None) };
    let FlowSource::Relation(relation) = &flow.source else { return Ok(None) };
    let at = flow.schema().index_of_column(name)?;
    let Some((index, column)) = flow.origin(at) else { return Ok(None) };
    Ok((relation.indices[index].is_none() && column.stats.ascending).then_some(column.stats))
}

/// The column of the flow's result that is the only key, where it lies in memory as a sort can read
/// it; whether it descends.
fn bare_key(flow: &Flow, keys: &[SortExpr]) -> Option<(usize, bool)> {
    let [SortExpr { expr: Expr::Column(name), asc, .. }] = keys else { return None };
    let FlowSource::Relation(relation) = &flow.source else { return None };
    if flow.drops_rows() {
        return None;
    }
    let at = flow.schema().index_of_column(name).ok()?;
    let (index, column) = flow.origin(at)?;
    (relation.indices[index].is_none() && sort_key(&column, false).is_some()).then_some((at, !asc))
}

fn not_in_place() -> Error {
    Error::internal("ORDER BY: its column was not seen to be in place")
}

/// The key that a column is, if it has no nulls and a type that sorts by its bits.
fn sort_key(column: &Column, descending: bool) -> Option<SortKey<'_>> {
    let kind = match column.encoding.stored(column.repr()) {
        Repr::U64 => KeyKind::Word,
        Repr::U32 => KeyKind::U32,
        Repr::I32 => KeyKind::I32,
        Repr::I64 => KeyKind::I64,
        Repr::F32 => KeyKind::F32,
        Repr::F64 => KeyKind::F64,
        _ => return None,
    };
    if column.validity.is_some() {
        return None;
    }
    let key = SortKey::new(column.data.slice(column.offset * kind.width()), kind, descending);
    Some(match column.encoding.range().or(column.stats.range) {
        Some((low, high)) => key.within(low, high),
        None => key,
    })
}

/// The column with its values in another order, perhaps ascending.
fn in_order(column: &Column, data: Buffer, ascending: bool) -> Column {
    let stats = Stats { ascending: ascending && column.repr().is_integer(), ..column.stats };
    Column { data: Arc::new(data), offset: 0, stats, ..column.clone() }
}
