//! Scans of DataFusion's tables in memory for the device. A scan of DataFusion's copies the list of
//! all batches and adds up their sizes whenever a query is planned; of thousands of batches that
//! takes longer than the query. This one looks at the batches where they are.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::MemTable;
use datafusion::datasource::memory::PartitionData;
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::{StreamExt, TryStreamExt, stream};

/// A scan of some columns of all batches of a table.
#[derive(Debug)]
pub(crate) struct MemoryScan {
    /// Of all columns.
    table: SchemaRef,
    partitions: Vec<PartitionData>,
    columns: Vec<usize>,
    properties: Arc<PlanProperties>,
}

impl MemoryScan {
    /// Of a table whose partitions are in no order; `None` of others.
    ///
    /// # Errors
    /// Of a column that the table has not.
    pub(crate) fn of(
        table: &dyn TableProvider,
        columns: &[usize],
    ) -> PlanResult<Option<MemoryScan>> {
        let any: &dyn Any = table;
        let Some(memory) = any.downcast_ref::<MemTable>() else { return Ok(None) };
        if !memory.sort_order.lock().is_empty() {
            return Ok(None);
        }
        let schema = Arc::new(memory.schema().project(columns)?);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(memory.batches.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(Some(MemoryScan {
            table: memory.schema(),
            partitions: memory.batches.clone(),
            columns: columns.to_vec(),
            properties: Arc::new(properties),
        }))
    }

    /// The schema of all columns of the table.
    pub(super) fn table(&self) -> &SchemaRef {
        &self.table
    }

    pub(super) fn partitions(&self) -> Vec<&PartitionData> {
        self.partitions.iter().collect()
    }
}

impl DisplayAs for MemoryScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.columns.iter().map(|at| self.table.field(*at).name().as_str());
        let names = fields.collect::<Vec<_>>().join(", ");
        write!(f, "{}: partitions={}, columns=[{names}]", self.name(), self.partitions.len())
    }
}

impl ExecutionPlan for MemoryScan {
    fn name(&self) -> &str {
        "MemoryScan"
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
        _: Arc<TaskContext>,
    ) -> PlanResult<SendableRecordBatchStream> {
        let (data, columns) = (self.partitions.get(partition).cloned(), self.columns.clone());
        let rows = async move {
            let mut some: Vec<RecordBatch> = vec![];
            if let Some(data) = data {
                let batches = data.read().await;
                some.reserve(batches.len());
                for batch in batches.iter() {
                    some.push(batch.project(&columns)?);
                }
            }
            PlanResult::<Vec<RecordBatch>, DataFusionError>::Ok(some)
        };
        let rows = stream::once(rows).map_ok(|rows| stream::iter(rows).map(Ok)).try_flatten();
        let rows = RecordBatchStreamAdapter::new(self.schema(), rows.boxed());
        Ok(Box::pin(cooperative(rows)))
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> PlanResult<TreeNodeRecursion>,
    ) -> PlanResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}
