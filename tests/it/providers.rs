//! Tables of DataFusion's and of anybody's providers, registered through the session's context:
//! read anew by each query, with what the provider does of filters and limits, on the device.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use datafusion::catalog::{Session as State, TableProvider};
use datafusion::common::{DataFusionError, ToDFSchema};
use datafusion::datasource::{MemTable, TableType, ViewTable};
use datafusion::error::Result as PlanResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown as PushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::StreamExt;
use warpframe::arrow::array::*;
use warpframe::arrow::compute::filter_record_batch;
use warpframe::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use warpframe::{DeviceChoice, ErrorKind, Result, Session};

use crate::differential::{Agreement, Cell, Pair, Rows, builder, data, run, scalar};

/// What a partition yields at the end of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Well,
    Error,
    Panic,
    /// The first batch again, for ever.
    Never,
    /// Nothing, and no end.
    Waits,
}

/// A table whose rows somebody else changes.
#[derive(Debug)]
struct Table {
    schema: SchemaRef,
    /// By partition.
    rows: Mutex<Vec<Vec<RecordBatch>>>,
    push_down: PushDown,
    end: End,
    scans: AtomicUsize,
    filters: AtomicUsize,
    limits: AtomicUsize,
}

impl Table {
    fn new(rows: Vec<Vec<RecordBatch>>, push_down: PushDown, end: End) -> Arc<Table> {
        let schema = rows.iter().flatten().next().expect("a batch").schema();
        let (scans, filters, limits) =
            (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Table { schema, rows: rows.into(), push_down, end, scans, filters, limits })
    }

    fn plain(rows: Vec<Vec<RecordBatch>>) -> Arc<Table> {
        Table::new(rows, PushDown::Unsupported, End::Well)
    }

    fn set(&self, rows: Vec<Vec<RecordBatch>>) {
        *self.rows.lock().unwrap() = rows;
    }
}

#[async_trait]
impl TableProvider for Table {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
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
        self.scans.fetch_add(1, Relaxed);
        self.filters.fetch_add(filters.len(), Relaxed);
        self.limits.fetch_add(usize::from(limit.is_some()), Relaxed);
        let mut partitions: Vec<Arc<dyn PartitionStream>> = vec![];
        for (number, batches) in self.rows.lock().unwrap().iter().enumerate() {
            let mut batches = batches.clone();
            // Who says Inexact may leave filters alone.
            if let Some(filter) =
                conjunction(filters.to_vec()).filter(|_| self.push_down == PushDown::Exact)
            {
                let schema = self.schema.clone().to_dfschema()?;
                let filter = state.create_physical_expr(filter, &schema)?;
                for batch in &mut batches {
                    let chosen = filter.evaluate(batch)?.into_array(batch.num_rows())?;
                    *batch = filter_record_batch(batch, chosen.as_boolean())?;
                }
            }
            let (schema, end) = (self.schema.clone(), self.end);
            partitions.push(Arc::new(Partition { schema, batches, end, number }));
        }
        let (schema, is_endless) = (self.schema.clone(), self.end == End::Never);
        Ok(Arc::new(StreamingTableExec::try_new(
            schema,
            partitions,
            projection,
            vec![],
            is_endless,
            limit,
        )?))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> PlanResult<Vec<PushDown>> {
        Ok(vec![self.push_down.clone(); filters.len()])
    }
}

#[derive(Debug)]
struct Partition {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    end: End,
    number: usize,
}

impl PartitionStream for Partition {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (batches, end) = (self.batches.clone(), self.end);
        // The first partitions take longest.
        std::thread::sleep(Duration::from_millis(10 / (1 + self.number as u64)));
        let batch = move |at: usize| match (batches.get(at), end) {
            (Some(batch), _) => Some(Ok(batch.clone())),
            (None, End::Well) => None,
            (None, End::Error) => {
                Some(Err(DataFusionError::Execution("the source is gone".into())))
            }
            (None, End::Panic) => panic!("the source has a fault"),
            (None, End::Never) => Some(Ok(batches[0].clone())),
            (None, End::Waits) => None,
        };
        let batches = futures::stream::iter((0..).map_while(batch));
        let batches = match end {
            End::Waits => batches.chain(futures::stream::pending()).boxed(),
            _ => batches.boxed(),
        };
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches))
    }
}

