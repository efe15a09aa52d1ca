//! What DataFusion's CPU engine is given, so that floats and decimals mean on it what they mean on
//! the device.
//!
//! Arrow compares floats in IEEE's total order of their bits: −NaN is least, and NaN of different
//! payloads are different values (<https://github.com/apache/datafusion/issues/17557>); on x86,
//! `0.0 / 0.0` is such a −NaN. To SQL all NaN are one value, equal to itself and greater than every
//! other number. They are given one form where they arise: as columns leave a scan, in literals,
//! and in what expressions, aggregates and window functions make. What compares then need not know.
//!
//! ```text
//!   SELECT max(x / y) FROM t WHERE x <> 5
//!   SELECT float_of_order(max(float_order(x / y)))
//!     FROM (SELECT one_nan(x) AS x, one_nan(y) AS y FROM t) WHERE x <> 5
//! ```
//!
//! All of that is done as late as can be, so that DataFusion's own rules see the query that was
//! asked: in plans when they become physical ([`plan`]), and around constants while they are folded
//! ([`folding`]).

mod age;
mod arithmetic;
pub(crate) mod arrays_zip;
pub(crate) mod booleans;
mod calls;
mod casts;
pub(crate) mod date_bin;
pub(crate) mod date_trunc;
pub(crate) mod drawn;
mod expressions;
mod floats;
mod functions;
pub(crate) mod histogram;
mod in_unit;
pub(crate) mod interval_times;
mod intervals;
pub(crate) mod lambdas;
pub(crate) mod list_combinations;
mod lists;
mod md5;
pub(crate) mod mode;
mod nested_extremes;
mod nested_order;
mod nested_texts;
pub(crate) mod percentile;
mod plans;
pub(crate) mod random;
pub(crate) mod ranks;
pub(crate) mod shorthand;
mod simplify;
mod strptime;
mod sums;
pub(crate) mod text_casts;
pub(crate) mod whole;
pub(crate) mod width_bucket;
mod zones;

pub(crate) use casts::cast_exactly;
pub(crate) use expressions::{MOST_PLACES, host_expr};
pub(crate) use floats::holds_floats;
pub(crate) use in_unit::in_unit;
pub(crate) use intervals::{IntervalPart, interval_part, justified, part_of};
pub(crate) use plans::{HostPlanner, plan};
pub(crate) use simplify::folding;
