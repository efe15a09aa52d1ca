//! `a ASOF LEFT JOIN b ON …`, with a condition that tells the kind of the join.
//!
//! ```text
//!   a ASOF LEFT JOIN b ON …     a ASOF JOIN b MATCH_CONDITION ([asof left join]) ON …
//! ```

use datafusion::sql::sqlparser::tokenizer::TokenWithSpan;

use super::{is_any, is_word, kind_of_join, until};
use crate::error::Result;

/// The conditions that tell such joins, which compare nothing: an inner one, and one that keeps all
/// rows of the first table.
pub(in crate::session) const ASOF: &str = "asof join";
pub(in crate::session) const ASOF_LEFT: &str = "asof left join";

/// `ASOF [LEFT|INNER] JOIN b ON …` gets the condition that the parser wants, which tells the kind.
pub(super) fn asof_joins(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let mut at = 0;
    while at < tokens.len() {
        if !is_word(&tokens[at], "ASOF") {
            at += 1;
            continue;
        }
        let kind = tokens.get(at + 1).filter(|next| is_any(next, &["LEFT", "INNER"])).cloned();
        let left = kind.as_ref().is_some_and(|kind| is_word(kind, "LEFT"));
        if kind.is_some() {
            tokens.remove(at + 1);
        }
        if left && tokens.get(at + 1).is_some_and(|next| is_word(next, "OUTER")) {
            tokens.remove(at + 1);
        }
        let on = until(tokens, at + 1, &["ON", "USING", "MATCH_CONDITION"]);
        if tokens.get(on).is_some_and(|token| is_any(token, &["ON", "USING"])) {
            let kind = if left { ASOF_LEFT } else { ASOF };
            let condition = kind_of_join(kind, &tokens[on])?;
            tokens.splice(on..on, condition);
        }
        at = on + 1;
    }
    Ok(())
}
