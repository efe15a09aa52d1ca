//! The first and the last value of each group where nothing is said of an order: those of the least
//! and of the greatest row number. They are accumulated with the other aggregates, without a sort.
//!
//! ```text
//!   k  x    numbers   from the end        first x of k: row 0, 1     last x: row 2 − 0, 2 − 1
//!   a  10   0         2                   a  10                      a  30
//!   b  20   1         1                   b  20                      b  20
//!   a  30   2         0
//! ```
//!
//! The last row is the one whose number from the end is the least: the accumulator then is a row of
//! the relation from its last row on.

use datafusion::arrow::datatypes::DataType;

use super::{OPERATOR, has_no_nulls, with_numbers};
use crate::codegen::{
    AggregateCall, AggregateKind, Flow, FlowSource, GroupOutput, OutputKind, plain_column,
};
use crate::column::{Relation, Repr};
use crate::error::{Error, Result};
use crate::exec::run::{Runner, column_named};
use crate::plan::{DeviceAggregate, RegroupedCall, RegroupedKind};

/// Names of the columns of row numbers, and whether these count from the end.
const NUMBERS: [(&str, bool); 2] = [("row", false), ("row from the end", true)];

/// Calls that became the least of row numbers.
pub(super) struct EndCalls {
    /// The rows in place, with the numbers that calls need as further columns.
    pub(super) flow: Flow,
    pub(super) calls: Vec<DeviceAggregate>,
    /// For each call the column that it picks from; `None` for calls that pick no row.
    picks: Vec<Option<Pick>>,
}

struct Pick {
    /// The rows as they are numbered.
    rows: Relation,
    /// The argument's column.
    at: usize,
    dtype: DataType,
}

/// The argument's column of a call for the first (`false`) or last value in the order of rows.
fn end_of(flow: &Flow, call: &DeviceAggregate) -> Option<(bool, usize)> {
    let DeviceAggregate::Regrouped(call) = call else { return None };
    let RegroupedKind::Place { last, .. } = call.kind else { return None };
    let column = plain_column(flow, call.args.first()?)?;
    (call.order.is_empty() && !call.distinct).then_some((last, column))
}

impl Runner {
    /// The calls of a flow in place, with those for first and last values accumulated like others.
    pub(super) fn with_ends(&self, flow: &Flow, calls: &[DeviceAggregate]) -> Result<EndCalls> {
        let ends: Vec<_> = calls.iter().map(|call| end_of(flow, call)).collect();
        let (mut flow, mut calls) = (flow.clone(), calls.to_vec());
        let mut picks: Vec<Option<Pick>> = calls.iter().map(|_| None).collect();
        if ends.iter().all(Option::is_none) {
            return Ok(EndCalls { flow, calls, picks });
        }
        let FlowSource::Relation(given) = flow.source.clone() else {
            return Err(Error::internal(format!("{OPERATOR}: rows that are not in place")));
        };
        for (name, last) in NUMBERS {
            if !ends.iter().flatten().any(|(of_last, _)| *of_last == last) {
                continue;
            }
            let down = last.then(|| given.rows.saturating_sub(1));
            let numbers = self.row_numbers(OPERATOR, given.rows, down)?;
            let rows = match last {
                true => self.reindexed(given.clone(), given.rows, numbers.clone())?,
                false => given.clone(),
            };
            for (at, end) in ends.iter().enumerate() {
                let Some((_, column)) = end.filter(|(of_last, _)| *of_last == last) else {
                    continue;
                };
                let DeviceAggregate::Regrouped(call) = &calls[at] else { continue };
                let pick = Pick { rows: rows.clone(), at: column, dtype: call.dtype.clone() };
                picks[at] = Some(pick);
                calls[at] = DeviceAggregate::Fused(least_number(name, &flow, call));
            }
            flow = with_numbers(&flow, name, numbers, given.rows)?;
        }
        Ok(EndCalls { flow, calls, picks })
    }
}

impl EndCalls {
    /// The output of a call: where the call picks a row, the value in that row.
    pub(super) fn output(&self, call: usize, output: GroupOutput) -> Result<GroupOutput> {
        let Some(Pick { rows, at, dtype }) = &self.picks[call] else { return Ok(output) };
        match output.value {
            OutputKind::Unordered(accumulator, Repr::U32, None) => Ok(GroupOutput {
                dtype: dtype.clone(),
                value: OutputKind::Pick(accumulator, rows.clone(), *at),
                count: None,
            }),
            other => Err(Error::internal(format!("{OPERATOR}: row numbers became {other:?}"))),
        }
    }
}

/// The least row number of those that the call looks at.
fn least_number(numbers: &str, flow: &Flow, call: &RegroupedCall) -> AggregateCall {
    let skips = matches!(call.kind, RegroupedKind::Place { skip_nulls: true, .. });
    let known =
        (skips && !has_no_nulls(flow, &call.args[0])).then(|| call.args[0].clone().is_not_null());
    let filter = match (call.filter.clone(), known) {
        (Some(filter), Some(known)) => Some(filter.and(known)),
        (filter, known) => filter.or(known),
    };
    let arg = Some(column_named(numbers));
    AggregateCall { kind: AggregateKind::Min, arg, filter, dtype: DataType::UInt32 }
}
