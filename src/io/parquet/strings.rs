//! Columns of strings, put together from chunks of codes and chunks of views.
//!
//! Each column chunk has a dictionary of its own. Codes are those of all dictionaries of the
//! column, one behind the other:
//!
//! ```text
//!   row group 0  AIR MAIL │ row group 1  MAIL SHIP │        codes 0 1 1 0 │ 3 2 2
//!   sorted       AIR MAIL SHIP                              codes 0 1 1 0 │ 2 1 1
//! ```
//!
//! Where there are few strings in all, they become one sorted dictionary and codes are translated;
//! where there are many, or some chunk has strings that are no codes, they become views.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, StringViewArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{HashMap, HashSet};

use crate::column::{Column, Dictionary, distinct_limit};
use crate::error::Result;
use warpframe_device::cores::cores;
use warpframe_device::ops::gather::gather;
use warpframe_device::{Buffer, Device};

const OPERATOR: &str = "strings";
const CODE_WIDTH: usize = 4;
const VIEW_WIDTH: usize = 16;
/// Dictionaries of all chunks are brought to the host up to so many entries.
const MOST_ENTRIES: usize = 1 << 23;

/// A column of strings while it is read.
#[derive(Debug, Default)]
pub(super) struct StringTarget {
    /// Of all rows, where some chunk has codes.
    pub(super) codes: Option<Arc<Buffer>>,
    /// Of all rows, where some chunk has views.
    pub(super) views: Option<Arc<Buffer>>,
    /// The chunks of codes, in the order of their bases.
    pub(super) coded: Vec<Coded>,
    /// What views point into.
    pub(super) characters: Vec<Arc<Buffer>>,
}

/// A chunk of codes.
#[derive(Debug)]
pub(super) struct Coded {
    /// The views of its dictionary, from a byte on.
    pub(super) values: Arc<Buffer>,
    pub(super) offset: usize,
    pub(super) entries: u32,
    /// Its rows in the column.
    pub(super) row: u64,
    pub(super) rows: u64,
}

impl StringTarget {
    /// The code of the next chunk's first entry; `None` where codes do not reach.
    pub(super) fn base(&self) -> Option<u32> {
        self.coded.iter().try_fold(0u32, |sum, coded| sum.checked_add(coded.entries))
    }

    /// The column, of which statistics are not known yet.
    pub(super) fn finish(
        self,
        device: &Device,
        dtype: &DataType,
        rows: usize,
        validity: Option<Arc<Buffer>>,
    ) -> Result<Column> {
        let plain = |data| Column {
            characters: self.characters.iter().cloned().collect(),
            ..Column::plain(dtype.clone(), rows, data, validity.clone())
        };
        let Some(codes) = &self.codes else {
            let data = match self.views {
                Some(views) => views,
                // No file has a value.
                None => Arc::new(device.alloc_zeroed(OPERATOR, rows * VIEW_WIDTH)?),
            };
            return Ok(plain(data));
        };
        let entries: usize = self.coded.iter().map(|coded| coded.entries as usize).sum();
        // A null's code is 0, whether there is such an entry or not.
        let table = Arc::new(device.alloc_zeroed(OPERATOR, entries.max(1) * VIEW_WIDTH)?);
        let mut at = 0;
        let is_next = |one: &Coded, next: &Coded| {
            Arc::ptr_eq(&one.values, &next.values)
                && one.offset + one.entries as usize * VIEW_WIDTH == next.offset
        };
        for run in self.coded.chunk_by(is_next) {
            let bytes = run.iter().map(|coded| coded.entries as usize * VIEW_WIDTH).sum();
            table.copy_from(at, &run[0].values, run[0].offset, bytes)?;
            at += bytes;
        }
        if let Some(views) = &self.views {
            for coded in &self.coded {
                let rows = coded.rows as usize;
                let own = device.alloc(OPERATOR, rows * CODE_WIDTH)?;
                own.copy_from(0, codes, coded.row as usize * CODE_WIDTH, rows * CODE_WIDTH)?;
                let found = gather(device, VIEW_WIDTH, table.slice(0), &own, coded.rows)?;
                views.copy_from(coded.row as usize * VIEW_WIDTH, &found, 0, rows * VIEW_WIDTH)?;
            }
            return Ok(plain(views.clone()));
        }
        let limit = distinct_limit(rows);
        let most = self.coded.iter().map(|coded| coded.entries as usize).max().unwrap_or(0);
        if most <= limit && entries <= MOST_ENTRIES {
            let all = plain(table.clone());
            let all = Column { len: entries, validity: None, dtype: DataType::Utf8View, ..all };
            let arrays = all.to_arrays(entries.max(1))?;
            if let Some((sorted, places)) =
                merged(arrays.first().map(|array| array.as_string_view()), limit)
            {
                let dictionary = Dictionary::from_sorted(device, &sorted)?;
                let places: Vec<u8> = places.iter().flat_map(|place| place.to_le_bytes()).collect();
                let places =
                    device.upload(OPERATOR, if places.is_empty() { &[0; 4] } else { &places })?;
                let data = gather(device, CODE_WIDTH, places.slice(0), codes, rows as u64)?;
                let codes = Column::plain(dtype.clone(), rows, Arc::new(data), validity);
                return Ok(codes.coded(dictionary));
            }
        }
        let data = gather(device, VIEW_WIDTH, table.slice(0), codes, rows as u64)?;
        Ok(plain(Arc::new(data)))
    }
}

