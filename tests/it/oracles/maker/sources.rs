//! What stands in FROM.

use super::super::dialects::{either, spelled};
use super::super::tables::NAMES;
use super::{Class, Column, Maker, Relation, Scope};

impl Maker<'_> {
    /// One item or several that are joined, and their columns.
    pub fn from(&mut self, most: usize) -> (String, Scope) {
        let items = [1, 1, 1, 2, 2, 3][self.below(6)].min(most);
        let (mut text, mut scope) = self.item();
        for _ in 1..items {
            if self.chance(0.15) {
                (text, scope) = self.lateral(text, scope);
                continue;
            }
            let (right, columns) = self.item();
            let kinds =
                ["JOIN", "JOIN", "CROSS JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"];
            // What stands for a lateral query's column in SQLite may be a value of no row, too.
            let lateral = scope.columns.iter().any(|column| column.text.starts_with('«'));
            let kind = self.pick(if lateral { &kinds[..5] } else { &kinds });
            let on = match kind {
                "CROSS JOIN" => String::new(),
                _ => format!(" ON {}", self.on(&scope, &columns)),
            };
            text = format!("{text} {kind} {right}{on}");
            scope = joined(scope, columns);
        }
        (text, scope)
    }

    pub fn item(&mut self) -> (String, Scope) {
        if self.nests(0.3) {
            let classes = self.classes(4);
            let (text, columns) = self.apart(|maker| maker.select(&classes));
            return named(&self.name("q"), &columns, &format!("({text})"));
        }
        let known: Vec<Relation> = self.relations.iter().chain(&self.named).cloned().collect();
        let Relation { name, columns } = match !self.named.is_empty() && self.chance(0.4) {
            true => self.pick(&self.named.clone()),
            false => self.pick(&known),
        };
        let alias = self.name(&name[..1]);
        named(&alias, &columns, &name)
    }

    /// A table by an alias; its first column is its id.
    pub fn table_of_names(&mut self) -> (String, Scope) {
        let known = self.relations[..NAMES.len()].to_vec();
        let Relation { name, columns } = self.pick(&known);
        let alias = self.name(&name);
        named(&alias, &columns, &name)
    }

    /// A join's condition, most with columns that shall be equal.
    pub fn on(&mut self, left: &Scope, right: &Scope) -> String {
        let mut conditions = vec![];
        for _ in 0..self.pick(&[0, 1, 1, 1, 2]) {
            let class = self.class_to_compare();
            let one = self.within(left.clone(), |maker| maker.locally(|m| m.column(class)));
            let other = self.within(right.clone(), |maker| maker.locally(|m| m.column(class)));
            if let (Some(one), Some(other)) = (one, other) {
                let operator = self.pick(&["=", "=", "=", "IS NOT DISTINCT FROM", "<="]);
                conditions.push(format!("{one} {operator} {other}"));
            }
        }
        if conditions.is_empty() || self.chance(0.3) {
            let both = joined(left.clone(), right.clone());
            conditions.push(self.within(both, |maker| maker.locally(|m| m.condition(1))));
        }
        conditions.join(" AND ")
    }

    /// A join with a query that names columns of what stands before it. SQLite has the query's FROM
    /// and WHERE as a join, or its one value as a scalar subquery, where its columns are named.
    pub fn lateral(&mut self, text: String, scope: Scope) -> (String, Scope) {
        let name = self.name("l");
        let (room, before) = (self.room, std::mem::take(&mut self.scopes));
        self.room = 0;
        self.scopes.push(scope.clone());
        let (text, columns) = match self.below(5) {
            0 | 1 => self.lateral_value(text, &name),
            _ => self.lateral_rows(text, &name),
        };
        (self.room, self.scopes) = (room, before);
        let order = columns.iter().map(|column| column.text.clone()).collect();
        (text, joined(scope, Scope { columns, order, computed: false }))
    }

    pub fn lateral_value(&mut self, text: String, name: &str) -> (String, Vec<Column>) {
        let class = self.class_to_compare();
        let value = self.scalar(class);
        let join = self.pick(&["CROSS JOIN LATERAL", "LEFT JOIN LATERAL"]);
        let is_one_row = !value.contains(" HAVING ") && !value.contains(" LIMIT ");
        let (join, on) = match is_one_row {
            true if join.starts_with("CROSS") => (join, ""),
            // A row that is not there is a null as a value.
            _ => ("LEFT JOIN LATERAL", " ON TRUE"),
        };
        let text = format!("{text}{}", either(&format!(" {join} {value} {name}{on}"), ""));
        let column = value_name(&value);
        let column = either(&format!("{name}.{column}"), &value);
        (text, vec![Column { text: column, class }])
    }

    pub fn lateral_rows(&mut self, text: String, name: &str) -> (String, Vec<Column>) {
        let (from, inner) = self.from(2);
        let left = self.chance(0.4);
        let (list, filter) = self.within(inner, |maker| {
            let mut list: Vec<(String, Class)> = vec![];
            for class in maker.classes(3) {
                // A column, which is null where a left join finds nothing.
                let value = match left {
                    true => maker.locally(|maker| maker.column(class)),
                    false => Some(maker.locally(|maker| maker.expr(class, 1))),
                };
                list.extend(value.map(|value| (value, class)));
            }
            if list.is_empty() {
                list.push(("1".into(), Class::Int));
            }
            (list, maker.condition(2))
        });
        // A literal would be one for rows that a left join does not find, too.
        let left = left && list.iter().all(|(value, _)| value != "1");
        let names: Vec<_> = match self.chance(0.6) {
            // Columns keep their names where they can.
            true => list
                .iter()
                .enumerate()
                .map(|(at, (value, _))| match value.rsplit_once('.') {
                    Some((_, name))
                        if name.starts_with(|c: char| c.is_ascii_alphabetic())
                            && name.chars().all(|c| c.is_ascii_alphanumeric())
                            && list
                                .iter()
                                .filter(|(v, _)| v.ends_with(&format!(".{name}")))
                                .count()
                                == 1 =>
                    {
                        name.to_string()
                    }
                    _ => format!("c{at}"),
                })
                .collect(),
            false => (0..list.len()).map(|at| format!("c{at}")).collect(),
        };
        let selected: Vec<_> = list
            .iter()
            .zip(&names)
            .map(|((value, _), name)| format!("{value} AS {name}"))
            .collect();
        let query = format!("(SELECT {} FROM {from} WHERE {filter}) {name}", selected.join(", "));
        // Alone in parentheses a table loses its alias.
        let from = if is_join(&from) { format!("({from})") } else { from };
        let (ours, sqlite) = match left {
            true => (
                format!(" LEFT JOIN LATERAL {query} ON TRUE"),
                format!(" LEFT JOIN {from} ON {filter}"),
            ),
            false => (format!(" CROSS JOIN LATERAL {query}"), format!(" JOIN {from} ON {filter}")),
        };
        let columns = (list.iter().zip(&names))
            .map(|((value, class), column)| Column {
                text: either(&format!("{name}.{column}"), value),
                class: *class,
            })
            .collect();
        (format!("{text}{}", either(&ours, &sqlite)), columns)
    }
}

