//! What users type: lazy and eager frames, and the expressions in their verbs.
//!
//! A [`LazyFrame`] is a plan that grows with each verb and runs at [`LazyFrame::collect`],
//! optimized as a whole. A [`DataFrame`] is a result, held by the device where there is one; its
//! verbs run at once. Both take the same expressions, which are DataFusion's, see [`expr`].

mod asynchronous;
mod cells;
mod display;
mod eager;
pub mod expr;
mod lazy;
mod made;
mod rows;
mod series;
mod written;

pub use cells::{ColumnValue, FromColumn, IntoArray, MaybeValue};
pub use datafusion::logical_expr::JoinType;
pub use display::{Borders, FrameFormat, TextTable};
pub use eager::DataFrame;
pub use lazy::{GroupBy, LazyFrame};
pub use series::{Row, Series};
