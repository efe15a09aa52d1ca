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
