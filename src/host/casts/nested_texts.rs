//! Casts of texts to lists and structs, which Arrow (59.3) has not: it takes a text for the one
//! element of a list.
//!
//! ```text
//!   '[1, NULL]'               as INT[]                       two elements
//!   '[a, "b, c", 'd']'        as VARCHAR[]                   three: quotes are optional
//!   '[[1], [2, 3]]'           as INT[][]                     two lists
//!   '{a: 1, 'b': x}'          as STRUCT<a INT, b VARCHAR>    fields that are not named are null
//!   'abc'                     as any of them                 an error
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, OffsetSizeTrait, StringViewArray,
    StringViewBuilder, StructArray, new_null_array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, Fields};
use datafusion::arrow::error::ArrowError;
use datafusion::error::Result;

use super::cast_exactly;

/// Whether texts are read as values of a type.
pub(in crate::host) fn is_read(to: &DataType) -> bool {
    matches!(to, DataType::Struct(_)) || is_list(to)
}

/// Whether a cast would make a list of a value that is none.
pub(in crate::host) fn wraps(from: &DataType, to: &DataType) -> bool {
    let values = match from {
        DataType::Dictionary(_, values) => values,
        from => from,
    };
    is_list(to) && !values.is_nested() && !values.is_null()
}

fn is_list(dtype: &DataType) -> bool {
    matches!(dtype, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))
}

/// What is to be said of a value that is no list.
pub(in crate::host) fn no_list(from: &DataType, to: &DataType) -> ArrowError {
    ArrowError::CastError(format!("Cannot cast a value of {from} to {to}: it is no list"))
}

/// The values that texts say; of what says none, null, or an error.
pub(in crate::host) fn read(
    texts: &StringViewArray,
    to: &DataType,
    or_null: bool,
) -> Result<ArrayRef> {
    match to {
        DataType::List(item) => read_lists::<i32>(texts, to, item, or_null),
        DataType::LargeList(item) => read_lists::<i64>(texts, to, item, or_null),
        DataType::FixedSizeList(item, length) => read_sized(texts, to, (item, *length), or_null),
        DataType::Struct(fields) => read_structs(texts, to, fields, or_null),
        other => Ok(cast(texts, other)?),
    }
}

/// The parts of each text, of those that are null and those that have none, nothing.
fn parts_of<T>(
    texts: &StringViewArray,
    to: &DataType,
    or_null: bool,
    parts: impl Fn(&str) -> Option<T>,
) -> Result<Vec<Option<T>>> {
    let of = |text: Option<&str>| match text.map(|text| (text, parts(text))) {
        Some((text, None)) if !or_null => {
            Err(ArrowError::CastError(format!("Cannot cast string '{text}' to value of {to} type"))
                .into())
        }
        found => Ok(found.and_then(|(_, parts)| parts)),
    };
    texts.iter().map(of).collect()
}

fn read_lists<O: OffsetSizeTrait>(
    texts: &StringViewArray,
    to: &DataType,
    item: &FieldRef,
    or_null: bool,
) -> Result<ArrayRef> {
    let lists = parts_of(texts, to, or_null, elements)?;
    let nulls: NullBuffer = lists.iter().map(Option::is_some).collect();
    let lengths = lists.iter().map(|list| list.as_ref().map_or(0, Vec::len));
    let offsets = OffsetBuffer::<O>::from_lengths(lengths);
    let values = values(lists.iter().flatten().flatten().map(Option::as_deref), item, or_null)?;
    Ok(Arc::new(GenericListArray::<O>::try_new(item.clone(), offsets, values, Some(nulls))?))
}

