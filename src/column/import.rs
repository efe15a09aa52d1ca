//! Arrow arrays to device memory: types of fixed width, and validity.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    ArrowNativeType, DataType, Decimal128Type, IntervalUnit, ToByteSlice,
};
use parking_lot::Mutex;

use super::pieces::{self, Piece};
use super::stats::{Integer, PieceStats};
use super::{Column, Repr, Stats, coded_numbers, decimal_bound, interval, repr_of};
use crate::error::{Error, ErrorKind, Fault, Result};
use warpframe_device::{Buffer, Device, Event, Fed, MOST_FED};

/// Names imports in errors about device memory.
pub(super) const IMPORT: &str = "import";

impl Column {
    /// Uploads the rows of `arrays`, one array after the other.
    ///
    /// Strings of few distinct values, and every Arrow dictionary, become
    /// [`super::Encoding::Dictionary`].
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where the device has no representation of the type,
    /// [`ErrorKind::TypeMismatch`] where an array is of another type, [`ErrorKind::Arithmetic`]
    /// where a decimal does not fit its representation, [`ErrorKind::OutOfDeviceMemory`].
    pub(crate) fn from_arrays(
        device: &Device,
        dtype: &DataType,
        arrays: &[ArrayRef],
    ) -> Result<Column> {
        Column::import(device, dtype, arrays, StringImport::Encoded)
    }

    pub(super) fn import(
        device: &Device,
        dtype: &DataType,
        arrays: &[ArrayRef],
        strings: StringImport,
    ) -> Result<Column> {
        let repr = repr_of(dtype)?;
        if let Some(other) = arrays.iter().find(|array| array.data_type() != dtype) {
            return Err(ErrorKind::TypeMismatch {
                what: "column import".to_string(),
                expected: dtype.to_string(),
                found: other.data_type().to_string(),
            }
            .into());
        }
        if let Some(values) = coded_numbers(dtype) {
            let arrays = arrays
                .iter()
                .map(|array| cast(array, values))
                .collect::<std::result::Result<Vec<_>, _>>()?;
            return Column::import(device, values, &arrays, strings);
        }
        let len = arrays.iter().map(|array| array.len()).sum();
        if let (StringImport::Plain, DataType::Dictionary(_, _)) = (strings, dtype) {
            let values = arrays.iter().map(|array| cast(array, &DataType::Utf8View));
            let values = values.collect::<std::result::Result<Vec<_>, _>>()?;
            return ImportedRows { device, dtype, len, pieces: pieces::cut(&values) }
                .import_plain_strings();
        }
        let rows = ImportedRows { device, dtype, len, pieces: pieces::cut(arrays) };
        match (repr, dtype) {
            (Repr::List, _) => rows.import_lists(arrays),
            (Repr::Struct, _) => rows.import_structs(arrays, strings),
            (Repr::View, DataType::Dictionary(_, _)) => rows.import_dictionary(),
            (
                Repr::View,
                DataType::Binary
                | DataType::LargeBinary
                | DataType::BinaryView
                | DataType::FixedSizeBinary(_),
            ) => rows.import_plain_strings(),
            (Repr::View, _) if strings == StringImport::Plain => rows.import_plain_strings(),
            (Repr::View, _) => rows.import_strings(),
            (_, DataType::Interval(IntervalUnit::DayTime)) => {
                rows.import_packed(interval::packed_day_time)
            }
            (_, DataType::Interval(IntervalUnit::MonthDayNano)) => {
                rows.import_packed(interval::packed_month_day_nano)
            }
            (Repr::Bool, _) => rows.import_booleans(),
            (Repr::I64, DataType::Decimal128(_, _)) => rows.import_narrow_decimals(),
            (Repr::I8, _) => rows.import_integers::<i8>(),
            (Repr::I16, _) => rows.import_integers::<i16>(),
            (Repr::I32, _) => rows.import_integers::<i32>(),
            (Repr::I64, _) => rows.import_integers::<i64>(),
            (Repr::U8, _) => rows.import_integers::<u8>(),
            (Repr::U16, _) => rows.import_integers::<u16>(),
            (Repr::U32, _) => rows.import_integers::<u32>(),
            (Repr::U64, _) => rows.import_integers::<u64>(),
            (Repr::I128, _) => rows.import_integers::<i128>(),
            (Repr::F32, _) => rows.import_floats::<f32>(),
            (Repr::F64, _) => rows.import_floats::<f64>(),
        }
    }
}

