//! Correlated subqueries that are computed for all rows outside at once, which are numbered to be
//! told apart.
//!
//! ```text
//!   (SELECT max(x) FROM p WHERE p.t < o.t)
//!
//!   Projection: o.…, found
//!     Aggregate: row: first_value(o.…), max(x) FILTER (WHERE mark) AS found
//!       Left Join: p.t < o.t
//!         Projection: o.…, row_number() OVER () AS row
//!           TableScan: o
//!         Projection: p.…, true AS mark
//!           TableScan: p
//! ```
//!
//! The rows outside are read once, so what is drawn in them is drawn once. None may be lost on the
//! way: a row outside without rows of the subquery's has one without a mark, and a condition takes
//! marks away instead of rows. What groups, sorts or cuts rows does so for each number.

mod operators;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, DFSchemaRef, JoinType, TableReference};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Distinct, Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder,
    WindowFunctionDefinition, lit, when,
};

use super::super::correlation::is_correlated;
use super::lookup::{names_of_subqueries, out_of_reach};
use super::{NameGenerator, has_subquery};
use crate::error::Error;
use crate::plan::one_row_value;

pub(super) struct NumberedRows<'n> {
    generator: &'n mut NameGenerator,
    /// What the subquery is called in errors.
    called: &'static str,
    /// The rows outside, until those of the subquery are joined to them.
    rows: Option<LogicalPlan>,
    outer: DFSchemaRef,
    /// The columns outside are called so on the way: within others may have their names.
    names: Vec<String>,
    row: String,
    mark: String,
    /// Each number has one row.
    single: bool,
    /// A number may have rows without a mark beside others.
    mixed: bool,
    /// Rows without a mark are null in all columns of the subquery.
    nulls: bool,
}

