//! Frames that are plans.

use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DFSchemaRef;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::LogicalPlan;

use super::base::AnyFrame;
use crate::error::Result;
use crate::plan::is_small;
use crate::query::{Core, Recipe, SharedRows, Verb, scan};
use crate::sql::ExplainFormat;

/// A query that has not run yet.
///
/// ```
/// use warpframe::prelude::*;
///
/// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let jets = session
///     .scan_csv("data/jets.csv")?
///     .filter(col("E").gt(lit(10.0)))?
///     .group_by([col("jetid")])
///     .agg([sum(col("px")).alias("px"), count_rows().alias("n")])?
///     .sort([desc(col("n")), asc(col("jetid"))])?
///     .limit(0, 10)?;
/// assert_eq!(jets.collect()?.num_rows(), 10);
/// # Ok::<(), warpframe::Error>(())
/// ```
pub type LazyFrame = AnyFrame<Lazy>;

/// The state of a [`LazyFrame`]: how it came about.
#[derive(Clone)]
pub struct Lazy {
    pub(super) schema: DFSchemaRef,
    /// With the types that its rows have, once they are asked for.
    agreed: OnceLock<SchemaRef>,
    growth: Growth,
    /// Its plan may be deeper than the stack of the caller's thread takes.
    deep: bool,
}

impl Lazy {
    fn of(schema: DFSchemaRef, growth: Growth, deep: bool) -> Lazy {
        Lazy { schema, agreed: OnceLock::new(), growth, deep }
    }
}

/// How a frame came about.
#[derive(Clone)]
enum Growth {
    /// By what a session recognizes. Where it has noted such a frame, the plan is built when it is
    /// asked for.
    Recipe(Arc<Recipe>, OnceLock<LogicalPlan>),
    /// From a plan that no session keeps.
    Plan(LogicalPlan),
}

impl std::fmt::Debug for LazyFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.plan() {
            Ok(plan) => write!(f, "{}", plan.display_indent()),
            Err(error) => write!(f, "{error}"),
        }
    }
}

impl LazyFrame {
    /// The frame of a plan.
    pub(crate) fn of_plan(core: &Arc<Core>, plan: LogicalPlan) -> Result<LazyFrame> {
        let recipe = core.engine().and_then(|_| Recipe::of(&plan));
        let (core, schema, deep) = (core.clone(), plan.schema().clone(), !is_small(&plan));
        let growth = match recipe {
            Some(recipe) => Growth::Recipe(Arc::new(recipe), OnceLock::from(plan)),
            None => Growth::Plan(plan),
        };
        Ok(LazyFrame { core, state: Lazy::of(schema, growth, deep) })
    }

    /// The frame that a recipe leads to.
    pub(crate) fn of_recipe(core: &Arc<Core>, recipe: Recipe) -> Result<LazyFrame> {
        LazyFrame::of_recipe_with(core, recipe, Recipe::plan)
    }

    /// The frame of batches of one schema.
    pub(crate) fn of_batches(
        core: &Arc<Core>,
        batches: impl IntoIterator<Item = RecordBatch>,
    ) -> Result<LazyFrame> {
        let source = provider_as_source(core.memory_table(batches.into_iter().collect(), None)?);
        LazyFrame::of_plan(core, scan(&source)?)
    }

    /// The frame that a recipe leads to. `plan` builds the plan if the session does not know the
    /// recipe's columns.
    fn of_recipe_with(
        core: &Arc<Core>,
        recipe: Recipe,
        plan: impl FnOnce(&Recipe) -> Result<LogicalPlan>,
    ) -> Result<LazyFrame> {
        let (schema, plan) = match recipe.schema().or_else(|| core.known_schema(&recipe)) {
            Some(schema) => (schema, OnceLock::new()),
            None => {
                let plan = plan(&recipe)?;
                core.note_schema(&recipe, &plan);
                (plan.schema().clone(), OnceLock::from(plan))
            }
        };
        let growth = Growth::Recipe(Arc::new(recipe), plan);
        Ok(LazyFrame { core: core.clone(), state: Lazy::of(schema, growth, false) })
    }

    /// How it came about, where a session recognizes that.
    pub(crate) fn recipe(&self) -> Option<&Arc<Recipe>> {
        match &self.state.growth {
            Growth::Recipe(recipe, _) => Some(recipe),
            Growth::Plan(_) => None,
        }
    }

