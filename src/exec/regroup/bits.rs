//! `bit_and`, `bit_or`, `bit_xor`: a reduction of each group's rows, which are sorted by slot.

use datafusion::arrow::datatypes::DataType;

use super::{BySlot, Grouped, OPERATOR};
use crate::codegen::{Codes, Flow, FlowSource, Value, materialize};
use crate::column::{Relation, Repr};
use crate::error::Result;
use crate::exec::aggregate::slot_bits;
use crate::exec::run::{Runner, anonymous, column_named};
use crate::plan::{BitwiseOperation, RegroupedCall};
use warpframe_device::ops::segment::{Reduction, segmented_reduce, segments};
use warpframe_device::ops::sort::{SortWord, argsort};

impl Runner {
    /// The bits that all values of a slot have, that any has, that an odd number of them have.
    pub(super) fn bits(
        &self,
        rows: &Grouped,
        call: &RegroupedCall,
        bits: BitwiseOperation,
    ) -> Result<BySlot> {
        let arg = &call.args[0];
        let conditions = call.filter.iter().cloned().chain(rows.unless_null(arg));
        let (relation, schema) = self.slots_and(rows, conditions, std::slice::from_ref(arg))?;
        let flow = Flow::new(FlowSource::Relation(relation.clone()), schema);
        let (_, words) =
            materialize(&self.device, OPERATOR, &flow, Codes::Keep, |generator, out| {
                let slot = if rows.keyed { generator.column(0, out)?.code } else { "0".into() };
                let slot = out.let_("u64", format_args!("(u64){slot}"));
                let value = generator.expr(&column_named("x0"), out)?;
                let signed = if value.dtype.is_signed_integer() { "i64" } else { "u64" };
                let value = out.let_("u64", format_args!("(u64)({signed}){}", value.code));
                Ok(vec![Value::word(slot), Value::word(value)])
            })?;
        let slots = SortWord { keys: &words[0].data, bits: slot_bits(rows.slots) };
        let order = argsort(&self.device, &[slots], relation.rows)?;
        let runs = segments(&self.device, &[slots], &order, relation.rows)?;
        let kind = match bits {
            BitwiseOperation::And => Reduction::AndU64,
            BitwiseOperation::Or => Reduction::OrU64,
            BitwiseOperation::Xor => Reduction::XorU64,
        };
        let results =
            segmented_reduce(&self.device, kind, &*words[1].data, None, Some(&order), &runs)?;
        let each =
            Flow::new(FlowSource::Relation(Relation::dense(runs.count, vec![])?), anonymous(&[])?);
        let (count, columns) =
            materialize(&self.device, OPERATOR, &each, Codes::Keep, |generator, out| {
                let results = generator.params.borrowed("const u64", &results);
                let mut values = vec![];
                if rows.keyed {
                    let offsets = generator.params.borrowed("const u32", &runs.offsets);
                    let order = generator.params.borrowed("const u32", &order);
                    let slots = generator.params.borrowed("const u64", slots.keys);
                    let slot =
                        out.let_("u32", format_args!("(u32){slots}[{order}[{offsets}[row]]]"));
                    values.push(Value::new(DataType::UInt32, Repr::U32, slot, None));
                }
                let repr = Repr::of(&call.dtype).expect("an integer has a representation");
                let code =
                    out.let_(repr.device_type(), format!("({}){results}[row]", repr.device_type()));
                values.push(Value::new(call.dtype.clone(), repr, code, None));
                Ok(values)
            })?;
        let schema = rows.schema_of(&[("value", call.dtype.clone())])?;
        Ok(Flow::new(FlowSource::Relation(Relation::dense(count, columns)?), schema))
    }
}
