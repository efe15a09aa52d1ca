//! Functions of lists and structs, `unnest` and `array_agg`.

use std::sync::Arc;

use warpframe::arrow::array::{FixedSizeListArray, Int64Array};
use warpframe::arrow::datatypes::{DataType, Field};

use crate::differential::{Cell, Pair, Rows, run};
use crate::nested::{pair, types};
use crate::tables::{columns, share};

/// The columns of lists, in each of which `x` is a literal of an element's type.
pub const LISTS: [(&str, &str); 10] = [
    ("li", "3"),
    ("ls", "'thirteen byte'"),
    ("lv", "'é'"),
    ("lf", "CAST('NaN' AS double)"),
    ("fl", "CAST(2 AS int)"),
    ("lb", "true"),
    ("lm", "CAST(-1 AS decimal(10, 2))"),
    ("lw", "CAST(4 AS decimal(30, 2))"),
    ("ld", "DATE '1970-01-03'"),
    ("lf", "-0.0"),
];

#[test]
fn elements_are_found_from_either_end() {
    let pair = pair(300, 21);
    for (name, _) in types().iter().filter(|(_, dtype)| !matches!(dtype, DataType::Struct(_))) {
        pair.check(&format!(
            "SELECT id, {name}[1] AS a, {name}[-2] AS b, {name}[i] AS c, {name}[0] AS d FROM t"
        ));
        pair.check(&format!(
            "SELECT id, {name}[2147483647] AS a, {name}[CAST(NULL AS bigint)] AS b FROM t"
        ));
        pair.check(&format!(
            "SELECT id, {name}[2:3] AS a, {name}[i:2] AS b, {name}[-3:-2] AS c FROM t"
        ));
        pair.check(&format!(
            "SELECT id, array_pop_front({name}) AS a, array_pop_back({name}) AS b FROM t"
        ));
        pair.check(&format!("SELECT id FROM t WHERE {name}[1] IS NULL"));
    }
    pair.check(
        "SELECT id, ll[1][2] AS a, lp[1]['x'] AS b, st['c'][1] AS c, fp[2]['y'] AS d FROM t",
    );
    pair.check("SELECT ls[1] AS k, count(*), sum(li[2]) FROM t GROUP BY ls[1]");
    pair.check("SELECT id, ls[1] AS k FROM t ORDER BY ls[1], id");
}

#[test]
fn lists_are_measured_and_searched() {
    let pair = pair(300, 5);
    for (name, x) in LISTS {
        let check = |sql: &str| pair.check(&sql.replace("NAME", name).replace("NEEDLE", x));
        check(
            "SELECT id, array_length(NAME), array_length(NAME, 1), cardinality(NAME), empty(NAME) FROM t",
        );
        check("SELECT id, array_has(NAME, NEEDLE) AS a, array_position(NAME, NEEDLE) AS b FROM t");
        check(
            "SELECT id, array_has(NAME, NAME[2]) AS a, array_position(NAME, NAME[-1]) AS b FROM t",
        );
        check("SELECT id, array_min(NAME) AS a, array_max(NAME) AS b FROM t");
        check("SELECT id FROM t WHERE array_has(NAME, NEEDLE) OR array_max(NAME) = NEEDLE");
    }
    pair.check("SELECT id, cardinality(ll), array_length(lp), cardinality(fp) FROM t");
    for name in ["li", "lf", "fl", "lm", "lw"] {
        pair.check(&format!(
            "SELECT id, array_sum({name}), array_avg({name}), array_product({name}) FROM t"
        ));
    }
    pair.check("SELECT s, sum(array_length(li)), max(array_max(li)), avg(array_sum(lf[1:2])) FROM t GROUP BY s");
}

