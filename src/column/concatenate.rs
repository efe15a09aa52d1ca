//! Columns put one behind the other in device memory.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;

use super::{Column, Encoding, Repr, Stats};
use crate::error::{Error, Result};
use warpframe_device::Device;

/// Names this work in errors about device memory.
const CONCATENATE: &str = "concatenate";

impl Column {
    /// The rows of plain columns of one type, one after the other: `rows` in all.
    ///
    /// # Errors
    /// Of the device.
    pub(crate) fn concatenated(
        device: &Device,
        dtype: &DataType,
        pieces: &[&Column],
        rows: usize,
    ) -> Result<Column> {
        let repr = Repr::of(dtype)
            .ok_or_else(|| Error::internal(format!("{dtype} has no device representation")))?;
        let width = repr.width();
        let data = device.alloc(CONCATENATE, rows * width)?;
        let validity = match pieces.iter().any(|p| p.validity.is_some()) {
            true => Some(device.alloc_filled(CONCATENATE, rows, 1)?),
            false => None,
        };
        let mut at = 0;
        for piece in pieces {
            data.copy_from(at * width, &piece.data, piece.offset * width, piece.len * width)?;
            if let (Some(to), Some(from)) = (&validity, &piece.validity) {
                to.copy_from(at, from, piece.offset, piece.len)?;
            }
            at += piece.len;
        }
        let children = match dtype {
            DataType::Struct(fields) => (fields.iter().enumerate())
                .map(|(at, field)| {
                    let pieces: Vec<_> = pieces.iter().map(|piece| &piece.children[at]).collect();
                    Column::concatenated(device, field.data_type(), &pieces, rows)
                })
                .collect::<Result<Vec<_>>>()?,
            _ => vec![],
        };
        Ok(Column {
            dtype: dtype.clone(),
            len: rows,
            offset: 0,
            children: children.into(),
            data: Arc::new(data),
            validity: validity.map(Arc::new),
            encoding: Encoding::Plain,
            characters: pieces.iter().flat_map(|p| p.characters.iter().cloned()).collect(),
            stats: Stats::of_all(&pieces.iter().map(|piece| piece.stats).collect::<Vec<_>>()),
        })
    }
}
