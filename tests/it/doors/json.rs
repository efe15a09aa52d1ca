//! Files of JSON: lines, and members of an array.

use std::path::Path;

use super::*;

#[test]
fn json_files_are_read() {
    let (files, pair) = (Files::new(), Pair::new());
    let json = files.write(
        "t.ndjson",
        "{\"id\": 1, \"s\": \"x\", \"l\": [1, 2]}\n{\"id\": 2, \"f\": 0.5}\n\n{}\n",
    );
    files.write("many/1.json", "{\"a\": 1}\n");
    files.write("many/2.json", "{\"b\": \"x\"}\n{\"a\": 2}\n");
    let many = files.path("many").display().to_string();
    for (query, rows) in [
        (format!("SELECT id, s, f FROM '{json}'"), 3),
        (format!("SELECT sum(id), count(*), max(f) FROM '{json}' WHERE id > 0"), 1),
        (format!("SELECT l FROM '{json}'"), 3),
        (format!("SELECT * FROM '{many}'"), 3),
        (format!("SELECT count(*) FROM read_json('{json}') j JOIN '{many}' t ON t.a = j.id"), 1),
    ] {
        assert_eq!(agree(&pair, &query), rows, "{query}");
    }
    // Changed files are read anew.
    let sum = format!("SELECT sum(id) FROM '{json}'");
    assert_eq!(scalar(&pair.device, &sum), Cell::Int(3));
    files.write("t.ndjson", "{\"id\": 7, \"other\": true}\n");
    assert_eq!(scalar(&pair.device, &sum), Cell::Int(7));
    agree(&pair, &format!("SELECT * FROM '{json}'"));
    for (name, content) in [("bad.json", "{\"a\": 1}\n{\"a\": \n"), ("none.json", "{}\n:")] {
        let path = files.write(name, content);
        let error = refused(&pair.device, &format!("SELECT * FROM '{path}'"));
        assert!(
            matches!(error.kind(), ErrorKind::File { path: of, .. } if of == Path::new(&path)),
            "{error}"
        );
    }
    // Members of an array, over several lines; mixed with lines in one table; in folders.
    let array =
        files.write("t.json", " \n[\n  {\"id\": 1,\n \"s\": \"[]},{\"},\n {\"id\": 2}\n]\n");
    assert_eq!(agree(&pair, &format!("SELECT * FROM '{array}' WHERE id > 0")), 2);
    files.write("mixed/1.json", "[{\"a\": 1}, {\"a\": 2}]");
    files.write("mixed/2.json", "{\"a\": 3}\n");
    let mixed = files.path("mixed").display().to_string();
    assert_eq!(scalar(&pair.device, &format!("SELECT sum(a) FROM '{mixed}'")), Cell::Int(6));
    assert_eq!(agree(&pair, &format!("SELECT * FROM '{mixed}'")), 3);
    files.write("hive/k=1/x.json", "[{\"a\": 1}]");
    files.write("hive/k=2/x.json", "{\"a\": 2}\n{\"a\": 3}\n");
    let hive = files.path("hive").display().to_string();
    assert_eq!(agree(&pair, &format!("SELECT k, sum(a) FROM '{hive}' GROUP BY k")), 2);
    // Many blocks.
    let members: Vec<String> =
        (0..300_000).map(|i| format!("{{\"a\": {i}, \"b\": \"some text in it\"}}")).collect();
    let large = files.write("large.json", format!("[{}]", members.join(",")));
    for session in [&pair.device, &pair.cpu] {
        assert_eq!(
            scalar(session, &format!("SELECT count(*) FROM '{large}' WHERE a % 2 = 1")),
            Cell::Int(150_000)
        );
    }
    for (name, content) in
        [("cut.json", "[{\"a\": 1},"), ("cut2.json", "[{\"a\": 1}"), ("text.json", "[1 2]")]
    {
        let path = files.write(name, content);
        let error = refused(&pair.device, &format!("SELECT * FROM '{path}'"));
        assert!(
            matches!(error.kind(), ErrorKind::File { path: of, .. } if of == Path::new(&path)),
            "{error}"
        );
    }
    let error = refused(&pair.device, &format!("SELECT * FROM read_json('{json}', delim => ';')"));
    assert!(
        matches!(error.kind(), ErrorKind::Plan { message, .. } if message.contains("delim")),
        "{error}"
    );
}

/// The rows of a file's text, as each engine reads them, and their types.
fn rows_of(pair: &Pair, path: &str) -> (Vec<Vec<Cell>>, Vec<String>) {
    let query = format!("SELECT * FROM '{path}'");
    agree(pair, &query);
    let frame = run(&pair.device, &query).expect("it runs");
    let schema = frame.schema();
    let types = schema.fields().iter().map(|field| field.data_type().to_string());
    (Rows::of(&frame).rows, types.collect())
}

