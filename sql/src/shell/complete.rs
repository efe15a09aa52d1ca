//! What the line editor asks while a person types: is this whole, and how might this word go on?

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use rustyline::completion::Completer;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};
use warpframe::Session;
use warpframe::sql::{keywords, quoted_name as quoted};

use super::named_tables::{BEFORE_TABLES, NamedTable, named_tables};
use super::{dot, edit, foreign, highlight};
use crate::report::shown;
use crate::run::Runner;
use crate::run::SETTINGS;
use crate::text;

/// Knows the session's names.
#[derive(Debug, Default, Helper)]
pub struct Assistant {
    /// Whether what is typed has colours.
    colour: bool,
    /// Tables with their columns.
    tables: Vec<(String, Vec<String>)>,
    /// Schemas that are not in use, with their tables.
    schemas: Vec<(String, Vec<String>)>,
    /// Functions and options, which are asked for once.
    functions: Vec<String>,
    settings: Vec<String>,
    /// Tells the columns of files.
    session: Option<Session>,
    /// Those that it told.
    files: RefCell<BTreeMap<String, Vec<String>>>,
}

impl Assistant {
    /// Takes the names that there are now, and whether there are colours.
    pub fn learn(&mut self, runner: &Runner<'_>) {
        self.colour = runner.settings.colour;
        self.session = Some(runner.session.clone());
        // They may have changed.
        self.files.take();
        self.learn_names(&runner.session);
    }

    fn learn_names(&mut self, session: &Session) {
        let columns = |table: &str| match session.schema(table) {
            Ok(schema) => schema.fields().iter().map(|field| field.name().clone()).collect(),
            Err(_) => vec![],
        };
        if self.functions.is_empty() {
            let found = session.sql("SHOW FUNCTIONS").and_then(|names| names.collect());
            let found = found.and_then(|names| names.column("function")?.to_vec::<String>());
            // Without them less is completed.
            self.functions = found.unwrap_or_default();
            self.settings = session.settings().into_iter().map(|setting| setting.name).collect();
            self.settings.extend(SETTINGS.map(String::from));
        }
        let names = session.table_names();
        let all = session.all_table_names();
        let of = |schema: &str| {
            let own = all
                .iter()
                .skip(names.len())
                .filter_map(|name| name.strip_prefix(schema)?.strip_prefix('.'));
            own.map(String::from).collect()
        };
        let schemas =
            session.schema_names().into_iter().filter(|name| *name != session.schema_in_use());
        self.schemas = schemas.map(|name| (name.clone(), of(&name))).collect();
        self.tables = names.into_iter().map(|name| (name.clone(), columns(&name))).collect();
    }

    /// Where the word before the cursor begins, and what it may become: of the names in files those
    /// without characters that the terminal would obey, since the editor writes them as they are.
    fn complete_visibly(&self, line: &str, cursor: usize) -> (usize, Vec<String>) {
        let (start, mut found) = self.complete_word(line, cursor);
        found.retain(|candidate| shown(candidate) == *candidate);
        (start, found)
    }

