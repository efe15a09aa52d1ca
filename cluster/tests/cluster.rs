//! A cluster of processes on this machine, whose answers are DataFusion's.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::TryStreamExt;
use tempfile::TempDir;
use tokio::sync::Mutex;
use warpframe_cluster::client::{Cluster, PlanOptions};

const PATIENCE: Duration = Duration::from_secs(120);
const TABLES: [&str; 8] =
    ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"];
/// Of the tests one runs at a time: each has several processes.
static TURN: Mutex<()> = Mutex::const_new(());

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../data").join(name)
}

fn table(name: &str) -> PathBuf {
    data(&format!("tpch/{name}.parquet"))
}

fn tpch(number: u32) -> String {
    let text = std::fs::read_to_string(data(&format!("queries/q{number}.sql"))).expect("a query");
    text.trim().trim_end_matches(';').into()
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_warpframe-cluster"))
}

/// Ports that nobody listens on.
fn free_ports<const N: usize>() -> [u16; N] {
    // All are taken at once, so that they differ.
    let taken = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    taken.each_ref().map(|port| port.local_addr().expect("an address").port())
}

/// A scheduler and executors. They end with this process: their standard input closes.
struct Processes {
    /// The scheduler first.
    children: Vec<Child>,
    logs: TempDir,
    port: u16,
}

impl Processes {
    /// An executor for each of these devices.
    fn new(devices: &[&str]) -> Processes {
        let [port] = free_ports();
        let logs = TempDir::new().expect("a folder");
        let mut all = Processes { children: vec![], logs, port };
        let scheduler = format!("{}", all.port);
        all.start(&["scheduler", "--bind-port", &scheduler]);
        all.wait_for(0, "listening on");
        for device in devices {
            all.start_executor(device);
        }
        all
    }

    /// Starts an executor and waits until the scheduler knows it. The executor's number.
    fn start_executor(&mut self, device: &str) -> usize {
        let [rows, calls] = free_ports().map(|port| port.to_string());
        let scheduler = self.port.to_string();
        // It goes with the logs, whatever becomes of the executor.
        let work_dir = self.logs.path().to_str().expect("a path").to_string();
        self.start(&[
            "executor",
            "--device",
            device,
            "--scheduler-port",
            &scheduler,
            "--bind-port",
            &rows,
            "--grpc-port",
            &calls,
            "--work-dir",
            &work_dir,
        ]);
        let number = self.children.len() - 1;
        self.wait_for(number, "registration succeed");
        number
    }

    fn log(&self, number: usize) -> PathBuf {
        self.logs.path().join(format!("{number}.log"))
    }

    fn text(&self, number: usize) -> String {
        std::fs::read_to_string(self.log(number)).expect("a log")
    }

    fn start(&mut self, arguments: &[&str]) {
        let log = File::create(self.log(self.children.len())).expect("a log");
        let child = program()
            .args(arguments)
            .arg("--until-stdin-closes")
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn();
        self.children.push(child.expect("a process"));
    }

