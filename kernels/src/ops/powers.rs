//! Powers of ten in 128 bits, for floats as text (`kernels/format.cuh`) and back
//! (`kernels/parse.cuh`).
//!
//! An entry is the significand of 10^k, which is that of 5^k: two words, high first, the highest
//! bit set.

use std::sync::OnceLock;

/// Exponents of floats from −292 (the greatest float's) to 324 (the least one's), rounded up.
pub fn for_format() -> &'static [u8] {
    static TABLE: OnceLock<Vec<u8>> = OnceLock::new();
    TABLE.get_or_init(|| table(-292, 324, |_| true))
}

/// Exponents of texts from −342 to 308, cut off; but rounded up from −27 to −1, where that is
/// proven to do.
pub fn for_parse() -> &'static [u8] {
    static TABLE: OnceLock<Vec<u8>> = OnceLock::new();
    TABLE.get_or_init(|| table(-342, 308, |k| (-27..0).contains(&k)))
}

fn table(least: i32, most: i32, up: impl Fn(i32) -> bool) -> Vec<u8> {
    let mut bytes = vec![];
    for k in least..=most {
        let (significand, exact) = five_to(k);
        let significand = significand + u128::from(!exact && up(k));
        bytes.extend(((significand >> 64) as u64).to_le_bytes());
        bytes.extend((significand as u64).to_le_bytes());
    }
    bytes
}

/// The first 128 bits of 5^k, and whether there are no others.
fn five_to(k: i32) -> (u128, bool) {
    let mut power = Natural(vec![1]);
    for _ in 0..k.unsigned_abs() {
        power.multiply(5);
    }
    if k >= 0 {
        return power.leading();
    }
    // 5^−k lies between two powers of two, so that this quotient has 128 bits.
    let mut quotient = Natural::power_of_two(127 + power.bits());
    for _ in 0..k.unsigned_abs() {
        quotient.divide(5);
    }
    (quotient.leading().0, false)
}

/// A natural number, in limbs from the lowest on.
struct Natural(Vec<u32>);

impl Natural {
    fn power_of_two(exponent: usize) -> Natural {
        let mut limbs = vec![0; exponent / 32 + 1];
        limbs[exponent / 32] = 1 << (exponent % 32);
        Natural(limbs)
    }

    fn multiply(&mut self, factor: u32) {
        let mut carry = 0;
        for limb in &mut self.0 {
            let product = u64::from(*limb) * u64::from(factor) + carry;
            *limb = product as u32;
            carry = product >> 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    /// Whole quotients of whole quotients are those of the product of the divisors.
    fn divide(&mut self, divisor: u32) {
        let mut rest = 0u64;
        for limb in self.0.iter_mut().rev() {
            let value = rest << 32 | u64::from(*limb);
            *limb = (value / u64::from(divisor)) as u32;
            rest = value % u64::from(divisor);
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn bits(&self) -> usize {
        self.0.len() * 32 - self.0.last().map_or(0, |limb| limb.leading_zeros() as usize)
    }

    fn leading(&self) -> (u128, bool) {
        let bits = self.bits();
        let bit = |at: usize| self.0[at / 32] >> (at % 32) & 1;
        let leading = (0..128).fold(0u128, |all, i| {
            all << 1 | if i < bits { u128::from(bit(bits - 1 - i)) } else { 0 }
        });
        (leading, (0..bits.saturating_sub(128)).all(|at| bit(at) == 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn significands_begin_with_a_bit_and_are_exact_as_long_as_they_fit() {
        assert_eq!(five_to(0), (1 << 127, true));
        assert_eq!(five_to(1), (5 << 125, true));
        assert!(five_to(55).1);
        assert!(!five_to(56).1);
        // 1/5 = 0.1100 1100 …
        assert_eq!(five_to(-1), (0xcccc_cccc_cccc_cccc_cccc_cccc_cccc_cccc, false));
        assert_eq!(for_format().len(), 617 * 16);
        assert_eq!(for_parse().len(), 651 * 16);
    }
}
