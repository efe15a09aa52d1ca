//! The inputs of aggregates: which accumulators a query's aggregates need, and what each
//! accumulates.

use std::collections::HashMap;

use datafusion::arrow::datatypes::DataType;

use super::{AggregateCall, AggregateKind, FloatSums};
use crate::codegen::emit::Emitter;
use crate::codegen::flow::FlowSource;
use crate::codegen::generator::Generator;
use crate::codegen::groups::{Accumulator, DecimalSum, GroupOutput, OutputKind};
use crate::codegen::keys::KeyLayout;
use crate::codegen::value::{Value, widen};
use crate::column::Repr;
use crate::error::Result;

/// An accumulator and the values that it accumulates.
#[derive(Clone)]
pub(super) struct AggregateInput {
    pub(super) accumulator: Accumulator,
    /// The argument; none for a count of rows.
    pub(super) value: Option<Value>,
    /// C++ condition that the row counts.
    pub(super) valid: Option<String>,
    /// C++ expression of what is accumulated: the argument, or its dictionary's code; empty for a
    /// count of rows.
    pub(super) code: String,
    /// The call whose argument it is.
    pub(super) call: usize,
    /// For [`Accumulator::Row`]: whether the row is that of the greatest value, not of the least.
    pub(super) greatest: bool,
}

pub(super) struct AggregateShape {
    pub(super) layout: KeyLayout,
    pub(super) inputs: Vec<AggregateInput>,
    pub(super) outputs: Vec<GroupOutput>,
}

