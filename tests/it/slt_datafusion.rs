//! DataFusion's own sqllogictest files: what the CPU engine answers, the device must answer alike.
//!
//! The files come with the crate `datafusion-sqllogictest`; `scripts/datafusion-slt.sh` fetches
//! them and runs this. They are not part of this repository.
//!
//! A plain DataFusion context runs the statements that make tables. The rows of its tables are
//! registered with two sessions, one on the CPU and one on the device (not strict). Each query runs
//! in all three:
//!
//! ```text
//!   plain DataFusion  │ CPU session     │ device session  │ counted as
//!   fails             │                 │                 │ left out: features that are not here
//!   answers           │ fails           │                 │ refused  (listed)
//!   answers           │ other rows      │                 │ mended   (listed)
//!   answers           │ answers         │ the same rows   │ agreed
//!   answers           │ answers         │ other order     │ order    (listed)
//!   answers           │ answers         │ other rows      │ free, where the query leaves them open
//!   answers           │ answers         │ fails or other  │ wrong    (listed; the test fails)
//! ```

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SessionContext;
use datafusion::prelude::SessionConfig;
use sqllogictest::{ColumnType, Condition, Record, parse_file};
use warpframe::arrow::record_batch::RecordBatch;
use warpframe::plugin::{Plugin, WithWarpframe};
use warpframe::{DeviceChoice, Session};

use crate::differential::{Rows, builder, rows_of};

/// Tables of more rows than this are left out.
const LARGEST_TABLE: usize = 1 << 20;

/// Functions whose values differ each time.
const VOLATILE: [&str; 6] = ["random(", "uuid(", "now(", "current_t", "current_date", "version("];

/// The kinds of columns that a file names by letters; nothing here depends on them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Letter(char);

impl ColumnType for Letter {
    fn from_char(value: char) -> Option<Self> {
        Some(Letter(value))
    }

    fn to_char(&self) -> char {
        self.0
    }
}

/// How queries came out, by kind; kinds in capitals fail the test.
#[derive(Default)]
struct Counts {
    counts: BTreeMap<&'static str, usize>,
    listed: String,
}

impl Counts {
    fn count(&mut self, kind: &'static str) {
        *self.counts.entry(kind).or_default() += 1;
    }

    fn list(&mut self, kind: &'static str, place: &str, sql: &str, why: &str) {
        self.count(kind);
        let _ = writeln!(self.listed, "== {kind}: {place}\n{sql}\n-- {why}\n");
    }

    fn add(&mut self, other: Counts) {
        for (kind, count) in other.counts {
            *self.counts.entry(kind).or_default() += count;
        }
        self.listed += &other.listed;
    }
}

/// One file's tables in the three engines.
struct Engines {
    plain: SessionContext,
    cpu: Session,
    device: Session,
    runtime: tokio::runtime::Runtime,
    known: BTreeMap<String, Vec<RecordBatch>>,
}

impl Engines {
    fn new() -> Engines {
        let cpu = Session::builder().device(DeviceChoice::Cpu).cpu_partitions(4).build();
        Engines {
            plain: SessionContext::new_with_config(SessionConfig::new().with_target_partitions(4)),
            cpu: cpu.expect("a CPU session"),
            device: builder().cpu_partitions(4).strict(false).build().expect("the device opens"),
            runtime: tokio::runtime::Runtime::new().expect("a runtime"),
            known: BTreeMap::new(),
        }
    }

    /// The rows that plain DataFusion answers.
    fn ask_plain(&self, sql: &str) -> Result<Vec<RecordBatch>, String> {
        let answer = async { self.plain.sql(sql).await?.collect().await };
        let answer = catch_unwind(AssertUnwindSafe(|| self.runtime.block_on(answer)));
        answer.map_err(|_| "panicked".to_string())?.map_err(|error| error.to_string())
    }

    /// A statement that is no query: plain DataFusion runs it, and its tables are copied.
    fn state(&mut self, sql: &str) {
        let first = sql.split_whitespace().next().unwrap_or_default().to_lowercase();
        let ran = self.ask_plain(sql);
        if first == "set" || first == "reset" {
            for session in [&self.cpu, &self.device] {
                let _ = self.runtime.block_on(session.context().sql(sql));
            }
        } else if ran.is_ok() {
            self.copy_tables();
        }
    }

