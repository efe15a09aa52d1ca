//! `UNION`, `INTERSECT` and `EXCEPT`, with `ALL` and without: how often each row comes out.
//!
//! Random trees of them are asked of the CPU engine and of the device, and counted in Rust.
//! `WARPFRAME_BAGS_QUERIES` says how many run on the CPU (200), `WARPFRAME_BAGS_DEVICE` how many of
//! them on the device, too (10), and `WARPFRAME_BAGS_SEED` the first one's seed (1).

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use warpframe::arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};

use crate::differential::{Cell, Pair, Rows, run, seeds};
use crate::tables::columns;

/// A row as equality sees it: floats by the bits of one NaN and one zero.
type Row = Vec<Option<String>>;
type Bag = BTreeMap<Row, usize>;

const TABLES: [&str; 3] = ["l", "r", "m"];
const COLUMNS: [&str; 4] = ["a", "s", "f", "w"];

/// A row of the four columns.
type Stored = (Option<i64>, Option<&'static str>, Option<f64>, Option<i64>);

fn rows(table: usize) -> Vec<Stored> {
    let (n, one, two) = (None, Some(1), Some(2));
    let (x, y) = (Some("x"), Some("y"));
    match table {
        0 => vec![
            (one, x, Some(0.0), one),
            (one, x, Some(-0.0), one),
            (one, x, Some(0.0), two),
            (two, y, Some(f64::NAN), one),
            (n, None, None, n),
            (n, None, None, n),
            (Some(3), Some(""), Some(f64::INFINITY), two),
            (two, y, Some(f64::NAN), n),
        ],
        1 => vec![
            (one, x, Some(-0.0), one),
            (one, x, Some(1.5), one),
            (two, y, Some(f64::NAN), one),
            (two, x, Some(f64::NAN), two),
            (n, None, None, n),
            (Some(4), None, Some(0.0), one),
        ],
        _ => vec![
            (one, x, Some(0.0), one),
            (two, None, None, n),
            (Some(3), Some(""), Some(1.5), two),
        ],
    }
}

fn pair() -> Pair {
    let mut pair = Pair::new();
    for (table, name) in TABLES.iter().enumerate() {
        let rows = rows(table);
        let arrays: Vec<(&str, ArrayRef)> = vec![
            ("a", Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.0)))),
            ("s", Arc::new(StringArray::from_iter(rows.iter().map(|row| row.1)))),
            ("f", Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.2)))),
            ("w", Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.3)))),
        ];
        pair = pair.and(name, columns(arrays));
    }
    pair
}

fn float(value: f64) -> String {
    match value {
        _ if value.is_nan() => "NaN".into(),
        0.0 => "0".into(),
        other => other.to_string(),
    }
}

enum Tree {
    Leaf { table: usize, least: Option<i64> },
    Node { operator: &'static str, all: bool, left: Box<Tree>, right: Box<Tree> },
}

impl Tree {
    fn random(random: &mut StdRng, depth: usize) -> Tree {
        if depth == 0 || random.random_range(0..4) == 0 {
            let least = (random.random_range(0..3) == 0).then(|| random.random_range(1..4));
            return Tree::Leaf { table: random.random_range(0..3), least };
        }
        let operator =
            ["INTERSECT", "EXCEPT", "INTERSECT", "EXCEPT", "UNION"][random.random_range(0..5)];
        let all = random.random_range(0..4) > 0;
        let left = Box::new(Tree::random(random, depth - 1));
        Tree::Node { operator, all, left, right: Box::new(Tree::random(random, depth - 1)) }
    }

    fn sql(&self, shown: &[usize]) -> String {
        match self {
            Tree::Leaf { table, least } => {
                let names = shown.iter().map(|at| COLUMNS[*at]).collect::<Vec<_>>().join(", ");
                let filter = least.map_or(String::new(), |least| format!(" WHERE a >= {least}"));
                format!("SELECT {names} FROM {}{filter}", TABLES[*table])
            }
            Tree::Node { operator, all, left, right } => {
                let all = if *all { " ALL" } else { "" };
                format!("({}) {operator}{all} ({})", left.sql(shown), right.sql(shown))
            }
        }
    }

