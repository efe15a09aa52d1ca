//! The host's reader: the rows of CSV files as record batches, for DataFusion's operators.
//!
//! Partitions are pieces of files in the order of their rows. Each is read by blocks
//! ([`Blocks`]), whose rows are one batch, handed on in slices. Only the columns asked for are
//! converted. First rows are read from the begin, by one partition.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::TableType;
use datafusion::error::Result as PlanResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};

use super::blocks::{BLOCK, Block, Blocks, CsvFile, FilePiece};
use super::columns::PickedValues;
use super::convert::{BlockColumn, Misfit};
use super::dialect::no_utf8;
use super::grammar::State;
use super::table::CsvTable;
use crate::error::{Error, ErrorKind, Result};
use crate::io::FileNotes;
use crate::io::source::BYTES_TO_READ;

/// Bytes of a partition at least: of smaller ones, the threads would take longer than the rows.
const LEAST_PARTITION: u64 = 2 << 20;

/// A table of CSV files, as DataFusion scans it.
#[derive(Debug)]
pub(crate) struct CsvProvider {
    pub(crate) table: Arc<CsvTable>,
    /// Bytes that are read together.
    block: usize,
    /// Rows that were left out by the scans so far.
    skipped: Arc<AtomicU64>,
}

impl CsvProvider {
    pub(crate) fn new(table: Arc<CsvTable>) -> CsvProvider {
        CsvProvider { table, block: BLOCK, skipped: Arc::default() }
    }

    /// A provider that reads blocks of so many bytes.
    #[cfg(test)]
    pub(crate) fn with_block(table: Arc<CsvTable>, block: usize) -> CsvProvider {
        CsvProvider { block, ..CsvProvider::new(table) }
    }

    /// All rows of columns, read by one thread.
    #[cfg(test)]
    pub(crate) fn rows(&self, columns: &[usize]) -> Result<Vec<RecordBatch>> {
        let scan = self.plan((0..self.table.files.len()).collect(), columns.to_vec(), None, 1)?;
        Batches::new(scan.read.clone(), 0, 1000).collect()
    }

    /// Rows of another number of values that were left out since this was asked last.
    pub(crate) fn take_skipped(&self) -> u64 {
        self.skipped.swap(0, Relaxed)
    }

    fn plan(
        &self,
        files: Vec<usize>,
        columns: Vec<usize>,
        limit: Option<usize>,
        partitions: usize,
    ) -> PlanResult<CsvScan> {
        let schema = Arc::new(self.table.schema.project(&columns)?);
        let bytes: u64 = files.iter().map(|file| bytes_of(&self.table.files[*file])).sum();
        let most = (bytes / LEAST_PARTITION.min(2 * self.block as u64)).max(1);
        let count = if limit.is_some() { 1 } else { partitions.min(most as usize).max(1) };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(count),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let (table, skipped) = (self.table.clone(), self.skipped.clone());
        let read = Arc::new(Scanned {
            table,
            files,
            columns,
            limit,
            count,
            block: self.block,
            schema,
            skipped,
            metrics: ExecutionPlanMetricsSet::new(),
            own_skipped: Arc::default(),
        });
        Ok(CsvScan { read, properties: Arc::new(properties) })
    }
}

