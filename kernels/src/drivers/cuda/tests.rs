use super::*;
use crate::error::ErrorKind;
use crate::{Device, MemoryLimit};

/// A GPU, or `None` with a line that says so; `WARPFRAME_REQUIRE_GPU=1` makes that a failure.
fn gpu() -> Option<Device> {
    match Device::cuda(0, MemoryLimit::Percent(50.0)) {
        Ok(device) => Some(device),
        Err(error) => {
            assert!(std::env::var_os("WARPFRAME_REQUIRE_GPU").is_none(), "{error}");
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn kernels() -> KernelSource {
    KernelSource::new(
        "driver_tests",
        "struct Add { long long* out; const long long* in; long long add; unsigned long long n; };\n\
         extern \"C\" __global__ void add_i64(Add p) {\n\
           unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;\n\
           if (i < p.n) p.out[i] = p.in[i] + p.add;\n\
         }\n\
         struct Out { long long* out; };\n\
         extern \"C\" __global__ void shared_i64(Out p) {\n\
           extern __shared__ long long part[];\n\
           unsigned dynamic; asm(\"mov.u32 %0, %%dynamic_smem_size;\" : \"=r\"(dynamic));\n\
           unsigned last = dynamic / 8 - 1;\n\
           if (threadIdx.x == 0) part[last] = last;\n\
           __syncthreads();\n\
           if (threadIdx.x == 1) *p.out = part[last];\n\
         }\n\
         extern \"C\" __global__ void fault(Out p) { *(volatile long long*)0x10 = (long long)p.out; }\n",
    )
}

fn pattern(len: usize, seed: u64) -> Vec<u8> {
    (0..len as u64)
        .map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed) >> 56) as u8)
        .collect()
}

#[test]
fn a_device_that_is_not_there_is_an_error_and_not_a_panic() {
    let error = CudaDriver::open(4096).unwrap_err();
    let ErrorKind::DeviceUnavailable { device, why } = error.kind() else { panic!("{error}") };
    assert!(device.starts_with("cuda"), "{device}");
    // Without a driver the message says what to install; with one, how many GPUs there are.
    assert!(why.contains("install") || why.contains("GPU"), "{why}");
}

#[test]
fn transfers_of_every_size_come_back_as_they_went() {
    let Some(device) = gpu() else { return };
    let mib = 1 << 20;
    for len in [1, 7, 4096, mib - 1, mib, mib + 1, 2 * mib, 5 * mib + 3, 64 * mib + 17, 300 * mib] {
        let sent = pattern(len, len as u64);
        let buffer = device.upload("test", &sent).unwrap();
        let mut back = vec![0; len];
        buffer.read(0, &mut back).unwrap();
        assert!(sent == back, "{len} bytes");
    }
}

#[test]
fn many_small_uploads_in_flight_do_not_overwrite_each_other() {
    let Some(device) = gpu() else { return };
    let each = 1000;
    let buffer = device.alloc("test", 20_000 * each).unwrap();
    for i in 0..20_000 {
        buffer.write(i * each, &pattern(each, i as u64)).unwrap();
    }
    let mut back = vec![0; buffer.len()];
    buffer.read(0, &mut back).unwrap();
    for (i, chunk) in back.chunks(each).enumerate() {
        assert!(chunk == pattern(each, i as u64), "upload {i}");
    }
}

#[test]
fn threads_share_a_device() {
    let Some(device) = gpu() else { return };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let device = &device;
            scope.spawn(move || {
                for len in [100, 3 << 20, 40 << 20] {
                    let sent = pattern(len, thread);
                    let buffer = device.upload("test", &sent).unwrap();
                    let mut back = vec![0; len];
                    buffer.read(0, &mut back).unwrap();
                    assert!(sent == back);
                }
            });
        }
    });
}

#[test]
fn kernels_launch_in_order_and_are_timed() {
    let Some(device) = gpu() else { return };
    let kernel = device.kernel(&kernels(), "add_i64").unwrap();
    let n = 100_000u64;
    let values: Vec<u8> = (0..n as i64).flat_map(i64::to_le_bytes).collect();
    let (a, b) =
        (device.upload("test", &values).unwrap(), device.alloc("test", values.len()).unwrap());
    let before = device.record().unwrap();
    for (to, from) in [(&b, &a), (&a, &b), (&b, &a)] {
        let grid = Grid { blocks: 400, threads: 256, shared: 0 };
        // SAFETY: both buffers hold `n` words.
        unsafe { device.launch(&kernel, grid, &[to.into(), from.into(), 5i64.into(), n.into()]) }
            .unwrap();
    }
    let after = device.record().unwrap();
    assert!(after.since(&before).unwrap() > 0.0);
    let words = b.read_words(0, n as usize).unwrap();
    assert!(words.iter().enumerate().all(|(i, &word)| word == i as u64 + 15));
    assert_eq!(device.launches()["add_i64"], 3);
    assert!(device.full_grid(&kernel, 256, 0).unwrap() >= device.properties().multiprocessors);
}

