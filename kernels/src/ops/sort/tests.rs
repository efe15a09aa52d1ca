//! Sorts of every size, kind of key and payload.

mod mixtures;
mod prefixes;

use super::*;
use crate::ops::testing::*;

const GUESS: Tuning = Tuning { look: Look::Guess, wide: false };
const SAMPLE: Tuning = Tuning { look: Look::Sample, wide: false };
const RANGE: Tuning = Tuning { look: Look::Range, wide: false };
const WAYS: [Tuning; 3] = [GUESS, SAMPLE, RANGE];

const SIZES: [usize; 9] = [0, 1, 31, 32, 33, 7679, 7680, 7681, 12_000];

pub(super) fn expected_order<K: Ord>(key: impl Fn(u32) -> K, rows: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..rows as u32).collect();
    order.sort_by_key(|&row| key(row));
    order
}

fn check(device: &Device, words: &[(Vec<u64>, u32)], rows: usize, wide: bool) {
    let buffers: Vec<Buffer> = words.iter().map(|(keys, _)| upload(device, keys)).collect();
    let sort_words: Vec<SortWord<'_>> =
        buffers.iter().zip(words).map(|(keys, &(_, bits))| SortWord { keys, bits }).collect();
    let (first, more) = sort_words.split_first().unwrap();
    let key = |row: u32| words.iter().map(|(keys, _)| keys[row as usize]).collect::<Vec<_>>();
    for tuning in [GUESS, RANGE] {
        let tuning = Tuning { wide, ..tuning };
        let found = argsort_tuned(device, &(*first).into(), more, rows as u64, tuning).unwrap();
        assert_eq!(
            read::<u32>(&found, rows),
            expected_order(key, rows),
            "{rows} rows, bits {:?}",
            words[0].1
        );
    }
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
    for device in device_and_gpu(5) {
        let rows = 20_000;
        let shapes: [(&str, Vec<u64>); 6] = [
            ("sorted", (0..rows as u64).collect()),
            ("reversed", (0..rows as u64).rev().collect()),
            ("one value", vec![0xABCD_EF01; rows]),
            (
                "one giant group",
                random(1, rows).map(|x| if x % 10 == 0 { x } else { 77 << 40 }).collect(),
            ),
            ("ten values", random(2, rows).map(|x| (x % 10) << 60).collect()),
            (
                "all ones among others",
                random(3, rows).map(|x| if x % 2 == 0 { u64::MAX } else { x }).collect(),
            ),
        ];
        for (_, keys) in shapes {
            check(&device, &[(keys, 64)], rows, false);
        }
    }
}

#[test]
fn argsort_of_several_words_sorts_by_the_first_first() {
    for device in devices() {
        let rows = 7000;
        let low =
            |seed, modulus: u64| random(seed, rows).map(move |x| x % modulus).collect::<Vec<_>>();
        check(&device, &[(low(1, 1000), 10), (random(2, rows).collect(), 64)], rows, false);
        check(
            &device,
            &[(low(1, 7), 3), (vec![5; rows], 3), (low(3, 9), 64), (vec![0; rows], 0)],
            rows,
            false,
        );
        check(&device, &[(vec![9; rows], 64), (vec![0; rows], 0)], rows, false);
    }
}

#[test]
fn argsort_with_wide_look_back_words_gives_the_same() {
    for device in device_and_gpu(2) {
        let rows = 12_000;
        check(&device, &[(random(1, rows).collect(), 64)], rows, true);
        check(&device, &[(random(1, rows).map(|x| x % 1000).collect(), 10)], rows, true);
    }
}

#[test]
fn sort_values_sorts_copies_of_every_kind() {
    macro_rules! check {
        ($device:expr, $rows:expr, $kind:ident, $t:ty, $values:expr, $cmp:expr) => {{
            let values: Vec<$t> = $values;
            let buffer = upload($device, &values);
            for descending in [false, true] {
                let key = SortKey::new(buffer.slice(0), KeyKind::$kind, descending);
                for tuning in WAYS {
                    let (found, _) = sort_tuned($device, &key, None, $rows as u64, tuning).unwrap();
                    let mut expected = values.clone();
                    expected.sort_by($cmp);
                    if descending {
                        expected.reverse();
                    }
                    let found = read::<$t>(&found, $rows);
                    let same = found
                        .iter()
                        .zip(&expected)
                        .all(|(a, b)| a.to_le_bytes() == b.to_le_bytes());
                    assert!(same, "{} {} {descending} {tuning:?}", $rows, stringify!($kind));
                }
            }
        }};
    }
    for device in &devices() {
        for rows in [0, 1, 33, 7681, 12_000] {
            check!(device, rows, Word, u64, random(11, rows).collect(), |a, b| a.cmp(b));
            check!(
                device,
                rows,
                I64,
                i64,
                random(12, rows).map(|x| x as i64 >> (x % 64)).collect(),
                |a, b| a.cmp(b)
            );
            check!(
                device,
                rows,
                U32,
                u32,
                random(13, rows).map(|x| x as u32 % 100_000).collect(),
                |a, b| a.cmp(b)
            );
            check!(device, rows, I32, i32, random(14, rows).map(|x| x as i32).collect(), |a, b| a
                .cmp(b));
            let floats = |x: u64| f64::from_bits(x >> (x % 3) & !(0x7FF << 52) | (x % 2047) << 52);
            check!(device, rows, F64, f64, random(15, rows).map(floats).collect(), |a, b| a
                .total_cmp(b));
            check!(
                device,
                rows,
                F32,
                f32,
                random(16, rows).map(|x| (x as i32) as f32).collect(),
                |a, b| a.total_cmp(b)
            );
        }
    }
}

