//! DataFusion's builder of plans, without a session.

use std::sync::LazyLock;

use datafusion::dataframe::DataFrame as Builder;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;

/// A plan in the hands of DataFusion's builder, whose verbs look at nothing of a session: its state
/// would be copied for each, with hundreds of functions.
pub(super) fn builder(plan: &LogicalPlan) -> Builder {
    static EMPTY: LazyLock<SessionState> = LazyLock::new(|| SessionStateBuilder::new().build());
    Builder::new(EMPTY.clone(), plan.clone())
}
