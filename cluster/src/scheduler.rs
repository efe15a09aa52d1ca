//! Ballista's scheduler, which knows plans with stages of warpframe. It has no device.

use std::net::SocketAddr;
use std::sync::Arc;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::{BallistaError, Result};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::start_server;

use crate::codec::ClusterCodec;
use crate::settings::{MESSAGE, SILENCE, session_config};

/// Where a scheduler listens.
#[derive(Debug, Clone, clap::Args)]
pub struct SchedulerOptions {
    /// Address to listen on; 0.0.0.0 for all. Whoever reaches it may run queries
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub bind_host: String,

    /// Port for clients and executors
    #[arg(long, value_name = "PORT", default_value_t = 50050)]
    pub bind_port: u16,

    /// The name by which executors reach this machine; otherwise the address it listens on
    #[arg(long, value_name = "HOST")]
    pub external_host: Option<String>,
}

/// Schedules until the process ends.
///
/// # Errors
/// If it cannot listen there.
pub async fn run(options: &SchedulerOptions) -> Result<()> {
    let address = format!("{}:{}", options.bind_host, options.bind_port);
    let address: SocketAddr = address
        .parse()
        .map_err(|error| BallistaError::Configuration(format!("{address}: {error}")))?;
    let settings = session_config()?;
    let silence = SILENCE.as_secs();
    let config = SchedulerConfig {
        bind_host: options.bind_host.clone(),
        bind_port: options.bind_port,
        external_host: options.external_host.clone().unwrap_or(options.bind_host.clone()),
        scheduling_policy: TaskSchedulingPolicy::PushStaged,
        // Each device gets as many tasks of a stage as the others.
        task_distribution: TaskDistributionPolicy::RoundRobin,
        executor_timeout_seconds: silence,
        no_executors_grace_period_seconds: silence,
        expire_dead_executor_interval_seconds: 5,
        grpc_server_max_decoding_message_size: MESSAGE,
        grpc_server_max_encoding_message_size: MESSAGE,
        grpc_client_max_message_size: MESSAGE,
        override_config_producer: Some(Arc::new(move || settings.clone())),
        override_physical_codec: Some(Arc::new(ClusterCodec::default())),
        ..SchedulerConfig::default()
    };
    let cluster = BallistaCluster::new_from_config(&config).await?;
    start_server(cluster, address, Arc::new(config)).await
}
