//! Memory of DataFusion's CPU engine: a limit, and files for what exceeds it.
//!
//! The limit is shared out evenly among the operators that can spill ([`SharedOut`]). Each
//! partition of a sort or an aggregation is such an operator: where the first to ask took all
//! (DataFusion's `GreedyMemoryPool`), the others could not hold a single batch, and would fail
//! instead of spilling. A quarter is left to operators that cannot spill: those that merge what
//! sorts yield ask when the sorts have taken their shares (as of DataFusion's `FairSpillPool`,
//! which leaves nothing).

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit as PoolLimit, MemoryPool, MemoryReservation,
};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::prelude::SessionConfig;
use parking_lot::{Mutex, MutexGuard};

use crate::error::{Error, Result};
use warpframe_device::{MemoryLimit, SpillBounds};

/// Most memory of the CPU engine in per cent of the machine's, unless somebody says otherwise: the
/// rest is for results, batches between operators and file caches, which nobody counts.
const SHARE: f64 = 75.0;

/// What the CPU engine may use.
#[derive(Debug, Clone, Default)]
pub(super) struct HostResources {
    pub(super) limit: Option<MemoryLimit>,
    /// Where files go; the system's folder for temporary ones otherwise.
    pub(super) spill_dir: Option<PathBuf>,
    /// Most bytes of all files at once; DataFusion's choice otherwise.
    pub(super) spill_limit: Option<u64>,
}

impl HostResources {
    /// The limit in bytes; `None` where the system does not tell what the machine has.
    fn bytes(&self) -> Option<usize> {
        let bytes = match self.limit.unwrap_or(MemoryLimit::Percent(SHARE)) {
            MemoryLimit::Bytes(bytes) => bytes,
            MemoryLimit::Percent(share) => {
                (machine_memory()? as f64 * share.clamp(0.0, 100.0) / 100.0) as u64
            }
        };
        Some(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// What queries run in.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`] of a folder that cannot be made.
    pub(super) fn runtime(&self) -> Result<Arc<RuntimeEnv>> {
        let mut files = DiskManagerBuilder::default();
        if let Some(folder) = &self.spill_dir {
            // Here, where its name is known.
            std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
            files.set_mode(DiskManagerMode::Directories(vec![folder.clone()]));
        }
        if let Some(bytes) = self.spill_limit {
            files.set_max_temp_directory_size(bytes);
        }
        let mut runtime = RuntimeEnvBuilder::new().with_disk_manager_builder(files);
        if let Some(bytes) = self.bytes() {
            runtime = runtime
                .with_memory_pool(Arc::new(SharedOut { limit: bytes, shares: Mutex::default() }));
        }
        Ok(runtime.build_arc()?)
    }

    /// What the rows of divided plans may take on the host, apart from the CPU engine.
    pub(super) fn spill_bounds(&self) -> SpillBounds {
        /// Most bytes of files, as of the CPU engine's.
        const FILES: u64 = 100 << 30;
        SpillBounds {
            memory: self.bytes().map_or(u64::MAX, |bytes| bytes as u64),
            files: self.spill_limit.unwrap_or(FILES),
            folder: self.spill_dir.clone().unwrap_or_else(std::env::temp_dir),
        }
    }

    /// Fits what operators reserve ahead to a small limit.
    pub(super) fn configure(&self, config: SessionConfig) -> SessionConfig {
        /// Part of the limit that sorts may reserve for merging what they spilled.
        const RESERVED: usize = 8;
        let Some(bytes) = self.bytes() else { return config };
        let each = bytes / RESERVED / config.target_partitions().max(1);
        let usual = config.options().execution.sort_spill_reservation_bytes;
        config.with_sort_spill_reservation_bytes(usual.min(each))
    }
}

/// A limit that operators share.
#[derive(Debug)]
struct SharedOut {
    limit: usize,
    shares: Mutex<Shares>,
}

/// What operators have of a limit.
#[derive(Debug, Default)]
struct Shares {
    /// How many operators can spill.
    spilling: usize,
    /// Bytes that they have.
    spillable: usize,
    /// Bytes that the others have.
    fixed: usize,
}

impl Shares {
    fn of(&mut self, consumer: &MemoryConsumer) -> &mut usize {
        if consumer.can_spill() { &mut self.spillable } else { &mut self.fixed }
    }
}

impl SharedOut {
    /// Part of the limit that is left to operators that cannot spill; twice what sorts reserve of
    /// it ([`HostResources::configure`]).
    const FIXED: usize = 4;

    fn shares(&self) -> MutexGuard<'_, Shares> {
        self.shares.lock()
    }
}

impl fmt::Display for SharedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, shared out", self.limit)
    }
}

