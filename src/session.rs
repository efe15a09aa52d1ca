//! A session: tables by name, a device, and the way from a plan to a result.

mod builder;
mod catalog;
mod plans;
mod rules;
mod runtime;
mod steps;
mod tables;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::DFSchemaRef;
use datafusion::execution::context::SessionContext;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, SortExpr, TableSource};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use futures::FutureExt;
use futures::future::BoxFuture;

pub use builder::{DeviceChoice, SessionBuilder};
pub(crate) use steps::Steps;
pub(crate) use tables::scan;

use crate::column::Table;
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{self, Engine, Outcome};
use crate::frame::{Data, DataFrame, LazyFrame, Verb};
use crate::interrupt::{Statement as Running, Switch};
use crate::io::{Reading, of_panic};
use crate::plan::{Prepared, with_one_row};

/// Tables, a device, and queries over them. Clones share everything.
///
/// Every method may be called from plain threads and from inside an asynchronous runtime alike; each waits for its
/// answer.
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
pub struct Session(Arc<Inner>);

struct Inner {
    context: SessionContext,
    runtime: runtime::Runtime,
    engine: Option<Engine>,
    plans: plans::Plans,
    notice: Option<String>,
    switch: Arc<Switch>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("device", &self.device()).field("tables", &self.table_names()).finish()
    }
}

impl Session {
    /// A session as the environment asks for it: `WARPFRAME_DEVICE` (`auto`, `cuda`, `cuda:N`, `sim`, `cpu`),
    /// `WARPFRAME_STRICT=1`, `WARPFRAME_MEMORY_LIMIT` (`2GiB`, `80%`).
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

