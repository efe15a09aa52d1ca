//! TPC-H with tables resident on the device: `cargo bench --bench tpch -- [SCALE] [QUERY…]`
//! (default: 1, q1 q3 q6).
//!
//! Tables are generated in memory. Every answer is compared with DataFusion's before it is timed
//! (`--unchecked` skips that). Joins run in the order of estimated rows (`--query-order`: in the
//! queries'). Plans are kept from run to run (`--plan-anew`: made each time). One JSON line a
//! query: device time (sum over kernels, and from first to last), end-to-end time hot and cold,
//! what of the hot time the host was outside of the driver, bytes that kernels move
//! (`Counters::bytes_moved` says what is counted), kernels launched, host synchronisations. Medians
//! of 9 hot runs. `WARPFRAME_DEVICE` chooses the device.

use std::time::Instant;

use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow,
    SupplierArrow,
};
use warpframe::SessionBuilder;
use warpframe::arrow::error::ArrowError;
use warpframe::arrow::record_batch::RecordBatch;
use warpframe::prelude::*;

/// As the command's: a query's text and plan are many small allocations.
#[cfg(not(test))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const RUNS: usize = 9;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    run(&arguments, Session::builder(), RUNS).map(drop)
}

/// Times the queries, each in so many runs; whether one failed.
pub fn run(arguments: &[String], builder: SessionBuilder, runs: usize) -> Outcome<bool> {
    let ordered = !arguments.iter().any(|a| a == "--query-order");
    let anew = arguments.iter().any(|a| a == "--plan-anew");
    let checked = !arguments.iter().any(|a| a == "--unchecked");
    let mut words = arguments.iter().filter(|a| !a.starts_with("--"));
    let scale: f64 = words.next().map_or(Ok(1.0), |text| text.parse())?;
    let mut queries: Vec<&str> = words.map(String::as_str).collect();
    if queries.is_empty() {
        queries = vec!["q1", "q3", "q6"];
    }
    let tables = generate(scale);
    let device = builder.strict(true).join_order(ordered).build()?;
    let cpu = Session::builder().device(DeviceChoice::Cpu).strict(false).build()?;
    for (name, batches) in &tables {
        device.register_batches(name, batches.iter().cloned())?;
        cpu.register_batches(name, batches.iter().cloned())?;
    }
    let mut has_failed = false;
    for query in queries {
        if let Err(error) = bench([&device, &cpu], query, scale, runs, (checked, anew)) {
            has_failed = true;
            println!("{{\"bench\":\"tpch {query} sf{scale}\",\"error\":{:?}}}", error.to_string());
        }
    }
    Ok(has_failed)
}

