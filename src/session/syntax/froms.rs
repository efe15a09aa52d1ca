//! `FROM t WHERE …`, which is `SELECT * FROM t WHERE …`.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{is_any, is_word, places_before, until};

/// Where queries begin with FROM and have no SELECT. `inserted`: where the rows of an INSERT begin.
pub(super) fn bare_froms(tokens: &[TokenWithSpan], inserted: Option<usize>) -> Vec<usize> {
    let begins = |at: usize| match at.checked_sub(1).map(|before| &tokens[before]) {
        None => true,
        Some(_) if inserted == Some(at) => true,
        Some(before) => match before.token {
            Token::LParen | Token::SemiColon => true,
            Token::RParen => is_behind_with(tokens, at),
            // Of a column, in whose place nothing stands, or of what a query makes.
            _ if is_word(before, "AS") => !is_in_list(tokens, at),
            _ => is_any(before, &["UNION", "EXCEPT", "INTERSECT", "ALL", "EXPLAIN", "ANALYZE"]),
        },
    };
    let has_select = |at: usize| {
        let end = until(tokens, at, &["SELECT", "UNION", "EXCEPT", "INTERSECT"]);
        tokens.get(end).is_some_and(|token| is_word(token, "SELECT"))
    };
    let froms = (0..tokens.len()).filter(|at| is_word(&tokens[*at], "FROM"));
    froms.filter(|at| begins(*at) && !has_select(*at)).collect()
}

/// Whether a SELECT stands before a place, in the same parentheses.
fn is_in_list(tokens: &[TokenWithSpan], at: usize) -> bool {
    let mut before = places_before(tokens, at);
    before.find(|place| is_word(&tokens[*place], "SELECT")).is_some_and(|select| {
        tokens[select..at].iter().all(|token| token.token != Token::SemiColon)
    })
}

/// Whether a place is behind the queries of a WITH.
fn is_behind_with(tokens: &[TokenWithSpan], at: usize) -> bool {
    let words = ["WITH", "SELECT", "FROM", "VALUES", "DELETE", "UPDATE"];
    let ends = |token: &&TokenWithSpan| token.token == Token::SemiColon || is_any(token, &words);
    let mut before = places_before(tokens, at).map(|place| &tokens[place]);
    before.find(ends).is_some_and(|token| is_word(token, "WITH"))
}
