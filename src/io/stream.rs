//! Rows that DataFusion's operators yield on the host, brought to the device as they come.
//!
//! ```text
//!   partition 0   batch batch batch ─▶ piece on the device   batch batch ─▶ piece ┐
//!   partition 1   batch batch ─▶ piece   …                                        ├─▶ columns
//!   …                                                                             ┘
//! ```
//!
//! Partitions run side by side, on all cores. Columns of values of one width are uploaded by pieces
//! of some million rows, whose batches are dropped, and put one behind the other on the device.
//! Strings, lists and structs are kept until all are there: how they lie on the device depends on
//! all of them.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::execution::TaskContext;
use datafusion::execution::session_state::SessionState;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect_partitioned};
use futures::future::ready;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use tokio::task::JoinSet;

use super::guard::{guard, unpanicked};
use super::source::{Source, To};
use crate::column::{Column, Repr, Table, value_type};
use crate::error::{Error, Result};
use warpframe_device::Device;
use warpframe_device::interrupt;

/// Rows of a partition that are uploaded together.
const PIECE_ROWS: usize = 1 << 20;

/// Rows of a provider's table.
#[derive(Debug)]
pub(super) struct ProviderRows<'a> {
    pub(super) provider: &'a Arc<dyn TableProvider>,
    pub(super) columns: &'a [usize],
    /// So many are enough.
    pub(super) limit: Option<u64>,
}

impl ProviderRows<'_> {
    /// What reads them, cut into as many parts as there are cores where that keeps their order.
    pub(super) async fn scan(&self, state: &SessionState) -> Result<Arc<dyn ExecutionPlan>> {
        let limit = self.limit.and_then(|limit| usize::try_from(limit).ok());
        let scan = self.provider.scan(state, Some(&self.columns.to_vec()), &[], limit).await?;
        let cut = match limit {
            None => {
                scan.repartitioned(state.config().target_partitions(), state.config_options())?
            }
            Some(_) => None,
        };
        Ok(guard(cut.unwrap_or(scan))?)
    }
}

/// Reads rows of files into device memory.
///
/// # Errors
/// A file's bad content, without the file's name; of the device.
pub(super) async fn read(to: &To<'_>, rows: &ProviderRows<'_>) -> Result<(u64, Vec<Column>)> {
    unpanicked(async {
        let scan = rows.scan(to.state).await?;
        let schema = Arc::new(rows.provider.schema().project(rows.columns)?);
        upload(to.device, schema, scan, to.state.task_ctx(), |_| Ok(())).await
    })
    .await
}

/// Columns of a source as its reader on the host yields them, one partition after the other.
///
/// # Errors
/// Of the reader that is made; the stream's are of the rows' content.
pub(crate) async fn batches_in_order(
    source: &dyn Source,
    state: &SessionState,
    columns: &[usize],
) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let (source, rows) = match source.within() {
        Some((all, rows)) => (all.as_ref(), Some(rows)),
        None => (source, None),
    };
    let scan = source.scan(state, Some(&columns.to_vec()), &[], None).await?;
    let batches = partitions_in_order(scan, state.task_ctx())?;
    Ok(match rows {
        Some(rows) => some_rows(batches, rows),
        None => batches,
    })
}

/// Those of the rows that are of a range.
fn some_rows(
    batches: BoxStream<'static, Result<RecordBatch>>,
    rows: Range<u64>,
) -> BoxStream<'static, Result<RecordBatch>> {
    let some = move |begin: &mut u64, batch: Result<RecordBatch>| {
        // Nobody reads what is behind.
        let is_wanted = *begin < rows.end;
        let some = batch.map(|batch| {
            let end = *begin + batch.num_rows() as u64;
            let (from, to) = (rows.start.clamp(*begin, end), rows.end.clamp(*begin, end));
            let some = batch.slice((from - *begin) as usize, to.saturating_sub(from) as usize);
            *begin = end;
            some
        });
        ready(is_wanted.then_some(some))
    };
    batches.scan(0, some).boxed()
}

/// The batches of a plan, one partition after the other.
///
/// # Errors
/// Of the plan.
pub(crate) fn partitions_in_order(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let plan = guard(plan)?;
    let partitions = 0..plan.output_partitioning().partition_count();
    let batches = move |number| {
        let batches = plan.execute(number, context.clone()).map_err(Error::from);
        futures::future::ready(
            batches.map(|batches| batches.map(|batch| batch.map_err(Error::from))),
        )
    };
    Ok(futures::stream::iter(partitions).then(batches).try_flatten().boxed())
}

/// Reads columns into host memory, in the order of the rows.
///
/// # Errors
/// A file's bad content, without the file's name.
pub(super) async fn read_all(
    provider: &Arc<dyn TableProvider>,
    state: &SessionState,
    columns: &[usize],
) -> Result<Vec<RecordBatch>> {
    unpanicked(async {
        let scan = ProviderRows { provider, columns, limit: None }.scan(state).await?;
        let partitions = collect_partitioned(scan, state.task_ctx()).await?;
        Ok::<_, Error>(partitions.into_iter().flatten().collect())
    })
    .await
}

