//! Rows of JSON in blocks of text: lines, objects of several lines, or the members of one array.
//!
//! ```text
//!   file    [ {"a": 1},          {"a": [   null ]
//!             2]}, null ]
//!   block     {"a": 1}           {"a": [
//!             2]}  {}
//! ```
//!
//! What stands between rows becomes blanks and a row that is null an empty object, so that a block
//! is objects, one behind the other. Whatever is wrong within a row is left to who reads it.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use memchr::memchr2;

use crate::error::{Error, ErrorKind, Result};
use crate::io::csv::Packed;

/// Bytes of a block; one has at least a row. The first ones are smaller: a few rows may be enough.
const BLOCK: usize = 4 << 20;
const FIRST_BLOCK: usize = 64 << 10;
/// Most bytes of a row.
const LONGEST: usize = 1 << 30;
/// A byte order mark.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// Some rows.
pub(super) struct RowBlock {
    pub(super) bytes: Vec<u8>,
    /// The line of the first byte, from 1 on.
    pub(super) line: u64,
    pub(super) rows: usize,
}

impl RowBlock {
    /// The error of a place in it.
    pub(super) fn wrong(&self, path: &Path, at: usize, what: &str) -> Error {
        wrong(path, self.line + lines(&self.bytes[..at.min(self.bytes.len())]), what)
    }
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
    pub(super) fn open(path: &Path, packed: Option<Packed>) -> Result<RowBlocks> {
        let io = |error| Error::io(path, error);
        let file = BufReader::new(File::open(path).map_err(io)?);
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
                    _ if self.depth > 0 => Err(self.wrong(self.begin, "a row does not end")),
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
        let block = RowBlock { line: self.line, rows: self.rows, bytes };
        self.line += lines(&block.bytes);
        self.seen -= self.end;
        self.begin = self.begin.saturating_sub(self.end);
        (self.end, self.rows) = (0, 0);
        self.wanted = (2 * self.wanted).min(BLOCK);
        block
    }

    /// Looks at what was read.
    fn look(&mut self) -> Result<()> {
        while self.seen < self.buffer.len() {
            let rest = &self.buffer[self.seen..];
            if self.in_string {
                match memchr2(b'"', b'\\', rest) {
                    None => self.seen = self.buffer.len(),
                    Some(at) if rest[at] == b'"' => {
                        self.in_string = false;
                        self.seen += at + 1;
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
        const NULL: &[u8] = b"null";
        use RowPlace::{Begin, Behind, End, First, Member, Rows};
        let (at, byte) = (self.seen, self.buffer[self.seen]);
        if self.place == Begin && !byte.is_ascii_whitespace() {
            self.place = if byte == b'[' { First } else { Rows };
            if byte == b'[' {
                self.buffer[at] = b' ';
                self.seen += 1;
                return Ok(true);
            }
        }
        let may_begin = matches!(self.place, Rows | First | Member);
        match (byte, self.place) {
            (b' ' | b'\t' | b'\r' | b'\n', _) => {}
            (_, End) => return Err(self.wrong(at, "there is more behind the array")),
            (b'{', _) if may_begin => (self.depth, self.begin) = (1, at),
            (b'n', _) if may_begin => {
                let rest = &self.buffer[at..];
                if rest.len() < NULL.len() && !self.is_ended {
                    return Ok(false);
                }
                if !rest.starts_with(NULL) {
                    return Err(self.wrong(at, ROW));
                }
                self.buffer[at..at + NULL.len()].copy_from_slice(b"{}  ");
                self.row_ends(at + NULL.len());
                self.seen = at + NULL.len();
                return Ok(true);
            }
            (b',', Behind) => (self.buffer[at], self.place) = (b' ', Member),
            (b']', First | Behind) => (self.buffer[at], self.place) = (b' ', End),
            (_, Behind) => return Err(self.wrong(at, "a comma or ] is expected behind a row")),
            _ => return Err(self.wrong(at, ROW)),
        }
        self.seen += 1;
        Ok(true)
    }
}

/// What is said of what is none.
const ROW: &str = "a row is an object, {…}, or null";

impl Iterator for RowBlocks {
    type Item = Result<RowBlock>;

    fn next(&mut self) -> Option<Result<RowBlock>> {
        RowBlocks::next(self).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of all blocks, where each begins, and the number of rows.
    fn blocks(text: &str) -> Result<(String, Vec<u64>, usize)> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("t.json");
        std::fs::write(&path, text).expect("a file");
        let (mut all, mut lines, mut rows) = (String::new(), vec![], 0);
        for block in RowBlocks::open(&path, None)? {
            let block = block?;
            all += std::str::from_utf8(&block.bytes).expect("it is cut between rows");
            lines.push(block.line);
            rows += block.rows;
        }
        Ok((all, lines, rows))
    }

    #[test]
    fn rows_are_told_apart_however_they_stand() {
        for (text, rows, expected) in [
            ("", "", 0),
            (" \n", "", 0),
            ("{\"a\":1}\n{\"a\":2}\n", "{\"a\":1}\n{\"a\":2}", 2),
            ("\u{feff}{\"a\":1}", "{\"a\":1}", 1),
            ("{\n \"a\": [1,\n {}]\n}{}", "{\n \"a\": [1,\n {}]\n}{}", 2),
            ("{\"a\":\"}{\\\"}\"} null\r\n", "{\"a\":\"}{\\\"}\"} {}  ", 2),
            ("[]", "", 0),
            (" [ ]\n", "", 0),
            ("[{\"a\":1},null,\n{}]\n", " {\"a\":1} {}   \n{}", 3),
        ] {
            assert_eq!(blocks(text).unwrap(), (rows.into(), vec![1; rows.len().min(1)], expected));
        }
    }

    #[test]
    fn blocks_end_with_rows_and_know_their_lines() {
        let row = |number: usize| format!("{{\"a\": {number},\n \"b\": \"x\\\\\\\"{{\"}}\n");
        let text: String = (0..100_000).map(row).collect();
        let (all, lines, rows) = blocks(&text).unwrap();
        assert_eq!((all.trim_end(), rows), (text.trim_end(), 100_000));
        assert!(lines.len() > 3 && lines[1] > 2 && lines.is_sorted(), "{lines:?}");
    }

    #[test]
    fn what_is_no_row_is_an_error_with_its_line() {
        for (text, line) in [
            ("{\"a\":1}\n\n{\"a\":", 3),
            ("{\"a\":1},\n{}", 1),
            ("{}\n1\n", 2),
            ("{}\nnul", 2),
            ("[{}\n{}]", 2),
            ("[{}\n,]", 2),
            ("[\n{},\n", 3),
            ("[{}]\n[{}]", 2),
            ("1", 1),
        ] {
            let error = blocks(text).map(|(all, ..)| all).unwrap_err().to_string();
            assert!(error.contains(&format!("line {line}: ")), "{text:?}: {error}");
        }
    }
}
