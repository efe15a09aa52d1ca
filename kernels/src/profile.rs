//! Device time of single kernels, and what operators decided, while somebody asks for it.

use parking_lot::MutexGuard;

use crate::error::Result;
use crate::{Device, Event};

/// Device time of one launch; see [`Device::take_profile`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KernelTime {
    /// The kernel.
    pub name: String,
    /// Milliseconds from its start to its end.
    pub ms: f32,
    /// Bytes that it was taken to move, as [`Counters::bytes_moved`](crate::Counters::bytes_moved)
    /// counts them.
    pub bytes: u64,
}

/// A launch between two recorded points. The events do not own the device, which owns them.
#[derive(Debug)]
pub(crate) struct LaunchSpan {
    kernel: String,
    bytes: u64,
    start: crate::drivers::driver::EventHandle,
    end: crate::drivers::driver::EventHandle,
}

/// What an operator decided while it ran; see [`Device::take_operator_notes`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperatorNote {
    /// The operator: its pipeline, and its line of `LazyFrame::explain`.
    pub operator: String,
    /// The decision, and why.
    pub note: String,
}

/// What is recorded.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    /// While somebody asks.
    launches: Option<Vec<LaunchSpan>>,
    /// What runs now.
    operator: String,
    notes: Vec<OperatorNote>,
}

/// An operator that runs until this is dropped.
#[derive(Debug)]
#[must_use = "the operator ends when it is dropped"]
pub struct OperatorScope(Option<(Device, String)>);

impl Drop for OperatorScope {
    fn drop(&mut self) {
        if let Some((device, outer)) = self.0.take() {
            device.profile().operator = outer;
        }
    }
}

impl Device {
    /// From now on records the time of every launch, and what operators decide, until
    /// [`Device::take_profile`].
    ///
    /// ```
    /// use warpframe_device::{Device, MemoryLimit, SimOptions, ops::scan::exclusive_scan_u32};
    /// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// let counts = device.upload("counts", &[1, 0, 0, 0, 2, 0, 0, 0])?;
    /// device.start_profile();
    /// let before = device.counters().launches;
    /// exclusive_scan_u32(&device, &counts, 2)?;
    /// let launches = device.counters().launches - before;
    /// assert!(launches > 0);
    /// assert_eq!(device.take_profile()?.len() as u64, launches);
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub fn start_profile(&self) {
        *self.profile() = Profile { launches: Some(vec![]), ..Profile::default() };
    }

    /// Waits, and yields the launches since [`Device::start_profile`], in order; nothing where it
    /// was not called.
    ///
    /// ```
    /// # use warpframe_device::{Device, MemoryLimit, SimOptions};
    /// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// assert!(device.take_profile()?.is_empty());
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub fn take_profile(&self) -> Result<Vec<KernelTime>> {
        let spans = self.profile().launches.take().unwrap_or_default();
        let event = |handle| Event { device: self.clone(), handle };
        let spans: Vec<_> =
            spans.into_iter().map(|s| (s.kernel, s.bytes, event(s.start), event(s.end))).collect();
        let time = |(name, bytes, start, end): (_, _, _, Event)| {
            Ok(KernelTime { name, bytes, ms: end.since(&start)? })
        };
        spans.into_iter().map(time).collect()
    }

    /// What operators decided since [`Device::start_profile`] until [`Device::take_profile`], in
    /// order.
    ///
    /// ```
    /// use warpframe_device::{Device, MemoryLimit, SimOptions};
    /// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// device.start_profile();
    /// let operator = device.operator(|| "Sort: px".into());
    /// device.note(|| "sort: by radix".into());
    /// drop(operator);
    /// device.take_profile()?;
    /// let notes = device.take_operator_notes();
    /// assert_eq!(notes[0].operator, "Sort: px");
    /// assert_eq!(notes[0].note, "sort: by radix");
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub fn take_operator_notes(&self) -> Vec<OperatorNote> {
        std::mem::take(&mut self.profile().notes)
    }

    /// Until the scope is dropped, notes are of the operator that `name` yields. It is asked only
    /// while somebody records.
    pub fn operator(&self, name: impl FnOnce() -> String) -> OperatorScope {
        let mut profile = self.profile();
        let outer =
            profile.launches.is_some().then(|| std::mem::replace(&mut profile.operator, name()));
        OperatorScope(outer.map(|outer| (self.clone(), outer)))
    }

    /// Records what the operator that runs decided, while somebody records.
    pub fn note(&self, note: impl FnOnce() -> String) {
        let mut profile = self.profile();
        if profile.launches.is_some() {
            let operator = profile.operator.clone();
            profile.notes.push(OperatorNote { operator, note: note() });
        }
    }

    /// Runs a launch, between two recorded points where a profile is wanted.
    pub(crate) fn profiled(
        &self,
        kernel: &str,
        bytes: u64,
        launch: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if self.profile().launches.is_none() {
            return launch();
        }
        let start = self.0.driver.record()?;
        launch()?;
        let end = self.0.driver.record()?;
        match &mut self.profile().launches {
            Some(spans) => spans.push(LaunchSpan { kernel: kernel.into(), bytes, start, end }),
            None => [start, end].into_iter().for_each(|event| self.0.driver.release(event)),
        }
        Ok(())
    }

    fn profile(&self) -> MutexGuard<'_, Profile> {
        self.0.profile.lock()
    }
}
