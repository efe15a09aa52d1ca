//! Files that can be read once, from their begin to their end: pipes, FIFOs and terminals.
//!
//! ```text
//!   warpframe <(zcat x.csv.gz)     /dev/fd/63     a pipe
//!   zcat x.csv.gz | warpframe -    /dev/stdin     a pipe
//! ```
//!
//! Who reads files looks at their begin first, at places all over them, and may read columns one by
//! one. So the first one to open such a file has all of it copied into a temporary file without a
//! name, which everybody reads. It lies there until the process ends: what was read of a pipe cannot
//! be read again.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::IsTerminal;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, ErrorKind, Result};
use warpframe_device::interrupt;

/// What became of copying a file.
#[derive(Debug, Default)]
struct Spool {
    copy: Mutex<Option<std::io::Result<File>>>,
    is_done: Condvar,
}

/// Device and inode, as a pipe has several paths; and when it was made, as the inode of a FIFO that
/// is gone may be that of another one.
type PipeIdentity = (u64, u64, Option<SystemTime>);
type Spools = HashMap<PipeIdentity, Arc<Spool>>;

static SPOOLS: Mutex<Option<Spools>> = Mutex::new(None);

/// How often a statement that waits for a pipe looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Opens a file, or its copy, at its begin.
///
/// # Errors
/// [`ErrorKind::Io`], in the system's words; devices that are no terminals; an interrupt.
pub(super) fn open(path: &Path) -> Result<File> {
    File::open(real_path(path)?).map_err(|error| Error::io(path, error))
}

/// What the system says of a file, or of its copy.
///
/// # Errors
/// As [`open`].
pub(super) fn metadata(path: &Path) -> Result<Metadata> {
    std::fs::metadata(real_path(path)?).map_err(|error| Error::io(path, error))
}

/// The path by which this process can open a file as often as it likes.
///
/// # Errors
/// As [`open`].
pub(super) fn real_path(path: &Path) -> Result<PathBuf> {
    let of = std::fs::metadata(path).map_err(|error| Error::io(path, error))?;
    let kind = of.file_type();
    if kind.is_char_device() {
        /// Of /dev/null, which has no byte.
        const NULL_DEVICE: u64 = 0x103;
        let is_read =
            of.rdev() == NULL_DEVICE || File::open(path).is_ok_and(|file| file.is_terminal());
        if !is_read {
            let message = "is a device that is no terminal".to_string();
            return Err(ErrorKind::File { path: path.into(), message }.into());
        }
    } else if !kind.is_fifo() {
        return Ok(path.into());
    }
    let identity = (of.dev(), of.ino(), of.created().ok());
    let spool = {
        let mut spools = SPOOLS.lock();
        let spools = spools.get_or_insert_default();
        match spools.get(&identity) {
            Some(spool) => spool.clone(),
            None => {
                let spool = Arc::<Spool>::default();
                spools.insert(identity, spool.clone());
                begin(path.to_path_buf(), spool.clone()).map_err(|error| Error::io(path, error))?;
                spool
            }
        }
    };
    let mut copy = spool.copy.lock();
    loop {
        match copy.as_ref() {
            Some(Ok(file)) => return Ok(format!("/dev/fd/{}", file.as_raw_fd()).into()),
            Some(Err(error)) => {
                let error = std::io::Error::new(error.kind(), error.to_string());
                return Err(Error::io(path, error));
            }
            None => {}
        }
        interrupt::check()?;
        spool.is_done.wait_for(&mut copy, LOOK);
    }
}

/// Copies a file on a thread of its own, which goes on where a statement stops.
fn begin(path: PathBuf, spool: Arc<Spool>) -> std::io::Result<()> {
    let copied = move || -> std::io::Result<File> {
        let mut file = File::open(&path)?;
        let mut copy = tempfile::tempfile().map_err(|error| {
            let folder = tempfile::env::temp_dir();
            std::io::Error::other(format!("no copy can be made in {}: {error}", folder.display()))
        })?;
        std::io::copy(&mut file, &mut copy)?;
        Ok(copy)
    };
    let run = move || {
        *spool.copy.lock() = Some(copied());
        spool.is_done.notify_all();
    };
    std::thread::Builder::new().name("warpframe-pipe".into()).spawn(run).map(drop)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::OwnedFd;

    use super::*;

    fn text(path: &Path) -> String {
        let mut text = String::new();
        open(path).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_pipe_is_read_as_often_as_one_likes() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let reader = OwnedFd::from(reader);
        let path = PathBuf::from(format!("/dev/fd/{}", reader.as_raw_fd()));
        let writes = std::thread::spawn(move || writer.write_all(&[b'x'; 200_000]).unwrap());
        assert_eq!(text(&path).len(), 200_000);
        writes.join().unwrap();
        assert_eq!(text(&path), "x".repeat(200_000));
        assert_eq!(metadata(&path).unwrap().len(), 200_000);
        assert_eq!(metadata(Path::new("/dev/null")).unwrap().len(), 0);
        assert!(open(Path::new("/dev/zero")).unwrap_err().to_string().contains("is a device"));
        assert_eq!(real_path(Path::new("Cargo.toml")).unwrap(), Path::new("Cargo.toml"));
    }
    #[test]
    fn a_fifo_in_the_place_of_another_is_read_anew() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fifo");
        for content in ["one", "two", "three"] {
            let made = std::process::Command::new("mkfifo").arg(&path).status();
            assert!(made.unwrap().success());
            let to = path.clone();
            let writes = std::thread::spawn(move || std::fs::write(to, content).unwrap());
            assert_eq!(text(&path), content);
            writes.join().unwrap();
            assert_eq!(text(&path), content);
            std::fs::remove_file(&path).unwrap();
        }
    }
}
