//! Aggregates of whole partitions, whose rows need no order: those of a GROUP BY. Rows are not
//! sorted and stay where they are. Each finds its group by its keys, or by the slot that the
//! aggregation noted for it.
//!
//! Only where keys number the slots, and these are few: atomics on the slots of a hash table that no
//! cache holds, or on the same few slots from all rows, take longer than a sort.

use datafusion::logical_expr::{Expr, ExprSchemable, lit};

use super::{OPERATOR, no_rows};
use crate::codegen::window::results::aggregates_of_group;
use crate::codegen::{Codes, Flow, FlowSource, materialize, slots_by_keys};
use crate::column::Relation;
use crate::error::Result;
use crate::exec::run::Runner;
use crate::host::holds_floats;
use crate::plan::{
    Bound, DeviceAggregate, Frame, RegroupedCall, RegroupedKind, WindowCall, WindowKeys, WindowKind,
};

/// Slots are few up to `FEW_SLOTS`, or up to one for every `ROWS_OF_SLOT` rows.
const FEW_SLOTS: u64 = 1 << 16;
const ROWS_OF_SLOT: u64 = 8;

impl Runner {
    /// Whether partitions by these keys are groups, of few slots.
    pub(super) fn are_groups(&self, flow: &Flow, keys: &[Expr]) -> Result<bool> {
        // 0.0 and −0.0 are one group, but two partitions, as they are for the CPU engine.
        let differs =
            |key: &Expr| key.get_type(&**flow.schema()).map_or(true, |dtype| holds_floats(&dtype));
        if keys.is_empty() || keys.iter().any(differs) {
            return Ok(false);
        }
        let most = FEW_SLOTS.max(flow.source.rows() / ROWS_OF_SLOT);
        Ok(slots_by_keys(&self.device, flow, keys)?.is_some_and(|slots| slots <= most))
    }

    /// The flow's rows in their order, and a further column for each call, all of which are
    /// [over groups](over_group).
    pub(super) fn beside_partitions(
        &self,
        flow: &Flow,
        keys: &WindowKeys,
        calls: &[&WindowCall],
    ) -> Result<Relation> {
        let mut relation = self.relation(OPERATOR, flow)?;
        if relation.rows == 0 {
            return no_rows(&self.device, relation, calls);
        }
        let flow = Flow::new(FlowSource::Relation(relation.clone()), flow.schema().clone());
        let aggregates: Vec<_> = calls.iter().filter_map(|call| over_group(call)).collect();
        let (rows, keys, aggregates) = self.in_place(&flow, &keys.partition, &aggregates)?;
        let partial = self.slots_of_rows(&rows, &keys, &aggregates)?;
        let (_, columns) =
            materialize(&self.device, OPERATOR, &rows, Codes::Keep, |generator, out| {
                aggregates_of_group(&partial, &keys, aggregates.len(), generator, out)
            })?;
        relation.indices.push(None);
        let fresh = relation.indices.len() - 1;
        relation.columns.extend(columns.into_iter().map(|column| (fresh, column)));
        Ok(relation)
    }
}

/// The aggregate of a group that a call is, where the group is its partition and the order of rows
/// does not matter.
pub(super) fn over_group(call: &WindowCall) -> Option<DeviceAggregate> {
    let WindowKeys { partition, order } = &call.keys;
    // All rows of a partition without an order are peers.
    let is_whole =
        |bound: Bound| bound == Bound::Unbounded || order.is_empty() && bound == Bound::Groups(0);
    let Frame { start, end } = call.frame;
    if partition.is_empty() || !is_whole(start) || !is_whole(end) {
        return None;
    }
    let regrouped = |kind: RegroupedKind, arg: &Expr, filter: &Option<Expr>| {
        DeviceAggregate::Regrouped(RegroupedCall {
            kind,
            args: vec![arg.clone()],
            distinct: false,
            filter: filter.clone(),
            order: vec![],
            between: lit(""),
            user: None,
            dtype: call.dtype.clone(),
        })
    };
    Some(match &call.function {
        WindowKind::Aggregate(call) => DeviceAggregate::Fused(call.clone()),
        WindowKind::Variance { arg, filter, of, root } => {
            regrouped(RegroupedKind::Variance { of: *of, root: *root }, arg, filter)
        }
        WindowKind::Bits { arg, filter, bits } => {
            regrouped(RegroupedKind::Bits(*bits), arg, filter)
        }
        // Lists, texts and users' aggregates are made of their rows in the window's order.
        WindowKind::Regrouped(regrouped) if order.is_empty() => {
            DeviceAggregate::Regrouped(regrouped.clone())
        }
        _ => return None,
    })
}
