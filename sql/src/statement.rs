//! Splits SQL into statements, and recognises those that are more than a query.
//!
//! Both look at tokens only: what a query says is the engine's business, which is given the query's
//! own text at its own place, so that its errors point into the text the user wrote.

mod copy;

use std::collections::BTreeMap;

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use warpframe::{Error, ExplainFormat};

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

/// First words of statements that the engine reads.
const ENGINE: [&str; 12] = [
    "ALTER",
    "DEALLOCATE",
    "DELETE",
    "EXECUTE",
    "EXPORT",
    "IMPORT",
    "PREPARE",
    "SHOW",
    "SUMMARIZE",
    "TRUNCATE",
    "UPDATE",
    "USE",
];

/// The command's own options.
pub const SETTINGS: [&str; 7] =
    ["format", "headers", "max_rows", "max_width", "null", "progress", "timer"];

/// What a statement asks for.
#[derive(Debug, PartialEq)]
pub enum Request {
    /// Rows.
    Query(Sql),
    /// `EXPLAIN [ANALYZE] [FORMAT format] query`, or the options in parentheses.
    Explain {
        /// Whether the query shall run.
        analyze: bool,
        /// How its plan is shown.
        format: ExplainFormat,
        /// The query.
        query: Sql,
    },
    /// `CREATE [OR REPLACE] TABLE [IF NOT EXISTS] table AS query`.
    CreateTable {
        /// Its name.
        table: Name,
        /// What to do where there is one of this name.
        existing: Existing,
        /// What its rows are.
        query: Sql,
    },
    /// `CREATE [OR REPLACE] TABLE [IF NOT EXISTS] table (column type, …)`, which is the engine's to
    /// read.
    CreateEmptyTable(Sql),
    /// `CREATE EXTERNAL TABLE …`, which is the engine's to read.
    CreateExternalTable(Sql),
    /// `CREATE FUNCTION …` or `CREATE AGGREGATE …`, which is the engine's to read.
    CreateFunction(Sql),
    /// `DROP FUNCTION [IF EXISTS] name`, or `DROP AGGREGATE`.
    DropFunction {
        /// Its name.
        function: Name,
        /// Whether it may be missing.
        if_exists: bool,
    },
    /// `INSERT INTO table …`, which is the engine's to read.
    Insert(Sql),
    /// `DROP TABLE [IF EXISTS] table`.
    DropTable {
        /// Its name.
        table: Name,
        /// Whether it may be missing.
        if_exists: bool,
        /// The statement.
        text: Sql,
    },
    /// `SHOW TABLES`.
    ShowTables,
    /// `DESCRIBE table`, or a query.
    Describe(RowSource),
    /// `COPY table|(query) TO 'file' [FORMAT format] [PARTITIONED BY (column, …)] [(option value,
    /// …)]`.
    Copy {
        /// What to write.
        rows: RowSource,
        /// The path of the file, and where it stands.
        file: Name,
        /// The format by name, where given.
        format: Option<Name>,
        /// How it is written.
        options: Vec<(Name, String)>,
        /// The columns by whose values rows go to folders.
        partition_by: Vec<Name>,
    },
    /// `COPY table FROM 'file' [FORMAT format] [(option value, …)]`.
    CopyFrom {
        /// Which table gets the rows.
        table: Name,
        /// The path of the file, and where it stands.
        file: Name,
        /// The format by name, where given.
        format: Option<Name>,
        /// How it is read.
        options: Vec<(Name, String)>,
    },
    /// Another statement, which is the engine's to read: `UPDATE …`, `CREATE VIEW …`, `SHOW …`.
    Execute(Sql),
    /// `SHOW ALL`, or one option of the command's.
    ShowSettings(Option<Name>),
    /// `RESET option`.
    Reset(Name),
    /// `SET option = value`.
    Set {
        /// The option, in lower case.
        option: Name,
        /// The value, as text.
        value: String,
    },
}

/// What a new table does to one of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Nothing: that is an error.
    Refuse,
    /// It takes its place.
    Replace,
    /// It leaves it.
    Keep,
}

/// Rows by table name or by query.
#[derive(Debug, PartialEq)]
pub enum RowSource {
    /// Those of a table.
    Table(Name),
    /// Those that a query yields.
    Query(Sql),
}

/// A query's text. White space before it stands for the text before the query, so that places in it
/// are places in the whole text.
#[derive(Debug, PartialEq)]
pub struct Sql(pub String);

impl Sql {
    /// The place behind the last character.
    pub fn end(&self) -> Place {
        let last = self.0.rsplit('\n').next().unwrap_or_default();
        Place {
            line: self.0.matches('\n').count() as u64 + 1,
            column: last.chars().count() as u64 + 1,
        }
    }
}

