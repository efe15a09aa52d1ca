//! Operators at sizes that only a GPU takes: many tiles in flight at once, and races that need
//! them. Each is run several times, since a wrong hash table can pass once. Prints device times
//! (`--nocapture`); `WARPFRAME_TEST_ROWS` sets the rows (10 million where unset).

use super::gather::gather;
use super::join::tests::probe_values;
use super::join::{Assumed, BuildKeys, JoinTable, LookupKind, Slots, expand};
use super::reduce::{Reduction, reduce};
use super::scan::{exclusive_scan_u32, inclusive_sum_f64};
use super::segment::{segmented_reduce, segments};
use super::sort::{KeyKind, SortKey, SortWord, argsort, sort_pairs, sort_values};
use super::survey::{Measured, Scalar, Surveyed, survey};
use super::testing::*;
use super::top::top_k;
use crate::{Buffer, Device};

const RUNS: usize = 5;

fn rows() -> usize {
    crate::environment::text("WARPFRAME_TEST_ROWS")
        .map_or(10_000_000, |rows| rows.parse().expect("a number of rows"))
}

/// The results of several runs, the median of whose device times is printed.
fn timed<T>(device: &Device, what: &str, run: impl Fn() -> T) -> Vec<T> {
    let mut times = Vec::new();
    let results = (0..RUNS).map(|_| {
        let before = device.record().unwrap();
        let result = run();
        times.push(device.record().unwrap().since(&before).unwrap());
        result
    });
    let results = results.collect();
    times.sort_by(f32::total_cmp);
    eprintln!("{:>9.3} ms  {what}, {} rows", times[RUNS / 2], rows());
    results
}

fn scattered(x: u64) -> u64 {
    random(x, 1).next().unwrap()
}

/// Strictly ascending by (key, row): sorted, stable, and no row twice.
fn assert_sorted(order: &[u32], key: impl Fn(u32) -> u64) {
    for pair in order.windows(2) {
        assert!((key(pair[0]), pair[0]) < (key(pair[1]), pair[1]), "rows {pair:?}");
    }
}

#[test]
fn sorts_of_many_rows() {
    let Some(device) = gpu() else { return };
    let n = rows();
    let shapes: [(&str, u32, Vec<u64>); 5] = [
        ("64 random bits", 64, random(1, n).collect()),
        ("1000 values", 10, random(2, n).map(|x| x % 1000).collect()),
        ("37 bits", 37, random(3, n).map(|x| x >> 27).collect()),
        ("90 % one key", 64, random(4, n).map(|x| if x % 10 == 0 { x } else { 1 << 33 }).collect()),
        ("presorted", 64, (0..n as u64).map(|x| x << 20).collect()),
    ];
    for (name, bits, keys) in &shapes {
        let buffer = upload(&device, keys);
        let word = [SortWord { keys: &buffer, bits: *bits }];
        for order in timed(&device, &format!("argsort, {name}"), || {
            argsort(&device, &word, n as u64).unwrap()
        }) {
            assert_sorted(&read::<u32>(&order, n), |row| keys[row as usize]);
        }
        let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
        let mut expected = keys.clone();
        expected.sort_unstable();
        for sorted in timed(&device, &format!("sort u64, {name}"), || {
            sort_values(&device, &key, n as u64).unwrap()
        }) {
            assert!(read::<u64>(&sorted, n) == expected, "{name}");
        }
        for top in timed(&device, &format!("top 100, {name}"), || {
            top_k(&device, &word[0].into(), &[], n as u64, 100).unwrap()
        }) {
            let found: Vec<u64> =
                read::<u32>(&top, 100).iter().map(|&row| keys[row as usize]).collect();
            assert_eq!(found, expected[..100], "{name}");
        }
    }
    let keys = &shapes[0].2;
    let (buffer, payload) = (upload(&device, keys), upload(&device, keys));
    let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
    let what = "sort u64 with a payload of 8 bytes";
    for (k, v) in
        timed(&device, what, || sort_pairs(&device, &key, payload.slice(0), 8, n as u64).unwrap())
    {
        let (k, v) = (read::<u64>(&k, n), read::<u64>(&v, n));
        assert!(k == v && k.is_sorted());
    }
    let narrow: Vec<u32> = keys.iter().map(|&x| x as u32).collect();
    let buffer = upload(&device, &narrow);
    let key = SortKey::new(buffer.slice(0), KeyKind::U32, false);
    for sorted in timed(&device, "sort u32", || sort_values(&device, &key, n as u64).unwrap()) {
        assert!(read::<u32>(&sorted, n).is_sorted());
    }
}

