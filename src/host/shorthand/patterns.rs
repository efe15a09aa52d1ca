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

/// What a pattern writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimePattern {
    /// Dates, whose time of day is midnight.
    OfDates,
    /// Timestamps, or dates by patterns that say nothing of a time of day.
    OfTimes,
}

/// Letters of the time of day.
pub(in crate::host) const OF_CLOCK: &str = "HIMSpfgn";

/// A pattern as chrono has it.
///
/// # Errors
/// Letters that are not known, by the name of the function or option.
pub(crate) fn chrono_pattern(of: TimePattern, name: &str, pattern: &str) -> Result<String> {
    let mut written = String::new();
    for item in items(name, pattern)? {
        match item {
            Item::Literal('%') => written.push_str("%%"),
            Item::Literal(c) => written.push(c),
            Item::Field { letter, unpadded } => match (of, letter) {
                (TimePattern::OfDates, letter) if OF_CLOCK.contains(letter) => {
                    written.push_str(match letter {
                        'I' => "12",
                        'p' => "AM",
                        'g' => "000",
                        'f' => "000000",
                        'n' => "000000000",
                        _ if unpadded => "0",
                        _ => "00",
                    });
                }
                (_, 'g') => written.push_str("%3f"),
                (_, 'f') => written.push_str("%6f"),
                (_, 'n') => written.push_str("%9f"),
                _ if unpadded => written.extend(['%', '-', letter]),
                _ => written.extend(['%', letter]),
            },
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_midnight_for_their_time_of_day() {
        let pattern = |of| chrono_pattern(of, "f", "%-d.%m %H:%-M%% %g").expect("it is known");
        assert_eq!(pattern(TimePattern::OfTimes), "%-d.%m %H:%-M%% %3f");
        assert_eq!(pattern(TimePattern::OfDates), "%-d.%m 00:0%% 000");
    }

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
