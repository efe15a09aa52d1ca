//! How many rows a plan is expected to yield, from what is known of resident columns.

use datafusion::common::stats::Precision;
use datafusion::common::{Column as Name, DFSchema, JoinType};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Distinct, Expr, FetchType, Join, LogicalPlan, SkipType, TableScan};

use super::tables::{PlanTable, table_source};
use crate::codegen::selectivity;
use crate::column::Facts;
use crate::io::OfSession;

/// Rows per row of a side that a semi or anti join is taken to keep.
const SEMI: f64 = 0.5;

/// Elements that a list is taken to have.
const ELEMENTS: f64 = 4.0;

/// What is expected of a plan.
#[derive(Debug, Clone)]
pub(crate) struct Estimate {
    pub(crate) rows: f64,
    /// Of each column, as it lies in its table.
    pub(crate) columns: Vec<Facts>,
}

impl Estimate {
    /// Share of the rows that a predicate over the plan's schema leaves.
    fn selectivity(&self, predicate: &Expr, schema: &DFSchema) -> f64 {
        selectivity(predicate, &|name: &Name| self.facts(name, schema))
    }

    fn facts(&self, name: &Name, schema: &DFSchema) -> Option<Facts> {
        schema.maybe_index_of_column(name).and_then(|at| self.columns.get(at).copied())
    }

    /// Facts of a key, which mostly is a column.
    pub(super) fn key(&self, key: &Expr, schema: &DFSchema) -> Facts {
        let known = match key {
            Expr::Column(name) => self.facts(name, schema),
            Expr::Alias(alias) => return self.key(&alias.expr, schema),
            Expr::Cast(cast) => return self.key(&cast.expr, schema),
            _ => None,
        };
        known.unwrap_or_else(|| Facts::unknown(self.rows))
    }
}

/// `tables` are those that placeholders stand for. `None` where the size of a table is not known,
/// or where the operator is not known to the device.
pub(crate) fn estimate(plan: &LogicalPlan, tables: &[PlanTable]) -> Option<Estimate> {
    Some(match plan {
        LogicalPlan::TableScan(scan) => table(scan, tables)?,
        LogicalPlan::SubqueryAlias(alias) => estimate(&alias.input, tables)?,
        LogicalPlan::Filter(filter) => {
            let mut of = estimate(&filter.input, tables)?;
            of.rows *= of.selectivity(&filter.predicate, filter.input.schema());
            of
        }
        LogicalPlan::Projection(project) => {
            let of = estimate(&project.input, tables)?;
            let columns =
                project.expr.iter().map(|expr| of.key(expr, project.input.schema())).collect();
            Estimate { columns, ..of }
        }
        LogicalPlan::Aggregate(aggregate) => {
            let of = estimate(&aggregate.input, tables)?;
            let keys: Vec<Facts> = aggregate
                .group_expr
                .iter()
                .map(|key| of.key(key, aggregate.input.schema()))
                .collect();
            grouped(&of, keys, aggregate.schema.fields().len())
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let of = estimate(input, tables)?;
            let (keys, width) = (of.columns.clone(), of.columns.len());
            grouped(&of, keys, width)
        }
        LogicalPlan::Join(join) => joined(join, tables)?,
        LogicalPlan::Sort(sort) => limited(estimate(&sort.input, tables)?, sort.fetch),
        LogicalPlan::Limit(limit) => match (limit.get_skip_type(), limit.get_fetch_type()) {
            (Ok(SkipType::Literal(_)), Ok(FetchType::Literal(fetch))) => {
                limited(estimate(&limit.input, tables)?, fetch)
            }
            _ => return None,
        },
        LogicalPlan::Window(window) => {
            let mut of = estimate(&window.input, tables)?;
            of.columns.resize(window.schema.fields().len(), Facts::unknown(of.rows));
            of
        }
        LogicalPlan::Union(union) => {
            let parts = union
                .inputs
                .iter()
                .map(|input| Some(estimate(input, tables)?.rows))
                .collect::<Option<Vec<_>>>()?;
            let rows = parts.into_iter().sum();
            Estimate { rows, columns: vec![Facts::unknown(rows); union.schema.fields().len()] }
        }
        LogicalPlan::Unnest(unnest) => {
            let rows = estimate(&unnest.input, tables)?.rows * ELEMENTS;
            Estimate { rows, columns: vec![Facts::unknown(rows); unnest.schema.fields().len()] }
        }
        LogicalPlan::EmptyRelation(empty) => {
            let rows = if empty.produce_one_row { 1.0 } else { 0.0 };
            Estimate { rows, columns: vec![Facts::unknown(rows); empty.schema.fields().len()] }
        }
        _ => return None,
    })
}

