use super::super::key::KeyKind;
use super::super::tests::{WAYS, expected_order};
use super::super::{TUNED, argsort_tuned};
use super::*;
use crate::ops::testing::*;

/// How often runs of row numbers were mended: twice where ties were trusted and some were not equal.
fn mended(device: &Device) -> u64 {
    let launches = device.launches();
    ["sort_runs_packed", "sort_runs_packed_implied"].iter().filter_map(|kernel| launches.get(*kernel)).sum()
}

/// Groups of rows that tie, of all lengths, wherever they lie in a thread's rows, a warp's and a tile's; of equal keys, and with a single one
/// that is not.
#[test]
fn rows_that_tie_are_equal_if_the_sums_of_their_hashes_are() {
    for device in devices_of_its_own() {
        let rows = 20_000;
        // In the order of the sort; the lowest 5 bits do not travel, or 11. Short groups share the sorted bits with the one before.
        let lengths = [1, 2, 7, 8, 9, 3, 255, 1, 256, 257, 16, 5, 600, 2300, 31, 1, 1, 4, 40];
        let (mut keys, mut high): (Vec<u64>, u64) = (vec![], 0);
        for (group, length) in (0..).zip(lengths.into_iter().cycle()) {
            high += u64::from(length > 5);
            keys.extend(vec![high << 44 | group << 20 | (group % 16); length.min(rows - keys.len())]);
            if keys.len() == rows {
                break;
            }
        }
        // Rows lie anywhere, those of a key in their order.
        let mut shuffled: Vec<usize> = (0..rows).collect();
        for (at, x) in random(33, rows).enumerate() {
            shuffled.swap(at, (x % rows as u64) as usize);
        }
        for odd in [None, Some(0), Some(1), Some(700), Some(2047), Some(5000), Some(rows - 1)] {
            let mut given = keys.clone();
            if let Some(at) = odd {
                given[at] ^= 8;
            }
            let column: Vec<u64> = shuffled.iter().map(|&at| given[at]).collect();
            let alone = |at: usize| given.iter().filter(|key| **key >> 4 == given[at] >> 4).count() == 1;
            let buffer = upload(&device, &column);
            let key = SortKey { bits: 54, ..SortKey::new(buffer.slice(0), KeyKind::Word, false) };
            let expected = expected_order(|row| column[row as usize], rows);
            for (implied, bits) in [(false, 54), (true, 62)] {
                let key = SortKey { bits, ..key };
                // As many equal keys as there would have to be for ties to be trusted.
                let spread = Spread { prefix: Some(bits - 38), equal: 5000.0, ..Spread::guessed(&key, rows as u64) };
                let spread = Spread { distinct: 1000.0, basis: Basis::Sample, ..spread };
                let tuning = Tuning { beyond: if implied { 64 } else { TUNED.beyond }, ..TUNED };
                let before = mended(&device);
                let found = argsort_prefix(&device, &key, &spread, &[], rows as u64, tuning).unwrap();
                assert!(read::<u32>(&found.expect("short runs"), rows) == expected, "{odd:?}, {bits} bits");
                let twice = odd.is_some_and(|at| !alone(at));
                assert_eq!(mended(&device) - before, 1 + u64::from(twice), "{odd:?}, {bits} bits");
            }
        }
    }
}

/// Row numbers by a prefix of 16 bits whose ties are trusted.
fn trusting(device: &Device, keys: &[u64], beyond: u32) -> Option<Vec<u32>> {
    let buffer = upload(device, keys);
    let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
    let spread = Spread { prefix: Some(16), equal: 5000.0, ..Spread::guessed(&key, keys.len() as u64) };
    let spread = Spread { distinct: 1000.0, basis: Basis::Sample, ..spread };
    let tuning = Tuning { beyond, ..TUNED };
    let found = argsort_prefix(device, &key, &spread, &[], keys.len() as u64, tuning).unwrap();
    found.map(|found| read::<u32>(&found, keys.len()))
}

/// Groups of rows that tie, and whose keys change where a warp's or a tile's rows end, so that their sums alone would not tell; and groups whose
/// rows do not stand side by side.
#[test]
fn rows_that_tie_are_told_apart_wherever_their_keys_change() {
    for device in devices_of_its_own() {
        let rows = 6000;
        for beyond in [TUNED.beyond, 64] {
            for change in [256, 512, 1792, 2048, 4096, 300, 2047] {
                for (length, pattern) in [(120, [1, 0]), (400, [1, 0]), (120, [1, 2])] {
                    // In the order of the sort; rows of the group are 1 and then 0, or 1, 2, 1, 2, … and then 2, 1, 2, 1, …
                    let low = |at: usize| match pattern {
                        [_, 0] => u64::from(at < change),
                        _ => [1, 2][(at + usize::from(at >= change)) % 2],
                    };
                    let group = change - length / 2..change + length / 2;
                    let key = |at: usize| match group.contains(&at) {
                        true => (group.start as u64) << 48 | low(at),
                        false => (at as u64) << 48,
                    };
                    let keys: Vec<u64> = (0..rows).map(key).collect();
                    let before = mended(&device);
                    let found = trusting(&device, &keys, beyond).expect("few rows in long runs");
                    assert!(found == expected_order(|row| keys[row as usize], rows), "{change}, {length}, {pattern:?}");
                    assert_eq!(mended(&device) - before, 2, "{change}, {length}, {pattern:?}");
                }
            }
            // Two rare keys that tie, the greater one first, among those of a frequent one that differs in bits that travel.
            let mut keys: Vec<u64> = (0..rows as u64).map(|row| (row % 60) << 48 | 5).collect();
            (keys[600], keys[1800]) = (1 << 40 | 1, 1 << 40);
            let found = trusting(&device, &keys, beyond).expect("few rows in long runs");
            assert!(found == expected_order(|row| keys[row as usize], rows), "rows apart");
            // The same in runs of six rows, which a thread puts in order.
            let mut keys: Vec<u64> = (0..rows as u64).map(|row| (row % 1000) << 48 | 5).collect();
            (keys[1000], keys[3000]) = (1 << 40 | 1, 1 << 40);
            let found = trusting(&device, &keys, beyond).expect("short runs");
            assert!(found == expected_order(|row| keys[row as usize], rows), "rows apart in short runs");
            // Small sorts of a few keys, of which some tie.
            for seed in 0..30 {
                let draws: Vec<u64> = random(500 + seed, 3).collect();
                let rows = 2 + (draws[0] % 3000) as usize;
                let (highs, middles) = (1 + draws[1] % 200, 1 + draws[2] % 3);
                let odd = [2, 50, 5000][(draws[2] % 9 / 3) as usize];
                let of =
                    |x: u64| (x % highs) << 48 | ((x >> 20) % middles) << 40 | u64::from((x >> 30).is_multiple_of(odd));
                let keys: Vec<u64> = random(600 + seed, rows).map(of).collect();
                let found = trusting(&device, &keys, beyond);
                let expected = expected_order(|row| keys[row as usize], rows);
                assert!(found.is_none_or(|found| found == expected), "seed {seed}, {rows} rows");
            }
        }
    }
}

