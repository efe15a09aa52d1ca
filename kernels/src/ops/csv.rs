//! CSV text in device memory to columns. Kernels in `kernels/csv.cuh`.
//!
//! ```text
//!   text of whole rows and a rest ─ scan ─▶ values, rows, where the rest begins   (waits)
//!                                  fields ─▶ where values end and rows begin
//!                                 convert ─▶ values of columns, nulls, what is refused
//! ```

use super::scan::exclusive_scan_u32_narrow;
use super::{grid, tiles};
use crate::error::{Error, Result};
use crate::{Argument, Buffer, Device, KernelSource, Slice};

#[cfg(test)]
mod tests;

const OPERATOR: &str = "csv";
/// `CSV_SEGMENT`, `CSV_THREADS` and `CSV_ROWS` of the kernels.
const SEGMENT: u64 = 64;
const THREADS: u32 = 256;
const ROWS: u32 = 256;
/// Threads of the one block that goes over all tiles.
const STARTS_THREADS: u32 = 1024;
/// Most bytes of a text: places in it, and a little more, fit 32 bits.
pub const MOST_TEXT: u64 = 0xF000_0000;
/// Bytes that may be read behind a text.
pub const BEHIND: usize = 128;

pub(super) fn source() -> KernelSource {
    KernelSource::new("csv", "#include \"csv.cuh\"\nWF_CSV_ENTRIES\n")
}

/// The bytes that mean something beside line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    pub delimiter: u8,
    pub quote: Option<u8>,
    /// Before a byte inside of quotes that then means itself.
    pub escape: Option<u8>,
    /// Begins lines that are no rows.
    pub comment: Option<u8>,
}

impl Marks {
    /// As `csv_marks` of the kernels.
    fn word(self) -> u64 {
        let byte = |of: Option<u8>| u64::from(of.unwrap_or(b'\n'));
        u64::from(self.delimiter)
            | byte(self.quote) << 8
            | byte(self.escape) << 16
            | byte(self.comment) << 24
    }
}

/// Where the automaton stands between two bytes; `csv_state` of the kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsvState(u64);

impl CsvState {
    /// At a row's begin.
    pub const ROW: CsvState = CsvState(0);

    pub fn is_in_row(self) -> bool {
        self.0 >= 2
    }
}

/// Bytes `begin..end` of `text`, which has [`BEHIND`] bytes behind them; `begin` is less than 64.
/// Its address is a multiple of 16.
#[derive(Debug, Clone, Copy)]
pub struct CsvText<'a> {
    pub text: Slice<'a>,
    pub begin: u64,
    pub end: u64,
    pub marks: Marks,
    /// At `begin`.
    pub state: CsvState,
}

/// What a text holds.
#[derive(Debug)]
pub struct ScannedText {
    /// Values, those of a row that does not end, too.
    pub fields: u64,
    /// Rows that end.
    pub rows: u64,
    /// At the text's end.
    pub state: CsvState,
    /// Where the row begins that does not end: the text's end where there is none.
    pub rest: u64,
    states: Buffer,
    field_counts: Buffer,
    row_counts: Buffer,
}

/// Where values and rows of a text lie.
#[derive(Debug)]
pub struct Fields {
    ends: Buffer,
    row_begins: Buffer,
    row_fields: Buffer,
    rows: u64,
}

