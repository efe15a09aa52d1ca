//! Files as some writers make them, byte by byte, which others read.

use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::parquet::arrow::encode_arrow_schema;
use datafusion::parquet::file::metadata::KeyValue;
use warpframe::arrow::datatypes::{DataType, Field, Schema};

use super::*;

/// 1, NULL, 3; its statistics do not say how many are null.
const NO_NULL_COUNT: &[u8] =
    b"PAR1\x15\x00\x154\x154,\x15\x06\x15\x00\x15\x06\x15\x06\x00\x00\x06\x00\x00\x00\x02\
      \x01\x02\x00\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\
      \x15\x02\x19,H\x06schema\x15\x02\x00\x15\x04%\x02\x18\x01a\x00\x16\x06\x19\x1c\x19\
      \x1c&\x08\x1c\x15\x04\x195\x00\x06\x00\x19\x18\x01a\x15\x00\x16\x06\x16V\x16V&\x08<X\
      \x08\x03\x00\x00\x00\x00\x00\x00\x00\x18\x08\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\
      \x00\x16V\x16\x06\x00(\x04mkpq\x00Y\x00\x00\x00PAR1";
/// 1, 2; its statistics are cut.
const CUT_STATISTICS: &[u8] =
    b"PAR1\x15\x00\x15,\x15,,\x15\x04\x15\x00\x15\x06\x15\x06\x00\x00\x02\x00\x00\x00\x04\
      \x01\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x15\x02\x19,H\
      \x06schema\x15\x02\x00\x15\x04%\x02\x18\x01a\x00\x16\x04\x19\x1c\x19\x1c&\x08\x1c\
      \x15\x04\x195\x00\x06\x00\x19\x18\x01a\x15\x00\x16\x04\x16N\x16N&\x08<X\x02\x01\x02\
      \x18\x00\x00\x00\x00\x16N\x16\x04\x00(\x04mkpq\x00K\x00\x00\x00PAR1";
/// `r`, `q`; the place of its dictionary is said to be 0.
const DICTIONARY_AT_0: &[u8] =
    b"PAR1\x15\x04\x15\x14\x15\x14L\x15\x04\x15\x00\x00\x00\x01\x00\x00\x00q\x01\x00\x00\
      \x00r\x15\x00\x15\x12\x15\x12,\x15\x04\x15\x10\x15\x06\x15\x06\x00\x00\x02\x00\x00\
      \x00\x04\x01\x01\x03\x01\x15\x02\x19,H\x01s\x15\x02\x00\x15\x0c%\x02\x18\x01a%\x00\
      \x00\x16\x04\x19\x1c\x19\x1c&\x08\x1c\x15\x0c\x19%\x10\x06\x19\x18\x01a\x15\x00\x16\
      \x04\x16b\x16b&\x08&\x00\x00\x00\x16b\x16\x04\x00(\x04mkpq\x00A\x00\x00\x00PAR1";
/// Three nulls in codes, whose page has no width of codes behind its levels.
const NO_CODES: &[u8] =
    b"PAR1\x15\x04\x15\x00\x15\x00L\x15\x00\x15\x00\x00\x00\x15\x00\x15\x0c\x15\x0c,\x15\
      \x06\x15\x10\x15\x06\x15\x06\x00\x00\x02\x00\x00\x00\x06\x00\x15\x02\x19,H\x01s\x15\
      \x02\x00\x15\x02%\x02\x18\x01a\x00\x16\x06\x19\x1c\x19\x1c&\x08\x1c\x15\x02\x19%\x10\
      \x06\x19\x18\x01a\x15\x00\x16\x06\x16H\x16H&\"&\x08\x00\x00\x16H\x16\x06\x00(\x04mkp\
      q\x00?\x00\x00\x00PAR1";
