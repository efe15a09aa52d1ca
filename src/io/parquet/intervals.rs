//! Intervals, which the parquet crate hands on as bytes (`footer.rs` says so).
//!
//! ```text
//!   12 bytes   months u32 │ days u32 │ milliseconds u32, the least significant byte first
//! ```

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, IntervalMonthDayNanoArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, IntervalMonthDayNano, IntervalUnit, Schema};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;

use crate::error::{Error, Fault};

/// What they are in a table.
pub(super) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
/// What they are in files.
const BYTES: DataType = DataType::FixedSizeBinary(12);

/// The columns of a table as they come out of files.
pub(super) fn in_bytes(table: &Schema) -> Schema {
    let bare = |field: &Arc<Field>| match *field.data_type() == INTERVAL {
        true => Arc::new(field.as_ref().clone().with_data_type(BYTES)),
        false => field.clone(),
    };
    Schema::new(table.fields().iter().map(bare).collect::<Vec<_>>())
}

/// A scan of files, with intervals as the table has them.
pub(super) fn of_bytes(
    scan: Arc<dyn ExecutionPlan>,
    table: &Schema,
) -> Result<Arc<dyn ExecutionPlan>> {
    if table.fields().iter().all(|field| *field.data_type() != INTERVAL) {
        return Ok(scan);
    }
    let columns = table.fields().iter().enumerate().map(|(at, field)| {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), at));
        let value = match *field.data_type() == INTERVAL {
            true => Arc::new(OfBytes { column }) as _,
            false => column,
        };
        (value, field.name().clone())
    });
    Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), scan)?))
}

/// Intervals of a column of bytes.
#[derive(Debug, Eq)]
struct OfBytes {
    column: Arc<dyn PhysicalExpr>,
}

// Derived, it would move the column (rust-lang/rust#78808).
impl PartialEq for OfBytes {
    fn eq(&self, other: &OfBytes) -> bool {
        self.column.eq(&other.column)
    }
}

impl Hash for OfBytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.column.hash(state);
    }
}

impl fmt::Display for OfBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interval({})", self.column)
    }
}

impl PhysicalExpr for OfBytes {
    fn data_type(&self, _schema: &Schema) -> Result<DataType> {
        Ok(INTERVAL)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.column.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let array = self.column.evaluate(batch)?.into_array(batch.num_rows())?;
        let Some(bytes) = array.as_fixed_size_binary_opt() else {
            return Err(Error::internal(format!("intervals of {}", array.data_type())).into());
        };
        let found = bytes.iter().map(|bytes| bytes.map(interval).transpose());
        let found = found.collect::<crate::Result<IntervalMonthDayNanoArray>>()?;
        Ok(ColumnarValue::Array(Arc::new(found)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.column]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(OfBytes { column: children.pop().unwrap_or_else(|| self.column.clone()) }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

fn interval(bytes: &[u8]) -> crate::Result<IntervalMonthDayNano> {
    const NANOSECONDS: i64 = 1_000_000;
    let part = |at: usize| {
        bytes.get(at..at + 4).and_then(|part| part.try_into().ok()).map_or(0, u32::from_le_bytes)
    };
    let signed = |part: u32| {
        i32::try_from(part).map_err(|_| {
            Error::arithmetic(Fault::Overflow, format!("{part} months or days of an interval"))
        })
    };
    let (months, days) = (signed(part(0))?, signed(part(4))?);
    Ok(IntervalMonthDayNano::new(months, days, i64::from(part(8)) * NANOSECONDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_without_signs() {
        let of = |parts: [u32; 3]| interval(&parts.map(u32::to_le_bytes).concat());
        assert_eq!(of([1, 2, 3]).unwrap(), IntervalMonthDayNano::new(1, 2, 3_000_000));
        let most = IntervalMonthDayNano::new(i32::MAX, 0, 4_294_967_295_000_000);
        assert_eq!(of([i32::MAX as u32, 0, u32::MAX]).unwrap(), most);
        assert!(of([0, u32::MAX, 0]).is_err());
    }
}
