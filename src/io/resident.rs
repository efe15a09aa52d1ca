//! Columns of a table that stay in device memory for later queries, until others want the room: of
//! all its files, and of some of them. All are of one version of the table, and on one device.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};

use crate::column::{Column, Facts, Relation};
use crate::error::Result;
use warpframe_device::{HeldPiece, Holder, PieceKind, Sharers};

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
    /// Whether the device knows of the holder.
    is_known: bool,
}

#[derive(Debug, Default)]
struct HeldColumns {
    rows: Option<u64>,
    /// By index in the table's schema.
    columns: HashMap<usize, ResidentColumn>,
    /// Of columns that went: estimates, and the joins that follow from them, stay as they were.
    facts: HashMap<usize, Facts>,
}

#[derive(Debug)]
struct ResidentColumn {
    column: Column,
    /// When a query asked for it last, by [`warpframe_device::Device::tick`].
    used: u64,
}

/// Added to the index of a column of some of the files, for the number of its piece.
const OF_PART: usize = 1 << 32;

impl HeldColumns {
    /// Each of the columns that is here.
    fn columns(&mut self, columns: &[usize]) -> Vec<Option<Column>> {
        let mut tick = None;
        let mut of = |at: &usize| {
            let ResidentColumn { column, used } = self.columns.get_mut(at)?;
            *used = *tick.get_or_insert_with(|| column.data.device().tick());
            Some(column.clone())
        };
        columns.iter().map(&mut of).collect()
    }

    /// Columns, as far as all of them are here.
    fn relation(&mut self, columns: &[usize]) -> Result<Option<Relation>> {
        let Some(rows) = self.rows else { return Ok(None) };
        let columns: Option<Vec<_>> = self.columns(columns).into_iter().collect();
        columns.map(|columns| Relation::dense(rows, columns)).transpose()
    }

    fn facts(&self, at: usize) -> Option<Facts> {
        let resident = self.columns.get(&at).map(|resident| Facts::of(&resident.column));
        resident.or_else(|| self.facts.get(&at).copied())
    }

    fn pieces(&self, from: usize) -> impl Iterator<Item = HeldPiece> {
        self.columns.iter().map(move |(number, resident)| HeldPiece {
            kind: PieceKind::Cached,
            number: from + *number,
            used: resident.used,
            buffers: resident.column.held_buffers(),
        })
    }

    /// Takes a column out that nobody else uses.
    fn let_go(&mut self, at: usize, holders: &Sharers) -> Option<ResidentColumn> {
        let idle = |resident: &ResidentColumn| holders.are_idle(&resident.column.held_buffers());
        self.columns.get(&at).filter(|resident| idle(resident))?;
        let gone = self.columns.remove(&at)?;
        self.facts.insert(at, Facts::of(&gone.column));
        Some(gone)
    }
}

impl ResidentColumns {
    /// Whether its device can do nothing any more.
    fn is_lost(&self) -> bool {
        let parts = self.part.iter().map(|(_, part)| part);
        let mut columns = parts.chain([&self.whole]).flat_map(|held| held.columns.values());
        columns.next().is_some_and(|resident| resident.column.data.device().is_lost())
    }

    /// Of all files, or of these.
    fn of(&mut self, files: Option<&[usize]>) -> Option<&mut HeldColumns> {
        match files {
            None => Some(&mut self.whole),
            Some(files) => self.part.as_mut().filter(|(of, _)| of == files).map(|(_, held)| held),
        }
    }

    /// The columns of all files, or of these, which take the place of those of other files.
    fn of_now(&mut self, files: Option<&[usize]>) -> &mut HeldColumns {
        let Some(files) = files else { return &mut self.whole };
        if self.part.as_ref().is_some_and(|(of, _)| of != files) {
            self.part = None;
        }
        &mut self.part.get_or_insert_with(|| (files.to_vec(), HeldColumns::default())).1
    }
}

