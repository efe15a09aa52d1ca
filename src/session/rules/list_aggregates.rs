//! `list_aggregate(l, 'sum')`, as the functions of lists that do the same.

use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, DataType, ExactNumberInfo, Expr,
};

use super::scalars::case;
use super::statement::call;
use super::synonyms::{binary, cast, number, text};

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
        ("sum", []) => Some(of("array_sum", vec![])),
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
    let there = call("array_compact", vec![list.clone()]);
    Some(cast(call("cardinality", vec![there]), DataType::BigInt(None)))
}

/// How many values there are among the elements.
pub(super) fn unique(args: &[Expr]) -> Option<Expr> {
    let [list] = args else { return None };
    let there = call("array_compact", vec![list.clone()]);
    Some(call("cardinality", vec![call("array_distinct", vec![there])]))
}

/// From the greatest to the least, with nulls last.
pub(super) fn reverse_sort(args: &[Expr]) -> Option<Expr> {
    let [list] = args else { return None };
    Some(call("array_sort", vec![list.clone(), text("DESC"), text("NULLS LAST")]))
}