    pub(crate) fn plan(&self) -> Result<&LogicalPlan> {
        match &self.state.growth {
            Growth::Plan(plan) => Ok(plan),
            Growth::Recipe(recipe, plan) => match plan.get() {
                Some(plan) => Ok(plan),
                None => {
                    let built = recipe.plan()?;
                    Ok(plan.get_or_init(|| built))
                }
            },
        }
    }

    /// The columns with the types that their rows have. Where types do not agree, running the frame
    /// says so.
    pub(super) fn agreed_schema(&self) -> SchemaRef {
        let agreed = || match self.state.deep {
            true => self.core.block_on(async { self.core.agreed_schema(self.plan()?) }),
            false => self.core.agreed_schema(self.plan()?),
        };
        let planned = |_| Arc::new(self.state.schema.as_arrow().clone());
        self.state.agreed.get_or_init(|| agreed().unwrap_or_else(planned)).clone()
    }

    /// The plan before any rule changed it: for tests of rules, one by one.
    #[doc(hidden)]
    pub fn plan_before_rules(&self) -> Result<LogicalPlan> {
        self.core.before_rules(&self.core.state(), self.plan()?)
    }

    /// The frame for several readers: what is drawn in its rows, all of them see alike.
    pub(super) fn drawn_once(self) -> Result<LazyFrame> {
        // What a session recognizes draws nothing.
        let Growth::Plan(plan) = &self.state.growth else { return Ok(self) };
        match SharedRows::of_volatile(plan)? {
            Some(plan) => LazyFrame::of_plan(&self.core, plan),
            None => Ok(self),
        }
    }

    /// The frame, in which rows of one reader are no longer shared.
    pub(super) fn with_own_rows(self) -> Result<LazyFrame> {
        let Growth::Plan(plan) = &self.state.growth else { return Ok(self) };
        match SharedRows::any(plan)? {
            true => LazyFrame::of_plan(&self.core, SharedRows::of_several_readers(plan)?),
            false => Ok(self),
        }
    }

    /// What a verb makes of this frame, or of it and another.
    pub(super) fn grow(&self, verb: Verb, right: Option<&LazyFrame>) -> Result<LazyFrame> {
        if verb.is_small() && !self.state.deep && right.is_none_or(|right| !right.state.deep) {
            return self.grown(verb, right);
        }
        // On a thread whose stack suffices for what DataFusion's builder does with it.
        self.core.block_on(async {
            let verb = verb.balanced()?;
            let deep =
                !verb.is_small() || self.state.deep || right.is_some_and(|right| right.state.deep);
            let mut grown = self.grown(verb, right)?;
            grown.state.deep = deep;
            Ok(grown)
        })
    }

    fn grown(&self, verb: Verb, right: Option<&LazyFrame>) -> Result<LazyFrame> {
        let plan = |verb: &Verb| verb.plan(self.plan()?, right.map(LazyFrame::plan).transpose()?);
        let recognized = |frame: &LazyFrame| {
            let own = Arc::ptr_eq(&frame.core, &self.core);
            frame.recipe().filter(|recipe| own && recipe.may_grow()).cloned()
        };
        match (recognized(self).filter(|_| verb.is_small()), right.map(recognized)) {
            (None, _) | (_, Some(None)) => LazyFrame::of_plan(&self.core, plan(&verb)?),
            (Some(left), right) => {
                let recipe = Recipe::grown(verb, left, right.flatten());
                LazyFrame::of_recipe_with(&self.core, recipe, |recipe| {
                    recipe.verb().map_or_else(|| recipe.plan(), plan)
                })
            }
        }
    }

    /// The optimized plan as text, with what of it runs on the device, what on the CPU, and why.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert!(session.sql("SELECT 1 + 1")?.explain()?.contains("Int64(2)"));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn explain(&self) -> Result<String> {
        self.explain_as(ExplainFormat::Indent)
    }

    /// [`LazyFrame::explain`] in another format.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// use warpframe::ExplainFormat;
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let plan = session.sql("SELECT 1 + 1")?.explain_as(ExplainFormat::Json)?;
    /// assert!(plan.contains("\"operator\": \"Projection\""), "{plan}");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn explain_as(&self, format: ExplainFormat) -> Result<String> {
        match &self.state.growth {
            Growth::Plan(plan) => self.core.explain(plan, format),
            Growth::Recipe(recipe, _) => self.core.explain_recipe(recipe, format),
        }
    }
}
