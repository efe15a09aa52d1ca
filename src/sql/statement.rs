//! What a text asks for, by its first words. What a query says is told by the parser.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::copy::{self, CopyFrom, CopyKind, CopyTo};
use super::explain::ExplainFormat;
use super::reader::{Name, WordReader};
use super::text::Text;
use crate::error::Result;

/// What a statement asks for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Statement<'t> {
    /// Rows; or whatever no other form begins like, for the parser to judge.
    Query,
    /// `EXPLAIN [ANALYZE] [FORMAT format] query`, or the options in parentheses.
    Explain {
        /// Whether the query shall run.
        analyze: bool,
        /// How its plan is shown.
        format: ExplainFormat,
        /// The query.
        query: Text<'t>,
    },
    /// `SHOW …` of anything but one option.
    Show,
    /// `SHOW option`.
    ShowOption(Name),
    /// `DESCRIBE table`, or a query: the query of the rows.
    Describe(Text<'t>),
    /// `SUMMARIZE table`, or a query: the query of the rows.
    Summarize(Text<'t>),
    /// `COPY table|(query) TO 'file'`.
    Copy(CopyTo<'t>),
    /// `COPY table FROM 'file'`.
    CopyFrom(CopyFrom),
    /// `EXPORT DATABASE 'folder'`.
    Export(Name),
    /// `IMPORT DATABASE 'folder'`.
    Import(Name),
    /// `ATTACH 'folder'`.
    Attach(Attach),
    /// `DETACH [DATABASE] [IF EXISTS] name`.
    Detach {
        /// The name by which it is attached.
        database: Name,
        /// Whether it may be missing.
        if_exists: bool,
    },
    /// `CREATE FUNCTION …` or `CREATE AGGREGATE …`.
    CreateFunction,
    /// `DROP FUNCTION [IF EXISTS] name`, or `DROP AGGREGATE`.
    DropFunction {
        /// Its name.
        function: Name,
        /// Whether it may be missing.
        if_exists: bool,
    },
    /// `SET option = value`, or `SET option TO value`.
    Set {
        /// The option, in lower case.
        option: Name,
        /// The value, as text.
        value: String,
    },
    /// `RESET option`.
    Reset(Name),
    /// Another statement, which the parser knows: `INSERT …`, `CREATE TABLE …`, `PREPARE …`.
    Other,
}

/// `ATTACH [DATABASE] [IF NOT EXISTS] 'folder' [AS name] [(READ_ONLY)]`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attach {
    /// The database's folder.
    pub folder: Name,
    /// What it is called; where nothing is said, as its folder.
    pub name: Option<Name>,
    /// Whether it is only read.
    pub read_only: bool,
    /// Whether one of this name may be there already.
    pub if_not_exists: bool,
}

/// First words of statements that the parser reads, and that are no queries.
const OTHER: [&str; 11] = [
    "ALTER",
    "DEALLOCATE",
    "DELETE",
    "DROP",
    "EXECUTE",
    "INSERT",
    "MERGE",
    "PREPARE",
    "TRUNCATE",
    "UPDATE",
    "USE",
];

impl<'t> Statement<'t> {
    /// What a text asks for that is one statement.
    ///
    /// # Errors
    /// A form that is known, with something in it that is not, at its place:
    /// [`ErrorKind::Parse`](crate::ErrorKind::Parse) of what does not stand there,
    /// [`ErrorKind::Plan`](crate::ErrorKind::Plan) of what means nothing.
    ///
    /// ```
    /// use warpframe::sql::{Statement, Text};
    /// let text = Text::from("COPY jets TO 'jets.parquet'");
    /// let Statement::Copy(copy) = Statement::of(&text)? else { panic!() };
    /// assert_eq!(copy.file.text, "jets.parquet");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn of(text: &'t Text<'t>) -> Result<Statement<'t>> {
        let mut reader = WordReader::of(text);
        let words = text.first_words(3);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let passed = |reader: &mut WordReader<'_>, words: usize| reader.at = words;
        let statement = match words[..] {
            ["EXPLAIN", ..] => {
                passed(&mut reader, 1);
                let (analyze, format) = explain_options(&mut reader)?;
                return Ok(Statement::Explain { analyze, format, query: reader.rest("a query")? });
            }
            ["SHOW", "TABLES" | "SCHEMAS" | "DATABASES" | "FUNCTIONS" | "COLUMNS" | "ALL", ..]
            | ["SHOW"] => {
                return Ok(Statement::Show);
            }
            ["SHOW", ..] => {
                passed(&mut reader, 1);
                match reader.count() {
                    2 => Statement::ShowOption(option(&mut reader)?),
                    _ => return Ok(Statement::Show),
                }
            }
            ["DESCRIBE" | "DESC", ..] => {
                passed(&mut reader, 1);
                return Ok(Statement::Describe(rows(&mut reader)?));
            }
            ["SUMMARIZE", ..] => {
                passed(&mut reader, 1);
                return Ok(Statement::Summarize(rows(&mut reader)?));
            }
            ["COPY", ..] => {
                passed(&mut reader, 1);
                return Ok(match copy::read(reader)? {
                    CopyKind::To(copy) => Statement::Copy(copy),
                    CopyKind::From(copy) => Statement::CopyFrom(copy),
                });
            }
            ["EXPORT", "DATABASE", ..] => {
                passed(&mut reader, 2);
                Statement::Export(folder(&mut reader)?)
            }
            ["IMPORT", "DATABASE", ..] => {
                passed(&mut reader, 2);
                Statement::Import(folder(&mut reader)?)
            }
            ["ATTACH", ..] => {
                passed(&mut reader, 1);
                Statement::Attach(attach(&mut reader)?)
            }
            ["DETACH", ..] => {
                passed(&mut reader, 1);
                reader.accept("DATABASE");
                let if_exists = reader.accept_all(&["IF", "EXISTS"]);
                let database = reader.name("the name of a database")?;
                Statement::Detach { database, if_exists }
            }
            ["CREATE", ..] => {
                passed(&mut reader, 1);
                return created(&mut reader);
            }
            ["DROP", "FUNCTION" | "AGGREGATE", ..] => {
                passed(&mut reader, 2);
                let if_exists = reader.accept_all(&["IF", "EXISTS"]);
                let function = reader.name("the function's name")?;
                Statement::DropFunction { function, if_exists }
            }
            ["SET", ..] => {
                passed(&mut reader, 1);
                set(&mut reader)?
            }
            ["RESET", ..] => {
                passed(&mut reader, 1);
                Statement::Reset(option(&mut reader)?)
            }
            [first, ..] if OTHER.contains(&first) => return Ok(Statement::Other),
            _ => return Ok(Statement::Query),
        };
        reader.end().map(|()| statement)
    }
}

