//! What DataFusion says by itself. Where that becomes right, what mends it can go.

use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::logical_expr::{Expr, ExprFunctionExt, LogicalPlanBuilder, lit};
use datafusion::prelude::{SessionConfig, SessionContext, col};

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

/// `mends/simplifier.rs`.
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

/// `mends/null_safe_keys.rs`.
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

/// `mends/stale_properties.rs`: <https://github.com/apache/datafusion/issues/24421>.
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

/// `mends/aggregate_statistics.rs`.
#[test]
fn datafusion_still_takes_another_aggregates_count() {
    let sql = "SELECT sum(n) FILTER (WHERE n > 100) \
               FROM (SELECT count(*) AS n FROM (VALUES (1), (2), (3)) v(a))";
    assert_eq!(ask(sql).as_deref(), Ok("3"), "no n is above 100");
}

/// `mends/distinct_sums.rs`: <https://github.com/apache/datafusion/issues/17699>.
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

/// `mends/grouping_set_names.rs`.
#[test]
fn datafusion_still_takes_grouping_sets_for_a_column() {
    let sql = "SELECT a FROM (SELECT arrow_cast(s, 'Utf8View') AS s, a FROM (VALUES ('b', 1)) v(s, a)) \
               GROUP BY ROLLUP (NOT (s LIKE '%b'), a)";
    let error = ask(sql).expect_err("the set is a column");
    assert!(error.contains("ROLLUP"), "{error}");
}

/// `mends/repeated_sort_keys.rs`.
#[test]
fn datafusion_still_panics_where_a_key_comes_twice() {
    let sql =
        "SELECT first_value(y ORDER BY y, y DESC) FROM (VALUES (1, 2), (1, 3)) t(x, y) GROUP BY x";
    let asked = std::panic::catch_unwind(|| ask(sql));
    assert!(!matches!(&asked, Ok(Ok(value)) if value == "2"), "{asked:?}");
}

/// `mends/field_extraction.rs`.
#[test]
fn datafusion_still_calls_a_mark_by_another_table() {
    let sql = "SELECT a, a IN (SELECT u.o['f'] FROM (SELECT {'f': 1} AS o) u) OR a > 5 \
               FROM (VALUES (1), (2)) t(a) ORDER BY a";
    assert!(ask(sql).is_err(), "{:?}", ask(sql));
}

/// `mends/filter_pushdown.rs`.
#[test]
fn datafusion_still_takes_columns_of_one_name_for_one() {
    let of = |kind: &str| {
        format!(
            "SELECT count(*) FROM (SELECT DISTINCT s, k FROM (VALUES (CAST(NULL AS VARCHAR), 1)) v(s, k)) t \
             {kind} JOIN (SELECT DISTINCT s, k FROM (VALUES ('ab', 1)) v(s, k)) u ON t.k = u.k \
             WHERE u.k > 0 AND starts_with(u.s, t.s)"
        )
    };
    let asked = ["LEFT", "RIGHT", "FULL"].map(|kind| ask(&of(kind)));
    assert!(asked.iter().any(|count| count.as_deref() != Ok("0")), "{asked:?}");
}

/// `mends/cross_joins.rs`.
#[test]
fn datafusion_still_begins_with_the_first_table() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let of = |name: &str| format!("(SELECT DISTINCT x FROM (VALUES (1), (2)) v(x)) {name}");
    let from = ["a", "b", "c", "d"].map(of).join(", ");
    let sql = format!("SELECT a.x, b.x, c.x, d.x FROM {from} WHERE c.x = d.x");
    let planned = async { SessionContext::new().sql(&sql).await?.into_optimized_plan() };
    let plan = runtime.block_on(planned).expect("a plan").display_indent().to_string();
    let at = |join: &str| plan.find(join).unwrap_or_else(|| panic!("{join}\n{plan}"));
    assert!(at("Inner Join") < at("Cross Join"), "{plan}");
}

/// `host/empty_frames.rs`.
#[test]
fn datafusion_still_xors_an_empty_frame_to_zero() {
    let sql = "SELECT x FROM (SELECT i, bit_xor(v) OVER (ORDER BY i ROWS 1 PRECEDING) AS x \
               FROM (VALUES (1, 5), (2, NULL), (3, NULL)) t(i, v)) WHERE i = 3";
    assert_eq!(ask(sql).as_deref(), Ok("0"), "no value is in the frame");
}

/// `mends/common_aggregates.rs`.
#[test]
fn datafusion_still_forgets_the_tables_of_aggregates() {
    let plan = LogicalPlanBuilder::values(vec![vec![lit(1)]]).expect("a plan");
    let id = first_value(col("column1"), vec![]).alias_qualified(Some("u"), "id");
    let counts = [("n", lit(true)), ("m", lit(true).and(lit(true)))];
    let counts = counts.map(|(name, filter)| {
        count(lit(1)).filter(filter).build().expect("an aggregate").alias(name)
    });
    let plan = plan.aggregate(Vec::<Expr>::new(), [vec![id], counts.to_vec()].concat());
    let plan = plan.and_then(|plan| plan.project([col("u.id"), col("n"), col("m")]));
    let plan = plan.and_then(LogicalPlanBuilder::build).expect("a plan");
    let planned = SessionContext::new().state().optimize(&plan);
    assert!(planned.is_err(), "DataFusion mended this: {planned:?}");
}

/// `mends/round_places.rs`.
#[test]
fn datafusion_still_compares_rounded_decimals_of_other_scales() {
    let sql =
        "SELECT round(m, 1) < m + m FROM (VALUES (arrow_cast(1.25, 'Decimal128(15, 2)'))) t(m)";
    let said = ask(sql).expect_err("DataFusion mended this");
    assert!(said.contains("Invalid comparison operation"), "{said}");
}
