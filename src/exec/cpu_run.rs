//! A plan of the CPU engine that runs: what it has read so far, and what its operators took.

use std::sync::{Arc, Weak};
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::execution::SessionState;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{self, ExecutionPlan, displayable};
use futures::{Stream, StreamExt};
use parking_lot::Mutex;

use super::stops::{HostLimits, of_statement};
use crate::error::Result;
use crate::io::BYTES_TO_READ;

/// What an operator of the CPU engine did in a query; see
/// [`LazyFrame::profile`](crate::LazyFrame::profile).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperatorRun {
    /// How many operators stand between it and the query's result.
    pub depth: usize,
    /// What it does.
    pub operator: String,
    /// Rows that it yielded, if it counts them.
    pub rows: Option<u64>,
    /// How long it computed, all cores together, if it takes the time. What it waited is left out.
    pub time: Option<Duration>,
}

/// A plan in the statement of this thread.
pub(crate) struct CpuRun(Arc<dyn ExecutionPlan>);

/// The plan that the CPU engine runs now, for whoever watches.
#[derive(Debug, Clone, Default)]
pub(crate) struct CpuBoard(Arc<Mutex<Option<Weak<dyn ExecutionPlan>>>>);

impl CpuRun {
    /// A plan that is about to run. The board shows it until it is dropped, or another one comes.
    ///
    /// # Errors
    /// None but DataFusion's own.
    pub(crate) fn new(plan: Arc<dyn ExecutionPlan>, board: &CpuBoard) -> Result<CpuRun> {
        let plan = of_statement(plan)?;
        *board.0.lock() = Some(Arc::downgrade(&plan));
        Ok(CpuRun(plan))
    }

    /// All rows, in the order of the plan's partitions.
    ///
    /// # Errors
    /// Those of the plan; `Interrupted`.
    pub(crate) async fn collect(&self, state: &SessionState) -> Result<Vec<RecordBatch>> {
        let plan = self.0.clone();
        let collected = physical_plan::collect_partitioned(plan, state.task_ctx()).await;
        let limits = HostLimits::of(state);
        let partitions = collected.map_err(|error| limits.named(error.into()))?;
        Ok(partitions.into_iter().flatten().collect())
    }

    /// The rows as they come: those of several partitions in any order.
    ///
    /// # Errors
    /// Those of the plan; `Interrupted`.
    pub(crate) fn stream(
        &self,
        state: &SessionState,
    ) -> Result<impl Stream<Item = Result<RecordBatch>> + Send + Unpin + use<>> {
        let batches = physical_plan::execute_stream(self.0.clone(), state.task_ctx())?;
        let limits = HostLimits::of(state);
        Ok(batches.map(move |batch| batch.map_err(|error| limits.named(error.into()))))
    }

    /// What its operators did so far: each before those whose rows it takes.
    pub(crate) fn operators(&self) -> Vec<OperatorRun> {
        let mut operators = vec![];
        add_operators(&self.0, 0, &mut operators);
        operators
    }
}

fn add_operators(node: &Arc<dyn ExecutionPlan>, depth: usize, to: &mut Vec<OperatorRun>) {
    /// Hand on what they get, for reasons of the engine's.
    const UNSEEN: [&str; 4] = ["Fence", "GuardedScan", "Stop", "Unknown"];
    let is_seen = !UNSEEN.contains(&node.name());
    if is_seen {
        let metrics = node.metrics();
        let rows = metrics.as_ref().and_then(|metrics| metrics.output_rows());
        let nanos = metrics.as_ref().and_then(|metrics| metrics.elapsed_compute());
        to.push(OperatorRun {
            depth,
            operator: described(node.as_ref()),
            rows: rows.map(|rows| rows as u64),
            time: nanos.map(|nanos| Duration::from_nanos(nanos as u64)),
        });
    }
    for child in node.children() {
        add_operators(child, depth + usize::from(is_seen), to);
    }
}

/// An operator's line: its name in words, and its details without the numbers of columns.
fn described(node: &dyn ExecutionPlan) -> String {
    let line = displayable(node).one_line().to_string();
    let line = line.trim_end();
    let (name, details) = line.split_once(':').unwrap_or((line, ""));
    let name = match name.trim_end_matches("Exec") {
        "DataSource" | "CsvScan" => "Scan".to_string(),
        name => {
            let is_start = |(at, c): &(usize, char)| *at > 0 && c.is_uppercase();
            let mut words = name.to_string();
            let starts: Vec<usize> =
                name.char_indices().filter(is_start).map(|(at, _)| at).collect();
            for at in starts.into_iter().rev() {
                let first = words[at..].chars().next().map_or(0, char::len_utf8);
                let lower = words[at..at + first].to_lowercase();
                words.replace_range(at..at + first, &format!(" {lower}"));
            }
            words
        }
    };
    match without_column_numbers(details).as_str() {
        "" => name,
        details => format!("{name}:{details}"),
    }
}

/// `a@0` is `a`.
fn without_column_numbers(text: &str) -> String {
    let mut parts = text.split('@');
    let mut plain = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        plain.push_str(if rest.len() < part.len() { "" } else { "@" });
        plain.push_str(rest);
    }
    plain
}

impl CpuBoard {
    /// How much the plan that runs now has read of all that it reads, from 0 to 1; `None` where
    /// none runs, and where nobody knows how much there is.
    pub(crate) fn share_read(&self) -> Option<f64> {
        let plan = self.0.lock().as_ref()?.upgrade()?;
        let (mut read, mut all) = (0.0, 0.0);
        add_read(&plan, &mut read, &mut all)?;
        (all > 0.0).then(|| f64::clamp(read / all, 0.0, 1.0))
    }
}

/// Adds rows that the scans of a plan have read, and have to read. The rows of a file whose size
/// alone is known are as many as its bytes say; `None` where nothing is known.
fn add_read(node: &Arc<dyn ExecutionPlan>, read: &mut f64, all: &mut f64) -> Option<()> {
    /// Bytes of a file that count as much as a row.
    const ROW_BYTES: f64 = 64.0;
    let children = node.children();
    if !children.is_empty() {
        return children.into_iter().try_for_each(|child| add_read(child, read, all));
    }
    let metrics = node.metrics();
    let of = |name: &str| {
        let value = metrics.as_ref()?.sum_by_name(name)?.as_usize();
        Some(value as f64 / ROW_BYTES)
    };
    if let Some(bytes) = of(BYTES_TO_READ) {
        *read += of("bytes_scanned").unwrap_or(0.0).min(bytes);
        *all += bytes;
        return Some(());
    }
    let args = StatisticsArgs::new();
    let statistics = StatisticsContext::new().compute(node.as_ref(), &args).ok()?;
    let rows = *statistics.num_rows.get_value()? as f64;
    let done = metrics.as_ref().and_then(|metrics| metrics.output_rows()).unwrap_or(0) as f64;
    *read += done.min(rows);
    *all += rows;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_columns_are_left_out_and_other_signs_stay() {
        let plain = without_column_numbers(" expr=[a@0 as b, count(*)@12], s = me@home, x@");
        assert_eq!(plain, " expr=[a as b, count(*)], s = me@home, x@");
    }
}
