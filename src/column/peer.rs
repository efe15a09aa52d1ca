//! Rows that another device gets, straight from the memory of the first.
//!
//! Values and codes stay what they are. Views of strings hold addresses: their characters are put
//! one after the other, go along, and the views are written anew.

use std::sync::Arc;

use super::spilled::GatheredStrings;
use super::{CODE_WIDTH, Column, Stats, Table, is_nested};
use crate::error::Result;
use warpframe_device::ops::characters;
use warpframe_device::{Buffer, Device};

/// Names this work in errors about device memory.
const PEER: &str = "copy to another device";

impl Table {
    /// The rows on another device; `None` where it does not reach this one, and of lists and
    /// structs.
    ///
    /// # Errors
    /// Of either device.
    pub(crate) fn on_peer(&self, device: &Device) -> Result<Option<Table>> {
        let nested = self.columns.iter().any(|column| is_nested(&column.dtype));
        if nested || !device.reaches(&self.device)? {
            return Ok(None);
        }
        let gathered =
            self.columns.iter().map(|column| column.gathered(&self.device)).collect::<Result<_>>();
        let gathered: Vec<Option<GatheredStrings>> = gathered?;
        device.wait_for(&self.device.record()?)?;
        let columns = self.columns.iter().zip(&gathered);
        let columns =
            columns.map(|(column, strings)| column.sent(device, strings.as_ref())).collect();
        let columns: Result<Vec<Column>> = columns;
        // What was read is not freed before it was read.
        self.device.wait_for(&device.record()?)?;
        Table::with_rows(device, self.schema.clone(), columns?, self.rows).map(Some)
    }
}

impl Column {
    fn sent(&self, device: &Device, strings: Option<&GatheredStrings>) -> Result<Column> {
        let stats = Stats { unique: false, ascending: false, ..self.stats };
        let validity = match &self.validity {
            Some(own) => Some(Arc::new(received(device, own, self.offset, self.len)?)),
            None => None,
        };
        let width = self.width();
        if let Some(GatheredStrings { views, characters, bytes }) = strings {
            let data = received(device, views, 0, self.len * width)?;
            let held = received(device, characters, 0, *bytes)?;
            characters::point_into(device, &data, self.len as u64, &held)?;
            let column = Column::plain(self.dtype.clone(), self.len, Arc::new(data), validity);
            let characters = [Arc::new(held)].into_iter().collect();
            return Ok(Column { characters, stats, ..column });
        }
        let Some(dictionary) = self.dictionary() else {
            let data = received(device, &self.data, self.offset * width, self.len * width)?;
            let column = Column::plain(self.dtype.clone(), self.len, Arc::new(data), validity);
            return Ok(Column { stats, ..column });
        };
        let data = received(device, &self.data, self.offset * CODE_WIDTH, self.len * CODE_WIDTH)?;
        let dictionary = dictionary.on(device)?;
        Ok(Column::plain(self.dtype.clone(), self.len, Arc::new(data), validity).coded(dictionary))
    }
}

/// A range of a buffer of another device.
fn received(device: &Device, from: &Buffer, offset: usize, bytes: usize) -> Result<Buffer> {
    let buffer = device.alloc(PEER, bytes)?;
    buffer.copy_from(0, from, offset, bytes)?;
    Ok(buffer)
}
