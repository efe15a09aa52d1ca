//! Rows taken apart into values.
//!
//! Delimiters and row ends are found 64 bytes at a time, as bits of a word; quoted values are
//! jumped over. What a value's text is comes later ([`ValueSpan::text`]): most values are never
//! looked at.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

use super::grammar::Grammar;

/// Where a value lies in a block. Its ends have 31 bits each; the rest are flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValueSpan {
    start: u32,
    end: u32,
}

const FLAG: u32 = 1 << 31;

/// Bytes that spans reach.
pub(crate) const MOST_BYTES: usize = (FLAG - 1) as usize;

impl ValueSpan {
    /// A value that a row of too few does not have.
    pub(crate) const MISSING: ValueSpan = ValueSpan { start: 0, end: 0 };

    fn plain(start: usize, end: usize) -> ValueSpan {
        ValueSpan { start: start as u32, end: end as u32 }
    }

    /// Between quotes.
    fn quoted(start: usize, end: usize) -> ValueSpan {
        ValueSpan { start: start as u32 | FLAG, end: end as u32 }
    }

    /// From behind the opening quote to what ends the value; its text is not what lies there.
    fn rewritten(start: usize, end: usize) -> ValueSpan {
        ValueSpan { start: start as u32 | FLAG, end: end as u32 | FLAG }
    }

    /// Where it lies.
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        (self.start & !FLAG) as usize..(self.end & !FLAG) as usize
    }

    pub(crate) fn is_quoted(self) -> bool {
        self.start & FLAG != 0
    }

    /// Whether its text differs from the bytes where it lies: quotes were doubled, bytes escaped,
    /// or some follow the closing quote.
    pub(crate) fn is_rewritten(self) -> bool {
        self.end & FLAG != 0
    }

    /// Its text.
    pub(crate) fn text<'a>(self, bytes: &'a [u8], grammar: &Grammar) -> Cow<'a, [u8]> {
        let raw = &bytes[self.range()];
        if !self.is_rewritten() {
            return Cow::Borrowed(raw);
        }
        let mut text = Vec::with_capacity(raw.len());
        let mut at = 0;
        while let Some(&byte) = raw.get(at) {
            at += 1;
            if Some(byte) == grammar.escape && at < raw.len() {
                text.push(raw[at]);
                at += 1;
            } else if byte == grammar.quote {
                if raw.get(at) == Some(&grammar.quote) {
                    text.push(byte);
                    at += 1;
                } else {
                    text.extend_from_slice(&raw[at..]);
                    break;
                }
            } else {
                text.push(byte);
            }
        }
        Cow::Owned(text)
    }
}

/// Which values of rows are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted<'a> {
    All,
    /// By column.
    Some(&'a [bool]),
}

impl Wanted<'_> {
    pub(crate) fn has(self, column: usize) -> bool {
        match self {
            Wanted::All => true,
            Wanted::Some(columns) => columns.get(column).copied().unwrap_or(false),
        }
    }
}

/// What comes next in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    /// A row that begins at `start` and has this many values.
    Row { start: usize, values: usize },
    /// A row, or comment, that begins at `start` and has no end in the block; the quote that is not
    /// closed.
    Partial { start: usize, quote: Option<usize> },
    /// No row begins before the end asked for; the next one would begin here or later.
    End(usize),
}

/// The rows of a block, one after the other.
#[derive(Debug)]
pub(crate) struct Tokens<'a> {
    bytes: &'a [u8],
    grammar: Grammar,
    specials: Specials<'a>,
    at: usize,
}

impl<'a> Tokens<'a> {
    /// The rows of bytes, from the one that begins at `at`. Bytes beyond [`MOST_BYTES`] are not
    /// looked at.
    pub(crate) fn new(bytes: &'a [u8], grammar: &Grammar, at: usize) -> Tokens<'a> {
        let bytes = &bytes[..bytes.len().min(MOST_BYTES)];
        Tokens {
            bytes,
            grammar: *grammar,
            specials: Specials::new(bytes, grammar.delimiter, at),
            at,
        }
    }

    /// Where the next row may begin.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The next row, if it begins before `until`; those of its values that are wanted are pushed to
    /// `spans`. Nothing is pushed but for a row.
    pub(crate) fn next(
        &mut self,
        until: usize,
        wanted: Wanted<'_>,
        spans: &mut Vec<ValueSpan>,
    ) -> Token {
        let bytes = self.bytes;
        let until = until.min(bytes.len());
        let mut at = self.at;
        loop {
            while at < until && matches!(bytes[at], b'\n' | b'\r') {
                at += 1;
            }
            self.at = at;
            if at >= until {
                return Token::End(at);
            }
            if Some(bytes[at]) != self.grammar.comment {
                break;
            }
            match memchr2(b'\n', b'\r', &bytes[at..]) {
                Some(end) => at += end,
                None => return Token::Partial { start: at, quote: None },
            }
        }
        let start = at;
        let (before, mut values) = (spans.len(), 0);
        self.specials.jump(at);
        loop {
            let (span, end) = match bytes.get(at) {
                Some(&byte) if byte == self.grammar.quote => match self.quoted(at) {
                    Some(found) => found,
                    None => {
                        spans.truncate(before);
                        return Token::Partial { start, quote: Some(at) };
                    }
                },
                _ => match self.specials.next() {
                    Some(end) => (ValueSpan::plain(at, end), end),
                    None => {
                        spans.truncate(before);
                        return Token::Partial { start, quote: None };
                    }
                },
            };
            if wanted.has(values) {
                spans.push(span);
            }
            values += 1;
            at = end + 1;
            if bytes[end] != self.grammar.delimiter {
                self.at = at;
                return Token::Row { start, values };
            }
        }
    }

    /// The value that the quote at `open` opens, and what ends it.
    fn quoted(&mut self, open: usize) -> Option<(ValueSpan, usize)> {
        let (bytes, quote) = (self.bytes, self.grammar.quote);
        let mut rewritten = false;
        let mut at = open + 1;
        let close = loop {
            let rest = bytes.get(at..)?;
            let found = at
                + match self.grammar.escape {
                    Some(escape) => memchr2(quote, escape, rest)?,
                    None => memchr(quote, rest)?,
                };
            if bytes[found] == quote && *bytes.get(found + 1)? != quote {
                break found;
            }
            // A doubled quote, or an escape and its byte.
            rewritten = true;
            at = found + 2;
        };
        self.specials.jump(close + 1);
        let end = self.specials.next()?;
        let span = match rewritten || end > close + 1 {
            true => ValueSpan::rewritten(open + 1, end),
            false => ValueSpan::quoted(open + 1, close),
        };
        Some((span, end))
    }
}

/// The delimiters and row ends of a block, in order.
#[derive(Debug)]
struct Specials<'a> {
    bytes: &'a [u8],
    delimiter: u64,
    /// Where the window begins.
    base: usize,
    /// Those of the window that are still to come.
    mask: u64,
}

