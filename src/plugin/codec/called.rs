//! The functions that a plan calls, and the types of its columns.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr::WindowFunctionDefinition;
use datafusion::logical_expr::{AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, ScalarUDF};

/// A function that a plan calls.
#[derive(PartialEq)]
pub(super) enum Called {
    Scalar(Arc<ScalarUDF>),
    Aggregate(Arc<AggregateUDF>),
    Window(WindowFunctionDefinition),
    OfLambdas(Arc<HigherOrderUDF>),
}

impl Called {
    pub(super) fn name(&self) -> &str {
        match self {
            Called::Scalar(function) => function.name(),
            Called::Aggregate(function) => function.name(),
            Called::Window(function) => function.name(),
            Called::OfLambdas(function) => function.name(),
        }
    }
}

/// The functions that a plan calls.
pub(super) fn called(plan: &LogicalPlan) -> Result<Vec<Called>> {
    let mut found = vec![];
    plan.apply(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                found.extend(match part {
                    Expr::ScalarFunction(call) => Some(Called::Scalar(call.func.clone())),
                    Expr::AggregateFunction(call) => Some(Called::Aggregate(call.func.clone())),
                    Expr::WindowFunction(call) => Some(Called::Window(call.fun.clone())),
                    Expr::HigherOrderFunction(call) => Some(Called::OfLambdas(call.func.clone())),
                    _ => None,
                });
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}

/// The types of a plan's columns.
pub(super) fn types(plan: &LogicalPlan) -> Vec<DataType> {
    plan.schema().fields().iter().map(|field| field.data_type().clone()).collect()
}
