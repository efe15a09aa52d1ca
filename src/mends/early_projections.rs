//! Rules over physical plans, kept from computing what can fail on rows that a filter drops.
//!
//! DataFusion (55.2) moves a projection below a filter where that makes rows narrower
//! (`FilterExec::try_swapping_with_projection`):
//!
//! ```text
//!   SELECT x, 10 / x + y + z FROM t WHERE x <> 0
//!
//!   ProjectionExec: x, 10 / x + y + z                    FilterExec: x <> 0
//!     FilterExec: x <> 0                        →          ProjectionExec: x, 10 / x + y + z
//! ```
//!
//! and a filter below a projection, where the filter's columns become what the projection computes.
//! A fence is an operator through which a rule sees nothing; it stands below projections that can
//! fail while the first kind of rule runs, and above them while the second does.
//!
//! It moves a sort below a limit, too, which then keeps other rows, and with OFFSET too few
//! (<https://github.com/apache/datafusion/pull/24958>); of an endless recursion it never has all
//! (<https://github.com/apache/datafusion/issues/25378>). A fence stands above limits meanwhile.
//!
//! Below a projection that computes over a file's columns stands one, too: DataFusion would have
//! the scan compute, before `io/guard.rs` looked whether the file's values are of their types, and
//! its functions are undefined over strings that are no UTF-8.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr,
    Literal, NegativeExpr, NotExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::filter_pushdown::{
    ChildFilterDescription, ChildPushdownResult, FilterDescription, FilterPushdownPhase,
    FilterPushdownPropagation,
};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::PhysicalRule;
use crate::codegen::is_total;
use crate::host::cast_fails;
use crate::plan::{is_comparison, sum_fails};

/// The rule that moves projections, with fences.
pub(super) fn rewrite_projections(
    rule: &PhysicalRule,
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    fenced(rule, plan, config, FenceSide::Below)
}

/// The rule that moves filters, with fences.
pub(super) fn rewrite_filters(
    rule: &PhysicalRule,
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    fenced(rule, plan, config, FenceSide::Above)
}

