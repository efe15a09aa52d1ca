//! Rows that come behind those of a table.
//!
//! Tables of results and of batches are kept whole, and get rows by taking the place of themselves.
//! Tables of files have the rows of their files, and tables of other providers those of these.

use std::path::PathBuf;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{ScalarValue, TableReference};
use datafusion::logical_expr::{Expr, UNNAMED_TABLE, cast, ident, lit};

use super::Session;
use super::writers::Alone;
use crate::error::{Error, ErrorKind, Result, listed};
use crate::frame::{DataFrame, LazyFrame};
use crate::io::{CsvOptions, FileKind, Format, IntoPaths, OfSession, wider};

impl Session {
    /// Puts a frame's rows behind those of a table that was made of a frame or of batches. Columns
    /// are found by name; one that the frame lacks has its DEFAULT, or is NULL.
    ///
    /// # Errors
    /// [`crate::ErrorKind::TableNotFound`]; a table of files or of another provider; columns that
    /// the table has not, or whose values its types do not hold; rows that break a constraint.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.register_table("t", &session.sql("SELECT 1 AS a, 'x' AS b")?.collect()?)?;
    /// session.append("t", &session.sql("SELECT 2 AS a")?.collect()?)?;
    /// assert_eq!(session.sql("SELECT * FROM t WHERE b IS NULL")?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn append(&self, table: &str, rows: &DataFrame) -> Result<()> {
        self.append_rows(
            &self.named(table),
            &rows.lazy()?,
            &format!("rows for the table {table:?}"),
        )
        .map(|_| ())
    }

    /// Puts the rows of files behind those of a table, as [`Session::append`] does; their number.
    /// CSV files are read with the table's types.
    ///
    /// # Errors
    /// As [`Session::append`] and [`Session::register_files`]; columns are named with their file.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, FileKind, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.register_table("jets", &session.read_csv("data/jets.csv")?.head(0)?)?;
    /// assert_eq!(session.append_files("jets", "data/jets.csv", FileKind::Csv)?, 100_000);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn append_files(&self, table: &str, path: impl IntoPaths, kind: FileKind) -> Result<usize> {
        match kind {
            FileKind::Csv => self.append_csv_with(table, path, CsvOptions::default()),
            kind => self.append_format(&self.named(table), path.into_paths(), Format::of(kind)),
        }
    }

    /// [`Session::append_files`] of CSV files of another layout. Columns of files without names are
    /// the table's, in their order.
    ///
    /// # Errors
    /// As [`Session::append_files`].
    pub fn append_csv_with(
        &self,
        table: &str,
        path: impl IntoPaths,
        options: CsvOptions,
    ) -> Result<usize> {
        let paths = path.into_paths();
        let table = self.named(table);
        let schema = self.appendable(&table)?;
        let options = self.with_types_of(&schema, &paths, options)?;
        self.append_format(&table, paths, Format::Csv(Box::new(options)))
    }

    fn append_format(
        &self,
        table: &TableReference,
        paths: Vec<PathBuf>,
        format: Format,
    ) -> Result<usize> {
        self.appendable(table)?;
        let first = paths.first().cloned().unwrap_or_default();
        let rows = self
            .scan_provider(TableReference::bare(UNNAMED_TABLE), self.file_table(paths, format)?)?;
        self.append_rows(table, &rows, "").map_err(|error| match error.kind() {
            ErrorKind::File { path, message } if path.as_os_str().is_empty() => {
                ErrorKind::File { path: first.clone(), message: message.clone() }.into()
            }
            _ => error,
        })
    }

    /// The columns of a table that rows can be put behind.
    pub(super) fn appendable(&self, table: &TableReference) -> Result<Schema> {
        self.kept(table, "putting rows into")
    }

    /// The columns of a table that a statement may change.
    pub(super) fn changeable(&self, table: &TableReference, by: &str) -> Result<Schema> {
        self.kept(table, &format!("{by} of"))
    }

    fn kept(&self, table: &TableReference, what: &str) -> Result<Schema> {
        let provider = self.provider_of(table)?;
        self.writable(&self.in_schemas(table))?;
        let why = match OfSession::of(provider.as_ref()) {
            Some(of) if of.is_kept() => return Ok(provider.schema().as_ref().clone()),
            Some(_) => {
                "its rows are those of its files; CREATE TABLE … AS SELECT makes a table of them"
            }
            None if self.view_text(table)?.is_some() => {
                "it is a view, whose rows are those of other tables"
            }
            None => "another provider has its rows",
        };
        Err(Error::unsupported(format!("{what} the table {:?}", table.to_string()), why))
    }

    /// The options of CSV files whose columns have the types of a table's.
    fn with_types_of(
        &self,
        table: &Schema,
        paths: &[PathBuf],
        mut options: CsvOptions,
    ) -> Result<CsvOptions> {
        if options.schema.is_some() || options.names.is_some() {
            return Ok(options);
        }
        let all =
            || table.fields().iter().map(|field| (field.name().clone(), field.data_type().clone()));
        let mut types: Vec<(String, DataType)> = vec![];
        let found = match options.has_header {
            Some(false) => None,
            _ => Some(
                self.file_table(paths.to_vec(), Format::Csv(Box::new(options.clone())))?.schema(),
            ),
        };
        let is_numbered =
            |(at, field): (usize, &Field)| *field.name() == format!("column_{}", at + 1);
        let found = found.filter(|schema| {
            let has_names =
                !schema.fields().iter().enumerate().all(|(at, field)| is_numbered((at, field)));
            options.has_header == Some(true) || has_names
        });
        match found {
            Some(schema) => {
                for field in schema.fields() {
                    let own =
                        place(table, field.name()).map(|at| table.field(at).data_type().clone());
                    types.extend(own.map(|dtype| (field.name().clone(), dtype)));
                }
            }
            None => {
                options.has_header = Some(false);
                options.names = Some(all().map(|(name, _)| name).collect());
                types = all().collect();
            }
        }
        types.retain(|(name, _)| !options.types.iter().any(|(given, _)| given == name));
        options.types.extend(types);
        Ok(options)
    }

    /// Puts rows behind those of a table; their number. `named`: what errors call them.
    fn append_rows(&self, table: &TableReference, rows: &LazyFrame, named: &str) -> Result<usize> {
        let called = table.to_string();
        // Of two at once, the second would not see the rows of the first.
        let alone = self.alone()?;
        let wrong = |message: String| -> Error {
            match named.is_empty() {
                true => ErrorKind::File { path: PathBuf::new(), message }.into(),
                false => ErrorKind::Plan { message: format!("{named}: {message}"), location: None }
                    .into(),
            }
        };
        let (schema, own) = (self.appendable(table)?, rows.schema());
        let constraints = self.constraints_of(table);
        let stray = own.fields().iter().find(|field| place(&schema, field.name()).is_none());
        if let Some(field) = stray {
            let known: Vec<String> =
                schema.fields().iter().map(|field| field.name().clone()).collect();
            let message = format!(
                "column {:?} is none of table {called:?}, which has {}",
                field.name(),
                listed(&known)
            );
            return Err(wrong(message));
        }
        let mut exprs = vec![];
        for (at, field) in schema.fields().iter().enumerate() {
            let (name, to) = (field.name(), field.data_type());
            let found: Vec<&str> = own.fields().iter().map(|own| own.name().as_str()).collect();
            let found: Vec<&str> =
                found.into_iter().filter(|own| place(&schema, own) == Some(at)).collect();
            let expr = match found[..] {
                [] => {
                    exprs.push(self.missing_column(&constraints, field)?);
                    continue;
                }
                [column] => {
                    let from = own.field_with_name(column)?.data_type();
                    if !fits(from, to) {
                        let message =
                            format!("column {column:?} is {from}, and {to} in table {called:?}");
                        return Err(wrong(format!(
                            "{message}, which does not hold all of its values"
                        )));
                    }
                    cast(ident(column), to.clone())
                }
                [one, other, ..] => {
                    return Err(wrong(format!("columns {one:?} and {other:?} are both {name:?}")));
                }
            };
            exprs.push(NewColumn {
                expr: expr.alias(name),
                from: found.first().map(ToString::to_string),
            });
        }
        self.put_behind(&alone, table, rows, &exprs, &wrong)
    }

    /// Puts rows behind those of a table, of which these are the columns; their number. `wrong`
    /// makes an error of what is said of a column.
    pub(super) fn put_behind(
        &self,
        alone: &Alone<'_>,
        table: &TableReference,
        rows: &LazyFrame,
        columns: &[NewColumn],
        wrong: &dyn Fn(String) -> Error,
    ) -> Result<usize> {
        let all: Vec<Expr> = columns.iter().map(|column| column.expr.clone()).collect();
        let added = match rows.select(all).and_then(|rows| rows.collect()) {
            Ok(added) => added,
            Err(error) => {
                // Which column does not fit is found by each alone.
                let alone =
                    |expr: &Expr| rows.select([expr.clone()]).and_then(|rows| rows.collect());
                let failing = columns
                    .iter()
                    .find_map(|column| Some((column.from.clone()?, alone(&column.expr).err()?)));
                let is_of_values =
                    matches!(error.kind(), ErrorKind::Arithmetic { .. } | ErrorKind::Plan { .. });
                return Err(match failing.filter(|_| is_of_values) {
                    Some((column, error)) => wrong(format!("column {column:?}: {error}")),
                    None => error,
                });
            }
        };
        let together = self.rows_of(table)?.union(&added.lazy()?)?.collect()?;
        let constraints = self.constraints_of(table);
        self.check_rows(table, &constraints, (&added, &together), wrong)?;
        self.keep_rows(alone, table, &together)?;
        Ok(added.num_rows())
    }
}