fn limited(of: Estimate, fetch: Option<usize>) -> Estimate {
    Estimate { rows: fetch.map_or(of.rows, |fetch| of.rows.min(fetch as f64)), ..of }
}

/// One row for each combination of keys; behind the keys as many columns as there are.
fn grouped(of: &Estimate, keys: Vec<Facts>, width: usize) -> Estimate {
    let rows = keys.iter().map(|key| key.distinct).product::<f64>().min(of.rows).max(1.0);
    let alone = keys.len() == 1;
    let key = |key: Facts| Facts { rows, distinct: key.distinct.min(rows), unique: alone, ..key };
    let mut columns: Vec<Facts> = keys.into_iter().map(key).collect();
    columns.resize(width, Facts::unknown(rows));
    Estimate { rows, columns }
}

fn table(scan: &TableScan, tables: &[PlanTable]) -> Option<Estimate> {
    let width = scan.source.schema().fields().len();
    let projection = scan.projection.clone().unwrap_or_else(|| (0..width).collect());
    let provider = source_as_provider(table_source(scan, tables)).ok()?;
    let known = OfSession::of(provider.as_ref()).map(|table| table.facts(&projection));
    let (rows, facts) = known.unwrap_or_else(|| (None, vec![None; projection.len()]));
    let rows = match rows {
        Some(rows) => rows as f64,
        None => match provider.statistics()?.num_rows {
            Precision::Exact(rows) | Precision::Inexact(rows) => rows as f64,
            Precision::Absent => return None,
        },
    };
    let columns = facts.into_iter().map(|facts| facts.unwrap_or(Facts::unknown(rows))).collect();
    let mut of = Estimate { rows, columns };
    for filter in &scan.filters {
        of.rows *= of.selectivity(filter, &scan.projected_schema);
    }
    Some(of)
}

fn joined(join: &Join, tables: &[PlanTable]) -> Option<Estimate> {
    use JoinType::*;
    let (left, right) = (estimate(&join.left, tables)?, estimate(&join.right, tables)?);
    let keys: Vec<(Facts, Facts)> = (join.on.iter())
        .map(|(l, r)| (left.key(l, join.left.schema()), right.key(r, join.right.schema())))
        .collect();
    let columns = || left.columns.iter().chain(&right.columns).copied().collect::<Vec<_>>();
    let mut inner = left.rows * right.rows * key_selectivity(&keys);
    if let Some(filter) = &join.filter {
        let both = Estimate { rows: inner, columns: columns() };
        inner *= match join.left.schema().join(join.right.schema()) {
            Ok(schema) => both.selectivity(filter, &schema),
            Err(_) => 1.0,
        };
    }
    let (rows, columns) = match join.join_type {
        Inner => (inner, columns()),
        Left => (inner.max(left.rows), columns()),
        Right => (inner.max(right.rows), columns()),
        Full => (inner.max(left.rows).max(right.rows), columns()),
        LeftSemi | LeftAnti => (left.rows * SEMI, left.columns),
        RightSemi | RightAnti => (right.rows * SEMI, right.columns),
        LeftMark => (left.rows, left.columns),
        RightMark => (right.rows, right.columns),
    };
    let mut of = Estimate { rows, columns };
    of.columns.resize(join.schema.fields().len(), Facts::unknown(of.rows));
    Some(of)
}

/// Share of all pairs of rows of two tables whose keys are equal. Where one side's key is unique
/// the other side's is taken to refer to it, so that filters of the former leave their share of the
/// latter. Several columns that together are more than a side has rows are taken to be a key of the
/// smaller table.
pub(super) fn key_selectivity(keys: &[(Facts, Facts)]) -> f64 {
    let domain = |(a, b): &(Facts, Facts)| match (a.unique, b.unique) {
        (true, false) => a.rows,
        (false, true) => b.rows,
        _ => a.distinct.max(b.distinct),
    };
    let greatest = keys.iter().map(domain).fold(1.0, f64::max);
    let together: f64 = keys.iter().map(domain).product();
    let rows = |pair: &(Facts, Facts)| (pair.0.rows, pair.1.rows);
    let smaller = match keys {
        [first, more @ ..] if more.iter().all(|pair| rows(pair) == rows(first)) => {
            first.0.rows.min(first.1.rows)
        }
        // Of several tables: each refers to its own.
        _ => f64::INFINITY,
    };
    1.0 / together.min(smaller.max(greatest)).max(1.0)
}
