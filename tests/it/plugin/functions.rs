//! Functions that users wrote for the device, and random numbers, in sessions of DataFusion's.

use std::sync::Arc;

use datafusion::physical_plan::{ExecutionPlan, collect};
use warpframe::arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array};
use warpframe::arrow::datatypes::{DataType, Float64Type};
use warpframe::arrow::record_batch::RecordBatch;
use warpframe::plugin::Plugin;
use warpframe::{AggregateFunction, ScalarFunction};

use super::Both;
use crate::differential::builder;

const ROWS: i64 = 3000;

/// Sessions of so many tasks with a table `t` of two columns in three batches, parted by them.
fn both(plugin: Plugin, tasks: usize) -> Both {
    let both = Both::with(plugin.with_stages(tasks > 1), tasks);
    let part = |from: i64| {
        let n = Int64Array::from_iter_values(from..from + ROWS / 3);
        let x = Float64Array::from_iter(
            n.values().iter().map(|n| (n % 7 != 0).then_some(*n as f64 / 8.0)),
        );
        let columns = [("n", Arc::new(n) as ArrayRef), ("x", Arc::new(x) as ArrayRef)];
        RecordBatch::try_from_iter(columns).expect("a batch")
    };
    let parts: Vec<Vec<RecordBatch>> = (0..3).map(|at| vec![part(at * ROWS / 3)]).collect();
    for context in [&both.stock, &both.ours] {
        let schema = parts[0][0].schema();
        let table = datafusion::datasource::MemTable::try_new(schema, parts.clone());
        context.register_table("t", Arc::new(table.expect("a table"))).expect("registered");
    }
    both
}

fn plugin() -> Plugin {
    Plugin::new(builder().strict(true).user_code(true)).expect("the device opens")
}

/// `cubed(x)`, NULL of what is odd; `farthest(n)`, whose bodies are the device's alone.
fn register(both: &Both) {
    let body = "result_is_null = (long long)(x * 8) % 2 != 0;\nreturn x * x * x;";
    let cubed = ScalarFunction::new("cubed", [("x", DataType::Float64)], DataType::Float64, body);
    let int = DataType::Int64;
    let farthest = AggregateFunction::new("farthest", [("n", int.clone())], int.clone())
        .state([("n", int)])
        .identity("s.n = 0;")
        .map("s.n = n - 1000;")
        .combine(
            "a.n = llabs(a.n) > llabs(b.n) || (llabs(a.n) == llabs(b.n) && a.n > b.n) ? a.n : b.n;",
        )
        .finish("return s.n;");
    let cubed = both.plugin.scalar_function(cubed).expect("a function");
    let farthest = both.plugin.aggregate_function(farthest).expect("an aggregate");
    for context in [&both.stock, &both.ours] {
        context.register_udf(cubed.clone());
        context.register_udaf(farthest.clone());
    }
}

const QUERIES: [&str; 4] = [
    "SELECT n, cubed(x) AS c FROM t WHERE cubed(x) > 100 AND n % 3 = 1",
    "SELECT n % 10 AS k, farthest(n) AS f, count(cubed(x)) AS c FROM t GROUP BY n % 10",
    "SELECT farthest(n) AS f FROM t WHERE x IS NOT NULL",
    "SELECT n, farthest(n) OVER (PARTITION BY n % 50) AS f FROM t WHERE n < 500",
];

#[test]
fn functions_in_cuda_run_on_the_device() {
    for tasks in [1, 3] {
        let both = both(plugin(), tasks);
        register(&both);
        for sql in QUERIES {
            assert!(both.check(sql), "{sql}");
        }
    }
}

#[test]
fn bodies_that_do_not_compile_are_errors_at_once() {
    let wrong = ScalarFunction::new("w", [("x", DataType::Int64)], DataType::Int64, "return y;");
    let error = plugin().scalar_function(wrong).unwrap_err();
    assert!(error.to_string().contains('y'), "{error}");
}

/// The rows of a plan, sorted by their text.
fn rows(both: &Both, plan: &Arc<dyn ExecutionPlan>) -> Vec<String> {
    let ran = both.runtime.block_on(collect(plan.clone(), both.ours.task_ctx())).expect("rows");
    let text = warpframe::arrow::util::pretty::pretty_format_batches(&ran).expect("a text");
    let mut lines: Vec<String> = text.to_string().lines().map(String::from).collect();
    lines.sort();
    lines
}

