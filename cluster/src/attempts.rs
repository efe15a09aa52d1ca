//! Rows that a stage wrote twice.
//!
//! A task hands on where its rows are as soon as it is done, while other tasks of its stage run.
//! Where an executor is lost that had rows for this stage, the scheduler (Ballista 55.0.0,
//! `rollback_running_stage`) runs all of its tasks again, and whoever reads the stage is told of
//! the rows of both attempts. A task has the same number in both, so the rows of the last attempt
//! are kept. Limits: an executor runs one partition a task, and a task that ran again within an
//! attempt has a new number, whose rows stay if its stage then begins anew.

use std::collections::HashMap;
use std::hash::Hash;

use ballista_core::execution_plans::ShuffleReaderExec;
use ballista_core::serde::protobuf;
use ballista_core::serde::scheduler::PartitionLocation;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;

/// Locations without those of earlier attempts. `of` yields the partition and the task that wrote a
/// location's rows, if they are known.
fn last_attempts<L, K: Eq + Hash>(
    locations: impl IntoIterator<Item = L>,
    of: impl Fn(&L) -> Option<K>,
) -> Vec<L> {
    let (mut last, mut places) = (vec![], HashMap::new());
    for location in locations {
        let place = match of(&location) {
            Some(key) => *places.entry(key).or_insert(last.len()),
            None => last.len(),
        };
        match last.get_mut(place) {
            Some(earlier) => *earlier = location,
            None => last.push(location),
        }
    }
    last
}

/// The rows of a job, each once.
pub(crate) fn last_of_job(
    locations: Vec<protobuf::PartitionLocation>,
) -> Vec<protobuf::PartitionLocation> {
    last_attempts(locations, |location| {
        let partition = location.partition_id.as_ref()?;
        Some((partition.stage_id, partition.partition_id, location.file_id?))
    })
}

/// An operator that reads rows of a stage, each once; other operators as they are.
///
/// # Errors
/// Of the operator made anew.
pub(crate) fn of_reader(operator: &dyn ExecutionPlan) -> Result<Option<ShuffleReaderExec>> {
    let Some(reader) = operator.downcast_ref::<ShuffleReaderExec>() else { return Ok(None) };
    let last = |locations: &Vec<PartitionLocation>| {
        last_attempts(locations.iter().cloned(), |location| {
            Some((location.partition_id.partition_id, location.file_id?))
        })
    };
    let partitions: Vec<_> = reader.partition.iter().map(last).collect();
    let count =
        |partitions: &[Vec<PartitionLocation>]| partitions.iter().map(Vec::len).sum::<usize>();
    if count(&partitions) == count(&reader.partition) {
        return Ok(None);
    }
    let (schema, partitioning) = (reader.schema(), reader.properties().partitioning.clone());
    Ok(Some(match &reader.coalesce {
        Some(coalesce) => ShuffleReaderExec::try_new_coalesced(
            reader.stage_id,
            partitions,
            coalesce.clone(),
            schema,
            partitioning,
        )?,
        None if reader.broadcast => ShuffleReaderExec::try_new_broadcast(
            reader.stage_id,
            partitions.concat(),
            schema,
            reader.upstream_partition_count,
        )?,
        None => ShuffleReaderExec::try_new(reader.stage_id, partitions, schema, partitioning)?,
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ballista_core::serde::BallistaPhysicalExtensionCodec;
    use ballista_core::serde::scheduler::{
        ExecutorMetadata, ExecutorOperatingSystemSpecification, ExecutorSpecification, PartitionId,
        PartitionStats,
    };
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::execution::TaskContext;
    use datafusion::physical_plan::Partitioning;
    use datafusion_proto::physical_plan::{DefaultPhysicalProtoConverter, PhysicalExtensionCodec};

    use super::*;
    use crate::ClusterCodec;

    #[test]
    fn of_each_task_the_last_attempt_counts() {
        // Partition, task, attempt.
        let locations =
            [(0, Some(1), 'a'), (1, Some(1), 'a'), (0, Some(2), 'a'), (0, Some(0), 'b')];
        let again = [
            (0, Some(1), 'b'),
            (1, Some(1), 'b'),
            (0, Some(2), 'b'),
            (0, None, 'x'),
            (0, None, 'y'),
        ];
        let found = last_attempts(locations.into_iter().chain(again), |location| {
            Some((location.0, location.1?))
        });
        let expected = [
            (0, Some(1), 'b'),
            (1, Some(1), 'b'),
            (0, Some(2), 'b'),
            (0, Some(0), 'b'),
            (0, None, 'x'),
            (0, None, 'y'),
        ];
        assert_eq!(found, expected);
    }

    fn location(partition_id: usize, task: u64, executor: &str) -> PartitionLocation {
        let executor_meta = ExecutorMetadata {
            id: executor.into(),
            host: "127.0.0.1".into(),
            port: 1,
            grpc_port: 2,
            specification: ExecutorSpecification::default(),
            os_info: ExecutorOperatingSystemSpecification::default(),
        };
        PartitionLocation {
            map_partition_id: task as usize,
            partition_id: PartitionId { job_id: "j".into(), stage_id: 1, partition_id },
            executor_meta,
            partition_stats: PartitionStats::new(Some(1), Some(1), Some(8)),
            file_id: Some(task),
            is_sort_shuffle: false,
        }
    }

    /// Two tasks of three were done when the stage began anew.
    #[test]
    fn executors_read_the_rows_of_a_task_once() {
        let of = |partition: usize| {
            let first = [1, 2].map(|task| location(partition, task, "a"));
            let again = [0, 1, 2].map(|task| location(partition, task, "b"));
            first.into_iter().chain(again).collect::<Vec<_>>()
        };
        let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, true)]));
        let two = Partitioning::UnknownPartitioning(2);
        let readers = [
            ShuffleReaderExec::try_new(1, vec![of(0), of(1)], schema.clone(), two),
            ShuffleReaderExec::try_new_broadcast(1, [of(0), of(1)].concat(), schema, 2),
        ];
        let converter = DefaultPhysicalProtoConverter {};
        for reader in readers {
            let reader = Arc::new(reader.expect("a reader"));
            let is_broadcast = reader.broadcast;
            let mut bytes = vec![];
            let ballista = BallistaPhysicalExtensionCodec::default();
            ballista.try_encode(reader, &mut bytes, &converter).expect("it is written");
            let codec = ClusterCodec::default();
            let read = codec.try_decode(&bytes, &[], &TaskContext::default(), &converter);
            let read = read.expect("it is read");
            let found = read.downcast_ref::<ShuffleReaderExec>().expect("a reader");
            let each: Vec<usize> = found.partition.iter().map(Vec::len).collect();
            assert_eq!(each, if is_broadcast { vec![6] } else { vec![3, 3] });
            assert_eq!(found.broadcast, is_broadcast);
            let mut all = found.partition.iter().flatten();
            assert!(all.all(|of| of.executor_meta.id == "b"), "{:?}", found.partition);
        }
    }
}
