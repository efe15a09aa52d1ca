//! How `COPY … TO` writes, by options that are named as DuckDB's and the parquet crate's are.

use super::refused;
use crate::error::{Error, Result, nearest};
use crate::io::{
    Codec, CsvWriteOptions, ExistingFiles, FolderWriteOptions, ForceQuote, GROUP_ROWS, IpcCodec,
    IpcLayout, IpcWriteOptions, JsonWriteOptions, ParquetVersion, ParquetWriteOptions, TextCodec,
    WriteFormat,
};
use crate::sql::{CopyTo, CopyValue, Name};

/// What a statement writes.
pub(super) struct CopyForm {
    pub(super) format: WriteFormat,
    pub(super) folder: FolderWriteOptions,
    /// Whether files are written into a folder.
    pub(super) is_folder: bool,
}

type CopyOption = (Name, CopyValue);

impl CopyForm {
    /// How files of a format are written, of a format by name; `None` where there is none such.
    ///
    /// # Errors
    /// Options that are none of the format's, or that do not go together, at their places.
    pub(super) fn of(format: &str, copy: &CopyTo<'_>) -> Result<Option<CopyForm>> {
        let is_of_folder = |(name, _): &CopyOption| FOLDER.contains(&known(name));
        let (of_folder, of_format): (Vec<CopyOption>, Vec<CopyOption>) =
            copy.options.iter().cloned().partition(is_of_folder);
        let Some(format) = write_format(format, &of_format)? else { return Ok(None) };
        let mut folder = FolderWriteOptions::default();
        let mut existing: Option<&Name> = None;
        for (name, value) in &of_folder {
            let kind = match known(name) {
                "overwrite" => ExistingFiles::Overwrite,
                "overwrite_or_ignore" => ExistingFiles::OverwriteOrIgnore,
                "append" => ExistingFiles::Append,
                "filename_pattern" => {
                    folder.filename_pattern = Some(text(name, value)?.into());
                    continue;
                }
                "file_extension" => {
                    folder.file_extension = Some(text(name, value)?.into());
                    continue;
                }
                "write_partition_columns" => {
                    folder.write_keys = flag(name, value)?;
                    continue;
                }
                _ => {
                    folder.rows_per_file = flag(name, value)?.then_some(GROUP_ROWS);
                    continue;
                }
            };
            if flag(name, value)? {
                if let Some(before) = existing.replace(name) {
                    let message =
                        format!("COPY: {} and {} do not go together", before.text, name.text);
                    return Err(refused(message, name.place));
                }
                folder.existing = kind;
            }
        }
        let is_folder = !copy.partition_by.is_empty() || folder.rows_per_file.is_some();
        if let (Some(column), true) = (copy.partition_by.first(), folder.rows_per_file.is_some()) {
            let message = "COPY: PER_THREAD_OUTPUT and PARTITION_BY do not go together";
            return Err(refused(message.into(), column.place));
        }
        // A file is overwritten in any case.
        let means_folder = |(name, _): &&CopyOption| !known(name).starts_with("overwrite");
        if let (false, Some((name, _))) = (is_folder, of_folder.iter().find(means_folder)) {
            let message = format!(
                "COPY: {} is of folders, which PARTITION_BY and PER_THREAD_OUTPUT write",
                name.text
            );
            return Err(refused(message, name.place));
        }
        Ok(Some(CopyForm { format, folder, is_folder }))
    }
}

/// The options of folders, whatever their files are.
const FOLDER: [&str; 7] = [
    "overwrite",
    "overwrite_or_ignore",
    "append",
    "filename_pattern",
    "file_extension",
    "write_partition_columns",
    "per_thread_output",
];

