//! `LIMIT 10%`, a share of the rows, of which a function tells that no user calls.
//!
//! ```text
//!   LIMIT 10%             LIMIT [share of rows]('10')
//!   LIMIT 2.5 PERCENT     LIMIT [share of rows]('2.5')
//! ```

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{is_any, is_word, made, refused, stand_in};
use crate::error::Result;
use crate::query::SHARE_OF_ROWS;

/// Writes them out; whether there was one.
///
/// # Errors
/// What is no number from 0 to 100.
pub(super) fn limits(tokens: &mut Vec<TokenWithSpan>) -> Result<bool> {
    let mut any = false;
    // From the last to the first, whose places stay.
    for at in (0..tokens.len()).rev() {
        let Some(end) = percent(tokens, at) else { continue };
        let here = tokens[at].span.start;
        let number = match &tokens[at + 1..end] {
            [one] => match &one.token {
                Token::Number(number, _) => number.clone(),
                _ => return refused("LIMIT takes a percentage that is a number: LIMIT 10%", here),
            },
            _ => return refused("LIMIT takes a percentage that is a number: LIMIT 10%", here),
        };
        if !number.parse::<f64>().is_ok_and(|share| (0.0..=100.0).contains(&share)) {
            return refused("LIMIT takes a percentage from 0 to 100", here);
        }
        let mut share = made(&format!("('{number}')"), &tokens[at + 1])?;
        share.insert(0, stand_in(SHARE_OF_ROWS, &tokens[at + 1]));
        tokens.splice(at + 1..=end, share);
        any = true;
    }
    Ok(any)
}

/// Where the sign of a percentage stands, behind a LIMIT at a place.
fn percent(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    if !is_word(&tokens[at], "LIMIT") {
        return None;
    }
    let ends = |token: &TokenWithSpan| {
        matches!(token.token, Token::RParen | Token::SemiColon | Token::EOF)
            || is_any(token, &["OFFSET", "UNION", "INTERSECT", "EXCEPT"])
    };
    let mut depth = 0;
    for (place, token) in tokens.iter().enumerate().skip(at + 1) {
        let is_sign = token.token == Token::Mod || is_word(token, "PERCENT");
        match token.token {
            _ if depth == 0
                && is_sign
                && place > at + 1
                && tokens.get(place + 1).is_none_or(ends) =>
            {
                return Some(place);
            }
            _ if depth == 0 && ends(token) => return None,
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    None
}
