//! What DataFusion says by itself. Where that becomes right, what mends it can go.

use datafusion::prelude::{SessionConfig, SessionContext};

/// The first value, or the error.
fn ask(sql: &str) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    // What it makes wrong may depend on the number of cores.
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    let batches = runtime
        .block_on(async { context.sql(sql).await?.collect().await })
        .map_err(|error| error.to_string())?;
    let batch = batches.iter().find(|batch| batch.num_rows() > 0).ok_or("no rows")?;
    warpframe::arrow::util::display::array_value_to_string(batch.column(0), 0)
        .map_err(|error| error.to_string())
}

/// `session/rules/veils.rs`.
#[test]
fn datafusion_still_simplifies_wrongly() {
    for (sql, said) in [
        // https://github.com/apache/datafusion/issues/23095
        (
            "SELECT count(*) FROM (VALUES (arrow_cast(1.2, 'Decimal128(5, 2)')), (NULL)) t(m) WHERE CAST(m AS INT) = 1",
            "0",
        ),
        // https://github.com/apache/datafusion/issues/24702
        ("SELECT TRY_CAST(x AS TINYINT) > 1 FROM (VALUES (70000), (NULL)) t(x)", "true"),
        // https://github.com/apache/datafusion/pull/24258
        ("SELECT x IN (1) AND x IN (2) FROM (VALUES (CAST(NULL AS INT)), (1)) t(x)", "false"),
        // https://github.com/apache/datafusion/issues/24665
        ("SELECT -(x & 3) FROM (VALUES (6), (NULL)) t(x)", "-1"),
        // https://github.com/apache/datafusion/pull/24248
        ("SELECT x ^ x FROM (VALUES (CAST(NULL AS INT)), (1)) t(x)", "0"),
        // https://github.com/apache/datafusion/issues/24379
        ("SELECT s ~ '.*' FROM (VALUES (CAST(NULL AS VARCHAR)), ('a')) t(s)", "false"),
        (r"SELECT s ~ 'a\\b' FROM (VALUES ('ab'), (NULL)) t(s)", "true"),
        ("SELECT log(x, x) FROM (VALUES (CAST(0 AS double)), (CAST(2 AS double))) t(x)", "1.0"),
        ("SELECT (10 / x) * 0 FROM (VALUES (0), (1)) t(x)", "0"),
    ] {
        assert_eq!(ask(sql).as_deref(), Ok(said), "DataFusion mended this\n  {sql}");
    }
}

/// `session/rules/guards/pushdown.rs`.
#[test]
fn datafusion_still_pushes_conditions_below_empty_grouping_sets() {
    let sql = "SELECT count(*) FROM (SELECT 'all' AS seg, count(*) AS n FROM (VALUES (1)) t(a)) WHERE seg = 'x'";
    assert_eq!(ask(sql).as_deref(), Ok("1"), "the row is another");
}

/// `session/rules/null_safe.rs`.
#[test]
fn datafusion_still_makes_keys_of_null_safe_joins() {
    let sql = "WITH t(a, c) AS (VALUES (1, CAST(NULL AS INT)), (2, 2)) \
               SELECT count(*) FROM t JOIN t u ON t.a IS NOT DISTINCT FROM u.a WHERE t.c = u.c";
    assert_eq!(ask(sql).as_deref(), Ok("2"), "one row has no c");
}

/// `session/builder.rs`: <https://github.com/apache/datafusion/issues/24096>.
#[test]
fn datafusion_still_disagrees_with_itself_about_nulls() {
    let sql = "SELECT ((a > 0) IS NOT TRUE) <> ((a > 0) IS NOT TRUE) AS k, count(*) \
               FROM (VALUES (1), (NULL)) t(a) GROUP BY 1";
    let error = ask(sql).expect_err("the schemas differ");
    assert!(error.contains("Physical input schema"), "{error}");
}

/// `session/rules/forgotten.rs`: <https://github.com/apache/datafusion/issues/24421>.
#[test]
fn datafusion_still_knows_too_much_of_rows() {
    let sql = "SELECT b FROM (SELECT a, a AS b FROM (VALUES (1), (2), (3)) v(a)) \
               GROUP BY GROUPING SETS ((a), (b)) ORDER BY b NULLS LAST, a LIMIT 1";
    assert_eq!(ask(sql).as_deref(), Ok(""), "1 comes before NULL");
    let sql = "SELECT t.a FROM (VALUES (1), (2), (3)) t(a) \
               LEFT JOIN (SELECT max(b) AS a, 'x' AS c FROM (VALUES (2)) v(b)) w ON t.a = w.a \
               ORDER BY w.c, t.a";
    assert_eq!(ask(sql).as_deref(), Ok("1"), "x comes before NULL");
}

/// `session/rules/known_counts.rs`.
#[test]
fn datafusion_still_takes_another_aggregates_count() {
    let sql = "SELECT sum(n) FILTER (WHERE n > 100) \
               FROM (SELECT count(*) AS n FROM (VALUES (1), (2), (3)) v(a))";
    assert_eq!(ask(sql).as_deref(), Ok("3"), "no n is above 100");
}

/// `session/rules/distinct_sums.rs`: <https://github.com/apache/datafusion/issues/17699>.
#[test]
fn datafusion_still_sums_decimals_twice_beside_distinct_values() {
    let sql = "SELECT arrow_typeof(sum(m)), count(DISTINCT a) \
               FROM (VALUES (1, arrow_cast(1.5, 'Decimal128(9, 2)'))) t(a, m)";
    assert_eq!(ask(sql).as_deref(), Ok("Decimal128(29, 2)"), "a sum has 19 digits");
}

/// `session/rules/names/order.rs`, `windows.rs`, `shadows.rs` and `groups.rs`.
#[test]
fn datafusion_still_refuses_statements() {
    for (sql, said) in [
        ("SELECT b AS a FROM (VALUES (1, 2)) t(a, b) ORDER BY t.a", "would be ambiguous"),
        (
            "SELECT sum(b) OVER (ORDER BY b) AS q FROM (VALUES (1, 2)) t(a, b) QUALIFY b > 1",
            "QUALIFY",
        ),
        ("SELECT lag(b, 1, a) OVER (ORDER BY b) FROM (VALUES (1, 2)) t(a, b)", "Literal"),
        (
            "WITH q AS (SELECT 1 AS v), r AS (WITH q AS (SELECT 2 AS v) SELECT v FROM q) SELECT * FROM r",
            "more than once",
        ),
        ("SELECT a + 1, count(*) FROM (VALUES (1, 2)) t(a, b) GROUP BY ROLLUP (1)", "GROUP BY"),
        ("SELECT a, count(*) FROM (VALUES (1, 2)) t(a, b) GROUP BY ROLLUP (a, a)", "a"),
    ] {
        let error = ask(sql).expect_err(sql);
        assert!(error.contains(said), "{error}\n  {sql}");
    }
}
