//! `WITH q AS MATERIALIZED (…)`, which is `WITH q AS (…)`.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{behind_group, is_word};

/// Drops what WITH says of how its queries are kept, if it does; `AS NOT MATERIALIZED (…)`
/// becomes `AS ((…))`, by which `rules/drawn.rs` knows it.
pub(super) fn materialized(tokens: &mut Vec<TokenWithSpan>) -> bool {
    let mut any = false;
    for at in (1..tokens.len()).rev() {
        let opens = tokens.get(at + 1).is_some_and(|next| next.token == Token::LParen);
        if !opens || !is_word(&tokens[at], "MATERIALIZED") {
            continue;
        }
        let first = if is_word(&tokens[at - 1], "NOT") { at - 1 } else { at };
        if !first.checked_sub(1).is_some_and(|before| is_word(&tokens[before], "AS")) {
            continue;
        }
        if first < at {
            let (open, end) = (tokens[at + 1].clone(), behind_group(tokens, at + 1));
            let close = tokens[end - 1].clone();
            tokens.insert(end, close);
            tokens.insert(at + 1, open);
        }
        tokens.drain(first..=at);
        any = true;
    }
    any
}
