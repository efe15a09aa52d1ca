//! The passes of a radix sort: shapes of their kernels, histograms, launches.

use super::OPERATOR;
use super::found::Found;
use super::key::SortKey;
use crate::device::{Argument, Buffer, Device, Grid, Slice, Source};
use crate::error::Result;
use crate::ops::{grid, tiles};

pub(super) const DIGITS: usize = 256;
/// `SORT_HISTOGRAM_THREADS` and `SORT_HISTOGRAM_ITEMS` of the kernels.
const HISTOGRAM_THREADS: u32 = 1024;
const HISTOGRAM_TILE: u64 = 1024 * 8;
/// Rows from which on a block's counts have copies, and most bytes of those.
const COPIED_ROWS: u64 = 1 << 16;
const COPIED_BYTES: usize = 128 << 10;
/// Shared memory that the kernel takes besides.
const RESERVED: usize = 1024;
/// Rows above which the words of the look-back have 64 bits instead of 32.
const WIDE_ROWS: u64 = 1 << 30;
/// `SORT_PLACE_BITS` of the kernels.
pub(super) const PLACE_BITS: u32 = 13;

/// The shape of one pass kernel: what travels, and its tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Keys of 32 bits alone.
    U32,
    /// Keys of 64 bits alone, or packed with row numbers.
    U64,
    /// Keys of 32 bits with values of 32.
    U32U32,
    /// Keys of 32 bits with values of 64.
    U32U64,
    /// Keys of 64 bits with values of 32.
    U64U32,
    /// Keys of 64 bits with values of 64.
    U64U64,
}

/// What a pass does beside moving rows: the first reads the column as it is, the last writes it so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) first: bool,
    pub(super) last: bool,
    /// The first pass need not keep the order of rows with the same digit.
    pub(super) loose: bool,
    /// Packed words leave out the digit that they were sorted by last.
    pub(super) implied: bool,
    /// And what the first pass leaves of them fits 32 bits.
    pub(super) narrow: bool,
}

impl Pass {
    const ALL: [Pass; 6] = [Pass::U32, Pass::U64, Pass::U32U32, Pass::U32U64, Pass::U64U32, Pass::U64U64];

    /// The shape for keys and values of these widths in bytes; no values: 0.
    pub(super) fn of(key: usize, value: usize) -> Pass {
        let fits = |pass: &Pass| (pass.key_width(), pass.value_width()) == (key, value);
        Pass::ALL.into_iter().find(fits).expect("keys of 4 or 8 bytes, values of 0, 4 or 8")
    }

    fn name(self, wide: bool, ends: Ends) -> String {
        let (key, value) = self.types();
        let value = value.map(|value| format!("_{value}")).unwrap_or_default();
        let flag = |set: bool, name: &'static str| if set { name } else { "" };
        let (wide, loose) = (flag(wide, "_wide"), flag(ends.loose, "_loose"));
        let (first, last) = (flag(ends.first, "_first"), flag(ends.last, "_last"));
        let implied = flag(ends.implied, "_implied");
        let narrow = flag(ends.narrow, "_narrow");
        format!("sort_pass{wide}_{key}{value}{loose}{first}{last}{implied}{narrow}")
    }

    /// Key and value in the kernels' spelling.
    fn types(self) -> (&'static str, Option<&'static str>) {
        match self {
            Pass::U32 => ("u32", None),
            Pass::U64 => ("u64", None),
            Pass::U32U32 => ("u32", Some("u32")),
            Pass::U32U64 => ("u32", Some("u64")),
            Pass::U64U32 => ("u64", Some("u32")),
            Pass::U64U64 => ("u64", Some("u64")),
        }
    }

    pub(super) fn key_width(self) -> usize {
        if matches!(self, Pass::U32 | Pass::U32U32 | Pass::U32U64) { 4 } else { 8 }
    }

