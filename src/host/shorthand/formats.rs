//! `printf` and `format`: texts with values in them.
//!
//! ```text
//!   printf('%5d|%-5s|%.2f', i, s, x)     format('{:5d}|{:<5}|{:.2f}', i, s, x)
//! ```
//!
//! A value is an integer, a string, a boolean, a date or a float. Floats are written on the host,
//! by `text_of_float`, as C does: to the nearest of so many digits, and of halves the even one.

use datafusion::arrow::array::{Array, AsArray, StringArray};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::functions::expr_fn::{character_length, left, lpad, rpad, starts_with, substring};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, cast, lit, when,
};
use std::sync::Arc;

use super::constant_text;
use crate::host::calls::HostCall;
use crate::sql::type_name;

/// How a value is written.
#[derive(Debug, Clone, Default, PartialEq)]
struct Spec {
    /// As the user wrote it.
    text: String,
    left: Option<bool>,
    zeros: bool,
    width: i64,
    precision: Option<i64>,
    kind: Option<char>,
}

#[derive(Debug, PartialEq)]
enum FormatPiece {
    Text(String),
    Value(usize, Spec),
}

pub(crate) fn printf(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    let Some(pattern) = args.first().and_then(constant_text) else { return Ok(None) };
    written("printf", percents(pattern)?, &args[1..], &types[1..])
}

pub(crate) fn format(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    let Some(pattern) = args.first().and_then(constant_text) else { return Ok(None) };
    written("format", braces(pattern)?, &args[1..], &types[1..])
}

fn text(pieces: &mut Vec<FormatPiece>, c: char) {
    match pieces.last_mut() {
        Some(FormatPiece::Text(text)) => text.push(c),
        _ => pieces.push(FormatPiece::Text(c.into())),
    }
}

/// `[0][width][.precision][kind]`, behind the flags that a function has of its own.
fn spec(function: &str, whole: &str, rest: &str, left: Option<bool>) -> Result<Spec> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let unknown = || plan_err!("{function}: {whole} is not known");
    let zeros = rest.starts_with('0');
    let (width, rest) = rest.split_at(digits(rest));
    let (precision, rest) = match rest.strip_prefix('.') {
        Some(rest) => {
            let (precision, rest) = rest.split_at(digits(rest));
            (Some(precision.parse().unwrap_or(0)), rest)
        }
        None => (None, rest),
    };
    let mut rest = rest.chars();
    let (kind, None) = (rest.next(), rest.next()) else { return unknown() };
    if kind.is_some_and(|kind| !"dsf".contains(kind))
        || precision.is_some_and(|digits| digits > 300)
    {
        return unknown();
    }
    let width = match width {
        "" => 0,
        width => match width.parse() {
            Ok(width @ 0..=10_000) => width,
            _ => return unknown(),
        },
    };
    Ok(Spec { text: whole.into(), left, zeros, width, precision, kind })
}

fn percents(pattern: &str) -> Result<Vec<FormatPiece>> {
    let (mut pieces, mut rest, mut number) = (vec![], pattern, 0);
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c != '%' {
            text(&mut pieces, c);
        } else if let Some(behind) = rest.strip_prefix('%') {
            text(&mut pieces, '%');
            rest = behind;
        } else {
            let Some(kind) = rest.find(|c: char| c.is_ascii_alphabetic()) else {
                return plan_err!("printf: %{rest} is not known");
            };
            let (inner, behind) = rest.split_at(kind + 1);
            let whole = format!("%{inner}");
            let inner = inner.replace('i', "d");
            let left = inner.starts_with('-');
            let spec =
                spec("printf", &whole, inner.strip_prefix('-').unwrap_or(&inner), Some(left))?;
            pieces.push(FormatPiece::Value(number, spec));
            number += 1;
            rest = behind;
        }
    }
    Ok(pieces)
}

