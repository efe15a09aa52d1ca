//! Statements and commands with what comes of them, all of a file in one session: `shell.txt`, and
//! `beside.txt`, whose names and types `scripts/shell-beside-duckdb.py` compares with DuckDB's.
//!
//! ```text
//! > a statement, or a command that begins with a dot
//! what is written, line by line
//! ! a part of the error's first line
//! ```

use std::fs::File;
use std::process::Stdio;

use crate::{Files, command};

const CASES: &str = include_str!("shell.txt");
const BESIDE: &str = include_str!("beside.txt");
pub const PAGE: &str = include_str!("../../../docs/shell.md");
const MARK: &str = "@@@";

/// A statement or command, and the lines that are expected of it.
struct Case<'a> {
    text: &'a str,
    expected: Vec<&'a str>,
}

fn cases(text: &str) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = vec![];
    for line in text.lines() {
        match (line.strip_prefix("> "), cases.last_mut()) {
            (Some(text), _) => cases.push(Case { text, expected: vec![] }),
            (None, Some(case)) => case.expected.push(line),
            (None, None) => {}
        }
    }
    cases
}

/// What a run of all of them on a device writes for each.
fn written(cases: &[Case<'_>], device: &[&str]) -> Vec<String> {
    let files = Files::new();
    let mut script = String::new();
    for case in cases {
        let end = if case.text.starts_with('.') { "" } else { ";" };
        script.push_str(&format!(".print {MARK}\n{}{end}\n", case.text));
    }
    let (path, out) = (files.write("all.sql", script), files.path("out"));
    let mut command = command(&["data/jets.csv", "--keep-going", "--format", "csv", "-f", &path]);
    let file = File::create(&out).expect("the directory can be written to");
    let both = file.try_clone().expect("it can be written to twice");
    command.args(device).stdin(Stdio::null()).stdout(file).stderr(both);
    let status = command.status().expect("the binary runs");
    // The last failure's.
    assert_eq!(status.code(), Some(1));
    let text = std::fs::read_to_string(&out).expect("all output is text");
    text.split(&format!("{MARK}\n")).skip(1).map(String::from).collect()
}

fn check(text: &str, device: &[&str]) {
    let cases = cases(text);
    let written = written(&cases, device);
    assert_eq!(cases.len(), written.len());
    let mut wrong = vec![];
    for (case, written) in cases.iter().zip(&written) {
        let lines: Vec<&str> = written.lines().collect();
        let fits = match &case.expected[..] {
            [error] if error.starts_with("! ") => lines
                .first()
                .is_some_and(|line| line.starts_with("error: ") && line.contains(&error[2..])),
            expected => lines == expected,
        };
        if !fits {
            wrong.push(format!("> {}\n{written}", case.text));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} on {device:?}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

#[test]
fn statements_and_commands_do_what_is_written_of_them() {
    assert!(cases(CASES).len() > 150);
    check(CASES, &["--device", "cpu"]);
}

#[test]
fn names_and_types_are_what_is_written_of_them() {
    assert!(cases(BESIDE).len() > 150);
    check(BESIDE, &["--device", "cpu"]);
}

/// Whatever a query reads, and whatever a statement puts in a table's place, is computed by the
/// device.
#[test]
fn statements_and_commands_do_the_same_on_the_device() {
    check(CASES, &["--device", "sim", "--strict"]);
}

/// Some of these, of maps and of nulls without a type, are not for the device.
#[test]
fn names_and_types_are_the_same_on_the_device() {
    check(BESIDE, &["--device", "sim"]);
}

#[test]
fn databases_are_exported_and_imported() {
    let files = Files::new();
    let folder = files.path("all");
    let sql = format!(
        "CREATE TABLE t AS SELECT 1 AS a, 'x' AS b; CREATE VIEW b AS FROM t WHERE a = 1; CREATE VIEW a AS FROM b;
         EXPORT DATABASE '{folder}'"
    );
    assert_eq!(crate::warpframe(&["--device", "cpu", "-c", &sql]).results(), "");
    let sql = format!("IMPORT DATABASE '{folder}'; FROM a; SHOW TABLES");
    let read = crate::warpframe(&["--device", "cpu", "--format", "csv", "-c", &sql]).results();
    assert_eq!(read, "a,b\n1,x\ntable\na\nb\nt\n");
    let again =
        crate::warpframe(&["--device", "cpu", "-c", &format!("EXPORT DATABASE '{folder}'")])
            .failure(1);
    assert!(again.contains("has an export already"), "{again}");
}

#[test]
fn results_go_to_files_and_files_of_statements_are_read() {
    let files = Files::new();
    let script = files.write("q.sql", "SELECT 2 AS b;\n.print done\nSELECT 3 AS c");
    let (once, all) = (files.path("once.csv"), files.path("all.csv"));
    let input = format!(
        ".once {once}\nSELECT 1 AS a;\n.read {script}\n.output {all}\nSELECT 4 AS d;\n.output\n.echo on\nSELECT 5 AS e;\n"
    );
    let run = crate::run_with_input(&["--device", "cpu", "--format", "csv"], &input);
    assert_eq!(run.results(), "b\n2\ndone\nc\n3\nSELECT 5 AS e;\ne\n5\n");
    let text = |path| std::fs::read_to_string(path).unwrap();
    assert_eq!((text(once), text(all)), ("a\n1\n".into(), "d\n4\n".into()));
}

/// Unless the command line says another format.
#[test]
fn the_names_of_files_tell_how_results_are_written() {
    let files = Files::new();
    let path = |name: &str| files.path(name);
    let text = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    let input = format!(
        ".once {}\nSELECT 1 AS a;\n.output {}\nSELECT 2 AS a;\n.output\n.once {}\nSELECT 3 AS a;\nSELECT 4 AS a;\n",
        path("x.json"),
        path("x.csv"),
        path("x.txt")
    );
    let run = crate::run_with_input(&["--device", "cpu", "--line"], &input);
    assert_eq!(run.results(), "a = 4\n");
    assert_eq!(
        [text("x.json"), text("x.csv"), text("x.txt")],
        ["[{\"a\":1}]\n", "a\n2\n", "a = 3\n"]
    );
    for (name, more, expected) in
        [("y.csv", &[][..], "a\n1\n"), ("z.csv", &["--json"], "[{\"a\":1}]\n")]
    {
        let file = path(name);
        let arguments =
            [&["--device", "cpu", "--output", &file, "-c", "SELECT 1 AS a"], more].concat();
        assert_eq!(
            (crate::warpframe(&arguments).results(), text(name)),
            (String::new(), expected.into())
        );
    }
}

#[test]
fn files_are_imported() {
    let files = Files::new();
    let path = files.write("t.csv", "n,s\n1,x\n");
    let input = format!(
        ".import {path} u\n.import {path} u\nSELECT count(*) AS n FROM u;\n.shell echo hello\n"
    );
    let run = |more: &[&str]| {
        crate::run_with_input(&[&["--device", "cpu", "--format", "csv"], more].concat(), &input)
    };
    assert_eq!(run(&[]).results(), "n\n2\nhello\n");
    for (command, message) in [
        (".shell exit 3", "error: the command failed (exit status: 3)\n"),
        (".shell echo no >&2; exit 3", "error: the command failed (exit status: 3): no\n"),
        (".cd no-such-folder", "error: no-such-folder: there is no such folder\n"),
    ] {
        let told = crate::run_with_input(&["--device", "cpu"], command).failure(1);
        assert!(told.starts_with(message), "{told}");
    }
    let refused = run(&["--no-user-code"]).failure(1);
    assert!(refused.contains(".shell is not there: --no-user-code forbids it"), "{refused}");
}

#[test]
fn scripts_have_values_files_and_a_last_failure() {
    let files = Files::new();
    let out = files.path("out.csv");
    let sql = "SELECT $n + 1 AS n, $day AS day, NULL AS e";
    let run = [
        "--device",
        "cpu",
        "--format",
        "csv",
        "--no-names",
        "--null",
        "NA",
        "--output",
        &out,
        "-v",
        "n=3",
    ];
    let run = crate::warpframe(&[&run[..], &["-v", "day=it's", "-c", sql]].concat());
    assert_eq!(run.results(), "");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "4,it's,NA\n");

    let sql = "SELECT nothing; SELECT 1 AS x";
    let run = crate::warpframe(&["--device", "cpu", "--format", "csv", "--keep-going", "-c", sql]);
    assert_eq!(run.out, "x\n1\n");
    run.failure(1);
    crate::warpframe(&["-v", "1=2"]).failure(2);
}

/// The blocks of a language that the page shows.
pub fn blocks(language: &str) -> Vec<&'static str> {
    let start = format!("```{language}\n");
    let blocks = PAGE.split(&start).skip(1);
    blocks.map(|rest| rest.split("```").next().expect("a split has a first part")).collect()
}

#[test]
fn all_that_the_page_shows_runs() {
    let tables = "CREATE TABLE sales AS SELECT * FROM (VALUES ('NL', 2000, 1), ('US', 2010, 2)) v(country, year, n);
        CREATE TABLE months AS SELECT * FROM (VALUES (1, 10, 20)) v(id, jan, feb);
        CREATE TABLE trades AS SELECT * FROM (VALUES ('x', 3)) v(sym, at);
        CREATE TABLE quotes AS SELECT * FROM (VALUES ('x', 2, 7)) v(sym, at, p);";
    let files = Files::new();
    let sql = blocks("sql");
    assert!(sql.len() > 4 && sql.concat().matches(';').count() > 25);
    let sql = format!(
        "{tables}\n{}",
        sql.concat()
            .replace("'folder'", &format!("'{}'", files.path("all")))
            .replace("'archive.wf'", &format!("'{}'", files.path("archive.wf")))
    );
    let [shell, script, bench] = blocks("sh")[..] else {
        panic!("the page shows three command lines")
    };

    let words: Vec<&str> = shell.split_whitespace().skip(1).collect();
    let path = files.write("page.sql", sql);
    for device in [&["--device", "cpu"][..], &["--device", "sim", "--strict"]] {
        for folder in ["all", "archive.wf"] {
            let _ = std::fs::remove_dir_all(files.path(folder));
        }
        let run = crate::warpframe(&[&words[..], device, &["-f", &path]].concat());
        assert_eq!((run.code, run.messages.as_str()), (Some(0), ""), "{device:?}");
        assert!(run.out.contains("q50") && run.out.contains("most"), "{}", run.out);
    }

    std::fs::create_dir(files.path("data")).expect("a folder");
    let table = format!("COPY (SELECT 2024 AS y) TO '{}'", files.path("data/t.parquet"));
    crate::warpframe(&["--device", "cpu", "-c", &table]);
    files.write("report.sql", "SELECT count(*) AS n FROM t WHERE y = $year");
    let words: Vec<&str> = script.split_whitespace().skip(1).collect();
    let mut command = command(&[&["--device", "cpu"], &words[..]].concat());
    command.current_dir(files.path(""));
    assert_eq!(crate::finish(command, "").results(), "");
    assert_eq!(std::fs::read_to_string(files.path("report.csv")).expect("the report"), "n\n1\n");

    let mut command = std::process::Command::new("sh");
    let line = bench.trim().strip_prefix("warpframe").expect("the command");
    let line = format!("'{}' {line} --device cpu", env!("CARGO_BIN_EXE_warpframe"));
    command.args(["-c", &line]).current_dir(crate::root());
    let times = crate::finish(command, "").results();
    let sizes: Vec<&str> = times.lines().filter_map(|line| line.split(',').next()).collect();
    assert_eq!(sizes, ["n", "1000", "10000", "100000"], "{times}");
}

/// `.help` knows each command of the page's table, and the page each command of `.help`.
#[test]
fn the_page_has_all_commands() {
    let rows = PAGE.lines().filter(|line| line.starts_with("| `."));
    let named = rows.flat_map(|line| line.split('`').filter(|part| part.starts_with('.')));
    let mut named: Vec<&str> = named.filter_map(|part| part.split_whitespace().next()).collect();
    let help = crate::run_with_input(&["--device", "cpu"], ".help\n").results();
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('.'));
    let mut known: Vec<&str> = lines.filter_map(|line| line.split_whitespace().next()).collect();
    named.sort_unstable();
    named.dedup();
    known.sort_unstable();
    assert!(known.len() > 20);
    assert_eq!(named, known);
}

