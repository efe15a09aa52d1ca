//! Subqueries in conditions: `IN`, `NOT IN`, `EXISTS`, `ANY` and `ALL` of them, in three-valued
//! logic.
//!
//! Random conditions are asked of the CPU engine and of the device, and evaluated row by row in
//! Rust (`membership/condition.rs`), which knows nothing of joins. `WARPFRAME_MEMBERSHIP_QUERIES`
//! says how many run on the CPU (200), `WARPFRAME_MEMBERSHIP_DEVICE` how many of them on the
//! device, too (12), and `WARPFRAME_MEMBERSHIP_SEED` the first one's seed (1).

mod condition;

use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::StdRng;
use warpframe::ErrorKind;
use warpframe::arrow::array::{ArrayRef, BooleanArray, Int64Array};
use warpframe::arrow::datatypes::{Field, Schema};
use warpframe::arrow::record_batch::RecordBatch;

use self::condition::{Maker, OUTER, Row, Tables, Truth};
use crate::differential::{Cell, Pair, Rows, run, seeds};
use crate::tables::columns;

#[test]
fn conditions_with_subqueries_obey_three_valued_logic() {
    // One of 16 on the device, which so meets each of the five places.
    let seeds = seeds("MEMBERSHIP", 200, 12);
    let count = seeds.len();
    let tables = tables();
    let pair = pair(&tables);
    let mut failed = vec![];
    let mut tally = [0; 3];
    for (seed, on_device) in seeds {
        let mut maker = Maker { random: StdRng::seed_from_u64(seed) };
        let condition = maker.condition(3);
        let place = Place::all()[(seed % 5) as usize];
        let sql = place.query(&condition);
        let expected = place.rows(&condition, &tables);
        let sessions = if on_device { vec![&pair.cpu, &pair.device] } else { vec![&pair.cpu] };
        for session in sessions {
            match run(session, &sql) {
                Ok(frame) => {
                    let found = ids(&Rows::of(&frame));
                    tally[usize::from(!found.is_empty())] += 1;
                    if found != expected {
                        let device = session.device().is_some();
                        failed
                            .push(format!("seed {seed}, device {device}\n  {sql}\n  {found:?}, expected {expected:?}"));
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. }) => {
                    tally[2] += 1
                }
                Err(error) => failed.push(format!("seed {seed}\n  {sql}\n  {error}")),
            }
        }
    }
    let [none, some, refused] = tally;
    println!("{none} queries without rows, {some} with some, {refused} refused");
    assert!(failed.is_empty(), "{} failed\n{}", failed.len(), failed.join("\n"));
    assert!(refused * 8 <= count && (count < 50 || some * 4 > count), "the queries say little");
}

/// The clause that holds the condition.
#[derive(Clone, Copy)]
enum Place {
    Where,
    /// Beside another conjunct, which lets a plain NOT IN have its join.
    Conjunct,
    Qualify,
}

impl Place {
    fn all() -> [Place; 5] {
        [Place::Where, Place::Where, Place::Conjunct, Place::Where, Place::Qualify]
    }

    fn query(self, condition: &Truth) -> String {
        let condition = condition.sql();
        match self {
            Place::Where => format!("SELECT id FROM t WHERE {condition}"),
            Place::Conjunct => format!("SELECT id FROM t WHERE t.a <> 1 AND {condition}"),
            Place::Qualify => format!(
                "SELECT id FROM t QUALIFY row_number() OVER (ORDER BY id) > 0 AND {condition}"
            ),
        }
    }

    fn rows(self, condition: &Truth, tables: &Tables) -> Vec<i64> {
        let kept = |row: &&Row| match self {
            Place::Conjunct => row[1].is_some_and(|a| a != 1),
            _ => true,
        };
        let holds = |row: &&Row| condition.value(tables, &[row]) == Some(true);
        tables.of(OUTER).iter().filter(kept).filter(holds).filter_map(|row| row[0]).collect()
    }
}

