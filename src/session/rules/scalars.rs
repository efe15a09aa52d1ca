//! Scalar functions of DuckDB's that are expressions of others here.
//!
//! ```text
//!   if(c, a, b)                  CASE WHEN c THEN a ELSE b END
//!   last_day(d)                  CAST(date_trunc('month', d) + INTERVAL '1 month' -
//!                                     INTERVAL '1 day' AS DATE)
//!   dayname(d), monthname(d)     to_char(d, '%A'), to_char(d, '%B')
//!   regexp_extract(s, 'p', 1)    CASE WHEN s IS NOT NULL
//!                                     THEN coalesce(regexp_match(s, '(p)')[2], '') END
//!   xor(a, b)                    a ^ b
//!   even(x)                      signum(x) * ceil(abs(x) / 2) * 2
//!   ord(s), unicode(s)           CASE WHEN s = '' THEN -1 ELSE ascii(s) END
//!   string_split(s, '')          string_to_array(s, NULL)
//!   string_split(s, ',')         CASE WHEN s = '' THEN [''] ELSE string_to_array(s, ',') END
//!   yearweek(d)                  isoyear(d) * 100 + week(d)
//!   list_unique(l)               cardinality(array_distinct(array_compact(l)))
//!   list_has_any(l, m)           array_has_any(array_compact(l), m)
//! ```

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, ExactNumberInfo, Expr, Interval, Value,
};

use super::list_aggregates;
use crate::sql::ast::case;
use crate::sql::ast::{binary, call, cast, number, text};

/// What makes an expression of arguments; nothing of others than it takes.
type Written = fn(&[Expr]) -> Option<Expr>;

/// Functions, what they take, and what they are.
const FUNCTIONS: [(&str, &str, Written); 36] = [
    ("array_aggr", list_aggregates::TAKES, list_aggregates::aggregate),
    ("array_aggregate", list_aggregates::TAKES, list_aggregates::aggregate),
    ("array_distinct", "takes a list", list_aggregates::distinct),
    ("array_has_all", TWO_LISTS, list_aggregates::has_all),
    ("array_has_any", TWO_LISTS, list_aggregates::has_any),
    ("array_intersect", TWO_LISTS, list_aggregates::intersect),
    ("array_reverse_sort", "takes a list", list_aggregates::reverse_sort),
    ("array_unique", "takes a list", list_aggregates::unique),
    ("date_add", "takes a date or a time, and an interval", |args| {
        of_two(args, BinaryOperator::Plus)
    }),
    ("dayname", "takes a date or a time", |args| named(args, "%A")),
    ("even", "takes a number", even),
    ("if", "takes a condition and two values", chosen),
    ("iif", "takes a condition and two values", chosen),
    ("isinf", "takes a number", is_infinite),
    ("last_day", "takes a date or a time", last_day),
    ("list_aggr", list_aggregates::TAKES, list_aggregates::aggregate),
    ("list_aggregate", list_aggregates::TAKES, list_aggregates::aggregate),
    ("list_count", "takes a list", list_aggregates::count),
    ("list_distinct", "takes a list", list_aggregates::distinct),
    ("list_has_all", TWO_LISTS, list_aggregates::has_all),
    ("list_has_any", TWO_LISTS, list_aggregates::has_any),
    ("list_intersect", TWO_LISTS, list_aggregates::intersect),
    ("list_reverse_sort", "takes a list", list_aggregates::reverse_sort),
    ("list_sum", "takes a list", list_aggregates::sum),
    ("list_unique", "takes a list", list_aggregates::unique),
    ("mod", "takes two numbers", |args| of_two(args, BinaryOperator::Modulo)),
    ("monthname", "takes a date or a time", |args| named(args, "%B")),
    ("ord", "takes a text", first_character),
    (
        "regexp_extract",
        "takes a text, a constant pattern, and the number of a group, from 0 on",
        extracted,
    ),
    ("regexp_full_match", "takes a text, a constant pattern, and options", full_match),
    ("split", SPLIT_TAKES, split),
    ("str_split", SPLIT_TAKES, split),
    ("string_split", SPLIT_TAKES, split),
    ("unicode", "takes a text", first_character),
    ("xor", "takes two integers", |args| of_two(args, BinaryOperator::BitwiseXor)),
    ("yearweek", "takes a date or a time", year_and_week),
];
const TWO_LISTS: &str = "takes two lists";
const SPLIT_TAKES: &str = "takes a text and what stands between its parts";

/// Functions that DataFusion has, too, but with nulls for values, or with sums as floats.
pub(super) const INSTEAD: [&str; 9] = [
    "array_distinct",
    "array_has_all",
    "array_has_any",
    "array_intersect",
    "list_distinct",
    "list_has_all",
    "list_has_any",
    "list_intersect",
    "list_sum",
];

/// The number of a function.
pub(super) fn place(name: &str) -> Option<usize> {
    FUNCTIONS.binary_search_by_key(&name, |(name, _, _)| name).ok()
}

/// The function of a number, of arguments; what it takes, where that is something else.
pub(super) fn written_out(place: usize, args: &[Expr]) -> Result<Expr, &'static str> {
    let (_, takes, written) = FUNCTIONS[place];
    written(args).ok_or(takes)
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

