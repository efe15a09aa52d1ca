//! What reading a file may do to the process: nothing but fail, by the file's name.
//!
//! The crates that read files panic over some that are damaged, and hand on what is not: decimals
//! of more digits than their type has. Scans are guarded here, where DataFusion's plans end.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result as PlanResult;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::parquet::errors::ParquetError;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{FutureExt, Stream};

use crate::column::decimal_bound;
use crate::error::{Error, ErrorKind, Fault, Result};

/// A file's error whose file is not known yet.
fn damaged(message: String) -> Error {
    ErrorKind::File { path: PathBuf::new(), message }.into()
}

/// What a panic said.
fn told(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no word of why")
}

/// The error of what panicked.
pub(crate) fn of_panic(what: &str, panic: &(dyn Any + Send)) -> Error {
    ErrorKind::Plan { message: format!("{what} panicked: {}", told(panic)), location: None }.into()
}

fn of_reader(panic: Box<dyn Any + Send>) -> Error {
    damaged(format!("it cannot be read: its reader panicked: {}", told(panic.as_ref())))
}

/// Calls what may panic over a file's bytes.
pub(super) fn caught<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(read) => read,
        Err(panic) => Err(ParquetError::External(Box::new(of_reader(panic)))),
    }
}

/// Waits for what may panic over a file's bytes.
pub(super) async fn unpanicked<T, E: Into<Error>>(
    reading: impl Future<Output = Result<T, E>>,
) -> Result<T> {
    match AssertUnwindSafe(reading).catch_unwind().await {
        Ok(read) => read.map_err(Into::into),
        Err(panic) => Err(of_reader(panic)),
    }
}

/// An error that came out of reading files is about a file.
pub(super) fn of_content(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Plan { message, .. } => damaged(message.clone()),
        ErrorKind::Arithmetic { .. } => damaged(error.to_string()),
        ErrorKind::Unsupported { what, why } => damaged(format!("{what}: {why}")),
        ErrorKind::Io { path, source } if path.as_os_str().is_empty() => {
            damaged(source.to_string())
        }
        _ => error,
    }
}

/// A scan of files that fails where it would have panicked, and over values that are not of their
/// type.
#[derive(Debug)]
struct GuardedScan(Arc<dyn ExecutionPlan>);

/// The plan with guarded scans.
///
/// # Errors
/// None of its own.
pub(super) fn guard(plan: Arc<dyn ExecutionPlan>) -> PlanResult<Arc<dyn ExecutionPlan>> {
    let guarded = plan.transform_up(|node| match node.downcast_ref::<DataSourceExec>() {
        Some(scan) if scan.data_source().downcast_ref::<FileScanConfig>().is_some() => {
            Ok(Transformed::yes(Arc::new(GuardedScan(node)) as _))
        }
        _ => Ok(Transformed::no(node)),
    })?;
    Ok(guarded.data)
}

/// [`guard`] as DataFusion's last rule.
pub(crate) fn guard_rule() -> Arc<dyn PhysicalOptimizerRule + Send + Sync> {
    #[derive(Debug)]
    struct Guard;

    impl PhysicalOptimizerRule for Guard {
        fn optimize(
            &self,
            plan: Arc<dyn ExecutionPlan>,
            _config: &ConfigOptions,
        ) -> PlanResult<Arc<dyn ExecutionPlan>> {
            guard(plan)
        }

        fn name(&self) -> &str {
            "guard_scans"
        }

        fn schema_check(&self) -> bool {
            true
        }
    }
    Arc::new(Guard)
}

impl DisplayAs for GuardedScan {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "GuardedScan")
    }
}

