//! What is asked of a text besides its statements.

use std::collections::BTreeMap;

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, Tokenizer};

/// Whether a text typed so far is whole: nothing, or closed by a semicolon.
pub fn is_whole(text: &str) -> bool {
    missing(text).is_none()
}

/// What a text typed so far lacks.
pub fn missing(text: &str) -> Option<&'static str> {
    let mut tokens = vec![];
    match Tokenizer::new(&GenericDialect {}, text).tokenize_with_location_into_buf(&mut tokens) {
        // More text can close a string or a comment, and mend nothing else.
        Err(error) => {
            let is_open = error.message.contains("Unterminated") || error.message.contains("EOF");
            is_open.then_some("a quote or a comment is open")
        }
        Ok(()) => {
            let last =
                tokens.iter().rev().find(|t| !matches!(t.token, Token::Whitespace(_) | Token::EOF));
            let is_whole = last.is_none_or(|last| last.token == Token::SemiColon);
            (!is_whole).then_some("';' ends the statement")
        }
    }
}

/// Whether a text has a name among its tokens.
pub fn has_name(text: &str, name: &str) -> bool {
    let mut tokens = vec![];
    // What is typed so far may break off anywhere.
    let _ = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location_into_buf(&mut tokens);
    tokens.iter().any(|token| matches!(&token.token, Token::Word(word) if word.value == name))
}

/// A name as SQL writes it: in quotes unless it is a word of lower-case letters.
pub fn quoted(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain { name.to_string() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// A text with values in the places of those of its `$name` that are known: numbers as they are,
/// all else in quotes, also `007`, which is more than its number. `None` where there are none such.
///
/// A value is one token, or a number with its sign in parentheses, whatever stands beside it: the
/// signs of `5-$x` would begin a comment, and `'a'$x` would go on with the text.
pub fn with_values(text: &str, values: &BTreeMap<String, String>) -> Option<String> {
    if values.is_empty() {
        return None;
    }
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location().ok()?;
    let mut offsets = Offsets::new(text);
    let (mut made, mut copied) = (String::new(), 0);
    for token in tokens {
        let Token::Placeholder(name) = &token.token else { continue };
        let Some(value) = name.strip_prefix('$').and_then(|name| values.get(name)) else {
            continue;
        };
        let (start, end) = (offsets.at(token.span.start), offsets.at(token.span.end));
        made.push_str(&text[copied..start]);
        if made.ends_with(goes_on) {
            made.push(' ');
        }
        match value.parse::<f64>() {
            Ok(number) if number.is_finite() && !has_zeros_before(value) => {
                match value.starts_with(['+', '-']) {
                    true => made.push_str(&format!("({value})")),
                    false => made.push_str(value),
                }
            }
            _ => made.push_str(&format!("'{}'", value.replace('\'', "''"))),
        }
        if text[end..].starts_with(goes_on) {
            made.push(' ');
        }
        copied = end;
    }
    (copied > 0).then(|| made + &text[copied..])
}

/// Whether a number or a text beside the character could be one token with it.
fn goes_on(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '\'' | '"' | '`' | '$' | '@' | '#' | '&' | '\\')
}

/// Whether digits begin with a zero that no number needs.
fn has_zeros_before(digits: &str) -> bool {
    let digits = digits.trim_start_matches(['+', '-']).strip_prefix('0').unwrap_or_default();
    digits.starts_with(|c: char| c.is_ascii_digit())
}

/// Byte offsets of places, which must be asked for in rising order.
pub struct Offsets<'a> {
    text: &'a str,
    offset: usize,
    place: Location,
}

impl<'a> Offsets<'a> {
    /// At the text's begin.
    pub fn new(text: &'a str) -> Self {
        Offsets::at_place(text, Location::new(1, 1))
    }

    /// At the begin of a part, which is at a place of the whole text.
    pub(super) fn at_place(text: &'a str, place: Location) -> Self {
        Offsets { text, offset: 0, place }
    }

    /// The offset of a place.
    pub fn at(&mut self, place: Location) -> usize {
        for c in self.text[self.offset..].chars() {
            if (self.place.line, self.place.column) >= (place.line, place.column) {
                break;
            }
            self.offset += c.len_utf8();
            if c == '\n' {
                self.place = Location::new(self.place.line + 1, 1);
            } else {
                self.place.column += 1;
            }
        }
        self.offset
    }
}
