//! Some rows of several columns in one launch: those that indices name, or that a mask keeps.
//! Kernels in `kernels/gather_columns.cuh`.

use std::sync::Arc;

use super::{grid, tiles};
use crate::error::{Error, Result};
use crate::{Argument, Buffer, Device, KernelSource, Slice};

/// Threads, rows of a block, and columns of a launch: `GATHER_COLUMNS_*` of the kernels.
const THREADS: u32 = 256;
const TILE: u64 = 1024;
const MOST: usize = 16;
/// Words of a column.
const WORDS: usize = 6;
/// Rows of a mask that are counted together: `MASK_TILE` of `kernels/pipeline.cuh`.
pub const MASK_TILE: u64 = 4096;
/// If at most one row in this many stays, each warp lists its share of a mask's tile by itself
/// (`mask_places_of_warp`), and no warp waits for another.
const ROWS_A_FEW: u64 = 16;

/// The mask of the rows that stay, and where each tile's rows begin in the output.
pub struct KeptRows {
    /// A bit for each of `rows`.
    pub mask: Arc<Buffer>,
    /// For each tile of [`MASK_TILE`] rows and the end, how many rows stay before (`u64`).
    pub begins: Arc<Buffer>,
    pub rows: u64,
}

impl KeptRows {
    /// How many rows stay. Waits for the device; a rehearsal assumes `expected`.
    pub fn kept(&self, expected: u64) -> Result<u64> {
        self.begins.read_word_or(self.tiles() as usize * 8, expected)
    }

    /// Tiles of the mask.
    pub fn tiles(&self) -> u64 {
        self.rows.div_ceil(MASK_TILE)
    }

    /// Whether `kept` rows are so few that warps had better work by themselves.
    pub fn are_few(&self, kept: u64) -> bool {
        kept <= self.rows / ROWS_A_FEW
    }
}

/// What becomes of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gathered {
    /// They stay as they are: 1, 2, 4, 8 or 16 bytes, `otherwise` where the index names no row.
    Values { width: usize, otherwise: u64 },
    /// They stay as they are, in every `stride`-th element of the output.
    Strided { width: usize, stride: usize },
    /// A byte: whether the index names a row.
    Present,
    /// A digit of a key: an integer of so many bytes less a number. It is added to `times` what the
    /// output holds, or is the first where `times` is 0. All modulo 2⁶⁴.
    Digit { width: usize, signed: bool, less: u64, times: u64 },
}

impl Gathered {
    /// Bytes of an element that is read, and bytes that are written for so many rows, from the
    /// first of them on.
    fn bytes(self, rows: u64) -> (u64, u64) {
        let (read, element, stride) = match self {
            Gathered::Values { width, .. } => (width, width, 1),
            Gathered::Strided { width, stride } => (width, width, stride),
            Gathered::Present => (0, 1, 1),
            Gathered::Digit { width, .. } => (width, 8, 1),
        };
        let last = rows.saturating_sub(1).saturating_mul(stride as u64);
        (read as u64, if rows == 0 { 0 } else { (last + 1).saturating_mul(element as u64) })
    }

    /// `how`, `word` and `factor` of the kernels' column.
    fn words(self) -> [u64; 3] {
        let logarithm = |width: usize| match width {
            1 | 2 | 4 | 8 | 16 => u64::from(width.trailing_zeros()),
            other => unreachable!("no type has {other} bytes"),
        };
        match self {
            Gathered::Values { width, otherwise } => [logarithm(width), otherwise, 1],
            Gathered::Strided { width, stride } => [logarithm(width), 0, stride as u64],
            Gathered::Present => [5, 0, 1],
            // What is as wide as a word or wider has no sign to extend.
            Gathered::Digit { width, signed, less, times } => {
                [if signed && width < 8 { 16 } else { 8 } + logarithm(width), less, times]
            }
        }
    }
}

/// A column of which rows are gathered.
#[derive(Clone)]
pub struct GatherColumn<'a> {
    pub how: Gathered,
    pub values: Slice<'a>,
    /// The number of each row's value (`u32`), 2³² − 1 where there is none; `None`: the row's own.
    /// Its maker promises that there are as many values.
    pub index: Option<Slice<'a>>,
    /// Where the first row that comes out goes: a buffer, and a byte of it.
    pub out: (Arc<Buffer>, usize),
}