impl ExecutionPlan for GuardedScan {
    fn name(&self) -> &str {
        "GuardedScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.0.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.0]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(GuardedScan(children.pop().unwrap_or_else(|| self.0.clone()))))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> PlanResult<SendableRecordBatchStream> {
        let open = AssertUnwindSafe(|| self.0.execute(partition, context));
        let inner = match catch_unwind(open) {
            Ok(inner) => inner.map_err(|error| of_content(error.into()))?,
            Err(panic) => return Err(of_reader(panic).into()),
        };
        let schema = inner.schema();
        Ok(Box::pin(GuardedStream { inner: Some(inner), schema }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.0.metrics()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> PlanResult<TreeNodeRecursion>,
    ) -> PlanResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}

/// The batches of a guarded scan, up to the first that fails.
struct GuardedStream {
    inner: Option<SendableRecordBatchStream>,
    schema: SchemaRef,
}

impl Stream for GuardedStream {
    type Item = PlanResult<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(inner) = &mut self.inner else { return Poll::Ready(None) };
        let next = match catch_unwind(AssertUnwindSafe(|| inner.as_mut().poll_next(context))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(next)) => next.map(|batch| {
                let batch = batch.map_err(Error::from);
                batch.and_then(|batch| of_their_types(&batch).map(|()| batch)).map_err(of_content)
            }),
            Err(panic) => Some(Err(of_reader(panic))),
        };
        match next {
            Some(Ok(batch)) => Poll::Ready(Some(Ok(batch))),
            end => {
                // A reader that panicked may panic again when it ends.
                let inner = self.inner.take();
                let _ = catch_unwind(AssertUnwindSafe(|| drop(inner)));
                Poll::Ready(end.map(|error| Err(error.expect_err("it is no batch").into())))
            }
        }
    }
}

impl RecordBatchStream for GuardedStream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Whether all values of a batch are of their types. Arrow does not check the digits of decimals,
/// and those who read files do not either. The parquet crate (59) checks strings of the DELTA
/// encodings for UTF-8 as if they were one string: a character may be cut by the end of a value.
///
/// # Errors
/// [`ErrorKind::Arithmetic`] with the column and a value; [`ErrorKind::File`] of a file that is not
/// named yet, with the column, where a string is no UTF-8.
pub(crate) fn of_their_types(batch: &RecordBatch) -> Result<()> {
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        if let Some((value, dtype)) = beyond(column.as_ref()) {
            let account =
                format!("column {:?}: unscaled value {value} is outside {dtype}", field.name());
            return Err(Error::arithmetic(Fault::Overflow, account));
        }
        if cuts_a_character(column.as_ref()) {
            return Err(damaged(format!(
                "column {:?}: a string is no UTF-8: it begins within a character",
                field.name()
            )));
        }
    }
    Ok(())
}

/// Whether a string begins within a character. Where all strings together are UTF-8, each is, if
/// none does.
fn cuts_a_character(array: &dyn Array) -> bool {
    let is_within = |byte: u8| byte & 0xC0 == 0x80;
    match array.data_type() {
        // The length lies in the low 32 bits of a view, behind it the first byte.
        DataType::Utf8View => {
            let views = array.as_string_view().views();
            views.iter().any(|view| *view as u32 > 0 && is_within((view >> 32) as u8))
        }
        DataType::List(_) => cuts_a_character(array.as_list::<i32>().values().as_ref()),
        DataType::LargeList(_) => cuts_a_character(array.as_list::<i64>().values().as_ref()),
        DataType::FixedSizeList(..) => {
            cuts_a_character(array.as_fixed_size_list().values().as_ref())
        }
        DataType::Map(..) => cuts_a_character(array.as_map().entries()),
        DataType::Struct(_) => {
            array.as_struct().columns().iter().any(|column| cuts_a_character(column.as_ref()))
        }
        DataType::Dictionary(..) => cuts_a_character(array.as_any_dictionary().values().as_ref()),
        _ => false,
    }
}

/// A decimal of more digits than its type has, with the type.
fn beyond(array: &dyn Array) -> Option<(i128, DataType)> {
    match array.data_type() {
        dtype @ DataType::Decimal128(..) => {
            let (bound, decimals) = (decimal_bound(dtype)?, array.as_primitive::<Decimal128Type>());
            let is_beyond = |value: i128| value.unsigned_abs() > bound.unsigned_abs();
            if !decimals.values().iter().any(|value| is_beyond(*value)) {
                return None;
            }
            decimals
                .iter()
                .flatten()
                .find(|value| is_beyond(*value))
                .map(|value| (value, dtype.clone()))
        }
        DataType::List(_) => beyond(array.as_list::<i32>().values().as_ref()),
        DataType::LargeList(_) => beyond(array.as_list::<i64>().values().as_ref()),
        DataType::FixedSizeList(..) => beyond(array.as_fixed_size_list().values().as_ref()),
        DataType::Map(..) => beyond(array.as_map().entries()),
        DataType::Struct(_) => {
            array.as_struct().columns().iter().find_map(|column| beyond(column.as_ref()))
        }
        DataType::Dictionary(..) => beyond(array.as_any_dictionary().values().as_ref()),
        _ => None,
    }
}
