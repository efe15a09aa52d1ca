//! What EXPLAIN ANALYZE says of a sort: by which bits, and why so.

use super::Look;
use super::strategy::{FIRST_BITS, LEVELS, Sample, SortOutput, Strategy, Summary};

/// Why an attempt to sort was not the last.
#[derive(Debug, Clone, Copy)]
pub(super) enum FailedAttempt {
    /// Keys lay outside of the range that a sample showed.
    OutOfRange,
    /// A prefix of so many bits left so many runs too long and out of order.
    LongRuns { sorted: u32, runs: u64 },
}

/// A line on a sort by `strategy` of keys whose range has `bits` bits. `failed`: how the attempt
/// before ended.
pub(super) fn line(
    of: &Summary,
    look: Look,
    strategy: Strategy,
    bits: u32,
    failed: Option<FailedAttempt>,
) -> String {
    let why = match (failed, &of.sample) {
        (Some(FailedAttempt::OutOfRange), _) => {
            "keys lie outside of the range of the sample".to_string()
        }
        (Some(FailedAttempt::LongRuns { sorted, runs }), _) if runs == of.rows => {
            format!("the highest {sorted} bits are the same in all keys")
        }
        (Some(FailedAttempt::LongRuns { sorted, runs }), _) => {
            format!("a prefix of {sorted} bits left {runs} runs that are too long")
        }
        (None, Some(sample)) => of_sample(sample, strategy, bits),
        (None, None) if look == Look::Guess => "no sample: keys taken as spread evenly".to_string(),
        (None, None) => "a prefix would save no pass".to_string(),
    };
    match strategy {
        Strategy::AllBits if of.output == SortOutput::NumbersByMore => {
            format!("sort: by all bits of all keys ({why})")
        }
        Strategy::AllBits => format!("sort: by all {bits} bits ({why})"),
        Strategy::Prefix { sorted } => {
            format!("sort: by a prefix of {sorted} of {bits} bits ({why})")
        }
        Strategy::PackedPrefix { sorted } => {
            format!("sort: by a prefix of {sorted} of {bits} bits, with row numbers ({why})")
        }
    }
}

/// What a sample says of the prefix, or where all bits are sorted, of the longest shorter one.
fn of_sample(sample: &Sample, strategy: Strategy, bits: u32) -> String {
    let sorted = strategy.sorted().unwrap_or(bits.saturating_sub(1) / 8 * 8);
    if sorted == sample.varying {
        return "sample: the other bits are the same in all keys".to_string();
    }
    let equal = others(sample.agree[LEVELS - 1]);
    let level =
        sorted.checked_sub(FIRST_BITS).filter(|more| more % 8 == 0).map(|more| more as usize / 8);
    match level.filter(|level| *level < LEVELS - 1) {
        Some(level) => {
            let agree = others(sample.agree[level]);
            format!(
                "sample: a row shares its first {sorted} bits with {agree} others, its key with {equal}"
            )
        }
        None => format!("sample: a row shares its key with {equal} others"),
    }
}

fn others(rows: f64) -> String {
    if rows < 10.0 { format!("{rows:.2}") } else { format!("{rows:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_bits_and_the_reason() {
        let sample = Sample {
            agree: [900.0, 3.5, 0.06, 0.0, 0.0, 0.0, 0.0],
            distinct: 1e6,
            frequent: 1e6,
            varying: 64,
            neighbours: 0.0,
        };
        let guess = Summary {
            rows: 1_000_000,
            bits: 64,
            floats: false,
            output: SortOutput::Numbers,
            sample: None,
        };
        let sampled = Summary { sample: Some(sample), ..guess };
        let (packed, all) = (Strategy::PackedPrefix { sorted: 32 }, Strategy::AllBits);
        let cases = [
            (
                line(&sampled, Look::Sample, packed, 64, None),
                "sort: by a prefix of 32 of 64 bits, with row numbers (sample: a row shares its first 32 bits \
                 with 0.06 others, its key with 0.00)",
            ),
            (
                line(&sampled, Look::Sample, all, 20, None),
                "sort: by all 20 bits (sample: a row shares its first 16 bits with 900 others, its key with 0.00)",
            ),
            (
                line(&guess, Look::Guess, Strategy::Prefix { sorted: 24 }, 64, None),
                "sort: by a prefix of 24 of 64 bits (no sample: keys taken as spread evenly)",
            ),
            (
                line(&guess, Look::Range, all, 20, None),
                "sort: by all 20 bits (a prefix would save no pass)",
            ),
            (
                line(
                    &guess,
                    Look::Guess,
                    all,
                    64,
                    Some(FailedAttempt::LongRuns { sorted: 24, runs: 70 }),
                ),
                "sort: by all 64 bits (a prefix of 24 bits left 70 runs that are too long)",
            ),
        ];
        for (found, expected) in cases {
            assert_eq!(found, expected);
        }
        let narrow = Summary {
            sample: Some(Sample { varying: 24, ..sample }),
            output: SortOutput::Rows,
            ..guess
        };
        let found = line(&narrow, Look::Sample, Strategy::Prefix { sorted: 24 }, 64, None);
        assert!(found.ends_with("(sample: the other bits are the same in all keys)"), "{found}");
    }
}
