//! Strings that are made: their characters lie in memory that a kernel takes as it needs it.

use std::sync::Arc;

use warpframe::ErrorKind;
use warpframe::arrow::array::*;

use crate::differential::{Agreement, Cell, Pair, Rows, builder, run};
use crate::tables::{Batches, Shape, Values, columns};

#[test]
fn strings_made_in_a_projection() {
    let base = Shape::random(2500, 61);
    for shape in [
        base,
        Shape { rows: 0, ..base },
        Shape { rows: 33, batches: Batches::Sliced, ..base },
        Shape { values: Values::AllNull, rows: 300, ..base },
    ] {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        pair.check(
            "SELECT id, s || sl AS a, concat(s, '-', sv, NULL, sd) AS b, replace(sl, 'twelve', 'the number of') AS c,
             lpad(sv, 14, 'é.') AS d, rpad(sd, 9) AS e, reverse(sl) AS f, repeat(s, 3) AS g, sd || sd AS h FROM t ORDER BY id",
        );
        pair.check(
            "SELECT id, 'a long constant before ' || sv || s AS a FROM t WHERE sl || s LIKE '%e%1%' ORDER BY id",
        );
    }
}

#[test]
fn strings_that_outgrow_the_memory_for_characters_are_made_again() {
    let pair = Pair::of(Shape::random(3000, 62).batches());
    pair.check_all(&[
        "SELECT id, repeat(s, 40) AS a, repeat(sl || s, 5) AS b FROM t ORDER BY id",
        "SELECT id, repeat(repeat(s, 9), 9) AS a FROM t WHERE octet_length(repeat(sl, 30)) > 300 ORDER BY id",
        "SELECT sum(octet_length(repeat(sv, 60))), count(*) FROM t",
        "SELECT k, sum(length(repeat(sl, 60))), max(k2) FILTER (WHERE repeat(s, 50) LIKE '%twice%twice%') FROM t GROUP BY k",
    ]);
}

#[test]
fn strings_made_are_keys_arguments_and_results() {
    let pair =
        Pair::of(Shape::random(2500, 63).batches()).and("u", Shape::random(200, 64).batches());
    pair.check_all(&[
        "SELECT s || k AS key, count(*), min(sl || s), max(reverse(sv)) FROM (SELECT s, sl, sv, CASE WHEN k > 3 THEN 'large' ELSE 'small number' END AS k FROM t) GROUP BY s || k",
        "SELECT DISTINCT replace(s, 'e', 'ee') AS a FROM t",
        "SELECT id, reverse(s) AS a FROM t ORDER BY reverse(s) || 'x', id",
        "SELECT t.id, u.id AS other FROM t JOIN u ON reverse(t.s) = reverse(u.s) AND t.k = u.k",
        "SELECT count(DISTINCT s || sl), count(DISTINCT s || 'x'), first_value(s || sl ORDER BY id) FROM t",
        "SELECT lpad(s, 20, 'ab') AS a FROM t UNION ALL SELECT u.s || u.sl FROM u",
        "SELECT CASE WHEN k > 3 THEN s || sl WHEN k > 1 THEN repeat(s, 4) ELSE 'none' END AS a FROM t",
    ]);
}

#[test]
fn cases_of_characters() {
    let pair = Pair::of(Shape::random(2500, 65).batches());
    // The dictionaries of s and sd have entries beyond ASCII, which the host knows how to change.
    pair.check("SELECT id, upper(s) AS a, lower(sd) AS b, upper(s || 'ß') AS c FROM t ORDER BY id");
    pair.check(
        "SELECT upper(s) AS u, count(*) FROM t WHERE lower(sd) LIKE '%é%' GROUP BY upper(s)",
    );
    let plain = "CASE WHEN octet_length(sv) = length(sv) THEN sv END";
    pair.check(&format!(
        "SELECT id, upper({plain}) AS a, lower(upper({plain})) AS b FROM t ORDER BY id"
    ));
}

#[test]
fn cases_beyond_ascii_in_plain_strings_are_left_to_the_cpu() {
    let table = |last: &str| -> Vec<(&str, ArrayRef)> {
        let text = |i: usize| if i == 2999 { last.to_string() } else { format!("Text number {i}") };
        vec![("s", Arc::new(StringArray::from_iter_values((0..3000).map(text))))]
    };
    let sql = "SELECT upper(s) AS u, lower(s) AS l FROM t";
    Pair::of(columns(table("plain"))).check(sql);
    let strict = Pair::of(columns(table("straße Σ")));
    assert_eq!(strict.agreement(sql), Agreement::Unsupported);
    let error = run(&strict.device, sql).expect_err("not ASCII");
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error:?}");

    let pair = Pair::with(builder().strict(false)).and("t", columns(table("straße Σ")));
    let before = pair.gpu().counters().fallbacks;
    let (expected, found) =
        (run(&pair.cpu, sql).expect("it runs"), run(&pair.device, sql).expect("it runs"));
    assert!(pair.gpu().counters().fallbacks > before);
    pair.rows_agree(&expected, &found, sql);
}

