//! Joins: one side becomes a table of keys (or a list of candidates, where there is no key), the
//! other side's pipeline compares each row with it.
//!
//! ```text
//!                                at most one candidate a row   several
//!   inner                        a stage of the probe          pairs
//!   left, right                  a stage; no match: nulls      pairs, then rows without a match
//!   full; preserved build side   pairs, then rows without a match of either side
//!   semi, anti, mark             a stage                       a stage; a residual condition has
//!                                                              it loop over the candidates
//! ```
//!
//! Where a semi, anti or mark join keeps the rows of the far smaller side, that side is built, and
//! the other side's pipeline marks the rows that it matches.
//!
//! Inner joins of two large sides are made by partitions (`join_partitioned.rs`). Pairs of row
//! numbers are `join_pairs.rs`'s.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Column as Name, DFSchema, NullEquality};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Expr, Join, JoinType, Operator, binary_expr, build_join_schema, not,
};

use super::join_pairs::Preserved;
use super::run::{Runner, digits_of};
use crate::codegen::join::{build_key, note_key, note_null_key};
use crate::codegen::{
    BuildSide, Candidates, Codes, Emitter, Flow, FlowSource, Generator, Keep, KeyLayout, NullKeys,
    Probe, Residual, Value, for_each, join_layout, keys_inside, materialize,
};
use crate::column::{Column, Relation, Table};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{PipelineJoin, join_cost};
use warpframe_device::Buffer;
use warpframe_device::ops::join::{Assumed, BuildKeys, JoinTable, LookupKind, Payload, Slots};

/// A preserved side is the build side only where it has this many times fewer rows: its rows have
/// to be looked at once more afterwards.
const PRESERVED_BUILD: f64 = 4.0;
/// The factor [`PRESERVED_BUILD`] of a semi join with further conditions, for which the other
/// side's rows would have to be sorted by key.
const PRESERVED_BUILD_LISTS: f64 = 2.0;

/// Bytes that tell which keys there are may be this many (they stay in the second-level cache), or…
const SEEN_ALWAYS: u64 = 1 << 22;
/// … so many for each row, which is less than a table of the rows takes.
const SEEN_PER_ROW: u64 = 8;

/// The inputs of a join by their part in it.
pub(super) struct Sides {
    pub(super) build: Flow,
    pub(super) build_keys: Vec<Expr>,
    pub(super) probe: Flow,
    pub(super) probe_keys: Vec<Expr>,
    pub(super) place: BuildSide,
}

impl Sides {
    fn of(join: &Join, left: Flow, right: Flow) -> Sides {
        use JoinType::*;
        let keyed = !join.on.is_empty() && !join.null_aware;
        let one_sided = !matches!(join.join_type, Inner | Left | Right | Full);
        let factor = match one_sided && join.filter.is_some() {
            true => PRESERVED_BUILD_LISTS,
            false => PRESERVED_BUILD,
        };
        let far_smaller = |a: &Flow, b: &Flow| keyed && a.estimate * factor < b.estimate;
        let build_left = match join.join_type {
            // Between equals the right: by habit the table whose key is unique is joined to the
            // other.
            Full => left.estimate < right.estimate,
            Inner => {
                let unique = |flow: &Flow, key: fn(&(Expr, Expr)) -> &Expr| {
                    let keys: Vec<Expr> = join.on.iter().map(|pair| key(pair).clone()).collect();
                    // Of several keys it is a guess.
                    keys.len() == 1 && assumed(flow, &keys).is_ok_and(|assumed| assumed.unique)
                };
                let (of_left, of_right) =
                    (unique(&left, |pair| &pair.0), unique(&right, |pair| &pair.1));
                let guess = !of_left && !of_right;
                join_cost(left.estimate, of_left || guess, right.estimate)
                    < join_cost(right.estimate, of_right || guess, left.estimate)
            }
            Left | LeftSemi | LeftAnti | LeftMark => far_smaller(&left, &right),
            Right | RightSemi | RightAnti | RightMark => !far_smaller(&right, &left),
        };
        let (left_keys, right_keys): (Vec<Expr>, Vec<Expr>) = join.on.iter().cloned().unzip();
        match build_left {
            true => Sides {
                build: left,
                build_keys: left_keys,
                probe: right,
                probe_keys: right_keys,
                place: BuildSide::Left,
            },
            false => Sides {
                build: right,
                build_keys: right_keys,
                probe: left,
                probe_keys: left_keys,
                place: BuildSide::Right,
            },
        }
    }
}

