//! Functions and operators of texts, times and lists; values of DuckDB 2.0.1.

use warpframe::ErrorKind;

use super::check_rows;
use crate::differential::{Pair, run};
use crate::tables::Shape;

fn pair() -> Pair {
    Pair::of(Shape::random(50, 96).batches())
}

#[test]
fn patterns_of_like_have_an_escape_character() {
    let pair = pair();
    let rows =
        "(VALUES (1, 'a%b'), (2, 'axb'), (3, 'a_b'), (4, 'a$'), (5, 'a\\b'), (6, NULL)) v(n, s)";
    for (condition, expected) in [
        ("s LIKE 'a$%b' ESCAPE '$'", "1"),
        ("s LIKE 'a#_b' ESCAPE '#'", "3"),
        ("s NOT LIKE 'a$_b' ESCAPE '$'", "1245"),
        ("s LIKE 'a$$' ESCAPE '$'", "4"),
        ("s LIKE 'a\\b' ESCAPE '$'", "5"),
        ("s LIKE 'a$xb' ESCAPE '$'", "2"),
        ("s ILIKE 'A!%%' ESCAPE '!'", "1"),
        ("s LIKE 'a_b' ESCAPE ''", "1235"),
        ("s LIKE 'a\\_b' ESCAPE '\\'", "3"),
    ] {
        let rows_of = |expected: &str| expected.chars().map(String::from).collect::<Vec<_>>();
        let expected = rows_of(expected);
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check_rows(&pair, &format!("SELECT n FROM {rows} WHERE {condition} ORDER BY n"), &expected);
    }
    for (condition, says) in [
        ("s LIKE 'a$' ESCAPE '$'", "ends with its escape character"),
        ("s LIKE 'a' ESCAPE 'xx'", "ESCAPE takes one character, or none, not \"xx\""),
    ] {
        let sql = format!("SELECT n FROM {rows} WHERE {condition}");
        let error = run(&pair.device, &sql).expect_err(&sql);
        assert!(matches!(error.kind(), ErrorKind::Plan { .. }), "{error:?}");
        assert!(error.to_string().contains(says), "{error}");
    }
    let sql = format!("SELECT n FROM {rows} WHERE s LIKE s ESCAPE '$'");
    let error = run(&pair.device, &sql).expect_err(&sql);
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error:?}");
}

#[test]
fn texts_have_characters_and_lists_have_values() {
    let pair = pair();
    check_rows(
        &pair,
        "SELECT unicode(s), ord(s), string_split(s, ''), split(s, 'b') \
         FROM (VALUES (1, 'é'), (2, 'abc'), (3, ''), (4, NULL)) v(n, s) ORDER BY n",
        &["233|233|[é]|[é]", "97|97|[a, b, c]|[a, c]", "-1|-1|[]|[]", "-|-|-|-"],
    );
    check_rows(
        &pair,
        "SELECT n IN l, n NOT IN l, n IN [1, 2], 2 IN l AND true FROM \
         (VALUES (1, [1, 2]), (2, [3]), (3, [NULL, 4]), (NULL, [1]), (4, NULL)) v(n, l)",
        &["1|0|1|1", "0|1|1|0", "0|1|0|0", "-|-|-|0", "-|-|0|-"],
    );
    check_rows(
        &pair,
        "SELECT 2 IN [1, 2], 3 IN [1, 2], 3 NOT IN [1, NULL], 'b' IN ['a', 'b'], 3 IN (1, 3), \
         position('b' IN 'ab')",
        &["1|0|1|1|1|2"],
    );
    pair.check_all(&[
        "SELECT id FROM t WHERE k IN [1, 2, 3] AND id NOT IN [k, w] ORDER BY id",
        "SELECT id, unicode(s), string_split(s, '') FROM t",
    ]);
}

#[test]
fn weeks_have_their_years() {
    let pair = pair();
    check_rows(
        &pair,
        "SELECT yearweek(d), yearweek(arrow_cast(d, 'Timestamp(Second, None)')) FROM \
         (VALUES (DATE '2024-12-30'), (DATE '2021-01-01'), (DATE '0005-03-15'), (NULL)) v(d)",
        &["202501|202501", "202053|202053", "511|511", "-|-"],
    );
    pair.check("SELECT id, yearweek(d) AS a, yearweek(ts) AS b FROM t");
}

#[test]
fn times_are_cut_down_to_many_years() {
    let pair = pair();
    let cut = |of: &str| {
        let part = |part| format!("CAST(CAST(date_trunc('{part}', {of}) AS date) AS varchar)");
        ["decade", "century", "MILLENNIUM"].map(part).join(", ")
    };
    let days =
        "(VALUES (DATE '2024-12-30'), (DATE '2000-01-01'), (DATE '1999-12-31'), (NULL)) v(d)";
    let arrow = |unit: &str| format!("arrow_cast(d, 'Timestamp({unit}, None)')");
    for of in ["d".to_string(), arrow("Microsecond"), arrow("Second")] {
        check_rows(
            &pair,
            &format!("SELECT {} FROM {days}", cut(&of)),
            &[
                "2020-01-01|2000-01-01|2000-01-01",
                "2000-01-01|2000-01-01|2000-01-01",
                "1990-01-01|1900-01-01|1000-01-01",
                "-|-|-",
            ],
        );
    }
    pair.check(
        "SELECT id, date_trunc('decade', d) AS a, date_trunc('century', ts_s) AS b, \
         date_trunc('decade', CAST(ts_ns AS timestamp)) AS c FROM t",
    );
}
