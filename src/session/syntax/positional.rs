//! `a POSITIONAL JOIN b`, as another join with a condition that no user writes.
//!
//! ```text
//!   a POSITIONAL JOIN b     a ASOF JOIN b MATCH_CONDITION ([positional join])
//! ```

use datafusion::sql::sqlparser::keywords::RESERVED_FOR_TABLE_ALIAS;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{behind_group, behind_source, is_any, is_word, kind_of_join, made};
use crate::error::Result;

/// The condition that tells such a join, which compares nothing.
pub(in crate::session) const POSITIONAL: &str = "positional join";

/// `a POSITIONAL JOIN b`, whose first word the parser takes for a name of `a`.
pub(super) fn positional_joins(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    // From the last to the first, whose places stay.
    for at in (0..tokens.len()).rev() {
        let is_it = is_word(&tokens[at], "POSITIONAL")
            && tokens.get(at + 1).is_some_and(|next| is_word(next, "JOIN"))
            && at.checked_sub(1).is_some_and(|before| !is_word(&tokens[before], "AS"));
        if !is_it {
            continue;
        }
        let end = behind_alias(tokens, behind_source(tokens, at + 2));
        let condition = kind_of_join(POSITIONAL, &tokens[at])?;
        tokens.splice(end..end, condition);
        let asof = made("ASOF", &tokens[at])?;
        tokens.splice(at..=at, asof);
    }
    Ok(())
}

/// The place behind another name of a table, and of its columns, if there is one.
fn behind_alias(tokens: &[TokenWithSpan], at: usize) -> usize {
    let end = match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(_)) if is_word(&tokens[at], "AS") => at + 2,
        Some(Token::Word(word)) if !RESERVED_FOR_TABLE_ALIAS.contains(&word.keyword) => {
            // A second one of these joins.
            let next = tokens.get(at + 1);
            let joins = is_any(&tokens[at], &["POSITIONAL", "ASOF"])
                && next.is_some_and(|next| is_any(next, &["JOIN", "LEFT", "INNER"]));
            if joins { return at } else { at + 1 }
        }
        _ => return at,
    };
    match tokens.get(end).map(|token| &token.token) {
        Some(Token::LParen) => behind_group(tokens, end),
        _ => end.min(tokens.len()),
    }
}
