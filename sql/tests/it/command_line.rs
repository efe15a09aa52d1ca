//! Flags, files as tables, and where SQL comes from.

use crate::{DEVICES, Files, command, finish, run_with_input, warpframe};

#[test]
fn help_and_version_are_results() {
    let help = warpframe(&["--help"]).results();
    for flag in [
        "-c ",
        "-f ",
        "--device ",
        "--strict",
        "--format ",
        "--memory-limit ",
        "--prepare",
        "--arch ",
        "[FILES]...",
    ] {
        assert!(help.contains(flag), "{flag} in {help}");
    }
    assert_eq!(
        warpframe(&["--version"]).results(),
        format!("warpframe {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn wrong_flags_and_values_exit_with_2() {
    for arguments in [
        &["--nonsense"][..],
        &["--device", "gpu"],
        &["--format", "xml"],
        &["--memory-limit", "much"],
        &["--device", "cpu", "--strict", "-c", "SELECT 1"],
        &["-c"],
        &["--arch", "sm_90", "-c", "SELECT 1"],
        &["--prepare", "-c", "SELECT 1"],
        &["--csv", "--json", "-c", "SELECT 1"],
        &["--csv", "--format", "json", "-c", "SELECT 1"],
        &["--man", "-c", "SELECT 1"],
        &["bench"],
        &["bench", "SELECT 1", "--runs", "0"],
        &["bench", "SELECT $n", "--sizes", "1.5"],
        &["bench", "SELECT $n"],
        &["bench", "SELECT 1", "--sizes", "10"],
        &["bench", "SELECT $n", "--sizes", "10", "-v", "n=1"],
    ] {
        let messages = warpframe(arguments).failure(2);
        assert!(messages.starts_with("error: "), "{arguments:?}: {messages}");
    }
}

#[test]
fn formats_have_short_names() {
    let with = |format: &[&str]| {
        let arguments =
            [format, &["--device", "cpu", "-c", "SELECT 1 AS a, 'x' AS b, CAST(NULL AS INT) AS c"]]
                .concat();
        warpframe(&arguments).results()
    };
    for format in ["csv", "tsv", "json", "ndjson", "markdown", "box", "line"] {
        let short = with(&[&format!("--{format}")]);
        assert_eq!(short, with(&["--format", format]));
        assert_ne!(short, with(&[]));
    }
}

/// The page is made of the options that there are; a formatter, where there is one, has nothing to
/// complain of.
#[test]
fn the_manual_page_has_every_option_command_and_exit_code() {
    let page = warpframe(&["--man"]).results();
    let options = |help: &str| -> Vec<String> {
        let words = help
            .lines()
            .filter(|line| line.trim_start().starts_with('-'))
            .flat_map(str::split_whitespace);
        let words = words
            .map(|word| word.trim_end_matches(','))
            .filter(|word| word.starts_with('-') && word.len() > 1);
        words.map(String::from).collect()
    };
    let (all, bench) =
        (warpframe(&["--help"]).results(), warpframe(&["bench", "--help"]).results());
    let options = [options(&all), options(&bench)].concat();
    assert!(options.len() > 60 && options.iter().any(|option| option == "--sizes"), "{options:?}");
    for option in options {
        assert!(
            page.contains(&format!("\\fB{}\\fR", option.replace('-', "\\-"))),
            "{option} in {page}"
        );
    }
    let commands = run_with_input(&["--device", "cpu"], ".help\n").results();
    for command in commands
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|w| w.starts_with('.'))
    {
        assert!(page.contains(&format!("\\fB{command}")), "{command} in {page}");
    }
    for code in ["0", "1", "2", "130"] {
        assert!(page.contains(&format!(".TP\n\\fB{code}\\fR\n")), "{code} in {page}");
    }
    let mut groff = std::process::Command::new("groff");
    groff.args(["-man", "-Tutf8", "-ww"]);
    match groff.stdin(std::process::Stdio::null()).status() {
        Ok(_) => {
            let mut groff = std::process::Command::new("groff");
            groff.args(["-man", "-Tutf8", "-ww"]);
            assert!(finish(groff, &page).results().contains("User Commands"));
        }
        Err(_) => eprintln!("skipped: no groff on this machine"),
    }
}

#[test]
fn bench_times_a_statement_over_sizes() {
    for device in DEVICES {
        let arguments = ["bench", "--device", device, "--runs", "3", "--warmup", "1"];
        let create = "CREATE OR REPLACE TABLE t AS SELECT jetid, px FROM jets LIMIT $n";
        let sql = "SELECT jetid, max(px) FROM t GROUP BY jetid";
        let more = ["-c", create, "--sizes", "1e1,1e3", "--csv", sql, "data/jets.csv"];
        let csv = warpframe(&[&arguments[..], &more].concat()).results();
        let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        let moved = if device == "sim" { &["bytes_moved", "gb_per_s"][..] } else { &[] };
        let names =
            [&["n", "rows", "runs", "first_ms", "min_ms", "median_ms", "max_ms"], moved].concat();
        assert_eq!(lines[0], names);
        assert_eq!(lines.len(), 3);
        for (line, n) in lines[1..].iter().zip(["10", "1000"]) {
            assert_eq!((line[0], line[2]), (n, "3"), "{csv}");
            let times: Vec<f64> =
                line[3..7].iter().map(|time| time.parse().expect("a number")).collect();
            assert!(
                times[0] > 0.0 && times[1] > 0.0 && times[1] <= times[2] && times[2] <= times[3],
                "{csv}"
            );
        }
        // More rows have more groups, and on the device more bytes are moved.
        let number =
            |row: usize, column: usize| lines[row][column].parse::<f64>().expect("a number");
        assert!(number(1, 1) < number(2, 1), "{csv}");
        assert!(moved.is_empty() || number(1, 7) < number(2, 7), "{csv}");

        let chart =
            warpframe(&["bench", "--device", device, "SELECT $n", "--sizes", "1,10,100"]).results();
        assert!(chart.contains("median_ms |") && chart.contains("median ms over n"), "{chart}");
    }
    let json =
        warpframe(&["bench", "--device", "cpu", "--json", "SELECT 1 UNION ALL SELECT 2"]).results();
    assert!(json.starts_with("[{\"rows\":2,\"runs\":5,\"first_ms\":"), "{json}");
    let change = warpframe(&[
        "bench",
        "--device",
        "cpu",
        "--csv",
        "-c",
        "CREATE TABLE t (a INT)",
        "INSERT INTO t VALUES (1)",
    ]);
    assert!(change.results().lines().nth(1).is_some_and(|line| line.starts_with("1,5,")));
    let wrong =
        warpframe(&["bench", "--device", "cpu", "SELECT nobody FROM jets", "data/jets.csv"])
            .failure(1);
    assert!(wrong.contains("no column named \"nobody\"") && wrong.contains("^^^^^^"), "{wrong}");
    let setup =
        warpframe(&["bench", "--device", "cpu", "-c", "SELECT nobody", "SELECT 1"]).failure(1);
    assert!(setup.contains("-c, line 1, column 8"), "{setup}");
    let two = warpframe(&["bench", "--device", "cpu", "SELECT 1; SELECT 2"]).failure(1);
    assert!(two.contains("one statement is expected"), "{two}");
}

/// Where NVRTC is the architecture is unknown; elsewhere it is said how to get NVRTC.
#[test]
fn kernels_are_prepared_for_gpus_that_there_are() {
    let messages = warpframe(&["--prepare", "--arch", "sm_1"]).failure(1);
    assert!(messages.contains("not for sm_1") || messages.contains("install"), "{messages}");
}

#[test]
fn wrong_environment_exits_with_2_and_names_the_variable() {
    for (variable, value) in [
        ("WARPFRAME_DEVICE", "gpu"),
        ("WARPFRAME_STRICT", "maybe"),
        ("WARPFRAME_MEMORY_LIMIT", "much"),
    ] {
        let mut command = command(&["-c", "SELECT 1"]);
        command.env(variable, value);
        let messages = finish(command, "").failure(2);
        assert!(messages.contains(variable), "{messages}");
    }
}

#[test]
fn the_environment_chooses_the_device_where_no_flag_does() {
    let mut by_environment = command(&["-c", "EXPLAIN SELECT 1 AS x", "--format", "csv"]);
    by_environment.env("WARPFRAME_DEVICE", "sim");
    assert!(finish(by_environment, "").results().contains("device  "));
    let mut by_flag =
        command(&["-c", "EXPLAIN SELECT 1 AS x", "--format", "csv", "--device", "cpu"]);
    by_flag.env("WARPFRAME_DEVICE", "sim");
    assert!(finish(by_flag, "").results().starts_with("plan\ncpu\n"));
}

#[test]
fn without_a_gpu_one_line_says_so_and_all_works() {
    let run = warpframe(&["-c", "SELECT 1 AS x", "--format", "csv", "--device", "auto"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "x\n1\n"));
    if !run.messages.is_empty() {
        assert!(
            run.messages.starts_with("no GPU: ") && run.messages.lines().count() == 1,
            "{}",
            run.messages
        );
        // Strictly, that is a failure; and nothing of it was a mistake in the command line.
        let messages = warpframe(&["-c", "SELECT 1", "--strict"]).failure(1);
        assert!(messages.contains("strict mode"), "{messages}");
        warpframe(&["-c", "SELECT 1", "--device", "cuda"]).failure(1);
    }
}

#[test]
fn files_patterns_and_directories_are_tables() {
    let files = Files::new();
    let csv = files.write("first.csv", "a,b\n1,x\n2,\n");
    let tsv = files.write("second.tsv", "a\tb\n3\ty\n");
    std::fs::create_dir(files.path("parts")).unwrap();
    files.write("parts/1.csv", "n\n1\n");
    files.write("parts/2.csv", "n\n2\n");
    let sql = "SHOW TABLES; SELECT a, b FROM first UNION ALL SELECT a, b FROM second ORDER BY a; SELECT sum(n) AS n FROM parts";
    for device in DEVICES {
        let common = ["--device", device, "--format", "csv", "-c", sql];
        let expected = "table\nfirst\nparts\nsecond\na,b\n1,x\n2,\n3,y\nn\n3\n";
        let named = warpframe(&[&[csv.as_str(), &tsv, &files.path("parts")][..], &common].concat());
        assert_eq!(named.results(), expected, "{device}");
        let pattern = warpframe(&[&[files.path("*s*").as_str()][..], &common].concat());
        assert_eq!(pattern.results(), expected, "{device}");
    }
}

#[test]
fn a_name_that_is_no_plain_word_works_in_quotes() {
    let files = Files::new();
    let path = files.write("My data-1.csv", "A\n1\n");
    let run = warpframe(&[
        &path,
        "--device",
        "cpu",
        "--format",
        "csv",
        "-c",
        "SELECT \"A\" FROM \"My data-1\"",
    ]);
    assert_eq!(run.results(), "A\n1\n");
}

#[test]
fn two_files_of_one_name_are_a_mistake() {
    let files = Files::new();
    let (csv, tsv) = (files.write("t.csv", "a\n1\n"), files.write("t.tsv", "a\n1\n"));
    let messages = warpframe(&[&csv, &tsv, "--device", "cpu", "-c", "SELECT 1"]).failure(2);
    assert!(
        messages.contains(&csv) && messages.contains(&tsv) && messages.contains("\"t\""),
        "{messages}"
    );
}

#[test]
fn unknown_extensions_are_a_mistake_and_missing_files_missing_data() {
    let files = Files::new();
    let notes = files.write("notes.md", "a\n1\n");
    let messages = warpframe(&[&notes, "--device", "cpu", "-c", "SELECT 1"]).failure(2);
    assert!(messages.contains("notes.md") && messages.contains(".parquet"), "{messages}");
    for missing in ["missing.csv", "missing*.parquet"] {
        let messages =
            warpframe(&[&files.path(missing), "--device", "cpu", "-c", "SELECT 1"]).failure(1);
        assert!(messages.contains(missing) && messages.contains("no such file"), "{messages}");
    }
}

#[test]
fn commands_and_scripts_run_in_the_order_given() {
    let files = Files::new();
    let script = files.write(
        "s.sql",
        "INSERT_NOTHING_HERE".replace("INSERT_NOTHING_HERE", "SELECT x + 1 AS x FROM t;"),
    );
    let run = warpframe(&[
        "--device",
        "cpu",
        "--format",
        "csv",
        "-c",
        "CREATE TABLE t AS SELECT 1 AS x",
        "-f",
        &script,
        "-c",
        "DROP TABLE t",
    ]);
    assert_eq!(run.results(), "x\n2\n");
}

#[test]
fn a_script_may_be_missing_or_standard_input() {
    let messages = warpframe(&["--device", "cpu", "-f", "no/such.sql"]).failure(1);
    assert_eq!(messages, "error: no/such.sql: no such file\n");
    let run = run_with_input(&["--device", "cpu", "--format", "csv", "-f", "-"], "SELECT 1 AS x");
    assert_eq!(run.results(), "x\n1\n");
}

#[test]
fn sql_comes_from_standard_input_when_that_is_no_terminal() {
    for device in DEVICES {
        let arguments = ["--device", device, "--format", "ndjson"];
        let run =
            run_with_input(&arguments, "SELECT 1 AS x;\n-- over\n-- lines\nSELECT\n 2\n AS x");
        assert_eq!(run.results(), "{\"x\":1}\n{\"x\":2}\n");
    }
    assert_eq!(run_with_input(&["--device", "cpu"], "").results(), "");
}

/// A query that is not divided: its only row has all values.
const WHOLE: &str = "SELECT array_agg(l_orderkey), array_agg(l_partkey) FROM lineitem";

#[test]
fn the_memory_limit_is_kept_and_said() {
    let q = WHOLE;
    let arguments = [
        "data/tpch/lineitem.parquet",
        "--device",
        "sim",
        "--strict",
        "--memory-limit",
        "64KiB",
        "-c",
        q,
    ];
    let messages = warpframe(&arguments).failure(1);
    assert!(
        messages.starts_with("error: out of device memory: ") && messages.contains("65536"),
        "{messages}"
    );
}

#[test]
fn memory_that_is_short_says_which_option_helps() {
    let q = "SELECT l_orderkey, l_partkey FROM lineitem ORDER BY l_partkey";
    let asked = |q: &str, flags: &[&str]| {
        let arguments = [&["data/tpch/lineitem.parquet", "-c", q], flags].concat();
        warpframe(&arguments).failure(1)
    };
    let messages = asked(WHOLE, &["--device", "sim", "--strict", "--memory-limit", "64KiB"]);
    assert!(
        messages.contains("hint: --memory-limit, WARPFRAME_MEMORY_LIMIT or SET memory_limit"),
        "{messages}"
    );
    let messages = asked(q, &["--device", "cpu", "--host-memory-limit", "32KiB"]);
    assert!(
        messages.starts_with("error: out of host memory: ") && messages.contains("32768"),
        "{messages}"
    );
    assert!(
        messages.contains("hint: --host-memory-limit or WARPFRAME_HOST_MEMORY_LIMIT"),
        "{messages}"
    );
    let messages = warpframe(&["--device", "cpu", "--spill-limit", "50%", "-c", q]).failure(2);
    assert!(messages.contains("expected bytes such as 20GiB"), "{messages}");
}

#[test]
fn the_shipped_query_runs_strictly_on_the_device_as_on_the_cpu() {
    for query in ["data/queries/q6.sql", "data/queries/q1.sql"] {
        let run = |flags: &[&str]| {
            let arguments =
                [&["data/tpch/lineitem.parquet", "-f", query, "--format", "csv"], flags].concat();
            warpframe(&arguments).results()
        };
        let device = run(&["--device", "sim", "--strict"]);
        assert!(device.lines().count() > 1, "{device}");
        assert_eq!(device, run(&["--device", "cpu"]), "{query}");
    }
}

#[test]
fn a_folder_for_kernels_that_cannot_be_written_costs_a_note_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let temporary = dir.path().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    // A file in the way: unlike permissions, it stops the superuser too.
    let blocked = dir.path().join("file");
    std::fs::write(&blocked, b"").unwrap();
    let mut command = command(&[
        "--device",
        "sim",
        "data/jets.csv",
        "-c",
        "SELECT count(*) FROM jets WHERE px > 1",
    ]);
    command.env("WARPFRAME_CACHE_DIR", blocked.join("cache")).env("TMPDIR", &temporary);
    let output = command.output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    assert_eq!(messages.matches("note: compiled kernels are not kept").count(), 1, "{messages}");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn tables_have_the_paths_of_their_files() {
    let files = Files::new();
    let (csv, json) = (files.write("a.csv", "n\n1\n2\n"), files.write("b.ndjson", "{\"n\": 4}\n"));
    let query = "SELECT filename, sum(n) AS n FROM a GROUP BY 1 UNION ALL SELECT filename, n FROM b ORDER BY n";
    for device in DEVICES {
        let arguments =
            ["--filename", "--device", device, "--format", "csv", &csv, &json, "-c", query];
        assert_eq!(warpframe(&arguments).results(), format!("filename,n\n{csv},3\n{json},4\n"));
    }
    let arrow = files.path("c.arrow");
    warpframe(&["--device", "cpu", "-c", &format!("COPY (SELECT 8 AS n) TO '{arrow}'")]).results();
    let arguments = ["--device", "cpu", "--filename", "--format", "csv", &arrow, "-c", "FROM c"];
    assert_eq!(warpframe(&arguments).results(), format!("n,filename\n8,{arrow}\n"));
    for option in [&["--filename"][..], &["--read-csv", "filename=true"]] {
        let arguments = [option, &["-", "-c", "FROM stdin"][..]].concat();
        let messages = run_with_input(&arguments, "n\n1\n").failure(2);
        assert!(messages.contains("filename") && messages.contains("standard input"), "{messages}");
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_statements() {
    let files = Files::new();
    let sql = "\u{feff}SELECT 1 AS a;\n.read ";
    let script = files.write("b.sql", "\u{feff}SELECT 2 AS b;\n");
    let run = |more: &[&str], input: &str| {
        run_with_input(&[&["--device", "cpu", "--csv"], more].concat(), input).results()
    };
    assert_eq!(run(&["-f", &script], ""), "b\n2\n");
    assert_eq!(run(&[], &format!("{sql}{script}\n")), "a\n1\nb\n2\n");
}

/// What reads the messages of a batch every minute wants those that matter.
#[test]
fn that_there_is_no_gpu_is_told_on_a_terminal_alone() {
    assert_eq!(warpframe(&["--csv", "-c", "SELECT 1 AS a"]).results(), "a\n1\n");
}
