//! Expressions that SQLite has no words for.

use super::super::tables::DATES;
use super::{Class, Maker};

impl Maker<'_> {
    /// A table of the query by its alias: those have further columns.
    fn table(&mut self) -> Option<String> {
        let scope = self.scopes.last()?;
        let ids = scope.columns.iter().filter_map(|column| column.text.strip_suffix(".id"));
        let tables: Vec<_> =
            ids.filter(|alias| alias.starts_with(['t', 'u', 'v'])).map(str::to_string).collect();
        (!tables.is_empty() && !scope.computed).then(|| self.pick(&tables))
    }

    pub fn int_of_ours(&mut self, a: String) -> String {
        let Some(t) = self.table() else { return a };
        match self.below(8) {
            0 => format!("{t}.l[{}]", self.pick(&[1, 2])),
            1 => format!("{t}.o['{}']", self.pick(&["f", "g"])),
            2 => format!("TRY_CAST({t}.big AS {})", self.pick(&["TINYINT", "SMALLINT"])),
            3 => format!("{t}.big"),
            4 => format!("CAST(cardinality({t}.l) AS BIGINT)"),
            5 => format!("greatest({a}, {t}.big)"),
            6 => format!("CAST(extract(day FROM {t}.ts) AS BIGINT)"),
            _ => format!("TRY_CAST({t}.s AS BIGINT)"),
        }
    }

    pub fn condition_of_ours(&mut self, depth: usize) -> String {
        let text = self.expr(Class::Text, depth);
        let Some(t) = self.table() else {
            return format!("({text} ILIKE {})", self.literal(Class::Text));
        };
        let operator = self.pick(&["=", "<>", "<", ">="]);
        match self.below(11) {
            0 => format!("({t}.te - {t}.ts > INTERVAL '{}')", self.pick(&["1 day", "2 hours"])),
            1 => {
                format!("(CAST({t}.ts AS DATE) {operator} DATE '{}')", self.pick(&DATES))
            }
            2 => format!("({t}.ts {operator} {t}.te)"),
            3 => format!("(date_trunc('day', {t}.ts) {operator} TIMESTAMP '2024-02-29T00:00:00')"),
            4 => format!("({text} ILIKE {})", self.pick(&["'A%'", "'%B'", "'b_'"])),
            5 => {
                let pattern = self.pick(&["^a", "b$", "^$", "(a|B)", "."]);
                format!("({text} {} '{pattern}')", self.pick(&["~", "!~", "~*"]))
            }
            6 => format!("array_has({t}.l, {})", self.expr(Class::Int, 0)),
            7 => format!("({t}.o['f'] {operator} {})", self.expr(Class::Int, 0)),
            8 => format!("(TRY_CAST({text} AS BIGINT) IS NULL)"),
            9 => format!(
                "(TRY_CAST({t}.big AS {}) {operator} {})",
                self.pick(&["TINYINT", "SMALLINT"]),
                self.literal(Class::Int)
            ),
            _ => format!("({t}.{0} IS NOT DISTINCT FROM {t}.{0})", self.pick(&["l", "o", "ts"])),
        }
    }
}
