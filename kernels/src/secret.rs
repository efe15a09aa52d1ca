//! What keys the hashes of tables: numbers that nobody outside of the process can know, so that
//! nobody can choose values whose hashes collide. Kernels take them as parameters; in their text
//! they would make every process compile its own.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::Device;

/// Both halves multiply in `cell_hash` of `kernels/pipeline.cuh`, and so are odd.
const ODD_HALVES: u64 = 1 << 32 | 1;

/// The secret of a device, where a test fixed one; else 0.
#[derive(Debug, Default)]
pub(crate) struct Fixed(AtomicU64);

/// The process's secret of this number. SipHash with random keys of the operating system: one tells
/// nothing of another.
fn of_process(number: u64) -> u64 {
    static KEYS: OnceLock<RandomState> = OnceLock::new();
    KEYS.get_or_init(RandomState::new).hash_one(number)
}

/// The secret of a number that follows from a seed alone, so that other processes have it, too.
/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
pub fn seeded_secret(seed: u64, number: u64) -> u64 {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut word = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(GOLDEN));
    word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (word ^ word >> 31) | ODD_HALVES
}

impl Device {
    /// A secret for a hash table. Where keys collide too often, or equal hashes are not equal keys,
    /// a table is made again with that of the next number.
    pub fn secret(&self, number: u64) -> u64 {
        let secret = match self.0.fixed_secret.0.load(Relaxed) {
            0 => of_process(number),
            fixed => fixed,
        };
        secret | ODD_HALVES
    }

    /// Makes this the secret of all hash tables to come, whatever number is asked for: for tests of
    /// keys that collide.
    #[doc(hidden)]
    pub fn fix_secret(&self, secret: u64) {
        self.0.fixed_secret.0.store(secret, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryLimit, SimOptions};

    #[test]
    fn secrets_differ_by_number_and_have_odd_halves() {
        let device =
            Device::sim(SimOptions::default(), MemoryLimit::default()).expect("the simulator");
        let secrets: Vec<u64> = (0..100).map(|number| device.secret(number)).collect();
        let mut different = secrets.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), 100);
        assert!(secrets.iter().all(|secret| secret & ODD_HALVES == ODD_HALVES));
        assert_eq!(device.secret(3), secrets[3]);
        let seeded = |seed| (0..100).map(|number| seeded_secret(seed, number)).collect::<Vec<_>>();
        assert_eq!(seeded(5), seeded(5));
        let mut different = [seeded(5), seeded(6), secrets.clone()].concat();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), 300);
        assert!(seeded(5).iter().all(|secret| secret & ODD_HALVES == ODD_HALVES));
        device.fix_secret(0x1234_5677_0000_0001);
        assert_eq!(
            (device.secret(0), device.secret(9)),
            (0x1234_5677_0000_0001, 0x1234_5677_0000_0001)
        );
    }
}
