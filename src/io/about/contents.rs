//! Whole files as values.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use datafusion::arrow::array::{
    ArrayRef, BinaryViewBuilder, RecordBatch, StringViewBuilder, TimestampMicrosecondArray,
};

use super::{batch, integers, of_file, texts};
use crate::error::{Error, Result};
use warpframe_device::interrupt;

pub(super) fn texts_of(files: &[PathBuf]) -> Result<RecordBatch> {
    let mut contents = StringViewBuilder::new();
    rows(files, |path, bytes| {
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            of_file(path, format!("byte {at} is no UTF-8: read_blob reads files of any bytes"))
        })?;
        contents.try_append_value(text)?;
        Ok(())
    })
    .and_then(|others| with_contents(others, Arc::new(contents.finish())))
}

pub(super) fn bytes_of(files: &[PathBuf]) -> Result<RecordBatch> {
    let mut contents = BinaryViewBuilder::new();
    rows(files, |_, bytes| Ok(contents.try_append_value(bytes)?))
        .and_then(|others| with_contents(others, Arc::new(contents.finish())))
}

/// Most bytes of a file: views have lengths of 32 bits.
const MOST: u64 = i32::MAX as u64;

type FileRow = (PathBuf, u64, Option<i64>);

/// Names, sizes and times of files, whose bytes are handed over.
fn rows(
    files: &[PathBuf],
    mut add: impl FnMut(&Path, Vec<u8>) -> Result<()>,
) -> Result<Vec<FileRow>> {
    let mut rows = vec![];
    for path in files {
        interrupt::check()?;
        let io = |error| Error::io(path, error);
        let file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if !metadata.is_file() {
            return Err(of_file(path, "is no file"));
        }
        let mut bytes = vec![];
        // Files may grow, or have no size (`/proc`).
        file.take(MOST + 1).read_to_end(&mut bytes).map_err(io)?;
        if bytes.len() as u64 > MOST {
            return Err(of_file(path, format!("a value has at most {MOST} bytes")));
        }
        let modified = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let modified = modified.and_then(|at| i64::try_from(at.as_micros()).ok());
        rows.push((path.clone(), bytes.len() as u64, modified));
        add(path, bytes)?;
    }
    Ok(rows)
}

fn with_contents(rows: Vec<FileRow>, contents: ArrayRef) -> Result<RecordBatch> {
    let modified: TimestampMicrosecondArray = rows.iter().map(|(_, _, at)| *at).collect();
    batch(vec![
        ("filename", texts(rows.iter().map(|(path, ..)| Some(path.to_string_lossy())))),
        ("content", contents),
        ("size", integers(rows.iter().map(|(_, size, _)| Some(*size as i64)))),
        ("last_modified", Arc::new(modified.with_timezone("UTC"))),
    ])
}
