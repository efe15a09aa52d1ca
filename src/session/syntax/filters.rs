//! `FILTER (condition)` behind an aggregate, which is `FILTER (WHERE condition)`.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{is_any, is_word, made};
use crate::error::Result;

/// Writes the WHERE that is left out; whether there was such a one.
pub(super) fn filters(tokens: &mut Vec<TokenWithSpan>) -> Result<bool> {
    let mut any = false;
    // From the last to the first, whose places stay.
    for at in (1..tokens.len()).rev() {
        let opens = tokens.get(at + 1).is_some_and(|next| next.token == Token::LParen);
        let bare = tokens.get(at + 2).is_some_and(|next| !is_word(next, "WHERE"));
        if is_word(&tokens[at], "FILTER") && opens && bare && is_behind_call(tokens, at) {
            let clause = made("WHERE", &tokens[at])?;
            tokens.splice(at + 2..at + 2, clause);
            any = true;
        }
    }
    Ok(any)
}

/// Whether a call in an expression ends before a place. A table may be named `filter`.
fn is_behind_call(tokens: &[TokenWithSpan], at: usize) -> bool {
    if is_word(&tokens[at - 1], "NULLS") {
        return true;
    }
    let mut depth = 0;
    for (place, token) in tokens[..at].iter().enumerate().rev() {
        match token.token {
            Token::RParen => depth += 1,
            Token::LParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let name = place.checked_sub(1).map(|name| &tokens[name]);
            let before = place.checked_sub(2).map(|before| &tokens[before]);
            let is_call = name.is_some_and(|name| matches!(name.token, Token::Word(_)))
                && !name.is_some_and(|name| is_any(name, &["FROM", "JOIN", "LATERAL", "AS"]));
            return token.token == Token::LParen
                && is_call
                && !before.is_some_and(|before| is_any(before, &["FROM", "JOIN", "LATERAL"]));
        }
    }
    false
}
