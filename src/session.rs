//! A session: tables by name, a device, and the way from a plan to a result.

mod append;
mod builder;
mod catalog;
mod checks;
mod cluster;
mod config;
mod constraints;
mod context;
mod database;
mod device_choice;
#[cfg(feature = "ffi")]
mod device_doors;
mod files;
mod from_values;
mod functions;
mod host_memory;
mod information;
mod insert;
mod kernels;
mod mistakes;
mod outside_subqueries;
mod progress;
mod relations;
mod rules;
mod schemas;
mod sequences;
mod statements;
mod syntax;
mod tables;
mod types;
mod writers;

use std::sync::Arc;
use std::time::Duration;

use datafusion::common::TableReference;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser;
use datafusion::sql::sqlparser::ast;

pub use builder::SessionBuilder;
#[cfg(feature = "proto")]
pub(crate) use context::state_of_executors;
pub use device_choice::DeviceChoice;
pub use kernels::{Dim3, KernelArg, RawKernel};
pub use statements::{Executed, Setting};

use self::files::NamedFiles;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Engine;
use crate::frame::LazyFrame;
use crate::io::FileNotes;
use crate::query::Core;
use crate::sql::{Statement, Text};
use warpframe_device::Device;
use warpframe_device::timeline::{Part, span};

/// Tables, a device, and queries over them. Clones share everything.
///
/// Every method may be called from plain threads and from inside an asynchronous runtime alike;
/// each waits for its answer.
///
/// ```
/// use warpframe::prelude::*;
///
/// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// session.register_csv("jets", "data/jets.csv")?;
/// session.sql("SELECT jetid, sum(px) FROM jets GROUP BY jetid ORDER BY jetid LIMIT 3")?.collect()?.show()?;
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Clone)]
pub struct Session {
    core: Arc<Core>,
    files: Arc<NamedFiles>,
    writers: Arc<writers::Writers>,
    prepared: statements::PreparedStatements,
    databases: Arc<database::Databases>,
    notice: Option<Arc<str>>,
    /// Whether SQL may bring code for the device.
    user_code: bool,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("device", &self.device())
            .field("tables", &self.table_names())
            .finish()
    }
}

