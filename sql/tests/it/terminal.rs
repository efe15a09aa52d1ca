//! The shell as a person meets it, through a pseudo-terminal that `script` (of util-linux) makes.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::{Files, root};

const PROMPT: &str = "warpframe> ";

/// No answer for so long is none: a debug build on a busy machine takes seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the terminal shows when these entries are typed, each after a prompt. A Ctrl-C behind an
/// entry is typed once the terminal is told how far its statement is. `None` where there is no
/// `script` to make a terminal.
fn typed(files: &Files, arguments: &str, entries: &[&str]) -> Option<String> {
    typed_with(files, &[], arguments, entries)
}

/// The same with these variables. Where they have `SIZE`, such as `80 24`, the terminal has so many
/// columns and lines; otherwise it does not know.
fn typed_with(
    files: &Files,
    variables: &[(&str, &str)],
    arguments: &str,
    entries: &[&str],
) -> Option<String> {
    let size = variables
        .iter()
        .find(|(name, _)| *name == "SIZE")
        .and_then(|(_, size)| size.split_once(' '));
    let size = size
        .map_or_else(String::new, |(columns, lines)| format!("stty cols {columns} rows {lines}; "));
    let mut command = Command::new("script");
    command
        .args([
            "-qec",
            &format!("{size}exec '{}' {arguments}", env!("CARGO_BIN_EXE_warpframe")),
            "/dev/null",
        ])
        // `script` runs `SHELL`. A shell that stays beside the command sees Ctrl-C, too, and some
        // end with its status: so the command takes the shell's place.
        .env("SHELL", "/bin/sh")
        .current_dir(root())
        .env("WARPFRAME_HISTORY", files.path("history"))
        .env("TERM", "xterm")
        .env("NO_COLOR", "1")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: no script(1) on this machine");
            return None;
        }
        Err(error) => panic!("script: {error}"),
    };
    let mut keys = child.stdin.take().expect("it is piped");
    let mut out = child.stdout.take().expect("it is piped");
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = out.read(&mut bytes) {
            if send.send(bytes[..count].to_vec()).is_err() {
                return;
            }
        }
    });

    let mut screen = vec![];
    let (mut seen, mut interrupt) = (0, None);
    let mut entries = entries.iter();
    loop {
        match receive.recv_timeout(PATIENCE) {
            Ok(bytes) => screen.extend(bytes),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                panic!("no answer: {}", String::from_utf8_lossy(&screen));
            }
        }
        // The editor draws the prompt again with each key: only one that is drawn after the answer
        // counts, and the editor asks for bracketed paste once each time it begins to read.
        let text = String::from_utf8_lossy(&screen);
        let begun = text.matches("\x1b[?2004h").count();
        if begun > seen
            && text.rsplit("\x1b[?2004h").next().is_some_and(|rest| rest.contains(PROMPT))
        {
            seen = begun;
            if let Some(entry) = entries.next() {
                let (entry, stop) =
                    entry.strip_suffix('\x03').map_or((*entry, false), |entry| (entry, true));
                interrupt = stop.then_some(screen.len());
                keys.write_all(entry.as_bytes()).expect("the shell reads");
            }
        }
        if interrupt
            .is_some_and(|from| String::from_utf8_lossy(&screen[from..]).contains("\r\x1b[K1."))
        {
            interrupt = None;
            keys.write_all(b"\x03").expect("the shell reads");
        }
    }
    drop(keys);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    Some(String::from_utf8(screen).expect("all output is text"))
}

#[test]
fn statements_of_several_lines_errors_and_commands_in_one_session() {
    let files = Files::new();
    let entries = ["SELECT 40\r + 2 AS answer;\r", "SELECT nobody;\r", ".tables\r", ".quit\r"];
    let Some(screen) = typed(&files, "data/jets.csv --device cpu", &entries) else { return };
    assert!(screen.contains("-- ';' ends the statement"), "{screen}");
    for part in ["|     42 |", "^^^^^^", "\njets\r\n"] {
        assert!(screen.contains(part), "{part:?} in {screen}");
    }
    let history = std::fs::read_to_string(files.path("history")).unwrap();
    assert!(history.contains("+ 2 AS answer;") && history.contains(".tables"), "{history}");
}

