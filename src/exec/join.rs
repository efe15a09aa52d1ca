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
//! Pairs of row numbers are `join_pairs.rs`'s.

use std::sync::Arc;

use datafusion::common::NullEquality;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{Expr, Join, JoinType, Operator, binary_expr, build_join_schema};

use super::join_pairs::Preserved;
use super::run::Runner;
use crate::codegen::{
    BuildSide, Candidates, Codes, Emitter, Flow, Generator, Keep, KeyLayout, NullKeys, Probe, Residual, Value,
    join_layout, materialize,
};
use crate::column::Relation;
use crate::device::Buffer;
use crate::error::Result;
use crate::ops::join::{JoinTable, Wanted};

/// A preserved side is the build side only where it has this many times fewer rows: its rows without a match have to
/// be found afterwards.
const PRESERVED_BUILD: f64 = 4.0;

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
        let keyed = !join.on.is_empty();
        let far_smaller = |a: &Flow, b: &Flow| keyed && a.estimate * PRESERVED_BUILD < b.estimate;
        let build_left = match join.join_type {
            // Between equals the right: by habit the table whose key is unique is joined to the other.
            Inner | Full => left.estimate < right.estimate,
            Left => far_smaller(&left, &right),
            Right => !far_smaller(&right, &left),
            LeftSemi | LeftAnti | LeftMark => false,
            RightSemi | RightAnti | RightMark => true,
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
        let keep = match join.join_type {
            Inner => Keep::Matched,
            Left | Right | Full => Keep::All,
            LeftSemi | RightSemi => Keep::Semi,
            LeftAnti | RightAnti if join.null_aware => Keep::NotIn { null_seen: None },
            LeftAnti | RightAnti => Keep::Anti,
            LeftMark | RightMark => Keep::Mark,
        };
        let mut lookup = self.lookup(join, &sides, keep)?;
        let schema = join.schema.clone();
        match lookup.keep {
            Keep::Matched => {
                let residual = lookup.residual.take();
                let mut flow = match lookup.at_most_one() {
                    true => sides.probe.probe(lookup, schema),
                    false => self.expanded(&sides.probe, lookup, preserved, &schema)?,
                };
                for predicate in residual.into_iter().flat_map(|residual| residual.conjuncts) {
                    flow = flow.filter(predicate);
                }
                Ok(flow)
            }
            Keep::All if preserved.build || !lookup.at_most_one() => {
                self.expanded(&sides.probe, lookup, preserved, &schema)
            }
            _ => Ok(sides.probe.probe(lookup, schema)),
        }
    }

    /// Runs the build side.
    fn lookup(&self, join: &Join, sides: &Sides, keep: Keep) -> Result<Probe> {
        let nulls = match join.null_equality {
            NullEquality::NullEqualsNothing => NullKeys::Skipped,
            NullEquality::NullEqualsNull => NullKeys::Equal,
        };
        let (flow, keys, place) = (&sides.build, &sides.build_keys, sides.place);
        let exact = keys.is_empty() || join_layout(flow, keys, nulls)?.is_exact();
        let residual = residual(join, nulls, exact)?;
        let existence = residual.is_none() && !matches!(keep, Keep::Matched | Keep::All);
        if keys.is_empty() {
            let build = self.relation("join build", flow)?;
            return Ok(Probe { candidates: Candidates::Every, build, place, keep, residual });
        }
        let mut keep = keep;
        let mut layout = None;
        let mut emit_key = |generator: &mut Generator<'_>, out: &mut Emitter| -> Result<Value> {
            let values = keys.iter().map(|key| generator.expr(key, out)).collect::<Result<Vec<_>>>()?;
            let laid = layout.insert(KeyLayout::of(&values, nulls, false));
            let (key, _) = laid.emit(&values, &mut generator.params, out);
            let mut key = Value::word(key);
            if nulls == NullKeys::Skipped {
                let valid: Vec<_> = values.iter().filter_map(|v| v.valid.clone()).collect();
                key.valid = (!valid.is_empty()).then(|| out.let_("bool", valid.join(" && ")));
            }
            if let (Keep::NotIn { null_seen }, Some(valid)) = (&mut keep, &key.valid) {
                let seen: &Arc<Buffer> = null_seen.insert(Arc::new(self.device.alloc_zeroed("join build", 4)?));
                let seen = generator.params.pointer("u32", seen, 0);
                out.line(format!("if (!{valid}) *{seen} = 1;"));
            }
            Ok(key)
        };
        let (build, key) = match existence {
            // Nobody asks for the columns of a row that only exists.
            true => {
                let (rows, key) = materialize(&self.device, "join build", flow, Codes::Keep, |generator, out| {
                    Ok(vec![emit_key(generator, out)?])
                })?;
                (Relation::dense(rows, vec![]), key)
            }
            false => self.relation_with("join build", flow, |generator, out| Ok(vec![emit_key(generator, out)?]))?,
        };
        let layout = layout.expect("the key was emitted");
        let domain = layout.dense_domain(u64::MAX);
        let wanted = if existence { Wanted::Existence } else { Wanted::Rows };
        let (data, valid) = (&key[0].data, key[0].validity.as_deref());
        let table = Box::new(JoinTable::build(&self.device, data, valid, build.rows, domain, wanted)?);
        let candidates = Candidates::Keyed { table, layout, keys: sides.probe_keys.clone() };
        Ok(Probe { candidates, build, place, keep, residual })
    }
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