impl GatherColumn<'_> {
    /// The words of the kernels' column. It sees `rows` rows, of which `kept` come out.
    fn arguments(&self, rows: u64, kept: u64) -> [Argument; WORDS] {
        let (read, written) = self.how.bytes(kept);
        let out = self.out.0.slice(self.out.1);
        assert!(out.len() as u64 >= written, "room for {kept} rows");
        match self.index {
            Some(index) => assert!(index.len() as u64 / 4 >= rows, "an index of {rows} rows"),
            None => assert!(
                self.values.len() as u64 >= rows.saturating_mul(read),
                "a column of {rows} rows"
            ),
        }
        let [how, word, factor] = self.how.words();
        let values = Argument::from(self.values).moving_at_most(kept.saturating_mul(read));
        let index =
            self.index.map_or(0u64.into(), |index| Argument::from(index).moving_at_most(kept * 4));
        let out = Argument::from(out).moving_at_most(written);
        [values, index, out, how.into(), word.into(), factor.into()]
    }
}

pub(super) fn source() -> KernelSource {
    KernelSource::new(
        "gather_columns",
        "#include \"gather_columns.cuh\"\nWF_GATHER_COLUMNS_ENTRIES\n",
    )
}

/// All of `rows` rows.
pub fn gather_columns(device: &Device, columns: &[GatherColumn<'_>], rows: u64) -> Result<()> {
    if rows == 0 {
        return Ok(());
    }
    let blocks = blocks(rows, TILE)?;
    for columns in columns.chunks(MOST) {
        let kernel = device.kernel(&source(), "gather_columns")?;
        let mut arguments: Vec<Argument> = vec![rows.into(), (columns.len() as u64).into()];
        push_columns(&mut arguments, columns, rows, rows);
        // SAFETY: GatherColumns { rows; count: at most MOST; columns: values of `rows` rows, or as
        // many as the index names (its maker's promise); index: null or `rows` u32; out: room
        // for `rows` elements; all checked but for the promise }.
        unsafe { device.launch(&kernel, grid(blocks, THREADS), &arguments)? };
    }
    Ok(())
}

/// The rows that stay, `kept` of them.
pub fn gather_kept(
    device: &Device,
    columns: &[GatherColumn<'_>],
    kept_rows: &KeptRows,
    kept: u64,
) -> Result<()> {
    if kept == 0 {
        return Ok(());
    }
    let rows = kept_rows.rows;
    let blocks = blocks(rows, MASK_TILE)?;
    for columns in columns.chunks(MOST) {
        let kernel = device.kernel(&source(), "gather_kept")?;
        let (mask, begins, few) = (&*kept_rows.mask, &*kept_rows.begins, kept_rows.are_few(kept));
        let mut arguments: Vec<Argument> = vec![
            mask.into(),
            begins.into(),
            rows.into(),
            u64::from(few).into(),
            (columns.len() as u64).into(),
        ];
        push_columns(&mut arguments, columns, rows, kept);
        // SAFETY: GatherKept { mask: a bit for each of `rows`; begins: a u64 for each tile, the
        // last begin and count `kept` rows together; rows; few; count: at most MOST; columns: as
        // above, with room for `kept` elements in out }.
        unsafe { device.launch(&kernel, grid(blocks, THREADS), &arguments)? };
    }
    Ok(())
}

fn blocks(rows: u64, tile: u64) -> Result<u64> {
    let blocks = tiles(rows, tile);
    match u32::try_from(blocks) {
        Ok(_) => Ok(blocks),
        Err(_) => Err(Error::unsupported(format!("{rows} rows"), "more than 2^32 tiles")),
    }
}

/// Appends the columns, and as many that are not looked at as the kernels' parameters have room
/// for.
fn push_columns(arguments: &mut Vec<Argument>, columns: &[GatherColumn<'_>], rows: u64, kept: u64) {
    arguments.extend(columns.iter().flat_map(|column| column.arguments(rows, kept)));
    arguments.extend(std::iter::repeat_n(Argument::from(0u64), (MOST - columns.len()) * WORDS));
}

#[cfg(test)]
mod tests;
