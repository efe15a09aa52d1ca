//! What a user says of CSV files before they are read.

use datafusion::arrow::datatypes::{DataType, SchemaRef};

use crate::error::{ErrorKind, Result};
use crate::io::options::PathOptions;

/// How CSV files are laid out, and what types their columns have. The rules are in `docs/csv.md`.
///
/// What is `None` is found out by looking at the files.
///
/// ```
/// use warpframe::prelude::*;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("numbers.tsv");
/// std::fs::write(&path, "1\tone\n2\ttwo\n")?;
/// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let tabs = CsvOptions { delimiter: Some(b'\t'), has_header: Some(false), ..CsvOptions::default() };
/// let numbers = session.scan_csv_with(&path, tabs)?.filter(col("column_2").eq(lit("two")))?.collect()?;
/// assert_eq!(numbers.num_rows(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvOptions {
    /// Whether the first row names the columns; otherwise they are `column_1`, `column_2`, and so
    /// on. Found out by [`CsvOptions::sniff`]; without it, it does.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let options = CsvOptions { has_header: Some(false), ..CsvOptions::default() };
    /// ```
    pub has_header: Option<bool>,
    /// Between values. Found out by the file's extension (`.tsv`, `.tab`, `.psv`) or by
    /// [`CsvOptions::sniff`]; without it, a comma.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let options = CsvOptions { delimiter: Some(b';'), ..CsvOptions::default() };
    /// ```
    pub delimiter: Option<u8>,
    /// Around values that contain delimiters or line ends. Found out by [`CsvOptions::sniff`];
    /// without it, `"`. A zero byte is for files that quote nothing.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let options = CsvOptions { quote: Some(b'\''), ..CsvOptions::default() };
    /// ```
    pub quote: Option<u8>,
    /// Inside quotes, it and the byte behind it are that byte. A doubled quote is one quote anyway.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let options = CsvOptions { escape: Some(b'\\'), ..CsvOptions::default() };
    /// ```
    pub escape: Option<u8>,
    /// Lines that begin with it are left out.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let options = CsvOptions { comment: Some(b'#'), ..CsvOptions::default() };
    /// ```
    pub comment: Option<u8>,
    /// Whether to find out delimiter, quote and header where they are not given.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let commas_and_a_header = CsvOptions { sniff: false, ..CsvOptions::default() };
    /// ```
    pub sniff: bool,
    /// Lines before the header that are left out, whatever they hold.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let options = CsvOptions { skip: 2, ..CsvOptions::default() };
    /// ```
    pub skip: usize,
    /// The names of all columns, in place of those of the header.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let names = Some(vec!["id".to_string(), "price".to_string()]);
    /// let options = CsvOptions { names, has_header: Some(false), ..CsvOptions::default() };
    /// ```
    pub names: Option<Vec<String>>,
    /// The types of columns, by name. Their values are what `CAST` makes of the texts; what it
    /// refuses is an error.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// use warpframe::arrow::datatypes::DataType;
    /// let types = vec![("zip".to_string(), DataType::Utf8View)];
    /// let options = CsvOptions { types, ..CsvOptions::default() };
    /// ```
    pub types: Vec<(String, DataType)>,
    /// Names and types of all columns: nothing is inferred.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use warpframe::CsvOptions;
    /// use warpframe::arrow::datatypes::{DataType, Field, Schema};
    /// let schema = Schema::new(vec![Field::new("id", DataType::Int64, true)]);
    /// let options = CsvOptions { schema: Some(Arc::new(schema)), ..CsvOptions::default() };
    /// ```
    pub schema: Option<SchemaRef>,
    /// Whether all columns whose types are not given are text: nothing is inferred.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let options = CsvOptions { all_varchar: true, ..CsvOptions::default() };
    /// ```
    pub all_varchar: bool,
    /// Rows looked at to infer the columns' types: as many at the begin of each file, and at each
    /// of some places all over it. `None` is all rows.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let options = CsvOptions { sample_size: None, ..CsvOptions::default() };
    /// ```
    pub sample_size: Option<usize>,
    /// Whether a column gets a wider type where a value does not fit the inferred one. Otherwise
    /// such a value is an error. Given types are never widened.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let options = CsvOptions { widen: false, ..CsvOptions::default() };
    /// ```
    pub widen: bool,
    /// Unquoted values that are NULL, besides the empty one.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let options = CsvOptions { nulls: vec!["NA".into(), "\\N".into()], ..CsvOptions::default() };
    /// ```
    pub nulls: Vec<String>,
    /// Whether quoted values may be NULL, too: the empty one and those of [`CsvOptions::nulls`].
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let options = CsvOptions { allow_quoted_nulls: true, ..CsvOptions::default() };
    /// ```
    pub allow_quoted_nulls: bool,
    /// Whether spaces and tabs around unquoted values are dropped. Around numbers, dates and the
    /// like they are in any case.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let options = CsvOptions { trim: true, ..CsvOptions::default() };
    /// ```
    pub trim: bool,
    /// What becomes of rows that have more or fewer values than there are columns.
    ///
    /// ```
    /// use warpframe::{CsvOptions, Ragged};
    /// let options = CsvOptions { ragged: Ragged::Fill, ..CsvOptions::default() };
    /// ```
    pub ragged: Ragged,
    /// Whether rows are left out that have a value which does not fit a type that was given, or one
    /// that was inferred where types are not to become wider, or a text that is no UTF-8, whichever
    /// columns are asked for. Otherwise they are errors.
    /// [`crate::Session::take_file_notes`] tells of them. Rows of another length are for
    /// [`CsvOptions::ragged`] to say.
    ///
    /// ```
    /// use warpframe::{CsvOptions, Ragged};
    /// let lenient =
    ///     CsvOptions { ignore_errors: true, ragged: Ragged::Skip, ..CsvOptions::default() };
    /// ```
    pub ignore_errors: bool,
    /// How dates are written, as [strftime](https://docs.rs/chrono/latest/chrono/format/strftime/)
    /// has it, where they are not as in 2024-02-29.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let options = CsvOptions { date_format: Some("%d.%m.%Y".into()), ..CsvOptions::default() };
    /// ```
    pub date_format: Option<String>,
    /// How timestamps are written, where they are not as in 2024-02-29 12:00:00.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let options = CsvOptions { timestamp_format: Some("%d/%b/%Y:%H:%M:%S %z".into()), ..CsvOptions::default() };
    /// ```
    pub timestamp_format: Option<String>,
    /// Whether numbers have a comma where others have a point.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let german = CsvOptions { decimal_comma: true, thousands: Some(b'.'), ..CsvOptions::default() };
    /// ```
    pub decimal_comma: bool,
    /// What stands between groups of three digits in numbers.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let options = CsvOptions { thousands: Some(b','), delimiter: Some(b';'), ..CsvOptions::default() };
    /// ```
    pub thousands: Option<u8>,
    /// How the file's characters are encoded: in UTF-8, or UTF-16 where it begins with a byte order
    /// mark of that.
    ///
    /// ```
    /// use warpframe::{CsvOptions, TextEncoding};
    /// let options = CsvOptions { encoding: Some(TextEncoding::Windows1252), ..CsvOptions::default() };
    /// ```
    pub encoding: Option<TextEncoding>,
    /// Longer rows are an error, so that a quote that nothing closes does not take all memory. At
    /// most 1 GiB.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let options = CsvOptions { max_row_bytes: 1 << 30, ..CsvOptions::default() };
    /// ```
    pub max_row_bytes: usize,
    /// Whether files of one table may have other columns, which are found by the names in their
    /// headers: a column that a file lacks is NULL there. Otherwise all files have the same header.
    /// Without a header, and where names are given, columns are known by their place.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let options = CsvOptions { union_by_name: false, ..CsvOptions::default() };
    /// ```
    pub union_by_name: bool,
    /// Whether directories named `key=value` make columns: where not said, if all files of a table
    /// lie in such of the same keys.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let options = CsvOptions { hive_partitioning: Some(false), ..CsvOptions::default() };
    /// ```
    pub hive_partitioning: Option<bool>,
    /// Types of columns that such directories make, by name. Without a type, one follows from the
    /// values.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// use warpframe::arrow::datatypes::DataType;
    /// let hive_types = vec![("zip".to_string(), DataType::Utf8View)];
    /// let options = CsvOptions { hive_types, ..CsvOptions::default() };
    /// ```
    pub hive_types: Vec<(String, DataType)>,
    /// Whether such columns are integers and dates where all of their values are; otherwise they are
    /// texts, but for those with a type.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let options = CsvOptions { hive_types_autocast: false, ..CsvOptions::default() };
    /// ```
    pub hive_types_autocast: bool,
    /// Whether there is a column `filename` with the path of the file that a row comes from. Files
    /// must have no column of that name.
    ///
    /// ```
    /// use warpframe::CsvOptions;
    /// let options = CsvOptions { filename: true, ..CsvOptions::default() };
    /// ```
    pub filename: bool,
}