/// The strings without duplicates in byte order, and the place of each among them; `None` where
/// there are more than `limit`.
fn merged(strings: Option<&StringViewArray>, limit: usize) -> Option<(Vec<&str>, Vec<u32>)> {
    let strings = match strings {
        Some(strings) => strings,
        None => return Some((vec![], vec![])),
    };
    let cores = cores();
    let each = strings.len().div_ceil(cores).max(1 << 14);
    let parts: Vec<std::ops::Range<usize>> = (0..strings.len())
        .step_by(each)
        .map(|from| from..(from + each).min(strings.len()))
        .collect();
    let distinct = |part: &std::ops::Range<usize>| -> Option<HashSet<&str>> {
        let mut found = HashSet::new();
        for at in part.clone() {
            found.insert(strings.value(at));
            if found.len() > limit {
                return None;
            }
        }
        Some(found)
    };
    let found = side_by_side(&parts, distinct).into_iter().collect::<Option<Vec<_>>>()?;
    let mut sorted: Vec<&str> = found.into_iter().flatten().collect();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.len() > limit {
        return None;
    }
    let place: HashMap<&str, u32> =
        sorted.iter().enumerate().map(|(place, string)| (*string, place as u32)).collect();
    let places = side_by_side(&parts, |part| {
        part.clone().map(|at| place[strings.value(at)]).collect::<Vec<u32>>()
    });
    Some((sorted, places.into_iter().flatten().collect()))
}

/// What `work` makes of each part, a thread each.
fn side_by_side<P: Sync, T: Send>(parts: &[P], work: impl Fn(&P) -> T + Sync) -> Vec<T> {
    if parts.len() < 2 {
        return parts.iter().map(work).collect();
    }
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = parts.iter().map(|part| scope.spawn(move || work(part))).collect();
        let done = threads.into_iter().map(|thread| thread.join());
        done.map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_merged_in_byte_order_up_to_a_limit() {
        let strings = StringViewArray::from(vec!["MAIL", "AIR", "", "MAIL", "é", "z", "AIR"]);
        let (sorted, places) = merged(Some(&strings), 5).unwrap();
        assert_eq!(sorted, ["", "AIR", "MAIL", "z", "é"]);
        assert_eq!(places, [2, 1, 0, 2, 4, 3, 1]);
        assert!(merged(Some(&strings), 4).is_none());
        let many =
            StringViewArray::from_iter_values((0..100_000).map(|at| format!("{}", at % 1000)));
        let (sorted, places) = merged(Some(&many), 1000).unwrap();
        assert_eq!(sorted.len(), 1000);
        assert!(
            places
                .iter()
                .enumerate()
                .all(|(at, place)| sorted[*place as usize] == format!("{}", at % 1000))
        );
        assert!(merged(Some(&many), 999).is_none());
        assert_eq!(merged(None, 5), Some((vec![], vec![])));
    }
}