#[test]
fn joins_of_many_rows() {
    let Some(device) = gpu() else { return };
    let n = rows();
    let build = |what: &str, keys: &[u64], domain: Option<u64>| -> Vec<JoinTable> {
        let buffer = upload(&device, keys);
        let keys = BuildKeys {
            keys: &buffer,
            valid: None,
            rows: n as u64,
            domain,
            ordered_probes: 0,
            assumed: Assumed::default(),
        };
        timed(&device, what, || JoinTable::build(&device, keys, LookupKind::Rows, None).unwrap())
    };
    let unique: Vec<u64> = (0..n as u64).map(scattered).collect();
    for table in build("join build, scattered unique keys", &unique, None) {
        assert!(table.unique);
        let found = probe_values(&device, &table, &upload(&device, &unique), n);
        assert!(
            read::<u64>(&found, n).iter().enumerate().all(|(row, &found)| row == found as usize)
        );
    }
    let dense: Vec<u64> = (0..n as u64).rev().collect();
    for table in build("join build, dense unique keys", &dense, Some(n as u64)) {
        assert!(table.unique && table.is_direct());
        let found = probe_values(&device, &table, &upload(&device, &dense), n);
        assert!(
            read::<u64>(&found, n).iter().enumerate().all(|(row, &found)| row == found as usize)
        );
    }
    // A tenth of the rows has one key, the others 1000 keys.
    let repeated: Vec<u64> =
        random(9, n).map(|x| scattered(if x % 10 == 0 { 0 } else { x % 1000 })).collect();
    for table in build("join build, repeated keys", &repeated, None) {
        assert!(!table.unique);
        let listed = read::<u32>(table.rows.as_ref().unwrap(), n);
        let Slots::Hash(slots) = &table.slots else { panic!("{table:?}") };
        let words = read::<u32>(slots, slots.len() / 4);
        let mut total = 0;
        for bounds in
            words.chunks_exact(4).filter(|slot| slot[..2] != [u32::MAX; 2]).map(|slot| &slot[2..])
        {
            let rows = &listed[bounds[0] as usize..bounds[1] as usize];
            total += rows.len();
            assert!(
                rows.windows(2)
                    .all(|w| w[0] < w[1] && repeated[w[0] as usize] == repeated[w[1] as usize])
            );
        }
        assert_eq!(total, n);
    }
    let counts: Vec<u32> = random(4, n).map(|x| (x % 3) as u32).collect();
    let counts_buffer = upload(&device, &counts);
    let mut offsets = vec![0u64];
    counts.iter().for_each(|&c| offsets.push(offsets.last().unwrap() + u64::from(c)));
    let total = offsets[n];
    for found in timed(&device, "exclusive scan", || {
        exclusive_scan_u32(&device, &counts_buffer, n as u64).unwrap()
    }) {
        assert!(read::<u64>(&found, n + 1) == offsets);
    }
    let offsets = upload(&device, &offsets);
    for found in timed(&device, "expand", || expand(&device, &offsets, n as u64, total).unwrap()) {
        let mut at = 0;
        let found = read::<u32>(&found, total as usize);
        for (row, &count) in counts.iter().enumerate() {
            assert!(found[at..at + count as usize].iter().all(|&f| f as usize == row));
            at += count as usize;
        }
    }
}

