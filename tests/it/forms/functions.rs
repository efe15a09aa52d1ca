//! Functions by the names that they have in DuckDB.

use warpframe::ErrorKind;

use super::{check_rows, rows_on, texts_and_lists};
use crate::differential::{Pair, builder, run};
use crate::tables::Shape;

#[test]
fn functions_depend_on_types() {
    let pair = texts_and_lists();
    check_rows(
        &pair,
        "SELECT typeof(a), typeof(s), typeof(x), typeof(d), typeof(ts), typeof(l), typeof(m), \
         typeof(a > 1), typeof({'a': k}), typeof(NULL), typeof(l[1]) FROM t WHERE k = 3",
        &["INTEGER|VARCHAR|DOUBLE|DATE|TIMESTAMP|INTEGER[]|DECIMAL(5,2)|BOOLEAN|\
           STRUCT(a INTEGER)|\"NULL\"|INTEGER"],
    );
    check_rows(
        &pair,
        "SELECT len(s), len(l), len(l) + 1, hex(a), hex(b) FROM t ORDER BY k",
        &["3|4|5|2|A", "3|0|1|3|14", "-|-|-|-|-", "0|3|4|FFFFFFFFFFFFFFF9|3"],
    );
    check_rows(
        &pair,
        "SELECT epoch_ms(ts), epoch_us(d), epoch_ns(ts), epoch_ms(epoch_ms(k * 1000)) FROM t ORDER BY k",
        &[
            "1706695201250|1706659200000000|1706695201250000000|1000",
            "0|-86400000000|-1000|2000",
            "-|-|-|3000",
            "1582934400000|1582934400000000|1582934400000000000|4000",
        ],
    );
    check_rows(
        &pair,
        "SELECT strftime(d, '%d/%m/%y'), strftime(ts, '%-d %B %Y %H:%M:%S.%f'), strftime('%a %j %x', d), strftime(ts, '%I %p %g %X'), strftime(d, '%H:%M') FROM t ORDER BY k",
        &[
            "31/01/24|31 January 2024 10:00:01.250000|Wed 031 2024-01-31|10 AM 250 10:00:01|00:00",
            "31/12/69|31 December 1969 23:59:59.999999|Wed 365 1969-12-31|11 PM 999 23:59:59|00:00",
            "-|-|-|-|-",
            "29/02/20|29 February 2020 00:00:00.000000|Sat 060 2020-02-29|12 AM 000 00:00:00|00:00",
        ],
    );
    check_rows(
        &pair,
        "SELECT strftime(make_timestamp(2024, k, 5, 7, 8, 1.25), '%c.%f'), epoch_us(make_timestamp(k * 1000000)) FROM t ORDER BY k",
        &[
            "2024-01-05 07:08:01.250000|1000000",
            "2024-02-05 07:08:01.250000|2000000",
            "2024-03-05 07:08:01.250000|3000000",
            "2024-04-05 07:08:01.250000|4000000",
        ],
    );
    check_rows(
        &pair,
        "SELECT CAST(time_bucket(INTERVAL '1 month', d) AS VARCHAR), CAST(time_bucket(INTERVAL '1 week', d) AS VARCHAR), CAST(time_bucket(INTERVAL '2 days', d, DATE '2020-01-01') AS VARCHAR), CAST(time_bucket(INTERVAL '1 year', d) AS VARCHAR) FROM t ORDER BY k",
        &[
            "2024-01-01|2024-01-29|2024-01-30|2024-01-01",
            "1969-12-01|1969-12-29|1969-12-30|1969-01-01",
            "-|-|-|-",
            "2020-02-01|2020-02-24|2020-02-28|2020-01-01",
        ],
    );
    check_rows(
        &pair,
        "SELECT strftime(time_bucket(INTERVAL '15 minutes', ts), '%c'), strftime(time_bucket(INTERVAL '5 days', ts), '%c'), strftime(time_bucket(INTERVAL '7 hours', ts), '%c'), strftime(time_bucket(INTERVAL '3 months', ts), '%c') FROM t ORDER BY k",
        &[
            "2024-01-31 10:00:00|2024-01-27 00:00:00|2024-01-31 08:00:00|2024-01-01 00:00:00",
            "1969-12-31 23:45:00|1969-12-31 00:00:00|1969-12-31 22:00:00|1969-10-01 00:00:00",
            "-|-|-|-",
            "2020-02-29 00:00:00|2020-02-27 00:00:00|2020-02-28 23:00:00|2020-01-01 00:00:00",
        ],
    );
    check_rows(
        &pair,
        "SELECT date_sub('month', d, DATE '2024-03-30'), date_sub('day', ts, TIMESTAMP '2024-03-30 09:00:00'), date_sub('year', d, DATE '2024-01-30'), date_sub('hour', TIMESTAMP '2024-03-30 09:00:00', ts), date_sub('week', d, DATE '2024-03-30'), date_sub('quarter', DATE '2024-03-30', d), date_sub('month', ts, TIMESTAMP '2020-02-29 00:00:00') FROM t ORDER BY k",
        &[
            "1|58|0|-1414|8|0|-47",
            "650|19812|54|-475497|2830|-216|601",
            "-|-|-|-|-|-|-",
            "49|1491|3|-35793|213|-16|0",
        ],
    );
    check_rows(
        &pair,
        "SELECT printf('%5d|%-5s|%05d', a, s, b), format('{}-{}|{:>4}|{:5}|', a, s, a, s), printf('%d%% %s', k, d), format('{} {}', a > 1, d), printf('%04d|%.2s', a, s) FROM t ORDER BY k",
        &[
            "    2|abc  |00010|2-abc|   2|abc  ||1% 2024-01-31|true 2024-01-31|0002|ab",
            "    3|déf  |00020|3-déf|   3|déf  ||2% 1969-12-31|true 1969-12-31|0003|dé",
            "-|-|-|-|-",
            "   -7|     |00003|-7-|  -7|     ||4% 2020-02-29|false 2020-02-29|-007|",
        ],
    );
    check_rows(
        &pair,
        "SELECT epoch_ms(make_timestamp(k * 500 - 1500)) FROM t ORDER BY k",
        &["-1", "-1", "0", "1"],
    );
    let pair = pair.and("r", Shape::random(3000, 98).batches());
    pair.check_all(&[
        "SELECT id, len(s), hex(k), hex(id), epoch_ms(ts), epoch_us(d) FROM r",
        "SELECT id, strftime(ts, '%Y-%m-%d %H:%M:%S.%f'), strftime(d, '%U %W %V %G') FROM r",
        "SELECT id, time_bucket(INTERVAL '1 month', d), time_bucket(INTERVAL '90 minutes', ts) FROM r",
        "SELECT id, date_sub('month', d, DATE '2001-02-28'), date_sub('hour', ts, d) FROM r",
        "SELECT id, printf('%3d-%s', k, s), format('{:<9}|{:03d}', s, k) FROM r",
        "SELECT len(s) AS n, count(*) FROM r GROUP BY len(s) HAVING len(s) > 2 ORDER BY len(s)",
        "SELECT list_transform([s, 'x'], e -> len(e)) FROM r",
        "SELECT id FROM r WHERE len(s) > 3 AND strftime(d, '%m') = '01'",
        "SELECT strftime(DATE '2024-02-03', '%d.%m.%Y'), len('abc'), typeof(1), hex(255)",
    ]);
    for (sql, says) in [
        ("SELECT len(a) FROM t", "len takes a string or a list, not (INTEGER)"),
        ("SELECT len(s, 1) FROM t", "len takes a string or a list"),
        ("SELECT hex(x) FROM t", "hex takes"),
        ("SELECT strftime(d, s) FROM t", "a constant pattern"),
        ("SELECT strftime(d, '%e') FROM t", "strftime: %e in"),
        ("SELECT printf('%x', a) FROM t", "printf: %x is not known"),
        ("SELECT printf('%d', s) FROM t", "printf: %d of a VARCHAR is not known"),
        ("SELECT printf('%s', a) FROM t", "printf: %s of a INTEGER is not known"),
        ("SELECT format('{} {}', a) FROM t", "there is no value for {}"),
        ("SELECT time_bucket(INTERVAL '1 month 1 day', d) FROM t", "time_bucket takes a width"),
        ("SELECT date_sub('fortnight', d, d) FROM t", "date_sub takes a unit"),
        ("SELECT make_timestamp(2024, 13, 1, 0, 0, 0) FROM t", "2024-13-01"),
        ("SELECT make_timestamp(2024, 1, 1, 25, 0, 0) FROM t", "25:00:00"),
        ("SELECT make_timestamp(2024, 1, k, 0, 60, 0) FROM t", ":60:00"),
    ] {
        let error = run(&pair.device, sql).expect_err(sql).to_string();
        assert!(error.contains(says), "{sql}: {error}");
    }
}

