//! Random queries: typed, so that they mean something; seeded, so that they come again.
//!
//! `WARPFRAME_RANDOM_QUERIES` says how many run (25), `WARPFRAME_RANDOM_SEED` the first one's seed (1), and
//! `WARPFRAME_RANDOM_THREADS` on how many threads (1), each with sessions of its own on the one device. A report names the
//! seeds that failed: that seed and one query show the failure again. No query may leave memory behind.
//!
//! Left out is what two correct engines answer differently: floats that arithmetic makes NaN (its sign orders it, on
//! the CPU), extrema of NaN by group, functions whose last bit is free, sums that cancel.

use std::fmt::Write;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::differential::{Agreement, Pair, run};
use crate::tables::{Batches, Shape, Values};

/// Queries that share their tables.
const QUERIES_PER_TABLES: u64 = 5;

#[test]
fn random_queries_agree() {
    let number = |name: &str, default| match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")),
        Err(_) => default,
    };
    let (count, first) = (number("WARPFRAME_RANDOM_QUERIES", 25), number("WARPFRAME_RANDOM_SEED", 1));
    let threads = number("WARPFRAME_RANDOM_THREADS", 1).max(1);
    let next = AtomicU64::new(first / QUERIES_PER_TABLES);
    let work = || {
        let mut tally = Tally::default();
        loop {
            let group = next.fetch_add(1, Relaxed);
            let seeds = group * QUERIES_PER_TABLES..(group + 1) * QUERIES_PER_TABLES;
            if seeds.start >= first + count {
                return tally;
            }
            tally.queries(group, seeds.start.max(first)..seeds.end.min(first + count));
        }
    };
    let mut all = Tally::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().for_each(|worker| all.add(worker.join().expect("queries' panics are caught")));
    });
    all.failed.sort();
    let Tally { rows, errors, unsupported, failed } = all;
    println!("{count} queries, {rows} rows; {errors} failed on both, {unsupported} are not supported");
    assert!(failed.is_empty(), "WARPFRAME_RANDOM_SEED of the queries that failed: {failed:?}");
    let meaningful = rows > 100 && errors * 4 < count && unsupported * 5 < count;
    assert!(
        count < 20 || meaningful,
        "the queries say little: {rows} rows, {errors} errors, {unsupported} unsupported"
    );
}

/// What became of queries.
#[derive(Default)]
struct Tally {
    rows: usize,
    /// Failed on both.
    errors: u64,
    unsupported: u64,
    /// Seeds of those that disagreed, or left memory behind.
    failed: Vec<u64>,
}

impl Tally {
    /// Runs queries over one pair of tables, in sessions of their own. When a query has ended and its rows are gone, the
    /// device holds as much as before.
    fn queries(&mut self, group: u64, seeds: Range<u64>) {
        let pair = pair(group);
        for table in ["t", "u"] {
            run(&pair.device, &format!("SELECT * FROM {table}")).expect("a table comes to the device");
        }
        let used = || (pair.gpu().memory().used, pair.gpu().memory().allocations);
        let at_first = used();
        for seed in seeds {
            let sql = Maker { rng: StdRng::seed_from_u64(seed) }.query();
            let sql = format!("{sql} /* seed {seed} */");
            match catch_unwind(AssertUnwindSafe(|| pair.agreement(&sql))) {
                Ok(Agreement::Rows(n)) => self.rows += n,
                Ok(Agreement::Errors) => self.errors += 1,
                Ok(Agreement::Unsupported) => self.unsupported += 1,
                Err(_) => self.failed.push(seed),
            }
            if used() != at_first {
                eprintln!(
                    "bytes and allocations {:?} before, {:?} after\n  {sql}\n  {}",
                    at_first,
                    used(),
                    pair.origin
                );
                self.failed.push(seed);
                return;
            }
        }
    }

    fn add(&mut self, other: Tally) {
        self.rows += other.rows;
        self.errors += other.errors;
        self.unsupported += other.unsupported;
        self.failed.extend(other.failed);
    }
}

