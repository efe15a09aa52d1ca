//! A hash for finding plans, texts and recipes that may be equal to one.

use std::hash::{Hash, Hasher};

pub(super) fn hash<T: Hash + ?Sized>(key: &T) -> u64 {
    let mut hash = Mixed(0);
    key.hash(&mut hash);
    hash.finish()
}

/// A hash of the many small pieces that a plan is made of, at a fraction of what the standard
/// library's takes. What has the same one is compared.
struct Mixed(u64);

impl Mixed {
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0.rotate_left(5) ^ word ^ MIXER) * u128::from(MIXER);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

/// The golden ratio in 64 bits.
pub(super) const MIXER: u64 = 0x9E37_79B9_7F4A_7C15;

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            self.mix(
                rest.iter().fold(rest.len() as u64, |word, byte| word << 8 | u64::from(*byte)),
            );
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.mix(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
