//! Makes a query: of tables `t` and `u` as `tables.rs` makes them, from classes of types, so that
//! it means something.

mod expressions;

use std::fmt::Write;

use rand::Rng;
use rand::seq::IndexedRandom;

use super::choices::Choices;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Int,
    Float,
    Decimal,
    Text,
    Bool,
    Date,
    Time,
}

const CLASSES: [Class; 7] =
    [Class::Int, Class::Float, Class::Decimal, Class::Text, Class::Bool, Class::Date, Class::Time];

pub struct Maker {
    rng: Choices,
}

impl Maker {
    pub fn new(choices: Choices) -> Maker {
        Maker { rng: choices }
    }

    /// The choices that its queries were made of.
    pub fn choices(self) -> Choices {
        self.rng
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        *of.choose(&mut self.rng).expect("something to choose from")
    }

    fn chance(&mut self, share: f64) -> bool {
        self.rng.random_bool(share)
    }

    pub fn query(&mut self) -> String {
        match self.rng.random_range(0..15) {
            12 | 13 => self.windows(),
            14 => self.unnested(),
            0..4 => self.aggregation(),
            4..6 => self.ordered(),
            6 => self.distinct(),
            7 => {
                let classes: Vec<_> =
                    (0..self.rng.random_range(1..4)).map(|_| self.pick(&CLASSES)).collect();
                let operator = self.pick(&[
                    "UNION ALL",
                    "UNION ALL",
                    "UNION",
                    "INTERSECT",
                    "INTERSECT ALL",
                    "EXCEPT",
                    "EXCEPT ALL",
                ]);
                format!("{} {operator} {}", self.plain(&classes), self.plain(&classes))
            }
            9 => {
                let from = self.from(false);
                let (key, of) = (self.key(&from), self.key(&from));
                let filter = self.filter(&from);
                format!(
                    "SELECT {key} AS g, count(DISTINCT {of}) AS n FROM {}{filter} GROUP BY {key}",
                    from.text
                )
            }
            8 => {
                let (inner, by) = (self.from(false), self.pick(&["q.a", "q.a, q.c", "q.c > 10"]));
                let a = self.expr(Class::Int, &inner, 1);
                let condition = self.expr(Class::Bool, &inner, 1);
                format!(
                    "SELECT {by}, count(*), sum(q.c) FROM (SELECT {a} AS a, count(*) AS c FROM {} WHERE {condition} GROUP BY {a}) q GROUP BY {by}",
                    inner.text
                )
            }
            _ => {
                let classes: Vec<_> =
                    (0..self.rng.random_range(1..4)).map(|_| self.pick(&CLASSES)).collect();
                self.plain(&classes)
            }
        }
    }

