//! Work on all cores whose results are used in order.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, channel};

use parking_lot::Mutex;

use crate::error::{Error, Result};
use warpframe_device::cores::cores;
use warpframe_device::interrupt;

/// Makes something of each item on all cores; `done` gets the results in the order of the items.
/// The caller's thread asks for items and uses results; a few items a core are under way at once.
///
/// # Errors
/// The first of the items, of `make` or of `done`; an interrupt.
pub(super) fn in_order<T: Send, R: Send>(
    items: impl Iterator<Item = Result<T>>,
    make: impl Fn(T) -> Result<R> + Sync,
    mut done: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    /// Items under way for each core.
    const AHEAD: usize = 2;
    let cores = cores();
    let (jobs, queue) = channel();
    let queue = Mutex::new(queue);
    std::thread::scope(|scope| {
        // Dropped on the way out, which ends the workers.
        let jobs = jobs;
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let job = queue.lock().recv();
                    let Ok((item, reply)) = job else { return };
                    let reply: std::sync::mpsc::Sender<Result<R>> = reply;
                    // Nobody waits where an earlier one failed.
                    let _ = reply.send(make(item));
                }
            });
        }
        let take = |waiting: &mut VecDeque<Receiver<Result<R>>>| match waiting.pop_front() {
            Some(result) => result
                .recv()
                .unwrap_or_else(|_| Err(Error::internal("a worker ended early")))
                .map(Some),
            None => Ok(None),
        };
        let mut waiting = VecDeque::new();
        for item in items {
            interrupt::check()?;
            let (reply, result) = channel();
            if jobs.send((item?, reply)).is_err() {
                return Err(Error::internal("no worker is left"));
            }
            waiting.push_back(result);
            if waiting.len() == AHEAD * cores
                && let Some(made) = take(&mut waiting)?
            {
                done(made)?;
            }
        }
        while let Some(made) = take(&mut waiting)? {
            interrupt::check()?;
            done(made)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_their_items() {
        let mut found = vec![];
        let slow = |n: u64| {
            std::thread::sleep(std::time::Duration::from_micros(n * 37 % 500));
            Ok(n * 2)
        };
        in_order((0..500).map(Ok), slow, |n| {
            found.push(n);
            Ok(())
        })
        .unwrap();
        assert_eq!(found, (0..500).map(|n| n * 2).collect::<Vec<_>>());
    }

    #[test]
    fn the_first_error_ends_it() {
        let failing = |n: u64| if n == 7 { Err(Error::internal("seven")) } else { Ok(n) };
        let mut last = 0;
        let error = in_order((0..500).map(Ok), failing, |n| {
            last = n;
            Ok(())
        });
        assert!(error.unwrap_err().to_string().contains("seven"));
        assert_eq!(last, 6);
        let items = (0..9).map(|n| if n == 3 { Err(Error::internal("three")) } else { Ok(n) });
        assert!(in_order(items, Ok, |_: u64| Ok(())).unwrap_err().to_string().contains("three"));
        let refusing = |n: u64| if n == 2 { Err(Error::internal("full")) } else { Ok(()) };
        assert!(in_order((0..500).map(Ok), Ok, refusing).unwrap_err().to_string().contains("full"));
    }
}