impl CsvText<'_> {
    fn segments(&self) -> u64 {
        tiles(self.end, SEGMENT)
    }

    /// Counts values and rows. Waits for the device.
    ///
    /// # Errors
    /// `Unsupported` for a text of more than [`MOST_TEXT`] bytes; of the device.
    pub fn scan(&self, device: &Device) -> Result<ScannedText> {
        if self.end > MOST_TEXT {
            return Err(Error::unsupported(
                format!("a CSV text of {} bytes", self.end),
                "places have 32 bits",
            ));
        }
        assert!(self.text.address().is_multiple_of(16), "words of 16 bytes are read");
        assert!(
            self.begin < SEGMENT && self.begin <= self.end,
            "bytes {} to {}",
            self.begin,
            self.end
        );
        assert!(self.text.len() as u64 >= self.segments() * SEGMENT, "whole segments can be read");
        let segments = self.segments();
        let blocks = tiles(segments, u64::from(THREADS));
        let words = |count: u64| device.alloc(OPERATOR, count as usize * 4);
        let (functions, in_tiles) = (words(segments)?, words(blocks)?);
        let states = device.alloc(OPERATOR, segments as usize)?;
        let (field_counts, row_counts) = (words(segments)?, words(segments)?);
        let found = device.alloc_zeroed(OPERATOR, 4 * 8)?;
        let none = || Argument::from(0u64);
        let arguments: [Argument; 17] = [
            self.text.into(),
            self.begin.into(),
            self.end.into(),
            self.marks.word().into(),
            self.state.0.into(),
            segments.into(),
            (&functions).into(),
            (&in_tiles).into(),
            (&states).into(),
            (&field_counts).into(),
            (&row_counts).into(),
            (&found).into(),
            none(),
            none(),
            none(),
            none(),
            none(),
        ];
        for (name, blocks, threads) in [
            ("csv_functions", blocks, THREADS),
            ("csv_starts", 1, STARTS_THREADS),
            ("csv_count", blocks, THREADS),
        ] {
            let kernel = device.kernel(&source(), name)?;
            if segments == 0 {
                continue;
            }
            // SAFETY: `CsvText` { text: whole segments, checked; begin in the first one; functions,
            // states and counts: one a segment; tiles: one a block; found: four zeroed words; what
            // only csv_fields uses is null }.
            unsafe { device.launch(&kernel, grid(blocks, threads), &arguments)? };
        }
        let found = found.read_words(0, 4)?;
        let state = if segments == 0 { self.state } else { CsvState(found[2]) };
        let rest =
            if state.is_in_row() { found[3].saturating_sub(1).max(self.begin) } else { self.end };
        Ok(ScannedText {
            fields: found[0],
            rows: found[1],
            state,
            rest,
            states,
            field_counts,
            row_counts,
        })
    }

    /// Finds where values end and rows begin.
    ///
    /// # Errors
    /// Of the device.
    pub fn fields(&self, device: &Device, scanned: &ScannedText) -> Result<Fields> {
        let segments = self.segments();
        let field_offsets = exclusive_scan_u32_narrow(device, &scanned.field_counts, segments)?;
        let row_offsets = exclusive_scan_u32_narrow(device, &scanned.row_counts, segments)?;
        let words = |count: u64| device.alloc(OPERATOR, count as usize * 4);
        let fields = Fields {
            ends: words(scanned.fields)?,
            row_begins: words(scanned.rows + 1)?,
            row_fields: words(scanned.rows + 1)?,
            rows: scanned.rows,
        };
        let none = || Argument::from(0u64);
        let arguments: [Argument; 17] = [
            self.text.into(),
            self.begin.into(),
            self.end.into(),
            self.marks.word().into(),
            self.state.0.into(),
            segments.into(),
            none(),
            none(),
            (&scanned.states).into(),
            none(),
            none(),
            none(),
            (&field_offsets).into(),
            (&row_offsets).into(),
            (&fields.ends).into(),
            (&fields.row_begins).into(),
            (&fields.row_fields).into(),
        ];
        let kernel = device.kernel(&source(), "csv_fields")?;
        if segments > 0 {
            let grid = grid(tiles(segments, u64::from(THREADS)), THREADS);
            // SAFETY: `CsvText` { text, begin, end, marks: of the scan; states: one a segment, which
            // it wrote; offsets: the sums of its counts, so values and rows are as many as there is
            // room for }. The walk is the scan's: it meets the same values.
            unsafe { device.launch(&kernel, grid, &arguments)? };
        }
        Ok(fields)
    }
}

/// What becomes of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsvKind {
    Bool,
    /// Of so many bytes.
    Signed(u32),
    Unsigned(u32),
    Float(u32),
    /// 8 or 16 bytes; a magnitude as great as the bound is none.
    Decimal {
        width: u32,
        scale: u32,
        bound: u128,
    },
    Date,
    /// Ticks of a second; whether values have a time zone.
    Timestamp {
        per_second: u64,
        zoned: bool,
    },
    Time {
        width: u32,
        per_second: u64,
    },
    /// Views into the text.
    Text,
}

impl CsvKind {
    /// Number in the kernels, bytes of a value, scale or ticks, bound, whether it has a zone.
    fn record(self) -> (u64, u32, u64, u128, bool) {
        match self {
            CsvKind::Bool => (0, 1, 0, 0, false),
            CsvKind::Signed(width) => (1, width, 0, 0, false),
            CsvKind::Unsigned(width) => (2, width, 0, 0, false),
            CsvKind::Float(width) => (3, width, 0, 0, false),
            CsvKind::Decimal { width, scale, bound } => (4, width, scale.into(), bound, false),
            CsvKind::Date => (5, 4, 0, 0, false),
            CsvKind::Timestamp { per_second, zoned } => (6, 8, per_second, 0, zoned),
            CsvKind::Time { width, per_second } => (7, width, per_second, 0, false),
            CsvKind::Text => (8, 16, 0, 0, false),
        }
    }

    /// Bytes of a value.
    pub fn width(self) -> u32 {
        self.record().1
    }
}

/// A column to convert.
#[derive(Debug, Clone, Copy)]
pub struct CsvColumn {
    /// Its place among a row's values.
    pub field: u32,
    pub kind: CsvKind,
    /// Whether the whole text has to be of the type, with nothing lost; else as CAST reads it.
    pub exact: bool,
}

