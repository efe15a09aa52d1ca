//! Functions of numbers.

use std::f64::consts::PI;

use datafusion::arrow::array::{Array, AsArray, Int64Array};
use datafusion::arrow::compute::binary as binary_of;
use datafusion::arrow::datatypes::{Float64Type, Int64Type};
use datafusion::common::{Result as Computed, exec_err, internal_err};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as TreeType, ExactNumberInfo, Expr as Tree,
};

use super::*;
use crate::codegen::device_function::KernelHeader;
use crate::host::bits;
use crate::host::calls::HostCall;
use crate::host::rounding::{ceil, floor};
use crate::host::shorthand::{is_finite, middles, whole_part};
use crate::sql::ast::{binary, call, cast, nested, number, text};

pub(super) const FAMILY: &[Function] = &[
    row("abs").one(|c, x, dtype| c.absolute(x, dtype)).fails(|args, of| {
        let of = args.first().and_then(of);
        !of.is_some_and(|of| of.is_floating() || matches!(of, DataType::Decimal128(_, _)))
    }),
    row("round").several(1..=2, |c, call| c.rounded(call.args, call.dtype)).fails(rounding_fails),
    row("floor").on_host(floor).one(|c, x, dtype| c.whole("floor", x, dtype)).total(),
    row("ceil")
        .also(&["ceiling"])
        .on_host(ceil)
        .one(|c, x, dtype| c.whole("ceil", x, dtype))
        .total(),
    row("trunc").several(1..=2, |c, call| c.truncated(call.args, call.dtype)).fails(rounding_fails),
    row("whole_part").typed("takes a number", whole_part),
    row("signum").also(&["sign"]).one(|c, x, dtype| c.signum(x, dtype)).total(),
    row("even").written("takes a number", |_, args| even(args)),
    row("mod").written("takes two numbers", |_, args| of_two(args, BinaryOperator::Modulo)),
    row("add").written("takes two numbers", |_, args| of_two(args, BinaryOperator::Plus)),
    row("subtract").written("takes two numbers", |_, args| of_two(args, BinaryOperator::Minus)),
    row("multiply").written("takes two numbers", |_, args| of_two(args, BinaryOperator::Multiply)),
    row("divide")
        .written("takes two numbers", |_, args| of_two(args, BinaryOperator::DuckIntegerDivide)),
    row("fdiv").written("takes two numbers", |_, args| floored(args)),
    row("fmod").written("takes two numbers", |_, args| behind_floored(args)),
    row("xor").written("takes two integers", |_, args| of_two(args, BinaryOperator::BitwiseXor)),
    row("bit_count").on_host(bits::bit_count).one(|c, x, dtype| c.bit_count(x, dtype)).total(),
    // What `~i` is written out as.
    row("bitwise_not").typed("takes an integer", bits::turned),
    row("sqrt").one(|c, x, dtype| c.float_function("sqrt", x, dtype)),
    row("cbrt").one(|c, x, dtype| c.float_function("cbrt", x, dtype)).total(),
    row("exp").one(|c, x, dtype| c.float_function("exp", x, dtype)).total(),
    row("ln").one(|c, x, dtype| c.float_function("log", x, dtype)).total(),
    row("log2").one(|c, x, dtype| c.float_function("log2", x, dtype)).total(),
    row("log10").one(|c, x, dtype| c.float_function("log10", x, dtype)).total(),
    row("log").several(1..=2, |c, call| match call.args {
        [base, x] => c.logarithm(Some(base), x, call.dtype),
        args => c.logarithm(None, &args[0], call.dtype),
    }),
    row("power").two(|c, x, y, dtype| c.power(x, y, dtype)),
    row("sin").one(|c, x, dtype| c.float_function("sin", x, dtype)).total(),
    row("cos").one(|c, x, dtype| c.float_function("cos", x, dtype)).total(),
    row("tan").one(|c, x, dtype| c.float_function("tan", x, dtype)).total(),
    row("cot").one(|c, x, dtype| c.cotangent(x, dtype)),
    row("asin").one(|c, x, dtype| c.float_function("asin", x, dtype)).total(),
    row("acos").one(|c, x, dtype| c.float_function("acos", x, dtype)).total(),
    row("atan").one(|c, x, dtype| c.float_function("atan", x, dtype)).total(),
    row("atan2").two(|c, y, x, dtype| c.float_function_of_two("atan2", y, x, dtype)).total(),
    row("sinh").one(|c, x, dtype| c.float_function("sinh", x, dtype)).total(),
    row("cosh").one(|c, x, dtype| c.float_function("cosh", x, dtype)).total(),
    row("tanh").one(|c, x, dtype| c.float_function("tanh", x, dtype)).total(),
    row("asinh").one(|c, x, dtype| c.float_function("asinh", x, dtype)).total(),
    row("acosh").one(|c, x, dtype| c.float_function("acosh", x, dtype)).total(),
    row("atanh").one(|c, x, dtype| c.float_function("atanh", x, dtype)).total(),
    row("radians").one(|c, x, dtype| c.float_scaled(x, PI / 180.0, dtype)).total(),
    row("degrees").one(|c, x, dtype| c.float_scaled(x, 180.0 / PI, dtype)).total(),
    row("pi").total(),
    row("isnan").one(|c, x, _| c.float_test(x, "x != x")).total(),
    row("iszero").one(|c, x, _| c.float_test(x, "x == 0")).total(),
    row("isfinite").typed("takes a number, a date or a timestamp", is_finite),
    row("isinf").written("takes a number", |_, args| is_infinite(args)),
    row("nanvl").two(|c, x, y, dtype| c.unless_nan(x, y, dtype)).total(),
    row("gcd").two(|c, a, b, dtype| c.common_divisor("gcd", a, b, dtype)),
    row("lcm").two(|c, a, b, dtype| c.common_divisor("lcm", a, b, dtype)),
    row("factorial").one(|c, n, dtype| c.factorial(n, dtype)),
    row("width_bucket")
        .computed(
            &[DataType::Float64, DataType::Float64, DataType::Float64, DataType::Int64],
            &DataType::Int64,
            width_bucket,
        )
        .several(4..=4, emit_width_bucket),
    row("nextafter")
        .computed(&[DataType::Float64, DataType::Float64], &DataType::Float64, next_after)
        .two(|c, x, y, dtype| c.float_function_of_two("nextafter", x, y, dtype))
        .total(),
    // What `host/arrow_forms.rs` puts into plans that mean what they mean to Arrow.
    row("arrow_sorted").one(|c, x, dtype| c.total_order(x, dtype, false)).total(),
    row("arrow_compared").one(|c, x, dtype| c.total_order(x, dtype, true)).total(),
    row("arrow_back").one(|c, x, dtype| c.of_total_order(x, dtype)).total(),
    row("arrow_digits").one(|c, x, dtype| c.digits(x, dtype)).total(),
    row("arrow_rounded").one(|c, x, dtype| c.float_function("round", x, dtype)).total(),
    row("arrow_point").two(|c, x, _, dtype| c.digits(x, dtype)).total(),
    row("median_argument").typed(middles::TAKES, middles::argument),
    row("median_of").typed(middles::TAKES, middles::of_type),
];

