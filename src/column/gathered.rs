//! Rows of a relation as columns in place: all of them, or those that a mask keeps. Hand-written
//! kernels move values as wide as they are, whatever their types.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;

use super::{Column, Index, Relation, Repr, Stats, value_type};
use crate::error::Result;
use warpframe_device::ops::gather_columns::{
    GatherColumn, Gathered, KeptRows, gather_columns, gather_kept,
};
use warpframe_device::{Buffer, Device};

/// Which rows of a relation.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a> {
    All,
    /// Those that a mask keeps, and how many they are.
    Kept(&'a KeptRows, u64),
}

/// What is wanted of a relation's columns.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WantedColumn<'a> {
    /// The column at this position.
    Column(usize),
    /// The column at this position, row numbers without nulls; where its own index names no row,
    /// the number that stands for none.
    RowNumbers(usize),
    /// Words that are a key of columns.
    Key(&'a [Digit]),
}

/// A digit of a key: the column at this position, integers without nulls, less a number. A key is
/// the mixed-radix number of its digits, modulo 2⁶⁴.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Digit {
    pub(crate) at: usize,
    pub(crate) less: u64,
    /// How many values it has, 0 standing for 2⁶⁴; of the first digit nobody asks.
    pub(crate) radix: u64,
}

impl Relation {
    /// Columns in place. What lies in place already is shared.
    pub(crate) fn gathered<'a>(
        &self,
        device: &Device,
        operator: &'static str,
        rows: Rows<'_>,
        wanted: impl IntoIterator<Item = WantedColumn<'a>>,
    ) -> Result<Vec<Column>> {
        let kept = match rows {
            Rows::All => self.rows,
            Rows::Kept(_, kept) => kept,
        };
        let mut gather = Gather { device, operator, kept, moved: vec![], present: HashMap::new() };
        let columns = wanted.into_iter().map(|wanted| {
            let of = |at: usize| {
                let (number, column) = &self.columns[at];
                (column, self.indices[*number].as_ref())
            };
            match wanted {
                WantedColumn::Column(at) => match (of(at), rows) {
                    ((column, None), Rows::All) if column.len as u64 == kept => Ok(column.clone()),
                    ((column, index), _) => gather.column(column, index),
                },
                WantedColumn::RowNumbers(at) => gather.row_numbers(of(at)),
                WantedColumn::Key(digits) => gather.key(digits, of),
            }
        });
        let columns = columns.collect::<Result<_>>()?;
        match rows {
            Rows::All => gather_columns(device, &gather.moved, self.rows)?,
            Rows::Kept(kept_rows, kept) => gather_kept(device, &gather.moved, kept_rows, kept)?,
        }
        Ok(columns)
    }

    /// Writes columns into records of `bytes` bytes, each from its own byte of a record on: columns
    /// of 4 or 8 bytes without nulls.
    pub(crate) fn interleave(
        &self,
        device: &Device,
        records: &Arc<Buffer>,
        bytes: usize,
        begins: &[usize],
    ) -> Result<()> {
        let moved = self.columns.iter().zip(begins).map(|((number, column), begin)| {
            let width = column.width();
            GatherColumn {
                how: Gathered::Strided { width, stride: bytes / width },
                values: column.data.slice(column.offset * width),
                index: self.indices[*number]
                    .as_ref()
                    .map(|index| index.rows.slice(index.offset as usize * 4)),
                out: (records.clone(), *begin),
            }
        });
        Ok(gather_columns(device, &moved.collect::<Vec<_>>(), self.rows)?)
    }
}

/// Columns that are about to be moved.
struct Gather<'a> {
    device: &'a Device,
    operator: &'static str,
    /// How many rows come out.
    kept: u64,
    moved: Vec<GatherColumn<'a>>,
    /// By index: for each row whether the index names one.
    present: HashMap<u64, Arc<Buffer>>,
}

