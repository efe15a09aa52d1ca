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
use super::host_files::HostFiles;
use super::lone_files::{LoneFile, LoneFiles};
use super::path_columns::PathColumns;
use super::unite::unite;
use crate::error::{Error, ErrorKind, Result};

/// Types follow from all rows: what comes late may be of another one.
fn listing() -> ListingOptions {
    let format = JsonFormat::default().with_schema_infer_max_rec(usize::MAX);
    ListingOptions::new(Arc::new(format)).with_file_extension("")
}

/// Files as a table. It has the columns of all files, of which a row need not have all.
///
/// # Errors
/// Files that cannot be opened or are no JSON, by name; columns of types that no type holds both of.
pub(super) async fn files(
    files: &Files,
    state: &SessionState,
    paths: &[PathBuf],
    of_paths: PathColumns,
) -> Result<HostFiles> {
    let (mut described, mut sizes) = (vec![], vec![]);
    for path in paths {
        let (schema, size) = describe(files, state, path).await?;
        described.push((path.clone(), schema));
        sizes.push(size);
    }
    let all = unite(&described, true)?.schema;
    if all.fields().is_empty() {
        let path = paths.first().cloned().unwrap_or_default();
        return Err(ErrorKind::File { path, message: "no row has a value".into() }.into());
    }
    if of_paths.fields.is_empty() {
        return Ok(HostFiles::new(provider(paths, all)?, sizes.iter().sum()));
    }
    let schema = Arc::new(of_paths.behind(&all, files.selection.named())?);
    let in_files = Schema::new(schema.fields()[..schema.fields().len() - of_paths.fields.len()].to_vec());
    let alone = |path: &PathBuf| provider(std::slice::from_ref(path), Arc::new(in_files.clone()));
    let alone = paths.iter().map(alone).collect::<Result<Vec<_>>>()?;
    let alone = alone.into_iter().zip(sizes).map(|(provider, bytes)| LoneFile { provider, bytes }).collect();
    Ok(HostFiles::of_paths(LoneFiles::new(alone, of_paths, schema)))
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
