//! Columns as other writers have them: physical types with and without notes of what they mean.

use std::path::Path;
use std::sync::Arc;

use datafusion::parquet::basic::Type;
use datafusion::parquet::data_type::DataType;
use datafusion::parquet::data_type::*;
use datafusion::parquet::file::properties::{
    WriterProperties, WriterPropertiesBuilder, WriterVersion,
};
use datafusion::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use datafusion::parquet::schema::parser::parse_message_type;
use datafusion::parquet::schema::types::ColumnDescriptor;
use warpframe::arrow::datatypes::TimeUnit;
use warpframe::prelude::*;

use super::{agree, agree_with};
use crate::differential::Pair;

const GROUPS: u64 = 2;
const ROWS: u64 = 130;

/// Which values a column has.
#[derive(Debug, Clone, Copy)]
enum Values {
    /// Integers of so many bits, which may be negative.
    Signed(u32),
    Unsigned(u32),
    /// Unscaled values of up to so many digits, in as few bytes as they need where those have no
    /// fixed length.
    Digits(u32),
    Within(u64),
    Text,
    Any,
}

use Values::{Any, Digits, Signed, Text, Unsigned, Within};

/// Type, what it means, values, and whether the host reads it.
const COLUMNS: [(&str, &str, Values, bool); 47] = [
    ("boolean", "", Any, false),
    ("int32", "", Signed(32), false),
    ("int32", "(INT_8)", Signed(8), false),
    ("int32", "(INT_16)", Signed(16), false),
    ("int32", "(INT_32)", Signed(32), false),
    ("int32", "(UINT_8)", Unsigned(8), false),
    ("int32", "(UINT_16)", Unsigned(16), false),
    ("int32", "(UINT_32)", Unsigned(32), false),
    ("int32", "(INTEGER(8,true))", Signed(8), false),
    ("int32", "(INTEGER(16,false))", Unsigned(16), false),
    // More than their types hold, which nobody should write.
    ("int32", "(INTEGER(8,false))", Signed(32), false),
    ("int32", "(INTEGER(16,true))", Signed(32), false),
    ("int64", "(INT_64)", Signed(64), false),
    ("int64", "(UINT_64)", Unsigned(64), false),
    ("int64", "(INTEGER(64,false))", Unsigned(64), false),
    ("int32", "(DATE)", Signed(20), false),
    ("int32", "(TIME_MILLIS)", Within(86_400_000), false),
    ("int64", "(TIME_MICROS)", Within(86_400_000_000), false),
    ("int32", "(TIME(MILLIS,true))", Within(86_400_000), false),
    ("int64", "(TIME(MICROS,false))", Within(86_400_000_000), false),
    ("int64", "(TIME(NANOS,false))", Within(86_400_000_000_000), false),
    ("int64", "(TIMESTAMP_MILLIS)", Signed(40), false),
    ("int64", "(TIMESTAMP_MICROS)", Signed(50), false),
    ("int64", "(TIMESTAMP(MILLIS,false))", Signed(40), false),
    ("int64", "(TIMESTAMP(MICROS,true))", Signed(50), false),
    ("int64", "(TIMESTAMP(NANOS,false))", Signed(60), false),
    ("float", "", Any, false),
    ("double", "", Any, false),
    ("int32", "(DECIMAL(5,1))", Digits(5), false),
    ("int32", "(DECIMAL(9,9))", Digits(9), false),
    ("int64", "(DECIMAL(7,2))", Digits(7), false),
    ("int64", "(DECIMAL(18,4))", Digits(18), false),
    ("fixed_len_byte_array(2)", "(DECIMAL(4,2))", Digits(4), false),
    ("fixed_len_byte_array(9)", "(DECIMAL(20,2))", Digits(20), false),
    ("fixed_len_byte_array(16)", "(DECIMAL(38,3))", Digits(38), false),
    ("fixed_len_byte_array(16)", "(DECIMAL(9,3))", Digits(9), false),
    ("binary", "(DECIMAL(9,3))", Digits(9), false),
    ("binary", "(DECIMAL(38,0))", Digits(38), false),
    ("int96", "", Any, false),
    ("binary", "", Any, false),
    ("binary", "(STRING)", Text, false),
    ("binary", "(UTF8)", Text, false),
    ("binary", "(ENUM)", Text, false),
    ("binary", "(JSON)", Text, false),
    ("binary", "(BSON)", Any, false),
    ("fixed_len_byte_array(7)", "", Any, false),
    ("fixed_len_byte_array(16)", "(UUID)", Any, false),
];

