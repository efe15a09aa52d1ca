//! The command line: what was asked for, and which tables the files become.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};
use warpframe::device::MemoryLimit;
use warpframe::{DeviceChoice, FileKind, IpcOptions, JsonOptions, ParquetOptions, Session};

use crate::Connect;
use crate::bench::Bench;
use crate::completions::Shell;
use crate::files::{self, Content, CsvArguments, InputFormat, Table, is_database};
use crate::outlet::{FileFormat, Outlet};
use crate::output::Format;
use crate::report::Failure;
use crate::units::Unit;

/// What the process exits with, and when.
pub const EXIT_CODES: [(u8, &str); 6] = [
    (0, "All went well, or the reader of the results left"),
    (1, "A statement failed, or data are wrong"),
    (2, "The command line or a variable of the environment is wrong"),
    (129, "The terminal went away (SIGHUP)"),
    (130, "Ctrl-C stopped a statement"),
    (143, "Somebody ended it (SIGTERM)"),
];

fn after_help() -> String {
    let codes: Vec<String> =
        EXIT_CODES.iter().map(|(code, what)| format!("  {code:<3}  {what}")).collect();
    format!(
        "Exit codes:\n{}\n\nwarpframe bench 'QUERY' times a statement: warpframe bench --help",
        codes.join("\n")
    )
}

/// SQL over files, on the GPU.
///
/// Each file is a table named after it: `data/jets.csv` is jets. A query may name files, too, as in
/// FROM 'data/jets.csv'. Without -c and -f, SQL comes from a shell on a terminal, and otherwise
/// from standard input.
#[derive(Debug, Parser)]
#[command(name = "warpframe", version, after_help = after_help())]
pub struct Arguments {
    /// Files of Parquet (.parquet, .parq, .pq), CSV (.csv, .tsv, .tab, .psv, .txt), JSON (.json,
    /// .ndjson, .jsonl) or Arrow (.arrow, .arrows, .feather, .ipc), directories of them, or
    /// patterns such as 'd/*.csv'; '-' is Parquet, Arrow or CSV on standard input, the table stdin
    #[arg(value_name = "FILES")]
    pub files: Vec<PathBuf>,

    /// Run these statements; may be given several times
    #[arg(short = 'c', value_name = "SQL", allow_hyphen_values = true)]
    pub commands: Vec<String>,

    /// Run the statements of this file ('-' for standard input)
    #[arg(short = 'f', value_name = "FILE")]
    pub scripts: Vec<PathBuf>,

    /// Where queries run: auto, cuda, cuda:N, sim (a simulator of a GPU, for tests) or cpu
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<DeviceChoice>,

    /// The cluster that runs queries, by its scheduler: df://HOST:PORT
    #[arg(long, value_name = "URL", conflicts_with = "device")]
    pub cluster: Option<String>,

    /// Make it an error if any part of a query cannot run on the device
    #[arg(long)]
    pub strict: bool,

    /// How results are written; as the name of --output tells otherwise, or as a table
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Formats by their names.
    #[command(flatten)]
    short: ShortFormats,

    /// Write results into this file, whole or not at all. Its name tells how: .csv, .tsv, .json,
    /// .ndjson, .jsonl, .md, .html, .sql, or one result as .parquet, .arrow or .arrows
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Write results without the names of their columns
    #[arg(long)]
    pub no_names: bool,

    /// What stands for NULL in results
    #[arg(long, value_name = "TEXT")]
    pub null: Option<String>,

    /// A value for $NAME in statements; may be given several times
    #[arg(short = 'v', long = "variable", value_name = "NAME=VALUE", value_parser = variable)]
    pub variables: Vec<(String, String)>,

    /// Go on after a statement that fails; the last failure decides the exit code
    #[arg(long)]
    pub keep_going: bool,

    /// Compile the kernels that every query may need, and keep them in the kernel cache; needs no
    /// GPU
    #[arg(long, conflicts_with_all = ["files", "commands", "scripts"])]
    pub prepare: bool,

    /// With --prepare: for which GPUs, such as 'sm_80,sm_90'; for the one of this machine otherwise
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub arch: Vec<String>,

    /// Write what a shell of the system reads to complete these options
    #[arg(long, value_name = "SHELL", value_enum, conflicts_with_all = ["files", "commands", "scripts", "prepare"])]
    pub completions: Option<Shell>,

    /// Write the manual page: warpframe --man | man -l -
    #[arg(long, conflicts_with_all = ["files", "commands", "scripts", "prepare", "completions"])]
    pub man: bool,

