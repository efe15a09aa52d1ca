//! What of a query runs on the device, and in which pipelines.
//!
//! ```text
//!   optimized logical plan ── cut ──▶ subtrees for the device, the rest for the CPU   support.rs
//!   a subtree ── order of joins ──▶ pipelines ──▶ exec                                physical.rs
//! ```
//!
//! The optimized logical plan is cut once into the largest subtrees that the executor supports
//! ([`Prepared`]). A subtree becomes a [`PhysicalPlan`] of pipelines, which is kept with it. Where
//! the device does not run the whole plan each subtree becomes one leaf of DataFusion's physical
//! plan ([`DeviceNode`]), and everything above runs on DataFusion's operators.

mod aggregates;
mod bind;
mod bins;
mod budget;
mod cut;
mod device_plan;
mod division;
mod estimate;
mod explain;
mod failing;
mod foresight;
mod join_order;
mod key_links;
mod names;
mod nesting;
mod node;
mod partial;
mod physical;
mod pipelines;
mod points;
mod prepared;
mod ranks;
mod sealed;
mod stages;
mod subquery;
mod support;
mod tables;
mod truth;
mod two_steps;
mod volatile;
mod walk;
mod window;

pub(crate) use aggregates::{
    BitwiseOperation, DeviceAggregate, Points, RegroupedCall, RegroupedKind, VarianceDivisor,
};
pub(crate) use bind::bind;
pub(crate) use budget::{Budget, LEAST_ROWS};
pub(crate) use cut::{CpuOperator, Cut, Root, cut_unless};
pub(crate) use device_plan::{DevicePlan, projection};
pub(crate) use division::{
    ByteCount, DividedOperator, Divides, Division, DivisionFacts, JoinSide, JoinWay, PARTIAL_PARTS,
    Way, decide, parts_of, ranges_of,
};
pub(crate) use estimate::{Estimate, estimate};
pub(crate) use explain::{explain, explain_on_cpu, files_of, join_name, sink_name};
pub(crate) use failing::{can_fail, fails_itself, has_failing, is_comparison, operands, sum_fails};
pub(crate) use foresight::{Foresight, OnDevices, Placed, PlacedParts};
pub(crate) use join_order::{join_cost, order_crosses, order_joins};
pub(crate) use key_links::{KeyLinks, TableColumn};
pub(crate) use names::{FreshNames, different, with_different_names};
pub(crate) use nesting::{MOST_NESTED, balanced, conjunction, too_nested};
pub(crate) use node::DeviceNode;
pub(crate) use partial::{average, projected};
pub(crate) use physical::{
    Aggregation, GroupKeys, PhysicalPlan, Pipeline, PipelineInput, PipelineJoin, PipelineSink,
    PipelineStage, WindowCalls,
};
pub(crate) use points::{of_points, variance_of};
pub(crate) use prepared::{Prepared, is_small, is_small_expr};
pub(crate) use ranks::by_ranks;
pub(crate) use sealed::{
    in_order, in_order_case, in_place, into_operands, is_in_place, is_sealed, is_sealed_case,
    of_some_rows, unseal,
};
pub(crate) use stages::{
    Cuts, GATHERED, InputRole, Stage, StageInput, StageLimits, StageRows, TableCuts, TaskPlace,
    may_be_cut, order_of, stages, task_by_cuts,
};
#[cfg(feature = "proto")]
pub(crate) use subquery::one_row_function;
pub(crate) use subquery::{is_one_row, one_row_value, with_nullable, with_one_row};
pub(crate) use tables::{
    PlanTable, Reads, TablePlaceholder, has_subqueries, identity, is_foreign, lift, placeholder,
    placeholder_number, reads_placeholders, same_table, table_source, with_nulls_of_inputs,
    with_present_types,
};
pub(crate) use truth::UnknownAs;
pub(crate) use two_steps::TwoSteps;
pub(crate) use volatile::{is_repeatable, is_volatile, is_volatile_call};
pub(crate) use walk::{any_node, holds_subquery, is_worth_it, over, schema_beneath};
pub(crate) use window::{
    Bound, Frame, RangeOffset, WindowCall, WindowKeys, WindowKind, device_window,
};