#[test]
fn structs_are_taken_apart_and_made() {
    let pair = pair(300, 8);
    pair.check("SELECT id, st['a'] AS a, st['b'] AS b, st['c'] AS c, ss['p']['x'] AS x, ss['t'] AS t FROM t");
    pair.check(
        "SELECT st['b'] AS b, count(*), sum(st['a']), max(ss['p']['x']) FROM t GROUP BY st['b']",
    );
    pair.check("SELECT a.id, b.id AS other FROM t a JOIN t b ON a.st['a'] = b.ss['p']['x'] WHERE a.id < 20");
    pair.check(
        "SELECT id, named_struct('x', i, 'y', s, 'l', li) AS n, struct(i, st, x > 0) AS u FROM t",
    );
    pair.check("SELECT id, {'x': i + 1, 'y': {'z': s}} AS n FROM t WHERE i > 0");
    pair.check("SELECT id, n['y']['z'] AS z FROM (SELECT id, {'x': i, 'y': {'z': s}} AS n FROM t) WHERE n['x'] > 1");
    pair.check("SELECT id, CASE WHEN i > 0 THEN {'x': i, 'y': s} WHEN i < 0 THEN {'x': 0, 'y': 'no'} END AS c FROM t");
    pair.check("SELECT id, {'k': 1, 'v': 'constant'} AS c, {'k': CAST(NULL AS int), 'v': [1, 2]} AS d FROM t");
    pair.check("SELECT id, st['b'] FROM t ORDER BY st['b'] DESC, ss['p']['x'], id");
}

#[test]
fn lists_are_made() {
    let pair = pair(300, 13);
    pair.check("SELECT id, [i, id, NULL, i + 1] AS a, make_array(s, 'x', s || '-' || s || ' and more') AS b FROM t");
    pair.check(
        "SELECT id, [x, 1.5] AS a, [i > 0, true] AS b, [[i, 1], [2]] AS c, [{'x': i, 'y': s}, NULL] AS d FROM t",
    );
    pair.check(
        "SELECT id, [li, [id]] AS a, [ls, ls] AS b, [st, st] AS c FROM t WHERE i IS NOT NULL",
    );
    pair.check(
        "SELECT id, [1, 2, 3] AS a, ['é', NULL, 'a string that does not fit its view'] AS b, [[1], []] AS c FROM t",
    );
    pair.check("SELECT id, [id, i][2] AS a, [s, 'z'][1] AS b, array_length([i, i, i]) AS c FROM t");
    pair.check("SELECT id, array_sum([i, id, 2]) AS a, array_max([s, 'c']) AS b, array_has([s, 'b'], 'b') AS c FROM t");
    pair.check("SELECT id, CAST(li AS varchar[]) AS a, CAST(li AS double[]) AS b, CAST(ls AS varchar[]) AS c FROM t");
    pair.check(
        "SELECT id, CAST(lm AS decimal(20, 4)[]) AS a, CAST([i, 2] AS smallint[]) AS b FROM t",
    );
    pair.check("SELECT id, [i] AS a FROM t UNION ALL SELECT -id, li FROM t");
    pair.check("SELECT a.id, [a.i, b.i] AS p FROM t a JOIN t b ON a.id = b.id + 3 WHERE a.i > b.i");
    pair.check(
        "SELECT id, CASE WHEN i > 0 THEN [i] WHEN i < 0 THEN li ELSE [0, 0] END AS c FROM t",
    );
    assert!(
        pair.check_error("SELECT id, CAST(['1', s] AS int[]) AS a FROM t")
            .to_string()
            .contains("cast")
    );
}

