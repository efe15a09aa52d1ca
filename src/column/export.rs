//! Device memory to Arrow arrays: types of fixed width, and validity.
//!
//! On the device all NaN are one value, whatever their bits. Arrow compares bits, so NaN gets one
//! form here.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayData, ArrayRef, BooleanArray, make_array};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer as ArrowBuffer, MutableBuffer, NullBuffer};
use datafusion::arrow::datatypes::{ArrowNativeType, DataType, IntervalUnit};

use super::{Column, Repr, interval, value_type};
use crate::error::Result;

impl Column {
    /// Downloads the column as arrays of `rows` rows, the last of which may be shorter; none where
    /// there are no rows. Values under nulls are zero or empty.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unsupported`] where codes do not fit the key type of an Arrow
    /// dictionary, or strings the 32-bit offsets of `Utf8`.
    pub(crate) fn to_arrays(&self, rows: usize) -> Result<Vec<ArrayRef>> {
        if self.len == 0 {
            return Ok(Vec::new());
        }
        match self.repr() {
            Repr::View => return self.export_strings(rows),
            Repr::List => return self.export_lists(rows),
            Repr::Struct => return self.export_structs(rows),
            _ => {}
        }
        let whole = self.export_fixed()?;
        Ok(cut(self.len, rows).map(|(start, len)| whole.slice(start, len)).collect())
    }

    fn export_fixed(&self) -> Result<ArrayRef> {
        debug_assert!(self.is_plain(), "dictionaries are of strings");
        let validity = self.read_validity()?;
        let dtype = value_type(&self.dtype);
        let values = match (self.repr(), dtype) {
            (Repr::Bool, _) => {
                let bytes = self.read_values::<u8>(&validity)?;
                let bits = BooleanBuffer::collect_bool(self.len, |row| bytes[row] != 0);
                return Ok(Arc::new(BooleanArray::new(bits, validity.nulls)));
            }
            (Repr::I64, DataType::Decimal128(_, _)) => {
                let narrow = ArrowBuffer::from(self.read_values::<i64>(&validity)?);
                narrow
                    .typed_data::<i64>()
                    .iter()
                    .map(|&value| value as i128)
                    .collect::<Vec<_>>()
                    .into()
            }
            (_, DataType::Interval(IntervalUnit::DayTime)) => {
                let packed = ArrowBuffer::from(self.read_values::<i64>(&validity)?);
                let values: Vec<_> = packed
                    .typed_data::<i64>()
                    .iter()
                    .map(|&packed| interval::day_time(packed))
                    .collect();
                values.into()
            }
            (_, DataType::Interval(IntervalUnit::MonthDayNano)) => {
                let packed = ArrowBuffer::from(self.read_values::<i128>(&validity)?);
                let unpack = |&packed: &i128| interval::month_day_nano(packed);
                packed.typed_data::<i128>().iter().map(unpack).collect::<Vec<_>>().into()
            }
            (Repr::I8 | Repr::U8, _) => self.read_values::<u8>(&validity)?,
            (Repr::I16 | Repr::U16, _) => self.read_values::<u16>(&validity)?,
            (Repr::F32, _) => {
                let mut bits = self.read_values::<u32>(&validity)?;
                let nan = |bits: u32| bits << 1 > f32::INFINITY.to_bits() << 1;
                one_nan(bits.typed_data_mut::<u32>(), nan, 0x7fc0_0000);
                bits
            }
            (Repr::F64, _) => {
                let mut bits = self.read_values::<u64>(&validity)?;
                let nan = |bits: u64| bits << 1 > f64::INFINITY.to_bits() << 1;
                one_nan(bits.typed_data_mut::<u64>(), nan, 0x7ff8_0000_0000_0000);
                bits
            }
            (Repr::I32 | Repr::U32, _) => self.read_values::<u32>(&validity)?,
            (Repr::I64 | Repr::U64, _) => self.read_values::<u64>(&validity)?,
            (Repr::I128 | Repr::View | Repr::List | Repr::Struct, _) => {
                self.read_values::<i128>(&validity)?
            }
        };
        let array = ArrayData::builder(dtype.clone())
            .len(self.len)
            .nulls(validity.nulls)
            .add_buffer(values.into());
        Ok(make_array(array.build()?))
    }

    /// Downloads what lies in `data` for the column's rows, zero under nulls.
    pub(super) fn read_values<T: ArrowNativeType>(
        &self,
        validity: &Validity,
    ) -> Result<MutableBuffer> {
        debug_assert_eq!(self.width(), size_of::<T>());
        let mut values = MutableBuffer::from_len_zeroed(self.len * size_of::<T>());
        self.data.read(self.offset * size_of::<T>(), values.as_slice_mut())?;
        if validity.nulls.is_some() {
            for (value, &valid) in values.typed_data_mut::<T>().iter_mut().zip(&validity.bytes) {
                *value = if valid != 0 { *value } else { T::default() };
            }
        }
        Ok(values)
    }

    /// Downloads the validity of the column's rows.
    pub(super) fn read_validity(&self) -> Result<Validity> {
        let Some(validity) = &self.validity else { return Ok(Validity::default()) };
        let mut bytes = vec![0; self.len];
        validity.read(self.offset, &mut bytes)?;
        if !bytes.contains(&0) {
            return Ok(Validity::default());
        }
        let nulls = NullBuffer::new(BooleanBuffer::collect_bool(self.len, |row| bytes[row] != 0));
        Ok(Validity { bytes, nulls: Some(nulls) })
    }
}

/// Gives NaN the one form that it has outside of the device, where all are equal whatever their
/// bits: a GPU, the host and files each have their own.
fn one_nan<T: Copy>(bits: &mut [T], is_nan: impl Fn(T) -> bool, nan: T) {
    for bits in bits {
        *bits = if is_nan(*bits) { nan } else { *bits };
    }
}

/// Which rows are valid: one byte and one bit a row, or nothing where all are.
#[derive(Debug, Default)]
pub(super) struct Validity {
    pub(super) bytes: Vec<u8>,
    pub(super) nulls: Option<NullBuffer>,
}

impl Validity {
    pub(super) fn is_valid(&self, row: usize) -> bool {
        self.nulls.is_none() || self.bytes[row] != 0
    }
}

/// Start and length of each run of `each` rows of `rows`.
pub(super) fn cut(rows: usize, each: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows).step_by(each).map(move |start| (start, each.min(rows - start)))
}
