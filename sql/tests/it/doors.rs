//! Files that SQL and the command line name, and files that COPY writes.

use crate::{DEVICES, Files, run_with_input, warpframe};

fn csv(arguments: &[&str]) -> String {
    warpframe(&[arguments, &["--device", "cpu", "--format", "csv"]].concat()).results()
}

#[test]
fn queries_name_files() {
    for device in DEVICES {
        let sql = "SELECT count(*) AS n FROM 'data/jets.csv'; DESCRIBE 'data/tpch/region.parquet'";
        let text = warpframe(&["--device", device, "--format", "csv", "-c", sql]).results();
        assert!(text.starts_with("n\n100000\ncolumn,type,nullable\nr_regionkey,"), "{text}");
    }
    let messages = warpframe(&["--device", "cpu", "-c", "SELECT 1\nFROM 'nowhere.csv'"]).failure(1);
    assert!(messages.contains("nowhere.csv") && messages.contains("-c, line 2, column 6"), "{messages}");
}

#[test]
fn options_of_csv_files() {
    let files = Files::new();
    let table = files.write("t.tbl", "1|x|NA\n2|'y|z'|7\n");
    let query = "SELECT column_1, column_2, column_3 FROM t ORDER BY 1";
    let given = ["--delimiter", "|", "--quote", "'", "--no-header", "--nullstr", "NA"];
    let expected = "column_1,column_2,column_3\n1,x,\n2,y|z,7\n";
    assert_eq!(csv(&[&given[..], &[&table, "-c", query]].concat()), expected);
    let given = ["--csv", "sep=|", "--csv", "types=a VARCHAR", "--csv", "columns=a TEXT, b TEXT, c TEXT"];
    let schema = csv(&[&given[..], &["--no-header", &table, "-c", "DESCRIBE t"]].concat());
    assert_eq!(schema, "column,type,nullable\na,Utf8View,true\nb,Utf8View,true\nc,Utf8View,true\n");
    for (wrong, expected) in [
        (&["--csv", "colour=red"][..], "no option named \"colour\""),
        (&["--delimiter", ";;"], "one ASCII character"),
        (&["--csv", "skip"], "OPTION=VALUE"),
        (&["--header", "--no-header"], "cannot be used with"),
    ] {
        let messages = warpframe(&[wrong, &[&table, "-c", "SELECT 1"]].concat()).failure(2);
        assert!(messages.contains(expected), "{messages}");
    }
}

#[test]
fn standard_input_is_a_table() {
    let input = "a;b\n1;x\n2;y\n";
    let arguments = ["-", "--device", "cpu", "--format", "csv", "-c"];
    let query = "SELECT sum(a) AS s, max(b) AS m FROM stdin; SELECT count(*) AS n FROM stdin";
    let run = run_with_input(&[&arguments[..], &[query]].concat(), input);
    assert_eq!(run.results(), "s,m\n3,y\nn\n2\n");
    let messages = run_with_input(&["-", "--device", "cpu"], input).failure(2);
    assert!(messages.contains("give SQL by -c or -f"), "{messages}");
    let messages = run_with_input(&[&arguments[..], &["SELECT 1"]].concat(), "").failure(1);
    assert!(messages.contains("is empty"), "{messages}");
}

#[test]
fn external_tables() {
    let files = Files::new();
    let table = files.write("t.dat", "1;x\n2;y\n");
    let create = format!(
        "CREATE EXTERNAL TABLE t (a BIGINT, b TEXT) STORED AS CSV LOCATION '{table}' OPTIONS (delim ';', header false)"
    );
    let sql = format!("{create}; SELECT sum(a) AS s FROM t; DROP TABLE t; SHOW TABLES");
    assert_eq!(csv(&["-c", &sql]), "s\n3\ntable\n");
    let messages = warpframe(&["--device", "cpu", "-c", &format!("{create}; {create}")]).failure(1);
    assert!(messages.contains("CREATE OR REPLACE"), "{messages}");
}

#[test]
fn files_are_written_as_options_say() {
    let files = Files::new();
    let copy = |name: &str, options: &str| {
        let path = files.path(name);
        let sql = format!("COPY (SELECT 1 AS a, 'x;y' AS b, NULL AS c) TO '{path}' {options}");
        assert_eq!(csv(&["-c", &sql]), "");
        path
    };
    let read = |path: &str| std::fs::read_to_string(path).expect("it was written");
    assert_eq!(read(&copy("a.csv", "(HEADER false, DELIMITER ';', QUOTE '''', NULL 'NA')")), "1;'x;y';NA\n");
    assert_eq!(read(&copy("a.tsv", "")), "a\tb\tc\n1\tx;y\t\n");
    assert_eq!(read(&copy("a.out", "STORED AS CSV OPTIONS ('format.has_header' 'false')")), "1,x;y,\n");
    let snappy = copy("a.parquet", "(FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE 10)");
    let gzip = copy("b.parquet", "(COMPRESSION gzip, COMPRESSION_LEVEL 9)");
    for path in [snappy, gzip] {
        assert_eq!(csv(&["-c", &format!("SELECT a, b FROM '{path}'")]), "a,b\n1,x;y\n");
    }
    for (options, expected) in [
        ("(COMPRESSION zip)", "one of zstd, snappy"),
        ("(COMPRESSION snappy, COMPRESSION_LEVEL 3)", "has no levels"),
        ("(HEADER true)", "Parquet has no option named \"header\""),
        ("(ROW_GROUP_SIZE 0)", "a number of rows"),
    ] {
        let sql = format!("COPY (SELECT 1) TO '{}' {options}", files.path("c.parquet"));
        let messages = warpframe(&["--device", "cpu", "-c", &sql]).failure(1);
        assert!(messages.contains(expected), "{messages}");
    }
}
