//! The end of a sort by high bits: `sort_runs` puts rows that agree in them in order, and says what it could not. Kernel in `kernels/sort_runs.cuh`.

use super::OPERATOR;
use super::found::{Found, Trust};
use super::key::{KeyKind, SortKey, SortWord};
use super::long_runs::Rows;
use crate::device::{Argument, Buffer, Device, Grid, Slice, Source};
use crate::error::Result;
use crate::ops::{grid, tiles};

/// `SORT_RUNS_CHUNK` of the kernels.
const CHUNK: u32 = 8;
/// `SORT_RUNS_MARGIN` of the kernels: longest runs that are mended.
pub(super) const LONGEST_RUN: u64 = 256;

pub(super) fn sources() -> Vec<Source> {
    let mut sources: Vec<Source> = [None, Some(4), Some(8)].map(|value| runs_source(value, false, false)).into();
    sources.extend([false, true].map(|implied| runs_source(None, true, implied)));
    sources
}

/// Threads of a block, and blocks that are to share a multiprocessor. Milliseconds of 100M and 1B rows, random keys of which
/// 32 bits are sorted, H200, while runs of up to 128 rows were mended (¹ registers spill):
///
/// ```text
///                 128 × 10        128 × 12        128 × 13       256 × 6
///   keys          .288  3.42     .284  3.38 ¹    .275  3.58 ¹   .287  3.57 ¹
///   keys, u64     .309  5.54     .307  5.87 ¹    .311  7.20 ¹   .318  5.95 ¹
///   packed        .310  5.13     .296  4.74      .322  5.38 ¹   .312  5.15
/// ```
///
/// Runs of up to 256 rows want tiles of twice the rows, 256 × 5 for keys and 256 × 6 for packed words, which spill nothing: of 100M rows .298
/// instead of .289, .334 instead of .321 and .393 instead of .384. Then two values of 100 rows each that agree in the sorted bits, as some of 10,000
/// values of a million rows do, are put in order with all others.
fn runs_shape(packed: bool) -> (u32, u32) {
    if packed { (256, 6) } else { (256, 5) }
}

fn runs_source(value: Option<usize>, packed: bool, implied: bool) -> Source {
    let (threads, blocks) = runs_shape(packed);
    let (value, suffix) = match value {
        None => ("wf::SortNoValue", ""),
        Some(4) => ("wf::u32", "_u32"),
        Some(_) => ("wf::u64", "_u64"),
    };
    let name = match (packed, implied) {
        (false, _) => format!("sort_runs{suffix}"),
        (true, false) => "sort_runs_packed".to_string(),
        (true, true) => "sort_runs_packed_implied".to_string(),
    };
    let shape = format!("{value}, {packed}, {implied}, {threads}, {blocks}");
    let text = format!("#include \"sort_runs.cuh\"\nWF_SORT_RUNS({name}, {shape})\n");
    Source::new(name, text)
}
/// Runs of rows that agree in the sorted bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Runs {
    /// The longest that `sort_runs` is to put in order by itself.
    pub(super) longest: u64,
    /// Whether a few are probably longer, and out of order.
    pub(super) longer: bool,
}

/// Which packed words hold their whole key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    None,
    All,
}

/// What [`mend`] works on.
#[derive(Clone, Copy)]
pub(super) enum Sorted<'a> {
    /// Keys as the column has them, with payloads of these many bytes beside them: mended in place.
    Values { keys: &'a Buffer, payload: Option<(&'a Buffer, usize)> },
    /// Words of key and row number, which may leave out the highest digit that differs, whose values' rows begin at `implied`; row
    /// numbers are written.
    Packed {
        words: &'a Buffer,
        index_bits: u32,
        whole: Whole,
        /// When rows that tie count as equal (never where words hold whole keys, or there are `more`), and what holds the sums of all rows' hashes.
        ties: Option<(&'a Found, Trust)>,
        more: &'a [SortWord<'a>],
        implied: Option<Slice<'a>>,
        numbers: &'a Buffer,
    },
}

