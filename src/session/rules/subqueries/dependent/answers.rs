//! What is asked of a subquery: its value, whether it has a row or a member, or all its rows.

use datafusion::common::{Column, JoinType, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder, Operator,
    WindowFunctionDefinition, binary_expr, lit, when,
};

use super::super::names::{moved, within_reach};
use super::super::side::{RowsWanted, SubquerySide, flat};
use super::super::tools::{called, columns, filtered, joined, named};
use super::Dependent;
use super::several::conditions;
use crate::plan::{FreshNames, one_row_value};

/// The rows of a plan with columns more, and a scalar subquery's value over those. `found`: what
/// its column shall be called, which an error tells.
pub(in crate::session::rules::subqueries) fn value(
    outer: LogicalPlan,
    subquery: &LogicalPlan,
    found: &str,
    generator: &mut FreshNames,
) -> Result<(LogicalPlan, Expr)> {
    const CALLED: &str = "a correlated scalar subquery";
    if let Some(side) = Dependent::side(&outer, subquery, CALLED, generator)? {
        return side.value(outer, found, generator);
    }
    let (of, subquery) = Dependent::new(outer, subquery, CALLED, generator)?;
    of.value(&subquery, found)
}

/// The rows of a plan with columns more, and an expression over those: whether the subquery has a
/// row, or what comparing a value with one of its rows yields.
pub(in crate::session::rules::subqueries) fn tested(
    outer: LogicalPlan,
    subquery: &LogicalPlan,
    test: Option<(&Expr, Operator)>,
    called: &'static str,
    generator: &mut FreshNames,
) -> Result<(LogicalPlan, Expr)> {
    let (of, subquery) = Dependent::new(outer, subquery, called, generator)?;
    of.tested(&subquery, test)
}

/// What a LATERAL subquery is called in errors.
pub(in crate::session::rules::subqueries) const LATERAL: &str = "a LATERAL subquery";

/// An inner or left join with a subquery over its left side's rows.
pub(in crate::session::rules::subqueries) fn rows(
    join: &Join,
    generator: &mut FreshNames,
) -> Result<LogicalPlan> {
    let left = join.left.as_ref();
    // The join's conditions are some of the subquery's.
    let conditions = conditions(join, left.schema(), false)?;
    let right = filtered(join.right.as_ref().clone(), conditions)?;
    within_reach(&right, left.schema(), LATERAL)?;
    let side = match flat(&right, RowsWanted::Rows, generator)? {
        Some(side) => Some(side),
        None => Dependent::side(left, &right, LATERAL, generator)?,
    };
    if let Some(side) = side {
        return side.rows(join, generator);
    }
    let (of, right) = Dependent::new(left.clone(), &right, LATERAL, generator)?;
    of.rows_of(join, &right)
}

impl SubquerySide {
    fn value(
        self,
        outer: LogicalPlan,
        found: &str,
        generator: &mut FreshNames,
    ) -> Result<(LogicalPlan, Expr)> {
        let value = self.values[0].clone();
        let columns = self.plan.schema().columns().into_iter();
        let keys = columns.map(Expr::Column).filter(|column| *column != value);
        let keys = keys.collect::<Vec<_>>();
        let number = generator.name("rows");
        let right = LogicalPlanBuilder::from(self.plan);
        let right = match self.single {
            true => right.project(keys.into_iter().chain([value.alias(found)]))?,
            false => {
                let calls =
                    [first_value(value, vec![]).alias(found), count(lit(1i64)).alias(&number)];
                right.aggregate(keys, calls)?
            }
        };
        let value = match self.single {
            true => named(found),
            false => one_row_value(named(found), named(&number)),
        };
        let plan = joined(outer, right.build()?, JoinType::Left, self.conditions)?;
        Ok((plan.build()?, value))
    }

    fn rows(self, join: &Join, generator: &mut FreshNames) -> Result<LogicalPlan> {
        let keeps_all = join.join_type == JoinType::Left;
        let left = columns(&join.left);
        let mark = generator.name("mark");
        let mut right = LogicalPlanBuilder::from(self.plan);
        // Of a row that finds none, only these columns are null by themselves.
        let schema = right.schema().clone();
        let computes = |value: &Expr| match value {
            Expr::Column(column) => !schema.has_column(column),
            _ => true,
        };
        if keeps_all && self.values.iter().any(computes) {
            let marked = columns(right.plan()).into_iter().chain([lit(true).alias(&mark)]);
            let marked = marked.collect::<Vec<_>>();
            right = right.project(marked)?;
        }
        let mut all = left.clone();
        for ((qualifier, field), value) in join.schema.iter().skip(left.len()).zip(self.values) {
            let value = match keeps_all && computes(&value) {
                true => when(named(&mark), value).end()?,
                false => value,
            };
            all.push(called(value, qualifier, field.name()));
        }
        joined(join.left.as_ref().clone(), right.build()?, join.join_type, self.conditions)?
            .project(all)?
            .build()
    }
}

