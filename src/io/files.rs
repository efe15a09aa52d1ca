//! Parquet and CSV files as tables.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::execution::session_state::SessionState;

use crate::error::{Error, ErrorKind, Result};
use crate::session::CsvOptions;

/// Files of one format and schema that make one table.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) format: Format,
}

/// How files are read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Format {
    Parquet,
    Csv(CsvOptions),
}

impl Format {
    pub(crate) fn extension(&self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Csv(_) => "csv",
        }
    }

    fn listing(&self, state: &SessionState) -> ListingOptions {
        let options = state.default_table_options();
        let format: Arc<dyn FileFormat> = match self {
            Format::Parquet => Arc::new(ParquetFormat::new().with_options(options.parquet)),
            Format::Csv(csv) => Arc::new(
                CsvFormat::default()
                    .with_options(options.csv)
                    .with_has_header(csv.has_header)
                    .with_delimiter(csv.delimiter)
                    .with_quote(csv.quote)
                    .with_schema_infer_max_rec(csv.infer_rows)
                    // A file cut at line ends could be cut inside a quoted value, and its pieces would count their lines
                    // from the cut: neither rows nor the places in errors would be right.
                    .with_newlines_in_values(true),
            ),
        };
        // The paths are files already: no extension selects among them.
        ListingOptions::new(format).with_file_extension("")
    }
}

/// The files that a path names: itself, a directory's files of the extension, or a pattern's matches, in byte order.
///
/// # Errors
/// [`ErrorKind::Io`] where there is no such file, and where nothing matches.
pub(crate) fn expand(path: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let absent = || Error::io(path, std::io::ErrorKind::NotFound.into());
    let mut paths: Vec<PathBuf> = if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(|error| Error::io(path, error))?;
        entries
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|file| file.is_file() && file.extension().is_some_and(|e| e.eq_ignore_ascii_case(extension)))
            .collect()
    } else if path.exists() {
        return Ok(vec![path.to_path_buf()]);
    } else {
        let pattern = path.to_str().filter(|text| text.contains(['*', '?', '['])).ok_or_else(absent)?;
        let matches = glob::glob(pattern).map_err(|error| {
            Error::from(ErrorKind::File { path: path.into(), message: format!("not a pattern: {error}") })
        })?;
        matches.filter_map(|entry| entry.ok()).filter(|file| file.is_file()).collect()
    };
    paths.sort();
    if paths.is_empty() { Err(absent()) } else { Ok(paths) }
}

impl Files {
    /// Whether all files are still there. A listing passes over those that are not, as if they had no rows.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] of the first that is missing.
    pub(crate) fn present(&self) -> Result<()> {
        self.paths.iter().try_for_each(|path| match path.metadata() {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::io(path, error)),
        })
    }

    /// Reads the schema (for CSV, infers it from the first rows of the first file) and makes a table of the files.
    ///
    /// # Errors
    /// Files that cannot be opened or whose content does not fit their format, by name.
    pub(crate) async fn provider(&self, state: &SessionState) -> Result<Arc<dyn TableProvider>> {
        let options = self.format.listing(state);
        let mut schema: Option<SchemaRef> = None;
        for path in &self.paths {
            // The system's own account of an unreadable file is better than what comes out of the reader.
            let size =
                std::fs::File::open(path).and_then(|file| file.metadata()).map_err(|e| Error::io(path, e))?.len();
            if size == 0 {
                return Err(ErrorKind::File { path: path.clone(), message: "is empty".into() }.into());
            }
            let of_file = options
                .infer_schema(state, &url(path)?)
                .await
                .map_err(|error| self.name(error.into(), path, &Schema::empty()))?;
            match &schema {
                None => schema = Some(self.readable(&of_file)),
                Some(first) => same_columns(first, &of_file, &self.paths[0], path)?,
            }
        }
        self.provider_with_schema(state, schema.unwrap_or_else(|| Arc::new(Schema::empty())))
    }

    pub(crate) fn provider_with_schema(
        &self,
        state: &SessionState,
        schema: SchemaRef,
    ) -> Result<Arc<dyn TableProvider>> {
        let urls = self.paths.iter().map(|path| url(path)).collect::<Result<Vec<_>>>()?;
        let config = ListingTableConfig::new_with_multi_paths(urls)
            .with_listing_options(self.format.listing(state))
            .with_schema(schema);
        Ok(Arc::new(ListingTable::try_new(config)?))
    }

    /// A CSV column of which the first rows say nothing, or whose values are text, is strings; strings are views.
    fn readable(&self, schema: &Schema) -> SchemaRef {
        let fields = schema.fields().iter().map(|field| match (&self.format, field.data_type()) {
            (Format::Csv(_), DataType::Null | DataType::Utf8 | DataType::LargeUtf8) => {
                Arc::new(Field::new(field.name(), DataType::Utf8View, true))
            }
            _ => field.clone(),
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// Puts the file's name into an error about its content, and a CSV column's name into the message.
    pub(crate) fn name(&self, error: Error, file: &Path, schema: &Schema) -> Error {
        match error.kind() {
            ErrorKind::Parse { path: Some(path), line, column, message } if path.as_os_str().is_empty() => {
                let field = (*column as usize).checked_sub(1).and_then(|index| schema.fields().get(index));
                let message = match field {
                    Some(field) => format!("column {:?}: {message}", field.name()),
                    None => message.clone(),
                };
                ErrorKind::Parse { path: Some(file.into()), line: *line, column: *column, message }.into()
            }
            ErrorKind::File { message, .. } | ErrorKind::Plan { message, .. } => {
                ErrorKind::File { path: file.into(), message: message.clone() }.into()
            }
            _ => error,
        }
    }
}

fn same_columns(first: &Schema, other: &Schema, first_path: &Path, path: &Path) -> Result<()> {
    let names = |schema: &Schema| schema.fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>();
    if names(first) == names(other) {
        return Ok(());
    }
    let message = format!(
        "columns {} differ from {} of {}",
        names(other).join(", "),
        names(first).join(", "),
        first_path.display()
    );
    Err(ErrorKind::File { path: path.into(), message }.into())
}

/// A `file:` URL: as a plain path, `*` in a file's name would be taken for a pattern.
fn url(path: &Path) -> Result<ListingTableUrl> {
    let absolute = std::path::absolute(path).map_err(|error| Error::io(path, error))?;
    let mut url = String::from("file://");
    for &byte in absolute.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => url.push(byte as char),
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(ListingTableUrl::parse(url)?)
}
