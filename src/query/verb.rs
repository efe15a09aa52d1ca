//! The verbs of frames as values, so that a session can tell whether it met one before.

use std::hash::{Hash, Hasher};

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, NullHandling, UnnestOptions};
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder, SortExpr};

use super::builder::builder;
use super::{calls, join};
use crate::error::Result;
use crate::plan::{balanced, is_small_expr};

/// What a verb was asked for, besides frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verb {
    Select(Vec<Expr>),
    WithColumns(Vec<Expr>),
    /// Like `WithColumns`, but the rows may come in another order.
    WithColumnsInAnyOrder(Vec<Expr>),
    Filter(Expr),
    Aggregate {
        keys: Vec<Expr>,
        aggregates: Vec<Expr>,
    },
    Sort(Vec<SortExpr>),
    /// A sort of which only the row numbers are wanted.
    ArgSort(Vec<SortExpr>),
    TopK {
        k: usize,
        by: Vec<SortExpr>,
    },
    Join {
        kind: JoinType,
        left_on: Vec<String>,
        right_on: Vec<String>,
        /// Behind names of the right that the left has too.
        suffix: String,
        nulls_equal: bool,
    },
    /// A join on any condition.
    JoinWhere {
        kind: JoinType,
        on: Expr,
        suffix: String,
    },
    Limit {
        skip: usize,
        n: usize,
    },
    Distinct,
    Union,
    /// Rows that both have, as often as the rarer of both, or once.
    Intersect {
        all: bool,
    },
    /// Rows that the other has not, as often as they are more, or once.
    Except {
        all: bool,
    },
    /// A row for each element of lists; an empty list and null make one of null.
    Explode(Vec<String>),
}

/// Of less than what is compared: of a function its name, since to hash its signature takes longer
/// than all the rest.
impl Hash for Verb {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Verb::Select(exprs) | Verb::WithColumns(exprs) | Verb::WithColumnsInAnyOrder(exprs) => {
                hash_exprs(exprs, state)
            }
            Verb::Filter(predicate) => hash_exprs([predicate], state),
            Verb::Aggregate { keys, aggregates } => {
                hash_exprs(keys, state);
                hash_exprs(aggregates, state);
            }
            Verb::Sort(keys) | Verb::ArgSort(keys) => hash_keys(keys, state),
            Verb::TopK { k, by } => {
                k.hash(state);
                hash_keys(by, state);
            }
            Verb::Join { kind, left_on, right_on, suffix, nulls_equal } => {
                (kind, left_on, right_on, suffix, nulls_equal).hash(state);
            }
            Verb::JoinWhere { kind, on, suffix } => {
                (kind, suffix).hash(state);
                hash_exprs([on], state);
            }
            Verb::Limit { skip, n } => (skip, n).hash(state),
            Verb::Distinct | Verb::Union => {}
            Verb::Intersect { all } | Verb::Except { all } => all.hash(state),
            Verb::Explode(columns) => columns.hash(state),
        }
    }
}

fn hash_keys<H: Hasher>(keys: &[SortExpr], state: &mut H) {
    hash_exprs(keys.iter().map(|key| &key.expr), state);
    keys.iter().for_each(|key| (key.asc, key.nulls_first).hash(state));
}

fn hash_exprs<'a, H: Hasher>(exprs: impl IntoIterator<Item = &'a Expr>, state: &mut H) {
    for expr in exprs {
        // What it returns says where to go on, and it fails nowhere.
        let _ = expr.apply(|node| {
            hash_node(node, state);
            Ok(TreeNodeRecursion::Continue)
        });
        state.write_u8(0);
    }
}

