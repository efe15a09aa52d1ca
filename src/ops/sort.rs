//! Stable radix sort of normalised keys. Kernels in `kernels/sort.cuh`.
//!
//! A sort reads the keys once for the histograms of all digits, waits for them (the one synchronisation here: digits
//! that are the same in every key cost nothing afterwards), and makes a pass for each digit that is left.

use super::{grid, numbered, tiles};
use crate::device::{Argument, Buffer, Device, Source};
use crate::error::Result;

const OPERATOR: &str = "sort";
const DIGITS: usize = 256;
const HISTOGRAM_THREADS: u32 = 512;
/// Rows above which the words of the look-back have 64 bits instead of 32.
const WIDE_ROWS: u64 = 1 << 30;

/// One word of a composite sort key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SortWord<'a> {
    /// `u64 × rows`, ascending as unsigned integers in the order wanted; zero above `bits`.
    pub(crate) keys: &'a Buffer,
    /// Significant low bits.
    pub(crate) bits: u32,
}

/// The shape of one pass kernel: what travels, and its tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Keys of 32 bits alone.
    U32,
    /// Keys of 64 bits alone, or packed with row numbers.
    U64,
    /// Keys of 32 bits with values of 32.
    U32U32,
    /// Keys of 64 bits with values of 32.
    U64U32,
    /// Keys of 64 bits with values of 64.
    U64U64,
}

impl Pass {
    const ALL: [Pass; 5] = [Pass::U32, Pass::U64, Pass::U32U32, Pass::U64U32, Pass::U64U64];

    fn name(self, wide: bool) -> &'static str {
        match (self, wide) {
            (Pass::U32, false) => "sort_pass_u32",
            (Pass::U64, false) => "sort_pass_u64",
            (Pass::U32U32, false) => "sort_pass_u32_u32",
            (Pass::U64U32, false) => "sort_pass_u64_u32",
            (Pass::U64U64, false) => "sort_pass_u64_u64",
            (Pass::U32, true) => "sort_pass_wide_u32",
            (Pass::U64, true) => "sort_pass_wide_u64",
            (Pass::U32U32, true) => "sort_pass_wide_u32_u32",
            (Pass::U64U32, true) => "sort_pass_wide_u64_u32",
            (Pass::U64U64, true) => "sort_pass_wide_u64_u64",
        }
    }

    /// Key and value in the kernels' spelling.
    fn types(self) -> (&'static str, &'static str) {
        match self {
            Pass::U32 => ("wf::u32", "wf::SortNothing"),
            Pass::U64 => ("wf::u64", "wf::SortNothing"),
            Pass::U32U32 => ("wf::u32", "wf::u32"),
            Pass::U64U32 => ("wf::u64", "wf::u32"),
            Pass::U64U64 => ("wf::u64", "wf::u64"),
        }
    }

    fn key_width(self) -> usize {
        if matches!(self, Pass::U32 | Pass::U32U32) { 4 } else { 8 }
    }

    fn value_width(self) -> usize {
        match self {
            Pass::U32 | Pass::U64 => 0,
            Pass::U32U32 | Pass::U64U32 => 4,
            Pass::U64U64 => 8,
        }
    }

    /// Threads of a block and rows of a thread: a tile of 8-byte keys just fits static shared memory.
    fn tile(self) -> (u32, u32) {
        match self {
            Pass::U32 | Pass::U32U32 => (384, 18),
            Pass::U64 | Pass::U64U32 => (384, 15),
            Pass::U64U64 => (384, 12),
        }
    }

    fn source(self, wide: bool) -> Source {
        let name = self.name(wide);
        let (key, value) = self.types();
        let (threads, items) = self.tile();
        let word = if wide { "wf::u64" } else { "wf::u32" };
        let stamp = format!("WF_SORT_PASS({name}, {key}, {value}, {word}, {threads}, {items})");
        Source::new(name, format!("#include \"sort.cuh\"\n{stamp}\n"))
    }
}

fn source() -> Source {
    Source::new("sort", "#include \"sort.cuh\"\nWF_SORT_ENTRIES\n")
}

