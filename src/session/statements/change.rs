//! `DELETE`, `UPDATE`, `TRUNCATE`: a table that the session keeps gets the place of what a query
//! makes of it.

use datafusion::sql::sqlparser::ast::{
    AssignmentTarget, CaseWhen, Delete, Expr, FromTable, Ident, SelectItem, Truncate, Update, Value,
};

use super::{only_table, place_of, select};
use crate::error::{Error, ErrorKind, Result};
use crate::session::Session;
use crate::session::append::place;
use crate::session::files::{folded, known};
use crate::session::insert::{fitted_literal, idents, table_name};
use crate::session::rules::{call, refuse_columns};

impl Session {
    /// The number of rows that are taken out.
    pub(super) fn delete(&self, delete: Delete, text: &str) -> Result<usize> {
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
        let _alone = self.appending.lock().unwrap_or_else(|e| e.into_inner());
        self.changeable(&table, "DELETE")
            .map_err(|error| error.at(at.or(place_of(text, table.table()))))?;
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
        self.keep(&table, &kept)?;
        Ok(before - kept.num_rows())
    }

    /// The number of rows that are changed.
    pub(super) fn update(&self, update: Update, text: &str) -> Result<usize> {
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
        let _alone = self.appending.lock().unwrap_or_else(|e| e.into_inner());
        let schema = self
            .changeable(&table, "UPDATE")
            .map_err(|error| error.at(at.or(place_of(text, table.table()))))?;
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
            if assigned[target].replace(assignment.value).is_some() {
                return Err(plan(format!("UPDATE: column {own:?} is set twice")).at(at));
            }
        }
        let condition = update.selection;
        let from = update.table;
        let mut items = vec![];
        for (field, value) in schema.fields().iter().zip(&assigned) {
            let own = Ident::with_quote('"', field.name());
            let Some(value) = value else {
                items.push(SelectItem::UnnamedExpr(Expr::Identifier(own)));
                continue;
            };
            let of_type = Expr::value(Value::SingleQuotedString(field.data_type().to_string()));
            let mut value = value.clone();
            fitted_literal(&mut value, field.data_type());
            let value = call("arrow_cast", vec![value, of_type]);
            let expr = match &condition {
                None => value,
                Some(condition) => case(condition.clone(), value, Expr::Identifier(own.clone()))?,
            };
            items.push(SelectItem::ExprWithAlias { expr, alias: own });
        }
        let updated = self.planned_frame(select(items, from.clone(), None)?, text)?.collect()?;
        let changed = match condition {
            None => updated.num_rows(),
            Some(_) => self
                .planned_frame(select(vec![one()], from, condition)?, text)?
                .collect()?
                .num_rows(),
        };
        self.keep(&table, &updated)?;
        Ok(changed)
    }

    /// The number of rows that are taken out, which are all.
    pub(super) fn truncate(&self, truncate: &Truncate, text: &str) -> Result<usize> {
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
        for target in &truncate.table_names {
            let (table, at) = table_name(&target.name, "TRUNCATE")?;
            let _alone = self.appending.lock().unwrap_or_else(|e| e.into_inner());
            match self.changeable(&table, "TRUNCATE") {
                Err(error)
                    if truncate.if_exists
                        && matches!(error.kind(), ErrorKind::TableNotFound { .. }) =>
                {
                    continue;
                }
                found => found.map_err(|error| error.at(at.or(place_of(text, table.table()))))?,
            };
            rows += self.rows_of(&table)?.collect()?.num_rows();
            self.keep(&table, &self.rows_of(&table)?.head(0)?.collect()?)?;
        }
        Ok(rows)
    }
}

/// `CASE WHEN condition THEN value ELSE otherwise END`.
fn case(condition: Expr, result: Expr, otherwise: Expr) -> Result<Expr> {
    use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
    Ok(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result }],
        else_result: Some(Box::new(otherwise)),
    })
}

fn one() -> SelectItem {
    let alias = Ident::with_quote('"', "one");
    SelectItem::ExprWithAlias { expr: Expr::value(Value::Number("1".into(), false)), alias }
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
