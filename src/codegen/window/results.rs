//! The aggregates of a row's frame, put together from reductions, and those of its partition where
//! that is a group.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

use super::super::aggregate::Partial;
use super::super::emit::Emitter;
use super::super::generator::Generator;
use super::super::groups::{DecimalSum, GroupKeyStorage};
use super::super::keys::dictionary_value;
use super::super::regroup::ColumnOf;
use super::super::row_number::as_type;
use super::super::span::Span;
use super::super::value::Value;
use super::arguments::ExtremumEncoding;
use super::places::{FrameEdge, RowPlaces};
use crate::codegen::device_function::FDIV;
use crate::column::Repr;
use crate::error::{Error, Result};
use warpframe_device::Buffer;
use warpframe_device::ops::window::{Fold, Reduction};

/// Where the reduction of a frame is among the results of one for all rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameStrategy {
    /// The running reduction at the frame's end.
    AtEnd,
    /// The difference of running sums at the frame's ends.
    Difference,
    /// The running reduction from the partition's end, at the frame's start.
    AtStart,
    /// Of each frame by itself.
    OfFrame,
}

/// A reduction, and its results for all rows.
pub(crate) struct FrameReduction<'a> {
    pub(crate) fold: Fold,
    pub(crate) way: FrameStrategy,
    pub(crate) results: &'a Buffer,
}

