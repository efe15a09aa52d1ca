//! Columns of a table that stay in device memory for later queries, until others want the room.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};

use crate::column::{Column, Facts};
use crate::device::{HeldPiece, Holder, PieceKind, Sharers};
use crate::error::Result;

/// Columns in device memory, all of one version of their table.
#[derive(Debug, Default)]
pub(super) struct Resident(Mutex<ResidentColumns>);

#[derive(Debug, Default)]
struct ResidentColumns {
    /// The version's number.
    of: u64,
    rows: Option<u64>,
    /// By index in the table's schema.
    columns: HashMap<usize, ResidentColumn>,
    /// Of columns that went: estimates, and the joins that follow from them, stay as they were.
    facts: HashMap<usize, Facts>,
    /// Whether the device knows of the holder.
    is_known: bool,
}

#[derive(Debug)]
struct ResidentColumn {
    column: Column,
    /// When a query asked for it last, by [`crate::device::Device::tick`].
    used: u64,
}

impl Resident {
    fn held(&self) -> MutexGuard<'_, ResidentColumns> {
        // Poisoning is ignored: what is held is valid between statements.
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// What is held, unless somebody has the lock: who asks may be inside an allocation of that
    /// thread.
    fn held_unless_locked(&self) -> Option<MutexGuard<'_, ResidentColumns>> {
        match self.0.try_lock() {
            Ok(held) => Some(held),
            Err(TryLockError::Poisoned(held)) => Some(held.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// What is held of a version; what there was of an earlier one is let go.
    fn of(&self, version: u64) -> MutexGuard<'_, ResidentColumns> {
        let mut held = self.held();
        if held.of < version {
            *held = ResidentColumns { of: version, is_known: held.is_known, ..ResidentColumns::default() };
        }
        held
    }

    /// The number of rows of a version, if it is known.
    pub(super) fn rows(&self, version: u64) -> Option<u64> {
        let held = self.of(version);
        held.rows.filter(|_| held.of == version)
    }

    /// Each of the columns that is held of a version.
    pub(super) fn columns(&self, version: u64, columns: &[usize]) -> Vec<Option<Column>> {
        let mut held = self.of(version);
        if held.of != version {
            return vec![None; columns.len()];
        }
        let mut tick = None;
        let mut of = |at: &usize| {
            let ResidentColumn { column, used } = held.columns.get_mut(at)?;
            *used = *tick.get_or_insert_with(|| column.data.device().tick());
            Some(column.clone())
        };
        columns.iter().map(&mut of).collect()
    }

    /// Keeps columns of a version; in vain where a later one is held.
    ///
    /// # Errors
    /// The number of rows that are known, where it is another.
    pub(super) fn keep(self: &Arc<Self>, version: u64, rows: u64, columns: Vec<(usize, Column)>) -> Result<(), u64> {
        let mut held = self.of(version);
        if held.of != version {
            return Ok(());
        }
        if let Some(known) = held.rows.filter(|known| *known != rows) {
            return Err(known);
        }
        held.rows = Some(rows);
        let Some(device) = columns.first().map(|(_, column)| column.data.device().clone()) else { return Ok(()) };
        let used = device.tick();
        for (at, column) in columns {
            held.facts.remove(&at);
            // Somebody else may have been faster: queries have that one.
            held.columns.entry(at).or_insert(ResidentColumn { column, used });
        }
        if !std::mem::replace(&mut held.is_known, true) {
            let holder: Weak<Resident> = Arc::downgrade(self);
            device.hold(holder);
        }
        Ok(())
    }

    /// Rows, and what is known of columns that are or were held.
    pub(super) fn facts(&self, columns: &[usize]) -> (Option<u64>, Vec<Option<Facts>>) {
        let held = self.held();
        let of = |at: &usize| {
            let resident = held.columns.get(at).map(|resident| Facts::of(&resident.column));
            resident.or_else(|| held.facts.get(at).copied())
        };
        (held.rows, columns.iter().map(of).collect())
    }
}

impl Holder for Resident {
    fn pieces(&self) -> Vec<HeldPiece> {
        let Some(held) = self.held_unless_locked() else { return vec![] };
        let piece = |(number, resident): (&usize, &ResidentColumn)| HeldPiece {
            kind: PieceKind::Cached,
            number: *number,
            used: resident.used,
            buffers: resident.column.held_buffers(),
        };
        held.columns.iter().map(piece).collect()
    }

    fn let_go(&self, number: usize, holders: &Sharers) -> Result<bool> {
        let Some(mut held) = self.held_unless_locked() else { return Ok(false) };
        let idle = |resident: &ResidentColumn| holders.are_idle(&resident.column.held_buffers());
        if !held.columns.get(&number).is_some_and(idle) {
            return Ok(false);
        }
        let gone = held.columns.remove(&number);
        if let Some(gone) = &gone {
            held.facts.insert(number, Facts::of(&gone.column));
        }
        // Its memory is freed behind the lock.
        drop(held);
        Ok(gone.is_some())
    }
}
