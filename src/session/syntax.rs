//! Forms of DuckDB's that the parser lacks, written out among tokens as forms that it has. Tokens
//! keep their places, so that errors point into the text.
//!
//! ```text
//!   PIVOT t ON c USING sum(x) GROUP BY g     SELECT * FROM t PIVOT (sum(x) FOR c IN (ANY) …)
//!   UNPIVOT t ON a, b INTO NAME n VALUE v    SELECT * FROM t UNPIVOT (v FOR n IN (a, b))
//!   FROM t WHERE …                           SELECT * FROM t WHERE …
//!   FROM t USING SAMPLE 10%                  FROM t TABLESAMPLE (10 PERCENT)
//!   a ASOF LEFT JOIN b ON …                  a ASOF JOIN b MATCH_CONDITION ([asof left join]) ON …
//!   a POSITIONAL JOIN b                      a ASOF JOIN b MATCH_CONDITION ([positional join])
//!   WITH q AS MATERIALIZED (…)               WITH q AS (…)
//!   PREPARE p AS … OFFSET ? LIMIT ?          PREPARE p AS … OFFSET $1 LIMIT $2
//!   … ROWS 3 PRECEDING EXCLUDE NO OTHERS     … ROWS 3 PRECEDING
//!   1_000_000                                1000000
//!   INSERT INTO t BY NAME SELECT …           INSERT INTO t ([columns by name]) SELECT …
//!   SELECT * LIKE 'x%'                       SELECT COLUMNS(lambda name : name LIKE 'x%')
//!   sum(x) FILTER (x > 1)                    sum(x) FILTER (WHERE x > 1)
//!   [x * 2 for x in l]                       list_transform(l, x -> x * 2)
//!   LIMIT 10%                                LIMIT [share of rows]('10')
//!   INTERVAL 3 DECADES                       INTERVAL 3 DECADE
//!   x NOTNULL                                x IS NOT NULL
//!   STRUCT(a INTEGER)                        STRUCT<a INTEGER>
//! ```
//!
//! What these mean is said in `relations`, and what `COLUMNS` does in `rules/using/columns.rs`.

mod asof;
mod comprehensions;
mod digits;
mod exclusions;
mod filters;
mod froms;
mod inserts;
mod limits;
mod materialized;
mod null_tests;
mod parameters;
mod pivots;
mod positional;
mod samples;
mod stars;
mod struct_types;
mod units;

use datafusion::sql::sqlparser::ast::Ident;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Word};

pub(super) use self::asof::{ASOF, ASOF_LEFT};
pub(super) use self::materialized::mark as mark_own_rows;
pub(super) use self::pivots::{ALL_BUT, GROUPS};
pub(super) use self::positional::POSITIONAL;
pub(super) use self::stars::SPREAD;
pub(super) use self::struct_types::struct_types;
use crate::error::{Error, ErrorKind, Result};
use crate::query::SHARE_OF_ROWS;
use crate::sql::{Text, is_word};

/// Instead of the columns of an INSERT, of which the query's names tell.
pub(super) const BY_NAME: &str = "columns by name";

/// A text that the parser takes.
pub(super) struct WrittenOut {
    pub(super) tokens: Vec<TokenWithSpan>,
    /// Where the queries end of which each reader has rows of its own.
    pub(super) own_rows: Vec<Location>,
}

/// Writes a form out wherever it stands among tokens; whether it stood anywhere.
type TokenForm = fn(&mut Vec<TokenWithSpan>) -> Result<bool>;

/// Forms that are written out one after another, without a look at the others.
const FORMS: [TokenForm; 8] = [
    |tokens| Ok(parameters::parameters(tokens)),
    exclusions::exclusions,
    filters::filters,
    comprehensions::comprehensions,
    limits::limits,
    |tokens| units::units(tokens),
    null_tests::null_tests,
    |tokens| struct_types(tokens),
];