    /// Registers the tables that are new or have changed, and forgets those that are gone.
    fn copy_tables(&mut self) {
        let catalog = self.plain.catalog("datafusion");
        let schemas = catalog.iter().flat_map(|catalog| catalog.schema_names());
        let names: Vec<(String, String)> = schemas
            .filter(|schema| schema != "information_schema")
            .flat_map(|schema| {
                let tables = catalog.as_ref().and_then(|catalog| catalog.schema(&schema));
                let names = tables.map(|tables| tables.table_names()).unwrap_or_default();
                names.into_iter().map(move |name| (schema.clone(), name))
            })
            .collect();
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let named = |(schema, name): &(String, String)| match schema.as_str() {
            "public" => name.clone(),
            schema => format!("{schema}.{name}"),
        };
        for whole in &names {
            let (name, quoted) =
                (&named(whole), format!("{}.{}", quoted(&whole.0), quoted(&whole.1)));
            for session in [&self.cpu, &self.device].into_iter().filter(|_| whole.0 != "public") {
                session.execute(&format!("CREATE SCHEMA IF NOT EXISTS \"{}\"", whole.0)).ok();
            }
            let Ok(batches) = self.ask_plain(&format!("SELECT * FROM {quoted}")) else { continue };
            if batches.iter().map(RecordBatch::num_rows).sum::<usize>() > LARGEST_TABLE {
                continue;
            }
            let batches = match batches.is_empty() {
                true => match self.runtime.block_on(self.plain.table(quoted.as_str())) {
                    Ok(table) => vec![RecordBatch::new_empty(table.schema().inner().clone())],
                    Err(_) => continue,
                },
                false => batches,
            };
            if self.known.get(name) == Some(&batches) {
                continue;
            }
            for session in [&self.cpu, &self.device] {
                let registered = catch_unwind(AssertUnwindSafe(|| {
                    session.register_batches(name, batches.clone())
                }));
                registered.expect("registering batches does not panic").ok();
            }
            self.known.insert(name.clone(), batches);
        }
        let names: Vec<String> = names.iter().map(named).collect();
        let gone: Vec<_> =
            self.known.keys().filter(|name| !names.contains(name)).cloned().collect();
        for name in gone {
            self.known.remove(&name);
            for session in [&self.cpu, &self.device] {
                session.deregister(&name).ok();
            }
        }
    }

    fn query(&self, place: &str, sql: &str, counts: &mut Counts) {
        let Ok(plain) = self.ask_plain(sql) else { return counts.count("left out") };
        let lower = sql.to_lowercase();
        if VOLATILE.iter().any(|name| lower.contains(name)) {
            return counts.count("volatile");
        }
        // Approximate aggregates are exact on the device (docs/sql.md), and LIMIT without an order
        // may keep any rows.
        let ordered = orders_its_rows(&lower);
        let free = lower.contains("approx_") || lower.contains("limit") && !ordered;
        let cpu = match ask(&self.cpu, sql) {
            Ok(rows) => rows,
            Err(why) => return counts.list("refused", place, sql, &why),
        };
        let plain = plain.iter().flat_map(rows_of).collect();
        let plain = Rows { types: cpu.types.clone(), rows: plain };
        if let Some(why) = plain.difference(&cpu, ordered) {
            counts.list("mended", place, sql, &why);
        }
        match ask(&self.device, sql) {
            Err(why) => counts.list("WRONG", place, sql, &why),
            Ok(device) => match cpu.difference(&device, ordered) {
                None => counts.count("agreed"),
                Some(_) if free && cpu.rows.len() == device.rows.len() => counts.count("free"),
                Some(_) if ordered && cpu.difference(&device, false).is_none() => {
                    counts.list("order", place, sql, "the same rows in another order")
                }
                Some(why) => counts.list("WRONG", place, sql, &why),
            },
        }
    }

