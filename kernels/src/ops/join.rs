//! Tables for equality joins on one 64-bit key, and the expansion of matches. Kernels in
//! `kernels/join.cuh`.
//!
//! A key's value says where its build rows are:
//!
//! | table | slot of a key | value |
//! |---|---|---|
//! | hash | key and value, side by side | a row number, a payload, or the bounds of its rows |
//! | direct, for dense keys | a word of an array | a row number, or the bounds of its rows |
//! | none, if every key has one row | | the key is the row number, as rows are put in its order |
//!
//! A payload is the one column that the probe wants of a unique build side, if it takes 4 or 8
//! bytes. Beside a hash table of keys from a known domain lies a bit for each of these, by which most
//! probes without a match are done. Probes that come in the order of their keys read a direct table
//! once from its beginning to its end, so that it may have many slots without a row.

use std::sync::Arc;

use super::{grid, numbered, sort, tiles};
use crate::error::{Error, Result};
use crate::{Argument, Buffer, Device, Kernel, KernelSource, Slice};

const OPERATOR: &str = "join";
const THREADS: u32 = 256;
/// `JOIN_EXPAND_TILE` and `JOIN_EXPAND_THREADS` of the kernels.
const EXPAND_TILE: u64 = 2048;
const EXPAND_THREADS: u32 = 256;
/// A hash table of so many bytes may have this many slots a row.
const SMALL_TABLE: u64 = 1 << 20;
const SMALL_TABLE_ROOM: u64 = 8;
/// `HASH_PROBES` of the kernels: how far from its place a key may lie in a table that is made in a
/// hurry.
const PROBES: u64 = 1024;
/// Secrets that are tried for tables of keys that collide.
const SECRETS: u64 = 4;
/// Rows of a block of the build's passes: four of each thread.
const BUILD_TILE: u64 = 1024;
/// Flags that the build kernels set: `JOIN_REPEATED` and so on.
const REPEATED: u64 = 1;
const FULL: u64 = 2;
const UNORDERED: u64 = 4;
const OUTSIDE: u64 = 8;
/// A direct table of this many slots (4 MiB) stays in the second-level cache however few rows it
/// holds.
const DIRECT_ALWAYS: u64 = 1 << 20;
/// Beyond, a direct table may have this many slots a row: no more memory than a hash table takes.
const DIRECT_SLOTS_PER_ROW: u64 = 8;
/// Probes in the order of their keys read a direct table from its beginning to its end, once. So it
/// may have a slot for each probe, from this many build rows on: the hash table of fewer stays in the
/// second-level cache.
const DIRECT_IN_ORDER_FROM: u64 = 1 << 20;
const DIRECT_IN_ORDER_ON_SIMULATOR: u64 = 1 << 6;
/// Bits of present keys lie beside hash tables of so many rows and more, as long as they stay in the
/// second-level cache.
const PRESENT_FROM: u64 = 1 << 18;
const PRESENT_FROM_ON_SIMULATOR: u64 = 1 << 6;
const MOST_PRESENT_BITS: u64 = 1 << 27;

pub(super) fn source() -> KernelSource {
    KernelSource::new("join", "#include \"join.cuh\"\nWF_JOIN_ENTRIES\n")
}

/// The build side of a join: which rows have a key. Generated code probes it with what
/// `kernels/join.cuh` says.
#[derive(Debug)]
pub struct JoinTable {
    pub slots: Slots,
    /// Capacity − 1, or the domain of a direct table.
    pub mask_or_domain: u64,
    /// Build rows by slot, ascending within a slot; `None` where keys are unique, or only their
    /// existence counts.
    pub rows: Option<Buffer>,
    /// Whether no key has two rows.
    pub unique: bool,
    /// Bytes of the payload that slots hold instead of row numbers, if they do.
    pub payload: Option<usize>,
    /// Of the hash.
    pub secret: u64,
    /// Beside a hash table of keys from a domain: which of its keys there are.
    pub present: Option<PresentKeys>,
}