/// Rows of numbers in a range; `k` has few values, `s` some.
fn rows(range: std::ops::Range<i64>, null: Option<i64>) -> RecordBatch {
    let some = |row: i64| null.is_none_or(|every| row % every != 0);
    let n = Int64Array::from_iter(range.clone().map(|row| some(row).then_some(row)));
    let k = Int32Array::from_iter_values(range.clone().map(|row| (row % 7) as i32));
    let x =
        Float64Array::from_iter(range.clone().map(|row| some(row + 1).then_some(row as f64 / 4.0)));
    let s = StringArray::from_iter(
        range.map(|row| some(row + 2).then(|| format!("string number {}", row % 50))),
    );
    let schema = Schema::new(vec![
        Field::new("n", DataType::Int64, true),
        Field::new("k", DataType::Int32, false),
        Field::new("x", DataType::Float64, true),
        Field::new("s", DataType::Utf8, true),
    ]);
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(n), Arc::new(k), Arc::new(x), Arc::new(s)])
        .expect("columns")
}

fn register(session: &Session, name: &str, provider: Arc<dyn TableProvider>) {
    session.context().register_table(name, provider).expect("a catalog");
}

fn both(pair: &Pair, name: &str, provider: &Arc<Table>) {
    for session in [&pair.cpu, &pair.device] {
        register(session, name, provider.clone());
    }
}

#[test]
fn rows_that_change_are_read_anew_and_do_not_stay() {
    let pair = Pair::new().and("own", vec![rows(0..60, None)]);
    let table = Table::plain(vec![vec![rows(0..100, None)]]);
    both(&pair, "t", &table);
    pair.check("SELECT count(*) FROM own WHERE n < 10");
    run(&pair.device, "SELECT * FROM own").expect("it is read");
    let used = pair.gpu().memory().used;
    for (at, partitions) in [
        vec![vec![rows(0..100, None)]],
        // Out of order, below and beyond what there was, with nulls.
        vec![vec![rows(5000..5050, Some(3)), rows(0..30, None)], vec![rows(-700..-650, Some(2))]],
        vec![vec![rows(0..1, None)], vec![]],
        vec![vec![rows(0..0, None)]],
        vec![vec![rows(1..300, Some(9))], vec![rows(300..310, None)], vec![rows(-5..0, None)]],
    ]
    .into_iter()
    .enumerate()
    {
        table.set(partitions);
        for sql in [
            "SELECT * FROM t",
            "SELECT count(*), count(n), sum(n), min(n), max(s), sum(x) FROM t",
            "SELECT k, count(*), sum(x), max(s) FROM t GROUP BY k",
            "SELECT n, x FROM t WHERE x > 2 ORDER BY n DESC",
            "SELECT t.n, own.s FROM t JOIN own ON t.n = own.n",
            "SELECT count(*) FROM t a JOIN t b ON a.n = b.n + 1",
        ] {
            let scans = table.scans.load(Relaxed);
            let (expected, found) = (run(&pair.cpu, sql), run(&pair.device, sql));
            let (expected, found) =
                (expected.expect("the CPU answers"), found.expect("the device answers"));
            assert!(found.is_on_device(), "{sql}");
            assert!(table.scans.load(Relaxed) >= scans + 2, "{sql} has read {at} again");
            pair.rows_agree(&expected, &found, sql);
        }
        assert_eq!(pair.gpu().memory().used, used, "something stays of {at}");
    }
}

