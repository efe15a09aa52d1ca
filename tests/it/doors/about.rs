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
    // Maps are not on the device.
    assert_eq!(agree(&pair, &format!("SELECT * EXCLUDE (key_value_metadata) FROM {metadata}")), 18);
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

/// Columns and types of DuckDB 2.0.1.
const OF_DUCKDB: [(&str, &str); 4] = [
    (
        "parquet_metadata",
        "file_name VARCHAR, row_group_id BIGINT, row_group_num_rows BIGINT, \
         row_group_num_columns BIGINT, row_group_bytes BIGINT, column_id BIGINT, \
         file_offset BIGINT, num_values BIGINT, path_in_schema VARCHAR, type VARCHAR, \
         stats_min VARCHAR, stats_max VARCHAR, stats_null_count BIGINT, \
         stats_distinct_count BIGINT, stats_min_value VARCHAR, stats_max_value VARCHAR, \
         compression VARCHAR, encodings VARCHAR, index_page_offset BIGINT, \
         dictionary_page_offset BIGINT, data_page_offset BIGINT, total_compressed_size \
         BIGINT, total_uncompressed_size BIGINT, key_value_metadata MAP(BLOB, BLOB), \
         bloom_filter_offset BIGINT, bloom_filter_length BIGINT, min_is_exact BOOLEAN, \
         max_is_exact BOOLEAN, row_group_compressed_bytes BIGINT, geo_bbox STRUCT(xmin \
         DOUBLE, xmax DOUBLE, ymin DOUBLE, ymax DOUBLE, zmin DOUBLE, zmax DOUBLE, mmin \
         DOUBLE, mmax DOUBLE), geo_types VARCHAR[], encoding_stats STRUCT(page_type \
         VARCHAR, \"encoding\" VARCHAR, count INTEGER)[], stats_nan_count BIGINT, \
         column_index_offset BIGINT, column_index_length BIGINT, offset_index_offset \
         BIGINT, offset_index_length BIGINT",
    ),
    (
        "parquet_schema",
        "file_name VARCHAR, name VARCHAR, type VARCHAR, type_length VARCHAR, \
         repetition_type VARCHAR, num_children BIGINT, converted_type VARCHAR, scale \
         BIGINT, precision BIGINT, field_id BIGINT, logical_type VARCHAR, duckdb_type \
         VARCHAR, column_id BIGINT",
    ),
    (
        "parquet_file_metadata",
        "file_name VARCHAR, created_by VARCHAR, num_rows BIGINT, num_row_groups BIGINT, \
         format_version BIGINT, encryption_algorithm VARCHAR, footer_signing_key_metadata \
         VARCHAR, file_size_bytes UBIGINT, footer_size UBIGINT, column_orders VARCHAR[]",
    ),
    ("parquet_kv_metadata", "file_name VARCHAR, key BLOB, value BLOB"),
];

#[test]
fn what_parquet_files_tell_has_the_columns_of_duckdb() -> Result<()> {
    let (files, pair) = (Files::new(), Pair::new());
    let path = files.path("t.parquet").display().to_string();
    let rows = "SELECT i % 3 AS i, 'x' AS s FROM range(0, 10) t(i)";
    pair.cpu.execute(&format!("COPY ({rows}) TO '{path}'"))?;
    for (function, expected) in OF_DUCKDB {
        let frame = run(&pair.cpu, &format!("FROM {function}('{path}')"))?;
        let schema = frame.schema();
        let columns = schema.fields().iter().map(|field| {
            format!("{} {}", field.name(), warpframe::sql::type_name(field.data_type()))
        });
        let found = columns.collect::<Vec<_>>().join(", ");
        // Of field names some are words of one parser and not of the other.
        assert_eq!(found.replace('"', ""), expected.replace('"', ""), "{function}");
    }
    let of = |what: &str| {
        let query = format!("SELECT {what} FROM parquet_metadata('{path}') WHERE column_id = 0");
        scalar(&pair.device, &query)
    };
    assert_eq!(of("len(encoding_stats)"), Cell::Int(2));
    let dictionary = "encoding_stats[1]['page_type'] || ' ' || encoding_stats[1]['count']";
    assert_eq!(of(dictionary), Cell::Text("DICTIONARY_PAGE 1".into()));
    assert_eq!(of("encoding_stats[2]['encoding']"), Cell::Text("RLE_DICTIONARY".into()));
    for none in ["geo_bbox", "geo_types", "stats_nan_count"] {
        assert_eq!(of(&format!("{none} IS NULL")), Cell::Int(1), "{none}");
    }
    let orders = format!("SELECT len(column_orders) FROM parquet_file_metadata('{path}')");
    assert_eq!(scalar(&pair.device, &orders), Cell::Int(2));
    Ok(())
}
