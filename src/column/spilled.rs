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
use datafusion::arrow::datatypes::{DataType, SchemaRef};

use super::{
    CODE_WIDTH, Column, Dictionary, INLINE, Repr, Stats, Table, VIEW_WIDTH, is_nested, repr_of,
    value_type,
};
use crate::error::{Error, Result};
use warpframe_device::ops::characters;
use warpframe_device::ops::gather::gather;
use warpframe_device::{Buffer, Device, HostBlock};

/// Names this work in errors about device memory.
const SPILL: &str = "spill";

/// Rows of a table in host memory.
#[derive(Debug)]
pub(crate) struct SpilledTable {
    columns: Vec<SpilledColumn>,
}

#[derive(Debug)]
enum SpilledColumn {
    /// Values of one width, or codes of the strings that `values` has in byte order.
    Flat {
        bytes: HostBlock,
        validity: Option<HostBlock>,
        values: Option<ArrayRef>,
        stats: Stats,
    },
    /// Views, whose long strings lie one after the other from what was this address on.
    Views {
        views: HostBlock,
        validity: Option<HostBlock>,
        characters: HostBlock,
        address: u64,
        stats: Stats,
    },
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
        let columns = self
            .columns
            .iter()
            .map(|column| column.spilled(&self.device))
            .collect::<Result<_>>()?;
        Ok(SpilledTable { columns })
    }

    /// Uploads rows of spilled tables of one schema, one after the other: as one table, or as
    /// several where strings are codes in some of them only.
    ///
    /// # Errors
    /// Of the device.
    pub(crate) fn restored(
        device: &Device,
        schema: &SchemaRef,
        pieces: &[SpilledRows],
    ) -> Result<Vec<Table>> {
        let runs = pieces.chunk_by(|(first, _), (other, _)| of_one_encoding(first, other));
        let of_run = |pieces: &[SpilledRows]| {
            let rows = pieces.iter().map(|(_, rows)| rows.len()).sum();
            let column = |at: usize| {
                let own: Vec<_> =
                    pieces.iter().map(|(table, rows)| (&table.columns[at], rows.clone())).collect();
                restored(device, value_type(schema.field(at).data_type()), &own)
            };
            let columns = (0..schema.fields().len()).map(column).collect::<Result<_>>()?;
            Table::with_rows(device, schema.clone(), columns, rows)
        };
        runs.map(of_run).collect()
    }
}

impl Column {
    fn spilled(&self, device: &Device) -> Result<SpilledColumn> {
        if is_nested(&self.dtype) {
            let arrays = self.to_arrays(self.len.max(1))?;
            let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
            return match arrays.as_slice() {
                [] => Ok(SpilledColumn::Nested(datafusion::arrow::array::new_empty_array(
                    &self.dtype,
                ))),
                arrays => Ok(SpilledColumn::Nested(concat(arrays)?)),
            };
        }
        let stats = Stats { unique: false, ascending: false, ..self.stats };
        let validity = self
            .validity
            .as_ref()
            .map(|validity| downloaded(validity, self.offset, self.len))
            .transpose()?;
        let width = self.width();
        if let Some(strings) = self.gathered(device)? {
            let characters = downloaded(&strings.characters, 0, strings.bytes)?;
            let views = downloaded(&strings.views, 0, self.len * width)?;
            let address = strings.characters.address();
            return Ok(SpilledColumn::Views { views, validity, characters, address, stats });
        }
        let mut bytes = downloaded(&self.data, self.offset * width, self.len * width)?;
        let values = self.dictionary().map(|dictionary| dictionary.values.clone());
        if let (Some(_), Some(validity)) = (&values, &validity) {
            // Under nulls there may be anything; who takes codes for places relies on them.
            let codes = bytes.bytes_mut().chunks_exact_mut(CODE_WIDTH);
            codes
                .zip(validity.bytes())
                .filter(|(_, valid)| **valid == 0)
                .for_each(|(code, _)| code.fill(0));
        }
        Ok(SpilledColumn::Flat { bytes, validity, values, stats })
    }
}

/// Views of a column, and the characters of long strings one after the other, in the order of the
/// rows.
pub(super) struct GatheredStrings {
    pub(super) views: Buffer,
    pub(super) characters: Buffer,
    pub(super) bytes: usize,
}

