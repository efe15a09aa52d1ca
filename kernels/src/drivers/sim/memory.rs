//! Device memory as host memory: every allocation lies between guard bytes and is poisoned, so that
//! kernels that write outside or read what nobody wrote show.
//!
//! ```text
//!   GUARD bytes of 0xFA │ the allocation, aligned to 256, at first all 0xA5 │ GUARD bytes of 0xFA
//! ```
//!
//! Freed memory is poisoned again and held back for a while; a write to it is found when it is
//! released.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::{BTreeMap, VecDeque};

use crate::error::{ErrorKind, Result};

const ALIGN: usize = 256;
const WORD: usize = 8;
const GUARD: usize = 256;
const GUARD_BYTE: u8 = 0xfa;
pub(super) const POISON: u8 = 0xa5;
/// Most freed memory that is held back.
const HELD_BACK: usize = 16 << 20;

#[derive(Debug)]
pub(super) struct SimMemory {
    capacity: u64,
    used: u64,
    /// Bytes of guard on each side: none under AddressSanitizer, which has its own and reports at
    /// the access.
    guard: usize,
    /// Size by address.
    live: BTreeMap<u64, usize>,
    /// Memory of other programs that work may use, by address: its size, and how often it was
    /// borrowed.
    borrowed: BTreeMap<u64, (usize, usize)>,
    freed: VecDeque<(u64, usize)>,
    freed_bytes: usize,
    /// The first misdeed not yet reported: kernel and report.
    fault: Option<(String, String)>,
}

/// Bytes of memory of this machine.
pub(super) fn of_host() -> u64 {
    // SAFETY: sysconf has no preconditions.
    let (pages, size) =
        unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    u64::try_from(pages).unwrap_or(0).saturating_mul(u64::try_from(size).unwrap_or(0)).max(1 << 30)
}

impl SimMemory {
    pub(super) fn new(capacity: u64, sanitized: bool) -> Self {
        SimMemory {
            capacity,
            used: 0,
            guard: if sanitized { 0 } else { GUARD },
            live: BTreeMap::new(),
            borrowed: BTreeMap::new(),
            freed: VecDeque::new(),
            freed_bytes: 0,
            fault: None,
        }
    }

    pub(super) fn free_bytes(&self) -> u64 {
        self.capacity - self.used
    }

    /// Behind the last byte are at least the others of its word: kernels may read whole words
    /// (`CONVENTIONS.md`), which AddressSanitizer would report.
    fn layout(&self, bytes: usize) -> Option<Layout> {
        let words = bytes.checked_next_multiple_of(WORD)?;
        Layout::from_size_align(words.checked_add(2 * self.guard)?, ALIGN).ok()
    }

    /// Poisoned memory; `None` where the device's or the host's memory does not suffice.
    pub(super) fn alloc(&mut self, bytes: usize) -> Option<u64> {
        if bytes as u64 > self.free_bytes() {
            return None;
        }
        let layout = self.layout(bytes)?;
        // SAFETY: the size is not 0, for `bytes` is not.
        let start = unsafe { alloc(layout) };
        if start.is_null() {
            return None;
        }
        // SAFETY: all three ranges lie in the memory just allocated.
        unsafe {
            start.write_bytes(GUARD_BYTE, self.guard);
            start.add(self.guard).write_bytes(POISON, bytes);
            start.add(self.guard + bytes).write_bytes(GUARD_BYTE, self.guard);
        }
        let address = start as u64 + self.guard as u64;
        self.live.insert(address, bytes);
        self.used += bytes as u64;
        Some(address)
    }

    /// Takes an allocation back. An address that is none is a fault, reported by a later call.
    pub(super) fn free(&mut self, address: u64, bytes: usize) {
        if self.live.get(&address) != Some(&bytes) {
            self.record("free", || format!("{address:#x} is no live allocation of {bytes} bytes"));
            return;
        }
        self.check_guard("free", address, bytes);
        self.live.remove(&address);
        self.used -= bytes as u64;
        if self.guard == 0 || bytes > HELD_BACK {
            // AddressSanitizer holds freed memory back itself.
            self.give_back(address, bytes);
            return;
        }
        // SAFETY: the allocation was live until here and is in nobody's hands now.
        unsafe { (address as *mut u8).write_bytes(POISON, bytes) };
        self.freed.push_back((address, bytes));
        self.freed_bytes += bytes;
        while self.freed_bytes > HELD_BACK {
            self.release_oldest();
        }
    }

