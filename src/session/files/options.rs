//! Options of files by name: DuckDB's names where it has such an option, and those of
//! [`CsvOptions`].

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::execution::session_state::SessionState;
use datafusion::sql::sqlparser::ast::ColumnDef;

use super::column_types::{column_definitions, parsed_type};
use crate::error::{Error, ErrorKind, Result, nearest};
use crate::io::{CsvOptions, IpcOptions, JsonOptions, ParquetOptions, Ragged, TextEncoding};
use crate::session::types::data_type;
use crate::sql::ast::folded;

/// An option as a user gave it.
#[derive(Debug)]
pub(super) struct Given {
    /// In lower case.
    pub(super) name: String,
    pub(super) value: OptionValue,
    /// Line and column in the SQL text.
    pub(super) place: Option<(u64, u64)>,
}

/// What an option is given. A text may stand for a number or a truth value: all options of a
/// command line are texts.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum OptionValue {
    Text(String),
    Number(String),
    Boolean(bool),
    List(Vec<String>),
    Pairs(Vec<(String, String)>),
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |texts: &mut dyn Iterator<Item = String>| texts.collect::<Vec<_>>().join(", ");
        match self {
            OptionValue::Text(text) => write!(f, "'{text}'"),
            OptionValue::Number(number) => write!(f, "{number}"),
            OptionValue::Boolean(boolean) => write!(f, "{boolean}"),
            OptionValue::List(texts) => {
                write!(f, "[{}]", list(&mut texts.iter().map(|text| format!("'{text}'"))))
            }
            OptionValue::Pairs(pairs) => {
                write!(
                    f,
                    "{{{}}}",
                    list(&mut pairs.iter().map(|(name, of)| format!("'{name}': '{of}'")))
                )
            }
        }
    }
}

const UNION_BY_NAME: &str = "union_by_name";
const HIVE_PARTITIONING: &str = "hive_partitioning";
const HIVE_TYPES: &str = "hive_types";
const HIVE_TYPES_AUTOCAST: &str = "hive_types_autocast";
const FILENAME: &str = "filename";
const COLUMNS: &str = "columns";
const FORMAT: &str = "format";
const IGNORE_ERRORS: &str = "ignore_errors";
const INT96_UNIT: &str = "coerce_int96_timestamp_unit";

/// The options of columns that paths make, which files of all formats have.
const OF_PATHS: [&str; 4] = [HIVE_PARTITIONING, HIVE_TYPES, HIVE_TYPES_AUTOCAST, FILENAME];

/// Takes one of these.
macro_rules! of_paths {
    ($reader:ident, $options:ident) => {
        match $reader.option.name.as_str() {
            HIVE_PARTITIONING => $options.hive_partitioning = Some($reader.flag()?),
            HIVE_TYPES => $options.hive_types = $reader.columns()?,
            HIVE_TYPES_AUTOCAST => $options.hive_types_autocast = $reader.flag()?,
            _ => $options.filename = $reader.flag()?,
        }
    };
}

/// The options of CSV files, each with its other names.
const CSV: [(&str, &[&str]); 30] = [
    ("delim", &["sep", "delimiter"]),
    ("header", &["has_header"]),
    ("quote", &[]),
    ("escape", &[]),
    ("comment", &[]),
    ("skip", &[]),
    ("nullstr", &["nulls", "null_value"]),
    ("names", &["column_names"]),
    ("columns", &["schema"]),
    ("types", &["dtypes", "column_types"]),
    ("all_varchar", &[]),
    ("sample_size", &["schema_infer_max_rec"]),
    ("auto_detect", &["sniff"]),
    ("widen", &[]),
    ("dateformat", &["date_format"]),
    ("timestampformat", &["timestamp_format"]),
    ("decimal_separator", &[]),
    ("thousands", &[]),
    ("allow_quoted_nulls", &[]),
    ("trim", &[]),
    ("ragged", &[]),
    ("null_padding", &[]),
    (IGNORE_ERRORS, &[]),
    ("encoding", &[]),
    ("max_line_size", &["max_row_bytes"]),
    (UNION_BY_NAME, &[]),
    (HIVE_PARTITIONING, &[]),
    (HIVE_TYPES, &[]),
    (HIVE_TYPES_AUTOCAST, &[]),
    (FILENAME, &[]),
];

