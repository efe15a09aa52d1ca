//! Runs statements on a session and writes what comes of them.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warpframe::arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray};
use warpframe::arrow::datatypes::SchemaRef;
use warpframe::device::Device;
use warpframe::timeline::{Part, span};
use warpframe::{DataFrame, Error, ErrorKind, Executed, ExplainFormat, FileKind, LazyFrame, Session};

use crate::analyze::Account;
use crate::copy::{known, write_format};
use crate::interrupt::Running;
use crate::output::{self, Format, Rows, Style};
use crate::progress::Progress;
use crate::report::{Failure, Place, Source, is_odd, nearest, shown};
use crate::statement::{self, Existing, Name, Request, RowSource, Sql, Statement};

/// What a user can change while the command runs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How results look.
    pub style: Style,
    /// Most rows that a table shows; the other formats write all.
    pub max_rows: Option<usize>,
    /// Whether to tell how long each statement took.
    pub timer: bool,
    /// Whether statements without a result say what they did.
    pub talkative: bool,
    /// Whether a terminal is told how far statements are that take long.
    pub progress: bool,
    /// Whether the first failure ends a text.
    pub bail: bool,
    /// Whether statements are written before they run.
    pub echo: bool,
    /// Whether commands may run programs of this machine.
    pub programs: bool,
    /// What stands before what is typed.
    pub prompt: String,
    /// What stands for `$name` in statements.
    pub variables: BTreeMap<String, String>,
}

impl Settings {
    /// These of a format, with all else as it usually is.
    pub fn of(format: Format) -> Settings {
        Settings {
            style: format.into(),
            max_rows: None,
            timer: false,
            talkative: false,
            progress: false,
            bail: true,
            echo: false,
            programs: true,
            prompt: "warpframe> ".into(),
            variables: BTreeMap::new(),
        }
    }
}

/// A session with somewhere to write to.
pub struct Runner<'a> {
    /// The tables and the device.
    pub session: Session,
    /// What the user chose.
    pub settings: Settings,
    out: &'a mut dyn Write,
    /// Failures and times; apart from the results.
    messages: &'a mut dyn Write,
    /// Where results go instead, and whether only those of the next statement do.
    elsewhere: Option<(Box<dyn Write>, bool)>,
}

impl<'a> Runner<'a> {
    /// Results go to `out`, all else to `messages`.
    pub fn new(session: Session, settings: Settings, out: &'a mut dyn Write, messages: &'a mut dyn Write) -> Self {
        Runner { session, settings, out, messages, elsewhere: None }
    }

