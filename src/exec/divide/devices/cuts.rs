//! Where tables are cut, so that devices have the same keys of several tables.
//!
//! ```text
//!   row groups of lineitem by l_orderkey  │1 … 90│90 … 200│201 … 310│310 … 400│
//!   of orders by o_orderkey               │1 …… 150│151 …… 290│291 …… 400│
//!   cut at 201                            device 0 has keys below, device 1 those from 201 on
//! ```
//!
//! A table may be cut at values of a column whose row groups ascend by their statistics, none of
//! which has nulls. Tables of which a plan compares such columns are cut alike: where the largest of
//! them has a border of row groups. A cut within a row group is looked for in its rows, which have to
//! ascend. What was decided stays as long as the table's version, so that its columns stay where
//! they are.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::{Arc, Weak};

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Int64Type};
use datafusion::catalog::TableProvider;
use datafusion::logical_expr::LogicalPlan;
use parking_lot::Mutex;

use crate::column::Table;
use crate::error::{Error, Result};
use crate::exec::Engine;
use crate::io::{Chunk, ColumnRequest, Snapshot, Source, To};
use crate::plan::{Cuts, KeyLinks, TableColumn, TableCuts, may_be_cut};
use datafusion::execution::SessionState;

/// A cut is moved by no more than this share of a device's part, to where no key is on both sides.
const NEAR: u64 = 16;
/// A table that would lie this much less evenly than it could is not cut as others are, unless it is
/// small beside them.
const UNEVEN: u64 = 2;
const SMALL: u64 = 8;

/// A table of a plan whose rows come from a source, in one version.
#[derive(Debug, Clone)]
pub(super) struct OpenTable {
    pub(super) provider: Arc<dyn TableProvider>,
    pub(super) snapshot: Arc<Snapshot>,
}

/// How a table is cut for the devices of a session.
#[derive(Debug, Clone)]
pub(super) struct CutTable {
    pub(super) cuts: TableCuts,
    /// The row where each device's part but the first begins; empty before it is known.
    pub(super) starts: Vec<u64>,
    /// Bytes of the table whose row groups the cuts follow.
    weight: u64,
    /// Because of a join.
    joined: bool,
}

impl CutTable {
    /// The rows of a device, of a table of so many.
    pub(super) fn rows(&self, device: usize, all: u64) -> Range<u64> {
        let start = |at: usize| match at.checked_sub(1) {
            None => 0,
            Some(at) => self.starts.get(at).copied().unwrap_or(all),
        };
        start(device)..start(device + 1)
    }

    /// Keys of a device: from the first value on, below the second one.
    pub(super) fn keys(&self, device: usize) -> (Option<i128>, Option<i128>) {
        let cuts = &self.cuts.cuts;
        (device.checked_sub(1).and_then(|at| cuts.get(at).copied()), cuts.get(device).copied())
    }
}

/// How tables are cut, as long as they are there in this version.
#[derive(Debug, Clone, Default)]
pub(in crate::exec) struct KnownCuts(Arc<Mutex<Vec<KnownCut>>>);

#[derive(Debug)]
struct KnownCut {
    table: Weak<dyn TableProvider>,
    version: u64,
    cut: Option<CutTable>,
    /// Columns whose rows do not ascend where they are cut.
    refused: Vec<usize>,
}

impl KnownCuts {
    fn with<T>(&self, of: &OpenTable, look: impl FnOnce(&mut KnownCut) -> T) -> T {
        let (table, version) = (Arc::downgrade(&of.provider), of.snapshot.number());
        let mut known = self.0.lock();
        known.retain(|other| {
            other.table.strong_count() > 0
                && (other.version == version || !Weak::ptr_eq(&other.table, &table))
        });
        let at = known.iter().position(|other| Weak::ptr_eq(&other.table, &table));
        let at = at.unwrap_or_else(|| {
            known.push(KnownCut { table, version, cut: None, refused: vec![] });
            known.len() - 1
        });
        look(&mut known[at])
    }

    /// How a table is cut for so many devices.
    fn of(&self, table: &OpenTable, devices: usize) -> Option<CutTable> {
        let cut = self.with(table, |known| known.cut.clone());
        cut.filter(|cut| cut.cuts.cuts.len() + 1 == devices)
    }

