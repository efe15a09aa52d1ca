//! Joins: one side becomes a table of keys (or a list of candidates, where there is no key), the other side's pipeline
//! compares each row with it.
//!
//! ```text
//!                                  at most one candidate a row      several
//!   inner                          a stage of the probe             pairs
//!   left, right                    a stage; no match, null columns  pairs, then rows without a match
//!   full; preserved build side     pairs, then rows without a match of either side
//!   semi, anti, mark               a stage; where a residual condition decides, a loop over the candidates in it
//! ```
//!
//! Where a semi, anti or mark join keeps the rows of the far smaller side, that side is built, and the other side's
//! pipeline marks the rows that it matches.
//!
//! Pairs of row numbers are `join_pairs.rs`'s.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Column as Name, DFSchema, NullEquality};
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{Expr, Join, JoinType, Operator, binary_expr, build_join_schema, not};

use super::join_pairs::Preserved;
use super::run::Runner;
use crate::codegen::{
    BuildSide, Candidates, Codes, Emitter, Flow, Generator, Keep, KeyLayout, NullKeys, Probe, Residual, Source, Value,
    for_each, join_layout, materialize,
};
use crate::column::{Column, Relation};
use crate::device::Buffer;
use crate::error::Result;
use crate::ops::join::{JoinTable, Wanted};

/// A preserved side is the build side only where it has this many times fewer rows: its rows have to be looked at once
/// more afterwards.
const PRESERVED_BUILD: f64 = 4.0;
/// The same where a semi join has further conditions, for which the other side's rows would have to be sorted by key.
const PRESERVED_BUILD_LISTS: f64 = 2.0;

/// Bytes that tell which keys there are may be this many (they stay in the second-level cache), or…
const SEEN_ALWAYS: u64 = 1 << 22;
/// … so many for each row, which is less than a table of the rows takes.
const SEEN_PER_ROW: u64 = 8;

/// The inputs of a join by their part in it.
struct Sides {
    build: Flow,
    build_keys: Vec<Expr>,
    probe: Flow,
    probe_keys: Vec<Expr>,
    place: BuildSide,
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
            // Between equals the right: by habit the table whose key is unique is joined to the other.
            Inner | Full => left.estimate < right.estimate,
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
        Sides { build: self.probe, build_keys: self.probe_keys, probe: self.build, probe_keys: self.build_keys, place }
    }
}

/// The name of the column of marks, until it has been looked at.
const MATCHED: &str = "matched in the join";

