//! Operators as DuckDB has them, and subscripts of strings.
//!
//! ```text
//!   a ** b               power(CAST(a AS DOUBLE), CAST(b AS DOUBLE))
//!   ~i                   bitwise_not(i)
//!   s ^@ 'a', l && m     starts_with(s, 'a'), list_has_any(l, m)
//!   s GLOB 'a*_?'        s LIKE 'a%\__'
//!   s GLOB '[a-c]*'      s ~ '^[a-c](?s:.)*$'
//!   s LIKE 'a$%' ESCAPE '$'  s LIKE 'a\%'
//!   a IN l               array_has(l, a)
//!   a = ANY (l)          array_has(l, a), or null where l has a null
//!   a // b               a / b, of decimals as floats
//!   t AT TIME ZONE 'z'   timezone('z', t)
//!   m[[1, 2]]            element_at(m, [1, 2])[1]
//!   l || m, of lists     array_concat(l, m), or null where one of them is
//!   s[2], s[-3:]         substr(s, 2, 1), substr(s, character_length(s) - 2, …)
//! ```
//!
//! `//` cuts the quotient of integers towards zero, and of floats it is the quotient itself, as in
//! DuckDB 2. What the last four are follows from types, which the planner knows.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::utils::list_ndims;
use datafusion::common::{DFSchema, ScalarValue, plan_err};
use datafusion::error::Result as PlanResult;
use datafusion::functions::expr_fn::{character_length, substring};
use datafusion::functions_nested::expr_fn::{array_concat, array_element, map_extract, map_values};
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr,
};
use datafusion::logical_expr::{
    BinaryExpr, Expr as PlanExpr, ExprSchemable, GetFieldAccess, Operator, cast as plan_cast, lit,
    when,
};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as SqlType, ExactNumberInfo, Expr, Spanned, UnaryOperator, Value,
    ValueWithSpan,
};

use super::numbers;
use crate::codegen::{InSql, in_sql};
use crate::error::{Error, ErrorKind, Result};
use crate::host::once_a_row::alike;
use crate::sql::ast::{bare, binary, call, cast, known, text};

/// How the parser's tree has the operators that it has none for.
pub(super) const GLOB: &str = "GLOB";
pub(super) const IN_LIST: &str = "IN";
const POWER: &str = "**";

/// `left ** right`, of which the parser has read `left` as what `*` would take.
pub(super) fn power(left: Expr, right: Expr) -> Expr {
    use BinaryOperator::{Divide, DuckIntegerDivide, Modulo, Multiply};
    match left {
        Expr::BinaryOp {
            left,
            op: op @ (Multiply | Divide | Modulo | DuckIntegerDivide),
            right: factor,
        } => Expr::BinaryOp { left, op, right: Box::new(power(*factor, right)) },
        left => binary(left, BinaryOperator::Custom(POWER.into()), right),
    }
}

/// Whether an expression is one of these, which its column is called by.
pub(super) fn is_one(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::BinaryOp { op: BinaryOperator::Custom(_) | BinaryOperator::DuckIntegerDivide, .. }
            | Expr::AtTimeZone { .. }
            | Expr::UnaryOp { op: UnaryOperator::BitwiseNot, .. }
            | Expr::BinaryOp { op: BinaryOperator::PGStartsWith | BinaryOperator::PGOverlap, .. }
    )
}

/// Writes a power, a GLOB, IN a list, AT TIME ZONE, `~`, `^@` or `&&` out, if it is one.
///
/// # Errors
/// A pattern of GLOB that is computed, or has brackets that do not close.
pub(super) fn write_out(expr: &mut Expr) -> Result<()> {
    if let Expr::AtTimeZone { timestamp, time_zone } = &*expr {
        *expr = call("timezone", vec![(**time_zone).clone(), (**timestamp).clone()]);
        return Ok(());
    }
    if let Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr: value } = &*expr {
        *expr = call("bitwise_not", vec![(**value).clone()]);
        return Ok(());
    }
    if let Expr::BinaryOp { left, op: BinaryOperator::PGStartsWith, right } = &*expr {
        *expr = call("starts_with", vec![(**left).clone(), (**right).clone()]);
        return Ok(());
    }
    if let Expr::BinaryOp { left, op: BinaryOperator::PGOverlap, right } = &*expr {
        let lists = [(**left).clone(), (**right).clone()];
        if let Some(InSql::Written(writing)) = in_sql("list_has_any")
            && let Some(written) = (writing.written)(writing.name, &lists)
        {
            *expr = written;
        }
        return Ok(());
    }
    let Expr::BinaryOp { left, op: BinaryOperator::Custom(name), right } = &*expr else {
        return Ok(());
    };
    if name == POWER {
        let double = |expr: &Expr| cast(expr.clone(), SqlType::Double(ExactNumberInfo::None));
        *expr = call("power", vec![double(left), double(right)]);
    } else if name == IN_LIST {
        *expr = call("array_has", vec![(**right).clone(), (**left).clone()]);
    } else if name == GLOB {
        let location = known(right.span().start);
        let pattern = match bare(right) {
            Expr::Value(value) => value.value.clone().into_string(),
            _ => None,
        };
        let Some(pattern) = pattern else {
            let why = "its pattern is a constant; LIKE takes a computed one";
            return Err(Error::unsupported("GLOB with a computed pattern", why).at(location));
        };
        *expr = matched(left, &pattern).ok_or_else(|| {
            let message = format!("GLOB: the pattern {pattern:?} ends within [ ] or behind \\");
            Error::from(ErrorKind::Plan { message, location })
        })?;
    }
    Ok(())
}

