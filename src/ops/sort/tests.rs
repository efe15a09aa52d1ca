use super::*;
use crate::ops::testing::*;

const GUESS: Tuning = Tuning { look: Look::Guess, wide: false };
const SAMPLE: Tuning = Tuning { look: Look::Sample, wide: false };
const RANGE: Tuning = Tuning { look: Look::Range, wide: false };
const WAYS: [Tuning; 3] = [GUESS, SAMPLE, RANGE];

const SIZES: [usize; 9] = [0, 1, 31, 32, 33, 7679, 7680, 7681, 12_000];

fn expected_order<K: Ord>(key: impl Fn(u32) -> K, rows: usize) -> Vec<u32> {
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

/// Keys that a prefix does not tell apart, wholly or in part.
#[test]
fn argsort_by_prefix_orders_what_the_prefix_does_not_tell() {
    for device in devices() {
        let rows = 12_000;
        let shapes: [(&str, Vec<u64>); 7] = [
            ("random", random(1, rows).collect()),
            (
                "pairs",
                random(2, rows).map(|x| (x % 6000).wrapping_mul(0x0123_4567_89AB_CDEF)).collect(),
            ),
            (
                "runs of four that differ in low bits",
                random(3, rows).map(|x| (((x >> 8) % 3000) << 48) | (x % 256)).collect(),
            ),
            (
                "a giant run out of order",
                random(4, rows)
                    .map(|x| if x % 20 == 0 { (9 << 40) | (x % 977) } else { x })
                    .collect(),
            ),
            (
                "a giant run of equals",
                random(5, rows).map(|x| if x % 20 == 0 { 9 << 40 } else { x }).collect(),
            ),
            (
                "an outlier the sample misses",
                (0..rows as u64).map(|x| if x == 4321 { u64::MAX } else { x << 20 }).collect(),
            ),
            ("few values", random(6, rows).map(|x| (x % 3) << 60).collect()),
        ];
        for (name, keys) in shapes {
            let (buffer, low) =
                (upload(&device, &keys), random(7, rows).map(|x| x % 5).collect::<Vec<_>>());
            let more = upload(&device, &low);
            for tuning in WAYS {
                let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
                let found = argsort_tuned(&device, &key, &[], rows as u64, tuning).unwrap();
                let expected = expected_order(|row| keys[row as usize], rows);
                assert_eq!(read::<u32>(&found, rows), expected, "{name}, {tuning:?}");
                let words = [SortWord { keys: &more, bits: 3 }];
                let found = argsort_tuned(&device, &key, &words, rows as u64, tuning).unwrap();
                let expected = expected_order(|row| (keys[row as usize], low[row as usize]), rows);
                assert_eq!(read::<u32>(&found, rows), expected, "{name}, two words, {tuning:?}");
            }
        }
        for kernel in ["sort_runs_packed", "sort_runs_u32", "sort_pass_u64_u32"] {
            assert!(device.launches().contains_key(kernel), "{kernel}");
        }
    }
}

/// Frequent values alone and among rare ones, below, between and above; and a value whose bits are
/// those of a free slot.
#[test]
fn frequent_values_and_rare_ones_are_in_order() {
    for device in devices() {
        let rows = 40_000;
        let value = |number: u64| random(40 + number, 1).next().unwrap();
        let among = |seed, rare: u64, values: u64| {
            random(seed, rows)
                .map(|x| if x >> 32 & 127 < rare { x } else { value(x % values) })
                .collect::<Vec<_>>()
        };
        let mut hidden = among(10, 0, 70);
        hidden[12_345] = 1 << 50;
        let shapes: [(&str, Vec<u64>); 9] = [
            ("one", vec![value(0); rows]),
            ("two", random(1, rows).map(|x| [0, u64::MAX][(x % 2) as usize]).collect()),
            ("70", among(2, 0, 70)),
            ("20, and 1% rare ones", among(3, 1, 20)),
            ("20, and 20% rare ones", among(4, 26, 20)),
            ("one, and 20% rare ones", among(5, 26, 1)),
            ("20, and 40% rare ones", among(6, 51, 20)),
            ("70, and one that the sample misses", hidden),
            ("as many as a sample has rows", among(7, 0, 1250)),
        ];
        let payload: Vec<u64> = (0..rows as u64).collect();
        let payload = upload(&device, &payload);
        let more: Vec<u64> = random(7, rows).map(|x| x % 5).collect();
        let word = upload(&device, &more);
        for (name, keys) in shapes {
            let buffer = upload(&device, &keys);
            let order = expected_order(|row| keys[row as usize], rows);
            let sorted: Vec<u64> = order.iter().map(|&row| keys[row as usize]).collect();
            let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
            let (found, _) = sort_tuned(&device, &key, None, rows as u64, SAMPLE).unwrap();
            assert!(read::<u64>(&found, rows) == sorted, "{name}");
            let given = Some((payload.slice(0), 8));
            let (found, values) = sort_tuned(&device, &key, given, rows as u64, SAMPLE).unwrap();
            assert!(read::<u64>(&found, rows) == sorted, "{name}");
            let values = read::<u64>(&values.unwrap(), rows);
            assert!(
                values.iter().zip(&order).all(|(value, row)| *value == u64::from(*row)),
                "{name}"
            );
            let found = argsort_tuned(&device, &key, &[], rows as u64, SAMPLE).unwrap();
            assert!(read::<u32>(&found, rows) == order, "{name}");
            let words = [SortWord { keys: &word, bits: 3 }];
            let found = argsort_tuned(&device, &key, &words, rows as u64, SAMPLE).unwrap();
            let expected = expected_order(|row| (keys[row as usize], more[row as usize]), rows);
            assert!(read::<u32>(&found, rows) == expected, "{name}, two words");
        }
        let halves: Vec<i32> = random(8, rows)
            .map(|x| if x >> 40 & 15 == 0 { x as i32 } else { value(x % 60) as i32 })
            .collect();
        let floats: Vec<f64> = random(9, rows)
            .map(|x| [f64::NAN, -0.5, 1e300, -1e-300, 7.0][(x % 5) as usize])
            .collect();
        for descending in [false, true] {
            let buffer = upload(&device, &halves);
            let key = SortKey::new(buffer.slice(0), KeyKind::I32, descending);
            let mut expected = halves.clone();
            expected.sort_unstable_by_key(|value| {
                if descending { -i64::from(*value) } else { i64::from(*value) }
            });
            let (found, _) = sort_tuned(&device, &key, None, rows as u64, SAMPLE).unwrap();
            assert!(read::<i32>(&found, rows) == expected);
            let found = argsort_tuned(&device, &key, &[], rows as u64, SAMPLE).unwrap();
            let order =
                |row: u32| i64::from(halves[row as usize]) * if descending { -1 } else { 1 };
            assert!(read::<u32>(&found, rows) == expected_order(order, rows));
            let buffer = upload(&device, &floats);
            let key = SortKey::new(buffer.slice(0), KeyKind::F64, descending);
            let mut expected = floats.clone();
            expected.sort_by(|a, b| if descending { b.total_cmp(a) } else { a.total_cmp(b) });
            let (found, _) = sort_tuned(&device, &key, None, rows as u64, SAMPLE).unwrap();
            let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits();
            assert!(read::<f64>(&found, rows).iter().zip(&expected).all(same));
        }
    }
}

/// Few frequent keys that agree in the guessed prefix, among others that do not: eight more bits
/// tell them apart. Of frequent keys that differ in their low bits only, all bits are sorted.
#[test]
fn long_runs_are_told_apart_by_more_bits() {
    for device in devices_of_its_own() {
        let launched = |kernel: &str| device.launches().get(kernel).copied().unwrap_or(0);
        let rows = 40_000;
        // 24 bits are guessed.
        for (low_bit, attempts) in [(33, 2), (3, 2)] {
            let key =
                |x: u64| if x.is_multiple_of(50) { 9 << 40 | (x >> 33 & 1) << low_bit } else { x };
            let keys: Vec<u64> = random(51, rows).map(key).collect();
            let order = expected_order(|row| keys[row as usize], rows);
            let buffer = upload(&device, &keys);
            let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
            let before =
                ["sort_runs_packed", "sort_runs", "sort_runs_u32", "sort_runs_u64"].map(launched);
            let found = argsort_tuned(&device, &key, &[], rows as u64, GUESS).unwrap();
            assert!(read::<u32>(&found, rows) == order, "{low_bit}");
            for width in [0, 4, 8] {
                let (found, values) = with_row_numbers(&device, &key, rows, width, GUESS);
                assert!(
                    found.iter().zip(&order).all(|(key, row)| *key == keys[*row as usize]),
                    "{low_bit}, {width}"
                );
                assert!(width == 0 || values == order, "{low_bit}, {width}");
            }
            let after =
                ["sort_runs_packed", "sort_runs", "sort_runs_u32", "sort_runs_u64"].map(launched);
            assert_eq!(
                std::array::from_fn(|at| after[at] - before[at]),
                [attempts; 4],
                "{low_bit}"
            );
        }
    }
}

/// Sorted keys, and their rows' numbers, which went as values of this width.
fn with_row_numbers(
    device: &Device,
    key: &SortKey<'_>,
    rows: usize,
    width: usize,
    tuning: Tuning,
) -> (Vec<u64>, Vec<u32>) {
    let payload: Vec<u8> =
        (0..rows as u64).flat_map(|row| row.to_le_bytes()[..width].to_vec()).collect();
    let payload = device.upload("test", &payload).unwrap();
    let given = (width > 0).then_some((payload.slice(0), width));
    let (keys, values) = sort_tuned(device, key, given, rows as u64, tuning).unwrap();
    let values = match width {
        0 => vec![],
        4 => read::<u32>(&values.unwrap(), rows),
        _ => read::<u64>(&values.unwrap(), rows).into_iter().map(|row| row as u32).collect(),
    };
    (read::<u64>(&keys, rows), values)
}

/// Half of the rows agree in the guessed bits, the others in runs of a hundred: the guess is given
/// up, and leaves nothing behind.
#[test]
fn guesses_that_are_given_up_leave_nothing_behind() {
    for device in device_and_gpu(6) {
        let rows = 40_000;
        let prefix = |row: usize| if row < rows / 2 { 5 } else { 1000 + row as u64 / 100 };
        let keys: Vec<u64> =
            random(81, rows).enumerate().map(|(row, x)| prefix(row) << 40 | x >> 24).collect();
        let order = expected_order(|row| keys[row as usize], rows);
        let buffer = upload(&device, &keys);
        let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
        let sorted = argsort_tuned(&device, &key, &[], rows as u64, GUESS).unwrap();
        assert!(read::<u32>(&sorted, rows) == order);
        for width in [0, 4, 8] {
            let (found, values) = with_row_numbers(&device, &key, rows, width, GUESS);
            assert!(
                found.iter().zip(&order).all(|(key, row)| *key == keys[*row as usize]),
                "values of {width} bytes"
            );
            assert!(width == 0 || values == order);
        }
        assert!(read::<u64>(&buffer, rows) == keys);
    }
}

/// Keys made of a random choice of frequent values, rare ones, runs that share their high bits,
/// values that differ in their lowest bit, or in one in the middle, stretches in order and bits
/// that never change. `WARPFRAME_SORT_MIXTURES` says how many.
#[test]
fn sorts_of_random_mixtures_are_in_order() {
    let count = std::env::var("WARPFRAME_SORT_MIXTURES")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(6);
    for seed in 0..count {
        for device in device_and_gpu(seed) {
            let draws: Vec<u64> = random(1000 + seed, 13).collect();
            let rows = 1 + (draws[0] % 30_000) as usize;
            let frequent = 1 + draws[1] % [100, 600][(draws[11] % 2) as usize];
            let rare = [0, draws[2] % 101, 1][(draws[3] % 3) as usize];
            let (shared, constant) =
                ([0, 16, 30, 44][(draws[4] % 4) as usize], [0, 0, 9, 24][(draws[5] % 4) as usize]);
            let mask = u64::MAX << constant;
            let random_value =
                |x: u64| if x.is_multiple_of(3) { (x >> 7 << 7 | 3) >> shared } else { x };
            let value = |x: u64| {
                if x >> 40 & 127 < rare {
                    x
                } else {
                    random_value(random(x % frequent, 1).next().unwrap())
                }
            };
            // One row in so many differs from its value in the lowest bit.
            let odd = [u64::MAX, 2, 1000][(draws[12] % 3) as usize];
            // And in some of these another in a bit that travels, mostly.
            let sibling = u64::from(draws[12].is_multiple_of(2)) << 30;
            let twin = |x: u64| match x >> 20 {
                x if x.is_multiple_of(odd) => 1 | if x.is_multiple_of(3) { sibling } else { 0 },
                x if x % 40 == 7 => sibling,
                _ => 0,
            };
            let mut keys: Vec<u64> =
                random(seed, rows).map(|x| value(x) & mask ^ twin(x) | draws[6] & !mask).collect();
            let stretch = (draws[7] % rows as u64) as usize * (draws[8] % 2) as usize;
            keys[..stretch].sort_unstable();
            if draws[9].is_multiple_of(2) {
                keys[..stretch].reverse();
            }
            let name = format!(
                "mixture {seed}: {rows} rows, {frequent} values, {rare}/128, {shared}, {constant}, {odd}, {stretch}"
            );
            let descending = draws[10].is_multiple_of(2);
            let order = match descending {
                true => expected_order(|row| std::cmp::Reverse(keys[row as usize]), rows),
                false => expected_order(|row| keys[row as usize], rows),
            };
            let sorted: Vec<u64> = order.iter().map(|&row| keys[row as usize]).collect();
            let (buffer, payload) =
                (upload(&device, &keys), upload(&device, &(0..rows as u64).collect::<Vec<_>>()));
            let key = SortKey::new(buffer.slice(0), KeyKind::Word, descending);
            for tuning in WAYS {
                let found = argsort_tuned(&device, &key, &[], rows as u64, tuning).unwrap();
                assert!(read::<u32>(&found, rows) == order, "{name}, order, {tuning:?}");
                let (found, _) = sort_tuned(&device, &key, None, rows as u64, tuning).unwrap();
                assert!(read::<u64>(&found, rows) == sorted, "{name}, keys, {tuning:?}");
                let given = Some((payload.slice(0), 8));
                let (found, values) =
                    sort_tuned(&device, &key, given, rows as u64, tuning).unwrap();
                assert!(read::<u64>(&found, rows) == sorted, "{name}, keys of pairs, {tuning:?}");
                let values = read::<u64>(&values.unwrap(), rows);
                assert!(
                    values.iter().zip(&order).all(|(value, row)| *value == u64::from(*row)),
                    "{name}, pairs, {tuning:?}"
                );
            }
        }
    }
}

/// Values of a kind as bytes, and numbers that order as they do: ties, both zeros, a NaN and both
/// infinities.
fn few_values(kind: KeyKind, rows: usize) -> (Vec<u8>, Vec<u64>) {
    let mut bytes = vec![];
    let mut ranks = vec![];
    for (at, x) in random(9, rows).enumerate() {
        let small = (x % 23) as i64 - 11;
        let float = match (at, x % 7) {
            (3, _) => f64::NAN,
            (_, 0) => f64::INFINITY,
            (_, 1) => f64::NEG_INFINITY,
            (_, 2) => -0.0,
            _ => small as f64 / 4.0,
        };
        // NaN is greatest, and −0.0 comes before 0.0.
        let of_float = |x: f64| match x {
            x if x.to_bits() == (-0.0f64).to_bits() => 399,
            x if x.is_nan() => u64::MAX,
            x if x == f64::INFINITY => 1 << 40,
            x if x == f64::NEG_INFINITY => 0,
            x => (x * 16.0 + 400.0) as u64,
        };
        let rank = match kind {
            KeyKind::Word => {
                bytes.extend_from_slice(&(x >> 60).to_le_bytes());
                x >> 60
            }
            KeyKind::U32 => {
                bytes.extend_from_slice(&((x >> 61) as u32).to_le_bytes());
                x >> 61
            }
            KeyKind::I32 => {
                bytes.extend_from_slice(&(small as i32).to_le_bytes());
                (small + 100) as u64
            }
            KeyKind::I64 => {
                bytes.extend_from_slice(&small.to_le_bytes());
                (small + 100) as u64
            }
            KeyKind::F32 => {
                bytes.extend_from_slice(&(float as f32).to_le_bytes());
                of_float(float)
            }
            KeyKind::F64 => {
                bytes.extend_from_slice(&float.to_le_bytes());
                of_float(float)
            }
        };
        ranks.push(rank);
    }
    (bytes, ranks)
}

#[test]
fn few_rows_of_every_kind_are_sorted_by_one_kernel() {
    use KeyKind::{F32, F64, I32, I64, U32, Word};
    for device in device_and_gpu(11) {
        for rows in [2, 31, 32, 33, few::MOST_ROWS as usize] {
            let payload: Vec<u64> = (0..rows as u64).map(|row| row * 3).collect();
            let narrow: Vec<u32> = (0..rows as u32).map(|row| row * 5).collect();
            let more: Vec<u64> = random(4, rows).map(|x| x % 3).collect();
            let buffers =
                (upload(&device, &payload), upload(&device, &narrow), upload(&device, &more));
            for kind in [Word, U32, I32, I64, F32, F64] {
                let (bytes, ranks) = few_values(kind, rows);
                let data = device.upload("test", &bytes).unwrap();
                for descending in [false, true] {
                    let name = format!("{rows} rows of {kind:?}, descending {descending}");
                    let key = SortKey::new(data.slice(0), kind, descending);
                    let rank = |row: u32| {
                        let rank = ranks[row as usize];
                        if descending { u64::MAX - rank } else { rank }
                    };
                    let before = device.counters().launches;
                    let order = argsort_key(&device, &key, rows as u64).unwrap();
                    assert_eq!(device.counters().launches - before, 1, "{name}");
                    let expected = expected_order(rank, rows);
                    assert_eq!(read::<u32>(&order, rows), expected, "{name}");
                    let word = SortWord { keys: &buffers.2, bits: 2 };
                    let by_more = argsort_keys(&device, &key, &[word, word], rows as u64).unwrap();
                    let expected_more = expected_order(|row| (rank(row), more[row as usize]), rows);
                    assert_eq!(read::<u32>(&by_more, rows), expected_more, "{name}, more words");

                    let keys = sort_values(&device, &key, rows as u64).unwrap();
                    let (again, wide) =
                        sort_pairs(&device, &key, buffers.0.slice(0), 8, rows as u64).unwrap();
                    let (_, half) =
                        sort_pairs(&device, &key, buffers.1.slice(0), 4, rows as u64).unwrap();
                    let width = kind.width();
                    let (keys, again) =
                        (read::<u8>(&keys, rows * width), read::<u8>(&again, rows * width));
                    assert_eq!(keys, again, "{name}");
                    let float = |bytes: &[u8]| match width {
                        4 => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
                        _ => f64::from_le_bytes(bytes.try_into().unwrap()),
                    };
                    for (place, &row) in expected.iter().enumerate() {
                        let (found, given) = (
                            &keys[place * width..][..width],
                            &bytes[row as usize * width..][..width],
                        );
                        let same = match kind {
                            F32 | F64 => {
                                let (found, given) = (float(found), float(given));
                                found == given || found.is_nan() && given.is_nan()
                            }
                            _ => found == given,
                        };
                        assert!(same, "{name}, place {place}");
                    }
                    let rows_of = |row: &u32| u64::from(*row);
                    assert!(
                        read::<u64>(&wide, rows)
                            .iter()
                            .copied()
                            .eq(expected.iter().map(|row| rows_of(row) * 3))
                    );
                    assert!(
                        read::<u32>(&half, rows)
                            .iter()
                            .copied()
                            .eq(expected.iter().map(|row| row * 5))
                    );
                }
            }
        }
    }
}

#[test]
fn few_rows_with_many_words_are_sorted_by_passes() {
    let device = device(0);
    let rows = 300;
    let words: Vec<Vec<u64>> =
        (0..9).map(|seed| random(seed, rows).map(|x| x % 2).collect()).collect();
    let buffers: Vec<Buffer> = words.iter().map(|keys| upload(&device, keys)).collect();
    let of_words: Vec<SortWord<'_>> =
        buffers.iter().map(|keys| SortWord { keys, bits: 1 }).collect();
    let found = argsort(&device, &of_words, rows as u64).unwrap();
    let key = |row: u32| words.iter().map(|keys| keys[row as usize]).collect::<Vec<_>>();
    assert_eq!(read::<u32>(&found, rows), expected_order(key, rows));
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
