//! Rows that an index names. Kernels in `kernels/gather.cuh`.
//!
//! Where an index names rows far apart, each row costs an access to memory. Two columns of 8 bytes
//! are then interleaved first, so that one access brings the values of both.

use super::{grid, tiles};
use crate::error::Result;
use crate::{Argument, Buffer, Device, KernelSource, Slice};

const OPERATOR: &str = "gather";
/// `GATHER_TILE` and `GATHER_THREADS` of the kernels.
const TILE: u64 = 1024;
const THREADS: u32 = 256;

pub(super) fn source() -> KernelSource {
    KernelSource::new("gather", "#include \"gather.cuh\"\nWF_GATHER_ENTRIES\n")
}

/// `values[index[i]]` for each of `rows` row numbers; values of `width` 1, 2, 4, 8 or 16 bytes.
pub fn gather(
    device: &Device,
    width: usize,
    values: Slice<'_>,
    index: &Buffer,
    rows: u64,
) -> Result<Buffer> {
    assert!(index.len() as u64 >= rows * 4, "index of {rows} rows");
    let name = match width {
        1 => "gather_1",
        2 => "gather_2",
        4 => "gather_4",
        8 => "gather_8",
        16 => "gather_16",
        other => unreachable!("no type has {other} bytes"),
    };
    let out = device.alloc(OPERATOR, rows as usize * width)?;
    let kernel = device.kernel(&source(), name)?;
    let arguments: [Argument; 4] = [values.into(), index.into(), rows.into(), (&out).into()];
    // SAFETY: Gather { values of `width` from the offset on, as many as the index names (its
    // maker's promise); index: rows u32, checked; rows; out: rows of `width` }.
    unsafe { device.launch(&kernel, grid(tiles(rows, TILE), THREADS), &arguments)? };
    Ok(out)
}

/// Samples of an index by which [`is_scattered`] judges.
const SAMPLES: u64 = 1024;
const WARP: u64 = 32;

/// Whether rows that follow each other in an index (`u32 × rows`) mostly lie far apart, so that
/// each costs an access to memory of its own. Looks at a sample; waits for the device.
pub fn is_scattered(device: &Device, index: Slice<'_>, rows: u64) -> Result<bool> {
    assert!(index.len() as u64 >= rows * 4, "index of {rows} rows");
    let samples = SAMPLES.min(rows.div_ceil(WARP));
    let step = (rows / samples.max(1)).max(WARP);
    let count = device.alloc_zeroed(OPERATOR, 8)?;
    let kernel = device.kernel(&source(), "gather_scattered")?;
    let arguments: [Argument; 4] = [index.into(), rows.into(), step.into(), (&count).into()];
    let blocks = tiles(samples * WARP, u64::from(THREADS));
    // SAFETY: GatherScattered { index: rows u32, checked; rows; step; count: a zeroed word }.
    unsafe { device.launch(&kernel, grid(blocks, THREADS), &arguments)? };
    Ok(count.read_words(0, 1)?[0] * 2 > samples * (WARP - 1))
}

/// The values of two columns of 8 bytes, `len` rows each, side by side: `(u64, u64) × len`.
pub fn interleave(device: &Device, one: Slice<'_>, two: Slice<'_>, len: u64) -> Result<Buffer> {
    assert!(one.len().min(two.len()) as u64 >= len * 8, "columns of {len} rows");
    let pairs = device.alloc(OPERATOR, len as usize * 16)?;
    let kernel = device.kernel(&source(), "gather_interleave")?;
    let arguments: [Argument; 4] = [one.into(), two.into(), len.into(), (&pairs).into()];
    // SAFETY: GatherInterleave { one and two: len u64, checked; len; pairs: twice as many }.
    unsafe { device.launch(&kernel, grid(tiles(len, TILE), THREADS), &arguments)? };
    Ok(pairs)
}

/// The two columns again, at the rows that an index names (`u32 × rows`, below the pairs' number).
pub fn gather_pairs(
    device: &Device,
    pairs: &Buffer,
    index: Slice<'_>,
    rows: u64,
) -> Result<[Buffer; 2]> {
    assert!(index.len() as u64 >= rows * 4, "index of {rows} rows");
    let (one, two) =
        (device.alloc(OPERATOR, rows as usize * 8)?, device.alloc(OPERATOR, rows as usize * 8)?);
    let kernel = device.kernel(&source(), "gather_pairs")?;
    let arguments: [Argument; 5] =
        [pairs.into(), index.into(), rows.into(), (&one).into(), (&two).into()];
    // SAFETY: GatherPairs { pairs: as many as the index names (its maker's promise); index: rows
    // u32, checked; rows; one and two: rows u64 }.
    unsafe { device.launch(&kernel, grid(tiles(rows, TILE), THREADS), &arguments)? };
    Ok([one, two])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

    #[test]
    fn gather_pairs_takes_rows_of_two_columns() {
        for device in devices() {
            for rows in [0, 1, 33, 1025, 5000] {
                let (one, two): (Vec<u64>, Vec<u64>) =
                    (random(4, 701).collect(), random(5, 701).collect());
                let index: Vec<u32> = random(6, rows).map(|x| (x % 700) as u32).collect();
                let (a, b, at) =
                    (upload(&device, &one), upload(&device, &two), upload(&device, &index));
                // From the second row on.
                let pairs = interleave(&device, a.slice(8), b.slice(8), 700).unwrap();
                let found = gather_pairs(&device, &pairs, at.slice(0), rows as u64).unwrap();
                for (found, values) in found.iter().zip([&one, &two]) {
                    let expected: Vec<u64> =
                        index.iter().map(|&at| values[1 + at as usize]).collect();
                    assert_eq!(read::<u64>(found, rows), expected);
                }
            }
        }
    }

    #[test]
    fn an_index_is_scattered_where_neighbours_lie_apart() {
        let device = device(1);
        for rows in [64usize, 5000, 100_000] {
            let ascending: Vec<u32> = (0..rows as u32).collect();
            let doubled: Vec<u32> = (0..rows as u32).map(|row| row * 2).collect();
            let random: Vec<u32> = random(7, rows).map(|x| x as u32).collect();
            for (index, scattered) in [(ascending, false), (doubled, false), (random, true)] {
                let uploaded = upload(&device, &index);
                assert_eq!(
                    is_scattered(&device, uploaded.slice(0), rows as u64).unwrap(),
                    scattered,
                    "{rows}"
                );
            }
        }
    }

    #[test]
    fn gather_takes_rows_of_every_width_and_size() {
        for device in devices() {
            for rows in [0, 1, 31, 32, 33, 1023, 1024, 1025, 5000] {
                let index: Vec<u32> = random(1, rows).map(|x| (x % 700) as u32).collect();
                let index_buffer = upload(&device, &index);
                let words: Vec<u64> = random(2, 800).collect();
                macro_rules! check {
                    ($($t:ty),*) => {$(
                        let values: Vec<$t> = words.iter().map(|&x| x as $t).collect();
                        let found = gather(&device, size_of::<$t>(), upload(&device, &values).slice(9 * size_of::<$t>()), &index_buffer, rows as u64);
                        let expected: Vec<$t> = index.iter().map(|&at| values[9 + at as usize]).collect();
                        assert_eq!(read::<$t>(&found.unwrap(), rows), expected);
                    )*};
                }
                check!(u8, u16, u32, u64, u128);
            }
        }
    }
}
