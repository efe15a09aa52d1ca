//! `FROM t WHERE …`, which is `SELECT * FROM t WHERE …`.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{is_any, is_word, until};

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
    let mut depth = 0;
    for token in tokens[..at].iter().rev() {
        match token.token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => return false,
            Token::LParen => depth -= 1,
            Token::SemiColon => return false,
            _ if depth == 0 && is_word(token, "SELECT") => return true,
            _ => {}
        }
    }
    false
}

/// Whether a place is behind the queries of a WITH.
fn is_behind_with(tokens: &[TokenWithSpan], at: usize) -> bool {
    let mut depth = 0;
    for token in tokens[..at].iter().rev() {
        match token.token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => return false,
            Token::LParen => depth -= 1,
            _ if depth > 0 => {}
            _ if is_word(token, "WITH") => return true,
            Token::SemiColon => return false,
            _ if is_any(token, &["SELECT", "FROM", "VALUES", "DELETE", "UPDATE"]) => return false,
            _ => {}
        }
    }
    false
}
