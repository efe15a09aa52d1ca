//! Rows of JSON in blocks of text: values one behind the other, in a line each or over several
//! lines, or the members of one array.
//!
//! ```text
//!   file    [ {"a": 1},          {"a": [   null ]
//!             2]}, null ]
//!   block     {"a": 1}           {"a": [
//!             2]}  {}
//! ```
//!
//! What stands between rows becomes blanks, so that a block is values, one behind the other. A row
//! that is null may become an empty object. Whatever is wrong within a row is left to who reads it.
//! Where each line is read by itself, lines that are no JSON become blanks, too.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use memchr::{memchr2, memrchr};

use super::cursor::Cursor;
use crate::error::{Error, ErrorKind, Result};
use crate::io::csv::Packed;
use crate::io::spool;

/// Bytes of a block; one has at least a row. The first ones are smaller: a few rows may be enough.
const BLOCK: usize = 4 << 20;
const FIRST_BLOCK: usize = 64 << 10;
/// Most bytes of a row.
const LONGEST: usize = 1 << 30;
/// A byte order mark.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// How rows stand in a text, and what becomes of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct JsonLayout {
    /// Each value is a row, also where the first one is an array.
    pub(super) lines: bool,
    /// A row that is null becomes an object without fields.
    pub(super) null_is_object: bool,
    /// No row goes on in the next line: one that is no JSON spoils its own line alone.
    pub(super) line_by_line: bool,
}

/// Some rows.
pub(super) struct RowBlock {
    pub(super) bytes: Vec<u8>,
    /// The line of the first byte, from 1 on.
    pub(super) line: u64,
    /// None before lines that are read by themselves were looked at.
    pub(super) rows: usize,
    layout: JsonLayout,
}

impl RowBlock {
    /// # Errors
    /// Bytes that are no UTF-8.
    pub(super) fn text(&self, path: &Path) -> Result<&str> {
        let text = std::str::from_utf8(&self.bytes);
        text.map_err(|error| self.wrong(path, error.valid_up_to(), "it is no UTF-8"))
    }

    /// The block without lines that are no JSON, and how many these are, where each line is read by
    /// itself.
    pub(super) fn without_bad_lines(mut self) -> (RowBlock, u64) {
        let mut left_out = 0;
        if !self.layout.line_by_line {
            return (self, left_out);
        }
        for line in self.bytes.split_mut(|byte| *byte == b'\n') {
            match rows_of_line(line) {
                Some((rows, nulls)) => {
                    self.rows += rows;
                    for at in nulls.into_iter().filter(|_| self.layout.null_is_object) {
                        line[at..at + NULL.len()].copy_from_slice(EMPTY);
                    }
                }
                None => {
                    left_out += 1;
                    line.fill(b' ');
                }
            }
        }
        (self, left_out)
    }

    /// Whether the first line that is not blank is rows by itself, and begins no array.
    pub(super) fn begins_with_rows(&self) -> bool {
        let mut lines = self.bytes.split(|byte| *byte == b'\n').map(|line| line.trim_ascii());
        let first = lines.find(|line| !line.is_empty());
        first.is_some_and(|line| line[0] != b'[' && rows_of_line(line).is_some())
    }

    /// Where a row of it begins, the first one being 0.
    pub(super) fn begin_of(&self, row: usize) -> usize {
        let mut cursor = Cursor::new(std::str::from_utf8(&self.bytes).unwrap_or_default());
        for _ in 0..row {
            if cursor.value().is_err() {
                break;
            }
        }
        cursor.peek();
        cursor.at()
    }

    /// The error of a place in it.
    pub(super) fn wrong(&self, path: &Path, at: usize, what: &str) -> Error {
        wrong(path, self.line + lines(&self.bytes[..at.min(self.bytes.len())]), what)
    }
}

/// How many values a line has, and where those begin that are null; `None` where it is no JSON.
fn rows_of_line(line: &[u8]) -> Option<(usize, Vec<usize>)> {
    let mut cursor = Cursor::new(std::str::from_utf8(line).ok()?);
    let (mut rows, mut nulls) = (0, vec![]);
    while cursor.peek() != 0 {
        let begin = cursor.at();
        if cursor.value().ok()?.as_bytes() == NULL {
            nulls.push(begin);
        }
        rows += 1;
    }
    (cursor.at() == line.len()).then_some((rows, nulls))
}

