//! Running sums: counts to offsets, and inclusive sums of values. Kernels in `kernels/scan.cuh`.
//!
//! Running sums of floats add in an order that positions alone decide, so that they have the same
//! bits in every run. The words of the look-back hold all there is to know of a tile. So they are
//! written and read relaxed: a release would wait for all that the thread wrote before.

use super::{grid, tiles};
use crate::error::Result;
use crate::{Argument, Buffer, Device, Grid, KernelSource, Slice};

const OPERATOR: &str = "scan";
/// `SCAN_TILE` and `SCAN_THREADS` of the kernels: counts to offsets.
const TILE: u64 = 4096;
const THREADS: u32 = 256;
/// `SUMS_TILE`, `SUMS_THREADS`, `SUMS_GROUP` and the bytes of `SUMS_STAGED` values: inclusive sums.
const SUMS_TILE: u64 = 8192;
const SUMS_THREADS: u32 = 512;
const SUMS_GROUP: u64 = 256;
const SUMS_SHARED: u32 = (8192 + 2 * 512) * 8;

/// What turns counts into offsets.
pub(super) fn source() -> KernelSource {
    KernelSource::new("scan", "#include \"scan.cuh\"\nWF_SCAN_ENTRIES\n")
}

/// What adds values up, of which a query needs one type at most.
fn inclusive_source(name: &str, added: &str) -> KernelSource {
    let text = format!("#include \"scan.cuh\"\nWF_SCAN_INCLUSIVE({name}, wf::{added})\n");
    KernelSource::new(format!("scan_inclusive_{name}"), text)
}

pub(super) fn sources() -> [KernelSource; 3] {
    [source(), inclusive_source("i64", "u64"), inclusive_source("f64", "f64")]
}

/// Where each row's part begins: `u64 × (n + 1)`, the last being the total. `counts` holds
/// `u32 × n`.
pub fn exclusive_scan_u32(device: &Device, counts: &Buffer, n: u64) -> Result<Buffer> {
    let offsets = device.alloc(OPERATOR, (n as usize + 1) * 8)?;
    exclusive(device, "scan_exclusive_u64", counts, &offsets, n)?;
    Ok(offsets)
}

/// Where each row's part begins: `u32 × (n + 1)`, the last being the total. Sums beyond 2³² wrap.
pub fn exclusive_scan_u32_narrow(device: &Device, counts: &Buffer, n: u64) -> Result<Buffer> {
    let offsets = device.alloc(OPERATOR, (n as usize + 1) * 4)?;
    exclusive(device, "scan_exclusive_u32", counts, &offsets, n)?;
    Ok(offsets)
}

/// Inclusive running sum of `i64 × rows`; wraps.
pub fn inclusive_sum_i64(device: &Device, values: Slice<'_>, rows: u64) -> Result<Buffer> {
    inclusive(device, &inclusive_source("i64", "u64"), values, rows)
}

/// Inclusive running sum of `f64 × rows`. The additions are associated by position alone: same
/// input, same bits.
pub fn inclusive_sum_f64(device: &Device, values: Slice<'_>, rows: u64) -> Result<Buffer> {
    inclusive(device, &inclusive_source("f64", "f64"), values, rows)
}

fn exclusive(
    device: &Device,
    kernel: &str,
    counts: &Buffer,
    offsets: &Buffer,
    n: u64,
) -> Result<()> {
    assert!(counts.len() as u64 >= n * 4, "{n} counts");
    // One tile even of nothing: it writes the total.
    let tiles = tiles(n, TILE).max(1);
    let state = device.alloc_zeroed(OPERATOR, (tiles as usize + 1) * 8)?;
    let kernel = device.kernel(&source(), kernel)?;
    let arguments: [Argument; 4] = [counts.into(), offsets.into(), n.into(), (&state).into()];
    // SAFETY: ScanExclusive { counts: n u32, offsets: n + 1 of the entry's width, rows, state: 1 +
    // tiles zeroed u64 }; the first was checked above, the callers made the second.
    unsafe { device.launch(&kernel, grid(tiles, THREADS), &arguments) }
}

