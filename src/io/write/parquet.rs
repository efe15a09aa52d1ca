//! Batches as Parquet: row groups of about a million rows, whose columns are encoded on all cores.

use std::io::Write;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, IntervalMonthDayNanoType, IntervalUnit, Schema, SchemaRef, TimeUnit,
};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, compute_leaves,
};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;

use super::in_order::in_order;
use super::intervals::{BYTES, INTERVAL, in_bytes, unwritten};
use crate::error::{Error, ErrorKind, Result};

/// The type in which a column is written: the format has no seconds, and keeps dates as days.
/// Dictionaries are their values: pages have dictionaries of their own, and pyarrow does not sort by
/// columns of that type.
fn written(dtype: &DataType) -> DataType {
    match dtype {
        DataType::Timestamp(TimeUnit::Second, zone) => {
            DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
        }
        DataType::Time32(TimeUnit::Second) => DataType::Time32(TimeUnit::Millisecond),
        DataType::Date64 => DataType::Date32,
        DataType::Dictionary(_, values) => written(values),
        other => with_parts(other, written),
    }
}

/// A type whose parts are of other types.
fn with_parts(dtype: &DataType, part: fn(&DataType) -> DataType) -> DataType {
    let within =
        |item: &FieldRef| Arc::new(Field::clone(item).with_data_type(part(item.data_type())));
    match dtype {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(within).collect()),
        DataType::List(item) => DataType::List(within(item)),
        DataType::LargeList(item) => DataType::LargeList(within(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(within(item), *size),
        DataType::Map(entries, sorted) => DataType::Map(within(entries), *sorted),
        other => other.clone(),
    }
}

/// What the file's Arrow schema calls a type. pyarrow keeps the types that it finds there, and can
/// neither filter, sort nor join by views.
fn noted(dtype: &DataType) -> DataType {
    match dtype {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        other => with_parts(other, noted),
    }
}

/// Whether there are intervals in a type. Within others they are neither written nor read.
fn has_intervals(dtype: &DataType) -> bool {
    match dtype {
        DataType::Interval(IntervalUnit::MonthDayNano) => true,
        DataType::Struct(fields) => fields.iter().any(|field| has_intervals(field.data_type())),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => has_intervals(item.data_type()),
        _ => false,
    }
}

/// An error whose file the caller names.
fn of_format(error: ParquetError) -> Error {
    ErrorKind::Plan { message: error.to_string(), location: None }.into()
}

/// A column of a row group.
struct ColumnOfGroup {
    field: FieldRef,
    /// Its rows, in parts.
    arrays: Vec<ArrayRef>,
    /// One a leaf.
    writers: Vec<ArrowColumnWriter>,
}

impl ColumnOfGroup {
    fn encode(mut self) -> Result<Vec<ArrowColumnChunk>> {
        for array in &self.arrays {
            let array = match array.as_primitive_opt::<IntervalMonthDayNanoType>() {
                Some(intervals) => Arc::new(in_bytes(self.field.name(), intervals)?),
                None => cast(array, self.field.data_type())?,
            };
            for (leaf, writer) in compute_leaves(&self.field, &array)
                .map_err(of_format)?
                .iter()
                .zip(&mut self.writers)
            {
                writer.write(leaf).map_err(of_format)?;
            }
        }
        self.writers.into_iter().map(|writer| writer.close().map_err(of_format)).collect()
    }
}

/// Writes rows as a Parquet file.
///
/// # Errors
/// Of the batches; types that the format does not have; of `out`.
pub(super) fn write(
    out: impl Write + Send,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    properties: WriterProperties,
    group_rows: usize,
) -> Result<()> {
    let within =
        |field: &&FieldRef| *field.data_type() != INTERVAL && has_intervals(field.data_type());
    if let Some(field) = schema.fields().iter().find(within) {
        return Err(unwritten(field.name(), field.data_type(), "intervals within a value"));
    }
    let with_types = |of: fn(&DataType) -> DataType| -> SchemaRef {
        let field = |field: &FieldRef| Field::clone(field).with_data_type(of(field.data_type()));
        Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
    };
    let noted = with_types(|dtype| noted(&written(dtype)));
    let schema = with_types(|dtype| if *dtype == INTERVAL { BYTES } else { written(dtype) });
    let (mut writer, factory) = ArrowWriter::try_new(out, noted, Some(properties))
        .map_err(of_format)?
        .into_serialized_writer()
        .map_err(of_format)?;
    // A row group's columns, one after the other.
    let columns = groups(batches, group_rows).enumerate().flat_map(|(number, group)| {
        let columns = || -> Result<Vec<ColumnOfGroup>> {
            let group = group?;
            let mut writers = factory.create_column_writers(number).map_err(of_format)?.into_iter();
            let column = |(at, field): (usize, &FieldRef)| {
                let arrays = group.iter().map(|batch| batch.column(at).clone()).collect();
                let writers = writers.by_ref().take(leaves(field.data_type())).collect();
                ColumnOfGroup { field: field.clone(), arrays, writers }
            };
            Ok(schema.fields().iter().enumerate().map(column).collect())
        };
        match columns() {
            Ok(columns) => columns.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        }
    });
    let mut encoded: Vec<Vec<ArrowColumnChunk>> = vec![];
    in_order(columns, ColumnOfGroup::encode, |chunks| {
        encoded.push(chunks);
        if encoded.len() < schema.fields().len() {
            return Ok(());
        }
        let mut group = writer.next_row_group().map_err(of_format)?;
        for chunk in encoded.drain(..).flatten() {
            chunk.append_to_row_group(&mut group).map_err(of_format)?;
        }
        group.close().map_err(of_format)?;
        Ok(())
    })?;
    writer.close().map_err(of_format)?;
    Ok(())
}

/// Columns of the file that a column becomes.
fn leaves(dtype: &DataType) -> usize {
    match dtype {
        DataType::Struct(fields) => fields.iter().map(|field| leaves(field.data_type())).sum(),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => leaves(item.data_type()),
        _ => 1,
    }
}

/// The rows in groups of so many, of which the last may have fewer.
fn groups(
    batches: impl Iterator<Item = Result<RecordBatch>>,
    rows: usize,
) -> impl Iterator<Item = Result<Vec<RecordBatch>>> {
    let mut batches = batches.fuse();
    let mut rest: Option<RecordBatch> = None;
    std::iter::from_fn(move || {
        let (mut group, mut left) = (vec![], rows);
        while left > 0 {
            let batch = match rest.take().map(Ok).or_else(|| batches.next()) {
                Some(Ok(batch)) => batch,
                Some(Err(error)) => return Some(Err(error)),
                None => break,
            };
            let taken = batch.num_rows().min(left);
            if taken < batch.num_rows() {
                rest = Some(batch.slice(taken, batch.num_rows() - taken));
            }
            if taken > 0 {
                group.push(batch.slice(0, taken));
                left -= taken;
            }
        }
        (!group.is_empty()).then_some(Ok(group))
    })
}