/// Decides which accumulators the calls need, sharing equal ones, and how results come of them.
/// `None`: a string or a wide decimal whose least or greatest value is asked for is computed, and
/// no column of the source.
pub(super) fn shape(
    generator: &mut Generator<'_>,
    calls: &[AggregateCall],
    layout: KeyLayout,
    floats: FloatSums,
    ungrouped: bool,
    rows: u64,
    out: &mut Emitter,
) -> Result<Option<AggregateShape>> {
    let mut inputs: Vec<AggregateInput> = vec![];
    let mut outputs = vec![];
    let mut words: HashMap<String, [Value; 2]> = HashMap::new();
    // Of all rows of a table there is one at least, or it is known that there is none.
    let flow = generator.flow();
    let maybe_none = rows == 0 || flow.drops_rows() || matches!(flow.source, FlowSource::Groups(_));
    for (position, call) in calls.iter().enumerate() {
        let filter = call.filter.as_ref().map(|f| generator.expr(f, out)).transpose()?;
        let filter = filter.map(|f| out.let_("bool", f.truth()));
        // Rows that FILTER leaves out do not fail.
        filter.iter().for_each(|filter| out.guard(filter));
        let value = call.arg.as_ref().map(|arg| generator.expr(arg, out)).transpose();
        filter.iter().for_each(|_| out.unguard());
        let value = value?;
        let valid = match (value.as_ref().and_then(|v| v.valid.clone()), filter) {
            (None, None) => None,
            (Some(one), None) | (None, Some(one)) => Some(one),
            (Some(a), Some(b)) => Some(out.let_("bool", format_args!("{a} && {b}"))),
        };
        // Of decimals whose sum may have more digits than one: high and low words.
        let split = match (call.kind, &value, &call.dtype) {
            (
                AggregateKind::Sum | AggregateKind::Average,
                Some(value),
                DataType::Decimal128(_, _),
            ) if DecimalSum::may_overflow(value.bounds(), rows) => Some(
                words
                    .entry(value.code.clone())
                    .or_insert_with(|| DecimalSum::words_of(value, out))
                    .clone(),
            ),
            _ => None,
        };
        let mut input = |accumulator: Accumulator, value: Option<&Value>, greatest: bool| {
            let code = value.map_or(String::new(), |v| match (&v.dictionary, &accumulator) {
                (Some(d), Accumulator::Least | Accumulator::Greatest) => d.code.clone(),
                _ => v.code.clone(),
            });
            let same = |f: &AggregateInput| {
                f.code == code
                    && f.greatest == greatest
                    && f.valid == valid
                    && f.accumulator == accumulator
            };
            inputs.iter().position(same).unwrap_or_else(|| {
                let (value, valid) = (value.cloned(), valid.clone());
                inputs.push(AggregateInput {
                    accumulator,
                    value,
                    valid,
                    code,
                    call: position,
                    greatest,
                });
                inputs.len() - 1
            })
        };
        let counted = if valid.is_some() || ungrouped && maybe_none {
            Some(input(Accumulator::Count, None, false))
        } else {
            None
        };
        let (value, count) = match (call.kind, &value) {
            (AggregateKind::Count, _) | (_, None) => {
                let at = counted.unwrap_or_else(|| input(Accumulator::Count, None, false));
                (OutputKind::Plain(at), None)
            }
            (AggregateKind::Sum, Some(value)) => match &split {
                Some([high, low]) => {
                    let [high, low] = [high, low].map(|word| {
                        let accumulator =
                            sum_accumulator(word, &call.dtype, floats, ungrouped, rows);
                        input(accumulator, Some(word), false)
                    });
                    (OutputKind::DecimalSum(high, low), counted)
                }
                None => {
                    let accumulator = sum_accumulator(value, &call.dtype, floats, ungrouped, rows);
                    let wide = accumulator == Accumulator::Sum128;
                    let at = input(accumulator, Some(value), false);
                    match wide && call.dtype.is_integer() {
                        true => (OutputKind::IntegerSum(at), counted),
                        false => (OutputKind::Plain(at), counted),
                    }
                }
            },
            (AggregateKind::Average, Some(value)) => {
                let summed =
                    split.as_ref().map_or(std::slice::from_ref(value), |words| words.as_slice());
                let sums: Vec<usize> = (summed.iter())
                    .map(|value| {
                        let accumulator =
                            sum_accumulator(value, &call.dtype, floats, ungrouped, rows);
                        input(accumulator, Some(value), false)
                    })
                    .collect();
                let (sum, low) = (sums[0], sums.get(1).copied());
                let count = counted.unwrap_or_else(|| input(Accumulator::Count, None, false));
                let kind = match (&call.dtype, &value.dtype) {
                    (DataType::Decimal128(_, scale), DataType::Decimal128(_, of)) => {
                        OutputKind::DecimalAverage(sum, low, count, (scale - of).max(0) as u32)
                    }
                    _ => OutputKind::FloatAverage(sum, count),
                };
                (kind, Some(count))
            }
            (AggregateKind::Min | AggregateKind::Max, Some(value)) => {
                let greatest = call.kind == AggregateKind::Max;
                let bits = if greatest { Accumulator::Greatest } else { Accumulator::Least };
                let (low, high) = value.bounds();
                let narrow = i64::try_from(low).is_ok() && i64::try_from(high).is_ok();
                match (&value.dictionary, value.repr) {
                    (Some(coded), _) => {
                        let at = input(bits, Some(value), greatest);
                        (
                            OutputKind::Unordered(at, Repr::U64, Some(coded.dictionary.clone())),
                            counted,
                        )
                    }
                    (None, Repr::I128) if narrow => (
                        OutputKind::Unordered(input(bits, Some(value), greatest), Repr::I64, None),
                        counted,
                    ),
                    (None, Repr::I128 | Repr::View) => {
                        let arg = call.arg.as_ref();
                        match arg.and_then(|arg| generator.flow().stored_column(arg)) {
                            Some((relation, column)) => {
                                let relation = relation.clone();
                                let at = input(Accumulator::Row, Some(value), greatest);
                                (OutputKind::Pick(at, relation, column), None)
                            }
                            None => return Ok(None),
                        }
                    }
                    (None, repr) => (
                        OutputKind::Unordered(input(bits, Some(value), greatest), repr, None),
                        counted,
                    ),
                }
            }
        };
        outputs.push(GroupOutput { dtype: call.dtype.clone(), value, count });
    }
    Ok(Some(AggregateShape { layout, inputs, outputs }))
}

