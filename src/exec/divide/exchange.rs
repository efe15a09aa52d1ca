//! Rows parted by a hash of their keys, or by where these lie between cuts.

use std::sync::Arc;

use datafusion::common::DFSchemaRef;
use datafusion::logical_expr::Expr;

use super::arrow;
use crate::codegen::{Emitter, Flow, FlowSource, Generator, Value, emit_part};
use crate::column::Table;
use crate::error::{Error, Result};
use crate::exec::run::Runner;
use crate::plan::{Cuts, task_by_cuts};
use warpframe_device::ops::gather::gather;
use warpframe_device::ops::segment::runs;
use warpframe_device::ops::sort::{KeyKind, SortKey, argsort_key};
use warpframe_device::{Buffer, Device, seeded_secret};

/// Names this work in errors about device memory.
const EXCHANGE: &str = "exchange";
/// Bytes of the number of a part.
const WIDTH: usize = 4;

/// How rows are parted. Rows of equal keys are of one part, in the order in which they came.
#[derive(Debug, Clone)]
pub(super) struct HashParts {
    pub(super) keys: Vec<Expr>,
    pub(super) parts: u32,
    /// Choose the hash: rows that came to one part are parted again by that of the next round.
    pub(super) round: u64,
    pub(super) seed: u64,
}

impl HashParts {
    /// The rows part by part, and where the parts begin; the last ends at the last place.
    ///
    /// # Errors
    /// Of the device; `Unsupported` for more than 2³² − 1 rows.
    pub(super) fn part(
        &self,
        device: &Device,
        schema: &DFSchemaRef,
        table: &Table,
    ) -> Result<(Table, Vec<usize>)> {
        let secret = seeded_secret(self.seed, self.round);
        part_by(device, schema, table, self.parts, |generator, out| {
            let keys =
                self.keys.iter().map(|key| generator.expr(key, out)).collect::<Result<Vec<_>>>()?;
            Ok(emit_part(&keys, secret, self.parts, &mut generator.params, out))
        })
    }
}

/// How rows are parted by where their keys lie between cuts. Rows of one part stay in the order in
/// which they came.
#[derive(Debug, Clone)]
pub(super) struct CutParts {
    pub(super) key: Expr,
    pub(super) cuts: Cuts,
}

impl CutParts {
    /// As [`HashParts::part`].
    ///
    /// # Errors
    /// As [`HashParts::part`].
    pub(super) fn part(
        &self,
        device: &Device,
        schema: &DFSchemaRef,
        table: &Table,
    ) -> Result<(Table, Vec<usize>)> {
        let number = task_by_cuts(&self.key, schema, &self.cuts)?;
        let parts = self.cuts.len() as u32 + 1;
        part_by(device, schema, table, parts, |generator, out| generator.expr(&number, out))
    }
}

