//! What files say of themselves: `parquet_metadata`, `sniff_csv`, `glob`, `read_text`.

use super::*;

#[test]
fn parquet_files_tell_their_footers() -> Result<()> {
    let (files, pair) = (Files::new(), Pair::new());
    let path = files.path("t.parquet").display().to_string();
    let rows = "SELECT i, 'x' || i AS s, DATE '2024-01-01' + CAST(i AS INT) AS d, \
                CAST(i AS DECIMAL(9, 2)) AS p, [i] AS l, {'a': i} AS st FROM range(0, 10) t(i)";
    pair.cpu.execute(&format!("COPY ({rows}) TO '{path}' (ROW_GROUP_SIZE 4)"))?;
    let metadata = format!("parquet_metadata('{path}')");
    assert_eq!(agree(&pair, &format!("SELECT * FROM {metadata}")), 18);
    let one = |query: String| scalar(&pair.device, &query);
    let bound = |column: &str, of: &str| {
        let chunk = format!("row_group_id = 1 AND path_in_schema = '{column}'");
        one(format!("SELECT {of} FROM {metadata} WHERE {chunk}"))
    };
    for (column, least, most) in [
        ("i", "4", "7"),
        ("s", "x4", "x7"),
        ("d", "2024-01-05", "2024-01-08"),
        ("p", "4.00", "7.00"),
        ("l, list, item", "4", "7"),
        ("st, a", "4", "7"),
    ] {
        assert_eq!(bound(column, "stats_min"), Cell::Text(least.into()), "{column}");
        assert_eq!(bound(column, "stats_max_value"), Cell::Text(most.into()), "{column}");
    }
    assert_eq!(bound("i", "row_group_num_rows"), Cell::Int(4));
    assert_eq!(bound("s", "type"), Cell::Text("BYTE_ARRAY".into()));
    let schema = format!("FROM parquet_schema('{path}')");
    let of = |name: &str, what: &str| one(format!("SELECT {what} {schema} WHERE name = '{name}'"));
    assert_eq!(of("p", "duckdb_type"), Cell::Text("DECIMAL(9,2)".into()));
    assert_eq!(of("p", "logical_type"), Cell::Text("DecimalType(scale=2, precision=9)".into()));
    assert_eq!(of("l", "duckdb_type"), Cell::Text("BIGINT[]".into()));
    assert_eq!(of("item", "duckdb_type"), Cell::Text("BIGINT".into()));
    assert_eq!(of("a", "repetition_type"), Cell::Text("OPTIONAL".into()));
    assert_eq!(of("s", "converted_type"), Cell::Text("UTF8".into()));
    let whole = format!("FROM parquet_file_metadata('{path}') m");
    assert_eq!(one(format!("SELECT m.num_rows {whole}")), Cell::Int(10));
    assert_eq!(one(format!("SELECT parquet_schema.column_id {schema} OFFSET 1")), Cell::Int(1));
    let size = std::fs::metadata(&path).expect("a file").len();
    assert_eq!(one(format!("SELECT file_size_bytes {whole}")), Cell::Int(size.into()));
    // A file that changes is read anew.
    pair.cpu.execute(&format!("COPY (SELECT 1 AS i) TO '{path}'"))?;
    assert_eq!(one(format!("SELECT m.num_rows {whole}")), Cell::Int(1));
    // Several files, and a damaged one.
    let pattern = files.path("*.parquet").display().to_string();
    pair.cpu
        .execute(&format!("COPY (SELECT 1 AS i) TO '{}'", files.path("u.parquet").display()))?;
    assert_eq!(
        one(format!("SELECT count(*) FROM parquet_file_metadata('{pattern}')")),
        Cell::Int(2)
    );
    let bad = files.write("bad.parquet", "PAR1 this is none PAR1");
    let error = refused(&pair.device, &format!("FROM parquet_schema('{bad}')"));
    assert!(error.to_string().contains("bad.parquet"), "{error}");
    Ok(())
}

#[test]
fn csv_files_tell_their_layout_and_the_call_that_says_it() -> Result<()> {
    let (files, pair) = (Files::new(), Pair::new());
    let path = files.write("t.csv", "a;b c\r\n1;'x;y'\r\n2;z\r\n");
    let sniffed = format!("FROM sniff_csv('{path}', quote => '''')");
    for (column, expected) in [
        ("Delimiter", Cell::Text(";".into())),
        ("Quote", Cell::Text("'".into())),
        ("NewLineDelimiter", Cell::Text("\\r\\n".into())),
        ("HasHeader", Cell::Int(1)),
        ("SkipRows", Cell::Int(0)),
        ("Columns[2].name", Cell::Text("b c".into())),
        ("Columns[1].type", Cell::Text("BIGINT".into())),
    ] {
        let column = column.split_once(['[', '.']).map_or(format!("\"{column}\""), |(name, _)| {
            format!("\"{name}\"{}", &column[name.len()..])
        });
        assert_eq!(
            scalar(&pair.device, &format!("SELECT {column} {sniffed}")),
            expected,
            "{column}"
        );
    }
    let Cell::Text(call) = scalar(&pair.device, &format!("SELECT \"Prompt\" {sniffed}")) else {
        panic!("no text")
    };
    let found = run(&pair.device, &call)?;
    assert!(found.equals(&run(&pair.device, &format!("FROM read_csv('{path}', quote => '''')"))?)?);
    Ok(())
}

#[test]
fn whole_files_are_values_and_patterns_are_lists_of_files() -> Result<()> {
    let (files, pair) = (Files::new(), Pair::new());
    let (one, two) = (files.write("a.sql", "SELECT 1"), files.write("b.sql", "é"));
    files.write("c.bin", [0xff, 0, 7]);
    let at = |name: &str| files.path(name).display().to_string();
    let names = format!("SELECT file FROM glob('{}') ORDER BY file", at("*.sql"));
    assert_eq!(run(&pair.device, &names)?.column("file")?.to_vec::<String>()?, [one.clone(), two]);
    assert_eq!(agree(&pair, &format!("FROM glob('{}')", at("*.none"))), 0);
    let query = format!("SELECT filename, content, size FROM read_text('{}')", at("*.sql"));
    assert_eq!(agree(&pair, &query), 2);
    let content = format!("SELECT content FROM read_text('{one}')");
    assert_eq!(scalar(&pair.device, &content), Cell::Text("SELECT 1".into()));
    let sizes = format!("SELECT sum(size) FROM read_blob(['{one}', '{}'])", at("c.bin"));
    assert_eq!(scalar(&pair.device, &sizes), Cell::Int(11));
    let bytes = format!("SELECT encode(content, 'hex') FROM read_blob('{}')", at("c.bin"));
    assert_eq!(scalar(&pair.cpu, &bytes), Cell::Text("ff0007".into()));
    let recent = format!("SELECT last_modified > TIMESTAMPTZ '2020-01-01' FROM read_blob('{one}')");
    assert_eq!(scalar(&pair.device, &recent), Cell::Int(1));
    for (query, message) in [
        (format!("FROM read_text('{}')", at("c.bin")), "read_blob"),
        (format!("FROM read_text('{}')", at("none.sql")), "none.sql"),
        (format!("FROM read_text('{}')", at("")), "directory"),
        ("FROM glob()".into(), "expected a file's path"),
        ("FROM glob('x', hidden => true)".into(), "no option named \"hidden\""),
        ("SELECT no FROM glob('x')".into(), "\"no\""),
        ("FROM globb('x')".into(), "did you mean glob?"),
    ] {
        let error = refused(&pair.device, &query).to_string();
        assert!(error.contains(message), "{query}: {error}");
    }
    Ok(())
}
