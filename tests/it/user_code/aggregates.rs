//! Aggregates.

use super::*;

const AGGREGATES: [&str; 4] = [
    "CREATE AGGREGATE l2norm(x DOUBLE) RETURNS DOUBLE LANGUAGE CUDA (
         STATE (sum DOUBLE), IDENTITY $$ s.sum = 0; $$, MAP $$ s.sum = x * x; $$,
         COMBINE $$ a.sum += b.sum; $$, FINISH $$ return sqrt(s.sum); $$)",
    // Of one row and of none, and several fields of several types.
    "CREATE AGGREGATE spread(n BIGINT, f DOUBLE) RETURNS DOUBLE LANGUAGE CUDA (
         STATE (least BIGINT, greatest BIGINT, any BOOLEAN, rows INTEGER, sum DOUBLE),
         IDENTITY $$ s.any = false; s.least = 0; s.greatest = 0; s.rows = 0; s.sum = 0; $$,
         MAP $$ s.least = s.greatest = n; s.any = true; s.rows = 1; s.sum = f; $$,
         COMBINE $$
             if (!b.any) return;
             if (!a.any || b.least < a.least) a.least = b.least;
             if (!a.any || b.greatest > a.greatest) a.greatest = b.greatest;
             a.any = true;
             a.rows += b.rows;
             a.sum += b.sum;
         $$,
         FINISH $$
             result_is_null = s.rows == 1;
             return s.greatest - s.least + s.sum / 1024 + s.rows;
         $$)",
    // A polynomial hash: not commutative.
    "CREATE AGGREGATE digest(n BIGINT) RETURNS BIGINT UNSIGNED LANGUAGE CUDA (
         ORDERED, STATE (hash BIGINT UNSIGNED, factor BIGINT UNSIGNED),
         IDENTITY $$ s.hash = 0; s.factor = 1; $$, MAP $$ s.hash = n; s.factor = 31; $$,
         COMBINE $$ a.hash = a.hash * b.factor + b.hash; a.factor *= b.factor; $$, FINISH $$ return s.hash; $$)",
    "CREATE AGGREGATE letters(s VARCHAR) RETURNS BIGINT LANGUAGE CUDA (
         STATE (count BIGINT), IDENTITY 's.count = 0;',
         MAP $$ for (unsigned i = 0; i < s_.size(); i++) s.count++; $$, COMBINE 'a.count += b.count;',
         FINISH 'return s.count;')",
];

fn aggregates() -> Vec<String> {
    // The argument must not have the state's name.
    AGGREGATES
        .iter()
        .map(|text| text.replace("letters(s VARCHAR)", "letters(s_ VARCHAR)"))
        .collect()
}

#[test]
fn users_aggregates_are_as_built_in_ones() {
    let texts = aggregates();
    let pair =
        pair(&texts.iter().map(String::as_str).collect::<Vec<_>>()).and("t", conformance(7000));
    // Sums of eighths are exact, in any order.
    let forms = [
        ("l2norm(f)", "sqrt(sum(f * f))"),
        (
            "spread(i, f)",
            "CASE WHEN count(CASE WHEN f IS NOT NULL THEN i END) > 1 THEN
                 max(CASE WHEN f IS NOT NULL THEN i END) - min(CASE WHEN f IS NOT NULL THEN i END)
                 + sum(CASE WHEN i IS NOT NULL THEN f END) / 1024 + count(CASE WHEN f IS NOT NULL THEN i END) END",
        ),
        ("letters(s)", "CAST(sum(octet_length(s)) AS BIGINT)"),
    ];
    for query in [
        "SELECT <0>, <1>, <2> FROM t",
        "SELECT k, <0>, <1>, <2>, count(*) FROM t GROUP BY k",
        "SELECT id, <0>, <1>, <2> FROM t WHERE id < 300 GROUP BY id",
        "SELECT k, d, <0>, <1> FROM t WHERE id % 3 = 0 GROUP BY k, d",
        "SELECT <0>, <1>, <2> FROM t WHERE id < 0",
        "SELECT k, <0> + 1 AS v FROM t GROUP BY k HAVING <2> > 10",
        "SELECT a.k, <0> FROM t a JOIN (SELECT DISTINCT k AS j FROM t) AS b ON a.k = b.j GROUP BY a.k",
    ] {
        same(&pair, query, &forms);
    }
    let filters = [("l2norm(f) FILTER (WHERE i > 0)", "sqrt(sum(f * f) FILTER (WHERE i > 0))")];
    same(&pair, "SELECT k, <0> FROM t GROUP BY k", &filters);
    let distinct = [(
        "l2norm(DISTINCT f)",
        "(SELECT sqrt(sum(g * g)) FROM (SELECT DISTINCT f AS g FROM t) AS s)",
    )];
    same(&pair, "SELECT <0> AS v FROM t LIMIT 1", &distinct);
    let windows = [("l2norm(f) OVER (PARTITION BY k)", "sqrt(sum(f * f) OVER (PARTITION BY k))")];
    same(&pair, "SELECT id, <0> FROM t", &windows);
    assert!(pair.device.take_fallback_reasons().is_empty());
}

