//! Rows of an intermediate result, in blocks: on the device, or on the host.

use std::sync::Arc;

use datafusion::common::DFSchemaRef;

use super::arrow;
use crate::column::{Column, Relation, SpilledRows, Table};
use crate::error::Result;
use warpframe_device::Device;

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
    Host(SpilledRows, u64),
}

impl StoredBlock {
    pub(super) fn rows(&self) -> usize {
        match self {
            StoredBlock::Device(table) => table.rows,
            StoredBlock::Host((_, rows), _) => rows.len(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            StoredBlock::Device(table) => table_bytes(table),
            StoredBlock::Host(_, bytes) => *bytes,
        }
    }

    /// The block's rows on the host: those on the device are downloaded.
    pub(super) fn to_host(&self) -> Result<Vec<StoredBlock>> {
        match self {
            StoredBlock::Host(..) => Ok(vec![self.clone()]),
            StoredBlock::Device(table) => Ok(vec![downloaded(table)?]),
        }
    }

    pub(super) fn slice(&self, from: usize, rows: usize) -> StoredBlock {
        match self {
            StoredBlock::Device(table) => StoredBlock::Device(table.slice(from, rows)),
            StoredBlock::Host((table, own), bytes) => {
                let share = *bytes as u128 * rows as u128 / own.len().max(1) as u128;
                let begin = own.start + from;
                StoredBlock::Host((table.clone(), begin..begin + rows), share as u64)
            }
        }
    }
}

/// A table's rows on the host.
pub(super) fn downloaded(table: &Table) -> Result<StoredBlock> {
    let bytes = table_bytes(table);
    table.device.count_spilled(bytes);
    Ok(StoredBlock::Host((Arc::new(table.spilled()?), 0..table.rows), bytes))
}

impl StoredRows {
    pub(super) fn new(device: &Device, schema: &DFSchemaRef) -> StoredRows {
        StoredRows { device: device.clone(), schema: schema.clone(), blocks: vec![] }
    }

    pub(super) fn rows(&self) -> usize {
        self.blocks.iter().map(StoredBlock::rows).sum()
    }

    /// Bytes that the rows take on the device.
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

    /// The rows before a place, so many that they take about so many bytes; at least one.
    pub(super) fn some_before(&self, to: usize, bytes: u64) -> StoredRows {
        let (mut at, mut room, mut rows) = (self.rows(), bytes, 0);
        for block in self.blocks.iter().rev() {
            at -= block.rows();
            let of_block = block.rows().min(to.saturating_sub(at));
            if of_block == 0 {
                continue;
            }
            let each = (block.bytes() / block.rows() as u64).max(1);
            let wanted = ((room / each) as usize).max(usize::from(rows == 0)).min(of_block);
            rows += wanted;
            room = room.saturating_sub(each * wanted as u64);
            if wanted < of_block {
                break;
            }
        }
        self.range(to - rows, rows)
    }

    /// So many rows from a place on, or as many as there are.
    pub(super) fn range(&self, from: usize, rows: usize) -> StoredRows {
        let (mut skip, mut wanted, mut blocks) = (from, rows, vec![]);
        for block in &self.blocks {
            let of_block = block.rows().saturating_sub(skip).min(wanted);
            if of_block > 0 {
                blocks.push(block.slice(skip, of_block));
            }
            skip = skip.saturating_sub(block.rows());
            wanted -= of_block;
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
        for block in &self.blocks {
            match block {
                StoredBlock::Host(rows, bytes) => {
                    self.device.count_restored(*bytes);
                    waiting.push(rows.clone());
                }
                StoredBlock::Device(table) => {
                    tables.extend(Table::restored(
                        &self.device,
                        &schema,
                        &std::mem::take(&mut waiting),
                    )?);
                    tables.push(table.clone());
                }
            }
        }
        tables.extend(Table::restored(&self.device, &schema, &waiting)?);
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
                Err(error) if error.is_out_of_device_memory() => Ok(None),
                table => table.map(Some),
            },
            false => Ok(None),
        }
    }

    /// The rows with what stands in for an empty relation where there are none.
    pub(super) fn relation(&self) -> Result<Relation> {
        super::relation(&self.load()?)
    }
}

/// Bytes that a table takes on the device; characters that others use, too, count whole.
pub(super) fn table_bytes(table: &Table) -> u64 {
    table.columns.iter().map(column_bytes).sum()
}

/// Bytes that a column takes on the device with its fields; characters that others use, too, count
/// whole.
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
pub(super) fn parted(
    device: &Device,
    schema: &DFSchemaRef,
    parts: Vec<Vec<StoredBlock>>,
) -> Vec<Arc<StoredRows>> {
    let of = |blocks| Arc::new(StoredRows { blocks, ..StoredRows::new(device, schema) });
    parts.into_iter().map(of).collect()
}