    /// Whether a table is cut so, if it is cut at all. Plans are kept for tables of equal sizes, which
    /// may be others than before.
    pub(super) fn is_still(&self, table: &OpenTable, cut: &Option<CutTable>) -> bool {
        let Some(cut) = cut else { return true };
        self.with(table, |known| {
            let known = known.cut.as_ref();
            known.is_some_and(|known| known.cuts == cut.cuts && known.starts == cut.starts)
        })
    }
}

/// A column by which a table may be cut.
#[derive(Debug, Clone)]
struct KeyColumn {
    column: usize,
    /// Of each row group; they ascend.
    ranges: Vec<(i128, i128)>,
}

/// What tables of a plan may be cut by.
struct CutChoice<'a> {
    tables: &'a [Option<OpenTable>],
    known: &'a KnownCuts,
    devices: usize,
    keys: Vec<Vec<KeyColumn>>,
}

/// How the tables of a plan over placeholders are to be cut for so many devices; `None` of a table
/// without a column that ascends. Where each part begins is not known yet.
pub(super) fn chosen(
    plan: &LogicalPlan,
    tables: &[Option<OpenTable>],
    known: &KnownCuts,
    devices: usize,
) -> Vec<Option<CutTable>> {
    if devices < 2 {
        return vec![None; tables.len()];
    }
    let keys = tables.iter().map(|table| match table {
        Some(table) => keys_of(table, known, devices),
        None => vec![],
    });
    let of = CutChoice { tables, known, devices, keys: keys.collect() };
    let links = KeyLinks::of(plan);
    let columns: Vec<Option<(usize, bool)>> =
        (0..tables.len()).map(|number| of.column(number, &links)).collect();
    // Tables that are cut alike, each by the least number among them.
    let mut alike: Vec<usize> = (0..tables.len()).collect();
    let is_cut_by = |(table, column): TableColumn| {
        columns.get(table).is_some_and(|of| of.is_some_and(|(chosen, _)| chosen == column))
    };
    for (one, other) in &links.joined {
        if is_cut_by(*one) && is_cut_by(*other) {
            let (a, b) = (alike[one.0], alike[other.0]);
            alike.iter_mut().filter(|of| **of == a.max(b)).for_each(|of| *of = a.min(b));
        }
    }
    let mut cut = vec![None; tables.len()];
    for first in 0..tables.len() {
        let members: Vec<(usize, usize, bool)> = (0..tables.len())
            .filter(|number| alike[*number] == first)
            .filter_map(|number| columns[number].map(|(column, joined)| (number, column, joined)))
            .collect();
        of.cut_alike(&members, &mut cut);
    }
    cut
}

fn keys_of(table: &OpenTable, known: &KnownCuts, devices: usize) -> Vec<KeyColumn> {
    let source = table.snapshot.source();
    let schema = source.schema();
    let refused = known.with(table, |known| known.refused.clone());
    let key = |column: usize| {
        if refused.contains(&column) || !may_be_cut(schema.field(column).data_type()) {
            return None;
        }
        let ranges = source.chunk_ranges(column)?;
        let ascends = ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0);
        (ascends && ranges.len() >= devices).then_some(KeyColumn { column, ranges })
    };
    (0..schema.fields().len()).filter_map(key).collect()
}

