//! Whether rows are what is said of their table (`constraints.rs`).

use std::any::Any;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, ScalarValue, TableReference};
use datafusion::logical_expr::{Expr, LogicalPlan, cast, ident, lit};
use datafusion::sql::parser;
use datafusion::sql::sqlparser::ast::{self, SelectItem, TableWithJoins};

use super::Session;
use super::append::{NewColumn, place};
use super::catalog::Catalog;
use super::constraints::{Constraints, UniqueColumns};
use super::insert::{bare_statement, fitted_literal};
use super::statements::{factor, select};
use super::writers::Alone;
use crate::error::{Error, ErrorKind, Result};
use crate::frame::DataFrame;
use crate::frame::expr::count_rows;
use crate::plan::FreshNames;
use crate::sql::Text;

impl Session {
    /// What is said of a table that is there.
    pub(super) fn constraints_of(&self, table: &TableReference) -> Constraints {
        let of = |catalog: &Catalog| catalog.constraints(table.table());
        self.in_catalog(table, of).unwrap_or_default()
    }

    /// Says this of a table, and nothing else.
    pub(super) fn constrain(
        &self,
        _: &Alone<'_>,
        table: &TableReference,
        constraints: Constraints,
    ) {
        self.in_catalog(table, |catalog| catalog.constrain(table.table(), constraints));
    }

    fn in_catalog<T>(&self, table: &TableReference, run: impl FnOnce(&Catalog) -> T) -> Option<T> {
        let state = self.core.context.state_ref();
        let schema = state.read().schema_for_ref(self.in_schemas(table)).ok()?;
        let schema: &dyn Any = schema.as_ref();
        schema.downcast_ref::<Catalog>().map(run)
    }

    /// Keeps a frame's rows as those of a table that is there, of which is said what was said
    /// before.
    pub(super) fn keep_rows(
        &self,
        alone: &Alone<'_>,
        table: &TableReference,
        frame: &DataFrame,
    ) -> Result<()> {
        let constraints = self.constraints_of(table);
        self.keep(alone, table, frame)?;
        self.constrain(alone, table, constraints);
        Ok(())
    }

    /// Says this of a table, whose rows are looked at, and nothing else.
    ///
    /// # Errors
    /// What is wrong with it, and rows that break it.
    pub(super) fn say(
        &self,
        alone: &Alone<'_>,
        table: &TableReference,
        constraints: Constraints,
        by: &str,
    ) -> Result<()> {
        let schema = self.provider_of(table)?.schema();
        let constraints = self.settled(constraints, table, &schema)?;
        if !constraints.is_empty() {
            let rows = self.rows_of(table)?.collect()?;
            let wrong = |message: String| plan(format!("{by}: {message}"));
            self.check_rows(table, &constraints, (&rows, &rows), &wrong)?;
        }
        self.constrain(alone, table, constraints);
        Ok(())
    }

    /// Keeps rows as all of a table's, if they are what is said of it.
    ///
    /// # Errors
    /// Rows that are not.
    pub(super) fn keep_checked(
        &self,
        alone: &Alone<'_>,
        table: &TableReference,
        rows: &DataFrame,
        by: &str,
    ) -> Result<()> {
        let wrong = |message: String| plan(format!("{by}: {message}"));
        self.check_rows(table, &self.constraints_of(table), (rows, rows), &wrong)?;
        self.keep_rows(alone, table, rows)
    }