    /// Releases all memory that is held back.
    pub(super) fn trim(&mut self) {
        while !self.freed.is_empty() {
            self.release_oldest();
        }
    }

    fn release_oldest(&mut self) {
        let Some((address, bytes)) = self.freed.pop_front() else { return };
        self.freed_bytes -= bytes;
        // SAFETY: memory held back is allocated and in nobody's hands.
        let content = unsafe { std::slice::from_raw_parts(address as *const u8, bytes) };
        if let Some(at) = first_other(content, POISON) {
            self.record("an earlier kernel", || {
                format!("wrote to byte {at} of an allocation of {bytes} bytes after it was freed")
            });
        }
        self.give_back(address, bytes);
    }

    fn give_back(&mut self, address: u64, bytes: usize) {
        let layout = self.layout(bytes).expect("it was allocated with this layout");
        // SAFETY: allocated with this layout, guard bytes before the address.
        unsafe { dealloc((address - self.guard as u64) as *mut u8, layout) };
    }

    /// Lets work use memory that somebody else allocated.
    #[cfg_attr(not(feature = "ffi"), allow(dead_code, reason = "columns of other programs"))]
    pub(super) fn borrow(&mut self, address: u64, bytes: usize) {
        let (size, times) = self.borrowed.entry(address).or_default();
        *size = bytes.max(*size);
        *times += 1;
    }

    /// The end of a borrow.
    pub(super) fn forget_borrowed(&mut self, address: u64) {
        let Some((_, times)) = self.borrowed.get_mut(&address) else { return };
        *times -= 1;
        if *times == 0 {
            self.borrowed.remove(&address);
        }
    }

    /// Looks at the guard bytes of every live allocation after a kernel.
    pub(super) fn check_guards(&mut self, kernel: &str) {
        let live: Vec<(u64, usize)> =
            self.live.iter().map(|(&address, &bytes)| (address, bytes)).collect();
        for (address, bytes) in live {
            self.check_guard(kernel, address, bytes);
        }
    }

    fn check_guard(&mut self, culprit: &str, address: u64, bytes: usize) {
        let guard = self.guard;
        // SAFETY: guards lie around every live allocation, and only a misbehaving kernel touches
        // them.
        let (before, after) = unsafe {
            (
                std::slice::from_raw_parts_mut((address as *mut u8).sub(guard), guard),
                std::slice::from_raw_parts_mut((address as *mut u8).add(bytes), guard),
            )
        };
        let overrun =
            first_other(after, GUARD_BYTE).map(|at| format!("{at} bytes past the end of"));
        let underrun = || {
            before
                .iter()
                .rposition(|&b| b != GUARD_BYTE)
                .map(|at| format!("{} bytes before", guard - at))
        };
        if let Some(place) = overrun.or_else(underrun) {
            before.fill(GUARD_BYTE);
            after.fill(GUARD_BYTE);
            self.record(culprit, || {
                format!("wrote outside an allocation: {place} the one of {bytes} bytes")
            });
        }
    }

    fn record(&mut self, kernel: &str, report: impl FnOnce() -> String) {
        if self.fault.is_none() {
            self.fault = Some((kernel.to_string(), report()));
        }
    }

    /// The fault found since the last call, if any.
    pub(super) fn take_fault(&mut self) -> Result<()> {
        match self.fault.take() {
            Some((kernel, report)) => Err(ErrorKind::Simulation { kernel, report }.into()),
            None => Ok(()),
        }
    }

