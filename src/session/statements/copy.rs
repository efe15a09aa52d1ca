//! `COPY table TO 'file'` and `COPY table FROM 'file'`.

mod options;

use std::path::Path;

use self::options::{CopyForm, known};
use crate::error::{Error, ErrorKind, Result, nearest};
use crate::io::FileKind;
use crate::session::Session;
use crate::session::insert::counted;
use crate::sql::{CopyFrom, CopyTo};

impl Session {
    /// Writes a file; what was done.
    pub(super) fn copy(&self, copy: &CopyTo<'_>) -> Result<String> {
        self.files.allow("COPY").map_err(|error| error.at(Some(copy.file.place)))?;
        let file = &copy.file;
        let extension = extension(&file.text);
        let (format, place) = match &copy.format {
            Some(name) => (name.text.as_str(), name.place),
            None => (extension.as_str(), file.place),
        };
        let Some(form) = CopyForm::of(format, copy)? else {
            let message = "COPY writes CSV, Parquet, JSON and Arrow: end the file's name in .csv, .tsv, .parquet, \
                           .json, .ndjson, .arrow or .arrows, or name a FORMAT";
            let known =
                ["csv", "tsv", "parquet", "json", "ndjson", "arrow", "arrows"].map(String::from);
            let help = nearest(format, &known)
                .map_or(String::new(), |meant| format!("; did you mean {meant}?"));
            return Err(refused(format!("{message}{help}"), place));
        };
        let frame = self.sql_text(&copy.rows)?;
        if !form.is_folder {
            let rows = frame.write(&file.text, &form.format)?;
            return Ok(format!("{} in {}", counted(rows as usize, "row"), file.text));
        }
        let by: Vec<&str> = copy.partition_by.iter().map(|column| column.text.as_str()).collect();
        let frame = frame.collect()?;
        let written = frame.write_partitioned_with(&file.text, &by, &form.format, &form.folder);
        written.map_err(|error| {
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

/// What a file's name ends in, in lower case, without what tells how text is compressed.
fn extension(path: &str) -> String {
    let of = |path: &Path| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.unwrap_or_default().to_lowercase()
    };
    let path = Path::new(path);
    let inner = path.file_stem().map(|stem| of(Path::new(stem))).unwrap_or_default();
    match of(path) {
        packed if ["gz", "zst", "bz2", "xz"].contains(&packed.as_str()) && is_text(&inner) => inner,
        own => own,
    }
}

/// Whether files that end so are text, which may be compressed.
fn is_text(extension: &str) -> bool {
    ["csv", "tsv", "tab", "json", "ndjson", "jsonl"].contains(&extension)
}

fn refused(message: String, place: (u64, u64)) -> Error {
    ErrorKind::Plan { message, location: Some(place) }.into()
}
