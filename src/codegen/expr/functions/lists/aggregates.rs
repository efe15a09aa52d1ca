//! `list_aggregate(l, 'sum')`, as the functions of lists that do the same.

use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, DataType, ExactNumberInfo, Expr, Ident, LambdaFunction,
    LambdaFunctionParameter, LambdaSyntax, OneOrManyWithParens, Value,
};

use crate::sql::ast::{binary, call, case, cast, is_null, nested, number, text};

pub(super) const TAKES: &str = "takes a list and the name of an aggregate, one of 'sum', 'avg', \
    'min', 'max', 'product', 'count', 'first', 'last', 'any_value', 'approx_count_distinct' and \
    'string_agg'";

/// The aggregate of a list that a constant names; `None` of others.
pub(super) fn aggregate(args: &[Expr]) -> Option<Expr> {
    let [list, name, rest @ ..] = args else { return None };
    let name = match name {
        Expr::Value(value) => value.value.clone().into_string()?.to_lowercase(),
        _ => return None,
    };
    let of =
        |name: &str, more: Vec<Expr>| call(name, [list.clone()].into_iter().chain(more).collect());
    match (name.as_str(), rest) {
        ("sum", []) => sum(&args[..1]),
        ("avg" | "mean", []) => Some(of("array_avg", vec![])),
        ("min", []) => Some(of("array_min", vec![])),
        ("max", []) => Some(of("array_max", vec![])),
        ("product", []) => {
            let double = DataType::Double(ExactNumberInfo::None);
            let element = ArrayElemTypeDef::SquareBracket(Box::new(double), None);
            Some(call("array_product", vec![cast(list.clone(), DataType::Array(element))]))
        }
        ("count", []) => count(&args[..1]),
        ("first" | "arbitrary", []) => Some(of("array_element", vec![number("1")])),
        ("last", []) => Some(of("array_element", vec![number("-1")])),
        ("any_value", []) => Some(of("array_any_value", vec![])),
        ("approx_count_distinct", []) => unique(&args[..1]),
        ("string_agg" | "group_concat" | "listagg", [] | [_]) => {
            let between = rest.first().cloned().unwrap_or_else(|| text(","));
            let any = binary(count(&args[..1])?, BinaryOperator::Gt, number("0"));
            Some(case(any, of("array_to_string", vec![between]), None))
        }
        _ => None,
    }
}

/// How many elements are not null.
pub(super) fn count(args: &[Expr]) -> Option<Expr> {
    let [list] = args else { return None };
    Some(cast(call("cardinality", vec![compact(list)]), DataType::BigInt(None)))
}

/// How many values there are among the elements.
pub(super) fn unique(args: &[Expr]) -> Option<Expr> {
    let [list] = args else { return None };
    Some(call("cardinality", vec![call("array_distinct", vec![compact(list)])]))
}

/// The sum of the elements that are not null, exact where they are.
pub(super) fn sum(args: &[Expr]) -> Option<Expr> {
    let [list] = args else { return None };
    let name = |name: &str| LambdaFunctionParameter { name: Ident::new(name), data_type: None };
    let [sum, element] = ["a", "x"].map(|name| Expr::Identifier(Ident::new(name)));
    let add = Expr::Lambda(LambdaFunction {
        params: OneOrManyWithParens::Many(vec![name("a"), name("x")]),
        body: Box::new(binary(sum, BinaryOperator::Plus, element)),
        syntax: LambdaSyntax::Arrow,
    });
    let none = call("sum_of_none", vec![list.clone()]);
    let added = call("list_reduce", vec![compact(list), add, none]);
    let any = binary(count(args)?, BinaryOperator::Gt, number("0"));
    Some(case(any, added, None))
}

