//! What a session and its frames share: they say what is wanted, and it is planned and run here.
//!
//! ```text
//!   SQL text ──▶ recipe ◀── verbs        recipe.rs, verb.rs
//!   recipe ── found, or optimized and cut ──▶ prepared plan      plans.rs
//!   prepared plan over tables ── exec ──▶ answer
//! ```

mod agreed;
mod builder;
mod calls;
mod handed;
mod hash;
mod join;
mod on_cpu;
mod once;
mod ordered;
mod plans;
mod recipe;
mod shared;
mod streamed;
mod verb;

use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, mpsc};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::DFSchemaRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result as PlanResult;
use datafusion::execution::context::SessionContext;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, SortExpr, UNNAMED_TABLE};
use futures::FutureExt;
use futures::future::BoxFuture;

pub(crate) use self::calls::over_all;
pub(crate) use self::handed::HandedRows;
use self::plans::FoundPlan;
pub(crate) use self::plans::Plans;
pub(crate) use self::recipe::Recipe;
pub(crate) use self::shared::{SHARE_OF_ROWS, SharedRows};
pub(crate) use self::verb::Verb;
use crate::column::Table;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{
    self, CpuBoard, DividedResult, Engine, ForeseenPlans, Outcome, Runtime, join_later,
};
use crate::io::{
    DOWNLOAD_ROWS, DeviceTable, KeptTable, Memory, Reading, Snapshot, SourceTable, of_panic,
    of_their_types,
};
use crate::plan::{
    MOST_NESTED, PlanTable, Prepared, explain, explain_on_cpu, files_of, with_nullable,
    with_one_row, with_present_types,
};
use crate::sql::ExplainFormat;
use warpframe_device::Device;
use warpframe_device::interrupt::{self, PACE, Running, Switch};
use warpframe_device::timeline::{self, Part, span};

/// DataFusion's context, the device, and the plans that are kept.
pub(crate) struct Core {
    pub(crate) context: SessionContext,
    pub(crate) runtime: Runtime,
    /// What runs plans, where there is a device.
    pub(crate) engine: Option<Engine>,
    pub(crate) plans: Plans,
    /// Stops statements.
    pub(crate) switch: Arc<Switch>,
    /// What the CPU engine runs.
    pub(crate) cpu_board: CpuBoard,
    /// Refuses optimized plans that would give wrong answers, with the reason.
    pub(crate) refuse: fn(&LogicalPlan) -> Result<()>,
}

/// Where rows lie.
#[derive(Debug, Clone)]
pub(crate) enum Data {
    /// With a device, which may have moved them to the host for want of room.
    Device(KeptTable),
    Host(Arc<[RecordBatch]>),
    /// On the host, as a device had them: more than fits there.
    Divided(DividedResult),
}

impl Data {
    pub(crate) fn rows(&self) -> usize {
        match self {
            Data::Device(table) => table.rows(),
            Data::Host(batches) => batches.iter().map(RecordBatch::num_rows).sum(),
            Data::Divided(rows) => rows.rows(),
        }
    }
}

/// What a plan yields.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) schema: SchemaRef,
    pub(crate) data: Data,
}

impl Answer {
    pub(crate) fn of_table(table: Table) -> Answer {
        Answer { schema: table.schema.clone(), data: Data::Device(KeptTable::new(table)) }
    }
}

/// So that a program's file of spans is whole when its last session ends.
impl Drop for Core {
    fn drop(&mut self) {
        // There is nobody to tell that the file cannot be written.
        let _ = timeline::write();
    }
}

impl Core {
    /// The device that runs queries, if there is one. With a cluster there is none: plans are only
    /// made as for a device.
    pub(crate) fn device(&self) -> Option<&Device> {
        let engine = self.engine.as_ref().filter(|engine| engine.cluster.is_none());
        engine.map(|engine| &engine.device)
    }

