//! The words of SQL: those that completion offers and that have a colour, and of these those that a
//! mistyped word may be meant for.

/// Words that begin or join the parts of the statements that the command takes, types and functions
/// that are often typed, in order.
const KEYWORDS: [&str; 124] = [
    "ALL",
    "ALTER",
    "ANALYZE",
    "AND",
    "ANTI",
    "AS",
    "ASC",
    "ASOF",
    "ATTACH",
    "AVG",
    "BETWEEN",
    "BIGINT",
    "BOOLEAN",
    "BY",
    "CASE",
    "CAST",
    "COALESCE",
    "COLUMN",
    "COPY",
    "COUNT",
    "CREATE",
    "CROSS",
    "CUBE",
    "CURRENT",
    "DATABASE",
    "DATE",
    "DEALLOCATE",
    "DECIMAL",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DETACH",
    "DISTINCT",
    "DOUBLE",
    "DROP",
    "ELSE",
    "END",
    "EXCEPT",
    "EXCLUDE",
    "EXECUTE",
    "EXISTS",
    "EXPLAIN",
    "EXPORT",
    "EXTERNAL",
    "EXTRACT",
    "FALSE",
    "FILTER",
    "FIRST",
    "FLOAT",
    "FOLLOWING",
    "FORMAT",
    "FROM",
    "FULL",
    "FUNCTION",
    "GROUP",
    "HAVING",
    "IF",
    "ILIKE",
    "IMPORT",
    "IN",
    "INNER",
    "INSERT",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "IS",
    "JOIN",
    "LAST",
    "LATERAL",
    "LEFT",
    "LIKE",
    "LIMIT",
    "MAX",
    "MIN",
    "NATURAL",
    "NOT",
    "NULL",
    "NULLS",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "PIVOT",
    "POSITIONAL",
    "PRECEDING",
    "PREPARE",
    "QUALIFY",
    "RECURSIVE",
    "RENAME",
    "REPLACE",
    "RESET",
    "RIGHT",
    "ROLLUP",
    "ROWS",
    "SAMPLE",
    "SCHEMA",
    "SELECT",
    "SEMI",
    "SET",
    "SHOW",
    "SUM",
    "SUMMARIZE",
    "TABLE",
    "TABLES",
    "THEN",
    "TIMESTAMP",
    "TO",
    "TRUE",
    "TRUNCATE",
    "UNBOUNDED",
    "UNION",
    "UNPIVOT",
    "UPDATE",
    "USE",
    "USING",
    "VALUES",
    "VIEW",
    "WHEN",
    "WHERE",
    "WINDOW",
    "WITH",
];

/// Keywords that stand where names do. A word that resembles one of them is more likely a name.
const AMONG_NAMES: [&str; 22] = [
    "AVG",
    "BIGINT",
    "BOOLEAN",
    "CAST",
    "COALESCE",
    "COUNT",
    "DATE",
    "DECIMAL",
    "DOUBLE",
    "EXTRACT",
    "FALSE",
    "FIRST",
    "FLOAT",
    "INTERVAL",
    "LAST",
    "MAX",
    "MIN",
    "NULL",
    "NULLS",
    "SUM",
    "TIMESTAMP",
    "TRUE",
];

/// A shorter word resembles too many others for one of them to be suggested.
const LEAST_LETTERS: usize = 4;

/// Whether a word, in upper case, is one of SQL's.
pub fn is_keyword(word: &str) -> bool {
    KEYWORDS.binary_search(&word).is_ok()
}

/// The words, in order, that begin with some letters in upper case.
pub fn beginning_with(start: &str) -> impl Iterator<Item = &'static str> {
    KEYWORDS.into_iter().filter(move |word| word.starts_with(start))
}

/// What a mistyped word may be meant for.
pub(super) fn of_clauses() -> Vec<String> {
    let words = KEYWORDS.iter().filter(|word| word.len() >= LEAST_LETTERS);
    words.filter(|word| !AMONG_NAMES.contains(word)).map(|word| word.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_in_order_and_names_among_them() {
        assert!(KEYWORDS.is_sorted());
        assert!(AMONG_NAMES.iter().all(|word| is_keyword(word)));
        assert!(is_keyword("SELECT") && !is_keyword("JETS"));
        assert_eq!(beginning_with("SE").collect::<Vec<_>>(), ["SELECT", "SEMI", "SET"]);
        let clauses = of_clauses();
        assert!(clauses.contains(&"WITH".into()));
        assert!(!clauses.contains(&"DATE".into()) && !clauses.contains(&"OR".into()));
    }
}
