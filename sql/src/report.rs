//! What went wrong, and how the user is told: the message, the place in the SQL with a caret under
//! it, a hint.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use datafusion::sql::sqlparser::tokenizer::Location;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
use warpframe::arrow::error::ArrowError;
pub use warpframe::nearest;
use warpframe::sql::{Text, quoted_name};
use warpframe::{Error, ErrorKind, Permission};

use crate::elsewhere;
use crate::interrupt;

/// A place in a text: line and column, in characters, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

impl From<Location> for Place {
    fn from(location: Location) -> Self {
        Place { line: location.line, column: location.column }
    }
}

impl From<(u64, u64)> for Place {
    fn from((line, column): (u64, u64)) -> Self {
        Place { line, column }
    }
}

/// SQL that was given, and by what name the user knows it.
#[derive(Debug, Clone)]
pub struct Source {
    /// Such as a file's path; `None` for what was typed just now.
    pub name: Option<String>,
    /// The text.
    pub text: String,
}

/// Why the command, or one statement, came to nothing.
#[derive(Debug)]
pub struct Failure {
    problem: Problem,
    /// The place in the SQL, where the engine's error does not know it.
    place: Option<Place>,
    told: bool,
}

#[derive(Debug)]
enum Problem {
    /// The engine's account.
    Engine(Error),
    /// A statement that the command itself does not take.
    Sql(String),
    /// The command line is wrong.
    Usage(String),
    /// A file that the command itself reads.
    File { path: PathBuf, source: io::Error },
    /// The results cannot be written.
    Output(io::Error),
}

impl From<warpframe::device::Error> for Failure {
    fn from(error: warpframe::device::Error) -> Self {
        warpframe::Error::from(error).into()
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure { problem: Problem::Engine(error), place: None, told: false }
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        Error::from(error).into()
    }
}

impl From<io::Error> for Failure {
    /// Of an error in writing results; the other files' have names.
    fn from(error: io::Error) -> Self {
        Failure { problem: Problem::Output(error), place: None, told: false }
    }
}

impl Failure {
    /// A statement that cannot be done, and where it says so.
    pub fn sql(message: String, place: Option<Place>) -> Self {
        Failure { problem: Problem::Sql(message), place, told: false }
    }

    /// A command line that means nothing.
    pub fn usage(message: impl Into<String>) -> Self {
        Failure { problem: Problem::Usage(message.into()), place: None, told: false }
    }

    /// A file that cannot be read.
    pub fn file(path: &Path, source: io::Error) -> Self {
        Failure { problem: Problem::File { path: path.into(), source }, place: None, told: false }
    }

