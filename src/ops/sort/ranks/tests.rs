use super::super::tests::{WAYS, expected_order};
use super::super::{SortWord, TUNED, argsort_tuned, sort_by_key};
use super::*;
use crate::ops::testing::*;

fn value(number: u64) -> u64 {
    random(200 + number, 1).next().unwrap()
}

/// How often rows were looked up among values.
fn found(device: &Device) -> u64 {
    let launches = device.launches();
    ["sort_ranks_find", "sort_ranks_tally"].iter().map(|kernel| launches.get(*kernel).copied().unwrap_or(0)).sum()
}

/// Keys of more values than are numbered; among them such that a sample misses, below, between and above.
#[test]
fn repeated_values_are_sorted_by_their_ranks() {
    for device in devices_of_its_own() {
        let rows = 70_000;
        let among = |seed, rare: u64, values: u64| {
            random(seed, rows).map(|x| if x >> 32 & 127 < rare { x } else { value(x % values) }).collect::<Vec<_>>()
        };
        let mut ends = among(3, 0, 1000);
        ends.iter_mut().step_by(40).for_each(|key| *key = u64::MAX);
        ends.iter_mut().skip(7).step_by(50).for_each(|key| *key = 0);
        // Where a sample misses some, not with further words.
        let shapes: [(&str, Vec<u64>, u64); 4] = [
            ("1000", among(1, 0, 1000), 2),
            ("1000, and 1% rare ones", among(2, 1, 1000), 1),
            ("least and greatest", ends, 2),
            ("1024", among(4, 0, 1024), 2),
        ];
        let more: Vec<u64> = random(7, rows).map(|x| x % 5).collect();
        let word = upload(&device, &more);
        for (name, keys, times) in shapes {
            let buffer = upload(&device, &keys);
            let order = expected_order(|row| keys[row as usize], rows);
            let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
            let before = found(&device);
            let sorted = argsort_tuned(&device, &key, &[], rows as u64, WAYS[1]).unwrap();
            assert!(read::<u32>(&sorted, rows) == order, "{name}");
            assert_eq!(found(&device), before + 1, "{name}");
            let words = [SortWord { keys: &word, bits: 3 }];
            let sorted = argsort_tuned(&device, &key, &words, rows as u64, WAYS[1]).unwrap();
            let expected = expected_order(|row| (keys[row as usize], more[row as usize]), rows);
            assert!(read::<u32>(&sorted, rows) == expected, "{name}, two words");
            assert_eq!(found(&device), before + times, "{name}, two words");
            let (sorted, _) = sort_by_key(&device, &key, None, rows as u64, WAYS[1]).unwrap();
            assert!(
                read::<u64>(&sorted, rows).iter().zip(&order).all(|(key, row)| *key == keys[*row as usize]),
                "{name}"
            );
        }
        let floats: Vec<f64> = random(9, rows).map(|x| f64::from_bits(value(x % 1000)) * 1e-5).collect();
        let halves: Vec<f32> = random(10, rows).map(|x| f32::from_bits(value(x % 1000) as u32)).collect();
        for descending in [false, true] {
            let turned = |order: std::cmp::Ordering| if descending { order.reverse() } else { order };
            let mut order: Vec<u32> = (0..rows as u32).collect();
            order.sort_by(|a, b| turned(canonical(floats[*a as usize]).total_cmp(&canonical(floats[*b as usize]))));
            let before = found(&device);
            let buffer = upload(&device, &floats);
            let key = SortKey::new(buffer.slice(0), KeyKind::F64, descending);
            let sorted = argsort_tuned(&device, &key, &[], rows as u64, WAYS[1]).unwrap();
            assert!(read::<u32>(&sorted, rows) == order, "{descending}");
            order.sort_unstable();
            let narrow = |row: u32| canonical(f64::from(halves[row as usize]));
            order.sort_by(|a, b| turned(narrow(*a).total_cmp(&narrow(*b))));
            let buffer = upload(&device, &halves);
            let key = SortKey::new(buffer.slice(0), KeyKind::F32, descending);
            let sorted = argsort_tuned(&device, &key, &[], rows as u64, WAYS[1]).unwrap();
            assert!(read::<u32>(&sorted, rows) == order, "{descending}, f32");
            assert_eq!(found(&device), before + 2);
        }
    }
}

/// As the engine sorts floats: all NaN are one.
fn canonical(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value }
}

/// Keys alone, by their ranks among these.
fn keys_by(device: &Device, key: &SortKey<'_>, rows: usize, values: &[u64]) -> Option<Buffer> {
    let list = upload(device, &shuffled(values));
    keys::keys_among(device, key, rows as u64, list, values.len() as u64, TUNED).unwrap()
}

/// Ranks among these.
fn ranks_by<'a>(device: &'a Device, key: &SortKey<'a>, rows: usize, values: &[u64]) -> Ranks<'a> {
    let list = upload(device, &shuffled(values));
    Ranks::among(device, key, rows as u64, list, values.len() as u64).unwrap()
}