fn named(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// The expression under this name.
fn called(expr: Expr, qualifier: Option<&TableReference>, name: &str) -> Expr {
    let is_it = |column: &Column| column.relation.as_ref() == qualifier && column.name == name;
    match expr {
        Expr::Column(column) if is_it(&column) => Expr::Column(column),
        other => other.alias_qualified(qualifier.cloned(), name),
    }
}

fn columns(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}

impl<'n> NumberedRows<'n> {
    pub(super) fn new(
        outer: LogicalPlan,
        called: &'static str,
        generator: &'n mut NameGenerator,
    ) -> Result<Self> {
        let schema = outer.schema().clone();
        let names: Vec<_> = schema.fields().iter().map(|_| generator.name("outer")).collect();
        let (row, mark) = (generator.name("row"), generator.name("mark"));
        let renamed =
            columns(&outer).into_iter().zip(&names).map(|(column, name)| column.alias(name));
        let rows = LogicalPlanBuilder::from(outer)
            .project(renamed.collect::<Vec<_>>())?
            .window([row_number().alias(&row)])?
            .build()?;
        Ok(NumberedRows {
            generator,
            called,
            rows: Some(rows),
            outer: schema,
            names,
            row,
            mark,
            single: false,
            mixed: false,
            nulls: true,
        })
    }

    /// The rows outside with columns more, and the subquery's value over those. `found`: what its
    /// column shall be called.
    pub(super) fn value(
        mut self,
        subquery: &LogicalPlan,
        found: String,
    ) -> Result<(LogicalPlan, Expr)> {
        let plan = self.of(subquery)?;
        let value = Expr::Column(Column::from(subquery.schema().qualified_field(0)));
        let number = self.generator.name("rows");
        if self.single {
            let value = when(self.marked(), value).end()?;
            let all = self.restored().chain([value.alias(&found)]).collect::<Vec<_>>();
            return Ok((LogicalPlanBuilder::from(plan).project(all)?.build()?, named(&found)));
        }
        let value = first_value(value, vec![]).filter(self.marked()).build()?.alias(&found);
        let more = [value, count(self.marked()).alias(&number)];
        let all = self.restored().chain([named(&found), named(&number)]).collect::<Vec<_>>();
        let plan = LogicalPlanBuilder::from(plan)
            .aggregate([named(&self.row)], self.first().into_iter().chain(more))?
            .project(all)?
            .build()?;
        Ok((plan, one_row_value(named(&found), named(&number))))
    }

    /// The rows outside, each once for each row of the subquery, with that row's columns; or once
    /// with nulls where there is none.
    pub(super) fn beside(mut self, join: &Join, subquery: &LogicalPlan) -> Result<LogicalPlan> {
        let mut plan = self.of(subquery)?;
        let own = columns(subquery);
        let filter = join.filter.clone().filter(|filter| *filter != lit(true));
        let filter = filter.map(|filter| self.over_rows(filter, &join.schema, &own)).transpose()?;
        let keeps_all = join.join_type == JoinType::Left;
        if keeps_all {
            if let Some(filter) = filter {
                plan = self.without_marks(plan, filter, own.clone())?;
            }
            if self.mixed && !self.single {
                plan = self.of_one_without_mark(plan)?;
            }
        } else {
            let conditions = [self.marked()].into_iter().chain(filter);
            plan = LogicalPlanBuilder::from(plan)
                .filter(conditions.reduce(Expr::and).unwrap_or_else(|| lit(true)))?
                .build()?;
        }
        let mut all: Vec<_> = self.restored().collect();
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

    /// A join's condition over columns as they are called on the way.
    fn over_rows(&self, filter: Expr, schema: &DFSchema, own: &[Expr]) -> Result<Expr> {
        if has_subquery(&filter) {
            return Err(self.refused("a subquery in the condition of its join"));
        }
        let over = filter.transform_up(|expr| match expr {
            Expr::Column(column) => {
                let at = schema.index_of_column(&column)?;
                Ok(Transformed::yes(match at.checked_sub(self.names.len()) {
                    Some(at) => own[at].clone(),
                    None => named(&self.names[at]),
                }))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(over.data)
    }

    /// Of rows without a mark one for each number that has no others.
    fn of_one_without_mark(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let (number, at) = (self.generator.name("rows"), self.generator.name("at"));
        let marks = WindowFunctionDefinition::AggregateUDF(count_udaf());
        let marks = Expr::from(WindowFunction::new(marks, vec![self.marked()]));
        let row = || vec![named(&self.row)];
        let only = named(&number).eq(lit(0i64)).and(named(&at).eq(lit(1u64)));
        LogicalPlanBuilder::from(plan)
            .window([marks.partition_by(row()).build()?.alias(&number)])?
            .window([row_number().partition_by(row()).build()?.alias(&at)])?
            .filter(self.marked().is_not_null().or(only))?
            .build()
    }

    fn marked(&self) -> Expr {
        named(&self.mark)
    }

    /// The columns outside by their own names.
    fn restored(&self) -> impl Iterator<Item = Expr> + use<> {
        let all = self.outer.iter().zip(&self.names).map(|((qualifier, field), name)| {
            named(name).alias_qualified(qualifier.cloned(), field.name())
        });
        all.collect::<Vec<_>>().into_iter()
    }

    /// The columns outside of a number's rows, which agree in them.
    fn first(&self) -> Vec<Expr> {
        self.names.iter().map(|name| first_value(named(name), vec![]).alias(name)).collect()
    }

    fn refused(&self, what: &str) -> DataFusionError {
        Error::unsupported(
            format!("{what} in {}", self.called),
            "it cannot be computed for all rows outside at once",
        )
        .into()
    }

    /// The expression over a plan in which rows outside have their columns.
    fn replaced(&self, expr: Expr, input: &DFSchema) -> Result<Expr> {
        for column in names_of_subqueries(&expr)? {
            if !input.has_column(&column) {
                return Err(out_of_reach(&column, self.called));
            }
        }
        let replaced = expr.transform_up(|expr| match expr {
            Expr::OuterReferenceColumn(_, column) => {
                let at = self.outer.maybe_index_of_column(&column);
                let at = at.ok_or_else(|| out_of_reach(&column, self.called))?;
                Ok(Transformed::yes(named(&self.names[at])))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(replaced.data)
    }

    fn all_replaced(&self, exprs: &[Expr], input: &DFSchema) -> Result<Vec<Expr>> {
        exprs.iter().map(|expr| self.replaced(expr.clone(), input)).collect()
    }

    /// These columns of the subquery, beside those outside.
    fn projected(&self, plan: LogicalPlan, mark: Expr, own: Vec<Expr>) -> Result<LogicalPlan> {
        let mark = if mark == self.marked() { mark } else { mark.alias(&self.mark) };
        let outer = self.names.iter().chain([&self.row]).map(|name| named(name));
        let all = outer.chain([mark]).chain(own).collect::<Vec<_>>();
        LogicalPlanBuilder::from(plan).project(all)?.build()
    }

    /// The same rows, of which those have no mark that a condition drops.
    fn without_marks(
        &mut self,
        plan: LogicalPlan,
        condition: Expr,
        own: Vec<Expr>,
    ) -> Result<LogicalPlan> {
        let mark = when(condition, self.marked()).end()?;
        (self.mixed, self.nulls) = (true, false);
        self.projected(plan, mark, own)
    }

    /// The rows of a part of the subquery, for all numbers.
    fn of(&mut self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        if !is_correlated(plan) {
            return self.joined(plan.clone(), vec![]);
        }
        match plan {
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::Projection(node) => {
                let input = self.of(&node.input)?;
                self.projection(node, input)
            }
            LogicalPlan::SubqueryAlias(node) => {
                let input = self.of(&node.input)?;
                self.alias(node, input)
            }
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.of(&sort.input),
            LogicalPlan::Limit(limit) => self.limit(limit),
            LogicalPlan::Aggregate(node) => self.aggregate(node),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let plan = self.of(input)?;
                (self.single, self.nulls) = (false, false);
                let keys = [named(&self.row), self.marked()].into_iter().chain(columns(input));
                LogicalPlanBuilder::from(plan).aggregate(keys, self.first())?.build()
            }
            LogicalPlan::Distinct(Distinct::On(node)) => self.distinct_on(node),
            LogicalPlan::Window(node) => self.window(node),
            LogicalPlan::Unnest(node) => self.unnest(node),
            LogicalPlan::Join(join) => self.join(join),
            other => Err(self.refused(&construct(other))),
        }
    }

    /// The rows outside joined to those of a plan that does not refer to them.
    fn joined(&mut self, plan: LogicalPlan, conditions: Vec<Expr>) -> Result<LogicalPlan> {
        let conditions = self.all_replaced(&conditions, plan.schema())?;
        if conditions.iter().any(has_subquery) {
            return Err(self.refused("a condition with EXISTS or IN"));
        }
        let Some(rows) = self.rows.take() else {
            return Err(self.refused("columns outside in several parts"));
        };
        let condition = conjunction(conditions);
        if let LogicalPlan::EmptyRelation(node) = &plan
            && node.produce_one_row
        {
            self.single = true;
            let mark = match condition {
                Some(condition) => when(condition, lit(true)).end()?,
                None => lit(true),
            };
            return self.projected(rows, mark, vec![]);
        }
        let marked = columns(&plan).into_iter().chain([lit(true).alias(&self.mark)]);
        let marked = marked.collect::<Vec<_>>();
        let plan = LogicalPlanBuilder::from(plan).project(marked)?.build()?;
        let condition = condition.unwrap_or_else(|| lit(true));
        LogicalPlanBuilder::from(rows).join_on(plan, JoinType::Left, [condition])?.build()
    }
}

/// What a part of a query is called in SQL.
fn construct(plan: &LogicalPlan) -> String {
    match plan {
        LogicalPlan::Union(_) => "UNION".into(),
        LogicalPlan::RecursiveQuery(_) => "WITH RECURSIVE".into(),
        LogicalPlan::Subquery(_) => "LATERAL".into(),
        LogicalPlan::Values(_) => "VALUES".into(),
        other => other.display().to_string(),
    }
}
