//! Runs statements on a session and writes what comes of them.

mod explain;
mod options;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warpframe::arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray};
use warpframe::arrow::datatypes::SchemaRef;
use warpframe::device::Device;
use warpframe::frame::terminal_size;
use warpframe::plugin::StageReport;
use warpframe::sql::{Statement, Text, type_name};
use warpframe::timeline::{Part, span};
use warpframe::{DataFrame, Executed, LazyFrame, Session};

use crate::interrupt::Running;
use crate::outlet::{Mark, Outlet};
use crate::output::{self, Format, Rows, Style};
use crate::pager::{Pager, Paging};
use crate::progress::Progress;
use crate::report::{Failure, Place, Source, shown};
use crate::text;
pub use options::{SETTINGS, Settings, formats, switch};

/// A session with somewhere to write to.
pub struct Runner<'a> {
    /// The tables and the device.
    pub session: Session,
    /// What the user chose.
    pub settings: Settings,
    out: &'a mut dyn Write,
    /// Failures and times; apart from the results.
    messages: &'a mut dyn Write,
    /// Where the command line sends results instead.
    at_first: Option<Outlet>,
    /// Where a command sends them, whatever the command line says.
    elsewhere: Option<Outlet>,
    /// How long pagers had the terminal.
    paged: Duration,
    /// What ran last: statements of one entry, or of a file up to a command.
    pub last: String,
    /// What came from an editor, until the history has it.
    pub edited: Option<String>,
    /// What the last query did on a cluster.
    pub stages: Vec<StageReport>,
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
            at_first: None,
            elsewhere: None,
            paged: Duration::ZERO,
            last: String::new(),
            edited: None,
            stages: vec![],
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
        for statement in Text::from(&source.text).statements() {
            let is_whole = statement.error().is_none();
            if self.settings.echo && is_whole {
                self.tell(&format!("{};\n", statement.as_str()))?;
            }
            let place = is_whole.then(|| Place::from(statement.start()));
            let (start, paged) = (Instant::now(), self.paged);
            let mark = self.outlet().map(|outlet| outlet.mark());
            self.session.take_fallback_reasons();
            self.session.take_stage_runs();
            let running = Running::begin();
            let result = self.statement(&statement);
            drop(running);
            let result = result.map_err(|failure| failure.in_statement(&statement));
            let result = result.and_then(|()| Ok(self.out().flush()?));
            let result = self.settle(result, mark);
            let stages = self.session.take_stage_runs();
            if !stages.is_empty() {
                self.stages = stages;
            }
            for reason in self.session.take_fallback_reasons() {
                self.say(&format!("note: the CPU took over: {}\n", shown(&reason)));
            }
            for note in self.session.take_file_notes() {
                self.say(&format!("note: {}\n", shown(&note)));
            }
            for note in self.session.device().map_or_else(Vec::new, Device::take_cache_notes) {
                self.say(&format!("note: {note}\n"));
            }
            if let Err(failure) = result {
                self.report(&failure, |failure| failure.report(Some(source), place));
                let ends = self.settings.bail || failure.is_broken_pipe();
                failed = Some(failure);
                if ends {
                    break;
                }
                continue;
            }
            if self.settings.timer {
                self.say(&format!(
                    "time: {}\n",
                    in_words(start.elapsed().saturating_sub(self.paged - paged))
                ));
            }
        }
        // What succeeded stays, whatever failed behind it.
        let session = &self.session;
        let is_there = session.database().is_some() || !session.attached_databases().is_empty();
        if is_there && let Err(error) = self.session.save() {
            let failure = Failure::from(error);
            self.complain(&failure);
            return Err(failure.told());
        }
        failed.map_or(Ok(()), Err)
    }

    /// A text with values in the places of `$name`; `None` where nothing is to be put in.
    fn with_variables(&self, source: &Source) -> Option<Source> {
        let text = text::with_values(&source.text, &self.settings.variables)?;
        Some(Source { name: source.name.clone(), text })
    }

    /// Where results go now.
    fn out(&mut self) -> &mut dyn Write {
        match self.elsewhere.as_mut().or(self.at_first.as_mut()) {
            Some(outlet) => outlet,
            None => self.out,
        }
    }

    fn outlet(&mut self) -> Option<&mut Outlet> {
        self.elsewhere.as_mut().or(self.at_first.as_mut())
    }

    /// Sends results somewhere, where no command says otherwise.
    pub fn send_at_first(&mut self, outlet: Option<Outlet>) {
        self.at_first = outlet;
    }

    /// Sends results somewhere; `None`: where they went at first. What they went to is finished.
    ///
    /// # Errors
    /// What that comes to.
    pub fn send(&mut self, outlet: Option<Outlet>) -> Result<(), Failure> {
        match std::mem::replace(&mut self.elsewhere, outlet) {
            Some(before) => before.end(true),
            None => Ok(()),
        }
    }

    /// Finishes files that results went to, or leaves those in their places as they were.
    ///
    /// # Errors
    /// What that comes to, already reported.
    pub fn finish(&mut self, is_whole: bool) -> Result<(), Failure> {
        let mut ended = Ok(());
        for outlet in [self.elsewhere.take(), self.at_first.take()].into_iter().flatten() {
            ended = ended.and(outlet.end(is_whole).inspect_err(|failure| self.complain(failure)));
        }
        ended
    }

    /// What a statement leaves in a file: nothing where it failed, and all where it was the one
    /// that `.once` waited for.
    fn settle(&mut self, result: Result<(), Failure>, mark: Option<Mark>) -> Result<(), Failure> {
        let taken_back = match (&result, self.outlet(), mark) {
            (Err(_), Some(outlet), Some(mark)) => outlet.back_to(mark),
            _ => Ok(()),
        };
        let ended = match self.elsewhere.take_if(|outlet| outlet.is_once()) {
            Some(outlet) => outlet.end(result.is_ok()),
            None => Ok(()),
        };
        result.and(taken_back).and(ended)
    }

    /// Reports a failure that is of no statement.
    pub fn complain(&mut self, failure: &Failure) {
        self.report(failure, |failure| failure.report(None, None));
    }

    /// Reports a failure of a line that is a command.
    pub fn complain_of_line(&mut self, failure: &Failure, source: &Source, line: usize) {
        let place = source.name.as_ref().map(|name| format!("  --> {name}, line {line}\n"));
        self.report(failure, |failure| failure.report(None, None) + &place.unwrap_or_default());
    }

    /// Writes among the results.
    ///
    /// # Errors
    /// The results cannot be written.
    pub fn print(&mut self, text: &str) -> Result<(), Failure> {
        self.out().write_all(text.as_bytes())?;
        Ok(self.out().flush()?)
    }

    /// Tells what is no result: among the results, unless these go to a file.
    ///
    /// # Errors
    /// The results cannot be written.
    pub fn tell(&mut self, text: &str) -> Result<(), Failure> {
        if self.outlet().is_none() {
            return self.print(text);
        }
        self.say(text);
        Ok(())
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

    fn statement(&mut self, text: &Text<'_>) -> Result<(), Failure> {
        if let Some(error) = text.error() {
            return Err(Failure::sql(error.message.clone(), Some(Place::from(error.location))));
        }
        match Statement::of(text)? {
            Statement::Explain { analyze, format, query } => {
                return self.explain(&query, analyze, format);
            }
            Statement::Set { option, value } => return self.set(&option, &value),
            Statement::Reset(option) => return self.reset(&option),
            Statement::ShowOption(option) => {
                if SETTINGS.contains(&option.text.as_str()) {
                    return self.show_settings(Some(&option));
                }
                // A table by its name alone.
                let is_option = self.session.settings().iter().any(|of| of.name == option.text);
                if !is_option && let Ok(schema) = self.session.schema(&option.text) {
                    return self.describe(&schema);
                }
                if let Err(error) = self.session.sql_text(text) {
                    return Err(self.of_option(error, &option));
                }
            }
            Statement::Show if text.behind(1).first_words(2) == ["ALL"] => {
                return self.show_settings(None);
            }
            _ => {}
        }
        self.execute(text)
    }

    /// # Errors
    /// What reads or writes files, where nothing is to.
    pub fn allow_files(&self, what: &str) -> Result<(), Failure> {
        match self.settings.files {
            true => Ok(()),
            false => Err(Failure::sql(format!("{what}: --no-files forbids it"), None)),
        }
    }

    fn plan(&self, query: &Text<'_>) -> Result<LazyFrame, Failure> {
        Ok(self.session.sql_text(query)?)
    }

    fn collect(&self, query: &Text<'_>) -> Result<DataFrame, Failure> {
        let _told = Progress::begin(&self.session, self.settings.progress);
        Ok(self.plan(query)?.collect()?)
    }

    fn show(&mut self, frame: &DataFrame) -> Result<(), Failure> {
        let _span = span(Part::Print, String::new);
        if let Some(outlet) = self.outlet().filter(|outlet| outlet.takes_rows()) {
            return outlet.put(frame);
        }
        let is_table = matches!(self.format(), Format::Table | Format::Box);
        let usual = match (self.on_terminal(), self.pages()) {
            (true, true) => PAGER_ROWS,
            (true, false) => TERMINAL_ROWS,
            (false, _) => 0,
        };
        let most = self.settings.max_rows.unwrap_or(usual);
        let limit = Some(most).filter(|most| *most > 0 && is_table && self.outlet().is_none());
        let paged = self.paged;
        self.write(|out, style| output::write(out, style, &mut Rows::of(frame, limit)))?;
        // What the pager showed is gone with it.
        match self.paged > paged {
            true => self.tell(&(count(frame.num_rows()) + "\n")),
            false => Ok(()),
        }
    }

    /// Runs a query and shows its rows: as they come, where their format does not ask for all of
    /// them first.
    fn show_rows_of(&mut self, query: &LazyFrame, told: Progress) -> Result<(), Failure> {
        let is_table = matches!(self.format(), Format::Table | Format::Box);
        if is_table || self.outlet().is_some_and(|outlet| outlet.takes_rows()) {
            let frame = query.collect()?;
            drop(told);
            return self.show(&frame);
        }
        let rows = query.batches(output::BATCH_ROWS)?;
        drop(told);
        let _span = span(Part::Print, String::new);
        self.write(|out, style| output::write(out, style, &mut Rows::of_query(rows)))
    }

    /// Writes a result: where it is longer than the terminal, through the pager.
    fn write(
        &mut self,
        write: impl FnOnce(&mut dyn Write, &Style) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let terminal = self.on_terminal();
        let colour = self.settings.colour;
        let to_file = self.outlet().is_some_and(|outlet| outlet.is_file());
        let usual = self.settings.style.clone();
        let style = Style { format: self.format(), to_file, terminal, colour, ..usual };
        if !self.pages() {
            write(self.out(), &style)?;
            return Ok(self.out().flush()?);
        }
        let settings = (self.settings.pager, self.settings.programs);
        let mut pager = Pager::new(self.out(), settings);
        let written = write(&mut pager, &style);
        let (shown, paged) = pager.finish(written);
        self.paged += paged;
        shown
    }

    /// How results are written where they go.
    fn format(&self) -> Format {
        let outlet = self.elsewhere.as_ref().or(self.at_first.as_ref());
        outlet.and_then(Outlet::format).unwrap_or(self.settings.style.format)
    }

    /// Whether results go to a terminal.
    pub fn on_terminal(&self) -> bool {
        self.settings.terminal && self.elsewhere.is_none() && self.at_first.is_none()
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
        let script = Text::from(&source.text);
        let mut statements = script.statements();
        let frame = match (statements.pop(), statements.is_empty()) {
            (Some(query), true) => match Statement::of(&query) {
                Ok(Statement::Query) => self.collect(&query),
                Ok(_) => Err(Failure::sql("this is no query".into(), Some(query.start().into()))),
                Err(error) => Err(error.into()),
            },
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
        if self.settings.talkative { self.tell(&(message + "\n")) } else { Ok(()) }
    }

    fn execute(&mut self, text: &Text<'_>) -> Result<(), Failure> {
        let told = Progress::begin(&self.session, self.settings.progress);
        match self.session.execute_text(text)? {
            Executed::Rows(query) => self.show_rows_of(&query, told),
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

    /// Writes names and types of columns.
    ///
    /// # Errors
    /// The results cannot be written.
    pub fn describe(&mut self, schema: &SchemaRef) -> Result<(), Failure> {
        let fields = || schema.fields().iter();
        let names: StringArray = fields().map(|field| Some(field.name().as_str())).collect();
        let types: StringArray = fields().map(|field| Some(type_name(field.data_type()))).collect();
        let nullable: BooleanArray = fields().map(|field| Some(field.is_nullable())).collect();
        self.batch([
            ("column", Arc::new(names) as ArrayRef),
            ("type", Arc::new(types) as ArrayRef),
            ("nullable", Arc::new(nullable) as ArrayRef),
        ])
    }

    fn batch<const N: usize>(&mut self, columns: [(&str, ArrayRef); N]) -> Result<(), Failure> {
        let batch = RecordBatch::try_from_iter(columns)?;
        if self.outlet().is_some_and(|outlet| outlet.takes_rows()) {
            let frame = self.session.from_arrow([batch])?;
            return self.show(&frame);
        }
        self.write(|out, style| output::write(out, style, &mut Rows::whole(batch)))
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
