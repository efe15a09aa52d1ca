//! `JOIN … USING` and `NATURAL JOIN`: what the merged key is, in every clause.
//!
//! Random chains of joins are asked of the CPU engine and of the device, and joined row by row in
//! Rust. `WARPFRAME_USING_QUERIES` says how many run on the CPU (300), `WARPFRAME_USING_DEVICE` how
//! many of them on the device, too (20), and `WARPFRAME_USING_SEED` the first one's seed (1).

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use warpframe::ErrorKind;
use warpframe::arrow::array::{ArrayRef, Int32Array, Int64Array};
use warpframe::prelude::*;

use crate::differential::{Cell, Pair, Rows, run, seeds};
use crate::tables::columns;

type Value = Option<i64>;
type Row = Vec<Value>;

/// `a(k, j, x)`, `b(y, k, j)`, `c(k, z)`.
const TABLES: [(&str, &[&str]); 3] =
    [("a", &["k", "j", "x"]), ("b", &["y", "k", "j"]), ("c", &["k", "z"])];

fn rows(table: usize) -> Vec<Row> {
    let (n, s) = (None, Some::<i64>);
    match table {
        0 => vec![
            vec![s(1), s(1), s(10)],
            vec![s(2), s(2), s(11)],
            vec![s(2), n, s(12)],
            vec![n, s(1), s(13)],
            vec![s(5), s(3), n],
        ],
        1 => vec![
            vec![s(20), s(2), s(2)],
            vec![s(21), s(3), s(1)],
            vec![n, s(2), s(1)],
            vec![s(23), n, s(2)],
            vec![s(24), s(6), n],
        ],
        _ => vec![
            vec![s(2), s(30)],
            vec![s(3), s(31)],
            vec![s(7), s(32)],
            vec![n, s(33)],
            vec![s(6), s(34)],
        ],
    }
}

/// In `a` and `c` keys are of 64 bits, in `b` of 32.
fn pair() -> Pair {
    let mut pair = Pair::new();
    for (table, (name, names)) in TABLES.iter().enumerate() {
        let rows = rows(table);
        let column = |at: usize| {
            let values = rows.iter().map(|row| row[at]);
            let array: ArrayRef = match table {
                1 => Arc::new(Int32Array::from_iter(values.map(|v| v.map(|v| v as i32)))),
                _ => Arc::new(Int64Array::from_iter(values)),
            };
            (names[at], array)
        };
        pair = pair.and(name, columns((0..names.len()).map(column).collect()));
    }
    pair
}

