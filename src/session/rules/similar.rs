//! `SIMILAR TO` as the SQL standard and PostgreSQL have it: `%` is any text and `_` any character,
//! `| * + ? {m,n} ( ) [ ]` are those of regular expressions, and every other character is itself.
//! The pattern is one of whole texts.
//!
//! ```text
//!   s SIMILAR TO '(a|b)%'            s ~ '^(?:(a|b)(?s:.)*)$'
//!   s SIMILAR TO 'a.b#%' ESCAPE '#'  s ~ '^(?:a\.b%)$'
//! ```
//!
//! DataFusion (55.2) takes the pattern for a regular expression, and looks for it anywhere
//! (<https://github.com/apache/datafusion/issues/22263>).

use datafusion::sql::sqlparser::ast::{Expr, Spanned, Value, ValueWithSpan};

use crate::error::{Error, ErrorKind, Result};
use crate::sql::ast::{bare, known, text};

/// Writes the pattern as a regular expression.
///
/// # Errors
/// A computed pattern, and one that ends within brackets or behind its escape character.
pub(super) fn write_out(pattern: &mut Expr, escape: &mut Option<ValueWithSpan>) -> Result<()> {
    let location = known(pattern.span().start);
    let escape = match escape.take() {
        None => Some('\\'),
        Some(given) => {
            let given = given.value.into_string().unwrap_or_default();
            let mut characters = given.chars();
            match (characters.next(), characters.next()) {
                (first, None) => first,
                _ => {
                    let message = format!("ESCAPE takes one character, or none, not {given:?}");
                    return Err(Error::from(ErrorKind::Plan { message, location }));
                }
            }
        }
    };
    let constant = match bare(pattern) {
        Expr::Value(value) if value.value == Value::Null => return Ok(()),
        Expr::Value(value) => value.value.clone().into_string(),
        _ => None,
    };
    let Some(constant) = constant else {
        let why = "its pattern is a constant; ~ takes a computed regular expression";
        return Err(Error::unsupported("SIMILAR TO with a computed pattern", why).at(location));
    };
    let Some(regular) = regular(&constant, escape) else {
        let message = format!(
            "SIMILAR TO: the pattern {constant:?} ends within [ ] or behind its escape character"
        );
        return Err(Error::from(ErrorKind::Plan { message, location }));
    };
    *pattern = text(&format!("^(?:{regular})$"));
    Ok(())
}

fn regular(pattern: &str, escape: Option<char>) -> Option<String> {
    let mut found = String::new();
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        match c {
            c if Some(c) == escape => literal(&mut found, characters.next()?),
            '%' => found.push_str("(?s:.)*"),
            '_' => found.push_str("(?s:.)"),
            '|' | '*' | '+' | '?' | '{' | '}' | '(' | ')' => found.push(c),
            '[' => {
                found.push('[');
                let mut is_first = true;
                loop {
                    match characters.next()? {
                        ']' if !is_first => break,
                        '^' if is_first => {
                            found.push('^');
                            continue;
                        }
                        c if Some(c) == escape => literal(&mut found, characters.next()?),
                        // A class by its name: [[:alpha:]].
                        c @ ('-' | ':') => found.push(c),
                        '[' if characters.as_str().starts_with(':') => {
                            let (class, rest) = characters.as_str().split_once(":]")?;
                            found.push_str(&format!("[{class}:]"));
                            characters = rest.chars();
                        }
                        c => literal(&mut found, c),
                    }
                    is_first = false;
                }
                found.push(']');
            }
            c => literal(&mut found, c),
        }
    }
    Some(found)
}

/// A character that is itself. Behind a backslash, others would be classes and edges of words.
fn literal(found: &mut String, c: char) {
    if r"\.+*?()|[]{}^$#&-~".contains(c) {
        found.push('\\');
    }
    found.push(c);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_regular_expressions() {
        for (pattern, escape, expected) in [
            ("(a|b)%", Some('\\'), "(a|b)(?s:.)*"),
            ("a.c", Some('\\'), r"a\.c"),
            ("_{2,3}", Some('\\'), "(?s:.){2,3}"),
            (r"50\%", Some('\\'), "50%"),
            (r"50\#%", Some('#'), r"50\\%"),
            (r"a\b", None, r"a\\b"),
            ("[^a-c]+^$", Some('\\'), r"[^a-c]+\^\$"),
            ("[[:alpha:]_]", Some('\\'), "[[:alpha:]_]"),
            ("[]a]", Some('\\'), r"[\]a]"),
        ] {
            assert_eq!(regular(pattern, escape).as_deref(), Some(expected), "{pattern}");
        }
        assert_eq!(regular("a[", Some('\\')), None);
        assert_eq!(regular(r"a\", Some('\\')), None);
    }
}
