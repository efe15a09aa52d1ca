//! Expressions as texts of bounded length, whatever their size: sites are described whenever a
//! kernel is asked for.

use std::fmt::Write;

use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::Expr;

use super::Site;
use crate::codegen::failure::Failure;
use crate::error::Operation;
use crate::sql::type_name;

/// Operators within operators that are written out.
const DEEP: usize = 6;
/// Bytes of an expression from which on it is cut.
const LONG: usize = 160;
/// Bytes of a literal that are shown.
const LITERAL: usize = 40;
/// Parts of an expression that are searched for columns, and columns that are told.
const SEARCHED: usize = 64;
const COLUMNS: usize = 6;

/// An operation of which only the values are missing.
#[derive(Debug)]
pub(super) struct DescribedOperation {
    operation: Operation,
    /// Which reported value an argument has; the others are in the operation already.
    values: Vec<Option<usize>>,
}

impl DescribedOperation {
    pub(super) fn named(name: &str) -> DescribedOperation {
        let operation = Operation {
            name: name.split('(').next().unwrap_or_default().to_string(),
            arguments: vec![],
            target: None,
            expression: name.to_string(),
            columns: vec![],
        };
        DescribedOperation { operation, values: vec![] }
    }

    /// The operation of a row that reported these values.
    pub(super) fn with(&self, reported: &[Option<String>]) -> Operation {
        let mut operation = self.operation.clone();
        for (argument, value) in operation.arguments.iter_mut().zip(&self.values) {
            if let Some(text) = value.and_then(|at| reported.get(at)?.clone()) {
                *argument = text;
            }
        }
        operation
    }
}

pub(super) fn described(expr: &Expr, site: &Site) -> DescribedOperation {
    let expr = bare(expr);
    let (name, arguments) = parts(expr);
    let mut operation = Operation {
        name,
        arguments: vec![],
        target: site.target.as_ref().map(type_name),
        expression: sql(expr),
        columns: columns(expr),
    };
    if site.target.is_some() {
        // Whatever the expression is, what failed is a cast of the one operand.
        operation.name = "CAST".into();
        let argument = arguments.first().map_or_else(|| operation.expression.clone(), |of| sql(of));
        operation.arguments = vec![argument];
        return DescribedOperation {
            operation,
            values: vec![(!site.operands.is_empty()).then_some(0)],
        };
    }
    if site.failure == Failure::Rows {
        operation.name = "subquery".into();
        operation.columns.truncate(1);
        operation.expression = operation.columns.concat();
        return DescribedOperation { operation, values: vec![] };
    }
    let reported = |of: &&Expr| {
        let address = std::ptr::from_ref(*of).addr();
        site.operands.iter().position(|(known, _)| *known == address)
    };
    let values = arguments.iter().map(reported).collect();
    operation.arguments = arguments.iter().map(|of| sql(of)).collect();
    DescribedOperation { operation, values }
}

/// Beneath other names.
fn bare(mut expr: &Expr) -> &Expr {
    while let Expr::Alias(alias) = expr {
        expr = &alias.expr;
    }
    expr
}

/// What an expression does, and to what.
fn parts(expr: &Expr) -> (String, Vec<&Expr>) {
    match expr {
        Expr::BinaryExpr(binary) => (binary.op.to_string(), vec![&binary.left, &binary.right]),
        Expr::Cast(cast) => ("CAST".into(), vec![&cast.expr]),
        Expr::TryCast(cast) => ("TRY_CAST".into(), vec![&cast.expr]),
        Expr::Negative(inner) => ("-".into(), vec![inner]),
        Expr::ScalarFunction(call) => (call.name().into(), call.args.iter().collect()),
        Expr::HigherOrderFunction(call) => (call.name().into(), call.args.iter().collect()),
        Expr::Like(like) => {
            let name = if like.case_insensitive { "ILIKE" } else { "LIKE" };
            (name.into(), vec![&like.expr, &like.pattern])
        }
        Expr::SimilarTo(like) => ("SIMILAR TO".into(), vec![&like.expr, &like.pattern]),
        _ => (sql(expr), vec![]),
    }
}

/// The expression as SQL, cut where it is long or deep.
pub(crate) fn sql(expr: &Expr) -> String {
    let mut text = String::new();
    write(expr, DEEP, &mut text);
    text
}

fn write(expr: &Expr, deep: usize, text: &mut String) {
    let expr = bare(expr);
    match expr {
        Expr::Column(column) => text.push_str(&column.flat_name()),
        Expr::Literal(value, _) => literal(value, text),
        _ if deep == 0 || text.len() > LONG => text.push('…'),
        Expr::BinaryExpr(binary) => {
            operand(&binary.left, deep, text);
            let _ = write!(text, " {} ", binary.op);
            operand(&binary.right, deep, text);
        }
        Expr::Cast(cast) => written_cast("CAST", &cast.expr, cast.field.data_type(), deep, text),
        Expr::TryCast(cast) => {
            written_cast("TRY_CAST", &cast.expr, cast.field.data_type(), deep, text)
        }
        Expr::Negative(inner) => {
            text.push('-');
            operand(inner, deep, text);
        }
        Expr::Not(inner) => {
            text.push_str("NOT ");
            operand(inner, deep, text);
        }
        Expr::ScalarFunction(call) => written_call(call.name(), &call.args, deep, text),
        Expr::HigherOrderFunction(call) => written_call(call.name(), &call.args, deep, text),
        Expr::Lambda(lambda) => {
            let (names, one) = (lambda.params.join(", "), lambda.params.len() == 1);
            let _ = if one { write!(text, "{names} -> ") } else { write!(text, "({names}) -> ") };
            write(&lambda.body, deep - 1, text);
        }
        Expr::LambdaVariable(variable) => text.push_str(&variable.name),
        Expr::Like(_) | Expr::SimilarTo(_) => {
            let (name, operands) = parts(expr);
            operand(operands[0], deep, text);
            let _ = write!(text, " {name} ");
            operand(operands[1], deep, text);
        }
        Expr::Case(_) => text.push_str("CASE … END"),
        _ => text.push('…'),
    }
}

