//! CSV files read by the device: threads feed it bytes (`io/feeding.rs`), kernels do the rest.
//!
//! ```text
//!   file     │ stretch 0          │ stretch 1          │ stretch 2      │
//!   texts    │ whole rows    │rest│
//!                            │rest│ whole rows   │rest │
//!                                                │rest │ whole rows     │
//! ```
//!
//! Where rows end is known only when all bytes before were looked at. So the rest of a stretch, a
//! row that does not end in it, is put in front of the next one, and each text begins with a row.
//!
//! What the device does not read, or finds wrong, is a reason, not an error: the host's reader has
//! the last word, and names file, line and column.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, TimeUnit};

use super::blocks::CsvFile;
use super::options::Ragged;
use super::table::CsvTable;
use super::text::Reader;
use crate::column::{Column, Repr};
use crate::error::{Error, Result};
use crate::io::constant::of_runs;
use crate::io::feeding::{Further, Room, Stretch, feed};
use warpframe_device::ops::characters::{gathered, lengths};
use warpframe_device::ops::csv::{
    BEHIND, Converted, CsvColumn, CsvKind, CsvOutcome, CsvState, CsvText, MOST_TEXT, Marks, Rules,
    convert,
};
use warpframe_device::ops::powers;
use warpframe_device::{Buffer, Device};

#[cfg(test)]
mod tests;

const OPERATOR: &str = "csv";
/// Bytes of a file that are brought to the device together: a part of all, so that some are
/// converted while others are copied, within these bounds.
const STRETCHES: u64 = 16;
const LEAST_STRETCH: u64 = 8 << 20;
const MOST_STRETCH: u64 = 64 << 20;
/// Room in front of a stretch for the rest of the one before.
const REST: usize = 64 << 10;
/// Texts begin at multiples of it.
const ALIGNED: usize = 64;
/// Bytes of a view in its column.
const VIEW_WIDTH: usize = 16;

/// What came of reading columns.
#[derive(Debug)]
pub(super) enum DeviceRead {
    /// The number of rows, and the columns.
    Rows(u64, Vec<Column>),
    /// Values of these columns do not fit their inferred types.
    Refused(Vec<usize>),
    /// Why the host's reader is to read them.
    ByHost(String),
}

/// Reads columns of a table, or its first `fetch` rows and perhaps more.
///
/// # Errors
/// [`crate::ErrorKind::Io`] of a file that cannot be read; of the device.
pub(super) fn read(
    device: &Device,
    table: &CsvTable,
    wanted: &[usize],
    fetch: Option<u64>,
) -> Result<DeviceRead> {
    let stretch = (table.bytes() / STRETCHES).clamp(LEAST_STRETCH, MOST_STRETCH);
    read_by(device, table, wanted, fetch, stretch)
}

/// Reads columns of a table by stretches of `stretch` bytes.
fn read_by(
    device: &Device,
    table: &CsvTable,
    wanted: &[usize],
    fetch: Option<u64>,
    stretch: u64,
) -> Result<DeviceRead> {
    let in_files: Vec<usize> =
        wanted.iter().copied().filter(|column| *column < table.columns_of_files()).collect();
    let conversions = match conversions(table, &in_files) {
        Ok(conversions) => conversions,
        Err(reason) => return Ok(DeviceRead::ByHost(reason)),
    };
    let stretches = stretches(table, stretch);
    let readers = table.files.iter().map(|file| file.text.reader()).collect::<Result<Vec<_>>>()?;
    device.count_wanted_of_files(table.bytes());
    let mut texts = Texts::new(device, table, (in_files, conversions), &stretches, fetch)?;
    let fill = |file: usize, at: u64, bytes: &mut [u8]| -> Result<()> {
        Reader::fill(&readers[file], at, bytes)
    };
    let room = Room { before: REST, behind: BEHIND + 1 };
    feed(device, &stretches, room, fill, |number, bytes| texts.add(number, bytes))?;
    texts.finish(wanted)
}

