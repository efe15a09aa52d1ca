//! Volatile functions are called once for a row, wherever they stand.

use warpframe::{Executed, Session};

use crate::differential::{Cell, Pair, run, scalar};

fn both(check: impl Fn(&Session)) {
    let pair = Pair::new();
    for session in [&pair.device, &pair.cpu] {
        check(session);
    }
}

/// An integer, or whether a condition holds.
fn count(session: &Session, sql: &str) -> i128 {
    match scalar(session, sql) {
        Cell::Int(number) => number,
        other => panic!("{sql}: {other:?}"),
    }
}

/// Values that one draw cannot have, and two may.
#[test]
fn impossible_values_are_not_drawn() {
    let zero_or_one = "floor(random() * 2)";
    let case = "CASE floor(random() * 2) WHEN 0 THEN 'a' WHEN 1 THEN 'b' ELSE 'c' END";
    both(|session| {
        for condition in [
            format!("{case} = 'c'"),
            format!("nullif({zero_or_one}, 0) = 0"),
            format!("coalesce(nullif({zero_or_one}, 0), -1) = 0"),
            format!("nvl2(nullif({zero_or_one}, 0), 1, 1) = 0"),
            "NOT CASE WHEN random() < 0.5 THEN true ELSE random() < 2 END".into(),
            "ord(if(random() < 0.5, '', 'a')) = 0".into(),
            "regexp_extract(if(random() < 0.5, NULL, 'a'), 'a', 0) = ''".into(),
            "abs(even(floor(random() * 2) - 0.5)) <> 2".into(),
            "yearweek(if(random() < 0.5, DATE '2020-06-01', DATE '2021-06-01')) \
             NOT IN (202023, 202122)"
                .into(),
            "date_diff('month', if(random() < 0.5, DATE '2020-06-01', DATE '2021-01-01'), \
             DATE '2021-01-01') NOT IN (0, 7)"
                .into(),
            "(floor(random() * 2), 1) > (1, 1)".into(),
            "('abc')[1 + CAST(floor(random() * 3) AS INT)] NOT IN ('a', 'b', 'c')".into(),
            "list_transform([1], x -> CASE floor(random() * 2) WHEN 0 THEN 0 WHEN 1 THEN 0 \
             ELSE 1 END)[1] = 1"
                .into(),
            format!("{zero_or_one} + 1 NOT BETWEEN 1 AND 2"),
        ] {
            let sql = format!("SELECT count(*) FROM range(0, 600) WHERE {condition}");
            assert_eq!(count(session, &sql), 0, "{sql}");
            let sql = format!(
                "SELECT count(*) FROM (SELECT {condition} AS c FROM range(0, 600)) WHERE c"
            );
            assert_eq!(count(session, &sql), 0, "{sql}");
            let sql = format!(
                "SELECT count(*) FROM range(0, 60) a(i) JOIN range(0, 10) b(j) ON {condition}"
            );
            assert_eq!(count(session, &sql), 0, "{sql}");
            // The condition of an outer join is the CPU engine's.
            let sql = format!(
                "SELECT count(j) FROM range(0, 60) a(i) LEFT JOIN range(0, 10) b(j) ON {condition}"
            );
            if session.device().is_none() {
                assert_eq!(count(session, &sql), 0, "{sql}");
            }
        }
    });
}

/// The column that a query below draws is one draw above.
#[test]
fn columns_that_are_drawn_below_are_one_draw_above() {
    both(|session| {
        for (expr, of) in [
            ("nullif(r, 0) = 0", "floor(random() * 2)"),
            ("CASE r WHEN 0 THEN false WHEN 1 THEN false ELSE true END", "floor(random() * 2)"),
            ("CASE WHEN r < 0.5 THEN false WHEN r >= 0.5 THEN false ELSE true END", "random()"),
            ("coalesce(nullif(r, 0), -1) = 0", "floor(random() * 2)"),
        ] {
            let sql = format!(
                "SELECT count(*) FROM (SELECT {expr} AS c FROM (SELECT {of} AS r FROM range(0, 600))) \
                 WHERE c"
            );
            assert_eq!(count(session, &sql), 0, "{sql}");
        }
        let sql = "SELECT count(*) FROM (SELECT r BETWEEN 0.4 AND 0.6 AS c \
                   FROM (SELECT random() AS r FROM range(0, 20000))) WHERE c";
        let found = count(session, sql);
        assert!((3600..=4400).contains(&found), "{found}");
    });
}

