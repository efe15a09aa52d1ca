//! Files that SQL names: `FROM 'jets.csv'`, `FROM read_csv('jets.txt', delim => ';')`.
//!
//! Before a statement is planned, such names give way to those of tables in the schema [`SCHEMA`].
//! It has one table for paths, format and options: a file that is named again, in this query or a
//! later one, is the same table. So its columns stay in device memory, and plans over it are found
//! again by their text. Of tables that no frame holds, those used last stay.
//!
//! | file | what |
//! |---|---|
//! | `names` | where a statement names files |
//! | `options` | options by name |
//! | `external` | `CREATE EXTERNAL TABLE` |

mod column_types;
mod external;
mod names;
mod options;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::TableReference;
use parking_lot::{Mutex, MutexGuard};

pub(super) use self::names::{opened, path_arguments};

use super::tables::table_of_files;
use crate::error::{Error, ErrorKind, Permission, Result};
use crate::io::{Files, Format, SourceTable};
use crate::query::Core;

/// The schema of the tables that files are.
pub(super) const SCHEMA: &str = "files";
/// Most tables that stay without a frame that holds them.
const MOST: usize = 64;

/// Tables by paths, format and options.
#[derive(Debug)]
pub(super) struct NamedFiles {
    kept: Mutex<Kept>,
    /// Whether statements may name files.
    allowed: bool,
}

#[derive(Debug, Default)]
struct Kept {
    /// Used last at the end.
    files: Vec<NamedFile>,
    /// No two have one name, whenever they were opened: kept plans know files by name.
    named: u64,
}

#[derive(Debug, Clone)]
struct NamedFile {
    name: String,
    /// Whatever the working directory is.
    paths: Vec<PathBuf>,
    /// As the first query had them.
    spelled: Vec<PathBuf>,
    format: Format,
    table: Arc<SourceTable>,
}

impl NamedFiles {
    pub(super) fn new(allowed: bool) -> NamedFiles {
        NamedFiles { kept: Mutex::default(), allowed }
    }

    /// # Errors
    /// [`ErrorKind::Forbidden`] of what a statement does with files, where it may not.
    pub(super) fn allow(&self, what: impl Into<String>) -> Result<()> {
        match self.allowed {
            true => Ok(()),
            false => {
                Err(ErrorKind::Forbidden { what: what.into(), needs: Permission::Files }.into())
            }
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock()
    }

    /// Whether a table is of files that are still those that were read last; of other schemas all
    /// are.
    pub(super) fn is_current(&self, table: &TableReference) -> bool {
        if table.schema() != Some(SCHEMA) {
            return true;
        }
        let found = self.kept().used(|named| named.name == table.table());
        found.is_some_and(|named| matches!(named.table.known(), Ok(Some(_))))
    }

    /// The table of files, and its name in the schema.
    ///
    /// # Errors
    /// Files that are missing or cannot be read as this format.
    async fn open(
        &self,
        core: &Core,
        spelled: &[PathBuf],
        format: &Format,
    ) -> Result<(String, Arc<SourceTable>)> {
        let paths = whole(spelled)?;
        let known = self.kept().used(|named| named.paths == paths && named.format == *format);
        // The table looks for its files by the first spelling, which another working directory
        // makes another path. Files that have other columns by now are another table.
        if let Some(named) = known
            && whole(&named.spelled).is_ok_and(|of_spelled| of_spelled == paths)
            && named.table.current(&core.state()).await.is_ok()
        {
            return Ok((named.name, named.table));
        }
        let table = table_of_files(core, Files::of(spelled, format.clone())?).await?;
        Ok((self.kept().insert(paths, spelled, format, &table), table))
    }

    /// Forgets those used least recently. Called while the next ones are not opened yet: a
    /// statement's files are all there when it is planned.
    fn forget(&self) {
        let mut kept = self.kept();
        let mut left = kept.files.len();
        kept.files.retain(|named| {
            let stays = left <= MOST || Arc::strong_count(&named.table) > 1;
            left -= usize::from(!stays);
            stays
        });
    }
}

impl Kept {
    /// A table, which becomes the one used last.
    fn used(&mut self, is_it: impl Fn(&NamedFile) -> bool) -> Option<NamedFile> {
        let named = self.files.remove(self.files.iter().position(is_it)?);
        self.files.push(named.clone());
        Some(named)
    }

    /// Puts a table in the place of what there was of its paths, format and options; its name.
    fn insert(
        &mut self,
        paths: Vec<PathBuf>,
        spelled: &[PathBuf],
        format: &Format,
        table: &Arc<SourceTable>,
    ) -> String {
        let before =
            self.files.iter().position(|named| named.paths == paths && named.format == *format);
        let name = match before {
            Some(at) => self.files.remove(at).name,
            None => {
                self.named += 1;
                let first = spelled.first().map_or(Path::new(""), PathBuf::as_path);
                format!("{} ({})", first.display(), self.named)
            }
        };
        let (name_of, spelled) = (name.clone(), spelled.to_vec());
        self.files.push(NamedFile {
            name: name_of,
            paths,
            spelled,
            format: format.clone(),
            table: table.clone(),
        });
        name
    }
}

/// Paths from the root on, without links where they are no patterns.
fn whole(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let whole = |path: &PathBuf| match path.canonicalize() {
        Ok(path) => Ok(path),
        Err(_) => std::path::absolute(path).map_err(|error| Error::io(path, error)),
    };
    paths.iter().map(whole).collect()
}

#[async_trait]
impl SchemaProvider for NamedFiles {
    fn table_names(&self) -> Vec<String> {
        self.kept().files.iter().map(|named| named.name.clone()).collect()
    }

    async fn table(&self, name: &str) -> datafusion::error::Result<Option<Arc<dyn TableProvider>>> {
        let kept = self.kept();
        let found = kept.files.iter().find(|named| named.name == name);
        Ok(found.map(|named| named.table.clone() as Arc<dyn TableProvider>))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.kept().files.iter().any(|named| named.name == name)
    }
}
