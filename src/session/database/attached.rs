//! `ATTACH 'folder' AS name`: databases beside the session's own, whose schemas are schemas of the
//! session.
//!
//! ```text
//!   in the catalog     in the session    also
//!   public.t           name.t            name.public.t, name.main.t
//!   raw.t              "name.raw".t      name.raw.t
//! ```
//!
//! So every query and statement finds them. They are written to the folder that they are of, and
//! the texts of views name schemas there as the catalog does.

mod names;

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::common::TableReference;
use datafusion::sql::parser;
use datafusion::sql::sqlparser::ast::Query;
use parking_lot::{Mutex, MutexGuard};

use self::names::{AttachedCatalog, RenamedSchemas};
use super::{CATALOG, LOCK, OpenDatabase, locked};
use crate::error::{Error, ErrorKind, Result};
use crate::session::catalog::Catalog;
use crate::session::files::SCHEMA as FILES;
use crate::session::schemas::{DatabaseSchemas, INFORMATION, PUBLIC};
use crate::session::writers::Alone;
use crate::session::{Session, not_a_query, rules, syntax};
use crate::sql::{Attach, Name, Statement};

/// A database that is attached.
#[derive(Debug)]
pub(in crate::session) struct Attached {
    pub(super) part: DatabaseSchemas,
    pub(super) folder: PathBuf,
    pub(super) read_only: bool,
    /// The statements that made its functions, by name.
    pub(super) functions: BTreeMap<String, String>,
    database: Mutex<OpenDatabase>,
}

impl Attached {
    pub(super) fn database(&self) -> MutexGuard<'_, OpenDatabase> {
        self.database.lock()
    }

    pub(super) fn name(&self) -> &str {
        match &self.part {
            DatabaseSchemas::Own => "",
            DatabaseSchemas::Attached(name) => name,
        }
    }
}

