//! Arrow IPC files: read from SQL and by name, written and read again.

use std::path::Path;
use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch};
use warpframe::arrow::datatypes::{DataType, Int32Type};
use warpframe::{ErrorKind, FileKind, IpcCodec, IpcLayout, IpcWriteOptions, Result};

use crate::differential::{Cell, Pair, builder, run, scalar};
use crate::doors::{Files, agree, refused};

const ROWS: &str = "SELECT column1 AS id, column2 AS s, column3 AS f, column4 AS d, column5 AS b
    FROM (VALUES (1, 'x', 0.5, DATE '2024-02-29', true), (2, NULL, NULL, NULL, NULL), (3, 'é', -1.0, DATE '1969-12-31', false))";

#[test]
fn arrow_files_are_read_wherever_files_are() -> Result<()> {
    let (files, pair) = (Files::new(), Pair::new());
    let rows = run(&pair.cpu, ROWS)?;
    let path = |name: &str| files.path(name).display().to_string();
    rows.write_ipc(path("t.arrow"))?;
    let zstd = IpcWriteOptions { compression: Some(IpcCodec::Zstd), ..IpcWriteOptions::default() };
    let stream = IpcWriteOptions { layout: IpcLayout::Stream, compression: Some(IpcCodec::Lz4) };
    rows.write_ipc_with(path("t.feather"), zstd)?;
    rows.write_ipc_with(path("t.arrows"), stream)?;
    std::fs::copy(path("t.arrow"), path("named.otherwise")).expect("files can be copied");
    for query in [
        format!("SELECT * FROM '{}'", path("t.arrow")),
        format!("SELECT * FROM '{}' WHERE s IS NOT NULL", path("t.feather")),
        format!("SELECT b, sum(id), max(d) FROM '{}' GROUP BY b", path("t.arrows")),
        format!("SELECT * FROM read_arrow('{}') LIMIT 2", path("named.otherwise")),
        format!("SELECT count(*) FROM read_ipc('{}')", path("named.otherwise")),
        format!(
            "SELECT a.id, b.s FROM '{}' a JOIN '{}' b USING (id)",
            path("t.arrow"),
            path("t.arrows")
        ),
        format!("SELECT sum(id), count(s) FROM '{}'", path("")),
    ] {
        assert!(agree(&pair, &query) > 0, "{query}");
    }
    assert_eq!(pair.device.read_ipc(path("t.arrow"))?.num_rows(), 3);
    assert_eq!(pair.device.scan_ipc([path("t.arrow"), path("t.arrows")])?.collect()?.num_rows(), 6);
    let create =
        format!("CREATE EXTERNAL TABLE e STORED AS ARROW LOCATION '{}'", path("t.feather"));
    pair.device.execute(&create)?;
    assert_eq!(scalar(&pair.device, "SELECT sum(id) FROM e"), Cell::Int(6));
    assert_eq!(FileKind::of_content(path("t.arrow")).ok(), Some(Some(FileKind::Arrow)));
    assert_eq!(FileKind::of_content(path("t.arrows")).ok(), Some(Some(FileKind::Arrow)));
    // Changed files are read anew.
    rows.head(1)?.write_ipc(path("t.feather"))?;
    assert_eq!(scalar(&pair.device, "SELECT sum(id) FROM e"), Cell::Int(1));
    for (name, content) in
        [("bad.arrow", "ARROW1"), ("none.arrow", ""), ("text.arrow", "a,b\n1,2\n")]
    {
        let path = files.write(name, content);
        let error = refused(&pair.device, &format!("SELECT * FROM '{path}'"));
        assert!(
            matches!(error.kind(), ErrorKind::File { path: of, .. } if of == Path::new(&path)),
            "{error}"
        );
    }
    let error = refused(
        &pair.device,
        &format!("SELECT * FROM read_arrow('{}', delim => ';')", path("t.arrow")),
    );
    assert!(error.to_string().contains("no option named \"delim\""), "{error}");
    Ok(())
}

