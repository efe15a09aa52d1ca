//! Functions of lists that take lambdas.

use std::sync::Arc;

use warpframe::arrow::array::*;
use warpframe::prelude::*;

use crate::differential::{Pair, Rows, run};
use crate::lists::LISTS;
use crate::nested::{pair, types};
use crate::tables::{columns, share};

/// What both sessions answer, one line a row, cells apart by a bar.
fn answers(pair: &Pair, sql: &str) -> Vec<String> {
    let [cpu, device] = [&pair.cpu, &pair.device].map(|session| {
        let rows =
            Rows::of(&run(session, sql).unwrap_or_else(|error| panic!("{error}\n  {sql}"))).rows;
        let cell = |cell: &crate::differential::Cell| match cell {
            crate::differential::Cell::Null => "NULL".to_string(),
            crate::differential::Cell::Int(number) => number.to_string(),
            crate::differential::Cell::Float(number) => number.to_string(),
            crate::differential::Cell::Text(text) => text.clone(),
        };
        rows.iter()
            .map(|row| row.iter().map(cell).collect::<Vec<_>>().join(" | "))
            .collect::<Vec<_>>()
    });
    assert_eq!(cpu, device, "{sql}");
    device
}

/// Events with lists of numbers, texts and structs: null, empty, with nulls in them.
fn events() -> Pair {
    let pair = Pair::new();
    let sql = "SELECT 1 AS id, 10 AS k, [1, 2, 3] AS l, ['a', NULL, 'ccc'] AS w,
            [{'pt': 30.0, 'eta': 0.0}, {'pt': 40.0, 'eta': 1.0}] AS e
        UNION ALL SELECT 2, 20, [], [], []
        UNION ALL SELECT 3, 30, NULL, NULL, NULL
        UNION ALL SELECT 4, NULL, [4, NULL], ['', 'é'], [{'pt': 5.0, 'eta': NULL}, NULL]";
    let batches =
        pair.cpu.sql(sql).and_then(|frame| frame.collect()).and_then(|frame| frame.to_arrow());
    pair.and("t", batches.expect("the rows"))
}

#[test]
fn lists_are_transformed() {
    let pair = events();
    let of = |expr: &str| answers(&pair, &format!("SELECT {expr} AS a FROM t ORDER BY id"));
    assert_eq!(of("list_transform(l, x -> x * 2)"), ["[2, 4, 6]", "[]", "NULL", "[8, NULL]"]);
    assert_eq!(
        of("array_transform(l, lambda x : x + k)"),
        ["[11, 12, 13]", "[]", "NULL", "[NULL, NULL]"]
    );
    assert_eq!(
        of("list_apply(l, (x) -> x IS NULL)"),
        ["[false, false, false]", "[]", "NULL", "[false, true]"]
    );
    assert_eq!(of("apply(w, s -> s || '!')"), ["[a!, NULL, ccc!]", "[]", "NULL", "[!, é!]"]);
    assert_eq!(
        of("list_transform(e, p -> p.pt * 2)"),
        ["[60.0, 80.0]", "[]", "NULL", "[10.0, NULL]"]
    );
    assert_eq!(
        of("list_transform(e, p -> p['eta'])"),
        ["[0.0, 1.0]", "[]", "NULL", "[NULL, NULL]"]
    );
    assert_eq!(of("list_transform(l, x -> [x, k])[1]"), ["[1, 10]", "NULL", "NULL", "[4, NULL]"]);
    assert_eq!(
        of("list_transform(l, x -> {'n': x, 'twice': 2 * x})[1].twice"),
        ["2", "NULL", "NULL", "8"]
    );
    assert_eq!(of("transform(l, x -> 7)"), ["[7, 7, 7]", "[]", "NULL", "[7, 7]"]);
}