#[cfg(test)]
pub(super) const PAGE: &[Line] = &[
    yes(
        "`abs`, `round`, `floor`, `ceil`, `trunc`, `signum`; `floor` and `ceil` of a decimal(p, \
            s) are a decimal(p, 0)",
        "`SELECT abs(i), round(x), round(m, 1), floor(x), ceil(m), trunc(x), trunc(m, 1), \
            signum(x) FROM t`",
        "a computed number of places",
    ),
    yes(
        "`sqrt`, `cbrt`, `exp`, `ln`, `log2`, `log10`, `log`, `power`",
        "`SELECT sqrt(abs(x)), cbrt(x), exp(y), ln(y), log2(y), log10(y), log(x, y), power(x, y) \
            FROM t`",
        "`log` of decimals",
    ),
    yes(
        "`sin`, `cos`, `tan`, `cot`, `asin`, `acos`, `atan`, `atan2`, `sinh`, `cosh`, `tanh`, \
            `asinh`, `acosh`, `atanh`, `radians`, `degrees`",
        "`SELECT sin(x), cot(x), atan2(x, y), tanh(x), asinh(x), radians(x), pi() FROM t`",
        "",
    ),
    yes("`bit_count`, `~`", "`SELECT bit_count(i), ~i FROM t`", ""),
    yes("`isnan`, `iszero`, `nanvl`", "`SELECT isnan(x), iszero(x), nanvl(x, y) FROM t`", ""),
    yes(
        "`gcd`, `lcm`, `factorial`",
        "`SELECT gcd(i, j), lcm(i, j), factorial(i) FROM t`",
        "decimals",
    ),
    yes(
        "`width_bucket(x, low, high, count)`",
        "`SELECT width_bucket(x, -10, 10, 8) AS bucket, count(*) FROM t WHERE x = x GROUP BY \
            bucket`",
        "a histogram: 0 is before the first bucket, `count + 1` behind the last",
    ),
    yes(
        "`nextafter(x, y)`",
        "`SELECT nextafter(x, y) FROM t`",
        "the nearest `DOUBLE` to x on the side of y",
    ),
    yes(
        "`mod`, `add`, `subtract`, `multiply`, `divide`, `fdiv`, `fmod`, `isinf`, `isfinite`, \
            `date_add`, `regexp_full_match` with a constant pattern",
        "`SELECT mod(i, 3), add(i, j), fdiv(x, y), fmod(x, y), isinf(x), isfinite(d), \
            date_add(d, INTERVAL '1 month'), regexp_full_match(s, '[a-z]+', 'i') FROM t`",
        "",
    ),
];