#[test]
fn strings_of_more_than_two_gigabytes_are_an_error() {
    let pair = Pair::of(Shape::random(40, 66).batches());
    for expression in [
        "repeat(repeat(sl, 100000), 100000)",
        "repeat(sl, 9223372036854775807)",
        "lpad(sl, 3000000000)",
    ] {
        let sql = format!("SELECT {expression} AS e FROM t");
        let error = run(&pair.device, &sql).expect_err("there is no such string");
        assert!(matches!(error.kind(), ErrorKind::Arithmetic { .. }), "{expression}: {error:?}");
    }
    pair.check("SELECT id, s || sl AS a FROM t ORDER BY id");
}

/// In batches of less, and in one.
#[test]
#[ignore = "takes 12 GB"]
fn columns_of_more_than_two_gib_of_characters() {
    const LENGTH: usize = 90_000;
    let text = |row: usize| {
        let filler = char::from(b'a' + (row % 23) as u8).to_string().repeat(LENGTH - 14);
        format!("{:06}{filler}{:08}", row % 1000, row * 7919 % 100_000)
    };
    let rows = 25_000;
    let ids = |rows: std::ops::Range<usize>| {
        Arc::new(Int64Array::from_iter_values(rows.map(|row| row as i64))) as ArrayRef
    };
    let parts = (0..5).map(|part| part * rows / 5..(part + 1) * rows / 5);
    let several = parts.flat_map(|part| {
        let texts = StringArray::from_iter_values(part.clone().map(text));
        columns(vec![("id", ids(part)), ("s", Arc::new(texts))])
    });
    let several: Vec<_> = several.collect();
    let mut whole = LargeStringBuilder::with_capacity(rows, rows * LENGTH);
    (0..rows).for_each(|row| whole.append_value(text(row)));
    let whole = columns(vec![("id", ids(0..rows)), ("s", Arc::new(whole.finish()))]);
    for batches in [several, whole] {
        let bytes: usize =
            batches.iter().map(|batch| batch.column(1).get_buffer_memory_size()).sum();
        assert!(bytes > 2 << 30, "{bytes}");
        let pair = Pair::of(batches);
        for sql in [
            "SELECT count(*), sum(octet_length(s)), sum(CAST(right(s, 8) AS bigint)) FROM t",
            "SELECT id, right(s, 12) AS r FROM t WHERE ends_with(s, '00007919') OR s LIKE '00099%9' ORDER BY id",
            "SELECT id FROM t ORDER BY CAST(left(s, 6) AS int) DESC, id DESC LIMIT 50",
            "SELECT left(s, 7) AS k, count(*) AS n, max(id) AS m FROM t GROUP BY left(s, 7)",
            "SELECT id, s FROM t WHERE id % 5003 = 7 ORDER BY id",
            "SELECT count(DISTINCT s) FROM t WHERE id % 9 < 2",
        ] {
            pair.check(sql);
        }
    }
}

#[test]
fn strings_of_more_characters_than_16_bits_count() {
    let pair = Pair::of(Shape::random(6, 77).batches());
    pair.check_all(&[
        "SELECT id, levenshtein(repeat('a', 70000), s) AS a, levenshtein(s, repeat('é', 65536)) AS b FROM t ORDER BY id",
        "SELECT id, levenshtein(repeat('a', 66000) || s, sd || repeat('a', 100)) AS a FROM t ORDER BY id",
        "SELECT levenshtein(repeat('ab', 40000), repeat('b', 200)) AS a FROM t WHERE id < 2",
        "SELECT id, strpos(repeat('a', 70000) || s, s) AS a, find_in_set(s, repeat('a,', 70000) || s) AS b FROM t ORDER BY id",
        "SELECT id, split_part(repeat('a,', 70000) || s, ',', 70001) AS a, substr(repeat('é', 70000) || s, 70001, 3) AS b FROM t ORDER BY id",
    ]);
    let sql = "SELECT levenshtein(repeat('a', 70000), 'b' || id) AS a FROM t WHERE id < 5";
    for session in [&pair.cpu, &pair.device] {
        assert!(
            Rows::of(&run(session, sql).expect("it runs"))
                .rows
                .iter()
                .all(|row| row[0] == Cell::Int(70000))
        );
    }
}

#[test]
fn lengths_may_be_negative_or_too_great() {
    let pair = Pair::of(Shape::random(40, 78).batches());
    pair.check_all(&[
        "SELECT id, lpad(s, id - 9) AS a, rpad(s, id - 9, sv) AS b, lpad(s, -id, 'é') AS c FROM t ORDER BY id",
        "SELECT id, repeat(s, -id) AS a, left(s, i64) AS b, right(s, i64) AS c, split_part(s, 'e', id + 1) AS d FROM t \
         ORDER BY id",
        "SELECT left(s, -9223372036854775807 - 1) AS a, right(s, 9223372036854775807) AS b, \
         substr(s, 9223372036854775807) AS c, substr(s, 2, 9223372036854775807) AS d, \
         overlay(s PLACING 'Q' FROM 9223372036854775807 FOR 9223372036854775807) AS e FROM t",
    ]);
    for call in [
        "lpad(s, id + 3000000000)",
        "rpad(s, id + 9223372036854775000, 'x')",
        "chr(id + 1114112)",
        "chr(-1 - id)",
    ] {
        pair.check_error(&format!("SELECT {call} AS a FROM t"));
    }
}