/// A bit for each key of a domain, `u32 × ⌈domain / 32⌉`: probes without a match end here, where they
/// would search a table that does not fit the second-level cache.
#[derive(Debug)]
pub struct PresentKeys {
    pub bits: Arc<Buffer>,
    pub domain: u64,
}

/// What there is for each key.
#[derive(Debug)]
pub enum Slots {
    /// Key and value, `u64 × 2 × (capacity + 1)`, by hash. The value is a row number, a payload, or
    /// begin and end of the key's rows in `rows`.
    Hash(Arc<Buffer>),
    /// By key. Without `rows`: a row, `u32 × domain`, all ones where there is none. Else begin and
    /// end of the key's rows, `u32 × 2 × domain`.
    Direct(Arc<Buffer>),
    /// The build's rows are in the order of their keys, which are all of the domain: a row's number
    /// is its key.
    Ordered,
}

/// What a join wants to know of the build rows of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupKind {
    /// All of them.
    Rows,
    /// Whether there is one: of a repeated key, the table knows any one row.
    Existence,
}

/// Keys to build a table of, `u64 × rows`. Rows whose `valid` byte is 0 take no part.
#[derive(Debug, Clone, Copy)]
pub struct BuildKeys<'a> {
    pub keys: &'a Buffer,
    pub valid: Option<&'a Buffer>,
    pub rows: u64,
    /// Keys of rows that take part are promised to lie in `0..domain`; where that is small enough
    /// the table is direct.
    pub domain: Option<u64>,
    /// Probes, where these are known to come in the order of their keys; else 0.
    pub ordered_probes: u64,
    pub assumed: Assumed,
}

/// What is taken to hold of keys where nobody has looked yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Assumed {
    /// No key has two rows.
    pub unique: bool,
    /// Every row's number is its key.
    pub ordered: bool,
}

impl Assumed {
    /// What the build kernel would find.
    fn flags(self) -> u64 {
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        flag(!self.unique, REPEATED) | flag(!self.ordered, UNORDERED)
    }
}

/// A value of 4 or 8 bytes a build row, which a hash table of unique keys may hold instead of row
/// numbers.
#[derive(Debug, Clone, Copy)]
pub struct Payload<'a> {
    pub values: Slice<'a>,
    pub width: usize,
}

/// Whether the table of so many rows has a slot for each key of a domain. `ordered_probes` is that of
/// [`BuildKeys`].
pub fn is_direct(device: &Device, domain: u64, rows: u64, ordered_probes: u64) -> bool {
    let from = device.of_kind(DIRECT_IN_ORDER_FROM, DIRECT_IN_ORDER_ON_SIMULATOR);
    let in_order = if rows >= from { ordered_probes } else { 0 };
    let most = DIRECT_ALWAYS.max(rows.saturating_mul(DIRECT_SLOTS_PER_ROW)).max(in_order);
    domain <= most && domain < 1 << 31
}

