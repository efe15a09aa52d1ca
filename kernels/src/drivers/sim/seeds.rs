//! Seeds of the order in which the simulator runs things.

#[cfg(not(test))]
pub(super) fn unasked_seed() -> u64 {
    0
}

/// Drawn by each process of tests, which says it past what captures the output of tests.
#[cfg(test)]
pub(super) fn unasked_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    use std::io::Write;
    use std::sync::LazyLock;

    static DRAWN: LazyLock<u64> = LazyLock::new(|| {
        let seed = RandomState::new().hash_one(0u64) % 1_000_000;
        let _ = writeln!(std::io::stderr(), "WARPFRAME_SIM_SEED={seed}");
        seed
    });
    *DRAWN
}

/// The seed of a launch, by its number: rows that are computed twice come in two orders, as they
/// may on a GPU. The steps are those of splitmix64.
pub(super) fn seed_of_launch(seed: u64, launch: u64) -> u64 {
    if seed < 2 {
        return seed;
    }
    let mut mixed = seed.wrapping_add(launch.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ mixed >> 31) | 2
}