/// What follows `CREATE`.
fn created<'t>(reader: &mut WordReader<'t>) -> Result<Statement<'t>> {
    reader.accept_all(&["OR", "REPLACE"]);
    if reader.is_any(&["FUNCTION", "AGGREGATE"]) {
        return Ok(Statement::CreateFunction);
    }
    let temporary = reader.accept("TEMPORARY") || reader.accept("TEMP");
    let kinds = ["TABLE", "VIEW", "MATERIALIZED", "SCHEMA", "EXTERNAL", "UNBOUNDED"];
    match reader.is_any(&kinds[..if temporary { 2 } else { 6 }]) {
        true => Ok(Statement::Other),
        false => Err(reader.expected("TABLE, VIEW, SCHEMA or FUNCTION")),
    }
}

/// The query of the rows that stand behind `DESCRIBE`: one of its own, or of a table.
fn rows<'t>(reader: &mut WordReader<'t>) -> Result<Text<'t>> {
    let table = reader.accept("TABLE");
    let is_query = !table && reader.at_query();
    let rows = reader.rest("a table's name or a query")?;
    Ok(if is_query { rows } else { rows.after("FROM") })
}

/// What follows `ATTACH`.
fn attach(reader: &mut WordReader<'_>) -> Result<Attach> {
    reader.accept("DATABASE");
    let if_not_exists = reader.accept_all(&["IF", "NOT", "EXISTS"]);
    let folder = reader.path("a folder in single quotes")?;
    let name = match reader.accept("AS") {
        true => Some(reader.name("a name for the database")?),
        false => None,
    };
    let mut read_only = false;
    if reader.accept_token(&Token::LParen) {
        if !reader.accept("READ_ONLY") {
            return Err(reader.expected("READ_ONLY"));
        }
        read_only = !reader.accept("FALSE");
        let _ = read_only && reader.accept("TRUE");
        if !reader.accept_token(&Token::RParen) {
            return Err(reader.expected(")"));
        }
    }
    Ok(Attach { folder, name, read_only, if_not_exists })
}