impl JoinTable {
    /// Builds a table. Waits for the device once, and once more where keys repeat and their rows
    /// are wanted.
    pub fn build(
        device: &Device,
        keys: BuildKeys<'_>,
        wanted: LookupKind,
        payload: Option<Payload<'_>>,
    ) -> Result<JoinTable> {
        let rows = keys.rows;
        numbered(OPERATOR, rows)?;
        assert!(keys.keys.len() as u64 >= rows * 8, "{rows} keys");
        assert!(keys.valid.is_none_or(|v| v.len() as u64 >= rows), "{rows} rows of validity");
        assert!(payload.is_none_or(|p| matches!(p.width, 4 | 8)), "a payload of {payload:?}");
        let build = Build { device, keys, wanted, payload };
        let direct = |domain: &u64| is_direct(device, *domain, rows, keys.ordered_probes);
        if let Some(domain) = keys.domain.filter(direct) {
            match build.direct(domain) {
                Ok(Some(table)) => return Ok(table),
                Ok(None) => {}
                // Probes in order allow a table of more memory than that of a hash table.
                Err(error)
                    if error.is_out_of_device_memory() && !is_direct(device, domain, rows, 0) => {}
                Err(error) => return Err(error),
            }
        }
        // Half full at most; emptier, for shorter probes, where the table is small anyway.
        let roomy = (SMALL_TABLE / 16).min(rows * SMALL_TABLE_ROOM);
        let capacity = (rows * 2).max(roomy).next_power_of_two().max(16);
        for number in 0..SECRETS {
            if let Some(table) = build.hash(capacity, device.secret(number), PROBES)? {
                return Ok(table);
            }
        }
        // Slow where most keys collide, but every key finds its place: there are more slots than
        // keys.
        let table = build.hash(capacity, device.secret(SECRETS), capacity)?;
        table.ok_or_else(|| {
            Error::unsupported(OPERATOR, "a table of more slots than rows has no room")
        })
    }

    /// Whether slots are the keys themselves.
    pub fn is_direct(&self) -> bool {
        !matches!(self.slots, Slots::Hash(_))
    }

    /// Whether every key of a direct table's domain has its one row, were there that many rows with
    /// a key.
    pub fn is_full(&self, rows: u64) -> bool {
        self.is_direct() && self.unique && self.mask_or_domain == rows
    }
}

/// What a build saw of its keys.
struct SeenKeys {
    /// No key has two rows.
    unique: bool,
    /// Every row's number is its key.
    ordered: bool,
    /// Every key has a bit among those of present keys.
    inside: bool,
}

/// What the passes of a build read.
struct Build<'a> {
    device: &'a Device,
    keys: BuildKeys<'a>,
    wanted: LookupKind,
    payload: Option<Payload<'a>>,
}