/// The elements at places.
pub(super) fn select(args: &[Expr]) -> Option<Expr> {
    let [list, places] = args else { return None };
    let name = LambdaFunctionParameter { name: Ident::new("place"), data_type: None };
    let place = Expr::Identifier(Ident::new("place"));
    let element = Expr::Lambda(LambdaFunction {
        params: OneOrManyWithParens::One(name),
        body: Box::new(call("array_element", vec![list.clone(), place])),
        syntax: LambdaSyntax::Arrow,
    });
    let elements = call("array_transform", vec![places.clone(), element]);
    Some(case(Expr::IsNotNull(Box::new(nested(list.clone()))), elements, None))
}

/// A number that may be less than another: DataFusion's (55.2) has no sign.
pub(super) fn length(args: &[Expr]) -> Option<Expr> {
    let is_call = matches!(args, [_] | [_, _]);
    is_call.then(|| cast(call("array_length", args.to_vec()), DataType::BigInt(None)))
}

/// The place of a value, or of the first null: DataFusion (55.2) finds none among lists, and gives
/// a number without a sign.
pub(super) fn position(args: &[Expr]) -> Option<Expr> {
    let found = |args: Vec<Expr>| Some(cast(call("array_position", args), DataType::BigInt(None)));
    match args {
        [list, _] if is_null(list) => Some(cast(list.clone(), DataType::BigInt(None))),
        [list, value] if is_null(value) => {
            let name = LambdaFunctionParameter { name: Ident::new("x"), data_type: None };
            let is_null = Expr::Lambda(LambdaFunction {
                params: OneOrManyWithParens::One(name),
                body: Box::new(Expr::IsNull(Box::new(Expr::Identifier(Ident::new("x"))))),
                syntax: LambdaSyntax::Arrow,
            });
            let nulls = call("array_transform", vec![list.clone(), is_null]);
            found(vec![nulls, Expr::value(Value::Boolean(true))])
        }
        [_, _] | [_, _, _] => found(args.to_vec()),
        _ => None,
    }
}

/// The values among the elements.
pub(super) fn distinct(args: &[Expr]) -> Option<Expr> {
    let [list] = args else { return None };
    Some(call("array_distinct", vec![compact(list)]))
}

/// The values that are elements of both.
pub(super) fn intersect(args: &[Expr]) -> Option<Expr> {
    let [list, other] = args else { return None };
    Some(call("array_intersect", vec![compact(list), other.clone()]))
}

/// Whether some value is an element of both.
pub(super) fn has_any(args: &[Expr]) -> Option<Expr> {
    let [list, other] = args else { return None };
    Some(of_both(list, other, call("array_has_any", vec![compact(list), other.clone()])))
}

/// Whether all values among the elements of the second are elements of the first.
pub(super) fn has_all(args: &[Expr]) -> Option<Expr> {
    let [list, other] = args else { return None };
    Some(of_both(list, other, call("array_has_all", vec![list.clone(), compact(other)])))
}

/// A value that is null where one of two lists is.
fn of_both(one: &Expr, other: &Expr, value: Expr) -> Expr {
    let is_there = |list: &Expr| Expr::IsNotNull(Box::new(nested(list.clone())));
    case(binary(is_there(one), BinaryOperator::And, is_there(other)), value, None)
}

/// The elements that are not null: as in DuckDB, a null is no value.
fn compact(list: &Expr) -> Expr {
    call("array_compact", vec![list.clone()])
}

/// A list in order, with what is null at its end where nothing else is said.
pub(super) fn sort(args: &[Expr]) -> Option<Expr> {
    let [list, order @ ..] = args else { return None };
    let (direction, nulls) = match order {
        [] => (text("ASC"), text("NULLS LAST")),
        [direction] => (direction.clone(), text("NULLS LAST")),
        [direction, nulls] => (direction.clone(), nulls.clone()),
        _ => return None,
    };
    Some(call("array_sort", vec![list.clone(), direction, nulls]))
}

/// From the greatest to the least, with nulls last.
pub(super) fn reverse_sort(args: &[Expr]) -> Option<Expr> {
    let [list] = args else { return None };
    Some(call("array_sort", vec![list.clone(), text("DESC"), text("NULLS LAST")]))
}
