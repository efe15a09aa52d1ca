//! Columns of a table in device memory, all of one version: of all files, and of some of them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use crate::column::{Column, Facts, Relation};
use crate::error::Result;

/// What is held of a table.
#[derive(Debug, Default)]
pub(super) struct Resident(Mutex<ResidentColumns>);

#[derive(Debug, Default)]
struct ResidentColumns {
    /// The version's number.
    of: u64,
    whole: HeldColumns,
    /// Of some of the files: those that were asked for last.
    part: Option<(Vec<usize>, HeldColumns)>,
}

#[derive(Debug, Default)]
struct HeldColumns {
    rows: Option<u64>,
    /// By index in the table's schema.
    columns: HashMap<usize, Column>,
}

impl HeldColumns {
    /// Columns, as far as all of them are here.
    fn relation(&self, columns: &[usize]) -> Result<Option<Relation>> {
        let Some(rows) = self.rows else { return Ok(None) };
        let columns: Option<Vec<_>> = columns.iter().map(|at| self.columns.get(at).cloned()).collect();
        columns.map(|columns| Relation::dense(rows, columns)).transpose()
    }
}

impl ResidentColumns {
    /// Of all files, or of these.
    fn of(&self, files: Option<&[usize]>) -> Option<&HeldColumns> {
        match files {
            None => Some(&self.whole),
            Some(files) => self.part.as_ref().filter(|(of, _)| of == files).map(|(_, held)| held),
        }
    }

    fn of_mut(&mut self, files: Option<&[usize]>) -> &mut HeldColumns {
        let Some(files) = files else { return &mut self.whole };
        if self.part.as_ref().is_some_and(|(of, _)| of != files) {
            self.part = None;
        }
        &mut self.part.get_or_insert_with(|| (files.to_vec(), HeldColumns::default())).1
    }
}

impl Resident {
    fn lock(&self) -> MutexGuard<'_, ResidentColumns> {
        // Poisoning is ignored: what is held is valid between statements.
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// What is held, where that is of a version; what there was of an earlier one is let go.
    fn of_version(&self, number: u64) -> Option<MutexGuard<'_, ResidentColumns>> {
        let mut held = self.lock();
        if held.of < number {
            *held = ResidentColumns { of: number, ..ResidentColumns::default() };
        }
        (held.of == number).then_some(held)
    }

    /// Columns of a version, of all files or of these, as far as all of them are here.
    pub(super) fn relation(
        &self,
        version: u64,
        files: Option<&[usize]>,
        columns: &[usize],
    ) -> Result<Option<Relation>> {
        let Some(held) = self.of_version(version) else { return Ok(None) };
        match (held.whole.relation(columns)?, held.of(files)) {
            (None, Some(held)) => held.relation(columns),
            (whole, _) => Ok(whole),
        }
    }

    /// Those of the columns that are not here.
    pub(super) fn missing(&self, version: u64, files: Option<&[usize]>, columns: &[usize]) -> Vec<usize> {
        let held = self.of_version(version);
        let held = held.as_ref().and_then(|held| held.of(files));
        let is_here = |at: &usize| held.is_some_and(|held| held.columns.contains_key(at));
        columns.iter().copied().filter(|at| !is_here(at)).collect()
    }

    /// Keeps columns of a version, of all files or of these, in place of those of other ones; in vain where
    /// a later version is held already.
    ///
    /// # Errors
    /// The number of rows that other columns have.
    pub(super) fn keep(
        &self,
        version: u64,
        files: Option<&[usize]>,
        rows: u64,
        columns: Vec<(usize, Column)>,
    ) -> Result<(), u64> {
        let Some(mut held) = self.of_version(version) else { return Ok(()) };
        let held = held.of_mut(files);
        if let Some(known) = held.rows.filter(|known| *known != rows) {
            return Err(known);
        }
        held.rows = Some(rows);
        held.columns.extend(columns);
        Ok(())
    }

    /// Rows of all files, as far as they are known, and what is known of columns.
    pub(super) fn facts(&self, columns: &[usize]) -> (Option<u64>, Vec<Option<Facts>>) {
        let held = self.lock();
        (held.whole.rows, columns.iter().map(|at| held.whole.columns.get(at).map(Facts::of)).collect())
    }
}