/// Stretches of all files, a file's one after the other.
fn stretches(table: &CsvTable, bytes: u64) -> Vec<Stretch> {
    let of = |(file, range): (usize, std::ops::Range<u64>)| {
        let begins = range.clone().step_by(bytes as usize);
        begins.map(move |begin| Stretch { file, range: begin..range.end.min(begin + bytes) })
    };
    table.files.iter().map(|file| file.whole().range).enumerate().flat_map(of).collect()
}

/// What becomes of the values of a column.
#[derive(Debug, Clone, Copy)]
struct Conversion {
    kind: CsvKind,
    /// Whether the whole text has to be of the type.
    exact: bool,
}

/// What becomes of the values of columns, or why the device does not read them.
fn conversions(
    table: &CsvTable,
    columns: &[usize],
) -> std::result::Result<Vec<Conversion>, String> {
    if table.dialect.ragged == Ragged::Skip || table.dialect.misfits_are_skipped {
        return Err("rows that do not fit its columns are left out".into());
    }
    let of = |column: &usize| {
        let dtype = table.schema.field(*column).data_type();
        let kind = kind(dtype).ok_or_else(|| format!("type {dtype}"))?;
        if kind != CsvKind::Text && !table.dialect.notation.is_plain() {
            return Err("its options say how numbers and dates are written".to_string());
        }
        Ok(Conversion { kind, exact: !table.given[*column] })
    };
    columns.iter().map(of).collect()
}

/// The columns that a file's rows have.
struct FileConversions {
    columns: Vec<CsvColumn>,
    /// Of each wanted column its place among these; `None` where the file lacks it.
    places: Vec<Option<usize>>,
}

impl FileConversions {
    /// Where a file has none of the columns, its first values are converted, so that its rows are
    /// looked at.
    fn of(file: &CsvFile, columns: &[usize], conversions: &[Conversion]) -> FileConversions {
        let (mut own, mut places) = (vec![], vec![]);
        for (column, Conversion { kind, exact }) in columns.iter().zip(conversions) {
            places.push(file.layout.value(*column).map(|value| {
                own.push(CsvColumn { field: value as u32, kind: *kind, exact: *exact });
                own.len() - 1
            }));
        }
        if own.is_empty() {
            own.push(CsvColumn { field: 0, kind: CsvKind::Text, exact: false });
        }
        FileConversions { columns: own, places }
    }

    /// Whether strings are among the wanted columns.
    fn texts(&self) -> impl Iterator<Item = usize> {
        self.places.iter().flatten().copied().filter(|at| self.columns[*at].kind == CsvKind::Text)
    }
}

fn kind(dtype: &DataType) -> Option<CsvKind> {
    let per_second = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    let width = || Repr::of(dtype).map(|repr| repr.width() as u32);
    Some(match dtype {
        DataType::Boolean => CsvKind::Bool,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            CsvKind::Signed(width()?)
        }
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
            CsvKind::Unsigned(width()?)
        }
        DataType::Float32 | DataType::Float64 => CsvKind::Float(width()?),
        DataType::Decimal128(precision, scale) => CsvKind::Decimal {
            width: width()?,
            scale: u32::try_from(*scale).ok()?,
            bound: 10u128.checked_pow(u32::from(*precision))?,
        },
        DataType::Date32 => CsvKind::Date,
        DataType::Timestamp(unit, None) => {
            CsvKind::Timestamp { per_second: per_second(unit), zoned: false }
        }
        // Texts without an offset would be local times of another zone.
        DataType::Timestamp(unit, Some(zone))
            if matches!(zone.as_ref(), "+00:00" | "UTC" | "Z") =>
        {
            CsvKind::Timestamp { per_second: per_second(unit), zoned: true }
        }
        DataType::Time32(unit) | DataType::Time64(unit) => {
            CsvKind::Time { width: width()?, per_second: per_second(unit) }
        }
        DataType::Utf8View | DataType::Utf8 | DataType::LargeUtf8 => CsvKind::Text,
        _ => return None,
    })
}