fn braces(pattern: &str) -> Result<Vec<FormatPiece>> {
    let (mut pieces, mut rest, mut number) = (vec![], pattern, 0);
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '{' | '}' if rest.starts_with(c) => {
                text(&mut pieces, c);
                rest = &rest[1..];
            }
            '{' => {
                let Some((inner, behind)) = rest.split_once('}') else {
                    return plan_err!("format: {{{rest} has no }}");
                };
                let whole = format!("{{{inner}}}");
                let (place, inner) = inner.split_once(':').unwrap_or((inner, ""));
                let place = match place {
                    "" => {
                        number += 1;
                        number - 1
                    }
                    place => match place.parse() {
                        Ok(place) => place,
                        Err(_) => return plan_err!("format: {whole} is not known"),
                    },
                };
                let left = match inner.chars().next() {
                    Some('<') => Some(true),
                    Some('>') => Some(false),
                    _ => None,
                };
                let inner = if left.is_some() { &inner[1..] } else { inner };
                pieces.push(FormatPiece::Value(place, spec("format", &whole, inner, left)?));
                rest = behind;
            }
            '}' => return plan_err!("format: a }} in the text is written }}}}"),
            c => text(&mut pieces, c),
        }
    }
    Ok(pieces)
}

fn joined(left: Expr, right: Expr) -> Expr {
    let op = Operator::StringConcat;
    Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) })
}

fn written(
    function: &str,
    pieces: Vec<FormatPiece>,
    values: &[Expr],
    types: &[DataType],
) -> Result<Option<Expr>> {
    let mut texts = vec![];
    for piece in pieces {
        texts.push(match piece {
            FormatPiece::Text(text) => lit(text),
            FormatPiece::Value(place, spec) => match (values.get(place), types.get(place)) {
                (Some(value), Some(dtype)) => one(function, &spec, value, dtype)?,
                _ => return plan_err!("{function}: there is no value for {}", spec.text),
            },
        });
    }
    Ok(Some(texts.into_iter().reduce(joined).unwrap_or_else(|| lit(""))))
}

/// A value as a text.
fn one(function: &str, spec: &Spec, value: &Expr, dtype: &DataType) -> Result<Expr> {
    let is_printf = function == "printf";
    let unknown = || plan_err!("{function}: {} of a {} is not known", spec.text, type_name(dtype));
    let mut text = match (dtype, spec.kind, spec.precision) {
        (DataType::Null, ..) => return Ok(cast(value.clone(), DataType::Utf8)),
        (integer, kind, None) if integer.is_integer() && kind != Some('s') && kind != Some('f') => {
            cast(value.clone(), DataType::Utf8)
        }
        (number, kind, precision)
            if (number.is_floating() || number.is_decimal())
                && !spec.zeros
                && (kind == Some('f') || kind.is_none() && precision.is_none()) =>
        {
            let digits = match kind {
                Some(_) => precision.unwrap_or(6),
                None => -1,
            };
            let float = cast(value.clone(), DataType::Float64);
            ScalarUDF::from(TextOfFloat::default()).call(vec![float, lit(digits)])
        }
        (string, None | Some('s'), precision) if string.is_string() && !spec.zeros => {
            let text = cast(value.clone(), DataType::Utf8);
            precision.map_or(text.clone(), |characters| left(text, lit(characters)))
        }
        (DataType::Boolean | DataType::Date32, None | Some('s'), None) if !spec.zeros => {
            cast(value.clone(), DataType::Utf8)
        }
        _ => return unknown(),
    };
    if spec.width > 0 {
        let is_left = spec.left.unwrap_or(!dtype.is_numeric() && !is_printf);
        let width = lit(spec.width);
        let padded = match (spec.zeros, is_left) {
            (true, false) => {
                let digits = substring(text.clone(), lit(2i64), lit(spec.width));
                let digits = lpad(vec![digits, lit(spec.width - 1), lit("0")]);
                when(starts_with(text.clone(), lit("-")), joined(lit("-"), digits))
                    .otherwise(lpad(vec![text.clone(), width, lit("0")]))?
            }
            (true, true) => return unknown(),
            (false, true) => rpad(vec![text.clone(), width, lit(" ")]),
            (false, false) => lpad(vec![text.clone(), width, lit(" ")]),
        };
        let length = cast(character_length(text.clone()), DataType::Int64);
        text = when(length.lt(lit(spec.width)), padded).otherwise(text)?;
    }
    Ok(text)
}

