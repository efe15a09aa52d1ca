//! The dependent join: a subquery that names columns of the rows around it, computed for all of
//! these at once, after Neumann and Kemper ("Unnesting arbitrary queries", 2015; "Improving
//! unnesting of complex queries", 2025).
//!
//! The rows around it are told apart by their number, which every operator of the subquery carries
//! along: what groups, sorts or cuts rows does so for each number.
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
//! The rows around it are read once, with their numbers and all their columns: what is drawn in
//! them is drawn once, and no number is looked for in another computation of them. None may be lost
//! on the way: a row without rows of the subquery's has one without a mark, and a condition takes
//! marks away instead of rows. An expression that can fail is computed where there is a mark.
//!
//! Where nothing but equalities selects the subquery's rows, they are told apart by what they equal
//! instead (2025, section 4.2), and the rows around it come in by a join at the end, or where an
//! aggregate of no rows has a value:
//!
//! ```text
//!   (SELECT max(x) FROM p WHERE p.k = o.k)
//!
//!   Left Join: o.k = key
//!     TableScan: o
//!     Aggregate: p.k AS key: max(x)
//!       TableScan: p
//! ```
//!
//! The subquery is walked from the top. What it names of rows around it are columns when its own
//! subqueries are reached, so that names of queries further out need nothing more.

mod answers;
mod below;
mod keys;
mod operators;
mod several;

use std::collections::HashMap;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, DFSchemaRef, JoinType, TableReference};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::expr_fn::first_value;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, LogicalPlanBuilder, lit, when};

pub(super) use self::answers::{LATERAL, rows, tested, value};
pub(super) use self::below::{Below, Lifts, Member, side};
use self::keys::Selected;
use super::names::{has_subquery, inside, is_correlated, rebound, within_reach};
use super::tools::{called, columns, joined, named, shown};
use crate::error::Error;
use crate::plan::{FreshNames, UnknownAs, can_fail, is_volatile};

pub(super) struct Dependent<'n> {
    generator: &'n mut FreshNames,
    /// What the subquery is called in errors.
    called: &'static str,
    /// The rows around it, until those of the subquery are joined to them.
    outside: Option<LogicalPlan>,
    outer: DFSchemaRef,
    /// Their columns on the way: within others may have their names.
    names: Vec<Column>,
    /// The number, where something asks for it.
    row: Option<String>,
    mark: String,
    /// Which rows around it ask for the subquery; the others have one row without a mark.
    gate: Option<Expr>,
    /// What tells the rows apart instead of the number: columns of the subquery, with what they
    /// equal of the rows around it.
    keys: Option<Vec<(String, Expr)>>,
    /// Each row around it has one row, or with keys at most one.
    single: bool,
    /// A number may have rows without a mark beside others.
    mixed: bool,
    /// Rows without a mark are null in all columns of the subquery.
    nulls: bool,
}

impl<'n> Dependent<'n> {
    /// Of a subquery, which is returned with the names that columns around it have on the way.
    pub(super) fn new(
        outside: LogicalPlan,
        subquery: &LogicalPlan,
        called: &'static str,
        generator: &'n mut FreshNames,
    ) -> Result<(Self, LogicalPlan)> {
        let outer = outside.schema().clone();
        within_reach(subquery, &outer, called)?;
        let selected = keys::selected(subquery, &outer)?;
        let mut taken = HashMap::new();
        keys::names_on_the_way(subquery, &outer, &mut taken)?;
        let names = outer.columns().into_iter().map(|column| {
            let clashes = |of: &Option<TableReference>| {
                *of == column.relation || of.is_none() || column.relation.is_none()
            };
            let within: Option<&Vec<_>> = taken.get(&column.name);
            match within.is_some_and(|tables| tables.iter().any(clashes)) {
                true => Column::new_unqualified(generator.name("outer")),
                false => column,
            }
        });
        let names: Vec<_> = names.collect();
        let to = |column: &Column| Some(names[outer.maybe_index_of_column(column)?].clone());
        let subquery = rebound(subquery.clone(), &to)?;
        let row = match keys::is_one_row(&subquery, selected) {
            true => None,
            false => Some(generator.name("row")),
        };
        let mark = generator.name("mark");
        let dependent = Dependent {
            generator,
            called,
            outside: Some(outside),
            outer,
            names,
            row,
            mark,
            gate: None,
            keys: (selected == Selected::ByKeysOfAggregate).then(Vec::new),
            single: false,
            mixed: false,
            nulls: true,
        };
        Ok((dependent, subquery))
    }

