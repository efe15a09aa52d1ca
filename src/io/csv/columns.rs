//! The columns of a table, and which values of each file's rows they are.
//!
//! ```text
//!   1.csv   a,b,c          table   a b c d
//!   2.csv   c,a,d          2.csv   1 - 0 2
//! ```

use std::collections::HashMap;
use std::path::Path;

use datafusion::arrow::compute::can_cast_types;
use datafusion::arrow::datatypes::{DataType, Field};

use super::dialect::unique_names;
use super::options::CsvOptions;
use super::text::CsvContent;
use super::tokens::Wanted;
use crate::error::{Error, ErrorKind, Result};
use crate::io::same_column::KnownColumns;

/// Which values of a file's rows are the columns of its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowLayout {
    /// Values of a row.
    pub(crate) values: usize,
    /// Of each column its value; `None` where the file lacks it.
    of_columns: Vec<Option<usize>>,
}

/// Some columns, as the values of a file's rows that are wanted for them.
#[derive(Debug, Clone)]
pub(crate) struct PickedValues {
    /// By value of a row.
    wanted: Vec<bool>,
    /// Of each of the columns, which of the wanted values it is; `None` where the file lacks it.
    pub(crate) slots: Vec<Option<usize>>,
    /// How many values are wanted.
    pub(crate) stride: usize,
}

impl RowLayout {
    fn in_order(values: usize) -> RowLayout {
        RowLayout { values, of_columns: (0..values).map(Some).collect() }
    }

    /// Which value of a row a column is.
    pub(crate) fn value(&self, column: usize) -> Option<usize> {
        self.of_columns.get(column).copied().flatten()
    }

    /// The values that are wanted for columns.
    pub(crate) fn pick(&self, columns: &[usize]) -> PickedValues {
        let mut wanted = vec![false; self.values];
        columns
            .iter()
            .filter_map(|column| self.value(*column))
            .for_each(|value| wanted[value] = true);
        let mut before = vec![0; self.values];
        let mut stride = 0;
        for (before, wanted) in before.iter_mut().zip(&wanted) {
            *before = stride;
            stride += usize::from(*wanted);
        }
        let slots = columns.iter().map(|column| Some(before[self.value(*column)?])).collect();
        PickedValues { wanted, slots, stride }
    }
}

impl PickedValues {
    pub(crate) fn wanted(&self) -> Wanted<'_> {
        Wanted::Some(&self.wanted)
    }
}

/// The columns that files have.
#[derive(Debug)]
pub(crate) struct FileColumns {
    pub(crate) names: Vec<String>,
    /// Of each file.
    pub(crate) layouts: Vec<RowLayout>,
}

impl FileColumns {
    /// The columns of files with these first rows: by the names of their headers in the order in
    /// which they are met first, or by their place.
    ///
    /// # Errors
    /// [`ErrorKind::File`] of a file whose columns are none of the table's.
    pub(crate) fn of(
        texts: &[CsvContent],
        rows: &[Option<(Vec<String>, u64)>],
        has_header: bool,
        options: &CsvOptions,
    ) -> Result<FileColumns> {
        let given = match (&options.names, &options.schema) {
            (Some(names), _) => Some(names.clone()),
            (None, Some(schema)) => {
                Some(schema.fields().iter().map(|field| field.name().clone()).collect())
            }
            (None, None) => None,
        };
        let mut of_files: Vec<(&CsvContent, &Vec<String>)> = vec![];
        for (text, row) in texts.iter().zip(rows) {
            match row {
                Some((row, _)) => of_files.push((text, row)),
                None if has_header => {
                    return Err(wrong(text, "there is no header: no line has a value".into()));
                }
                None => {}
            }
        }
        if has_header && given.is_none() && options.union_by_name {
            return FileColumns::by_name(&of_files, options.has_header.is_none());
        }
        let names = FileColumns::by_place(&of_files, has_header, given)?;
        let Some(names) = names else {
            return Err(wrong(
                &texts[0],
                "no line has a value: how many columns are there?".into(),
            ));
        };
        Ok(FileColumns {
            layouts: vec![RowLayout::in_order(names.len()); texts.len()],
            names: unique_names(names),
        })
    }

