//! Files in and out, and tables as DataFusion's planner sees them.

mod files;
mod footer;
mod guard;
mod pages;
mod parquet;
mod table;
mod thrift;
mod version;
mod write;

pub(crate) use files::{Files, Format};
pub(crate) use guard::{guard_rule, of_panic, of_their_types};
pub(crate) use table::{DOWNLOAD_ROWS, DeviceTable, Read, Reading, Snapshot, SourceTable, diagnose, is_of_session};
pub(crate) use write::{write_csv, write_parquet};