    /// The rows around it, under their names on the way, and numbered.
    fn rows(&mut self) -> Result<LogicalPlan> {
        let Some(outside) = self.outside.take() else {
            return datafusion::common::internal_err!("rows around {} are read twice", self.called);
        };
        let own = outside.schema().columns();
        let mut plan = LogicalPlanBuilder::from(outside);
        if own != self.names {
            let renamed = own.into_iter().zip(&self.names).map(|(column, name)| {
                called(Expr::Column(column), name.relation.as_ref(), &name.name)
            });
            plan = plan.project(renamed.collect::<Vec<_>>())?;
        }
        if let Some(row) = &self.row {
            plan = plan.window([row_number().alias(row)])?;
        }
        plan.build()
    }

    /// What a number's rows are told apart by.
    fn by(&self) -> Vec<Expr> {
        match &self.keys {
            Some(keys) => keys.iter().map(|(key, _)| named(key)).collect(),
            None => self.row.iter().map(|row| named(row)).collect(),
        }
    }

    /// The columns that every operator carries along.
    fn carried(&self) -> Vec<Expr> {
        match &self.keys {
            Some(_) => self.by(),
            None => self.names.iter().cloned().map(Expr::Column).chain(self.by()).collect(),
        }
    }

    /// Of a number's rows, the columns that agree in them, and by which they are not grouped.
    fn first(&self) -> Vec<Expr> {
        if self.keys.is_some() {
            return vec![];
        }
        let of = |name: &Column| {
            let value = first_value(Expr::Column(name.clone()), vec![]);
            value.alias_qualified(name.relation.clone(), &name.name)
        };
        self.names.iter().map(of).collect()
    }

    fn marked(&self) -> Expr {
        match self.keys {
            Some(_) => lit(true),
            None => named(&self.mark),
        }
    }

    /// The mark of a row that is there for every row that asks.
    fn asked(&self) -> Result<Expr> {
        match &self.gate {
            Some(gate) => when(gate.clone(), lit(true)).end(),
            None => Ok(lit(true)),
        }
    }

    /// The columns around it by their own names.
    fn restored(&self) -> Vec<Expr> {
        shown(self.names.iter().cloned().map(Expr::Column), &self.outer)
    }

    fn refused(&self, what: &str) -> DataFusionError {
        Error::unsupported(
            format!("{what} in {}", self.called),
            "it cannot be computed for all rows around it at once",
        )
        .into()
    }

    /// The expressions over a plan in which what they name of rows around it are columns, as are
    /// their own subqueries, which may add some to the plan.
    fn computed(
        &mut self,
        plan: LogicalPlan,
        exprs: impl IntoIterator<Item = Expr>,
        unknown: UnknownAs,
    ) -> Result<(LogicalPlan, Vec<Expr>)> {
        let replaced = exprs.into_iter().map(|expr| self.guarded(inside(expr)?, plan.schema()));
        let exprs = replaced.collect::<Result<Vec<_>>>()?;
        if !exprs.iter().any(has_subquery) {
            return Ok((plan, exprs));
        }
        let mut below = Below::new(plan, self.generator);
        let exprs = exprs.into_iter().map(|expr| below.lifted(expr, unknown));
        let exprs = exprs.collect::<Result<_>>()?;
        Ok((below.plan()?, exprs))
    }

    /// The expression, computed only where there is a mark if it can fail.
    fn guarded(&self, expr: Expr, schema: &DFSchema) -> Result<Expr> {
        if self.keys.is_some() || self.gate.is_none() && self.single && !self.mixed {
            return Ok(expr);
        }
        match expr {
            Expr::Alias(_)
            | Expr::AggregateFunction(_)
            | Expr::WindowFunction(_)
            | Expr::GroupingSet(_) => {
                let guarded =
                    expr.map_children(|child| Ok(Transformed::yes(self.guarded(child, schema)?)))?;
                Ok(guarded.data)
            }
            expr if can_fail(&expr, schema) => when(self.marked(), expr).end(),
            expr => Ok(expr),
        }
    }

    /// These columns of the subquery, beside those around it.
    fn projected(&self, plan: LogicalPlan, mark: Expr, own: Vec<Expr>) -> Result<LogicalPlan> {
        let mut all = self.carried();
        if self.keys.is_none() {
            all.push(if mark == self.marked() { mark } else { mark.alias(&self.mark) });
        }
        all.extend(own);
        LogicalPlanBuilder::from(plan).project(all)?.build()
    }

