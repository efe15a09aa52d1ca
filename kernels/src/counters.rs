//! Counts of what a device was asked to do: the proof that work ran there, and what it cost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;

/// Counts since a device was opened.
///
/// ```
/// use warpframe_device::{Device, MemoryLimit, SimOptions, ops::scan::exclusive_scan_u32};
/// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
/// let counts = device.upload("counts", &[1, 0, 0, 0, 2, 0, 0, 0])?;
/// exclusive_scan_u32(&device, &counts, 2)?;
/// let before = device.counters();
/// exclusive_scan_u32(&device, &counts, 2)?;
/// let after = device.counters();
/// assert!(after.launches > before.launches);
/// assert_eq!(after.compilations, before.compilations);
/// # Ok::<(), warpframe_device::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Kernels launched.
    pub launches: u64,
    /// Times the host waited for the device.
    pub synchronizations: u64,
    /// Allocations made.
    pub allocations: u64,
    /// Bytes copied to the device.
    pub bytes_uploaded: u64,
    /// Bytes of Parquet files that readers set out to bring to the device, compressed as they are.
    pub file_bytes_wanted: u64,
    /// Of these, bytes that are decoded, or whose decoding is submitted.
    pub file_bytes_read: u64,
    /// Bytes copied from the device.
    pub bytes_downloaded: u64,
    /// Estimate of the bytes that kernels read and wrote in device memory. Of each buffer that a
    /// kernel is given it counts every byte once: of generated kernels, of those buffers that their
    /// text names, and no more than the rows they look at times the bytes of an element; of the
    /// others, all from where their argument points. So a column read by row numbers counts once
    /// for each row, a hash table as if each row met one slot, and what a filter spares is counted;
    /// the characters of strings, repeated accesses, fills and copies of buffers are not.
    pub bytes_moved: u64,
    /// Modules compiled.
    pub compilations: u64,
    /// Modules that were compiled again, or found on disk so, by all that the compiler can do
    /// ([`crate::Device::settle`]).
    pub improved: u64,
    /// Modules found compiled, on disk.
    pub disk_hits: u64,
    /// Modules that operators found loaded, in memory.
    pub memory_hits: u64,
    /// Modules, of those compiled and found on disk, that were made ready before an operator asked
    /// for them.
    pub prepared_ahead: u64,
    /// Time in the compiler, the sum over threads.
    pub compile_time: Duration,
    /// Time that operators waited for modules to be compiled, found and loaded.
    pub module_wait: Duration,
    /// Plans that began here and went to the CPU, because the data showed that the device cannot
    /// run them, or has not memory enough.
    pub fallbacks: u64,
    /// Bytes of intermediate results that were moved to the host, because a plan did not fit into
    /// device memory and was divided.
    pub bytes_spilled: u64,
    /// Bytes of these that were brought back.
    pub bytes_restored: u64,
    /// Most bytes of these that lay in files at once.
    pub bytes_in_spill_files: u64,
    /// Bytes of rows that other devices of the session were sent.
    pub bytes_sent: u64,
    /// Bytes of rows that came from other devices of the session.
    pub bytes_received: u64,
    /// Parts of divided plans that ran.
    pub parts_run: u64,
    /// Queries and verbs that were planned: analysed, optimized, and cut into what runs where.
    pub plans_made: u64,
    /// Queries and verbs whose plan was found, made for an earlier one of the same form.
    pub plans_found: u64,
    /// Columns of files that left device memory because others wanted the room.
    pub columns_evicted: u64,
    /// Bytes that this freed.
    pub bytes_evicted: u64,
    /// Tables kept by their users that moved to host memory because others wanted the room.
    pub tables_moved_out: u64,
    /// Bytes of device memory that they had.
    pub bytes_moved_out: u64,
    /// Tables that came back from host memory when they were asked for.
    pub tables_moved_back: u64,
    /// Time that the host was in the driver: allocating what is not kept, submitting work, moving
    /// bytes, waiting. Of the simulator that is all that kernels take.
    pub driver_time: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Counting {
    counters: Mutex<Counters>,
    total: AtomicU64,
    moved: AtomicU64,
    /// Nanoseconds.
    in_driver: AtomicU64,
    by_kernel: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
}

