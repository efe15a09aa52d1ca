use super::*;
use crate::ops::sort::argsort;
use crate::ops::testing::*;

/// Segment lengths that add up to a number of rows, in shapes that meet tile boundaries (2048 rows)
/// everywhere.
fn shapes() -> Vec<Vec<u32>> {
    vec![
        vec![1],
        vec![31, 1],
        vec![1; 4097],
        vec![2048],
        vec![2047, 2, 2047, 2048, 1],
        vec![4096, 2048, 1, 6143],
        vec![1, 20_000, 3],
        random(1, 3000).map(|x| 1 + (x % 7) as u32).collect(),
        random(2, 60).map(|x| 1 + (x % 900) as u32).collect(),
    ]
}

fn offsets_of(lengths: &[u32]) -> Vec<u32> {
    let mut offsets = vec![0];
    lengths.iter().for_each(|l| offsets.push(offsets.last().unwrap() + l));
    offsets
}

fn of_lengths(device: &Device, lengths: &[u32]) -> (Segments, Vec<u32>) {
    let offsets = offsets_of(lengths);
    let rows = u64::from(*offsets.last().unwrap());
    let segments =
        Segments::new(device, upload(device, &offsets), lengths.len() as u64, rows).unwrap();
    (segments, offsets)
}

#[test]
fn segments_are_the_runs_of_equal_keys() {
    for device in devices() {
        for lengths in shapes() {
            let offsets = offsets_of(&lengths);
            let rows = *offsets.last().unwrap() as usize;
            // Keys of two words; the rows lie scattered, their keys ascend with the segment.
            let segment_at: Vec<u64> = lengths
                .iter()
                .zip(0u64..)
                .flat_map(|(&l, s)| std::iter::repeat_n(s, l as usize))
                .collect();
            let scattered: Vec<usize> = scatter(rows);
            let (mut high, mut low) = (vec![0; rows], vec![0; rows]);
            for (position, &row) in scattered.iter().enumerate() {
                (high[row], low[row]) = (segment_at[position] / 3, segment_at[position] % 3);
            }
            let (high, low) = (upload(&device, &high), upload(&device, &low));
            let words = [SortWord { keys: &high, bits: 40 }, SortWord { keys: &low, bits: 2 }];
            let order = argsort(&device, &words, rows as u64).unwrap();
            let found = segments(&device, &words, &order, rows as u64).unwrap();
            assert_eq!(found.count, lengths.len() as u64);
            assert_eq!(read::<u32>(&found.offsets, lengths.len() + 1), offsets);
        }
    }
}

#[test]
fn segments_of_nothing_and_of_no_words() {
    let device = device(0);
    let empty = segments(&device, &[], &upload::<u32>(&device, &[]), 0).unwrap();
    assert_eq!((empty.count, read::<u32>(&empty.offsets, 1)), (0, vec![0]));
    let results = segmented_reduce(
        &device,
        Reduction::SumF64,
        &upload::<f64>(&device, &[]),
        None,
        None,
        &empty,
    );
    assert_eq!(results.unwrap().len(), 0);
    let order: Vec<u32> = (0..5000).collect();
    let one = segments(&device, &[], &upload(&device, &order), 5000).unwrap();
    assert_eq!((one.count, read::<u32>(&one.offsets, 2)), (1, vec![0, 5000]));
}

#[test]
fn segmented_sums_and_counts_skip_invalid_rows() {
    for device in devices() {
        for lengths in shapes() {
            let (segments, offsets) = of_lengths(&device, &lengths);
            let rows = segments.rows as usize;
            let order = scatter(rows);
            let values: Vec<i64> = random(5, rows).map(|x| x as i64).collect();
            let floats: Vec<f64> = values.iter().map(|&x| x as f64 / 1e10).collect();
            let valid: Vec<u8> = random(6, rows).map(|x| (x % 4 != 0) as u8).collect();
            let order_buffer =
                upload(&device, &order.iter().map(|&row| row as u32).collect::<Vec<_>>());
            let valid_buffer = upload(&device, &valid);
            let run = |kind, values: &Buffer| {
                segmented_reduce(
                    &device,
                    kind,
                    values,
                    Some(&valid_buffer),
                    Some(&order_buffer),
                    &segments,
                )
                .unwrap()
            };
            let (integers, floats_buffer) = (upload(&device, &values), upload(&device, &floats));
            let n = lengths.len();
            let sums = read::<i64>(&run(Reduction::SumI64, &integers), n);
            let wide = read::<i128>(&run(Reduction::SumI64Wide, &integers), n);
            let counts = read::<i64>(&run(Reduction::Count, &integers), n);
            let float_sums = read::<f64>(&run(Reduction::SumF64, &floats_buffer), n);
            for s in 0..n {
                let rows = order[offsets[s] as usize..offsets[s + 1] as usize]
                    .iter()
                    .filter(|&&row| valid[row] != 0);
                let exact: i128 = rows.clone().map(|&row| i128::from(values[row])).sum();
                assert_eq!(
                    wide[s],
                    exact,
                    "segment {s} of lengths {:?}",
                    &lengths[..lengths.len().min(9)]
                );
                assert_eq!(sums[s], exact as i64);
                assert_eq!(counts[s], rows.clone().count() as i64);
                let scale: f64 = rows.clone().map(|&row| floats[row].abs()).sum();
                let sum: f64 = rows.map(|&row| floats[row]).sum();
                assert!(
                    (float_sums[s] - sum).abs() <= 1e-12 * scale,
                    "{} for {sum}",
                    float_sums[s]
                );
            }
        }
    }
}

