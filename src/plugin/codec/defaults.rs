//! Functions that are DataFusion's own, whatever a session calls by their names: rules put some into
//! plans, such as `row_number`, of which a session's own yields another type.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};

/// Stands for them in place of a function's bytes.
pub(super) const OF_DATAFUSION: &[u8] = b"DataFusion";

/// The scalar function of this name.
pub(super) fn scalar(name: &str) -> Option<Arc<ScalarUDF>> {
    static ALL: LazyLock<HashMap<String, Arc<ScalarUDF>>> = LazyLock::new(|| {
        let all = SessionStateDefaults::default_scalar_functions();
        all.into_iter().map(|of| (of.name().to_string(), of)).collect()
    });
    ALL.get(name).cloned()
}

/// The aggregate of this name.
pub(super) fn aggregate(name: &str) -> Option<Arc<AggregateUDF>> {
    static ALL: LazyLock<HashMap<String, Arc<AggregateUDF>>> = LazyLock::new(|| {
        let all = SessionStateDefaults::default_aggregate_functions();
        all.into_iter().map(|of| (of.name().to_string(), of)).collect()
    });
    ALL.get(name).cloned()
}

/// The window function of this name.
pub(super) fn window(name: &str) -> Option<Arc<WindowUDF>> {
    static ALL: LazyLock<HashMap<String, Arc<WindowUDF>>> = LazyLock::new(|| {
        let all = SessionStateDefaults::default_window_functions();
        all.into_iter().map(|of| (of.name().to_string(), of)).collect()
    });
    ALL.get(name).cloned()
}
