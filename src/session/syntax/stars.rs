//! `* LIKE 'x%'` and `*COLUMNS(…)`, whose star the parser takes for one that stands alone.
//!
//! ```text
//!   SELECT * NOT LIKE 'x%' FROM t      SELECT COLUMNS(lambda name : name NOT LIKE 'x%') FROM t
//!   coalesce(*COLUMNS('x.*'))          coalesce("columns as arguments"('x.*'))
//! ```

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{is_any, is_word, made, stand_in};
use crate::error::Result;

/// The function whose value is several arguments: the columns that its own one names.
pub(in crate::session) const SPREAD: &str = "columns as arguments";

/// Places where such a star stands, in order.
pub(super) fn places(tokens: &[TokenWithSpan]) -> Vec<usize> {
    (0..tokens.len()).filter(|at| is_spread(tokens, *at) || liked(tokens, *at).is_some()).collect()
}

/// Writes out the star at a place.
pub(super) fn write_out(tokens: &mut Vec<TokenWithSpan>, at: usize) -> Result<()> {
    let here = tokens[at].clone();
    if is_spread(tokens, at) {
        let name = stand_in(SPREAD, &tokens[at + 1]);
        tokens.splice(at..at + 2, [name]);
        return Ok(());
    }
    let Some(pattern) = liked(tokens, at) else { return Ok(()) };
    let mut text = made("COLUMNS(lambda \"name\" : \"name\"", &here)?;
    text.extend_from_slice(&tokens[at + 1..=pattern]);
    text.extend(made(")", &here)?);
    tokens.splice(at..=pattern, text);
    Ok(())
}

/// Whether `*COLUMNS(` stands there as an argument.
fn is_spread(tokens: &[TokenWithSpan], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| &tokens[before].token);
    tokens[at].token == Token::Mul
        && matches!(before, Some(Token::LParen | Token::Comma | Token::LBracket))
        && tokens.get(at + 1).is_some_and(|next| is_word(next, "COLUMNS"))
        && tokens.get(at + 2).is_some_and(|next| next.token == Token::LParen)
}

/// Where the pattern of a star in a select list stands, if it has one.
fn liked(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let before = tokens.get(at.checked_sub(1)?)?;
    let listed = before.token == Token::Comma || is_any(before, &["SELECT", "DISTINCT", "ALL"]);
    if tokens[at].token != Token::Mul || !listed {
        return None;
    }
    let operator = at + 1 + usize::from(is_word(tokens.get(at + 1)?, "NOT"));
    let pattern = match tokens.get(operator)? {
        token if is_any(token, &["LIKE", "ILIKE"]) => operator + 1,
        token if is_word(token, "SIMILAR") && is_word(tokens.get(operator + 1)?, "TO") => {
            operator + 2
        }
        _ => return None,
    };
    matches!(tokens.get(pattern)?.token, Token::SingleQuotedString(_)).then_some(pattern)
}