    pub(super) fn value_width(self) -> usize {
        match self {
            Pass::U32 | Pass::U64 => 0,
            Pass::U32U32 | Pass::U64U32 => 4,
            Pass::U32U64 | Pass::U64U64 => 8,
        }
    }

    /// Threads of a block and rows of a thread: the largest tile of which two blocks fit a multiprocessor without spilling
    /// registers. Larger tiles pay the look-back less often. Milliseconds a pass of 100M rows, H200, chosen in brackets:
    ///
    /// ```text
    ///   u64        384×18 .594  384×19 .588  384×20 [.577]  384×21 .587  512×14 .603  512×15 .590
    ///   u32        384×28 [.448]  512×22 .443 (the first spills)  384×30 .454 (spills)
    ///   u64 + u64  384×14 1.071  384×15 1.059  448×12 1.078  512×10 1.084  512×11 1.062  512×12 [1.046]  512×13 1.044 (spills)
    ///
    /// and with look-back words that were not aligned, which cost 2 to 5% more,
    ///
    ///   u64 + u32  512×13 [.871]       u32 + u32  512×16 [.689]       u32 + u64  512×11 [.921]
    ///   loose u64  384×15 .593  384×16 [.579]  512×12 .584       loose u32  384×24 .400  384×28 [.374]  512×18 .400
    /// ```
    fn tile(self, ends: Ends) -> (u32, u32) {
        match self {
            Pass::U32 if ends.loose => (384, 28),
            Pass::U32 => (384, 28),
            Pass::U64 if ends.loose => (384, 16),
            Pass::U64 => (384, 20),
            Pass::U32U32 => (512, 16),
            Pass::U32U64 => (512, 11),
            Pass::U64U32 => (512, 13),
            Pass::U64U64 => (512, 12),
        }
    }

    /// Bytes of `SortShared`: counts and masks of each warp, or the tile's keys or values; then a base for each digit.
    fn shared(self, ends: Ends) -> u32 {
        let (threads, items) = self.tile(ends);
        let widest = self.key_width().max(self.value_width()) as u32;
        (threads / 32 * DIGITS as u32 * 8).max(threads * items * widest) + DIGITS as u32 * 4
    }

    fn source(self, wide: bool, ends: Ends) -> Source {
        let name = self.name(wide, ends);
        let (key, value) = self.types();
        let value = value.map_or("wf::SortNothing".into(), |value| format!("wf::{value}"));
        let (threads, items) = self.tile(ends);
        let word = if wide { "wf::u64" } else { "wf::u32" };
        let Ends { first, last, loose, implied, narrow } = ends;
        let order = if loose { "SORT_LOOSE" } else { "SORT_STABLE" };
        let stored = if narrow { "u32" } else { key };
        let shape = format!("wf::{key}, {value}, wf::{stored}, {word}, {threads}, {items}");
        let stamp = format!("WF_SORT_PASS({name}, {shape}, {first}, {last}, {order}, {implied})");
        Source::new(name, format!("#include \"sort.cuh\"\n{stamp}\n"))
    }
}

/// Copies of a block's counts of so many digits: as many as a warp has lanes, where shared memory suffices.
fn histogram_copies(digits: u32, rows: u64, shared: u32) -> u32 {
    let room = COPIED_BYTES.min((shared as usize).saturating_sub(RESERVED));
    let fits = |copies: &u32| digits as usize * DIGITS * 4 * *copies as usize <= room;
    if rows < COPIED_ROWS { 1 } else { [32, 16, 8, 4, 2].into_iter().find(fits).unwrap_or(1) }
}

fn histogram_source(key_width: usize, digits: u32, copies: u32) -> Source {
    let key = if key_width == 4 { "u32" } else { "u64" };
    let name = format!("sort_histogram_{key}_{digits}_{copies}");
    let text = format!("#include \"sort.cuh\"\nWF_SORT_HISTOGRAM({name}, wf::{key}, {digits}, {copies})\n");
    Source::new(name, text)
}

