//! Accounting of device memory: a limit, and what is in use. Where an allocation is refused, what
//! is cached makes room for it (`room.rs`).

use parking_lot::Mutex;

use crate::drivers::driver::Driver;
use crate::error::{ErrorKind, Result};
use crate::memory::room::Holders;

/// Most device memory a device's pool may have in use.
///
/// Parsed from `"2GiB"`, `"500MB"`, `"1073741824"` (bytes) or `"80%"` (of the device's memory).
///
/// ```
/// use warpframe_device::ErrorKind;
/// use warpframe_device::MemoryLimit;
///
/// assert_eq!("1.5 GiB".parse::<MemoryLimit>()?, MemoryLimit::Bytes(3 << 29));
/// assert_eq!("500MB".parse::<MemoryLimit>()?, MemoryLimit::Bytes(500_000_000));
/// assert_eq!("80%".parse::<MemoryLimit>()?, MemoryLimit::Percent(80.0));
/// let error = "much".parse::<MemoryLimit>().unwrap_err();
/// assert!(matches!(error.kind(), ErrorKind::Setting { .. }));
/// # Ok::<(), warpframe_device::Error>(())
/// ```
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
        crate::environment::text("WARPFRAME_MEMORY_LIMIT")
            .ok()
            .and_then(|s| s.parse().ok())
            .unwrap_or(MemoryLimit::Percent(90.0))
    }
}

impl std::str::FromStr for MemoryLimit {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            crate::Error::from(ErrorKind::Setting {
                message: format!(
                    "memory limit {text:?}: expected bytes such as 2GiB or 500MB, or per cent such as 80%"
                ),
            })
        };
        let trimmed = text.trim();
        let digits =
            trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
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
        if number * factor < 1.0 {
            Err(bad())
        } else {
            Ok(MemoryLimit::Bytes((number * factor) as u64))
        }
    }
}

/// Use of a device's memory, in bytes.
///
/// ```
/// use warpframe_device::{Device, MemoryLimit, SimOptions};
///
/// let device = Device::sim(SimOptions::default(), MemoryLimit::Bytes(1 << 20))?;
/// let memory = device.memory();
/// assert_eq!((memory.used, memory.peak, memory.allocations, memory.limit), (0, 0, 0, 1 << 20));
/// # Ok::<(), warpframe_device::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// In live allocations.
    pub used: u64,
    /// Taken from the device: in live allocations, or kept for the next ones until
    /// [`Device::trim`].
    ///
    /// [`Device::trim`]: crate::Device::trim
    pub reserved: u64,
    /// Most that was in use at once.
    pub peak: u64,
    /// The pool's limit.
    pub limit: u64,
    /// Live allocations.
    pub allocations: u64,
    /// Of the bytes in use, those of columns of files and of kept tables that no query uses: they
    /// go, or move to the host, where others want the room. An estimate where buffers are shared.
    pub evictable: u64,
}

#[derive(Debug)]
pub(crate) struct Pool {
    memory: u64,
    state: Mutex<PoolState>,
    pub(crate) holders: Holders,
}

/// Why there is no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// A test wants it so.
    Injected,
    /// So many bytes would be beyond the limit.
    Limit { beyond: u64 },
    /// The driver has none.
    Driver,
}

#[derive(Debug)]
struct PoolState {
    usage: MemoryUse,
    fail_after: Option<u64>,
}

impl Pool {
    pub(crate) fn new(limit: MemoryLimit, memory: u64) -> Self {
        let state = Mutex::new(PoolState { usage: MemoryUse::default(), fail_after: None });
        let pool = Pool { memory, state, holders: Holders::default() };
        pool.set_limit(limit);
        pool
    }

    pub(crate) fn set_limit(&self, limit: MemoryLimit) {
        let bytes = match limit {
            MemoryLimit::Bytes(bytes) => bytes,
            MemoryLimit::Percent(share) => {
                (self.memory as f64 * share.clamp(0.0, 100.0) / 100.0) as u64
            }
        };
        self.state.lock().usage.limit = bytes;
    }

    pub(crate) fn limit(&self) -> u64 {
        self.state.lock().usage.limit
    }