/// What computes the digits of floats.
pub(crate) fn text_of_float() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(TextOfFloat::default()))
}

/// `text_of_float(x, digits)`: so many digits behind the point. Of −1 as many as tell the number.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TextOfFloat {
    signature: Signature,
}

impl Default for TextOfFloat {
    fn default() -> TextOfFloat {
        let types = vec![DataType::Float64, DataType::Int64];
        TextOfFloat { signature: Signature::exact(types, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for TextOfFloat {
    fn name(&self) -> &str {
        "text_of_float"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let call = HostCall::of(&args)?;
        let [values, digits] = call.arrays.as_slice() else {
            return internal_err!("text_of_float of {} arguments", call.arrays.len());
        };
        let (values, digits) =
            (values.as_primitive::<Float64Type>(), digits.as_primitive::<Int64Type>());
        let text = |row: usize| {
            let there = values.is_valid(row) && digits.is_valid(row);
            there.then(|| text_of(values.value(row), digits.value(row)))
        };
        let found = StringArray::from_iter((0..call.rows).map(text));
        call.yields(Arc::new(found))
    }
}

fn text_of(value: f64, digits: i64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.into();
    }
    if let Ok(digits) = usize::try_from(digits) {
        return format!("{value:.digits$}");
    }
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent @ -4..16) => {
            let text = format!("{value}");
            let is_whole = exponent >= 0 && !text.contains('.');
            if is_whole { format!("{text}.0") } else { text }
        }
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.abs())
        }
        Err(_) => scientific,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What DuckDB makes of them.
    #[test]
    fn floats_are_written_as_c_does() {
        for (value, digits, expected) in [
            (2.675, 2, "2.67"),
            (0.25, 1, "0.2"),
            (2.5, 0, "2"),
            (-0.0005, 3, "-0.001"),
            (1e15, 2, "1000000000000000.00"),
            (1.5, -1, "1.5"),
            (1e10, -1, "10000000000.0"),
            (3.0, -1, "3.0"),
            (1e20, -1, "1e+20"),
            (1e-7, -1, "1e-07"),
            (1e16, -1, "1e+16"),
            (0.0, -1, "0.0"),
            (123_456_789.125, -1, "123456789.125"),
            (f64::NAN, -1, "nan"),
            (f64::NEG_INFINITY, 2, "-inf"),
        ] {
            assert_eq!(text_of(value, digits), expected, "{value}");
        }
    }

    #[test]
    fn patterns_are_texts_and_values() {
        let of = |place, text: &str, left, zeros, width, precision, kind| {
            FormatPiece::Value(
                place,
                Spec { text: text.into(), left, zeros, width, precision, kind },
            )
        };
        let found = percents("a%%%-5d%.2f").expect("it is known");
        let text = |text: &str| FormatPiece::Text(text.into());
        let left = of(0, "%-5d", Some(true), false, 5, None, Some('d'));
        assert_eq!(
            found,
            [text("a%"), left, of(1, "%.2f", Some(false), false, 0, Some(2), Some('f'))]
        );
        let found = braces("{{{1:<3}{}").expect("it is known");
        let first = of(1, "{1:<3}", Some(true), false, 3, None, None);
        assert_eq!(found, [text("{"), first, of(0, "{}", None, false, 0, None, None)]);
        for pattern in ["%x", "%+d", "%", "%5"] {
            assert!(percents(pattern).is_err(), "{pattern}");
        }
        for pattern in ["{:^5}", "{", "}", "{a}", "{:,}"] {
            assert!(braces(pattern).is_err(), "{pattern}");
        }
    }
}