    /// Runs a text's statements up to the first that fails, and reports that.
    ///
    /// # Errors
    /// The failure, already reported.
    pub fn run(&mut self, source: &Source) -> Result<(), Failure> {
        let with_values = self.with_variables(source);
        let source = with_values.as_ref().unwrap_or(source);
        let mut failed = None;
        for statement in statement::split(&source.text) {
            if let (true, Ok(statement)) = (self.settings.echo, &statement) {
                self.print(&format!("{};\n", statement.text()))?;
            }
            let place = statement.as_ref().ok().map(|statement| statement.place);
            let start = Instant::now();
            self.session.take_fallback_reasons();
            let running = Running::begin();
            let result = statement.and_then(|statement| self.statement(&statement));
            drop(running);
            let result = result.and_then(|()| Ok(self.out().flush()?));
            if self.elsewhere.as_ref().is_some_and(|(_, once)| *once) {
                self.elsewhere = None;
            }
            for reason in self.session.take_fallback_reasons() {
                self.say(&format!("note: the CPU took over: {reason}\n"));
            }
            for note in self.session.device().map_or_else(Vec::new, Device::take_cache_notes) {
                self.say(&format!("note: {note}\n"));
            }
            if let Err(failure) = result {
                self.report(&failure, |failure| failure.report(Some(source), place));
                if self.settings.bail || failure.is_broken_pipe() {
                    return Err(failure);
                }
                failed = Some(failure);
                continue;
            }
            if self.settings.timer {
                self.say(&format!("time: {}\n", in_words(start.elapsed())));
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// A text with values in the places of `$name`; `None` where nothing is to be put in.
    fn with_variables(&self, source: &Source) -> Option<Source> {
        let text = statement::with_values(&source.text, &self.settings.variables)?;
        Some(Source { name: source.name.clone(), text })
    }

    /// Where results go now.
    fn out(&mut self) -> &mut dyn Write {
        match &mut self.elsewhere {
            Some((file, _)) => file.as_mut(),
            None => self.out,
        }
    }

    /// Sends results to a file, all that follow or those of the next statement; `None`: where they went at
    /// first.
    pub fn send(&mut self, file: Option<(Box<dyn Write>, bool)>) {
        self.elsewhere = file;
    }

    /// Reports a failure that is of no statement.
    pub fn complain(&mut self, failure: &Failure) {
        self.report(failure, |failure| failure.report(None, None));
    }

    /// Writes among the results.
    ///
    /// # Errors
    /// The results cannot be written.
    pub fn print(&mut self, text: &str) -> Result<(), Failure> {
        self.out().write_all(text.as_bytes())?;
        Ok(self.out().flush()?)
    }

    fn report(&mut self, failure: &Failure, text: impl FnOnce(&Failure) -> String) {
        if failure.is_broken_pipe() || failure.was_told() {
            return;
        }
        // What was written before the failure comes first; whether it can be is not the question
        // now.
        let _ = self.out().flush();
        self.say(&text(failure));
    }

    /// There is nobody to tell that messages cannot be written.
    fn say(&mut self, text: &str) {
        let _ = self.messages.write_all(text.as_bytes()).and_then(|()| self.messages.flush());
    }

    fn statement(&mut self, statement: &Statement<'_>) -> Result<(), Failure> {
        match statement.request()? {
            Request::Query(query) => {
                let frame = self.collect(&query)?;
                self.show(&frame)
            }
            Request::Explain { analyze, format, query } => self.explain(&query, analyze, format),
            Request::CreateTable { table, existing, query } => self.create_table(&table, existing, &query),
            Request::CreateEmptyTable(text) => {
                let table = self.session.create_table(&text.0).map_err(|error| unfinished(error, &text))?;
                self.done(format!("table {table}"))
            }
            Request::Insert(text) => {
                let told = Progress::begin(&self.session, self.settings.progress);
                let rows = self.session.insert(&text.0).map_err(|error| unfinished(error, &text))?;
                drop(told);
                self.done(count(rows))
            }
            Request::CreateExternalTable(text) => {
                let table = self.session.create_external_table(&text.0)?;
                self.done(format!("table {table}: files"))
            }
            Request::CreateFunction(text) => {
                let function = self.session.create_function(&text.0).map_err(|error| unfinished(error, &text))?;
                self.done(format!("function {function}"))
            }
            Request::DropFunction { function, if_exists } => {
                if if_exists && !self.session.function_names().contains(&function.text) {
                    return Ok(());
                }
                let dropped = self.session.deregister_function(&function.text);
                dropped.map_err(|error| Failure::from(error).at(function.place))?;
                self.done(format!("function {} is dropped", function.text))
            }
            Request::DropTable { table, text, .. } if self.session.table_names().contains(&table.text) => {
                self.execute(&text)
            }
            Request::DropTable { table, if_exists, .. } => match self.session.deregister(&table.text) {
                Ok(()) => self.done(format!("table {} is dropped", table.text)),
                Err(error) if if_exists && matches!(error.kind(), ErrorKind::TableNotFound { .. }) => Ok(()),
                Err(error) => Err(Failure::from(error).at(table.place)),
            },
            Request::ShowTables => self.show_tables(),
            Request::Describe(RowSource::Query(query)) => {
                let schema = self.plan(&query)?.schema();
                self.describe(&schema)
            }
            Request::Describe(RowSource::Table(table)) => {
                let schema = self.session.schema(&table.text).map_err(|error| Failure::from(error).at(table.place))?;
                self.describe(&schema)
            }
            Request::Copy { rows, file, format, options, partition_by } => {
                self.copy(&rows, &file, (format.as_ref(), &options), &partition_by)
            }
            Request::CopyFrom { table, file, format, options } => {
                self.copy_from(&table, &file, format.as_ref(), &options)
            }
            Request::Set { option, value } => self.set(&option, &value),
            Request::Reset(option) => self.reset(&option),
            Request::ShowSettings(only) => self.show_settings(only.as_ref()),
            Request::Execute(text) => self.execute(&text),
        }
    }

    fn plan(&self, query: &Sql) -> Result<LazyFrame, Failure> {
        self.session.sql(&query.0).map_err(|error| unfinished(error, query))
    }

    fn collect(&self, query: &Sql) -> Result<DataFrame, Failure> {
        let _told = Progress::begin(&self.session, self.settings.progress);
        Ok(self.plan(query)?.collect()?)
    }

    fn show(&mut self, frame: &DataFrame) -> Result<(), Failure> {
        let _span = span(Part::Print, String::new);
        let is_table = matches!(self.settings.style.format, Format::Table | Format::Box);
        let limit = self.settings.max_rows.filter(|_| is_table && self.elsewhere.is_none());
        let style = self.settings.style.clone();
        output::write(self.out(), &style, &Rows::of(frame, limit))
    }

    fn done(&mut self, message: String) -> Result<(), Failure> {
        if self.settings.talkative { self.print(&(message + "\n")) } else { Ok(()) }
    }

    fn create_table(&mut self, table: &Name, existing: Existing, query: &Sql) -> Result<(), Failure> {
        if existing != Existing::Replace && self.session.table_names().contains(&table.text) {
            return match existing {
                Existing::Keep => Ok(()),
                _ => {
                    let message = format!("there is a table named {:?}; CREATE OR REPLACE replaces it", table.text);
                    Err(Failure::sql(message, Some(table.place)))
                }
            };
        }
        let frame = self.collect(query)?;
        let made = self.session.register_table(&table.text, &frame);
        made.map_err(|error| Failure::from(error).at(table.place))?;
        let place = if frame.is_on_device() { ", kept on the device" } else { "" };
        self.done(format!("table {}: {}{place}", table.text, count(frame.num_rows())))
    }

    fn copy(
        &mut self,
        rows: &RowSource,
        file: &Name,
        (format, options): (Option<&Name>, &[(Name, String)]),
        partition_by: &[Name],
    ) -> Result<(), Failure> {
        let extension = Path::new(&file.text).extension().and_then(|e| e.to_str()).unwrap_or_default().to_lowercase();
        let (format, place) = match format {
            Some(name) => (name.text.as_str(), name.place),
            None => (extension.as_str(), file.place),
        };
        let Some(format) = write_format(format, options)? else {
            let message = "COPY writes CSV, Parquet, JSON and Arrow: end the file's name in .csv, .tsv, .parquet, \
                           .json, .ndjson, .arrow or .arrows, or name a FORMAT";
            let known = ["csv", "tsv", "parquet", "json", "ndjson", "arrow", "arrows"].map(String::from);
            let help = nearest(format, &known).map_or(String::new(), |meant| format!("; did you mean {meant}?"));
            return Err(Failure::sql(format!("{message}{help}"), Some(place)));
        };
        let frame = match rows {
            RowSource::Query(query) => self.plan(query)?,
            RowSource::Table(table) => self.table(table)?,
        };
        let told = Progress::begin(&self.session, self.settings.progress);
        let rows = match partition_by.is_empty() {
            true => frame.write(&file.text, &format)?,
            false => {
                let by: Vec<&str> = partition_by.iter().map(|column| column.text.as_str()).collect();
                let frame = frame.collect()?;
                let written = frame.write_partitioned(&file.text, &by, &format);
                written.map_err(|error| match error.kind() {
                    ErrorKind::ColumnNotFound { name, .. } => {
                        let place = partition_by.iter().find(|column| column.text == *name).map(|column| column.place);
                        Failure::from(error).at(place.unwrap_or(file.place))
                    }
                    _ => error.into(),
                })?;
                frame.num_rows() as u64
            }
        };
        drop(told);
        self.done(format!("{} in {}", count(rows as usize), file.text))
    }

    fn copy_from(
        &mut self,
        table: &Name,
        file: &Name,
        format: Option<&Name>,
        options: &[(Name, String)],
    ) -> Result<(), Failure> {
        let _told = Progress::begin(&self.session, self.settings.progress);
        let kind = match format {
            Some(name) => FileKind::of(format!("named.{}", name.text)),
            None => FileKind::of(&file.text),
        };
        let of_file = |error: Error| match error.kind() {
            ErrorKind::TableNotFound { .. } => Failure::from(error).at(table.place),
            _ => Failure::from(error).at(file.place),
        };
        let rows = match (kind, options.first()) {
            (Some(FileKind::Csv), _) => {
                let given = options.iter().map(|(name, value)| (known(name), value.as_str()));
                let csv = self.session.csv_options(given).map_err(of_file)?;
                self.session.append_csv_with(&table.text, &file.text, csv).map_err(of_file)?
            }
            (Some(_), Some((option, _))) => {
                let message = format!("COPY: such files have no option named {:?}", option.text);
                return Err(Failure::sql(message, Some(option.place)));
            }
            (Some(kind), None) => self.session.append_files(&table.text, &file.text, kind).map_err(of_file)?,
            (None, _) => {
                let message = "COPY reads CSV, Parquet, JSON and Arrow: end the file's name as theirs end, or name a \
                               FORMAT";
                return Err(Failure::sql(message.into(), Some(format.map_or(file.place, |name| name.place))));
            }
        };
        self.done(format!("{} into {}", count(rows), table.text))
    }

    fn table(&self, table: &Name) -> Result<LazyFrame, Failure> {
        self.session.table(&table.text).map_err(|error| Failure::from(error).at(table.place))
    }

    fn set(&mut self, option: &Name, value: &str) -> Result<(), Failure> {
        let bad = |message: String| Failure::sql(message, Some(option.place));
        match option.text.as_str() {
            "max_rows" => {
                let rows: usize = value.parse().map_err(|_| bad(format!("max_rows is a number, not {value:?}")))?;
                self.settings.max_rows = Some(rows).filter(|rows| *rows > 0);
            }
            "max_width" => {
                let width: usize = value.parse().map_err(|_| bad(format!("max_width is a number, not {value:?}")))?;
                self.settings.style.max_width = Some(width).filter(|width| *width > 0);
            }
            "headers" | "progress" => {
                let on = switch(value).ok_or_else(|| bad(format!("{} is on or off, not {value:?}", option.text)))?;
                match option.text.as_str() {
                    "headers" => self.settings.style.headers = on,
                    _ => self.settings.progress = on,
                }
            }
            "null" => self.settings.style.null = Some(value.to_string()),
            "format" => self.set_format(value).map_err(bad)?,
            "timer" => self.set_timer(value).map_err(bad)?,
            _ => self.session.set_setting(&option.text, value).map_err(|error| self.of_option(error, option))?,
        }
        Ok(())
    }

    /// A failure with an option, of which the command has some, too.
    fn of_option(&self, error: Error, option: &Name) -> Failure {
        let own = statement::SETTINGS.map(String::from);
        match nearest(&option.text, &own) {
            Some(meant) if !self.session.settings().iter().any(|setting| setting.name == option.text) => {
                let message = format!("no option named {:?}; did you mean {meant}?", option.text);
                Failure::sql(message, Some(option.place))
            }
            _ => Failure::from(error).at(option.place),
        }
    }

    fn reset(&mut self, option: &Name) -> Result<(), Failure> {
        let usual = Style::from(Format::Table);
        match option.text.as_str() {
            "format" => self.settings.style.format = usual.format,
            "headers" => self.settings.style.headers = true,
            "null" => self.settings.style.null = None,
            "max_width" => self.settings.style.max_width = None,
            "max_rows" => self.settings.max_rows = None,
            "timer" => self.settings.timer = false,
            "progress" => self.settings.progress = true,
            _ => self.session.reset_setting(&option.text).map_err(|error| self.of_option(error, option))?,
        }
        Ok(())
    }

    /// The command's options and the session's, or one of them.
    fn show_settings(&mut self, only: Option<&Name>) -> Result<(), Failure> {
        let on = |on: bool| Some(if on { "on" } else { "off" }.to_string());
        let (settings, style) = (&self.settings, &self.settings.style);
        let own = [
            ("format", Some(self.format_name()), "How results are written"),
            ("headers", on(style.headers), "Whether the columns' names are written"),
            ("max_rows", settings.max_rows.map(|rows| rows.to_string()), "Most rows that a table shows; 0 is all"),
            ("max_width", style.max_width.map(|width| width.to_string()), "Most characters of a table's line"),
            ("null", style.null.clone(), "What stands for NULL"),
            ("progress", on(settings.progress), "Whether a terminal is told how far statements are"),
            ("timer", on(settings.timer), "Whether to tell how long statements take"),
        ];
        let mut all: Vec<(String, Option<String>, String)> =
            own.into_iter().map(|(name, value, text)| (name.into(), value, text.into())).collect();
        all.extend(self.session.settings().into_iter().map(|of| (of.name, of.value, of.description)));
        all.retain(|(name, ..)| only.is_none_or(|only| only.text == *name));
        all.sort();
        let names: StringArray = all.iter().map(|(name, ..)| Some(name.as_str())).collect();
        let values: StringArray = all.iter().map(|(_, value, _)| value.as_deref()).collect();
        let texts: StringArray = all.iter().map(|(.., text)| Some(text.as_str())).collect();
        self.batch([
            ("name", Arc::new(names) as ArrayRef),
            ("value", Arc::new(values) as ArrayRef),
            ("description", Arc::new(texts) as ArrayRef),
        ])
    }

    /// The format, as it is named.
    pub fn format_name(&self) -> String {
        let name = clap::ValueEnum::to_possible_value(&self.settings.style.format);
        name.map(|name| name.get_name().to_string()).unwrap_or_default()
    }

    fn execute(&mut self, text: &Sql) -> Result<(), Failure> {
        let told = Progress::begin(&self.session, self.settings.progress);
        let executed = self.session.execute(&text.0).map_err(|error| match error.kind() {
            // Of SHOW, which may be meant for an option of the command's.
            ErrorKind::Plan { message, .. } if message.starts_with("no option named \"") => {
                let name = message.split('"').nth(1).unwrap_or_default().to_string();
                let place = error.location().map_or(text.end(), |(line, column)| Place { line, column });
                self.of_option(error, &Name { text: name, place })
            }
            _ => unfinished(error, text),
        })?;
        match executed {
            Executed::Rows(frame) => {
                let frame = frame.collect()?;
                drop(told);
                self.show(&frame)
            }
            Executed::Changed(rows) => {
                drop(told);
                self.done(count(rows))
            }
            Executed::Done(what) => {
                drop(told);
                self.done(what)
            }
            other => Err(Failure::sql(format!("nobody tells what came of it: {other:?}"), None)),
        }
    }

    /// Takes a format by name.
    ///
    /// # Errors
    /// What is wrong with the name.
    pub fn set_format(&mut self, name: &str) -> Result<(), String> {
        self.settings.style.format = clap::ValueEnum::from_str(name, true).map_err(|_| {
            let known: Vec<String> = formats().collect();
            match nearest(name, &known) {
                Some(meant) => format!("no format named {name:?}; did you mean {meant}?"),
                None => format!("no format named {name:?}; known: {}", known.join(", ")),
            }
        })?;
        Ok(())
    }

    /// Takes `on` or `off`.
    ///
    /// # Errors
    /// What is wrong with the word.
    pub fn set_timer(&mut self, word: &str) -> Result<(), String> {
        self.settings.timer = switch(word).ok_or_else(|| format!("the timer is on or off, not {word:?}"))?;
        Ok(())
    }

    /// Writes the tables' names.
    ///
    /// # Errors
    /// The results cannot be written.
    pub fn show_tables(&mut self) -> Result<(), Failure> {
        self.batch([("table", Arc::new(StringArray::from(self.session.table_names())) as ArrayRef)])
    }

    /// Writes names and types of columns.
    ///
    /// # Errors
    /// The results cannot be written.
    pub fn describe(&mut self, schema: &SchemaRef) -> Result<(), Failure> {
        let fields = || schema.fields().iter();
        let names: StringArray = fields().map(|field| Some(field.name().as_str())).collect();
        let types: StringArray = fields().map(|field| Some(field.data_type().to_string())).collect();
        let nullable: BooleanArray = fields().map(|field| Some(field.is_nullable())).collect();
        self.batch([
            ("column", Arc::new(names) as ArrayRef),
            ("type", Arc::new(types) as ArrayRef),
            ("nullable", Arc::new(nullable) as ArrayRef),
        ])
    }

    fn batch<const N: usize>(&mut self, columns: [(&str, ArrayRef); N]) -> Result<(), Failure> {
        let batch = RecordBatch::try_from_iter(columns)?;
        let style = self.settings.style.clone();
        output::write(self.out(), &style, &Rows::whole(batch))?;
        Ok(self.out().flush()?)
    }

    fn explain(&mut self, query: &Sql, analyze: bool, format: ExplainFormat) -> Result<(), Failure> {
        let frame = self.plan(query)?;
        let account = match analyze {
            true => {
                let _told = Progress::begin(&self.session, self.settings.progress);
                Some(Account::of_run(&self.session, &frame)?)
            }
            false => None,
        };
        // Behind the run: what is known of tables decides the order of joins, and now they are loaded.
        let plan = frame.explain_as(format)?;
        let text = match (&account, format) {
            (None, _) => plan,
            (Some(account), ExplainFormat::Json) => account.json(&plan),
            (Some(account), _) => account.text(&plan),
        };
        match self.settings.style.format {
            // Both are for eyes, and a plan has constants of the query's.
            _ if format == ExplainFormat::Json => self.print(&format!("{}\n", escaped(text.trim_end()))),
            Format::Table | Format::Box => {
                let lines: Vec<String> = text.trim_end().lines().map(shown).collect();
                self.print(&format!("{}\n", lines.join("\n")))
            }
            _ => {
                let lines: Vec<&str> = text.trim_end().lines().collect();
                self.batch([("plan", Arc::new(StringArray::from(lines)) as ArrayRef)])
            }
        }
    }
}

/// A text of JSON without the control characters that JSON may have as they are.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\n' => text.push(c),
            c if is_odd(c) => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => text.push(c),
        }
    }
    text
}

