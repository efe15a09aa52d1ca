//! Keys of frequent values among rare ones, and of random mixtures.

use super::*;

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