pub(super) fn sources() -> Vec<Source> {
    let mut sources = vec![];
    for pass in Pass::ALL {
        for (first, last) in [(false, false), (true, false), (false, true), (true, true)] {
            for loose in [false, true] {
                if loose && !(first && pass.value_width() == 0) {
                    continue;
                }
                let ends = Ends { first, last, loose, implied: false, narrow: false };
                sources.extend([false, true].map(|wide| pass.source(wide, ends)));
            }
        }
    }
    for (first, narrow) in [(false, false), (true, false), (true, true)] {
        let ends = Ends { first, last: false, loose: false, implied: true, narrow };
        sources.extend([false, true].map(|wide| Pass::U64.source(wide, ends)));
    }
    for (width, digits, copies) in [(4, 3, 32), (4, 4, 1), (4, 4, 32), (8, 1, 32), (8, 4, 32), (8, 8, 1), (8, 8, 16)] {
        sources.push(histogram_source(width, digits, copies));
    }
    sources
}

/// Whether the host waits for what a histogram counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    Read,
    Unread,
}

/// Where the rows of each digit begin, and which digits matter.
pub(super) struct Digits {
    /// `u32 × 256` for each digit.
    offsets: Buffer,
    /// Digits that are not the same in every key, least significant first; all, where the counts were not read.
    pub(super) live: Vec<u32>,
    /// The greatest key; 0 where it was not read.
    pub(super) greatest: u64,
}

impl Digits {
    /// Counts the digits of `bits` bits of every key from bit `shift` on.
    pub(super) fn count(
        device: &Device,
        key: &SortKey<'_>,
        rows: u64,
        shift: u32,
        bits: u32,
        counts_are: Counts,
    ) -> Result<Digits> {
        Digits::count_and_sum(device, key, rows, shift, bits, counts_are, None)
    }

    /// The same, and adds up the keys' hashes for `mend`.
    pub(super) fn count_and_sum(
        device: &Device,
        key: &SortKey<'_>,
        rows: u64,
        shift: u32,
        bits: u32,
        counts_are: Counts,
        found: Option<&Found>,
    ) -> Result<Digits> {
        assert!(bits <= 64, "{bits} bits of 64");
        let digits = bits.div_ceil(8);
        let cells = digits as usize * DIGITS;
        let counts = device.alloc_zeroed(OPERATOR, (cells + 1) * 8)?;
        if digits == 0 {
            return Ok(Digits { offsets: device.alloc(OPERATOR, 0)?, live: Vec::new(), greatest: 0 });
        }
        let copies = histogram_copies(digits, rows, device.properties().shared_per_block);
        let source = histogram_source(key.kind.width(), digits, copies);
        let kernel = device.kernel(&source, &source.name)?;
        let shared = cells as u32 * copies * 4;
        let full = u64::from(device.full_grid(&kernel, HISTOGRAM_THREADS, shared)?);
        let [data, kind, flip, base] = key.arguments();
        let greatest = counts.slice(cells * 8);
        let [found_words, first, second, third] = found.map_or([Argument::from(0u64); 4], Found::arguments);
        let arguments: [Argument; 12] = [
            data,
            kind,
            flip,
            base,
            rows.into(),
            u64::from(shift).into(),
            (&counts).into(),
            greatest.into(),
            found_words,
            first,
            second,
            third,
        ];
        let blocks = tiles(rows, HISTOGRAM_TILE).min(full);
        // SAFETY: SortHistogram { key: rows of its kind (its maker's promise); rows; shift; counts: digits × 256 zeroed
        // u64; greatest: one more; found: SORT_FOUND_… words, zero, or null }.
        unsafe { device.launch(&kernel, Grid { shared, ..grid(blocks, HISTOGRAM_THREADS) }, &arguments)? };
        let counted = Digits::of_found(device, &counts, digits, found_words)?;
        if counts_are == Counts::Unread {
            return Ok(counted);
        }
        let Digits { offsets, .. } = counted;
        let mut counts = counts.read_words(0, cells + 1)?;
        let greatest = counts.pop().unwrap_or(0);
        let live = counts.chunks_exact(DIGITS).zip(0..).filter(|(digit, _)| !digit.contains(&rows)).map(|(_, at)| at);
        Ok(Digits { offsets, live: live.collect(), greatest })
    }

