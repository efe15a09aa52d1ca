//! Schemas, and the session's tables by names that may say theirs.
//!
//! A name of one part is of the schema in use, which `USE` chooses and which is `public` at first.
//! The texts of views name the schema of each table (`QualifiedNames`), so that they mean the same
//! whichever is in use.

mod apart;
mod parts;
mod qualified;

use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::common::TableReference;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, SchemaName, Use};

pub(super) use self::parts::DatabaseSchemas;
pub(super) use self::qualified::schema_ident;
use super::Session;
use super::catalog::{Catalog, CatalogTables};
use super::files::SCHEMA as FILES;
use super::writers::Alone;
use crate::error::{Error, ErrorKind, Result, listed};
use crate::frame::{DataFrame, LazyFrame};
use crate::sql::Text;
use crate::sql::ast::{Place, folded, idents, known};

/// The schema that is always there.
pub(super) const PUBLIC: &str = "public";
/// Of tables about tables, which DataFusion makes.
pub(super) const INFORMATION: &str = "information_schema";
/// The option that says which schema is in use.
pub(super) const IN_USE: &str = "datafusion.catalog.default_schema";

impl Session {
    /// The names of the schemas, sorted: `public`, and those of `CREATE SCHEMA`.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.execute("CREATE SCHEMA raw")?;
    /// assert_eq!(session.schema_names(), ["public", "raw"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn schema_names(&self) -> Vec<String> {
        let mut names = self.catalog().map(|catalog| catalog.schema_names()).unwrap_or_default();
        names.retain(|name| name != FILES && name != INFORMATION);
        names.sort();
        names
    }

    /// The schema whose tables need no schema before their names: `public`, until `USE` says
    /// another.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert_eq!(session.schema_in_use(), "public");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn schema_in_use(&self) -> String {
        self.core.context.copied_config().options().catalog.default_schema.clone()
    }

    /// The names of all tables: of the schema in use as they are, of the others behind their
    /// schema's name, each sorted.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.execute("CREATE SCHEMA raw")?;
    /// session.execute("CREATE TABLE raw.days (day DATE)")?;
    /// session.execute("CREATE TABLE t (a INT)")?;
    /// assert_eq!((session.all_table_names(), session.table_names()), (vec!["t".into(), "raw.days".into()], vec!["t".into()]));
    /// assert_eq!(session.schema("raw.days")?.fields().len(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn all_table_names(&self) -> Vec<String> {
        let mut names = self.table_names();
        names.extend(
            self.other_tables().into_iter().map(|(schema, table)| format!("{schema}.{table}")),
        );
        names
    }

    /// Schema and name of each table of the schemas that are not in use.
    fn other_tables(&self) -> Vec<(String, String)> {
        let in_use = self.schema_in_use();
        let others = self.schema_names().into_iter().filter(|name| *name != in_use);
        others
            .flat_map(|schema| {
                self.tables_of(&schema).into_iter().map(move |table| (schema.clone(), table))
            })
            .collect()
    }

    /// Schema and name of each table, sorted.
    pub(super) fn all_tables(&self) -> Vec<(String, String)> {
        let of = |schema: String| {
            self.tables_of(&schema).into_iter().map(move |table| (schema.clone(), table))
        };
        self.schema_names().into_iter().flat_map(of).collect()
    }

    /// The names of a schema's tables, sorted; none where there is no such schema.
    pub(super) fn tables_of(&self, schema: &str) -> Vec<String> {
        let found = self.catalog().and_then(|catalog| catalog.schema(schema));
        let mut names = found.map(|schema| schema.table_names()).unwrap_or_default();
        names.sort();
        names
    }

    pub(super) fn catalog(&self) -> Option<Arc<dyn CatalogProvider>> {
        let name = self.core.context.copied_config().options().catalog.default_catalog.clone();
        self.core.context.catalog(&name)
    }

    /// The table that a program names: one behind a schema's name and a dot, if there is such a
    /// one, or else a schema of that name and no table that is called all of it.
    pub(super) fn named(&self, name: &str) -> TableReference {
        let whole = TableReference::bare(name);
        let schemas = self.schema_names();
        // A schema of a database that is attached has a dot in its name.
        let splits = name.match_indices('.').map(|(dot, _)| (&name[..dot], &name[dot + 1..]));
        let mut named = splits
            .filter(|(schema, _)| schemas.iter().any(|known| known == schema))
            .map(|(schema, table)| TableReference::partial(schema, table));
        let first = named.next();
        match first.iter().cloned().chain(named).find(|name| self.has_table(name)) {
            Some(there) => there,
            None if self.has_table(&whole) => whole,
            None => first.unwrap_or(whole),
        }
    }

    pub(super) fn has_table(&self, name: &TableReference) -> bool {
        self.core.context.table_exist(name.clone()).unwrap_or(false)
    }

    /// Puts a table in the place of what there was of its name.
    pub(super) fn put(
        &self,
        _: &Alone<'_>,
        name: &TableReference,
        provider: Arc<dyn TableProvider>,
    ) -> Result<()> {
        let name = self.in_schemas(name);
        self.writable(&name)?;
        // The session's catalogs replace what there was.
        self.core.context.register_table(name, provider)?;
        Ok(())
    }

    /// Keeps a frame's rows as the table of this name.
    pub(super) fn keep(
        &self,
        alone: &Alone<'_>,
        name: &TableReference,
        frame: &DataFrame,
    ) -> Result<()> {
        distinct(&frame.schema(), &format!("the table {:?}", name.to_string()))?;
        self.put(alone, name, frame.provider_in(&self.core)?)
    }

    /// Takes a table out of its schema.
    pub(super) fn forget(&self, _: &Alone<'_>, name: &TableReference) -> Result<()> {
        let name = self.in_schemas(name);
        self.writable(&name)?;
        match self.core.context.deregister_table(name.clone())? {
            Some(_) => Ok(()),
            None => Err(self.missing_table(&name)),
        }
    }

    /// Refuses names of schemas that there are not, or that are not the user's to fill.
    pub(super) fn writable(&self, name: &TableReference) -> Result<()> {
        match name.schema() {
            Some(schema @ (FILES | INFORMATION)) => {
                return Err(wrong(format!("the tables of the schema {schema:?} are given")));
            }
            Some(_) => self.has_schema_of(name)?,
            None => {}
        }
        self.refuse_read_only(name.schema().unwrap_or(&self.schema_in_use()))
    }

    fn has_schema_of(&self, name: &TableReference) -> Result<()> {
        match self.core.context.state_ref().read().schema_for_ref(name.clone()) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.schema_not_found(&prefix(name))),
        }
    }

    pub(super) fn provider_of(&self, name: &TableReference) -> Result<Arc<dyn TableProvider>> {
        let tables = [name.clone()];
        let found = self.core.block_on(async {
            self.views_planned(&tables).await?;
            Ok(self.core.context.table_provider(name.clone()).await)
        })?;
        found.map_err(|_| self.missing_table(name))
    }

    pub(super) fn rows_of(&self, name: &TableReference) -> Result<LazyFrame> {
        self.scan_provider(name.clone(), self.provider_of(name)?)
    }

    /// An error of a table that is not there, or of its schema.
    pub(super) fn missing_table(&self, name: &TableReference) -> Error {
        let name = &self.in_schemas(name);
        if let Err(error) = self.has_schema_of(name) {
            return error;
        }
        match name.schema().filter(|schema| *schema != self.schema_in_use()) {
            None => self.table_not_found(name.table()),
            Some(schema) => {
                let known = self
                    .tables_of(schema)
                    .iter()
                    .map(|table| format!("{schema}.{table}"))
                    .collect();
                ErrorKind::TableNotFound { name: format!("{schema}.{}", name.table()), known }
                    .into()
            }
        }
    }

    fn schema_not_found(&self, name: &str) -> Error {
        ErrorKind::SchemaNotFound { name: name.into(), known: self.schema_names() }.into()
    }

    /// `CREATE SCHEMA [IF NOT EXISTS] name`; what was done.
    pub(super) fn create_schema(
        &self,
        name: &SchemaName,
        if_not_exists: bool,
        text: &Text<'_>,
    ) -> Result<String> {
        let SchemaName::Simple(name) = name else {
            return Err(Error::unsupported(
                "CREATE SCHEMA … AUTHORIZATION",
                "a session has no users",
            ));
        };
        let (name, at) = self.schema_name(name, "CREATE SCHEMA", text)?;
        let _alone = self.alone()?;
        let catalog =
            self.catalog().ok_or_else(|| Error::internal("a session without a catalog"))?;
        if catalog.schema(&name).is_some() || name == INFORMATION {
            // A database that is imported or opened has no tables in that of another.
            let is_database = self.attached_databases().contains(&name);
            return match if_not_exists && !is_database {
                true => Ok(format!("schema {name}")),
                false => {
                    Err(wrong(format!("CREATE SCHEMA: there is a schema named {name:?}")).at(at))
                }
            };
        }
        self.refuse_read_only(&name).map_err(|error| error.at(at))?;
        catalog.register_schema(&name, Arc::new(Catalog::default()))?;
        Ok(format!("schema {name}"))
    }

    /// `DROP SCHEMA [IF EXISTS] name, … [CASCADE | RESTRICT]`; what was done.
    pub(super) fn drop_schemas(
        &self,
        names: &[ObjectName],
        if_exists: bool,
        cascade: bool,
        text: &Text<'_>,
    ) -> Result<String> {
        let catalog =
            self.catalog().ok_or_else(|| Error::internal("a session without a catalog"))?;
        let _alone = self.alone()?;
        // All names are looked at before the first is dropped: the statement does all or nothing.
        let mut gone = vec![];
        for name in names {
            let (name, at) = self.schema_name(name, "DROP SCHEMA", text)?;
            let refused = |message: String| Err(wrong(format!("DROP SCHEMA: {message}")).at(at));
            if [PUBLIC, FILES, INFORMATION].contains(&name.as_str()) {
                return refused(format!("the schema {name:?} stays"));
            }
            if self.attached_databases().contains(&name) {
                return refused(format!("{name:?} is a database, which DETACH takes away"));
            }
            self.refuse_read_only(&name).map_err(|error| error.at(at))?;
            if catalog.schema(&name).is_none() {
                match if_exists {
                    true => continue,
                    false => return Err(self.schema_not_found(&name).at(at)),
                }
            }
            if name == self.schema_in_use() {
                return refused(format!("the schema {name:?} is in use; USE {PUBLIC} leaves it"));
            }
            let tables = self.tables_of(&name);
            if !cascade && !tables.is_empty() {
                let (count, s) = (tables.len(), if tables.len() == 1 { "" } else { "s" });
                let known = listed(&tables);
                return refused(format!(
                    "the schema {name:?} has {count} table{s}: {known}; CASCADE drops them, too"
                ));
            }
            // One that is named twice is dropped once.
            if !gone.contains(&name) {
                gone.push(name);
            }
        }
        for name in &gone {
            catalog.deregister_schema(name, true)?;
        }
        Ok(match gone[..] {
            [] => "there was no schema to drop".into(),
            _ => format!("schema {} is dropped", gone.join(", ")),
        })
    }

    /// All schemas with their tables, as they are now.
    pub(super) fn contents(&self, _: &Alone<'_>) -> SchemaContents {
        let of = |name: String| {
            let schema = self.catalog().and_then(|catalog| catalog.schema(&name))?;
            let schema: &dyn Any = schema.as_ref();
            Some((name, schema.downcast_ref::<Catalog>()?.tables()))
        };
        SchemaContents(self.schema_names().into_iter().filter_map(of).collect())
    }

    /// Makes all schemas and tables those that there were.
    pub(super) fn restore(&self, _: &Alone<'_>, contents: SchemaContents) -> Result<()> {
        let catalog =
            self.catalog().ok_or_else(|| Error::internal("a session without a catalog"))?;
        for name in self.schema_names() {
            if !contents.0.iter().any(|(known, _)| *known == name) {
                catalog.deregister_schema(&name, true)?;
            }
        }
        for (name, tables) in contents.0 {
            let schema: Arc<dyn SchemaProvider> = match catalog.schema(&name) {
                Some(schema) => schema,
                None => {
                    let schema = Arc::new(Catalog::default());
                    catalog.register_schema(&name, schema.clone())?;
                    schema
                }
            };
            let schema: &dyn Any = schema.as_ref();
            if let Some(schema) = schema.downcast_ref::<Catalog>() {
                schema.restore(tables);
            }
        }
        Ok(())
    }

    /// `USE schema`; what was done.
    pub(super) fn use_schema(&self, what: &Use, text: &Text<'_>) -> Result<String> {
        let name = match what {
            Use::Object(name) | Use::Schema(name) => name,
            Use::Default => &ObjectName::from(vec![Ident::new(PUBLIC)]),
            other => {
                return Err(Error::unsupported(
                    other.to_string(),
                    "USE takes the name of a schema",
                ));
            }
        };
        let (name, at) = self.schema_name(name, "USE", text)?;
        self.set_setting(IN_USE, &name).map_err(|error| error.at(at))?;
        Ok(format!("schema {name} is in use"))
    }

    /// Refuses another name than that of a schema with tables of the user's.
    pub(super) fn check_schema(&self, name: &str) -> Result<()> {
        match self.schema_names().iter().any(|known| known == name) {
            true => Ok(()),
            false => Err(self.schema_not_found(name)),
        }
    }

    /// A schema's name, which may have that of the catalog or of a database that is attached before
    /// it, and its place.
    fn schema_name(&self, name: &ObjectName, by: &str, text: &Text<'_>) -> Result<(String, Place)> {
        let catalog = self.core.context.copied_config().options().catalog.default_catalog.clone();
        let ident = match idents(name)[..] {
            [ident] => ident,
            [first, ident] if folded(first) == catalog => ident,
            [first, ident] if self.attached_databases().contains(&folded(first)) => {
                let schema = self.schema_of_database(&folded(first), &folded(ident));
                return Ok((schema, known(ident.span.start)));
            }
            _ => return Err(wrong(format!("{by}: {name} is no name of a schema"))),
        };
        let own = folded(ident);
        let place = known(ident.span.start).or(text.place_of(&own));
        Ok((own, place))
    }
}

/// The tables of schemas, by name.
pub(super) struct SchemaContents(Vec<(String, CatalogTables)>);

/// Refuses two columns of one name: no query could tell them apart.
pub(super) fn distinct(schema: &Schema, what: &str) -> Result<()> {
    let mut seen = HashSet::new();
    match schema.fields().iter().find(|field| !seen.insert(field.name())) {
        Some(field) => Err(wrong(format!(
            "{what}: two columns are named {:?}; AS gives one another name",
            field.name()
        ))),
        None => Ok(()),
    }
}

/// What stands before a table's name.
fn prefix(name: &TableReference) -> String {
    [name.catalog(), name.schema()].into_iter().flatten().collect::<Vec<_>>().join(".")
}

fn wrong(message: String) -> Error {
    ErrorKind::Plan { message, location: None }.into()
}