#[test]
fn lists_are_filtered() {
    let pair = events();
    let of = |expr: &str| answers(&pair, &format!("SELECT {expr} AS a FROM t ORDER BY id"));
    assert_eq!(of("list_filter(l, x -> x > 1)"), ["[2, 3]", "[]", "NULL", "[4]"]);
    assert_eq!(of("array_filter(l, x -> x * 10 > k)"), ["[2, 3]", "[]", "NULL", "[]"]);
    assert_eq!(of("filter(l, x -> x IS NULL)"), ["[]", "[]", "NULL", "[NULL]"]);
    assert_eq!(of("list_filter(w, s -> length(s) < 2)"), ["[a]", "[]", "NULL", "[, é]"]);
    assert_eq!(
        of("array_length(list_filter(e, p -> p.pt > 20 AND abs(p.eta) < 0.5))"),
        ["1", "0", "NULL", "0"]
    );
    assert_eq!(of("list_filter(l, x -> CAST(NULL AS boolean))"), ["[]", "[]", "NULL", "[]"]);
    assert_eq!(of("array_any_match(l, x -> x > 2)"), ["1", "0", "NULL", "1"]);
    assert_eq!(of("array_first(l, x -> x > 1)"), ["2", "NULL", "NULL", "4"]);
}

#[test]
fn lists_are_reduced() {
    let pair = events();
    let of = |expr: &str| answers(&pair, &format!("SELECT {expr} AS a FROM t ORDER BY id"));
    assert_eq!(of("list_reduce(l, (acc, x) -> acc + x, 0)"), ["6", "0", "NULL", "NULL"]);
    assert_eq!(
        of("array_reduce(l, (acc, x) -> acc * 10 + coalesce(x, 0), k)"),
        ["10123", "20", "NULL", "NULL"]
    );
    assert_eq!(
        of("reduce(l, 0.5, (acc, x) -> acc + coalesce(x, 1))"),
        ["6.5", "0.5", "NULL", "5.5"]
    );
    assert_eq!(
        of("list_reduce(w, (a, s) -> a || coalesce(s, '-'), '>')"),
        [">a-ccc", ">", "NULL", ">é"]
    );
    assert_eq!(
        of("list_reduce(l, (a, x) -> {'n': a.n + 1, 'm': a.n}, {'n': 0, 'm': 0}).m"),
        ["2", "0", "NULL", "1"]
    );
    assert_eq!(
        of("list_reduce(l, (a, x) -> array_append(a, x * 2), [k])"),
        ["[10, 2, 4, 6]", "[20]", "NULL", "[NULL, 8, NULL]"]
    );
    let sql =
        "SELECT list_reduce(l, (a, x) -> a - x) AS a FROM t WHERE array_length(l) > 0 ORDER BY id";
    assert_eq!(answers(&pair, sql), ["-4", "NULL"]);
    let error = pair.check_error("SELECT list_reduce(l, (a, x) -> a + x) AS a FROM t");
    assert!(error.to_string().contains("array_reduce"), "{error}");
}

#[test]
fn every_type_of_element_goes_through_lambdas() {
    for (at, (rows, seed)) in [(300, 61), (1, 4), (0, 1), (2100, 7)].into_iter().enumerate() {
        let pair = pair(rows, seed);
        for (name, x) in share(LISTS, at) {
            let check = |sql: &str| pair.check(&sql.replace("NAME", name).replace("NEEDLE", x));
            check(
                "SELECT id, list_transform(NAME, x -> x) AS a, list_transform(NAME, x -> x = NEEDLE) AS b FROM t",
            );
            check(
                "SELECT id, list_filter(NAME, x -> x > NEEDLE) AS a, list_filter(NAME, x -> x IS NULL) AS b FROM t",
            );
            check(
                "SELECT id, array_first(NAME, x -> x <= NEEDLE) AS a, array_any_match(NAME, x -> x = NEEDLE) AS b FROM t",
            );
            check("SELECT id, list_reduce(NAME, (a, x) -> greatest(a, x), NEEDLE) AS a FROM t");
            check(
                "SELECT id, list_reduce(NAME, (a, x) -> CASE WHEN x > a THEN x ELSE a END) AS a FROM t WHERE cardinality(NAME) > 0",
            );
            check(
                "SELECT id FROM t WHERE array_length(list_filter(NAME, x -> x IS NOT NULL AND i > 0)) > 1",
            );
        }
        for (name, _) in share(types().iter().filter(|(name, _)| !["st", "ss"].contains(name)), at)
        {
            let check = |sql: &str| pair.check(&sql.replace("NAME", name));
            check("SELECT id, list_transform(NAME, x -> {'e': x, 'id': id}) AS a FROM t");
            check("SELECT id, list_filter(NAME, x -> x IS NOT NULL) AS a FROM t");
        }
    }
}