/// Of a float and a constant number of places there is always a value.
fn rounding_fails(args: &[Expr], of: TypeOf<'_>) -> bool {
    let [x, places @ ..] = args else { return true };
    !(of(x).is_some_and(|of| of.is_floating()) && places.iter().all(is_constant))
}

pub(super) fn of_two(args: &[Tree], operator: BinaryOperator) -> Option<Tree> {
    let [a, b] = args else { return None };
    Some(nested(binary(nested(a.clone()), operator, nested(b.clone()))))
}

/// The quotient, cut down to a whole number.
fn floored(args: &[Tree]) -> Option<Tree> {
    let [a, b] = args else { return None };
    let quotient = binary(double(a), BinaryOperator::Divide, double(b));
    Some(call("floor", vec![quotient]))
}

/// What that leaves.
fn behind_floored(args: &[Tree]) -> Option<Tree> {
    let [a, b] = args else { return None };
    let whole = binary(floored(args)?, BinaryOperator::Multiply, double(b));
    Some(nested(binary(double(a), BinaryOperator::Minus, whole)))
}

fn is_infinite(args: &[Tree]) -> Option<Tree> {
    let [number] = args else { return None };
    let size = call("abs", vec![double(number)]);
    Some(nested(binary(size, BinaryOperator::Eq, double(&text("inf")))))
}

fn double(expr: &Tree) -> Tree {
    cast(expr.clone(), TreeType::Double(ExactNumberInfo::None))
}

/// The next even number away from zero.
fn even(args: &[Tree]) -> Option<Tree> {
    let [value] = args else { return None };
    let half = binary(call("abs", vec![double(value)]), BinaryOperator::Divide, number("2"));
    let pairs = binary(call("ceil", vec![half]), BinaryOperator::Multiply, number("2"));
    let sign = call("signum", vec![double(value)]);
    Some(nested(binary(sign, BinaryOperator::Multiply, pairs)))
}

