//! `EXPORT DATABASE 'folder'`: a Parquet file for each table, and `schema.sql` with the schemas and
//! views. `IMPORT DATABASE 'folder'` makes them again.

use std::path::Path;

use datafusion::common::TableReference;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Error, ErrorKind, Result};
use crate::io::{ParquetWriteOptions, WriteFormat};
use crate::session::schemas::{DatabaseSchemas, PUBLIC};
use crate::session::{Session, syntax};
use crate::sql::{Name, Text, is_word, quoted_name};

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
        let mut statements = self.schema_statements(&DatabaseSchemas::Own);
        let mut tables = 0;
        for (schema, table) in self.tables_of_part(&DatabaseSchemas::Own) {
            let name = TableReference::partial(schema, table);
            if self.view_text(&name)?.is_none() {
                let file = format!("{tables}_{}.parquet", plain_name(name.table()));
                let format = WriteFormat::Parquet(ParquetWriteOptions::default());
                self.rows_of(&name)?.write(folder.join(&file), &format)?;
                statements.push(format!("CREATE TABLE {} AS FROM '{file}';\n", whole_name(&name)));
                statements.extend(self.constraints_of(&name).statements(&whole_name(&name)));
                tables += 1;
            }
        }
        statements.extend(self.view_statements(&DatabaseSchemas::Own)?);
        std::fs::write(&script, statements.concat()).map_err(|error| Error::io(&script, error))?;
        Ok(format!("{tables} tables in {}", folder.display()))
    }

    /// The statements that make the schemas of a database.
    pub(in crate::session) fn schema_statements(&self, part: &DatabaseSchemas) -> Vec<String> {
        let schemas = self.schemas_of(part);
        let made = schemas.iter().filter_map(|schema| part.in_catalog(schema));
        made.filter(|schema| *schema != PUBLIC)
            .map(|schema| format!("CREATE SCHEMA IF NOT EXISTS {};\n", quoted_name(schema)))
            .collect()
    }

    /// The statements that make the views of a database, each behind those that it reads.
    pub(in crate::session) fn view_statements(
        &self,
        part: &DatabaseSchemas,
    ) -> Result<Vec<String>> {
        let (mut views, mut statements) = (vec![], vec![]);
        for (schema, table) in self.tables_of_part(part) {
            let name = TableReference::partial(schema, table);
            if let Some(query) = self.view_text(&name)? {
                views.push((name, query));
            }
        }
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
            let (name, query) = (part.name_in_catalog(&name), self.query_in_catalog(part, query)?);
            statements.push(format!("CREATE VIEW {} AS {query};\n", whole_name(&name)));
        }
        Ok(statements)
    }

    /// All of an export or, where a part of it fails, nothing.
    pub(super) fn import(&self, folder: &Name) -> Result<String> {
        self.files.allow("IMPORT DATABASE")?;
        let folder = Path::new(&folder.text);
        let script = folder.join(SCHEMA);
        let text = std::fs::read_to_string(&script).map_err(|error| Error::io(&script, error))?;
        let alone = self.alone()?;
        let before = self.contents(&alone);
        let made = statements_of_export(&text, folder)
            .map_err(|message| ErrorKind::File { path: script.clone(), message }.into())
            .and_then(|statements| {
                let made = statements.len();
                let mut statements = statements.iter();
                statements
                    .try_for_each(|(text, _)| self.executed(&syntax::kept(text)).map(|_| ()))?;
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

/// The statements of a script of an export. Those of tables name their files from the folder on;
/// beside them stand the table's name and its file as they are written.
///
/// # Errors
/// What is wrong with the text, and where.
#[expect(clippy::type_complexity, reason = "a statement, and of which table it is")]
pub(in crate::session) fn statements_of_export(
    text: &str,
    folder: &Path,
) -> std::result::Result<Vec<(String, Option<(String, String)>)>, String> {
    let text = Text::from(text);
    if let Some(error) = text.error() {
        return Err(error.to_string());
    }
    let with_path = |statement: Text<'_>| match file_of_table(&statement) {
        Some(file) => {
            let path = folder.join(file).display().to_string().replace('\'', "''");
            let words = statement.words().count();
            let made = format!("{} '{path}'", statement.between(0, words - 1).as_str());
            let name = statement.between(2, words - 3).as_str().to_string();
            (made, Some((name, file.to_string())))
        }
        None => (statement.as_str().to_string(), None),
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

/// A table's name with its schema's, as SQL writes them: in quotes, so that no name is a word of a
/// statement.
pub(in crate::session) fn whole_name(name: &TableReference) -> String {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let parts = [name.schema(), Some(name.table())];
    parts.into_iter().flatten().map(quoted).collect::<Vec<_>>().join(".")
}

/// What of a name may be in a file's.
pub(in crate::session) fn plain_name(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { '-' }).take(100).collect()
}
