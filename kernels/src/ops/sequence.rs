//! Integers at equal distances. Kernel in `kernels/sequence.cuh`.

use super::{grid, tiles};
use crate::error::Result;
use crate::{Argument, Buffer, Device, KernelSource};

const OPERATOR: &str = "sequence";
const THREADS: u32 = 256;
/// Values of a block, and blocks at most.
const TILE: u64 = 4096;
const MOST_BLOCKS: u64 = 1 << 16;

pub(super) fn source() -> KernelSource {
    KernelSource::new("sequence", "#include \"sequence.cuh\"\nWF_SEQUENCE_ENTRIES\n")
}

/// `start`, `start + step`, …: as many `i64` as there are rows.
///
/// # Errors
/// Of the device.
pub fn sequence(device: &Device, start: i64, step: i64, rows: u64) -> Result<Buffer> {
    // More than there are addresses is more than there is memory.
    let bytes = usize::try_from(rows).ok().and_then(|rows| rows.checked_mul(size_of::<i64>()));
    let values = device.alloc(OPERATOR, bytes.unwrap_or(usize::MAX / 2))?;
    if rows == 0 {
        return Ok(values);
    }
    let kernel = device.kernel(&source(), "sequence")?;
    let arguments: [Argument; 4] = [(&values).into(), start.into(), step.into(), rows.into()];
    // SAFETY: Sequence { values: rows i64, allocated above; start; step; rows }.
    unsafe {
        device.launch(&kernel, grid(tiles(rows, TILE).min(MOST_BLOCKS), THREADS), &arguments)?
    };
    Ok(values)
}
