//! What the user is told when something is wrong, and that nothing more happens after it.

use crate::{DEVICES, Files, run_with_input, warpframe};

#[test]
fn an_unknown_column_has_a_caret_and_the_columns_there_are() {
    let expected = "\
error: no column named \"nobody\"; known: jetid, px, py, pz, E
  --> -c, line 2, column 12
    |
  2 |    jetid + nobody FROM jets
    |            ^^^^^^
";
    for device in DEVICES {
        let sql = "SELECT 1 AS one;\nSELECT px,"
            .replace("\nSELECT px,", " SELECT px,\n   jetid + nobody FROM jets");
        let run = warpframe(&["data/jets.csv", "--device", device, "--format", "csv", "-c", &sql]);
        assert_eq!(run.out, "one\n1\n");
        assert_eq!(run.failure(1), expected, "{device}");
    }
}

#[test]
fn an_unknown_table_has_a_caret_and_the_tables_there_are() {
    let files = Files::new();
    let script = files.write("q.sql", "-- é\n\tSELECT * FROM jet");
    let expected = format!(
        "error: no table named \"jet\"; known: jets\n  --> {script}, line 2, column 16\n    |\n  2 | \tSELECT * FROM jet\n    | \t              ^^^\nhint: did you mean jets?\n"
    );
    for device in DEVICES {
        let run = warpframe(&["data/jets.csv", "--device", device, "-f", &script]);
        assert_eq!(run.failure(1), expected, "{device}");
    }
    for sql in ["DESCRIBE jet", "DROP TABLE jet", "COPY jet TO 'x.csv'"] {
        let messages = warpframe(&["data/jets.csv", "--device", "cpu", "-c", sql]).failure(1);
        assert!(
            messages.contains("no table named \"jet\"; known: jets\n  --> -c, line 1, column "),
            "{messages}"
        );
        assert!(messages.ends_with(" ^^^\nhint: did you mean jets?\n"), "{messages}");
    }
}

#[test]
fn a_name_in_the_wrong_case_gets_a_hint() {
    let messages =
        warpframe(&["data/jets.csv", "--device", "cpu", "-c", "SELECT sum(E) FROM jets"])
            .failure(1);
    assert!(
        messages.ends_with(
            "hint: write \"E\" with its quotes: a name without them is taken in lower case\n"
        ),
        "{messages}"
    );
}

#[test]
fn text_that_does_not_parse_has_a_caret() {
    let cases = [
        ("SELECT 1 +", "column 11"),
        ("SELECT FROM WHERE", "column 13"),
        ("SELEC 1", "column 1"),
        ("SELECT 'open", "column 8"),
        ("SELECT (1", "column 10"),
        ("CREATE MACRO m AS 1", "column 8"),
    ];
    for (sql, column) in cases {
        let messages = warpframe(&["--device", "cpu", "-c", sql]).failure(1);
        assert!(
            messages.contains(&format!("  --> -c, line 1, {column}\n    |\n  1 | {sql}\n")),
            "{sql}: {messages}"
        );
        let carets = messages.lines().filter(|line| line.trim_end().ends_with('^')).count();
        assert_eq!(carets, 1, "{messages}");
    }
}

#[test]
fn the_first_error_ends_the_run() {
    let input =
        "SELECT 1 AS x;\nSELECT 1 / (x - 1) AS y FROM (SELECT 1 AS x) AS t;\nSELECT 3 AS x;";
    for device in DEVICES {
        let run = run_with_input(&["--device", device, "--format", "csv"], input);
        assert_eq!(run.out, "x\n1\n", "{device}");
        let messages = run.failure(1);
        assert!(messages.to_lowercase().contains("zero"), "{messages}");
        assert!(messages.contains("standard input"), "{messages}");
    }
    let run = warpframe(&[
        "--device",
        "cpu",
        "--format",
        "csv",
        "-c",
        "SELECT nothing",
        "-c",
        "SELECT 1",
    ]);
    assert_eq!(run.out, "");
    run.failure(1);
}

#[test]
fn a_corrupt_parquet_file_is_named() {
    let files = Files::new();
    let whole = std::fs::read(crate::root().join("data/tpch/nation.parquet")).unwrap();
    let truncated = files.write("truncated.parquet", &whole[..whole.len() / 2]);
    let noise = files.write("noise.parquet", "this is no Parquet file at all");
    let empty = files.write("empty.parquet", "");
    for device in DEVICES {
        for path in [&truncated, &noise, &empty] {
            let messages = warpframe(&[path, "--device", device, "-c", "SELECT 1"]).failure(1);
            assert!(messages.starts_with(&format!("error: {path}: ")), "{messages}");
        }
    }
}

#[test]
fn damage_inside_a_parquet_file_is_found_by_the_query_that_reads_it() {
    let files = Files::new();
    let mut bytes = std::fs::read(crate::root().join("data/tpch/customer.parquet")).unwrap();
    // The first column's pages; the description at the end stays whole.
    bytes[4..4096].fill(0xA5);
    let path = files.write("customer.parquet", bytes);
    for device in DEVICES {
        let messages =
            warpframe(&[&path, "--device", device, "-c", "SELECT sum(c_custkey) FROM customer"])
                .failure(1);
        assert!(messages.starts_with(&format!("error: {path}: ")), "{messages}");
    }
}

#[test]
fn a_bad_cell_in_a_csv_file_is_named_with_its_line() {
    let files = Files::new();
    let mut text = String::from("id,price\n");
    // Between the places that types are inferred from.
    let price = |id: usize| if id == 112_000 { "cheap".to_string() } else { id.to_string() };
    (0..200_000).for_each(|id| text.push_str(&format!("{id},{}\n", price(id))));
    let path = files.write("prices.csv", text);
    for device in DEVICES {
        let run = warpframe(&[&path, "--device", device, "-c", "SELECT sum(price) FROM prices"]);
        assert_eq!(run.out, "");
        let messages = run.failure(1);
        assert!(messages.starts_with(&format!("error: {path}: line 112002")), "{messages}");
        assert!(messages.contains("cheap") && messages.contains("\"price\""), "{messages}");
    }
}

#[test]
fn strictly_a_part_for_the_cpu_is_an_error() {
    let sql = "SELECT jetid, arrow_cast(px, 'Decimal256(50, 2)') AS wide FROM jets LIMIT 1";
    let messages =
        warpframe(&["data/jets.csv", "--device", "sim", "--strict", "-c", sql]).failure(1);
    assert!(messages.starts_with("error: not supported: on the device: "), "{messages}");
    let run = warpframe(&["data/jets.csv", "--device", "sim", "--format", "csv", "-c", sql]);
    assert_eq!(run.results().lines().count(), 2);
}

#[test]
fn statements_the_command_does_not_know_are_named() {
    let messages = warpframe(&[
        "--device",
        "cpu",
        "-c",
        "MERGE INTO t USING u ON a = b WHEN MATCHED THEN DELETE",
    ]);
    let messages = messages.failure(1);
    assert!(messages.starts_with("error: not supported: the statement MERGE"), "{messages}");
}

#[test]
fn unreadable_standard_input_is_an_error() {
    use std::process::Stdio;
    let mut command = crate::command(&["--device", "cpu"]);
    let directory = std::fs::File::open(crate::root()).unwrap();
    let output = command.stdin(Stdio::from(directory)).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: standard input: "));
}

#[test]
fn where_there_are_no_tables_none_are_listed() {
    let messages = warpframe(&["--device", "cpu", "-c", "FROM t"]).failure(1);
    assert!(
        messages.starts_with("error: no table named \"t\"; there are no tables\n"),
        "{messages}"
    );
}
