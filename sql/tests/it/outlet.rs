//! Files that results go to: written whole or not at all, as their names tell.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::interrupt::ENDLESS;
use crate::{Files, command, run_with_input, warpframe};

/// What is in a test's folder.
fn names(files: &Files) -> Vec<String> {
    let entries = fs::read_dir(files.path("")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_input_of_a_query_may_be_its_output() {
    let files = Files::new();
    let own = files.write("own.csv", "a,b\n1,x\n2,y\n");
    let run = [&own, "--device", "cpu", "-c", "FROM own WHERE a > 1", "--output", &own];
    assert_eq!(warpframe(&run).results(), "");
    assert_eq!(fs::read_to_string(&own).unwrap(), "a,b\n2,y\n");
    let input = format!(".output {own}\nFROM own;\nFROM own;\n.output\nSELECT 1 AS z;\n");
    let run = run_with_input(&[&own, "--device", "cpu", "--csv"], &input);
    assert_eq!(run.results(), "z\n1\n");
    assert_eq!(fs::read_to_string(&own).unwrap(), "a,b\n2,y\na,b\n2,y\n");
    assert_eq!(names(&files), ["own.csv"]);
}

#[test]
fn a_failure_leaves_the_file_that_was_there() {
    let files = Files::new();
    let report = files.write("report.csv", "of yesterday\n");
    let missing = files.path("missing.csv");
    let kept = || fs::read_to_string(&report).unwrap();
    for (arguments, code) in [
        (["-c", "SELECT 1 AS a; SELECT nope"], 1),
        (["-c", "FROM 'missing.csv'"], 1),
        (["-f", &missing], 1),
        (["--delimiter", "ab"], 2),
    ] {
        let run = [&["--device", "cpu", "--output", &report][..], &arguments].concat();
        let messages = warpframe(&run).failure(code);
        assert_eq!((kept(), names(&files).len()), ("of yesterday\n".into(), 1), "{messages}");
    }
    let run = [&missing, "--device", "cpu", "--output", &report, "-c", "SELECT 1"];
    assert!(warpframe(&run).failure(1).contains("missing.csv: no such file"));
    let script = format!(".output {report}\nSELECT 1 AS a;\nSELECT nope;\n");
    run_with_input(&["--device", "cpu"], &script).failure(1);
    let once = format!(".once {report}\nSELECT nope;\n.print on\n");
    let run = run_with_input(&["--device", "cpu", "--keep-going"], &once);
    assert_eq!(run.out, "on\n");
    assert_eq!((kept(), names(&files).len()), ("of yesterday\n".into(), 1));

    // Who goes on after a failure wants the others.
    let run = ["--device", "cpu", "--keep-going", "--output", &report];
    let sql = "SELECT 1 AS a; SELECT [1] AS nested; SELECT nope; SELECT 2 AS b";
    warpframe(&[&run[..], &["-c", sql]].concat()).failure(1);
    assert!(kept().starts_with("a\n1\n") && kept().ends_with("b\n2\n"), "{}", kept());
    let folder = ["--device", "cpu", "--output", "no-such-folder/x.csv", "-c", "SELECT 1"];
    let messages = warpframe(&folder).failure(1);
    assert_eq!(messages, "error: no-such-folder/x.csv: there is no such folder\n");
}

#[test]
fn names_of_files_tell_parquet_and_arrow_and_no_name_lies() {
    let files = Files::new();
    let path = |name: &str| files.path(name);
    let cpu = |more: &[&str]| warpframe(&[&["--device", "cpu"], more].concat());
    for name in ["x.parquet", "x.pq", "x.arrow", "x.arrows", "x.feather"] {
        let file = path(name);
        let sql = "CREATE TABLE t AS SELECT 1 AS a, 'é' AS s; FROM t";
        assert_eq!(cpu(&["--output", &file, "-c", sql]).results(), "");
        let read = cpu(&["--csv", "-c", &format!("FROM '{file}'")]).results();
        assert_eq!(read, "a,s\n1,é\n", "{name}");
        let before = fs::read(&file).unwrap();
        for (sql, why) in [
            ("SELECT 1 AS a; SELECT 2 AS a", "such a file holds one result, and has one"),
            ("CREATE TABLE t AS SELECT 1 AS a", "there was no result to write"),
            (".print text", "only rows of queries go into such a file"),
        ] {
            let messages = cpu(&["--output", &file, "-c", sql]).failure(1);
            assert!(messages.contains(name) && messages.contains(why), "{messages}");
            assert_eq!(fs::read(&file).unwrap(), before);
        }
        let messages = cpu(&["--output", &file, "--csv", "-c", "SELECT 1"]).failure(2);
        assert!(messages.contains("is written as its name tells"), "{messages}");
    }
    let described = path("d.parquet");
    let input = format!(".mode csv\n.once {described}\nSHOW max_rows;\nFROM '{described}';\n");
    let run = run_with_input(&["--device", "cpu"], &input).results();
    assert!(run.starts_with("name,value,description\nmax_rows,"), "{run}");

    let file = path("x.xyz");
    let messages = cpu(&["--output", &file, "-c", "SELECT 1 AS a"]).failure(2);
    let expected = "x.xyz: .xyz is of no format; known are .csv, .tsv, .json,";
    assert!(messages.contains(expected) && messages.contains("--format"), "{messages}");
    let command = format!(".output {file}\n");
    let messages = run_with_input(&["--device", "cpu"], &command).failure(1);
    assert!(messages.contains(expected) && messages.contains(".mode"), "{messages}");
    assert!(!Path::new(&file).exists());
    assert_eq!(cpu(&["--output", &file, "--csv", "-c", "SELECT 1 AS a"]).results(), "");
    assert_eq!(fs::read_to_string(&file).unwrap(), "a\n1\n");
    let command = format!(".mode tsv\n.output {file}\nSELECT 2 AS a, 3 AS b;\n");
    assert_eq!(run_with_input(&["--device", "cpu"], &command).results(), "");
    assert_eq!(fs::read_to_string(&file).unwrap(), "a\tb\n2\t3\n");
    // What is no file has any name, and the command's own texts go into any.
    assert_eq!(cpu(&["--output", "/dev/null", "-c", "SELECT 1 AS a"]).results(), "");
    let page = path("warpframe.1");
    assert_eq!(cpu(&["--man", "--output", &page]).results(), "");
    assert!(fs::read_to_string(&page).unwrap().contains("SIGTERM"));
}

#[test]
fn results_go_to_programs_and_what_is_told_besides_stays_out_of_files() {
    let files = Files::new();
    let run = |more: &[&str], input: &str| {
        run_with_input(&[&["--device", "cpu", "--csv"], more].concat(), input)
    };
    let input = ".output |tr a-z A-Z\nSELECT 'x' AS a;\n.output\nSELECT 'y' AS b;\n";
    assert_eq!(run(&[], input).results(), "A\nX\nb\ny\n");
    // One that reads no more is no failure.
    let input =
        ".once |head -n 1\nFROM range(200000) t(i);\n.output | cat\nSELECT 'y' AS b;\n.quit\n";
    assert_eq!(run(&[], input).results(), "i\nb\ny\n");
    let messages = run(&["--no-user-code"], ".output |cat\n").failure(1);
    assert!(messages.contains("--no-user-code forbids it"), "{messages}");
    assert!(!Path::new("|cat").exists());

    let out = files.path("x.csv");
    let told = run(&[], &format!(".output {out}\n.echo on\nSELECT 1 AS a;\n.print b\n"));
    assert_eq!((told.code, told.out.as_str()), (Some(0), ""));
    assert_eq!(told.messages, "SELECT 1 AS a;\n.print b\n");
    assert_eq!(fs::read_to_string(&out).unwrap(), "a\n1\nb\n");
}

#[test]
fn a_copy_has_names_as_long_as_can_be_and_follows_no_links_in_a_circle() {
    let files = Files::new();
    let copy = |path: &str| {
        warpframe(&["--device", "cpu", "-c", &format!("COPY (SELECT 1 AS a) TO '{path}'")])
    };
    let long = format!("{}.csv", "n".repeat(250));
    assert_eq!(copy(&files.path(&long)).results(), "");
    assert_eq!(names(&files), [long]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("b.csv", files.path("a.csv")).unwrap();
        std::os::unix::fs::symlink("a.csv", files.path("b.csv")).unwrap();
        let messages = copy(&files.path("a.csv")).failure(1);
        assert!(messages.contains("a.csv: Too many levels of symbolic links"), "{messages}");
        assert_eq!(names(&files).len(), 3);
    }
}

/// Ends a command that writes these files, once it has begun to.
#[cfg(unix)]
fn ended(files: &Files, arguments: &[&str], signal: &str) -> Option<i32> {
    let mut command = command(&[&["data/jets.csv", "--device", "cpu"], arguments].concat());
    let mut child =
        command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let start = Instant::now();
    while !names(files).iter().any(|name| name.ends_with(".partial")) {
        assert!(start.elapsed() < Duration::from_secs(120), "it writes beside the file");
        std::thread::sleep(Duration::from_millis(20));
    }
    let killed = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(killed.expect("there is kill").success());
    child.wait().expect("it ends").code()
}

#[cfg(unix)]
#[test]
fn signals_leave_no_partial_files() {
    for (signal, code) in [("-TERM", 143), ("-HUP", 129), ("-INT", 130)] {
        let files = Files::new();
        let out = files.write("out.csv", "before");
        let rows = "SELECT i % 1000 AS k, i FROM range(2000000000) t(i)";
        let query = ENDLESS.trim_end_matches(';');
        let few = rows.replace("2000000000", "3000000");
        let folders = format!("COPY ({few}) TO '{}' (PARTITION_BY (k))", files.path("x.csv"));
        for arguments in [
            &["-c", &format!("COPY ({rows}) TO '{out}'")][..],
            &["-c", &format!("COPY ({query}) TO '{out}'")],
            &["--output", &out, "-c", ENDLESS],
            &["-c", &folders],
        ] {
            assert_eq!(ended(&files, arguments, signal), Some(code), "{arguments:?}");
            assert_eq!(names(&files), ["out.csv"], "{arguments:?}");
            assert_eq!(fs::read_to_string(&out).unwrap(), "before");
        }
    }
}