impl Sides {
    /// The other way round.
    fn swapped(self) -> Sides {
        let place = match self.place {
            BuildSide::Left => BuildSide::Right,
            BuildSide::Right => BuildSide::Left,
        };
        Sides {
            build: self.probe,
            build_keys: self.probe_keys,
            probe: self.build,
            probe_keys: self.build_keys,
            place,
        }
    }
}

/// Whether a probe has to learn the numbers of build rows, or only their columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BuildRowNumbers {
    Wanted,
    Free,
}

/// Build columns are put in the order of their keys where the probe has this many times more rows.
const ORDERED_BUILD: u64 = 4;

/// The name of the column of marks, until it has been looked at.
const MATCHED: &str = "matched in the join";

/// NOT IN among the rows that satisfy `filter`: no such row may be equal, or unknown to differ.
fn not_in_some(join: &Join, filter: &Expr) -> Join {
    let member = join.on.iter().map(|(member, list)| {
        let equal = binary_expr(member.clone(), Operator::Eq, list.clone());
        Expr::IsNotFalse(Box::new(equal))
    });
    let filter = conjunction(member.chain([filter.clone()]));
    Join { on: vec![], filter, null_aware: false, ..join.clone() }
}

/// Whether a value of some row could not be computed.
fn of_row(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Arithmetic { .. })
}

impl Runner {
    /// The join of rows with those of another pipeline.
    pub(super) fn join(&self, left: Result<Flow>, step: &PipelineJoin) -> Result<Flow> {
        use JoinType::*;
        let PipelineJoin { join, right, readers, .. } = step;
        let of_left =
            matches!(join.join_type, Inner | Left | LeftSemi | LeftAnti | LeftMark | RightSemi);
        let of_right =
            matches!(join.join_type, Inner | Right | RightSemi | RightAnti | RightMark | LeftSemi);
        // DataFusion does not look at one side where the other has no rows, and so the join none.
        // Of a side, all that has run is looked at here: to run it again would run it twice as
        // often with every join above.
        let is_empty = |side: &Flow| self.relation("join", side).is_ok_and(|side| side.rows == 0);
        let nothing_unless = |error: Error, is_empty: bool| match is_empty {
            true => self.no_rows(join),
            false => Err(error),
        };
        let left = match left {
            Err(error) if of_row(&error) => {
                let right = of_right.then(|| self.rows_of(*right));
                return nothing_unless(
                    error,
                    right.is_some_and(|right| right.is_ok_and(|right| is_empty(&right))),
                );
            }
            left => left?,
        };
        let right = match self.rows_of(*right) {
            Err(error) if of_row(&error) => {
                return nothing_unless(error, of_left && is_empty(&left));
            }
            right => right?,
        };
        match self.join_sides(join, left.clone(), right.clone(), readers.as_deref()) {
            Err(error) if of_row(&error) => {
                nothing_unless(error, of_left && is_empty(&left) || of_right && is_empty(&right))
            }
            joined => joined,
        }
    }

    fn no_rows(&self, join: &Join) -> Result<Flow> {
        let columns = Table::empty(&self.device, Arc::new(join.schema.as_arrow().clone()))?.columns;
        Ok(Flow::new(FlowSource::Relation(Relation::dense(0, columns)?), join.schema.clone()))
    }