impl MemoryPool for SharedOut {
    fn name(&self) -> &str {
        "shared out"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.shares().spilling += usize::from(consumer.can_spill());
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.shares().spilling -= usize::from(consumer.can_spill());
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        *self.shares().of(reservation.consumer()) += additional;
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        *self.shares().of(reservation.consumer()) -= shrink;
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> PlanResult<()> {
        let (mut shares, consumer) = (self.shares(), reservation.consumer());
        let free = self.limit.saturating_sub(shares.spillable + shares.fixed);
        let may = match consumer.can_spill() {
            true => {
                let others = shares.fixed.max(self.limit / Self::FIXED);
                let share = self.limit.saturating_sub(others) / shares.spilling.max(1);
                share.saturating_sub(reservation.size()).min(free)
            }
            false => free,
        };
        if additional > may {
            let (name, has) = (consumer.name(), reservation.size());
            let account = format!(
                "{name} has {has} bytes and asked for {additional} more, of which {may} are free"
            );
            return Err(DataFusionError::ResourcesExhausted(account));
        }
        *shares.of(consumer) += additional;
        Ok(())
    }

    fn reserved(&self) -> usize {
        let shares = self.shares();
        shares.spillable + shares.fixed
    }

    fn memory_limit(&self) -> PoolLimit {
        PoolLimit::Finite(self.limit)
    }
}

/// Bytes of memory that this process can have: the machine's, or what its control group has of it.
fn machine_memory() -> Option<u64> {
    let total = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| of_meminfo(&text))?;
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let of_group = |path: &&str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    Some(groups.iter().filter_map(of_group).fold(total, u64::min))
}

/// Linux says "MemTotal:       65842156 kB".
fn of_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_bytes_or_a_share_of_what_the_machine_has() {
        assert_eq!(
            of_meminfo("MemTotal:       65842156 kB\nMemFree: 1 kB\n"),
            Some(65842156 << 10)
        );
        assert_eq!(of_meminfo("MemFree: 1 kB"), None);
        let of = |limit| HostResources { limit, ..HostResources::default() }.bytes();
        assert_eq!(of(Some(MemoryLimit::Bytes(1 << 20))), Some(1 << 20));
        if let Some(all) = machine_memory() {
            assert_eq!(of(None), Some((all as f64 * 0.75) as usize));
            assert_eq!(of(Some(MemoryLimit::Percent(100.0))), Some(all as usize));
        }
    }

    #[test]
    fn operators_that_spill_have_equal_shares_and_leave_some_to_the_others() {
        let pool: Arc<dyn MemoryPool> =
            Arc::new(SharedOut { limit: 800, shares: Mutex::default() });
        let sort = |number: usize| {
            MemoryConsumer::new(format!("sort {number}")).with_can_spill(true).register(&pool)
        };
        let (first, second) = (sort(1), sort(2));
        assert!(
            first.try_grow(300).is_ok()
                && first.try_grow(1).is_err()
                && second.try_grow(300).is_ok()
        );
        let merge = MemoryConsumer::new("merge").register(&pool);
        assert!(merge.try_grow(200).is_ok());
        let refused = merge.try_grow(1).unwrap_err();
        assert!(
            matches!(&refused, DataFusionError::ResourcesExhausted(_)),
            "operators that spill look for it"
        );
        assert!(
            refused
                .to_string()
                .contains("merge has 200 bytes and asked for 1 more, of which 0 are free")
        );
        drop(second);
        assert_eq!(pool.reserved(), 500);
        assert!(
            first.try_grow(300).is_ok() && first.try_grow(1).is_err(),
            "alone it has all but the quarter"
        );
        first.shrink(500);
        assert!(merge.try_grow(500).is_ok() && first.try_grow(1).is_err());
        drop((first, merge));
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn sorts_reserve_no_more_than_a_small_limit_has() {
        let config = || SessionConfig::new().with_target_partitions(4);
        let reserved = |bytes| {
            let limit = Some(MemoryLimit::Bytes(bytes));
            let config = HostResources { limit, ..HostResources::default() }.configure(config());
            config.options().execution.sort_spill_reservation_bytes
        };
        assert_eq!(reserved(32 << 20), 1 << 20);
        assert_eq!(reserved(1 << 40), config().options().execution.sort_spill_reservation_bytes);
    }
}
