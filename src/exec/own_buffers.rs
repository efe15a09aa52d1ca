//! Batches that travel to other processes without what belongs to others.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::DataType;

use crate::error::Result;

/// The batch with buffers of its own for the characters of `Utf8View` and `BinaryView` columns.
/// Batches that were cut from one share these buffers, and Arrow IPC writes the whole of a buffer
/// with each of them. Columns of other types are written as far as their rows go, and stay as they
/// are.
///
/// # Errors
/// Of Arrow, where columns do not fit the schema: not those of a valid batch.
pub fn of_own_buffers(batch: &RecordBatch) -> Result<RecordBatch> {
    let own = |column: &ArrayRef| -> ArrayRef {
        match column.data_type() {
            DataType::Utf8View => Arc::new(column.as_string_view().gc()),
            DataType::BinaryView => Arc::new(column.as_binary_view().gc()),
            _ => column.clone(),
        }
    };
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().iter().map(own).collect();
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?)
}
