//! Inverses of permutations: where each row went. Kernel in `kernels/inverse.cuh`.
//!
//! If the places fit the second-level cache, a kernel writes them one by one. If they do not, each
//! write would move a whole sector of memory: then a radix sort of the row numbers is faster.

use super::sort::{KeyKind, SortKey, argsort_key};
use super::{grid, numbered, tiles};
use crate::error::Result;
use crate::{Argument, Buffer, Device, KernelSource};

const OPERATOR: &str = "inverse";
const THREADS: u32 = 256;
/// Most bytes of places that are written one by one: the second-level cache of an H100 has 50 MB.
const CACHED_BYTES: u64 = 32 << 20;
/// Rows of a block, and blocks at most.
const TILE: u64 = 1024;
const MOST_BLOCKS: u64 = 1 << 16;

pub(super) fn source() -> KernelSource {
    KernelSource::new("inverse", "#include \"inverse.cuh\"\nWF_INVERSE_ENTRIES\n")
}

/// For each of `rows` rows its place in `order`, `u32 × rows`, which has each row's number once,
/// from element `offset` on.
///
/// # Errors
/// Of the device; more than 2³² rows.
pub fn inverse(device: &Device, order: &Buffer, offset: u64, rows: u64) -> Result<Buffer> {
    match rows * size_of::<u32>() as u64 <= CACHED_BYTES {
        true => by_scatter(device, order, offset, rows),
        false => by_sort(device, order, offset, rows),
    }
}

fn bytes(elements: u64) -> usize {
    elements as usize * size_of::<u32>()
}

fn by_sort(device: &Device, order: &Buffer, offset: u64, rows: u64) -> Result<Buffer> {
    let key = SortKey::new(order.slice(bytes(offset)), KeyKind::U32, false);
    argsort_key(device, &key.within(0, i128::from(rows.saturating_sub(1))), rows)
}

fn by_scatter(device: &Device, order: &Buffer, offset: u64, rows: u64) -> Result<Buffer> {
    numbered(OPERATOR, rows)?;
    assert!(order.len() >= bytes(offset + rows), "an order of {rows} rows");
    let places = device.alloc(OPERATOR, bytes(rows))?;
    if rows == 0 {
        return Ok(places);
    }
    let kernel = device.kernel(&source(), "inverse")?;
    let order = order.slice(bytes(offset));
    let arguments: [Argument; 3] = [order.into(), (&places).into(), rows.into()];
    // SAFETY: Inverse { order: rows u32, checked above, each below `rows` as the caller says;
    // places: rows u32, made above; rows }.
    unsafe {
        device.launch(&kernel, grid(tiles(rows, TILE).min(MOST_BLOCKS), THREADS), &arguments)?
    };
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

    #[test]
    fn the_inverse_says_where_each_row_went() {
        let device = device(7);
        for rows in [0u32, 1, 255, 1024, 1025, 5000] {
            // A permutation: 7919 has no divisor in common with these numbers of rows.
            let order: Vec<u32> =
                (0..rows).map(|at| (u64::from(at) * 7919 % u64::from(rows)) as u32).collect();
            let mut expected = vec![0; rows as usize];
            order.iter().zip(0..).for_each(|(row, at)| expected[*row as usize] = at);
            let words: Vec<u32> = [9, 9].into_iter().chain(order).collect();
            let words = upload(&device, &words);
            for way in [by_scatter, by_sort] {
                let found = way(&device, &words, 2, rows.into()).unwrap();
                assert_eq!(read::<u32>(&found, rows as usize), expected, "{rows} rows");
            }
        }
    }
}
