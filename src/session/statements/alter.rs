//! `ALTER TABLE`: other names for tables and columns, columns more and fewer, and of another type.

use datafusion::common::TableReference;
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnOption, Expr, Ident, ObjectName,
    RenameTableNameKind, SelectItem, SetExpr, Statement, TableFactor, TableWithJoins, Value,
};

use super::{bare_statement, select};
use crate::error::{Error, ErrorKind, Result};
use crate::session::Session;
use crate::session::append::place;
use crate::session::insert::fitted_literal;
use crate::session::types::data_type;
use crate::session::writers::Alone;
use crate::sql::Text;
use crate::sql::ast::table_name;
use crate::sql::ast::{call, folded, known};

impl Session {
    /// What was done.
    pub(super) fn alter(&self, alter: AlterTable, text: &Text<'_>) -> Result<String> {
        let (table, at) = table_name(&alter.name, "ALTER TABLE")?;
        let at = at.or(text.place_of(table.table()));
        let alone = self.alone()?;
        if alter.if_exists && !self.has_table(&table) {
            return Ok(format!("there is no table {table}"));
        }
        let mut done = vec![];
        for operation in alter.operations {
            done.push(match operation {
                AlterTableOperation::RenameTable { table_name } => {
                    let (RenameTableNameKind::To(to) | RenameTableNameKind::As(to)) = table_name;
                    self.rename_table(&alone, &table, &to).map_err(|error| error.at(at))?
                }
                other => {
                    let from = TableWithJoins { relation: factor(&alter.name)?, joins: vec![] };
                    self.alter_column(&alone, (&table, at), other, from, text)?
                }
            });
        }
        Ok(done.join("; "))
    }

    /// A table keeps its schema.
    fn rename_table(
        &self,
        alone: &Alone<'_>,
        table: &TableReference,
        to: &ObjectName,
    ) -> Result<String> {
        let (to, at) = table_name(to, "ALTER TABLE")?;
        let to = match (table, &to) {
            (TableReference::Bare { .. }, TableReference::Bare { .. }) => to,
            (TableReference::Partial { schema, .. }, TableReference::Bare { table }) => {
                TableReference::partial(schema.clone(), table.clone())
            }
            (TableReference::Full { catalog, schema, .. }, TableReference::Bare { table }) => {
                TableReference::full(catalog.clone(), schema.clone(), table.clone())
            }
            _ => {
                return Err(plan("ALTER TABLE … RENAME TO: a table keeps its schema".into()).at(at));
            }
        };
        let provider = self.provider_of(table)?;
        if self.has_table(&to) {
            return Err(
                plan(format!("ALTER TABLE: there is a table named {:?}", to.to_string())).at(at)
            );
        }
        self.put(alone, &to, provider)?;
        self.forget(alone, table)?;
        Ok(format!("table {table} is {to}"))
    }

