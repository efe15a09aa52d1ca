use super::super::key::KeyKind;
use super::*;
use crate::ops::testing::*;

const ROWS: usize = 6000;
/// Runs end before this row: from there on, rows of packed words begin anew.
const RUNS_END: usize = 5000;

/// Keys whose highest 48 bits ascend, with one run of equal ones that begins at `first`, and low
/// bits as `low` gives them to the run's rows.
fn with_run(first: usize, length: usize, low: impl Fn(u64) -> u64) -> Vec<u64> {
    let key = |at: usize| match at {
        at if (first..first + length).contains(&at) => {
            (first as u64) << 16 | low((at - first) as u64)
        }
        // Pairs in order and out of order besides, and keys that are alone.
        at if at % 5 == 1 => ((at - 1) as u64) << 16 | 3,
        at => (at as u64) << 16 | (at as u64 % 7),
    };
    let mut keys: Vec<u64> = (0..ROWS).map(key).collect();
    // A pair that would begin before the run and end in it.
    if first > 0 && first + length < ROWS {
        keys[first - 1] = ((first - 1) as u64) << 16;
        keys[first + length] = ((first + length) as u64) << 16;
    }
    keys
}

/// Whether runs are put in order of keys alone, of keys with values of 4 and of 8 bytes, and of
/// packed words whose lowest 12 bits do not travel, without and with a further word. All agree, and
/// what they put in order is so.
fn put(device: &Device, keys: &[u64]) -> bool {
    let rows = keys.len();
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by_key(|&at| keys[at]);
    let sorted: Vec<u64> = order.iter().map(|&at| keys[at]).collect();
    let mut verdicts = vec![];
    for width in [0, 4, 8] {
        let buffer = upload(device, keys);
        let narrow = upload(device, &(0..rows as u32).collect::<Vec<_>>());
        let wide = upload(device, &(0..rows as u64).collect::<Vec<_>>());
        let values = match width {
            0 => None,
            4 => Some((&narrow, 4)),
            _ => Some((&wide, 8)),
        };
        let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
        let long = put_in_order(
            device,
            &key,
            16,
            rows as u64,
            PrefixSorted::Rows { keys: &buffer, values },
        )
        .unwrap();
        verdicts.push(long == 0);
        if long == 0 {
            assert!(read::<u64>(&buffer, rows) == sorted, "values of {width} bytes");
        }
        if long == 0 && width == 4 {
            assert!(
                read::<u32>(&narrow, rows)
                    .iter()
                    .zip(&order)
                    .all(|(found, at)| *found as usize == *at)
            );
        }
        if long == 0 && width == 8 {
            assert!(
                read::<u64>(&wide, rows)
                    .iter()
                    .zip(&order)
                    .all(|(found, at)| *found as usize == *at)
            );
        }
    }
    // Rows that lie elsewhere than their words.
    let row = |at: usize| (at + 1000) % rows;
    let mut column = vec![0; rows];
    keys.iter().enumerate().for_each(|(at, key)| column[row(at)] = *key);
    let words: Vec<u64> =
        keys.iter().enumerate().map(|(at, key)| key >> 12 << 13 | row(at) as u64).collect();
    // Of a run, words come in the order of their row numbers, as a stable sort leaves them.
    let words = {
        let mut words = words;
        words.sort_by_key(|word| (word >> 17, word & 0x1FFF));
        words
    };
    let more: Vec<u64> = random(1, rows).map(|x| x % 3).collect();
    let [column_buffer, words, more_buffer] =
        [&column, &words, &more].map(|words| upload(device, words));
    let key = SortKey::new(column_buffer.slice(0), KeyKind::Word, false);
    let further = [SortWord { keys: &more_buffer, bits: 2 }];
    for more_words in [&further[..0], &further] {
        let mut expected: Vec<u32> = (0..rows as u32).collect();
        let second = |row: u32| if more_words.is_empty() { 0 } else { more[row as usize] };
        expected.sort_by_key(|&row| (column[row as usize], second(row), row));
        let numbers = device.alloc("test", rows * 4).unwrap();
        let sorted = PrefixSorted::Packed {
            words: &words,
            index_bits: 13,
            whole: false,
            more: more_words,
            numbers: &numbers,
        };
        let long = put_in_order(device, &key, 17, rows as u64, sorted).unwrap();
        if more_words.is_empty() {
            verdicts.push(long == 0);
        }
        assert!(
            long > 0 || read::<u32>(&numbers, rows) == expected,
            "packed, {} words",
            more_words.len()
        );
    }
    assert!(verdicts.windows(2).all(|pair| pair[0] == pair[1]), "{verdicts:?}");
    verdicts[0]
}

#[test]
fn runs_are_put_in_order_wherever_they_lie() {
    for device in device_and_gpu(4) {
        // The ends of chunks, and of tiles of 2048 rows.
        for first in [0, 7, 1800, 1900, 2047, 2048, 2054] {
            for length in [2, 3, 8, 9, 31, 32, 33, 255, 256] {
                let reversed = with_run(first, length, |at| length as u64 - at);
                assert!(put(&device, &reversed), "{length} from {first}");
                let mut last = with_run(first, length, |at| at);
                last.swap(first + length - 2, first + length - 1);
                assert!(put(&device, &last), "the last two of {length} from {first}");
                let few = with_run(first, length, |at| at * 7 % 3);
                assert!(put(&device, &few), "three values of {length} from {first}");
            }
        }
    }
}

#[test]
fn longer_runs_are_left_if_they_are_out_of_order_anywhere() {
    for device in device_and_gpu(5) {
        for length in [257, 258, 400, 2048, 2304, 2500, 4600] {
            for first in [0, 5, 1791, 1792, 1793, 2040, 2047, 2048]
                .into_iter()
                .filter(|first| first + length < RUNS_END)
            {
                let ordered = with_run(first, length, |at| at);
                assert!(put(&device, &ordered), "{length} from {first}, in order");
                assert!(
                    put(&device, &with_run(first, length, |_| 7)),
                    "{length} from {first}, equal"
                );
                // A pair out of order at the run's ends, and at the edges of tiles and of their
                // margins.
                let edges = [2047, 2048, 2301, 2302, 2303, 2304, 4095, 4096, 4350, 4351]
                    .map(|row: usize| row.wrapping_sub(first));
                for at in [0, 1, length / 2, length - 2]
                    .into_iter()
                    .chain(edges)
                    .filter(|at| at.saturating_add(2) <= length)
                {
                    let mut keys = ordered.clone();
                    keys.swap(first + at, first + at + 1);
                    assert!(!put(&device, &keys), "{length} from {first}, out of order at {at}");
                }
            }
        }
    }
}
