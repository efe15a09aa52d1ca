//! Columns put one behind the other in device memory.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;

use super::{Column, Encoding, Repr, Stats};
use crate::device::Device;
use crate::error::{Error, Result};

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
            stats: of_all(&pieces.iter().map(|piece| piece.stats).collect::<Vec<_>>()),
        })
    }
}

/// What is known of the values of all pieces.
pub(super) fn of_all(pieces: &[Stats]) -> Stats {
    let ranges = pieces.iter().map(|p| p.range).collect::<Option<Vec<_>>>();
    let magnitudes = pieces.iter().map(|p| p.magnitude).collect::<Option<Vec<_>>>();
    let units = pieces.iter().map(|p| p.unit).collect::<Option<Vec<_>>>();
    let lengths = pieces.iter().map(|p| p.longest).collect::<Option<Vec<_>>>();
    Stats {
        range: ranges.and_then(|all| all.into_iter().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))),
        magnitude: magnitudes.and_then(|all| all.into_iter().reduce(f64::max)),
        unit: units.and_then(|all| all.into_iter().min()),
        longest: lengths.and_then(|all| all.into_iter().max()),
        unique: false,
        ascending: false,
    }
}
