//! Values of other libraries.

#[cfg(feature = "polars")]
pub mod polars;
#[cfg(feature = "serde")]
pub(crate) mod structs;