#[test]
fn a_terminal_sees_the_first_rows_only() {
    let files = Files::new();
    let entries = ["SELECT px FROM jets;\r", "\x04"];
    let Some(screen) = typed(&files, "data/jets.csv --device cpu", &entries) else { return };
    assert!(screen.contains("100000 rows, of which the first 100 are shown"), "{screen}");
}

#[test]
fn tab_completes_names() {
    let files = Files::new();
    // Behind FROM stand tables; elsewhere `jetid` and `jets` go on from the part that they share.
    let shared = "SELECT max(je\tid) AS p FROM jets WHERE jeti\t < 0;\r";
    let entries = ["SELECT count(*) AS n FROM je\t;\r", shared, "\x04"];
    let Some(screen) = typed(&files, "data/jets.csv --device cpu", &entries) else { return };
    assert!(screen.contains("| 100000 |") && screen.contains("|   NULL |"), "{screen}");
}

/// Without what the terminal draws: lines that are erased, and the sequences for that.
fn plain(screen: &str) -> String {
    let lines = screen.replace("\r\n", "\n");
    lines
        .split('\n')
        .map(|line| line.rsplit("\r\x1b[K").next().unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The page's sessions: what is typed, and what comes of it.
#[test]
fn what_the_page_shows_of_a_terminal_is_what_a_terminal_shows() {
    let blocks = crate::shell::blocks("console");
    assert!(blocks.len() > 1);
    for block in blocks {
        let files = Files::new();
        let folder = files.path("").trim_end_matches('/').to_string();
        let (start, rest) = block.split_once('\n').expect("a command line");
        let arguments = start.strip_prefix("$ warpframe ").expect("the command");
        let mut typed_and_shown: Vec<(String, String)> = vec![];
        for part in rest.split(PROMPT).skip(1) {
            let is_command = part.starts_with(['.', '\\'])
                || ["quit\n", "exit\n"].iter().any(|word| part.starts_with(word));
            let end = if is_command { part.find('\n') } else { part.find(";\n").map(|at| at + 1) };
            let (entry, shown) = part.split_at(end.expect("an entry ends") + 1);
            typed_and_shown.push((entry.replace("/tmp/first-hour", &folder), shown.into()));
        }
        let entries: Vec<String> =
            typed_and_shown.iter().map(|(entry, _)| entry.replace('\n', "\r")).collect();
        let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
        let variables = [("SIZE", "100 40"), ("PAGER", "cat"), ("WARPFRAMERC", "/dev/null")];
        let Some(screen) = typed_with(&files, &variables, arguments, &entries) else { return };
        let answers: Vec<&str> = screen.split("\x1b[?2004l").skip(1).collect();
        assert_eq!(answers.len(), entries.len(), "{screen}");
        for ((entry, expected), answer) in typed_and_shown.iter().zip(answers) {
            let answer = answer.split("\x1b[?2004h").next().unwrap_or(answer);
            let answer = plain(answer).replace(&folder, "/tmp/first-hour");
            assert_eq!(answer.trim_start_matches('\n'), expected, "{entry}");
        }
    }
}

#[test]
fn ctrl_c_stops_the_statement_and_the_shell_goes_on() {
    let endless = format!("{}\r\x03", crate::interrupt::ENDLESS);
    for device in crate::DEVICES {
        let files = Files::new();
        let entries = [&endless, "SELECT 40 + 2 AS answer;\r", "\x04"];
        let Some(screen) = typed(&files, &format!("data/jets.csv --device {device}"), &entries)
        else {
            return;
        };
        assert!(screen.contains("error: the statement was interrupted"), "{screen}");
        assert!(screen.contains("|     42 |"), "{screen}");
    }
}

/// A statement that its time limit ends after some seconds: the shell's, and one of the command
/// line.
#[test]
fn a_terminal_is_told_how_far_a_statement_is_until_the_answer() {
    let files = Files::new();
    let endless = "SELECT count(*) FROM jets a JOIN jets b ON a.px + b.px < a.py * b.py;\r";
    let entries =
        ["SET statement_timeout = '4s';\r", endless, "SELECT 40 + 2 AS answer;\r", "\x04"];
    let line = "\r\x1b[K0.";
    let Some(screen) = typed(&files, "data/jets.csv --device cpu", &entries) else { return };
    assert!(
        screen.contains(line) && screen.contains("\r\x1b[K2."),
        "it is told of each tenth: {screen:?}"
    );
    assert!(
        screen.contains("\r\x1b[Kerror: the statement took longer"),
        "the line is erased: {screen:?}"
    );
    assert!(screen.contains("|     42 |"), "{screen}");
    let silent =
        typed(&files, "data/jets.csv --device cpu --no-progress", &entries).expect("there was one");
    assert!(!silent.contains(line) && silent.contains("|     42 |"), "{silent:?}");
}

#[test]
fn colours_are_those_of_tokens_unless_somebody_minds() {
    let files = Files::new();
    let entries =
        ["SELECT 40 + 2 AS answer, NULL AS n; -- x\r", ".highlight off\r", "SELECT 1;\r", "\x04"];
    let Some(screen) = typed_with(&files, &[("NO_COLOR", "")], "--device cpu", &entries) else {
        return;
    };
    for part in [
        "\x1b[1;34mSELECT\x1b[0m",
        "\x1b[35m40\x1b[0m",
        "\x1b[2m-- x\x1b[0m",
        "| \x1b[2mNULL\x1b[0m   |",
    ] {
        assert!(screen.contains(part), "{part:?} in {screen:?}");
    }
    assert!(screen.contains("\x1b[36m.highlight\x1b[0m off"), "{screen:?}");
    // What was typed after that, and with NO_COLOR, has none.
    assert!(
        screen.rsplit("off").next().is_some_and(|rest| !rest.contains("\x1b[1;34m")),
        "{screen:?}"
    );
    let plain =
        typed(&files, "--device cpu", &["SELECT NULL AS n;\r", "\x04"]).expect("there was one");
    assert!(!plain.contains("\x1b[1;34m") && plain.contains("| NULL   |"), "{plain:?}");
}

#[test]
fn the_editor_gets_the_last_or_the_unfinished_statement() {
    let files = Files::new();
    let entries = ["SELECT 40 AS answer;\r", ".edit\r", "SELECT\r40 + 1 AS more\r.edit\r", "\x04"];
    let variables = [("EDITOR", "sed -i s/40/142/")];
    let Some(screen) = typed_with(&files, &variables, "--device cpu", &entries) else { return };
    assert!(
        screen.contains("SELECT 142 AS answer;\r\n") && screen.contains("|    142 |"),
        "{screen}"
    );
    assert!(screen.contains("|    143 |"), "{screen}");
    let history = std::fs::read_to_string(files.path("history")).unwrap();
    assert!(history.contains("SELECT 142 AS answer;"), "{history}");

    let entries = ["SELECT 40 AS answer;\r", ".edit\r", "\x04"];
    let kept = typed_with(
        &files,
        &[("VISUAL", "true"), ("EDITOR", "sed -i s/40/142/")],
        "--device cpu",
        &entries,
    );
    assert!(kept.is_some_and(|screen| screen.contains("nothing new was saved: nothing runs")));
    let failed = typed_with(&files, &[("EDITOR", "false")], "--device cpu", &entries)
        .expect("there was one");
    assert!(
        failed.contains("error: .edit: \"false\" failed (exit status: 1); nothing runs"),
        "{failed}"
    );
    let forbidden = typed(&files, "--device cpu --no-user-code", &entries).expect("there was one");
    assert!(forbidden.contains(".edit is not there: --no-user-code forbids it"), "{forbidden}");
}

#[test]
fn a_pager_shows_results_that_are_longer_than_the_terminal() {
    let files = Files::new();
    let entries = ["SELECT 1 AS one;\r", "SELECT jetid AS many FROM jets;\r", "\x04"];
    let variables = [("SIZE", "80 24"), ("PAGER", "echo paged; tail -n 1")];
    let Some(screen) = typed_with(&files, &variables, "data/jets.csv --device cpu", &entries)
    else {
        return;
    };
    assert!(screen.contains("|      1 |") && screen.matches("paged\r\n").count() == 1, "{screen}");
    assert!(
        screen.contains("100000 rows, of which the first 10000 are shown")
            && !screen.contains("many |"),
        "{screen}"
    );

    let entries = [
        ".pager on\r",
        "SELECT 7 AS one;\r",
        ".pager off\r",
        "SELECT jetid AS many FROM jets;\r",
        "\x04",
    ];
    let screen = typed_with(&files, &variables, "data/jets.csv --device cpu", &entries)
        .expect("there was one");
    assert!(
        screen.contains("paged\r\n1 row\r\n") && screen.matches("paged\r\n").count() == 1,
        "{screen}"
    );
    assert!(screen.contains("the first 100 are shown"), "{screen}");

    // One that leaves early is no failure, and one that is not there says so.
    let entries = ["SELECT jetid FROM jets;\r", "SELECT 40 + 2 AS answer;\r", "\x04"];
    let run = |pager| {
        let variables = [("SIZE", "80 24"), ("PAGER", pager)];
        typed_with(&files, &variables, "data/jets.csv --device cpu", &entries)
            .expect("there was one")
    };
    let left = run("true");
    assert!(left.contains("|     42 |") && !left.contains("error"), "{left}");
    let missing = run("no-such-pager");
    assert!(
        missing.contains("error: the pager \"no-such-pager\" cannot be run (exit status: 127)"),
        "{missing}"
    );
    assert!(missing.contains("|     42 |"), "{missing}");
}

#[test]
fn tables_are_no_wider_than_the_terminal() {
    let files = Files::new();
    let entries =
        ["SELECT repeat('x', 100) AS a, *, repeat('y', 100) AS z FROM jets LIMIT 1;\r", "\x04"];
    let variables = [("SIZE", "50 24")];
    let Some(screen) = typed_with(&files, &variables, "data/jets.csv --device cpu", &entries)
    else {
        return;
    };
    let widths = screen
        .lines()
        .filter(|line| line.starts_with(['|', '+']))
        .map(|line| line.trim_end().chars().count());
    assert!(widths.max().is_some_and(|widest| (40..=50).contains(&widest)), "{screen}");
    assert!(screen.contains("7 columns, of which "), "{screen}");
}

#[test]
fn standard_error_that_is_no_terminal_is_told_nothing() {
    let sql = "SET statement_timeout = '3s'; \
        SELECT count(*) FROM jets a JOIN jets b ON a.px + b.px < a.py * b.py";
    let messages = crate::warpframe(&["data/jets.csv", "--device", "cpu", "-c", sql]).failure(1);
    assert!(messages.contains("statement_timeout") && !messages.contains('\r'), "{messages:?}");
}

/// Of one write to the terminal, as programs send it: the editor and the statements each see a part.
#[test]
fn what_is_typed_ahead_runs_in_order() {
    let files = Files::new();
    for count in [20, 200] {
        let statement = |n: usize| format!("SELECT {n} AS\r typed_{n};\r");
        let all: String = (1..=count).map(statement).collect();
        let Some(screen) = typed(&files, "--device cpu --csv", &[&(all + ".quit\r")]) else {
            return;
        };
        let answers: Vec<usize> =
            screen.lines().filter_map(|line| line.trim_end().parse().ok()).collect();
        assert_eq!(answers, (1..=count).collect::<Vec<_>>(), "{screen}");
        assert!(!screen.contains("error"), "{screen}");
    }
}

#[test]
fn the_time_of_a_statement_is_not_that_of_its_reader() {
    let files = Files::new();
    let entries = [".timer on\r", "SELECT jetid AS many FROM jets;\r", "\x04"];
    let variables = [("SIZE", "80 24"), ("PAGER", "cat >/dev/null; sleep 20")];
    let Some(screen) = typed_with(&files, &variables, "data/jets.csv --device cpu", &entries)
    else {
        return;
    };
    let time = screen.split("time: ").nth(1).expect("it is told");
    let (number, unit) = time.split_once(' ').expect("it has a unit");
    let seconds: f64 = number.parse().expect("it is a number");
    assert!(unit.starts_with("ms") || seconds < 20.0, "{screen}");
}

#[test]
fn a_wrong_line_of_the_rc_file_is_told_and_the_others_run() {
    let files = Files::new();
    let rc = files.write(
        "rc",
        "\u{feff}.mode csv\n.timer maybe\nSELECT\n  nope;\nCREATE TABLE t AS SELECT 7 AS seven;\n.nothing\n",
    );
    let entries = ["FROM t;\r", "SELECT nope; SELECT 'never' AS n;\r", "\x04"];
    let Some(screen) = typed_with(&files, &[("WARPFRAMERC", &rc)], "--device cpu", &entries) else {
        return;
    };
    for part in [
        format!("not \"maybe\"\r\n  --> {rc}, line 2\r\n"),
        format!("  --> {rc}, line 4, column 3\r\n"),
        format!("no command .nothing; .help lists them\r\n  --> {rc}, line 6\r\n"),
        "seven\r\n7\r\n".into(),
    ] {
        assert!(screen.contains(&part), "{part:?} in {screen}");
    }
    // The shell itself ends an entry at its first failure.
    assert!(!screen.contains("n\r\nnever"), "{screen}");
}

#[test]
fn files_of_a_session_have_what_went_well_and_nothing_that_was_told() {
    let files = Files::new();
    let (first, other) = (files.path("first.csv"), files.path("other.csv"));
    let redirect = format!(".output {other}\r");
    let entries = [
        "SELECT 1 AS a;\r",
        "CREATE TABLE t AS SELECT 2 AS b;\r",
        "SELECT nope;\r",
        "FROM t;\r",
        &redirect,
        "SELECT 3 AS c;\r",
        "\x04",
    ];
    let arguments = format!("--device cpu --output '{first}'");
    let Some(screen) = typed(&files, &arguments, &entries) else { return };
    let text = |path| std::fs::read_to_string(path).unwrap();
    assert_eq!((text(first), text(other)), ("a\n1\nb\n2\n".into(), "c\n3\n".into()));
    for part in ["Type SQL that ends in ';'", "table t: 1 row", "nope"] {
        assert!(screen.contains(part), "{part:?} in {screen}");
    }
}

/// The first column stays whole, though names of options are long.
#[test]
fn names_of_options_are_told_apart() {
    let files = Files::new();
    let entries = [".pager off\r", "SHOW ALL LIKE 'datafusion.execution.parquet.%';\r", ".quit\r"];
    let Some(screen) = typed_with(&files, &[("SIZE", "120 80")], "--device cpu", &entries) else {
        return;
    };
    let first = |line: &str| line.split('|').nth(1).map(|name| name.trim().to_string());
    let names: Vec<String> = screen.lines().filter_map(first).collect();
    assert!(
        names.iter().any(|name| name.ends_with("maximum_parallel_row_group_writers")),
        "{screen}"
    );
    assert!(names.iter().all(|name| !name.ends_with('…')), "{screen}");
}