#[test]
fn ordered_aggregates_see_rows_in_their_order() {
    let texts = aggregates();
    let pair = pair(&[&texts[2]]).and("t", conformance(5000));
    let expected = |keep: &dyn Fn(i64) -> bool, up: bool| {
        let mut rows: Vec<i64> = (1..=5000).filter(|n| keep(*n)).collect();
        if !up {
            rows.reverse();
        }
        let values = rows.iter().filter(|n| *n % 7 != 0).map(|n| ((n * 7919) % 400 - 200) as u64);
        Cell::Int(i128::from(
            values.fold(0u64, |hash, value| hash.wrapping_mul(31).wrapping_add(value)),
        ))
    };
    for session in [&pair.device, &pair.cpu] {
        assert_eq!(
            scalar(session, "SELECT digest(i ORDER BY id) FROM t"),
            expected(&|_| true, true)
        );
        assert_eq!(
            scalar(session, "SELECT digest(i ORDER BY id DESC) FROM t"),
            expected(&|_| true, false)
        );
        let rows = Rows::of(
            &run(session, "SELECT k, digest(i ORDER BY id) FROM t GROUP BY k").expect("it runs"),
        )
        .rows;
        assert_eq!(rows.len(), 17);
        for row in rows {
            let Cell::Int(k) = row[0] else { panic!("{row:?}") };
            assert_eq!(row[1], expected(&|n| i128::from(n % 17) == k, true), "{k}");
        }
    }
    assert_eq!(scalar(&pair.device, "SELECT digest(i) FROM t"), expected(&|_| true, true));
}

#[test]
fn wrong_aggregates_are_told_in_their_lines() {
    let session = session(&[]);
    let of = |rest: &str| {
        format!("CREATE AGGREGATE a(x DOUBLE) RETURNS DOUBLE LANGUAGE CUDA (\n{rest})")
    };
    let whole = "STATE (sum DOUBLE), IDENTITY 's.sum = 0;',\nMAP 's.sum = x;',\nCOMBINE 'a.sum += b.sum;',\nFINISH 'return s.sum;'";
    create(&session, &of(whole));
    for (text, at, said) in [
        (
            of(&whole.replace("a.sum += b.sum", "a.sum += c.sum"))
                .replace("CREATE", "CREATE OR REPLACE"),
            (4, 19),
            "c",
        ),
        (
            of(&whole.replace("return s.sum;", "")).replace("CREATE", "CREATE OR REPLACE"),
            (5, 9),
            "return",
        ),
        (
            of(&whole.replace("s.sum = x", "s.total = x")).replace("CREATE", "CREATE OR REPLACE"),
            (3, 8),
            "total",
        ),
        (of(whole), (1, 18), "OR REPLACE"),
        (
            of(&whole.replace(",\nFINISH 'return s.sum;'", "")).replace(" a(", " b("),
            (1, 18),
            "has no FINISH",
        ),
        (
            of(&whole.replace("STATE (sum DOUBLE), ", "")).replace(" a(", " b("),
            (1, 18),
            "fields of its state",
        ),
        (of(&format!("{whole}, ORDERED, ORDERED")), (5, 34), "ORDERED was said before"),
        (of(&whole.replace("MAP", "MAPS")), (3, 1), "found MAPS"),
        (
            of(&whole.replace("sum DOUBLE", "sum VARCHAR")).replace(" a(", " b("),
            (1, 18),
            "numbers only",
        ),
    ] {
        let error = refused(&session, &text);
        assert!(error.to_string().contains(said), "{text}: {error}");
        assert_eq!(error.location().map(|(line, _)| line), Some(at.0), "{text}: {error}");
        assert!(
            error.location() == Some(at) || at == (5, 9),
            "{text}: {:?} {error}",
            error.location()
        );
    }
    assert_eq!(scalar(&session, "SELECT a(column1) FROM (VALUES (1.5), (2.0))"), Cell::Float(3.5));
    assert_eq!(session.function_names(), ["a"]);
    session.deregister_function("a").expect("it is there");
    assert!(session.sql("SELECT a(1.5)").is_err());
}
