//! Results as text: tables, CSV, JSON, Markdown. What a person reads has no control characters of
//! the data's; formats that programs read keep values as they are. Batches are written one after
//! the other; no format keeps a result as text.

mod literal;
mod rowwise;

use std::io::{self, Write};

use clap::ValueEnum;
use warpframe::arrow::array::RecordBatch;
use warpframe::arrow::datatypes::{DataType, Schema, SchemaRef};
use warpframe::arrow::json;
use warpframe::frame::{Borders, FrameFormat, TextTable, json_writer, terminal_size};
use warpframe::sql::NamesApart;
use warpframe::{DataFrame, RowBatches};

use crate::report::Failure;

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A drawn table, numbers to the right.
    Table,
    /// A header and comma-separated values; NULL is empty, and the empty text is quoted.
    Csv,
    /// One array of objects.
    Json,
    /// One object a line.
    #[value(alias = "jsonl", alias = "jsonlines")]
    Ndjson,
    /// A table in Markdown.
    Markdown,
    /// A table drawn with lines.
    #[value(alias = "duckbox")]
    Box,
    /// A header and values with tabs between them.
    #[value(alias = "tabs")]
    Tsv,
    /// A line for each value: name = value.
    Line,
    /// A table in HTML.
    Html,
    /// INSERT statements.
    Insert,
}

/// How results look.
#[derive(Debug, Clone)]
pub struct Style {
    /// How they are written.
    pub format: Format,
    /// Whether the columns' names are written, in formats that have a row of them.
    pub headers: bool,
    /// Whether tables that a terminal shows have the columns' types under their names.
    pub types: bool,
    /// What stands for NULL, in formats that have no way of their own; theirs if nothing is said.
    pub null: Option<String>,
    /// The table of INSERT statements, as SQL writes it.
    pub table: String,
    /// Most characters of a line in tables, 0 for any number; as many as the terminal has if
    /// nothing is said.
    pub max_width: Option<usize>,
    /// Whether they go into a file, whose readers find columns by name.
    pub to_file: bool,
    /// Whether a terminal shows them.
    pub terminal: bool,
    /// Whether it is to show NULL dim.
    pub colour: bool,
}

/// Texts in tables that are too wide for a terminal keep at least so many characters: below that
/// columns are left out.
const LEAST_CHARACTERS: usize = 12;

impl From<Format> for Style {
    fn from(format: Format) -> Style {
        Style {
            format,
            headers: true,
            types: true,
            null: None,
            table: "\"table\"".into(),
            max_width: None,
            to_file: false,
            terminal: false,
            colour: false,
        }
    }
}

impl Style {
    fn null<'a>(&'a self, usual: &'a str) -> &'a str {
        self.null.as_deref().unwrap_or(usual)
    }

    /// Most characters of a table's line.
    fn width(&self) -> Option<usize> {
        match (self.max_width, self.terminal) {
            (Some(width), _) => Some(width).filter(|width| *width > 0),
            (None, true) => terminal_size().map(|(columns, _)| columns),
            (None, false) => None,
        }
    }
}

/// Rows copied from a device at a time.
pub const BATCH_ROWS: usize = 1 << 16;

/// Rows to write.
#[derive(Debug)]
pub struct Rows {
    from: RowSource,
    /// How many of them are shown.
    shown: usize,
    /// Names of columns, where they are not those of the rows.
    names: Option<NamesApart>,
}

#[derive(Debug)]
enum RowSource {
    Frame(DataFrame),
    Batch(RecordBatch),
    /// As a query yields them, once.
    Query(Box<RowBatches>),
}

impl Rows {
    /// The first rows of a frame, at most `limit`; only these are copied from a device.
    pub fn of(frame: &DataFrame, limit: Option<usize>) -> Rows {
        let total = frame.num_rows();
        let shown = limit.unwrap_or(total).min(total);
        Rows { from: RowSource::Frame(frame.clone()), shown, names: None }
    }

    /// Those of a query, for formats that are written row by row: they are never in memory as a
    /// whole where the query hands them over as they come.
    pub fn of_query(rows: RowBatches) -> Rows {
        Rows { from: RowSource::Query(Box::new(rows)), shown: usize::MAX, names: None }
    }

    /// One batch, all of it shown.
    pub fn whole(batch: RecordBatch) -> Rows {
        Rows { shown: batch.num_rows(), from: RowSource::Batch(batch), names: None }
    }

    /// These rows for who finds columns by name: none has that of another.
    fn with_names_apart(&mut self) -> &mut Rows {
        self.names = Some(NamesApart::of(&self.schema()));
        self
    }