fn ids(rows: &Rows) -> Vec<i64> {
    let id = |row: &Vec<Cell>| match row[0] {
        Cell::Int(id) => id as i64,
        _ => panic!("an id is a number"),
    };
    let mut ids: Vec<i64> = rows.rows.iter().map(id).collect();
    ids.sort();
    ids
}

/// `t(id, a, b, m, p)`, and tables of `(c, d, e)`, of which `m` and `e` are declared without nulls.
fn tables() -> Tables {
    let (n, s) = (None, Some::<i64>);
    let t = [
        [s(1), s(1), s(1), s(0), s(1)],
        [s(2), s(2), n, s(1), s(0)],
        [s(3), n, s(2), s(2), n],
        [s(4), s(3), s(3), s(3), s(1)],
        [s(5), n, n, s(1), s(0)],
        [s(6), s(0), s(1), s(2), n],
        [s(7), s(2), s(0), s(3), s(1)],
    ];
    let u = [
        [s(1), s(1), s(0)],
        [n, s(2), s(1)],
        [s(2), n, s(2)],
        [s(2), s(3), s(3)],
        [n, s(1), s(3)],
        [s(3), s(0), s(1)],
    ];
    let full = [[s(1), s(1), s(1)], [s(2), s(2), s(0)], [s(1), s(3), s(2)]];
    let hollow = [[n, s(1), s(1)], [n, n, s(2)]];
    Tables(vec![
        ("t", t.iter().map(|row| row.to_vec()).collect()),
        ("u", u.iter().map(|row| row.to_vec()).collect()),
        ("whole", full.iter().map(|row| row.to_vec()).collect()),
        ("hollow", hollow.iter().map(|row| row.to_vec()).collect()),
        ("void", vec![]),
    ])
}

fn pair(tables: &Tables) -> Pair {
    let mut pair = Pair::new();
    for (name, rows) in &tables.0 {
        let column = |at: usize| rows.iter().map(|row| row[at]).collect::<Vec<_>>();
        let integers = |at: usize| Arc::new(Int64Array::from(column(at))) as ArrayRef;
        let booleans = |at: usize| {
            Arc::new(BooleanArray::from_iter(column(at).into_iter().map(|v| v.map(|v| v == 1))))
                as ArrayRef
        };
        let columns: Vec<(&str, ArrayRef, bool)> = match *name {
            "t" => vec![
                ("id", integers(0), false),
                ("a", integers(1), true),
                ("b", integers(2), true),
                ("m", integers(3), false),
                ("p", booleans(4), true),
            ],
            _ => {
                vec![("c", integers(0), true), ("d", integers(1), true), ("e", integers(2), false)]
            }
        };
        let fields: Vec<_> = columns
            .iter()
            .map(|(name, array, nulls)| Field::new(*name, array.data_type().clone(), *nulls))
            .collect();
        let arrays = columns.into_iter().map(|(_, array, _)| array).collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
            .expect("columns of one length");
        pair = pair.and(name, vec![batch]);
    }
    pair
}

/// Rows of one column `id`, from both engines.
fn check(pair: &Pair, condition: &str, expected: &[i64]) {
    let sql = format!("SELECT id FROM t WHERE {condition}");
    for session in [&pair.cpu, &pair.device] {
        let found = run(session, &sql).unwrap_or_else(|error| panic!("{error}\n  {sql}"));
        assert_eq!(ids(&Rows::of(&found)), expected, "{sql}");
    }
}

