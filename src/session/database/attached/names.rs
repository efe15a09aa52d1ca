//! The names of schemas in attached databases.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Weak};

use datafusion::catalog::{CatalogProvider, SchemaProvider};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, SchemaName, Select, SelectItem,
    SelectItemQualifiedWildcardKind, Statement, TableFactor, VisitMut, VisitorMut,
};

use crate::session::schemas::{DatabaseSchemas, PUBLIC, schema_ident};
use crate::sql::ast::{folded, idents};

/// What DuckDB calls the first schema.
pub(super) const MAIN: &str = "main";

/// What a schema of an attached database is called in the session.
pub(in crate::session) fn in_session(database: &str, schema: &str) -> String {
    let schema = if schema == MAIN { PUBLIC } else { schema };
    DatabaseSchemas::Attached(database.into()).in_session(schema)
}

/// Lets names of three parts find the schemas of an attached database, which are the session's. It
/// lists none, so that none is listed twice.
#[derive(Debug)]
pub(super) struct AttachedCatalog {
    pub(super) name: String,
    pub(super) schemas: Weak<dyn CatalogProvider>,
}

impl CatalogProvider for AttachedCatalog {
    fn schema_names(&self) -> Vec<String> {
        vec![]
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        self.schemas.upgrade()?.schema(&in_session(&self.name, name))
    }
}

/// Gives schemas other names, wherever a statement names one before a table of its FROM.
pub(super) struct RenamedSchemas<'a> {
    renamed: &'a dyn Fn(&str) -> Option<String>,
    /// Schema and table, as they were named.
    tables: HashSet<(String, String)>,
    /// A table of a schema that has no other name.
    outside: Option<String>,
}

impl RenamedSchemas<'_> {
    /// Does so; a table whose schema has no other name, if there is one.
    pub(super) fn of(
        tree: &mut impl Renamed,
        renamed: &dyn Fn(&str) -> Option<String>,
    ) -> Option<String> {
        let mut names = RenamedSchemas { renamed, tables: HashSet::new(), outside: None };
        tree.rename_made(&mut names);
        let ControlFlow::Continue(()) = VisitMut::visit(tree, &mut names);
        // What a column's name begins with may stand before the table.
        let ControlFlow::Continue(()) = VisitMut::visit(tree, &mut PathsOfColumns(&names));
        names.outside
    }

    fn rename(&mut self, name: &mut ObjectName) {
        let [schema, table] = idents(name)[..] else { return };
        let (schema, table) = (folded(schema), folded(table));
        match (self.renamed)(&schema) {
            Some(other) => {
                name.0[0] = ObjectNamePart::Identifier(schema_ident(&other));
                self.tables.insert((schema, table));
            }
            None => self.outside = Some(name.to_string()),
        }
    }

    /// What stands for the schema of a table before a column's name.
    fn before(&self, schema: &Ident, table: &Ident) -> Option<Ident> {
        let schema = folded(schema);
        let (renamed, key) = ((self.renamed)(&schema)?, (schema, folded(table)));
        self.tables.contains(&key).then(|| schema_ident(&renamed))
    }
}

/// What names schemas: a statement, or a query.
pub(super) trait Renamed: VisitMut {
    /// Renames the schema that a statement makes, or makes something in.
    fn rename_made(&mut self, _: &mut RenamedSchemas<'_>) {}
}

impl Renamed for datafusion::sql::sqlparser::ast::Query {}

impl Renamed for Statement {
    fn rename_made(&mut self, names: &mut RenamedSchemas<'_>) {
        match self {
            Statement::CreateTable(create) => names.rename(&mut create.name),
            Statement::CreateView(view) => names.rename(&mut view.name),
            Statement::AlterTable(alter) => names.rename(&mut alter.name),
            Statement::CreateSchema { schema_name: SchemaName::Simple(name), .. } => {
                if let [own] = idents(name)[..]
                    && let Some(other) = (names.renamed)(&folded(own))
                {
                    *name = ObjectName::from(vec![schema_ident(&other)]);
                }
            }
            _ => {}
        }
    }
}

impl VisitorMut for RenamedSchemas<'_> {
    type Break = std::convert::Infallible;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        if let TableFactor::Table { name, args: None, .. } = factor {
            self.rename(name);
        }
        ControlFlow::Continue(())
    }
}

/// Renames schemas before the names of columns.
struct PathsOfColumns<'a>(&'a RenamedSchemas<'a>);

impl VisitorMut for PathsOfColumns<'_> {
    type Break = std::convert::Infallible;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        for item in &mut select.projection {
            if let SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                _,
            ) = item
                && let [schema, table] = idents(name)[..]
                && let Some(other) = self.0.before(schema, table)
            {
                name.0[0] = ObjectNamePart::Identifier(other);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [schema, table, _, ..] = &parts[..]
            && let Some(other) = self.0.before(schema, table)
        {
            parts[0] = Ident { span: parts[0].span, ..other };
        }
        ControlFlow::Continue(())
    }
}
