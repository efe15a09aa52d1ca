//! How a frame came about, so that a session can tell whether it met such a frame before: then its plan need be neither built nor
//! checked nor optimized.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::logical_expr::{LogicalPlan, TableSource};

use super::plans::hash;
use crate::error::Result;
use crate::frame::Verb;

/// Verbs above one another, up to which frames are recognized: whoever looks at them recurses as deep.
const DEEPEST: usize = 100;

/// Verbs, and the tables on the session's device that they began with.
pub(crate) enum Steps {
    Table(Arc<dyn TableSource>),
    Verb { verb: Verb, left: Arc<Steps>, right: Option<Arc<Steps>>, hash: u64, depth: usize },
}

impl Steps {
    /// A verb on what came of these.
    pub(crate) fn grown(verb: Verb, left: Arc<Steps>, right: Option<Arc<Steps>>) -> Steps {
        let depth = 1 + right.as_ref().map_or(0, |right| right.depth()).max(left.depth());
        let hash = hash(&(&verb, left.hash(), right.as_ref().map(|right| right.hash())));
        Steps::Verb { verb, left, right, hash, depth }
    }

    /// Whether a frame of one verb more would be recognized.
    pub(crate) fn may_grow(&self) -> bool {
        self.depth() < DEEPEST
    }

    /// The last verb, if there is one.
    pub(crate) fn last(&self) -> Option<&Verb> {
        match self {
            Steps::Table(_) => None,
            Steps::Verb { verb, .. } => Some(verb),
        }
    }

    /// Equal for equal verbs over tables of equal schemas.
    pub(crate) fn hash(&self) -> u64 {
        match self {
            Steps::Table(source) => hash(&source.schema()),
            Steps::Verb { hash, .. } => *hash,
        }
    }

    fn depth(&self) -> usize {
        match self {
            Steps::Table(_) => 0,
            Steps::Verb { depth, .. } => *depth,
        }
    }

    /// The plan, with scans that `scan` makes of the tables.
    pub(crate) fn plan(
        &self,
        scan: &mut dyn FnMut(&Arc<dyn TableSource>) -> Result<LogicalPlan>,
    ) -> Result<LogicalPlan> {
        match self {
            Steps::Table(source) => scan(source),
            Steps::Verb { verb, left, right, .. } => {
                let left = left.plan(scan)?;
                let right = right.as_ref().map(|right| right.plan(scan)).transpose()?;
                verb.plan(&left, right.as_ref())
            }
        }
    }
}

/// Steps without their tables, of which the schemas are left and which of them are one.
#[derive(Debug)]
pub(crate) struct Form {
    shape: FormNode,
    schemas: Vec<SchemaRef>,
}

#[derive(Debug)]
enum FormNode {
    /// A table by its number: each has one, from left to right.
    Placeholder(usize),
    Verb {
        verb: Verb,
        left: Box<FormNode>,
        right: Option<Box<FormNode>>,
    },
}

impl Form {
    /// The form of steps, and the tables for its placeholders.
    pub(crate) fn of(steps: &Steps) -> (Form, Vec<Arc<dyn TableSource>>) {
        let mut tables = vec![];
        let shape = FormNode::of(steps, &mut tables);
        let schemas = tables.iter().map(|table| table.schema()).collect();
        (Form { shape, schemas }, tables)
    }

    /// The tables for its placeholders, if it is the form of these steps.
    pub(crate) fn tables(&self, steps: &Steps) -> Option<Vec<Arc<dyn TableSource>>> {
        let mut tables = vec![];
        let same = self.shape.is_that_of(steps, &mut tables)
            && self.schemas.iter().zip(&tables).all(|(schema, table)| *schema == table.schema());
        same.then_some(tables)
    }
}

impl FormNode {
    fn of(steps: &Steps, tables: &mut Vec<Arc<dyn TableSource>>) -> FormNode {
        match steps {
            Steps::Table(source) => FormNode::Placeholder(number(tables, source)),
            Steps::Verb { verb, left, right, .. } => FormNode::Verb {
                verb: verb.clone(),
                left: Box::new(FormNode::of(left, tables)),
                right: right.as_ref().map(|right| Box::new(FormNode::of(right, tables))),
            },
        }
    }

    fn is_that_of(&self, steps: &Steps, tables: &mut Vec<Arc<dyn TableSource>>) -> bool {
        match (self, steps) {
            (FormNode::Placeholder(placeholder), Steps::Table(source)) => number(tables, source) == *placeholder,
            (FormNode::Verb { verb, left, right }, Steps::Verb { verb: of, left: of_left, right: of_right, .. }) => {
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
fn number(tables: &mut Vec<Arc<dyn TableSource>>, source: &Arc<dyn TableSource>) -> usize {
    tables.iter().position(|known| Arc::ptr_eq(known, source)).unwrap_or_else(|| {
        tables.push(source.clone());
        tables.len() - 1
    })
}
