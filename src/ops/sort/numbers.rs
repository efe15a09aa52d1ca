//! Keys of which few values are frequent, by the values' numbers in their order; rare ones are sorted apart. Kernels in
//! `kernels/sort_numbers.cuh`.
//!
//! A sample tells which values are frequent. Each row's key is looked up among them, and of keys alone nothing else is sorted but
//! the rare ones: each frequent value is written as often as it was counted.

use super::key::{KeyKind, SortKey};
use super::pass::Digits;
use super::{OPERATOR, TUNED, argsort_word, identity, sort_by_key};
use crate::device::{Argument, Buffer, Device, Grid, Source};
use crate::error::Result;
use crate::ops::{grid, tiles};

/// `SORT_NUMBERS_MOST`, `SORT_NUMBERS_LIST_THREADS`, `SORT_NUMBERS_RANK_THREADS`, `SORT_NUMBERS_RANKED`, `SORT_NUMBERS_THREADS`,
/// `SORT_NUMBERS_TILE`, `SORT_FILL_THREADS`, `SORT_FILL_TILE` of the kernels.
pub(super) const MOST: u64 = 4096;
const LIST_THREADS: u32 = 256;
const RANK_THREADS: u32 = 256;
const RANKED: u64 = 32;
const THREADS: u32 = 1024;
const TILE: u64 = 8192;
const FILL_THREADS: u32 = 512;
const FILL_TILE: u64 = 4096;
/// Of the kernels that work on values, and on rare rows.
const VALUE_THREADS: u32 = 128;
/// Slots of the table for each value, and most of them: a warp goes on until the last of its rows' keys is found. Milliseconds of
/// 100M rows, H200, four rows a thread, by slots for a value and threads of a block (eight rows were not swept):
///
/// ```text
///                  2, 512   4, 512   8, 512    2, 1024  4, 1024  8, 1024
///    10 values       .43      .43      .43       .43      .43      .43
///  1000 values       .85      .56      .49       .80      .53      .46
///  4096 values       .91      .79                .84      .56
/// ```
const SLOTS: u64 = 8;
const MOST_SLOTS: u64 = 1 << 14;
/// Most bytes of a block's counts, and shared memory that the kernel takes besides.
const COUNTED_BYTES: u64 = 64 << 10;
const RESERVED: u64 = 1024;

/// A value is frequent that a sample has so often (of 4096 equally frequent ones, a sample of 65,536 has each 16 times, half of it 8 times), and one row in
/// so many may be rare. With less than one row in `SPREAD` that equals a row, few values can be frequent.
const FREQUENT: u64 = 4;
const ROWS_A_RARE: u64 = 4;
const SPREAD: f64 = 8192.0;
/// Keys of so many bits take no longer to sort than their numbers.
pub(super) const SORTED_BITS: u32 = 16;

pub(super) fn source() -> Source {
    Source::new("sort_numbers", "#include \"sort_numbers.cuh\"\nWF_SORT_NUMBERS_ENTRIES\n")
}

/// A sample's keys and how often it has each: tables of `hash.cuh`, from a slot on.
pub(super) struct Values {
    /// `u64 × (slots + 1)`: keys less `base`.
    pub(super) table: Buffer,
    /// `u32 × (slots + 1)`.
    pub(super) counts: Buffer,
    pub(super) first_slot: usize,
    pub(super) slots: u64,
    pub(super) base: u64,
    pub(super) samples: u64,
}

/// Whether frequent values are worth a look, of keys of which a row meets so many equal ones.
pub(super) fn likely(equal: f64, rows: u64) -> bool {
    equal * SPREAD >= rows as f64
}

/// What a sample's keys say.
pub(super) struct Seen {
    /// `u64` each, in any order: values that the sample has [`FREQUENT`] times.
    list: Buffer,
    frequent: u64,
    /// Rows of the sample, and those that have frequent values.
    samples: u64,
    shown: u64,
    /// Values that the sample has at all, once, and twice.
    values: u64,
    once: u64,
    twice: u64,
}

impl Seen {
    /// How many values there probably are, and at least (Chao, "Nonparametric Estimation of the Number of Classes in a Population", 1984).
    pub(super) fn distinct(&self) -> u64 {
        let unseen = u128::from(self.once) * u128::from(self.once) / (2 * u128::from(self.twice.max(1)));
        self.values + unseen as u64
    }

    /// Whether few values are frequent, and other keys rare.
    pub(super) fn few_are_frequent(&self, wanted: Wanted) -> bool {
        let most_rare = if wanted == Wanted::All { 0 } else { self.samples / ROWS_A_RARE };
        (1..=MOST).contains(&self.frequent) && self.shown + most_rare >= self.samples
    }
}

/// What becomes of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Keys alone.
    Keys,
    /// Row numbers.
    Order,
    /// Each row's number of its value, and no rare ones.
    All,
}

