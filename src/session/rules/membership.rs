//! `IN`, `NOT IN`, `= ANY` and `<> ALL` of subqueries in three-valued logic.
//!
//! DataFusion (55.2, `DecorrelatePredicateSubquery`) makes a semi join, a null-aware anti join or a
//! mark join of them. A mark says whether there is a match, and so takes unknown for false: `x NOT
//! IN q OR c` kept rows for which it is unknown, `(x IN q) IS NULL` was never true
//! (<https://github.com/apache/datafusion/issues/8241>). Its null-aware join knows no correlated
//! subquery (<https://github.com/apache/datafusion/issues/25347>). What nulls may decide is
//! therefore written out, before it comes to that:
//!
//! ```text
//!   match    EXISTS (SELECT FROM q WHERE c = x)
//!   unknown  no match, and q has a null, or x is null and q has a row
//! ```
//!
//! Where unknown may as well be false, as in `WHERE x IN q OR c`, a mark is right, and `WHERE x NOT
//! IN q` alone has its join: those stay as they are.

mod values;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Case, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator,
    Subquery, binary_expr, lit, not, when,
};
use datafusion::optimizer::AnalyzerRule;

use super::correlation::{self, is_correlated};
use super::subqueries::is_lookup;
use super::{any_node, holds_subquery};
use crate::error::Error;
use crate::plan::{UnknownAs, can_fail};

/// Runs behind the coercion of types.
#[derive(Debug)]
pub(super) struct Membership;

impl AnalyzerRule for Membership {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !any_node(&plan, holds_subquery)? {
            return Ok(plan);
        }
        let mut sought = 0;
        Ok(plan.transform_up_with_subqueries(|node| of_node(node, &mut sought))?.data)
    }

    fn name(&self) -> &str {
        "membership_in_three_valued_logic"
    }
}

