//! Views: queries that are kept as texts, and planned anew by each query that reads them, so that
//! they see their tables as these are.

use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::datasource::ViewTable;
use datafusion::sql::sqlparser::ast::{self, CreateView, Ident};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::bare_statement;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::different;
use crate::session::catalog::Catalog;
use crate::session::schemas::PUBLIC;
use crate::session::{Session, rules, syntax};
use crate::sql::ast::{folded, table_name};
use crate::sql::{Text, quoted_name, type_name};

impl Session {
    /// What was done.
    pub(super) fn create_view(&self, view: CreateView, text: &Text<'_>) -> Result<String> {
        let (name, at) = table_name(&view.name, "CREATE VIEW")?;
        let at = at.or(text.place_of(name.table()));
        let called = name.to_string();
        let refused = |what: &str| {
            let why = "no part of the engine would look at it";
            Err(Error::unsupported(format!("CREATE VIEW with {what}"), why).at(at))
        };
        if view.materialized {
            return refused("MATERIALIZED: CREATE TABLE … AS keeps rows");
        }
        let ast::Statement::CreateView(mut bare) = bare_statement("CREATE VIEW v AS SELECT 1")?
        else {
            return Err(Error::internal("a statement that makes no view"));
        };
        (bare.name, bare.query, bare.columns) =
            (view.name.clone(), view.query.clone(), view.columns.clone());
        (bare.or_replace, bare.if_not_exists, bare.temporary) =
            (view.or_replace, view.if_not_exists, view.temporary);
        bare.name_before_not_exists = view.name_before_not_exists;
        if bare != view {
            return refused("clauses of other systems");
        }
        let alone = self.alone()?;
        if self.has_table(&name) && !view.or_replace && view.if_not_exists {
            return Ok(format!("view {name}"));
        }
        if self.has_table(&name) && !(view.or_replace && self.is_view(&name)?) {
            let message = match self.is_view(&name)? {
                true => format!("there is a view named {called:?}; CREATE OR REPLACE replaces it"),
                false => format!("{called:?} is a table: DROP TABLE drops it"),
            };
            return Err(Error::from(ErrorKind::Plan { message, location: None }).at(at));
        }
        let mut columns: Vec<Ident> = view.columns.into_iter().map(|column| column.name).collect();
        let statement = ast::Statement::Query(view.query.clone());
        let frame = self.planned_frame(statement, text)?;
        let mut query = view.query;
        self.qualify(&mut query);
        self.refuse_other_databases(&name, &query).map_err(|error| error.at(at))?;
        if columns.is_empty() {
            let own: Vec<String> =
                frame.schema().fields().iter().map(|field| field.name().clone()).collect();
            let names = different(&own);
            if names != own {
                columns = names.iter().map(|name| Ident::with_quote('"', name)).collect();
            }
        }
        let definition = match columns.is_empty() {
            true => query.to_string(),
            false => {
                let found = frame.schema().fields().len();
                if found != columns.len() {
                    let message =
                        format!("CREATE VIEW: {} names for {found} columns", columns.len());
                    return Err(Error::from(ErrorKind::Plan { message, location: None }).at(at));
                }
                let names: Vec<String> = columns
                    .iter()
                    .map(|name| Ident::with_quote('"', folded(name)).to_string())
                    .collect();
                let table = name.table().replace('"', "\"\"");
                format!("SELECT * FROM ({query}) AS \"{table}\" ({})", names.join(", "))
            }
        };
        if self.reads(&definition, &name, 0)? {
            let message = format!("CREATE VIEW: the view {called:?} would read itself");
            return Err(Error::from(ErrorKind::Plan { message, location: None }).at(at));
        }
        let table = self.core.block_on(self.view_of(definition))?;
        self.put(&alone, &name, table).map_err(|error| error.at(at))?;
        Ok(format!("view {name}"))
    }

    /// The text of a view; `None` of a table.
    pub(in crate::session) fn view_text(&self, name: &TableReference) -> Result<Option<String>> {
        // Not planned anew: a view of tables that are gone is one still.
        let found = self
            .core
            .block_on(async { Ok(self.core.context.table_provider(name.clone()).await) })?;
        let provider = found.map_err(|_| self.missing_table(name))?;
        Ok(of_view(provider.as_ref()))
    }

