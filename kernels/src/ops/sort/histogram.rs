//! How often each value of each digit occurs, in one read of the keys: where the rows of each value
//! begin, and which digits matter.

use super::key::SortKey;
use super::{OPERATOR, source};
use crate::error::Result;
use crate::ops::{grid, tiles};
use crate::{Argument, Buffer, Device, Grid, KernelSource, Slice};

/// `SORT_DIGITS` of the kernels: values of a digit.
pub(super) const DIGITS: usize = 256;
/// `SORT_HISTOGRAM_THREADS` and `SORT_HISTOGRAM_ITEMS` of the kernels.
const THREADS: u32 = 1024;
const TILE: u64 = THREADS as u64 * 8;
/// Rows from which on a block's counts have copies, and most bytes of those.
const COPIED_ROWS: u64 = 1 << 16;
const COPIED_BYTES: usize = 128 << 10;
/// Shared memory that the kernel takes besides.
const RESERVED: usize = 1024;
/// Bytes of shared memory that a block may have on compute capability 8.6 and 8.9, 8.0 and 8.7, and
/// 9.0 and newer (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
const SHARED_BYTES: [u32; 3] = [99 << 10, 163 << 10, 227 << 10];

/// Whether the host waits for the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountsOnHost {
    Read,
    Unread,
}

/// The counted digits of all keys.
pub(super) struct DigitHistograms {
    /// `u32 × 256` for each digit.
    offsets: Buffer,
    /// Digits that are not the same in every key, least significant first; all of them if the
    /// counts were not read.
    pub(super) live: Vec<u32>,
    /// The greatest key; 0 if it was not read.
    greatest: u64,
}

impl DigitHistograms {
    /// Counts the digits of `bits` bits of every key from bit `shift` on.
    pub(super) fn count(
        device: &Device,
        key: &SortKey<'_>,
        rows: u64,
        shift: u32,
        bits: u32,
        counts_are: CountsOnHost,
    ) -> Result<DigitHistograms> {
        assert!(shift + bits <= 64, "{bits} of 64 bits from {shift} on");
        let digits = bits.div_ceil(8);
        let cells = digits as usize * DIGITS;
        if digits == 0 {
            return Ok(DigitHistograms {
                offsets: device.alloc(OPERATOR, 0)?,
                live: Vec::new(),
                greatest: 0,
            });
        }
        let counts = device.alloc_zeroed(OPERATOR, (cells + 1) * 8)?;
        let copies = copies(digits, rows, device.properties().shared_per_block);
        let histogram = histogram_source(key.kind.width(), digits, copies);
        let kernel = device.kernel(&histogram, &histogram.name)?;
        let shared = cells as u32 * copies * 4;
        let full = u64::from(device.full_grid(&kernel, THREADS, shared)?);
        let [data, kind, flip, base] = key.arguments();
        let greatest = counts.slice(cells * 8);
        let shift = u64::from(shift).into();
        let arguments: [Argument; 8] =
            [data, kind, flip, base, rows.into(), shift, (&counts).into(), greatest.into()];
        let blocks = tiles(rows, TILE).min(full);
        // SAFETY: SortHistogram { key: rows of its kind (checked by the sort's caller); rows;
        // shift; counts: digits × 256 zeroed u64; greatest: one more }.
        unsafe { device.launch(&kernel, Grid { shared, ..grid(blocks, THREADS) }, &arguments)? };
        let offsets = device.alloc(OPERATOR, cells * 4)?;
        let kernel = device.kernel(&source(), "sort_offsets")?;
        let arguments: [Argument; 2] = [(&counts).into(), (&offsets).into()];
        // SAFETY: SortOffsets { counts: digits × 256 u64; offsets: digits × 256 u32 }, one block of
        // 256 for each digit.
        unsafe { device.launch(&kernel, grid(u64::from(digits), DIGITS as u32), &arguments)? };
        if counts_are == CountsOnHost::Unread {
            return Ok(DigitHistograms { offsets, live: (0..digits).collect(), greatest: 0 });
        }
        let mut counts = counts.read_words(0, cells + 1)?;
        let greatest = counts.pop().unwrap_or(0);
        let live = counts
            .chunks_exact(DIGITS)
            .zip(0..)
            .filter(|(digit, _)| !digit.contains(&rows))
            .map(|(_, at)| at);
        Ok(DigitHistograms { offsets, live: live.collect(), greatest })
    }

    /// Whether no key is known to have more than `bits` bits.
    pub(super) fn fit(&self, bits: u32) -> bool {
        bits >= 64 || self.greatest >> bits == 0
    }

    /// Where the rows of each value of a counted digit begin, `u32 × 256`.
    pub(super) fn offsets(&self, digit: u32) -> Slice<'_> {
        self.offsets.slice(digit as usize * DIGITS * 4)
    }
}

/// Copies of a block's counts of so many digits: as many as a warp has lanes, where shared memory
/// suffices.
fn copies(digits: u32, rows: u64, shared: u32) -> u32 {
    let room = COPIED_BYTES.min((shared as usize).saturating_sub(RESERVED));
    let fits = |copies: &u32| digits as usize * DIGITS * 4 * *copies as usize <= room;
    if rows < COPIED_ROWS { 1 } else { [32, 16, 8, 4, 2].into_iter().find(fits).unwrap_or(1) }
}

fn histogram_source(key_width: usize, digits: u32, copies: u32) -> KernelSource {
    let key = if key_width == 4 { "u32" } else { "u64" };
    let name = format!("sort_histogram_{key}_{digits}_{copies}");
    let text = format!(
        "#include \"sort.cuh\"\nWF_SORT_HISTOGRAM({name}, wf::{key}, {digits}, {copies})\n"
    );
    KernelSource::new(name, text)
}

/// Every histogram that a device with one of these sizes of shared memory asks for.
pub(super) fn sources() -> Vec<KernelSource> {
    let widths =
        [4, 8].into_iter().flat_map(|width| (1..=width as u32).map(move |digits| (width, digits)));
    let mut sources = vec![];
    for (width, digits) in widths {
        let mut counts: Vec<_> =
            SHARED_BYTES.iter().map(|&shared| copies(digits, COPIED_ROWS, shared)).collect();
        counts.push(1);
        counts.sort_unstable();
        counts.dedup();
        sources.extend(counts.into_iter().map(|copies| histogram_source(width, digits, copies)));
    }
    sources
}
