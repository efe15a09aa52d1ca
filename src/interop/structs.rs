//! Structs of a program's own to record batches and back, by the crate serde_arrow.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_arrow::schema::{SchemaLike, TracingOptions};

use crate::error::{Error, Result};

/// The rows, a column a field.
pub(crate) fn to_batch<T: Serialize + DeserializeOwned>(rows: &[T]) -> Result<RecordBatch> {
    let refused =
        |error: serde_arrow::Error| Error::unsupported("structs as rows", error.to_string());
    let options =
        TracingOptions::default().map_as_struct(false).enums_without_data_as_strings(true);
    let fields = Vec::<FieldRef>::from_type::<T>(options).map_err(refused)?;
    serde_arrow::to_record_batch(&fields, &rows).map_err(refused)
}

/// The rows of batches as structs.
pub(crate) fn of_batches<T: DeserializeOwned>(batches: &[RecordBatch]) -> Result<Vec<T>> {
    let mut rows = vec![];
    for batch in batches {
        let batch = readable(batch)?;
        let read: Vec<T> = serde_arrow::from_record_batch(&batch)
            .map_err(|error| Error::unsupported("rows as structs", error.to_string()))?;
        rows.extend(read);
    }
    Ok(rows)
}

/// The batch in types that serde_arrow reads: strings that are no views.
fn readable(batch: &RecordBatch) -> Result<RecordBatch> {
    let mut fields = vec![];
    let mut columns = vec![];
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let dtype = match field.data_type() {
            DataType::Utf8View => DataType::LargeUtf8,
            DataType::BinaryView => DataType::LargeBinary,
            other => other.clone(),
        };
        columns.push(if dtype == *field.data_type() {
            column.clone()
        } else {
            cast(column, &dtype)?
        });
        fields.push(Field::new(field.name(), dtype, field.is_nullable()));
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}