impl Dependent<'_> {
    fn value(mut self, subquery: &LogicalPlan, found: &str) -> Result<(LogicalPlan, Expr)> {
        let plan = self.of(subquery)?;
        let value = columns(subquery).swap_remove(0);
        if self.single {
            let value = match self.mixed || !self.nulls {
                true => when(self.marked(), value).end()?,
                false => value,
            };
            let all = self.restored().into_iter().chain([value.alias(found)]).collect::<Vec<_>>();
            return Ok((LogicalPlanBuilder::from(plan).project(all)?.build()?, named(found)));
        }
        let number = self.generator.name("rows");
        let value = first_value(value, vec![]).filter(self.marked()).build()?.alias(found);
        let more = [value, count(self.marked()).alias(&number)];
        let plan = self.by_number(plan, more)?;
        Ok((plan, one_row_value(named(found), named(&number))))
    }

    fn tested(
        mut self,
        subquery: &LogicalPlan,
        test: Option<(&Expr, Operator)>,
    ) -> Result<(LogicalPlan, Expr)> {
        let plan = self.of(subquery)?;
        let member = columns(subquery).swap_remove(0);
        let test = test.map(|(value, operator)| {
            Ok::<_, datafusion::error::DataFusionError>(binary_expr(
                self.on_the_way(value.clone())?,
                operator,
                member,
            ))
        });
        let test = test.transpose()?;
        if self.single {
            let found = self.generator.name("found");
            let is_marked = self.marked().is_not_null();
            let answer = match test {
                Some(test) => when(is_marked, test).otherwise(lit(false))?,
                None => is_marked,
            };
            let all = self.restored().into_iter().chain([answer.alias(&found)]);
            let plan = LogicalPlanBuilder::from(plan).project(all.collect::<Vec<_>>())?.build()?;
            return Ok((plan, named(&found)));
        }
        let (is_true, is_open) = (self.generator.name("rows"), self.generator.name("rows"));
        let marked = self.marked();
        let rows = |condition: Expr, name: &str| {
            Ok::<_, datafusion::error::DataFusionError>(
                count(lit(1i64)).filter(condition).build()?.alias(name),
            )
        };
        let any = |name: &str| named(name).gt(lit(0i64));
        let Some(test) = test else {
            let plan = self.by_number(plan, [rows(marked, &is_true)?])?;
            return Ok((plan, any(&is_true)));
        };
        let counts = [
            rows(marked.clone().and(test.clone()), &is_true)?,
            rows(marked.and(test.is_null()), &is_open)?,
        ];
        let plan = self.by_number(plan, counts)?;
        let answer = when(any(&is_true), lit(true))
            .when(any(&is_open), lit(ScalarValue::Boolean(None)))
            .otherwise(lit(false))?;
        Ok((plan, answer))
    }

    /// The rows around it with aggregates of each number's rows.
    fn by_number(
        &self,
        plan: LogicalPlan,
        calls: impl IntoIterator<Item = Expr>,
    ) -> Result<LogicalPlan> {
        let calls: Vec<_> = calls.into_iter().collect();
        let shown = calls.iter().map(|call| named(&call.schema_name().to_string()));
        let all = self.restored().into_iter().chain(shown).collect::<Vec<_>>();
        LogicalPlanBuilder::from(plan)
            .aggregate(self.by(), self.first().into_iter().chain(calls))?
            .project(all)?
            .build()
    }

    /// The rows around it, each once for each row of the subquery, with that row's columns; or once
    /// with nulls where there is none.
    fn rows_of(mut self, join: &Join, subquery: &LogicalPlan) -> Result<LogicalPlan> {
        let mut plan = self.of(subquery)?;
        let own = columns(subquery);
        let keeps_all = join.join_type == JoinType::Left;
        if keeps_all && self.mixed && !self.single {
            plan = self.of_one_without_mark(plan)?;
        }
        if !keeps_all {
            plan = LogicalPlanBuilder::from(plan).filter(self.marked())?.build()?;
        }
        let mut all = self.restored();
        let shown = join.schema.iter().skip(self.names.len());
        for ((qualifier, field), own) in shown.zip(own) {
            let value = match keeps_all && !self.nulls {
                true => when(self.marked(), own).end()?,
                false => own,
            };
            all.push(called(value, qualifier, field.name()));
        }
        LogicalPlanBuilder::from(plan).project(all)?.build()
    }

    /// Of rows without a mark one for each number that has no others.
    pub(super) fn of_one_without_mark(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let (number, at) = (self.generator.name("rows"), self.generator.name("at"));
        let marks = WindowFunctionDefinition::AggregateUDF(count_udaf());
        let marks = Expr::from(WindowFunction::new(marks, vec![self.marked()]));
        let only = named(&number).eq(lit(0i64)).and(named(&at).eq(lit(1u64)));
        LogicalPlanBuilder::from(plan)
            .window([marks.partition_by(self.by()).build()?.alias(&number)])?
            .window([row_number().partition_by(self.by()).build()?.alias(&at)])?
            .filter(self.marked().is_not_null().or(only))?
            .build()
    }

    /// An expression over rows around it as they are, over their names on the way.
    pub(super) fn on_the_way(&self, expr: Expr) -> Result<Expr> {
        moved(expr, &|column: &Column| {
            Some(self.names[self.outer.maybe_index_of_column(column)?].clone())
        })
    }
}