    fn join_sides(
        &self,
        join: &Join,
        left: Flow,
        right: Flow,
        readers: Option<&[Expr]>,
    ) -> Result<Flow> {
        use JoinType::*;
        let conditional;
        let join = match &join.filter {
            Some(filter) if join.null_aware => {
                conditional = not_in_some(join, filter);
                &conditional
            }
            _ => join,
        };
        let sides = Sides::of(join, left, right);
        if let Some(flow) = self.partitioned(join, &sides, readers)? {
            return Ok(flow);
        }
        let build_left = sides.place == BuildSide::Left;
        let preserved = match join.join_type {
            Left => Preserved { probe: !build_left, build: build_left },
            Right => Preserved { probe: build_left, build: !build_left },
            Full => Preserved { probe: true, build: true },
            _ => Preserved { probe: false, build: false },
        };
        let keeps_build = match join.join_type {
            LeftSemi | LeftAnti | LeftMark => build_left,
            RightSemi | RightAnti | RightMark => !build_left,
            _ => false,
        };
        let keep = match join.join_type {
            Inner => Keep::Matched,
            Left | Right | Full => Keep::All,
            LeftSemi | RightSemi => Keep::Semi,
            LeftAnti | RightAnti if join.null_aware => Keep::NotIn { null_seen: None },
            LeftAnti | RightAnti => Keep::Anti,
            LeftMark | RightMark => Keep::Mark,
        };
        if keeps_build {
            let other = sides.swapped();
            // Bytes are cheaper than a table, whichever side they are of.
            return match self.seen(join, &other, &keep)? {
                Some(lookup) => Ok(other.probe.probe(lookup, join.schema.clone())),
                None => self.marked(join, &other.swapped(), &keep),
            };
        }
        let lookup = match self.seen(join, &sides, &keep)? {
            Some(lookup) => lookup,
            None => {
                let numbers =
                    if preserved.build { BuildRowNumbers::Wanted } else { BuildRowNumbers::Free };
                self.lookup(join, &sides, keep, numbers)?
            }
        };
        self.probed(join, sides.probe, lookup, preserved)
    }

    /// Extends the probe's pipeline, or ends it.
    fn probed(
        &self,
        join: &Join,
        probe: Flow,
        lookup: Probe,
        preserved: Preserved,
    ) -> Result<Flow> {
        let mut lookup = lookup;
        let schema = join.schema.clone();
        // How many rows there are a rehearsal does not know, nor where only the keys were looked
        // at.
        let counted =
            !matches!(lookup.candidates, Candidates::Seen { .. }) && !self.device.rehearses();
        let no_rows = lookup.build.rows == 0 && counted;
        match lookup.keep {
            Keep::Matched | Keep::Semi if no_rows => self.no_rows(join),
            Keep::Matched => {
                let residual = lookup.residual.take();
                let mut flow = match lookup.at_most_one() {
                    true => probe.probe(lookup, schema),
                    false => self.expanded(&probe, lookup, preserved, &schema)?,
                };
                for predicate in residual.into_iter().flat_map(|residual| residual.conjuncts) {
                    flow = flow.filter(predicate);
                }
                Ok(flow)
            }
            Keep::All if preserved.build || !lookup.at_most_one() => {
                self.expanded(&probe, lookup, preserved, &schema)
            }
            _ => Ok(probe.probe(lookup, schema)),
        }
    }

