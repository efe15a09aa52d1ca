//! What the tasks of a stage read of other stages: rows in files of this machine by several threads
//! at once, all others as Ballista's reader does.
//!
//! Ballista's reader reads the files of a task one after the other, and copies their rows into
//! batches of some thousands. A device needs all rows before it begins.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use ballista_core::execution_plans::ShuffleReaderExec;
use ballista_core::execution_plans::sort_shuffle::{ShuffleIndex, get_index_path};
use ballista_core::extension::SessionConfigExt;
use ballista_core::serde::scheduler::PartitionLocation;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::reader::StreamDecoder;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, replace_children_if_necessary,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use tokio::sync::OnceCell;
use warpframe::plugin::StageCodec;
use warpframe::timeline::{Part, span};

/// Most bytes of broadcast rows that an executor keeps, and most exchanges that they are of. Plans
/// broadcast a gigabyte at most each, if nothing else is said (`docs/cluster.md`).
const KEPT: (u64, usize) = (2 << 30, 8);
/// Most threads that read a file, and fewest bytes for each: some milliseconds of work. A task
/// reads several files at once.
const READERS: usize = 4;
const READ_BYTES: usize = 16 << 20;
/// Ends a stream of Arrow IPC: a message without bytes.
const END_OF_STREAM: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Rows that each task of a stage gets whole. The tasks that an executor runs share them, and so
/// the device has them once.
#[derive(Debug, Default)]
pub(crate) struct Broadcasts(Mutex<Vec<Broadcast>>);

#[derive(Debug)]
struct Broadcast {
    locations: Vec<LocationKey>,
    /// Of its files.
    bytes: u64,
    rows: SharedRows,
}

type StageBatches = BoxStream<'static, Result<RecordBatch>>;
type SharedRows = Arc<OnceCell<Vec<RecordBatch>>>;

/// What tells the rows of a task from all others: job, stage, partition, task and executor.
#[derive(Debug, PartialEq, Eq)]
struct LocationKey(String, usize, usize, Option<u64>, String);

impl LocationKey {
    fn of(location: &PartitionLocation) -> LocationKey {
        let of = &location.partition_id;
        let executor = location.executor_meta.id.clone();
        LocationKey(of.job_id.to_string(), of.stage_id, of.partition_id, location.file_id, executor)
    }
}

impl Broadcasts {
    /// The rows of these locations, where a task has read them or will; `None` where they are too
    /// many to be kept, or nobody knows how many.
    fn rows(&self, locations: &[PartitionLocation]) -> Option<SharedRows> {
        let bytes = locations.iter().map(|of| of.partition_stats.num_bytes());
        let bytes: u64 = bytes.sum::<Option<u64>>()?;
        let locations: Vec<_> = locations.iter().map(LocationKey::of).collect();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept.iter().find(|of| of.locations == locations) {
            return Some(found.rows.clone());
        }
        // Rows of a job that is not the last one are seldom asked for again.
        let job = locations.first().map(|of| of.0.clone());
        kept.retain(|of| of.locations.first().map(|of| &of.0) == job.as_ref());
        let (most_bytes, most) = KEPT;
        if bytes > most_bytes {
            return None;
        }
        while kept.len() >= most || kept.iter().map(|of| of.bytes).sum::<u64>() + bytes > most_bytes
        {
            kept.remove(0);
        }
        let rows = SharedRows::default();
        kept.push(Broadcast { locations, bytes, rows: rows.clone() });
        Some(rows)
    }
}

