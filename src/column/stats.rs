//! What an import learns of the values that pass through it.
//!
//! An integer column that never descends is noted as such, as are results of sorts and GROUP BY: it
//! is not sorted again, and its groups are its runs.

use datafusion::arrow::array::ArrowNativeTypeOp;

use super::Stats;

/// What was seen of one piece of a column.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PieceStats {
    /// Least and greatest integer.
    pub(super) range: Option<(i128, i128)>,
    /// First and last integer, where no row is null and none is less than the one before.
    pub(super) ascending: Option<(i128, i128)>,
    /// Each integer is greater than the one before.
    pub(super) strictly: bool,
    /// Greatest magnitude of the floats, or `None` where one is not finite.
    pub(super) magnitude: Option<f64>,
    /// Exponent of the greatest power of two of which every float is a multiple.
    pub(super) unit: Option<i32>,
    /// Most bytes in a string.
    pub(super) longest: Option<u32>,
}

/// The range of what is in one range or the other.
fn both_ranges(one: (i128, i128), other: (i128, i128)) -> (i128, i128) {
    (one.0.min(other.0), one.1.max(other.1))
}

/// No finite float is a multiple of a greater power of two, but 0, which is one of any.
const MOST_UNIT: i32 = 1023;

/// Exponent of the lowest bit that is set in a finite float.
fn unit_of(value: f64) -> i32 {
    let bits = value.to_bits();
    let biased = (bits >> 52 & 0x7FF) as i32;
    let mantissa = bits & ((1 << 52) - 1) | u64::from(biased != 0) << 52;
    // Of zero there is no such bit.
    if mantissa == 0 { MOST_UNIT } else { biased.max(1) - 1075 + mantissa.trailing_zeros() as i32 }
}

/// An integer as the device holds it.
pub(super) trait Integer: ArrowNativeTypeOp + Ord + Into<i128> {}
impl<T: ArrowNativeTypeOp + Ord + Into<i128>> Integer for T {}

impl PieceStats {
    /// Looks at integers; `valid` is one byte a row.
    pub(super) fn integers<T: Integer>(values: &[T], valid: Option<&[u8]>) -> PieceStats {
        let (mut least, mut greatest) = (T::MAX_TOTAL_ORDER, T::MIN_TOTAL_ORDER);
        match valid {
            None => {
                for &value in values {
                    least = least.min(value);
                    greatest = greatest.max(value);
                }
            }
            // Selecting instead of branching keeps this loop in vector instructions.
            Some(valid) => {
                for (&value, &valid) in values.iter().zip(valid) {
                    least = least.min(if valid != 0 { value } else { T::MAX_TOTAL_ORDER });
                    greatest = greatest.max(if valid != 0 { value } else { T::MIN_TOTAL_ORDER });
                }
            }
        }
        let ascending = match (valid, values) {
            (None, [first, .., last]) if values.is_sorted() => Some((*first, *last)),
            (None, [only]) => Some((*only, *only)),
            _ => None,
        };
        PieceStats {
            range: (least <= greatest).then(|| (least.into(), greatest.into())),
            ascending: ascending.map(|(first, last)| (first.into(), last.into())),
            strictly: ascending.is_some() && values.windows(2).all(|pair| pair[0] < pair[1]),
            ..PieceStats::default()
        }
    }

    /// Looks at floats; `valid` is one byte a row.
    pub(super) fn floats<T: Copy + Into<f64>>(values: &[T], valid: Option<&[u8]>) -> PieceStats {
        let mut greatest = 0.0f64;
        let mut finite = true;
        let mut unit = MOST_UNIT;
        let mut look = |value: f64| {
            finite &= value.is_finite();
            greatest = greatest.max(value.abs());
            unit = unit.min(unit_of(value));
        };
        match valid {
            None => values.iter().for_each(|&value| look(value.into())),
            Some(valid) => values
                .iter()
                .zip(valid)
                .for_each(|(&value, &valid)| look(if valid != 0 { value.into() } else { 0.0 })),
        }
        PieceStats {
            magnitude: finite.then_some(greatest),
            unit: finite.then_some(unit),
            ..PieceStats::default()
        }
    }

    /// Notes the length of a string.
    pub(super) fn string(&mut self, len: u32) {
        self.longest = self.longest.max(Some(len));
    }
}

impl Stats {
    /// Of all values of several columns.
    pub(super) fn of_all(columns: &[Stats]) -> Stats {
        let ranges = columns.iter().map(|of| of.range).collect::<Option<Vec<_>>>();
        let magnitudes = columns.iter().map(|of| of.magnitude).collect::<Option<Vec<_>>>();
        let units = columns.iter().map(|of| of.unit).collect::<Option<Vec<_>>>();
        let lengths = columns.iter().map(|of| of.longest).collect::<Option<Vec<_>>>();
        Stats {
            range: ranges.and_then(|all| all.into_iter().reduce(both_ranges)),
            magnitude: magnitudes.and_then(|all| all.into_iter().reduce(f64::max)),
            unit: units.and_then(|all| all.into_iter().min()),
            longest: lengths.and_then(|all| all.into_iter().max()),
            unique: false,
            ascending: false,
        }
    }