    /// Names columns as the table does, and fails where what is said of it cannot be kept: of
    /// columns that there are not, of two primary keys, of values that are no values of a row.
    ///
    /// # Errors
    /// These, and what is wrong with an expression.
    fn settled(
        &self,
        mut constraints: Constraints,
        table: &TableReference,
        schema: &Schema,
    ) -> Result<Constraints> {
        for name in constraints.keys.iter_mut().flat_map(|key| &mut key.columns) {
            let Some(at) = place(schema, name) else {
                let known = schema.fields().iter().map(|field| field.name().clone()).collect();
                return Err(ErrorKind::ColumnNotFound { name: name.clone(), known }.into());
            };
            name.clone_from(schema.field(at).name());
        }
        if constraints.keys.iter().filter(|key| key.is_primary).count() > 1 {
            return Err(plan(format!("table {:?} has two primary keys", table.to_string())));
        }
        constraints.take_table(table.table());
        for (column, value) in &constraints.defaults {
            if let Some(at) = place(schema, column) {
                self.default_expr(value, schema.field(at))?;
            }
        }
        Ok(constraints)
    }

    /// The value of a column that rows do not have.
    pub(super) fn missing_column(
        &self,
        constraints: &Constraints,
        field: &Field,
    ) -> Result<NewColumn> {
        match constraints.default_of(field.name()) {
            None => Ok(NewColumn::null(field)),
            Some(value) => {
                let expr = self.default_expr(value, field)?;
                Ok(NewColumn { expr: expr.alias(field.name()), from: Some(field.name().clone()) })
            }
        }
    }

    fn default_expr(&self, value: &ast::Expr, field: &Field) -> Result<Expr> {
        let mut value = value.clone();
        fitted_literal(&mut value, field.data_type());
        let expr = self.expr_of_row(&value, None).map_err(|error| {
            plan(format!("DEFAULT {value} of column {:?}: {error}", field.name()))
        })?;
        Ok(cast(expr, field.data_type().clone()))
    }

    /// An expression of a row of a table, or of no row.
    ///
    /// # Errors
    /// One that is of several rows: with aggregates, windows and subqueries.
    fn expr_of_row(&self, expr: &ast::Expr, table: Option<&ast::ObjectName>) -> Result<Expr> {
        let text = expr.to_string();
        let mut statement = bare_statement("SELECT 1")?;
        if let Some(table) = table {
            let from = TableWithJoins { relation: factor(table)?, joins: vec![] };
            statement = select(vec![], from, None)?;
        }
        set_item(&mut statement, SelectItem::UnnamedExpr(expr.clone()));
        let statement = parser::Statement::Statement(Box::new(statement));
        let (planned, _) = self.core.block_on(self.plan_query(statement, &Text::from(&text)))?;
        let LogicalPlan::Projection(projection) = planned else { return Err(of_rows()) };
        let is_row = match projection.input.as_ref() {
            LogicalPlan::EmptyRelation(_) | LogicalPlan::TableScan(_) => true,
            LogicalPlan::SubqueryAlias(of) => matches!(*of.input, LogicalPlan::TableScan(_)),
            _ => false,
        };
        let found = projection.expr.first().cloned().map(|expr| expr.unalias_nested().data);
        let Some(found) = found.filter(|_| is_row) else { return Err(of_rows()) };
        let has_query = found.exists(|expr| {
            Ok(matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_)))
        })?;
        if has_query {
            return Err(of_rows());
        }
        let unqualified = |expr: Expr| match expr {
            Expr::Column(column) => {
                Ok(Transformed::yes(Expr::Column(Column::from_name(column.name))))
            }
            other => Ok(Transformed::no(other)),
        };
        Ok(found.transform(unqualified)?.data)
    }

    /// Fails where rows that are put into a table, or all of them, break what is said of it. The
    /// message says what, and in which row, counted from one on.
    ///
    /// # Errors
    /// That, by `wrong`, and those of the conditions.
    pub(super) fn check_rows(
        &self,
        table: &TableReference,
        constraints: &Constraints,
        (rows, all): (&DataFrame, &DataFrame),
        wrong: &dyn Fn(String) -> Error,
    ) -> Result<()> {
        let called = table.to_string();
        for column in constraints.never_null() {
            if let Some(row) = first_row(rows, ident(column).is_null())? {
                let what = match constraints.primary().contains(column) {
                    true => "of the PRIMARY KEY",
                    false => "NOT NULL",
                };
                let message = format!("row {row}: column {column:?} of table {called:?} is {what}");
                return Err(wrong(format!("{message}, and has no value")));
            }
        }
        for check in &constraints.checks {
            let name = self.name_of(table);
            let wrong_check = |error| plan(format!("CHECK ({check}): {error}"));
            let holds = self.expr_of_row(check, Some(&name)).map_err(wrong_check)?;
            if let Some(row) = first_row(rows, holds.is_false())? {
                return Err(wrong(format!(
                    "row {row}: CHECK ({check}) of table {called:?} is false"
                )));
            }
        }
        for key in &constraints.keys {
            if let Some(values) = key.repeated(all)? {
                let row = first_row(rows, key.is(&values))?;
                let row = row.map(|row| format!("row {row}: ")).unwrap_or_default();
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                let (key, values) = (key.text(), values.join(", "));
                return Err(wrong(format!("{row}{key} of table {called:?} has {values} twice")));
            }
        }
        Ok(())
    }

    /// The name of a table that is there, as statements have it.
    fn name_of(&self, table: &TableReference) -> ast::ObjectName {
        let parts = [table.catalog(), table.schema(), Some(table.table())];
        let idents = parts.into_iter().flatten().map(|part| ast::Ident::with_quote('"', part));
        ast::ObjectName::from(idents.collect::<Vec<_>>())
    }
}