#[test]
fn lists_and_structs_are_unnested() {
    for (at, (rows, seed)) in [(300, 31), (0, 1), (1, 2), (2100, 4)].into_iter().enumerate() {
        let pair = pair(rows, seed);
        for (name, _) in share(types(), at) {
            pair.check(&format!("SELECT id, unnest({name}) FROM t WHERE i > -2"));
        }
        pair.check("SELECT id, unnest(li) AS a, unnest(ls) AS b, unnest(fl) AS c, s, st FROM t");
        pair.check("SELECT id, unnest(unnest(ll)) AS a, unnest(li) AS b FROM t");
        pair.check("SELECT id, unnest(ll) AS a, unnest(unnest(ll)) AS b FROM t");
        pair.check("SELECT id, unnest(unnest(lp)) FROM t");
        pair.check("SELECT a, count(*), sum(id) FROM (SELECT id, unnest(ls) AS a FROM t) u GROUP BY a ORDER BY a");
        pair.check(
            "SELECT a.id, t.s FROM (SELECT id, unnest(li) AS a FROM t) a JOIN t ON a.a = t.id",
        );
        pair.check("SELECT id, unnest([i, id, NULL]) AS a FROM t WHERE s <> 'b'");
        pair.check(
            "SELECT id, a FROM (SELECT id, unnest(li) AS a FROM t) u WHERE a > 1 LIMIT 1000",
        );
    }
    let pair = pair(20, 1);
    pair.check("SELECT unnest([1, 2, 3]) AS a, unnest(['x', 'y']) AS b");
    pair.check("SELECT * FROM unnest([1, 2, NULL]) AS u(a)");
}

#[test]
fn groups_are_collected_into_lists() {
    for (at, (rows, seed)) in [(300, 41), (0, 1), (1, 2), (2100, 3)].into_iter().enumerate() {
        let pair = pair(rows, seed);
        for name in share(["i", "s", "x", "li", "ls", "st", "lp"], at) {
            let check = |sql: &str| pair.check(&sql.replace("NAME", name));
            check("SELECT s, array_agg(NAME ORDER BY id) AS a, count(*) FROM t GROUP BY s");
            check("SELECT array_agg(NAME ORDER BY id DESC) AS a FROM t");
            check("SELECT array_agg(NAME ORDER BY id) AS a FROM t WHERE id < 0");
            check(
                "SELECT i, array_agg(NAME ORDER BY id) FILTER (WHERE x > 0) AS a FROM t GROUP BY i",
            );
            check(
                "SELECT i, array_agg(NAME ORDER BY s NULLS FIRST, id) IGNORE NULLS AS a, sum(id) FROM t GROUP BY i",
            );
        }
        for name in ["i", "s"] {
            let check = |sql: &str| pair.check(&sql.replace("NAME", name));
            check("SELECT i, array_agg(DISTINCT NAME ORDER BY NAME) AS a FROM t GROUP BY i");
            check(
                "SELECT array_agg(DISTINCT NAME ORDER BY NAME DESC NULLS LAST) FILTER (WHERE id > 10) AS a FROM t",
            );
        }
        pair.check("SELECT i, cardinality(array_agg(DISTINCT s)) AS n FROM t GROUP BY i");
        pair.check("SELECT s, array_agg(i ORDER BY id)[2] AS a, array_sum(array_agg(i)) AS b FROM t GROUP BY s");
        pair.check("SELECT s, unnest(l) AS u FROM (SELECT s, array_agg(id ORDER BY id) AS l FROM t GROUP BY s) g");
        pair.check("SELECT s, array_agg(i ORDER BY id) AS a FROM t GROUP BY ROLLUP (s)");
        pair.check("SELECT id, array_sum(array_agg(i) OVER (PARTITION BY s)) AS a FROM t");
    }
}

