//! Columns of fragments: keys that are no columns yet, those that a fragment hands on, and the order
//! that it yields rows in.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, DFSchemaRef, TableReference};
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, Projection, SortExpr, TableScan, TableScanBuilder,
};

use super::ColumnOrder;
use crate::error::Result;
use crate::plan::names::FreshNames;
use crate::plan::tables::{PlanTable, TablePlaceholder, placeholder_number};

/// The columns of a table that a plan hands on, where it does nothing else.
pub(super) fn handed_on(plan: &LogicalPlan) -> Option<Vec<usize>> {
    match plan {
        LogicalPlan::Projection(project) => {
            let (below, schema) = (handed_on(&project.input)?, project.input.schema());
            let column = |expr: &Expr| match expr.clone().unalias() {
                Expr::Column(column) => Some(below[schema.index_of_column(&column).ok()?]),
                _ => None,
            };
            project.expr.iter().map(column).collect()
        }
        LogicalPlan::SubqueryAlias(alias) => handed_on(&alias.input),
        LogicalPlan::TableScan(scan) if scan.filters.is_empty() && scan.fetch.is_none() => {
            let all = || (0..scan.source.schema().fields().len()).collect();
            Some(scan.projection.clone().unwrap_or_else(all))
        }
        _ => None,
    }
}

/// The order in which a fragment yields its rows, where a sort by columns is its last operator.
pub(crate) fn order_of(fragment: &LogicalPlan) -> ColumnOrder {
    let LogicalPlan::Sort(sort) = fragment else { return vec![] };
    let schema = sort.input.schema();
    let key = |key: &SortExpr| match &key.expr {
        Expr::Column(column) if are_plain(std::slice::from_ref(&key.expr), schema) => {
            Some((schema.index_of_column(column).ok()?, options(key)))
        }
        _ => None,
    };
    sort.expr.iter().map_while(key).collect()
}

pub(super) fn options(key: &SortExpr) -> SortOptions {
    SortOptions { descending: !key.asc, nulls_first: key.nulls_first }
}

/// Whether keys that are equal have equal bits, and DataFusion has our order of them.
pub(super) fn are_plain(keys: &[Expr], schema: &DFSchema) -> bool {
    let is_plain = |key: &Expr| {
        key.get_type(schema).is_ok_and(|dtype| {
            !dtype.is_nested()
                && !dtype.is_floating()
                && !matches!(dtype, DataType::Dictionary(..) | DataType::Interval(_))
        })
    };
    !keys.is_empty() && keys.iter().all(is_plain)
}

/// The rows with their keys behind their columns, and where these are.
pub(super) fn with_keys(plan: LogicalPlan, keys: &[Expr]) -> Result<(LogicalPlan, Vec<usize>)> {
    let schema = plan.schema().clone();
    let own = schema.columns();
    let mut names = FreshNames::of(&plan)?;
    let mut exprs: Vec<Expr> = own.iter().cloned().map(Expr::Column).collect();
    let mut fields: Vec<_> =
        schema.iter().map(|(of, field)| (of.cloned(), field.clone())).collect();
    let mut columns = vec![];
    for key in keys {
        if let Expr::Column(column) = key
            && let Ok(at) = schema.index_of_column(column)
        {
            columns.push(at);
            continue;
        }
        let name = names.name("key");
        let (dtype, nullable) = (key.get_type(&schema)?, key.nullable(&schema)?);
        columns.push(exprs.len());
        exprs.push(key.clone().alias(&name));
        fields.push((None, Arc::new(Field::new(name, dtype, nullable))));
    }
    if exprs.len() == own.len() {
        return Ok((plan, columns));
    }
    let schema = Arc::new(DFSchema::new_with_metadata(fields, schema.metadata().clone())?);
    let plan = Projection::try_new_with_schema(exprs, Arc::new(plan), schema)?;
    Ok((LogicalPlan::Projection(plan), columns))
}

/// What a stage's rows are called as a table.
pub(crate) const STAGE: &str = "stage";

/// A plan that reads the first columns of a stage's rows, under their own names. What it scans has
/// one name for all columns and different names for them, as a table has.
pub(super) fn read_again(schema: &DFSchemaRef, shown: usize) -> Result<LogicalPlan> {
    let name = |at: usize| format!("c{at}");
    let fields = schema.fields().iter().enumerate();
    let fields = fields.map(|(at, field)| field.as_ref().clone().with_name(name(at)));
    let found = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let source = TablePlaceholder::source(0, found);
    let scan = TableScanBuilder::new(TableReference::bare(STAGE), source)
        .with_projection(Some((0..shown).collect()))
        .build()?;
    let scan = LogicalPlan::TableScan(scan);
    let (mut columns, mut fields) = (vec![], vec![]);
    for (at, (relation, field)) in schema.iter().take(shown).enumerate() {
        let column = Column::new(Some(STAGE), name(at));
        columns.push(Expr::Column(column).alias_qualified(relation.cloned(), field.name()));
        fields.push((relation.cloned(), field.clone()));
    }
    let schema = Arc::new(DFSchema::new_with_metadata(fields, schema.metadata().clone())?);
    let plan = Projection::try_new_with_schema(columns, Arc::new(scan), schema)?;
    Ok(LogicalPlan::Projection(plan))
}

/// The plan with these numbers of its placeholders, in place of 0, 1 and so on.
pub(super) fn numbered(plan: LogicalPlan, numbers: &[usize]) -> Result<LogicalPlan> {
    let moved = plan.transform_down(|node| match node {
        LogicalPlan::TableScan(scan) => {
            let own = placeholder_number(&scan.source).unwrap_or(0);
            let number = numbers.get(own).copied().unwrap_or(own);
            let source: PlanTable = TablePlaceholder::source(number, scan.source.schema());
            Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
        }
        node => Ok(Transformed::no(node)),
    })?;
    Ok(moved.data)
}
