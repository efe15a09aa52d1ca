//! Statistics in round numbers. Generated kernels depend on statistics: parts of a table whose
//! values differ little are to have the same.

use super::Stats;

impl Stats {
    /// Looser statistics in round numbers, which hold for what `before` held for, too: columns of
    /// like values have the same.
    pub(crate) fn rounded(&self, before: Option<&Stats>) -> Stats {
        let both = before.map_or(*self, |before| Stats::of_all(&[*self, *before]));
        Stats {
            range: both.range.map(|(least, most)| (below(least), above(most))),
            magnitude: both
                .magnitude
                .map(|most| if most == 0.0 { 0.0 } else { most.log2().ceil().exp2().max(most) }),
            unit: both.unit.map(|unit| unit.div_euclid(UNIT_STEP) * UNIT_STEP),
            longest: both.longest.and_then(|longest| longest.checked_next_multiple_of(LENGTH_STEP)),
            unique: false,
            ascending: false,
        }
    }
}

/// Lengths of strings are rounded to multiples of this, as strings are compared by words.
const LENGTH_STEP: u32 = 8;
/// Exponents of units are rounded to multiples of this.
const UNIT_STEP: i32 = 8;

/// The least 2ⁿ − 1 that is no less than a number; zero is the least of these.
fn above(number: i128) -> i128 {
    match number {
        ..0 => 0,
        _ => ((number as u128 + 1)
            .checked_next_power_of_two()
            .map_or(i128::MAX, |power| (power - 1) as i128))
        .max(number),
    }
}

/// Zero for what is not negative; else the greatest −2ⁿ that is no greater than a number.
fn below(number: i128) -> i128 {
    match number {
        ..0 => {
            let power = number.unsigned_abs().next_power_of_two();
            // Of 2¹²⁷ the negative is its own.
            (power as i128).wrapping_neg()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_statistics_hold_for_all_values_and_are_soon_the_same() {
        let of = |range, longest, magnitude, unit| Stats {
            range,
            longest,
            magnitude,
            unit,
            unique: true,
            ascending: true,
        };
        let first = of(Some((5, 90)), Some(11), Some(3.0), Some(-3)).rounded(None);
        assert_eq!(
            first,
            Stats {
                unique: false,
                ascending: false,
                ..of(Some((0, 127)), Some(16), Some(4.0), Some(-8))
            }
        );
        let second = of(Some((-3, 100)), Some(16), Some(4.0), Some(0)).rounded(Some(&first));
        assert_eq!(
            (second.range, second.longest, second.magnitude, second.unit),
            (Some((-4, 127)), Some(16), Some(4.0), Some(-8))
        );
        assert_eq!(of(Some((0, 1)), Some(1), Some(1.0), Some(9)).rounded(Some(&second)), second);
        // What is not known of some is not known of all.
        let none = Stats::default();
        assert_eq!(none.rounded(Some(&second)), none);
        assert_eq!(second.rounded(Some(&none)), none);
    }

    #[test]
    fn bounds_are_rounded_outwards() {
        for number in
            [i128::MIN, -(1 << 63), -129, -128, -1, 0, 1, 127, 128, (1 << 63) - 1, i128::MAX]
        {
            assert!(below(number) <= number && number <= above(number), "{number}");
        }
        assert_eq!((below(-128), above(127), above(-5), below(7)), (-128, 127, 0, 0));
    }
}