const WINDOW: usize = 64;
const ONES: u64 = u64::from_le_bytes([1; 8]);
const LOW: u64 = u64::from_le_bytes([0x7f; 8]);

/// The highest bit of each byte that is zero.
fn zeros(word: u64) -> u64 {
    !(((word & LOW) + LOW) | word | LOW)
}

impl<'a> Specials<'a> {
    fn new(bytes: &'a [u8], delimiter: u8, at: usize) -> Specials<'a> {
        let mut specials =
            Specials { bytes, delimiter: u64::from(delimiter) * ONES, base: at, mask: 0 };
        specials.mask = specials.window(at);
        specials
    }

    /// The specials among the 64 bytes from `base` on.
    fn window(&self, base: usize) -> u64 {
        const LINE_FEED: u64 = b'\n' as u64 * ONES;
        const RETURN: u64 = b'\r' as u64 * ONES;
        // Puts the highest bits of eight bytes next to each other.
        const GATHER: u64 = 0x0002_0408_1020_4081;
        let Some(rest) = self.bytes.get(base..) else { return 0 };
        let mut padded = [0; WINDOW];
        let window: &[u8; WINDOW] = match rest.first_chunk() {
            Some(whole) => whole,
            None => {
                padded[..rest.len()].copy_from_slice(rest);
                &padded
            }
        };
        let mut mask = 0;
        for (at, eight) in window.as_chunks::<8>().0.iter().enumerate() {
            let word = u64::from_le_bytes(*eight);
            let found =
                zeros(word ^ self.delimiter) | zeros(word ^ LINE_FEED) | zeros(word ^ RETURN);
            mask |= (found.wrapping_mul(GATHER) >> 56) << (8 * at);
        }
        if rest.len() < WINDOW { mask & ((1 << rest.len()) - 1) } else { mask }
    }

    fn next(&mut self) -> Option<usize> {
        while self.mask == 0 {
            self.base += WINDOW;
            if self.base >= self.bytes.len() {
                return None;
            }
            self.mask = self.window(self.base);
        }
        let at = self.base + self.mask.trailing_zeros() as usize;
        self.mask &= self.mask - 1;
        Some(at)
    }

    /// Goes on at a place that is not before the last one.
    fn jump(&mut self, at: usize) {
        let into = at.saturating_sub(self.base);
        if into < WINDOW {
            self.mask &= u64::MAX << into;
        } else {
            self.base = at;
            self.mask = self.window(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle::{grammars, odd_text, rows as slow_rows};
    use super::*;

    fn rows(text: &[u8], grammar: &Grammar) -> Vec<Vec<(bool, Vec<u8>)>> {
        let mut tokens = Tokens::new(text, grammar, 0);
        let (mut rows, mut spans) = (vec![], vec![]);
        while let Token::Row { values, .. } = tokens.next(usize::MAX, Wanted::All, &mut spans) {
            assert_eq!(values, spans.len());
            rows.push(
                spans
                    .drain(..)
                    .map(|s| (s.is_quoted(), s.text(text, grammar).into_owned()))
                    .collect(),
            );
        }
        rows
    }

    #[test]
    fn values_are_those_of_a_byte_at_a_time() {
        for seed in 0..3000 {
            let grammar = grammars()[seed as usize % grammars().len()];
            let mut text = odd_text(seed, &grammar);
            text.push(b'\n');
            let expected = slow_rows(&text, &grammar);
            let shown = String::from_utf8_lossy(&text);
            assert_eq!(rows(&text, &grammar), expected.complete, "{grammar:?} {shown:?}");
        }
    }

    #[test]
    fn wanted_values_alone_are_kept() {
        let grammar = Grammar { delimiter: b',', quote: b'"', escape: None, comment: None };
        let text = b"a,\"b\",c\n1,2,3\n4";
        let (mut spans, wanted) = (vec![], [false, true, true]);
        let mut tokens = Tokens::new(text, &grammar, 0);
        let mut next =
            |spans: &mut Vec<ValueSpan>| tokens.next(usize::MAX, Wanted::Some(&wanted), spans);
        assert_eq!(next(&mut spans), Token::Row { start: 0, values: 3 });
        assert_eq!(next(&mut spans), Token::Row { start: 8, values: 3 });
        assert_eq!(next(&mut spans), Token::Partial { start: 14, quote: None });
        let texts: Vec<_> =
            spans.iter().map(|span| span.text(text, &grammar).into_owned()).collect();
        assert_eq!(texts, [b"b", b"c", b"2", b"3"]);
    }
}
