//! What a sample of the keys shows. Kernels in `kernels/sort_sample.cuh`.

use super::OPERATOR;
use super::key::SortKey;
use super::strategy::{FIRST_BITS, LEVELS, Sample};
use crate::error::Result;
use crate::ops::{grid, tiles};
use crate::{Argument, Device, KernelSource};

/// `SORT_SAMPLE_THREADS` of the kernels.
const THREADS: u32 = 256;
/// Largest sample.
const MOST_SAMPLES: u64 = 1 << 16;
/// Up to this many rows the largest sample is half as large.
const HALF_SAMPLED_ROWS: u64 = 1 << 24;
/// Smallest sample.
const LEAST_SAMPLES: u64 = 1 << 11;
/// Rows of the input for each sampled row, in between.
const ROWS_A_SAMPLE: u64 = 256;
/// The keys' range is taken to be wider than the sample's by this part of it on either side.
const MARGIN: u64 = 1024;
/// Keys are skewed if a sample has more different ones than it would have if all were equally
/// frequent, by this factor.
const SKEWED: f64 = 1.04;

pub(super) fn source() -> KernelSource {
    KernelSource::new("sort_sample", "#include \"sort_sample.cuh\"\nWF_SORT_SAMPLE_ENTRIES\n")
}

/// How many of `rows` rows are drawn.
fn samples_of(rows: u64) -> u64 {
    let most = if rows <= HALF_SAMPLED_ROWS { MOST_SAMPLES / 2 } else { MOST_SAMPLES };
    (rows / ROWS_A_SAMPLE).clamp(LEAST_SAMPLES, most).min(rows).max(2)
}

/// Draws a sample of at least 2 rows: the key with the range that its values probably have, and
/// what the sample says. Waits for the device.
pub(super) fn sample<'a>(
    device: &Device,
    key: &SortKey<'a>,
    rows: u64,
) -> Result<(SortKey<'a>, Sample)> {
    let samples = samples_of(rows);
    let found = if device.rehearses() {
        SampleCounts::assumed(rows, samples)
    } else {
        SampleCounts::draw(device, key, rows, samples)?
    };
    Ok(found.sample(key, rows))
}

/// What the kernels found in a sample.
struct SampleCounts {
    samples: u64,
    least: u64,
    greatest: u64,
    /// Pairs of sampled rows that agree, by level.
    pairs: [u64; LEVELS],
    /// The bits in which keys differ.
    differing: u64,
    /// Sampled rows that have the key of the next row.
    neighbours: u64,
    /// Different keys, and those that occur more than once.
    different: u64,
    repeated: u64,
}

impl SampleCounts {
    /// Of keys that are spread evenly over their range, of which some rows are drawn twice.
    fn assumed(rows: u64, samples: u64) -> SampleCounts {
        let pairs = samples as f64 * samples as f64 / 2.0;
        let share =
            |level: usize| 2f64.powi(-((FIRST_BITS + 8 * level as u32) as i32)) + 1.0 / rows as f64;
        let pairs = std::array::from_fn(|level| (pairs * share(level)) as u64);
        SampleCounts {
            samples,
            least: 0,
            greatest: u64::MAX,
            pairs,
            differing: u64::MAX,
            neighbours: 0,
            different: samples,
            repeated: 0,
        }
    }

