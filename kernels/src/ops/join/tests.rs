use std::collections::BTreeMap;

use super::*;
use crate::ops::testing::*;
use crate::{MemoryLimit, SimOptions};

/// Writes each probe's matches: one value of a unique table, or begin and end of a list.
const PROBE: &str = r#"
#include "join.cuh"
struct Probe {
    const wf::u64* slots;
    const wf::u32* starts;
    wf::u64 mask_or_domain;
    wf::u64 lists;
    const wf::u64* probes;
    wf::u64 n;
    wf::u64* begin;
    wf::u64* end;
    wf::u64 secret;
};
WF_KERNEL(probe, Probe) {
    using namespace wf;
    for (u64 at = u64(global_thread()); at < p.n; at += u64(global_threads())) {
        const u64 key = p.probes[at];
        u64 slot = key < p.mask_or_domain ? key : HASH_NONE;
        if (p.slots != nullptr) slot = pair_find(p.slots, p.mask_or_domain, key, p.secret);
        u64 begin = JOIN_NO_ROW, end = JOIN_NO_ROW;
        if (slot != HASH_NONE && p.lists != 0) {
            const u64 bounds = p.slots != nullptr ? pair_value(p.slots, slot) : 0;
            begin = p.slots != nullptr ? u32(bounds) : p.starts[2 * slot];
            end = p.slots != nullptr ? bounds >> 32 : p.starts[2 * slot + 1];
        } else if (slot != HASH_NONE) {
            begin = p.slots != nullptr ? pair_value(p.slots, slot) : p.starts != nullptr ? p.starts[slot] : slot;
        }
        p.begin[at] = begin;
        p.end[at] = end;
    }
}
"#;

/// Probes a table: for each probe the value of its key in a unique table, or the beginning of its
/// list; and the lists' ends.
fn probe(device: &Device, table: &JoinTable, probes: &Buffer, n: usize) -> (Buffer, Buffer) {
    let kernel = device.kernel(&KernelSource::new("probe", PROBE), "probe").unwrap();
    let (begin, end) = (device.alloc("test", n * 8).unwrap(), device.alloc("test", n * 8).unwrap());
    let null = Argument::from(0u64);
    let (slots, starts): (Argument, Argument) = match &table.slots {
        Slots::Hash(slots) => ((&**slots).into(), null),
        Slots::Direct(starts) => (null, (&**starts).into()),
        Slots::Ordered => (null, null),
    };
    let lists = u64::from(table.rows.is_some());
    let arguments: [Argument; 9] = [
        slots,
        starts,
        table.mask_or_domain.into(),
        lists.into(),
        probes.into(),
        (n as u64).into(),
        (&begin).into(),
        (&end).into(),
        table.secret.into(),
    ];
    // SAFETY: Probe: the table, n probes, two arrays of n, the table's secret.
    unsafe { device.launch(&kernel, grid(tiles(n as u64, 256), 256), &arguments).unwrap() };
    (begin, end)
}

/// The value of each probe in a table of unique keys.
pub(in crate::ops) fn probe_values(
    device: &Device,
    table: &JoinTable,
    probes: &Buffer,
    n: usize,
) -> Buffer {
    probe(device, table, probes, n).0
}

fn matches(device: &Device, table: &JoinTable, probes: &[u64]) -> Vec<Vec<u32>> {
    let n = probes.len();
    let (begin, end) = probe(device, table, &upload(device, probes), n);
    let begin = read::<u64>(&begin, n);
    match &table.rows {
        None => (begin.into_iter())
            .map(|row| if row == u64::from(u32::MAX) { vec![] } else { vec![row as u32] })
            .collect(),
        Some(rows) => {
            let rows = read::<u32>(rows, rows.len() / 4);
            let list = |(&b, e): (&u64, u64)| {
                rows.get(b as usize..e as usize).map_or(vec![], <[u32]>::to_vec)
            };
            begin.iter().zip(read::<u64>(&end, n)).map(list).collect()
        }
    }
}

