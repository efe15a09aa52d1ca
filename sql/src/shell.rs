//! The shell: statements typed by a person, with history and completion.

mod complete;
mod dot;
mod edit;
mod highlight;
mod named_tables;
mod plot;
pub mod script;

use std::path::PathBuf;

use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{Config, Editor};
use warpframe::Session;
use warpframe::device::{Device, DeviceKind};

use crate::interrupt;
use crate::report::{Failure, Source, shown};
use crate::run::Runner;
use complete::Assistant;

/// What a person typed: one entry, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Text(String),
    /// Ctrl-C: away with what was typed.
    Interrupt,
    /// Ctrl-D.
    End,
}

/// Where entries come from.
trait Entries {
    fn next(&mut self, runner: &mut Runner<'_>) -> Result<Entry, Failure>;
}

/// Whether the shell goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It does.
    Entry,
    /// Somebody left.
    Quit,
}

/// The commands with what they take, and what they do.
pub fn commands() -> impl Iterator<Item = (String, String)> {
    dot::all()
}

/// Talks with the person at the terminal until they leave.
///
/// # Errors
/// The terminal fails; a failed statement does not end the shell.
pub fn run(runner: &mut Runner<'_>) -> Result<(), Failure> {
    let mut terminal = Terminal::open().inspect_err(|failure| runner.complain(failure))?;
    interrupt::watch(&runner.session);
    let device = place(&runner.session);
    runner.tell(&format!(
        "warpframe {} on {device}. Type SQL that ends in ';', or .help.\n",
        env!("CARGO_PKG_VERSION")
    ))?;
    if let Some(path) = rc_file() {
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let source = Source { name: Some(path.display().to_string()), text };
                if begins_with(runner, &source) == Next::Quit {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => runner.complain(&Failure::file(&path, error)),
        }
    }
    let result = converse(runner, &mut terminal);
    tell_of_lost_tables(runner);
    result
}

/// Says which tables end with the session.
fn tell_of_lost_tables(runner: &mut Runner<'_>) {
    // Whose names cannot be told are not told of.
    let lost = runner.session.unsaved_tables().unwrap_or_default();
    if !lost.is_empty() {
        let names = shown(&lost.join(", "));
        runner.say(&format!(
            "note: {names} ended with this session; .open DIR opens a database that keeps tables\n"
        ));
    }
}

/// Runs what a shell begins with. What is wrong there is told, and keeps neither what follows from
/// running, unless it says so, nor anybody from working.
fn begins_with(runner: &mut Runner<'_>, source: &Source) -> Next {
    let bail = std::mem::replace(&mut runner.settings.bail, false);
    let next = script::run(runner, source).unwrap_or(Next::Entry);
    if !source.text.lines().any(|line| line.trim_start().starts_with(".bail")) {
        runner.settings.bail = bail;
    }
    next
}

/// What runs when a shell begins: `WARPFRAMERC`, or `~/.warpframerc`.
fn rc_file() -> Option<PathBuf> {
    let variable =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("WARPFRAMERC").or_else(|| variable("HOME").map(|home| home.join(".warpframerc")))
}

fn converse(runner: &mut Runner<'_>, entries: &mut dyn Entries) -> Result<(), Failure> {
    loop {
        let text = match entries.next(runner)? {
            Entry::Text(text) => text,
            Entry::Interrupt => continue,
            Entry::End => return Ok(()),
        };
        let result = match edit::begun(&text) {
            _ if foreign(&text).is_some() => obey_foreign(runner, &text),
            Some(begun) => dot::edit(runner, begun).inspect_err(|failure| runner.complain(failure)),
            None => script::run(runner, &Source { name: None, text }),
        };
        match result {
            Ok(Next::Quit) => return Ok(()),
            // Nobody reads any more.
            Err(failure) if failure.is_broken_pipe() => return Err(failure),
            Ok(Next::Entry) | Err(_) => {}
        }
    }
}

/// What people type whose hands know other shells: the command that they mean, where there is one.
fn foreign(entry: &str) -> Option<&'static str> {
    let entry = entry.trim();
    match entry.trim_end_matches(';').trim_end().to_lowercase().as_str() {
        "quit" | "exit" | "\\q" => Some("quit"),
        "help" | "?" | "\\?" | "\\h" => Some("help"),
        _ if entry.starts_with('\\') => Some(""),
        _ => None,
    }
}

fn obey_foreign(runner: &mut Runner<'_>, entry: &str) -> Result<Next, Failure> {
    let result = match foreign(entry) {
        Some(command) if !command.is_empty() => dot::obey(runner, command),
        _ => Err(Failure::sql("commands begin with a dot; .help lists them".into(), None)),
    };
    result.inspect_err(|failure| runner.complain(failure))
}

