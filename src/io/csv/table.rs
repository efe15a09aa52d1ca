//! The files of a table, and the types that were inferred for their columns.
//!
//! Types are those that fit a sample: the first rows of each file, and rows at places all over it.
//! Whoever reads and finds a value that does not fit asks for what the whole column has
//! ([`CsvTable::seen`]), and reads with the type that follows ([`widen`]).

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use datafusion::arrow::compute::can_cast_types;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::blocks::{BLOCK, Block, Blocks, CsvFile, FilePiece};
use super::dialect::{Dialect, unique_names};
use super::grammar::State;
use super::options::CsvOptions;
use super::parallel::on_cores;
use super::seen::{Seen, widen};
use super::text::Text;
use super::tokens::{Token, Tokens, Wanted};
use crate::error::{Error, ErrorKind, Result};

/// CSV files with the same columns.
#[derive(Debug)]
pub(crate) struct CsvTable {
    pub(crate) files: Arc<Vec<CsvFile>>,
    pub(crate) dialect: Dialect,
    pub(crate) schema: SchemaRef,
    /// By column: whether the user gave its type.
    pub(crate) given: Vec<bool>,
    /// By column: whether its type may become wider.
    pub(crate) may_widen: Vec<bool>,
    /// Columns in which a reader met a value that does not fit the inferred type.
    misfits: Mutex<BTreeSet<usize>>,
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
    pub(crate) fn open(paths: &[PathBuf], options: &CsvOptions) -> Result<CsvTable> {
        let texts = on_cores(paths.len(), |at| Text::open(&paths[at], options.encoding))?;
        let Some(first) = texts.first() else { return Err(Error::internal("a table of no files")) };
        let mut dialect = Dialect::of(first, options)?;
        let rows = on_cores(texts.len(), |at| dialect.first_row(&texts[at]))?;
        let names = names(&texts, &rows, dialect.has_header, options)?;
        dialect.columns = names.len();
        let body = |at: usize| dialect.body(&texts[at], rows[at].as_ref().map_or(u64::MAX, |(_, behind)| *behind));
        let bodies = on_cores(texts.len(), body)?;
        let files = texts.into_iter().zip(bodies).map(|(text, body)| CsvFile::new(text, body));
        let files: Arc<Vec<CsvFile>> = Arc::new(files.collect());
        let given = types(&names, options)?;
        let inferred: Vec<bool> = given.iter().map(Option::is_none).collect();
        let schema = Arc::new(Schema::empty());
        let mut table =
            CsvTable { files, dialect, schema, given: vec![], may_widen: vec![], misfits: Mutex::default() };
        let seen = match options.sample_size {
            _ if !inferred.contains(&true) => vec![Seen::default(); names.len()],
            Some(rows) => table.sample(&inferred, rows)?,
            None => table.seen_by(&inferred)?,
        };
        let field = |(name, (given, seen)): (String, (Option<Field>, Seen))| match given {
            Some(field) => field.with_name(name).with_nullable(true),
            None => Field::new(name, seen.data_type(), true),
        };
        let fields: Vec<Field> = names.into_iter().zip(given.into_iter().zip(seen)).map(field).collect();
        table.schema = Arc::new(Schema::new(fields));
        table.may_widen = inferred.iter().map(|inferred| *inferred && options.widen).collect();
        table.given = inferred.iter().map(|inferred| !inferred).collect();
        Ok(table)
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.text.bytes()).sum()
    }

    /// What all files have in some columns, in the order of these. Reads everything, on all cores.
    ///
    /// # Errors
    /// Rows that are no rows of the table; files that cannot be read; an interrupt.
    pub(crate) fn seen(&self, columns: &[usize]) -> Result<Vec<Seen>> {
        let wanted: Vec<bool> = (0..self.dialect.columns).map(|column| columns.contains(&column)).collect();
        let seen = self.seen_by(&wanted)?;
        Ok(columns.iter().filter_map(|column| seen.get(*column).copied()).collect())
    }

    /// Notes that a value of a column does not fit its inferred type.
    pub(crate) fn note_misfit(&self, column: usize) {
        self.misfits.lock().unwrap_or_else(|e| e.into_inner()).insert(column);
    }

    /// The same files, of which the columns with misfits have types that fit all of their values; `None`
    /// where no type became wider. Types that were given stay. Reads everything, on all cores.
    ///
    /// # Errors
    /// As [`CsvTable::seen`].
    pub(crate) fn widened(&self) -> Result<Option<CsvTable>> {
        // Whoever comes at the same time would find out the same.
        let misfits = self.misfits.lock().unwrap_or_else(|e| e.into_inner());
        let columns: Vec<usize> = misfits.iter().copied().filter(|column| self.may_widen[*column]).collect();
        if columns.is_empty() {
            return Ok(None);
        }
        let mut fields: Vec<Field> = self.schema.fields().iter().map(|field| field.as_ref().clone()).collect();
        for (column, seen) in columns.iter().zip(&self.seen(&columns)?) {
            let field = &mut fields[*column];
            field.set_data_type(widen(field.data_type(), seen));
        }
        let schema = Arc::new(Schema::new(fields));
        Ok((schema != self.schema).then(|| CsvTable {
            files: self.files.clone(),
            dialect: self.dialect.clone(),
            schema,
            given: self.given.clone(),
            may_widen: self.may_widen.clone(),
            misfits: Mutex::default(),
        }))
    }

    /// What all files have in the wanted columns; by column.
    fn seen_by(&self, wanted: &[bool]) -> Result<Vec<Seen>> {
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
                let end = if first + BLOCKS < blocks { at(first + BLOCKS) } else { file.whole().range.end };
                pieces.push((number, FilePiece { range: at(first)..end, state: states[first] }));
            }
        }
        let seen = on_cores(pieces.len(), |at| {
            let (number, piece) = &pieces[at];
            let wants = Wanted::Some(wanted);
            let mut blocks = Blocks::new(&self.files[*number], &self.dialect, wants, piece, BLOCK)?;
            let mut seen = vec![Seen::default(); self.dialect.columns];
            while let Some(block) = blocks.next()? {
                self.see(&block, wanted, usize::MAX, &mut seen);
            }
            Ok(seen)
        })?;
        Ok(merged(seen, self.dialect.columns))
    }

    /// Adds the values of a block's first rows.
    fn see(&self, block: &Block, wanted: &[bool], rows: usize, seen: &mut [Seen]) {
        let columns: Vec<usize> = (0..self.dialect.columns).filter(|column| wanted[*column]).collect();
        let spans = block.spans.chunks_exact(columns.len().max(1)).take(rows.min(block.rows));
        for (span, column) in spans.flat_map(|row| row.iter().zip(&columns)) {
            if let Some(text) = self.dialect.text(&block.bytes, *span) {
                seen[*column].add(&text, &self.dialect.notation);
            }
        }
    }

    /// What samples of all files have in the wanted columns.
    fn sample(&self, wanted: &[bool], rows: usize) -> Result<Vec<Seen>> {
        // Of many files each is looked at in fewer places.
        let places = (4 * PLACES / self.files.len() as u64).clamp(1, PLACES);
        let seen = on_cores(self.files.len(), |at| {
            let file = &self.files[at];
            let mut seen = vec![Seen::default(); self.dialect.columns];
            let end = self.sample_begin(file, wanted, rows, &mut seen)?;
            for at in self.places(file, places, end) {
                self.sample_place(file, at, wanted, rows, &mut seen)?;
            }
            Ok(seen)
        })?;
        Ok(merged(seen, self.dialect.columns))
    }

    /// Looks at the first rows of a file; where those end.
    fn sample_begin(&self, file: &CsvFile, wanted: &[bool], rows: usize, seen: &mut [Seen]) -> Result<u64> {
        let mut left = rows;
        let mut blocks = Blocks::new(file, &self.dialect, Wanted::Some(wanted), &file.whole(), PLACE as usize)?;
        while left > 0 {
            let Some(block) = blocks.next()? else { return Ok(file.whole().range.end) };
            self.see(&block, wanted, left, seen);
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
    fn sample_place(&self, file: &CsvFile, at: u64, wanted: &[bool], rows: usize, seen: &mut [Seen]) -> Result<()> {
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
            && let Token::Row { values, .. } = tokens.next(usize::MAX, Wanted::Some(wanted), &mut block.spans)
        {
            if values != self.dialect.columns {
                return Ok(());
            }
            block.rows += 1;
        }
        block.bytes = bytes;
        self.see(&block, wanted, rows, seen);
        Ok(())
    }
}

fn merged(parts: Vec<Vec<Seen>>, columns: usize) -> Vec<Seen> {
    let mut all = vec![Seen::default(); columns];
    for part in &parts {
        all.iter_mut().zip(part).for_each(|(all, seen)| all.merge(*seen));
    }
    all
}

/// The names of the columns of all files.
fn names(
    texts: &[Text],
    rows: &[Option<(Vec<String>, u64)>],
    has_header: bool,
    options: &CsvOptions,
) -> Result<Vec<String>> {
    let file = |text: &Text, message: String| Error::from(ErrorKind::File { path: text.path.clone(), message });
    let given = match (&options.names, &options.schema) {
        (Some(names), _) => Some(names.clone()),
        (None, Some(schema)) => Some(schema.fields().iter().map(|field| field.name().clone()).collect()),
        (None, None) => None,
    };
    let mut first: Option<(&Text, &Vec<String>)> = None;
    for (text, row) in texts.iter().zip(rows) {
        let row = match row {
            Some((row, _)) => row,
            None if has_header => return Err(file(text, "there is no header: no line has a value".into())),
            None => continue,
        };
        if let Some(given) = given.as_ref().filter(|given| given.len() != row.len()) {
            let message = format!("its first row has {} values where {} names are given", row.len(), given.len());
            return Err(file(text, message));
        }
        match first {
            None => first = Some((text, row)),
            Some((path, other)) if has_header && other != row => {
                let (path, own, other) = (path.path.display(), row.join(", "), other.join(", "));
                return Err(file(text, format!("columns {own} differ from {other} of {path}")));
            }
            Some((path, other)) if other.len() != row.len() => {
                let (path, own, other) = (path.path.display(), row.len(), other.len());
                return Err(file(text, format!("its first row has {own} values, that of {path} has {other}")));
            }
            Some(_) => {}
        }
    }
    let names = match (given, first) {
        (Some(given), _) => given,
        (None, Some((_, row))) if has_header => row.clone(),
        (None, Some((_, row))) => vec![String::new(); row.len()],
        (None, None) => return Err(file(&texts[0], "no line has a value: how many columns are there?".into())),
    };
    Ok(unique_names(names))
}

/// The given fields of columns.
fn types(names: &[String], options: &CsvOptions) -> Result<Vec<Option<Field>>> {
    let text = |name: &String| options.all_varchar.then(|| Field::new(name, DataType::Utf8View, true));
    let mut given: Vec<Option<Field>> = names.iter().map(text).collect();
    if let Some(schema) = &options.schema {
        let fields = schema.fields().iter();
        given.iter_mut().zip(fields).for_each(|(given, field)| *given = Some(field.as_ref().clone()));
    }
    for (name, data_type) in &options.types {
        let Some(column) = names.iter().position(|known| known == name) else {
            return Err(ErrorKind::ColumnNotFound { name: name.clone(), known: names.to_vec() }.into());
        };
        given[column] = Some(Field::new(name, data_type.clone(), true));
    }
    for (name, field) in names.iter().zip(&given) {
        if let Some(field) = field
            && !can_cast_types(&DataType::Utf8View, field.data_type())
        {
            let what = format!("column {name:?} of type {}", field.data_type());
            return Err(Error::unsupported(what, "CSV files have types that CAST makes of text"));
        }
    }
    Ok(given)
}