    /// The device that runs queries, or `None` where the CPU does.
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
        self.0.engine.as_ref().map(|engine| &engine.device)
    }

    /// One line that says why queries run on the CPU although a GPU would have been welcome; `None` otherwise.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Auto).build()?;
    /// assert_eq!(session.notice().is_some(), session.device().is_none());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn notice(&self) -> Option<&str> {
        self.0.notice.as_deref()
    }

    /// Why parts of queries that were planned for the device ran on the CPU instead, a sentence each, since this was asked last: what
    /// the data showed that the device does not do, or that it has not memory enough for. Never in strict mode, where that is an error.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.sql("SELECT 1")?.collect()?;
    /// assert!(session.take_fallback_reasons().is_empty());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn take_fallback_reasons(&self) -> Vec<String> {
        self.0.engine.as_ref().map_or_else(Vec::new, Engine::take_reasons)
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
        self.0.engine.as_ref().map_or_else(Vec::new, Engine::take_host_reads)
    }

    /// Whether a part of a query that cannot run on the device is an error.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// assert!(!Session::builder().device(DeviceChoice::Cpu).build()?.is_strict());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn is_strict(&self) -> bool {
        self.0.engine.as_ref().is_some_and(|engine| engine.strict)
    }

    /// Turns the ordering of joins on or off, as [`SessionBuilder::join_order`] does. Nothing where queries run on the CPU.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Sim).build()?;
    /// session.set_join_order(false);
    /// assert!(!session.orders_joins());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn set_join_order(&self, on: bool) {
        if let Some(engine) = &self.0.engine {
            engine.order_joins(on);
        }
    }

    /// Whether joins on the device run in the order of estimated rows.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// assert!(Session::builder().device(DeviceChoice::Sim).build()?.orders_joins());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn orders_joins(&self) -> bool {
        self.0.engine.as_ref().is_some_and(Engine::orders_joins)
    }

    /// Stops the statements of this session that run now, on whichever threads: they fail with [`ErrorKind::Interrupted`]. The session
    /// and its tables go on. May be called from any thread; returns at once.
    ///
    /// A statement stops before its next allocation, launch or copy on the device, in its waits for files and compilers, and between
    /// the batches of the CPU engine. A kernel that runs on a GPU ends by itself.
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
        self.0.switch.interrupt();
    }

    /// Limits how long statements that begin from now on may take; `None` sets no limit. Those that take longer fail with
    /// [`ErrorKind::Interrupted`]. Planning, running and downloading a query are a statement each.
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
        self.0.switch.set_timeout(timeout);
    }

    /// How long a statement may take, if there is a limit.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// assert!(Session::builder().device(DeviceChoice::Cpu).build()?.statement_timeout().is_none());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn statement_timeout(&self) -> Option<Duration> {
        self.0.switch.timeout()
    }

    /// Does something as a statement, or as a part of the one that this thread is in.
    pub(crate) fn as_statement<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let statement = Running::begin(&self.0.switch);
        let _entered = statement.enter();
        work()
    }

    /// DataFusion's context behind this session, for its configuration and for user-defined functions.
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
        self.0.plans.expose();
        &self.0.context
    }

    /// Plans one SQL query over the session's tables; nothing runs before [`LazyFrame::collect`].
    ///
    /// # Errors
    /// SQL that does not parse ([`ErrorKind::Parse`]), unknown tables and columns, types that do not fit; statements that
    /// are not queries, and clauses that nothing would look at, such as TABLESAMPLE ([`ErrorKind::Unsupported`]).
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, ErrorKind, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert_eq!(session.sql("VALUES (1), (2), (3)")?.collect()?.num_rows(), 3);
    /// let error = session.sql("SELECT * FROM nowhere").unwrap_err();
    /// assert!(matches!(error.kind(), ErrorKind::TableNotFound { name, .. } if name == "nowhere"));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn sql(&self, text: &str) -> Result<LazyFrame> {
        self.as_statement(|| self.frame_of(text))
    }

    fn frame_of(&self, text: &str) -> Result<LazyFrame> {
        if self.0.engine.is_some() {
            let state = self.0.context.state_ref();
            let known = self.0.plans.text(&state.read(), text)?;
            if let Some(plan) = known {
                return Ok(LazyFrame::new(self.clone(), plan));
            }
        }
        let plan = self.block_on(self.plan_sql(text))?;
        Ok(LazyFrame::perhaps_deep(self.clone(), plan))
    }

    async fn plan_sql(&self, text: &str) -> Result<LogicalPlan> {
        let state = self.state();
        let mut statement = rules::parsed(&state, text).map_err(|error| one_statement(error, text))?;
        rules::balance(&mut statement)?;
        let Statement::Statement(inner) = &mut statement else {
            return Err(not_a_query(&statement.to_string()));
        };
        if !matches!(**inner, ast::Statement::Query(_)) {
            return Err(not_a_query(&inner.to_string()));
        }
        rules::prepared(&state, inner)?;
        let tables = state.resolve_table_references(&statement)?;
        match rules::planned(&state, statement).await.and_then(rules::mended) {
            Ok(plan) => {
                if self.0.engine.is_some() {
                    self.0.plans.keep_text(&state, text, tables, &plan);
                }
                Ok(plan)
            }
            Err(error) => {
                let error = Error::from(error);
                let missing = tables
                    .iter()
                    .find(|table| !self.0.context.table_exist((*table).clone()).unwrap_or(true))
                    .filter(|_| matches!(error.kind(), ErrorKind::Plan { .. }));
                Err(match missing {
                    Some(table) => {
                        self.table_not_found(table.table()).at(error.location().or(place_of(text, table.table())))
                    }
                    None => match error.kind() {
                        ErrorKind::ColumnNotFound { name, .. } => {
                            let place = place_of(text, name);
                            error.at(place)
                        }
                        _ => error,
                    },
                })
            }
        }
    }

    /// Optimizes a plan, or finds its form optimized, and runs it.
    pub(crate) fn run(&self, plan: &LogicalPlan) -> Result<DataFrame> {
        self.as_statement(|| self.run_plan(plan))
    }

    fn run_plan(&self, plan: &LogicalPlan) -> Result<DataFrame> {
        let Some(engine) = &self.0.engine else {
            return self.block_on(async {
                let state = self.state();
                match of_one_version(&state, plan, || run_on_cpu(&state, plan).boxed(), |_| false).await {
                    Ok((schema, data)) => Ok(DataFrame::new(self.clone(), schema, data)),
                    Err(error) => Err(crate::io::diagnose(error, &state, plan).await),
                }
            });
        };
        let known = self.0.plans.plan(&self.0.context.state_ref().read(), plan);
        if let Some((prepared, tables)) = known {
            engine.device.count_plan(true);
            return self.run_prepared(engine, &prepared, &tables);
        }
        self.block_on(async {
            let state = self.state();
            engine.device.count_plan(false);
            let optimized =
                (self.0.plans).keep_plan(&state, plan, |plan| optimize(&state, plan)).and_then(|kept| match kept {
                    Some((prepared, tables)) => prepared.bind(&tables),
                    None => optimize(&state, plan),
                });
            self.execute(&state, engine, optimized, plan).await
        })
    }

    /// Runs a verb of eager frames.
    pub(crate) fn run_verb(&self, verb: Verb, left: &DataFrame, right: Option<&DataFrame>) -> Result<DataFrame> {
        let resident = |frame: &DataFrame| self.is_resident(frame);
        if resident(left) && right.is_none_or(resident) && verb.is_small() {
            let table = |frame: &DataFrame| Ok::<_, Error>(Arc::new(Steps::Table(self.source_of(frame)?)));
            return self.run_steps(&Steps::grown(verb, table(left)?, right.map(table).transpose()?));
        }
        let plan = |frame: &DataFrame| scan(&self.source_of(frame)?);
        self.run(&verb.plan(&plan(left)?, right.map(plan).transpose()?.as_ref())?)
    }

    /// Runs what steps lead to, by the plan of earlier ones of their form where it was kept.
    pub(crate) fn run_steps(&self, steps: &Steps) -> Result<DataFrame> {
        self.as_statement(|| self.run_steps_anew(steps))
    }

    fn run_steps_anew(&self, steps: &Steps) -> Result<DataFrame> {
        let Some(engine) = &self.0.engine else { return self.run(&steps.plan(&mut scan)?) };
        let known = self.0.plans.steps(&self.0.context.state_ref().read(), steps);
        if let Some((prepared, tables)) = known {
            engine.device.count_plan(true);
            return self.run_prepared(engine, &prepared, &tables);
        }
        let kept = self.block_on(async {
            let state = self.state();
            self.0.plans.keep_steps(&state, steps, |plan| optimize(&state, plan))
        })?;
        let Some((prepared, tables)) = kept else { return self.run(&steps.plan(&mut scan)?) };
        engine.device.count_plan(false);
        let plan = prepared.bind(&tables)?;
        self.block_on(async { self.execute(&self.state(), engine, Ok(plan.clone()), &plan).await })
    }

    /// The columns that steps lead to, if such ones were met.
    pub(crate) fn met(&self, steps: &Steps) -> Option<DFSchemaRef> {
        self.0.plans.met(steps)
    }

    /// Notes steps, whose plan this is.
    pub(crate) fn meet(&self, steps: &Steps, plan: &LogicalPlan) {
        self.0.plans.meet(steps, plan);
    }

    /// Whether both are one.
    pub(crate) fn is(&self, other: &Session) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Runs a plan whose form ran before: on this thread where the device does all of it and the tables lie there.
    fn run_prepared(&self, engine: &Engine, prepared: &Prepared, tables: &[Arc<dyn TableSource>]) -> Result<DataFrame> {
        if prepared.is_direct()
            && let Some(table) = or_give_up(engine, prepared, exec::run_again(engine, prepared, tables))?
        {
            return Ok(DataFrame::new(self.clone(), table.schema.clone(), Data::Device(table)));
        }
        let plan = prepared.bind(tables)?;
        self.block_on(async { self.execute(&self.state(), engine, Ok(plan.clone()), &plan).await })
    }

    /// Runs an optimized plan; `asked` is what it was made of.
    async fn execute(
        &self,
        state: &SessionState,
        engine: &Engine,
        plan: Result<LogicalPlan>,
        asked: &LogicalPlan,
    ) -> Result<DataFrame> {
        let result = match plan {
            Ok(plan) => {
                let schema: SchemaRef = Arc::new(plan.schema().as_arrow().clone());
                let run = || exec::execute(state, engine, plan.clone()).boxed();
                // What the device ran read tables of one version each.
                let whole = |outcome: &Outcome| matches!(outcome, Outcome::Device(_));
                of_one_version(state, asked, run, whole).await.map(|outcome| match outcome {
                    Outcome::Device(table) => (table.schema.clone(), Data::Device(table)),
                    Outcome::Host(batches) => {
                        let schema = batches.first().map_or(schema, |batch| batch.schema());
                        (schema, Data::Host(batches.into()))
                    }
                })
            }
            Err(error) => Err(error),
        };
        match result {
            Ok((schema, data)) => Ok(DataFrame::new(self.clone(), schema, data)),
            Err(error) => Err(crate::io::diagnose(error, state, asked).await),
        }
    }

    /// What the device yielded, or `None` where the CPU is to do it.
    pub(crate) fn or_on_cpu<T>(&self, ran: Result<T>) -> Result<Option<T>> {
        match (ran, &self.0.engine) {
            (Err(error), Some(engine)) if engine.gives_way(&error) => {
                engine.give_up(&error);
                Ok(None)
            }
            (ran, _) => ran.map(Some),
        }
    }

    /// The row numbers of a frame in the order of these keys; `None` where the device does not sort it.
    pub(crate) fn order(&self, frame: &DataFrame, keys: &[SortExpr]) -> Result<Option<Table>> {
        self.as_statement(|| self.order_of(frame, keys))
    }

    fn order_of(&self, frame: &DataFrame, keys: &[SortExpr]) -> Result<Option<Table>> {
        let Some(engine) = &self.0.engine else { return Ok(None) };
        let verb = Verb::ArgSort(keys.to_vec());
        let table = self.source_of(frame)?;
        if self.is_resident(frame) && verb.is_small() {
            let steps = Steps::grown(verb.clone(), Arc::new(Steps::Table(table.clone())), None);
            let known = self.0.plans.steps(&self.0.context.state_ref().read(), &steps);
            engine.device.count_plan(known.is_some());
            match known {
                Some((prepared, tables)) if prepared.is_direct() => {
                    let order = or_give_up(engine, &prepared, exec::order_again(engine, &prepared, &tables))?;
                    if order.is_some() {
                        return Ok(order);
                    }
                }
                Some(_) => {}
                None => {
                    self.block_on(async {
                        let state = self.state();
                        self.0.plans.keep_steps(&state, &steps, |plan| analyzed(&state, plan))
                    })?;
                }
            }
        }
        let sorted = verb.plan(&scan(&table)?, None)?;
        self.block_on(async {
            let state = self.state();
            exec::order(&state, engine, &analyzed(&state, &sorted)?).await
        })
    }

    /// The optimized plan, and what of it runs where.
    pub(crate) fn explain(&self, plan: &LogicalPlan) -> Result<String> {
        self.block_on(async {
            let state = self.state();
            let optimized = optimize(&state, plan)?;
            match &self.0.engine {
                Some(engine) => exec::explain(engine, &optimized),
                None => {
                    let physical = state.query_planner().create_physical_plan(&optimized, &state).await?;
                    let physical = datafusion::physical_plan::displayable(physical.as_ref()).indent(false).to_string();
                    Ok(format!("cpu\n{}\n\n{physical}", optimized.display_indent()))
                }
            }
        })
    }

    pub(crate) fn state(&self) -> SessionState {
        self.0.context.state()
    }

    pub(crate) fn table_not_found(&self, name: &str) -> Error {
        ErrorKind::TableNotFound { name: name.into(), known: self.table_names() }.into()
    }

    /// Waits for a future on a thread of its own: the caller may itself be inside a runtime, where
    /// waiting is forbidden, and deep plans recurse deeper than a small caller's stack allows. The
    /// future is dropped where the statement is to stop; a panic becomes an error.
    pub(crate) fn block_on<T: Send>(&self, future: impl Future<Output = Result<T>> + Send) -> Result<T> {
        const STACK: usize = 64 << 20;
        let runtime = &self.0.runtime;
        let statement = Running::begin(&self.0.switch);
        let wait = || {
            let _entered = statement.enter();
            runtime.block_on(statement.or_stop(future))
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("warpframe-query".into()).stack_size(STACK);
            match thread.spawn_scoped(scope, wait) {
                Ok(thread) => thread.join().unwrap_or_else(|panic| Err(of_panic("planning", panic.as_ref()))),
                Err(error) => panic!("the system gives no thread: {error}"),
            }
        })
    }
}

