//! The first rows of an order, without sorting the others. Kernels in `kernels/top.cuh`.

use super::gather::gather;
use super::sort::{SortWord, argsort};
use super::{grid, numbered, tiles};
use crate::device::{Argument, Buffer, Device, Source};
use crate::error::Result;

const OPERATOR: &str = "top";
/// Of the kernels: `TOP_THREADS`, `TOP_BITS`, `TOP_SELECT_THREADS`, `TOP_SELECT_TILE`.
const THREADS: u32 = 512;
const BITS: u32 = 11;
const SELECT_THREADS: u32 = 256;
const SELECT_TILE: u64 = 4096;
/// Candidates that are always few enough to be sorted: launches cost more than their rows.
const FEW: u64 = 1 << 16;
/// Otherwise candidates may be this part of the rows; beyond, sorting everything costs about as much.
const PART: u64 = 8;

pub(super) fn source() -> Source {
    Source::new("top", "#include \"top.cuh\"\nWF_TOP_ENTRIES\n")
}

/// The first `k` (or all) entries of [`argsort`] of these words, `u32 × min(k, rows)`.
///
/// The first word's high bits decide which rows can be among them; those are sorted by all words. Waits for the device
/// once for each 11 bits that had to be looked at, and as `argsort` does.
pub(crate) fn top_k(device: &Device, words: &[SortWord<'_>], rows: u64, k: u64) -> Result<Buffer> {
    numbered(OPERATOR, rows)?;
    let k = k.min(rows);
    let candidates = match words.first() {
        Some(first) if k > 0 && rows > FEW.min(PART * k) => candidates(device, first, rows, k)?,
        _ => None,
    };
    let Some((candidates, count)) = candidates else {
        let order = argsort(device, words, rows)?;
        let first = device.alloc(OPERATOR, k as usize * 4)?;
        first.copy_from(0, &order, 0, k as usize * 4)?;
        return Ok(first);
    };
    let keys: Vec<Buffer> =
        words.iter().map(|word| gather(device, 8, word.keys, 0, &candidates, count)).collect::<Result<_>>()?;
    let words: Vec<SortWord<'_>> =
        keys.iter().zip(words).map(|(keys, word)| SortWord { keys, bits: word.bits }).collect();
    let order = argsort(device, &words, count)?;
    gather(device, 4, &candidates, 0, &order, k)
}

/// At least the `k` first rows by `word` and all that equal the last of them, ascending; `None` where those are too many.
fn candidates(device: &Device, word: &SortWord<'_>, rows: u64, k: u64) -> Result<Option<(Buffer, u64)>> {
    assert!(word.keys.len() as u64 >= rows * 8 && word.bits <= 64, "{rows} keys of {} bits", word.bits);
    // Rows that are certainly kept, and the bits above the digit that the k-th key has.
    let (mut below, mut prefix) = (0, 0);
    let mut shift = word.bits.saturating_sub(BITS);
    let most = FEW.max(rows / PART);
    loop {
        let counts = histogram(device, word.keys, rows, shift, prefix)?;
        // The k-th key's bin: keys of earlier bins are certainly kept.
        let mut bin = 0;
        while below + counts[bin] < k {
            below += counts[bin];
            bin += 1;
        }
        let greatest = prefix << BITS | bin as u64;
        let kept = below + counts[bin];
        if kept <= most {
            return Ok(Some((select(device, word.keys, rows, shift, greatest, kept)?, kept)));
        }
        if shift == 0 {
            return Ok(None);
        }
        // The next digit's top is the present one's end; the last digit may overlap what is decided already.
        let next = shift.saturating_sub(BITS);
        if shift - next < BITS {
            // Fewer than 11 bits are left: one more look at part of a digit gains little over a sort.
            return Ok(None);
        }
        prefix = greatest;
        shift = next;
    }
}

fn histogram(device: &Device, keys: &Buffer, rows: u64, shift: u32, prefix: u64) -> Result<Vec<u64>> {
    let counts = device.alloc_zeroed(OPERATOR, (1 << BITS) * 8)?;
    let kernel = device.kernel(&source(), "top_histogram")?;
    let full = u64::from(device.full_grid(&kernel, THREADS, 0)?);
    let arguments: [Argument; 5] = [keys.into(), rows.into(), u64::from(shift).into(), prefix.into(), (&counts).into()];
    let blocks = tiles(rows, u64::from(THREADS) * 8).min(full);
    // SAFETY: TopHistogram { keys: rows u64, checked by `candidates`; rows; shift < 64; prefix; counts: 2048 zeroed u64 }.
    unsafe { device.launch(&kernel, grid(blocks, THREADS), &arguments)? };
    counts.read_words(0, 1 << BITS)
}

fn select(device: &Device, keys: &Buffer, rows: u64, shift: u32, greatest: u64, kept: u64) -> Result<Buffer> {
    let tiles = tiles(rows, SELECT_TILE);
    let state = device.alloc_zeroed(OPERATOR, (tiles as usize + 1) * 8)?;
    let out = device.alloc(OPERATOR, kept as usize * 4)?;
    let kernel = device.kernel(&source(), "top_select")?;
    let arguments: [Argument; 6] =
        [keys.into(), rows.into(), u64::from(shift).into(), greatest.into(), (&state).into(), (&out).into()];
    // SAFETY: TopSelect { keys, rows, shift: as above; state: 1 + tiles zeroed u64; out: the histograms counted `kept`
    // rows up to `greatest` }.
    unsafe { device.launch(&kernel, grid(tiles, SELECT_THREADS), &arguments)? };
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

    fn check(device: &Device, words: &[(&[u64], u32)], k: usize) {
        let rows = words[0].0.len();
        let buffers: Vec<Buffer> = words.iter().map(|(keys, _)| upload(device, keys)).collect();
        let sort_words: Vec<SortWord<'_>> =
            buffers.iter().zip(words).map(|(keys, &(_, bits))| SortWord { keys, bits }).collect();
        let found = top_k(device, &sort_words, rows as u64, k as u64).unwrap();
        let mut expected: Vec<u32> = (0..rows as u32).collect();
        expected.sort_by_key(|&row| words.iter().map(|(keys, _)| keys[row as usize]).collect::<Vec<_>>());
        expected.truncate(k);
        assert_eq!(read::<u32>(&found, expected.len()), expected, "{rows} rows, k = {k}");
        assert_eq!(found.len(), expected.len() * 4);
    }

    #[test]
    fn top_k_is_the_head_of_the_sorted_order() {
        for device in devices() {
            for rows in [0, 1, 33, 4097, 9000] {
                let wide: Vec<u64> = random(5, rows).collect();
                let narrow: Vec<u64> = random(6, rows).map(|x| x % 50).collect();
                for k in [0, 1, 10, 100, 20_000] {
                    check(&device, &[(&wide, 64)], k);
                    check(&device, &[(&narrow, 6), (&wide, 64)], k);
                }
            }
        }
    }

    #[test]
    fn top_k_refines_crowded_high_bits_and_falls_back_on_ties() {
        let device = device(7);
        let rows = 70_000; // more than are sorted without a choice
        let crowded: Vec<u64> = random(8, rows).map(|x| 5 << 50 | x >> 20).collect();
        check(&device, &[(&crowded, 64)], 20);
        let ties = vec![3; rows];
        check(&device, &[(&ties, 64)], 5);
        check(&device, &[(&ties, 5)], 5);
    }
}