fn lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

fn wrong(path: &Path, line: u64, what: &str) -> Error {
    ErrorKind::File { path: path.into(), message: format!("line {line}: {what}") }.into()
}

/// What may follow in a text, where no row is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowPlace {
    Begin,
    /// Between rows that are no members of an array.
    Rows,
    /// In an array: a member or its end, a member, a comma or its end.
    First,
    Member,
    Behind,
    /// Behind the array.
    End,
}

/// A file's text, block by block.
pub(super) struct RowBlocks {
    path: PathBuf,
    text: Box<dyn Read + Send>,
    is_packed: bool,
    /// What was read and is in no block yet, and how much of it was looked at.
    buffer: Vec<u8>,
    seen: usize,
    line: u64,
    layout: JsonLayout,
    place: RowPlace,
    /// Objects and arrays that are open in a row, where the row begins, and whether in a string.
    depth: usize,
    begin: usize,
    in_string: bool,
    /// Whole rows, and where the last one ends.
    rows: usize,
    end: usize,
    wanted: usize,
    is_ended: bool,
}

impl RowBlocks {
    /// # Errors
    /// A file that cannot be read, or is not what its extension says.
    pub(super) fn open(
        path: &Path,
        packed: Option<Packed>,
        layout: JsonLayout,
    ) -> Result<RowBlocks> {
        let io = |error| Error::io(path, error);
        let file = BufReader::new(spool::open(path)?);
        let text: Box<dyn Read + Send> = match packed {
            Some(packed) => packed.reader(file).map_err(io)?,
            None => Box::new(file),
        };
        Ok(RowBlocks {
            path: path.into(),
            text,
            is_packed: packed.is_some(),
            buffer: vec![],
            seen: 0,
            line: 1,
            layout,
            place: RowPlace::Begin,
            depth: 0,
            begin: 0,
            in_string: false,
            rows: 0,
            end: 0,
            wanted: FIRST_BLOCK,
            is_ended: false,
        })
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// A text that cannot be read; what is no row where one is expected; a row or an array that does
    /// not end.
    pub(super) fn next(&mut self) -> Result<Option<RowBlock>> {
        loop {
            self.look()?;
            if self.end > 0 && (self.is_ended || self.buffer.len() >= self.wanted) {
                return Ok(Some(self.cut()));
            }
            if self.is_ended {
                return match self.place {
                    _ if self.depth > 0 || self.in_string => {
                        Err(self.wrong(self.begin, "a row does not end"))
                    }
                    RowPlace::First | RowPlace::Member | RowPlace::Behind => {
                        Err(self.wrong(self.buffer.len(), "the array does not end"))
                    }
                    RowPlace::Begin | RowPlace::Rows | RowPlace::End => Ok(None),
                };
            }
            if self.end == 0 && self.buffer.len() > LONGEST {
                return Err(self.wrong(self.begin, "a row is longer than 1 GiB"));
            }
            self.fill()?;
        }
    }

    fn wrong(&self, at: usize, what: &str) -> Error {
        wrong(&self.path, self.line + lines(&self.buffer[..at]), what)
    }

    fn fill(&mut self) -> Result<()> {
        let begins = self.line == 1 && self.buffer.is_empty() && self.place == RowPlace::Begin;
        let wanted = self.wanted as u64;
        let read = self.text.by_ref().take(wanted).read_to_end(&mut self.buffer);
        let read = read.map_err(|error| match self.is_packed {
            true => {
                let message = format!("it cannot be unpacked: {error}");
                ErrorKind::File { path: self.path.clone(), message }.into()
            }
            false => Error::io(&self.path, error),
        })?;
        self.is_ended = (read as u64) < wanted;
        if begins && self.buffer.starts_with(MARK) {
            self.buffer.drain(..MARK.len());
        }
        Ok(())
    }

    /// The whole rows of what was read.
    fn cut(&mut self) -> RowBlock {
        let rest = self.buffer.split_off(self.end);
        let bytes = std::mem::replace(&mut self.buffer, rest);
        let block = RowBlock { line: self.line, rows: self.rows, bytes, layout: self.layout };
        self.line += lines(&block.bytes);
        self.seen -= self.end;
        self.begin = self.begin.saturating_sub(self.end);
        (self.end, self.rows) = (0, 0);
        self.wanted = (2 * self.wanted).min(BLOCK);
        block
    }

    /// Looks for line ends in what was read.
    fn look_for_lines(&mut self) {
        self.place = RowPlace::Rows;
        if let Some(at) = memrchr(b'\n', &self.buffer[self.seen..]) {
            self.end = self.seen + at + 1;
        }
        self.seen = self.buffer.len();
        if self.is_ended {
            self.end = self.seen;
        }
    }

    /// Looks at what was read.
    fn look(&mut self) -> Result<()> {
        if self.layout.line_by_line {
            // A byte order mark is dropped before a line was looked at.
            if self.seen < self.buffer.len() || self.is_ended {
                self.look_for_lines();
            }
            return Ok(());
        }
        while self.seen < self.buffer.len() {
            let rest = &self.buffer[self.seen..];
            if self.in_string {
                match memchr2(b'"', b'\\', rest) {
                    None => self.seen = self.buffer.len(),
                    Some(at) if rest[at] == b'"' => {
                        self.in_string = false;
                        self.seen += at + 1;
                        if self.depth == 0 {
                            self.row_ends(self.seen);
                        }
                    }
                    // What is escaped is not known yet.
                    Some(at) if at + 1 == rest.len() => {
                        self.seen += at;
                        return Ok(());
                    }
                    Some(at) => self.seen += at + 2,
                }
                continue;
            }
            if self.depth == 0 {
                if !self.look_between()? {
                    return Ok(());
                }
                continue;
            }
            match rest[0] {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        self.row_ends(self.seen + 1);
                    }
                }
                _ => {}
            }
            self.seen += 1;
        }
        Ok(())
    }

    fn row_ends(&mut self, at: usize) {
        self.rows += 1;
        self.end = at;
        if self.place != RowPlace::Rows {
            self.place = RowPlace::Behind;
        }
    }

    /// Looks at a byte between rows; whether there was enough to tell what it is.
    fn look_between(&mut self) -> Result<bool> {
        use RowPlace::{Begin, Behind, End, First, Member, Rows};
        let (at, byte) = (self.seen, self.buffer[self.seen]);
        if self.place == Begin && !byte.is_ascii_whitespace() {
            let is_array = byte == b'[' && !self.layout.lines;
            self.place = if is_array { First } else { Rows };
            if is_array {
                self.buffer[at] = b' ';
                self.seen += 1;
                return Ok(true);
            }
        }
        let may_begin = matches!(self.place, Rows | First | Member);
        match (byte, self.place) {
            (b' ' | b'\t' | b'\r' | b'\n', _) => {}
            (_, End) => return Err(self.wrong(at, "there is more behind the array")),
            (b'{' | b'[', _) if may_begin => (self.depth, self.begin) = (1, at),
            (b'"', _) if may_begin => (self.in_string, self.begin) = (true, at),
            (b'-', _) if may_begin => return self.word(at),
            (byte, _) if may_begin && byte.is_ascii_alphanumeric() => return self.word(at),
            (b',', Behind) => (self.buffer[at], self.place) = (b' ', Member),
            (b']', First | Behind) => (self.buffer[at], self.place) = (b' ', End),
            (_, Behind) => return Err(self.wrong(at, "a comma or ] is expected behind a row")),
            _ => return Err(self.wrong(at, ROW)),
        }
        self.seen += 1;
        Ok(true)
    }

    /// A row of one word: a number, a truth value, null. Whether its end is there.
    fn word(&mut self, at: usize) -> Result<bool> {
        let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let rest = &self.buffer[at..];
        let length = rest.iter().take_while(|byte| goes_on(byte)).count();
        if length == rest.len() && !self.is_ended {
            return Ok(false);
        }
        if self.layout.null_is_object && &rest[..length] == NULL {
            self.buffer[at..at + NULL.len()].copy_from_slice(EMPTY);
        }
        self.seen = at + length;
        self.row_ends(self.seen);
        Ok(true)
    }
}

/// A row of NULLs, and what stands for it where rows are objects.
const NULL: &[u8] = b"null";
const EMPTY: &[u8] = b"{}  ";
/// What is said of what is none.
const ROW: &str = "a row is a value of JSON, such as an object {…}";

impl Iterator for RowBlocks {
    type Item = Result<RowBlock>;

    fn next(&mut self) -> Option<Result<RowBlock>> {
        RowBlocks::next(self).transpose()
    }
}

#[cfg(test)]
mod tests;