impl CutChoice<'_> {
    fn key(&self, table: usize, column: usize) -> Option<&KeyColumn> {
        self.keys.get(table)?.iter().find(|key| key.column == column)
    }

    /// The column that a table is cut by, and whether that is because of a join.
    fn column(&self, table: usize, links: &KeyLinks) -> Option<(usize, bool)> {
        let open = self.tables[table].as_ref()?;
        let ends = links.joined.iter().flat_map(|(one, other)| [(one, other), (other, one)]);
        let joined: Vec<usize> = ends
            .filter(|(own, other)| own.0 == table && self.key(other.0, other.1).is_some())
            .map(|(own, _)| own.1)
            .filter(|column| self.key(table, *column).is_some())
            .collect();
        if let Some(known) = self.known.of(open, self.devices) {
            let column = known.cuts.column;
            if known.joined || joined.is_empty() || joined.contains(&column) {
                return Some((column, known.joined || joined.contains(&column)));
            }
        }
        if let Some(column) = joined.first() {
            return Some((*column, true));
        }
        let own = links.grouped.iter().filter(|(of, _)| *of == table).map(|(_, column)| *column);
        let mut grouped = own.filter(|column| self.key(table, *column).is_some());
        let first = || self.keys[table].first().map(|key| key.column);
        grouped.next().or_else(first).map(|column| (column, false))
    }

    fn bytes(&self, table: usize) -> u64 {
        self.tables[table]
            .as_ref()
            .map_or(0, |table| table.snapshot.source().chunks().iter().map(size).sum::<u64>())
    }

    /// Cuts tables by columns of theirs, all at the same values.
    fn cut_alike(&self, members: &[(usize, usize, bool)], cut: &mut [Option<CutTable>]) {
        let Some((largest, column, _)) =
            members.iter().max_by_key(|(table, ..)| (self.bytes(*table), Reverse(*table)))
        else {
            return;
        };
        let bytes = self.bytes(*largest);
        let known = members.iter().filter_map(|(table, column, _)| {
            let known = self.known.of(self.tables[*table].as_ref()?, self.devices)?;
            (known.cuts.column == *column).then_some(known)
        });
        let known = known.max_by_key(|known| known.weight).filter(|known| known.weight >= bytes);
        let made = || {
            let source = self.tables[*largest].as_ref()?.snapshot.source();
            let key = self.key(*largest, *column)?;
            Some((cuts_of(key, &source.chunks(), self.devices), bytes))
        };
        let of_known = known.map(|known| (known.cuts.cuts, known.weight));
        let Some((cuts, weight)) = of_known.or_else(made) else { return };
        for (table, column, joined) in members {
            let cuts = match self.is_even(*table, *column, &cuts, weight) {
                true => (cuts.clone(), weight),
                false => match (self.tables[*table].as_ref(), self.key(*table, *column)) {
                    (Some(open), Some(key)) => {
                        let chunks = open.snapshot.source().chunks();
                        (cuts_of(key, &chunks, self.devices), self.bytes(*table))
                    }
                    _ => continue,
                },
            };
            let (cuts, weight) = cuts;
            let cuts = TableCuts { column: *column, cuts };
            cut[*table] = Some(CutTable { cuts, starts: vec![], weight, joined: *joined });
        }
    }

    /// Whether a table lies evenly enough where it is cut so.
    fn is_even(&self, table: usize, column: usize, cuts: &Cuts, weight: u64) -> bool {
        let bytes = self.bytes(table);
        if bytes.saturating_mul(SMALL) < weight {
            return true;
        }
        let (Some(open), Some(key)) = (self.tables[table].as_ref(), self.key(table, column)) else {
            return false;
        };
        let chunks = open.snapshot.source().chunks();
        let mut parts = vec![0u64; self.devices];
        for (chunk, (least, _)) in chunks.iter().zip(&key.ranges) {
            parts[cuts.partition_point(|cut| cut <= least)] += size(chunk);
        }
        let largest = parts.into_iter().max().unwrap_or(0);
        largest <= (bytes / self.devices as u64).saturating_mul(UNEVEN)
    }
}

/// Bytes of a chunk, or rows where nobody knows them.
fn size(chunk: &Chunk) -> u64 {
    chunk.bytes.or(chunk.rows).unwrap_or(1)
}

/// Keys at which row groups begin that part a table into about equal ones.
fn cuts_of(key: &KeyColumn, chunks: &[Chunk], devices: usize) -> Cuts {
    let before: Vec<u64> = chunks
        .iter()
        .scan(0u64, |sum, chunk| {
            let before = *sum;
            *sum = sum.saturating_add(size(chunk));
            Some(before)
        })
        .collect();
    let all: u64 = chunks.iter().map(size).sum();
    let (mut cuts, mut from) = (vec![], 1);
    for device in 1..devices {
        let target = (u128::from(all) * device as u128 / devices as u128) as u64;
        let off = |at: &usize| before[*at].abs_diff(target);
        // Each device has a row group.
        let may = from..=chunks.len() - (devices - device);
        let Some(best) = may.clone().min_by_key(off) else { break };
        let most = off(&best) + all / devices as u64 / NEAR;
        let is_border = |at: &usize| key.ranges[*at - 1].1 < key.ranges[*at].0;
        let near = may.filter(|at| off(at) <= most && is_border(at)).min_by_key(off);
        let at = near.unwrap_or(best);
        cuts.push(key.ranges[at].0);
        from = at + 1;
    }
    cuts.into()
}