fn named(args: &[Expr], pattern: &str) -> Option<Expr> {
    let [time] = args else { return None };
    Some(call("to_char", vec![time.clone(), text(pattern)]))
}

fn chosen(args: &[Expr]) -> Option<Expr> {
    let [condition, then, otherwise] = args else { return None };
    Some(case(condition.clone(), then.clone(), Some(otherwise.clone())))
}

fn last_day(args: &[Expr]) -> Option<Expr> {
    let [time] = args else { return None };
    let interval = |value: &str| {
        Expr::Interval(Interval {
            value: Box::new(text(value)),
            leading_field: None,
            leading_precision: None,
            last_field: None,
            fractional_seconds_precision: None,
        })
    };
    let month = call("date_trunc", vec![text("month"), time.clone()]);
    let next = binary(month, BinaryOperator::Plus, interval("1 month"));
    let last = binary(next, BinaryOperator::Minus, interval("1 day"));
    Some(cast(nested(last), DataType::Date))
}

fn of_two(args: &[Expr], operator: BinaryOperator) -> Option<Expr> {
    let [a, b] = args else { return None };
    Some(nested(binary(nested(a.clone()), operator, nested(b.clone()))))
}

fn is_infinite(args: &[Expr]) -> Option<Expr> {
    let [number] = args else { return None };
    let size = call("abs", vec![double(number)]);
    Some(nested(binary(size, BinaryOperator::Eq, double(&text("inf")))))
}

fn double(expr: &Expr) -> Expr {
    cast(expr.clone(), DataType::Double(ExactNumberInfo::None))
}

/// The next even number away from zero.
fn even(args: &[Expr]) -> Option<Expr> {
    let [value] = args else { return None };
    let half = binary(call("abs", vec![double(value)]), BinaryOperator::Divide, number("2"));
    let pairs = binary(call("ceil", vec![half]), BinaryOperator::Multiply, number("2"));
    let sign = call("signum", vec![double(value)]);
    Some(nested(binary(sign, BinaryOperator::Multiply, pairs)))
}

/// The number of the first character.
fn first_character(args: &[Expr]) -> Option<Expr> {
    let [subject] = args else { return None };
    let is_empty = binary(nested(subject.clone()), BinaryOperator::Eq, text(""));
    Some(case(is_empty, number("-1"), Some(call("ascii", vec![subject.clone()]))))
}

/// Parts of a text: between empty texts, its characters. The empty text is one part.
fn split(args: &[Expr]) -> Option<Expr> {
    let [subject, between] = args else { return None };
    let is_empty = |between: &Expr| {
        let Expr::Value(value) = between else { return false };
        value.value.clone().into_string().is_some_and(|text| text.is_empty())
    };
    if is_empty(between) {
        let characters = cast(Expr::value(Value::Null), DataType::Text);
        return Some(call("string_to_array", vec![subject.clone(), characters]));
    }
    let parts = call("string_to_array", vec![subject.clone(), between.clone()]);
    let is_empty = binary(nested(subject.clone()), BinaryOperator::Eq, text(""));
    Some(case(is_empty, call("make_array", vec![text("")]), Some(parts)))
}

/// The ISO year and week in one number.
fn year_and_week(args: &[Expr]) -> Option<Expr> {
    let [time] = args else { return None };
    let part = |part: &str| {
        cast(call("date_part", vec![text(part), time.clone()]), DataType::BigInt(None))
    };
    let years = binary(part("isoyear"), BinaryOperator::Multiply, number("100"));
    let is_before = binary(part("isoyear"), BinaryOperator::Lt, number("0"));
    let less = binary(years.clone(), BinaryOperator::Minus, part("week"));
    let more = binary(years, BinaryOperator::Plus, part("week"));
    Some(case(is_before, less, Some(more)))
}

/// Whether the pattern, which is constant, matches the whole text.
fn full_match(args: &[Expr]) -> Option<Expr> {
    let [subject, Expr::Value(pattern), options @ ..] = args else { return None };
    let pattern = pattern.value.clone().into_string()?;
    let mut whole = vec![subject.clone(), text(&format!(r"\A(?:{pattern})\z"))];
    whole.extend(options.iter().cloned());
    (options.len() < 2).then(|| call("regexp_like", whole))
}

/// A group of the first match, and the empty text where there is none.
fn extracted(args: &[Expr]) -> Option<Expr> {
    let constant = |expr: &Expr| match expr {
        Expr::Value(value) => Some(value.value.clone()),
        _ => None,
    };
    let (subject, pattern, group) = match args {
        [subject, pattern] => (subject, constant(pattern)?.into_string()?, 0),
        [subject, pattern, group] => match constant(group)? {
            Value::Number(digits, _) => {
                (subject, constant(pattern)?.into_string()?, digits.parse::<u8>().ok()?)
            }
            _ => return None,
        },
        _ => return None,
    };
    let groups = call("regexp_match", vec![subject.clone(), text(&format!("({pattern})"))]);
    let place = number(&(u32::from(group) + 1).to_string());
    let found = call("array_element", vec![groups, place]);
    let found = call("coalesce", vec![found, text("")]);
    Some(case(Expr::IsNotNull(Box::new(nested(subject.clone()))), found, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_halves() {
        assert!(FUNCTIONS.is_sorted_by_key(|(name, _, _)| name));
    }
}
