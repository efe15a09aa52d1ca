//! How a file is laid out, judged by its first rows.

use std::borrow::Cow;
use std::path::Path;

use datafusion::arrow::datatypes::DataType;
use memchr::{memchr, memrchr};

use super::grammar::Grammar;
use super::options::CsvOptions;
use super::seen::Seen;
use super::tokens::{Token, Tokens, ValueSpan, Wanted};
use super::values::{Notation, without_blanks};
use crate::io::options::without_codec;

/// What was found out of a file, or given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sniffed {
    pub(crate) grammar: Grammar,
    pub(crate) has_header: bool,
}

/// Rows that are looked at.
const ROWS: usize = 200;
/// In the order in which one of equal merits is taken.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Finds what the options leave open by the begin of a file, behind the lines that are left out.
///
/// The delimiter is the one by which most rows have the same number of values, which is not one. A
/// `'` quotes where values begin and end with it, and none with `"`. Nothing quotes where quoting
/// fails and rows without quotes have the same number of values. There is no header where the first
/// row's values are of their columns' types, and one of these is not text. `further` are whole lines
/// of other places.
pub(crate) fn sniff(
    head: &[u8],
    further: &[Vec<u8>],
    path: &Path,
    options: &CsvOptions,
    notation: &Notation,
) -> Sniffed {
    let quote = options.quote.unwrap_or(b'"');
    let of = |delimiter, quote| Grammar {
        delimiter,
        quote,
        escape: options.escape.filter(|escape| *escape != quote),
        comment: options.comment,
    };
    let delimiter = options.delimiter.or_else(|| by_extension(path));
    if !options.sniff {
        let grammar = of(delimiter.unwrap_or(b','), quote);
        return Sniffed { grammar, has_header: options.has_header.unwrap_or(true) };
    }
    let delimiters = match &delimiter {
        Some(delimiter) => std::slice::from_ref(delimiter),
        None => DELIMITERS.as_slice(),
    };
    let quotes: &[u8] = if options.quote.is_some() { &[quote] } else { b"'\"" };
    let is_free =
        |byte: u8| Some(byte) != options.comment && Some(byte) != options.escape && byte != quote;
    let mut best: Option<(Merit, FirstRows)> = None;
    for delimiter in delimiters.iter().filter(|byte| delimiter.is_some() || is_free(**byte)) {
        for quote in
            quotes.iter().filter(|quote| *quote != delimiter && Some(**quote) != options.comment)
        {
            let rows = FirstRows::of(head, of(*delimiter, *quote));
            if *quote == b'\'' && options.quote.is_none() && !rows.are_quoted_in_single() {
                continue;
            }
            let merit = rows.merit();
            if best.as_ref().is_none_or(|(known, _)| merit > *known) {
                best = Some((merit, rows));
            }
        }
    }
    let rows = best.map_or_else(
        || FirstRows::of(head, of(delimiter.unwrap_or(b','), quote)),
        |(_, rows)| rows,
    );
    let lines = &head[..memrchr(b'\n', head).map_or(0, |end| end + 1)];
    let texts = || std::iter::once(lines).chain(further.iter().map(Vec::as_slice));
    let is_open = options.quote.is_none() && options.escape.is_none();
    let rows = match is_open && quotes_are_none(texts, &rows.grammar) {
        true => FirstRows::of(head, Grammar { quote: 0, ..rows.grammar }),
        false => rows,
    };
    let has_header = options.has_header.unwrap_or_else(|| rows.have_header(notation));
    Sniffed { grammar: rows.grammar, has_header }
}

/// Whether quotes are bytes as any other. Without them, all rows of the texts have the same number
/// of values, and not one. With them, some rows of the first text, the begin of the file, that have
/// quotes have another number, or more values have more than blanks behind their closing quote than
/// have not. A quote that nothing closes says that only where others stand within values.
fn quotes_are_none<'a, T: Iterator<Item = &'a [u8]>>(
    texts: impl Fn() -> T,
    grammar: &Grammar,
) -> bool {
    if !texts().any(|text| memchr(grammar.quote, text).is_some()) {
        return false;
    }
    let plain = Grammar { quote: 0, ..*grammar };
    let (mut usual, mut spans) = (None, vec![]);
    for text in texts() {
        let mut tokens = Tokens::new(text, &plain, 0);
        while let Token::Row { values, .. } = tokens.next(usize::MAX, Wanted::Some(&[]), &mut spans)
        {
            if *usual.get_or_insert(values) != values {
                return false;
            }
        }
    }
    let Some(usual) = usual.filter(|values| *values > 1) else { return false };
    let (mut with_tail, mut whole, mut is_unclosed, mut within) = (0, 0, false, false);
    // Other places may lie within a quoted value, where quotes mean the contrary.
    for text in texts().take(1) {
        let mut tokens = Tokens::new(text, grammar, 0);
        loop {
            spans.clear();
            match tokens.next(usize::MAX, Wanted::All, &mut spans) {
                Token::Row { values, .. } => {
                    let is_quoted = spans.iter().any(|span| span.is_quoted());
                    if is_quoted && values != usual {
                        return true;
                    }
                }
                Token::Partial { quote, .. } => {
                    is_unclosed |= quote.is_some();
                    break;
                }
                Token::End(_) => break,
            }
            for span in &spans {
                let raw = &text[span.range()];
                match span.is_quoted() {
                    true => match tail(raw, grammar.quote).map(without_blanks) {
                        Some([_, ..]) if span.is_rewritten() => with_tail += 1,
                        _ => whole += 1,
                    },
                    false => within |= memchr(grammar.quote, raw).is_some(),
                }
            }
        }
    }
    with_tail > 0 && with_tail >= whole || is_unclosed && (within || with_tail > 0)
}

