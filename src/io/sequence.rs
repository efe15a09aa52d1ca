//! Integers at equal distances as a source: `range(0, 10)`, `generate_series(1, 10)`.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use super::source::{Chunk, ColumnRequest, Read, Source, To};
use crate::column::{Column, EqualSteps, Facts, Stats};
use crate::error::Result;
use warpframe_device::ops::sequence::sequence;

/// Rows of a chunk at least, and chunks at most.
const CHUNK: u64 = 1 << 20;
const MOST_CHUNKS: u64 = 1 << 14;

/// A column of the values `start`, `start + step`, ….
#[derive(Debug)]
pub(crate) struct Sequence {
    steps: EqualSteps,
    /// As the CPU's operators read them.
    provider: Arc<dyn TableProvider>,
}

impl Sequence {
    /// The values from `start` on, without `end` unless that is included; a step that leads away
    /// from the end leads nowhere. `provider` has the same rows.
    pub(crate) fn new(
        [start, end, step]: [i64; 3],
        includes_end: bool,
        provider: Arc<dyn TableProvider>,
    ) -> Option<Sequence> {
        let (distance, step_by) = (i128::from(end) - i128::from(start), i128::from(step));
        let whole = distance.checked_div(step_by)?;
        let is_exact = distance % step_by == 0;
        let rows = match distance == 0 || (distance > 0) == (step > 0) {
            true => whole + i128::from(includes_end || !is_exact),
            false => 0,
        };
        Some(Sequence {
            steps: EqualSteps { start, step, rows: u64::try_from(rows).ok()? },
            provider,
        })
    }

    fn chunk_rows(&self) -> u64 {
        CHUNK.max(self.steps.rows.div_ceil(MOST_CHUNKS))
    }
}

#[async_trait]
impl Source for Sequence {
    fn schema(&self) -> SchemaRef {
        self.provider.schema()
    }

    fn chunks(&self) -> Vec<Chunk> {
        let (each, rows) = (self.chunk_rows(), self.steps.rows);
        let starts = (0..rows.div_ceil(each)).map(|chunk| chunk * each);
        starts.map(|start| Chunk { rows: Some(each.min(rows - start)), bytes: None }).collect()
    }

    fn facts(&self, _: usize) -> Option<Facts> {
        let rows = self.steps.rows as f64;
        let range = self.steps.range().map(|(low, high)| (low as f64, high as f64));
        Some(Facts { rows, distinct: rows.max(1.0), unique: true, range })
    }

    fn equal_steps(&self) -> Option<EqualSteps> {
        Some(self.steps)
    }

    async fn read(&self, to: &To<'_>, wanted: &ColumnRequest<'_>) -> Result<Read> {
        let of_chunk =
            |chunk: usize| (chunk as u64).saturating_mul(self.chunk_rows()).min(self.steps.rows);
        let steps = self.steps.slice(of_chunk(wanted.chunks.start)..of_chunk(wanted.chunks.end));
        let column = || -> Result<Column> {
            let data = Arc::new(sequence(to.device, steps.start, steps.step, steps.rows)?);
            let stats = Stats {
                range: steps.range(),
                unique: true,
                ascending: steps.step > 0,
                ..Stats::default()
            };
            Ok(Column { stats, ..Column::plain(DataType::Int64, steps.rows as usize, data, None) })
        };
        let columns = wanted.columns.iter().map(|_| column()).collect::<Result<_>>()?;
        Ok(Read::new(steps.rows, columns))
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        self.provider.scan(state, projection, filters, limit).await
    }
}
