//! A cluster on this machine, for trying: processes that end with this one.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use ballista_core::error::{BallistaError, Result};
use futures::future::select_all;
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdin, Command};
use tokio::signal::unix::{SignalKind, signal};
use warpframe::DeviceChoice;

/// What a cluster on this machine is made of.
#[derive(Debug, Clone, clap::Args)]
pub struct LocalOptions {
    /// How many executors
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub local: u16,

    /// Their devices: cuda (each the next GPU), cuda:N (from this one on), sim or cpu
    #[arg(long, value_name = "DEVICE", default_value = "cuda")]
    pub device: DeviceChoice,

    /// The scheduler's port; executors take two each of those after it
    #[arg(long, value_name = "PORT", default_value_t = 50050)]
    pub bind_port: u16,

    /// Folder for rows between stages; otherwise the one for temporary files
    #[arg(long, value_name = "FOLDER")]
    pub work_dir: Option<PathBuf>,
}

/// How long the scheduler may take to listen.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a scheduler and executors until this process is told to end, or one of them ends.
///
/// # Errors
/// If one of them ends.
pub async fn run(options: &LocalOptions) -> Result<()> {
    let port = options.bind_port;
    let mut scheduler =
        Part::start("the scheduler".into(), "scheduler", &[flag("bind-port", port)])?;
    tokio::select! {
        ended = scheduler.ended() => return Err(ended),
        listens = listens(port) => listens?,
    }
    let mut parts = vec![scheduler];
    for number in 0..options.local {
        let device = match options.device {
            DeviceChoice::Cuda(first) => DeviceChoice::Cuda(first + usize::from(number)),
            ref other => other.clone(),
        };
        let bind_port = number.checked_mul(2).and_then(|after| port.checked_add(after + 1));
        let bind_port = bind_port
            .ok_or_else(|| BallistaError::Configuration("there are not so many ports".into()))?;
        let mut flags = vec![
            flag("device", &device),
            flag("scheduler-port", port),
            flag("bind-port", bind_port),
        ];
        if let Some(folder) = &options.work_dir {
            flags.push(flag("work-dir", folder.display()));
        }
        parts.push(Part::start(format!("executor {number} ({device})"), "executor", &flags)?);
    }
    log::info!("the cluster is df://127.0.0.1:{port}");
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        (ended, ..) = select_all(parts.iter_mut().map(|part| Box::pin(part.ended()))) => Err(ended),
        _ = terminate.recv() => Ok(()),
        ended = tokio::signal::ctrl_c() => Ok(ended?),
    }
}

fn flag(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}

/// A process of this program.
struct Part {
    name: String,
    process: Child,
    /// It ends when this is closed: also if this process is killed.
    _alive: Option<ChildStdin>,
}

impl Part {
    fn start(name: String, subcommand: &str, flags: &[String]) -> Result<Part> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(subcommand)
            .args(flags)
            .arg("--until-stdin-closes")
            .stdin(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let _alive = process.stdin.take();
        Ok(Part { name, process, _alive })
    }

    /// Waits until it ends, which is never in order.
    async fn ended(&mut self) -> BallistaError {
        match self.process.wait().await {
            Ok(status) => BallistaError::General(format!("{} ended: {status}", self.name)),
            Err(error) => error.into(),
        }
    }
}

async fn listens(port: u16) -> Result<()> {
    let tried = async {
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, tried)
        .await
        .map_err(|_| BallistaError::General(format!("nobody listens on port {port}")))
}