fn bits(row: u64, column: usize) -> u64 {
    let x = (row % 37 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (column as u64) << 40;
    (x ^ x >> 31).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

impl Values {
    fn integer(self, bits: u64) -> i128 {
        match self {
            Signed(of) => (bits as i64 >> (64 - of)).into(),
            Unsigned(of) => (bits >> (64 - of)).into(),
            // As often with few digits as with many.
            Digits(of) => {
                let most = 10i128.pow(1 + bits as u32 % of);
                (i128::from(bits as i64) << 64 | i128::from(bits)) % most
            }
            Within(end) => (bits % end).into(),
            Text | Any => i128::from(bits as i64 >> 3),
        }
    }

    fn bytes(self, bits: u64, fixed: Option<usize>) -> Vec<u8> {
        match (self, fixed) {
            (Digits(_), fixed) => {
                let bytes = self.integer(bits).to_be_bytes();
                let sign = if bytes[0] & 0x80 == 0 { 0 } else { 0xFF };
                let spare = |at: &usize| bytes[*at] == sign && bytes[at + 1] & 0x80 == sign & 0x80;
                let least = (0..15).take_while(spare).count();
                bytes[fixed.map_or(least, |length| 16 - length)..].to_vec()
            }
            (_, Some(length)) => bits.to_le_bytes().repeat(2)[..length].to_vec(),
            (Text, None) => {
                format!("{{\"é\": {}}}", bits % 10u64.pow(bits as u32 % 19)).into_bytes()
            }
            _ => bits.to_le_bytes().repeat(3)[..(bits % 24) as usize].to_vec(),
        }
    }
}

/// Writes some values, and nulls of an optional column.
fn put<T: DataType>(
    writer: &mut SerializedColumnWriter,
    is_optional: bool,
    value: impl Fn(u64) -> T::T,
    group: u64,
) {
    let rows = || group * ROWS..(group + 1) * ROWS;
    let is_null = |row: u64| is_optional && row % 4 == 1;
    let values: Vec<T::T> = rows().filter(|row| !is_null(*row)).map(value).collect();
    let levels: Vec<i16> = rows().map(|row| i16::from(!is_null(row))).collect();
    writer
        .typed::<T>()
        .write_batch(&values, is_optional.then_some(&levels[..]), None)
        .expect("values of the type");
}

fn column(
    writer: &mut SerializedColumnWriter,
    leaf: &ColumnDescriptor,
    at: usize,
    values: Values,
    group: u64,
) {
    let of = |row: u64| values.integer(bits(row, at));
    let is_optional = leaf.max_def_level() > 0;
    let bytes = |row: u64| ByteArray::from(values.bytes(bits(row, at), None));
    match leaf.physical_type() {
        Type::BOOLEAN => put::<BoolType>(writer, is_optional, |row| of(row) % 3 == 0, group),
        Type::INT32 => put::<Int32Type>(writer, is_optional, |row| of(row) as i32, group),
        Type::INT64 => put::<Int64Type>(writer, is_optional, |row| of(row) as i64, group),
        Type::FLOAT => put::<FloatType>(writer, is_optional, |row| of(row) as f32 / 7.0, group),
        Type::DOUBLE => put::<DoubleType>(writer, is_optional, |row| of(row) as f64 / 7.0, group),
        Type::INT96 => put::<Int96Type>(writer, is_optional, |row| int96(bits(row, at)), group),
        Type::BYTE_ARRAY => put::<ByteArrayType>(writer, is_optional, bytes, group),
        Type::FIXED_LEN_BYTE_ARRAY => {
            let length = leaf.type_length() as usize;
            let fixed = |row| ByteArray::from(values.bytes(bits(row, at), Some(length))).into();
            put::<FixedLenByteArrayType>(writer, is_optional, fixed, group);
        }
    }
}

/// A time of 1800 to 2200, which 64 bits of nanoseconds hold.
fn int96(bits: u64) -> Int96 {
    let (day, nanos) = (2_378_497 + (bits % 140_000) as u32, bits % 86_400_000_000_000);
    let mut value = Int96::new();
    value.set_data(nanos as u32, (nanos >> 32) as u32, day);
    value
}

/// Writes all columns, each required and optional.
fn write(path: &Path, properties: WriterPropertiesBuilder) {
    let declare = |word: &str, mark: char| {
        let each = COLUMNS
            .iter()
            .enumerate()
            .map(|(at, (of, means, ..))| format!("{word} {of} {mark}{at} {means};"));
        each.collect::<String>()
    };
    let text = format!("message m {{ {} {} }}", declare("required", 'r'), declare("optional", 'o'));
    let schema = Arc::new(parse_message_type(&text).expect("a schema in Parquet's words"));
    let file = std::fs::File::create(path).expect("the file can be made");
    let mut writer =
        SerializedFileWriter::new(file, schema, Arc::new(properties.build())).expect("a writer");
    let leaves = writer.schema_descr().columns().to_vec();
    for group in 0..GROUPS {
        let mut rows = writer.next_row_group().expect("a row group can be written");
        for (at, leaf) in leaves.iter().enumerate() {
            let mut one = rows
                .next_column()
                .expect("columns can be written")
                .expect("as many as the schema has");
            let at = at % COLUMNS.len();
            column(&mut one, leaf, at, COLUMNS[at].2, group);
            one.close().expect("the column is whole");
        }
        rows.close().expect("the row group is whole");
    }
    writer.close().expect("the file is whole");
}

fn by_host() -> Vec<String> {
    let left = COLUMNS.iter().enumerate().filter(|(_, (.., by_host))| *by_host);
    left.flat_map(|(at, _)| [format!("r{at}"), format!("o{at}")]).collect()
}

#[test]
fn every_physical_type_and_what_it_means() {
    let (pair, directory) = (Pair::new(), tempfile::tempdir().expect("a directory"));
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for dictionary in [true, false] {
            let properties = WriterProperties::builder().set_writer_version(version);
            let properties = properties.set_dictionary_enabled(dictionary).set_write_batch_size(16);
            let path = directory.path().join(format!("{version:?} {dictionary}.parquet"));
            write(&path, properties.set_data_page_row_count_limit(60));
            let found = agree(
                &pair,
                &path,
                &by_host(),
                &format!("{version:?}, dictionaries: {dictionary}"),
            );
            assert_eq!(
                (found.num_rows() as u64, found.num_columns()),
                (GROUPS * ROWS, 2 * COLUMNS.len())
            );
        }
    }
    // INT96 is what its reader makes of it.
    for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond] {
        let options = ParquetOptions { coerce_int96_timestamp_unit: unit, ..Default::default() };
        for path in std::fs::read_dir(directory.path())
            .expect("a folder")
            .map(|entry| entry.expect("a file").path())
        {
            agree_with(&pair, &path, options.clone(), &by_host(), &format!("INT96 as {unit:?}"));
        }
    }
}