    fn run(path: &Path, counts: &mut Counts) {
        let Ok(records) = parse_file::<Letter>(path) else { return counts.count("unread files") };
        let mut engines = Engines::new();
        for record in records {
            match record {
                Record::Statement { sql, conditions, .. } if is_ours(&conditions) => {
                    engines.state(&sql)
                }
                Record::Query { sql, conditions, loc, .. } if is_ours(&conditions) => {
                    let first = sql.trim_start_matches(|c: char| c == '(' || c.is_whitespace());
                    let first = first.split_whitespace().next().unwrap_or_default().to_lowercase();
                    match first.as_str() {
                        "select" | "with" | "values" | "from" => {
                            engines.query(&loc.to_string(), &sql, counts)
                        }
                        "explain" | "show" | "describe" => counts.count("about plans"),
                        _ => engines.state(&sql),
                    }
                }
                _ => {}
            }
        }
    }
}

fn ask(session: &Session, sql: &str) -> Result<Rows, String> {
    let answer = || session.sql(sql)?.collect().map(|frame| Rows::of(&frame));
    match catch_unwind(AssertUnwindSafe(answer)) {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err("panicked".into()),
    }
}

/// Whether an ORDER BY stands outside of all parentheses.
pub(crate) fn orders_its_rows(lower: &str) -> bool {
    let mut depth = 0;
    lower.char_indices().any(|(at, letter)| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0 && lower[at..].starts_with("order by")
    })
}

fn is_ours(conditions: &[Condition]) -> bool {
    conditions.iter().all(|condition| match condition {
        Condition::OnlyIf { label } => label.eq_ignore_ascii_case("datafusion"),
        Condition::SkipIf { label } => !label.eq_ignore_ascii_case("datafusion"),
    })
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("WARPFRAME_SLT_FILES names a readable folder");
    for entry in entries {
        let path = entry.expect("a readable entry").path();
        match path.is_dir() {
            true => files_below(&path, found),
            false if path.extension().is_some_and(|extension| extension == "slt") => {
                found.push(path)
            }
            false => {}
        }
    }
}

/// A session of DataFusion's and one with the plugin, which run every statement of a file.
struct Plugged {
    stock: SessionContext,
    ours: SessionContext,
    plugin: Plugin,
    runtime: tokio::runtime::Runtime,
}

impl Plugged {
    fn new() -> Plugged {
        // As DataFusion's own runner of these files.
        let config =
            || SessionConfig::new().with_target_partitions(4).with_information_schema(true);
        let plugin = Plugin::new(builder().strict(false)).expect("the device opens");
        let state = SessionStateBuilder::new_with_default_features()
            .with_config(config())
            .with_plugin(&plugin)
            .build();
        Plugged {
            stock: SessionContext::new_with_config(config()),
            ours: SessionContext::new_with_state(state),
            plugin,
            runtime: tokio::runtime::Runtime::new().expect("a runtime"),
        }
    }