#[test]
fn lists_are_made_of_lists() {
    // Where a list is null DataFusion would append to, and flatten, the elements beneath it.
    let pair = pair(300, 17);
    for (name, x) in LISTS {
        let check = |sql: &str| pair.check(&sql.replace("NAME", name).replace("NEEDLE", x));
        check(
            "SELECT id, array_append(NAME, NEEDLE) AS a, array_prepend(NEEDLE, NAME) AS b FROM t",
        );
        check("SELECT id, array_append(NAME, NAME[2]) AS a FROM t");
        check(
            "SELECT a.id, array_concat(a.NAME, b.NAME, a.NAME) AS c FROM t a JOIN t b ON a.id = b.id + 1",
        );
        check("SELECT id, array_reverse(NAME) AS a FROM t");
        check(
            "SELECT id, array_remove_all(NAME, NEEDLE) AS a, array_positions(NAME, NEEDLE) AS b FROM t",
        );
        check(
            "SELECT a.id, array_has_any(a.NAME, b.NAME) AS c, array_has_all(a.NAME, b.NAME[1:1]) AS d
            FROM t a JOIN t b ON a.id = b.id + 1",
        );
    }
    pair.check("SELECT id, li || [i] AS a, ls || ls AS b, i || li AS c, li || i AS d FROM t");
    pair.check("SELECT id, flatten([li, [id]]) AS a, flatten([ls, lv, ['z']]) AS b, flatten(li) AS c FROM t");
    pair.check(
        "SELECT id, array_append(fl, 7) AS a, array_prepend(7, fl) AS b, fl || 7 AS c FROM t",
    );
    pair.check("SELECT id, array_reverse(lp) AS a, array_concat(lp, lp) AS b, array_compact(li) AS c FROM t");
    pair.check("SELECT id, array_has_all(li, [1, 2]) AS a, li @> [1] AS b, array_has_any(ls, ['b', NULL]) AS c FROM t");
}

#[test]
fn texts_are_split_and_put_together() {
    let pair = pair(300, 19);
    pair.check(
        "SELECT id, string_to_array(s, ' ') AS a, string_to_array(s, 'that') AS b, string_to_array(s, '') AS c FROM t",
    );
    pair.check("SELECT id, string_to_array(s, NULL) AS a, string_to_array(s || ',' || id, ',', 'b') AS b FROM t");
    pair.check("SELECT id, string_to_array(s, ls[1]) AS a FROM t WHERE ls[1] IS NOT NULL");
    pair.check(
        "SELECT id, array_to_string(ls, ', ') AS a, array_to_string(li, '-', '?') AS b FROM t",
    );
    pair.check("SELECT id, array_to_string(ld, s) AS a, array_to_string(lm, ' ', NULL) AS b, array_to_string(lb, '') AS c FROM t");
    pair.check("SELECT w, count(*) FROM (SELECT unnest(string_to_array(s, ' ')) AS w FROM t) u GROUP BY w ORDER BY w");
    pair.check(
        "SELECT id, array_length(string_to_array(s, ' ')) AS n FROM t WHERE array_has(string_to_array(s, ' '), 'fit')",
    );
}

#[test]
fn lists_are_sorted_and_made_distinct() {
    for (at, (rows, seed)) in [(300, 43), (1, 2)].into_iter().enumerate() {
        let pair = pair(rows, seed);
        for (name, _) in share(LISTS, at) {
            let check = |sql: &str| pair.check(&sql.replace("NAME", name));
            check("SELECT id, array_sort(NAME) AS a, array_sort(NAME, 'DESC') AS b FROM t");
            check(
                "SELECT id, array_sort(NAME, 'ASC', 'NULLS LAST') AS a, array_distinct(NAME) AS b FROM t",
            );
            check("SELECT id, array_any_value(NAME) AS a, array_repeat(NAME[1], i) AS b FROM t");
        }
        pair.check("SELECT id, array_distinct(lp) AS a, array_distinct(ll) AS b, array_any_value(lp) AS c FROM t");
        pair.check("SELECT id, array_repeat(li, 2) AS a, array_repeat(st, i) AS b, array_repeat(s, 3) AS c FROM t WHERE li IS NOT NULL");
        pair.check("SELECT s, array_sort(array_agg(i)) AS a, array_sort(array_agg(DISTINCT s)) AS b FROM t GROUP BY s");
        pair.check(
            "SELECT s, array_length(array_distinct(array_agg(id % 97))) AS n FROM t GROUP BY s",
        );
    }
}

