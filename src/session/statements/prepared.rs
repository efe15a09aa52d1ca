//! `PREPARE name [(type, …)] AS statement`, `EXECUTE name(value, …)`, `DEALLOCATE name`.
//!
//! A statement is kept as it was parsed; the values, cast to their types where these are declared,
//! take the places of its parameters `$1`, `$2`, or `?`, which have numbers by now
//! (`syntax/parameters.rs`).

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{
    self, DataType, Expr, Ident, ObjectName, OneOrManyWithParens, Value, Visit, VisitMut, Visitor,
    VisitorMut,
};
use parking_lot::{Mutex, MutexGuard};

use crate::error::{Error, ErrorKind, Result};
use crate::session::Session;
use crate::session::types::data_type;
use crate::sql::Text;
use crate::sql::ast::table_name;
use crate::sql::ast::{Place, cast, folded, known};

/// The statements that were prepared, by name.
#[derive(Debug, Clone, Default)]
pub(in crate::session) struct PreparedStatements(Arc<Mutex<BTreeMap<String, PreparedStatement>>>);

/// A statement, and the types of its first parameters.
#[derive(Debug, Clone)]
struct PreparedStatement {
    statement: ast::Statement,
    types: Vec<DataType>,
}

impl PreparedStatements {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, PreparedStatement>> {
        self.0.lock()
    }
}

impl Session {
    pub(super) fn prepare(
        &self,
        name: &Ident,
        types: Vec<DataType>,
        statement: ast::Statement,
        text: &Text<'_>,
    ) -> Result<String> {
        for of in &types {
            data_type(&self.core.state(), of.clone()).map_err(|message| {
                plan(format!("PREPARE: {message}")).at(known(name.span.start))
            })?;
        }
        // All else that is wrong may be so for want of the parameters' values.
        if let ast::Statement::Query(_) = &statement
            && let Err(error) = self.planned_frame(statement.clone(), text)
            && is_of_names(&error)
        {
            return Err(error);
        }
        let name = folded(name);
        self.prepared.all().insert(name.clone(), PreparedStatement { statement, types });
        Ok(format!("statement {name} is prepared"))
    }

    pub(super) fn deallocate(&self, name: &Ident) -> Result<String> {
        let own = folded(name);
        if own == "all" {
            self.prepared.all().clear();
            return Ok("no statement is prepared".into());
        }
        // The lock is let go of before an error asks for the names.
        let found = self.prepared.all().remove(&own);
        match found {
            Some(_) => Ok(format!("statement {own} is forgotten")),
            None => Err(self.no_statement(&own).at(known(name.span.start))),
        }
    }

    /// A statement with values in the places of its parameters, and its text.
    pub(super) fn prepared_statement(
        &self,
        name: Option<ObjectName>,
        values: Vec<Expr>,
        text: &Text<'_>,
    ) -> Result<(ast::Statement, String)> {
        let Some(name) = name else {
            return Err(plan("EXECUTE wants the name of a prepared statement".into()));
        };
        let (own, at) = table_name(&name, "EXECUTE")?;
        let own = own.to_string();
        let at = at.or(text.place_of(&own));
        let found = self.prepared.all().get(&own).cloned();
        let PreparedStatement { mut statement, types } =
            found.ok_or_else(|| self.no_statement(&own).at(at))?;
        for value in &values {
            if let ControlFlow::Break(found) = Visit::visit(value, &mut ConstantValue::default()) {
                let (what, place) = found;
                let message = format!(
                    "EXECUTE: the value {value} is no constant: it has {what}, and values see no table"
                );
                return Err(plan(message).at(place.or(at)));
            }
        }
        let typed = values.into_iter().enumerate().map(|(at, value)| match types.get(at) {
            Some(of) => cast(value, of.clone()),
            None => value,
        });
        let values: Vec<Expr> = typed.collect();
        let mut parameters = Parameters { values: &values, most: 0 };
        if let ControlFlow::Break(error) = VisitMut::visit(&mut statement, &mut parameters) {
            return Err(error.at(at));
        }
        if parameters.most < values.len() {
            let message = format!(
                "EXECUTE: {} values for {} parameters of {own}",
                values.len(),
                parameters.most
            );
            return Err(plan(message).at(at));
        }
        let text = statement.to_string();
        Ok((statement, text))
    }

    fn no_statement(&self, name: &str) -> Error {
        let known: Vec<String> = self.prepared.all().keys().cloned().collect();
        let known = if known.is_empty() {
            "there are none".into()
        } else {
            format!("known: {}", known.join(", "))
        };
        plan(format!("no prepared statement named {name:?}; {known}"))
    }
}

/// Whether an error is of a name that there is not.
fn is_of_names(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::TableNotFound { .. }
            | ErrorKind::ColumnNotFound { .. }
            | ErrorKind::SchemaNotFound { .. }
            | ErrorKind::FunctionNotFound { .. }
    )
}

/// Breaks off at the first part of an expression that is of a table.
#[derive(Default)]
struct ConstantValue {
    /// Names that are parameters of lambdas around.
    parameters: Vec<String>,
}

impl Visitor for ConstantValue {
    type Break = (String, Place);

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Lambda(lambda) => {
                let names = match &lambda.params {
                    OneOrManyWithParens::One(one) => vec![folded(&one.name)],
                    OneOrManyWithParens::Many(all) => {
                        all.iter().map(|one| folded(&one.name)).collect()
                    }
                };
                self.parameters.extend(names);
            }
            Expr::Identifier(ident) if !self.parameters.contains(&folded(ident)) => {
                let what = format!("the column {}", ident.value);
                return ControlFlow::Break((what, known(ident.span.start)));
            }
            Expr::CompoundIdentifier(idents)
                if !idents
                    .first()
                    .is_some_and(|first| self.parameters.contains(&folded(first))) =>
            {
                let place = idents.first().and_then(|first| known(first.span.start));
                return ControlFlow::Break((format!("the column {expr}"), place));
            }
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => {
                return ControlFlow::Break(("a subquery".into(), None));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Puts values in the places of parameters.
struct Parameters<'a> {
    values: &'a [Expr],
    most: usize,
}

impl VisitorMut for Parameters<'_> {
    type Break = Error;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let Expr::Value(value) = expr else { return ControlFlow::Continue(()) };
        let Value::Placeholder(name) = &value.value else { return ControlFlow::Continue(()) };
        let number = name.trim_start_matches(['$', '?', ':']).parse().ok();
        let Some(number) = number.filter(|number: &usize| *number > 0) else {
            return ControlFlow::Break(plan(format!(
                "the parameter {name}: parameters are $1, $2, … or ?"
            )));
        };
        self.most = self.most.max(number);
        match self.values.get(number - 1) {
            Some(given) => {
                *expr = Expr::Nested(Box::new(given.clone()));
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(plan(format!("EXECUTE: no value for the parameter {name}"))),
        }
    }
}

fn plan(message: String) -> Error {
    ErrorKind::Plan { message, location: None }.into()
}