#[test]
fn lambdas_see_columns_and_lambdas_around() {
    for (rows, seed) in [(300, 63), (1, 5), (0, 2)] {
        let pair = pair(rows, seed);
        pair.check_all(&[
            "SELECT id, list_transform(li, x -> x * i + id) AS a, list_transform(ls, x -> x || '-' || s) AS b FROM t",
            "SELECT id, list_transform(ll, l -> list_transform(l, x -> x + i)) AS a FROM t",
            "SELECT id, list_transform(ll, l -> list_filter(l, x -> x > i OR x = array_length(l))) AS a FROM t",
            "SELECT id, list_filter(ll, l -> list_reduce(l, (a, x) -> a + coalesce(x, 0), 0) > id % 3) AS a FROM t",
            "SELECT id, list_transform(li, x -> list_transform(ls, y -> y || CAST(x AS varchar))) AS a FROM t",
            "SELECT id, list_transform(li, x -> list_transform(li, x -> x * 2)) AS a FROM t",
            "SELECT id, list_reduce(ll, (a, l) -> array_concat(a, list_filter(l, x -> x > 0)), [0]) AS a FROM t",
            "SELECT id, list_transform(lp, p -> p.x + i) AS a, list_transform(lp, p -> p.y || s) AS b FROM t",
            "SELECT id, list_filter(lp, p -> p.x > 0 AND p.y <> 'b') AS a, list_transform(fp, p -> p) AS b FROM t",
            "SELECT id, list_transform(st['c'], c -> c + st['a']) AS a FROM t",
            "SELECT a.id, list_transform(a.li, x -> x + b.i) AS l FROM t a JOIN t b ON a.id = b.id + 1",
            "SELECT a.id, b.id AS j FROM t a JOIN t b ON a.id = b.id + 1 AND array_any_match(a.li, x -> x = b.i)",
            "SELECT list_transform(li, x -> x > 0) AS k, count(*), sum(id) FROM t GROUP BY list_transform(li, x -> x > 0)",
            "SELECT s, sum(list_reduce(li, (a, x) -> a + coalesce(x, 0), 0)) AS n FROM t GROUP BY s",
            "SELECT id, list_transform(array_agg(i) OVER (ORDER BY id ROWS 2 PRECEDING), x -> x + 1) AS w FROM t",
            "SELECT s, list_transform(array_agg(i ORDER BY id), x -> x * 2) AS n FROM t GROUP BY s",
            "SELECT id, unnest(list_transform(li, x -> x + 1)) AS n FROM t WHERE i > 0",
            "SELECT id FROM t ORDER BY list_transform(li, x -> -x), id",
            "SELECT id, list_transform(string_to_array(s, ' '), w -> upper(w)) AS a FROM t WHERE s <> 'é'",
            "SELECT id, list_transform(lc, w -> w || '!') AS a, list_filter(lc, w -> w LIKE '%e%') AS b FROM t",
            "SELECT id, list_transform(range(id % 5), n -> n * n) AS a FROM t",
            "SELECT id, list_transform([1, 2, 3], n -> n * i) AS a, list_filter([s, 'b'], w -> w = 'b') AS b FROM t",
            "SELECT id, CASE WHEN i > 0 THEN list_transform(li, x -> x) ELSE list_filter(li, x -> x > 1) END AS a FROM t",
            "SELECT id, list_transform(list_filter(lf, x -> NOT isnan(x)), x -> sqrt(x * x) / 2) AS a FROM t",
        ]);
    }
}

/// What a lambda fails of are elements that are there, of lists that are looked at.
#[test]
fn a_lambda_fails_where_it_is_called() {
    let pair = pair(300, 67);
    pair.check("SELECT id, list_transform(list_filter(li, x -> x <> 0), x -> 100 / x) AS a FROM t");
    pair.check("SELECT id, CASE WHEN i <> 0 THEN list_transform(li, x -> x / i) END AS a FROM t");
    pair.check("SELECT id, list_transform(li, x -> 7 / i) AS a FROM t WHERE i <> 0");
    pair.check("SELECT id, list_transform(li, x -> CASE WHEN x <> 0 THEN 12 / x END) AS a FROM t");
    let error = pair.check_error("SELECT list_transform(li, x -> 1 / (x - 1)) AS a FROM t");
    assert!(error.to_string().contains("1 / (x - 1)"), "{error}");
    pair.check_error("SELECT list_transform(ll, l -> list_transform(l, x -> 1 / x)) AS a FROM t");
}

