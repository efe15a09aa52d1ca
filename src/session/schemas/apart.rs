//! Tables of one name in two schemas, in one query.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    TableAlias, TableFactor, TableWithJoins, Visit, VisitMut, Visitor, VisitorMut,
};

use super::wrong;
use crate::error::{Error, Result};
use crate::session::Session;
use crate::sql::ast::{folded, idents, known};

impl Session {
    /// Names the schema of each table of a query in which tables of two schemas have one name: the
    /// planner (DataFusion 55.2) takes the name alone for that of either.
    ///
    /// # Errors
    /// A name without a schema's that means two tables.
    pub(in crate::session) fn tell_schemas_apart(&self, query: &mut Query) -> Result<()> {
        let in_use = self.schema_in_use();
        let databases = self.attached_databases();
        let mut names =
            NamesInSchemas { in_use: &in_use, databases: &databases, found: HashMap::new() };
        let ControlFlow::Continue(()) = Visit::visit(&*query, &mut names);
        if names.found.values().all(|schemas| schemas.len() < 2) {
            return Ok(());
        }
        self.qualify(query);
        if let ControlFlow::Break(error) = Visit::visit(&*query, &mut AmbiguousTables::default()) {
            return Err(error);
        }
        let ControlFlow::Continue(()) = VisitMut::visit(query, &mut BesideAliases);
        Ok(())
    }
}

/// The schemas in which a query looks for a table, by the table's name.
struct NamesInSchemas<'a> {
    in_use: &'a str,
    /// Those that are attached.
    databases: &'a [String],
    found: HashMap<String, HashSet<String>>,
}

impl Visitor for NamesInSchemas<'_> {
    type Break = std::convert::Infallible;

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Self::Break> {
        let TableFactor::Table { name, args: None, alias, .. } = factor else {
            return ControlFlow::Continue(());
        };
        // An alias is of no schema.
        if let Some(alias) = alias {
            self.found.entry(folded(&alias.name)).or_default().insert(String::new());
            return ControlFlow::Continue(());
        }
        let schema = match idents(name)[..] {
            [database, schema, _] if self.databases.contains(&folded(database)) => {
                format!("{}.{}", folded(database), folded(schema))
            }
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

/// Gives tables with their schemas' names, beside an alias or a query of WITH that has the name of
/// the table, aliases of their own.
struct BesideAliases;

impl VisitorMut for BesideAliases {
    type Break = std::convert::Infallible;

    /// ORDER BY names the tables, too.
    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        let SetExpr::Select(select) = query.body.as_mut() else { return ControlFlow::Continue(()) };
        let mut paths = give_aliases(select);
        match &mut query.order_by {
            Some(order) if !paths.0.is_empty() => VisitMut::visit(order, &mut paths),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        give_aliases(select);
        ControlFlow::Continue(())
    }
}

/// Does so in one query; the tables that got aliases.
fn give_aliases(select: &mut Select) -> PathsOfTables {
    let mut names = HashSet::new();
    select.from.iter().for_each(|table| without_schemas(table, &mut names));
    let mut paths = PathsOfTables(vec![]);
    select.from.iter_mut().for_each(|table| paths.give(table, &names));
    if paths.0.is_empty() {
        return paths;
    }
    for item in &mut select.projection {
        if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) =
            item
        {
            let own: Vec<Ident> = idents(name).into_iter().cloned().collect();
            if let Some((table, _)) = paths.of(&own) {
                *name = ObjectName::from(vec![table]);
            }
        }
    }
    let ControlFlow::Continue(()) = VisitMut::visit(select, &mut paths);
    paths
}

/// The names by which tables that are joined are known without a schema's.
fn without_schemas(table: &TableWithJoins, names: &mut HashSet<String>) {
    let joined = table.joins.iter().map(|join| &join.relation);
    for factor in [&table.relation].into_iter().chain(joined) {
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                without_schemas(table_with_joins, names);
            }
            TableFactor::Table { name, alias: None, .. } => {
                if let [table] = idents(name)[..] {
                    names.insert(folded(table));
                }
            }
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. } => {
                names.insert(folded(&alias.name));
            }
            _ => {}
        }
    }
}

/// Tables with their schemas' names, which are called by them.
struct PathsOfTables(Vec<Vec<String>>);

impl PathsOfTables {
    fn give(&mut self, table: &mut TableWithJoins, names: &HashSet<String>) {
        let joined = table.joins.iter_mut().map(|join| &mut join.relation);
        for factor in [&mut table.relation].into_iter().chain(joined) {
            match factor {
                TableFactor::NestedJoin { table_with_joins, alias: None } => {
                    self.give(table_with_joins, names);
                }
                TableFactor::Table { name, alias: alias @ None, args: None, .. } => {
                    let path: Vec<String> = idents(name).into_iter().map(folded).collect();
                    if path.len() > 1 && path.last().is_some_and(|own| names.contains(own)) {
                        let name = Ident::with_quote('"', path.join(" "));
                        *alias =
                            Some(TableAlias { explicit: true, name, columns: vec![], at: None });
                        self.0.push(path);
                    }
                }
                _ => {}
            }
        }
    }

    /// What the table is called that a path begins with, and by how many of its parts.
    fn of(&self, parts: &[Ident]) -> Option<(Ident, usize)> {
        let own: Vec<String> = parts.iter().map(folded).collect();
        let lengths = 2..=own.len();
        let found = lengths.rev().find_map(|length| {
            let path = self.0.iter().find(|path| path.ends_with(&own[..length]))?;
            Some((Ident::with_quote('"', path.join(" ")), length))
        });
        found.map(|(name, length)| (Ident { span: parts[0].span, ..name }, length))
    }
}

impl VisitorMut for PathsOfTables {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let Some((table, length)) = self.of(&parts[..parts.len() - 1])
        {
            parts.splice(..length, [table]);
        }
        ControlFlow::Continue(())
    }
}
