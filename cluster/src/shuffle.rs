//! Rows between stages, parted on the device and written as Ballista's sort-based shuffle has them,
//! so that its readers read them.
//!
//! ```text
//!   JOB/STAGE/TASK/data.arrow        [ schema ][ rows for task 0 ][ rows for task 1 ] …
//!   JOB/STAGE/TASK/data.arrow.index  where the rows for each task begin, and where the last ones end
//! ```
//!
//! The schema and the rows for each task are a stream of Arrow IPC each; there is none where a task
//! gets no rows. Parts are the same as Ballista's own writer makes, which writes what the device
//! cannot part: tasks of one stage may be written by either.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ballista_core::JobId;
use ballista_core::execution_plans::ShuffleReaderExec;
use ballista_core::execution_plans::sort_shuffle::{
    ShuffleIndex, SortShuffleWriterExec, get_index_path,
};
use ballista_core::extension::SessionConfigExt;
use ballista_core::serde::protobuf::ShuffleWritePartition;
use ballista_core::utils::{collect_plan_metrics, create_write_options};
use ballista_executor::execution_engine::QueryStageExecutor;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::{Count, Metric, MetricValue, MetricsSet};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, displayable};
use futures::{Stream, StreamExt, TryStreamExt};
use warpframe::plugin::{PartedStage, bytes_of, of_own_buffers};
use warpframe::timeline::{Part, span};

/// A task that writes rows which its device parts.
pub(crate) struct DeviceShuffle {
    writer: Arc<dyn ExecutionPlan>,
    rows: PartedStage,
    schema: SchemaRef,
    /// Of the stage.
    partitions: usize,
    /// Of the next stage.
    tasks: usize,
    /// Of the task's files.
    folder: PathBuf,
    /// How many rows it wrote.
    written: AtomicU64,
}

/// Which task of a job it is.
pub(crate) struct TaskId {
    pub(crate) job: JobId,
    pub(crate) stage: usize,
    pub(crate) task: usize,
}

impl DeviceShuffle {
    /// `None` where Ballista's own writer is to write the rows.
    ///
    /// # Errors
    /// Of Ballista's operators.
    pub(crate) fn of(
        plan: &Arc<dyn ExecutionPlan>,
        of: &TaskId,
        work_dir: &str,
    ) -> Result<Option<DeviceShuffle>> {
        let Some(writer) = plan.downcast_ref::<SortShuffleWriterExec>() else { return Ok(None) };
        let by = writer.shuffle_output_partitioning().clone();
        let [stage] = plan.children()[..] else { return Ok(None) };
        let stage = stage.clone().transform(|operator| {
            Ok(match operator.downcast_ref::<ShuffleReaderExec>() {
                Some(reader) => Transformed::yes(
                    Arc::new(reader.with_work_dir(work_dir.into())) as Arc<dyn ExecutionPlan>
                ),
                None => Transformed::no(operator),
            })
        })?;
        let Some(rows) = PartedStage::of(&stage.data, &by) else { return Ok(None) };
        let folder = [work_dir, of.job.as_str(), &of.stage.to_string(), &of.task.to_string()];
        Ok(Some(DeviceShuffle {
            schema: stage.data.schema(),
            partitions: stage.data.output_partitioning().partition_count(),
            tasks: by.partition_count(),
            writer: Arc::new(SortShuffleWriterExec::try_new(
                of.job.clone(),
                of.stage,
                stage.data,
                work_dir.into(),
                by,
                writer.config().clone(),
            )?),
            rows,
            folder: folder.iter().collect(),
            written: AtomicU64::new(0),
        }))
    }
}

impl fmt::Debug for DeviceShuffle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for DeviceShuffle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        displayable(self.writer.as_ref()).indent(false).fmt(f)
    }
}

/// Rows for one task, as they are in the file.
struct RowsOfTask {
    task: usize,
    batches: u64,
    rows: u64,
    bytes: Vec<u8>,
}

/// Tasks whose rows are encoded at once: so many lie in memory beside the rows.
const AT_ONCE: usize = 4;

/// The rows for each task that gets some, task by task, encoded on several threads.
fn encoded(
    rows: Vec<(usize, RecordBatch)>,
    schema: SchemaRef,
    options: IpcWriteOptions,
) -> impl Stream<Item = Result<RowsOfTask>> {
    let of_tasks: Vec<_> =
        rows.chunk_by(|(one, _), (other, _)| one == other).map(Vec::from).collect();
    let encoding = futures::stream::iter(of_tasks).map(move |of_task| {
        let (schema, options) = (schema.clone(), options.clone());
        let encoding =
            tokio::task::spawn_blocking(move || RowsOfTask::of(of_task, &schema, options));
        async { encoding.await.map_err(|error| DataFusionError::External(error.into()))? }
    });
    encoding.buffered(AT_ONCE)
}