impl RowPlaces<'_> {
    /// A reduction over the row's frame; 0 where that is empty.
    pub(crate) fn reduced(
        &mut self,
        FrameReduction { fold, way, results }: FrameReduction<'_>,
        edges: [FrameEdge; 2],
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Value {
        let (repr, dtype) = result_type(fold);
        let ctype = repr.device_type();
        let results = generator.params.borrowed(repr.const_device_type(), results);
        let Span { begin: low, end: high } = self.frame(edges, generator, out);
        let begin = &self.partition.begin;
        let code = match way {
            FrameStrategy::AtEnd => format!("{results}[{high} - 1]"),
            FrameStrategy::AtStart => format!("{results}[{low}]"),
            FrameStrategy::OfFrame => format!("{results}[row]"),
            FrameStrategy::Difference if fold == Fold::Reduce(Reduction::XorU64) => {
                format!("({results}[{high} - 1] ^ ({low} > {begin} ? {results}[{low} - 1] : 0ull))")
            }
            FrameStrategy::Difference => {
                format!(
                    "wrap_sub<{ctype}>({results}[{high} - 1], {low} > {begin} ? {results}[{low} - 1] : ({ctype})0)"
                )
            }
        };
        let code = match edges {
            [FrameEdge::Unbounded, FrameEdge::Unbounded] => out.let_(ctype, code),
            _ => out.let_(ctype, format_args!("{low} < {high} ? {code} : ({ctype})0")),
        };
        Value::new(dtype, repr, code, None)
    }

    /// How many rows the frame has (`i64`). `holds_row`: it is never empty.
    pub(crate) fn count(
        &mut self,
        edges: [FrameEdge; 2],
        holds_row: bool,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> Value {
        let Span { begin: low, end: high } = self.frame(edges, generator, out);
        let length = format!("(i64)({high} - {low})");
        let count = match holds_row {
            true => out.let_("i64", length),
            false => out.let_("i64", format_args!("{low} < {high} ? {length} : 0")),
        };
        Value::new(DataType::Int64, Repr::I64, count, None)
    }
}

/// The type of a reduction's results.
fn result_type(fold: Fold) -> (Repr, DataType) {
    match fold {
        Fold::Deviations
        | Fold::Products
        | Fold::Reduce(Reduction::SumF64 | Reduction::MinF64 | Reduction::MaxF64) => {
            (Repr::F64, DataType::Float64)
        }
        Fold::Reduce(
            Reduction::MinU64
            | Reduction::MaxU64
            | Reduction::AndU64
            | Reduction::OrU64
            | Reduction::XorU64,
        ) => (Repr::U64, DataType::UInt64),
        Fold::Reduce(
            Reduction::SumI64 | Reduction::MinI64 | Reduction::MaxI64 | Reduction::Count,
        ) => (Repr::I64, DataType::Int64),
        Fold::Reduce(
            Reduction::SumI64Wide | Reduction::SumI128 | Reduction::MinI128 | Reduction::MaxI128,
        ) => (Repr::I128, DataType::Decimal128(38, 0)),
    }
}

/// The value, null where nothing was counted.
pub(crate) fn null_of_none(value: Value, count: &Value, out: &mut Emitter) -> Value {
    let valid = out.let_("bool", format_args!("{} != 0", count.code));
    Value { valid: Some(valid), ..value }
}

/// From a least or greatest number back to the argument's value.
pub(crate) fn extremum(
    encoding: &ExtremumEncoding,
    reduced: Value,
    column: ColumnOf<'_>,
    dtype: DataType,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Value {
    let some = reduced.validity();
    match encoding {
        ExtremumEncoding::Number { repr, range, magnitude } => {
            let value = match repr {
                Repr::Bool => {
                    let code = out.let_("bool", format_args!("{} != 0", reduced.code));
                    Value::new(dtype, Repr::Bool, code, reduced.valid)
                }
                repr => as_type(&reduced, &dtype, *repr, out),
            };
            Value { magnitude: *magnitude, ..value.with_range(*range) }
        }
        ExtremumEncoding::Code(dictionary) => {
            // The code of no value is none.
            let code = out.let_("u32", format_args!("{some} ? (u32){} : 0u", reduced.code));
            dictionary_value(dtype, dictionary, code, reduced.valid, &mut generator.params)
        }
        ExtremumEncoding::Place(order) => {
            let order = generator.params.borrowed("const u32", order);
            let place = &reduced.code;
            let at = out.let_("u32", format_args!("{some} ? {order}[{place}] : (u32)row"));
            Value { dtype, valid: reduced.valid, ..column.load(&at, generator, out) }
        }
    }
}

fn decimal_sum(sum: &Value, low: Option<Value>) -> DecimalSum {
    match (low, sum.repr) {
        (Some(low), _) => DecimalSum::Words { high: sum.code.clone(), low: low.code },
        (None, Repr::I64) => DecimalSum::I64(sum.code.clone()),
        (None, _) => DecimalSum::I128(sum.code.clone()),
    }
}

/// A sum as a type. `low`: that of the low words, where `sum` is of the high ones.
pub(crate) fn sum(sum: Value, low: Option<Value>, dtype: DataType, out: &mut Emitter) -> Value {
    let by_words = low.is_some();
    let whole = decimal_sum(&sum, low);
    match dtype {
        dtype if by_words => whole.emit(dtype, sum.valid, out),
        dtype if dtype.is_integer() => whole.emit_integer(dtype, sum.valid, out),
        dtype => Value::new(dtype, sum.repr, sum.code, sum.valid),
    }
}

/// A sum, as above, by the number of its rows, `rows` at most. Of decimals whose scale is `of` it
/// has that of its type.
pub(crate) fn average(
    (sum, low): (Value, Option<Value>),
    count: &Value,
    rows: u64,
    of: Option<i8>,
    dtype: DataType,
    out: &mut Emitter,
) -> Value {
    match (&dtype, of) {
        (DataType::Decimal128(_, scale), Some(of)) => {
            let power = (scale - of).max(0) as u32;
            let code = decimal_sum(&sum, low).emit_average(&count.code, rows, power, out);
            Value::new(dtype, Repr::I128, code, sum.valid)
        }
        _ => {
            out.divides(1);
            let code = out.let_("f64", format_args!("{} / (f64){}", sum.code, count.code));
            Value::new(dtype, Repr::F64, code, sum.valid)
        }
    }
}

/// The variance, or its root, of a sum of squares of deviations. `spent`: how many degrees of
/// freedom the mean took, 0 or 1.
pub(crate) fn variance(
    squares: &Value,
    count: &Value,
    spent: u32,
    root: bool,
    dtype: &DataType,
    out: &mut Emitter,
) -> Value {
    let count = &count.code;
    let valid = out.let_("bool", format_args!("{count} >= {}", spent + 1));
    let divisor = match spent {
        0 => format!("(f64){count}"),
        _ => format!("(f64)({count} - {spent})"),
    };
    let share = format!("{}({}, {divisor})", out.calls(FDIV), squares.code);
    let code = out.let_("f64", if root { format!("sqrt({share})") } else { share });
    Value::new(dtype.clone(), Repr::F64, code, Some(valid))
}

/// The first `count` aggregates of the row's group, whose slot the row has, or its keys number.
pub(crate) fn aggregates_of_group(
    partial: &Partial,
    keys: &[Expr],
    count: usize,
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Result<Vec<Value>> {
    let slot = match (&partial.row_slots, &partial.slots.keys) {
        (Some(slots), _) => {
            let slots = generator.params.pointer("const u32", slots, 0);
            format!("{slots}[row]")
        }
        (None, GroupKeyStorage::Slot(layout)) => {
            let keys =
                keys.iter().map(|key| generator.expr(key, out)).collect::<Result<Vec<_>>>()?;
            layout.emit(&keys, &mut generator.params, out).0
        }
        (None, _) => return Err(Error::internal("window: rows without slots")),
    };
    let slot = out.let_("u64", format_args!("(u64)({slot})"));
    let value = |at| generator.aggregate_of_slot(&partial.slots, at, &slot, out);
    Ok((0..count).map(value).collect())
}
