//! Stages as bytes.

use std::sync::Arc;

use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::physical_plan::{DefaultPhysicalProtoConverter, PhysicalExtensionCodec};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use warpframe::arrow::record_batch::RecordBatch;
use warpframe::plugin::{Plugin, StageCodec};

use super::{Both, tpch};
use crate::differential::{Rows, builder, data, rows_of, seed};
use crate::slt_datafusion::orders_its_rows;

fn rows(batches: &[RecordBatch]) -> Rows {
    Rows { types: vec![], rows: batches.iter().flat_map(rows_of).collect() }
}

/// A plan's bytes, and the plan that another process makes of them.
fn there_and_back(both: &Both, plan: Arc<dyn ExecutionPlan>) -> (Vec<u8>, Arc<dyn ExecutionPlan>) {
    let codec = StageCodec::new(&both.plugin);
    let bytes = physical_plan_to_bytes_with_extension_codec(plan, &codec).expect("bytes");
    let other = Both::with(both.plugin.clone(), 2);
    let context = other.ours.task_ctx();
    let back = physical_plan_from_bytes_with_extension_codec(&bytes, &context, &codec);
    (bytes.to_vec(), back.expect("a plan"))
}

fn survives(both: &Both, sql: &str) {
    let plan = both.plan(sql);
    let (_, back) = there_and_back(both, plan.clone());
    let run = |plan: Arc<dyn ExecutionPlan>| {
        let rows = both.runtime.block_on(collect(plan, both.ours.task_ctx()));
        rows.unwrap_or_else(|error| panic!("{sql}: {error}"))
    };
    let (expected, found) = (rows(&run(plan)), rows(&run(back)));
    let difference = expected.difference(&found, orders_its_rows(&sql.to_lowercase()));
    assert!(difference.is_none(), "{sql}: {}", difference.unwrap_or_default());
}

fn both(tasks: usize) -> Both {
    let plugin = Plugin::new(builder().strict(false)).expect("the device opens");
    Both::with(plugin.with_stages(tasks > 1).with_broadcast_limit(0), tasks)
}

#[test]
fn fragments_of_tpch_survive() {
    let both = both(2).files(&data("tpch"));
    let sample = vec![1, 2, 4, 7, 11, 13, 15, 16, 20, 21, 22];
    let all = crate::differential::number("WARPFRAME_ALL_QUERIES", 0) > 0;
    for number in if all { (1..=22).collect() } else { sample } {
        survives(&both, &tpch(number));
    }
}

/// `WARPFRAME_TPCDS` and `WARPFRAME_TPCDS_QUERIES` name folders, as `tpcds.rs` says; without them
/// nothing runs.
#[test]
fn fragments_of_tpcds_survive() {
    let variable = |name| std::env::var(name).ok().filter(|text: &String| !text.is_empty());
    let (Some(tables), Some(queries)) =
        (variable("WARPFRAME_TPCDS"), variable("WARPFRAME_TPCDS_QUERIES"))
    else {
        eprintln!("skipped: WARPFRAME_TPCDS and WARPFRAME_TPCDS_QUERIES name no folders");
        return;
    };
    let both = both(2).files(tables.as_ref());
    let mut failed = vec![];
    for number in 1..=99 {
        let path = std::path::Path::new(&queries).join(format!("q{number:02}.sql"));
        let text = std::fs::read_to_string(&path).expect("a query");
        for sql in text.split(';').map(str::trim).filter(|sql| !sql.is_empty()) {
            if both.run(&both.stock, sql).is_err() {
                continue;
            }
            // Q77 has rows of equal keys.
            let sql = if number == 77 { &format!("SELECT * FROM ({sql})") } else { sql };
            let ran =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| survives(&both, sql)));
            if ran.is_err() {
                failed.push(number);
            }
        }
    }
    assert_eq!(failed, [0u32; 0]);
}

#[test]
fn a_process_without_a_device_reads_stages_and_does_not_run_them() {
    let both = both(2).files(&data("tpch"));
    let codec = StageCodec::new(&both.plugin);
    let plan = both.plan("SELECT o_custkey, count(*) FROM orders GROUP BY o_custkey");
    let bytes = physical_plan_to_bytes_with_extension_codec(plan, &codec).expect("bytes");
    let context = both.stock.task_ctx();
    let codec = StageCodec::default();
    let plan = physical_plan_from_bytes_with_extension_codec(&bytes, &context, &codec);
    let plan = plan.expect("a plan");
    assert!(plan.children().len() == 1 && plan.name() == "DeviceStageExec", "{plan:?}");
    let error = both.runtime.block_on(collect(plan, context)).unwrap_err();
    assert!(error.to_string().contains("no device"), "{error}");
}

/// The stages of a plan with their inputs.
fn stages(plan: &Arc<dyn ExecutionPlan>, found: &mut Vec<Arc<dyn ExecutionPlan>>) {
    if plan.name() == "DeviceStageExec" {
        found.push(plan.clone());
    }
    plan.children().into_iter().for_each(|child| stages(child, found));
}

#[test]
fn damaged_bytes_are_errors() {
    let both = both(3).files(&data("tpch"));
    let (codec, converter) = (StageCodec::new(&both.plugin), DefaultPhysicalProtoConverter {});
    let context = both.ours.task_ctx();
    let mut random = StdRng::seed_from_u64(seed());
    let (mut read, mut refused) = (0, 0);
    for number in [3, 16, 22] {
        let mut found = vec![];
        stages(&both.plan(&tpch(number)), &mut found);
        assert!(found.len() > 2, "Q{number} has {} stages", found.len());
        for stage in found {
            let inputs: Vec<_> = stage.children().into_iter().cloned().collect();
            let mut bytes = vec![];
            codec.try_encode(stage, &mut bytes, &converter).expect("bytes");
            codec.try_decode(&bytes, &inputs, &context, &converter).expect("a stage");
            for _ in 0..crate::differential::number("WARPFRAME_DAMAGED", 60) {
                let mut damaged = bytes.clone();
                for _ in 0..random.random_range(1..4) {
                    let at = random.random_range(0..damaged.len());
                    match random.random_range(0..4) {
                        0 => damaged.truncate(at.max(1)),
                        1 => damaged[at] ^= 1 << random.random_range(0..8),
                        2 => damaged[at] = random.random(),
                        _ => drop(damaged.splice(at..at, [random.random()])),
                    }
                }
                match codec.try_decode(&damaged, &inputs, &context, &converter) {
                    Ok(_) => read += 1,
                    Err(_) => refused += 1,
                }
            }
        }
    }
    println!("{refused} of {} were refused", read + refused);
    assert!(refused > read, "{refused} of {} were refused", read + refused);
    let later = [b"WFST".as_slice(), &[99, 0, 0, 0, 0, 0]].concat();
    let error = codec.try_decode(&later, &[], &context, &converter).unwrap_err().to_string();
    assert!(error.contains("version 99"), "{error}");
}
