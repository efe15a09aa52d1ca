//! The tables of plans: placeholders in plans that are kept, and the tables that stand for them.
//!
//! ```text
//!   Filter: x < 3          lift      Filter: x < 3          optimize, cut     Prepared
//!     TableScan: a table  ──────▶      TableScan: table 0  ──────────────▶   of placeholders
//! ```
//!
//! When it runs, the placeholders' numbers choose among the tables of that query.
//!
//! A [`TablePlaceholder`] stands for a table by its number. It has a schema and no rows, so that a
//! plan that is kept keeps no memory of a device, and nothing of the data can find its way into the
//! plan: the session's tables tell DataFusion nothing but their schemas.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef, TableReference};
use datafusion::datasource::source_as_provider;
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::{
    Expr, LogicalPlan, TableScan, TableScanBuilder, TableSource, Union,
};

use super::volatile::is_repeatable;
use crate::error::Result;
use crate::io::OfSession;

/// A table, as plans read it.
pub(crate) type PlanTable = Arc<dyn TableSource>;

/// Stands for a table in a kept plan, by the table's number.
pub(crate) struct TablePlaceholder {
    number: usize,
    schema: SchemaRef,
}

impl TablePlaceholder {
    pub(crate) fn source(number: usize, schema: SchemaRef) -> PlanTable {
        Arc::new(TablePlaceholder { number, schema })
    }
}

