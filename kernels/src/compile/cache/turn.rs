//! Devices of one kind in a process compile a source once.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use parking_lot::{Mutex, MutexGuard};

use super::LOOK;
use crate::error::Result;
use crate::interrupt;

/// The turn to compile what a file will have.
pub(super) struct Turn {
    file: PathBuf,
    /// Somebody else compiled it meanwhile.
    pub(super) waited: bool,
}

static COMPILED_NOW: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);

impl Turn {
    /// Waits for whoever else compiles what this file will have.
    pub(super) fn of(file: &Path) -> Result<Turn> {
        let mut waited = false;
        while !now().insert(file.to_path_buf()) {
            waited = true;
            interrupt::check()?;
            std::thread::sleep(LOOK);
        }
        Ok(Turn { file: file.to_path_buf(), waited })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        now().remove(&self.file);
    }
}

fn now() -> MutexGuard<'static, HashSet<PathBuf>> {
    COMPILED_NOW.lock()
}
