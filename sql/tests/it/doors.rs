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
    assert!(
        messages.contains("nowhere.csv") && messages.contains("-c, line 2, column 6"),
        "{messages}"
    );
}

#[test]
fn options_of_csv_files() {
    let files = Files::new();
    let table = files.write("t.tbl", "1|x|NA\n2|'y|z'|7\n");
    let query = "SELECT column_1, column_2, column_3 FROM t ORDER BY 1";
    let given = ["--delimiter", "|", "--quote", "'", "--no-header", "--nullstr", "NA"];
    let expected = "column_1,column_2,column_3\n1,x,\n2,y|z,7\n";
    assert_eq!(csv(&[&given[..], &[&table, "-c", query]].concat()), expected);
    let given = [
        "--read-csv",
        "sep=|",
        "--read-csv",
        "types=a VARCHAR",
        "--read-csv",
        "columns=a TEXT, b TEXT, c TEXT",
    ];
    let schema = csv(&[&given[..], &["--no-header", &table, "-c", "DESCRIBE t"]].concat());
    assert_eq!(schema, "column,type,nullable\na,VARCHAR,true\nb,VARCHAR,true\nc,VARCHAR,true\n");
    for (wrong, expected) in [
        (&["--read-csv", "colour=red"][..], "no option named \"colour\""),
        (&["--delimiter", ";;"], "one ASCII character"),
        (&["--read-csv", "skip"], "OPTION=VALUE"),
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
    assert!(messages.contains("standard input: is empty"), "{messages}");
    let messages =
        run_with_input(&[&arguments[..], &["SELECT 1"]].concat(), "a,b\n1,2\n3\n").failure(1);
    assert!(messages.contains("standard input: line 3"), "{messages}");
    // By its path, too, and of another format.
    let json = "{\"a\":1}\n{\"a\":2}\n";
    let query = "SELECT sum(a) AS s FROM stdin";
    let from = "SELECT sum(a) AS s FROM read_ndjson('/dev/stdin')";
    for arguments in [
        &["-", "--input-format", "ndjson", "-c", query][..],
        &["/dev/stdin", "--input-format", "json", "-c", query],
        &["-c", from],
    ] {
        let run = run_with_input(&[arguments, &["--device", "cpu", "--csv"]].concat(), json);
        assert_eq!(run.results(), "s\n3\n", "{arguments:?}");
    }
    let messages = run_with_input(
        &["-", "--input-format", "json", "--device", "cpu", "-c", query],
        "{\"a\":1}\n{\"a\":tru}\n",
    );
    let messages = messages.failure(1);
    assert!(messages.contains("standard input: line 2"), "{messages}");
}

#[test]
fn addresses_on_the_command_line_are_told() {
    for address in ["s3://bucket/x.parquet", "https://example.com/data"] {
        let messages = warpframe(&[address, "--device", "cpu", "-c", "SELECT 1"]).failure(1);
        assert!(messages.contains("nothing is read or written over"), "{messages}");
    }
}

#[test]
fn what_is_left_out_is_noted() {
    let files = Files::new();
    let good = files.write("1.csv", "a\n1\n");
    files.write("2.csv", "");
    let folder = std::path::Path::new(&good).parent().expect("it has one").display().to_string();
    let query = format!("SELECT count(*) AS n FROM '{folder}'");
    let run = warpframe(&["--device", "cpu", "--csv", "-c", &query]);
    assert!(run.messages.contains("note: 1 file of"), "{}", run.messages);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "n\n1\n"));
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
    assert_eq!(
        read(&copy("a.csv", "(HEADER false, DELIMITER ';', QUOTE '''', NULL 'NA')")),
        "1;'x;y';NA\n"
    );
    assert_eq!(read(&copy("a.tsv", "")), "a\tb\tc\n1\tx;y\t\n");
    assert_eq!(
        read(&copy("a.out", "STORED AS CSV OPTIONS ('format.has_header' 'false')")),
        "1,x;y,\n"
    );
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
        ("(COMPRESSION_LEVEL 99)", "compression_level 99: valid compression range 1..=22 exceeded"),
    ] {
        let sql = format!("COPY (SELECT 1) TO '{}' {options}", files.path("c.parquet"));
        let messages = warpframe(&["--device", "cpu", "-c", &sql]).failure(1);
        assert!(messages.contains(expected), "{messages}");
    }
}

