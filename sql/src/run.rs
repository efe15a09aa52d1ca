//! Runs statements on a session and writes what comes of them.

mod explain;
mod options;

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warpframe::arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray};
use warpframe::arrow::datatypes::SchemaRef;
use warpframe::device::Device;
use warpframe::frame::terminal_size;
use warpframe::timeline::{Part, span};
use warpframe::{DataFrame, Error, ErrorKind, Executed, FileKind, LazyFrame, Session};

use crate::copy::{known, write_format};
use crate::interrupt::Running;
use crate::output::{self, Format, Rows, Style};
use crate::pager::{Pager, Paging};
use crate::progress::Progress;
use crate::report::{Failure, Place, Source, nearest, shown};
use crate::statement::{self, Existing, Name, Request, RowSource, Sql, Statement};
pub use options::{Settings, formats, switch};

/// A session with somewhere to write to.
pub struct Runner<'a> {
    /// The tables and the device.
    pub session: Session,
    /// What the user chose.
    pub settings: Settings,
    out: &'a mut dyn Write,
    /// Failures and times; apart from the results.
    messages: &'a mut dyn Write,
    /// Where results go instead.
    elsewhere: Option<Elsewhere>,
    /// What ran last: statements of one entry, or of a file up to a command.
    pub last: String,
    /// What came from an editor, until the history has it.
    pub edited: Option<String>,
}

/// A file that results go to.
pub struct Elsewhere {
    /// The file.
    pub file: Box<dyn Write>,
    /// Whether only those of the next statement do.
    pub once: bool,
    /// How they are written there, where its name tells.
    pub format: Option<Format>,
}

/// Rows of one result that a terminal gets to see: some screens, and no flood.
const TERMINAL_ROWS: usize = 100;
/// And those that its pager gets.
const PAGER_ROWS: usize = 10_000;

impl<'a> Runner<'a> {
    /// Results go to `out`, all else to `messages`.
    pub fn new(
        session: Session,
        settings: Settings,
        out: &'a mut dyn Write,
        messages: &'a mut dyn Write,
    ) -> Self {
        Runner {
            session,
            settings,
            out,
            messages,
            elsewhere: None,
            last: String::new(),
            edited: None,
        }
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
            if self.elsewhere.as_ref().is_some_and(|elsewhere| elsewhere.once) {
                self.elsewhere = None;
            }
            for reason in self.session.take_fallback_reasons() {
                self.say(&format!("note: the CPU took over: {}\n", shown(&reason)));
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
            Some(elsewhere) => elsewhere.file.as_mut(),
            None => self.out,
        }
    }

