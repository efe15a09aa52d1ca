//! Joins within a pipeline: each row is compared with the build side's candidates, and the first
//! match decides.
//!
//! ```text
//!   u32 found = none;
//!   do {
//!       slot of the row's key in the table, else leave
//!       for each row `c` of that slot { if residual(row, c) { found = c; leave } }
//!   } while (0);
//! ```
//!
//! The loop over candidates is there only where a key may repeat and something beside the key
//! decides.

use std::sync::Arc;

use datafusion::common::DFSchemaRef;
use datafusion::logical_expr::Expr;

use super::{Generator, Level, LevelKind, Pass};
use crate::codegen::device_function::PAIR_FIND;
use crate::codegen::emit::Emitter;
use crate::codegen::flow::{Candidates, Flow, Keep, Probe, Residual, SideColumn};
use crate::codegen::keys::{KeyLayout, NullKeys};
use crate::codegen::value::Value;
use crate::column::NO_ROW;
use crate::error::Result;
use warpframe_device::Buffer;
use warpframe_device::ops::join::{JoinTable, Slots};

impl Probe {
    /// C++ expression of the number of the element that row `row` of the build side has in its
    /// column `at`: columns of records lie side by side.
    pub(super) fn element(&self, at: usize, row: &str) -> String {
        match &self.candidates {
            Candidates::Keyed { records: Some(records), .. } if records.held[at] => {
                format!("({row} * {})", records.bytes / self.build.columns[at].1.width())
            }
            _ => row.to_string(),
        }
    }
}

impl Probe {
    /// Whether all that is read of a match are its keys, which the probe's row has, too.
    fn reads_keys_alone(&self) -> bool {
        self.at_most_one() && !self.keys_of.is_empty() && self.keys_of.iter().all(Option::is_some)
    }
}

