//! Tables of other engines, in and out.

pub mod polars;
