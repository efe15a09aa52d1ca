//! Rows parted by a hash of their keys, or by where these lie between cuts.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DFSchemaRef;
use datafusion::logical_expr::Expr;

use super::arrow;
use crate::codegen::{Emitter, Flow, FlowSource, Generator, Value, emit_part, emit_task, has_task};
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

/// How DataFusion's exchanges part rows among tasks, so that rows which they part on the host meet
/// those parted here.
#[derive(Debug, Clone)]
pub(crate) struct TaskParts {
    /// Places of the keys among the columns.
    keys: Vec<usize>,
    tasks: u32,
    /// The columns, as they are on the host.
    schema: SchemaRef,
}

impl TaskParts {
    /// `None` where a key is of a type that the device does not part as DataFusion does.
    pub(crate) fn new(keys: Vec<usize>, tasks: u32, schema: SchemaRef) -> Option<TaskParts> {
        let fields = schema.fields();
        let has = |at: &usize| fields.get(*at).is_some_and(|field| has_task(field.data_type()));
        let all = tasks > 0 && !keys.is_empty() && keys.iter().all(has);
        all.then_some(TaskParts { keys, tasks, schema })
    }

    /// As [`HashParts::part`].
    ///
    /// # Errors
    /// As [`HashParts::part`].
    pub(crate) fn part(
        &self,
        device: &Device,
        schema: &DFSchemaRef,
        table: &Table,
    ) -> Result<(Table, Vec<usize>)> {
        part_by(device, schema, table, self.tasks, |generator, out| {
            let key = |at: &usize| {
                let dtype = self.schema.field(*at).data_type().clone();
                Ok((generator.column(*at, out)?, dtype))
            };
            let keys = self.keys.iter().map(key).collect::<Result<Vec<_>>>()?;
            emit_task(&keys, self.tasks, &mut generator.params, out)
                .ok_or_else(|| Error::internal("keys of no task"))
        })
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
    use datafusion::arrow::array::{
        Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray,
    };
    use datafusion::arrow::compute::{CastOptions, cast_with_options};
    use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, TimeUnit};
    use datafusion::common::DFSchema;
    use datafusion::physical_expr::PhysicalExpr;
    use datafusion::physical_expr::expressions::Column;
    use datafusion::physical_plan::metrics::Time;
    use datafusion::physical_plan::repartition::BatchPartitioner;
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
        let columns: Vec<ArrayRef> = vec![
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

    /// Texts of every length that the hash tells apart, and of those beside them.
    fn texts(rows: usize) -> Vec<Option<String>> {
        let letter = |at: usize| char::from(b'a' + (at * at % 25) as u8);
        let text = |row: usize| (0..row % 400).map(|at| letter(at + row)).collect::<String>();
        (0..rows).map(|row| (row % 11 != 5).then(|| text(row))).collect()
    }

    /// A column of each type whose keys are parted so.
    fn keys(rows: usize) -> RecordBatch {
        let numbers = || (0..rows as i64).map(|row| (row % 7 != 3).then_some(row * row - 900));
        let (numbers, texts) = (Int64Array::from_iter(numbers()), StringArray::from(texts(rows)));
        let bytes: StringArray = texts.iter().map(|of| of.map(|of| &of[..of.len() / 3])).collect();
        let as_type = |of: &dyn Array, dtype: &DataType| {
            let options = CastOptions { safe: true, ..CastOptions::default() };
            let of = cast_with_options(of, dtype, &options).unwrap();
            (dtype.to_string(), of)
        };
        use DataType::*;
        let small = Int64Array::from_iter(numbers.iter().map(|of| of.map(|of| of % 100)));
        let mut columns: Vec<(String, ArrayRef)> = vec![];
        columns.extend([Boolean, Int8, UInt8].iter().map(|of| as_type(&small, of)));
        let wide = [Int16, Int32, Int64, UInt16, UInt32, UInt64, Decimal128(38, 12), Date32];
        columns.extend(wide.iter().map(|of| as_type(&numbers, of)));
        let times = [Timestamp(TimeUnit::Nanosecond, None), Timestamp(TimeUnit::Second, None)];
        columns.extend(times.iter().map(|of| as_type(&numbers, of)));
        columns.extend([Utf8, LargeUtf8, Utf8View].iter().map(|of| as_type(&texts, of)));
        columns.extend([Binary, LargeBinary, BinaryView].iter().map(|of| as_type(&bytes, of)));
        columns.push(("row".into(), Arc::new(Int64Array::from_iter_values(0..rows as i64))));
        RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, of)| (name, of, true)),
        )
        .unwrap()
    }

    /// The hash is DataFusion's own business, and may change with its version: then this fails.
    #[test]
    fn rows_have_the_tasks_that_datafusion_gives_them() {
        let device = Device::sim(SimOptions::default(), MemoryLimit::Bytes(1 << 30)).unwrap();
        let batch = keys(1300);
        let (schema, row) = (batch.schema(), batch.num_columns() - 1);
        let table =
            Table::from_batches(&device, schema.clone(), std::slice::from_ref(&batch)).unwrap();
        let of_plan = Arc::new(DFSchema::try_from(schema.as_ref().clone()).unwrap());
        let rows_of =
            |batch: &RecordBatch| batch.column(row).as_primitive::<Int64Type>().values().to_vec();
        let check = |keys: &[usize], tasks: u32| {
            let by = TaskParts::new(keys.to_vec(), tasks, schema.clone()).expect("keys");
            let (parted, begins) = by.part(&device, &of_plan, &table).unwrap();
            let found = begins.windows(2).map(|bounds| {
                let rows = parted.slice(bounds[0], bounds[1] - bounds[0]);
                rows.to_batches(1 << 20).unwrap().iter().flat_map(&rows_of).collect::<Vec<i64>>()
            });
            let columns = keys.iter().map(|at| -> Arc<dyn PhysicalExpr> {
                Arc::new(Column::new(schema.field(*at).name(), *at))
            });
            let columns = columns.collect();
            let mut theirs =
                BatchPartitioner::new_hash_partitioner(columns, tasks as usize, Time::new())
                    .unwrap();
            let mut expected = vec![vec![]; tasks as usize];
            let sorted = |task: usize, batch: RecordBatch| {
                expected[task].extend(rows_of(&batch));
                Ok(())
            };
            theirs.partition(batch.clone(), sorted).unwrap();
            let names: Vec<_> = keys.iter().map(|at| schema.field(*at).name()).collect();
            assert_eq!(found.collect::<Vec<_>>(), expected, "{names:?} of {tasks}");
        };
        (0..row).for_each(|at| check(&[at], 13));
        for second in 0..row {
            check(&[(second + 5) % row, second], 8);
        }
        check(&(0..row).collect::<Vec<_>>(), 1 << 16);
        check(&[0], 1);
    }

    #[test]
    fn keys_that_datafusion_hashes_in_other_ways_are_left_to_it() {
        for dtype in [DataType::Float64, DataType::Null, DataType::FixedSizeBinary(3)] {
            let schema = Arc::new(Schema::new(vec![Field::new("k", dtype, true)]));
            assert!(TaskParts::new(vec![0], 4, schema.clone()).is_none());
            assert!(TaskParts::new(vec![1], 4, schema).is_none());
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
