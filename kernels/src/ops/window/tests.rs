use super::*;
use crate::ops::sort::{SortWord, argsort};
use crate::ops::testing::*;

/// Lengths of partitions that meet tile boundaries (1024 rows) everywhere.
fn shapes() -> Vec<Vec<usize>> {
    vec![
        vec![1],
        vec![31, 1],
        vec![1; 1025],
        vec![1024],
        vec![1023, 2, 1023, 1024, 1],
        vec![2048, 1024, 1, 3071],
        vec![1, 12_000, 3],
        random(1, 900).map(|x| 1 + (x % 7) as usize).collect(),
        random(2, 30).map(|x| 1 + (x % 900) as usize).collect(),
    ]
}

/// Bounds of partitions of these lengths, in which each third row has no peers before it, and what
/// they should be.
struct BoundsSample {
    bounds: Bounds,
    /// First and end of each position's partition, and of its peers.
    partition: Vec<(usize, usize)>,
    peers: Vec<(usize, usize)>,
}

fn sample(device: &Device, lengths: &[usize]) -> BoundsSample {
    let (mut partition, mut peers, mut keys) = (vec![], vec![], vec![]);
    let mut begin = 0;
    for (number, &length) in lengths.iter().enumerate() {
        for i in 0..length {
            partition.push((begin, begin + length));
            let first = begin + i / 3 * 3;
            peers.push((first, (first + 3).min(begin + length)));
            // The partition: the high word, and what is above the order in the low word.
            keys.push([number as u64 >> 20, (number as u64 & 0xF_FFFF) << 40 | (i / 3) as u64]);
        }
        begin += length;
    }
    // The rows lie scattered.
    let rows = keys.len();
    let mut scattered: Vec<(u64, usize)> = random(17, rows).zip(0..).collect();
    scattered.sort();
    let mut words = [vec![0; rows], vec![0; rows]];
    for (&(_, row), key) in scattered.iter().zip(&keys) {
        (words[0][row], words[1][row]) = (key[0], key[1]);
    }
    let words = words.map(|word| upload(device, &word));
    let sorted = [SortWord { keys: &words[0], bits: 2 }, SortWord { keys: &words[1], bits: 60 }];
    let order = argsort(device, &sorted, rows as u64).unwrap();
    let words =
        [WindowWord { keys: &words[0], below: 0 }, WindowWord { keys: &words[1], below: 40 }];
    let bounds = bounds(device, &words, Some(&order), Ties::Peers, rows as u64).unwrap();
    BoundsSample { bounds, partition, peers }
}

#[test]
fn bounds_are_where_partitions_and_peers_begin() {
    for device in devices() {
        for lengths in shapes() {
            let BoundsSample { bounds, partition, peers } = sample(&device, &lengths);
            let rows = partition.len();
            for (number_of, offsets, expected) in [
                (&bounds.partition_of, &bounds.partitions, partition),
                (&bounds.peers_of, &bounds.peers, peers),
            ] {
                let number_of = read::<u32>(number_of, rows);
                let offsets = read::<u32>(offsets, *number_of.last().unwrap() as usize + 2);
                let found: Vec<(usize, usize)> = (number_of.iter())
                    .map(|&number| {
                        (offsets[number as usize] as usize, offsets[number as usize + 1] as usize)
                    })
                    .collect();
                assert_eq!(found, expected, "{:?}", &lengths[..lengths.len().min(9)]);
            }
        }
    }
}

#[test]
fn rows_without_keys_are_peers_of_one_partition() {
    let device = device(3);
    let found = bounds(&device, &[], None, Ties::Peers, 3000).unwrap();
    assert_eq!(read::<u32>(&found.partitions, 2), [0, 3000]);
    assert_eq!(read::<u32>(&found.peers, 2), [0, 3000]);
    assert_eq!(read::<u32>(&found.peers_of, 3000), [0; 3000]);
}