impl Column {
    /// The column's strings; `None` of a column without, and of codes.
    pub(super) fn gathered(&self, device: &Device) -> Result<Option<GatheredStrings>> {
        if !self.has_views() {
            return Ok(None);
        }
        let width = self.width();
        let views = device.alloc(SPILL, self.len * width)?;
        views.copy_from(0, &self.data, self.offset * width, self.len * width)?;
        let lengths = characters::lengths(device, &views, self.len as u64)?;
        let characters = characters::gathered(device, &views, &lengths)?;
        Ok(Some(GatheredStrings { views, characters, bytes: lengths.total as usize }))
    }
}

fn downloaded(buffer: &Buffer, offset: usize, len: usize) -> Result<HostBlock> {
    let mut block = buffer.device().host_block(len)?;
    buffer.read(offset, block.filling()?)?;
    Ok(block)
}

/// Rows of one column of a spilled table.
type SpilledPiece<'a> = (&'a SpilledColumn, Range<usize>);

impl SpilledColumn {
    fn stats(&self) -> Stats {
        match self {
            SpilledColumn::Flat { stats, .. } | SpilledColumn::Views { stats, .. } => *stats,
            SpilledColumn::Nested(_) => Stats::default(),
        }
    }

    fn validity(&self) -> Option<&HostBlock> {
        match self {
            SpilledColumn::Flat { validity, .. } | SpilledColumn::Views { validity, .. } => {
                validity.as_ref()
            }
            SpilledColumn::Nested(_) => None,
        }
    }

    /// The strings that its codes stand for.
    fn values(&self) -> Option<&ArrayRef> {
        match self {
            SpilledColumn::Flat { values, .. } => values.as_ref(),
            _ => None,
        }
    }

    fn bytes(&self) -> Result<&[u8]> {
        match self {
            SpilledColumn::Flat { bytes, .. } | SpilledColumn::Views { views: bytes, .. } => {
                Ok(bytes.to_read()?)
            }
            SpilledColumn::Nested(_) => Ok(&[]),
        }
    }
}

/// Pieces that have codes in all columns that one of them has codes in.
fn of_one_encoding(first: &SpilledTable, other: &SpilledTable) -> bool {
    let coded = |column: &SpilledColumn| column.values().is_some();
    first.columns.iter().map(coded).eq(other.columns.iter().map(coded))
}

fn restored(device: &Device, dtype: &DataType, pieces: &[SpilledPiece<'_>]) -> Result<Column> {
    if is_nested(dtype) {
        let array = |(column, rows): &SpilledPiece<'_>| match column {
            SpilledColumn::Nested(array) => Ok(array.slice(rows.start, rows.len())),
            _ => Err(Error::internal("flat rows of a nested column")),
        };
        let arrays: Vec<ArrayRef> = pieces.iter().map(array).collect::<Result<_>>()?;
        return Column::from_arrays(device, dtype, &arrays);
    }
    let repr = repr_of(dtype)?;
    let len = pieces.iter().map(|(_, rows)| rows.len()).sum();
    let validity = restored_validity(device, pieces, len)?;
    if pieces.first().is_some_and(|(column, _)| column.values().is_some()) {
        return restored_codes(device, dtype, pieces, validity);
    }
    let data = restored_bytes(device, pieces, repr.width(), len)?;
    let stats: Vec<Stats> = pieces.iter().map(|(column, _)| column.stats()).collect();
    let column = Column {
        stats: Stats::of_all(&stats),
        ..Column::plain(dtype.clone(), len, Arc::new(data), validity)
    };
    if repr != Repr::View {
        return Ok(column);
    }
    let characters = pieces.iter().map(characters_of).collect::<Result<Vec<_>>>()?;
    let held = device.alloc(SPILL, characters.iter().map(|of| of.len()).sum())?;
    let mut at = 0;
    for characters in characters {
        held.write(at, characters)?;
        at += characters.len();
    }
    characters::point_into(device, &column.data, len as u64, &held)?;
    Ok(Column { characters: [Arc::new(held)].into_iter().collect(), ..column })
}

