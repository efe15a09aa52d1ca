//! warpframe on several machines.
//!
//! [Ballista](https://datafusion.apache.org/ballista/) schedules: it cuts a plan at its exchanges,
//! hands tasks to executors, moves rows between them and runs lost tasks again. What is ours are
//! the plan, whose stages are `warpframe`'s, and the executors, each with a device.
//!
//! ```text
//!   client                     scheduler                    executors
//!   session ─▶ plan of ──────▶ cut at exchanges ─────tasks─▶ a stage on a device
//!              stages                                        │  ▲
//!   rows ◀───────────────────────────────────────────────────┘  └── rows between stages
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`client`] | sessions on a cluster: submits their plans, and reads their rows |
//! | [`scheduler`] | Ballista's scheduler, which knows plans with our stages |
//! | [`executor`] | Ballista's executor with a device |
//! | [`local`] | a cluster on this machine, for trying |
//! | `attempts` | rows of tasks that ran twice |
//! | `codec` | plans with our stages as bytes |
//! | `exchange` | rows between stages, read from files or other machines |
//! | `failures` | which failures are worth another try |
//! | `gathered` | rows between stages that are not parted |
//! | `settings` | what all processes must have the same |
//! | `shuffle` | rows between stages, parted on the device |
//! | `work_folder` | the folder for them |

#![warn(missing_docs)]

mod attempts;
pub mod client;
mod codec;
mod exchange;
pub mod executor;
mod failures;
mod gathered;
pub mod local;
pub mod scheduler;
mod settings;
mod shuffle;
mod work_folder;

pub use self::codec::ClusterCodec;
