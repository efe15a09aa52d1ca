//! Two sessions over the same tables, one on the CPU and one strictly on the device: what one
//! answers, so must the other.

use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use datafusion::common::config::ConfigNonZeroUsize;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use warpframe::arrow::array::{Array, AsArray, RecordBatch};
use warpframe::arrow::compute::cast;
use warpframe::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimeUnit, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use warpframe::arrow::util::display::{ArrayFormatter, FormatOptions};
use warpframe::device::{Device, SimOptions};
use warpframe::{DataFrame, DeviceChoice, ErrorKind, Session, SessionBuilder};

/// Floats may differ by this much of their magnitude: sums are made in another order.
const TOLERANCE: f64 = 1e-9;

/// A value of a result.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Null,
    /// Integers, booleans, dates, timestamps, decimals: as their type counts them.
    Int(i128),
    Float(f64),
    Text(String),
}

impl Cell {
    fn agrees(&self, other: &Cell) -> bool {
        match (self, other) {
            (Cell::Float(a), Cell::Float(b)) => {
                a == b
                    || a.is_nan() && b.is_nan()
                    || (a - b).abs() <= TOLERANCE * a.abs().max(b.abs())
            }
            _ => self == other,
        }
    }

    fn rank(&self) -> (u8, i128, &str) {
        match self {
            Cell::Null => (0, 0, ""),
            Cell::Int(i) => (1, *i, ""),
            Cell::Text(t) => (2, 0, t),
            Cell::Float(_) => (3, 0, ""),
        }
    }

    fn float(&self) -> f64 {
        match self {
            Cell::Float(f) if *f == 0.0 => 0.0,
            Cell::Float(f) => *f,
            _ => 0.0,
        }
    }
}

/// The rows of a result, and the types of its columns.
#[derive(Debug, Clone)]
pub struct Rows {
    pub types: Vec<DataType>,
    pub rows: Vec<Vec<Cell>>,
}

impl Rows {
    pub fn of(frame: &DataFrame) -> Rows {
        let types = frame.schema().fields().iter().map(|f| f.data_type().clone()).collect();
        let batches = frame.to_arrow().expect("a result downloads");
        Rows { types, rows: batches.iter().flat_map(rows_of).collect() }
    }

    fn sort(&mut self) {
        self.rows.sort_by(|a, b| {
            let exact = a.iter().map(Cell::rank).cmp(b.iter().map(Cell::rank));
            let floats = || {
                (a.iter().zip(b))
                    .map(|(a, b)| a.float().total_cmp(&b.float()))
                    .find(|order| order.is_ne())
                    .unwrap_or(std::cmp::Ordering::Equal)
            };
            exact.then_with(floats)
        });
    }

    /// Where the other differs, in words.
    pub fn difference(&self, other: &Rows, ordered: bool) -> Option<String> {
        if self.types != other.types {
            return Some(format!(
                "types: expected {:?}\n    found    {:?}",
                self.types, other.types
            ));
        }
        if self.rows.len() != other.rows.len() {
            return Some(format!("rows: {} expected, {} found", self.rows.len(), other.rows.len()));
        }
        let (mut left, mut right) = (self.clone(), other.clone());
        if !ordered {
            left.sort();
            right.sort();
        }
        let agree = |a: &[Cell], b: &[Cell]| a.iter().zip(b).all(|(a, b)| a.agrees(b));
        let mut apart: Vec<usize> =
            (0..left.rows.len()).filter(|at| !agree(&left.rows[*at], &right.rows[*at])).collect();
        if !ordered && apart.len() <= 2000 {
            // Floats that differ in their last bits may have been sorted differently.
            let mut free = apart.clone();
            apart.retain(|at| {
                match free.iter().position(|other| agree(&left.rows[*at], &right.rows[*other])) {
                    Some(found) => {
                        free.swap_remove(found);
                        false
                    }
                    None => true,
                }
            });
        }
        let lines: Vec<_> = (apart.iter().take(5))
            .map(|at| {
                format!(
                    "row {at}\n    expected {:?}\n    found    {:?}",
                    left.rows[*at], right.rows[*at]
                )
            })
            .collect();
        (!lines.is_empty())
            .then(|| format!("{} rows differ\n  {}", apart.len(), lines.join("\n  ")))
    }
}