/// Writes a pattern of LIKE with the engine's escape character, the backslash.
///
/// # Errors
/// A computed pattern, one that ends with the escape character, and an escape of several
/// characters.
pub(super) fn write_escape_out(
    pattern: &mut Expr,
    escape: &mut Option<ValueWithSpan>,
) -> Result<()> {
    let Some(ValueWithSpan { value, span }) = escape.take() else { return Ok(()) };
    let location = known(span.start);
    let wrong = |message: String| Error::from(ErrorKind::Plan { message, location });
    if value == Value::Null {
        *pattern = cast(Expr::value(Value::Null), SqlType::Text);
        return Ok(());
    }
    let given = value.into_string().unwrap_or_default();
    let mut characters = given.chars();
    let (escape, None) = (characters.next(), characters.next()) else {
        return Err(wrong(format!("ESCAPE takes one character, or none, not {given:?}")));
    };
    if escape == Some('\\') {
        return Ok(());
    }
    let constant = match bare(pattern) {
        Expr::Value(value) => value.value.clone().into_string(),
        _ => None,
    };
    let Some(constant) = constant else {
        let why = "only a constant pattern takes one";
        return Err(Error::unsupported("ESCAPE behind a computed pattern", why).at(location));
    };
    let mut written = String::new();
    let mut rest = constant.chars();
    while let Some(mut c) = rest.next() {
        let is_literal = Some(c) == escape;
        if is_literal {
            let ends = || wrong(format!("the pattern {constant:?} ends with its escape character"));
            c = rest.next().ok_or_else(ends)?;
        }
        if c == '\\' || is_literal && matches!(c, '%' | '_') {
            written.push('\\');
        }
        written.push(c);
    }
    *pattern = text(&written);
    Ok(())
}

/// `x = ANY (l)` of a list, and `x <> ALL (l)`, which are null where no element decides and one is
/// null. DataFusion's (55.2) are false.
pub(super) fn write_any_out(expr: &mut Expr) {
    let (left, right, is_all) = match &*expr {
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => (left, right, false),
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => (left, right, true),
        _ => return,
    };
    let list = bare(right);
    let has = call("array_has", vec![list.clone(), (**left).clone()]);
    let count = |list: Expr| call("cardinality", vec![list]);
    let whole = call("array_compact", vec![list.clone()]);
    let lacks = binary(count(list.clone()), BinaryOperator::NotEq, count(whole));
    let is_unknown = call("nullif", vec![lacks, Expr::value(Value::Boolean(true))]);
    let any = Expr::Nested(Box::new(binary(has, BinaryOperator::Or, is_unknown)));
    *expr = match is_all {
        true => {
            Expr::Nested(Box::new(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(any) }))
        }
        false => any,
    };
}

/// Whether a text is what a pattern of GLOB says.
fn matched(subject: &Expr, pattern: &str) -> Option<Expr> {
    if pattern.contains(['[', '\\']) {
        let pattern = text(&regular(pattern)?);
        return Some(binary(subject.clone(), BinaryOperator::PGRegexMatch, pattern));
    }
    let mut like = String::new();
    for c in pattern.chars() {
        match c {
            '*' => like.push('%'),
            '?' => like.push('_'),
            '%' | '_' => like.extend(['\\', c]),
            c => like.push(c),
        }
    }
    Some(Expr::Like {
        negated: false,
        any: false,
        expr: Box::new(subject.clone()),
        pattern: Box::new(text(&like)),
        escape_char: None,
    })
}

