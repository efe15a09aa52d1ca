//! Which tables the files of the command line become, and how CSV files are laid out.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::IntoRawFd;
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
    /// On standard input: Parquet and Arrow tell what they are, all else is CSV.
    StandardInput,
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
    if argument.exists() {
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

/// Copies standard input into a file, since it can be read only once and from its begin to its end:
/// the path by which this process can open the file. The file has no name in any directory, so that
/// nothing is left behind however the process ends.
pub fn standard_input() -> Result<PathBuf, Failure> {
    let failed = |error| Failure::file(Path::new("standard input"), error);
    let mut file = tempfile::tempfile().map_err(failed)?;
    io::copy(&mut io::stdin().lock(), &mut file).map_err(failed)?;
    Ok(PathBuf::from(format!("/dev/fd/{}", file.into_raw_fd())))
}
