//! Rows that are not materialised yet: columns of several tables, each seen through a vector of row
//! numbers.
//!
//! ```text
//!   row   index 0   orders.o_date     index 1   customer.c_name
//!    0      17   →  date[17]             4    →  name[4]
//!    1       3   →  date[3]              4    →  name[4]
//! ```
//!
//! A sort or a join yields such row numbers; the values are fetched by the pipeline that reads
//! them. A number that stands for no row ([`NO_ROW`]) is a row of nulls, which is all that an outer
//! join needs.

use std::sync::Arc;

use super::Column;
use crate::error::{ErrorKind, Result};
use warpframe_device::Buffer;

/// Row numbers (`u32`) of a [`Relation`], from element `offset` of the buffer on.
#[derive(Debug, Clone)]
pub(crate) struct Index {
    pub(crate) rows: Arc<Buffer>,
    pub(crate) offset: u64,
    /// Whether [`NO_ROW`] may occur among them: all columns are null there. An outer join leaves
    /// such rows.
    pub(crate) gaps: bool,
    /// Whether each row of the columns behind it occurs exactly once.
    pub(crate) permutation: bool,
}

impl Index {
    /// Of numbers that all stand for rows, each any number of times.
    pub(crate) fn of_rows(rows: Arc<Buffer>) -> Index {
        Index { rows, offset: 0, gaps: false, permutation: false }
    }

    /// Of an order of all rows.
    pub(crate) fn of_order(order: Arc<Buffer>) -> Index {
        Index { permutation: true, ..Index::of_rows(order) }
    }

    /// Whether both have the same numbers, as far as is seen without reading them.
    pub(crate) fn is(&self, other: &Index) -> bool {
        Arc::ptr_eq(&self.rows, &other.rows) && self.offset == other.offset
    }
}

/// The number that stands for no row, as device code writes it.
pub(crate) const NO_ROW: &str = "0xFFFFFFFFu";

/// Columns of `rows` rows, late materialised. Cloning shares the buffers.
#[derive(Debug, Clone)]
pub(crate) struct Relation {
    pub(crate) rows: u64,
    /// Where to find row `i` of the columns that name this entry: row `i` itself, or the number
    /// that the index holds.
    pub(crate) indices: Vec<Option<Index>>,
    /// Entry of `indices`, and the column it leads into.
    pub(crate) columns: Vec<(usize, Column)>,
}

impl Relation {
    /// Columns of `rows` rows each, in place.
    ///
    /// # Errors
    /// [`ErrorKind::TypeMismatch`] where a column has another number of rows: a kernel would read
    /// beyond its end.
    pub(crate) fn dense(rows: u64, columns: Vec<Column>) -> Result<Self> {
        match columns.iter().find(|column| column.len as u64 != rows) {
            Some(other) => Err(ErrorKind::TypeMismatch {
                what: "columns side by side".into(),
                expected: format!("{rows} rows"),
                found: format!("{} rows", other.len),
            }
            .into()),
            None => Ok(Relation {
                rows,
                indices: vec![None],
                columns: columns.into_iter().map(|c| (0, c)).collect(),
            }),
        }
    }

    /// Whether every column lies in place, without an index.
    pub(crate) fn is_dense(&self) -> bool {
        self.columns.iter().all(|(index, _)| self.indices[*index].is_none())
    }

    /// Rows `skip .. skip + fetch`, as far as there are any; nothing is copied.
    pub(crate) fn slice(&self, skip: u64, fetch: Option<u64>) -> Self {
        let skip = skip.min(self.rows);
        let rows = fetch.unwrap_or(u64::MAX).min(self.rows - skip);
        let indices = (self.indices.iter())
            .map(|index| {
                index.as_ref().map(|i| Index {
                    offset: i.offset + skip,
                    permutation: i.permutation && rows == self.rows,
                    ..i.clone()
                })
            })
            .collect();
        let columns = (self.columns.iter())
            .map(|(at, column)| match self.indices[*at] {
                None => (*at, column.slice(skip as usize, rows as usize)),
                Some(_) => (*at, column.clone()),
            })
            .collect();
        Relation { rows, indices, columns }
    }
}