/// A pattern of GLOB as a regular expression.
fn regular(pattern: &str) -> Option<String> {
    let mut found = String::from("^");
    let mut characters = pattern.chars().peekable();
    let literal = |found: &mut String, c: char| {
        // Others behind a backslash would be classes and edges of words.
        if r"\.+*?()|[]{}^$#&-~".contains(c) {
            found.push('\\');
        }
        found.push(c);
    };
    while let Some(c) = characters.next() {
        match c {
            '*' => found.push_str("(?s:.)*"),
            '?' => found.push_str("(?s:.)"),
            '\\' => literal(&mut found, characters.next()?),
            '[' => {
                found.push('[');
                if characters.next_if_eq(&'!').is_some() {
                    found.push('^');
                }
                let mut class = vec![];
                loop {
                    match characters.next()? {
                        ']' if !class.is_empty() => break,
                        '\\' => return None,
                        c => class.push(c),
                    }
                }
                for (at, c) in class.iter().enumerate() {
                    let is_range = *c == '-' && at > 0 && at + 1 < class.len();
                    if is_range { found.push('-') } else { literal(&mut found, *c) }
                }
                found.push(']');
            }
            c => literal(&mut found, c),
        }
    }
    found.push('$');
    Some(found)
}

/// Plans what is one thing or another by its types.
#[derive(Debug)]
pub(in crate::session) struct TypedOperators;

impl ExprPlanner for TypedOperators {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> PlanResult<PlannerResult<RawBinaryExpr>> {
        let op = match expr.op {
            BinaryOperator::Plus => Some(Operator::Plus),
            BinaryOperator::Minus => Some(Operator::Minus),
            BinaryOperator::Multiply => Some(Operator::Multiply),
            BinaryOperator::Modulo => Some(Operator::Modulo),
            BinaryOperator::DuckIntegerDivide => None,
            BinaryOperator::StringConcat => return joined_lists(expr, schema),
            _ => return Ok(PlannerResult::Original(expr)),
        };
        if let Some(op) = op {
            let planned = numbers::planned(op, &expr.left, &expr.right, schema);
            return Ok(match planned {
                Some(planned) => PlannerResult::Planned(planned),
                None => PlannerResult::Original(expr),
            });
        }
        let side = |side: PlanExpr| match side.get_type(schema)? {
            decimal if decimal.is_decimal() => Ok(plan_cast(side, DataType::Float64)),
            number if number.is_numeric() || number.is_null() => Ok(side),
            other => plan_err!("// divides numbers, not {other}"),
        };
        let (left, right) = (Box::new(side(expr.left)?), Box::new(side(expr.right)?));
        let quotient = BinaryExpr { left, op: Operator::Divide, right };
        Ok(PlannerResult::Planned(PlanExpr::BinaryExpr(quotient)))
    }

