//! Tables for equality joins on one 64-bit key, and the expansion of matches. Kernels in `kernels/join.cuh`.

use super::{grid, numbered, sort, tiles};
use crate::device::{Argument, Buffer, Device, Kernel, Source};
use crate::error::{Error, Result};

const OPERATOR: &str = "join";
const THREADS: u32 = 256;
/// `JOIN_EXPAND_TILE` and `JOIN_EXPAND_THREADS` of the kernels.
const EXPAND_TILE: u64 = 2048;
const EXPAND_THREADS: u32 = 256;
/// Flags that the build kernels set.
const REPEATED: u64 = 1;
const FULL: u64 = 2;
/// A direct table of this many slots (4 MiB) stays in the second-level cache however few rows it holds.
const DIRECT_ALWAYS: u64 = 1 << 20;
/// Beyond, a direct table may have this many slots a row: no more memory than a hash table takes.
const DIRECT_SLOTS_PER_ROW: u64 = 8;

pub(super) fn source() -> Source {
    Source::new("join", "#include \"join.cuh\"\nWF_JOIN_ENTRIES\n")
}

/// The build side of a join: which rows have a key. Probed by generated code through `JoinTableView` of
/// `kernels/join.cuh`, whose four parameters [`JoinTable::view`] gives.
#[derive(Debug)]
pub(crate) struct JoinTable {
    /// Keys by slot, `u64 × (capacity + 1)`; `None` in a direct table, whose slots are the keys themselves.
    pub(crate) keys: Option<Buffer>,
    /// Capacity − 1, or the domain of a direct table.
    pub(crate) mask_or_domain: u64,
    /// Without `rows`: a row of each slot, `u32 × slots`, all ones where there is none. Else begin and end of each slot's
    /// rows in `rows`, `u32 × 2 × slots`.
    pub(crate) starts: Buffer,
    /// Build rows by slot, ascending within a slot; `None` where keys are unique, or only their existence counts.
    pub(crate) rows: Option<Buffer>,
    /// Whether no key has two rows.
    pub(crate) unique: bool,
}

/// What a join wants to know of the build rows of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of them.
    Rows,
    /// Whether there is one: of a repeated key, the table knows any one row.
    Existence,
}

impl JoinTable {
    /// Builds a table over `keys` (`u64 × rows`). Rows whose `valid` byte is 0 take no part.
    ///
    /// With `domain`, keys of rows that take part are promised to lie in `0..domain`; where that is small enough the
    /// table is direct. Waits for the device once, and once more where keys repeat and their rows are wanted.
    pub(crate) fn build(
        device: &Device,
        keys: &Buffer,
        valid: Option<&Buffer>,
        rows: u64,
        domain: Option<u64>,
        wanted: Wanted,
    ) -> Result<JoinTable> {
        numbered(OPERATOR, rows)?;
        assert!(keys.len() as u64 >= rows * 8, "{rows} keys");
        assert!(valid.is_none_or(|v| v.len() as u64 >= rows), "{rows} rows of validity");
        let side = BuildSide { device, keys, valid, rows, wanted };
        let most = DIRECT_ALWAYS.max(rows.saturating_mul(DIRECT_SLOTS_PER_ROW));
        if let Some(domain) = domain.filter(|&domain| domain <= most && domain < 1 << 31)
            && let Some(table) = side.try_build(Slots::Direct { domain })?
        {
            return Ok(table);
        }
        // Half full at most. Only keys made to collide need more.
        let mut capacity = (rows * 2).next_power_of_two().max(16);
        for _ in 0..4 {
            if let Some(table) = side.try_build(Slots::Hash { capacity })? {
                return Ok(table);
            }
            capacity *= 4;
        }
        Err(Error::unsupported("join", "the keys' hashes collide too often"))
    }

    /// Whether slots are the keys themselves.
    pub(crate) fn is_direct(&self) -> bool {
        self.keys.is_none()
    }

    /// The fields of `JoinTableView`.
    pub(crate) fn view(&self) -> [Argument; 4] {
        let null = Argument::from(0u64);
        [
            self.keys.as_ref().map_or(null, Argument::from),
            self.mask_or_domain.into(),
            (&self.starts).into(),
            self.rows.as_ref().map_or(null, Argument::from),
        ]
    }
}

#[derive(Debug, Clone, Copy)]
enum Slots {
    Hash { capacity: u64 },
    Direct { domain: u64 },
}

impl Slots {
    /// Slots there are; a hash table has one more for the key whose bits mean "empty".
    fn count(self) -> u64 {
        match self {
            Slots::Hash { capacity } => capacity + 1,
            Slots::Direct { domain } => domain,
        }
    }

    fn mask_or_domain(self) -> u64 {
        match self {
            Slots::Hash { capacity } => capacity - 1,
            Slots::Direct { domain } => domain,
        }
    }

    fn kernel(self, device: &Device, hash: &str, direct: &str) -> Result<Kernel> {
        device.kernel(&source(), if matches!(self, Slots::Hash { .. }) { hash } else { direct })
    }
}

