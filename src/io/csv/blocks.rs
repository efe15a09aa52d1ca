//! Files read by blocks: the rows that begin in a range of a file, each with its values' places.
//!
//! ```text
//!   file      header│ row │ row │ "ro ⏎ w" │ row │ …
//!   blocks          ├──────────┼──────────┼───────
//!   states          Row        Quoted     Plain        at the begin of each block
//!   pieces          ╰─ rows that begin here ─╯
//! ```
//!
//! Whoever reads a piece must know the state at its begin. A first pass finds what each block makes
//! of every state, on all cores ([`CsvFile::states`]); whoever reads from the begin on needs none.

use std::ops::Range;
use std::sync::Arc;

use memchr::memchr;
use parking_lot::Mutex;

use super::columns::RowLayout;
use super::dialect::Dialect;
use super::grammar::{State, begin_states};
use super::options::Ragged;
use super::parallel::on_cores;
use super::text::{CsvContent, Reader};
use super::tokens::{Token, Tokens, ValueSpan, Wanted};
use crate::error::{Error, ErrorKind, Result};
use warpframe_device::interrupt;

/// Bytes that are read together. The places of their values fit the cache.
pub(crate) const BLOCK: usize = 1 << 20;

/// A file of a table.
#[derive(Debug)]
pub(crate) struct CsvFile {
    pub(crate) text: CsvContent,
    /// Where the rows begin, behind the header.
    pub(crate) body: u64,
    pub(crate) layout: RowLayout,
    states: Mutex<Option<Arc<Vec<State>>>>,
}

/// Rows that begin in a range of a file, in front of which the state is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePiece {
    pub(crate) range: Range<u64>,
    pub(crate) state: State,
}

impl CsvFile {
    pub(crate) fn new(text: CsvContent, body: u64, layout: RowLayout) -> CsvFile {
        CsvFile { text, body, layout, states: Mutex::default() }
    }

    /// All rows.
    pub(crate) fn whole(&self) -> FilePiece {
        FilePiece { range: self.body..self.text.bytes().max(self.body), state: State::Row }
    }

    /// The states at the begins of blocks of so many bytes from the first row on, and at the end.
    ///
    /// # Errors
    /// A file that cannot be read; an interrupt.
    pub(crate) fn states(&self, dialect: &Dialect, block: usize) -> Result<Arc<Vec<State>>> {
        let mut known = self.states.lock();
        if let Some(states) = known.as_ref().filter(|_| block == BLOCK) {
            return Ok(states.clone());
        }
        let (begin, end, block) = (self.body, self.whole().range.end, block as u64);
        let blocks = on_cores((end - begin).div_ceil(block) as usize, |number| {
            let at = begin + number as u64 * block;
            let mut bytes = vec![];
            self.text.reader()?.read(at..end.min(at + block), &mut bytes)?;
            Ok(dialect.grammar.end_states(&bytes))
        })?;
        let states = Arc::new(begin_states(&blocks));
        if block == BLOCK as u64 {
            *known = Some(states.clone());
        }
        Ok(states)
    }

    /// An error about a place in the text.
    pub(crate) fn error(&self, at: u64, column: u64, message: String) -> Error {
        match self.text.line_at(at) {
            Ok(line) => {
                ErrorKind::Parse { path: Some(self.text.path.clone()), line, column, message }
                    .into()
            }
            Err(error) => error,
        }
    }
}

/// Rows that were read together.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) bytes: Vec<u8>,
    /// Where the bytes lie in the text.
    pub(crate) at: u64,
    /// The wanted values of each row, row by row.
    pub(crate) spans: Vec<ValueSpan>,
    pub(crate) rows: usize,
    /// Rows of another number of values that were left out.
    pub(crate) skipped: u64,
}

/// The rows of a piece.
#[derive(Debug)]
pub(crate) struct Blocks<'a> {
    file: &'a CsvFile,
    dialect: &'a Dialect,
    wanted: Wanted<'a>,
    reader: Reader<'a>,
    block: usize,
    /// Bytes in front of which a row begins, or the state is `state`, and where they lie.
    bytes: Vec<u8>,
    at: u64,
    state: State,
    piece_end: u64,
    is_done: bool,
}

