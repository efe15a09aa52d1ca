//! Frames as text: what `println!("{frame}")` shows, and the tables that the command prints.

mod terminal;
mod text_table;

use std::fmt::{self, Display};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::FormatOptions;
use parking_lot::RwLock;

use super::DataFrame;
use crate::error::Result;
use crate::host::value_texts;
pub use terminal::terminal_size;
pub use text_table::TextTable;
use text_table::{cut_to, type_name, visible};

/// What a table is drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Borders {
    /// Lines of Unicode's box characters.
    Lines,
    /// `+`, `-` and `|`.
    Ascii,
}

/// How frames are shown.
///
/// ```
/// use warpframe::frame::FrameFormat;
/// use warpframe::prelude::*;
///
/// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = frame!(session; "n" => [1, 2, 3, 4], "s" => ["one", None, "three", "four"])?;
/// let expected = "\
/// shape: (4, 2)
/// ┌─────┬───────┐
/// │   n ┆ s     │
/// │ i32 ┆ str   │
/// ╞═════╪═══════╡
/// │   1 ┆ one   │
/// │   2 ┆ null  │
/// │   3 ┆ three │
/// │   4 ┆ four  │
/// └─────┴───────┘";
/// assert_eq!(frame.to_string(), expected);
/// let expected = "\
/// ┌───┬──────┐
/// │ n ┆ s    │
/// ╞═══╪══════╡
/// │ 1 ┆ one  │
/// │ … ┆ …    │
/// │ 4 ┆ four │
/// └───┴──────┘";
/// assert_eq!(FrameFormat::new().max_rows(2).types(false).shape(false).text(&frame)?, expected);
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameFormat {
    max_rows: Option<usize>,
    max_columns: Option<usize>,
    max_width: Option<usize>,
    max_chars: Option<usize>,
    decimals: Option<usize>,
    min_chars: Option<usize>,
    null: String,
    dim_nulls: bool,
    borders: Borders,
    types: bool,
    sql_types: bool,
    shape: bool,
}

/// What `Display` uses, where a program has set it.
static OF_PROCESS: RwLock<Option<FrameFormat>> = RwLock::new(None);

impl Default for FrameFormat {
    fn default() -> Self {
        FrameFormat::new()
    }
}

impl FrameFormat {
    /// Ten rows, eight columns, 32 characters a value and six decimals at most, no wider than the
    /// terminal.
    pub fn new() -> FrameFormat {
        FrameFormat {
            max_rows: Some(10),
            max_columns: Some(8),
            max_width: terminal::columns(),
            max_chars: Some(32),
            decimals: Some(6),
            min_chars: None,
            null: "null".into(),
            dim_nulls: false,
            borders: Borders::Lines,
            types: true,
            sql_types: false,
            shape: true,
        }
    }

    /// Everything, exactly as it is.
    pub fn whole() -> FrameFormat {
        let none = None;
        FrameFormat::new()
            .max_rows(none)
            .max_columns(none)
            .max_width(none)
            .max_chars(none)
            .decimals(none)
    }

    /// Rows that are shown, the first and the last ones; `None` shows all.
    pub fn max_rows(self, rows: impl Into<Option<usize>>) -> Self {
        FrameFormat { max_rows: rows.into(), ..self }
    }

    /// Columns that are shown, the first and the last ones; `None` shows all.
    pub fn max_columns(self, columns: impl Into<Option<usize>>) -> Self {
        FrameFormat { max_columns: columns.into(), ..self }
    }

    /// Characters of a line; columns in the middle are left out where lines would be longer, but
    /// the first and the last column. `None` is any length.
    pub fn max_width(self, characters: impl Into<Option<usize>>) -> Self {
        FrameFormat { max_width: characters.into(), ..self }
    }

    /// Characters of a value and of a name, at least one; `None` is any number.
    pub fn max_chars(self, characters: impl Into<Option<usize>>) -> Self {
        FrameFormat { max_chars: characters.into().map(|n: usize| n.max(1)), ..self }
    }

    /// Before a column is left out for want of width, texts and names are cut, down to so many
    /// characters at least; numbers never are. `None` cuts nothing for that.
    pub fn min_chars(self, characters: impl Into<Option<usize>>) -> Self {
        FrameFormat { min_chars: characters.into().map(|n: usize| n.max(1)), ..self }
    }

    /// Digits after the decimal point of floating-point numbers, trailing zeros left out; `None`
    /// shows as many as tell a number from all others of its type.
    pub fn decimals(self, digits: impl Into<Option<usize>>) -> Self {
        FrameFormat { decimals: digits.into(), ..self }
    }

    /// What stands for null.
    pub fn null(self, text: impl Into<String>) -> Self {
        FrameFormat { null: text.into(), ..self }
    }

    /// Whether nulls are written dim, by the escape sequences of terminals: a text of the same
    /// letters is not.
    pub fn dim_nulls(self, dim: bool) -> Self {
        FrameFormat { dim_nulls: dim, ..self }
    }

    /// What the table is drawn with.
    pub fn borders(self, borders: Borders) -> Self {
        FrameFormat { borders, ..self }
    }

