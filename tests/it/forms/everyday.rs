//! Names, types and values of everyday statements, as DuckDB 2.0.1 has them.

use std::sync::Arc;

use warpframe::arrow::array::*;
use warpframe::arrow::compute::kernels::cast_utils::Parser;
use warpframe::arrow::datatypes::{DataType, Date32Type, Field};

use super::{check_rows, rows_on};
use crate::differential::{Pair, run};
use crate::tables::columns;

/// A table `t` with a column of each everyday type.
fn table() -> Pair {
    let day = |text: &str| Date32Type::parse(text).expect("a date");
    let decimals = Decimal128Array::from(vec![Some(1234), Some(50), None, Some(9999)]);
    let moments = vec![Some(1_706_696_130_250_000), Some(1_709_251_199_000_000), None, Some(0)];
    let fields = vec![
        (
            Arc::new(Field::new("a", DataType::Int64, true)),
            Arc::new(Int64Array::from(vec![1, 2, 3, 4])) as ArrayRef,
        ),
        (
            Arc::new(Field::new("b", DataType::Utf8, true)),
            Arc::new(StringArray::from(vec!["w", "x", "y", "z"])),
        ),
    ];
    Pair::of(columns(vec![
        ("id", Arc::new(Int32Array::from(vec![1, 2, 3, 4])) as ArrayRef),
        ("i", Arc::new(Int64Array::from(vec![Some(10), Some(20), None, Some(20)]))),
        ("x", Arc::new(Float64Array::from(vec![Some(0.5), Some(-1.25), None, Some(1e30)]))),
        ("m", Arc::new(decimals.with_precision_and_scale(9, 2).expect("they fit"))),
        ("s", Arc::new(StringArray::from(vec![Some("apple"), Some("pear"), None, Some("fig")]))),
        (
            "d",
            Arc::new(Date32Array::from(vec![
                Some(day("2024-01-31")),
                Some(day("2024-02-29")),
                None,
                Some(day("1999-12-31")),
            ])),
        ),
        ("ts", Arc::new(TimestampMicrosecondArray::from(moments))),
        ("n", Arc::new(StructArray::from(fields))),
    ]))
}

