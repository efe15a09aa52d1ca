//! The rows of a divided plan's result that do not fit on the device. They stay as they were
//! stored. A reader takes them as record batches, few at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;

use super::arrow;
use super::stored::StoredRows;
use crate::column::Table;
use crate::error::Result;

/// Rows on the host, or in files beyond its limit, in the form in which they lie on a device.
#[derive(Debug, Clone)]
pub(crate) struct DividedResult {
    rows: Arc<StoredRows>,
    /// Bytes that are on the device at a time while they become batches.
    bytes: u64,
}

impl DividedResult {
    pub(super) fn new(rows: StoredRows, bytes: u64) -> DividedResult {
        DividedResult { rows: Arc::new(rows), bytes }
    }

    /// Moves the rows that are still on the device to the host, so that other tasks have its
    /// memory.
    ///
    /// # Errors
    /// Of the device, and where the host has no room.
    pub(crate) fn on_host(self) -> Result<DividedResult> {
        let bytes = self.bytes;
        let mut rows = self.into_stored();
        let mut blocks = vec![];
        for block in std::mem::take(&mut rows.blocks) {
            blocks.extend(block.to_host()?);
        }
        rows.blocks = blocks;
        Ok(DividedResult::new(rows, bytes))
    }

    /// The rows as they are stored.
    pub(super) fn into_stored(self) -> StoredRows {
        Arc::unwrap_or_clone(self.rows)
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        arrow(&self.rows.schema)
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows.rows()
    }

    /// So many rows from a place on, or as many as there are.
    pub(crate) fn range(&self, from: usize, rows: usize) -> DividedResult {
        DividedResult { rows: Arc::new(self.rows.range(from, rows)), bytes: self.bytes }
    }

    /// The rows in batches of at most so many, of which few are in host memory at a time.
    pub(crate) fn batches(&self, most: usize) -> impl Iterator<Item = Result<RecordBatch>> + use<> {
        self.each(move |table| table.to_batches(most))
    }

    /// What is made of some of the rows after the other, each as much as the device takes at once.
    pub(crate) fn each<T, F: Fn(&Table) -> Result<Vec<T>>>(
        &self,
        make: F,
    ) -> impl Iterator<Item = Result<T>> + use<T, F> {
        let DividedResult { rows, mut bytes } = self.clone();
        let (mut at, mut waiting) = (0, VecDeque::new());
        std::iter::from_fn(move || {
            while waiting.is_empty() && at < rows.rows() {
                let some = rows.some(at, bytes);
                match some.load().and_then(|table| make(&table)) {
                    Ok(made) => {
                        at += some.rows();
                        waiting.extend(made);
                    }
                    // Others have the room by now.
                    Err(error) if error.is_out_of_device_memory() && some.rows() > 1 => {
                        bytes = (bytes.min(some.bytes()) / 2).max(1);
                        if let Err(error) = rows.device.make_room(some.bytes()) {
                            at = rows.rows();
                            return Some(Err(error.into()));
                        }
                    }
                    Err(error) => {
                        at = rows.rows();
                        return Some(Err(error));
                    }
                }
            }
            waiting.pop_front().map(Ok)
        })
    }
}
