//! Sorts few rows by one kernel, without waiting. Kernel in `kernels/sort_few.cuh`.

use super::OPERATOR;
use super::key::{SortKey, SortWord};
use crate::error::Result;
use crate::ops::{grid, tiles};
use crate::{Argument, Buffer, Device, KernelSource, Slice};

/// Rows at most: of more, comparing all with all takes as long as the launches of a radix sort.
pub(super) const MOST_ROWS: u64 = 1024;
/// `SORT_FEW_MORE` and `SORT_FEW_THREADS` of the kernel.
pub(super) const MOST_MORE: usize = 6;
const THREADS: u32 = 256;

pub(super) fn source() -> KernelSource {
    KernelSource::new("sort_few", "#include \"sort_few.cuh\"\nWF_SORT_FEW_ENTRIES\n")
}

/// The rows' numbers in order, `u32 × rows`; `more` are at most [`MOST_MORE`] words that order
/// equal keys.
pub(super) fn argsort(
    device: &Device,
    key: &SortKey<'_>,
    more: &[SortWord<'_>],
    rows: u64,
) -> Result<Buffer> {
    let order = device.alloc(OPERATOR, rows as usize * 4)?;
    SortFew { device, key, more, rows }.launch(Some(&order), None, None)?;
    Ok(order)
}

/// The column's values in order, and the payload beside them. A row of the payload has the given
/// width in bytes.
pub(super) fn sort(
    device: &Device,
    key: &SortKey<'_>,
    payload: Option<(Slice<'_>, usize)>,
    rows: u64,
) -> Result<(Buffer, Option<Buffer>)> {
    let keys = device.alloc(OPERATOR, rows as usize * key.kind.width())?;
    let moved = match payload {
        Some((from, width)) => Some((from, width, device.alloc(OPERATOR, rows as usize * width)?)),
        None => None,
    };
    let between = moved.as_ref().map(|(from, width, to)| (*from, *width, to));
    SortFew { device, key, more: &[], rows }.launch(None, Some(&keys), between)?;
    Ok((keys, moved.map(|(_, _, to)| to)))
}

/// What is sorted.
struct SortFew<'a> {
    device: &'a Device,
    key: &'a SortKey<'a>,
    more: &'a [SortWord<'a>],
    rows: u64,
}

impl SortFew<'_> {
    /// Writes the rows' numbers, the keys, and what a payload has, to rows of their widths.
    fn launch(
        &self,
        order: Option<&Buffer>,
        keys: Option<&Buffer>,
        payload: Option<(Slice<'_>, usize, &Buffer)>,
    ) -> Result<()> {
        let SortFew { device, key, more, rows } = *self;
        assert!(more.len() <= MOST_MORE && rows <= MOST_ROWS, "too much for one kernel");
        let null = Argument::from(0u64);
        let mut arguments: Vec<Argument> = key.arguments().to_vec();
        arguments.push(rows.into());
        arguments.extend(more.iter().map(|word| Argument::from(word.keys)));
        arguments.extend((more.len()..MOST_MORE).map(|_| null));
        arguments.push((more.len() as u64).into());
        arguments.push(order.map_or(null, Argument::from));
        arguments.push(keys.map_or(null, Argument::from));
        let (from, to, width) = match payload {
            Some((from, width, to)) => (from.into(), to.into(), width as u64),
            None => (null, null, 0),
        };
        arguments.extend([from, to, width.into()]);
        device.note(|| "sort: by counting the rows before each (few rows)".to_string());
        let kernel = device.kernel(&source(), "sort_few")?;
        let grid = grid(tiles(rows * 32, u64::from(THREADS)), THREADS);
        // SAFETY: `SortFew` { key: rows of its kind; rows; more: SORT_FEW_MORE pointers, of which the
        // first `more_words` have rows of u64 (both checked by the callers); order: u32, keys_out:
        // of the key's width, payload_out: of its width, all rows or null, allocated above;
        // payload: rows of 4 or 8 bytes, checked by the caller }.
        unsafe { device.launch(&kernel, grid, &arguments) }
    }
}

#[cfg(test)]
mod tests;
