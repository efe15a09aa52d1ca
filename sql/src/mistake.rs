//! Where in a statement a message is about that names no place, and what of its words was mistyped.
//!
//! Whoever runs a plan knows nothing of the text that it came of. But its messages name values,
//! functions and columns, and what of these stands once in the statement is what they are about.
//! What stands twice is not pointed at.

use datafusion::sql::sqlparser::keywords::{ALL_KEYWORDS, Keyword};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use warpframe::nearest;
use warpframe::sql::Text;

use crate::keywords;
use crate::report::Place;

/// What of a message tells of a clause, and the words that begin it.
const CLAUSES: [(&str, &[&str]); 20] = [
    ("rows of ", &["VALUES"]),
    ("folder in single quotes", &["DATABASE"]),
    ("window function", &["OVER"]),
    ("Step cannot be", &["GENERATE_SERIES", "RANGE"]),
    ("Argument #", &["GENERATE_SERIES", "RANGE"]),
    ("HAVING clause", &["HAVING"]),
    ("WHERE clause", &["WHERE"]),
    ("LIMIT", &["LIMIT"]),
    ("OFFSET", &["OFFSET"]),
    ("DISTINCT ON", &["DISTINCT"]),
    ("ORDER BY", &["ORDER"]),
    ("Order by", &["ORDER"]),
    ("GROUP BY", &["GROUP"]),
    ("window frame", &["ROWS", "RANGE", "GROUPS"]),
    ("Percentile", &["PERCENTILE_CONT", "APPROX_PERCENTILE_CONT", "QUANTILE_CONT"]),
    ("values list", &["VALUES"]),
    ("UNION", &["UNION"]),
    ("INTERSECT", &["INTERSECT"]),
    ("EXCEPT", &["EXCEPT"]),
    ("column alias", &["AS"]),
];

/// Whether a message names what stands at a place among tokens.
type Rule = fn(&str, &[TokenWithSpan], usize) -> bool;

/// The place in a text's statement that a message is about, if one thing stands there that it
/// names.
pub fn place(text: &str, statement: Place, message: &str) -> Option<Place> {
    let tokens = tokens_of(text, statement);
    let rules: [Rule; 6] = [is_value, is_function, is_name, is_operator, is_number, is_mentioned];
    if message.starts_with("not supported: the statement ") {
        return Some(statement);
    }
    if let Some(at) = second_table(message, &tokens).or_else(|| without_fields(message, &tokens)) {
        return Some(Place::from(tokens[at].span.start));
    }
    for rule in rules {
        let found: Vec<usize> =
            (0..tokens.len()).filter(|at| rule(message, &tokens, *at)).collect();
        let mut texts: Vec<String> =
            found.iter().map(|at| tokens[*at].token.to_string().to_lowercase()).collect();
        texts.sort();
        texts.dedup();
        // Of several things the first, but nothing that stands twice.
        if let (Some(at), true) = (found.first(), texts.len() == found.len()) {
            return Some(Place::from(tokens[*at].span.start));
        }
    }
    CLAUSES.iter().filter(|(tells, _)| message.contains(tells)).find_map(|(_, words)| {
        let mut found = tokens.iter().filter(|token| words.iter().any(|word| is_word(token, word)));
        match (found.next(), found.next()) {
            (Some(token), None) => Some(Place::from(token.span.start)),
            _ => None,
        }
    })
}

/// Where the second table of a name stands.
fn second_table(message: &str, tokens: &[TokenWithSpan]) -> Option<usize> {
    let name = message.strip_prefix("two tables of the query are called \"")?.split_once('"')?.0;
    let is_table = |at: &usize| {
        let behind = tokens.get(at + 1).map(|next| &next.token);
        matches!(&tokens[*at].token, Token::Word(word) if word.value.eq_ignore_ascii_case(name))
            && behind != Some(&Token::Period)
    };
    (0..tokens.len()).filter(is_table).nth(1)
}

