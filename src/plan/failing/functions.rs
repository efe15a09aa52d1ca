//! Which scalar functions can fail.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::ScalarFunction;

use super::{is_literal, literal, to_zero};

/// Functions that have a value for all arguments of their types.
const TOTAL: &str = "acos acosh array_any_match array_filter array_first array_transform arrow_typeof ascii \
    asin asinh atan atan2 atanh bit_length btrim cbrt ceil \
    character_length coalesce concat concat_ws contains cos cosh date_part degrees drawn_once ends_with exp floor get_field \
    greatest in_unit initcap interval_part isnan iszero justified least left ln log10 log2 lower ltrim md5 nanvl now nullif nvl nvl2 \
    octet_length pi radians random replace reverse right rtrim sha224 sha256 sha384 sha512 signum sin sinh \
    starts_with strpos struct tan tanh to_hex translate upper uuid";

/// Whether a function, by its name, has a value for all arguments.
pub(crate) fn is_total(name: &str) -> bool {
    TOTAL.split_whitespace().any(|total| total == name)
}

/// Whether a call can fail where its arguments do not; `of` tells their types.
pub(super) fn function_fails(
    call: &ScalarFunction,
    of: &dyn Fn(&Expr) -> Option<DataType>,
) -> bool {
    let is_float = |expr: &Expr| of(expr).is_some_and(|dtype| dtype.is_floating());
    // Not negative, with the sign of a constant.
    let counts = |expr: &Expr| {
        literal(expr).and_then(|value| to_zero(&value)).is_some_and(|sign| sign.is_ge())
    };
    match (call.name(), call.args.as_slice()) {
        (name, _) if is_total(name) => false,
        ("abs", [x]) if of(x).is_some_and(|dtype| matches!(dtype, DataType::Decimal128(_, _))) => {
            false
        }
        ("abs" | "round" | "trunc", [x]) => !is_float(x),
        ("round" | "trunc", [x, places]) => !(is_float(x) && is_literal(places)),
        ("substr", [_, start]) => !is_literal(start),
        ("substr", [_, start, count]) => !(is_literal(start) && counts(count)),
        ("split_part", [_, _, field]) => {
            !literal(field).and_then(|v| to_zero(&v)).is_some_and(|sign| sign.is_ne())
        }
        ("regexp_like" | "regexp_match", [_, pattern, more @ ..]) => {
            !is_literal(pattern) || !more.iter().all(is_literal)
        }
        ("regexp_replace", [_, pattern, _, more @ ..]) => {
            !is_literal(pattern) || !more.iter().all(is_literal)
        }
        _ => true,
    }
}
