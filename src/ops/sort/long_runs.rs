//! Long runs of equal prefixes that are out of order: `mend` lists rows of them, and if they hold few rows, those are sorted on
//! their own. Kernels in `kernels/sort_long_runs.cuh`.
//!
//! Most often these are a few frequent keys that agree in the prefix, two of them in each run: then one launch does it.

use super::found::{Findings, Found};
use super::key::SortKey;
use super::{OPERATOR, TUNED, Tuning, sort_by_key};
use crate::device::{Argument, Buffer, Device, Source};
use crate::error::Result;
use crate::ops::{grid, tiles};

const THREADS: u32 = 256;
/// `SORT_LONG_THREADS` and `SORT_LONG_ROWS` of the kernels.
const BLOCK_THREADS: u32 = 512;
const BLOCK_RUN: u64 = 4096;
/// Listed rows up to which each has a block that looks for its run; and where it is not known yet how many they are, as many as an H200 runs at once.
const NEAR_LISTED: u64 = 1024;
const NEAR_EXPECTED: u64 = 512;
/// Rows of a sort for each in long runs.
const ROWS_A_SORTED: u64 = 8;
/// Most runs; the host puts them in order.
const MOST_RUNS: u64 = 1 << 16;

pub(super) fn source() -> Source {
    Source::new("sort_long_runs", "#include \"sort_long_runs.cuh\"\nWF_SORT_LONG_RUNS_ENTRIES\n")
}

/// The rows whose runs they are, in the order so far.
pub(super) struct Rows<'a> {
    /// `key`'s memory, if keys are sorted where they lie; else what holds the words that were sorted.
    pub(super) words: SortKey<'a>,
    /// Lowest bit of them that is sorted.
    pub(super) shift: u32,
    /// Where the rows of each highest digit begin, if the words leave it out: `u32 × 256`.
    pub(super) implied: Argument,
    /// Keys as the column has them, in its order or (`in_place`) in that of the sort.
    pub(super) key: SortKey<'a>,
    pub(super) in_place: bool,
    /// Values beside the keys and their bytes; row numbers if not `in_place`.
    pub(super) values: Option<(&'a Buffer, usize)>,
    pub(super) rows: u64,
}

