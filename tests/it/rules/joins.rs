//! Joins by IS NOT DISTINCT FROM beside equalities.

use super::{check, with_tables};

#[test]
fn equalities_are_no_keys_of_null_safe_joins() {
    let pair = with_tables(&[
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, NULL), (NULL, 2), (3, 3), (4, 4)) v(a, c)",
        "CREATE TABLE u AS SELECT * FROM (VALUES (1, NULL, 7), (NULL, 2, 8), (3, 3, 9)) v(a, c, b)",
    ]);
    for join in ["JOIN", "LEFT JOIN", "FULL JOIN"] {
        check(
            &pair,
            &format!(
                "SELECT t.a, u.b FROM t {join} u ON t.a IS NOT DISTINCT FROM u.a WHERE t.c = u.c"
            ),
            "-|8 / 3|9",
        );
    }
    check(
        &pair,
        "SELECT t.a, u.b FROM t, u WHERE t.a IS NOT DISTINCT FROM u.a AND t.c = u.c",
        "-|8 / 3|9",
    );
    // Of several joins each keeps its own.
    check(
        &pair,
        "SELECT t.a, x.b, y.b FROM t JOIN u x ON t.a IS NOT DISTINCT FROM x.a JOIN u y ON t.a = y.a",
        "1|7|7 / 3|9|9",
    );
    check(
        &pair,
        "SELECT t.a, x.b, y.b FROM t JOIN u y ON t.a = y.a JOIN u x ON t.c IS NOT DISTINCT FROM x.c",
        "1|7|7 / 3|9|9",
    );
    check(
        &pair,
        "SELECT count(*) FROM t JOIN u x ON t.a IS NOT DISTINCT FROM x.a JOIN u y ON t.a IS NOT DISTINCT FROM y.a WHERE t.c = y.c",
        "2",
    );
    check(
        &pair,
        "SELECT t.a FROM t LEFT JOIN u ON t.a IS NOT DISTINCT FROM u.a WHERE u.b IS NULL",
        "4",
    );
}