#[async_trait]
impl TableProvider for CsvProvider {
    fn schema(&self) -> SchemaRef {
        self.table.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let columns =
            projection.cloned().unwrap_or_else(|| (0..self.table.schema.fields().len()).collect());
        let selected = self.table.paths.selected(state, filters)?;
        let files = selected.unwrap_or_else(|| (0..self.table.files.len()).collect());
        let settings = &state.config_options().optimizer;
        let is_cut = settings.repartition_file_scans
            && self.table.bytes() >= settings.repartition_file_min_size as u64;
        let partitions = if is_cut { state.config().target_partitions() } else { 1 };
        Ok(Arc::new(self.plan(files, columns, limit, partitions)?))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> PlanResult<Vec<TableProviderFilterPushDown>> {
        Ok(self.table.paths.supports(filters))
    }
}

/// What a scan reads.
#[derive(Debug)]
struct Scanned {
    table: Arc<CsvTable>,
    /// Those that are read.
    files: Vec<usize>,
    columns: Vec<usize>,
    limit: Option<usize>,
    /// Partitions.
    count: usize,
    block: usize,
    /// Of the columns.
    schema: SchemaRef,
    skipped: Arc<AtomicU64>,
    metrics: ExecutionPlanMetricsSet,
    /// By this scan.
    own_skipped: Arc<AtomicU64>,
}

/// A scan of CSV files.
#[derive(Debug)]
struct CsvScan {
    read: Arc<Scanned>,
    properties: Arc<PlanProperties>,
}

impl DisplayAs for CsvScan {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let names: Vec<&str> =
            self.read.schema.fields().iter().map(|field| field.name().as_str()).collect();
        let (read, all) = (self.read.files.len(), self.read.table.files.len());
        let of = if read < all { format!(" of {all}") } else { String::new() };
        write!(f, "CsvScan: files={read}{of}, columns=[{}]", names.join(", "))?;
        match self.read.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for CsvScan {
    fn name(&self) -> &str {
        "CsvScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> PlanResult<SendableRecordBatchStream> {
        let rows = context.session_config().batch_size().max(1);
        if partition == 0 {
            let bytes = self.read.files.iter().map(|file| bytes_of(&self.read.table.files[*file]));
            let all = MetricBuilder::new(&self.read.metrics).global_gauge(BYTES_TO_READ);
            all.set(usize::try_from(bytes.sum::<u64>()).unwrap_or(usize::MAX));
        }
        if let Some(notes) = FileNotes::of(context.session_config()) {
            notes.watch(&self.read.table.named(), &self.read.own_skipped);
        }
        let batches = Batches::new(self.read.clone(), partition, rows);
        let stream = futures::stream::iter(batches.map(|batch| batch.map_err(Into::into)));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.read.schema.clone(), stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.read.metrics.clone_inner())
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> PlanResult<TreeNodeRecursion>,
    ) -> PlanResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}

/// What a partition has read.
struct ScanMetrics {
    /// Rows, and the time that they took.
    of_rows: BaselineMetrics,
    bytes: Count,
}

impl ScanMetrics {
    fn new(all: &ExecutionPlanMetricsSet, partition: usize) -> ScanMetrics {
        let bytes = MetricBuilder::new(all).counter("bytes_scanned", partition);
        ScanMetrics { of_rows: BaselineMetrics::new(all, partition), bytes }
    }
}

impl Scanned {
    /// The pieces of files that a partition reads. Where there are several partitions, all bytes
    /// are looked at once for that.
    fn pieces(&self, partition: usize) -> Result<Vec<(usize, FilePiece)>> {
        let files = self.files.iter().map(|number| (*number, &self.table.files[*number]));
        if self.count == 1 {
            return Ok(files.map(|(number, file)| (number, file.whole())).collect());
        }
        let total: u64 = files.clone().map(|(_, file)| bytes_of(file)).sum();
        let begins =
            |partition: usize| (u128::from(total) * partition as u128 / self.count as u128) as u64;
        let (begin, end) = (begins(partition), begins(partition + 1));
        let mut before = 0;
        let mut pieces = vec![];
        for (number, file) in files {
            let own = bytes_of(file);
            let (from, to) = (
                begin.clamp(before, before + own) - before,
                end.clamp(before, before + own) - before,
            );
            before += own;
            // Cut where blocks begin, whose states are known.
            let block = self.block as u64;
            let first = from.div_ceil(block);
            let cut = |at: u64| if at == own { own } else { (at.div_ceil(block) * block).min(own) };
            let range = cut(from)..cut(to);
            if range.is_empty() {
                continue;
            }
            let state = match first {
                0 => State::Row,
                _ => {
                    let states = file.states(&self.table.dialect, self.block)?;
                    states.get(first as usize).copied().unwrap_or(State::Row)
                }
            };
            pieces.push((
                number,
                FilePiece { range: file.body + range.start..file.body + range.end, state },
            ));
        }
        Ok(pieces)
    }

