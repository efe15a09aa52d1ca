//! Device time of single kernels, and what operators decided, while somebody asks for it.

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
    /// Bytes that it was taken to move, as [`Counters::bytes_moved`](super::Counters::bytes_moved)
    /// counts them.
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

/// What an operator decided while it ran; see [`Device::take_operator_notes`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperatorNote {
    /// The operator: its pipeline, and its line of
    /// [`LazyFrame::explain`](crate::LazyFrame::explain).
    pub operator: String,
    /// The decision, and why.
    pub note: String,
}

/// What is recorded.
#[derive(Debug, Default)]
pub(super) struct Profile {
    /// While somebody asks.
    launches: Option<Vec<LaunchSpan>>,
    /// What runs now.
    operator: String,
    notes: Vec<OperatorNote>,
}

/// An operator that runs until this is dropped.
#[derive(Debug)]
#[must_use = "the operator ends when it is dropped"]
pub(crate) struct OperatorScope(Option<(Device, String)>);

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
        *self.profile() = Profile { launches: Some(vec![]), ..Profile::default() };
    }

    /// Waits, and yields the launches since [`Device::start_profile`], in order; nothing where it
    /// was not called.
    ///
    /// ```
    /// # use warpframe::device::{Device, MemoryLimit, SimOptions};
    /// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// assert!(device.take_profile()?.is_empty());
    /// # Ok::<(), warpframe::Error>(())
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
    /// use warpframe::prelude::*;
    /// let session = Session::builder().device(DeviceChoice::Sim).build()?;
    /// let device = session.device().expect("the simulator");
    /// session.register_csv("jets", "data/jets.csv")?;
    /// device.start_profile();
    /// session.sql("SELECT * FROM jets ORDER BY px")?.collect()?;
    /// device.take_profile()?;
    /// let notes = device.take_operator_notes();
    /// assert!(notes[0].operator.starts_with("pipeline 0: Sort: jets.px"));
    /// assert!(notes[0].note.starts_with("sort: by "));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn take_operator_notes(&self) -> Vec<OperatorNote> {
        std::mem::take(&mut self.profile().notes)
    }

    /// Until the scope is dropped, notes are of the operator that `name` yields. It is asked only
    /// while somebody records.
    pub(crate) fn operator(&self, name: impl FnOnce() -> String) -> OperatorScope {
        let mut profile = self.profile();
        let outer =
            profile.launches.is_some().then(|| std::mem::replace(&mut profile.operator, name()));
        OperatorScope(outer.map(|outer| (self.clone(), outer)))
    }

    /// Records what the operator that runs decided, while somebody records.
    pub(crate) fn note(&self, note: impl FnOnce() -> String) {
        let mut profile = self.profile();
        if profile.launches.is_some() {
            let operator = profile.operator.clone();
            profile.notes.push(OperatorNote { operator, note: note() });
        }
    }

    /// Runs a launch, between two recorded points where a profile is wanted.
    pub(super) fn profiled(
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
        self.0.profile.lock().unwrap_or_else(|e| e.into_inner())
    }
}
