//! The `warpframe-cluster` command: a scheduler, executors, and a shell for them.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand};
use tokio::sync::oneshot;
use warpframe::plugin::Cluster;
use warpframe_cluster::client::{BallistaClient, ClusterOptions};
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
    /// The shell `warpframe`, whose queries run on a cluster: all its options, and
    /// --cluster df://HOST:PORT (df://127.0.0.1:50050 otherwise); with --device alone this process
    /// runs them
    #[command(disable_help_flag = true)]
    Shell {
        /// As of `warpframe --help`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
}

#[derive(Debug, Args)]
struct End {
    /// End when standard input is closed
    #[arg(long)]
    until_stdin_closes: bool,
}

/// Where the cluster of `warpframe-cluster up` is.
const LOCAL: &str = "df://127.0.0.1:50050";

fn connect(url: Option<&str>) -> warpframe::Result<Arc<dyn Cluster>> {
    let client = BallistaClient::new(url.unwrap_or(LOCAL), &ClusterOptions::default())?;
    Ok(Arc::new(client))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log_to_stderr(&arguments.command);
    if let Command::Shell { words } = arguments.command {
        let has = |option: &str| words.iter().any(|word| word == option);
        let is_here = has("--device") && !has("--cluster");
        let words = std::iter::once("warpframe".into()).chain(words).collect();
        warpframe_sql::main(words, if is_here { None } else { Some(connect) });
    }
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
    let usual =
        if matches!(command, Command::Shell { .. }) { "warn,ballista_core=off" } else { LOGGED };
    let asked = env_logger::Env::default().default_filter_or(usual);
    let mut logger = env_logger::Builder::from_env(asked);
    if std::env::var_os("RUST_LOG").is_none() {
        logger.format(|out, record| {
            let told = record.args().to_string();
            // Executors of one machine share a folder: what one has removed is gone for the other.
            let is_gone = told.contains("remove_job_data") && told.contains("not a subdirectory");
            if is_gone || record.level() == log::Level::Debug && !told.starts_with(LAUNCHES) {
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
        // It ended before.
        Command::Shell { .. } => Ok(()),
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