#[test]
fn lambdas_that_make_no_sense_are_refused() {
    let pair = events();
    let refused = |sql: &str, word: &str| {
        for session in [&pair.cpu, &pair.device] {
            let error = run(session, sql).expect_err(sql).to_string();
            assert!(error.contains(word), "{sql}: {error}");
        }
    };
    refused("SELECT list_transform(id, x -> x) FROM t", "array_transform");
    refused("SELECT list_filter(l, x -> x + 1) FROM t", "array_filter");
    refused("SELECT list_reduce(id, (a, x) -> a + x) FROM t", "array_reduce");
    refused("SELECT list_reduce(l, 1, 2) FROM t", "array_reduce");
    refused("SELECT list_reduce(l, (a, x) -> [a], 0) FROM t", "array_reduce");
    refused("SELECT list_transform(l, (a, b, c) -> a) FROM t", "lambda");
    refused("SELECT list_transform(l, x -> y) FROM t", "y");
    refused("SELECT list_transform(l, (x, x) -> x) FROM t", "unique");
}

/// One list is much longer than a thread's share, most are empty.
#[test]
fn a_long_list_is_gone_through() {
    let lists = ListArray::from_iter_primitive::<warpframe::arrow::datatypes::Int64Type, _, _>(
        (0..70i64)
            .map(|row| Some((0..if row == 33 { 5000 } else { 0 }).map(Some).collect::<Vec<_>>())),
    );
    let pair = Pair::of(columns(vec![("l", Arc::new(lists) as ArrayRef)]));
    pair.check(
        "SELECT list_transform(l, x -> x * x) AS a, list_filter(l, x -> x % 7 = 0) AS b FROM t",
    );
    let sql = "SELECT sum(list_reduce(l, (a, x) -> a + x, 0)) AS n FROM t";
    assert_eq!(answers(&pair, sql), [(4999 * 5000 / 2).to_string()]);
}

#[test]
fn combinations_are_all_choices_of_places() {
    let pair = events();
    let of = |expr: &str| answers(&pair, &format!("SELECT {expr} AS a FROM t ORDER BY id"));
    assert_eq!(
        of("list_combinations(l, 2)"),
        ["[[1, 2], [1, 3], [2, 3]]", "[]", "NULL", "[[4, NULL]]"]
    );
    assert_eq!(of("list_combinations(l, 1)"), ["[[1], [2], [3]]", "[]", "NULL", "[[4], [NULL]]"]);
    assert_eq!(of("array_combinations(w, 3)"), ["[[a, NULL, ccc]]", "[]", "NULL", "[]"]);
    assert_eq!(of("list_combinations([1, 2, 3, 4, 5], 4)[2]"), ["[1, 2, 3, 5]"; 4]);
    assert_eq!(
        of("array_length(list_combinations(range(k), 4))"),
        ["210", "4845", "27405", "NULL"]
    );
    // Of all pairs of electrons, one at angle 0.
    let sql = "SELECT round(list_transform(list_combinations(e, 2),
            p -> sqrt(2 * p[1].pt * p[2].pt * (cosh(p[1].eta - p[2].eta) - cos(0.0))))[1] * 1000) AS m FROM t ORDER BY id";
    assert_eq!(answers(&pair, sql), ["36103", "NULL", "NULL", "NULL"]);
    for (at, (rows, seed)) in [(300, 71), (1, 2), (0, 1)].into_iter().enumerate() {
        let pair = crate::nested::pair(rows, seed);
        for (name, _) in share(types().iter().filter(|(name, _)| !["st", "ss"].contains(name)), at)
        {
            for of in 1..=4 {
                pair.check(&format!("SELECT id, list_combinations({name}, {of}) AS a FROM t"));
            }
        }
        pair.check_all(&[
            "SELECT id, list_transform(list_combinations(li, 2), p -> p[1] * p[2] + id) AS a FROM t",
            "SELECT id, list_filter(list_combinations(ls, 2), p -> p[1] < p[2]) AS a FROM t WHERE cardinality(ls) > 2",
            "SELECT id, list_transform(list_combinations(lp, 2), p -> p[1].x - p[2].x) AS a FROM t",
            "SELECT id, unnest(list_combinations(li, 3)) AS a FROM t",
            "SELECT list_combinations(li, 2)[1] AS k, count(*) FROM t GROUP BY list_combinations(li, 2)[1]",
            "SELECT id, CASE WHEN i > 0 THEN list_combinations(li, 2) END AS a FROM t",
        ]);
    }
    for (sql, word) in [
        ("SELECT list_combinations(l, 0) FROM t", "0 elements"),
        ("SELECT list_combinations(l, 5) FROM t", "5 elements"),
        ("SELECT list_combinations(l, id) FROM t", "constant"),
        ("SELECT list_combinations(id, 2) FROM t", "list_combinations"),
    ] {
        for session in [&pair.cpu, &pair.device] {
            let error = run(session, sql).expect_err(sql).to_string();
            assert!(error.contains(word), "{sql}: {error}");
        }
    }
}