/// How the tables of a plan over placeholders are cut for the engine's devices, with the rows where
/// parts begin.
///
/// # Errors
/// Of the files and of the device.
pub(super) async fn cut_tables(
    state: &SessionState,
    devices: &[&Engine],
    plan: &LogicalPlan,
    tables: &[Option<OpenTable>],
) -> Result<Vec<Option<CutTable>>> {
    let (engine, devices) = (devices[0], devices.len());
    let known = &engine.cuts;
    'anew: loop {
        let mut cut = chosen(plan, tables, known, devices);
        for (open, of) in tables.iter().zip(&mut cut) {
            let (Some(open), Some(of)) = (open, of.as_mut()) else { continue };
            if let Some(known) = known.of(open, devices).filter(|known| known.cuts == of.cuts) {
                of.starts = known.starts;
                continue;
            }
            let to = To { state, device: &engine.device };
            match starts_of(&to, open.snapshot.source(), &of.cuts).await? {
                Some(starts) => of.starts = starts,
                // Each column is refused once.
                None => {
                    known.with(open, |known| known.refused.push(of.cuts.column));
                    continue 'anew;
                }
            }
        }
        for (open, of) in tables.iter().zip(&cut) {
            if let (Some(open), Some(of)) = (open, of) {
                known.with(open, |known| known.cut = Some(of.clone()));
            }
        }
        return Ok(cut);
    }
}

/// The first row of each part but the first. `None` where a cut lies within a row group whose rows
/// do not ascend, or whose statistics are wrong.
async fn starts_of(
    to: &To<'_>,
    source: &Arc<dyn Source>,
    TableCuts { column, cuts }: &TableCuts,
) -> Result<Option<Vec<u64>>> {
    let (Some(ranges), chunks) = (source.chunk_ranges(*column), source.chunks()) else {
        return Ok(None);
    };
    let (mut begins, mut all) = (vec![], 0);
    for chunk in &chunks {
        begins.push(all);
        let Some(rows) = chunk.rows else { return Ok(None) };
        all += rows;
    }
    let mut starts = vec![];
    for cut in cuts.iter() {
        let at = ranges.partition_point(|(_, greatest)| greatest < cut);
        starts.push(match ranges.get(at) {
            None => all,
            Some((least, _)) if least >= cut => begins[at],
            Some(_) => {
                let Some(keys) = keys_within(to, source, *column, at).await? else {
                    return Ok(None);
                };
                begins[at] + keys.partition_point(|key| key < cut) as u64
            }
        });
    }
    Ok(Some(starts))
}

/// The keys of a chunk, where they ascend and none is null.
async fn keys_within(
    to: &To<'_>,
    source: &Arc<dyn Source>,
    column: usize,
    chunk: usize,
) -> Result<Option<Vec<i128>>> {
    let columns = [column];
    let wanted = ColumnRequest { chunks: chunk..chunk + 1, columns: &columns, fetch: None };
    let read = source.read(to, &wanted).await?;
    let schema = Arc::new(source.schema().project(&columns)?);
    let table = Table::with_rows(to.device, schema, read.columns, read.rows as usize)?;
    let mut keys: Vec<i128> = vec![];
    for batch in table.to_batches(table.rows.max(1))? {
        let values = batch.column(0);
        if values.null_count() > 0 {
            return Ok(None);
        }
        match values.data_type() {
            DataType::Decimal128(..) => {
                keys.extend(values.as_primitive::<Decimal128Type>().values().iter());
            }
            DataType::Date32 => {
                let days = cast(&cast(values, &DataType::Int32)?, &DataType::Int64)?;
                keys.extend(
                    days.as_primitive::<Int64Type>().values().iter().map(|v| i128::from(*v)),
                );
            }
            dtype if dtype.is_integer() => {
                let wide = cast(values, &DataType::Int64)?;
                keys.extend(
                    wide.as_primitive::<Int64Type>().values().iter().map(|v| i128::from(*v)),
                );
            }
            other => return Err(Error::internal(format!("keys of type {other} are cut"))),
        }
    }
    Ok(keys.is_sorted().then_some(keys))
}
