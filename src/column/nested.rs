//! Lists and structs: in from Arrow and out again, and what a list's elements look like in memory.
//!
//! ```text
//!   list column   views: length, first, address of the slots     2 0 ─┐  0 0 0  1 2 ─┐
//!   slots         values, validity of the child column                └──────────────┴─▶ 7 8 9
//! ```
//!
//! A list column keeps the child's buffers, as a column of strings keeps characters. Its lists may
//! well come to point into several children, so that nothing refers to "the" child column: all
//! elements of a column are found through its views.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, GenericListArray, OffsetSizeTrait, StructArray,
    new_empty_array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, ToByteSlice};

use super::export::cut;
use super::import::{IMPORT, ImportedRows, StringImport};
use super::{Column, Repr, Stats, VIEW_WIDTH, item_of, repr_of};
use crate::error::{Error, Result};
use warpframe_device::ops::list::{Flat, flatten};
use warpframe_device::{Buffer, Device};

/// Where one array's lists lie among its values: the first value, and one more offset than lists.
struct HostLists {
    values: ArrayRef,
    offsets: Vec<usize>,
    nulls: Option<NullBuffer>,
}

impl HostLists {
    fn of(array: &ArrayRef) -> HostLists {
        fn of_offsets<O: OffsetSizeTrait>(lists: &GenericListArray<O>) -> (ArrayRef, Vec<usize>) {
            (
                lists.values().clone(),
                lists.value_offsets().iter().map(|offset| offset.as_usize()).collect(),
            )
        }
        let (values, offsets) = match array.data_type() {
            DataType::List(_) => of_offsets(array.as_list::<i32>()),
            DataType::LargeList(_) => of_offsets(array.as_list::<i64>()),
            _ => {
                let lists = array.as_fixed_size_list();
                let size = lists.value_length() as usize;
                (lists.values().clone(), (0..=lists.len()).map(|row| row * size).collect())
            }
        };
        // A slice need not begin with the first value, nor end with the last.
        let (begin, end) = (offsets[0], offsets[offsets.len() - 1]);
        let offsets = offsets.into_iter().map(|offset| offset - begin).collect();
        HostLists {
            values: values.slice(begin, end - begin),
            offsets,
            nulls: array.nulls().cloned(),
        }
    }
}

impl ImportedRows<'_> {
    /// Imports lists: a child column of all their elements, and views of its rows.
    pub(super) fn import_lists(&self, arrays: &[ArrayRef]) -> Result<Column> {
        let item = item_of(self.dtype)
            .ok_or_else(|| Error::internal(format!("{} is no list", self.dtype)))?;
        let lists: Vec<HostLists> = arrays.iter().map(HostLists::of).collect();
        let values: Vec<ArrayRef> = lists.iter().map(|lists| lists.values.clone()).collect();
        let child = Column::import(self.device, item.data_type(), &values, StringImport::Plain)?;
        if u32::try_from(child.len).is_err() {
            return Err(Error::unsupported(
                format!("lists of {} elements", child.len),
                "elements have 32-bit numbers",
            ));
        }
        let slots = child.slots(self.device)?;
        let address = u128::from(slots.address());
        let mut views: Vec<u128> = Vec::with_capacity(self.len);
        let mut before = 0;
        for lists in &lists {
            for (row, ends) in lists.offsets.windows(2).enumerate() {
                let length = ends[1] - ends[0];
                let null = lists.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
                let view = length as u128 | ((before + ends[0]) as u128) << 32 | address << 64;
                views.push(if null || length == 0 { 0 } else { view });
            }
            before += lists.values.len();
        }
        let (column, _) = self.import(VIEW_WIDTH, |_, piece, data| {
            let rows = &views[piece.start..piece.start + piece.array.len()];
            data.write(piece.start * VIEW_WIDTH, rows.to_byte_slice())
        })?;
        let stats = Stats { longest: child.longest_inside(), ..Stats::default() };
        Ok(Column { stats, characters: child.behind_lists(slots), ..column })
    }

    /// Imports structs: their fields as columns.
    pub(super) fn import_structs(
        &self,
        arrays: &[ArrayRef],
        strings: StringImport,
    ) -> Result<Column> {
        let DataType::Struct(fields) = self.dtype else {
            return Err(Error::internal(format!("{} is no struct", self.dtype)));
        };
        let child = |(at, field): (usize, &FieldRef)| {
            let of = |array: &ArrayRef| array.as_struct().column(at).clone();
            Column::import(
                self.device,
                field.data_type(),
                &arrays.iter().map(of).collect::<Vec<_>>(),
                strings,
            )
        };
        let children = fields.iter().enumerate().map(child).collect::<Result<Vec<_>>>()?;
        let (column, _) = self.import(0, |_, _, _| Ok(()))?;
        Ok(Column { children: children.into(), ..column })
    }
}

