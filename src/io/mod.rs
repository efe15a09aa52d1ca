//! Files in and out, and tables as DataFusion's planner sees them.

mod files;
mod table;
mod write;

pub(crate) use files::{Files, Format, expand};
pub(crate) use table::{DOWNLOAD_ROWS, DeviceTable, SourceTable, diagnose};
pub(crate) use write::{write_csv, write_parquet};
