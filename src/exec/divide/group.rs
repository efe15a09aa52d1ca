//! Rows that are not computed yet: plans over placeholders, and what stands for these, part by
//! part.

use std::sync::Arc;

use datafusion::common::DFSchemaRef;
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::chunks::PartInput;
use super::nothing;
use super::stored::StoredRows;
use crate::error::Result;
use crate::plan::placeholder;

/// The rows of groups of parts, one after the other.
#[derive(Debug, Clone)]
pub(super) struct DividedRows {
    pub(super) groups: Vec<PartGroup>,
    pub(super) schema: DFSchemaRef,
}

/// Parts that one plan computes.
#[derive(Debug, Clone)]
pub(super) struct PartGroup {
    /// Over placeholders, which stand for a part's inputs by their numbers.
    pub(super) plan: LogicalPlan,
    /// The input whose rows may come chunk by chunk: what the plan yields of its chunks are the
    /// rows that it yields of all of it.
    pub(super) driving: Option<usize>,
    pub(super) parts: Vec<Vec<PartInput>>,
    /// Of each input, what its rows were parted by, if they can be parted again by that.
    pub(super) keys: Option<Vec<Vec<Expr>>>,
    /// An operator in the plan over the first placeholders, which is what needs a part whole, and
    /// which `undivided.rs` computes otherwise where a part does not fit.
    pub(super) whole: Option<Arc<LogicalPlan>>,
}

impl DividedRows {
    /// The rows of one group; without parts there are none.
    pub(super) fn of(group: PartGroup, schema: &DFSchemaRef) -> DividedRows {
        let groups = if group.parts.is_empty() { vec![] } else { vec![group] };
        DividedRows { groups, schema: schema.clone() }
    }

    /// Rows that are stored, chunk by chunk.
    pub(super) fn stored(stored: StoredRows) -> DividedRows {
        let schema = stored.schema.clone();
        if stored.rows() == 0 {
            return nothing(&schema);
        }
        let plan = placeholder(0, &schema);
        let parts = vec![vec![PartInput::Stored(Arc::new(stored))]];
        DividedRows {
            groups: vec![PartGroup { plan, driving: Some(0), parts, keys: None, whole: None }],
            schema,
        }
    }

    /// Rows that all parts read, if that is known.
    pub(super) fn rows_read(&self) -> Option<u64> {
        let parts = self
            .groups
            .iter()
            .flat_map(|group| group.parts.iter().map(|part| group.rows_read(part)));
        parts.sum()
    }

    /// Applies an operator that takes rows one by one to the plan of each group.
    pub(super) fn through(
        mut self,
        schema: &DFSchemaRef,
        operator: impl Fn(LogicalPlan) -> Result<LogicalPlan>,
    ) -> Result<DividedRows> {
        for group in &mut self.groups {
            group.plan = operator(group.plan.clone())?;
        }
        Ok(DividedRows { schema: schema.clone(), ..self })
    }
}

impl PartGroup {
    /// Rows that a part reads: those that come chunk by chunk, or where none do, all.
    pub(super) fn rows_read(&self, part: &[PartInput]) -> Option<u64> {
        match self.driving {
            Some(number) => part.get(number)?.rows(),
            None => part.iter().map(PartInput::rows).sum(),
        }
    }

    /// The number of the next placeholder.
    pub(super) fn next_input(&self) -> usize {
        self.parts.first().map_or(0, Vec::len)
    }

    /// Adds an input that stands whole beside each part.
    pub(super) fn beside(&mut self, input: PartInput) {
        self.parts.iter_mut().for_each(|part| part.push(input.clone()));
        // The rows of this input are not parted.
        self.keys = None;
    }
}