/// Of guesses the digits' counts tell whether keys repeat; and two values that agree in all that travels are told apart.
#[test]
fn ties_are_trusted_where_digits_look_as_if_keys_repeated() {
    for device in devices_of_its_own() {
        let rows = 20_000;
        let value = |number: u64| random(300 + number, 1).next().unwrap();
        let shapes: [(&str, Vec<u64>, u64); 4] = [
            ("random", random(1, rows).collect(), 1),
            ("50 values", random(2, rows).map(|x| value(x % 50)).collect(), 1),
            (
                "50 values, and as many that differ from them in the lowest bit",
                random(2, rows).map(|x| value(x % 50) ^ (x >> 63)).collect(),
                2,
            ),
            (
                "10,000 pairs that differ in their lowest bits",
                (0..rows as u64).map(|row| value(row / 2) ^ (row % 2)).collect(),
                1,
            ),
        ];
        for (name, keys, times) in shapes {
            let buffer = upload(&device, &keys);
            let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
            let before = mended(&device);
            let sorted = argsort_tuned(&device, &key, &[], rows as u64, WAYS[0]).unwrap();
            assert!(read::<u32>(&sorted, rows) == expected_order(|row| keys[row as usize], rows), "{name}");
            assert_eq!(mended(&device) - before, times, "{name}");
        }
    }
}

/// Tiles of which all rows have the same implied digit, tiles of several, digits that no key has, and one that all keys share.
#[test]
fn argsort_puts_back_implied_digits() {
    for device in devices() {
        let rows = 40_000;
        // Digits of 8 bits, from the highest: of two values, any, of 16, or the last two exchanged; then 8 bits that all keys share.
        let keys = |seed, constant: u64| {
            let of = move |x: u64| {
                let (high, middle, low) = (x % 2 * 200 + 7, x >> 1 & 0xFF, (x >> 9 & 15) * 15);
                let digits =
                    if constant == 0 { high << 16 | middle << 8 | low } else { high << 16 | low << 8 | middle };
                digits << 40 | constant << 32 | x >> 32
            };
            random(seed, rows).map(of).collect::<Vec<_>>()
        };
        for (seed, constant, basis) in [(1, 0, Basis::Guess), (2, 99, Basis::Sample), (3, 255, Basis::Guess)] {
            let keys = keys(seed, constant);
            let buffer = upload(&device, &keys);
            let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
            for sorted in [24, 32, 40] {
                let spread = Spread { prefix: Some(sorted), basis, ..Spread::guessed(&key, rows as u64) };
                let tuning = Tuning { beyond: 64, ..TUNED };
                let found =
                    argsort_prefix(&device, &key, &spread, &[], rows as u64, tuning).unwrap().expect("short runs");
                let expected = expected_order(|row| keys[row as usize], rows);
                assert!(read::<u32>(&found, rows) == expected, "seed {seed}, {sorted} bits");
            }
        }
    }
}

/// A prefix that is not of whole digits, in words that leave one out: keys that agree in all but bits of the digit before the last.
#[test]
fn implied_digits_are_whole() {
    for device in devices() {
        let rows = 40_000;
        let keys: Vec<u64> = random(4, rows)
            .zip(0..)
            .map(|(x, row)| match row % 400 {
                7 => ((3 - row / 400 % 3) << 6) << 42,
                _ => (x % 2) << 50 | ((x >> 8) % 30_000) << 10,
            })
            .collect();
        let buffer = upload(&device, &keys);
        let key = SortKey { bits: 51, ..SortKey::new(buffer.slice(0), KeyKind::Word, false) };
        let expected = expected_order(|row| keys[row as usize], rows);
        let mut sorted = 0;
        for prefix in [33, 41, 42, 47] {
            let spread = Spread { prefix: Some(prefix), ..Spread::guessed(&key, rows as u64) };
            let tuning = Tuning { beyond: 64, ..TUNED };
            let Some(found) = argsort_prefix(&device, &key, &spread, &[], rows as u64, tuning).unwrap() else {
                continue;
            };
            sorted += 1;
            assert!(read::<u32>(&found, rows) == expected, "{prefix} bits");
        }
        assert!(sorted > 1, "{sorted}");
        assert!(device.launches().contains_key("sort_runs_packed_implied"));
    }
}