fn read_sized(
    texts: &StringViewArray,
    to: &DataType,
    (item, length): (&FieldRef, i32),
    or_null: bool,
) -> Result<ArrayRef> {
    let size = usize::try_from(length).unwrap_or_default();
    let sized = |text: &str| elements(text).filter(|elements| elements.len() == size);
    let lists = parts_of(texts, to, or_null, sized)?;
    let nulls: NullBuffer = lists.iter().map(Option::is_some).collect();
    let element = |list: &Option<Vec<Option<String>>>, at: usize| match list {
        Some(elements) => elements[at].clone(),
        None => None,
    };
    let all: Vec<Option<String>> =
        lists.iter().flat_map(|list| (0..size).map(move |at| element(list, at))).collect();
    let values = values(all.iter().map(Option::as_deref), item, or_null)?;
    Ok(Arc::new(FixedSizeListArray::try_new(item.clone(), length, values, Some(nulls))?))
}

fn read_structs(
    texts: &StringViewArray,
    to: &DataType,
    fields: &Fields,
    or_null: bool,
) -> Result<ArrayRef> {
    let structs = parts_of(texts, to, or_null, |text| named(text, fields))?;
    let nulls: NullBuffer = structs.iter().map(Option::is_some).collect();
    let columns = fields.iter().enumerate().map(|(at, field)| {
        let of = |row: &Option<Vec<Option<String>>>| row.as_ref().and_then(|row| row[at].clone());
        let texts: Vec<Option<String>> = structs.iter().map(of).collect();
        values(texts.iter().map(Option::as_deref), field, or_null)
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    match fields.is_empty() {
        true => Ok(new_null_array(to, texts.len())),
        false => Ok(Arc::new(StructArray::try_new(fields.clone(), columns, Some(nulls))?)),
    }
}

/// Elements or fields of a type.
fn values<'a>(
    texts: impl Iterator<Item = Option<&'a str>>,
    field: &FieldRef,
    or_null: bool,
) -> Result<ArrayRef> {
    let nested = field.data_type().is_nested();
    let mut builder = StringViewBuilder::new();
    for text in texts {
        builder.append_option(text.map(|text| if nested { text.into() } else { plain(text) }));
    }
    let texts: ArrayRef = Arc::new(builder.finish());
    cast_exactly(&texts, field.data_type(), or_null)
}

/// The elements of a list as they are written; `None` of what is no list.
fn elements(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim().strip_prefix('[')?.strip_suffix(']')?;
    if inner.trim().is_empty() {
        return Some(vec![]);
    }
    let parts = split(inner, ',')?;
    Some(parts.into_iter().map(value).collect())
}

/// The values of a struct's fields as they are written, by their names or without any.
fn named(text: &str, fields: &Fields) -> Option<Vec<Option<String>>> {
    let text = text.trim();
    if let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
        let parts = split(inner, ',')?;
        return (parts.len() == fields.len()).then(|| parts.into_iter().map(value).collect());
    }
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    let mut found: Vec<Option<Option<String>>> = vec![None; fields.len()];
    if !inner.trim().is_empty() {
        for part in split(inner, ',')? {
            let name = *split(part, ':')?.first()?;
            let rest = part.strip_prefix(name)?.trim_start().strip_prefix(':')?;
            let name = plain(name);
            let at = fields.iter().position(|field| *field.name() == name)?;
            if found[at].replace(value(rest)).is_some() {
                return None;
            }
        }
    }
    Some(found.into_iter().map(Option::flatten).collect())
}

/// An element or a field as it is written, if it is not null.
fn value(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.eq_ignore_ascii_case("null")).then(|| text.to_string())
}