#[test]
fn modules_are_unloaded_behind_what_was_launched() {
    let Some(device) = gpu() else { return };
    let driver = &device.0.driver;
    let n = 50_000_000u64;
    let buffer = device.alloc_zeroed("test", n as usize * 8).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    driver.compile(&kernels(), Tier::Full, &path).unwrap();
    let image = StoredImage { bytes: std::fs::read(&path).unwrap(), path };
    for _ in 0..50 {
        let module = driver.load(&image).unwrap();
        let function = driver.function(module, "add_i64").unwrap();
        let grid = Grid { blocks: n.div_ceil(256) as u32, threads: 256, shared: 0 };
        driver.resident_blocks(function, 256, 0).unwrap();
        // SAFETY: the buffer holds `n` words.
        unsafe {
            driver.launch(function, "add_i64", grid, &[buffer.address(), buffer.address(), 1, n])
        }
        .unwrap();
        driver.unload(&[module]).unwrap();
        // SAFETY: it is refused: its module is gone.
        let refused = unsafe {
            driver.launch(function, "add_i64", grid, &[buffer.address(), buffer.address(), 1, n])
        };
        assert!(matches!(refused.unwrap_err().kind(), ErrorKind::Internal { .. }));
    }
    let words = buffer.read_words(0, n as usize).unwrap();
    assert!(words.iter().all(|&word| word == 50));
}

#[test]
fn arguments_that_do_not_fill_the_structure_are_refused() {
    let Some(device) = gpu() else { return };
    let kernel = device.kernel(&kernels(), "add_i64").unwrap();
    // SAFETY: refused before anything runs.
    let error = unsafe {
        device.launch(&kernel, Grid { blocks: 1, threads: 32, shared: 0 }, &[1u64.into()])
    };
    assert!(matches!(error.unwrap_err().kind(), ErrorKind::Compile { .. }));
}

#[test]
fn a_block_may_use_all_shared_memory() {
    let Some(device) = gpu() else { return };
    let kernel = device.kernel(&kernels(), "shared_i64").unwrap();
    let out = device.alloc_zeroed("test", 8).unwrap();
    let shared = device.properties().shared_per_block / 16 * 16;
    // SAFETY: one word is written.
    unsafe { device.launch(&kernel, Grid { blocks: 1, threads: 64, shared }, &[(&out).into()]) }
        .unwrap();
    assert_eq!(out.read_words(0, 1).unwrap(), [u64::from(shared) / 8 - 1]);
}

#[test]
fn memory_is_counted_limited_and_given_back() {
    let Some(device) = gpu() else { return };
    let gib = 1u64 << 30;
    let buffer = device.alloc("test", gib as usize).unwrap();
    assert!(device.memory().used >= gib && device.memory().reserved >= gib);
    drop(buffer);
    assert!(device.memory().reserved >= gib, "kept for reuse");
    device.trim().unwrap();
    assert!(device.memory().reserved < gib);
    // More than the device has, with the limit out of the way: the driver itself refuses.
    device.set_memory_limit(MemoryLimit::Bytes(u64::MAX));
    let error = device.alloc("test", (2 * device.properties().memory) as usize).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::OutOfDeviceMemory { operator: "test", .. }),
        "{error}"
    );
    device.upload("test", &[1, 2, 3]).unwrap();
}

#[test]
fn small_blocks_of_zeros_are_zero_however_often_they_come_back() {
    let Some(device) = gpu() else { return };
    let mut held = vec![];
    for (round, len) in
        [1, 8, 168, 257, 4096, 8192, 8193].into_iter().cycle().enumerate().take(2000)
    {
        let buffer = device.alloc_zeroed("test", len).unwrap();
        let mut bytes = vec![1; len];
        buffer.read(0, &mut bytes).unwrap();
        assert!(bytes.iter().all(|byte| *byte == 0), "{len} bytes in round {round}");
        buffer.fill(0xFF).unwrap();
        if round % 50 == 0 {
            held.push(buffer);
        }
    }
    drop(held);
    device.trim().unwrap();
    assert_eq!(device.memory().used, 0);
}

/// In a process of its own: the fault takes the context with it.
#[test]
fn a_fault_names_the_kernels_launched_since_the_last_wait() {
    const CHILD: &str = "WARPFRAME_TEST_FAULT";
    let Some(device) = gpu() else { return };
    if std::env::var_os(CHILD).is_none() {
        drop(device);
        let name = "device::cuda::tests::a_fault_names_the_kernels_launched_since_the_last_wait";
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
        return;
    }
    let kernel = device.kernel(&kernels(), "fault").unwrap();
    let out = device.alloc("test", 8).unwrap();
    // SAFETY: not safe; the fault is the point.
    unsafe { device.launch(&kernel, Grid { blocks: 1, threads: 32, shared: 0 }, &[(&out).into()]) }
        .unwrap();
    let error = device.synchronize().unwrap_err();
    let ErrorKind::Cuda { call, code } = error.kind() else { panic!("{error}") };
    assert_eq!(*call, "cuStreamSynchronize");
    assert!(code.contains("CUDA_ERROR_ILLEGAL_ADDRESS") && code.ends_with("fault"), "{code}");
    assert!(device.alloc("test", 8).is_err(), "and every later call reports it too");
}

/// Prints the rates; run with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn transfer_rates() {
    let Some(device) = gpu() else { return };
    for mib in [1usize, 4, 16, 64, 256, 1024] {
        let bytes = pattern(mib << 20, 1);
        let buffer = device.alloc("test", bytes.len()).unwrap();
        let mut back = vec![0; bytes.len()];
        let (mut up, mut down) = (f64::MAX, f64::MAX);
        for _ in 0..5 {
            let start = std::time::Instant::now();
            buffer.write(0, &bytes).unwrap();
            device.synchronize().unwrap();
            up = up.min(start.elapsed().as_secs_f64());
            let start = std::time::Instant::now();
            buffer.read(0, &mut back).unwrap();
            down = down.min(start.elapsed().as_secs_f64());
        }
        let rate = |seconds: f64| bytes.len() as f64 / seconds / 1e9;
        println!("{mib:5} MiB: up {:5.1} GB/s, down {:5.1} GB/s", rate(up), rate(down));
    }
}