#[test]
fn functions_of_the_host_are_those_of_duckdb() {
    let pair = texts_and_lists();
    let check_rows = |pair: &Pair, sql: &str, expected: &[&str]| {
        assert_eq!(rows_on(&pair.cpu, sql), expected, "{sql}");
        let error = run(&pair.device, sql).expect_err(sql);
        assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{sql}: {error:?}");
    };
    check_rows(
        &pair,
        "SELECT hex(s), md5(s), hex('é') FROM t ORDER BY k",
        &[
            "616263|900150983cd24fb0d6963f7d28e17f72|C3A9",
            "64C3A966|38d9179126c12032e466e629322e99b8|C3A9",
            "-|-|C3A9",
            "|d41d8cd98f00b204e9800998ecf8427e|C3A9",
        ],
    );
    check_rows(
        &pair,
        "SELECT sha256(s), sha256(s::BLOB) = sha256(s), bin(s) IS NULL FROM t WHERE k <> 2 ORDER BY k",
        &[
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad|1|0",
            "-|-|1",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855|1|0",
        ],
    );
    check_rows(
        &pair,
        "SELECT printf('%.2f|%8.1f', x, x), format('{} {:.3f}', x, m) FROM t ORDER BY k",
        &[
            "1.50|     1.5|1.5 1.250",
            "-2.50|    -2.5|-2.5 -3.100",
            "-|-",
            "0.10|     0.1|0.1 0.000",
        ],
    );
    check_rows(
        &pair,
        "SELECT epoch_us(strptime(strftime(ts, '%d.%m.%Y %H:%M:%S'), '%d.%m.%Y %H:%M:%S')), epoch_us(try_strptime(s, '%Y')) FROM t ORDER BY k",
        &["1706695201000000|-", "-1000000|-", "-|-", "1582934400000000|-"],
    );
    check_rows(
        &pair,
        "SELECT epoch_us(TIMESTAMP '2000-01-01 00:00:00' + age(ts, d)), \
         epoch_us(TIMESTAMP '2000-01-01 00:00:00' + age(d, DATE '2024-03-30')) FROM t ORDER BY k",
        &[
            "946720801250000|941414400000000",
            "946771199999999|-765244800000000",
            "-|-",
            "946684800000000|817689600000000",
        ],
    );
    for (sql, says) in [
        ("SELECT age(s, d) FROM t", "age takes two dates or timestamps"),
        ("SELECT strptime(s, '%Y') FROM t", "\"abc\" is not of the form \"%Y\""),
        ("SELECT strptime(s, '%e') FROM t", "%e"),
        ("SELECT strptime(s, s) FROM t", "a constant pattern"),
    ] {
        let error = run(&pair.cpu, sql).expect_err(sql).to_string();
        assert!(error.contains(says), "{sql}: {error}");
    }
}

