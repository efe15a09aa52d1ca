//! Newline-delimited JSON as DataFusion reads it, on the host.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig};
use datafusion::execution::session_state::SessionState;

use super::files::{Files, url};
use super::guard::{of_content, unpanicked};
use crate::error::{Error, ErrorKind, Result};

/// Types follow from all rows: what comes late may be of another one.
fn listing() -> ListingOptions {
    let format = JsonFormat::default().with_schema_infer_max_rec(usize::MAX);
    ListingOptions::new(Arc::new(format)).with_file_extension("")
}

/// Files as a table, and their bytes. It has the columns of all files, of which a row need not have
/// all.
///
/// # Errors
/// Files that cannot be opened or are no JSON, by name; columns of two types.
pub(super) async fn table(
    files: &Files,
    state: &SessionState,
    paths: &[PathBuf],
) -> Result<(Arc<dyn TableProvider>, u64)> {
    let (mut all, mut bytes) = (Schema::empty(), 0);
    for path in paths {
        let (schema, size) = describe(files, state, path).await?;
        bytes += size;
        all = Schema::try_merge([all, schema.as_ref().clone()])
            .map_err(|error| Error::from(ErrorKind::File { path: path.clone(), message: error.to_string() }))?;
    }
    if all.fields().is_empty() {
        let path = paths.first().cloned().unwrap_or_default();
        return Err(ErrorKind::File { path, message: "no row has a value".into() }.into());
    }
    Ok((provider(paths, Arc::new(all))?, bytes))
}

/// The columns of a file, and its bytes.
async fn describe(files: &Files, state: &SessionState, path: &Path) -> Result<(SchemaRef, u64)> {
    // The system's own account of an unreadable file is better than what comes out of the reader.
    let size = std::fs::File::open(path).and_then(|file| file.metadata()).map_err(|e| Error::io(path, e))?.len();
    if size == 0 {
        return Err(ErrorKind::File { path: path.into(), message: "is empty".into() }.into());
    }
    let schema = unpanicked(listing().infer_schema(state, &url(path)?)).await;
    Ok((schema.map_err(|error| files.name(of_content(error), path))?, size))
}

/// Files of these columns.
///
/// # Errors
/// Paths that are no locations.
pub(super) fn provider(paths: &[PathBuf], schema: SchemaRef) -> Result<Arc<dyn TableProvider>> {
    let urls = paths.iter().map(|path| url(path)).collect::<Result<Vec<_>>>()?;
    let config = ListingTableConfig::new_with_multi_paths(urls).with_listing_options(listing()).with_schema(schema);
    Ok(Arc::new(ListingTable::try_new(config)?))
}
