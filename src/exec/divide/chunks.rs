//! What drives a part, chunk by chunk: rows of a table or stored rows, brought to the device as
//! they are wanted.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::datasource::source_as_provider;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, TableScan};
use futures::StreamExt;
use futures::stream::BoxStream;

use super::Divider;
use super::stored::{StoredRows, column_bytes};
use crate::column::{Relation, Stats, Table, row_bytes};
use crate::error::{Error, Result};
use crate::exec::foreign::Foreign;
use crate::io::{
    Chunk, ColumnRequest, OfSession, Snapshot, Source, To, batches_in_order, has_present_types,
    rows,
};
use crate::plan::{PlanTable, is_foreign, projection, table_source};
use warpframe_device::Device;

/// Times the bytes that are wanted, from which on a chunk of a source is not read at once.
const GIANT: u64 = 4;

/// Columns of a table, in one version of it.
#[derive(Debug)]
pub(super) struct OpenedScan {
    provider: Arc<dyn TableProvider>,
    /// The version, of a table that may have others.
    snapshot: Option<Arc<Snapshot>>,
    rows: TableRows,
    schema: SchemaRef,
    name: String,
}

#[derive(Debug)]
enum TableRows {
    /// On the device.
    Here(Relation),
    Source {
        source: Arc<dyn Source>,
        columns: Vec<usize>,
    },
    Foreign(Foreign),
}

impl OpenedScan {
    /// `filters` are those of all scans of the table, `known` other scans of the same plan: what
    /// reads a table twice reads one version.
    pub(super) async fn open(
        state: &SessionState,
        scan: &TableScan,
        tables: &[PlanTable],
        filters: &[Vec<Expr>],
        known: &[Arc<OpenedScan>],
    ) -> Result<OpenedScan> {
        let (provider, columns) =
            (source_as_provider(table_source(scan, tables))?, projection(scan));
        let mut version = None;
        let rows = match OfSession::of(provider.as_ref()) {
            Some(OfSession::Device(kept)) => {
                let read = kept.read(&columns)?;
                TableRows::Here(Relation::dense(read.rows, read.columns)?)
            }
            Some(OfSession::Source(table)) => {
                let mut opened =
                    known.iter().filter(|opened| Arc::ptr_eq(&opened.provider, &provider));
                let snapshot = match opened.find_map(|opened| opened.snapshot.clone()) {
                    Some(snapshot) => snapshot,
                    None => table.current(state).await?,
                };
                version = Some(snapshot.clone());
                has_present_types(scan, &snapshot.schema())?;
                let part = table.part(state, &snapshot, filters)?;
                match table.resident(&snapshot, part.as_ref(), &columns)? {
                    Some(relation) if !columns.is_empty() => TableRows::Here(relation),
                    _ => {
                        let source =
                            part.as_ref().map_or(snapshot.source(), |part| part.source()).clone();
                        TableRows::Source { source, columns }
                    }
                }
            }
            None => TableRows::Foreign(Foreign::new(scan)),
        };
        let schema = Arc::new(scan.projected_schema.as_arrow().clone());
        Ok(OpenedScan {
            provider,
            snapshot: version,
            rows,
            schema,
            name: scan.table_name.to_string(),
        })
    }

    /// How many rows the table has, if that is known.
    pub(super) fn rows(&self) -> Option<u64> {
        match &self.rows {
            TableRows::Here(relation) => Some(relation.rows),
            TableRows::Source { source, .. } => {
                source.chunks().iter().map(|chunk| chunk.rows).sum()
            }
            TableRows::Foreign(_) => None,
        }
    }

    /// Whether the table still is in this version.
    ///
    /// # Errors
    /// Of files that are no longer there.
    pub(super) fn is_current(&self) -> Result<bool> {
        match (&self.snapshot, OfSession::of(self.provider.as_ref())) {
            (Some(snapshot), Some(OfSession::Source(table))) => table.is_current(snapshot),
            _ => Ok(true),
        }
    }

    /// What stands for the scan in the plan of a part: all filters are applied there, but those
    /// that another provider applies.
    pub(super) fn template(scan: &TableScan, source: PlanTable) -> TableScan {
        let filters = if is_foreign(scan) { vec![] } else { scan.filters.clone() };
        let projection = if is_foreign(scan) { None } else { scan.projection.clone() };
        TableScan { source, filters, projection, fetch: None, ..scan.clone() }
    }
}

/// What stands for a placeholder.
#[derive(Debug, Clone)]
pub(super) enum PartInput {
    Scan(Arc<OpenedScan>),
    Stored(Arc<StoredRows>),
}

