//! A table drawn with characters, row by row.

use std::fmt::Write;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type, Schema, TimeUnit};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Borders, FrameFormat};
use crate::error::Result;
use crate::host::value_texts;
use crate::sql;

/// Stands for what is left out.
const GAP: &str = "…";
/// What terminals write dim, from and to.
const DIM: (&str, &str) = ("\x1b[2m", "\x1b[0m");

/// Draws a table without keeping its rows: [`TextTable::measure`] is shown all rows that are to be
/// drawn, for the columns' widths, then the `write_` functions draw.
///
/// Numbers stand to the right. Control characters are written as Rust escapes them, since line
/// ends would break the table, and escape sequences the terminal.
///
/// ```
/// use std::sync::Arc;
/// use warpframe::arrow::array::{ArrayRef, Int64Array, RecordBatch};
/// use warpframe::frame::{Borders, FrameFormat, TextTable};
///
/// let x = Arc::new(Int64Array::from(vec![Some(1), None, Some(300)])) as ArrayRef;
/// let batch = RecordBatch::try_from_iter([("x", x)])?;
/// let format = FrameFormat::whole().borders(Borders::Ascii).types(false).null("NULL");
/// let mut table = TextTable::new(&batch.schema(), &format);
/// table.measure(&batch)?;
/// let mut text = String::new();
/// table.write_head(&mut text);
/// table.write_rows(&mut text, &batch)?;
/// table.write_foot(&mut text);
/// assert_eq!(text, "\
/// +------+
/// | x    |
/// +------+
/// |    1 |
/// | NULL |
/// |  300 |
/// +------+
/// ");
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TextTable {
    format: FrameFormat,
    /// Those that are shown, in order.
    columns: Vec<TextColumn>,
    /// How many are not.
    left_out: usize,
    /// The columns from here on stand behind a gap, where some are left out.
    gap: Option<usize>,
    /// Whether texts may be wider than their columns, which are cut then.
    cut: bool,
}

#[derive(Debug, Clone)]
struct TextColumn {
    /// Its place in the batches.
    at: usize,
    name: String,
    kind: String,
    width: usize,
    /// Of the widest value.
    values: usize,
    is_number: bool,
}

/// Most characters of a type's name in SQL: those of structs have all of their fields.
const MOST_OF_TYPE: usize = 24;

impl TextColumn {
    /// What it is cut to at most, where texts may be cut to `least` characters.
    fn least_width(&self, least: usize) -> usize {
        self.width.min(if self.is_number { least.max(self.values) } else { least })
    }
}

impl TextTable {
    /// The table of these columns, before it has seen a row.
    pub fn new(schema: &Schema, format: &FrameFormat) -> TextTable {
        let fields = schema.fields();
        let columns = fields.iter().enumerate().map(|(at, field)| {
            let name = cut_to(visible(field.name()), format.max_chars);
            let kind = match (format.types, format.sql_types) {
                (false, _) => String::new(),
                (true, false) => type_name(field.data_type()),
                (true, true) => {
                    cut_to(visible(&sql::type_name(field.data_type())), Some(MOST_OF_TYPE))
                }
            };
            let width = width(&name).max(width(&kind));
            TextColumn { at, name, kind, width, values: 0, is_number: is_number(field.data_type()) }
        });
        let mut table = TextTable {
            format: format.clone(),
            columns: columns.collect(),
            left_out: 0,
            gap: None,
            cut: false,
        };
        if let Some(most) = format.max_columns {
            while table.columns.len() > most.max(2) {
                table.leave_one_out();
            }
        }
        table
    }

    /// Makes the columns as wide as these rows need.
    ///
    /// # Errors
    /// A value that has no text.
    pub fn measure(&mut self, batch: &RecordBatch) -> Result<()> {
        let options = FormatOptions::new().with_null(&self.format.null);
        let mut text = String::new();
        for column in &mut self.columns {
            let values = ShownValues::of(batch.column(column.at), &options, &self.format)?;
            for row in 0..batch.num_rows() {
                values.text_of(row, &mut text)?;
                column.values = column.values.max(width(&text));
            }
            column.width = column.width.max(column.values);
        }
        Ok(())
    }