/// `nextafter(x, y)` of C: the float beside `x` on the way to `y`.
fn next_after(call: &HostCall) -> Computed<ArrayRef> {
    let [x, y] = [0, 1].map(|at| call.arrays[at].as_primitive::<Float64Type>());
    let next = |x: f64, y: f64| match x.partial_cmp(&y) {
        None => f64::NAN,
        Some(Ordering::Less) => x.next_up(),
        Some(Ordering::Greater) => x.next_down(),
        Some(Ordering::Equal) => y,
    };
    Ok(Arc::new(binary_of::<_, _, _, Float64Type>(x, y, next)?))
}

/// `width_bucket(x, low, high, count)` of standard SQL: which bucket a value falls into, where
/// `count` buckets of equal width lie between two bounds. 0 is before the first bucket, `count + 1`
/// behind the last. Bounds may descend. `kernels/math.cuh` has it for the device.
fn width_bucket(call: &HostCall) -> Computed<ArrayRef> {
    let [values, lows, highs, counts] = call.arrays.as_slice() else {
        return internal_err!("width_bucket of {} arguments", call.arrays.len());
    };
    let float = |array: &Arc<dyn Array>, row| array.as_primitive::<Float64Type>().value(row);
    let bucket = |row: usize| -> Computed<Option<i64>> {
        if call.arrays.iter().any(|array| array.is_null(row)) {
            return Ok(None);
        }
        let (low, high) = (float(lows, row), float(highs, row));
        let count = counts.as_primitive::<Int64Type>().value(row);
        if count < 1 || count == i64::MAX || low == high || !low.is_finite() || !high.is_finite() {
            return exec_err!(
                "width_bucket: {count} buckets between {low} and {high}, where there is to be \
                 one at least, between two finite bounds that differ"
            );
        }
        match float(values, row) {
            value if value.is_nan() => exec_err!("width_bucket of NaN"),
            value => Ok(Some(bucket_of(value, low, high, count))),
        }
    };
    Ok(Arc::new((0..call.rows).map(bucket).collect::<Computed<Int64Array>>()?))
}

fn bucket_of(value: f64, low: f64, high: f64, count: i64) -> i64 {
    let (before, behind) =
        if low < high { (value < low, value >= high) } else { (value > low, value <= high) };
    if before {
        0
    } else if behind {
        count + 1
    } else {
        // Rounding may lead to the upper bound.
        (((value - low) / (high - low) * count as f64) as i64).min(count - 1) + 1
    }
}

fn emit_width_bucket(c: &mut Compiler<'_>, call: &FunctionCall<'_>) -> Result<Value> {
    let [value, low, high, count] = call.args else { return Err(call.refused()) };
    let most = as_literal(count).and_then(literal::integer).map(|count| count + 1);
    let values = [c.value(value)?, c.value(low)?, c.value(high)?, c.value(count)?];
    let mut valid = None;
    for value in &values {
        valid = both(&valid, &value.valid, c.out);
    }
    let [value, low, high, count] = values.map(|value| value.code);
    let (is_finite, more) = (|bound: &str| format!("{bound} - {bound} == 0"), i64::MAX);
    let bounds = format!("{} && {} && {low} != {high}", is_finite(&low), is_finite(&high));
    let outside = format!("!({value} == {value} && {bounds} && {count} > 0 && {count} < {more}ll)");
    c.fail_if(&valid, &outside, Failure::Domain);
    c.out.needs(KernelHeader::Math);
    let rvalue = format!("math_width_bucket({value}, {low}, {high}, {count})");
    let result = c.result(call.dtype.clone(), Repr::I64, rvalue, valid);
    Ok(result.with_range(Some((0, most.unwrap_or(i64::MAX.into())))))
}