    /// No session: either the environment's choices mean nothing, or they cannot be met.
    pub fn of_session(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Parse { path: None, message, .. } => Failure::usage(message.clone()),
            _ => error.into(),
        }
    }

    /// The failure as one of which the user has been told.
    pub fn told(mut self) -> Self {
        self.told = true;
        self
    }

    /// Whether the user has been told of it.
    pub fn was_told(&self) -> bool {
        self.told
    }

    /// The failure with its place in a statement, where the engine finds one.
    pub fn in_statement(self, statement: &Text<'_>) -> Self {
        match self {
            Failure { problem: Problem::Engine(error), place: None, told } => {
                Failure { problem: Problem::Engine(statement.locate(error)), place: None, told }
            }
            other => other,
        }
    }

    /// The failure at this place, unless it knows one.
    pub fn at(mut self, place: Place) -> Self {
        self.place = self.place().or(Some(place));
        self
    }

    /// The place in the SQL, where known.
    pub fn place(&self) -> Option<Place> {
        let of_engine = match &self.problem {
            Problem::Engine(error) => error.location().map(|(line, column)| Place { line, column }),
            _ => None,
        };
        of_engine.or(self.place)
    }

    /// Whether nobody reads the results any more: no failure at all for a command in a pipe.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(&self.problem, Problem::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// 1 for a query or data that is wrong, 2 for a command line that is, 130 for a statement that
    /// Ctrl-C stopped.
    pub fn exit_code(&self) -> u8 {
        match &self.problem {
            Problem::Usage(_) => 2,
            _ if self.is_broken_pipe() => 0,
            Problem::Engine(error)
                if matches!(error.kind(), ErrorKind::Interrupted { timeout: None }) =>
            {
                interrupt::EXIT_CODE
            }
            _ => 1,
        }
    }

    /// All that the user is told. `statement` is where the statement begins, for failures that know
    /// no closer place.
    pub fn report(&self, source: Option<&Source>, statement: Option<Place>) -> String {
        let message = self.to_string();
        let message: Vec<String> = message.lines().map(shown).collect();
        let mut report = format!("error: {}\n", message.join("\n"));
        match (source, self.place(), statement) {
            (Some(source), Some(place), _) => point(&mut report, source, place),
            (Some(Source { name: Some(name), text }), None, Some(statement))
                if text.trim().contains('\n') =>
            {
                report.push_str(&format!(
                    "  --> {name}, in the statement at line {}\n",
                    statement.line
                ));
            }
            _ => {}
        }
        if let Some(hint) = self.hint() {
            report.push_str(&format!("hint: {hint}\n"));
        }
        report
    }

    fn hint(&self) -> Option<String> {
        match &self.problem {
            Problem::Engine(error) => error
                .hint()
                .map(String::from)
                .or_else(|| of_memory(error.kind()))
                .or_else(|| of_case(error.kind()))
                .or_else(|| of_likeness(error.kind()))
                .or_else(|| of_function(error.kind())),
            Problem::Usage(_) => Some("--help shows how the command is used".into()),
            _ => None,
        }
    }
}

/// Which option gives more memory, and what takes it.
fn of_memory(kind: &ErrorKind) -> Option<String> {
    match kind {
        ErrorKind::OutOfDeviceMemory { asked, limit, used, kept, .. } => {
            let mut helps = vec![];
            if used.saturating_add(*asked) > *limit {
                helps.push("--memory-limit, WARPFRAME_MEMORY_LIMIT or SET memory_limit allow more");
            }
            if *kept > 0 {
                helps.push("DROP TABLE lets go of tables that are kept");
            }
            helps.push("without --strict the CPU takes over");
            Some(helps.join("; "))
        }
        ErrorKind::OutOfHostMemory { .. } => {
            let memory = "--host-memory-limit or WARPFRAME_HOST_MEMORY_LIMIT allow more memory";
            Some(format!("{memory}, --spill-limit or WARPFRAME_SPILL_LIMIT more files"))
        }
        _ => None,
    }
}

/// Names in SQL are lower case unless quoted: the one surprise that everybody meets.
fn of_case(kind: &ErrorKind) -> Option<String> {
    let (ErrorKind::ColumnNotFound { name, known }
    | ErrorKind::TableNotFound { name, known }
    | ErrorKind::SchemaNotFound { name, known }
    | ErrorKind::DatabaseNotFound { name, known }) = kind
    else {
        return None;
    };
    let meant = known.iter().find(|other| *other != name && other.eq_ignore_ascii_case(name))?;
    Some(format!("write \"{meant}\" with its quotes: a name without them is taken in lower case"))
}