#[test]
fn filters_and_limits_are_applied_by_who_took_them() {
    let parts =
        || vec![vec![rows(0..80, None)], vec![rows(80..200, Some(5)), rows(200..220, None)]];
    for push_down in [PushDown::Exact, PushDown::Inexact, PushDown::Unsupported] {
        let pair = Pair::new();
        let table = Table::new(parts(), push_down.clone(), End::Well);
        both(&pair, "t", &table);
        for sql in [
            // The column of the filter is not wanted otherwise.
            "SELECT s FROM t WHERE n > 100",
            "SELECT count(*) FROM t WHERE x < 12.5 AND k IN (1, 3)",
            "SELECT k, sum(n) FROM t WHERE s LIKE '%1' GROUP BY k",
            // Two scans of one table, and of the same columns.
            "SELECT n FROM t WHERE k = 1 UNION ALL SELECT n FROM t WHERE k = 2",
            "SELECT a.n, b.n FROM t a JOIN t b ON a.n = b.n + 7 WHERE a.k = 3 AND b.x > 5",
            "SELECT n FROM t WHERE s IS NULL",
        ] {
            // Where the provider leaves out rows, there may be nothing left for kernels.
            assert!(matches!(pair.agreement(sql), Agreement::Rows(1..)), "{sql}");
        }
        assert_eq!(
            table.filters.load(Relaxed) > 0,
            push_down != PushDown::Unsupported,
            "{push_down:?}"
        );
        let first: Vec<Cell> = (0..7).map(Cell::Int).collect();
        for session in [&pair.cpu, &pair.device] {
            let limits = table.limits.load(Relaxed);
            let found = Rows::of(&run(session, "SELECT n FROM t LIMIT 7").expect("rows"));
            assert_eq!(found.rows.concat(), first, "{push_down:?}");
            assert!(table.limits.load(Relaxed) > limits, "{push_down:?}");
            // Two scans of one column: one wants some of its rows, the other all.
            let both =
                "SELECT count(n) FROM (SELECT n FROM t LIMIT 7) UNION ALL SELECT count(n) FROM t";
            let mut found = Rows::of(&run(session, both).expect("rows")).rows.concat();
            found.sort_by_key(|cell| format!("{cell:?}"));
            assert_eq!(found, [Cell::Int(196), Cell::Int(7)], "{push_down:?}");
        }
    }
}

#[test]
fn rows_come_in_the_order_of_partitions() {
    let pair = Pair::new();
    let parts = (0..6).map(|part| {
        vec![rows(part * 40..part * 40 + 25, None), rows(part * 40 + 25..part * 40 + 40, None)]
    });
    both(&pair, "t", &Table::plain(parts.collect()));
    let found = Rows::of(&run(&pair.device, "SELECT n FROM t").expect("rows"));
    assert_eq!(found.rows.concat(), (0..240).map(Cell::Int).collect::<Vec<_>>());
}

#[test]
fn providers_that_fail_are_errors_and_the_session_goes_on() {
    for (end, words) in [(End::Error, "the source is gone"), (End::Panic, "the source has a fault")]
    {
        let pair = Pair::new();
        both(
            &pair,
            "t",
            &Table::new(
                vec![vec![rows(0..10, None)], vec![rows(0..5, None)]],
                PushDown::Exact,
                end,
            ),
        );
        both(&pair, "good", &Table::plain(vec![vec![rows(0..10, None)]]));
        for session in [&pair.cpu, &pair.device] {
            for sql in ["SELECT * FROM t", "SELECT k, sum(n) FROM t WHERE n > 2 GROUP BY k"] {
                let error = run(session, sql).and_then(|frame| frame.to_arrow()).expect_err(sql);
                assert!(error.to_string().contains(words), "{error}");
                assert!(matches!(error.kind(), ErrorKind::Plan { .. }), "{error:?}");
            }
            assert_eq!(scalar(session, "SELECT sum(n) FROM good"), Cell::Int(45));
        }
        let error = run(&pair.device, "SELECT sum(n) FROM t").expect_err("it fails");
        assert!(end == End::Error || error.to_string().contains("table t"), "{error}");
    }
}

#[test]
fn a_provider_that_waits_is_interrupted() -> Result<()> {
    let pair = Pair::new();
    both(&pair, "t", &Table::new(vec![vec![rows(0..10, None)]], PushDown::Exact, End::Waits));
    both(&pair, "good", &Table::plain(vec![vec![rows(0..10, None)]]));
    let used = pair.gpu().memory().used;
    for session in [&pair.cpu, &pair.device] {
        session.set_statement_timeout(Some(Duration::from_millis(100)));
        let error = run(session, "SELECT sum(n) FROM t").expect_err("it waits for ever");
        assert!(matches!(error.kind(), ErrorKind::Interrupted { timeout: Some(_) }), "{error:?}");
        session.set_statement_timeout(None);
        assert_eq!(scalar(session, "SELECT sum(n) FROM good"), Cell::Int(45));
    }
    assert_eq!(pair.gpu().memory().used, used);
    Ok(())
}