/// How strings are brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StringImport {
    /// As codes, where they are few.
    Encoded,
    /// As views: elements of lists, which may come together with those of other columns.
    Plain,
}

/// What is to be imported: the rows of one column.
pub(super) struct ImportedRows<'a> {
    pub(super) device: &'a Device,
    pub(super) dtype: &'a DataType,
    pub(super) len: usize,
    pub(super) pieces: Vec<Piece>,
}

/// A worker's memory, reused from piece to piece.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Values as the device holds them.
    pub(super) data: Vec<u8>,
    /// Validity of the piece's rows, one byte each; empty where all are valid.
    pub(super) valid: Vec<u8>,
    /// Characters of long strings.
    pub(super) characters: Vec<u8>,
}

impl Scratch {
    /// Validity, if any row is null.
    pub(super) fn valid(&self) -> Option<&[u8]> {
        (!self.valid.is_empty()).then_some(&self.valid)
    }

    /// Expands the validity bits of a piece; every row is valid where there are none.
    pub(super) fn expand_validity(&mut self, nulls: Option<&NullBuffer>) {
        self.valid.clear();
        if let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) {
            expand_bits(nulls.inner(), &mut self.valid);
        }
    }

    /// Uploads the validity of `piece` to its rows of the column's, where the column has one.
    pub(super) fn write_validity(
        &mut self,
        piece: &Piece,
        validity: Option<&Inflow>,
    ) -> Result<()> {
        let Some(validity) = validity else { return Ok(()) };
        if self.valid.is_empty() {
            self.valid.resize(piece.array.len(), 1);
        }
        validity.write(piece.start, &self.valid)
    }
}

/// Columns of at least so many rows are looked at by kernels.
const SURVEYED_ROWS: usize = 1 << 16;
/// Fewer bytes are packed with others instead of being fed on their own.
const LEAST_FED: usize = 64 << 10;

/// Bytes that several threads bring to one buffer.
#[derive(Debug)]
pub(super) struct Inflow<'a> {
    buffer: &'a Arc<Buffer>,
    after: &'a Event,
    fed: Mutex<Vec<Fed>>,
}

impl<'a> Inflow<'a> {
    /// To a buffer that was there when `after` was recorded.
    pub(super) fn new(buffer: &'a Arc<Buffer>, after: &'a Event) -> Self {
        Inflow { buffer, after, fed: Mutex::default() }
    }

    /// Copies bytes to an offset; they may be reused at once.
    pub(super) fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        if bytes.len() < LEAST_FED {
            return Ok(self.buffer.write(offset, bytes)?);
        }
        for (number, part) in bytes.chunks(MOST_FED).enumerate() {
            let at = offset + number * MOST_FED;
            let mut copy = |to: &mut [u8]| {
                to.copy_from_slice(part);
                Ok(())
            };
            let fed =
                self.buffer.device().feed(self.buffer, at, part.len(), self.after, &mut copy)?;
            self.fed.lock().push(fed);
        }
        Ok(())
    }

    /// Lets work that is submitted later wait for all bytes.
    pub(super) fn arrive(self) -> Result<()> {
        let fed = self.fed.into_inner();
        Ok(fed.into_iter().try_for_each(|fed| fed.arrive(self.buffer.device()))?)
    }
}

