//! Subqueries with rows around them in several parts: unions, and joins of which both sides name
//! columns around them.
//!
//! The rows around a subquery are read once. So parts follow one another: each is a dependent join
//! over what the parts before it yield.
//!
//! ```text
//!   A(o) UNION ALL B(o)      arm = 0 ? A's columns : B's columns
//!                              dependent join, where arm = 1: B(o)
//!                                dependent join, where arm = 0: A(o)
//!                                  Cross Join: o × arms 0, 1
//! ```

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::Exists;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Case, Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, Union,
    binary_expr, lit, when,
};

use super::super::names::{is_correlated, is_lateral};
use super::super::tools::{columns, filtered, inner_join, joined, named, swapped};
use super::Dependent;
use crate::plan::into_operands;

/// The rows of a plan so many times, each with its number as a column more.
pub(super) fn times(plan: LogicalPlan, times: usize, name: &str) -> Result<LogicalPlan> {
    let numbers = (0..times).map(|arm| vec![lit(i64::try_from(arm).unwrap_or(i64::MAX))]);
    let arms = LogicalPlanBuilder::values(numbers.collect())?;
    let column = Expr::Column(Column::from(arms.schema().qualified_field(0)));
    let arms = arms.project([column.alias(name)])?.build()?;
    LogicalPlanBuilder::from(plan).cross_join(arms)?.build()
}

/// The value of the row's number among those of [`times`].
pub(super) fn by_arm(name: &str, values: impl IntoIterator<Item = Expr>) -> Result<Expr> {
    let branch = |(arm, value)| (Box::new(is_arm(name, arm)), Box::new(value));
    let branches: Vec<_> = values.into_iter().enumerate().map(branch).collect();
    Ok(Expr::Case(Case { expr: None, when_then_expr: branches, else_expr: None }))
}

fn is_arm(name: &str, arm: usize) -> Expr {
    named(name).eq(lit(i64::try_from(arm).unwrap_or(i64::MAX)))
}

impl Dependent<'_> {
    /// Each row around it with a mark and the subquery's columns, all under names of their own.
    fn named_rows(
        &mut self,
        plan: LogicalPlan,
        subquery: &LogicalPlan,
    ) -> Result<(LogicalPlan, Expr, Vec<Expr>)> {
        let mark = self.generator.name("found");
        let names: Vec<_> =
            columns(subquery).iter().map(|_| self.generator.name("inner")).collect();
        let own = columns(subquery).into_iter().zip(&names).map(|(own, name)| own.alias(name));
        let all = self.restored().into_iter().chain([self.marked().alias(&mark)]).chain(own);
        let plan = LogicalPlanBuilder::from(plan).project(all.collect::<Vec<_>>())?.build()?;
        Ok((plan, named(&mark), names.iter().map(|name| named(name)).collect()))
    }

    /// A dependent join of a part of the subquery with the rows so far, of those that ask for it.
    fn part(
        &mut self,
        plan: LogicalPlan,
        part: &LogicalPlan,
        gate: Expr,
    ) -> Result<(Dependent<'_>, LogicalPlan)> {
        let (mut of, part) = Dependent::new(plan, part, self.called, self.generator)?;
        of.gate = Some(of.on_the_way(gate)?);
        Ok((of, part))
    }

    pub(super) fn union(&mut self, node: &Union) -> Result<LogicalPlan> {
        let arm = self.generator.name("arm");
        let rows = self.rows()?;
        let mut plan = times(rows, node.inputs.len(), &arm)?;
        if let Some(gate) = &self.gate {
            // A row that does not ask has one row, not one for each arm.
            plan = filtered(plan, vec![is_arm(&arm, 0).or(gate.clone())])?;
        }
        let (mut marks, mut values) = (vec![], vec![vec![]; node.schema.fields().len()]);
        for (at, input) in node.inputs.iter().enumerate() {
            let gate = self.gate.clone().into_iter().chain([is_arm(&arm, at)]);
            let gate = conjunction(gate).unwrap_or_else(|| lit(true));
            let (mut of, input) = self.part(plan, input, gate)?;
            let rows = of.of(&input)?;
            let (next, mark, own) = of.named_rows(rows, &input)?;
            plan = next;
            marks.push(mark);
            values.iter_mut().zip(own).for_each(|(values, value)| values.push(value));
        }
        let own = values.into_iter().zip(node.schema.iter());
        let own = own.map(|(values, (qualifier, field))| {
            Ok(by_arm(&arm, values)?.alias_qualified(qualifier.cloned(), field.name()))
        });
        let own = own.collect::<Result<_>>()?;
        (self.single, self.mixed, self.nulls) = (false, true, false);
        self.projected(plan, by_arm(&arm, marks)?, own)
    }

    pub(super) fn join(&mut self, join: &Join) -> Result<LogicalPlan> {
        use JoinType::{Full, Inner, Left, LeftAnti, LeftMark, LeftSemi, Right};
        let sides = [is_correlated(&join.left)?, is_correlated(&join.right)?];
        match join.join_type {
            Inner if sides == [false, false] => {
                let (own, outside) = inner_join(join)?;
                self.joined(own, outside)
            }
            Inner | Left => {
                let swapped = join.join_type == Inner && !sides[0] && !is_lateral(join)?;
                self.beside(join, swapped)
            }
            Right => {
                let plan = self.beside(&swapped(join, Left)?, false)?;
                let own = join.schema.columns().into_iter().map(Expr::Column).collect();
                self.projected(plan, self.marked(), own)
            }
            Full => self.of(&without_full(join)?),
            LeftSemi | LeftAnti | LeftMark => self.of(&as_exists(join)?),
            _ => Err(self.refused("such a join")),
        }
    }

    /// An inner or left join: of the right side with the left one if they are `swapped`.
    fn beside(&mut self, join: &Join, swapped: bool) -> Result<LogicalPlan> {
        let (here, there) = match swapped {
            true => (&join.right, &join.left),
            false => (&join.left, &join.right),
        };
        let plan = self.of(here)?;
        let shown = join.schema.columns().into_iter().map(Expr::Column);
        if self.keys.is_some() {
            self.single = false;
            let on = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
            let on = on.chain(join.filter.clone()).collect::<Vec<_>>();
            let plan = joined(plan, there.as_ref().clone(), join.join_type, on)?;
            return self.projected(plan.build()?, lit(true), shown.collect());
        }
        let conditions = conditions(join, here.schema(), swapped)?;
        let part = filtered(there.as_ref().clone(), conditions)?;
        let (mut of, part) = self.part(plan, &part, self.marked())?;
        let (keeps_all, inner) = (join.join_type == JoinType::Left, columns(&part));
        let plan = of.of(&part)?;
        let (plan, found, values) = match keeps_all && of.mixed && !of.single {
            true => {
                let plan = of.of_one_without_mark(plan)?;
                of.named_rows(plan, &part)?
            }
            false => of.named_rows(plan, &part)?,
        };
        let (single, nulls) = (of.single, of.nulls);
        self.single &= single;
        if !keeps_all {
            (self.mixed, self.nulls) = (true, false);
        }
        let own = shown.map(|column| {
            let Some(at) = inner.iter().position(|inner| *inner == column) else {
                return Ok(column);
            };
            let value = match keeps_all && !nulls {
                true => when(found.clone(), values[at].clone()).end()?,
                false => values[at].clone(),
            };
            let (relation, name) = column.qualified_name();
            Ok(value.alias_qualified(relation, name))
        });
        let own = own.collect::<Result<_>>()?;
        let mark = if keeps_all { self.marked() } else { found };
        self.projected(plan, mark, own)
    }
}