    /// The columns that are looked at besides those that are wanted: rows whose values do not fit
    /// them are left out, whichever columns are wanted.
    fn looked_at(&self) -> Vec<usize> {
        let table = &self.table;
        let may_misfit = |column: &usize| {
            !table.may_widen[*column] || table.schema.field(*column).data_type().is_string()
        };
        match table.dialect.misfits_are_skipped {
            true => (0..table.columns_of_files()).filter(may_misfit).collect(),
            false => vec![],
        }
    }

    /// The values of a file's rows that are read: those of the columns that are wanted, and behind
    /// them those that are looked at.
    fn pick(&self, file: &CsvFile) -> PickedValues {
        let of_files = self.table.columns_of_files();
        let looked_at = self.looked_at().into_iter().filter(|column| *column < of_files);
        file.layout.pick(&self.columns.iter().copied().chain(looked_at).collect::<Vec<_>>())
    }

    /// Leaves out the rows with values that do not fit.
    fn without_misfits(&self, picked: &PickedValues, block: &mut Block) {
        let looked_at = self.looked_at();
        if looked_at.is_empty() || picked.stride == 0 {
            return;
        }
        let bytes = Buffer::from_vec(std::mem::take(&mut block.bytes));
        let mut is_bad = vec![false; block.rows];
        for (column, slot) in looked_at.iter().zip(&picked.slots[self.columns.len()..]) {
            let Some(slot) = *slot else { continue };
            let values = BlockColumn {
                bytes: &bytes,
                text: None,
                spans: &block.spans,
                slot,
                stride: picked.stride,
                dialect: &self.table.dialect,
            };
            let data_type = self.table.schema.field(*column).data_type();
            let misfits = values.misfits(data_type, !self.table.given[*column]);
            misfits.into_iter().for_each(|row| is_bad[row] = true);
        }
        block.bytes = bytes.into_vec().unwrap_or_else(|bytes| bytes.to_vec());
        let bad = is_bad.iter().filter(|bad| **bad).count();
        if bad > 0 {
            let rows = block.spans.chunks_exact(picked.stride).zip(&is_bad);
            block.spans =
                rows.filter(|(_, bad)| !**bad).flat_map(|(row, _)| row.to_vec()).collect();
            block.rows -= bad;
            block.skipped += bad as u64;
        }
    }

    fn batch(&self, number: usize, picked: &PickedValues, mut block: Block) -> Result<RecordBatch> {
        self.without_misfits(picked, &mut block);
        self.skipped.fetch_add(block.skipped, Relaxed);
        self.own_skipped.fetch_add(block.skipped, Relaxed);
        let (rows, at, file) = (block.rows, block.at, &self.table.files[number]);
        let bytes = Buffer::from_vec(block.bytes);
        let has_text = self.schema.fields().iter().any(|field| field.data_type().is_string());
        let text = has_text.then(|| std::str::from_utf8(&bytes).ok()).flatten();
        let (stride, dialect) = (picked.stride, &self.table.dialect);
        let of_paths = self.table.paths.values(number);
        let mut arrays: Vec<ArrayRef> = vec![];
        for ((column, slot), field) in
            self.columns.iter().zip(&picked.slots).zip(self.schema.fields())
        {
            if let Some(value) = column.checked_sub(self.table.columns_of_files()) {
                arrays.push(of_paths[value].to_array_of_size(rows)?);
                continue;
            }
            let Some(slot) = *slot else {
                arrays.push(new_null_array(field.data_type(), rows));
                continue;
            };
            let values =
                BlockColumn { bytes: &bytes, text, spans: &block.spans, slot, stride, dialect };
            let is_inferred = !self.table.given[*column];
            let array = values.array(field.data_type(), is_inferred);
            arrays.push(array.map_err(|misfit| self.error(file, at, *column, &values, misfit))?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)?)
    }