#[test]
fn aggregates_are_of_lists_of_values() {
    let pair = texts_and_lists();
    check_rows(
        &pair,
        "SELECT max(a, 2), min(x, 2), max(s, 1), min(a, 10), max(a, 2) FILTER (b > 5), max(a, 1) FILTER (k > 9) FROM t",
        &["[3, 2]|[-2.5, 0.1]|[déf]|[-7, 2, 3]|[3, 2]|-"],
    );
    check_rows(
        &pair,
        "SELECT k > 2 AS g, max(b, 2), product(b), quantile_disc(b, 0.5) FROM t GROUP BY g ORDER BY g",
        &["0|[20, 10]|200|10", "1|[3]|3|3"],
    );
    check_rows(
        &pair,
        "SELECT product(a), product(x), product(k), product(k) FILTER (k > 7) FROM t",
        &["-42|-0.375|24|-"],
    );
    check_rows(
        &pair,
        "SELECT quantile_disc(k, 0.1), quantile_disc(k, 0.3), quantile_disc(k, 0.75), quantile_disc(k, 1), quantile_disc(s, 0.5), quantile(x, 0), quantile_disc(k, [0.1, 0.5]), quantile_disc(a, 0.5) FILTER (k > 5) FROM t",
        &["1|2|3|4|abc|-2.5|[1, 2]|-"],
    );
    check_rows(
        &pair,
        "SELECT quantile_cont(k, 0.3), quantile_cont(x, 0.25), quantile_cont(k, [0.25, 0.5]) FROM t",
        &["1.9|-1.2|[1.75, 2.5]"],
    );
    check_rows(
        &pair,
        "SELECT list_aggregate(l, 'sum'), list_aggregate(l, 'min'), list_aggregate(l, 'max'), list_aggregate(l, 'avg'), list_aggregate(l, 'product'), list_aggregate(l, 'count') FROM t ORDER BY k",
        &["7|1|3|1.75|6|4", "-|-|-|-|-|0", "-|-|-|-|-|-", "10|5|5|5|25|2"],
    );
    check_rows(
        &pair,
        "SELECT list_aggregate(l, 'first'), list_aggregate(l, 'last'), list_aggregate(l, 'any_value'), list_aggregate(l, 'string_agg', '-'), list_aggr(l, 'approx_count_distinct'), list_unique(l), list_reverse_sort(l), list_count(l) FROM t ORDER BY k",
        &[
            "3|1|3|3-1-2-1|3|3|[3, 2, 1, 1]|4",
            "-|-|-|-|0|0|[]|0",
            "-|-|-|-|-|-|-|-",
            "-|5|5|5-5|1|1|[5, 5, NULL]|2",
        ],
    );
    let pair = pair.and("r", Shape::random(3000, 99).batches());
    pair.check_all(&[
        "SELECT k, max(x, 3), min(s, 2), quantile_disc(x, 0.9) FROM r GROUP BY k",
        "SELECT k, product(1 + x / 1e9), quantile_cont(x, 0.1) FROM r GROUP BY k",
    ]);
    for (sql, says) in [
        ("SELECT max(a, 0) FROM t", "max takes a value and how many"),
        ("SELECT max(a, k) FROM t", "max takes a value and how many"),
        ("SELECT max(a, 2) OVER () FROM t", "max is an aggregate, without OVER"),
        ("SELECT quantile_disc(a, 1.5) FROM t", "quantile_disc takes a value and a share"),
        ("SELECT quantile_disc(a, x) FROM t", "quantile_disc takes a value and a share"),
        ("SELECT product() FROM t", "product takes a number"),
        ("SELECT list_aggregate(l, 'kurtosis') FROM t", "list_aggregate takes a list and the name"),
        ("SELECT entropy(a) FROM t", "entropy"),
        ("SELECT histogram(a) FROM t", "histogram"),
    ] {
        let error = run(&pair.device, sql).expect_err(sql).to_string();
        assert!(error.contains(says), "{sql}: {error}");
    }
}

