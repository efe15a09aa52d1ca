//! Names of tables with their schemas' before them, as the texts of views have them.

use std::ops::ControlFlow;

use datafusion::common::TableReference;
use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, ObjectNamePart, Query, TableFactor, VisitMut, VisitorMut,
};

use crate::session::Session;
use crate::sql::ast::{folded, idents};

impl Session {
    /// Names the schema of each table that a view's query names without it.
    pub(in crate::session) fn qualify(&self, query: &mut Query) {
        let schema = self.schema_in_use();
        let has_table = |name: &str| self.has_table(&TableReference::bare(name));
        let databases = self.attached_databases();
        let in_session = |database: &str, schema: &str| self.schema_of_database(database, schema);
        let mut names = QualifiedNames {
            schema: &schema,
            has_table: &has_table,
            databases: &databases,
            in_session: &in_session,
            with: vec![],
        };
        let ControlFlow::Continue(()) = VisitMut::visit(query, &mut names);
    }
}

/// Puts a schema before the names of tables, but for those of WITH queries, of files and of
/// functions.
struct QualifiedNames<'a> {
    schema: &'a str,
    has_table: &'a dyn Fn(&str) -> bool,
    /// Those that are attached.
    databases: &'a [String],
    /// What a schema of one of them is called in the session.
    in_session: &'a dyn Fn(&str, &str) -> String,
    /// Names of WITH queries, of each query around.
    with: Vec<Vec<String>>,
}

impl VisitorMut for QualifiedNames<'_> {
    type Break = std::convert::Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.with.push(vec![]);
        let Some(with) = &mut query.with else { return ControlFlow::Continue(()) };
        for cte in &mut with.cte_tables {
            let add = |with: &mut Vec<Vec<String>>| {
                with.last_mut().into_iter().for_each(|names| names.push(folded(&cte.alias.name)));
            };
            // Within itself, only a recursive one has its name.
            if with.recursive {
                add(&mut self.with);
            }
            let ControlFlow::Continue(()) = VisitMut::visit(&mut cte.query, self);
            if !with.recursive {
                add(&mut self.with);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.with.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        let TableFactor::Table { name, args: None, .. } = factor else {
            return ControlFlow::Continue(());
        };
        if let [database, schema, table] = idents(name)[..]
            && self.databases.contains(&folded(database))
        {
            let schema = schema_ident(&(self.in_session)(&folded(database), &folded(schema)));
            *name = ObjectName::from(vec![schema, table.clone()]);
        }
        let [ObjectNamePart::Identifier(ident)] = &name.0[..] else {
            return ControlFlow::Continue(());
        };
        let own = folded(ident);
        let of_with = self.with.iter().flatten().any(|with| *with == own);
        let of_file = ident.quote_style == Some('\'') && !(self.has_table)(&own);
        if !of_with && !of_file {
            let schema = Ident { span: ident.span, ..schema_ident(self.schema) };
            name.0.insert(0, ObjectNamePart::Identifier(schema));
        }
        ControlFlow::Continue(())
    }
}

/// A schema's name, in quotes where it would be another without.
pub(in crate::session) fn schema_ident(schema: &str) -> Ident {
    let plain = schema.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    if plain { Ident::new(schema) } else { Ident::with_quote('"', schema) }
}
