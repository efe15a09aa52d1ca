//! What aggregates over frames reduce: an argument in a type that its reduction takes.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

use super::super::emit::Emitter;
use super::super::generator::Generator;
use super::super::groups::DecimalSum;
use super::super::order::{Direction, KeyWords, NullsPlace, emit_words};
use super::super::row_number::bits_of;
use super::super::value::{Value, both, widen};
use crate::column::{Dictionary, Repr};
use crate::error::Result;
use warpframe_device::Buffer;
use warpframe_device::ops::window::Reduction;

/// What an argument is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To be counted.
    Presence,
    Sum,
    /// The low words of a sum.
    LowWords,
    Extremum,
    Variance,
    Bits,
}

/// What a feed's values are.
pub(crate) enum FeedKind {
    /// Nothing that is looked at.
    Presence,
    /// Summed thus.
    Sum(Reduction),
    /// The low words of decimals whose high words the feed before has (`kernels/decimal.cuh`).
    LowWords,
    /// Floats.
    Real,
    /// Words of bits.
    Bits,
    /// Reduced thus to the least and the greatest, whose value is then found thus.
    Extremum(Reduction, Reduction, ExtremumEncoding),
}

/// From the extremum of a feed back to a value of the argument.
pub(crate) enum ExtremumEncoding {
    /// The number itself: its representation, and what is known of it.
    Number { repr: Repr, range: Option<(i128, i128)>, magnitude: Option<f64> },
    /// It is a code.
    Code(Arc<Dictionary>),
    /// It is a place in the order of values: the positions in that order.
    Place(Buffer),
}

/// A feed's columns before the kernel ran.
pub(crate) enum FeedColumns {
    Values(FeedKind),
    /// High and low words of decimals.
    Split,
    /// A column of which only the validity counts, then words of sort bits, of so many bits.
    Words(Vec<u32>),
}

/// Emits the columns of a feed of so many rows: an argument, null where the filter does not hold.
pub(crate) fn emit_feed(
    purpose: Purpose,
    arg: Option<&Expr>,
    filter: Option<&Expr>,
    rows: u64,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Result<(FeedColumns, Vec<Value>)> {
    let value = arg.map(|arg| generator.expr(arg, out)).transpose()?;
    let filter = filter.map(|filter| generator.expr(filter, out)).transpose()?;
    let known = value.as_ref().and_then(|value| value.valid.clone());
    let valid = both(&known, &filter.map(|filter| filter.truth()), out);
    let presence = Value::new(DataType::Boolean, Repr::Bool, "true", valid.clone());
    let Some(value) = value.filter(|_| purpose != Purpose::Presence) else {
        return Ok((FeedColumns::Values(FeedKind::Presence), vec![presence]));
    };
    let value = Value { valid, ..value };
    let (kind, made) = match purpose {
        Purpose::Variance => (FeedKind::Real, real(&value)),
        Purpose::Bits => {
            (FeedKind::Bits, Value { valid: value.valid.clone(), ..bits_of(&value, out) })
        }
        Purpose::Sum | Purpose::LowWords => return Ok(summed(&value, rows, out)),
        Purpose::Presence | Purpose::Extremum
            if value.dictionary.is_none() && value.repr == Repr::View =>
        {
            let key = [(value, Direction::Ascending, NullsPlace::Last)];
            let KeyWords { words, bits, .. } = emit_words(&key, &mut generator.params, out)?;
            return Ok((FeedColumns::Words(bits), [vec![presence], words].concat()));
        }
        Purpose::Presence | Purpose::Extremum => {
            let (least, greatest, encoding, made) = compared(&value);
            (FeedKind::Extremum(least, greatest, encoding), made)
        }
    };
    Ok((FeedColumns::Values(kind), vec![made]))
}

fn real(value: &Value) -> Value {
    let code = format!("((f64){})", value.code);
    Value::new(DataType::Float64, Repr::F64, code, value.valid.clone())
}

fn word(value: &Value) -> Value {
    let code = format!("((i64){})", value.code);
    Value::new(DataType::Int64, Repr::I64, code, value.valid.clone())
}

fn wide(value: &Value) -> Value {
    let code = widen(value, Repr::I128);
    Value::new(DataType::Decimal128(38, 0), Repr::I128, code, value.valid.clone())
}

/// Whether 64 bits hold all values.
fn is_narrow(value: &Value) -> bool {
    let (low, high) = value.bounds();
    i64::try_from(low).is_ok() && i64::try_from(high).is_ok()
}

/// A value to be summed.
fn summed(value: &Value, rows: u64, out: &mut Emitter) -> (FeedColumns, Vec<Value>) {
    let (low, high) = value.bounds();
    let decimal = matches!(value.dtype, DataType::Decimal128(_, _));
    if decimal && DecimalSum::may_overflow((low, high), rows) {
        let [high, low] = DecimalSum::words_of(value, out);
        let code = format!("((i128){})", low.code);
        let low = Value::new(DataType::Decimal128(38, 0), Repr::I128, code, low.valid);
        return (FeedColumns::Split, vec![high, low]);
    }
    let most = low.unsigned_abs().max(high.unsigned_abs());
    let fits = most.checked_mul(u128::from(rows)).is_some_and(|sum| sum < 1 << 63);
    let (reduction, made) = match value.repr {
        Repr::F32 | Repr::F64 => (Reduction::SumF64, real(value)),
        _ if fits => (Reduction::SumI64, word(value)),
        _ if is_narrow(value) => (Reduction::SumI64Wide, word(value)),
        _ => (Reduction::SumI128, wide(value)),
    };
    (FeedColumns::Values(FeedKind::Sum(reduction)), vec![made])
}

/// A value to be compared: what reduces it to the least and the greatest, and how these are read.
fn compared(value: &Value) -> (Reduction, Reduction, ExtremumEncoding, Value) {
    let number =
        |repr| ExtremumEncoding::Number { repr, range: value.range, magnitude: value.magnitude };
    let as_u64 = |code| Value::new(DataType::UInt64, Repr::U64, code, value.valid.clone());
    match (&value.dictionary, value.repr) {
        (Some(input), _) => {
            let encoding = ExtremumEncoding::Code(input.dictionary.clone());
            let made = as_u64(format!("((u64){})", input.code));
            (Reduction::MinU64, Reduction::MaxU64, encoding, made)
        }
        (None, repr @ (Repr::F32 | Repr::F64)) => {
            (Reduction::MinF64, Reduction::MaxF64, number(repr), real(value))
        }
        (None, repr) if is_narrow(value) => {
            let repr = if repr == Repr::I128 { Repr::I64 } else { repr };
            (Reduction::MinI64, Reduction::MaxI64, number(repr), word(value))
        }
        (None, Repr::U64) => {
            let made = as_u64(value.code.clone());
            (Reduction::MinU64, Reduction::MaxU64, number(Repr::U64), made)
        }
        (None, _) => (Reduction::MinI128, Reduction::MaxI128, number(Repr::I128), wide(value)),
    }
}
