//! What takes the rows that parts yield. Where one fails it has taken nothing.

use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, UInt32Array};
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::common::DFSchemaRef;

use super::exchange::HashParts;
use super::run_over::run_over;
use super::stored::{StoredBlock, StoredRows, downloaded, parted, table_bytes};
use crate::column::{Column, Table};
use crate::error::Result;
use crate::exec::Engine;
use crate::exec::rows::{concatenated, evenly_spaced};
use crate::plan::DevicePlan;
use warpframe_device::Device;

/// Takes rows.
pub(super) trait RowSink: Send {
    /// # Errors
    /// Of the device.
    fn push(&mut self, table: Table) -> Result<()>;

    /// Moves to the host what it holds on the device; whether there was anything.
    ///
    /// # Errors
    /// Of the device.
    fn make_room(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Whether it wants no more rows.
    fn is_full(&self) -> bool {
        false
    }
}

/// Stores rows: on the device until they take too much there.
pub(super) struct RowStore {
    stored: StoredRows,
    on_device: u64,
    most: u64,
    /// First rows that are left out, and how many are wanted after these.
    skip: usize,
    wanted: usize,
}

impl RowStore {
    pub(super) fn new(engine: &Engine, schema: &DFSchemaRef, most: u64) -> RowStore {
        let stored = StoredRows::new(&engine.device, schema);
        RowStore { stored, on_device: 0, most, skip: 0, wanted: usize::MAX }
    }

    /// Stores these rows only.
    pub(super) fn limited(self, skip: usize, wanted: usize) -> RowStore {
        RowStore { skip, wanted, ..self }
    }

    pub(super) fn finish(self) -> StoredRows {
        self.stored
    }
}

impl RowSink for RowStore {
    fn push(&mut self, table: Table) -> Result<()> {
        let skipped = self.skip.min(table.rows);
        let table = table.slice(skipped, self.wanted);
        let rows = table.rows;
        if rows > 0 {
            let table = compact(table)?;
            let bytes = table_bytes(&table);
            if self.on_device + bytes <= self.most {
                self.on_device += bytes;
                self.stored.blocks.push(StoredBlock::Device(table.clone()));
            } else {
                let last = downloaded(&table)?;
                self.make_room()?;
                self.stored.blocks.push(last);
                self.most = 0;
            }
        }
        self.skip -= skipped;
        self.wanted -= rows;
        Ok(())
    }

    fn make_room(&mut self) -> Result<bool> {
        if self.on_device == 0 {
            return Ok(false);
        }
        let moved =
            self.stored.blocks.iter().map(StoredBlock::to_host).collect::<Result<Vec<_>>>()?;
        self.stored.blocks = moved.into_iter().flatten().collect();
        (self.on_device, self.most) = (0, 0);
        Ok(true)
    }