/// What the session's tables answer through DataFusion's source of a provider.
impl TableSource for TablePlaceholder {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// A scan of a placeholder, whose rows have this schema.
pub(crate) fn placeholder(number: usize, schema: &DFSchemaRef) -> LogicalPlan {
    LogicalPlan::TableScan(TableScan {
        table_name: TableReference::bare(format!("input {number}")),
        source: TablePlaceholder::source(number, Arc::new(schema.as_arrow().clone())),
        projection: None,
        projected_schema: schema.clone(),
        filters: vec![],
        fetch: None,
        statistics_requests: Default::default(),
    })
}

/// Whether a placeholder can stand for a scan's table.
fn is_plain(source: &PlanTable) -> bool {
    let Ok(provider) = source_as_provider(source) else { return false };
    OfSession::of(provider.as_ref()).is_some_and(|table| table.is_read_whole())
}

/// Whether a plan reads nothing but placeholders, in subqueries too.
pub(crate) fn reads_placeholders(plan: &LogicalPlan) -> bool {
    let mut placeholders = true;
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            placeholders &= is_placeholder(&scan.source);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    placeholders && walked.is_ok()
}

/// Whether expressions of a plan hold plans.
pub(crate) fn has_subqueries(plan: &LogicalPlan) -> bool {
    let (mut with, mut without) = (0, 0);
    let count = |all: &mut usize| {
        *all += 1;
        Ok(TreeNodeRecursion::Continue)
    };
    // Nothing fails here.
    let _ = plan.apply_with_subqueries(|_| count(&mut with));
    let _ = plan.apply(|_| count(&mut without));
    with != without
}

/// Whether a source is a placeholder.
pub(super) fn is_placeholder(source: &PlanTable) -> bool {
    source.is::<TablePlaceholder>()
}

/// The table that a scan reads: its own, or the one that its placeholder stands for.
pub(crate) fn table_source<'a>(scan: &'a TableScan, tables: &'a [PlanTable]) -> &'a PlanTable {
    placeholder_number(&scan.source).and_then(|number| tables.get(number)).unwrap_or(&scan.source)
}

/// A number that a table has alone among those of a plan: its placeholder's, or its address.
pub(crate) fn identity(scan: &TableScan) -> usize {
    let address = |provider: Arc<dyn TableProvider>| Arc::as_ptr(&provider).cast::<()>() as usize;
    placeholder_number(&scan.source)
        .unwrap_or_else(|| source_as_provider(&scan.source).map_or(0, address))
}

/// Whether a scan's table is one of a provider that is not the session's.
pub(crate) fn is_foreign(scan: &TableScan) -> bool {
    placeholder_number(&scan.source).is_none()
        && source_as_provider(&scan.source).is_ok_and(|of| OfSession::of(of.as_ref()).is_none())
}

/// The number of a placeholder.
pub(crate) fn placeholder_number(source: &PlanTable) -> Option<usize> {
    Some(source.downcast_ref::<TablePlaceholder>()?.number)
}

/// Whether both are of one provider.
pub(crate) fn same_table(a: &PlanTable, b: &PlanTable) -> bool {
    let of = |source| source_as_provider(source);
    Arc::ptr_eq(a, b) || matches!((of(a), of(b)), (Ok(a), Ok(b)) if Arc::ptr_eq(&a, &b))
}

/// The tables that a plan reads, each once. `None` where one of them is not the session's.
fn tables_of(plan: &LogicalPlan) -> Option<Vec<PlanTable>> {
    let mut tables: Vec<PlanTable> = vec![];
    let walked = plan.apply_with_subqueries(|node| {
        let LogicalPlan::TableScan(scan) = node else { return Ok(TreeNodeRecursion::Continue) };
        if !is_plain(&scan.source) {
            return Ok(TreeNodeRecursion::Stop);
        }
        if !tables.iter().any(|known| same_table(known, &scan.source)) {
            tables.push(scan.source.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    matches!(walked, Ok(TreeNodeRecursion::Continue)).then_some(tables)
}

/// What a subtree reads: its operators are counted, and its tables are listed in the order of a
/// walk. Two subtrees that differ in it are not looked at further. Plans that compare equal may
/// still read different tables of one name.
#[derive(Debug, PartialEq)]
pub(crate) struct Reads {
    operators: usize,
    tables: Vec<usize>,
}

impl Reads {
    pub(crate) fn of(plan: &LogicalPlan) -> Reads {
        let mut reads = Reads { operators: 0, tables: vec![] };
        // Nothing fails here.
        let _ = plan.apply_with_subqueries(|node| {
            reads.operators += 1;
            if let LogicalPlan::TableScan(scan) = node {
                reads.tables.push(identity(scan));
            }
            Ok(TreeNodeRecursion::Continue)
        });
        reads
    }
}

/// The plan over placeholders instead of tables, with the tables. `None` where the plan cannot be
/// kept: it reads what is not the session's, or what it yields depends on more than its tables.
pub(crate) fn lift(plan: &LogicalPlan) -> Option<(LogicalPlan, Vec<PlanTable>)> {
    if !is_repeatable(plan) {
        return None;
    }
    let tables = tables_of(plan)?;
    let placeholder = |(at, of): (usize, &PlanTable)| TablePlaceholder::source(at, of.schema());
    let placeholders: Vec<_> = tables.iter().enumerate().map(placeholder).collect();
    let lifted = plan.clone().transform_down_with_subqueries(|node| match node {
        LogicalPlan::TableScan(scan) => {
            Ok(match tables.iter().position(|table| same_table(table, &scan.source)) {
                Some(number) => {
                    let source = placeholders[number].clone();
                    Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan }))
                }
                None => Transformed::no(LogicalPlan::TableScan(scan)),
            })
        }
        node => Ok(Transformed::no(node)),
    });
    Some((lifted.ok()?.data, tables))
}

/// A plan that is not optimized, made again for the types that its tables have by now; `None` where
/// that cannot be told: types are written into its subqueries.
pub(crate) fn with_present_types(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let mut outer = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                outer |= matches!(expr, Expr::OuterReferenceColumn(..));
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    if outer {
        return Ok(None);
    }
    let again = plan.clone().transform_up_with_subqueries(|node| {
        let again = match node {
            LogicalPlan::TableScan(scan) => {
                let TableScan { table_name, source, projection, filters, fetch, .. } = scan;
                let scan = TableScanBuilder::new(table_name, source).with_projection(projection);
                LogicalPlan::TableScan(scan.with_filters(filters).with_fetch(fetch).build()?)
            }
            LogicalPlan::Union(union) => {
                LogicalPlan::Union(Union::try_new_with_loose_types(union.inputs)?)
            }
            node => node.recompute_schema()?,
        };
        Ok(Transformed::yes(again))
    })?;
    Ok(Some(again.data))
}

/// An operator with the schema that its inputs, which may be null in other columns than they were,
/// make it have. For `transform_up`.
pub(crate) fn with_nulls_of_inputs(node: LogicalPlan) -> PlanResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Union(Union { inputs, schema }) = node else {
        return Ok(Transformed::yes(node.recompute_schema()?));
    };
    let fields = schema.iter().enumerate().map(|(at, (qualifier, field))| {
        let nullable = inputs.iter().any(|input| input.schema().field(at).is_nullable());
        let field = field.as_ref().clone().with_nullable(field.is_nullable() || nullable);
        (qualifier.cloned(), Arc::new(field))
    });
    let schema = DFSchema::new_with_metadata(fields.collect(), schema.metadata().clone())?;
    Ok(Transformed::yes(LogicalPlan::Union(Union { inputs, schema: Arc::new(schema) })))
}