    /// The names of columns that all files have in the same order; `None` where no file has a row.
    fn by_place(
        files: &[(&CsvContent, &Vec<String>)],
        has_header: bool,
        given: Option<Vec<String>>,
    ) -> Result<Option<Vec<String>>> {
        for (text, row) in files {
            if let Some(given) = given.as_ref().filter(|given| given.len() != row.len()) {
                let message = format!(
                    "its first row has {} values where {} names are given",
                    row.len(),
                    given.len()
                );
                return Err(wrong(text, message));
            }
            let (first, other) = files[0];
            let first = first.path.display();
            if has_header && other != *row {
                let (own, other) = (row.join(", "), other.join(", "));
                return Err(wrong(text, format!("columns {own} differ from {other} of {first}")));
            }
            if other.len() != row.len() {
                let (own, other) = (row.len(), other.len());
                return Err(wrong(
                    text,
                    format!("its first row has {own} values, that of {first} has {other}"),
                ));
            }
        }
        let found = files.first().map(|(_, row)| {
            if has_header { (*row).clone() } else { vec![String::new(); row.len()] }
        });
        Ok(given.or(found))
    }

    /// Columns by the names in headers. Where nobody said that first rows are headers, a file
    /// without any name of the others has none, but values.
    fn by_name(files: &[(&CsvContent, &Vec<String>)], is_guessed: bool) -> Result<FileColumns> {
        let (mut names, mut layouts): (Vec<String>, Vec<RowLayout>) = (vec![], vec![]);
        let mut known = KnownColumns::default();
        for (number, (text, row)) in files.iter().enumerate() {
            let own = unique_names((*row).clone());
            let places = known.places(&own.iter().map(String::as_str).collect::<Vec<_>>());
            let is_new = places.iter().all(|place| *place >= names.len());
            if number > 0 && is_guessed && is_new {
                let (own, other, first) =
                    (own.join(", "), names.join(", "), files[0].0.path.display());
                let message = format!(
                    "columns {own} have no name in common with {other} of {first}; the option has_header says whether there is a header"
                );
                return Err(wrong(text, message));
            }
            let mut layout = RowLayout { values: own.len(), of_columns: vec![None; names.len()] };
            for ((value, name), column) in own.into_iter().enumerate().zip(places) {
                if column == names.len() {
                    names.push(name);
                    layout.of_columns.push(None);
                }
                layout.of_columns[column] = Some(value);
            }
            layouts.push(layout);
        }
        Ok(FileColumns { names, layouts })
    }

    /// Leaves out columns, by their place.
    pub(crate) fn retain(&mut self, is_kept: &[bool]) {
        fn kept<T>(of: &mut Vec<T>, is_kept: &[bool]) {
            let mut place = 0..;
            of.retain(|_| place.next().and_then(|at| is_kept.get(at)).copied().unwrap_or(false));
        }
        kept(&mut self.names, is_kept);
        for layout in &mut self.layouts {
            // Columns of later files alone.
            layout.of_columns.resize(is_kept.len(), None);
            kept(&mut layout.of_columns, is_kept);
        }
    }
}

fn wrong(text: &CsvContent, message: String) -> Error {
    ErrorKind::File { path: Path::to_path_buf(&text.path), message }.into()
}

/// The given fields of columns.
///
/// # Errors
/// Types of columns that are none, and types that nothing makes of text.
pub(crate) fn given_fields(names: &[String], options: &CsvOptions) -> Result<Vec<Option<Field>>> {
    let text =
        |name: &String| options.all_varchar.then(|| Field::new(name, DataType::Utf8View, true));
    let mut given: Vec<Option<Field>> = names.iter().map(text).collect();
    if let Some(schema) = &options.schema {
        let fields = schema.fields().iter();
        given
            .iter_mut()
            .zip(fields)
            .for_each(|(given, field)| *given = Some(field.as_ref().clone()));
    }
    let places: HashMap<&String, usize> =
        names.iter().enumerate().map(|(at, name)| (name, at)).collect();
    for (name, data_type) in &options.types {
        let Some(column) = places.get(name) else {
            return Err(
                ErrorKind::ColumnNotFound { name: name.clone(), known: names.to_vec() }.into()
            );
        };
        given[*column] = Some(Field::new(name, data_type.clone(), true));
    }
    for (name, field) in names.iter().zip(&given) {
        if let Some(field) = field
            && !can_cast_types(&DataType::Utf8View, field.data_type())
        {
            let what = format!("column {name:?} of type {}", field.data_type());
            return Err(Error::unsupported(what, "CSV files have types that CAST makes of text"));
        }
    }
    Ok(given)
}
