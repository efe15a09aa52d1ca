//! Lists, structs and maps as text, as DuckDB writes them and casts to their types read them.
//!
//! ```text
//!   [1, NULL, 3]     [a b, 'b, c', '']     {'a': 1, 'b c': x}     {k=1, l=NULL}
//! ```

use std::fmt::Write;
use std::ops::Range;

use datafusion::arrow::array::{Array, AsArray, OffsetSizeTrait};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::error::Result;
use crate::host::value_texts;

/// The texts of an array's values.
pub(super) struct NestedTexts<'a> {
    nulls: Option<NullBuffer>,
    values: NestedValues<'a>,
}

enum NestedValues<'a> {
    Plain(ArrayFormatter<'a>),
    List(Box<dyn Fn(usize) -> Range<usize> + 'a>, Box<NestedTexts<'a>>),
    /// Names as they are written.
    Struct(Vec<(String, NestedTexts<'a>)>),
    Map(Box<dyn Fn(usize) -> Range<usize> + 'a>, Box<[NestedTexts<'a>; 2]>),
}

impl<'a> NestedTexts<'a> {
    pub(super) fn of(array: &'a dyn Array, format: &'a FormatOptions<'a>) -> Result<Self> {
        let within = |values: &'a dyn Array| NestedTexts::of(values, format).map(Box::new);
        let values = match array.data_type() {
            DataType::List(_) => {
                let lists = array.as_list::<i32>();
                NestedValues::List(ranges(lists.offsets()), within(lists.values())?)
            }
            DataType::LargeList(_) => {
                let lists = array.as_list::<i64>();
                NestedValues::List(ranges(lists.offsets()), within(lists.values())?)
            }
            DataType::FixedSizeList(_, size) => {
                let size = usize::try_from(*size).unwrap_or_default();
                let range = move |row: usize| row * size..(row + 1) * size;
                let lists = array.as_fixed_size_list();
                NestedValues::List(Box::new(range), within(lists.values())?)
            }
            DataType::Struct(fields) => {
                let columns = fields.iter().zip(array.as_struct().columns());
                let named = columns.map(|(field, column)| {
                    let mut name = String::new();
                    put_quoted(&mut name, field.name());
                    Ok((name, NestedTexts::of(column, format)?))
                });
                NestedValues::Struct(named.collect::<Result<_>>()?)
            }
            DataType::Map(..) => {
                let maps = array.as_map();
                let both = [
                    NestedTexts::of(maps.keys(), format)?,
                    NestedTexts::of(maps.values(), format)?,
                ];
                NestedValues::Map(ranges(maps.offsets()), Box::new(both))
            }
            _ => NestedValues::Plain(value_texts(array, format)?),
        };
        Ok(NestedTexts { nulls: array.logical_nulls(), values })
    }

    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Adds the text of a row's value.
    pub(super) fn put(&self, text: &mut String, row: usize) -> Result<()> {
        if self.is_null(row) {
            text.push_str("NULL");
            return Ok(());
        }
        match &self.values {
            NestedValues::Plain(values) => {
                let from = text.len();
                values.value(row).write(text)?;
                if needs_quotes(&text[from..]) {
                    let value = text.split_off(from);
                    put_quoted(text, &value);
                }
            }
            NestedValues::List(range, elements) => {
                text.push('[');
                for (number, at) in range(row).enumerate() {
                    text.push_str(if number > 0 { ", " } else { "" });
                    elements.put(text, at)?;
                }
                text.push(']');
            }
            NestedValues::Struct(fields) => {
                text.push('{');
                for (number, (name, values)) in fields.iter().enumerate() {
                    text.push_str(if number > 0 { ", " } else { "" });
                    write!(text, "{name}: ").expect("writing to a string");
                    values.put(text, row)?;
                }
                text.push('}');
            }
            NestedValues::Map(range, both) => {
                text.push('{');
                for (number, at) in range(row).enumerate() {
                    text.push_str(if number > 0 { ", " } else { "" });
                    both[0].put(text, at)?;
                    text.push('=');
                    both[1].put(text, at)?;
                }
                text.push('}');
            }
        }
        Ok(())
    }
}

fn ranges<O: OffsetSizeTrait>(
    offsets: &OffsetBuffer<O>,
) -> Box<dyn Fn(usize) -> Range<usize> + '_> {
    Box::new(|row| offsets[row].as_usize()..offsets[row + 1].as_usize())
}

/// Whether a value would be read as another one without quotes.
fn needs_quotes(value: &str) -> bool {
    value.is_empty()
        || value.eq_ignore_ascii_case("null")
        || value.trim().len() < value.len()
        || value.contains([',', '[', ']', '{', '}', '(', ')', '\'', '"', '\\', ':', '='])
}

fn put_quoted(text: &mut String, value: &str) {
    text.push('\'');
    for c in value.chars() {
        if matches!(c, '\'' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('\'');
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::StringArray;

    use super::*;

    #[test]
    fn values_are_quoted_that_would_be_others() {
        let values = ["a b", "b, c", "", "NULL", "x'y", "a\\b", " x", "é"];
        let expected = ["a b", "'b, c'", "''", "'NULL'", r"'x\'y'", r"'a\\b'", "' x'", "é"];
        let array = StringArray::from(values.to_vec());
        let format = FormatOptions::default();
        let texts = NestedTexts::of(&array, &format).unwrap();
        for (row, expected) in expected.into_iter().enumerate() {
            let mut text = String::new();
            texts.put(&mut text, row).unwrap();
            assert_eq!(text, expected);
        }
    }
}