fn build(
    device: &Device,
    keys: &[u64],
    valid: Option<&[u8]>,
    domain: Option<u64>,
    wanted: LookupKind,
) -> JoinTable {
    let buffer = upload(device, keys);
    let valid = valid.map(|v| upload(device, v));
    let keys = BuildKeys {
        keys: &buffer,
        valid: valid.as_ref(),
        rows: keys.len() as u64,
        domain,
        ordered_probes: 0,
        assumed: Assumed::default(),
    };
    JoinTable::build(device, keys, wanted, None).unwrap()
}

fn check(device: &Device, keys: &[u64], valid: Option<&[u8]>, domain: Option<u64>, direct: bool) {
    let rows = keys.len();
    let table = build(device, keys, valid, domain, LookupKind::Rows);
    let mut expected: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for (row, &key) in keys.iter().enumerate() {
        if valid.is_none_or(|v| v[row] != 0) {
            expected.entry(key).or_default().push(row as u32);
        }
    }
    assert_eq!(table.unique, expected.values().all(|rows| rows.len() == 1));
    assert_eq!(table.is_direct(), direct);
    let mut probes: Vec<u64> = keys.to_vec();
    probes.extend([0, 1, 77, u64::MAX, u64::MAX - 1, 1 << 40]);
    probes.extend(random(99, 100));
    let found = matches(device, &table, &probes);
    for (probe, found) in probes.iter().zip(found) {
        assert_eq!(&found, expected.get(probe).unwrap_or(&vec![]), "key {probe} of {rows} rows");
    }
}

#[test]
fn join_finds_unique_scattered_keys_at_every_size() {
    for device in devices() {
        for rows in [0, 1, 31, 32, 33, 1023, 1024, 1025, 20_000] {
            let keys: Vec<u64> = random(rows as u64, rows).collect();
            check(&device, &keys, None, None, false);
        }
    }
}

#[test]
fn join_finds_the_key_that_means_empty() {
    for device in devices() {
        check(&device, &[u64::MAX], None, None, false);
        check(&device, &[3, u64::MAX, 5], None, None, false);
        check(&device, &[u64::MAX, 3, u64::MAX, 5, u64::MAX], None, None, false);
    }
}

#[test]
fn join_lists_repeated_keys_in_row_order() {
    for device in devices() {
        let rows = 12_000;
        check(
            &device,
            &random(1, rows).map(|x| hash(x % 700)).collect::<Vec<_>>(),
            None,
            None,
            false,
        );
        let giant: Vec<u64> =
            random(2, rows).map(|x| if x % 10 == 0 { hash(x) } else { 42 }).collect();
        check(&device, &giant, None, None, false);
        check(&device, &vec![7; rows], None, None, false);
    }
}

#[test]
fn join_uses_a_direct_table_in_a_dense_domain() {
    for device in devices() {
        let rows = 9000;
        check(&device, &(0..rows as u64).rev().collect::<Vec<_>>(), None, Some(rows as u64), true);
        check(
            &device,
            &random(4, rows).map(|x| x % 5000).collect::<Vec<_>>(),
            None,
            Some(5000),
            true,
        );
        check(&device, &[], None, Some(0), true);
        check(&device, &[5, 9], None, Some(1 << 40), false);
    }
}

#[test]
fn join_needs_no_table_for_keys_that_are_row_numbers() {
    for device in devices() {
        let keys: Vec<u64> = (0..3000).collect();
        check(&device, &keys, None, Some(3000), true);
        assert!(matches!(
            build(&device, &keys, None, Some(3000), LookupKind::Rows).slots,
            Slots::Ordered
        ));
        // One more key than rows, or a row left out, and they are not.
        assert!(matches!(
            build(&device, &keys, None, Some(3001), LookupKind::Rows).slots,
            Slots::Direct(_)
        ));
        let mut valid = vec![1; 3000];
        valid[17] = 0;
        check(&device, &keys, Some(&valid), Some(3000), true);
    }
}

