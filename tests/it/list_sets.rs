//! Functions that treat lists as sets, or change some of their elements.

use crate::lists::LISTS;
use crate::nested::pair;
use crate::tables::share;

#[test]
fn lists_are_sets() {
    for (at, (rows, seed)) in [(300, 51), (1, 2), (0, 1), (2100, 5)].into_iter().enumerate() {
        let pair = pair(rows, seed);
        for (name, _) in share(LISTS, at) {
            let check = |sql: &str| pair.check(&sql.replace("NAME", name));
            check(
                "SELECT a.id, array_union(a.NAME, b.NAME) AS u, array_except(a.NAME, b.NAME) AS e,
                array_intersect(a.NAME, b.NAME) AS i FROM t a JOIN t b ON a.id = b.id + 1",
            );
            check(
                "SELECT id, array_except(NAME, NAME[2:2]) AS a, array_intersect(NAME[1:2], NAME) AS b FROM t",
            );
            check(
                "SELECT id, array_union(NAME, NAME) AS a FROM t WHERE array_length(array_intersect(NAME, NAME)) > 1",
            );
        }
        pair.check(
            "SELECT a.id, array_union(a.lp, b.lp) AS u, array_except(a.lp, b.lp) AS e, array_intersect(a.lp, b.lp) AS i,
            array_union(a.ll, b.ll) AS v FROM t a JOIN t b ON a.id = b.id + 1",
        );
        pair.check(
            "SELECT id, array_union(li, [i, 1]) AS a, array_except([i, id], li) AS b FROM t",
        );
        pair.check("SELECT id, array_intersect(ls, ['b', 'é', NULL, s]) AS a, array_except(ls, ['']) AS b FROM t");
        pair.check("SELECT s, array_union(array_agg(i), array_agg(id % 3))[1] IS NULL AS a FROM t GROUP BY s");
    }
}

#[test]
fn elements_are_removed_and_replaced() {
    for (at, (rows, seed)) in [(300, 53), (1, 3), (0, 1)].into_iter().enumerate() {
        let pair = pair(rows, seed);
        for (name, x) in share(LISTS, at) {
            let check = |sql: &str| pair.check(&sql.replace("NAME", name).replace("NEEDLE", x));
            check(
                "SELECT id, array_remove(NAME, NEEDLE) AS a, array_remove_n(NAME, NEEDLE, 2) AS b,
                array_remove_n(NAME, NAME[1], i) AS c, array_remove(NAME, NAME[-1]) AS d FROM t",
            );
            check(
                "SELECT id, array_replace(NAME, NEEDLE, NAME[1]) AS a, array_replace_n(NAME, NAME[1], NEEDLE, 2) AS b,
                array_replace_all(NAME, NAME[-1], NEEDLE) AS c, array_replace_all(NAME, NEEDLE, NULL) AS d FROM t",
            );
            check(
                "SELECT id, array_replace_all(NAME, NULL, NEEDLE) AS a, array_replace_n(NAME, NAME[2], NAME[1], i) AS b FROM t",
            );
        }
        pair.check("SELECT id, array_remove(ll, [1]) AS a, array_remove_all(ll, []) AS b FROM t");
        pair.check("SELECT id, array_replace_all([s, 'b', s], 'b', s || ' that is longer than it was') AS a FROM t");
        pair.check("SELECT id, CASE WHEN i > 0 THEN array_remove(li, i) ELSE array_replace(li, 1, i) END AS a FROM t");
    }
}

#[test]
fn lists_are_resized_and_taken_by_steps() {
    for (at, (rows, seed)) in [(300, 57), (1, 4), (0, 1)].into_iter().enumerate() {
        let pair = pair(rows, seed);
        for (name, x) in share(LISTS, at) {
            let check = |sql: &str| pair.check(&sql.replace("NAME", name).replace("NEEDLE", x));
            check(
                "SELECT id, array_resize(NAME, 2) AS a, array_resize(NAME, abs(i), NEEDLE) AS b FROM t",
            );
            check(
                "SELECT id, array_resize(NAME, 3, NAME[1]) AS a, array_resize(NAME, 0) AS b FROM t",
            );
            check(
                "SELECT id, NAME[1:4:2] AS a, array_slice(NAME, -1, 1, -1) AS b, array_slice(NAME, i, -1, 2) AS c,
                array_slice(NAME, 4, i, -2) AS d, array_slice(NAME, 0, 9, abs(i) + 1) AS e FROM t",
            );
        }
        pair.check("SELECT id, array_resize(ll, 3, [id]) AS a, array_resize(lp, 4) AS b, lp[-1:1:-1] AS c FROM t");
    }
    let pair = pair(50, 3);
    pair.check_error("SELECT array_resize(li, -1) AS a FROM t");
    pair.check_error("SELECT array_slice(li, 1, 2, i - i) AS a FROM t");
    pair.check("SELECT array_resize(li, CASE WHEN i < 0 THEN NULL ELSE i END) AS a FROM t");
}
