//! Compilers as processes: fed, waited for, and stopped with the statement that waits, or with the
//! process.
//!
//! A compiler starts others (`g++` starts `cc1plus` and `as`), so each is the first of a group of
//! processes, which is stopped as one. Signals of a terminal go to the terminal's own group: its
//! Ctrl-C does not reach a compiler past us.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Once;
use std::thread::Scope;

use parking_lot::{Mutex, MutexGuard};

use crate::end::at_end;
use crate::interrupt;

/// Groups of compilers that run.
fn running() -> MutexGuard<'static, Vec<i32>> {
    static RUNNING: Mutex<Vec<i32>> = Mutex::new(Vec::new());
    RUNNING.lock()
}

/// Runs a compiler with this input. Where the statement that this thread is in is to stop, it is
/// stopped; its status tells.
pub(super) fn run(mut command: Command, input: &[u8]) -> io::Result<Output> {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| at_end(stop_all));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    let group = Group::begin(&mut command)?;
    std::thread::scope(|scope| group.finish(scope, input))
}

/// A compiler and the processes that it started.
struct Group(Child);

impl Group {
    fn begin(command: &mut Command) -> io::Result<Group> {
        // Listed before it could be missed: the end of the process waits for the list.
        let mut running = running();
        let child = command.spawn()?;
        running.push(child.id() as i32);
        Ok(Group(child))
    }

    fn finish<'s>(mut self, scope: &'s Scope<'s, '_>, input: &'s [u8]) -> io::Result<Output> {
        let mut to = self.0.stdin.take().expect("stdin is piped");
        let mut from = self.0.stderr.take().expect("stderr is piped");
        // From threads of their own: the compiler may stop reading while it writes its log. A
        // compiler that ends early is told by its status, so a failed write needs no report.
        scope.spawn(move || drop(to.write_all(input)));
        let log = scope.spawn(move || {
            let mut log = vec![];
            let _ = from.read_to_end(&mut log);
            log
        });
        let mut given_up = false;
        let status = loop {
            if let Some(status) = self.0.try_wait()? {
                break status;
            }
            if !given_up && interrupt::check().is_err() {
                stop(self.0.id() as i32);
                given_up = true;
            }
            std::thread::sleep(interrupt::PACE);
        };
        Ok(Output { status, stdout: vec![], stderr: log.join().unwrap_or_default() })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let group = self.0.id() as i32;
        running().retain(|other| *other != group);
    }
}

/// Stops a group of processes.
fn stop(group: i32) {
    // SAFETY: sends a signal to a group that we started and whose first process was not waited for,
    // so that its number is no other's.
    let _ = unsafe { libc::kill(-group, libc::SIGKILL) };
}

extern "C" fn stop_all() {
    running().iter().for_each(|group| stop(*group));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::interrupt::{Running, Switch};

    fn shell(text: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        command
    }

    #[test]
    fn output_and_status_come_back() {
        let output = run(shell("cat >&2; exit 3"), b"what was wrong").unwrap();
        assert_eq!((output.status.code(), &output.stderr[..]), (Some(3), &b"what was wrong"[..]));
        assert!(run(Command::new("/no/such/compiler"), b"").is_err());
    }

    #[test]
    fn a_statement_that_stops_takes_its_compiler_and_what_that_started_along() {
        let mark = tempfile::NamedTempFile::new().unwrap();
        let text = format!("(sleep 2; echo alive > {}) & sleep 20", mark.path().display());
        let switch = Arc::<Switch>::default();
        switch.set_timeout(Some(Duration::from_millis(50)));
        let statement = Running::begin(&switch);
        let _entered = statement.enter();
        let start = Instant::now();
        let output = run(shell(&text), b"").unwrap();
        assert!(!output.status.success() && start.elapsed() < Duration::from_secs(2));
        std::thread::sleep(Duration::from_millis(2200));
        assert_eq!(std::fs::read(mark.path()).unwrap(), b"", "a process is left");
    }
}