/// The tokens of a text, with what the parser lacks written out.
///
/// # Errors
/// Such a form, with something in it that is not known.
pub(super) fn written_out(text: &Text<'_>) -> Result<WrittenOut> {
    let mut tokens = text.tokens().to_vec();
    let forms = ["PIVOT", "UNPIVOT", "ASOF", "POSITIONAL", "SAMPLE", "TABLESAMPLE"];
    let mut is_form = tokens.iter().any(|token| is_any(token, &forms));
    // Blanks tell digits apart.
    is_form |= digits::digits(&mut tokens);
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    let mut own_rows = vec![];
    is_form |= materialized::materialized(&mut tokens, &mut own_rows);
    for form in FORMS {
        is_form |= form(&mut tokens)?;
    }
    let inserted = inserts::inserted(&tokens);
    let bare = froms::bare_froms(&tokens, inserted);
    let stars = stars::places(&tokens);
    let by = inserted.and_then(|at| at.checked_sub(2)).filter(|at| is_word(&tokens[*at], "BY"));
    if !is_form && bare.is_empty() && stars.is_empty() && by.is_none() {
        return Ok(WrittenOut { tokens, own_rows: vec![] });
    }
    // From the last to the first, whose places stay.
    let mut places: Vec<(usize, bool)> = bare.into_iter().map(|at| (at, true)).collect();
    places.extend(stars.into_iter().map(|at| (at, false)));
    places.sort_unstable();
    for (at, is_from) in places.into_iter().rev() {
        match is_from {
            true => {
                let select = made("SELECT *", &tokens[at])?;
                tokens.splice(at..at, select);
            }
            false => stars::write_out(&mut tokens, at)?,
        }
    }
    // Before the query, of which nothing is written out before this.
    if let Some(at) = by {
        let columns = match is_word(&tokens[at + 1], "NAME") {
            true => in_parentheses(stand_in(BY_NAME, &tokens[at])),
            false => vec![],
        };
        tokens.splice(at..at + 2, columns);
    }
    samples::samples(&mut tokens)?;
    asof::asof_joins(&mut tokens)?;
    positional::positional_joins(&mut tokens)?;
    // From the last to the first, so that one within another is written out before it.
    for at in (0..tokens.len()).rev() {
        pivots::pivot(&mut tokens, at)?;
    }
    Ok(WrittenOut { tokens, own_rows })
}

fn is_any(token: &TokenWithSpan, wanted: &[&str]) -> bool {
    wanted.iter().any(|word| is_word(token, word))
}

/// Tokens of a text of ours, at a place of the user's.
fn made(text: &str, like: &TokenWithSpan) -> Result<Vec<TokenWithSpan>> {
    let text = Text::from(text);
    if let Some(error) = text.error() {
        return Err(Error::internal(error.to_string()));
    }
    let mut tokens: Vec<TokenWithSpan> = text.words().cloned().collect();
    tokens.iter_mut().for_each(|token| token.span = like.span);
    Ok(tokens)
}

/// A name that stands for something in a statement, at a place of the user's. No user can write it:
/// it is in brackets, which are no quotes here.
fn stand_in(name: &str, like: &TokenWithSpan) -> TokenWithSpan {
    let keyword = Keyword::NoKeyword;
    let word = Word { value: name.into(), quote_style: Some(MARK), keyword };
    TokenWithSpan { token: Token::Word(word), span: like.span }
}

/// All of them. None is an array of SQL's, as their words stand beside one another.
const STAND_INS: [&str; 8] =
    [ALL_BUT, ASOF, ASOF_LEFT, BY_NAME, GROUPS, POSITIONAL, SHARE_OF_ROWS, SPREAD];

