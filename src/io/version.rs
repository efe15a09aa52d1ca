//! Versions: which state of its files a table was read in.
//!
//! A table's columns are read when queries ask for them, and stay in device memory. All columns
//! that lie side by side must be of one state of the files. A [`Version`] tells whether the files
//! are still those that were read.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::selection::Selection;
use super::spool;
use crate::error::Result;

/// The files that a selection names, and what the system says of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    files: Vec<(PathBuf, Stamp)>,
    /// The directories in which files may come or go.
    folders: Vec<(PathBuf, Stamp)>,
    /// Whether no file comes or goes while the entries of these stay.
    is_watched: bool,
}

/// What the system says of a file. Whoever writes to the file, or puts another in its place,
/// changes some of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    /// Nanoseconds since 1970.
    modified: i128,
    /// The last change of the file's entry, which nobody can set, in nanoseconds since 1970.
    changed: i128,
    device: u64,
    inode: u64,
}

/// Time stamps may be as coarse as this: the slowest tick of Linux is 10 ms.
const TICK: Duration = Duration::from_millis(12);
/// Time stamps of whole seconds may be as coarse as this; FAT's are even seconds.
const COARSE_TICK: Duration = Duration::from_millis(2_010);

impl Stamp {
    fn of(path: &Path) -> Result<Stamp> {
        let metadata = spool::metadata(path)?;
        let modified = metadata.modified().map_or(0, since_1970);
        let stamp =
            Stamp { bytes: metadata.len(), modified, changed: modified, device: 0, inode: 0 };
        #[cfg(unix)]
        let stamp = {
            use std::os::unix::fs::MetadataExt;
            let changed =
                i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec());
            Stamp { changed, device: metadata.dev(), inode: metadata.ino(), ..stamp }
        };
        Ok(stamp)
    }

    /// How long to wait until a later write is certain to leave another stamp.
    fn settles_in(&self, now: i128) -> Duration {
        let last = self.modified.max(self.changed);
        let tick = if last % 1_000_000_000 == 0 { COARSE_TICK } else { TICK };
        // A stamp of the future comes from another clock, for which waiting is of no use.
        match u64::try_from(now - last) {
            Ok(age) => tick.saturating_sub(Duration::from_nanos(age)),
            Err(_) => Duration::ZERO,
        }
    }
}

fn since_1970(time: SystemTime) -> i128 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_nanos() as i128,
        Err(before) => -(before.duration().as_nanos() as i128),
    }
}

impl Version {
    /// The present version of a selection's files.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`] where no file is selected, and for a file that is not there.
    pub(crate) fn of(selection: &Selection) -> Result<Version> {
        let mut folders = vec![];
        // A folder first, then its entries: one that comes meanwhile makes the stamp an old one.
        let listing = selection.list(&mut |folder| {
            folders.push((folder.to_path_buf(), Stamp::of(folder)?));
            Ok(())
        })?;
        let stamped = |path: PathBuf| Stamp::of(&path).map(|stamp| (path, stamp));
        let files = listing.files.into_iter().map(stamped).collect::<Result<_>>()?;
        Ok(Version { files, folders, is_watched: listing.is_watched })
    }

