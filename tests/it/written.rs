//! What is written is what is read: columns of every type in every format, names that come twice,
//! and what options of `COPY` say.

mod copies;
mod every_type;
mod intervals;

use warpframe::prelude::*;
use warpframe::{Error, Result};

use crate::differential::{Cell, Pair, run, scalar};
use crate::doors::Files;

/// Sessions with a device and without.
fn both(check: impl Fn(&Session, &Files) -> Result<()>) -> Result<()> {
    let pair = Pair::new();
    for session in [&pair.device, &pair.cpu] {
        check(session, &Files::new())?;
    }
    Ok(())
}

/// The statement's error.
fn refused(session: &Session, statement: &str) -> Error {
    session.execute(statement).map(drop).expect_err(statement)
}

fn done(session: &Session, statement: &str) -> Result<()> {
    session.execute(statement).map(drop)
}

#[test]
fn columns_of_one_name_are_told_apart_in_every_format() -> Result<()> {
    both(|session, files| {
        let rows = "SELECT 1 AS a, 2 AS a, 3 AS \"A\", 4 AS a_1, 'x' AS a";
        let expected = ["a", "a_1", "A", "a_1_1", "a_2"];
        let frame = session.sql(rows)?.collect()?;
        for name in ["t.csv", "t.parquet", "t.ndjson", "t.json", "t.arrow", "t.arrows"] {
            let path = files.path(name).display().to_string();
            done(session, &format!("COPY ({rows}) TO '{path}'"))?;
            let copied = run(session, &format!("FROM '{path}'"))?;
            assert_eq!(copied.column_names(), expected, "{name}");
            match name {
                "t.csv" => frame.write_csv(&path)?,
                "t.parquet" => frame.write_parquet(&path)?,
                "t.ndjson" | "t.json" => frame.write_json(&path)?,
                _ => frame.write_ipc(&path)?,
            }
            let written = run(session, &format!("FROM '{path}'"))?;
            assert!(copied.equals(&written)?, "{name}");
            assert_eq!(
                scalar(session, &format!("SELECT a_2 FROM '{path}'")),
                Cell::Text("x".into())
            );
        }
        assert!(frame.to_json()?.contains("\"a\":1,\"a_1\":2,\"A\":3,\"a_1_1\":4,\"a_2\":\"x\""));
        Ok(())
    })
}

#[test]
fn json_has_null_for_what_it_has_no_number_for() -> Result<()> {
    both(|session, files| {
        let path = files.path("t.ndjson").display().to_string();
        let floats = "CAST('inf' AS DOUBLE) AS a, CAST('-inf' AS FLOAT) AS b, CAST('nan' AS DOUBLE) AS c, \
                      [CAST('inf' AS DOUBLE), 1.5] AS l";
        done(session, &format!("COPY (SELECT {floats}) TO '{path}'"))?;
        let text = std::fs::read_to_string(&path).expect("a file");
        assert_eq!(text, "{\"a\":null,\"b\":null,\"c\":null,\"l\":[null,1.5]}\n");
        Ok(())
    })
}

/// Views, offsets of either width and dictionaries of the same strings.
#[test]
fn how_strings_are_held_is_not_seen() -> Result<()> {
    use std::sync::Arc;
    use warpframe::arrow::array::*;
    use warpframe::arrow::datatypes::Int32Type;

    let texts = [Some("a"), None, Some("")];
    let views = Arc::new(StringViewArray::from(texts.to_vec())) as ArrayRef;
    let coded = texts.iter().copied().collect::<DictionaryArray<Int32Type>>();
    let layouts: [ArrayRef; 4] = [
        views.clone(),
        Arc::new(StringArray::from(texts.to_vec())),
        Arc::new(LargeStringArray::from(texts.to_vec())),
        Arc::new(coded),
    ];
    both(|session, files| {
        let of = |array: &ArrayRef| {
            // A line of one NULL would be one of the empty string.
            let n = Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef;
            session.from_arrow([RecordBatch::try_from_iter([("s", array.clone()), ("n", n)])?])
        };
        let expected = of(&views)?;
        for (number, array) in layouts.iter().enumerate() {
            let frame = of(array)?;
            assert!(frame.equals(&expected)? && expected.equals(&frame)?, "{array:?}");
            assert!(frame == expected, "{array:?}");
            assert_eq!(frame.dtypes(), expected.dtypes());
            assert_eq!(frame.to_string(), expected.to_string());
            assert_eq!(frame.vstack(&expected)?.num_rows(), 6);
            let name = format!("t{number}");
            session.register_table(&name, &frame)?;
            let described = run(session, &format!("DESCRIBE {name}"))?;
            assert_eq!(described.column("type")?.to_vec::<String>()?, ["VARCHAR", "BIGINT"]);
            let joined = run(session, &format!("SELECT * FROM {name} a JOIN t0 b USING (s)"))?;
            assert_eq!(joined.num_rows(), 2, "{array:?}");
            for file in ["t.parquet", "t.arrow", "t.csv", "t.ndjson"] {
                let path = files.path(file).display().to_string();
                done(session, &format!("COPY {name} TO '{path}'"))?;
                assert!(
                    run(session, &format!("FROM '{path}'"))?.equals(&frame)?,
                    "{file} {array:?}"
                );
            }
        }
        Ok(())
    })
}
