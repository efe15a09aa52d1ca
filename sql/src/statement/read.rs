//! The forms of statements, read from their tokens.

use datafusion::sql::sqlparser::tokenizer::Token;

use warpframe::{Error, ExplainFormat};

use super::{Name, Request, RowSource, Sql, Statement};
use crate::report::{Failure, Place};

/// First words of statements that the engine reads.
const ENGINE: [&str; 12] = [
    "ALTER",
    "DEALLOCATE",
    "DELETE",
    "EXECUTE",
    "EXPORT",
    "IMPORT",
    "INSERT",
    "SHOW",
    "SUMMARIZE",
    "TRUNCATE",
    "UPDATE",
    "USE",
];

/// The command's own options.
pub const SETTINGS: [&str; 7] =
    ["format", "headers", "max_rows", "max_width", "null", "progress", "timer"];

impl Statement<'_> {
    /// What the statement asks for. Whatever is none of the forms known here is taken for a query,
    /// for the engine to judge.
    ///
    /// # Errors
    /// A form that is known, with something in it that is not.
    pub fn request(&self) -> Result<Request, Failure> {
        let mut reader = Reader { statement: self, at: 0 };
        let request = if reader.accept("EXPLAIN") {
            let (analyze, format) = reader.explain_options()?;
            Request::Explain { analyze, format, query: reader.rest("a query")? }
        } else if reader.accept("CREATE") {
            return reader.create();
        } else if reader.accept_all(&["DROP", "TABLE"]) {
            let if_exists = reader.accept_all(&["IF", "EXISTS"]);
            let table = reader.name("the table's name")?;
            if matches!(reader.token(), Some(Token::Period | Token::Comma)) {
                return Ok(Request::Execute(self.sql(0, self.tokens.len())));
            }
            Request::DropTable { table, if_exists, text: self.sql(0, self.tokens.len()) }
        } else if reader.accept_all(&["DROP", "FUNCTION"])
            || reader.accept_all(&["DROP", "AGGREGATE"])
        {
            let if_exists = reader.accept_all(&["IF", "EXISTS"]);
            Request::DropFunction { function: reader.name("the function's name")?, if_exists }
        } else if reader.accept_all(&["SHOW", "TABLES"]) {
            match reader.token() {
                None => Request::ShowTables,
                Some(_) => Request::Execute(self.sql(0, self.tokens.len())),
            }
        } else if reader.is_word(0, "SHOW") && reader.is_word(1, "ALL") && self.tokens.len() == 2 {
            return Ok(Request::ShowSettings(None));
        } else if reader.is_word(0, "SHOW")
            && self.tokens.len() == 2
            && SETTINGS.iter().any(|own| reader.is_word(1, own))
        {
            reader.at = 1;
            Request::ShowSettings(Some(reader.name("an option's name")?))
        } else if reader.accept("RESET") {
            Request::Reset(reader.option("an option's name")?)
        } else if reader.is_word(0, "PREPARE") {
            return reader.prepare();
        } else if ENGINE.iter().any(|word| reader.is_word(0, word))
            || reader.is_word(0, "DROP")
                && (reader.is_word(1, "VIEW") || reader.is_word(1, "SCHEMA"))
        {
            return Ok(Request::Execute(self.sql(0, self.tokens.len())));
        } else if reader.accept("DESCRIBE") || reader.accept("DESC") {
            reader.accept("TABLE");
            let file = matches!(reader.token(), Some(Token::SingleQuotedString(_)));
            Request::Describe(match reader.at_query() {
                _ if file => RowSource::Query(reader.file_query()?),
                true => RowSource::Query(reader.rest("a query")?),
                false => reader.table("a table's name or a query")?,
            })
        } else if reader.accept("COPY") {
            return reader.copy();
        } else if reader.accept("SET") {
            return reader.set();
        } else {
            Request::Query(reader.rest("a statement")?)
        };
        match request {
            Request::Query(_)
            | Request::Explain { .. }
            | Request::Describe(RowSource::Query(_)) => Ok(request),
            Request::Execute(_) => Ok(request),
            other => reader.end().map(|()| other),
        }
    }
}

