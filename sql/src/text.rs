//! What is asked of a text besides its statements.

use std::collections::BTreeMap;

use datafusion::sql::sqlparser::tokenizer::Token;
use warpframe::sql::{Offsets, Text};

/// Whether a text typed so far is whole: nothing, or closed by a semicolon.
pub fn is_whole(text: &str) -> bool {
    missing(text).is_none()
}

/// What a text typed so far lacks.
pub fn missing(text: &str) -> Option<&'static str> {
    let text = Text::from(text);
    match text.error() {
        // More text can close a string or a comment, and mend nothing else.
        Some(error) => {
            let is_open = error.message.contains("Unterminated") || error.message.contains("EOF");
            is_open.then_some("a quote or a comment is open")
        }
        None => {
            let last = text.words().next_back();
            let is_whole = last.is_none_or(|last| last.token == Token::SemiColon);
            (!is_whole).then_some("';' ends the statement")
        }
    }
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
    let tokens = Text::from(text);
    if tokens.error().is_some() {
        return None;
    }
    let mut offsets = Offsets::of(&tokens);
    let (mut made, mut copied) = (String::new(), 0);
    for token in tokens.words() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_whole_when_closed_by_a_semicolon() {
        for whole in ["", "  ", "-- nothing", "SELECT 1;", "SELECT 1; -- done", "SELECT ';';"] {
            assert!(is_whole(whole), "{whole}");
        }
        for part in ["SELECT 1", "SELECT 1; SELECT", "SELECT ';", "SELECT 1; /* ", "SELECT \"a"] {
            assert!(!is_whole(part), "{part}");
        }
    }

    #[test]
    fn values_stand_where_their_names_stand() {
        let values = [("n", "3"), ("day", "it's")]
            .map(|(name, value)| (name.to_string(), value.to_string()));
        let of = |text: &str| with_values(text, &values.clone().into());
        assert_eq!(
            of("SELECT $n, '$n', $day, $other").as_deref(),
            Some("SELECT 3, '$n', 'it''s', $other")
        );
        assert_eq!(of("SELECT $other"), None);
        for (value, written) in [
            ("007", "'007'"),
            ("-00.5", "'-00.5'"),
            ("0", "0"),
            ("-0.5", "(-0.5)"),
            ("+1", "(+1)"),
            ("0e1", "0e1"),
            ("1e3", "1e3"),
            ("inf", "'inf'"),
            ("", "''"),
        ] {
            let values = [("v".to_string(), value.to_string())];
            assert_eq!(with_values("$v", &values.into()).as_deref(), Some(written));
        }
    }

    #[test]
    fn a_value_is_a_token_of_its_own_whatever_stands_beside_it() {
        let values = [("x", "-1"), ("n", "5"), ("s", "it")];
        let values = values.map(|(name, value)| (name.to_string(), value.to_string()));
        for (text, written) in [
            ("SELECT 5-$x, 2", "SELECT 5-(-1), 2"),
            ("SELECT 2*-$x", "SELECT 2*-(-1)"),
            ("SELECT $x::VARCHAR", "SELECT (-1)::VARCHAR"),
            ("SELECT 'a'$s", "SELECT 'a' 'it'"),
            ("SELECT $s'a'", "SELECT 'it' 'a'"),
            ("SELECT 1 WHERE 2=$n AND 1", "SELECT 1 WHERE 2=5 AND 1"),
            ("SELECT 2$n", "SELECT 2 5"),
            ("LIMIT $n%", "LIMIT 5%"),
        ] {
            assert_eq!(
                with_values(text, &values.clone().into()).as_deref(),
                Some(written),
                "{text}"
            );
        }
    }
}
