//! How DataFusion parses and plans for a session.

use std::sync::Arc;

use datafusion::common::config::ConfigNonZeroUsize;
use datafusion::prelude::SessionConfig;

use super::rules;
use crate::error::Result;
use crate::io::FileNotes;

/// How deep the parser goes: parentheses, functions, CASE and queries one within another, of which
/// most count once. The stacks that statements are parsed and planned on
/// ([`crate::query::Core::deep`]) hold so many without optimisations.
pub(super) const MOST_PARSED: usize = 300;

/// How DataFusion plans for us.
pub(super) fn config(device: bool, partitions: Option<usize>) -> Result<SessionConfig> {
    let mut config = SessionConfig::new().with_extension(Arc::new(FileNotes::default()));
    if let Some(partitions) = partitions {
        config = config.with_target_partitions(partitions);
    }
    let options = config.options_mut();
    // `information.rs` has the schema.
    options.catalog.information_schema = false;
    options.sql_parser.recursion_limit = ConfigNonZeroUsize::try_new(MOST_PARSED)?;
    // Errors point at the SQL.
    options.sql_parser.collect_spans = true;
    // `rules/orders.rs` knows better which sorts are looked at.
    options.sql_parser.enable_subquery_sort_elimination = false;
    // Strings are views here and on the device.
    options.sql_parser.map_string_types_to_utf8view = true;
    options.execution.parquet.schema_force_view_types = true;
    // Files are read whole and in order, so that the same input gives the same rows in the same
    // order.
    options.execution.enable_file_stream_work_stealing = false;
    // Logical and physical expressions disagree on whether they are nullable: of CASE, and of IS TRUE
    // (https://github.com/apache/datafusion/issues/24096). What is below an aggregate decides.
    options.execution.skip_physical_aggregate_schema_check = true;
    // DataFusion (55.2) fails to plan a union of windows and groups that it has made an interleaving
    // one: later rules change the partitions of its inputs.
    options.optimizer.prefer_existing_union = true;
    if device {
        // Uncorrelated scalar subqueries become joins, which the device runs, not plans hidden
        // inside expressions.
        options.optimizer.enable_physical_uncorrelated_scalar_subquery = false;
        options.optimizer.max_passes = rules::PASSES;
    }
    Ok(config)
}
