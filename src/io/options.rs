//! What a user says of files before they are read; of CSV files see `csv/options.rs`.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;

use datafusion::arrow::datatypes::{DataType, TimeUnit};

use super::spool;
use super::table_log::has_log;
use crate::error::ErrorKind;

/// How Parquet files are read.
///
/// ```
/// use warpframe::ParquetOptions;
/// use warpframe::arrow::datatypes::TimeUnit;
/// assert_eq!(ParquetOptions::default().coerce_int96_timestamp_unit, TimeUnit::Microsecond);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParquetOptions {
    /// The unit of timestamps whose physical type is INT96, which Spark, Hive and Impala write or
    /// wrote. Microseconds reach further than any of these; nanoseconds keep all digits, but of the
    /// years from 1678 to 2261 alone: others are an error.
    pub coerce_int96_timestamp_unit: TimeUnit,
    /// Whether files of one table may have other columns, which are found by name: a column that a
    /// file lacks is NULL there, and types widen where that loses nothing. Otherwise all files have
    /// the same columns in the same order.
    pub union_by_name: bool,
    /// Whether directories named `key=value` make columns: where not said, if all files of a table
    /// lie in such of the same keys.
    pub hive_partitioning: Option<bool>,
    /// Types of columns that such directories make, by name. Without a type, one follows from the
    /// values.
    ///
    /// ```
    /// use warpframe::ParquetOptions;
    /// use warpframe::arrow::datatypes::DataType;
    /// let hive_types = vec![("zip".to_string(), DataType::Utf8View)];
    /// let options = ParquetOptions { hive_types, ..ParquetOptions::default() };
    /// ```
    pub hive_types: Vec<(String, DataType)>,
    /// Whether such columns are integers and dates where all of their values are; otherwise they are
    /// texts, but for those with a type.
    pub hive_types_autocast: bool,
    /// Whether there is a column `filename` with the path of the file that a row comes from. Files
    /// must have no column of that name.
    pub filename: bool,
    /// Whether files that cannot be read are left out, where others can
    /// ([`crate::Session::take_file_notes`]): those that are no Parquet, and whose footer is damaged.
    /// Damaged rows are errors all the same.
    pub ignore_errors: bool,
}

impl ParquetOptions {
    pub(super) fn paths(&self) -> PathOptions {
        PathOptions {
            hive_partitioning: self.hive_partitioning,
            hive_types: self.hive_types.clone(),
            hive_types_autocast: self.hive_types_autocast,
            filename: self.filename,
        }
    }
}

impl Default for ParquetOptions {
    fn default() -> Self {
        ParquetOptions {
            coerce_int96_timestamp_unit: TimeUnit::Microsecond,
            union_by_name: true,
            hive_partitioning: None,
            hive_types: vec![],
            hive_types_autocast: true,
            filename: false,
            ignore_errors: false,
        }
    }
}

/// How JSON files are read.
///
/// ```
/// use warpframe::JsonOptions;
/// let options = JsonOptions { filename: true, ..JsonOptions::default() };
/// assert_eq!(options.hive_partitioning, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonOptions {
    /// Names and types of all columns: nothing is inferred. Values are what `CAST` makes of their
    /// texts, a value that it refuses is an error, and fields of other names are left out. Without a
    /// type, a column has the text of each value's JSON.
    ///
    /// ```
    /// use warpframe::JsonOptions;
    /// use warpframe::arrow::datatypes::DataType;
    /// let columns = vec![("id".to_string(), Some(DataType::Int32)), ("payload".to_string(), None)];
    /// let options = JsonOptions { columns: Some(columns), ..JsonOptions::default() };
    /// ```
    pub columns: Option<Vec<(String, Option<DataType>)>>,
    /// Whether each value is a row, also where a file begins with an array. Otherwise the rows of
    /// such a file are the array's elements.
    pub lines: bool,
    /// Whether rows are not taken apart: the one column `json` has the text of each.
    pub objects: bool,
    /// Whether lines that are no JSON are left out of files whose rows stand in lines, as the first
    /// one or [`JsonOptions::lines`] tells, and other files that are no JSON as a whole, where another
    /// one is not; and a value that does not fit the type in `columns` is NULL. Otherwise all of
    /// these are errors.
    pub ignore_errors: bool,
    /// As [`ParquetOptions::hive_partitioning`].
    pub hive_partitioning: Option<bool>,
    /// As [`ParquetOptions::hive_types`].
    pub hive_types: Vec<(String, DataType)>,
    /// As [`ParquetOptions::hive_types_autocast`].
    pub hive_types_autocast: bool,
    /// As [`ParquetOptions::filename`].
    pub filename: bool,
}