/// The plan with an [`ExchangeExec`] in place of each reader of Ballista's that is an input of a
/// stage of warpframe.
///
/// # Errors
/// Of Ballista's operators.
pub(crate) fn with_readers(
    plan: Arc<dyn ExecutionPlan>,
    work_dir: &str,
    broadcasts: &Arc<Broadcasts>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let reader = |input: &Arc<dyn ExecutionPlan>, whole: bool| {
        let reader = input.downcast_ref::<ShuffleReaderExec>()?;
        let broadcasts = whole.then(|| broadcasts.clone());
        Some(Arc::new(ExchangeExec::new(reader, work_dir, broadcasts)) as Arc<dyn ExecutionPlan>)
    };
    let plan = plan.transform_up(|operator| {
        if !StageCodec::writes(operator.as_ref()) {
            return Ok(Transformed::no(operator));
        }
        let mut inputs = vec![];
        for input in operator.children() {
            let gathered = input.is::<CoalescePartitionsExec>() && input.fetch().is_none();
            inputs.push(match input.children()[..] {
                [beneath] if gathered => match reader(beneath, true) {
                    Some(reader) => replace_children_if_necessary(input.clone(), vec![reader])?,
                    None => input.clone(),
                },
                _ => reader(input, false).unwrap_or_else(|| input.clone()),
            });
        }
        Ok(Transformed::yes(replace_children_if_necessary(operator, inputs)?))
    })?;
    Ok(plan.data)
}

/// Reads rows of another stage.
struct ExchangeExec {
    of: Exchange,
    /// Where the rows of each partition are.
    partitions: Vec<Vec<PartitionLocation>>,
    /// Of rows that all tasks get, which are one partition.
    broadcasts: Option<Arc<Broadcasts>>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl ExchangeExec {
    fn new(
        reader: &ShuffleReaderExec,
        work_dir: &str,
        broadcasts: Option<Arc<Broadcasts>>,
    ) -> ExchangeExec {
        let (partitions, partitioning) = match &broadcasts {
            Some(_) => (vec![reader.partition.concat()], Partitioning::UnknownPartitioning(1)),
            None => (reader.partition.clone(), reader.properties().partitioning.clone()),
        };
        let (schema, stage, work_dir) = (reader.schema(), reader.stage_id, work_dir.into());
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            partitioning,
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        ExchangeExec {
            of: Exchange { stage, schema, work_dir },
            partitions,
            broadcasts,
            metrics: ExecutionPlanMetricsSet::new(),
            properties: Arc::new(properties),
        }
    }
}

/// The rows of a stage, and the folder where files of this machine have them.
#[derive(Clone)]
struct Exchange {
    stage: usize,
    schema: SchemaRef,
    work_dir: Arc<str>,
}

impl Exchange {
    /// The rows of these locations. Files are read side by side.
    async fn rows(
        self,
        locations: Vec<PartitionLocation>,
        context: Arc<TaskContext>,
    ) -> Result<StageBatches> {
        let is_remote = context.session_config().ballista_shuffle_reader_force_remote_read();
        let mut reading = vec![];
        for location in locations {
            let path = location.path(&self.work_dir)?;
            let of = location.is_sort_shuffle.then_some(location.partition_id.partition_id);
            let rows = tokio::task::spawn_blocking(move || match is_remote {
                true => None,
                false => rows_of_file(&path, of),
            });
            reading.push((location, rows));
        }
        let (mut here, mut elsewhere) = (vec![], vec![]);
        for (location, rows) in reading {
            match rows.await.map_err(|error| DataFusionError::External(error.into()))? {
                Some(rows) => here.extend(rows),
                None => elsewhere.push(location),
            }
        }
        let here = futures::stream::iter(here.into_iter().map(Ok));
        if elsewhere.is_empty() {
            return Ok(here.boxed());
        }
        let one = Partitioning::UnknownPartitioning(1);
        let reader = ShuffleReaderExec::try_new(self.stage, vec![elsewhere], self.schema, one)?;
        let reader = reader.with_work_dir(self.work_dir.to_string());
        Ok(here.chain(reader.execute(0, context)?).boxed())
    }
}

/// The rows in a file that a task of another stage wrote: those of a partition, or all. `None`
/// where there is no such file, or it is not as it was written: Ballista's reader says so in its
/// own way.
fn rows_of_file(path: &Path, partition: Option<usize>) -> Option<Vec<RecordBatch>> {
    let _span = span(Part::Exchange, || format!("read {partition:?} of {}", path.display()));
    let file = File::open(path).ok()?;
    let (begin, end) = match partition {
        Some(partition) => {
            let index = ShuffleIndex::read_from_file(&get_index_path(path)).ok()?;
            if partition >= index.partition_count() {
                return None;
            }
            let (begin, end) = index.get_partition_range(partition);
            (u64::try_from(begin).ok()?, u64::try_from(end).ok()?)
        }
        None => (0, file.metadata().ok()?.len()),
    };
    decoded(bytes_of_file(&file, begin, end)?.into()).ok()
}

/// The bytes of a range, read by several threads: to make the pages that they go to takes longer
/// than to copy them. `None` where the file does not have them.
fn bytes_of_file(file: &File, begin: u64, end: u64) -> Option<Vec<u8>> {
    if end > file.metadata().ok()?.len() {
        return None;
    }
    let len = usize::try_from(end.checked_sub(begin)?).ok()?;
    let (mut bytes, size) = (vec![0; len], len.div_ceil(READERS).max(READ_BYTES));
    if len <= size {
        return file.read_exact_at(&mut bytes, begin).ok().map(|()| bytes);
    }
    let read = std::thread::scope(|scope| {
        let mut reading = vec![];
        for (number, part) in bytes.chunks_mut(size).enumerate() {
            let at = begin + (number * size) as u64;
            reading.push(scope.spawn(move || file.read_exact_at(part, at)));
        }
        reading.into_iter().all(|part| matches!(part.join(), Ok(Ok(()))))
    });
    read.then_some(bytes)
}

/// The rows of streams of Arrow IPC that follow one another. Their buffers are those of `bytes`.
fn decoded(mut bytes: Buffer) -> Result<Vec<RecordBatch>> {
    let mut batches = vec![];
    let mut stream = StreamDecoder::new();
    while !bytes.is_empty() {
        // The decoder ends with its stream.
        if bytes.starts_with(&END_OF_STREAM) {
            bytes.advance(END_OF_STREAM.len());
            stream = StreamDecoder::new();
        } else if let Some(batch) = stream.decode(&mut bytes)? {
            batches.push(batch);
        }
    }
    stream.finish()?;
    Ok(batches)
}

impl fmt::Debug for ExchangeExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_as(DisplayFormatType::Default, f)
    }
}