    /// Does something as a statement, or as a part of the one that this thread is in.
    pub(crate) fn as_statement<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let statement = Running::begin(&self.switch);
        let _entered = statement.enter();
        work()
    }

    /// Does something as a statement on a thread whose stack suffices for all that the parser
    /// takes.
    pub(crate) fn deep<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let statement = Running::begin(&self.switch);
        let work = || {
            let _entered = statement.enter();
            work()
        };
        match IS_DEEP.get() {
            true => work(),
            false => on_thread(|| {
                IS_DEEP.set(true);
                work()
            }),
        }
    }

    /// Does something as a statement on a thread of the session's. Dropping the future stops the
    /// statement.
    pub(crate) async fn as_background<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let statement = Running::begin(&self.switch);
        let _stop = statement.stop_on_drop();
        let done = self.runtime.spawn_blocking(move || {
            let _entered = statement.enter();
            work()
        });
        match done.await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => Err(of_panic("a query in the background", panic.as_ref())),
                Err(error) => Err(Error::internal(format!("a query in the background: {error}"))),
            },
        }
    }

    /// Optimizes a plan that is not to be kept, and runs it.
    pub(crate) fn run(&self, plan: &LogicalPlan) -> Result<Answer> {
        match self.run_once(plan) {
            Err(error) if error.misfit().is_some() => self.run_widened(plan, error),
            ran => ran,
        }
    }

    /// Runs a plan over tables in which a value did not fit its inferred type, once they have types
    /// that hold all values.
    fn run_widened(&self, plan: &LogicalPlan, mut error: Error) -> Result<Answer> {
        let mut plan = plan.clone();
        self.as_statement(|| {
            loop {
                let wider = crate::io::widen(&plan)?;
                // What was asked may not be asked of the wider type: then the value is the cause.
                let Ok(Some(again)) = with_present_types(&plan) else { return Err(error) };
                // Each round makes a column wider, or a plan that was made before somebody else
                // did.
                if !wider && again == plan {
                    return Err(error);
                }
                plan = again;
                match self.run_once(&plan) {
                    Err(next) if next.misfit().is_some() => error = next,
                    Err(next) if matches!(next.kind(), ErrorKind::Plan { .. }) => {
                        return Err(error);
                    }
                    ran => return ran,
                }
            }
        })
    }

    fn run_once(&self, plan: &LogicalPlan) -> Result<Answer> {
        self.as_statement(|| {
            let plan = &*self.with_shared_rows(plan, |rows| self.run_once(rows))?;
            self.run_optimized(plan, |state| self.optimize(state, plan))
        })
    }

    /// Runs what `optimize` makes of a plan.
    fn run_optimized(
        &self,
        plan: &LogicalPlan,
        optimize: impl Fn(&SessionState) -> Result<LogicalPlan> + Sync,
    ) -> Result<Answer> {
        self.block_on(async {
            let state = self.state();
            let ran = match &self.engine {
                Some(engine) => {
                    engine.device.count_plan(false);
                    match optimize(&state).and_then(Prepared::new) {
                        Ok(prepared) => {
                            return self.execute(&state, engine, &prepared, &[], plan).await;
                        }
                        Err(error) => Err(error),
                    }
                }
                None => {
                    let run = || {
                        async { Ok(self.run_on_cpu(&state, optimize(&state)?).await?.0) }.boxed()
                    };
                    of_one_version(&state, plan, run, |_| false).await
                }
            };
            match ran {
                Ok(answer) => Ok(answer),
                Err(error) => Err(crate::io::diagnose(error, &state, plan).await),
            }
        })
    }

    /// Runs what a recipe leads to, by the plan of an earlier one of its form where that was kept.
    pub(crate) fn run_recipe(&self, recipe: &Recipe) -> Result<Answer> {
        match self.run_recipe_once(recipe) {
            Err(error) if error.misfit().is_some() => self.run_widened(&recipe.plan()?, error),
            ran => ran,
        }
    }

    fn run_recipe_once(&self, recipe: &Recipe) -> Result<Answer> {
        self.as_statement(|| {
            let Some(engine) = &self.engine else { return self.run(&recipe.plan()?) };
            let Some((prepared, tables)) = self.prepared_recipe(engine, recipe)? else {
                return self.run_once(&recipe.plan()?);
            };
            if let Some(plan) = prepared.direct()
                && let Some(table) =
                    or_give_up(engine, &prepared, exec::run_here(engine, plan, &tables))?
            {
                return Ok(Answer::of_table(table));
            }
            // On a thread whose stack suffices for all of it.
            self.block_on(async {
                // As it was asked: what was cut hides the scans of the device's parts.
                let asked = recipe.plan()?;
                self.execute(&self.state(), engine, &prepared, &tables, &asked).await
            })
        })
    }

    /// The plan of a recipe, optimized, and the tables for its placeholders. `None` where rows are
    /// to be computed before it can be optimized.
    fn prepared_recipe(&self, engine: &Engine, recipe: &Recipe) -> Result<Option<FoundPlan>> {
        self.prepared(engine, recipe, |state, plan| {
            let plan = self.analyzed(state, plan)?;
            match SharedRows::any(&plan)? {
                true => Ok(None),
                false => self.optimized(state, plan).map(Some),
            }
        })
    }

    /// The plan of a recipe, found or made by `optimize`, and the tables for its placeholders.
    /// `None` where `optimize` makes none.
    fn prepared(
        &self,
        engine: &Engine,
        recipe: &Recipe,
        optimize: impl Fn(&SessionState, &LogicalPlan) -> Result<Option<LogicalPlan>> + Sync,
    ) -> Result<Option<FoundPlan>> {
        let known = self.plans.prepared(&self.context.state_ref().read(), recipe);
        engine.device.count_plan(known.is_some());
        match known {
            Some(known) => Ok(Some(known)),
            None => self.block_on(async {
                let _span = span(Part::Optimize, String::new);
                let state = self.state();
                match self.plans.prepare(&state, recipe, |plan| optimize(&state, plan)) {
                    Ok(prepared) => Ok(prepared),
                    Err(error) => Err(crate::io::diagnose(error, &state, &recipe.plan()?).await),
                }
            }),
        }
    }

    /// The plan as rules over plans get it.
    pub(crate) fn before_rules(
        &self,
        state: &SessionState,
        plan: &LogicalPlan,
    ) -> Result<LogicalPlan> {
        // Where scalar subqueries do not become joins, DataFusion counts their rows.
        Ok(match state.config_options().optimizer.enable_physical_uncorrelated_scalar_subquery {
            true => with_nullable(plan, false)?,
            false => with_nullable(&with_one_row(plan)?, true)?,
        })
    }

    /// The plan as DataFusion's rules and the session's make it. Rows that it may compute once only
    /// are computed here.
    fn optimize(&self, state: &SessionState, plan: &LogicalPlan) -> Result<LogicalPlan> {
        let plan = self.analyzed(state, plan)?;
        let run = |rows: &LogicalPlan| {
            self.run_optimized(rows, |state| self.optimized(state, rows.clone()))
        };
        let plan = self.with_shared_rows(&plan, run)?.into_owned();
        self.optimized(state, plan)
    }

    /// The plan with its types made to agree, in which rows are shared that it may compute once
    /// only.
    fn analyzed(&self, state: &SessionState, plan: &LogicalPlan) -> Result<LogicalPlan> {
        let plan = self.before_rules(state, plan)?;
        let plan = by_rules(state, plan, |state, plan| analyzed(state, &plan))?;
        Ok(once::shared(plan, self.engine.is_some())?)
    }

    /// An analyzed plan, optimized.
    fn optimized(&self, state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
        let plan = by_rules(state, plan, |state, plan| {
            Ok(state.optimizer().optimize(plan, state, |_, _| {})?)
        })?;
        (self.refuse)(&plan)?;
        Ok(plan)
    }

    /// The plan that DataFusion's planner makes of a statement in these words.
    pub(crate) async fn planned(
        self: &Arc<Self>,
        text: &str,
        planning: impl Future<Output = PlanResult<LogicalPlan>> + Send + 'static,
    ) -> PlanResult<LogicalPlan> {
        /// A text that may take long: a dozen queries that each read the one before twice.
        const LONG: usize = 400;
        if text.len() <= LONG {
            return planning.await;
        }
        let core = self.clone();
        aside(move || Ok(core.runtime.block_on(planning)))?
    }

    /// The columns that a recipe leads to, if such a one was noted.
    pub(crate) fn known_schema(&self, recipe: &Recipe) -> Option<DFSchemaRef> {
        self.plans.known_schema(&self.context.state_ref().read(), recipe)
    }

    /// Notes the columns that a recipe leads to, whose plan this is.
    pub(crate) fn note_schema(&self, recipe: &Recipe, plan: &LogicalPlan) {
        self.plans.note_schema(&self.context.state_ref().read(), recipe, plan);
    }

    /// Runs a plan, whose tables mostly are to be brought to the device; `asked` is what it was
    /// made of.
    async fn execute(
        &self,
        state: &SessionState,
        engine: &Engine,
        prepared: &Prepared,
        tables: &[PlanTable],
        asked: &LogicalPlan,
    ) -> Result<Answer> {
        let run = || exec::execute(state, engine, prepared, tables).boxed();
        // What the device ran read tables of one version each.
        let whole = |outcome: &Outcome| matches!(outcome, Outcome::Device(_) | Outcome::Divided(_));
        match of_one_version(state, asked, run, whole).await {
            Ok(Outcome::Device(table)) => Ok(Answer::of_table(table)),
            Ok(Outcome::Divided(rows)) => {
                Ok(Answer { schema: rows.schema(), data: Data::Divided(rows) })
            }
            Ok(Outcome::Host(batches)) => {
                let planned = || Arc::new(prepared.schema().as_arrow().clone());
                let schema = batches.first().map_or_else(planned, |batch| batch.schema());
                Ok(Answer { schema, data: Data::Host(batches.into()) })
            }
            Err(error) => Err(crate::io::diagnose(error, state, asked).await),
        }
    }

    /// What the device yielded, or `None` where the CPU is to do it.
    pub(crate) fn or_on_cpu<T>(&self, ran: Result<T>) -> Result<Option<T>> {
        match (ran, &self.engine) {
            (Err(error), Some(engine)) if engine.gives_way(&error) => {
                engine.give_up(&error);
                Ok(None)
            }
            (ran, _) => ran.map(Some),
        }
    }

    /// The row numbers of a table in the order of these keys; `None` where the device does not sort
    /// it.
    pub(crate) fn order(&self, table: PlanTable, keys: &[SortExpr]) -> Result<Option<Table>> {
        self.as_statement(|| self.order_of(table, keys))
    }

    fn order_of(&self, table: PlanTable, keys: &[SortExpr]) -> Result<Option<Table>> {
        let Some(engine) = &self.engine else { return Ok(None) };
        let verb = Verb::ArgSort(keys.to_vec());
        let found = match verb.is_small() {
            true => self.prepared(
                engine,
                &Recipe::grown(verb, Arc::new(Recipe::Table(table)), None),
                |state, plan| analyzed(state, plan).map(Some),
            )?,
            false => {
                let sorted = verb.plan(&scan(&table)?, None)?;
                let prepared =
                    self.block_on(async { Prepared::new(analyzed(&self.state(), &sorted)?) })?;
                Some((Arc::new(prepared), vec![]))
            }
        };
        let Some((prepared, tables)) = found else { return Ok(None) };
        if let Some(plan) = prepared.direct() {
            let order = or_give_up(engine, &prepared, exec::order_here(engine, plan, &tables))?;
            if order.is_some() {
                return Ok(order);
            }
        }
        self.block_on(async { exec::order(&self.state(), engine, &prepared, &tables).await })
    }

    /// The plan of a recipe, and what of it runs where.
    pub(crate) fn explain_recipe(&self, recipe: &Recipe, format: ExplainFormat) -> Result<String> {
        let Some(engine) = &self.engine else { return self.explain(&recipe.plan()?, format) };
        let Some((prepared, tables)) = self.prepared_recipe(engine, recipe)? else {
            return self.explain(&recipe.plan()?, format);
        };
        self.block_on(async {
            let state = self.state();
            let places = exec::places(&state, engine, prepared.cut(), &tables).await?;
            let foresight = ForeseenPlans::new(&state, engine, &tables).with_places(places);
            let explained =
                explain(prepared.cut(), &tables, engine.orders_joins(), &state, &foresight);
            explained.map(|explained| explained.shown(format))
        })
    }

    /// The optimized plan, and what of it runs where.
    pub(crate) fn explain(&self, plan: &LogicalPlan, format: ExplainFormat) -> Result<String> {
        self.block_on(async {
            let state = self.state();
            let analyzed = self.analyzed(&state, &*shared::written_out(plan)?)?;
            let optimized = self.optimized(&state, shared::written_out(&analyzed)?.into_owned())?;
            match &self.engine {
                Some(engine) => {
                    let prepared = Prepared::new(optimized)?;
                    let places = exec::places(&state, engine, prepared.cut(), &[]).await?;
                    let foresight = ForeseenPlans::new(&state, engine, &[]).with_places(places);
                    let explained =
                        explain(prepared.cut(), &[], engine.orders_joins(), &state, &foresight);
                    explained.map(|explained| explained.shown(format))
                }
                None if format != ExplainFormat::Indent => {
                    Ok(explain_on_cpu(&optimized, &state)?.shown(format))
                }
                None => {
                    let physical =
                        state.query_planner().create_physical_plan(&optimized, &state).await?;
                    let physical = datafusion::physical_plan::displayable(physical.as_ref())
                        .indent(false)
                        .to_string();
                    let mut logical = vec![optimized.display_indent().to_string()];
                    logical.extend(files_of(&optimized, &state)?);
                    Ok(format!("cpu\n{}\n\n{physical}", logical.join("\n")))
                }
            }
        })
    }

    pub(crate) fn state(&self) -> SessionState {
        self.context.state()
    }

    /// A table of rows that lie on this device or on the host.
    pub(crate) fn provider_of(
        &self,
        schema: &SchemaRef,
        data: &Data,
    ) -> Result<Arc<dyn TableProvider>> {
        match data {
            // Rows on another session's device are strangers to ours.
            Data::Device(table)
                if self.device().is_some_and(|device| device.same(table.device())) =>
            {
                Ok(Arc::new(DeviceTable { table: table.clone() }))
            }
            Data::Device(table) => {
                self.memory_table(table.to_batches()?, Some(table.schema().clone()))
            }
            Data::Host(batches) => self.memory_table(batches.to_vec(), Some(schema.clone())),
            Data::Divided(rows) => {
                let batches = rows.batches(DOWNLOAD_ROWS).collect::<Result<_>>()?;
                self.memory_table(batches, Some(schema.clone()))
            }
        }
    }

    /// A table of rows that lie on this device or on the host, as plans read it.
    pub(crate) fn source_of(&self, schema: &SchemaRef, data: &Data) -> Result<PlanTable> {
        Ok(provider_as_source(self.provider_of(schema, data)?))
    }

    /// A table of batches of one schema, which is `schema` where there need not be any.
    pub(crate) fn memory_table(
        &self,
        batches: Vec<RecordBatch>,
        schema: Option<SchemaRef>,
    ) -> Result<Arc<dyn TableProvider>> {
        let schema = match (schema, batches.first()) {
            (Some(schema), _) => schema,
            (None, Some(batch)) => batch.schema(),
            (None, None) => {
                return Err(Error::unsupported(
                    "a table of no batches",
                    "an empty batch is needed for its schema",
                ));
            }
        };
        if let Some(other) = batches.iter().find(|batch| batch.schema().fields() != schema.fields())
        {
            return Err(ErrorKind::TypeMismatch {
                what: "batches of one table".into(),
                expected: schema.to_string(),
                found: other.schema().to_string(),
            }
            .into());
        }
        for batch in &batches {
            of_their_types(batch)?;
        }
        // The CPU's operators work on partitions side by side; these hold the rows in order.
        let partitions = self.device().map_or(self.state().config().target_partitions(), |_| 1);
        let memory = Memory::new(schema, batches, partitions)?;
        Ok(Arc::new(SourceTable::new(Snapshot::of(Arc::new(memory)), None, self.most_filters())))
    }

    /// Most filters that scans of the CPU engine take. Devices filter themselves.
    pub(crate) fn most_filters(&self) -> usize {
        self.engine.as_ref().map_or(MOST_NESTED, |_| 0)
    }

    /// Waits for a future on a thread of its own: the caller may itself be inside a runtime, where
    /// waiting is forbidden, and deep plans recurse deeper than a small caller's stack allows. The
    /// future is dropped where the statement is to stop; a panic becomes an error.
    pub(crate) fn block_on<T: Send>(
        &self,
        future: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let runtime = &self.runtime;
        let statement = Running::begin(&self.switch);
        on_thread(|| {
            let _entered = statement.enter();
            runtime.block_on(statement.or_stop(future))
        })
    }
}