impl Session {
    /// A session as the environment asks for it: `WARPFRAME_DEVICE` (`auto`, `cuda`, `cuda:N`,
    /// `sim`, `cpu`), `WARPFRAME_STRICT=1`, `WARPFRAME_MEMORY_LIMIT` (`2GiB`, `80%`),
    /// `WARPFRAME_HOST_MEMORY_LIMIT`, `WARPFRAME_SPILL_DIR`, `WARPFRAME_SPILL_LIMIT`.
    ///
    /// # Errors
    /// A variable that does not parse; a device asked for by name that is not there.
    ///
    /// ```
    /// let session = warpframe::Session::new()?;
    /// assert!(session.table_names().is_empty());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn new() -> Result<Self> {
        Self::builder().build()
    }

    /// A session in whose making some choices differ from the environment's.
    ///
    /// ```
    /// use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert!(session.device().is_none());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn builder() -> SessionBuilder {
        SessionBuilder::default()
    }

    /// The device that runs queries, or `None` where the CPU or a cluster does.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// match session.device() {
    ///     Some(device) => println!("{}: {} kernels so far", device.properties().name, device.counters().launches),
    ///     None => println!("no GPU"),
    /// }
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn device(&self) -> Option<&Device> {
        self.core.device()
    }

    /// All devices of the session: the first is [`Session::device`], where results lie; the others
    /// help with large queries.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Sims(2)).build()?;
    /// let used: u64 = session.devices().iter().map(|device| device.memory().used).sum();
    /// # let _ = used;
    /// assert_eq!(session.devices().len(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn devices(&self) -> Vec<Device> {
        let engine = self.core.engine.as_ref().filter(|_| self.core.device().is_some());
        let engines = engine.into_iter().flat_map(Engine::all_devices);
        engines.map(|engine| engine.device.clone()).collect()
    }

    /// One line that says why queries run on the CPU although a GPU would have been welcome; `None`
    /// otherwise.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Auto).build()?;
    /// assert_eq!(session.notice().is_some(), session.device().is_none());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Why parts of queries that were planned for the device ran on the CPU instead, a sentence
    /// each, since this was asked last: what the data showed that the device does not do, or that
    /// it has not memory enough for. Never in strict mode, where that is an error.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.sql("SELECT 1")?.collect()?;
    /// assert!(session.take_fallback_reasons().is_empty());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn take_fallback_reasons(&self) -> Vec<String> {
        self.core.engine().map_or_else(Vec::new, Engine::take_reasons)
    }

    /// Which columns of Parquet files the host's reader brought to the device, and why the device
    /// did not read them itself, a sentence each, since this was asked last. The first hundred are
    /// kept. Their queries ran on the device all the same, so they are no error in strict mode. A
    /// column that stays in device memory is read, and told of, once.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Sim).build()?;
    /// session.scan_parquet("data/tpch/nation.parquet")?.collect()?;
    /// for sentence in session.take_host_reads() {
    ///     println!("{sentence}"); // column "c" of t.parquet is read by the host: it is nested
    /// }
    /// assert!(session.take_host_reads().is_empty());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn take_host_reads(&self) -> Vec<String> {
        self.core.engine().map_or_else(Vec::new, Engine::take_host_reads)
    }

    /// Which files were left out of tables, and how many rows of files, a sentence each, since this
    /// was asked last: files without a byte among others, and what the option `ignore_errors` leaves
    /// out.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let dir = tempfile::tempdir()?;
    /// std::fs::write(dir.path().join("1.csv"), "a\n1\n")?;
    /// std::fs::write(dir.path().join("2.csv"), "")?;
    /// session.register_csv("t", dir.path())?;
    /// assert!(session.take_file_notes()[0].contains("1 file"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take_file_notes(&self) -> Vec<String> {
        FileNotes::of(self.core.state().config()).map_or_else(Vec::new, |notes| notes.take())
    }

    /// Whether a part of a query that cannot run on the device is an error.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// assert!(!Session::builder().device(DeviceChoice::Cpu).build()?.is_strict());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn is_strict(&self) -> bool {
        self.core.engine().is_some_and(|engine| engine.strict)
    }

    /// Stops the statements of this session that run now, on whichever threads: they fail with
    /// [`ErrorKind::Interrupted`]. The session and its tables go on. May be called from any thread;
    /// returns at once.
    ///
    /// A statement stops before its next allocation, launch or copy on the device, in its waits for
    /// files and compilers, and between the batches of the CPU engine. A kernel that runs on a GPU
    /// ends by itself.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let handle = session.clone();
    /// std::thread::spawn(move || handle.interrupt()).join().unwrap();
    /// assert_eq!(session.sql("SELECT 1")?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn interrupt(&self) {
        self.core.switch.interrupt();
    }

    /// Limits how long statements that begin from now on may take; `None` sets no limit. Those that
    /// take longer fail with [`ErrorKind::Interrupted`]. Planning, running and downloading a query
    /// are a statement each.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.set_statement_timeout(Some(Duration::from_secs(5)));
    /// assert_eq!(session.statement_timeout(), Some(Duration::from_secs(5)));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn set_statement_timeout(&self, timeout: Option<Duration>) {
        self.core.switch.set_timeout(timeout);
    }

    /// How long a statement may take, if there is a limit.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// assert!(Session::builder().device(DeviceChoice::Cpu).build()?.statement_timeout().is_none());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn statement_timeout(&self) -> Option<Duration> {
        self.core.switch.timeout()
    }

    /// DataFusion's context behind this session, for its configuration and for user-defined
    /// functions.
    ///
    /// A table registered here is read anew by each query, on all cores, and its rows are brought
    /// to the device, where they do not stay: only its provider knows when they change. What the
    /// session's own methods register stays in device memory.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert!(session.context().state().scalar_functions().contains_key("upper"));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn context(&self) -> &SessionContext {
        self.core.plans.expose();
        &self.core.context
    }

    /// Drops the plans that are kept, so that the next query is planned anew: for benchmarks.
    #[doc(hidden)]
    pub fn forget_plans(&self) {
        self.core.plans.forget();
    }

    /// Plans one SQL query over the session's tables, and over files that it names; nothing runs
    /// before [`LazyFrame::collect`].
    ///
    /// A file's name stands in single quotes where a table's would stand (`FROM 'data/jets.csv'`);
    /// `read_csv` and `read_parquet` are given options besides (`docs/files.md` lists them). Such
    /// files are tables that the session remembers: their columns stay in device memory for later
    /// queries, until the files change.
    ///
    /// # Errors
    /// SQL that does not parse ([`ErrorKind::Parse`]), unknown tables and columns, types that do
    /// not fit; clauses that nothing would look at, such as `FOR UPDATE`
    /// ([`ErrorKind::Unsupported`]); statements that are not queries ([`ErrorKind::NotAQuery`]):
    /// [`Session::execute`] runs those.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, ErrorKind, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert_eq!(session.sql("VALUES (1), (2), (3)")?.collect()?.num_rows(), 3);
    /// assert_eq!(session.sql("SELECT n_name FROM 'data/tpch/nation.parquet'")?.collect()?.num_rows(), 25);
    /// let error = session.sql("SELECT * FROM nowhere").unwrap_err();
    /// assert!(matches!(error.kind(), ErrorKind::TableNotFound { name, .. } if name == "nowhere"));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn sql(&self, text: &str) -> Result<LazyFrame> {
        self.sql_text(&Text::from(text))
    }

    /// The frame of a query that may be a part of a larger text, as one statement of a script:
    /// errors name places in that one. A text that the session knows is not read again.
    ///
    /// # Errors
    /// As [`Session::sql`].
    pub fn sql_text(&self, text: &Text<'_>) -> Result<LazyFrame> {
        self.frame_of(text).map_err(|error| text.locate(error))
    }

    /// The frame of a query; errors need not name places in its text.
    fn frame_of(&self, text: &Text<'_>) -> Result<LazyFrame> {
        self.core.as_statement(|| match self.known_frame(text)? {
            Some(frame) => Ok(frame),
            None => match Statement::of(text)? {
                Statement::Query => self.new_frame(text),
                other => match self.listed(&other, text)? {
                    Some(rows) => Ok(rows),
                    None => Err(not_a_query(text.as_str())),
                },
            },
        })
    }

    fn known_frame(&self, text: &Text<'_>) -> Result<Option<LazyFrame>> {
        if self.core.engine().is_none() {
            return Ok(None);
        }
        let known = {
            let state = self.core.context.state_ref();
            let is_current = |table: &TableReference| self.files.is_current(table);
            self.core.plans.text(&state.read(), text.as_str(), is_current)
        };
        known.map(|recipe| LazyFrame::of_recipe(&self.core, recipe)).transpose()
    }

    fn new_frame(&self, text: &Text<'_>) -> Result<LazyFrame> {
        self.core.block_on(async {
            let (plan, tables) = {
                let _span = span(Part::Parse, String::new);
                self.plan_query(self.parsed(text)?, text).await?
            };
            let frame = LazyFrame::of_plan(&self.core, plan)?;
            if let (Some(recipe), Some(tables), Some(_)) =
                (frame.recipe(), tables, self.core.engine())
            {
                let state = self.core.context.state_ref();
                self.core.plans.keep_text(&state.read(), text.as_str(), &tables, recipe);
            }
            Ok(frame)
        })
    }

    /// The tree of a text that is one statement.
    fn parsed(&self, text: &Text<'_>) -> Result<parser::Statement> {
        let parsed = rules::parsed(&self.core.state(), text);
        let mut statement = parsed.map_err(|error| one_statement(error, text.as_str()))?;
        rules::balance(&mut statement)?;
        Ok(statement)
    }

    /// The plan of a query that stands in a text, and the names of its tables if it has the same
    /// plan each time.
    async fn plan_query(
        &self,
        mut statement: parser::Statement,
        text: &Text<'_>,
    ) -> Result<(LogicalPlan, Option<Vec<TableReference>>)> {
        let state = self.core.state();
        let parser::Statement::Statement(inner) = &mut statement else {
            return Err(not_a_query(&statement.to_string()));
        };
        if !matches!(**inner, ast::Statement::Query(_)) {
            return Err(not_a_query(&inner.to_string()));
        }
        if let ast::Statement::Query(query) = inner.as_mut() {
            self.tell_schemas_apart(query)?;
        }
        // Until the plan holds them.
        let _files =
            files::opened(&self.files, &self.core, inner, &|path| text.place_of(path)).await?;
        let prepared = rules::prepared(&state, inner);
        let is_constant = relations::is_constant(inner);
        let drawn = rules::drawn_names(&state, inner);
        let tables = state.resolve_table_references(&statement)?;
        prepared.map_err(|error| self.mistaken(error, &tables, text))?;
        self.views_planned(&tables).await?;
        let planning = async move { rules::planned(&state, statement).await };
        let planned = self.core.planned(text.as_str(), planning).await;
        let planned = planned.and_then(|plan| rules::drawn_once(plan, &drawn));
        match planned.and_then(rules::mended) {
            Ok(plan) => Ok((plan, Some(tables).filter(|_| is_constant))),
            Err(error) => Err(self.mistaken(error.into(), &tables, text)),
        }
    }

    pub(crate) fn table_not_found(&self, name: &str) -> Error {
        ErrorKind::TableNotFound { name: name.into(), known: self.all_table_names() }.into()
    }
}