#[test]
fn files_of_other_columns_are_one_table() -> Result<()> {
    let (files, pair) = (Files::new(), Pair::new());
    let write = |name: &str, query: &str| {
        files.write(name, "");
        run(&pair.cpu, query)?.write_ipc(files.path(name))
    };
    write("many/1.arrow", "SELECT arrow_cast(1, 'Int32') AS a, 'x' AS b")?;
    write("many/2.arrow", "SELECT 2 AS a, 0.5 AS c")?;
    let many = files.path("many").display().to_string();
    assert_eq!(agree(&pair, &format!("SELECT * FROM '{many}'")), 2);
    assert_eq!(scalar(&pair.device, &format!("SELECT sum(a) FROM '{many}'")), Cell::Int(3));
    write("many/3.arrow", "SELECT 'text' AS a")?;
    let error = refused(&pair.device, &format!("SELECT * FROM '{many}'"));
    assert!(
        error.to_string().contains("3.arrow") && error.to_string().contains("no type holds both"),
        "{error}"
    );
    write("many/3.arrow", "SELECT 9007199254740993 AS c")?;
    let error = refused(&pair.device, &format!("SELECT * FROM '{many}'"));
    assert!(error.to_string().contains("9007199254740993 is none"), "{error}");
    // Folders tell columns.
    write("hive/k=1/x.arrow", "SELECT 'one' AS s")?;
    write("hive/k=2/x.arrow", "SELECT 'two' AS s")?;
    let hive = files.path("hive").display().to_string();
    assert_eq!(agree(&pair, &format!("SELECT k, s FROM '{hive}' WHERE k > 1")), 1);
    assert_eq!(agree(&pair, &format!("SELECT k FROM '{hive}'")), 2);
    Ok(())
}

#[test]
fn many_batches_are_read_in_their_order() -> Result<()> {
    let (files, pair) = (Files::new(), Pair::new());
    let keys = Int32Array::from_iter((0..1000).map(|i| (i % 5 > 0).then_some(i % 3)));
    let words = Arc::new(warpframe::arrow::array::StringArray::from(vec!["one", "two", "three"]));
    let dictionary = DictionaryArray::<Int32Type>::try_new(keys, words)?;
    let ids = Arc::new(Int32Array::from_iter_values(0..1000)) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("id", ids), ("w", Arc::new(dictionary) as ArrayRef)])?;
    let path = files.path("many.arrow");
    let mut writer = warpframe::arrow::ipc::writer::FileWriter::try_new(
        std::fs::File::create(&path).expect("it can be made"),
        &batch.schema(),
    )?;
    for at in 0..100 {
        writer.write(&batch.slice(at * 10, 10))?;
    }
    writer.finish()?;
    let path = path.display().to_string();
    for session in [&pair.device, &pair.cpu] {
        let found = run(session, &format!("SELECT id, w FROM '{path}'"))?;
        assert_eq!(*found.schema().field(1).data_type(), DataType::Utf8View);
        let ids: Vec<i32> = found
            .to_arrow()?
            .iter()
            .flat_map(|batch| {
                batch
                    .column(0)
                    .as_any()
                    .downcast_ref::<Int32Array>()
                    .expect("integers")
                    .values()
                    .to_vec()
            })
            .collect();
        assert_eq!(ids, (0..1000).collect::<Vec<_>>());
        assert_eq!(scalar(session, &format!("SELECT count(w) FROM '{path}'")), Cell::Int(800));
        assert_eq!(run(session, &format!("SELECT id FROM '{path}' LIMIT 15"))?.num_rows(), 15);
    }
    assert!(agree(&pair, &format!("SELECT w, count(*) FROM '{path}' GROUP BY w")) == 4);
    Ok(())
}

/// What is written in any format is what is read.
#[test]
fn what_is_written_is_read() -> Result<()> {
    let files = Files::new();
    let session = builder().build()?;
    let rows = run(&session, ROWS)?;
    let expected =
        run(&session, &format!("SELECT id, s, f, d FROM ({ROWS}) ORDER BY id"))?.to_arrow()?;
    for name in ["t.csv", "t.tsv", "t.parquet", "t.ndjson", "t.json", "t.arrow", "t.arrows"] {
        let path = files.path(name).display().to_string();
        match name {
            "t.csv" | "t.tsv" => rows.write_csv_with(
                &path,
                warpframe::CsvWriteOptions {
                    delimiter: if name == "t.tsv" { b'\t' } else { b',' },
                    ..Default::default()
                },
            )?,
            "t.parquet" => rows.write_parquet(&path)?,
            "t.json" => rows.write_json_with(
                &path,
                warpframe::JsonWriteOptions { array: true, ..Default::default() },
            )?,
            "t.ndjson" => rows.write_json(&path)?,
            _ => rows.write_ipc(&path)?,
        }
        let query = format!(
            "SELECT id, s, CAST(f AS DOUBLE) AS f, CAST(d AS DATE) AS d FROM '{path}' ORDER BY id"
        );
        let found = run(&session, &query)?.to_arrow()?;
        assert_eq!(found.len(), expected.len(), "{name}");
        let shown = |batches: &[RecordBatch]| {
            warpframe::arrow::util::pretty::pretty_format_batches(batches)
                .expect("they have a text")
                .to_string()
        };
        assert_eq!(shown(&found), shown(&expected), "{name}");
    }
    Ok(())
}