#[test]
fn segmented_extrema_of_every_type() {
    for device in devices() {
        for lengths in shapes() {
            let (segments, offsets) = of_lengths(&device, &lengths);
            let rows = segments.rows as usize;
            let values: Vec<i64> = random(8, rows).map(|x| x as i64).collect();
            let n = lengths.len();
            let buffer = upload(&device, &values);
            let run = |kind, values: &Buffer| {
                segmented_reduce(&device, kind, values, None, None, &segments).unwrap()
            };
            let each = |s: usize| &values[offsets[s] as usize..offsets[s + 1] as usize];
            let expected =
                |f: &dyn Fn(&[i64]) -> i64| (0..n).map(|s| f(each(s))).collect::<Vec<i64>>();
            assert_eq!(
                read::<i64>(&run(Reduction::MinI64, &buffer), n),
                expected(&|v| v.iter().copied().min().unwrap())
            );
            assert_eq!(
                read::<i64>(&run(Reduction::MaxI64, &buffer), n),
                expected(&|v| v.iter().copied().max().unwrap())
            );
            let unsigned = expected(&|v| v.iter().map(|&x| x as u64).min().unwrap() as i64);
            assert_eq!(read::<i64>(&run(Reduction::MinU64, &buffer), n), unsigned);
            let unsigned = expected(&|v| v.iter().map(|&x| x as u64).max().unwrap() as i64);
            assert_eq!(read::<i64>(&run(Reduction::MaxU64, &buffer), n), unsigned);

            let wide: Vec<i128> = values.iter().map(|&x| i128::from(x) << 50).collect();
            let buffer = upload(&device, &wide);
            let widened = |f: &dyn Fn(&[i64]) -> i64| {
                (0..n).map(|s| i128::from(f(each(s))) << 50).collect::<Vec<_>>()
            };
            let least = widened(&|v| v.iter().copied().min().unwrap());
            assert_eq!(read::<i128>(&run(Reduction::MinI128, &buffer), n), least);
            let greatest = widened(&|v| v.iter().copied().max().unwrap());
            assert_eq!(read::<i128>(&run(Reduction::MaxI128, &buffer), n), greatest);
            let sums: Vec<i128> =
                (0..n).map(|s| each(s).iter().map(|&x| i128::from(x) << 50).sum()).collect();
            assert_eq!(read::<i128>(&run(Reduction::SumI128, &buffer), n), sums);
        }
    }
}

#[test]
fn float_extrema_put_nan_last() {
    let device = device(4);
    let values =
        [f64::NAN, 1.5, -2.0, f64::NAN, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, -1e-300];
    let (segments, _) = of_lengths(&device, &[3, 2, 2, 2]);
    let buffer = upload(&device, &values);
    let run = |kind| {
        read::<f64>(&segmented_reduce(&device, kind, &buffer, None, None, &segments).unwrap(), 4)
    };
    let least = run(Reduction::MinF64);
    assert_eq!((least[0], least[2], least[3]), (-2.0, f64::NEG_INFINITY, -1e-300));
    assert!(least[1].is_nan());
    let greatest = run(Reduction::MaxF64);
    assert!(greatest[0].is_nan() && greatest[1].is_nan());
    assert_eq!((greatest[2], greatest[3]), (f64::INFINITY, 0.0));
}

