//! A cluster of processes on this machine: what sessions answer whose queries it runs is what they
//! answer on the CPU.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use warpframe::arrow::array::RecordBatch;
use warpframe::arrow::util::display::{ArrayFormatter, FormatOptions};
use warpframe::plugin::StageReport;
use warpframe::{DeviceChoice, ErrorKind, ExplainFormat, Fault, Session};
use warpframe_cluster::client::{ClusterOptions, OnCluster};

const PATIENCE: Duration = Duration::from_secs(120);
const TABLES: [&str; 8] =
    ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"];

/// Of the tests one runs at a time: each has several processes.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // One that failed is no reason for another to.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

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
        self.start_executor_with(device, &[])
    }

    fn start_executor_with(&mut self, device: &str, options: &[&str]) -> usize {
        let [rows, calls] = free_ports().map(|port| port.to_string());
        let scheduler = self.port.to_string();
        // It goes with the logs, whatever becomes of the executor.
        let work_dir = self.logs.path().to_str().expect("a path").to_string();
        let mut arguments = vec![
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
        ];
        arguments.extend(options);
        self.start(&arguments);
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

    fn url(&self) -> String {
        format!("df://127.0.0.1:{}", self.port)
    }

    /// A session on the cluster, with these tables.
    fn session_of(&self, folder: &Path, names: &[String], broadcast_limit: u64) -> Session {
        // The sample's files are small.
        let small = ("datafusion.optimizer.repartition_file_min_size".into(), "0".into());
        let options = ClusterOptions { partitions: 4, broadcast_limit, settings: vec![small] };
        let builder = Session::builder().cluster_with(&self.url(), &options).expect("a cluster");
        let session = builder.statement_timeout(PATIENCE).build().expect("a session");
        assert!(session.device().is_none() && session.cluster() == Some(&self.url()));
        register(&session, folder, names);
        session
    }

    /// A session on the cluster, with the sample's tables.
    fn session(&self, broadcast_limit: u64) -> Session {
        self.session_of(&data("tpch"), &TABLES.map(String::from), broadcast_limit)
    }
}

