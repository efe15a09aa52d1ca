//! The type that lazy and eager frames are of.

use std::sync::Arc;

use crate::query::Core;

/// A [`LazyFrame`](super::LazyFrame) or a [`DataFrame`](super::DataFrame): what both can do.
///
/// A verb is documented here once, and its example shows it on one of both; the other has it, too.
/// On a lazy frame it makes a longer plan, and finds wrong names and types; on an eager one it also
/// runs.
///
/// ```
/// use warpframe::prelude::*;
///
/// fn ten_best<S: FrameState>(frame: &AnyFrame<S>) -> warpframe::Result<AnyFrame<S>> {
///     frame.filter(col("x").is_not_null())?.top_k(10, [desc("x")])
/// }
///
/// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let lazy: LazyFrame = session.sql("SELECT column1 AS x FROM (VALUES (1), (NULL), (3))")?;
/// let eager: DataFrame = lazy.collect()?;
/// assert_eq!(ten_best(&lazy)?.collect()?.num_rows(), ten_best(&eager)?.num_rows());
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Clone)]
pub struct AnyFrame<S> {
    pub(super) core: Arc<Core>,
    pub(super) state: S,
}
