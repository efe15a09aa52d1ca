//! Where in a text an error is about that names no place.
//!
//! Whoever runs a plan knows nothing of the text that it came of. But its messages name values,
//! functions and columns, and what of these stands once in the text is what they are about. What
//! stands twice is not pointed at.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::Text;
use super::hint;
use super::text::is_word;
use crate::error::{Error, ErrorKind};

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
type Rule = fn(&str, &[&TokenWithSpan], usize) -> bool;

impl Text<'_> {
    /// The error with its place in this text, which is one statement, as far as its kind or its
    /// message tells. An error of a text that does not parse gets a hint, too.
    ///
    /// Errors of the session's methods have theirs already. Those of a frame that is collected have
    /// none: a frame does not keep its text.
    ///
    /// ```
    /// use warpframe::{DeviceChoice, Session, sql::Text};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let text = Text::from("SELECT CAST(s AS INT) FROM (VALUES ('x7')) t(s)");
    /// let result = session.sql_text(&text).and_then(|frame| frame.collect());
    /// let error = result.map_err(|error| text.locate(error)).unwrap_err();
    /// assert_eq!(error.location(), Some((1, 37)));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn locate(&self, error: Error) -> Error {
        let place = error.location().or_else(|| match error.kind() {
            // The parser gives none where a text ends too early.
            ErrorKind::Parse { path: None, .. } => Some(self.end()),
            ErrorKind::NotAQuery { .. } => Some((self.start().line, self.start().column)),
            ErrorKind::OutOfDeviceMemory { .. }
            | ErrorKind::OutOfHostMemory { .. }
            | ErrorKind::Cuda { .. }
            | ErrorKind::DeviceUnavailable { .. }
            | ErrorKind::Compile { .. }
            | ErrorKind::Simulation { .. }
            | ErrorKind::Interrupted { .. }
            | ErrorKind::Internal { .. } => None,
            // Its line is one of the user's code.
            ErrorKind::UserCode { .. } => None,
            ErrorKind::Forbidden { what, .. } => place(&self.statement(), what),
            _ => place(&self.statement(), &error.to_string()),
        });
        let hint = match (error.kind(), place, self.error()) {
            (ErrorKind::Parse { path: None, .. }, Some(place), None) => {
                hint::of_syntax(&self.statement(), place)
            }
            _ => None,
        };
        error.at(place).with_hint(hint)
    }
}

/// The place that a message is about, if one thing stands among the tokens that it names.
fn place(tokens: &[&TokenWithSpan], message: &str) -> Option<(u64, u64)> {
    let start = |token: &TokenWithSpan| (token.span.start.line, token.span.start.column);
    let rules: [Rule; 6] = [is_value, is_function, is_name, is_operator, is_number, is_mentioned];
    if let Some(at) = second_table(message, tokens).or_else(|| without_fields(message, tokens)) {
        return Some(start(tokens[at]));
    }
    for rule in rules {
        let found: Vec<usize> = (0..tokens.len()).filter(|at| rule(message, tokens, *at)).collect();
        let mut texts: Vec<String> =
            found.iter().map(|at| tokens[*at].token.to_string().to_lowercase()).collect();
        texts.sort();
        texts.dedup();
        // Of several things the first, but nothing that stands twice.
        if let (Some(at), true) = (found.first(), texts.len() == found.len()) {
            return Some(start(tokens[*at]));
        }
    }
    CLAUSES.iter().filter(|(tells, _)| message.contains(tells)).find_map(|(_, words)| {
        let mut found = tokens.iter().filter(|token| words.iter().any(|word| is_word(token, word)));
        match (found.next(), found.next()) {
            (Some(token), None) => Some(start(token)),
            _ => None,
        }
    })
}

/// Where the second table of a name stands.
fn second_table(message: &str, tokens: &[&TokenWithSpan]) -> Option<usize> {
    let name = message.strip_prefix("two tables of the query are called \"")?.split_once('"')?.0;
    let is_table = |at: &usize| {
        let behind = tokens.get(at + 1).map(|next| &next.token);
        matches!(&tokens[*at].token, Token::Word(word) if word.value.eq_ignore_ascii_case(name))
            && behind != Some(&Token::Period)
    };
    (0..tokens.len()).filter(is_table).nth(1)
}

/// Where the last field is asked for, of a value that has none.
fn without_fields(message: &str, tokens: &[&TokenWithSpan]) -> Option<usize> {
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
fn is_value(message: &str, tokens: &[&TokenWithSpan], at: usize) -> bool {
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
fn is_function(message: &str, tokens: &[&TokenWithSpan], at: usize) -> bool {
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
fn is_name(message: &str, tokens: &[&TokenWithSpan], at: usize) -> bool {
    let Token::Word(word) = &tokens[at].token else { return false };
    let name =
        if word.quote_style.is_some() { word.value.clone() } else { word.value.to_lowercase() };
    quotes(message, &name) || quotes(message, &word.value) || has_word(message, &format!(".{name}"))
}

/// An operator in quotes, or between what it does not take.
fn is_operator(message: &str, tokens: &[&TokenWithSpan], at: usize) -> bool {
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
fn is_number(message: &str, tokens: &[&TokenWithSpan], at: usize) -> bool {
    match &tokens[at].token {
        Token::Number(number, _) => ["position ", "specified: "].iter().any(|before| {
            let rest = message.split_once(before).map(|(_, rest)| rest);
            rest.is_some_and(|rest| rest.starts_with(number.as_str()))
        }),
        _ => false,
    }
}

/// A function that is a word of the message.
fn is_mentioned(message: &str, tokens: &[&TokenWithSpan], at: usize) -> bool {
    called(tokens, at).is_some_and(|name| has_word(&message.to_lowercase(), &name.to_lowercase()))
}

/// The name of a function that is called at a place.
fn called<'t>(tokens: &[&'t TokenWithSpan], at: usize) -> Option<&'t str> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn column(text: &str, message: &str) -> Option<u64> {
        let error = Error::from(ErrorKind::Plan { message: message.into(), location: None });
        Text::from(text).locate(error).location().map(|(_, column)| column)
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
    }

    #[test]
    fn kinds_tell_where_words_do_not() {
        let at = |text: &str, kind| Text::from(text).locate(Error::from(kind)).location();
        let what = || "the statement BEGIN".to_string();
        let no_query = ErrorKind::NotAQuery { what: what(), executes: false };
        assert_eq!(at("\n  BEGIN", no_query), Some((2, 3)));
        let open = ErrorKind::Parse { path: None, line: 0, column: 0, message: "an end".into() };
        assert_eq!(at("SELECT 1 +", open), Some((1, 11)));
        // What it says of itself names what stands here.
        assert_eq!(at("SELECT a", ErrorKind::Internal { what: "\"a\"".into() }), None);
    }

    #[test]
    fn a_place_and_a_hint_that_are_known_stay() {
        let kind = ErrorKind::Plan { message: "no 'abc' here".into(), location: Some((7, 9)) };
        let text = Text::from("SELECT 'abc'");
        assert_eq!(text.locate(kind.into()).location(), Some((7, 9)));
        let message = String::new();
        let error = Error::from(ErrorKind::Parse { path: None, line: 1, column: 8, message });
        let error = text.locate(error.with_hint(Some("do".into())));
        assert_eq!((error.location(), error.hint()), (Some((1, 8)), Some("do")));
    }
}
