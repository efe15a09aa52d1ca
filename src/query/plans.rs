//! Plans that are kept for the next time, by how their frames came about: by SQL text, or by verbs.
//!
//! Planning takes a millisecond or more, running over small tables takes tens of microseconds. What
//! is kept is a plan's form alone (see `plan/tables.rs`): it fits any tables of the same schemas,
//! wherever they came from since. A form is forgotten where the session's settings, rules or
//! functions have changed, and when others were used more recently.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DFSchemaRef, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::planner::{ExprPlanner, RelationPlanner};
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, LogicalPlan, ScalarUDF, WindowUDF};
use datafusion::optimizer::{AnalyzerRule, OptimizerRule};
use futures::FutureExt;
use lru::LruCache;
use parking_lot::{Mutex, MutexGuard};

use super::hash::{MIXER, hash};
use super::recipe::{Form, LiftedPlan, Recipe};
use crate::error::Result;
use crate::plan::{PlanTable, Prepared, has_subqueries, same_table};

/// Most plans of a kind that are kept.
const MOST: NonZeroUsize = NonZeroUsize::new(256).unwrap();
/// Longest SQL text whose plan is kept: longer ones hold lists of values, and hardly come twice.
const LONGEST: usize = 1 << 16;

/// The plans that a session keeps.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    kept: Mutex<KeptPlans>,
    /// Somebody was given the context, and may register functions whenever he likes.
    exposed: AtomicBool,
}

#[derive(Debug, Default)]
struct KeptPlans {
    /// What all of them were made under.
    environment: Environment,
    texts: Recent<KeptText>,
    recipes: Recent<KeptRecipe>,
}

/// A query as it was typed.
#[derive(Debug)]
struct KeptText {
    text: String,
    plan: Arc<LiftedPlan>,
    /// What the placeholders are called, and what their tables look like.
    tables: Vec<(TableReference, SchemaRef)>,
}

/// What is known of frames that came about by verbs.
#[derive(Debug)]
struct KeptRecipe {
    form: Form,
    schema: DFSchemaRef,
    /// Once such a frame ran.
    prepared: Option<Arc<Prepared>>,
}

/// A plan that was found or made, and the tables for its placeholders.
pub(crate) type FoundPlan = (Arc<Prepared>, Vec<PlanTable>);

impl Plans {
    /// Drops what is kept.
    pub(crate) fn forget(&self) {
        let mut kept = self.kept.lock();
        let environment = std::mem::take(&mut kept.environment);
        *kept = KeptPlans { environment, ..KeptPlans::default() };
    }

    /// From now on functions may be other ones.
    pub(crate) fn expose(&self) {
        self.exposed.store(true, Relaxed);
    }

    /// The recipe of a text, over the tables that its names stand for now, all of which must be as
    /// `is_current` wants them. Blanks around a text do not matter: a script's statements have as
    /// many before them as put errors at their places.
    pub(crate) fn text(
        &self,
        state: &SessionState,
        text: &str,
        is_current: impl Fn(&TableReference) -> bool,
    ) -> Option<Recipe> {
        let text = text.trim();
        let mut kept = self.kept(state);
        let found = kept.texts.get(hash(text), |known| known.text == text)?;
        let mut sources = vec![];
        for (name, schema) in &found.tables {
            let source = source_of(state, name).filter(|_| is_current(name));
            sources.push(source.filter(|source| source.schema() == *schema)?);
        }
        Some(Recipe::Plan(found.plan.clone(), sources))
    }

    /// Keeps the recipe of a text whose names of tables are `names`, if it is one to be kept.
    pub(crate) fn keep_text(
        &self,
        state: &SessionState,
        text: &str,
        names: &[TableReference],
        recipe: &Recipe,
    ) {
        let (text, Recipe::Plan(plan, sources)) = (text.trim(), recipe) else { return };
        if text.len() > LONGEST {
            return;
        }
        // Every name must be one of these tables, and every table have its name: a view's tables
        // have none, say.
        let named = |source: &PlanTable| {
            let name = names
                .iter()
                .find(|name| source_of(state, name).is_some_and(|of| same_table(&of, source)));
            Some((name?.clone(), source.schema()))
        };
        let known = |name: &TableReference| {
            source_of(state, name)
                .is_some_and(|of| sources.iter().any(|source| same_table(&of, source)))
        };
        let Some(tables) = sources.iter().map(named).collect::<Option<_>>() else { return };
        if names.iter().all(known) {
            let text = KeptText { text: text.to_string(), plan: plan.clone(), tables };
            self.kept(state).texts.insert(hash(&text.text), text);
        }
    }