impl<'a> Gather<'a> {
    /// Moves elements of `width` bytes from the `offset`-th on into a new buffer of elements of
    /// `out` bytes.
    fn values(
        &mut self,
        how: Gathered,
        (values, offset, width): (&'a Buffer, usize, usize),
        index: Option<&'a Index>,
        out: usize,
    ) -> Result<Arc<Buffer>> {
        let out =
            Arc::new(self.device.alloc(self.operator, (self.kept as usize).saturating_mul(out))?);
        let values = values.slice(offset * width);
        let index = index.map(|index| index.rows.slice(index.offset as usize * 4));
        self.moved.push(GatherColumn { how, values, index, out: (out.clone(), 0) });
        Ok(out)
    }

    fn column(&mut self, column: &'a Column, index: Option<&'a Index>) -> Result<Column> {
        let validity = self.validity(column, index)?;
        let is_struct = column.repr() == Repr::Struct;
        // A struct has no values of its own.
        let data = match is_struct {
            true => Arc::new(self.device.alloc(self.operator, 0)?),
            false => {
                let width = column.width();
                let how = Gathered::Values { width, otherwise: 0 };
                self.values(how, (&column.data, column.offset, width), index, width)?
            }
        };
        let children = match is_struct {
            true => column
                .children
                .iter()
                .map(|child| self.column(child, index))
                .collect::<Result<_>>()?,
            false => Arc::new([]) as Arc<[Column]>,
        };
        Ok(Column {
            dtype: value_type(&column.dtype).clone(),
            len: self.kept as usize,
            offset: 0,
            data,
            validity,
            encoding: column.encoding.clone(),
            characters: column.characters.clone(),
            children,
            stats: Stats { unique: false, ascending: false, ..column.stats },
        })
    }

    fn validity(
        &mut self,
        column: &'a Column,
        index: Option<&'a Index>,
    ) -> Result<Option<Arc<Buffer>>> {
        if let Some(validity) = &column.validity {
            let how = Gathered::Values { width: 1, otherwise: 0 };
            return self.values(how, (validity, column.offset, 1), index, 1).map(Some);
        }
        let Some(index) = index.filter(|index| index.gaps) else { return Ok(None) };
        let place = index.rows.slice(index.offset as usize * 4).address();
        if let Some(present) = self.present.get(&place) {
            return Ok(Some(present.clone()));
        }
        let present = self.values(Gathered::Present, (&index.rows, 0, 0), Some(index), 1)?;
        self.present.insert(place, present.clone());
        Ok(Some(present))
    }

    fn row_numbers(&mut self, (column, index): (&'a Column, Option<&'a Index>)) -> Result<Column> {
        let how = Gathered::Values { width: 4, otherwise: u32::MAX.into() };
        let data = self.values(how, (&column.data, column.offset, 4), index, 4)?;
        Ok(Column::plain(column.dtype.clone(), self.kept as usize, data, None))
    }

    fn key(
        &mut self,
        digits: &[Digit],
        of: impl Fn(usize) -> (&'a Column, Option<&'a Index>),
    ) -> Result<Column> {
        let keys =
            Arc::new(self.device.alloc(self.operator, (self.kept as usize).saturating_mul(8))?);
        for (number, digit) in digits.iter().enumerate() {
            let (column, index) = of(digit.at);
            let (width, repr) = (column.width(), column.repr());
            let signed = matches!(repr, Repr::I8 | Repr::I16 | Repr::I32 | Repr::I64 | Repr::I128);
            // Where a digit has 2⁶⁴ values, those before it are 0.
            let times = if number == 0 { 0 } else { digit.radix };
            self.moved.push(GatherColumn {
                how: Gathered::Digit { width, signed, less: digit.less, times },
                values: column.data.slice(column.offset * width),
                index: index.map(|index| index.rows.slice(index.offset as usize * 4)),
                out: (keys.clone(), 0),
            });
        }
        Ok(Column::plain(DataType::UInt64, self.kept as usize, keys, None))
    }
}
