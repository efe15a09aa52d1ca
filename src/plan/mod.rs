//! What of a plan runs on the device.
//!
//! The optimized logical plan is cut into maximal subtrees that the executor supports; each becomes one [`DeviceNode`],
//! which the physical planner turns into one leaf. Everything above runs on DataFusion's operators.

mod aggregates;
mod cpu;
mod cut;
mod estimate;
mod failing;
mod in_order;
mod join_order;
mod nesting;
mod node;
mod prepared;
mod replays;
mod sealed;
mod subquery;
mod support;
mod window;

pub(crate) use aggregates::{Bits, DeviceAggregate, Points, RegroupedCall, RegroupedKind, Share, device_aggregate};
pub(crate) use cpu::for_cpu;
pub(crate) use cut::{Cut, cut, explain};
pub(crate) use failing::{
    can_fail, cast_fails, fails_itself, has_failing, is_comparison, is_total, operands, sum_fails,
};
pub(crate) use in_order::evaluated_in_order;
pub(crate) use join_order::{join_cost, order_joins};
pub(crate) use nesting::{MOST_NESTED, balanced, joined, too_nested};
pub(crate) use node::DeviceNode;
pub(crate) use prepared::{
    Prepared, TablePlaceholder, Tables, bind, has_subqueries, is_repeatable, is_small, is_small_expr, lift,
    placeholder_number, reads_placeholders,
};
pub(crate) use replays::Replays;
pub(crate) use sealed::{
    in_order, in_order_case, in_place, into_operands, is_in_place, is_sealed, of_some_rows, unseal,
};
pub(crate) use subquery::with_one_row;
pub(crate) use window::{Bound, Frame, Step, WindowCall, WindowKeys, WindowKind, device_window};
