//! Directories of formats whose log says which files count: Delta Lake, Apache Hudi, Apache Iceberg.
//! Files that the log removed lie there still. No such log is read yet.

use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

/// # Errors
/// [`ErrorKind::File`] of a directory that is a table of such a format, whatever lies in it.
pub(super) fn refuse_log_of(directory: &Path) -> Result<()> {
    match log_of(directory) {
        Some(found) => Err(refused(directory.into(), found)),
        None => Ok(()),
    }
}

/// Whether a directory is a table of such a format.
pub(super) fn has_log(directory: &Path) -> bool {
    log_of(directory).is_some()
}

fn refused(directory: PathBuf, (format, log): (&str, &str)) -> Error {
    let message = format!(
        "is a table of {format}: {log} says which of its files count, and is not read yet; a list \
         of paths names files one by one"
    );
    ErrorKind::File { path: directory, message }.into()
}

/// The format of a directory, and where its log is.
fn log_of(directory: &Path) -> Option<(&'static str, &'static str)> {
    if directory.join("_delta_log").is_dir() {
        return Some(("Delta Lake", "_delta_log"));
    }
    if directory.join(".hoodie").is_dir() {
        return Some(("Apache Hudi", ".hoodie"));
    }
    // The data of such a table lies beside its metadata.
    let of_data = directory.parent().filter(|_| directory.ends_with("data"));
    let has_metadata = |table: &Path| {
        let entries = std::fs::read_dir(table.join("metadata")).into_iter().flatten().flatten();
        entries
            .into_iter()
            .any(|entry| entry.file_name().as_encoded_bytes().ends_with(b".metadata.json"))
    };
    let is_iceberg = has_metadata(directory) || of_data.is_some_and(has_metadata);
    is_iceberg.then_some(("Apache Iceberg", "metadata"))
}