fn register(session: &Session, folder: &Path, names: &[String]) {
    for name in names {
        let path = folder.join(format!("{name}.parquet"));
        session.register_parquet(name, path).expect("a table");
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

/// A session of this process's CPU, with these tables.
fn on_cpu(folder: &Path, names: &[String]) -> Session {
    let session = Session::builder().device(DeviceChoice::Cpu).build().expect("a session");
    register(&session, folder, names);
    session
}

fn cpu() -> Session {
    on_cpu(&data("tpch"), &TABLES.map(String::from))
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

/// The rows of a query, and the names of its columns before them.
fn answer(session: &Session, sql: &str) -> warpframe::Result<Vec<Vec<String>>> {
    let frame = session.sql(sql)?.collect()?;
    let names = frame.schema().fields().iter().map(|field| field.name().clone()).collect();
    let mut rows = vec![names];
    rows.extend(texts(&frame.to_arrow()?));
    Ok(rows)
}

/// How two answers differ; `None` where they do not.
fn difference(cpu: &Session, cluster: &Session, sql: &str, sorted: bool) -> Option<String> {
    let begun = Instant::now();
    let (mut found, mut expected) = match (answer(cluster, sql), answer(cpu, sql)) {
        (Ok(found), Ok(expected)) => (found, expected),
        (Ok(_), Err(error)) => return Some(format!("it should fail: {error}")),
        (Err(error), Ok(_)) => return Some(format!("it fails: {error}")),
        // As a division by zero does in TPC-DS's q12.
        (Err(found), Err(expected)) => {
            let same =
                std::mem::discriminant(found.kind()) == std::mem::discriminant(expected.kind());
            return (!same).then(|| format!("it fails: {found}, instead of {expected}"));
        }
    };
    let first = sql.lines().next().unwrap_or(sql);
    println!("{} rows in {:?}: {first}", found.len() - 1, begun.elapsed());
    if !sorted {
        found[1..].sort();
        expected[1..].sort();
    }
    if found.len() != expected.len() {
        return Some(format!("{} rows instead of {}", found.len() - 1, expected.len() - 1));
    }
    let differ = |(found, expected): (&Vec<String>, &Vec<String>)| {
        let same = found.len() == expected.len()
            && found.iter().zip(expected).all(|(one, other)| alike(one, other));
        (!same).then(|| format!("{found:?} instead of {expected:?}"))
    };
    found.iter().zip(&expected).find_map(differ)
}

fn check(cpu: &Session, cluster: &Session, sql: &str, sorted: bool) {
    let differ = difference(cpu, cluster, sql, sorted);
    assert!(differ.is_none(), "{}: {sql}", differ.unwrap_or_default());
    let reasons = cluster.take_fallback_reasons();
    assert!(reasons.is_empty(), "{reasons:?}: {sql}");
}

/// How many tasks an executor ran, by its log.
fn tasks(log: &str) -> usize {
    log.matches("Finished task").count()
}

/// How many it began.
fn begun(log: &str) -> usize {
    log.matches("Execute task").count()
}

#[test]
fn two_executors_answer_as_the_cpu_does() {
    let _turn = turn();
    let (cpu, processes) = (cpu(), Processes::new(&["sim", "sim"]));
    let by_broadcasts = processes.session(1 << 30);
    let by_exchanges = processes.session(0);
    // All of TPC-H both ways with WARPFRAME_ALL_QUERIES=1.
    let all = std::env::var_os("WARPFRAME_ALL_QUERIES").is_some();
    let samples = [(&by_broadcasts, [1, 5, 13, 22]), (&by_exchanges, [3, 9, 16, 18])];
    for (cluster, sample) in samples {
        for number in if all { (1..=22).collect() } else { sample.to_vec() } {
            cluster.take_stage_runs();
            check(&cpu, cluster, &tpch(number), true);
            assert!(!cluster.take_stage_runs().is_empty(), "q{number} did not run there");
        }
    }
    // Rows that only the first task gets, and those that all tasks get.
    for sql in [
        "SELECT o_orderkey AS k FROM orders UNION ALL SELECT sum(l_orderkey) FROM lineitem",
        "SELECT count(*) FROM (SELECT o_orderkey FROM orders UNION ALL VALUES (1), (2))",
        "SELECT count(*) FROM orders CROSS JOIN (SELECT max(c_custkey) FROM customer)",
        "SELECT o_orderstatus, median(o_totalprice) FROM orders GROUP BY 1",
        // What sessions mean by SQL, and DataFusion does not.
        "SELECT n_regionkey AS r, list(n_name ORDER BY n_name)[1] AS first FROM nation GROUP BY ALL",
        "SELECT o_orderpriority[1:1] AS p, sum(o_totalprice)::BIGINT FROM orders GROUP BY 1",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9) SELECT count(*) FROM t",
        "SELECT n_name FROM nation LIMIT 3",
        "SELECT 1 + 1 AS two",
    ] {
        check(&cpu, &by_exchanges, sql, false);
    }
    let sql = "SELECT o_orderkey FROM orders ORDER BY o_totalprice DESC, o_orderkey";
    check(&cpu, &by_exchanges, sql, true);
    // Tasks draw numbers of their own.
    let sql =
        "SELECT count(*) = count(DISTINCT r), count(*) FROM (SELECT random() AS r FROM orders)";
    let drawn = answer(&by_exchanges, sql).expect("rows");
    assert_eq!(drawn[1][0], "true", "{drawn:?}");
    for number in [1, 2] {
        assert!(tasks(&processes.text(number)) > 0, "executor {number} had nothing to do");
    }
    let scheduled = processes.text(0);
    assert!(scheduled.contains("Launching multi task on executor \"sim@127.0.0.1"), "{scheduled}");
}

/// Rows that a device parts meet those that a host parts.
#[test]
fn executors_part_rows_alike() {
    let _turn = turn();
    let cpu = cpu();
    let mut processes = Processes::new(&["sim", "cpu"]);
    processes.start_executor_with("sim", &["--host-shuffle"]);
    let cluster = processes.session(0);
    for number in [3, 5, 10, 16, 18] {
        check(&cpu, &cluster, &tpch(number), true);
    }
    for sql in [
        "SELECT l_shipdate, l_shipmode, l_linenumber, count(*) FROM lineitem GROUP BY 1, 2, 3",
        "SELECT l_discount, l_quantity, sum(l_tax) FROM lineitem GROUP BY ALL",
        "SELECT count(*) FROM orders JOIN lineitem ON o_comment = l_comment AND o_orderkey < l_orderkey",
        "SELECT count(*) FROM orders a JOIN orders b ON a.o_comment = b.o_comment AND a.o_orderdate = b.o_orderdate",
    ] {
        check(&cpu, &cluster, sql, false);
    }
    for number in [1, 2, 3] {
        assert!(tasks(&processes.text(number)) > 0, "executor {number} had nothing to do");
    }
}

#[test]
fn rows_of_this_process_go_there_and_rows_from_there_are_kept_here() {
    let _turn = turn();
    let (cpu, processes) = (cpu(), Processes::new(&["sim", "cpu"]));
    let cluster = processes.session(1 << 30);
    let folder = TempDir::new().expect("a folder");
    let csv = folder.path().join("notes.csv");
    std::fs::write(&csv, "key,note\n0,zero\n3,three\n").expect("a file");
    let written = folder.path().join("written.parquet");
    for session in [&cpu, &cluster] {
        session.register_csv("notes", &csv).expect("a table");
        let statement =
            "CREATE TABLE sizes AS SELECT n_regionkey AS k, count(*) AS n FROM nation GROUP BY 1";
        session.execute(statement).expect("a table");
        session
            .execute("INSERT INTO sizes SELECT 9, count(*) FROM orders WHERE o_orderstatus = 'O'")
            .expect("rows");
    }
    for sql in [
        "SELECT n_name, note FROM nation JOIN notes ON n_regionkey = key",
        "SELECT n_name, n FROM nation JOIN sizes ON n_regionkey = k WHERE n > 1",
        "SELECT count(*) FROM nation JOIN (VALUES (1), (2)) v(x) ON n_regionkey = x",
        "SELECT * FROM sizes",
    ] {
        check(&cpu, &cluster, sql, false);
    }
    cluster.take_stage_runs();
    let copy =
        format!("COPY (SELECT max(o_totalprice) AS m FROM orders) TO '{}'", written.display());
    cluster.execute(&copy).expect("a file");
    assert!(!cluster.take_stage_runs().is_empty(), "the query ran here");
    let sql = format!("SELECT m FROM '{}'", written.display());
    assert_eq!(
        answer(&cluster, &sql).expect("rows"),
        answer(&cpu, "SELECT max(o_totalprice) AS m FROM orders").expect("rows")
    );
    // More than travels within a plan.
    cluster.execute("CREATE TABLE many AS SELECT range AS k FROM range(0, 9000000)").expect("rows");
    let sql = "SELECT count(*) AS n FROM nation JOIN many ON n_nationkey = k";
    assert_eq!(answer(&cluster, sql).expect("rows")[1], ["25"]);
    let reasons = cluster.take_fallback_reasons().join("\n");
    assert!(reasons.contains("\"many\"") && reasons.contains("64 MiB"), "{reasons}");
}

#[test]
fn what_fails_is_told() {
    let _turn = turn();
    let (cpu, processes) = (cpu(), Processes::new(&["sim", "cpu"]));
    let cluster = processes.session(0);
    check(&cpu, &cluster, &tpch(3), true);
    (1..=2).for_each(|number| assert!(tasks(&processes.text(number)) > 0, "{number} does nothing"));
    let error = answer(&cluster, "SELECT sum(1 / (o_orderkey - o_orderkey)) FROM orders");
    let error = error.expect_err("it divides by zero");
    let is_fault = matches!(error.kind(), ErrorKind::Arithmetic { fault: Fault::DivideByZero, .. });
    assert!(is_fault, "{error}");
    let error = answer(&cluster, "SELECT nobody FROM orders").expect_err("there is no such column");
    assert!(matches!(error.kind(), ErrorKind::ColumnNotFound { .. }), "{error}");
    check(&cpu, &cluster, &tpch(1), true);
    let nobody = Session::builder().cluster_url("df://127.0.0.1:1").expect("an address");
    let nobody = nobody.build().expect("a session");
    register(&nobody, &data("tpch"), &["nation".into()]);
    let error = answer(&nobody, "SELECT count(*) FROM nation WHERE n_regionkey = 1");
    let error = error.expect_err("nobody is there");
    assert!(matches!(error.kind(), ErrorKind::Io { .. }), "{error}");
    assert!(error.to_string().contains("df://127.0.0.1:1: no scheduler there"), "{error}");
}

#[test]
fn plans_progress_and_stages_are_seen() {
    let _turn = turn();
    let processes = Processes::new(&["sim", "sim"]);
    let (by_broadcasts, by_exchanges) = (processes.session(1 << 30), processes.session(0));
    let sql = "SELECT count(*) FROM orders JOIN customer ON o_custkey = c_custkey";
    let plan = |session: &Session, format| {
        session.sql(sql).and_then(|query| query.explain_as(format)).expect("a plan")
    };
    let exchanged = plan(&by_exchanges, ExplainFormat::Indent);
    assert!(exchanged.contains("cluster "), "{exchanged}");
    assert!(
        exchanged.contains("(exchange: rows of equal keys go to one of 4 tasks)"),
        "{exchanged}"
    );
    assert!(exchanged.contains("DeviceStageExec: "), "{exchanged}");
    let broadcast = plan(&by_broadcasts, ExplainFormat::Tree);
    assert!(broadcast.contains("(broadcast: all rows go to each of 4 tasks)"), "{broadcast}");
    let json = plan(&by_broadcasts, ExplainFormat::Json);
    assert!(json.contains("\"place\": \"cluster\""), "{json}");
    let here = by_exchanges.sql("SELECT n_name FROM nation").and_then(|query| query.explain());
    assert!(here.expect("a plan").contains("not on the cluster: it computes nothing"));

    let seen = std::thread::scope(|scope| {
        let running = scope.spawn(|| answer(&by_exchanges, &tpch(9)).expect("rows"));
        let mut seen = None;
        while !running.is_finished() {
            seen = by_exchanges.stages_progress().or(seen);
            std::thread::sleep(Duration::from_millis(1));
        }
        seen.expect("a query takes longer")
    });
    assert!(seen.stages > 5 && seen.stages_done <= seen.stages, "{seen:?}");
    assert_eq!(by_exchanges.stages_progress(), None);
    let runs = by_exchanges.take_stage_runs();
    assert_eq!(runs.len() as u64, seen.stages, "{runs:?}");
    for run in &runs {
        let StageReport { tasks, executors, operators, .. } = run;
        assert_eq!(executors.iter().map(|(_, tasks)| tasks).sum::<u64>(), *tasks, "{run:?}");
        assert!(!operators.is_empty() && run.bytes > Some(0) && run.on_cpu == 0, "{run:?}");
        assert!(executors.iter().all(|(name, _)| name.starts_with("sim@127.0.0.1:")), "{run:?}");
    }
    assert!(runs.iter().any(|run| run.executors.len() == 2), "{runs:?}");
    assert!(runs.iter().any(|run| run.rows > 1000), "{runs:?}");

    // What nobody waits for is cancelled.
    by_exchanges.set_statement_timeout(Some(Duration::from_millis(100)));
    let error = answer(&by_exchanges, &tpch(21)).expect_err("it takes longer");
    assert!(matches!(error.kind(), ErrorKind::Interrupted { .. }), "{error}");
    processes.wait_for(0, "Received cancellation request for job");
}

#[test]
fn what_is_lost_runs_again() {
    let _turn = turn();
    let (cpu, mut processes) = (cpu(), Processes::new(&["sim", "sim"]));
    let cluster = processes.session(0);
    check(&cpu, &cluster, &tpch(3), true);
    // Between queries, and with a task under way while rows of others wait to be fetched.
    processes.kill(1);
    check(&cpu, &cluster, &tpch(3), true);
    let another = processes.start_executor("sim");
    std::thread::scope(|scope| {
        let running = scope.spawn(|| check(&cpu, &cluster, &tpch(21), true));
        let begin = Instant::now();
        while begun(&processes.text(another)) < 4 {
            assert!(begin.elapsed() < PATIENCE, "it has no tasks");
            std::thread::sleep(Duration::from_millis(5));
        }
        processes.kill(another);
        running.join().expect("the CPU's answer");
    });
}

#[test]
fn the_shell_shows_rows_and_stages() {
    let _turn = turn();
    let processes = Processes::new(&["sim"]);
    let url = format!(
        "{}?partitions=2&broadcast_limit=0&datafusion.optimizer.repartition_file_min_size=0",
        processes.url()
    );
    let run = |sql: &str| {
        let output = program()
            .args(["shell", "--cluster", &url, "--csv", "-c", sql])
            .args([table("nation"), table("orders"), table("customer")])
            .output()
            .expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    let sql = "SELECT n_regionkey AS r, count(*) AS n FROM nation GROUP BY 1 ORDER BY 1";
    let (is_well, rows, told) = run(sql);
    assert!(is_well && rows == "r,n\n0,5\n1,5\n2,5\n3,5\n4,5\n", "{rows}{told}");
    let sql = "EXPLAIN ANALYZE SELECT count(*) FROM orders JOIN customer ON o_custkey = c_custkey";
    let (is_well, plan, told) = run(sql);
    assert!(is_well && plan.contains("RepartitionExec: partitioning=Hash"), "{plan}{told}");
    assert!(plan.contains("stage 1: 2 tasks, ") && plan.contains("  on sim@127.0.0.1:"), "{plan}");
    let (is_well, rows, told) =
        run("SELECT count(*) AS n FROM orders WHERE o_orderkey > 0;\n.stages");
    assert!(is_well && rows.contains("stage 1: 2 tasks"), "{rows}{told}");
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

/// The queries of a folder (`*.sql`) over its tables (`*.parquet`), as of TPC-DS, which
/// WARPFRAME_QUERIES names. Those that do not end within the tests' patience on the CPU are left out.
#[test]
fn the_queries_of_a_folder_are_answered_as_on_the_cpu() {
    let Some(folder) = std::env::var_os("WARPFRAME_QUERIES").map(PathBuf::from) else {
        eprintln!("skipped: WARPFRAME_QUERIES names no folder");
        return;
    };
    let _turn = turn();
    let of_kind = |kind: &str| {
        let files = std::fs::read_dir(&folder).expect("a folder");
        let mut paths: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
        paths.retain(|path| path.extension().is_some_and(|known| known == kind));
        paths.sort();
        paths
    };
    let stem = |path: &PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
    let names: Vec<String> = of_kind("parquet").iter().map(stem).collect();
    let (cpu, processes) = (on_cpu(&folder, &names), Processes::new(&["sim", "sim"]));
    let cluster = processes.session_of(&folder, &names, 1 << 20);
    let (mut wrong, mut here) = (vec![], vec![]);
    for path in of_kind("sql") {
        let sql = std::fs::read_to_string(&path).expect("a query");
        let sql = sql.trim().trim_end_matches(';');
        println!("{}", stem(&path));
        if let Some(how) = difference(&cpu, &cluster, sql, false) {
            println!("{}: {how}", stem(&path));
            wrong.push((stem(&path), how));
        }
        let reasons = cluster.take_fallback_reasons();
        if !reasons.is_empty() {
            println!("{} ran here: {reasons:?}", stem(&path));
            here.push(stem(&path));
        }
    }
    println!("ran here: {here:?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