/// What becomes of rows that have another number of values than there are columns.
///
/// ```
/// assert_eq!(warpframe::CsvOptions::default().ragged, warpframe::Ragged::Error);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ragged {
    /// They are an error.
    #[default]
    Error,
    /// Values that are missing are NULL; too many are an error.
    Fill,
    /// They are left out.
    Skip,
}

/// How characters are encoded.
///
/// ```
/// assert_eq!(warpframe::CsvOptions::default().encoding, None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextEncoding {
    /// The only one that files are read in as they lie.
    Utf8,
    /// UTF-16, low bytes first.
    Utf16Le,
    /// UTF-16, high bytes first.
    Utf16Be,
    /// ISO 8859-1.
    Latin1,
    /// The encoding of western Windows, of which Latin-1 is a part.
    Windows1252,
}

impl Default for CsvOptions {
    fn default() -> Self {
        CsvOptions {
            has_header: None,
            delimiter: None,
            quote: None,
            escape: None,
            comment: None,
            sniff: true,
            skip: 0,
            names: None,
            types: vec![],
            schema: None,
            all_varchar: false,
            sample_size: Some(1000),
            widen: true,
            nulls: vec![],
            allow_quoted_nulls: false,
            trim: false,
            ragged: Ragged::Error,
            ignore_errors: false,
            date_format: None,
            timestamp_format: None,
            decimal_comma: false,
            thousands: None,
            encoding: None,
            max_row_bytes: 128 << 20,
            union_by_name: true,
            hive_partitioning: None,
            hive_types: vec![],
            hive_types_autocast: true,
            filename: false,
        }
    }
}

