//! How folders of files are written: what files are called, and what becomes of those that are
//! there.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::Path;

use super::{IpcLayout, TextCodec, Unfinished, WriteFormat};
use crate::error::{Error, ErrorKind, Result};
use crate::io::path_columns::TEXT_KEYS;

/// How folders of files are written.
///
/// ```
/// # use warpframe::prelude::*;
/// # use warpframe::{ExistingFiles, FolderWriteOptions, ParquetWriteOptions, WriteFormat};
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// # let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("years");
/// let rows = session.sql("SELECT * FROM (VALUES (2024, 'a'), (2025, 'b')) t(year, s)")?.collect()?;
/// let options = FolderWriteOptions { existing: ExistingFiles::Append, ..Default::default() };
/// for _ in 0..2 {
///     let format = WriteFormat::Parquet(ParquetWriteOptions::default());
///     rows.write_partitioned_with(&path, &["year"], &format, &options)?;
/// }
/// assert_eq!(session.read_parquet(&path)?.num_rows(), 4);
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FolderWriteOptions {
    /// What becomes of files that are there.
    pub existing: ExistingFiles,
    /// What files are called, without their extension. `{i}` is the file's number in its folder,
    /// which follows a name without both of these, and `{uuid}` (`{uuidv4}`) a random UUID. `None`
    /// is `data`, with numbers where a folder may have several files, and `{uuid}` where files are
    /// put beside others.
    pub filename_pattern: Option<String>,
    /// What files' names end in; `None` is what the format's do.
    pub file_extension: Option<String>,
    /// Whether the columns that name folders are in the files, too.
    pub write_keys: bool,
    /// About how many rows a file has; `None` is all of a folder.
    pub rows_per_file: Option<usize>,
}

/// What becomes of files that are in a folder before others are written there.
///
/// ```
/// assert_eq!(warpframe::ExistingFiles::default(), warpframe::ExistingFiles::Refuse);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExistingFiles {
    /// Nothing is written where there are any.
    #[default]
    Refuse,
    /// All that is in the folder is removed.
    Overwrite,
    /// They stay, except those of the names that are written.
    OverwriteOrIgnore,
    /// They stay: files have names that no other has.
    Append,
}

impl FolderWriteOptions {
    /// # Errors
    /// Names that are those of no file, or would be those of files that are there.
    pub(super) fn check(&self) -> Result<()> {
        let refused = |message: String| Err(ErrorKind::Plan { message, location: None }.into());
        for (of, name) in
            [("filename_pattern", &self.filename_pattern), ("file_extension", &self.file_extension)]
        {
            if let Some(name) = name
                && (name.is_empty() || name.contains(['/', '\0']))
            {
                return refused(format!("{of}: {name:?} is no part of a file's name"));
            }
        }
        match &self.filename_pattern {
            Some(pattern) if self.existing == ExistingFiles::Append && !has_uuid(pattern) => {
                refused(format!(
                    "filename_pattern: {pattern:?} has no {{uuid}}, which tells files that are \
                     put beside others apart"
                ))
            }
            _ => Ok(()),
        }
    }

    /// What a file of a folder is called.
    pub(super) fn file_name(&self, format: &WriteFormat, number: usize) -> String {
        let pattern = match &self.filename_pattern {
            Some(pattern) => pattern.as_str(),
            None if self.existing == ExistingFiles::Append => "{uuid}",
            None if self.rows_per_file.is_some() => "data_{i}",
            None => "data",
        };
        let numbered = self.filename_pattern.is_some() && !pattern.contains("{i}");
        let more = if numbered && !has_uuid(pattern) { number.to_string() } else { String::new() };
        let mut name = pattern.replace("{i}", &number.to_string());
        for label in UUIDS {
            if name.contains(label) {
                name = name.replace(label, &uuid());
            }
        }
        let extension = self.file_extension.clone().unwrap_or_else(|| extension(format));
        format!("{name}{more}.{extension}")
    }

    /// Whether rows may go into a directory.
    ///
    /// # Errors
    /// A directory that is not empty, where the options say nothing of it; what is no directory.
    pub(super) fn look_at(&self, directory: &Path) -> Result<()> {
        let of = |message: &str| {
            Err(ErrorKind::File { path: directory.into(), message: message.into() }.into())
        };
        match fs::read_dir(directory).map(|mut entries| entries.next().is_some()) {
            Ok(true) if self.existing == ExistingFiles::Refuse => {
                of("is a directory that is not empty: OVERWRITE removes what is there, \
                 OVERWRITE_OR_IGNORE and APPEND leave it")
            }
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::io(directory, error)),
        }
    }

    /// Puts what was written beside a directory into its place.
    pub(super) fn put_in_place(&self, written: Unfinished) -> io::Result<()> {
        let target = written.target().to_path_buf();
        match self.existing {
            _ if !target.exists() => written.take_place(),
            ExistingFiles::Refuse => written.take_place(),
            ExistingFiles::Overwrite => {
                // Removed when it is dropped.
                let before = Unfinished::of(&target)?;
                fs::rename(&target, before.path())?;
                let placed = written.take_place();
                if placed.is_err() {
                    fs::rename(before.path(), &target)?;
                }
                placed
            }
            ExistingFiles::OverwriteOrIgnore | ExistingFiles::Append => {
                join_text_keys(written.path(), &target)?;
                move_into(written.path(), &target)
            }
        }
    }
}

/// A random UUID in a file's name.
const UUIDS: [&str; 2] = ["{uuid}", "{uuidv4}"];

fn has_uuid(pattern: &str) -> bool {
    UUIDS.iter().any(|label| pattern.contains(label))
}

/// A random UUID of version 4.
fn uuid() -> String {
    // Each has keys of its own, of the system's random bytes.
    let [high, low] = [0, 1].map(|half: u8| RandomState::new().hash_one(half));
    let (high, low) = (high & !0xF000 | 0x4000, low & !(0b11 << 62) | (0b10 << 62));
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xFFFF,
        high & 0xFFFF,
        low >> 48,
        low & 0xFFFF_FFFF_FFFF
    )
}

/// What files of a format end in.
fn extension(format: &WriteFormat) -> String {
    let packed = |extension: &str, codec: TextCodec| format!("{extension}{}", codec.suffix());
    match format {
        WriteFormat::Csv(options) if options.delimiter == b'\t' => {
            packed("tsv", options.compression)
        }
        WriteFormat::Csv(options) => packed("csv", options.compression),
        WriteFormat::Parquet(_) => "parquet".into(),
        WriteFormat::Json(options) if options.array => packed("json", options.compression),
        WriteFormat::Json(options) => packed("ndjson", options.compression),
        WriteFormat::Ipc(options) if options.layout == IpcLayout::Stream => "arrows".into(),
        WriteFormat::Ipc(_) => "arrow".into(),
    }
}

/// Adds the keys that are texts in a directory to those that are in another one.
fn join_text_keys(own: &Path, others: &Path) -> io::Result<()> {
    let read = |folder: &Path| match fs::read_to_string(folder.join(TEXT_KEYS)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read,
    };
    let texts = [read(own)?, read(others)?];
    let lines: BTreeSet<&str> = texts.iter().flat_map(|text| text.lines()).collect();
    match lines.is_empty() {
        true => Ok(()),
        false => {
            let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
            fs::write(own.join(TEXT_KEYS), lines)
        }
    }
}

/// Moves the files of a directory, and of those below it, into another one.
fn move_into(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type()?.is_dir() {
            true => move_into(&from, &to)?,
            false => fs::rename(&from, &to)?,
        }
    }
    Ok(())
}