/// All frequent values of a key, and the rows that have them.
pub(super) struct Numbers<'a> {
    device: &'a Device,
    key: SortKey<'a>,
    rows: u64,
    /// `u64` each, ascending.
    sorted: Buffer,
    /// Rows of each, `u64`, and the same here, with the rare ones at the end.
    counts: Buffer,
    counted: Vec<u64>,
    values: u64,
    /// Each row's value, by its number: `u32 × rows`; of rare rows the next number after the last.
    numbers: Option<Buffer>,
    /// How many rows are rare, and if only keys are wanted, theirs.
    rare: u64,
    rare_keys: Option<Buffer>,
}

impl<'a> Numbers<'a> {
    /// Looks each row's key up. Waits for the device. `None`: too many rows are rare, or values frequent.
    pub(super) fn of(
        device: &'a Device,
        key: &SortKey<'a>,
        rows: u64,
        seen: &Seen,
        wanted: Wanted,
    ) -> Result<Option<Numbers<'a>>> {
        if !seen.few_are_frequent(wanted) {
            return Ok(None);
        }
        let Seen { list, frequent: values, .. } = seen;
        let values = *values;
        let Some(shape) = Shape::new(device, values) else { return Ok(None) };
        let slots = shape.slots as usize + 1;
        let sorted = device.alloc(OPERATOR, values as usize * 8)?;
        let table = device.alloc_filled(OPERATOR, slots * 8, 0xFF)?;
        let table_numbers = device.alloc_filled(OPERATOR, slots * 4, 0xFF)?;
        let arguments: [Argument; 6] = [
            list.into(),
            values.into(),
            (&sorted).into(),
            (&table).into(),
            shape.slots.into(),
            (&table_numbers).into(),
        ];
        let kernel = device.kernel(&source(), "sort_numbers_rank")?;
        // SAFETY: SortNumbersRank { values: count u64, all different, at most SORT_NUMBERS_MOST; sorted: count u64; table: slots + 1 u64,
        // all ones, slots a power of two of at least 2 × count; numbers: slots + 1 u32, all ones }.
        unsafe { device.launch(&kernel, grid(tiles(values, RANKED), RANK_THREADS), &arguments)? };

