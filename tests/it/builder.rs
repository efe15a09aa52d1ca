//! Making a session: which device, how strict, how much memory; from the builder and from the
//! environment.

use std::process::Command;

use warpframe::device::MemoryLimit;
use warpframe::prelude::*;
use warpframe::{Error, ErrorKind};

use crate::differential::{Pair, builder, run};
use crate::tables::Shape;

/// Says what a session of the environment is like; run by the other tests in a process of its own.
#[test]
fn session_of_the_environment() {
    if std::env::var_os("WARPFRAME_TEST_CHILD").is_none() {
        return;
    }
    match Session::new() {
        Ok(session) => {
            let device = session.device().map(|device| (device.kind(), device.memory().limit));
            println!(
                "session: {device:?} strict={} notice={:?}",
                session.is_strict(),
                session.notice()
            );
        }
        Err(error) => println!("error: {error}"),
    }
}

/// What [`session_of_the_environment`] prints where these variables, and no others of ours, are
/// set.
fn in_environment(variables: &[(&str, &str)]) -> String {
    let mut child = Command::new(std::env::current_exe().expect("a test has a program"));
    let of_host = ["WARPFRAME_HOST_MEMORY_LIMIT", "WARPFRAME_SPILL_DIR", "WARPFRAME_SPILL_LIMIT"];
    for name in
        ["WARPFRAME_DEVICE", "WARPFRAME_STRICT", "WARPFRAME_MEMORY_LIMIT"].iter().chain(&of_host)
    {
        child.env_remove(name);
    }
    child.args(["--exact", "builder::session_of_the_environment", "--nocapture"]);
    child.env("WARPFRAME_TEST_CHILD", "1").envs(variables.iter().copied());
    let output = child.output().expect("the test's own program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text
        .lines()
        .find_map(|line| line.find("session: ").or(line.find("error: ")).map(|at| &line[at..]));
    line.unwrap_or_else(|| panic!("{text}")).to_string()
}

#[test]
fn the_environment_chooses_what_the_builder_does_not() {
    assert_eq!(
        in_environment(&[("WARPFRAME_DEVICE", "cpu")]),
        "session: None strict=false notice=None"
    );
    // The device under test: where that is a GPU, there may be no compiler for the simulator.
    let device = std::env::var("WARPFRAME_DEVICE")
        .ok()
        .filter(|name| !name.is_empty())
        .unwrap_or("sim".into());
    let kind =
        builder().build().ok().and_then(|session| session.device().map(|device| device.kind()));
    assert_eq!(
        in_environment(&[
            ("WARPFRAME_DEVICE", &device),
            ("WARPFRAME_STRICT", "1"),
            ("WARPFRAME_MEMORY_LIMIT", "64MiB")
        ]),
        format!("session: {:?} strict=true notice=None", kind.map(|kind| (kind, 64 << 20)))
    );
    let of_file = Session::builder()
        .device(DeviceChoice::Cpu)
        .strict(false)
        .build()
        .expect("the builder decides");
    assert!(of_file.device().is_none() && !of_file.is_strict());
}

#[test]
fn variables_that_mean_nothing_are_named() {
    for (name, value) in [
        ("WARPFRAME_DEVICE", "gpu"),
        ("WARPFRAME_STRICT", "perhaps"),
        ("WARPFRAME_MEMORY_LIMIT", "much"),
        ("WARPFRAME_HOST_MEMORY_LIMIT", "more"),
        ("WARPFRAME_SPILL_LIMIT", "none"),
    ] {
        let said = in_environment(&[("WARPFRAME_DEVICE", "cpu"), (name, value)]);
        assert!(
            said.starts_with("error: ") && said.contains(name) && said.contains(value),
            "{said}"
        );
    }
}

#[test]
fn strict_without_a_device_is_an_error() {
    let error = Session::builder()
        .device(DeviceChoice::Cpu)
        .strict(true)
        .build()
        .expect_err("there is no device");
    assert!(
        matches!(error.kind(), ErrorKind::DeviceUnavailable { device, .. } if device == "cpu"),
        "{error:?}"
    );
    let said = in_environment(&[("WARPFRAME_DEVICE", "cpu"), ("WARPFRAME_STRICT", "1")]);
    assert!(said.starts_with("error: ") && said.contains("strict"), "{said}");
}

#[test]
fn a_gpu_that_is_not_there_is_an_error_by_name_and_a_notice_otherwise() {
    let error =
        Session::builder().device(DeviceChoice::Cuda(77)).build().expect_err("nobody has so many");
    match error.kind() {
        ErrorKind::DeviceUnavailable { why, .. } => assert!(!why.is_empty()),
        other => panic!("{other:?}"),
    }
    let session = Session::builder()
        .device(DeviceChoice::Auto)
        .strict(false)
        .build()
        .expect("the CPU is always there");
    match (session.device(), session.notice()) {
        (Some(_), None) => {}
        (None, Some(notice)) => {
            assert!(notice.starts_with("no GPU: ") && !notice.contains('\n'), "{notice}");
            let kind = Session::builder().device(DeviceChoice::Auto).strict(true).build().err();
            assert!(
                kind.is_some_and(|e: Error| matches!(
                    e.kind(),
                    ErrorKind::DeviceUnavailable { .. }
                ))
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_query_that_exceeds_the_limit_succeeds_after_it_is_raised() {
    let pair =
        Pair::with(builder().strict(true).divide(false).memory_limit(MemoryLimit::Bytes(32 << 10)));
    let pair = pair.and("t", Shape::random(20_000, 41).batches());
    let sql = "SELECT k, sum(x) AS total FROM t GROUP BY k";
    let error = run(&pair.device, sql).expect_err("the columns alone are larger");
    match error.kind() {
        ErrorKind::OutOfDeviceMemory { operator, asked, limit, .. } => {
            assert!(!operator.is_empty() && *asked > 0 && *limit == 32 << 10, "{error}");
        }
        other => panic!("{other:?}"),
    }
    pair.gpu().set_memory_limit("64MiB".parse().expect("a limit"));
    pair.check(sql);
    assert!(pair.gpu().memory().peak <= 64 << 20);
}

#[test]
fn sessions_work_inside_an_asynchronous_runtime() {
    let batches = Shape::random(500, 42).batches();
    let one = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let several =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    for runtime in [one, several] {
        let batches = batches.clone();
        let rows = runtime.block_on(async move {
            // Made, used and dropped inside.
            let session = builder().strict(true).build()?;
            session.register_batches("t", batches)?;
            let lazy = session.sql("SELECT id FROM t WHERE id >= 100")?;
            tokio::task::yield_now().await;
            lazy.collect()?.filter(col("id").lt(lit(110i64))).map(|frame| frame.num_rows())
        });
        assert_eq!(rows.expect("queries run"), 10);
    }
}
