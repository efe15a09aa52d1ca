//! Aliases that are named beside their definition.

use super::{check_rows, texts_and_lists};
use crate::differential::run;

#[test]
fn aliases_are_named_beside_their_definition() {
    let pair = texts_and_lists();
    check_rows(
        &pair,
        "SELECT k, a + 1 AS q, q * 2 AS r, r - q AS u FROM t ORDER BY k",
        &["1|3|6|3", "2|4|8|4", "3|-|-|-", "4|-6|-12|-6"],
    );
    check_rows(
        &pair,
        "SELECT k, a + 1 AS b, b * 2 AS c FROM t ORDER BY k",
        &["1|3|20", "2|4|40", "3|-|-", "4|-6|6"],
    );
    check_rows(&pair, "SELECT k, a AS q FROM t WHERE q > 0 AND q < 3 ORDER BY k", &["1|2"]);
    check_rows(
        &pair,
        "SELECT a AS q, sum(b) AS n, n + q AS w FROM t GROUP BY q HAVING n > 5 ORDER BY w",
        &["2|10|12", "3|20|23"],
    );
    check_rows(
        &pair,
        "SELECT k, row_number() OVER (ORDER BY k DESC) AS rn, rn * 10 AS z FROM t QUALIFY z > 20 ORDER BY k",
        &["1|4|40", "2|3|30"],
    );
    check_rows(&pair, "SELECT a AS q, a + 1 AS p, q + p AS z, p FROM t WHERE k = 1", &["2|3|5|3"]);
    check_rows(
        &pair,
        "SELECT k AS q, list_transform([1, 2], q -> q + 1) AS w, list_transform([1, 2], e -> e + q) AS v FROM t WHERE k = 2",
        &["2|[2, 3]|[3, 4]"],
    );
    check_rows(
        &pair,
        "SELECT z FROM (SELECT k AS y, y * 2 AS z FROM t WHERE y > 1) ORDER BY z",
        &["4", "6", "8"],
    );
    check_rows(
        &pair,
        "SELECT t.k AS y, y + u.k AS w FROM t JOIN t u USING (k) WHERE w > 4 ORDER BY w",
        &["3|6", "4|8"],
    );
    check_rows(
        &pair,
        "WITH c AS (SELECT k AS y, y + 1 AS z FROM t) SELECT z AS v, v + y AS w FROM c ORDER BY w",
        &["2|3", "3|5", "4|7", "5|9"],
    );
    check_rows(&pair, "SELECT 2 AS y, y * 3 AS z", &["2|6"]);
    let found = run(&pair.device, "SELECT a AS q, q + 1, q FROM t").expect("rows");
    assert_eq!(found.column_names(), ["q", "q + 1", "q"]);
}

#[test]
fn an_alias_is_refused_where_it_would_be_another_value() {
    let pair = texts_and_lists();
    for (sql, says) in [
        ("SELECT random() AS r, r - r AS z FROM t", "r is an alias of what is another value"),
        ("SELECT q + 1 AS z, a AS q FROM t", "q"),
        ("SELECT a AS q, t.q FROM t", "q"),
    ] {
        for session in [&pair.device, &pair.cpu] {
            let error = run(session, sql).expect_err(sql).to_string();
            assert!(error.contains(says), "{sql}: {error}");
        }
    }
    // Names of a query within are of its own tables.
    pair.check("SELECT k AS q, (SELECT max(q) FROM (SELECT a AS q FROM t) AS u) AS m FROM t");
}
