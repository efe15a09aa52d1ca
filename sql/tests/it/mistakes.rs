//! What is told of mistakes, and where: `mistakes.txt`, each statement in the same session.
//!
//! ```text
//! > a statement with a mistake
//! error: what is wrong
//!     ^^^ under the statement's text
//! hint: what was meant
//! ```

use std::fs::File;
use std::process::Stdio;

use crate::{Files, command};

const CASES: &str = include_str!("mistakes.txt");
const MARK: &str = "@@@";

/// A statement, and the lines that are told of it.
fn cases() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut cases: Vec<(&str, Vec<&str>)> = vec![];
    for line in CASES.lines() {
        match (line.strip_prefix("> "), cases.last_mut()) {
            (Some(text), _) => cases.push((text, vec![])),
            (None, Some((_, told))) => told.push(line),
            (None, None) => {}
        }
    }
    cases
}

/// A report without its place, the carets moved to where the statement stands in the file of cases.
fn told(report: &str) -> Vec<String> {
    let mut lines = vec![];
    for line in report.lines() {
        match line.trim_start().strip_prefix("| ") {
            Some(carets) if carets.trim_start().starts_with('^') => {
                lines.push(format!("  {carets}"))
            }
            _ if line.starts_with("  ") => {}
            _ => lines.push(line.to_string()),
        }
    }
    lines
}

#[test]
fn mistakes_are_told_where_they_are() {
    let cases = cases();
    let files = Files::new();
    let mut script = String::new();
    for (text, _) in &cases {
        let end = if text.starts_with('.') { "" } else { ";" };
        script.push_str(&format!(".print {MARK}\n{text}{end}\n"));
    }
    let (path, out) = (files.write("all.sql", script), files.path("out"));
    for device in ["cpu", "sim"] {
        let mut command =
            command(&["data/jets.csv", "--keep-going", "--format", "csv", "-f", &path]);
        let file = File::create(&out).expect("the directory can be written to");
        let both = file.try_clone().expect("it can be written to twice");
        command.args(["--device", device]).stdin(Stdio::null()).stdout(file).stderr(both);
        assert_eq!(command.status().expect("the binary runs").code(), Some(1));
        let written = std::fs::read_to_string(&out).expect("all output is text");
        let written: Vec<&str> = written.split(&format!("{MARK}\n")).skip(1).collect();
        assert_eq!(written.len(), cases.len());
        let mut wrong = vec![];
        for ((text, expected), written) in cases.iter().zip(written) {
            // The device has an account of its own of values, at the same place.
            let told = told(written);
            let is_caret = |line: &str| line.trim_start().starts_with('^');
            let fits = match device {
                "cpu" => told == *expected,
                _ => {
                    let carets = told.iter().any(|line| is_caret(line));
                    told.is_empty() == expected.is_empty()
                        && carets == expected.iter().any(|line| is_caret(line))
                }
            };
            if !fits {
                wrong.push(format!("> {text}\n{}", told.join("\n")));
            }
        }
        assert!(
            wrong.is_empty(),
            "{} of {} on {device}:\n{}",
            wrong.len(),
            cases.len(),
            wrong.join("\n")
        );
    }
    let places =
        cases.iter().filter(|(_, told)| told.iter().any(|line| line.trim_start().starts_with('^')));
    let hints = CASES.matches("did you mean ").count();
    assert!(
        cases.len() > 120 && places.count() > 110 && hints > 30,
        "{} cases, {hints} hints",
        cases.len()
    );
}
