//! The passes of a radix sort: shapes of their kernels, launches, and what travels from one to the
//! next. Kernels in `kernels/sort.cuh`.

use super::OPERATOR;
use super::histogram::{DIGITS, DigitHistograms};
use super::key::SortKey;
use crate::error::Result;
use crate::ops::{grid, tiles};
use crate::{Argument, Buffer, Device, Grid, KernelSource, Slice};

/// From this many rows on the words of the look-back have 64 bits instead of 32, of which two hold
/// a status.
const WIDE_ROWS: u64 = 1 << 30;
/// A line of the caches: where a pass's words begin in the middle of one, each warp that looks back
/// reads two lines.
const TICKET_BYTES: usize = 128;

/// The shape of a pass kernel: the types of what travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PassShape {
    /// Keys of 32 bits alone.
    U32,
    /// Keys of 64 bits alone, or packed words.
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

/// The first pass reads the column as it is, the last one writes it so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ends {
    first: bool,
    last: bool,
    /// The pass need not keep the order of rows with the same digit.
    loose: bool,
}

impl PassShape {
    const ALL: [PassShape; 6] = [
        PassShape::U32,
        PassShape::U64,
        PassShape::U32U32,
        PassShape::U32U64,
        PassShape::U64U32,
        PassShape::U64U64,
    ];

    /// The shape for keys and values of these widths in bytes; no values: 0.
    pub(super) fn of(key: usize, value: usize) -> PassShape {
        let fits = |pass: &PassShape| (pass.key_width(), pass.value_width()) == (key, value);
        PassShape::ALL.into_iter().find(fits).expect("keys of 4 or 8 bytes, values of 0, 4 or 8")
    }

    fn name(self, wide: bool, ends: Ends) -> String {
        let (key, value) = self.types();
        let value = value.map(|value| format!("_{value}")).unwrap_or_default();
        let flag = |set: bool, name: &'static str| if set { name } else { "" };
        let (wide, loose) = (flag(wide, "_wide"), flag(ends.loose, "_loose"));
        let (first, last) = (flag(ends.first, "_first"), flag(ends.last, "_last"));
        format!("sort_pass{wide}_{key}{value}{loose}{first}{last}")
    }

    /// Key and value in the kernels' spelling.
    fn types(self) -> (&'static str, Option<&'static str>) {
        match self {
            PassShape::U32 => ("u32", None),
            PassShape::U64 => ("u64", None),
            PassShape::U32U32 => ("u32", Some("u32")),
            PassShape::U32U64 => ("u32", Some("u64")),
            PassShape::U64U32 => ("u64", Some("u32")),
            PassShape::U64U64 => ("u64", Some("u64")),
        }
    }

    pub(super) fn key_width(self) -> usize {
        if matches!(self, PassShape::U32 | PassShape::U32U32 | PassShape::U32U64) { 4 } else { 8 }
    }

    pub(super) fn value_width(self) -> usize {
        match self {
            PassShape::U32 | PassShape::U64 => 0,
            PassShape::U32U32 | PassShape::U64U32 => 4,
            PassShape::U32U64 | PassShape::U64U64 => 8,
        }
    }

    /// Threads of a block and rows of a thread: the largest tile of which two blocks fit a
    /// multiprocessor of an H200 without spilling registers. Larger tiles look back less often.
    fn tile(self, loose: bool) -> (u32, u32) {
        match self {
            PassShape::U32 => (384, 28),
            PassShape::U64 if loose => (384, 16),
            PassShape::U64 => (384, 20),
            PassShape::U32U32 => (512, 16),
            PassShape::U32U64 => (512, 11),
            PassShape::U64U32 => (512, 13),
            PassShape::U64U64 => (512, 12),
        }
    }

    fn tile_rows(self, loose: bool) -> u64 {
        let (threads, items) = self.tile(loose);
        u64::from(threads * items)
    }