    /// So many digits, of which each value's rows were counted, `u64 × 256` for each digit.
    pub(super) fn of_counted(device: &Device, counts: &Buffer, digits: u32) -> Result<Digits> {
        Digits::of_found(device, counts, digits, Argument::from(0u64))
    }

    /// The same; `found`: `Found`'s words, or null.
    fn of_found(device: &Device, counts: &Buffer, digits: u32, found: Argument) -> Result<Digits> {
        let cells = digits as usize * DIGITS;
        assert!(counts.len() >= cells * 8, "{digits} digits");
        let offsets = device.alloc(OPERATOR, cells * 4)?;
        let kernel = device.kernel(&super::source(), "sort_offsets")?;
        let arguments: [Argument; 3] = [counts.into(), (&offsets).into(), found];
        // SAFETY: SortOffsets { counts: digits × 256 u64; offsets: digits × 256 u32; found: SORT_FOUND_… words or null }, one block of 256 for
        // each digit.
        unsafe { device.launch(&kernel, grid(u64::from(digits), DIGITS as u32), &arguments)? };
        Ok(Digits { offsets, live: (0..digits).collect(), greatest: 0 })
    }

    /// The digits of keys of so many bits, of which each has these many rows.
    pub(super) fn of_counts(device: &Device, rows_of_key: &[u64], bits: u32) -> Result<Digits> {
        let mut counts = vec![[0u64; DIGITS]; bits.div_ceil(8) as usize];
        for (key, rows) in rows_of_key.iter().enumerate() {
            for (digit, counts) in counts.iter_mut().enumerate() {
                counts[(key >> (8 * digit)) % DIGITS] += rows;
            }
        }
        let total: u64 = rows_of_key.iter().sum();
        let live = counts.iter().zip(0..).filter(|(counts, _)| !counts.contains(&total)).map(|(_, at)| at).collect();
        let offsets = counts.iter().flat_map(|counts| {
            let begins = counts.iter().scan(0, |before, rows| {
                let begin = *before;
                *before += rows;
                Some(begin as u32)
            });
            begins.flat_map(u32::to_le_bytes).collect::<Vec<_>>()
        });
        let offsets = device.upload(OPERATOR, &offsets.collect::<Vec<_>>())?;
        Ok(Digits { offsets, live, greatest: rows_of_key.len() as u64 - 1 })
    }

    /// Where the rows of each value of a counted digit begin, `u32 × 256`.
    pub(super) fn offsets(&self, digit: u32) -> Slice<'_> {
        self.offsets.slice(digit as usize * DIGITS * 4)
    }
}

/// Everything of a pass but its scratch memory.
#[derive(Clone, Copy)]
pub(super) struct PassRun<'a> {
    pub(super) ends: Ends,
    /// Which of the counted digits this is.
    pub(super) digit: u32,
    /// Which one the words that it reads leave out.
    pub(super) implied: Option<u32>,
    pub(super) shift: u32,
    /// Of the first pass over packed words: low bits that do not travel. Of the last one over keys of 8 bytes with values: rows that are equal
    /// but for so many low bits are put in order where a warp meets them; 0: none.
    pub(super) drop: u32,
    pub(super) index_bits: u32,
    /// What this pass reads: the key's own data in the first pass, then what travels.
    pub(super) keys: Slice<'a>,
    pub(super) values: Option<Slice<'a>>,
    pub(super) order: Option<&'a Buffer>,
    pub(super) keys_out: Option<&'a Buffer>,
    pub(super) values_out: Option<&'a Buffer>,
}

