//! How a frame came about: from a table, a plan or an SQL text, by verbs. A session finds what it
//! prepared for frames that came about in the same way, whatever their tables.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DFSchemaRef;
use datafusion::logical_expr::LogicalPlan;

use super::hash::hash;
use super::scan;
use super::verb::Verb;
use crate::error::Result;
use crate::plan::{
    PlanTable, TablePlaceholder, bind, is_repeatable, is_small, lift, reads_placeholders,
    same_table,
};

/// Verbs above one another, up to which frames are recognized: whoever looks at them recurses as
/// deep.
const DEEPEST: usize = 100;

/// Verbs, and the tables and plans that they began with.
pub(crate) enum Recipe {
    /// All rows of a table.
    Table(PlanTable),
    /// A plan over placeholders, and the tables that they stand for.
    Plan(Arc<LiftedPlan>, Vec<PlanTable>),
    Verb {
        verb: Verb,
        left: Arc<Recipe>,
        right: Option<Arc<Recipe>>,
        hash: u64,
        depth: usize,
    },
}

/// A plan over placeholders that is not optimized yet.
#[derive(Debug)]
pub(crate) struct LiftedPlan {
    plan: LogicalPlan,
    hash: OnceLock<u64>,
}

impl LiftedPlan {
    fn hash(&self) -> u64 {
        *self.hash.get_or_init(|| hash(&self.plan))
    }

    fn is(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other) || self.hash() == other.hash() && self.plan == other.plan
    }
}

impl Recipe {
    /// Of a plan; `None` where it cannot be kept: it is deep, reads tables that are not the
    /// session's, or what it yields depends on more than its tables.
    pub(crate) fn of(plan: &LogicalPlan) -> Option<Recipe> {
        // Before it is lifted, which recurses as deep as the plan.
        let (plan, tables) = is_small(plan).then(|| lift(plan))??;
        let lifted = LiftedPlan { plan, hash: OnceLock::new() };
        Some(Recipe::Plan(Arc::new(lifted), tables))
    }

    /// A verb on what came of these.
    pub(crate) fn grown(verb: Verb, left: Arc<Recipe>, right: Option<Arc<Recipe>>) -> Recipe {
        let depth = 1 + right.as_ref().map_or(0, |right| right.depth()).max(left.depth());
        let hash = hash(&(&verb, left.hash(), right.as_ref().map(|right| right.hash())));
        Recipe::Verb { verb, left, right, hash, depth }
    }

    /// Whether a frame of one verb more would be recognized.
    pub(crate) fn may_grow(&self) -> bool {
        self.depth() < DEEPEST
    }

    /// The columns that it leads to, where that is plain.
    pub(crate) fn schema(&self) -> Option<DFSchemaRef> {
        match self {
            Recipe::Plan(lifted, _) => Some(lifted.plan.schema().clone()),
            _ => None,
        }
    }

    /// The last verb, if there is one.
    pub(crate) fn verb(&self) -> Option<&Verb> {
        match self {
            Recipe::Table(_) | Recipe::Plan(..) => None,
            Recipe::Verb { verb, .. } => Some(verb),
        }
    }

    /// Equal for equal verbs over equal plans and tables of equal schemas.
    pub(super) fn hash(&self) -> u64 {
        match self {
            Recipe::Table(source) => hash(&source.schema()),
            Recipe::Plan(lifted, _) => lifted.hash(),
            Recipe::Verb { hash, .. } => *hash,
        }
    }

    fn depth(&self) -> usize {
        match self {
            Recipe::Table(_) | Recipe::Plan(..) => 0,
            Recipe::Verb { depth, .. } => *depth,
        }
    }

    /// The plan over its tables.
    pub(crate) fn plan(&self) -> Result<LogicalPlan> {
        self.plan_over(&mut |table| table.clone())
    }

