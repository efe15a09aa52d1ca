//! `COPY table TO 'file'` and `COPY table FROM 'file'`.

use std::path::Path;

use crate::error::{Error, ErrorKind, Result, nearest};
use crate::io::{
    Codec, CsvWriteOptions, FileKind, IpcCodec, IpcLayout, IpcWriteOptions, JsonWriteOptions,
    ParquetWriteOptions, WriteFormat,
};
use crate::session::Session;
use crate::session::insert::counted;
use crate::sql::{CopyFrom, CopyTo, Name};

impl Session {
    /// Writes a file; what was done.
    pub(super) fn copy(&self, copy: &CopyTo<'_>) -> Result<String> {
        self.files.allow("COPY").map_err(|error| error.at(Some(copy.file.place)))?;
        let file = &copy.file;
        let extension = Path::new(&file.text).extension().and_then(|of| of.to_str());
        let extension = extension.unwrap_or_default().to_lowercase();
        let (format, place) = match &copy.format {
            Some(name) => (name.text.as_str(), name.place),
            None => (extension.as_str(), file.place),
        };
        let Some(format) = write_format(format, &copy.options)? else {
            let message = "COPY writes CSV, Parquet, JSON and Arrow: end the file's name in .csv, .tsv, .parquet, \
                           .json, .ndjson, .arrow or .arrows, or name a FORMAT";
            let known =
                ["csv", "tsv", "parquet", "json", "ndjson", "arrow", "arrows"].map(String::from);
            let help = nearest(format, &known)
                .map_or(String::new(), |meant| format!("; did you mean {meant}?"));
            return Err(refused(format!("{message}{help}"), place));
        };
        let frame = self.sql_text(&copy.rows)?;
        if copy.partition_by.is_empty() {
            let rows = frame.write(&file.text, &format)?;
            return Ok(format!("{} in {}", counted(rows as usize, "row"), file.text));
        }
        let by: Vec<&str> = copy.partition_by.iter().map(|column| column.text.as_str()).collect();
        let frame = frame.collect()?;
        frame.write_partitioned(&file.text, &by, &format).map_err(|error| {
            let place = match error.kind() {
                ErrorKind::ColumnNotFound { name, .. } => {
                    let column = copy.partition_by.iter().find(|column| column.text == *name);
                    Some(column.unwrap_or(file).place)
                }
                _ => None,
            };
            error.at(place)
        })?;
        Ok(format!("{} in {}", counted(frame.num_rows(), "row"), file.text))
    }

    /// Puts a file's rows into a table; what was done.
    pub(super) fn copy_from(&self, copied: &CopyFrom) -> Result<String> {
        let CopyFrom { table, file, format, options } = copied;
        self.files.allow("COPY").map_err(|error| error.at(Some(file.place)))?;
        let kind = match format {
            Some(name) => FileKind::of(format!("named.{}", name.text)),
            None => FileKind::of(&file.text),
        };
        let of_file = |error: Error| match error.kind() {
            ErrorKind::TableNotFound { .. } => error.at(Some(table.place)),
            _ => error.at(Some(file.place)),
        };
        let rows = match (kind, options.first()) {
            (Some(FileKind::Csv), _) => {
                let given = options.iter().map(|(name, value)| (known(name), value.as_str()));
                let csv = self.csv_options(given).map_err(of_file)?;
                self.append_csv_with(&table.text, &file.text, csv).map_err(of_file)?
            }
            (Some(_), Some((option, _))) => {
                let message = format!("COPY: such files have no option named {:?}", option.text);
                return Err(refused(message, option.place));
            }
            (Some(kind), None) => {
                self.append_files(&table.text, &file.text, kind).map_err(of_file)?
            }
            (None, _) => {
                let message = "COPY reads CSV, Parquet, JSON and Arrow: end the file's name as theirs end, or name a \
                               FORMAT";
                return Err(refused(message.into(), format.as_ref().unwrap_or(file).place));
            }
        };
        Ok(format!("{} into {}", counted(rows, "row"), table.text))
    }
}

fn refused(message: String, place: (u64, u64)) -> Error {
    ErrorKind::Plan { message, location: Some(place) }.into()
}

/// How files of a format are written, of a format by name; `None` where there is none such.
///
/// # Errors
/// Options that are none of the format's, at their places.
fn write_format(format: &str, options: &[(Name, String)]) -> Result<Option<WriteFormat>> {
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

fn csv(mut csv: CsvWriteOptions, options: &[(Name, String)]) -> Result<WriteFormat> {
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

fn parquet(options: &[(Name, String)]) -> Result<WriteFormat> {
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

fn json(options: &[(Name, String)]) -> Result<WriteFormat> {
    let mut json = JsonWriteOptions::default();
    for (name, value) in options {
        match known(name) {
            "array" => json.array = flag(name, value)?,
            _ => return Err(unknown(name, "JSON", "array")),
        }
    }
    Ok(WriteFormat::Json(json))
}

fn ipc(mut ipc: IpcWriteOptions, options: &[(Name, String)]) -> Result<WriteFormat> {
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
fn known(name: &Name) -> &str {
    name.text.strip_prefix("format.").unwrap_or(&name.text)
}

fn unknown(name: &Name, format: &str, known: &str) -> Error {
    let names: Vec<String> = known.split(", ").map(String::from).collect();
    let message = match nearest(&name.text, &names) {
        Some(meant) => {
            format!("COPY: {format} has no option named {:?}; did you mean {meant}?", name.text)
        }
        None => format!("COPY: {format} has no option named {:?}; known: {known}", name.text),
    };
    refused(message, name.place)
}

fn wrong(name: &Name, value: &str, takes: &str) -> Error {
    refused(format!("COPY: the option {} takes {takes}, not {value:?}", name.text), name.place)
}

fn flag(name: &Name, value: &str) -> Result<bool> {
    match value.to_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(wrong(name, value, "true or false")),
    }
}

fn byte(name: &Name, value: &str) -> Result<u8> {
    match value.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0) => Ok(*byte),
        _ => Err(wrong(name, value, "one ASCII character")),
    }
}
