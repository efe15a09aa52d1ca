//! Columns of a table while they are read, and the chunks that they are read of.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;

use super::batches::{ChunkAt, Opened};
use super::headers::Reason;
use super::strings::StringTarget;
use crate::error::Result;
use warpframe_device::ops::parquet::PageOutput;
use warpframe_device::{Buffer, Device};

pub(super) const OPERATOR: &str = "parquet";

pub(super) struct DeviceReader<'a> {
    pub(super) device: &'a Device,
    pub(super) files: &'a [Opened],
    pub(super) chunks: &'a [ChunkAt],
    /// Of the table.
    pub(super) rows: usize,
}

/// A column while it is read.
pub(super) struct ColumnTarget {
    pub(super) dtype: DataType,
    /// Values of all rows, but of strings and bytes.
    pub(super) data: Option<Arc<Buffer>>,
    pub(super) validity: Option<Arc<Buffer>>,
    /// Of strings and bytes.
    pub(super) strings: Option<StringTarget>,
    /// Rows of files that lack the column, which are null.
    pub(super) absent: Vec<Range<usize>>,
    pub(super) given_up: Option<Reason>,
}

impl ColumnTarget {
    pub(super) fn is_read(&self) -> bool {
        self.given_up.is_none()
    }

    /// Memory for values of all rows as they come out of pages.
    pub(super) fn data_of(
        &mut self,
        reader: &DeviceReader,
        output: PageOutput,
    ) -> Result<Arc<Buffer>> {
        let known = match (&self.strings, output) {
            (Some(strings), PageOutput::Codes { .. }) => strings.codes.clone(),
            (Some(strings), _) => strings.views.clone(),
            (None, _) => self.data.clone(),
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let made = Arc::new(self.alloc(reader.device, reader.rows * output.width() as usize)?);
        let place = match (&mut self.strings, output) {
            (Some(strings), PageOutput::Codes { .. }) => &mut strings.codes,
            (Some(strings), _) => &mut strings.views,
            (None, _) => &mut self.data,
        };
        *place = Some(made.clone());
        Ok(made)
    }

    pub(super) fn is_absent_in(&mut self, rows: Range<usize>) {
        match self.absent.last_mut().filter(|last| last.end == rows.start) {
            Some(last) => last.end = rows.end,
            None => self.absent.push(rows),
        }
    }

    /// Memory for values of all rows. Where a file lacks the column, nobody writes any.
    pub(super) fn alloc(&self, device: &Device, bytes: usize) -> Result<Buffer> {
        Ok(match self.absent.is_empty() {
            true => device.alloc(OPERATOR, bytes),
            false => device.alloc_zeroed(OPERATOR, bytes),
        }?)
    }
}