/// An expression without those that it is made of, which follow it.
fn hash_node<H: Hasher>(node: &Expr, state: &mut H) {
    std::mem::discriminant(node).hash(state);
    match node {
        Expr::Alias(alias) => alias.name.hash(state),
        Expr::Column(column) => column.hash(state),
        Expr::Literal(value, _) => value.hash(state),
        Expr::BinaryExpr(both) => both.op.hash(state),
        Expr::Like(like) | Expr::SimilarTo(like) => {
            (like.negated, like.case_insensitive).hash(state)
        }
        Expr::Between(between) => between.negated.hash(state),
        Expr::InList(list) => (list.negated, list.list.len()).hash(state),
        Expr::Case(case) => {
            (case.expr.is_some(), case.when_then_expr.len(), case.else_expr.is_some()).hash(state);
        }
        Expr::Cast(cast) => cast.field.data_type().hash(state),
        Expr::TryCast(cast) => cast.field.data_type().hash(state),
        Expr::ScalarFunction(call) => (call.name(), call.args.len()).hash(state),
        Expr::AggregateFunction(call) => {
            let params = &call.params;
            (call.func.name(), params.args.len(), params.order_by.len()).hash(state);
            (params.distinct, params.filter.is_some(), &params.null_treatment).hash(state);
            params.order_by.iter().for_each(|key| (key.asc, key.nulls_first).hash(state));
        }
        Expr::WindowFunction(call) => {
            let params = &call.params;
            (call.fun.name(), params.args.len(), params.partition_by.len(), params.order_by.len())
                .hash(state);
            (
                params.distinct,
                params.filter.is_some(),
                &params.null_treatment,
                &params.window_frame,
            )
                .hash(state);
            params.order_by.iter().for_each(|key| (key.asc, key.nulls_first).hash(state));
        }
        _ => {}
    }
}

impl Verb {
    /// Whether a session may recognize it: to look at what is much deeper takes more stack than
    /// there may be.
    pub(crate) fn is_small(&self) -> bool {
        let of_sort = |keys: &[SortExpr]| keys.iter().all(|key| is_small_expr(&key.expr));
        match self {
            Verb::Select(exprs) | Verb::WithColumns(exprs) | Verb::WithColumnsInAnyOrder(exprs) => {
                exprs.iter().all(is_small_expr)
            }
            Verb::Filter(predicate) => is_small_expr(predicate),
            Verb::Aggregate { keys, aggregates } => {
                keys.iter().chain(aggregates).all(is_small_expr)
            }
            Verb::Sort(keys) | Verb::ArgSort(keys) | Verb::TopK { by: keys, .. } => of_sort(keys),
            Verb::JoinWhere { on, .. } => is_small_expr(on),
            Verb::Join { .. } | Verb::Limit { .. } | Verb::Distinct | Verb::Union => true,
            Verb::Intersect { .. } | Verb::Except { .. } | Verb::Explode(_) => true,
        }
    }

    /// Balances long chains of AND and OR in the verb's expressions.
    ///
    /// # Errors
    /// `Unsupported`, where an expression is too deep to be planned.
    pub(crate) fn balanced(self) -> Result<Verb> {
        self.with_exprs(balanced)
    }

    /// Gives parameters of lambdas the types that they have over this input.
    fn resolved(self, input: &LogicalPlan) -> Result<Verb> {
        let has_lambdas = |exprs: &[Expr]| {
            exprs
                .iter()
                .any(|expr| expr.exists(|expr| Ok(matches!(expr, Expr::Lambda(_)))).unwrap_or(true))
        };
        self.with_exprs(|exprs| {
            if !has_lambdas(&exprs) {
                return Ok(exprs);
            }
            let resolve = |expr: Expr| Ok(expr.resolve_lambda_variables(input.schema())?.data);
            exprs.into_iter().map(resolve).collect()
        })
    }

    /// Replaces the verb's expressions by others, as many.
    fn with_exprs(self, mut change: impl FnMut(Vec<Expr>) -> Result<Vec<Expr>>) -> Result<Verb> {
        let mut of_sort = |mut keys: Vec<SortExpr>| -> Result<Vec<SortExpr>> {
            let exprs = change(keys.iter_mut().map(|key| std::mem::take(&mut key.expr)).collect())?;
            keys.iter_mut().zip(exprs).for_each(|(key, expr)| key.expr = expr);
            Ok(keys)
        };
        Ok(match self {
            Verb::Sort(keys) => Verb::Sort(of_sort(keys)?),
            Verb::ArgSort(keys) => Verb::ArgSort(of_sort(keys)?),
            Verb::TopK { k, by } => Verb::TopK { k, by: of_sort(by)? },
            Verb::Select(exprs) => Verb::Select(change(exprs)?),
            Verb::WithColumns(exprs) => Verb::WithColumns(change(exprs)?),
            Verb::WithColumnsInAnyOrder(exprs) => Verb::WithColumnsInAnyOrder(change(exprs)?),
            Verb::Filter(predicate) => Verb::Filter(change(vec![predicate])?.remove(0)),
            Verb::Aggregate { mut keys, aggregates } => {
                let count = keys.len();
                keys.extend(aggregates);
                let mut keys = change(keys)?;
                let aggregates = keys.split_off(count);
                Verb::Aggregate { keys, aggregates }
            }
            Verb::JoinWhere { kind, on, suffix } => {
                Verb::JoinWhere { kind, on: change(vec![on])?.remove(0), suffix }
            }
            Verb::Join { .. } | Verb::Limit { .. } | Verb::Distinct | Verb::Union => self,
            Verb::Intersect { .. } | Verb::Except { .. } | Verb::Explode(_) => self,
        })
    }

