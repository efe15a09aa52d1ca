//! A database that stays: a folder that one session has open.
//!
//! ```text
//!   my.wf/catalog.sql         statements that make schemas, tables, functions and views
//!   my.wf/17_orders.parquet   rows of a table, as the catalog says
//!   my.wf/lock                held by the process that has the database open
//! ```
//!
//! Saving writes new files for the tables that changed, then a new catalog in the place of the old
//! one, by a rename, and then removes the files that no catalog names. So whatever ends the process,
//! the folder has the old state or the new one.

mod attached;

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use parking_lot::{Mutex, MutexGuard};

use self::attached::Attached;
use super::Session;
use super::schemas::DatabaseSchemas;
use super::statements::{plain_name, statements_of_export, whole_name};
use super::writers::Alone;
use crate::error::{Error, ErrorKind, Result};
use crate::io::{OfSession, ParquetWriteOptions, WholeFile, WriteFormat};

/// The file of the statements.
const CATALOG: &str = "catalog.sql";
/// Its first line.
const FIRST_LINE: &str = "-- warpframe database, version 1";
/// Held by who has the database open.
const LOCK: &str = "lock";

/// What a session knows of its database, and what databases have of it.
#[derive(Debug, Default)]
pub(super) struct Databases {
    open: Mutex<Option<OpenDatabase>>,
    /// Sorted by name.
    attached: Mutex<Vec<Arc<Attached>>>,
    /// The statements that made the functions of users, by name.
    functions: Mutex<BTreeMap<String, String>>,
}

#[derive(Debug)]
struct OpenDatabase {
    folder: PathBuf,
    /// Locked as long as it is there; `None` of one that is only read.
    _lock: Option<File>,
    /// By name, as SQL writes it: the table as it was saved, and its file.
    saved: HashMap<String, (Arc<dyn TableProvider>, String)>,
    /// What the catalog holds.
    catalog: String,
    /// The number of the next file.
    next: u64,
}

impl Databases {
    fn open(&self) -> MutexGuard<'_, Option<OpenDatabase>> {
        self.open.lock()
    }

    fn functions(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.functions.lock()
    }

    fn attached(&self) -> Vec<Arc<Attached>> {
        self.attached.lock().clone()
    }

    fn put(&self, attached: Attached) {
        let mut all = self.attached.lock();
        all.push(Arc::new(attached));
        all.sort_by(|one, other| one.name().cmp(other.name()));
    }

    fn take(&self, name: &str) {
        let mut all = self.attached.lock();
        all.retain(|attached| attached.name() != name);
    }

    /// Notes which statement made a function.
    pub(super) fn made_function(&self, name: &str, statement: &str) {
        self.functions().insert(name.into(), statement.into());
    }

    /// Forgets a function.
    pub(super) fn dropped_function(&self, name: &str) {
        self.functions().remove(name);
    }
}

