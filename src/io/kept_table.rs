//! Tables that a user keeps: results, and tables made of them.
//!
//! Such a table lies in device memory until others want the room, then in host memory, and comes
//! back when a query asks for it. A table that a query reads stays where it is: the query has its
//! buffers.
//!
//! It moves as record batches. That is no matter of the allocator (`kernels/src/memory/room.rs` says when it
//! happens): strings are packed by a kernel that allocates where it can, and every column is copied
//! behind the work that was submitted before.

use std::sync::{Arc, Weak};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use parking_lot::{Mutex, MutexGuard};

use crate::column::{Facts, Table};
use crate::error::{ErrorKind, Result};
use warpframe_device::timeline::{Part, span};
use warpframe_device::{Device, HeldBuffer, HeldPiece, Holder, PieceKind, Sharers};

/// Rows in a host batch that a device table becomes: few batches, of a size that the CPU's
/// operators split cheaply.
pub(crate) const DOWNLOAD_ROWS: usize = 1 << 16;

/// A table of a device, in its memory or moved to the host's. Clones are one table.
#[derive(Debug, Clone)]
pub(crate) struct KeptTable(Arc<PlacedRows>);

/// A kept table that others keep, and may drop.
#[derive(Debug, Clone)]
pub(crate) struct WeakKeptTable(Weak<PlacedRows>);

impl WeakKeptTable {
    /// The table, unless it was dropped.
    pub(crate) fn table(&self) -> Option<KeptTable> {
        self.0.upgrade().map(KeptTable)
    }
}

#[derive(Debug)]
struct PlacedRows {
    device: Device,
    schema: SchemaRef,
    rows: usize,
    place: Mutex<KeptPlace>,
}

#[derive(Debug)]
enum KeptPlace {
    Device {
        table: Table,
        /// When it was asked for last, by [`Device::tick`].
        used: u64,
    },
    Host {
        batches: Arc<[RecordBatch]>,
        facts: Vec<Facts>,
    },
}

impl KeptTable {
    pub(crate) fn new(table: Table) -> KeptTable {
        let (device, schema, rows) = (table.device.clone(), table.schema.clone(), table.rows);
        let place = Mutex::new(KeptPlace::Device { table, used: device.tick() });
        let kept = Arc::new(PlacedRows { device, schema, rows, place });
        let holder: Weak<PlacedRows> = Arc::downgrade(&kept);
        kept.device.hold(holder);
        KeptTable(kept)
    }

    pub(crate) fn downgrade(&self) -> WeakKeptTable {
        WeakKeptTable(Arc::downgrade(&self.0))
    }

    pub(crate) fn device(&self) -> &Device {
        &self.0.device
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.0.schema
    }

    pub(crate) fn rows(&self) -> usize {
        self.0.rows
    }

    /// Whether it lies in device memory at this moment.
    pub(crate) fn is_on_device(&self) -> bool {
        matches!(&*self.0.place(), KeptPlace::Device { .. })
    }

    /// The table in device memory, where it stays as long as somebody has what this returns.
    ///
    /// # Errors
    /// [`crate::ErrorKind::OutOfDeviceMemory`], where it was moved and there is no room for it;
    /// [`crate::ErrorKind::DeviceUnavailable`], where the device is lost.
    pub(crate) fn table(&self) -> Result<Table> {
        let of = &*self.0;
        of.refuse_lost()?;
        let mut place = of.place();
        match &mut *place {
            KeptPlace::Device { table, used } => {
                *used = of.device.tick();
                Ok(table.clone())
            }
            KeptPlace::Host { batches, .. } => {
                let _span = span(Part::Read, || format!("{} rows that had made room", of.rows));
                let table = Table::from_batches(&of.device, of.schema.clone(), batches)?;
                of.device.count_moved_back();
                *place = KeptPlace::Device { table: table.clone(), used: of.device.tick() };
                Ok(table)
            }
        }
    }

    /// The table in device memory. Who had the only clone has its buffers alone, as far as these
    /// are no others' too.
    ///
    /// # Errors
    /// As of [`KeptTable::table`].
    pub(crate) fn into_table(self) -> Result<Table> {
        let table = self.table()?;
        drop(self);
        Ok(table)
    }

    /// The rows as record batches, from where they lie.
    ///
    /// # Errors
    /// Of the device.
    pub(crate) fn to_batches(&self) -> Result<Vec<RecordBatch>> {
        match self.rows_here() {
            RowsHere::Device(table) => {
                self.0.refuse_lost()?;
                table.to_batches(DOWNLOAD_ROWS)
            }
            RowsHere::Host(batches) => Ok(batches.to_vec()),
        }
    }

    /// The rows where they lie. What was moved does not come back for it.
    pub(crate) fn rows_here(&self) -> RowsHere {
        match &*self.0.place() {
            KeptPlace::Device { table, .. } => RowsHere::Device(table.clone()),
            KeptPlace::Host { batches, .. } => RowsHere::Host(batches.clone()),
        }
    }

    /// What is known of a column.
    pub(crate) fn facts(&self, column: usize) -> Facts {
        match &*self.0.place() {
            KeptPlace::Device { table, .. } => Facts::of(&table.columns[column]),
            KeptPlace::Host { facts, .. } => facts[column],
        }
    }
}

/// Rows of a kept table.
#[derive(Debug)]
pub(crate) enum RowsHere {
    Device(Table),
    Host(Arc<[RecordBatch]>),
}

impl PlacedRows {
    /// Rows that lay on a device that is lost are gone.
    fn refuse_lost(&self) -> Result<()> {
        if !self.device.is_lost() || matches!(*self.place(), KeptPlace::Host { .. }) {
            return Ok(());
        }
        let device = self.device.properties().name.clone();
        let why = "it is lost, and rows of a table or frame lay there: make these anew".into();
        Err(ErrorKind::DeviceUnavailable { device, why }.into())
    }

    fn place(&self) -> MutexGuard<'_, KeptPlace> {
        self.place.lock()
    }

    /// The place, unless somebody has it: who asks may be inside an allocation of that thread.
    fn place_unless_locked(&self) -> Option<MutexGuard<'_, KeptPlace>> {
        self.place.try_lock()
    }
}

fn buffers(table: &Table) -> Vec<HeldBuffer> {
    table.columns.iter().flat_map(|column| column.held_buffers()).collect()
}

impl Holder for PlacedRows {
    fn pieces(&self) -> Vec<HeldPiece> {
        match self.place_unless_locked().as_deref() {
            Some(KeptPlace::Device { table, used }) if !table.columns.is_empty() => {
                vec![HeldPiece {
                    kind: PieceKind::Kept,
                    number: 0,
                    used: *used,
                    buffers: buffers(table),
                }]
            }
            _ => vec![],
        }
    }

    fn let_go(&self, _number: usize, holders: &Sharers) -> warpframe_device::Result<bool> {
        let Some(mut place) = self.place_unless_locked() else { return Ok(false) };
        let KeptPlace::Device { table, .. } = &*place else { return Ok(false) };
        if !holders.are_idle(&buffers(table)) {
            return Ok(false);
        }
        let batches = table.to_batches(DOWNLOAD_ROWS)?.into();
        let facts = table.columns.iter().map(Facts::of).collect();
        *place = KeptPlace::Host { batches, facts };
        Ok(true)
    }
}