/// Puts runs of keys that agree from bit `shift` upwards in order. Waits for the device, and once more where ties were trusted in vain;
/// `false`: too many rows are in runs that are too long and out of order, and what was written is worth nothing.
pub(super) fn mend(
    device: &Device,
    key: &SortKey<'_>,
    shift: u32,
    rows: u64,
    sorted: Sorted<'_>,
    runs: Runs,
) -> Result<bool> {
    let fresh;
    let (found, trust) = match sorted {
        Sorted::Packed { ties: Some(ties), .. } => ties,
        _ => {
            fresh = Found::new(device, rows)?;
            (&fresh, Trust::Never)
        }
    };
    let null = Argument::from(0u64);
    let pointers;
    let (value, packed, implied) = match sorted {
        Sorted::Values { payload, .. } => (payload.map(|(_, width)| width), false, None),
        Sorted::Packed { implied, .. } => (None, true, implied),
    };
    let (words, data, index_bits, whole, more, more_words, out, values) = match sorted {
        Sorted::Values { keys, payload } => {
            let data: Slice<'_> = keys.slice(0);
            let values = payload.map_or(null, |(values, _)| values.into());
            (null, data, 0, Whole::All, null, 0, Argument::from(data), values)
        }
        Sorted::Packed { words, index_bits, whole, more, numbers, .. } => {
            let addresses: Vec<u8> = more.iter().flat_map(|word| word.keys.address().to_le_bytes()).collect();
            pointers = device.upload(OPERATOR, &addresses)?;
            (words.into(), key.data, index_bits, whole, (&pointers).into(), more.len(), numbers.into(), null)
        }
    };
    let implied_at = implied.map_or(null, Argument::from);
    let [data, kind, flip, base] = key.arguments_of(data);
    let [found_words, first, second, third] = found.arguments();
    let arguments: [Argument; 22] = [
        words,
        data,
        kind,
        flip,
        base,
        rows.into(),
        u64::from(shift).into(),
        u64::from(index_bits).into(),
        (whole as u64).into(),
        runs.longest.into(),
        more,
        (more_words as u64).into(),
        out,
        values,
        found_words,
        (&found.listed).into(),
        found.room.into(),
        implied_at,
        trust.word().into(),
        first,
        second,
        third,
    ];
    let source = runs_source(value, packed, implied.is_some());
    let kernel = device.kernel(&source, &source.name)?;
    let (threads, _) = runs_shape(packed);
    let grid: Grid = grid(tiles(rows, u64::from(threads * CHUNK)), threads);
    // SAFETY: SortRuns, in order: packed words of `rows` rows, or null; the key, whose data holds rows of its kind; more:
    // pointers to words of `rows` rows; out: rows of the key's width, or of u32 for packed words; values: rows of the
    // payload's width or null; found: SORT_FOUND_… words: sums and repeats as the histogram's kernels left them, the rest zero; listed: room
    // u32; implied: 256 u32 or null; whole: SORT_WHOLE_….
    unsafe { device.launch(&kernel, grid, &arguments)? };
    let rows_of = match sorted {
        Sorted::Values { keys, payload } => {
            let key = SortKey { data: keys.slice(0), ..*key };
            Some(Rows { words: key, shift, implied: null, key, in_place: true, values: payload, rows })
        }
        Sorted::Packed { words, numbers, more: [], .. } => {
            let words = SortKey::new(words.slice(0), KeyKind::Word, false);
            let values = Some((numbers, 4));
            Some(Rows { words, shift, implied: implied_at, key: *key, in_place: false, values, rows })
        }
        Sorted::Packed { .. } => None,
    };
    if let Some(rows_of) = rows_of.as_ref().filter(|_| runs.longer) {
        rows_of.sort_expected(device, found)?;
    }
    let findings = found.read(trust)?;
    if let Sorted::Packed { words, index_bits, whole, more, implied, numbers, .. } = sorted
        && findings.misled
    {
        if findings.listed > found.room {
            return Ok(false);
        }
        let sorted = Sorted::Packed { words, index_bits, whole, ties: None, more, implied, numbers };
        return mend(device, key, shift, rows, sorted, runs);
    }
    match rows_of {
        Some(rows_of) => rows_of.sort_runs(device, found, findings, runs.longer),
        None => Ok(findings.listed == 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

    const ROWS: usize = 4000;

    /// Keys whose highest 48 bits ascend, with one run of equal ones that begins at `first`, and low bits as `low` gives them to the
    /// run's rows.
    fn with_run(first: usize, length: usize, low: impl Fn(u64) -> u64) -> Vec<u64> {
        let key = |at: usize| match at {
            at if (first..first + length).contains(&at) => (first as u64) << 16 | low((at - first) as u64),
            // Pairs in order and out of order besides, and keys that are alone.
            at if at % 5 == 1 => ((at - 1) as u64) << 16 | 3,
            at => (at as u64) << 16 | (at as u64 % 7),
        };
        let mut keys: Vec<u64> = (0..ROWS).map(key).collect();
        // A pair that would begin before the run and end in it.
        if first > 0 && first + length < ROWS {
            keys[first - 1] = ((first - 1) as u64) << 16;
            keys[first + length] = ((first + length) as u64) << 16;
        }
        keys
    }

    /// Whether runs are mended of keys alone, of keys with payloads of 4 and of 8 bytes, and of packed words whose lowest 12 bits do
    /// not travel; all agree, and what they mended is in order.
    fn mended(device: &Device, keys: &[u64], longest: u64) -> bool {
        let rows = keys.len();
        let mut order: Vec<usize> = (0..rows).collect();
        order.sort_by_key(|&at| keys[at]);
        let sorted: Vec<u64> = order.iter().map(|&at| keys[at]).collect();
        let mut verdicts = vec![];
        for width in [0, 4, 8] {
            let buffer = upload(device, keys);
            let narrow = upload(device, &(0..rows as u32).collect::<Vec<_>>());
            let wide = upload(device, &(0..rows as u64).collect::<Vec<_>>());
            let payload = match width {
                0 => None,
                4 => Some((&narrow, 4)),
                _ => Some((&wide, 8)),
            };
            let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
            let values = Sorted::Values { keys: &buffer, payload };
            let runs = Runs { longest, longer: width == 4 };
            let done = mend(device, &key, 16, rows as u64, values, runs).unwrap();
            verdicts.push(done);
            if done {
                assert!(read::<u64>(&buffer, rows) == sorted, "payload of {width} bytes");
            }
            if done && width == 4 {
                assert!(read::<u32>(&narrow, rows).iter().zip(&order).all(|(found, at)| *found as usize == *at));
            }
            if done && width == 8 {
                assert!(read::<u64>(&wide, rows).iter().zip(&order).all(|(found, at)| *found as usize == *at));
            }
        }
        // Rows that lie elsewhere than their words.
        let row = |at: usize| (at + 1000) % rows;
        let mut column = vec![0; rows];
        keys.iter().enumerate().for_each(|(at, key)| column[row(at)] = *key);
        let words: Vec<u64> = keys.iter().enumerate().map(|(at, key)| key >> 12 << 12 | row(at) as u64).collect();
        let mut expected: Vec<u32> = (0..rows as u32).collect();
        expected.sort_by_key(|&row| (column[row as usize], row));
        let [column, words] = [column, words].map(|words| upload(device, &words));
        let numbers = device.alloc("test", rows * 4).unwrap();
        let key = SortKey::new(column.slice(0), KeyKind::Word, false);
        let packed = Sorted::Packed {
            words: &words,
            index_bits: 12,
            whole: Whole::None,
            ties: None,
            more: &[],
            implied: None,
            numbers: &numbers,
        };
        for longer in [false, true] {
            let done = mend(device, &key, 16, rows as u64, packed, Runs { longest, longer }).unwrap();
            verdicts.push(done);
            assert!(!done || read::<u32>(&numbers, rows) == expected, "packed");
        }
        assert!(verdicts.windows(2).all(|pair| pair[0] == pair[1]), "{verdicts:?}");
        verdicts[0]
    }

    #[test]
    fn runs_are_mended_wherever_they_lie() {
        for device in device_and_gpu(4) {
            // The ends of chunks, and of tiles of 2048 rows.
            for first in [0, 7, 1800, 1900, 2047, 2048, 2054] {
                for length in [2, 3, 9, 31, 32, 33, 255, 256] {
                    let keys = with_run(first, length, |at| length as u64 - at);
                    assert!(mended(&device, &keys, 256), "{length} from {first}");
                    let few = with_run(first, length, |at| at);
                    let mut last = few.clone();
                    last.swap(first + length - 2, first + length - 1);
                    assert!(mended(&device, &last, 256), "the last two of {length} from {first}");
                }
            }
        }
    }

    #[test]
    fn longer_runs_are_sorted_on_their_own_if_they_have_few_rows() {
        for device in device_and_gpu(5) {
            for (longest, lengths) in [(32, [33, 40, 500, 501]), (256, [257, 400, 500, 2500])] {
                for first in [0, 5, 2040, 2048] {
                    for length in lengths.into_iter().filter(|length| first + length < ROWS) {
                        let ordered = with_run(first, length, |at| at);
                        assert!(mended(&device, &ordered, longest), "{length} from {first}, in order");
                        let reversed = with_run(first, length, |at| (length as u64 - at) / 2);
                        // Of 2500 rows more are listed than there is room for.
                        assert_eq!(mended(&device, &reversed, longest), length <= 512, "{length} from {first}");
                        // At the beginning of a tile, too, where only the tile before knows how long the run is, and sees no more of it.
                        let rows = if first == 5 && length > 500 { 2048..2320 } else { 0..0 };
                        let tile = rows.step_by(9).map(|row| row - first);
                        for at in [0, 1, length / 2, length - 2].into_iter().chain(tile.filter(|at| at + 2 <= length)) {
                            let mut keys = ordered.clone();
                            keys.swap(first + at, first + at + 1);
                            let found = mended(&device, &keys, longest);
                            // A block sees 2048 rows before and from a listed one on, which is the run's first or a chunk's; of other runs
                            // an eighth of all rows is too many.
                            let listed = if at < 256 { 0 } else { (first + at) / 8 * 8 - first };
                            let seen = listed.max(length - listed) <= 2048;
                            assert_eq!(found, seen, "{length} from {first}, out of order at {at}");
                        }
                    }
                }
            }
            for kernel in ["sort_long_near", "sort_long_find"] {
                assert!(device.launches().contains_key(kernel), "{kernel}");
            }
        }
    }
}