/// Bytes of pieces, one after the other.
fn restored_bytes(
    device: &Device,
    pieces: &[SpilledPiece<'_>],
    width: usize,
    len: usize,
) -> Result<Buffer> {
    let data = device.alloc(SPILL, len * width)?;
    let mut at = 0;
    for (column, rows) in pieces {
        data.write(at * width, &column.bytes()?[rows.start * width..rows.end * width])?;
        at += rows.len();
    }
    Ok(data)
}

fn restored_validity(
    device: &Device,
    pieces: &[SpilledPiece<'_>],
    len: usize,
) -> Result<Option<Arc<Buffer>>> {
    if pieces.iter().all(|(column, _)| column.validity().is_none()) {
        return Ok(None);
    }
    let validity = device.alloc_filled(SPILL, len, 1)?;
    let mut at = 0;
    for (column, rows) in pieces {
        if let Some(own) = column.validity() {
            validity.write(at, &own.to_read()?[rows.clone()])?;
        }
        at += rows.len();
    }
    Ok(Some(Arc::new(validity)))
}

/// The characters of a piece's long strings: they lie one after the other, in the order of the
/// rows.
fn characters_of<'a>((column, rows): &SpilledPiece<'a>) -> Result<&'a [u8]> {
    let SpilledColumn::Views { views, characters, address, .. } = column else { return Ok(&[]) };
    let place = |view: &[u8]| {
        let view = u128::from_le_bytes(view.try_into().expect("16 bytes"));
        let (length, at) = (view as u32 as usize, (view >> 64) as u64);
        (length > INLINE).then(|| (at - address) as usize..(at - address) as usize + length)
    };
    let views =
        views.bytes()[rows.start * VIEW_WIDTH..rows.end * VIEW_WIDTH].chunks_exact(VIEW_WIDTH);
    match (views.clone().find_map(place), views.rev().find_map(place)) {
        (Some(first), Some(last)) => Ok(&characters.to_read()?[first.start..last.end]),
        _ => Ok(&[]),
    }
}