impl Column {
    /// What lists of this column's rows point to: for each of its buffers of values where the first
    /// row's value and its byte of validity are (0: all are valid). The column's strings are views.
    pub(crate) fn slots(&self, device: &Device) -> Result<Arc<Buffer>> {
        let mut words = vec![];
        self.push_slots(&mut words);
        let slots = device.alloc(IMPORT, words.len() * 8)?;
        slots.write(0, words.to_byte_slice())?;
        Ok(Arc::new(slots))
    }

    fn push_slots(&self, words: &mut Vec<u64>) {
        debug_assert!(self.is_plain(), "elements of lists are values, not codes");
        words.push(self.data.slice(self.offset * self.width()).address());
        words.push(
            self.validity.as_ref().map_or(0, |validity| validity.slice(self.offset).address()),
        );
        self.children.iter().for_each(|child| child.push_slots(words));
    }

    /// The buffers that lists of this column's rows need: the slots, values, validity, and what
    /// those point into.
    pub(crate) fn behind_lists(&self, slots: Arc<Buffer>) -> Arc<[Arc<Buffer>]> {
        fn push(column: &Column, buffers: &mut Vec<Arc<Buffer>>) {
            buffers.push(column.data.clone());
            buffers.extend(column.validity.iter().chain(column.characters.iter()).cloned());
            column.children.iter().for_each(|child| push(child, buffers));
        }
        let mut buffers = vec![slots];
        push(self, &mut buffers);
        buffers.into()
    }

    /// Most bytes of a string anywhere in the column; `None` where unknown.
    pub(crate) fn longest_inside(&self) -> Option<u32> {
        match self.repr() {
            Repr::Struct => self
                .children
                .iter()
                .try_fold(0, |most, child| Some(child.longest_inside()?.max(most))),
            repr if repr.points() => self.stats.longest,
            _ => Some(0),
        }
    }

    /// Downloads structs as arrays of `rows` rows.
    pub(super) fn export_structs(&self, rows: usize) -> Result<Vec<ArrayRef>> {
        let DataType::Struct(fields) = &self.dtype else {
            return Err(Error::internal(format!("{} is no struct", self.dtype)));
        };
        let nulls = self.read_validity()?.nulls;
        let children =
            self.children.iter().map(|child| child.to_arrays(rows)).collect::<Result<Vec<_>>>()?;
        let piece = |(at, (start, len)): (usize, (usize, usize))| {
            let arrays: Vec<ArrayRef> = children.iter().map(|pieces| pieces[at].clone()).collect();
            let nulls = nulls.as_ref().map(|nulls| nulls.slice(start, len));
            let whole = StructArray::try_new_with_length(fields.clone(), arrays, nulls, len)?;
            Ok(Arc::new(whole) as ArrayRef)
        };
        cut(self.len, rows).enumerate().map(piece).collect()
    }