fn folder(reader: &mut WordReader<'_>) -> Result<Name> {
    let folder = reader.path("a folder in single quotes")?;
    match reader.token() {
        None => Ok(folder),
        Some(_) => {
            let message = "expected the end of the statement: tables are exported as Parquet";
            Err(reader.wrong(message, reader.place()))
        }
    }
}

/// An option's name, which may have several parts.
fn option(reader: &mut WordReader<'_>) -> Result<Name> {
    reader.dotted("an option's name", "the rest of an option's name")
}

/// `[ANALYZE] [FORMAT format]`, or `(ANALYZE, FORMAT format)`.
fn explain_options(reader: &mut WordReader<'_>) -> Result<(bool, ExplainFormat)> {
    let (mut analyze, mut format) = (false, ExplainFormat::default());
    let options = ["ANALYZE", "FORMAT", "VERBOSE"];
    let grouped = reader.token() == Some(&Token::LParen)
        && options.iter().any(|option| reader.is_word(1, option));
    reader.at += usize::from(grouped);
    loop {
        if reader.accept("ANALYZE") {
            analyze = !(grouped && (reader.accept("FALSE") || reader.accept("OFF")));
            let _ = grouped && (reader.accept("TRUE") || reader.accept("ON"));
        } else if reader.accept("FORMAT") {
            reader.accept_token(&Token::Eq);
            let name = reader.name_or_text("a format's name")?;
            let named = name.text.parse::<ExplainFormat>();
            format = named.map_err(|error| reader.wrong(message_of(&error), name.place))?;
        } else if reader.is_word(0, "VERBOSE") {
            return Err(reader.expected("a query (EXPLAIN has no VERBOSE)"));
        } else if grouped && reader.accept_token(&Token::RParen) {
            break;
        } else if !(grouped && reader.accept_token(&Token::Comma)) {
            match grouped {
                true => return Err(reader.expected("ANALYZE, FORMAT or )")),
                false => break,
            }
        }
    }
    Ok((analyze, format))
}

/// What an error says, without the place of another text.
fn message_of(error: &crate::error::Error) -> String {
    match error.kind() {
        crate::error::ErrorKind::Parse { message, .. } => message.clone(),
        _ => error.to_string(),
    }
}

/// What follows `SET`.
fn set<'t>(reader: &mut WordReader<'t>) -> Result<Statement<'t>> {
    let option = option(reader)?;
    if !reader.accept_token(&Token::Eq) && !reader.accept("TO") {
        return Err(reader.expected("= or TO"));
    }
    if reader.token().is_none() {
        return Err(reader.expected("a value"));
    }
    let mut value = String::new();
    while let Some(token) = reader.token() {
        match token {
            Token::SingleQuotedString(text) => value.push_str(text),
            Token::Word(word) => value.push_str(&word.value),
            other => value.push_str(&other.to_string()),
        }
        reader.at += 1;
    }
    Ok(Statement::Set { option, value })
}
