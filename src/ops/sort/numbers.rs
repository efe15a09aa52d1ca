//! Keys of few different values, by the values' numbers in their order. Kernels in `kernels/sort_numbers.cuh`.
//!
//! A sample tells that there are few, and which. Each row's key is then looked up among them; those that the sample missed are
//! collected, and if there are few of these too, rows are looked up once more.

use super::OPERATOR;
use super::key::{KeyKind, SortKey};
use crate::device::{Argument, Buffer, Device, Grid, Source};
use crate::error::Result;
use crate::ops::{grid, tiles};

/// `SORT_NUMBERS_MOST`, `SORT_NUMBERS_THREADS`, `SORT_NUMBERS_TILE`, `SORT_FILL_THREADS`, `SORT_FILL_TILE` of the kernels.
const MOST: u64 = 4096;
const THREADS: u32 = 1024;
const TILE: u64 = 8192;
/// Of the kernels that work on values.
const LIST_THREADS: u32 = 128;
const FILL_THREADS: u32 = 512;
const FILL_TILE: u64 = 4096;
/// Slots of the table for each value, and most of them: a warp goes on until the last of its rows' keys is found. Milliseconds of
/// 100M rows, H200, by slots for a value (blocks of 512 threads, two a multiprocessor; the last column 1024 threads, one):
///
/// ```text
///                    2       4       8    8, 1024 threads
///    10 values     .41     .40     .40     .43
///  1000 values     .81     .61     .46     .46
///  4096 values    1.10     .75             .57
/// ```
const SLOTS: u64 = 8;
const MOST_SLOTS: u64 = 1 << 14;
/// A sample shows each value so often, on average: hardly any is missed.
const SHOWN: u64 = 16;
/// Keys of so many bits take no longer to sort than their numbers.
const SORTED_BITS: u32 = 16;
/// Most bytes of a block's counts, and shared memory that the kernel takes besides.
const COUNTED_BYTES: u64 = 64 << 10;
const RESERVED: u64 = 1024;

pub(super) fn source() -> Source {
    Source::new("sort_numbers", "#include \"sort_numbers.cuh\"\nWF_SORT_NUMBERS_ENTRIES\n")
}

/// The different values of a sample.
pub(super) struct Values {
    /// A table of `hash.cuh`, from the byte at `offset`: keys less `base`.
    pub(super) table: Buffer,
    pub(super) offset: usize,
    pub(super) slots: u64,
    pub(super) base: u64,
    pub(super) count: u64,
}

/// Whether a sort by numbers pays, of keys of so many bits.
pub(super) fn pays(different: u64, samples: u64, bits: u32) -> bool {
    different <= MOST && different * SHOWN <= samples && bits > SORTED_BITS
}

/// All different values of a key, and the rows that have them.
pub(super) struct Numbers {
    /// `u64` each, ascending.
    sorted: Buffer,
    /// Rows of each, `u64`.
    counts: Buffer,
    values: u64,
    /// Each row's value, by its number: `u32 × rows`.
    numbers: Option<Buffer>,
}

