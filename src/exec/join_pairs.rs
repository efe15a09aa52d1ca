//! Joins whose rows may match several others: pairs of row numbers are written, balanced over
//! threads by output, and become a relation that looks through them into both sides.
//!
//! ```text
//!   matches of each probe row     2 0 1        pairs   probe  0 0 2
//!   scan of counts                0 2 2 3              build  4 7 4
//! ```
//!
//! An outer join appends rows without a match, whose number on the other side says that there is no
//! row. Where nothing but the key decides, probe rows without a match get such a pair at once; else
//! bytes remember which rows matched.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchemaRef;
use datafusion::prelude::not;

use super::run::{Runner, anonymous, column_named, u32_column};
use crate::codegen::join::{candidates, note_match};
use crate::codegen::row_number::row_number;
use crate::codegen::{
    BuildSide, Codes, Flow, FlowSource, Probe, Residual, for_each, materialize,
    materialize_uncompacted,
};
use crate::column::{Column, Index, Relation, Rows, WantedColumn};
use crate::error::{Error, ErrorKind, Result};
use warpframe_device::Buffer;
use warpframe_device::ops::join::{CandidateLists, expand_pairs};
use warpframe_device::ops::scan::exclusive_scan_u32;

/// The sides of a join whose rows come out even without a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Preserved {
    pub(super) probe: bool,
    pub(super) build: bool,
}

/// A pair is two row numbers of 32 bits.
const BYTES_OF_A_PAIR: u64 = 8;

/// Numbers (`u32`) of rows that belong together.
struct Pairs {
    rows: u64,
    probe: Arc<Buffer>,
    build: Arc<Buffer>,
}

/// A byte for each row of a side, not zero where the row has a match; `None` where nobody asks.
struct Matched {
    probe: Option<Arc<Buffer>>,
    build: Option<Arc<Buffer>>,
}

impl Runner {
    /// All pairs of matching rows and the preserved sides' rows without a match.
    pub(super) fn expanded(
        &self,
        probe: &Flow,
        lookup: Probe,
        preserved: Preserved,
        schema: &DFSchemaRef,
    ) -> Result<Flow> {
        let residual = lookup.residual.as_ref();
        let padded = preserved.probe && residual.is_none();
        let (probe, begins, counts) = self.candidates(probe, &lookup, padded)?;
        let mut pairs = self.pairs(probe.rows, &begins, &counts, &lookup)?;
        let bytes = |wanted: bool, rows: u64| -> Result<Option<Arc<Buffer>>> {
            let bytes = wanted.then(|| self.device.alloc_zeroed("join", rows as usize));
            Ok(bytes.transpose()?.map(Arc::new))
        };
        let matched = Matched {
            probe: bytes(preserved.probe && residual.is_some(), probe.rows)?,
            build: bytes(preserved.build, lookup.build.rows)?,
        };
        match residual {
            Some(residual) => {
                let joined =
                    self.joined(&probe, &lookup, &pairs, Preserved { probe: false, build: false })?;
                pairs = self.confirmed(joined, &pairs, residual)?;
                // Not while the condition is looked at, which is done again where its strings and
                // lists need more room.
                self.mark(&pairs, &matched)?;
            }
            None => self.mark(&pairs, &matched)?,
        }
        let lone_probe = self.unmatched(matched.probe, probe.rows)?;
        let lone_build = self.unmatched(matched.build, lookup.build.rows)?;
        let rows = pairs.rows
            + lone_probe.as_ref().map_or(0, rows_of)
            + lone_build.as_ref().map_or(0, rows_of);
        if rows > pairs.rows {
            let (first, second) = (lone_probe.as_ref(), lone_build.as_ref());
            let skipped = pairs.rows + first.map_or(0, rows_of);
            let probe = self.numbers(
                rows,
                (&pairs.probe, pairs.rows),
                first.map(|lone| (lone, pairs.rows)),
            )?;
            let build =
                self.numbers(rows, (&pairs.build, pairs.rows), second.map(|lone| (lone, skipped)))?;
            pairs = Pairs { rows, probe, build };
        }
        let joined = self.joined(&probe, &lookup, &pairs, preserved)?;
        Ok(Flow::new(FlowSource::Relation(joined), schema.clone()))
    }

    /// Runs the probe's pipeline and finds for each of its rows where its candidates begin, and how
    /// many they are. `padded`: a row without any has one that is no row.
    fn candidates(
        &self,
        probe: &Flow,
        lookup: &Probe,
        padded: bool,
    ) -> Result<(Relation, Column, Column)> {
        let (relation, mut found) = self.relation_with("join probe", probe, |generator, out| {
            candidates(lookup, padded, generator, out)
        })?;
        match (found.pop(), found.pop()) {
            (Some(counts), Some(begins)) => Ok((relation, begins, counts)),
            _ => Err(Error::internal("join: no matches were counted")),
        }
    }

    fn pairs(
        &self,
        probe_rows: u64,
        begins: &Column,
        counts: &Column,
        lookup: &Probe,
    ) -> Result<Pairs> {
        let offsets = exclusive_scan_u32(&self.device, &counts.data, probe_rows)?;
        let total = offsets.read_word_or(probe_rows as usize * 8, probe_rows)?;
        self.numbered_pairs(total)?;
        let begins = begins.data.slice(begins.offset * 4);
        let lists = CandidateLists { begins, rows: lookup.candidates_by_place() };
        let (probe, build) = expand_pairs(&self.device, &offsets, lists, probe_rows, total)?;
        Ok(Pairs { rows: total, probe: Arc::new(probe), build: Arc::new(build) })
    }

