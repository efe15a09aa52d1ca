//! The elements of lists, one after the other. Kernels in `kernels/list.cuh`.

use super::join::expand;
use super::{grid, tiles};
use crate::error::Result;
use crate::{Argument, Buffer, Device, KernelSource, Slice};

const OPERATOR: &str = "lists";
/// `LIST_TILE` and `LIST_THREADS` of the kernels.
const TILE: u64 = 1024;
const THREADS: u32 = 256;
/// Bytes of a list in its column.
const LIST_WIDTH: u64 = 16;

pub(super) fn source() -> KernelSource {
    KernelSource::new("list", "#include \"list.cuh\"\nWF_LIST_ENTRIES\n")
}

/// One slot of the elements of lists.
#[derive(Debug)]
pub struct Flat {
    /// Values, of the slot's width.
    pub values: Buffer,
    /// A byte an element.
    pub valid: Buffer,
}

/// For each slot of the elements (of `widths` bytes: 0, 1, 2, 4, 8 or 16) the elements of `rows`
/// lists one after the other: those of list `r` at `offsets[r]..offsets[r + 1]` of `total`. Where a
/// list has fewer elements than that, zeros follow. `offsets` is `u64 × (rows + 1)`.
pub fn flatten(
    device: &Device,
    lists: Slice<'_>,
    offsets: &Buffer,
    rows: u64,
    total: u64,
    widths: &[usize],
) -> Result<Vec<Flat>> {
    assert!(lists.len() as u64 >= rows * LIST_WIDTH, "{rows} lists");
    let row_of = expand(device, offsets, rows, total)?;
    let flat = |(slot, &width): (usize, &usize)| {
        let name = match width {
            0 => "list_flatten_0",
            1 => "list_flatten_1",
            2 => "list_flatten_2",
            4 => "list_flatten_4",
            8 => "list_flatten_8",
            16 => "list_flatten_16",
            other => unreachable!("no type has {other} bytes"),
        };
        let values = device.alloc(OPERATOR, total as usize * width)?;
        let valid = device.alloc(OPERATOR, total as usize)?;
        if total > 0 {
            let kernel = device.kernel(&source(), name)?;
            let arguments: [Argument; 7] = [
                lists.into(),
                offsets.into(),
                (&row_of).into(),
                total.into(),
                (slot as u64).into(),
                (&values).into(),
                (&valid).into(),
            ];
            // SAFETY: ListFlatten { lists: rows views, checked, whose slots their maker keeps;
            // offsets: rows + 1 u64, which `expand` checked; row_of: total u32; total; slot: one
            // that elements of these widths have; values: total of `width`; valid: total }.
            unsafe { device.launch(&kernel, grid(tiles(total, TILE), THREADS), &arguments)? };
        }
        Ok(Flat { values, valid })
    };
    widths.iter().enumerate().map(flat).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

    #[test]
    fn elements_follow_each_other_and_short_lists_leave_zeros() {
        for device in devices() {
            for rows in [0usize, 1, 33, 1025, 3000] {
                let child: Vec<u64> = random(3, 5000).collect();
                let valid: Vec<u8> = child.iter().map(|x| u8::from(x % 3 != 0)).collect();
                let (values, bytes) = (upload(&device, &child), upload(&device, &valid));
                let slots = upload(&device, &[values.address(), bytes.address()]);
                let (mut views, mut offsets, mut expected) = (vec![], vec![0u64], vec![]);
                for row in 0..rows as u64 {
                    let (length, first, more) = (row % 7, row * 13 % 4000, row % 2);
                    views.extend([length | first << 32, slots.address()]);
                    expected.extend(
                        (first..first + length).map(|at| (child[at as usize], valid[at as usize])),
                    );
                    expected.extend((0..more).map(|_| (0, 1)));
                    offsets.push(expected.len() as u64);
                }
                let (lists, offsets) = (upload(&device, &views), upload(&device, &offsets));
                let total = expected.len() as u64;
                let flat =
                    flatten(&device, lists.slice(0), &offsets, rows as u64, total, &[8]).unwrap();
                let found = read::<u64>(&flat[0].values, expected.len());
                let valid = read::<u8>(&flat[0].valid, expected.len());
                assert_eq!(
                    found.into_iter().zip(valid).collect::<Vec<_>>(),
                    expected,
                    "{rows} lists"
                );
            }
        }
    }
}
