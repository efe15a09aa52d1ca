//! `COPY`, read.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::read::Reader;
use super::{Name, Request, RowSource, Sql};
use crate::report::Failure;

/// What stands behind a file's name.
#[derive(Debug, Default)]
struct Clauses {
    format: Option<Name>,
    options: Vec<(Name, String)>,
    partition_by: Vec<Name>,
}

impl Reader<'_> {
    /// What follows `COPY`.
    pub(super) fn copy(mut self) -> Result<Request, Failure> {
        let at = self.at;
        let mut listed = None;
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
            let table = self.table("a table's name or a query in parentheses")?;
            listed = (self.token() == Some(&Token::LParen)).then(|| self.place());
            match listed {
                Some(_) => RowSource::Query(self.columns_of(at)?),
                None => table,
            }
        };
        if self.accept("FROM") {
            if let Some(place) = listed {
                let message = "COPY … FROM puts rows into all columns of a table: \
                               INSERT INTO t (a, b) SELECT … FROM 'file' into some";
                return Err(Failure::sql(message.into(), Some(place)));
            }
            let here = std::mem::replace(&mut self.at, at);
            let table = self.dotted("a table's name").ok();
            self.at = here;
            let Some((table, _)) = table else {
                return Err(Failure::sql(
                    "rows are copied into a table, not into a query".into(),
                    Some(self.place()),
                ));
            };
            let file = self.file()?;
            let Clauses { format, options, partition_by } = self.copy_clauses()?;
            return match partition_by.first() {
                None => Ok(Request::CopyFrom { table, file, format, options }),
                Some(column) => {
                    let message =
                        "the folders of files tell their partitions: leave PARTITION_BY out";
                    Err(Failure::sql(message.into(), Some(column.place)))
                }
            };
        }
        if !self.accept("TO") {
            return Err(self.expected("TO or FROM"));
        }
        let file = self.file()?;
        let Clauses { format, options, partition_by } = self.copy_clauses()?;
        Ok(Request::Copy { rows, file, format, options, partition_by })
    }

    /// The query of some columns of a table, whose name stands from a token on: `t (a, b)`. The
    /// columns stay at their places where the text before leaves room for SELECT.
    fn columns_of(&mut self, table: usize) -> Result<Sql, Failure> {
        let open = self.at;
        self.at += 1;
        loop {
            self.name("a column's name")?;
            if !self.accept_token(&Token::Comma) {
                break;
            }
        }
        if !self.accept_token(&Token::RParen) {
            return Err(self.expected(", or )"));
        }
        let Sql(columns) = self.statement.sql(open + 1, self.at - 1);
        let Sql(table) = self.statement.sql(table, open);
        let blanks = columns.len() - columns.trim_start().len();
        let room = columns[..blanks].strip_suffix("       ").unwrap_or_default();
        Ok(Sql(format!("{room}SELECT {} FROM {}", &columns[blanks..], table.trim_start())))
    }

    fn file(&mut self) -> Result<Name, Failure> {
        let place = self.place();
        let Some(Token::SingleQuotedString(text)) = self.token().cloned() else {
            return Err(self.expected("a file's name in single quotes"));
        };
        self.at += 1;
        Ok(Name { text, place })
    }

    /// What follows the file's name, up to the end.
    fn copy_clauses(&mut self) -> Result<Clauses, Failure> {
        let mut clauses = Clauses::default();
        if self.accept_all(&["STORED", "AS"]) {
            clauses.format = Some(self.name("a format's name")?);
        }
        if self.accept_all(&["PARTITIONED", "BY"]) || self.accept_all(&["PARTITION", "BY"]) {
            self.partition_columns(&mut clauses)?;
        }
        self.accept("WITH");
        self.accept("OPTIONS");
        if self.accept_token(&Token::LParen) {
            loop {
                self.copy_option(&mut clauses)?;
                if !self.accept_token(&Token::Comma) {
                    break;
                }
            }
            if !self.accept_token(&Token::RParen) {
                return Err(self.expected(", or )"));
            }
        } else if self.is_word(0, "FORMAT") {
            self.copy_option(&mut clauses)?;
        } else if self.token().is_some() {
            return Err(self.expected("FORMAT or options in parentheses"));
        }
        self.end()?;
        Ok(clauses)
    }

    /// `(column, …)`, or one column.
    fn partition_columns(&mut self, clauses: &mut Clauses) -> Result<(), Failure> {
        let several = self.accept_token(&Token::LParen);
        loop {
            clauses.partition_by.push(self.name("a column's name")?);
            if !(several && self.accept_token(&Token::Comma)) {
                break;
            }
        }
        match !several || self.accept_token(&Token::RParen) {
            true => Ok(()),
            false => Err(self.expected(", or )")),
        }
    }

    /// An option of `COPY`, and its value.
    fn copy_option(&mut self, clauses: &mut Clauses) -> Result<(), Failure> {
        if self.accept("FORMAT") {
            clauses.format = Some(self.name_or_text("a format's name")?);
            return Ok(());
        }
        if self.accept("PARTITION_BY") || self.accept_all(&["PARTITION", "BY"]) {
            return self.partition_columns(clauses);
        }
        let mut option = self.name_or_text("an option's name")?;
        while self.accept_token(&Token::Period) {
            option.text =
                format!("{}.{}", option.text, self.name("the rest of an option's name")?.text);
        }
        self.accept_token(&Token::Eq);
        let value = match self.token() {
            Some(Token::SingleQuotedString(text)) => text.clone(),
            Some(Token::Word(word)) => word.value.clone(),
            Some(Token::Number(number, _)) => number.clone(),
            _ if matches!(option.text.as_str(), "header" | "array") => {
                clauses.options.push((option, "true".into()));
                return Ok(());
            }
            _ => return Err(self.expected(&format!("a value of the option {}", option.text))),
        };
        self.at += 1;
        clauses.options.push((option, value));
        Ok(())
    }

    /// A word, or a text in its place, in lower case.
    pub(super) fn name_or_text(&mut self, what: &str) -> Result<Name, Failure> {
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
