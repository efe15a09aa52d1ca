//! `ALTER TABLE`: other names for tables and columns, columns more and fewer, and of another type.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::TableReference;
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, Expr, Ident, ObjectName,
    RenameTableNameKind, SelectItem, SetExpr, Statement, TableFactor, TableWithJoins, Value,
};

use super::{bare_statement, select};
use crate::error::{Error, ErrorKind, Result};
use crate::session::Session;
use crate::session::append::place;
use crate::session::constraints::Constraints;
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
        let (provider, constraints) = (self.provider_of(table)?, self.constraints_of(table));
        if self.has_table(&to) {
            return Err(
                plan(format!("ALTER TABLE: there is a table named {:?}", to.to_string())).at(at)
            );
        }
        self.put(alone, &to, provider)?;
        self.constrain(alone, &to, constraints);
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
        let depends = |column: &str, on: Option<String>| match on {
            Some(on) => Err(plan(format!("ALTER TABLE: column {column:?} is of {on}")).at(at)),
            None => Ok(()),
        };
        let state = self.core.state();
        let mut constraints = self.constraints_of(table);
        let done = match operation {
            AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                let (at, to) = (find(&old_column_name)?, free(&new_column_name)?);
                let alias = Ident::with_quote('"', &to);
                let own = schema.field(at).name();
                depends(own, constraints.check_of(own))?;
                constraints.rename(own, &to);
                items[at] = SelectItem::ExprWithAlias { expr: Expr::Identifier(quoted(at)), alias };
                format!("column {own} is {to}")
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
                for own in gone.iter().map(|at| schema.field(*at).name()) {
                    depends(own, constraints.depends_on(own))?;
                    constraints.forget(own);
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
                items.push(self.added(&name, column_def, &mut constraints)?);
                format!("column {name} is added")
            }
            AlterTableOperation::AlterColumn {
                column_name,
                op: AlterColumnOperation::SetDataType { data_type: of, using, .. },
            } => {
                let (at, place) = (find(&column_name)?, known(column_name.span.start));
                let of = data_type(&state, of).map_err(|message| plan(message).at(place))?;
                let value = using.unwrap_or_else(|| Expr::Identifier(quoted(at)));
                items[at] =
                    SelectItem::ExprWithAlias { expr: of_type(value, &of), alias: quoted(at) };
                format!("column {} is {of}", schema.field(at).name())
            }
            AlterTableOperation::AlterColumn { column_name, op } => {
                let own = schema.field(find(&column_name)?).name();
                return self.alter_constraint(alone, (table, at), own, op);
            }
            AlterTableOperation::AddConstraint { constraint, not_valid: false } => {
                constraints.add(&constraint).map_err(|error| error.at(at))?;
                let said = self.say(alone, table, constraints, "ALTER TABLE");
                said.map_err(|error| error.at(at))?;
                return Ok(format!("{constraint} is added"));
            }
            other => return Err(unknown(&other.to_string()).at(at)),
        };
        let altered = self.planned_frame(select(items, from, None)?, text)?.collect()?;
        let before = self.contents(alone);
        self.keep(alone, table, &altered)?;
        if let Err(error) = self.say(alone, table, constraints, "ALTER TABLE") {
            self.restore(alone, before)?;
            return Err(error.at(at));
        }
        Ok(done)
    }

    /// A column more, in which rows have its default.
    fn added(
        &self,
        name: &str,
        column: ColumnDef,
        constraints: &mut Constraints,
    ) -> Result<SelectItem> {
        let place = known(column.name.span.start);
        let of = data_type(&self.core.state(), column.data_type)
            .map_err(|message| plan(message).at(place))?;
        constraints.add_options(name, &column.options).map_err(|error| error.at(place))?;
        let default = constraints.default_of(name).cloned();
        let mut value = default.unwrap_or_else(|| Expr::value(Value::Null));
        fitted_literal(&mut value, &of);
        let alias = Ident::with_quote('"', name);
        Ok(SelectItem::ExprWithAlias { expr: of_type(value, &of), alias })
    }

    /// NOT NULL and DEFAULT of a column that is there.
    fn alter_constraint(
        &self,
        alone: &Alone<'_>,
        (table, at): (&TableReference, Option<(u64, u64)>),
        column: &str,
        operation: AlterColumnOperation,
    ) -> Result<String> {
        let mut constraints = self.constraints_of(table);
        match operation {
            AlterColumnOperation::SetNotNull => constraints.require(column),
            AlterColumnOperation::DropNotNull => constraints.no_longer_require(column),
            AlterColumnOperation::SetDefault { value } => {
                constraints.set_default(column, Some(value));
            }
            AlterColumnOperation::DropDefault => constraints.set_default(column, None),
            other => return Err(unknown(&format!("ALTER COLUMN {column} {other}")).at(at)),
        }
        self.say(alone, table, constraints, "ALTER TABLE").map_err(|error| error.at(at))?;
        Ok(format!("column {column} is altered"))
    }
}

fn of_type(expr: Expr, of: &DataType) -> Expr {
    call("arrow_cast", vec![expr, Expr::value(Value::SingleQuotedString(of.to_string()))])
}

/// A table by its name.
pub(in crate::session) fn factor(name: &ObjectName) -> Result<TableFactor> {
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

fn unknown(operation: &str) -> Error {
    let why = "RENAME TO, RENAME COLUMN, ADD COLUMN, DROP COLUMN, ALTER COLUMN … TYPE, NOT NULL and \
               DEFAULT, and ADD of constraints are known";
    Error::unsupported(format!("ALTER TABLE … {operation}"), why)
}

fn plan(message: String) -> Error {
    ErrorKind::Plan { message, location: None }.into()
}
