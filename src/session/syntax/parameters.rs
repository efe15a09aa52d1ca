//! `PREPARE p AS … ?`, whose parameters have their numbers in the order of the text.
//!
//! ```text
//!   PREPARE p AS … OFFSET ? LIMIT ?     PREPARE p AS … OFFSET $1 LIMIT $2
//! ```
//!
//! A parsed statement has its parts in another order: the select list before FROM, LIMIT before
//! OFFSET.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::is_word;

/// Gives numbers to the parameters of a statement that is prepared; whether there was one.
pub(super) fn parameters(tokens: &mut [TokenWithSpan]) -> bool {
    if !tokens.first().is_some_and(|first| is_word(first, "PREPARE")) {
        return false;
    }
    let mut number = 0;
    for token in tokens {
        if let Token::Placeholder(name) = &mut token.token
            && name == "?"
        {
            number += 1;
            *name = format!("${number}");
        }
    }
    number > 0
}