    /// Where only the existence of a key counts, and there are few possible keys: a byte for each,
    /// set by the build side's pipeline. `None` where that is not so.
    fn seen(&self, join: &Join, sides: &Sides, keep: &Keep) -> Result<Option<Probe>> {
        if !matches!(keep, Keep::Semi | Keep::Anti | Keep::Mark)
            || join.filter.is_some()
            || join.on.is_empty()
        {
            return Ok(None);
        }
        let flow = &sides.build;
        if flow.source.rows() == 0 {
            return Ok(None);
        }
        let layout = join_layout(flow, &sides.build_keys, null_keys(join), self.device.secret(0))?;
        let most = SEEN_ALWAYS.max(flow.source.rows().saturating_mul(SEEN_PER_ROW));
        let Some(domain) = layout.dense_domain(most) else { return Ok(None) };
        let seen = Arc::new(self.device.alloc_zeroed("join build", domain as usize)?);
        for_each(&self.device, flow, &[&seen], |generator, out| {
            let key = build_key(&layout, &sides.build_keys, generator, out)?;
            note_key(&key, &seen, generator, out);
            Ok(())
        })?;
        let candidates = Candidates::Seen { seen, domain, layout, keys: sides.probe_keys.clone() };
        let build = Relation::dense(0, vec![])?;
        let (place, keep) = (sides.place, keep.clone());
        Ok(Some(Probe {
            candidates,
            build,
            place,
            keep,
            residual: None,
            total: false,
            keys_of: vec![],
        }))
    }

    /// A semi, anti or mark join that keeps rows of the build side: the probe's pipeline marks
    /// those that it matches.
    fn marked(&self, join: &Join, sides: &Sides, keep: &Keep) -> Result<Flow> {
        let lookup = Arc::new(self.lookup(join, sides, Keep::Matched, BuildRowNumbers::Wanted)?);
        let mut kept = lookup.build.clone();
        let matched = Arc::new(self.device.alloc_zeroed("join", kept.rows as usize)?);
        for_each(&self.device, &sides.probe, &[&matched], |generator, out| {
            generator.mark_matches(&lookup, &matched, out)
        })?;
        kept.indices.push(None);
        let column = Column::plain(DataType::Boolean, kept.rows as usize, matched, None);
        kept.columns.push((kept.indices.len() - 1, column));
        if matches!(keep, Keep::Mark) {
            return Ok(Flow::new(FlowSource::Relation(kept), join.schema.clone()));
        }
        let schema = &join.schema;
        let mut fields: Vec<_> =
            schema.iter().map(|(table, field)| (table.cloned(), field.clone())).collect();
        fields.push((None, Arc::new(Field::new(MATCHED, DataType::Boolean, false))));
        let flow = Flow::new(
            FlowSource::Relation(kept),
            Arc::new(DFSchema::new_with_metadata(fields, schema.metadata().clone())?),
        );
        let matched = Expr::Column(Name::new_unqualified(MATCHED));
        let flow = flow.filter(if matches!(keep, Keep::Anti) { not(matched) } else { matched });
        Ok(flow.project(schema.columns().into_iter().map(Expr::Column).collect(), schema.clone()))
    }

