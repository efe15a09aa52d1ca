//! `1_000_000`, which is `1000000`.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Takes the bars from among digits, of which the tokenizer (0.62) makes another name of what is
/// before them.
pub(super) fn digits(tokens: &mut Vec<TokenWithSpan>) -> bool {
    let mut any = false;
    for at in (1..tokens.len()).rev() {
        let (before, token) = (&tokens[at - 1], &tokens[at]);
        let (Token::Number(number, false), Token::Word(word)) = (&before.token, &token.token)
        else {
            continue;
        };
        let grouped = word.value.strip_prefix('_').is_some_and(|rest| {
            let is_number =
                |part: &str| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
            rest.split('_').all(is_number)
        });
        if word.quote_style.is_some() || !grouped || before.span.end != token.span.start {
            continue;
        }
        let number = format!("{number}{}", word.value.replace('_', ""));
        tokens[at - 1].token = Token::Number(number, false);
        tokens.remove(at);
        any = true;
    }
    any
}
