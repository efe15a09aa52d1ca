//! Functions by names that DuckDB has for them, written out as what does the same here. Scalar ones
//! are rows of `codegen/expr/functions`.
//!
//! ```text
//!   first(x), list(x)          first_value(x), array_agg(x)
//!   any_value(x)               first_value(x) IGNORE NULLS
//!   max_by(x, y)               first_value(x ORDER BY y DESC NULLS LAST)
//!                                FILTER (WHERE x IS NOT NULL AND y IS NOT NULL)
//!   date_diff('day', a, b)     CAST(CAST(b AS DATE) AS BIGINT) - CAST(CAST(a AS DATE) AS BIGINT)
//!   approx_count_distinct(x)   CAST(approx_distinct(x) AS BIGINT)
//! ```
//!
//! A function of a user's by such a name is that.

use datafusion::execution::session_state::SessionState;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, NullTreatment, OrderByExpr,
    OrderByOptions, TimezoneInfo,
};

use super::calls::{rename, values, wrong};
use super::ranked::Ranked;
use crate::codegen::{InSql, in_sql};
use crate::error::Result;
use crate::sql::ast::{binary, call, case, cast, folded, number, text};

/// Aggregates that go by another name. Rows of scalar functions have theirs.
const AGGREGATES: [(&str, &str); 8] = [
    ("approx_quantile", "approx_percentile_cont"),
    ("arbitrary", "first_value"),
    ("every", "bool_and"),
    ("first", "first_value"),
    ("grouping_id", "grouping"),
    ("last", "last_value"),
    ("list", "array_agg"),
    ("variance", "var"),
];

