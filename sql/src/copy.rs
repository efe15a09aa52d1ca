//! `COPY … TO`: how files are written.

use warpframe::{
    Codec, CsvWriteOptions, IpcCodec, IpcLayout, IpcWriteOptions, JsonWriteOptions,
    ParquetWriteOptions, WriteFormat,
};

use crate::report::{Failure, nearest};
use crate::statement::Name;

/// How files of a format are written, of a format by name; `None` where there is none such.
///
/// # Errors
/// Options that are none of the format's, at their places.
pub fn write_format(
    format: &str,
    options: &[(Name, String)],
) -> Result<Option<WriteFormat>, Failure> {
    let stream = IpcWriteOptions { layout: IpcLayout::Stream, ..Default::default() };
    match format {
        "csv" => csv(CsvWriteOptions::default(), options).map(Some),
        "tsv" | "tab" => {
            csv(CsvWriteOptions { delimiter: b'\t', ..Default::default() }, options).map(Some)
        }
        "parquet" | "parq" | "pq" => parquet(options).map(Some),
        "json" | "ndjson" | "jsonl" => json(options).map(Some),
        "arrow" | "feather" | "ipc" => ipc(IpcWriteOptions::default(), options).map(Some),
        "arrows" => ipc(stream, options).map(Some),
        _ => Ok(None),
    }
}

fn csv(mut csv: CsvWriteOptions, options: &[(Name, String)]) -> Result<WriteFormat, Failure> {
    for (name, value) in options {
        match known(name) {
            "header" | "has_header" => csv.header = flag(name, value)?,
            "delimiter" | "delim" | "sep" => csv.delimiter = byte(name, value)?,
            "quote" => csv.quote = byte(name, value)?,
            "null" | "nullstr" | "null_value" => csv.null = value.clone(),
            _ => return Err(unknown(name, "CSV", "header, delimiter, quote, null")),
        }
    }
    Ok(WriteFormat::Csv(csv))
}

fn parquet(options: &[(Name, String)]) -> Result<WriteFormat, Failure> {
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
                parquet.row_group_rows =
                    Some(rows.ok_or_else(|| wrong(name, value, "a number of rows"))?);
            }
            _ => {
                return Err(unknown(
                    name,
                    "Parquet",
                    "compression, compression_level, row_group_size",
                ));
            }
        }
    }
    Ok(WriteFormat::Parquet(parquet))
}

fn json(options: &[(Name, String)]) -> Result<WriteFormat, Failure> {
    let mut json = JsonWriteOptions::default();
    for (name, value) in options {
        match known(name) {
            "array" => json.array = flag(name, value)?,
            _ => return Err(unknown(name, "JSON", "array")),
        }
    }
    Ok(WriteFormat::Json(json))
}

fn ipc(mut ipc: IpcWriteOptions, options: &[(Name, String)]) -> Result<WriteFormat, Failure> {
    for (name, value) in options {
        match known(name) {
            "compression" | "codec" => {
                ipc.compression = match value.to_lowercase().as_str() {
                    "uncompressed" | "none" => None,
                    "lz4" | "lz4_frame" => Some(IpcCodec::Lz4),
                    "zstd" => Some(IpcCodec::Zstd),
                    _ => return Err(wrong(name, value, "one of uncompressed, lz4, zstd")),
                };
            }
            _ => return Err(unknown(name, "Arrow", "compression")),
        }
    }
    Ok(WriteFormat::Ipc(ipc))
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
pub fn known(name: &Name) -> &str {
    name.text.strip_prefix("format.").unwrap_or(&name.text)
}

fn unknown(name: &Name, format: &str, known: &str) -> Failure {
    let names: Vec<String> = known.split(", ").map(String::from).collect();
    let message = match nearest(&name.text, &names) {
        Some(meant) => {
            format!("COPY: {format} has no option named {:?}; did you mean {meant}?", name.text)
        }
        None => format!("COPY: {format} has no option named {:?}; known: {known}", name.text),
    };
    Failure::sql(message, Some(name.place))
}

fn wrong(name: &Name, value: &str, takes: &str) -> Failure {
    Failure::sql(
        format!("COPY: the option {} takes {takes}, not {value:?}", name.text),
        Some(name.place),
    )
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
