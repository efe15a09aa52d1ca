//! What is done at the process's end, whichever way it ends.

use parking_lot::{Mutex, MutexGuard};

type Work = extern "C" fn();

/// What is done, in the order in which it was registered.
fn registered() -> MutexGuard<'static, Vec<Work>> {
    static REGISTERED: Mutex<Vec<Work>> = Mutex::new(Vec::new());
    REGISTERED.lock()
}

/// Has `work` done when the process ends, before what was registered earlier. It may be called
/// several times: what it did once it need not do again.
pub(crate) fn at_end(work: Work) {
    let mut registered = registered();
    if !registered.iter().any(|other| std::ptr::fn_addr_eq(*other, work)) {
        registered.push(work);
    }
    drop(registered);
    // SAFETY: takes a function that may be called at the end: ours wait for threads, send signals
    // or remove files. Where there is no room for one more, the process ends as it would have.
    unsafe { libc::atexit(work) };
}

/// Does what the process's end would do: gives up compilations that are under way, and removes
/// files of this process alone. For a program that then ends by `_exit`, which skips what libraries
/// do at the end: NVRTC takes longer for that than many a query. Nothing may use a device
/// afterwards.
///
/// ```
/// warpframe_device::close_all();
/// ```
pub fn close_all() {
    let works = registered().clone();
    works.iter().rev().for_each(|work| work());
}