    /// The pairs for which the condition holds; `joined` is what they look at.
    fn confirmed(&self, joined: Relation, pairs: &Pairs, residual: &Residual) -> Result<Pairs> {
        let mut flow = Flow::new(FlowSource::Relation(joined), residual.schema.clone());
        for conjunct in &residual.conjuncts {
            flow = flow.filter(conjunct.clone());
        }
        let found =
            materialize_uncompacted(&self.device, "join condition", &flow, |_, _| Ok(vec![]))?;
        let sides =
            [&pairs.probe, &pairs.build].map(|numbers| u32_column(numbers.clone(), 0, pairs.rows));
        let sides = Relation::dense(pairs.rows, sides.into())?;
        let (rows, both) =
            (Rows::Kept(&found.kept_rows, found.kept), [0, 1].map(WantedColumn::Column));
        let kept = sides.gathered(&self.device, "join condition", rows, both)?;
        Ok(Pairs { rows: found.kept, probe: kept[0].data.clone(), build: kept[1].data.clone() })
    }

    /// Notes which rows of the sides occur in the pairs.
    fn mark(&self, pairs: &Pairs, matched: &Matched) -> Result<()> {
        let sides = [(&pairs.probe, &matched.probe), (&pairs.build, &matched.build)];
        let sides: Vec<_> =
            sides.into_iter().filter_map(|(rows, marks)| Some((rows, marks.as_ref()?))).collect();
        if sides.is_empty() {
            return Ok(());
        }
        let flow =
            Flow::new(FlowSource::Relation(Relation::dense(pairs.rows, vec![])?), anonymous(&[])?);
        let marks: Vec<_> = sides.iter().map(|(_, marks)| *marks).collect();
        for_each(&self.device, &flow, &marks, |generator, out| {
            for (rows, marks) in &sides {
                note_match(rows, marks, generator, out);
            }
            Ok(())
        })
    }

    /// Numbers of the rows whose byte is zero, ascending.
    fn unmatched(&self, matched: Option<Arc<Buffer>>, rows: u64) -> Result<Option<Column>> {
        let Some(matched) = matched else { return Ok(None) };
        let column = Column::plain(DataType::Boolean, rows as usize, matched, None);
        let flow = Flow::new(
            FlowSource::Relation(Relation::dense(rows, vec![column])?),
            anonymous(&[DataType::Boolean])?,
        );
        let (_, mut lone) = materialize(
            &self.device,
            "join",
            &flow.filter(not(column_named("c0"))),
            Codes::Keep,
            |generator, out| Ok(vec![row_number(None, generator, out)]),
        )?;
        Ok(lone.pop())
    }

    /// Fails with `OutOfDeviceMemory` where 32 bits do not number the pairs: the plan is then
    /// divided, and each part has fewer.
    fn numbered_pairs(&self, pairs: u64) -> Result<()> {
        if pairs < u64::from(u32::MAX) {
            return Ok(());
        }
        let memory = self.device.memory();
        let free = memory.limit.saturating_sub(memory.used);
        let asked = pairs.saturating_mul(BYTES_OF_A_PAIR);
        let (limit, used, cached) = (memory.limit, memory.used, memory.evictable);
        Err(ErrorKind::OutOfDeviceMemory {
            operator: "join",
            asked,
            free,
            limit,
            used,
            cached,
            kept: 0,
        }
        .into())
    }

    /// The first numbers, and behind them, from some row on, others; no row elsewhere.
    fn numbers(
        &self,
        rows: u64,
        first: (&Buffer, u64),
        then: Option<(&Column, u64)>,
    ) -> Result<Arc<Buffer>> {
        self.numbered_pairs(rows)?;
        let numbers = self.device.alloc_filled("join", rows as usize * 4, 0xFF)?;
        numbers.copy_from(0, first.0, 0, first.1 as usize * 4)?;
        if let Some((lone, at)) = then {
            numbers.copy_from(at as usize * 4, &lone.data, lone.offset * 4, lone.len * 4)?;
        }
        Ok(Arc::new(numbers))
    }

    /// Both sides' columns through the pairs.
    fn joined(
        &self,
        probe: &Relation,
        lookup: &Probe,
        pairs: &Pairs,
        preserved: Preserved,
    ) -> Result<Relation> {
        let index = |rows: &Arc<Buffer>, gaps: bool| Index { gaps, ..Index::of_rows(rows.clone()) };
        let probe =
            self.through(probe.clone(), pairs.rows, index(&pairs.probe, preserved.build))?;
        let build =
            self.through(lookup.build.clone(), pairs.rows, index(&pairs.build, preserved.probe))?;
        Ok(match lookup.place {
            BuildSide::Left => zipped(build, probe),
            BuildSide::Right => zipped(probe, build),
        })
    }
}

fn rows_of(column: &Column) -> u64 {
    column.len as u64
}

/// Columns of both, side by side.
fn zipped(left: Relation, right: Relation) -> Relation {
    let behind = left.indices.len();
    let mut joined = left;
    joined.indices.extend(right.indices);
    joined
        .columns
        .extend(right.columns.into_iter().map(|(index, column)| (index + behind, column)));
    joined
}