#[test]
fn rows_that_a_further_key_tells_apart_have_no_peers() {
    let device = device(5);
    for rows in [1u32, 1023, 1024, 1025, 3000] {
        let keys: Vec<u64> = (0..rows).map(|row| u64::from(row / 700)).collect();
        let keys = upload(&device, &keys);
        let words = [WindowWord { keys: &keys, below: 0 }];
        let found = bounds(&device, &words, None, Ties::Apart, rows.into()).unwrap();
        let places: Vec<u32> = (0..=rows).collect();
        assert_eq!(read::<u32>(&found.peers, rows as usize + 1), places);
        assert_eq!(read::<u32>(&found.peers_of, rows as usize), places[..rows as usize]);
        let mut partitions: Vec<u32> = (0..rows).step_by(700).collect();
        partitions.push(rows);
        assert_eq!(read::<u32>(&found.partitions, partitions.len()), partitions);
    }
}

/// The example of `kernels/window.cuh`.
#[test]
fn the_example_of_the_kernels_is_right() {
    let device = device(0);
    let (partition, order) =
        (upload(&device, &[0u64, 0, 0, 0, 1, 1]), upload(&device, &[1u64, 2, 2, 5, 1, 1]));
    let words = [WindowWord { keys: &partition, below: 0 }, WindowWord { keys: &order, below: 64 }];
    let bounds = bounds(&device, &words, None, Ties::Peers, 6).unwrap();
    assert_eq!(read::<u32>(&bounds.partition_of, 6), [0, 0, 0, 0, 1, 1]);
    assert_eq!(read::<u32>(&bounds.partitions, 3), [0, 4, 6]);
    assert_eq!(read::<u32>(&bounds.peers_of, 6), [0, 1, 1, 2, 3, 3]);
    assert_eq!(read::<u32>(&bounds.peers, 5), [0, 1, 3, 4, 6]);
    let values = upload(&device, &[3i64, 1, 4, 1, 5, 9]);
    let sum = Fold::Reduce(Reduction::SumI64);
    let run =
        |toward| read::<i64>(&running(&device, sum, toward, &values, None, &bounds).unwrap(), 6);
    assert_eq!(run(Toward::Last), [3, 4, 8, 9, 5, 14]);
    assert_eq!(run(Toward::First), [9, 6, 5, 1, 14, 9]);
    let (low, high) =
        (upload(&device, &[0u32, 0, 1, 2, 4, 4]), upload(&device, &[2u32, 3, 4, 4, 6, 6]));
    let sums = over_frames(&device, sum, &values, None, [&low, &high], 6).unwrap();
    assert_eq!(read::<i64>(&sums, 6), [4, 8, 6, 5, 14, 14]);
}

#[test]
fn running_reductions_start_anew_with_each_partition() {
    for device in devices() {
        for lengths in shapes() {
            let BoundsSample { bounds, partition, .. } = sample(&device, &lengths);
            let rows = partition.len();
            let values: Vec<i64> = random(5, rows).map(|x| x as i64).collect();
            let floats: Vec<f64> = values.iter().map(|&x| x as f64 / 1e15).collect();
            let valid: Vec<u8> = random(6, rows).map(|x| (x % 4 != 0) as u8).collect();
            let (integers, float_values) = (upload(&device, &values), upload(&device, &floats));
            let valid_buffer = upload(&device, &valid);
            for toward in [Toward::Last, Toward::First] {
                let run = |fold, values| {
                    running(&device, fold, toward, values, Some(&valid_buffer), &bounds).unwrap()
                };
                let wide = read::<i128>(&run(Fold::Reduce(Reduction::SumI64Wide), &integers), rows);
                let counts = read::<i64>(&run(Fold::Reduce(Reduction::Count), &integers), rows);
                let least = read::<i64>(&run(Fold::Reduce(Reduction::MinI64), &integers), rows);
                let sums = read::<f64>(&run(Fold::Reduce(Reduction::SumF64), &float_values), rows);
                let squares = read::<f64>(&run(Fold::Deviations, &float_values), rows);
                // Deviations of many rows take the host long.
                let looked_at = (0..rows).filter(|row| rows < 3000 || row % 97 == 0);
                for row in looked_at {
                    let range = match toward {
                        Toward::Last => partition[row].0..row + 1,
                        Toward::First => row..partition[row].1,
                    };
                    let taken: Vec<usize> = range.filter(|&at| valid[at] != 0).collect();
                    let exact: i128 = taken.iter().map(|&at| i128::from(values[at])).sum();
                    assert_eq!(
                        (wide[row], counts[row]),
                        (exact, taken.len() as i64),
                        "row {row} of {rows}"
                    );
                    assert_eq!(
                        least[row],
                        taken.iter().map(|&at| values[at]).min().unwrap_or(i64::MAX)
                    );
                    let scale: f64 = taken.iter().map(|&at| floats[at].abs()).sum();
                    let sum: f64 = taken.iter().map(|&at| floats[at]).sum();
                    assert!((sums[row] - sum).abs() <= 1e-12 * scale, "{} for {sum}", sums[row]);
                    let mean = sum / taken.len().max(1) as f64;
                    let expected: f64 = taken.iter().map(|&at| (floats[at] - mean).powi(2)).sum();
                    assert!(
                        (squares[row] - expected).abs() <= 1e-9 * expected,
                        "{} for {expected}",
                        squares[row]
                    );
                }
            }
        }
    }
}

