//! What the operators' tests share: devices, data and transfers.

use std::sync::OnceLock;

use crate::{Buffer, Device, MemoryLimit, SimOptions};

/// A simulated device with a schedule.
pub(super) fn device(seed: u64) -> Device {
    Device::sim(SimOptions::with_seed(seed), MemoryLimit::Bytes(1 << 30))
        .expect("the simulator needs a C++ compiler")
}

/// A simulated device with a schedule, and a GPU where there is one.
pub(super) fn device_and_gpu(seed: u64) -> Vec<Device> {
    std::iter::once(device(seed)).chain(gpu()).collect()
}

/// Devices with several schedules, and a GPU where there is one.
pub(super) fn devices() -> Vec<Device> {
    [0, 1, 20261121].into_iter().map(device).chain(gpu()).collect()
}

/// Devices with several schedules, and a GPU where there is one, with counters that no other test
/// counts in.
pub(super) fn devices_of_its_own() -> Vec<Device> {
    [0, 1, 20261121].into_iter().map(device).chain(open_gpu()).collect()
}

/// The GPU, or `None` with a line that says so; `WARPFRAME_REQUIRE_GPU=1` makes that a failure.
pub(super) fn gpu() -> Option<Device> {
    static GPU: OnceLock<Option<Device>> = OnceLock::new();
    GPU.get_or_init(open_gpu).clone()
}

fn open_gpu() -> Option<Device> {
    match Device::cuda(0, MemoryLimit::default()) {
        Ok(device) => Some(device),
        Err(error) => {
            assert!(crate::environment::os("WARPFRAME_REQUIRE_GPU").is_none(), "{error}");
            eprintln!("no GPU, the simulator only: {error}");
            None
        }
    }
}

/// `n` reproducible random words (SplitMix64).
pub(super) fn random(seed: u64, n: usize) -> impl Iterator<Item = u64> {
    let mut state = seed.wrapping_mul(0x2545_F491_4F6C_DD1D);
    (0..n).map(move |_| {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = state;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    })
}

/// A plain value as little-endian bytes.
pub(super) trait Plain: Sized {
    fn put(&self, bytes: &mut Vec<u8>);
    fn get(bytes: &[u8]) -> Self;
}

macro_rules! plain {
    ($($t:ty),*) => {$(
        impl Plain for $t {
            fn put(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
            fn get(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().unwrap())
            }
        }
    )*};
}
plain!(u8, i8, u16, i16, u32, i32, u64, i64, u128, i128, f32, f64);

pub(super) fn upload<T: Plain>(device: &Device, values: &[T]) -> Buffer {
    let mut bytes = Vec::new();
    values.iter().for_each(|v| v.put(&mut bytes));
    device.upload("test", &bytes).unwrap()
}

pub(super) fn read<T: Plain>(buffer: &Buffer, count: usize) -> Vec<T> {
    let width = size_of::<T>();
    let mut bytes = vec![0; count * width];
    buffer.read(0, &mut bytes).unwrap();
    bytes.chunks_exact(width).map(T::get).collect()
}