/// What the passes of a build read.
struct BuildSide<'a> {
    device: &'a Device,
    keys: &'a Buffer,
    valid: Option<&'a Buffer>,
    rows: u64,
    wanted: Wanted,
}

impl BuildSide<'_> {
    /// `None`: probes grew too long, or a key lay outside the domain.
    fn try_build(&self, slots: Slots) -> Result<Option<JoinTable>> {
        let device = self.device;
        let table = match slots {
            Slots::Hash { .. } => Some(device.alloc_filled(OPERATOR, slots.count() as usize * 8, 0xFF)?),
            Slots::Direct { .. } => None,
        };
        let starts = device.alloc_filled(OPERATOR, slots.count() as usize * 4, 0xFF)?;
        let flags = device.alloc_zeroed(OPERATOR, 8)?;
        self.insert(slots, table.as_ref(), &starts, &flags)?;
        let flags = flags.read_words(0, 1)?[0];
        if flags & FULL != 0 {
            return Ok(None);
        }
        let mask_or_domain = slots.mask_or_domain();
        let unique = flags & REPEATED == 0;
        if unique || self.wanted == Wanted::Existence {
            return Ok(Some(JoinTable { keys: table, mask_or_domain, starts, rows: None, unique }));
        }
        drop(starts);
        let (bounds, rows) = self.lists(slots, table.as_ref())?;
        Ok(Some(JoinTable { keys: table, mask_or_domain, starts: bounds, rows: Some(rows), unique: false }))
    }

    /// Every row claims its key's slot; flags tell of rows that could not.
    fn insert(&self, slots: Slots, table: Option<&Buffer>, starts: &Buffer, flags: &Buffer) -> Result<()> {
        let kernel = slots.kernel(self.device, "join_build_hash", "join_build_direct")?;
        let arguments: [Argument; 7] = [
            self.keys.into(),
            self.valid.map_or(Argument::from(0u64), Argument::from),
            self.rows.into(),
            table.map_or(Argument::from(0u64), Argument::from),
            slots.mask_or_domain().into(),
            starts.into(),
            flags.into(),
        ];
        // SAFETY: JoinBuild: keys rows u64, valid rows u8 or null (both checked by `build`); rows; table capacity + 1
        // u64 or, direct, null; mask or domain; starts one u32 for each slot; flags u32.
        unsafe { self.device.launch(&kernel, grid(tiles(self.rows, 1024), THREADS), &arguments) }
    }

    /// Bounds of each slot's rows, and the rows by slot.
    fn lists(&self, slots: Slots, table: Option<&Buffer>) -> Result<(Buffer, Buffer)> {
        let device = self.device;
        let slot_of = device.alloc(OPERATOR, self.rows as usize * 8)?;
        let kernel = slots.kernel(device, "join_slots_hash", "join_slots_direct")?;
        let arguments: [Argument; 7] = [
            self.keys.into(),
            self.valid.map_or(Argument::from(0u64), Argument::from),
            self.rows.into(),
            table.map_or(Argument::from(0u64), Argument::from),
            slots.mask_or_domain().into(),
            slots.count().into(),
            (&slot_of).into(),
        ];
        let every_row = grid(tiles(self.rows, 1024), THREADS);
        // SAFETY: JoinSlots: as JoinBuild, after it inserted every key; slots; slot_of rows u64.
        unsafe { device.launch(&kernel, every_row, &arguments)? };

        let bits = 64 - slots.count().leading_zeros();
        let order = sort::argsort(device, &[sort::SortWord { keys: &slot_of, bits }], self.rows)?;
        let bounds = device.alloc_zeroed(OPERATOR, slots.count() as usize * 8)?;
        let kernel = device.kernel(&source(), "join_lists")?;
        let arguments: [Argument; 5] =
            [(&slot_of).into(), (&order).into(), self.rows.into(), slots.count().into(), (&bounds).into()];
        // SAFETY: JoinLists: slot_of rows u64 of at most `slots`; order a permutation of the rows; bounds 2 u32 a slot.
        unsafe { device.launch(&kernel, every_row, &arguments)? };
        Ok((bounds, order))
    }
}

/// For each of `total` outputs the probe row it belongs to, `u32 × total`: row `r` stands at
/// `offsets[r]..offsets[r + 1]`. `offsets` is `u64 × (n + 1)`, ascending from 0 to `total`.
pub(crate) fn expand(device: &Device, offsets: &Buffer, n: u64, total: u64) -> Result<Buffer> {
    numbered(OPERATOR, n)?;
    assert!(offsets.len() as u64 >= (n + 1) * 8, "{n} rows");
    let row_of = device.alloc(OPERATOR, total as usize * 4)?;
    let kernel = device.kernel(&source(), "join_expand")?;
    let arguments: [Argument; 4] = [offsets.into(), n.into(), total.into(), (&row_of).into()];
    // SAFETY: JoinExpand { offsets: n + 1 u64, checked; n; total; row_of: total u32 }.
    unsafe { device.launch(&kernel, grid(tiles(total, EXPAND_TILE), EXPAND_THREADS), &arguments)? };
    Ok(row_of)
}

#[cfg(test)]
pub(super) mod tests;