    pub(crate) fn usage(&self, driver: &dyn Driver) -> MemoryUse {
        let usage = self.state.lock().usage;
        let reserved = driver.reserved_memory().unwrap_or(usage.used);
        MemoryUse { reserved, evictable: self.holders.evictable(), ..usage }
    }

    pub(crate) fn reset_peak(&self) {
        let usage = &mut self.state.lock().usage;
        usage.peak = usage.used;
    }

    pub(crate) fn fail_after(&self, successes: u64) {
        self.state.lock().fail_after = Some(successes);
    }

    /// Bytes that can still be allocated.
    pub(crate) fn free_bytes(&self, driver: &dyn Driver) -> Result<u64> {
        let usage = self.state.lock().usage;
        Ok(usage.limit.saturating_sub(usage.used).min(driver.free_memory()?))
    }

    /// Has `ask` allocate so many bytes, once there is room for them.
    pub(crate) fn alloc(
        &self,
        driver: &dyn Driver,
        operator: &'static str,
        bytes: usize,
        ask: impl Fn(&dyn Driver, usize) -> Result<Option<u64>>,
    ) -> Result<u64> {
        let asked = bytes as u64;
        let mut trimmed = false;
        loop {
            let refusal = match self.try_alloc(driver, bytes, &ask)? {
                Ok(address) => return Ok(address),
                Err(refusal) => refusal,
            };
            // Outside of the pool's lock: what goes takes it.
            let more = match refusal {
                Refusal::Injected => false,
                Refusal::Limit { .. } if asked > self.state.lock().usage.limit => false,
                Refusal::Limit { beyond } => self.holders.evict_for(beyond)?,
                // What other streams keep of freed memory.
                Refusal::Driver if !trimmed => {
                    self.holders.trim()?;
                    trimmed = true;
                    true
                }
                Refusal::Driver => {
                    trimmed = false;
                    self.holders.evict_for(asked)?
                }
            };
            if !more {
                return Err(self.out_of_memory(driver, operator, asked, refusal)?);
            }
        }
    }

    fn try_alloc(
        &self,
        driver: &dyn Driver,
        bytes: usize,
        ask: impl Fn(&dyn Driver, usize) -> Result<Option<u64>>,
    ) -> Result<Result<u64, Refusal>> {
        let asked = bytes as u64;
        let mut state = self.state.lock();
        match &mut state.fail_after {
            Some(0) => {
                state.fail_after = None;
                return Ok(Err(Refusal::Injected));
            }
            Some(left) => *left -= 1,
            None => {}
        }
        let usage = state.usage;
        let after = usage.used.saturating_add(asked);
        if after > usage.limit {
            return Ok(Err(Refusal::Limit { beyond: after - usage.limit }));
        }
        let Some(address) = ask(driver, bytes)? else { return Ok(Err(Refusal::Driver)) };
        let usage = &mut state.usage;
        usage.used = after;
        usage.peak = usage.peak.max(usage.used);
        usage.allocations += 1;
        Ok(Ok(address))
    }

    fn out_of_memory(
        &self,
        driver: &dyn Driver,
        operator: &'static str,
        asked: u64,
        refusal: Refusal,
    ) -> Result<crate::Error> {
        let MemoryUse { used, limit, .. } = self.state.lock().usage;
        let free = match refusal {
            Refusal::Driver => driver.free_memory()?,
            Refusal::Injected | Refusal::Limit { .. } => limit.saturating_sub(used),
        };
        let held = self.holders.held();
        let (cached, kept) = (held.cached, held.kept);
        Ok(ErrorKind::OutOfDeviceMemory { operator, asked, free, limit, used, cached, kept }.into())
    }