/// Bytes in device memory.
struct Region {
    bytes: Arc<Buffer>,
    begin: usize,
    end: usize,
}

/// The rows of a text, converted.
struct ConvertedText {
    file: usize,
    rows: u64,
    converted: Converted,
    /// What strings point into.
    characters: Vec<Arc<Buffer>>,
}

/// The texts of a table, one after the other.
struct Texts<'a> {
    device: &'a Device,
    table: &'a CsvTable,
    /// Columns of files.
    columns: Vec<usize>,
    conversions: Vec<Conversion>,
    /// By file.
    in_files: Vec<FileConversions>,
    stretches: &'a [Stretch],
    fetch: Option<u64>,
    marks: Marks,
    /// Views of texts that are null, and what they point into.
    nulls: (Buffer, Buffer),
    powers: Buffer,
    /// What is left of the stretch before, and the state at its begin.
    rest: Option<Region>,
    state: CsvState,
    pieces: Vec<ConvertedText>,
    rows: u64,
    given_up: Option<String>,
}

impl<'a> Texts<'a> {
    fn new(
        device: &'a Device,
        table: &'a CsvTable,
        (columns, conversions): (Vec<usize>, Vec<Conversion>),
        stretches: &'a [Stretch],
        fetch: Option<u64>,
    ) -> Result<Self> {
        let grammar = &table.dialect.grammar;
        let quote = (grammar.quote != 0).then_some(grammar.quote);
        let escape = grammar.escape.filter(|escape| Some(*escape) != quote);
        let marks = Marks { delimiter: grammar.delimiter, quote, escape, comment: grammar.comment };
        let in_files = table
            .files
            .iter()
            .map(|file| FileConversions::of(file, &columns, &conversions))
            .collect();
        Ok(Texts {
            device,
            table,
            columns,
            conversions,
            in_files,
            stretches,
            fetch,
            marks,
            nulls: null_texts(device, &table.dialect.nulls)?,
            powers: device.upload(OPERATOR, powers::for_parse())?,
            rest: None,
            state: CsvState::ROW,
            pieces: vec![],
            rows: 0,
            given_up: None,
        })
    }

    /// Converts the rows that end in a stretch, whose bytes lie behind room for the rest before.
    fn add(&mut self, number: usize, bytes: Arc<Buffer>) -> Result<Further> {
        let stretch = &self.stretches[number];
        let is_last = self.stretches.get(number + 1).is_none_or(|next| next.file != stretch.file);
        let length = (stretch.range.end - stretch.range.start) as usize;
        let mut region = self.behind_rest(bytes, length)?;
        if is_last {
            // Ends the last row, where nothing else does.
            region.bytes.write(region.end, b"\n")?;
            region.end += 1;
        }
        let base = region.begin / ALIGNED * ALIGNED;
        let (begin, end) = ((region.begin - base) as u64, (region.end - base) as u64);
        let dialect = &self.table.dialect;
        if end > MOST_TEXT || region.end - region.begin > length + dialect.max_row_bytes {
            return Ok(self.give_up("a row has more bytes than it may have"));
        }
        let text = CsvText {
            text: region.bytes.slice(base),
            begin,
            end,
            marks: self.marks,
            state: self.state,
        };
        let scanned = text.scan(self.device)?;
        self.device.count_read_of_files(length as u64);
        if is_last && scanned.state.is_in_row() {
            return Ok(self.give_up("a quote is not closed"));
        }
        let fields = text.fields(self.device, &scanned)?;
        let rules = Rules {
            fields: self.table.files[stretch.file].layout.values as u64,
            trim: dialect.trim,
            fill: dialect.ragged == Ragged::Fill,
            nulls: &self.nulls.0,
            null_count: dialect.nulls.len() as u64,
            quoted_nulls: dialect.quoted_nulls,
            powers: &self.powers,
        };
        let converted =
            convert(self.device, &text, &fields, &self.in_files[stretch.file].columns, &rules)?;
        let characters = self.characters(stretch.file, scanned.rows, &converted, &region)?;
        self.pieces.push(ConvertedText {
            file: stretch.file,
            rows: scanned.rows,
            converted,
            characters,
        });
        self.rows += scanned.rows;
        // A row that goes on is looked at again from its begin.
        self.state =
            if is_last || scanned.state.is_in_row() { CsvState::ROW } else { scanned.state };
        let begin = base + scanned.rest as usize;
        self.rest = (!is_last && begin < region.end).then_some(Region { begin, ..region });
        let is_enough = self.fetch.is_some_and(|fetch| self.rows >= fetch);
        Ok(if is_enough { Further::Enough } else { Further::More })
    }

