//! Batches to files.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;

use crate::error::{Error, ErrorKind, Result};

/// How CSV files are written.
///
/// ```
/// # use warpframe::prelude::*;
/// # use warpframe::CsvWriteOptions;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// # let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("t.csv");
/// let options = CsvWriteOptions { delimiter: b';', null: "NA".into(), ..CsvWriteOptions::default() };
/// session.sql("SELECT 1 AS one, NULL AS none")?.collect()?.write_csv_with(&path, options)?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "one;none\n1;NA\n");
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvWriteOptions {
    /// Whether the first line has the columns' names.
    pub header: bool,
    /// Between values.
    pub delimiter: u8,
    /// Around values that hold delimiters, quotes or line ends.
    pub quote: u8,
    /// What NULL is written as.
    pub null: String,
}

impl Default for CsvWriteOptions {
    fn default() -> Self {
        CsvWriteOptions { header: true, delimiter: b',', quote: b'"', null: String::new() }
    }
}

/// How Parquet files are written.
///
/// ```
/// use warpframe::{Codec, ParquetWriteOptions};
/// assert_eq!(ParquetWriteOptions::default().compression, Codec::Zstd);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ParquetWriteOptions {
    /// What pages are compressed with.
    pub compression: Codec,
    /// How hard, where the codec has levels; `None` is the codec's own.
    pub level: Option<i32>,
    /// Most rows of a row group; `None` is 1,048,576.
    pub row_group_rows: Option<usize>,
}

/// What pages of Parquet files are compressed with.
///
/// ```
/// assert_eq!(warpframe::Codec::default(), warpframe::Codec::Zstd);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Codec {
    /// Nothing.
    Uncompressed,
    /// Without levels.
    Snappy,
    /// Levels from 0 to 9.
    Gzip,
    /// Levels from 0 to 11.
    Brotli,
    /// Without levels.
    Lz4Raw,
    /// Levels from 1 to 22.
    #[default]
    Zstd,
}

impl ParquetWriteOptions {
    fn compression(&self) -> Result<Compression> {
        let refused = |why: String| ErrorKind::Plan { message: format!("Parquet: {why}"), location: None }.into();
        let level = |level: i32| u32::try_from(level).map_err(|_| refused(format!("there is no level {level}")));
        let of_codec = |error: ParquetError| -> Error { refused(error.to_string()) };
        Ok(match (self.compression, self.level) {
            (Codec::Uncompressed, None) => Compression::UNCOMPRESSED,
            (Codec::Snappy, None) => Compression::SNAPPY,
            (Codec::Lz4Raw, None) => Compression::LZ4_RAW,
            (Codec::Gzip, None) => Compression::GZIP(GzipLevel::default()),
            (Codec::Brotli, None) => Compression::BROTLI(BrotliLevel::default()),
            (Codec::Zstd, None) => Compression::ZSTD(ZstdLevel::default()),
            (Codec::Gzip, Some(of)) => Compression::GZIP(GzipLevel::try_new(level(of)?).map_err(of_codec)?),
            (Codec::Brotli, Some(of)) => Compression::BROTLI(BrotliLevel::try_new(level(of)?).map_err(of_codec)?),
            (Codec::Zstd, Some(of)) => Compression::ZSTD(ZstdLevel::try_new(of).map_err(of_codec)?),
            (codec, Some(_)) => return Err(refused(format!("the codec {codec:?} has no levels"))),
        })
    }
}

/// Writes the rows, behind a header line unless the options leave it out.
pub(crate) fn write_csv(
    path: &Path,
    schema: &SchemaRef,
    batches: &[RecordBatch],
    options: &CsvWriteOptions,
) -> Result<()> {
    replace(path, |file| {
        let writer = WriterBuilder::new().with_header(options.header).with_delimiter(options.delimiter);
        let writer = writer.with_quote(options.quote).with_null(options.null.clone());
        let mut writer = writer.build(&mut *file);
        // The header comes with the first batch, which may have no rows.
        writer.write(&RecordBatch::new_empty(schema.clone()))?;
        for batch in batches {
            writer.write(batch)?;
        }
        Ok(())
    })
}

/// Writes one Parquet file.
pub(crate) fn write_parquet(
    path: &Path,
    schema: &SchemaRef,
    batches: &[RecordBatch],
    options: &ParquetWriteOptions,
) -> Result<()> {
    let properties = WriterProperties::builder().set_compression(options.compression()?);
    let properties = match options.row_group_rows {
        Some(rows) => properties.set_max_row_group_row_count(Some(rows.max(1))),
        None => properties,
    };
    let properties = properties.build();
    replace(path, |file| {
        let failed =
            |error: ParquetError| -> Error { ErrorKind::File { path: path.into(), message: error.to_string() }.into() };
        let mut writer = ArrowWriter::try_new(&mut *file, schema.clone(), Some(properties)).map_err(failed)?;
        for batch in batches {
            writer.write(batch).map_err(failed)?;
        }
        writer.close().map_err(failed)?;
        Ok(())
    })
}

/// Writes beside the file and renames, so that a failure leaves what was there before.
fn replace(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> Result<()>) -> Result<()> {
    let io = |error| Error::io(path, error);
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        // A pipe or a terminal.
        let mut file = BufWriter::new(File::create(path).map_err(io)?);
        write(&mut file)?;
        return file.flush().map_err(io);
    }
    let mut name = path.file_name().ok_or_else(|| io(std::io::ErrorKind::InvalidInput.into()))?.to_os_string();
    name.push(format!(".{}.partial", std::process::id()));
    let partial = path.with_file_name(name);
    let written = File::create(&partial).map_err(io).and_then(|file| {
        let mut file = BufWriter::new(file);
        write(&mut file)?;
        file.flush().map_err(io)
    });
    match written {
        Ok(()) => std::fs::rename(&partial, path).map_err(io),
        Err(error) => {
            let _ = std::fs::remove_file(&partial);
            Err(error)
        }
    }
}
