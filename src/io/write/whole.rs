//! Files and folders that are made beside others, and take their places when they are whole.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::{Mutex, MutexGuard};

use crate::error::{Error, Result};
use crate::io::refuse_address;

/// What this process makes now. Whoever ends it without unwinding removes that.
static BEGUN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn begun() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    // Nothing panics between two changes of it.
    BEGUN.lock()
}

/// A path beside another one, at which nobody else writes. What is there when this is dropped is
/// removed.
#[derive(Debug)]
pub(super) struct Unfinished {
    path: PathBuf,
    target: PathBuf,
}

impl Unfinished {
    /// One that is to take the place of what a path leads to, through links.
    pub(super) fn of(path: &Path) -> io::Result<Unfinished> {
        // The process may go to another folder meanwhile.
        let target = std::path::absolute(linked(path)?)?;
        let path = beside(&target)?;
        begun().insert(path.clone());
        Ok(Unfinished { path, target })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The other one.
    pub(super) fn target(&self) -> &Path {
        &self.target
    }

    /// What is there takes the other's place.
    pub(super) fn take_place(self) -> io::Result<()> {
        fs::rename(&self.path, &self.target)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        remove(&self.path);
        begun().remove(&self.path);
    }
}

fn remove(path: &Path) {
    // It may be nothing yet, or have taken its place.
    let _ = match path.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
}

/// A path beside another one, at which nobody else writes.
fn beside(target: &Path) -> io::Result<PathBuf> {
    /// Bytes that file systems take for a name.
    const MOST: usize = 255;
    /// Tells writers of one path apart.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let end = format!(".{}.{}.partial", std::process::id(), NUMBER.fetch_add(1, Relaxed));
    let cut = name.floor_char_boundary(MOST.saturating_sub(end.len()));
    Ok(target.with_file_name(format!("{}{end}", &name[..cut])))
}

/// The file that a path leads to, through links, whether it is there or not.
///
/// # Errors
/// Links in a circle; a folder that is not to be looked at.
fn linked(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_path_buf();
    match path.metadata() {
        // The system follows the links, too, and finds their circles: these ones end.
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    while let Ok(to) = fs::read_link(&target) {
        target = target.parent().map_or(to.clone(), |parent| parent.join(&to));
    }
    Ok(target)
}

/// A file that takes the place of another one when it is finished, and leaves that as it was where
/// it is dropped before. Until then it is written beside the other one, which may be read meanwhile.
/// A link is followed; a file that was there hands on its permissions. A pipe or a terminal is
/// written to at once.
///
/// ```
/// use std::io::Write as _;
/// use warpframe::WholeFile;
/// # let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("t.txt");
/// std::fs::write(&path, "before").unwrap();
/// let mut file = WholeFile::create(&path)?;
/// file.write_all(b"half").unwrap();
/// drop(file);
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
///
/// let mut file = WholeFile::create(&path)?;
/// file.write_all(b"whole").unwrap();
/// file.finish()?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "whole");
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug)]
pub struct WholeFile {
    /// As it was named.
    path: PathBuf,
    file: BufWriter<File>,
    /// Bytes that were taken.
    len: u64,
    /// `None` of what is no file.
    partial: Option<Unfinished>,
}

/// Bytes that wait to be written together.
const BUFFER: usize = 1 << 20;

impl WholeFile {
    /// Begins a file.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`]: a path that leads to a folder, in a circle of links, or to where
    /// nothing can be written.
    pub fn create(path: impl AsRef<Path>) -> Result<WholeFile> {
        let path = path.as_ref();
        refuse_address(path)?;
        let io = |error| Error::io(path, error);
        let before = path.metadata().ok();
        let (file, partial) = match &before {
            Some(before) if !before.is_file() => (File::create(path).map_err(io)?, None),
            _ => {
                let partial = Unfinished::of(path).map_err(io)?;
                let file = File::create(partial.path()).map_err(|error| of_folder(path, error))?;
                (file, Some(partial))
            }
        };
        if let (Some(before), Some(_)) = (&before, &partial) {
            file.set_permissions(before.permissions()).map_err(io)?;
        }
        let file = BufWriter::with_capacity(BUFFER, file);
        Ok(WholeFile { path: path.into(), file, len: 0, partial })
    }

