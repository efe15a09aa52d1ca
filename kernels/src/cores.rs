//! The processor cores that work is spread over.

use std::sync::LazyLock;

/// How many cores this process may use, at least one. It is found once: the standard library reads
/// files of the control group each time, which takes as long as a launch.
pub fn cores() -> usize {
    static CORES: LazyLock<usize> =
        LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
    *CORES
}
