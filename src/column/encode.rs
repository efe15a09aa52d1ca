//! Strings in device memory that were made there: codes where there are few, else views whose
//! characters lie together.

use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::DataType;

use super::{CODE_WIDTH, Column, Dictionary, VIEW_WIDTH, distinct_limit};
use crate::error::Result;
use warpframe_device::Device;
use warpframe_device::ops::characters;
use warpframe_device::ops::dictionary::{Slotted, slots};
use warpframe_device::ops::gather::gather;

const OPERATOR: &str = "strings";

impl Column {
    /// A column of views as it is kept: as codes where distinct strings are few
    /// ([`distinct_limit`]), or with its characters apart from what else is in the memory that
    /// views point into, where that is more than half of it. The column begins at row 0 of its
    /// buffers, which nobody else has. Waits for the device.
    ///
    /// # Errors
    /// Of the device.
    pub(crate) fn settled(self, device: &Device) -> Result<Column> {
        let limit = distinct_limit(self.len);
        if let Some(slotted) =
            slots(device, &self.data, self.validity.as_deref(), self.len as u64, limit)?
        {
            return self.encoded(device, slotted);
        }
        let held: usize = self.characters.iter().map(|characters| characters.len()).sum();
        let lengths = characters::lengths(device, &self.data, self.len as u64)?;
        if lengths.total as usize >= held / 2 {
            return Ok(self);
        }
        let own = characters::gathered(device, &self.data, &lengths)?;
        Ok(Column { characters: [Arc::new(own)].into_iter().collect(), ..self })
    }

    fn encoded(self, device: &Device, slotted: Slotted) -> Result<Column> {
        let count = slotted.strings.len();
        let rows: Vec<u8> = slotted.strings.iter().flat_map(|(_, row)| row.to_le_bytes()).collect();
        let mut found = vec![];
        if count > 0 {
            let rows = device.upload(OPERATOR, &rows)?;
            let views = gather(device, VIEW_WIDTH, self.data.slice(0), &rows, count as u64)?;
            let strings = Column {
                characters: self.characters.clone(),
                ..Column::plain(DataType::Utf8View, count, Arc::new(views), None)
            };
            found = strings.to_arrays(count)?;
        }
        let strings = found.first().map(|array| array.as_string_view());
        let mut sorted: Vec<(&str, u32)> = strings
            .iter()
            .flat_map(|strings| strings.iter().flatten())
            .zip(slotted.strings.iter().map(|(slot, _)| *slot))
            .collect();
        sorted.sort_unstable();
        let dictionary = Dictionary::from_sorted(
            device,
            &sorted.iter().map(|(string, _)| *string).collect::<Vec<_>>(),
        )?;
        // The place of each slot's string; of a null's slot any.
        let mut places = vec![0u8; slotted.slots * CODE_WIDTH];
        for (place, (_, slot)) in sorted.iter().enumerate() {
            let at = *slot as usize * CODE_WIDTH;
            places[at..at + CODE_WIDTH].copy_from_slice(&(place as u32).to_le_bytes());
        }
        let places = device.upload(OPERATOR, &places)?;
        let data = gather(device, CODE_WIDTH, places.slice(0), &slotted.codes, self.len as u64)?;
        Ok(Column::plain(self.dtype, self.len, Arc::new(data), self.validity).coded(dictionary))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Array, ArrayRef, StringViewArray};

    use super::*;
    use crate::column::import::ImportedRows;
    use crate::column::{Encoding, pieces};
    use warpframe_device::{MemoryLimit, SimOptions};

    fn device() -> Device {
        Device::sim(SimOptions::default(), MemoryLimit::Bytes(1 << 30))
            .expect("the simulator opens")
    }

    /// Views, whether strings repeat or not.
    fn views(device: &Device, strings: &ArrayRef) -> Column {
        let pieces = pieces::cut(std::slice::from_ref(strings));
        let rows = ImportedRows { device, dtype: &DataType::Utf8View, len: strings.len(), pieces };
        rows.import_plain_strings().unwrap()
    }

    fn strings(rows: usize, string: impl Fn(usize) -> Option<String>) -> ArrayRef {
        Arc::new((0..rows).map(string).collect::<StringViewArray>())
    }

    fn back(column: &Column) -> ArrayRef {
        column.to_arrays(column.len).unwrap().remove(0)
    }

    #[test]
    fn few_strings_become_codes_in_byte_order() {
        let device = device();
        let of =
            |row: usize| (row % 11 != 4).then(|| format!("{} of seven long strings", row * 5 % 7));
        for array in [
            strings(1000, of),
            strings(1, |_| None),
            strings(300, |_| None),
            strings(3, |_| Some("".into())),
        ] {
            let column = views(&device, &array).settled(&device).unwrap();
            let Encoding::Dictionary(dictionary) = &column.encoding else { panic!("not encoded") };
            assert!(dictionary.strings().iter().is_sorted());
            assert_eq!(&back(&column), &array);
        }
    }

    #[test]
    fn many_strings_stay_views_without_what_lay_between_them() {
        let device = device();
        let array = strings(4000, |row| Some(format!("{row}{}", " is a number".repeat(row % 3))));
        let whole = views(&device, &array);
        let held = whole.characters[0].len();
        let same = whole.clone().settled(&device).unwrap();
        assert!(Arc::ptr_eq(&same.characters[0], &whole.characters[0]), "all of them are wanted");
        let part = Column { len: 1500, ..whole }.settled(&device).unwrap();
        assert!(part.is_plain());
        assert!(part.characters[0].len() < held / 2);
        assert_eq!(&back(&part), &array.slice(0, 1500));
    }
}