    /// The plan of the verb on these inputs. `right` is the other one of those verbs that take two.
    ///
    /// # Errors
    /// What DataFusion's builder finds: unknown columns, types that do not fit, two results of one
    /// name.
    pub(crate) fn plan(
        &self,
        left: &LogicalPlan,
        right: Option<&LogicalPlan>,
    ) -> Result<LogicalPlan> {
        let (input, right) = (builder(left), right.unwrap_or(left));
        let grown = match self.clone().resolved(left)? {
            Verb::Select(exprs) => return calls::select(left, exprs),
            Verb::WithColumns(exprs) => {
                return calls::select(left, with_columns(left, calls::over_all_rows(exprs)?));
            }
            Verb::WithColumnsInAnyOrder(exprs) => {
                let exprs = with_columns(left, calls::over_all_rows(exprs)?);
                return calls::select_in_any_order(left, exprs);
            }
            Verb::Filter(predicate) => return calls::filter(left, predicate),
            Verb::Aggregate { keys, aggregates } => {
                return calls::aggregate(left, keys, aggregates);
            }
            Verb::Sort(keys) | Verb::ArgSort(keys) => input.sort(keys)?,
            Verb::TopK { k, by } => input.sort(by)?.limit(0, Some(k))?,
            Verb::Join { kind, left_on, right_on, suffix, nulls_equal } => {
                let on = join::JoinKeys { left: &left_on, right: &right_on, nulls_equal };
                return join::plan(left, right, kind, &on, &suffix);
            }
            Verb::JoinWhere { kind, on, suffix } => {
                return join::plan_where(left, right, kind, on, &suffix);
            }
            Verb::Limit { skip, n } => input.limit(skip, Some(n))?,
            Verb::Distinct => input.distinct()?,
            Verb::Union => input.union(builder(right))?,
            Verb::Intersect { all } => {
                return Ok(LogicalPlanBuilder::intersect(left.clone(), right.clone(), all)?);
            }
            Verb::Except { all } => {
                return Ok(LogicalPlanBuilder::except(left.clone(), right.clone(), all)?);
            }
            Verb::Explode(columns) => {
                let columns = columns.into_iter().map(Column::new_unqualified).collect();
                let mut options = UnnestOptions::new();
                options.null_handling = NullHandling::PreserveAndExpandEmpty;
                return Ok(LogicalPlanBuilder::from(left.clone())
                    .unnest_columns_with_options(columns, options)?
                    .build()?);
            }
        };
        Ok(grown.into_unoptimized_plan())
    }

    /// What users call it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Verb::Select(_) => "select",
            Verb::WithColumns(_) | Verb::WithColumnsInAnyOrder(_) => "with_columns",
            Verb::Filter(_) => "filter",
            Verb::Aggregate { .. } => "agg",
            Verb::Sort(_) => "sort",
            Verb::ArgSort(_) => "arg_sort",
            Verb::TopK { .. } => "top_k",
            Verb::Join { .. } => "join",
            Verb::JoinWhere { .. } => "join_where",
            Verb::Limit { .. } => "limit",
            Verb::Distinct => "distinct",
            Verb::Union => "union",
            Verb::Intersect { .. } => "intersect",
            Verb::Except { .. } => "except",
            Verb::Explode(_) => "explode",
        }
    }
}

/// All columns of a plan, and these expressions: each in place of the column of its name, or after
/// all others.
fn with_columns(plan: &LogicalPlan, exprs: Vec<Expr>) -> Vec<Expr> {
    let mut added: Vec<(String, Expr)> =
        exprs.into_iter().map(|expr| (expr.qualified_name().1, expr)).collect();
    let mut all: Vec<Expr> = Vec::new();
    for (qualifier, field) in plan.schema().iter() {
        match added.iter().position(|(name, _)| name == field.name()) {
            Some(index) => {
                let (name, expr) = added.remove(index);
                all.push(expr.alias(name));
            }
            None => all.push(Expr::from((qualifier, field))),
        }
    }
    all.extend(added.into_iter().map(|(_, expr)| expr));
    all
}