thread_local! {
    /// Whether this thread is one of [`Core::deep`].
    static IS_DEEP: Cell<bool> = const { Cell::new(false) };
}

/// Does something that takes long without a look at the switch on a thread of its own, which is left
/// to itself where the statement of this one is to stop. It is in the same statement: it ends where
/// it looks.
pub(crate) fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let Some(statement) = interrupt::current() else { return work() };
    let (sender, made) = mpsc::channel();
    let within = statement.clone();
    let thread = query_thread().spawn(move || {
        let _entered = within.enter();
        // Nobody waits for it any more where the statement was stopped.
        let _ = sender.send(work());
    });
    let thread = thread.map_err(|error| Error::io("", error))?;
    loop {
        match made.recv_timeout(PACE) {
            Ok(made) => {
                join_later(thread);
                return made;
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                if let Err(error) = statement.check() {
                    join_later(thread);
                    return Err(error.into());
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(match thread.join() {
                    Err(panic) => of_panic("planning", panic.as_ref()),
                    Ok(()) => Error::internal("planning ended without a plan"),
                });
            }
        }
    }
}

/// A thread whose stack suffices for deep plans.
fn query_thread() -> std::thread::Builder {
    const STACK: usize = 64 << 20;
    std::thread::Builder::new().name("warpframe-query".into()).stack_size(STACK)
}