#[test]
fn sort_values_counts_digits_of_many_rows_in_copies() {
    for device in device_and_gpu(3) {
        let rows = 70_000;
        let words: Vec<u64> =
            random(21, rows).map(|x| if x % 5 == 0 { 7 << 40 } else { x }).collect();
        let halves: Vec<u32> = words.iter().map(|x| (x >> 20) as u32).collect();
        for tuning in WAYS {
            let buffer = upload(&device, &words);
            let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
            let (found, _) = sort_tuned(&device, &key, None, rows as u64, tuning).unwrap();
            let mut expected = words.clone();
            expected.sort_unstable();
            assert!(read::<u64>(&found, rows) == expected, "{tuning:?}");
        }
        let buffer = upload(&device, &halves);
        let key = SortKey::new(buffer.slice(0), KeyKind::U32, false);
        let (found, _) = sort_tuned(&device, &key, None, rows as u64, GUESS).unwrap();
        let mut expected = halves.clone();
        expected.sort_unstable();
        assert!(read::<u32>(&found, rows) == expected);
    }
}

#[test]
fn sort_pairs_carries_payloads_in_their_order() {
    for device in devices() {
        for (rows, spread) in [(0, 500), (1, 500), (6144, 500), (12_000, 500), (12_000, u64::MAX)] {
            let keys: Vec<u64> = random(13, rows).map(|x| (x % spread) << 30).collect();
            let order = expected_order(|row| keys[row as usize], rows);
            let sorted: Vec<u64> = order.iter().map(|&row| keys[row as usize]).collect();
            let wide: Vec<f64> = (0..rows).map(|row| row as f64 * 0.5).collect();
            let narrow: Vec<u32> = (0..rows as u32).collect();
            let buffer = upload(&device, &keys);
            let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
            for tuning in WAYS {
                let payload = upload(&device, &wide);
                let (k, v) =
                    sort_tuned(&device, &key, Some((payload.slice(0), 8)), rows as u64, tuning)
                        .unwrap();
                assert_eq!(read::<u64>(&k, rows), sorted);
                let expected: Vec<f64> = order.iter().map(|&row| wide[row as usize]).collect();
                assert_eq!(read::<f64>(&v.unwrap(), rows), expected);
                let payload = upload(&device, &narrow);
                let (k, v) =
                    sort_tuned(&device, &key, Some((payload.slice(0), 4)), rows as u64, tuning)
                        .unwrap();
                assert_eq!(read::<u64>(&k, rows), sorted);
                assert_eq!(read::<u32>(&v.unwrap(), rows), order);
            }
        }
    }
}

#[test]
fn sorts_refuse_buffers_of_fewer_rows() {
    let device = device(0);
    let (long, short) = (upload(&device, &[1u64; 10]), upload(&device, &[1u64; 9]));
    let key = |buffer| SortKey::new(Buffer::slice(buffer, 0), KeyKind::Word, false);
    let panics =
        |run: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err();
    let word = SortWord { keys: &short, bits: 64 };
    assert!(panics(&|| drop(argsort_key(&device, &key(&short), 10))));
    assert!(panics(&|| drop(argsort(&device, &[word], 10))));
    assert!(panics(&|| drop(argsort_keys(&device, &key(&long), &[word], 10))));
    assert!(panics(&|| drop(sort_values(&device, &key(&short), 10))));
    assert!(panics(&|| drop(sort_pairs(&device, &key(&long), short.slice(0), 8, 10))));
    assert!(panics(&|| drop(crate::ops::top::top_k(&device, &key(&short), &[], 10, 3))));
    assert!(panics(&|| drop(crate::ops::top::top_values(&device, &key(&short), 10, 3))));
    assert!(!panics(&|| drop(argsort_keys(&device, &key(&long), &[word], 9))));
}
