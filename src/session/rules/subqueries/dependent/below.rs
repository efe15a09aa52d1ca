//! Lifting subqueries out of expressions, below the operator that has them.
//!
//! Truth is three-valued: `x IN q` is unknown where there is no match, and q has a null, or x is
//! null and q has a row. A join's mark only says whether its condition is true. So what is asked
//! depends on what the reader makes of unknown:
//!
//! ```text
//!   unknown is false    a mark of (x = c)
//!   unknown is true     a mark of (x = c) IS NOT FALSE
//!   else                both, or the numbers of q's rows and nulls, if q is the same for all rows
//! ```
//!
//! DataFusion (55.2, `DecorrelatePredicateSubquery`) takes unknown for false
//! (<https://github.com/apache/datafusion/issues/8241>), and its null-aware join knows no
//! correlated subquery (<https://github.com/apache/datafusion/issues/25347>).

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, JoinType, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{
    AggregateFunction, Exists, InSubquery, SetComparison, SetQuantifier,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    BinaryExpr, Case, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Subquery,
    binary_expr, lit, not, when,
};

use super::super::names::{has_subquery, is_correlated, within_reach};
use super::super::side::{RowsWanted, SubquerySide, flat, mark};
use super::super::tools::{columns, named};
use super::Dependent;
use crate::error::Error;
use crate::plan::{FreshNames, UnknownAs, is_volatile};
use crate::session::rules::guards::guard_members;

/// The input of an operator, with a column for each subquery that was lifted.
pub(in crate::session::rules::subqueries) struct Below<'n> {
    plan: LogicalPlan,
    generator: &'n mut FreshNames,
    lifts: Lifts,
    /// Subqueries with the columns that they have become.
    known: Vec<(Expr, Expr)>,
    /// Uncorrelated scalar subqueries, by names.
    values: Vec<Expr>,
}

/// Which subqueries are lifted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::session::rules::subqueries) enum Lifts {
    All,
    /// But not uncorrelated scalar subqueries, which are values that DataFusion computes before.
    AllButValues,
}

/// `value operator ANY (subquery)`, or its negation: `IN` is `= ANY`, and `x < ALL q` is `NOT x >=
/// ANY q`.
pub(in crate::session::rules::subqueries) struct Member {
    pub(in crate::session::rules::subqueries) value: Expr,
    pub(in crate::session::rules::subqueries) operator: Operator,
    pub(in crate::session::rules::subqueries) subquery: Subquery,
    pub(in crate::session::rules::subqueries) negated: bool,
}

impl Member {
    pub(in crate::session::rules::subqueries) fn of_in(
        InSubquery { expr, subquery, negated }: InSubquery,
    ) -> Member {
        Member { value: *expr, operator: Operator::Eq, subquery, negated }
    }

    pub(in crate::session::rules::subqueries) fn of_comparison(
        SetComparison { expr, subquery, op, quantifier }: SetComparison,
    ) -> Result<Member> {
        let negated = quantifier == SetQuantifier::All;
        let operator = if negated { op.negate() } else { Some(op) };
        let Some(operator) = operator else {
            let what = format!("{op} ALL of a subquery");
            return Err(Error::unsupported(what, "it has no opposite").into());
        };
        Ok(Member { value: *expr, operator, subquery, negated })
    }
}

impl<'n> Below<'n> {
    pub(in crate::session::rules::subqueries) fn new(
        plan: LogicalPlan,
        generator: &'n mut FreshNames,
    ) -> Self {
        Below::lifting(Lifts::All, plan, generator)
    }

    pub(in crate::session::rules::subqueries) fn lifting(
        lifts: Lifts,
        plan: LogicalPlan,
        generator: &'n mut FreshNames,
    ) -> Self {
        Below { plan, generator, lifts, known: vec![], values: vec![] }
    }

    /// The input with all that was lifted.
    pub(in crate::session::rules::subqueries) fn plan(mut self) -> Result<LogicalPlan> {
        self.settle()?;
        Ok(self.plan)
    }

    /// Makes columns of the scalar subqueries so far.
    fn settle(&mut self) -> Result<()> {
        if !self.values.is_empty() {
            let exprs: Vec<_> =
                columns(&self.plan).into_iter().chain(self.values.drain(..)).collect();
            self.plan = LogicalPlanBuilder::from(self.plan.clone()).project(exprs)?.build()?;
        }
        Ok(())
    }

    /// What a subquery's rows are compared with, over columns that there are now.
    pub(in crate::session::rules::subqueries) fn compared(&mut self, value: Expr) -> Result<Expr> {
        let lifts = std::mem::replace(&mut self.lifts, Lifts::All);
        let value = self.of(value, UnknownAs::Itself);
        self.lifts = lifts;
        self.settle()?;
        value
    }