impl Numbers {
    /// Looks each row's key up; `kept`: its number is written. Waits for the device. `None`: there are more values than a block has room for.
    pub(super) fn of(
        device: &Device,
        key: &SortKey<'_>,
        rows: u64,
        sampled: &Values,
        kept: bool,
    ) -> Result<Option<Numbers>> {
        let list = device.alloc(OPERATOR, MOST as usize * 8)?;
        let listed = device.alloc_zeroed(OPERATOR, 8)?;
        let add = |table: Argument, slots: u64, base: u64| -> Result<()> {
            let kernel = device.kernel(&source(), "sort_numbers_list")?;
            let arguments = [table, slots.into(), base.into(), (&list).into(), (&listed).into()];
            // SAFETY: SortNumbersList { table: slots + 1 u64; values: room for all values of all tables, which are at most MOST; listed:
            // how many of them there are so far }.
            unsafe { device.launch(&kernel, grid(tiles(slots + 1, u64::from(LIST_THREADS)), LIST_THREADS), &arguments) }
        };
        add(sampled.table.slice(sampled.offset).into(), sampled.slots, sampled.base)?;
        let mut values = sampled.count;
        let numbers = if kept { Some(device.alloc(OPERATOR, rows as usize * 4)?) } else { None };
        let (missed, missed_slots) = (device.alloc_filled(OPERATOR, (2 * MOST as usize + 1) * 8, 0xFF)?, 2 * MOST);
        loop {
            let Some(shape) = Shape::new(device, values) else { return Ok(None) };
            let sorted = device.alloc(OPERATOR, values as usize * 8)?;
            let table = device.alloc_filled(OPERATOR, (shape.slots as usize + 1) * 8, 0xFF)?;
            let table_numbers = device.alloc_filled(OPERATOR, (shape.slots as usize + 1) * 4, 0xFF)?;
            let arguments: [Argument; 6] = [
                (&list).into(),
                values.into(),
                (&sorted).into(),
                (&table).into(),
                shape.slots.into(),
                (&table_numbers).into(),
            ];
            let kernel = device.kernel(&source(), "sort_numbers_rank")?;
            // SAFETY: SortNumbersRank { values: count u64, all different; sorted: count u64; table: slots + 1 u64, all ones, slots a
            // power of two of at least 2 × count; numbers: slots + 1 u32, all ones }.
            unsafe { device.launch(&kernel, grid(tiles(values, u64::from(LIST_THREADS)), LIST_THREADS), &arguments)? };

            // Rows of each value, and at the end how many values were missed.
            let counts = device.alloc_zeroed(OPERATOR, (values as usize + 1) * 8)?;
            let misses = values as usize;
            let [data, kind, flip, base] = key.arguments();
            let null = Argument::from(0u64);
            let arguments: [Argument; 16] = [
                data,
                kind,
                flip,
                base,
                rows.into(),
                (&table).into(),
                (&table_numbers).into(),
                shape.slots.into(),
                values.into(),
                shape.copies.into(),
                (&counts).into(),
                numbers.as_ref().map_or(null, Argument::from),
                (&missed).into(),
                missed_slots.into(),
                counts.slice(misses * 8).into(),
                (MOST - values).into(),
            ];
            let kernel = device.kernel(&source(), "sort_numbers_count")?;
            let full = u64::from(device.full_grid(&kernel, THREADS, shape.shared)?);
            let blocks = grid(tiles(rows, TILE).min(full), THREADS);
            // SAFETY: SortNumbersCount { key: rows of its kind; table, numbers: slots + 1, as ranked; counts: values u64, zero; out: rows
            // u32 or null; missed: missed_slots + 1 u64, all ones; misses: a zeroed word }, and as much shared memory as its shape says.
            unsafe { device.launch(&kernel, Grid { shared: shape.shared, ..blocks }, &arguments)? };
            let missing = counts.read_words(misses * 8, 1)?[0];
            if missing == 0 {
                return Ok(Some(Numbers { sorted, counts, values, numbers }));
            }
            if missing > MOST - values {
                return Ok(None);
            }
            add((&missed).into(), missed_slots, 0)?;
            values += missing;
        }
    }

    /// What sorts as the rows' keys do; only of numbers that were kept.
    pub(super) fn key(&self) -> SortKey<'_> {
        let numbers = self.numbers.as_ref().expect("numbers that were kept");
        let bits = 64 - (self.values - 1).leading_zeros();
        SortKey { bits, ..SortKey::new(numbers.slice(0), KeyKind::U32, false) }
    }

    /// The rows' keys in their order, as the column of `key` has them.
    pub(super) fn fill(&self, device: &Device, key: &SortKey<'_>, rows: u64) -> Result<Buffer> {
        let out = device.alloc(OPERATOR, rows as usize * key.kind.width())?;
        let [data, kind, flip, base] = key.arguments();
        let arguments: [Argument; 9] = [
            data,
            kind,
            flip,
            base,
            (&self.sorted).into(),
            (&self.counts).into(),
            self.values.into(),
            rows.into(),
            (&out).into(),
        ];
        let kernel = device.kernel(&source(), "sort_numbers_fill")?;
        let full = u64::from(device.full_grid(&kernel, FILL_THREADS, 0)?);
        // SAFETY: SortNumbersFill { key: not read; sorted, counts: values u64; rows: the counts' sum; out: rows of the key's width }.
        unsafe { device.launch(&kernel, grid(tiles(rows, FILL_TILE).min(full), FILL_THREADS), &arguments)? };
        Ok(out)
    }
}

/// What a block of `sort_numbers_count` holds.
struct Shape {
    slots: u64,
    copies: u64,
    /// Bytes of shared memory.
    shared: u32,
}

impl Shape {
    /// `None`: there is no room.
    fn new(device: &Device, values: u64) -> Option<Shape> {
        let room = u64::from(device.properties().shared_per_block).saturating_sub(RESERVED);
        let least = (2 * values).next_power_of_two();
        let most = (SLOTS * values).next_power_of_two().min(MOST_SLOTS).max(least);
        let slots = std::iter::successors(Some(most), |slots| (*slots > least).then_some(slots / 2));
        let shapes = slots.flat_map(|slots| [32, 16, 8, 4, 2, 1].map(|copies| (slots, copies)));
        let bytes = |slots: u64, copies: u64| (slots + 1) * (8 + 2) + values * copies * 4;
        let fits = |(slots, copies): &(u64, u64)| {
            (*copies == 1 || values * copies * 4 <= COUNTED_BYTES) && bytes(*slots, *copies) <= room
        };
        shapes.into_iter().find(fits).map(|(slots, copies)| Shape {
            slots,
            copies,
            shared: bytes(slots, copies) as u32,
        })
    }
}
