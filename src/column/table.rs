//! Tables: columns of one length under a schema, in and out as record batches.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::SchemaRef;

use super::{Column, Table, coded_numbers, value_type};
use crate::error::{Error, ErrorKind, Result};
use warpframe_device::Device;
use warpframe_device::timeline::{Part, span};

impl Table {
    /// A table of `rows` rows, which are stated because there may be no column to tell them.
    ///
    /// # Errors
    /// [`ErrorKind::TypeMismatch`] where the columns' number, types or lengths are not the schema's
    /// and the table's.
    pub(crate) fn with_rows(
        device: &Device,
        schema: SchemaRef,
        columns: Vec<Column>,
        rows: usize,
    ) -> Result<Self> {
        if columns.len() != schema.fields().len() {
            return Err(mismatch("table", schema.fields().len(), columns.len(), "columns"));
        }
        for (field, column) in schema.fields().iter().zip(&columns) {
            if *value_type(field.data_type()) != column.dtype {
                return Err(ErrorKind::TypeMismatch {
                    what: format!("column {:?}", field.name()),
                    expected: field.data_type().to_string(),
                    found: column.dtype.to_string(),
                }
                .into());
            }
            if column.len != rows {
                return Err(mismatch(
                    &format!("column {:?}", field.name()),
                    rows,
                    column.len,
                    "rows",
                ));
            }
        }
        Ok(Table { device: device.clone(), schema, columns, rows })
    }

    /// `len` rows from `offset` on, as far as there are rows; shares the buffers.
    pub(crate) fn slice(&self, offset: usize, len: usize) -> Self {
        let offset = offset.min(self.rows);
        let rows = len.min(self.rows - offset);
        let columns = self.columns.iter().map(|column| column.slice(offset, rows)).collect();
        Table { device: self.device.clone(), schema: self.schema.clone(), columns, rows }
    }

    /// A table of no rows.
    pub(crate) fn empty(device: &Device, schema: SchemaRef) -> Result<Self> {
        Table::from_batches(device, schema, &[])
    }

    /// Uploads record batches, one after the other.
    ///
    /// # Errors
    /// [`ErrorKind::TypeMismatch`] where a batch's columns are not the schema's (names and
    /// nullability may differ), and those of [`Column::from_arrays`].
    pub(crate) fn from_batches(
        device: &Device,
        schema: SchemaRef,
        batches: &[RecordBatch],
    ) -> Result<Self> {
        for batch in batches {
            if batch.num_columns() != schema.fields().len() {
                return Err(mismatch(
                    "record batch",
                    schema.fields().len(),
                    batch.num_columns(),
                    "columns",
                ));
            }
        }
        let column = |index: usize| {
            let chunks: Vec<ArrayRef> =
                batches.iter().map(|batch| Arc::clone(batch.column(index))).collect();
            let field = schema.field(index);
            Column::from_arrays(device, field.data_type(), &chunks).map_err(|error| {
                match error.kind() {
                    ErrorKind::Arithmetic { fault, account: Some(account), .. } => {
                        Error::arithmetic(*fault, format!("column {:?}: {account}", field.name()))
                    }
                    _ => error,
                }
            })
        };
        let columns = (0..schema.fields().len()).map(column).collect::<Result<Vec<_>>>()?;
        let rows = batches.iter().map(RecordBatch::num_rows).sum();
        Table::with_rows(device, schema, columns, rows)
    }

    /// Downloads the table as record batches of `batch_rows` rows (the last may be shorter); none
    /// where there are no rows. Strings and lists are made contiguous on the device first: where
    /// that finds no memory, half of the rows come at a time.
    ///
    /// # Errors
    /// `OutOfDeviceMemory` where not even one row finds memory.
    pub(crate) fn to_batches(&self, batch_rows: usize) -> Result<Vec<RecordBatch>> {
        let _span = span(Part::Download, || format!("{} rows", self.rows));
        let batch_rows = batch_rows.max(1);
        match self.to_batches_at_once(batch_rows) {
            Err(error) if self.rows > 1 && error.is_out_of_device_memory() => {
                self.to_batches_by_halves(batch_rows)
            }
            batches => batches,
        }
    }

    fn to_batches_by_halves(&self, batch_rows: usize) -> Result<Vec<RecordBatch>> {
        let batches = self.rows.div_ceil(batch_rows);
        let half = if batches > 1 { batches / 2 * batch_rows } else { self.rows / 2 };
        let mut found = self.slice(0, half).to_batches(batch_rows)?;
        found.extend(self.slice(half, self.rows - half).to_batches(batch_rows)?);
        match batches {
            1 => Ok(vec![concat_batches(&self.schema, &found)?]),
            _ => Ok(found),
        }
    }

    fn to_batches_at_once(&self, batch_rows: usize) -> Result<Vec<RecordBatch>> {
        let mut columns = Vec::with_capacity(self.columns.len());
        for (column, field) in self.columns.iter().zip(self.schema.fields()) {
            let mut arrays = column.to_arrays(batch_rows)?;
            if coded_numbers(field.data_type()).is_some() {
                arrays = arrays
                    .iter()
                    .map(|array| cast(array, field.data_type()))
                    .collect::<std::result::Result<_, _>>()?;
            }
            columns.push(arrays.into_iter());
        }
        let mut batches = Vec::with_capacity(self.rows.div_ceil(batch_rows));
        for start in (0..self.rows).step_by(batch_rows) {
            let arrays = columns
                .iter_mut()
                .map(|chunks| chunks.next().expect("columns have the table's rows"))
                .collect();
            let options =
                RecordBatchOptions::new().with_row_count(Some(batch_rows.min(self.rows - start)));
            batches.push(RecordBatch::try_new_with_options(
                Arc::clone(&self.schema),
                arrays,
                &options,
            )?);
        }
        Ok(batches)
    }
}

fn mismatch(what: &str, expected: usize, found: usize, unit: &str) -> Error {
    ErrorKind::TypeMismatch {
        what: what.to_string(),
        expected: format!("{expected} {unit}"),
        found: format!("{found} {unit}"),
    }
    .into()
}