#[test]
fn ranges_are_as_likely_as_they_are_wide() {
    both(|session| {
        for sql in [
            "SELECT count(*) FROM range(0, 20000) WHERE random() BETWEEN 0.4 AND 0.6",
            "SELECT count(*) FROM range(0, 20000) WHERE random() NOT BETWEEN 0.2 AND 1",
            "SELECT count(*) FROM range(0, 200) a(i) JOIN range(0, 100) b(j) \
             ON random() BETWEEN 0.4 AND 0.6",
            "SELECT count(*) FROM range(0, 20000) \
             WHERE list_transform([random()], x -> x)[1] BETWEEN 0.4 AND 0.6",
            "SELECT count(*) FILTER (WHERE random() BETWEEN 0.4 AND 0.6) FROM range(0, 20000)",
        ] {
            let found = count(session, sql);
            assert!((3600..=4400).contains(&found), "{found}\n  {sql}");
        }
    });
}

/// Below a join or a group there are fewer rows, or more, than the condition is asked for.
#[test]
fn conditions_are_drawn_for_the_rows_that_they_are_asked_for() {
    both(|session| {
        for from in [
            "range(0, 100) a(i) JOIN range(0, 40) b(j) ON random() < 0.5",
            "range(0, 100) a(i), range(0, 40) b(j) WHERE random() < 0.5",
            "range(0, 100) a(i) JOIN (SELECT j, j % 2 AS k FROM range(0, 80) c(j)) b \
             ON i % 2 = k WHERE random() < 0.5",
            "(SELECT i, j FROM range(0, 100) a(i) JOIN range(0, 40) b(j) ON true) \
             WHERE random() < 0.5 AND i >= 0",
        ] {
            let sql = format!("SELECT count(*) FROM {from}");
            let found = count(session, &sql);
            assert!((1750..=2250).contains(&found), "{found}\n  {sql}");
            // All pairs of a row would come or go together.
            for column in ["i", "j"] {
                let sql = format!(
                    "SELECT count(DISTINCT n) FROM (SELECT {column}, count(*) AS n FROM {from} \
                     GROUP BY {column})"
                );
                assert!(count(session, &sql) > 3, "{sql}");
            }
        }
        let sql = "SELECT sum(n) % 100 FROM (SELECT k, count(*) AS n FROM (SELECT i % 50 AS k \
                   FROM range(0, 5000) t(i)) GROUP BY k HAVING random() < 0.9)";
        assert_eq!(count(session, sql), 0, "groups are there whole or not at all");
    });
}

#[test]
fn groups_and_aggregates_have_one_draw_a_row() {
    both(|session| {
        let groups = run(
            session,
            "SELECT coalesce(nullif(floor(random() * 2), 0), -1) AS o, count(*) AS n \
             FROM range(0, 600) GROUP BY ALL ORDER BY o",
        );
        let groups = groups.expect("an answer");
        assert_eq!(groups.column("o").unwrap().to_vec::<f64>().unwrap(), [-1.0, 1.0]);
        // The row whose key is not null has the greatest.
        let sql = "SELECT max_by(i, if(random() < 0.5, NULL, i)) >= 590 FROM range(0, 600) t(i)";
        assert_eq!(scalar(session, sql), Cell::Int(1));
        let sql =
            "SELECT max(random()) OVER () = max(random()) OVER () AS same FROM range(0, 3) LIMIT 1";
        assert_eq!(scalar(session, sql), Cell::Int(0), "two calls are two draws");
        let sql = "SELECT max(random()) = max(random()) AS same FROM range(0, 3)";
        assert_eq!(scalar(session, sql), Cell::Int(0), "two calls are two draws");
    });
}

