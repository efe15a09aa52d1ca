//! Operators that are divided in two steps: over parts of their rows, and over what these yield.

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, Sort, SortExpr};

use super::partial::PartialAggregate;
use crate::error::Result;

/// An operator in two steps.
#[derive(Debug, Clone)]
pub(crate) enum TwoSteps {
    Aggregate(Box<PartialAggregate>),
    Distinct,
    /// The first rows by an order.
    Top {
        keys: Vec<SortExpr>,
        fetch: usize,
    },
}

impl TwoSteps {
    /// What is to be done with a part of the rows.
    ///
    /// # Errors
    /// Of plans that do not fit together.
    pub(crate) fn partial(&self, input: LogicalPlan) -> Result<LogicalPlan> {
        match self {
            TwoSteps::Aggregate(aggregate) => aggregate.partial(input),
            _ => self.merged(input),
        }
    }

    /// What makes one partial result of several.
    ///
    /// # Errors
    /// Of plans that do not fit together.
    pub(crate) fn merged(&self, input: LogicalPlan) -> Result<LogicalPlan> {
        match self {
            TwoSteps::Aggregate(aggregate) => aggregate.merged(input),
            TwoSteps::Distinct => Ok(LogicalPlan::Distinct(Distinct::All(Arc::new(input)))),
            TwoSteps::Top { keys, fetch } => Ok(LogicalPlan::Sort(Sort {
                expr: keys.clone(),
                input: Arc::new(input),
                fetch: Some(*fetch),
            })),
        }
    }

    /// What makes the result of partial results.
    ///
    /// # Errors
    /// Of plans that do not fit together.
    pub(crate) fn finished(&self, input: LogicalPlan) -> Result<LogicalPlan> {
        match self {
            TwoSteps::Aggregate(aggregate) => aggregate.finished(input),
            _ => self.merged(input),
        }
    }

    /// Whether partial results may be merged apart from one another.
    pub(super) fn has_keys(&self) -> bool {
        match self {
            TwoSteps::Aggregate(aggregate) => aggregate.key_count() > 0,
            TwoSteps::Distinct => true,
            TwoSteps::Top { .. } => false,
        }
    }

    /// Columns of a partial result whose values tell groups apart: rows of different values are
    /// merged apart. `None` where all partial results are merged at once.
    pub(crate) fn keys(&self, partial: &DFSchema) -> Option<Vec<Expr>> {
        let count = match self {
            TwoSteps::Aggregate(aggregate) => aggregate.key_count(),
            TwoSteps::Distinct => partial.fields().len(),
            TwoSteps::Top { .. } => 0,
        };
        let keys: Vec<Expr> = partial.columns().into_iter().take(count).map(Expr::Column).collect();
        (!keys.is_empty()).then_some(keys)
    }
}