/// Verbs of statements that [`Session::execute`] takes and [`Session::sql`] does not.
const EXECUTED: &str = "ALTER COPY CREATE DEALLOCATE DELETE DROP EXECUTE EXPLAIN EXPORT IMPORT \
                        INSERT PREPARE RESET SET TRUNCATE UPDATE USE";

fn not_a_query(statement: &str) -> Error {
    let verb = statement.split_whitespace().next().unwrap_or_default().to_uppercase();
    let executes = EXECUTED.split(' ').any(|word| word == verb);
    ErrorKind::NotAQuery { what: format!("the statement {verb}"), executes }.into()
}

/// DataFusion words "more than one statement" as a missing feature; say what to do instead.
fn one_statement(error: datafusion::error::DataFusionError, text: &str) -> Error {
    match error {
        datafusion::error::DataFusionError::NotImplemented(_) => {
            ErrorKind::NotAQuery { what: format!("the SQL text {text:?}"), executes: false }.into()
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_again_whatever_blanks_are_around_it() {
        let session = Session::builder().device(DeviceChoice::Sim).build().unwrap();
        let found =
            |text: &str| session.core.plans.text(&session.core.state(), text, |_| true).is_some();
        let text = "SELECT 1 AS one, 2 AS two";
        assert!(!found(text));
        session.sql(text).unwrap();
        assert!(found(text) && found(&format!("\n\n      {text}  \n")));
        assert!(!found("SELECT 1 AS one, 3 AS two"));
    }
}