    /// Where the word before the cursor begins, and what it may become, of all names.
    fn complete_word(&self, line: &str, cursor: usize) -> (usize, Vec<String>) {
        let before = &line[..cursor];
        if before.trim_start().starts_with('.') {
            return self.complete_command(before);
        }
        if let Some(open) = open_quote(before) {
            let mut found = files(&before[open..]);
            // A file is the whole text; a folder goes on.
            if let ([only], "") = (&mut found[..], &line[cursor..]) {
                only.push_str(if only.ends_with('/') { "" } else { "'" });
            }
            return (open, found);
        }
        if let Some((start, found)) = self.complete_setting(before) {
            return (start, found);
        }
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '"';
        let start = before
            .char_indices()
            .rev()
            .take_while(|(_, c)| is_part(*c))
            .last()
            .map_or(cursor, |(at, _)| at);
        let word = &before[start..];
        if let Some(table) = before[..start].strip_suffix('.') {
            let table: String = table
                .chars()
                .rev()
                .take_while(|c| is_part(*c))
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .collect();
            if let Some((_, tables)) = self.schemas.iter().find(|(name, _)| quoted(name) == table) {
                return (start, starting_with(word, tables));
            }
            let columns: Vec<String> = match self.columns_called(line, &table) {
                Some(columns) => columns,
                None => self.columns().cloned().collect(),
            };
            return (start, starting_with(word, &columns));
        }
        let place =
            before[..start].trim_end().rsplit(|c: char| !is_part(c)).next().unwrap_or_default();
        if BEFORE_TABLES.iter().any(|keyword| keyword.eq_ignore_ascii_case(place)) {
            let names = self.tables.iter().chain(&self.schemas).map(|(name, _)| name);
            let tables = starting_with(word, names);
            // Functions of files, too, and subqueries where no table fits.
            if !tables.is_empty() {
                return (start, tables);
            }
        }
        // Columns of the tables that the statement names; of all where it names none.
        let named: Vec<Vec<String>> = named_tables(statement_at(line, cursor))
            .iter()
            .filter_map(|table| self.columns_of(table))
            .collect();
        let tables = self.tables.iter().chain(&self.schemas).map(|(name, _)| name);
        let mut found = match named.is_empty() {
            true => starting_with(word, tables.chain(self.columns())),
            false => starting_with(word, tables.chain(named.iter().flatten())),
        };
        if !word.is_empty() && !word.starts_with('"') {
            let lower = word.chars().all(|c| !c.is_uppercase());
            let begun = word.to_uppercase();
            let keywords = keywords::beginning_with(&begun);
            found.extend(
                keywords.map(
                    |keyword| if lower { keyword.to_lowercase() } else { keyword.to_string() },
                ),
            );
            let functions =
                self.functions.iter().filter(|name| name.starts_with(&word.to_lowercase()));
            found.extend(functions.map(|name| format!("{name}(")));
        }
        (start, found)
    }

    fn complete_command(&self, before: &str) -> (usize, Vec<String>) {
        let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let word = &before[start..];
        let found = match before[..start].trim() {
            "" => dot::names().filter(|command| command.starts_with(word)).collect(),
            ".schema" | ".tables" => starting_with(word, self.tables.iter().map(|(name, _)| name)),
            command => dot::choices(command)
                .into_iter()
                .filter(|choice| choice.starts_with(word))
                .collect(),
        };
        (start, found)
    }

    /// What an option behind SET, RESET or SHOW may become.
    fn complete_setting(&self, before: &str) -> Option<(usize, Vec<String>)> {
        let start = before.rfind(char::is_whitespace)? + 1;
        let verb = before[..start].trim().rsplit(';').next()?.trim();
        if !["set", "reset", "show"].iter().any(|own| verb.eq_ignore_ascii_case(own)) {
            return None;
        }
        let word = before[start..].to_lowercase();
        let found: Vec<String> =
            self.settings.iter().filter(|name| name.starts_with(&word)).cloned().collect();
        (!found.is_empty()).then_some((start, found))
    }

    fn columns(&self) -> impl Iterator<Item = &String> {
        self.tables.iter().flat_map(|(_, columns)| columns)
    }

    /// The columns of what a line calls so, as SQL writes it: a table, or one by its alias.
    fn columns_called(&self, line: &str, name: &str) -> Option<Vec<String>> {
        let called = |table: &NamedTable| {
            let names = table.alias.iter().chain((!table.is_file).then_some(&table.name));
            names.into_iter().any(|own| quoted(own) == name) || table.is_called(name)
        };
        let tables = line.split(';').flat_map(named_tables);
        tables.filter(called).find_map(|table| self.columns_of(&table)).or_else(|| {
            let known = self.tables.iter().find(|(own, _)| quoted(own) == name);
            known.map(|(_, columns)| columns.clone())
        })
    }

    fn columns_of(&self, table: &NamedTable) -> Option<Vec<String>> {
        if !table.is_file {
            let known = self.tables.iter().find(|(name, _)| *name == table.name);
            return known.map(|(_, columns)| columns.clone());
        }
        if let Some(known) = self.files.borrow().get(&table.name) {
            return Some(known.clone());
        }
        let session = self.session.as_ref()?;
        let text = format!("FROM '{}'", table.name.replace('\'', "''"));
        let schema = session.sql(&text).ok()?.schema();
        let columns: Vec<String> =
            schema.fields().iter().map(|field| field.name().clone()).collect();
        self.files.borrow_mut().insert(table.name.clone(), columns.clone());
        Some(columns)
    }
}