    /// Whether the selection's files are still in this version. It costs one call of the system a
    /// file; where files are picked by a pattern of directories, those are listed.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`] of a file that is no longer there.
    pub(crate) fn is_current(&self, selection: &Selection) -> Result<bool> {
        // A directory that is gone may have had no file.
        let same =
            |(folder, stamp): &(PathBuf, Stamp)| Stamp::of(folder).is_ok_and(|now| now == *stamp);
        let listed = self.is_watched && self.folders.iter().all(same);
        if !listed && !selection.paths()?.iter().eq(self.paths()) {
            return Ok(false);
        }
        for (path, stamp) in &self.files {
            if Stamp::of(path)? != *stamp {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The files, in the order of their rows.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.iter().map(|(path, _)| path)
    }

    /// How long to wait before reading, so that a write while or after the files are read is
    /// certain to make another version.
    pub(crate) fn settles_in(&self) -> Duration {
        let now = since_1970(SystemTime::now());
        let stamps = self.files.iter().chain(&self.folders).map(|(_, stamp)| stamp.settles_in(now));
        stamps.max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::FileKind;

    fn versions(directory: &Path, named: &str) -> (Selection, Version) {
        let selection = Selection::new(directory.join(named), FileKind::Csv);
        let version = Version::of(&selection).expect("the files are there");
        std::thread::sleep(version.settles_in());
        (selection, version)
    }

    #[test]
    fn every_change_of_a_file_is_another_version() {
        let directory = tempfile::tempdir().expect("a directory for tests");
        let path = directory.path().join("t.csv");
        let write = |text: &str| std::fs::write(&path, text).expect("the file can be written");
        write("a\n1\n");
        let changes: [(&str, &dyn Fn()); 4] = [
            ("longer", &|| write("a\n1\n2\n")),
            ("of one length, in place", &|| write("a\n7\n8\n")),
            ("of one length and time, in place", &|| {
                let time = path.metadata().and_then(|of| of.modified()).expect("files have times");
                write("a\n3\n4\n");
                let file = std::fs::File::options().write(true).open(&path).expect("it is there");
                file.set_modified(time).expect("the times are ours to set");
            }),
            ("another file", &|| {
                let other = directory.path().join("other");
                std::fs::write(&other, "a\n5\n6\n").expect("the file can be written");
                std::fs::rename(&other, &path).expect("both are there");
            }),
        ];
        for (what, change) in changes {
            let (selection, version) = versions(directory.path(), "t.csv");
            assert!(version.is_current(&selection).expect("it is there"), "{what}");
            change();
            assert!(!version.is_current(&selection).expect("it is there"), "{what}");
        }
        let (selection, version) = versions(directory.path(), "t.csv");
        std::fs::remove_file(&path).expect("it was there");
        assert!(version.is_current(&selection).is_err());
    }

    #[test]
    fn files_that_come_and_go_are_another_version() {
        let directory = tempfile::tempdir().expect("a directory for tests");
        let write = |name: &str| {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it has one"))
                .expect("directories can be made");
            std::fs::write(path, "a\n1\n").expect("the file can be written");
        };
        write("d/1.csv");
        write("e/x/1.csv");
        for (named, more, other) in [
            ("d", "d/2.csv", "d/notes"),
            ("d/[1-9].csv", "d/3.csv", "d/a.csv"),
            ("e/*/*.csv", "e/y/2.csv", "e/z.csv"),
            ("e", "e/x/2.csv", "e/x/_2.csv"),
            ("e", "e/new/deep/2.csv", "e/.new/2.csv"),
        ] {
            let (selection, version) = versions(directory.path(), named);
            write(other);
            assert!(version.is_current(&selection).expect("all are there"), "{named}");
            write(more);
            assert!(!version.is_current(&selection).expect("all are there"), "{named}");
            let (selection, version) = versions(directory.path(), named);
            std::fs::remove_file(directory.path().join(more)).expect("it was there");
            assert!(!version.is_current(&selection).expect("another is there"), "{named}");
        }
    }

    #[test]
    fn a_stamp_of_the_future_is_not_waited_for() {
        let stamp = Stamp { bytes: 1, modified: 5_000_000_001, changed: 0, device: 0, inode: 0 };
        assert_eq!(stamp.settles_in(0), Duration::ZERO);
        assert_eq!(stamp.settles_in(5_000_000_001), TICK);
        assert_eq!(stamp.settles_in(6_000_000_001), Duration::ZERO);
        let coarse = Stamp { modified: 5_000_000_000, ..stamp }.settles_in(6_000_000_000);
        assert_eq!(coarse, COARSE_TICK - Duration::from_secs(1));
    }
}
