//! The verbs of frames as values, so that an eager frame can tell whether it met one before.

use datafusion::logical_expr::{Expr, JoinType, SortExpr};

use super::LazyFrame;
use crate::error::Result;

/// What a verb of [`super::DataFrame`] was asked for, besides frames.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    Select(Vec<Expr>),
    WithColumns(Vec<Expr>),
    Filter(Expr),
    Aggregate {
        keys: Vec<Expr>,
        aggregates: Vec<Expr>,
    },
    Sort(Vec<SortExpr>),
    /// The same, of which only the row numbers are wanted.
    ArgSort(Vec<SortExpr>),
    TopK {
        k: usize,
        by: Vec<SortExpr>,
    },
    Join {
        kind: JoinType,
        left_on: Vec<String>,
        right_on: Vec<String>,
    },
    Limit {
        skip: usize,
        n: usize,
    },
    Distinct,
    Union,
}

impl Verb {
    /// The verb of lazy frames. `right` is the other frame of those verbs that take two, and `left` itself of the others.
    pub(crate) fn grow(&self, left: &LazyFrame, right: &LazyFrame) -> Result<LazyFrame> {
        match self.clone() {
            Verb::Select(exprs) => left.select(exprs),
            Verb::WithColumns(exprs) => left.with_columns(exprs),
            Verb::Filter(predicate) => left.filter(predicate),
            Verb::Aggregate { keys, aggregates } => left.group_by(keys).agg(aggregates),
            Verb::Sort(keys) | Verb::ArgSort(keys) => left.sort(keys),
            Verb::TopK { k, by } => left.top_k(k, by),
            Verb::Join { kind, left_on, right_on } => left.join(right, kind, left_on, right_on),
            Verb::Limit { skip, n } => left.limit(skip, n),
            Verb::Distinct => left.distinct(),
            Verb::Union => left.union(right),
        }
    }
}