fn check_names(pair: &Pair, sql: &str, expected: &[&str]) {
    for session in [&pair.cpu, &pair.device] {
        let found = run(session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(found.column_names(), expected, "{sql}");
    }
}

/// The types that `DESCRIBE` tells, which are those of the rows.
fn check_types(pair: &Pair, sql: &str, expected: &[&str]) {
    for session in [&pair.cpu, &pair.device] {
        let told = rows_on(session, &format!("DESCRIBE {sql}"));
        let told: Vec<&str> = told.iter().filter_map(|row| row.split('|').nth(1)).collect();
        assert_eq!(told, expected, "{sql}");
        let planned = session.sql(sql).expect("a plan").schema();
        let rows = run(session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        for (planned, row) in planned.fields().iter().zip(rows.schema().fields()) {
            assert_eq!(planned.data_type(), row.data_type(), "{sql}");
        }
    }
}

#[test]
fn columns_beside_stars_come_twice() {
    let pair = table();
    let all = ["id", "i", "x", "m", "s", "d", "ts", "n"];
    check_names(&pair, "SELECT t.id, * FROM t", &[&["id"], &all[..]].concat());
    check_names(&pair, "SELECT T.Id, t.* FROM t", &[&["id"], &all[..]].concat());
    let both = [&["id", "id"], &all[..], &all[..]].concat();
    check_names(&pair, "SELECT a.id, b.id, a.*, b.* FROM t a JOIN t b ON a.id = b.i", &both);
    check_rows(
        &pair,
        "SELECT q.id, b.id, q.*, b.id FROM (SELECT id, s FROM t) q JOIN t b USING (id) \
         ORDER BY b.id LIMIT 2",
        &["1|1|1|apple|1", "2|2|2|pear|2"],
    );
    check_rows(
        &pair,
        "SELECT id_1 FROM (SELECT a.id, b.id FROM t a JOIN t b USING (id)) ORDER BY 1 LIMIT 2",
        &["1", "2"],
    );
    check_rows(
        &pair,
        "WITH q AS (SELECT a.i, b.i FROM t a JOIN t b ON a.id = b.id) SELECT sum(i_1) FROM q",
        &["50"],
    );
    let error =
        run(&pair.device, "SELECT id_1 FROM (SELECT a.id FROM t a)").expect_err("no column");
    assert!(error.to_string().contains("no column named \"id_1\""), "{error}");
}

#[test]
fn columns_are_called_by_what_was_typed() {
    let pair = table();
    for (sql, names) in [
        ("SELECT 1.5, 1.5::INT", vec!["1.5", "1.5::INT"]),
        (
            "SELECT CAST(2.5 AS INTEGER), TRY_CAST(2.5 AS INTEGER)",
            vec!["CAST(2.5 AS INTEGER)", "TRY_CAST(2.5 AS INTEGER)"],
        ),
        (
            "SELECT TRUE, true::INT, -1.5, (-1.5)::INT",
            vec!["TRUE", "true::INT", "-1.5", "(-1.5)::INT"],
        ),
        ("SELECT i != 10, i<>10, 'a<>b' != s FROM t", vec!["i != 10", "i<>10", "'a<>b' != s"]),
        ("SELECT -- é !=\n 'é!=' != s FROM t", vec!["'é!=' != s"]),
        ("SELECT n.a, t.n.b, t.id FROM t", vec!["a", "b", "id"]),
        ("SELECT a, b FROM (SELECT n.a, n.b FROM t)", vec!["a", "b"]),
        ("SELECT n.a AS c, n['a'] FROM t", vec!["c", "n['a']"]),
        ("SELECT n.a, count(*) FROM t GROUP BY n.a ORDER BY n.a", vec!["a", "count(*)"]),
        ("SELECT n.a, count(*) FROM t GROUP BY ALL", vec!["a", "count(*)"]),
        ("SELECT t.id, u.id FROM t JOIN t u USING (id) ORDER BY u.id", vec!["id", "id"]),
        ("SELECT * FROM unnest([1, 2])", vec!["unnest"]),
        ("SELECT * FROM unnest([1, 2]) u", vec!["u"]),
        ("SELECT * FROM unnest([1, 2]) AS u(x)", vec!["x"]),
        ("SELECT unnest FROM t, unnest([t.id])", vec!["unnest"]),
    ] {
        check_names(&pair, sql, &names);
    }
    check_rows(
        &pair,
        "SELECT a + 1 AS c FROM (SELECT n.a FROM t) ORDER BY c",
        &["2", "3", "4", "5"],
    );
    check_rows(&pair, "SELECT unnest + 1 FROM unnest([1, 2]) ORDER BY 1", &["2", "3"]);
    pair.device.execute("CREATE TABLE f AS SELECT n.a FROM t").expect("a table");
    assert_eq!(run(&pair.device, "FROM f").expect("rows").column_names(), ["a"]);
}

#[test]
fn decimals_beside_doubles_are_doubles() {
    let pair = table();
    for (sql, expected) in [
        ("SELECT m FROM t UNION ALL SELECT x FROM t", "DOUBLE"),
        ("SELECT m FROM t UNION SELECT x FROM t", "DOUBLE"),
        ("SELECT m FROM t UNION ALL SELECT x FROM t UNION ALL SELECT id FROM t", "DOUBLE"),
        ("SELECT m FROM t EXCEPT SELECT x FROM t", "DOUBLE"),
        ("SELECT x FROM t INTERSECT SELECT m FROM t", "DOUBLE"),
        ("SELECT m FROM t EXCEPT ALL SELECT x FROM t", "DOUBLE"),
        ("SELECT coalesce(m, x) FROM t", "DOUBLE"),
        ("SELECT greatest(m, x) FROM t", "DOUBLE"),
        ("SELECT CASE WHEN id > 2 THEN m ELSE x END FROM t", "DOUBLE"),
        ("SELECT [m, x] FROM t", "DOUBLE[]"),
        ("FROM (VALUES (1.5::DECIMAL(9, 2)), (1e30))", "DOUBLE"),
        ("FROM (VALUES (1.5::DECIMAL(9, 2)), (2::DOUBLE), (NULL))", "DOUBLE"),
        // Numbers with a point are the decimals that they say.
        ("SELECT m FROM t UNION ALL SELECT 0.5", "DECIMAL(9,2)"),
        ("SELECT coalesce(m, 1.5) FROM t", "DECIMAL(9,2)"),
        ("SELECT [m, 0.5] FROM t", "DECIMAL(9,2)[]"),
    ] {
        check_types(&pair, sql, &[expected]);
    }
    check_rows(
        &pair,
        "SELECT coalesce(m, x, 7), greatest(m, x), [m, x][2] FROM t ORDER BY id",
        &[
            "12.34|12.34|0.5",
            "0.5|0.5|-1.25",
            "7|-|-",
            "99.99|1000000000000000000000000000000|1000000000000000000000000000000",
        ],
    );
    check_rows(
        &pair,
        "SELECT m FROM t WHERE id < 3 UNION ALL SELECT x FROM t WHERE id < 3 ORDER BY 1",
        &["-1.25", "0.5", "0.5", "12.34"],
    );
    check_rows(&pair, "SELECT m FROM t EXCEPT SELECT x FROM t ORDER BY 1", &["12.34", "99.99"]);
    check_rows(
        &pair,
        "SELECT m FROM t INTERSECT SELECT x FROM t ORDER BY 1 NULLS LAST",
        &["0.5", "-"],
    );
}

#[test]
fn types_are_told_as_rows_have_them() {
    let pair = table();
    for (sql, expected) in [
        ("SELECT id FROM t UNION ALL SELECT i FROM t", "BIGINT"),
        ("SELECT d FROM t UNION ALL SELECT ts FROM t", "TIMESTAMP"),
        ("SELECT id FROM t EXCEPT SELECT i FROM t", "BIGINT"),
        ("SELECT d FROM t EXCEPT SELECT ts FROM t", "TIMESTAMP"),
        ("SELECT id FROM t INTERSECT SELECT x FROM t", "DOUBLE"),
        ("SELECT id FROM t EXCEPT SELECT s FROM t", "VARCHAR"),
        ("SELECT CASE WHEN id > 2 THEN id ELSE i END FROM t", "BIGINT"),
        ("SELECT 1::DECIMAL", "DECIMAL(18,3)"),
        ("SELECT '2.5'::NUMERIC", "DECIMAL(18,3)"),
        ("SELECT 1::HUGEINT", "DECIMAL(38,0)"),
        ("SELECT 2.5::LONG", "BIGINT"),
        ("SELECT 1::SHORT", "SMALLINT"),
        ("SELECT 1::INT1", "TINYINT"),
        ("SELECT s::BPCHAR FROM t", "VARCHAR"),
        ("SELECT s::TEXT(2) FROM t", "VARCHAR"),
        ("SELECT approx_count_distinct(i) - 5 FROM t", "BIGINT"),
        ("SELECT array_length([1]) - 5", "BIGINT"),
        ("SELECT list_position([1], 1) - 5", "BIGINT"),
        ("SELECT length(s) FROM t", "BIGINT"),
        ("SELECT round(m, 1) FROM t", "DECIMAL(9,1)"),
    ] {
        check_types(&pair, sql, &[expected]);
    }
    check_rows(&pair, "SELECT s::TEXT(2), 2.5::SHORT FROM t WHERE id = 1", &["apple|3"]);
    let union = "SELECT id AS k FROM t UNION ALL SELECT i FROM t";
    pair.device.execute(&format!("CREATE VIEW v AS {union}")).expect("a view");
    pair.device.execute("CREATE TABLE h (a HUGEINT, b DECIMAL, c TEXT(3))").expect("a table");
    let told = |sql: &str| rows_on(&pair.device, sql);
    assert_eq!(told("DESCRIBE v")[0], "k|BIGINT|1");
    let of_schema = "SELECT column_name, data_type FROM information_schema.columns";
    assert_eq!(told(&format!("{of_schema} WHERE table_name = 'v'")), ["k|BIGINT"]);
    assert_eq!(
        told(&format!("{of_schema} WHERE table_name = 'h' ORDER BY ordinal_position")),
        ["a|DECIMAL(38,0)", "b|DECIMAL(18,3)", "c|VARCHAR"]
    );
    assert!(told(&format!("SUMMARIZE {union}"))[0].starts_with("k|BIGINT|"));
}

#[test]
fn intervals_are_texts_as_in_duckdb() {
    let pair = table();
    let rows =
        |sql: &str, expected: &[&str]| assert_eq!(rows_on(&pair.cpu, sql), expected, "{sql}");
    rows(
        "SELECT CAST(ts - TIMESTAMP '2024-01-01' AS VARCHAR), \
         (TIMESTAMP '2024-01-01' - ts)::VARCHAR FROM t WHERE id < 4 ORDER BY id",
        &[
            "30 days 10:15:30.25|-30 days -10:15:30.25",
            "59 days 23:59:59|-59 days -23:59:59",
            "-|-",
        ],
    );
    rows(
        "SELECT (INTERVAL 1 DAY)::VARCHAR, (INTERVAL 14 MONTH)::VARCHAR, \
         (INTERVAL '6.5 seconds')::VARCHAR, (INTERVAL '-1 months 2 days -3 hours')::VARCHAR, \
         (INTERVAL 0 DAY)::VARCHAR, [INTERVAL 1 DAY]::VARCHAR, (INTERVAL (id) DAY)::VARCHAR \
         FROM t WHERE id = 2",
        &["1 day|1 year 2 months|00:00:06.5|-1 month 2 days -03:00:00|00:00:00|[1 day]|2 days"],
    );
    // Back again.
    rows(
        "SELECT i::VARCHAR::INTERVAL = i FROM (VALUES (INTERVAL '-1 months 2 days -3 hours'), \
         (INTERVAL '1 year 2 months 1.5 seconds'), (INTERVAL '-25 hours 1 day')) v(i)",
        &["1", "1", "1"],
    );
    let sql = "SELECT INTERVAL '14 months' AS a, ts - TIMESTAMP '2024-01-01' AS b FROM t \
               WHERE id = 1";
    for session in [&pair.cpu, &pair.device] {
        let frame = run(session, sql).expect("rows");
        let text = frame.to_string();
        assert!(text.contains("1 year 2 months ┆ 30 days 10:15:30.25"), "{text}");
        let json = frame.to_json().expect("JSON");
        assert!(json.contains("\"a\":\"1 year 2 months\",\"b\":\"30 days 10:15:30.25\""), "{json}");
    }
}

#[test]
fn functions_of_duckdb_that_are_others() {
    let pair = table();
    check_rows(
        &pair,
        "SELECT string_agg(s ORDER BY id), string_agg(s, '-' ORDER BY id), \
         group_concat(s ORDER BY id) FROM t",
        &["apple,pear,fig|apple-pear-fig|apple,pear,fig"],
    );
    check_rows(
        &pair,
        "SELECT century(d), decade(d), century(ts), decade(DATE '0001-01-01' - 400), \
         century(DATE '0001-01-01' - 400), century(DATE '2000-12-31') FROM t ORDER BY id",
        &["21|202|21|0|-1|20", "21|202|21|0|-1|20", "-|-|-|0|-1|20", "20|199|20|0|-1|20"],
    );
    check_rows(
        &pair,
        "SELECT current_schema(), localtimestamp > ts, get_current_timestamp() = now() FROM t \
         WHERE id = 1",
        &["public|1|1"],
    );
    check_rows(
        &pair,
        "SELECT typeof(now()), typeof(current_timestamp), typeof(localtimestamp), \
         now() > ts, now()::DATE = current_date FROM t WHERE id = 1",
        &["TIMESTAMP WITH TIME ZONE|TIMESTAMP WITH TIME ZONE|TIMESTAMP|1|1"],
    );
    let texts = "SELECT base64(encode(s)), base64('ab'), decode(unhex(hex(s))) FROM t WHERE id = 1";
    assert_eq!(rows_on(&pair.cpu, texts), ["YXBwbGU=|YWI=|apple"]);
    pair.device.execute("CREATE SCHEMA raw").expect("a schema");
    pair.device.execute("USE raw").expect("a schema");
    assert_eq!(rows_on(&pair.device, "SELECT current_schema()"), ["raw"]);
    let error = run(&pair.device, "SELECT current_schema(1)").expect_err("an argument");
    assert!(error.to_string().contains("current_schema takes nothing"), "{error}");
}
