//! `string_agg`: the strings of each group one after the other.

use datafusion::logical_expr::Expr;

use super::picked::OrderedRows;
use super::{BySlot, Grouped};
use crate::codegen::regroup::{ColumnOf, Strings};
use crate::error::Result;
use crate::exec::run::Runner;
use crate::plan::RegroupedCall;

impl Runner {
    /// The strings of each slot one after the other, in the order asked for, with `between` between
    /// them.
    pub(super) fn joined_strings(
        &self,
        rows: &Grouped,
        call: &RegroupedCall,
        between: &Expr,
    ) -> Result<BySlot> {
        let arg = &call.args[0];
        let conditions = call.filter.iter().cloned().chain(rows.unless_null(arg));
        let OrderedRows { relation, schema, order, arguments } =
            self.in_order(rows, conditions, [arg], &call.order)?;
        let runs = self.sorted_runs(rows, &relation, &schema, &order)?;
        let column = ColumnOf { relation: &relation, at: arguments[0] };
        let strings = Strings { column, between, dtype: &call.dtype };
        self.of_runs(rows, &runs, |run, generator, out| {
            Ok(vec![strings.of_run(run, generator, out)?])
        })
    }
}
