use super::super::tests::expected_order;
use super::super::*;
use super::MOST_ROWS;
use crate::ops::testing::*;

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
        for rows in [2, 31, 32, 33, MOST_ROWS as usize] {
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