#[test]
fn join_carries_payloads_in_slots() {
    for device in devices() {
        let keys: Vec<u64> = (0..5000).map(hash).collect();
        let (wide, narrow): (Vec<u64>, Vec<u32>) =
            (0..5000u64).map(|at| (hash(at + 7), at as u32 * 3)).unzip();
        let buffer = upload(&device, &keys);
        let (wide_buffer, narrow_buffer) = (upload(&device, &wide), upload(&device, &narrow));
        for width in [4, 8] {
            let values = if width == 8 { wide_buffer.slice(0) } else { narrow_buffer.slice(0) };
            let build = BuildKeys {
                keys: &buffer,
                valid: None,
                rows: 5000,
                domain: None,
                ordered_probes: 0,
                assumed: Assumed::default(),
            };
            let payload = Some(Payload { values, width });
            let table = JoinTable::build(&device, build, LookupKind::Rows, payload).unwrap();
            assert_eq!(table.payload, Some(width));
            let found = read::<u64>(&probe_values(&device, &table, &buffer, 5000), 5000);
            let expected =
                (0..5000).map(|at| if width == 8 { wide[at] } else { u64::from(narrow[at]) });
            assert!(found.into_iter().eq(expected));
            let repeated = upload(&device, &[5u64, 9, 5]);
            let build = BuildKeys {
                keys: &repeated,
                valid: None,
                rows: 3,
                domain: None,
                ordered_probes: 0,
                assumed: Assumed::default(),
            };
            assert_eq!(
                JoinTable::build(&device, build, LookupKind::Rows, payload).unwrap().payload,
                None
            );
        }
    }
}

#[test]
fn probes_in_order_allow_a_direct_table_of_few_rows() {
    for device in devices() {
        let from = device.of_kind(DIRECT_IN_ORDER_FROM, DIRECT_IN_ORDER_ON_SIMULATOR);
        let domain = 1 << 30;
        assert!(is_direct(&device, domain, from, domain));
        assert!(!is_direct(&device, domain, from, domain - 1));
        assert!(!is_direct(&device, domain, from - 1, domain));
        assert!(!is_direct(&device, 1 << 31, from, 1 << 40));
    }
    let domain = DIRECT_ALWAYS * 2;
    let keys: Vec<u64> = random(11, 1000).map(|x| x % domain).collect();
    let probes: Vec<u64> = keys.iter().flat_map(|key| [*key, (key + 1) % domain]).collect();
    let small = Device::sim(SimOptions::with_seed(4), MemoryLimit::Bytes(4 << 20)).unwrap();
    // The last device has no memory for a slot for each key.
    for (device, ordered_probes, direct) in [
        (device(3), domain, true),
        (device(3), domain - 1, false),
        (device(3), 0, false),
        (small, domain, false),
    ] {
        let buffer = upload(&device, &keys);
        let build = BuildKeys {
            keys: &buffer,
            valid: None,
            rows: 1000,
            domain: Some(domain),
            ordered_probes,
            assumed: Assumed::default(),
        };
        let table = JoinTable::build(&device, build, LookupKind::Rows, None).unwrap();
        assert_eq!(table.is_direct(), direct);
        assert_eq!(table.present.is_some(), !direct);
        if let Some(present) = &table.present {
            let bits = read::<u32>(&present.bits, domain.div_ceil(32) as usize);
            let is_set = |key: u64| bits[key as usize / 32] >> (key % 32) & 1 == 1;
            assert!(keys.iter().all(|key| is_set(*key)));
            let mut different = keys.clone();
            different.sort_unstable();
            different.dedup();
            let set: u32 = bits.iter().map(|bits| bits.count_ones()).sum();
            assert_eq!(set as usize, different.len());
        }
        for (probe, found) in probes.iter().zip(matches(&device, &table, &probes)) {
            let expected = (0..1000).filter(|row| keys[*row as usize] == *probe);
            assert!(found.into_iter().eq(expected), "key {probe}");
        }
    }
}

#[test]
fn join_leaves_invalid_rows_out() {
    let device = device(3);
    let keys: Vec<u64> = random(6, 4000).map(|x| x % 300).collect();
    let valid: Vec<u8> = random(7, 4000).map(|x| (x % 3 != 0) as u8).collect();
    check(&device, &keys, Some(&valid), None, false);
    check(&device, &keys, Some(&valid), Some(300), true);
    check(&device, &keys, Some(&vec![0; 4000]), None, false);
    // Keys of rows that take no part may lie outside the domain.
    let outside: Vec<u64> =
        keys.iter().zip(&valid).map(|(&k, &v)| if v == 0 { u64::MAX - k } else { k }).collect();
    check(&device, &outside, Some(&valid), Some(300), true);
}

