use super::*;
use crate::ops::testing::*;

const SIZES: [usize; 9] = [0, 1, 31, 32, 33, 5759, 5760, 5761, 12_000];

fn expected_order<K: Ord>(key: impl Fn(u32) -> K, rows: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..rows as u32).collect();
    order.sort_by_key(|&row| key(row));
    order
}

fn check(device: &Device, words: &[(Vec<u64>, u32)], rows: usize, wide: bool) {
    let buffers: Vec<Buffer> = words.iter().map(|(keys, _)| upload(device, keys)).collect();
    let sort_words: Vec<SortWord<'_>> =
        buffers.iter().zip(words).map(|(keys, &(_, bits))| SortWord { keys, bits }).collect();
    let found = argsort_by(device, &sort_words, rows as u64, wide).unwrap();
    let key = |row: u32| words.iter().map(|(keys, _)| keys[row as usize]).collect::<Vec<_>>();
    assert_eq!(read::<u32>(&found, rows), expected_order(key, rows), "{rows} rows, bits {:?}", words[0].1);
}

#[test]
fn argsort_orders_every_size_and_key_width() {
    for device in devices() {
        for rows in SIZES {
            for bits in [1, 8, 10, 37, 50, 64] {
                let keys = random(bits, rows).map(|x| x >> (64 - bits)).collect();
                check(&device, &[(keys, bits as u32)], rows, false);
            }
        }
    }
}

#[test]
fn argsort_is_stable_in_shapes_of_every_kind() {
    let device = device(5);
    let rows = 20_000;
    let shapes: [(&str, Vec<u64>); 6] = [
        ("sorted", (0..rows as u64).collect()),
        ("reversed", (0..rows as u64).rev().collect()),
        ("one value", vec![0xABCD_EF01; rows]),
        ("one giant group", random(1, rows).map(|x| if x % 10 == 0 { x } else { 77 << 40 }).collect()),
        ("ten values", random(2, rows).map(|x| (x % 10) << 60).collect()),
        ("all ones among others", random(3, rows).map(|x| if x % 2 == 0 { u64::MAX } else { x }).collect()),
    ];
    for (_, keys) in shapes {
        check(&device, &[(keys, 64)], rows, false);
    }
}

#[test]
fn argsort_of_several_words_sorts_by_the_first_first() {
    for device in devices() {
        let rows = 7000;
        let low = |seed, modulus: u64| random(seed, rows).map(move |x| x % modulus).collect::<Vec<_>>();
        check(&device, &[(low(1, 1000), 10), (random(2, rows).collect(), 64)], rows, false);
        check(&device, &[(low(1, 7), 3), (vec![5; rows], 3), (low(3, 9), 64), (vec![0; rows], 0)], rows, false);
        check(&device, &[(vec![9; rows], 64), (vec![0; rows], 0)], rows, false);
    }
}

#[test]
fn argsort_with_wide_look_back_words_gives_the_same() {
    let device = device(2);
    let rows = 12_000;
    check(&device, &[(random(1, rows).collect(), 64)], rows, true);
    check(&device, &[(random(1, rows).map(|x| x % 1000).collect(), 10)], rows, true);
}

#[test]
fn sort_keys_sorts_copies() {
    for device in devices() {
        for rows in [0, 1, 33, 6912, 6913, 12_000] {
            let mut keys: Vec<u64> = random(11, rows).collect();
            let found = sort_keys_u64(&device, &upload(&device, &keys), rows as u64).unwrap();
            keys.sort_unstable();
            assert_eq!(read::<u64>(&found, rows), keys);

            let mut keys: Vec<u32> = random(12, rows).map(|x| x as u32 % 100_000).collect();
            let found = sort_keys_u32(&device, &upload(&device, &keys), rows as u64).unwrap();
            keys.sort_unstable();
            assert_eq!(read::<u32>(&found, rows), keys);
        }
    }
}

#[test]
fn sort_pairs_carries_payloads_in_their_order() {
    for device in devices() {
        for rows in [0, 1, 5376, 12_000] {
            let keys: Vec<u64> = random(13, rows).map(|x| (x % 500) << 30).collect();
            let order = expected_order(|row| keys[row as usize], rows);
            let sorted: Vec<u64> = order.iter().map(|&row| keys[row as usize]).collect();
            let wide: Vec<f64> = (0..rows).map(|row| row as f64 * 0.5).collect();
            let narrow: Vec<u32> = (0..rows as u32).collect();
            let buffer = upload(&device, &keys);
            let (k, v) = sort_pairs(&device, &buffer, &upload(&device, &wide), 8, rows as u64).unwrap();
            assert_eq!(read::<u64>(&k, rows), sorted);
            assert_eq!(read::<f64>(&v, rows), order.iter().map(|&row| wide[row as usize]).collect::<Vec<_>>());
            let (k, v) = sort_pairs(&device, &buffer, &upload(&device, &narrow), 4, rows as u64).unwrap();
            assert_eq!(read::<u64>(&k, rows), sorted);
            assert_eq!(read::<u32>(&v, rows), order);
        }
    }
}
