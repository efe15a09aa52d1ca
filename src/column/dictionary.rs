//! Dictionaries: distinct strings in byte order, on the host and on the device.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray, StringViewBuilder};
use datafusion::arrow::datatypes::DataType;

use super::import::ImportedRows;
use super::{Column, Dictionary, Encoding, Stats, pieces};
use crate::error::{Error, Result};
use warpframe_device::Device;

impl Dictionary {
    /// Uploads a dictionary of strings that are in byte order and distinct. Where there are none,
    /// it has the empty string.
    pub(crate) fn from_sorted(device: &Device, strings: &[&str]) -> Result<Self> {
        let strings = if strings.is_empty() { &[""] } else { strings };
        debug_assert!(
            strings.windows(2).all(|pair| pair[0] < pair[1]),
            "dictionaries are sorted and free of duplicates"
        );
        if u32::try_from(strings.len()).is_err() {
            let what = format!("dictionary of {} strings", strings.len());
            return Err(Error::unsupported(what, "codes have 32 bits"));
        }
        let mut builder = StringViewBuilder::with_capacity(strings.len());
        strings.iter().for_each(|string| builder.append_value(string));
        Dictionary::of_values(device, Arc::new(builder.finish()))
    }

    fn of_values(device: &Device, values: ArrayRef) -> Result<Self> {
        let pieces = pieces::cut(std::slice::from_ref(&values));
        let rows = ImportedRows { device, dtype: &DataType::Utf8View, len: values.len(), pieces };
        let views = rows.import_plain_strings()?;
        Ok(Dictionary { values, views: views.data, characters: views.characters })
    }

    /// The dictionary on another device.
    ///
    /// # Errors
    /// Of the device.
    pub(crate) fn on(&self, device: &Device) -> Result<Self> {
        Dictionary::of_values(device, self.values.clone())
    }

    /// How many strings it has: codes are less.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// The strings, on the host.
    pub(crate) fn strings(&self) -> &StringViewArray {
        self.values.as_string_view()
    }

    /// The least and the greatest code.
    pub(super) fn codes(&self) -> (i128, i128) {
        (0, (self.len() as i128 - 1).max(0))
    }

    /// What is known of a column of its codes.
    pub(crate) fn stats(&self) -> Stats {
        let longest = self.strings().lengths().max();
        Stats { range: Some(self.codes()), longest, ..Stats::default() }
    }
}

impl Column {
    /// The column, whose values are codes of this dictionary.
    pub(crate) fn coded(self, dictionary: Dictionary) -> Column {
        Column {
            stats: dictionary.stats(),
            encoding: Encoding::Dictionary(Arc::new(dictionary)),
            ..self
        }
    }
}
