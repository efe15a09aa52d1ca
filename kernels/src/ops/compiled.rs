//! Every hand-written kernel compiles for real GPUs, here where NVRTC is, though no GPU be.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::compile_for;
use crate::cores::cores;
use crate::error::ErrorKind;

#[test]
fn every_kernel_compiles_for_each_architecture() {
    let dir = tempfile::tempdir().unwrap();
    let mut tasks = Vec::new();
    for (number, source) in super::sources().iter().enumerate() {
        let path = dir.path().join(format!("{}-{number}.cu", source.name));
        std::fs::write(&path, &source.text).unwrap();
        tasks.extend(["sm_80", "sm_90"].map(|architecture| (path.clone(), architecture)));
    }
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((path, architecture)) = tasks.get(next.fetch_add(1, Relaxed)) {
            match compile_for(path, architecture) {
                Ok(report) => {
                    for kernel in report.kernels {
                        println!(
                            "{architecture} {:>3} registers, {:>4} bytes spilled, {:>5} shared  {}",
                            kernel.registers, kernel.spill_stores, kernel.shared, kernel.name
                        );
                    }
                }
                Err(error) => failures.lock().push(error),
            }
        }
    };
    std::thread::scope(|scope| {
        // NVRTC is copied where two threads wait for it: with more threads than cores all cores
        // compile.
        for _ in 0..cores() + 2 {
            scope.spawn(work);
        }
    });
    let failures = failures.into_inner();
    let missing =
        failures.iter().find(|error| matches!(error.kind(), ErrorKind::DeviceUnavailable { .. }));
    if let Some(missing) =
        missing.filter(|_| crate::environment::os("WARPFRAME_REQUIRE_NVRTC").is_none())
    {
        eprintln!("skipped: {missing}");
        return;
    }
    let texts: Vec<_> = failures.iter().map(ToString::to_string).collect();
    assert!(texts.is_empty(), "{}", texts.join("\n"));
}
