//! What a user can change while the command runs: `SET`, `RESET`, `SHOW ALL`.

use std::collections::BTreeMap;
use std::sync::Arc;

use warpframe::Error;
use warpframe::arrow::array::{ArrayRef, StringArray};
use warpframe::sql::Name;

use super::Runner;
use crate::output::{Format, Style};
use crate::pager::Paging;
use crate::report::{Failure, nearest};

/// What a user can change while the command runs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How results look.
    pub style: Style,
    /// Most rows that a table shows, 0 for all; what a terminal takes in if nothing is said. The
    /// other formats write all.
    pub max_rows: Option<usize>,
    /// Whether somebody said how results are written.
    pub format_said: bool,
    /// Whether results go to a terminal, where they go to no file.
    pub terminal: bool,
    /// Whether this terminal shows colours.
    pub colour: bool,
    /// Which results a pager shows.
    pub pager: Paging,
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
    /// Whether statements and commands may read and write files.
    pub files: bool,
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
            format_said: false,
            terminal: false,
            colour: false,
            pager: Paging::Off,
            timer: false,
            talkative: false,
            progress: false,
            bail: true,
            echo: false,
            programs: true,
            files: true,
            prompt: "warpframe> ".into(),
            variables: BTreeMap::new(),
        }
    }
}

/// The command's own options.
pub const SETTINGS: [&str; 8] =
    ["format", "headers", "max_rows", "max_width", "null", "progress", "timer", "types"];

impl Runner<'_> {
    pub(super) fn set(&mut self, option: &Name, value: &str) -> Result<(), Failure> {
        let bad = |message: String| Failure::sql(message, Some(option.place.into()));
        match option.text.as_str() {
            "max_rows" => {
                let rows: usize = value
                    .parse()
                    .map_err(|_| bad(format!("max_rows is a number, not {value:?}")))?;
                self.settings.max_rows = Some(rows);
            }
            "max_width" => {
                let width: usize = value
                    .parse()
                    .map_err(|_| bad(format!("max_width is a number, not {value:?}")))?;
                self.settings.style.max_width = Some(width);
            }
            "headers" | "progress" | "types" => {
                let on = switch(value)
                    .ok_or_else(|| bad(format!("{} is on or off, not {value:?}", option.text)))?;
                match option.text.as_str() {
                    "headers" => self.settings.style.headers = on,
                    "types" => self.settings.style.types = on,
                    _ => self.settings.progress = on,
                }
            }
            "null" => self.settings.style.null = Some(value.to_string()),
            "format" => self.set_format(value).map_err(bad)?,
            "timer" => self.set_timer(value).map_err(bad)?,
            _ => self
                .session
                .set_setting(&option.text, value)
                .map_err(|error| self.of_option(error, option))?,
        }
        Ok(())
    }

    /// A failure with an option, of which the command has some, too.
    pub(super) fn of_option(&self, error: Error, option: &Name) -> Failure {
        let own = SETTINGS.map(String::from);
        match nearest(&option.text, &own) {
            Some(meant)
                if !self.session.settings().iter().any(|setting| setting.name == option.text) =>
            {
                let message = format!("no option named {:?}; did you mean {meant}?", option.text);
                Failure::sql(message, Some(option.place.into()))
            }
            _ => Failure::from(error).at(option.place.into()),
        }
    }

    pub(super) fn reset(&mut self, option: &Name) -> Result<(), Failure> {
        let usual = Style::from(Format::Table);
        match option.text.as_str() {
            "format" => {
                self.settings.style.format = usual.format;
                self.settings.format_said = false;
            }
            "headers" => self.settings.style.headers = true,
            "types" => self.settings.style.types = true,
            "null" => self.settings.style.null = None,
            "max_width" => self.settings.style.max_width = None,
            "max_rows" => self.settings.max_rows = None,
            "timer" => self.settings.timer = false,
            "progress" => self.settings.progress = true,
            _ => self
                .session
                .reset_setting(&option.text)
                .map_err(|error| self.of_option(error, option))?,
        }
        Ok(())
    }

    /// The command's options and the session's, or one of them.
    pub(super) fn show_settings(&mut self, only: Option<&Name>) -> Result<(), Failure> {
        let on = |on: bool| Some(if on { "on" } else { "off" }.to_string());
        let (settings, style) = (&self.settings, &self.settings.style);
        let own = [
            ("format", Some(self.format_name()), "How results are written"),
            ("headers", on(style.headers), "Whether the columns' names are written"),
            (
                "max_rows",
                settings.max_rows.map(|rows| rows.to_string()),
                "Most rows that a table shows; 0 is all, NULL as many as suit a terminal",
            ),
            (
                "max_width",
                style.max_width.map(|width| width.to_string()),
                "Most characters of a table's line; 0 is any number, NULL as many as the terminal has",
            ),
            ("null", style.null.clone(), "What stands for NULL"),
            (
                "progress",
                on(settings.progress),
                "Whether a terminal is told how far statements are",
            ),
            ("timer", on(settings.timer), "Whether to tell how long statements take"),
            (
                "types",
                on(style.types),
                "Whether tables on a terminal have types under the columns' names",
            ),
        ];
        let mut all: Vec<(String, Option<String>, String)> =
            own.into_iter().map(|(name, value, text)| (name.into(), value, text.into())).collect();
        all.extend(
            self.session.settings().into_iter().map(|of| (of.name, of.value, of.description)),
        );
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

    /// Takes a format by name; `insert` may have a table's behind it.
    ///
    /// # Errors
    /// What is wrong with the name.
    pub fn set_format(&mut self, name: &str) -> Result<(), String> {
        let usual = Style::from(Format::Insert).table;
        let (name, table) = match name.split_once(char::is_whitespace) {
            Some((format, table)) if format.eq_ignore_ascii_case("insert") => {
                (format, table.trim().to_string())
            }
            _ => (name, usual),
        };
        self.settings.style.format = clap::ValueEnum::from_str(name, true).map_err(|_| {
            let known: Vec<String> = formats().collect();
            match nearest(name, &known) {
                Some(meant) => format!("no format named {name:?}; did you mean {meant}?"),
                None => format!("no format named {name:?}; known: {}", known.join(", ")),
            }
        })?;
        self.settings.style.table = table;
        self.settings.format_said = true;
        Ok(())
    }

    /// Takes `on` or `off`.
    ///
    /// # Errors
    /// What is wrong with the word.
    pub fn set_timer(&mut self, word: &str) -> Result<(), String> {
        self.settings.timer =
            switch(word).ok_or_else(|| format!("the timer is on or off, not {word:?}"))?;
        Ok(())
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
    let names = <Format as clap::ValueEnum>::value_variants()
        .iter()
        .filter_map(clap::ValueEnum::to_possible_value);
    names.map(|name| name.get_name().to_string())
}