    /// Most device memory in use at once: bytes such as 2GiB or 500MB, or per cent such as 80%
    #[arg(long, value_name = "N")]
    pub memory_limit: Option<MemoryLimit>,

    /// Most memory of the CPU engine at once: bytes, or per cent of the machine's; 75% otherwise.
    /// Sorts and aggregations that need more spill to files
    #[arg(long, value_name = "N")]
    pub host_memory_limit: Option<MemoryLimit>,

    /// Folder of the files that the CPU engine spills to; the system's for temporary files
    /// otherwise
    #[arg(long, value_name = "DIR")]
    pub spill_dir: Option<PathBuf>,

    /// Most bytes of these files at once, such as 20GiB; 100GiB otherwise
    #[arg(long, value_name = "N", value_parser = bytes)]
    pub spill_limit: Option<u64>,

    /// Refuse CREATE FUNCTION and CREATE AGGREGATE, whose bodies are code that runs on this
    /// machine: for SQL of others
    #[arg(long)]
    pub no_user_code: bool,

    /// Refuse statements and commands that read or write files, and what could open some: for SQL of
    /// others, over the tables that the command line names
    #[arg(long)]
    pub no_files: bool,

    /// Do not tell a terminal how far statements are that take longer than half a second
    #[arg(long)]
    pub no_progress: bool,

    /// Unit of timestamps that Parquet files hold as INT96; beyond the years from 1678 to 2261
    /// nanoseconds are an error
    #[arg(long, value_name = "UNIT", value_enum, default_value_t = Unit::Us)]
    pub coerce_int96_timestamp_unit: Unit,

    /// What standard input (-) and pipes such as <(zcat f) hold, where names do not tell; otherwise
    /// Parquet and Arrow are known by their first bytes, and all else is CSV
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub input_format: Option<InputFormat>,

    /// Give each table a column "filename" with the path of the file that a row comes from
    #[arg(long)]
    pub filename: bool,

    /// How CSV files are laid out.
    #[command(flatten)]
    pub csv: CsvArguments,
}

/// Options that stand for `--format`.
#[derive(Debug, clap::Args)]
#[group(multiple = false, conflicts_with = "format")]
struct ShortFormats {
    /// Short for --format csv
    #[arg(long)]
    csv: bool,

    /// Short for --format tsv
    #[arg(long)]
    tsv: bool,

    /// Short for --format json
    #[arg(long)]
    json: bool,

    /// Short for --format ndjson
    #[arg(long)]
    ndjson: bool,

    /// Short for --format markdown
    #[arg(long)]
    markdown: bool,

    /// Short for --format box
    #[arg(long = "box")]
    boxed: bool,

    /// Short for --format line
    #[arg(long)]
    line: bool,
}

/// A variable, such as `day=2024-01-31`.
fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let plain = name.starts_with(|c: char| c.is_alphabetic())
        && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if plain { Ok((name.into(), value.into())) } else { Err(format!("{name:?} is no name")) }
}

/// A number of bytes, such as `20GiB`.
fn bytes(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(MemoryLimit::Bytes(bytes)) => Ok(bytes),
        Ok(MemoryLimit::Percent(_)) => Err("expected bytes such as 20GiB".into()),
        Err(error) => Err(Failure::from(error).to_string()),
    }
}

/// What the command line asks for.
#[derive(Debug)]
pub enum Asked {
    /// To run statements.
    Statements(Box<Arguments>),
    /// To time one.
    Bench(Box<Bench>),
}

impl Asked {
    /// The options that all have.
    pub fn arguments(&self) -> &Arguments {
        match self {
            Asked::Statements(arguments) => arguments,
            Asked::Bench(bench) => &bench.arguments,
        }
    }
}

/// SQL that the command line names, in the order in which it does.
#[derive(Debug, PartialEq, Eq)]
pub enum Job {
    /// The text of a `-c`.
    Command(String),
    /// The file of a `-f`.
    Script(PathBuf),
}

impl Arguments {
    /// Reads a command line; on a mistake says so and exits with 2.
    pub fn from_words(words: Vec<OsString>) -> (Asked, Vec<Job>) {
        if words.get(1).is_some_and(|word| word == "bench") {
            let words = words.into_iter().skip(2);
            let matches = Bench::command()
                .get_matches_from(std::iter::once("warpframe bench".into()).chain(words));
            let bench = Bench::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
            let jobs = bench.arguments.jobs(&matches);
            return (Asked::Bench(Box::new(bench)), jobs);
        }
        let matches = Arguments::command().get_matches_from(words);
        let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        let jobs = arguments.jobs(&matches);
        (Asked::Statements(Box::new(arguments)), jobs)
    }