/// The first row, from one on, for which a condition holds.
fn first_row(rows: &DataFrame, condition: Expr) -> Result<Option<u64>> {
    // Most statements break nothing.
    if rows.filter(condition.clone())?.num_rows() == 0 {
        return Ok(None);
    }
    let schema = rows.schema();
    let name = FreshNames::beside(schema.fields().iter().map(|field| field.name())).name("row");
    let found = rows
        .with_row_index(&name, 1)?
        .filter(condition)?
        .head(1)?
        .select([cast(ident(&name), DataType::UInt64)])?;
    Ok(Some(found.item::<u64>()?))
}

impl UniqueColumns {
    /// Values that two rows have. A null is like no other.
    fn repeated(&self, all: &DataFrame) -> Result<Option<Vec<ScalarValue>>> {
        let present = self.columns.iter().map(|name| ident(name).is_not_null());
        let Some(present) = present.reduce(Expr::and) else { return Ok(None) };
        let schema = all.schema();
        let name =
            FreshNames::beside(schema.fields().iter().map(|field| field.name())).name("rows");
        let keys: Vec<Expr> = self.columns.iter().map(ident).collect();
        let groups =
            all.lazy()?.filter(present)?.group_by(keys).agg([count_rows().alias(&name)])?;
        let found = groups.filter(ident(&name).gt(lit(1i64)))?.limit(0, 1)?.collect()?;
        let batches = found.to_arrow()?;
        let Some(batch) = batches.iter().find(|batch| batch.num_rows() > 0) else {
            return Ok(None);
        };
        let value = |at| ScalarValue::try_from_array(batch.column(at), 0);
        Ok(Some((0..self.columns.len()).map(value).collect::<Result<_, _>>()?))
    }

    /// Whether a row has these values.
    fn is(&self, values: &[ScalarValue]) -> Expr {
        let equal = |(name, value): (&String, &ScalarValue)| ident(name).eq(lit(value.clone()));
        self.columns.iter().zip(values).map(equal).reduce(Expr::and).unwrap_or(lit(true))
    }
}

/// The one column of a query.
fn set_item(statement: &mut ast::Statement, item: SelectItem) {
    if let ast::Statement::Query(query) = statement
        && let ast::SetExpr::Select(select) = query.body.as_mut()
    {
        select.projection = vec![item];
    }
}

fn of_rows() -> Error {
    plan("it is of one row, without subqueries and aggregates".into())
}

fn plan(message: String) -> Error {
    ErrorKind::Plan { message, location: None }.into()
}