pub(super) fn sources() -> Vec<Source> {
    let passes = Pass::ALL.into_iter().flat_map(|pass| [pass.source(false), pass.source(true)]);
    std::iter::once(source()).chain(passes).collect()
}

/// The rows' numbers in the order of their keys, `u32 × rows`; equal keys stay in the order of their rows.
///
/// `words` come most significant first. Sorts by the last word first, and by each word before it in the order so far.
/// Waits for the device once for each word of more than 0 bits.
pub(crate) fn argsort(device: &Device, words: &[SortWord<'_>], rows: u64) -> Result<Buffer> {
    numbered(OPERATOR, rows)?;
    argsort_by(device, words, rows, rows >= WIDE_ROWS)
}

fn argsort_by(device: &Device, words: &[SortWord<'_>], rows: u64, wide: bool) -> Result<Buffer> {
    let mut order = None;
    if rows > 1 {
        for word in words.iter().rev() {
            order = argsort_word(device, word, rows, order, wide)?;
        }
    }
    match order {
        Some(order) => Ok(order),
        None => identity(device, rows),
    }
}

/// Refines `order` (`None`: the rows as they come) by one word; gives it back where all keys are equal.
fn argsort_word(
    device: &Device,
    word: &SortWord<'_>,
    rows: u64,
    order: Option<Buffer>,
    wide: bool,
) -> Result<Option<Buffer>> {
    let index_bits = 64 - (rows - 1).leading_zeros();
    let packed = word.bits + index_bits <= 64;
    let pass = if packed { Pass::U64 } else { Pass::U64U32 };
    let digits = Digits::count(device, pass, word.keys, rows, word.bits)?;
    let Some(last) = digits.live.len().checked_sub(1) else { return Ok(order) };

    let mut sorter = Sorter::new(device, pass, rows, wide)?;
    let indices = device.alloc(OPERATOR, rows as usize * 4)?;
    // What the pass before wrote, and (swapped in turn) what this one may write over.
    let mut from: Option<Pair> = None;
    let mut spare: Option<Pair> = None;
    for (at, &digit) in digits.live.iter().enumerate() {
        let to = match spare.take() {
            Some(pair) => pair,
            None if at == last => Pair { keys: None, values: None },
            None => Pair::new(device, pass, rows)?,
        };
        let base = if packed { index_bits } else { 0 };
        sorter.run(
            &digits,
            PassRun {
                digit,
                shift: base + digit * 8,
                index_bits: if packed { index_bits } else { 0 },
                pack: packed && from.is_none(),
                keys: from.as_ref().map_or(Some(word.keys), |pair| pair.keys.as_ref()),
                values: from.as_ref().and_then(|pair| pair.values.as_ref()),
                order: if from.is_none() { order.as_ref() } else { None },
                keys_out: if at == last { None } else { to.keys.as_ref() },
                values_out: if at == last && !packed { Some(&indices) } else { to.values.as_ref() },
                indices_out: (at == last && packed).then_some(&indices),
            },
        )?;
        spare = from.replace(to);
    }
    Ok(Some(indices))
}

/// Sorted copy of `u64 × rows`.
pub(crate) fn sort_keys_u64(device: &Device, keys: &Buffer, rows: u64) -> Result<Buffer> {
    Ok(sort_by_key(device, Pass::U64, keys, None, rows)?.0)
}

/// Sorted copy of `u32 × rows`.
pub(crate) fn sort_keys_u32(device: &Device, keys: &Buffer, rows: u64) -> Result<Buffer> {
    Ok(sort_by_key(device, Pass::U32, keys, None, rows)?.0)
}

/// Copies of `u64 × rows` keys and payloads of 4 or 8 bytes in the order of the keys; stable.
pub(crate) fn sort_pairs(
    device: &Device,
    keys: &Buffer,
    payload: &Buffer,
    payload_width: usize,
    rows: u64,
) -> Result<(Buffer, Buffer)> {
    let pass = if payload_width == 4 { Pass::U64U32 } else { Pass::U64U64 };
    assert_eq!(pass.value_width(), payload_width, "payloads of 4 or 8 bytes");
    let (keys, payload) = sort_by_key(device, pass, keys, Some(payload), rows)?;
    Ok((keys, payload.expect("pairs have payloads")))
}

fn sort_by_key(
    device: &Device,
    pass: Pass,
    keys: &Buffer,
    payload: Option<&Buffer>,
    rows: u64,
) -> Result<(Buffer, Option<Buffer>)> {
    numbered(OPERATOR, rows)?;
    let mut from: Option<Pair> = None;
    if rows > 1 {
        let digits = Digits::count(device, pass, keys, rows, pass.key_width() as u32 * 8)?;
        let mut sorter = Sorter::new(device, pass, rows, rows >= WIDE_ROWS)?;
        let mut spare: Option<Pair> = None;
        for &digit in &digits.live {
            let to = match spare.take() {
                Some(pair) => pair,
                None => Pair::new(device, pass, rows)?,
            };
            sorter.run(
                &digits,
                PassRun {
                    digit,
                    shift: digit * 8,
                    index_bits: 0,
                    pack: false,
                    keys: from.as_ref().map_or(Some(keys), |pair| pair.keys.as_ref()),
                    values: from.as_ref().map_or(payload, |pair| pair.values.as_ref()),
                    order: None,
                    keys_out: to.keys.as_ref(),
                    values_out: to.values.as_ref(),
                    indices_out: None,
                },
            )?;
            spare = from.replace(to);
        }
    }
    let sorted = match from {
        Some(sorted) => sorted,
        None => {
            let copy = Pair::new(device, pass, rows)?;
            let width = pass.key_width();
            copy.keys.as_ref().expect("a new pair has keys").copy_from(0, keys, 0, rows as usize * width)?;
            if let (Some(to), Some(payload)) = (&copy.values, payload) {
                to.copy_from(0, payload, 0, rows as usize * pass.value_width())?;
            }
            copy
        }
    };
    Ok((sorted.keys.expect("sorted keys"), sorted.values))
}

/// The rows' numbers as they come.
fn identity(device: &Device, rows: u64) -> Result<Buffer> {
    let order = device.alloc(OPERATOR, rows as usize * 4)?;
    let kernel = device.kernel(&source(), "sort_identity")?;
    let arguments: [Argument; 2] = [(&order).into(), rows.into()];
    // SAFETY: SortIdentity { order: rows u32, allocated above; rows }.
    unsafe { device.launch(&kernel, grid(tiles(rows, 1024).min(4096), 256), &arguments)? };
    Ok(order)
}

/// Keys and values that travel; `None` where the shape has none.
struct Pair {
    keys: Option<Buffer>,
    values: Option<Buffer>,
}

impl Pair {
    fn new(device: &Device, pass: Pass, rows: u64) -> Result<Pair> {
        let keys = Some(device.alloc(OPERATOR, rows as usize * pass.key_width())?);
        let values = match pass.value_width() {
            0 => None,
            width => Some(device.alloc(OPERATOR, rows as usize * width)?),
        };
        Ok(Pair { keys, values })
    }
}

/// Where the rows of each digit begin, and which digits matter.
struct Digits {
    /// `u32 × 256` for each pass.
    offsets: Buffer,
    /// Digits that are not the same in every key, least significant first.
    live: Vec<u32>,
}

impl Digits {
    /// Counts the digits in the low `bits` of every key. Waits for the counts.
    fn count(device: &Device, pass: Pass, keys: &Buffer, rows: u64, bits: u32) -> Result<Digits> {
        assert!(keys.len() as u64 >= rows * pass.key_width() as u64 && bits <= 64, "{rows} keys of {bits} bits");
        let passes = u64::from(bits.div_ceil(8));
        let cells = passes as usize * DIGITS;
        let counts = device.alloc_zeroed(OPERATOR, cells * 8)?;
        let offsets = device.alloc(OPERATOR, cells * 4)?;
        if passes == 0 {
            return Ok(Digits { offsets, live: Vec::new() });
        }
        let name = if pass.key_width() == 4 { "sort_histogram_u32" } else { "sort_histogram_u64" };
        let kernel = device.kernel(&source(), name)?;
        let full = u64::from(device.full_grid(&kernel, HISTOGRAM_THREADS, 0)?);
        let blocks = tiles(rows, u64::from(HISTOGRAM_THREADS) * 4).min(full);
        let arguments: [Argument; 4] = [keys.into(), rows.into(), passes.into(), (&counts).into()];
        // SAFETY: SortHistogram { keys: rows keys, checked; rows; passes ≤ 8; counts: passes × 256 zeroed u64 }.
        unsafe { device.launch(&kernel, grid(blocks, HISTOGRAM_THREADS), &arguments)? };
        let kernel = device.kernel(&source(), "sort_offsets")?;
        let arguments: [Argument; 2] = [(&counts).into(), (&offsets).into()];
        // SAFETY: SortOffsets { counts: passes × 256 u64, offsets: passes × 256 u32 }, one block of 256 for each pass.
        unsafe { device.launch(&kernel, grid(passes, DIGITS as u32), &arguments)? };
        let counts = counts.read_words(0, cells)?;
        let live = counts.chunks_exact(DIGITS).zip(0..).filter(|(digit, _)| !digit.contains(&rows)).map(|(_, at)| at);
        Ok(Digits { offsets, live: live.collect() })
    }
}

/// Everything of a pass but its scratch memory.
struct PassRun<'a> {
    digit: u32,
    shift: u32,
    index_bits: u32,
    pack: bool,
    keys: Option<&'a Buffer>,
    values: Option<&'a Buffer>,
    order: Option<&'a Buffer>,
    keys_out: Option<&'a Buffer>,
    values_out: Option<&'a Buffer>,
    indices_out: Option<&'a Buffer>,
}

/// Runs the passes of one sort, which share scratch memory.
struct Sorter<'a> {
    device: &'a Device,
    pass: Pass,
    rows: u64,
    wide: bool,
    /// The ticket in the first 16 bytes, then 256 words for each tile.
    state: Buffer,
}

