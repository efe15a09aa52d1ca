//! The encodings of columns: what lies in a column's `data`.
//!
//! | encoding | `data` holds | its own file |
//! |---|---|---|
//! | `Plain` | values of the type's representation | – |
//! | `Dictionary` | `u32` codes into sorted strings | `dictionary.rs` |
//!
//! What depends on the encoding alone is answered here: a new encoding is a row of each `match`.
//! Code outside of `column` asks these questions and names no encoding. Two files of `codegen` do
//! name them: `generator.rs` (`load_column`) reads a row in a kernel, `outputs.rs` writes one.
//! Within `column`, `export_strings.rs` exports codes, `peer.rs` and `spilled.rs` move them, and
//! `encode.rs` makes them.

use std::sync::Arc;

use super::{Column, Dictionary, Repr};

/// How a column's `data` is to be read.
#[derive(Debug, Clone)]
pub(crate) enum Encoding {
    /// Values of the type's representation.
    Plain,
    /// `u32` codes into a dictionary of strings sorted bytewise without duplicates: order of codes
    /// is order of values.
    Dictionary(Arc<Dictionary>),
}

impl Encoding {
    /// The representation of what lies in `data`, for values of this one. It compares as the values
    /// do: equal where they are equal, and in their order.
    pub(crate) fn stored(&self, values: Repr) -> Repr {
        match self {
            Encoding::Plain => values,
            Encoding::Dictionary(_) => Repr::U32,
        }
    }

    /// Least and greatest of what may lie in `data`, where the encoding says so.
    pub(crate) fn range(&self) -> Option<(i128, i128)> {
        match self {
            Encoding::Plain => None,
            Encoding::Dictionary(dictionary) => Some(dictionary.codes()),
        }
    }

    /// Most distinct values, where the encoding says so.
    pub(crate) fn distinct(&self) -> Option<usize> {
        match self {
            Encoding::Plain => None,
            Encoding::Dictionary(dictionary) => Some(dictionary.len()),
        }
    }

    /// Most bytes of a string, where the encoding says so.
    pub(crate) fn longest(&self) -> Option<u32> {
        match self {
            Encoding::Plain => None,
            Encoding::Dictionary(dictionary) => dictionary.stats().longest,
        }
    }
}

impl Column {
    /// Whether `data` holds the values themselves.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.encoding, Encoding::Plain)
    }

    /// Whether `data` or that of a field holds something else than the values.
    pub(crate) fn is_encoded(&self) -> bool {
        !self.is_plain() || self.children.iter().any(Column::is_encoded)
    }

    /// Whether `data` holds views, which point into `characters`.
    pub(crate) fn has_views(&self) -> bool {
        self.is_plain() && self.repr() == Repr::View
    }

    /// Bytes a row in `data`.
    pub(crate) fn width(&self) -> usize {
        self.encoding.stored(self.repr()).width()
    }

    /// The dictionary that the column's codes point into.
    pub(super) fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        match &self.encoding {
            Encoding::Plain => None,
            Encoding::Dictionary(dictionary) => Some(dictionary),
        }
    }
}