    /// Runs the build side.
    fn lookup(
        &self,
        join: &Join,
        sides: &Sides,
        keep: Keep,
        numbers: BuildRowNumbers,
    ) -> Result<Probe> {
        let nulls = null_keys(join);
        let (flow, keys, place) = (&sides.build, &sides.build_keys, sides.place);
        if keys.is_empty() {
            let residual = residual(join, nulls, true)?;
            let build = self.relation("join build", flow)?;
            let candidates = Candidates::Every;
            return Ok(Probe {
                candidates,
                build,
                place,
                keep,
                residual,
                total: false,
                keys_of: vec![],
            });
        }
        let layout = join_layout(flow, keys, nulls, self.device.secret(0))?;
        let residual = residual(join, nulls, layout.is_exact())?;
        let existence = residual.is_none() && !matches!(keep, Keep::Matched | Keep::All);
        let mut keep = keep;
        let mut key_value =
            |generator: &mut Generator<'_>, out: &mut Emitter| -> Result<Vec<Value>> {
                let key = build_key(&layout, keys, generator, out)?;
                if let (Keep::NotIn { null_seen }, true) = (&mut keep, key.may_be_null()) {
                    let seen = Arc::new(self.device.alloc_zeroed("join build", 4)?);
                    note_null_key(&key, null_seen.insert(seen), generator, out);
                }
                Ok(vec![key])
            };
        // Nobody asks for the columns of a row that only exists.
        let columns = 0..if existence { 0 } else { flow.schema().fields().len() };
        let passed_on = match digits_of(flow, keys, &layout)? {
            Some(key) => self.passed_on("join build", flow, columns, &key)?,
            None => None,
        };
        let (build, key) = match passed_on {
            Some(passed_on) => passed_on,
            None if existence => {
                let (rows, key) =
                    materialize(&self.device, "join build", flow, Codes::Keep, key_value)?;
                (Relation::dense(rows, vec![])?, key)
            }
            None => self.relation_with("join build", flow, &mut key_value)?,
        };
        let domain = layout.dense_domain(u64::MAX);
        let wanted = if existence { LookupKind::Existence } else { LookupKind::Rows };
        let (data, valid, rows) = (&key[0].data, key[0].validity.as_deref(), build.rows);
        let numbers = if matches!(keep, Keep::Matched | Keep::All) {
            numbers
        } else {
            BuildRowNumbers::Wanted
        };
        let keys_of = match numbers {
            BuildRowNumbers::Free => keys_of(sides, &layout)?,
            BuildRowNumbers::Wanted => vec![],
        };
        let only =
            (numbers == BuildRowNumbers::Free).then(|| only_payload(&build, &keys_of)).flatten();
        let payload = only.map(|at| {
            let column = &build.columns[at].1;
            Payload {
                values: column.data.slice(column.offset * column.width()),
                width: column.width(),
            }
        });
        let (ordered_probes, assumed) = (sides.ordered_probes(), assumed(flow, keys)?);
        let build_keys = BuildKeys { keys: data, valid, rows, domain, ordered_probes, assumed };
        let mut table = JoinTable::build(&self.device, build_keys, wanted, payload)?;
        let full = valid.is_none() && table.is_full(rows);
        let inside = full
            && matches!(keep, Keep::Matched)
            && keys_inside(&sides.probe, &sides.probe_keys, &layout)?;
        let mut build = build;
        if let (Some(width), Some(at), Slots::Hash(slots)) = (table.payload, only, &table.slots) {
            let column = &build.columns[at].1;
            let column = Column {
                data: slots.clone(),
                offset: 0,
                len: slots.len() / width,
                ..column.clone()
            };
            build.indices.push(None);
            build.columns[at] = (build.indices.len() - 1, column);
        }
        let much_smaller = rows.saturating_mul(ORDERED_BUILD) <= sides.probe.source.rows();
        let mut records = None;
        if numbers == BuildRowNumbers::Free && much_smaller {
            match &table.slots {
                Slots::Direct(order) if full => {
                    build = self.in_key_order(build, &keys_of, order)?;
                    table.slots = Slots::Ordered;
                    records = self.in_records(&mut build, &keys_of)?;
                }
                Slots::Hash(_) | Slots::Ordered if table.unique && table.payload.is_none() => {
                    records = self.in_records(&mut build, &keys_of)?;
                }
                _ => {}
            }
        }
        let keys = sides.probe_keys.clone();
        let candidates = Candidates::Keyed { table: Box::new(table), layout, keys, records };
        Ok(Probe { candidates, build, place, keep, residual, total: inside, keys_of })
    }

    /// The build side's columns by key, so that probes need no row numbers. Columns that are keys
    /// stay as they were: nobody reads them.
    fn in_key_order(
        &self,
        build: Relation,
        keys_of: &[Option<usize>],
        order: &Arc<Buffer>,
    ) -> Result<Relation> {
        let kept: Vec<usize> =
            (0..build.columns.len()).filter(|at| keys_of[*at].is_none()).collect();
        let columns = kept.iter().map(|at| build.columns[*at].clone()).collect();
        let read = Relation { rows: build.rows, indices: build.indices.clone(), columns };
        let rows = build.rows;
        let ordered = self.reindexed(read, rows, order.clone())?;
        let (_, columns) = self.dense("join build", ordered)?;
        let mut build = build;
        build.indices.push(None);
        for (at, column) in kept.into_iter().zip(columns) {
            build.columns[at] = (build.indices.len() - 1, column);
        }
        Ok(build)
    }
}

