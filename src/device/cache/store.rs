//! Images on disk, each with a checksum, safe under concurrent processes.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sha2::{Digest, Sha256};

use crate::device::driver::StoredImage;
use crate::error::{Error, Result};

/// Where compiled kernels are kept: `WARPFRAME_CACHE_DIR`, else `XDG_CACHE_HOME/warpframe`, else
/// `HOME/.cache/warpframe`, else a directory of this user among the temporary files.
pub(crate) fn directory() -> PathBuf {
    directory_by(|name| std::env::var_os(name))
}

pub(super) fn directory_by(variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let path = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(own) = path("WARPFRAME_CACHE_DIR") {
        own
    } else if let Some(cache) = path("XDG_CACHE_HOME") {
        cache.join("warpframe")
    } else if let Some(home) = path("HOME") {
        home.join(".cache").join("warpframe")
    } else {
        std::env::temp_dir().join(format!("warpframe-{}", user()))
    }
}

fn user() -> u32 {
    // SAFETY: has no preconditions and cannot fail.
    unsafe { libc::geteuid() }
}

#[derive(Debug)]
pub(crate) struct Store {
    directory: PathBuf,
    /// Whether the directory is this process's own and goes with it.
    temporary: bool,
}

impl Store {
    /// Opens a directory; where it cannot be used, one that lives as long as the process.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        if usable(directory) {
            return Ok(Store { directory: directory.to_path_buf(), temporary: false });
        }
        let private = unique(&std::env::temp_dir().join("warpframe"));
        // Creating, not reusing: nobody else can have put an image there. Images are loaded as code.
        fs::DirBuilder::new().mode(0o700).create(&private).map_err(|e| Error::io(&private, e))?;
        Ok(Store { directory: private, temporary: true })
    }

    /// The image of this file name, if it is whole, and of this compiler where one is named.
    pub(crate) fn find(&self, file: &str, compiler: Option<&str>) -> Option<StoredImage> {
        let path = self.directory.join(file);
        let noted = fs::read_to_string(self.checksum(file)).ok()?;
        let mut lines = noted.lines();
        let (expected, by) = (lines.next()?, lines.next());
        if compiler.is_some() && compiler != by {
            return None;
        }
        let bytes = fs::read(&path).ok()?;
        (hex(&Sha256::digest(&bytes)) == expected.trim()).then_some(StoredImage { path, bytes })
    }

    /// Makes an image and enters it, in place of what was there. `make` says by which compiler.
    pub(crate) fn insert(&self, file: &str, make: impl FnOnce(&Path) -> Result<String>) -> Result<StoredImage> {
        let path = self.directory.join(file);
        let draft = unique(&path);
        let finish = || -> Result<Vec<u8>> {
            let compiler = make(&draft)?;
            let bytes = fs::read(&draft).map_err(|e| Error::io(&draft, e))?;
            let noted = format!("{}\n{compiler}\n", hex(&Sha256::digest(&bytes)));
            fs::rename(&draft, &path).map_err(|e| Error::io(&path, e))?;
            write_atomically(&self.checksum(file), noted.as_bytes())?;
            Ok(bytes)
        };
        let result = finish();
        if result.is_err() {
            let _ = fs::remove_file(&draft);
        }
        result.map(|bytes| StoredImage { path, bytes })
    }

    fn checksum(&self, file: &str) -> PathBuf {
        self.directory.join(format!("{file}.sha256"))
    }

    #[cfg(test)]
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if self.temporary {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// Whether names that end so lie in a directory: a look that ends with the first.
pub(super) fn holds(directory: &Path, end: &str) -> bool {
    let mut entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.any(|entry| entry.file_name().to_string_lossy().ends_with(end))
}

/// Whether images may be kept there: it can be written, and if it is among the temporary files nobody else could
/// have put images into it.
fn usable(directory: &Path) -> bool {
    if fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).is_err() {
        return false;
    }
    if directory.starts_with(std::env::temp_dir()) {
        match fs::metadata(directory) {
            Ok(data) if data.uid() == user() && data.mode() & 0o002 == 0 => {}
            _ => return false,
        }
    }
    let probe = unique(&directory.join("probe"));
    let written = fs::write(&probe, b"probe").is_ok();
    let _ = fs::remove_file(&probe);
    written
}

/// Writes a whole file or leaves what was there.
pub(super) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let draft = unique(path);
    let result = fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, path));
    result.map_err(|e| {
        let _ = fs::remove_file(&draft);
        Error::io(path, e)
    })
}

/// `path` with a suffix that no other process and no other call of this one uses.
fn unique(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut name = path.as_os_str().to_owned();
    let clock = std::time::UNIX_EPOCH.elapsed().map_or(0, |d| d.subsec_nanos());
    // The clock tells apart processes of the same number in containers that share a directory.
    name.push(format!(".{}-{}-{clock}.tmp", std::process::id(), NEXT.fetch_add(1, Relaxed)));
    PathBuf::from(name)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
