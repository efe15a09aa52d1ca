//! Ctrl-C: stops the statement that runs, and leaves where none does, or where one does not stop.
//! SIGTERM and SIGHUP leave at once. None leaves files behind that are not finished.
//!
//! While a line is edited the terminal hands Ctrl-C to the editor instead.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use warpframe::{Session, WholeFile};

/// What the shell's own commands exit with when Ctrl-C ends them: 128 and the signal's number.
pub const EXIT_CODE: u8 = 130;

/// How often a statement that is to stop is told, until it has: it may be between two calls of the
/// engine.
const AGAIN: Duration = Duration::from_millis(20);

/// How often it is told before a process leaves that is to end: for two seconds, as those who end
/// processes wait some ten before they kill them.
const TIMES: usize = 100;

/// Which statement runs: odd numbers are statements, even ones the time between them.
static STATEMENT: LazyLock<Arc<AtomicU64>> = LazyLock::new(Arc::default);

/// The statement that Ctrl-C was meant for last.
static STOPPED: AtomicU64 = AtomicU64::new(0);

/// Whether the statement that runs was told to stop, and has not yet.
pub fn is_stopping() -> bool {
    let statement = STATEMENT.load(SeqCst);
    !statement.is_multiple_of(2) && STOPPED.load(SeqCst) == statement
}

/// A statement, until it is dropped.
pub struct Running(());

impl Running {
    /// From now on Ctrl-C stops a statement.
    pub fn begin() -> Running {
        STATEMENT.fetch_add(1, SeqCst);
        Running(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        STATEMENT.fetch_add(1, SeqCst);
    }
}

/// Whether another program has the terminal.
static LENT: AtomicBool = AtomicBool::new(false);

/// Another program at the terminal, such as a pager, until this is dropped: Ctrl-C is its own.
pub struct Lent(());

impl Lent {
    /// From now on Ctrl-C does nothing here.
    pub fn begin() -> Lent {
        LENT.store(true, SeqCst);
        Lent(())
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        LENT.store(false, SeqCst);
    }
}

/// What the process is to exit with, whatever came of its statements; 0 where nothing is said.
static ENDING: AtomicI32 = AtomicI32::new(0);

/// What a signal has the process exit with, where one ends it.
pub fn ending() -> Option<i32> {
    Some(ENDING.load(SeqCst)).filter(|code| *code != 0)
}

/// Ends the process without what it has not finished.
fn leave(code: i32) -> ! {
    WholeFile::remove_unfinished();
    std::process::exit(code)
}

/// Ends the process for a signal. A statement that runs is stopped before, so that it removes what
/// it keeps on disk.
fn end(session: &Session, signal: i32) -> ! {
    let code = 128 + signal;
    ENDING.store(code, SeqCst);
    let statement = STATEMENT.load(SeqCst);
    for _ in 0..TIMES {
        if statement.is_multiple_of(2) || STATEMENT.load(SeqCst) != statement {
            break;
        }
        session.interrupt();
        std::thread::sleep(AGAIN);
    }
    leave(code)
}

/// Whether whoever began this process has it ignore a signal, as `nohup` does.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Watches for Ctrl-C from now on. The editor of the shell puts a handler of its own in the place
/// of all others when it begins, and must have begun before. Where that is not possible it ends the
/// process, as without this.
pub fn watch(session: &Session) {
    let hangup = Some(SIGHUP).filter(|signal| !is_ignored(*signal));
    let watched = [SIGINT, SIGTERM].into_iter().chain(hangup);
    let Ok(mut signals) = Signals::new(watched) else { return };
    let session = session.clone();
    let watch = move || {
        for signal in signals.forever() {
            if signal != SIGINT {
                end(&session, signal);
            }
            if LENT.load(SeqCst) {
                continue;
            }
            let statement = STATEMENT.load(SeqCst);
            if statement.is_multiple_of(2) || statement == STOPPED.swap(statement, SeqCst) {
                leave(EXIT_CODE.into());
            }
            let session = session.clone();
            let stop = move || {
                while STATEMENT.load(SeqCst) == statement {
                    session.interrupt();
                    std::thread::sleep(AGAIN);
                }
            };
            let thread = std::thread::Builder::new().name("warpframe-interrupt".into());
            if thread.spawn(stop).is_err() {
                leave(EXIT_CODE.into());
            }
        }
    };
    // A watcher that does not start leaves Ctrl-C without effect; statements end by themselves.
    let _ = std::thread::Builder::new().name("warpframe-signals".into()).spawn(watch);
}