/// The rows of a batch.
pub fn rows_of(batch: &RecordBatch) -> Vec<Vec<Cell>> {
    let columns: Vec<_> = batch.columns().iter().map(|column| cells(column)).collect();
    (0..batch.num_rows())
        .map(|row| columns.iter().map(|column| column[row].clone()).collect())
        .collect()
}

fn cells(array: &dyn Array) -> Vec<Cell> {
    macro_rules! integers {
        ($type:ty) => {
            array
                .as_primitive::<$type>()
                .iter()
                .map(|v| v.map_or(Cell::Null, |v| Cell::Int(v.into())))
                .collect()
        };
    }
    match array.data_type() {
        DataType::Int8 => integers!(Int8Type),
        DataType::Int16 => integers!(Int16Type),
        DataType::Int32 => integers!(Int32Type),
        DataType::Int64 => integers!(Int64Type),
        DataType::UInt8 => integers!(UInt8Type),
        DataType::UInt16 => integers!(UInt16Type),
        DataType::UInt32 => integers!(UInt32Type),
        DataType::UInt64 => integers!(UInt64Type),
        DataType::Date32 => integers!(Date32Type),
        DataType::Decimal128(_, _) => integers!(Decimal128Type),
        DataType::Timestamp(
            TimeUnit::Second | TimeUnit::Millisecond | TimeUnit::Microsecond | TimeUnit::Nanosecond,
            _,
        ) => cells(&cast(array, &DataType::Int64).expect("timestamps count")),
        DataType::Boolean => array
            .as_boolean()
            .iter()
            .map(|v| v.map_or(Cell::Null, |v| Cell::Int(v.into())))
            .collect(),
        DataType::Float32 => (array.as_primitive::<Float32Type>().iter())
            .map(|v| v.map_or(Cell::Null, |v| Cell::Float(v.into())))
            .collect(),
        DataType::Float64 => array
            .as_primitive::<Float64Type>()
            .iter()
            .map(|v| v.map_or(Cell::Null, Cell::Float))
            .collect(),
        DataType::Null => vec![Cell::Null; array.len()],
        DataType::Binary => {
            let text = |bytes: &[u8]| Cell::Text(format!("{bytes:02x?}"));
            array.as_binary::<i32>().iter().map(|v| v.map_or(Cell::Null, text)).collect()
        }
        DataType::BinaryView | DataType::LargeBinary | DataType::FixedSizeBinary(_) => {
            cells(&cast(array, &DataType::Binary).expect("bytes"))
        }
        DataType::Utf8 => array
            .as_string::<i32>()
            .iter()
            .map(|v| v.map_or(Cell::Null, |v| Cell::Text(v.into())))
            .collect(),
        dtype if dtype.is_nested() => {
            let options = FormatOptions::new().with_null("NULL");
            let printed = ArrayFormatter::try_new(array, &options).expect("a type that prints");
            let text = |row| {
                if array.is_null(row) {
                    Cell::Null
                } else {
                    Cell::Text(printed.value(row).to_string())
                }
            };
            (0..array.len()).map(text).collect()
        }
        _ => cells(&cast(array, &DataType::Utf8).expect("a type that prints")),
    }
}

/// A session builder for the device under test.
pub fn builder() -> SessionBuilder {
    let device = match std::env::var("WARPFRAME_DEVICE").as_deref() {
        Ok("") | Err(_) => DeviceChoice::Sim,
        Ok(name) => name.parse().expect("WARPFRAME_DEVICE names a device"),
    };
    assert!(
        !matches!(device, DeviceChoice::Cpu | DeviceChoice::Auto),
        "these tests compare a device with the CPU"
    );
    let builder = Session::builder();
    match device {
        DeviceChoice::Sim | DeviceChoice::Sims(_) => {
            builder.sim_options(SimOptions::with_seed(seed()))
        }
        _ => builder,
    }
    .device(device)
}

/// The simulator's seed: `WARPFRAME_SIM_SEED`, or one that each process of tests draws. It is said
/// past what captures the output of tests, whichever of them will fail.
pub fn seed() -> u64 {
    static SEED: LazyLock<u64> = LazyLock::new(|| {
        let asked = std::env::var("WARPFRAME_SIM_SEED").ok().and_then(|seed| seed.parse().ok());
        let drawn = || RandomState::new().hash_one(0u64) % 1_000_000;
        let seed = asked.unwrap_or_else(drawn);
        let _ = writeln!(std::io::stderr(), "WARPFRAME_SIM_SEED={seed}");
        seed
    });
    *SEED
}