/// In another order.
fn shuffled(values: &[u64]) -> Vec<u64> {
    let mut list = values.to_vec();
    list.sort_by_key(|value| value.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ value >> 7);
    list
}

/// Many different keys between two values: pairs, runs that are mended, runs that are sorted on their own, and too many.
#[test]
fn keys_between_two_values_are_put_in_order() {
    for device in devices() {
        let rows = 40_000;
        let values: Vec<u64> = (1..=1000).map(|number| number << 40).collect();
        for (seed, between, gap) in
            [(1, 0, 1), (2, 2000, 1000), (3, 2000, 100), (4, 3000, 4), (5, 4600, 1), (6, 20_000, 1)]
        {
            let number = |x: u64| 1 + (x >> 8) % 1000;
            let key = |x: u64| match x % rows as u64 {
                at if at < between => (((number(x) % gap) * 1000 / gap) << 40) | (x >> 30 & 0xFFFF) | 1,
                _ => number(x) << 40,
            };
            let keys: Vec<u64> = random(60 + seed, rows).map(key).collect();
            let buffer = upload(&device, &keys);
            let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
            let ranks = ranks_by(&device, &key, rows, &values);
            assert_eq!(ranks.key().is_some(), between == 0, "{between} in {gap}");
            let sorted = ranks.order(TUNED).unwrap();
            assert_eq!(sorted.is_some(), between < 20_000, "{between} in {gap}");
            let expected = expected_order(|row| keys[row as usize], rows);
            assert!(sorted.is_none_or(|sorted| read::<u32>(&sorted, rows) == expected), "{between} in {gap}");
            let sorted = keys_by(&device, &key, rows, &values);
            assert_eq!(sorted.is_some(), between == 0, "{between} in {gap}");
            let same = |found: Vec<u64>| found.iter().zip(&expected).all(|(key, row)| *key == keys[*row as usize]);
            assert!(sorted.is_none_or(|sorted| same(read(&sorted, rows))), "{between} in {gap}");
        }
        for kernel in ["sort_long_near", "sort_long_return"] {
            assert!(device.launches().contains_key(kernel), "{kernel}");
        }
        // A few values of many, one of them in more rows than a tile has; back to halves and floats.
        let halves: Vec<i32> = random(71, rows).map(|x| if x % 3 == 0 { -5 } else { (x >> 8) as i32 % 100 }).collect();
        let floats: Vec<f64> = random(72, rows).map(|x| (x % 2000) as f64 - 1e3).collect();
        for descending in [false, true] {
            let turned = |order: std::cmp::Ordering| if descending { order.reverse() } else { order };
            let mut values: Vec<u64> = (-100..100).map(|value: i32| u64::from(value as u32 ^ 1 << 31)).collect();
            if descending {
                values = values.iter().rev().map(|value| value ^ u64::from(u32::MAX)).collect();
            }
            let buffer = upload(&device, &halves);
            let key = SortKey::new(buffer.slice(0), KeyKind::I32, descending);
            let sorted = keys_by(&device, &key, rows, &values);
            let mut expected = halves.clone();
            expected.sort_by(|a, b| turned(a.cmp(b)));
            assert!(read::<i32>(&sorted.expect("known values"), rows) == expected, "{descending}");
            let bits = |value: i32| {
                let bits = f64::from(value).to_bits();
                let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
                if descending { !ordered } else { ordered }
            };
            let mut values: Vec<u64> = (-1000..1000).map(bits).collect();
            values.sort_unstable();
            let buffer = upload(&device, &floats);
            let key = SortKey::new(buffer.slice(0), KeyKind::F64, descending);
            let sorted = keys_by(&device, &key, rows, &values);
            let mut expected = floats.clone();
            expected.sort_by(|a, b| turned(a.total_cmp(b)));
            assert!(read::<f64>(&sorted.expect("known values"), rows) == expected, "{descending}");
        }
        assert!(device.launches().contains_key("sort_ranks_tally"));
    }
}

/// Of fewer rows than ranks are worth otherwise: by few values that are as frequent.
#[test]
fn few_rows_are_sorted_by_ranks_of_few_values() {
    for device in devices_of_its_own() {
        for (name, rows, values, rare, times) in
            [("few", 70_000, 500, 0, 1), ("some are rare", 70_000, 20, 3, 0), ("many", 70_000, 800, 0, 0)]
        {
            let key = |x: u64| if x >> 32 & 127 < rare { x } else { value(x % values) };
            let keys: Vec<u64> = random(5, rows).map(key).collect();
            let buffer = upload(&device, &keys);
            let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
            let tuning = Tuning { ranked_rows: rows as u64 / 2, ..WAYS[1] };
            let before = found(&device);
            let sorted = argsort_tuned(&device, &key, &[], rows as u64, tuning).unwrap();
            let expected = expected_order(|row| keys[row as usize], rows);
            assert!(read::<u32>(&sorted, rows) == expected, "{name}");
            assert_eq!(found(&device) - before, times, "{name}");
        }
    }
}

