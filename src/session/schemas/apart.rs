//! Tables of one name in two schemas, in one query.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor,
    TableWithJoins, Visit, Visitor,
};

use super::wrong;
use crate::error::{Error, Result};
use crate::session::Session;
use crate::session::files::{folded, known};
use crate::session::insert::idents;

impl Session {
    /// Names the schema of each table of a query in which tables of two schemas have one name: the
    /// planner (DataFusion 55.2) takes the name alone for that of either.
    ///
    /// # Errors
    /// A name without a schema's that means two tables.
    pub(in crate::session) fn tell_schemas_apart(&self, query: &mut Query) -> Result<()> {
        let in_use = self.schema_in_use();
        let mut names = NamesInSchemas { in_use: &in_use, found: HashMap::new() };
        let ControlFlow::Continue(()) = Visit::visit(&*query, &mut names);
        if names.found.values().all(|schemas| schemas.len() < 2) {
            return Ok(());
        }
        self.qualify(query);
        match Visit::visit(&*query, &mut AmbiguousTables::default()) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }
}

/// The schemas in which a query looks for a table, by the table's name.
struct NamesInSchemas<'a> {
    in_use: &'a str,
    found: HashMap<String, HashSet<String>>,
}

impl Visitor for NamesInSchemas<'_> {
    type Break = std::convert::Infallible;

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Self::Break> {
        let TableFactor::Table { name, args: None, .. } = factor else {
            return ControlFlow::Continue(());
        };
        let schema = match idents(name)[..] {
            [.., schema, _] => folded(schema),
            _ => self.in_use.to_string(),
        };
        if let Some(table) = idents(name).last() {
            self.found.entry(folded(table)).or_default().insert(schema);
        }
        ControlFlow::Continue(())
    }
}

/// Breaks off at a name of a table, without its schema, that two tables of the query have.
#[derive(Default)]
struct AmbiguousTables {
    /// What the tables of each query around are called, with their whole names.
    called: Vec<Vec<(String, String)>>,
}

impl AmbiguousTables {
    /// Of a name with a column behind it.
    fn check(&self, table: &Ident) -> ControlFlow<Error> {
        let own = folded(table);
        let has_it = |tables: &&Vec<(String, String)>| tables.iter().any(|(name, _)| *name == own);
        let tables = self.called.iter().rev().find(has_it).into_iter().flatten();
        let meant: Vec<String> =
            tables.filter(|(name, _)| *name == own).map(|(_, whole)| whole.clone()).collect();
        match &meant[..] {
            [one, other, ..] => {
                let message = format!("the table {own:?} is ambiguous: {one} or {other}");
                ControlFlow::Break(wrong(message).at(known(table.span.start)))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// What the tables that are joined are called, with their whole names.
fn called(table: &TableWithJoins, names: &mut Vec<(String, String)>) {
    let joined = table.joins.iter().map(|join| &join.relation);
    for factor in [&table.relation].into_iter().chain(joined) {
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                called(table_with_joins, names);
            }
            TableFactor::Table { name, alias: None, .. } => {
                if let Some(table) = idents(name).last() {
                    names.push((folded(table), name.to_string()));
                }
            }
            _ => {}
        }
    }
}

impl Visitor for AmbiguousTables {
    type Break = Error;

    /// ORDER BY names the tables, too.
    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        let mut names = vec![];
        if let SetExpr::Select(select) = query.body.as_ref() {
            select.from.iter().for_each(|table| called(table, &mut names));
        }
        self.called.push(names);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Error> {
        self.called.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Error> {
        let mut names = vec![];
        select.from.iter().for_each(|table| called(table, &mut names));
        self.called.push(names);
        for item in &select.projection {
            if let SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                _,
            ) = item
                && let [table] = idents(name)[..]
            {
                self.check(table)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<Error> {
        self.called.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
        match expr {
            Expr::CompoundIdentifier(parts) if parts.len() == 2 => self.check(&parts[0]),
            _ => ControlFlow::Continue(()),
        }
    }
}