/// A failure with its place. The parser gives none where a text ends too early.
fn unfinished(error: Error, text: &Sql) -> Failure {
    match error.kind() {
        ErrorKind::Parse { path: None, line: 0, .. } => Failure::from(error).at(text.end()),
        _ => error.into(),
    }
}

/// What `on` and `off`, and their like, mean.
pub fn switch(word: &str) -> Option<bool> {
    match word.to_lowercase().as_str() {
        "on" | "true" | "1" => Some(true),
        "off" | "false" | "0" => Some(false),
        _ => None,
    }
}

/// The names of the formats.
pub fn formats() -> impl Iterator<Item = String> {
    let names = <Format as clap::ValueEnum>::value_variants().iter().filter_map(clap::ValueEnum::to_possible_value);
    names.map(|name| name.get_name().to_string())
}

pub fn count(rows: usize) -> String {
    format!("{rows} {}", if rows == 1 { "row" } else { "rows" })
}

pub fn in_words(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        seconds => format!("{seconds:.2} s"),
    }
}

/// Reads all of standard input.
///
/// # Errors
/// Input that cannot be read or is not text.
pub fn read_standard_input() -> Result<String, Failure> {
    io::read_to_string(io::stdin()).map_err(|error| Failure::file(Path::new("standard input"), error))
}