fn text(text: &str) -> Cell {
    Cell::Text(text.into())
}

/// As DuckDB reads them; integers beyond 64 bits as CSV has them.
#[test]
fn json_of_every_layout_is_read() {
    let (files, pair) = (Files::new(), Pair::new());
    let (one, two) = (Cell::Int(1), Cell::Int(2));
    for (number, (content, expected)) in [
        ("{\"a\":1}\n{\"a\":\"x\"}\n", vec![vec![text("1")], vec![text("\"x\"")]]),
        (
            "{\"a\":[1, \"é\\\"\"]}\n{\"a\":{ \"b\" : null }}\n{\"a\":null}",
            vec![vec![text("[1,\"é\\\"\"]")], vec![text("{\"b\":null}")], vec![Cell::Null]],
        ),
        ("{\"a\":true}\n{\"a\":1}\n", vec![vec![text("true")], vec![text("1")]]),
        ("\u{feff}{\"a\":1}\n", vec![vec![one.clone()]]),
        ("\u{feff}[{\"a\":1}]", vec![vec![one.clone()]]),
        ("{\n \"a\": 1\n}\n{\n \"a\":\n2}", vec![vec![one.clone()], vec![two.clone()]]),
        (
            "{\"a\":1}\nnull\n{\"a\":2}\n",
            vec![vec![one.clone()], vec![Cell::Null], vec![two.clone()]],
        ),
        ("[{\"a\":1},\nnull]", vec![vec![one.clone()], vec![Cell::Null]]),
        ("[]", vec![]),
        ("[ ]\n", vec![]),
        (
            "{\"b\":1,\"a\":2}\n{\"a\":1,\"c\":1}",
            vec![
                vec![one.clone(), two.clone(), Cell::Null],
                vec![Cell::Null, one.clone(), one.clone()],
            ],
        ),
        (
            "{\"a\":9007199254740993}\n{\"a\":18446744073709551615}",
            vec![
                vec![Cell::Int(9_007_199_254_740_993)],
                vec![Cell::Int(18_446_744_073_709_551_615)],
            ],
        ),
        ("{\"a\":-0.5e1}", vec![vec![Cell::Float(-5.0)]]),
        ("{\"a\":null}", vec![vec![Cell::Null]]),
        ("{\"a\":{}}", vec![vec![text("{}")]]),
        // Rows that have no columns are the column json.
        ("[1, 2]", vec![vec![one.clone()], vec![two.clone()]]),
        ("1\n\"x\"\nnull\n", vec![vec![text("1")], vec![text("\"x\"")], vec![Cell::Null]]),
        ("{\"a\": 1}\n[1]\n", vec![vec![text("{\"a\":1}")], vec![text("[1]")]]),
        ("{}\n{}\n", vec![vec![text("{}")], vec![text("{}")]]),
        ("null\n", vec![vec![Cell::Null]]),
        (
            "{\"a\":NaN,\"b\":1}\n{\"a\":-Infinity,\"b\":2}\n{\"a\":1}",
            vec![
                vec![Cell::Float(f64::NAN), one.clone()],
                vec![Cell::Float(f64::NEG_INFINITY), two.clone()],
                vec![Cell::Float(1.0), Cell::Null],
            ],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let path = files.write(&format!("t{number}.json"), content);
        // NaN is itself there.
        assert_eq!(format!("{:?}", rows_of(&pair, &path).0), format!("{expected:?}"), "{content}");
    }
    // Fields of structs, too, come in the file's order; a list may have nulls among its structs.
    let nested = "{\"s\":{\"y\":1,\"x\":[{\"n\":1},null]}}\n{\"s\":null}\n";
    let path = files.write("nested.ndjson", nested);
    let query = format!("SELECT s['y'], s['x'][1]['n'], s['x'][2] IS NULL FROM '{path}'");
    assert_eq!(agree(&pair, &format!("SELECT * FROM '{path}'")), 2);
    let frame = run(&pair.cpu, &query).expect("it runs");
    assert_eq!(Rows::of(&frame).rows[0], [one.clone(), one.clone(), one.clone()]);
    let schema = run(&pair.cpu, &format!("SELECT * FROM '{path}'")).expect("it runs").schema();
    let DataType::Struct(fields) = schema.field(0).data_type() else { panic!("{schema:?}") };
    assert_eq!(fields.iter().map(|field| field.name().as_str()).collect::<Vec<_>>(), ["y", "x"]);
    let insert = files.write("names.ndjson", "{\"name\":\"anna\",\"city\":\"rome\"}\n");
    for session in [&pair.cpu, &pair.device] {
        session.execute("CREATE TABLE t (name TEXT, city TEXT)").expect("a table");
        session.execute(&format!("INSERT INTO t SELECT * FROM '{insert}'")).expect("a row");
        assert_eq!(scalar(session, "SELECT city FROM t"), text("rome"));
    }
}

/// Types follow from the values of all files together.
#[test]
fn json_of_several_files_has_types_that_hold_all() {
    let (files, pair) = (Files::new(), Pair::new());
    files.write("many/1.ndjson", "{\"a\":1,\"Fee\":1}\n");
    files.write("many/2.ndjson", "{\"fee\":0.5,\"a\":\"x\"}\n");
    files.write("many/3.ndjson", "");
    let many = files.path("many").display().to_string();
    let (rows, types) = rows_of(&pair, &many);
    assert_eq!(types, ["Utf8View", "Float64"]);
    assert_eq!(rows[1], [text("\"x\""), Cell::Float(0.5)]);
    let none = files.write("none.json", "");
    let error = refused(&pair.device, &format!("SELECT * FROM '{none}'"));
    assert!(error.to_string().contains("is empty"), "{error}");
}

#[test]
fn what_is_no_json_is_told_with_its_line() {
    let (files, pair) = (Files::new(), Pair::new());
    let rows = "{\"a\": 1}\n".repeat(100_000);
    for (number, (content, words)) in [
        ("{\"a\":1}\n{\"a\":tru}\n".to_string(), "line 2: a value is expected"),
        ("{\"a\":1}\n\n{\"a\":\"x}\n".into(), "line 3: a row does not end"),
        ("[\n{\"a\":1},\n{\"a\":1 \"b\":2}\n]".into(), "line 3: a comma or } is expected"),
        ("{\"a\":1},\n{}".into(), "line 1: a row is a value"),
        ("{\"a\":\"\\ud83d\"}".into(), "line 1: half of a character"),
        (format!("{rows}{{\"a\": 01}}\n{rows}"), "line 100001: a number begins with 0"),
        (format!("{{\"a\":{}1{}}}", "[".repeat(500), "]".repeat(500)), "nested deeper"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = files.write(&format!("t{number}.ndjson"), &content);
        for session in [&pair.cpu, &pair.device] {
            let error = refused(session, &format!("SELECT * FROM '{path}'"));
            let ErrorKind::File { path: of, message } = error.kind() else { panic!("{error:?}") };
            assert!(of == Path::new(&path) && message.contains(words), "{error}");
        }
    }
}

/// Strings that are all dates, or timestamps, are such, as in CSV files.
#[test]
fn dates_in_json_are_found() {
    let (files, pair) = (Files::new(), Pair::new());
    let json = "{\"d\":\"2024-02-29\",\"t\":\"2024-02-29 12:30\",\"z\":\"2024-02-29T12:30:00.5+0130\",\
                \"s\":\"2024-02-29\",\"l\":[\"2024-02-29\"],\"n\":{\"d\":\"1969-12-31\"}}\n\
                {\"t\":\"2024-03-01\",\"z\":\"9999-12-31T23:59:59Z\",\"s\":\"\"}\nnull\n";
    let csv = "d,t,z\n2024-02-29,2024-02-29 12:30,2024-02-29T12:30:00.5+0130\n\
               ,2024-03-01,9999-12-31T23:59:59Z\n";
    let (json, csv) = (files.write("t.ndjson", json), files.write("t.csv", csv));
    let (rows, types) = rows_of(&pair, &json);
    let (of_csv, csv_types) = rows_of(&pair, &csv);
    assert_eq!(types[..3], csv_types);
    assert_eq!(types[3], "Utf8View");
    assert_eq!(rows[0][..3], of_csv[0]);
    assert_eq!(rows[1][..3], of_csv[1]);
    let query = format!(
        "SELECT count(*) FROM '{json}' WHERE l[1] = DATE '2024-02-29' AND n['d'] < DATE '1970-01-01'"
    );
    assert_eq!(scalar(&pair.device, &query), Cell::Int(1));
    agree(&pair, &query);
}

#[test]
fn columns_of_json_may_be_given() {
    let (files, pair) = (Files::new(), Pair::new());
    let content = "{\"a\":\"7\",\"b\":{\"x\": \"1\"},\"c\":[1,\"2\"],\"d\":true,\"e\":\"x\"}\n\
                   null\n{\"a\":8,\"b\":null,\"other\":1}\n";
    let path = files.write("t.json", content);
    let query = format!(
        "SELECT a, b['x'] AS x, c[2] AS c, d, e, none FROM read_json('{path}', columns => \
         {{'a': 'SMALLINT', 'b': 'STRUCT(x INTEGER)', 'c': 'BIGINT[]', 'd': 'VARCHAR', 'e': 'JSON', \
         'none': 'DATE'}})"
    );
    assert_eq!(agree(&pair, &query), 3);
    let frame = run(&pair.cpu, &query).expect("it runs");
    assert_eq!(frame.schema().field(0).data_type(), &DataType::Int16);
    let (seven, one, two) = (Cell::Int(7), Cell::Int(1), Cell::Int(2));
    let rows = Rows::of(&frame).rows;
    assert_eq!(rows[0], [seven, one, two, text("true"), text("\"x\""), Cell::Null]);
    assert_eq!(rows[2][..2], [Cell::Int(8), Cell::Null]);
    // A nested value as a text.
    let query = format!("SELECT b FROM read_json('{path}', columns => {{'b': 'VARCHAR'}})");
    assert_eq!(scalar(&pair.device, &format!("{query} WHERE b > ''")), text("{\"x\":\"1\"}"));
    // What does not fit is an error with its line, or NULL.
    let bad = files.write("bad.json", "{\"a\":1}\n\n{\"a\":\"x\"}\n");
    let query = |more: &str| {
        format!("SELECT a FROM read_json('{bad}', columns => {{'a': 'INTEGER'}}{more})")
    };
    for session in [&pair.cpu, &pair.device] {
        let error = run(session, &query("")).expect_err("it is no integer").to_string();
        assert!(error.contains("bad.json: line 3: column \"a\": \"x\""), "{error}");
        let frame = run(session, &query(", ignore_errors => true")).expect("it runs");
        assert_eq!(Rows::of(&frame).rows, [[Cell::Int(1)], [Cell::Null]]);
    }
}

#[test]
fn json_has_the_functions_of_duckdb() {
    let (files, pair) = (Files::new(), Pair::new());
    let arrays = files.write("a.json", "[1, 2]\n[3, 4]\n");
    let rows = files.write("r.json", "{\"a\" : 1}\nnull\n");
    for (from, expected) in [
        (format!("read_json_auto('{rows}')"), vec![vec![Cell::Int(1)], vec![Cell::Null]]),
        (format!("read_ndjson_auto('{rows}')"), vec![vec![Cell::Int(1)], vec![Cell::Null]]),
        (
            format!("read_ndjson_objects('{rows}')"),
            vec![vec![text("{\"a\" : 1}")], vec![text("null")]],
        ),
        (
            format!("read_json_objects('{arrays}', format => 'nd')"),
            vec![vec![text("[1, 2]")], vec![text("[3, 4]")]],
        ),
    ] {
        let query = format!("SELECT * FROM {from}");
        agree(&pair, &query);
        assert_eq!(Rows::of(&run(&pair.device, &query).expect("it runs")).rows, expected, "{from}");
    }
    let lists = format!("SELECT sum(json[2]) FROM read_ndjson('{arrays}')");
    assert_eq!(scalar(&pair.device, &lists), Cell::Int(6));
    agree(&pair, &lists);
}

/// One row of nested lists; the coordinates of points and lines are of two kinds.
#[test]
fn geojson_is_one_row() {
    let (files, pair) = (Files::new(), Pair::new());
    let content = r#"{"type":"FeatureCollection","features":[
{"type":"Feature","properties":{"name":"a","n":1},"geometry":{"type":"Point","coordinates":[1.5,2]}},
{"type":"Feature","properties":{"name":"b"},"geometry":{"type":"LineString","coordinates":[[1, 2],[3,4]]}},
{"type":"Feature","properties":null,"geometry":null}]}"#;
    let path = files.write("map.geojson", content);
    assert_eq!(agree(&pair, &format!("SELECT * FROM '{path}'")), 1);
    let features = format!("SELECT unnest(features) AS f FROM '{path}'");
    for (of, expected) in [
        ("f['geometry']['coordinates'][1]", [text("1.5"), text("[1,2]"), Cell::Null]),
        ("f['properties']['name']", [text("a"), text("b"), Cell::Null]),
        ("f['properties']['n']", [Cell::Int(1), Cell::Null, Cell::Null]),
    ] {
        let query = format!("SELECT {of} AS v FROM ({features})");
        agree(&pair, &query);
        let rows = Rows::of(&run(&pair.cpu, &query).expect("it runs")).rows;
        assert_eq!(rows.concat(), expected, "{of}");
    }
}
