//! Ballista as it is, to measure beside: none of warpframe's code runs in it.
//!
//! ```text
//! stock_ballista scheduler PORT
//! stock_ballista executor SCHEDULER_PORT PORT VCORES WORK_DIR      its calls come to PORT + 1
//! stock_ballista run SCHEDULER_PORT PARTITIONS RUNS QUERIES TABLES OUT
//! ```
//!
//! `run` runs the `.sql` files of a folder over the Parquet files of another one, each so many times,
//! and writes OUT/NAME.csv. It prints a line for each query: its name and the milliseconds of each
//! run.

use std::error::Error;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::extension::SessionStateExt;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::start_server;
use datafusion::arrow::csv::WriterBuilder;
use datafusion::execution::SessionState;
use datafusion::prelude::{ParquetReadOptions, SessionContext};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Outcome = Result<(), Box<dyn Error>>;

#[tokio::main]
async fn main() -> Outcome {
    env_logger::init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let texts: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match texts[..] {
        ["scheduler", port] => scheduler(port.parse()?).await,
        ["executor", scheduler, port, vcores, work_dir] => {
            executor(scheduler.parse()?, port.parse()?, vcores.parse()?, work_dir).await
        }
        ["run", scheduler, partitions, runs, queries, tables, out] => {
            let (partitions, runs) = (partitions.parse()?, runs.parse()?);
            run(scheduler, partitions, runs, [queries, tables, out].map(Path::new)).await
        }
        _ => Err("usage: stock_ballista scheduler | executor | run …".into()),
    }
}

async fn scheduler(port: u16) -> Outcome {
    let config = SchedulerConfig {
        bind_port: port,
        scheduling_policy: TaskSchedulingPolicy::PushStaged,
        ..SchedulerConfig::default()
    };
    let cluster = BallistaCluster::new_from_config(&config).await?;
    start_server(cluster, SocketAddr::from(([127, 0, 0, 1], port)), Arc::new(config)).await?;
    Ok(())
}

async fn executor(scheduler_port: u16, port: u16, vcores: usize, work_dir: &str) -> Outcome {
    std::fs::create_dir_all(work_dir)?;
    let config = ExecutorProcessConfig {
        port,
        grpc_port: port + 1,
        scheduler_host: "127.0.0.1".into(),
        scheduler_port,
        scheduler_connect_timeout_seconds: 30,
        vcores,
        task_scheduling_policy: TaskSchedulingPolicy::PushStaged,
        work_dir: Some(work_dir.into()),
        ..ExecutorProcessConfig::default()
    };
    start_executor_process(Arc::new(config)).await?;
    Ok(())
}

/// The files of a folder with an ending, in the order of their names.
fn files(folder: &Path, ending: &str) -> std::io::Result<Vec<(String, PathBuf)>> {
    let mut all = vec![];
    for entry in folder.read_dir()? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).map(String::from);
        if let (Some(stem), true) = (stem, path.extension().is_some_and(|of| of == ending)) {
            all.push((stem, path));
        }
    }
    all.sort();
    Ok(all)
}

async fn run(
    scheduler: &str,
    partitions: usize,
    runs: usize,
    [queries, tables, out]: [&Path; 3],
) -> Outcome {
    let mut state = SessionState::new_ballista_state(format!("http://127.0.0.1:{scheduler}"))?;
    state.config_mut().options_mut().execution.target_partitions = partitions;
    let context = SessionContext::new_with_state(state);
    for (name, path) in files(tables, "parquet")? {
        let path = path.to_str().ok_or("a path that is not UTF-8")?;
        context.register_parquet(&name, path, ParquetReadOptions::default()).await?;
    }
    std::fs::create_dir_all(out)?;
    for (name, path) in files(queries, "sql")? {
        let sql = std::fs::read_to_string(&path)?;
        let sql = sql.trim().trim_end_matches(';');
        let mut times = vec![];
        for _ in 0..runs {
            let begun = Instant::now();
            match context.sql(sql).await {
                Ok(frame) => match frame.collect().await {
                    Ok(batches) => {
                        times.push(format!("{:.1}", begun.elapsed().as_secs_f64() * 1e3));
                        let file = File::create(out.join(format!("{name}.csv")))?;
                        let mut writer = WriterBuilder::new().with_header(true).build(file);
                        batches.iter().try_for_each(|batch| writer.write(batch))?;
                    }
                    Err(error) => times.push(format!("failed: {error}")),
                },
                Err(error) => times.push(format!("failed: {error}")),
            }
        }
        println!("{name} {}", times.join(" ").replace('\n', " "));
    }
    Ok(())
}