/// Whether a terminal would obey a character, or show others in another order for it.
pub fn is_odd(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text with its control characters as escapes, for terminals that would obey them.
pub fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_odd(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// The names that are known, as many as one takes in.
fn known_names(known: &[String]) -> String {
    const MOST: usize = 20;
    let mut text = String::from("; known: ");
    text.push_str(&known.iter().take(MOST).cloned().collect::<Vec<_>>().join(", "));
    if known.len() > MOST {
        text.push_str(&format!(" and {} more", known.len() - MOST));
    }
    text
}

/// What does here what an unknown function does elsewhere.
fn of_function(kind: &ErrorKind) -> Option<String> {
    let ErrorKind::FunctionNotFound { name, .. } = kind else { return None };
    elsewhere::here(name).map(|call| format!("here it is {call}"))
}

/// A name that is nearly the one that was not found.
fn of_likeness(kind: &ErrorKind) -> Option<String> {
    let (ErrorKind::ColumnNotFound { name, known }
    | ErrorKind::TableNotFound { name, known }
    | ErrorKind::SchemaNotFound { name, known }
    | ErrorKind::DatabaseNotFound { name, known }) = kind
    else {
        return None;
    };
    // A table of this name, in a schema that is not in use.
    let elsewhere = known
        .iter()
        .find(|known| known.strip_suffix(name.as_str()).is_some_and(|of| of.ends_with('.')));
    if let (ErrorKind::TableNotFound { .. }, Some(elsewhere)) = (kind, elsewhere) {
        return Some(format!("did you mean {elsewhere}?"));
    }
    nearest(name, known).map(|meant| format!("did you mean {}?", quoted_name(meant)))
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            Problem::Engine(error) => match error.kind() {
                // The place is shown in the text.
                ErrorKind::Parse { path: None, message, .. } | ErrorKind::Plan { message, .. } => {
                    write!(f, "{}", message.trim_start_matches("sql parser error: "))
                }
                ErrorKind::TableNotFound { name, known } if known.is_empty() => {
                    write!(f, "no table named {name:?}; there are no tables")
                }
                ErrorKind::TableNotFound { name, known } => {
                    write!(f, "no table named {name:?}{}", known_names(known))
                }
                ErrorKind::ColumnNotFound { name, known } => {
                    write!(f, "no column named {name:?}{}", known_names(known))
                }
                ErrorKind::UserCode { function, message, .. } if error.location().is_some() => {
                    write!(f, "function {function}: {message}")
                }
                ErrorKind::Forbidden { what, needs: Permission::UserCode } => {
                    write!(f, "not supported: {what}: --no-user-code forbids it")
                }
                ErrorKind::Forbidden { what, needs: Permission::Files } => {
                    write!(f, "not supported: {what}: --no-files forbids it")
                }
                // The command takes every statement that the engine does.
                ErrorKind::NotAQuery { what, .. } => write!(f, "not supported: {what}"),
                _ => write!(f, "{error}"),
            },
            Problem::Sql(message) | Problem::Usage(message) => write!(f, "{message}"),
            Problem::File { path, source } if source.kind() == io::ErrorKind::NotFound => {
                write!(f, "{}: no such file", path.display())
            }
            Problem::File { path, source } => write!(f, "{}: {source}", path.display()),
            Problem::Output(error) => write!(f, "writing the results: {error}"),
        }
    }
}

/// Adds the place's name, the line of SQL, and a caret under each character of the word, the name
/// of several parts, or the text in quotes that stands there.
///
/// ```text
///   --> q.sql, line 2, column 8
///     |
///   2 | SELECT nobody FROM jets
///     |        ^^^^^^
/// ```
fn point(report: &mut String, source: &Source, place: Place) {
    let place_name = format!("line {}, column {}", place.line, place.column);
    match &source.name {
        Some(name) => report.push_str(&format!("  --> {name}, {place_name}\n")),
        None => report.push_str(&format!("  --> {place_name}\n")),
    }
    let Some(line) = source.text.lines().nth(place.line.saturating_sub(1) as usize) else {
        return;
    };
    let before: String = line.chars().take(place.column.saturating_sub(1) as usize).collect();
    let word = pointed(&line[before.len()..]);
    // A tab before the caret is a tab in the line above it.
    let indent: String = before
        .chars()
        .map(|c| if c == '\t' { "\t".into() } else { " ".repeat(c.width().unwrap_or(0)) })
        .collect();
    let number = place.line.to_string();
    let margin = " ".repeat(number.len());
    report.push_str(&format!(
        "  {margin} |\n  {number} | {}\n  {margin} | {indent}{}\n",
        line.split('\t').map(shown).collect::<Vec<_>>().join("\t"),
        "^".repeat(word.width().max(1))
    ));
}