    /// How results are to be written, where that was said.
    pub fn format(&self) -> Option<Format> {
        let ShortFormats { csv, tsv, json, ndjson, markdown, boxed, line } = self.short;
        let short = [
            (csv, Format::Csv),
            (tsv, Format::Tsv),
            (json, Format::Json),
            (ndjson, Format::Ndjson),
            (markdown, Format::Markdown),
            (boxed, Format::Box),
            (line, Format::Line),
        ];
        let short = short.into_iter().find(|(given, _)| *given).map(|(_, format)| format);
        short.or(self.format)
    }

    /// The file that results are to go to, and how these are written otherwise.
    ///
    /// # Errors
    /// A name that tells no format, or another one than was said; a file that cannot be written.
    pub fn outlet(&self) -> Result<(Option<Outlet>, Format), Failure> {
        let said = self.format();
        let Some(path) = &self.output else { return Ok((None, said.unwrap_or(Format::Table))) };
        let usage = |message: String| Failure::usage(format!("--output {message}"));
        match (FileFormat::of(path), said) {
            (Ok(Some(FileFormat::Rows(_))), Some(_)) => {
                let message = "is written as its name tells, and another format is said";
                Err(usage(format!("{}: {message}", path.display())))
            }
            (Ok(Some(rows @ FileFormat::Rows(_))), None) => {
                Ok((Some(Outlet::file(path, Some(rows))?), Format::Table))
            }
            (_, Some(format)) => Ok((Some(Outlet::file(path, None)?), format)),
            (Ok(Some(FileFormat::Text(format))), None) => {
                Ok((Some(Outlet::file(path, None)?), format))
            }
            (Ok(None), None) => Ok((Some(Outlet::file(path, None)?), Format::Table)),
            (Err(message), None) => {
                Err(usage(format!("{message}, and --format names one for other files")))
            }
        }
    }

    fn jobs(&self, matches: &ArgMatches) -> Vec<Job> {
        let places = |id: &str| matches.indices_of(id).into_iter().flatten();
        let commands =
            places("commands").zip(self.commands.iter().map(|text| Job::Command(text.clone())));
        let scripts =
            places("scripts").zip(self.scripts.iter().map(|path| Job::Script(path.clone())));
        let in_order: BTreeMap<usize, Job> = commands.chain(scripts).collect();
        in_order.into_values().collect()
    }

    /// Makes the session; where no device was asked for, the environment may.
    pub fn session(&self, connect: Option<Connect>) -> Result<Session, Failure> {
        let mut builder = Session::builder().user_code(!self.no_user_code).files(!self.no_files);
        if let Some(connect) = connect {
            let cluster = connect(self.cluster.as_deref()).map_err(Failure::of_session)?;
            builder = builder.cluster(cluster);
        }
        if let Some(device) = self.device.clone() {
            builder = builder.device(device);
        }
        if self.strict {
            builder = builder.strict(true);
        }
        if let Some(limit) = self.memory_limit {
            builder = builder.memory_limit(limit);
        }
        if let Some(limit) = self.host_memory_limit {
            builder = builder.host_memory_limit(limit);
        }
        if let Some(folder) = &self.spill_dir {
            builder = builder.spill_dir(folder);
        }
        if let Some(bytes) = self.spill_limit {
            builder = builder.spill_limit(bytes);
        }
        if !self.arch.is_empty() {
            return Err(Failure::usage(
                "--arch says for which GPUs --prepare compiles; there is no --prepare",
            ));
        }
        if self.strict && self.device == Some(DeviceChoice::Cpu) {
            return Err(Failure::usage("--strict asks for a device, --device cpu for none"));
        }
        builder.build().map_err(Failure::of_session)
    }

