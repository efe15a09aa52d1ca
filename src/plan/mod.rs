//! What of a plan runs on the device.
//!
//! The optimized logical plan is cut into maximal subtrees that the executor supports; each becomes one [`DeviceNode`],
//! which the physical planner turns into one leaf. Everything above runs on DataFusion's operators.

mod cut;
mod node;
mod subquery;
mod support;

pub(crate) use cut::{Cut, cut};
pub(crate) use node::{DeviceNode, Planner};
pub(crate) use subquery::may_yield_several_rows;
pub(crate) use support::aggregate_call;