    /// Of integers, from what was seen of the pieces in order.
    pub(super) fn of_integers(pieces: &[PieceStats]) -> Stats {
        let range = pieces.iter().filter_map(|seen| seen.range).reduce(both_ranges);
        let ends: Option<Vec<_>> = pieces.iter().map(|seen| seen.ascending).collect();
        let ends = ends.filter(|ends| !ends.is_empty()).unwrap_or_default();
        let ascending = !ends.is_empty() && ends.windows(2).all(|pair| pair[0].1 <= pair[1].0);
        let strictly = pieces.iter().all(|seen| seen.strictly)
            && ends.windows(2).all(|pair| pair[0].1 < pair[1].0);
        Stats { range, unique: ascending && strictly, ascending, ..Stats::default() }
    }

    /// Of floats.
    pub(super) fn of_floats(pieces: &[PieceStats]) -> Stats {
        let magnitudes: Option<Vec<f64>> = pieces.iter().map(|seen| seen.magnitude).collect();
        let units: Option<Vec<i32>> = pieces.iter().map(|seen| seen.unit).collect();
        Stats {
            magnitude: magnitudes.map(|all| all.into_iter().fold(0.0, f64::max)),
            unit: units.map(|all| all.into_iter().fold(MOST_UNIT, i32::min)),
            ..Stats::default()
        }
    }

    /// Of strings.
    pub(super) fn of_strings(pieces: &[PieceStats]) -> Stats {
        // No valid string at all is known to be no longer than the empty one.
        let longest = pieces.iter().filter_map(|seen| seen.longest).max().unwrap_or(0);
        Stats { longest: Some(longest), ..Stats::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_ignores_values_under_nulls() {
        let seen = PieceStats::integers(&[100i8, 3, -5, -128], Some(&[0, 1, 1, 0]));
        assert_eq!(seen.range, Some((-5, 3)));
        assert_eq!(seen.ascending, None);
        assert_eq!(PieceStats::integers(&[1u64, 2], Some(&[0, 0])).range, None);
        assert_eq!(PieceStats::integers(&[u64::MAX, 0], None).range, Some((0, u64::MAX as i128)));
    }

    #[test]
    fn unique_needs_ascending_pieces_in_ascending_order() {
        let (low, high) =
            (PieceStats::integers(&[1i32, 2, 5], None), PieceStats::integers(&[6i32], None));
        assert!(Stats::of_integers(&[low, high]).unique);
        assert!(!Stats::of_integers(&[high, low]).unique);
        assert!(!Stats::of_integers(&[low, PieceStats::integers(&[5i32, 6], None)]).unique);
        assert!(!Stats::of_integers(&[PieceStats::integers(&[1i32, 1], None)]).unique);
        assert!(
            !Stats::of_integers(&[low, PieceStats::integers(&[6i32, 7], Some(&[1, 1]))]).unique
        );
        assert!(!Stats::of_integers(&[]).unique);
    }

    #[test]
    fn ascending_values_may_repeat_and_are_not_null() {
        let (low, high) =
            (PieceStats::integers(&[1i32, 2, 2, 5], None), PieceStats::integers(&[5i32], None));
        let stats = Stats::of_integers(&[low, high]);
        assert!(stats.ascending && !stats.unique);
        assert!(!Stats::of_integers(&[high, low]).ascending);
        assert!(!Stats::of_integers(&[PieceStats::integers(&[2i32, 1], None)]).ascending);
        assert!(
            !Stats::of_integers(&[low, PieceStats::integers(&[6i32, 7], Some(&[1, 1]))]).ascending
        );
        assert!(!Stats::of_integers(&[]).ascending);
    }

    #[test]
    fn magnitude_is_unknown_with_nan_or_infinity() {
        assert_eq!(
            Stats::of_floats(&[PieceStats::floats(&[1.0f64, -7.5], None)]).magnitude,
            Some(7.5)
        );
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(
                Stats::of_floats(&[
                    PieceStats::floats(&[1.0, bad], None),
                    PieceStats::floats(&[2.0f64], None)
                ])
                .magnitude,
                None
            );
            assert_eq!(
                Stats::of_floats(&[PieceStats::floats(&[1.0, bad], Some(&[1, 0]))]).magnitude,
                Some(1.0)
            );
        }
        assert_eq!(Stats::of_floats(&[PieceStats::floats(&[-0.5f32], None)]).magnitude, Some(0.5));
    }

    #[test]
    fn unit_is_the_lowest_bit_of_all_values() {
        let unit = |values: &[f64]| Stats::of_floats(&[PieceStats::floats(values, None)]).unit;
        assert_eq!(unit(&[]), Some(1023));
        assert_eq!(unit(&[0.0, -0.0]), Some(1023));
        assert_eq!(unit(&[6.0, -0.75, 1e300]), Some(-2));
        assert_eq!(unit(&[f64::MAX]), Some(971));
        assert_eq!(unit(&[f64::from_bits(1)]), Some(-1074));
        assert_eq!(unit(&[f64::MIN_POSITIVE]), Some(-1022));
        assert_eq!(unit(&[0.1]), Some(-55));
        assert_eq!(unit(&[1.0, f64::NAN]), None);
        assert_eq!(
            Stats::of_floats(&[PieceStats::floats(&[0.1f32, 5.0], Some(&[0, 1]))]).unit,
            Some(0)
        );
    }
}
