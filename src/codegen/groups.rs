//! The result of an aggregation: one slot for each group, with its key and its accumulators as
//! words.
//!
//! No column is made of them. The pipeline that reads the groups visits all slots, drops those
//! without a row, and computes from the words the values that it needs (`generator/groups.rs`).

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;

use super::device_function::AVERAGE_OF;
use super::emit::Emitter;
use super::failure::Failure;
use super::keys::KeyLayout;
use super::value::{Value, widen};
use crate::column::{Column, Dictionary, Relation, Repr, Stats};
use warpframe_device::Buffer;

/// Slots of an aggregation.
#[derive(Debug)]
pub(crate) struct GroupSlots {
    pub(crate) slots: u64,
    pub(crate) occupancy: Occupancy,
    pub(crate) keys: GroupKeyStorage,
    /// Per accumulator, `u64` words: `Accumulator::words` for each slot.
    pub(crate) accumulators: Vec<(Accumulator, Arc<Buffer>)>,
    pub(crate) outputs: Vec<GroupOutput>,
    /// Upper bound of the rows that were aggregated, and so of counts.
    pub(crate) rows: u64,
}

/// Which slots hold a group.
#[derive(Debug, Clone)]
pub(crate) enum Occupancy {
    /// All.
    All,
    /// Slots whose key in the hash table is not the empty key. The last slot is that of the key
    /// that equals the empty key.
    Hashed(Arc<Buffer>),
    /// Those whose byte is not zero.
    Seen(Arc<Buffer>),
}

/// Where the group keys of a slot are.
#[derive(Debug, Clone)]
pub(crate) enum GroupKeyStorage {
    /// In the slot number itself.
    Slot(KeyLayout),
    /// In the hash table, as they are.
    Table(KeyLayout, Arc<Buffer>),
    /// In the hash table, mixed.
    Mixed(KeyLayout, Arc<Buffer>),
    /// In a row of the input, whose number the buffer (`u32`) holds.
    Row(Relation, Vec<usize>, Arc<Buffer>),
}

/// One running value of a group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Accumulator {
    /// Rows counted.
    Count,
    /// Sum modulo 2⁶⁴.
    Sum64,
    /// Sum modulo 2¹²⁸, low word first.
    Sum128,
    /// Sum of floats in units of 2^exponent, 128 bits.
    Fixed {
        /// Exponent of the unit.
        exponent: i32,
        /// Every value is known to be a multiple of the unit.
        exact: bool,
    },
    /// A float's bits.
    Float,
    /// Least order-preserving bits; all ones at first.
    Least,
    /// Greatest order-preserving bits; zero at first.
    Greatest,
    /// The input row that holds the value; all ones where there is none.
    Row,
}

impl Accumulator {
    /// Words a slot takes.
    pub(crate) fn words(&self) -> usize {
        match self {
            Accumulator::Sum128 | Accumulator::Fixed { .. } => 2,
            _ => 1,
        }
    }

    /// Byte that fills a fresh accumulator.
    pub(crate) fn initial_byte(&self) -> u8 {
        match self {
            Accumulator::Least | Accumulator::Row => 0xFF,
            _ => 0,
        }
    }
}

/// What an aggregate yields, in terms of accumulators (by position).
#[derive(Debug, Clone)]
pub(crate) struct GroupOutput {
    pub(crate) dtype: DataType,
    pub(crate) value: OutputKind,
    /// The accumulator that counts the aggregate's valid rows, if the result is null without any.
    pub(crate) count: Option<usize>,
}

/// How a result is made.
#[derive(Debug, Clone)]
pub(crate) enum OutputKind {
    /// The accumulator as it is.
    Plain(usize),
    /// Order-preserving bits back to a value of the representation.
    Unordered(usize, Repr, Option<Arc<Dictionary>>),
    /// Sum over count of floats.
    FloatAverage(usize, usize),
    /// Sum of decimals: the sums of their high and of their low words.
    DecimalSum(usize, usize),
    /// Sum of integers that may have more than 64 bits.
    IntegerSum(usize),
    /// Sum over count of decimals: the sum, the sum of the low words if sums are by words, the
    /// count, and the power of ten by which the sum is scaled up first.
    DecimalAverage(usize, Option<usize>, usize, u32),
    /// A column of the input at the row whose number the accumulator holds: as it is, or as the
    /// least of several, in order-preserving bits.
    Pick(usize, Relation, usize),
}

impl GroupSlots {
    pub(crate) fn is_sparse(&self) -> bool {
        !matches!(self.occupancy, Occupancy::All)
    }

    /// The outputs as columns, if each is an accumulator as it lies in memory.
    pub(crate) fn in_place(&self) -> Option<Vec<Column>> {
        let keyless =
            matches!(&self.keys, GroupKeyStorage::Slot(layout) if layout.fields.is_empty());
        if self.is_sparse() || !keyless {
            return None;
        }
        let column = |output: &GroupOutput| {
            let OutputKind::Plain(at) = output.value else { return None };
            let (accumulator, buffer) = &self.accumulators[at];
            let same = match accumulator {
                Accumulator::Float => output.dtype == DataType::Float64,
                Accumulator::Count | Accumulator::Sum64 => {
                    matches!(output.dtype, DataType::Int64 | DataType::UInt64)
                }
                _ => false,
            };
            let range =
                matches!(accumulator, Accumulator::Count).then_some((0, i128::from(self.rows)));
            let column =
                Column::plain(output.dtype.clone(), self.slots as usize, buffer.clone(), None);
            let stats = Stats { range, ..column.stats };
            (same && output.count.is_none()).then_some(Column { stats, ..column })
        };
        self.outputs.iter().map(column).collect()
    }
}

