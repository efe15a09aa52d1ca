//! Tables that a statement names, as far as it is typed.

use datafusion::sql::sqlparser::tokenizer::Token;
use warpframe::sql::{Text, keywords};

/// What tables stand behind.
pub(super) const BEFORE_TABLES: [&str; 9] =
    ["DESCRIBE", "FROM", "INTO", "JOIN", "PIVOT", "SUMMARIZE", "TABLE", "TRUNCATE", "UPDATE"];

/// A table that a statement reads or changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedTable {
    /// Its name, or the path of its file.
    pub(super) name: String,
    pub(super) is_file: bool,
    /// What the statement calls it.
    pub(super) alias: Option<String>,
}

impl NamedTable {
    /// Whether `alias.column` is a column of it.
    pub(super) fn is_called(&self, alias: &str) -> bool {
        let stem = || {
            let path = std::path::Path::new(&self.name);
            path.file_stem().is_some_and(|stem| stem.to_string_lossy() == alias)
        };
        match &self.alias {
            Some(own) => own == alias,
            None if self.is_file => stem(),
            None => self.name == alias,
        }
    }
}

/// What stood before a token.
enum Before {
    /// A table may follow.
    TablePlace,
    /// What it is called may follow, or another table behind a comma.
    Table,
    Other,
}

/// Those of a statement, in its order.
pub(super) fn named_tables(statement: &str) -> Vec<NamedTable> {
    let (mut tables, mut before) = (Vec::<NamedTable>::new(), Before::Other);
    for token in Text::from(statement).words() {
        let is_word = |word: &str, bare: bool| {
            bare && BEFORE_TABLES.iter().any(|known| known.eq_ignore_ascii_case(word))
        };
        before = match (&token.token, before) {
            (Token::Word(word), _) if is_word(&word.value, word.quote_style.is_none()) => {
                Before::TablePlace
            }
            (Token::Word(word), Before::TablePlace) => {
                tables.push(NamedTable { name: word.value.clone(), is_file: false, alias: None });
                Before::Table
            }
            (Token::SingleQuotedString(path), Before::TablePlace) => {
                tables.push(NamedTable { name: path.clone(), is_file: true, alias: None });
                Before::Table
            }
            (Token::Comma, Before::Table) => Before::TablePlace,
            // The name before the dot is a schema's.
            (Token::Period, Before::Table) => {
                tables.pop();
                Before::TablePlace
            }
            (Token::Word(word), Before::Table) => {
                let is_bare = word.quote_style.is_none();
                match tables.last_mut() {
                    _ if is_bare && word.value.eq_ignore_ascii_case("AS") => Before::Table,
                    Some(table) if !is_bare || !keywords::is_keyword(&word.value) => {
                        table.alias = Some(word.value.clone());
                        Before::Table
                    }
                    _ => Before::Other,
                }
            }
            _ => Before::Other,
        };
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(statement: &str) -> Vec<(String, Option<String>)> {
        named_tables(statement).into_iter().map(|table| (table.name, table.alias)).collect()
    }

    #[test]
    fn tables_are_named_behind_from_join_and_commas() {
        let of = |name: &str, alias: Option<&str>| (name.to_string(), alias.map(String::from));
        assert_eq!(
            names("SELECT * FROM a x, raw.b AS y JOIN 'd/uni.csv' ON x.i = y.i WHERE "),
            [of("a", Some("x")), of("b", Some("y")), of("d/uni.csv", None)]
        );
        assert_eq!(names("UPDATE t SET "), [of("t", None)]);
        assert_eq!(names("FROM (SELECT 1) WHERE x > 'open"), []);
        assert!(named_tables("FROM 'd/uni.csv'")[0].is_called("uni"));
    }
}