    fn error(
        &self,
        file: &CsvFile,
        at: u64,
        column: usize,
        values: &BlockColumn<'_>,
        misfit: Misfit,
    ) -> Error {
        /// Characters of a value that are shown.
        const SHOWN: usize = 60;
        let field = self.table.schema.field(column);
        let shown = values.shown(misfit.row);
        let place = at + values.place(misfit.row) as u64;
        let number = file.layout.value(column).map_or(0, |value| value as u64 + 1);
        if misfit.is_no_text {
            return file.error(
                place,
                number,
                format!("column {:?}: {}", field.name(), no_utf8(&shown)),
            );
        }
        let text = String::from_utf8_lossy(&shown);
        let more = if text.chars().count() > SHOWN { "…" } else { "" };
        let text: String = text.chars().take(SHOWN).collect();
        let (name, data_type) = (field.name(), field.data_type());
        let message = format!("column {name:?}: {text:?}{more} does not fit its type {data_type}");
        let error = file.error(place, number, message);
        if self.table.may_widen[column] && matches!(error.kind(), ErrorKind::Parse { .. }) {
            self.table.note_misfit(column);
            return error.with_misfit(column);
        }
        error
    }
}

fn bytes_of(file: &CsvFile) -> u64 {
    let range = file.whole().range;
    range.end - range.start
}

/// The batches of a partition, up to the first error.
struct Batches {
    read: Arc<Scanned>,
    partition: usize,
    /// Of a batch that is handed on.
    rows: usize,
    /// The values that are read of the file whose number this is.
    picked: Option<(usize, PickedValues)>,
    /// What is left to read, last first; `None` before it was asked.
    pieces: Option<Vec<(usize, FilePiece)>>,
    /// What is handed on in slices.
    batch: Option<RecordBatch>,
    /// Rows that are still wanted.
    left: usize,
    metrics: ScanMetrics,
}

impl Batches {
    fn new(read: Arc<Scanned>, partition: usize, rows: usize) -> Batches {
        let left = read.limit.unwrap_or(usize::MAX);
        let metrics = ScanMetrics::new(&read.metrics, partition);
        Batches { read, partition, rows, picked: None, pieces: None, batch: None, left, metrics }
    }

    fn step(&mut self) -> Result<Option<RecordBatch>> {
        while self.left > 0 {
            if let Some(batch) = self.batch.take().filter(|batch| batch.num_rows() > 0) {
                let rows = batch.num_rows().min(self.rows).min(self.left);
                self.left -= rows;
                self.batch = Some(batch.slice(rows, batch.num_rows() - rows));
                return Ok(Some(batch.slice(0, rows)));
            }
            let read = self.read.clone();
            let pieces = match &mut self.pieces {
                Some(pieces) => pieces,
                none => none.insert(read.pieces(self.partition)?.into_iter().rev().collect()),
            };
            let Some((number, piece)) = pieces.pop() else { return Ok(None) };
            let file = &read.table.files[number];
            if self.picked.as_ref().is_none_or(|(of, _)| *of != number) {
                self.picked = Some((number, read.pick(file)));
            }
            let Some((_, picked)) = &self.picked else { return Ok(None) };
            let mut blocks =
                Blocks::new(file, &read.table.dialect, picked.wanted(), &piece, read.block)?;
            if let Some(block) = blocks.next()? {
                let rest = blocks.rest();
                self.metrics.bytes.add((rest.range.start - piece.range.start) as usize);
                pieces.push((number, rest));
                self.batch = Some(read.batch(number, picked, block)?);
            }
        }
        Ok(None)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let time = self.metrics.of_rows.elapsed_compute().clone();
        let timer = time.timer();
        let next = self.step();
        timer.done();
        match &next {
            Ok(Some(batch)) => self.metrics.of_rows.record_output(batch.num_rows()),
            Ok(None) => {}
            Err(_) => self.left = 0,
        }
        next.transpose()
    }
}
