//! Sessions of DataFusion's that have a device: they answer what they answer without one.

#[cfg(feature = "proto")]
mod codec;
mod floats;
mod foreign;
mod functions;
mod stages;

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use warpframe::arrow::compute::concat_batches;
use warpframe::arrow::record_batch::RecordBatch;
use warpframe::device::MemoryLimit;
use warpframe::plugin::{Plugin, WithWarpframe};

use crate::differential::{Rows, builder, data, rows_of};
use crate::slt_datafusion::orders_its_rows;

/// A session of DataFusion's without a device and one with.
pub(crate) struct Both {
    pub(crate) stock: SessionContext,
    pub(crate) ours: SessionContext,
    pub(crate) plugin: Plugin,
    runtime: tokio::runtime::Runtime,
}

impl Both {
    pub(crate) fn new() -> Both {
        Both::with(Plugin::new(builder().strict(false)).expect("the device opens"), 4)
    }

    pub(crate) fn with(plugin: Plugin, partitions: usize) -> Both {
        // The sample's files are small.
        let config = || {
            let config = SessionConfig::new().with_target_partitions(partitions);
            config.with_repartition_file_min_size(0)
        };
        let state = SessionStateBuilder::new_with_default_features()
            .with_config(config())
            .with_plugin(&plugin)
            .build();
        Both {
            stock: SessionContext::new_with_config(config()),
            ours: SessionContext::new_with_state(state),
            plugin,
            runtime: tokio::runtime::Runtime::new().expect("a runtime"),
        }
    }