impl Build<'_> {
    /// `None`: a key lay outside the domain.
    fn direct(&self, domain: u64) -> Result<Option<JoinTable>> {
        let device = self.device;
        let starts = device.alloc_filled(OPERATOR, domain as usize * 4, 0xFF)?;
        let Some(found) = self.insert(None, domain, Some(&starts), None, (0, 0), None)? else {
            return Ok(None);
        };
        let unique = found.unique;
        let table = |slots, rows| JoinTable {
            slots,
            mask_or_domain: domain,
            rows,
            unique,
            payload: None,
            secret: 0,
            present: None,
        };
        if unique && found.ordered && self.keys.rows == domain && self.keys.valid.is_none() {
            return Ok(Some(table(Slots::Ordered, None)));
        }
        if unique || self.wanted == LookupKind::Existence {
            return Ok(Some(table(Slots::Direct(Arc::new(starts)), None)));
        }
        drop(starts);
        let bounds = device.alloc_zeroed(OPERATOR, domain as usize * 8)?;
        let rows = self.lists((None, 0), domain, domain, bounds.slice(0), 2)?;
        Ok(Some(table(Slots::Direct(Arc::new(bounds)), Some(rows))))
    }

    /// `None`: a row made so many probes and did not find its key's place.
    fn hash(&self, capacity: u64, secret: u64, probes: u64) -> Result<Option<JoinTable>> {
        let slots = self.device.alloc_filled(OPERATOR, (capacity as usize + 1) * 16, 0xFF)?;
        let mask = capacity - 1;
        // A payload is found by its place among all words of the table, which has 32 bits.
        let payload =
            self.payload.filter(|payload| (capacity + 1) * 16 / (payload.width as u64) < 1 << 32);
        let present = self.present()?;
        let found = (secret, probes);
        let inserted = self.insert(Some(&slots), mask, None, payload, found, present.as_ref())?;
        let Some(SeenKeys { unique, inside, .. }) = inserted else { return Ok(None) };
        let rows = match unique || self.wanted == LookupKind::Existence {
            true => None,
            false => {
                Some(self.lists((Some(&slots), secret), mask, capacity + 1, slots.slice(8), 4)?)
            }
        };
        Ok(Some(JoinTable {
            slots: Slots::Hash(Arc::new(slots)),
            mask_or_domain: mask,
            rows,
            unique,
            payload: payload.filter(|_| unique).map(|payload| payload.width),
            secret,
            present: present.filter(|_| inside),
        }))
    }

    /// Room for the bits of present keys, where they pay.
    fn present(&self) -> Result<Option<PresentKeys>> {
        let from = self.device.of_kind(PRESENT_FROM, PRESENT_FROM_ON_SIMULATOR);
        let domain = self.keys.domain.filter(|domain| *domain <= MOST_PRESENT_BITS);
        let Some(domain) = domain.filter(|_| self.keys.rows >= from) else { return Ok(None) };
        let bits = self.device.alloc_zeroed(OPERATOR, domain.div_ceil(32) as usize * 4)?;
        Ok(Some(PresentKeys { bits: Arc::new(bits), domain }))
    }

    fn kernel(&self, slots: Option<&Buffer>, hash: &str, direct: &str) -> Result<Kernel> {
        self.device.kernel(&source(), if slots.is_some() { hash } else { direct })
    }

    /// Every row claims its key's slot. `None` where rows could not.
    fn insert(
        &self,
        slots: Option<&Buffer>,
        mask_or_domain: u64,
        starts: Option<&Buffer>,
        payload: Option<Payload<'_>>,
        (secret, probes): (u64, u64),
        present: Option<&PresentKeys>,
    ) -> Result<Option<SeenKeys>> {
        let null = Argument::from(0u64);
        let flags = self.device.alloc_zeroed(OPERATOR, 8)?;
        let kernel = self.kernel(slots, "join_build_hash", "join_build_direct")?;
        let arguments: [Argument; 13] = [
            self.keys.keys.into(),
            self.keys.valid.map_or(null, Argument::from),
            self.keys.rows.into(),
            slots.map_or(null, Argument::from),
            mask_or_domain.into(),
            starts.map_or(null, Argument::from),
            payload.map_or(null, |payload| payload.values.into()),
            (payload.map_or(0, |payload| payload.width) as u64).into(),
            (&flags).into(),
            secret.into(),
            probes.into(),
            present.map_or(null, |present| (&*present.bits).into()),
            present.map_or(0, |present| present.domain).into(),
        ];
        // SAFETY: JoinBuild: keys rows u64, valid rows u8 or null (both checked by `build`); rows;
        // slots capacity + 1 pairs of u64 or, direct, null; mask or domain; starts domain u32 or,
        // hashed, null; rows payloads of their width, or null; flags u32; secret; probes; a bit for
        // each of domain keys, or null; domain.
        unsafe {
            self.device.launch(
                &kernel,
                grid(tiles(self.keys.rows, BUILD_TILE), THREADS),
                &arguments,
            )?
        };
        let flags = flags.read_word_or(0, self.keys.assumed.flags())?;
        let lacks = |flag: u64| flags & flag == 0;
        let found =
            SeenKeys { unique: lacks(REPEATED), ordered: lacks(UNORDERED), inside: lacks(OUTSIDE) };
        Ok((flags & FULL == 0).then_some(found))
    }

    /// The rows by slot; writes where each slot's begin and end, `stride` words from slot to slot.
    fn lists(
        &self,
        (slots, secret): (Option<&Buffer>, u64),
        mask_or_domain: u64,
        count: u64,
        bounds: Slice<'_>,
        stride: u64,
    ) -> Result<Buffer> {
        let (device, rows) = (self.device, self.keys.rows);
        let slot_of = device.alloc(OPERATOR, rows as usize * 8)?;
        let null = Argument::from(0u64);
        let kernel = self.kernel(slots, "join_slots_hash", "join_slots_direct")?;
        let arguments: [Argument; 8] = [
            self.keys.keys.into(),
            self.keys.valid.map_or(null, Argument::from),
            rows.into(),
            slots.map_or(null, Argument::from),
            mask_or_domain.into(),
            count.into(),
            (&slot_of).into(),
            secret.into(),
        ];
        let every_row = grid(tiles(rows, BUILD_TILE), THREADS);
        // SAFETY: JoinSlots: as JoinBuild, after it inserted every key; count; slot_of rows u64;
        // secret.
        unsafe { device.launch(&kernel, every_row, &arguments)? };

        let bits = 64 - count.leading_zeros();
        let order = sort::argsort(device, &[sort::SortWord { keys: &slot_of, bits }], rows)?;
        let kernel = device.kernel(&source(), "join_lists")?;
        let arguments: [Argument; 6] = [
            (&slot_of).into(),
            (&order).into(),
            rows.into(),
            count.into(),
            bounds.into(),
            stride.into(),
        ];
        // SAFETY: JoinLists: slot_of rows u64 of at most `count`; order a permutation of the rows;
        // count; two u32 for each slot, `stride` u32 apart.
        unsafe { device.launch(&kernel, every_row, &arguments)? };
        Ok(order)
    }
}