    /// The plan over placeholders, numbered as [`Form::of`] numbers its tables. `None` where it
    /// cannot be kept.
    pub(super) fn lifted(&self, tables: &[PlanTable]) -> Result<Option<Cow<'_, LogicalPlan>>> {
        // Two placeholders of a text may stand for one table by now: they have one number then.
        if let Recipe::Plan(lifted, sources) = self
            && sources.len() == tables.len()
        {
            return Ok(Some(Cow::Borrowed(&lifted.plan)));
        }
        let plan = self.plan_over(&mut |table| {
            let number = tables.iter().position(|known| same_table(known, table));
            TablePlaceholder::source(number.unwrap_or_default(), table.schema())
        })?;
        let keeps = is_small(&plan) && is_repeatable(&plan) && reads_placeholders(&plan);
        Ok(keeps.then_some(Cow::Owned(plan)))
    }

    fn plan_over(&self, source: &mut dyn FnMut(&PlanTable) -> PlanTable) -> Result<LogicalPlan> {
        match self {
            Recipe::Table(table) => scan(&source(table)),
            Recipe::Plan(lifted, tables) => {
                bind(&lifted.plan, &tables.iter().map(source).collect::<Vec<_>>())
            }
            Recipe::Verb { verb, left, right, .. } => {
                let left = left.plan_over(source)?;
                let right = right.as_ref().map(|right| right.plan_over(source)).transpose()?;
                verb.plan(&left, right.as_ref())
            }
        }
    }
}

/// A recipe without its tables, of which the schemas are left and which of them are one.
#[derive(Debug)]
pub(super) struct Form {
    shape: FormNode,
    schemas: Vec<SchemaRef>,
}

#[derive(Debug)]
enum FormNode {
    /// A table by its number: each has one, from left to right.
    Table(usize),
    /// A plan, and the numbers of its tables.
    Plan(Arc<LiftedPlan>, Vec<usize>),
    Verb {
        verb: Verb,
        left: Box<FormNode>,
        right: Option<Box<FormNode>>,
    },
}

impl Form {
    /// The form of a recipe, and the tables for its placeholders.
    pub(super) fn of(recipe: &Recipe) -> (Form, Vec<PlanTable>) {
        let mut tables = vec![];
        let shape = FormNode::of(recipe, &mut tables);
        let schemas = tables.iter().map(|table| table.schema()).collect();
        (Form { shape, schemas }, tables)
    }

    /// The tables for its placeholders, if it is the form of this recipe.
    pub(super) fn tables(&self, recipe: &Recipe) -> Option<Vec<PlanTable>> {
        let mut tables = vec![];
        let same = self.shape.is_that_of(recipe, &mut tables)
            && self.schemas.iter().zip(&tables).all(|(schema, table)| *schema == table.schema());
        same.then_some(tables)
    }
}

impl FormNode {
    fn of(recipe: &Recipe, tables: &mut Vec<PlanTable>) -> FormNode {
        match recipe {
            Recipe::Table(source) => FormNode::Table(number(tables, source)),
            Recipe::Plan(lifted, sources) => FormNode::Plan(
                lifted.clone(),
                sources.iter().map(|source| number(tables, source)).collect(),
            ),
            Recipe::Verb { verb, left, right, .. } => FormNode::Verb {
                verb: verb.clone(),
                left: Box::new(FormNode::of(left, tables)),
                right: right.as_ref().map(|right| Box::new(FormNode::of(right, tables))),
            },
        }
    }

    fn is_that_of(&self, recipe: &Recipe, tables: &mut Vec<PlanTable>) -> bool {
        match (self, recipe) {
            (FormNode::Table(placeholder), Recipe::Table(source)) => {
                number(tables, source) == *placeholder
            }
            (FormNode::Plan(lifted, numbers), Recipe::Plan(of, sources)) => {
                let same = lifted.is(of) && numbers.len() == sources.len();
                same && sources
                    .iter()
                    .zip(numbers)
                    .all(|(source, own)| number(tables, source) == *own)
            }
            (
                FormNode::Verb { verb, left, right },
                Recipe::Verb { verb: of, left: of_left, right: of_right, .. },
            ) => {
                verb == of
                    && left.is_that_of(of_left, tables)
                    && match (right, of_right) {
                        (Some(right), Some(of_right)) => right.is_that_of(of_right, tables),
                        (right, of_right) => right.is_none() && of_right.is_none(),
                    }
            }
            _ => false,
        }
    }
}

/// The number of a table among those that came before, to which it is added if it is new.
fn number(tables: &mut Vec<PlanTable>, source: &PlanTable) -> usize {
    tables.iter().position(|known| same_table(known, source)).unwrap_or_else(|| {
        tables.push(source.clone());
        tables.len() - 1
    })
}