    /// Keeps to the format's width: cuts texts, as far as the format allows, and leaves out columns
    /// in the middle where that is not enough.
    pub fn fit(&mut self) {
        let Some(most) = self.format.max_width else { return };
        while !self.cut_to_fit(most) && self.columns.len() > 2 {
            self.leave_one_out();
        }
    }

    /// Columns that the table does not show.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Cuts the widest columns to one width, the greatest with which lines are short enough. The
    /// first column, which mostly names the rows, stays whole where the others leave it room.
    /// Whether lines are short enough then.
    fn cut_to_fit(&mut self, most: usize) -> bool {
        let gap = if self.gap.is_some() { width(GAP) + 3 } else { 0 };
        let edges = 3 * self.columns.len() + gap + 1;
        let whole = |of: &dyn Fn(usize, &TextColumn) -> usize| {
            self.columns.iter().enumerate().map(|(at, column)| of(at, column)).sum::<usize>()
                + edges
        };
        if whole(&|_, column| column.width) <= most {
            return true;
        }
        let Some(least) = self.format.min_chars else { return false };
        let cut =
            |column: &TextColumn, to: usize| column.width.min(to).max(column.least_width(least));
        let fits = |to: usize, kept: usize| {
            whole(&|at, column| if at < kept { column.width } else { cut(column, to) }) <= most
        };
        let is_short = self.columns.first().is_some_and(|first| first.width <= most / 3 * 2);
        let kept = usize::from(is_short && fits(least, 1));
        let possible = fits(least, kept);
        if !possible && self.columns.len() > 2 {
            return false;
        }
        // From `least` on, wider lines fit until they do not.
        let (mut to, mut beyond) = (least, most.max(least) + 1);
        while possible && to + 1 < beyond {
            let middle = to.midpoint(beyond);
            if fits(middle, kept) { to = middle } else { beyond = middle }
        }
        for column in &mut self.columns[kept..] {
            column.width = column.width.min(to).max(column.least_width(least));
        }
        self.cut = true;
        possible
    }

    fn leave_one_out(&mut self) {
        let middle = self.columns.len() / 2;
        self.columns.remove(middle);
        self.left_out += 1;
        self.gap = Some(middle.min(self.columns.len()));
    }

    /// Adds the line above the columns' names, the names, and their types where the format wants
    /// these.
    pub fn write_head(&self, out: &mut String) {
        if self.columns.is_empty() {
            return;
        }
        let [above, under, _] = self.rules();
        self.write_rule(out, above);
        // A name stands as its values do where its type is under it.
        self.write_line(out, |column| (column.name.clone(), column.is_number && self.format.types));
        if self.format.types {
            self.write_line(out, |column| (column.kind.clone(), column.is_number));
        }
        self.write_rule(out, under);
    }

    /// Adds rows, which were measured before.
    ///
    /// # Errors
    /// A value that has no text.
    pub fn write_rows(&self, out: &mut String, batch: &RecordBatch) -> Result<()> {
        if self.columns.is_empty() {
            return Ok(());
        }
        let options = FormatOptions::new().with_null(&self.format.null);
        let values = self
            .columns
            .iter()
            .map(|column| ShownValues::of(batch.column(column.at), &options, &self.format));
        let values = values.collect::<Result<Vec<_>>>()?;
        let (mut line, mut text) = (String::new(), String::new());
        for row in 0..batch.num_rows() {
            line.clear();
            for (number, (column, values)) in self.columns.iter().zip(&values).enumerate() {
                let is_null = values.text_of(row, &mut text)?;
                self.put_cell(&mut line, number, &mut text, column.is_number, is_null);
            }
            self.end_line(out, &line);
        }
        Ok(())
    }

    /// Adds a line in the place of rows that are left out.
    pub fn write_gap(&self, out: &mut String) {
        if !self.columns.is_empty() {
            self.write_line(out, |column| (GAP.into(), column.is_number));
        }
    }

    /// Adds the line below the rows.
    pub fn write_foot(&self, out: &mut String) {
        let [_, _, below] = self.rules();
        if !self.columns.is_empty() {
            self.write_rule(out, below);
        }
    }