/// A name, folded as SQL does: as written within quotes, otherwise in lower case.
#[derive(Debug, Clone, PartialEq)]
pub struct Name {
    /// The folded name.
    pub text: String,
    /// Where it stands.
    pub place: Place,
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

/// Whether a text typed so far is whole: nothing, or closed by a semicolon.
pub fn is_whole(text: &str) -> bool {
    missing(text).is_none()
}

/// What a text typed so far lacks.
pub fn missing(text: &str) -> Option<&'static str> {
    let mut tokens = vec![];
    match Tokenizer::new(&GenericDialect {}, text).tokenize_with_location_into_buf(&mut tokens) {
        // More text can close a string or a comment, and mend nothing else.
        Err(error) => {
            let is_open = error.message.contains("Unterminated") || error.message.contains("EOF");
            is_open.then_some("a quote or a comment is open")
        }
        Ok(()) => {
            let last =
                tokens.iter().rev().find(|t| !matches!(t.token, Token::Whitespace(_) | Token::EOF));
            let is_whole = last.is_none_or(|last| last.token == Token::SemiColon);
            (!is_whole).then_some("';' ends the statement")
        }
    }
}

/// Whether a text has a name among its tokens.
pub fn has_name(text: &str, name: &str) -> bool {
    let mut tokens = vec![];
    // What is typed so far may break off anywhere.
    let _ = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location_into_buf(&mut tokens);
    tokens.iter().any(|token| matches!(&token.token, Token::Word(word) if word.value == name))
}

/// A name as SQL writes it: in quotes unless it is a word of lower-case letters.
pub fn quoted(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain { name.to_string() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Byte offsets of places, which must be asked for in rising order.
pub struct Offsets<'a> {
    text: &'a str,
    offset: usize,
    place: Location,
}

impl<'a> Offsets<'a> {
    /// At the text's begin.
    pub fn new(text: &'a str) -> Self {
        Offsets { text, offset: 0, place: Location::new(1, 1) }
    }

    /// The offset of a place.
    pub fn at(&mut self, place: Location) -> usize {
        for c in self.text[self.offset..].chars() {
            if (self.place.line, self.place.column) >= (place.line, place.column) {
                break;
            }
            self.offset += c.len_utf8();
            if c == '\n' {
                self.place = Location::new(self.place.line + 1, 1);
            } else {
                self.place.column += 1;
            }
        }
        self.offset
    }
}

/// A text with values in the places of those of its `$name` that are known: numbers as they are,
/// all else in quotes. `None` where there are none such.
pub fn with_values(text: &str, values: &BTreeMap<String, String>) -> Option<String> {
    if values.is_empty() {
        return None;
    }
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location().ok()?;
    let mut offsets = Offsets::new(text);
    let (mut made, mut copied) = (String::new(), 0);
    for token in tokens {
        let Token::Placeholder(name) = &token.token else { continue };
        let Some(value) = name.strip_prefix('$').and_then(|name| values.get(name)) else {
            continue;
        };
        let (start, end) = (offsets.at(token.span.start), offsets.at(token.span.end));
        made.push_str(&text[copied..start]);
        match value.parse::<f64>() {
            Ok(number) if number.is_finite() => made.push_str(value),
            _ => made.push_str(&format!("'{}'", value.replace('\'', "''"))),
        }
        copied = end;
    }
    (copied > 0).then(|| made + &text[copied..])
}

impl Statement<'_> {
    /// The statement as it is written.
    pub fn text(&self) -> &str {
        self.text
    }

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
        } else if reader.is_word(0, "INSERT") {
            return Ok(Request::Insert(reader.rest("a statement")?));
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

    /// The statement's text from its `from`th to before its `to`th token, at its place.
    fn sql(&self, from: usize, to: usize) -> Sql {
        let (first, last) = (&self.tokens[from], &self.tokens[to - 1]);
        let mut offsets = Offsets { text: self.text, offset: 0, place: self.tokens[0].span.start };
        let (start, end) = (offsets.at(first.span.start), offsets.at(last.span.end));
        let mut sql = "\n".repeat(first.span.start.line as usize - 1);
        sql.push_str(&" ".repeat(first.span.start.column as usize - 1));
        sql.push_str(&self.text[start..end]);
        Sql(sql)
    }
}

/// Walks a statement's tokens.
struct Reader<'a> {
    statement: &'a Statement<'a>,
    at: usize,
}

