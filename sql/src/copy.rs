//! `COPY … TO`: how files are written.

use warpframe::{Codec, CsvWriteOptions, LazyFrame, ParquetWriteOptions};

use crate::report::Failure;
use crate::statement::Name;

/// Writes one format.
#[derive(Debug)]
pub enum Writer {
    /// CSV.
    Csv(CsvWriteOptions),
    /// Parquet.
    Parquet(ParquetWriteOptions),
}

impl Writer {
    /// Of a format by name; `None` where there is none such.
    ///
    /// # Errors
    /// Options that are none of the format's, at their places.
    pub fn of(format: &str, options: &[(Name, String)]) -> Result<Option<Writer>, Failure> {
        match format {
            "csv" => csv(CsvWriteOptions::default(), options).map(Some),
            "tsv" | "tab" => csv(CsvWriteOptions { delimiter: b'\t', ..Default::default() }, options).map(Some),
            "parquet" | "parq" | "pq" => parquet(options).map(Some),
            _ => Ok(None),
        }
    }

    /// Runs a query and writes its rows: how many.
    ///
    /// # Errors
    /// Those of the query; the file cannot be written.
    pub fn write(&self, frame: &LazyFrame, path: &str) -> warpframe::Result<u64> {
        match self {
            Writer::Csv(options) => frame.write_csv_with(path, options.clone()),
            Writer::Parquet(options) => frame.write_parquet_with(path, *options),
        }
    }
}

fn csv(mut csv: CsvWriteOptions, options: &[(Name, String)]) -> Result<Writer, Failure> {
    for (name, value) in options {
        match known(name) {
            "header" | "has_header" => csv.header = flag(name, value)?,
            "delimiter" | "delim" | "sep" => csv.delimiter = byte(name, value)?,
            "quote" => csv.quote = byte(name, value)?,
            "null" | "nullstr" | "null_value" => csv.null = value.clone(),
            _ => return Err(unknown(name, "CSV", "header, delimiter, quote, null")),
        }
    }
    Ok(Writer::Csv(csv))
}

fn parquet(options: &[(Name, String)]) -> Result<Writer, Failure> {
    let mut parquet = ParquetWriteOptions::default();
    for (name, value) in options {
        match known(name) {
            "compression" | "codec" => {
                let codec = |codec: &&(&str, Codec)| codec.0.eq_ignore_ascii_case(value);
                let Some((_, codec)) = CODECS.iter().find(codec) else {
                    let names: Vec<&str> = CODECS.iter().map(|(name, _)| *name).collect();
                    return Err(wrong(name, value, &format!("one of {}", names.join(", "))));
                };
                parquet.compression = *codec;
            }
            "compression_level" => {
                parquet.level = Some(value.parse().map_err(|_| wrong(name, value, "a number"))?);
            }
            "row_group_size" => {
                let rows = value.parse().ok().filter(|rows: &usize| *rows > 0);
                parquet.row_group_rows = Some(rows.ok_or_else(|| wrong(name, value, "a number of rows"))?);
            }
            _ => return Err(unknown(name, "Parquet", "compression, compression_level, row_group_size")),
        }
    }
    Ok(Writer::Parquet(parquet))
}

const CODECS: [(&str, Codec); 7] = [
    ("zstd", Codec::Zstd),
    ("snappy", Codec::Snappy),
    ("gzip", Codec::Gzip),
    ("brotli", Codec::Brotli),
    ("lz4", Codec::Lz4Raw),
    ("lz4_raw", Codec::Lz4Raw),
    ("uncompressed", Codec::Uncompressed),
];

/// The option's name, as DataFusion has it too.
fn known(name: &Name) -> &str {
    name.text.strip_prefix("format.").unwrap_or(&name.text)
}

fn unknown(name: &Name, format: &str, known: &str) -> Failure {
    let message = format!("COPY: {format} has no option named {:?}; known: {known}", name.text);
    Failure::sql(message, Some(name.place))
}

fn wrong(name: &Name, value: &str, takes: &str) -> Failure {
    Failure::sql(format!("COPY: the option {} takes {takes}, not {value:?}", name.text), Some(name.place))
}

fn flag(name: &Name, value: &str) -> Result<bool, Failure> {
    match value.to_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(wrong(name, value, "true or false")),
    }
}

fn byte(name: &Name, value: &str) -> Result<u8, Failure> {
    match value.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0) => Ok(*byte),
        _ => Err(wrong(name, value, "one ASCII character")),
    }
}