    fn alter_column(
        &self,
        alone: &Alone<'_>,
        (table, at): (&TableReference, Option<(u64, u64)>),
        operation: AlterTableOperation,
        from: TableWithJoins,
        text: &Text<'_>,
    ) -> Result<String> {
        let schema = self.changeable(table, "ALTER TABLE").map_err(|error| error.at(at))?;
        let find = |name: &Ident| {
            let own = folded(name);
            place(&schema, &own).ok_or_else(|| {
                let place = known(name.span.start).or(text.place_of(&own));
                let known = schema.fields().iter().map(|field| field.name().clone()).collect();
                Error::from(ErrorKind::ColumnNotFound { name: own.clone(), known }).at(place)
            })
        };
        let free = |name: &Ident| {
            let own = folded(name);
            match place(&schema, &own) {
                Some(_) => Err(plan(format!("ALTER TABLE: there is a column named {own:?}"))
                    .at(known(name.span.start))),
                None => Ok(own),
            }
        };
        let quoted = |at: usize| Ident::with_quote('"', schema.field(at).name());
        let item = |at: usize| SelectItem::UnnamedExpr(Expr::Identifier(quoted(at)));
        let mut items: Vec<SelectItem> = (0..schema.fields().len()).map(item).collect();
        let of_type = |expr: Expr, data_type: String| {
            call("arrow_cast", vec![expr, Expr::value(Value::SingleQuotedString(data_type))])
        };
        let state = self.core.state();
        let done = match operation {
            AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                let (at, to) = (find(&old_column_name)?, free(&new_column_name)?);
                let alias = Ident::with_quote('"', &to);
                items[at] = SelectItem::ExprWithAlias { expr: Expr::Identifier(quoted(at)), alias };
                format!("column {} is {to}", schema.field(at).name())
            }
            AlterTableOperation::DropColumn { column_names, if_exists, .. } => {
                let mut gone = vec![];
                for name in &column_names {
                    match find(name) {
                        Err(_) if if_exists => {}
                        found => gone.push(found?),
                    }
                }
                if gone.len() >= items.len() {
                    return Err(plan(format!(
                        "ALTER TABLE: table {:?} would have no columns",
                        table.to_string()
                    ))
                    .at(at));
                }
                let stays = items.into_iter().enumerate().filter(|(at, _)| !gone.contains(at));
                items = stays.map(|(_, item)| item).collect();
                let names: Vec<String> = column_names.iter().map(folded).collect();
                format!("column {} is dropped", names.join(", "))
            }
            AlterTableOperation::AddColumn {
                if_not_exists,
                column_def,
                column_position: None,
                ..
            } => {
                if if_not_exists && free(&column_def.name).is_err() {
                    return Ok(format!("there is a column {}", folded(&column_def.name)));
                }
                let name = free(&column_def.name)?;
                let place = known(column_def.name.span.start);
                let of = data_type(&state, column_def.data_type)
                    .map_err(|message| plan(message).at(place))?;
                let mut value = Expr::value(Value::Null);
                for option in column_def.options {
                    match option.option {
                        ColumnOption::Default(expr) => value = expr,
                        ColumnOption::Null => {}
                        other => {
                            let what = format!("ALTER TABLE … ADD COLUMN with {other}");
                            return Err(Error::unsupported(
                                what,
                                "no part of the engine would look at it",
                            )
                            .at(place));
                        }
                    }
                }
                fitted_literal(&mut value, &of);
                let alias = Ident::with_quote('"', &name);
                items.push(SelectItem::ExprWithAlias {
                    expr: of_type(value, of.to_string()),
                    alias,
                });
                format!("column {name} is added")
            }
            AlterTableOperation::AlterColumn {
                column_name,
                op: AlterColumnOperation::SetDataType { data_type: of, using, .. },
            } => {
                let (at, place) = (find(&column_name)?, known(column_name.span.start));
                let of = data_type(&state, of).map_err(|message| plan(message).at(place))?;
                let value = using.unwrap_or_else(|| Expr::Identifier(quoted(at)));
                items[at] = SelectItem::ExprWithAlias {
                    expr: of_type(value, of.to_string()),
                    alias: quoted(at),
                };
                format!("column {} is {of}", schema.field(at).name())
            }
            other => {
                let what = format!("ALTER TABLE … {other}");
                let why = "RENAME TO, RENAME COLUMN, ADD COLUMN, DROP COLUMN and ALTER COLUMN … TYPE are known";
                return Err(Error::unsupported(what, why).at(at));
            }
        };
        let altered = self.planned_frame(select(items, from, None)?, text)?.collect()?;
        self.keep(alone, table, &altered)?;
        Ok(done)
    }
}

/// A table by its name.
fn factor(name: &ObjectName) -> Result<TableFactor> {
    let mut statement = bare_statement("SELECT * FROM t")?;
    if let Statement::Query(query) = &mut statement
        && let SetExpr::Select(select) = query.body.as_mut()
        && let Some(mut table) = select.from.pop()
        && let TableFactor::Table { name: own, .. } = &mut table.relation
    {
        *own = name.clone();
        return Ok(table.relation);
    }
    Err(Error::internal("a query without a table"))
}

fn plan(message: String) -> Error {
    ErrorKind::Plan { message, location: None }.into()
}
