//! A column's chunks cut into pieces, and work on them spread over the machine's cores.

use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::arrow::array::ArrayRef;

use crate::error::Result;
use warpframe_device::cores::cores;

/// Most rows of a piece. Enough work to hide handing it out (a millisecond or so), little enough
/// that a worker's scratch memory stays in its cache and that the first upload starts early.
const PIECE_ROWS: usize = 128 * 1024;

/// A run of rows of one chunk.
#[derive(Debug)]
pub(super) struct Piece {
    /// The rows.
    pub(super) array: ArrayRef,
    /// Row of the column at which they start.
    pub(super) start: usize,
    /// Their place among the pieces.
    pub(super) index: usize,
}

/// Cuts chunks into pieces of rows; chunks without rows give none.
pub(super) fn cut(arrays: &[ArrayRef]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for array in arrays {
        for from in (0..array.len()).step_by(PIECE_ROWS) {
            let len = PIECE_ROWS.min(array.len() - from);
            let piece = if len == array.len() { array.clone() } else { array.slice(from, len) };
            pieces.push(Piece { array: piece, start, index: pieces.len() });
            start += len;
        }
    }
    pieces
}

/// What [`for_each`] leaves behind.
pub(super) struct PiecesDone<S, T> {
    /// The state of each worker.
    pub(super) workers: Vec<S>,
    /// For each piece, the worker that did it and the result, in the pieces' order.
    pub(super) results: Vec<(usize, T)>,
}

/// Calls `work` once for each piece, on as many threads as there are cores and work for; each
/// thread has a state of its own. Stops at the first error.
pub(super) fn for_each<'p, S: Send, T: Send>(
    pieces: &'p [Piece],
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &'p Piece) -> Result<T> + Sync,
) -> Result<PiecesDone<S, T>> {
    let next = AtomicUsize::new(0);
    let worker = || -> Result<(S, Vec<(usize, T)>)> {
        let mut state = state();
        let mut done = Vec::new();
        while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = work(&mut state, piece)
                .inspect_err(|_| next.store(pieces.len(), Ordering::Relaxed))?;
            done.push((piece.index, result));
        }
        Ok((state, done))
    };
    let rows: usize = pieces.iter().map(|piece| piece.array.len()).sum();
    let cores = cores();
    let threads = rows.div_ceil(PIECE_ROWS).min(pieces.len()).min(cores);
    let finished = if threads <= 1 {
        vec![worker()?]
    } else {
        std::thread::scope(|scope| {
            let handles: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
            let join = |handle: std::thread::ScopedJoinHandle<'_, _>| {
                handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            handles.into_iter().map(join).collect::<Result<Vec<_>>>()
        })?
    };
    let mut results: Vec<Option<(usize, T)>> = pieces.iter().map(|_| None).collect();
    let mut workers = Vec::with_capacity(finished.len());
    for (worker, (state, done)) in finished.into_iter().enumerate() {
        workers.push(state);
        done.into_iter().for_each(|(index, result)| results[index] = Some((worker, result)));
    }
    let results = results.into_iter().map(|result| result.expect("every piece was done")).collect();
    Ok(PiecesDone { workers, results })
}