impl Resident {
    fn held(&self) -> MutexGuard<'_, ResidentColumns> {
        self.0.lock()
    }

    /// What is held, unless somebody has the lock: who asks may be inside an allocation of that
    /// thread.
    fn held_unless_locked(&self) -> Option<MutexGuard<'_, ResidentColumns>> {
        self.0.try_lock()
    }

    /// What is held, where that is of a version; what there was of an earlier one is let go, and
    /// what lay on a device that is lost.
    fn of_version(&self, number: u64) -> Option<MutexGuard<'_, ResidentColumns>> {
        let mut held = self.held();
        if held.is_lost() {
            *held = ResidentColumns { of: held.of, ..ResidentColumns::default() };
        }
        if held.of < number {
            *held = ResidentColumns {
                of: number,
                is_known: held.is_known,
                ..ResidentColumns::default()
            };
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
        let Some(mut held) = self.of_version(version) else { return Ok(None) };
        match (held.whole.relation(columns)?, held.of(files)) {
            (None, Some(held)) => held.relation(columns),
            (whole, _) => Ok(whole),
        }
    }

    /// Each of the columns of a version, of all files or of these, that is here.
    pub(super) fn columns(
        &self,
        version: u64,
        files: Option<&[usize]>,
        columns: &[usize],
    ) -> Vec<Option<Column>> {
        let mut held = self.of_version(version);
        match held.as_mut().and_then(|held| held.of(files)) {
            Some(held) => held.columns(columns),
            None => vec![None; columns.len()],
        }
    }

    /// Keeps columns of a version, of all files or of these, in place of those of other ones; in
    /// vain where a later version is held already.
    ///
    /// # Errors
    /// The number of rows that other columns have.
    pub(super) fn keep(
        self: &Arc<Self>,
        version: u64,
        files: Option<&[usize]>,
        rows: u64,
        columns: Vec<(usize, Column)>,
    ) -> Result<(), u64> {
        let Some(mut resident) = self.of_version(version) else { return Ok(()) };
        let held = resident.of_now(files);
        if let Some(known) = held.rows.filter(|known| *known != rows) {
            return Err(known);
        }
        held.rows = Some(rows);
        let Some(device) = columns.first().map(|(_, column)| column.data.device().clone()) else {
            return Ok(());
        };
        let used = device.tick();
        for (at, column) in columns {
            held.facts.remove(&at);
            // Somebody else may have been faster: queries have that one.
            held.columns.entry(at).or_insert(ResidentColumn { column, used });
        }
        if !std::mem::replace(&mut resident.is_known, true) {
            let holder: Weak<Resident> = Arc::downgrade(self);
            device.hold(holder);
        }
        Ok(())
    }

    /// Rows of all files, as far as they are known, and what is known of columns that are or were
    /// held.
    pub(super) fn facts(&self, columns: &[usize]) -> (Option<u64>, Vec<Option<Facts>>) {
        let held = self.held();
        (held.whole.rows, columns.iter().map(|at| held.whole.facts(*at)).collect())
    }
}

impl Holder for Resident {
    fn pieces(&self) -> Vec<HeldPiece> {
        let Some(held) = self.held_unless_locked() else { return vec![] };
        let part = held.part.iter().flat_map(|(_, part)| part.pieces(OF_PART));
        held.whole.pieces(0).chain(part).collect()
    }

    fn let_go(&self, number: usize, holders: &Sharers) -> warpframe_device::Result<bool> {
        let Some(mut held) = self.held_unless_locked() else { return Ok(false) };
        let gone = match (number.checked_sub(OF_PART), &mut held.part) {
            (None, _) => held.whole.let_go(number, holders),
            (Some(at), Some((_, part))) => part.let_go(at, holders),
            (Some(_), None) => None,
        };
        // Its memory is freed behind the lock.
        drop(held);
        Ok(gone.is_some())
    }
}
