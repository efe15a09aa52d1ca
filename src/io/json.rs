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

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use self::rows::{JsonLayout, RowBlocks};
use self::table::{JsonRead, JsonTable, schema};
use self::types::{JsonType, RowsShape, Shape, of_rows};
use super::csv::Packed;
use super::host_files::HostFiles;
use super::lone_files::{LoneFile, LoneFiles};
use super::notes::LeftOut;
use super::options::JsonOptions;
use super::path_columns::PathColumns;
use super::same_column::{KnownColumns, own_column};
use super::selection::Selection;
use super::spool;
use crate::error::{Error, ErrorKind, Result};

/// What errors and notes call the files.
const FORMAT: &str = "JSON";
/// The one column of rows that have no columns.
const ONE_COLUMN: &str = "json";

/// A file that has some bytes.
struct JsonFile<'a> {
    path: &'a Path,
    packed: Option<Packed>,
    bytes: u64,
    layout: JsonLayout,
    found: RowsShape,
}

impl JsonFile<'_> {
    /// Looks at all rows. `None` of a file without a byte. Under `ignore_errors`, a file that has
    /// something else than JSON is read line by line where its rows stand in lines.
    ///
    /// # Errors
    /// A file that cannot be read, is not what its extension says, or is no JSON.
    fn open<'a>(path: &'a Path, options: &JsonOptions) -> Result<Option<JsonFile<'a>>> {
        let io = |error| Error::io(path, error);
        let mut file = spool::open(path)?;
        let bytes = file.metadata().map_err(io)?.len();
        let mut begin = vec![];
        file.by_ref().take(Packed::BEGIN).read_to_end(&mut begin).map_err(io)?;
        if begin.is_empty() {
            return Ok(None);
        }
        let wrong = |message| Error::from(ErrorKind::File { path: path.into(), message });
        let packed = Packed::of(path, &begin).map_err(wrong)?;
        let mut layout = JsonLayout { lines: options.lines, ..JsonLayout::default() };
        let found = match of_rows(path, RowBlocks::open(path, packed, layout)?) {
            Err(error)
                if options.ignore_errors && matches!(error.kind(), ErrorKind::File { .. }) =>
            {
                layout.line_by_line = true;
                good_lines(path, packed, layout)?.ok_or(error)?
            }
            found => found?,
        };
        Ok(Some(JsonFile { path, packed, bytes, layout, found }))
    }

    /// The names of its columns.
    fn names(&self) -> Vec<&str> {
        let columns = self.found.row.columns();
        columns.into_iter().flat_map(|of| &of.fields).map(|(name, _)| name.as_str()).collect()
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

    /// The file as a table of these columns.
    fn lone(&self, columns: &JsonColumns, options: &JsonOptions) -> LoneFile {
        let read = JsonRead {
            packed: self.packed,
            layout: JsonLayout { null_is_object: !columns.is_one, ..self.layout },
            is_one_column: columns.is_one,
            has_special: self.found.has_special,
            misfits_are_null: options.ignore_errors,
        };
        let own = match columns.given.is_some() || columns.is_one {
            true => columns.columns.clone(),
            false => self.own_columns(&columns.columns),
        };
        let table = JsonTable::new(self.path, read, own, columns.given.clone());
        LoneFile { provider: Arc::new(table), bytes: self.bytes }
    }
}

/// What the lines are that are JSON; `None` of a file that has none, or whose rows do not stand in
/// lines by what a user says or by the first one.
fn good_lines(
    path: &Path,
    packed: Option<Packed>,
    layout: JsonLayout,
) -> Result<Option<RowsShape>> {
    if !layout.lines {
        let first = RowBlocks::open(path, packed, layout)?.next()?;
        if !first.is_some_and(|block| block.begins_with_rows()) {
            return Ok(None);
        }
    }
    let found = of_rows(path, RowBlocks::open(path, packed, layout)?)?;
    Ok(Some(found).filter(|found| found.rows > 0))
}

/// The columns of a table of files.
struct JsonColumns {
    columns: Vec<(String, JsonType)>,
    /// Whether rows are the values of the one column.
    is_one: bool,
    /// The types that a user gave.
    given: Option<SchemaRef>,
}

impl JsonColumns {
    fn of(files: &[JsonFile], options: &JsonOptions) -> JsonColumns {
        if options.objects {
            return JsonColumns::one(JsonType::Written);
        }
        if let Some(given) = &options.columns {
            return JsonColumns::given(given);
        }
        let has_columns = |file: &&JsonFile| file.found.row.columns().is_some();
        let is_null = |file: &JsonFile| file.found.row == Shape::default();
        if !files.iter().any(|file| has_columns(&file))
            || !files.iter().all(|file| has_columns(&file) || is_null(file))
        {
            let mut row = Shape::default();
            files.iter().for_each(|file| row.merge(file.found.row.clone()));
            return JsonColumns::one(JsonType::of(&row));
        }
        let (mut names, mut all) = (KnownColumns::default(), vec![]);
        for file in files {
            let Some(columns) = file.found.row.columns() else { continue };
            for ((name, own), place) in columns.fields.iter().zip(names.places(&file.names())) {
                if place == all.len() {
                    all.push((name.clone(), Shape::default()));
                }
                all[place].1.merge(own.clone());
            }
        }
        let columns = all.into_iter().map(|(name, shape)| (name, JsonType::of(&shape))).collect();
        JsonColumns { columns, is_one: false, given: None }
    }

    fn one(of: JsonType) -> JsonColumns {
        JsonColumns { columns: vec![(ONE_COLUMN.into(), of)], is_one: true, given: None }
    }

    fn given(given: &[(String, Option<DataType>)]) -> JsonColumns {
        let of = |(name, dtype): &(String, Option<DataType>)| {
            (name.clone(), dtype.as_ref().map_or(JsonType::Json, JsonType::given))
        };
        let field = |(name, dtype): &(String, Option<DataType>)| {
            Field::new(name, dtype.clone().unwrap_or(DataType::Utf8View), true)
        };
        let fields: Vec<Field> = given.iter().map(field).collect();
        let given_types = Some(Arc::new(Schema::new(fields)));
        JsonColumns { columns: given.iter().map(of).collect(), is_one: false, given: given_types }
    }

    fn schema(&self) -> SchemaRef {
        self.given.clone().unwrap_or_else(|| schema(&self.columns))
    }
}

/// Files as a table. It has the columns of all files, of which a row need not have all. Their types
/// are those of the values of all files together.
///
/// # Errors
/// Files that cannot be opened or are no JSON, by name.
pub(super) fn files(
    selection: &Selection,
    (paths, of_paths): (&[PathBuf], PathColumns),
    options: &JsonOptions,
    left_out: &mut LeftOut,
) -> Result<HostFiles> {
    let (mut kept, mut found) = (vec![], vec![]);
    for (at, path) in paths.iter().enumerate() {
        let file = JsonFile::open(path, options);
        match left_out.unless_bad(path, file, options.ignore_errors)? {
            Some(Some(file)) => {
                left_out.rows(file.found.left_out);
                kept.push(at);
                found.push(file);
            }
            Some(None) => left_out.empty(path),
            None => {}
        }
    }
    let (_, of_paths) = left_out.others(paths, of_paths, &kept)?;
    let columns = JsonColumns::of(&found, options);
    let lone = found.iter().map(|file| file.lone(&columns, options)).collect();
    let named = selection.named();
    let schema = Arc::new(of_paths.behind(&columns.schema(), named)?);
    Ok(HostFiles::new(LoneFiles::new(lone, of_paths, schema), named, FORMAT))
}
