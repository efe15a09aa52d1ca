//! The result of an aggregation before anybody asked for it: one slot a group, keys and accumulators as words.
//!
//! The pipeline that reads it visits all slots, drops those without a row, and computes from the words the values
//! that it needs: an average is divided there, not before.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;

use super::emit::{Emitter, Failure};
use super::generator::Generator;
use super::keys::{KeyLayout, dictionary_value};
use super::params::Params;
use super::value::{Value, both, widen};
use crate::column::{Column, Dictionary, Relation, Repr, Stats};
use crate::device::Buffer;
use crate::error::Result;

/// Slots of an aggregation.
#[derive(Debug)]
pub(crate) struct GroupSlots {
    pub(crate) slots: u64,
    pub(crate) occupancy: Occupancy,
    pub(crate) keys: GroupKeys,
    /// Per accumulator, `u64` words: `Accumulator::words` for each slot.
    pub(crate) accumulators: Vec<(Accumulator, Arc<Buffer>)>,
    pub(crate) outputs: Vec<GroupOutput>,
    /// Rows that were aggregated, at most: bounds counts.
    pub(crate) rows: u64,
}

/// Which slots hold a group.
#[derive(Debug, Clone)]
pub(crate) enum Occupancy {
    /// All.
    All,
    /// Those whose key in the hash table is not the empty one (the last slot is that of the key that looks empty).
    Hashed(Arc<Buffer>),
    /// Those whose byte is not zero.
    Seen(Arc<Buffer>),
}

/// Where the group keys of a slot are.
#[derive(Debug, Clone)]
pub(crate) enum GroupKeys {
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
    /// The accumulator that counts the aggregate's valid rows, where the result is null without any.
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
    /// Sum of decimals: those of their high and of their low words.
    DecimalSum(usize, usize),
    /// Sum over count of decimals, scaled up by 10^power first; of sums by words, that of the low ones, too.
    DecimalAverage(usize, Option<usize>, usize, u32),
    /// A column of the input at the row that the accumulator holds.
    Pick(usize, Relation, usize),
}

impl GroupSlots {
    pub(crate) fn is_sparse(&self) -> bool {
        !matches!(self.occupancy, Occupancy::All)
    }