#[test]
fn json_and_arrow_are_written_and_read() {
    let files = Files::new();
    let rows = "SELECT * FROM (VALUES (1, 'x', DATE '2024-02-29'), (2, NULL, NULL)) t(a, b, c)";
    for (name, options) in [
        ("t.ndjson", ""),
        ("t.json", "(ARRAY)"),
        ("t.arrow", "(COMPRESSION zstd)"),
        ("t.arrows", "(COMPRESSION lz4)"),
        ("t.feather", ""),
        ("t.bin", "(FORMAT arrow)"),
    ] {
        let path = files.path(name);
        let read =
            if name == "t.bin" { format!("read_arrow('{path}')") } else { format!("'{path}'") };
        let sql = format!(
            "COPY ({rows}) TO '{path}' {options}; SELECT a, b, CAST(c AS DATE) AS c FROM {read} ORDER BY a"
        );
        assert_eq!(csv(&["-c", &sql]), "a,b,c\n1,x,2024-02-29\n2,,\n", "{name}");
    }
    let text = std::fs::read_to_string(files.path("t.ndjson")).expect("it was written");
    assert_eq!(
        text,
        "{\"a\":1,\"b\":\"x\",\"c\":\"2024-02-29\"}\n{\"a\":2,\"b\":null,\"c\":null}\n"
    );
    // As a table of the command line, and on standard input.
    assert_eq!(csv(&[&files.path("t.arrow"), "-c", "SELECT sum(a) AS s FROM t"]), "s\n3\n");
    let stream = std::fs::read(files.path("t.arrows")).expect("it was written");
    let mut command = crate::command(&[
        "-",
        "--device",
        "cpu",
        "--format",
        "csv",
        "-c",
        "SELECT sum(a) AS s FROM stdin",
    ]);
    command.stdin(std::fs::File::open(files.path("t.arrows")).expect("it was written"));
    let output = command.output().expect("it runs");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "s\n3\n",
        "{} bytes: {output:?}",
        stream.len()
    );
    for (options, expected) in [
        ("'t.json' (HEADER true)", "JSON has no option named \"header\""),
        ("'t.arrow' (COMPRESSION gzip)", "one of uncompressed, none, lz4, lz4_frame, zstd"),
        ("'t.xlsx'", "COPY writes CSV, Parquet, JSON and Arrow"),
    ] {
        let messages =
            warpframe(&["--device", "cpu", "-c", &format!("COPY (SELECT 1) TO {options}")])
                .failure(1);
        assert!(messages.contains(expected), "{messages}");
    }
}

#[test]
fn rows_are_written_to_folders_by_their_values() {
    let files = Files::new();
    let rows = "SELECT * FROM (VALUES (1, 'a/b', 10), (2, NULL, 20), (1, 'ü=', 30), (NULL, '', 40)) t(k, s, n)";
    for (at, format) in ["parquet", "csv", "ndjson", "arrow", "arrows"].into_iter().enumerate() {
        let path = files.path(&format!("parts{at}"));
        let copy = format!("COPY ({rows}) TO '{path}' (FORMAT {format}, PARTITION_BY (k, s))");
        assert_eq!(csv(&["-c", &copy]), "", "{format}");
        let file =
            std::path::Path::new(&path).join("k=1").join("s=a%2Fb").join(format!("data.{format}"));
        assert!(file.is_file(), "{file:?}");
        let read =
            csv(&["-c", &format!("SELECT k, s, length(s) AS l, n FROM '{path}' ORDER BY n")]);
        assert_eq!(read, "k,s,l,n\n1,a/b,3,10\n2,,,20\n1,ü=,2,30\n,\"\",0,40\n", "{format}");
        let messages = warpframe(&["--device", "cpu", "-c", &copy]).failure(1);
        assert!(messages.contains("a directory that is not empty"), "{messages}");
    }
    let path = files.path("csv");
    let copy = format!("COPY ({rows}) TO '{path}' STORED AS CSV PARTITIONED BY (k)");
    assert_eq!(csv(&["-c", &copy]), "");
    let file = std::path::Path::new(&path).join("k=__HIVE_DEFAULT_PARTITION__").join("data.csv");
    assert_eq!(std::fs::read_to_string(file).expect("it was written"), "s,n\n\"\",40\n");
    for (query, expected) in [
        ("COPY (SELECT 1 AS a, 2 AS b) TO 'no' (FORMAT csv, PARTITION_BY (c))", "\"c\""),
        (
            "COPY (SELECT 1 AS a) TO 'no' (FORMAT csv, PARTITION_BY (a))",
            "all columns make partitions",
        ),
        (
            "COPY (SELECT 1 AS a, 0.5 AS b) TO 'no' (FORMAT csv, PARTITION_BY (b))",
            "partitions by the column \"b\"",
        ),
        (
            "COPY (SELECT 1 AS a, '__HIVE_DEFAULT_PARTITION__' AS b) TO 'no' (FORMAT csv, PARTITION_BY (b))",
            "names the folder of NULL",
        ),
    ] {
        let messages = warpframe(&["--device", "cpu", "-c", query]).failure(1);
        assert!(messages.contains(expected), "{messages}");
    }
    let left: Vec<_> = std::fs::read_dir(files.path("")).expect("it is there").flatten().collect();
    assert_eq!(left.len(), 6, "nothing else is left: {left:?}");
}