#[test]
fn join_knows_some_row_of_a_repeated_key() {
    for device in devices() {
        for domain in [None, Some(300)] {
            let keys: Vec<u64> = random(8, 4000).map(|x| x % 300 / 2 * 2).collect();
            let table = build(&device, &keys, None, domain, LookupKind::Existence);
            assert!(table.rows.is_none() && !table.unique && table.is_direct() == domain.is_some());
            let probes: Vec<u64> = (0..400).collect();
            for (probe, found) in probes.iter().zip(matches(&device, &table, &probes)) {
                assert_eq!(found.len() == 1, probe % 2 == 0 && *probe < 300, "key {probe}");
                assert!(found.iter().all(|row| keys[*row as usize] == *probe));
            }
        }
    }
}

#[test]
fn join_survives_a_domain_that_does_not_hold() {
    check(&device(0), &[1, 2, 3000], None, Some(100), false);
    let many: Vec<u64> = (0..200).map(|key| key * 50).collect();
    check(&device(0), &many, None, Some(100), false);
    let table = build(&device(0), &many, None, Some(100), LookupKind::Rows);
    assert!(table.present.is_none(), "there are keys that have no bit");
}

#[test]
fn expand_repeats_rows_by_their_counts_with_their_candidates() {
    for device in devices() {
        let shapes: [Vec<u64>; 8] = [
            vec![],
            vec![0; 100],
            vec![1; 5000],
            random(1, 5000).map(|x| x % 4).collect(),
            (0..3000).map(|row| if row == 1500 { 10_000 } else { 0 }).collect(),
            (0..3000).map(|row| if row % 500 == 0 { 2047 } else { (row % 2) as u64 }).collect(),
            // More rows than a tile looks at, between its first and its last.
            (0..40_000).map(|row| u64::from(row == 3 || row == 39_990)).collect(),
            (0..40_000).map(|row| if row % 9000 == 17 { 700 } else { 0 }).collect(),
        ];
        for counts in shapes {
            let mut offsets = vec![0u64];
            counts.iter().for_each(|c| offsets.push(offsets.last().unwrap() + c));
            let total = *offsets.last().unwrap();
            let found =
                expand(&device, &upload(&device, &offsets), counts.len() as u64, total).unwrap();
            let expected: Vec<u32> = counts
                .iter()
                .zip(0u32..)
                .flat_map(|(&c, row)| std::iter::repeat_n(row, c as usize))
                .collect();
            assert_eq!(read::<u32>(&found, total as usize), expected);

            // Lists lie the other way round, some rows' candidate is none.
            let begins: Vec<u32> = (offsets.iter().zip(&counts))
                .map(
                    |(at, &count)| {
                        if count == 1 { NONE } else { total as u32 - *at as u32 - count as u32 }
                    },
                )
                .collect();
            let by_place: Vec<u32> = (0..total as u32).map(|place| place * 3).collect();
            for (by_place, times) in [(Some(upload(&device, &by_place)), 3), (None, 1)] {
                let begins_there = upload(&device, &begins);
                let lists =
                    CandidateLists { begins: begins_there.slice(0), rows: by_place.as_ref() };
                let n = counts.len() as u64;
                let (rows, candidates) =
                    expand_pairs(&device, &upload(&device, &offsets), lists, n, total).unwrap();
                assert_eq!(read::<u32>(&rows, total as usize), expected);
                let expected: Vec<u32> = (expected.iter().enumerate())
                    .map(|(at, &row)| match begins[row as usize] {
                        NONE => NONE,
                        begin => (begin + at as u32 - offsets[row as usize] as u32) * times,
                    })
                    .collect();
                assert_eq!(read::<u32>(&candidates, total as usize), expected);
            }
        }
    }
}

/// No candidate.
const NONE: u32 = u32::MAX;

/// Scatters small numbers over all 64 bits.
fn hash(x: u64) -> u64 {
    random(x, 1).next().unwrap()
}