#[test]
fn a_null_in_the_list_leaves_membership_open() {
    let pair = pair(&tables());
    check(&pair, "a NOT IN (SELECT c FROM u) OR id = 7", &[7]);
    check(&pair, "NOT (a IN (SELECT c FROM u) AND id < 100)", &[]);
    check(&pair, "(a IN (SELECT c FROM u)) IS NULL", &[3, 5, 6]);
    check(&pair, "(a NOT IN (SELECT c FROM whole)) IS UNKNOWN", &[3, 5]);
    check(&pair, "(a IN (SELECT c FROM void)) IS NOT FALSE", &[]);
    check(&pair, "a NOT IN (SELECT c FROM u WHERE u.d = t.b)", &[2, 4, 5, 7]);
    check(&pair, "9 NOT IN (SELECT c FROM u)", &[]);
    check(&pair, "2 IN (SELECT c FROM u WHERE u.e = t.b AND u.c = 2)", &[3, 4]);
    check(&pair, "CAST(NULL AS bigint) NOT IN (SELECT e FROM u)", &[]);
    check(&pair, "CASE WHEN a IN (SELECT c FROM u) THEN 'in' ELSE 'out' END = 'out'", &[3, 5, 6]);
    check(&pair, "(a IN (SELECT c FROM u)) = (m IN (SELECT e FROM u))", &[1, 2, 4, 7]);
}

#[test]
fn an_aggregate_without_groups_has_one_row() {
    let pair = pair(&tables());
    let all = [1, 2, 3, 4, 5, 6, 7];
    check(&pair, "EXISTS (SELECT count(*) FROM u WHERE u.d = t.b)", &all);
    check(&pair, "NOT EXISTS (SELECT max(c) FROM void WHERE void.d = t.b)", &[]);
    check(&pair, "EXISTS (SELECT count(*) FROM u WHERE u.d = t.b HAVING count(*) = 0)", &[2, 5]);
    check(&pair, "EXISTS (SELECT count(*) FROM u WHERE u.d = t.b LIMIT 0)", &[]);
    check(&pair, "EXISTS (SELECT count(*) FROM u WHERE u.d = t.b OFFSET 1)", &[]);
    check(
        &pair,
        "EXISTS (SELECT c FROM u WHERE u.d = t.b UNION ALL SELECT count(*) FROM void)",
        &all,
    );
    check(&pair, "EXISTS (SELECT 1 FROM u WHERE u.d = t.b OFFSET 1)", &[1, 6]);
    check(&pair, "0 IN (SELECT count(*) FROM u WHERE u.d = t.b)", &[2, 5]);
    check(&pair, "a NOT IN (SELECT count(*) FROM u WHERE u.d = t.b)", &[1, 2, 4, 6, 7]);
    check(&pair, "1 IN (SELECT count(*) FROM u WHERE u.d = t.b HAVING max(c) IS NULL)", &[3]);
    check(
        &pair,
        "EXISTS (SELECT 1 FROM (SELECT count(*) AS n FROM u WHERE u.d = t.b) z WHERE z.n = 0)",
        &[2, 5],
    );
}

/// A column outside has to equal two within that are called the same.
#[test]
fn correlated_columns_of_one_name_are_told_apart() {
    let pair = pair(&tables());
    let both = "u x JOIN u y ON x.e = y.d WHERE x.d = t.a AND y.d = t.b";
    check(&pair, &format!("EXISTS (SELECT 1 FROM {both})"), &[4, 6]);
    check(&pair, &format!("a IN (SELECT x.d FROM {both})"), &[4, 6]);
    check(&pair, &format!("(SELECT count(x.e) FROM {both}) > 0"), &[4, 6]);
    let query = "SELECT c, e FROM u WHERE u.d = t.b";
    check(
        &pair,
        &format!("EXISTS (SELECT 1 FROM ({query}) r WHERE r.c = t.a AND r.e < t.m + 9)"),
        &[1],
    );
    check(
        &pair,
        "a IN (SELECT r.d FROM (SELECT * FROM u WHERE u.d = t.b) r JOIN u ON u.d = r.e)",
        &[1, 4],
    );
    check(
        &pair,
        "EXISTS (SELECT 1 FROM u x FULL JOIN whole y ON x.c = y.c WHERE coalesce(x.d, y.d) = t.b)",
        &[1, 3, 4, 6, 7],
    );
}

