//! Keys that were chosen so that their hashes collide, by somebody who knows the secret and by
//! somebody who does not.

use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, Int64Array};
use warpframe::arrow::record_batch::RecordBatch;

use crate::differential::{Cell, Pair, scalar};
use crate::tables::columns;

/// A secret as devices have them: both halves odd.
const SECRET: u64 = 0x9E37_79B9_7F4A_7C15;

/// More than are looked at before a table counts as full.
const KEYS: u64 = 1500;

/// The value whose `hash_mix` (`kernels/hash.cuh`) with this secret is `x`.
fn unmix(mut x: u64, secret: u64) -> u64 {
    x ^= x >> 31 ^ x >> 62;
    x = x.wrapping_mul(0x3196_42B2_D24D_8EC3);
    x ^= x >> 27 ^ x >> 54;
    x = x.wrapping_mul(0x96DE_1B17_3F11_9089);
    x ^= secret;
    x ^ x >> 30 ^ x >> 60
}

fn mix(mut x: u64, secret: u64) -> u64 {
    x ^= x >> 30 ^ secret;
    x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

/// The number whose product with an odd one is 1.
fn inverse(odd: u32) -> u32 {
    (0..5).fold(odd, |found, _| found.wrapping_mul(2u32.wrapping_sub(odd.wrapping_mul(found))))
}

/// Keys of one slot in hash tables of any size and one partition of any number, of a table in
/// shared memory, and keys that nobody chose.
fn tables() -> [(&'static str, Vec<u64>); 3] {
    let slots = (1..=KEYS).map(|i| unmix(i << 32, SECRET)).collect();
    let (low, high) = (SECRET as u32, (SECRET >> 32) as u32);
    // low · a + high · b is the same for all.
    let cell = |b: u32| {
        u64::from(b) << 32
            | u64::from(b.wrapping_mul(high).wrapping_mul(inverse(low)).wrapping_neg())
    };
    let cells = (1..=KEYS as u32).map(cell).collect();
    let free = (1..=KEYS).map(|i| mix(i, 0)).collect();
    [("slots", slots), ("cells", cells), ("free", free)]
}

/// Every key four times, with a number, and both ends of the type, so that all tables are treated
/// alike.
fn rows(keys: &[u64]) -> Vec<RecordBatch> {
    let ends = [i64::MIN, i64::MAX];
    let all: Vec<i64> =
        (0..4).flat_map(|_| keys.iter().map(|key| *key as i64)).chain(ends).collect();
    let numbers = Int64Array::from_iter_values(0..all.len() as i64);
    columns(vec![("k", Arc::new(Int64Array::from(all)) as ArrayRef), ("v", Arc::new(numbers))])
}

const QUERIES: [&str; 6] = [
    "SELECT k, count(*), sum(v), max(v) FROM t GROUP BY k",
    "SELECT DISTINCT k FROM t",
    "SELECT count(DISTINCT k), count(DISTINCT v + k % 2) FROM t",
    "SELECT k, v % 3, min(v) FROM t GROUP BY k, v % 3",
    "SELECT count(*), sum(a.v) FROM t a JOIN t b ON a.k = b.k",
    "SELECT count(*) FROM t WHERE k IN (SELECT k FROM t WHERE v % 2 = 0)",
];

#[test]
fn hashes_are_those_of_the_kernels() {
    for (_, keys) in tables() {
        assert!(keys.iter().all(|key| unmix(mix(*key, SECRET), SECRET) == *key));
    }
    let [(_, slots), (_, cells), _] = tables();
    assert!(slots.iter().all(|key| mix(*key, SECRET) as u32 == 0));
    let product = |key: &u64| {
        let low = (*key as u32).wrapping_mul(SECRET as u32);
        low.wrapping_add(((*key >> 32) as u32).wrapping_mul((SECRET >> 32) as u32))
    };
    assert!(cells.iter().all(|key| product(key) == 0));
}

/// The secret of every attempt is the one that the keys were chosen for: the last attempt finds
/// every key a place.
#[test]
fn keys_that_collide_with_every_secret_are_grouped_and_joined() {
    for (name, keys) in tables() {
        let pair = Pair::of(rows(&keys)).from(name);
        pair.gpu().fix_secret(SECRET);
        for sql in QUERIES {
            let before = pair.gpu().counters().launches;
            pair.check(sql);
            let launches = pair.gpu().counters().launches - before;
            assert!(launches <= 150, "{launches} launches\n  {name}: {sql}");
        }
        assert_eq!(
            scalar(&pair.device, "SELECT count(DISTINCT k) FROM t"),
            Cell::Int(i128::from(KEYS) + 2)
        );
    }
}

/// Who does not know the secret has chosen nothing: queries take as many launches as those of other
/// keys.
#[test]
fn keys_chosen_for_another_secret_are_keys_like_others() {
    let launches = tables().map(|(name, keys)| {
        let pair = Pair::of(rows(&keys)).from(name);
        QUERIES.map(|sql| {
            let before = pair.gpu().counters().launches;
            pair.check(sql);
            pair.gpu().counters().launches - before
        })
    });
    assert_eq!(launches[0], launches[2]);
    assert_eq!(launches[1], launches[2]);
}
