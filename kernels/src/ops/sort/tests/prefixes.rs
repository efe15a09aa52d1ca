//! Keys that are sorted by a prefix first: what it does not tell, and guesses that were wrong.

use super::*;

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