/// The options of CSV files; `by` is who was given them.
///
/// # Errors
/// Options that are none, values that are not theirs.
pub(super) fn csv(state: &SessionState, by: &str, given: &[Given]) -> Result<CsvOptions> {
    let mut options = CsvOptions::default();
    let (mut seen, mut types) = (vec![], None);
    for option in given {
        let known = |(name, others): &&(&str, &[&str])| {
            *name == option.name || others.contains(&option.name.as_str())
        };
        let reader = OptionReader { state, by, option };
        let Some((name, _)) = CSV.iter().find(known) else {
            return Err(reader.unknown(&CSV.map(|(name, _)| name)));
        };
        if seen.contains(name) {
            return Err(reader.wrong(format!("the option {name} is given twice")));
        }
        seen.push(*name);
        match *name {
            "delim" => options.delimiter = Some(reader.byte()?),
            "header" => options.has_header = Some(reader.flag()?),
            "quote" => options.quote = Some(reader.byte_or_none()?.unwrap_or(0)),
            "escape" => options.escape = reader.byte_or_none()?,
            "comment" => options.comment = reader.byte_or_none()?,
            "skip" => options.skip = reader.count()?,
            "nullstr" => options.nulls = reader.texts()?,
            "names" => options.names = Some(reader.texts()?),
            "columns" => options.schema = Some(reader.schema()?),
            "types" => match &option.value {
                OptionValue::List(texts) => types = Some((reader, texts)),
                _ => options.types = reader.columns()?,
            },
            "all_varchar" => options.all_varchar = reader.flag()?,
            "sample_size" => options.sample_size = reader.sample()?,
            "auto_detect" => options.sniff = reader.flag()?,
            "widen" => options.widen = reader.flag()?,
            "dateformat" => options.date_format = Some(reader.text()?),
            "timestampformat" => options.timestamp_format = Some(reader.text()?),
            "decimal_separator" => {
                options.decimal_comma = reader.one_of(&[(".", false), (",", true)])?
            }
            "thousands" => options.thousands = Some(reader.byte()?),
            "allow_quoted_nulls" => options.allow_quoted_nulls = reader.flag()?,
            "trim" => options.trim = reader.flag()?,
            "ragged" => {
                options.ragged = reader.one_of(&[
                    ("error", Ragged::Error),
                    ("fill", Ragged::Fill),
                    ("skip", Ragged::Skip),
                ])?;
            }
            "null_padding" => {
                options.ragged = if reader.flag()? { Ragged::Fill } else { Ragged::Error }
            }
            IGNORE_ERRORS => {
                options.ignore_errors = reader.flag()?;
                options.ragged = if options.ignore_errors { Ragged::Skip } else { Ragged::Error }
            }
            "encoding" => options.encoding = Some(reader.one_of(&ENCODINGS)?),
            "max_line_size" => options.max_row_bytes = reader.count()?,
            UNION_BY_NAME => options.union_by_name = reader.flag()?,
            name if OF_PATHS.contains(&name) => of_paths!(reader, options),
            other => {
                return Err(Error::internal(format!(
                    "the option {other} has a name and no meaning"
                )));
            }
        }
    }
    let of_rows = ["ragged", "null_padding", "ignore_errors"];
    if let [first, second, ..] =
        seen.iter().filter(|name| of_rows.contains(name)).collect::<Vec<_>>()[..]
    {
        let message =
            format!("{by}: the options {first} and {second} both say what becomes of ragged rows");
        return Err(ErrorKind::Plan {
            message,
            location: given.iter().rev().find_map(|given| given.place),
        }
        .into());
    }
    // By place, which only names tell the columns of.
    if let Some((reader, texts)) = types {
        let names = options.names.as_ref().filter(|names| names.len() == texts.len()).ok_or_else(|| {
            reader.wrong("a list of types goes with as many names; {'column': 'TYPE'} gives types by name".into())
        })?;
        let typed = |(name, text): (&String, &String)| Ok((name.clone(), reader.data_type(text)?));
        options.types = names.iter().zip(texts).map(typed).collect::<Result<_>>()?;
    }
    Ok(options)
}