    /// Above the head, under it, below the rows: begin, line, between columns, end.
    fn rules(&self) -> [[&'static str; 4]; 3] {
        match self.format.borders {
            Borders::Lines => [["┌", "─", "┬", "┐"], ["╞", "═", "╪", "╡"], ["└", "─", "┴", "┘"]],
            Borders::Ascii => [["+", "-", "+", "+"]; 3],
        }
    }

    fn write_rule(&self, out: &mut String, [begin, line, between, end]: [&str; 4]) {
        out.push_str(begin);
        for (number, column) in self.columns.iter().enumerate() {
            if number > 0 {
                out.push_str(between);
            }
            if self.gap == Some(number) {
                out.push_str(&line.repeat(width(GAP) + 2));
                out.push_str(between);
            }
            out.push_str(&line.repeat(column.width + 2));
        }
        out.push_str(end);
        out.push('\n');
    }

    fn write_line(&self, out: &mut String, of: impl Fn(&TextColumn) -> (String, bool)) {
        let mut line = String::new();
        for (number, column) in self.columns.iter().enumerate() {
            let (mut text, right) = of(column);
            self.put_cell(&mut line, number, &mut text, right, false);
        }
        self.end_line(out, &line);
    }

    fn put_cell(
        &self,
        line: &mut String,
        number: usize,
        text: &mut String,
        right: bool,
        is_null: bool,
    ) {
        let (edge, between) = match self.format.borders {
            Borders::Lines => ("│", "┆"),
            Borders::Ascii => ("|", "|"),
        };
        line.push_str(if number == 0 { edge } else { between });
        if self.gap == Some(number) {
            line.push_str(&format!(" {GAP} {between}"));
        }
        if self.cut {
            cut(text, self.columns[number].width);
        }
        let space = " ".repeat(self.columns[number].width.saturating_sub(width(text)));
        let (before, after) = if right { (space.as_str(), "") } else { ("", space.as_str()) };
        let (dim, usual) = if is_null && self.format.dim_nulls { DIM } else { ("", "") };
        [" ", before, dim, text, usual, after, " "]
            .into_iter()
            .for_each(|part| line.push_str(part));
    }

    fn end_line(&self, out: &mut String, line: &str) {
        let edge = if self.format.borders == Borders::Lines { "│\n" } else { "|\n" };
        out.push_str(line);
        out.push_str(edge);
    }
}

/// The texts of an array's values.
struct ShownValues<'a> {
    array: &'a ArrayRef,
    /// Dictionaries may have them among their values, and columns of the type null have no mask.
    nulls: Option<NullBuffer>,
    values: ArrayFormatter<'a>,
    format: &'a FrameFormat,
}

impl<'a> ShownValues<'a> {
    fn of(
        array: &'a ArrayRef,
        options: &'a FormatOptions<'a>,
        format: &'a FrameFormat,
    ) -> Result<ShownValues<'a>> {
        let nulls = array.logical_nulls();
        Ok(ShownValues { array, nulls, values: value_texts(array, options)?, format })
    }

    /// Puts a value's text in the place of what is there. Whether it is null.
    fn text_of(&self, row: usize, text: &mut String) -> Result<bool> {
        text.clear();
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            text.push_str(&self.format.null);
            return Ok(true);
        }
        match (self.format.decimals, self.array.data_type()) {
            (Some(digits), DataType::Float32) => {
                put_rounded(
                    text,
                    self.array.as_primitive::<Float32Type>().value(row).into(),
                    digits,
                );
            }
            (Some(digits), DataType::Float64) => {
                put_rounded(text, self.array.as_primitive::<Float64Type>().value(row), digits);
            }
            _ => self.values.value(row).write(text)?,
        }
        make_visible(text);
        if let Some(most) = self.format.max_chars {
            cut(text, most);
        }
        Ok(false)
    }
}