/// For each of `total` outputs the probe row it belongs to, `u32 × total`: row `r` stands at
/// `offsets[r]..offsets[r + 1]`. `offsets` is `u64 × (n + 1)`, ascending from 0 to `total`.
pub fn expand(device: &Device, offsets: &Buffer, n: u64, total: u64) -> Result<Buffer> {
    let rows = device.alloc(OPERATOR, total as usize * 4)?;
    let null = || Argument::from(0u64);
    launch_expand(device, "join_expand", offsets, (n, total), &rows, [null(), null(), null()])?;
    Ok(rows)
}

/// Where the candidates of each probe row lie.
#[derive(Debug, Clone, Copy)]
pub struct CandidateLists<'a> {
    /// Where a row's candidates begin, `u32 × n`; all ones instead of one candidate that is no row.
    pub begins: Slice<'a>,
    /// The candidates by place, `u32`; without them places are their numbers.
    pub rows: Option<&'a Buffer>,
}

/// The rows of [`expand`], and the candidate of each output.
pub fn expand_pairs(
    device: &Device,
    offsets: &Buffer,
    lists: CandidateLists<'_>,
    n: u64,
    total: u64,
) -> Result<(Buffer, Buffer)> {
    assert!(lists.begins.len() as u64 >= n * 4, "{n} begins");
    let rows = device.alloc(OPERATOR, total as usize * 4)?;
    let candidates = device.alloc(OPERATOR, total as usize * 4)?;
    let by_place = lists.rows.map_or(Argument::from(0u64), Argument::from);
    let of_pairs = [lists.begins.into(), by_place, (&candidates).into()];
    launch_expand(device, "join_expand_pairs", offsets, (n, total), &rows, of_pairs)?;
    Ok((rows, candidates))
}

fn launch_expand(
    device: &Device,
    kernel: &str,
    offsets: &Buffer,
    (n, total): (u64, u64),
    rows: &Buffer,
    [begins, by_place, candidates]: [Argument; 3],
) -> Result<()> {
    numbered(OPERATOR, n)?;
    assert!(offsets.len() as u64 >= (n + 1) * 8, "{n} rows");
    let kernel = device.kernel(&source(), kernel)?;
    let arguments: [Argument; 7] =
        [offsets.into(), n.into(), total.into(), rows.into(), begins, by_place, candidates];
    // SAFETY: JoinExpand { offsets: n + 1 u64, checked; n; total; row_of: total u32; of pairs,
    // begins: n u32; rows: as many as begins and counts speak of, by the caller's promise, or null;
    // candidate_of: total u32 }.
    unsafe { device.launch(&kernel, grid(tiles(total, EXPAND_TILE), EXPAND_THREADS), &arguments) }
}

#[cfg(test)]
pub(super) mod tests;
