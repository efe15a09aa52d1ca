//! Strings that are not UTF-8, whatever a file says of them.

use datafusion::parquet::basic::Encoding;
use datafusion::parquet::file::metadata::KeyValue;
use datafusion::parquet::file::reader::FileReader;
use datafusion::parquet::file::serialized_reader::SerializedFileReader;
use warpframe::arrow::datatypes::DataType;

use super::*;

#[test]
fn bytes_become_strings_only_as_utf8() -> Result<()> {
    let directory = directory();
    let text = directory.path().join("0.parquet");
    let bytes = directory.path().join("1.parquet");
    write(
        &text,
        "required binary s (STRING);",
        &[vec![Values::Bytes(vec![b"na\xc3\xafve", b"b"])]],
        plain(),
    );
    // What Impala writes: no annotation. One value is ASCII, one UTF-8.
    write(
        &bytes,
        "required binary s;",
        &[vec![Values::Bytes(vec![b"c", b"\xc3\xa9t\xc3\xa9"])]],
        plain(),
    );
    for session in both(directory.path()) {
        let found = rows(&session, "SELECT s, upper(s), substr(s, 1, 3) FROM t ORDER BY s DESC");
        let first = [Cell::Text("été".into()), Cell::Text("ÉTÉ".into()), Cell::Text("été".into())];
        assert_eq!((found.len(), &found[0][..]), (4, &first[..]));
    }
    // Latin-1, short and long, in pages of every encoding of strings.
    let long: &[u8] = b"a value longer than a view, M\xfcnchen at its end";
    let properties: [fn() -> WriterPropertiesBuilder; 3] = [
        plain,
        || plain().set_dictionary_enabled(false),
        || {
            plain()
                .set_dictionary_enabled(false)
                .set_column_encoding("s".into(), Encoding::DELTA_BYTE_ARRAY)
        },
    ];
    for (properties, value, hex) in properties
        .iter()
        .flat_map(|p| [(p, &b"J\xfcrgen"[..], "4afc7267656e"), (p, long, "612076616c7565")])
    {
        write(
            &bytes,
            "required binary s;",
            &[vec![Values::Bytes(vec![b"fine", value])]],
            properties(),
        );
        for session in both(directory.path()) {
            for sql in [
                "SELECT * FROM t",
                "SELECT upper(s), substr(s, 1, 3) FROM t",
                "SELECT max(s) FROM t",
            ] {
                blames(&session, sql, &bytes, &["\"s\"", "row 2", hex, "UTF-8"]);
            }
            // Of the other column of the same files nothing is wrong, and the session goes on.
            assert_eq!(scalar(&session, "SELECT count(*) FROM t"), Cell::Int(4));
        }
        // The file alone is honest: bytes.
        for session in both(&bytes) {
            assert_eq!(session.schema("t")?.field(0).data_type(), &DataType::BinaryView);
            assert_eq!(scalar(&session, "SELECT count(DISTINCT s) FROM t"), Cell::Int(2));
        }
    }
    Ok(())
}

/// The parquet crate checks the strings of a DELTA page for UTF-8 as if they were one.
#[test]
fn a_character_does_not_span_two_strings() {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    let long: [&[u8]; 2] =
        [b"a value longer than a view ends in \xc3", b"\xa9 begins one longer than a view"];
    for encoding in [Encoding::PLAIN, Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY]
    {
        let encoded =
            || plain().set_dictionary_enabled(false).set_column_encoding("s".into(), encoding);
        for [first, second] in [[&b"caf\xc3"[..], &b"\xa9!"[..]], long] {
            let column = "required binary s (STRING);";
            write(&path, column, &[vec![Values::Bytes(vec![b"fine", first, second])]], encoded());
            for session in both(&path) {
                for sql in ["SELECT * FROM t", "SELECT upper(s) FROM t", "SELECT max(s) FROM t"] {
                    blames(&session, sql, &path, &["\"s\"", "row 2", "UTF-8"]);
                }
                assert_eq!(scalar(&session, "SELECT count(*) FROM t"), Cell::Int(3));
            }
        }
    }
}

#[test]
fn annotations_and_notes_are_no_proof_of_utf8() {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    let latin = || vec![vec![Values::Bytes(vec![b"ok", b"\xe9\xe8 and more than a view"])]];
    for columns in
        ["required binary s (STRING);", "required binary s (JSON);", "required binary s (UTF8);"]
    {
        write(&path, columns, &latin(), plain());
        for session in both(&path) {
            blames(&session, "SELECT s FROM t", &path, &["\"s\"", "row 2", "e9e820", "UTF-8"]);
        }
    }
    // An Arrow schema that calls bytes a string, as arrow-rs writes it for a column of strings.
    let arrow = directory.path().join("arrow.parquet");
    let session = Session::builder().device(DeviceChoice::Cpu).build().expect("a CPU session");
    run(&session, "SELECT 'a' AS s")
        .and_then(|frame| frame.write_parquet(&arrow))
        .expect("a file can be written");
    let file = std::fs::File::open(&arrow).expect("it was written");
    let reader = SerializedFileReader::new(file).expect("it is whole");
    let pairs =
        reader.metadata().file_metadata().key_value_metadata().cloned().expect("an Arrow schema");
    let notes = |pairs: Vec<KeyValue>| plain().set_key_value_metadata(Some(pairs));
    write(&path, "required binary s;", &latin(), notes(pairs));
    for session in both(&path) {
        blames(&session, "SELECT upper(s) FROM t", &path, &["\"s\"", "UTF-8"]);
        assert_eq!(scalar(&session, "SELECT count(*) FROM t"), Cell::Int(2));
    }
}
