//! The formats, byte for byte, and pipes that close early.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::{DEVICES, Files, command, run_with_input, warpframe};

const ROWS: &str =
    "n,text,x,day\n1,a|b,0.5,1998-09-02\n,\"é, \"\"q\"\"\",,\n-300,,1.25,1970-01-01\n";

fn written(format: &str, device: &str) -> String {
    let files = Files::new();
    let path = files.write("t.csv", ROWS);
    let sql = "SELECT n, text, x, CAST(day AS DATE) AS day, n > 0 AS positive, CAST(n AS DECIMAL(8, 2)) AS money FROM t";
    warpframe(&[&path, "--device", device, "--format", format, "-c", sql]).results()
}

#[test]
fn each_format_is_the_same_on_each_device_and_exact() {
    let expected = [
        (
            "table",
            "\
+------+--------+------+------------+----------+---------+
| n    | text   | x    | day        | positive | money   |
+------+--------+------+------------+----------+---------+
|    1 | a|b    |  0.5 | 1998-09-02 | true     |    1.00 |
| NULL | é, \"q\" | NULL | NULL       | NULL     |    NULL |
| -300 | NULL   | 1.25 | 1970-01-01 | false    | -300.00 |
+------+--------+------+------------+----------+---------+
3 rows
",
        ),
        (
            "csv",
            "\
n,text,x,day,positive,money
1,a|b,0.5,1998-09-02,true,1.00
,\"é, \"\"q\"\"\",,,,
-300,,1.25,1970-01-01,false,-300.00
",
        ),
        (
            "json",
            "[{\"n\":1,\"text\":\"a|b\",\"x\":0.5,\"day\":\"1998-09-02\",\"positive\":true,\"money\":1.00},\
             {\"n\":null,\"text\":\"é, \\\"q\\\"\",\"x\":null,\"day\":null,\"positive\":null,\"money\":null},\
             {\"n\":-300,\"text\":null,\"x\":1.25,\"day\":\"1970-01-01\",\"positive\":false,\"money\":-300.00}]\n",
        ),
        (
            "ndjson",
            "\
{\"n\":1,\"text\":\"a|b\",\"x\":0.5,\"day\":\"1998-09-02\",\"positive\":true,\"money\":1.00}
{\"n\":null,\"text\":\"é, \\\"q\\\"\",\"x\":null,\"day\":null,\"positive\":null,\"money\":null}
{\"n\":-300,\"text\":null,\"x\":1.25,\"day\":\"1970-01-01\",\"positive\":false,\"money\":-300.00}
",
        ),
        (
            "markdown",
            "\
| n | text | x | day | positive | money |
| ---: | --- | ---: | --- | --- | ---: |
| 1 | a\\|b | 0.5 | 1998-09-02 | true | 1.00 |
| NULL | é, \"q\" | NULL | NULL | NULL | NULL |
| -300 | NULL | 1.25 | 1970-01-01 | false | -300.00 |
",
        ),
    ];
    for device in DEVICES {
        for (format, text) in expected {
            assert_eq!(written(format, device), text, "{format} on {device}");
        }
    }
}

/// As in the files that COPY writes.
#[test]
fn in_csv_nulls_are_told_from_texts() {
    let sql = "SELECT '' AS a, NULL AS b, 'NA' AS \"N|A\", ['x,y', NULL] AS l";
    for device in DEVICES {
        let written = |more: &[&str]| {
            let arguments = ["--device", device, "-c", sql];
            warpframe(&[&arguments[..], more].concat()).results()
        };
        assert_eq!(written(&["--csv"]), "a,b,N|A,l\n\"\",,NA,\"[x,y, NULL]\"\n");
        assert_eq!(
            written(&["--tsv", "--null", "NA"]),
            "a\tb\tN|A\tl\n\"\"\tNA\t\"NA\"\t[x,y, NA]\n"
        );
    }
}

#[test]
fn inserts_put_back_values_of_every_type() {
    let values = "1 AS i, -1.5 AS x, CAST('NaN' AS DOUBLE) AS f, CAST('-inf' AS FLOAT) AS g, true AS b,
        'it''s' AS s, X'00ff27' AS bytes, DATE '2024-02-29' AS d, TIMESTAMP '2024-02-29 10:00:00.5' AS t,
        TIME '10:00:00' AS c, 1.50::DECIMAL(5,2) AS n, [1, NULL] AS l, ['it''s', 'b,c'] AS m,
        {'a': 'x \"y\"', 'b''s': NULL::INT, 'c': [DATE '2024-01-01']} AS r,
        [{'a': 0.5, 'b': X'00'}, NULL] AS lr, [CAST('inf' AS DOUBLE), 0.1] AS lf, MAP {'k': [2]} AS p,
        arrow_cast('w', 'Dictionary(Int32, Utf8)') AS w, CAST(NULL AS INT) AS none";
    let make = format!("CREATE TABLE t AS SELECT {values}; CREATE TABLE \"u v\" AS FROM t LIMIT 0");
    for device in DEVICES {
        let run = |input: &str| run_with_input(&["--device", device, "--csv"], input).results();
        let inserts = run(&format!("{make};\n.mode insert \"u v\"\nFROM t;\n"));
        assert!(inserts.starts_with("INSERT INTO \"u v\" VALUES (1, -1.5, 'NaN', "), "{inserts}");
        let read = run(&format!("{make};\n{inserts}\nFROM t; FROM \"u v\";\n"));
        let (first, second) = read.split_at(read.len() / 2);
        assert!(first.contains("it's") && first.contains("00ff27"), "{first}");
        assert_eq!(first, second, "{inserts}");
    }
}

#[test]
fn no_rows_have_a_header_where_the_format_has_one() {
    let expected = [
        ("table", "+-------+----+\n| jetid | px |\n+-------+----+\n0 rows\n"),
        ("csv", "jetid,px\n"),
        ("json", "[]\n"),
        ("ndjson", ""),
        ("markdown", "| jetid | px |\n| ---: | ---: |\n"),
    ];
    for device in DEVICES {
        for (format, text) in expected {
            let sql = "SELECT jetid, px FROM jets WHERE jetid < 0";
            let run =
                warpframe(&["data/jets.csv", "--device", device, "--format", format, "-c", sql]);
            assert_eq!(run.results(), text, "{format} on {device}");
        }
    }
}

#[test]
fn all_rows_are_written_where_nobody_watches() {
    for device in DEVICES {
        for (format, lines) in [("table", 70_005), ("csv", 70_001)] {
            // More rows than one batch from the device.
            let sql = "SELECT jetid FROM jets LIMIT 70000";
            let text =
                warpframe(&["data/jets.csv", "--device", device, "--format", format, "-c", sql])
                    .results();
            assert_eq!(text.lines().count(), lines, "{format} on {device}");
        }
    }
}

#[test]
fn tables_shorten_when_told_to() {
    let sql = "SET max_rows = 2; SELECT 1 AS one FROM jets";
    for device in DEVICES {
        let text = warpframe(&["data/jets.csv", "--device", device, "-c", sql]).results();
        assert!(
            text.ends_with(
                "\n100000 rows, of which the first 2 are shown (SET max_rows = 0 shows all)\n"
            ),
            "{text}"
        );
        assert_eq!(text.lines().count(), 7);
    }
}

#[test]
fn a_reader_that_leaves_ends_the_command_quietly() {
    for format in ["table", "csv", "json", "ndjson", "markdown"] {
        let mut command = command(&[
            "data/jets.csv",
            "--device",
            "cpu",
            "--format",
            format,
            "-c",
            "SELECT * FROM jets",
        ]);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        let mut out = BufReader::with_capacity(16, child.stdout.take().unwrap());
        if format == "json" {
            out.read_until(b'}', &mut vec![]).unwrap()
        } else {
            out.read_line(&mut first).unwrap()
        };
        drop(out);
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
            (Some(0), ""),
            "{format}"
        );
    }
}

#[test]
fn rows_for_programs_are_written_while_the_query_runs() {
    // Nobody waits for the last row of these.
    for (format, first) in [("csv", "value\n"), ("ndjson", "{\"value\":0}\n"), ("tsv", "value\n")] {
        let sql = "FROM range(0, 1000000000000) AS t(value)";
        let mut command = command(&["--device", "cpu", "--format", format, "-c", sql]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        assert_eq!(line, first, "{format}");
        drop(out);
        assert!(child.wait().unwrap().success(), "{format}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = command(&["--device", "cpu", "-c", "SELECT 1"]);
    let output = command.stdin(Stdio::null()).stdout(Stdio::from(full)).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(messages.starts_with("error: writing the results: "), "{messages}");
}

#[test]
fn intervals_within_values_are_as_they_are_elsewhere() {
    let sql = "SELECT INTERVAL '14 months' AS i, [INTERVAL '1 day', NULL] AS l, \
               {'a': INTERVAL '90 minutes'} AS s";
    let row = "{\"i\":\"1 year 2 months\",\"l\":[\"1 day\",null],\"s\":{\"a\":\"01:30:00\"}}";
    for device in DEVICES {
        for (format, expected) in [("ndjson", format!("{row}\n")), ("json", format!("[{row}]\n"))] {
            let out = warpframe(&["--device", device, "--format", format, "-c", sql]).results();
            assert_eq!(out, expected);
        }
    }
}

#[test]
fn times_and_texts_within_values_are_written_as_in_duckdb() {
    let sql = "SELECT TIMESTAMP '2024-01-01 10:00:00.120' AS t, TIMESTAMPTZ '2024-01-01 10:00:00' AS z, \
               TIME '10:00:00.5' AS c, [TIMESTAMP '2024-01-01'] AS l";
    let rows = "2024-01-01 10:00:00.12,2024-01-01 10:00:00+00,10:00:00.5,[2024-01-01 00:00:00]\n";
    let json = "{\"t\":\"2024-01-01 10:00:00.12\",\"z\":\"2024-01-01 10:00:00+00\",\
                \"c\":\"10:00:00.5\",\"l\":[\"2024-01-01 00:00:00\"]}\n";
    for device in ["cpu", "sim"] {
        let of = |format: &str| {
            warpframe(&["--device", device, "--format", format, "-c", sql]).results()
        };
        assert_eq!(of("csv"), format!("t,z,c,l\n{rows}"));
        assert_eq!(of("ndjson"), json);
        assert!(of("table").contains("| 2024-01-01 10:00:00.12 | 2024-01-01 10:00:00+00 |"));
        let texts = "SELECT ['', 'a', 'null', NULL] AS l";
        let shown = warpframe(&["--device", device, "--format", "markdown", "-c", texts]).results();
        assert!(shown.contains("| ['', a, 'null', NULL] |"), "{shown}");
    }
}