/// Values too many, and too even, to be numbered: the first sample tells by how many of them it has, and they are not looked at; of uneven ones they
/// are.
#[test]
fn even_values_are_ranked_without_a_look() {
    for device in devices_of_its_own() {
        let rows = 1_200_000;
        for frequent in [0, 25] {
            let key = |x: u64| if x >> 32 & 127 < frequent { value(9) } else { value(x % 5000) };
            let keys: Vec<u64> = random(7, rows).map(key).collect();
            let buffer = upload(&device, &keys);
            let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
            let looked = || device.launches().get("sort_numbers_list").copied().unwrap_or(0);
            let before = (looked(), found(&device));
            let tuning = Tuning { ranked_rows: rows as u64 / 8, ..WAYS[1] };
            let order = read::<u32>(&argsort_tuned(&device, &key, &[], rows as u64, tuning).unwrap(), rows);
            let (sorted, _) = sort_by_key(&device, &key, None, rows as u64, tuning).unwrap();
            assert!(order == expected_order(|row| keys[row as usize], rows), "{frequent}");
            let mut expected = keys;
            expected.sort_unstable();
            assert!(read::<u64>(&sorted, rows) == expected, "{frequent}");
            let times = if frequent == 0 { (0, 2) } else { (2, 0) };
            assert_eq!((looked() - before.0, found(&device) - before.1), times, "{frequent}");
        }
    }
}

/// Keys alone of fewer rows than pay otherwise, where values are few; not of fewer rows still. And not by the numbers of those values that the sample has
/// often, if it has others seldom.
#[test]
fn keys_of_few_rows_are_sorted_by_ranks_of_few_values() {
    for device in devices_of_its_own() {
        let rows = 400_000;
        for values in [400, 2500] {
            let keys: Vec<u64> = random(6, rows).map(|x| value(x % values)).collect();
            let mut expected = keys.clone();
            expected.sort_unstable();
            let buffer = upload(&device, &keys);
            let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
            let numbered = || device.launches().get("sort_numbers_count").copied().unwrap_or(0);
            for (ranked_rows, by_ranks, by_numbers) in
                [(rows as u64 / 2, 1, 0), (rows as u64 * 2, 0, u64::from(values == 400))]
            {
                let tuning = Tuning { ranked_rows, ..WAYS[1] };
                let before = (found(&device), numbered());
                let (sorted, _) = sort_by_key(&device, &key, None, rows as u64, tuning).unwrap();
                assert!(read::<u64>(&sorted, rows) == expected, "{values}, from {ranked_rows} rows on");
                let after = (before.0 + by_ranks, before.1 + by_numbers);
                assert_eq!((found(&device), numbered()), after, "{values}, from {ranked_rows} rows on");
            }
        }
    }
}

/// Values that are put in order by one chunk, by several, or as any keys; rows that are counted as they are looked up, or afterwards.
#[test]
fn values_are_put_in_order_by_chunks_or_sorted() {
    for device in devices_of_its_own() {
        let rows = 40_000;
        for (count, order, keys_counted) in [
            (1, "sort_ranks_order", "sort_ranks_tally"),
            (1023, "sort_ranks_order", "sort_ranks_tally"),
            (1025, "sort_ranks_order", "sort_ranks_tally"),
            (32_768, "sort_ranks_order", "sort_ranks_tally"),
            (32_769, "sort_ranks_order", "sort_ranks_count"),
            (65_536, "sort_ranks_order", "sort_ranks_count"),
            (65_537, "sort_ranks_put", "sort_ranks_count"),
        ] {
            let mut values: Vec<u64> = (0..count).map(|number| random(number, 1).next().unwrap()).collect();
            // What pads a chunk, and marks a free slot of a table.
            values[0] = u64::MAX;
            let keys: Vec<u64> = random(77, rows).map(|x| values[(x % count) as usize]).collect();
            let buffer = upload(&device, &keys);
            let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
            let launched = |kernel: &str| device.launches().get(kernel).copied().unwrap_or(0);
            let before = (launched(order), launched(keys_counted));
            let ranks = ranks_by(&device, &key, rows, &values).order(TUNED).unwrap();
            let expected = expected_order(|row| keys[row as usize], rows);
            assert!(read::<u32>(&ranks.expect("known values"), rows) == expected, "{count}");
            let sorted = read::<u64>(&keys_by(&device, &key, rows, &values).expect("known values"), rows);
            assert!(sorted.iter().zip(&expected).all(|(key, row)| *key == keys[*row as usize]), "{count}");
            assert_eq!((launched(order), launched(keys_counted)), (before.0 + 2, before.1 + 1), "{count}");
        }
    }
}

/// More rows of a value than a block's counts hold: blocks take fewer.
#[test]
fn no_block_counts_more_rows_than_its_counts_hold() {
    for device in devices_of_its_own() {
        let rows = 1_300_000;
        let keys: Vec<u64> = random(78, rows).map(|x| if x % 1000 == 0 { 9 } else { 5 }).collect();
        let buffer = upload(&device, &keys);
        let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
        let sorted = read::<u64>(&keys_by(&device, &key, rows, &[5, 9]).expect("known values"), rows);
        let mut expected = keys;
        expected.sort_unstable();
        assert!(sorted == expected);
    }
}