#[test]
fn series_of_numbers_are_lists() {
    let pair = pair(200, 47);
    pair.check(
        "SELECT id, range(i) AS a, range(i, 3) AS b, range(3, i, -2) AS c, generate_series(i, id % 5) AS d FROM t",
    );
    pair.check("SELECT id, unnest(generate_series(id, id + 3, 2)) AS n FROM t WHERE i > 0");
    pair.check(
        "SELECT id, generate_series(9223372036854775800 + id, 9223372036854775807, 5)[1] AS a FROM t WHERE id < 8",
    );
    pair.check_error("SELECT range(1, 5, i) AS a FROM t");
}

/// To a list that is null, an element is the first, whatever lies beneath: values of its own, as in
/// an array of fixed size.
#[test]
fn a_list_that_is_null_has_no_elements_to_append_to() {
    let fixed = FixedSizeListArray::new(
        Arc::new(Field::new("item", DataType::Int64, true)),
        2,
        Arc::new(Int64Array::from(vec![1, 2, 3, 4, 5, 6])),
        Some(vec![true, false, true].into()),
    );
    let pair = Pair::of(columns(vec![("fl", Arc::new(fixed))]));
    let sql = "SELECT array_to_string(array_append(fl, 7), ' '), array_to_string(array_prepend(7, fl), ' '),
        array_to_string(flatten([fl, [8]]), ' ') FROM t";
    let text = |text: &str| Cell::Text(text.into());
    for session in [&pair.cpu, &pair.device] {
        let rows = Rows::of(&run(session, sql).expect(sql)).rows;
        assert_eq!(rows[0], [text("1 2 7"), text("7 1 2"), text("1 2 8")]);
        assert_eq!(rows[1], [text("7"), text("7"), text("8")]);
        assert_eq!(rows[2], [text("5 6 7"), text("7 5 6"), text("5 6 8")]);
    }
}

/// A bound that is left out is the list's end.
#[test]
fn slices_may_leave_out_their_bounds() {
    let pair = pair(300, 22);
    for (name, _) in types().iter().filter(|(_, dtype)| !matches!(dtype, DataType::Struct(_))) {
        let of = |a: &str, b: &str, c: &str, d: &str| {
            format!(
                "SELECT id, {name}[{a}] AS a, {name}[{b}] AS b, {name}[{c}] AS c, {name}[{d}] AS d \
                 FROM t ORDER BY id"
            )
        };
        let (short, long) = (of("2:", ":3", ":", "-2:"), of("2:-1", "1:3", "1:-1", "-2:-1"));
        pair.check(&short);
        let found = run(&pair.device, &short).expect("it ran a moment ago");
        pair.compare(&run(&pair.cpu, &long).expect("its long form"), &found, &short);
    }
    let cell = |sql| crate::differential::scalar(&pair.device, sql);
    assert_eq!(cell("SELECT [1, 2, 3, 4][2:]"), Cell::Text("[2, 3, 4]".into()));
    assert_eq!(cell("SELECT [1, 2, 3, 4][:-2]"), Cell::Text("[1, 2, 3]".into()));
    assert_eq!(cell("SELECT [1, 2, 3, 4][2:][:2]"), Cell::Text("[2, 3]".into()));
}