const TICKET_BYTES: usize = 16;

impl<'a> Sorter<'a> {
    fn new(device: &'a Device, pass: Pass, rows: u64, wide: bool) -> Result<Self> {
        let word = if wide { 8 } else { 4 };
        let (threads, items) = pass.tile();
        let tiles = tiles(rows, u64::from(threads * items)) as usize;
        let state = device.alloc(OPERATOR, TICKET_BYTES + tiles * DIGITS * word)?;
        Ok(Sorter { device, pass, rows, wide, state })
    }

    fn run(&mut self, digits: &Digits, run: PassRun<'_>) -> Result<()> {
        let (threads, items) = self.pass.tile();
        let kernel = self.device.kernel(&self.pass.source(self.wide), self.pass.name(self.wide))?;
        self.state.fill(0)?;
        let null = Argument::from(0u64);
        let or_null = |buffer: Option<&Buffer>| buffer.map_or(null, Argument::from);
        let rows = self.rows as usize;
        let (key, value) = (self.pass.key_width(), self.pass.value_width());
        for (buffer, width) in
            [(run.keys, key), (run.values, value), (run.order, 4), (run.keys_out, key), (run.values_out, value)]
        {
            assert!(buffer.is_none_or(|b| b.len() >= rows * width), "{rows} rows of {width} bytes");
        }
        let arguments: [Argument; 13] = [
            or_null(run.keys),
            or_null(run.values),
            or_null(run.order),
            or_null(run.keys_out),
            or_null(run.values_out),
            or_null(run.indices_out),
            self.rows.into(),
            u64::from(run.shift).into(),
            u64::from(run.index_bits).into(),
            u64::from(run.pack).into(),
            digits.offsets.slice(run.digit as usize * DIGITS * 4).into(),
            self.state.slice(TICKET_BYTES).into(),
            (&self.state).into(),
        ];
        let blocks = tiles(self.rows, u64::from(threads * items));
        // SAFETY: SortPass, in order: the buffers have the widths checked above or are null where the kernel allows it
        // (values: numbers the rows; keys_out: not wanted; indices_out: rows u32); offsets: 256 u32 of this digit;
        // state: tiles × 256 words and the ticket, zeroed above.
        unsafe { self.device.launch(&kernel, grid(blocks, threads), &arguments) }
    }
}

#[cfg(test)]
mod tests;
