//! What results are called: as in Polars, after the column that an expression begins with.
//!
//! ```text
//!   col("km").sum()                         km
//!   col("km") * col("price")                km
//!   when(c).then(col("a")).otherwise(0)     a
//!   1 - col("km")                           literal
//!   count_rows()                            len
//!   row_number()                            row_number
//! ```
//!
//! Each method of an [`Expr`] keeps the name of what it is called on: what it is made of does not
//! show it. What comes from DataFusion is looked at once, from its root down to its first leaf.

use std::collections::HashSet;

use datafusion::logical_expr as df;

use super::Expr;
use super::selectors::{OWN_NAME, is_selector};
use crate::error::{Error, Result};

/// What a plain value is called.
const LITERAL: &str = "literal";

/// What the result of an expression is called; `None` for what is named after the column that a
/// selector selects, or what DataFusion is to name.
pub(super) fn name_of(tree: &df::Expr) -> Option<String> {
    let mut node = tree;
    loop {
        let (function, arguments) = match node {
            df::Expr::Alias(alias) if alias.name.contains(OWN_NAME) => return None,
            df::Expr::Alias(alias) => return Some(alias.name.clone()),
            df::Expr::Column(column) => return Some(column.name.clone()),
            df::Expr::Literal(..) => return Some(LITERAL.into()),
            df::Expr::ScalarFunction(_) if is_selector(node) => return None,
            df::Expr::ScalarFunction(call) => (call.name(), &call.args),
            df::Expr::HigherOrderFunction(call) => (call.name(), &call.args),
            df::Expr::AggregateFunction(call) => (call.func.name(), &call.params.args),
            df::Expr::WindowFunction(call) => (call.fun.name(), &call.params.args),
            other => {
                node = first_operand(other)?;
                continue;
            }
        };
        // `count(1)` counts rows; in `date_part('year', t)` the value is not what comes first.
        let value = arguments.iter().find(|argument| !matches!(argument, df::Expr::Literal(..)));
        node = match value.or(arguments.first()) {
            Some(df::Expr::Literal(..)) if function == "count" => return Some("len".into()),
            Some(argument) => argument,
            None => return Some(function.to_string()),
        };
    }
}

fn first_operand(node: &df::Expr) -> Option<&df::Expr> {
    Some(match node {
        df::Expr::BinaryExpr(both) => &both.left,
        df::Expr::Like(of) | df::Expr::SimilarTo(of) => &of.expr,
        df::Expr::Between(of) => &of.expr,
        df::Expr::Cast(of) => &of.expr,
        df::Expr::TryCast(of) => &of.expr,
        df::Expr::InList(of) => &of.expr,
        df::Expr::InSubquery(of) => &of.expr,
        df::Expr::Case(case) => &case.when_then_expr.first()?.1,
        df::Expr::Not(of)
        | df::Expr::Negative(of)
        | df::Expr::IsNull(of)
        | df::Expr::IsNotNull(of)
        | df::Expr::IsTrue(of)
        | df::Expr::IsFalse(of)
        | df::Expr::IsUnknown(of)
        | df::Expr::IsNotTrue(of)
        | df::Expr::IsNotFalse(of)
        | df::Expr::IsNotUnknown(of) => of,
        _ => return None,
    })
}

impl Expr {
    /// As the column of a result.
    pub(in crate::frame) fn into_result(self) -> df::Expr {
        match (self.name, self.tree) {
            (Some(name), df::Expr::Column(column)) if column.name == name => column.into(),
            (Some(name), df::Expr::Alias(alias)) if alias.name == name => df::Expr::Alias(alias),
            (Some(name), tree) => tree.alias(name),
            (None, tree) => tree,
        }
    }
}

/// Columns of a result, each of which must have a name of its own.
pub(in crate::frame) fn with_own_names<'a>(
    results: impl IntoIterator<Item = &'a df::Expr>,
) -> Result<()> {
    let mut names = HashSet::new();
    for result in results {
        let (relation, name) = match result {
            df::Expr::Column(column) => (&column.relation, &column.name),
            df::Expr::Alias(alias) => (&alias.relation, &alias.name),
            _ => continue,
        };
        if !names.insert((relation, name)) {
            let why = "results are named after their first columns: give one of both another name by .alias(\"…\")";
            return Err(Error::unsupported(format!("two results named {name:?}"), why));
        }
    }
    Ok(())
}

/// Ways to name a result after its column; see [`Expr::name`].
#[derive(Debug, Clone)]
pub struct ResultName(Expr);

impl ResultName {
    pub(super) fn of(expr: Expr) -> ResultName {
        ResultName(expr)
    }

    /// The column's name with something before it.
    pub fn prefix(self, prefix: &str) -> Expr {
        self.named(|name| format!("{prefix}{name}"))
    }

    /// The column's name with something behind it.
    pub fn suffix(self, suffix: &str) -> Expr {
        self.named(|name| format!("{name}{suffix}"))
    }

    /// The column's name, in place of an alias.
    pub fn keep(self) -> Expr {
        let Expr { tree, name } = self.0;
        let (tree, name) = match tree {
            df::Expr::Alias(alias) => {
                let name = name_of(&alias.expr);
                (*alias.expr, name)
            }
            tree => (tree, name),
        };
        ResultName(Expr { tree, name }).named(str::to_string)
    }

    fn named(self, make: impl FnOnce(&str) -> String) -> Expr {
        match self.0.name {
            Some(name) => self.0.tree.alias(make(&name)).into(),
            None => self.0.tree.alias(make(&OWN_NAME.to_string())).into(),
        }
    }
}