/// What to do with a match.
#[derive(Clone, Copy)]
enum Hit<'a> {
    /// Store its number to the variable of this name, and look no further.
    First(&'a str),
    /// Store 1 to its place in the array of this name, and go on.
    Each(&'a str),
}

/// The candidates of a row as a range, for pairs that are written out.
pub(crate) struct CandidateRange {
    /// C++ name of where the range begins, see [`Probe::candidates_by_place`].
    pub(crate) begin: String,
    /// C++ name of its length.
    pub(crate) count: String,
}

impl Probe {
    /// The candidates by place, where places are not their numbers.
    pub(crate) fn candidates_by_place(&self) -> Option<&Buffer> {
        match &self.candidates {
            Candidates::Keyed { table, .. } => table.rows.as_ref(),
            Candidates::Seen { .. } | Candidates::Every => None,
        }
    }
}

/// How the keys of a join would be laid out, were this flow its build side; `secret` is the
/// device's.
pub(crate) fn join_layout(
    flow: &Flow,
    keys: &[Expr],
    nulls: NullKeys,
    secret: u64,
) -> Result<KeyLayout> {
    let (mut generator, mut out) = (Generator::new(flow), Emitter::default());
    generator.stages(Pass::Decide, &mut out)?;
    let values =
        keys.iter().map(|key| generator.expr(key, &mut out)).collect::<Result<Vec<_>>>()?;
    Ok(KeyLayout::of(&values, nulls, false, secret))
}

/// Whether no row of the flow can have a key that is null or out of the layout's range.
pub(crate) fn keys_inside(flow: &Flow, keys: &[Expr], layout: &KeyLayout) -> Result<bool> {
    let (mut generator, mut out) = (Generator::new(flow), Emitter::default());
    generator.stages(Pass::Decide, &mut out)?;
    let values =
        keys.iter().map(|key| generator.expr(key, &mut out)).collect::<Result<Vec<_>>>()?;
    if values.iter().any(|value| value.valid.is_some()) {
        return Ok(false);
    }
    Ok(layout.emit(&values, &mut generator.params, &mut out).1.is_none())
}

impl Generator<'_> {
    pub(super) fn probe(
        &mut self,
        probe: &Arc<Probe>,
        schema: &DFSchemaRef,
        pass: Pass,
        out: &mut Emitter,
    ) -> Result<()> {
        let before = self.schema().fields().len();
        let carried = format!("found{}", self.probes);
        self.probes += 1;
        let found = match pass {
            Pass::Carried => format!("{carried}[k]"),
            Pass::Decide | Pass::DecideAndCarry => {
                let found = self.find(probe, out)?;
                let leave = match probe.keep {
                    _ if probe.keeps_all() => None,
                    Keep::Matched | Keep::Semi => Some("=="),
                    Keep::Anti | Keep::NotIn { .. } => Some("!="),
                    Keep::All | Keep::Mark => None,
                };
                if let Some(test) = leave {
                    out.leave_if(format_args!("{found} {test} {NO_ROW}"));
                }
                if pass == Pass::DecideAndCarry
                    && matches!(probe.keep, Keep::Matched | Keep::All | Keep::Mark)
                {
                    self.carried.push(carried.clone());
                    out.line(format_args!("{carried}[k] = {found};"));
                }
                found
            }
        };
        let matched = format!("({found} != {NO_ROW})");
        let kind = match probe.keep {
            Keep::Matched => {
                LevelKind::Probe { probe: probe.clone(), row: found, present: None, before }
            }
            Keep::All => LevelKind::Probe {
                probe: probe.clone(),
                row: found,
                present: Some(matched),
                before,
            },
            Keep::Mark => LevelKind::Mark { matched, before },
            Keep::Semi | Keep::Anti | Keep::NotIn { .. } => {
                if let Some(level) = self.levels.last_mut() {
                    level.schema = schema.clone();
                }
                return Ok(());
            }
        };
        self.levels.push(Level { schema: schema.clone(), kind, known: Default::default() });
        Ok(())
    }

    /// Emits the search for a match: the name of its row, [`NO_ROW`] where there is none.
    fn find(&mut self, probe: &Arc<Probe>, out: &mut Emitter) -> Result<String> {
        let values = self.probe_keys(probe, out)?;
        if let (Keep::NotIn { null_seen }, true) = (&probe.keep, probe.build.rows > 0) {
            if let Some(seen) = null_seen {
                let seen = self.params.pointer("const u32", seen, 0);
                out.leave_if(format_args!("*{seen} != 0"));
            }
            for valid in values.iter().filter_map(|value| value.valid.as_ref()) {
                out.leave_if(format_args!("!({valid})"));
            }
        }
        // What follows is loaded only for rows that match.
        self.eager_open &= probe.total;
        let loops = match &probe.candidates {
            Candidates::Keyed { table, .. } => table.rows.is_some(),
            Candidates::Seen { .. } => false,
            Candidates::Every => true,
        };
        if let (true, Some(residual)) = (loops, &probe.residual) {
            self.load_ahead(probe, residual, out)?;
        }
        let found = out.fresh();
        out.variable("u32", &found, NO_ROW);
        out.scope("");
        // What is computed in there is out of scope afterwards.
        let known: Vec<_> = self.levels.iter().map(|level| level.known.clone()).collect();
        self.search(probe, &values, Hit::First(&found), out)?;
        for (level, known) in self.levels.iter_mut().zip(known) {
            level.known = known;
        }
        out.close("} while (0);");
        Ok(found)
    }

    /// Emits the probe side's columns that a residual condition reads.
    fn load_ahead(&mut self, probe: &Probe, residual: &Residual, out: &mut Emitter) -> Result<()> {
        let before = self.schema().fields().len();
        for name in residual.conjuncts.iter().flat_map(|conjunct| conjunct.column_refs()) {
            let at = residual.schema.index_of_column(name)?;
            if let SideColumn::Probe(at) = probe.column(at, before) {
                self.column(at, out)?;
            }
        }
        Ok(())
    }

    /// Emits a store of 1 to the byte of every build row that this row matches.
    pub(crate) fn mark_matches(
        &mut self,
        probe: &Arc<Probe>,
        matched: &Arc<Buffer>,
        out: &mut Emitter,
    ) -> Result<()> {
        let values = self.probe_keys(probe, out)?;
        if let Some(residual) = &probe.residual {
            self.load_ahead(probe, residual, out)?;
        }
        let matched = self.params.pointer("u8", matched, 0);
        self.search(probe, &values, Hit::Each(&matched), out)
    }

    /// Emits the comparison with the candidates, in a scope that `break` leaves.
    fn search(
        &mut self,
        probe: &Arc<Probe>,
        values: &[Value],
        hit: Hit<'_>,
        out: &mut Emitter,
    ) -> Result<()> {
        let reads_row =
            matches!(probe.keep, Keep::Matched | Keep::All) && !probe.reads_keys_alone();
        let only_existence = matches!(hit, Hit::First(_)) && !reads_row;
        let candidate = out.fresh();
        let loops = match &probe.candidates {
            Candidates::Every if probe.build.rows == 0 => {
                out.leave();
                return Ok(());
            }
            Candidates::Every
                if probe.build.rows == 1 || (only_existence && probe.residual.is_none()) =>
            {
                out.constant("u32", &candidate, "0");
                false
            }
            Candidates::Every => {
                let rows = self.params.word("u64", probe.build.rows);
                out.repeat(format_args!(
                    "for (u32 {candidate} = 0; {candidate} < {rows}; ++{candidate})"
                ));
                true
            }
            Candidates::Seen { seen, domain, layout, .. } => {
                let key = self.key(layout, values, out);
                let domain = self.params.word("u64", *domain);
                let seen = self.params.pointer("const u8", seen, 0);
                out.leave_if(format_args!("{key} >= {domain} || {seen}[{key}] == 0"));
                out.constant("u32", &candidate, "0");
                false
            }
            Candidates::Keyed { table, layout, .. } => {
                let exists = only_existence && probe.residual.is_none();
                self.keyed_candidate((table, layout), values, exists, &candidate, out)
            }
        };
        if let Hit::Each(matched) = hit {
            pass_over(loops, format_args!("{matched}[{candidate}] != 0"), out);
        }
        if let Some(residual) = &probe.residual {
            self.test(probe, residual, &candidate, loops, out)?;
        }
        match hit {
            Hit::First(found) => {
                out.line(format_args!("{found} = {candidate};"));
                if loops {
                    out.leave();
                }
            }
            Hit::Each(matched) => out.line(format_args!("{matched}[{candidate}] = 1;")),
        }
        if loops {
            out.close("}");
        }
        Ok(())
    }

    /// Emits the candidate of a key, or a loop over its candidates; whether it is a loop. `exists`:
    /// nobody asks which row it is.
    fn keyed_candidate(
        &mut self,
        (table, layout): (&JoinTable, &KeyLayout),
        values: &[Value],
        exists: bool,
        candidate: &str,
        out: &mut Emitter,
    ) -> bool {
        if exists && table.present.is_some() {
            let key = self.key(layout, values, out);
            self.leave_unless_present(table, &key, out);
            out.constant("u32", candidate, "0");
            return false;
        }
        let slot = self.slot(table, layout, values, out);
        let Some(rows) = &table.rows else {
            // A key is in a hash table only if a row has it.
            if exists && matches!(table.slots, Slots::Hash(_)) {
                out.constant("u32", candidate, "0");
                return false;
            }
            let row = self.candidate_of(table, &slot);
            out.constant("u32", candidate, &row);
            if matches!(table.slots, Slots::Direct(_)) {
                out.leave_if(format_args!("{candidate} == {NO_ROW}"));
            }
            return false;
        };
        let rows = self.params.borrowed("const u32", rows);
        let (begin, end) = self.bounds_of(table, &slot, out);
        let at = out.fresh();
        out.repeat(format_args!("for (u32 {at} = {begin}; {at} < {end}; ++{at})"));
        out.constant("u32", candidate, format_args!("{rows}[{at}]"));
        true
    }

    /// Emits the residual conditions on a candidate, which is passed over where one does not hold.
    fn test(
        &mut self,
        probe: &Arc<Probe>,
        residual: &Residual,
        candidate: &str,
        loops: bool,
        out: &mut Emitter,
    ) -> Result<()> {
        let before = self.schema().fields().len();
        let kind = LevelKind::Probe {
            probe: probe.clone(),
            row: candidate.to_string(),
            present: None,
            before,
        };
        self.levels.push(Level {
            schema: residual.schema.clone(),
            kind,
            known: Default::default(),
        });
        for conjunct in &residual.conjuncts {
            let holds = self.expr(conjunct, out)?;
            pass_over(loops, format_args!("!({})", holds.truth()), out);
        }
        self.levels.pop();
        Ok(())
    }

    fn probe_keys(&mut self, probe: &Probe, out: &mut Emitter) -> Result<Vec<Value>> {
        match &probe.candidates {
            Candidates::Keyed { keys, .. } | Candidates::Seen { keys, .. } => {
                keys.iter().map(|key| self.expr(key, out)).collect()
            }
            Candidates::Every => Ok(vec![]),
        }
    }

    /// Emits where the candidates of the row are; of length 0 where there are none.
    pub(in crate::codegen) fn candidates(
        &mut self,
        probe: &Probe,
        out: &mut Emitter,
    ) -> Result<CandidateRange> {
        let values = self.probe_keys(probe, out)?;
        let (begin, count) = (out.fresh(), out.fresh());
        out.variable("u32", &begin, "0");
        out.variable("u32", &count, "0");
        out.scope("");
        match &probe.candidates {
            Candidates::Every => {
                let rows = self.params.word("u64", probe.build.rows);
                out.line(format_args!("{count} = (u32){rows};"));
            }
            Candidates::Seen { .. } => {}
            Candidates::Keyed { table, layout, .. } => {
                let slot = self.slot(table, layout, &values, out);
                match table.rows {
                    Some(_) => {
                        let (first, end) = self.bounds_of(table, &slot, out);
                        out.line(format_args!("{begin} = {first};"));
                        out.line(format_args!("{count} = {end} - {begin};"));
                    }
                    None => {
                        let row = self.candidate_of(table, &slot);
                        out.line(format_args!("{begin} = {row};"));
                        out.line(format_args!("{count} = {begin} != {NO_ROW} ? 1 : 0;"));
                    }
                }
            }
        }
        out.close("} while (0);");
        Ok(CandidateRange { begin, count })
    }

    /// Emits the key, breaking where it is null or out of the layout's range.
    pub(crate) fn key(
        &mut self,
        layout: &KeyLayout,
        values: &[Value],
        out: &mut Emitter,
    ) -> String {
        for (value, field) in values.iter().zip(&layout.fields) {
            if let (Some(valid), false) = (&value.valid, field.nullable) {
                out.leave_if(format_args!("!({valid})"));
            }
        }
        let (key, outside) = layout.emit(values, &mut self.params, out);
        if let Some(outside) = outside {
            out.leave_if(outside);
        }
        key
    }

    /// Emits the lookup of the key's slot, breaking where there is none.
    fn slot(
        &mut self,
        table: &JoinTable,
        layout: &KeyLayout,
        values: &[Value],
        out: &mut Emitter,
    ) -> String {
        let key = self.key(layout, values, out);
        self.leave_unless_present(table, &key, out);
        match &table.slots {
            Slots::Hash(slots) => {
                let slots = self.params.pointer("const u64", slots, 0);
                let mask = self.params.word("u64", table.mask_or_domain);
                let secret = self.params.word("u64", table.secret);
                let find = out.calls(PAIR_FIND);
                let slot =
                    out.let_("u64", format_args!("{find}({slots}, {mask}, {key}, {secret})"));
                out.leave_if(format_args!("{slot} == HASH_NONE"));
                slot
            }
            Slots::Direct(_) | Slots::Ordered => {
                let domain = self.params.word("u64", table.mask_or_domain);
                out.leave_if(format_args!("{key} >= {domain}"));
                key
            }
        }
    }

    /// Emits that a row leaves whose key is not among those of a table that knows its keys.
    fn leave_unless_present(&mut self, table: &JoinTable, key: &str, out: &mut Emitter) {
        let Some(present) = &table.present else { return };
        let bits = self.params.pointer("const u32", &present.bits, 0);
        let domain = self.params.word("u64", present.domain);
        out.leave_if(format_args!(
            "{key} >= {domain} || ({bits}[{key} / 32] >> (u32)({key} % 32) & 1u) == 0"
        ));
    }

    /// C++ expression of the one candidate of a slot.
    fn candidate_of(&mut self, table: &JoinTable, slot: &str) -> String {
        match (&table.slots, table.payload) {
            (Slots::Ordered, _) => format!("(u32){slot}"),
            (Slots::Direct(starts), _) => {
                format!("{}[{slot}]", self.params.pointer("const u32", starts, 0))
            }
            (Slots::Hash(slots), None) => {
                format!("(u32)pair_value({}, {slot})", self.params.pointer("const u64", slots, 0))
            }
            // Payloads lie where values do: of the table as a column of payloads, this element.
            (Slots::Hash(_), Some(width)) => {
                format!("(u32)({slot} * {} + {})", 16 / width, 8 / width)
            }
        }
    }

    /// C++ expressions of where the list of a slot's rows begins and ends.
    fn bounds_of(&mut self, table: &JoinTable, slot: &str, out: &mut Emitter) -> (String, String) {
        match &table.slots {
            Slots::Hash(slots) => {
                let slots = self.params.pointer("const u64", slots, 0);
                let bounds = out.let_("u64", format_args!("pair_value({slots}, {slot})"));
                (format!("(u32){bounds}"), format!("(u32)({bounds} >> 32)"))
            }
            Slots::Direct(starts) => {
                let starts = self.params.pointer("const u32", starts, 0);
                (format!("{starts}[2 * {slot}]"), format!("{starts}[2 * {slot} + 1]"))
            }
            Slots::Ordered => (format!("(u32){slot}"), format!("(u32){slot} + 1")),
        }
    }
}

/// Emits that a candidate is passed over where the condition holds: in a loop with the next, else
/// with the row.
fn pass_over(loops: bool, condition: std::fmt::Arguments<'_>, out: &mut Emitter) {
    match loops {
        true => out.line(format_args!("if ({condition}) continue;")),
        false => out.leave_if(condition),
    }
}
