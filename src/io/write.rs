//! Batches to files.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;

use crate::error::{Error, ErrorKind, Result};

/// Writes a header line and the rows.
pub(crate) fn write_csv(path: &Path, schema: &SchemaRef, batches: &[RecordBatch]) -> Result<()> {
    replace(path, |file| {
        let mut writer = WriterBuilder::new().with_header(true).build(&mut *file);
        // The header comes with the first batch, which may have no rows.
        writer.write(&RecordBatch::new_empty(schema.clone()))?;
        for batch in batches {
            writer.write(batch)?;
        }
        Ok(())
    })
}

/// Writes one zstd-compressed Parquet file.
pub(crate) fn write_parquet(path: &Path, schema: &SchemaRef, batches: &[RecordBatch]) -> Result<()> {
    replace(path, |file| {
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
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