    /// The expression over what [`Below::plan`] will be.
    pub(in crate::session::rules::subqueries) fn lifted(
        &mut self,
        expr: Expr,
        unknown: UnknownAs,
    ) -> Result<Expr> {
        let expr = guard_members(expr, &[], self.plan.schema())?;
        self.of(expr, unknown)
    }

    /// The expression of a select list, with its name.
    pub(in crate::session::rules::subqueries) fn listed(&mut self, expr: Expr) -> Result<Expr> {
        let names = NamePreserver::new_for_projection();
        let name = names.save(&expr);
        Ok(name.restore(self.lifted(expr, UnknownAs::Itself)?))
    }

    fn of(&mut self, expr: Expr, unknown: UnknownAs) -> Result<Expr> {
        if !has_subquery(&expr) {
            return Ok(expr);
        }
        if let Some((_, column)) = self.known.iter().find(|(known, _)| *known == expr) {
            return Ok(column.clone());
        }
        let whole = expr.clone();
        let column = match expr {
            Expr::ScalarSubquery(subquery) if is_correlated(&subquery.subquery)? => {
                self.value(&subquery.subquery)?
            }
            Expr::ScalarSubquery(_) if self.lifts == Lifts::AllButValues => return Ok(expr),
            Expr::ScalarSubquery(subquery) => {
                let name = self.generator.name("value");
                let value = super::super::named_value(subquery, self.generator.name("value"))?;
                self.values.push(Expr::ScalarSubquery(value).alias(name.clone()));
                named(&name)
            }
            Expr::Exists(Exists { subquery, negated }) => {
                let mark = self.exists(&subquery.subquery)?;
                if negated { not(mark) } else { mark }
            }
            Expr::InSubquery(member) => return self.member(Member::of_in(member), unknown),
            Expr::SetComparison(comparison) => {
                return self.member(Member::of_comparison(comparison)?, unknown);
            }
            Expr::Not(_) => return self.children(expr, unknown.negated()),
            Expr::IsTrue(_) | Expr::IsNotTrue(_) => return self.children(expr, UnknownAs::False),
            Expr::IsFalse(_) | Expr::IsNotFalse(_) => return self.children(expr, UnknownAs::True),
            Expr::Alias(_)
            | Expr::BinaryExpr(BinaryExpr { op: Operator::And | Operator::Or, .. }) => {
                return self.children(expr, unknown);
            }
            Expr::Case(case) => return self.case(case, unknown),
            Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
                let filter = params.filter.map(|of| self.boxed(*of, UnknownAs::False));
                params.filter = filter.transpose()?;
                let call = Expr::AggregateFunction(AggregateFunction { func, params });
                return self.children(call, UnknownAs::Itself);
            }
            other => return self.children(other, UnknownAs::Itself),
        };
        self.known.push((whole, column.clone()));
        Ok(column)
    }

    fn case(&mut self, case: Case, unknown: UnknownAs) -> Result<Expr> {
        let conditions = if case.expr.is_some() { UnknownAs::Itself } else { UnknownAs::False };
        let base = case.expr.map(|expr| self.boxed(*expr, UnknownAs::Itself)).transpose()?;
        let mut branches = vec![];
        for (when, then) in case.when_then_expr {
            branches.push((self.boxed(*when, conditions)?, self.boxed(*then, unknown)?));
        }
        let other = case.else_expr.map(|expr| self.boxed(*expr, unknown)).transpose()?;
        Ok(Expr::Case(Case::new(base, branches, other)))
    }

    fn boxed(&mut self, expr: Expr, unknown: UnknownAs) -> Result<Box<Expr>> {
        self.of(expr, unknown).map(Box::new)
    }

    fn children(&mut self, expr: Expr, unknown: UnknownAs) -> Result<Expr> {
        Ok(expr.map_children(|child| Ok(Transformed::yes(self.of(child, unknown)?)))?.data)
    }

    fn value(&mut self, subquery: &LogicalPlan) -> Result<Expr> {
        // An error tells this name.
        let mut name = Column::from(subquery.schema().qualified_field(0)).flat_name();
        if self.plan.schema().fields().iter().any(|field| *field.name() == name) {
            name = self.generator.name("found");
        }
        let (plan, value) = super::value(self.plan.clone(), subquery, &name, self.generator)?;
        self.plan = plan;
        Ok(value)
    }

    /// Whether the subquery has a row, never null.
    fn exists(&mut self, subquery: &LogicalPlan) -> Result<Expr> {
        if let Some(side) = side(&self.plan, subquery, RowsWanted::Existence, self.generator)? {
            return self.marked(side, None);
        }
        let called = "EXISTS (SELECT …)";
        let (plan, found) =
            super::tested(self.plan.clone(), subquery, None, called, self.generator)?;
        self.plan = plan;
        Ok(found)
    }

    fn marked(&mut self, side: SubquerySide, test: Option<Expr>) -> Result<Expr> {
        let name = self.generator.name("exists");
        self.plan = side.found(self.plan.clone(), JoinType::LeftMark, test, &name)?;
        Ok(mark(&name))
    }

    fn member(&mut self, member: Member, unknown: UnknownAs) -> Result<Expr> {
        let Member { value, operator, subquery, negated } = member;
        let value = self.compared(value)?;
        let unknown = if negated { unknown.negated() } else { unknown };
        let found = self.any(value, operator, &subquery.subquery, unknown)?;
        Ok(if negated { not(found) } else { found })
    }

    /// `value operator ANY subquery`, in three-valued logic where null counts.
    fn any(
        &mut self,
        value: Expr,
        operator: Operator,
        subquery: &LogicalPlan,
        unknown: UnknownAs,
    ) -> Result<Expr> {
        let drawn = unknown == UnknownAs::Itself && draws(subquery)?;
        let found = match drawn || is_volatile(&value) {
            true => None,
            false => side(&self.plan, subquery, RowsWanted::Members, self.generator)?,
        };
        let Some(found) = found else {
            let called = match operator {
                Operator::Eq => "IN (SELECT …)",
                _ => "a comparison with ANY or ALL (SELECT …)",
            };
            let test = Some((&value, operator));
            let (plan, answer) =
                super::tested(self.plan.clone(), subquery, test, called, self.generator)?;
            self.plan = plan;
            return Ok(answer);
        };
        let correlated = is_correlated(subquery)?;
        let test = binary_expr(value.clone(), operator, found.values[0].clone());
        let open = found.can_be_null(&value, self.plan.schema())?;
        if !open || unknown == UnknownAs::False {
            return self.marked(found, Some(test));
        }
        if unknown == UnknownAs::True && correlated {
            return self.marked(found, Some(Expr::IsNotFalse(Box::new(test))));
        }
        let found = self.marked(found, Some(test))?;
        let undecided = match correlated {
            true => {
                let Some(side) = side(&self.plan, subquery, RowsWanted::Members, self.generator)?
                else {
                    return datafusion::common::internal_err!("a subquery became another");
                };
                let test = binary_expr(value, operator, side.values[0].clone());
                self.marked(side, Some(test.is_null()))?
            }
            false => self.undecided_of_all(value, subquery)?,
        };
        if unknown == UnknownAs::True {
            return Ok(found.or(undecided));
        }
        when(found, lit(true))
            .when(undecided, lit(ScalarValue::Boolean(None)))
            .otherwise(lit(false))
    }

    /// Where there is no match: whether a null leaves that open. The subquery has the same rows for
    /// every row: they are counted once, and stand beside each.
    fn undecided_of_all(&mut self, value: Expr, subquery: &LogicalPlan) -> Result<Expr> {
        let (rows, values) = (self.generator.name("rows"), self.generator.name("values"));
        let member = columns(subquery).swap_remove(0);
        let counts = [count(lit(1i64)).alias(&rows), count(member).alias(&values)];
        let counts =
            LogicalPlanBuilder::from(subquery.clone()).aggregate(Vec::<Expr>::new(), counts)?;
        self.plan =
            LogicalPlanBuilder::from(self.plan.clone()).cross_join(counts.build()?)?.build()?;
        let null = named(&values).lt(named(&rows));
        Ok(null.or(value.is_null().and(named(&rows).gt(lit(0i64)))))
    }
}

