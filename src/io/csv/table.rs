//! The files of a table, and the types that were inferred for their columns.
//!
//! Types are those that fit a sample: the first rows of each file, and rows at places all over it.
//! Whoever reads and finds a value that does not fit asks for what the whole column has
//! ([`CsvTable::seen`]), and reads with the type that follows ([`widen`]).

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parking_lot::Mutex;

use super::blocks::{BLOCK, Block, Blocks, CsvFile, FilePiece};
use super::columns::{FileColumns, PickedValues, given_fields};
use super::dialect::Dialect;
use super::grammar::State;
use super::options::CsvOptions;
use super::parallel::on_cores;
use super::seen::{Seen, widen};
use super::text::CsvContent;
use super::tokens::{Token, Tokens};
use crate::error::{ErrorKind, Result, path_text};
use crate::io::path_columns::PathColumns;

/// CSV files as one table.
#[derive(Debug)]
pub(crate) struct CsvTable {
    pub(crate) files: Vec<Arc<CsvFile>>,
    pub(crate) dialect: Dialect,
    /// Columns of files, and those of paths behind them.
    pub(crate) schema: SchemaRef,
    pub(crate) paths: PathColumns,
    /// By column of files: whether the user gave its type.
    pub(crate) given: Vec<bool>,
    /// By column of files: whether its type may become wider.
    pub(crate) may_widen: Vec<bool>,
    /// Columns in which a reader met a value that does not fit the inferred type.
    misfits: Arc<Mutex<BTreeSet<usize>>>,
}

/// Places of a file at which rows are looked at, and how many bytes each has.
const PLACES: u64 = 16;
const PLACE: u64 = 64 << 10;

impl CsvTable {
    /// Finds out how files are laid out, and infers the types of their columns.
    ///
    /// # Errors
    /// Files that cannot be read or have different columns; rows of the sample that are no rows of
    /// the table; options that do not fit the files.
    pub(crate) fn open(
        paths: &[PathBuf],
        options: &CsvOptions,
        of_paths: PathColumns,
    ) -> Result<CsvTable> {
        let texts = on_cores(paths.len(), |at| CsvContent::open(&paths[at], options.encoding))?;
        let has_bytes: Vec<usize> = (0..texts.len()).filter(|at| texts[*at].is_some()).collect();
        // Empty files have no rows, and tell nothing of the others.
        let of_paths = match has_bytes.len() < texts.len() {
            true => of_paths.of_files(&has_bytes),
            false => of_paths,
        };
        let texts: Vec<CsvContent> = texts.into_iter().flatten().collect();
        let Some(first) = texts.first() else {
            let path = paths.first().cloned().unwrap_or_default();
            return Err(ErrorKind::File { path, message: "is empty".into() }.into());
        };
        let dialect = Dialect::of(first, options)?;
        let rows = on_cores(texts.len(), |at| dialect.first_row(&texts[at]))?;
        let mut columns = FileColumns::of(&texts, &rows, dialect.has_header, options)?;
        let mut given = given_fields(&columns.names, options)?;
        let is_kept: Vec<bool> = columns.names.iter().map(|name| !of_paths.has(name)).collect();
        let whole = Schema::new(
            columns
                .names
                .iter()
                .map(|name| Field::new(name, DataType::Null, true))
                .collect::<Vec<_>>(),
        );
        of_paths.behind(&whole, &paths[0])?;
        columns.retain(&is_kept);
        given = given
            .into_iter()
            .zip(&is_kept)
            .filter(|(_, is_kept)| **is_kept)
            .map(|(given, _)| given)
            .collect();
        let FileColumns { names, layouts } = columns;
        let body = |at: usize| {
            dialect.body(&texts[at], rows[at].as_ref().map_or(u64::MAX, |(_, behind)| *behind))
        };
        let bodies = on_cores(texts.len(), body)?;
        let files = texts.into_iter().zip(bodies).zip(layouts);
        let files = files
            .map(|((text, body), layout)| Arc::new(CsvFile::new(text, body, layout)))
            .collect();
        let inferred: Vec<usize> =
            (0..names.len()).filter(|column| given[*column].is_none()).collect();
        let mut table = CsvTable {
            files,
            dialect,
            schema: Arc::new(Schema::empty()),
            paths: of_paths,
            given: given.iter().map(Option::is_some).collect(),
            may_widen: given.iter().map(|given| given.is_none() && options.widen).collect(),
            misfits: Arc::default(),
        };
        let mut seen = match options.sample_size {
            _ if inferred.is_empty() => vec![],
            Some(rows) => table.sample(&inferred, rows)?,
            None => table.seen(&inferred)?,
        };
        if unfit_format(options, &given, &seen).is_some() {
            // It may fit values that are not in the sample.
            seen = table.seen(&inferred)?;
            if let Some(format) = unfit_format(options, &given, &seen) {
                let message = format!("{format} fits no value of {}", paths[0].display());
                return Err(ErrorKind::Plan { message, location: None }.into());
            }
        }
        let mut seen = seen.into_iter();
        let field = |(name, given): (String, Option<Field>)| match given {
            Some(field) => field.with_name(name).with_nullable(true),
            None => Field::new(name, seen.next().unwrap_or_default().data_type(), true),
        };
        let fields: Vec<Field> = names.into_iter().zip(given).map(field).collect();
        table.schema = Arc::new(table.paths.behind(&Schema::new(fields), &paths[0])?);
        Ok(table)
    }

