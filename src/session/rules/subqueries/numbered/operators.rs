//! What each operator of a subquery is over rows that bear numbers of rows outside: it does for
//! each number what it did for all.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinType, NullEquality, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Aggregate, DistinctOn, Expr, ExprFunctionExt, Filter, Join, Limit, LogicalPlan,
    LogicalPlanBuilder, Operator, Projection, SortExpr, SubqueryAlias, Unnest, Window, lit, when,
};

use super::super::super::correlation::{bounds, has_grouping_sets, is_correlated};
use super::super::has_subquery;
use super::{NumberedRows, called, columns, named};
use crate::plan::into_operands;
use crate::session::relations::{all_empty, with_an_element};

impl NumberedRows<'_> {
    pub(super) fn filter(&mut self, filter: &Filter) -> Result<LogicalPlan> {
        if is_correlated(&filter.input) {
            let input = self.of(&filter.input)?;
            let condition = self.replaced(filter.predicate.clone(), filter.input.schema())?;
            if has_subquery(&condition) {
                return Err(self.refused("a condition with EXISTS or IN"));
            }
            return self.without_marks(input, condition, columns(&filter.input));
        }
        let conditions = into_operands(filter.predicate.clone(), Operator::And).into_iter();
        let (outside, own): (Vec<_>, Vec<_>) = conditions.partition(Expr::contains_outer);
        let input = match conjunction(own) {
            Some(own) => LogicalPlan::Filter(Filter::try_new(own, filter.input.clone())?),
            None => filter.input.as_ref().clone(),
        };
        self.joined(input, outside)
    }

    pub(super) fn projection(
        &mut self,
        node: &Projection,
        input: LogicalPlan,
    ) -> Result<LogicalPlan> {
        self.nulls &= node.expr.iter().all(|expr| matches!(expr, Expr::Column(_)));
        let exprs = self.all_replaced(&node.expr, node.input.schema())?.into_iter();
        let own = exprs
            .zip(node.schema.iter())
            .map(|(expr, (qualifier, field))| called(expr.unalias(), qualifier, field.name()));
        self.projected(input, self.marked(), own.collect())
    }

    pub(super) fn alias(&self, node: &SubqueryAlias, input: LogicalPlan) -> Result<LogicalPlan> {
        let own = columns(&node.input).into_iter().zip(node.schema.iter());
        let own = own.map(|(column, (qualifier, field))| {
            column.alias_qualified(qualifier.cloned(), field.name())
        });
        self.projected(input, self.marked(), own.collect())
    }

    pub(super) fn limit(&mut self, limit: &Limit) -> Result<LogicalPlan> {
        let Some(bounds) = bounds(limit)? else {
            return Err(self.refused("LIMIT or OFFSET by an expression"));
        };
        self.limited(&limit.input, bounds)
    }

    /// The first rows of each number, by the order below them.
    pub(super) fn limited(
        &mut self,
        plan: &LogicalPlan,
        bounds: (usize, Option<usize>),
    ) -> Result<LogicalPlan> {
        match plan {
            LogicalPlan::Projection(node) => {
                let input = self.limited(&node.input, bounds)?;
                self.projection(node, input)
            }
            LogicalPlan::SubqueryAlias(node) => {
                let input = self.limited(&node.input, bounds)?;
                self.alias(node, input)
            }
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
                let input = self.of(&sort.input)?;
                let mut keys = sort.expr.clone();
                for key in &mut keys {
                    key.expr = self.replaced(key.expr.clone(), sort.input.schema())?;
                }
                self.cut(input, keys, bounds, columns(&sort.input))
            }
            other => {
                let input = self.of(other)?;
                self.cut(input, vec![], bounds, columns(other))
            }
        }
    }

    pub(super) fn cut(
        &mut self,
        plan: LogicalPlan,
        keys: Vec<SortExpr>,
        (skip, fetch): (usize, Option<usize>),
        own: Vec<Expr>,
    ) -> Result<LogicalPlan> {
        if fetch == Some(0) || self.single && skip > 0 {
            (self.mixed, self.nulls) = (true, false);
            return self.projected(plan, lit(ScalarValue::Boolean(None)), own);
        }
        if self.single || skip == 0 && fetch.is_none() {
            return Ok(plan);
        }
        let at = self.generator.name("at");
        let marked = self.mixed.then(|| self.marked().sort(true, false));
        let keys: Vec<_> = marked.into_iter().chain(keys).collect();
        let number = row_number().partition_by(vec![named(&self.row)]).order_by(keys).build()?;
        let mut plan = LogicalPlanBuilder::from(plan).window([number.alias(&at)])?;
        let place = |at: usize| lit(u64::try_from(at).unwrap_or(u64::MAX));
        if let Some(fetch) = fetch {
            plan = plan.filter(named(&at).lt_eq(place(skip.saturating_add(fetch))))?;
        }
        self.single = skip == 0 && fetch == Some(1);
        match skip {
            0 => self.projected(plan.build()?, self.marked(), own),
            _ => self.without_marks(plan.build()?, named(&at).gt(place(skip)), own),
        }
    }

    pub(super) fn aggregate(&mut self, node: &Aggregate) -> Result<LogicalPlan> {
        if has_grouping_sets(&node.group_expr) {
            return Err(self.refused("GROUPING SETS, ROLLUP or CUBE"));
        }
        let input = self.of(&node.input)?;
        let inner = node.input.schema();
        let keys: Vec<_> = node.group_expr.iter().map(|_| self.generator.name("key")).collect();
        let values: Vec<_> = node.aggr_expr.iter().map(|_| self.generator.name("value")).collect();
        let mut below = columns(&node.input);
        let group = self.all_replaced(&node.group_expr, inner)?.into_iter().zip(&keys);
        below.extend(group.map(|(expr, name)| expr.unalias().alias(name)));
        let input = self.projected(input, self.marked(), below)?;

        let whole = keys.is_empty();
        let mark = self.marked();
        let mut calls = self.first();
        for (call, name) in self.all_replaced(&node.aggr_expr, inner)?.into_iter().zip(&values) {
            let call = call.unalias().transform_up(|expr| match expr {
                Expr::AggregateFunction(AggregateFunction { func, mut params }) if whole => {
                    params.filter = Some(Box::new(match params.filter {
                        Some(filter) => mark.clone().and(*filter),
                        None => mark.clone(),
                    }));
                    let call = AggregateFunction { func, params };
                    Ok(Transformed::yes(Expr::AggregateFunction(call)))
                }
                other => Ok(Transformed::no(other)),
            })?;
            calls.push(call.data.alias(name));
        }
        let mut by = vec![named(&self.row)];
        if !whole {
            by.push(self.marked());
            by.extend(keys.iter().map(|key| named(key)));
        }
        let plan = LogicalPlanBuilder::from(input).aggregate(by, calls)?.build()?;
        self.nulls = false;
        let mark = match whole {
            true => {
                (self.single, self.mixed) = (true, false);
                lit(true)
            }
            false => {
                self.single = false;
                self.marked()
            }
        };
        let own = keys.iter().chain(&values).zip(node.schema.iter());
        let own = own.map(|(name, (qualifier, field))| {
            named(name).alias_qualified(qualifier.cloned(), field.name())
        });
        self.projected(plan, mark, own.collect())
    }

    pub(super) fn distinct_on(&mut self, node: &DistinctOn) -> Result<LogicalPlan> {
        let input = self.of(&node.input)?;
        let inner = node.input.schema();
        let mut parts = vec![named(&self.row), self.marked()];
        parts.extend(self.all_replaced(&node.on_expr, inner)?);
        let mut keys = node.sort_expr.clone().unwrap_or_default();
        for key in &mut keys {
            key.expr = self.replaced(key.expr.clone(), inner)?;
        }
        let at = self.generator.name("at");
        let number = row_number().partition_by(parts).order_by(keys).build()?;
        let plan = LogicalPlanBuilder::from(input)
            .window([number.alias(&at)])?
            .filter(named(&at).eq(lit(1u64)))?
            .build()?;
        self.nulls &= node.select_expr.iter().all(|expr| matches!(expr, Expr::Column(_)));
        let exprs = self.all_replaced(&node.select_expr, inner)?.into_iter();
        let own = exprs
            .zip(node.schema.iter())
            .map(|(expr, (qualifier, field))| called(expr.unalias(), qualifier, field.name()));
        self.projected(plan, self.marked(), own.collect())
    }

    pub(super) fn window(&mut self, node: &Window) -> Result<LogicalPlan> {
        let mut plan = self.of(&node.input)?;
        let mut parts = vec![named(&self.row)];
        if self.mixed {
            parts.push(self.marked());
        }
        let mut own = columns(&node.input);
        let shown = node.schema.iter().skip(own.len());
        for (call, (qualifier, field)) in
            self.all_replaced(&node.window_expr, node.input.schema())?.into_iter().zip(shown)
        {
            let name = self.generator.name("value");
            let call = call.unalias().transform_up(|expr| match expr {
                Expr::WindowFunction(mut call) => {
                    call.params.partition_by.splice(0..0, parts.clone());
                    Ok(Transformed::yes(Expr::WindowFunction(call)))
                }
                other => Ok(Transformed::no(other)),
            })?;
            plan = LogicalPlanBuilder::from(plan).window([call.data.alias(&name)])?.build()?;
            own.push(named(&name).alias_qualified(qualifier.cloned(), field.name()));
        }
        self.nulls = false;
        self.projected(plan, self.marked(), own)
    }

    /// A number without elements has one that is null and has no mark.
    pub(super) fn unnest(&mut self, node: &Unnest) -> Result<LogicalPlan> {
        let deep = node.options.recursions.iter().any(|list| list.depth != 1);
        if deep || !node.struct_type_columns.is_empty() {
            return Err(self.refused("UNNEST of structs, or of lists within lists,"));
        }
        let input = self.of(&node.input)?;
        let lists = node.exec_columns.iter().cloned().map(Expr::Column).collect::<Vec<_>>();
        let none = all_empty(&lists);
        let mut elements = with_an_element(lists.clone(), node.input.schema())?;
        let own = columns(&node.input).into_iter().map(|column| {
            match lists.iter().position(|list| *list == column) {
                Some(at) => {
                    let (relation, name) = column.qualified_name();
                    std::mem::take(&mut elements[at]).alias_qualified(relation, name)
                }
                None => column,
            }
        });
        let mark = when(none, lit(ScalarValue::Boolean(None))).otherwise(self.marked())?;
        let plan = self.projected(input, mark, own.collect())?;
        self.mixed |= !self.single;
        (self.single, self.nulls) = (false, false);
        LogicalPlanBuilder::from(plan)
            .unnest_columns_with_options(node.exec_columns.clone(), node.options.clone())?
            .build()
    }

    pub(super) fn join(&mut self, join: &Join) -> Result<LogicalPlan> {
        use JoinType::{Inner, Left, Right};
        let sides = [&join.left, &join.right].map(|side| is_correlated(side));
        if join.null_equality != NullEquality::NullEqualsNothing {
            return Err(self.refused("a join on equal nulls"));
        }
        if let ([false, false], Inner, Some(filter)) = (sides, join.join_type, &join.filter) {
            let conditions = into_operands(filter.clone(), Operator::And).into_iter();
            let (outside, own): (Vec<_>, Vec<_>) = conditions.partition(Expr::contains_outer);
            let own = Join { filter: conjunction(own), ..join.clone() };
            return self.joined(LogicalPlan::Join(own), outside);
        }
        let (here, there) = match (sides, join.join_type) {
            ([true, false], Inner | Left) => (&join.left, &join.right),
            ([false, true], Inner | Right) => (&join.right, &join.left),
            _ => return Err(self.refused("such a join with columns outside in it")),
        };
        let plan = self.of(here)?;
        let schema = &join.schema;
        let on = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
        let conditions: Vec<_> = on.chain(join.filter.clone()).collect();
        let mut conditions = self.all_replaced(&conditions, schema)?;
        if conditions.iter().any(has_subquery) {
            return Err(self.refused("a condition with EXISTS or IN"));
        }
        conditions.push(self.marked());
        let found = self.generator.name("mark");
        let there = LogicalPlanBuilder::from(there.as_ref().clone());
        let marked = columns(there.plan()).into_iter().chain([lit(true).alias(&found)]);
        let marked = marked.collect::<Vec<_>>();
        let there = there.project(marked)?.build()?;
        let plan =
            LogicalPlanBuilder::from(plan).join_on(there, JoinType::Left, conditions)?.build()?;
        let mark = match join.join_type {
            Inner => {
                self.mixed |= !self.single;
                self.nulls = false;
                when(named(&found), self.marked()).end()?
            }
            _ => self.marked(),
        };
        self.single = false;
        let own = schema.columns().into_iter().map(Expr::Column).collect();
        self.projected(plan, mark, own)
    }
}