/// A column of rows that are put behind those of a table.
pub(super) struct NewColumn {
    /// Its values, under the name that the table has for it.
    pub(super) expr: Expr,
    /// What errors call the column that they are of; `None` of nothing but NULL.
    pub(super) from: Option<String>,
}

impl NewColumn {
    /// NULL in all rows.
    pub(super) fn null(field: &Field) -> NewColumn {
        let null = cast(lit(ScalarValue::Null), field.data_type().clone());
        NewColumn { expr: null.alias(field.name()), from: None }
    }
}

/// A column of a table by its name, as it is written or, where there is one, in other case.
pub(super) fn place(table: &Schema, name: &str) -> Option<usize> {
    let fields = || table.fields().iter();
    fields().position(|field| field.name() == name).or_else(|| {
        let mut like =
            fields().enumerate().filter(|(_, field)| field.name().eq_ignore_ascii_case(name));
        like.next().map(|(at, _)| at).filter(|_| like.next().is_none())
    })
}

/// Whether a type holds the values of another, or a cast tells of each value whether it does.
fn fits(from: &DataType, to: &DataType) -> bool {
    let is_text =
        |of: &DataType| matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let is_counted = |of: &DataType| of.is_integer() || matches!(of, DataType::Decimal128(_, 0));
    let is_rounded =
        |of: &DataType| of.is_floating() && matches!(from, DataType::Int64 | DataType::UInt64);
    from == to
        || (is_text(from) && (is_text(to) || to.is_temporal()))
        || (is_counted(from) && (to.is_integer() || matches!(to, DataType::Decimal128(..))))
        || (wider(to, from).as_ref() == Some(to) && !is_rounded(to))
}
