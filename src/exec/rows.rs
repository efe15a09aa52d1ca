//! What no plan expresses, because it is about the places of rows: rows by number, the order of a
//! sort, running sums.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::run::{Runner, anonymous, u32_column};
use crate::codegen::row_number::as_row_number;
use crate::codegen::{Codes, Flow, FlowSource, materialize};
use crate::column::{Column, Index, Relation, Repr, Stats, Table};
use crate::error::{Error, ErrorKind, Result};
use warpframe_device::Device;
use warpframe_device::ops::scan::{inclusive_sum_f64, inclusive_sum_i64};
use warpframe_device::ops::survey::{Measured, Scalar, Surveyed, survey};

/// Name of the column of row numbers that [`order`] makes.
pub(crate) const ROW: &str = "row";

/// The table's rows that `numbers` names, in that order; a null names a row of nulls. Waits for the
/// device where the numbers' range is not known to lie within the table.
///
/// # Errors
/// [`ErrorKind::RowNotFound`].
pub(crate) fn take(table: &Table, numbers: &Column) -> Result<Table> {
    let device = &table.device;
    check_range(device, numbers, table.rows)?;
    let rows = numbers.len as u64;
    let index = index_of(device, numbers)?;
    let schema = if index.gaps { nullable(&table.schema) } else { table.schema.clone() };
    let runner = Runner::of_columns(device);
    let relation = Relation::dense(table.rows as u64, table.columns.clone())?;
    let relation = runner.through(relation, rows, index)?;
    let (_, columns) = runner.dense("take", relation)?;
    Table::with_rows(device, schema, columns, rows as usize)
}

/// The rows of tables of one schema, one table after the other. Codes become the strings that they
/// stand for.
///
/// # Errors
/// Of the device.
pub(super) fn concatenated(tables: &[Table]) -> Result<Table> {
    let [first, _, ..] = tables else {
        return tables.first().cloned().ok_or_else(|| Error::internal("no tables to put together"));
    };
    let (device, schema) = (&first.device, first.schema.clone());
    let plain = tables.iter().map(without_codes).collect::<Result<Vec<_>>>()?;
    let rows = tables.iter().map(|table| table.rows).sum();
    let columns = (0..schema.fields().len()).map(|at| {
        let pieces: Vec<&Column> = plain.iter().map(|columns| &columns[at]).collect();
        Column::concatenated(device, &pieces[0].dtype, &pieces, rows)
    });
    Table::with_rows(device, schema.clone(), columns.collect::<Result<_>>()?, rows)
}

/// A table's columns, with strings instead of codes.
fn without_codes(table: &Table) -> Result<Vec<Column>> {
    let coded: Vec<usize> =
        (0..table.columns.len()).filter(|at| table.columns[*at].is_encoded()).collect();
    if coded.is_empty() {
        return Ok(table.columns.clone());
    }
    let some: Vec<Column> = coded.iter().map(|at| table.columns[*at].clone()).collect();
    let types: Vec<DataType> = some.iter().map(|column| column.dtype.clone()).collect();
    let relation = Relation::dense(table.rows as u64, some)?;
    let flow = Flow::new(FlowSource::Relation(relation), anonymous(&types)?);
    let (_, decoded) =
        materialize(&table.device, "concatenate", &flow, Codes::Decode, |generator, out| {
            (0..types.len()).map(|at| generator.column(at, out)).collect()
        })?;
    let mut columns = table.columns.clone();
    for (at, decoded) in coded.into_iter().zip(decoded) {
        let longest = columns[at].encoding.longest();
        let stats = Stats { longest: decoded.stats.longest.or(longest), ..decoded.stats };
        columns[at] = Column { stats, ..decoded };
    }
    Ok(columns)
}

/// Some rows of a table, evenly spaced, at most so many.
///
/// # Errors
/// Of the device.
pub(super) fn evenly_spaced(table: &Table, most: usize) -> Result<Table> {
    if table.rows <= most {
        return Ok(table.clone());
    }
    let number = |at: usize| (at as u64 * table.rows as u64 / most as u64) as u32;
    let bytes: Vec<u8> = (0..most).flat_map(|at| number(at).to_le_bytes()).collect();
    let numbers = u32_column(Arc::new(table.device.upload("sample", &bytes)?), 0, most as u64);
    let stats = Stats { range: Some((0, table.rows as i128 - 1)), ..Stats::default() };
    take(table, &Column { stats, ..numbers })
}

