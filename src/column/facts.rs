//! What statistics say of a column, for estimates.

use super::{Column, Repr};

/// Facts for estimates, of a column as it lies in its table. Unlike [`super::Stats`] nothing relies
/// on them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Facts {
    /// Rows of the table.
    pub(crate) rows: f64,
    /// Different values, at most.
    pub(crate) distinct: f64,
    /// It is known that no value occurs twice.
    pub(crate) unique: bool,
    /// Least and greatest integer, in the column's representation.
    pub(crate) range: Option<(f64, f64)>,
}

impl Facts {
    /// Of a column of which nothing is known.
    pub(crate) fn unknown(rows: f64) -> Facts {
        Facts { rows, distinct: rows, unique: false, range: None }
    }

    /// Of a column in device memory.
    pub(crate) fn of(column: &Column) -> Facts {
        let rows = column.len as f64;
        let stats = &column.stats;
        let codes = column.encoding.distinct().map(|codes| codes as f64);
        let range =
            stats.range.filter(|_| codes.is_none()).map(|(low, high)| (low as f64, high as f64));
        let distinct = match (codes, range, column.repr()) {
            (Some(codes), ..) => codes,
            (None, Some((low, high)), _) => high - low + 1.0,
            (None, None, Repr::Bool) => 2.0,
            _ => rows,
        };
        let distinct = if stats.unique { rows } else { distinct.min(rows) };
        Facts { rows, distinct: distinct.max(1.0), unique: stats.unique, range }
    }
}