#[test]
fn float_sums_are_the_same_bits_under_every_schedule() {
    let lengths = vec![5, 700_000, 4, 1]; // one segment of more tiles than a warp adds up alone
    let rows: usize = lengths.iter().map(|&l| l as usize).sum();
    let values: Vec<f64> = random(10, rows).map(|x| (x as f64 / 1e19).powi(11) - 1e-4).collect();
    let runs: Vec<Vec<u64>> = devices()
        .iter()
        .map(|device| {
            let (segments, _) = of_lengths(device, &lengths);
            let values = upload(device, &values);
            read(
                &segmented_reduce(device, Reduction::SumF64, &values, None, None, &segments)
                    .unwrap(),
                4,
            )
        })
        .collect();
    assert!(runs.windows(2).all(|w| w[0] == w[1]));
    let sum: f64 = values[5..700_005].iter().sum();
    assert!(
        (f64::from_bits(runs[0][1]) - sum).abs() < 1e-11 * sum,
        "{} for {sum}",
        f64::from_bits(runs[0][1])
    );
}

/// A permutation without pattern.
fn scatter(rows: usize) -> Vec<usize> {
    let keys: Vec<u64> = random(42, rows).collect();
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by_key(|&row| keys[row]);
    order
}

/// The keys of runs come along, also of tiles that have more of them than there is room for; and
/// what is reduced by the rows' bits has the same bits as by offsets.
#[test]
fn runs_of_a_column_are_its_segments() {
    let mixed = || {
        (0..3000)
            .map(|run| if (1000..2900).contains(&run) { 1 } else { 1 + run * 7919 % 37 })
            .collect()
    };
    for device in devices_of_its_own() {
        for lengths in shapes().into_iter().chain([mixed(), vec![5, 700_000, 4, 1]]) {
            let (by_offsets, offsets) = of_lengths(&device, &lengths);
            let rows = by_offsets.rows;
            let wide_keys: Vec<u64> =
                (0..lengths.len() as u64).map(|run| (run + 5) << 40 | (run + 5)).collect();
            let narrow_keys: Vec<u32> = wide_keys.iter().map(|&key| key as u32).collect();
            let wide: Vec<u64> = repeat(&wide_keys, &lengths);
            let narrow: Vec<u32> = repeat(&narrow_keys, &lengths);
            let (wide, of_wide) = runs(&device, upload(&device, &wide).slice(0), 8, rows).unwrap();
            let (narrow, of_narrow) =
                runs(&device, upload(&device, &narrow).slice(0), 4, rows).unwrap();
            assert!(
                read::<u64>(&of_wide, lengths.len()) == wide_keys
                    && read::<u32>(&of_narrow, lengths.len()) == narrow_keys
            );
            let values: Vec<f64> =
                random(9, rows as usize).map(|x| (x as f64 / 1e19).powi(11) - 1e-4).collect();
            let values = upload(&device, &values);
            for found in [wide, narrow] {
                assert_eq!(found.count, lengths.len() as u64);
                assert_eq!(read::<u32>(&found.offsets, lengths.len() + 1), offsets);
                for kind in [Reduction::SumF64, Reduction::MinF64, Reduction::MaxF64] {
                    let reduced = |segments: &Segments| {
                        let results =
                            segmented_reduce(&device, kind, &values, None, None, segments).unwrap();
                        read::<u64>(&results, lengths.len())
                    };
                    assert!(
                        reduced(&found) == reduced(&by_offsets),
                        "{kind:?} of {} runs",
                        lengths.len()
                    );
                }
            }
        }
        for kernel in [
            "segment_reduce_runs_sum_f64",
            "segment_reduce_runs_min_f64",
            "segment_reduce_runs_max_f64",
        ] {
            assert!(device.launches().contains_key(kernel), "{kernel}");
        }
        let keys = upload(&device, &[7u64, 7, 8, 8, 8]);
        let (found, of_runs) = runs(&device, keys.slice(8), 8, 4).unwrap();
        assert_eq!(
            (read::<u32>(&found.offsets, 3), read::<u64>(&of_runs, 2)),
            (vec![0, 1, 4], vec![7, 8])
        );
        assert_eq!(runs(&device, keys.slice(0), 8, 0).unwrap().0.count, 0);
    }
}

/// Each key as often as its run is long.
fn repeat<T: Copy>(keys: &[T], lengths: &[u32]) -> Vec<T> {
    keys.iter()
        .zip(lengths)
        .flat_map(|(&key, &length)| std::iter::repeat_n(key, length as usize))
        .collect()
}
