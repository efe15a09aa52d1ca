//! `EXPORT DATABASE 'folder'`: a Parquet file for each table, and `schema.sql` with the schemas and
//! views. `IMPORT DATABASE 'folder'` makes them again.

use std::path::Path;

use datafusion::common::TableReference;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Error, ErrorKind, Result};
use crate::io::{ParquetWriteOptions, WriteFormat};
use crate::session::schemas::PUBLIC;
use crate::session::{Session, syntax};
use crate::sql::{Name, Text, is_word};

/// The file of the statements.
const SCHEMA: &str = "schema.sql";

impl Session {
    pub(super) fn export(&self, folder: &Name) -> Result<String> {
        self.files.allow("EXPORT DATABASE")?;
        let folder = Path::new(&folder.text);
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
    pub(super) fn import(&self, folder: &Name) -> Result<String> {
        self.files.allow("IMPORT DATABASE")?;
        let folder = Path::new(&folder.text);
        let script = folder.join(SCHEMA);
        let text = std::fs::read_to_string(&script).map_err(|error| Error::io(&script, error))?;
        let alone = self.alone()?;
        let before = self.contents(&alone);
        let made = statements_of(&text, folder)
            .map_err(|message| ErrorKind::File { path: script.clone(), message }.into())
            .and_then(|statements| {
                let made = statements.len();
                let mut statements = statements.iter();
                statements.try_for_each(|text| self.executed(&syntax::kept(text)).map(|_| ()))?;
                Ok(made)
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
    let text = Text::from(text);
    if let Some(error) = text.error() {
        return Err(error.to_string());
    }
    let with_path = |statement: Text<'_>| match file_of_table(&statement) {
        Some(file) => {
            let path = folder.join(file).display().to_string().replace('\'', "''");
            let words = statement.words().count();
            format!("{} '{path}'", statement.between(0, words - 1).as_str())
        }
        None => statement.as_str().to_string(),
    };
    Ok(text.statements().into_iter().map(with_path).collect())
}

/// The file of `CREATE TABLE name AS FROM 'file'`.
fn file_of_table<'t>(statement: &'t Text<'_>) -> Option<&'t str> {
    let words: Vec<&TokenWithSpan> = statement.words().collect();
    let [create, table, .., by, from, file] = words[..] else { return None };
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