fn optimize(state: &SessionState, plan: &LogicalPlan) -> Result<LogicalPlan> {
    // Where scalar subqueries do not become joins, DataFusion counts their rows.
    let plan = match state.config_options().optimizer.enable_physical_uncorrelated_scalar_subquery {
        true => state.optimize(plan)?,
        false => state.optimize(&with_one_row(plan)?)?,
    };
    rules::refuse_what_is_left(&plan)?;
    Ok(plan)
}

/// Runs a plan, and again where its files changed meanwhile, unless `is_of_one` knows better: no
/// answer is of two versions of one table. A panic becomes an error that names the files.
async fn of_one_version<'a, T>(
    state: &SessionState,
    plan: &LogicalPlan,
    run: impl Fn() -> BoxFuture<'a, Result<T>>,
    is_of_one: impl Fn(&T) -> bool,
) -> Result<T> {
    let mut changed = None;
    for _ in 0..Reading::PATIENCE {
        let reading = Reading::begin(state, plan).await?;
        let ran = match AssertUnwindSafe(run()).catch_unwind().await {
            Ok(ran) => ran,
            Err(panic) => Err(reading.of_panic(panic.as_ref())),
        };
        match reading.changed().filter(|_| !ran.as_ref().is_ok_and(&is_of_one)) {
            None => return ran,
            later => changed = later,
        }
    }
    Err(changed.expect("it ran once or more"))
}

