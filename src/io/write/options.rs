//! How files are written.

use datafusion::parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::metadata::KeyValue;
use datafusion::parquet::file::properties::{WriterProperties, WriterVersion};

use super::{IpcWriteOptions, JsonWriteOptions, TextCodec};
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
    /// Around values that hold delimiters, quotes or line ends; 0 writes all values as they are,
    /// whether a reader can tell them apart or not.
    pub quote: u8,
    /// Before a quote within quotes, and before itself; the quote unless something else is said.
    pub escape: Option<u8>,
    /// Columns whose values are all quoted, except NULL.
    pub force_quote: ForceQuote,
    /// What NULL is written as.
    pub null: String,
    /// How dates are written, as `strftime` takes it.
    pub date_format: Option<String>,
    /// How timestamps are written, as `strftime` takes it.
    pub timestamp_format: Option<String>,
    /// Before the whole file.
    pub prefix: String,
    /// Behind the whole file, in the place of the last line's end.
    pub suffix: String,
    /// What the file is compressed with.
    pub compression: TextCodec,
}

impl Default for CsvWriteOptions {
    fn default() -> Self {
        CsvWriteOptions {
            header: true,
            delimiter: b',',
            quote: b'"',
            escape: None,
            force_quote: ForceQuote::Needed,
            null: String::new(),
            date_format: None,
            timestamp_format: None,
            prefix: String::new(),
            suffix: String::new(),
            compression: TextCodec::BySuffix,
        }
    }
}

/// Which columns of CSV files have all of their values in quotes. The names above quoted columns
/// are quoted, too.
///
/// ```
/// assert_eq!(warpframe::ForceQuote::default(), warpframe::ForceQuote::Needed);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ForceQuote {
    /// None: values are quoted that would be read as others without.
    #[default]
    Needed,
    /// All.
    All,
    /// These, by name.
    Columns(Vec<String>),
}

/// How Parquet files are written.
///
/// ```
/// use warpframe::{Codec, ParquetWriteOptions};
/// assert_eq!(ParquetWriteOptions::default().compression, Codec::Zstd);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParquetWriteOptions {
    /// What pages are compressed with.
    pub compression: Codec,
    /// How hard, where the codec has levels; `None` is the codec's own.
    pub level: Option<i32>,
    /// Most rows of a row group; `None` is 1,048,576.
    pub row_group_rows: Option<usize>,
    /// The version of pages and encodings.
    pub version: ParquetVersion,
    /// Notes in the file, by their keys.
    pub notes: Vec<(String, String)>,
}

/// The version of a Parquet file's pages and encodings.
///
/// ```
/// assert_eq!(warpframe::ParquetVersion::default(), warpframe::ParquetVersion::V1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ParquetVersion {
    /// Data pages of version 1, of values that are plain or of a dictionary.
    #[default]
    V1,
    /// Data pages of version 2, of which columns without a dictionary are differences.
    V2,
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
    /// # Errors
    /// Levels that the codec does not have.
    pub(super) fn properties(&self) -> Result<WriterProperties> {
        let version = match self.version {
            ParquetVersion::V1 => WriterVersion::PARQUET_1_0,
            ParquetVersion::V2 => WriterVersion::PARQUET_2_0,
        };
        let notes = self.notes.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
        let notes: Vec<KeyValue> = notes.collect();
        let properties = WriterProperties::builder()
            .set_compression(self.compression()?)
            .set_writer_version(version)
            .set_key_value_metadata((!notes.is_empty()).then_some(notes));
        Ok(properties.build())
    }

    fn compression(&self) -> Result<Compression> {
        let refused = |why: String| {
            ErrorKind::Plan { message: format!("Parquet: {why}"), location: None }.into()
        };
        let level = |level: i32| {
            u32::try_from(level)
                .map_err(|_| refused(format!("compression_level {level}: there is no such level")))
        };
        let of_codec = |error: ParquetError| -> Error {
            let text = error.to_string();
            let range = text
                .strip_prefix("Parquet error: ")
                .unwrap_or(&text)
                .trim_end_matches('.')
                .to_string();
            refused(format!("compression_level {}: {range}", self.level.unwrap_or_default()))
        };
        Ok(match (self.compression, self.level) {
            (Codec::Uncompressed, None) => Compression::UNCOMPRESSED,
            (Codec::Snappy, None) => Compression::SNAPPY,
            (Codec::Lz4Raw, None) => Compression::LZ4_RAW,
            (Codec::Gzip, None) => Compression::GZIP(GzipLevel::default()),
            (Codec::Brotli, None) => Compression::BROTLI(BrotliLevel::default()),
            (Codec::Zstd, None) => Compression::ZSTD(ZstdLevel::default()),
            (Codec::Gzip, Some(of)) => {
                Compression::GZIP(GzipLevel::try_new(level(of)?).map_err(of_codec)?)
            }
            (Codec::Brotli, Some(of)) => {
                Compression::BROTLI(BrotliLevel::try_new(level(of)?).map_err(of_codec)?)
            }
            (Codec::Zstd, Some(of)) => Compression::ZSTD(ZstdLevel::try_new(of).map_err(of_codec)?),
            (codec, Some(_)) => return Err(refused(format!("the codec {codec:?} has no levels"))),
        })
    }
}

/// What rows are written as.
///
/// ```
/// # use warpframe::prelude::*;
/// # use warpframe::{JsonWriteOptions, WriteFormat};
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// # let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("years");
/// let rows = session.sql("SELECT * FROM (VALUES (2024, 'a'), (2025, 'b')) t(year, s)")?.collect()?;
/// rows.write_partitioned(&path, &["year"], &WriteFormat::Json(JsonWriteOptions::default()))?;
/// assert_eq!(std::fs::read_to_string(path.join("year=2025/data.ndjson")).unwrap(), "{\"s\":\"b\"}\n");
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteFormat {
    /// CSV.
    Csv(CsvWriteOptions),
    /// Parquet.
    Parquet(ParquetWriteOptions),
    /// JSON.
    Json(JsonWriteOptions),
    /// Arrow IPC.
    Ipc(IpcWriteOptions),
}