impl Session {
    /// Opens a database: its schemas, tables, views and functions become those of the session, and
    /// [`Session::save`] writes what changed. A folder that is not there, or is empty, becomes a new
    /// database. One process at a time has a database open. Tables are read into memory.
    ///
    /// # Errors
    /// [`ErrorKind::File`] of a folder that is no database, or that another process has open;
    /// [`ErrorKind::Plan`] where this session has one open; names that are taken, and functions of a
    /// session that takes none: nothing is opened then.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// # let directory = tempfile::tempdir().unwrap();
    /// let path = directory.path().join("my.wf");
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.open(&path)?;
    /// session.execute("CREATE TABLE t AS SELECT 42 AS answer")?;
    /// assert!(session.save()?);
    /// drop(session);
    ///
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.open(&path)?;
    /// assert_eq!(session.sql("FROM t")?.collect()?.item::<i64>()?, 42);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn open(&self, folder: impl AsRef<Path>) -> Result<()> {
        let folder = folder.as_ref();
        self.files.allow(format!("the database {}", folder.display()))?;
        let mut open = self.databases.open();
        if let Some(database) = &*open {
            let message = format!("the database {} is open already", database.folder.display());
            return Err(ErrorKind::Plan { message, location: None }.into());
        }
        let lock = Some(locked(folder)?);
        let alone = self.alone()?;
        let before = self.contents(&alone);
        match self.opened(folder, &DatabaseSchemas::Own) {
            Ok(database) => {
                *open = Some(OpenDatabase { _lock: lock, ..database });
                Ok(())
            }
            Err(error) => {
                self.restore(&alone, before)?;
                Err(error)
            }
        }
    }

    /// Runs the statements of a database's catalog, for these schemas.
    fn opened(&self, folder: &Path, part: &DatabaseSchemas) -> Result<OpenDatabase> {
        let path = folder.join(CATALOG);
        let refused =
            |message: String| -> Error { ErrorKind::File { path: path.clone(), message }.into() };
        let catalog = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                format!("{FIRST_LINE}\n")
            }
            Err(error) => return Err(Error::io(&path, error)),
        };
        if catalog.lines().next() != Some(FIRST_LINE) {
            return Err(refused(format!("its first line is not {FIRST_LINE:?}")));
        }
        let mut saved = HashMap::new();
        for (statement, file) in statements_of_export(&catalog, folder).map_err(refused)? {
            self.execute_of(part, &statement)?;
            if let Some((name, file)) = file {
                saved.insert(name, file);
            }
        }
        let next = saved.values().filter_map(|file| number_of(file)).max().map_or(0, |at| at + 1);
        let mut database = OpenDatabase {
            folder: folder.into(),
            _lock: None,
            saved: HashMap::new(),
            catalog,
            next,
        };
        for name in self.kept_tables(part)? {
            let whole = whole_name(&part.name_in_catalog(&name));
            if let Some(file) = saved.remove(&whole) {
                database.saved.insert(whole, (self.provider_of(&name)?, file));
            }
        }
        Ok(database)
    }

    /// Writes what changed since the database was opened or saved, and in those that are attached;
    /// whether there was anything. What is written of a database is there whole or not at all.
    /// Tables that are files stay where they are, and are no part of a database.
    ///
    /// # Errors
    /// [`ErrorKind::Plan`] where no database is open or attached; files that cannot be written: the
    /// database is as it was, and others are written.
    pub fn save(&self) -> Result<bool> {
        let mut open = self.databases.open();
        let alone = self.alone()?;
        let attached = self.databases.attached();
        let own = match &mut *open {
            Some(database) => {
                let functions = self.databases.functions().clone();
                self.save_part(&alone, database, &DatabaseSchemas::Own, &functions)
            }
            None if attached.is_empty() => {
                let message = "no database is open: Session::open opens one".into();
                return Err(ErrorKind::Plan { message, location: None }.into());
            }
            None => Ok(false),
        };
        let all = attached.iter().map(|attached| self.save_attached(&alone, attached));
        let all: Vec<Result<bool>> = [own].into_iter().chain(all).collect();
        all.into_iter().try_fold(false, |any, saved| Ok(any | saved?))
    }

    fn save_part(
        &self,
        alone: &Alone<'_>,
        database: &mut OpenDatabase,
        part: &DatabaseSchemas,
        functions: &BTreeMap<String, String>,
    ) -> Result<bool> {
        let (catalog, saved) = self.written(alone, database, part, functions)?;
        if catalog == database.catalog {
            return Ok(false);
        }
        let mut file = WholeFile::create(database.folder.join(CATALOG))?;
        file.write_all(catalog.as_bytes()).map_err(|error| Error::io(file.path(), error))?;
        file.finish()?;
        (database.catalog, database.saved) = (catalog, saved);
        database.remove_unnamed();
        Ok(true)
    }

    /// The folder of the database that is open.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// assert!(Session::builder().device(DeviceChoice::Cpu).build()?.database().is_none());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn database(&self) -> Option<PathBuf> {
        self.databases.open().as_ref().map(|database| database.folder.clone())
    }

    /// Names of tables and views that end with the session: they are in no file and in no database.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.execute("CREATE TABLE t (a INT)")?;
    /// assert_eq!(session.unsaved_tables()?, ["t"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn unsaved_tables(&self) -> Result<Vec<String>> {
        if self.databases.open().is_some() {
            return Ok(vec![]);
        }
        Ok(self
            .kept_tables(&DatabaseSchemas::Own)?
            .iter()
            .map(|name| name.table().to_string())
            .collect())
    }

    /// Tables of a database whose rows the session has.
    fn kept_tables(&self, part: &DatabaseSchemas) -> Result<Vec<TableReference>> {
        let mut kept = vec![];
        for (schema, table) in self.tables_of_part(part) {
            let name = TableReference::partial(schema, table);
            if self.view_text(&name)?.is_some() {
                continue;
            }
            let provider = self.provider_of(&name)?;
            if OfSession::of(provider.as_ref()).is_some_and(|table| table.is_kept()) {
                kept.push(name);
            }
        }
        Ok(kept)
    }

    /// Writes the tables that changed: the catalog that names their files, and what it then has.
    #[expect(clippy::type_complexity, reason = "the two parts of a database")]
    fn written(
        &self,
        _: &Alone<'_>,
        database: &mut OpenDatabase,
        part: &DatabaseSchemas,
        functions: &BTreeMap<String, String>,
    ) -> Result<(String, HashMap<String, (Arc<dyn TableProvider>, String)>)> {
        let mut saved = HashMap::new();
        let mut statements = vec![format!("{FIRST_LINE}\n")];
        statements.extend(self.schema_statements(part));
        for name in self.kept_tables(part)? {
            let whole = whole_name(&part.name_in_catalog(&name));
            let provider = self.provider_of(&name)?;
            let same = database.saved.get(&whole).filter(|(was, _)| Arc::ptr_eq(was, &provider));
            let file = match same {
                Some((_, file)) => file.clone(),
                None => {
                    let file = format!("{}_{}.parquet", database.next, plain_name(name.table()));
                    database.next += 1;
                    let format = WriteFormat::Parquet(ParquetWriteOptions::default());
                    self.rows_of(&name)?.write(database.folder.join(&file), &format)?;
                    file
                }
            };
            statements.push(format!("CREATE TABLE {whole} AS FROM '{file}';\n"));
            statements.extend(self.constraints_of(&name).statements(&whole));
            saved.insert(whole, (provider, file));
        }
        statements.extend(functions.values().map(|text| format!("{text};\n")));
        statements.extend(self.view_statements(part)?);
        Ok((statements.concat(), saved))
    }
}

