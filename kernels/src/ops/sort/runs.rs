//! The end of a sort by prefix: puts runs of rows in order that agree in the sorted bits. Kernel in
//! `kernels/sort_runs.cuh`.

use super::OPERATOR;
use super::key::{SortKey, SortWord};
use crate::error::Result;
use crate::ops::{grid, tiles};
use crate::{Argument, Buffer, Device, KernelSource};

/// `SORT_RUNS_CHUNK` of the kernels.
const CHUNK: u32 = 8;
/// `SORT_RUNS_MARGIN` of the kernels: rows of the longest run that is put in order.
pub(super) const LONGEST_RUN: u64 = 256;
/// Threads of a block.
const THREADS: u32 = 256;

/// What stands beside the sorted keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunPayload {
    Keys,
    KeysU32,
    KeysU64,
    Packed,
}

impl RunPayload {
    const ALL: [RunPayload; 4] =
        [RunPayload::Keys, RunPayload::KeysU32, RunPayload::KeysU64, RunPayload::Packed];

    fn source(self) -> KernelSource {
        // Blocks that share a multiprocessor: as many as its registers and shared memory hold
        // without spilling.
        let (name, value, blocks) = match self {
            RunPayload::Keys => ("sort_runs", "wf::SortNoValue", 5),
            RunPayload::KeysU32 => ("sort_runs_u32", "wf::u32", 5),
            RunPayload::KeysU64 => ("sort_runs_u64", "wf::u64", 5),
            RunPayload::Packed => ("sort_runs_packed", "wf::u32", 6),
        };
        let packed = self == RunPayload::Packed;
        let stamp = format!("WF_SORT_RUNS({name}, {value}, {packed}, {THREADS}, {blocks})");
        KernelSource::new(name, format!("#include \"sort_runs.cuh\"\n{stamp}\n"))
    }
}

pub(super) fn sources() -> impl Iterator<Item = KernelSource> {
    RunPayload::ALL.into_iter().map(RunPayload::source)
}

/// Rows in the order of the sorted bits.
#[derive(Clone, Copy)]
pub(super) enum PrefixSorted<'a> {
    /// Keys as the column has them, and values of 4 or 8 bytes beside them: put in order where they
    /// are.
    Rows { keys: &'a Buffer, values: Option<(&'a Buffer, usize)> },
    /// Words of key and row number; numbers are written.
    Packed {
        words: &'a Buffer,
        index_bits: u32,
        /// Words hold whole keys, and no further words follow.
        whole: bool,
        more: &'a [SortWord<'a>],
        numbers: &'a Buffer,
    },
}

/// Puts runs of rows in order that agree from bit `shift` of the key, or of the packed word,
/// upwards. Waits for the device. How many runs are too long and out of order, each counted for
/// each tile that it crosses: with any, what was written is no sorted order.
pub(super) fn put_in_order(
    device: &Device,
    key: &SortKey<'_>,
    shift: u32,
    rows: u64,
    sorted: PrefixSorted<'_>,
) -> Result<u64> {
    let null = Argument::from(0u64);
    let too_long = device.alloc_zeroed(OPERATOR, 8)?;
    let pointers;
    let (shape, launch) = match sorted {
        PrefixSorted::Rows { keys, values } => {
            let width = values.map_or(0, |(_, width)| width);
            assert!(keys.len() as u64 >= rows * key.kind.width() as u64, "{rows} keys");
            assert!(
                values.is_none_or(|(values, width)| values.len() as u64 >= rows * width as u64),
                "{rows} values"
            );
            let shape = match width {
                0 => RunPayload::Keys,
                4 => RunPayload::KeysU32,
                8 => RunPayload::KeysU64,
                width => unreachable!("values of {width} bytes"),
            };
            let launch = SortRuns {
                packed: null,
                key: key.arguments_of(keys.slice(0)),
                rows,
                shift,
                index_bits: 0,
                whole: true,
                more: null,
                more_words: 0,
                out: keys.into(),
                values: values.map_or(null, |(values, _)| values.into()),
                too_long: (&too_long).into(),
            };
            (shape, launch)
        }
        PrefixSorted::Packed { words, index_bits, whole, more, numbers } => {
            assert!(
                words.len() as u64 >= rows * 8 && numbers.len() as u64 >= rows * 4,
                "{rows} words and numbers"
            );
            assert!(!whole || more.is_empty(), "whole keys, and words behind them");
            let addresses: Vec<u8> =
                more.iter().flat_map(|word| word.keys.address().to_le_bytes()).collect();
            pointers = device.upload(OPERATOR, &addresses)?;
            let launch = SortRuns {
                packed: words.into(),
                key: key.arguments(),
                rows,
                shift,
                index_bits,
                whole,
                more: (&pointers).into(),
                more_words: more.len() as u64,
                out: numbers.into(),
                values: null,
                too_long: (&too_long).into(),
            };
            (RunPayload::Packed, launch)
        }
    };
    let source = shape.source();
    let kernel = device.kernel(&source, &source.name)?;
    let grid = grid(tiles(rows, u64::from(THREADS * CHUNK)), THREADS);
    // SAFETY: `SortRuns` { packed: rows u64 whose row numbers are below `rows`, or null; key: rows of
    // its kind; more: pointers to rows of u64 (checked by the sort's caller); out: rows of the
    // key's width, or u32 for packed words; values: rows of the shape's width, or null; too_long: a
    // zero }. Keys and values were checked above.
    unsafe { device.launch(&kernel, grid, &launch.arguments())? };
    too_long.read_words(0, 1).map(|words| words[0])
}

/// `SortRuns` of the kernels.
struct SortRuns {
    packed: Argument,
    key: [Argument; 4],
    rows: u64,
    shift: u32,
    index_bits: u32,
    whole: bool,
    more: Argument,
    more_words: u64,
    out: Argument,
    values: Argument,
    too_long: Argument,
}

impl SortRuns {
    /// In the kernel's order.
    fn arguments(&self) -> [Argument; 14] {
        let [data, kind, flip, base] = self.key;
        [
            self.packed,
            data,
            kind,
            flip,
            base,
            self.rows.into(),
            u64::from(self.shift).into(),
            u64::from(self.index_bits).into(),
            u64::from(self.whole).into(),
            self.more,
            self.more_words.into(),
            self.out,
            self.values,
            self.too_long,
        ]
    }
}

#[cfg(test)]
mod tests;
