//! warpframe: a dataframe and SQL engine whose operators run as CUDA kernels of its own.
//!
//! A [`Session`] holds tables and a device; it answers SQL, and hands out lazy and eager frames.
//! Where there is a GPU, queries run on it; without one everything works on the CPU.
//!
//! ```
//! use warpframe::prelude::*;
//!
//! let session = Session::builder().device(DeviceChoice::Cpu).build()?;
//! session.register_csv("jets", "data/jets.csv")?;
//! let sql = session.sql("SELECT count(*) AS n FROM jets WHERE \"E\" > 100")?.collect()?;
//! let api = session.table("jets")?.filter(col("E").gt(lit(100)))?.collect()?;
//! let n = sql.to_arrow()?[0].column(0).clone();
//! assert_eq!(n.to_data(), Int64Array::from(vec![api.num_rows() as i64]).to_data());
//! # use datafusion::arrow::array::{Array, Int64Array};
//! # Ok::<(), warpframe::Error>(())
//! ```
//!
//! # Errors
//!
//! All that can fail returns [`Result`]. [`Error::kind`] says what went wrong, in fields to match
//! on; [docs/errors.md](https://github.com/warpframe/warpframe/blob/main/docs/errors.md) goes
//! through the kinds and says when they come.
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `ffi` | [`interop`]: Arrow's C streams, DLPack, memory of the device |
//! | `polars` | `interop::polars`: arrays of polars-arrow, out and in; and `ffi` |
//! | `proto` | `plugin::StageCodec`: stages of plans as bytes |
//! | `serde` | `Session::from_structs` and `DataFrame::to_structs`: rows as structs of the user's |
//!
//! None is on by default.
//!
//! # DataFusion's types
//!
//! The engine is built on DataFusion 55; a new major version of it changes these types, and so is a
//! new major version here. No other type of its is shown.
//!
//! | type | where | why |
//! |---|---|---|
//! | `arrow` | [`arrow`], batches and arrays in and out | programs have one Arrow with the engine |
//! | `SessionContext` | [`Session::context`] | its functions and table providers are used |
//! | `LogicalPlan` | [`LazyFrame::plan_before_rules`] | tools look at plans |
//! | `Expr` | `From` and `Into` of [`Expr`] | functions of its are used in verbs |
//! | `SortExpr`, `WindowFrame`, … | [`frame::expr`] | sort keys and frames of windows are plain data |
//! | `JoinType` | [`frame::JoinType`] | the kinds of joins are plain data |
//! | `SessionStateBuilder` | [`plugin`] | a device for sessions of DataFusion's |
//! | `TokenWithSpan`, `TokenizerError` | [`sql::Text`] | a shell colours what is typed |

// In the order to read them: each uses only those before it (ARCHITECTURE.md, "Map").
mod error;

mod column;

mod host;

mod io;

mod user_code;

mod codegen;

mod plan;

// What versions of DataFusion do wrong, a file a fault.
mod mends;

mod cpu;

mod exec;

mod query;

pub mod frame;

pub mod sql;

mod session;

pub mod plugin;

// Beside them.
#[cfg(any(feature = "ffi", feature = "polars", feature = "serde"))]
pub mod interop;

#[doc(hidden)]
pub use error::nearest;
pub use error::{Error, ErrorKind, Fault, Operation, Permission, Result};
pub use exec::{OperatorRun, PartsProgress};
pub use frame::{AnyFrame, DataFrame, Expr, GroupBy, LazyFrame, RowBatches, Series};
pub use io::{
    Codec, CsvOptions, CsvWriteOptions, ExistingFiles, FileKind, FolderWriteOptions, ForceQuote,
    IntoPaths, IpcCodec, IpcLayout, IpcOptions, IpcWriteOptions, JsonOptions, JsonWriteOptions,
    ParquetOptions, ParquetVersion, ParquetWriteOptions, Ragged, TextCodec, TextEncoding,
    WholeFile, WriteFormat,
};
pub use session::{
    DeviceChoice, Dim3, Executed, KernelArg, RawKernel, Session, SessionBuilder, Setting,
};
pub use sql::ExplainFormat;
pub use user_code::{AggregateFunction, ScalarFunction};

/// The device that a session has: its memory, counters and times. What can fail has the error of
/// [`device::Error`], of which `?` makes an [`Error`] of the same kind.
pub mod device {
    #[doc(hidden)]
    pub use warpframe_device::{CompileReport, KernelReport, compile_for};
    pub use warpframe_device::{
        Counters, Device, DeviceKind, DeviceProperties, Error, ErrorKind, Event, KernelTime,
        MemoryLimit, MemoryUse, OperatorNote, SimOptions, close_all,
    };
}

pub use warpframe_device::ops::prepare::{PreparedKernels, prepare_kernels};
pub use warpframe_device::timeline;

/// The Arrow implementation whose arrays and batches go in and out.
pub use datafusion::arrow;

/// The README's program is tested with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// So are those of the pages for users of other libraries.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../docs/from-polars.md")]
    struct FromPolars;
    #[doc = include_str!("../docs/from-cudf.md")]
    struct FromCudf;
    #[doc = include_str!("../docs/errors.md")]
    struct Errors;
    #[doc = include_str!("../docs/user-code.md")]
    struct UserCode;
    #[doc = include_str!("../docs/devices.md")]
    struct Devices;
    #[doc = include_str!("../docs/datafusion.md")]
    struct DataFusionPrograms;
}

/// What a program that uses warpframe wants in scope.
///
/// ```
/// use warpframe::prelude::*;
/// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let one = session.sql("SELECT 1 AS one")?.select([col("one") + lit(1)])?.collect()?;
/// assert_eq!(one.num_rows(), 1);
/// # Ok::<(), warpframe::Error>(())
/// ```
pub mod prelude {
    pub use crate::arrow::datatypes::DataType;
    pub use crate::frame;
    pub use crate::frame::expr::*;
    pub use crate::frame::verbs::*;
    pub use crate::frame::{AnyFrame, DataFrame, FrameState, GroupBy, JoinType, LazyFrame, Series};
    pub use crate::io::{
        CsvOptions, IntoPaths, IpcOptions, JsonOptions, ParquetOptions, Ragged, TextEncoding,
    };
    pub use crate::session::{DeviceChoice, Session};
}