    fn schema(&self) -> SchemaRef {
        let schema = match &self.from {
            RowSource::Frame(frame) => frame.schema(),
            RowSource::Batch(batch) => batch.schema(),
            RowSource::Query(rows) => rows.schema(),
        };
        match &self.names {
            Some(names) => names.schema().clone(),
            None => schema,
        }
    }

    /// How many there are; `None` where only the end tells.
    fn total(&self) -> Option<usize> {
        match &self.from {
            RowSource::Frame(frame) => Some(frame.num_rows()),
            RowSource::Batch(batch) => Some(batch.num_rows()),
            RowSource::Query(_) => None,
        }
    }

    /// Calls `visit` with one batch after the other of those shown.
    fn each_batch(
        &mut self,
        mut visit: impl FnMut(&RecordBatch) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let names = self.names.clone();
        let mut visit = |batch: &RecordBatch| match &names {
            None => visit(batch),
            Some(names) => visit(&names.batch(batch.clone())?),
        };
        match &mut self.from {
            RowSource::Batch(batch) => visit(&batch.slice(0, self.shown)),
            RowSource::Query(rows) => rows.try_for_each(|batch| visit(&batch?)),
            RowSource::Frame(frame) => {
                let mut left = self.shown;
                let mut batches = frame.batches(BATCH_ROWS.min(left.max(1)));
                while left > 0
                    && let Some(batch) = batches.next().transpose()?
                {
                    let rows = batch.num_rows().min(left);
                    visit(&batch.slice(0, rows))?;
                    left -= rows;
                }
                Ok(())
            }
        }
    }
}

/// Writes rows in a format.
///
/// # Errors
/// What the writer says; a value that has no text.
pub fn write(out: &mut dyn Write, style: &Style, rows: &mut Rows) -> Result<(), Failure> {
    let mut out = Remembering { out, error: None };
    let is_by_name = matches!(
        style.format,
        Format::Csv | Format::Tsv | Format::Json | Format::Ndjson | Format::Insert
    );
    let rows = match is_by_name && style.to_file {
        true => rows.with_names_apart(),
        false => rows,
    };
    let written = match style.format {
        Format::Table => write_table(&mut out, rows, style, Borders::Ascii),
        Format::Box => write_table(&mut out, rows, style, Borders::Lines),
        Format::Csv => rowwise::csv(&mut out, rows, style, ','),
        Format::Tsv => rowwise::csv(&mut out, rows, style, '\t'),
        Format::Json => write_json(&mut out, rows),
        Format::Ndjson => write_ndjson(&mut out, rows),
        Format::Markdown => rowwise::markdown(&mut out, rows, style),
        Format::Line => rowwise::line(&mut out, rows, style),
        Format::Html => rowwise::html(&mut out, rows, style),
        Format::Insert => rowwise::insert(&mut out, rows, style),
    };
    match (written, out.error) {
        (Err(_), Some(error)) => Err(error.into()),
        (written, _) => written,
    }
}

/// Keeps the error of a failed write, which Arrow's writers hand on as text.
struct Remembering<'a> {
    out: &'a mut dyn Write,
    error: Option<io::Error>,
}

impl Remembering<'_> {
    fn remember<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let copy = io::Error::from(error.kind());
            self.error = Some(error);
            copy
        })
    }
}

impl Write for Remembering<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.out.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            result => self.remember(result),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.out.flush();
        self.remember(result)
    }
}

fn write_json(out: &mut dyn Write, rows: &mut Rows) -> Result<(), Failure> {
    let mut writer = json_writer().build::<_, json::writer::JsonArray>(&mut *out);
    rows.each_batch(|batch| Ok(writer.write(batch)?))?;
    writer.finish()?;
    drop(writer);
    Ok(out.write_all(b"\n")?)
}

fn write_ndjson(out: &mut dyn Write, rows: &mut Rows) -> Result<(), Failure> {
    let mut writer = json_writer().build::<_, json::writer::LineDelimited>(out);
    rows.each_batch(|batch| Ok(writer.write(batch)?))?;
    Ok(writer.finish()?)
}