impl CsvOptions {
    pub(crate) fn paths(&self) -> PathOptions {
        PathOptions {
            hive_partitioning: self.hive_partitioning,
            hive_types: self.hive_types.clone(),
            hive_types_autocast: self.hive_types_autocast,
            filename: self.filename,
        }
    }

    /// # Errors
    /// Bytes that would mean two things.
    pub(crate) fn check(&self) -> Result<()> {
        let plan = |message| Err(ErrorKind::Plan { message, location: None }.into());
        let given = [
            ("delimiter", self.delimiter),
            ("quote", self.quote),
            ("escape", self.escape.filter(|escape| Some(*escape) != self.quote)),
            ("comment", self.comment),
        ];
        for (at, (name, byte)) in given.iter().enumerate() {
            let Some(byte) = byte else { continue };
            if matches!(byte, b'\n' | b'\r') || !byte.is_ascii() {
                return plan(format!("the CSV option {name} is {byte:#04x}, which cannot be one"));
            }
            if let Some((other, _)) = given[..at].iter().find(|(_, other)| *other == Some(*byte)) {
                return plan(format!(
                    "the CSV options {other} and {name} are both {:?}",
                    *byte as char
                ));
            }
        }
        if let Some(byte) = self.thousands
            && (byte.is_ascii_digit() || byte == if self.decimal_comma { b',' } else { b'.' })
        {
            return plan(format!(
                "the CSV option thousands is {:?}, which numbers have elsewhere",
                byte as char
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_two_meanings_are_refused() {
        let plain = CsvOptions::default();
        for options in [
            CsvOptions { delimiter: Some(b'"'), quote: Some(b'"'), ..plain.clone() },
            CsvOptions { delimiter: Some(b'\n'), ..plain.clone() },
            CsvOptions { comment: Some(b'#'), delimiter: Some(b'#'), ..plain.clone() },
            CsvOptions { thousands: Some(b'.'), ..plain.clone() },
            CsvOptions { quote: Some(0xE9), ..plain.clone() },
        ] {
            assert!(options.check().is_err(), "{options:?}");
        }
        // Those who know quotes doubled only as escaped say so.
        assert!(CsvOptions { quote: Some(b'"'), escape: Some(b'"'), ..plain }.check().is_ok());
    }
}