/// What a call is written out as.
#[derive(Clone, Copy)]
enum Synonym {
    Name(&'static str),
    /// A scalar function.
    Scalar(InSql),
    AnyValue,
    /// Of the row in which the second argument is least, or greatest.
    By {
        greatest: bool,
    },
    Difference,
    /// How many rows have a condition.
    CountIf,
    /// About how many values differ.
    AboutDistinct,
    /// The name of the database or of the schema in use.
    InUse,
    /// Texts of rows behind one another, with a comma where nothing else is to be between them.
    Joined,
    /// A struct, whose fields have the names of arguments.
    Packed,
    /// A struct with more of them.
    Inserted,
    /// A function of the list of a group's values.
    Ranked(Ranked),
    /// `regr_r2`.
    Determination,
    /// An aggregate of values as floats.
    OfFloats(&'static str),
    /// `exp(avg(ln(x)))`.
    GeometricMean,
}

fn synonym(state: &SessionState, function: &Function) -> Option<Synonym> {
    let [name] = &function.name.0[..] else { return None };
    let name = folded(name.as_ident()?);
    let scalar = in_sql(&name);
    let found = match name.as_str() {
        // The engine has one, which is not on the device and may take any row's.
        "any_value" => return Some(Synonym::AnyValue),
        _ if matches!(scalar, Some(InSql::Written(written)) if written.instead) => {
            return scalar.map(Synonym::Scalar);
        }
        // The engine has others by these names.
        "max" | "min" | "median" | "quantile_cont" | "histogram" => {
            return Ranked::of(&name, function).map(Synonym::Ranked);
        }
        "max_by" | "arg_max" | "argmax" => Synonym::By { greatest: true },
        "min_by" | "arg_min" | "argmin" => Synonym::By { greatest: false },
        "date_diff" | "datediff" => Synonym::Difference,
        "count_if" | "countif" => Synonym::CountIf,
        "regr_r2" => return Some(Synonym::Determination),
        "group_concat" | "listagg" => Synonym::Joined,
        // The engine's wants a separator.
        "string_agg" if arguments(function) == 1 => return Some(Synonym::Joined),
        "approx_count_distinct" => Synonym::AboutDistinct,
        "current_catalog" | "current_database" | "current_schema" => Synonym::InUse,
        "favg" => Synonym::OfFloats("avg"),
        "fsum" | "kahan_sum" | "sumkahan" => Synonym::OfFloats("sum"),
        "geomean" | "geometric_mean" => Synonym::GeometricMean,
        "struct_pack" => Synonym::Packed,
        "struct_insert" => return Some(Synonym::Inserted),
        name => {
            let aggregate = AGGREGATES.iter().find(|(other, _)| *other == name);
            (Ranked::of(name, function).map(Synonym::Ranked))
                .or_else(|| aggregate.map(|(_, name)| Synonym::Name(name)))
                .or_else(|| scalar.map(Synonym::Scalar))?
        }
    };
    let taken = state.scalar_functions().contains_key(&name)
        || state.aggregate_functions().contains_key(&name);
    Some(found).filter(|_| !taken)
}

/// Whether an expression is a call that is written out.
pub(super) fn is_one(state: &SessionState, expr: &Expr) -> bool {
    matches!(expr, Expr::Function(function) if synonym(state, function).is_some())
}

/// Whether what a call is written out as may have an argument twice.
pub(super) fn copies(state: &SessionState, function: &Function) -> bool {
    let copying = |synonym: &Synonym| {
        matches!(
            synonym,
            Synonym::By { .. }
                | Synonym::Difference
                | Synonym::Inserted
                | Synonym::Scalar(InSql::Written(_))
                | Synonym::Ranked(_)
        )
    };
    synonym(state, function).as_ref().is_some_and(copying)
}

/// Writes a call out, if it is such a one.
///
/// # Errors
/// Arguments that it has not.
pub(super) fn write_out(state: &SessionState, expr: &mut Expr) -> Result<()> {
    let Expr::Function(function) = expr else { return Ok(()) };
    if takes_a_value(function) && values(function).is_some_and(|values| values.is_empty()) {
        return Err(wrong(function, "takes a value"));
    }
    match synonym(state, function) {
        None => {}
        Some(Synonym::Name(name) | Synonym::Scalar(InSql::Name(name))) => rename(function, name),
        Some(Synonym::AnyValue) => {
            rename(function, "first_value");
            function.null_treatment.get_or_insert(NullTreatment::IgnoreNulls);
        }
        Some(Synonym::By { greatest }) => by(function, greatest)?,
        Some(Synonym::Scalar(InSql::Written(writing))) => {
            // One with another argument than values takes something else.
            let arguments = values(function).unwrap_or_default();
            let written = (writing.written)(writing.name, &arguments);
            *expr = written.ok_or_else(|| wrong(function, writing.takes))?;
        }
        Some(Synonym::Ranked(ranked)) => *expr = ranked.written_out(function)?,
        Some(Synonym::Determination) => *expr = determination(function),
        Some(Synonym::Packed) => *expr = packed(function)?,
        Some(Synonym::Inserted) => inserted(function)?,
        Some(Synonym::OfFloats(name)) => of_floats(function, name, |float| float)?,
        Some(Synonym::GeometricMean) => {
            of_floats(function, "avg", |float| call("ln", vec![float]))?;
            *expr = call("exp", vec![Expr::Function(function.clone())]);
        }
        Some(Synonym::CountIf) => count_if(function)?,
        Some(Synonym::InUse) => *expr = in_use(state, function)?,
        Some(Synonym::AboutDistinct) => {
            rename(function, "approx_distinct");
            *expr = bigint(Expr::Function(function.clone()));
        }
        Some(Synonym::Joined) => {
            rename(function, "string_agg");
            if let FunctionArguments::List(list) = &mut function.args
                && list.args.len() == 1
            {
                list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(text(","))));
            }
        }
        Some(Synonym::Difference) => *expr = difference(function)?,
    }
    Ok(())
}

/// The name of the schema in use, and of any other such function's database.
fn in_use(state: &SessionState, function: &Function) -> Result<Expr> {
    let names = &state.config_options().catalog;
    match (arguments(function), function.name.to_string().eq_ignore_ascii_case("current_schema")) {
        (0, true) => Ok(text(&names.default_schema)),
        (0, false) => Ok(text(&names.default_catalog)),
        _ => Err(wrong(function, "takes nothing")),
    }
}

