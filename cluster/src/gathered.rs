//! Rows of a stage that are not parted: written as Ballista's own writer has them, each batch with
//! buffers of its own, encoded on several threads.
//!
//! ```text
//!   JOB/STAGE/PARTITION/data-TASK.arrow    a stream of Arrow IPC: schema, batches, end
//! ```
//!
//! Batches of a device's result are parts of one table, whose characters Ballista's writer writes
//! with each of them.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use ballista_core::JobId;
use ballista_core::execution_plans::{ShuffleWriterExec, create_shuffle_path};
use ballista_core::extension::SessionConfigExt;
use ballista_core::serde::protobuf::ShuffleWritePartition;
use ballista_core::utils::{collect_plan_metrics, create_write_options};
use ballista_executor::execution_engine::QueryStageExecutor;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, Metric, MetricValue, MetricsSet,
};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, displayable};
use futures::{StreamExt, TryStreamExt};
use warpframe::plugin::{StageCodec, of_own_buffers};
use warpframe::timeline::{Part, span};

/// Batches of some 65,000 rows that are encoded at once.
const AT_ONCE: usize = 8;

/// A task that writes the rows of partitions of a stage.
pub(crate) struct GatheredShuffle {
    /// Ballista's, which tells what it is.
    writer: Arc<dyn ExecutionPlan>,
    stage: Arc<dyn ExecutionPlan>,
    of: StageOfJob,
    /// The numbers of the partitions in the stage.
    partitions: Vec<usize>,
    work_dir: String,
    metrics: ExecutionPlanMetricsSet,
}

/// Which stage of a job it is.
struct StageOfJob {
    job: JobId,
    stage: usize,
}

impl GatheredShuffle {
    /// `None` where Ballista's own writer is to write the rows, as where the rows do not come from
    /// a stage of warpframe.
    pub(crate) fn of(
        plan: &Arc<dyn ExecutionPlan>,
        (job, stage): (&JobId, usize),
        partitions: &[usize],
        work_dir: &str,
    ) -> Option<GatheredShuffle> {
        let [input] = plan.children()[..] else { return None };
        let is_ours = plan.is::<ShuffleWriterExec>() && StageCodec::writes(input.as_ref());
        let count = input.output_partitioning().partition_count();
        (is_ours && count == partitions.len()).then(|| GatheredShuffle {
            writer: plan.clone(),
            stage: input.clone(),
            of: StageOfJob { job: job.clone(), stage },
            partitions: partitions.to_vec(),
            work_dir: work_dir.into(),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// Writes the rows of a partition, by its number in the plan.
    async fn write(
        &self,
        number: usize,
        task: usize,
        context: Arc<TaskContext>,
    ) -> Result<ShuffleWritePartition> {
        let (partition, file_id) = (self.partitions[number], Some(task as u64));
        let StageOfJob { job, stage } = &self.of;
        let path = create_shuffle_path(&self.work_dir, job, *stage, partition, file_id, false)?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let codec = context.session_config().ballista_config().shuffle_compression_codec()?;
        let messages = Messages::of(self.stage.schema(), create_write_options(codec)?)?;
        let (encoder, metrics) = (messages.clone(), BaselineMetrics::new(&self.metrics, number));
        let encoded = self.stage.execute(number, context)?.map(move |batch| {
            let encoder = encoder.clone();
            async move {
                let batch = batch?;
                let rows = batch.num_rows();
                let bytes = tokio::task::spawn_blocking(move || encoder.encoded(&batch)).await;
                let bytes = bytes.map_err(|error| DataFusionError::External(error.into()))??;
                Ok::<_, DataFusionError>((rows, bytes))
            }
        });
        let mut encoded = encoded.buffered(AT_ONCE);
        let (mut file, mut bytes) = (File::create(&path)?, 0);
        let mut write = |part: &[u8]| {
            bytes += part.len() as u64;
            file.write_all(part)
        };
        write(&messages.begin)?;
        let (mut batches, mut rows) = (0, 0);
        while let Some((of_batch, part)) = encoded.try_next().await? {
            let _span = span(Part::Exchange, || format!("write {} bytes", part.len()));
            write(&part[messages.begin.len()..])?;
            batches += 1;
            rows += of_batch as u64;
            metrics.record_output(of_batch);
        }
        write(&messages.end)?;
        Ok(ShuffleWritePartition {
            partition_id: partition as u64,
            num_batches: batches,
            num_rows: rows,
            num_bytes: bytes,
            file_id,
            is_sort_shuffle: false,
        })
    }
}

/// A stream of Arrow IPC in pieces: what begins and ends it, and batches between.
#[derive(Clone)]
struct Messages {
    schema: SchemaRef,
    options: IpcWriteOptions,
    begin: Arc<[u8]>,
    end: Arc<[u8]>,
}

impl Messages {
    fn of(schema: SchemaRef, options: IpcWriteOptions) -> Result<Messages> {
        let mut bytes = vec![];
        let mut writer = StreamWriter::try_new_with_options(&mut bytes, &schema, options.clone())?;
        let begin = writer.get_ref().len();
        writer.finish()?;
        drop(writer);
        let (begin, end) = bytes.split_at(begin);
        Ok(Messages { schema, options, begin: begin.into(), end: end.into() })
    }

    /// The messages of a batch, behind those that begin a stream.
    fn encoded(&self, batch: &RecordBatch) -> Result<Vec<u8>> {
        let _span = span(Part::Exchange, || format!("encode {} rows", batch.num_rows()));
        let (mut bytes, options) = (vec![], self.options.clone());
        let mut writer = StreamWriter::try_new_with_options(&mut bytes, &self.schema, options)?;
        writer.write(&of_own_buffers(batch)?)?;
        drop(writer);
        Ok(bytes)
    }
}

impl fmt::Debug for GatheredShuffle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for GatheredShuffle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        displayable(self.writer.as_ref()).indent(false).fmt(f)
    }
}

#[async_trait::async_trait]
impl QueryStageExecutor for GatheredShuffle {
    async fn execute_query_stage(
        &self,
        task: usize,
        context: Arc<TaskContext>,
    ) -> Result<Vec<ShuffleWritePartition>> {
        let all = (0..self.partitions.len()).map(|of| self.write(of, task, context.clone()));
        futures::future::try_join_all(all).await
    }

    fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
        let mut metrics = collect_plan_metrics(self.writer.as_ref());
        if let Some(writer) = metrics.first_mut() {
            let rows = Count::new();
            rows.add(self.metrics.clone_inner().output_rows().unwrap_or(0));
            writer.push(Arc::new(Metric::new(MetricValue::OutputRows(rows), Some(0))));
        }
        metrics
    }
}

#[cfg(test)]
mod tests {
    use ballista_executor::execution_engine::{DefaultExecutionEngine, ExecutionEngine};
    use datafusion::arrow::ipc::reader::StreamReader;
    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::execution::SessionStateBuilder;
    use datafusion::prelude::SessionContext;
    use tempfile::TempDir;
    use warpframe::plugin::{Plugin, WithWarpframe};
    use warpframe::{DeviceChoice, Session};

    use super::*;
    use crate::settings::session_config;

    /// The rows of a file, and how many batches it has.
    fn read(path: &std::path::Path) -> (String, usize) {
        let file = File::open(path).expect("a file");
        let batches = StreamReader::try_new(file, None).expect("a stream");
        let batches: Vec<_> = batches.collect::<std::result::Result<_, _>>().expect("batches");
        (pretty_format_batches(&batches).expect("text").to_string(), batches.len())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn files_have_what_ballista_writes_without_characters_of_others() {
        let sim = Session::builder().device(DeviceChoice::Sim).strict(true);
        let plugin = Plugin::new(sim).expect("a device").with_stages(true);
        let config = session_config().expect("settings").with_target_partitions(1);
        let state = SessionStateBuilder::new_with_default_features()
            .with_config(config.clone())
            .with_plugin(&plugin)
            .build();
        let context = SessionContext::new_with_state(state);
        for table in ["lineitem", "region"] {
            let path = format!("{}/../data/tpch/{table}.parquet", env!("CARGO_MANIFEST_DIR"));
            context.register_parquet(table, &path, Default::default()).await.expect("a table");
        }
        let sql = "SELECT l_orderkey + r_regionkey AS k, upper(l_comment) AS t \
            FROM lineitem CROSS JOIN region WHERE r_regionkey <";
        for (regions, batches) in [(3, 3), (0, 0)] {
            let sql = format!("{sql} {regions}");
            let frame = context.sql(&sql).await.expect("a query");
            let stage = frame.create_physical_plan().await.expect("a plan");
            assert!(StageCodec::writes(stage.as_ref()), "{stage:?}");
            let folders = [TempDir::new().expect("a folder"), TempDir::new().expect("a folder")];
            let [ours, theirs] = folders.each_ref().map(|of| of.path().to_str().expect("a path"));
            let job = JobId::new("job");
            let writer = ShuffleWriterExec::try_new(job.clone(), 1, stage, theirs.into());
            let writer: Arc<dyn ExecutionPlan> = Arc::new(writer.expect("a writer"));
            let shuffle = GatheredShuffle::of(&writer, (&job, 1), &[2], ours).expect("a stage");
            let written = shuffle.execute_query_stage(7, context.task_ctx()).await.expect("rows");
            let other = DefaultExecutionEngine::new()
                .create_query_stage_exec(job, 1, 7, vec![2], writer, theirs, &config)
                .expect("a stage");
            let others = other.execute_query_stage(7, context.task_ctx()).await.expect("rows");
            let [one, same] = [&written[..], &others[..]].map(|of| {
                let [of] = of else { panic!("one partition") };
                (of.partition_id, of.num_rows, of.file_id, of.is_sort_shuffle)
            });
            assert_eq!(one, same);
            let paths = folders.each_ref().map(|of| of.path().join("job/1/2/data-7.arrow"));
            let ((found, count), (expected, _)) = (read(&paths[0]), read(&paths[1]));
            assert_eq!(found, expected);
            assert_eq!(count, batches);
            let size = |path: &std::path::Path| std::fs::metadata(path).expect("a file").len();
            assert_eq!(written[0].num_bytes, size(&paths[0]));
            // A number, a view, and at most 43 characters.
            let most = written[0].num_rows * (8 + 16 + 43) + 4096;
            assert!(size(&paths[0]) < most, "{} bytes", size(&paths[0]));
            let metrics = shuffle.collect_plan_metrics();
            assert_eq!(metrics[0].output_rows(), Some(written[0].num_rows as usize));
        }
    }
}
