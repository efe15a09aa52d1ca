//! What users type: lazy and eager frames, and the expressions in their verbs.
//!
//! A [`LazyFrame`] is a plan that grows with each verb and runs at [`LazyFrame::collect`],
//! optimized as a whole. A [`DataFrame`] is a result, held by the device where there is one; its
//! verbs run at once. Both are an [`AnyFrame`], which has the verbs, and take the same expressions,
//! see [`expr`].

mod any;
mod as_polars;
mod asynchronous;
mod base;
mod cells;
mod device_columns;
mod display;
mod eager;
pub mod expr;
mod from_values;
mod group_by;
mod lazy;
mod profile;
mod reader;
mod row_batches;
mod rows;
mod series;
pub mod verbs;
mod written;

pub use crate::host::{json_writer, value_texts};
pub use any::FrameState;
pub use base::AnyFrame;
pub use cells::{ColumnValue, FromColumn, IntoArray, MaybeValue};
pub use datafusion::logical_expr::JoinType;
pub use display::{Borders, FrameFormat, TextTable, terminal_size};
pub use eager::{DataFrame, Eager};
pub use expr::Expr;
pub use group_by::GroupBy;
pub use lazy::{Lazy, LazyFrame};
pub use row_batches::RowBatches;
pub use series::{Row, Series};