    /// Whether types stand under the names.
    pub fn types(self, shown: bool) -> Self {
        FrameFormat { types: shown, ..self }
    }

    /// Whether types have SQL's names, as `DESCRIBE` tells them, in the place of short ones; long
    /// ones are cut.
    ///
    /// ```
    /// # use warpframe::frame::FrameFormat;
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = frame!(session; "s" => ["a"])?;
    /// assert!(FrameFormat::new().sql_types(true).text(&frame)?.contains("VARCHAR"));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn sql_types(self, sql: bool) -> Self {
        FrameFormat { sql_types: sql, ..self }
    }

    /// Whether the numbers of rows and columns stand above the table.
    pub fn shape(self, shown: bool) -> Self {
        FrameFormat { shape: shown, ..self }
    }

    /// Has `Display` and `Debug` of all frames of this process use this format.
    pub fn set_for_process(self) {
        *OF_PROCESS.write() = Some(self);
    }

    fn of_process() -> FrameFormat {
        OF_PROCESS.read().clone().unwrap_or_default()
    }

    /// A frame as text, without a line end behind the last line. Only the rows that are shown are
    /// copied from the device.
    ///
    /// # Errors
    /// Those of [`DataFrame::to_arrow`].
    pub fn text(&self, frame: &DataFrame) -> Result<String> {
        let (rows, columns) = (frame.num_rows(), frame.state.schema.fields().len());
        let most = self.max_rows.unwrap_or(rows);
        let (above, below, between) = match rows > most {
            true => (
                frame.rows_from(0, most.div_ceil(2))?,
                frame.rows_from(rows - most / 2, most / 2)?,
                true,
            ),
            false => (frame.to_arrow()?, vec![], false),
        };
        let mut table = TextTable::new(&frame.state.schema, self);
        for batch in above.iter().chain(&below) {
            table.measure(batch)?;
        }
        table.fit();
        let mut text = String::new();
        if self.shape {
            text.push_str(&format!("shape: ({rows}, {columns})\n"));
        }
        table.write_head(&mut text);
        above.iter().try_for_each(|batch| table.write_rows(&mut text, batch))?;
        if between {
            table.write_gap(&mut text);
        }
        below.iter().try_for_each(|batch| table.write_rows(&mut text, batch))?;
        table.write_foot(&mut text);
        text.truncate(text.trim_end_matches('\n').len());
        Ok(text)
    }
}

impl Display for DataFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match FrameFormat::of_process().text(self) {
            Ok(text) => f.write_str(&text),
            Err(error) => {
                write!(f, "a frame of {} rows that cannot be shown: {error}", self.num_rows())
            }
        }
    }
}

/// As it is displayed.
impl fmt::Debug for DataFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl DataFrame {
    /// Prints the frame as [`FrameFormat`] says, twenty rows at most.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.sql("VALUES (1, 'a'), (2, 'b')")?.collect()?.show()?;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn show(&self) -> Result<()> {
        println!("{}", FrameFormat::of_process().max_rows(20).text(self)?);
        Ok(())
    }

    /// A line a column: its name, its type and its first values; for frames of many columns.
    ///
    /// # Errors
    /// Those of [`DataFrame::to_arrow`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = frame!(session; "n" => [1, 2], "name" => ["one", "two"])?;
    /// assert_eq!(frame.glimpse()?, "2 rows, 2 columns\nn     i32  1, 2\nname  str  one, two");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn glimpse(&self) -> Result<String> {
        const ROWS: usize = 10;
        let format = FrameFormat::of_process();
        let batches = self.rows_from(0, ROWS)?;
        let width = format.max_width.unwrap_or(100);
        let heads = self
            .state
            .schema
            .fields()
            .iter()
            .map(|field| (visible(field.name()), type_name(field.data_type())));
        let heads: Vec<_> =
            heads.map(|(name, kind)| (cut_to(name, format.max_chars), kind)).collect();
        let widest =
            |texts: &mut dyn Iterator<Item = &str>| texts.map(text_table::width).max().unwrap_or(0);
        let names = widest(&mut heads.iter().map(|(name, _)| name.as_str()));
        let kinds = widest(&mut heads.iter().map(|(_, kind)| kind.as_str()));
        let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let mut text =
            format!("{}, {}", plural(self.num_rows(), "row"), plural(heads.len(), "column"));
        for (at, (name, kind)) in heads.iter().enumerate() {
            let (after_name, after_kind) =
                (names - text_table::width(name), kinds - text_table::width(kind));
            let line = format!("{name}{:after_name$}  {kind}{:after_kind$}  ", "", "");
            let room = width.saturating_sub(text_table::width(&line)).max(8);
            let values = cut_to(first_values(&batches, at, &format.null)?.join(", "), Some(room));
            text.push_str(&format!("\n{line}{values}"));
        }
        Ok(text)
    }
}

fn first_values(batches: &[RecordBatch], column: usize, null: &str) -> Result<Vec<String>> {
    let options = FormatOptions::new().with_null(null);
    let mut values = vec![];
    for batch in batches {
        let texts = value_texts(batch.column(column), &options)?;
        for row in 0..batch.num_rows() {
            values.push(visible(&texts.value(row).try_to_string()?));
        }
    }
    Ok(values)
}
