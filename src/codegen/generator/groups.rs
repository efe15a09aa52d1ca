//! The columns of groups: the key and the accumulators of a slot become values.
//!
//! A value is computed from the words of its slot where a pipeline asks for it: an average is
//! divided here, not when rows are aggregated.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;

use super::Generator;
use crate::codegen::emit::Emitter;
use crate::codegen::groups::{
    Accumulator, DecimalSum, GroupKeyStorage, GroupOutput, GroupSlots, Occupancy, OutputKind,
};
use crate::codegen::keys::dictionary_value;
use crate::codegen::value::{Value, both};
use crate::column::Repr;
use crate::error::Result;
use warpframe_device::Buffer;

impl Generator<'_> {
    /// Emits the test whether `row`, a slot, holds a group. Leaves the row if not.
    pub(super) fn occupied(&mut self, groups: &GroupSlots, out: &mut Emitter) {
        match &groups.occupancy {
            Occupancy::All => {}
            Occupancy::Hashed(keys) => {
                let keys = self.params.pointer("const u64", keys, 0);
                out.leave_if(format_args!("{keys}[row] == HASH_EMPTY"));
            }
            Occupancy::Seen(seen) => {
                let seen = self.params.pointer("const u8", seen, 0);
                out.leave_if(format_args!("{seen}[row] == 0"));
            }
        }
    }

    /// Emits column `at` of the groups. Keys come first, then aggregates.
    pub(super) fn group_column(
        &mut self,
        groups: &GroupSlots,
        at: usize,
        out: &mut Emitter,
    ) -> Result<Value> {
        let value = self.key_or_aggregate(groups, at, out)?;
        if let Some(input) = &value.dictionary {
            // Outputs may be views of entries, or of parts of them.
            self.point_into(&input.dictionary.characters);
        }
        Ok(value)
    }

    fn key_or_aggregate(
        &mut self,
        groups: &GroupSlots,
        at: usize,
        out: &mut Emitter,
    ) -> Result<Value> {
        let keys = match &groups.keys {
            GroupKeyStorage::Slot(layout)
            | GroupKeyStorage::Table(layout, _)
            | GroupKeyStorage::Mixed(layout, _) => layout.fields.len(),
            GroupKeyStorage::Row(_, columns, _) => columns.len(),
        };
        if at >= keys {
            return Ok(self.aggregate(groups, &groups.outputs[at - keys], "row", out));
        }
        Ok(match &groups.keys {
            GroupKeyStorage::Slot(layout) => layout.emit_decode("row", at, &mut self.params, out),
            GroupKeyStorage::Table(layout, table) => {
                let key = self.table_key(groups, table, out);
                layout.emit_decode(&key, at, &mut self.params, out)
            }
            GroupKeyStorage::Mixed(layout, table) => {
                let mixed = self.table_key(groups, table, out);
                let secret = self.params.word("u64", layout.secret);
                let key = out.let_("u64", format_args!("hash_unmix({mixed}, {secret})"));
                layout.emit_decode(&key, at, &mut self.params, out)
            }
            GroupKeyStorage::Row(relation, columns, rows) => {
                let rows = self.params.pointer("const u32", rows, 0);
                let row = out.let_("u32", format_args!("{rows}[row]"));
                self.load(relation, columns[at], &row, false, out)
            }
        })
    }

    /// The key in this slot of the hash table; the last slot is that of the key that looks empty.
    fn table_key(&mut self, groups: &GroupSlots, table: &Arc<Buffer>, out: &mut Emitter) -> String {
        let table = self.params.pointer("const u64", table, 0);
        let last = self.params.word("u64", groups.slots - 1);
        out.let_("u64", format_args!("row == {last} ? HASH_EMPTY : {table}[row]"))
    }

    /// Emits aggregate `at` of the group in a slot, which `slot` names.
    pub(in crate::codegen) fn aggregate_of_slot(
        &mut self,
        groups: &GroupSlots,
        at: usize,
        slot: &str,
        out: &mut Emitter,
    ) -> Value {
        let value = self.aggregate(groups, &groups.outputs[at], slot, out);
        if let Some(input) = &value.dictionary {
            self.point_into(&input.dictionary.characters);
        }
        value
    }

    fn aggregate(
        &mut self,
        groups: &GroupSlots,
        output: &GroupOutput,
        slot: &str,
        out: &mut Emitter,
    ) -> Value {
        let valid = output.count.map(|count| {
            let count = self.accumulator_word(groups, count, 0, slot);
            out.let_("bool", format_args!("{count} != 0"))
        });
        let dtype = output.dtype.clone();
        match &output.value {
            OutputKind::Plain(at) => {
                let (repr, code) = self.accumulated(groups, *at, slot, &dtype);
                let ctype = repr.device_type();
                let code = out.let_(ctype, format_args!("({ctype})({code})"));
                let range = matches!(groups.accumulators[*at].0, Accumulator::Count)
                    .then_some((0, i128::from(groups.rows)));
                Value::new(dtype, repr, code, valid).with_range(range)
            }
            OutputKind::Unordered(at, repr, dictionary) => {
                let word = self.accumulator_word(groups, *at, 0, slot);
                if let Some(dictionary) = dictionary {
                    let code = out.let_("u32", format_args!("(u32){word}"));
                    return dictionary_value(dtype, dictionary, code, valid, &mut self.params);
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
                let (_, sum) = self.accumulated(groups, *sum, slot, &DataType::Float64);
                let count = self.accumulator_word(groups, *count, 0, slot);
                out.divides(1);
                let code = out.let_("f64", format_args!("{sum} / (f64){count}"));
                Value::new(dtype, Repr::F64, code, valid)
            }
            OutputKind::DecimalSum(high, low) => self
                .decimal_sum(groups, (*high, Some(*low)), slot, &dtype, out)
                .emit(dtype, valid, out),
            OutputKind::IntegerSum(sum) => self
                .decimal_sum(groups, (*sum, None), slot, &DataType::Decimal128(38, 0), out)
                .emit_integer(dtype, valid, out),
            OutputKind::DecimalAverage(sum, low, count, power) => {
                let sum = self.decimal_sum(groups, (*sum, *low), slot, &dtype, out);
                let count = self.accumulator_word(groups, *count, 0, slot);
                let code = sum.emit_average(&count, groups.rows, *power, out);
                Value::new(dtype, Repr::I128, code, valid)
            }
            OutputKind::Pick(at, relation, column) => {
                // One group of no rows: there is nothing that a missing row could stand for.
                if relation.rows == 0 {
                    return Value::null(&dtype)
                        .unwrap_or_else(|| Value::new(dtype, Repr::I128, "i128{}", None));
                }
                let word = self.accumulator_word(groups, *at, 0, slot);
                let number = match groups.accumulators[*at].0 {
                    Accumulator::Least => format!("(u64)unorder_i64({word})"),
                    _ => word.clone(),
                };
                // Without a row of its own, a group reads row 0.
                let row = out.let_("u64", format_args!("{word} == ~0ull ? 0ull : {number}"));
                let has = out.let_("bool", format_args!("{word} != ~0ull"));
                let mut value = self.load(relation, *column, &row, false, out);
                value.valid = both(&Some(has), &value.valid, out);
                value.dtype = dtype;
                value
            }
        }
    }

    fn decimal_sum(
        &mut self,
        groups: &GroupSlots,
        (sum, low): (usize, Option<usize>),
        slot: &str,
        dtype: &DataType,
        out: &mut Emitter,
    ) -> DecimalSum {
        let narrow = groups.accumulators[sum].0.words() == 1;
        let (_, code) = self.accumulated(groups, sum, slot, dtype);
        match low {
            None if narrow => DecimalSum::I64(code),
            None => DecimalSum::I128(code),
            Some(low) => {
                let (_, low) = self.accumulated(groups, low, slot, dtype);
                let [high, low] =
                    [code, low].map(|word| out.let_("i128", format_args!("(i128)({word})")));
                DecimalSum::Words { high, low }
            }
        }
    }

    /// The accumulator's number: its representation and an expression for it.
    fn accumulated(
        &mut self,
        groups: &GroupSlots,
        at: usize,
        slot: &str,
        dtype: &DataType,
    ) -> (Repr, String) {
        let low = self.accumulator_word(groups, at, 0, slot);
        let wide = |generator: &mut Self| {
            let high = generator.accumulator_word(groups, at, 1, slot);
            format!("((i128)((u128){high} << 64 | {low}))")
        };
        match &groups.accumulators[at].0 {
            Accumulator::Sum128 => (Repr::of(dtype).unwrap_or(Repr::I128), wide(self)),
            Accumulator::Fixed { exponent, .. } => {
                let exponent = self.params.word("i64", i64::from(*exponent));
                let sum = wide(self);
                (Repr::F64, format!("fixed_to_f64({sum}, {exponent})"))
            }
            Accumulator::Float => (Repr::F64, format!("double_of_bits({low})")),
            _ if Repr::of(dtype) == Some(Repr::U64) => (Repr::U64, low),
            _ => (Repr::I64, format!("(i64){low}")),
        }
    }

    fn accumulator_word(
        &mut self,
        groups: &GroupSlots,
        at: usize,
        word: usize,
        slot: &str,
    ) -> String {
        let (accumulator, buffer) = &groups.accumulators[at];
        let pointer = self.params.pointer("const u64", buffer, 0);
        format!("{pointer}[{slot} * {} + {word}]", accumulator.words())
    }
}
