//! Code generation: DataFusion expressions become statements of a per-row body, pipelines become
//! kernels.
//!
//! A [`Flow`] says where rows come from and what happens to each; a [`Generator`] emits that as
//! statements; the sinks ([`materialize()`], [`aggregate()`]) put loops and outputs around them and
//! launch the kernel. Files of an operator's name (`window.rs`, `regroup.rs`) emit what `exec` has
//! computed between launches: they take and give values, buffers and numbers, never names.
//!
//! Files do not use one another in a circle (`scripts/check-modules.py`). From what uses nothing to
//! what uses all: failures, sites, statements ([`Emitter`]) and values; expressions, keys and
//! orders; flows; what a kernel needs (parameters, control words, arena); the generator; kernels;
//! sinks.

mod aggregate;
mod arena;
mod constants;
mod control;
mod device_function;
mod effort;
mod element;
mod emit;
mod exchange;
pub(crate) mod expr;
mod failure;
mod filter_mask;
mod flow;
mod generator;
mod group_key_check;
mod groups;
pub(crate) mod join;
mod join_partitioned;
mod kernel;
mod keys;
mod materialize;
mod middle;
mod order;
mod order_bytes;
mod order_compare;
mod outputs;
mod params;
mod parts;
mod prepared;
mod radix_partition;
mod record;
pub(crate) mod regroup;
pub(crate) mod row_number;
pub(crate) mod runs;
mod selectivity;
mod sites;
mod span;
mod statements;
mod uncompacted;
pub(crate) mod unnest;
pub(crate) mod user_fold;
mod value;
pub(crate) mod window;

pub(crate) use aggregate::{
    AggregateCall, AggregateKind, Attempt, FloatSums, Manner, OrderedInput, Partial, aggregate,
    plain_column, slots_by_keys,
};
pub(crate) use emit::Emitter;
pub(crate) use exchange::{emit_task, has_task};
pub(crate) use expr::{
    InSql, constant, function_fails, host_functions, in_sql, is_stock, is_total, of_like, of_units,
    to_zero, unsupported,
};
pub(crate) use flow::{
    BuildSide, Candidates, Flow, FlowSource, FlowStage, Keep, Probe, Records, Residual,
};
pub(crate) use generator::{Generator, join_layout, keys_inside};
pub(crate) use group_key_check::group_keys_collide;
pub(crate) use groups::{Accumulator, GroupOutput, GroupSlots, OutputKind};
pub(crate) use join_partitioned::{ColumnOrigin, PartitionedJoin, join_partitioned};
pub(crate) use keys::{KeyLayout, NullKeys, emit_part};
pub(crate) use materialize::{for_each, materialize};
pub(crate) use middle::Middle;
pub(crate) use order::{
    Direction, LONGEST_BYTES, LONGEST_SORTED, NullsPlace, emit_words, emit_words_of,
};
pub(crate) use order_bytes::{Preparation, emit_order_bytes, length_of, preparation};
pub(crate) use outputs::Codes;
pub(crate) use radix_partition::pays_from;
pub(crate) use selectivity::selectivity;
pub(crate) use sites::short_sql;
pub(crate) use span::Span;
pub(crate) use uncompacted::materialize_uncompacted;
pub(crate) use value::{Value, repr_bounds};