#[test]
fn short_names_of_numbers_times_and_texts() {
    let pair = texts_and_lists();
    check_rows(
        &pair,
        "SELECT mod(k, 3), mod(-k, 3), isinf(x / 0), isinf(x), isinf(CAST('NaN' AS double)) \
         FROM (SELECT k, CAST(k AS double) AS x FROM t) ORDER BY k",
        &["1|-1|1|0|0", "2|-2|1|0|0", "0|0|1|0|0", "1|-1|1|0|0"],
    );
    check_rows(
        &pair,
        // 19782 is 2024-02-29.
        "SELECT CAST(date_add(DATE '2024-01-31', INTERVAL '1 month') AS DATE), \
         split('a,b', ','), list_min(l) FROM t ORDER BY k",
        &["19782|[a, b]|1", "19782|[a, b]|-", "19782|[a, b]|-", "19782|[a, b]|5"],
    );
    // Values of DuckDB 2.0.1.
    check_rows(
        &pair,
        "SELECT regexp_full_match(s, 'b'), regexp_full_match(s, 'a.c'), \
         regexp_full_match(s, 'a|abc'), regexp_full_match(s, 'ABC', 'i') \
         FROM (VALUES (1, 'abc'), (2, 'b'), (3, 'a'), (4, NULL), (5, 'abcd')) AS v (n, s) ORDER BY n",
        &["0|1|1|1", "1|0|0|0", "0|0|1|0", "-|-|-|-", "0|0|0|0"],
    );
    for (sql, says) in [
        ("SELECT mod(k) FROM t", "mod takes two numbers"),
        ("SELECT isinf() FROM t", "isinf takes a number"),
        ("SELECT date_add(d) FROM t", "date_add takes a date or a time"),
        ("SELECT regexp_full_match(s, s) FROM t", "regexp_full_match takes a text"),
    ] {
        let error = run(&pair.device, sql).expect_err(sql).to_string();
        assert!(error.contains(says), "{sql}: {error}");
    }
}