fn bench(
    [session, cpu]: [&Session; 2],
    query: &str,
    scale: f64,
    runs: usize,
    (checked, anew): (bool, bool),
) -> Outcome {
    let path = format!("{}/data/queries/{query}.sql", root());
    let sql = std::fs::read_to_string(&path)?;
    let device = session.device().ok_or("a benchmark needs a device")?;
    let load = Instant::now();
    session.sql(&sql)?.collect()?;
    let cold = load.elapsed().as_secs_f64() * 1e3;
    if checked {
        let (ours, theirs) =
            (printed(&session.sql(&sql)?.collect()?)?, printed(&cpu.sql(&sql)?.collect()?)?);
        if ours != theirs {
            let differing = ours.iter().zip(&theirs).find(|(a, b)| a != b);
            return Err(format!(
                "answers differ: {} rows, {} expected; {differing:?}",
                ours.len(),
                theirs.len()
            )
            .into());
        }
    }
    device.settle();
    session.sql(&sql)?.collect()?;
    let (mut ends, mut hosts) = (vec![], vec![]);
    let mut sums = vec![];
    let mut spans = vec![];
    let before = device.counters();
    for _ in 0..runs {
        if anew {
            // Settings that may have changed: the session forgets its plans.
            session.context().state_ref().write().config_mut().options_mut();
        }
        let in_driver = device.counters().driver_time;
        let start = Instant::now();
        session.sql(&sql)?.collect()?.to_arrow()?;
        let wall = start.elapsed();
        ends.push(wall.as_secs_f64() * 1e3);
        hosts.push(
            wall.saturating_sub(device.counters().driver_time - in_driver).as_secs_f64() * 1e3,
        );
    }
    let after = device.counters();
    let mut kernels = String::new();
    for _ in 0..runs {
        let first = device.record()?;
        device.start_profile();
        session.sql(&sql)?.collect()?;
        let last = device.record()?;
        let profile = device.take_profile()?;
        spans.push(f64::from(last.since(&first)?));
        sums.push(profile.iter().map(|kernel| f64::from(kernel.ms)).sum());
        kernels =
            profile.iter().map(|kernel| format!(" {}={:.3}", kernel.name, kernel.ms)).collect();
    }
    let runs = runs as u64;
    println!(
        "{{\"bench\":\"tpch {query} sf{scale}\",\"device_ms\":{:.3},\"span_ms\":{:.3},\"hot_ms\":{:.3},\"host_ms\":{:.3},\"cold_ms\":{cold:.1},\
         \"bytes_moved\":{},\"launches\":{},\"synchronizations\":{},\"checked\":{checked},\"gpu\":{:?}}}",
        median(&mut sums),
        median(&mut spans),
        median(&mut ends),
        median(&mut hosts),
        (after.bytes_moved - before.bytes_moved) / runs,
        (after.launches - before.launches) / runs,
        (after.synchronizations - before.synchronizations) / runs,
        device.properties().name,
    );
    eprintln!("{query}:{kernels}");
    Ok(())
}

/// Where the queries are: the crate, or the present directory where that is gone.
fn root() -> &'static str {
    let root = env!("CARGO_MANIFEST_DIR");
    if std::path::Path::new(root).join("data/queries").exists() { root } else { "." }
}

/// Rows as text; floats to 9 digits.
fn printed(frame: &DataFrame) -> Outcome<Vec<String>> {
    let text =
        warpframe::arrow::util::pretty::pretty_format_batches(&frame.to_arrow()?)?.to_string();
    Ok(text.lines().map(str::to_string).collect())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn generate(scale: f64) -> Vec<(&'static str, Vec<RecordBatch>)> {
    let parts = std::thread::available_parallelism().map_or(4, |n| n.get() as i32);
    vec![
        ("region", batches(1, |p, n| RegionArrow::new(RegionGenerator::new(scale, p, n)))),
        ("nation", batches(1, |p, n| NationArrow::new(NationGenerator::new(scale, p, n)))),
        (
            "supplier",
            batches(parts, |p, n| SupplierArrow::new(SupplierGenerator::new(scale, p, n))),
        ),
        (
            "customer",
            batches(parts, |p, n| CustomerArrow::new(CustomerGenerator::new(scale, p, n))),
        ),
        ("part", batches(parts, |p, n| PartArrow::new(PartGenerator::new(scale, p, n)))),
        (
            "partsupp",
            batches(parts, |p, n| PartSuppArrow::new(PartSuppGenerator::new(scale, p, n))),
        ),
        ("orders", batches(parts, |p, n| OrderArrow::new(OrderGenerator::new(scale, p, n)))),
        (
            "lineitem",
            batches(parts, |p, n| LineItemArrow::new(LineItemGenerator::new(scale, p, n))),
        ),
    ]
}

fn batches<I>(parts: i32, make: impl Fn(i32, i32) -> I + Sync) -> Vec<RecordBatch>
where
    I: Iterator<Item = Result<RecordBatch, ArrowError>>,
{
    std::thread::scope(|scope| {
        let make = &make;
        let threads: Vec<_> = (1..=parts)
            .map(|part| scope.spawn(move || make(part, parts).collect::<Result<Vec<_>, _>>()))
            .collect();
        let made = threads.into_iter().map(|thread| thread.join().expect("a generator panicked"));
        made.flat_map(|part| part.expect("generated batches are valid")).collect()
    })
}
