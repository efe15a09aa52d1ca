//! Names for columns that plans make. Users may call theirs anything, so that one of ours is chosen
//! among those that no column of the plan has.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};

/// Names that neither a plan has nor has been given out.
#[derive(Debug, Default)]
pub(crate) struct FreshNames {
    taken: HashSet<String>,
    made: usize,
}

impl FreshNames {
    /// Names that no operator of the plan, or of a subquery in it, has for a column.
    ///
    /// # Errors
    /// None that is known.
    pub(crate) fn of(plan: &LogicalPlan) -> Result<FreshNames> {
        let mut names = FreshNames::default();
        plan.apply_with_subqueries(|node| {
            let fields = node.schema().fields().iter();
            names.taken.extend(fields.map(|field| field.name()).filter(is_like).cloned());
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(names)
    }

    /// Names that are none of these.
    pub(crate) fn beside<'a>(taken: impl IntoIterator<Item = &'a String>) -> FreshNames {
        FreshNames { taken: taken.into_iter().filter(is_like).cloned().collect(), made: 0 }
    }

    /// Whether no name has been given out.
    pub(crate) fn is_unused(&self) -> bool {
        self.made == 0
    }

    /// The next name of a column that is `what`.
    pub(crate) fn name(&mut self, what: &str) -> String {
        loop {
            self.made += 1;
            let name = format!("{BEGIN}{what}_{}", self.made);
            if !self.taken.contains(&name) {
                return name;
            }
        }
    }
}

/// What names of ours begin with.
const BEGIN: &str = "__";

/// Whether a name could be one of ours.
fn is_like(name: &&String) -> bool {
    name.starts_with(BEGIN)
}

/// Different names for columns, of which those that come again get numbers.
pub(crate) fn different(names: &[String]) -> Vec<String> {
    let mut taken: HashSet<String> = names.iter().cloned().collect();
    let mut seen = HashSet::new();
    let of_its_own = |name: &String| match seen.insert(name.clone()) {
        true => name.clone(),
        false => {
            let mut numbered = (1..).map(|at| format!("{name}_{at}"));
            numbered.find(|name| taken.insert(name.clone())).unwrap_or_default()
        }
    };
    names.iter().map(of_its_own).collect()
}

/// The plan with different names for its columns, as a table has them.
pub(crate) fn with_different_names(plan: LogicalPlan) -> Result<LogicalPlan> {
    let own: Vec<String> =
        plan.schema().fields().iter().map(|field| field.name().clone()).collect();
    let names = different(&own);
    if names == own {
        return Ok(plan);
    }
    let columns = plan.schema().columns().into_iter().zip(names);
    let columns = columns.map(|(column, name)| Expr::Column(column).alias(name)).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_user_has_are_left_out() {
        let taken = ["a", "__drawn_1", "__drawn_3"].map(String::from);
        let mut names = FreshNames::beside(&taken);
        let given: Vec<String> = (0..2).map(|_| names.name("drawn")).collect();
        assert_eq!(given, ["__drawn_2", "__drawn_4"]);
    }
}
