//! Queries of one SELECT, and of several that UNION and its like put together.

use super::super::dialects::{either, spelled};
use super::values::null;
use super::{Class, Column, Maker, Scope};

/// Names that columns of tables have, too.
const COLUMNS: [&str; 8] = ["a", "b", "s", "id", "w", "x", "i", "m"];

impl Maker<'_> {
    /// A query with columns of these classes, and their names.
    pub fn select(&mut self, classes: &[Class]) -> (String, Vec<(String, Class)>) {
        let names: Vec<_> = match self.chance(0.5) {
            true => (0..classes.len()).map(|at| format!("c{at}")).collect(),
            false => COLUMNS[..classes.len()].iter().map(|name| name.to_string()).collect(),
        };
        let text = match self.below(14) {
            0..3 => self.compound(classes, &names),
            3 | 4 => self.ordered(classes, &names),
            5 => self.rolled_up(classes, &names),
            _ => self.arm(classes, &names),
        };
        (text, names.into_iter().zip(classes.iter().copied()).collect())
    }

    /// One SELECT.
    pub fn arm(&mut self, classes: &[Class], names: &[String]) -> String {
        let (from, scope) = self.from(3);
        self.within(scope, |maker| {
            let filter = maker.filter(0.6);
            match maker.below(10) {
                0..3 => maker.grouped(classes, names, &format!("{from}{filter}")),
                3 | 4 => {
                    let scope = maker.aggregates(&[]);
                    let before = maker.replaced(scope);
                    let list = counted(&maker.outputs(classes, names));
                    let having = maker.having_one(0.4, &list);
                    maker.restored(before);
                    format!("SELECT {list} FROM {from}{filter}{having}")
                }
                5 => {
                    let scope = maker.windows();
                    let before = maker.replaced(scope);
                    let list = listed(&maker.outputs(classes, names));
                    maker.restored(before);
                    format!("SELECT {list} FROM {from}{filter}")
                }
                _ => {
                    let distinct = maker.pick(&["", "", "DISTINCT "]);
                    let list = listed(&maker.outputs(classes, names));
                    format!("SELECT {distinct}{list} FROM {from}{filter}")
                }
            }
        })
    }

    pub fn grouped(&mut self, classes: &[Class], names: &[String], from: &str) -> String {
        let keys = self.keys();
        let scope = self.aggregates(&keys);
        let before = self.replaced(scope);
        let list = listed(&self.outputs(classes, names));
        let having = self.having(0.4);
        self.restored(before);
        let keys: Vec<_> = keys.into_iter().map(|(key, _)| key).collect();
        format!("SELECT {list} FROM {from} GROUP BY {}{having}", keys.join(", "))
    }

    /// One or two expressions to group by.
    pub fn keys(&mut self) -> Vec<(String, Class)> {
        let mut keys: Vec<(String, Class)> = vec![];
        for class in self.classes(2) {
            let key = self.locally(|maker| maker.expr(class, 1));
            // A number alone is a place in the select list.
            let key = match class == Class::Int && !key.contains(|c: char| c.is_alphabetic()) {
                true => format!("({key} + 0)"),
                false => key,
            };
            if keys.iter().all(|(other, _)| *other != key) {
                keys.push((key, class));
            }
        }
        keys
    }

    /// Values and their names.
    pub fn outputs(&mut self, classes: &[Class], names: &[String]) -> Vec<(String, String)> {
        let value = |class: &Class| match self.chance(0.2) {
            true => self.literal(*class),
            false => self.expr(*class, 2),
        };
        classes.iter().map(value).zip(names.iter().cloned()).collect()
    }

    pub fn compound(&mut self, classes: &[Class], names: &[String]) -> String {
        let operator = self.pick(&["UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"]);
        let arms = if operator.starts_with("UNION") { 2 + self.below(2) } else { 2 };
        let arms: Vec<_> = (0..arms)
            .map(|at| match at > 0 && self.chance(0.15) {
                true => {
                    let row: Vec<_> = classes.iter().map(|class| self.literal(*class)).collect();
                    format!("SELECT {}", row.join(", "))
                }
                false => self.arm(classes, names),
            })
            .collect();
        arms.join(&format!(" {operator} "))
    }

    /// The first rows of an order in which only equal rows are peers.
    pub fn ordered(&mut self, classes: &[Class], names: &[String]) -> String {
        let (from, scope) = self.from(2);
        self.within(scope, |maker| {
            let filter = maker.filter(0.5);
            let list = listed(&maker.outputs(classes, names));
            let mut keys = vec![];
            if maker.chance(0.4) {
                let class = maker.class_to_compare();
                keys.extend(maker.locally(|maker| maker.column(class)));
            }
            keys.extend(names.iter().cloned());
            let keys: Vec<_> = keys
                .iter()
                .map(|key| {
                    let way = maker.pick(&["NULLS FIRST", "NULLS LAST", "DESC NULLS LAST"]);
                    format!("{key} {way}")
                })
                .collect();
            let limit =
                maker.pick(&["LIMIT 1", "LIMIT 2", "LIMIT 5", "LIMIT 3 OFFSET 1", "LIMIT 0"]);
            format!("SELECT {list} FROM {from}{filter} ORDER BY {} {limit}", keys.join(", "))
        })
    }

    /// GROUP BY ROLLUP, which SQLite has as a union of its grouping sets.
    pub fn rolled_up(&mut self, classes: &[Class], names: &[String]) -> String {
        let (from, scope) = self.from(2);
        self.within(scope, |maker| {
            let from = format!("{from}{}", maker.filter(0.5));
            // A constant of the select list would be the key that is written as it is.
            let mut keys = maker.keys();
            keys.retain(|(key, _)| is_column(key));
            if keys.is_empty() {
                let column = &maker.scopes.last().expect("a query's scope").columns[0];
                keys.push((column.text.clone(), column.class));
            }
            // Keys are named by marks, in place of which a set has a null.
            let mark = |at: usize| format!("\u{1}{at}\u{2}");
            let marks: Vec<_> =
                keys.iter().enumerate().map(|(at, (_, class))| (mark(at), *class)).collect();
            let scope = maker.aggregates(&marks);
            let before = maker.replaced(scope);
            let outputs = maker.outputs(classes, names);
            let having = format!(" HAVING count(*) >= 0 AND {}", maker.condition(1));
            maker.restored(before);
            let having = if maker.chance(0.4) { having } else { " HAVING count(*) >= 0".into() };
            let written = |text: &str, grouped: usize| {
                keys.iter().enumerate().fold(text.to_string(), |text, (at, (key, class))| {
                    text.replace(&mark(at), &if at < grouped { key.clone() } else { null(*class) })
                })
            };
            let texts: Vec<_> = keys.iter().map(|(key, _)| key.clone()).collect();
            let ours = format!(
                "SELECT {} FROM {from} GROUP BY ROLLUP ({}){}",
                written(&listed(&outputs), keys.len()),
                texts.join(", "),
                written(&having, keys.len())
            );
            let sets: Vec<_> = (0..=keys.len())
                .rev()
                .map(|grouped| {
                    let by = match grouped {
                        0 => String::new(),
                        _ => format!(" GROUP BY {}", texts[..grouped].join(", ")),
                    };
                    let list = if grouped == 0 { counted(&outputs) } else { listed(&outputs) };
                    let (list, having) = (written(&list, grouped), written(&having, grouped));
                    format!("SELECT {list} FROM {from}{by}{having}")
                })
                .collect();
            either(&ours, &sets.join(" UNION ALL "))
        })
    }

    pub fn filter(&mut self, share: f64) -> String {
        if !self.chance(share) {
            return String::new();
        }
        let condition = self.condition(2);
        let class = self.class_to_compare();
        let columns = self.locally(|maker| (maker.column(class), maker.column(class)));
        match columns {
            // Equalities that become keys of the joins below.
            (Some(a), Some(b)) if a != b && self.chance(0.15) => {
                format!(" WHERE {a} = {b} AND {condition}")
            }
            _ => format!(" WHERE {condition}"),
        }
    }

    /// A condition on groups, in which an aggregate stands: else there might be none.
    pub fn having(&mut self, share: f64) -> String {
        if !self.chance(share) {
            return String::new();
        }
        let condition = self.condition(2);
        match aggregates(&condition) {
            true => format!(" HAVING {condition}"),
            false => format!(" HAVING {condition} AND count(*) >= 0"),
        }
    }

    /// A condition on groups of a query that is to have one row at most, and yields `value`.
    pub fn having_one(&mut self, share: f64, value: &str) -> String {
        let having = self.having(share);
        match having.is_empty() && !aggregates(value) {
            true => " HAVING count(*) >= 0".into(),
            false => having,
        }
    }

    /// Keys, and aggregates of each class.
    pub fn aggregates(&mut self, keys: &[(String, Class)]) -> Scope {
        let column = |(text, class): &(String, Class)| Column { text: text.clone(), class: *class };
        let keys: Vec<_> = keys.iter().map(column).collect();
        let mut columns = [keys.clone(), keys].concat();
        let classes = [
            Class::Int,
            Class::Int,
            Class::Text,
            Class::Real,
            Class::Date,
            Class::Money,
            Class::Bool,
        ];
        for class in classes {
            let text = self.locally(|maker| maker.aggregate(class));
            columns.push(Column { text, class });
        }
        Scope { columns, order: vec![], computed: true }
    }

    pub fn aggregate(&mut self, class: Class) -> String {
        let call = match class {
            Class::Int => {
                let of = self.class_to_compare();
                match self.below(7) {
                    0 | 1 => "count(*)".into(),
                    2 => format!("count({})", self.argument(of, 1)),
                    3 => format!("count(DISTINCT {})", self.argument(of, 1)),
                    4 => format!("sum(CASE WHEN {} THEN 1 ELSE 0 END)", self.condition(1)),
                    5 => format!("sum(DISTINCT {})", self.argument(Class::Int, 1)),
                    _ => {
                        let call = self.pick(&["sum", "min", "max"]);
                        format!("{call}({})", self.argument(Class::Int, 1))
                    }
                }
            }
            Class::Real => {
                let (call, of) = self.pick(&[
                    ("sum", Class::Real),
                    ("min", Class::Real),
                    ("max", Class::Real),
                    ("avg", Class::Int),
                ]);
                format!("{call}({})", self.argument(of, 1))
            }
            Class::Money => {
                let call = self.pick(&["sum", "min", "max"]);
                format!("{call}({})", self.argument(class, 0))
            }
            Class::Text | Class::Date => {
                let call = self.pick(&["min", "max"]);
                format!("{call}({})", self.argument(class, 1))
            }
            Class::Bool => {
                let of = self.class_to_compare();
                return match self.below(4) {
                    0 => format!("(min({}) IS NULL)", self.argument(of, 1)),
                    1 => format!("(count(*) NOT IN ({}, NULL))", self.pick(&[0, 1, 2])),
                    2 => format!("(count(*) = {})", self.pick(&[0, 1, 2])),
                    _ => format!("(max({}) > {})", self.argument(of, 0), self.literal(of)),
                };
            }
        };
        match self.chance(0.15) {
            true => format!("{call} FILTER (WHERE {})", self.condition(1)),
            false => call,
        }
    }

    /// What is to be aggregated: it names a column, without which it would belong to whichever query.
    fn argument(&mut self, class: Class, depth: usize) -> String {
        let value = self.expr(class, depth);
        let columns = &self.scopes.last().expect("a query's scope").columns;
        match value.contains('.') && columns.iter().any(|column| value.contains(&column.text)) {
            true => value,
            false => {
                let column = columns.first().expect("a table has columns").text.clone();
                format!("CASE WHEN {column} IS NULL THEN {value} ELSE {value} END")
            }
        }
    }

    /// Puts a scope in place of the innermost one, which it yields.
    pub fn replaced(&mut self, scope: Scope) -> Scope {
        std::mem::replace(self.scopes.last_mut().expect("a query's scope"), scope)
    }

    pub fn restored(&mut self, scope: Scope) {
        *self.scopes.last_mut().expect("a query's scope") = scope;
    }
}