/// Codes of pieces, by one dictionary of all their strings.
fn restored_codes(
    device: &Device,
    dtype: &DataType,
    pieces: &[SpilledPiece<'_>],
    validity: Option<Arc<Buffer>>,
) -> Result<Column> {
    let len = pieces.iter().map(|(_, rows)| rows.len()).sum();
    let of = |(column, _): &SpilledPiece<'_>| column.values().cloned();
    let values: Vec<ArrayRef> = pieces.iter().filter_map(of).collect();
    let mut different: Vec<&ArrayRef> = vec![];
    for own in &values {
        if !different.iter().any(|known| Arc::ptr_eq(known, own)) {
            different.push(own);
        }
    }
    let mut strings: Vec<&str> =
        different.iter().flat_map(|values| values.as_string_view().iter().flatten()).collect();
    if different.len() > 1 {
        strings.sort_unstable();
        strings.dedup();
    }
    let dictionary = Dictionary::from_sorted(device, &strings)?;
    let data = match different.as_slice() {
        [_] => restored_bytes(device, pieces, CODE_WIDTH, len)?,
        _ => {
            let data = device.alloc(SPILL, len * CODE_WIDTH)?;
            let places: HashMap<&str, u32> = strings.iter().copied().zip(0..).collect();
            let mut at = 0;
            for ((piece, values), rows) in
                pieces.iter().zip(&values).zip(pieces.iter().map(|(_, rows)| rows.len()))
            {
                let own = values.as_string_view().iter().flatten();
                let place: Vec<u8> = own.flat_map(|string| places[string].to_le_bytes()).collect();
                let place = device.upload(SPILL, &place)?;
                let codes = restored_bytes(device, std::slice::from_ref(piece), CODE_WIDTH, rows)?;
                let codes = gather(device, CODE_WIDTH, place.slice(0), &codes, rows as u64)?;
                data.copy_from(at * CODE_WIDTH, &codes, 0, rows * CODE_WIDTH)?;
                at += rows;
            }
            data
        }
    };
    Ok(Column::plain(dtype.clone(), len, Arc::new(data), validity).coded(dictionary))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{
        Decimal128Array, Float64Array, Int32Array, ListBuilder, RecordBatch, StringArray,
    };
    use datafusion::arrow::compute::concat_batches;
    use datafusion::arrow::datatypes::{Field, Schema};

    use super::*;
    use warpframe_device::{MemoryLimit, SimOptions};

    /// Rows of all ways to lie on the device; strings are many or few.
    fn batch(rows: i64, seed: i64) -> RecordBatch {
        let null = |row: i64| (row + seed) % 7 != 3;
        let ints: Int32Array =
            (0..rows).map(|row| null(row).then_some((row * seed) as i32)).collect();
        let floats =
            Float64Array::from_iter_values((0..rows).map(|row| row as f64 / 8.0 - seed as f64));
        let decimals: Decimal128Array =
            (0..rows).map(|row| null(row).then_some(i128::from(row) << 70)).collect();
        let few: StringArray = (0..rows)
            .map(|row| null(row).then(|| format!("one of a few strings, {}", (row * seed) % 5)))
            .collect();
        let many: StringArray = (0..rows)
            .map(|row| null(row).then(|| "x".repeat((row * seed % 40) as usize) + &row.to_string()))
            .collect();
        let mut lists = ListBuilder::new(datafusion::arrow::array::Int64Builder::new());
        for row in 0..rows {
            (0..row % 3).for_each(|at| lists.values().append_value(at * seed));
            lists.append(null(row));
        }
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("ints", Arc::new(ints)),
            ("floats", Arc::new(floats)),
            ("decimals", Arc::new(decimals)),
            ("few", Arc::new(few)),
            ("many", Arc::new(many)),
            ("lists", Arc::new(lists.finish())),
        ];
        let fields =
            columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true));
        let schema = Schema::new(fields.collect::<Vec<_>>());
        RecordBatch::try_new(
            Arc::new(schema),
            columns.into_iter().map(|(_, array)| array).collect(),
        )
        .unwrap()
    }

    #[test]
    fn rows_come_back_as_they_went_from_any_pieces() {
        let device = Device::sim(SimOptions::default(), MemoryLimit::Bytes(1 << 30)).unwrap();
        let batches = [batch(900, 3), batch(1, 5), batch(0, 5), batch(700, 11)];
        let schema = batches[0].schema();
        let before = device.memory().used;
        let spilled: Vec<Arc<SpilledTable>> = batches
            .iter()
            .map(|batch| {
                Arc::new(
                    Table::from_batches(&device, schema.clone(), std::slice::from_ref(batch))
                        .unwrap()
                        .spilled()
                        .unwrap(),
                )
            })
            .collect();
        assert_eq!(device.memory().used, before, "nothing of them is left on the device");
        for ranges in [
            [0..900, 0..1, 0..0, 0..700],
            [13..500, 0..0, 0..0, 699..700],
            [0..0, 1..1, 0..0, 0..0],
        ] {
            let pieces: Vec<SpilledRows> = spilled.iter().cloned().zip(ranges.clone()).collect();
            let tables = Table::restored(&device, &schema, &pieces).unwrap();
            let found: Vec<RecordBatch> =
                tables.iter().flat_map(|table| table.to_batches(1 << 20).unwrap()).collect();
            let expected: Vec<RecordBatch> = batches
                .iter()
                .zip(ranges)
                .map(|(batch, rows)| batch.slice(rows.start, rows.len()))
                .collect();
            assert_eq!(
                concat_batches(&schema, &found).unwrap(),
                concat_batches(&schema, &expected).unwrap()
            );
        }
    }

    #[test]
    fn slices_go_without_the_rows_around_them() {
        let device = Device::sim(SimOptions::default(), MemoryLimit::Bytes(1 << 30)).unwrap();
        let whole = batch(1000, 7);
        let table =
            Table::from_batches(&device, whole.schema(), std::slice::from_ref(&whole)).unwrap();
        let spilled = Arc::new(table.slice(300, 77).spilled().unwrap());
        let back = Table::restored(&device, &whole.schema(), &[(spilled, 0..77)]).unwrap();
        assert_eq!(back[0].to_batches(100).unwrap(), [whole.slice(300, 77)]);
    }
}