    /// What the strings of a text's rows point into: the text, or where they are a small part of it
    /// characters of their own. The memory of the text is needed for further stretches.
    fn characters(
        &self,
        file: usize,
        rows: u64,
        converted: &Converted,
        region: &Region,
    ) -> Result<Vec<Arc<Buffer>>> {
        let views = || self.in_files[file].texts().map(|at| &converted.columns[at].0);
        if rows == 0 || views().next().is_none() {
            return Ok(vec![]);
        }
        let found = views()
            .map(|views| lengths(self.device, views, rows))
            .collect::<Result<Vec<_>, _>>()?;
        let bytes: u64 = found.iter().map(|lengths| lengths.total).sum();
        if bytes as usize >= (region.end - region.begin) / 2 {
            return Ok(vec![region.bytes.clone()]);
        }
        let own = views()
            .zip(&found)
            .map(|(views, lengths)| Ok(Arc::new(gathered(self.device, views, lengths)?)));
        own.collect()
    }

    fn give_up(&mut self, reason: &str) -> Further {
        self.given_up = Some(reason.into());
        Further::Enough
    }

    /// The bytes of a stretch with the rest of the one before in front of them.
    fn behind_rest(&mut self, bytes: Arc<Buffer>, length: usize) -> Result<Region> {
        let Some(rest) = self.rest.take() else {
            return Ok(Region { bytes, begin: REST, end: REST + length });
        };
        let left = rest.end - rest.begin;
        if left <= REST {
            bytes.copy_from(REST - left, &rest.bytes, rest.begin, left)?;
            return Ok(Region { bytes, begin: REST - left, end: REST + length });
        }
        let both = self.device.alloc(OPERATOR, left + length + BEHIND + 1)?;
        both.copy_from(0, &rest.bytes, rest.begin, left)?;
        both.copy_from(left, &bytes, REST, length)?;
        Ok(Region { bytes: Arc::new(both), begin: 0, end: left + length })
    }

    /// The columns, when all texts were converted.
    fn finish(self, wanted: &[usize]) -> Result<DeviceRead> {
        if let Some(reason) = self.given_up {
            return Ok(DeviceRead::ByHost(reason));
        }
        let outcomes = self
            .pieces
            .iter()
            .map(|piece| piece.converted.outcome())
            .collect::<Result<Vec<_>, _>>()?;
        if outcomes.iter().any(|outcome| outcome.ragged.is_some()) {
            return Ok(DeviceRead::ByHost("a row has another number of values".into()));
        }
        let is_refused = |at: &usize| {
            let of_piece = self.pieces.iter().zip(&outcomes);
            of_piece
                .filter_map(|(piece, outcome)| Some(outcome.refused[self.place(piece, *at)?]))
                .any(|row| row.is_some())
        };
        let refused: Vec<usize> =
            (0..self.columns.len()).filter(is_refused).map(|at| self.columns[at]).collect();
        if !refused.is_empty() {
            return Ok(match refused.iter().all(|column| self.table.may_widen[*column]) {
                true => DeviceRead::Refused(refused),
                false => DeviceRead::ByHost("the device does not read one of its values".into()),
            });
        }
        let mut in_files = vec![];
        for (at, column) in self.columns.iter().enumerate() {
            in_files.push(self.column(
                at,
                self.table.schema.field(*column).data_type(),
                &outcomes,
            )?);
        }
        Column::survey(self.device, in_files.iter_mut())?;
        let mut in_files = in_files.into_iter();
        let columns =
            wanted.iter().map(|column| match column.checked_sub(self.table.columns_of_files()) {
                Some(field) => self.of_paths(field),
                None => {
                    in_files.next().ok_or_else(|| Error::internal("a column of files was not read"))
                }
            });
        Ok(DeviceRead::Rows(self.rows, columns.collect::<Result<_>>()?))
    }

