//! DataFusion's context of a session: its rules, functions and planners.

use std::sync::Arc;
#[cfg(feature = "proto")]
use std::sync::OnceLock;

use datafusion::execution::FunctionRegistry;
#[cfg(feature = "proto")]
use datafusion::execution::SessionState;
use datafusion::execution::context::SessionContext;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::SessionConfig;

use super::rules;
use crate::error::Result;
use crate::host;

/// A context without tables. `has_device`: plans are made for one.
pub(super) fn context(
    config: SessionConfig,
    runtime: Arc<RuntimeEnv>,
    has_device: bool,
) -> Result<SessionContext> {
    let mut defaults = SessionStateBuilder::new_with_default_features();
    // Before DataFusion's, which take any subscript for a list's.
    let planners = defaults.expr_planners().get_or_insert_default();
    planners.insert(0, Arc::new(rules::TypedOperators));
    let state = defaults
        .with_config(config)
        .with_runtime_env(runtime)
        .with_optimizer_rules(rules::logical(has_device))
        .with_query_planner(Arc::new(crate::cpu::HostPlanner))
        .with_type_planner(Arc::new(rules::SqlTypes))
        .with_analyzer_rules(rules::analyzer_rules(has_device))
        .with_physical_optimizer_rules(rules::rules())
        .build();
    let mut context = SessionContext::new_with_state(state);
    context.register_expr_planner(Arc::new(rules::IntervalOperators))?;
    for function in crate::codegen::host_functions() {
        context.register_udf(function.as_ref().clone());
    }
    for function in [
        host::booleans::sum(),
        host::booleans::avg(),
        host::mode::mode(),
        host::percentile::percentile_cont(),
    ] {
        context.register_udaf(function.as_ref().clone());
    }
    context.register_udaf(host::histogram::histogram());
    for function in host::ranks::ranks() {
        context.register_udwf(function);
    }
    context.register_udf(rules::share_of_rows());
    for function in host::lambdas::functions() {
        context.register_higher_order_function(function);
    }
    Ok(context)
}

/// What the CPU engine of a cluster's executor plans by, for the stages of sessions: everything of
/// a session's but tables.
///
/// # Errors
/// None but DataFusion's own.
#[cfg(feature = "proto")]
pub(crate) fn state_of_executors() -> Result<&'static SessionState> {
    static STATE: OnceLock<SessionState> = OnceLock::new();
    if let Some(state) = STATE.get() {
        return Ok(state);
    }
    let made = context(super::config::config(true, None)?, Arc::default(), true)?;
    Ok(STATE.get_or_init(|| made.state()))
}