fn written_call(name: &str, arguments: &[Expr], deep: usize, text: &mut String) {
    text.push_str(name);
    text.push('(');
    for (at, argument) in arguments.iter().enumerate() {
        if text.len() > LONG {
            text.push_str(", …");
            break;
        }
        text.push_str(if at == 0 { "" } else { ", " });
        write(argument, deep - 1, text);
    }
    text.push(')');
}

/// In parentheses where it is an operator itself.
fn operand(expr: &Expr, deep: usize, text: &mut String) {
    let expr = bare(expr);
    let nested =
        matches!(expr, Expr::BinaryExpr(_) | Expr::Like(_) | Expr::SimilarTo(_) | Expr::Not(_))
            && deep > 1;
    text.push_str(if nested { "(" } else { "" });
    write(expr, deep - 1, text);
    text.push_str(if nested { ")" } else { "" });
}

fn written_cast(
    name: &str,
    inner: &Expr,
    dtype: &datafusion::arrow::datatypes::DataType,
    deep: usize,
    text: &mut String,
) {
    let _ = write!(text, "{name}(");
    write(inner, deep - 1, text);
    let _ = write!(text, " AS {})", type_name(dtype));
}

fn literal(value: &ScalarValue, text: &mut String) {
    if value.is_null() {
        return text.push_str("NULL");
    }
    if value.data_type().is_nested() {
        return text.push('…');
    }
    match value.try_as_str() {
        Some(Some(string)) => {
            let shown: String = string.chars().take(LITERAL).collect();
            let more = if shown.len() < string.len() { "…" } else { "" };
            let _ = write!(text, "'{}{more}'", shown.replace('\'', "''"));
        }
        _ if value.data_type().is_temporal() => {
            let written =
                value.to_array().ok().and_then(|array| array_value_to_string(&array, 0).ok());
            text.push_str(&written.unwrap_or_else(|| value.to_string()));
        }
        _ => {
            let _ = write!(text, "{value}");
        }
    }
}

/// Names of columns and of parameters of lambdas, in the order in which they are read.
fn columns(expr: &Expr) -> Vec<String> {
    let (mut found, mut rest, mut searched): (Vec<String>, _, _) = (vec![], vec![expr], 0);
    while let Some(next) = rest.pop() {
        searched += 1;
        if searched > SEARCHED || found.len() >= COLUMNS {
            break;
        }
        let name = match next {
            Expr::Column(column) => Some(column.flat_name()),
            Expr::LambdaVariable(variable) => Some(variable.name.clone()),
            _ => None,
        };
        if let Some(name) = name {
            if !found.contains(&name) {
                found.push(name);
            }
            continue;
        }
        let first = rest.len();
        let _ = next.apply_children(|child| {
            rest.push(child);
            Ok(TreeNodeRecursion::Continue)
        });
        rest[first..].reverse();
    }
    found
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::DataType;
    use datafusion::prelude::{cast, col, lit};

    use super::*;

    #[test]
    fn expressions_are_written_as_sql_and_cut_where_they_are_deep() {
        let expr = cast(col("t.s"), DataType::Int32) / (lit(1i64) + col("t.z")).alias("other");
        assert_eq!(sql(&expr), "CAST(t.s AS INTEGER) / (1 + t.z)");
        assert_eq!(columns(&expr), ["t.s", "t.z"]);
        let sum = (0..3000).fold(col("t.a"), |sum, at| sum + col(format!("t.c{at}")));
        assert_eq!(
            sql(&sum),
            "(((((… + t.c2994) + t.c2995) + t.c2996) + t.c2997) + t.c2998) + t.c2999"
        );
        assert!(columns(&sum).len() <= COLUMNS);
    }

    #[test]
    fn literals_are_written_as_sql() {
        let written = |value: ScalarValue| {
            let mut text = String::new();
            literal(&value, &mut text);
            text
        };
        assert_eq!(written(ScalarValue::from("it's")), "'it''s'");
        assert_eq!(
            written(ScalarValue::from("x".repeat(100).as_str())),
            format!("'{}…'", "x".repeat(40))
        );
        assert_eq!(written(ScalarValue::Int64(None)), "NULL");
        assert_eq!(written(ScalarValue::Int64(Some(7))), "7");
        assert_eq!(written(ScalarValue::Date32(Some(1))), "1970-01-02");
        assert_eq!(written(ScalarValue::new_interval_mdn(1, 2, 0)), "1 mons 2 days");
    }
}