#[test]
fn frames_may_be_any_positions() {
    for device in devices() {
        for rows in [1, 15, 16, 17, 255, 256, 257, 4096, 5000] {
            let values: Vec<i64> = random(5, rows).map(|x| x as i64 >> 8).collect();
            let floats: Vec<f64> = values.iter().map(|&x| x as f64 / 1e10).collect();
            let valid: Vec<u8> = random(6, rows).map(|x| (x % 4 != 0) as u8).collect();
            let mut frames: Vec<(u32, u32)> = (random(7, rows).zip(random(8, rows)))
                .map(|(a, b)| {
                    let low = a % rows as u64;
                    // Short ones, long ones, and empty ones.
                    let most =
                        if b % 3 == 0 { 20.min(rows as u64 - low) } else { rows as u64 - low };
                    (low as u32, (low + (b >> 8) % (most + 1)) as u32)
                })
                .collect();
            frames[0] = (0, rows as u32);
            let low = upload(&device, &frames.iter().map(|f| f.0).collect::<Vec<_>>());
            let high = upload(&device, &frames.iter().map(|f| f.1).collect::<Vec<_>>());
            let (integers, float_values) = (upload(&device, &values), upload(&device, &floats));
            let valid_buffer = upload(&device, &valid);
            let over = |fold, values| {
                over_frames(&device, fold, values, Some(&valid_buffer), [&low, &high], rows as u64)
                    .unwrap()
            };
            let greatest = read::<i64>(&over(Fold::Reduce(Reduction::MaxI64), &integers), rows);
            let counts = read::<i64>(&over(Fold::Reduce(Reduction::Count), &integers), rows);
            let sums = read::<f64>(&over(Fold::Reduce(Reduction::SumF64), &float_values), rows);
            let points: Vec<f64> = (0..rows).flat_map(|at| [floats[at], (at % 7) as f64]).collect();
            let products = read::<f64>(&over(Fold::Products, &upload(&device, &points)), rows * 6);
            for (row, &(low, high)) in frames.iter().enumerate() {
                let taken: Vec<usize> =
                    (low as usize..high as usize).filter(|&at| valid[at] != 0).collect();
                assert_eq!(counts[row], taken.len() as i64, "row {row} of {rows}");
                if let Some(expected) = taken.iter().map(|&at| values[at]).max() {
                    assert_eq!(greatest[row], expected);
                }
                let scale: f64 = taken.iter().map(|&at| floats[at].abs()).sum();
                let sum: f64 = taken.iter().map(|&at| floats[at]).sum();
                assert!((sums[row] - sum).abs() <= 1e-12 * scale, "{} for {sum}", sums[row]);
                let count = taken.len().max(1) as f64;
                let means = [0, 1]
                    .map(|axis| taken.iter().map(|&at| points[2 * at + axis]).sum::<f64>() / count);
                // Products of many rows take the host long.
                let expected = [(0, 0), (0, 1), (1, 1)].map(|(a, b)| {
                    let product = |&at: &usize| {
                        (points[2 * at + a] - means[a]) * (points[2 * at + b] - means[b])
                    };
                    if row % 13 == 0 { taken.iter().map(product).sum::<f64>() } else { 0.0 }
                });
                let found = &products[6 * row..6 * row + 6];
                assert_eq!(found[0], taken.len() as f64, "row {row} of {rows}");
                let close = |found: f64, expected: f64, scale: f64| {
                    (found - expected).abs() <= 1e-9 * (1.0 + scale)
                };
                assert!(
                    close(found[1], means[0], scale) && close(found[2], means[1], 7.0),
                    "{found:?}: {means:?}"
                );
                let scales = [found[3], (found[3] * found[5]).sqrt(), found[5]];
                let agree = (0..3).all(|at| close(found[3 + at], expected[at], scales[at]));
                assert!(row % 13 != 0 || agree, "{found:?}: {expected:?}");
            }
        }
    }
}