        let room = if wanted == Wanted::All { 0 } else { rows / ROWS_A_RARE };
        let numbers = match wanted {
            Wanted::Keys => None,
            Wanted::Order | Wanted::All => Some(device.alloc(OPERATOR, rows as usize * 4)?),
        };
        let rare_keys = match wanted {
            Wanted::Keys => Some(device.alloc(OPERATOR, (room as usize).max(1) * key.kind.width())?),
            Wanted::Order | Wanted::All => None,
        };
        // Rows of each value, and at the end of rare ones.
        let counts = device.alloc_zeroed(OPERATOR, (values as usize + 1) * 8)?;
        let rare_at = values as usize * 8;
        let [data, kind, flip, base] = key.arguments();
        let or_null = |buffer: &Option<Buffer>| buffer.as_ref().map_or(Argument::from(0u64), Argument::from);
        let arguments: [Argument; 15] = [
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
            counts.slice(rare_at).into(),
            or_null(&numbers),
            or_null(&rare_keys),
            room.into(),
        ];
        let kernel = device.kernel(&source(), "sort_numbers_count")?;
        let full = u64::from(device.full_grid(&kernel, THREADS, shape.shared)?);
        let blocks = grid(tiles(rows, TILE).min(full), THREADS);
        // SAFETY: SortNumbersCount { key: rows of its kind; table, numbers: slots + 1, as ranked; counts: values u64, zero; rare: a zeroed
        // word; out: rows u32 or null; rare_keys: room rows of the key's width or null }, and as much shared memory as its shape says.
        unsafe { device.launch(&kernel, Grid { shared: shape.shared, ..blocks }, &arguments)? };
        let counted = counts.read_words(0, values as usize + 1)?;
        let rare = counted[values as usize];
        Ok((rare <= room).then_some(Numbers {
            device,
            key: *key,
            rows,
            sorted,
            counts,
            counted,
            values,
            numbers,
            rare,
            rare_keys,
        }))
    }

    /// What sorts as the rows' keys do, rare ones last; not if keys were wanted.
    pub(super) fn key(&self) -> SortKey<'_> {
        let numbers = self.numbers.as_ref().expect("numbers that were kept");
        let last = if self.rare > 0 { self.values } else { self.values - 1 };
        SortKey { bits: 64 - last.leading_zeros(), ..SortKey::new(numbers.slice(0), KeyKind::U32, false) }
    }

    /// The digits of these keys.
    pub(super) fn digits(&self) -> Result<Digits> {
        Digits::of_counts(self.device, &self.counted, self.key().bits)
    }

    /// The rows' keys in their order, as the column has them; not if there are rare ones and order was wanted.
    pub(super) fn keys(&self) -> Result<Buffer> {
        let sorted = match &self.rare_keys {
            Some(keys) if self.rare > 0 => {
                let rare = SortKey { data: keys.slice(0), ..self.key };
                Some(sort_by_key(self.device, &rare, None, self.rare, TUNED)?.0)
            }
            _ => None,
        };
        self.fill(sorted.as_ref(), None, self.key.kind.width())
    }

    /// The rows' numbers in the order of their keys; not if keys were wanted.
    pub(super) fn order(&self) -> Result<Buffer> {
        let order = argsort_word(self.device, &self.key(), self.rows, None, &self.digits()?, TUNED)?
            .map_or_else(|| identity(self.device, self.rows), Ok)?;
        if self.rare == 0 {
            return Ok(order);
        }
        let rows = order.slice((self.rows - self.rare) as usize * 4);
        let width = self.key.kind.width();
        let keys = self.device.alloc(OPERATOR, self.rare as usize * width)?;
        let arguments: [Argument; 5] =
            [self.key.data.into(), u64::from(width == 4).into(), rows.into(), self.rare.into(), (&keys).into()];
        let kernel = self.device.kernel(&source(), "sort_numbers_rare")?;
        let blocks = grid(tiles(self.rare, u64::from(VALUE_THREADS)), VALUE_THREADS);
        // SAFETY: SortNumbersRare { column: the key's rows; order: `rows` u32, rows of it; keys: `rows` of the key's width }.
        unsafe { self.device.launch(&kernel, blocks, &arguments)? };
        let rare = SortKey { data: keys.slice(0), ..self.key };
        let (keys, rows) = sort_by_key(self.device, &rare, Some((rows, 4)), self.rare, TUNED)?;
        self.fill(Some(&keys), Some((&order, &rows.expect("pairs have payloads"))), 4)
    }

    /// All rows together, of so many bytes each: `rare` keys in their order, `None` if there are none; with row numbers the frequent ones'
    /// by their keys, and the rare ones'.
    fn fill(&self, rare: Option<&Buffer>, order: Option<(&Buffer, &Buffer)>, width: usize) -> Result<Buffer> {
        let Numbers { device, key, rows, .. } = *self;
        let [data, kind, flip, base] = key.arguments_of(rare.map_or(key.data, |keys| keys.slice(0)));
        let before = device.alloc(OPERATOR, self.values as usize * 4)?;
        let arguments: [Argument; 8] = [
            data,
            kind,
            flip,
            base,
            if rare.is_some() { self.rare } else { 0 }.into(),
            (&self.sorted).into(),
            self.values.into(),
            (&before).into(),
        ];
        let kernel = device.kernel(&source(), "sort_numbers_between")?;
        let blocks = grid(tiles(self.values, u64::from(VALUE_THREADS / 32)), VALUE_THREADS);
        // SAFETY: SortNumbersBetween { rare: `rows` of its kind; sorted: values u64; before: values u32 }.
        unsafe { device.launch(&kernel, blocks, &arguments)? };
        let out = device.alloc(OPERATOR, rows as usize * width)?;
        let null = Argument::from(0u64);
        let arguments: [Argument; 12] = [
            data,
            kind,
            flip,
            base,
            (&self.sorted).into(),
            (&self.counts).into(),
            self.values.into(),
            (&before).into(),
            rows.into(),
            order.map_or(null, |(frequent, _)| frequent.into()),
            order.map_or(null, |(_, rare)| rare.into()),
            (&out).into(),
        ];
        let kernel = device.kernel(&source(), "sort_numbers_fill")?;
        let full = u64::from(device.full_grid(&kernel, FILL_THREADS, 0)?);
        // SAFETY: SortNumbersFill { rare: as many keys as rows beyond the counts' sum; sorted, counts: values u64; before: values u32; order,
        // rare_rows: u32 for each frequent and each rare row, or null; out: rows of u32, or of the key's width where those are null }.
        unsafe { device.launch(&kernel, grid(tiles(rows, FILL_TILE).min(full), FILL_THREADS), &arguments)? };
        Ok(out)
    }
}

impl Values {
    /// Looks at them. Waits for the device.
    pub(super) fn seen(&self, device: &Device) -> Result<Seen> {
        let list = device.alloc(OPERATOR, MOST as usize * 8)?;
        let listed = device.alloc_zeroed(OPERATOR, 40)?;
        let arguments: [Argument; 7] = [
            self.table.slice(self.first_slot * 8).into(),
            self.counts.slice(self.first_slot * 4).into(),
            self.slots.into(),
            self.base.into(),
            FREQUENT.into(),
            (&list).into(),
            (&listed).into(),
        ];
        let kernel = device.kernel(&source(), "sort_numbers_list")?;
        let blocks = grid(tiles(self.slots + 1, u64::from(LIST_THREADS)), LIST_THREADS);
        // SAFETY: SortNumbersList { table, counts: slots + 1 u64 and u32; values: SORT_NUMBERS_MOST u64; listed: five zeroed words }.
        unsafe { device.launch(&kernel, blocks, &arguments)? };
        let words = listed.read_words(0, 5)?;
        let (frequent, shown, values, once, twice) = (words[0], words[1], words[2], words[3], words[4]);
        Ok(Seen { list, frequent, samples: self.samples, shown, values, once, twice })
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
