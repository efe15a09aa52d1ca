//! What was mistyped in a text that does not parse.

use datafusion::sql::sqlparser::keywords::ALL_KEYWORDS;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::keywords;
use super::text::is_word;
use crate::error::nearest;

/// What is to be said of a text that does not parse: a word that is nearly another, or what is left
/// open.
pub(super) fn of_syntax(tokens: &[&TokenWithSpan], place: (u64, u64)) -> Option<String> {
    let here =
        tokens.iter().position(|token| (token.span.start.line, token.span.start.column) == place);
    let at = here.unwrap_or(tokens.len());
    let known = keywords::of_clauses();
    // The parser stops behind a word that it takes for another name.
    for token in [tokens.get(at), at.checked_sub(1).and_then(|before| tokens.get(before))]
        .into_iter()
        .flatten()
    {
        if let Token::Word(word) = &token.token
            && word.quote_style.is_none()
            && word.value.len() > 3
            && !ALL_KEYWORDS.contains(&word.value.to_uppercase().as_str())
            && let Some(meant) = nearest(&word.value, &known)
        {
            return Some(format!("did you mean {meant}?"));
        }
    }
    if let Some(token) = tokens.get(at)
        && let Some(word) = ["GROUP", "ORDER", "PARTITION"].iter().find(|word| is_word(token, word))
        && !tokens.get(at + 1).is_some_and(|next| is_word(next, "BY"))
    {
        return Some(format!("{word} is followed by BY"));
    }
    let word_at = |at: Option<usize>, wanted: &str| {
        at.and_then(|at| tokens.get(at)).is_some_and(|t| is_word(t, wanted))
    };
    if word_at(at.checked_sub(1), "FROM") && word_at(at.checked_sub(2), "AS") {
        return Some("AS is followed by a name".into());
    }
    let words = |wanted: &str| tokens.iter().filter(|token| is_word(token, wanted)).count();
    if words("CASE") > words("END") {
        return Some("a CASE ends with END".into());
    }
    if words("CASE") > 0 && words("WHEN") == 0 {
        return Some("a CASE has WHEN and THEN".into());
    }
    let mut open = vec![];
    for token in tokens {
        match token.token {
            Token::LParen => open.push(token.span.start),
            Token::RParen => drop(open.pop()),
            _ => {}
        }
    }
    let open = open.last()?;
    let line = if open.line == place.0 { String::new() } else { format!("line {}, ", open.line) };
    Some(format!("the parenthesis at {line}column {} is not closed", open.column))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::Text;

    #[test]
    fn a_word_that_is_nearly_another_is_told() {
        let told = |text: &str, column| of_syntax(&Text::from(text).statement(), (1, column));
        assert_eq!(told("SELECT 1 FROM t WERE a > 1", 22).as_deref(), Some("did you mean WHERE?"));
        assert_eq!(told("WIHT q AS (SELECT 1) FROM q", 1).as_deref(), Some("did you mean WITH?"));
        assert_eq!(
            told("SELECT CASE WEHN a THEN 1 END", 18).as_deref(),
            Some("did you mean WHEN?")
        );
        assert_eq!(told("SELECT 1 FORM t", 10).as_deref(), Some("did you mean FROM?"));
        assert_eq!(told("SELECT 1 FROM t GROUP a", 17).as_deref(), Some("GROUP is followed by BY"));
        assert_eq!(
            told("SELECT CASE WHEN a THEN 1 FROM t", 18).as_deref(),
            Some("a CASE ends with END")
        );
        let open = told("SELECT * FROM (SELECT 1", 24);
        assert_eq!(open.as_deref(), Some("the parenthesis at column 15 is not closed"));
        assert_eq!(told("SELECT 1 2", 10), None);
    }
}