    fn plan_field_access(
        &self,
        access: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> PlanResult<PlannerResult<RawFieldAccessExpr>> {
        if let GetFieldAccess::ListIndex { key } = &access.field_access
            && matches!(access.expr.get_type(schema), Ok(DataType::Map(..)))
            && matches!(key.get_type(schema), Ok(DataType::List(_) | DataType::Null))
        {
            // No value has the key NULL, which DataFusion compares with no other. A subscript by a list takes each of its elements for a row (DataFusion 55.2,
            // `GetFieldFunc`), and panics.
            let key = match key.get_type(schema)? {
                DataType::Null => {
                    let (map, null) = (access.expr, key.as_ref().clone());
                    let value = array_element(map_values(map), lit(1i64)).get_type(schema)?;
                    return Ok(PlannerResult::Planned(plan_cast(null, value)));
                }
                _ => key.as_ref().clone(),
            };
            let found = map_extract(access.expr, key);
            return Ok(PlannerResult::Planned(array_element(found, lit(1i64))));
        }
        let is_string = |expr: &PlanExpr| {
            let dtype = expr.get_type(schema);
            matches!(dtype, Ok(DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8))
        };
        let named = matches!(access.field_access, GetFieldAccess::NamedStructField { .. });
        if named || !is_string(&access.expr) {
            return Ok(PlannerResult::Original(access));
        }
        let subject = access.expr;
        let planned = match access.field_access {
            GetFieldAccess::ListIndex { key } => {
                let subject = alike(subject);
                let place = place(&subject, *key)?;
                substring(subject, place, lit(1i64))
            }
            GetFieldAccess::ListRange { start, stop, stride } => {
                if !matches!(&*stride, PlanExpr::Literal(step, _)
                    if *step == ScalarValue::Int64(Some(1)))
                {
                    return plan_err!("a slice of a string has no step: s[a:b]");
                }
                let subject = alike(subject);
                let first = at_least(1, place(&subject, *start)?)?;
                let behind = place(&subject, *stop)? + lit(1i64);
                let characters = at_least(0, behind - first.clone())?;
                substring(subject, first, characters)
            }
            GetFieldAccess::NamedStructField { .. } => unreachable!("it was left"),
        };
        Ok(PlannerResult::Planned(planned))
    }
}

/// Lists behind one another. `array_concat` takes null for an empty list; the operator is null then.
fn joined_lists(
    expr: RawBinaryExpr,
    schema: &DFSchema,
) -> PlanResult<PlannerResult<RawBinaryExpr>> {
    let dtype = |side: &PlanExpr| side.get_type(schema).unwrap_or(DataType::Null);
    let (left, right) = (dtype(&expr.left), dtype(&expr.right));
    let null_of = |list: &DataType| Ok(PlannerResult::Planned(lit(ScalarValue::try_from(list)?)));
    match (list_ndims(&left), list_ndims(&right)) {
        (1.., 0) if right.is_null() => return null_of(&left),
        (0, 1..) if left.is_null() => return null_of(&right),
        (deep, other) if deep == other && deep > 0 => {}
        _ => return Ok(PlannerResult::Original(expr)),
    }
    // Of a chain, so that none of its lists stands there more than twice.
    let mut lists = parts_of_chain(expr.left, schema)?;
    lists.extend(parts_of_chain(expr.right, schema)?);
    let any_null = any_null(&lists, schema)?;
    let joined = array_concat(lists);
    Ok(PlannerResult::Planned(match any_null {
        Some(any_null) => when(any_null, lit(ScalarValue::Null)).otherwise(joined)?,
        None => joined,
    }))
}

/// Whether one of some lists is null; nothing where none can be.
fn any_null(lists: &[PlanExpr], schema: &DFSchema) -> PlanResult<Option<PlanExpr>> {
    let mut any: Option<PlanExpr> = None;
    for list in lists {
        if list.nullable(schema)? {
            let is_null = list.clone().is_null();
            any = Some(match any {
                Some(before) => before.or(is_null),
                None => is_null,
            });
        }
    }
    Ok(any)
}

/// The lists that a list is joined of by this operator.
fn parts_of_chain(list: PlanExpr, schema: &DFSchema) -> PlanResult<Vec<PlanExpr>> {
    if let PlanExpr::Case(case) = &list
        && case.expr.is_none()
        && let [(condition, null)] = &case.when_then_expr[..]
        && **null == lit(ScalarValue::Null)
        && let Some(PlanExpr::ScalarFunction(call)) = case.else_expr.as_deref()
        && call.name() == "array_concat"
        && any_null(&call.args, schema)?.as_ref() == Some(condition)
    {
        return Ok(call.args.clone());
    }
    Ok(vec![list])
}

/// A number, or another that it is less than; null of null.
fn at_least(least: i64, number: PlanExpr) -> PlanResult<PlanExpr> {
    when(number.clone().lt(lit(least)), lit(least)).otherwise(number)
}

/// The place of a character, from one on. Negative ones are counted from the end.
fn place(subject: &PlanExpr, place: PlanExpr) -> PlanResult<PlanExpr> {
    let constant = |expr: &PlanExpr| match expr {
        PlanExpr::Literal(ScalarValue::Int64(place), _) => *place,
        _ => None,
    };
    let found = match &place {
        PlanExpr::Negative(inner) => constant(inner).and_then(i64::checked_neg),
        other => constant(other),
    };
    let behind_all = || plan_cast(character_length(subject.clone()), DataType::Int64) + lit(1i64);
    match found {
        Some(place) if place >= 0 => Ok(lit(place)),
        Some(place) => Ok(behind_all() + lit(place)),
        None => {
            let place = alike(plan_cast(place, DataType::Int64));
            when(place.clone().lt(lit(0i64)), behind_all() + place.clone()).otherwise(place)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_are_regular_expressions() {
        for (glob, expected) in [
            ("[a-c]*", "^[a-c](?s:.)*$"),
            ("[!a]?.", r"^[^a](?s:.)\.$"),
            (r"a\*", r"^a\*$"),
            ("[]-]", r"^[\]\-]$"),
            ("[-x]", r"^[\-x]$"),
        ] {
            assert_eq!(regular(glob).as_deref(), Some(expected), "{glob}");
        }
        assert_eq!(regular("a["), None);
        assert_eq!(regular("a[]"), None);
        assert_eq!(regular(r"a\"), None);
    }
}