/// The parts between commas or colons that are in no parentheses and no quotes, without the spaces
/// around them; `None` where those are not closed.
fn split(text: &str, by: char) -> Option<Vec<&str>> {
    let (mut parts, mut from) = (vec![], 0);
    let (mut open, mut quote, mut escaped): (Vec<char>, Option<char>, bool) = (vec![], None, false);
    for (at, c) in text.char_indices() {
        let is_plain = !std::mem::take(&mut escaped);
        match (quote, c) {
            (_, '\\') if is_plain => escaped = true,
            (Some(quoted), c) if c == quoted && is_plain => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') if is_plain => quote = Some(c),
            (None, '[') => open.push(']'),
            (None, '{') => open.push('}'),
            (None, '(') => open.push(')'),
            (None, ']' | '}' | ')') if open.pop() != Some(c) => return None,
            (None, c) if c == by && open.is_empty() => {
                parts.push(text[from..at].trim());
                from = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    (open.is_empty() && quote.is_none()).then_some(parts)
}

/// A text without its quotes, in which a backslash stands before a character that is meant, and
/// outside of which before a quote. One that begins as a list or struct is left as it is.
fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(['\'', '"']) || text.starts_with(['[', '{', '(']) {
        return Cow::Borrowed(text);
    }
    let (mut plain, mut quote) = (String::new(), None);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match quote {
            Some(_) if c == '\\' => plain.extend(characters.next()),
            None if c == '\\' => {
                plain.push(characters.next_if(|c| matches!(c, '\'' | '"')).unwrap_or(c));
            }
            Some(quoted) if c == quoted => quote = None,
            None if matches!(c, '\'' | '"') => quote = Some(c),
            _ => plain.push(c),
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_the_elements_that_duckdb_reads() {
        let texts =
            |texts: &[&str]| Some(texts.iter().map(|text| Some(text.to_string())).collect());
        for (list, expected) in [
            ("[]", texts(&[])),
            (" [ 1 , 2 ] ", texts(&["1", "2"])),
            ("[1,,2]", texts(&["1", "", "2"])),
            ("[a b,  c ]", texts(&["a b", "c"])),
            ("['a, b', \"c]\"]", texts(&["'a, b'", "\"c]\""])),
            ("[[a, b], {k: [1]}]", texts(&["[a, b]", "{k: [1]}"])),
            ("[a, NULL, 'null']", Some(vec![Some("a".into()), None, Some("'null'".into())])),
            (r"[a\'b, c]", texts(&[r"a\'b", "c"])),
            (r#"["\"", 1]"#, texts(&[r#""\"""#, "1"])),
            ("[1", None),
            ("[1] x", None),
            ("[]]", None),
            ("[(1]", None),
            ("['a]", None),
            ("abc", None),
            ("", None),
            ("NULL", None),
        ] {
            assert_eq!(elements(list), expected, "{list}");
        }
    }

    #[test]
    fn quotes_go_and_backslashes_within_stand_for_what_follows() {
        for (text, expected) in [
            ("a b", "a b"),
            ("'a b'", "a b"),
            (r"'a\'b'", "a'b"),
            (r"a\\b\", r"a\\b\"),
            (r"a\'b", "a'b"),
            ("'a'b", "ab"),
            ("{'a': 1}", "{'a': 1}"),
        ] {
            assert_eq!(plain(text), expected, "{text}");
        }
    }

    #[test]
    fn fields_are_found_by_their_names() {
        let fields: Fields = ["a", "b"]
            .map(|name| datafusion::arrow::datatypes::Field::new(name, DataType::Utf8, true))
            .into_iter()
            .collect();
        let some = |text: &str| Some(text.to_string());
        for (text, expected) in [
            ("{a: 1, b: x}", Some(vec![some("1"), some("x")])),
            ("{'b' : 'x: y'}", Some(vec![None, some("'x: y'")])),
            ("{b: {c: 1}, a: 10:30}", Some(vec![some("10:30"), some("{c: 1}")])),
            ("{a: }", Some(vec![some(""), None])),
            ("{}", Some(vec![None, None])),
            ("(1, NULL)", Some(vec![some("1"), None])),
            ("(1)", None),
            ("{a}", None),
            ("{a=1}", None),
            ("{a: 1, a: 2}", None),
            ("{c: 1}", None),
            ("abc", None),
        ] {
            assert_eq!(named(text, &fields), expected, "{text}");
        }
    }
}
