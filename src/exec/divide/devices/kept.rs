//! Kept tables on several devices: each gets its part of the rows from the device that has them, and
//! keeps it until it needs the room.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use super::super::stored::{StoredBlock, downloaded, table_bytes};
use crate::column::Table;
use crate::error::{Error, Result};
use crate::io::{Chunk, ColumnRequest, KeptTable, Read, Source, To, WeakKeptTable};

/// Rows of a table that a device keeps, for any device.
#[derive(Debug)]
pub(super) struct KeptPart {
    /// Who keeps it may drop it: what is known of its parts does not keep it.
    table: WeakKeptTable,
    schema: SchemaRef,
    rows: Range<usize>,
}

impl KeptPart {
    /// One of so many equal parts.
    pub(super) fn of(table: &KeptTable, (part, of): (usize, usize)) -> KeptPart {
        let at = |part: usize| (table.rows() as u128 * part as u128 / of as u128) as usize;
        let (schema, rows) = (table.schema().clone(), at(part)..at(part + 1));
        KeptPart { table: table.downgrade(), schema, rows }
    }
}

#[async_trait]
impl Source for KeptPart {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn chunks(&self) -> Vec<Chunk> {
        vec![Chunk { rows: Some(self.rows.len() as u64), bytes: None }]
    }

    async fn read(&self, to: &To<'_>, wanted: &ColumnRequest<'_>) -> Result<Read> {
        let table = self.table.table();
        let table = table.ok_or_else(|| Error::internal("a table that was dropped is read"))?;
        let whole = table.table()?;
        let schema = Arc::new(whole.schema.project(wanted.columns)?);
        let columns = wanted.columns.iter().map(|at| whole.columns[*at].clone()).collect();
        let some = Table::with_rows(&whole.device, schema.clone(), columns, whole.rows)?;
        let part = some.slice(self.rows.start, self.rows.len());
        if whole.device.same(to.device) {
            return Ok(Read::new(part.rows as u64, part.columns));
        }
        whole.device.count_sent(table_bytes(&part), to.device);
        if let Some(part) = part.on_peer(to.device)? {
            return Ok(Read::new(part.rows as u64, part.columns));
        }
        let StoredBlock::Host(rows, _) = downloaded(&part)? else {
            return Err(Error::internal("rows were not downloaded"));
        };
        let mut moved = Table::restored(to.device, &schema, &[rows])?;
        match moved.len() {
            1 => Ok(Read::new(self.rows.len() as u64, moved.remove(0).columns)),
            pieces => Err(Error::internal(format!("one table came back as {pieces}"))),
        }
    }

    async fn scan(
        &self,
        _: &dyn Session,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        Err(Error::internal("a device's part of a table is read by the CPU engine").into())
    }
}