/// A file of the sample data: beside the sources, or where the tests were carried.
pub fn data(path: &str) -> PathBuf {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let root = if home.is_dir() { home } else { PathBuf::from("data") };
    root.join(path)
}

/// What both sessions said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// Both yielded equal rows, so many.
    Rows(usize),
    /// Both reported an error.
    Errors,
    /// The device says that it does not run such a query.
    Unsupported,
    /// Only the CPU failed, by an error that DataFusion calls its own.
    Undecided,
}

/// A session on the CPU and one on the device, with equal tables.
pub struct Pair {
    pub cpu: Session,
    pub device: Session,
    /// What made the tables, for reports.
    pub origin: String,
}

/// What DataFusion says of a query that it should answer.
const UNDECIDED: [&str; 3] = [
    "bug in DataFusion's code",
    "Conflicting ordering requirements in aggregate functions",
    "Invalid comparison operation: Decimal128",
];

/// Whether a value of some row failed, which may be one that the answer does not depend on.
/// DataFusion computes arguments of aggregates by groups for rows that FILTER leaves out, too.
fn is_of_a_row(error: &warpframe::Error) -> bool {
    ["overflow", "Divide by zero"].iter().any(|what| error.to_string().contains(what))
}

impl Pair {
    pub fn new() -> Pair {
        Pair::with(builder().strict(true))
    }

    /// The device session as this builder makes it.
    pub fn with(builder: SessionBuilder) -> Pair {
        let cpu = Session::builder()
            .device(DeviceChoice::Cpu)
            .cpu_partitions(1)
            .build()
            .expect("a CPU session");
        let device = builder.cpu_partitions(1).build().expect("the device under test opens");
        Pair { cpu, device, origin: String::new() }
    }

    /// With one table `t`.
    pub fn of(batches: Vec<RecordBatch>) -> Pair {
        Pair::new().and("t", batches)
    }

    pub fn and(self, name: &str, batches: Vec<RecordBatch>) -> Pair {
        self.cpu.register_batches(name, batches.clone()).expect("batches of one schema");
        self.device.register_batches(name, batches).expect("batches of one schema");
        self
    }

    pub fn from(mut self, origin: impl Into<String>) -> Pair {
        self.origin = origin.into();
        self
    }

    /// With the TPC-H tables, and `jets`.
    pub fn samples(self) -> Pair {
        for session in [&self.cpu, &self.device] {
            for table in [
                "lineitem", "orders", "customer", "part", "supplier", "partsupp", "nation",
                "region",
            ] {
                session
                    .register_parquet(table, data(&format!("tpch/{table}.parquet")))
                    .expect("the sample is there");
            }
            session.register_csv("jets", data("jets.csv")).expect("the sample is there");
        }
        self
    }

    pub fn gpu(&self) -> &Device {
        self.device.device().expect("the session has a device")
    }

    /// Runs the query on both; panics unless they agree and kernels ran.
    pub fn check(&self, sql: &str) -> usize {
        // One of several devices may have no rows of what is asked for.
        let launches = || {
            let devices = self.device.devices();
            devices.iter().map(|device| device.counters().launches).sum::<u64>()
        };
        let before = launches();
        match self.agreement(sql) {
            Agreement::Rows(rows) => {
                let launched = launches() - before;
                assert!(
                    launched > 0 || self.has_empty_table(),
                    "no kernel ran\n  {sql}\n  {}",
                    self.origin
                );
                rows
            }
            Agreement::Unsupported => panic!("not supported\n  {sql}"),
            Agreement::Undecided => panic!("the CPU failed\n  {sql}"),
            Agreement::Errors => {
                panic!(
                    "both failed\n  {sql}\n  {}\n  {:?}",
                    self.origin,
                    run(&self.device, sql).err()
                )
            }
        }
    }

    pub fn check_all(&self, queries: &[&str]) {
        for sql in queries {
            self.check(sql);
        }
    }