    /// # Safety
    /// `address` came from `alloc` of this pool with the same `bytes` and is not used by work
    /// submitted later.
    pub(crate) unsafe fn free(&self, driver: &dyn Driver, address: u64, bytes: usize) {
        let mut state = self.state.lock();
        state.usage.used -= bytes as u64;
        state.usage.allocations -= 1;
        // SAFETY: the caller's promise is the driver's demand.
        unsafe { driver.free(address, bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::fake::{Fake, MEMORY};

    /// What an error of an allocation says: bytes asked, free, and the limit.
    fn refused(result: Result<u64>) -> (u64, u64, u64) {
        match result.expect_err("refused").kind() {
            ErrorKind::OutOfDeviceMemory { operator: "sort", asked, free, limit, .. } => {
                (*asked, *free, *limit)
            }
            other => panic!("{other:?}"),
        }
    }

    fn alloc(pool: &Pool, driver: &Fake, bytes: usize) -> Result<u64> {
        pool.alloc(driver, "sort", bytes, |driver, bytes| driver.alloc(bytes))
    }

    fn free(pool: &Pool, driver: &Fake, address: u64, bytes: usize) {
        // SAFETY: the fake's addresses lead nowhere.
        unsafe { pool.free(driver, address, bytes) };
    }

    #[test]
    fn use_peak_and_allocations_follow_what_is_live() {
        let (driver, pool) = (Fake::new(), Pool::new(MemoryLimit::Percent(50.0), MEMORY));
        let a = alloc(&pool, &driver, 100).unwrap();
        let b = alloc(&pool, &driver, 200).unwrap();
        free(&pool, &driver, a, 100);
        let usage = pool.usage(&driver);
        let expected = MemoryUse {
            used: 200,
            reserved: 200,
            peak: 300,
            limit: MEMORY / 2,
            allocations: 1,
            evictable: 0,
        };
        assert_eq!(usage, expected);
        pool.reset_peak();
        assert_eq!(pool.usage(&driver).peak, 200);
        free(&pool, &driver, b, 200);
        assert_eq!(pool.usage(&driver).used, 0);
    }

    #[test]
    fn an_allocation_beyond_the_limit_is_refused_and_the_pool_stays_usable() {
        let (driver, pool) = (Fake::new(), Pool::new(MemoryLimit::Bytes(400), MEMORY));
        let a = alloc(&pool, &driver, 300).unwrap();
        assert_eq!(refused(alloc(&pool, &driver, 101)), (101, 100, 400));
        assert_eq!(refused(alloc(&pool, &driver, usize::MAX)), (u64::MAX, 100, 400));
        alloc(&pool, &driver, 100).unwrap();
        free(&pool, &driver, a, 300);
        alloc(&pool, &driver, 300).unwrap();
        pool.set_limit(MemoryLimit::Bytes(10));
        assert_eq!(refused(alloc(&pool, &driver, 1)), (1, 0, 10), "what is in use stays");
    }

    #[test]
    fn an_allocation_beyond_the_device_is_refused_with_what_the_driver_says_is_free() {
        let (driver, pool) = (Fake::new(), Pool::new(MemoryLimit::Bytes(1 << 20), MEMORY));
        alloc(&pool, &driver, 600).unwrap();
        assert_eq!(refused(alloc(&pool, &driver, 500)), (500, MEMORY - 600, 1 << 20));
        assert_eq!(pool.usage(&driver).used, 600);
    }

    #[test]
    fn the_injected_failure_comes_once_and_after_the_successes() {
        let (driver, pool) = (Fake::new(), Pool::new(MemoryLimit::Percent(100.0), MEMORY));
        pool.fail_after(2);
        for fails in [false, false, true, false, false] {
            assert_eq!(alloc(&pool, &driver, 1).is_err(), fails);
        }
    }

    #[test]
    fn limits_parse_in_every_unit_and_nothing_else_does() {
        let parse = |text: &str| text.parse::<MemoryLimit>();
        for (text, bytes) in
            [("7", 7), (" 7 b ", 7), ("2k", 2048), ("3 MB", 3_000_000), ("1.5gib", 3 << 29)]
        {
            assert_eq!(parse(text).unwrap(), MemoryLimit::Bytes(bytes), "{text}");
        }
        assert_eq!(parse("0.5 %").unwrap(), MemoryLimit::Percent(0.5));
        for text in [
            "", "GiB", "0", "0.5", "0%", "101%", "-1", "-5%", "1.2.3", "5 apples", "1e9", "NaN",
            "inf", "é",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
