//! Several files as one table: columns by name, wider types.

mod any;
mod paths;
mod refused;
mod texts;
mod united;
mod widened;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use tempfile::TempDir;
use warpframe::arrow::array::*;
use warpframe::arrow::compute::{cast, concat, concat_batches};
use warpframe::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use warpframe::{Result, Session};

use crate::differential::{Agreement, Cell, Pair, Rows, run, scalar};

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory for tests")
}

fn write(path: &Path, batch: &RecordBatch, statistics: EnabledStatistics) {
    std::fs::create_dir_all(path.parent().expect("it has one")).expect("directories can be made");
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(37))
        .set_statistics_enabled(statistics);
    let file = std::fs::File::create(path).expect("the file can be made");
    let mut writer =
        ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).expect("a writer");
    writer.write(batch).expect("rows can be written");
    writer.close().expect("the file is whole");
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

/// A file of these columns.
fn file(directory: &TempDir, name: &str, columns: Vec<(&str, ArrayRef)>) -> PathBuf {
    let path = directory.path().join(name);
    write(&path, &batch(columns), EnabledStatistics::Page);
    path
}

fn ints(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn all(session: &Session, sql: &str) -> RecordBatch {
    let frame = run(session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let batches = frame.to_arrow().unwrap_or_else(|error| panic!("{sql}: {error}"));
    concat_batches(&frame.schema(), &batches).expect("batches of one schema")
}

fn rows(session: &Session, sql: &str) -> Vec<Vec<Cell>> {
    Rows::of(&run(session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))).rows
}

/// Checks that both engines yield the same rows. Columns that are only read need no kernel.
fn same(pair: &Pair, sql: &str) {
    let agreement = pair.agreement(sql);
    assert!(matches!(agreement, Agreement::Rows(_)), "{sql}: {agreement:?}");
}

/// Values in the expected type, nested ones field by field.
fn as_expected(array: &ArrayRef, dtype: &DataType) -> ArrayRef {
    match dtype {
        DataType::Struct(fields) => {
            let from = array.as_struct();
            let child = |field: &Arc<Field>| {
                as_expected(
                    from.column_by_name(field.name()).expect("it is there"),
                    field.data_type(),
                )
            };
            Arc::new(StructArray::new(
                fields.clone(),
                fields.iter().map(child).collect(),
                from.nulls().cloned(),
            ))
        }
        dtype => cast(array, dtype).unwrap_or_else(|error| panic!("as {dtype}: {error}")),
    }
}