    fn wait_for(&self, number: usize, told: &str) {
        let begun = Instant::now();
        while !self.text(number).contains(told) {
            assert!(begun.elapsed() < PATIENCE, "{told}: {}", self.text(number));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills an executor as nothing can prepare for (SIGKILL).
    fn kill(&mut self, number: usize) {
        self.children[number].kill().expect("it runs");
        self.children[number].wait().expect("it ends");
    }

    async fn cluster(&self, broadcast_limit: u64) -> Cluster {
        // The sample's files are small.
        let small = ("datafusion.optimizer.repartition_file_min_size".into(), "0".into());
        let options = PlanOptions { partitions: 4, broadcast_limit, settings: vec![small] };
        let url = format!("df://127.0.0.1:{}", self.port);
        let cluster = Cluster::new(&url, &options).expect("a cluster");
        for name in TABLES {
            cluster.register_parquet(name, &table(name)).await.expect("a table");
        }
        cluster
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            (0..self.children.len()).for_each(|number| {
                let text = self.text(number);
                let last: Vec<&str> = text.lines().rev().take(40).collect();
                eprintln!("--- {number}");
                last.iter().rev().for_each(|line| eprintln!("{line}"));
            });
        }
    }
}

/// DataFusion on the CPU, in this process.
async fn stock() -> SessionContext {
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    for name in TABLES {
        let path = table(name);
        let path = path.to_str().expect("a path");
        context.register_parquet(name, path, Default::default()).await.expect("a table");
    }
    context
}

fn texts(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = vec![];
    for batch in batches {
        let columns = batch.columns().iter();
        let columns: Vec<_> = columns
            .map(|column| ArrayFormatter::try_new(column, &options).expect("a formatter"))
            .collect();
        rows.extend((0..batch.num_rows()).map(|row| {
            columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>()
        }));
    }
    rows
}

/// Sums of floats differ in their last digits with the number of parts.
fn alike(one: &str, other: &str) -> bool {
    one == other
        || match (one.parse::<f64>(), other.parse::<f64>()) {
            (Ok(one), Ok(other)) => (one - other).abs() <= 1e-9 * one.abs().max(other.abs()),
            _ => false,
        }
}

async fn check(stock: &SessionContext, cluster: &Cluster, sql: &str, sorted: bool) {
    let begun = Instant::now();
    let ran = async { cluster.sql(sql).await?.try_collect::<Vec<_>>().await };
    let found = tokio::time::timeout(PATIENCE, ran).await;
    let found = found.unwrap_or_else(|_| panic!("it takes too long: {sql}"));
    let mut found = texts(&found.unwrap_or_else(|error| panic!("{sql}: {error}")));
    let expected = async { stock.sql(sql).await?.collect().await };
    let mut expected = texts(&expected.await.expect("DataFusion's answer"));
    println!(
        "{} rows in {:?}: {}",
        found.len(),
        begun.elapsed(),
        sql.lines().next().unwrap_or(sql)
    );
    if !sorted {
        found.sort();
        expected.sort();
    }
    assert_eq!(found.len(), expected.len(), "{sql}");
    for (found, expected) in found.iter().zip(&expected) {
        let same = found.len() == expected.len()
            && found.iter().zip(expected).all(|(one, other)| alike(one, other));
        assert!(same, "{found:?} instead of {expected:?}: {sql}");
    }
}

/// How many tasks an executor ran, by its log.
fn tasks(log: &str) -> usize {
    log.matches("Finished task").count()
}

/// How many it began.
fn begun(log: &str) -> usize {
    log.matches("Execute task").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_executors_answer_as_datafusion_does() {
    let _turn = TURN.lock().await;
    let (stock, processes) = (stock().await, Processes::new(&["sim", "sim"]));
    let by_broadcasts = processes.cluster(1 << 30).await;
    let by_exchanges = processes.cluster(0).await;
    // All of TPC-H both ways with WARPFRAME_ALL_QUERIES=1.
    let all = std::env::var_os("WARPFRAME_ALL_QUERIES").is_some();
    let samples = [(&by_broadcasts, [1, 5, 13, 22]), (&by_exchanges, [3, 9, 16, 18])];
    for (cluster, sample) in samples {
        for number in if all { (1..=22).collect() } else { sample.to_vec() } {
            check(&stock, cluster, &tpch(number), true).await;
        }
    }
    // Rows that only the first task gets, and those that all tasks get.
    for sql in [
        "SELECT o_orderkey AS k FROM orders UNION ALL SELECT sum(l_orderkey) FROM lineitem",
        "SELECT count(*) FROM (SELECT o_orderkey FROM orders UNION ALL VALUES (1), (2))",
        "SELECT count(*) FROM orders CROSS JOIN (SELECT max(c_custkey) FROM customer)",
        "SELECT o_orderstatus, median(o_totalprice) FROM orders GROUP BY 1",
        "SELECT 1 + 1",
    ] {
        check(&stock, &by_exchanges, sql, false).await;
    }
    let sql = "SELECT o_orderkey FROM orders ORDER BY o_totalprice DESC, o_orderkey";
    check(&stock, &by_exchanges, sql, true).await;
    for number in [1, 2] {
        assert!(tasks(&processes.text(number)) > 0, "executor {number} had nothing to do");
    }
    let scheduled = processes.text(0);
    assert!(scheduled.contains("Launching multi task on executor \"sim@127.0.0.1"), "{scheduled}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_is_told() {
    let _turn = TURN.lock().await;
    let (stock, processes) = (stock().await, Processes::new(&["sim", "cpu"]));
    let cluster = processes.cluster(0).await;
    check(&stock, &cluster, &tpch(3), true).await;
    (1..=2).for_each(|number| assert!(tasks(&processes.text(number)) > 0, "{number} does nothing"));
    let fails = async {
        let rows = cluster.sql("SELECT sum(1 / (o_orderkey - o_orderkey)) FROM orders").await?;
        rows.try_collect::<Vec<_>>().await
    };
    let failed = tokio::time::timeout(PATIENCE, fails).await.expect("it ends");
    let message = failed.expect_err("it divides by zero").to_string();
    assert_eq!(message, "Execution error: Arrow error: Divide by zero error");
    for sql in ["COPY nation TO 'n.parquet'", "EXPLAIN ANALYZE SELECT count(*) FROM orders"] {
        let error = cluster.sql(sql).await.err().expect("it is refused").to_string();
        assert!(error.contains("not done by clusters"), "{error}");
    }
    check(&stock, &cluster, &tpch(1), true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_lost_runs_again() {
    let _turn = TURN.lock().await;
    let (stock, mut processes) = (stock().await, Processes::new(&["sim", "sim"]));
    let cluster = processes.cluster(0).await;
    check(&stock, &cluster, &tpch(3), true).await;
    // Between queries, and with a task under way while rows of others wait to be fetched.
    processes.kill(1);
    check(&stock, &cluster, &tpch(3), true).await;
    let another = processes.start_executor("sim");
    let sql = tpch(21);
    let in_midst = async {
        while begun(&processes.text(another)) < 4 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        processes.kill(another);
    };
    let in_midst = tokio::time::timeout(PATIENCE, in_midst);
    let ((), killed) = tokio::join!(check(&stock, &cluster, &sql, true), in_midst);
    killed.expect("it had tasks");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_shows_rows_and_stages() {
    let _turn = TURN.lock().await;
    let processes = Processes::new(&["sim"]);
    let url = format!("df://127.0.0.1:{}", processes.port);
    let run = |sql: &str| {
        let output = program()
            .args(["sql", "--cluster", &url, "--partitions", "2", "--format", "csv", "-c", sql])
            .args(["--broadcast-limit", "0", "--set"])
            .arg("datafusion.optimizer.repartition_file_min_size=0")
            .args([table("nation"), table("orders"), table("customer")])
            .output()
            .expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    let sql = "SELECT n_regionkey AS r, count(*) AS n FROM nation GROUP BY 1 ORDER BY 1";
    let (is_well, rows, told) = run(sql);
    assert!(is_well && rows == "r,n\n0,5\n1,5\n2,5\n3,5\n4,5\n", "{rows}{told}");
    let sql = "EXPLAIN SELECT count(*) FROM orders JOIN customer ON o_custkey = c_custkey";
    let (is_well, plan, told) = run(sql);
    assert!(is_well && plan.contains("RepartitionExec: partitioning=Hash"), "{plan}{told}");
    assert!(plan.contains("DeviceStageExec: "), "{plan}");
    let (is_well, _, told) = run("SELECT nobody FROM nation");
    assert!(!is_well && told.contains("nobody"), "{told}");
    let taken = processes.port.to_string();
    for (device, port, why) in
        [("cpu", &*taken, "Address already in use"), ("cuda:0,1", "1", "one device")]
    {
        let output = program().args(["executor", "--device", device, "--bind-port", port]).output();
        let told = String::from_utf8_lossy(&output.expect("it runs").stderr).into_owned();
        assert!(told.contains(why), "{told}");
    }
}