impl<'a> Blocks<'a> {
    /// # Errors
    /// A file that cannot be opened.
    pub(crate) fn new(
        file: &'a CsvFile,
        dialect: &'a Dialect,
        wanted: Wanted<'a>,
        piece: &FilePiece,
        block: usize,
    ) -> Result<Blocks<'a>> {
        Ok(Blocks {
            file,
            dialect,
            wanted,
            reader: file.text.reader()?,
            block,
            bytes: vec![],
            at: piece.range.start,
            state: piece.state,
            piece_end: piece.range.end,
            is_done: piece.range.is_empty(),
        })
    }

    /// The rows that are still to come.
    pub(crate) fn rest(&self) -> FilePiece {
        let begin = if self.is_done { self.piece_end } else { self.at };
        FilePiece { range: begin..self.piece_end, state: self.state }
    }

    /// Where the rows lie that come next.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// The next rows, at least one or some that were skipped; `None` behind the last.
    ///
    /// # Errors
    /// Rows of another number of values, and longer ones, than are allowed; a quote that is not
    /// closed; a file that cannot be read; an interrupt.
    pub(crate) fn next(&mut self) -> Result<Option<Block>> {
        let mut more = self.block;
        while !self.is_done {
            interrupt::check()?;
            let is_last = self.read(more)?;
            if self.state != State::Row {
                let Some(first) = self.dialect.grammar.first_row(self.state, &self.bytes) else {
                    self.state = self.dialect.grammar.run(self.state, &self.bytes);
                    self.at += self.bytes.len() as u64;
                    self.bytes.clear();
                    self.is_done = is_last || self.at >= self.piece_end;
                    continue;
                };
                self.drop_front(first);
                self.state = State::Row;
            }
            let (block, end) = self.tokens()?;
            match end {
                Token::Partial { start, quote } if is_last => {
                    let message = "a quote is not closed up to the end of the file".to_string();
                    return Err(self.file.error(
                        self.at + quote.unwrap_or(start) as u64,
                        0,
                        message,
                    ));
                }
                Token::Partial { start, .. } if block.rows == 0 && block.skipped == 0 => {
                    self.drop_front(start);
                    if self.bytes.len() > self.dialect.max_row_bytes {
                        return Err(self.too_long());
                    }
                    // Looked at again, as often as its length is doubled.
                    more = self.bytes.len().max(self.block);
                }
                Token::Partial { start: end, .. } | Token::End(end) => {
                    let is_beyond = self.at + end as u64 >= self.piece_end;
                    self.is_done = is_beyond || (is_last && end >= self.bytes.len());
                    let rest = self.bytes[end..].to_vec();
                    let mut bytes = std::mem::replace(&mut self.bytes, rest);
                    bytes.truncate(end);
                    let at = self.at;
                    self.at += end as u64;
                    if block.rows > 0 || block.skipped > 0 {
                        return Ok(Some(Block { bytes, at, ..block }));
                    }
                    more = self.block;
                }
                Token::Row { .. } => {}
            }
        }
        Ok(None)
    }

    /// Reads further bytes; whether the text has no more.
    fn read(&mut self, more: usize) -> Result<bool> {
        let (from, size) = (self.at + self.bytes.len() as u64, self.file.text.bytes());
        // Behind the piece lies the rest of one row.
        let to = match from < self.piece_end {
            true => self.piece_end.min(from + more as u64),
            false => from + (more as u64).min(64 << 10),
        };
        let to = to.min(size);
        if from < to {
            self.reader.read(from..to, &mut self.bytes)?;
        }
        let is_last = to >= size;
        if is_last && from < size && !matches!(self.bytes.last(), Some(b'\n' | b'\r')) {
            self.bytes.push(b'\n');
        }
        Ok(is_last)
    }

    fn drop_front(&mut self, bytes: usize) {
        self.bytes.drain(..bytes);
        self.at += bytes as u64;
    }

    /// The rows of the bytes at hand that begin in the piece, and what ends them.
    fn tokens(&self) -> Result<(Block, Token)> {
        let mut block = Block { bytes: vec![], at: self.at, spans: vec![], rows: 0, skipped: 0 };
        let until = usize::try_from(self.piece_end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let columns = self.file.layout.values;
        let mut tokens = Tokens::new(&self.bytes, &self.dialect.grammar, 0);
        loop {
            let before = block.spans.len();
            match tokens.next(until, self.wanted, &mut block.spans) {
                Token::Row { values, .. } if values == columns => block.rows += 1,
                Token::Row { start, values } => match self.dialect.ragged {
                    Ragged::Skip => {
                        block.spans.truncate(before);
                        block.skipped += 1;
                    }
                    Ragged::Fill if values < columns => {
                        let wanted =
                            (values..columns).filter(|column| self.wanted.has(*column)).count();
                        block.spans.extend(std::iter::repeat_n(ValueSpan::MISSING, wanted));
                        block.rows += 1;
                    }
                    Ragged::Fill | Ragged::Error => {
                        let row = &self.bytes[start..tokens.at()];
                        let has_quotes = memchr(self.dialect.grammar.quote, row).is_some();
                        let hint = match has_quotes && self.dialect.grammar.quote != 0 {
                            true => "; if its quotes are none, say so by the option quote: ''",
                            false => "",
                        };
                        let message = format!("{values} values where {columns} are expected{hint}");
                        return Err(self.file.error(self.at + start as u64, 0, message));
                    }
                },
                end => return Ok((block, end)),
            }
        }
    }

    fn too_long(&self) -> Error {
        let most = self.dialect.max_row_bytes;
        let message = format!(
            "a row of more than {most} bytes (max_row_bytes); perhaps a quote in it is not closed"
        );
        self.file.error(self.at, 0, message)
    }
}
