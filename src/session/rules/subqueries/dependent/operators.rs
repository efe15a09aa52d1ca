//! What each operator of a subquery is over rows that bear numbers of rows around it: it does for
//! each number what it did for all.

use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Aggregate, DistinctOn, Expr, ExprFunctionExt, Filter, GroupingSet, Limit, LogicalPlan,
    LogicalPlanBuilder, Operator, Projection, SortExpr, SubqueryAlias, Unnest, Window, lit, when,
};

use super::super::names::{free_of, is_correlated};
use super::super::tools::{bounds, columns, filtered, named, parted, shown};
use super::Dependent;
use super::keys::key;
use super::several::{by_arm, times};
use crate::plan::{UnknownAs, can_fail, into_operands};
use crate::session::relations::{all_empty, with_an_element};
use crate::session::rules::unnest::repeating;

impl Dependent<'_> {
    pub(super) fn filter(&mut self, filter: &Filter) -> Result<LogicalPlan> {
        let schema = filter.input.schema();
        if self.keys.is_some() {
            let input = self.of(&filter.input)?;
            if self.keys.is_some() {
                return self.filter_by_keys(filter, input);
            }
            return self.filter_of_rows(filter, input);
        }
        if !self.is_whole(&filter.input)? {
            let input = self.of(&filter.input)?;
            return self.filter_of_rows(filter, input);
        }
        let (outside, own) = parted([filter.predicate.clone()], |condition| {
            Ok(!free_of(condition, schema)?.is_empty() || can_fail(condition, schema))
        })?;
        self.joined(filtered(filter.input.as_ref().clone(), own)?, outside)
    }

    fn filter_of_rows(&mut self, filter: &Filter, input: LogicalPlan) -> Result<LogicalPlan> {
        let predicate = [filter.predicate.clone()];
        let (input, condition) = self.computed(input, predicate, UnknownAs::False)?;
        let condition = conjunction(condition).unwrap_or_else(|| lit(true));
        self.without_marks(input, condition, columns(&filter.input))
    }

    fn filter_by_keys(&mut self, filter: &Filter, input: LogicalPlan) -> Result<LogicalPlan> {
        let outer = self.schema_on_the_way()?;
        let (mut added, mut own) = (vec![], vec![]);
        for condition in into_operands(filter.predicate.clone(), Operator::And) {
            match key(&condition, filter.input.schema(), &outer)? {
                Some(key) => added.push(key),
                None => own.push(condition),
            }
        }
        let mut all = self.by();
        for (within, outside) in added {
            let name = self.generator.name("key");
            all.push(within.alias(&name));
            self.keys.get_or_insert_default().push((name, outside));
        }
        all.extend(columns(&filter.input));
        LogicalPlanBuilder::from(filtered(input, own)?).project(all)?.build()
    }

    pub(super) fn projection(
        &mut self,
        node: &Projection,
        input: LogicalPlan,
    ) -> Result<LogicalPlan> {
        self.nulls &= node.expr.iter().all(|expr| matches!(expr, Expr::Column(_)));
        let (input, exprs) = self.computed(input, node.expr.clone(), UnknownAs::Itself)?;
        self.projected(input, self.marked(), shown(exprs, &node.schema))
    }

    pub(super) fn alias(&self, node: &SubqueryAlias, input: LogicalPlan) -> Result<LogicalPlan> {
        self.projected(input, self.marked(), shown(columns(&node.input), &node.schema))
    }

    pub(super) fn limit(&mut self, limit: &Limit) -> Result<LogicalPlan> {
        let Some(bounds) = bounds(limit)? else {
            return Err(self.refused("LIMIT or OFFSET by an expression"));
        };
        self.limited(&limit.input, bounds)
    }

    /// The first rows of each number, by the order below them.
    fn limited(
        &mut self,
        plan: &LogicalPlan,
        bounds: (usize, Option<usize>),
    ) -> Result<LogicalPlan> {
        match plan {
            LogicalPlan::Projection(node) if is_correlated(plan)? => {
                let input = self.limited(&node.input, bounds)?;
                self.projection(node, input)
            }
            LogicalPlan::SubqueryAlias(node) if is_correlated(plan)? => {
                let input = self.limited(&node.input, bounds)?;
                self.alias(node, input)
            }
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
                let input = self.of(&sort.input)?;
                let exprs = sort.expr.iter().map(|key| key.expr.clone()).collect::<Vec<_>>();
                let (input, exprs) = self.computed(input, exprs, UnknownAs::Itself)?;
                let keys = sort.expr.iter().zip(exprs);
                let keys = keys.map(|(key, expr)| SortExpr { expr, ..key.clone() }).collect();
                self.cut(input, keys, bounds, columns(&sort.input))
            }
            other => {
                let input = self.of(other)?;
                self.cut(input, vec![], bounds, columns(other))
            }
        }
    }

    fn cut(
        &mut self,
        plan: LogicalPlan,
        keys: Vec<SortExpr>,
        (skip, fetch): (usize, Option<usize>),
        own: Vec<Expr>,
    ) -> Result<LogicalPlan> {
        if fetch == Some(0) || self.single && skip > 0 {
            return self.without_marks(plan, lit(false), own);
        }
        if self.single || skip == 0 && fetch.is_none() {
            return self.projected(plan, self.marked(), own);
        }
        let at = self.generator.name("at");
        let marked = self.mixed.then(|| self.marked().sort(true, false));
        let keys: Vec<_> = marked.into_iter().chain(keys).collect();
        let number = row_number().partition_by(self.by()).order_by(keys).build()?;
        let mut plan = LogicalPlanBuilder::from(plan).window([number.alias(&at)])?;
        let place = |at: usize| lit(u64::try_from(at).unwrap_or(u64::MAX));
        if let Some(fetch) = fetch {
            plan = plan.filter(named(&at).lt_eq(place(skip.saturating_add(fetch))))?;
        }
        self.single = skip == 0 && fetch == Some(1) || self.keys.is_some() && fetch == Some(1);
        match skip {
            0 => self.projected(plan.build()?, self.marked(), own),
            _ => self.without_marks(plan.build()?, named(&at).gt(place(skip)), own),
        }
    }

    pub(super) fn aggregate(&mut self, node: &Aggregate) -> Result<LogicalPlan> {
        let input = self.of(&node.input)?;
        if self.keys.is_some() && node.group_expr.is_empty() {
            return self.aggregate_of_keys(node, input);
        }
        let (keys, sets) = match &node.group_expr[..] {
            [Expr::GroupingSet(sets)] => {
                (sets.distinct_expr().into_iter().cloned().collect(), Some(sets))
            }
            keys => (keys.to_vec(), None),
        };
        let names: Vec<_> = keys.iter().map(|_| self.generator.name("key")).collect();
        let values: Vec<_> = node.aggr_expr.iter().map(|_| self.generator.name("value")).collect();
        let exprs = keys.iter().chain(&node.aggr_expr).cloned().collect::<Vec<_>>();
        let (input, mut group) = self.computed(input, exprs, UnknownAs::Itself)?;
        let mut calls = group.split_off(keys.len());
        let group = group.into_iter().zip(&names).map(|(expr, name)| expr.unalias().alias(name));
        let all = columns(&input).into_iter().chain(group).collect::<Vec<_>>();
        let mut input = LogicalPlanBuilder::from(input).project(all)?.build()?;

        // Of no rows there is a group all the same, of which rows without a mark are no part.
        if self.keys.is_none() && (keys.is_empty() || sets.is_some()) {
            let marked = |call| of_marked(call, &self.marked());
            calls = calls.into_iter().map(marked).collect::<Result<_>>()?;
        }
        let mut by: Vec<_> = names.iter().map(|name| named(name)).collect();
        if let Some(sets) = sets {
            let (plan, id, mark) = self.in_sets(input, sets, &keys, &names, node)?;
            input = plan;
            by.push(named(&id));
            self.mark = mark;
        }
        let mut groups = self.by();
        if self.keys.is_none() && !by.is_empty() {
            groups.push(self.marked());
        }
        groups.extend(by.iter().cloned());
        let calls = calls.into_iter().zip(&values).map(|(call, name)| call.unalias().alias(name));
        let aggregates = self.first().into_iter().chain(calls).collect::<Vec<_>>();
        let plan = LogicalPlanBuilder::from(input).aggregate(groups, aggregates)?.build()?;
        let mark = match by.is_empty() {
            true => {
                (self.single, self.mixed) = (true, self.gate.is_some());
                self.asked()?
            }
            false => {
                self.single = false;
                self.mixed |= sets.is_some();
                self.marked()
            }
        };
        self.nulls = false;
        let own = by.into_iter().chain(values.iter().map(|name| named(name)));
        self.projected(plan, mark, shown(own, &node.schema))
    }

    /// The rows once for each grouping set, in which keys of others are null. Returns the names of
    /// the set's number and of its mark: the empty set has a row where there is none.
    fn in_sets(
        &mut self,
        input: LogicalPlan,
        sets: &GroupingSet,
        keys: &[Expr],
        names: &[String],
        node: &Aggregate,
    ) -> Result<(LogicalPlan, String, String)> {
        let in_set = |set: &[&Expr]| keys.iter().map(|key| set.contains(&key)).collect::<Vec<_>>();
        let sets: Vec<Vec<bool>> = match sets {
            GroupingSet::Rollup(exprs) => {
                let exprs: Vec<_> = exprs.iter().collect();
                (0..=exprs.len()).rev().map(|size| in_set(&exprs[..size])).collect()
            }
            GroupingSet::Cube(exprs) if exprs.len() < 12 => {
                let chosen = |sets: usize| {
                    let of = exprs.iter().enumerate().filter(move |(at, _)| sets >> at & 1 == 1);
                    in_set(&of.map(|(_, expr)| expr).collect::<Vec<_>>())
                };
                (0..1usize << exprs.len()).map(chosen).collect()
            }
            GroupingSet::GroupingSets(sets) => {
                sets.iter().map(|set| in_set(&set.iter().collect::<Vec<_>>())).collect()
            }
            GroupingSet::Cube(_) => return Err(self.refused("CUBE of so many keys")),
        };
        let arm = self.generator.name("set");
        let own = columns(&input);
        let plan = times(input, sets.len(), &arm)?;
        let mut all = vec![];
        for column in own {
            let Some(key) = names.iter().position(|key| column == named(key)) else {
                all.push(column);
                continue;
            };
            let null = lit(ScalarValue::try_from(node.schema.field(key).data_type())?);
            let value = |set: &Vec<bool>| if set[key] { column.clone() } else { null.clone() };
            all.push(by_arm(&arm, sets.iter().map(value))?.alias(&names[key]));
        }
        // DataFusion's `__grouping_id` has a bit for each key that is not in the set, and above
        // these the number of the set among equal ones.
        let dtype = node.schema.field(keys.len()).data_type();
        let id = |(at, set): (usize, &Vec<bool>)| {
            let mask = set.iter().fold(0u64, |mask, within| mask << 1 | u64::from(!within));
            let equal = sets[..at].iter().filter(|other| *other == set).count() as u64;
            ScalarValue::UInt64(Some(equal << keys.len() | mask)).cast_to(dtype).map(lit)
        };
        let ids = sets.iter().enumerate().map(id).collect::<Result<Vec<_>>>()?;
        let of_set = self.generator.name("id");
        all.push(by_arm(&arm, ids)?.alias(&of_set));
        let mark = |set: &Vec<bool>| match set.contains(&true) {
            true => Ok(self.marked()),
            false => self.asked(),
        };
        let marks = sets.iter().map(mark).collect::<Result<Vec<_>>>()?;
        let mark = self.generator.name("mark");
        all.push(by_arm(&arm, marks)?.alias(&mark));
        let plan = LogicalPlanBuilder::from(plan).project(all)?.build()?;
        Ok((plan, of_set, mark))
    }

    pub(super) fn distinct_on(&mut self, node: &DistinctOn) -> Result<LogicalPlan> {
        let input = self.of(&node.input)?;
        let order = node.sort_expr.clone().unwrap_or_default();
        let exprs = node.on_expr.iter().cloned().chain(order.iter().map(|key| key.expr.clone()));
        let exprs = exprs.collect::<Vec<_>>();
        let (input, exprs) = self.computed(input, exprs, UnknownAs::Itself)?;
        let (on, keys) = exprs.split_at(node.on_expr.len());
        let mut parts = self.by();
        if self.keys.is_none() {
            parts.push(self.marked());
        }
        parts.extend_from_slice(on);
        let keys = order.into_iter().zip(keys);
        let keys = keys.map(|(key, expr)| SortExpr { expr: expr.clone(), ..key }).collect();
        let at = self.generator.name("at");
        let number = row_number().partition_by(parts).order_by(keys).build()?;
        let plan = LogicalPlanBuilder::from(input)
            .window([number.alias(&at)])?
            .filter(named(&at).eq(lit(1u64)))?
            .build()?;
        self.nulls &= node.select_expr.iter().all(|expr| matches!(expr, Expr::Column(_)));
        let (plan, exprs) = self.computed(plan, node.select_expr.clone(), UnknownAs::Itself)?;
        self.projected(plan, self.marked(), shown(exprs, &node.schema))
    }

    pub(super) fn window(&mut self, node: &Window) -> Result<LogicalPlan> {
        let input = self.of(&node.input)?;
        let (mut plan, calls) =
            self.computed(input, node.window_expr.clone(), UnknownAs::Itself)?;
        let mut parts = self.by();
        if self.mixed {
            parts.push(self.marked());
        }
        let mut own = columns(&node.input);
        let shown = node.schema.iter().skip(own.len());
        for (call, (qualifier, field)) in calls.into_iter().zip(shown) {
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
        let unnested = |plan: LogicalPlan| {
            LogicalPlanBuilder::from(plan)
                .unnest_columns_with_options(node.exec_columns.clone(), node.options.clone())?
                .build()
                .and_then(repeating)
        };
        self.single = false;
        if self.keys.is_some() {
            return unnested(input);
        }
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
        (self.mixed, self.nulls) = (true, false);
        unnested(plan)
    }
}

/// The aggregate of rows with a mark.
fn of_marked(call: Expr, mark: &Expr) -> Result<Expr> {
    let of_marked = call.transform_up(|expr| match expr {
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            params.filter = Some(Box::new(match params.filter {
                Some(filter) => mark.clone().and(*filter),
                None => mark.clone(),
            }));
            Ok(Transformed::yes(Expr::AggregateFunction(AggregateFunction { func, params })))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(of_marked.data)
}
