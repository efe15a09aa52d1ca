//! Sorting by high bits only: a sample tells how many passes leave next to nothing to do, and `sort_runs` does it.
//!
//! 100M random keys of 64 bits differ almost always in their highest 32: four passes instead of eight, then one that puts
//! runs of equal prefixes in order. Keys that crowd together are sorted by all their bits.

use super::OPERATOR;
use super::key::{SortKey, SortWord};
use crate::device::{Argument, Buffer, Device, Grid, Slice, Source};
use crate::error::Result;
use crate::ops::{grid, tiles};

/// `SORT_SAMPLE_LEVELS`, `SORT_SAMPLE_FIRST_BITS`, `SORT_SAMPLE_THREADS` of the kernels.
const LEVELS: usize = 7;
const FIRST_BITS: u32 = 16;
const SAMPLE_THREADS: u32 = 256;
/// `SORT_RUNS_THREADS` and `SORT_RUNS_TILE` of the kernels.
const RUNS_THREADS: u32 = 256;
const RUNS_TILE: u64 = 2048;

/// How many rows a row may meet, on average, that agree with it in the sorted bits only.
const MOST_MET: f64 = 1.0;
/// And how many whose keys are equal; runs are mended up to 128 rows.
const MOST_EQUAL: f64 = 16.0;

pub(super) fn sources() -> Vec<Source> {
    let mut sources = vec![Source::new("sort_sample", "#include \"sort_sample.cuh\"\nWF_SORT_SAMPLE_ENTRIES\n")];
    sources.extend([None, Some(4), Some(8)].map(|value| runs_source(value, false)));
    sources.push(runs_source(None, true));
    sources
}

fn runs_source(value: Option<usize>, packed: bool) -> Source {
    let (value, suffix) = match value {
        None => ("wf::SortNoValue", ""),
        Some(4) => ("wf::u32", "_u32"),
        Some(_) => ("wf::u64", "_u64"),
    };
    let name = if packed { "sort_runs_packed".to_string() } else { format!("sort_runs{suffix}") };
    let text = format!("#include \"sort_runs.cuh\"\nWF_SORT_RUNS({name}, {value}, {packed})\n");
    Source::new(name, text)
}

/// What a sample says of a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    /// Probably the least key, less a margin, and the bits of what lies above.
    pub(super) base: u64,
    pub(super) bits: u32,
    /// The bits to sort by, where fewer than all will do.
    pub(super) prefix: Option<u32>,
}

impl Spread {
    /// Draws `samples` of `rows` keys. Waits for the device.
    pub(super) fn sampled(device: &Device, key: &SortKey<'_>, alone: bool, rows: u64, samples: u64) -> Result<Spread> {
        let slots = (2 * samples).next_power_of_two();
        let cells = LEVELS * (slots as usize + 1);
        let keys = device.alloc(OPERATOR, samples as usize * 8)?;
        let found = device.upload(OPERATOR, &[[0xFF; 16].as_slice(), &[0; LEVELS * 8]].concat())?;
        let tables = device.alloc_filled(OPERATOR, cells * 8, 0xFF)?;
        let counts = device.alloc_zeroed(OPERATOR, cells * 4)?;
        let [data, kind, flip, base] = key.arguments();
        let arguments: [Argument; 11] = [
            data,
            kind,
            flip,
            base,
            rows.into(),
            samples.into(),
            (&keys).into(),
            (&found).into(),
            slots.into(),
            (&tables).into(),
            (&counts).into(),
        ];
        for name in ["sort_sample_draw", "sort_sample_pairs"] {
            let kernel = device.kernel(&sources()[0], name)?;
            let grid = grid(tiles(samples, u64::from(SAMPLE_THREADS)), SAMPLE_THREADS);
            // SAFETY: SortSample { key: rows of its kind, samples ≤ rows; keys: samples u64; found: 2 + LEVELS words as
            // the kernel wants them; tables and counts: LEVELS × (slots + 1), all ones and zero }.
            unsafe { device.launch(&kernel, grid, &arguments)? };
        }
        if device.rehearses() {
            // Keys that are spread evenly over their range.
            let pairs = samples as f64 * samples as f64 / 2.0;
            let pairs: Vec<u64> =
                (0..LEVELS as i32).map(|level| (pairs / 2f64.powi(FIRST_BITS as i32 + 8 * level)) as u64).collect();
            return Ok(Spread::of(key, alone, rows, samples, 0, u64::MAX, &pairs));
        }
        let words = found.read_words(0, 2 + LEVELS)?;
        Ok(Spread::of(key, alone, rows, samples, words[0], !words[1], &words[2..]))
    }

