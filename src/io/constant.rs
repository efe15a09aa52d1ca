//! Columns in device memory that have one value for all rows of a file.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;

use crate::column::Column;
use crate::error::Result;
use warpframe_device::Device;
use warpframe_device::ops::gather::gather;

const OPERATOR: &str = "paths";
const INDEX_WIDTH: usize = 4;

/// A column of runs: of each value of `values` so many rows.
///
/// # Errors
/// Of the device.
pub(super) fn of_runs(device: &Device, values: &ArrayRef, runs: &[u64]) -> Result<Column> {
    let rows: u64 = runs.iter().sum();
    if rows == 0 {
        return Column::from_arrays(device, values.data_type(), &[values.slice(0, 0)]);
    }
    let own = Column::from_arrays(device, values.data_type(), std::slice::from_ref(values))?;
    let numbers: Vec<u8> = (0..runs.len() as u32).flat_map(u32::to_le_bytes).collect();
    let numbers = device.upload(OPERATOR, &numbers)?;
    let longest = runs.iter().max().map_or(0, |longest| *longest as usize);
    let first = device.alloc_zeroed(OPERATOR, longest * INDEX_WIDTH)?;
    let index = device.alloc(OPERATOR, rows as usize * INDEX_WIDTH)?;
    let mut at = 0;
    for (number, run) in runs.iter().enumerate().filter(|(_, run)| **run > 0) {
        let bytes = *run as usize * INDEX_WIDTH;
        let same = gather(device, INDEX_WIDTH, numbers.slice(number * INDEX_WIDTH), &first, *run)?;
        index.copy_from(at, &same, 0, bytes)?;
        at += bytes;
    }
    let width = own.width();
    let data = gather(device, width, own.data.slice(own.offset * width), &index, rows)?;
    let validity = match &own.validity {
        Some(validity) => {
            Some(Arc::new(gather(device, 1, validity.slice(own.offset), &index, rows)?))
        }
        None => None,
    };
    let plain = Column::plain(own.dtype.clone(), rows as usize, Arc::new(data), validity);
    if !own.is_plain() {
        let Column { encoding, characters, stats, .. } = own;
        return Ok(Column { encoding, characters, stats, ..plain });
    }
    let mut column = Column { characters: own.characters, ..plain };
    Column::survey(device, std::iter::once(&mut column))?;
    Ok(column)
}
