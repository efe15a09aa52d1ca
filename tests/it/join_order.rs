//! Joins in the order of estimated rows: what `EXPLAIN` says of it, and that answers do not depend
//! on it.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::differential::{Agreement, Pair, builder, run};
use crate::tables::{Shape, Values};

/// What was sold of a few parts, after every order was looked up.
const BACKWARDS: &str = "SELECT o_orderpriority, count(*), sum(l_quantity) FROM lineitem \
    JOIN orders ON l_orderkey = o_orderkey JOIN part ON l_partkey = p_partkey WHERE p_size = 15 GROUP BY o_orderpriority";

fn explained(pair: &Pair, sql: &str) -> String {
    pair.device.sql(sql).and_then(|frame| frame.explain()).expect("it is planned")
}

/// The tables in the order in which EXPLAIN has them: of each join the left side comes first, and
/// the right side of an upper join before that of a lower one.
fn tables(explained: &str) -> Vec<&str> {
    let scans = explained.lines().filter_map(|line| line.split("TableScan: ").nth(1));
    scans.map(|scan| scan.split(' ').next().expect("a name")).collect()
}

#[test]
fn explain_shows_estimates_and_the_order_of_joins() {
    let pair = Pair::new().samples();
    // Of what the files' footers say.
    let before = explained(&pair, BACKWARDS);
    assert!(before.contains("(about "), "{before}");
    pair.check(BACKWARDS);
    let after = explained(&pair, BACKWARDS);
    assert_eq!(
        tables(&after),
        ["lineitem", "orders", "part"],
        "the few parts are joined first: {after}"
    );
    assert!(after.contains("\njoins   in the order of estimated rows"), "{after}");
    let parts = after
        .lines()
        .find(|line| line.contains("Join: lineitem.l_partkey = part.p_partkey"))
        .expect("a join");
    assert!(
        parts.ends_with("with pipeline 0    (about 1204 rows)"),
        "a fiftieth of 60175: {parts}"
    );

    pair.device.execute("SET join_order = off").expect("a setting");
    let own = explained(&pair, BACKWARDS);
    assert_eq!(tables(&own), ["lineitem", "part", "orders"], "{own}");
    assert!(own.contains("(about ") && !own.contains("joins   "), "{own}");
    pair.check(BACKWARDS);
}

#[test]
fn the_order_of_joins_changes_no_answer() {
    let pairs = [true, false].map(|on| Pair::with(builder().strict(true).join_order(on)).samples());
    for sql in [
        BACKWARDS,
        // Columns in the query's order, conditions between tables that are not joined to each
        // other.
        "SELECT p_name, l.*, s_name FROM lineitem l JOIN part ON p_partkey = l_partkey JOIN supplier ON s_suppkey = l_suppkey
         WHERE p_size = 15 AND s_nationkey < p_size AND l_quantity > 40",
        // A table several times.
        "SELECT a.n_name, b.n_name, c.n_name FROM nation a JOIN nation b ON a.n_regionkey = b.n_regionkey
         JOIN nation c ON c.n_nationkey = b.n_nationkey JOIN region ON r_regionkey = c.n_regionkey WHERE r_name = 'ASIA'",
        // Joins under aggregates, outer joins and subqueries under joins.
        "SELECT n_name, q.n, total FROM nation JOIN (SELECT c_nationkey AS k, count(*) AS n, sum(o_totalprice) AS total
           FROM customer JOIN orders ON o_custkey = c_custkey JOIN lineitem ON l_orderkey = o_orderkey
           WHERE l_returnflag = 'R' GROUP BY c_nationkey) q ON q.k = n_nationkey JOIN region ON r_regionkey = n_regionkey
         WHERE r_name <> 'ASIA'",
        "SELECT count(*), sum(o_totalprice) FROM orders JOIN customer ON c_custkey = o_custkey JOIN nation ON n_nationkey = c_nationkey
         LEFT JOIN region ON r_regionkey = n_regionkey AND r_name = 'ASIA' WHERE r_name IS NULL",
        "SELECT count(*) FROM customer JOIN nation ON n_nationkey = c_nationkey JOIN supplier ON s_nationkey = n_nationkey
         WHERE s_acctbal > c_acctbal AND EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)",
        // Keys of several columns, and an expression.
        "SELECT count(*), sum(ps_supplycost) FROM lineitem JOIN partsupp ON l_suppkey = ps_suppkey AND l_partkey = ps_partkey
         JOIN part ON p_partkey = ps_partkey JOIN supplier ON s_suppkey = ps_suppkey WHERE p_size < 5",
        "SELECT count(*) FROM nation a JOIN nation b ON a.n_nationkey + 1 = b.n_nationkey JOIN customer ON c_nationkey = b.n_nationkey",
        // What may fail stays where it is.
        "SELECT count(*) FROM orders JOIN customer ON c_custkey = o_custkey JOIN nation ON n_nationkey = c_nationkey
         WHERE o_totalprice / c_custkey > 1000",
        // Nothing comes out.
        "SELECT * FROM lineitem JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey WHERE c_custkey < 0",
    ] {
        for pair in &pairs {
            pair.check(sql);
        }
    }
    let ordered = pairs.each_ref().map(|pair| explained(pair, BACKWARDS).contains("joins   "));
    assert_eq!(ordered, [true, false]);
}