    /// Registers the Parquet files of a folder with both, by their names.
    pub(crate) fn files(self, folder: &std::path::Path) -> Both {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|extension| extension != "parquet") {
                continue;
            }
            let (name, path) =
                (path.file_stem().expect("a name").to_string_lossy(), path.to_string_lossy());
            for context in [&self.stock, &self.ours] {
                let registered = context.register_parquet(&*name, &*path, Default::default());
                self.runtime.block_on(registered).expect("a table");
            }
        }
        self
    }

    pub(crate) fn run(
        &self,
        context: &SessionContext,
        sql: &str,
    ) -> Result<Vec<RecordBatch>, String> {
        let ran = async { context.sql(sql).await?.collect().await };
        self.runtime.block_on(ran).map_err(|error| error.strip_backtrace())
    }

    /// Runs a statement in both.
    pub(crate) fn execute(&self, sql: &str) {
        for context in [&self.stock, &self.ours] {
            self.run(context, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }

    /// The physical plan of a query in the session with the device.
    pub(crate) fn plan(&self, sql: &str) -> Arc<dyn ExecutionPlan> {
        let planned = async { self.ours.sql(sql).await?.create_physical_plan().await };
        self.runtime.block_on(planned).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Runs a query in both. Whether the device ran all of it: its plan is stages, exchanges and
    /// scans, and no stage went to the CPU.
    pub(crate) fn check(&self, sql: &str) -> bool {
        self.check_in_order(sql, orders_its_rows(&sql.to_lowercase()))
    }

    /// As `check`, of rows that have an order or have none.
    fn check_in_order(&self, sql: &str, ordered: bool) -> bool {
        let expected = self.run(&self.stock, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let plan = self.plan(sql);
        let device = self.plugin.device().expect("a device");
        let before = device.counters();
        let ran = self.runtime.block_on(collect(plan.clone(), self.ours.task_ctx()));
        let text = displayable(plan.as_ref()).indent(false).to_string();
        let found = ran.unwrap_or_else(|error| panic!("{sql}: {error}\n{text}"));
        let now = device.counters();
        let rows = |batches: &[RecordBatch]| Rows {
            types: vec![],
            rows: batches.iter().flat_map(rows_of).collect(),
        };
        let difference = rows(&expected).difference(&rows(&found), ordered);
        assert!(difference.is_none(), "{sql}\n{}\n{text}", difference.unwrap_or_default());
        let types = |batches: &[RecordBatch]| batches.first().map(|batch| batch.schema());
        if let (Some(expected), Some(found)) = (types(&expected), types(&found)) {
            let of = |schema: &warpframe::arrow::datatypes::Schema| {
                let field = |field: &Arc<warpframe::arrow::datatypes::Field>| {
                    (field.name().clone(), field.data_type().clone())
                };
                schema.fields().iter().map(field).collect::<Vec<_>>()
            };
            assert_eq!(of(&expected), of(&found), "{sql}");
        }
        let is_ours = |line: &str| {
            let exchanges =
                ["RepartitionExec", "CoalescePartitionsExec", "SortPreservingMergeExec"];
            ["DeviceStageExec", "DataSourceExec", "MemoryScan"]
                .iter()
                .chain(&exchanges)
                .any(|name| line.trim_start().starts_with(name))
                || line.trim_start().starts_with("ProjectionExec")
        };
        let whole = now.launches > before.launches
            && now.fallbacks == before.fallbacks
            && text.lines().all(is_ours);
        if !whole {
            println!("not whole on the device: {sql}\n{:?}\n{text}", self.plugin.take_reasons());
        }
        whole
    }
}

pub(crate) fn tpch(number: u32) -> String {
    let path = data(&format!("queries/q{number}.sql"));
    let text = std::fs::read_to_string(path).expect("the sample is there");
    text.trim().trim_end_matches(';').to_string()
}

#[test]
fn tpch_runs_whole_on_the_device_by_one_line() {
    let both = Both::new().files(&data("tpch"));
    let left: Vec<u32> = (1..=22).filter(|number| !both.check(&tpch(*number))).collect();
    assert_eq!(left, [0u32; 0], "parts of these queries ran on the CPU");
}

#[test]
fn columns_stay_on_the_device() {
    let both = Both::new().files(&data("tpch"));
    let sql = "SELECT l_returnflag, sum(l_quantity) FROM lineitem GROUP BY l_returnflag";
    assert!(both.check(sql));
    let device = both.plugin.device().expect("a device");
    let before = device.counters().bytes_uploaded;
    assert!(both.check(sql));
    let uploaded = device.counters().bytes_uploaded - before;
    assert!(uploaded < 10_000, "{uploaded} bytes were read again");
}

#[test]
fn batches_in_memory_stay_on_the_device_until_their_table_goes() {
    let both = Both::new();
    both.execute("CREATE TABLE t AS SELECT value AS i, value % 7 AS g FROM range(0, 100000)");
    let sql = "SELECT g, sum(i) FROM t GROUP BY g";
    assert!(both.check(sql));
    let device = both.plugin.device().expect("a device");
    let before = device.counters().bytes_uploaded;
    assert!(both.check(sql));
    assert!(device.counters().bytes_uploaded - before < 10_000);
    both.execute("INSERT INTO t VALUES (5, 77)");
    assert!(both.check(sql), "after an INSERT");
    both.execute("DROP TABLE t");
    both.execute("CREATE TABLE t AS SELECT value AS i, value % 5 AS g FROM range(0, 1000)");
    assert!(both.check(sql), "another table of the name");
}

/// Of tables in memory, and of rows that an exchange brings.
#[test]
fn rows_that_find_no_memory_come_from_the_host() {
    for (limit, stages) in [(400 << 10, false), (150 << 10, true)] {
        let device = builder().strict(true).memory_limit(MemoryLimit::Bytes(limit));
        let plugin = Plugin::new(device).expect("the device opens");
        let both = Both::with(plugin.with_stages(stages).with_broadcast_limit(0), 3);
        // One batch, which is larger than the device.
        let rows = "SELECT value AS i, value % 7000 AS g FROM range(0, 60000)";
        let rows = both.run(&both.stock, rows).expect("rows");
        let rows = concat_batches(&rows[0].schema(), &rows).expect("a batch");
        for context in [&both.stock, &both.ours] {
            context.register_batch("t", rows.clone()).expect("a table");
        }
        for sql in [
            "SELECT g, sum(i), count(*) FROM t GROUP BY g",
            "SELECT a.g, count(*) FROM t a JOIN t b ON a.i = b.g GROUP BY a.g",
        ] {
            assert!(both.check(sql), "{sql}");
        }
        assert!(both.plugin.device().expect("a device").counters().parts_run > 0, "it fits");
    }
}

#[test]
fn csv_files_are_read_as_by_datafusion() {
    let both = Both::new();
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let text = "i,s,f,d,b,at\n1,a,1.5,2024-02-29,true,2024-02-29T12:00:00\n\
                2,\"\",-.5,2024-03-01,FALSE,2024-02-29 12:00:01.5\n\
                ,,,,,\n-4,\"x, \"\"y\"\"\",1e3,1999-12-31,true,2024-01-01\n5,NULL,inf,,,\n";
    let path = write("a.csv", text);
    both.execute(&format!("CREATE EXTERNAL TABLE a STORED AS CSV LOCATION '{path}'"));
    for sql in [
        "SELECT s, count(*), sum(i), max(d) FROM a GROUP BY s ORDER BY s",
        "SELECT i, s, s IS NULL, f * 2, d, b FROM a WHERE i IS NULL OR i <> 0 ORDER BY i",
        "SELECT count(*) FROM a WHERE f > 1",
        "SELECT count(s), count(b), min(at), max(at) FROM a WHERE i > 0",
    ] {
        assert!(both.check(sql), "{sql} was left to the CPU");
    }
    let sum = "SELECT sum(i), count(*) FROM a WHERE i <> 3";
    assert!(both.check(sum));
    let device = both.plugin.device().expect("a device");
    let before = device.counters().bytes_uploaded;
    assert!(both.check(sum));
    assert!(device.counters().bytes_uploaded - before < 10_000, "columns stay");
    // What is not wholly of its column's type is DataFusion's to read.
    let path = write("b.csv", "0007|1.239|yes\n+8|2|no\n1|0.001|'n o'\n");
    both.execute(&format!(
        "CREATE EXTERNAL TABLE b (i BIGINT, m DECIMAL(9, 2), s VARCHAR) STORED AS CSV
         LOCATION '{path}'
         OPTIONS (format.has_header false, format.delimiter '|', format.quote '''')"
    ));
    assert!(both.check("SELECT count(*), max(s) FROM b WHERE s <> 'x'"));
    both.check("SELECT sum(i) FROM b WHERE s <> 'x'");
    both.check("SELECT sum(m), min(m) FROM b WHERE s <> 'x'");
    // Columns that are said to have no nulls.
    let path = write("c.csv", "1,1\n2,3\n200,10\n255,10\n");
    both.execute(&format!(
        "CREATE EXTERNAL TABLE c (a TINYINT UNSIGNED NOT NULL, b TINYINT UNSIGNED NOT NULL)
         STORED AS CSV LOCATION '{path}' OPTIONS (format.has_header false)"
    ));
    both.check("SELECT a + b AS r, count(*) AS n FROM c WHERE a > 1 GROUP BY a + b ORDER BY r");
    let path = folder.path().join("d.parquet").display().to_string();
    both.run(&both.stock, &format!("COPY (SELECT 1 AS a UNION ALL SELECT 2) TO '{path}'"))
        .expect("written");
    let table = "CREATE EXTERNAL TABLE d (a BIGINT NOT NULL) STORED AS PARQUET LOCATION";
    both.execute(&format!("{table} '{path}'"));
    both.check("SELECT sum(a) AS s FROM d WHERE a <> 3");
}

#[test]
fn files_that_change_are_read_anew() {
    let both = Both::new();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.parquet");
    let write = |rows: usize| {
        let sql = format!(
            "COPY (SELECT value AS i FROM range(0, {rows})) TO '{}' STORED AS PARQUET",
            path.display()
        );
        both.run(&both.stock, &sql).expect("written");
    };
    write(10);
    let sql = format!("SELECT count(*), sum(i) FROM '{}'", path.display());
    let both = Both {
        stock: both.stock.clone().enable_url_table(),
        ours: both.ours.clone().enable_url_table(),
        plugin: both.plugin.clone(),
        runtime: tokio::runtime::Runtime::new().expect("a runtime"),
    };
    assert!(both.check(&sql));
    std::thread::sleep(std::time::Duration::from_millis(20));
    write(1000);
    let rows = both.run(&both.ours, &sql).expect("rows");
    assert_eq!(rows_of(&rows[0]), rows_of(&both.run(&both.stock, &sql).expect("rows")[0]));
}

#[test]
fn the_process_shares_one_device() {
    let state = SessionStateBuilder::new_with_default_features();
    // The environment of the tests names a device.
    let state = state.with_warpframe().expect("the device opens").build();
    let context = SessionContext::new_with_state(state);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime of one thread");
    let sql = "SELECT sum(value) AS s FROM range(0, 100) WHERE value % 2 = 0";
    let rows = runtime.block_on(async { context.sql(sql).await?.collect().await }).expect("rows");
    assert_eq!(rows[0].num_rows(), 1);
}