impl Rows<'_> {
    /// Sorts the runs of a few listed rows, as far as they are near; how many rows these are is not known here.
    pub(super) fn sort_expected(&self, device: &Device, found: &Found) -> Result<()> {
        self.near(device, found, NEAR_EXPECTED.min(found.room))
    }

    /// Sorts the runs of which rows were found; `expected`: as `sort_expected` was to. Waits for the device if there are any, and twice if some have
    /// many rows. `false`: there are too many runs, or rows of them.
    pub(super) fn sort_runs(&self, device: &Device, found: &Found, findings: Findings, expected: bool) -> Result<bool> {
        let count = findings.listed;
        if count == 0 || count > found.room {
            return Ok(count == 0);
        }
        if expected && count <= NEAR_EXPECTED {
            if findings.left == 0 {
                return Ok(true);
            }
        } else if count <= NEAR_LISTED {
            self.near(device, found, count)?;
            if found.none_is_left()? {
                return Ok(true);
            }
        }
        let (bounds, runs) = self.bounds(device, found, count)?;
        let total: u64 = runs.iter().map(|(begin, end)| end - begin).sum();
        if runs.len() as u64 > MOST_RUNS || total > self.rows / ROWS_A_SORTED {
            return Ok(false);
        }
        let width = self.key.kind.width();
        let value_width = self.values.map_or(0, |(_, width)| width);
        let null = Argument::from(0u64);
        if runs.iter().all(|(begin, end)| end - begin <= BLOCK_RUN) {
            let arguments = [&self.moved()[..], &[(&bounds).into()]].concat();
            let kernel = device.kernel(&source(), "sort_long_block")?;
            // SAFETY: SortLongBlock { moved; bounds: as many runs as blocks, of up to BLOCK_RUN of the sort's rows, no two the same }.
            unsafe { device.launch(&kernel, grid(runs.len() as u64, BLOCK_THREADS), &arguments)? };
            return Ok(true);
        }
        let offsets = runs.iter().scan(0, |before, (begin, end)| {
            let offset = *before;
            *before += end - begin;
            Some(offset)
        });
        let words = |words: &mut dyn Iterator<Item = u64>| words.flat_map(u64::to_le_bytes).collect::<Vec<_>>();
        let begins = device.upload(OPERATOR, &words(&mut runs.iter().map(|(begin, _)| *begin)))?;
        let offsets = device.upload(OPERATOR, &words(&mut offsets.into_iter()))?;
        let places = device.alloc(OPERATOR, total as usize * 4)?;
        let keys = device.alloc(OPERATOR, total as usize * width)?;
        let values = device.alloc(OPERATOR, total as usize * value_width.max(1))?;
        let arguments = |keys: &Buffer, values: &Buffer| -> [Argument; 12] {
            [
                (&begins).into(),
                (&offsets).into(),
                (runs.len() as u64).into(),
                total.into(),
                u64::from(width == 4).into(),
                (value_width as u64).into(),
                (&places).into(),
                if self.in_place { self.key.data.into() } else { null },
                self.key.data.into(),
                self.values.map_or(null, |(values, _)| values.into()),
                keys.into(),
                values.into(),
            ]
        };
        let launch = |name, keys: &Buffer, values: &Buffer| -> Result<()> {
            let kernel = device.kernel(&source(), name)?;
            // SAFETY: SortLongRows { begins and offsets: runs u64, of runs within the sort's rows that hold `total`; places: total u32;
            // keys, column: rows of the key's width; values: rows of value_bytes, or null and 0; few_…: total of those widths }.
            unsafe { device.launch(&kernel, grid(tiles(total, u64::from(THREADS)), THREADS), &arguments(keys, values)) }
        };
        launch("sort_long_collect", &keys, &values)?;
        let few = SortKey { data: keys.slice(0), ..self.key };
        let payload = self.values.map(|(_, width)| (values.slice(0), width));
        let tuning = Tuning { sampled_rows: u64::MAX, guessed_rows: 0, ..TUNED };
        let (few_keys, few_values) = sort_by_key(device, &few, payload, total, tuning)?;
        launch("sort_long_return", &few_keys, few_values.as_ref().unwrap_or(&values))?;
        Ok(true)
    }

    /// Sorts the runs of up to `most` listed rows, if these are not more, and the runs not too long.
    fn near(&self, device: &Device, found: &Found, most: u64) -> Result<()> {
        let arguments = [&self.listed(found, most)[..], &self.moved(), &found.arguments()[..1]].concat();
        let kernel = device.kernel(&source(), "sort_long_near")?;
        // SAFETY: SortLongNear { of: at most `most` listed rows, a block each; moved; found: SORT_FOUND_… words }.
        unsafe { device.launch(&kernel, grid(most, BLOCK_THREADS), &arguments) }
    }

    /// `SortLongListed`: key: rows of its kind; implied: 256 u32 or null; listed: count u32, rows of the sort.
    fn listed(&self, found: &Found, count: u64) -> [Argument; 9] {
        let [data, kind, flip, base] = self.words.arguments();
        let shift = u64::from(self.shift);
        [data, kind, flip, base, self.rows.into(), shift.into(), self.implied, (&found.listed).into(), count.into()]
    }

    /// `SortLongMoved`: key: rows of its kind, those that values number if keys is null; keys: the key's own rows, or null; values: rows of
    /// value_bytes, or null and 0.
    fn moved(&self) -> [Argument; 7] {
        let [data, kind, flip, base] = self.key.arguments();
        let keys = if self.in_place { data } else { 0u64.into() };
        let (values, width) = self.values.map_or((0u64.into(), 0), |(values, width)| (values.into(), width as u64));
        [data, kind, flip, base, keys, values, width.into()]
    }

    /// First row of each run and the first behind it, in any order there and in the order of rows here.
    fn bounds(&self, device: &Device, found: &Found, count: u64) -> Result<(Buffer, Vec<(u64, u64)>)> {
        let slots = (2 * count).next_power_of_two();
        let table = device.alloc_filled(OPERATOR, (slots as usize + 1) * 8, 0xFF)?;
        let runs = device.alloc_zeroed(OPERATOR, 8)?;
        let bounds = device.alloc(OPERATOR, count as usize * 16)?;
        let more: [Argument; 4] = [(&table).into(), slots.into(), (&runs).into(), (&bounds).into()];
        let arguments = [&self.listed(found, count)[..], &more].concat();
        let kernel = device.kernel(&source(), "sort_long_find")?;
        // SAFETY: SortLongFind { of: `count` listed rows; table: slots + 1 u64, all ones; found: a zeroed word; bounds: 2 × count u64 }.
        unsafe { device.launch(&kernel, grid(tiles(count, u64::from(THREADS / 32)), THREADS), &arguments)? };
        let runs = runs.read_words(0, 1)?[0];
        let words = bounds.read_words(0, 2 * runs as usize)?;
        let mut runs: Vec<(u64, u64)> = words.chunks_exact(2).map(|run| (run[0], run[1])).collect();
        runs.sort_unstable();
        Ok((bounds, runs))
    }
}