    /// From what the sample showed: least and greatest key and pairs of equals by level.
    fn of(key: &SortKey<'_>, alone: bool, rows: u64, samples: u64, least: u64, greatest: u64, pairs: &[u64]) -> Spread {
        // Rows beyond the sample lie a little outside; the histogram checks.
        let span = greatest.saturating_sub(least);
        let margin = span / 1024 + 1;
        let low = least.saturating_sub(margin);
        let top = u64::MAX >> (64 - key.bits.max(1));
        let high = greatest.saturating_add(margin).min(top);
        let bits = 64 - high.saturating_sub(low).leading_zeros();
        let (base, bits) = if bits < key.bits { (low, bits) } else { (0, key.bits) };

        let rate = rows as f64 / (samples as f64 * (samples as f64 - 1.0) / 2.0);
        let equal = pairs[LEVELS - 1] as f64 * rate;
        let prefix = (0..LEVELS as u32 - 1).map(|level| FIRST_BITS + 8 * level).take_while(|sorted| sorted + 8 <= bits);
        let prefix = prefix.zip(pairs).find(|(_, pairs)| {
            // Behind equal words there may be others that differ.
            let met = **pairs as f64 * rate - if alone { equal } else { 0.0 };
            met <= MOST_MET && equal <= MOST_EQUAL
        });
        Spread { base: key.base.wrapping_add(base), bits, prefix: prefix.map(|(bits, _)| bits) }
    }
}

/// What [`mend`] works on.
pub(super) enum Sorted<'a> {
    /// Keys as the column has them, with payloads of these many bytes beside them: mended in place.
    Values { keys: &'a Buffer, payload: Option<(&'a Buffer, usize)> },
    /// Words of key and row number; row numbers are written.
    Packed { words: &'a Buffer, index_bits: u32, whole: bool, more: &'a [SortWord<'a>], numbers: &'a Buffer },
}

/// Puts runs of keys that agree from bit `shift` upwards in order. Waits for the device; `false`: a run was too long, and
/// what was written is worth nothing.
pub(super) fn mend(device: &Device, key: &SortKey<'_>, shift: u32, rows: u64, sorted: Sorted<'_>) -> Result<bool> {
    let failed = device.alloc_zeroed(OPERATOR, 8)?;
    let null = Argument::from(0u64);
    let pointers;
    let (source, words, data, index_bits, whole, more, more_words, out, values) = match sorted {
        Sorted::Values { keys, payload } => {
            let data: Slice<'_> = keys.slice(0);
            let source = runs_source(payload.map(|(_, width)| width), false);
            let values = payload.map_or(null, |(values, _)| values.into());
            (source, null, data, 0, true, null, 0, Argument::from(data), values)
        }
        Sorted::Packed { words, index_bits, whole, more, numbers } => {
            let addresses: Vec<u8> = more.iter().flat_map(|word| word.keys.address().to_le_bytes()).collect();
            pointers = device.upload(OPERATOR, &addresses)?;
            let source = runs_source(None, true);
            (source, words.into(), key.data, index_bits, whole, (&pointers).into(), more.len(), numbers.into(), null)
        }
    };
    let [data, kind, flip, base] = key.arguments_of(data);
    let arguments: [Argument; 14] = [
        words,
        data,
        kind,
        flip,
        base,
        rows.into(),
        u64::from(shift).into(),
        u64::from(index_bits).into(),
        u64::from(whole).into(),
        more,
        (more_words as u64).into(),
        out,
        values,
        (&failed).into(),
    ];
    let kernel = device.kernel(&source, &source.name)?;
    let grid: Grid = grid(tiles(rows, RUNS_TILE), RUNS_THREADS);
    // SAFETY: SortRuns, in order: packed words of `rows` rows, or null; the key, whose data holds rows of its kind; more:
    // pointers to words of `rows` rows; out: rows of the key's width, or of u32 for packed words; values: rows of the
    // payload's width or null; failed: a zeroed word.
    unsafe { device.launch(&kernel, grid, &arguments)? };
    Ok(failed.read_words(0, 1)?[0] == 0)
}

#[cfg(test)]
mod tests {
    use super::super::KeyKind;
    use super::*;
    use crate::ops::testing::*;

    fn spread(device: &Device, keys: &[u64]) -> Spread {
        let buffer = upload(device, keys);
        let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
        Spread::sampled(device, &key, true, keys.len() as u64, 2048).unwrap()
    }

    #[test]
    fn spread_tells_how_many_bits_separate_keys() {
        let device = device(3);
        let rows = 8192;
        let random: Vec<u64> = random(1, rows).collect();
        assert_eq!(spread(&device, &random), Spread { base: 0, bits: 64, prefix: Some(16) });
        // All but the lowest 30 bits are the same, and 20 of those tell 8192 rows apart.
        let narrow: Vec<u64> = random.iter().map(|x| 77 << 40 | x >> 34).collect();
        let found = spread(&device, &narrow);
        assert!(found.bits == 31 || found.bits == 30, "{found:?}");
        assert_eq!(found.prefix, Some(16));
        assert!(narrow.iter().all(|key| key - found.base < 1 << found.bits));
        // Every key occurs 100 times.
        let repeated: Vec<u64> = random.iter().map(|x| (x % 82) << 50).collect();
        assert_eq!(spread(&device, &repeated).prefix, None);
        assert_eq!(spread(&device, &vec![5; rows]).prefix, None);
    }
}