impl DisplayAs for ExchangeExec {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "ExchangeExec: partitions={}", self.partitions.len())
    }
}

impl ExecutionPlan for ExchangeExec {
    fn name(&self) -> &str {
        "ExchangeExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let (of, schema) = (self.of.clone(), self.of.schema.clone());
        let locations = self.partitions.get(partition).cloned().unwrap_or_default();
        let kept = self.broadcasts.as_ref().and_then(|kept| kept.rows(&locations));
        let rows = async move {
            let Some(kept) = kept else { return of.rows(locations, context).await };
            let all = async { of.rows(locations, context).await?.try_collect().await };
            let rows: Vec<RecordBatch> = kept.get_or_try_init(|| all).await?.clone();
            Ok(futures::stream::iter(rows.into_iter().map(Ok)).boxed())
        };
        let counted = futures::stream::once(rows).try_flatten().inspect_ok(move |batch| {
            metrics.record_output(batch.num_rows());
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, counted)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}

#[cfg(test)]
mod tests {
    use ballista_core::JobId;
    use ballista_core::execution_plans::sort_shuffle::{SortShuffleConfig, SortShuffleWriterExec};
    use ballista_core::serde::scheduler::{
        ExecutorMetadata, ExecutorOperatingSystemSpecification, ExecutorSpecification, PartitionId,
        PartitionStats,
    };
    use ballista_executor::execution_engine::{DefaultExecutionEngine, ExecutionEngine};
    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::physical_plan::ExecutionPlanProperties;
    use datafusion::physical_plan::repartition::RepartitionExec;
    use datafusion::prelude::SessionContext;
    use tempfile::TempDir;
    use warpframe::plugin::{Plugin, WithWarpframe};
    use warpframe::{DeviceChoice, Session};

    use super::*;
    use crate::settings::session_config;

    const STAGE: usize = 1;
    const TASKS: usize = 3;

    fn context() -> SessionContext {
        let sim = Session::builder().device(DeviceChoice::Sim).strict(true);
        let plugin = Plugin::new(sim).expect("a device").with_stages(true);
        // Few partial results would be gathered, and not parted.
        let plugin = plugin.with_broadcast_limit(0);
        let config = session_config().expect("settings").with_target_partitions(TASKS);
        let state = datafusion::execution::SessionStateBuilder::new_with_default_features()
            .with_config(config)
            .with_plugin(&plugin)
            .build();
        SessionContext::new_with_state(state)
    }

    fn location(partition_id: usize, task: u64) -> PartitionLocation {
        PartitionLocation {
            map_partition_id: 0,
            partition_id: PartitionId { job_id: "job".into(), stage_id: STAGE, partition_id },
            executor_meta: ExecutorMetadata {
                id: "a".into(),
                host: "127.0.0.1".into(),
                // Nobody listens there.
                port: 1,
                grpc_port: 1,
                specification: ExecutorSpecification::default(),
                os_info: ExecutorOperatingSystemSpecification::default(),
            },
            partition_stats: PartitionStats::new(Some(1), Some(1), Some(100)),
            file_id: Some(task),
            is_sort_shuffle: true,
        }
    }

    /// A query of two stages: what its first one yields, parted by Ballista into files of two
    /// tasks, which have the same rows; the second one, over a reader of files of so many tasks;
    /// and the files' folder.
    async fn two_stages(
        context: &SessionContext,
        sql: &str,
        tasks: u64,
    ) -> (Arc<dyn ExecutionPlan>, TempDir) {
        let frame = context.sql(sql).await.expect("a query");
        let plan = frame.create_physical_plan().await.expect("a plan");
        let mut first = None;
        let second = plan.transform_up(|operator| {
            let Some(exchange) = operator.downcast_ref::<RepartitionExec>() else {
                return Ok(Transformed::no(operator));
            };
            first = Some((exchange.input().clone(), exchange.partitioning().clone()));
            let of = |partition| (0..tasks).map(|task| location(partition, task)).collect();
            let partitions = (0..TASKS).map(of).collect();
            let (schema, by) = (operator.schema(), exchange.partitioning().clone());
            let reader = ShuffleReaderExec::try_new(STAGE, partitions, schema, by)?;
            Ok(Transformed::yes(Arc::new(reader) as Arc<dyn ExecutionPlan>))
        });
        let (second, folder) = (second.expect("a plan").data, TempDir::new().expect("a folder"));
        let (input, by) = first.expect("an exchange");
        let (job, work_dir) = (JobId::new("job"), folder.path().to_str().expect("a path"));
        for task in [0, 1] {
            let writer = SortShuffleWriterExec::try_new(
                job.clone(),
                STAGE,
                input.clone(),
                work_dir.into(),
                by.clone(),
                SortShuffleConfig::default(),
            );
            let all = (0..input.output_partitioning().partition_count()).collect();
            let (writer, config) = (Arc::new(writer.expect("a writer")), context.copied_config());
            let stage = DefaultExecutionEngine::new()
                .create_query_stage_exec(job.clone(), STAGE, task, all, writer, work_dir, &config)
                .expect("a stage");
            stage.execute_query_stage(task, context.task_ctx()).await.expect("files");
        }
        (second, folder)
    }

    async fn rows(plan: Arc<dyn ExecutionPlan>, context: &SessionContext) -> Result<Vec<String>> {
        let batches = datafusion::physical_plan::collect(plan, context.task_ctx()).await?;
        let text = pretty_format_batches(&batches)?.to_string();
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        lines.sort_unstable();
        Ok(lines)
    }

    fn readers(plan: &Arc<dyn ExecutionPlan>) -> usize {
        let beneath = plan.children().into_iter().map(readers).sum::<usize>();
        beneath + usize::from(plan.is::<ExchangeExec>())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn stages_read_the_rows_of_all_files() {
        let context = context();
        let path = format!("{}/../data/tpch/lineitem.parquet", env!("CARGO_MANIFEST_DIR"));
        context.register_parquet("lineitem", &path, Default::default()).await.expect("a table");
        let sql = |sums: &str| {
            format!("SELECT l_shipmode, l_suppkey, {sums} FROM lineitem GROUP BY 1, 2")
        };
        // Sums of the files of two tasks are twice those of one.
        let twice = sql("2 * sum(l_linenumber), 2 * count(*), min(l_comment)");
        let expected = context.sql(&twice).await.expect("a query").create_physical_plan().await;
        let expected = rows(expected.expect("a plan"), &context).await.expect("rows");
        let plain = sql("sum(l_linenumber), count(*), min(l_comment)");
        let (plan, folder) = two_stages(&context, &plain, 2).await;
        let work_dir = folder.path().to_str().expect("a path");
        let plan = with_readers(plan, work_dir, &Arc::default()).expect("a plan");
        assert_eq!(readers(&plan), 1, "{plan:?}");
        let found = rows(plan, &context).await.expect("rows");
        // The names of the columns differ.
        let values = |lines: &[String]| -> Vec<Vec<String>> {
            let cells = |line: &String| line.split('|').map(|of| of.trim().into()).collect();
            let is_row = |line: &&String| line.starts_with('|') && !line.contains("l_suppkey");
            lines.iter().filter(is_row).map(cells).collect()
        };
        assert!(found.len() > 100);
        let (mut found, mut expected) = (values(&found), values(&expected));
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn rows_that_are_in_no_file_are_asked_of_their_executor() {
        let context = context();
        let path = format!("{}/../data/tpch/nation.parquet", env!("CARGO_MANIFEST_DIR"));
        context.register_parquet("nation", &path, Default::default()).await.expect("a table");
        let sql = "SELECT n_regionkey, count(*) FROM nation GROUP BY 1";
        let (plan, folder) = two_stages(&context, sql, 3).await;
        let work_dir = folder.path().to_str().expect("a path");
        let plan = with_readers(plan, work_dir, &Arc::default()).expect("a plan");
        let error = rows(plan, &context).await.expect_err("there are no files of a third task");
        assert!(error.to_string().contains("127.0.0.1"), "{error}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn tasks_share_the_rows_of_a_broadcast() {
        let context = context();
        let path = format!("{}/../data/tpch/nation.parquet", env!("CARGO_MANIFEST_DIR"));
        context.register_parquet("nation", &path, Default::default()).await.expect("a table");
        let sql = "SELECT n_regionkey, count(*) FROM nation GROUP BY 1";
        let (_, folder) = two_stages(&context, sql, 2).await;
        let work_dir = folder.path().to_str().expect("a path");
        let frame = context.sql(sql).await.expect("a query");
        let schema: SchemaRef = frame.schema().inner().clone();
        let broadcasts = Arc::new(Broadcasts::default());
        let read = |task| {
            let partitions = (0..TASKS).map(|partition| vec![location(partition, task)]).collect();
            let by = Partitioning::UnknownPartitioning(TASKS);
            let reader = ShuffleReaderExec::try_new(STAGE, partitions, schema.clone(), by);
            let reader = reader.expect("a reader");
            let exchange = ExchangeExec::new(&reader, work_dir, Some(broadcasts.clone()));
            datafusion::physical_plan::collect(Arc::new(exchange), context.task_ctx())
        };
        let (one, same) = (read(0).await.expect("rows"), read(0).await.expect("rows"));
        assert_eq!(one.iter().map(RecordBatch::num_rows).sum::<usize>(), 5);
        let first = |rows: &[RecordBatch]| rows[0].column(0).clone();
        assert!(Arc::ptr_eq(&first(&one), &first(&same)));
        // Those of another task are others.
        let other = read(1).await.expect("rows");
        assert!(!Arc::ptr_eq(&first(&one), &first(&other)));
        // What nobody knows the bytes of is not kept.
        let mut unknown = location(0, 0);
        unknown.partition_stats = PartitionStats::new(None, None, None);
        assert!(broadcasts.rows(&[unknown]).is_none());
        assert_eq!(other.iter().map(RecordBatch::num_rows).sum::<usize>(), 5);
    }
}