/// What a rehearsal takes to hold of a build side's keys: several together are unique, and so are
/// groups.
fn assumed(flow: &Flow, keys: &[Expr]) -> Result<Assumed> {
    let (FlowSource::Relation(relation), [key]) = (&flow.source, keys) else {
        return Ok(Assumed { unique: true, ordered: false });
    };
    let Expr::Column(name) = key else { return Ok(Assumed::default()) };
    let origin = flow.origin(flow.schema().index_of_column(name)?);
    Ok(match origin.filter(|(index, _)| relation.indices[*index].is_none()) {
        Some((_, column)) => Assumed {
            unique: column.stats.unique,
            ordered: column.stats.ascending && !flow.drops_rows(),
        },
        None => Assumed::default(),
    })
}

/// For each of the build side's columns the key that it is, if the probe side's is a column of the
/// same type.
pub(super) fn keys_of(sides: &Sides, layout: &KeyLayout) -> Result<Vec<Option<usize>>> {
    let (build, probe) = (sides.build.schema(), sides.probe.schema());
    let mut keys_of = vec![None; build.fields().len()];
    // Equal hashes are not equal keys, and equal floats may differ in sign.
    if !layout.is_exact() {
        return Ok(keys_of);
    }
    for (at, pair) in sides.build_keys.iter().zip(&sides.probe_keys).enumerate() {
        let (Expr::Column(build_key), Expr::Column(probe_key)) = pair else { continue };
        let column = build.index_of_column(build_key)?;
        let (of_build, of_probe) = (
            build.field(column).data_type(),
            probe.field(probe.index_of_column(probe_key)?).data_type(),
        );
        if of_build == of_probe && !of_build.is_floating() {
            keys_of[column] = Some(at);
        }
    }
    Ok(keys_of)
}

/// The one column besides the keys, where it fits a slot: values of 4 or 8 bytes in place, none
/// null.
fn only_payload(build: &Relation, keys_of: &[Option<usize>]) -> Option<usize> {
    let mut others = (0..build.columns.len()).filter(|at| keys_of[*at].is_none());
    let (Some(at), None) = (others.next(), others.next()) else { return None };
    let (index, column) = &build.columns[at];
    (build.indices[*index].is_none()
        && column.validity.is_none()
        && matches!(column.width(), 4 | 8))
    .then_some(at)
}

pub(super) fn null_keys(join: &Join) -> NullKeys {
    match join.null_equality {
        NullEquality::NullEqualsNothing => NullKeys::Skipped,
        NullEquality::NullEqualsNull => NullKeys::Equal,
    }
}

/// What has to hold of a pair besides equal keys; a hashed key only says that the keys may be
/// equal.
pub(super) fn residual(join: &Join, nulls: NullKeys, exact: bool) -> Result<Option<Residual>> {
    let same = match nulls {
        NullKeys::Skipped => Operator::Eq,
        NullKeys::Equal => Operator::IsNotDistinctFrom,
    };
    let mut conjuncts = vec![];
    if !exact {
        conjuncts.extend(join.on.iter().map(|(l, r)| binary_expr(l.clone(), same, r.clone())));
    }
    conjuncts.extend(join.filter.clone().map(split_conjunction_owned).unwrap_or_default());
    if conjuncts.is_empty() {
        return Ok(None);
    }
    let schema = build_join_schema(join.left.schema(), join.right.schema(), &JoinType::Inner)?;
    Ok(Some(Residual { conjuncts, schema: Arc::new(schema) }))
}