/// Runs a plan, and brings its rows to the device in the order of its partitions: their number, and
/// the columns. Each batch is shown to `check` first.
///
/// # Errors
/// Of the plan, of `check`, of the device.
pub(crate) async fn upload(
    device: &Device,
    schema: SchemaRef,
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    check: impl Fn(&RecordBatch) -> Result<()> + Clone + Send + 'static,
) -> Result<(u64, Vec<Column>)> {
    let partitions = plan.output_partitioning().partition_count();
    let mut tasks = JoinSet::new();
    let statement = interrupt::current();
    for number in 0..partitions {
        let mut partition = Partition::new(device, &schema);
        let (plan, context, check, statement) =
            (plan.clone(), context.clone(), check.clone(), statement.clone());
        let work = async move {
            let mut batches = plan.execute(number, context)?;
            while let Some(batch) = batches.next().await {
                let batch = batch?;
                check(&batch)?;
                partition.push(batch)?;
            }
            Ok::<_, Error>((number, partition))
        };
        tasks.spawn(async move {
            match &statement {
                Some(statement) => statement.around(work).await,
                None => work.await,
            }
        });
    }
    let mut done: Vec<Option<Partition>> = (0..partitions).map(|_| None).collect();
    while let Some(task) = tasks.join_next().await {
        let (number, partition) = match task {
            Ok(done) => done?,
            Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
            Err(failed) => {
                return Err(Error::internal(format!("a partition was not read: {failed}")));
            }
        };
        done[number] = Some(partition);
    }
    finish(device, &schema, done.into_iter().flatten().collect())
}

/// A partition while it is read.
#[derive(Debug)]
struct Partition {
    device: Device,
    schema: SchemaRef,
    /// Indices of the columns that are uploaded by pieces.
    in_pieces: Vec<usize>,
    pieces: Vec<Table>,
    /// Batches of whose columns nothing was uploaded yet.
    waiting: Vec<RecordBatch>,
    waiting_rows: usize,
    /// The other columns of the batches that were uploaded.
    rest: Vec<RecordBatch>,
}

impl Partition {
    fn new(device: &Device, schema: &SchemaRef) -> Partition {
        let is_in_pieces = |at: &usize| {
            let repr = Repr::of(value_type(schema.field(*at).data_type()));
            !matches!(repr, None | Some(Repr::View | Repr::List | Repr::Struct))
        };
        let in_pieces = (0..schema.fields().len()).filter(is_in_pieces).collect();
        let (device, schema) = (device.clone(), schema.clone());
        Partition {
            device,
            schema,
            in_pieces,
            pieces: vec![],
            waiting: vec![],
            waiting_rows: 0,
            rest: vec![],
        }
    }

    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        self.waiting_rows += batch.num_rows();
        self.waiting.push(batch);
        if self.waiting_rows >= PIECE_ROWS { self.flush() } else { Ok(()) }
    }

    fn others(&self) -> Vec<usize> {
        (0..self.schema.fields().len()).filter(|at| !self.in_pieces.contains(at)).collect()
    }

    /// Uploads what waits.
    fn flush(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_rows = 0;
        let others = self.others();
        let mut numbers = vec![];
        for batch in waiting {
            numbers.push(batch.project(&self.in_pieces)?);
            self.rest.push(batch.project(&others)?);
        }
        let schema = Arc::new(self.schema.project(&self.in_pieces)?);
        self.pieces.push(Table::from_batches(&self.device, schema, &numbers)?);
        Ok(())
    }
}

/// The columns of all partitions.
fn finish(
    device: &Device,
    schema: &SchemaRef,
    mut partitions: Vec<Partition>,
) -> Result<(u64, Vec<Column>)> {
    if partitions.iter().all(|partition| partition.pieces.is_empty()) {
        let batches: Vec<RecordBatch> =
            partitions.into_iter().flat_map(|partition| partition.waiting).collect();
        let table = Table::from_batches(device, schema.clone(), &batches)?;
        return Ok((table.rows as u64, table.columns));
    }
    partitions.iter_mut().try_for_each(Partition::flush)?;
    let in_pieces =
        partitions.first().map(|partition| partition.in_pieces.clone()).unwrap_or_default();
    let others = partitions.first().map(Partition::others).unwrap_or_default();
    let (mut pieces, mut rest) = (vec![], vec![]);
    for partition in partitions {
        pieces.extend(partition.pieces);
        rest.extend(partition.rest);
    }
    let rows: usize = pieces.iter().map(|piece| piece.rows).sum();
    let mut found: Vec<Option<Column>> = schema.fields().iter().map(|_| None).collect();
    let mut by_column: Vec<Vec<Column>> = in_pieces.iter().map(|_| vec![]).collect();
    for piece in pieces {
        by_column.iter_mut().zip(piece.columns).for_each(|(of, column)| of.push(column));
    }
    let mut joined = vec![];
    for of in by_column {
        // A column's pieces go when it is whole, before the next one takes memory.
        let pieces: Vec<&Column> = of.iter().collect();
        joined.push(Column::concatenated(device, &pieces[0].dtype, &pieces, rows)?);
    }
    Column::survey(device, joined.iter_mut())?;
    in_pieces.iter().zip(joined).for_each(|(at, column)| found[*at] = Some(column));
    let table = Table::from_batches(device, Arc::new(schema.project(&others)?), &rest)?;
    others.iter().zip(table.columns).for_each(|(at, column)| found[*at] = Some(column));
    Ok((rows as u64, found.into_iter().flatten().collect()))
}
