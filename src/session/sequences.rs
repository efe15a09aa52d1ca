//! `range` and `generate_series` as tables, whose integers the device makes. Those of timestamps
//! are DataFusion's.

use std::sync::Arc;

use datafusion::catalog::{TableFunction, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::prelude::SessionContext;

use crate::io::{Sequence, Snapshot, SourceTable};

/// Puts the functions into the place of DataFusion's of the same names.
pub(super) fn register(context: &SessionContext) {
    for (name, includes_end) in [("range", false), ("generate_series", true)] {
        let Ok(function) = context.table_function(name) else { continue };
        context.register_udtf(name, Arc::new(SequenceFunction { function, includes_end }));
    }
}

#[derive(Debug)]
struct SequenceFunction {
    /// DataFusion's, which checks the arguments.
    function: Arc<TableFunction>,
    includes_end: bool,
}

impl TableFunctionImpl for SequenceFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let integer = |expr: &Expr| match expr {
            Expr::Literal(ScalarValue::Int64(value), _) => *value,
            Expr::Negative(value) => match value.as_ref() {
                Expr::Literal(ScalarValue::Int64(value), _) => value.and_then(i64::checked_neg),
                _ => None,
            },
            _ => None,
        };
        let integers: Option<Vec<i64>> = args.exprs().iter().map(integer).collect();
        let provider = self.function.create_table_provider_with_args(args)?;
        let bounds = match integers.as_deref() {
            Some([end]) => [0, *end, 1],
            Some([start, end]) => [*start, *end, 1],
            Some([start, end, step]) => [*start, *end, *step],
            _ => return Ok(provider),
        };
        match Sequence::new(bounds, self.includes_end, provider.clone()) {
            Some(sequence) => {
                Ok(Arc::new(SourceTable::new(Snapshot::of(Arc::new(sequence)), None, 0)))
            }
            None => Ok(provider),
        }
    }
}