#[test]
fn tasks_that_run_again_draw_the_same_numbers() {
    let both = both(plugin(), 3);
    let sql = "SELECT n, random() AS r FROM t WHERE random() < 0.5";
    let plan = both.plan(sql);
    let first = rows(&both, &plan);
    assert!(first.len() > 1200 && first.len() < 1800, "{} rows", first.len());
    assert_eq!(first, rows(&both, &plan));
    assert_ne!(first, rows(&both, &both.plan(sql)), "another plan draws others");
    // Neither rows nor tasks nor calls share numbers.
    let numbers = both.run(&both.ours, "SELECT random() AS a, random() AS b FROM t").expect("rows");
    let of = |at: usize| {
        numbers
            .iter()
            .flat_map(move |batch| batch.column(at).as_primitive::<Float64Type>().values())
    };
    let mut all: Vec<u64> = of(0).chain(of(1)).map(|number| number.to_bits()).collect();
    assert!(of(0).chain(of(1)).all(|number| (0.0..1.0).contains(number)));
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 2 * ROWS as usize);
}

#[cfg(feature = "proto")]
mod as_bytes {
    use datafusion_proto::bytes::{
        physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
    };
    use datafusion_proto::physical_plan::PhysicalExtensionCodec;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use warpframe::plugin::StageCodec;

    use super::*;
    use crate::differential::seed;

    #[test]
    fn functions_and_seeds_travel_with_stages() {
        let both = both(plugin(), 3);
        register(&both);
        // The process that reads knows nothing of the functions.
        let allowed = StageCodec::new(&plugin());
        let refusing = Plugin::new(builder().strict(true)).expect("the device opens");
        let refusing = StageCodec::new(&refusing);
        let context = super::both(plugin(), 3).ours.task_ctx();
        let random = "SELECT n, random() AS r FROM t";
        for sql in QUERIES.into_iter().chain([random]) {
            let plan = both.plan(sql);
            let bytes = physical_plan_to_bytes_with_extension_codec(plan.clone(), &allowed);
            let bytes = bytes.unwrap_or_else(|error| panic!("{sql}: {error}"));
            let read = physical_plan_from_bytes_with_extension_codec(&bytes, &context, &allowed);
            let read = read.unwrap_or_else(|error| panic!("{sql}: {error}"));
            assert_eq!(rows(&both, &plan), rows(&both, &read), "{sql}");
            let read = physical_plan_from_bytes_with_extension_codec(&bytes, &context, &refusing);
            match read {
                Ok(_) => assert_eq!(sql, random),
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.contains("of a plan") && error.contains("user_code"), "{error}");
                }
            }
        }
    }

    #[test]
    fn damaged_functions_are_errors() {
        let both = both(plugin(), 1);
        register(&both);
        let codec = StageCodec::new(&both.plugin);
        let (mut scalar, mut aggregate) = (vec![], vec![]);
        let state = both.ours.state();
        codec.try_encode_udf(&state.scalar_functions()["cubed"], &mut scalar).expect("bytes");
        codec
            .try_encode_udaf(&state.aggregate_functions()["farthest"], &mut aggregate)
            .expect("bytes");
        assert_eq!(codec.try_decode_udf("cubed", &scalar).expect("a function").name(), "cubed");
        let mut random = StdRng::seed_from_u64(seed());
        let (mut read, mut refused) = (0, 0);
        for _ in 0..500 {
            for bytes in [&scalar, &aggregate] {
                let mut damaged = bytes.clone();
                let at = random.random_range(0..damaged.len());
                match random.random_range(0..3) {
                    0 => damaged.truncate(at.max(1)),
                    1 => damaged[at] = random.random(),
                    _ => drop(damaged.splice(at..at, [random.random()])),
                }
                let is_read = codec.try_decode_udf("cubed", &damaged).is_ok()
                    || codec.try_decode_udaf("farthest", &damaged).is_ok();
                *(if is_read { &mut read } else { &mut refused }) += 1;
            }
        }
        assert!(refused > 100, "{refused} of {} were refused", read + refused);
    }
}
