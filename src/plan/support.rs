//! Which operators the device runs, and the reasons for those it does not.

use std::any::Any;

use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, JoinType};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{
    Distinct, FetchType, Join, LogicalPlan, SkipType, TableScan, build_join_schema,
};

use super::aggregates::unsupported_aggregate;
use super::tables::is_placeholder;
use super::volatile::is_volatile;
use super::window::unsupported_window;
use crate::codegen::unsupported;
use crate::column::Repr;
use crate::io::OfSession;

/// Why this operator, its inputs aside, does not run on the device.
pub(crate) fn unsupported_node(plan: &LogicalPlan) -> Option<String> {
    let own = match plan {
        LogicalPlan::TableScan(scan) => table(scan),
        LogicalPlan::SubqueryAlias(_) | LogicalPlan::EmptyRelation(_) | LogicalPlan::Values(_) => {
            None
        }
        LogicalPlan::Projection(p) => p.expr.iter().find_map(|e| unsupported(e, p.input.schema())),
        LogicalPlan::Filter(f) => unsupported(&f.predicate, f.input.schema()),
        LogicalPlan::Aggregate(a) => unsupported_aggregate(a),
        LogicalPlan::Window(w) => unsupported_window(w),
        LogicalPlan::Distinct(Distinct::All(_)) => None,
        LogicalPlan::Join(j) => join(j),
        LogicalPlan::Sort(s) => s.expr.iter().find_map(|e| unsupported(&e.expr, s.input.schema())),
        LogicalPlan::Limit(limit) => match (limit.get_skip_type(), limit.get_fetch_type()) {
            (Ok(SkipType::Literal(_)), Ok(FetchType::Literal(_))) => None,
            _ => Some("its count is not a constant".into()),
        },
        LogicalPlan::Union(_) | LogicalPlan::Unnest(_) => None,
        _ => Some("the operator is not on the device yet".into()),
    };
    own.or_else(|| volatile(plan)).or_else(|| types(plan.schema()))
}

/// Kernels of these operators may compute an expression twice, and rely on it that both are the
/// same.
fn volatile(plan: &LogicalPlan) -> Option<String> {
    if matches!(plan, LogicalPlan::Projection(_) | LogicalPlan::Filter(_)) {
        return None;
    }
    let mut found = false;
    // Nothing fails here.
    let _ = plan.apply_expressions(|expr| {
        found |= is_volatile(expr);
        Ok(TreeNodeRecursion::Continue)
    });
    found.then(|| "a volatile function is not on the device in the condition of a join".into())
}

fn types(schema: &DFSchema) -> Option<String> {
    schema.fields().iter().find(|field| Repr::of(field.data_type()).is_none()).map(|field| {
        format!("column {} of type {} is not on the device yet", field.name(), field.data_type())
    })
}

fn table(scan: &TableScan) -> Option<String> {
    if is_placeholder(&scan.source) {
        return scan.filters.iter().find_map(|filter| unsupported(filter, &scan.projected_schema));
    }
    let Ok(provider) = source_as_provider(&scan.source) else {
        return Some("the table has no provider".into());
    };
    let any: &dyn Any = provider.as_ref();
    if any.is::<CteWorkTable>() {
        return Some("its rows are those of a recursive query's last step".into());
    }
    // Another provider applies what filters it took.
    OfSession::of(provider.as_ref())?;
    scan.filters.iter().find_map(|filter| unsupported(filter, &scan.projected_schema))
}

fn join(join: &Join) -> Option<String> {
    if join.null_aware && join.on.len() != 1 {
        return Some("NOT IN among rows that an equality selects is not on the device yet".into());
    }
    let keys = join.on.iter().find_map(|(left, right)| {
        unsupported(left, join.left.schema()).or_else(|| unsupported(right, join.right.schema()))
    });
    keys.or_else(|| {
        let filter = join.filter.as_ref()?;
        match build_join_schema(join.left.schema(), join.right.schema(), &JoinType::Inner) {
            Ok(both) => unsupported(filter, &both),
            Err(error) => Some(error.strip_backtrace()),
        }
    })
}