/// Whether an expression names a column.
fn is_column(text: &str) -> bool {
    let before = |(at, _): &(usize, char)| text[..*at].ends_with(|c: char| c.is_ascii_digit());
    let behind = |at: usize| text[at + 1..].starts_with(|c: char| c.is_ascii_alphabetic());
    text.char_indices().filter(|(_, c)| *c == '.').any(|dot| before(&dot) && behind(dot.0))
}

/// A select list.
fn listed(outputs: &[(String, String)]) -> String {
    let list: Vec<_> = outputs.iter().map(|(value, name)| format!("{value} AS {name}")).collect();
    list.join(", ")
}

/// The select list of a query without GROUP BY: SQLite has no HAVING unless an aggregate stands in
/// it.
pub fn counted(outputs: &[(String, String)]) -> String {
    let mut outputs = outputs.to_vec();
    if !outputs.iter().any(|(value, _)| aggregates(value)) {
        let value = &mut outputs[0].0;
        *value = either(value, &format!("CASE WHEN count(*) >= 0 THEN {value} END"));
    }
    listed(&outputs)
}

/// Whether an aggregate stands in a text, and not in a query within.
fn aggregates(text: &str) -> bool {
    // SQLite's half of a text is there for SQLite alone.
    let text = &spelled(text).0;
    let mut outside = String::new();
    // Of each parenthesis around a character, whether a query stands in it.
    let mut queries = vec![];
    for (at, character) in text.char_indices() {
        match character {
            '(' => queries.push(text[at..].starts_with("(SELECT")),
            ')' => drop(queries.pop()),
            _ => {}
        }
        if !queries.contains(&true) {
            outside.push(character);
        }
    }
    ["count(", "sum(", "min(", "max(", "avg("].iter().any(|call| outside.contains(call))
}

#[test]
fn aggregates_of_queries_within_do_not_count() {
    assert!(aggregates("(1 + max(t.a))"));
    assert!(!aggregates("(SELECT max(t.a) FROM t) IS NULL"));
}