/// How values are read.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// Values that a row should have.
    pub fields: u64,
    /// Whether blanks around values outside of quotes do not count.
    pub trim: bool,
    /// Whether values that a row does not have are null.
    pub fill: bool,
    /// Texts that are null, beside the empty one: views.
    pub nulls: &'a Buffer,
    /// How many.
    pub null_count: u64,
    /// Whether these are null within quotes, too.
    pub quoted_nulls: bool,
    /// [`super::powers::for_parse`].
    pub powers: &'a Buffer,
}

impl Rules<'_> {
    /// `CSV_TRIM` and so on of kernels/csv.cuh.
    fn flags(&self) -> u64 {
        let flags = [self.trim, self.fill, self.quoted_nulls];
        flags.iter().enumerate().map(|(bit, flag)| u64::from(*flag) << bit).sum()
    }
}

/// Values of the columns of a text.
#[derive(Debug)]
pub struct Converted {
    /// Of each column its values and validity, a byte a row.
    pub columns: Vec<(Buffer, Buffer)>,
    /// Words: of each column its nulls and the first row that was refused, all ones for none; then
    /// the first row of another number of values.
    words: Buffer,
}

/// What was found while a text was converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvOutcome {
    /// Of each column.
    pub nulls: Vec<u64>,
    /// Of each column the first row whose value is none of its type.
    pub refused: Vec<Option<u64>>,
    /// The first row of another number of values.
    pub ragged: Option<u64>,
}

impl Converted {
    /// Waits for the device.
    pub fn outcome(&self) -> Result<CsvOutcome> {
        let words = self.words.read_words(0, self.columns.len() * 2 + 1)?;
        let row = |word: u64| (word != u64::MAX).then_some(word);
        Ok(CsvOutcome {
            nulls: words.chunks_exact(2).map(|pair| pair[0]).collect(),
            refused: words.chunks_exact(2).map(|pair| row(pair[1])).collect(),
            ragged: row(words[words.len() - 1]),
        })
    }
}

/// Converts columns of all rows that end. Quotes are taken out of values where they lie: a column
/// can be converted once.
///
/// # Errors
/// Of the device.
pub fn convert(
    device: &Device,
    text: &CsvText<'_>,
    fields: &Fields,
    columns: &[CsvColumn],
    rules: &Rules<'_>,
) -> Result<Converted> {
    let rows = fields.rows;
    let word_count = columns.len() * 2 + 1;
    let mut initial: Vec<u64> = columns.iter().flat_map(|_| [0, u64::MAX]).collect();
    initial.push(u64::MAX);
    let words = device.upload(
        OPERATOR,
        &initial.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>(),
    )?;
    let mut out = vec![];
    let mut records = vec![];
    for (at, column) in columns.iter().enumerate() {
        let (kind, width, scale, bound, zoned) = column.kind.record();
        let data = device.alloc(OPERATOR, rows as usize * width as usize)?;
        let validity = device.alloc(OPERATOR, rows as usize)?;
        let word = words.address() + at as u64 * 16;
        let flags = u64::from(column.exact) | u64::from(zoned) << 1;
        records.extend([
            data.address(),
            validity.address(),
            word,
            word + 8,
            bound as u64,
            (bound >> 64) as u64,
            u64::from(column.field) | kind << 32,
            u64::from(width) | flags << 32,
            scale,
        ]);
        out.push((data, validity));
    }
    let converted = Converted { columns: out, words };
    let blocks = tiles(rows, u64::from(ROWS)) * columns.len() as u64;
    if blocks == 0 {
        return Ok(converted);
    }
    let records = device.upload(
        OPERATOR,
        &records.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>(),
    )?;
    let kernel = device.kernel(&source(), "csv_convert")?;
    let arguments: [Argument; 14] = [
        text.text.into(),
        (&fields.ends).into(),
        (&fields.row_begins).into(),
        (&fields.row_fields).into(),
        rows.into(),
        (&records).into(),
        (columns.len() as u64).into(),
        rules.fields.into(),
        text.marks.word().into(),
        rules.flags().into(),
        rules.nulls.into(),
        rules.null_count.into(),
        rules.powers.into(),
        converted.words.slice((word_count - 1) * 8).into(),
    ];
    assert!(rules.nulls.len() as u64 >= rules.null_count * 16, "texts that are null");
    // SAFETY: CsvConvert { text, with places in it that csv_fields wrote; row_begins and
    // row_fields: one a row and one more; columns: records whose data and validity have all rows,
    // and words; nulls: views, checked; powers: the table; ragged: a word }. Values end before the
    // text does, and what is read beyond has room.
    unsafe { device.launch(&kernel, grid(blocks, ROWS), &arguments)? };
    Ok(converted)
}
