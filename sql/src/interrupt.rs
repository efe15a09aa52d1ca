//! Ctrl-C: stops the statement that runs, and leaves where none does, or where one does not stop.
//!
//! While a line is edited the terminal hands Ctrl-C to the editor instead.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;
use warpframe::Session;

/// What the shell's own commands exit with when Ctrl-C ends them: 128 and the signal's number.
pub const EXIT_CODE: u8 = 130;

/// How often a statement that is to stop is told, until it has: it may be between two calls of the
/// engine.
const AGAIN: Duration = Duration::from_millis(20);

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

/// Watches for Ctrl-C from now on. The editor of the shell puts a handler of its own in the place
/// of all others when it begins, and must have begun before. Where that is not possible it ends the
/// process, as without this.
pub fn watch(session: &Session) {
    let Ok(mut signals) = Signals::new([SIGINT]) else { return };
    let session = session.clone();
    let watch = move || {
        for _ in signals.forever() {
            if LENT.load(SeqCst) {
                continue;
            }
            let statement = STATEMENT.load(SeqCst);
            if statement.is_multiple_of(2) || statement == STOPPED.swap(statement, SeqCst) {
                std::process::exit(EXIT_CODE.into());
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
                std::process::exit(EXIT_CODE.into());
            }
        }
    };
    // A watcher that does not start leaves Ctrl-C without effect; statements end by themselves.
    let _ = std::thread::Builder::new().name("warpframe-signals".into()).spawn(watch);
}
