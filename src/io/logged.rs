//! Files in directories of formats whose log says which of them count (`table_log.rs`): they are
//! refused where a directory or a pattern stands for them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::path_columns::is_partition;
use super::selection::Selection;
use super::table_log::refuse_log_of;
use crate::error::Result;

/// # Errors
/// [`crate::ErrorKind::File`] of a directory with a log among those that the files of a selection
/// lie in.
pub(super) fn refuse_logged(selection: &Selection, files: &[PathBuf]) -> Result<()> {
    for directory in directories(selection, files) {
        refuse_log_of(&directory)?;
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
