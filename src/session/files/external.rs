//! Tables of files by SQL: `CREATE EXTERNAL TABLE prices STORED AS CSV LOCATION 'prices.csv'`.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::sql::parser::CreateExternalTable;
use datafusion::sql::sqlparser::ast::{ColumnOption, Value};

use super::options::{self, Given, OptionValue};
use crate::error::{Error, ErrorKind, Result, nearest};
use crate::io::{CsvOptions, Format};
use crate::session::Session;
use crate::session::types::data_type;
use crate::sql::Text;
use crate::sql::ast::folded;
use crate::sql::ast::table_name;

/// Who is given the options, in errors.
const BY: &str = "CREATE EXTERNAL TABLE";

impl Session {
    /// Runs a `CREATE [OR REPLACE] EXTERNAL TABLE [IF NOT EXISTS] name [(columns)] STORED AS format
    /// LOCATION 'path' [OPTIONS (…)]`, which makes files a table as [`Session::register_csv_with`]
    /// and [`Session::register_parquet_with`] do; the table's name. The options are those of
    /// `read_csv` and `read_parquet` (`docs/files.md`).
    ///
    /// # Errors
    /// A name that is taken, options that are none; as the methods above.
    pub(in crate::session) fn external_table(
        &self,
        create: CreateExternalTable,
        text: &Text<'_>,
    ) -> Result<String> {
        self.files.allow(BY)?;
        refuse(&create)?;
        let (name, at) = table_name(&create.name, BY)?;
        let at = at.or(text.place_of(name.table()));
        let called = name.to_string();
        let alone = self.alone()?;
        if !create.or_replace && self.has_table(&name) {
            return match create.if_not_exists {
                true => Ok(called),
                false => Err(plan(format!(
                    "there is a table named {called:?}; CREATE OR REPLACE replaces it"
                ))
                .at(at)),
            };
        }
        self.not_a_view(&name).map_err(|error| error.at(at))?;
        let format = self.format_of(&create)?;
        let paths =
            create.locations.iter().map(|path| path.strip_prefix("file://").unwrap_or(path));
        self.put(&alone, &name, self.file_table(paths.collect::<Vec<_>>(), format)?)
            .map_err(|error| error.at(at))?;
        Ok(called)
    }

    /// The options of CSV files by the names that `read_csv` knows them by in SQL, each with a
    /// text.
    ///
    /// # Errors
    /// Options that are none, and values that are not theirs.
    ///
    /// ```
    /// # use warpframe::{CsvOptions, DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let options = session.csv_options([("delim", ";"), ("types", "zip VARCHAR, day DATE")])?;
    /// assert_eq!(options.delimiter, Some(b';'));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn csv_options<'a>(
        &self,
        options: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<CsvOptions> {
        let given = |(name, text): (&str, &str)| Given {
            name: name.to_lowercase(),
            value: OptionValue::Text(text.into()),
            place: None,
        };
        options::csv(&self.core.state(), "CSV", &options.into_iter().map(given).collect::<Vec<_>>())
    }

    fn format_of(&self, create: &CreateExternalTable) -> Result<Format> {
        let state = self.core.state();
        let given = create.options.iter().map(|(name, value)| {
            let name = name.to_lowercase();
            let value = match value {
                Value::Number(number, _) => OptionValue::Number(number.clone()),
                Value::Boolean(boolean) => OptionValue::Boolean(*boolean),
                other => OptionValue::Text(
                    other.clone().into_string().unwrap_or_else(|| other.to_string()),
                ),
            };
            Given { name: name.strip_prefix("format.").unwrap_or(&name).into(), value, place: None }
        });
        let given: Vec<Given> = given.collect();
        match create.file_type.to_uppercase().as_str() {
            "CSV" | "TSV" => {
                let mut csv = options::csv(&state, BY, &given)?;
                if create.file_type.eq_ignore_ascii_case("TSV") {
                    csv.delimiter = csv.delimiter.or(Some(b'\t'));
                }
                if !create.columns.is_empty() {
                    if csv.schema.is_some() {
                        return Err(plan("the option columns repeats the table's columns".into()));
                    }
                    let fields = create.columns.iter().map(|column| {
                        let of = data_type(&state, column.data_type.clone()).map_err(plan)?;
                        Ok(Field::new(folded(&column.name), of, true))
                    });
                    let fields = fields.collect::<Result<Vec<_>>>()?;
                    csv.schema = Some(Arc::new(Schema::new(fields)));
                }
                Ok(Format::Csv(Box::new(csv)))
            }
            "PARQUET" if !create.columns.is_empty() => Err(plan(
                "Parquet files have columns of their own: leave those of the statement out".into(),
            )),
            "PARQUET" => Ok(Format::Parquet(options::parquet(&state, BY, &given)?)),
            "JSON" | "NDJSON" | "ARROW" if !create.columns.is_empty() => Err(plan(
                "such files have columns of their own: leave those of the statement out".into(),
            )),
            "JSON" | "NDJSON" => Ok(Format::Json(options::json(&state, BY, &given)?)),
            "ARROW" => Ok(Format::Arrow(options::ipc(&state, BY, &given)?)),
            other => {
                let known = ["CSV", "TSV", "PARQUET", "JSON", "ARROW"].map(String::from);
                let help = match nearest(other, &known) {
                    Some(meant) => format!("did you mean {meant}?"),
                    None => format!("known: {}", known.join(", ")),
                };
                Err(plan(format!("no files are stored as {other:?}; {help}")))
            }
        }
    }
}

/// Refuses what nothing would look at.
fn refuse(create: &CreateExternalTable) -> Result<()> {
    let constrained = create.columns.iter().any(|column| {
        column.options.iter().any(|option| !matches!(option.option, ColumnOption::Null))
    });
    let clauses = [
        (!create.table_partition_cols.is_empty(), "PARTITIONED BY"),
        (!create.order_exprs.is_empty(), "WITH ORDER"),
        (create.unbounded, "UNBOUNDED"),
        (!create.constraints.is_empty() || constrained, "a constraint of a table of files"),
    ];
    match clauses.iter().find(|(there, _)| *there) {
        Some((_, clause)) => {
            Err(Error::unsupported(*clause, "no part of the engine would look at it"))
        }
        None => Ok(()),
    }
}

fn plan(message: String) -> Error {
    ErrorKind::Plan { message: format!("{BY}: {message}"), location: None }.into()
}