    /// Bytes of `SortShared`: counts and masks of each warp, or the tile's keys or values; then a
    /// base for each digit.
    fn shared(self, loose: bool) -> u32 {
        let (threads, items) = self.tile(loose);
        let widest = self.key_width().max(self.value_width()) as u32;
        (threads / 32 * DIGITS as u32 * 8).max(threads * items * widest) + DIGITS as u32 * 4
    }

    fn source(self, wide: bool, ends: Ends) -> KernelSource {
        let name = self.name(wide, ends);
        let (key, value) = self.types();
        let value = value.map_or("wf::SortNothing".into(), |value| format!("wf::{value}"));
        let (threads, items) = self.tile(ends.loose);
        let word = if wide { "wf::u64" } else { "wf::u32" };
        let Ends { first, last, loose } = ends;
        let order = if loose { "SORT_LOOSE" } else { "SORT_STABLE" };
        let stamp = format!(
            "WF_SORT_PASS({name}, wf::{key}, {value}, {word}, {threads}, {items}, {first}, {last}, {order})"
        );
        KernelSource::new(name, format!("#include \"sort.cuh\"\n{stamp}\n"))
    }
}

/// Every pass kernel.
pub(super) fn sources() -> Vec<KernelSource> {
    let mut sources = vec![];
    for pass in PassShape::ALL {
        for (first, last) in [(false, false), (true, false), (false, true), (true, true)] {
            for loose in [false, true] {
                if !loose || (first && pass.value_width() == 0) {
                    sources.extend(
                        [false, true].map(|wide| pass.source(wide, Ends { first, last, loose })),
                    );
                }
            }
        }
    }
    sources
}

/// What becomes of the rows after the last pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaves {
    /// Keys as the column has them, and the values beside them.
    Rows,
    /// Row numbers alone, `u32`.
    Numbers,
    /// Packed words.
    Words,
}

/// Words of a row's number and the highest bits of its key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packing {
    pub(super) index_bits: u32,
    /// Low bits of the key that do not travel.
    pub(super) drop: u32,
}

/// Keys, and the values that travel with them; `None` where there are none.
pub(super) struct Pair {
    pub(super) keys: Option<Buffer>,
    pub(super) values: Option<Buffer>,
}

impl Pair {
    /// Rows of these widths in bytes; none: 0.
    pub(super) fn new(
        device: &Device,
        rows: u64,
        key_width: usize,
        value_width: usize,
    ) -> Result<Pair> {
        let [keys, values] = [key_width, value_width].map(|width| match width {
            0 => Ok(None),
            width => device.alloc(OPERATOR, rows as usize * width).map(Some),
        });
        Ok(Pair { keys: keys?, values: values? })
    }
}

/// The passes of one sort.
pub(super) struct Passes<'a> {
    pub(super) pass: PassShape,
    pub(super) packing: Option<Packing>,
    /// Lowest bit of the key that is sorted: that of the first counted digit.
    pub(super) low: u32,
    /// The first pass takes the rows in this order, `u32 × rows`.
    pub(super) order: Option<&'a Buffer>,
    /// Values beside the keys. A shape with values has row numbers instead if there is none.
    pub(super) payload: Option<Slice<'a>>,
    pub(super) leaves: Leaves,
    /// Words of the look-back have 64 bits, however few rows there are.
    pub(super) wide: bool,
}

