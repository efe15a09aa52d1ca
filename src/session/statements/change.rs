//! `DELETE`, `UPDATE`, `TRUNCATE`: a table that the session keeps gets the place of what a query
//! makes of it.

use datafusion::common::TableReference;
use datafusion::logical_expr::ident;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    AssignmentTarget, CaseWhen, Delete, Expr, FromTable, Ident, SelectItem, SetExpr, Statement,
    TableFactor, TableWithJoins, Truncate, Update, Value,
};

use super::{bare_statement, only_table, select};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::FreshNames;
use crate::session::Session;
use crate::session::append::place;
use crate::session::insert::{fitted_literal, put_default};
use crate::session::rules::refuse_columns;
use crate::sql::Text;
use crate::sql::ast::table_name;
use crate::sql::ast::{call, folded, idents, known};

impl Session {
    /// The number of rows that are taken out.
    pub(super) fn delete(&self, delete: Delete, text: &Text<'_>) -> Result<usize> {
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = delete.from;
        let clauses = [
            (
                !delete.tables.is_empty() || from.len() != 1 || delete.using.is_some(),
                "several tables",
            ),
            (delete.returning.is_some() || delete.output.is_some(), "RETURNING"),
            (!delete.order_by.is_empty() || delete.limit.is_some(), "ORDER BY or LIMIT"),
        ];
        refuse("DELETE", &clauses)?;
        refuse_columns("DELETE", &delete.selection)?;
        let Some(from) = from.into_iter().next() else {
            return Err(Error::internal("DELETE without a table"));
        };
        let (table, at) = only_table(&from, "DELETE")?;
        let alone = self.alone()?;
        self.changeable(&table, "DELETE")
            .map_err(|error| error.at(at.or(text.place_of(table.table()))))?;
        let before = self.rows_of(&table)?.collect()?.num_rows();
        let kept = match delete.selection {
            None => self.rows_of(&table)?.head(0)?,
            // Rows for which the condition is null stay.
            Some(condition) => {
                let stays = Expr::IsNotTrue(Box::new(Expr::Nested(Box::new(condition))));
                let all = vec![SelectItem::Wildcard(Default::default())];
                self.planned_frame(select(all, from, Some(stays))?, text)?
            }
        };
        let kept = kept.collect()?;
        self.keep_rows(&alone, &table, &kept)?;
        Ok(before - kept.num_rows())
    }

    /// The number of rows that are changed.
    pub(super) fn update(&self, update: Update, text: &Text<'_>) -> Result<usize> {
        let clauses = [
            (update.from.is_some(), "FROM: a subquery in SET finds rows of another table"),
            (update.returning.is_some() || update.output.is_some(), "RETURNING"),
            (update.or.is_some(), "OR …"),
            (!update.order_by.is_empty() || update.limit.is_some(), "ORDER BY or LIMIT"),
        ];
        refuse("UPDATE", &clauses)?;
        refuse_columns("UPDATE", &update.selection)?;
        refuse_columns("UPDATE", &update.assignments)?;
        let (table, at) = only_table(&update.table, "UPDATE")?;
        let alone = self.alone()?;
        let schema = self
            .changeable(&table, "UPDATE")
            .map_err(|error| error.at(at.or(text.place_of(table.table()))))?;
        let constraints = self.constraints_of(&table);
        let mut assigned: Vec<Option<Expr>> = vec![None; schema.fields().len()];
        for assignment in update.assignments {
            let AssignmentTarget::ColumnName(name) = &assignment.target else {
                return Err(Error::unsupported(
                    "UPDATE of several columns at once",
                    "write column = value for each",
                ));
            };
            let ident =
                idents(name).last().map(|ident| (*ident).clone()).unwrap_or_else(|| Ident::new(""));
            let (own, at) = (folded(&ident), known(ident.span.start));
            let Some(target) = place(&schema, &own) else {
                let all = schema.fields().iter().map(|field| field.name().clone()).collect();
                return Err(Error::from(ErrorKind::ColumnNotFound { name: own, known: all }).at(at));
            };
            let mut value = assignment.value;
            put_default(&mut value, &constraints, schema.field(target).name());
            if assigned[target].replace(value).is_some() {
                return Err(plan(format!("UPDATE: column {own:?} is set twice")).at(at));
            }
        }
        // What the condition says of a row is one column, which all columns and the number of
        // changed rows go by: a volatile function is called once for it.
        let mut names = FreshNames::beside(schema.fields().iter().map(|field| field.name()));
        let (from, changed) = match update.selection {
            None => (update.table, None),
            Some(condition) => {
                let name = names.name("changed");
                (with_column(update.table, &table, condition, &name)?, Some(name))
            }
        };
        let quoted = |name: &str| Expr::Identifier(Ident::with_quote('"', name));
        let mut items = vec![];
        for (field, value) in schema.fields().iter().zip(assigned) {
            let own = quoted(field.name());
            let Some(mut value) = value else {
                items.push(SelectItem::UnnamedExpr(own));
                continue;
            };
            let of_type = Expr::value(Value::SingleQuotedString(field.data_type().to_string()));
            fitted_literal(&mut value, field.data_type());
            let value = call("arrow_cast", vec![value, of_type]);
            let expr = match &changed {
                None => value,
                Some(name) => case(quoted(name), value, own),
            };
            let alias = Ident::with_quote('"', field.name());
            items.push(SelectItem::ExprWithAlias { expr, alias });
        }
        let Some(name) = changed else {
            let updated = self.planned_frame(select(items, from, None)?, text)?.collect()?;
            self.keep_checked(&alone, &table, &updated, "UPDATE")?;
            return Ok(updated.num_rows());
        };
        items.push(SelectItem::UnnamedExpr(quoted(&name)));
        let updated = self.planned_frame(select(items, from, None)?, text)?.collect()?;
        let changed = updated.filter(ident(&name))?.num_rows();
        self.keep_checked(&alone, &table, &updated.drop([name.as_str()])?, "UPDATE")?;
        Ok(changed)
    }