/// Exponents, and bits of a value, for which `fixed_of_multiple` is made.
const UNITS: (i32, i32) = (-900, 900);
const MULTIPLE_BITS: i32 = 110;

fn exact_in_floats(bound: f64, unit: i32) -> bool {
    unit >= UNITS.0 && magnitude_bits(bound) - unit.min(UNITS.1) <= MULTIPLE_BITS
}

/// Values of at most this magnitude lie below 2 to this power, less one.
pub(super) fn magnitude_bits(bound: f64) -> i32 {
    if bound > 0.0 { bound.log2().floor() as i32 + 2 } else { -1000 }
}

/// The narrowest accumulator that sums `rows` such values.
fn sum_accumulator(
    value: &Value,
    result: &DataType,
    floats: FloatSums,
    ungrouped: bool,
    rows: u64,
) -> Accumulator {
    if matches!(value.repr, Repr::F32 | Repr::F64) || result.is_floating() {
        if ungrouped {
            return Accumulator::Float;
        }
        let magnitude = match value.repr {
            Repr::F32 | Repr::F64 => value.magnitude,
            _ => {
                let (low, high) = value.bounds();
                Some(low.unsigned_abs().max(high.unsigned_abs()) as f64)
            }
        };
        let unit = if value.repr.is_integer() { Some(0) } else { value.unit };
        return match (floats, magnitude) {
            (FloatSums::Fixed, Some(bound)) if bound.is_finite() => {
                // Below 2^(exponent of the bound + 1), times fewer than 2^(bits of rows) rows,
                // below 2^126 units.
                let bits = 64 - rows.max(1).leading_zeros() as i32;
                let least = (magnitude_bits(bound) + bits - 126).clamp(-1074, 900);
                match unit {
                    Some(unit) if unit >= least && exact_in_floats(bound, unit) => {
                        Accumulator::Fixed { exponent: unit.min(UNITS.1), exact: true }
                    }
                    _ => Accumulator::Fixed { exponent: least, exact: false },
                }
            }
            _ => Accumulator::Float,
        };
    }
    let (low, high) = value.bounds();
    let most = low.unsigned_abs().max(high.unsigned_abs());
    let fits = most.checked_mul(u128::from(rows.max(1))).is_some_and(|sum| sum < 1 << 63);
    match result {
        DataType::Decimal128(_, _) | DataType::Int64 | DataType::UInt64 if !fits => {
            Accumulator::Sum128
        }
        _ => Accumulator::Sum64,
    }
}

/// The argument as a signed wide integer, a float, or ordered bits, as its accumulator wants it.
pub(super) fn argument(input: &AggregateInput, exponent: &str) -> (&'static str, String) {
    let Some(value) = &input.value else { return ("u64", "1ull".into()) };
    match &input.accumulator {
        Accumulator::Count => ("u64", "1ull".into()),
        Accumulator::Sum64 => ("i64", format!("(i64){}", value.code)),
        Accumulator::Sum128 => ("i128", widen(value, Repr::I128)),
        Accumulator::Fixed { exact: true, .. } => {
            ("i128", format!("fixed_of_multiple((f64){}, {exponent})", value.code))
        }
        Accumulator::Fixed { exact: false, .. } => {
            ("i128", format!("fixed_of_f64((f64){}, {exponent}, lost)", value.code))
        }
        Accumulator::Float => ("f64", format!("(f64){}", value.code)),
        Accumulator::Least | Accumulator::Greatest => ("u64", ordered_bits(value)),
        Accumulator::Row => ("u64", "row".into()),
    }
}

fn ordered_bits(value: &Value) -> String {
    if let Some(coded) = &value.dictionary {
        return format!("(u64){}", coded.code);
    }
    match value.repr {
        Repr::F64 => format!("order_f64({})", value.code),
        Repr::F32 => format!("(u64)order_f32({})", value.code),
        Repr::U64 => format!("(u64){}", value.code),
        Repr::Bool => format!("order_i64((i64)({} != 0))", value.code),
        _ => format!("order_i64((i64){})", value.code),
    }
}