impl RowsOfTask {
    /// Rows that are all for one task.
    fn of(
        of_task: Vec<(usize, RecordBatch)>,
        schema: &SchemaRef,
        options: IpcWriteOptions,
    ) -> Result<RowsOfTask> {
        let task = of_task.first().map_or(0, |(task, _)| *task);
        let _span = span(Part::Exchange, || format!("encode for {task}"));
        let own = of_task.iter().map(|(_, batch)| of_own_buffers(batch));
        let own = own.collect::<warpframe::Result<Vec<_>>>()?;
        let size = own.iter().map(bytes_of).sum();
        let mut part = RowsOfTask { task, batches: 0, rows: 0, bytes: Vec::with_capacity(size) };
        let mut writer = StreamWriter::try_new_with_options(&mut part.bytes, schema, options)?;
        for batch in &own {
            writer.write(batch)?;
            part.batches += 1;
            part.rows += batch.num_rows() as u64;
        }
        writer.finish()?;
        drop(writer);
        Ok(part)
    }
}

#[async_trait::async_trait]
impl QueryStageExecutor for DeviceShuffle {
    async fn execute_query_stage(
        &self,
        task: usize,
        context: Arc<TaskContext>,
    ) -> Result<Vec<ShuffleWritePartition>> {
        let codec = context.session_config().ballista_config().shuffle_compression_codec()?;
        let options = create_write_options(codec)?;
        let mut rows = vec![];
        // A task's plan has only the partitions of the stage that are the task's.
        for partition in 0..self.partitions {
            rows.extend(self.rows.rows(partition, context.clone()).await?);
        }
        rows.sort_by_key(|(of_task, _)| *of_task);
        let mut header = vec![];
        StreamWriter::try_new_with_options(&mut header, &self.schema, options.clone())?.finish()?;
        std::fs::create_dir_all(&self.folder)?;
        let path = self.folder.join("data.arrow");
        let (mut file, mut index) = (File::create(&path)?, ShuffleIndex::new(self.tasks));
        file.write_all(&header)?;
        let (mut at, mut next, mut written) = (header.len(), 0, vec![]);
        let mut parts = encoded(rows, self.schema.clone(), options);
        while let Some(part) = parts.try_next().await? {
            let _span = span(Part::Exchange, || format!("write {} bytes", part.bytes.len()));
            file.write_all(&part.bytes)?;
            for empty in next..=part.task {
                index.set_offset(empty, at as i64);
            }
            next = part.task + 1;
            at += part.bytes.len();
            written.push(ShuffleWritePartition {
                partition_id: part.task as u64,
                num_batches: part.batches,
                num_rows: part.rows,
                num_bytes: part.bytes.len() as u64,
                file_id: Some(task as u64),
                is_sort_shuffle: true,
            });
        }
        for empty in next..self.tasks {
            index.set_offset(empty, at as i64);
        }
        index.set_total_length(at as i64);
        index
            .write_to_file(&get_index_path(&path))
            .map_err(|error| DataFusionError::External(error.into()))?;
        self.written.fetch_add(written.iter().map(|part| part.num_rows).sum(), Relaxed);
        Ok(written)
    }

    fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
        let mut metrics = collect_plan_metrics(self.writer.as_ref());
        if let Some(writer) = metrics.first_mut() {
            let rows = Count::new();
            rows.add(self.written.load(Relaxed) as usize);
            writer.push(Arc::new(Metric::new(MetricValue::OutputRows(rows), Some(0))));
        }
        metrics
    }
}

#[cfg(test)]
mod tests {
    use ballista_core::execution_plans::sort_shuffle::{
        SortShuffleConfig, stream_sort_shuffle_partition,
    };
    use ballista_executor::execution_engine::{DefaultExecutionEngine, ExecutionEngine};
    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::execution::SessionStateBuilder;
    use datafusion::physical_plan::Partitioning;
    use datafusion::physical_plan::repartition::RepartitionExec;
    use datafusion::prelude::SessionContext;
    use tempfile::TempDir;
    use warpframe::plugin::{Plugin, WithWarpframe};
    use warpframe::{DeviceChoice, Session};

    use super::*;
    use crate::settings::session_config;

    /// The first exchange by keys of a plan.
    fn exchange(plan: &Arc<dyn ExecutionPlan>) -> Option<(Arc<dyn ExecutionPlan>, Partitioning)> {
        match plan.downcast_ref::<RepartitionExec>() {
            Some(of) => Some((of.input().clone(), of.partitioning().clone())),
            None => plan.children().into_iter().find_map(exchange),
        }
    }