/// The rule that moves sorts, with fences.
pub(super) fn rewrite_sorts(
    rule: &PhysicalRule,
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    fenced(rule, plan, config, FenceSide::AboveLimits)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FenceSide {
    Below,
    Above,
    AboveLimits,
}

fn fenced(
    rule: &PhysicalRule,
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
    side: FenceSide,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut fences = 0;
    let fenced = plan.transform_up(|plan| {
        let fenced = with_fence(&plan, side)?;
        fences += usize::from(fenced.is_some());
        Ok(fenced.map_or_else(|| Transformed::no(plan), Transformed::yes))
    });
    let plan = rule.optimize(fenced.data()?, config)?;
    if fences == 0 {
        return Ok(plan);
    }
    let open = |plan: Arc<dyn ExecutionPlan>| match plan.downcast_ref::<Fence>() {
        Some(fence) => Transformed::yes(fence.input.clone()),
        None => Transformed::no(plan),
    };
    plan.transform_up(|plan| Ok(open(plan))).data()
}

/// A projection that can fail with a fence on one side, if the rule could move it or something
/// through it.
fn with_fence(
    plan: &Arc<dyn ExecutionPlan>,
    side: FenceSide,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if side == FenceSide::AboveLimits {
        let limits = plan.is::<GlobalLimitExec>() || plan.is::<LocalLimitExec>();
        let open = HashSet::new();
        return Ok(limits.then(|| Arc::new(Fence { input: plan.clone(), open, side }) as _));
    }
    let Some(project) = plan.downcast_ref::<ProjectionExec>() else { return Ok(None) };
    let (input, schema) = (project.input(), project.input().schema());
    let below = || {
        let fence = Fence { input: input.clone(), open: HashSet::new(), side };
        replace_children_if_necessary(plan.clone(), vec![Arc::new(fence)]).map(Some)
    };
    if side == FenceSide::Below
        && leads_to(input, is_scan_of_files)
        && !project.expr().iter().all(|of| selects(&of.expr))
    {
        return below();
    }
    let fails = |of: &ProjectionExpr| can_fail(&of.expr, &schema);
    if !project.expr().iter().any(fails) {
        return Ok(None);
    }
    match side {
        FenceSide::Above => {
            let open =
                (0..project.expr().len()).filter(|at| !fails(&project.expr()[*at])).collect();
            Ok(Some(Arc::new(Fence { input: plan.clone(), open, side })))
        }
        FenceSide::Below
            if project.expr().len() < schema.fields().len()
                && leads_to(input, |plan| plan.is::<FilterExec>()) =>
        {
            below()
        }
        FenceSide::Below | FenceSide::AboveLimits => Ok(None),
    }
}

/// Whether a projection could get to such an operator from above this one.
fn leads_to(plan: &Arc<dyn ExecutionPlan>, such: fn(&Arc<dyn ExecutionPlan>) -> bool) -> bool {
    match plan.children().as_slice() {
        _ if such(plan) => true,
        [input] => leads_to(input, such),
        _ => false,
    }
}

fn is_scan_of_files(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let scan = plan.downcast_ref::<DataSourceExec>();
    scan.is_some_and(|scan| scan.data_source().downcast_ref::<FileScanConfig>().is_some())
}

/// Whether an expression is a column, or a field of one: what is read, not what is made of it.
fn selects(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let field =
        |call: &ScalarFunctionExpr| call.name() == "get_field" && call.args().iter().all(selects);
    expr.is::<Column>()
        || expr.is::<Literal>()
        || expr.downcast_ref::<ScalarFunctionExpr>().is_some_and(field)
}

/// Whether an expression can fail, as `plan/failing.rs` says it of logical ones.
fn can_fail(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    fails_itself(expr, schema) || expr.children().into_iter().any(|child| can_fail(child, schema))
}

fn fails_itself(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    let safe = expr.is::<Column>()
        || expr.is::<Literal>()
        || expr.is::<IsNullExpr>()
        || expr.is::<IsNotNullExpr>();
    let safe = safe || expr.is::<NotExpr>() || expr.is::<InListExpr>() || expr.is::<LikeExpr>();
    if safe || expr.is::<CaseExpr>() || expr.is::<NegativeExpr>() {
        return false;
    }
    if let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() {
        let constant = |at: usize| {
            call.args().get(at).and_then(|of| of.downcast_ref::<Literal>()).map(Literal::value)
        };
        let count = |value: &ScalarValue| matches!(value, ScalarValue::Int64(Some(0..)));
        let substr = call.name() == "substr" && constant(1).is_some();
        return !(is_total(call.name())
            || substr && (call.args().len() == 2 || constant(2).is_some_and(count)));
    }
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        return cast
            .expr()
            .data_type(schema)
            .map_or(true, |from| cast_fails(&from, cast.cast_type()));
    }
    let Some(binary) = expr.downcast_ref::<BinaryExpr>() else { return true };
    match (binary.op(), binary.left().data_type(schema), binary.right().data_type(schema)) {
        (op @ (Operator::Plus | Operator::Minus | Operator::Multiply), Ok(left), Ok(right)) => {
            sum_fails(*op, &left, &right)
        }
        (Operator::Divide | Operator::Modulo, Ok(left), Ok(right)) => {
            !(left.is_floating() && right.is_floating())
        }
        (op, Ok(_), Ok(_)) => {
            !(is_comparison(*op) || op.is_logic_operator() || *op == Operator::StringConcat)
        }
        _ => true,
    }
}

/// An operator that does nothing, and that no rule sees through but filters of its open columns.
#[derive(Debug)]
struct Fence {
    input: Arc<dyn ExecutionPlan>,
    open: HashSet<usize>,
    side: FenceSide,
}

impl DisplayAs for Fence {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "FenceExec")
    }
}

impl ExecutionPlan for Fence {
    fn name(&self) -> &str {
        "FenceExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    /// Through what does not say so, no sort is moved. What sorts below a limit stays for its sake.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.side != FenceSide::AboveLimits]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 1]>::try_from(children) {
            Ok([input]) => Ok(Arc::new(Fence { input, open: self.open.clone(), side: self.side })),
            Err(_) => datafusion::common::internal_err!("a fence has one input"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let open = self.open.clone();
        let below =
            ChildFilterDescription::from_child_with_allowed_indices(&filters, open, &self.input)?;
        Ok(FilterDescription::new().with_child(below))
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        below: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(FilterPushdownPropagation::if_all(below))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}