/// 0.07 of DECIMAL(18, 2) in 17 bytes.
const LONG_DECIMAL: &[u8] =
    b"PAR1\x15\x00\x15*\x15*,\x15\x02\x15\x00\x15\x06\x15\x06\x00\x00\x11\x00\x00\x00\x00\
      \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\x15\x02\x19,H\x06sc\
      hema\x15\x02\x00\x15\x0c%\x00\x18\x01a%\x0a\x15\x04\x15$\x00\x16\x02\x19\x1c\x19\x1c\
      &\x08\x1c\x15\x0c\x195\x00\x06\x00\x19\x18\x01a\x15\x00\x16\x02\x16L\x16L&\x08\x00\
      \x00\x16L\x16\x02\x00(\x04mkpq\x00I\x00\x00\x00PAR1";
/// `A`, annotated ENUM.
const ENUM: &[u8] =
    b"PAR1\x15\x00\x15\x0a\x15\x0a,\x15\x02\x15\x00\x15\x06\x15\x06\x00\x00\x01\x00\x00\
      \x00A\x15\x02\x19,H\x06schema\x15\x02\x00\x15\x0c%\x00\x18\x01a%\x08\x00\x16\x02\x19\
      \x1c\x19\x1c&\x08\x1c\x15\x0c\x195\x00\x06\x00\x19\x18\x01a\x15\x00\x16\x02\x16,\x16\
      ,&\x08\x00\x00\x16,\x16\x02\x00(\x04mkpq\x00E\x00\x00\x00PAR1";

/// The rows of a query, of both engines.
fn each(path: &Path, sql: &str, expected: &[Vec<Cell>]) {
    for session in both(path) {
        assert_eq!(rows(&session, sql), expected, "{sql}");
    }
}

fn integer(value: i128) -> Vec<Cell> {
    vec![Cell::Int(value)]
}

#[test]
fn a_column_whose_nulls_nobody_counted_has_some() {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    std::fs::write(&path, NO_NULL_COUNT).expect("the file can be written");
    each(&path, "SELECT a FROM t", &[integer(1), vec![Cell::Null], integer(3)]);
    each(&path, "SELECT count(a) FROM t", &[integer(2)]);
    each(&path, "SELECT count(*) FROM t WHERE a IS NULL", &[integer(1)]);
    each(&path, "SELECT count(*) FROM t WHERE a IS NOT NULL AND a <> 2", &[integer(2)]);
}

#[test]
fn statistics_and_places_that_are_none_are_left_out() {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    std::fs::write(&path, CUT_STATISTICS).expect("the file can be written");
    each(&path, "SELECT a FROM t WHERE a > 0", &[integer(1), integer(2)]);
    std::fs::write(&path, DICTIONARY_AT_0).expect("the file can be written");
    let text = |text: &str| vec![Cell::Text(text.into())];
    each(&path, "SELECT a FROM t", &[text("r"), text("q")]);
    std::fs::write(&path, NO_CODES).expect("the file can be written");
    each(&path, "SELECT a FROM t", &[vec![Cell::Null], vec![Cell::Null], vec![Cell::Null]]);
    each(&path, "SELECT count(*), count(a) FROM t", &[vec![Cell::Int(3), Cell::Int(0)]]);
}

#[test]
fn decimals_of_more_bytes_than_they_need_are_read() {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    std::fs::write(&path, LONG_DECIMAL).expect("the file can be written");
    each(&path, "SELECT a::VARCHAR FROM t WHERE a = 0.07", &[vec![Cell::Text("0.07".into())]]);
    let sign: &[u8] = &[0xFF; 24];
    let values = vec![Values::Bytes(vec![sign, &[0, 0x7F], &[0; 20]])];
    write(&path, "required binary d (DECIMAL(9, 1));", &[values], plain());
    each(
        &path,
        "SELECT sum(d)::VARCHAR, min(d) < 0 FROM t",
        &[vec![Cell::Text("12.6".into()), Cell::Int(1)]],
    );
}

#[test]
fn enums_are_texts() {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    std::fs::write(&path, ENUM).expect("the file can be written");
    each(
        &path,
        "SELECT a || 'b', length(a) FROM t",
        &[vec![Cell::Text("Ab".into()), Cell::Int(1)]],
    );
    let columns = "required group s { required binary e (ENUM); } required binary t (ENUM);";
    let values = || Values::Bytes(vec![b"x".as_slice(), b"y"]);
    write(&path, columns, &[vec![values(), values()]], plain());
    each(&path, "SELECT s['e'] || t FROM t WHERE t > 'x'", &[vec![Cell::Text("yy".into())]]);
}