    /// How many columns come out of files; those behind them are of paths.
    pub(crate) fn columns_of_files(&self) -> usize {
        self.given.len()
    }

    /// The table of some of the files.
    pub(crate) fn of_files(&self, files: &[usize]) -> CsvTable {
        CsvTable {
            files: files.iter().map(|file| self.files[*file].clone()).collect(),
            dialect: self.dialect.clone(),
            schema: self.schema.clone(),
            paths: self.paths.of_files(files),
            given: self.given.clone(),
            may_widen: self.may_widen.clone(),
            misfits: self.misfits.clone(),
        }
    }

    /// The first file, and whether there are others.
    pub(crate) fn named(&self) -> String {
        let more = if self.files.len() > 1 { " and other files" } else { "" };
        let first = self.files.first();
        first.map_or_else(String::new, |file| format!("{}{more}", path_text(&file.text.path)))
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.text.bytes()).sum()
    }

    /// Notes that a value of a column does not fit its inferred type.
    pub(crate) fn note_misfit(&self, column: usize) {
        self.misfits.lock().insert(column);
    }

    /// The table with types that fit all values of the columns with misfits; `None` where no type
    /// became wider. Types that were given stay. Reads everything, on all cores.
    ///
    /// # Errors
    /// As [`CsvTable::seen`].
    pub(crate) fn widened(&self) -> Result<Option<CsvTable>> {
        // Whoever comes at the same time would find out the same.
        let misfits = self.misfits.lock();
        let columns: Vec<usize> =
            misfits.iter().copied().filter(|column| self.may_widen[*column]).collect();
        if columns.is_empty() {
            return Ok(None);
        }
        let mut fields: Vec<Field> =
            self.schema.fields().iter().map(|field| field.as_ref().clone()).collect();
        for (column, seen) in columns.iter().zip(&self.seen(&columns)?) {
            let field = &mut fields[*column];
            field.set_data_type(widen(field.data_type(), seen));
        }
        let schema = Arc::new(Schema::new(fields));
        Ok((schema != self.schema).then(|| CsvTable {
            files: self.files.clone(),
            dialect: self.dialect.clone(),
            schema,
            paths: self.paths.clone(),
            given: self.given.clone(),
            may_widen: self.may_widen.clone(),
            misfits: Arc::default(),
        }))
    }

    /// What all files have in some columns, in the order of these. Reads everything, on all cores.
    ///
    /// # Errors
    /// Rows that are no rows of the table; files that cannot be read; an interrupt.
    pub(crate) fn seen(&self, columns: &[usize]) -> Result<Vec<Seen>> {
        /// Blocks that a core takes at once.
        const BLOCKS: usize = 16;
        let mut pieces = vec![];
        for (number, file) in self.files.iter().enumerate() {
            let states = match file.whole().range.end - file.body > (BLOCKS * BLOCK) as u64 {
                true => file.states(&self.dialect, BLOCK)?,
                false => Arc::new(vec![State::Row; 2]),
            };
            let blocks = states.len() - 1;
            for first in (0..blocks).step_by(BLOCKS) {
                let at = |block: usize| file.body + (block * BLOCK) as u64;
                let end = if first + BLOCKS < blocks {
                    at(first + BLOCKS)
                } else {
                    file.whole().range.end
                };
                pieces.push((number, FilePiece { range: at(first)..end, state: states[first] }));
            }
        }
        let seen = on_cores(pieces.len(), |at| {
            let (number, piece) = &pieces[at];
            let file = &self.files[*number];
            let picked = file.layout.pick(columns);
            let mut blocks = Blocks::new(file, &self.dialect, picked.wanted(), piece, BLOCK)?;
            let mut seen = vec![Seen::default(); columns.len()];
            while let Some(block) = blocks.next()? {
                self.see(&block, &picked, usize::MAX, &mut seen);
            }
            Ok(seen)
        })?;
        Ok(merged(seen, columns.len()))
    }

    /// Adds the values of a block's first rows.
    fn see(&self, block: &Block, picked: &PickedValues, rows: usize, seen: &mut [Seen]) {
        for row in block.spans.chunks_exact(picked.stride.max(1)).take(rows.min(block.rows)) {
            for (slot, seen) in picked.slots.iter().zip(&mut *seen) {
                if let Some(text) = slot.and_then(|slot| self.dialect.text(&block.bytes, row[slot]))
                {
                    seen.add(&text, &self.dialect.notation);
                }
            }
        }
    }

    /// What samples of all files have in some columns, in the order of these.
    fn sample(&self, columns: &[usize], rows: usize) -> Result<Vec<Seen>> {
        // Of many files each is looked at in fewer places.
        let places = (4 * PLACES / self.files.len() as u64).clamp(1, PLACES);
        let seen = on_cores(self.files.len(), |at| {
            let file = &self.files[at];
            let picked = file.layout.pick(columns);
            let mut seen = vec![Seen::default(); columns.len()];
            let end = self.sample_begin(file, &picked, rows, &mut seen)?;
            for at in self.places(file, places, end) {
                self.sample_place(file, at, &picked, rows, &mut seen)?;
            }
            Ok(seen)
        })?;
        Ok(merged(seen, columns.len()))
    }

    /// Looks at the first rows of a file; where those end.
    fn sample_begin(
        &self,
        file: &CsvFile,
        picked: &PickedValues,
        rows: usize,
        seen: &mut [Seen],
    ) -> Result<u64> {
        let mut left = rows;
        let mut blocks =
            Blocks::new(file, &self.dialect, picked.wanted(), &file.whole(), PLACE as usize)?;
        while left > 0 {
            let Some(block) = blocks.next()? else { return Ok(file.whole().range.end) };
            self.see(&block, picked, left, seen);
            if block.rows > left {
                return Ok(block.at);
            }
            left -= block.rows;
        }
        Ok(blocks.at())
    }

    /// Where the places of a file begin, evenly from its begin to its end, behind what was looked
    /// at already.
    fn places(&self, file: &CsvFile, count: u64, seen: u64) -> Vec<u64> {
        let range = file.whole().range;
        let bytes = range.end - range.start;
        let last = bytes - PLACE.min(bytes / count);
        let places = (1..=count).map(|place| range.start + last * place / count);
        places.filter(|at| *at > range.start && at + PLACE > seen).collect()
    }

    /// Looks at rows somewhere in a file, from the first on that certainly is one. Where rows have
    /// another number of values, the place lies inside a long value, or says nothing otherwise.
    fn sample_place(
        &self,
        file: &CsvFile,
        at: u64,
        picked: &PickedValues,
        rows: usize,
        seen: &mut [Seen],
    ) -> Result<()> {
        let mut bytes = vec![];
        let end = file.text.bytes().min(at + PLACE);
        file.text.reader()?.read(at..end, &mut bytes)?;
        if end == file.text.bytes() {
            bytes.push(b'\n');
        }
        let Some(first) = self.dialect.grammar.some_row(&bytes) else { return Ok(()) };
        let mut block = Block { bytes: vec![], at, spans: vec![], rows: 0, skipped: 0 };
        let mut tokens = Tokens::new(&bytes, &self.dialect.grammar, first);
        while block.rows < rows
            && let Token::Row { values, .. } =
                tokens.next(usize::MAX, picked.wanted(), &mut block.spans)
        {
            if values != file.layout.values {
                return Ok(());
            }
            block.rows += 1;
        }
        block.bytes = bytes;
        self.see(&block, picked, rows, seen);
        Ok(())
    }
}

/// A given format of dates or timestamps that no value has, where there is no column of nulls that
/// may have some yet.
fn unfit_format(options: &CsvOptions, given: &[Option<Field>], seen: &[Seen]) -> Option<String> {
    if seen.is_empty() || !seen.iter().all(Seen::is_any) {
        return None;
    }
    let formats = [(&options.date_format, true), (&options.timestamp_format, false)];
    formats.into_iter().find_map(|(format, dates)| {
        let format = format.as_ref()?;
        let mut types = given.iter().flatten().map(Field::data_type);
        let is_used = types
            .any(|dtype| matches!(dtype, DataType::Timestamp(..)) || *dtype == DataType::Date32)
            || seen.iter().any(|seen| seen.has_formatted(dates));
        let of = if dates { "dates" } else { "timestamps" };
        (!is_used).then(|| format!("the format {format:?} of {of}"))
    })
}

fn merged(parts: Vec<Vec<Seen>>, columns: usize) -> Vec<Seen> {
    let mut all = vec![Seen::default(); columns];
    for part in &parts {
        all.iter_mut().zip(part).for_each(|(all, seen)| all.merge(*seen));
    }
    all
}
