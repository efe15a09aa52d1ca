//! `LIMIT 10%`: a share of the rows, which are computed first.
//!
//! By now (`syntax/limits.rs`) a call stands for the percentage, which the planner takes for a
//! number that is to be computed.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::plan_err;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::any_node;
use crate::query::{SHARE_OF_ROWS, SharedRows};

/// Whether an operator limits by a share.
pub(super) fn concerns(node: &LogicalPlan) -> bool {
    percent(node).is_some()
}

/// The percentage of an operator, as a text.
fn percent(node: &LogicalPlan) -> Option<&str> {
    let LogicalPlan::Limit(limit) = node else { return None };
    match limit.fetch.as_deref()? {
        Expr::ScalarFunction(call) if call.name() == SHARE_OF_ROWS => match call.args.first()? {
            Expr::Literal(percent, _) => percent.try_as_str().flatten(),
            _ => None,
        },
        _ => None,
    }
}

/// The plan with rows in place of such operators.
///
/// # Errors
/// A subquery whose rows depend on those around it.
pub(super) fn shares(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| {
        let Some(percent) = percent(&node).map(String::from) else {
            return Ok(Transformed::no(node));
        };
        let LogicalPlan::Limit(limit) = node else { return Ok(Transformed::no(node)) };
        if any_node(&limit.input, |node| Ok(node.contains_outer_reference()))? {
            return plan_err!("LIMIT {percent}% in a subquery that refers to the rows around it");
        }
        let (skip, input) = (limit.skip.map(|skip| *skip), limit.input.as_ref().clone());
        Ok(Transformed::yes(SharedRows::share(percent, skip, input)))
    })?;
    Ok(plan.data)
}

/// The function that stands for the percentage.
pub(in crate::session) fn share_of_rows() -> ScalarUDF {
    ScalarUDF::from(ShareOfRows { signature: Signature::string(1, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ShareOfRows {
    signature: Signature,
}

impl ScalarUDFImpl for ShareOfRows {
    fn name(&self) -> &str {
        SHARE_OF_ROWS
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        plan_err!("no function named {SHARE_OF_ROWS:?}")
    }
}
