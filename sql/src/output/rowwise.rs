//! Formats that are written value by value: Markdown, lines, HTML, INSERT statements.

use std::io::Write;

use warpframe::arrow::datatypes::DataType;
use warpframe::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::{Rows, Style, to_the_right};
use crate::report::{Failure, shown};

pub(super) fn markdown(out: &mut dyn Write, rows: &Rows, style: &Style) -> Result<(), Failure> {
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
        let values: Vec<String> = values
            .iter()
            .map(|value| escape(value.as_deref().unwrap_or(style.null("NULL"))))
            .collect();
        Ok(writeln!(out, "| {} |", values.join(" | "))?)
    })
}

/// `name = value`, the names to the right, a blank line between rows.
pub(super) fn line(out: &mut dyn Write, rows: &Rows, style: &Style) -> Result<(), Failure> {
    let names: Vec<String> =
        rows.schema().fields().iter().map(|field| shown(field.name())).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut first = true;
    each_row(rows, style, |values| {
        if !std::mem::take(&mut first) {
            writeln!(out)?;
        }
        for (name, value) in names.iter().zip(values) {
            let value = value.as_deref().map_or_else(|| style.null("NULL").to_string(), shown);
            writeln!(out, "{name:>width$} = {value}")?;
        }
        Ok(())
    })
}

pub(super) fn html(out: &mut dyn Write, rows: &Rows, style: &Style) -> Result<(), Failure> {
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
        let cell = |value: &Option<String>| {
            format!("<td>{}</td>", escape(value.as_deref().unwrap_or(style.null("NULL"))))
        };
        Ok(writeln!(out, "<tr>{}</tr>", values.iter().map(cell).collect::<String>())?)
    })?;
    Ok(writeln!(out, "</table>")?)
}

/// `INSERT INTO "table" VALUES (…);`, a statement for each row.
pub(super) fn insert(out: &mut dyn Write, rows: &Rows, style: &Style) -> Result<(), Failure> {
    let schema = rows.schema();
    let plain: Vec<bool> =
        schema.fields().iter().map(|field| is_plain(field.data_type())).collect();
    each_row(rows, style, |values| {
        let value = |(value, plain): (&Option<String>, &bool)| match value {
            None => "NULL".to_string(),
            Some(text) if *plain && !matches!(text.as_str(), "NaN" | "inf" | "-inf") => {
                text.clone()
            }
            Some(text) => format!("'{}'", text.replace('\'', "''")),
        };
        let values: Vec<String> = values.iter().zip(&plain).map(value).collect();
        Ok(writeln!(out, "INSERT INTO \"table\" VALUES ({});", values.join(", "))?)
    })
}

/// Whether SQL writes values of a type without quotes.
fn is_plain(dtype: &DataType) -> bool {
    match dtype {
        DataType::Dictionary(_, values) => is_plain(values),
        other => other.is_numeric() || *other == DataType::Boolean,
    }
}

/// A text of lines without control characters.
fn lines(text: &str, between: &str) -> String {
    text.split('\n').map(shown).collect::<Vec<_>>().join(between)
}

/// Calls `visit` with the text of each row's values, in order.
fn each_row(
    rows: &Rows,
    style: &Style,
    mut visit: impl FnMut(&[Option<String>]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // Nulls within values.
    let options = FormatOptions::new().with_null(style.null("NULL"));
    let mut values = vec![None; rows.schema().fields().len()];
    rows.each_batch(|batch| {
        let columns = batch.columns().iter();
        let formatters = columns
            .map(|column| ArrayFormatter::try_new(column, &options))
            .collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            for ((value, column), formatter) in
                values.iter_mut().zip(batch.columns()).zip(&formatters)
            {
                *value = None;
                if column.is_valid(row) && *column.data_type() != DataType::Null {
                    let mut text = String::new();
                    formatter.value(row).write(&mut text)?;
                    *value = Some(text);
                }
            }
            visit(&values)?;
        }
        Ok(())
    })
}
