//! Branches: streams beside the device's, for work whose results are needed later.
//!
//! ```text
//!   stream   … memory is taken │ record a │ …             │ wait for b │ use of the results
//!   branch                       wait for a │ work │ record b
//! ```
//!
//! A branch is a [`Device`] that shares memory, kernels and counters with the device. Before it
//! uses memory of the device it waits for a point of the device's stream; before the device uses
//! results of the branch it waits for a point of the branch's stream ([`Device::wait_for`]). Memory
//! taken from a branch goes back to that branch.

use std::sync::{Arc, OnceLock};

use crate::error::Result;
use crate::{Device, Event, Shared};

/// Branches of a device. While one batch waits for its longest page, the kernels of others fill the
/// device.
const BRANCHES: usize = 4;

impl Device {
    /// The branches; of a device with one stream only the device itself.
    pub fn branches(&self) -> Result<&[Device]> {
        if let Some(branches) = self.0.branches.get() {
            return Ok(branches);
        }
        let mut branches = vec![];
        for _ in 0..BRANCHES {
            let Some(driver) = self.0.driver.beside()? else { break };
            let shared = &self.0;
            shared.pool.holders.add_driver(&driver);
            branches.push(Device(Arc::new(Shared {
                driver,
                kind: shared.kind,
                pool: shared.pool.clone(),
                branches: OnceLock::new(),
                cache: shared.cache.clone(),
                by_parts: Default::default(),
                counters: shared.counters.clone(),
                profile: shared.profile.clone(),
                spill: shared.spill.clone(),
                fixed_secret: Default::default(),
                partition_rows: shared.partition_rows,
                shared_bytes: shared.shared_bytes,
                rehearsal: shared.rehearsal.clone(),
                improver: shared.improver.clone(),
                preparer: OnceLock::new(),
            })));
        }
        // Somebody else may have been faster: then these go.
        Ok(self.0.branches.get_or_init(|| branches))
    }

    /// The branch of a number, or the device where it has none.
    pub fn branch(&self, number: usize) -> Result<&Device> {
        let branches = self.branches()?;
        Ok(branches.get(number % branches.len().max(1)).unwrap_or(self))
    }

    /// Lets work that is submitted later wait for a point of another stream of this device.
    pub fn wait_for(&self, point: &Event) -> Result<()> {
        self.0.driver.wait_for(point.handle)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn branches_share_memory_and_wait_for_each_other() {
        for device in crate::memory::feed::tests::devices() {
            let buffer = device.alloc("test", 1 << 20).unwrap();
            buffer.fill(1).unwrap();
            let after = device.record().unwrap();
            let mut last = vec![];
            for number in 0..6 {
                let branch = device.branch(number).unwrap();
                branch.wait_for(&after).unwrap();
                let own = branch.alloc("test", 1 << 20).unwrap();
                own.copy_from(0, &buffer, 0, 1 << 20).unwrap();
                last.push((branch.record().unwrap(), own));
            }
            let together = device.alloc("test", 6 << 20).unwrap();
            for (number, (done, own)) in last.iter().enumerate() {
                device.wait_for(done).unwrap();
                together.copy_from(number << 20, own, 0, 1 << 20).unwrap();
            }
            let mut bytes = vec![0; 6 << 20];
            together.read(0, &mut bytes).unwrap();
            assert!(bytes.iter().all(|byte| *byte == 1));
            drop(last);
            assert_eq!(device.memory().used, 7 << 20);
        }
    }
}
