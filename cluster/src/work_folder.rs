//! The folder for rows between stages. Executors of one scheduler on one machine share it: they read
//! one another's files, whose names tell job, stage and task, and nothing is copied.

use std::fs::{DirBuilder, File};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Held by each executor of the folder, shared with the others.
const LOCK: &str = "in-use";

/// It goes with the last executor that uses it.
pub(crate) struct WorkFolder {
    path: PathBuf,
    lock: File,
}

impl WorkFolder {
    /// The folder of a scheduler within another one, for this user alone.
    ///
    /// # Errors
    /// Of the file system; if what has its name is somebody else's.
    pub(crate) fn open(parent: &Path, scheduler: &str) -> Result<WorkFolder> {
        let own = std::fs::metadata("/proc/self")?.uid();
        let of_name = |of: char| if of.is_ascii_alphanumeric() || of == '.' { of } else { '-' };
        let scheduler: String = scheduler.chars().map(of_name).collect();
        let path = parent.join(format!("warpframe-cluster-{own}-{scheduler}"));
        loop {
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            let found = std::fs::symlink_metadata(&path)?;
            if !found.is_dir() || found.uid() != own {
                let why = format!("{} is not a folder of this user's", path.display());
                return Err(Error::new(ErrorKind::PermissionDenied, why));
            }
            let lock = match File::options().create(true).append(true).open(path.join(LOCK)) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                lock => lock?,
            };
            // Where nobody has it, executors were killed that left files.
            if lock.try_lock().is_ok() {
                remove_files(&path)?;
                lock.unlock()?;
            }
            lock.lock_shared()?;
            // It may have gone with another executor, before it was held.
            let is_there = std::fs::metadata(path.join(LOCK)).is_ok_and(|now| {
                lock.metadata().is_ok_and(|held| (held.dev(), held.ino()) == (now.dev(), now.ino()))
            });
            if is_there {
                return Ok(WorkFolder { path, lock });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn remove_files(folder: &Path) -> Result<()> {
    for entry in folder.read_dir()? {
        let entry = entry?;
        if entry.file_name() == LOCK {
            continue;
        }
        match entry.file_type()?.is_dir() {
            true => std::fs::remove_dir_all(entry.path())?,
            false => std::fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        let is_last = self.lock.unlock().is_ok() && self.lock.try_lock().is_ok();
        if is_last && let Err(error) = std::fs::remove_dir_all(&self.path) {
            log::warn!("{}: {error}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn executors_of_one_scheduler_share_a_folder_that_goes_with_the_last() {
        let parent = TempDir::new().expect("a folder");
        let open = |scheduler: &str| WorkFolder::open(parent.path(), scheduler).expect("a folder");
        let (one, two, other) = (open("h:50050"), open("h:50050"), open("h:50060"));
        assert!(one.path() == two.path() && one.path() != other.path());
        let (path, file) = (one.path().to_path_buf(), one.path().join("job"));
        std::fs::write(&file, "rows").expect("a file");
        drop(one);
        assert!(file.exists(), "another executor reads it");
        drop(two);
        assert!(!path.exists() && other.path().exists());
    }

    #[test]
    fn files_of_killed_executors_go() {
        let parent = TempDir::new().expect("a folder");
        let killed = WorkFolder::open(parent.path(), "../h").expect("a folder");
        let path = killed.path().to_path_buf();
        assert_eq!(path.parent(), Some(parent.path()));
        std::fs::create_dir_all(path.join("job/1")).expect("a folder");
        // What a killed process holds is let go.
        killed.lock.unlock().expect("a lock");
        std::mem::forget(killed);
        let again = WorkFolder::open(parent.path(), "../h").expect("a folder");
        assert!(again.path() == path && !path.join("job").exists());
        drop(again);
        std::os::unix::fs::symlink("/", &path).expect("a link");
        assert!(WorkFolder::open(parent.path(), "../h").is_err());
    }
}