    /// A column of paths.
    fn of_paths(&self, field: usize) -> Result<Column> {
        let mut runs = vec![0; self.table.files.len()];
        self.pieces.iter().for_each(|piece| runs[piece.file] += piece.rows);
        of_runs(self.device, &self.table.paths.column(field)?, &runs)
    }

    /// Which of a piece's columns a wanted one is.
    fn place(&self, piece: &ConvertedText, at: usize) -> Option<usize> {
        self.in_files[piece.file].places[at]
    }

    /// A column of all pieces.
    fn column(&self, at: usize, dtype: &DataType, outcomes: &[CsvOutcome]) -> Result<Column> {
        let (rows, width) = (self.rows as usize, self.conversions[at].kind.width() as usize);
        let pieces = || self.pieces.iter().filter(|piece| piece.rows > 0);
        let is_absent = pieces().any(|piece| self.place(piece, at).is_none());
        let nulls = |(piece, outcome): (&ConvertedText, &CsvOutcome)| {
            self.place(piece, at).is_some_and(|place| outcome.nulls[place] > 0)
        };
        let has_nulls = is_absent || self.pieces.iter().zip(outcomes).any(nulls);
        // Under nulls of files that lack the column nobody writes anything.
        let alloc = |bytes: usize| match is_absent {
            true => self.device.alloc_zeroed(OPERATOR, bytes),
            false => self.device.alloc(OPERATOR, bytes),
        };
        let data = alloc(rows * width)?;
        let validity = has_nulls.then(|| alloc(rows)).transpose()?;
        let mut row = 0;
        for piece in pieces() {
            if let Some(place) = self.place(piece, at) {
                let (values, valid) = &piece.converted.columns[place];
                data.copy_from(row * width, values, 0, piece.rows as usize * width)?;
                if let Some(validity) = &validity {
                    validity.copy_from(row, valid, 0, piece.rows as usize)?;
                }
            }
            row += piece.rows as usize;
        }
        let column = Column::plain(dtype.clone(), rows, Arc::new(data), validity.map(Arc::new));
        if self.conversions[at].kind != CsvKind::Text {
            return Ok(column);
        }
        let characters = pieces().flat_map(|piece| piece.characters.iter().cloned()).collect();
        Column { characters, ..column }.settled(self.device)
    }
}

/// Views of texts, and their characters.
fn null_texts(device: &Device, texts: &[Vec<u8>]) -> Result<(Buffer, Buffer)> {
    /// Bytes of a text that lies in its view.
    const INLINE: usize = 12;
    let characters = device.upload(OPERATOR, &[&texts.concat()[..], &[0]].concat())?;
    let (mut views, mut at) = (vec![0; texts.len().max(1) * VIEW_WIDTH], 0);
    for (view, text) in views.chunks_exact_mut(VIEW_WIDTH).zip(texts) {
        view[..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
        let shown = text.len().min(if text.len() > INLINE { 4 } else { INLINE });
        view[4..4 + shown].copy_from_slice(&text[..shown]);
        if text.len() > INLINE {
            view[8..].copy_from_slice(&(characters.address() + at).to_le_bytes());
        }
        at += text.len() as u64;
    }
    Ok((device.upload(OPERATOR, &views)?, characters))
}