/// The statement of a line that the cursor is in, or the one before where that is empty.
fn statement_at(line: &str, cursor: usize) -> &str {
    let start = line[..cursor].rfind(';').map_or(0, |at| at + 1);
    let end = line[cursor..].find(';').map_or(line.len(), |at| cursor + at);
    &line[start..end]
}

/// Where a text in single quotes begins that is not closed.
fn open_quote(before: &str) -> Option<usize> {
    let quotes = before.match_indices('\'').map(|(at, _)| at);
    let quotes: Vec<usize> = quotes.collect();
    quotes.last().filter(|_| quotes.len() % 2 == 1).map(|at| at + 1)
}

/// Files whose paths go on from what is typed; folders end in a slash.
fn files(typed: &str) -> Vec<String> {
    let (folder, start) =
        typed.rsplit_once('/').map_or(("", typed), |(folder, start)| (folder, start));
    let place = match (folder, typed.starts_with('/')) {
        ("", true) => "/",
        ("", false) => ".",
        (folder, _) => folder,
    };
    let Ok(entries) = std::fs::read_dir(place) else { return vec![] };
    let prefix = &typed[..typed.len() - start.len()];
    let mut found: Vec<String> = (entries.filter_map(Result::ok))
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let fits =
                name.starts_with(start) && (start.starts_with('.') || !name.starts_with('.'));
            let end = if entry.path().is_dir() { "/" } else { "" };
            fits.then(|| format!("{prefix}{name}{end}"))
        })
        .collect();
    found.sort();
    found
}

/// The names, as SQL writes them, that go on from what is typed, whether or not with the quotes
/// they need.
fn starting_with<'a>(word: &str, names: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let bare = word.trim_start_matches('"');
    let fits = |name: &str| match bare.len() < word.len() {
        true => name.starts_with(bare),
        false => name.to_lowercase().starts_with(&bare.to_lowercase()),
    };
    let found: BTreeSet<String> =
        names.into_iter().filter(|name| fits(name)).map(|name| quoted(name)).collect();
    found.into_iter().collect()
}

impl Completer for Assistant {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        cursor: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.complete_visibly(line, cursor))
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        match self.colour {
            true => highlight::coloured(line).into(),
            false => line.into(),
        }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        if self.colour { format!("\x1b[2m{hint}\x1b[0m").into() } else { hint.into() }
    }

    /// Whether a key may change colours: most do, of the word or of all that follows.
    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        self.colour && kind != CmdKind::MoveCursor
    }
}

impl Hinter for Assistant {
    type Hint = String;