async fn run_on_cpu(state: &SessionState, plan: &LogicalPlan) -> Result<(SchemaRef, Data)> {
    let plan = optimize(state, plan)?;
    let physical = state.query_planner().create_physical_plan(&plan, state).await?;
    let schema = without_metadata(&physical.schema());
    let batches = exec::collect(physical, state).await?;
    let batches: Vec<_> =
        batches.into_iter().map(|batch| batch.with_schema(schema.clone())).collect::<Result<_, _>>()?;
    Ok((schema, Data::Host(batches.into())))
}

/// A file's own schema metadata (such as another writer's notes) says nothing about a query's result.
fn without_metadata(schema: &Schema) -> SchemaRef {
    let fields: Vec<_> = schema.fields().iter().map(|f| f.as_ref().clone().with_metadata(Default::default())).collect();
    Arc::new(Schema::new(fields))
}

fn not_a_query(statement: &str) -> Error {
    let verb = statement.split_whitespace().next().unwrap_or_default().to_uppercase();
    Error::unsupported(format!("the statement {verb}"), "Session::sql takes one query (SELECT, WITH or VALUES)")
}

/// DataFusion words "more than one statement" as a missing feature; say what to do instead.
fn one_statement(error: datafusion::error::DataFusionError, text: &str) -> Error {
    match error {
        datafusion::error::DataFusionError::NotImplemented(_) => {
            Error::unsupported(format!("the SQL text {text:?}"), "Session::sql takes exactly one query")
        }
        other => other.into(),
    }
}