fn write_format(format: &str, options: &[CopyOption]) -> Result<Option<WriteFormat>> {
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

fn csv(mut csv: CsvWriteOptions, options: &[CopyOption]) -> Result<WriteFormat> {
    const KNOWN: [&str; 11] = [
        "header",
        "delimiter",
        "quote",
        "escape",
        "force_quote",
        "null",
        "dateformat",
        "timestampformat",
        "compression",
        "prefix",
        "suffix",
    ];
    for (name, value) in options {
        match known(name) {
            "header" | "has_header" => csv.header = flag(name, value)?,
            "delimiter" | "delim" | "sep" => csv.delimiter = byte(name, value)?,
            "quote" if text(name, value)?.is_empty() => csv.quote = 0,
            "quote" => csv.quote = byte(name, value)?,
            "escape" => csv.escape = Some(byte(name, value)?),
            "force_quote" => {
                csv.force_quote = match value {
                    CopyValue::All => ForceQuote::All,
                    CopyValue::List(columns) => ForceQuote::Columns(columns.clone()),
                    _ => return Err(wrong(name, value, "* or columns")),
                }
            }
            "null" | "nullstr" | "null_value" => csv.null = text(name, value)?.into(),
            "dateformat" | "date_format" => csv.date_format = Some(text(name, value)?.into()),
            "timestampformat" | "timestamp_format" => {
                csv.timestamp_format = Some(text(name, value)?.into());
            }
            "compression" => csv.compression = text_codec(name, value)?,
            "prefix" => csv.prefix = text(name, value)?.into(),
            "suffix" => csv.suffix = text(name, value)?.into(),
            _ => return Err(unknown(name, "CSV", &KNOWN)),
        }
    }
    Ok(WriteFormat::Csv(csv))
}

fn parquet(options: &[CopyOption]) -> Result<WriteFormat> {
    const KNOWN: [&str; 5] =
        ["compression", "compression_level", "row_group_size", "parquet_version", "kv_metadata"];
    let mut parquet = ParquetWriteOptions::default();
    for (name, value) in options {
        match known(name) {
            "compression" | "codec" => parquet.compression = one_of(name, value, &CODECS)?,
            "compression_level" => {
                let level = text(name, value)?.parse().map_err(|_| wrong(name, value, "a number"));
                parquet.level = Some(level?);
            }
            "row_group_size" => {
                let rows = text(name, value)?.parse().ok().filter(|rows: &usize| *rows > 0);
                parquet.row_group_rows =
                    Some(rows.ok_or_else(|| wrong(name, value, "a number of rows"))?);
            }
            "parquet_version" => {
                let versions = [("V1", ParquetVersion::V1), ("V2", ParquetVersion::V2)];
                parquet.version = one_of(name, value, &versions)?;
            }
            "kv_metadata" => match value {
                CopyValue::Pairs(notes) => parquet.notes.clone_from(notes),
                _ => return Err(wrong(name, value, "keys and texts, as in {key: 'text'}")),
            },
            _ => return Err(unknown(name, "Parquet", &KNOWN)),
        }
    }
    Ok(WriteFormat::Parquet(parquet))
}

fn json(options: &[CopyOption]) -> Result<WriteFormat> {
    const KNOWN: [&str; 4] = ["array", "dateformat", "timestampformat", "compression"];
    let mut json = JsonWriteOptions::default();
    for (name, value) in options {
        match known(name) {
            "array" => json.array = flag(name, value)?,
            "dateformat" | "date_format" => json.date_format = Some(text(name, value)?.into()),
            "timestampformat" | "timestamp_format" => {
                json.timestamp_format = Some(text(name, value)?.into());
            }
            "compression" => json.compression = text_codec(name, value)?,
            _ => return Err(unknown(name, "JSON", &KNOWN)),
        }
    }
    Ok(WriteFormat::Json(json))
}

fn ipc(mut ipc: IpcWriteOptions, options: &[CopyOption]) -> Result<WriteFormat> {
    for (name, value) in options {
        match known(name) {
            "compression" | "codec" => {
                let codecs = [
                    ("uncompressed", None),
                    ("none", None),
                    ("lz4", Some(IpcCodec::Lz4)),
                    ("lz4_frame", Some(IpcCodec::Lz4)),
                    ("zstd", Some(IpcCodec::Zstd)),
                ];
                ipc.compression = one_of(name, value, &codecs)?;
            }
            _ => return Err(unknown(name, "Arrow", &["compression"])),
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

fn text_codec(name: &Name, value: &CopyValue) -> Result<TextCodec> {
    let codecs = [
        ("auto", TextCodec::BySuffix),
        ("gzip", TextCodec::Gzip),
        ("zstd", TextCodec::Zstd),
        ("none", TextCodec::Uncompressed),
        ("uncompressed", TextCodec::Uncompressed),
    ];
    one_of(name, value, &codecs)
}

/// The option's name, as DataFusion has it too.
pub(super) fn known(name: &Name) -> &str {
    name.text.strip_prefix("format.").unwrap_or(&name.text)
}

fn unknown(name: &Name, format: &str, known: &[&str]) -> Error {
    let names: Vec<String> = known.iter().chain(&FOLDER).map(|name| name.to_string()).collect();
    let message = match nearest(&name.text, &names) {
        Some(meant) => {
            format!("COPY: {format} has no option named {:?}; did you mean {meant}?", name.text)
        }
        None => format!(
            "COPY: {format} has no option named {:?}; known: {}",
            name.text,
            names.join(", ")
        ),
    };
    refused(message, name.place)
}

fn wrong(name: &Name, value: &CopyValue, takes: &str) -> Error {
    let value = match value {
        CopyValue::Text(text) => format!("{text:?}"),
        CopyValue::List(texts) => format!("({})", texts.join(", ")),
        CopyValue::Pairs(_) => "{…}".into(),
        CopyValue::All => "*".into(),
    };
    refused(format!("COPY: the option {} takes {takes}, not {value}", name.text), name.place)
}

fn text<'v>(name: &Name, value: &'v CopyValue) -> Result<&'v str> {
    match value {
        CopyValue::Text(text) => Ok(text),
        _ => Err(wrong(name, value, "one value")),
    }
}

fn one_of<T: Copy>(name: &Name, value: &CopyValue, choices: &[(&str, T)]) -> Result<T> {
    let given = text(name, value)?;
    let found = choices.iter().find(|(choice, _)| choice.eq_ignore_ascii_case(given));
    found.map(|(_, meant)| *meant).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        wrong(name, value, &format!("one of {}", names.join(", ")))
    })
}

fn flag(name: &Name, value: &CopyValue) -> Result<bool> {
    match text(name, value)?.to_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(wrong(name, value, "true or false")),
    }
}

fn byte(name: &Name, value: &CopyValue) -> Result<u8> {
    match text(name, value)?.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0) => Ok(*byte),
        _ => Err(wrong(name, value, "one ASCII character")),
    }
}