impl Default for JsonOptions {
    fn default() -> Self {
        JsonOptions {
            columns: None,
            lines: false,
            objects: false,
            ignore_errors: false,
            hive_partitioning: None,
            hive_types: vec![],
            hive_types_autocast: true,
            filename: false,
        }
    }
}

impl JsonOptions {
    pub(super) fn paths(&self) -> PathOptions {
        PathOptions {
            hive_partitioning: self.hive_partitioning,
            hive_types: self.hive_types.clone(),
            hive_types_autocast: self.hive_types_autocast,
            filename: self.filename,
        }
    }
}

/// How Arrow IPC files are read.
///
/// ```
/// use warpframe::IpcOptions;
/// let options = IpcOptions { filename: true, ..IpcOptions::default() };
/// assert!(options.union_by_name);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpcOptions {
    /// As [`ParquetOptions::union_by_name`].
    pub union_by_name: bool,
    /// As [`ParquetOptions::hive_partitioning`].
    pub hive_partitioning: Option<bool>,
    /// As [`ParquetOptions::hive_types`].
    pub hive_types: Vec<(String, DataType)>,
    /// As [`ParquetOptions::hive_types_autocast`].
    pub hive_types_autocast: bool,
    /// As [`ParquetOptions::filename`].
    pub filename: bool,
    /// As [`ParquetOptions::ignore_errors`].
    pub ignore_errors: bool,
}

impl IpcOptions {
    pub(super) fn paths(&self) -> PathOptions {
        PathOptions {
            hive_partitioning: self.hive_partitioning,
            hive_types: self.hive_types.clone(),
            hive_types_autocast: self.hive_types_autocast,
            filename: self.filename,
        }
    }
}

impl Default for IpcOptions {
    fn default() -> Self {
        IpcOptions {
            union_by_name: true,
            hive_partitioning: None,
            hive_types: vec![],
            hive_types_autocast: true,
            filename: false,
            ignore_errors: false,
        }
    }
}

/// Which columns paths are to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathOptions {
    /// Those of `key=value` directories: where not said, if all files lie in such of the same keys.
    pub(crate) hive_partitioning: Option<bool>,
    /// Types of those that were given.
    pub(crate) hive_types: Vec<(String, DataType)>,
    /// Whether the others are integers and dates where their values are.
    pub(crate) hive_types_autocast: bool,
    /// That of the path itself.
    pub(crate) filename: bool,
}

impl Default for PathOptions {
    fn default() -> Self {
        ParquetOptions::default().paths()
    }
}

/// What a file holds, by its name.
///
/// ```
/// use warpframe::FileKind;
/// assert_eq!(FileKind::of("prices.tsv"), Some(FileKind::Csv));
/// assert_eq!(FileKind::of("parts/*.parquet"), Some(FileKind::Parquet));
/// assert_eq!(FileKind::of("README.md"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FileKind {
    /// `.parquet`, `.parq`, `.pq`
    Parquet,
    /// `.csv`, `.tsv`, `.tab`, `.psv`, `.txt`, also compressed: `.csv.gz`, `.csv.zst`, `.csv.bz2`,
    /// `.csv.xz`
    Csv,
    /// JSON, a row in each line or an array of them: `.ndjson`, `.jsonl`, `.json`, `.geojson`, also
    /// compressed
    Json,
    /// Arrow's IPC files and streams: `.arrow`, `.arrows`, `.feather`, `.ipc`
    Arrow,
}

