//! Fields of structs by a dot, where DataFusion's planner only takes a dot behind names of tables
//! and columns: of a lambda's parameter, of a list's element, of what a function or a query yields.
//!
//! ```text
//!   list_transform(jets, j -> j.pt)     ─▶     list_transform(jets, j -> j['pt'])
//!   jets[1].pt                          ─▶     jets[1]['pt']
//! ```
//!
//! Its list literals (55.2, `sql_array_literal`) know no parameters of lambdas, but calls do.

use std::convert::Infallible;
use std::ops::ControlFlow;

use crate::sql::ast::call;
use datafusion::execution::session_state::SessionState;
use datafusion::sql::sqlparser::ast::{AccessExpr, Expr, Ident, Subscript, Value, VisitorMut};

/// Writes such fields in brackets.
pub(super) struct DottedFields {
    /// Whether names without quotes are in small letters.
    folds: bool,
    /// Parameters of lambdas around.
    parameters: Vec<Vec<String>>,
}

impl DottedFields {
    pub(super) fn of(state: &SessionState) -> DottedFields {
        let folds = state.config_options().sql_parser.enable_ident_normalization;
        DottedFields { folds, parameters: vec![] }
    }

    fn name(&self, name: &Ident) -> String {
        match name.quote_style {
            None if self.folds => name.value.to_lowercase(),
            _ => name.value.clone(),
        }
    }

    fn is_parameter(&self, name: &Ident) -> bool {
        let name = self.name(name);
        self.parameters.iter().flatten().any(|parameter| *parameter == name)
    }

    fn in_brackets(&self, field: &Ident) -> AccessExpr {
        let index = Expr::value(Value::SingleQuotedString(self.name(field)));
        AccessExpr::Subscript(Subscript::Index { index })
    }
}

impl VisitorMut for DottedFields {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        match expr {
            Expr::Lambda(lambda) => {
                let names =
                    lambda.params.iter().map(|parameter| self.name(&parameter.name)).collect();
                self.parameters.push(names);
            }
            Expr::CompoundIdentifier(parts) if self.is_parameter(&parts[0]) => {
                let root = Expr::Identifier(parts[0].clone());
                let access_chain = parts[1..].iter().map(|part| self.in_brackets(part)).collect();
                *expr = Expr::CompoundFieldAccess { root: root.into(), access_chain };
            }
            Expr::Array(array) if !self.parameters.is_empty() && !array.elem.is_empty() => {
                *expr = call("make_array", std::mem::take(&mut array.elem));
            }
            Expr::CompoundFieldAccess { root, access_chain } => {
                // Up to there dots are of names.
                let mut is_value = match &**root {
                    Expr::Identifier(name) => self.is_parameter(name),
                    Expr::CompoundIdentifier(_) => false,
                    _ => true,
                };
                for access in access_chain {
                    match access {
                        AccessExpr::Dot(Expr::Identifier(field)) if is_value => {
                            *access = self.in_brackets(field)
                        }
                        AccessExpr::Dot(_) => {}
                        AccessExpr::Subscript(_) => is_value = true,
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if matches!(expr, Expr::Lambda(_)) {
            self.parameters.pop();
        }
        ControlFlow::Continue(())
    }
}