    fn draw(device: &Device, key: &SortKey<'_>, rows: u64, samples: u64) -> Result<SampleCounts> {
        let slots = (2 * samples).next_power_of_two();
        let cells = LEVELS * (slots as usize + 1);
        let keys = device.alloc(OPERATOR, samples as usize * 8)?;
        let words =
            device.upload(OPERATOR, &[[0xFF; 16].as_slice(), &[0; (LEVELS + 4) * 8]].concat())?;
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
            (&words).into(),
            slots.into(),
            (&tables).into(),
            (&counts).into(),
        ];
        for (name, levels) in [("sort_sample_draw", 1), ("sort_sample_pairs", LEVELS as u64)] {
            let kernel = device.kernel(&source(), name)?;
            let grid = grid(tiles(samples, u64::from(THREADS)) * levels, THREADS);
            // SAFETY: SortSample { key: rows of its kind (checked by the sort's caller), samples ≤
            // rows; keys: samples u64; found: 6 + LEVELS words as the kernel wants them; tables and
            // counts: LEVELS × (slots + 1), all ones and zero }.
            unsafe { device.launch(&kernel, grid, &arguments)? };
        }
        let words = words.read_words(0, 6 + LEVELS)?;
        let pairs = std::array::from_fn(|level| words[2 + level]);
        let [differing, neighbours, different, repeated] =
            std::array::from_fn(|at| words[2 + LEVELS + at]);
        Ok(SampleCounts {
            samples,
            least: words[0],
            greatest: !words[1],
            pairs,
            differing,
            neighbours,
            different,
            repeated,
        })
    }

    fn sample<'a>(&self, key: &SortKey<'a>, rows: u64) -> (SortKey<'a>, Sample) {
        // Rows beyond the sample may lie a little outside of its range; the histogram finds those
        // that lie farther out.
        let margin = (self.greatest - self.least) / MARGIN + 1;
        let low = self.least.saturating_sub(margin);
        let top = u64::MAX >> (64 - key.bits.max(1));
        let high = self.greatest.saturating_add(margin).min(top);
        let bits = 64 - high.saturating_sub(low).leading_zeros();
        let range = if bits < key.bits {
            SortKey { base: key.base.wrapping_add(low), bits, ..*key }
        } else {
            *key
        };

        let samples = self.samples as f64;
        let rate = rows as f64 / (samples * (samples - 1.0) / 2.0);
        // A row is drawn again as often as any other: one of the rows that it agrees with is
        // itself.
        let agree = self.pairs.map(|pairs| pairs as f64 * rate - 1.0);
        let even = rows as f64 / (agree[LEVELS - 1] + 1.0).max(1.0);
        let shown = even * (1.0 - (-samples / even).exp());
        let different = self.different as f64;
        let (distinct, frequent) = match different > SKEWED * shown {
            true => (different * rows as f64 / samples, self.repeated as f64),
            false => (even, even),
        };
        let constant = if self.differing == 0 { 0 } else { self.differing.trailing_zeros() };
        let varying = range.bits.saturating_sub(constant);
        (
            range,
            Sample {
                agree,
                distinct,
                frequent,
                varying,
                neighbours: self.neighbours as f64 / samples,
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::KeyKind;
    use super::super::strategy::{SortOutput, Strategy, Summary, choose};
    use super::*;
    use crate::ops::testing::*;

    fn sampled(device: &Device, keys: &[u64]) -> (u64, u32, Sample, Strategy) {
        let buffer = upload(device, keys);
        let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
        let rows = keys.len() as u64;
        let (key, sample) =
            SampleCounts::draw(device, &key, rows, 4096).unwrap().sample(&key, rows);
        let output = SortOutput::Numbers;
        let summary = Summary { rows, bits: key.bits, floats: false, output, sample: Some(sample) };
        (key.base, key.bits, sample, choose(&summary))
    }

    #[test]
    fn samples_tell_how_many_bits_separate_keys() {
        for device in device_and_gpu(3) {
            let rows = 8192;
            let random: Vec<u64> = random(1, rows).collect();
            let (base, bits, sample, strategy) = sampled(&device, &random);
            assert_eq!((base, bits, strategy), (0, 64, Strategy::PackedPrefix { sorted: 16 }));
            assert!(sample.agree[LEVELS - 1].abs() < 0.1 && sample.neighbours == 0.0, "{sample:?}");
            // All but the lowest 30 bits are the same, and the highest 16 of those tell 8192 rows
            // apart.
            let narrow: Vec<u64> = random.iter().map(|x| 77 << 40 | x >> 34).collect();
            let (base, bits, _, strategy) = sampled(&device, &narrow);
            assert!((30..=31).contains(&bits));
            assert_eq!(strategy, Strategy::PackedPrefix { sorted: 16 });
            assert!(narrow.iter().all(|key| key - base < 1 << bits));
            // Every key occurs 100 times; 7 bits tell keys apart, and the others are the same in
            // all.
            let repeated: Vec<u64> = random.iter().map(|x| (x % 82) << 50).collect();
            let (_, _, sample, strategy) = sampled(&device, &repeated);
            assert!((90.0..110.0).contains(&sample.agree[LEVELS - 1]), "{sample:?}");
            assert!((75.0..90.0).contains(&sample.distinct), "{sample:?}");
            assert_eq!(strategy, Strategy::Prefix { sorted: 7 });
            // A tenth of the rows has one key, the others have each its own.
            let skewed: Vec<u64> =
                random.iter().map(|x| if x % 10 == 0 { 5 << 40 } else { *x }).collect();
            let (_, _, sample, _) = sampled(&device, &skewed);
            assert!(sample.distinct > 4000.0 && sample.frequent < 2000.0, "{sample:?}");
            // Eight rows agree in the highest 16 of 32 bits, one after the other; the lowest bits
            // are the same in all keys.
            for keys in [(0..rows as u64).collect::<Vec<_>>(), (0..rows as u64).rev().collect()] {
                for constant in [10, 14] {
                    let steep: Vec<u64> = keys
                        .iter()
                        .map(|key| (key / 8) << 22 | (key % 8) << constant | 1)
                        .collect();
                    let (_, bits, sample, strategy) = sampled(&device, &steep);
                    assert!((32..=33).contains(&bits), "{sample:?}");
                    assert_eq!(strategy, Strategy::PackedPrefix { sorted: bits - constant });
                }
            }
            assert_eq!(sampled(&device, &vec![5; rows]).3, Strategy::AllBits);
        }
    }
}
