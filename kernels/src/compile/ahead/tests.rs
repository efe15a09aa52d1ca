use super::*;
use crate::error::ErrorKind;
use crate::{DeviceKind, Grid, MemoryLimit, SimOptions};

fn source(name: &str) -> KernelSource {
    KernelSource::new(
        name,
        format!(
            "#include \"prelude.cuh\"\nusing namespace wf;\nstruct {name}_p {{ u64* out; }};\n\
             WF_KERNEL({name}, {name}_p) {{ if (threadIdx.x == 0) p.out[0] = 7; }}\n"
        ),
    )
}

fn device() -> Device {
    Device::sim(SimOptions::default(), MemoryLimit::default()).expect("there is a C++ compiler")
}

#[test]
fn what_a_rehearsal_asks_for_is_there_when_the_query_asks() {
    let device = device();
    let names: Vec<String> =
        (0..4).map(|at| format!("ahead_{at}_{}", std::process::id())).collect();
    let before = device.counters();
    let mut ahead = device.ahead();
    let rehearsed = names.clone();
    let (done, wait) = std::sync::mpsc::channel();
    ahead.rehearse(move |stand_in| {
        assert!(stand_in.rehearses());
        for name in &rehearsed {
            let kernel = stand_in.kernel(&source(name), name)?;
            let out = stand_in.alloc_zeroed("test", 8)?;
            // SAFETY: nothing is launched on a stand-in.
            unsafe {
                stand_in.launch(
                    &kernel,
                    Grid { blocks: 1, threads: 32, shared: 0 },
                    &[(&out).into()],
                )?
            };
            assert_eq!((out.read_words(0, 1)?[0], out.read_word_or(0, 5)?), (0, 5));
        }
        assert_eq!(stand_in.kind(), DeviceKind::Sim);
        let _ = done.send(());
        Ok(())
    });
    wait.recv().expect("the rehearsal ends");
    while device.counters().prepared_ahead < before.prepared_ahead + 4 {
        std::thread::yield_now();
    }
    for name in &names {
        device.kernel(&source(name), name).unwrap();
    }
    drop(ahead);
    let now = device.counters();
    assert_eq!(now.memory_hits, before.memory_hits + 4, "none was compiled by who asked");
    assert_eq!(now.launches, before.launches, "a rehearsal launches nothing");
    assert_eq!(device.memory().allocations, 0);
}

#[test]
fn the_end_of_a_query_ends_its_rehearsal() {
    let device = device();
    let mut ahead = device.ahead();
    let (begun, wait) = std::sync::mpsc::channel();
    let (told, end) = std::sync::mpsc::channel();
    ahead.rehearse(move |stand_in| {
        let _ = begun.send(());
        loop {
            if let Err(error) = stand_in.kernel(&KernelSource::new("ended", "#error"), "ended") {
                assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }));
                let _ = told.send(());
                return Err(error);
            }
        }
    });
    wait.recv().expect("it begins");
    drop(ahead);
    end.recv().expect("it ended");
}

#[test]
fn a_source_that_does_not_compile_is_the_querys_to_report() {
    let device = device();
    let ahead = device.ahead();
    let broken = KernelSource::new("broken", "#error broken\n");
    ahead.ask([broken.clone(), broken.clone()]);
    let error = device.kernel(&broken, "broken").unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Compile { kernel, .. } if kernel == "broken"),
        "{error:?}"
    );
    drop(ahead);
    assert_eq!(device.counters().compilations, 0);
}
