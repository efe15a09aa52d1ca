//! What a host program brings: table providers, functions, rules, planners. And what stays
//! DataFusion's.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use async_trait::async_trait;
use datafusion::catalog::{Session as State, TableProvider};
use datafusion::common::tree_node::Transformed;
use datafusion::datasource::{MemTable, TableType};
use datafusion::error::Result as PlanResult;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{ColumnarValue, Expr, LogicalPlan, Volatility, create_udf};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion::prelude::SessionContext;
use warpframe::arrow::array::{ArrayRef, AsArray, Int64Array};
use warpframe::arrow::datatypes::{DataType, Int64Type, SchemaRef};
use warpframe::arrow::record_batch::RecordBatch;
use warpframe::plugin::{Plugin, WithWarpframe};

use super::Both;
use crate::differential::{builder, data};

/// A table of somebody's own.
#[derive(Debug)]
struct Squares(MemTable, AtomicUsize);

impl Squares {
    fn new(rows: i64) -> Squares {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("n", Arc::new(Int64Array::from_iter_values(0..rows))),
            ("square", Arc::new(Int64Array::from_iter_values((0..rows).map(|n| n * n)))),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        let table = MemTable::try_new(batch.schema(), vec![vec![batch.clone()], vec![batch]]);
        Squares(table.expect("a table"), AtomicUsize::new(0))
    }
}

#[async_trait]
impl TableProvider for Squares {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn State,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        self.1.fetch_add(1, Relaxed);
        self.0.scan(state, projection, filters, limit).await
    }
}

/// A rule that counts how often it was asked.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

impl OptimizerRule for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> PlanResult<Transformed<LogicalPlan>> {
        self.0.fetch_add(1, Relaxed);
        Ok(Transformed::no(plan))
    }
}

/// A planner that counts how often it planned.
#[derive(Debug, Default)]
struct TheirPlanner(AtomicUsize);

#[async_trait]
impl QueryPlanner for TheirPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        state: &dyn State,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        self.0.fetch_add(1, Relaxed);
        DefaultPhysicalPlanner::default().create_physical_plan(plan, state).await
    }
}

fn doubled() -> datafusion::logical_expr::ScalarUDF {
    let body = |args: &[ColumnarValue]| {
        let arrays = ColumnarValue::values_to_arrays(args)?;
        let doubled: Int64Array = arrays[0].as_primitive::<Int64Type>().unary(|n| n * 2);
        Ok(ColumnarValue::Array(Arc::new(doubled)))
    };
    // By the name of a function that the engine has another meaning for.
    create_udf("abs", vec![DataType::Int64], DataType::Int64, Volatility::Immutable, Arc::new(body))
}

#[test]
fn providers_functions_rules_and_planners_of_the_program_are_used() {
    let plugin = Plugin::new(builder().strict(false)).expect("the device opens");
    let (rule, planner) = (Arc::new(Counting::default()), Arc::new(TheirPlanner::default()));
    let state: SessionState = SessionStateBuilder::new_with_default_features()
        .with_optimizer_rule(rule.clone())
        .with_query_planner(planner.clone())
        .with_plugin(&plugin)
        .build();
    let context = SessionContext::new_with_state(state);
    context.register_udf(doubled());
    let table = Arc::new(Squares::new(1000));
    context.register_table("squares", table.clone()).expect("registered");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let sql = "SELECT abs(g) AS twice, s FROM
               (SELECT n % 10 AS g, sum(square) AS s FROM squares GROUP BY 1) ORDER BY 1";
    let device = plugin.device().expect("a device");
    let before = device.counters().launches;
    let rows = runtime.block_on(async { context.sql(sql).await?.collect().await }).expect("rows");
    let first = rows[0].column(0).as_primitive::<Int64Type>().values().to_vec();
    assert_eq!(first, (0..10).map(|n| n * 2).collect::<Vec<_>>(), "their function is called");
    let sums = rows[0].column(1).as_primitive::<Int64Type>();
    assert_eq!(sums.value(0), 2 * (0..100).map(|n: i64| 100 * n * n).sum::<i64>());
    assert!(device.counters().launches > before, "the aggregate runs on the device");
    assert!(rule.0.load(Relaxed) > 0 && planner.0.load(Relaxed) == 1 && table.1.load(Relaxed) == 1);

    let explained = runtime
        .block_on(async { context.sql(&format!("EXPLAIN {sql}")).await?.collect().await })
        .expect("explained");
    let text = warpframe::arrow::util::pretty::pretty_format_batches(&explained).expect("text");
    let text = text.to_string();
    assert!(text.contains("function abs is the session's own"), "{text}");
    assert!(text.contains("DeviceStageExec"), "{text}");
}

#[test]
fn strict_sessions_name_what_is_not_on_the_device() {
    let plugin = Plugin::new(builder().strict(true)).expect("the device opens");
    let both = Both::with(plugin, 2).files(&data("tpch"));
    assert!(both.check("SELECT count(*) FROM nation"));
    both.ours.register_udf(doubled());
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("copied.parquet");
    let copy = format!("COPY (SELECT abs(n_nationkey) FROM nation) TO '{}'", path.display());
    for sql in ["SELECT abs(n_nationkey) FROM nation", &copy] {
        let error = both.run(&both.ours, sql).unwrap_err();
        assert!(error.contains("function abs is the session's own"), "{error}");
    }
}