/// Where the last field is asked for, of a value that has none.
fn without_fields(message: &str, tokens: &[TokenWithSpan]) -> Option<usize> {
    if !message.contains(" has no fields") {
        return None;
    }
    let next = |at: usize| tokens.get(at + 1).map(|next| &next.token);
    (0..tokens.len()).rev().find_map(|at| match tokens[at].token {
        Token::Period => at.checked_sub(1),
        Token::LBracket if matches!(next(at), Some(Token::SingleQuotedString(_))) => Some(at),
        _ => None,
    })
}

/// A value in quotes, or a parameter.
fn is_value(message: &str, tokens: &[TokenWithSpan], at: usize) -> bool {
    match &tokens[at].token {
        Token::SingleQuotedString(text) | Token::HexStringLiteral(text) => {
            quotes(message, text) || text.chars().count() > 3 && message.contains(text.as_str())
        }
        Token::Placeholder(name) => quotes(message, name),
        Token::Number(number, _) => {
            quotes(message, number) || number.len() > 2 && has_word(message, number)
        }
        _ => false,
    }
}

/// A function that the message names in quotes, or with what is behind it.
fn is_function(message: &str, tokens: &[TokenWithSpan], at: usize) -> bool {
    match called(tokens, at) {
        Some(name) => {
            let name = name.to_lowercase();
            let own = has_word(message, &format!("{name}("));
            quotes(message, &name) || own || name == "substring" && has_word(message, "substr(")
        }
        None => false,
    }
}

/// A name in quotes, or behind that of its table.
fn is_name(message: &str, tokens: &[TokenWithSpan], at: usize) -> bool {
    let Token::Word(word) = &tokens[at].token else { return false };
    let name =
        if word.quote_style.is_some() { word.value.clone() } else { word.value.to_lowercase() };
    quotes(message, &name) || quotes(message, &word.value) || has_word(message, &format!(".{name}"))
}

/// An operator in quotes, or between what it does not take.
fn is_operator(message: &str, tokens: &[TokenWithSpan], at: usize) -> bool {
    let token = &tokens[at].token;
    if message.starts_with("Divide by zero") {
        return matches!(token, Token::Div | Token::Mod);
    }
    let text = token.to_string();
    let is_operator = match token {
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::IN
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::BETWEEN
        ),
        _ => text
            .chars()
            .all(|c| c.is_ascii_punctuation() && !matches!(c, '(' | ')' | ',' | '.' | ';')),
    };
    is_operator
        && (quotes(message, &text.to_uppercase())
            || message.contains(&format!(" {} ", text.to_uppercase())))
}

/// A number that stands for a column's.
fn is_number(message: &str, tokens: &[TokenWithSpan], at: usize) -> bool {
    match &tokens[at].token {
        Token::Number(number, _) => ["position ", "specified: "].iter().any(|before| {
            let rest = message.split_once(before).map(|(_, rest)| rest);
            rest.is_some_and(|rest| rest.starts_with(number.as_str()))
        }),
        _ => false,
    }
}

/// A function that is a word of the message.
fn is_mentioned(message: &str, tokens: &[TokenWithSpan], at: usize) -> bool {
    called(tokens, at).is_some_and(|name| has_word(&message.to_lowercase(), &name.to_lowercase()))
}

/// The name of a function that is called at a place.
fn called(tokens: &[TokenWithSpan], at: usize) -> Option<&str> {
    match (&tokens[at].token, tokens.get(at + 1).map(|next| &next.token)) {
        (Token::Word(word), Some(Token::LParen)) if !CLAUSE_WORDS.contains(&word.keyword) => {
            Some(&word.value)
        }
        _ => None,
    }
}

/// Words before parentheses that are no functions.
const CLAUSE_WORDS: [Keyword; 18] = [
    Keyword::ALL,
    Keyword::AND,
    Keyword::ANY,
    Keyword::AS,
    Keyword::BY,
    Keyword::EXISTS,
    Keyword::FROM,
    Keyword::HAVING,
    Keyword::IN,
    Keyword::JOIN,
    Keyword::NOT,
    Keyword::ON,
    Keyword::OR,
    Keyword::OVER,
    Keyword::SELECT,
    Keyword::USING,
    Keyword::VALUES,
    Keyword::WHERE,
];

