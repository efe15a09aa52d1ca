//! `STRUCT(a INTEGER, b VARCHAR)`, a type as DuckDB writes it. The parser has angle brackets there.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::is_any;
use crate::error::Result;
use crate::sql::is_word;

/// Words that begin a type. `struct(a, b)` is a value, whose names have no type behind them.
const TYPES: [&str; 34] = [
    "BIGINT",
    "BINARY",
    "BLOB",
    "BOOL",
    "BOOLEAN",
    "BYTEA",
    "CHAR",
    "DATE",
    "DECIMAL",
    "DOUBLE",
    "FLOAT",
    "INT",
    "INTEGER",
    "INTERVAL",
    "NUMERIC",
    "REAL",
    "SMALLINT",
    "STRING",
    "STRUCT",
    "TEXT",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMPTZ",
    "TIMESTAMP_MS",
    "TIMESTAMP_NS",
    "TIMESTAMP_S",
    "TIMESTAMP_US",
    "TINYINT",
    "UBIGINT",
    "UINTEGER",
    "USMALLINT",
    "UTINYINT",
    "VARBINARY",
    "VARCHAR",
];

/// Gives such a type its angle brackets.
pub(super) fn struct_types(tokens: &mut [TokenWithSpan]) -> Result<bool> {
    let mut any = false;
    for at in 0..tokens.len() {
        let [word, open, name, of, ..] = &tokens[at..] else { break };
        let is_type = is_word(word, "STRUCT")
            && open.token == Token::LParen
            && matches!(name.token, Token::Word(_))
            && is_any(of, &TYPES);
        if !is_type {
            continue;
        }
        let mut depth = 0_usize;
        let closes = |token: &TokenWithSpan| {
            match token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            depth == 0
        };
        if let Some(end) = tokens[at + 1..].iter().position(closes) {
            tokens[at + 1].token = Token::Lt;
            tokens[at + 1 + end].token = Token::Gt;
            any = true;
        }
    }
    Ok(any)
}