/// Two walks over the rows, the first for the columns' widths: no row is kept as text.
fn write_table(
    out: &mut dyn Write,
    rows: &mut Rows,
    style: &Style,
    borders: Borders,
) -> Result<(), Failure> {
    let mut format = FrameFormat::whole()
        .borders(borders)
        .types(style.types && style.terminal)
        .sql_types(true)
        .null(style.null("NULL"));
    format = format
        .max_width(style.width())
        .min_chars(LEAST_CHARACTERS)
        .dim_nulls(style.terminal && style.colour);
    let mut table = TextTable::new(&rows.schema(), &format);
    rows.each_batch(|batch| Ok(table.measure(batch)?))?;
    table.fit();
    let mut text = String::new();
    table.write_head(&mut text);
    if !style.headers {
        // The border above the names is above the rows then.
        let border = text.split_inclusive('\n').next().filter(|_| rows.shown > 0);
        text = border.unwrap_or_default().to_string();
    }
    rows.each_batch(|batch| {
        table.write_rows(&mut text, batch)?;
        out.write_all(text.as_bytes())?;
        text.clear();
        Ok(())
    })?;
    if rows.shown > 0 {
        table.write_foot(&mut text);
    }
    out.write_all(text.as_bytes())?;
    match (rows.total().unwrap_or(rows.shown), rows.shown) {
        (total, shown) if shown < total => {
            writeln!(
                out,
                "{total} rows, of which the first {shown} are shown (SET max_rows = 0 shows all)"
            )?;
        }
        (1, _) => writeln!(out, "1 row")?,
        (total, _) => writeln!(out, "{total} rows")?,
    }
    if table.left_out() > 0 {
        let all = rows.schema().fields().len();
        let shown = all - table.left_out();
        writeln!(out, "{all} columns, of which {shown} are shown (SET max_width = 0 shows all)")?;
    }
    Ok(())
}

