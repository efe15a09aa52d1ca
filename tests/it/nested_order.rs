//! Lists and structs in an order: sorts, partitions, comparisons, the least and the greatest.

use std::sync::Arc;

use warpframe::ErrorKind;
use warpframe::arrow::array::*;
use warpframe::arrow::datatypes::Int64Type;

use crate::differential::{Cell, Pair, Rows, builder, run};
use crate::nested::{pair, types};
use crate::tables::{Batches, Shape, Values, columns, share};

#[test]
fn rows_are_sorted_by_lists_and_structs() {
    for (at, (rows, seed)) in [(2100, 7), (0, 1)].into_iter().enumerate() {
        let pair = pair(rows, seed);
        for (name, _) in share(types(), at) {
            let check = |sql: &str| pair.check(&sql.replace("NAME", name));
            check("SELECT id FROM t ORDER BY NAME, id");
            check("SELECT id FROM t ORDER BY NAME DESC, id");
            check("SELECT id FROM t ORDER BY NAME ASC NULLS FIRST, id DESC");
            check("SELECT id FROM t ORDER BY NAME DESC NULLS LAST, id");
        }
        pair.check("SELECT id, li FROM t WHERE i > 0 ORDER BY s DESC, li, ls DESC, st, id LIMIT 50 OFFSET 3");
        pair.check("SELECT id FROM t ORDER BY [i, id % 3], {'a': s, 'b': {'c': x, 'd': [i]}}, id");
        pair.check("SELECT a.id, b.li FROM t a LEFT JOIN t b ON a.id = b.id + 5 ORDER BY b.li DESC, a.id LIMIT 100");
    }
}

/// DataFusion's top k lost rows here: a null within a struct was less than the values that it
/// follows.
#[test]
fn the_first_rows_in_an_order_of_structs_are_found() {
    let t = Shape {
        rows: 700,
        values: Values::Distinct,
        batches: Batches::Sliced,
        nulls: 0.0,
        seed: 1,
    };
    let u =
        Shape { rows: 150, values: Values::Random, batches: Batches::Several, nulls: 0.1, seed: 2 };
    let pair = Pair::of(t.batches()).and("u", u.batches());
    let first = |keys: &str, limit: usize| {
        pair.check(&format!(
            "SELECT t.id, u.id, u.d FROM (SELECT * FROM t WHERE id % 40 = 3) t CROSS JOIN u ORDER BY {keys} LIMIT {limit}"
        ))
    };
    for limit in [1, 47, 60] {
        first(
            "named_struct('a', u.d, 'b', make_array(u.k)), t.i64 DESC NULLS LAST, t.id, u.id",
            limit,
        );
        first("named_struct('a', u.d, 'b', u.k) DESC NULLS LAST, t.id, u.id", limit);
        first("make_array(u.k2, u.k) NULLS FIRST, t.id, u.id DESC", limit);
    }
}

#[test]
fn partitions_and_windows_are_of_lists_and_structs() {
    for (at, (rows, seed)) in [(400, 67), (1, 3)].into_iter().enumerate() {
        let pair = pair(rows, seed);
        for (name, _) in share(types().iter().filter(|(name, _)| !["lf", "ss"].contains(name)), at)
        {
            let check = |sql: &str| pair.check(&sql.replace("NAME", name));
            // Frames of RANGE, which are those that are not named, DataFusion does not plan for
            // structs.
            check(
                "SELECT id, count(*) OVER (PARTITION BY NAME) AS n, rank() OVER (ORDER BY NAME ROWS 1 PRECEDING) AS r,
                row_number() OVER (PARTITION BY s ORDER BY NAME DESC, id ROWS 1 PRECEDING) AS b, NAME FROM t",
            );
            check(
                "SELECT id, lag(id) OVER (PARTITION BY NAME ORDER BY id) AS l FROM t WHERE i > -3",
            );
        }
        pair.check("SELECT id, dense_rank() OVER (ORDER BY ll) AS r, sum(i) OVER (ORDER BY ls DESC) AS s FROM t");
        pair.check("SELECT s, array_agg(id ORDER BY li DESC, id) AS a, first_value(li ORDER BY ls, st, id) AS f FROM t GROUP BY s");
        pair.check("SELECT DISTINCT ON (li) li, id FROM t ORDER BY li, id");
    }
}

#[test]
fn the_least_and_the_greatest_are_found() {
    for (at, (rows, seed)) in [(2100, 9), (0, 1), (1, 4)].into_iter().enumerate() {
        let pair = pair(rows, seed);
        for name in share(["li", "ls", "lv", "lf", "fl", "lb", "lm", "lw", "ld"], at) {
            let check = |sql: &str| pair.check(&sql.replace("NAME", name));
            check("SELECT s, min(NAME) AS a, max(NAME) AS b, count(*) FROM t GROUP BY s");
            check("SELECT min(NAME) AS a, max(NAME) FILTER (WHERE i > 0) AS b FROM t");
        }
        // Nulls within structs do not compare on the CPU, so that what it finds depends on the
        // order of rows.
        let whole = "(SELECT id, s, CASE WHEN i IS NOT NULL AND x IS NOT NULL THEN {'a': i, 'b': {'c': x}} END AS m FROM t)";
        pair.check(&format!("SELECT s, min(m) AS a, max(m) AS b FROM {whole} GROUP BY s"));
        pair.check(&format!("SELECT id, max(m) OVER (PARTITION BY s) AS b FROM {whole}"));
    }
}