#[test]
fn what_has_no_value_is_an_error_or_null() {
    let pair = texts_and_lists();
    for (sql, message) in [
        ("SELECT to_timestamp(x * 1e12) FROM t WHERE k = 1", "to_timestamp"),
        ("SELECT to_timestamp(CAST('nan' AS double)) FROM t", "to_timestamp"),
        ("SELECT trim('abc', 'b', 'c') FROM t", "trim takes a text and the characters"),
    ] {
        for session in [&pair.cpu, &pair.device] {
            let error = run(session, sql).expect_err(sql).to_string();
            assert!(error.contains(message), "{error}\n  {sql}");
        }
    }
    // Maps are not on the device.
    let error = run(&pair.cpu, "SELECT map(l, [1]) FROM t WHERE k = 1").expect_err("lengths");
    assert!(error.to_string().contains("map of 4 keys and 1 values"), "{error}");
    check_rows(
        &pair,
        "SELECT to_timestamp(x)::VARCHAR, list_has_any(l, [1]), list_has_all([1, 2], l), \
         list_has_any(l, CASE WHEN k < 2 THEN [3] END) FROM t ORDER BY k",
        &[
            "1970-01-01 00:00:01.5|1|0|1",
            "1969-12-31 23:59:57.5|0|1|-",
            "-|-|-|-",
            "1970-01-01 00:00:00.1|0|0|-",
        ],
    );
}

#[test]
fn the_next_float_is_on_the_side_of_the_other() {
    check_rows(
        &texts_and_lists(),
        "SELECT nextafter(x, 9) - x, nextafter(x, -9) - x, nextafter(x, x) = x, \
         nextafter(0, 1) > 0 AND nextafter(0, 1) / 2 = 0, nextafter(x, CAST('nan' AS double)), nextafter(k, NULL) \
         FROM t WHERE k < 4 ORDER BY k",
        &[
            "0.0000000000000002220446049250313|-0.0000000000000002220446049250313|1|1|NaN|-",
            "0.0000000000000004440892098500626|-0.0000000000000004440892098500626|1|1|NaN|-",
            "-|-|-|1|-|-",
        ],
    );
}

#[test]
fn booleans_are_summed_as_zeros_and_ones() {
    let pair = texts_and_lists();
    check_rows(
        &pair,
        "SELECT sum(a > 2), avg(a > 2), sum(DISTINCT a > 2), sum(k > 1) FILTER (WHERE a < 3), \
         sum(s IS NULL) + 1, avg(CAST(k > 1 AS BOOLEAN)) FROM t",
        &["1|0.3333333333333333|1|1|2|0.75"],
    );
    check_rows(&pair, "SELECT sum(false), sum(b > 0) FROM t WHERE k > 9", &["-|-"]);
    check_rows(
        &pair,
        "SELECT k, sum(a > 2) OVER (ORDER BY k), avg(a > 2) OVER () * 3 FROM t ORDER BY k",
        &["1|0|1", "2|1|1", "3|1|1", "4|1|1"],
    );
    check_rows(
        &pair,
        "SELECT k > 2 AS g, sum(a > 0), avg(x > 0) FROM t GROUP BY g HAVING sum(a > 0) < 9 ORDER BY g",
        &["0|2|0.5", "1|0|1"],
    );
    for session in [&pair.cpu, &pair.device] {
        let error = run(session, "SELECT sum(s) FROM t").expect_err("an error").to_string();
        assert!(
            error.contains("sum takes one number, boolean or duration, not (VARCHAR"),
            "{error}"
        );
    }
}

