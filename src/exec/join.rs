//! Inner joins: the smaller side becomes a table of keys, the other side's pipeline looks each row up.
//!
//! Where no build key repeats, the lookup is one more stage of the probe's pipeline. Else the pipeline ends: matches are
//! counted, their places come from a scan, and pairs of row numbers are written, balanced over threads by output.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchemaRef, NullEquality};
use datafusion::logical_expr::{Expr, Join, Operator, binary_expr};

use super::run::{Runner, anonymous, u32_column};
use crate::codegen::{
    BuildSide, Codes, Emitter, Flow, Generator, KeyLayout, NullKeys, Probe, Source, Value, materialize,
};
use crate::column::{Column, Relation, Repr};
use crate::error::{Error, Result};
use crate::ops::join::{JoinTable, expand};
use crate::ops::scan::exclusive_scan_u32;

impl Runner {
    pub(super) fn join(&self, join: &Join) -> Result<Flow> {
        let (left, right) = (self.flow(&join.left)?, self.flow(&join.right)?);
        // Between equals the right: by habit the table whose key is unique is joined to the other.
        let place = if left.estimate < right.estimate { BuildSide::Left } else { BuildSide::Right };
        let (left_keys, right_keys): (Vec<Expr>, Vec<Expr>) = join.on.iter().cloned().unzip();
        let (build, build_keys, probe, probe_keys) = match place {
            BuildSide::Left => (left, left_keys, right, right_keys),
            BuildSide::Right => (right, right_keys, left, left_keys),
        };
        let nulls = match join.null_equality {
            NullEquality::NullEqualsNothing => NullKeys::Skipped,
            NullEquality::NullEqualsNull => NullKeys::Equal,
        };
        let (build, table, layout) = self.build(&build, &build_keys, nulls)?;
        // A hashed key only says that the keys may be equal.
        let residual = (!layout.is_exact()).then(|| {
            let same = match nulls {
                NullKeys::Skipped => Operator::Eq,
                NullKeys::Equal => Operator::IsNotDistinctFrom,
            };
            join.on.iter().map(|(l, r)| binary_expr(l.clone(), same, r.clone())).reduce(Expr::and)
        });
        let lookup = Probe { table, build, layout, keys: probe_keys, place };
        let mut flow = match lookup.table.unique {
            true => probe.probe(lookup, join.schema.clone()),
            false => self.expanded(&probe, lookup, &join.schema)?,
        };
        for predicate in residual.flatten().into_iter().chain(join.filter.clone()) {
            flow = flow.filter(predicate);
        }
        Ok(flow)
    }

    fn build(&self, flow: &Flow, keys: &[Expr], nulls: NullKeys) -> Result<(Relation, JoinTable, KeyLayout)> {
        let mut layout = None;
        let (relation, key) = self.relation_with("join build", flow, |generator, out| {
            let values = keys.iter().map(|key| generator.expr(key, out)).collect::<Result<Vec<_>>>()?;
            let laid = layout.insert(KeyLayout::of(&values, nulls, false));
            let (key, _) = laid.emit(&values, &mut generator.params, out);
            let mut key = Value::word(key);
            if nulls == NullKeys::Skipped {
                let valid: Vec<_> = values.iter().filter_map(|v| v.valid.clone()).collect();
                key.valid = (!valid.is_empty()).then(|| out.let_("bool", valid.join(" && ")));
            }
            Ok(vec![key])
        })?;
        let layout = layout.ok_or_else(|| Error::unsupported("join", "no keys"))?;
        let domain = layout.dense_domain(u64::MAX);
        let key = &key[0];
        let table = JoinTable::build(&self.device, &key.data, key.validity.as_deref(), relation.rows, domain)?;
        Ok((relation, table, layout))
    }

    /// All pairs of matching rows, as a relation of row numbers into both sides.
    fn expanded(&self, probe: &Flow, lookup: Probe, schema: &DFSchemaRef) -> Result<Flow> {
        let (rows, begins, counts, relation) = self.matches(probe, &lookup)?;
        let offsets = Arc::new(exclusive_scan_u32(&self.device, &counts.data, rows)?);
        let total = offsets.read_words(rows as usize * 8, 1)?[0];
        if total >= u64::from(u32::MAX) {
            return Err(Error::unsupported(format!("a join of {total} rows"), "row numbers have 32 bits"));
        }
        let probe_rows = Arc::new(expand(&self.device, &offsets, rows, total)?);
        let matched = lookup.table.rows.as_ref().ok_or_else(|| Error::unsupported("join", "a table without rows"))?;
        let numbers = Relation::dense(total, vec![u32_column(probe_rows.clone(), 0, total)]);
        let flow = Flow::new(Source::Relation(numbers), anonymous(&[DataType::UInt32])?);
        let (_, build_rows) = materialize(&self.device, "join pairs", &flow, Codes::Keep, |generator, out| {
            let from = generator.column(0, out)?.code;
            let matched = generator.params.borrowed("const u32", matched);
            let begins = generator.params.pointer("const u32", &begins.data, begins.offset * 4);
            let offsets = generator.params.pointer("const u64", &offsets, 0);
            let row = out.let_("u32", format!("{matched}[{begins}[{from}] + (u32)(row - {offsets}[{from}])]"));
            Ok(vec![Value::new(DataType::UInt32, Repr::U32, row, None)])
        })?;
        let probe_side = self.reindexed(relation, total, probe_rows)?;
        let build_side = self.reindexed(lookup.build, total, build_rows[0].data.clone())?;
        let joined = match lookup.place {
            BuildSide::Left => zipped(build_side, probe_side),
            BuildSide::Right => zipped(probe_side, build_side),
        };
        Ok(Flow::new(Source::Relation(joined), schema.clone()))
    }

    /// Runs the probe's pipeline and finds for each of its rows where the list of its matches begins, and its length.
    fn matches(&self, probe: &Flow, lookup: &Probe) -> Result<(u64, Column, Column, Relation)> {
        let (relation, mut found) = self.relation_with("join probe", probe, |generator, out| {
            let values = lookup.keys.iter().map(|key| generator.expr(key, out)).collect::<Result<Vec<_>>>()?;
            let (begin, count) = emit_range(generator, lookup, &values, out);
            let column = |name| Value::new(DataType::UInt32, Repr::U32, name, None);
            Ok(vec![column(begin), column(count)])
        })?;
        let counts = found.pop();
        let (Some(begins), Some(counts)) = (found.pop(), counts) else {
            return Err(Error::unsupported("join", "no matches were counted"));
        };
        Ok((relation.rows, begins, counts, relation))
    }
}

/// Emits begin and length of the list of build rows that match; length 0 where none do.
fn emit_range(generator: &mut Generator<'_>, lookup: &Probe, values: &[Value], out: &mut Emitter) -> (String, String) {
    let (begin, count) = (out.fresh(), out.fresh());
    out.line(format!("u32 {begin} = 0, {count} = 0;\ndo {{"));
    let slot = generator.probe_slot(lookup, values, out);
    let starts = generator.params.borrowed("const u32", &lookup.table.starts);
    out.line(format!("{begin} = {starts}[2 * {slot}];\n{count} = {starts}[2 * {slot} + 1] - {begin};\n}} while (0);"));
    (begin, count)
}

/// Columns of both, side by side.
fn zipped(left: Relation, right: Relation) -> Relation {
    let behind = left.indices.len();
    let mut joined = left;
    joined.indices.extend(right.indices);
    joined.columns.extend(right.columns.into_iter().map(|(index, column)| (index + behind, column)));
    joined
}