#[test]
fn what_fails_on_the_device_alone_is_datafusions() {
    let both = Both::new();
    both.execute(
        "CREATE TABLE t AS SELECT value AS i, CAST(9223372036854775807 AS BIGINT) AS big
         FROM range(0, 10)",
    );
    // Wraps around in DataFusion.
    let device = both.plugin.device().expect("a device");
    for sql in ["SELECT sum(big) FROM t", "SELECT i, big + i AS b FROM t ORDER BY i"] {
        let before = device.counters().fallbacks;
        both.check(sql);
        assert!(device.counters().fallbacks > before, "{sql} was tried on the device");
    }
    let [stock, ours] = [&both.stock, &both.ours]
        .map(|context| both.run(context, "SELECT 1 / (i - 5) FROM t").unwrap_err());
    assert_eq!(stock, ours);
}

#[test]
fn answers_that_differ_on_purpose_are_datafusions() {
    let both = Both::new().files(&data("tpch"));
    both.execute(
        "CREATE TABLE t AS SELECT value AS i, value * 1.3 AS x, CAST(value AS VARCHAR) AS s,
         to_timestamp_seconds(value * 100000) AS ts, CAST(value AS DECIMAL(10, 2)) / 3 AS m
         FROM range(0, 50)",
    );
    for sql in [
        "SELECT CAST(x AS INT) AS a, CAST(s AS DOUBLE) AS b, CAST(m AS DOUBLE) AS c, CAST(x AS VARCHAR) AS d FROM t",
        "SELECT percentile_cont(0.3) WITHIN GROUP (ORDER BY x) FROM t",
        "SELECT date_trunc('month', ts), date_part('year', ts), date_bin(INTERVAL '1 day', ts) FROM t",
        "SELECT approx_distinct(i), approx_percentile_cont(x, 0.5) FROM t",
        "SELECT round(x, 1), trunc(x), floor(x), ceil(m), abs(-i), power(i, 2) FROM t",
        "SELECT median(i), median(x), stddev(x), corr(x, i) FROM t",
        "SELECT greatest(i, 10), least(x, 5.0), nullif(i, 3), coalesce(NULL, s) FROM t",
        "SELECT upper(s), lpad(s, 4, '0'), substr(s, 1, 1), s LIKE '1%', concat(s, 'a'), s || 'b' FROM t",
        "SELECT ts + INTERVAL '1 month', ts - INTERVAL '36 hours', ts::DATE FROM t",
        "SELECT i FROM t WHERE i > (SELECT avg(i) FROM t)",
        "SELECT i % 3 AS g, array_agg(i ORDER BY i) FROM t GROUP BY 1",
        "SELECT i, sum(x) OVER (ORDER BY i ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM t",
        "SELECT n_name, r_name FROM nation FULL JOIN region ON n_regionkey = r_regionkey + 1",
        "SELECT unnest([i, i + 1]) FROM t",
        "SELECT i FROM t UNION SELECT n_nationkey FROM nation",
        "WITH RECURSIVE n AS (SELECT 1 AS k UNION ALL SELECT k + 1 FROM n WHERE k < 5) SELECT * FROM n",
    ] {
        both.check(sql);
    }
    let [stock, ours] = [&both.stock, &both.ours]
        .map(|context| both.run(context, "SELECT (SELECT i FROM t) FROM nation").is_err());
    assert_eq!((stock, ours), (true, true), "a subquery of several rows");
}

#[test]
fn a_partitioned_table_may_be_read_several_times() {
    let both = Both::new();
    let folder = tempfile::tempdir().expect("a folder");
    for (part, kind) in [(1, "a"), (2, "b"), (3, "c")] {
        let sql = format!(
            "COPY (SELECT value AS i, '{kind}' AS kind FROM range(0, 100)) TO '{}'
             STORED AS PARQUET",
            folder.path().join(format!("part={part}/rows.parquet")).display()
        );
        both.run(&both.stock, &sql).expect("written");
    }
    both.execute(&format!(
        "CREATE EXTERNAL TABLE t (i BIGINT, kind VARCHAR) STORED AS PARQUET
         PARTITIONED BY (part INT) LOCATION '{}/'",
        folder.path().display()
    ));
    assert!(both.check(
        "SELECT kind, sum(i) FROM (
           SELECT 'x' AS kind, sum(i) AS i FROM t WHERE kind = 'a'
           UNION ALL SELECT 'y' AS kind, sum(i) AS i FROM t WHERE kind = 'b'
           UNION ALL SELECT kind, i FROM t WHERE kind = 'c') GROUP BY kind"
    ));
    both.check("SELECT part, count(*) FROM t WHERE part > 1 GROUP BY part");
    both.check("SELECT a.i, b.kind FROM t a JOIN t b ON a.i = b.i AND a.part = b.part - 1");
}