impl FileKind {
    /// The kind of a file, or of the files that a pattern matches, by the extension. A directory is
    /// of the kind of its files, if they are of one; where it has only directories, of that of
    /// theirs.
    ///
    /// ```
    /// # use warpframe::FileKind;
    /// assert_eq!(FileKind::of("data/tpch"), Some(FileKind::Parquet));
    /// ```
    pub fn of(path: impl AsRef<Path>) -> Option<FileKind> {
        let path = path.as_ref();
        if !path.is_dir() {
            return FileKind::of_extension(path);
        }
        // What lies beside its data tells nothing of it.
        if has_log(path) {
            return Some(FileKind::Parquet);
        }
        let (mut level, mut kinds) = (vec![path.to_path_buf()], vec![]);
        while kinds.is_empty() && !level.is_empty() {
            let mut below = vec![];
            for directory in level {
                for entry in std::fs::read_dir(directory).ok()?.flatten() {
                    // Links are not followed: one may lead to where it lies in.
                    match entry.file_type().is_ok_and(|of| of.is_dir()) {
                        true if !is_hidden(&entry.file_name()) => below.push(entry.path()),
                        true => {}
                        false => kinds.extend(FileKind::in_folder(&entry.path())),
                    }
                }
            }
            level = below;
        }
        kinds.sort();
        kinds.dedup();
        match kinds[..] {
            [kind] => Some(kind),
            _ => None,
        }
    }

    /// The kind of a file that tells it by its first bytes, as Parquet and Arrow do.
    ///
    /// # Errors
    /// A file that cannot be read.
    ///
    /// ```
    /// # use warpframe::FileKind;
    /// assert_eq!(FileKind::of_content("data/tpch/nation.parquet")?, Some(FileKind::Parquet));
    /// assert_eq!(FileKind::of_content("data/jets.csv")?, None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn of_content(path: impl AsRef<Path>) -> std::io::Result<Option<FileKind>> {
        let mut begin = vec![];
        let file = spool::open(path.as_ref()).map_err(|error| match error.kind() {
            ErrorKind::Io { source, .. } => std::io::Error::new(source.kind(), source.to_string()),
            _ => std::io::Error::other(error),
        })?;
        file.take(8).read_to_end(&mut begin)?;
        Ok(match begin[..] {
            [b'P', b'A', b'R', b'1', ..] => Some(FileKind::Parquet),
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Some(FileKind::Arrow),
            [0xFF, 0xFF, 0xFF, 0xFF, _, _, _, 0] => Some(FileKind::Arrow),
            _ => None,
        })
    }

    /// What a table of a file is called: the file's name without its extension; `fd63` of
    /// `/dev/fd/63`.
    ///
    /// ```
    /// # use warpframe::FileKind;
    /// assert_eq!(FileKind::table_name("data/jets.csv.gz"), "jets");
    /// ```
    pub fn table_name(path: impl AsRef<Path>) -> String {
        let path = path.as_ref();
        let is_open_file =
            path.parent().is_some_and(|of| of == Path::new("/dev/fd") || of.ends_with("self/fd"));
        if let Some(number) = path.file_name().filter(|_| is_open_file) {
            return format!("fd{}", number.to_string_lossy());
        }
        without_codec(path)
            .file_stem()
            .map_or(path.to_string_lossy(), |stem| stem.to_string_lossy())
            .into_owned()
    }

    /// The kind of a file by its extension alone.
    pub(crate) fn of_extension(path: &Path) -> Option<FileKind> {
        let unpacked = without_codec(path);
        match unpacked.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "parquet" | "parq" | "pq" if unpacked == path => Some(FileKind::Parquet),
            "csv" | "tsv" | "tab" | "psv" | "txt" => Some(FileKind::Csv),
            "ndjson" | "jsonl" | "json" | "geojson" => Some(FileKind::Json),
            "arrow" | "arrows" | "feather" | "ipc" if unpacked == path => Some(FileKind::Arrow),
            _ => None,
        }
    }

    /// The kind of a file as a part of the table that its directory is. Notes lie beside data, and
    /// end in `.txt`.
    pub(crate) fn in_folder(path: &Path) -> Option<FileKind> {
        let is_text = without_codec(path)
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("txt"));
        FileKind::of_extension(path).filter(|_| !is_text && path.is_file())
    }
}

/// A file's name without the extension of what compresses it, if it has such a one.
pub(crate) fn without_codec(path: &Path) -> &Path {
    let codecs = ["gz", "zst", "bz2", "xz"];
    let is_codec =
        |extension: &OsStr| codecs.iter().any(|codec| extension.eq_ignore_ascii_case(codec));
    match (path.extension().is_some_and(is_codec), path.file_stem()) {
        (true, Some(stem)) => Path::new(stem),
        _ => path,
    }
}

/// Whether an entry of a directory is left out, by its name.
pub(super) fn is_hidden(name: &OsStr) -> bool {
    matches!(name.as_encoded_bytes().first(), Some(b'.' | b'_'))
}