    /// The columns that a recipe leads to, if such a one was noted.
    pub(crate) fn known_schema(
        &self,
        state: &SessionState,
        recipe: &Recipe,
    ) -> Option<DFSchemaRef> {
        let mut kept = self.kept(state);
        Some(
            kept.recipes
                .get(recipe.hash(), |known| known.form.tables(recipe).is_some())?
                .schema
                .clone(),
        )
    }

    /// Notes the columns that a recipe leads to, whose plan this is.
    pub(crate) fn note_schema(&self, state: &SessionState, recipe: &Recipe, plan: &LogicalPlan) {
        // A subquery's tables would be held.
        if !has_subqueries(plan) {
            let known = KeptRecipe {
                form: Form::of(recipe).0,
                schema: plan.schema().clone(),
                prepared: None,
            };
            self.kept(state).recipes.insert(recipe.hash(), known);
        }
    }

    /// What a recipe's plan was prepared to be.
    pub(crate) fn prepared(&self, state: &SessionState, recipe: &Recipe) -> Option<FoundPlan> {
        let mut kept = self.kept(state);
        let mut tables = None;
        let known = kept.recipes.get(recipe.hash(), |known| {
            tables = known.form.tables(recipe).filter(|_| known.prepared.is_some());
            tables.is_some()
        })?;
        Some((known.prepared.clone()?, tables?))
    }

    /// Prepares the plan of a recipe with `optimize`, and keeps it if it is one to be kept. `None`
    /// where `optimize` makes none.
    pub(crate) fn prepare(
        &self,
        state: &SessionState,
        recipe: &Recipe,
        optimize: impl FnOnce(&LogicalPlan) -> Result<Option<LogicalPlan>>,
    ) -> Result<Option<FoundPlan>> {
        let (form, tables) = Form::of(recipe);
        let Some(plan) = recipe.lifted(&tables)? else {
            let Some(plan) = optimize(&recipe.plan()?)? else { return Ok(None) };
            return Ok(Some((Arc::new(Prepared::new(plan)?), vec![])));
        };
        let schema = plan.schema().clone();
        let Some(plan) = optimize(&plan)? else { return Ok(None) };
        let prepared = Arc::new(Prepared::new(plan)?);
        let mut kept = self.kept(state);
        kept.recipes
            .insert(recipe.hash(), KeptRecipe { form, schema, prepared: Some(prepared.clone()) });
        Ok(Some((prepared, tables)))
    }

    /// What is kept, as far as it was made under the present settings.
    fn kept(&self, state: &SessionState) -> MutexGuard<'_, KeptPlans> {
        let mut kept = self.kept.lock();
        if !kept.environment.is_that_of(state, self.exposed.load(Relaxed)) {
            *kept = KeptPlans { environment: Environment::of(state), ..KeptPlans::default() };
        }
        kept
    }
}

/// The table of a name, where the catalog says so at once.
fn source_of(state: &SessionState, name: &TableReference) -> Option<PlanTable> {
    let schema = state.schema_for_ref(name.clone()).ok()?;
    let provider = schema.table(name.table()).now_or_never()?.ok()??;
    Some(provider_as_source(provider))
}

/// What a session plans with, besides its tables. All of it is held: DataFusion replaces what is
/// shared instead of changing it, and what is held keeps its address, so that equal addresses mean
/// that nothing has changed.
#[derive(Default)]
struct Environment {
    options: Option<Arc<ConfigOptions>>,
    analyzer: Vec<Arc<dyn AnalyzerRule + Send + Sync>>,
    optimizer: Vec<Arc<dyn OptimizerRule + Send + Sync>>,
    planners: Vec<Arc<dyn ExprPlanner>>,
    relations: Vec<Arc<dyn RelationPlanner>>,
    /// What [`registered`] said of the functions, which are held so that no other gets the address
    /// of one.
    registered: u64,
    _functions: Functions,
}