impl Passes<'_> {
    /// Runs a pass for each digit that is not the same in all keys. `None`: there is none, so rows
    /// stay where they are.
    pub(super) fn run(
        &self,
        device: &Device,
        key: &SortKey<'_>,
        rows: u64,
        digits: &DigitHistograms,
    ) -> Result<Option<Pair>> {
        let Passes { pass, packing, leaves, .. } = *self;
        let Some(last) = digits.live.len().checked_sub(1) else { return Ok(None) };
        let wide = self.wide || rows >= WIDE_ROWS;
        // For each pass the ticket in a line of its own, then 256 words for each tile.
        let least_tile = pass.tile_rows(false).min(pass.tile_rows(true));
        let stride =
            TICKET_BYTES + tiles(rows, least_tile) as usize * DIGITS * if wide { 8 } else { 4 };
        let state = device.alloc_zeroed(OPERATOR, stride * digits.live.len())?;
        // What the pass before wrote, and what that one read, which this one may write over.
        let (mut from, mut spare): (Option<Pair>, Option<Pair>) = (None, None);
        for (at, &digit) in digits.live.iter().enumerate() {
            let first = from.is_none();
            let ends = Ends {
                first,
                last: at == last && leaves != Leaves::Words,
                loose: first && pass.value_width() == 0 && packing.is_none(),
            };
            let to = match spare.take() {
                _ if ends.last && leaves == Leaves::Numbers && packing.is_some() => {
                    Pair::new(device, rows, 4, 0)?
                }
                _ if ends.last && leaves == Leaves::Numbers => Pair::new(device, rows, 0, 4)?,
                Some(pair) => pair,
                None => Pair::new(device, rows, pass.key_width(), pass.value_width())?,
            };
            let or_null =
                |buffer: Option<&Buffer>| buffer.map_or(Argument::from(0u64), Argument::from);
            let keys = from
                .as_ref()
                .and_then(|pair| pair.keys.as_ref())
                .map_or(key.data, |keys| keys.slice(0));
            let values = match &from {
                Some(pair) => pair.values.as_ref().map(|values| values.slice(0)),
                None => self.payload,
            };
            let begin =
                packing.map_or(self.low, |packing| packing.index_bits + self.low - packing.drop);
            let launch = SortPass {
                key: key.arguments_of(keys),
                values: values.map_or(Argument::from(0u64), Argument::from),
                order: or_null(self.order.filter(|_| first)),
                keys_out: or_null(to.keys.as_ref()),
                values_out: or_null(to.values.as_ref()),
                rows,
                shift: begin + digit * 8,
                drop: packing.map_or(0, |packing| packing.drop),
                index_bits: packing.map_or(0, |packing| packing.index_bits),
                offsets: digits.offsets(digit),
                state: state.slice(at * stride + TICKET_BYTES),
                ticket: state.slice(at * stride),
            };
            let source = pass.source(wide, ends);
            let kernel = device.kernel(&source, &source.name)?;
            let blocks = tiles(rows, pass.tile_rows(ends.loose));
            let grid =
                Grid { shared: pass.shared(ends.loose), ..grid(blocks, pass.tile(ends.loose).0) };
            // SAFETY: `SortPass` { key: rows of the column (checked by the sort's caller), or of the
            // pass before; values: of those widths too, or null; order: rows u32, all below `rows`;
            // keys_out, values_out: rows of the widths that `Pair::new` was given, which are those
            // that this pass writes; offsets: 256 u32 of this digit, whose counts are those of all
            // keys; state and ticket: tiles × 256 words and one, zero, of no other pass }.
            unsafe { device.launch(&kernel, grid, &launch.arguments())? };
            spare = from.replace(to);
        }
        Ok(from)
    }
}

/// `SortPass` of the kernels.
struct SortPass<'a> {
    key: [Argument; 4],
    values: Argument,
    order: Argument,
    keys_out: Argument,
    values_out: Argument,
    rows: u64,
    shift: u32,
    drop: u32,
    index_bits: u32,
    offsets: Slice<'a>,
    state: Slice<'a>,
    ticket: Slice<'a>,
}

impl SortPass<'_> {
    /// In the kernel's order.
    fn arguments(&self) -> [Argument; 15] {
        let [data, kind, flip, base] = self.key;
        let [shift, drop, index_bits] =
            [self.shift, self.drop, self.index_bits].map(|bits| u64::from(bits).into());
        [
            data,
            kind,
            flip,
            base,
            self.values,
            self.order,
            self.keys_out,
            self.values_out,
            self.rows.into(),
            shift,
            drop,
            index_bits,
            self.offsets.into(),
            self.state.into(),
            self.ticket.into(),
        ]
    }
}