/// The numbers of the rows of the input of the sort that the plan ends in, in its order: a table of
/// one column.
pub(super) fn order(runner: &Runner) -> Result<Table> {
    let (numbers, rows) = runner.with_room(Runner::order)?;
    let range = rows.checked_sub(1).map(|last| (0, i128::from(last)));
    let stats = Stats { range, unique: true, ..Stats::default() };
    let column = Column { stats, ..u32_column(Arc::new(numbers), 0, rows) };
    let schema = Schema::new(vec![Field::new(ROW, DataType::UInt32, false)]);
    Table::with_rows(&runner.device, Arc::new(schema), vec![column], rows as usize)
}

/// Running sums of `values`, which are `Int64`, `UInt64` or `Float64` and 0 where `origin` is null;
/// null where it is. Integers wrap; floats are added in an order that positions alone decide.
pub(crate) fn running_sums(device: &Device, values: &Column, origin: &Column) -> Result<Column> {
    let (slice, rows) = (values.data.slice(values.offset * values.width()), values.len as u64);
    let sums = match values.repr() {
        Repr::F64 => inclusive_sum_f64(device, slice, rows)?,
        Repr::I64 | Repr::U64 => inclusive_sum_i64(device, slice, rows)?,
        _ => return Err(Error::unsupported("a running sum", format!("of {}", values.dtype))),
    };
    let validity = match &origin.validity {
        Some(shared) if origin.offset > 0 => {
            let own = device.alloc("scan", values.len)?;
            own.copy_from(0, shared, origin.offset, values.len)?;
            Some(Arc::new(own))
        }
        validity => validity.clone(),
    };
    Ok(Column::plain(values.dtype.clone(), values.len, Arc::new(sums), validity))
}

/// The schema with every column nullable.
pub(crate) fn nullable(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Fails where a number is not that of one of `rows` rows.
fn check_range(device: &Device, numbers: &Column, rows: usize) -> Result<()> {
    let outside = |range: (i128, i128)| match range {
        (least, _) if least < 0 => Some(least),
        (_, greatest) if greatest >= rows as i128 => Some(greatest),
        _ => None,
    };
    // What is known of the values need not be tight.
    if numbers.len == 0 || numbers.stats.range.is_some_and(|range| outside(range).is_none()) {
        return Ok(());
    }
    let scalar = match numbers.repr() {
        Repr::I8 => Scalar::I8,
        Repr::I16 => Scalar::I16,
        Repr::I32 => Scalar::I32,
        Repr::I64 => Scalar::I64,
        Repr::U8 => Scalar::U8,
        Repr::U16 => Scalar::U16,
        Repr::U32 => Scalar::U32,
        Repr::U64 => Scalar::U64,
        _ => return Err(Error::unsupported("row numbers", format!("of type {}", numbers.dtype))),
    };
    let column = Surveyed {
        scalar,
        values: &numbers.data,
        valid: numbers.validity.as_deref(),
        offset: numbers.offset as u64,
        rows: numbers.len as u64,
    };
    match survey(device, &[column])?[0].values {
        Some(Measured::Integers { least, greatest, .. }) => match outside((least, greatest)) {
            Some(row) => Err(ErrorKind::RowNotFound { row, rows: rows as u64 }.into()),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Row numbers as relations use them, of a column whose valid values are known to be row numbers.
fn index_of(device: &Device, numbers: &Column) -> Result<Index> {
    let gaps = numbers.validity.is_some();
    if numbers.repr() == Repr::U32 && !gaps {
        return Ok(Index {
            offset: numbers.offset as u64,
            gaps,
            ..Index::of_rows(numbers.data.clone())
        });
    }
    let relation = Relation::dense(numbers.len as u64, vec![numbers.clone()])?;
    let flow =
        Flow::new(FlowSource::Relation(relation), anonymous(std::slice::from_ref(&numbers.dtype))?);
    let (_, columns) = materialize(device, "take", &flow, Codes::Keep, |generator, out| {
        let number = generator.column(0, out)?;
        Ok(vec![as_row_number(&number, out)])
    })?;
    Ok(Index { gaps, ..Index::of_rows(columns[0].data.clone()) })
}
