//! Patterns of times in DuckDB's letters.

use datafusion::common::{Result, plan_err};

/// A part of a pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::host) enum Item {
    Literal(char),
    /// A letter behind `%`, and whether `-` stands between, which drops zeros before a number.
    Field {
        letter: char,
        unpadded: bool,
    },
}

/// The parts of a pattern. `%c`, `%x` and `%X` are written out.
///
/// # Errors
/// Letters that are not known, by the name of the function.
pub(in crate::host) fn items(function: &str, pattern: &str) -> Result<Vec<Item>> {
    let mut found = vec![];
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        if c != '%' {
            found.push(Item::Literal(c));
            continue;
        }
        let mut letter = characters.next();
        let unpadded = letter == Some('-');
        if unpadded {
            letter = characters.next();
        }
        match letter {
            Some('%') if !unpadded => found.push(Item::Literal('%')),
            Some('c') if !unpadded => found.extend(items(function, "%Y-%m-%d %H:%M:%S")?),
            Some('x') if !unpadded => found.extend(items(function, "%Y-%m-%d")?),
            Some('X') if !unpadded => found.extend(items(function, "%H:%M:%S")?),
            Some(letter) if !unpadded && "aAbBYGVpwuUWfgn".contains(letter) => {
                found.push(Item::Field { letter, unpadded })
            }
            Some(letter) if "dmyHIMSj".contains(letter) => {
                found.push(Item::Field { letter, unpadded })
            }
            Some(letter) => {
                let dash = if unpadded { "-" } else { "" };
                return plan_err!("{function}: %{dash}{letter} in {pattern:?} is not known");
            }
            None => return plan_err!("{function}: the pattern {pattern:?} ends behind %"),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_known_or_named() {
        let field = |letter, unpadded| Item::Field { letter, unpadded };
        assert_eq!(
            items("f", "%-d %%").expect("they are known"),
            [field('d', true), Item::Literal(' '), Item::Literal('%')]
        );
        for (pattern, says) in [("%e", "%e"), ("%-Y", "%-Y"), ("%", "ends behind %")] {
            let error = items("f", pattern).expect_err(pattern).to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