impl PartInput {
    /// How many rows there are, if that is known.
    pub(super) fn rows(&self) -> Option<u64> {
        match self {
            PartInput::Scan(scan) => scan.rows(),
            PartInput::Stored(stored) => Some(stored.rows() as u64),
        }
    }
}

/// Rows of an input on their way to the device.
pub(super) struct InputChunks<'a> {
    input: &'a PartInput,
    /// The next row of what is here or stored, or the next chunk of a source.
    at: usize,
    began: bool,
    /// What the host reads of a source that has no parts of its own.
    batches: Option<BoxStream<'static, Result<RecordBatch>>>,
    /// Rows that the device had read before the host began.
    skipped: usize,
    /// Those that were read and are not on the device yet.
    waiting: Vec<RecordBatch>,
    /// Where the last chunk began, and its batches: it may have to be read again.
    last: (usize, Vec<RecordBatch>),
    /// Bytes that a row of the last chunk took.
    row_bytes: Option<u64>,
    stats: LastingStats,
}

impl<'a> InputChunks<'a> {
    pub(super) fn of(input: &'a PartInput) -> Self {
        InputChunks {
            input,
            at: 0,
            began: false,
            batches: None,
            skipped: 0,
            waiting: vec![],
            last: (0, vec![]),
            row_bytes: None,
            stats: LastingStats::default(),
        }
    }

    /// The next rows, which take about so many bytes, or more where they cannot be had apart.
    /// `None` at the end; of an input without rows there is one chunk without rows. Where it fails
    /// it may be asked again.
    pub(super) async fn next(
        &mut self,
        divider: &Divider<'_>,
        bytes: u64,
    ) -> Result<Option<Relation>> {
        let found = self.found(divider, bytes).await?;
        self.began |= found.is_some();
        if let Some(found) = found.as_ref().filter(|found| found.rows > 0) {
            let bytes: u64 = found.columns.iter().map(|(_, column)| column_bytes(column)).sum();
            self.row_bytes = Some((bytes / found.rows).max(1));
        }
        Ok(found.map(|found| self.stats.of(found)))
    }

    /// Has the last chunk come again.
    pub(super) fn unread(&mut self) {
        let (at, mut batches) = std::mem::take(&mut self.last);
        self.at = at;
        batches.append(&mut self.waiting);
        self.waiting = batches;
    }

    async fn found(&mut self, divider: &Divider<'_>, bytes: u64) -> Result<Option<Relation>> {
        let first = !self.began;
        self.last = (self.at, vec![]);
        let device = &divider.engine.device;
        let found = match self.input {
            PartInput::Stored(stored) => {
                let some = stored.some(self.at, bytes);
                if some.rows() == 0 && !first {
                    return Ok(None);
                }
                let relation = some.relation()?;
                self.at += some.rows();
                relation
            }
            PartInput::Scan(scan) => match &scan.rows {
                TableRows::Here(relation) => {
                    if self.at as u64 >= relation.rows && !first {
                        return Ok(None);
                    }
                    let all: u64 =
                        relation.columns.iter().map(|(_, column)| column_bytes(column)).sum();
                    let rows = (bytes / (all / relation.rows.max(1)).max(1)).max(1);
                    let some = relation.slice(self.at as u64, Some(rows));
                    self.at += some.rows as usize;
                    some
                }
                TableRows::Source { source, columns, .. } => {
                    match self.of_source(divider, scan, source, columns, bytes).await? {
                        Some(relation) => relation,
                        None if first => nothing(device, &scan.schema)?,
                        None => return Ok(None),
                    }
                }
                TableRows::Foreign(foreign) => {
                    if self.batches.is_none() {
                        self.batches = Some(foreign.batches(divider.state).await?);
                    }
                    match self.of_batches(device, &scan.schema, bytes).await? {
                        Some(relation) => relation,
                        None if first => nothing(device, &scan.schema)?,
                        None => return Ok(None),
                    }
                }
            },
        };
        Ok(Some(found))
    }

