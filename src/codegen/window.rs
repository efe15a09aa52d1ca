//! Window functions, in generated code: where a row's frame is (`places.rs`), what reductions take
//! (`arguments.rs`) and yield (`results.rs`), ranks and rows looked up (`functions.rs`), and frames
//! as rows of their own (`frames.rs`, `ranks.rs`).

pub(crate) mod arguments;
pub(crate) mod frames;
pub(crate) mod functions;
pub(crate) mod places;
pub(crate) mod ranks;
pub(crate) mod results;
