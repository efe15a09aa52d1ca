//! `STRUCT(a INTEGER, b VARCHAR)`, a type as DuckDB writes it. The parser has angle brackets there.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{behind_group, is_any, is_word};
use crate::error::Result;
use crate::session::types::TYPES;

/// Gives such a type its angle brackets. `struct(a, b)` is a value: behind its names stands no
/// type.
pub(in crate::session) fn struct_types(tokens: &mut [TokenWithSpan]) -> Result<bool> {
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
        let end = behind_group(tokens, at + 1) - 1;
        if tokens[end].token == Token::RParen {
            tokens[at + 1].token = Token::Lt;
            tokens[end].token = Token::Gt;
            any = true;
        }
    }
    Ok(any)
}