    /// Sends results to a file; `None`: where they went at first.
    pub fn send(&mut self, elsewhere: Option<Elsewhere>) {
        self.elsewhere = elsewhere;
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

    /// Writes lines among the results, of which there may be many.
    ///
    /// # Errors
    /// The results cannot be written.
    pub fn print_long(&mut self, text: &str) -> Result<(), Failure> {
        self.write(|out, _| Ok(out.write_all(text.as_bytes())?))
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
    pub fn say(&mut self, text: &str) {
        let _ = self.messages.write_all(text.as_bytes()).and_then(|()| self.messages.flush());
    }

    fn statement(&mut self, statement: &Statement<'_>) -> Result<(), Failure> {
        match statement.request()? {
            Request::Query(query) => {
                let frame = self.collect(&query)?;
                self.show(&frame)
            }
            Request::Explain { analyze, format, query } => self.explain(&query, analyze, format),
            Request::CreateTable { table, existing, query } => {
                self.create_table(&table, existing, &query)
            }
            Request::DropFunction { function, if_exists } => {
                if if_exists && !self.session.function_names().contains(&function.text) {
                    return Ok(());
                }
                let dropped = self.session.deregister_function(&function.text);
                dropped.map_err(|error| Failure::from(error).at(function.place))?;
                self.done(format!("function {} is dropped", function.text))
            }
            Request::DropTable { table, text, .. }
                if self.session.table_names().contains(&table.text) =>
            {
                self.execute(&text)
            }
            Request::DropTable { table, if_exists, .. } => {
                match self.session.deregister(&table.text) {
                    Ok(()) => self.done(format!("table {} is dropped", table.text)),
                    Err(error)
                        if if_exists && matches!(error.kind(), ErrorKind::TableNotFound { .. }) =>
                    {
                        Ok(())
                    }
                    Err(error) => Err(Failure::from(error).at(table.place)),
                }
            }
            Request::ShowTables => self.show_tables(),
            Request::Describe(RowSource::Query(query)) => {
                let schema = self.plan(&query)?.schema();
                self.describe(&schema)
            }
            Request::Describe(RowSource::Table(table)) => {
                let schema = self
                    .session
                    .schema(&table.text)
                    .map_err(|error| Failure::from(error).at(table.place))?;
                self.describe(&schema)
            }
            Request::Copy { rows, file, format, options, partition_by } => {
                self.allow_files("COPY", Some(file.place))?;
                self.copy(&rows, &file, (format.as_ref(), &options), &partition_by)
            }
            Request::CopyFrom { table, file, format, options } => {
                self.allow_files("COPY", Some(file.place))?;
                self.copy_from(&table, &file, format.as_ref(), &options)
            }
            Request::Set { option, value } => self.set(&option, &value),
            Request::Reset(option) => self.reset(&option),
            Request::ShowSettings(only) => self.show_settings(only.as_ref()),
            Request::Prepare { query, text } => {
                // All else that is wrong may be so for want of the parameters' values.
                match self.session.sql(&query.0) {
                    Err(error) if is_of_names(&error) => Err(error.into()),
                    _ => self.execute(&text),
                }
            }
            Request::Execute(text) => self.execute(&text),
        }
    }

    /// # Errors
    /// What reads or writes files, where nothing is to.
    pub fn allow_files(&self, what: &str, place: Option<Place>) -> Result<(), Failure> {
        match self.settings.files {
            true => Ok(()),
            false => Err(Failure::sql(format!("{what}: --no-files forbids it"), place)),
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
        let is_table = matches!(self.format(), Format::Table | Format::Box);
        let usual = match (self.on_terminal(), self.pages()) {
            (true, true) => PAGER_ROWS,
            (true, false) => TERMINAL_ROWS,
            (false, _) => 0,
        };
        let most = self.settings.max_rows.unwrap_or(usual);
        let limit = Some(most).filter(|most| *most > 0 && is_table && self.elsewhere.is_none());
        self.write(|out, style| output::write(out, style, &Rows::of(frame, limit)))
    }

    /// Writes a result: where it is longer than the terminal, through the pager.
    fn write(
        &mut self,
        write: impl FnOnce(&mut dyn Write, &Style) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let terminal = self.on_terminal();
        let colour = self.settings.colour;
        let style =
            Style { format: self.format(), terminal, colour, ..self.settings.style.clone() };
        if !self.pages() {
            write(self.out(), &style)?;
            return Ok(self.out().flush()?);
        }
        let settings = (self.settings.pager, self.settings.programs);
        let mut pager = Pager::new(self.out(), settings);
        let written = write(&mut pager, &style);
        pager.finish(written)
    }

    /// How results are written where they go.
    fn format(&self) -> Format {
        self.elsewhere
            .as_ref()
            .and_then(|elsewhere| elsewhere.format)
            .unwrap_or(self.settings.style.format)
    }

    /// Whether results go to a terminal.
    pub fn on_terminal(&self) -> bool {
        self.settings.terminal && self.elsewhere.is_none()
    }

    /// Whether results may go to the pager.
    fn pages(&self) -> bool {
        self.on_terminal() && self.settings.pager != Paging::Off && terminal_size().is_some()
    }

    /// The rows of a query; failures have been reported, with their places in it.
    ///
    /// # Errors
    /// The failure; a text that is not one query.
    pub fn rows_of(&mut self, text: &str) -> Result<DataFrame, Failure> {
        let source = Source { name: None, text: text.into() };
        let with_values = self.with_variables(&source);
        let source = with_values.as_ref().unwrap_or(&source);
        let _running = Running::begin();
        let mut statements = statement::split(&source.text);
        let frame = match (statements.pop(), statements.is_empty()) {
            (Some(statement), true) => {
                statement.and_then(|statement| match statement.request()? {
                    Request::Query(query) => self.collect(&query),
                    _ => Err(Failure::sql("this is no query".into(), Some(statement.place))),
                })
            }
            _ => Err(Failure::sql("one query is expected".into(), None)),
        };
        frame.map_err(|failure| {
            self.report(&failure, |failure| failure.report(Some(source), None));
            failure.told()
        })
    }

    /// Tells what a statement without a result did, where somebody listens.
    ///
    /// # Errors
    /// The results cannot be written.
    pub fn done(&mut self, message: String) -> Result<(), Failure> {
        if self.settings.talkative { self.print(&(message + "\n")) } else { Ok(()) }
    }

    /// Whether a table of the schema in use is a view.
    fn is_view(&self, name: &str) -> Result<bool, Failure> {
        let all = self.session.sql("SHOW ALL TABLES")?.collect()?;
        let of = |column: &str| all.column(column)?.to_vec::<String>();
        let (schemas, tables, kinds) = (of("schema")?, of("table")?, of("kind")?);
        let schema = self.session.schema_in_use();
        let mut rows = schemas.iter().zip(&tables).zip(&kinds);
        Ok(rows.any(|((of, table), kind)| *of == schema && table == name && kind == "view"))
    }

    fn create_table(
        &mut self,
        table: &Name,
        existing: Existing,
        query: &Sql,
    ) -> Result<(), Failure> {
        if self.session.table_names().contains(&table.text) {
            let refused = |message: String| Err(Failure::sql(message, Some(table.place)));
            let is_view = self.is_view(&table.text)?;
            match existing {
                Existing::Keep => return Ok(()),
                _ if is_view => {
                    return refused(format!("{:?} is a view: DROP VIEW drops it", table.text));
                }
                Existing::Replace => {}
                Existing::Refuse => {
                    return refused(format!(
                        "there is a table named {:?}; CREATE OR REPLACE replaces it",
                        table.text
                    ));
                }
            }
        }
        let mut planned = self.plan(query)?;
        if let Some(names) = different(&planned.column_names()) {
            let Sql(text) = query;
            planned =
                self.plan(&Sql(format!("SELECT * FROM ({text}\n) AS \"columns\" ({names})")))?;
        }
        let frame = {
            let _told = Progress::begin(&self.session, self.settings.progress);
            planned.collect()?
        };
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
        let extension = Path::new(&file.text)
            .extension()
            .and_then(|e| e.to_str())
            .unwrap_or_default()
            .to_lowercase();
        let (format, place) = match format {
            Some(name) => (name.text.as_str(), name.place),
            None => (extension.as_str(), file.place),
        };
        let Some(format) = write_format(format, options)? else {
            let message = "COPY writes CSV, Parquet, JSON and Arrow: end the file's name in .csv, .tsv, .parquet, \
                           .json, .ndjson, .arrow or .arrows, or name a FORMAT";
            let known =
                ["csv", "tsv", "parquet", "json", "ndjson", "arrow", "arrows"].map(String::from);
            let help = nearest(format, &known)
                .map_or(String::new(), |meant| format!("; did you mean {meant}?"));
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
                let by: Vec<&str> =
                    partition_by.iter().map(|column| column.text.as_str()).collect();
                let frame = frame.collect()?;
                let written = frame.write_partitioned(&file.text, &by, &format);
                written.map_err(|error| match error.kind() {
                    ErrorKind::ColumnNotFound { name, .. } => {
                        let place = partition_by
                            .iter()
                            .find(|column| column.text == *name)
                            .map(|column| column.place);
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
            (Some(kind), None) => {
                self.session.append_files(&table.text, &file.text, kind).map_err(of_file)?
            }
            (None, _) => {
                let message = "COPY reads CSV, Parquet, JSON and Arrow: end the file's name as theirs end, or name a \
                               FORMAT";
                return Err(Failure::sql(
                    message.into(),
                    Some(format.map_or(file.place, |name| name.place)),
                ));
            }
        };
        self.done(format!("{} into {}", count(rows), table.text))
    }

    fn table(&self, table: &Name) -> Result<LazyFrame, Failure> {
        self.session.table(&table.text).map_err(|error| Failure::from(error).at(table.place))
    }

    /// The columns of what SHOW names, where that is no option but a table.
    fn shown_table(&self, error: &Error, Sql(text): &Sql) -> Option<SchemaRef> {
        let ErrorKind::Plan { message, .. } = error.kind() else { return None };
        let name = message.strip_prefix("no option named \"")?.split_once('"')?.0;
        let is_show = text.trim_start().get(..4)?.eq_ignore_ascii_case("SHOW");
        self.session.schema(name).ok().filter(|_| is_show)
    }

    fn execute(&mut self, text: &Sql) -> Result<(), Failure> {
        let told = Progress::begin(&self.session, self.settings.progress);
        let executed = self.session.execute(&text.0);
        if let Err(error) = &executed
            && let Some(schema) = self.shown_table(error, text)
        {
            return self.describe(&schema);
        }
        let executed = executed.map_err(|error| match error.kind() {
            // Of SHOW, which may be meant for an option of the command's.
            ErrorKind::Plan { message, .. } if message.starts_with("no option named \"") => {
                let name = message.split('"').nth(1).unwrap_or_default().to_string();
                let place =
                    error.location().map_or(text.end(), |(line, column)| Place { line, column });
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
        let types: StringArray =
            fields().map(|field| Some(field.data_type().to_string())).collect();
        let nullable: BooleanArray = fields().map(|field| Some(field.is_nullable())).collect();
        self.batch([
            ("column", Arc::new(names) as ArrayRef),
            ("type", Arc::new(types) as ArrayRef),
            ("nullable", Arc::new(nullable) as ArrayRef),
        ])
    }

    fn batch<const N: usize>(&mut self, columns: [(&str, ArrayRef); N]) -> Result<(), Failure> {
        let batch = RecordBatch::try_from_iter(columns)?;
        self.write(|out, style| output::write(out, style, &Rows::whole(batch)))
    }
}

/// A failure with its place. The parser gives none where a text ends too early.
fn unfinished(error: Error, text: &Sql) -> Failure {
    match error.kind() {
        ErrorKind::Parse { path: None, line: 0, .. } => Failure::from(error).at(text.end()),
        _ => error.into(),
    }
}

/// A number of rows in words.
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
    io::read_to_string(io::stdin())
        .map_err(|error| Failure::file(Path::new("standard input"), error))
}

/// Whether an error is of a name that there is not.
fn is_of_names(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::TableNotFound { .. }
        | ErrorKind::ColumnNotFound { .. }
        | ErrorKind::SchemaNotFound { .. } => true,
        ErrorKind::Plan { message, .. } => message.starts_with("no function named "),
        _ => false,
    }
}

/// Names for a table's columns where two of them have one, quoted: `a` and `a_1`.
fn different(names: &[String]) -> Option<String> {
    let mut taken: HashSet<String> = names.iter().cloned().collect();
    if taken.len() == names.len() {
        return None;
    }
    let mut seen = HashSet::new();
    let quoted = names.iter().map(|name| {
        let mut numbered = (1..).map(|at| format!("{name}_{at}"));
        let own = match seen.insert(name) {
            true => name.clone(),
            false => numbered.find(|own| taken.insert(own.clone())).unwrap_or_default(),
        };
        format!("\"{}\"", own.replace('"', "\"\""))
    });
    Some(quoted.collect::<Vec<_>>().join(", "))
}