/// What carets stand under, of what stands at a place.
fn pointed(rest: &str) -> &str {
    let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
    if let Some(quote) = quote {
        let closed = rest[1..].find(quote).map_or(1, |at| at + 2);
        return &rest[..closed];
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let word = |text: &str| text.find(|c| !is_part(c)).unwrap_or(text.len());
    let mut end = word(rest);
    while end > 0 && rest[end..].starts_with('.') && word(&rest[end + 1..]) > 0 {
        end += 1 + word(&rest[end + 1..]);
    }
    &rest[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source { name: Some("q.sql".into()), text: text.into() }
    }

    #[test]
    fn the_caret_stands_under_the_word() {
        let failure = Failure::sql("no".into(), Some(Place { line: 2, column: 8 }));
        assert_eq!(
            failure.report(Some(&source("-- é\nSELECT nobody FROM t")), None),
            "error: no\n  --> q.sql, line 2, column 8\n    |\n  2 | SELECT nobody FROM t\n    |        ^^^^^^\n"
        );
    }

    #[test]
    fn tabs_and_wide_characters_keep_the_caret_in_place() {
        let failure = Failure::sql("no".into(), Some(Place { line: 1, column: 5 }));
        let report = failure.report(Some(&source("\t'表'+")), None);
        assert!(report.ends_with("  1 | \t'表'+\n    | \t    ^\n"), "{report}");
    }

    #[test]
    fn a_place_beyond_the_text_is_named_and_not_shown() {
        let failure = Failure::sql("no".into(), Some(Place { line: 9, column: 5 }));
        assert_eq!(
            failure.report(Some(&source("x")), None),
            "error: no\n  --> q.sql, line 9, column 5\n"
        );
        let behind = Failure::sql("no".into(), Some(Place { line: 1, column: 90 }));
        assert!(behind.report(Some(&source("x")), None).ends_with("| x\n    |  ^\n"));
    }

    #[test]
    fn a_failure_without_a_place_names_its_statement() {
        let failure = Failure::from(Error::from(ErrorKind::Arithmetic {
            fault: warpframe::Fault::DivideByZero,
            operation: None,
            account: None,
        }));
        let report = failure
            .report(Some(&source("SELECT 1;\nSELECT f(0)")), Some(Place { line: 2, column: 1 }));
        assert_eq!(
            report,
            "error: Divide by zero error\n  --> q.sql, in the statement at line 2\n"
        );
    }

    #[test]
    fn a_name_that_differs_in_case_only_gets_a_hint() {
        let kind =
            ErrorKind::ColumnNotFound { name: "e".into(), known: vec!["px".into(), "E".into()] };
        let report = Failure::from(Error::from(kind)).report(None, None);
        assert!(report.contains("hint: write \"E\" with its quotes"), "{report}");
    }

    #[test]
    fn a_message_that_names_what_stands_once_has_a_caret_there() {
        let kind = ErrorKind::Plan {
            message: "Cannot cast string 'abc' to value of Int32 type".into(),
            location: None,
        };
        let source = source("SELECT 1; SELECT 'abc'::INT, 2");
        let script = Text::from(&source.text);
        let failure = Failure::from(Error::from(kind)).in_statement(&script.statements()[1]);
        let report = failure.report(Some(&source), None);
        assert!(
            report
                .ends_with("  1 | SELECT 1; SELECT 'abc'::INT, 2\n    |                  ^^^^^\n"),
            "{report}"
        );
    }

    #[test]
    fn exit_codes_tell_usage_from_data_and_a_closed_pipe_from_both() {
        assert_eq!(Failure::usage("no").exit_code(), 2);
        assert_eq!(Failure::sql("no".into(), None).exit_code(), 1);
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::StorageFull)).exit_code(), 1);
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)).exit_code(), 0);
    }
}
