//! Which schemas are of which database: of the session's own, or of one that is attached.

use datafusion::common::TableReference;

use super::{INFORMATION, PUBLIC};
use crate::session::Session;
use crate::session::files::SCHEMA as FILES;

/// The schemas of a session that are of one database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::session) enum DatabaseSchemas {
    /// Those of no database that is attached.
    Own,
    /// Those of the one of this name.
    Attached(String),
}

impl DatabaseSchemas {
    /// What a schema of the catalog is called in the session.
    pub(in crate::session) fn in_session(&self, schema: &str) -> String {
        match self {
            DatabaseSchemas::Attached(name) if schema == PUBLIC => name.clone(),
            DatabaseSchemas::Attached(name) if ![FILES, INFORMATION].contains(&schema) => {
                format!("{name}.{schema}")
            }
            _ => schema.into(),
        }
    }

    /// What a schema of the session is called in the catalog; `None` of another database's.
    pub(in crate::session) fn in_catalog<'s>(&self, schema: &'s str) -> Option<&'s str> {
        match self {
            DatabaseSchemas::Own => Some(schema),
            _ if [FILES, INFORMATION].contains(&schema) => Some(schema),
            DatabaseSchemas::Attached(name) if schema == name => Some(PUBLIC),
            DatabaseSchemas::Attached(name) => {
                schema.strip_prefix(name.as_str())?.strip_prefix('.')
            }
        }
    }

    /// What a table of the session is called in the catalog.
    pub(in crate::session) fn name_in_catalog(&self, name: &TableReference) -> TableReference {
        match name.schema().and_then(|schema| self.in_catalog(schema)) {
            Some(schema) => TableReference::partial(schema, name.table()),
            None => name.clone(),
        }
    }
}

impl Session {
    /// The schemas that are of a database, in the order of their names in its catalog.
    pub(in crate::session) fn schemas_of(&self, part: &DatabaseSchemas) -> Vec<String> {
        let mut schemas = self.schema_names();
        match part {
            DatabaseSchemas::Own => schemas.retain(|schema| self.attached_of(schema).is_none()),
            DatabaseSchemas::Attached(_) => {
                schemas.retain(|schema| part.in_catalog(schema).is_some());
                schemas.sort_by_key(|schema| part.in_catalog(schema).map(String::from));
            }
        }
        schemas
    }

    /// Schema and name of each table of a database.
    pub(in crate::session) fn tables_of_part(
        &self,
        part: &DatabaseSchemas,
    ) -> Vec<(String, String)> {
        let of = |schema: String| {
            self.tables_of(&schema).into_iter().map(move |table| (schema.clone(), table))
        };
        self.schemas_of(part).into_iter().flat_map(of).collect()
    }
}
