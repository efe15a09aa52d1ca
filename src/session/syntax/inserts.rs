//! `INSERT INTO t BY NAME SELECT …`, which names a column that no table has.
//!
//! ```text
//!   INSERT INTO t BY NAME SELECT …     INSERT INTO t ([columns by name]) SELECT …
//! ```

use datafusion::sql::sqlparser::tokenizer::TokenWithSpan;

use super::{behind_source, is_any, is_word};

/// Where the rows of an INSERT begin, behind its table, and its columns or `BY NAME`.
pub(super) fn inserted(tokens: &[TokenWithSpan]) -> Option<usize> {
    let [first, into, ..] = tokens else { return None };
    if !is_word(first, "INSERT") || !is_word(into, "INTO") {
        return None;
    }
    let at = behind_source(tokens, 2);
    let is_by = is_word(tokens.get(at)?, "BY")
        && tokens.get(at + 1).is_some_and(|next| is_any(next, &["NAME", "POSITION"]));
    Some(if is_by { at + 2 } else { at })
}