impl ImportedRows<'_> {
    /// Memory for the validity, where a row is null, whatever the schema says.
    pub(super) fn alloc_validity(&self) -> Result<Option<Buffer>> {
        let nulls = self.pieces.iter().any(|piece| piece.array.null_count() > 0);
        Ok(nulls.then(|| self.device.alloc(IMPORT, self.len)).transpose()?)
    }

    /// Imports values of `width` bytes a row: `upload` brings the values of a piece into the
    /// column's memory, having its validity in the scratch memory, and tells what it saw.
    pub(super) fn import<T: Send>(
        &self,
        width: usize,
        upload: impl Fn(&mut Scratch, &Piece, &Inflow) -> Result<T> + Sync,
    ) -> Result<(Column, Vec<T>)> {
        let data = Arc::new(self.device.alloc(IMPORT, self.len * width)?);
        let validity = self.alloc_validity()?.map(Arc::new);
        let after = self.device.record()?;
        let values = Inflow::new(&data, &after);
        let valid = validity.as_ref().map(|validity| Inflow::new(validity, &after));
        let done = pieces::for_each(&self.pieces, Scratch::default, |scratch, piece| {
            scratch.expand_validity(piece.array.nulls());
            let seen = upload(scratch, piece, &values)?;
            scratch.write_validity(piece, valid.as_ref())?;
            Ok(seen)
        })?;
        values.arrive()?;
        valid.map_or(Ok(()), Inflow::arrive)?;
        let seen = done.results.into_iter().map(|(_, seen)| seen).collect();
        Ok((Column::plain(self.dtype.clone(), self.len, data, validity), seen))
    }

    /// The column with what is known of its values: what was seen of few, what a kernel finds of
    /// many.
    fn known(
        &self,
        mut column: Column,
        seen: &[PieceStats],
        of: fn(&[PieceStats]) -> Stats,
    ) -> Result<Column> {
        match self.is_seen() {
            true => column.stats = of(seen),
            false => Column::survey(self.device, std::iter::once(&mut column))?,
        }
        self.of_type(&column.stats)?;
        Ok(column)
    }

    /// Whether the host looks at the values, which it does faster than it waits for the device.
    fn is_seen(&self) -> bool {
        self.len < SURVEYED_ROWS
    }

    /// What is seen of a piece, where the host looks at it.
    fn see<T>(
        &self,
        look: fn(&[T], Option<&[u8]>) -> PieceStats,
        values: &[T],
        valid: Option<&[u8]>,
    ) -> PieceStats {
        if self.is_seen() { look(values, valid) } else { PieceStats::default() }
    }

    /// Imports values that lie on the device as they do in Arrow, straight from Arrow's memory.
    fn import_native<T: ArrowNativeType>(
        &self,
        look: fn(&[T], Option<&[u8]>) -> PieceStats,
    ) -> Result<(Column, Vec<PieceStats>)>
    where
        [T]: ToByteSlice,
    {
        self.import(size_of::<T>(), |scratch, piece, data| {
            let array = piece.array.to_data();
            let values = &array.buffer::<T>(0)[..array.len()];
            data.write(piece.start * size_of::<T>(), values.to_byte_slice())?;
            Ok(self.see(look, values, scratch.valid()))
        })
    }

    fn import_integers<T: Integer + ArrowNativeType>(&self) -> Result<Column>
    where
        [T]: ToByteSlice,
    {
        let (column, seen) = self.import_native::<T>(PieceStats::integers)?;
        self.known(column, &seen, Stats::of_integers)
    }

    /// Arrow does not check the digits of decimals, but expressions reckon with those that the type
    /// has.
    fn of_type(&self, stats: &Stats) -> Result<()> {
        let (Some(bound), Some((low, high))) = (decimal_bound(self.dtype), stats.range) else {
            return Ok(());
        };
        match [low, high].into_iter().find(|value| value.unsigned_abs() > bound.unsigned_abs()) {
            Some(value) => Err(self.outside(value)),
            None => Ok(()),
        }
    }

    fn outside(&self, value: i128) -> Error {
        Error::arithmetic(
            Fault::Overflow,
            format!("unscaled value {value} is outside {}", self.dtype),
        )
    }

    /// Imports values that lie on the device as integers made of them.
    fn import_packed<T: ArrowNativeType, P: Integer + ArrowNativeType>(
        &self,
        pack: fn(T) -> P,
    ) -> Result<Column>
    where
        [P]: ToByteSlice,
    {
        let (column, seen) = self.import(size_of::<P>(), |scratch, piece, data| {
            let array = piece.array.to_data();
            let values: Vec<P> =
                array.buffer::<T>(0)[..array.len()].iter().map(|value| pack(*value)).collect();
            data.write(piece.start * size_of::<P>(), values.to_byte_slice())?;
            Ok(self.see(PieceStats::integers, &values, scratch.valid()))
        })?;
        self.known(column, &seen, Stats::of_integers)
    }

    fn import_floats<T: ArrowNativeType + Into<f64>>(&self) -> Result<Column>
    where
        [T]: ToByteSlice,
    {
        let (column, seen) = self.import_native::<T>(PieceStats::floats)?;
        self.known(column, &seen, Stats::of_floats)
    }

    fn import_booleans(&self) -> Result<Column> {
        let (column, _) = self.import(1, |scratch, piece, data| {
            scratch.data.clear();
            expand_bits(piece.array.as_boolean().values(), &mut scratch.data);
            data.write(piece.start, &scratch.data)
        })?;
        Ok(column)
    }

    /// Imports decimals of so few digits that 8 bytes hold them. Arrow does not check digits: a
    /// value may still not fit.
    fn import_narrow_decimals(&self) -> Result<Column> {
        let (column, seen) = self.import(8, |scratch, piece, data| {
            let values = piece.array.as_primitive::<Decimal128Type>().values();
            let mut narrow: Vec<i64> = Vec::with_capacity(values.len());
            for (row, &value) in values.iter().enumerate() {
                match i64::try_from(value) {
                    Ok(value) => narrow.push(value),
                    Err(_) if scratch.valid().is_some_and(|valid| valid[row] == 0) => {
                        narrow.push(0)
                    }
                    Err(_) => return Err(self.outside(value)),
                }
            }
            data.write(piece.start * 8, narrow.to_byte_slice())?;
            Ok(self.see(PieceStats::integers, &narrow, scratch.valid()))
        })?;
        self.known(column, &seen, Stats::of_integers)
    }
}

/// Appends one byte a bit.
fn expand_bits(bits: &BooleanBuffer, bytes: &mut Vec<u8>) {
    let chunks = bits.bit_chunks();
    bytes.reserve(bits.len() + 64);
    let end = bytes.len() + bits.len();
    for word in chunks.iter_padded() {
        for byte in word.to_le_bytes() {
            bytes.extend_from_slice(&EXPANDED[byte as usize]);
        }
    }
    bytes.truncate(end);
}

/// The bits of each byte, lowest first, as bytes.
static EXPANDED: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[byte][bit] = (byte >> bit & 1) as u8;
            bit += 1;
        }
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_expand_from_any_offset() {
        let bools: Vec<bool> = (0..300).map(|i| i * i % 7 < 3).collect();
        let bits = BooleanBuffer::from(bools.clone());
        for (offset, len) in [(0, 0), (0, 300), (1, 64), (3, 31), (63, 66), (64, 128), (299, 1)] {
            let mut bytes = vec![9];
            expand_bits(&bits.slice(offset, len), &mut bytes);
            let expected: Vec<u8> = bools[offset..offset + len].iter().map(|&b| b as u8).collect();
            assert_eq!(bytes[1..], expected, "offset {offset}, {len} bits");
        }
    }
}