    /// The number of rows that are taken out, which are all.
    pub(super) fn truncate(&self, truncate: &Truncate, text: &Text<'_>) -> Result<usize> {
        let clauses = [
            (
                truncate.partitions.is_some() || truncate.on_cluster.is_some(),
                "clauses of other systems",
            ),
            (
                truncate.identity.is_some() || truncate.cascade.is_some(),
                "IDENTITY, CASCADE and their like",
            ),
        ];
        refuse("TRUNCATE", &clauses)?;
        let mut rows = 0;
        let alone = self.alone()?;
        // All tables are looked at before the first is emptied: the statement does all or nothing.
        let mut found: Vec<TableReference> = vec![];
        for target in &truncate.table_names {
            let (table, at) = table_name(&target.name, "TRUNCATE")?;
            match self.changeable(&table, "TRUNCATE") {
                Err(error)
                    if truncate.if_exists
                        && matches!(error.kind(), ErrorKind::TableNotFound { .. }) =>
                {
                    continue;
                }
                checked => {
                    checked.map_err(|error| error.at(at.or(text.place_of(table.table()))))?
                }
            };
            if !found.contains(&table) {
                found.push(table);
            }
        }
        let mut emptied = vec![];
        for table in found {
            rows += self.rows_of(&table)?.collect()?.num_rows();
            let empty = self.rows_of(&table)?.head(0)?.collect()?;
            emptied.push((table, empty));
        }
        for (table, empty) in &emptied {
            self.keep_rows(&alone, table, empty)?;
        }
        Ok(rows)
    }
}

/// `CASE WHEN condition THEN value ELSE otherwise END`.
fn case(condition: Expr, result: Expr, otherwise: Expr) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result }],
        else_result: Some(Box::new(otherwise)),
    }
}

/// A table, under the name that it has, with a column more that says whether a condition holds.
fn with_column(
    from: TableWithJoins,
    table: &TableReference,
    condition: Expr,
    name: &str,
) -> Result<TableWithJoins> {
    let named = match &from.relation {
        TableFactor::Table { alias: Some(alias), .. } => alias.name.clone(),
        _ => Ident::with_quote('"', table.table()),
    };
    let holds = Expr::IsTrue(Box::new(Expr::Nested(Box::new(condition))));
    let items = vec![
        SelectItem::Wildcard(Default::default()),
        SelectItem::ExprWithAlias { expr: holds, alias: Ident::with_quote('"', name) },
    ];
    let (outer, inner) =
        (bare_statement("SELECT * FROM (SELECT 1) AS t")?, select(items, from, None)?);
    if let (Statement::Query(mut outer), Statement::Query(query)) = (outer, inner)
        && let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(mut factor) = select.from.pop()
        && let TableFactor::Derived { subquery, alias: Some(alias), .. } = &mut factor.relation
    {
        (*subquery, alias.name) = (query, named);
        return Ok(factor);
    }
    Err(Error::internal("a query without a table"))
}

fn refuse(by: &str, clauses: &[(bool, &str)]) -> Result<()> {
    match clauses.iter().find(|(there, _)| *there) {
        Some((_, clause)) => Err(Error::unsupported(
            format!("{by} with {clause}"),
            "no part of the engine would look at it",
        )),
        None => Ok(()),
    }
}

fn plan(message: String) -> Error {
    ErrorKind::Plan { message, location: None }.into()
}
