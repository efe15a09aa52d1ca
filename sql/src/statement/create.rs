//! `CREATE`, read.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::read::Reader;
use super::{Existing, Request};
use crate::report::Failure;

impl Reader<'_> {
    /// What follows `CREATE`.
    pub(super) fn create(mut self) -> Result<Request, Failure> {
        let external = |at: usize| self.is_word(at, "EXTERNAL") || self.is_word(at, "UNBOUNDED");
        if external(0) || (self.is_word(0, "OR") && external(2)) {
            return Ok(Request::Execute(self.statement.sql(0, self.statement.tokens.len())));
        }
        let replace = self.accept_all(&["OR", "REPLACE"]);
        if self.is_word(0, "FUNCTION") || self.is_word(0, "AGGREGATE") {
            return Ok(Request::Execute(self.statement.sql(0, self.statement.tokens.len())));
        }
        let temporary = self.accept("TEMPORARY") || self.accept("TEMP");
        if self.is_word(0, "VIEW") || self.is_word(0, "SCHEMA") {
            return Ok(Request::Execute(self.statement.sql(0, self.statement.tokens.len())));
        }
        if !(temporary || self.is_word(0, "TABLE")) {
            return Err(self.expected("TABLE, VIEW, SCHEMA or FUNCTION"));
        }
        self.expect("TABLE")?;
        let keep = self.accept_all(&["IF", "NOT", "EXISTS"]);
        let existing = match (replace, keep) {
            (true, true) => {
                let message = "OR REPLACE and IF NOT EXISTS exclude each other";
                return Err(Failure::sql(message.into(), Some(self.statement.place)));
            }
            (true, false) => Existing::Replace,
            (false, true) => Existing::Keep,
            (false, false) => Existing::Refuse,
        };
        let table = self.name("the table's name")?;
        if matches!(self.token(), Some(Token::LParen | Token::Period)) {
            return Ok(Request::Execute(self.statement.sql(0, self.statement.tokens.len())));
        }
        if !self.accept("AS") {
            return Err(self.expected("AS and a query, or columns with their types in parentheses"));
        }
        Ok(Request::CreateTable { table, existing, query: self.rest("a query")? })
    }
}