    /// The rows of a plan, of which those lose their mark that a condition drops.
    fn without_marks(
        &mut self,
        plan: LogicalPlan,
        condition: Expr,
        own: Vec<Expr>,
    ) -> Result<LogicalPlan> {
        if self.keys.is_some() {
            let plan = LogicalPlanBuilder::from(plan).filter(condition)?.build()?;
            return self.projected(plan, lit(true), own);
        }
        let mark = when(self.marked().and(condition), lit(true)).end()?;
        (self.mixed, self.nulls) = (true, false);
        self.projected(plan, mark, own)
    }

    /// Whether a part of the subquery is joined as a whole to the rows around it. Without numbers
    /// it is not: the walk goes on to the operator that yields one row for each of them.
    fn is_whole(&self, plan: &LogicalPlan) -> Result<bool> {
        Ok((self.row.is_some() || self.keys.is_some()) && !is_correlated(plan)?)
    }

    /// The rows of a part of the subquery, for all numbers.
    fn of(&mut self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        if self.is_whole(plan)? {
            return self.joined(plan.clone(), vec![]);
        }
        match plan {
            LogicalPlan::EmptyRelation(_) => self.joined(plan.clone(), vec![]),
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::Projection(node) => {
                let input = self.of(&node.input)?;
                self.projection(node, input)
            }
            LogicalPlan::SubqueryAlias(node) => {
                let input = self.of(&node.input)?;
                self.alias(node, input)
            }
            LogicalPlan::Subquery(wrapped) => self.of(&wrapped.subquery),
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.of(&sort.input),
            LogicalPlan::Limit(limit) => self.limit(limit),
            LogicalPlan::Aggregate(node) => self.aggregate(node),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let plan = self.of(input)?;
                (self.single, self.nulls) = (false, false);
                let mark = self.keys.is_none().then(|| self.marked());
                let keys = self.by().into_iter().chain(mark).chain(columns(input));
                LogicalPlanBuilder::from(plan).aggregate(keys, self.first())?.build()
            }
            LogicalPlan::Distinct(Distinct::On(node)) => self.distinct_on(node),
            LogicalPlan::Window(node) => self.window(node),
            LogicalPlan::Unnest(node) => self.unnest(node),
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Union(node) => self.union(node),
            LogicalPlan::Values(node) => self.of(&super::rows_of_values(node)?),
            other => Err(self.refused(&construct(other))),
        }
    }

    /// The rows around it joined to those of a plan that does not refer to them.
    fn joined(&mut self, plan: LogicalPlan, conditions: Vec<Expr>) -> Result<LogicalPlan> {
        if self.keys.is_some() {
            return Ok(plan);
        }
        let late = |condition: &Expr| has_subquery(condition) || is_volatile(condition);
        let (late, on): (Vec<_>, Vec<_>) = conditions.into_iter().partition(late);
        let gate = self.gate.clone().into_iter().map(Ok);
        let on = gate.chain(on.into_iter().map(inside)).collect::<Result<Vec<_>>>()?;
        let rows = self.rows()?;
        let own = columns(&plan);
        let joined = match &plan {
            LogicalPlan::EmptyRelation(node) if node.produce_one_row && own.is_empty() => {
                self.single = true;
                self.mixed = !on.is_empty();
                let mark = match conjunction(on) {
                    Some(on) => when(on, lit(true)).end()?,
                    None => lit(true),
                };
                self.projected(rows, mark, vec![])?
            }
            _ => {
                let marked = own.iter().cloned().chain([lit(true).alias(&self.mark)]);
                let marked = marked.collect::<Vec<_>>();
                let plan = LogicalPlanBuilder::from(plan).project(marked)?.build()?;
                joined(rows, plan, JoinType::Left, on)?.build()?
            }
        };
        let Some(late) = conjunction(late) else { return Ok(joined) };
        let (joined, late) = self.computed(joined, [late], UnknownAs::False)?;
        let late = late.into_iter().next().unwrap_or_else(|| lit(true));
        self.without_marks(joined, late, own)
    }
}

/// What a part of a query is called in SQL.
fn construct(plan: &LogicalPlan) -> String {
    match plan {
        LogicalPlan::RecursiveQuery(_) => "WITH RECURSIVE".into(),
        other => other.display().to_string(),
    }
}