/// What is looked for may itself be a subquery that looks outside.
#[test]
fn correlated_subqueries_are_looked_for_in_others() {
    let of = |rows: Vec<[Option<i64>; 2]>, names: [&str; 2]| {
        let column =
            |at: usize| Arc::new(Int64Array::from_iter(rows.iter().map(|row| row[at]))) as ArrayRef;
        columns(vec![(names[0], column(0)), (names[1], column(1))])
    };
    let t = of(
        vec![[Some(1), Some(1)], [Some(2), Some(2)], [Some(3), Some(3)], [Some(4), None]],
        ["id", "a"],
    );
    let u = of(
        vec![[Some(1), Some(10)], [Some(1), Some(5)], [Some(2), Some(20)], [Some(4), Some(1)]],
        ["a", "b"],
    );
    let v = of(vec![[Some(1), Some(10)], [Some(2), Some(7)], [Some(3), Some(20)]], ["a", "c"]);
    let pair = Pair::of(t).and("u", u).and("v", v);
    // 10, 20, null, null
    let most = "(SELECT max(b) FROM u WHERE u.a = t.a)";
    let check = |condition: &str, expected: &[i64]| {
        check(&pair, &condition.replace("MOST", most), expected)
    };
    check("MOST IN (SELECT c FROM v)", &[1, 2]);
    check("MOST + 1 IN (SELECT c + 1 FROM v)", &[1, 2]);
    check("MOST = ANY (SELECT c FROM v)", &[1, 2]);
    check("MOST IN (SELECT c FROM v WHERE v.a = t.a)", &[1]);
    check("MOST NOT IN (SELECT c FROM v)", &[]);
    check("MOST NOT IN (SELECT c FROM v WHERE v.a = t.a)", &[2, 4]);
    check("MOST > ALL (SELECT c FROM v WHERE v.a = t.a)", &[2, 4]);
    check("MOST IN (SELECT c FROM v) OR a = 3", &[1, 2, 3]);
    check("(MOST IN (SELECT c FROM v)) IS NULL", &[3, 4]);
    check("(SELECT count(*) FROM u WHERE u.a = t.a) NOT IN (SELECT c FROM v)", &[1, 2, 3, 4]);
    let list = format!("SELECT id, {most} IN (SELECT c FROM v) AS x FROM t ORDER BY id");
    let group = format!("SELECT a FROM t GROUP BY a HAVING {most} IN (SELECT c FROM v) ORDER BY a");
    for session in [&pair.cpu, &pair.device] {
        let found = |sql: &str| -> Vec<Cell> {
            Rows::of(&run(session, sql).expect(sql))
                .rows
                .iter()
                .map(|row| row[row.len() - 1].clone())
                .collect()
        };
        assert_eq!(found(&list), [Cell::Int(1), Cell::Int(1), Cell::Null, Cell::Null]);
        assert_eq!(found(&group), [Cell::Int(1), Cell::Int(2)]);
        let order = format!("SELECT id FROM t ORDER BY {most} IN (SELECT c FROM v) NULLS LAST, id");
        assert_eq!(found(&order), [1, 2, 3, 4].map(Cell::Int));
    }
}

