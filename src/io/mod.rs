//! Where rows come from and go to: files, batches, providers ([`Source`]), and tables over them as
//! DataFusion's planner sees them ([`SourceTable`]).

mod about;
mod arrow_zones;
mod constant;
mod csv;
mod device_table;
mod feeding;
mod files;
mod footer;
mod guard;
mod host_files;
mod ipc;
mod json;
mod kept_table;
mod logged;
mod lone_files;
mod memory;
mod notes;
mod options;
mod pages;
mod parquet;
mod path_columns;
mod reading;
mod resident;
mod same_column;
mod scanned;
mod selection;
mod sequence;
mod some_rows;
mod source;
mod spool;
mod stream;
mod table;
mod table_log;
mod thrift;
mod unite;
mod version;
mod write;

pub(crate) use about::AboutFiles;
pub use csv::{CsvOptions, Ragged, TextEncoding};
pub(crate) use device_table::DeviceTable;
pub(crate) use files::{Files, Format};
pub(crate) use guard::{guard_rule, of_panic, of_their_types};
pub(crate) use ipc::plain_type;
pub(crate) use kept_table::{DOWNLOAD_ROWS, KeptTable, RowsHere, WeakKeptTable};
pub(crate) use memory::Memory;
pub use memory::bytes_of;
pub(crate) use notes::FileNotes;
pub use options::{FileKind, IpcOptions, JsonOptions, ParquetOptions};
pub(crate) use reading::{Reading, diagnose, has_present_types, scans_of_sampled_types, widen};
pub(crate) use scanned::{
    ScannedFormat, ScannedPart, SomeColumns, scanned_parts, some_chunks, source_of_parts,
};
pub use selection::IntoPaths;
pub(crate) use selection::refuse_address;
pub(crate) use sequence::Sequence;
pub(crate) use some_rows::{PartKeys, SomeRows};
pub(crate) use source::{BYTES_TO_READ, Chunk, ColumnRequest, Read, Source, To, even_chunks, rows};
pub(crate) use stream::{batches_in_order, partitions_in_order, upload};
pub(crate) use table::{Extent, OfSession, Snapshot, SourceTable};
pub(crate) use unite::wider;
pub use write::{
    Codec, CsvWriteOptions, ExistingFiles, FolderWriteOptions, ForceQuote, IpcCodec, IpcLayout,
    IpcWriteOptions, JsonWriteOptions, ParquetVersion, ParquetWriteOptions, TextCodec, WholeFile,
    WriteFormat,
};
pub(crate) use write::{GROUP_ROWS, json_text, write, write_into, write_partitioned};