    /// Runs a query that both must refuse to finish; the sessions go on.
    pub fn check_error(&self, sql: &str) -> warpframe::Error {
        assert_eq!(
            self.agreement(sql),
            Agreement::Errors,
            "an error was expected\n  {sql}\n  {}",
            self.origin
        );
        run(&self.device, sql).expect_err("it failed a moment ago")
    }

    /// Runs the query on both; panics where one fails, or their rows differ.
    pub fn agreement(&self, sql: &str) -> Agreement {
        let (expected, found) = (run(&self.cpu, sql), run(&self.device, sql));
        let origin = &self.origin;
        match (expected, found) {
            (Ok(expected), Ok(found)) => {
                assert!(found.is_on_device(), "the rows are not on the device\n  {sql}");
                self.compare(&expected, &found, sql);
                Agreement::Rows(expected.num_rows())
            }
            (_, Err(error)) if matches!(error.kind(), ErrorKind::Unsupported { .. }) => {
                eprintln!("{error}\n  {sql}");
                Agreement::Unsupported
            }
            (Err(_), Err(error)) => {
                assert!(
                    matches!(error.kind(), ErrorKind::Arithmetic { .. } | ErrorKind::Plan { .. }),
                    "both failed, the device as it should not: {error:?}\n  {sql}\n  {origin}"
                );
                Agreement::Errors
            }
            (Ok(_), Err(error)) => panic!("only the device failed: {error}\n  {sql}\n  {origin}"),
            (Err(error), Ok(_))
                if UNDECIDED.iter().any(|what| error.to_string().contains(what))
                    || (is_of_a_row(&error)
                        && (sql.contains("FILTER (WHERE")
                            || self.computes_below_a_join(sql)
                            || self.joins_nothing(sql))) =>
            {
                eprintln!("{error}\n  {sql}");
                Agreement::Undecided
            }
            (Err(error), Ok(found)) => match is_of_a_row(&error).then(|| self.row_by_row(sql)) {
                Some(Ok(expected)) => {
                    eprintln!("{error}\n  {sql}");
                    self.compare(&expected, &found, sql);
                    Agreement::Undecided
                }
                _ => panic!("only the CPU failed: {error}\n  {sql}\n  {origin}"),
            },
        }
    }

    /// Panics unless the two results agree.
    pub fn rows_agree(&self, expected: &DataFrame, found: &DataFrame, sql: &str) -> Agreement {
        self.compare(expected, found, sql);
        Agreement::Rows(expected.num_rows())
    }

    pub fn compare(&self, expected: &DataFrame, found: &DataFrame, sql: &str) {
        let (expected, found) = (Rows::of(expected), Rows::of(found));
        if let Some(difference) = expected.difference(&found, is_ordered(sql)) {
            panic!("{difference}\n  {sql}\n  {}", self.origin);
        }
    }

    /// The rows of both in any order: where ORDER BY leaves ties.
    pub fn compare_unordered(&self, expected: &DataFrame, found: &DataFrame, sql: &str) {
        if let Some(difference) = Rows::of(expected).difference(&Rows::of(found), false) {
            panic!("{difference}\n  {sql}\n  {}", self.origin);
        }
    }

    /// Panics unless a query made of verbs has equal rows on both, and kernels ran on the device.
    pub fn check_frame(
        &self,
        name: &str,
        query: impl Fn(&Session) -> warpframe::Result<warpframe::LazyFrame>,
    ) {
        let expected = query(&self.cpu).and_then(|f| f.collect()).expect("the CPU runs it");
        let before = self.gpu().counters().launches;
        let found = query(&self.device).and_then(|f| f.collect()).expect("the device runs it");
        assert!(self.gpu().counters().launches > before, "no kernel ran: {name}");
        self.compare(&expected, &found, name);
    }

    /// What the CPU says when it looks at one row at a time. Of several it computes what stands
    /// behind AND, OR and their like for all unless none needs it, and fails in rows that do not.
    fn row_by_row(&self, sql: &str) -> warpframe::Result<DataFrame> {
        let resize = |rows| {
            let state = self.cpu.context().state_ref();
            std::mem::replace(
                &mut state.write().config_mut().options_mut().execution.batch_size,
                rows,
            )
        };
        let before = resize(ConfigNonZeroUsize::try_new(1).expect("one is not zero"));
        let found = run(&self.cpu, sql);
        resize(before);
        found
    }