/// A provider that says other things of its rows than they are.
#[test]
fn rows_are_those_of_their_schema() {
    let batch = rows(0..10, Some(2));
    let schema = batch.schema();
    let said = |at: usize, field: Field| {
        let mut fields = schema.fields().to_vec();
        fields[at] = Arc::new(field);
        Arc::new(Schema::new(fields))
    };
    let decimals =
        Decimal128Array::from(vec![100_000]).with_precision_and_scale(30, 2).expect("a type");
    let beyond = decimals
        .into_data()
        .into_builder()
        .data_type(DataType::Decimal128(4, 2))
        .build()
        .expect("decimals");
    let beyond =
        RecordBatch::try_from_iter([("n", Arc::new(Decimal128Array::from(beyond)) as ArrayRef)]);
    let beyond = beyond.expect("a column");
    for (schema, rows, words) in [
        (said(0, Field::new("n", DataType::Int64, false)), batch.clone(), "no nulls"),
        (said(1, Field::new("k", DataType::Int64, false)), batch.clone(), "Int64"),
        (beyond.schema(), beyond, "100000"),
    ] {
        let session = builder().strict(true).build().expect("the device opens");
        let table = Table {
            schema,
            ..Arc::into_inner(Table::plain(vec![vec![rows]])).expect("nobody else has it")
        };
        register(&session, "t", Arc::new(table));
        let error = run(&session, "SELECT n, count(*) FROM t GROUP BY n")
            .and_then(|frame| frame.to_arrow());
        let error = match error {
            Err(error) => error,
            Ok(_) => run(&session, "SELECT * FROM t").expect_err(words),
        };
        assert!(error.to_string().contains(words), "{error}");
        assert!(!matches!(error.kind(), ErrorKind::Internal { .. }), "{error:?}");
    }
}

#[test]
fn rows_that_do_not_end_are_the_cpus() -> Result<()> {
    let endless = || Table::new(vec![vec![rows(0..10, None)]], PushDown::Unsupported, End::Never);
    let strict = builder().strict(true).build()?;
    register(&strict, "t", endless());
    let error = run(&strict, "SELECT n FROM t LIMIT 5").expect_err("the device wants all rows");
    assert!(
        matches!(error.kind(), ErrorKind::Unsupported { .. })
            && error.to_string().contains("do not end"),
        "{error}"
    );
    let session = builder().build()?;
    register(&session, "t", endless());
    assert_eq!(run(&session, "SELECT n FROM t LIMIT 15")?.num_rows(), 15);
    assert!(session.take_fallback_reasons().iter().any(|reason| reason.contains("do not end")));
    Ok(())
}

#[test]
fn the_providers_of_datafusion() -> Result<()> {
    let pair = Pair::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    for session in [&pair.cpu, &pair.device] {
        let context = session.context();
        let memory = MemTable::try_new(
            rows(0..1, None).schema(),
            vec![vec![rows(0..50, Some(4))], vec![rows(50..90, None)]],
        );
        context.register_table("memory", Arc::new(memory.expect("a table"))).expect("a catalog");
        let file = data("tpch/nation.parquet");
        let registered =
            context.register_parquet("files", file.to_str().expect("a path"), Default::default());
        runtime.block_on(registered).expect("the file is there");
        let view = runtime
            .block_on(context.sql("SELECT k, n * 2 AS m FROM memory WHERE n > 10"))
            .expect("a query");
        let view = ViewTable::new(view.logical_plan().clone(), None);
        context.register_table("seen", Arc::new(view)).expect("a catalog");
    }
    pair.check_all(&[
        "SELECT k, sum(n), count(*) FROM memory GROUP BY k",
        "SELECT n_regionkey, count(*), min(n_name) FROM files WHERE n_nationkey > 3 GROUP BY n_regionkey",
        "SELECT k, sum(m) FROM seen GROUP BY k",
        "SELECT count(*), sum(generate_series) FROM generate_series(1, 1000) WHERE generate_series % 3 = 0",
        "SELECT n_name, s FROM files JOIN memory ON n_nationkey = n",
    ]);
    // A recursive query reads its own last step, which only the CPU knows.
    let mixed = builder().build()?;
    let cpu = Session::builder().device(DeviceChoice::Cpu).build()?;
    for session in [&mixed, &cpu] {
        register(session, "t", Table::plain(vec![vec![rows(0..30, None)]]));
        let sql = "WITH RECURSIVE steps AS (SELECT 1 AS n UNION ALL SELECT steps.n + 3 FROM steps JOIN t ON t.n = steps.n) \
                   SELECT count(*) FROM steps";
        assert_eq!(scalar(session, sql), Cell::Int(11));
    }
    Ok(())
}
