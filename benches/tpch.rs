//! TPC-H with tables resident on the device: `cargo bench --bench tpch -- [SCALE] [QUERY…]`
//! (default: 1, q1 q3 q6).
//!
//! Tables are generated in memory. Every answer is compared with DataFusion's before it is timed
//! (`--unchecked` skips that). Joins run in the order of estimated rows (`--query-order`: in the
//! queries'). Plans are kept from run to run (`--plan-anew`: made each time). `--one-line` times a
//! session of DataFusion's `with_warpframe` beside, as `one_line_ms`. One JSON line a
//! query: device time (sum over kernels, and from first to last), end-to-end time hot and cold,
//! what of the hot time the host was outside of the driver, bytes that kernels move
//! (`Counters::bytes_moved` says what is counted), kernels launched, host synchronisations. Medians
//! of 9 hot runs. `WARPFRAME_DEVICE` chooses the device.

use std::sync::Arc;
use std::time::Instant;

use datafusion::datasource::MemTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;
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
use warpframe::plugin::{Plugin, WithWarpframe};
use warpframe::prelude::*;

pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const RUNS: usize = 9;

pub fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    run(&arguments, Session::builder(), RUNS).map(drop)
}

/// Times the queries, each in so many runs; whether one failed.
pub fn run(arguments: &[String], builder: SessionBuilder, runs: usize) -> Outcome<bool> {
    let ordered = !arguments.iter().any(|a| a == "--query-order");
    let anew = arguments.iter().any(|a| a == "--plan-anew");
    let checked = !arguments.iter().any(|a| a == "--unchecked");
    let by_one_line = arguments.iter().any(|a| a == "--one-line");
    let mut words = arguments.iter().filter(|a| !a.starts_with("--"));
    let scale: f64 = words.next().map_or(Ok(1.0), |text| text.parse())?;
    let mut queries: Vec<&str> = words.map(String::as_str).collect();
    if queries.is_empty() {
        queries = vec!["q1", "q3", "q6"];
    }
    let tables = generate(scale);
    let one_line = by_one_line.then(|| OneLine::new(builder.clone(), &tables)).transpose()?;
    let device = builder.strict(true).join_order(ordered).build()?;
    let cpu = Session::builder().device(DeviceChoice::Cpu).strict(false).build()?;
    for (name, batches) in &tables {
        device.register_batches(name, batches.iter().cloned())?;
        cpu.register_batches(name, batches.iter().cloned())?;
    }
    let mut has_failed = false;
    for query in queries {
        let options = Options { scale, runs, checked, anew, one_line: one_line.as_ref() };
        if let Err(error) = bench([&device, &cpu], query, &options) {
            has_failed = true;
            println!("{{\"bench\":\"tpch {query} sf{scale}\",\"error\":{:?}}}", error.to_string());
        }
    }
    Ok(has_failed)
}

struct Options<'a> {
    scale: f64,
    runs: usize,
    checked: bool,
    anew: bool,
    one_line: Option<&'a OneLine>,
}

/// The tables in a session of DataFusion's that runs its queries on the device.
struct OneLine {
    runtime: tokio::runtime::Runtime,
    context: SessionContext,
    plugin: Plugin,
}

impl OneLine {
    fn new(builder: SessionBuilder, tables: &[(&str, Vec<RecordBatch>)]) -> Outcome<Self> {
        let plugin = Plugin::new(builder.strict(true))?;
        let state = SessionStateBuilder::new_with_default_features().with_plugin(&plugin).build();
        let context = SessionContext::new_with_state(state);
        for (name, batches) in tables {
            let table = MemTable::try_new(batches[0].schema(), vec![batches.clone()])?;
            context.register_table(*name, Arc::new(table))?;
        }
        Ok(OneLine { runtime: tokio::runtime::Runtime::new()?, context, plugin })
    }

    /// A query's rows.
    fn rows(&self, sql: &str) -> Outcome<Vec<RecordBatch>> {
        Ok(self.runtime.block_on(async { self.context.sql(sql).await?.collect().await })?)
    }

    /// Median time in ms of a query whose columns are on the device.
    fn time(&self, sql: &str, runs: usize) -> Outcome<f64> {
        self.rows(sql)?;
        self.plugin.device().ok_or("a benchmark needs a device")?.settle();
        self.rows(sql)?;
        let mut times = vec![];
        for _ in 0..runs {
            let start = Instant::now();
            self.rows(sql)?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        Ok(median(&mut times))
    }
}

fn bench([session, cpu]: [&Session; 2], query: &str, options: &Options<'_>) -> Outcome {
    let &Options { scale, runs, checked, anew, one_line } = options;
    let path = format!("{}/data/queries/{query}.sql", root());
    let sql = std::fs::read_to_string(&path)?;
    let device = session.device().ok_or("a benchmark needs a device")?;
    let load = Instant::now();
    session.sql(&sql)?.collect()?;
    let cold = load.elapsed().as_secs_f64() * 1e3;
    if checked {
        let expected = printed(&cpu.sql(&sql)?.collect()?.to_arrow()?)?;
        compare(&printed(&session.sql(&sql)?.collect()?.to_arrow()?)?, &expected)?;
    }
    let one_line = one_line.map(|one_line| one_line.time(&sql, runs)).transpose()?;
    let one_line = one_line.map(|ms| format!("\"one_line_ms\":{ms:.3},")).unwrap_or_default();
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
        "{{\"bench\":\"tpch {query} sf{scale}\",{one_line}\"device_ms\":{:.3},\"span_ms\":{:.3},\"hot_ms\":{:.3},\"host_ms\":{:.3},\"cold_ms\":{cold:.1},\
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
fn printed(batches: &[RecordBatch]) -> Outcome<Vec<String>> {
    let text = warpframe::arrow::util::pretty::pretty_format_batches(batches)?.to_string();
    Ok(text.lines().map(str::to_string).collect())
}

fn compare(ours: &[String], theirs: &[String]) -> Outcome {
    if ours == theirs {
        return Ok(());
    }
    let differing = ours.iter().zip(theirs).find(|(a, b)| a != b);
    Err(format!("answers differ: {} rows, {} expected; {differing:?}", ours.len(), theirs.len())
        .into())
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
