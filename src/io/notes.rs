//! What a session tells of files and rows that are left out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use datafusion::catalog::Session;
use datafusion::prelude::SessionConfig;
use parking_lot::Mutex;

use super::path_columns::PathColumns;
use crate::error::{Error, ErrorKind, Result, path_text};

/// Notes of a session, since somebody asked: the first ones, each once. They lie in its
/// configuration, which whoever reads files has at hand.
#[derive(Debug, Default)]
pub(crate) struct FileNotes {
    files: Mutex<Vec<String>>,
    /// By what the rows are of: what each scan of them left out.
    rows: Mutex<BTreeMap<String, Vec<Arc<AtomicU64>>>>,
}

impl FileNotes {
    const MOST: usize = 100;

    pub(crate) fn of(config: &SessionConfig) -> Option<Arc<FileNotes>> {
        config.get_extension()
    }

    fn add(&self, sentence: String) {
        let mut kept = self.files.lock();
        if kept.len() < Self::MOST && !kept.contains(&sentence) {
            kept.push(sentence);
        }
    }

    /// Tells of a counter of the rows that a scan leaves out.
    pub(super) fn watch(&self, named: &str, counter: &Arc<AtomicU64>) {
        let mut rows = self.rows.lock();
        let scans = rows.entry(named.to_string()).or_default();
        if !scans.iter().any(|known| Arc::ptr_eq(known, counter)) {
            scans.push(counter.clone());
        }
    }

    /// All notes, a sentence each.
    pub(crate) fn take(&self) -> Vec<String> {
        let mut notes = std::mem::take(&mut *self.files.lock());
        for (named, scans) in std::mem::take(&mut *self.rows.lock()) {
            // Several scans leave out the same rows.
            match scans.iter().map(|scan| scan.load(Relaxed)).max() {
                None | Some(0) => {}
                Some(1) => notes.push(format!("1 row of {named} is left out")),
                Some(rows) => notes.push(format!("{rows} rows of {named} are left out")),
            }
        }
        notes
    }
}

/// The files of a table that are left out, and why; and how many rows of others, as far as that is
/// known before a scan.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    files: Vec<(PathBuf, Error)>,
    rows: u64,
}

impl LeftOut {
    /// A file without a byte.
    pub(super) fn empty(&mut self, path: &Path) {
        let kind = ErrorKind::File { path: path.into(), message: "is empty".into() };
        self.files.push((path.into(), kind.into()));
    }

    /// Rows of a file that is kept.
    pub(super) fn rows(&mut self, rows: u64) {
        self.rows += rows;
    }

    /// What was found of a file, or `None` where it is bad and bad files are left out.
    ///
    /// # Errors
    /// Those of the file where they are not left out, and those of the system.
    pub(super) fn unless_bad<T>(
        &mut self,
        path: &Path,
        found: Result<T>,
        bad_are_left_out: bool,
    ) -> Result<Option<T>> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(error)
                if bad_are_left_out
                    && matches!(error.kind(), ErrorKind::File { .. } | ErrorKind::Parse { .. }) =>
            {
                self.files.push((path.into(), error));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The files that are kept.
    ///
    /// # Errors
    /// That of the first file that is not, where none is kept.
    pub(super) fn others(
        &mut self,
        paths: &[PathBuf],
        of_paths: PathColumns,
        kept: &[usize],
    ) -> Result<(Vec<PathBuf>, PathColumns)> {
        if kept.len() == paths.len() {
            return Ok((paths.to_vec(), of_paths));
        }
        if kept.is_empty() {
            return Err(match self.files.is_empty() {
                false => self.files.swap_remove(0).1,
                true => Error::internal("no file is left, and none was left out"),
            });
        }
        let paths = kept.iter().map(|at| paths[*at].clone()).collect();
        Ok((paths, of_paths.of_files(kept)))
    }

    /// Tells the session of them.
    pub(super) fn tell(self, session: &dyn Session, named: &Path) {
        let Some(notes) = FileNotes::of(session.config()) else { return };
        let (count, named) = (self.files.len(), path_text(named));
        if self.rows > 0 {
            notes.watch(&named.to_string(), &Arc::new(AtomicU64::new(self.rows)));
        }
        let Some((_, error)) = self.files.first() else { return };
        notes.add(match count {
            1 => format!("1 file of {named} is left out: {error}"),
            _ => format!("{count} files of {named} are left out, the first one: {error}"),
        });
    }
}