#[test]
fn bits_are_counted_shown_and_turned() {
    let pair = texts_and_lists();
    check_rows(
        &pair,
        "SELECT bit_count(a), bit_count(a::TINYINT), bit_count(a::BIGINT), \
         bit_count(b::UTINYINT), bin(a), to_binary(b) FROM t ORDER BY k",
        &[
            "1|1|1|2|10|1010",
            "2|2|2|2|11|10100",
            "-|-|-|-|-|-",
            "30|6|62|2|1111111111111111111111111111111111111111111111111111111111111001|11",
        ],
    );
    check_rows(
        &pair,
        "SELECT ~a, ~a::TINYINT, ~b::UTINYINT, ~a + 1, ~a * 2, ~a & 3, - ~a FROM t ORDER BY k",
        &["-3|-3|245|-4|-5|1|3", "-4|-4|235|-5|-7|0|4", "-|-|-|-|-|-|-", "6|6|252|5|13|2|-6"],
    );
    check_rows(
        &pair,
        "SELECT typeof(~1), typeof(~1::TINYINT), ~NULL, bit_count(NULL), bin(NULL), bin(0), \
         bit_count(18446744073709551615), bin(18446744073709551615::UBIGINT) FROM t WHERE k = 1",
        &["BIGINT|TINYINT|-|-|-|0|64|\
           1111111111111111111111111111111111111111111111111111111111111111"],
    );
    assert_eq!(
        rows_on(&pair.cpu, "SELECT bin(s) FROM t WHERE k = 2"),
        ["01100100110000111010100101100110"]
    );
    for (sql, says) in [
        ("SELECT ~x FROM t", "takes an integer"),
        ("SELECT bit_count(s) FROM t", "bit_count takes an integer"),
        ("SELECT bin(x) FROM t", "bin takes an integer or a string"),
    ] {
        let error = run(&pair.cpu, sql).expect_err(sql).to_string();
        assert!(error.contains(says), "{sql}: {error}");
    }
}

#[test]
fn functions_that_are_short_for_others() {
    let pair = texts_and_lists();
    check_rows(
        &pair,
        "SELECT add(a, b), subtract(a, b), multiply(a, b), divide(b, a), fdiv(b, a), fmod(b, a), \
         ceiling(x) FROM t ORDER BY k",
        &["12|-8|20|5|5|0|2", "23|-17|60|6|6|2|-2", "-|-|-|-|-|-|-", "-4|-10|-21|0|-1|-4|1"],
    );
    check_rows(
        &pair,
        "SELECT isfinite(x), isfinite(d), isfinite('inf'::DOUBLE), isfinite('nan'::DOUBLE), \
         isfinite(a), era(d), millennium(d), julian(d), constant_or_null('z', a, b) FROM t ORDER BY k",
        &[
            "1|1|0|0|1|1|3|2460341|z",
            "1|1|0|0|1|1|2|2440587|z",
            "-|-|0|0|-|-|-|-|-",
            "1|1|0|0|1|1|3|2458909|z",
        ],
    );
    check_rows(
        &pair,
        "SELECT s ^@ 'a', l && [1, 9], list_select(l, [2, 1]), array_value(a, b), \
         struct_keys({'a': a, 'B': s}) FROM t ORDER BY k",
        &[
            "1|1|[1, 3]|[2, 10]|[a, B]",
            "0|0|[, ]|[3, 20]|[a, B]",
            "-|-|-|[, ]|[a, B]",
            "0|0|[5, ]|[-7, 3]|[a, B]",
        ],
    );
    check_rows(
        &pair,
        "SELECT favg(a), fsum(a), kahan_sum(b) FILTER (b > 3), round(geomean(b), 6), \
         approx_quantile(b, 0.5) FROM t",
        &["-0.6666666666666666|-2|30|8.434327|10"],
    );
    assert_eq!(
        rows_on(
            &pair.cpu,
            "SELECT from_base64(base64(s::BLOB)), map_contains(MAP {'x': 1}, 'x') \
                            FROM t WHERE k = 1"
        ),
        ["abc|1"]
    );
}