/// A statement that was written from a parsed one, as a view's query is kept: what stands for
/// something in it does so again.
pub(super) fn kept(text: &str) -> Text<'_> {
    let read = Text::from(text);
    let mut tokens: Vec<TokenWithSpan> = vec![];
    for token in read.words() {
        tokens.push(token.clone());
        if token.token != Token::RBracket {
            continue;
        }
        let Some(open) = tokens.iter().rposition(|token| token.token == Token::LBracket) else {
            continue;
        };
        // An array has commas between its words.
        let word = |token: &TokenWithSpan| match &token.token {
            Token::Word(word) => Some(word.value.clone()),
            _ => None,
        };
        let words: Option<Vec<String>> =
            tokens[open + 1..tokens.len() - 1].iter().map(word).collect();
        let name = words.and_then(|words| {
            let name = words.join(" ");
            STAND_INS.into_iter().find(|stand_in| *stand_in == name)
        });
        if let Some(name) = name {
            let word = stand_in(name, &tokens[open]);
            tokens.splice(open.., [word]);
        }
    }
    Text::of_tokens(text, tokens)
}

/// A token in parentheses, which stand at its place.
fn in_parentheses(token: TokenWithSpan) -> Vec<TokenWithSpan> {
    let at = |of: Token| TokenWithSpan { token: of, span: token.span };
    vec![at(Token::LParen), token.clone(), at(Token::RParen)]
}

/// The condition of a join that compares nothing, which tells its kind.
fn kind_of_join(kind: &str, like: &TokenWithSpan) -> Result<Vec<TokenWithSpan>> {
    Ok([made("MATCH_CONDITION", like)?, in_parentheses(stand_in(kind, like))].concat())
}

/// The quote of names that stand for something in a statement.
const MARK: char = '[';

/// Whether a name is one that a form was written out with.
pub(super) fn is_mark(ident: &Ident, name: &str) -> bool {
    ident.quote_style == Some(MARK) && ident.value == name
}

fn refused<T>(message: &str, at: Location) -> Result<T> {
    let location = Some((at.line, at.column));
    Err(ErrorKind::Plan { message: message.into(), location }.into())
}

/// The place behind the parenthesis that is closed for the one at `at`; the end where none is.
pub(super) fn behind_group(tokens: &[TokenWithSpan], at: usize) -> usize {
    let mut depth = 0;
    for (place, token) in tokens.iter().enumerate().skip(at) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return place + 1;
        }
    }
    tokens.len()
}

/// The first place from `at` on, outside of parentheses, where one of these words stands; or where
/// what `at` is in ends.
fn until(tokens: &[TokenWithSpan], mut at: usize, words: &[&str]) -> usize {
    while let Some(token) = tokens.get(at) {
        match token.token {
            Token::LParen => {
                at = behind_group(tokens, at);
                continue;
            }
            Token::RParen | Token::SemiColon | Token::EOF => return at,
            _ if is_any(token, words) => return at,
            _ => at += 1,
        }
    }
    tokens.len()
}

/// The place behind a table: a name of several parts, a file, a call, a query in parentheses.
fn behind_source(tokens: &[TokenWithSpan], at: usize) -> usize {
    match tokens.get(at).map(|token| &token.token) {
        Some(Token::LParen) => behind_group(tokens, at),
        Some(Token::Word(_) | Token::SingleQuotedString(_)) => {
            let mut end = at + 1;
            while tokens.get(end).is_some_and(|token| token.token == Token::Period) {
                end += 2;
            }
            match tokens.get(end).map(|token| &token.token) {
                Some(Token::LParen) => behind_group(tokens, end),
                _ => end.min(tokens.len()),
            }
        }
        _ => at,
    }
}

/// The places before one, from the last back to the parenthesis that it is in; without those in
/// parentheses of their own.
fn places_before(tokens: &[TokenWithSpan], at: usize) -> impl Iterator<Item = usize> {
    let mut depth = 0;
    let outside = move |place: usize| {
        let is_outside = match tokens[place].token {
            Token::RParen => {
                depth += 1;
                false
            }
            Token::LParen if depth == 0 => return None,
            Token::LParen => {
                depth -= 1;
                false
            }
            _ => depth == 0,
        };
        Some(is_outside.then_some(place))
    };
    (0..at).rev().map_while(outside).flatten()
}

/// Whether a place is in parentheses that were opened from `from` on.
fn within(tokens: &[TokenWithSpan], from: usize, place: usize) -> bool {
    let mut depth = 0i32;
    for token in &tokens[from..place] {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    depth > 0
}