/// Whether a message has a text in quotes, or as what they begin or end with.
fn quotes(message: &str, text: &str) -> bool {
    !text.is_empty()
        && ['\'', '"', '`'].iter().any(|quote| message.contains(&format!("{quote}{text}{quote}")))
}

/// Whether a message has a text with no further letters around it.
fn has_word(message: &str, text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    message.match_indices(text).any(|(at, _)| {
        let (before, behind) =
            (message[..at].chars().next_back(), message[at + text.len()..].chars().next());
        let opens = text.starts_with('.') || !before.is_some_and(is_part);
        opens && (text.ends_with('(') || !behind.is_some_and(is_part))
    })
}

/// What is to be said of a text that does not parse: a word that is nearly another, or what is left
/// open.
pub fn of_syntax(text: &str, statement: Place, place: Place) -> Option<String> {
    let tokens = tokens_of(text, statement);
    let here = tokens.iter().position(|token| Place::from(token.span.start) == place);
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
    for token in &tokens {
        match token.token {
            Token::LParen => open.push(token.span.start),
            Token::RParen => drop(open.pop()),
            _ => {}
        }
    }
    let open = open.last()?;
    let line =
        if open.line == place.line { String::new() } else { format!("line {}, ", open.line) };
    Some(format!("the parenthesis at {line}column {} is not closed", open.column))
}

fn is_word(token: &TokenWithSpan, wanted: &str) -> bool {
    matches!(&token.token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

/// The tokens of the statement that begins at a place.
fn tokens_of(text: &str, statement: Place) -> Vec<TokenWithSpan> {
    // What is behind a text that is not closed is of no statement.
    let text = Text::from(text);
    let begins = |token: &TokenWithSpan| {
        (token.span.start.line, token.span.start.column) >= (statement.line, statement.column)
    };
    let own = text.words().skip_while(|token| !begins(token));
    own.take_while(|token| token.token != Token::SemiColon).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Place = Place { line: 1, column: 1 };

    fn column(text: &str, message: &str) -> Option<u64> {
        place(text, START, message).map(|place| place.column)
    }

    #[test]
    fn what_a_message_names_once_is_where_it_is() {
        assert_eq!(column("SELECT 'abc'", "no 'abc' here"), Some(8));
        assert_eq!(column("SELECT 'abc', 'abc'", "no 'abc' here"), None);
        assert_eq!(column("SELECT sum(a, b)", "no function sum(Int64, Int64)"), Some(8));
        assert_eq!(column("SELECT 1 WHERE px", "predicate 't.px' is no condition"), Some(16));
        assert_eq!(column("SELECT 1 + true", "Cannot coerce Int64 + Boolean"), Some(10));
        assert_eq!(column("SELECT a LIMIT -1", "LIMIT must be >= 0"), Some(10));
        assert_eq!(column("SELECT a ORDER BY 7", "out of bounds, specified: 7, max: 1"), Some(19));
        assert_eq!(column("SELECT NTILE(0)", "NTILE requires a positive integer"), Some(8));
        assert_eq!(column("SELECT 1", "nothing of it"), None);
        assert_eq!(column("SELECT a, b", "Too many columns: t.a, t.b"), Some(8));
        assert_eq!(
            column("FROM t JOIN t ON true", "two tables of the query are called \"t\": …"),
            Some(13)
        );
        assert_eq!(
            column("SELECT t.a.b", "a value of type Int64 has no fields, which …"),
            Some(10)
        );
        assert_eq!(column("  BEGIN", "not supported: the statement BEGIN"), Some(1));
    }

    #[test]
    fn a_word_that_is_nearly_another_is_told() {
        let told = |text: &str, column: u64| of_syntax(text, START, Place { line: 1, column });
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
