//! Directories of formats whose log says which files count: Delta Lake, Apache Hudi, Apache Iceberg.
//! Files that the log removed lie there still. No such log is read, so that the files are refused
//! where a directory or a pattern stands for them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::path_columns::is_partition;
use super::selection::Selection;
use crate::error::{ErrorKind, Result};

/// # Errors
/// [`ErrorKind::File`] of a directory with a log among those that the files of a selection lie in.
pub(super) fn refuse_logged(selection: &Selection, files: &[PathBuf]) -> Result<()> {
    for directory in directories(selection, files) {
        let Some((format, log)) = log_of(&directory) else { continue };
        let message = format!(
            "is a table of {format}: {log} says which of its files count, and is not read; a list of \
             paths names files one by one"
        );
        return Err(ErrorKind::File { path: directory, message }.into());
    }
    Ok(())
}

/// The directories that files lie in, up to the one that was named and above those of partitions;
/// none of files that are named themselves.
fn directories(selection: &Selection, files: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for file in files.iter().filter(|file| selection.below(file).is_some()) {
        let mut at = file.parent();
        while let Some(directory) = at {
            let is_here = directory.as_os_str().is_empty();
            if !found.insert(if is_here { ".".into() } else { directory.to_path_buf() }) {
                break;
            }
            let goes_on = is_partition(directory) || selection.is_above(directory);
            at = directory.parent().filter(|_| goes_on && !is_here);
        }
    }
    found
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::options::FileKind;

    #[test]
    fn logs_are_found_wherever_files_are_looked_for() {
        let directory = tempfile::tempdir().expect("a directory for tests");
        let at = |path: &str| directory.path().join(path);
        for file in [
            "delta/_delta_log/0.json",
            "delta/day=1/x.parquet",
            "hudi/.hoodie/x",
            "hudi/x.parquet",
            "ice/metadata/v1.metadata.json",
            "ice/data/day=1/x.parquet",
            "plain/metadata/x.json",
            "plain/x.parquet",
        ] {
            std::fs::create_dir_all(at(file).parent().expect("it has one")).expect("directories");
            std::fs::write(at(file), "").expect("files");
        }
        let refused = |named: &str| {
            let selection = Selection::new(at(named), FileKind::Parquet);
            let files = selection.paths().expect("there are files");
            refuse_logged(&selection, &files).err().map(|error| error.to_string())
        };
        for named in ["", "delta", "delta/day=1", "delta/*/*.parquet", "delta/day=1/*"] {
            assert!(refused(named).is_some_and(|why| why.contains("Delta Lake")), "{named}");
        }
        assert!(refused("hudi").is_some_and(|why| why.contains("Hudi")));
        for named in ["ice", "ice/data", "ice/data/*/*.parquet"] {
            assert!(refused(named).is_some_and(|why| why.contains("Iceberg")), "{named}");
        }
        for named in ["plain", "delta/day=1/x.parquet"] {
            assert_eq!(refused(named), None, "{named}");
        }
    }
}