fn of_node(node: LogicalPlan, sought: &mut usize) -> Result<Transformed<LogicalPlan>> {
    let mut subqueries = false;
    node.apply_expressions(|expr| {
        subqueries |= has_subquery(expr)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !subqueries {
        return Ok(Transformed::no(node));
    }
    let columns = node.schema().columns();
    let node = written_out(values::below(node, sought)?)?;
    if node.schema().fields().len() == columns.len() {
        return Ok(Transformed::yes(node));
    }
    // Without those that were added below a filter.
    let columns = columns.into_iter().map(Expr::Column);
    Ok(Transformed::yes(LogicalPlanBuilder::from(node).project(columns)?.build()?))
}

fn written_out(node: LogicalPlan) -> Result<LogicalPlan> {
    let schema = merge_schema(&node.inputs());
    if let LogicalPlan::Filter(filter) = node {
        let predicate =
            ClausePlace { schema: &schema, joins: true }.of(filter.predicate, UnknownAs::False)?;
        return Ok(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?));
    }
    let place = ClausePlace { schema: &schema, joins: false };
    let unknown =
        if matches!(node, LogicalPlan::Join(_)) { UnknownAs::False } else { UnknownAs::Itself };
    let names = NamePreserver::new(&node);
    let node = node.map_expressions(|expr| {
        if !has_subquery(&expr)? {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        Ok(Transformed::yes(name.restore(place.of(expr, unknown)?)))
    })?;
    node.data.recompute_schema()
}

fn has_subquery(expr: &Expr) -> Result<bool> {
    expr.exists(|expr| {
        Ok(matches!(
            expr,
            Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::SetComparison(_)
                | Expr::ScalarSubquery(_)
        ))
    })
}

/// Where expressions stand.
struct ClausePlace<'a> {
    /// Of the rows that they are computed for.
    schema: &'a DFSchema,
    /// Whether conjuncts become semi and anti joins.
    joins: bool,
}

impl ClausePlace<'_> {
    fn of(&self, expr: Expr, unknown: UnknownAs) -> Result<Expr> {
        if !has_subquery(&expr)? {
            return Ok(expr);
        }
        // Only operands of AND are conjuncts.
        let within = ClausePlace { schema: self.schema, joins: false };
        let boxed =
            |expr: Box<Expr>, unknown| -> Result<_> { Ok(Box::new(within.of(*expr, unknown)?)) };
        Ok(match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                self.of(*left, unknown)?.and(self.of(*right, unknown)?)
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
                within.of(*left, unknown)?.or(within.of(*right, unknown)?)
            }
            Expr::Not(operand) => match *operand {
                Expr::InSubquery(member) => self.of(
                    Expr::InSubquery(InSubquery { negated: !member.negated, ..member }),
                    unknown,
                )?,
                Expr::Exists(exists) => {
                    self.of(Expr::Exists(Exists { negated: !exists.negated, ..exists }), unknown)?
                }
                operand => not(within.of(operand, unknown.negated())?),
            },
            Expr::IsTrue(operand) => Expr::IsTrue(boxed(operand, UnknownAs::False)?),
            Expr::IsNotTrue(operand) => Expr::IsNotTrue(boxed(operand, UnknownAs::False)?),
            Expr::IsFalse(operand) => Expr::IsFalse(boxed(operand, UnknownAs::True)?),
            Expr::IsNotFalse(operand) => Expr::IsNotFalse(boxed(operand, UnknownAs::True)?),
            Expr::Alias(mut alias) => {
                alias.expr = Box::new(self.of(*alias.expr, unknown)?);
                Expr::Alias(alias)
            }
            Expr::Case(case) => {
                let conditions =
                    if case.expr.is_some() { UnknownAs::Itself } else { UnknownAs::False };
                let operand = case.expr.map(|expr| boxed(expr, UnknownAs::Itself)).transpose()?;
                let branch = |(when, then)| Ok((boxed(when, conditions)?, boxed(then, unknown)?));
                let branches =
                    case.when_then_expr.into_iter().map(branch).collect::<Result<_>>()?;
                let other = case.else_expr.map(|expr| boxed(expr, unknown)).transpose()?;
                Expr::Case(Case::new(operand, branches, other))
            }
            Expr::InSubquery(member) => self.member(Member::of_in(member), unknown)?,
            Expr::SetComparison(comparison) => {
                self.member(Member::of_comparison(comparison)?, unknown)?
            }
            Expr::Exists(exists) => {
                let found = correlation::exists(exists.subquery)?;
                if exists.negated { negation(found) } else { found }
            }
            Expr::ScalarSubquery(subquery) if is_lookup(&subquery) => {
                Expr::ScalarSubquery(subquery)
            }
            Expr::ScalarSubquery(subquery) => Expr::ScalarSubquery(correlation::ready(subquery)?),
            other => {
                other
                    .map_children(|child| {
                        Ok(Transformed::yes(within.of(child, UnknownAs::Itself)?))
                    })?
                    .data
            }
        })
    }

    fn member(&self, member: Member, unknown: UnknownAs) -> Result<Expr> {
        let within = ClausePlace { schema: self.schema, joins: false };
        let member = Member { value: within.of(member.value, UnknownAs::Itself)?, ..member };
        let correlated = is_correlated(&member.subquery.subquery);
        if correlated && let Some(parts) = correlation::parts(&member)? {
            let found = if member.negated { negation(parts) } else { parts };
            return self.of(found, unknown);
        }
        let Member { value, operator, subquery, negated } = member;
        let nulls = Nulls {
            here: value.nullable(self.schema)?,
            there: subquery.subquery.schema().field(0).is_nullable(),
        };
        let none = !nulls.here && !nulls.there;
        // A value without a column is no key of a join: nulls were lost, and matches
        // (<https://github.com/apache/datafusion/issues/25340>).
        let joins = self.joins && unknown == UnknownAs::False && operator == Operator::Eq;
        if joins && !value.column_refs().is_empty() && !(negated && correlated) {
            let subquery = correlation::ready(subquery)?;
            return Ok(Expr::InSubquery(InSubquery::new(Box::new(value), subquery, negated)));
        }

        let found = self.matches(&value, operator, &subquery)?;
        // Where unknown is false, and where it is true of the negation, a mark says all.
        let mark = unknown == if negated { UnknownAs::True } else { UnknownAs::False };
        if mark || none {
            return Ok(if negated { negation(found) } else { found });
        }
        let undecided = match correlated {
            true => undecided(&value, &subquery, nulls)?,
            false => undecided_of_all(&value, &subquery, nulls)?,
        };
        Ok(match (unknown, negated) {
            // True where there is a match and where it is unknown, so that only truth is left of
            // the negation.
            (UnknownAs::True, false) => found.or(undecided),
            (UnknownAs::False, true) => negation(found).and(negation(undecided)),
            _ => when(found, lit(!negated))
                .when(undecided, lit(ScalarValue::Boolean(None)))
                .otherwise(lit(negated))?,
        })
    }

    /// Whether a row of the subquery compares so to the value, never unknown.
    fn matches(&self, value: &Expr, operator: Operator, subquery: &Subquery) -> Result<Expr> {
        // A value that can fail stays in sight of the conditions that guard it (`guards.rs`).
        let guarded = operator == Operator::Eq && can_fail(value, self.schema);
        if has_subquery(value)? || value.contains_outer() || guarded {
            if operator != Operator::Eq {
                let what = format!("{value} {operator} ANY or ALL of a subquery");
                return Err(Error::unsupported(what, "the value comes from another query").into());
            }
            // As a condition of CASE unknown is false.
            let subquery = correlation::ready(subquery.clone())?;
            let found = Expr::InSubquery(InSubquery::new(Box::new(value.clone()), subquery, false));
            return when(found, lit(true)).otherwise(lit(false));
        }
        let value = value.clone().transform_up(|expr| match expr {
            Expr::Column(column) => {
                let field = self.schema.field_from_column(&column)?.clone();
                Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        exists_where(subquery, binary_expr(value.data, operator, only_column(&subquery.subquery)))
    }
}

/// `value operator ANY (subquery)`, or its negation: `IN` is `= ANY`, and `x < ALL q` is `NOT x >=
/// ANY q`.
pub(super) struct Member {
    pub(super) value: Expr,
    pub(super) operator: Operator,
    pub(super) subquery: Subquery,
    pub(super) negated: bool,
}

impl Member {
    fn of_in(InSubquery { expr, subquery, negated }: InSubquery) -> Member {
        Member { value: *expr, operator: Operator::Eq, subquery, negated }
    }

    fn of_comparison(
        SetComparison { expr, subquery, op, quantifier }: SetComparison,
    ) -> Result<Member> {
        let negated = quantifier == SetQuantifier::All;
        let operator = if negated { op.negate() } else { Some(op) };
        let Some(operator) = operator else {
            return Err(Error::unsupported(
                format!("{op} ALL of a subquery"),
                "it has no opposite",
            )
            .into());
        };
        Ok(Member { value: *expr, operator, subquery, negated })
    }
}

/// Which side can be null.
#[derive(Debug, Clone, Copy)]
struct Nulls {
    /// The value.
    here: bool,
    /// What the subquery yields.
    there: bool,
}

/// Where there is no match: whether a null leaves that open. The subquery is correlated.
fn undecided(value: &Expr, subquery: &Subquery, nulls: Nulls) -> Result<Expr> {
    let there = || exists_where(subquery, only_column(&subquery.subquery).is_null());
    let here =
        || -> Result<_> { Ok(value.clone().is_null().and(correlation::exists(subquery.clone())?)) };
    match (nulls.here, nulls.there) {
        (true, true) => Ok(there()?.or(here()?)),
        (true, false) => here(),
        _ => there(),
    }
}

/// The same of a subquery that has the same rows for every row outside: they are counted once.
fn undecided_of_all(value: &Expr, subquery: &Subquery, nulls: Nulls) -> Result<Expr> {
    let (rows, values) = ("rows", "values");
    let counted = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone()).aggregate(
        Vec::<Expr>::new(),
        [count(lit(1i64)).alias(rows), count(only_column(&subquery.subquery)).alias(values)],
    )?;
    let column = |name: &str| Expr::Column(Column::new_unqualified(name));
    // 0: no rows; 1: no null among them; 2: nulls.
    let state = when(column(rows).eq(lit(0i64)), lit(0i64))
        .when(column(rows).eq(column(values)), lit(1i64))
        .otherwise(lit(2i64))?;
    let plan = Arc::new(counted.project([state.alias("state")])?.build()?);
    let state = Expr::ScalarSubquery(Subquery {
        subquery: plan,
        outer_ref_columns: vec![],
        ..subquery.clone()
    });
    let least = match nulls.here {
        true => when(value.clone().is_null(), lit(1i64)).otherwise(lit(2i64))?,
        false => lit(2i64),
    };
    Ok(state.gt_eq(least))
}

/// The negation, unknown where the predicate is, of which disjuncts are conjuncts.
fn negation(expr: Expr) -> Expr {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            negation(*left).and(negation(*right))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            negation(*left).or(negation(*right))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if let Some(op) = op.negate() => {
            binary_expr(*left, op, *right)
        }
        Expr::Exists(exists) => Expr::Exists(Exists { negated: !exists.negated, ..exists }),
        Expr::InSubquery(member) => {
            Expr::InSubquery(InSubquery { negated: !member.negated, ..member })
        }
        Expr::IsNull(operand) => Expr::IsNotNull(operand),
        Expr::IsTrue(operand) => Expr::IsNotTrue(operand),
        Expr::Literal(ScalarValue::Boolean(Some(value)), _) => lit(!value),
        other => not(other),
    }
}

