//! Aggregates over whole partitions that need their rows more than once or in an order: distinct
//! values, medians, correlations. They are those of a GROUP BY whose groups are the partitions
//! (`exec/regroup.rs`).

use super::{OPERATOR, WindowRows, positions};
use crate::codegen::row_number::number_of_row;
use crate::codegen::{Codes, materialize};
use crate::column::Column;
use crate::error::Result;
use crate::exec::run::Runner;
use crate::plan::RegroupedCall;

impl Runner {
    /// For each row the aggregate of its partition.
    pub(super) fn of_partition(&self, sorted: &WindowRows, call: &RegroupedCall) -> Result<Column> {
        let rows = positions(sorted.rows())?;
        let bounds = self.bounds_of(sorted)?;
        let (_, partitions) =
            materialize(&self.device, OPERATOR, &rows, Codes::Keep, |generator, out| {
                Ok(vec![number_of_row(&bounds.partition_of, generator, out)])
            })?;
        // There are no more partitions than rows.
        self.beside_groups(&sorted.flow(), &partitions[0].data, sorted.rows(), call)
    }
}
