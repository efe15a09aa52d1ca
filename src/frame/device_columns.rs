//! Columns of frames where they lie on a device: for code that is not the engine's.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema};

use super::eager::{DataFrame, Eager};
use super::series::Series;
use crate::column::{Column, Table};
use crate::error::Result;
use crate::query::{Answer, Core, Data};
use warpframe_device::Device;

impl DataFrame {
    /// The rows in the memory of this device. They are brought there where they lie elsewhere.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) fn table_on(&self, device: &Device) -> Result<Table> {
        match &self.state.data {
            Data::Device(kept) if kept.device().same(device) => kept.table(),
            _ => Table::from_batches(device, self.state.schema.clone(), &self.to_arrow()?),
        }
    }

    /// Moves the rows into the memory of this device. The table has its buffers alone where no
    /// other frame had them.
    fn into_table_on(self, device: &Device) -> Result<Table> {
        let DataFrame { core, state: Eager { schema, data } } = self;
        match data {
            Data::Device(kept) if kept.device().same(device) => kept.into_table(),
            data => DataFrame { core, state: Eager { schema, data } }.table_on(device),
        }
    }

    /// Does something with the device that has the rows, as a statement of the session's.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unsupported`] of a session without a device.
    #[cfg(feature = "ffi")]
    pub(crate) fn as_statement<T>(&self, work: impl FnOnce(&Device) -> Result<T>) -> Result<T> {
        let Some(device) = self.core.device() else {
            let why = "the session has no device: DeviceChoice::Sim has its columns in host memory";
            return Err(crate::Error::unsupported("a column as memory of a device", why));
        };
        self.core.as_statement(|| work(device))
    }

    /// A frame of a table of the session's device.
    pub(crate) fn on_device(core: &Arc<Core>, table: Table) -> DataFrame {
        DataFrame::new(core.clone(), Answer::of_table(table))
    }
}

impl Series {
    /// As of frames.
    #[cfg(feature = "ffi")]
    pub(crate) fn as_statement<T>(&self, work: impl FnOnce(&Device) -> Result<T>) -> Result<T> {
        self.frame().as_statement(work)
    }

    /// The column in the memory of this device.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) fn column_on(&self, device: &Device) -> Result<Column> {
        let table = self.frame().table_on(device)?;
        Ok(table.columns[0].clone())
    }

    /// Moves the column into the memory of this device. Its buffers are the caller's alone where
    /// nobody else had them.
    pub(crate) fn into_column_on(self, device: &Device) -> Result<Column> {
        let mut table = self.into_frame().into_table_on(device)?;
        Ok(table.columns.swap_remove(0))
    }

    /// A column of the session's device.
    pub(crate) fn of_column(
        core: &Arc<Core>,
        device: &Device,
        name: &str,
        column: Column,
    ) -> Result<Series> {
        let field = Field::new(name, column.dtype.clone(), true);
        let schema = Arc::new(Schema::new(vec![field]));
        let rows = column.len;
        let table = Table::with_rows(device, schema, vec![column], rows)?;
        Ok(Series::of_frame(DataFrame::on_device(core, table)))
    }
}