#[test]
fn parentheses_around_a_query_of_with_leave_it_drawn_once() {
    both(|session| {
        let sql = "WITH c AS ((SELECT random() AS r)) SELECT a.r - b.r FROM c a, c b";
        assert_eq!(scalar(session, sql), Cell::Float(0.0));
        session
            .execute(
                "CREATE VIEW own AS WITH c AS NOT MATERIALIZED (SELECT random() AS r) \
                      SELECT a.r = b.r AS same FROM c a, c b",
            )
            .expect("a view");
        assert_eq!(scalar(session, "SELECT same FROM own"), Cell::Int(0));
    });
}

#[test]
fn update_computes_its_condition_once_for_all_columns() {
    both(|session| {
        let made = "CREATE TABLE t AS SELECT i, 0 AS a, 0 AS b FROM range(0, 600) t(i)";
        session.execute(made).expect("a table");
        let changed = session.execute("UPDATE t SET a = 1, b = 1 WHERE random() < 0.5");
        let Ok(Executed::Changed(changed)) = changed else { panic!("{changed:?}") };
        assert_eq!(count(session, "SELECT count(*) FROM t WHERE a <> b"), 0);
        assert_eq!(count(session, "SELECT sum(a) FROM t"), changed as i128);
        let changed = session.execute("UPDATE t SET a = 2.0, b = a + 1 WHERE random() < 0.5");
        let Ok(Executed::Changed(changed)) = changed else { panic!("{changed:?}") };
        assert_eq!(count(session, "SELECT count(*) FROM t WHERE a = 2"), changed as i128);
        let torn = "SELECT count(*) FROM t WHERE a = 2 AND b NOT IN (1, 2) OR a < 2 AND a <> b";
        assert_eq!(count(session, torn), 0);
        let gone = session.execute("DELETE FROM t WHERE random() BETWEEN 0.2 AND 0.7");
        let Ok(Executed::Changed(gone)) = gone else { panic!("{gone:?}") };
        assert_eq!(count(session, "SELECT count(*) FROM t"), 600 - gone as i128);
    });
}

#[test]
fn update_names_its_table_in_conditions_and_values() {
    both(|session| {
        session.execute("CREATE SCHEMA s").expect("a schema");
        for statement in [
            "CREATE TABLE s.t AS SELECT * FROM (VALUES (1, 10), (2, 20), (3, NULL)) v(a, b)",
            "UPDATE s.t SET b = s.t.a + b WHERE s.t.a = 1",
            "UPDATE s.t AS x SET b = x.a WHERE x.b IS NULL",
            "UPDATE s.t SET b = (SELECT max(o.b) FROM s.t o WHERE o.a <= t.a) + 1 WHERE a = 2",
            "UPDATE s.t SET a = a * 10.0 WHERE b > 5",
        ] {
            session.execute(statement).unwrap_or_else(|error| panic!("{error}\n  {statement}"));
        }
        let found = run(session, "SELECT a, b FROM s.t ORDER BY b").expect("rows");
        assert_eq!(found.column("a").unwrap().to_vec::<i64>().unwrap(), [3, 10, 20]);
        assert_eq!(found.column("b").unwrap().to_vec::<i64>().unwrap(), [3, 11, 21]);
    });
}

/// When this fails, DataFusion has mended what `session/rules/volatile.rs` mends.
#[test]
fn datafusion_still_calls_volatile_functions_twice() {
    use datafusion::prelude::SessionContext;
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let rows = |sql: &str| {
        runtime
            .block_on(async { SessionContext::new().sql(sql).await?.count().await })
            .expect("a query")
    };
    let found = rows("SELECT * FROM generate_series(1, 20000) WHERE random() BETWEEN 0.4 AND 0.6");
    assert!(found > 6000, "{found} of 20,000, of which a fifth is right");
}