impl Reader<'_> {
    fn token(&self) -> Option<&Token> {
        self.statement.tokens.get(self.at).map(|token| &token.token)
    }

    fn place(&self) -> Place {
        match self.statement.tokens.get(self.at) {
            Some(token) => Place::from(token.span.start),
            None => Place::from(self.statement.tokens[self.at - 1].span.end),
        }
    }

    fn is_word(&self, ahead: usize, keyword: &str) -> bool {
        matches!(self.statement.tokens.get(self.at + ahead).map(|t| &t.token),
            Some(Token::Word(word)) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(keyword))
    }

    fn accept(&mut self, keyword: &str) -> bool {
        self.accept_all(&[keyword])
    }

    /// Passes these words if all of them follow.
    fn accept_all(&mut self, keywords: &[&str]) -> bool {
        let follow =
            keywords.iter().enumerate().all(|(ahead, keyword)| self.is_word(ahead, keyword));
        if follow {
            self.at += keywords.len();
        }
        follow
    }

    fn accept_token(&mut self, token: &Token) -> bool {
        let follows = self.token() == Some(token);
        self.at += usize::from(follows);
        follows
    }

    fn at_query(&self) -> bool {
        ["SELECT", "WITH", "VALUES", "FROM", "PIVOT", "UNPIVOT"]
            .iter()
            .any(|word| self.is_word(0, word))
            || self.token() == Some(&Token::LParen)
    }

    fn expected(&self, what: &str) -> Failure {
        let found = match self.token() {
            Some(token) => token.to_string(),
            None => "the end of the statement".into(),
        };
        Failure::sql(format!("expected {what}, found {found}"), Some(self.place()))
    }

    fn expect(&mut self, keyword: &str) -> Result<(), Failure> {
        if self.accept(keyword) { Ok(()) } else { Err(self.expected(keyword)) }
    }

    fn end(&self) -> Result<(), Failure> {
        if self.token().is_none() { Ok(()) } else { Err(self.expected("the end of the statement")) }
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

    /// The rows of a table by its name; of one with a schema's before it, those of a query.
    fn table(&mut self, what: &str) -> Result<RowSource, Failure> {
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

    /// A table's name, its parts with dots between them; how many these are.
    fn dotted(&mut self, what: &str) -> Result<(Name, usize), Failure> {
        let mut name = self.name(what)?;
        let mut parts = 1;
        while self.accept_token(&Token::Period) {
            name.text = format!("{}.{}", name.text, self.name("the rest of a table's name")?.text);
            parts += 1;
        }
        Ok((name, parts))
    }

    /// A name of one part.
    fn name(&mut self, what: &str) -> Result<Name, Failure> {
        let place = self.place();
        let text = match self.token() {
            Some(Token::Word(word)) if word.quote_style.is_some() => word.value.clone(),
            Some(Token::Word(word)) => word.value.to_lowercase(),
            _ => return Err(self.expected(what)),
        };
        self.at += 1;
        Ok(Name { text, place })
    }

    fn rest(&mut self, what: &str) -> Result<Sql, Failure> {
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

    /// What follows `CREATE`.
    fn create(mut self) -> Result<Request, Failure> {
        let external = |at: usize| self.is_word(at, "EXTERNAL") || self.is_word(at, "UNBOUNDED");
        if external(0) || (self.is_word(0, "OR") && external(2)) {
            return Ok(Request::CreateExternalTable(
                self.statement.sql(0, self.statement.tokens.len()),
            ));
        }
        let replace = self.accept_all(&["OR", "REPLACE"]);
        if self.is_word(0, "FUNCTION") || self.is_word(0, "AGGREGATE") {
            return Ok(Request::CreateFunction(self.statement.sql(0, self.statement.tokens.len())));
        }
        let temporary = self.accept("TEMPORARY") || self.accept("TEMP");
        if self.is_word(0, "VIEW") {
            return Ok(Request::Execute(self.statement.sql(0, self.statement.tokens.len())));
        }
        if self.is_word(0, "SCHEMA") {
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
        if self.token() == Some(&Token::LParen) {
            return Ok(Request::CreateEmptyTable(
                self.statement.sql(0, self.statement.tokens.len()),
            ));
        }
        if self.token() == Some(&Token::Period) {
            let columns = (self.at..self.statement.tokens.len()).find(|at| {
                let token = &self.statement.tokens[*at].token;
                *token == Token::LParen
                    || matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case("AS"))
            });
            let text = self.statement.sql(0, self.statement.tokens.len());
            let is_empty =
                columns.is_some_and(|at| self.statement.tokens[at].token == Token::LParen);
            return Ok(if is_empty {
                Request::CreateEmptyTable(text)
            } else {
                Request::Execute(text)
            });
        }
        if !self.accept("AS") {
            return Err(self.expected("AS and a query, or columns with their types in parentheses"));
        }
        Ok(Request::CreateTable { table, existing, query: self.rest("a query")? })
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

#[cfg(test)]
mod tests;
