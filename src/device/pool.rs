//! Accounting of device memory: a limit, and what is in use.

use std::sync::Mutex;

use super::driver::Driver;
use crate::error::{ErrorKind, Result};

/// Most device memory a device's pool may have in use.
///
/// Parsed from `"2GiB"`, `"500MB"`, `"1073741824"` (bytes) or `"80%"` (of the device's memory).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MemoryLimit {
    /// Bytes.
    Bytes(u64),
    /// Share of the device's memory, in per cent.
    Percent(f64),
}

impl Default for MemoryLimit {
    /// `WARPFRAME_MEMORY_LIMIT` where set and valid, else 90%.
    fn default() -> Self {
        std::env::var("WARPFRAME_MEMORY_LIMIT").ok().and_then(|s| s.parse().ok()).unwrap_or(MemoryLimit::Percent(90.0))
    }
}

impl std::str::FromStr for MemoryLimit {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            crate::Error::from(ErrorKind::Parse {
                path: None,
                line: 0,
                column: 0,
                message: format!(
                    "memory limit {text:?}: expected bytes such as 2GiB or 500MB, or per cent such as 80%"
                ),
            })
        };
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
        let number: f64 = trimmed[..digits].parse().map_err(|_| bad())?;
        let factor = match trimmed[digits..].trim().to_ascii_lowercase().as_str() {
            "%" if number > 0.0 && number <= 100.0 => return Ok(MemoryLimit::Percent(number)),
            "" | "b" => 1.0,
            "kb" => 1e3,
            "mb" => 1e6,
            "gb" => 1e9,
            "kib" | "k" => 1024.0,
            "mib" | "m" => 1024.0 * 1024.0,
            "gib" | "g" => 1024.0 * 1024.0 * 1024.0,
            _ => return Err(bad()),
        };
        if number <= 0.0 { Err(bad()) } else { Ok(MemoryLimit::Bytes((number * factor) as u64)) }
    }
}

/// Use of a device's memory, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// In live allocations.
    pub used: u64,
    /// Taken from the device: in live allocations, or kept for the next ones until [`Device::trim`].
    ///
    /// [`Device::trim`]: super::Device::trim
    pub reserved: u64,
    /// Most that was in use at once.
    pub peak: u64,
    /// The pool's limit.
    pub limit: u64,
    /// Live allocations.
    pub allocations: u64,
}

#[derive(Debug)]
pub(super) struct Pool {
    memory: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    usage: MemoryUse,
    fail_after: Option<u64>,
}

impl Pool {
    pub(super) fn new(limit: MemoryLimit, memory: u64) -> Self {
        let pool = Pool { memory, state: Mutex::new(State { usage: MemoryUse::default(), fail_after: None }) };
        pool.set_limit(limit);
        pool
    }

    pub(super) fn set_limit(&self, limit: MemoryLimit) {
        let bytes = match limit {
            MemoryLimit::Bytes(bytes) => bytes,
            MemoryLimit::Percent(share) => (self.memory as f64 * share / 100.0) as u64,
        };
        self.lock().usage.limit = bytes;
    }

    pub(super) fn usage(&self, driver: &dyn Driver) -> MemoryUse {
        let usage = self.lock().usage;
        MemoryUse { reserved: driver.reserved_memory().unwrap_or(usage.used), ..usage }
    }

    pub(super) fn reset_peak(&self) {
        let usage = &mut self.lock().usage;
        usage.peak = usage.used;
    }

    pub(super) fn fail_after(&self, successes: u64) {
        self.lock().fail_after = Some(successes);
    }

    pub(super) fn alloc(&self, driver: &dyn Driver, operator: &'static str, bytes: usize) -> Result<u64> {
        let asked = bytes as u64;
        let mut state = self.lock();
        let injected = match &mut state.fail_after {
            Some(0) => {
                state.fail_after = None;
                true
            }
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        };
        let usage = state.usage;
        let refuse = |free: u64| -> crate::Error {
            ErrorKind::OutOfDeviceMemory { operator, asked, free, limit: usage.limit }.into()
        };
        if injected || usage.used.saturating_add(asked) > usage.limit {
            return Err(refuse(usage.limit.saturating_sub(usage.used)));
        }
        let Some(address) = driver.alloc(bytes)? else {
            return Err(refuse(driver.free_memory()?));
        };
        let usage = &mut state.usage;
        usage.used += asked;
        usage.peak = usage.peak.max(usage.used);
        usage.allocations += 1;
        Ok(address)
    }

    /// # Safety
    /// `address` came from `alloc` of this pool with the same `bytes` and is not used by work submitted later.
    pub(super) unsafe fn free(&self, driver: &dyn Driver, address: u64, bytes: usize) {
        let mut state = self.lock();
        state.usage.used -= bytes as u64;
        state.usage.allocations -= 1;
        // SAFETY: the caller's promise is the driver's demand.
        unsafe { driver.free(address, bytes) };
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}
