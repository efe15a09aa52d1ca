//! Plans for DataFusion's CPU engine, so that they mean on it what they mean on the device.
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
//! ([`folding()`]). What an expression becomes is in `host`.
//!
//! | file | what |
//! |---|---|
//! | `plans` | the operators of a plan |
//! | `wide` | sums and frames that overflow in DataFusion |
//! | `in_order` | conditions that are evaluated in their order |
//! | `folding` | the rule that folds constants |

mod folding;
mod in_order;
mod plans;
mod wide;

pub(crate) use folding::folding;
pub(crate) use plans::{HostPlanner, plan};
pub(crate) use wide::for_cpu;