#[test]
fn float_sums_of_windows_do_not_depend_on_the_schedule() {
    let rows = 40_000;
    let values: Vec<f64> = random(3, rows).map(|x| (x as f64 / 1e19).powi(9) - 1e-3).collect();
    let runs: Vec<[Vec<u64>; 2]> = devices()
        .iter()
        .map(|device| {
            let BoundsSample { bounds, .. } = sample(device, &[10_000, 29_000, 1000]);
            let values = upload(device, &values);
            let fold = Fold::Reduce(Reduction::SumF64);
            let low = upload(
                device,
                &(0..rows as u32).map(|row| row.saturating_sub(700)).collect::<Vec<_>>(),
            );
            let high = upload(device, &(0..rows as u32).map(|row| row + 1).collect::<Vec<_>>());
            let running = running(device, fold, Toward::Last, &values, None, &bounds).unwrap();
            let frames =
                over_frames(device, fold, &values, None, [&low, &high], rows as u64).unwrap();
            [read(&running, rows), read(&frames, rows)]
        })
        .collect();
    assert!(runs.windows(2).all(|w| w[0] == w[1]));
}

#[test]
fn bounds_by_value_are_where_the_first_key_is_beyond() {
    let device = device(5);
    // Nulls, then 1 4 4 6 250, in one partition; then 2 3 in another.
    let keys = [0i64, 0, 1, 4, 4, 6, 250, 2, 3];
    let valid = [0u8, 0, 1, 1, 1, 1, 1, 1, 1];
    let words: Vec<u64> = keys.iter().map(|&k| k as u64).collect();
    let (partition, words) =
        (upload(&device, &[0u64, 0, 0, 0, 0, 0, 0, 1, 1]), upload(&device, &words));
    let words = [WindowWord { keys: &partition, below: 0 }, WindowWord { keys: &words, below: 64 }];
    let bounds = bounds(&device, &words, None, Ties::Peers, 9).unwrap();
    let (key_buffer, valid) = (upload(&device, &keys), upload(&device, &valid));
    let bound = RangeBound {
        keys: RangeKeys::I64,
        start: true,
        preceding: true,
        descending: false,
        nulls_first: true,
        distance: Distance::Step { step: 3, limits: (0, 255) },
    };
    let find = |bound: RangeBound| {
        read::<u32>(&range_bound(&device, &bound, &key_buffer, Some(&valid), &bounds).unwrap(), 9)
    };
    let far = Distance::Step { step: 5, limits: (0, 255) };
    // Below 0 there is nothing: the frame begins with the first value, and ends before it.
    assert_eq!(find(bound), [0, 0, 2, 2, 2, 3, 6, 7, 7]);
    assert_eq!(find(RangeBound { start: false, ..bound }), [2, 2, 2, 3, 3, 3, 6, 7, 7]);
    assert_eq!(
        find(RangeBound { start: false, preceding: false, ..bound }),
        [2, 2, 5, 6, 6, 6, 7, 9, 9]
    );
    assert_eq!(
        find(RangeBound { preceding: false, distance: far, ..bound }),
        [0, 0, 5, 6, 6, 6, 7, 9, 9]
    );
    let targets = upload(&device, &[0i64, 0, -2, 1, 1, 5, 6, 2, 2]);
    assert_eq!(
        find(RangeBound { distance: Distance::Targets(&targets), ..bound }),
        [0, 0, 2, 2, 2, 5, 5, 7, 7]
    );
}
