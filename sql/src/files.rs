//! Which tables the files of the command line become, and how CSV files are laid out.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::{AsFd, IntoRawFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use warpframe::{CsvOptions, FileKind, Session};

use crate::report::Failure;

/// What is said of all CSV files of the command line; what is not said is found out.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "CSV files")]
pub struct CsvArguments {
    /// The character between values
    #[arg(long, value_name = "C")]
    pub delimiter: Option<String>,

    /// The character around values that hold delimiters ('' for none)
    #[arg(long, value_name = "C")]
    pub quote: Option<String>,

    /// The first row names the columns
    #[arg(long)]
    pub header: bool,

    /// The first row does not name the columns
    #[arg(long, conflicts_with = "header")]
    pub no_header: bool,

    /// A text that is NULL, besides the empty one
    #[arg(long, value_name = "TEXT")]
    pub nullstr: Option<String>,

    /// Lines before the header that are left out
    #[arg(long, value_name = "N")]
    pub skip: Option<usize>,

    /// utf-8, utf-16le, utf-16be, latin-1 or windows-1252
    #[arg(long, value_name = "NAME")]
    pub encoding: Option<String>,

    /// Any option of read_csv, such as dateformat=%d.%m.%Y or 'types=zip VARCHAR'; may be given
    /// several times
    #[arg(long = "read-csv", value_name = "OPTION=VALUE", value_parser = option)]
    pub others: Vec<(String, String)>,
}

fn option(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected OPTION=VALUE")?;
    Ok((name.trim().into(), value.into()))
}

impl CsvArguments {
    /// Whether anything is said: then files whose kind is unknown are CSV.
    pub fn is_given(&self) -> bool {
        !self.by_name().is_empty()
    }

    /// The options of the files.
    ///
    /// # Errors
    /// Options that are none.
    pub fn options(&self, session: &Session) -> Result<CsvOptions, Failure> {
        let given = self.by_name();
        let given = given.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        session.csv_options(given).map_err(|error| Failure::usage(Failure::from(error).to_string()))
    }

    fn by_name(&self) -> Vec<(String, String)> {
        let texts = [
            ("delim", self.delimiter.clone()),
            ("quote", self.quote.clone()),
            ("header", (self.header || self.no_header).then(|| self.header.to_string())),
            ("nullstr", self.nullstr.clone()),
            ("skip", self.skip.map(|lines| lines.to_string())),
            ("encoding", self.encoding.clone()),
        ];
        let given = texts.into_iter().filter_map(|(name, text)| Some((name.to_string(), text?)));
        given.chain(self.others.iter().cloned()).collect()
    }
}

/// A table of the command line.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// The file's stem.
    pub name: String,
    /// Its file or directory.
    pub path: PathBuf,
    /// What that is.
    pub content: Content,
}

/// Where a table's rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// In files of a kind.
    File(FileKind),
    /// In a pipe, which an option, or its first bytes, tell the kind of.
    Pipe,
    /// On standard input, of which that is true, too.
    StandardInput,
}

/// What pipes hold whose names do not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum InputFormat {
    /// Delimited text.
    Csv,
    /// A value in each line, or an array of them.
    #[value(aliases = ["ndjson", "jsonl"])]
    Json,
    /// Parquet.
    Parquet,
    /// Arrow IPC, a file or a stream.
    Arrow,
}

impl From<InputFormat> for FileKind {
    fn from(format: InputFormat) -> FileKind {
        match format {
            InputFormat::Csv => FileKind::Csv,
            InputFormat::Json => FileKind::Json,
            InputFormat::Parquet => FileKind::Parquet,
            InputFormat::Arrow => FileKind::Arrow,
        }
    }
}

/// The kind of a pipe's content: what was said, or what its first bytes tell. All else is CSV.
///
/// # Errors
/// A pipe that cannot be read.
pub fn kind_of_pipe(path: &Path, said: Option<InputFormat>) -> Result<FileKind, Failure> {
    if let Some(said) = said {
        return Ok(said.into());
    }
    let kind = FileKind::of_content(path).map_err(|error| Failure::file(path, error))?;
    Ok(kind.unwrap_or(FileKind::Csv))
}

/// Whether an argument names something on another machine.
fn is_address(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.contains("://")) && !path.exists()
}

