//! Copies to the device beside its stream.
//!
//! Computing is done by one stream; bytes arrive by lanes of their own:
//!
//! ```text
//!   stream   … use of the memory │ record `after` │ …          │ wait for the copy │ kernels
//!   lane                           wait for `after`, copy bytes │ event
//! ```
//!
//! Memory that is fed belongs to the lane from `after` on until the stream waits for the copy: a
//! [`Fed`] keeps it alive so long, and waits itself where it is dropped before.
//!
//! The simulator makes such a copy only when somebody waits for it: a kernel that did not wait
//! reads poison.

use std::sync::Arc;

use crate::drivers::driver::EventHandle;
use crate::error::Result;
use crate::{Buffer, Device, Event};

/// Most bytes of one [`Device::feed`]: so many lie pinned for each lane.
pub const MOST_FED: usize = 4 << 20;
/// Lanes that bring the bus to its limit: a core fills some 5 GB/s from host memory, the bus takes
/// 55.
pub(crate) const LANES: usize = 12;

/// Bytes on their way to the device.
#[derive(Debug)]
pub struct Fed {
    event: EventHandle,
    /// Whether no stream waits for the copy yet.
    under_way: bool,
    buffer: Arc<Buffer>,
}

impl Device {
    /// Has `fill` write `len` bytes (at most [`MOST_FED`]), which are copied to `offset` of the
    /// buffer once the stream has passed `after`. May be called from several threads at once.
    ///
    /// # Errors
    /// What `fill` returns; of the driver.
    pub fn feed(
        &self,
        buffer: &Arc<Buffer>,
        offset: usize,
        len: usize,
        after: &Event,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<Fed> {
        assert!(len <= MOST_FED, "{len} bytes are fed at once");
        let to = buffer.slice(offset);
        assert!(to.len() >= len, "{len} bytes at {offset} of {}", buffer.len());
        self.0.counters.uploaded(len);
        // SAFETY: the range was checked; the buffer lives as long as what is returned, which waits
        // for the copy before it lets go.
        let event = unsafe { self.0.driver.feed(to.address(), len, after.handle, fill) }?;
        Ok(Fed { event, under_way: true, buffer: buffer.clone() })
    }
}

impl Fed {
    /// Lets work that is submitted to a device later wait for the bytes; to the buffer's own or to
    /// one of its branches.
    pub fn arrive(mut self, device: &Device) -> Result<()> {
        let waits = device.0.driver.wait_for(self.event);
        self.under_way = waits.is_err();
        waits
    }
}

impl Drop for Fed {
    fn drop(&mut self) {
        let driver = &self.buffer.device().0.driver;
        if self.under_way {
            // An error is of earlier work: the next call that can report it does.
            let _ = driver.settle(self.event);
        }
        driver.release(self.event);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn devices() -> Vec<Device> {
        let gpu = Device::cuda(0, Default::default());
        assert!(
            gpu.is_ok() || crate::environment::os("WARPFRAME_REQUIRE_GPU").is_none(),
            "{gpu:?}"
        );
        gpu.into_iter()
            .chain([Device::sim(Default::default(), Default::default()).unwrap()])
            .collect()
    }

    fn filled(byte: u8) -> impl FnMut(&mut [u8]) -> Result<()> {
        move |bytes| {
            bytes.fill(byte);
            Ok(())
        }
    }

    #[test]
    fn what_is_fed_is_there_when_it_was_waited_for() {
        for device in devices() {
            let buffer = Arc::new(device.alloc("test", 3 * MOST_FED).unwrap());
            buffer.fill(9).unwrap();
            let after = device.record().unwrap();
            let fed: Vec<Fed> = std::thread::scope(|scope| {
                let feed = |part: usize| {
                    let (device, buffer, after) = (&device, &buffer, &after);
                    scope.spawn(move || {
                        device.feed(
                            buffer,
                            part * MOST_FED,
                            MOST_FED,
                            after,
                            &mut filled(part as u8),
                        )
                    })
                };
                let parts: Vec<_> = (0..3).map(feed).collect();
                parts.into_iter().map(|part| part.join().unwrap().unwrap()).collect()
            });
            fed.into_iter().try_for_each(|fed| fed.arrive(&device)).unwrap();
            let mut bytes = vec![0; 3 * MOST_FED];
            buffer.read(0, &mut bytes).unwrap();
            assert!(bytes.iter().enumerate().all(|(at, byte)| usize::from(*byte) == at / MOST_FED));
        }
    }

    #[test]
    fn the_simulator_shows_who_does_not_wait() {
        let device = Device::sim(Default::default(), Default::default()).unwrap();
        let buffer = Arc::new(device.alloc_zeroed("test", 100).unwrap());
        let after = device.record().unwrap();
        let fed = device.feed(&buffer, 0, 100, &after, &mut filled(1)).unwrap();
        let mut bytes = [0; 100];
        buffer.read(0, &mut bytes).unwrap();
        assert_eq!(bytes, [0xA5; 100], "the copy is under way");
        fed.arrive(&device).unwrap();
        buffer.read(0, &mut bytes).unwrap();
        assert_eq!(bytes, [1; 100]);
    }

    #[test]
    fn an_error_of_who_fills_comes_back() {
        for device in devices() {
            let buffer = Arc::new(device.alloc("test", 10).unwrap());
            let after = device.record().unwrap();
            let mut fails = |_: &mut [u8]| Err(crate::error::Error::internal("filling"));
            assert!(
                device
                    .feed(&buffer, 0, 10, &after, &mut fails)
                    .unwrap_err()
                    .to_string()
                    .contains("filling")
            );
            // Its lane still works.
            device.feed(&buffer, 0, 10, &after, &mut filled(3)).unwrap().arrive(&device).unwrap();
            let mut bytes = [0; 10];
            buffer.read(0, &mut bytes).unwrap();
            assert_eq!(bytes, [3; 10]);
        }
    }

    /// GB/s by threads, and by what fills the chunks:
    /// `cargo test --release -- --ignored feed_rates --nocapture`.
    #[test]
    #[ignore = "a measurement"]
    fn feed_rates() {
        let Ok(device) = Device::cuda(0, Default::default()) else { return };
        const BYTES: usize = 1 << 30;
        let buffer = Arc::new(device.alloc("test", BYTES).unwrap());
        let from = vec![1u8; BYTES];
        for threads in [1, 2, 4, 8, 16] {
            for (what, piece, copies) in
                [("nothing", 4 << 20, false), ("copies", 4 << 20, true), ("1 MiB", 1 << 20, true)]
            {
                let mut best = f64::MAX;
                for _ in 0..4 {
                    let after = device.record().unwrap();
                    let next = std::sync::atomic::AtomicUsize::new(0);
                    let start = std::time::Instant::now();
                    std::thread::scope(|scope| {
                        let work = || {
                            let mut fed = vec![];
                            loop {
                                let at =
                                    next.fetch_add(piece, std::sync::atomic::Ordering::Relaxed);
                                if at >= BYTES {
                                    break;
                                }
                                let mut fill = |bytes: &mut [u8]| {
                                    if copies {
                                        bytes.copy_from_slice(&from[at..at + piece]);
                                    }
                                    Ok(())
                                };
                                fed.push(
                                    device.feed(&buffer, at, piece, &after, &mut fill).unwrap(),
                                );
                            }
                            fed.into_iter().try_for_each(|fed| fed.arrive(&device)).unwrap();
                        };
                        (0..threads).for_each(|_| drop(scope.spawn(work)));
                    });
                    device.synchronize().unwrap();
                    best = best.min(start.elapsed().as_secs_f64());
                }
                println!("{threads:2} threads, {what}: {:.1} GB/s", BYTES as f64 / best / 1e9);
            }
        }
    }
}
