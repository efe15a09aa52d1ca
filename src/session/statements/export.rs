//! `EXPORT DATABASE 'folder'`: a Parquet file for each table, and `schema.sql` with the schemas and
//! views; `IMPORT DATABASE 'folder'`: the same, made again.

use std::path::{Path, PathBuf};

use datafusion::common::TableReference;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use super::first_words;
use crate::error::{Error, ErrorKind, Result};
use crate::io::{ParquetWriteOptions, WriteFormat};
use crate::session::Session;
use crate::session::schemas::PUBLIC;

/// The file of the statements.
const SCHEMA: &str = "schema.sql";

impl Session {
    /// What was done by a text that exports or imports all tables; `None` of another text.
    pub(super) fn exported(&self, text: &str) -> Result<Option<String>> {
        let words = first_words(text, 3);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["EXPORT", "DATABASE", ..] => {
                self.files.allow("EXPORT DATABASE")?;
                self.export(&folder(text)?).map(Some)
            }
            ["IMPORT", "DATABASE", ..] => {
                self.files.allow("IMPORT DATABASE")?;
                self.import(&folder(text)?).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn export(&self, folder: &Path) -> Result<String> {
        std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
        // All tables as they are at one time.
        let _alone = self.alone()?;
        let script = folder.join(SCHEMA);
        if script.exists() {
            let message = "the folder has an export already".into();
            return Err(ErrorKind::File { path: script, message }.into());
        }
        let (mut tables, mut views) = (vec![], vec![]);
        let made = self.schema_names().into_iter().filter(|schema| schema != PUBLIC);
        let mut statements: Vec<String> = made
            .map(|schema| format!("CREATE SCHEMA IF NOT EXISTS {};\n", quoted(&schema)))
            .collect();
        for (number, (schema, table)) in self.all_tables().into_iter().enumerate() {
            let name = TableReference::partial(schema, table);
            match self.view_text(&name)? {
                Some(query) => views.push((name, query)),
                None => {
                    let file = format!("{number}_{}.parquet", plain(name.table()));
                    let format = WriteFormat::Parquet(ParquetWriteOptions::default());
                    self.rows_of(&name)?.write(folder.join(&file), &format)?;
                    statements.push(format!("CREATE TABLE {} AS FROM '{file}';\n", whole(&name)));
                    tables.push(name);
                }
            }
        }
        // A view behind those that it reads.
        while !views.is_empty() {
            let mut at = 0;
            for (place, (name, query)) in views.iter().enumerate() {
                let mut first = true;
                for (other, _) in views.iter().filter(|(other, _)| other != name) {
                    first &= !self.reads(query, other, 0)?;
                }
                if first {
                    at = place;
                    break;
                }
            }
            let (name, query) = views.remove(at);
            statements.push(format!("CREATE VIEW {} AS {query};\n", whole(&name)));
        }
        std::fs::write(&script, statements.concat()).map_err(|error| Error::io(&script, error))?;
        Ok(format!("{} tables in {}", tables.len(), folder.display()))
    }

    /// All of an export or, where a part of it fails, nothing.
    fn import(&self, folder: &Path) -> Result<String> {
        let script = folder.join(SCHEMA);
        let text = std::fs::read_to_string(&script).map_err(|error| Error::io(&script, error))?;
        let alone = self.alone()?;
        let before = self.contents(&alone);
        let made = statements_of(&text, folder)
            .map_err(|message| ErrorKind::File { path: script.clone(), message }.into())
            .and_then(|statements| {
                statements.iter().try_for_each(|text| self.execute(text).map(|_| ()))?;
                Ok(statements.len())
            });
        match made {
            Ok(made) => Ok(format!("{made} tables and views of {}", folder.display())),
            Err(error) => {
                self.restore(&alone, before)?;
                Err(error)
            }
        }
    }
}

/// The statements of a script of an export. Those of tables name their files from the folder on.
///
/// # Errors
/// What is wrong with the text, and where.
fn statements_of(text: &str, folder: &Path) -> std::result::Result<Vec<String>, String> {
    let tokens = Tokenizer::new(&GenericDialect {}, text)
        .tokenize_with_location()
        .map_err(|error| error.to_string())?;
    let mut offset = offsets(text);
    let mut statements = vec![];
    let mut own: Vec<TokenWithSpan> = vec![];
    for token in tokens.into_iter().chain([TokenWithSpan::new_eof()]) {
        match token.token {
            Token::Whitespace(_) => {}
            Token::SemiColon | Token::EOF => {
                let (Some(first), Some(last)) = (own.first(), own.last()) else { continue };
                let (begin, before_last) = (offset(first.span.start), offset(last.span.start));
                let end = offset(last.span.end);
                statements.push(match file_of_table(&own) {
                    Some(file) => {
                        let path = folder.join(file).display().to_string().replace('\'', "''");
                        format!("{}'{path}'", &text[begin..before_last])
                    }
                    None => text[begin..end].to_string(),
                });
                own.clear();
            }
            _ => own.push(token),
        }
    }
    Ok(statements)
}

/// The file of `CREATE TABLE name AS FROM 'file'`.
fn file_of_table(tokens: &[TokenWithSpan]) -> Option<&str> {
    let is_word = |token: &TokenWithSpan, word: &str| matches!(&token.token, Token::Word(own) if own.quote_style.is_none() && own.value.eq_ignore_ascii_case(word));
    let [create, table, .., by, from, file] = tokens else { return None };
    let words = [(create, "CREATE"), (table, "TABLE"), (by, "AS"), (from, "FROM")];
    match &file.token {
        Token::SingleQuotedString(file)
            if words.iter().all(|(token, word)| is_word(token, word)) =>
        {
            Some(file)
        }
        _ => None,
    }
}

/// Byte offsets of places in a text, which are asked for in rising order.
fn offsets(text: &str) -> impl FnMut(Location) -> usize {
    let mut rest = text.char_indices();
    let (mut line, mut column) = (1, 1);
    move |place: Location| loop {
        if (line, column) >= (place.line, place.column) {
            return rest.offset();
        }
        match rest.next() {
            Some((_, '\n')) => (line, column) = (line + 1, 1),
            Some(_) => column += 1,
            None => return text.len(),
        }
    }
}

/// The folder that a statement names.
fn folder(text: &str) -> Result<PathBuf> {
    let tokens =
        Tokenizer::new(&GenericDialect {}, text).tokenize_with_location().unwrap_or_default();
    let mut tokens =
        tokens.into_iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).skip(2);
    let (named, end) = (tokens.next(), tokens.next());
    let wrong = |message: &str, at: Option<(u64, u64)>| {
        Err(Error::from(ErrorKind::Plan { message: message.into(), location: None }).at(at))
    };
    let place = |token: &TokenWithSpan| Some((token.span.start.line, token.span.start.column));
    match (named, end) {
        (Some(token), end) => match (&token.token, end.filter(|end| end.token != Token::EOF)) {
            (Token::SingleQuotedString(path), None) => Ok(path.into()),
            (Token::SingleQuotedString(_), Some(end)) => wrong(
                "expected the end of the statement: tables are exported as Parquet",
                place(&end),
            ),
            _ => wrong("expected a folder in single quotes", place(&token)),
        },
        _ => wrong("expected a folder in single quotes", None),
    }
}

/// A table's name with its schema's, as SQL writes them.
fn whole(name: &TableReference) -> String {
    let parts = [name.schema(), Some(name.table())];
    parts.into_iter().flatten().map(quoted).collect::<Vec<_>>().join(".")
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// What of a name may be in a file's.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { '-' }).take(100).collect()
}