/// A number with at most so many digits after the point; very large and very small ones with an
/// exponent.
fn put_rounded(text: &mut String, number: f64, digits: usize) {
    let size = number.abs();
    let written = match size != 0.0
        && size.is_finite()
        && !(0.5 * 10f64.powi(-(digits as i32))..1e16).contains(&size)
    {
        true => write!(text, "{number:.digits$e}"),
        false => write!(text, "{number:.digits$}"),
    };
    written.expect("writing to a string");
    let exponent = text.find('e').unwrap_or(text.len());
    let (mantissa, exponent) = (text[..exponent].to_string(), text[exponent..].to_string());
    if mantissa.contains('.') {
        let mantissa = mantissa.trim_end_matches('0');
        // One digit stays, which tells a float from an integer.
        let more = if mantissa.ends_with('.') { "0" } else { "" };
        *text = format!("{mantissa}{more}{exponent}");
    }
}

/// Short names of types, as dataframe libraries write them.
pub(super) fn type_name(dtype: &DataType) -> String {
    fn unit(unit: &TimeUnit) -> &'static str {
        match unit {
            TimeUnit::Second => "s",
            TimeUnit::Millisecond => "ms",
            TimeUnit::Microsecond => "μs",
            TimeUnit::Nanosecond => "ns",
        }
    }
    match dtype {
        DataType::Null => "null".into(),
        DataType::Boolean => "bool".into(),
        DataType::Int8 => "i8".into(),
        DataType::Int16 => "i16".into(),
        DataType::Int32 => "i32".into(),
        DataType::Int64 => "i64".into(),
        DataType::UInt8 => "u8".into(),
        DataType::UInt16 => "u16".into(),
        DataType::UInt32 => "u32".into(),
        DataType::UInt64 => "u64".into(),
        DataType::Float16 => "f16".into(),
        DataType::Float32 => "f32".into(),
        DataType::Float64 => "f64".into(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "str".into(),
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => "binary".into(),
        DataType::Date32 | DataType::Date64 => "date".into(),
        DataType::Time32(of) | DataType::Time64(of) => format!("time[{}]", unit(of)),
        DataType::Timestamp(of, None) => format!("datetime[{}]", unit(of)),
        DataType::Timestamp(of, Some(zone)) => format!("datetime[{}, {zone}]", unit(of)),
        DataType::Duration(of) => format!("duration[{}]", unit(of)),
        DataType::Interval(_) => "interval".into(),
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => format!("decimal[{p},{s}]"),
        DataType::List(of)
        | DataType::LargeList(of)
        | DataType::ListView(of)
        | DataType::LargeListView(of) => {
            format!("list[{}]", type_name(of.data_type()))
        }
        DataType::FixedSizeList(of, n) => format!("array[{}, {n}]", type_name(of.data_type())),
        DataType::Struct(fields) => format!("struct[{}]", fields.len()),
        DataType::Dictionary(_, values) => type_name(values),
        DataType::Map(_, _) => "map".into(),
        other => other.to_string(),
    }
}

fn is_number(dtype: &DataType) -> bool {
    match dtype {
        DataType::Dictionary(_, values) => is_number(values),
        other => other.is_numeric(),
    }
}

/// Places that a text takes on a terminal.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// The text without control characters: these are escaped.
pub(super) fn visible(text: &str) -> String {
    let mut text = text.to_string();
    make_visible(&mut text);
    text
}

fn make_visible(text: &mut String) {
    if !text.chars().any(is_unseen) {
        return;
    }
    let mut made = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match is_unseen(c) {
            true => made.extend(c.escape_default()),
            false => made.push(c),
        }
    }
    *text = made;
}

/// Control characters, and those that turn the direction of what follows.
fn is_unseen(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text, no wider than so many places.
pub(super) fn cut_to(mut text: String, most: Option<usize>) -> String {
    if let Some(most) = most {
        cut(&mut text, most);
    }
    text
}

fn cut(text: &mut String, most: usize) {
    if text.len() <= most || width(text) <= most {
        return;
    }
    let room = most.saturating_sub(width(GAP));
    let mut taken = 0;
    let end = text.char_indices().find(|(_, c)| {
        taken += c.width().unwrap_or(0);
        taken > room
    });
    let end = end.map_or(text.len(), |(at, _)| at);
    text.truncate(end);
    text.push_str(GAP);
}
