//! Who changes the session's tables: one thread at a time, from the moment on at which it looks at
//! what there is. So nothing is lost that another thread puts, drops or renames meanwhile.
//!
//! What puts tables into schemas and takes them out asks for [`Alone`], which only
//! [`Session::alone`] gives out. The rows of a query that becomes a table may be computed before.

use std::marker::PhantomData;
use std::thread::{self, ThreadId};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Session;
use crate::error::Result;
use warpframe_device::interrupt::{PACE, Running};

/// The thread that changes tables, and how many of its statements are one within another:
/// `IMPORT DATABASE` runs those of a file.
#[derive(Debug, Default)]
pub(super) struct Writers {
    writes: Mutex<Option<(ThreadId, usize)>>,
    ended: Condvar,
}

impl Writers {
    fn writes(&self) -> MutexGuard<'_, Option<(ThreadId, usize)>> {
        self.writes.lock()
    }
}

/// That this thread alone changes tables, until it is dropped.
#[must_use]
pub(super) struct Alone<'a> {
    writers: &'a Writers,
    /// It belongs to its thread.
    _of_thread: PhantomData<*const ()>,
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        let mut writes = self.writers.writes();
        *writes = match *writes {
            Some((thread, depth)) if depth > 1 => Some((thread, depth - 1)),
            _ => None,
        };
        drop(writes);
        self.writers.ended.notify_one();
    }
}

impl Session {
    /// Waits until no other thread changes tables.
    ///
    /// # Errors
    /// The statement is to stop before.
    pub(super) fn alone(&self) -> Result<Alone<'_>> {
        let statement = Running::begin(&self.core.switch);
        let (writers, own) = (&*self.writers, thread::current().id());
        let mut writes = writers.writes();
        loop {
            let depth = match *writes {
                None => 0,
                Some((thread, depth)) if thread == own => depth,
                Some(_) => {
                    statement.check()?;
                    writers.ended.wait_for(&mut writes, PACE);
                    continue;
                }
            };
            *writes = Some((own, depth + 1));
            return Ok(Alone { writers, _of_thread: PhantomData });
        }
    }
}