    fn ask(&self, context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>, String> {
        let answer = async { context.sql(sql).await?.collect().await };
        let answer = catch_unwind(AssertUnwindSafe(|| self.runtime.block_on(answer)));
        answer.map_err(|_| "panicked".to_string())?.map_err(|error| error.strip_backtrace())
    }

    fn query(&self, place: &str, sql: &str, counts: &mut Counts) {
        let stock = self.ask(&self.stock, sql);
        let device = self.plugin.device().expect("a device");
        let before = device.counters();
        let ours = self.ask(&self.ours, sql);
        let now = device.counters();
        let lower = sql.to_lowercase();
        if VOLATILE.iter().any(|name| lower.contains(name)) {
            return counts.count("volatile");
        }
        let (stock, ours) = match (stock, ours) {
            (Ok(stock), Ok(ours)) => (stock, ours),
            (Err(_), Err(_)) => return counts.count("errors"),
            (Ok(_), Err(why)) => return counts.list("WRONG", place, sql, &why),
            (Err(why), Ok(_)) => return counts.list("no error", place, sql, &why),
        };
        let rows = |batches: &[RecordBatch]| Rows {
            types: vec![],
            rows: batches.iter().flat_map(rows_of).collect(),
        };
        let ordered = orders_its_rows(&lower);
        let free = lower.contains("limit") && !ordered;
        let (stock, ours) = (rows(&stock), rows(&ours));
        match stock.difference(&ours, ordered) {
            None if now.fallbacks > before.fallbacks => {
                counts.count("agreed, after all on the CPU")
            }
            None if now.launches > before.launches => counts.count("agreed, on the device"),
            None => counts.count("agreed, on the CPU"),
            Some(_) if free && stock.rows.len() == ours.rows.len() => counts.count("free"),
            Some(_) if ordered && stock.difference(&ours, false).is_none() => {
                counts.list("order", place, sql, "the same rows in another order")
            }
            Some(why) => counts.list("WRONG", place, sql, &why),
        }
    }

    fn run(path: &Path, counts: &mut Counts) {
        let Ok(records) = parse_file::<Letter>(path) else { return counts.count("unread files") };
        let sessions = Plugged::new();
        for record in records {
            let (sql, loc, conditions) = match record {
                Record::Statement { sql, loc, conditions, .. }
                | Record::Query { sql, loc, conditions, .. } => (sql, loc, conditions),
                _ => continue,
            };
            if !is_ours(&conditions) {
                continue;
            }
            let first = sql.trim_start_matches(|c: char| c == '(' || c.is_whitespace());
            let first = first.split_whitespace().next().unwrap_or_default().to_lowercase();
            match first.as_str() {
                "select" | "with" | "values" | "from" => {
                    sessions.query(&loc.to_string(), &sql, counts)
                }
                "explain" => counts.count("about plans"),
                // Both would write one file.
                "copy" => {
                    let _ = sessions.ask(&sessions.stock, &sql);
                }
                _ => {
                    let _ = sessions.ask(&sessions.stock, &sql);
                    let _ = sessions.ask(&sessions.ours, &sql);
                }
            }
        }
    }
}

#[test]
#[ignore = "needs the files that scripts/datafusion-slt.sh fetches"]
fn sessions_with_a_device_answer_what_datafusion_answers() {
    over_all_files(Plugged::run, "agreed, on the device");
}

#[test]
#[ignore = "needs the files that scripts/datafusion-slt.sh fetches"]
fn the_device_answers_what_the_cpu_engine_answers() {
    over_all_files(Engines::run, "agreed");
}

/// Runs all files of the folder; fails where any query is counted as wrong, or none as `wanted`.
fn over_all_files(run: fn(&Path, &mut Counts), wanted: &'static str) {
    let folder = std::env::var("WARPFRAME_SLT_FILES").expect("WARPFRAME_SLT_FILES names a folder");
    let report = std::env::var("WARPFRAME_SLT_REPORT").expect("WARPFRAME_SLT_REPORT names a file");
    let threads =
        std::env::var("WARPFRAME_SLT_THREADS").map_or(1, |n| n.parse().expect("a number"));
    let only = std::env::var("WARPFRAME_SLT_ONLY").unwrap_or_default();
    let mut files = vec![];
    files_below(Path::new(&folder), &mut files);
    files.retain(|file| file.to_string_lossy().contains(&only));
    files.sort();
    assert!(!files.is_empty(), "{folder} holds no sqllogictest file");

    let (next, all) = (AtomicUsize::new(0), Mutex::new(Counts::default()));
    let work = || {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (mut counts, start) = (Counts::default(), std::time::Instant::now());
            let ran = catch_unwind(AssertUnwindSafe(|| run(file, &mut counts)));
            if ran.is_err() {
                counts.list("WRONG", &file.display().to_string(), "", "the file's run panicked");
            }
            let mut all = all.lock().expect("nobody panics while holding it");
            eprintln!("{} {:?} {:.1?}", file.display(), counts.counts, start.elapsed());
            all.add(counts);
            std::fs::write(&report, &all.listed).expect("the report is written");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let all = all.into_inner().expect("nobody panicked while holding it");
    println!("{} files: {:?}", files.len(), all.counts);
    let kinds: HashSet<_> = all.counts.keys().copied().collect();
    assert!(kinds.contains(wanted), "no query is {wanted}");
    assert!(!kinds.contains("WRONG"), "see {report}");
}
