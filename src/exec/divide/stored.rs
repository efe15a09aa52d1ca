//! Rows of an intermediate result, in blocks: on the device, or on the host.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::DFSchemaRef;

use super::arrow;
use crate::column::{Column, Relation, Table};
use crate::device::Device;
use crate::error::Result;
use crate::io::DOWNLOAD_ROWS;

/// Blocks of rows of one schema, in their order.
#[derive(Debug, Clone)]
pub(super) struct StoredRows {
    pub(super) device: Device,
    pub(super) schema: DFSchemaRef,
    pub(super) blocks: Vec<StoredBlock>,
}

/// Some rows of [`StoredRows`].
#[derive(Debug, Clone)]
pub(super) enum StoredBlock {
    Device(Table),
    /// Rows, and the bytes that they take on the device.
    Host(RecordBatch, u64),
}

impl StoredBlock {
    pub(super) fn rows(&self) -> usize {
        match self {
            StoredBlock::Device(table) => table.rows,
            StoredBlock::Host(batch, _) => batch.num_rows(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            StoredBlock::Device(table) => table_bytes(table),
            StoredBlock::Host(_, bytes) => *bytes,
        }
    }

    /// The same on the host.
    pub(super) fn to_host(&self) -> Result<Vec<StoredBlock>> {
        match self {
            StoredBlock::Host(..) => Ok(vec![self.clone()]),
            StoredBlock::Device(table) => downloaded(table, table.rows.max(1)),
        }
    }

    pub(super) fn slice(&self, from: usize, rows: usize) -> StoredBlock {
        match self {
            StoredBlock::Device(table) => StoredBlock::Device(table.slice(from, rows)),
            StoredBlock::Host(batch, bytes) => {
                let share = *bytes as u128 * rows as u128 / batch.num_rows().max(1) as u128;
                StoredBlock::Host(batch.slice(from, rows), share as u64)
            }
        }
    }
}

/// A table's rows on the host, so many a block.
pub(super) fn downloaded(table: &Table, rows: usize) -> Result<Vec<StoredBlock>> {
    let bytes = table_bytes(table);
    table.device.count_spilled(bytes);
    let share = |rows: usize| (bytes as u128 * rows as u128 / table.rows.max(1) as u128) as u64;
    let batches = table.to_batches(rows)?;
    Ok(batches.into_iter().map(|batch| StoredBlock::Host(batch.clone(), share(batch.num_rows()))).collect())
}

impl StoredRows {
    pub(super) fn new(device: &Device, schema: &DFSchemaRef) -> StoredRows {
        StoredRows { device: device.clone(), schema: schema.clone(), blocks: vec![] }
    }

    pub(super) fn rows(&self) -> usize {
        self.blocks.iter().map(StoredBlock::rows).sum()
    }

    /// ByteCount that the rows take on the device.
    pub(super) fn bytes(&self) -> u64 {
        self.blocks.iter().map(StoredBlock::bytes).sum()
    }

    /// Rows from a place on, so many that they take about so many bytes; at least one.
    pub(super) fn some(&self, from: usize, bytes: u64) -> StoredRows {
        let (mut skip, mut room, mut blocks) = (from, bytes, vec![]);
        for block in &self.blocks {
            let rows = block.rows();
            if skip >= rows {
                skip -= rows;
                continue;
            }
            let each = (block.bytes() / rows as u64).max(1);
            let least = usize::from(blocks.is_empty());
            let wanted = ((room / each) as usize).max(least).min(rows - skip);
            if wanted > 0 {
                blocks.push(block.slice(skip, wanted));
            }
            room = room.saturating_sub(each * wanted as u64);
            if wanted < rows - skip {
                break;
            }
            skip = 0;
        }
        StoredRows { blocks, ..self.clone() }
    }

    /// All rows as one table on the device.
    pub(super) fn load(&self) -> Result<Table> {
        let schema = arrow(&self.schema);
        if let [StoredBlock::Device(table)] = self.blocks.as_slice() {
            return Ok(table.clone());
        }
        // Blocks on the host that follow each other come together.
        let (mut tables, mut waiting) = (vec![], vec![]);
        let upload = |waiting: &mut Vec<RecordBatch>, tables: &mut Vec<Table>| {
            if !waiting.is_empty() {
                tables.push(Table::from_batches(&self.device, schema.clone(), &std::mem::take(waiting))?);
            }
            Ok::<_, crate::Error>(())
        };
        for block in &self.blocks {
            match block {
                StoredBlock::Host(batch, bytes) => {
                    self.device.count_restored(*bytes);
                    waiting.push(batch.clone());
                }
                StoredBlock::Device(table) => {
                    upload(&mut waiting, &mut tables)?;
                    tables.push(table.clone());
                }
            }
        }
        upload(&mut waiting, &mut tables)?;
        match tables.len() {
            0 => Table::empty(&self.device, schema),
            1 => Ok(tables.remove(0)),
            _ => crate::exec::rows::concatenated(&tables),
        }
    }

    /// All rows as one table, if all lie on the device and there is room for the copy.
    pub(super) fn on_device(&self) -> Result<Option<Table>> {
        match self.blocks.iter().all(|block| matches!(block, StoredBlock::Device(_))) {
            true => match self.load() {
                Err(error) if super::is_out_of_memory(&error) => Ok(None),
                table => table.map(Some),
            },
            false => Ok(None),
        }
    }

    /// All rows as batches.
    pub(super) fn on_host(&self) -> Result<Vec<RecordBatch>> {
        let mut batches = vec![];
        for block in &self.blocks {
            match block {
                StoredBlock::Host(batch, _) => {
                    let starts = (0..batch.num_rows()).step_by(DOWNLOAD_ROWS);
                    batches.extend(starts.map(|at| batch.slice(at, DOWNLOAD_ROWS.min(batch.num_rows() - at))));
                }
                StoredBlock::Device(table) => batches.extend(table.to_batches(DOWNLOAD_ROWS)?),
            }
        }
        Ok(batches)
    }

    /// The rows with what stands in for an empty relation where there are none.
    pub(super) fn relation(&self) -> Result<Relation> {
        super::relation(&self.load()?)
    }
}

/// ByteCount that a table takes on the device; characters that others use, too, count whole.
pub(super) fn table_bytes(table: &Table) -> u64 {
    table.columns.iter().map(column_bytes).sum()
}

/// The same of a column.
pub(super) fn column_bytes(column: &Column) -> u64 {
    let rows = column.len as u64;
    let values = rows * column.width() as u64 + if column.validity.is_some() { rows } else { 0 };
    let held: u64 = column.characters.iter().map(|buffer| buffer.len() as u64).sum();
    let characters = match column.stats.longest {
        Some(longest) => held.min(rows * u64::from(longest)),
        None => held,
    };
    values + characters + column.children.iter().map(column_bytes).sum::<u64>()
}

/// Blocks of parts, each of which becomes rows of its own.
pub(super) fn parted(device: &Device, schema: &DFSchemaRef, parts: Vec<Vec<StoredBlock>>) -> Vec<Arc<StoredRows>> {
    let of = |blocks| Arc::new(StoredRows { blocks, ..StoredRows::new(device, schema) });
    parts.into_iter().map(of).collect()
}