/// What a query of one column yields.
pub(super) fn only_column(plan: &LogicalPlan) -> Expr {
    Expr::Column(Column::from(plan.schema().qualified_field(0)))
}

/// The subquery under a name of its own where a column outside has the name of one within, as in
/// `a IN (SELECT a FROM t)` over t itself: the join would take both for one.
fn told_apart(subquery: LogicalPlan, predicate: Expr) -> Result<(LogicalPlan, Expr)> {
    const MEMBERS: &str = "__members";
    let within = subquery.schema().columns();
    let clashes = predicate.exists(|expr| {
        Ok(matches!(expr, Expr::OuterReferenceColumn(_, column) if within.contains(column)))
    })?;
    if !clashes {
        return Ok((subquery, predicate));
    }
    let renamed = predicate.transform_up(|expr| match expr {
        Expr::Column(column) => {
            Ok(Transformed::yes(Expr::Column(Column::new(Some(MEMBERS), column.name))))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok((LogicalPlanBuilder::from(subquery).alias(MEMBERS)?.build()?, renamed.data))
}

/// Whether there is a row of the subquery that satisfies a predicate.
fn exists_where(subquery: &Subquery, predicate: Expr) -> Result<Expr> {
    correlation::check_exists(&subquery.subquery)?;
    let (plan, predicate) = told_apart(subquery.subquery.as_ref().clone(), predicate)?;
    let plan = LogicalPlanBuilder::from(plan).filter(predicate)?.build()?;
    let outer_ref_columns = plan.all_out_ref_exprs();
    let subquery = Subquery { subquery: Arc::new(plan), outer_ref_columns, ..subquery.clone() };
    Ok(Expr::Exists(Exists::new(correlation::ready(subquery)?, false)))
}