/// Runs the passes of one sort, which share scratch memory.
pub(super) struct Sorter<'a> {
    device: &'a Device,
    pass: Pass,
    rows: u64,
    wide: bool,
    /// For each pass the ticket in the first line, then 256 words for each tile; zero.
    state: Buffer,
    /// Bytes of one pass, and where the next one's begin.
    stride: usize,
    next: usize,
}

/// A line of the caches: a warp that looks back reads 32 words, of one line or of two. With 16 bytes, passes over 100M pairs of u64
/// took 1.105 ms instead of 1.06.
const TICKET_BYTES: usize = 128;

impl<'a> Sorter<'a> {
    /// For so many passes.
    pub(super) fn new(device: &'a Device, pass: Pass, rows: u64, wide: bool, passes: usize) -> Result<Self> {
        let wide = wide || rows >= WIDE_ROWS;
        let word = if wide { 8 } else { 4 };
        let least = [false, true].map(|loose| {
            let (threads, items) = pass.tile(Ends { first: loose, last: false, loose, implied: false, narrow: false });
            u64::from(threads * items)
        });
        let tiles = tiles(rows, least[0].min(least[1])) as usize;
        let stride = TICKET_BYTES + tiles * DIGITS * word;
        let state = device.alloc_zeroed(OPERATOR, stride * passes)?;
        Ok(Sorter { device, pass, rows, wide, state, stride, next: 0 })
    }

    pub(super) fn run(&mut self, key: &SortKey<'_>, digits: &Digits, run: PassRun<'_>) -> Result<()> {
        let (threads, items) = self.pass.tile(run.ends);
        let source = self.pass.source(self.wide, run.ends);
        let kernel = self.device.kernel(&source, &source.name)?;
        let state = self.next;
        self.next += self.stride;
        assert!(self.next <= self.state.len(), "more passes than were announced");
        let null = Argument::from(0u64);
        let rows = self.rows as usize;
        let numbers = run.ends.last && run.index_bits != 0;
        let key_width = if numbers || run.ends.narrow { 4 } else { self.pass.key_width() };
        for (buffer, width) in [(run.order, 4), (run.keys_out, key_width), (run.values_out, self.pass.value_width())] {
            assert!(buffer.is_none_or(|b| b.len() >= rows * width), "{rows} rows of {width} bytes");
        }
        assert_eq!(run.implied.is_some(), run.ends.implied && !run.ends.first, "words that leave out a digit");
        let or_null = |buffer: Option<&Buffer>| buffer.map_or(null, Argument::from);
        let [data, kind, flip, base] = key.arguments_of(run.keys);
        let arguments: [Argument; 15] = [
            data,
            kind,
            flip,
            base,
            run.values.map_or(null, Argument::from),
            run.implied.map_or(or_null(run.order), |digit| digits.offsets(digit).into()),
            or_null(run.keys_out),
            or_null(run.values_out),
            self.rows.into(),
            u64::from(run.shift).into(),
            u64::from(run.drop).into(),
            u64::from(run.index_bits).into(),
            digits.offsets(run.digit).into(),
            self.state.slice(state + TICKET_BYTES).into(),
            self.state.slice(state).into(),
        ];
        let blocks = tiles(self.rows, u64::from(threads * items));
        let grid = Grid { shared: self.pass.shared(run.ends), ..grid(blocks, threads) };
        // SAFETY: SortPass, in order: what is written has the widths checked above or is null where the kernel allows it
        // (values: numbers the rows; keys_out: not wanted); what is read was written by the pass before, or is the
        // caller's; offsets: 256 u32 of this digit; state: tiles × 256 words and the ticket, zero, of no other pass;
        // implied: 256 u32 of the digit that the words read leave out, or null where they leave out none.
        unsafe { self.device.launch(&kernel, grid, &arguments) }
    }
}