fn to_the_right(schema: &Schema) -> Vec<bool> {
    fn is_number(dtype: &DataType) -> bool {
        match dtype {
            DataType::Dictionary(_, values) => is_number(values),
            other => other.is_numeric(),
        }
    }
    schema.fields().iter().map(|field| is_number(field.data_type())).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use warpframe::arrow::array::{
        ArrayRef, Decimal128Array, Float64Array, Int64Array, NullArray, StringArray,
    };
    use warpframe::arrow::datatypes::Field;

    use super::*;

    fn sample() -> Rows {
        let n = Arc::new(Int64Array::from(vec![Some(1), None, Some(-300)])) as ArrayRef;
        let text =
            Arc::new(StringArray::from(vec![Some("a|b"), Some("é, \"q\""), None])) as ArrayRef;
        let x = Arc::new(Float64Array::from(vec![0.5, f64::NAN, 1e300])) as ArrayRef;
        let price = Decimal128Array::from(vec![Some(1234), Some(-5), None])
            .with_precision_and_scale(10, 2)
            .unwrap();
        let batch = RecordBatch::try_from_iter([
            ("n", n),
            ("text", text),
            ("x", x),
            ("price", Arc::new(price) as ArrayRef),
        ]);
        Rows::whole(batch.unwrap())
    }

    fn text(format: Format, rows: &mut Rows) -> String {
        let mut out = vec![];
        write(&mut out, &format.into(), rows).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tables_align_numbers_to_the_right() {
        let expected = "\
+------+--------+-------+-------+
| n    | text   | x     | price |
+------+--------+-------+-------+
|    1 | a|b    |   0.5 | 12.34 |
| NULL | é, \"q\" |   NaN | -0.05 |
| -300 | NULL   | 1e300 |  NULL |
+------+--------+-------+-------+
3 rows
";
        assert_eq!(text(Format::Table, &mut sample()), expected);
    }

    #[test]
    fn a_terminal_is_shown_types_unless_nobody_wants_them() {
        let drawn = |types: bool, terminal: bool| {
            let style = Style { types, terminal, ..Format::Table.into() };
            let mut out = vec![];
            write(&mut out, &style, &mut sample()).unwrap();
            String::from_utf8(out).unwrap()
        };
        let expected = "\
+--------+---------+--------+---------------+
|      n | text    |      x |         price |
| BIGINT | VARCHAR | DOUBLE | DECIMAL(10,2) |
+--------+---------+--------+---------------+
|      1 | a|b     |    0.5 |         12.34 |
";
        assert!(drawn(true, true).starts_with(expected), "{}", drawn(true, true));
        for (types, terminal) in [(false, true), (true, false)] {
            assert!(!drawn(types, terminal).contains("BIGINT"));
        }
    }

    #[test]
    fn csv_quotes_and_leaves_nulls_empty() {
        let expected =
            "n,text,x,price\n1,a|b,0.5,12.34\n,\"é, \"\"q\"\"\",NaN,-0.05\n-300,,1e300,\n";
        assert_eq!(text(Format::Csv, &mut sample()), expected);
    }

    #[test]
    fn json_has_nulls_by_name() {
        let first = r#"{"n":1,"text":"a|b","x":0.5,"price":12.34}"#;
        let second = r#"{"n":null,"text":"é, \"q\"","x":null,"price":-0.05}"#;
        let third = r#"{"n":-300,"text":null,"x":1.0e300,"price":null}"#;
        assert_eq!(text(Format::Ndjson, &mut sample()), format!("{first}\n{second}\n{third}\n"));
        assert_eq!(text(Format::Json, &mut sample()), format!("[{first},{second},{third}]\n"));
    }

    #[test]
    fn markdown_escapes_bars() {
        let expected = "\
| n | text | x | price |
| ---: | --- | ---: | ---: |
| 1 | a\\|b | 0.5 | 12.34 |
| NULL | é, \"q\" | NaN | -0.05 |
| -300 | NULL | 1e300 | NULL |
";
        assert_eq!(text(Format::Markdown, &mut sample()), expected);
    }

    #[test]
    fn no_rows_are_still_columns() {
        let RowSource::Batch(batch) = sample().from else { unreachable!() };
        let mut rows = Rows::whole(batch.slice(0, 0));
        assert_eq!(text(Format::Csv, &mut rows), "n,text,x,price\n");
        assert_eq!(text(Format::Json, &mut rows), "[]\n");
        assert_eq!(text(Format::Ndjson, &mut rows), "");
        assert_eq!(
            text(Format::Table, &mut rows),
            "+---+------+---+-------+\n| n | text | x | price |\n+---+------+---+-------+\n0 rows\n"
        );
    }

    #[test]
    fn tables_without_names_have_their_borders() {
        let drawn = |format: Format, rows: &mut Rows| {
            let (mut out, style) = (vec![], Style { headers: false, ..format.into() });
            write(&mut out, &style, rows).unwrap();
            String::from_utf8(out).unwrap()
        };
        let mut rows = Rows { shown: 1, ..sample() };
        let table = drawn(Format::Table, &mut rows);
        let border = "+---+------+-----+-------+\n";
        let lines = format!("{border}| 1 | a|b  | 0.5 | 12.34 |\n{border}3 rows");
        assert!(table.starts_with(&lines), "{table}");
        let drawn_box = drawn(Format::Box, &mut rows);
        assert!(drawn_box.starts_with("┌───┬"), "{drawn_box}");
        let RowSource::Batch(batch) = sample().from else { unreachable!() };
        assert_eq!(drawn(Format::Table, &mut Rows::whole(batch.slice(0, 0))), "0 rows\n");
    }

    #[test]
    fn columns_of_one_name_are_told_apart_in_files() {
        let number = |n: i64| Arc::new(Int64Array::from(vec![n])) as ArrayRef;
        let field = |name: &str| Field::new(name, DataType::Int64, true);
        let schema = Arc::new(Schema::new(vec![field("a"), field("a")]));
        let batch = RecordBatch::try_new(schema, vec![number(1), number(2)]).unwrap();
        let written = |format: Format, to_file: bool| {
            let mut out = vec![];
            let style = Style { to_file, ..format.into() };
            write(&mut out, &style, &mut Rows::whole(batch.clone())).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(Format::Ndjson, true), "{\"a\":1,\"a_1\":2}\n");
        assert_eq!(written(Format::Csv, true), "a,a_1\n1,2\n");
        assert_eq!(written(Format::Csv, false), "a,a\n1,2\n");
        assert!(written(Format::Markdown, true).contains("| a | a |"));
    }

    #[test]
    fn a_table_says_what_it_leaves_out() {
        let mut rows = Rows { shown: 1, ..sample() };
        assert!(
            text(Format::Table, &mut rows).contains("| 1 | a|b  | 0.5 | 12.34 |"),
            "{}",
            text(Format::Table, &mut rows)
        );
        assert!(
            text(Format::Table, &mut rows).ends_with(
                "\n3 rows, of which the first 1 are shown (SET max_rows = 0 shows all)\n"
            )
        );
    }

    #[test]
    fn columns_that_are_nothing_but_null_say_so() {
        let nothing = Arc::new(NullArray::new(1)) as ArrayRef;
        let mut rows = Rows::whole(RecordBatch::try_from_iter([("a", nothing)]).unwrap());
        assert!(
            text(Format::Table, &mut rows).contains("| NULL |"),
            "{}",
            text(Format::Table, &mut rows)
        );
        assert_eq!(text(Format::Line, &mut rows), "a = NULL\n");
    }

    #[test]
    fn control_characters_are_shown_as_such() {
        let column = Arc::new(StringArray::from(vec!["a\nb\u{1b}[2J"])) as ArrayRef;
        let mut rows = Rows::whole(RecordBatch::try_from_iter([("t", column)]).unwrap());
        assert!(
            text(Format::Table, &mut rows).contains("| a\\nb\\u{1b}[2J |"),
            "{}",
            text(Format::Table, &mut rows)
        );
    }
}