impl OpenDatabase {
    /// Removes files of tables that the catalog does not name.
    fn remove_unnamed(&self) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_named = self.saved.values().any(|(_, file)| *file == name);
            if number_of(&name).is_some() && !is_named {
                // It does no harm but that it takes room.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// The number that a table's file begins with.
fn number_of(file: &str) -> Option<u64> {
    file.strip_suffix(".parquet")?.split_once('_')?.0.parse().ok()
}

/// The lock of a database's folder, which is made if it is not there.
fn locked(folder: &Path) -> Result<File> {
    let io = |error| Error::io(folder, error);
    let refused = |message: &str| -> Error {
        ErrorKind::File { path: folder.into(), message: message.into() }.into()
    };
    match folder.metadata() {
        Ok(found) if !found.is_dir() => {
            return Err(refused("it is a file: a database is a folder"));
        }
        Ok(_) => {
            let is_empty = std::fs::read_dir(folder).map_err(io)?.next().is_none();
            if !is_empty && !folder.join(LOCK).exists() {
                return Err(refused("it is no database: it has other files"));
            }
        }
        Err(_) => std::fs::create_dir_all(folder).map_err(io)?,
    }
    let lock = File::options().create(true).truncate(false).write(true).open(folder.join(LOCK));
    let lock = lock.map_err(io)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(refused("another process has this database open")),
        Err(TryLockError::Error(error)) => Err(io(error)),
    }
}
