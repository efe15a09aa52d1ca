//! `COLUMNS(…)`, `* RENAME (…)` and `* LIKE`: the device runs what they are written out as, and the
//! names are right.

use warpframe::ErrorKind;

use crate::differential::{Pair, run};
use crate::tables::Shape;

fn pair() -> Pair {
    Pair::new().and("t", Shape::random(500, 61).batches()).and("u", Shape::random(40, 62).batches())
}

fn names(pair: &Pair, sql: &str) -> Vec<String> {
    run(&pair.device, sql).unwrap_or_else(|error| panic!("{sql}: {error}")).column_names()
}

#[test]
fn columns_by_name_run_on_the_device() {
    let pair = pair();
    pair.check_all(&[
        "SELECT id, * EXCLUDE (s, sv, sl) RENAME (k AS key) FROM t WHERE k > 1 ORDER BY w, id",
        "SELECT k, sum(COLUMNS('^(w|spread)$')) FROM t GROUP BY k ORDER BY k",
        "SELECT id, COLUMNS('^(k|w)$') * 2 + COLUMNS('^(k|w)$') FROM t ORDER BY id",
        "SELECT id FROM t WHERE COLUMNS(['k', 'w']) > 2 ORDER BY id",
        "SELECT t.id, u.* RENAME (id AS other) FROM t JOIN u USING (id) ORDER BY t.id",
        "SELECT id, greatest(*COLUMNS(['k', 'w'])) AS g FROM t ORDER BY id",
        "SELECT id, sum(COLUMNS(c -> c = 'w')) OVER (PARTITION BY k ORDER BY id) FROM t ORDER BY id",
        "SELECT max(COLUMNS('^k$')), min(COLUMNS('^k$')) FROM (SELECT * RENAME (w AS k, k AS w) FROM t)",
        "SELECT id FROM t WHERE k = (SELECT max(COLUMNS('^k$')) FROM u) ORDER BY id",
        "SELECT * LIKE 'k' FROM t WHERE w > 1 ORDER BY ALL",
    ]);
}

#[test]
fn names_are_those_of_the_columns_even_where_they_come_twice() {
    let pair = pair();
    let found = |sql| names(&pair, sql);
    assert_eq!(
        found("SELECT min(COLUMNS(['k', 'w'])), max(COLUMNS(['k', 'w'])) FROM t"),
        ["k", "w", "k", "w"]
    );
    assert_eq!(found("SELECT COLUMNS('^k$'), COLUMNS('^k$') FROM t"), ["k", "k"]);
    assert_eq!(found("SELECT max(COLUMNS('^(k|w)$')) AS 'most \\1' FROM t"), ["most k", "most w"]);
    assert_eq!(found("SELECT * LIKE 'w' FROM t"), ["w"]);
    // Case counts, and the pattern may be found anywhere.
    let error =
        run(&pair.device, "SELECT COLUMNS('SPREAD') FROM t").expect_err("there is no such column");
    assert!(error.to_string().contains("known: id"), "{error}");
    assert_eq!(found("SELECT COLUMNS('prea') FROM t"), ["spread"]);
}

/// A table that is made anew has other columns: a text that is kept is planned again.
#[test]
fn a_kept_text_follows_its_tables_columns() {
    let pair = pair();
    let sql = "SELECT sum(COLUMNS('^x')) FROM n";
    for session in [&pair.cpu, &pair.device] {
        for columns in ["x1", "x1, x2", "x2, x3, y"] {
            let values: Vec<String> = columns.split(", ").map(|_| "1".to_string()).collect();
            let made = format!(
                "CREATE OR REPLACE TABLE n AS SELECT * FROM (VALUES ({})) v({columns})",
                values.join(", ")
            );
            session.execute(&made).expect("a table");
            let expected: Vec<&str> =
                columns.split(", ").filter(|name| name.starts_with('x')).collect();
            for _ in 0..2 {
                assert_eq!(run(session, sql).expect("rows").column_names(), expected);
            }
        }
    }
}

/// `NOT (a AND b)` is not `NOT a AND NOT b`: statements that change rows do not take what stands
/// for several.
#[test]
fn conditions_of_changes_have_one_meaning() {
    let pair = pair();
    for session in [&pair.cpu, &pair.device] {
        session.execute("CREATE TABLE c AS SELECT id, k, w FROM t").expect("a table");
        for sql in [
            "DELETE FROM c WHERE COLUMNS(['k', 'w']) > 1",
            "UPDATE c SET k = 0 WHERE COLUMNS(['k', 'w']) > 1",
            "UPDATE c SET k = COLUMNS(['k', 'w'])",
        ] {
            let error = session.execute(sql).expect_err(sql);
            assert!(
                matches!(error.kind(), ErrorKind::Plan { .. }) && error.location().is_some(),
                "{sql}: {error}"
            );
        }
        assert_eq!(run(session, "SELECT * FROM c").expect("rows").num_rows(), 500);
        // In a query within they mean what they do everywhere.
        let sql = "DELETE FROM c WHERE id IN (SELECT id FROM t WHERE COLUMNS(['k', 'w']) > 1)";
        let gone = run(session, "SELECT id FROM t WHERE k > 1 AND w > 1").expect("rows").num_rows();
        let warpframe::Executed::Changed(changed) = session.execute(sql).expect("a change") else {
            panic!("{sql}")
        };
        assert_eq!(changed, gone);
    }
}