impl Counting {
    pub(crate) fn snapshot(&self) -> Counters {
        let driver_time = Duration::from_nanos(self.in_driver.load(Relaxed));
        let (launches, bytes_moved) = (self.total.load(Relaxed), self.moved.load(Relaxed));
        Counters { launches, bytes_moved, driver_time, ..*self.counters.lock() }
    }

    pub(crate) fn launches(&self) -> BTreeMap<String, u64> {
        let counts = self.by_kernel.lock();
        let counts = counts.iter().map(|(kernel, count)| (kernel.clone(), count.load(Relaxed)));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// What counts the launches of a kernel.
    pub(crate) fn of_kernel(&self, kernel: &str) -> Arc<AtomicU64> {
        let mut counts = self.by_kernel.lock();
        counts.entry(kernel.to_string()).or_default().clone()
    }

    /// Counts a launch; `kernel` is what counts those of its kernel.
    pub(crate) fn launched(&self, kernel: &AtomicU64, bytes: u64) {
        self.total.fetch_add(1, Relaxed);
        self.moved.fetch_add(bytes, Relaxed);
        kernel.fetch_add(1, Relaxed);
    }
    pub(crate) fn synchronized(&self) {
        self.counters.lock().synchronizations += 1;
    }
    pub(crate) fn allocated(&self) {
        self.counters.lock().allocations += 1;
    }
    pub(crate) fn uploaded(&self, bytes: usize) {
        self.counters.lock().bytes_uploaded += bytes as u64;
    }
    pub(crate) fn wanted_of_files(&self, bytes: u64) {
        self.counters.lock().file_bytes_wanted += bytes;
    }
    pub(crate) fn read_of_files(&self, bytes: u64) {
        self.counters.lock().file_bytes_read += bytes;
    }
    pub(crate) fn downloaded(&self, bytes: usize) {
        self.counters.lock().bytes_downloaded += bytes as u64;
    }
    pub(crate) fn compiled(&self, time: Duration) {
        let mut counters = self.counters.lock();
        counters.compilations += 1;
        counters.compile_time += time;
    }
    pub(crate) fn improved(&self) {
        self.counters.lock().improved += 1;
    }
    pub(crate) fn prepared_ahead(&self) {
        self.counters.lock().prepared_ahead += 1;
    }
    pub(crate) fn waited_for_module(&self, time: Duration) {
        self.counters.lock().module_wait += time;
    }
    pub(crate) fn found_on_disk(&self) {
        self.counters.lock().disk_hits += 1;
    }
    pub(crate) fn fell_back(&self) {
        self.counters.lock().fallbacks += 1;
    }
    pub(crate) fn spilled(&self, bytes: u64) {
        self.counters.lock().bytes_spilled += bytes;
    }
    pub(crate) fn in_spill_files(&self, bytes: u64) {
        let mut counters = self.counters.lock();
        counters.bytes_in_spill_files = counters.bytes_in_spill_files.max(bytes);
    }
    pub(crate) fn restored(&self, bytes: u64) {
        self.counters.lock().bytes_restored += bytes;
    }
    pub(crate) fn sent(&self, bytes: u64) {
        self.counters.lock().bytes_sent += bytes;
    }
    pub(crate) fn received(&self, bytes: u64) {
        self.counters.lock().bytes_received += bytes;
    }
    pub(crate) fn part_ran(&self) {
        self.counters.lock().parts_run += 1;
    }
    pub(crate) fn in_driver(&self, time: Duration) {
        self.in_driver.fetch_add(time.as_nanos() as u64, Relaxed);
    }
    pub(crate) fn planned(&self, found: bool) {
        let mut counters = self.counters.lock();
        *if found { &mut counters.plans_found } else { &mut counters.plans_made } += 1;
    }
    pub(crate) fn found_in_memory(&self) {
        self.counters.lock().memory_hits += 1;
    }
}
