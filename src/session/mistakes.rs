//! What is wrong with a query, said better than its planner does, which does not know what it is
//! told of: names that are nearly others, and what a name stands for elsewhere.

use std::ops::ControlFlow;

use datafusion::common::TableReference;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Query, Visit, Visitor};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{Session, rules};
use crate::error::{Error, ErrorKind, nearest};
use crate::io::AboutFiles;
use crate::session::types::{TYPES, help};
use crate::sql::ast::folded;
use crate::sql::{Text, is_word};

/// Functions whose value is the rows of files.
const OF_FILES: [&str; 6] =
    ["read_csv", "read_parquet", "read_json", "read_ndjson", "read_arrow", "read_ipc"];

impl Session {
    /// An error of a text's plan, at its place; where a table is missing, it is about that.
    pub(super) fn mistaken(
        &self,
        error: Error,
        tables: &[TableReference],
        text: &Text<'_>,
    ) -> Error {
        let state = self.core.state();
        let is_plans =
            matches!(error.kind(), ErrorKind::Plan { .. } | ErrorKind::Unsupported { .. });
        let missing = tables
            .iter()
            .filter(|table| !state.table_functions().contains_key(table.table()))
            .filter(|table| AboutFiles::of(table.table()).is_none())
            .find(|table| !self.has_table(table))
            .filter(|_| is_plans);
        if let Some(table) = missing {
            return self.of_missing_table(table, text).at(error.location());
        }
        match error.kind() {
            ErrorKind::ColumnNotFound { name, known } if known.is_empty() => match stray_from(text)
            {
                Some(place) => plan("expected an expression, found FROM".into()).at(Some(place)),
                None => {
                    let place = text.place_of(name);
                    let message = match text.words().any(|token| is_word(token, "FROM")) {
                        true => format!("the column {name:?} has no value here"),
                        false => format!("no column named {name:?}: the query has no FROM"),
                    };
                    plan(message).at(error.location().or(place))
                }
            },
            ErrorKind::ColumnNotFound { name, .. } | ErrorKind::TableNotFound { name, .. } => {
                let place = text.place_of(name);
                error.at(place)
            }
            ErrorKind::Plan { message, .. } => match self.reworded(message) {
                Some((better, about)) => {
                    Error::from(better).at(error.location().or(text.place_of(&about)))
                }
                None => error,
            },
            _ => error,
        }
    }

    fn of_missing_table(&self, table: &TableReference, text: &Text<'_>) -> Error {
        if let Some(place) = called(text, table.table()) {
            let mut known: Vec<String> =
                self.core.state().table_functions().keys().cloned().collect();
            known.extend(OF_FILES.into_iter().chain(AboutFiles::functions()).map(String::from));
            let help = help(nearest(table.table(), &known));
            return plan(format!("no table function named {:?}{help}", table.table()))
                .at(Some(place));
        }
        let missing = self.missing_table(table);
        let named = match missing.kind() {
            ErrorKind::SchemaNotFound { name, .. } => name.clone(),
            _ => table.table().to_string(),
        };
        let place = text.place_of(&named);
        match missing.kind() {
            ErrorKind::TableNotFound { name, known } if table.schema().is_none() => {
                let mut all = self.with_queries(text);
                all.extend(known.iter().cloned());
                Error::from(ErrorKind::TableNotFound { name: name.clone(), known: all }).at(place)
            }
            _ => missing.at(place),
        }
    }

    /// The names of a text's WITH queries.
    fn with_queries(&self, text: &Text<'_>) -> Vec<String> {
        let mut names = WithNames::default();
        if let Ok(Statement::Statement(statement)) = rules::parsed(&self.core.state(), text) {
            let _ = Visit::visit(&statement, &mut names);
        }
        names.0
    }

    /// What a message of the planner's says with what is near, and which name it is about.
    fn reworded(&self, message: &str) -> Option<(ErrorKind, String)> {
        let plan = |message| ErrorKind::Plan { message, location: None };
        let quoted = |before: &str| {
            let (_, rest) = message.split_once(before)?;
            Some(rest.split_once('\'')?.0.to_string())
        };
        if let Some(name) = quoted("Invalid function '") {
            let state = self.core.state();
            if state.window_functions().contains_key(&name) {
                let message =
                    format!("{name} is a window function: OVER (…) stands behind its call");
                return Some((plan(message), name));
            }
            let is_of_files = OF_FILES.contains(&name.as_str()) || AboutFiles::of(&name).is_some();
            if state.table_functions().contains_key(&name) || is_of_files {
                let message = format!("{name} is a table function: its call stands behind FROM");
                return Some((plan(message), name));
            }
            let mut known: Vec<String> = state.scalar_functions().keys().cloned().collect();
            known.extend(state.higher_order_functions().keys().cloned());
            known.extend(state.aggregate_functions().keys().cloned());
            known.extend(state.window_functions().keys().cloned());
            // Of several that are as near, always the same.
            known.sort();
            return Some((ErrorKind::FunctionNotFound { name: name.clone(), known }, name));
        }
        if let Some((_, name)) = message.split_once("Unsupported SQL type ")
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        {
            let help = help(nearest(name, &TYPES.map(String::from)));
            return Some((plan(format!("no type named {name}{help}")), name.to_lowercase()));
        }
        if let Some((_, name)) = message.split_once("Invalid qualifier ") {
            let message = format!("no table of the query is called {name:?}");
            return Some((plan(message), name.to_string()));
        }
        None
    }
}

/// Collects the names of WITH queries.
#[derive(Default)]
struct WithNames(Vec<String>);

impl Visitor for WithNames {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        self.0.extend(with.map(|cte| folded(&cte.alias.name)));
        ControlFlow::Continue(())
    }
}

/// Where a name is that of a function that is called, if it is.
fn called(text: &Text<'_>, name: &str) -> Option<(u64, u64)> {
    let tokens: Vec<&TokenWithSpan> = text.words().collect();
    let is_it = |pair: &&[&TokenWithSpan]| {
        pair[1].token == Token::LParen
            && matches!(&pair[0].token, Token::Word(word) if word.value.eq_ignore_ascii_case(name))
    };
    let start = tokens.windows(2).find(is_it)?[0].span.start;
    Some((start.line, start.column))
}

/// Where FROM stands behind an operator, which took it for a name.
fn stray_from(text: &Text<'_>) -> Option<(u64, u64)> {
    let tokens: Vec<&TokenWithSpan> = text.words().collect();
    let is_operator = |token: &Token| {
        matches!(
            token,
            Token::Plus | Token::Minus | Token::Div | Token::Mod | Token::StringConcat | Token::Eq
        ) || matches!(token, Token::Lt | Token::Gt | Token::LtEq | Token::GtEq | Token::Neq)
    };
    let is_it = |pair: &&[&TokenWithSpan]| {
        is_operator(&pair[0].token)
            && matches!(&pair[1].token, Token::Word(word) if word.value.eq_ignore_ascii_case("FROM"))
    };
    let start = tokens.windows(2).find(is_it)?[1].span.start;
    Some((start.line, start.column))
}

fn plan(message: String) -> Error {
    ErrorKind::Plan { message, location: None }.into()
}
