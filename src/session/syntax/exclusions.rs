//! `ROWS 3 PRECEDING EXCLUDE NO OTHERS`, which is `ROWS 3 PRECEDING`.

use datafusion::sql::sqlparser::tokenizer::TokenWithSpan;

use super::{is_any, is_word, refused, until};
use crate::error::{Error, Result};

/// Drops `EXCLUDE NO OTHERS` behind the frame of a window, which says what is so without it.
///
/// # Errors
/// Frames that leave rows out.
pub(super) fn exclusions(tokens: &mut Vec<TokenWithSpan>) -> Result<bool> {
    let mut any = false;
    for at in (1..tokens.len()).rev() {
        if !is_word(&tokens[at], "EXCLUDE")
            || !is_any(&tokens[at - 1], &["ROW", "PRECEDING", "FOLLOWING"])
        {
            continue;
        }
        let end = until(tokens, at, &[]);
        let left_out = [&["NO", "OTHERS"][..], &["CURRENT", "ROW"], &["GROUP"], &["TIES"]]
            .into_iter()
            .find(|words| {
                words.len() == end - at - 1
                    && words.iter().zip(&tokens[at + 1..]).all(|(word, token)| is_word(token, word))
            });
        match left_out {
            Some(["NO", ..]) => {
                tokens.drain(at..end);
                any = true;
            }
            Some(words) => {
                let what = format!("EXCLUDE {} in the frame of a window", words.join(" "));
                let start = tokens[at].span.start;
                let error = Error::unsupported(what, "a frame has all rows between its bounds");
                return Err(error.at(Some((start.line, start.column))));
            }
            None => {
                return refused(
                    "expected EXCLUDE CURRENT ROW, GROUP, TIES or NO OTHERS",
                    tokens[at].span.start,
                );
            }
        }
    }
    Ok(any)
}