/// Line and column of the only place where `name` stands as an identifier, or `None` if there are several or none.
fn place_of(text: &str, name: &str) -> Option<(u64, u64)> {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location().ok()?;
    let mut places = tokens.iter().filter_map(|token| match &token.token {
        Token::Word(word) if word.value == name || word.quote_style.is_none() && word.value.to_lowercase() == name => {
            Some((token.span.start.line, token.span.start.column))
        }
        _ => None,
    });
    places.next().filter(|_| places.next().is_none())
}

/// The plan with its types made to agree, but not optimized, which could turn a sort into something else.
fn analyzed(state: &SessionState, plan: &LogicalPlan) -> Result<LogicalPlan> {
    Ok(state.analyzer().execute_and_check(plan.clone(), state.config_options(), |_, _| {})?)
}

/// What a kept plan yielded; `None` where it has to be run in the usual way: tables are not there yet, or the CPU takes over.
fn or_give_up<T>(engine: &Engine, prepared: &Prepared, ran: Result<Option<T>>) -> Result<Option<T>> {
    match ran {
        Err(error) if engine.gives_way(&error) => {
            // Memory may suffice the next time.
            if matches!(error.kind(), ErrorKind::Unsupported { .. }) {
                prepared.gave_up();
            }
            Ok(None)
        }
        ran => ran,
    }
}