/// The subquery as a side of a join with the rows of a plan, if it can be one.
pub(in crate::session::rules::subqueries) fn side(
    plan: &LogicalPlan,
    subquery: &LogicalPlan,
    wanted: RowsWanted,
    generator: &mut FreshNames,
) -> Result<Option<SubquerySide>> {
    const CALLED: &str = "a correlated subquery";
    within_reach(subquery, plan.schema(), CALLED)?;
    match flat(subquery, wanted, generator)? {
        Some(side) => Ok(Some(side)),
        None => Dependent::side(plan, subquery, CALLED, generator),
    }
}

impl SubquerySide {
    /// Whether comparing the value with one of its column may yield null.
    pub(in crate::session::rules::subqueries) fn can_be_null(
        &self,
        value: &Expr,
        schema: &DFSchema,
    ) -> Result<bool> {
        let both = schema.join(self.plan.schema())?;
        Ok(value.nullable(schema)? || self.values[0].nullable(&both)?)
    }
}

/// Whether something in the plan is drawn anew wherever it is computed.
fn draws(plan: &LogicalPlan) -> Result<bool> {
    crate::plan::any_node(plan, |node| {
        let mut found = false;
        node.apply_expressions(|expr| {
            found |= is_volatile(expr);
            Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
        })?;
        Ok(found)
    })
}