/// The rows part by part, by the numbers of the parts.
fn part_by(
    device: &Device,
    schema: &DFSchemaRef,
    table: &Table,
    parts: u32,
    number: impl FnOnce(&mut Generator<'_>, &mut Emitter) -> Result<Value>,
) -> Result<(Table, Vec<usize>)> {
    let (rows, count) = (table.rows as u64, parts as usize);
    if rows == 0 {
        return Ok((table.clone(), vec![0; count + 1]));
    }
    let runner = Runner::of_columns(device);
    let flow = Flow::new(FlowSource::Relation(super::relation(table)?), schema.clone());
    let (mut relation, numbers) = runner
        .relation_with(EXCHANGE, &flow, |generator, out| Ok(vec![number(generator, out)?]))?;
    relation.columns.truncate(table.columns.len());
    let number = numbers.first().ok_or_else(|| Error::internal("rows have no part"))?;
    let number = number.data.slice(number.offset * WIDTH);
    let key = SortKey::new(number, KeyKind::U32, false).within(0, i128::from(parts) - 1);
    let order = argsort_key(device, &key, rows)?;
    let sorted = gather(device, WIDTH, number, &order, rows)?;
    let begins = begins(device, &sorted, rows, count)?;
    let relation = runner.reindexed(relation, rows, Arc::new(order))?;
    let (_, columns) = runner.dense(EXCHANGE, relation)?;
    Ok((Table::with_rows(device, arrow(schema), columns, table.rows)?, begins))
}

/// Where each part begins among sorted numbers of parts, and where the last ends.
fn begins(device: &Device, sorted: &Buffer, rows: u64, parts: usize) -> Result<Vec<usize>> {
    let (segments, numbers) = runs(device, sorted.slice(0), WIDTH, rows)?;
    let count = segments.count as usize;
    let (offsets, numbers) = (words(&segments.offsets, count + 1)?, words(&numbers, count)?);
    let mut begins = vec![0; parts + 1];
    for (number, bounds) in numbers.iter().zip(offsets.windows(2)) {
        begins[number + 1] = bounds[1] - bounds[0];
    }
    for part in 0..parts {
        begins[part + 1] += begins[part];
    }
    Ok(begins)
}

fn words(buffer: &Buffer, count: usize) -> Result<Vec<usize>> {
    let mut bytes = vec![0; count * WIDTH];
    buffer.read(0, &mut bytes)?;
    Ok(bytes
        .chunks_exact(WIDTH)
        .map(|word| u32::from_le_bytes(word.try_into().expect("4 bytes")) as usize)
        .collect())
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{AsArray, Int64Array, RecordBatch, StringArray};
    use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use datafusion::common::DFSchema;
    use datafusion::prelude::col;

    use super::*;
    use warpframe_device::{MemoryLimit, SimOptions};

    /// Rows of a key that may be null, a string that follows from it, and their numbers.
    fn table(device: &Device, rows: i64) -> (DFSchemaRef, Table) {
        let key = |row: i64| Some(row * row % 97).filter(|key| key % 10 != 3);
        let keys = Int64Array::from_iter((0..rows).map(key));
        let strings: StringArray = (0..rows)
            .map(|row| key(row).map(|key| format!("{} of many strings", key % 31)))
            .collect();
        let schema = Arc::new(Schema::new(vec![
            Field::new("k", DataType::Int64, true),
            Field::new("s", DataType::Utf8, true),
            Field::new("row", DataType::Int64, false),
        ]));
        let columns: Vec<datafusion::arrow::array::ArrayRef> = vec![
            Arc::new(keys),
            Arc::new(strings),
            Arc::new(Int64Array::from_iter_values(0..rows)),
        ];
        let batch = RecordBatch::try_new(schema.clone(), columns).unwrap();
        let table = Table::from_batches(device, schema.clone(), &[batch]).unwrap();
        (Arc::new(DFSchema::try_from(schema.as_ref().clone()).unwrap()), table)
    }

    #[test]
    fn rows_of_equal_keys_are_of_one_part_in_their_order() {
        let device = Device::sim(SimOptions::default(), MemoryLimit::Bytes(1 << 30)).unwrap();
        for (rows, parts, round) in
            [(0, 4, 0), (1, 4, 0), (3000, 1, 0), (3000, 7, 0), (3000, 64, 3)]
        {
            let (schema, table) = table(&device, rows);
            let by = HashParts { keys: vec![col("s"), col("k")], parts, round, seed: 7 };
            let (parted, begins) = by.part(&device, &schema, &table).unwrap();
            assert_eq!(
                (begins.len(), begins[0], begins[parts as usize]),
                (parts as usize + 1, 0, rows as usize)
            );
            let mut home = std::collections::HashMap::new();
            let mut seen = vec![];
            for (part, bounds) in begins.windows(2).enumerate() {
                let of_part =
                    parted.slice(bounds[0], bounds[1] - bounds[0]).to_batches(1 << 20).unwrap();
                for batch in of_part {
                    let numbers = batch.column(2).as_primitive::<Int64Type>().values().to_vec();
                    assert!(numbers.is_sorted(), "the order of rows");
                    for (key, number) in
                        batch.column(0).as_primitive::<Int64Type>().iter().zip(numbers)
                    {
                        assert_eq!(*home.entry(key).or_insert(part), part, "one key, two parts");
                        seen.push(number);
                    }
                }
            }
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..rows), "no row is lost");
            assert!(
                parts < 7 || rows == 0 || rows == 1 || home.values().max() > home.values().min()
            );
        }
    }

    #[test]
    fn rounds_part_differently() {
        let device = Device::sim(SimOptions::default(), MemoryLimit::Bytes(1 << 30)).unwrap();
        let (schema, table) = table(&device, 2000);
        let begins = |round| {
            let by = HashParts { keys: vec![col("k")], parts: 8, round, seed: 7 };
            by.part(&device, &schema, &table).unwrap().1
        };
        assert_ne!(begins(1), begins(2));
    }
}
