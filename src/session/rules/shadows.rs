//! Queries of WITH that have the name of one around them, which they hide. DataFusion's planner
//! (55.2) refuses such names, so that the inner query gets another:
//!
//! ```text
//!   WITH q AS (…), r AS (WITH q AS (…) SELECT v FROM q) …
//!   WITH q AS (…), r AS (WITH "q 1" AS (…) SELECT v FROM "q 1" AS q) …
//! ```

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use crate::sql::ast::folded;
use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, Query, TableAlias, TableFactor, VisitMut, VisitorMut,
};

/// Visits a statement.
#[derive(Default)]
pub(super) struct ShadowedQueries {
    /// The names that queries around have, of the outermost first.
    around: Vec<Vec<String>>,
    renamed: usize,
}

impl VisitorMut for ShadowedQueries {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.around.push(names(query));
        ControlFlow::Continue(())
    }

    /// Those within have their names, so that what is left of a name means this query's.
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let own = self.around.pop().unwrap_or_default();
        let around: HashSet<&String> = self.around.iter().flatten().collect();
        for (at, name) in own.iter().enumerate() {
            if around.contains(name) {
                self.renamed += 1;
                rename(query, at, name, Ident::with_quote('"', format!("{name} {}", self.renamed)));
            }
        }
        ControlFlow::Continue(())
    }
}

fn names(query: &Query) -> Vec<String> {
    let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
    ctes.map(|cte| folded(&cte.alias.name)).collect()
}

/// Gives a query of WITH another name, in what may name it.
fn rename(query: &mut Query, at: usize, name: &str, other: Ident) {
    let mut renamer = Renamer { name, other: &other };
    let Some(with) = &mut query.with else { return };
    let first = if with.recursive { at } else { at + 1 };
    let mut ctes = std::mem::take(&mut with.cte_tables);
    for cte in ctes.iter_mut().skip(first) {
        let ControlFlow::Continue(()) = VisitMut::visit(cte, &mut renamer);
    }
    // What is behind WITH.
    let ControlFlow::Continue(()) = VisitMut::visit(query, &mut renamer);
    if let Some(cte) = ctes.get_mut(at) {
        cte.alias.name = other;
    }
    if let Some(with) = &mut query.with {
        with.cte_tables = ctes;
    }
}

struct Renamer<'a> {
    name: &'a str,
    other: &'a Ident,
}

impl VisitorMut for Renamer<'_> {
    type Break = Infallible;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Infallible> {
        if let TableFactor::Table { name, alias, args: None, .. } = factor
            && let [part] = &name.0[..]
            && let Some(own) = part.as_ident().cloned()
            && folded(&own) == self.name
        {
            *name = ObjectName::from(vec![self.other.clone()]);
            alias.get_or_insert_with(|| TableAlias {
                explicit: true,
                name: own,
                columns: vec![],
                at: None,
            });
        }
        ControlFlow::Continue(())
    }
}