    /// Downloads lists as arrays of `rows` rows.
    pub(super) fn export_lists(&self, rows: usize) -> Result<Vec<ArrayRef>> {
        let item = item_of(&self.dtype)
            .ok_or_else(|| Error::internal(format!("{} is no list", self.dtype)))?;
        let validity = self.read_validity()?;
        let views = self.read_values::<u128>(&validity)?;
        let mut offsets = vec![0u64];
        let mut total = 0;
        for view in views.typed_data::<u128>() {
            total += match &self.dtype {
                DataType::FixedSizeList(_, size) => *size as u64,
                _ => u64::from(*view as u32),
            };
            offsets.push(total);
        }
        let elements = self.elements(item, &offsets)?.to_arrays(total.max(1) as usize)?.pop();
        let elements = elements.unwrap_or_else(|| new_empty_array(item.data_type()));
        let piece = |(start, len): (usize, usize)| {
            let nulls = validity.nulls.as_ref().map(|nulls| nulls.slice(start, len));
            let ends = &offsets[start..=start + len];
            let values = elements.slice(ends[0] as usize, (ends[len] - ends[0]) as usize);
            list_array(&self.dtype, item, ends, values, nulls)
        };
        cut(self.len, rows).map(piece).collect()
    }

    /// The elements of the column's lists one after the other, those of row `r` at
    /// `offsets[r]..offsets[r + 1]`.
    fn elements(&self, item: &Field, offsets: &[u64]) -> Result<Column> {
        let device = self.data.device();
        let total = offsets[self.len];
        let mut widths = vec![];
        widths_of(item.data_type(), &mut widths)?;
        let ends = device.alloc("lists", offsets.len() * 8)?;
        ends.write(0, offsets.to_byte_slice())?;
        let lists = self.data.slice(self.offset * VIEW_WIDTH);
        let flat = flatten(device, lists, &ends, self.len as u64, total, &widths)?;
        rebuilt(item.data_type(), total as usize, &mut flat.into_iter(), &self.characters)
    }
}

/// Bytes of a value in each slot that elements of a type have.
pub(crate) fn widths_of(dtype: &DataType, widths: &mut Vec<usize>) -> Result<()> {
    widths.push(repr_of(dtype)?.width());
    if let DataType::Struct(fields) = dtype {
        fields.iter().try_for_each(|field| widths_of(field.data_type(), widths))?;
    }
    Ok(())
}

/// A column whose slots lie in buffers of their own.
fn rebuilt(
    dtype: &DataType,
    len: usize,
    slots: &mut impl Iterator<Item = Flat>,
    characters: &Arc<[Arc<Buffer>]>,
) -> Result<Column> {
    let Flat { values, valid } =
        slots.next().ok_or_else(|| Error::internal("a list of too few slots"))?;
    let column = Column::plain(dtype.clone(), len, Arc::new(values), Some(Arc::new(valid)));
    let children = match dtype {
        DataType::Struct(fields) => {
            let child = |field: &FieldRef| rebuilt(field.data_type(), len, slots, characters);
            fields.iter().map(child).collect::<Result<Vec<_>>>()?
        }
        _ => vec![],
    };
    let characters = if repr_of(dtype)?.points() { characters.clone() } else { Arc::new([]) };
    Ok(Column { characters, children: children.into(), ..column })
}

fn list_array(
    dtype: &DataType,
    item: &FieldRef,
    ends: &[u64],
    values: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    fn of_offsets<O: OffsetSizeTrait>(
        item: &FieldRef,
        ends: &[u64],
        values: ArrayRef,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        let too_many = || {
            Error::unsupported(
                format!("lists of {} elements in one array", values.len()),
                "too many",
            )
        };
        let offsets =
            ends.iter().map(|end| O::from_usize((end - ends[0]) as usize).ok_or_else(too_many));
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets.collect::<Result<Vec<O>>>()?));
        Ok(Arc::new(GenericListArray::<O>::try_new(item.clone(), offsets, values, nulls)?))
    }
    match dtype {
        DataType::FixedSizeList(_, size) => {
            let len = ends.len() - 1;
            Ok(Arc::new(FixedSizeListArray::try_new_with_length(
                item.clone(),
                *size,
                values,
                nulls,
                len,
            )?))
        }
        DataType::LargeList(_) => of_offsets::<i64>(item, ends, values, nulls),
        _ => of_offsets::<i32>(item, ends, values, nulls),
    }
}