/// The C++ names of a sum of decimals.
#[derive(Debug, Clone)]
pub(crate) enum DecimalSum {
    /// A sum that fits 64 bits, whatever the values are.
    I64(String),
    /// A sum that fits 128 bits.
    I128(String),
    /// The sums of high and low words (`kernels/decimal.cuh`), 128 bits each.
    Words { high: String, low: String },
}

/// The greatest decimal.
const MOST: u128 = 10u128.pow(38) - 1;

impl DecimalSum {
    /// Whether the sum of `rows` integers within bounds may have more digits than a decimal.
    pub(crate) fn may_overflow((low, high): (i128, i128), rows: u64) -> bool {
        let most = low.unsigned_abs().max(high.unsigned_abs());
        most.checked_mul(u128::from(rows.max(1))).is_none_or(|sum| sum > MOST)
    }

    /// The high and the low word of a decimal, as numbers.
    pub(crate) fn words_of(value: &Value, out: &mut Emitter) -> [Value; 2] {
        let (least, greatest) = value.bounds();
        let wide = out.let_("i128", widen(value, Repr::I128));
        let high = out.let_("i64", format_args!("(i64)({wide} >> 64)"));
        let low = out.let_("u64", format_args!("(u64)(u128){wide}"));
        let high = Value::new(DataType::Int64, Repr::I64, high, value.valid.clone());
        let low = Value::new(DataType::UInt64, Repr::U64, low, value.valid.clone());
        [high.with_range(Some((least >> 64, greatest >> 64))), low]
    }

    /// The sum itself; one of more than 38 digits fails.
    pub(crate) fn emit(&self, dtype: DataType, valid: Option<String>, out: &mut Emitter) -> Value {
        match self {
            DecimalSum::I64(sum) => Value::new(dtype, Repr::I64, sum, valid),
            DecimalSum::I128(sum) => Value::new(dtype, Repr::I128, sum, valid),
            DecimalSum::Words { high, low } => {
                let sum = out.fresh();
                out.unset("i128", &sum);
                let overflows =
                    out.let_("bool", format_args!("decimal_sum_overflows({high}, {low}, &{sum})"));
                out.fail_if(overflows, Failure::Overflow, &[], None);
                Value::new(dtype, Repr::I128, sum, valid)
            }
        }
    }

    /// The sum as an integer of 64 bits; one of more fails.
    pub(crate) fn emit_integer(
        &self,
        dtype: DataType,
        valid: Option<String>,
        out: &mut Emitter,
    ) -> Value {
        let repr = if dtype == DataType::UInt64 { Repr::U64 } else { Repr::I64 };
        let ctype = repr.device_type();
        let sum = match self {
            DecimalSum::I64(sum) if repr == Repr::I64 => {
                return Value::new(dtype, repr, sum, valid);
            }
            DecimalSum::I64(sum) | DecimalSum::I128(sum) => sum.clone(),
            DecimalSum::Words { .. } => self.emit(DataType::Decimal128(38, 0), None, out).code,
        };
        let wide = out.let_("i128", format_args!("(i128)({sum})"));
        let narrow = out.let_(ctype, format_args!("({ctype}){wide}"));
        let overflows = out.let_("bool", format_args!("(i128){narrow} != {wide}"));
        out.fail_if(overflows, Failure::Overflow, &[], None);
        Value::new(dtype, repr, narrow, valid)
    }

    /// The average: the sum, scaled up by 10^power, over the count of its values, which is at most
    /// `rows`. 0 if there are none. An average of more than 38 digits fails.
    pub(crate) fn emit_average(
        &self,
        count: &str,
        rows: u64,
        power: u32,
        out: &mut Emitter,
    ) -> String {
        let factor = 10i128.pow(power);
        let some = out.let_("bool", format_args!("{count} != 0"));
        let (high, low) = match self {
            // No intermediate value exceeds 64 bits.
            DecimalSum::I64(sum)
                if factor.saturating_mul(i128::from(rows)) < i128::from(i64::MAX) =>
            {
                let average = out.calls(AVERAGE_OF);
                return out.let_(
                    "i128",
                    format_args!("{some} ? {average}({sum}, (i64){count}, {factor}ll) : (i128)0"),
                );
            }
            DecimalSum::I64(sum) | DecimalSum::I128(sum) => {
                let sum = out.let_("i128", format_args!("(i128)({sum})"));
                (format!("({sum} >> 64)"), format!("(i128)(u64)(u128){sum}"))
            }
            DecimalSum::Words { high, low } => (high.clone(), low.clone()),
        };
        let average = out.let_(
            "i128",
            format_args!(
                "{some} ? decimal_average({high}, {low}, (i64){count}, {factor}ll) : (i128)0"
            ),
        );
        out.fail_if(format!("{average} == I128_MIN"), Failure::Overflow, &[], None);
        average
    }
}