/// Does something on a thread of its own, whose stack suffices for deep plans; a panic becomes an
/// error.
fn on_thread<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| match query_thread().spawn_scoped(scope, work) {
        Ok(thread) => {
            thread.join().unwrap_or_else(|panic| Err(of_panic("planning", panic.as_ref())))
        }
        Err(error) => Err(Error::io("", error)),
    })
}

/// Whether rules take long to go through a plan: it has many operators, or its expressions many
/// parts.
fn is_large(plan: &LogicalPlan) -> PlanResult<bool> {
    const LARGE: usize = 2000;
    let mut parts = 0;
    plan.apply_with_subqueries(|node| {
        parts += 1;
        node.apply_expressions(|expr| {
            expr.apply(|_| {
                parts += 1;
                Ok(if parts > LARGE {
                    TreeNodeRecursion::Stop
                } else {
                    TreeNodeRecursion::Continue
                })
            })
        })?;
        Ok(if parts > LARGE { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(parts > LARGE)
}

/// The plan as rules make it, on a thread that may be left to itself where they take long.
fn by_rules(
    state: &SessionState,
    plan: LogicalPlan,
    rules: impl FnOnce(&SessionState, LogicalPlan) -> Result<LogicalPlan> + Send + 'static,
) -> Result<LogicalPlan> {
    if !is_large(&plan)? {
        return rules(state, plan);
    }
    let state = state.clone();
    aside(move || rules(&state, plan))
}

/// The plan that reads a table without a name.
pub(crate) fn scan(source: &PlanTable) -> Result<LogicalPlan> {
    Ok(LogicalPlanBuilder::scan(UNNAMED_TABLE, source.clone(), None)?.build()?)
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

/// A file's own schema metadata (such as another writer's notes) says nothing about a query's
/// result.
fn without_metadata(schema: &Schema) -> SchemaRef {
    let fields: Vec<_> = schema
        .fields()
        .iter()
        .map(|f| f.as_ref().clone().with_metadata(Default::default()))
        .collect();
    Arc::new(Schema::new(fields))
}

/// The plan with its types made to agree, but not optimized, which could turn a sort into something
/// else.
fn analyzed(state: &SessionState, plan: &LogicalPlan) -> Result<LogicalPlan> {
    Ok(state.analyzer().execute_and_check(plan.clone(), state.config_options(), |_, _| {})?)
}

/// What a kept plan yielded; `None` where it has to be run in the usual way: tables are not there
/// yet, or the CPU takes over.
fn or_give_up<T>(
    engine: &Engine,
    prepared: &Prepared,
    ran: Result<Option<T>>,
) -> Result<Option<T>> {
    match ran {
        Err(error) if engine.gives_way(&error) => {
            // Memory may suffice the next time.
            if matches!(error.kind(), ErrorKind::Unsupported { .. }) {
                prepared.give_up();
            }
            Ok(None)
        }
        ran => ran,
    }
}
