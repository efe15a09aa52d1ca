//! Columns of lists, whatever their offsets are.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{ArrowNativeType, DataType};
use datafusion::common::{Result, exec_err};

/// The list type as which functions take another, whose offsets are of another kind.
pub(super) fn plain_list(dtype: &DataType) -> Option<DataType> {
    match dtype {
        DataType::List(_) | DataType::LargeList(_) => Some(dtype.clone()),
        DataType::ListView(item) | DataType::FixedSizeList(item, _) => {
            Some(DataType::List(item.clone()))
        }
        DataType::LargeListView(item) => Some(DataType::LargeList(item.clone())),
        _ => None,
    }
}

/// A column of lists. A null one has no elements, whatever lies beneath.
#[derive(Debug)]
pub(super) struct Lists {
    /// Where each list's elements begin, and the end.
    begins: Vec<usize>,
    values: ArrayRef,
    nulls: Option<NullBuffer>,
}

impl Lists {
    /// Of an argument of the function `name`.
    pub(super) fn of(name: &str, array: &ArrayRef) -> Result<Lists> {
        let nulls = array.nulls().cloned();
        Ok(match array.data_type() {
            DataType::List(_) => {
                let lists = array.as_list::<i32>();
                let begins = lists.offsets().iter().map(|at| at.as_usize()).collect();
                Lists { begins, values: lists.values().clone(), nulls }
            }
            DataType::LargeList(_) => {
                let lists = array.as_list::<i64>();
                let begins = lists.offsets().iter().map(|at| at.as_usize()).collect();
                Lists { begins, values: lists.values().clone(), nulls }
            }
            other => return exec_err!("{name} takes lists, not {other}"),
        })
    }

    pub(super) fn rows(&self) -> usize {
        self.begins.len() - 1
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    pub(super) fn length(&self, row: usize) -> usize {
        if self.is_null(row) { 0 } else { self.begins[row + 1] - self.begins[row] }
    }

    /// Where a list's elements begin in [`Lists::values`].
    pub(super) fn begin(&self, row: usize) -> usize {
        self.begins[row]
    }

    pub(super) fn values(&self) -> &ArrayRef {
        &self.values
    }
}
