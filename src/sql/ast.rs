//! Tools for the parser's trees.

use datafusion::common::TableReference;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, ObjectName, UnaryOperator, Value,
};
use datafusion::sql::sqlparser::tokenizer::Location;

use crate::error::{Error, ErrorKind, Result};

/// Line and column, both from 1 on, where known.
pub(crate) type Place = Option<(u64, u64)>;

/// A place that the parser knows.
pub(crate) fn known(place: Location) -> Place {
    (place.line > 0).then_some((place.line, place.column))
}

/// A name as SQL has it: in lower case unless it is quoted.
pub(crate) fn folded(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}

/// The names of which a table's is made.
pub(crate) fn idents(name: &ObjectName) -> Vec<&Ident> {
    name.0.iter().filter_map(|part| part.as_ident()).collect()
}

/// A constant text.
pub(crate) fn text(text: &str) -> Expr {
    Expr::value(Value::SingleQuotedString(text.into()))
}

/// A constant number.
pub(crate) fn number(digits: &str) -> Expr {
    Expr::value(Value::Number(digits.into(), false))
}

/// A constant number as it is written, with its sign.
pub(crate) fn number_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(text, _) => Some(text.clone()),
            _ => None,
        },
        Expr::Nested(inner) => number_of(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            number_of(expr).filter(|text| !text.starts_with('-')).map(|text| format!("-{text}"))
        }
        _ => None,
    }
}

pub(crate) fn cast(expr: Expr, data_type: DataType) -> Expr {
    let (kind, expr) = (CastKind::Cast, Box::new(expr));
    Expr::Cast { kind, expr, data_type, array: false, format: None }
}

pub(crate) fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

/// An expression in parentheses.
pub(crate) fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

/// An expression without parentheses around it.
pub(crate) fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => bare(inner),
        other => other,
    }
}

/// A function's call.
pub(crate) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let args = arguments
        .into_iter()
        .map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)))
        .collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}

/// A table's name, and where it stands.
pub(crate) fn table_name(name: &ObjectName, by: &str) -> Result<(TableReference, Place)> {
    let idents = idents(name);
    let place = idents.first().and_then(|ident| known(ident.span.start));
    let name = match idents[..] {
        [table] if name.0.len() == 1 => TableReference::bare(folded(table)),
        [schema, table] if name.0.len() == 2 => {
            TableReference::partial(folded(schema), folded(table))
        }
        [catalog, schema, table] if name.0.len() == 3 => {
            TableReference::full(folded(catalog), folded(schema), folded(table))
        }
        _ => {
            let message = format!("{by}: {name} is no name of a table");
            return Err(Error::from(ErrorKind::Plan { message, location: None }).at(place));
        }
    };
    Ok((name, place))
}

pub(crate) fn case(condition: Expr, result: Expr, otherwise: Option<Expr>) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result }],
        else_result: otherwise.map(Box::new),
    }
}

/// Whether an expression is NULL as it is written, with or without a type.
pub(crate) fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => value.value == Value::Null,
        Expr::Cast { expr, .. } | Expr::Nested(expr) => is_null(expr),
        _ => false,
    }
}
