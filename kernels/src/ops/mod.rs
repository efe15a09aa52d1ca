//! Host side of the hand-written kernels, one file per family, with the kernel file's stem.
//!
//! Operators take buffers and row counts and know nothing of columns or plans. They only submit
//! work; those that must wait for the device say so. Row numbers are `u32` in buffers, row counts
//! `u64`.

pub mod characters;
#[cfg(test)]
mod compiled;
pub mod csv;
pub mod decompress;
pub mod dictionary;
pub mod gather;
pub mod gather_columns;
pub mod inverse;
pub mod join;
#[cfg(test)]
mod large;
pub mod list;
pub mod parquet;
pub mod partition;
pub mod powers;
pub mod prepare;
pub mod reduce;
pub mod scan;
pub mod segment;
pub mod sequence;
pub mod sort;
pub mod survey;
#[cfg(test)]
mod testing;
pub mod top;
pub mod window;

use crate::error::{Error, Result};
use crate::{Grid, KernelSource};

/// Every translation unit of this module: what can be compiled before any query is known.
pub fn sources() -> Vec<KernelSource> {
    let mut sources = vec![
        characters::source(),
        join::source(),
        gather::source(),
        list::source(),
        sequence::source(),
        inverse::source(),
    ];
    sources.extend([gather_columns::source(), partition::source(), survey::source()]);
    sources.extend([csv::source(), dictionary::source()]);
    sources.extend(parquet::sources());
    sources.extend(scan::sources());
    sources.extend(top::sources());
    sources.extend(reduce::sources());
    sources.extend(sort::sources());
    sources.extend(segment::sources());
    sources.extend(window::sources());
    sources.extend(decompress::sources());
    sources
}

/// Translation units that almost every join needs, for compiling ahead.
pub fn join_sources() -> [KernelSource; 3] {
    [join::source(), gather_columns::source(), scan::source()]
}

/// Tiles that cover `rows`.
fn tiles(rows: u64, tile: u64) -> u64 {
    rows.div_ceil(tile)
}

/// One block for each of `blocks` tiles, without dynamic shared memory.
fn grid(blocks: u64, threads: u32) -> Grid {
    // Rows fit 32 bits wherever their numbers do, and a tile has many rows.
    Grid { blocks: u32::try_from(blocks).expect("fewer than 2³² tiles"), threads, shared: 0 }
}

/// Refuses row counts whose row numbers do not fit `u32` (the last number means "no row").
fn numbered(operator: &'static str, rows: u64) -> Result<()> {
    if rows < u64::from(u32::MAX) {
        return Ok(());
    }
    Err(Error::unsupported(format!("{operator} of {rows} rows"), "row numbers have 32 bits"))
}
