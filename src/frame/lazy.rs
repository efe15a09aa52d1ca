//! Frames that are plans.

use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DFSchemaRef;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, SortExpr};

use super::DataFrame;
use crate::error::Result;
use crate::plan::is_small;
use crate::query::{Core, Recipe, Verb, scan};

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
#[derive(Clone)]
pub struct LazyFrame {
    pub(super) core: Arc<Core>,
    schema: DFSchemaRef,
    growth: Growth,
    /// Its plan may be deeper than the stack of the caller's thread takes.
    deep: bool,
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
        let recipe = core.device().and_then(|_| Recipe::of(&plan));
        let (core, schema, deep) = (core.clone(), plan.schema().clone(), !is_small(&plan));
        let growth = match recipe {
            Some(recipe) => Growth::Recipe(Arc::new(recipe), OnceLock::from(plan)),
            None => Growth::Plan(plan),
        };
        Ok(LazyFrame { core, schema, growth, deep })
    }

    /// The frame that a recipe leads to.
    pub(crate) fn of_recipe(core: &Arc<Core>, recipe: Recipe) -> Result<LazyFrame> {
        LazyFrame::of_recipe_with(core, recipe, Recipe::plan)
    }

    /// The frame of the rows of an eager one, wherever they lie.
    pub(super) fn of_frame(core: &Arc<Core>, frame: &DataFrame) -> Result<LazyFrame> {
        let source = core.source_of(&frame.schema, &frame.data)?;
        match core.device() {
            Some(_) => LazyFrame::of_recipe(core, Recipe::Table(source)),
            None => LazyFrame::of_plan(core, scan(&source)?),
        }
    }

    /// The frame of batches of one schema.
    pub(crate) fn of_batches(core: &Arc<Core>, batches: impl IntoIterator<Item = RecordBatch>) -> Result<LazyFrame> {
        let source = provider_as_source(core.memory_table(batches.into_iter().collect(), None)?);
        LazyFrame::of_plan(core, scan(&source)?)
    }

    /// The same, whose plan `plan` builds, if the session does not know its columns.
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
        Ok(LazyFrame { core: core.clone(), schema, growth, deep: false })
    }

    /// How it came about, where a session recognizes that.
    pub(crate) fn recipe(&self) -> Option<&Arc<Recipe>> {
        match &self.growth {
            Growth::Recipe(recipe, _) => Some(recipe),
            Growth::Plan(_) => None,
        }
    }

    pub(super) fn plan(&self) -> Result<&LogicalPlan> {
        match &self.growth {
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

    /// What a verb makes of this frame, or of it and another.
    fn grow(&self, verb: Verb, right: Option<&LazyFrame>) -> Result<LazyFrame> {
        if verb.is_small() && !self.deep && right.is_none_or(|right| !right.deep) {
            return self.grown(verb, right);
        }
        // On a thread whose stack suffices for what DataFusion's builder does with it.
        self.core.block_on(async {
            let verb = verb.balanced()?;
            let deep = !verb.is_small() || self.deep || right.is_some_and(|right| right.deep);
            Ok(LazyFrame { deep, ..self.grown(verb, right)? })
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

    /// Exactly these expressions, evaluated for each row.
    ///
    /// # Errors
    /// Unknown columns ([`crate::ErrorKind::ColumnNotFound`]), types that do not fit, two results
    /// of one name.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1, 2)")?.select([(col("column1") + col("column2")).alias("sum")])?;
    /// assert_eq!(frame.schema().field(0).name(), "sum");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn select(&self, exprs: impl IntoIterator<Item = Expr>) -> Result<LazyFrame> {
        self.grow(Verb::Select(exprs.into_iter().collect()), None)
    }

    /// All columns, and these expressions: each in place of the column of its name, or after all
    /// others. All see the columns as they were before.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT 1 AS a, 2 AS b")?;
    /// let frame = frame.with_columns([(col("a") * lit(10)).alias("b"), col("b").alias("c")])?;
    /// let names: Vec<_> = frame.schema().fields().iter().map(|f| f.name().clone()).collect();
    /// assert_eq!(names, ["a", "b", "c"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn with_columns(&self, exprs: impl IntoIterator<Item = Expr>) -> Result<LazyFrame> {
        self.grow(Verb::WithColumns(exprs.into_iter().collect()), None)
    }

    /// The rows for which the predicate is true; null is not true.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (2), (NULL)")?.filter(col("column1").not_eq(lit(1)))?;
    /// assert_eq!(frame.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn filter(&self, predicate: Expr) -> Result<LazyFrame> {
        self.grow(Verb::Filter(predicate), None)
    }

    /// Groups of rows in which these expressions are equal (null equals null); [`GroupBy::agg`]
    /// makes a row of each. No expressions make one group of all rows.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES ('a', 1), ('b', 2), ('a', 3)")?;
    /// assert_eq!(frame.group_by([col("column1")]).agg([sum(col("column2"))])?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn group_by(&self, keys: impl IntoIterator<Item = Expr>) -> GroupBy<LazyFrame> {
        GroupBy { frame: self.clone(), keys: keys.into_iter().collect() }
    }

    /// The rows in order of these keys; rows equal in all of them keep their order.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (2), (1)")?.sort([asc(col("column1"))])?;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn sort(&self, keys: impl IntoIterator<Item = SortExpr>) -> Result<LazyFrame> {
        self.grow(Verb::Sort(keys.into_iter().collect()), None)
    }

    /// The first `k` rows in the order of these keys, as [`LazyFrame::sort`] puts them; the others
    /// are not sorted.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (2), (3), (1)")?.top_k(2, [desc(col("column1"))])?;
    /// assert_eq!(frame.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn top_k(&self, k: usize, by: impl IntoIterator<Item = SortExpr>) -> Result<LazyFrame> {
        self.grow(Verb::TopK { k, by: by.into_iter().collect() }, None)
    }

    /// Pairs of rows, one of each frame, whose columns `left_on` and `right_on` are equal, in order
    /// of the lists; null equals nothing. What becomes of rows without a partner, `kind` says.
    ///
    /// The columns are those of both frames. A key that has the same name on both sides appears
    /// once; any other column of the right frame whose name the left one has too gets the suffix
    /// `_right`. Semi and anti joins have one side's columns.
    ///
    /// # Errors
    /// Unknown columns; lists of different length, or empty.
    ///
    /// ```
    /// use warpframe::prelude::*;
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let nation = session.scan_parquet("data/tpch/nation.parquet")?;
    /// let region = session.scan_parquet("data/tpch/region.parquet")?.filter(col("r_name").eq(lit("ASIA")))?;
    /// let asian = nation.join(&region, JoinType::Inner, ["n_regionkey"], ["r_regionkey"])?;
    /// assert_eq!(asian.collect()?.num_rows(), 5);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn join<L: AsRef<str>, R: AsRef<str>>(
        &self,
        right: &LazyFrame,
        kind: JoinType,
        left_on: impl IntoIterator<Item = L>,
        right_on: impl IntoIterator<Item = R>,
    ) -> Result<LazyFrame> {
        let left_on = left_on.into_iter().map(|name| name.as_ref().to_string()).collect();
        let right_on = right_on.into_iter().map(|name| name.as_ref().to_string()).collect();
        self.grow(Verb::Join { kind, left_on, right_on }, Some(right))
    }

    /// At most `n` rows after the first `skip`. Which ones those are is certain only after
    /// [`LazyFrame::sort`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (2), (3)")?.limit(1, 5)?;
    /// assert_eq!(frame.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn limit(&self, skip: usize, n: usize) -> Result<LazyFrame> {
        self.grow(Verb::Limit { skip, n }, None)
    }

    /// One of each set of equal rows; null equals null.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert_eq!(session.sql("VALUES (1), (1), (NULL), (NULL)")?.distinct()?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn distinct(&self) -> Result<LazyFrame> {
        self.grow(Verb::Distinct, None)
    }

    /// The rows of both frames, duplicates included; columns are matched by position.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let one = session.sql("SELECT 1 AS x")?;
    /// assert_eq!(one.union(&one)?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn union(&self, other: &LazyFrame) -> Result<LazyFrame> {
        self.grow(Verb::Union, Some(other))
    }

    /// Runs the query.
    ///
    /// # Errors
    /// What only running shows: files' bad content, overflow, division by zero, too little device
    /// memory; in strict mode a part that the device cannot run.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.sql("SELECT 1")?.collect()?.show()?;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn collect(&self) -> Result<DataFrame> {
        match &self.growth {
            Growth::Plan(plan) => self.core.run(plan),
            Growth::Recipe(recipe, _) => self.core.run_recipe(recipe),
        }
        .map(|answer| DataFrame::new(self.core.clone(), answer))
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
        match &self.growth {
            Growth::Plan(plan) => self.core.explain(plan),
            Growth::Recipe(recipe, _) => self.core.explain_recipe(recipe),
        }
    }

    /// The names and types of the columns.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert_eq!(session.sql("SELECT 1 AS one")?.schema().field(0).name(), "one");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn schema(&self) -> SchemaRef {
        Arc::new(self.schema.as_arrow().clone())
    }
}