/// Walks a statement's tokens.
pub(super) struct Reader<'a> {
    pub(super) statement: &'a Statement<'a>,
    pub(super) at: usize,
}

impl Reader<'_> {
    pub(super) fn token(&self) -> Option<&Token> {
        self.statement.tokens.get(self.at).map(|token| &token.token)
    }

    pub(super) fn place(&self) -> Place {
        match self.statement.tokens.get(self.at) {
            Some(token) => Place::from(token.span.start),
            None => Place::from(self.statement.tokens[self.at - 1].span.end),
        }
    }

    pub(super) fn is_word(&self, ahead: usize, keyword: &str) -> bool {
        matches!(self.statement.tokens.get(self.at + ahead).map(|t| &t.token),
            Some(Token::Word(word)) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(keyword))
    }

    pub(super) fn accept(&mut self, keyword: &str) -> bool {
        self.accept_all(&[keyword])
    }

    /// Passes these words if all of them follow.
    pub(super) fn accept_all(&mut self, keywords: &[&str]) -> bool {
        let follow =
            keywords.iter().enumerate().all(|(ahead, keyword)| self.is_word(ahead, keyword));
        if follow {
            self.at += keywords.len();
        }
        follow
    }

    pub(super) fn accept_token(&mut self, token: &Token) -> bool {
        let follows = self.token() == Some(token);
        self.at += usize::from(follows);
        follows
    }

    pub(super) fn expected(&self, what: &str) -> Failure {
        let found = match self.token() {
            Some(token) => token.to_string(),
            None => "the end of the statement".into(),
        };
        Failure::sql(format!("expected {what}, found {found}"), Some(self.place()))
    }

    pub(super) fn expect(&mut self, keyword: &str) -> Result<(), Failure> {
        if self.accept(keyword) { Ok(()) } else { Err(self.expected(keyword)) }
    }

    pub(super) fn end(&self) -> Result<(), Failure> {
        if self.token().is_none() { Ok(()) } else { Err(self.expected("the end of the statement")) }
    }

    /// A name of one part.
    pub(super) fn name(&mut self, what: &str) -> Result<Name, Failure> {
        let place = self.place();
        let text = match self.token() {
            Some(Token::Word(word)) if word.quote_style.is_some() => word.value.clone(),
            Some(Token::Word(word)) => word.value.to_lowercase(),
            _ => return Err(self.expected(what)),
        };
        self.at += 1;
        Ok(Name { text, place })
    }

    /// A table's name, its parts with dots between them; how many these are.
    pub(super) fn dotted(&mut self, what: &str) -> Result<(Name, usize), Failure> {
        let mut name = self.name(what)?;
        let mut parts = 1;
        while self.accept_token(&Token::Period) {
            name.text = format!("{}.{}", name.text, self.name("the rest of a table's name")?.text);
            parts += 1;
        }
        Ok((name, parts))
    }

    /// The rows of a table by its name; of one with a schema's before it, those of a query.
    pub(super) fn table(&mut self, what: &str) -> Result<RowSource, Failure> {
        let from = self.at;
        match self.dotted(what)? {
            (name, 1) => Ok(RowSource::Table(name)),
            _ => {
                let Sql(text) = self.statement.sql(from, self.at);
                let blanks = text.len() - text.trim_start().len();
                let room = text[..blanks].strip_suffix("     ").unwrap_or(&text[..blanks]);
                Ok(RowSource::Query(Sql(format!("{room}FROM {}", &text[blanks..]))))
            }
        }
    }

    fn at_query(&self) -> bool {
        ["SELECT", "WITH", "VALUES", "FROM", "PIVOT", "UNPIVOT"]
            .iter()
            .any(|word| self.is_word(0, word))
            || self.token() == Some(&Token::LParen)
    }

    pub(super) fn rest(&mut self, what: &str) -> Result<Sql, Failure> {
        if self.token().is_none() {
            return Err(self.expected(what));
        }
        let from = std::mem::replace(&mut self.at, self.statement.tokens.len());
        Ok(self.statement.sql(from, self.at))
    }

    /// The query of a file's rows; the file's name stays at its place.
    fn file_query(&mut self) -> Result<Sql, Failure> {
        let place = self.place();
        let Some(Token::SingleQuotedString(text)) = self.token().cloned() else {
            return Err(self.expected("a file's name in single quotes"));
        };
        self.at += 1;
        self.end()?;
        // Where the text before it leaves no room for FROM, its place is not kept.
        let (lines, columns) =
            (place.line as usize - 1, (place.column as usize - 1).saturating_sub("FROM ".len()));
        let file = text.replace('\'', "''");
        Ok(Sql(format!("{}{}FROM '{file}'", "\n".repeat(lines), " ".repeat(columns))))
    }

    /// A statement that begins with `PREPARE`: where it is of a query, that is told apart.
    fn prepare(mut self) -> Result<Request, Failure> {
        let text = self.statement.sql(0, self.statement.tokens.len());
        while self.token().is_some() && !self.accept("AS") {
            self.at += 1;
        }
        match self.at_query() {
            true => Ok(Request::Prepare { query: self.rest("a query")?, text }),
            false => Ok(Request::Execute(text)),
        }
    }

    /// `[ANALYZE] [FORMAT format]`, or `(ANALYZE, FORMAT format)`.
    fn explain_options(&mut self) -> Result<(bool, ExplainFormat), Failure> {
        let (mut analyze, mut format) = (false, ExplainFormat::default());
        let options = ["ANALYZE", "FORMAT", "VERBOSE"];
        let grouped = self.token() == Some(&Token::LParen)
            && options.iter().any(|option| self.is_word(1, option));
        self.at += usize::from(grouped);
        loop {
            if self.accept("ANALYZE") {
                analyze = !(grouped && (self.accept("FALSE") || self.accept("OFF")));
                let _ = grouped && (self.accept("TRUE") || self.accept("ON"));
            } else if self.accept("FORMAT") {
                self.accept_token(&Token::Eq);
                let name = self.name_or_text("a format's name")?;
                format = name
                    .text
                    .parse()
                    .map_err(|error: Error| Failure::from(error).at(name.place))?;
            } else if self.is_word(0, "VERBOSE") {
                return Err(self.expected("a query (EXPLAIN has no VERBOSE)"));
            } else if grouped && self.accept_token(&Token::RParen) {
                break;
            } else if !(grouped && self.accept_token(&Token::Comma)) {
                match grouped {
                    true => return Err(self.expected("ANALYZE, FORMAT or )")),
                    false => break,
                }
            }
        }
        Ok((analyze, format))
    }

    /// An option's name, which may have several parts.
    fn option(&mut self, what: &str) -> Result<Name, Failure> {
        let mut option = self.name(what)?;
        while self.accept_token(&Token::Period) {
            option.text =
                format!("{}.{}", option.text, self.name("the rest of an option's name")?.text);
        }
        Ok(option)
    }

    /// What follows `SET`.
    fn set(mut self) -> Result<Request, Failure> {
        let option = self.option("an option's name")?;
        if !self.accept_token(&Token::Eq) && !self.accept("TO") {
            return Err(self.expected("= or TO"));
        }
        if self.token().is_none() {
            return Err(self.expected("a value"));
        }
        let mut value = String::new();
        while let Some(token) = self.token() {
            match token {
                Token::SingleQuotedString(text) => value.push_str(text),
                Token::Word(word) => value.push_str(&word.value),
                other => value.push_str(&other.to_string()),
            }
            self.at += 1;
        }
        Ok(Request::Set { option, value })
    }
}