impl Runner {
    pub(super) fn join(&self, join: &Join) -> Result<Flow> {
        use JoinType::*;
        let sides = Sides::of(join, self.flow(&join.left)?, self.flow(&join.right)?);
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
            None => self.lookup(join, &sides, keep)?,
        };
        self.probed(join, sides.probe, lookup, preserved)
    }

    /// Extends the probe's pipeline, or ends it.
    fn probed(&self, join: &Join, probe: Flow, lookup: Probe, preserved: Preserved) -> Result<Flow> {
        let mut lookup = lookup;
        let schema = join.schema.clone();
        match lookup.keep {
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
            Keep::All if preserved.build || !lookup.at_most_one() => self.expanded(&probe, lookup, preserved, &schema),
            _ => Ok(probe.probe(lookup, schema)),
        }
    }

    /// Where only the existence of a key counts, and there are few possible keys: a byte for each, set by the build
    /// side's pipeline. `None` where that is not so.
    fn seen(&self, join: &Join, sides: &Sides, keep: &Keep) -> Result<Option<Probe>> {
        if !matches!(keep, Keep::Semi | Keep::Anti | Keep::Mark) || join.filter.is_some() || join.on.is_empty() {
            return Ok(None);
        }
        let flow = &sides.build;
        let layout = join_layout(flow, &sides.build_keys, null_keys(join))?;
        let most = SEEN_ALWAYS.max(flow.source.rows().saturating_mul(SEEN_PER_ROW));
        let Some(domain) = layout.dense_domain(most) else { return Ok(None) };
        let seen = Arc::new(self.device.alloc_zeroed("join build", domain as usize)?);
        for_each(&self.device, flow, |generator, out| {
            let (key, valid) = emit_key(&layout, &sides.build_keys, generator, out)?;
            let seen = generator.params.pointer("u8", &seen, 0);
            let valid = valid.map_or(String::new(), |valid| format!("if ({valid}) "));
            out.line(format!("{valid}{seen}[{key}] = 1;"));
            Ok(())
        })?;
        let candidates = Candidates::Seen { seen, domain, layout, keys: sides.probe_keys.clone() };
        let build = Relation::dense(0, vec![]);
        Ok(Some(Probe { candidates, build, place: sides.place, keep: keep.clone(), residual: None }))
    }

    /// A semi, anti or mark join that keeps rows of the build side: the probe's pipeline marks those that it matches.
    fn marked(&self, join: &Join, sides: &Sides, keep: &Keep) -> Result<Flow> {
        let lookup = Arc::new(self.lookup(join, sides, Keep::Matched)?);
        let mut kept = lookup.build.clone();
        let matched = Arc::new(self.device.alloc_zeroed("join", kept.rows as usize)?);
        for_each(&self.device, &sides.probe, |generator, out| generator.mark_matches(&lookup, &matched, out))?;
        kept.indices.push(None);
        let column = Column::plain(DataType::Boolean, kept.rows as usize, matched, None);
        kept.columns.push((kept.indices.len() - 1, column));
        if matches!(keep, Keep::Mark) {
            return Ok(Flow::new(Source::Relation(kept), join.schema.clone()));
        }
        let schema = &join.schema;
        let mut fields: Vec<_> = schema.iter().map(|(table, field)| (table.cloned(), field.clone())).collect();
        fields.push((None, Arc::new(Field::new(MATCHED, DataType::Boolean, false))));
        let flow = Flow::new(
            Source::Relation(kept),
            Arc::new(DFSchema::new_with_metadata(fields, schema.metadata().clone())?),
        );
        let matched = Expr::Column(Name::new_unqualified(MATCHED));
        let flow = flow.filter(if matches!(keep, Keep::Anti) { not(matched) } else { matched });
        Ok(flow.project(schema.columns().into_iter().map(Expr::Column).collect(), schema.clone()))
    }

    /// Runs the build side.
    fn lookup(&self, join: &Join, sides: &Sides, keep: Keep) -> Result<Probe> {
        let nulls = null_keys(join);
        let (flow, keys, place) = (&sides.build, &sides.build_keys, sides.place);
        if keys.is_empty() {
            let residual = residual(join, nulls, true)?;
            let build = self.relation("join build", flow)?;
            return Ok(Probe { candidates: Candidates::Every, build, place, keep, residual });
        }
        let layout = join_layout(flow, keys, nulls)?;
        let residual = residual(join, nulls, layout.is_exact())?;
        let existence = residual.is_none() && !matches!(keep, Keep::Matched | Keep::All);
        let mut keep = keep;
        let mut key_value = |generator: &mut Generator<'_>, out: &mut Emitter| -> Result<Vec<Value>> {
            let (key, valid) = emit_key(&layout, keys, generator, out)?;
            if let (Keep::NotIn { null_seen }, Some(valid)) = (&mut keep, &valid) {
                let seen: &Arc<Buffer> = null_seen.insert(Arc::new(self.device.alloc_zeroed("join build", 4)?));
                let seen = generator.params.pointer("u32", seen, 0);
                out.line(format!("if (!{valid}) *{seen} = 1;"));
            }
            Ok(vec![Value { valid, ..Value::word(key) }])
        };
        let (build, key) = match existence {
            // Nobody asks for the columns of a row that only exists.
            true => {
                let (rows, key) = materialize(&self.device, "join build", flow, Codes::Keep, key_value)?;
                (Relation::dense(rows, vec![]), key)
            }
            false => self.relation_with("join build", flow, &mut key_value)?,
        };
        let domain = layout.dense_domain(u64::MAX);
        let wanted = if existence { Wanted::Existence } else { Wanted::Rows };
        let (data, valid) = (&key[0].data, key[0].validity.as_deref());
        let table = Box::new(JoinTable::build(&self.device, data, valid, build.rows, domain, wanted)?);
        let candidates = Candidates::Keyed { table, layout, keys: sides.probe_keys.clone() };
        Ok(Probe { candidates, build, place, keep, residual })
    }
}

fn null_keys(join: &Join) -> NullKeys {
    match join.null_equality {
        NullEquality::NullEqualsNothing => NullKeys::Skipped,
        NullEquality::NullEqualsNull => NullKeys::Equal,
    }
}

/// Emits a build row's key, and whether it can match anything, where that is a question.
fn emit_key(
    layout: &KeyLayout,
    keys: &[Expr],
    generator: &mut Generator<'_>,
    out: &mut Emitter,
) -> Result<(String, Option<String>)> {
    let values = keys.iter().map(|key| generator.expr(key, out)).collect::<Result<Vec<_>>>()?;
    let (key, _) = layout.emit(&values, &mut generator.params, out);
    let skipped = values.iter().zip(&layout.fields).filter(|(_, field)| !field.nullable);
    let valid: Vec<_> = skipped.filter_map(|(value, _)| value.valid.clone()).collect();
    let valid = (!valid.is_empty()).then(|| out.let_("bool", valid.join(" && ")));
    Ok((key, valid))
}

/// What has to hold of a pair besides equal keys; a hashed key only says that the keys may be equal.
fn residual(join: &Join, nulls: NullKeys, exact: bool) -> Result<Option<Residual>> {
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