/// A frame with its rows grouped; see [`LazyFrame::group_by`] and [`DataFrame::group_by`].
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let groups: GroupBy<LazyFrame> = session.sql("VALUES (1), (2)")?.group_by([]);
/// assert_eq!(groups.agg([max(col("column1"))])?.collect()?.num_rows(), 1);
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing is computed before agg"]
pub struct GroupBy<F> {
    frame: F,
    keys: Vec<Expr>,
}

impl<F> GroupBy<F> {
    pub(crate) fn new(frame: F, keys: Vec<Expr>) -> Self {
        GroupBy { frame, keys }
    }
}

impl GroupBy<LazyFrame> {
    /// One row a group: the keys, then these aggregates. The order of the rows is not promised.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES ('a', 1), ('b', 2), ('a', 3)")?.group_by([col("column1")]);
    /// let sums = frame.agg([sum(col("column2")).alias("total"), avg(col("column2")).alias("mean")])?;
    /// assert_eq!(sums.schema().fields().len(), 3);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn agg(self, aggregates: impl IntoIterator<Item = Expr>) -> Result<LazyFrame> {
        let aggregates = aggregates.into_iter().collect();
        self.frame.grow(Verb::Aggregate { keys: self.keys, aggregates }, None)
    }
}

impl GroupBy<DataFrame> {
    /// One row a group: the keys, then these aggregates. The order of the rows is not promised.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES ('a', 1), ('b', 2), ('a', 3)")?.collect()?;
    /// assert_eq!(frame.group_by([col("column1")]).agg([sum(col("column2"))])?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn agg(self, aggregates: impl IntoIterator<Item = Expr>) -> Result<DataFrame> {
        let aggregates = aggregates.into_iter().collect();
        self.frame.verb(Verb::Aggregate { keys: self.keys, aggregates }, None)
    }
}
