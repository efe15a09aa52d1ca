//! Columns and tables in device memory, and their way from and to Arrow.
//!
//! A value lies in the representation of its type ([`Repr`]). Validity is a byte for each row, not
//! a bit: kernels write it row by row, in any order. Values under nulls are undefined, but safe: a
//! view under a null is empty, so nobody follows its address.
//!
//! Strings are 16-byte views over shared immutable characters, or codes into a sorted dictionary
//! where a column has few distinct strings. Codes order as the strings do, so comparisons, groups,
//! joins and sorts work on codes. Lists are 16-byte views of rows of a shared child column, whose
//! elements are never codes. Structs are columns side by side. Lists and structs are described in
//! `nested.rs`.

mod bytes;
mod concatenate;
mod dictionary;
mod encode;
mod encoding;
mod export;
mod export_strings;
mod facts;
mod gathered;
mod held;
mod import;
mod import_strings;
pub(crate) mod interval;
mod nested;
mod peer;
mod pieces;
mod relation;
mod repr;
mod rounded;
mod spilled;
mod stats;
mod steps;
mod survey;
mod table;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, SchemaRef};

pub(crate) use bytes::{least_row_bytes, row_bytes, value_bytes};
pub(crate) use encoding::Encoding;
pub(crate) use facts::Facts;
pub(crate) use gathered::{Digit, Rows, WantedColumn};
pub(crate) use import_strings::distinct_limit;
pub(crate) use nested::widths_of;
pub(crate) use relation::{Index, NO_ROW, Relation};
pub(crate) use repr::{
    Repr, coded_numbers, decimal_bound, integer_bounds, is_nested, item_of, value_type,
};
pub(crate) use spilled::SpilledRows;
pub(crate) use steps::EqualSteps;

use crate::error::{Error, Result};
use warpframe_device::{Buffer, Device};

/// One column in device memory. Cloning shares the buffers.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// The logical type, as Arrow names it.
    pub(crate) dtype: DataType,
    /// Rows.
    pub(crate) len: usize,
    /// Index in `data` and `validity` of the first row (slices share buffers).
    pub(crate) offset: usize,
    /// What `encoding` says, `width()` bytes a row.
    pub(crate) data: Arc<Buffer>,
    /// One byte a row, 1 = valid, or `None` where every row is valid.
    pub(crate) validity: Option<Arc<Buffer>>,
    /// How `data` is to be read.
    pub(crate) encoding: Encoding,
    /// Buffers that the views in `data` point into: characters of strings, and of lists the buffers
    /// of their elements with all that those point into. Empty for other types.
    pub(crate) characters: Arc<[Arc<Buffer>]>,
    /// A struct's fields, of its rows; empty for other types.
    pub(crate) children: Arc<[Column]>,
    /// What is known of the values.
    pub(crate) stats: Stats,
}

/// Distinct strings in byte order, on both sides. There is always at least one, so that code 0 can
/// be read even where a column has no valid row; not every string need occur in the column.
#[derive(Debug)]
pub(crate) struct Dictionary {
    /// The strings, on the host: a `Utf8View` array without nulls.
    pub(crate) values: ArrayRef,
    /// The strings on the device: 16-byte views, one for each code.
    pub(crate) views: Arc<Buffer>,
    /// What the views point into.
    pub(crate) characters: Arc<[Arc<Buffer>]>,
}

/// What is known of a column's valid values; bounds need not be tight, but always hold.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Stats {
    /// Least and greatest integer value in the column's representation (decimals unscaled, dates in
    /// days, codes for dictionaries); `None` where unknown or not an integer representation.
    pub(crate) range: Option<(i128, i128)>,
    /// Greatest magnitude of the floats; `None` where unknown, or where NaN or an infinity occurs.
    pub(crate) magnitude: Option<f64>,
    /// Every float is a multiple of 2 to this power; `None` as for `magnitude`.
    pub(crate) unit: Option<i32>,
    /// Most bytes in a string; `None` where unknown.
    pub(crate) longest: Option<u32>,
    /// No value (nulls aside) occurs twice.
    pub(crate) unique: bool,
    /// Integers that do not descend from row to row, in the order in which they lie; none is null.
    pub(crate) ascending: bool,
}

/// Columns of one length in device memory, with their schema. Cloning shares the buffers.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) device: Device,
    pub(crate) schema: SchemaRef,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: usize,
}

impl Column {
    /// `len` rows from `offset` on, as far as there are rows; shares the buffers.
    pub(crate) fn slice(&self, offset: usize, len: usize) -> Self {
        let offset = offset.min(self.len);
        let len = len.min(self.len - offset);
        let children = self.children.iter().map(|child| child.slice(offset, len)).collect();
        Column { offset: self.offset + offset, len, children, ..self.clone() }
    }

    /// A column whose values lie plainly in the type's representation, with nothing known of them.
    pub(crate) fn plain(
        dtype: DataType,
        len: usize,
        data: Arc<Buffer>,
        validity: Option<Arc<Buffer>>,
    ) -> Self {
        let encoding = Encoding::Plain;
        let (characters, children) = (Arc::new([]), Arc::new([]));
        Column {
            dtype,
            len,
            offset: 0,
            data,
            validity,
            encoding,
            characters,
            children,
            stats: Stats::default(),
        }
    }

    /// The representation of the logical type: that of decoded values, whatever `encoding` is.
    pub(crate) fn repr(&self) -> Repr {
        Repr::of(&self.dtype).expect("columns are made of types that have a representation")
    }

    /// Whether a row is null. Waits for the device where that is not known.
    ///
    /// # Errors
    /// Of the device.
    pub(crate) fn has_nulls(&self) -> Result<bool> {
        let Some(validity) = &self.validity else { return Ok(false) };
        let mut rows = vec![0; self.len];
        validity.read(self.offset, &mut rows)?;
        Ok(rows.contains(&0))
    }
}

/// Bytes of a dictionary code.
const CODE_WIDTH: usize = 4;
/// Bytes of a view.
const VIEW_WIDTH: usize = 16;
/// Strings of at most this many bytes lie in their views.
const INLINE: usize = 12;

/// The representation of a type, or the error that says that there is none.
fn repr_of(dtype: &DataType) -> Result<Repr> {
    Repr::of(dtype).ok_or_else(|| {
        Error::unsupported(format!("type {dtype}"), "it has no form in device memory")
    })
}