/// Bash runs its script; what zsh and fish read names each option.
#[test]
fn shells_of_the_system_complete_options() {
    let files = Files::new();
    let script = |shell: &str| crate::warpframe(&["--completions", shell]).results();
    let path = files.write("warpframe.bash", script("bash"));
    let complete = |words: &str| {
        let line = format!(
            "source '{path}'; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _warpframe warpframe \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let run = std::process::Command::new("bash")
            .args(["-c", &line])
            .current_dir(crate::root())
            .output();
        String::from_utf8(run.expect("bash runs").stdout).expect("a text")
    };
    assert_eq!(complete("warpframe --for"), "--format\n");
    assert_eq!(complete("warpframe --format nd"), "ndjson\n");
    assert_eq!(complete("warpframe --device s"), "sim\n");
    assert_eq!(complete("warpframe --output data/je"), "data/jets.csv\n");
    // What has no words is left to the shell, which completes files.
    assert_eq!(complete("warpframe data/je"), "\n");
    assert!(script("bash").contains("-o default"));
    assert_eq!(complete("warpframe ben"), "bench\n");
    assert_eq!(
        (complete("warpframe bench --siz"), complete("warpframe --siz")),
        ("--sizes\n".into(), "\n".into())
    );
    assert_eq!(complete("warpframe --spill-dir doc"), "\n");
    assert!(script("bash").contains("-o plusdirs"));

    let (zsh, fish) = (script("zsh"), script("fish"));
    let help =
        crate::warpframe(&["--help"]).results() + &crate::warpframe(&["bench", "--help"]).results();
    let options: Vec<&str> =
        help.split_whitespace().filter(|word| word.starts_with("--")).collect();
    assert!(options.len() > 20);
    for option in options {
        let name = option.trim_matches(|c: char| !c.is_alphanumeric());
        let named = [format!("--{name}["), format!("--{name}=[")];
        assert!(named.iter().any(|option| zsh.contains(option)), "{name}\n{zsh}");
        assert!(fish.contains(&format!(" -l {name} ")), "{name}\n{fish}");
    }
    crate::warpframe(&["--completions", "tcsh"]).failure(2);
    crate::warpframe(&["--completions", "bash", "-c", "SELECT 1"]).failure(2);
}