/// The tables `t` and `u` of a group of queries.
fn pair(group: u64) -> Pair {
    let mut rng = StdRng::seed_from_u64(group ^ 0x7AB1E5);
    let mut shape = |sizes: &[usize]| Shape {
        rows: *sizes.choose(&mut rng).expect("sizes"),
        values: *[
            Values::Random,
            Values::Random,
            Values::Random,
            Values::Same,
            Values::Distinct,
            Values::Ascending,
            Values::AllNull,
        ]
        .choose(&mut rng)
        .expect("values"),
        batches: *[Batches::One, Batches::Sliced, Batches::Several].choose(&mut rng).expect("batches"),
        nulls: *[0.0, 0.1, 0.6].choose(&mut rng).expect("shares"),
        seed: rng.random(),
    };
    let (t, u) = (shape(&[1, 33, 700, 2049, 3000]), shape(&[0, 1, 32, 150, 400]));
    Pair::of(t.batches()).and("u", u.batches()).from(format!("t: {t:?}\n  u: {u:?}"))
}

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

struct Maker {
    rng: StdRng,
}

impl Maker {
    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        *of.choose(&mut self.rng).expect("something to choose from")
    }

    fn chance(&mut self, share: f64) -> bool {
        self.rng.random_bool(share)
    }

    fn query(&mut self) -> String {
        match self.rng.random_range(0..14) {
            12 | 13 => self.windows(),
            0..4 => self.aggregation(),
            4..6 => self.ordered(),
            6 => self.distinct(),
            7 => {
                let classes: Vec<_> = (0..self.rng.random_range(1..4)).map(|_| self.pick(&CLASSES)).collect();
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
                format!("SELECT {key} AS g, count(DISTINCT {of}) AS n FROM {}{filter} GROUP BY {key}", from.text)
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
                let classes: Vec<_> = (0..self.rng.random_range(1..4)).map(|_| self.pick(&CLASSES)).collect();
                self.plain(&classes)
            }
        }
    }

    /// One table, or two that are joined; its columns are called `t.…` and `u.…`, and `total` says that ids must be
    /// unique.
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
        let kind = self.pick(&["JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
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
            1 => format!("t CROSS JOIN (SELECT * FROM u WHERE id = {}) u", self.rng.random_range(0..3)),
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
                format!(" WHERE {} {junction} {}", self.subquery(from), self.expr(Class::Bool, from, 1))
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
        match self.rng.random_range(0..6) {
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
                let (op, call) = (self.pick(&["<", ">=", "<>"]), self.pick(&["min(v.x)", "max(v.x)", "avg(v.k)"]));
                format!("{outer}.x {op} (SELECT {call} FROM {table} v WHERE {condition})")
            }
            _ => {
                let call = self.pick(&["count(*)", "min(v.k)", "max(v.k2)", "count(v.s)"]);
                let condition = self.expr(Class::Bool, &inner, 1);
                format!("{outer}.k2 < (SELECT {call} FROM {table} v WHERE v.{key} = {outer}.{key} AND {condition})")
            }
        }
    }

    /// Columns of these classes, each of one type whatever computes it.
    fn plain(&mut self, classes: &[Class]) -> String {
        let from = self.from(false);
        let list: Vec<_> = (classes.iter().enumerate())
            .map(|(at, class)| {
                let value = match class {
                    Class::Int => format!("CAST({} AS bigint)", self.expr(*class, &from, 2)),
                    Class::Decimal => format!("CAST({} AS decimal(30, 4))", self.expr(*class, &from, 1)),
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
        let keys: Vec<_> = (0..self.rng.random_range(1..4)).map(|at| format!("{} AS c{at}", self.key(&from))).collect();
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
        let mut sql = format!("SELECT t.id AS id, {} AS c FROM {}", self.expr(class, &from, 2), from.text);
        let _ = write!(sql, "{} ORDER BY {}", self.filter(&from), keys.join(", "));
        if self.chance(0.5) {
            let _ = write!(sql, " LIMIT {}", self.rng.random_range(1..80));
        }
        if self.chance(0.2) {
            let _ = write!(sql, " OFFSET {}", self.rng.random_range(0..60));
        }
        sql
    }

    /// Window functions over one or two sorts. The ids make the order of what looks at places of rows total. Keys are columns:
    /// expressions that the optimizer pulls out of some windows and not of others trip an assertion of the CPU engine.
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
            let (key, number) = (self.key_column(&from), self.pick(&["k", "k2", "i8", "u8", "x", "w"]));
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
                list.push(format!("{call} OVER ({partition} ORDER BY {order} {frame}) AS w{sort}{at}"));
            }
        }
        let mut sql = format!("SELECT {} FROM {}{}", list.join(", "), from.text, self.filter(&from));
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
                let column = self.pick(&["k", "w", "i8", "u16", "m", "x"]);
                format!("{}({})", self.pick(&["sum", "avg"]), self.column(from, column))
            }
            4 => {
                let column = self.pick(&["k", "m"]);
                let filter = self.expr(Class::Bool, from, 1);
                format!("sum({}) FILTER (WHERE {filter})", self.column(from, column))
            }
            5 => {
                let column = self.pick(&["m38", "s", "sl", "sv", "sd", "x", "u64", "ts", "b", "spread"]);
                format!("{}({})", self.pick(&["min", "max"]), self.column(from, column))
            }
            6 => {
                let class = self.pick(&[Class::Int, Class::Decimal, Class::Text, Class::Bool, Class::Date]);
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
                let call = self.pick(&["median(#)", "percentile_cont(#, 0.25)", "percentile_cont(#, 1.0)"]);
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
                format!("{}({}){nulls}", self.pick(&["first_value", "last_value"]), self.expr(class, from, 1))
            }
            _ => format!("nth_value({}, {})", self.expr(class, from, 1), self.pick(&[1, 2, 5, -1, -2])),
        }
    }

    /// A frame that does not end before it begins. One of RANGE ends with the row or later: DataFusion takes rows that come
    /// in pieces to have met all their peers then, and counts only the nulls of the first piece.
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
        let keys: Vec<_> = (0..self.rng.random_range(0..4)).map(|_| self.key(&from)).collect();
        let mut list: Vec<_> = keys.iter().enumerate().map(|(at, key)| format!("{key} AS g{at}")).collect();
        for at in 0..self.rng.random_range(1..5) {
            let mut call = self.aggregate(&from);
            if self.chance(0.15) {
                let _ = write!(call, " FILTER (WHERE {})", self.expr(Class::Bool, &from, 1));
            }
            list.push(format!("{call} AS a{at}"));
        }
        let mut sql = format!("SELECT {} FROM {}{}", list.join(", "), from.text, self.filter(&from));
        if !keys.is_empty() && keys.len() < 3 && self.chance(0.12) {
            let _ = write!(sql, " GROUP BY {} ({})", self.pick(&["ROLLUP", "CUBE"]), keys.join(", "));
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
            let class = self.pick(&[Class::Int, Class::Decimal, Class::Text, Class::Bool, Class::Date, Class::Time]);
            return self.expr(class, from, 1);
        }
        self.key_column(from)
    }

    fn key_column(&mut self, from: &From) -> String {
        let all = [
            "k", "k2", "w", "b", "s", "sl", "sv", "sd", "d", "m", "m38", "i8", "u8", "i16", "u64", "i64", "x", "f64",
            "f32", "ts", "ts_s",
        ];
        let column = self.pick(&all);
        self.column(from, column)
    }

    fn aggregate(&mut self, from: &From) -> String {
        match self.rng.random_range(0..15) {
            9 => {
                let class = self.pick(&[Class::Int, Class::Text, Class::Bool, Class::Date, Class::Decimal]);
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
                format!("{}({x}, {y})", self.pick(&["covar_samp", "covar_pop"]))
            }
            13 => {
                let column = self.pick(&["k", "i8", "w", "m", "x", "u64", "i16"]);
                format!("median({})", self.column(from, column))
            }
            14 => format!("{}({})", self.pick(&["bool_and", "bool_or"]), self.expr(Class::Bool, from, 1)),
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
                let column = self.pick(&["m38", "s", "sl", "sv", "sd", "x", "u64", "ts", "b", "spread"]);
                format!("{}({})", self.pick(&["min", "max"]), self.column(from, column))
            }
            _ => {
                let class =
                    self.pick(&[Class::Int, Class::Decimal, Class::Text, Class::Bool, Class::Date, Class::Time]);
                format!("{}({})", self.pick(&["min", "max"]), self.expr(class, from, 1))
            }
        }
    }

    fn column(&mut self, from: &From, name: &str) -> String {
        format!("{}.{name}", self.pick(&from.names))
    }

    fn expr(&mut self, class: Class, from: &From, depth: u32) -> String {
        if depth == 0 || self.chance(0.3) {
            return self.leaf(class, from);
        }
        let depth = depth - 1;
        if class != Class::Bool && self.chance(0.15) {
            let (a, b) = (self.expr(class, from, depth), self.expr(class, from, depth));
            return match self.chance(0.5) {
                true => format!("CASE WHEN {} THEN {a} ELSE {b} END", self.expr(Class::Bool, from, depth)),
                false => format!("coalesce({a}, {b})"),
            };
        }
        if class != Class::Bool && self.chance(0.1) {
            // On the CPU make_array panics where decimals are of several types.
            let mut element = || match class {
                Class::Decimal => format!("CAST({} AS decimal(30, 4))", self.expr(class, from, depth)),
                _ => self.expr(class, from, depth),
            };
            let (a, b) = (element(), element());
            return match self.rng.random_range(0..10) {
                4 => format!("array_union([{a}, {b}], [{b}, {a}, NULL])[{}]", self.rng.random_range(1..4)),
                5 => format!("array_except([{a}, {b}], [{b}])[1]"),
                6 => format!("array_intersect([{a}, {b}], [{b}, {a}])[-1]"),
                7 => format!("array_replace([{a}, {b}], {b}, {a})[2]"),
                8 => format!("array_resize(array_remove([{a}, {b}, {a}], {b}), 3, {b})[1:3:2][2]"),
                0 => format!("[{a}, {b}][{}]", self.rng.random_range(-2..4)),
                // On the CPU array_max of strings fails where a batch has no rows.
                1 if class != Class::Text => format!("array_max([{a}, {b}])"),
                1 | 2 => format!("array_append([{a}], {b})[2]"),
                3 => format!("array_reverse([{a}, NULL, {b}])[2:3][2]"),
                _ => {
                    let taken = self.expr(Class::Bool, from, depth);
                    format!("(CASE WHEN {taken} THEN {{'v': {a}, 'l': [{b}]}} END)['l'][1]")
                }
            };
        }
        match class {
            Class::Int => {
                let (a, b) = (self.expr(class, from, depth), self.expr(class, from, depth));
                match self.rng.random_range(0..9) {
                    6 => format!(
                        "CAST({}({}) AS int)",
                        self.pick(&["octet_length", "bit_length", "ascii"]),
                        self.expr(Class::Text, from, depth)
                    ),
                    7 => {
                        let (text, part) = (self.expr(Class::Text, from, depth), self.leaf(Class::Text, from));
                        format!("CAST(strpos({text}, {part}) AS int)")
                    }
                    0 => format!("({a} + {b})"),
                    1 => format!("({a} - {b})"),
                    2 => format!("({a} * {})", self.rng.random_range(-9..10)),
                    3 => format!("({a} / nullif({b}, 0))"),
                    4 => format!("({a} % nullif({b}, 0))"),
                    5 => format!("CAST(length({}) AS int)", self.expr(Class::Text, from, depth)),
                    _ => format!(
                        "CAST(extract({} FROM {}) AS int)",
                        self.pick(&["year", "month", "day", "dow"]),
                        self.expr(Class::Date, from, depth)
                    ),
                }
            }
            Class::Float => {
                let (a, b) = (self.column(from, "x"), self.expr(Class::Int, from, depth));
                let op = self.pick(&["+", "-", "*"]);
                format!("({a} {op} {b})")
            }
            Class::Decimal => {
                let a = self.column(from, "m");
                let op = self.pick(&["+", "-"]);
                match self.rng.random_range(0..4) {
                    0 => format!("({a} {op} {})", self.column(from, "m")),
                    1 => format!("({a} * {})", self.pick(&["0.05", "1.1", "-2"])),
                    2 => format!("({a} {op} {})", self.column(from, "k")),
                    _ => format!("round({a}, 1)"),
                }
            }
            Class::Text => {
                let a = self.expr(class, from, depth);
                match self.rng.random_range(0..12) {
                    7 => format!("({a} || {})", self.leaf(class, from)),
                    8 => format!("concat({a}, '-', {})", self.leaf(class, from)),
                    9 => {
                        format!(
                            "replace({a}, '{}', '{}')",
                            self.pick(&["e", "é", "a "]),
                            self.pick(&["", "twice", "ü"])
                        )
                    }
                    10 => format!(
                        "{}({a}, {}, '{}')",
                        self.pick(&["lpad", "rpad"]),
                        self.rng.random_range(0..20),
                        self.pick(&["é-", "x"])
                    ),
                    11 => match self.chance(0.5) {
                        true => format!("reverse({a})"),
                        false => format!("repeat({a}, {})", self.rng.random_range(0..4)),
                    },
                    4 => format!("right({a}, {})", self.rng.random_range(-5..14)),
                    5 => {
                        format!("{}({a}, '{}')", self.pick(&["btrim", "ltrim", "rtrim"]), self.pick(&["ae", "é", "1t"]))
                    }
                    6 => {
                        let field = self.pick(&[1, 2, 3, -1, -2]);
                        format!("split_part({a}, '{}', {field})", self.pick(&["e", " ", "é", "tw"]))
                    }
                    0 => format!("substr({a}, {})", self.rng.random_range(-2..5)),
                    1 => format!("substr({a}, {}, {})", self.rng.random_range(1..5), self.rng.random_range(0..15)),
                    2 => format!("left({a}, {})", self.rng.random_range(0..14)),
                    _ => format!("nullif({a}, {})", self.leaf(class, from)),
                }
            }
            Class::Bool => self.condition(from, depth),
            Class::Date => {
                let a = self.column(from, "d");
                match self.chance(0.5) {
                    true => format!("({a} + INTERVAL '{}' DAY)", self.rng.random_range(-40..40)),
                    false => format!("({a} - INTERVAL '{}' MONTH)", self.rng.random_range(0..30)),
                }
            }
            Class::Time => {
                let unit = self.pick(&["year", "month", "week", "day", "hour", "second"]);
                format!("date_trunc('{unit}', {})", self.column(from, "ts"))
            }
        }
    }

    fn condition(&mut self, from: &From, depth: u32) -> String {
        let junction = self.pick(&["AND", "OR"]);
        match self.rng.random_range(0..9) {
            7 => {
                let class = self.pick(&[Class::Int, Class::Text, Class::Date]);
                let (a, b) = (self.expr(class, from, depth), self.expr(class, from, depth));
                format!("([{a}, {b}] {} [{b}, NULL])", self.pick(&["<", "<=", ">", ">="]))
            }
            0 | 1 => {
                format!("({} {junction} {})", self.expr(Class::Bool, from, depth), self.expr(Class::Bool, from, depth))
            }
            2 => format!("(NOT {})", self.expr(Class::Bool, from, depth)),
            3 => {
                let class = self.pick(&CLASSES);
                format!("({} IS{} NULL)", self.expr(class, from, depth), self.pick(&["", " NOT"]))
            }
            4 => {
                let patterns = ["a%", "%e%", "%7", "_b%", "%", "twelve%s", "%t%E%", "1_3%"];
                format!(
                    "({}{} {} '{}')",
                    self.expr(Class::Text, from, depth),
                    self.pick(&["", " NOT"]),
                    self.pick(&["LIKE", "LIKE", "ILIKE"]),
                    self.pick(&patterns)
                )
            }
            5 => {
                let class = self.pick(&[Class::Int, Class::Text, Class::Date, Class::Decimal]);
                let list: Vec<_> = (0..3).map(|_| self.literal(class)).collect();
                format!("({}{} IN ({}))", self.expr(class, from, depth), self.pick(&["", " NOT"]), list.join(", "))
            }
            6 => {
                let class = self.pick(&[Class::Int, Class::Float, Class::Date, Class::Decimal]);
                format!(
                    "({} BETWEEN {} AND {})",
                    self.expr(class, from, depth),
                    self.literal(class),
                    self.expr(class, from, depth)
                )
            }
            _ => {
                let class = self.pick(&CLASSES);
                let op = self.pick(&["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]);
                format!("({} {op} {})", self.expr(class, from, depth), self.expr(class, from, depth))
            }
        }
    }

    fn leaf(&mut self, class: Class, from: &From) -> String {
        if self.chance(0.25) {
            return self.literal(class);
        }
        let columns: &[&str] = match class {
            Class::Int => &["id", "k", "k2", "i8", "u8", "i16", "u16", "w"],
            Class::Float => &["x", "f64", "f32", "x"],
            Class::Decimal => &["m"],
            Class::Text => &["s", "sl", "sv", "sd"],
            Class::Bool => &["b"],
            Class::Date => &["d"],
            Class::Time => &["ts"],
        };
        let column = self.pick(columns);
        self.column(from, column)
    }

    fn literal(&mut self, class: Class) -> String {
        match class {
            Class::Int => self.rng.random_range(-5..12).to_string(),
            Class::Float => self.pick(&["0.0", "-2.5", "17.25", "1e10"]).into(),
            Class::Decimal => self.pick(&["0.00", "123.45", "-99999.99", "50000"]).into(),
            Class::Text => {
                let word = self.pick(&crate::tables::WORDS);
                format!("'{}'", word.replace('\0', "").replace('\'', "''"))
            }
            Class::Bool => self.pick(&["true", "false"]).into(),
            Class::Date => format!("DATE '19{}-0{}-15'", self.rng.random_range(70..99), self.rng.random_range(1..10)),
            Class::Time => format!("TIMESTAMP '20{}-01-01T12:00:00'", self.rng.random_range(10..30)),
        }
    }
}

struct From {
    text: String,
    names: Vec<&'static str>,
}
