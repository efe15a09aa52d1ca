//! `x ISNULL` and `x NOTNULL`, which are `x IS NULL` and `x IS NOT NULL`.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{is_any, is_word, made};
use crate::error::Result;

/// Writes them out behind a value. Elsewhere the words are names, as they are in quotes.
pub(super) fn null_tests(tokens: &mut Vec<TokenWithSpan>) -> Result<bool> {
    let mut any = false;
    for at in (1..tokens.len()).rev() {
        let test = match &tokens[at] {
            token if is_word(token, "ISNULL") => "IS NULL",
            token if is_word(token, "NOTNULL") => "IS NOT NULL",
            _ => continue,
        };
        if ends_value(&tokens[at - 1]) {
            let words = made(test, &tokens[at])?;
            tokens.splice(at..=at, words);
            any = true;
        }
    }
    Ok(any)
}

/// Words behind which a name stands, and no value has ended.
const BEFORE_NAMES: [&str; 36] = [
    "ALL",
    "AND",
    "AS",
    "BETWEEN",
    "BY",
    "CASE",
    "COLUMN",
    "DESCRIBE",
    "DISTINCT",
    "ELSE",
    "EXISTS",
    "FROM",
    "HAVING",
    "ILIKE",
    "IN",
    "INTO",
    "IS",
    "JOIN",
    "LATERAL",
    "LIKE",
    "LIMIT",
    "NOT",
    "OFFSET",
    "ON",
    "OR",
    "QUALIFY",
    "RETURNING",
    "SELECT",
    "SET",
    "TABLE",
    "THEN",
    "TO",
    "UPDATE",
    "USING",
    "WHEN",
    "WHERE",
];

fn ends_value(token: &TokenWithSpan) -> bool {
    match &token.token {
        Token::Word(word) => word.quote_style.is_some() || !is_any(token, &BEFORE_NAMES),
        Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) => true,
        Token::RParen | Token::RBracket => true,
        _ => false,
    }
}
