//! VALUES: rows that the query states. They are constants, which the host evaluates, and are
//! uploaded.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::{cast, concat};
use datafusion::arrow::datatypes::Schema;
use datafusion::common::DFSchema;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, Values};
use datafusion::physical_expr::create_physical_expr;

use super::run::Runner;
use crate::codegen::{Flow, FlowSource};
use crate::column::{Column, Relation};
use crate::error::Result;
use crate::host::host_expr;

impl Runner {
    /// The rows as columns on the device.
    pub(super) fn values(&self, values: &Values) -> Result<Flow> {
        let nothing = Arc::new(Schema::empty());
        let row = RecordBatch::try_new_with_options(
            nothing,
            vec![],
            &RecordBatchOptions::new().with_row_count(Some(1)),
        )?;
        let mut columns = vec![];
        for (at, field) in values.schema.fields().iter().enumerate() {
            let cells = values
                .values
                .iter()
                .map(|exprs| cell(&exprs[at], &row))
                .collect::<Result<Vec<_>>>()?;
            let cells = cells
                .iter()
                .map(|cell| Ok(cast(cell, field.data_type())?))
                .collect::<Result<Vec<_>>>()?;
            let whole = concat(&cells.iter().map(|cell| cell.as_ref()).collect::<Vec<_>>())?;
            columns.push(Column::from_arrays(&self.device, field.data_type(), &[whole])?);
        }
        let rows = values.values.len() as u64;
        Ok(Flow::new(FlowSource::Relation(Relation::dense(rows, columns)?), values.schema.clone()))
    }
}

/// The value of a constant expression, as an array of one row.
fn cell(expr: &Expr, row: &RecordBatch) -> Result<ArrayRef> {
    let (schema, props) = (DFSchema::empty(), ExecutionProps::new());
    let physical = create_physical_expr(
        &host_expr(expr.clone(), &schema)?,
        &schema,
        &props,
        &PhysicalPlanningContext::default(),
    )?;
    Ok(physical.evaluate(row)?.into_array(1)?)
}
