//! Tools for calls of functions in the parser's tree.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, Spanned,
};

use crate::error::{Error, ErrorKind};
use crate::sql::ast::known;

pub(super) fn rename(function: &mut Function, name: &str) {
    function.name = ObjectName::from(vec![Ident::new(name)]);
}

/// The arguments of a call of values that has nothing else; `None` of another.
pub(super) fn values(function: &Function) -> Option<Vec<Expr>> {
    let FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses }) =
        &function.args
    else {
        return None;
    };
    let value = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    args.iter().map(value).collect::<Option<_>>().filter(|_| clauses.is_empty())
}

pub(super) fn wrong(function: &Function, why: &str) -> Error {
    let location = known(function.name.span().start);
    let message = format!("{} {why}", function.name);
    ErrorKind::Plan { message, location }.into()
}
