//! Parquet files of other writers: what they may hold, and what of their footers is not to be
//! believed.

mod damaged;
mod statistics;
mod types;
mod utf8;
mod writers;

use std::path::Path;
use std::sync::Arc;

use datafusion::parquet::data_type::{
    ByteArray, ByteArrayType, DataType as Physical, DoubleType, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type, Int96, Int96Type,
};
use datafusion::parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::parquet::schema::parser::parse_message_type;
use warpframe::prelude::*;
use warpframe::{ErrorKind, Result};

use crate::differential::{Cell, Pair, Rows, builder, run, scalar};

/// Values of a column without nulls, as Parquet has them.
#[derive(Debug, Clone)]
pub enum Values {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    /// Julian day, nanoseconds of the day.
    Int96(Vec<(u32, u64)>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<&'static [u8]>),
    Fixed(Vec<Vec<u8>>),
}

/// Writes a file of required columns, by a schema in Parquet's own words; each of the groups
/// becomes a row group.
pub fn write(
    path: &Path,
    columns: &str,
    groups: &[Vec<Values>],
    properties: WriterPropertiesBuilder,
) {
    let schema = parse_message_type(&format!("message m {{ {columns} }}"))
        .expect("a schema in Parquet's words");
    let file = std::fs::File::create(path).expect("the file can be made");
    let properties = Arc::new(properties.build());
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), properties)
        .expect("a file can be written");
    for group in groups {
        let mut rows = writer.next_row_group().expect("a row group can be written");
        for values in group {
            let mut column = rows
                .next_column()
                .expect("columns can be written")
                .expect("as many as there are values");
            macro_rules! put {
                ($kind:ty, $values:expr) => {{
                    let values: Vec<<$kind as Physical>::T> = $values;
                    column
                        .typed::<$kind>()
                        .write_batch(&values, None, None)
                        .expect("values of the type");
                }};
            }
            match values.clone() {
                Values::Int32(values) => put!(Int32Type, values),
                Values::Int64(values) => put!(Int64Type, values),
                Values::Float(values) => put!(FloatType, values),
                Values::Double(values) => put!(DoubleType, values),
                Values::Bytes(values) => {
                    put!(ByteArrayType, values.into_iter().map(ByteArray::from).collect())
                }
                Values::Fixed(values) => {
                    put!(
                        FixedLenByteArrayType,
                        values.into_iter().map(|bytes| ByteArray::from(bytes).into()).collect()
                    )
                }
                Values::Int96(values) => put!(
                    Int96Type,
                    values
                        .into_iter()
                        .map(|(day, nanos)| {
                            let mut value = Int96::new();
                            value.set_data(nanos as u32, (nanos >> 32) as u32, day);
                            value
                        })
                        .collect()
                ),
            }
            column.close().expect("the column is whole");
        }
        rows.close().expect("the row group is whole");
    }
    writer.close().expect("the file is whole");
}

pub fn plain() -> WriterPropertiesBuilder {
    WriterProperties::builder()
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory for files")
}

/// Sessions on the CPU and on the device, with the file as table `t`.
fn both(path: &Path) -> [Session; 2] {
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        session.register_parquet("t", path).expect("the file can be read");
    }
    [pair.cpu, pair.device]
}

fn rows(session: &Session, sql: &str) -> Vec<Vec<Cell>> {
    Rows::of(&run(session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))).rows
}

/// Asserts that a query fails over this file, and says so in these words.
#[track_caller]
fn blames(session: &Session, sql: &str, file: &Path, words: &[&str]) {
    let error = run(session, sql).and_then(|frame| frame.to_arrow()).expect_err(sql);
    let ErrorKind::File { path, message } = error.kind() else { panic!("{sql}: {error:?}") };
    assert_eq!(path, file, "{error}");
    for word in words {
        assert!(message.contains(word), "{word:?} is not in: {error}");
    }
}