    async fn of_source(
        &mut self,
        divider: &Divider<'_>,
        scan: &OpenedScan,
        source: &Arc<dyn Source>,
        columns: &[usize],
        bytes: u64,
    ) -> Result<Option<Relation>> {
        let (state, device) = (divider.state, &divider.engine.device);
        let chunks = source.chunks();
        let each = self.row_bytes.unwrap_or_else(|| row_bytes(&scan.schema));
        let needs = |chunk: &Chunk| chunk.rows.map_or(chunk.bytes.unwrap_or(0), |rows| rows * each);
        // The host's reader yields less at once than such a chunk has.
        let is_giant = |chunk: &Chunk| needs(chunk) / GIANT > bytes;
        if self.batches.is_none() && self.at == 0 && chunks.iter().any(is_giant) {
            self.batches = Some(batches_in_order(source.as_ref(), state, columns).await?);
        }
        if self.batches.is_some() {
            return self.of_batches(device, &scan.schema, bytes).await;
        }
        let mut room = bytes;
        let fits = |chunk: &&Chunk| {
            let needs = needs(chunk);
            let fits = needs <= room;
            room = room.saturating_sub(needs);
            fits
        };
        let mut count = chunks[self.at.min(chunks.len())..].iter().take_while(fits).count().max(1);
        count = count.min(chunks.len().saturating_sub(self.at));
        while count > 0 {
            let wanted = ColumnRequest { chunks: self.at..self.at + count, columns, fetch: None };
            match source.read(&To { state, device }, &wanted).await {
                Err(error) if error.is_out_of_device_memory() && count > 1 => count /= 2,
                // The host's reader yields less at once.
                Err(error) if error.is_out_of_device_memory() => {
                    let Some(rows) = rows(&chunks[..self.at]) else { return Err(error) };
                    self.skipped = rows as usize;
                    self.batches = Some(batches_in_order(source.as_ref(), state, columns).await?);
                    return self.of_batches(device, &scan.schema, bytes).await;
                }
                read => {
                    let read = read?;
                    self.at += count;
                    return Ok(Some(Relation::dense(read.rows, read.columns)?));
                }
            }
        }
        Ok(None)
    }

    async fn of_batches(
        &mut self,
        device: &Device,
        schema: &SchemaRef,
        bytes: u64,
    ) -> Result<Option<Relation>> {
        let most = (bytes / self.row_bytes.unwrap_or_else(|| row_bytes(schema))).max(1) as usize;
        let mut rows: usize = self.waiting.iter().map(RecordBatch::num_rows).sum();
        while let Some(next) = self.batches.as_mut().filter(|_| rows < most) {
            let Some(batch) = next.next().await else { break };
            let batch = batch?;
            let skipped = self.skipped.min(batch.num_rows());
            self.skipped -= skipped;
            rows += batch.num_rows() - skipped;
            self.waiting.push(batch.slice(skipped, batch.num_rows() - skipped));
        }
        let slices = |batch: RecordBatch| {
            let rows = batch.num_rows();
            (0..rows).step_by(most).map(move |at| batch.slice(at, most.min(rows - at)))
        };
        self.waiting = std::mem::take(&mut self.waiting).into_iter().flat_map(slices).collect();
        let (mut taken, mut count) = (0, 0);
        while count < self.waiting.len() && (count == 0 || taken < most) {
            taken += self.waiting[count].num_rows();
            count += 1;
        }
        if taken == 0 {
            return Ok(None);
        }
        let table = Table::from_batches(device, schema.clone(), &self.waiting[..count])?;
        self.last.1 = self.waiting.drain(..count).collect();
        Ok(Some(super::relation(&table)?))
    }
}

/// What holds for the values of all chunks so far.
#[derive(Default)]
pub(super) struct LastingStats(Vec<Option<Stats>>);

impl LastingStats {
    /// The rows with statistics that hold for all chunks so far, in round numbers: generated
    /// kernels depend on them, and chunks that differ little are to have the same.
    pub(super) fn of(&mut self, mut relation: Relation) -> Relation {
        self.0.resize(relation.columns.len(), None);
        for ((_, column), seen) in relation.columns.iter_mut().zip(&mut self.0) {
            if !column.is_plain() || column.len == 0 {
                column.stats = Stats { unique: false, ..column.stats };
                continue;
            }
            column.stats = column.stats.rounded(seen.as_ref());
            *seen = Some(column.stats);
        }
        relation
    }
}

/// Columns without rows.
fn nothing(device: &Device, schema: &SchemaRef) -> Result<Relation> {
    super::relation(&Table::empty(device, schema.clone())?)
}

/// All rows of an input that stands whole beside a part.
pub(super) async fn whole(divider: &Divider<'_>, input: &PartInput) -> Result<Relation> {
    match input {
        PartInput::Stored(stored) => stored.relation(),
        PartInput::Scan(scan) => {
            let chunk = InputChunks::of(input).next(divider, u64::MAX).await?;
            chunk.ok_or_else(|| Error::internal(format!("table {} has no chunk", scan.name)))
        }
    }
}
