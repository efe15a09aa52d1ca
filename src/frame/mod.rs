//! What users type: lazy and eager frames, and the expressions in their verbs.
//!
//! A [`LazyFrame`] is a plan that grows with each verb and runs at [`LazyFrame::collect`],
//! optimized as a whole. A [`DataFrame`] is a result, held by the device where there is one; its
//! verbs run at once. Both take the same expressions, which are DataFusion's, see [`expr`].

mod eager;
pub mod expr;
mod lazy;
mod rows;
mod written;

pub use datafusion::logical_expr::JoinType;
pub use eager::DataFrame;
pub use lazy::{GroupBy, LazyFrame};