    /// The rows for each task, in order.
    async fn read(folder: &std::path::Path, tasks: usize) -> Vec<String> {
        let path = folder.join("job/1/0/data.arrow");
        let mut all = vec![];
        for task in 0..tasks {
            let rows = stream_sort_shuffle_partition(&path, &get_index_path(&path), task);
            let batches: Vec<_> = rows.expect("a file").try_collect().await.expect("rows");
            let text = pretty_format_batches(&batches).expect("text").to_string();
            let mut lines: Vec<&str> = text.lines().collect();
            lines.sort_unstable();
            all.push(lines.join("\n"));
        }
        all
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn ballista_reads_what_the_device_parts_and_has_the_same_parts() {
        let sim = Session::builder().device(DeviceChoice::Sim).strict(true);
        let plugin = Plugin::new(sim).expect("a device").with_stages(true);
        // Few partial results would be gathered, and not parted.
        let plugin = plugin.with_broadcast_limit(0);
        let config = session_config().expect("settings").with_target_partitions(5);
        let state = SessionStateBuilder::new_with_default_features()
            .with_config(config.clone())
            .with_plugin(&plugin)
            .build();
        let context = SessionContext::new_with_state(state);
        for table in ["lineitem", "orders"] {
            let path = format!("{}/../data/tpch/{table}.parquet", env!("CARGO_MANIFEST_DIR"));
            context.register_parquet(table, &path, Default::default()).await.expect("a table");
        }
        for (sql, at_least) in [
            ("SELECT l_suppkey, sum(l_quantity), min(l_comment) FROM lineitem GROUP BY 1", 100),
            ("SELECT o_clerk, o_orderdate, count(*) FROM orders GROUP BY 1, 2", 1000),
            ("SELECT o_clerk, count(*) FROM orders WHERE o_orderkey < 0 GROUP BY 1", 0),
            // One task of the next stage gets all rows.
            ("SELECT o_orderstatus, count(*) FROM orders WHERE o_orderstatus = 'P' GROUP BY 1", 1),
        ] {
            let frame = context.sql(sql).await.expect("a query");
            let plan = frame.create_physical_plan().await.expect("a plan");
            let (stage, by) = exchange(&plan).expect("an exchange");
            let (job, tasks) = (JobId::new("job"), by.partition_count());
            let writer: Arc<dyn ExecutionPlan> = Arc::new(
                SortShuffleWriterExec::try_new(
                    job.clone(),
                    1,
                    stage,
                    String::new(),
                    by,
                    SortShuffleConfig::default(),
                )
                .expect("a writer"),
            );
            let folders = [TempDir::new().expect("a folder"), TempDir::new().expect("a folder")];
            let [ours, theirs] = folders.each_ref().map(|of| of.path().to_str().expect("a path"));
            let id = TaskId { job: job.clone(), stage: 1, task: 0 };
            let shuffle = DeviceShuffle::of(&writer, &id, ours).expect("operators");
            let shuffle = shuffle.expect("rows that the device parts");
            let written = shuffle.execute_query_stage(0, context.task_ctx()).await.expect("rows");
            let all = (0..writer.children()[0].output_partitioning().partition_count()).collect();
            let other = DefaultExecutionEngine::new()
                .create_query_stage_exec(job, 1, 0, all, writer, theirs, &config)
                .expect("a stage");
            let others = other.execute_query_stage(0, context.task_ctx()).await.expect("rows");

            let counts = |parts: &[ShuffleWritePartition]| {
                let mut counts: Vec<_> =
                    parts.iter().map(|part| (part.partition_id, part.num_rows)).collect();
                counts.sort_unstable();
                counts
            };
            assert_eq!(counts(&written), counts(&others), "{sql}");
            let bytes = |parts: &[ShuffleWritePartition]| {
                parts.iter().map(|part| part.num_bytes).sum::<u64>()
            };
            let (ours_has, theirs_have) = (bytes(&written), bytes(&others));
            assert!(
                ours_has <= theirs_have / 4 * 5 + 1024,
                "{ours_has} bytes, not {theirs_have}: {sql}"
            );
            assert!(counts(&written).iter().map(|of| of.1).sum::<u64>() >= at_least, "{sql}");
            let [found, expected] = [folders[0].path(), folders[1].path()];
            assert_eq!(read(found, tasks).await, read(expected, tasks).await, "{sql}");
            let metrics = shuffle.collect_plan_metrics();
            let rows = metrics[0].output_rows().unwrap_or_default() as u64;
            assert_eq!(rows, written.iter().map(|part| part.num_rows).sum::<u64>());
        }
    }
}
