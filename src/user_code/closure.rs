//! What a closure of a user's makes of rows, on the host.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, UInt64Array, new_empty_array, new_null_array,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{concat, filter, take};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::exec_err;
use datafusion::error::Result as PlanResult;

use crate::error::Result;

/// A closure that computes a function on the host.
pub(crate) type HostClosure = Arc<dyn Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync>;

/// A function's call of its closure.
pub(super) struct ClosureCall<'a> {
    pub(super) name: &'a str,
    pub(super) output: &'a DataType,
    pub(super) work: &'a HostClosure,
    pub(super) called_on_null: bool,
}

impl ClosureCall<'_> {
    /// The values of so many rows. The closure sees no row in which an argument is null, unless it
    /// is called there, too.
    pub(super) fn computed(&self, arrays: &[ArrayRef], rows: usize) -> PlanResult<ArrayRef> {
        if rows == 0 {
            return Ok(new_empty_array(self.output));
        }
        if arrays.is_empty() {
            // No array tells the closure how many rows there are.
            let values = (0..rows).map(|_| self.made(&[], 1)).collect::<PlanResult<Vec<_>>>()?;
            let values: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
            return Ok(concat(&values)?);
        }
        let mut nulls = None;
        for array in arrays.iter().filter(|_| !self.called_on_null) {
            nulls = NullBuffer::union(nulls.as_ref(), array.logical_nulls().as_ref());
        }
        let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else {
            return self.made(arrays, rows);
        };
        let called = rows - nulls.null_count();
        if called == 0 {
            return Ok(new_null_array(self.output, rows));
        }
        let is_called = BooleanArray::new(nulls.inner().clone(), None);
        let passed = arrays
            .iter()
            .map(|array| filter(array, &is_called))
            .collect::<std::result::Result<Vec<_>, _>>()?;
        let made = self.made(&passed, called)?;
        let places = nulls.iter().scan(0, |next, is_called| {
            let place = *next;
            *next += u64::from(is_called);
            Some(is_called.then_some(place))
        });
        Ok(take(&made, &places.collect::<UInt64Array>(), None)?)
    }

    fn made(&self, arrays: &[ArrayRef], rows: usize) -> PlanResult<ArrayRef> {
        let made = (self.work)(arrays)?;
        if made.len() != rows || made.data_type() != self.output {
            let (name, output) = (self.name, self.output);
            let found = format!("{} of type {}", made.len(), made.data_type());
            return exec_err!(
                "function {name}: {rows} values of type {output} are expected of the host, not {found}"
            );
        }
        Ok(made)
    }
}