impl Session {
    /// The names of the databases that are attached, sorted.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// # let directory = tempfile::tempdir().unwrap();
    /// let path = directory.path().join("sales.wf");
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.execute(&format!("ATTACH '{}'", path.display()))?;
    /// session.execute("CREATE TABLE sales.orders AS SELECT 42 AS id")?;
    /// assert_eq!(session.attached_databases(), ["sales"]);
    /// assert!(session.save()?);
    /// session.execute("DETACH sales")?;
    /// assert!(session.sql("FROM sales.orders").is_err());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn attached_databases(&self) -> Vec<String> {
        self.databases.attached().iter().map(|attached| attached.name().into()).collect()
    }

    /// Name and folder of each database that is attached, and whether it is only read.
    pub(in crate::session) fn attached_folders(&self) -> Vec<(String, PathBuf, bool)> {
        let attached = self.databases.attached();
        let of = |one: &Arc<Attached>| (one.name().into(), one.folder.clone(), one.read_only);
        attached.iter().map(of).collect()
    }

    /// Runs an `ATTACH`; what was done.
    pub(in crate::session) fn attach(&self, attach: &Attach) -> Result<String> {
        self.files.allow("ATTACH")?;
        let folder = Path::new(&attach.folder.text);
        let (name, at) = match &attach.name {
            Some(name) => (name.text.clone(), name.place),
            None => {
                let stem = folder.file_stem().unwrap_or_default().to_string_lossy();
                (stem.to_lowercase(), attach.folder.place)
            }
        };
        let done = format!("database {name}: {}", folder.display());
        let own = self.database();
        let alone = self.alone()?;
        if attach.if_not_exists && self.attached_databases().contains(&name) {
            return Ok(done);
        }
        self.refuse_name_of_database(&name).map_err(|error| error.at(Some(at)))?;
        let known = self.databases.attached();
        let attached =
            known.iter().map(|other| (&other.folder, format!("attached as {}", other.name())));
        let own = own.iter().map(|folder| (folder, "open".to_string()));
        if let Some((_, how)) = own.chain(attached).find(|(other, _)| is_same(other, folder)) {
            return Err(plan(format!("ATTACH: the database is {how} already")).at(Some(at)));
        }
        let lock = match attach.read_only {
            true => locked_to_read(folder)?,
            false => Some(locked(folder)?),
        };
        let (before, functions) = (self.contents(&alone), self.databases.functions().clone());
        let part = DatabaseSchemas::Attached(name.clone());
        let opened = self.schemas_for(&name).and_then(|()| self.opened(folder, &part));
        // Those of the database are apart from the session's.
        let now = std::mem::replace(&mut *self.databases.functions(), functions.clone());
        let functions: BTreeMap<String, String> =
            now.into_iter().filter(|(name, _)| !functions.contains_key(name)).collect();
        match opened {
            Ok(database) => {
                // One that is only read stays as it was read, whoever writes it then.
                let lock = lock.filter(|_| !attach.read_only);
                let database = Mutex::new(OpenDatabase { _lock: lock, ..database });
                let (folder, read_only) = (folder.into(), attach.read_only);
                self.databases.put(Attached { part, folder, read_only, functions, database });
                Ok(done)
            }
            Err(error) => {
                self.forget_functions(&functions);
                self.restore(&alone, before)?;
                Err(error)
            }
        }
    }

    /// Runs a `DETACH`, before which what changed is written; what was done.
    pub(in crate::session) fn detach(&self, name: &Name, if_exists: bool) -> Result<String> {
        let alone = self.alone()?;
        let attached = self.databases.attached();
        let Some(attached) = attached.iter().find(|attached| attached.name() == name.text) else {
            if if_exists {
                return Ok("there was no database to detach".into());
            }
            let (name, at) = (name.text.clone(), name.place);
            let known = self.attached_databases();
            return Err(Error::from(ErrorKind::DatabaseNotFound { name, known }).at(Some(at)));
        };
        let schemas = self.schemas_of(&attached.part);
        if schemas.contains(&self.schema_in_use()) {
            let message = format!("DETACH: {:?} is in use; USE {PUBLIC} leaves it", name.text);
            return Err(plan(message).at(Some(name.place)));
        }
        self.save_attached(&alone, attached)?;
        let catalog =
            self.catalog().ok_or_else(|| Error::internal("a session without a catalog"))?;
        for schema in schemas {
            catalog.deregister_schema(&schema, true)?;
        }
        self.forget_functions(&attached.functions);
        self.databases.take(&name.text);
        Ok(format!("database {} is detached", name.text))
    }

    pub(super) fn save_attached(&self, alone: &Alone<'_>, attached: &Attached) -> Result<bool> {
        match attached.read_only {
            true => Ok(false),
            false => {
                let database = &mut attached.database();
                self.save_part(alone, database, &attached.part, &attached.functions)
            }
        }
    }

    fn refuse_name_of_database(&self, name: &str) -> Result<()> {
        if name.is_empty() || name.contains('.') {
            return Err(plan(format!(
                "ATTACH: {name:?} is no name of a database; AS gives it another"
            )));
        }
        let catalog = self.core.context.copied_config().options().catalog.default_catalog.clone();
        let part = DatabaseSchemas::Attached(name.into());
        let given = [names::MAIN, FILES, INFORMATION, &catalog];
        let is_taken = |schema: &String| part.in_catalog(schema).is_some();
        if given.contains(&name) || self.schema_names().iter().any(is_taken) {
            return Err(plan(format!(
                "ATTACH: there is a schema named {name:?}; AS gives the database another name"
            )));
        }
        Ok(())
    }

    /// Makes the schema of a database's tables, and lets names of three parts find it.
    fn schemas_for(&self, name: &str) -> Result<()> {
        let catalog =
            self.catalog().ok_or_else(|| Error::internal("a session without a catalog"))?;
        catalog.register_schema(name, Arc::new(Catalog::default()))?;
        let schemas = AttachedCatalog { name: name.into(), schemas: Arc::downgrade(&catalog) };
        self.core.context.register_catalog(name, Arc::new(schemas));
        Ok(())
    }

    fn forget_functions(&self, functions: &BTreeMap<String, String>) {
        let own = self.databases.functions().clone();
        // The user may have made others of their names.
        for name in functions.keys().filter(|name| !own.contains_key(*name)) {
            // One that is gone already need not be dropped.
            let _ = self.deregister_function(name);
        }
    }

    /// The database of which a schema is; `None` of the session's own.
    pub(in crate::session) fn attached_of(&self, schema: &str) -> Option<Arc<Attached>> {
        if [FILES, INFORMATION].contains(&schema) {
            return None;
        }
        let attached = self.databases.attached();
        attached.into_iter().find(|attached| attached.part.in_catalog(schema).is_some())
    }

    /// Fails where a schema is of a database that is only read.
    pub(in crate::session) fn refuse_read_only(&self, schema: &str) -> Result<()> {
        match self.attached_of(schema) {
            Some(attached) if attached.read_only => {
                let message = format!("the database {:?} is attached READ_ONLY", attached.name());
                Err(ErrorKind::File { path: attached.folder.clone(), message }.into())
            }
            _ => Ok(()),
        }
    }

    /// Runs a statement of a catalog, whose schemas become those of the session.
    pub(super) fn execute_of(&self, part: &DatabaseSchemas, statement: &str) -> Result<()> {
        let text = syntax::kept(statement);
        if *part == DatabaseSchemas::Own
            || matches!(Statement::of(&text)?, Statement::CreateFunction)
        {
            return self.executed(&text).map(|_| ());
        }
        let parser::Statement::Statement(mut statement) = self.parsed(&text)? else {
            return Err(not_a_query(statement));
        };
        RenamedSchemas::of(statement.as_mut(), &|schema| Some(part.in_session(schema)));
        self.run(*statement, &text).map(|_| ())
    }

    /// The query of a view as the catalog of its database has it.
    pub(in crate::session) fn query_in_catalog(
        &self,
        part: &DatabaseSchemas,
        query: String,
    ) -> Result<String> {
        if *part == DatabaseSchemas::Own {
            return Ok(query);
        }
        let parser::Statement::Statement(mut statement) =
            rules::parsed(&self.core.state(), &syntax::kept(&query))?
        else {
            return Err(not_a_query(&query));
        };
        let outside = RenamedSchemas::of(statement.as_mut(), &|schema| {
            part.in_catalog(schema).map(String::from)
        });
        match outside {
            None => Ok(statement.to_string()),
            Some(table) => Err(Error::internal(format!("a view reads {table}"))),
        }
    }

    /// Fails where a view's query reads tables of another database than its own: without that one
    /// it would be none.
    pub(in crate::session) fn refuse_other_databases(
        &self,
        view: &TableReference,
        query: &Query,
    ) -> Result<()> {
        if self.attached_databases().is_empty() {
            return Ok(());
        }
        let part = |schema: &str| {
            self.attached_of(schema).map_or(DatabaseSchemas::Own, |attached| attached.part.clone())
        };
        let own = part(view.schema().unwrap_or(&self.schema_in_use()));
        let is_own = |schema: &str| {
            let is_given = [FILES, INFORMATION].contains(&schema);
            (is_given || part(schema) == own).then(|| schema.to_string())
        };
        match RenamedSchemas::of(&mut query.clone(), &is_own) {
            None => Ok(()),
            Some(table) => Err(plan(format!(
                "CREATE VIEW: {table} is of another database; CREATE TABLE … AS keeps rows of it"
            ))),
        }
    }

    /// A table's name without that of its database's catalog: `d.public.t` is `d.t`.
    pub(in crate::session) fn in_schemas(&self, name: &TableReference) -> TableReference {
        let TableReference::Full { catalog, schema, table } = name else { return name.clone() };
        if !self.attached_databases().iter().any(|known| known == catalog.as_ref()) {
            return name.clone();
        }
        TableReference::partial(names::in_session(catalog, schema), table.clone())
    }

    /// What a schema of an attached database is called in the session.
    pub(in crate::session) fn schema_of_database(&self, database: &str, schema: &str) -> String {
        names::in_session(database, schema)
    }
}

/// Whether two paths are of one folder that is there.
fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// The lock of a database that is read: nobody may be about to write it. `None` where the folder
/// has none.
fn locked_to_read(folder: &Path) -> Result<Option<File>> {
    let refused = |message: &str| -> Error {
        ErrorKind::File { path: folder.into(), message: message.into() }.into()
    };
    if !folder.join(CATALOG).exists() {
        return Err(refused("there is no database, and READ_ONLY makes none"));
    }
    let lock = match File::open(folder.join(LOCK)) {
        Ok(lock) => lock,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(folder, error)),
    };
    match lock.try_lock_shared() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => Err(refused("another process has this database open")),
        Err(TryLockError::Error(error)) => Err(Error::io(folder, error)),
    }
}

fn plan(message: String) -> Error {
    ErrorKind::Plan { message, location: None }.into()
}