/// How many arguments a call has.
fn arguments(function: &Function) -> usize {
    match &function.args {
        FunctionArguments::List(list) => list.args.len(),
        _ => 0,
    }
}

/// Whether a function is a choice of a value, which DataFusion (55.2) looks for where there is none.
fn takes_a_value(function: &Function) -> bool {
    let name = function.name.to_string().to_lowercase();
    ["first_value", "last_value", "nth_value", "first", "last", "any_value"]
        .contains(&name.as_str())
}

/// `regr_r2(y, x)`: a line through points of one height is no guess, as in the SQL standard.
/// DataFusion's (55.2) is null.
fn determination(function: &Function) -> Expr {
    let as_other = |name: &str| {
        let mut other = function.clone();
        rename(&mut other, name);
        Expr::Function(other)
    };
    let is_flat = binary(as_other("regr_syy"), BinaryOperator::Eq, number("0"));
    let is_wide = binary(as_other("regr_sxx"), BinaryOperator::Gt, number("0"));
    let condition = binary(is_wide, BinaryOperator::And, is_flat);
    let one = cast(number("1"), DataType::Double(ExactNumberInfo::None));
    case(condition, one, Some(Expr::Function(function.clone())))
}

/// An aggregate of what is made of each value as a float.
fn of_floats(function: &mut Function, name: &str, made: fn(Expr) -> Expr) -> Result<()> {
    let argument = match &mut function.args {
        FunctionArguments::List(list) => &mut list.args[..],
        _ => &mut [],
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))] = argument else {
        return Err(wrong(function, "takes a number"));
    };
    *value = made(cast(value.clone(), DataType::Double(ExactNumberInfo::None)));
    rename(function, name);
    Ok(())
}

/// A struct of named arguments.
fn packed(function: &Function) -> Result<Expr> {
    let expected = "takes named values: struct_pack(a := 1, b := 2)";
    let FunctionArguments::List(list) = &function.args else {
        return Err(wrong(function, expected));
    };
    match named_values(&list.args) {
        Some(fields) if !fields.is_empty() => Ok(call("named_struct", fields)),
        _ => Err(wrong(function, expected)),
    }
}

/// Names as texts, and the values behind them; `None` where a value has no name.
fn named_values(args: &[FunctionArg]) -> Option<Vec<Expr>> {
    let pair = |arg: &FunctionArg| match arg {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
            Some([text(&folded(name)), value.clone()])
        }
        _ => None,
    };
    Some(args.iter().map(pair).collect::<Option<Vec<_>>>()?.concat())
}

/// A struct and named arguments: the names become arguments.
fn inserted(function: &mut Function) -> Result<()> {
    let expected = "takes a struct and named values: struct_insert(s, a := 1, b := 2)";
    let arguments = match &function.args {
        FunctionArguments::List(list) => &list.args[..],
        _ => &[],
    };
    let more = arguments.get(1..).and_then(named_values).filter(|more| !more.is_empty());
    let (Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(of))), Some(more)) =
        (arguments.first(), more)
    else {
        return Err(wrong(function, expected));
    };
    let Expr::Function(written) = call("struct_insert", [vec![of.clone()], more].concat()) else {
        return Err(wrong(function, expected));
    };
    function.args = written.args;
    Ok(())
}

/// `count(*) FILTER (WHERE …)`.
fn count_if(function: &mut Function) -> Result<()> {
    let Some([condition]) = values(function).and_then(|values| <[Expr; 1]>::try_from(values).ok())
    else {
        return Err(wrong(function, "takes a condition"));
    };
    let condition = Expr::Nested(Box::new(condition));
    let filter = match function.filter.take() {
        Some(own) => binary(Expr::Nested(own), BinaryOperator::And, condition),
        None => condition,
    };
    rename(function, "count");
    function.filter = Some(Box::new(filter));
    function.args = FunctionArguments::List(FunctionArgumentList {
        duplicate_treatment: None,
        args: vec![FunctionArg::Unnamed(FunctionArgExpr::Wildcard)],
        clauses: vec![],
    });
    Ok(())
}

