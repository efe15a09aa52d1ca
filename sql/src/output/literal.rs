//! Values as SQL writes them.

use std::ops::Range;

use warpframe::arrow::array::{Array, AsArray};
use warpframe::arrow::buffer::NullBuffer;
use warpframe::arrow::datatypes::DataType;
use warpframe::arrow::util::display::{ArrayFormatter, FormatOptions};
use warpframe::frame::value_texts;

use crate::report::Failure;

/// The values of a column as literals, any of which `INSERT` puts into a column of its type.
pub(super) struct Literals<'a> {
    form: Form<'a>,
    nulls: Option<NullBuffer>,
}

/// Where the elements of a row's value are among all.
type Elements<'a> = Box<dyn Fn(usize) -> Range<usize> + 'a>;

enum Form<'a> {
    /// As Arrow writes them.
    Plain(ArrayFormatter<'a>),
    /// In quotes, behind a word that says what they are.
    Quoted(ArrayFormatter<'a>, &'static str),
    /// Floats: those that are no numbers are texts, which a type stands beside where nothing else
    /// tells it.
    Float(ArrayFormatter<'a>, bool),
    List(Elements<'a>, Box<Literals<'a>>),
    Struct(Vec<(String, Literals<'a>)>),
    Map(Elements<'a>, Box<Literals<'a>>, Box<Literals<'a>>),
}

impl<'a> Literals<'a> {
    /// Those of a column.
    ///
    /// # Errors
    /// A type that has no text.
    pub(super) fn of(column: &'a dyn Array) -> Result<Self, Failure> {
        Literals::within(column, false)
    }

    /// `nested`: within other values, no column says of which type they are.
    fn within(column: &'a dyn Array, nested: bool) -> Result<Self, Failure> {
        let of = |child: &'a dyn Array| Ok::<_, Failure>(Box::new(Literals::within(child, true)?));
        let text = || value_texts(column, &FormatOptions::new());
        let form = match column.data_type() {
            DataType::List(_) => {
                let list = column.as_list::<i32>();
                let ends = list.value_offsets();
                Form::List(
                    Box::new(|row| ends[row] as usize..ends[row + 1] as usize),
                    of(list.values())?,
                )
            }
            DataType::LargeList(_) => {
                let list = column.as_list::<i64>();
                let ends = list.value_offsets();
                Form::List(
                    Box::new(|row| ends[row] as usize..ends[row + 1] as usize),
                    of(list.values())?,
                )
            }
            DataType::FixedSizeList(_, length) => {
                let (list, length) = (column.as_fixed_size_list(), *length as usize);
                Form::List(
                    Box::new(move |row| {
                        let start = list.value_offset(row) as usize;
                        start..start + length
                    }),
                    of(list.values())?,
                )
            }
            DataType::Struct(fields) => Form::Struct(
                fields
                    .iter()
                    .zip(column.as_struct().columns())
                    .map(|(field, child)| {
                        Ok((quoted(field.name()), Literals::within(child, true)?))
                    })
                    .collect::<Result<_, Failure>>()?,
            ),
            DataType::Map(..) => {
                let map = column.as_map();
                let ends = map.value_offsets();
                Form::Map(
                    Box::new(|row| ends[row] as usize..ends[row + 1] as usize),
                    of(map.keys())?,
                    of(map.values())?,
                )
            }
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => Form::Quoted(text()?, "X"),
            DataType::Date32 | DataType::Date64 if nested => Form::Quoted(text()?, "DATE "),
            DataType::Time32(_) | DataType::Time64(_) if nested => Form::Quoted(text()?, "TIME "),
            DataType::Timestamp(..) if nested => Form::Quoted(text()?, "TIMESTAMP "),
            DataType::Interval(_) if nested => Form::Quoted(text()?, "INTERVAL "),
            of if is(of, &DataType::is_floating) => Form::Float(text()?, nested),
            of if is(of, &|of| of.is_numeric() || *of == DataType::Boolean) => Form::Plain(text()?),
            _ => Form::Quoted(text()?, ""),
        };
        Ok(Literals { form, nulls: column.logical_nulls() })
    }

    /// Adds the literal of a row's value.
    ///
    /// # Errors
    /// A value that has no text.
    pub(super) fn write(&self, out: &mut String, row: usize) -> Result<(), Failure> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            out.push_str("NULL");
            return Ok(());
        }
        match &self.form {
            Form::Plain(text) => text.value(row).write(out)?,
            Form::Quoted(text, word) => {
                out.push_str(word);
                out.push_str(&quoted(&text.value(row).try_to_string()?));
            }
            Form::Float(text, nested) => {
                let text = text.value(row).try_to_string()?;
                match (text.as_str(), nested) {
                    ("NaN" | "inf" | "-inf", true) => {
                        out.push_str(&format!("CAST('{text}' AS DOUBLE)"));
                    }
                    ("NaN" | "inf" | "-inf", false) => out.push_str(&quoted(&text)),
                    _ => out.push_str(&text),
                }
            }
            Form::List(elements, values) => {
                out.push('[');
                for (at, element) in elements(row).enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    values.write(out, element)?;
                }
                out.push(']');
            }
            Form::Struct(fields) => {
                out.push('{');
                for (at, (name, values)) in fields.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    out.push_str(name);
                    out.push_str(": ");
                    values.write(out, row)?;
                }
                out.push('}');
            }
            Form::Map(entries, keys, values) => {
                out.push_str("MAP {");
                for (at, entry) in entries(row).enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    keys.write(out, entry)?;
                    out.push_str(": ");
                    values.write(out, entry)?;
                }
                out.push('}');
            }
        }
        Ok(())
    }
}

/// Whether a type, or that of a dictionary's values, is such a one.
fn is(dtype: &DataType, such: &dyn Fn(&DataType) -> bool) -> bool {
    match dtype {
        DataType::Dictionary(_, values) => is(values, such),
        other => such(other),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
