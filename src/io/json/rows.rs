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

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use memchr::memchr2;

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
}

/// Some rows.
pub(super) struct RowBlock {
    pub(super) bytes: Vec<u8>,
    /// The line of the first byte, from 1 on.
    pub(super) line: u64,
    pub(super) rows: usize,
}

impl RowBlock {
    /// # Errors
    /// Bytes that are no UTF-8.
    pub(super) fn text(&self, path: &Path) -> Result<&str> {
        let text = std::str::from_utf8(&self.bytes);
        text.map_err(|error| self.wrong(path, error.valid_up_to(), "it is no UTF-8"))
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
        const NULL: &[u8] = b"null";
        let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let rest = &self.buffer[at..];
        let length = rest.iter().take_while(|byte| goes_on(byte)).count();
        if length == rest.len() && !self.is_ended {
            return Ok(false);
        }
        if self.layout.null_is_object && &rest[..length] == NULL {
            self.buffer[at..at + NULL.len()].copy_from_slice(b"{}  ");
        }
        self.seen = at + length;
        self.row_ends(self.seen);
        Ok(true)
    }
}

/// What is said of what is none.
const ROW: &str = "a row is a value of JSON, such as an object {…}";

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
        blocks_of(text, JsonLayout { null_is_object: true, ..JsonLayout::default() })
    }

    fn blocks_of(text: &str, layout: JsonLayout) -> Result<(String, Vec<u64>, usize)> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("t.json");
        std::fs::write(&path, text).expect("a file");
        let (mut all, mut lines, mut rows) = (String::new(), vec![], 0);
        for block in RowBlocks::open(&path, None, layout)? {
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
        for (text, lines, rows) in [
            ("1\n-2.5e3 \"a b\\\"\"\ntrue null", false, 5),
            ("[1,\"x\",null,[2,3]]", false, 4),
            ("[1,2]\n[3]\n", true, 2),
            ("\"x", false, 0),
        ] {
            let found = blocks_of(text, JsonLayout { lines, ..JsonLayout::default() });
            assert_eq!(found.map_or(0, |(.., rows)| rows), rows, "{text}");
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
            ("{}\n:\n", 2),
            ("{}\n\"x\n", 2),
            ("[{}\n{}]", 2),
            ("[{}\n,]", 2),
            ("[\n{},\n", 3),
            ("[{}]\n[{}]", 2),
            ("[1 2]", 1),
        ] {
            let error = blocks(text).map(|(all, ..)| all).unwrap_err().to_string();
            assert!(error.contains(&format!("line {line}: ")), "{text:?}: {error}");
        }
    }
}
