//! Rows that an index names. Kernels in `kernels/gather.cuh`.

use super::{grid, tiles};
use crate::device::{Argument, Buffer, Device, Slice, Source};
use crate::error::Result;

const OPERATOR: &str = "gather";
/// `GATHER_TILE` and `GATHER_THREADS` of the kernels.
const TILE: u64 = 1024;
const THREADS: u32 = 256;

pub(super) fn source() -> Source {
    Source::new("gather", "#include \"gather.cuh\"\nWF_GATHER_ENTRIES\n")
}

/// `values[index[i]]` for each of `rows` row numbers; values of `width` 1, 2, 4, 8 or 16 bytes.
pub(crate) fn gather(device: &Device, width: usize, values: Slice<'_>, index: &Buffer, rows: u64) -> Result<Buffer> {
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
    // SAFETY: Gather { values of `width` from the offset on, as many as the index names (its maker's promise); index:
    // rows u32, checked; rows; out: rows of `width` }.
    unsafe { device.launch(&kernel, grid(tiles(rows, TILE), THREADS), &arguments)? };
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

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
