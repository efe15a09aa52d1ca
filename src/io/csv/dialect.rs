//! How the files of a table are laid out, once it was found out, and their first rows.

use std::borrow::Cow;

use super::grammar::Grammar;
use super::options::{CsvOptions, Ragged};
use super::sniff::{Sniffed, sniff};
use super::text::CsvContent;
use super::tokens::{MOST_BYTES, Token, Tokens, ValueSpan, Wanted};
use super::values::{Notation, without_blanks};
use crate::error::{ErrorKind, Result};
use crate::sql::distinct_names_of_first;

/// How rows and values are written in the files of a table.
#[derive(Debug, Clone)]
pub(crate) struct Dialect {
    pub(crate) grammar: Grammar,
    pub(crate) has_header: bool,
    pub(crate) ragged: Ragged,
    /// Rows with values that do not fit their columns are left out.
    pub(crate) misfits_are_skipped: bool,
    /// Unquoted texts that are NULL besides the empty one.
    pub(crate) nulls: Vec<Vec<u8>>,
    /// Whether quoted ones are, too.
    pub(crate) quoted_nulls: bool,
    pub(crate) trim: bool,
    pub(crate) notation: Notation,
    pub(crate) max_row_bytes: usize,
    /// Lines before the header.
    skip: usize,
}

impl Dialect {
    /// What the options say, and what the begin of the first file shows.
    ///
    /// # Errors
    /// Options that contradict themselves; a file that cannot be read.
    pub(crate) fn of(text: &CsvContent, options: &CsvOptions) -> Result<Dialect> {
        /// Bytes that are looked at.
        const HEAD: u64 = 256 << 10;
        options.check()?;
        let notation = Notation::of(options)?;
        let begin = behind_lines(text, options.skip)?;
        let end = text.bytes().min(begin + HEAD);
        let mut head = vec![];
        text.reader()?.read(begin..end, &mut head)?;
        if end == text.bytes() {
            head.push(b'\n');
        }
        let further = match options.quote.is_none() && options.sniff {
            true => further_lines(text, end)?,
            false => vec![],
        };
        let Sniffed { grammar, has_header } =
            sniff(&head, &further, &text.path, options, &notation);
        Ok(Dialect {
            grammar,
            has_header,
            ragged: options.ragged,
            misfits_are_skipped: options.ignore_errors,
            nulls: options.nulls.iter().map(|text| text.clone().into_bytes()).collect(),
            quoted_nulls: options.allow_quoted_nulls,
            trim: options.trim,
            notation,
            max_row_bytes: options.max_row_bytes.min(MOST_BYTES / 2),
            skip: options.skip,
        })
    }

    /// The text of a value, or `None` where it is NULL in a column of text.
    pub(crate) fn text<'a>(&self, bytes: &'a [u8], span: ValueSpan) -> Option<Cow<'a, [u8]>> {
        if span.is_quoted() {
            let text = span.text(bytes, &self.grammar);
            return Some(text).filter(|text| !self.quoted_nulls || !self.is_null(text));
        }
        let mut raw = &bytes[span.range()];
        if self.trim {
            raw = without_blanks(raw);
        }
        (!self.is_null(raw)).then_some(Cow::Borrowed(raw))
    }

    fn is_null(&self, text: &[u8]) -> bool {
        text.is_empty() || (!self.nulls.is_empty() && self.nulls.iter().any(|null| null == text))
    }

    /// The values of a file's first row, which is the header where there is one, and where the
    /// next one may begin; `None` where no line has a value.
    ///
    /// # Errors
    /// A quote that is not closed; names that are no UTF-8; a file that cannot be read.
    pub(crate) fn first_row(&self, text: &CsvContent) -> Result<Option<(Vec<String>, u64)>> {
        let begin = behind_lines(text, self.skip)?;
        let (reader, mut bytes, mut more) = (text.reader()?, vec![], 64u64 << 10);
        let error = |at: usize, message: String| match text.line_at(begin + at as u64) {
            Ok(line) => {
                ErrorKind::Parse { path: Some(text.path.clone()), line, column: 0, message }.into()
            }
            Err(error) => error,
        };
        loop {
            let from = begin + bytes.len() as u64;
            let to = text.bytes().min(from + more);
            reader.read(from..to, &mut bytes)?;
            let is_last = to == text.bytes();
            if is_last {
                bytes.push(b'\n');
            }
            let mut spans = vec![];
            let mut tokens = Tokens::new(&bytes, &self.grammar, 0);
            match tokens.next(usize::MAX, Wanted::All, &mut spans) {
                Token::Row { start, .. } => {
                    let names =
                        spans.iter().map(|span| self.name(&bytes, *span)).collect::<Result<_, _>>();
                    let names = names.map_err(|message| error(start, message))?;
                    return Ok(Some((names, (begin + tokens.at() as u64).min(text.bytes()))));
                }
                Token::Partial { quote, start } if is_last || bytes.len() > self.max_row_bytes => {
                    return Err(error(
                        quote.unwrap_or(start),
                        "the first row has no end: a quote is not closed".into(),
                    ));
                }
                Token::End(_) if is_last => return Ok(None),
                Token::Partial { .. } | Token::End(_) => more *= 2,
            }
        }
    }

    /// A name, or what is wrong with it.
    fn name(&self, bytes: &[u8], span: ValueSpan) -> Result<String, String> {
        let raw = span.text(bytes, &self.grammar);
        let raw = if self.trim && !span.is_quoted() { without_blanks(&raw) } else { &raw };
        std::str::from_utf8(raw)
            .map(str::to_string)
            .map_err(|_| format!("a name: {}", no_utf8(raw)))
    }

    /// Where the rows of a file begin, behind its first row where that is a header.
    pub(crate) fn body(&self, text: &CsvContent, behind_first: u64) -> Result<u64> {
        if self.has_header { Ok(behind_first) } else { behind_lines(text, self.skip) }
    }
}