/// A list of a table before it, in FROM.
#[test]
fn lists_of_tables_before_are_unnested() {
    let pair = pair(200, 23).and(
        "o",
        columns(vec![("v", Arc::new(Int64Array::from(vec![Some(3), Some(4), None])) as _)]),
    );
    for (short, long) in [
        ("SELECT id, unnest FROM t, unnest(t.li)", "SELECT id, unnest(li) AS v FROM t"),
        ("SELECT id, e.v FROM t, unnest(li) AS e(v)", "SELECT id, unnest(li) AS v FROM t"),
        ("SELECT id, e FROM t CROSS JOIN unnest(t.ls) AS e", "SELECT id, unnest(ls) FROM t"),
        (
            "SELECT id, v FROM t CROSS JOIN LATERAL unnest(t.ls) AS e(v)",
            "SELECT id, unnest(ls) FROM t",
        ),
        (
            "SELECT id, v FROM t JOIN unnest(t.li) e(v) ON v > 2",
            "SELECT * FROM (SELECT id, unnest(li) AS v FROM t) WHERE v > 2",
        ),
        (
            "SELECT t.id, e.v FROM o, t, unnest(t.li) e(v) WHERE o.v = e.v",
            "SELECT q.id, q.v FROM (SELECT id, unnest(li) AS v FROM t) q JOIN o ON o.v = q.v",
        ),
        ("SELECT id, v FROM t, unnest(t.li[2:]) e(v)", "SELECT id, unnest(li[2:-1]) AS v FROM t"),
        (
            "SELECT id, e.v FROM t JOIN (SELECT v AS id FROM o) q USING (id), unnest([id, 7]) e(v)",
            "SELECT id, unnest([id, 7]) FROM t JOIN (SELECT v AS id FROM o) q USING (id)",
        ),
    ] {
        pair.check(short);
        let found = run(&pair.device, short).expect("it ran a moment ago");
        pair.compare_unordered(&run(&pair.cpu, long).expect("its long form"), &found, short);
    }
    pair.check_all(&[
        "SELECT id, v, w FROM t, unnest(t.li) e(v), unnest([v, 1]) f(w)",
        "SELECT * EXCLUDE (li), COLUMNS('^v$') + 1 FROM (SELECT id, li FROM t), unnest(li) e(v)",
        "SELECT id FROM t WHERE id IN (SELECT v FROM t, unnest(t.li) e(v))",
    ]);
    let error = run(&pair.device, "SELECT * FROM t FULL JOIN unnest(t.li) e(v) ON true");
    let error = error.expect_err("elements without rows").to_string();
    assert!(error.contains("UNNEST of a table's columns"), "{error}");
    let error = run(&pair.device, "SELECT * FROM t, unnest(t.li) e(v, w)").expect_err("two names");
    assert!(error.to_string().contains("2 names of columns for 1 list"), "{error}");
}

#[test]
fn lists_that_the_query_makes_are_taken_apart_without_being_stored() {
    for rows in [0, 1, 33, 3000] {
        let pair = pair(rows, 3);
        for sql in [
            "SELECT id, unnest([i, id, 7]) AS a, s FROM t",
            "SELECT id, unnest([s, 'é', NULL, s || 'x']) AS a FROM t WHERE i > 0",
            "SELECT unnest(['a', 'b', 'c']) AS name, unnest([sum(i), min(id), count(*)]) AS n FROM t",
            "SELECT unnest([1, 2.5, NULL]) AS a, unnest([ld[1], NULL, DATE '2020-02-29']) AS b FROM t",
            "SELECT s, unnest([count(*), max(i)]) AS n FROM t GROUP BY s",
            "SELECT a, count(*), sum(id) FROM (SELECT id, unnest([i, i + 1]) AS a FROM t) u GROUP BY a",
            // Lists of different lengths, lists of lists, and of one element.
            "SELECT id, unnest([i, id]) AS a, unnest([1, 2, 3]) AS b FROM t",
            "SELECT id, unnest([[i], [id, 2]]) AS a FROM t",
            "SELECT id, unnest([i]) AS a FROM t",
        ] {
            pair.check(sql);
        }
        let many = (0..40).map(|at| format!("i + {at}")).collect::<Vec<_>>().join(", ");
        pair.check(&format!("SELECT id, unnest([{many}]) AS a FROM t"));
    }
}

#[test]
fn lists_of_several_columns_share_a_sort() {
    let pair = pair(2500, 77);
    let lists = "array_agg(id ORDER BY id) AS a, array_agg(s ORDER BY id) AS b, \
        array_agg(i ORDER BY id DESC) AS c, array_agg(li ORDER BY id) FILTER (WHERE i > 2) AS d";
    pair.check(&format!("SELECT s, {lists}, count(*) FROM t GROUP BY s"));
    pair.check(&format!("SELECT {lists} FROM t WHERE i > 1"));
}
