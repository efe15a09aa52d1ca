//! Kept tables on several devices: each gets its part of the rows from the device that has them, and
//! keeps it until it needs the room.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::MemTable;
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use super::super::stored::{StoredBlock, downloaded, table_bytes};
use crate::column::Table;
use crate::error::{Error, Result};
use crate::io::{
    Chunk, ColumnRequest, KeptTable, Read, Source, To, WeakKeptTable, even_chunks, rows,
};

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

    fn kept(&self) -> Result<KeptTable> {
        let table = self.table.table();
        table.ok_or_else(|| Error::internal("a table that was dropped is read"))
    }
}

#[async_trait]
impl Source for KeptPart {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn chunks(&self) -> Vec<Chunk> {
        even_chunks(self.rows.len() as u64)
    }

    async fn read(&self, to: &To<'_>, wanted: &ColumnRequest<'_>) -> Result<Read> {
        let whole = self.kept()?.table()?;
        let schema = Arc::new(whole.schema.project(wanted.columns)?);
        let columns = wanted.columns.iter().map(|at| whole.columns[*at].clone()).collect();
        let some = Table::with_rows(&whole.device, schema.clone(), columns, whole.rows)?;
        let begin = rows_of(&self.chunks()[..wanted.chunks.start]);
        let count = rows_of(&self.chunks()[wanted.chunks.clone()]);
        let part = some.slice(self.rows.start + begin, count);
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
            1 => Ok(Read::new(count as u64, moved.remove(0).columns)),
            pieces => Err(Error::internal(format!("one table came back as {pieces}"))),
        }
    }

    /// Where a chunk finds no memory, its rows come from the host.
    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let whole = concat_batches(&self.schema, &self.kept()?.to_batches()?)?;
        let part = whole.slice(self.rows.start, self.rows.len());
        MemTable::try_new(self.schema.clone(), vec![vec![part]])?
            .scan(state, projection, filters, limit)
            .await
    }
}

fn rows_of(chunks: &[Chunk]) -> usize {
    rows(chunks).unwrap_or(0) as usize
}
