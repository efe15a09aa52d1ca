//! What a user says of files before they are read; of CSV files see `csv/options.rs`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use datafusion::arrow::datatypes::TimeUnit;

/// How Parquet files are read.
///
/// ```
/// use warpframe::ParquetOptions;
/// use warpframe::arrow::datatypes::TimeUnit;
/// assert_eq!(ParquetOptions::default().coerce_int96_timestamp_unit, TimeUnit::Microsecond);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Whether there is a column `filename` with the path of the file that a row comes from. Files
    /// must have no column of that name.
    pub filename: bool,
}

impl ParquetOptions {
    pub(super) fn paths(&self) -> PathOptions {
        PathOptions { hive_partitioning: self.hive_partitioning, filename: self.filename }
    }
}

impl Default for ParquetOptions {
    fn default() -> Self {
        ParquetOptions {
            coerce_int96_timestamp_unit: TimeUnit::Microsecond,
            union_by_name: true,
            hive_partitioning: None,
            filename: false,
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JsonOptions {
    /// As [`ParquetOptions::hive_partitioning`].
    pub hive_partitioning: Option<bool>,
    /// As [`ParquetOptions::filename`].
    pub filename: bool,
}

impl JsonOptions {
    pub(super) fn paths(&self) -> PathOptions {
        PathOptions { hive_partitioning: self.hive_partitioning, filename: self.filename }
    }
}

/// How Arrow IPC files are read.
///
/// ```
/// use warpframe::IpcOptions;
/// let options = IpcOptions { filename: true, ..IpcOptions::default() };
/// assert!(options.union_by_name);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpcOptions {
    /// As [`ParquetOptions::union_by_name`].
    pub union_by_name: bool,
    /// As [`ParquetOptions::hive_partitioning`].
    pub hive_partitioning: Option<bool>,
    /// As [`ParquetOptions::filename`].
    pub filename: bool,
}

impl IpcOptions {
    pub(super) fn paths(&self) -> PathOptions {
        PathOptions { hive_partitioning: self.hive_partitioning, filename: self.filename }
    }
}

impl Default for IpcOptions {
    fn default() -> Self {
        IpcOptions { union_by_name: true, hive_partitioning: None, filename: false }
    }
}

/// Which columns paths are to make.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PathOptions {
    /// Those of `key=value` directories: where not said, if all files lie in such of the same keys.
    pub(crate) hive_partitioning: Option<bool>,
    /// That of the path itself.
    pub(crate) filename: bool,
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
    /// JSON, a row in each line or an array of them: `.ndjson`, `.jsonl`, `.json`, also compressed
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
        File::open(path)?.take(8).read_to_end(&mut begin)?;
        Ok(match begin[..] {
            [b'P', b'A', b'R', b'1', ..] => Some(FileKind::Parquet),
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Some(FileKind::Arrow),
            [0xFF, 0xFF, 0xFF, 0xFF, _, _, _, 0] => Some(FileKind::Arrow),
            _ => None,
        })
    }

    /// What a table of a file is called: the file's name without its extension.
    ///
    /// ```
    /// # use warpframe::FileKind;
    /// assert_eq!(FileKind::table_name("data/jets.csv.gz"), "jets");
    /// ```
    pub fn table_name(path: impl AsRef<Path>) -> String {
        let path = path.as_ref();
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
            "ndjson" | "jsonl" | "json" => Some(FileKind::Json),
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