fn by_extension(path: &Path) -> Option<u8> {
    let extension = without_codec(path).extension()?.to_str()?.to_ascii_lowercase();
    match extension.as_str() {
        "tsv" | "tab" => Some(b'\t'),
        "psv" => Some(b'|'),
        _ => None,
    }
}

/// How well a grammar fits; greater is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Merit {
    /// Rows of the usual number of values, in thousandths of all; 0 where there is nothing to
    /// delimit.
    usual: usize,
    /// That number.
    values: usize,
}

/// The first rows by one grammar.
#[derive(Debug)]
struct FirstRows<'a> {
    head: &'a [u8],
    grammar: Grammar,
    rows: Vec<Vec<ValueSpan>>,
    /// The last row has a quote that nothing closes.
    is_unclosed: bool,
}

impl<'a> FirstRows<'a> {
    fn of(head: &'a [u8], grammar: Grammar) -> FirstRows<'a> {
        let mut tokens = Tokens::new(head, &grammar, 0);
        let (mut rows, mut spans) = (vec![], vec![]);
        let mut is_unclosed = false;
        while rows.len() < ROWS {
            match tokens.next(usize::MAX, Wanted::All, &mut spans) {
                Token::Row { .. } => rows.push(std::mem::take(&mut spans)),
                Token::Partial { quote, .. } => {
                    is_unclosed = quote.is_some();
                    break;
                }
                Token::End(_) => break,
            }
        }
        FirstRows { head, grammar, rows, is_unclosed }
    }

    fn merit(&self) -> Merit {
        let mut counts: Vec<usize> =
            self.rows.iter().map(Vec::len).filter(|values| *values > 1).collect();
        counts.sort_unstable();
        let usual = counts.chunk_by(|a, b| a == b).max_by_key(|same| same.len());
        let (rows, values) = usual.map_or((0, 1), |same| (same.len(), same[0]));
        let usual = rows * 1000 / self.rows.len().max(1);
        // Where few rows have it, it is a part of their values.
        if usual > 500 { Merit { usual, values } } else { Merit { usual: 0, values: 1 } }
    }

    /// Whether some values are in single quotes whole, and none in others.
    fn are_quoted_in_single(&self) -> bool {
        let mut any = false;
        for span in self.rows.iter().flatten() {
            if span.is_quoted() {
                any = true;
            }
            let raw = &self.head[span.range()];
            let opens =
                !span.is_quoted() && raw.first().is_some_and(|byte| matches!(byte, b'"' | b'\''));
            // What follows a closing quote tells that it was none.
            let is_none = span.is_rewritten() && tail(raw, self.grammar.quote).is_some();
            if opens || is_none {
                return false;
            }
        }
        any && !self.is_unclosed
    }

    fn text(&self, span: ValueSpan) -> Cow<'a, [u8]> {
        span.text(self.head, &self.grammar)
    }

    fn have_header(&self, notation: &Notation) -> bool {
        let Some((first, rows)) = self.rows.split_first() else { return true };
        if rows.is_empty() {
            return true;
        }
        let mut tells = false;
        for (column, span) in first.iter().enumerate() {
            let mut below = Seen::default();
            for value in rows.iter().filter_map(|row| row.get(column)) {
                below.add(&self.text(*value), notation);
            }
            let text = self.text(*span);
            let mut all = below;
            all.add(&text, notation);
            let is_empty = without_blanks(&text).is_empty();
            // A word above a column without values is a name; anything else there says nothing.
            let is_name = match below == Seen::default() {
                true => !is_empty && all.data_type() == DataType::Utf8View,
                false => all.data_type() != below.data_type(),
            };
            if is_name {
                return true;
            }
            tells |= !is_empty && below.data_type() != DataType::Utf8View;
        }
        !tells
    }
}