    /// The path that it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that were written.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes back what was written behind so many bytes, as where the rest of it failed. What a
    /// pipe or a terminal got stays there.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`].
    pub fn back_to(&mut self, len: u64) -> Result<()> {
        if self.partial.is_none() || len >= self.len {
            return Ok(());
        }
        let mut again = || {
            let copy = BufWriter::with_capacity(BUFFER, self.file.get_ref().try_clone()?);
            let (mut file, waiting) = std::mem::replace(&mut self.file, copy).into_parts();
            let written = file.stream_position()?;
            let waiting = waiting.unwrap_or_default();
            file.set_len(len.min(written))?;
            file.seek(SeekFrom::End(0))?;
            let kept = usize::try_from(len.saturating_sub(written)).unwrap_or(0);
            self.file.write_all(&waiting[..kept.min(waiting.len())])
        };
        again().map_err(|error| Error::io(&self.path, error))?;
        self.len = len;
        Ok(())
    }

    /// Puts the file into its place.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`]; what was there before is there then.
    pub fn finish(mut self) -> Result<()> {
        let io = |error| Error::io(&self.path, error);
        self.file.flush().map_err(io)?;
        self.partial.take().map_or(Ok(()), Unfinished::take_place).map_err(io)
    }

    /// Removes what this process has not finished: files of its threads, and folders. For a process
    /// that is about to end, at a signal's word; what still writes fails.
    pub fn remove_unfinished() {
        begun().iter().for_each(|path| remove(path));
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.len += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// An error of beginning a file: what is not there is its folder.
fn of_folder(path: &Path, error: io::Error) -> Error {
    match error.kind() {
        kind @ io::ErrorKind::NotFound => {
            Error::io(path, io::Error::new(kind, "there is no such folder"))
        }
        _ => Error::io(path, error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn names_as_long_as_can_be_are_written() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["n".repeat(254), "é".repeat(127), "n".repeat(255)] {
            let path = directory.path().join(&name);
            let mut file = WholeFile::create(&path).unwrap();
            file.write_all(b"x").unwrap();
            file.finish().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "x");
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3);
        assert!(WholeFile::create(directory.path().join("n".repeat(256))).is_err());
    }

    #[test]
    fn links_in_a_circle_are_an_error_and_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        symlink("b", path("a")).unwrap();
        symlink("a", path("b")).unwrap();
        assert!(WholeFile::create(path("a")).unwrap_err().to_string().contains("links"));
        assert!(path("a").is_symlink() && path("b").is_symlink());
        // A link to what is not there yet makes that.
        symlink("new", path("c")).unwrap();
        WholeFile::create(path("c")).unwrap().finish().unwrap();
        assert!(path("c").is_symlink() && path("new").is_file());
    }

    #[test]
    fn what_failed_is_taken_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t");
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"first").unwrap();
        // Within what waits, and behind it.
        for (flushed, rest) in [(false, 3), (true, 3), (false, BUFFER * 2), (true, BUFFER * 2)] {
            let len = file.len();
            if flushed {
                file.flush().unwrap();
            }
            file.write_all(&vec![b'x'; rest]).unwrap();
            file.back_to(len).unwrap();
            file.write_all(b" next").unwrap();
        }
        file.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first next next next next");
    }

    #[test]
    fn a_folder_that_is_not_there_is_told() {
        let error = WholeFile::create("no-such-folder/t.csv").unwrap_err().to_string();
        assert_eq!(error, "no-such-folder/t.csv: there is no such folder");
        assert!(WholeFile::create(std::env::temp_dir()).is_err());
    }
}