    /// One table, or two that are joined; its columns are called `t.…` and `u.…`, and `total` says
    /// that ids must be unique.
    fn from(&mut self, total: bool) -> From {
        if self.chance(0.6) {
            let text = match self.rng.random_range(0..10) {
                0 => "(SELECT * FROM t ORDER BY s, id LIMIT 1500 OFFSET 3) t",
                1 => "(SELECT * FROM t UNION ALL SELECT * FROM u) t",
                2 => "(SELECT t.* FROM t JOIN u ON t.k = u.id) t",
                3 => "(SELECT * FROM t WHERE k2 > -2 ORDER BY id DESC LIMIT 900) t",
                _ => "t",
            };
            // In a union, ids come twice.
            let text = if text.contains("UNION") && total { "t" } else { text };
            return From { text: text.into(), names: vec!["t"] };
        }
        let both = From { text: String::new(), names: vec!["t", "u"] };
        let keys = [
            "t.id = u.id",
            "t.k = u.k AND t.k2 = u.k2 AND t.s = u.s",
            "t.id % 50 = u.id",
            "t.sv = u.sv",
            "t.sl = u.sl",
            "t.w = u.w AND t.k = u.k",
            "t.m = u.m",
            "t.i8 = u.i16 % 128 AND t.b = u.b",
            "t.d = u.d",
            "t.sd = u.s AND t.id = u.id + 1",
            "t.f64 = u.f64 AND t.k = u.k AND t.k2 = u.k2",
            "t.u16 = u.u16 AND t.u8 = u.u8",
        ];
        if self.chance(0.15) {
            return self.without_equality(both);
        }
        let kind = self.pick(&[
            "JOIN",
            "JOIN",
            "JOIN",
            "LEFT JOIN",
            "LEFT JOIN",
            "RIGHT JOIN",
            "FULL JOIN",
        ]);
        let one_sided = self.pick(&["JOIN", "JOIN", "JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]);
        let mut text = match one_sided {
            "JOIN" => format!("t {kind} u ON {}", self.pick(&keys)),
            one_sided => format!("t {one_sided} u ON {}", self.pick(&keys)),
        };
        if self.chance(0.3) {
            let _ = write!(text, " AND {}", self.expr(Class::Bool, &both, 0));
        }
        if self.chance(0.15) {
            let _ = write!(text, " AND {}", self.expr(Class::Bool, &both, 1));
        }
        match one_sided {
            "JOIN" => From { text, ..both },
            _ => From { text, names: vec!["t"] },
        }
    }

    /// All pairs of few rows, or those for which something holds.
    fn without_equality(&mut self, both: From) -> From {
        let few = "(SELECT * FROM t WHERE id % 40 = 3) t";
        let text = match self.rng.random_range(0..3) {
            0 => format!("{few} CROSS JOIN u"),
            1 => format!(
                "t CROSS JOIN (SELECT * FROM u WHERE id = {}) u",
                self.rng.random_range(0..3)
            ),
            _ => {
                let kind = self.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
                format!("{few} {kind} u ON {}", self.expr(Class::Bool, &both, 1))
            }
        };
        From { text, ..both }
    }

    fn filter(&mut self, from: &From) -> String {
        match self.rng.random_range(0..10) {
            0..5 => format!(" WHERE {}", self.expr(Class::Bool, from, 2)),
            5 | 6 => format!(" WHERE {}", self.subquery(from)),
            7 => {
                let junction = self.pick(&["AND", "OR"]);
                format!(
                    " WHERE {} {junction} {}",
                    self.subquery(from),
                    self.expr(Class::Bool, from, 1)
                )
            }
            _ => String::new(),
        }
    }

    /// A condition that looks into a table `v`.
    fn subquery(&mut self, from: &From) -> String {
        let table = self.pick(&["t", "u", "u"]);
        let inner = From { text: String::new(), names: vec!["v"] };
        let mut all = From { text: String::new(), names: from.names.clone() };
        all.names.push("v");
        let outer = self.pick(&from.names);
        let key = self.pick(&["id", "k", "s", "sl", "sd", "m", "d", "w", "u16"]);
        match self.rng.random_range(0..8) {
            6 | 7 => self.without_from(outer),
            0 | 1 => {
                let not = self.pick(&["", "NOT "]);
                let mut condition = format!("v.{key} = {outer}.{key}");
                if self.chance(0.3) {
                    let second = self.pick(&["k", "k2", "b"]);
                    let _ = write!(condition, " AND v.{second} = {outer}.{second}");
                }
                if self.chance(0.5) {
                    let _ = write!(condition, " AND {}", self.expr(Class::Bool, &all, 1));
                }
                format!("{not}EXISTS (SELECT 1 FROM {table} v WHERE {condition})")
            }
            2 | 3 => {
                let not = self.pick(&["", "NOT "]);
                let condition = self.expr(Class::Bool, &inner, 1);
                let which = self.pick(&["", " IS NOT NULL"]);
                let condition = match which {
                    "" => condition,
                    test => format!("v.{key}{test} AND {condition}"),
                };
                format!("{outer}.{key} {not}IN (SELECT v.{key} FROM {table} v WHERE {condition})")
            }
            4 => {
                let condition = self.expr(Class::Bool, &inner, 1);
                let (op, call) = (
                    self.pick(&["<", ">=", "<>"]),
                    self.pick(&["min(v.x)", "max(v.x)", "avg(v.k)"]),
                );
                format!("{outer}.x {op} (SELECT {call} FROM {table} v WHERE {condition})")
            }
            _ => {
                let call = self.pick(&["count(*)", "min(v.k)", "max(v.k2)", "count(v.s)"]);
                let condition = self.expr(Class::Bool, &inner, 1);
                format!(
                    "{outer}.k2 < (SELECT {call} FROM {table} v WHERE v.{key} = {outer}.{key} AND {condition})"
                )
            }
        }
    }

    /// A condition on a subquery without tables, or on several of them together.
    fn without_from(&mut self, outer: &str) -> String {
        let rows = match self.rng.random_range(0..6) {
            0 => "SELECT 1".to_string(),
            1 => format!("SELECT {outer}.k"),
            2 => format!("SELECT 3 WHERE {outer}.k > 2"),
            3 => "SELECT z.a FROM (SELECT 2 AS a) z".to_string(),
            4 => format!("SELECT {outer}.k EXCEPT SELECT 1"),
            _ => format!("SELECT {outer}.k UNION ALL SELECT 2 UNION ALL SELECT 1"),
        };
        match self.pick(&["EXISTS", "NOT EXISTS", "IN", "NOT IN", "sum"]) {
            "sum" => {
                format!("{outer}.k2 < (SELECT sum(y.a) FROM (SELECT 0 AS a UNION ALL {rows}) y)")
            }
            kind if kind.ends_with("EXISTS") => format!("{kind} ({rows})"),
            kind => format!("{outer}.k2 {kind} ({rows})"),
        }
    }

    /// Columns of these classes, each of one type whatever computes it.
    fn plain(&mut self, classes: &[Class]) -> String {
        let from = self.from(false);
        let list: Vec<_> = (classes.iter().enumerate())
            .map(|(at, class)| {
                let value = match class {
                    Class::Int => format!("CAST({} AS bigint)", self.expr(*class, &from, 2)),
                    Class::Decimal => {
                        format!("CAST({} AS decimal(30, 4))", self.expr(*class, &from, 1))
                    }
                    Class::Time => format!("CAST({} AS timestamp)", self.expr(*class, &from, 1)),
                    Class::Text => format!("coalesce({}, 'none')", self.expr(*class, &from, 1)),
                    _ => self.expr(*class, &from, 2),
                };
                format!("{value} AS c{at}")
            })
            .collect();
        format!("SELECT {} FROM {}{}", list.join(", "), from.text, self.filter(&from))
    }

    fn distinct(&mut self) -> String {
        let from = self.from(false);
        let keys: Vec<_> = (0..self.rng.random_range(1..4))
            .map(|at| format!("{} AS c{at}", self.key(&from)))
            .collect();
        format!("SELECT DISTINCT {} FROM {}{}", keys.join(", "), from.text, self.filter(&from))
    }

    fn ordered(&mut self) -> String {
        let from = self.from(true);
        let mut keys: Vec<_> = (0..self.rng.random_range(0..3))
            .map(|_| {
                let way = self.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
                format!("{}{way}", self.key(&from))
            })
            .collect();
        // The ids make the order total.
        keys.extend(from.names.iter().map(|name| format!("{name}.id")));
        let class = self.pick(&CLASSES);
        let mut sql =
            format!("SELECT t.id AS id, {} AS c FROM {}", self.expr(class, &from, 2), from.text);
        let _ = write!(sql, "{} ORDER BY {}", self.filter(&from), keys.join(", "));
        if self.chance(0.5) {
            let _ = write!(sql, " LIMIT {}", self.rng.random_range(1..80));
        }
        if self.chance(0.2) {
            let _ = write!(sql, " OFFSET {}", self.rng.random_range(0..60));
        }
        sql
    }

    /// Elements of lists as rows.
    fn unnested(&mut self) -> String {
        let from = self.from(false);
        let class = self.pick(&[Class::Int, Class::Text, Class::Date]);
        let (a, b) = (self.expr(class, &from, 1), self.expr(class, &from, 1));
        let list = match self.rng.random_range(0..4) {
            0 => format!("array_remove(make_array({a}, {b}), {b})"),
            1 => format!(
                "CASE WHEN {} THEN make_array({a}, {b}, {a}) END",
                self.expr(Class::Bool, &from, 1)
            ),
            _ => format!("make_array({a}, {b})"),
        };
        let rows = format!(
            "SELECT t.id AS id, unnest({list}) AS e FROM {}{}",
            from.text,
            self.filter(&from)
        );
        match self.rng.random_range(0..3) {
            0 => format!("SELECT e, count(*) AS n, min(id) AS id FROM ({rows}) GROUP BY e"),
            1 => format!("SELECT count(e) AS n, max(e) AS e FROM ({rows}) WHERE e IS NOT NULL"),
            _ => rows,
        }
    }

    /// Window functions over one or two sorts. The ids make the order of what looks at places of
    /// rows total. Keys are columns: expressions that the optimizer pulls out of some windows and
    /// not of others trip an assertion of the CPU engine.
    fn windows(&mut self) -> String {
        let from = self.from(true);
        let ids: Vec<_> = from.names.iter().map(|name| format!("{name}.id")).collect();
        let ids = ids.join(", ");
        let mut list = vec![ids.clone()];
        for sort in 0..self.rng.random_range(1..3) {
            let partition = match self.rng.random_range(0..4) {
                0 => String::new(),
                1 => format!("PARTITION BY {}, {}", self.key_column(&from), self.key_column(&from)),
                _ => format!("PARTITION BY {}", self.key_column(&from)),
            };
            let way = self.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
            let (key, number) =
                (self.key_column(&from), self.pick(&["k", "k2", "i8", "u8", "x", "w"]));
            let number = self.column(&from, number);
            for at in 0..self.rng.random_range(1..4) {
                let (units, order) = match self.rng.random_range(0..4) {
                    0 => ("GROUPS", format!("{key}{way}")),
                    1 => ("RANGE", format!("{number}{way}")),
                    _ => ("ROWS", format!("{key}{way}, {ids}")),
                };
                let call = self.window_call(&from, units == "ROWS");
                let frame = self.frame(units);
                let frame = if self.chance(0.3) { String::new() } else { frame };
                list.push(format!(
                    "{call} OVER ({partition} ORDER BY {order} {frame}) AS w{sort}{at}"
                ));
            }
        }
        let mut sql =
            format!("SELECT {} FROM {}{}", list.join(", "), from.text, self.filter(&from));
        if self.chance(0.2) {
            let order = self.column(&from, "k");
            let _ = write!(sql, " QUALIFY rank() OVER (PARTITION BY {order} ORDER BY {ids}) < 4");
        }
        sql
    }

    fn window_call(&mut self, from: &From, total: bool) -> String {
        let class = self.pick(&CLASSES);
        let looks_at_places = if total { 15 } else { 10 };
        match self.rng.random_range(0..looks_at_places) {
            0 => self.pick(&["rank()", "dense_rank()", "percent_rank()", "cume_dist()"]).into(),
            1 => "count(*)".into(),
            2 => format!("count({})", self.expr(class, from, 1)),
            3 => {
                // The CPU engine takes rows away from a mean's sum of floats, which loses what is
                // small beside w.
                let (function, column) = match self.chance(0.5) {
                    true => ("sum", self.pick(&["k", "w", "i8", "u16", "m", "x"])),
                    false => ("avg", self.pick(&["k", "i8", "u16", "m", "x"])),
                };
                format!("{function}({})", self.column(from, column))
            }
            4 => {
                let column = self.pick(&["k", "m"]);
                let filter = self.expr(Class::Bool, from, 1);
                format!("sum({}) FILTER (WHERE {filter})", self.column(from, column))
            }
            5 => {
                let column = self.pick(&[
                    "m38", "s", "sl", "sv", "sd", "x", "u64", "ts", "b", "spread", "f64", "f32",
                ]);
                format!("{}({})", self.pick(&["min", "max"]), self.column(from, column))
            }
            6 => {
                let class =
                    self.pick(&[Class::Int, Class::Decimal, Class::Text, Class::Bool, Class::Date]);
                format!("{}({})", self.pick(&["min", "max"]), self.expr(class, from, 1))
            }
            7 => {
                let column = self.pick(&["k", "s", "m", "d", "sv", "i8"]);
                format!("count(DISTINCT {})", self.column(from, column))
            }
            8 => {
                // What the CPU engine takes rows away from.
                let (call, column) = self.pick(&[
                    ("sum(DISTINCT #)", "k"),
                    ("sum(DISTINCT #)", "w"),
                    ("median(#)", "k"),
                    ("median(#)", "m"),
                ]);
                call.replace('#', &self.column(from, column))
            }
            9 => {
                let column = self.pick(&["x", "spread"]);
                let call = self.pick(&[
                    "median(#)",
                    "percentile_cont(#, 0.25)",
                    "percentile_cont(#, 1.0)",
                ]);
                call.replace('#', &self.column(from, column))
            }
            10 => {
                let column = self.pick(&["k", "x", "s", "m", "b", "ts"]);
                format!("array_agg({})", self.column(from, column))
            }
            11 => self.pick(&["row_number()", "ntile(3)", "ntile(40)"]).into(),
            12 => {
                let (function, by) = (self.pick(&["lag", "lead"]), self.rng.random_range(-1..5));
                format!("{function}({}, {by})", self.expr(class, from, 1))
            }
            13 => {
                let nulls = self.pick(&["", " IGNORE NULLS"]);
                format!(
                    "{}({}){nulls}",
                    self.pick(&["first_value", "last_value"]),
                    self.expr(class, from, 1)
                )
            }
            _ => format!(
                "nth_value({}, {})",
                self.expr(class, from, 1),
                self.pick(&[1, 2, 5, -1, -2])
            ),
        }
    }

    /// A frame that does not end before it begins. One of RANGE ends with the row or later:
    /// DataFusion takes rows that come in pieces to have met all their peers then, and counts only
    /// the nulls of the first piece.
    fn frame(&mut self, units: &str) -> String {
        let bounds = [
            "UNBOUNDED PRECEDING",
            "5 PRECEDING",
            "1 PRECEDING",
            "CURRENT ROW",
            "2 FOLLOWING",
            "30 FOLLOWING",
            "UNBOUNDED FOLLOWING",
        ];
        let start = self.rng.random_range(0..6);
        let least_end = if units == "RANGE" { 3 } else { 1 };
        let end = self.rng.random_range(start.max(least_end)..7);
        format!("{units} BETWEEN {} AND {}", bounds[start], bounds[end])
    }

    fn aggregation(&mut self) -> String {
        let from = self.from(false);
        // Of a constant key and GROUPING SETS over a UNION, the CPU engine yields some groups
        // twice.
        let (count, sets) = (self.rng.random_range(0..4), self.chance(0.12));
        let sets = sets && (1..3).contains(&count);
        let keys: Vec<_> = (0..count)
            .map(|_| if sets { self.key_column(&from) } else { self.key(&from) })
            .collect();
        let mut list: Vec<_> =
            keys.iter().enumerate().map(|(at, key)| format!("{key} AS g{at}")).collect();
        for at in 0..self.rng.random_range(1..5) {
            let mut call = self.aggregate(&from);
            if self.chance(0.15) {
                let _ = write!(call, " FILTER (WHERE {})", self.expr(Class::Bool, &from, 1));
            }
            list.push(format!("{call} AS a{at}"));
        }
        let mut sql =
            format!("SELECT {} FROM {}{}", list.join(", "), from.text, self.filter(&from));
        if sets {
            let _ =
                write!(sql, " GROUP BY {} ({})", self.pick(&["ROLLUP", "CUBE"]), keys.join(", "));
        } else if !keys.is_empty() {
            let _ = write!(sql, " GROUP BY {}", keys.join(", "));
            if self.chance(0.25) {
                let _ = write!(sql, " HAVING count(*) {} 2", self.pick(&["<", ">", "="]));
            }
        }
        sql
    }

    /// Something to group or sort by.
    fn key(&mut self, from: &From) -> String {
        if self.chance(0.25) {
            let class = self.pick(&[
                Class::Int,
                Class::Decimal,
                Class::Text,
                Class::Bool,
                Class::Date,
                Class::Time,
            ]);
            return self.expr(class, from, 1);
        }
        if self.chance(0.05) {
            // Not of floats: in structs the CPU engine tells -0.0 from 0.0, which are equal.
            let column = self.pick(&["k2", "w", "b", "s", "sd", "d", "m", "i8", "ts"]);
            let (a, b) = (self.column(from, column), self.column(from, "k"));
            return format!("named_struct('a', {a}, 'b', make_array({b}))");
        }
        self.key_column(from)
    }

    fn key_column(&mut self, from: &From) -> String {
        let all = [
            "k", "k2", "w", "b", "s", "sl", "sv", "sd", "d", "m", "m38", "i8", "u8", "i16", "u64",
            "i64", "x", "f64", "f32", "ts", "ts_s",
        ];
        let column = self.pick(&all);
        self.column(from, column)
    }

    fn aggregate(&mut self, from: &From) -> String {
        match self.rng.random_range(0..20) {
            15 => {
                let column = self.pick(&["k", "i8", "u16", "w", "u64"]);
                format!(
                    "{}({})",
                    self.pick(&["bit_and", "bit_or", "bit_xor"]),
                    self.column(from, column)
                )
            }
            16 => {
                // Equal values may come in any order.
                let column = self.pick(&["s", "sl", "sv"]);
                let text = self.column(from, column);
                match self.chance(0.5) {
                    true => format!("string_agg({text}, ',' ORDER BY {text})"),
                    false => format!("string_agg(DISTINCT {text}, '' ORDER BY {text})"),
                }
            }
            17 => {
                let column = self.pick(&["k", "s", "d", "m", "x", "b"]);
                let column = self.column(from, column);
                let way = self.pick(&["", " DESC", " NULLS FIRST"]);
                format!(
                    "{}({column} ORDER BY {column}{way})",
                    self.pick(&["array_agg", "first_value", "last_value"])
                )
            }
            18 => {
                let column = self.pick(&["k", "i16", "x"]);
                let share = self.pick(&["0.5", "0.25", "1.0"]);
                format!(
                    "percentile_cont({share}) WITHIN GROUP (ORDER BY {})",
                    self.column(from, column)
                )
            }
            19 => {
                let (a, b) = (self.column(from, "k"), self.column(from, "s"));
                match self.chance(0.5) {
                    true => format!("max(make_array({a}, {}))", self.column(from, "k2")),
                    false => format!("min(make_array({b}, {b}))"),
                }
            }
            9 => {
                let class =
                    self.pick(&[Class::Int, Class::Text, Class::Bool, Class::Date, Class::Decimal]);
                format!("count(DISTINCT {})", self.expr(class, from, 1))
            }
            10 => {
                let column = self.pick(&["k", "w", "m", "x", "u8"]);
                format!("{}(DISTINCT {})", self.pick(&["sum", "avg"]), self.column(from, column))
            }
            11 => {
                let function = self.pick(&["var", "var_pop", "stddev", "stddev_pop"]);
                let column = self.pick(&["k", "k2", "x", "i16", "u8"]);
                format!("{function}({})", self.column(from, column))
            }
            12 => {
                let (x, y) = (self.column(from, "x"), self.column(from, "k2"));
                // Of what does not depend on each other the covariance is nothing but rounding.
                format!("{}({x} + {y}, {y})", self.pick(&["covar_samp", "covar_pop"]))
            }
            13 => {
                let column = self.pick(&["k", "i8", "w", "m", "x", "u64", "i16"]);
                format!("median({})", self.column(from, column))
            }
            14 => format!(
                "{}({})",
                self.pick(&["bool_and", "bool_or"]),
                self.expr(Class::Bool, from, 1)
            ),
            0 => "count(*)".into(),
            1 => {
                let class = self.pick(&CLASSES);
                format!("count({})", self.expr(class, from, 1))
            }
            2 => {
                let column = self.pick(&["k", "w", "u8", "u32", "m", "x", "i16"]);
                format!("avg({})", self.column(from, column))
            }
            3 => {
                let column = self.pick(&["k", "w", "i8", "u16", "u32", "m", "x", "f64", "f32"]);
                format!("sum({})", self.column(from, column))
            }
            4 => format!("sum({})", self.expr(Class::Int, from, 1)),
            5 => format!("sum({} * {})", self.column(from, "x"), self.column(from, "k")),
            6 => {
                let column = self.pick(&[
                    "m38", "s", "sl", "sv", "sd", "x", "u64", "ts", "b", "spread", "f64", "f32",
                ]);
                format!("{}({})", self.pick(&["min", "max"]), self.column(from, column))
            }
            _ => {
                let class = self.pick(&[
                    Class::Int,
                    Class::Decimal,
                    Class::Text,
                    Class::Bool,
                    Class::Date,
                    Class::Time,
                ]);
                format!("{}({})", self.pick(&["min", "max"]), self.expr(class, from, 1))
            }
        }
    }
}

struct From {
    text: String,
    names: Vec<&'static str>,
}
