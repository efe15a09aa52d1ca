//! Device time of single kernels, while somebody asks for it.

use std::sync::MutexGuard;

use super::{Device, Event};
use crate::error::Result;

/// Device time of one launch; see [`Device::take_profile`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KernelTime {
    /// The kernel.
    pub name: String,
    /// Milliseconds from its start to its end.
    pub ms: f32,
    /// Bytes that it was taken to move, as [`Counters::bytes_moved`](super::Counters::bytes_moved) counts them.
    pub bytes: u64,
}

/// A launch between two recorded points. The events do not own the device, which owns them.
#[derive(Debug)]
pub(super) struct LaunchSpan {
    kernel: String,
    bytes: u64,
    start: super::driver::EventHandle,
    end: super::driver::EventHandle,
}

impl Device {
    /// From now on records the time of every launch, until [`Device::take_profile`].
    ///
    /// ```
    /// use warpframe::prelude::*;
    /// let session = Session::builder().device(DeviceChoice::Sim).build()?;
    /// let device = session.device().expect("the simulator");
    /// let jets = session.read_csv("data/jets.csv")?;
    /// device.start_profile();
    /// let before = device.counters().launches;
    /// jets.filter(col("E").gt(lit(100)))?;
    /// let launches = device.counters().launches - before;
    /// assert!(launches > 0);
    /// assert_eq!(device.take_profile()?.len() as u64, launches);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn start_profile(&self) {
        *self.spans() = Some(vec![]);
    }

    /// Waits, and yields the launches since [`Device::start_profile`], in order; nothing where it was not called.
    ///
    /// ```
    /// # use warpframe::device::{Device, MemoryLimit, SimOptions};
    /// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// assert!(device.take_profile()?.is_empty());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn take_profile(&self) -> Result<Vec<KernelTime>> {
        let spans = self.spans().take().unwrap_or_default();
        let event = |handle| Event { device: self.clone(), handle };
        let spans: Vec<_> = spans.into_iter().map(|s| (s.kernel, s.bytes, event(s.start), event(s.end))).collect();
        let time = |(name, bytes, start, end): (_, _, _, Event)| Ok(KernelTime { name, bytes, ms: end.since(&start)? });
        spans.into_iter().map(time).collect()
    }

    /// Runs a launch, between two recorded points where a profile is wanted.
    pub(super) fn profiled(&self, kernel: &str, bytes: u64, launch: impl FnOnce() -> Result<()>) -> Result<()> {
        if self.spans().is_none() {
            return launch();
        }
        let start = self.0.driver.record()?;
        launch()?;
        let end = self.0.driver.record()?;
        match &mut *self.spans() {
            Some(spans) => spans.push(LaunchSpan { kernel: kernel.into(), bytes, start, end }),
            None => [start, end].into_iter().for_each(|event| self.0.driver.release(event)),
        }
        Ok(())
    }

    fn spans(&self) -> MutexGuard<'_, Option<Vec<LaunchSpan>>> {
        self.0.profile.lock().unwrap_or_else(|e| e.into_inner())
    }
}
