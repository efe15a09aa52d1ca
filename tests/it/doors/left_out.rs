//! Files and rows that are left out.

use super::*;

fn notes(session: &Session) -> String {
    session.take_file_notes().join("\n")
}

#[test]
fn files_without_a_byte_are_left_out_among_others() {
    let (files, pair) = (Files::new(), Pair::new());
    files.write("csv/1.csv", "a\n1\n");
    files.write("csv/2.csv", "");
    files.write("csv/3.csv", "");
    files.write("json/1.json", "{\"a\":1}");
    files.write("json/2.json", "");
    files.parquet("p1.parquet", "SELECT 1 AS a");
    files.write("p2.parquet", "");
    let parquet = files.path("p*.parquet").display().to_string();
    let folder = |name: &str| files.path(name).display().to_string();
    for (path, told) in
        [(folder("csv"), "2 files of"), (folder("json"), "1 file of"), (parquet, "1 file of")]
    {
        agree(&pair, &format!("SELECT a FROM '{path}'"));
        for session in [&pair.cpu, &pair.device] {
            assert_eq!(scalar(session, &format!("SELECT sum(a) FROM '{path}'")), Cell::Int(1));
            let told_of = notes(session);
            assert!(told_of.contains(told) && told_of.contains("is empty"), "{path}: {told_of}");
        }
    }
    let alone = files.path("csv/2.csv").display().to_string();
    assert!(refused(&pair.cpu, &format!("FROM '{alone}'")).to_string().contains("is empty"));
    assert_eq!(notes(&pair.cpu), "");
}

#[test]
fn bad_files_are_left_out_where_that_is_said() {
    let (files, pair) = (Files::new(), Pair::new());
    files.parquet("k=1/1.parquet", "SELECT 1 AS a");
    files.write("k=2/2.parquet", "PAR1 and no footer PAR1");
    files.write("k=3/3.parquet", "no Parquet at all");
    files.write("json/1.json", "{\"a\":1}");
    files.write("json/2.json", "[{\"a\":1},\n{\"a\":");
    files.write("arrow/1.arrow", "no Arrow");
    for (from, told) in [
        (format!("read_parquet('{}/k*/*'", files.path("").display()), "2 files of"),
        (format!("read_json('{}'", files.path("json").display()), "line 2"),
    ] {
        for session in [&pair.cpu, &pair.device] {
            refused(session, &format!("SELECT * FROM {from})"));
            let query = format!("SELECT sum(a) FROM {from}, ignore_errors => true)");
            assert_eq!(scalar(session, &query), Cell::Int(1));
            let told_of = notes(session);
            assert!(told_of.contains(told), "{told_of}");
        }
    }
    let folders =
        format!("read_parquet('{}/k*/*', ignore_errors => true)", files.path("").display());
    assert_eq!(scalar(&pair.device, &format!("SELECT k FROM {folders}")), Cell::Int(1));
    // One alone stays an error.
    let arrow = files.path("arrow").display().to_string();
    refused(&pair.cpu, &format!("FROM read_arrow('{arrow}', ignore_errors => true)"));
}

#[test]
fn bad_rows_are_left_out_of_csv_files_whichever_columns_are_read() {
    let (files, pair) = (Files::new(), Pair::new());
    let content =
        b"a,b,c\n1,2024-01-01,x\nx,2024-01-01,y\n3,never,z\n4,2024-01-04\n5,,\xff\n6,,w\n";
    let path = files.write("t.csv", content);
    let from = format!(
        "read_csv('{path}', types => {{'a': 'INTEGER', 'b': 'DATE'}}, ignore_errors => true)"
    );
    for session in [&pair.cpu, &pair.device] {
        for (what, expected) in [("count(*)", 2), ("sum(a)", 7), ("count(c)", 2), ("count(b)", 1)] {
            let query = format!("SELECT {what} FROM {from}");
            assert_eq!(scalar(session, &query), Cell::Int(expected), "{what}");
        }
        let told = notes(session);
        assert!(told.contains("4 rows of") && told.contains("t.csv"), "{told}");
        let strict = from.replace(", ignore_errors => true", ", ragged => 'skip'");
        let error = run(session, &format!("SELECT sum(a) FROM {strict}")).expect_err("x is none");
        assert!(error.to_string().contains("line 3"), "{error}");
    }
    agree(&pair, &format!("SELECT * FROM {from}"));
}

#[test]
fn bad_lines_are_left_out_of_json_files_whichever_columns_are_read() {
    let (files, pair) = (Files::new(), Pair::new());
    let content =
        b"{\"a\":1,\"c\":\"x\"}\n{\"a\":\n{\"a\":3}}\n\n{\"a\":\"\xff\"}\nnull\n{\"a\":6}\r\nx";
    let path = files.write("t.json", content);
    for from in [format!("read_json('{path}'"), format!("read_ndjson('{path}'")] {
        let query = |what: &str| format!("SELECT {what} FROM {from}, ignore_errors => true)");
        for session in [&pair.cpu, &pair.device] {
            let counts = [("count(*)", 3), ("sum(a)", 7), ("count(c)", 1), ("max(a)", 6)];
            for (what, expected) in counts {
                assert_eq!(scalar(session, &query(what)), Cell::Int(expected), "{what}");
            }
            let told = notes(session);
            assert!(told.contains("4 rows of") && told.contains("t.json"), "{told}");
            let error = refused(session, &format!("SELECT sum(a) FROM {from})")).to_string();
            assert!(error.contains("t.json: line "), "{error}");
        }
        agree(&pair, &query("*"));
    }
    // Those of a file among others, and types that are given.
    files.write("d/1.json", "{\"a\":1}\n{\n");
    files.write("d/2.json", "{\"a\":\"x\"}\n");
    files.write("d/3.json", "{\n\"a\":2}{");
    let folder = files.path("d").display().to_string();
    let options = "columns => {'a': 'INTEGER'}, ignore_errors => true";
    for session in [&pair.cpu, &pair.device] {
        let query = format!("SELECT count(*) FROM read_json('{folder}', {options})");
        assert_eq!(scalar(session, &query), Cell::Int(2));
        let told = notes(session);
        assert!(told.contains("1 row of") && told.contains("1 file of"), "{told}");
    }
}

#[test]
fn json_whose_rows_do_not_stand_in_lines_is_refused_as_a_whole() {
    let (files, pair) = (Files::new(), Pair::new());
    for content in [
        "[{\"a\":1},\n{\"a\":2\n]",
        "[{\"a\":1}]\n[",
        "{\n\"a\": 1\n}\n{\n\"a\": }\n",
        "{\"l\":[\n{\"a\":1},\n{\"a\":2}\n",
        "garbage\n{\"a\":1}\n",
    ] {
        let path = files.write("t.json", content);
        refused(&pair.cpu, &format!("FROM read_json('{path}', ignore_errors => true)"));
        assert_eq!(notes(&pair.cpu), "");
    }
    // What is said to be lines is.
    let path = files.write("t.json", "garbage\n{\"a\":1}\n");
    let query = format!("SELECT sum(a) FROM read_ndjson('{path}', ignore_errors => true)");
    assert_eq!(scalar(&pair.device, &query), Cell::Int(1));
    let path = files.write("t.json", "garbage\n");
    refused(&pair.cpu, &format!("FROM read_ndjson('{path}', ignore_errors => true)"));
}
