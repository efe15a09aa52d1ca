//! warpframe: a dataframe and SQL engine whose operators run as CUDA kernels of its own.

mod codegen;
mod column;
pub mod device;
mod error;
mod ops;

pub use error::{Error, ErrorKind, Result};
