//! How plans run: on the device, on the CPU, and again where a file changed or a value did not fit
//! its inferred type.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, SortExpr};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::planning::analyzed;
use super::{Answer, Core, Data, Recipe, Verb, scan};
use crate::column::Table;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{self, Engine, Outcome};
use crate::io::Reading;
use crate::plan::{PlanTable, Prepared, with_present_types};

impl Core {
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

    pub(super) fn run_once(&self, plan: &LogicalPlan) -> Result<Answer> {
        self.as_statement(|| {
            let plan = &*self.with_shared_rows(plan, |rows| self.run_once(rows))?;
            self.run_optimized(plan, |state| self.optimize(state, plan))
        })
    }

    /// Runs what `optimize` makes of a plan.
    pub(super) fn run_optimized(
        &self,
        plan: &LogicalPlan,
        optimize: impl Fn(&SessionState) -> Result<LogicalPlan> + Sync,
    ) -> Result<Answer> {
        self.block_on(async {
            let state = self.state();
            let ran = match self.engine() {
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
            let Some(engine) = self.engine() else { return self.run(&recipe.plan()?) };
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
                let state = self.state();
                let kept = match prepared.direct() {
                    Some(plan) => exec::run_kept_stages(&state, engine, plan, &tables).await,
                    None => Ok(None),
                };
                if let Ok(Some(outcome)) = kept {
                    return Ok(answer_of(outcome, &prepared));
                }
                // As it was asked: what was cut hides the scans of the device's parts.
                let asked = recipe.plan()?;
                if let Err(error) = kept {
                    return Err(crate::io::diagnose(error, &state, &asked).await);
                }
                self.execute(&state, engine, &prepared, &tables, &asked).await
            })
        })
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
            Ok(outcome) => Ok(answer_of(outcome, prepared)),
            Err(error) => Err(crate::io::diagnose(error, state, asked).await),
        }
    }

    /// What the device yielded, or `None` where the CPU is to do it.
    pub(crate) fn or_on_cpu<T>(&self, ran: Result<T>) -> Result<Option<T>> {
        match (ran, self.engine()) {
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
        let Some(engine) = self.engine() else { return Ok(None) };
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
}

/// Runs a plan, and again where its files changed meanwhile, unless `is_of_one` knows better: no
/// answer is of two versions of one table. A panic becomes an error that names the files.
pub(super) async fn of_one_version<'a, T>(
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

fn answer_of(outcome: Outcome, prepared: &Prepared) -> Answer {
    match outcome {
        Outcome::Device(table) => Answer::of_table(table),
        Outcome::Divided(rows) => Answer { schema: rows.schema(), data: Data::Divided(rows) },
        Outcome::Host(batches) => {
            let planned = || Arc::new(prepared.schema().as_arrow().clone());
            let schema = batches.first().map_or_else(planned, |batch| batch.schema());
            Answer { schema, data: Data::Host(batches.into()) }
        }
    }
}

/// A file's own schema metadata (such as another writer's notes) says nothing about a query's
/// result.
pub(super) fn without_metadata(schema: &Schema) -> SchemaRef {
    let fields: Vec<_> = schema
        .fields()
        .iter()
        .map(|f| f.as_ref().clone().with_metadata(Default::default()))
        .collect();
    Arc::new(Schema::new(fields))
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