#[test]
fn lists_are_zipped() {
    let pair = events();
    let of = |expr: &str| answers(&pair, &format!("SELECT {expr} AS a FROM t ORDER BY id"));
    assert_eq!(of("list_zip(l, w)[2]"), ["{1: 2, 2: NULL}", "NULL", "NULL", "{1: NULL, 2: é}"]);
    assert_eq!(of("array_length(list_zip(l, [k, k, k, k, k]))"), ["5", "5", "5", "5"]);
    assert_eq!(of("array_length(list_zip(l, [k], true))"), ["1", "0", "0", "1"]);
    assert_eq!(of("list_zip(l, [k], false)[3]['1']"), ["3", "NULL", "NULL", "NULL"]);
    assert_eq!(
        of("list_transform(list_zip(l, l), z -> z['1'] + z['2'])"),
        ["[2, 4, 6]", "[]", "NULL", "[8, NULL]"]
    );
    for (at, (rows, seed)) in [(300, 73), (1, 2), (0, 1)].into_iter().enumerate() {
        let pair = crate::nested::pair(rows, seed);
        for (name, _) in share(types().iter().filter(|(name, _)| !["st", "ss"].contains(name)), at)
        {
            let check = |sql: &str| pair.check(&sql.replace("NAME", name));
            check("SELECT id, list_zip(NAME, li) AS a, arrays_zip(NAME) AS b FROM t");
            check(
                "SELECT id, list_zip(NAME, ls, NAME, true) AS a, list_zip(li, NAME, i > 0) AS b FROM t",
            );
        }
    }
    for sql in ["SELECT list_zip(l, id) FROM t", "SELECT list_zip(true) FROM t"] {
        for session in [&pair.cpu, &pair.device] {
            let error = run(session, sql).expect_err(sql).to_string();
            assert!(error.contains("arrays_zip"), "{sql}: {error}");
        }
    }
}

#[test]
fn closures_in_frames_are_lambdas() {
    for (rows, seed) in [(300, 81), (33, 8)] {
        let pair = pair(rows, seed);
        pair.check_frame("transform", |session| {
            let (li, ll) = (|| col("li").list(), || col("ll").list());
            session.table("t")?.select([
                col("id"),
                li().transform(|x| x * 2 + col("i")).alias("a"),
                li().filter(|x| x.clone().gt(0).or(x.is_null())).alias("b"),
                li().reduce(0, |a, x| a + x.fill_null(1)).alias("c"),
                li().any(|x| x.gt(col("i"))).alias("d"),
                ll().eval(|l| l.clone().list().transform(|x| x + l.list().len())).alias("e"),
                li().combinations(2)
                    .list()
                    .transform(|p| p.clone().list().get(0) * p.list().get(1))
                    .alias("f"),
                li().zip("ls").alias("g"),
            ])
        });
        pair.check_frame("filter and group", |session| {
            let frame = session.table("t")?.filter(col("li").list().any(|x| x.gt(1)))?;
            frame.group_by(["s"]).agg([
                col("x").histogram(-3.0, 3.0, 6).alias("h"),
                col("x").histogram_of(-3.0, 3.0, 6, "x").alias("w"),
                col("li").list().filter(|x| x.gt(0)).list().len().sum().alias("n"),
            ])
        });
    }
}
