//! What DataFusion's CPU engine computes with: functions of ours, and expressions in which floats,
//! decimals, casts and nested values mean what they mean on the device. Plans of them are in `cpu`.

pub(crate) mod age;
mod arithmetic;
pub(crate) mod arrays_zip;
mod arrow_forms;
mod bins;
pub(crate) mod bits;
pub(crate) mod booleans;
pub(crate) mod calls;
mod casts;
mod chains;
pub(crate) mod checked;
pub(crate) mod date_bin;
pub(crate) mod date_trunc;
pub(crate) mod digests;
mod empty_frames;
mod expressions;
mod floats;
mod function_names;
mod functions;
pub(crate) mod histogram;
mod in_unit;
pub(crate) mod interval_times;
mod intervals;
pub(crate) mod lambdas;
pub(crate) mod list_combinations;
mod lists;
mod lossless;
pub(crate) mod maps;
pub(crate) mod mode;
mod nested_extremes;
mod nested_order;
pub(crate) mod once_a_row;
pub(crate) mod percentile;
pub(crate) mod random;
pub(crate) mod ranks;
pub(crate) mod rounding;
pub(crate) mod shorthand;
mod stock;
mod sums;
mod time_texts;
pub(crate) mod utf8;
mod zones;

pub(crate) use arrow_forms::ArrowForm;
#[cfg(feature = "proto")]
pub(crate) use arrow_forms::named_function;
pub(crate) use bins::HistogramBins;
pub(crate) use casts::{cast_exactly, plain_moment, with_units};
pub(crate) use chains::{SHORT, joined};
pub(crate) use expressions::{
    MOST_PLACES, after, concerns, folding_expr, host_expr, is_extreme_of_floats, is_of_concern,
    makes_floats, plain_expr,
};
pub(crate) use floats::{FloatForm, holds_floats};
pub(crate) use functions::HostOperation;
pub(crate) use in_unit::in_unit;
pub(crate) use intervals::{IntervalPart, interval_part, justified, part_of};
pub(crate) use lossless::{cast_fails, cast_is_wrongly_dropped, cast_keeps};
pub(crate) use shorthand::{TimePattern, chrono_pattern};
pub(crate) use stock::differs_from_stock;
pub use time_texts::{json_writer, value_texts};