    /// The statement that makes a table, or a view, by the names of SQL.
    ///
    /// # Errors
    /// [`ErrorKind::TableNotFound`].
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.execute("CREATE TABLE t (a INT, \"b c\" TEXT)")?;
    /// session.execute("CREATE VIEW v AS SELECT a FROM t")?;
    /// assert_eq!(
    ///     session.create_statement("t")?,
    ///     "CREATE TABLE t (\n    a INTEGER,\n    \"b c\" VARCHAR\n);"
    /// );
    /// assert_eq!(session.create_statement("v")?, "CREATE VIEW v AS SELECT a FROM public.t;");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn create_statement(&self, table: &str) -> Result<String> {
        let name = self.named(table);
        let parts = [name.schema().filter(|schema| *schema != PUBLIC), Some(name.table())];
        let called = parts.into_iter().flatten().map(quoted_name).collect::<Vec<_>>().join(".");
        if let Some(query) = self.view_text(&name)? {
            return Ok(format!("CREATE VIEW {called} AS {query};"));
        }
        let constraints = self.constraints_of(&name);
        let column = |field: &FieldRef| {
            let more = constraints.text_of_column(field.name());
            format!("{} {}{more}", quoted_name(field.name()), type_name(field.data_type()))
        };
        let mut lines = self.schema(table)?.fields().iter().map(column).collect::<Vec<_>>();
        lines.extend(constraints.texts());
        Ok(format!("CREATE TABLE {called} (\n    {}\n);", lines.join(",\n    ")))
    }

    /// Whether there is a view of this name.
    fn is_view(&self, name: &TableReference) -> Result<bool> {
        Ok(self.has_table(name) && self.view_text(name)?.is_some())
    }

    /// Fails where a view has the name of a table that is to be: no statement about tables replaces
    /// a view, whose text would be lost.
    pub(in crate::session) fn not_a_view(&self, name: &TableReference) -> Result<()> {
        if !self.is_view(name)? {
            return Ok(());
        }
        let message = format!("{:?} is a view: DROP VIEW drops it", name.to_string());
        Err(ErrorKind::Plan { message, location: None }.into())
    }

    /// Whether a query reads a table, by views or without.
    pub(super) fn reads(&self, text: &str, table: &TableReference, depth: usize) -> Result<bool> {
        let state = self.core.state();
        let names = &state.config_options().catalog;
        let whole = |name: &TableReference| {
            name.clone().resolve(&names.default_catalog, &names.default_schema)
        };
        let statement = rules::parsed(&state, &syntax::kept(text))?;
        for name in state.resolve_table_references(&statement)? {
            if whole(&name) == whole(table) {
                return Ok(true);
            }
            let found = self
                .core
                .block_on(async { Ok(self.core.context.table_provider(name).await.ok()) })?;
            if let Some(inner) = found.and_then(|provider| of_view(provider.as_ref()))
                && (depth >= DEEPEST || self.reads(&inner, table, depth + 1)?)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn view_of(&self, definition: String) -> Result<Arc<dyn TableProvider>> {
        let plan = {
            let text = syntax::kept(&definition);
            let (plan, _) = self.plan_query(self.parsed(&text)?, &text).await?;
            rules::of_view(self.core.with_agreed_types(plan)?)?
        };
        Ok(Arc::new(ViewTable::new(plan, Some(definition))))
    }

    /// Plans the views among these tables anew.
    pub(in crate::session) fn views_planned<'a>(
        &'a self,
        tables: &'a [TableReference],
    ) -> BoxFuture<'a, Result<()>> {
        async move {
            for name in tables {
                let Ok(provider) = self.core.context.table_provider(name.clone()).await else {
                    continue;
                };
                let Some(definition) = of_view(provider.as_ref()) else { continue };
                let table = self.view_of(definition).await.map_err(|error| {
                    let message = format!("the view {:?}: {error}", name.table());
                    Error::from(ErrorKind::Plan { message, location: None })
                })?;
                let state = self.core.context.state_ref();
                let schema = state.read().schema_for_ref(name.clone())?;
                // Whoever dropped or replaced the view meanwhile is not undone.
                let schema: &dyn std::any::Any = schema.as_ref();
                if let Some(tables) = schema.downcast_ref::<Catalog>() {
                    tables.replace(name.table(), &provider, table);
                }
            }
            Ok(())
        }
        .boxed()
    }
}

/// Views that read one another, up to so many.
const DEEPEST: usize = 100;

/// The text of a view.
fn of_view(provider: &dyn TableProvider) -> Option<String> {
    let any: &dyn std::any::Any = provider;
    any.downcast_ref::<ViewTable>()?.definition().cloned()
}