#[test]
fn chains_stars_and_cliques_of_random_tables_agree() {
    let shapes = [
        Shape::random(900, 1),
        Shape { values: Values::Distinct, nulls: 0.0, ..Shape::random(150, 2) },
        Shape { values: Values::Ascending, nulls: 0.0, ..Shape::random(60, 3) },
        Shape::random(40, 4),
        Shape { values: Values::AllNull, ..Shape::random(20, 5) },
    ];
    let mut pair = Pair::new();
    for (at, shape) in shapes.iter().enumerate() {
        pair = pair.and(&format!("t{at}"), shape.batches());
    }
    let mut rng = StdRng::seed_from_u64(11);
    let mut ordered = 0;
    for round in 0..24 {
        let count = rng.random_range(3..7);
        let names: Vec<String> = (0..count).map(|at| format!("a{at}")).collect();
        let mut text = format!("FROM t{} a0", rng.random_range(0..4));
        for at in 1..count {
            let others: Vec<usize> = match round % 3 {
                0 => vec![at - 1],
                1 => vec![0],
                _ => (0..at).collect(),
            };
            // Keys that match at most once, but one, so that joins stay small.
            let key = |rng: &mut StdRng| *["id", "id", "id", "w"].choose(rng).expect("keys");
            let on: Vec<String> = (others.iter())
                .map(|other| {
                    let key = if round % 3 == 2 { "id" } else { key(&mut rng) };
                    format!("a{other}.{key} = a{at}.{key}")
                })
                .collect();
            let table = if rng.random_bool(0.1) { 4 } else { rng.random_range(0..4) };
            text += &format!(" JOIN t{table} a{at} ON {}", on.join(" AND "));
        }
        let mut name = || names.choose(&mut rng).expect("names").clone();
        let (a, b, c) = (name(), name(), name());
        let sql = format!(
            "SELECT a0.id, {a}.s, {b}.x, a{}.m {text} WHERE {a}.k < 5 AND ({b}.k2 > -2 OR {c}.b) AND {c}.id % 7 <> 3",
            count - 1
        );
        match pair.agreement(&sql) {
            Agreement::Rows(_) => {}
            other => panic!("{other:?}: {sql}"),
        }
        run(&pair.device, &sql).expect("it ran before");
        ordered += usize::from(explained(&pair, &sql).contains("joins   "));
    }
    assert!(ordered > 3, "{ordered} orders differ from the query's");
}

/// Rows of the operator of the CPU engine that yields most.
fn most_rows(pair: &Pair, sql: &str) -> u64 {
    let profiled = pair.cpu.sql(sql).and_then(|frame| frame.profile());
    let (_, operators) = profiled.expect("it runs");
    operators.iter().filter_map(|operator| operator.rows).max().expect("rows are counted")
}

/// Bytes that the device's kernels move for a query whose tables are there, and kernels known.
fn bytes_moved(pair: &Pair, sql: &str) -> u64 {
    pair.check(sql);
    let before = pair.gpu().counters().bytes_moved;
    run(&pair.device, sql).expect("it ran before");
    pair.gpu().counters().bytes_moved - before
}

#[test]
fn cross_joins_come_after_what_cuts_them() {
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        for (table, rows) in [("a", 60), ("b", 60), ("c", 60), ("s", 4), ("m", 50)] {
            let sql = format!("CREATE TABLE {table} AS SELECT range AS x FROM range(0, {rows})");
            session.execute(&sql).expect("a table");
        }
        session.execute("CREATE TABLE d AS SELECT 7 AS x").expect("a table");
    }
    // Rows, and pairs of rows that a condition has to look at, in the best order.
    for (from, most, pairs) in [
        // The equality leaves one row of `c`.
        ("a, b, c, d WHERE c.x = d.x", 60 * 60, 60 * 60),
        ("s a, s b, s c, s d, m e, s f WHERE e.x = f.x", 4 * 4 * 4 * 4 * 4, 4 * 4 * 4 * 4 * 4),
        // No equality, but the last table has one row.
        ("a, b, c, d WHERE a.x < d.x AND b.x < d.x AND c.x < d.x", 7 * 7 * 7, 7 * 7 * 60),
        // The condition leaves fewer rows of `a` and `c` than of `a` and `b`.
        ("a, b, c, d WHERE c.x = d.x AND a.x < c.x AND b.x > a.x", 7 * 60, 7 * 60),
        ("a CROSS JOIN b CROSS JOIN c JOIN d ON c.x = d.x AND d.x > a.x", 7 * 60, 7 * 60),
    ] {
        let names = if from.starts_with('s') { "a.x + b.x + e.x" } else { "a.x + b.x + c.x" };
        let sql = format!("SELECT count(*), sum({names}) FROM {from}");
        let rows = most_rows(&pair, &sql);
        assert!(rows <= 2 * most, "{rows} rows on the CPU of {most}: {sql}");
        // A pair of row numbers and three columns of 8 bytes, written and read: 64 bytes a row.
        let bytes = bytes_moved(&pair, &sql);
        assert!(bytes <= 64 * (2 * pairs + 1000), "{bytes} bytes on the device: {sql}");
    }
}
