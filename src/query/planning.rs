//! How plans are made: analyzed, optimized and cut, or found; and EXPLAIN of them.

use std::sync::Arc;

use datafusion::common::DFSchemaRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result as PlanResult;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;

use super::plans::FoundPlan;
use super::{Core, Recipe, SharedRows, aside, once, shared};
use crate::error::Result;
use crate::exec::{self, Engine, ForeseenPlans};
use crate::plan::{Prepared, explain, explain_on_cpu, files_of, with_nullable, with_one_row};
use crate::sql::ExplainFormat;
use warpframe_device::timeline::{Part, span};

impl Core {
    /// The plan of a recipe, optimized, and the tables for its placeholders. `None` where rows are
    /// to be computed before it can be optimized.
    pub(super) fn prepared_recipe(
        &self,
        engine: &Engine,
        recipe: &Recipe,
    ) -> Result<Option<FoundPlan>> {
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
    pub(super) fn prepared(
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
    pub(super) fn optimize(&self, state: &SessionState, plan: &LogicalPlan) -> Result<LogicalPlan> {
        let plan = self.analyzed(state, plan)?;
        let run = |rows: &LogicalPlan| {
            self.run_optimized(rows, |state| self.optimized(state, rows.clone()))
        };
        let plan = self.with_shared_rows(&plan, run)?.into_owned();
        self.optimized(state, plan)
    }

    /// The plan with its types made to agree, in which rows are shared that it may compute once
    /// only.
    pub(super) fn analyzed(&self, state: &SessionState, plan: &LogicalPlan) -> Result<LogicalPlan> {
        let plan = self.before_rules(state, plan)?;
        let plan = by_rules(state, plan, |state, plan| analyzed(state, &plan))?;
        Ok(once::shared(plan, self.engine().is_some())?)
    }

    /// An analyzed plan, optimized.
    pub(super) fn optimized(&self, state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
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

    /// The plan of a recipe, and what of it runs where.
    pub(crate) fn explain_recipe(&self, recipe: &Recipe, format: ExplainFormat) -> Result<String> {
        let Some(engine) = self.engine() else { return self.explain(&recipe.plan()?, format) };
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
            match self.engine() {
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
}

/// Whether rules take long to go through a plan: it has many operators, or its expressions many
/// parts.
pub(super) fn is_large(plan: &LogicalPlan) -> PlanResult<bool> {
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

/// The plan with its types made to agree, but not optimized, which could turn a sort into something
/// else.
pub(super) fn analyzed(state: &SessionState, plan: &LogicalPlan) -> Result<LogicalPlan> {
    Ok(state.analyzer().execute_and_check(plan.clone(), state.config_options(), |_, _| {})?)
}