/// What runs queries.
fn place(session: &Session) -> String {
    match (session.device(), session.cluster()) {
        (Some(device), _) => device_line(device),
        (None, Some(cluster)) => cluster.into(),
        (None, None) => "the CPU".into(),
    }
}

fn device_line(device: &Device) -> String {
    let properties = device.properties();
    let line = match device.kind() {
        DeviceKind::Cuda(ordinal) => {
            format!("cuda:{ordinal} ({}, {})", properties.name, bytes(properties.memory))
        }
        DeviceKind::Sim => properties.name.clone(),
    };
    if device.is_lost() { format!("{line}, lost") } else { line }
}

/// Each device on a line, by its number where there are several.
fn device_lines(devices: &[Device]) -> String {
    match devices {
        [device] => device_line(device),
        devices => {
            let line = |(number, of): (usize, &Device)| {
                let counters = of.counters();
                let (sent, received) = (bytes(counters.bytes_sent), bytes(counters.bytes_received));
                let line = device_line(of);
                format!("device {number}: {line}, sent {sent} to others, received {received}")
            };
            devices.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
        }
    }
}

/// The memory of each device.
fn memory_of_all(devices: &[Device]) -> String {
    match devices {
        [] => "no device: queries use the host's memory, without a limit\n".into(),
        [device] => memory_lines(device),
        devices => (devices.iter().enumerate())
            .map(|(number, of)| format!("device {number}\n{}", memory_lines(of)))
            .collect(),
    }
}

fn memory_lines(device: &Device) -> String {
    let memory = device.memory();
    format!(
        "used       {}\nevictable  {}\nreserved   {}\npeak       {}\nlimit      {}\n",
        bytes(memory.used),
        bytes(memory.evictable),
        bytes(memory.reserved),
        bytes(memory.peak),
        bytes(memory.limit)
    )
}

fn bytes(count: u64) -> String {
    match count {
        0..0x400 => format!("{count} B"),
        0x400..0x10_0000 => format!("{:.1} KiB", count as f64 / 1024.0),
        0x10_0000..0x4000_0000 => format!("{:.1} MiB", count as f64 / 1048576.0),
        _ => format!("{:.1} GiB", count as f64 / 1073741824.0),
    }
}

/// A terminal with line editing.
struct Terminal {
    editor: Editor<Assistant, DefaultHistory>,
    history: Option<PathBuf>,
}

impl Terminal {
    fn open() -> Result<Terminal, Failure> {
        let config = Config::builder()
            .history_ignore_space(true)
            .completion_type(rustyline::CompletionType::List)
            .max_history_size(10_000)
            .map_err(failed)?
            .auto_add_history(false)
            .build();
        let mut editor = Editor::with_config(config).map_err(failed)?;
        editor.set_helper(Some(Assistant::default()));
        let history = history_file();
        if let Some(path) = &history {
            // A first session has none; one that cannot be read is no reason to refuse work.
            let _ = editor.load_history(path);
        }
        Ok(Terminal { editor, history })
    }

    fn remember(&mut self, entry: &str) {
        if !entry.trim().is_empty()
            && self.editor.add_history_entry(entry.trim_end()).unwrap_or(false)
        {
            // At once, so that a crash or a killed terminal loses nothing.
            if let Some(path) = &self.history {
                let _ = self.editor.append_history(path);
            }
        }
    }
}

impl Entries for Terminal {
    fn next(&mut self, runner: &mut Runner<'_>) -> Result<Entry, Failure> {
        if let Some(edited) = runner.edited.take() {
            self.remember(&edited);
        }
        if let Some(assistant) = self.editor.helper_mut() {
            assistant.learn(runner);
        }
        match self.editor.readline(&runner.settings.prompt) {
            Ok(text) => {
                self.remember(&text);
                Ok(Entry::Text(text))
            }
            Err(ReadlineError::Interrupted) => Ok(Entry::Interrupt),
            Err(ReadlineError::Eof) => Ok(Entry::End),
            Err(error) => Err(failed(error)),
        }
    }
}

fn failed(error: ReadlineError) -> Failure {
    match error {
        ReadlineError::Io(error) => error.into(),
        other => Failure::sql(format!("the terminal: {other}"), None),
    }
}