    /// Whether the CPU computes parts of a join's condition before it joins, and so of rows that
    /// meet none of the other side.
    fn computes_below_a_join(&self, sql: &str) -> bool {
        let plan = self.cpu.sql(sql).and_then(|frame| frame.explain());
        plan.is_ok_and(|plan| plan.contains("join_proj_push_down"))
    }

    /// Whether a join of the query has a side without rows. Then its other side may be computed in
    /// vain, or not at all.
    fn joins_nothing(&self, sql: &str) -> bool {
        let context = self.cpu.context();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let is_empty =
            async |side: &LogicalPlan| match context.execute_logical_plan(side.clone()).await {
                Ok(side) => side.count().await.is_ok_and(|rows| rows == 0),
                Err(_) => false,
            };
        runtime.block_on(async {
            let Ok(frame) = context.sql(sql).await else { return false };
            let Ok(plan) = frame.into_optimized_plan() else { return false };
            let mut sides = vec![];
            let collected = plan.apply_with_subqueries(|plan| {
                if let LogicalPlan::Join(join) = plan {
                    sides.extend([join.left.clone(), join.right.clone()]);
                }
                Ok(TreeNodeRecursion::Continue)
            });
            for side in sides.iter().filter(|_| collected.is_ok()) {
                if is_empty(side).await {
                    return true;
                }
            }
            false
        })
    }

    fn has_empty_table(&self) -> bool {
        let counts = |name: &String| {
            run(&self.cpu, &format!("SELECT count(*) FROM {name}")).map(|f| Rows::of(&f).rows)
        };
        self.cpu
            .table_names()
            .iter()
            .any(|name| counts(name).is_ok_and(|rows| rows[0][0] == Cell::Int(0)))
    }
}

/// A number of the environment.
pub fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name}: a number")))
}

/// Random queries to run: seeds, and whether the device runs each, too. `WARPFRAME_<NAME>_QUERIES`
/// says how many there are, `WARPFRAME_<NAME>_DEVICE` how many of them run on the device,
/// `WARPFRAME_<NAME>_SEED` the first seed.
pub fn seeds(name: &str, queries: u64, device: u64) -> Vec<(u64, bool)> {
    let of = |what: &str, otherwise| number(&format!("WARPFRAME_{name}_{what}"), otherwise);
    let (first, queries) = (of("SEED", 1), of("QUERIES", queries));
    let step = (queries / of("DEVICE", device).max(1)).max(1);
    (0..queries).map(|at| (first + at, at % step == 0)).collect()
}

/// Runs a query to its end.
pub fn run(session: &Session, sql: &str) -> warpframe::Result<DataFrame> {
    session.sql(sql)?.collect()
}

/// The only cell of a result.
pub fn scalar(session: &Session, sql: &str) -> Cell {
    Rows::of(&run(session, sql).expect("a query that runs")).rows[0][0].clone()
}

/// Whether the outermost query has an ORDER BY.
fn is_ordered(sql: &str) -> bool {
    let mut depth = 0;
    let upper = sql.to_ascii_uppercase();
    upper.char_indices().any(|(at, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0 && upper[at..].starts_with("ORDER BY")
    })
}

#[test]
fn only_the_outermost_order_counts() {
    assert!(is_ordered("SELECT a FROM t order by a LIMIT 3"));
    assert!(!is_ordered("SELECT a FROM (SELECT * FROM t ORDER BY a LIMIT 3)"));
}

#[test]
fn differences_are_seen() {
    let rows = |cells: &[Cell]| Rows {
        types: vec![DataType::Float64],
        rows: cells.iter().map(|c| vec![c.clone()]).collect(),
    };
    let nan = Cell::Float(f64::NAN);
    let one = rows(&[Cell::Float(1.0), Cell::Null, nan.clone()]);
    let other = rows(&[nan.clone(), Cell::Float(1.0 + 1e-12), Cell::Null]);
    assert_eq!(one.difference(&other, false), None);
    assert!(one.difference(&other, true).is_some());
    assert!(
        one.difference(&rows(&[nan.clone(), Cell::Float(1.0), Cell::Float(0.0)]), false).is_some()
    );
    assert!(one.difference(&rows(&[nan, Cell::Float(1.0)]), false).is_some());
}
