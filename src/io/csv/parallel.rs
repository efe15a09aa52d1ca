//! Work on all cores, in the statement that asked for it.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::error::{Error, Result};
use warpframe_device::cores::cores;
use warpframe_device::interrupt;

/// What the work makes of each number below `count`, in order.
///
/// # Errors
/// Of the first number that fails, of those that were tried; where no thread starts.
pub(crate) fn on_cores<T: Send>(
    count: usize,
    work: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    if count <= 1 {
        return (0..count).map(work).collect();
    }
    let cores = cores().min(count);
    let next = AtomicUsize::new(0);
    let failed: Mutex<Option<(usize, Error)>> = Mutex::default();
    let statement = interrupt::current();
    let run = || {
        let _entered = statement.as_ref().map(|statement| statement.enter());
        let mut done = vec![];
        loop {
            let number = next.fetch_add(1, Relaxed);
            if number >= count {
                return done;
            }
            match interrupt::check().map_err(Error::from).and_then(|()| work(number)) {
                Ok(made) => done.push((number, made)),
                Err(error) => {
                    // Numbers before it were taken already: the first failure is among them.
                    next.store(count, Relaxed);
                    let mut failed = failed.lock();
                    if failed.as_ref().is_none_or(|(known, _)| number < *known) {
                        *failed = Some((number, error));
                    }
                    return done;
                }
            }
        }
    };
    let mut done = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(run)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Vec<(usize, T)>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().flat_map(join).collect::<Vec<_>>()
    });
    if let Some((_, error)) = failed.into_inner() {
        return Err(error);
    }
    done.sort_unstable_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, made)| made).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_comes_in_order_and_its_first_failure() {
        assert_eq!(
            on_cores(100, |n| Ok(n * 2)).unwrap(),
            (0..100).map(|n| n * 2).collect::<Vec<_>>()
        );
        let error =
            on_cores(100, |n| if n >= 40 { Err(Error::internal(format!("{n}"))) } else { Ok(()) })
                .unwrap_err();
        assert!(error.to_string().ends_with(": 40"), "{error}");
    }
}