#[test]
fn lists_and_structs_are_compared() {
    let pair = pair(400, 73);
    for (name, _) in types().iter().filter(|(name, _)| !["lf", "ss"].contains(name)) {
        pair.check(&format!(
            "SELECT a.id, a.{name} < b.{name} AS c, a.{name} >= b.{name} AS d, a.{name} > b.{name} AS e
            FROM t a JOIN t b ON a.id = b.id + 1"
        ));
        pair.check(&format!(
            "SELECT a.id FROM t a JOIN t b ON a.id = b.id + 2 WHERE a.{name} <= b.{name}"
        ));
    }
    pair.check("SELECT id, li BETWEEN [0] AND [2, 1] AS b, greatest(li, [1, i]) AS g, least(st, st) AS l FROM t");
    pair.check(
        "SELECT id, array_sort(ll) AS a, array_sort(ll, 'DESC') AS b, array_sort(ll, 'ASC', 'NULLS LAST') AS c FROM t",
    );
}

/// Values of DuckDB 2.0.1: nulls within are greatest, as they are in ORDER BY.
#[test]
fn nulls_within_lists_and_structs_are_greatest() {
    let pair = pair(100, 75);
    let lists = "(VALUES (1, [NULL, 2]), (2, [1, 3]), (3, [1, NULL]), (4, [1]), (5, NULL)) v(n, l)";
    let check = |sql: &str, expected: &[&str]| {
        pair.check(sql);
        for session in [&pair.cpu, &pair.device] {
            let found =
                Rows::of(&run(session, sql).unwrap_or_else(|error| panic!("{sql}: {error}")));
            let shown = |cell: &Cell| match cell {
                Cell::Null => "-".to_string(),
                Cell::Int(number) => number.to_string(),
                other => format!("{other:?}"),
            };
            let rows: Vec<String> =
                found.rows.iter().map(|row| row.iter().map(shown).collect()).collect();
            assert_eq!(rows, expected, "{sql}");
        }
    };
    check(
        &format!(
            "SELECT l < [1, 3], l <= [1, NULL], l > [1, 3], l >= [1], l BETWEEN [1] AND [5], \
             l NOT BETWEEN [1] AND [5] FROM {lists} ORDER BY n"
        ),
        &["001101", "010110", "011110", "110110", "------"],
    );
    check(
        &format!(
            "SELECT a.n FROM {lists} JOIN {} ON a.l < b.l WHERE b.n = 1 ORDER BY a.n",
            lists.replace("v(n, l)", "b(n, l)")
        )
        .replacen("v(n, l)", "a(n, l)", 1),
        &["2", "3", "4"],
    );
    check(&format!("SELECT n FROM {lists} WHERE l IS NOT NULL ORDER BY l"), &["4", "2", "3", "1"]);
    check(
        &format!(
            "SELECT greatest(l, [1, 4]) = l, least(l, [1, 4]) = l, greatest(l, NULL) = l FROM {lists} \
             ORDER BY n"
        ),
        &["101", "011", "101", "011", "---"],
    );
    check(
        "SELECT [NULL, 2] < [1, 3], [1, NULL] <= [1, NULL], [1] < [1, NULL], [[NULL], [1]] > [[2]], \
         {'a': NULL, 'b': 2} < {'a': 1, 'b': 3}, greatest([NULL, 2], [1, 3]) > [1, 3]",
        &["011101"],
    );
    check(
        "SELECT {'a': m, 'b': 2} > {'a': 1, 'b': 3}, ['x', s] > ['x', 'y'] \
         FROM (VALUES (1, NULL, NULL), (2, 0, 'z')) v(n, m, s) ORDER BY n",
        &["11", "01"],
    );
}

/// Rows with a list of numbers from 0 on, of so many elements.
fn of_lengths(lengths: &[i64]) -> Vec<RecordBatch> {
    let lists = lengths.iter().map(|length| Some((0..*length).map(Some)));
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
    columns(vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..lengths.len() as i64)) as ArrayRef),
        ("l", Arc::new(lists)),
    ])
}

#[test]
fn keys_that_are_too_long_are_left_to_the_cpu() {
    let pair =
        Pair::new().and("t", of_lengths(&[70, 3, 71])).and("u", of_lengths(&[71, 3, 72, 0, 2]));
    pair.check("SELECT id FROM t WHERE id > 0 ORDER BY l DESC");
    let refused = run(&pair.device, "SELECT id FROM u ORDER BY l")
        .expect_err("a key of 640 bytes fits, not one of 649");
    assert!(matches!(refused.kind(), ErrorKind::Unsupported { .. }), "{refused}");
    let fallback = Pair::with(builder()).and("u", of_lengths(&[71, 3, 72, 0, 2]));
    let sql = "SELECT id FROM u ORDER BY l";
    let [expected, found] = [&fallback.cpu, &fallback.device]
        .map(|session| run(session, sql).expect("the CPU sorts them"));
    fallback.rows_agree(&expected, &found, sql);
}

#[test]
fn strings_of_unknown_length_are_measured() {
    let pair = pair(700, 79);
    pair.check("SELECT id FROM t ORDER BY repeat(s, abs(i)), id");
    pair.check("SELECT id FROM t ORDER BY {'a': repeat(s, abs(i)), 'b': i} DESC, id LIMIT 40");
    pair.check("SELECT id, row_number() OVER (PARTITION BY array_to_string(ls, '-') ORDER BY id) AS r FROM t");
    pair.check("SELECT s, array_agg(id ORDER BY array_to_string(li, ' '), id) AS a FROM t WHERE i > -3 GROUP BY s");
}
