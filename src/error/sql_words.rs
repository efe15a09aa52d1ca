//! Messages of DataFusion and Arrow with types and constants as SQL writes them.
//!
//! ```text
//!   Cannot coerce Int32 + Utf8View       Cannot coerce INTEGER + VARCHAR
//!   t.x > Int64(1)                       t.x > 1
//!   to List(Decimal128(4, 2))            to DECIMAL(4,2)[]
//! ```

use datafusion::arrow::datatypes::DataType;

use crate::sql::type_name;

/// Types without parameters. A word before a parenthesis is a constant of the type.
const PLAIN: [&str; 20] = [
    "Boolean",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "Float16",
    "Float32",
    "Float64",
    "Utf8",
    "LargeUtf8",
    "Utf8View",
    "Date32",
    "Date64",
    "BinaryView",
    "Binary",
    "LargeBinary",
];

/// Types that others, or numbers, stand behind in parentheses.
const WITH_PARAMETERS: [&str; 15] = [
    "Decimal32",
    "Decimal64",
    "Decimal128",
    "Decimal256",
    "Timestamp",
    "Time32",
    "Time64",
    "Interval",
    "Duration",
    "List",
    "LargeList",
    "FixedSizeList",
    "Dictionary",
    "Struct",
    "Map",
];

/// The message. What stands in quotes is somebody's own, but for constants in it, which a query has
/// not so.
pub(super) fn in_sql(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(first) = rest.chars().next() {
        let before = text.chars().next_back();
        let begins = !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
        let quoted = match first {
            '\'' | '"' | '`' if begins => rest[1..].find(first).map(|end| end + 2),
            _ => None,
        };
        let length = match (quoted, begins.then(|| spelled(rest)).flatten()) {
            (Some(length), _) => {
                text.push_str(&with_constants(&rest[..length]));
                length
            }
            (None, Some((said, length))) => {
                text.push_str(&said);
                length
            }
            (None, None) => {
                text.push(first);
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    text
}

/// A text in quotes with its constants of integers and texts as SQL has them.
fn with_constants(quoted: &str) -> String {
    let mut text = String::with_capacity(quoted.len());
    let mut rest = quoted;
    while let Some(at) =
        ["Int64(", "Utf8(", "Float64(", "Boolean("].iter().filter_map(|mark| rest.find(mark)).min()
    {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let begins = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        match begins.then(|| spelled(from)).flatten() {
            Some((said, length)) => {
                text.push_str(&said);
                rest = &from[length..];
            }
            None => {
                text.push_str(&from[..4]);
                rest = &from[4..];
            }
        }
    }
    text + rest
}

/// What a type or a constant at the begin of a text is in SQL, and how long it is there.
fn spelled(text: &str) -> Option<(String, usize)> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let (word, behind) = text.split_at(end);
    let is_plain = PLAIN.contains(&word);
    if !is_plain && !WITH_PARAMETERS.contains(&word) {
        return None;
    }
    let Some(inner) = in_parentheses(behind) else {
        if word.starts_with("Decimal") {
            return Some(("DECIMAL".into(), end));
        }
        return is_plain.then(|| Some((type_name(&word.parse().ok()?), end))).flatten();
    };
    let length = end + inner.len() + 2;
    let said = match text[..length].parse::<DataType>() {
        Ok(dtype) => type_name(&dtype),
        Err(_) if is_plain => constant(inner),
        Err(_) => return None,
    };
    Some((said, length))
}

/// What stands between a parenthesis that a text begins with and the one that closes it.
fn in_parentheses(text: &str) -> Option<&str> {
    if !text.starts_with('(') {
        return None;
    }
    let mut deep = 0;
    let mut in_text = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => in_text = !in_text,
            '(' if !in_text => deep += 1,
            ')' if !in_text => deep -= 1,
            _ => {}
        }
        if deep == 0 {
            return Some(&text[1..at]);
        }
    }
    None
}

/// A constant without its type: `1`, `'a'`, `NULL`.
fn constant(inner: &str) -> String {
    match inner.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(text) => format!("'{}'", text.replace('\'', "''")),
        None => inner.into(),
    }
}

/// A message without the tree of the parser's that it ends with, which shows where it stands.
pub(super) fn without_tree(message: &str) -> &str {
    let Some(of_tree) = ["ValueWithSpan {", "Ident {", "span: Span"]
        .iter()
        .filter_map(|mark| message.find(mark))
        .min()
    else {
        return message;
    };
    // The tree begins with the first word that a brace or a parenthesis follows at once.
    let is_name = |word: &str| {
        let name = word.split(['(', '{', '[']).next().unwrap_or_default();
        name.starts_with(|c: char| c.is_ascii_uppercase())
    };
    let head = &message[..of_tree];
    let begin = head.match_indices(['(', '{', '[']).find_map(|(at, _)| {
        let before = head[..at].trim_end();
        let word = before.rfind(char::is_whitespace).map_or(0, |blank| blank + 1);
        is_name(&before[word..]).then_some(word)
    });
    message[..begin.unwrap_or(of_tree)].trim_end_matches([' ', ':', ',', '\n', '"', '`', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_constants_are_as_sql_has_them() {
        for (message, said) in [
            ("Cannot coerce Int32 + Utf8View", "Cannot coerce INTEGER + VARCHAR"),
            ("t.x > Int64(1) and Utf8(\"it's (\")", "t.x > 1 and 'it''s ('"),
            ("to List(Decimal128(4, 2)).", "to DECIMAL(4,2)[]."),
            ("Timestamp(ns), Dictionary(Int32, Utf8)", "TIMESTAMP_NS, VARCHAR"),
            ("Can't cast 'Int32' to Int32", "Can't cast 'Int32' to INTEGER"),
            ("f(Utf8); there is f(Int64)", "f(VARCHAR); there is f(BIGINT)"),
            ("a Decimal128 of precision 10", "a DECIMAL of precision 10"),
            ("'sum(Int64(1))' is in 'UInt64('", "'sum(1)' is in 'UInt64('"),
            ("t.Int32, MyInt32, Struct, List", "t.Int32, MyInt32, Struct, List"),
            ("Boolean(NULL) of Float64(-1.5)", "NULL of -1.5"),
            ("é Utf8(\"é\")", "é 'é'"),
        ] {
            assert_eq!(in_sql(message), said);
        }
    }

    #[test]
    fn no_tree_is_shown() {
        let tree =
            "Substring without for/from is not valid Substring { expr: Value(ValueWithSpan {";
        assert_eq!(without_tree(tree), "Substring without for/from is not valid");
        let tree = "Unsupported ast node: Function(Function { name: ObjectName([Identifier(Ident {";
        assert_eq!(without_tree(tree), "Unsupported ast node");
        assert_eq!(without_tree("no (tree) here"), "no (tree) here");
    }
}