    fn is_full(&self) -> bool {
        self.wanted == 0
    }
}

/// Bytes that are kept for the sake of a few of them without looking.
const SMALL: usize = 4096;

/// The table in memory of its own, where it holds much that is not its rows': room for rows that
/// did not come, other rows of which it is a slice, characters of other strings.
pub(super) fn compact(mut table: Table) -> Result<Table> {
    let device = table.device.clone();
    for column in &mut table.columns {
        match compact_column(&device, column) {
            Ok(Some(own)) => *column = own,
            Ok(None) => {}
            // Then it stays as it is.
            Err(error) if error.is_out_of_device_memory() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(table)
}

fn compact_column(device: &Device, column: &Column) -> Result<Option<Column>> {
    let mut own = None;
    let width = column.width();
    if column.data.len() > 2 * column.len * width + SMALL && column.children.is_empty() {
        let data = device.alloc(COMPACT, column.len * width)?;
        data.copy_from(0, &column.data, column.offset * width, column.len * width)?;
        let validity = match &column.validity {
            Some(validity) => {
                let valid = device.alloc(COMPACT, column.len)?;
                valid.copy_from(0, validity, column.offset, column.len)?;
                Some(Arc::new(valid))
            }
            None => None,
        };
        own = Some(Column { data: Arc::new(data), validity, offset: 0, ..column.clone() });
    }
    let column = own.as_ref().unwrap_or(column);
    let held: usize = column.characters.iter().map(|buffer| buffer.len()).sum();
    let plain = column.has_views() && column.offset == 0;
    let most =
        column.stats.longest.map_or(usize::MAX, |longest| longest as usize).min(16) * column.len;
    if plain && held > 2 * most + (SMALL << 8) {
        own = Some(column.clone().settled(device)?);
    }
    Ok(own)
}

/// Names this work in errors about device memory.
const COMPACT: &str = "compact";

/// Stores rows by a hash of their keys.
pub(super) struct Parted {
    engine: Engine,
    schema: DFSchemaRef,
    by: HashParts,
    blocks: Vec<Vec<StoredBlock>>,
}

impl Parted {
    pub(super) fn new(engine: &Engine, schema: &DFSchemaRef, by: HashParts) -> Parted {
        let blocks = vec![vec![]; by.parts as usize];
        Parted { engine: engine.clone(), schema: schema.clone(), by, blocks }
    }

    pub(super) fn finish(self) -> Vec<Arc<StoredRows>> {
        parted(&self.engine.device, &self.schema, self.blocks)
    }
}

impl RowSink for Parted {
    fn push(&mut self, table: Table) -> Result<()> {
        let (table, begins) = self.by.part(&self.engine.device, &self.schema, &table)?;
        scatter(&table, &begins, &mut self.blocks)
    }
}

/// Downloads a table, and adds each part of it to its blocks.
pub(super) fn scatter(
    table: &Table,
    begins: &[usize],
    blocks: &mut [Vec<StoredBlock>],
) -> Result<()> {
    if table.rows == 0 {
        return Ok(());
    }
    let whole = downloaded(table)?;
    for (bounds, blocks) in begins.windows(2).zip(blocks) {
        let rows = bounds[1] - bounds[0];
        if rows > 0 {
            blocks.push(whole.slice(bounds[0], rows));
        }
    }
    Ok(())
}

/// Merges partial results as they come; parts them by their keys where they are too many.
pub(super) struct Combining {
    engine: Engine,
    schema: DFSchemaRef,
    /// Makes one partial result of several.
    merge: Arc<DevicePlan>,
    /// How partial results are parted, if they can be.
    by: Option<HashParts>,
    partial: Vec<Table>,
    bytes: u64,
    /// Bytes from which on partial results are merged.
    most: u64,
    parted: Option<Parted>,
}

/// What [`Combining`] leaves.
pub(super) enum Combined {
    Together(StoredRows),
    Parted(Vec<Arc<StoredRows>>, HashParts),
}

/// Partial results that wait to be merged, at most.
const MOST_WAITING: usize = 64;

impl Combining {
    pub(super) fn new(
        engine: &Engine,
        schema: &DFSchemaRef,
        merge: Arc<DevicePlan>,
        by: Option<HashParts>,
        most: u64,
    ) -> Combining {
        let (engine, schema) = (engine.clone(), schema.clone());
        Combining { engine, schema, merge, by, partial: vec![], bytes: 0, most, parted: None }
    }

    /// # Errors
    /// Of the device.
    pub(super) fn finish(mut self) -> Result<Combined> {
        self.part(false)?;
        if let (Some(parted), Some(by)) = (self.parted.take(), self.by.clone()) {
            return Ok(Combined::Parted(parted.finish(), by));
        }
        let mut stored = StoredRows::new(&self.engine.device, &self.schema);
        stored.blocks = self.partial.into_iter().map(StoredBlock::Device).collect();
        Ok(Combined::Together(stored))
    }

    /// Makes one of the partial results that wait.
    fn merge(&mut self) -> Result<()> {
        let all = concatenated(&self.partial)?;
        let merged = compact(run_over(&self.engine, &self.merge, &[super::relation(&all)?])?)?;
        self.bytes = table_bytes(&merged);
        self.partial = vec![merged];
        Ok(())
    }

    /// Moves the partial results that wait to their parts, in smaller pieces where there is no
    /// memory for all of one at once. Whoever may have to give the last one back wants it moved
    /// whole.
    fn part(&mut self, last_whole: bool) -> Result<()> {
        let Some(parted) = &mut self.parted else { return Ok(()) };
        while let Some(first) = self.partial.first().cloned() {
            match parted.push(first.clone()) {
                Ok(()) => drop(self.partial.remove(0)),
                Err(error) if !error.is_out_of_device_memory() || first.rows < 2 => {
                    return Err(error);
                }
                Err(error) if last_whole && self.partial.len() == 1 => return Err(error),
                Err(_) => {
                    let half = first.rows / 2;
                    let halves = [first.slice(0, half), first.slice(half, first.rows - half)];
                    self.partial.splice(0..1, halves);
                }
            }
        }
        self.bytes = 0;
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        if self.parted.is_some() {
            return self.part(true);
        }
        if self.partial.len() < 2 || self.bytes <= self.most && self.partial.len() < MOST_WAITING {
            return Ok(());
        }
        match (self.merge(), self.by.clone()) {
            // Groups are many: each part of them is merged by itself.
            (Ok(()), Some(by)) if self.bytes > self.most / 2 => {
                self.parted = Some(Parted::new(&self.engine, &self.schema, by));
                // What finds no memory for that now waits, merged as it is.
                self.part(false).or_else(|error| {
                    if error.is_out_of_device_memory() { Ok(()) } else { Err(error) }
                })
            }
            (Err(error), Some(by)) if error.is_out_of_device_memory() => {
                self.parted = Some(Parted::new(&self.engine, &self.schema, by));
                self.part(true)
            }
            (merged, _) => merged,
        }
    }
}

impl RowSink for Combining {
    fn make_room(&mut self) -> Result<bool> {
        if let Some(parted) = &mut self.parted
            && parted.make_room()?
        {
            return Ok(true);
        }
        // The caller tries again after each true, so true is said only where fewer rows wait than
        // before.
        let waiting = |partial: &[Table]| partial.iter().map(|table| table.rows).sum::<usize>();
        let before = waiting(&self.partial);
        let made = match self.parted {
            Some(_) => self.part(false),
            None if self.partial.len() < 2 => Ok(()),
            None => self.merge(),
        };
        match made {
            Err(error) if !error.is_out_of_device_memory() => Err(error),
            _ => Ok(waiting(&self.partial) < before),
        }
    }

    fn push(&mut self, table: Table) -> Result<()> {
        if table.rows == 0 {
            return Ok(());
        }
        let table = compact(table)?;
        self.bytes += table_bytes(&table);
        self.partial.push(table);
        let settled = self.settle();
        if settled.is_err() {
            // The rows come again, in smaller pieces.
            self.partial.pop();
            self.bytes = self.partial.iter().map(table_bytes).sum();
        }
        settled
    }
}

/// Stores rows on the host, and some of them, evenly spaced, as a sample.
pub(super) struct Sampling {
    kept: RowStore,
    sample: Vec<RecordBatch>,
    /// Bytes that the sample takes on the device, about, and may take.
    bytes: u64,
    most: u64,
    /// Rows of it from each table.
    each: usize,
}

/// Rows of the sample from each table, while it is small.
const SAMPLED: usize = 512;

impl Sampling {
    /// With a sample of at most so many bytes.
    pub(super) fn new(kept: RowStore, most: u64) -> Sampling {
        Sampling { kept, sample: vec![], bytes: 0, most, each: SAMPLED }
    }

    /// Keeps every other row of the sample; whether there were several.
    fn halve(&mut self) -> Result<bool> {
        let Some(first) =
            self.sample.first().filter(|first| first.num_rows() > 1 || self.sample.len() > 1)
        else {
            return Ok(false);
        };
        let all = concat_batches(&first.schema(), &self.sample)?;
        let some = UInt32Array::from_iter_values((0..all.num_rows() as u32).step_by(2));
        self.sample = vec![take_record_batch(&all, &some)?];
        (self.bytes, self.each) = (self.bytes / 2, (self.each / 2).max(1));
        Ok(true)
    }

    pub(super) fn finish(self) -> (StoredRows, Vec<RecordBatch>) {
        (self.kept.finish(), self.sample)
    }
}

impl RowSink for Sampling {
    fn make_room(&mut self) -> Result<bool> {
        self.kept.make_room()
    }

    fn push(&mut self, table: Table) -> Result<()> {
        let some = compact(evenly_spaced(&table, self.each)?)?;
        let (bytes, some) = (table_bytes(&some), some.to_batches(SAMPLED)?);
        self.kept.push(table)?;
        self.sample.extend(some);
        self.bytes += bytes;
        while self.bytes > self.most && self.halve()? {}
        Ok(())
    }
}