const ENCODINGS: [(&str, TextEncoding); 5] = [
    ("utf-8", TextEncoding::Utf8),
    ("utf-16le", TextEncoding::Utf16Le),
    ("utf-16be", TextEncoding::Utf16Be),
    ("latin-1", TextEncoding::Latin1),
    ("windows-1252", TextEncoding::Windows1252),
];

/// The options of Parquet files.
///
/// # Errors
/// As [`csv`].
pub(super) fn parquet(state: &SessionState, by: &str, given: &[Given]) -> Result<ParquetOptions> {
    let mut options = ParquetOptions::default();
    for option in given {
        let reader = OptionReader { state, by, option };
        match option.name.as_str() {
            INT96_UNIT => {
                options.coerce_int96_timestamp_unit = reader.one_of(&[
                    ("s", TimeUnit::Second),
                    ("ms", TimeUnit::Millisecond),
                    ("us", TimeUnit::Microsecond),
                    ("ns", TimeUnit::Nanosecond),
                ])?;
            }
            UNION_BY_NAME => options.union_by_name = reader.flag()?,
            name if OF_PATHS.contains(&name) => of_paths!(reader, options),
            IGNORE_ERRORS => options.ignore_errors = reader.flag()?,
            _ => {
                return Err(reader.unknown_beside_paths(&[
                    INT96_UNIT,
                    UNION_BY_NAME,
                    IGNORE_ERRORS,
                ]));
            }
        }
    }
    Ok(options)
}

/// The options of JSON files.
///
/// # Errors
/// As [`csv`].
pub(super) fn json(state: &SessionState, by: &str, given: &[Given]) -> Result<JsonOptions> {
    let mut options = JsonOptions {
        lines: by.contains("ndjson"),
        objects: by.contains("objects"),
        ..JsonOptions::default()
    };
    for option in given {
        let reader = OptionReader { state, by, option };
        match option.name.as_str() {
            COLUMNS => options.columns = Some(reader.json_columns()?),
            FORMAT => {
                options.lines = reader.one_of(&[
                    ("auto", false),
                    ("array", false),
                    ("newline_delimited", true),
                    ("nd", true),
                    ("unstructured", true),
                ])?;
            }
            IGNORE_ERRORS => options.ignore_errors = reader.flag()?,
            // Columns of files are found by name in any case.
            UNION_BY_NAME => drop(reader.flag()?),
            name if OF_PATHS.contains(&name) => of_paths!(reader, options),
            _ => {
                return Err(reader.unknown_beside_paths(&[
                    COLUMNS,
                    FORMAT,
                    IGNORE_ERRORS,
                    UNION_BY_NAME,
                ]));
            }
        }
    }
    Ok(options)
}

/// The options of Arrow files.
///
/// # Errors
/// As [`csv`].
pub(super) fn ipc(state: &SessionState, by: &str, given: &[Given]) -> Result<IpcOptions> {
    let mut options = IpcOptions::default();
    for option in given {
        let reader = OptionReader { state, by, option };
        match option.name.as_str() {
            UNION_BY_NAME => options.union_by_name = reader.flag()?,
            name if OF_PATHS.contains(&name) => of_paths!(reader, options),
            IGNORE_ERRORS => options.ignore_errors = reader.flag()?,
            _ => {
                return Err(reader.unknown_beside_paths(&[UNION_BY_NAME, IGNORE_ERRORS]));
            }
        }
    }
    Ok(options)
}

/// An option's value, read as what the option takes.
struct OptionReader<'a> {
    state: &'a SessionState,
    by: &'a str,
    option: &'a Given,
}