/// `WARPFRAME_HISTORY`, or a file where the system keeps such state; none where that cannot be
/// made.
fn history_file() -> Option<PathBuf> {
    let variable =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let path = match (variable("WARPFRAME_HISTORY"), variable("XDG_STATE_HOME"), variable("HOME")) {
        (Some(path), ..) => path,
        (None, Some(state), _) => state.join("warpframe").join("history"),
        (None, None, home) => home?.join(".local").join("state").join("warpframe").join("history"),
    };
    std::fs::create_dir_all(path.parent()?).ok()?;
    Some(path)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use warpframe::DeviceChoice;

    use super::*;
    use crate::output::Format;
    use crate::run::Settings;

    struct Typed(VecDeque<Entry>);

    impl Entries for Typed {
        fn next(&mut self, _: &mut Runner<'_>) -> Result<Entry, Failure> {
            Ok(self.0.pop_front().expect("the shell reads no further than the end"))
        }
    }

    /// What a session of these entries prints, and what it says besides.
    fn converse_about(entries: &[&str]) -> (String, String) {
        let session = Session::builder().device(DeviceChoice::Cpu).build().unwrap();
        let settings = Settings { talkative: true, ..Settings::of(Format::Csv) };
        let (mut out, mut messages) = (vec![], vec![]);
        let mut runner = Runner::new(session, settings, &mut out, &mut messages);
        let mut typed: VecDeque<Entry> =
            entries.iter().map(|text| Entry::Text(text.to_string())).collect();
        typed.push_front(Entry::Interrupt);
        typed.push_back(Entry::End);
        converse(&mut runner, &mut Typed(typed)).unwrap();
        (String::from_utf8(out).unwrap(), String::from_utf8(messages).unwrap())
    }

    #[test]
    fn the_shell_goes_on_after_an_error() {
        let (out, messages) = converse_about(&["SELECT nobody;", "SELECT 1 AS one;"]);
        assert_eq!(out, "one\n1\n");
        assert!(
            messages.contains(
                "  --> line 1, column 8\n    |\n  1 | SELECT nobody;\n    |        ^^^^^^\n"
            ),
            "{messages}"
        );
    }

    #[test]
    fn tables_live_from_entry_to_entry() {
        let (out, messages) = converse_about(&[
            "CREATE TABLE t AS SELECT 1 AS x, 'a' AS \"Y\";",
            ".tables",
            ".schema t",
            "DROP TABLE t;",
            ".schema t",
        ]);
        let expected = "table t: 1 row\nt\nCREATE TABLE t (\n    x BIGINT,\n    \"Y\" VARCHAR\n);\n\
                        table t is dropped\n";
        assert_eq!(out, expected);
        assert_eq!(messages, "error: no table named \"t\"; there are no tables\n");
    }

    #[test]
    fn dot_commands_change_settings() {
        let (out, messages) = converse_about(&[
            ".format ndjson",
            ".format",
            "SELECT 1 AS x;",
            ".timer on",
            "SELECT 2 AS x;",
        ]);
        assert_eq!(out, "ndjson\n{\"x\":1}\n{\"x\":2}\n");
        assert!(messages.starts_with("time: ") && messages.lines().count() == 1, "{messages}");
    }

    #[test]
    fn wrong_dot_commands_say_so() {
        let (out, messages) =
            converse_about(&[".nothing", ".timer maybe", ".format xml", ".quit now"]);
        assert_eq!(out, "");
        let said: Vec<&str> = messages.lines().collect();
        assert_eq!(
            said,
            [
                "error: no command .nothing; .help lists them",
                "error: the timer is on or off, not \"maybe\"",
                "error: no format named \"xml\"; known: table, csv, json, ndjson, markdown, box, tsv, line, html, insert",
                "error: .quit takes nothing, not \"now\"",
            ]
        );
    }

    #[test]
    fn quit_ends_the_conversation_and_help_names_every_command() {
        let (out, _) = converse_about(&[".help"]);
        assert!(dot::names().all(|command| out.contains(&command)), "{out}");

        let session = Session::builder().device(DeviceChoice::Cpu).build().unwrap();
        let settings = Settings { talkative: true, ..Settings::of(Format::Csv) };
        let (mut out, mut messages) = (vec![], vec![]);
        let mut runner = Runner::new(session, settings, &mut out, &mut messages);
        let mut typed = Typed([".quit", "SELECT 1;"].map(|text| Entry::Text(text.into())).into());
        converse(&mut runner, &mut typed).unwrap();
        assert_eq!(typed.0.len(), 1);
    }

    #[test]
    fn commands_of_other_shells_are_understood() {
        let (out, messages) = converse_about(&["\\dt", "SELECT 1 AS x;", "help", "Exit;"]);
        assert!(out.starts_with("x\n1\n") && out.contains(".tables [PATTERN]"), "{out}");
        assert_eq!(messages, "error: commands begin with a dot; .help lists them\n");
        assert_eq!(["quit", "SELECT quit", "quit x"].map(foreign), [Some("quit"), None, None]);
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes(1000), "1000 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(3 << 30), "3.0 GiB");
    }
}
