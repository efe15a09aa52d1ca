//! Numbers of the rows whose mask is set. Kernels in `kernels/select.cuh`.

use super::{grid, numbered, scan, tiles};
use crate::device::{Argument, Buffer, Device, Source};
use crate::error::Result;

const OPERATOR: &str = "select";
/// `SELECT_TILE` and `SELECT_THREADS` of the kernels.
const TILE: u64 = 4096;
const THREADS: u32 = 256;

pub(super) fn source() -> Source {
    Source::new("select", "#include \"select.cuh\"\nWF_SELECT_ENTRIES\n")
}

/// The numbers of the rows whose byte in `mask` is not 0, ascending (`u32`), and how many they are. Waits for the device.
pub(crate) fn select_indices(device: &Device, mask: &Buffer, rows: u64) -> Result<(Buffer, u64)> {
    numbered(OPERATOR, rows)?;
    assert!(mask.len() as u64 >= rows, "mask of {rows} rows");
    let tiles = tiles(rows, TILE);
    let counts = device.alloc(OPERATOR, tiles as usize * 4)?;
    let kernel = device.kernel(&source(), "select_count")?;
    let arguments: [Argument; 3] = [mask.into(), rows.into(), (&counts).into()];
    // SAFETY: SelectCount { mask: rows bytes, checked, aligned as allocations are; rows; counts: a u32 for each tile }.
    unsafe { device.launch(&kernel, grid(tiles, THREADS), &arguments)? };
    let offsets = scan::exclusive_scan_u32(device, &counts, tiles)?;
    let kept = offsets.read_word_or(tiles as usize * 8, rows.div_ceil(2))?;
    let out = device.alloc(OPERATOR, kept as usize * 4)?;
    let kernel = device.kernel(&source(), "select_write")?;
    let arguments: [Argument; 4] = [mask.into(), rows.into(), (&offsets).into(), (&out).into()];
    // SAFETY: SelectWrite { mask, rows: as above; offsets: tiles + 1 u64; out: as many u32 as the last offset says }.
    unsafe { device.launch(&kernel, grid(tiles, THREADS), &arguments)? };
    Ok((out, kept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

    #[test]
    fn select_keeps_rows_in_order_at_every_selectivity() {
        for device in devices() {
            for rows in [0, 1, 31, 32, 33, 4095, 4096, 4097, 30_000] {
                for kept_of_100 in [0, 1, 50, 99, 100] {
                    let mask: Vec<u8> = random(3, rows).map(|x| (x % 100 < kept_of_100) as u8).collect();
                    let (found, count) = select_indices(&device, &upload(&device, &mask), rows as u64).unwrap();
                    let expected: Vec<u32> = (0..rows as u32).filter(|&row| mask[row as usize] != 0).collect();
                    assert_eq!(count, expected.len() as u64);
                    assert_eq!(read::<u32>(&found, expected.len()), expected);
                }
            }
        }
    }
}