/// What tables join to: columns with their tables, and merged ones.
#[derive(Debug, Clone)]
struct Relation {
    own: Vec<(usize, &'static str)>,
    /// Names, in the order of `*`: merged ones, or places among `own`.
    shown: Vec<(&'static str, Shown)>,
    rows: Vec<(Row, Vec<Value>)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Shown {
    Own(usize),
    Merged(usize),
}

impl Relation {
    fn of(table: usize) -> Relation {
        let names = TABLES[table].1;
        Relation {
            own: names.iter().map(|name| (table, *name)).collect(),
            shown: names.iter().enumerate().map(|(at, name)| (*name, Shown::Own(at))).collect(),
            rows: rows(table).into_iter().map(|row| (row, vec![])).collect(),
        }
    }

    fn value(&self, row: &(Row, Vec<Value>), shown: Shown) -> Value {
        match shown {
            Shown::Own(at) => row.0[at],
            Shown::Merged(at) => row.1[at],
        }
    }

    fn shown(&self, name: &str) -> Shown {
        self.shown.iter().find(|(of, _)| *of == name).expect("a column of the name").1
    }

    fn join(&self, kind: &str, other: &Relation, keys: &[&'static str]) -> Relation {
        let own = [self.own.clone(), other.own.clone()].concat();
        let merged_before = self.rows.first().map_or(0, |row| row.1.len());
        let merged_there = other.rows.first().map_or(0, |row| row.1.len());
        let moved = |shown: Shown| match shown {
            Shown::Own(at) => Shown::Own(at + self.own.len()),
            Shown::Merged(at) => Shown::Merged(at + merged_before),
        };
        let first = merged_before + merged_there;
        let mut shown: Vec<_> =
            keys.iter().enumerate().map(|(at, key)| (*key, Shown::Merged(first + at))).collect();
        shown.extend(self.shown.iter().filter(|(name, _)| !keys.contains(name)).copied());
        let there = other.shown.iter().filter(|(name, _)| !keys.contains(name));
        shown.extend(there.map(|(name, shown)| (*name, moved(*shown))));

        let value = |of: &Relation, row: Option<&(Row, Vec<Value>)>, key: &str| {
            row.and_then(|row| of.value(row, of.shown(key)))
        };
        let joined = |l: Option<&(Row, Vec<Value>)>, r: Option<&(Row, Vec<Value>)>| {
            let mut row = l.map_or(vec![None; self.own.len()], |l| l.0.clone());
            row.extend(r.map_or(vec![None; other.own.len()], |r| r.0.clone()));
            let mut merged = l.map_or(vec![None; merged_before], |l| l.1.clone());
            merged.extend(r.map_or(vec![None; merged_there], |r| r.1.clone()));
            merged.extend(keys.iter().map(|key| value(self, l, key).or(value(other, r, key))));
            (row, merged)
        };
        let equal = |l: &(Row, Vec<Value>), r: &(Row, Vec<Value>)| {
            keys.iter().all(|key| {
                let (l, r) = (value(self, Some(l), key), value(other, Some(r), key));
                l.is_some() && l == r
            })
        };
        let mut rows = vec![];
        for l in &self.rows {
            let matches: Vec<_> = other.rows.iter().filter(|r| equal(l, r)).collect();
            rows.extend(matches.iter().map(|r| joined(Some(l), Some(r))));
            if matches.is_empty() && matches!(kind, "LEFT" | "FULL") {
                rows.push(joined(Some(l), None));
            }
        }
        if matches!(kind, "RIGHT" | "FULL") {
            let alone = other.rows.iter().filter(|r| !self.rows.iter().any(|l| equal(l, r)));
            rows.extend(alone.map(|r| joined(None, Some(r))));
        }
        Relation { own, shown, rows }
    }
}

const KINDS: [&str; 5] = ["INNER", "LEFT", "RIGHT", "FULL", "FULL"];

/// FROM, and what it yields.
fn from(random: &mut StdRng) -> (String, Relation) {
    let mut order = [0, 1, 2];
    let at = random.random_range(0..3);
    order.swap(0, at);
    let at = random.random_range(1..3);
    order.swap(1, at);
    let (mut text, mut relation) = (TABLES[order[0]].0.to_string(), Relation::of(order[0]));
    let tables = random.random_range(2..=3);
    for next in &order[1..tables] {
        let kind = KINDS[random.random_range(0..KINDS.len())];
        let other = Relation::of(*next);
        let shared: Vec<&'static str> = (relation.shown.iter())
            .map(|(name, _)| *name)
            .filter(|name| other.shown.iter().any(|(of, _)| of == name))
            .collect();
        let natural = random.random_range(0..3) == 0;
        // Of two keys one alone leaves the other ambiguous, which does not matter unless it is
        // named.
        let keys = if natural || random.random_range(0..2) == 0 { shared } else { vec!["k"] };
        let name = TABLES[*next].0;
        text = match natural {
            true => format!("{text} NATURAL {kind} JOIN {name}"),
            false => format!("{text} {kind} JOIN {name} USING ({})", keys.join(", ")),
        };
        // Joined in parentheses it is the same.
        if random.random_range(0..4) == 0 {
            text = format!("({text})");
        }
        let ambiguous = |of: &Relation| {
            let names: Vec<_> = of.shown.iter().map(|(name, _)| name).collect();
            names.iter().any(|name| names.iter().filter(|other| *other == name).count() > 1)
        };
        relation = relation.join(kind, &other, &keys);
        if ambiguous(&relation) {
            break;
        }
    }
    (text, relation)
}

/// A query, and its rows.
fn query(random: &mut StdRng) -> (String, Vec<Row>) {
    let (from, relation) = from(random);
    let k = relation.shown("k");
    let constant = random.random_range(1..4);
    let filtered = random.random_range(0..2) == 0;
    let place = if filtered { format!(" WHERE k >= {constant}") } else { String::new() };
    let kept: Vec<_> = (relation.rows.iter())
        .filter(|row| !filtered || relation.value(row, k).is_some_and(|k| k >= constant))
        .collect();
    let all = |row: &&(Row, Vec<Value>)| {
        relation.shown.iter().map(|(_, s)| relation.value(row, *s)).collect()
    };
    match random.random_range(0..5) {
        0 | 1 => (format!("SELECT * FROM {from}{place}"), kept.iter().map(all).collect()),
        2 => {
            let owners: Vec<usize> =
                (0..relation.own.len()).filter(|at| relation.own[*at].1 == "k").collect();
            let names = owners
                .iter()
                .map(|at| format!("{}.k", TABLES[relation.own[*at].0].0))
                .collect::<Vec<_>>();
            let rows = kept.iter().map(|row| {
                let own = owners.iter().map(|at| row.0[*at]);
                [relation.value(row, k)].into_iter().chain(own).collect()
            });
            (format!("SELECT k, {} FROM {from}{place}", names.join(", ")), rows.collect())
        }
        3 => {
            let mut groups: Vec<(Value, i64)> = vec![];
            for row in &kept {
                let key = relation.value(row, k);
                match groups.iter_mut().find(|(of, _)| *of == key) {
                    Some((_, count)) => *count += 1,
                    None => groups.push((key, 1)),
                }
            }
            let rows = groups.into_iter().filter(|(key, _)| key.is_none_or(|key| key < 6));
            let sql = format!(
                "SELECT k, count(*) FROM {from}{place} GROUP BY k HAVING k < 6 OR k IS NULL ORDER BY k DESC"
            );
            (sql, rows.map(|(key, count)| vec![key, Some(count)]).collect())
        }
        _ => {
            let mut keys: Vec<Value> = kept.iter().map(|row| relation.value(row, k)).collect();
            keys.sort_by_key(|key| key.unwrap_or(i64::MAX));
            let rows = keys
                .iter()
                .enumerate()
                .map(|(at, key)| vec![key.map(|k| k + 1), Some(at as i64 + 1)]);
            let sql = format!(
                "SELECT k + 1 AS n, row_number() OVER (ORDER BY k) AS r FROM {from}{place} ORDER BY k"
            );
            (sql, rows.collect())
        }
    }
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort();
    rows
}

fn found(session: &Session, sql: &str) -> warpframe::Result<Vec<Row>> {
    let value = |cell: &Cell| match cell {
        Cell::Null => None,
        Cell::Int(value) => Some(*value as i64),
        other => panic!("not an integer: {other:?}"),
    };
    Ok(Rows::of(&run(session, sql)?)
        .rows
        .iter()
        .map(|row| row.iter().map(value).collect())
        .collect())
}

#[test]
fn joins_by_names_merge_their_keys() {
    let pair = pair();
    let mut failed = vec![];
    for (seed, on_device) in seeds("USING", 300, 20) {
        let (sql, expected) = query(&mut StdRng::seed_from_u64(seed));
        let expected = sorted(expected);
        let sessions = if on_device { vec![&pair.cpu, &pair.device] } else { vec![&pair.cpu] };
        for session in sessions {
            match found(session, &sql) {
                Ok(rows) if sorted(rows.clone()) == expected => {}
                Ok(rows) => failed
                    .push(format!("seed {seed}\n  {sql}\n  {:?}\n  {expected:?}", sorted(rows))),
                Err(error) => failed.push(format!("seed {seed}\n  {sql}\n  {error}")),
            }
        }
    }
    assert!(failed.is_empty(), "{} failed\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn a_merged_key_is_known_in_every_clause() {
    let pair = pair();
    let check = |sql: &str, expected: &[&[Value]]| {
        for session in [&pair.cpu, &pair.device] {
            let rows = found(session, sql).unwrap_or_else(|error| panic!("{error}\n  {sql}"));
            assert_eq!(
                sorted(rows),
                sorted(expected.iter().map(|row| row.to_vec()).collect()),
                "{sql}"
            );
        }
    };
    let (n, s) = (None, Some::<i64>);
    check("SELECT k FROM a FULL JOIN c USING (k) WHERE k > 5", &[&[s(6)], &[s(7)]]);
    check(
        "SELECT d.k FROM (SELECT k, z FROM a RIGHT JOIN c USING (k)) d WHERE d.z > 31",
        &[&[s(7)], &[n], &[s(6)]],
    );
    check(
        "WITH q AS (SELECT * FROM a NATURAL FULL JOIN c) SELECT k, z FROM q WHERE x IS NULL AND k > 5",
        &[&[s(7), s(32)], &[s(6), s(34)]],
    );
    check(
        "SELECT * EXCLUDE (x, j) FROM a RIGHT JOIN c USING (k) WHERE k > 2",
        &[&[s(3), s(31)], &[s(7), s(32)], &[s(6), s(34)]],
    );
    check(
        "SELECT q.k, q.z FROM (a FULL JOIN c USING (k)) AS q WHERE q.k > 5",
        &[&[s(7), s(32)], &[s(6), s(34)]],
    );
    check(
        "SELECT DISTINCT ON (k) k, x FROM a FULL JOIN c USING (k) WHERE k = 2 ORDER BY k, x",
        &[&[s(2), s(11)]],
    );
    check("SELECT max(k) FROM a FULL JOIN c USING (k)", &[&[s(7)]]);
    check(
        "SELECT k FROM a FULL JOIN c USING (k) QUALIFY row_number() OVER (ORDER BY k DESC NULLS LAST) = 1",
        &[&[s(7)]],
    );
    check(
        "SELECT z FROM c WHERE EXISTS (SELECT 1 FROM a FULL JOIN b USING (k) WHERE k = c.k AND k > 5)",
        &[&[s(34)]],
    );
    check(
        "SELECT k FROM a FULL JOIN b USING (k) WHERE EXISTS (SELECT 1 FROM (SELECT z FROM c) d WHERE z = k + 28)",
        &[&[s(2)], &[s(2)], &[s(2)], &[s(2)], &[s(3)], &[s(5)], &[s(6)]],
    );
    check(
        "SELECT a.k, d.l FROM a FULL JOIN b USING (k) JOIN (SELECT k AS l FROM c) d ON k = l WHERE k <> 2",
        &[&[n, s(3)], &[n, s(6)]],
    );
    check(
        "SELECT k, z FROM (SELECT 3 AS k) FULL JOIN c USING (k) WHERE z < 32",
        &[&[s(3), s(31)], &[s(2), s(30)]],
    );
    for sql in [
        "SELECT j FROM a FULL JOIN b USING (k)",
        "SELECT * FROM (a JOIN b USING (k)) JOIN c USING (nothing)",
    ] {
        for session in [&pair.cpu, &pair.device] {
            let error = run(session, sql).expect_err("it has no meaning");
            assert!(
                matches!(error.kind(), ErrorKind::Plan { .. } | ErrorKind::ColumnNotFound { .. }),
                "{error}"
            );
        }
    }
}

/// A recursive query is a side of such a join within itself.
#[test]
fn recursive_queries_join_themselves_by_names() {
    let pair = pair();
    let nested = "WITH RECURSIVE o AS (SELECT 1 AS a UNION ALL (
        WITH RECURSIVE n AS (SELECT 1 AS a UNION ALL SELECT a + 2 AS a FROM n WHERE a < 3)
        SELECT o.a + 2 AS a FROM o JOIN n USING (a) WHERE n.a < 4)) SELECT a FROM o ORDER BY a";
    // Names of columns that the query itself gives, and a key that only a right join has.
    let named = "WITH RECURSIVE o(a, b) AS (SELECT 1, 10 UNION ALL
        SELECT a + 1, b + y FROM o JOIN (VALUES (1, 5), (2, 7)) v(a, y) USING (a)) SELECT a, b FROM o ORDER BY a";
    let number = |value: i128| Cell::Int(value);
    // The device runs no recursive queries.
    let rows = |sql: &str| Rows::of(&run(&pair.cpu, sql).expect(sql)).rows;
    assert_eq!(rows(nested), [[number(1)], [number(3)], [number(5)]]);
    let expected = [[number(1), number(10)], [number(2), number(15)], [number(3), number(22)]];
    assert_eq!(rows(named), expected);
}

#[test]
fn star_has_the_keys_first() {
    let pair = pair();
    let names = |sql: &str| {
        let schema = pair.cpu.sql(sql).unwrap_or_else(|error| panic!("{error}\n  {sql}")).schema();
        schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names("SELECT * FROM b JOIN a USING (k)"), "k y j j x");
    assert_eq!(names("SELECT * FROM b FULL JOIN a USING (j, k)"), "j k y x");
    assert_eq!(names("SELECT * FROM b NATURAL LEFT JOIN a"), "k j y x");
    assert_eq!(names("SELECT a.*, z FROM c FULL JOIN a USING (k)"), "k j x z");
}

#[test]
fn frames_join_by_the_merged_key() {
    let pair = pair();
    pair.check_frame("full join of frames", |session| {
        session
            .table("a")?
            .join(&session.table("c")?, JoinType::Full, ["k"], ["k"])?
            .select([col("k"), col("z")])
    });
    let joined = |kind| {
        let frame =
            pair.cpu.table("a").and_then(|a| a.join(&pair.cpu.table("c")?, kind, ["k"], ["k"]));
        let frame =
            frame.and_then(|frame| frame.select([col("k")])?.collect()).expect("frames join");
        Rows::of(&frame).rows.into_iter().filter(|row| row[0] == Cell::Int(7)).count()
    };
    assert_eq!(
        (joined(JoinType::Full), joined(JoinType::Right), joined(JoinType::Left)),
        (1, 1, 0)
    );
}

/// A join with no side is one that yields rows of the left.
#[test]
fn semi_and_anti_joins_are_of_the_left() {
    let pair = pair();
    for (kind, rows) in [("SEMI", 2), ("ANTI", 3)] {
        for by in ["USING (k)", "ON a.k = b.k"] {
            let short = format!("SELECT * FROM a {kind} JOIN b {by} ORDER BY x");
            let long = format!("SELECT a.* FROM a LEFT {kind} JOIN b ON a.k = b.k ORDER BY x");
            pair.check(&short);
            let found = run(&pair.device, &short).expect("it ran a moment ago");
            assert_eq!(found.column_names(), ["k", "j", "x"]);
            let expected = run(&pair.cpu, &long).expect("its long form");
            pair.compare(&expected, &found, &short);
            assert_eq!(found.num_rows(), rows);
        }
        let within = format!("SELECT * FROM c, (a {kind} JOIN b USING (k)) ORDER BY z, x");
        pair.check(&within);
    }
}

#[test]
fn a_join_without_a_condition_is_refused() {
    let pair = pair();
    for sql in [
        "SELECT * FROM a JOIN b",
        "SELECT * FROM a INNER JOIN b",
        "SELECT * FROM a LEFT JOIN b",
        "SELECT * FROM a SEMI JOIN b",
        "SELECT * FROM c, (a JOIN b)",
        "SELECT * FROM (SELECT 1 FROM a JOIN b)",
        "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b JOIN c)",
    ] {
        let error = run(&pair.device, sql).expect_err(sql);
        assert!(matches!(error.kind(), ErrorKind::Plan { .. }), "{sql}: {error:?}");
        assert!(error.to_string().contains("CROSS JOIN"), "{sql}: {error}");
        assert!(error.location().is_some(), "{sql}");
    }
    pair.check("SELECT * FROM a CROSS JOIN b");
}

#[test]
fn positional_joins_set_rows_side_by_side() {
    let pair = pair();
    pair.check_all(&[
        "SELECT * FROM a POSITIONAL JOIN b",
        "SELECT * FROM b POSITIONAL JOIN (SELECT x FROM a WHERE k = 2) AS q",
        "SELECT p.k, q.z FROM a AS p POSITIONAL JOIN c q WHERE q.z > 30 ORDER BY q.z",
        "SELECT * FROM a POSITIONAL JOIN b POSITIONAL JOIN c",
        "FROM (FROM a LIMIT 2) s(d, e, f) POSITIONAL JOIN c o (g, h) CROSS JOIN b",
        "SELECT * FROM a JOIN b USING (k) POSITIONAL JOIN c ORDER BY x, y",
    ]);
    // Rows that have no partner are of NULL.
    let sql = "SELECT x, z FROM (SELECT x FROM a ORDER BY x NULLS LAST LIMIT 2) POSITIONAL JOIN \
               (SELECT z FROM c ORDER BY z LIMIT 3)";
    let rows = Rows::of(&run(&pair.device, sql).expect("rows")).rows;
    let int = |value: i64| Cell::Int(value.into());
    assert_eq!(rows, [[int(10), int(30)], [int(11), int(31)], [Cell::Null, int(32)]]);
    // It is a name where AS stands before it, or where it is no join's.
    pair.check("SELECT positional.k FROM a AS positional JOIN b ON positional.k = b.k");
    pair.check("SELECT positional.k FROM a positional ORDER BY x");
    let error = run(&pair.device, "SELECT * FROM a POSITIONAL JOIN b ON a.k = b.k");
    assert!(matches!(error.expect_err("it has no condition").kind(), ErrorKind::Plan { .. }));
}