#[derive(Default)]
struct Functions {
    _scalar: Vec<Arc<ScalarUDF>>,
    _higher_order: Vec<Arc<HigherOrderUDF>>,
    _aggregate: Vec<Arc<AggregateUDF>>,
    _window: Vec<Arc<WindowUDF>>,
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Environment({} rules)", self.analyzer.len() + self.optimizer.len())
    }
}

impl Environment {
    fn of(state: &SessionState) -> Environment {
        Environment {
            options: Some(state.config().options().clone()),
            analyzer: state.analyzer().rules.clone(),
            optimizer: state.optimizers().to_vec(),
            planners: state.expr_planners().to_vec(),
            relations: state.relation_planners().to_vec(),
            registered: registered(state),
            _functions: Functions {
                _scalar: state.scalar_functions().values().cloned().collect(),
                _higher_order: state.higher_order_functions().values().cloned().collect(),
                _aggregate: state.aggregate_functions().values().cloned().collect(),
                _window: state.window_functions().values().cloned().collect(),
            },
        }
    }

    /// `functions`: those may have changed, too.
    fn is_that_of(&self, state: &SessionState, functions: bool) -> bool {
        let options = |options: &Arc<ConfigOptions>| Arc::ptr_eq(options, state.config().options());
        self.options.as_ref().is_some_and(options)
            && same(&self.analyzer, &state.analyzer().rules)
            && same(&self.optimizer, state.optimizers())
            && same(&self.planners, state.expr_planners())
            && same(&self.relations, state.relation_planners())
            && (!functions || self.registered == registered(state))
    }
}

fn same<T: ?Sized>(a: &[Arc<T>], b: &[Arc<T>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| address(a) == address(b))
}

/// A number that another function, or one more or less, makes another; their order in the maps does
/// not matter.
fn registered(state: &SessionState) -> u64 {
    fn sum<T>(functions: &HashMap<String, Arc<T>>) -> u64 {
        let one = |(name, function): (&String, &Arc<T>)| {
            // Steps of 64-bit multiplicative hashing: the sum of bare addresses would not tell two
            // swapped names apart.
            let mixed = (address(function) as u64 ^ (name.len() as u64) << 56).wrapping_mul(MIXER);
            mixed ^ mixed >> 29
        };
        functions.iter().map(one).fold(functions.len() as u64, u64::wrapping_add)
    }
    sum(state.scalar_functions())
        .wrapping_add(sum(state.higher_order_functions()).rotate_left(1))
        .wrapping_add(sum(state.aggregate_functions()).rotate_left(2))
        .wrapping_add(sum(state.window_functions()).rotate_left(3))
}

/// Where a shared value lies.
fn address<T: ?Sized>(value: &Arc<T>) -> usize {
    Arc::as_ptr(value).cast::<()>() as usize
}

/// Values by the hash of what they are found by, which they hold; of more than [`MOST`] those used
/// last. Of two with one hash the last stays.
#[derive(Debug)]
struct Recent<V>(LruCache<u64, V>);

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Recent(LruCache::new(MOST))
    }
}

impl<V> Recent<V> {
    fn get(&mut self, hash: u64, is_it: impl FnOnce(&V) -> bool) -> Option<&V> {
        self.0.get(&hash).filter(|value| is_it(value))
    }

    fn insert(&mut self, hash: u64, value: V) {
        self.0.put(hash, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_stays() {
        let (mut recent, most) = (Recent::default(), MOST.get() as u64);
        for key in 0..most {
            recent.insert(key, key);
        }
        assert_eq!(recent.get(0, |_| true), Some(&0));
        recent.insert(most, most);
        assert_eq!(recent.get(0, |_| true), Some(&0));
        assert_eq!(recent.get(1, |_| true), None);
        assert_eq!(recent.get(2, |_| true), Some(&2));
    }

    #[test]
    fn equal_hashes_are_not_equal_keys() {
        let mut recent = Recent::default();
        recent.insert(7, "a");
        assert_eq!(recent.get(7, |value| *value == "b"), None);
        recent.insert(7, "b");
        assert_eq!(recent.get(7, |value| *value == "b"), Some(&"b"));
    }
}