#[test]
fn files_are_copied_into_tables() {
    let files = Files::new();
    let csv_file = files.write("t.csv", "B,a\nx,7\n,8\n");
    let bare = files.write("bare.csv", "5,five\n");
    let json = files.write("t.ndjson", "{\"a\": 9, \"b\": \"z\"}\n{\"a\": 10}\n");
    let create = "CREATE TABLE t AS SELECT arrow_cast(1, 'Int8') AS a, 'one' AS b";
    for device in DEVICES {
        let sql = format!(
            "{create}; COPY t FROM '{csv_file}'; COPY t FROM '{bare}' (HEADER false); COPY t FROM '{json}'; \
             SELECT * FROM t ORDER BY a"
        );
        let text = warpframe(&["--device", device, "--format", "csv", "-c", &sql]).results();
        assert_eq!(text, "a,b\n1,one\n5,five\n7,x\n8,\n9,z\n10,\n");
    }
    for (name, content, expected) in [
        ("a.csv", "a,b\n300,x\n", "300"),
        ("b.csv", "a,c\n3,x\n", "column \"c\" is none of table \"t\""),
        ("c.ndjson", "{\"a\": 1.5}\n", "column \"a\" is Float64, and Int8 in table \"t\""),
        ("d.ndjson", "{\"a\": 300}\n", "column \"a\""),
    ] {
        let path = files.write(name, content);
        let messages =
            warpframe(&["--device", "cpu", "-c", &format!("{create}; COPY t FROM '{path}'")])
                .failure(1);
        assert!(messages.contains(expected) && messages.contains(name), "{messages}");
    }
    let external = format!(
        "CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '{csv_file}'; COPY e FROM '{csv_file}'"
    );
    let messages = warpframe(&["--device", "cpu", "-c", &external]).failure(1);
    assert!(messages.contains("its rows are those of its files"), "{messages}");
    let messages = warpframe(&["--device", "cpu", "-c", "COPY nowhere FROM 't.csv'"]).failure(1);
    assert!(messages.contains("nowhere"), "{messages}");
}

#[test]
fn names_of_no_table_say_what_they_are() {
    let files = Files::new();
    std::fs::create_dir(files.path("mixed")).unwrap();
    files.write("mixed/a.csv", "a\n1\n");
    files.write("mixed/a.json", "{\"a\": 1}\n");
    for (name, expected) in [
        ("mixed", "is a directory that is no table: files of one kind"),
        ("none.csv", "there is no such file"),
        ("none*.csv", "no file has such a name"),
        ("a.zip", "is not a kind of file that is known"),
    ] {
        let sql = format!("FROM '{}'", files.path(name));
        let messages = warpframe(&["--device", "cpu", "-c", &sql]).failure(1);
        assert!(messages.contains(expected) && messages.contains("line 1, column 6"), "{messages}");
    }
}

#[test]
fn functions_are_made_and_forbidden() {
    let sql = "CREATE FUNCTION twice(n BIGINT) RETURNS BIGINT LANGUAGE CUDA AS $$\n  n *= 2; -- a word; and $ another\n  \
               return n;\n$$;\nSELECT twice(21) AS n; DROP FUNCTION twice; DROP FUNCTION IF EXISTS twice";
    // Not of C++.
    let messages = warpframe(&["--device", "sim", "-c", sql]).failure(1);
    assert!(
        messages.contains("-c, line 2") && messages.contains("error: function twice: "),
        "{messages}"
    );
    let sql = sql.replace("-- a", "// a");
    for device in DEVICES {
        let text = warpframe(&["--device", device, "--format", "csv", "-c", &sql]).results();
        assert_eq!(text, "n\n42\n");
    }
    let wrong = "CREATE FUNCTION f(n BIGINT) RETURNS BIGINT LANGUAGE CUDA AS $$\n  return m;\n$$";
    let messages = warpframe(&["--device", "sim", "-c", wrong]).failure(1);
    assert!(
        messages.contains("-c, line 2, column 10")
            && messages.contains("  2 |   return m;\n    |          ^\n"),
        "{messages}"
    );
    let messages = warpframe(&["--device", "sim", "--no-user-code", "-c", &sql]).failure(1);
    assert!(messages.contains("--no-user-code forbids it"), "{messages}");
    let messages = warpframe(&["--device", "cpu", "-c", "DROP FUNCTION nobody"]).failure(1);
    assert!(messages.contains("nobody") && messages.contains("line 1, column 15"), "{messages}");
}

