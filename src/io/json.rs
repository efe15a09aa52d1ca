//! JSON, read on the host: a row in each line, objects of several lines, or the members of one
//! array.
//!
//! | file | what |
//! |---|---|
//! | `rows` | rows in blocks of text |
//! | `cursor` | a walk over the text |
//! | `types` | types of columns, by all rows |
//! | `table` | a file as DataFusion scans it |

mod cursor;
mod rows;
mod table;
mod types;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;

use self::rows::RowBlocks;
use self::table::{JsonTable, schema};
use self::types::{JsonType, ObjectShape, Shape, of_rows};
use super::csv::Packed;
use super::host_files::HostFiles;
use super::lone_files::{LoneFile, LoneFiles};
use super::path_columns::PathColumns;
use super::same_column::{KnownColumns, own_column};
use super::selection::Selection;
use crate::error::{Error, ErrorKind, Result};

/// What errors and notes call the files.
const FORMAT: &str = "JSON";
/// The column of files without a row, which tell of none.
const NO_COLUMN: &str = "json";

/// A file that has some bytes.
struct JsonFile<'a> {
    path: &'a Path,
    packed: Option<Packed>,
    bytes: u64,
    columns: ObjectShape,
    rows: usize,
}

impl JsonFile<'_> {
    /// Looks at all rows. `None` of a file without a byte.
    ///
    /// # Errors
    /// A file that cannot be read, is not what its extension says, or is no JSON.
    fn open(path: &Path) -> Result<Option<JsonFile<'_>>> {
        let io = |error| Error::io(path, error);
        let mut file = File::open(path).map_err(io)?;
        let bytes = file.metadata().map_err(io)?.len();
        let mut begin = vec![];
        file.by_ref().take(Packed::BEGIN).read_to_end(&mut begin).map_err(io)?;
        if begin.is_empty() {
            return Ok(None);
        }
        let wrong = |message| Error::from(ErrorKind::File { path: path.into(), message });
        let packed = Packed::of(path, &begin).map_err(wrong)?;
        let (columns, rows) = of_rows(path, RowBlocks::open(path, packed)?)?;
        Ok(Some(JsonFile { path, packed, bytes, columns, rows }))
    }

    fn names(&self) -> Vec<&str> {
        self.columns.fields.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The columns of a table by the names that the file has for them.
    fn own_columns(&self, columns: &[(String, JsonType)]) -> Vec<(String, JsonType)> {
        let unit = |name: &str| (name.to_string(), JsonType::Json);
        let own = schema(&self.names().into_iter().map(unit).collect::<Vec<_>>());
        let table = schema(columns);
        let column = |(name, of): &(String, JsonType)| {
            let place = own_column(&table, &own, name);
            (place.map_or(name, |place| own.field(place).name()).clone(), of.clone())
        };
        columns.iter().map(column).collect()
    }
}

/// Files as a table. It has the columns of all files, of which a row need not have all. Their types
/// are those of the values of all files together.
///
/// # Errors
/// Files that cannot be opened or are no JSON, by name; rows without any value.
pub(super) fn files(
    selection: &Selection,
    paths: &[PathBuf],
    of_paths: PathColumns,
) -> Result<HostFiles> {
    let found = paths.iter().map(|path| JsonFile::open(path)).collect::<Result<Vec<_>>>()?;
    let has_bytes: Vec<usize> = (0..paths.len()).filter(|at| found[*at].is_some()).collect();
    let of_paths = match has_bytes.len() < paths.len() {
        true => of_paths.of_files(&has_bytes),
        false => of_paths,
    };
    let found: Vec<JsonFile> = found.into_iter().flatten().collect();
    let wrong = |message: &str| {
        let path = paths.first().cloned().unwrap_or_default();
        Err(ErrorKind::File { path, message: message.into() }.into())
    };
    if found.is_empty() {
        return wrong("is empty");
    }
    let (mut names, mut all) = (KnownColumns::default(), vec![]);
    for file in &found {
        for ((name, own), place) in file.columns.fields.iter().zip(names.places(&file.names())) {
            if place == all.len() {
                all.push((name.clone(), Shape::default()));
            }
            all[place].1.merge(own.clone());
        }
    }
    let mut columns: Vec<(String, JsonType)> =
        all.into_iter().map(|(name, shape)| (name, JsonType::of(&shape))).collect();
    if columns.is_empty() {
        if found.iter().any(|file| file.rows > 0) {
            return wrong("no row has a value");
        }
        columns.push((NO_COLUMN.into(), JsonType::Value(DataType::Utf8View)));
    }
    let lone = found.iter().map(|file| {
        let columns = file.own_columns(&columns);
        let provider = Arc::new(JsonTable::new(file.path, file.packed, columns));
        LoneFile { provider, bytes: file.bytes }
    });
    let lone = lone.collect();
    let named = selection.named();
    let schema = Arc::new(of_paths.behind(&schema(&columns), named)?);
    Ok(HostFiles::new(LoneFiles::new(lone, of_paths, schema), named, FORMAT))
}
