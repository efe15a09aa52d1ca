//! `INTERVAL 3 DECADES`: the parser has these units in the singular alone, and takes the plural for
//! a name.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{behind_group, is_word, made};
use crate::error::Result;

const UNITS: [(&str, &str); 4] = [
    ("CENTURIES", "CENTURY"),
    ("DECADES", "DECADE"),
    ("MILLENNIA", "MILLENNIUM"),
    ("MILLENNIUMS", "MILLENNIUM"),
];

/// Whether there were such.
pub(super) fn units(tokens: &mut [TokenWithSpan]) -> Result<bool> {
    let mut found = false;
    for at in 0..tokens.len() {
        if !is_word(&tokens[at], "INTERVAL") {
            continue;
        }
        let Some(behind) = behind_value(tokens, at + 1) else { continue };
        let unit = UNITS.iter().find(|(plural, _)| is_word(&tokens[behind], plural));
        if let Some((_, unit)) = unit
            && let Some(word) = made(unit, &tokens[behind])?.pop()
        {
            tokens[behind] = word;
            found = true;
        }
    }
    Ok(found)
}

/// Where a number, a text, or an expression in parentheses has ended.
fn behind_value(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let end = match &tokens.get(at)?.token {
        Token::Number(..) | Token::SingleQuotedString(_) => at,
        Token::Minus => at + 1,
        Token::LParen => behind_group(tokens, at) - 1,
        _ => return None,
    };
    (end + 1 < tokens.len()).then_some(end + 1)
}