#[test]
fn without_files_statements_and_commands_have_the_tables_of_the_command_line() {
    let files = Files::new();
    let path = files.write("t.csv", "n,s\n1,x\n");
    let out = files.path("out.csv");
    let run = |sql: &str| warpframe(&["--device", "cpu", "--csv", "--no-files", &path, "-c", sql]);
    assert_eq!(run("SELECT n FROM t").results(), "n\n1\n");
    for (sql, what) in [
        (format!("SELECT * FROM '{path}'"), "the file"),
        (format!("SELECT * FROM read_csv('{path}')"), "read_csv"),
        (format!("COPY t TO '{out}'"), "COPY"),
        (format!("COPY (SELECT 1) TO '{out}' (FORMAT csv, PARTITION_BY (a))"), "COPY"),
        (format!("COPY t FROM '{path}'"), "COPY"),
        (format!("CREATE EXTERNAL TABLE u STORED AS CSV LOCATION '{path}'"), "EXTERNAL"),
        (format!("EXPORT DATABASE '{out}'"), "EXPORT"),
        ("CREATE FUNCTION f() RETURNS BIGINT LANGUAGE CUDA AS 'return 1;'".into(), "FUNCTION"),
    ] {
        let messages = run(&sql).failure(1);
        assert!(
            messages.contains(what) && messages.contains("--no-files forbids it"),
            "{messages}"
        );
    }
    for command in [
        format!(".import {path} u"),
        format!(".output {out}"),
        format!(".once {out}"),
        format!(".read {path}"),
        ".cd /".into(),
        ".shell echo hello".into(),
    ] {
        let arguments = ["--device", "cpu", "--no-files"];
        let messages = crate::run_with_input(&arguments, &format!("{command}\n")).failure(1);
        assert!(messages.contains("--no-files forbids it"), "{command}: {messages}");
    }
    assert!(!std::path::Path::new(&out).exists());
}

/// One of several files that is no table, and one that a process left unfinished.
#[test]
fn a_file_that_is_no_table_leaves_the_others_alone() {
    let files = Files::new();
    let good = files.write("good.csv", "a\n1\n");
    let empty = files.write("empty.csv", "");
    let pattern = files.path("*.csv");
    for arguments in [&[good.as_str(), &empty][..], &[pattern.as_str()]] {
        let common = ["--device", "cpu", "--csv", "-c", "SELECT sum(a) AS s FROM good"];
        let run = warpframe(&[arguments, &common].concat());
        assert_eq!((run.code, run.out.as_str()), (Some(0), "s\n1\n"), "{}", run.messages);
        assert!(run.messages.contains("empty.csv: is empty; it is no table"), "{}", run.messages);
    }
    let messages = warpframe(&[&empty, "--device", "cpu", "-c", "SELECT 1"]).failure(1);
    assert!(messages.contains("error: ") && messages.contains("is empty"), "{messages}");
    let folder = std::path::Path::new(&good).parent().expect("it has one").display().to_string();
    std::fs::remove_file(&empty).unwrap();
    files.write("2.csv.99.0.partial", "b\n2,3\n");
    let query = format!("SELECT sum(a) AS s FROM '{folder}'");
    assert_eq!(warpframe(&["--device", "cpu", "--csv", "-c", &query]).results(), "s\n1\n");
}

#[test]
fn a_pipe_without_a_folder_for_its_copy_says_so() {
    let mut command = crate::command(&["-", "--device", "cpu", "-c", "FROM stdin"]);
    command.env("TMPDIR", "/nowhere/at/all");
    let messages = crate::finish(command, "a\n1\n").failure(1);
    assert!(messages.contains("no copy can be made in /nowhere/at/all"), "{messages}");
}