/// The value in the row of the greatest or least key, of those rows in which both are.
fn by(function: &mut Function, greatest: bool) -> Result<()> {
    let Some([value, key]) = values(function).and_then(|values| <[Expr; 2]>::try_from(values).ok())
    else {
        return Err(wrong(function, "takes a value and what it is chosen by"));
    };
    if function.over.is_some() || function.null_treatment.is_some() {
        return Err(wrong(function, "is an aggregate, without OVER and IGNORE NULLS"));
    }
    let is_there = |expr: &Expr| Expr::IsNotNull(Box::new(Expr::Nested(Box::new(expr.clone()))));
    let mut filter = binary(is_there(&value), BinaryOperator::And, is_there(&key));
    if let Some(own) = function.filter.take() {
        filter = binary(Expr::Nested(own), BinaryOperator::And, filter);
    }
    let order = OrderByExpr {
        expr: key,
        options: OrderByOptions { asc: Some(!greatest), nulls_first: Some(false) },
        with_fill: None,
    };
    rename(function, "first_value");
    function.filter = Some(Box::new(filter));
    function.args = FunctionArguments::List(FunctionArgumentList {
        duplicate_treatment: None,
        args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(value))],
        clauses: vec![FunctionArgumentClause::OrderBy(vec![order])],
    });
    Ok(())
}

/// How many boundaries of a unit are between two times; weeks are seven days.
fn difference(function: &Function) -> Result<Expr> {
    let expected = "takes a unit ('year', 'quarter', 'month', 'week', 'day', 'hour', 'minute', \
                    'second', 'millisecond' or 'microsecond') and two times";
    let values = values(function).and_then(|values| <[Expr; 3]>::try_from(values).ok());
    let Some([unit, from, to]) = values else { return Err(wrong(function, expected)) };
    let unit = match &unit {
        Expr::Value(value) => value.value.clone().into_string(),
        _ => None,
    };
    let unit = unit.unwrap_or_default().to_lowercase();
    let of = |of: &dyn Fn(&Expr) -> Expr| {
        Expr::Nested(Box::new(binary(of(&to), BinaryOperator::Minus, of(&from))))
    };
    let part = |part: &str, time: &Expr| call("date_part", vec![text(part), time.clone()]);
    // Units of a year that there were up to a time.
    let in_year = |unit: &str, times: &str, time: &Expr| {
        let years = binary(part("year", time), BinaryOperator::Multiply, number(times));
        Expr::Nested(Box::new(binary(years, BinaryOperator::Plus, part(unit, time))))
    };
    let days = |time: &Expr| bigint(cast(time.clone(), DataType::Date));
    let ticks = |unit: &str, time: &Expr| {
        let begun = call("date_trunc", vec![text(unit), time.clone()]);
        bigint(cast(begun, DataType::Timestamp(Some(6), TimezoneInfo::None)))
    };
    let shared = |unit: &str, length: &str| {
        binary(of(&|time| ticks(unit, time)), BinaryOperator::Divide, number(length))
    };
    let found = match unit.as_str() {
        "year" | "years" | "y" => bigint(of(&|time| part("year", time))),
        "quarter" | "quarters" => bigint(of(&|time| in_year("quarter", "4", time))),
        "month" | "months" | "mon" => bigint(of(&|time| in_year("month", "12", time))),
        "week" | "weeks" | "w" => binary(of(&days), BinaryOperator::Divide, number("7")),
        "day" | "days" | "d" => of(&days),
        "hour" | "hours" | "h" => shared("hour", "3600000000"),
        "minute" | "minutes" | "min" | "m" => shared("minute", "60000000"),
        "second" | "seconds" | "sec" | "s" => shared("second", "1000000"),
        "millisecond" | "milliseconds" | "ms" => shared("millisecond", "1000"),
        "microsecond" | "microseconds" | "us" => of(&|time| ticks("microsecond", time)),
        _ => return Err(wrong(function, expected)),
    };
    Ok(Expr::Nested(Box::new(found)))
}

fn bigint(expr: Expr) -> Expr {
    cast(expr, DataType::BigInt(None))
}
