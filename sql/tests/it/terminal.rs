//! The shell as a person meets it, through a pseudo-terminal that `script` (of util-linux) makes.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::{Files, root};

const PROMPT: &str = "warpframe> ";

/// No answer for so long is none: a debug build on a busy machine takes seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the terminal shows when these entries are typed, each after a prompt; `None` where there is
/// no `script` to make a terminal.
fn typed(files: &Files, arguments: &str, entries: &[&str]) -> Option<String> {
    let mut command = Command::new("script");
    command
        .args(["-qec", &format!("'{}' {arguments}", env!("CARGO_BIN_EXE_warpframe")), "/dev/null"])
        .current_dir(root())
        .env("WARPFRAME_HISTORY", files.path("history"))
        .env("TERM", "xterm")
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
    let mut seen = 0;
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
        if begun > seen && text.rsplit("\x1b[?2004h").next().is_some_and(|rest| rest.contains(PROMPT)) {
            seen = begun;
            if let Some(entry) = entries.next() {
                keys.write_all(entry.as_bytes()).expect("the shell reads");
            }
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
    // `jetid` and `jets` go on from the part that they share; one match comes whole.
    let entries = ["SELECT count(*) AS n FROM je\ts;\r", "SELECT max(px) AS p FROM jets WHERE jeti\t < 0;\r", "\x04"];
    let Some(screen) = typed(&files, "data/jets.csv --device cpu", &entries) else { return };
    assert!(screen.contains("| 100000 |") && screen.contains("| NULL |"), "{screen}");
}

/// A statement that its time limit ends after some seconds: the shell's, and one of the command line.
#[test]
fn a_terminal_is_told_how_far_a_statement_is_until_the_answer() {
    let files = Files::new();
    let endless = "SELECT count(*) FROM jets a JOIN jets b ON a.px + b.px < a.py * b.py;\r";
    let entries = ["SET statement_timeout = '4s';\r", endless, "SELECT 40 + 2 AS answer;\r", "\x04"];
    let line = "\r\x1b[K1.0 s";
    let Some(screen) = typed(&files, "data/jets.csv --device cpu", &entries) else { return };
    assert!(screen.contains(line) && screen.contains("\r\x1b[K2."), "it is told of each tenth: {screen:?}");
    assert!(screen.contains("\r\x1b[Kerror: the statement took longer"), "the line is erased: {screen:?}");
    assert!(screen.contains("|     42 |"), "{screen}");
    let silent = typed(&files, "data/jets.csv --device cpu --no-progress", &entries).expect("there was one");
    assert!(!silent.contains(line) && silent.contains("|     42 |"), "{silent:?}");
}

#[test]
fn standard_error_that_is_no_terminal_is_told_nothing() {
    let sql = "SET statement_timeout = '3s'; \
        SELECT count(*) FROM jets a JOIN jets b ON a.px + b.px < a.py * b.py";
    let messages = crate::warpframe(&["data/jets.csv", "--device", "cpu", "-c", sql]).failure(1);
    assert!(messages.contains("statement_timeout") && !messages.contains('\r'), "{messages:?}");
}
