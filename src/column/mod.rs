//! Columns and tables in device memory, and their way from and to Arrow.
//!
//! A value lies in the representation of its type ([`Repr`]), a null is a zero in a byte mask beside the values (values
//! under nulls are undefined), strings are 16-byte views over shared immutable characters, or codes into a sorted
//! dictionary where a column has few distinct strings.

mod repr;

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, SchemaRef};

pub(crate) use repr::Repr;

use crate::device::{Buffer, Device};

/// One column in device memory. Cloning shares the buffers.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// The logical type, as Arrow names it.
    pub(crate) dtype: DataType,
    /// Rows.
    pub(crate) len: usize,
    /// Index in `data` and `validity` of the first row (slices share buffers).
    pub(crate) offset: usize,
    /// Values: `Repr::of(dtype).width()` bytes a row, or `u32` codes where `encoding` is `Dictionary`.
    pub(crate) data: Arc<Buffer>,
    /// One byte a row, 1 = valid, or `None` where every row is valid.
    pub(crate) validity: Option<Arc<Buffer>>,
    /// How `data` is to be read.
    pub(crate) encoding: Encoding,
    /// Character buffers that the views in `data` point into; empty for other types.
    pub(crate) characters: Arc<[Arc<Buffer>]>,
    /// What is known of the values.
    pub(crate) stats: Stats,
}

/// How a column's `data` is to be read.
#[derive(Debug, Clone)]
pub(crate) enum Encoding {
    /// Values of the type's representation.
    Plain,
    /// `u32` codes into a dictionary of strings sorted bytewise without duplicates: order of codes is order of values.
    Dictionary(Arc<Dictionary>),
}

/// Distinct strings in byte order, on both sides.
#[derive(Debug)]
pub(crate) struct Dictionary {
    /// The strings, on the host: a `Utf8View` array without nulls.
    pub(crate) values: ArrayRef,
    /// The same as 16-byte views on the device, one for each code.
    pub(crate) views: Arc<Buffer>,
    /// What the views point into.
    pub(crate) characters: Arc<[Arc<Buffer>]>,
}

/// What is known of a column's valid values; bounds need not be tight, but always hold.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Stats {
    /// Least and greatest integer value in the column's representation (decimals unscaled, dates in days, codes for
    /// dictionaries); `None` where unknown or not an integer representation.
    pub(crate) range: Option<(i128, i128)>,
    /// Greatest magnitude of the floats; `None` where unknown, or where NaN or an infinity occurs.
    pub(crate) magnitude: Option<f64>,
    /// Most bytes in a string; `None` where unknown.
    pub(crate) longest: Option<u32>,
    /// No value (nulls aside) occurs twice.
    pub(crate) unique: bool,
}

/// Columns of one length in device memory, with their schema. Cloning shares the buffers.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) device: Device,
    pub(crate) schema: SchemaRef,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: usize,
}

impl Table {
    pub(crate) fn to_batches(&self, _rows: usize) -> crate::error::Result<Vec<datafusion::arrow::array::RecordBatch>> {
        Err(crate::error::Error::unsupported("download", "column module not merged"))
    }
}