impl OptionReader<'_> {
    fn wrong(&self, message: String) -> Error {
        ErrorKind::Plan { message: format!("{}: {message}", self.by), location: self.option.place }
            .into()
    }

    fn unknown(&self, known: &[&str]) -> Error {
        let names: Vec<String> = known.iter().map(ToString::to_string).collect();
        match nearest(&self.option.name, &names) {
            Some(meant) => {
                self.wrong(format!("no option named {:?}; did you mean {meant}?", self.option.name))
            }
            None => self.wrong(format!(
                "no option named {:?}; known: {}",
                self.option.name,
                known.join(", ")
            )),
        }
    }

    /// Beside the options of paths.
    fn unknown_beside_paths(&self, known: &[&str]) -> Error {
        self.unknown(&[known, &OF_PATHS].concat())
    }

    fn takes(&self, what: &str) -> Error {
        self.wrong(format!(
            "the option {} takes {what}, not {}",
            self.option.name, self.option.value
        ))
    }

    fn text(&self) -> Result<String> {
        match &self.option.value {
            OptionValue::Text(text) => Ok(text.clone()),
            _ => Err(self.takes("a text")),
        }
    }

    /// One byte; a tab may be written as `\t`.
    fn byte_or_none(&self) -> Result<Option<u8>> {
        let text = match &self.option.value {
            OptionValue::Text(text) => text.as_bytes(),
            _ => &[0x80],
        };
        match text {
            [] => Ok(None),
            b"\\t" => Ok(Some(b'\t')),
            [byte] if byte.is_ascii() && *byte != 0 => Ok(Some(*byte)),
            _ => Err(self.takes("one ASCII character")),
        }
    }

    fn byte(&self) -> Result<u8> {
        self.byte_or_none()?.ok_or_else(|| self.takes("one ASCII character"))
    }

    fn flag(&self) -> Result<bool> {
        match &self.option.value {
            OptionValue::Boolean(flag) => Ok(*flag),
            OptionValue::Text(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            OptionValue::Text(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            _ => Err(self.takes("true or false")),
        }
    }

    fn number(&self) -> Option<i64> {
        match &self.option.value {
            OptionValue::Number(text) | OptionValue::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn count(&self) -> Result<usize> {
        self.number()
            .and_then(|number| usize::try_from(number).ok())
            .ok_or_else(|| self.takes("a number from 0 on"))
    }

    /// Rows of a sample; -1 is all.
    fn sample(&self) -> Result<Option<usize>> {
        match self.number() {
            Some(-1) => Ok(None),
            Some(rows) if rows > 0 => Ok(Some(rows as usize)),
            _ => Err(self.takes("a number of rows, or -1 for all")),
        }
    }

    fn texts(&self) -> Result<Vec<String>> {
        match &self.option.value {
            OptionValue::Text(text) => Ok(vec![text.clone()]),
            OptionValue::List(texts) => Ok(texts.clone()),
            _ => Err(self.takes("a text or a list of texts")),
        }
    }

    fn one_of<T: Copy>(&self, known: &[(&str, T)]) -> Result<T> {
        let found = match &self.option.value {
            OptionValue::Text(text) => {
                known.iter().find(|(name, _)| text.eq_ignore_ascii_case(name))
            }
            _ => None,
        };
        let names =
            || known.iter().map(|(name, _)| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        found.map(|(_, of)| *of).ok_or_else(|| self.takes(&format!("one of {}", names())))
    }

    /// A schema of the columns that [`Self::columns`] reads.
    fn schema(&self) -> Result<SchemaRef> {
        let fields = self.columns()?.into_iter().map(|(name, of)| Field::new(name, of, true));
        Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
    }

    /// Columns with their types: `{'a': 'BIGINT'}`, or `'a BIGINT, b VARCHAR'`.
    fn columns(&self) -> Result<Vec<(String, DataType)>> {
        match &self.option.value {
            OptionValue::Pairs(pairs) => {
                pairs.iter().map(|(name, of)| Ok((name.clone(), self.data_type(of)?))).collect()
            }
            OptionValue::Text(text) => {
                let columns = column_definitions(text).map_err(|message| self.wrong(message))?;
                let typed = |column: ColumnDef| {
                    let of = column.data_type.clone();
                    let of = data_type(self.state, of).map_err(|message| self.wrong(message))?;
                    Ok((folded(&column.name), of))
                };
                columns.into_iter().map(typed).collect()
            }
            _ => Err(self.takes(
                "types by name, as {'a': 'BIGINT', 'b': 'VARCHAR'} or 'a BIGINT, b VARCHAR'",
            )),
        }
    }

    /// Columns with their types; without a type where that is JSON, the text of values.
    fn json_columns(&self) -> Result<Vec<(String, Option<DataType>)>> {
        let OptionValue::Pairs(pairs) = &self.option.value else {
            return Ok(self.columns()?.into_iter().map(|(name, of)| (name, Some(of))).collect());
        };
        let typed = |(name, of): &(String, String)| match of.eq_ignore_ascii_case("json") {
            true => Ok((name.clone(), None)),
            false => Ok((name.clone(), Some(self.data_type(of)?))),
        };
        pairs.iter().map(typed).collect()
    }

    fn data_type(&self, text: &str) -> Result<DataType> {
        parsed_type(text)
            .and_then(|of| data_type(self.state, of))
            .map_err(|message| self.wrong(message))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::context::SessionContext;

    use super::*;

    fn of(options: &[(&str, OptionValue)]) -> Result<CsvOptions> {
        let given = |(name, value): &(&str, OptionValue)| Given {
            name: (*name).into(),
            value: value.clone(),
            place: None,
        };
        csv(
            &SessionContext::new().state(),
            "read_csv",
            &options.iter().map(given).collect::<Vec<_>>(),
        )
    }

    fn text(text: &str) -> OptionValue {
        OptionValue::Text(text.into())
    }

    #[test]
    fn every_option_has_a_meaning_by_each_of_its_names() {
        let values = [
            text("|"),
            text("true"),
            text("7"),
            text("error"),
            text("."),
            text("utf-8"),
            text("a BIGINT"),
        ];
        for (name, others) in CSV {
            for name in std::iter::once(&name).chain(others) {
                let read =
                    values.iter().filter_map(|value| of(&[(name, value.clone())]).ok()).next();
                assert!(read.is_some(), "{name} takes none of {values:?}");
            }
        }
    }

    #[test]
    fn mistakes_are_told_with_what_is_allowed() {
        let wrong = |options: &[(&str, OptionValue)]| of(options).unwrap_err().to_string();
        for (options, expected) in [
            (vec![("delimeter", text(";"))], "known: delim, header, quote"),
            (vec![("heder", text("true"))], "no option named \"heder\"; did you mean header?"),
            (vec![("delim", text(";;"))], "delim takes one ASCII character, not ';;'"),
            (vec![("delim", text(""))], "delim takes one ASCII character, not ''"),
            (vec![("delim", text(";")), ("sep", text(","))], "the option delim is given twice"),
            (
                vec![("skip", OptionValue::Number("-2".into()))],
                "skip takes a number from 0 on, not -2",
            ),
            (vec![("sample_size", OptionValue::Number("0".into()))], "or -1 for all, not 0"),
            (vec![("header", text("maybe"))], "true or false, not 'maybe'"),
            (vec![("encoding", text("ebcdic"))], "'utf-8', 'utf-16le'"),
            (vec![("types", OptionValue::List(vec!["BIGINT".into()]))], "goes with as many names"),
            (
                vec![("types", OptionValue::Pairs(vec![("a".into(), "BIGINT) + (1".into())]))],
                "is no type",
            ),
            (vec![("columns", text("a BIGINT NOT NULL"))], "no constraints"),
            (
                vec![("ragged", text("skip")), ("null_padding", OptionValue::Boolean(true))],
                "the options ragged and null_padding",
            ),
        ] {
            let told = wrong(&options);
            assert!(told.starts_with("read_csv: ") && told.contains(expected), "{told}");
        }
    }

    #[test]
    fn types_are_read_as_sql_has_them() {
        let read = of(&[("columns", text("A DECIMAL(9, 2), \"B\" DATE"))]).unwrap();
        let schema = read.schema.unwrap();
        assert_eq!(schema.field(0).name(), "a");
        assert_eq!(schema.field(0).data_type(), &DataType::Decimal128(9, 2));
        assert_eq!(schema.field(1).name(), "B");
        let names = OptionValue::List(vec!["x".into()]);
        let read =
            of(&[("names", names), ("types", OptionValue::List(vec!["SMALLINT".into()]))]).unwrap();
        assert_eq!(read.types, [("x".to_string(), DataType::Int16)]);
    }
}
