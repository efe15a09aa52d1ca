//! Formats that are written value by value: CSV, Markdown, lines, HTML, INSERT statements.

use std::io::Write;

use unicode_width::UnicodeWidthStr;
use warpframe::arrow::util::display::FormatOptions;
use warpframe::frame::value_texts;

use super::literal::Literals;
use super::{Rows, Style, to_the_right};
use crate::report::{Failure, shown};

pub(super) fn markdown(out: &mut dyn Write, rows: &mut Rows, style: &Style) -> Result<(), Failure> {
    let escape = |value: &str| {
        lines(&value.replace('\\', "\\\\").replace('|', "\\|").replace("\r\n", "\n"), "<br>")
    };
    let names: Vec<String> =
        rows.schema().fields().iter().map(|field| escape(field.name())).collect();
    let rules =
        to_the_right(&rows.schema()).into_iter().map(|right| if right { "---:" } else { "---" });
    writeln!(out, "| {} |", names.join(" | "))?;
    writeln!(out, "| {} |", rules.collect::<Vec<_>>().join(" | "))?;
    each_row(rows, style, |values| {
        let values: Vec<String> =
            values.iter().map(|value| escape(value.get().unwrap_or(style.null("NULL")))).collect();
        Ok(writeln!(out, "| {} |", values.join(" | "))?)
    })
}

/// `name = value`, the names to the right, a blank line between rows.
pub(super) fn line(out: &mut dyn Write, rows: &mut Rows, style: &Style) -> Result<(), Failure> {
    let names: Vec<String> =
        rows.schema().fields().iter().map(|field| shown(field.name())).collect();
    let width = names.iter().map(|name| name.width()).max().unwrap_or(0);
    let mut first = true;
    each_row(rows, style, |values| {
        if !std::mem::take(&mut first) {
            writeln!(out)?;
        }
        for (name, value) in names.iter().zip(values) {
            let value = value.get().map_or_else(|| style.null("NULL").to_string(), shown);
            writeln!(out, "{}{name} = {value}", " ".repeat(width - name.width()))?;
        }
        Ok(())
    })
}

pub(super) fn html(out: &mut dyn Write, rows: &mut Rows, style: &Style) -> Result<(), Failure> {
    let escape = |text: &str| {
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
    };
    let escape = |text: &str| lines(&escape(text), "\n");
    writeln!(out, "<table>")?;
    if style.headers {
        let cells: String = rows
            .schema()
            .fields()
            .iter()
            .map(|field| format!("<th>{}</th>", escape(field.name())))
            .collect();
        writeln!(out, "<tr>{cells}</tr>")?;
    }
    each_row(rows, style, |values| {
        let cell = |value: &Cell| {
            format!("<td>{}</td>", escape(value.get().unwrap_or(style.null("NULL"))))
        };
        Ok(writeln!(out, "<tr>{}</tr>", values.iter().map(cell).collect::<String>())?)
    })?;
    Ok(writeln!(out, "</table>")?)
}

/// `INSERT INTO table VALUES (…);`, a statement for each row.
pub(super) fn insert(out: &mut dyn Write, rows: &mut Rows, style: &Style) -> Result<(), Failure> {
    let mut line = String::new();
    rows.each_batch(|batch| {
        let columns = batch.columns().iter();
        let columns =
            columns.map(|column| Literals::of(column)).collect::<Result<Vec<_>, Failure>>()?;
        for row in 0..batch.num_rows() {
            line.clear();
            for (at, column) in columns.iter().enumerate() {
                line.push_str(if at > 0 { ", " } else { "" });
                column.write(&mut line, row)?;
            }
            writeln!(out, "INSERT INTO {} VALUES ({line});", style.table)?;
        }
        Ok(())
    })
}

/// A header and values with a delimiter between them. What is NULL is told from what is the text
/// that stands for it, as in files that COPY writes: that is quoted.
pub(super) fn csv(
    out: &mut dyn Write,
    rows: &mut Rows,
    style: &Style,
    delimiter: char,
) -> Result<(), Failure> {
    let null = style.null("");
    let put = |line: &mut String, value: Option<&str>| match value {
        None => line.push_str(null),
        Some(text) => {
            let means = |c| c == delimiter || matches!(c, '"' | '\n' | '\r');
            match text.is_empty() || text == null || text.contains(means) {
                true => line.push_str(&format!("\"{}\"", text.replace('"', "\"\""))),
                false => line.push_str(text),
            }
        }
    };
    let mut line = String::new();
    if style.headers {
        for (at, field) in rows.schema().fields().iter().enumerate() {
            line.extend((at > 0).then_some(delimiter));
            put(&mut line, Some(field.name()));
        }
        writeln!(out, "{line}")?;
    }
    each_row(rows, style, |values| {
        line.clear();
        for (at, value) in values.iter().enumerate() {
            line.extend((at > 0).then_some(delimiter));
            put(&mut line, value.get());
        }
        // A line without a character would be no row.
        let line = if line.is_empty() { "\"\"" } else { &line };
        Ok(writeln!(out, "{line}")?)
    })
}

/// A text of lines without control characters.
fn lines(text: &str, between: &str) -> String {
    text.split('\n').map(shown).collect::<Vec<_>>().join(between)
}

/// A value's text, whose memory the next row's has.
#[derive(Clone, Default)]
struct Cell {
    text: String,
    is_null: bool,
}

impl Cell {
    /// `None` where it is NULL.
    fn get(&self) -> Option<&str> {
        (!self.is_null).then_some(&self.text)
    }
}

/// Calls `visit` with each row's values, in order.
fn each_row(
    rows: &mut Rows,
    style: &Style,
    mut visit: impl FnMut(&[Cell]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // Nulls within values.
    let options = FormatOptions::new().with_null(style.null("NULL"));
    let mut values = vec![Cell::default(); rows.schema().fields().len()];
    rows.each_batch(|batch| {
        let mut columns = vec![];
        for column in batch.columns() {
            columns.push((value_texts(column, &options)?, column.logical_nulls()));
        }
        for row in 0..batch.num_rows() {
            for (value, (formatter, nulls)) in values.iter_mut().zip(&columns) {
                value.text.clear();
                value.is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
                if !value.is_null {
                    formatter.value(row).write(&mut value.text)?;
                }
            }
            visit(&values)?;
        }
        Ok(())
    })
}