    fn bag(&self, shown: &[usize]) -> Bag {
        match self {
            Tree::Leaf { table, least } => {
                let mut bag = Bag::new();
                for (a, s, f, w) in rows(*table) {
                    if least.is_none_or(|least| a.is_some_and(|a| a >= least)) {
                        let row = [
                            a.map(|a| a.to_string()),
                            s.map(str::to_string),
                            f.map(float),
                            w.map(|w| w.to_string()),
                        ];
                        *bag.entry(shown.iter().map(|at| row[*at].clone()).collect())
                            .or_default() += 1;
                    }
                }
                bag
            }
            Tree::Node { operator, all, left, right } => {
                let (left, right) = (left.bag(shown), right.bag(shown));
                let all_rows = left
                    .keys()
                    .chain(right.keys())
                    .cloned()
                    .collect::<std::collections::BTreeSet<_>>();
                let count = |row: &Row| {
                    let (l, r) =
                        (left.get(row).copied().unwrap_or(0), right.get(row).copied().unwrap_or(0));
                    match (*operator, all) {
                        ("UNION", true) => l + r,
                        ("UNION", false) => 1,
                        ("INTERSECT", true) => l.min(r),
                        ("INTERSECT", false) => l.min(r).min(1),
                        (_, true) => l.saturating_sub(r),
                        (_, false) => usize::from(l > 0 && r == 0),
                    }
                };
                all_rows
                    .into_iter()
                    .map(|row| (row.clone(), count(&row)))
                    .filter(|(_, count)| *count > 0)
                    .collect()
            }
        }
    }
}

fn bag_of(rows: &Rows) -> Bag {
    let value = |cell: &Cell| match cell {
        Cell::Null => None,
        Cell::Int(value) => Some(value.to_string()),
        Cell::Text(text) => Some(text.clone()),
        Cell::Float(value) => Some(float(*value)),
    };
    let mut bag = Bag::new();
    for row in &rows.rows {
        *bag.entry(row.iter().map(value).collect()).or_default() += 1;
    }
    bag
}

#[test]
fn set_operations_count() {
    let pair = pair();
    let mut failed = vec![];
    for (seed, on_device) in seeds("BAGS", 80, 10) {
        let mut random = StdRng::seed_from_u64(seed);
        let tree = Tree::random(&mut random, 3);
        let shown: &[usize] =
            [&[0][..], &[1], &[2], &[0, 1], &[2, 0, 1, 3], &[3, 2]][random.random_range(0..6)];
        let (sql, expected) = (tree.sql(shown), tree.bag(shown));
        let sessions = if on_device { vec![&pair.cpu, &pair.device] } else { vec![&pair.cpu] };
        for session in sessions {
            match run(session, &sql).map(|frame| bag_of(&Rows::of(&frame))) {
                Ok(found) if found == expected => {}
                Ok(found) => {
                    failed.push(format!("seed {seed}\n  {sql}\n  {found:?}\n  {expected:?}"))
                }
                Err(error) => failed.push(format!("seed {seed}\n  {sql}\n  {error}")),
            }
        }
    }
    assert!(failed.is_empty(), "{} failed\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn set_operations_within_queries_count() {
    let pair = pair();
    let check = |sql: &str, expected: usize| assert_eq!(pair.check(sql), expected, "{sql}");
    check("SELECT a FROM l INTERSECT ALL SELECT a FROM r", 5);
    check("SELECT DISTINCT a FROM (SELECT a FROM l INTERSECT ALL SELECT a FROM r)", 3);
    check("SELECT a FROM l EXCEPT ALL SELECT a FROM r", 3);
    check("SELECT DISTINCT a FROM l EXCEPT ALL SELECT a FROM r", 1);
    check("SELECT a FROM l WHERE a IN (SELECT a FROM r INTERSECT ALL SELECT a FROM m)", 5);
    check(
        "WITH q AS (SELECT a, s FROM l EXCEPT ALL SELECT a, s FROM r) SELECT s, count(*) FROM q GROUP BY s",
        4,
    );
    check("SELECT a FROM l EXCEPT ALL SELECT w FROM l ORDER BY a LIMIT 2", 1);
    // The first side's names, and types that differ.
    let frame = run(&pair.device, "SELECT a AS n FROM l EXCEPT ALL SELECT CAST(a AS int) FROM r")
        .expect("a query");
    assert_eq!(frame.schema().field(0).name(), "n");
    assert_eq!(frame.num_rows(), 3);
}

/// DataFusion takes rows behind UNNEST for as distinct as those before it.
#[test]
fn rows_behind_unnest_are_distinct_only_if_asked() {
    let pair = pair();
    let groups = "SELECT a, unnest([w, w]) AS u FROM l GROUP BY a, w";
    for session in [&pair.cpu, &pair.device] {
        let rows = |sql: &str| {
            run(session, sql).unwrap_or_else(|error| panic!("{error}\n  {sql}")).num_rows()
        };
        assert_eq!(rows(groups), 12);
        assert_eq!(rows(&format!("SELECT DISTINCT * FROM ({groups})")), 6);
        assert_eq!(rows(&format!("SELECT a, u, count(*) FROM ({groups}) GROUP BY a, u")), 6);
    }
}

/// When this fails, DataFusion has mended what `session/rules/multisets.rs` mends.
#[test]
fn datafusion_still_does_not_count() {
    use datafusion::prelude::SessionContext;
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let rows = |sql: &str| {
        runtime
            .block_on(async { SessionContext::new().sql(sql).await?.count().await })
            .expect("a query")
    };
    assert_eq!(
        rows("VALUES (1), (1), (2) INTERSECT ALL VALUES (1), (2)"),
        3,
        "two rows are in both"
    );
    assert_eq!(rows("VALUES (1), (1), (2) EXCEPT ALL VALUES (1), (2)"), 0, "one row is left");
}