    /// The outputs, where they are nothing but accumulators as they lie.
    pub(crate) fn in_place(&self) -> Option<Vec<Column>> {
        let keyless = matches!(&self.keys, GroupKeys::Slot(layout) if layout.fields.is_empty());
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
            let range = matches!(accumulator, Accumulator::Count).then_some((0, i128::from(self.rows)));
            let column = Column::plain(output.dtype.clone(), self.slots as usize, buffer.clone(), None);
            let stats = Stats { range, ..column.stats };
            (same && output.count.is_none()).then_some(Column { stats, ..column })
        };
        self.outputs.iter().map(column).collect()
    }

    /// Emits the test whether `row`, a slot, holds a group.
    pub(crate) fn emit_occupied(&self, params: &mut Params, out: &mut Emitter) {
        match &self.occupancy {
            Occupancy::All => {}
            Occupancy::Hashed(keys) => {
                let keys = params.pointer("const u64", keys, 0);
                out.line(format_args!("if ({keys}[row] == HASH_EMPTY) break;"));
            }
            Occupancy::Seen(seen) => {
                let seen = params.pointer("const u8", seen, 0);
                out.line(format_args!("if ({seen}[row] == 0) break;"));
            }
        }
    }

    /// Emits column `at`: keys first, then aggregates.
    pub(crate) fn emit_output(&self, at: usize, generator: &mut Generator<'_>, out: &mut Emitter) -> Result<Value> {
        let value = self.emit_column(at, generator, out)?;
        if let Some(input) = &value.dictionary {
            // Outputs may be views of entries, or of parts of them.
            generator.point_into(&input.dictionary.characters);
        }
        Ok(value)
    }

    fn emit_column(&self, at: usize, generator: &mut Generator<'_>, out: &mut Emitter) -> Result<Value> {
        let keys = match &self.keys {
            GroupKeys::Slot(layout) | GroupKeys::Table(layout, _) | GroupKeys::Mixed(layout, _) => layout.fields.len(),
            GroupKeys::Row(_, columns, _) => columns.len(),
        };
        if at >= keys {
            return Ok(self.emit_aggregate(&self.outputs[at - keys], generator, out));
        }
        Ok(match &self.keys {
            GroupKeys::Slot(layout) => layout.emit_decode("row", at, &mut generator.params, out),
            GroupKeys::Table(layout, table) => {
                let key = self.emit_table_key(table, &mut generator.params, out);
                layout.emit_decode(&key, at, &mut generator.params, out)
            }
            GroupKeys::Mixed(layout, table) => {
                let mixed = self.emit_table_key(table, &mut generator.params, out);
                let secret = generator.params.word("u64", layout.secret);
                let key = out.let_("u64", format_args!("hash_unmix({mixed}, {secret})"));
                layout.emit_decode(&key, at, &mut generator.params, out)
            }
            GroupKeys::Row(relation, columns, rows) => {
                let rows = generator.params.pointer("const u32", rows, 0);
                let row = out.let_("u32", format_args!("{rows}[row]"));
                generator.load(relation, columns[at], &row, false, out)
            }
        })
    }

    /// The key in this slot of the hash table; the last slot is that of the key that looks empty.
    fn emit_table_key(&self, table: &Arc<Buffer>, params: &mut Params, out: &mut Emitter) -> String {
        let table = params.pointer("const u64", table, 0);
        let last = params.word("u64", self.slots - 1);
        out.let_("u64", format_args!("row == {last} ? HASH_EMPTY : {table}[row]"))
    }

    fn emit_aggregate(&self, output: &GroupOutput, generator: &mut Generator<'_>, out: &mut Emitter) -> Value {
        let valid = output.count.map(|count| {
            let count = self.emit_word(count, 0, generator);
            out.let_("bool", format_args!("{count} != 0"))
        });
        let dtype = output.dtype.clone();
        match &output.value {
            OutputKind::Plain(at) => {
                let (repr, code) = self.emit_plain(*at, &dtype, generator);
                let ctype = repr.device_type();
                let code = out.let_(ctype, format_args!("({ctype})({code})"));
                let range =
                    matches!(self.accumulators[*at].0, Accumulator::Count).then_some((0, i128::from(self.rows)));
                Value::new(dtype, repr, code, valid).with_range(range)
            }
            OutputKind::Unordered(at, repr, dictionary) => {
                let word = self.emit_word(*at, 0, generator);
                if let Some(dictionary) = dictionary {
                    let code = out.let_("u32", format_args!("(u32){word}"));
                    return dictionary_value(dtype, dictionary, code, valid, &mut generator.params);
                }
                let code = match repr {
                    Repr::F64 => format!("unorder_f64({word})"),
                    Repr::F32 => format!("unorder_f32((u32){word})"),
                    Repr::U64 => word,
                    _ => format!("({})unorder_i64({word})", repr.device_type()),
                };
                let code = out.let_(repr.device_type(), code);
                Value::new(dtype, *repr, code, valid)
            }
            OutputKind::FloatAverage(sum, count) => {
                let (_, sum) = self.emit_plain(*sum, &DataType::Float64, generator);
                let count = self.emit_word(*count, 0, generator);
                let code = out.let_("f64", format_args!("{sum} / (f64){count}"));
                Value::new(dtype, Repr::F64, code, valid)
            }
            OutputKind::DecimalSum(high, low) => {
                self.decimal_sum(*high, Some(*low), &dtype, generator, out).emit(dtype, valid, out)
            }
            OutputKind::DecimalAverage(sum, low, count, power) => {
                let sum = self.decimal_sum(*sum, *low, &dtype, generator, out);
                let count = self.emit_word(*count, 0, generator);
                let code = sum.emit_average(&count, self.rows, *power, out);
                Value::new(dtype, Repr::I128, code, valid)
            }
            OutputKind::Pick(at, relation, column) => {
                // One group of no rows: there is nothing that a missing row could stand for.
                if relation.rows == 0 {
                    return Value::null(&dtype).unwrap_or_else(|| Value::new(dtype, Repr::I128, "i128{}", None));
                }
                let word = self.emit_word(*at, 0, generator);
                // Without a row of its own, a group reads row 0.
                let row = out.let_("u64", format_args!("{word} == ~0ull ? 0ull : {word}"));
                let has = out.let_("bool", format_args!("{word} != ~0ull"));
                let mut value = generator.load(relation, *column, &row, false, out);
                value.valid = both(&Some(has), &value.valid, out);
                value.dtype = dtype;
                value
            }
        }
    }

    fn decimal_sum(
        &self,
        sum: usize,
        low: Option<usize>,
        dtype: &DataType,
        generator: &mut Generator<'_>,
        out: &mut Emitter,
    ) -> DecimalSum {
        let narrow = self.accumulators[sum].0.words() == 1;
        let (_, code) = self.emit_plain(sum, dtype, generator);
        match low {
            None if narrow => DecimalSum::I64(code),
            None => DecimalSum::I128(code),
            Some(low) => {
                let (_, low) = self.emit_plain(low, dtype, generator);
                let [high, low] = [code, low].map(|word| out.let_("i128", format_args!("(i128)({word})")));
                DecimalSum::Words { high, low }
            }
        }
    }

    /// The accumulator's number: its representation and an expression for it.
    fn emit_plain(&self, at: usize, dtype: &DataType, generator: &mut Generator<'_>) -> (Repr, String) {
        let low = self.emit_word(at, 0, generator);
        let wide = |generator: &mut Generator<'_>| {
            let high = self.emit_word(at, 1, generator);
            format!("((i128)((u128){high} << 64 | {low}))")
        };
        match &self.accumulators[at].0 {
            Accumulator::Sum128 => (Repr::of(dtype).unwrap_or(Repr::I128), wide(generator)),
            Accumulator::Fixed { exponent, .. } => {
                let exponent = generator.params.word("i64", i64::from(*exponent));
                let sum = wide(generator);
                (Repr::F64, format!("fixed_to_f64({sum}, {exponent})"))
            }
            Accumulator::Float => (Repr::F64, format!("double_of_bits({low})")),
            _ if Repr::of(dtype) == Some(Repr::U64) => (Repr::U64, low),
            _ => (Repr::I64, format!("(i64){low}")),
        }
    }

    fn emit_word(&self, at: usize, word: usize, generator: &mut Generator<'_>) -> String {
        let (accumulator, buffer) = &self.accumulators[at];
        let pointer = generator.params.pointer("const u64", buffer, 0);
        format!("{pointer}[row * {} + {word}]", accumulator.words())
    }
}