/// Whether SQLite sees more than one item.
fn is_join(from: &str) -> bool {
    let from = spelled(from).1;
    let mut depth = 0;
    from.char_indices().any(|(at, character)| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0 && from[at..].starts_with(" JOIN ")
    })
}

/// The name of a scalar subquery's column, which stands behind the first AS that is its own.
fn value_name(query: &str) -> &str {
    let mut depth = 0;
    let own = query.char_indices().find_map(|(at, character)| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        query[at..].strip_prefix(" AS o").filter(|_| depth == 1)
    });
    let rest = own.expect("a scalar subquery names its column");
    let start = query.len() - rest.len() - 1;
    &query[start..start + 1 + rest.find(' ').expect("FROM follows")]
}

/// A relation by an alias.
fn named(alias: &str, columns: &[(String, Class)], text: &str) -> (String, Scope) {
    let columns: Vec<_> = (columns.iter())
        .map(|(name, class)| Column { text: format!("{alias}.{name}"), class: *class })
        .collect();
    // Ids are unique in tables.
    let ids = columns.iter().filter(|column| column.text.ends_with(".id")).count();
    let order = match text.len() == 1 && ids == 1 {
        true => vec![format!("{alias}.id")],
        false => columns.iter().map(|column| column.text.clone()).collect(),
    };
    (format!("{text} {alias}"), Scope { columns, order, computed: false })
}

fn joined(left: Scope, right: Scope) -> Scope {
    Scope {
        columns: [left.columns, right.columns].concat(),
        order: [left.order, right.order].concat(),
        computed: false,
    }
}
