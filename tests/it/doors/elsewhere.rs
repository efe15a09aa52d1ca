//! What is no file of rows: addresses, tables with logs, encrypted files, pipes.

use std::io::Write;
use std::os::fd::AsRawFd;

use super::*;

#[test]
fn addresses_and_tables_with_logs_are_told() {
    let (files, pair) = (Files::new(), Pair::new());
    files.parquet("ice/data/day=1/x.parquet", "SELECT 1 AS a");
    files.write("ice/metadata/v1.metadata.json", "{\"a\": 1}");
    files.parquet("delta/x.parquet", "SELECT 1 AS a");
    files.write("delta/_delta_log/00000000000000000000.json", "{}");
    let folder = |name: &str| files.path(name).display().to_string();
    for (from, told) in [
        ("'s3://bucket/x.parquet'".to_string(), "nothing is read or written over s3"),
        ("'s3://bucket/folder'".into(), "over s3"),
        ("'https://example.com/x.csv?y=1'".into(), "over https"),
        ("read_json(['gs://b/x.json'])".into(), "over gs"),
        (format!("'{}'", folder("ice")), "Apache Iceberg"),
        (format!("read_json('{}')", folder("ice")), "Apache Iceberg"),
        (format!("'{}'", folder("delta")), "Delta Lake"),
        (format!("read_parquet('{}/*.parquet')", folder("delta")), "Delta Lake"),
    ] {
        let error = refused(&pair.cpu, &format!("SELECT * FROM {from}")).to_string();
        assert!(error.contains(told) && error.contains("yet"), "{from}: {error}");
    }
    let error = pair.cpu.execute("COPY (SELECT 1 AS a) TO 's3://b/x.parquet'").expect_err("none");
    assert!(error.to_string().contains("over s3"), "{error}");
}

#[test]
fn encrypted_parquet_is_told() {
    let (files, pair) = (Files::new(), Pair::new());
    let plain = std::fs::read(files.parquet("t.parquet", "SELECT 1 AS a")).expect("it was written");
    let mut whole = plain.clone();
    let end = whole.len();
    whole[..4].copy_from_slice(b"PARE");
    whole[end - 4..].copy_from_slice(b"PARE");
    // A footer in plain text, with field 8: a struct whose field 1 is an empty struct.
    let length = u32::from_le_bytes(plain[end - 8..end - 4].try_into().expect("four bytes"));
    let begin = end - 8 - length as usize;
    let mut columns = plain[..end - 9].to_vec();
    // The last field before was 7, or less: a header with its id follows.
    columns.extend([0x0C, 16, 0x1C, 0, 0, 0]);
    let length = (columns.len() - begin) as u32;
    columns.extend(length.to_le_bytes());
    columns.extend(b"PAR1");
    for (name, content) in [("whole.parquet", whole), ("columns.parquet", columns)] {
        let path = files.write(name, content);
        let error = refused(&pair.cpu, &format!("FROM '{path}'")).to_string();
        assert!(error.contains("encrypted") && error.contains(name), "{error}");
    }
}

/// A pipe with these bytes, and the path by which the process knows it.
fn pipe(content: Vec<u8>) -> (std::io::PipeReader, String) {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let path = format!("/dev/fd/{}", reader.as_raw_fd());
    std::thread::spawn(move || writer.write_all(&content));
    (reader, path)
}

#[test]
fn pipes_are_read_once_and_by_every_query() {
    let (files, pair) = (Files::new(), Pair::new());
    let csv: String = (0..50_000).map(|n| format!("{n},text {n}\n")).collect();
    let parquet = files.parquet("t.parquet", "SELECT range AS a FROM range(0, 50000)");
    let parquet = std::fs::read(parquet).expect("it was written");
    let json = (0..50_000).map(|n| format!("{{\"a\": {n}}}\n")).collect::<String>();
    for (function, content) in [
        ("read_csv", format!("a,b\n{csv}").into_bytes()),
        ("read_json", json.into_bytes()),
        ("read_parquet", parquet),
    ] {
        let (_open, path) = pipe(content);
        for session in [&pair.cpu, &pair.device] {
            for _ in 0..2 {
                let query = format!("SELECT sum(a) FROM {function}('{path}')");
                assert_eq!(scalar(session, &query), Cell::Int(1_249_975_000), "{function}");
            }
        }
    }
    let (_open, path) = pipe(b"a\n1\n2,3\n".to_vec());
    let error = run(&pair.cpu, &format!("FROM read_csv('{path}')")).expect_err("it is none");
    assert!(error.to_string().starts_with(&format!("{path}: line 3")), "{error}");
    let error = refused(&pair.cpu, "FROM read_csv('/dev/zero')").to_string();
    assert!(error.contains("is a device"), "{error}");
}