    /// Makes each file a table of the session; what is wrong with those of several that are none.
    ///
    /// # Errors
    /// Of files that are missing or of no known kind, and where none is a table.
    pub fn register(&self, session: &Session) -> Result<Vec<Failure>, Failure> {
        let mut csv = self.csv.options(session)?;
        csv.filename |= self.filename;
        let json = JsonOptions { filename: self.filename, ..JsonOptions::default() };
        let unit = self.coerce_int96_timestamp_unit.into();
        let filename = self.filename;
        let ipc = IpcOptions { filename: self.filename, ..IpcOptions::default() };
        let parquet = ParquetOptions {
            coerce_int96_timestamp_unit: unit,
            filename,
            ..ParquetOptions::default()
        };
        for folder in self.files.iter().filter(|file| is_database(file)) {
            session.open(folder)?;
        }
        let tables = self.tables()?;
        let (count, mut wrong) = (tables.len(), vec![]);
        for table in tables {
            let (path, kind) = match table.content {
                Content::File(kind) => (table.path, kind),
                Content::Pipe => {
                    let kind = files::kind_of_pipe(&table.path, self.input_format)?;
                    (table.path, kind)
                }
                Content::StandardInput if csv.filename => {
                    let by = if self.filename { "--filename" } else { "the option filename" };
                    let message = format!("{by}: standard input (-) has no path");
                    return Err(Failure::usage(message));
                }
                Content::StandardInput => {
                    let path = files::standard_input()?;
                    let kind = files::kind_of_pipe(&path, self.input_format)?;
                    (path, kind)
                }
            };
            let name = &table.name;
            let made = match kind {
                FileKind::Parquet => session.register_parquet_with(name, &path, parquet.clone()),
                FileKind::Csv => session.register_csv_with(name, &path, csv.clone()),
                FileKind::Json => session.register_json_with(name, &path, json.clone()),
                FileKind::Arrow => session.register_ipc_with(name, &path, ipc.clone()),
                kind => session.register_files(name, &path, kind),
            };
            wrong.extend(made.err().map(Failure::from));
        }
        match wrong.len() == count {
            true => wrong.into_iter().next().map_or(Ok(vec![]), Err),
            false => Ok(wrong),
        }
    }

    fn tables(&self) -> Result<Vec<Table>, Failure> {
        let files: Vec<PathBuf> =
            self.files.iter().filter(|file| !is_database(file)).cloned().collect();
        files::tables(&files, self.csv.is_given())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> (Arguments, Vec<Job>) {
        let matches =
            Arguments::command().get_matches_from(std::iter::once(&"warpframe").chain(arguments));
        let arguments = Arguments::from_arg_matches(&matches).unwrap();
        let jobs = arguments.jobs(&matches);
        (arguments, jobs)
    }

    fn names(arguments: &Arguments) -> Vec<String> {
        arguments.tables().unwrap().into_iter().map(|table| table.name).collect()
    }

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn jobs_keep_the_order_of_the_command_line() {
        let (_, jobs) = parse(&["-c", "SELECT 1", "-f", "q.sql", "-c", "-- a comment"]);
        let expected = [
            Job::Command("SELECT 1".into()),
            Job::Script("q.sql".into()),
            Job::Command("-- a comment".into()),
        ];
        assert_eq!(jobs, expected);
    }

    #[test]
    fn files_are_tables_by_stem_and_patterns_are_their_matches() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
        for name in ["a.csv", "b.CSV", "c.tsv", "d.parquet"] {
            std::fs::write(path(name), "x\n1\n").unwrap();
        }
        std::fs::create_dir(path("parts")).unwrap();
        std::fs::write(path("parts/1.csv"), "x\n1\n").unwrap();
        std::fs::write(path("parts/2.csv"), "x\n2\n").unwrap();

        assert_eq!(names(&parse(&[&path("?.[ct]sv"), &path("d.parquet")]).0), ["a", "c", "d"]);
        assert_eq!(names(&parse(&[&path("b.CSV"), &path("parts")]).0), ["b", "parts"]);
    }

    #[test]
    fn mistakes_in_files_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
        std::fs::create_dir(path("other")).unwrap();
        for name in ["a.csv", "a.tsv", "notes.md", "other/a.csv"] {
            std::fs::write(path(name), "x\n1\n").unwrap();
        }
        let failure = |files: &[&str]| parse(files).0.tables().unwrap_err();

        assert_eq!(failure(&[&path("a.csv"), &path("other/a.csv")]).exit_code(), 2);
        assert_eq!(failure(&[&path("notes.md")]).exit_code(), 2);
        assert_eq!(
            names(&parse(&["--delimiter", "|", &path("notes.md"), "-"]).0),
            ["notes", "stdin"]
        );
        assert_eq!(failure(&[&path("nothing.csv")]).exit_code(), 1);
        assert_eq!(failure(&[&path("*.parquet")]).exit_code(), 1);
        assert!(failure(&[&path("nothing.csv")]).to_string().contains("nothing.csv"));
    }
}