#[test]
fn reductions_of_many_rows() {
    let Some(device) = gpu() else { return };
    let n = rows();
    let values: Vec<f64> = random(6, n).map(|x| x as f64 / 1e19 - 0.3).collect();
    let floats = upload(&device, &values);
    let same = |buffers: Vec<Buffer>, count: usize| -> Vec<f64> {
        let runs: Vec<Vec<u64>> = buffers.iter().map(|b| read(b, count)).collect();
        assert!(runs.windows(2).all(|w| w[0] == w[1]), "the same bits in every run");
        runs[0].iter().map(|&bits| f64::from_bits(bits)).collect()
    };
    let close = |found: f64, exact: f64, scale: f64| {
        assert!((found - exact).abs() <= 1e-9 * scale, "{found} {exact}")
    };
    let whole: f64 = values.iter().sum();
    let run = || reduce(&device, Reduction::SumF64, &floats, None, n as u64).unwrap();
    close(same(timed(&device, "sum f64", run), 1)[0], whole, n as f64);
    let run = || inclusive_sum_f64(&device, floats.slice(0), n as u64).unwrap();
    close(same(timed(&device, "cumulative sum f64", run), n)[n - 1], whole, n as f64);

    for (groups, skewed) in [(10, false), (1000, true), (n as u64 / 10, false)] {
        let keys: Vec<u64> = random(groups, n)
            .map(|x| if skewed && x % 10 != 0 { 5 } else { (x >> 8) % groups })
            .collect();
        let mut expected = vec![0.0; groups as usize];
        keys.iter().zip(&values).for_each(|(&key, value)| expected[key as usize] += value);
        let mut present = vec![false; groups as usize];
        keys.iter().for_each(|&key| present[key as usize] = true);
        let keys = upload(&device, &keys);
        let words = [SortWord { keys: &keys, bits: 64 - groups.leading_zeros() }];
        let order = argsort(&device, &words, n as u64).unwrap();
        let what = format!("bounds of {groups} segments");
        let runs = timed(&device, &what, || segments(&device, &words, &order, n as u64).unwrap());
        let what = format!("segmented sum f64, {groups} segments");
        let sum = || {
            segmented_reduce(&device, Reduction::SumF64, &floats, None, Some(&order), &runs[0])
                .unwrap()
        };
        let sums = same(timed(&device, &what, sum), runs[0].count as usize);
        let expected: Vec<f64> =
            expected.into_iter().zip(present).filter(|(_, p)| *p).map(|(sum, _)| sum).collect();
        assert_eq!(sums.len(), expected.len());
        sums.iter().zip(expected).for_each(|(&found, exact)| close(found, exact, n as f64));
    }

    let run = || {
        let column = Surveyed {
            scalar: Scalar::F64,
            values: &floats,
            valid: None,
            offset: 0,
            rows: n as u64,
        };
        survey(&device, &[column]).unwrap()[0].values
    };
    let greatest = values.iter().fold(0.0, |a: f64, x| a.max(x.abs()));
    let found = |found: Option<Measured>| match found {
        Some(Measured::Floats { magnitude, .. }) => magnitude,
        other => panic!("{other:?}"),
    };
    assert!(timed(&device, "survey f64", run).into_iter().all(|of| found(of) == greatest));
}

#[test]
fn gathers_of_many_rows() {
    let Some(device) = gpu() else { return };
    let n = rows();
    let index: Vec<u32> = random(7, n).map(|x| (x % n as u64) as u32).collect();
    let values: Vec<u64> = random(8, n).collect();
    let (index_buffer, values_buffer) = (upload(&device, &index), upload(&device, &values));
    let run = || gather(&device, 8, values_buffer.slice(0), &index_buffer, n as u64).unwrap();
    for found in timed(&device, "gather 8 bytes at random", run) {
        let found = read::<u64>(&found, n);
        assert!(index.iter().zip(found).all(|(&at, found)| values[at as usize] == found));
    }
}