/// Writers of Arrow note that a column was a dictionary. Of decimals the crate reads none.
#[test]
fn dictionaries_of_numbers_are_their_values() {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    let coded =
        |values: DataType| DataType::Dictionary(Box::new(DataType::Int32), Box::new(values));
    let decimal = DataType::Decimal128(3, 2);
    let noted = Schema::new(vec![
        Field::new("c", coded(decimal.clone()), false),
        Field::new("n", coded(DataType::Int64), false),
        Field::new(
            "s",
            DataType::Struct(vec![Field::new("d", coded(decimal), false)].into()),
            false,
        ),
    ]);
    let note = KeyValue::new("ARROW:schema".into(), encode_arrow_schema(&noted));
    let columns = "required fixed_len_byte_array(2) c (DECIMAL(3, 2)); required int64 n; \
                   required group s { required fixed_len_byte_array(2) d (DECIMAL(3, 2)); }";
    let decimals = || Values::Fixed(vec![vec![0, 110], vec![0, 200], vec![0, 110]]);
    let values = vec![decimals(), Values::Int64(vec![7, 8, 7]), decimals()];
    write(&path, columns, &[values], plain().set_key_value_metadata(Some(vec![note])));
    let sql = "SELECT c::VARCHAR, n, sum(s['d'])::VARCHAR FROM t GROUP BY c, n ORDER BY c";
    let row = |c: &str, n, d: &str| vec![Cell::Text(c.into()), Cell::Int(n), Cell::Text(d.into())];
    each(&path, sql, &[row("1.10", 7, "2.20"), row("2.00", 8, "2.00")]);
}

/// pyarrow has few functions for views, and makes columns of the types that a file's note says.
#[test]
fn written_files_have_strings_and_bytes_in_place_of_views() -> Result<()> {
    let (pair, directory) = (Pair::new(), directory());
    let path = directory.path().join("t.parquet");
    let sql = "SELECT s, ['q', s] AS l, named_struct('t', s) AS g, CAST(s AS BYTEA) AS b \
               FROM (VALUES ('x'), (NULL), ('a text that is longer than a view')) v(s)";
    for session in [&pair.cpu, &pair.device] {
        session.sql(sql)?.collect()?.write_parquet(&path)?;
        let file = std::fs::File::open(&path).expect("it was written");
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("it is whole");
        let schema = reader.schema().clone();
        let types: Vec<String> =
            schema.fields().iter().map(|field| field.data_type().to_string()).collect();
        assert!(types.iter().all(|dtype| !dtype.contains("View")), "{types:?}");
        assert_eq!((types[0].as_str(), types[3].as_str()), ("Utf8", "Binary"));
        session.register_parquet("t", &path)?;
        let found = rows(session, "SELECT s, l[1], g['t'] FROM t");
        let text = |text: &str| Cell::Text(text.into());
        let row = |s: Cell| vec![s.clone(), text("q"), s];
        let long = text("a text that is longer than a view");
        assert_eq!(found, [row(text("x")), row(Cell::Null), row(long)]);
    }
    Ok(())
}

/// Files give strings as views, expressions also with offsets.
#[test]
fn a_frame_equals_what_was_written_of_it() -> Result<()> {
    let (pair, directory) = (Pair::new(), directory());
    let path = directory.path().join("t.parquet");
    let sql = "SELECT arrow_cast(s, 'Utf8') AS s, arrow_cast(s, 'LargeUtf8') AS l, x \
               FROM (VALUES ('a', 1), (NULL, 2)) v(s, x)";
    for session in [&pair.cpu, &pair.device] {
        let frame = session.sql(sql)?.collect()?;
        frame.write_parquet(&path)?;
        assert!(frame.equals(&session.read_parquet(&path)?)?);
        let other = session.sql("SELECT 'b' AS s, 'b' AS l, 1::BIGINT AS x")?.collect()?;
        assert!(!frame.equals(&other)?);
    }
    Ok(())
}