    /// In a new line of an unfinished statement, what it lacks: there is nothing else to see of
    /// that.
    fn hint(&self, line: &str, cursor: usize, _: &Context<'_>) -> Option<String> {
        let is_new =
            cursor == line.len() && line.ends_with('\n') && !line.trim_start().starts_with('.');
        text::missing(line).filter(|_| is_new).map(|missing| format!("   -- {missing}"))
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        let is_command = text.trim_start().starts_with('.')
            || foreign(text).is_some()
            || edit::begun(text).is_some();
        let whole = is_command || text::is_whole(text);
        Ok(if whole { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assistant() -> Assistant {
        let columns =
            |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        Assistant {
            colour: false,
            tables: vec![
                ("Odd name".into(), columns(&["x"])),
                ("jets".into(), columns(&["jetid", "px", "E"])),
                ("orders".into(), columns(&["o_orderkey", "o_\u{1b}[2J"])),
            ],
            schemas: vec![("raw".into(), columns(&["days", "Hours"]))],
            functions: vec!["abs".into()],
            settings: vec!["timer".into(), "join_order".into()],
            session: Some(Session::builder().device(warpframe::DeviceChoice::Cpu).build().unwrap()),
            files: RefCell::default(),
        }
    }

    fn complete(text: &str) -> (usize, Vec<String>) {
        assistant().complete_visibly(text, text.len())
    }

    #[test]
    fn words_become_tables_columns_and_keywords() {
        assert_eq!(complete("SELECT je"), (7, vec!["jetid".into(), "jets".into()]));
        assert_eq!(complete("sel"), (0, vec!["select".into()]));
        assert_eq!(complete("SELECT 1 FR"), (9, vec!["FROM".into()]));
        assert_eq!(
            complete("o"),
            (
                0,
                [
                    "\"Odd name\"",
                    "o_orderkey",
                    "orders",
                    "offset",
                    "on",
                    "or",
                    "order",
                    "outer",
                    "over"
                ]
                .map(String::from)
                .to_vec()
            )
        );
    }

    #[test]
    fn names_that_need_quotes_get_them() {
        assert_eq!(complete("SELECT jets.e"), (12, vec!["\"E\"".into()]));
        assert_eq!(complete("FROM \"O"), (5, vec!["\"Odd name\"".into()]));
        assert_eq!(complete("select 1 from or"), (14, vec!["orders".into()]));
        assert_eq!(complete("SELECT 1 FROM ab"), (14, vec!["abs(".into()]));
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
    }

    #[test]
    fn a_dot_narrows_to_the_tables_columns() {
        assert_eq!(complete("SELECT orders."), (14, vec!["o_orderkey".into()]));
        assert_eq!(complete("SELECT j.p"), (9, vec!["px".into()]));
        assert_eq!(complete("FROM ra"), (5, vec!["raw".into()]));
        assert_eq!(complete("FROM raw."), (9, vec!["\"Hours\"".into(), "days".into()]));
    }

    #[test]
    fn columns_are_those_of_the_tables_that_are_named() {
        assert_eq!(complete("SELECT p FROM jets WHERE o"), {
            let keywords =
                ["\"Odd name\"", "orders", "offset", "on", "or", "order", "outer", "over"]
                    .map(String::from);
            (25, keywords.to_vec())
        });
        assert_eq!(complete("SELECT ab"), (7, vec!["abs(".into()]));
        assert_eq!(complete("SET ti"), (4, vec!["timer".into()]));
    }

    #[test]
    fn columns_of_files_and_aliases_are_known() {
        let of = |text: &str| complete(text).1;
        assert_eq!(of("FROM '../data/jets.csv' WHERE p"), {
            let found = complete("FROM jets WHERE p").1;
            assert!(found.contains(&"px".to_string()), "{found:?}");
            let all = of("FROM '../data/jets.csv' WHERE p");
            assert!(all.contains(&"py".to_string()) && all.contains(&"pz".to_string()), "{all:?}");
            all
        });
        assert_eq!(of("SELECT * FROM orders o WHERE o.o_"), ["o_orderkey"]);
        assert_eq!(of("FROM '../data/jets.csv' j WHERE j.px"), ["px"]);
        assert_eq!(of("FROM '../data/jets.csv' WHERE jets.py"), ["py"]);
        // Behind FROM stand tables alone.
        assert_eq!(of("SELECT 1 FROM "), ["\"Odd name\"", "jets", "orders", "raw"]);
    }

    #[test]
    fn files_are_completed_in_quotes() {
        assert_eq!(complete("FROM '../data/jet"), (6, vec!["../data/jets.csv'".into()]));
        assert_eq!(complete("FROM '../dat").1, ["../data/"]);
    }

    #[test]
    fn dot_commands_complete_with_their_arguments() {
        assert_eq!(complete(".t"), (0, vec![".tables".into(), ".timer".into()]));
        assert_eq!(complete(".schema j"), (8, vec!["jets".into()]));
        assert_eq!(complete(".timer o"), (7, vec!["on".into(), "off".into()]));
    }

    #[test]
    fn completion_inside_a_text_of_several_bytes_a_character_is_safe() {
        assert_eq!(
            complete("SELECT 'é' AS é, jets.p"),
            ("SELECT 'é' AS é, jets.".len(), vec!["px".into()])
        );
        assert_eq!(assistant().complete_word("é je x", "é je".len()).0, "é ".len());
    }
}