#[test]
fn texts_within_values_are_told_from_nulls() {
    let pair = texts_and_lists();
    let sql = "SELECT ['', 'a', NULL, 'null']::VARCHAR, [s]::VARCHAR FROM t WHERE k = 4";
    assert_eq!(rows_on(&pair.cpu, sql), ["['', a, NULL, 'null']|['']"]);
}

#[test]
fn structs_get_more_fields() {
    let pair = texts_and_lists();
    check_rows(
        &pair,
        "SELECT struct_insert({'a': a}, b := s, \"C d\" := [k])['b'], \
         struct_insert({'a': a + 1}, b := s)['a'] FROM t ORDER BY k",
        &["abc|3", "déf|4", "-|-", "|-6"],
    );
    for (sql, says) in [
        ("SELECT struct_insert({'a': a}) FROM t", "takes a struct and named values"),
        ("SELECT struct_insert({'a': a}, 2) FROM t", "takes a struct and named values"),
        ("SELECT struct_insert(a, b := 2) FROM t", "takes a struct and named values"),
        ("SELECT struct_insert({'a': a}, a := 2) FROM t", "there are two fields \"a\""),
        ("SELECT struct_insert({'z': a}, a := 2, a := 3) FROM t", "there are two fields \"a\""),
    ] {
        let error = run(&pair.cpu, sql).expect_err(sql).to_string();
        assert!(error.contains(says), "{sql}: {error}");
    }
}

#[test]
fn maps_are_made_of_entries_and_of_what_is_counted() {
    let pair = texts_and_lists();
    let both = |sql: &str, expected: &[&str]| {
        let lax = builder().strict(false).build().expect("a session");
        for session in [&pair.cpu, &lax] {
            session
                .execute(
                    "CREATE OR REPLACE TABLE n AS SELECT * FROM (VALUES (1, 'b', 2.5), \
                (1, 'a', NULL), (2, 'b', 2.5), (2, 'b', 1.5), (3, NULL, NULL)) v(g, s, x)",
                )
                .expect("a table");
            assert_eq!(rows_on(session, sql), expected, "{sql}");
        }
    };
    both(
        "SELECT map_keys(histogram(s)), histogram(x)[2.5], (histogram(g) FILTER (g > 1))[2] FROM n",
        &["[a, b]|2|2"],
    );
    both(
        "SELECT g, map_keys(histogram(s)), map_values(histogram(s)) FROM n GROUP BY g ORDER BY g",
        &["1|[a, b]|[1, 1]", "2|[b]|[2]", "3|-|-"],
    );
    both("SELECT histogram(s) IS NULL FROM n WHERE g > 5", &["1"]);
    both(
        "SELECT map_from_entries([{'k': s, 'v': g}, {'k': 'z', 'v': 0}])['z'], \
         map_keys(map_from_entries([{'k': g, 'v': s}])) FROM n WHERE g = 2",
        &["0|[2]", "0|[2]"],
    );
    both("SELECT cardinality(map_from_entries([])), map_from_entries(NULL) IS NULL", &["0|1"]);
    for (sql, says) in [
        (
            "SELECT map_from_entries([{'k': 1, 'v': 1}, {'k': 1, 'v': 2}])",
            "the key 1 is there twice",
        ),
        ("SELECT map_from_entries([{'k': NULL::INT, 'v': 1}])", "a key is NULL"),
        ("SELECT map_from_entries([{'k': 1}])", "a list of structs of a key and a value"),
        ("SELECT histogram(s) OVER () FROM t", "is an aggregate, without OVER"),
        ("SELECT histogram(s, 2) FROM t", "takes a value"),
    ] {
        let error = run(&pair.cpu, sql).expect_err(sql).to_string();
        assert!(error.contains(says), "{sql}: {error}");
    }
}