/// What is said of bytes that are no UTF-8.
pub(crate) fn no_utf8(bytes: &[u8]) -> String {
    /// Bytes that are shown.
    const SHOWN: usize = 32;
    let shown: String = bytes.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
    let more = if bytes.len() > SHOWN { "…" } else { "" };
    format!("the bytes {shown}{more} are no UTF-8; the option encoding names other encodings")
}

/// Where the line begins before which there are so many.
fn behind_lines(text: &CsvContent, lines: usize) -> Result<u64> {
    const STEP: u64 = 64 << 10;
    let (reader, mut bytes, mut left) = (text.reader()?, vec![], lines);
    let mut at = 0;
    let mut returned = false;
    while left > 0 && at < text.bytes() {
        let end = text.bytes().min(at + STEP);
        bytes.clear();
        reader.read(at..end, &mut bytes)?;
        let mut own = 0;
        while left > 0 && own < bytes.len() {
            let byte = bytes[own];
            own += 1;
            // A line feed behind a carriage return ends no other line.
            if byte == b'\r' || (byte == b'\n' && !returned) {
                left -= 1;
            }
            returned = byte == b'\r';
        }
        at += own as u64;
    }
    if returned && at < text.bytes() {
        bytes.clear();
        reader.read(at..at + 1, &mut bytes)?;
        at += u64::from(bytes == b"\n");
    }
    Ok(at)
}

/// Whole lines at places all over a text, from `begin` on. They may lie within a quoted value.
fn further_lines(text: &CsvContent, begin: u64) -> Result<Vec<Vec<u8>>> {
    const PLACES: u64 = 16;
    const PLACE: u64 = 64 << 10;
    let (reader, end) = (text.reader()?, text.bytes());
    let step = ((end - begin) / PLACES).max(PLACE);
    let mut found = vec![];
    for at in (begin..end).step_by(step as usize) {
        let mut bytes = vec![];
        reader.read(at..end.min(at + PLACE), &mut bytes)?;
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        if let Some(first) = bytes.iter().position(is_end)
            && let Some(last) = bytes.iter().rposition(is_end)
        {
            bytes.truncate(last + 1);
            bytes.drain(..first);
            found.push(bytes);
        }
    }
    Ok(found)
}

/// The names of columns, each once: an empty one is `column_N`, one that comes again gets the first
/// of `_1`, `_2` and so on that makes a new name.
pub(crate) fn unique_names(names: Vec<String>) -> Vec<String> {
    let named = names.into_iter().enumerate();
    let names: Vec<String> = named
        .map(|(at, name)| if name.is_empty() { format!("column_{}", at + 1) } else { name })
        .collect();
    distinct_names_of_first(&names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_unique() {
        for (names, expected) in [
            (vec!["a", "b"], vec!["a", "b"]),
            (vec!["a", "a", "b"], vec!["a", "a_1", "b"]),
            (vec!["a", "a", "a_1", "a"], vec!["a", "a_2", "a_1", "a_3"]),
            (vec!["", "x", ""], vec!["column_1", "x", "column_3"]),
            (vec!["column_2", ""], vec!["column_2", "column_2_1"]),
        ] {
            assert_eq!(unique_names(names.into_iter().map(String::from).collect()), expected);
        }
    }

    #[test]
    fn lines_before_the_header_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.csv");
        std::fs::write(&path, "one\r\ntwo\rthree\n\nfour").unwrap();
        let text = CsvContent::open(&path, None).unwrap().unwrap();
        for (lines, at) in [(0, 0), (1, 5), (2, 9), (3, 15), (4, 16), (9, 20)] {
            assert_eq!(behind_lines(&text, lines).unwrap(), at);
        }
    }
}