fn inclusive(
    device: &Device,
    source: &KernelSource,
    values: Slice<'_>,
    rows: u64,
) -> Result<Buffer> {
    assert!(values.len() as u64 >= rows * 8, "{rows} values");
    let sums = device.alloc(OPERATOR, rows as usize * 8)?;
    let tiles = tiles(rows, SUMS_TILE);
    let groups = tiles.div_ceil(SUMS_GROUP);
    // The ticket in the first 16 bytes, then the parts.
    let state = device.alloc_zeroed(OPERATOR, (1 + tiles + groups) as usize * 16)?;
    // The only one in it, of the same name.
    let kernel = device.kernel(source, &source.name)?;
    let arguments: [Argument; 6] = [
        values.into(),
        (&sums).into(),
        rows.into(),
        (&state).into(),
        state.slice(16).into(),
        tiles.into(),
    ];
    let grid = Grid { shared: SUMS_SHARED, ..grid(tiles, SUMS_THREADS) };
    // SAFETY: ScanInclusive { values: rows × 8 bytes, checked; sums: the same; rows; ticket: zero;
    // parts: tiles + groups zeroed words of 16 bytes; tiles }.
    unsafe { device.launch(&kernel, grid, &arguments)? };
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

    const SIZES: [usize; 12] = [0, 1, 31, 32, 33, 4095, 4096, 4097, 8191, 8192, 8193, 40_000];

    #[test]
    fn exclusive_scan_gives_offsets_and_total() {
        for device in devices() {
            for n in SIZES {
                let counts: Vec<u32> = random(n as u64, n).map(|x| (x % 1000) as u32).collect();
                let input = upload(&device, &counts);
                let mut expected = vec![0u64];
                counts.iter().for_each(|&c| expected.push(expected.last().unwrap() + u64::from(c)));
                assert_eq!(
                    read::<u64>(&exclusive_scan_u32(&device, &input, n as u64).unwrap(), n + 1),
                    expected
                );
                let narrow: Vec<u32> = expected.iter().map(|&x| x as u32).collect();
                let found = exclusive_scan_u32_narrow(&device, &input, n as u64).unwrap();
                assert_eq!(read::<u32>(&found, n + 1), narrow, "{n} rows");
            }
        }
    }

    #[test]
    fn exclusive_scan_of_huge_counts_passes_32_bits_within_a_tile() {
        let device = device(1);
        let counts = vec![u32::MAX; 5000];
        let offsets = exclusive_scan_u32(&device, &upload(&device, &counts), 5000).unwrap();
        assert_eq!(read::<u64>(&offsets, 5001)[5000], 5000 * u64::from(u32::MAX));
    }

    #[test]
    fn inclusive_sums_are_exact_for_integers_and_close_for_floats() {
        for device in devices() {
            for n in SIZES {
                let integers: Vec<i64> = random(7, n).map(|x| x as i64).collect();
                let mut sum = 0i64;
                let expected: Vec<i64> =
                    integers.iter().map(|&x| (sum = sum.wrapping_add(x), sum).1).collect();
                let found =
                    inclusive_sum_i64(&device, upload(&device, &integers).slice(0), n as u64)
                        .unwrap();
                assert_eq!(read::<i64>(&found, n), expected, "{n} rows");

                let floats: Vec<f64> = random(9, n).map(|x| x as f64 / 1e15).collect();
                let found = read::<f64>(
                    &inclusive_sum_f64(&device, upload(&device, &floats).slice(0), n as u64)
                        .unwrap(),
                    n,
                );
                let mut sum = 0.0;
                for (i, &x) in floats.iter().enumerate() {
                    sum += x;
                    assert!(
                        (found[i] - sum).abs() <= 1e-9 * sum.abs(),
                        "row {i} of {n}: {} for {sum}",
                        found[i]
                    );
                }
            }
        }
    }

    #[test]
    fn inclusive_sums_cross_groups_of_tiles_and_take_values_that_are_not_aligned() {
        let device = device(1);
        let n = (SUMS_TILE * (SUMS_GROUP + 2)) as usize + 5;
        let integers: Vec<i64> = random(5, n + 1).map(|x| x as i64 >> 20).collect();
        let uploaded = upload(&device, &integers);
        for skipped in [0, 1] {
            let mut sum = 0i64;
            let expected: Vec<i64> =
                integers[skipped..][..n].iter().map(|&x| (sum += x, sum).1).collect();
            let found = inclusive_sum_i64(&device, uploaded.slice(skipped * 8), n as u64).unwrap();
            assert!(read::<i64>(&found, n) == expected, "skipped {skipped}");
        }
    }

    #[test]
    fn inclusive_float_sums_do_not_depend_on_the_schedule() {
        let n = 300_000; // 37 tiles
        let values: Vec<f64> = random(3, n).map(|x| (x as f64 / 1e19).powi(9) - 1e-3).collect();
        let runs: Vec<Vec<u64>> = devices()
            .iter()
            .map(|device| {
                read(
                    &inclusive_sum_f64(device, upload(device, &values).slice(0), n as u64).unwrap(),
                    n,
                )
            })
            .collect();
        assert!(runs.windows(2).all(|w| w[0] == w[1]));
    }
}
