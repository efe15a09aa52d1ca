//! What all processes of a cluster have the same.

use std::time::Duration;

use ballista_core::extension::SessionConfigExt;
use datafusion::error::Result;
use datafusion::prelude::SessionConfig;

/// How often an executor says that it lives.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(5);
/// How long an executor may be silent until its tasks run elsewhere.
pub(crate) const SILENCE: Duration = Duration::from_secs(20);
/// Most bytes of a message: of a plan, with the rows of its tables in memory, of which there may be
/// 64 MiB.
pub(crate) const MESSAGE: u32 = 128 << 20;

/// Begins the name of a metric of stages: how many tasks the executor ran whose name follows.
pub(crate) const ON_EXECUTOR: &str = "tasks on ";
/// The metric of the bytes that tasks wrote for those who read their rows.
pub(crate) const BYTES_WRITTEN: &str = "bytes_written";
/// The metric of warpframe's stages that counts tasks which the CPU engine ran.
pub(crate) const RUN_ON_CPU: &str = "run_on_cpu";

const SETTINGS: [(&str, &str); 5] = [
    // The adaptive planner plans anew, from logical plans and by rules of its own.
    ("ballista.planner.adaptive.enabled", "false"),
    // A task is a partition of a stage: the device runs one at a time, whole.
    ("ballista.scheduler.max_partitions_per_task", "1"),
    // A core compresses slower than networks and memory take bytes.
    ("ballista.shuffle.compression.codec", "none"),
    ("ballista.client.grpc_max_message_size", "134217728"),
    // The device's readers want rows in the order of the files.
    ("datafusion.execution.enable_file_stream_work_stealing", "false"),
];

/// The settings of a session. Those of a client's come to the executors with each task.
pub(crate) fn session_config() -> Result<SessionConfig> {
    let mut config = SessionConfig::new_with_ballista();
    for (name, value) in SETTINGS {
        config.options_mut().set(name, value)?;
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_are_known_to_datafusion_and_ballista() {
        let config = session_config().expect("settings");
        let ballista = config.ballista_config();
        assert!(!ballista.adaptive_query_planner_enabled());
        assert_eq!(ballista.max_partitions_per_task(), 1);
        assert_eq!(ballista.grpc_client_max_message_size(), MESSAGE as usize);
    }
}