fn is_pipe(path: &Path) -> bool {
    path.metadata().is_ok_and(|of| of.file_type().is_fifo())
}

/// The tables that arguments name, by name. `csv`: files whose kind their names do not tell are
/// CSV.
///
/// # Errors
/// Files that are missing, are of no known kind, or would be tables of one name.
pub fn tables(arguments: &[PathBuf], csv: bool) -> Result<Vec<Table>, Failure> {
    let mut tables: BTreeMap<String, Table> = BTreeMap::new();
    for argument in arguments {
        let named = match argument == Path::new("-") {
            true => vec![Table {
                name: "stdin".into(),
                path: argument.clone(),
                content: Content::StandardInput,
            }],
            false => expand(argument)?
                .into_iter()
                .map(|path| table(path, csv))
                .collect::<Result<_, _>>()?,
        };
        for table in named {
            if let Some(other) = tables.get(&table.name) {
                let (one, two, name) = (other.path.display(), table.path.display(), &table.name);
                return Err(Failure::usage(format!(
                    "{one} and {two} would both be the table {name:?}"
                )));
            }
            tables.insert(table.name.clone(), table);
        }
    }
    Ok(tables.into_values().collect())
}

/// Whether an argument is a database: its name says so, or its folder has a catalog.
pub fn is_database(argument: &Path) -> bool {
    argument.extension().is_some_and(|suffix| suffix == "wf")
        || argument.join("catalog.sql").is_file() && argument.join("lock").is_file()
}

fn table(path: PathBuf, csv: bool) -> Result<Table, Failure> {
    let kind = match FileKind::of(&path) {
        Some(kind) => kind,
        // The engine says that it reads none.
        None if is_address(&path) => FileKind::Parquet,
        None if is_pipe(&path) => {
            let name = FileKind::table_name(&path);
            return Ok(Table { name, path, content: Content::Pipe });
        }
        None if csv && path.is_file() => FileKind::Csv,
        None if path.is_dir() => {
            let message = "a directory that is a table holds files of one kind";
            return Err(Failure::usage(format!("{}: {message}", path.display())));
        }
        None => {
            let message = "not a kind of file that is known by its extension, such as .parquet, .csv and .json";
            return Err(Failure::usage(format!(
                "{}: {message}; with --delimiter any file is CSV",
                path.display()
            )));
        }
    };
    let name = FileKind::table_name(&path);
    Ok(Table { name, path, content: Content::File(kind) })
}

/// The files that an argument names: itself, or a pattern's matches in byte order, as a shell would
/// have given them.
fn expand(argument: &Path) -> Result<Vec<PathBuf>, Failure> {
    let missing = || Failure::file(argument, io::ErrorKind::NotFound.into());
    if argument.exists() || is_address(argument) {
        return Ok(vec![argument.to_path_buf()]);
    }
    let pattern =
        argument.to_str().filter(|text| text.contains(['*', '?', '['])).ok_or_else(missing)?;
    let matches = glob::glob(pattern)
        .map_err(|error| Failure::usage(format!("{pattern}: not a pattern of files: {error}")))?;
    let mut paths: Vec<PathBuf> = matches.filter_map(Result::ok).collect();
    paths.sort();
    if paths.is_empty() { Err(missing()) } else { Ok(paths) }
}

/// The path by which standard input is read from where it is. Where that is not its begin, and
/// where it is no file or pipe, it is copied into a file without a name in any directory, so that
/// nothing is left behind however the process ends.
///
/// # Errors
/// Input that cannot be read; no room for the file.
pub fn standard_input() -> Result<PathBuf, Failure> {
    const PATH: &str = "/dev/stdin";
    let failed = |error| Failure::file(Path::new("standard input"), error);
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned().map_err(failed)?);
    let kind = input.metadata().map_err(failed)?.file_type();
    let is_whole =
        kind.is_fifo() || kind.is_file() && input.stream_position().is_ok_and(|at| at == 0);
    if is_whole && Path::new(PATH).exists() {
        return Ok(PATH.into());
    }
    let mut file = tempfile::tempfile().map_err(failed)?;
    io::copy(&mut io::stdin().lock(), &mut file).map_err(failed)?;
    Ok(PathBuf::from(format!("/dev/fd/{}", file.into_raw_fd())))
}
