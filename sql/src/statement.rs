//! Splits SQL into statements, and recognises those that are more than a query.
//!
//! Both look at tokens only: what a query says is the engine's business, which is given the query's
//! own text at its own place, so that its errors point into the text the user wrote.
//!
//! | file | what |
//! |---|---|
//! | `text` | what is asked of a text: whether it is whole, which names it has |
//! | `request` | what a statement may ask for |
//! | `read` | the forms of statements; what walks their tokens |
//! | `create` | `CREATE` |
//! | `copy` | `COPY` |

mod copy;
mod create;
mod read;
mod request;
mod text;

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

pub use self::read::SETTINGS;
pub use self::request::{Existing, Name, Request, RowSource, Sql};
pub use self::text::{Offsets, has_name, is_whole, missing, quoted, with_values};
use crate::report::{Failure, Place};

/// One statement of a text, without the semicolon behind it.
#[derive(Debug, Clone)]
pub struct Statement<'a> {
    text: &'a str,
    /// Where the text begins.
    pub place: Place,
    /// What it is made of; no white space and no comments.
    tokens: Vec<TokenWithSpan>,
}

/// The statements of a text in order; empty ones are left out. A text that has no tokens from some
/// place on (such as an unterminated string) ends with that error, after the statements before it.
pub fn split(text: &str) -> Vec<Result<Statement<'_>, Failure>> {
    let mut tokens = vec![];
    let broken =
        Tokenizer::new(&GenericDialect {}, text).tokenize_with_location_into_buf(&mut tokens).err();
    let mut offsets = Offsets::new(text);
    let mut statements = vec![];
    let mut current: Vec<TokenWithSpan> = vec![];
    let mut finish = |tokens: &mut Vec<TokenWithSpan>| {
        if let (Some(first), Some(last)) = (tokens.first(), tokens.last()) {
            let (start, end) = (offsets.at(first.span.start), offsets.at(last.span.end));
            let place = Place::from(first.span.start);
            statements.push(Ok(Statement {
                text: &text[start..end],
                place,
                tokens: std::mem::take(tokens),
            }));
        }
    };
    for token in tokens {
        match token.token {
            Token::SemiColon => finish(&mut current),
            Token::Whitespace(_) | Token::EOF => {}
            _ => current.push(token),
        }
    }
    match broken {
        // What stands before the break is no whole statement.
        Some(error) => {
            statements
                .push(Err(Failure::sql(error.message.clone(), Some(Place::from(error.location)))));
        }
        None => finish(&mut current),
    }
    statements
}

impl Statement<'_> {
    /// The statement as it is written.
    pub fn text(&self) -> &str {
        self.text
    }

    /// The statement's text from its `from`th to before its `to`th token, at its place.
    fn sql(&self, from: usize, to: usize) -> Sql {
        let (first, last) = (&self.tokens[from], &self.tokens[to - 1]);
        let mut offsets = Offsets::at_place(self.text, self.tokens[0].span.start);
        let (start, end) = (offsets.at(first.span.start), offsets.at(last.span.end));
        let mut sql = "\n".repeat(first.span.start.line as usize - 1);
        sql.push_str(&" ".repeat(first.span.start.column as usize - 1));
        sql.push_str(&self.text[start..end]);
        Sql(sql)
    }
}

#[cfg(test)]
mod tests;