/// What follows the quote that closes a value; `raw` is what lies behind the opening one.
fn tail(raw: &[u8], quote: u8) -> Option<&[u8]> {
    let mut at = 0;
    while let Some(found) = memchr(quote, &raw[at..]) {
        at += found + 1;
        if raw.get(at) != Some(&quote) {
            return Some(&raw[at..]).filter(|tail| !tail.is_empty());
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sniffed(text: &str, path: &str, options: &CsvOptions) -> (char, char, bool) {
        let found = sniff(text.as_bytes(), &[], Path::new(path), options, &Notation::default());
        (found.grammar.delimiter.into(), found.grammar.quote.into(), found.has_header)
    }

    #[test]
    fn layouts_are_found() {
        for (text, expected) in [
            ("a,b\n1,2\n3,4\n", (',', '"', true)),
            ("a;b\n1,5;2\n2,5;3\n", (';', '"', true)),
            ("a\tb\nx, y\t1\nz\t2\n", ('\t', '"', true)),
            ("a|b|c\n1|2|3\n", ('|', '"', true)),
            ("\"a;b\",c\n\"1;2\",3\n", (',', '"', true)),
            ("a,b\n'x,y',1\n'z',2\n", (',', '\'', true)),
            ("a,b\n'tis,1\nit's,2\n", (',', '"', true)),
            ("a,b\n'tis,\"1\"\n'x',2\n", (',', '"', true)),
            // One column.
            ("n\n1\n2\n", (',', '"', true)),
            ("text\nhello, world\nplain\nother\n", (',', '"', true)),
            ("", (',', '"', true)),
            // No header: the first row is as the others, which are not all text.
            ("1,x\n2,y\n", (',', '"', false)),
            ("1,2.5,2020-01-31\n2,,2020-01-31\n", (',', '"', false)),
            ("x,y\nz,w\n", (',', '"', true)),
            ("1,x\n", (',', '"', true)),
            (",a,b\n0,1,2\n1,3,4\n", (',', '"', true)),
            ("id,\n1,\n2,\n", (',', '"', true)),
        ] {
            assert_eq!(sniffed(text, "t.csv", &CsvOptions::default()), expected, "{text:?}");
        }
    }

    #[test]
    fn quotes_that_are_none_are_found() {
        for (text, quote) in [
            ("id\tname\n1\ta\n2\t\"b\n3\tc\n4\td \"x\"\n5\t\"q\"r\n", '\0'),
            ("id,name\n1,\"x\"\n2,\"Foo\" Bar\n", '\0'),
            ("id,name\n1,5\" pipe\n2,\"Foo\n3,z\n", '\0'),
            ("a,b,c\n\"x,y\",1,2\n3,\"4,5\n", '"'),
            // One that nothing closes is an error of the file.
            ("a,b\n1,x\n2,\"y\n3,z\n", '"'),
            ("id,name\n1,\"x\"\n2,\"y\"\n3,\"Foo\" Bar\n", '"'),
            ("id,name\n1,\"x,y\"\n2,\"Foo\" Bar\n", '"'),
            ("id,name\n1,\"x\"\n2,\"Foo\"  \n3,z\n", '"'),
            ("text\n\"Foo\" Bar\n", '"'),
            ("a,b\n1,\"x\"\"y\"\n2,z \"w\"\n", '"'),
        ] {
            let found = sniffed(text, "t.csv", &CsvOptions::default());
            assert_eq!(found.1, quote, "{text:?}");
        }
        let head = b"id,name\n1,\"x\"\n2,\"Foo\" Bar\n";
        let found = |further: &[u8], options: &CsvOptions| {
            let further = [further.to_vec()];
            sniff(head, &further, Path::new("t"), options, &Notation::default()).grammar.quote
        };
        let plain = CsvOptions::default();
        assert_eq!(found(b"7,x\n8,y\n", &plain), 0);
        // Rows elsewhere have their number of values by quotes only.
        assert_eq!(found(b"7,\"x,z\"\n8,y\n", &plain), b'"');
        let given = CsvOptions { quote: Some(b'"'), ..plain.clone() };
        assert_eq!(found(b"7,x\n", &given), b'"');
        // Elsewhere may be within a quoted value: what stands there is no sign against quotes.
        let (clean, further) = (b"id,name\n1,x\n2,y\n", [b"7,\"x\n8,\"y\" z\n".to_vec()]);
        let found = sniff(clean, &further, Path::new("t"), &plain, &Notation::default());
        assert_eq!(found.grammar.quote, b'"');
    }

    #[test]
    fn what_is_given_is_not_sniffed() {
        let given =
            CsvOptions { delimiter: Some(b','), has_header: Some(true), ..CsvOptions::default() };
        assert_eq!(sniffed("1;2\n3;4\n", "t.csv", &given), (',', '"', true));
        let quote = CsvOptions { quote: Some(b'"'), ..CsvOptions::default() };
        assert_eq!(sniffed("a,b\n'x',1\n'z',2\n", "t.csv", &quote), (',', '"', true));
        let off = CsvOptions { sniff: false, ..CsvOptions::default() };
        assert_eq!(sniffed("1;2\n3;4\n", "t.csv", &off), (',', '"', true));
        assert_eq!(sniffed("a,b\tc\n1\t2\n", "t.TSV", &CsvOptions::default()), ('\t', '"', true));
        assert_eq!(sniffed("a,b\n1,2\n", "t.psv", &off).0, '|');
    }
}