/// A sum of decimals, by names.
#[derive(Debug, Clone)]
pub(crate) enum DecimalSum {
    /// It has so many bits whatever the values are.
    I64(String),
    I128(String),
    /// The sums of high and low words (`kernels/decimal.cuh`), 128 bits each.
    Words {
        high: String,
        low: String,
    },
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
                out.line(format_args!("i128 {sum};"));
                let overflows = out.let_("bool", format_args!("decimal_sum_overflows({high}, {low}, &{sum})"));
                out.fail_if(overflows, Failure::Overflow, &[], None);
                Value::new(dtype, Repr::I128, sum, valid)
            }
        }
    }

    /// The sum, scaled up by 10^power, over the count of its values, which is at most `rows`; 0 where there are none. One of
    /// more than 38 digits fails.
    pub(crate) fn emit_average(&self, count: &str, rows: u64, power: u32, out: &mut Emitter) -> String {
        let factor = 10i128.pow(power);
        let some = out.let_("bool", format_args!("{count} != 0"));
        let (high, low) = match self {
            // Then nothing takes more than 64 bits but the result.
            DecimalSum::I64(sum) if factor.saturating_mul(i128::from(rows)) < i128::from(i64::MAX) => {
                return out
                    .let_("i128", format_args!("{some} ? average_of({sum}, (i64){count}, {factor}ll) : (i128)0"));
            }
            DecimalSum::I64(sum) | DecimalSum::I128(sum) => {
                let sum = out.let_("i128", format_args!("(i128)({sum})"));
                (format!("({sum} >> 64)"), format!("(i128)(u64)(u128){sum}"))
            }
            DecimalSum::Words { high, low } => (high.clone(), low.clone()),
        };
        let average = out
            .let_("i128", format_args!("{some} ? decimal_average({high}, {low}, (i64){count}, {factor}ll) : (i128)0"));
        out.fail_if(format!("{average} == I128_MIN"), Failure::Overflow, &[], None);
        average
    }
}
