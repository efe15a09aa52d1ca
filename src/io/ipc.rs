//! Arrow IPC files and streams, read on the host.
//!
//! ```text
//!   file     "ARROW1" 0 0 │ messages │ footer │ length │ "ARROW1"      the footer says where messages lie
//!   stream   messages │ end of stream, or nothing
//!   message  ffffffff │ length │ metadata │ body                       old writers leave out the first
//! ```
//!
//! The crate arrow-ipc turns a message into arrays, and checks their content. It takes memory by
//! the lengths in a file before it looks at them, and panics over some: so everything that metadata
//! says of lengths and numbers is checked here before, against the bytes that there are.
//!
//! Columns get the types that other files give: dictionaries become their values, strings and bytes
//! become views.
//!
//! | file | what |
//! |---|---|
//! | `messages` | where messages lie; dictionaries |
//! | `checks` | what metadata says, against the bytes that there are |
//! | `types` | types and values without dictionaries |
//! | `table` | a file as DataFusion scans it |

mod checks;
mod messages;
mod table;
#[cfg(test)]
mod tests;
mod types;

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::session_state::SessionState;

use self::table::IpcTable;
pub(crate) use self::types::plain_type;
use super::host_files::HostFiles;
use super::lone_files::{LoneFile, LoneFiles};
use super::notes::LeftOut;
use super::options::IpcOptions;
use super::path_columns::PathColumns;
use super::selection::Selection;
use super::stream::read_all;
use super::unite::{lost_as_double, unite};
use crate::error::{ErrorKind, Result};

/// Files as a table, of columns found by name or of the same in each.
///
/// # Errors
/// Files that cannot be opened or are no Arrow files, by name; columns that do not fit together.
pub(super) async fn files(
    selection: &Selection,
    state: &SessionState,
    (paths, of_paths): (&[PathBuf], PathColumns),
    options: &IpcOptions,
    left_out: &mut LeftOut,
) -> Result<HostFiles> {
    let open = |path: &PathBuf| {
        let file = IpcTable::open(path)?;
        let bytes = file.bytes();
        Ok(LoneFile { provider: Arc::new(file), bytes })
    };
    let (mut kept, mut files) = (vec![], vec![]);
    for (at, path) in paths.iter().enumerate() {
        if let Some(file) = left_out.unless_bad(path, open(path), options.ignore_errors)? {
            kept.push(at);
            files.push(file);
        }
    }
    let (paths, of_paths) = left_out.others(paths, of_paths, &kept)?;
    let named = paths.iter().cloned().zip(files.iter().map(|file| file.provider.schema()));
    let named: Vec<(PathBuf, SchemaRef)> = named.collect();
    let united = unite(&named, options.union_by_name)?;
    for (file, column, doubles) in united.to_doubles {
        let (path, schema) = &named[file];
        for batch in read_all(&files[file].provider, state, &[column]).await? {
            if let Some(value) = lost_as_double(batch.column(0)) {
                let (name, doubles) = (schema.field(column).name(), named[doubles].0.display());
                let message =
                    format!("column {name:?} is a double in {doubles}, and {value} is none");
                return Err(ErrorKind::File { path: path.clone(), message }.into());
            }
        }
    }
    let schema = Arc::new(of_paths.behind(&united.schema, selection.named())?);
    Ok(HostFiles::new(LoneFiles::new(files, of_paths, schema), selection.named(), "Arrow IPC"))
}