/// What has another meaning below the condition that correlates than above it.
#[test]
fn correlated_subqueries_may_be_any_query() {
    let pair = pair(&tables());
    for (condition, expected) in [
        (
            "EXISTS (SELECT 1 FROM (SELECT * FROM u WHERE u.d = t.b ORDER BY e LIMIT 1) z WHERE z.e > 0)",
            &[3, 4, 7][..],
        ),
        ("a IN (SELECT row_number() OVER (ORDER BY e) FROM u WHERE u.d = t.b)", &[1]),
        (
            "EXISTS (SELECT 1 FROM whole LEFT JOIN (SELECT * FROM u WHERE u.d = t.b) z ON z.c = whole.c WHERE z.c IS NULL)",
            &[1, 2, 3, 4, 5, 6, 7],
        ),
        ("a IN (SELECT c FROM u WHERE u.d = t.b GROUP BY ROLLUP (c))", &[1]),
        (
            "EXISTS (SELECT 1 FROM whole JOIN (SELECT count(*) AS n FROM u WHERE u.d = t.b) z ON z.n = whole.c)",
            &[1, 3, 4, 6, 7],
        ),
        ("3 IN (SELECT c FROM u WHERE u.d = t.b UNION ALL SELECT t.a)", &[4, 7]),
        (
            "a NOT IN (SELECT c FROM u WHERE u.d = t.b EXCEPT SELECT d FROM whole WHERE whole.c = t.m)",
            &[2, 4, 5, 7],
        ),
        (
            "EXISTS (SELECT 1 FROM u WHERE u.d = t.b AND EXISTS (SELECT 1 FROM whole w WHERE w.d = u.d AND w.e < t.m))",
            &[3, 4, 6],
        ),
        ("a < ALL (SELECT max(c) FROM u WHERE u.d = t.b GROUP BY e)", &[2, 5, 7]),
        (
            "EXISTS (SELECT 1 FROM whole FULL JOIN (SELECT * FROM u WHERE u.d = t.b) z ON z.c = whole.c AND z.e > t.m WHERE whole.c IS NULL)",
            &[1, 3, 4, 6, 7],
        ),
    ] {
        check(&pair, condition, expected);
    }
}

/// When this fails, DataFusion has mended what `session/rules/subqueries/below.rs` mends.
#[test]
fn datafusion_still_takes_unknown_for_false() {
    use datafusion::prelude::SessionContext;
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let rows = |condition: &str| {
        let sql = format!(
            "WITH t(id, a) AS (VALUES (1, 1), (2, 2)), u(c, d) AS (VALUES (1, 1), (NULL, 2)) \
             SELECT id FROM t WHERE {condition}"
        );
        let frame =
            runtime.block_on(async { SessionContext::new().sql(&sql).await?.count().await });
        frame.expect("a query")
    };
    assert_eq!(rows("a NOT IN (SELECT c FROM u) OR a = 9"), 1, "it is unknown for both rows");
    assert_eq!(rows("9 NOT IN (SELECT c FROM u)"), 2, "it is unknown for both rows");
    assert_eq!(
        rows("EXISTS (SELECT count(*) FROM u WHERE u.d = t.a + 1)"),
        1,
        "there is always a row"
    );
}

#[test]
fn rows_compare_by_their_values() {
    let pair = pair(&tables());
    check(&pair, "(a, b) IN (SELECT c, d FROM u)", &[1]);
    check(&pair, "(a, b) NOT IN (SELECT c, d FROM u)", &[4]);
    check(&pair, "(a, b) NOT IN (SELECT c, d FROM whole)", &[4, 6, 7]);
    check(&pair, "((a, b) IN (SELECT c, d FROM whole)) IS NULL", &[2, 3, 5]);
    check(&pair, "(a, b) NOT IN (SELECT c, d FROM whole) OR id = 5", &[4, 5, 6, 7]);
    check(&pair, "(a, m) IN (SELECT c, e FROM u WHERE u.d = t.b)", &[1]);
    check(&pair, "(a, b) IN ((1, 1), (2, NULL), (3, 3))", &[1, 4]);
    check(&pair, "((a, b) = (2, NULL)) IS NULL", &[2, 3, 5, 7]);
    check(&pair, "(a, b) < (2, 1)", &[1, 6, 7]);
    check(&pair, "(a + 0, b) >= (2, 1)", &[4]);
    check(&pair, "(a, b) IS NOT DISTINCT FROM (2, NULL)", &[2]);
}
