//! `COPY … TO`, read.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::{Name, Reader, Request, RowSource};
use crate::report::Failure;

impl Reader<'_> {
    /// What follows `COPY`.
    pub(super) fn copy(mut self) -> Result<Request, Failure> {
        let rows = if self.accept_token(&Token::LParen) {
            let from = self.at;
            let mut depth = 1;
            while depth > 0 {
                match self.token() {
                    Some(Token::LParen) => depth += 1,
                    Some(Token::RParen) => depth -= 1,
                    Some(_) => {}
                    None => return Err(self.expected(")")),
                }
                self.at += 1;
            }
            if self.at - 1 == from {
                self.at = from;
                return Err(self.expected("a query"));
            }
            RowSource::Query(self.statement.sql(from, self.at - 1))
        } else {
            RowSource::Table(self.name("a table's name or a query in parentheses")?)
        };
        if self.is_word(0, "FROM") {
            let what = "TO (rows of files come into tables by CREATE TABLE … AS SELECT * FROM 'file')";
            return Err(self.expected(what));
        }
        self.expect("TO")?;
        let place = self.place();
        let Some(Token::SingleQuotedString(text)) = self.token().cloned() else {
            return Err(self.expected("a file's name in single quotes"));
        };
        let file = Name { text, place };
        self.at += 1;
        let (mut format, mut options) = (None, vec![]);
        if self.accept_all(&["STORED", "AS"]) {
            format = Some(self.name("a format's name")?);
        }
        self.accept("WITH");
        self.accept("OPTIONS");
        if self.accept_token(&Token::LParen) {
            loop {
                self.copy_option(&mut format, &mut options)?;
                if !self.accept_token(&Token::Comma) {
                    break;
                }
            }
            if !self.accept_token(&Token::RParen) {
                return Err(self.expected(", or )"));
            }
        } else if self.is_word(0, "FORMAT") {
            self.copy_option(&mut format, &mut options)?;
        } else if self.token().is_some() {
            return Err(self.expected("FORMAT or options in parentheses"));
        }
        self.end()?;
        Ok(Request::Copy { rows, file, format, options })
    }

    /// An option of `COPY`, and its value.
    fn copy_option(&mut self, format: &mut Option<Name>, options: &mut Vec<(Name, String)>) -> Result<(), Failure> {
        if self.accept("FORMAT") {
            *format = Some(self.name_or_text("a format's name")?);
            return Ok(());
        }
        let mut option = self.name_or_text("an option's name")?;
        while self.accept_token(&Token::Period) {
            option.text = format!("{}.{}", option.text, self.name("the rest of an option's name")?.text);
        }
        self.accept_token(&Token::Eq);
        let value = match self.token() {
            Some(Token::SingleQuotedString(text)) => text.clone(),
            Some(Token::Word(word)) => word.value.clone(),
            Some(Token::Number(number, _)) => number.clone(),
            _ if option.text == "header" => {
                options.push((option, "true".into()));
                return Ok(());
            }
            _ => return Err(self.expected("a value")),
        };
        self.at += 1;
        options.push((option, value));
        Ok(())
    }

    /// A word, or a text in its place, in lower case.
    fn name_or_text(&mut self, what: &str) -> Result<Name, Failure> {
        let place = self.place();
        match self.token() {
            Some(Token::SingleQuotedString(text)) => {
                let text = text.to_lowercase();
                self.at += 1;
                Ok(Name { text, place })
            }
            _ => self.name(what),
        }
    }
}
