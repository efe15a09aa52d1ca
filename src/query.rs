//! What a session and its frames share: they say what is wanted, and it is planned and run here.
//!
//! ```text
//!   SQL text ──▶ recipe ◀── verbs                                recipe.rs, verb.rs
//!   recipe ── found, or optimized and cut ──▶ prepared plan      plans.rs, planning.rs
//!   prepared plan over tables ── exec ──▶ answer                 run.rs, threads.rs
//! ```

mod agreed;
mod builder;
mod calls;
mod handed;
mod hash;
mod join;
mod on_cpu;
mod once;
mod ordered;
mod planning;
mod plans;
mod recipe;
mod run;
mod shared;
mod streamed;
mod threads;
mod verb;

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::datasource::provider_as_source;
use datafusion::execution::context::SessionContext;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, UNNAMED_TABLE};

pub(crate) use self::calls::over_all;
pub(crate) use self::handed::HandedRows;
pub(crate) use self::plans::Plans;
pub(crate) use self::recipe::Recipe;
pub(crate) use self::shared::{SHARE_OF_ROWS, SharedRows};
pub(crate) use self::threads::aside;
pub(crate) use self::verb::Verb;
use crate::column::Table;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{CpuBoard, DividedResult, Engine, Runtime};
use crate::io::{
    DOWNLOAD_ROWS, DeviceTable, KeptTable, Memory, Snapshot, SourceTable, of_their_types,
};
use crate::plan::{MOST_NESTED, PlanTable};
use warpframe_device::Device;
use warpframe_device::interrupt::Switch;
use warpframe_device::timeline;

/// DataFusion's context, the device, and the plans that are kept.
pub(crate) struct Core {
    pub(crate) context: SessionContext,
    pub(crate) runtime: Runtime,
    /// What runs plans, where there is a device.
    pub(crate) engine: Option<Engine>,
    pub(crate) plans: Plans,
    /// Stops statements.
    pub(crate) switch: Arc<Switch>,
    /// What the CPU engine runs.
    pub(crate) cpu_board: CpuBoard,
    /// Refuses optimized plans that would give wrong answers, with the reason.
    pub(crate) refuse: fn(&LogicalPlan) -> Result<()>,
}

/// Where rows lie.
#[derive(Debug, Clone)]
pub(crate) enum Data {
    /// With a device, which may have moved them to the host for want of room.
    Device(KeptTable),
    Host(Arc<[RecordBatch]>),
    /// On the host, as a device had them: more than fits there.
    Divided(DividedResult),
}

impl Data {
    pub(crate) fn rows(&self) -> usize {
        match self {
            Data::Device(table) => table.rows(),
            Data::Host(batches) => batches.iter().map(RecordBatch::num_rows).sum(),
            Data::Divided(rows) => rows.rows(),
        }
    }
}

/// What a plan yields.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) schema: SchemaRef,
    pub(crate) data: Data,
}

impl Answer {
    pub(crate) fn of_table(table: Table) -> Answer {
        Answer { schema: table.schema.clone(), data: Data::Device(KeptTable::new(table)) }
    }
}

/// So that a program's file of spans is whole when its last session ends.
impl Drop for Core {
    fn drop(&mut self) {
        // There is nobody to tell that the file cannot be written.
        let _ = timeline::write();
    }
}

impl Core {
    /// The device that runs queries, if there is one. With a cluster there is none: plans are only
    /// made as for a device.
    pub(crate) fn device(&self) -> Option<&Device> {
        let engine = self.engine().filter(|engine| engine.cluster.is_none());
        engine.map(|engine| &engine.device)
    }

    /// The engine of that device.
    pub(crate) fn engine(&self) -> Option<&Engine> {
        self.engine.as_ref().map(Engine::first)
    }

    pub(crate) fn state(&self) -> SessionState {
        self.context.state()
    }

    /// A table of rows that lie on this device or on the host.
    pub(crate) fn provider_of(
        &self,
        schema: &SchemaRef,
        data: &Data,
    ) -> Result<Arc<dyn TableProvider>> {
        match data {
            // Rows on another session's device are strangers to ours.
            Data::Device(table)
                if self.device().is_some_and(|device| device.same(table.device())) =>
            {
                Ok(Arc::new(DeviceTable { table: table.clone() }))
            }
            Data::Device(table) => {
                self.memory_table(table.to_batches()?, Some(table.schema().clone()))
            }
            Data::Host(batches) => self.memory_table(batches.to_vec(), Some(schema.clone())),
            Data::Divided(rows) => {
                let batches = rows.batches(DOWNLOAD_ROWS).collect::<Result<_>>()?;
                self.memory_table(batches, Some(schema.clone()))
            }
        }
    }

    /// A table of rows that lie on this device or on the host, as plans read it.
    pub(crate) fn source_of(&self, schema: &SchemaRef, data: &Data) -> Result<PlanTable> {
        Ok(provider_as_source(self.provider_of(schema, data)?))
    }

    /// A table of batches of one schema, which is `schema` where there need not be any.
    pub(crate) fn memory_table(
        &self,
        batches: Vec<RecordBatch>,
        schema: Option<SchemaRef>,
    ) -> Result<Arc<dyn TableProvider>> {
        let schema = match (schema, batches.first()) {
            (Some(schema), _) => schema,
            (None, Some(batch)) => batch.schema(),
            (None, None) => {
                return Err(Error::unsupported(
                    "a table of no batches",
                    "an empty batch is needed for its schema",
                ));
            }
        };
        if let Some(other) = batches.iter().find(|batch| batch.schema().fields() != schema.fields())
        {
            return Err(ErrorKind::TypeMismatch {
                what: "batches of one table".into(),
                expected: schema.to_string(),
                found: other.schema().to_string(),
            }
            .into());
        }
        for batch in &batches {
            of_their_types(batch)?;
        }
        // The CPU's operators work on partitions side by side; these hold the rows in order.
        let partitions = self.device().map_or(self.state().config().target_partitions(), |_| 1);
        let memory = Memory::new(schema, batches, partitions)?;
        Ok(Arc::new(SourceTable::new(Snapshot::of(Arc::new(memory)), None, self.most_filters())))
    }

    /// Most filters that scans of the CPU engine take. Devices filter themselves.
    pub(crate) fn most_filters(&self) -> usize {
        self.engine().map_or(MOST_NESTED, |_| 0)
    }
}

/// The plan that reads a table without a name.
pub(crate) fn scan(source: &PlanTable) -> Result<LogicalPlan> {
    Ok(LogicalPlanBuilder::scan(UNNAMED_TABLE, source.clone(), None)?.build()?)
}
