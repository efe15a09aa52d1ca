//! The `warpframe-cluster` command: a scheduler, executors, and queries for them.

use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::util::pretty::pretty_format_batches_with_schema;
use datafusion::error::{DataFusionError, Result as PlanResult};
use futures::TryStreamExt;
use tokio::sync::oneshot;
use warpframe_cluster::client::{Cluster, PlanOptions};
use warpframe_cluster::executor::{self, ExecutorOptions};
use warpframe_cluster::local::{self, LocalOptions};
use warpframe_cluster::scheduler::{self, SchedulerOptions};

/// Plans, and the texts of kernels, are made of many small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Recursion over deep plans takes more than the 2 MiB that threads usually have.
const STACK: usize = 32 << 20;

/// What is logged by default, and of the last part only what begins so: to whom a task is given.
const LOGGED: &str = "info,ballista_scheduler::state::task_manager=debug";
const LAUNCHES: &str = "Launching multi task on executor";

/// warpframe on several machines, by Ballista
#[derive(Debug, Parser)]
#[command(
    name = "warpframe-cluster",
    version,
    after_help = "RUST_LOG says what is logged, on standard error."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Hand tasks to executors
    Scheduler {
        #[command(flatten)]
        options: SchedulerOptions,
        #[command(flatten)]
        end: End,
    },
    /// Run tasks on a device
    Executor {
        #[command(flatten)]
        options: ExecutorOptions,
        #[command(flatten)]
        end: End,
    },
    /// A scheduler and executors on this machine, which end with this process
    Up {
        #[command(flatten)]
        options: LocalOptions,
    },
    /// Run queries over Parquet files on a cluster
    Sql(SqlArguments),
}

#[derive(Debug, Args)]
struct End {
    /// End when standard input is closed
    #[arg(long)]
    until_stdin_closes: bool,
}

#[derive(Debug, Args)]
struct SqlArguments {
    /// Parquet files, or folders of them, that all machines have by these paths; each is a table
    /// named after it
    #[arg(value_name = "FILES")]
    files: Vec<PathBuf>,

    /// The scheduler: df://HOST:PORT
    #[arg(long, value_name = "URL", default_value = "df://127.0.0.1:50050")]
    cluster: String,

    /// Run this statement; may be given several times
    #[arg(short = 'c', value_name = "SQL", required = true, allow_hyphen_values = true)]
    commands: Vec<String>,

    /// Tasks of a stage: twice as many as there are executors keep all of them at work
    #[arg(long, value_name = "N", default_value_t = 8)]
    partitions: usize,

    /// Most bytes of a side of a join that each task gets whole
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30)]
    broadcast_limit: u64,

    /// A setting of DataFusion or Ballista; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    settings: Vec<(String, String)>,

    /// How rows are written
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Table,
    Csv,
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE is expected")?;
    Ok((name.trim().into(), value.trim().into()))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log_to_stderr(&arguments.command);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build();
    let ran = match runtime {
        Ok(runtime) => runtime.block_on(run(arguments.command)),
        Err(error) => Err(error.to_string()),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Logs what `RUST_LOG` says; by default how jobs go, and which executor gets which task.
fn log_to_stderr(command: &Command) {
    // Rows are what a query is asked for.
    let usual = if matches!(command, Command::Sql(_)) { "warn,ballista_core=off" } else { LOGGED };
    let asked = env_logger::Env::default().default_filter_or(usual);
    let mut logger = env_logger::Builder::from_env(asked);
    if std::env::var_os("RUST_LOG").is_none() {
        logger.format(|out, record| {
            let told = record.args().to_string();
            if record.level() == log::Level::Debug && !told.starts_with(LAUNCHES) {
                return Ok(());
            }
            writeln!(out, "{} {} {told}", out.timestamp(), record.level())
        });
    }
    logger.init();
}

async fn run(command: Command) -> Result<(), String> {
    match command {
        Command::Scheduler { options, end } => {
            tokio::select! {
                ended = scheduler::run(&options) => ended.map_err(|error| error.to_string()),
                () = end.of_parent() => Ok(()),
            }
        }
        Command::Executor { options, end } => {
            tokio::select! {
                ended = executor::run(&options) => ended.map_err(|error| error.to_string()),
                () = end.of_parent() => Ok(()),
            }
        }
        Command::Up { options } => local::run(&options).await.map_err(|error| error.to_string()),
        Command::Sql(arguments) => arguments.run().await.map_err(|error| error.strip_backtrace()),
    }
}

impl End {
    async fn of_parent(&self) {
        if !self.until_stdin_closes {
            return std::future::pending().await;
        }
        let (closed, is_closed) = oneshot::channel();
        // On a thread of its own: the runtime would wait for one of its.
        std::thread::spawn(move || {
            let mut unread = [0; 64];
            while io::stdin().read(&mut unread).is_ok_and(|bytes| bytes > 0) {}
            let _ = closed.send(());
        });
        let _ = is_closed.await;
    }
}

impl SqlArguments {
    async fn run(self) -> PlanResult<()> {
        let options = PlanOptions {
            partitions: self.partitions,
            broadcast_limit: self.broadcast_limit,
            settings: self.settings,
        };
        let cluster = Cluster::new(&self.cluster, &options)?;
        for path in &self.files {
            let Some(name) = path.file_stem().and_then(|name| name.to_str()) else {
                let message = format!("{}: a table has no such name", path.display());
                return Err(DataFusionError::Execution(message));
            };
            cluster.register_parquet(name, path).await?;
        }
        for sql in &self.commands {
            let rows = cluster.sql(sql).await?;
            let schema = rows.schema();
            self.format.write(schema, rows.try_collect().await?)?;
        }
        Ok(())
    }
}

impl Format {
    fn write(self, schema: SchemaRef, batches: Vec<RecordBatch>) -> PlanResult<()> {
        let mut out = io::stdout().lock();
        match self {
            _ if schema.fields().is_empty() => {}
            Format::Table => {
                writeln!(out, "{}", pretty_format_batches_with_schema(schema, &batches)?)?;
            }
            Format::Csv => {
                let mut writer = WriterBuilder::new().with_header(true).build(&mut out);
                let nothing = RecordBatch::new_empty(schema);
                for batch in std::iter::once(&nothing).chain(&batches) {
                    writer.write(batch)?;
                }
            }
        }
        Ok(out.flush()?)
    }
}