    /// Whether a range lies in one live allocation.
    pub(super) fn check_range(&self, operation: &str, address: u64, bytes: usize) -> Result<()> {
        let holds = |(start, size): (u64, usize)| {
            let offset = address - start;
            offset <= size as u64 && bytes as u64 <= size as u64 - offset
        };
        let own = self.live.range(..=address).next_back().map(|(&start, &size)| (start, size));
        let borrowed =
            self.borrowed.range(..=address).next_back().map(|(&start, &(size, _))| (start, size));
        if own.is_some_and(holds) || borrowed.is_some_and(holds) {
            return Ok(());
        }
        let report = format!("{bytes} bytes at {address:#x} do not lie in one live allocation");
        Err(ErrorKind::Simulation { kernel: operation.into(), report }.into())
    }
}

impl Drop for SimMemory {
    fn drop(&mut self) {
        self.trim();
        for (address, bytes) in std::mem::take(&mut self.live) {
            self.give_back(address, bytes);
        }
    }
}

/// Index of the first byte that is not `byte`. Compares with itself shifted by one, which runs at
/// memory speed.
fn first_other(bytes: &[u8], byte: u8) -> Option<usize> {
    let (&first, rest) = bytes.split_first()?;
    if first == byte && rest == &bytes[..rest.len()] {
        return None;
    }
    bytes.iter().position(|&b| b != byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poke(address: u64, offset: isize, byte: u8) {
        // SAFETY: the tests write into allocations, freed ones held back, and guards.
        unsafe { (address as *mut u8).offset(offset).write(byte) };
    }

    fn report(memory: &mut SimMemory) -> String {
        memory.take_fault().unwrap_err().to_string()
    }

    #[test]
    fn allocations_are_aligned_poisoned_and_counted() {
        let mut memory = SimMemory::new(1000, false);
        let a = memory.alloc(600).unwrap();
        assert_eq!(a % 256, 0);
        // SAFETY: 600 live bytes.
        let bytes = unsafe { std::slice::from_raw_parts(a as *const u8, 600) };
        assert!(bytes.iter().all(|&b| b == 0xa5));
        assert_eq!(memory.free_bytes(), 400);
        assert_eq!(memory.alloc(401), None);
        memory.free(a, 600);
        assert_eq!(memory.free_bytes(), 1000);
        memory.take_fault().unwrap();
    }

    #[test]
    fn a_write_past_the_end_is_reported_once_with_its_distance() {
        let mut memory = SimMemory::new(1 << 20, false);
        let a = memory.alloc(100).unwrap();
        poke(a, 103, 1);
        memory.check_guards("k");
        let text = report(&mut memory);
        assert!(
            text.contains("kernel k")
                && text.contains("3 bytes past the end of the one of 100 bytes"),
            "{text}"
        );
        memory.check_guards("k");
        memory.take_fault().unwrap();
    }

    #[test]
    fn a_write_before_the_start_is_reported_when_freed() {
        let mut memory = SimMemory::new(1 << 20, false);
        let a = memory.alloc(100).unwrap();
        poke(a, -8, 1);
        memory.free(a, 100);
        assert!(report(&mut memory).contains("8 bytes before the one of 100 bytes"));
    }

    #[test]
    fn a_write_after_free_is_reported_when_released() {
        let mut memory = SimMemory::new(1 << 20, false);
        let a = memory.alloc(100).unwrap();
        memory.free(a, 100);
        poke(a, 7, 1);
        memory.take_fault().unwrap();
        memory.trim();
        assert!(
            report(&mut memory).contains("byte 7 of an allocation of 100 bytes after it was freed")
        );
    }

    #[test]
    fn freeing_twice_is_reported_and_harmless() {
        let mut memory = SimMemory::new(1 << 20, false);
        let a = memory.alloc(100).unwrap();
        memory.free(a, 100);
        memory.free(a, 100);
        assert!(report(&mut memory).contains("no live allocation"));
    }

    #[test]
    fn ranges_must_lie_in_one_allocation() {
        let mut memory = SimMemory::new(1 << 20, false);
        let a = memory.alloc(100).unwrap();
        memory.check_range("copy", a, 100).unwrap();
        memory.check_range("copy", a + 100, 0).unwrap();
        memory.check_range("copy", a + 40, 60).unwrap();
        assert!(memory.check_range("copy", a + 40, 61).is_err());
        assert!(memory.check_range("copy", a - 1, 1).is_err());
        assert!(memory.check_range("copy", a, usize::MAX).is_err());
    }
}
