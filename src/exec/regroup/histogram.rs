//! `histogram`: how many values of each group lie in each of its bins, or what they weigh.
//!
//! ```text
//!   slot  0 1 0 0      group by slot and bin     0,1: 2   0,2: 1   1,0: 1
//!   bin   1 0 1 2      child                     0 2 1 │ 1 0 0       lists of 3, one a slot
//! ```
//!
//! Sums of weights are those of the aggregation, so that they do not depend on the order of rows.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;

use super::{BySlot, Grouped, OPERATOR};
use crate::codegen::regroup::{list_of_bins, note_bin};
use crate::codegen::{AggregateCall, AggregateKind, Codes, Flow, FlowSource, materialize};
use crate::column::{Column, Relation};
use crate::error::{Error, Result};
use crate::exec::run::{Runner, anonymous};
use crate::host::HistogramBins;
use crate::plan::RegroupedCall;

impl Runner {
    pub(super) fn histogram(
        &self,
        rows: &Grouped,
        call: &RegroupedCall,
        bins: HistogramBins,
    ) -> Result<BySlot> {
        let count = bins.count();
        // Elements of lists are numbered in 32 bits.
        let total = rows.slots.checked_mul(count).filter(|total| u32::try_from(*total).is_ok());
        let Some(total) = total else {
            return Err(Error::unsupported(
                "histogram",
                "of more than 2^32 bins of all groups together",
            ));
        };
        let (x, weight) = (call.args[0].clone(), call.args.get(1).cloned());
        let mut flow = rows.flow.clone();
        let known = weight.clone().map(|weight| weight.is_not_null());
        for condition in call.filter.iter().cloned().chain(known).chain([bins.holds(x.clone())]) {
            flow = flow.filter(condition);
        }
        let (kind, item) = match &weight {
            None => (AggregateKind::Count, DataType::Int64),
            Some(_) => (AggregateKind::Sum, DataType::Float64),
        };
        let mut keys = rows.keys();
        keys.push(bins.of(x));
        let sums = AggregateCall { kind, arg: weight, filter: None, dtype: item.clone() };
        let schema = rows.schema_of(&[("bin", DataType::UInt32), ("value", item.clone())])?;
        let sums = self.grouped(flow, &keys, &[sums], schema)?;
        let relation = self.relation(OPERATOR, &sums)?;
        let sums = Flow::new(FlowSource::Relation(relation), sums.schema().clone());
        let child = Arc::new(self.device.alloc_zeroed(OPERATOR, total as usize * 8)?);
        materialize(&self.device, OPERATOR, &sums, Codes::Keep, |generator, out| {
            note_bin(rows.keyed, &child, count, generator, out)?;
            Ok(vec![])
        })?;

        let child = Column::plain(item, total as usize, child, None);
        let slots = child.slots(&self.device)?;
        let each = Relation::dense(rows.slots, vec![])?;
        let each = Flow::new(FlowSource::Relation(each), anonymous(&[])?);
        let (lists, columns) =
            materialize(&self.device, OPERATOR, &each, Codes::Keep, |generator, out| {
                let lists = (&child, &slots);
                Ok(list_of_bins(rows.keyed, lists, count, &call.dtype, generator, out))
            })?;
        let schema = rows.schema_of(&[("value", call.dtype.clone())])?;
        Ok(Flow::new(FlowSource::Relation(Relation::dense(lists, columns)?), schema))
    }
}