/// A join's conditions as those of a subquery over one side, which names columns of the other,
/// which has this schema.
pub(super) fn conditions(join: &Join, other: &DFSchema, other_is_right: bool) -> Result<Vec<Expr>> {
    let outside = |expr: Expr| -> Result<Expr> {
        let outside = expr.transform_up(|expr| match expr {
            Expr::Column(column) if other.has_column(&column) => {
                let (_, field) = other.qualified_field(other.index_of_column(&column)?);
                Ok(Transformed::yes(Expr::OuterReferenceColumn(field.clone(), column)))
            }
            expr => Ok(Transformed::no(expr)),
        })?;
        Ok(outside.data)
    };
    let operator = match join.null_equality {
        NullEquality::NullEqualsNothing => Operator::Eq,
        NullEquality::NullEqualsNull => Operator::IsNotDistinctFrom,
    };
    let mut all = vec![];
    for (left, right) in join.on.iter().cloned() {
        all.push(match other_is_right {
            true => binary_expr(left, operator, outside(right)?),
            false => binary_expr(outside(left)?, operator, right),
        });
    }
    for condition in join.filter.iter().flat_map(|all| into_operands(all.clone(), Operator::And)) {
        all.push(outside(condition)?);
    }
    Ok(all)
}

/// A semi, anti or mark join as its left side with EXISTS.
fn as_exists(join: &Join) -> Result<LogicalPlan> {
    let conditions = conditions(join, join.left.schema(), false)?;
    let plan = filtered(join.right.as_ref().clone(), conditions)?;
    let subquery = Subquery {
        outer_ref_columns: plan.all_out_ref_exprs(),
        subquery: Arc::new(plan),
        spans: Default::default(),
    };
    let negated = join.join_type == JoinType::LeftAnti;
    let exists = Expr::Exists(Exists::new(subquery, negated));
    let left = LogicalPlanBuilder::from(join.left.as_ref().clone());
    if join.join_type != JoinType::LeftMark {
        let left = Arc::new(left.build()?);
        return Ok(LogicalPlan::Filter(Filter::try_new(exists, left)?));
    }
    let mut all = columns(left.plan());
    let (qualifier, field) = join.schema.qualified_field(all.len());
    all.push(exists.alias_qualified(qualifier.cloned(), field.name()));
    left.project(all)?.build()
}

/// A full join as a left one and the right side's rows that it leaves out.
fn without_full(join: &Join) -> Result<LogicalPlan> {
    let both = LogicalPlan::Join(Join { join_type: JoinType::Left, ..join.clone() });
    let rest = swapped(join, JoinType::LeftAnti)?;
    let nulls = join.left.schema().iter().map(|(qualifier, field)| {
        let null = lit(ScalarValue::try_from(field.data_type())?);
        Ok(null.alias_qualified(qualifier.cloned(), field.name()))
    });
    let nulls = nulls.collect::<Result<Vec<_>>>()?;
    let rest = LogicalPlanBuilder::from(LogicalPlan::Join(rest))
        .project(nulls.into_iter().chain(columns(&join.right)).collect::<Vec<_>>())?
        .build()?;
    let all = columns(&both);
    let both = LogicalPlanBuilder::from(both).project(all)?.build()?;
    Ok(LogicalPlan::Union(Union {
        inputs: vec![Arc::new(both), Arc::new(rest)],
        schema: join.schema.clone(),
    }))
}
